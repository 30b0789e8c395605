"""The untrusted process: it executes the program, then answers calls with plain data until its pipe is closed.

Nothing here is a protection. A program may replace all of it, and wins nothing by that: the examiner believes no more
of what arrives than that somebody wrote it.
"""

import _thread
import atexit
import builtins
import contextlib
import functools
import gc
import inspect
import io
import itertools
import linecache
import math
import os
import sys
import threading
import types
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NoReturn

from judge.jail import wire

_OPERATIONS = {
    "get": lambda thing, name: getattr(thing, name),
    "set": lambda thing, name, value: setattr(thing, name, value),
    "call": lambda thing, name, *args, **named: getattr(thing, name)(*args, **named),
    "operate": lambda thing, name, *others: wire.operated(name, thing, *others),
    "plain": lambda thing, _: thing,  # the content of an object whose class extends a builtin
    "exit": lambda thing, error, *args: thing.__exit__(*_raised_by(error, args)),
    "instance": lambda thing, _, value: isinstance(value, thing),
    "subclass": lambda thing, _, kind: issubclass(kind, thing),
}
_OF_PYTHON = ("builtins", "itertools")
_METHODS = (types.MethodType, types.FunctionType, types.BuiltinMethodType, type)
_CHANGEABLE = ("dict", "set", "bytearray", "deque", "array")  # tags of mutable values; a list has no tag
_ONE_BY_ONE = 16  # items of an iterator that are produced one at a time; after them, growing batches
_MOST_ITEMS = 1 << 14
_LONGEST_TEXT = 2000  # characters of an exception's message
_FILE = "solution.py"  # the file name that a program sees as its own
_LARGEST_STACK = 64 << 20  # bytes; a thread may ask for more than the memory limit allows
_STREAMS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}  # which a program could not open by name


def answer_calls(program: int, requests: int, replies: int, begun: int, stateful: bool) -> None:
    """Executes the source read from `program`, then answers the examiner. The first four are file descriptors."""
    source = wire.read_frame(program)["source"]
    os.close(program)
    os.close(begun)
    try:
        namespace = _execute(source, "solution")
    except BaseException as error:
        wire.write_frame(replies, {"id": "load", **_raised(error)})
        return
    wire.write_frame(replies, {"id": "load", "errors": _errors_in(namespace)})
    calls = _Calls(namespace, stateful)
    while True:
        try:
            request = wire.read_frame(requests)
        except EOFError:
            return
        wire.write_frame(replies, calls.answer(request))


def run_script(program: int, begun: int) -> NoReturn:
    """Executes the source as a script on the current standard descriptors, and exits as an interpreter would."""
    source = wire.read_frame(program)["source"]
    os.close(program)
    _open_streams()
    sys.argv[:] = [_FILE]
    builtins.exit = builtins.quit = sys.exit  # the site module, which defines them, is not loaded here
    os.close(begun)
    status = 0
    try:
        _execute(source, "__main__")
    except SystemExit as end:
        status = _status(end.code)
    except BaseException as error:
        frames = error.__traceback__.tb_next
        frames = frames and frames.tb_next  # without those of this file
        sys.excepthook(type(error), error.with_traceback(frames), frames)
        status = 1
    _end(status)


def _open_streams() -> None:
    """Reopens the standard streams on the current descriptors: the interpreter opened them for other files."""
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        was = getattr(sys, name)
        mode, buffering = ("w" if number else "r"), (1 if number == 2 else -1)
        stream = os.fdopen(number, mode, buffering, encoding=was.encoding, errors=was.errors, closefd=False)
        stream.buffer.raw.name = was.name
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    opened = builtins.open

    def open_anything(file: Any, *args: Any, **named: Any) -> Any:
        number = _STREAMS.get(str(file))  # also of a path
        return opened(file if number is None else os.dup(number), *args, **named)

    builtins.open = io.open = open_anything  # the latter for pathlib


def _status(code: Any) -> int:
    """Returns the exit status of a process that calls sys.exit(code)."""
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    print(code, file=sys.stderr)
    return 1


def _end(status: int) -> NoReturn:
    """Does the interpreter's shutdown for the script's own objects: finalizing all of Python takes ten times as long.

    Waits for threads and runs atexit functions first, then frees the script's objects, whose finalizers may still
    write to unflushed streams.
    """

    def free() -> None:
        sys.modules["__main__"].__dict__.clear()

    for step in (threading._shutdown, atexit._run_exitfuncs, _flush, free, gc.collect, _flush):
        with contextlib.suppress(BaseException):
            step()
    os._exit(status)


def _flush() -> None:
    for name in ("stdout", "__stdout__", "stderr"):
        with contextlib.suppress(BaseException):
            getattr(sys, name).flush()


def _execute(source: str, name: str) -> dict[str, Any]:
    """Executes the program as a module of its own and returns its namespace; dataclasses look it up in sys.modules."""
    module = types.ModuleType(name)
    module.__file__ = _FILE
    sys.modules[name] = module
    lines = (len(source), None, source.splitlines(True), _FILE)  # for inspect.getsource
    linecache.cache.update({"<string>": lines, _FILE: lines})
    _thread.stack_size = threading.stack_size = _stack_size
    # a frame named <string> has no source file, so a traceback does not search for one
    exec(compile(source, "<string>", "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def _stack_size(size: int = 0, of_thread: Any = _thread.stack_size) -> int:
    return of_thread(min(size, _LARGEST_STACK))


def _errors_in(namespace: dict[str, Any]) -> dict[str, list[str]]:
    kinds = [(name, kind) for name, kind in namespace.items() if isinstance(kind, type) and issubclass(kind, Exception)]
    return {name: _names_of(kind) for name, kind in kinds[:100]}


def _names_of(kind: type) -> list[str]:
    return [base.__name__ for base in kind.__mro__][:8]


def _raised_by(name: str, args: list) -> tuple:
    """Returns the arguments of `__exit__` for an error of the class by this name, or for none."""
    error = getattr(builtins, name, Exception)(*args) if name else None
    return error and type(error), error, None


def _raised(error: BaseException) -> dict:
    kind = type(error)
    names = _names_of(kind)
    # an argument may be an object whose own __str__ never returns
    arguments = [part[:_LONGEST_TEXT] if type(part) is str else part for part in error.args[:4] if _is_small(part)]
    if isinstance(error, RuntimeError) and arguments == ["can't start new thread"]:
        names = ["MemoryError", "Exception"]
    raised = {"exc": names, "args": arguments, "has": _attributes(error)}
    if isinstance(kind.__str__, types.FunctionType):  # defined by the program
        with contextlib.suppress(Exception):  # else it is treated as if it had no __str__ of its own
            raised["text"] = str(error)[:_LONGEST_TEXT]
    return raised


def _attributes(error: BaseException) -> dict[str, Any]:
    try:
        pairs = [(name, getattr(error, name)) for name in dir(error) if not name.startswith("_")]
    except Exception:
        return {}
    return {name: value for name, value in pairs[:50] if _is_small(value) and len(str(value)) <= _LONGEST_TEXT}


def _is_small(part: Any) -> bool:
    if type(part) is int:
        return abs(part) < 1 << 53
    return part is None or type(part) in (bool, str) or (type(part) is float and math.isfinite(part))


class _Calls:
    """The program's functions and, if the data set allows it, the objects that they returned, by number."""

    def __init__(self, namespace: dict[str, Any], stateful: bool):
        self._namespace = namespace
        self._stateful = stateful
        self._kept: list[Any] = []
        self._numbers: dict[int, int] = {}  # of kept objects, by id
        self._iterators: dict[int, Iterator] = {}
        self._numbered: dict[int, tuple[int, Iterator]] = {}  # (number, iterator) by id; also of earlier versions
        self._given: dict[int, int] = defaultdict(int)  # number of items sent of each so far
        self._loop: Any = None  # of asyncio
        self._held: dict[int, list] = {}  # by number, of the objects in the current answer: see `_held`
        self._encode = wire.Encoder(self._keep, self._begin)
        self._encode_plain = wire.Encoder(_refuse, _refuse)
        self._decode = wire.WireDecoder(self._revive)

    def answer(self, request: dict) -> dict:
        reply = {"id": request["id"]}
        values = self._decode(request["a"])
        named = dict(zip(request["k"], values[len(values) - len(request["k"]) :], strict=True))
        arguments = values[: len(values) - len(named)]
        result = None
        try:
            if "i" in request:
                items, number = self._next(request["i"], *arguments)
                reply["v"] = {"iterator": [self._encode(items), number]}
            else:
                result = self._result(request, arguments, named)
                if hasattr(type(result), "__await__"):
                    reply["awaited"] = True
                    result = self._awaited(result)
                same = [index for index, value in enumerate(values) if value is result]
                if request.get("op") == "get" and isinstance(result, _METHODS):
                    reply["method"] = True
                elif same and _is_changeable(request["a"][same[0]]):
                    reply["same"] = same[0]
                elif request.get("made") and self._is_own(result, request):
                    reply["plain"], reply["v"] = self._encode(result), self._keep(result)
                else:
                    reply["v"] = self._encode(result)
                    if not self._stateful and type(reply["v"]) is dict and "handle" in reply["v"]:
                        reply |= {"truth": _truth(result), "called": callable(result)}
        except wire.NotPlain as error:
            reply["opaque"] = str(error)
            reply["truth"] = _truth(result)
        except BaseException as error:
            reply.update(_raised(error))
        if self._held:
            reply["holds"], self._held = self._held, {}
        changed = {str(i): new for i, new in enumerate(map(self._changed, values, request["a"])) if new is not None}
        return {**reply, "mut": changed} if changed else reply

    def _result(self, request: dict, arguments: list, named: dict) -> Any:
        if "f" in request and request["f"] not in self._namespace:
            raise NameError(f"name '{request['f']}' is not defined")
        thing = self._namespace[request["f"]] if "f" in request else self._kept[request["h"]]
        if "op" not in request:
            return thing(*arguments, **named)
        return _OPERATIONS[request["op"]](thing, request["m"], *arguments, **named)

    def _awaited(self, result: Any) -> Any:
        import asyncio  # here, since only a program that has imported it needs it

        async def wait() -> Any:
            return await result

        self._loop = self._loop or asyncio.new_event_loop()
        return self._loop.run_until_complete(wait())

    def _is_own(self, result: Any, request: dict) -> bool:
        """True if a result's class extends a builtin and, if a method was called, is the receiver's class."""
        return wire.extends_plain(result) and ("f" in request or type(result) is type(self._kept[request["h"]]))

    def _changed(self, value: Any, before: Any) -> Any:
        """Returns an argument's new encoding if a call has changed it, else None."""
        if not _is_changeable(before):
            return None
        try:
            after = self._encode(value)
        except wire.NotPlain as error:
            return {"opaque": str(error)}
        return after if after != before else None

    def _keep(self, value: Any) -> dict:
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._kept)
            self._kept.append(value)
        if self._stateful and type(value).__eq__ is not object.__eq__:
            with contextlib.suppress(Exception):  # it holds something else
                names, *parts = _held(value)
                self._held[self._numbers[id(value)]] = [names, *map(self._encode_plain, parts)]
        return {"handle": self._numbers[id(value)]}

    def _begin(self, iterator: Iterator) -> tuple[list, int] | None:
        """Returns no items, since an iterator may be infinite, and a number by which they can be asked for."""
        if self._stateful and type(iterator).__module__ not in _OF_PYTHON:
            return None  # used as an object, through its methods
        if id(iterator) not in self._numbered:
            self._put(len(self._iterators), iterator)
        return [], self._numbered[id(iterator)][0]

    def _next(self, number: int, *sent: Any) -> tuple[list, int | None]:
        """Returns items of an iterator, and its number if there may be more."""
        if sent:
            return [self._iterators[number].send(*sent)], number
        given = self._given[number]
        wanted = 1 if given < _ONE_BY_ONE else min(given, _MOST_ITEMS)
        items = []
        try:
            for item in itertools.islice(self._iterators[number], wanted):
                items.append(item)
        except BaseException as error:
            if not items:
                raise
            self._put(number, _raising(error))  # raised only after the items before it
        self._given[number] += len(items)
        return items, number if items else None

    def _put(self, number: int, iterator: Iterator) -> None:
        self._iterators[number] = iterator
        self._numbered[id(iterator)] = number, iterator

    def _revive(self, tag: str, content: Any) -> Any:
        if tag == "handle":
            return self._kept[content]
        if tag == "name":
            return self._namespace.get(content)
        items, number = content
        if number is None:
            return iter(items)
        self._put(number, itertools.chain(items, self._iterators[number]))
        return self._iterators[number]


def _held(value: Any) -> tuple[list[str], list, list]:
    """Returns the parameters of an object's constructor, defaults of the last of them, and what it holds under their
    names, followed by what it holds of a parameter for all other arguments. Raises where it does not.
    """
    kind = type(value)
    parameters = _parameters(kind)
    plain = [parameter for parameter in parameters if parameter.kind <= parameter.POSITIONAL_OR_KEYWORD]
    stars = [parameter.name for parameter in parameters if parameter.kind is parameter.VAR_POSITIONAL]

    def part(name: str) -> Any:
        spellings = name, f"_{name}", f"_{kind.__name__}__{name}"
        return getattr(value, next(spelling for spelling in spellings if hasattr(value, spelling)))

    names = [parameter.name for parameter in plain]
    defaults = [parameter.default for parameter in plain if parameter.default is not parameter.empty]
    return names, defaults, [*map(part, names), *(item for star in stars for item in part(star))]


@functools.lru_cache(maxsize=100)  # for thousands of objects of a class
def _parameters(kind: type) -> list[inspect.Parameter]:
    return list(inspect.signature(kind).parameters.values())


def _refuse(value: Any) -> Any:
    raise wire.NotPlain(type(value).__name__)


def _raising(error: BaseException) -> Iterator:
    raise error
    yield


def _truth(thing: Any) -> bool | None:
    try:
        return bool(thing)
    except Exception:
        return None


def _is_changeable(body: Any) -> bool:
    return type(body) is list or (type(body) is dict and next(iter(body)) in _CHANGEABLE)

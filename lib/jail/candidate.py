"""The untrusted process: it executes the program, then answers calls with plain data until its pipe is closed.

Nothing here is a protection. A program may replace all of it, and wins nothing by that: the examiner believes no more
of what arrives than that somebody wrote it.
"""

import builtins
import math
import os
import sys
import types
from typing import Any, NoReturn

from lib.jail import wire

_OPERATIONS = {
    "get": lambda thing, name: getattr(thing, name),
    "set": lambda thing, name, value: setattr(thing, name, value),
    "call": lambda thing, name, *args, **named: getattr(thing, name)(*args, **named),
    "item": lambda thing, _, key: thing[key],
    "contains": lambda thing, _, item: item in thing,
    "length": lambda thing, _: len(thing),
    "list": lambda thing, _: list(thing),
    "text": lambda thing, _: str(thing),
}
_METHODS = (types.MethodType, types.FunctionType, types.BuiltinMethodType, type)
_CHANGEABLE = ("dict", "set", "bytearray", "deque")  # tags; a list has none
_LONGEST_TEXT = 2000  # characters of an exception's message


def answer_calls(program: int, requests: int, replies: int, stateful: bool) -> None:
    """Executes the source that comes through `program`, then answers the examiner. File descriptors, all three."""
    source = wire.read_frame(program)["source"]
    os.close(program)
    try:
        namespace = _execute(source, "solution")
    except BaseException as error:
        wire.write_frame(replies, {"id": "load", **_raised(error)})
        return
    wire.write_frame(replies, {"id": "load"})
    calls = _Calls(namespace, stateful)
    while True:
        try:
            request = wire.read_frame(requests)
        except EOFError:
            return
        wire.write_frame(replies, calls.answer(request))


def run_script(program: int) -> NoReturn:
    """Executes the source as a script, on the standard streams as they are, and ends as an interpreter ends."""
    source = wire.read_frame(program)["source"]
    os.close(program)
    sys.argv[:] = ["solution.py"]
    builtins.exit = builtins.quit = sys.exit  # the site module is not loaded here
    try:
        _execute(source, "__main__")
    except SystemExit:
        raise
    except BaseException as error:
        frames = error.__traceback__.tb_next
        frames = frames and frames.tb_next  # without those of this file
        sys.excepthook(type(error), error.with_traceback(frames), frames)
        sys.exit(1)
    sys.exit()


def _execute(source: str, name: str) -> dict[str, Any]:
    """The namespace of the program, which starts empty and is registered as a module: dataclasses look it up there."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    # a frame named <string> has no source file, so a traceback does not search for one
    exec(compile(source, "<string>", "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def _raised(error: BaseException) -> dict:
    names = [kind.__name__ for kind in type(error).__mro__][:8]
    # an argument may be an object with a __str__ of its own, endless if it likes
    arguments = [part[:_LONGEST_TEXT] if type(part) is str else part for part in error.args[:4] if _is_small(part)]
    if isinstance(error, RuntimeError) and arguments == ["can't start new thread"]:
        names = ["MemoryError", "Exception"]
    return {"exc": names, "args": arguments}


def _is_small(part: Any) -> bool:
    if type(part) is int:
        return abs(part) < 1 << 53
    return part is None or type(part) in (bool, str) or (type(part) is float and math.isfinite(part))


class _Calls:
    """The program's functions, and where the data set allows it the objects that they returned, by number."""

    def __init__(self, namespace: dict[str, Any], stateful: bool):
        self._namespace = namespace
        self._stateful = stateful
        self._kept: list[Any] = []
        self._numbers: dict[int, int] = {}  # of what is kept, by id
        self._encode = wire.Encoder(self._keep)
        self._decode = wire.Decoder(self._revive)

    def answer(self, request: dict) -> dict:
        reply = {"id": request["id"]}
        values = self._decode(request["a"])
        named = dict(zip(request["k"], values[len(values) - len(request["k"]) :], strict=True))
        arguments = values[: len(values) - len(named)]
        try:
            if "f" in request:
                result = self._function(request["f"])(*arguments, **named)
            else:
                result = _OPERATIONS[request["op"]](self._kept[request["h"]], request["m"], *arguments, **named)
            if request.get("op") == "get" and isinstance(result, _METHODS):
                reply["method"] = True
            else:
                reply["v"] = self._encode(result)
        except wire.NotPlain as error:
            reply["opaque"] = str(error)
        except BaseException as error:
            reply.update(_raised(error))
        changed = {str(i): new for i, new in enumerate(map(self._changed, values, request["a"])) if new is not None}
        return {**reply, "mut": changed} if changed else reply

    def _function(self, name: str) -> Any:
        if name not in self._namespace:
            raise NameError(f"name '{name}' is not defined")
        return self._namespace[name]

    def _changed(self, value: Any, before: Any) -> Any:
        """What a call has made of an argument, None if it is as before."""
        if type(before) is not list and _tag(before) not in _CHANGEABLE:
            return None
        try:
            after = self._encode(value)
        except wire.NotPlain as error:
            return {"opaque": str(error)}
        return after if after != before else None

    def _keep(self, value: Any) -> dict:
        if not self._stateful:
            raise wire.NotPlain(f"an object of type {type(value).__name__}")
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._kept)
            self._kept.append(value)
        return {"handle": self._numbers[id(value)]}

    def _revive(self, tag: str, content: Any) -> Any:
        if tag == "handle":
            return self._kept[content]
        return iter(content) if tag == "iterator" else content


def _tag(body: Any) -> str:
    return next(iter(body)) if type(body) is dict else ""

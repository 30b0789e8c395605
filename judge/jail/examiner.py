"""The trusted process: it runs a data set's tests against a program that lives elsewhere, and owns the verdict.

A test is a piece of Python with asserts in it. Of the program it sees the declared entry points, as stubs that send
their arguments over; comparing, counting and catching happen here, where no byte of the program has run.
"""

import builtins
import contextlib
import os
import re
import select
import sys
import threading
import time
import traceback
import types
from collections import deque
from typing import Any, NoReturn

from judge.jail import asserts, values, wire

_LONGEST_DETAIL = 300  # characters
_ALL_DETAILS = 6_000  # characters; verdicts are remembered
_TEST, _SETUP = "<test>", "<setup_code>"
_ENDS = (GeneratorExit, StopIteration, StopAsyncIteration)
_SMALL = {str, int, float, bool, type(None)}
_ITERATORS_END = ("StopIteration", "StopAsyncIteration")
_PATIENCE = 0.2  # seconds to wait for threads that a test leaves running
_UNCOMPILED = (SyntaxError, ValueError, RecursionError, MemoryError)
_BY_PROGRAM = (types.CoroutineType, types.AsyncGeneratorType)  # a program that answers by these is not asked further
_NO_ERRORS = ("SystemExit", "KeyboardInterrupt", "GeneratorExit", "StopIteration", "StopAsyncIteration")


class Ended(BaseException):
    """Ends a test with its verdict and detail. Not an Exception: `except Exception` in a test must not swallow it."""


def examine(tests: int, requests: int, replies: int, verdict: int) -> None:
    """Reads the job from `tests`, runs it, writes one frame to `verdict`. All four are file descriptors."""
    job = wire.read_frame(tests)
    os.close(tests)
    program = _Program(requests, replies, job["entry_points"], job["stateful"])
    setup, why_not = _compiled(job["setup_code"], job["entry_points"])
    load = program.load()
    verdicts, room = [], _ALL_DETAILS
    for test in job["tests"]:
        name, detail = load or why_not or program.lost or _examine_one(test, setup, job["entry_points"], program)
        detail = detail[: min(_LONGEST_DETAIL, room)]
        room -= len(detail)
        verdicts.append((name, detail))
    wire.write_frame(verdict, {"verdicts": verdicts})


def _compiled(setup_code: str, entry_points: list[str]) -> tuple[asserts.Code | None, tuple[str, str] | None]:
    """Returns the compiled set-up, and the verdict on all tests if the set-up or an entry point is unusable."""
    try:
        setup = asserts.noting(setup_code, _SETUP)
    except _UNCOMPILED as error:
        return None, ("unsupported_test", f"setup_code does not parse: {_named(error)}")
    built_in = [name for name in entry_points if hasattr(builtins, name)]
    if built_in:
        return None, ("unsupported_test", f"the entry point {built_in[0]} is a builtin")
    return setup, None


def _examine_one(test: str, setup: asserts.Code, entry_points: list[str], program: "_Program") -> tuple[str, str]:
    """Returns the verdict on one test, run in a fresh namespace in which the set-up is executed again."""
    program.begin_test()
    try:
        code = asserts.noting(test, _TEST)
    except _UNCOMPILED as error:
        return "unsupported_test", f"the test does not parse: {_named(error)}"
    if not code.asserts + setup.asserts:
        return "unsupported_test", "the test asserts nothing"
    held, skipped, expected = [], [], []
    texts = {_TEST: test, _SETUP: setup.text}

    def note(what: str, name: str, number: int, context: Any = None) -> None:
        # HELD counts, FAILED settles; an error that was SKIPPED or EXPECTED waits until LOOKED_AT or MET takes it back,
        # and what still waits at the end is the verdict
        error = sys.exc_info()[1]
        if what == asserts.HELD:
            held.append(True)
        elif what == asserts.FAILED:
            program.note("wrong", f"{_line(texts[name], number)}{program.last()}")
        elif what == asserts.MET:
            # no other context is known to have required the error that it keeps
            if type(context) is getattr(sys.modules.get("unittest.case"), "_AssertRaisesContext", None):
                met = getattr(context, "exception", None)
                held.extend(True for raised, _ in expected if raised is met)
                expected[:] = [(raised, verdict) for raised, verdict in expected if raised is not met]
                skipped[:] = [(raised, verdict) for raised, verdict in skipped if raised is not met]
        elif what == asserts.LOOKED_AT:
            skipped[:] = [(raised, verdict) for raised, verdict in skipped if raised is not error]
        elif not isinstance(error, _ENDS if what in (asserts.SKIPPED, asserts.ENDED) else GeneratorExit):
            verdict = _failed(error, _line(texts[name], error.__traceback__.tb_lineno), program)
            waiting = {asserts.SKIPPED: skipped, asserts.EXPECTED: expected}.get(what)
            program.note(*verdict) if waiting is None else waiting.append((error, verdict))

    namespace: dict[str, Any] = {"__name__": "tests", asserts.NOTE: note, asserts.IDENTITY: program.identity}
    try:
        exec(setup.code, namespace)
    except BaseException as error:
        return "unsupported_test", f"setup_code raises {_named(error)}"
    held.clear()  # asserts of the set-up alone say nothing about the program
    skipped.clear()
    expected.clear()
    program.begin_test()
    twice = [name for name in entry_points if name in namespace]
    if twice:
        return "unsupported_test", f"setup_code defines {twice[0]}, which is the program's to define"
    namespace |= program.names
    threads = set(threading.enumerate())
    threading.excepthook = lambda ended: program.note(*_failed(ended.exc_value, "a thread of the test", program))
    try:
        exec(code.code, namespace)
        held.extend([True] * (code.asserts if code.straight else 0))
        _wait_for_threads(but=threads)
    except Ended as end:
        return program.first_bad or end.args
    except BaseException as error:
        steps = traceback.walk_tb(error.__traceback__)
        numbers = [number for frame, number in steps if frame.f_code.co_filename == _TEST]  # of the test's own lines
        return program.first_bad or _failed(error, _line(test, numbers[-1] if numbers else 1), program)
    if program.first_bad or skipped or expected:  # the test has caught and discarded the error
        return program.first_bad or (skipped + expected)[0][1]
    if not held:
        return "wrong", f"no assert was reached{program.last()}"
    return "pass", ""


def _wait_for_threads(but: set[threading.Thread]) -> None:
    """Joins a test's threads, which may still assert something; only briefly: idle executor threads never end."""
    patience = time.monotonic() + _PATIENCE
    for thread in set(threading.enumerate()) - but:
        if not thread.daemon:
            thread.join(max(0.0, patience - time.monotonic()))


def _line(text: str, number: int) -> str:
    """Returns a line, counted as the parser counts: a carriage return ends one, a form feed does not."""
    return re.split("\r\n|\r|\n", text)[number - 1].strip()


def _failed(error: BaseException, line: str, program: "_Program") -> tuple[str, str]:
    """Returns the verdict for an error raised by a line of a test or of the set-up."""
    if isinstance(error, AssertionError):  # raised by the program or by the set-up
        return "wrong", f"{line}{program.last()}"
    if isinstance(error, TypeError) and program.gave_object:
        return "opaque", f"{line}{program.last()}, of which only plain data can be used"
    if isinstance(error, MemoryError):
        return "memory", f"{line}: out of memory"
    return "exception", f"{_named(error)} in: {line}{program.last()}"


def _named(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException as another:  # too many digits, an object of the program, or a bug in __str__
        text = f"its text cannot be made, {type(another).__name__}"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _Program:
    """The program as the examiner sees it: calls it, accepts only well-formed answers. Once lost, it stays lost."""

    def __init__(self, requests: int, replies: int, entry_points: list[str], stateful: bool):
        self._requests = requests
        self._replies = replies
        self._stateful = stateful
        self._entry_points = entry_points
        self.classes = [name for name in entry_points if stateful and name.lstrip("_")[:1].isupper()]
        self.names: dict[str, values.RemoteName] = {}
        self._contents: dict[int, Any] = {}  # of objects that extend a builtin, as they were first
        self._held: dict[int, tuple[int, Any]] = {}  # what objects hold, and the question in whose answer it was said
        self._identities: dict[int, object] = {}
        self._encode = wire.Encoder(self._handle_of, _begun)
        self._decode = wire.WireDecoder(self._revive)
        self._one_call = threading.RLock()  # one call at a time: a test may have threads
        self._asked = 0  # questions so far
        self.lost: tuple[str, str] | None = None
        self.begin_test()

    def begin_test(self) -> None:
        self._call = self._answer = ""
        self.first_bad: tuple[str, str] | None = None
        self.gave_object = False  # an opaque one
        self._has_answered = False

    def note(self, verdict: str, detail: str) -> None:
        """Records the current test's verdict unless it already has one."""
        self.first_bad = self.first_bad or (verdict, detail)

    def last(self) -> str:
        """Returns the last call and its answer, for people."""
        return f"; {self._call} {self._answer}" if self._answer else ""

    def load(self) -> tuple[str, str] | None:
        """Waits until the program's top level has run. Returns the verdict on all tests if that failed."""
        try:
            reply = self._receive("load")
            if "exc" not in reply:
                self._define(reply.get("errors"))
                return None
            names, arguments = self._exception(reply)
        except Ended:
            return self.lost
        kind = {"SystemExit": "exited", "MemoryError": "memory"}.get(names[0], "load_error")
        return kind, f"the program raises {_named_as(names, arguments)} while it is loaded"

    def _define(self, errors: Any) -> None:
        """Makes the names of the entry points; `errors`: the classes, by name, that each error of the program has."""
        errors = errors if type(errors) is dict else {}
        errors = {name: kinds for name, kinds in errors.items() if type(kinds) is list}
        for name in sorted(self._entry_points, key=lambda name: len(errors.get(name) or ())):  # bases first
            base_names = self._known(errors.get(name))
            kinds = [self.names.get(base) or getattr(builtins, base) for base in base_names if base != name]
            if "Exception" not in base_names or any(base in _NO_ERRORS for base in base_names):
                kinds = []
            bases = tuple(kind for kind in kinds if not any(kind in more.__mro__[1:] for more in kinds))
            try:
                self.names[name] = values.RemoteName(name, bases, {"__program__": self})
            except TypeError:  # of no program: its bases do not fit together
                self.names[name] = values.RemoteName(name, (), {"__program__": self})

    def _known(self, names: Any) -> list[str]:
        """Returns those of some class names that a test knows as errors."""
        texts = [name for name in names or () if type(name) is str]
        kinds = [self.names.get(name) or getattr(builtins, name, None) for name in texts]
        return [name for name, kind in zip(texts, kinds, strict=True) if BaseException in getattr(kind, "__mro__", ())]

    def ask(self, what: dict, args: tuple, named: dict, shown: str, kind: int = values.GIVEN) -> Any:
        """Returns the answer to one call. Raises what the program raised, or Ended.

        For an attribute that can be called, the answer is `METHOD`; of an asynchronous function, a coroutine.
        """
        with self._one_call:
            self._call, self._answer = shown, ""
            sent = [*args, *named.values()]
            self._gives = what.get("op", "call") == "call"  # an object that a test has given may well be the answer
            try:
                encoded = self._encode(sent)
            except wire.NotPlain as error:
                if self._has_answered and "more than" in str(error):
                    self.opaque(f"{shown} passes {error}")
                self._end("unsupported_test", f"{shown} passes {error}, which cannot leave the test")
            reply = self._exchange({**what, "a": encoded, "k": list(named)})
            self._apply(reply.get("mut"), sent)
            made = (self._asked, encoded, list(named)) if what.get("made") and "f" in what else None
            if reply.get("awaited") is not True:
                return self._settled(reply, what, sent, kind, made)

        async def later() -> Any:
            return self._settled(reply, what, sent, kind, made)

        return later()

    def _settled(self, reply: dict, what: dict, sent: list, kind: int, made: tuple | None) -> Any:
        self._has_answered = True
        if "exc" in reply:
            may_stop = what.get("m") in ("__next__", "__anext__") or ("i" in what and bool(sent))
            self._raise(*self._exception(reply), may_stop, reply)
        if reply.get("method") is True and what.get("op") == "get":
            return values.METHOD
        if "opaque" in reply:
            self._answer = f"answered {str(reply['opaque'])[:100]}"
            self.gave_object = True
            return values.Opaque(self, reply.get("truth"))
        try:
            if "same" in reply:
                index = reply["same"]
                if type(index) is not int or index < 0 or not values.is_changeable(sent[index]):
                    raise LookupError
                value = sent[index]
            elif type(reply["v"]) is dict and "handle" in reply["v"]:
                content = [self._decode(reply["plain"])] if what.get("made") and "plain" in reply else []
                value = self._object(reply["v"]["handle"], kind, made, *content, reply=reply)
            else:
                value = self._decode(reply["v"])
            for number, held in reply.get("holds", {}).items():
                if self._held.get(int(number), (0, None))[1] != held:
                    self._held[int(number)] = self._asked, held
        except (LookupError, AttributeError, ValueError, wire.Broken) as error:
            self._lose("protocol", f"{self._call} was answered by what is no value: {error}")
        self._answer = f"answered {values.short(value)}"
        return value

    def more(self, number: int, *sent: Any) -> tuple[list, int | None]:
        """Returns items of an iterator of the program, and its number if there may be more. `sent`: for a generator."""
        value = self.ask({"i": number}, sent, {}, "an iterator")
        if type(value) is values.Opaque:
            self.opaque()
        if type(value) is not values.RemoteIterator:
            self._lose("protocol", "an iterator gave no items")
        self._answer = ""
        return value.taken()

    def opaque(self, why: str = "it is not plain data, and cannot be compared") -> NoReturn:
        """Ends the test because it compares a value that only the program could compare. Raises Ended."""
        self._end("opaque", f"{self._call} {self._answer}: {why}")

    def _exchange(self, request: dict) -> dict:
        if self.lost:
            self._end(*self.lost)
        self._refuse_unasked()
        self._asked += 1
        request["id"] = os.urandom(8).hex()
        try:
            wire.write_frame(self._requests, request)
        except OSError:
            self._lose("died", "the program ended before it was asked")
        return self._receive(request["id"])

    def _receive(self, wanted: str) -> dict:
        try:
            reply = wire.read_frame(self._replies)
        except EOFError:
            self._lose("died", "the program ended while an answer was awaited")
        except wire.Broken as error:
            self._lose("protocol", f"the program sent {error}")
        if reply.get("id") != wanted:
            self._lose("protocol", "the program sent an answer to another question")
        self._refuse_unasked()
        return reply

    def _refuse_unasked(self) -> None:
        poll = select.poll()
        poll.register(self._replies, select.POLLIN)
        if any(event & select.POLLIN for _, event in poll.poll(0)):
            self._lose("protocol", "the program sent bytes that no one asked for")

    def _apply(self, changes: Any, sent: list) -> None:
        """Applies a call's changes to its arguments, as if it had been made in this process."""
        if changes is None:
            return
        try:
            for index, content in changes.items():
                if type(content) is dict and "opaque" in content:
                    self._answer = f"made of an argument {str(content['opaque'])[:100]}"
                    self.opaque()
                _take_over(sent[int(index)], self._decode(content))
        except (AttributeError, ValueError, LookupError, TypeError, wire.Broken) as error:
            self._lose("protocol", f"the program sent arguments that were not given: {error}")

    def _exception(self, reply: dict) -> tuple[list[str], list]:
        """Returns an exception's built-in classes, most specific first, and its arguments."""
        names, arguments = reply["exc"], reply.get("args")
        if type(names) is not list or type(arguments) is not list or not {*map(type, arguments)} <= _SMALL:
            self._lose("protocol", "the program sent an exception that is none")
        return [*self._known(names), "Exception"], arguments

    def _raise(self, names: list[str], arguments: list, may_stop: bool, reply: dict) -> NoReturn:
        """Raises the program's exception here, or Ended. `reply`: the answer; it may hold the exception's own text."""
        self._answer = f"raised {_named_as(names, arguments)}"
        if may_stop and names[0] in _ITERATORS_END:
            raise getattr(builtins, names[0])
        if names[0] == "MemoryError":
            self._end("memory", f"{self._call} ran out of memory")
        if names[0] == "SystemExit":
            self._end("exited", f"{self._call} called sys.exit")
        # StopIteration would end a loop of the test as if its iterator were exhausted
        if any(name in _NO_ERRORS for name in names):
            self._end("exception", f"{self._call} {self._answer}")
        for name in names:
            try:
                kind = _with_text(self.names.get(name) or getattr(builtins, name), reply)
                error = type.__call__(kind, *arguments)
            except (TypeError, ValueError):  # UnicodeDecodeError and its like need more arguments than were sent
                continue
            attributes = reply.get("has")
            for key, value in attributes.items() if type(attributes) is dict else ():
                if not key.startswith("_") and type(value) in _SMALL:
                    with contextlib.suppress(AttributeError, TypeError, ValueError):
                        setattr(error, key, value)
            raise error
        self._end("exception", f"{self._call} {self._answer}")

    def _lose(self, verdict: str, detail: str) -> NoReturn:
        self.lost = (verdict, detail)
        self._end(verdict, detail)

    def _end(self, verdict: str, detail: str) -> NoReturn:
        self.note(verdict, detail)
        raise Ended(verdict, detail)

    def _handle_of(self, value: Any) -> dict:
        if isinstance(value, values.Opaque):
            return self.opaque() if value._number is None else {"handle": value._number}
        is_method = isinstance(value, types.FunctionType) and value.__module__ == values.__name__  # of its objects
        if getattr(value, "__traceback__", None) or type(value) in _BY_PROGRAM or is_method:
            self.opaque("it is passed on, but is no data")
        if type(value) is values.RemoteName:
            return {"name": value.__name__}
        if type(value) is not values.RemoteObject:
            raise wire.NotPlain(f"an object of type {type(value).__name__}")
        if self._gives:
            object.__setattr__(value, "__made__", None)
        return {"handle": value.__number__}

    def _revive(self, tag: str, content: Any) -> Any:
        if tag == "iterator":
            return values.RemoteIterator(self, *content)
        return self._object(content)

    def identity(self, value: Any) -> Any:
        """Returns one and the same object for all references to an object of the program; any other value itself."""
        return self._identities.setdefault(value.__number__, object()) if type(value) is values.RemoteObject else value

    def is_made_of(self, thing: values.RemoteObject, other: values.RemoteObject) -> bool:
        """True if `thing` holds what `other` was made of, said before the program was asked to make that."""
        held_at, held = self._held.get(thing.__number__, (0, None))
        made, args, named = other.__made__ or (0, [], [])
        if held_at >= made or not args:
            return False
        try:
            names, defaults, parts = held[0], _data(held[1]), _data(held[2])
            args = self._decode(args)
            count = len(args) - len(named)
            if not {*names[:count]}.isdisjoint(named):  # what is given twice would hide the first
                return False
            given = dict(zip(names[len(names) - len(defaults) :], defaults, strict=False))
            given |= dict(zip(names, args[:count], strict=False)) | dict(zip(named, args[count:], strict=True))
            # a name twice would hide what was given for the first: popping it fails
            return _listed([*map(given.pop, names), *args[len(names) : count]]) == _listed(parts) and not given
        except (TypeError, LookupError, ValueError, wire.Broken):
            return False

    def _object(
        self, number: Any, kind: int = values.GIVEN, made: tuple | None = None, *content: Any, reply: Any = None
    ) -> values.RemoteObject | values.Opaque:
        """Returns a reference to an object of the program. Of which kind, the data set decides, not the program."""
        if type(number) is not int:
            raise wire.Broken("an object without a number")
        if not self._stateful:
            self.gave_object = True
            of_kind = values.OpaqueFunction if reply and reply.get("called") is True else values.Opaque
            return of_kind(self, (reply or {}).get("truth"), number)
        for value in content:
            self._contents.setdefault(number, value)
        return values.RemoteObject(self, number, kind, made, self._contents.get(number, values.NOTHING))


def _with_text(kind: type, reply: dict) -> type:
    """Returns an exception class with the program's text and name where it has its own, else `kind`."""
    text, name = reply.get("text"), next(iter(reply["exc"]), None)
    if type(name) is not str or (type(text) is not str and name == kind.__name__):
        return kind
    return type(name[:100], (kind,), {"__str__": lambda _: text} if type(text) is str else {})


def _no_object(tag: str, _: Any) -> NoReturn:
    raise wire.Broken(f"{tag}, where only plain data is compared: an object's equality is the program's word")


_data = wire.WireDecoder(_no_object)


def _listed(value: Any) -> Any:
    """Returns a value with lists in place of its tuples: a constructor may have copied what it was given."""
    if type(value) is dict:
        return {key: _listed(item) for key, item in value.items()}
    return list(map(_listed, value)) if type(value) in (list, tuple) else value


def _begun(iterator: Any) -> tuple[Any, int | None] | None:
    """Returns an iterator argument's items, and its number if it is the program's own; None for a `RemoteObject`."""
    if type(iterator) is values.RemoteObject:
        return None
    return iterator.taken() if type(iterator) is values.RemoteIterator else (iterator, None)


def _named_as(names: list[str], arguments: list) -> str:
    return f"{names[0]}({', '.join(map(values.short, arguments))})"


def _take_over(old: Any, new: Any) -> None:
    """Updates `old`, an argument of a test, to the program's version. Raises Broken if its type or shape changed."""
    kind = next((kind for kind in (list, dict, set, bytearray, deque) if isinstance(old, kind)), None)
    if kind is None and hasattr(old, "__array__") and type(new) is type(old) and new.shape == old.shape:
        old[...] = new
    elif kind is None or type(new) is not kind:
        raise wire.Broken("an argument has changed its type")
    elif kind in (list, bytearray):
        old[:] = new
    else:
        old.clear()
        old.extend(new) if kind is deque else old.update(new)

"""The trusted process: it runs a data set's tests against a program that lives elsewhere, and owns the verdict.

A test is a piece of Python with asserts in it. Of the program it sees the declared entry points, as stubs that send
their arguments over; comparing, counting and catching happen here, where no byte of the program has run.
"""

import ast
import builtins
import os
import select
from collections.abc import Iterator
from typing import Any, NoReturn

from lib.jail import wire

_LONGEST_DETAIL = 300  # characters
_REACHED = "__an_assert_is_reached__"


class Verdict(BaseException):
    """Ends a test. Not an Exception: `except Exception` in a test must not swallow it."""

    def __init__(self, name: str, detail: str):
        super().__init__(name, detail)
        self.name, self.detail = name, detail


def examine(tests: int, requests: int, replies: int, verdict: int) -> None:
    """Reads the job from `tests`, runs it, writes one frame to `verdict`. File descriptors, all four."""
    job = wire.read_frame(tests)
    os.close(tests)
    program = _Program(requests, replies)
    load = program.load()
    if load is None:
        verdicts = list(_run(job, program))
    else:
        verdicts = [load] * len(job["tests"])
    wire.write_frame(verdict, {"verdicts": [(name, _shown(detail)) for name, detail in verdicts]})


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST_DETAIL else text[: _LONGEST_DETAIL - 3] + "..."


def _run(job: dict, program: "_Program") -> Iterator[tuple[str, str]]:
    common: dict[str, Any] = {"__name__": "tests"}
    try:
        exec(compile(job["setup_code"], "<setup_code>", "exec", dont_inherit=True), common)
    except Exception as error:
        yield from [("unsupported_test", f"setup_code raises {_named(error)}")] * len(job["tests"])
        return
    common |= {name: _stub(program, name) for name in job["entry_points"] if not hasattr(builtins, name)}
    for test in job["tests"]:
        if program.lost:  # nobody is there to be asked
            yield program.lost
        else:
            program.begin_test()
            yield _examine_one(test, dict(common), program)


def _examine_one(test: str, namespace: dict[str, Any], program: "_Program") -> tuple[str, str]:
    try:
        tree = ast.parse(test, "<test>")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return "unsupported_test", f"the test does not parse: {_named(error)}"
    if not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        return "unsupported_test", "the test asserts nothing"
    reached = []
    namespace[_REACHED] = lambda: reached.append(True)
    try:
        exec(compile(_Counting().visit(tree), "<test>", "exec", dont_inherit=True), namespace)
    except Verdict as verdict:
        return verdict.name, verdict.detail
    except BaseException as error:
        return program.first_bad or _failed(error, test, program)
    if program.first_bad:  # a bare `except:` in the test has swallowed it
        return program.first_bad
    if not reached:
        return "wrong", f"no assert was reached{program.last()}"
    return "pass", ""


class _Counting(ast.NodeTransformer):
    """Notes before each assert that it is reached: a loop over an empty answer asserts nothing."""

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        note = ast.Expr(ast.Call(ast.Name(_REACHED, ast.Load()), [], []))
        return [ast.fix_missing_locations(ast.copy_location(note, node)), node]


def _failed(error: BaseException, test: str, program: "_Program") -> tuple[str, str]:
    number, step = 1, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == "<test>":
            number = step.tb_lineno
        step = step.tb_next
    line = test.splitlines()[number - 1].strip()
    if isinstance(error, AssertionError):
        return "wrong", f"{line}{program.last()}"
    if isinstance(error, MemoryError):
        return "memory", f"{line}: out of memory"
    if isinstance(error, SystemExit):
        return "exited", f"{line}: {_named(error)}"
    return "exception", f"{_named(error)} in: {line}{program.last()}"


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class _Program:
    """The other end: asks, and believes only an answer that is in form. Once it is lost, it stays lost."""

    def __init__(self, requests: int, replies: int):
        self._requests = requests
        self._replies = replies
        self._encode = wire.Encoder(self._handle_of)
        self._decode = wire.Decoder(self._revive)
        self._call = ""
        self._answer = ""
        self.lost: tuple[str, str] | None = None
        self.first_bad: tuple[str, str] | None = None  # of the current test

    def begin_test(self) -> None:
        self._call = self._answer = ""
        self.first_bad = None

    def last(self) -> str:
        """What was asked and answered last, for people."""
        return f"; {self._call} answered {self._answer}" if self._answer else ""

    def load(self) -> tuple[str, str] | None:
        """Waits until the program's top level has run. Returns the verdict on all tests if that failed."""
        try:
            reply = self._receive("load")
            if "exc" not in reply:
                return None
            name, text = self._exception(reply)
        except Verdict:
            return self.lost
        kind = {"SystemExit": "exited", "MemoryError": "memory"}.get(name, "load_error")
        return kind, f"the program raises {name} while it is loaded{': ' + text if text else ''}"

    def ask(self, what: dict, args: tuple, named: dict, shown: str) -> Any:
        """The answer to one call; raises what the program raised, or a Verdict."""
        if self.lost:
            self._bad(*self.lost)
        self._answer = ""
        self._call = shown
        try:
            encoded, keywords = self._encode(list(args)), {key: self._encode(value) for key, value in named.items()}
        except wire.NotPlain as error:
            self._bad("unsupported_test", f"{shown} passes {error}, which can not leave the test")
        reply = self._exchange({**what, "a": encoded, "k": keywords})
        self._apply(reply.get("mut"), args)
        if "exc" in reply:
            self._raise(reply)
        if "method" in reply:
            return None
        if "opaque" in reply:
            return _Remote(self, None, str(reply["opaque"])[:100])
        try:
            value = self._decode(reply["v"])
        except (KeyError, wire.Broken) as error:
            self._lose("protocol", f"{shown} was answered by what is no value: {error}")
        self._answer = _short(value)
        return value

    def method_or_value(self, handle: int, name: str, shown: str) -> tuple[bool, Any]:
        """Whether an attribute is a method, and its value if it is not."""
        reply = self._exchange({"h": handle, "op": "get", "m": name, "a": [], "k": {}})
        if "exc" in reply:
            self._raise(reply)
        if "method" in reply:
            return True, None
        try:
            return False, self._decode(reply.get("v"))
        except wire.Broken as error:
            self._lose("protocol", f"{shown} was answered by what is no value: {error}")

    def opaque(self, what: str) -> NoReturn:
        self._bad("opaque", f"{self._call} answered {what}, which is not plain data")

    def _exchange(self, request: dict) -> dict:
        self._refuse_unasked()
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
            self._lose("protocol", "the program sent bytes that nobody asked for")

    def _apply(self, changes: Any, args: tuple) -> None:
        """Carries over what a call did to its arguments, as if it had been made here."""
        if changes is None:
            return
        try:
            for index, content in changes.items():
                old, new = args[int(index)], self._decode(content)
                if type(old) is not type(new) or type(old) not in (list, dict, set, bytearray):
                    raise wire.Broken("an argument changed its type")
                if isinstance(old, (list, bytearray)):
                    old[:] = new
                else:
                    old.clear()
                    old.update(new)
        except (AttributeError, ValueError, LookupError, TypeError, wire.Broken) as error:
            self._lose("protocol", f"the program sent arguments that were not given: {error}")

    def _exception(self, reply: dict) -> tuple[str, str]:
        """The name of the first class that Python itself has, and the message."""
        names, text = reply["exc"], reply.get("text")
        if type(names) is not list or type(text) is not str:
            self._lose("protocol", "the program sent an exception that is none")
        known = (name for name in names if type(name) is str and isinstance(getattr(builtins, name, None), type))
        kind = next((name for name in known if issubclass(getattr(builtins, name), BaseException)), "Exception")
        return kind, text[:2000]

    def _raise(self, reply: dict) -> NoReturn:
        name, text = self._exception(reply)
        self._answer = f"with {name}{': ' + text if text else ''}"
        if name == "MemoryError":
            self._bad("memory", f"{self._call} ran out of memory")
        if name == "SystemExit":
            self._bad("exited", f"{self._call} called sys.exit")
        kind = getattr(builtins, name)
        if not issubclass(kind, Exception):
            self._bad("exception", f"{self._call} raised {name}")
        try:
            error = kind(text) if text else kind()
        except TypeError:  # UnicodeDecodeError and its kind want more than a message
            error = ValueError(text)
        raise error

    def _lose(self, verdict: str, detail: str) -> NoReturn:
        self.lost = (verdict, detail)
        self._bad(verdict, detail)

    def _bad(self, verdict: str, detail: str) -> NoReturn:
        self.first_bad = self.first_bad or (verdict, detail)
        raise Verdict(verdict, detail)

    def _handle_of(self, value: Any) -> dict:
        if isinstance(value, _Remote):
            return {"handle": value.handle()}
        raise wire.NotPlain(f"an object of type {type(value).__name__}")

    def _revive(self, tag: str, content: Any) -> Any:
        if tag == "handle":
            return _Remote(self, content, "an object")
        return _Items(self, content, tag)


def _stub(program: _Program, name: str) -> Any:
    def call(*args: Any, **named: Any) -> Any:
        return program.ask({"f": name}, args, named, _shown_call(name, args, named))

    call.__name__ = name
    return call


def _shown_call(name: str, args: tuple, named: dict) -> str:
    parts = [_short(value) for value in args] + [f"{key}={_short(value)}" for key, value in named.items()]
    return f"{name}({', '.join(parts)})"


def _short(value: Any) -> str:
    """A value for people. Its text is not made if that could take long."""
    if isinstance(value, (str, bytes, bytearray)) and len(value) > 60:
        return repr(value[:57]) + "..."
    if isinstance(value, int) and value.bit_length() > 4096:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, (list, tuple, dict, set, frozenset)) and len(value) > 20:
        return f"a {type(value).__name__} of {len(value)}"
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


class _Uncompared:
    """What is not plain data can be used, but not compared: only the program could say what is equal to it."""

    _program: _Program
    _what: str

    def _refuse(self, *_: Any) -> NoReturn:
        self._program.opaque(self._what)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __hash__ = _refuse


class _Items(_Uncompared):
    """An iterator or a dictionary view that the program returned: its items are plain data and already here."""

    def __init__(self, program: _Program, items: list, tag: str):
        self._program, self._what = program, f"an {tag}"
        self._items = iter(items) if tag == "iterator" else items

    def __iter__(self) -> Iterator:
        return iter(self._items)

    def __next__(self) -> Any:
        return next(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: Any) -> bool:
        return item in self._items

    def __repr__(self) -> str:
        return self._what


class _Remote(_Uncompared):
    """An object that the program keeps. With a handle, methods and items are asked for; without, it is of no use."""

    def __init__(self, program: _Program, handle: int | None, what: str):
        self._program, self._handle, self._what = program, handle, what

    def handle(self) -> int:
        if self._handle is None:
            self._refuse()
        return self._handle

    def _ask(self, operation: str, name: str, args: tuple, named: dict | None = None) -> Any:
        shown = _shown_call(f"{self._what}.{name or operation}", args, named or {})
        return self._program.ask({"h": self.handle(), "op": operation, "m": name}, args, named or {}, shown)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        is_method, value = self._program.method_or_value(self.handle(), name, f"{self._what}.{name}")
        if not is_method:
            return value
        return lambda *args, **named: self._ask("call", name, args, named)

    def __getitem__(self, key: Any) -> Any:
        return self._ask("item", "", (key,))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._ask("set_item", "", (key, value))

    def __contains__(self, item: Any) -> bool:
        return self._ask("contains", "", (item,)) is True

    def __len__(self) -> int:
        return self._ask("length", "", ())

    def __iter__(self) -> Iterator:
        return iter(self._ask("list", "", ()))

    def __str__(self) -> str:
        return self._ask("text", "", ())

    def __repr__(self) -> str:
        return self._what

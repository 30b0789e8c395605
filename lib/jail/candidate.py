"""The untrusted process: it executes the program, then answers calls with plain data until its pipe is closed.

Nothing here is a protection. A program may replace all of it, and wins nothing by that: the examiner believes no more
of what arrives than that somebody wrote it.
"""

import atexit
import builtins
import os
import sys
import threading
import types
from typing import Any

from lib.jail import wire

_OPERATIONS = {
    "get": lambda thing, name: getattr(thing, name),
    "call": lambda thing, name, *args, **named: getattr(thing, name)(*args, **named),
    "item": lambda thing, _, key: thing[key],
    "set_item": lambda thing, _, key, value: thing.__setitem__(key, value),
    "contains": lambda thing, _, item: item in thing,
    "length": lambda thing, _: len(thing),
    "list": lambda thing, _: list(thing),
    "text": lambda thing, _: str(thing),
}
_CHANGEABLE = (list, dict, set, bytearray)
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


def run_script(program: int) -> int:
    """Executes the source as a script, on the standard streams as they are. Returns its exit status."""
    source = wire.read_frame(program)["source"]
    os.close(program)
    builtins.exit = builtins.quit = sys.exit  # the site module is not loaded here
    try:
        _execute(source, "__main__")
        threading._shutdown()  # what an interpreter does at its end: wait for threads, then
        atexit._run_exitfuncs()
    except SystemExit as request:
        if request.code is None or isinstance(request.code, int):
            return (request.code or 0) & 255
        print(request.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        sys.stdout.flush()
    return 0


def _execute(source: str, name: str) -> dict[str, Any]:
    """The namespace of the program, which starts empty and is registered as a module: dataclasses look it up there."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    # a frame named <string> has no source file, so a traceback does not search for one
    exec(compile(source, "<string>", "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def _raised(error: BaseException) -> dict:
    names = [kind.__name__ for kind in type(error).__mro__][:8]
    # a message may be an object with a __str__ of its own, endless if it likes
    words = [str(part) for part in error.args[:3] if type(part) in (str, int, float, bool)]
    if isinstance(error, RuntimeError) and words == ["can't start new thread"]:
        names = ["MemoryError", "Exception"]
    return {"exc": names, "text": " ".join(word[:_LONGEST_TEXT] for word in words)[:_LONGEST_TEXT]}


class _Calls:
    """The program's functions, and where the data set allows it the objects that they returned, by number."""

    def __init__(self, namespace: dict[str, Any], stateful: bool):
        self._namespace = namespace
        self._stateful = stateful
        self._kept: list[Any] = []
        self._encode = wire.Encoder(self._keep)
        self._decode = wire.Decoder(self._revive)

    def answer(self, request: dict) -> dict:
        reply = {"id": request["id"]}
        try:
            arguments = self._decode(request["a"])
            named = {name: self._decode(value) for name, value in request["k"].items()}
            if "f" in request:
                result = self._function(request["f"])(*arguments, **named)
            else:
                result = _OPERATIONS[request["op"]](self._kept[request["h"]], request["m"], *arguments, **named)
                if request["op"] == "get" and callable(result):
                    return {**reply, "method": True}
            changed = self._changed(arguments, request["a"])
            return {**reply, "v": self._encode(result), **({"mut": changed} if changed else {})}
        except wire.NotPlain as error:
            return {**reply, "opaque": str(error)}
        except BaseException as error:
            return {**reply, **_raised(error)}

    def _function(self, name: str) -> Any:
        if name not in self._namespace:
            raise NameError(f"name '{name}' is not defined")
        return self._namespace[name]

    def _changed(self, arguments: list[Any], before: list[Any]) -> dict[str, Any]:
        after = [self._encode(value) if type(value) in _CHANGEABLE else None for value in arguments]
        return {str(i): new for i, new in enumerate(after) if type(arguments[i]) in _CHANGEABLE and new != before[i]}

    def _keep(self, value: Any) -> dict:
        if not self._stateful:
            raise wire.NotPlain(f"an object of type {type(value).__name__}")
        self._kept.append(value)
        return {"handle": len(self._kept) - 1}

    def _revive(self, tag: str, content: Any) -> Any:
        return self._kept[content] if tag == "handle" else content

"""Keeps a script running when stdout or stderr cannot be written: a closed pipe, a full disk, a lost terminal."""

import contextlib
import io
import os
import sys

_failed: dict[str, str] = {}  # stream -> reason of its first failure
_unsaid: list[str] = []


def protect_output() -> None:
    """Makes stdout and stderr drop what cannot be written or encoded; entry scripts call it before anything is printed.

    The first failure of each is a line on stderr, and `lost_output` returns it. Streams that a caller replaced stay.
    """
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:  # it is closed: without this, the next file that is opened would get its number
            with contextlib.suppress(OSError):
                while os.open(os.devnull, os.O_RDWR) < number:
                    pass
            if name != "stdin":
                _note(name, "it is closed")
        elif name != "stdin" and stream is getattr(sys, f"__{name}__"):
            stream.flush()
            buffer = io.BufferedWriter(_Lossy(number, name))
            lines = stream.line_buffering or stream.write_through
            setattr(sys, name, io.TextIOWrapper(buffer, stream.encoding, "backslashreplace", line_buffering=lines))


def lost_output() -> str:
    """Returns why output was lost since the last call; "" if none was."""
    text = "; ".join(_unsaid)
    _unsaid.clear()
    return text


class _Lossy(io.FileIO):
    def __init__(self, descriptor: int, name: str):
        super().__init__(descriptor, "w", closefd=False)
        self._name = name

    def write(self, data) -> int:  # type: ignore[no-untyped-def]
        try:
            return super().write(data)
        except OSError as error:
            _note(self._name, error.strerror or str(error))
            return memoryview(data).nbytes


def _note(name: str, reason: str) -> None:
    if name not in _failed:
        _failed[name] = reason
        _unsaid.append(f"{name} cannot be written ({reason})")
        with contextlib.suppress(OSError):
            os.write(2, f"{_unsaid[-1]}: what is printed there is lost, and the script goes on\n".encode())

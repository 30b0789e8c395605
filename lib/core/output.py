"""Keeps a script running when stdout or stderr cannot be written: a closed pipe, a full disk, a lost terminal."""

import contextlib
import io
import os
import re
import sys
from pathlib import Path
from typing import BinaryIO

_failed: dict[str, str] = {}  # stream -> reason of its first failure
_unsaid: list[str] = []
_copy: BinaryIO = io.BytesIO()  # of what is printed; a file while there is a run
MOST_EARLY = 1 << 20  # bytes kept before there is a file
STYLES = re.compile(rb"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))")  # a terminal's colours, titles


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


def keep_output(path: Path | None) -> None:
    """Copies what protected streams print, and what they printed before, to a file; None ends that. Raises OSError."""
    global _copy
    before, _copy = _copy, open(path, "ab", buffering=0) if path else io.BytesIO()  # noqa: SIM115
    with contextlib.suppress(OSError):
        _copy.write(before.getvalue() if isinstance(before, io.BytesIO) else b"")
    before.close()


class _Lossy(io.FileIO):
    def __init__(self, descriptor: int, name: str):
        super().__init__(descriptor, "w", closefd=False)
        self._name = name

    def write(self, data) -> int:  # type: ignore[no-untyped-def]
        try:
            written = super().write(data)
        except OSError as error:
            _note(self._name, error.strerror or str(error))
            written = memoryview(data).nbytes
        with contextlib.suppress(OSError):
            if not isinstance(_copy, io.BytesIO) or _copy.tell() < MOST_EARLY:
                _copy.write(STYLES.sub(b"", bytes(data[:written])))
        return written


def _note(name: str, reason: str) -> None:
    if name not in _failed:
        _failed[name] = reason
        _unsaid.append(f"{name} cannot be written ({reason})")
        with contextlib.suppress(OSError):
            os.write(2, f"{_unsaid[-1]}: what is printed there is lost, and the script goes on\n".encode())

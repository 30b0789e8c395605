"""Handles Ctrl-C, SIGTERM and SIGHUP: the first asks for an end, the second is one."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from lib.core.errors import FINISHED, INTERRUPTED, TERMINATED, Left

EXIT_CODES: dict[int, int] = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED, signal.SIGHUP: TERMINATED}
LAUNCHER_SECONDS = 5.0  # within these a launcher forwards a Ctrl-C that the terminal already sent to every process
_open: list["Interrupts"] = []
_leavable: list["Interrupts"] = []  # those whose current work may be abandoned


class Interrupts:
    """While it is open, the first signal only sets `received`, so that the loop can save and exit.

    The second one ends the process at once and touches no checkpoint, unless it comes within `patience` seconds: then
    it counts as an echo of the first. A terminal that closes may send several SIGHUPs: they count as one. Outside the
    main thread no signal is handled, and neither is a SIGHUP that is ignored, as under `nohup`.
    """

    def __init__(self, patience: float = 0.0) -> None:
        self.received: int | None = None
        self.since = 0.0  # monotonic seconds; when it was received
        self.where: Callable[[], str] | None = None  # the current activity, for messages
        self._patience = patience
        self._old: dict[int, Any] = {}
        self._terminals: list[int] = []  # which of stdout and stderr may be closed by a SIGHUP

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            is_kept = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            numbers = [number for number in EXIT_CODES if not (is_kept and number == signal.SIGHUP)]
            self._terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]
            self._old = {number: signal.signal(number, self._handle) for number in numbers}
        _open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _open.remove(self)
        for number, handler in self._old.items():
            signal.signal(number, handler or signal.SIG_DFL)  # None: it was not set from Python

    @property
    def exit_code(self) -> int:
        """Returns the exit code for the process: 0, 130 after SIGINT, 143 after the others."""
        return EXIT_CODES.get(self.received, FINISHED)

    @property
    def is_leavable(self) -> bool:
        """Tells whether the current work may be abandoned, since the next start does it again."""
        return self in _leavable

    def note(self, number: int) -> None:
        """Records a signal as received, here or by another process."""
        self.received, self.since = number, time.monotonic()

    @contextlib.contextmanager
    def leavable(self) -> Iterator[None]:
        """Makes `give_way` raise Left inside, once a signal has been received."""
        _leavable.append(self)
        try:
            yield
        finally:
            _leavable.remove(self)

    def _handle(self, number: int, _: object) -> None:
        if number == signal.SIGHUP:
            self._drop_terminals()
        if self.received is None:
            self.note(number)
            # print() is not safe here: the signal may have come in the middle of another print
            with contextlib.suppress(OSError):
                os.write(2, b"\nfinishing what is under way, then saving; press again to stop at once\n")
        elif number != signal.SIGHUP and time.monotonic() - self.since >= self._patience:
            os._exit(EXIT_CODES[number])

    def _drop_terminals(self) -> None:
        """Sends output for closed terminals to /dev/null: printing would raise, and no checkpoint would be saved."""
        for descriptor in self._terminals:
            if not os.isatty(descriptor):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, descriptor)
                os.close(null)


def current() -> Interrupts | None:
    """Returns the Interrupts opened last, or None."""
    return _open[-1] if _open else None


def give_way() -> None:
    """Raises Left if a signal has come and the current work may be abandoned; for long work to call."""
    if _leavable and _leavable[-1].received:
        raise Left

"""What Ctrl-C, SIGTERM and SIGHUP mean: the first asks for an end, the second is one."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from lib.errors import FINISHED, INTERRUPTED, TERMINATED, Left

EXIT_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED, signal.SIGHUP: TERMINATED}
LAUNCHER_SECONDS = 5.0  # within them a launcher passes on the Ctrl-C that the terminal has sent to every process
_open: list["Interrupts"] = []
_leavable: list["Interrupts"] = []  # whose work under way may be left


class Interrupts:
    """While it is open, the first signal only sets `received`, so that the loop can save and leave.

    The second one ends the process at once and touches no checkpoint, unless it comes within `patience` seconds: then
    it is taken for an echo of the first. A terminal that closes may send several SIGHUPs: they are one. Outside the
    main thread signals are left alone, and so is a SIGHUP that is ignored, as by `nohup`.
    """

    def __init__(self, patience: float = 0.0) -> None:
        self.received: int | None = None
        self.since = 0.0  # monotonic seconds; when it was received
        self.where: Callable[[], str] | None = None  # what is being done, for messages
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
        """What the process should exit with: 0, 130 after SIGINT, 143 after the others."""
        return EXIT_CODES.get(self.received, FINISHED)

    @property
    def is_leavable(self) -> bool:
        """Whether what is under way may be left, since the next start does it again."""
        return self in _leavable

    def note(self, number: int) -> None:
        """Takes a signal as received, here or by another process."""
        self.received, self.since = number, time.monotonic()

    @contextlib.contextmanager
    def leavable(self) -> Iterator[None]:
        """Within, `give_way` raises Left once a signal has been received."""
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
        """What is printed on a terminal that has been closed would be an error, and no checkpoint would be saved."""
        for descriptor in self._terminals:
            if not os.isatty(descriptor):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, descriptor)
                os.close(null)


def current() -> Interrupts | None:
    """The one that is open."""
    return _open[-1] if _open else None


def give_way() -> None:
    """For work that takes long: raises Left where it may be left and a signal has asked for an end."""
    if _leavable and _leavable[-1].received:
        raise Left

"""What Ctrl-C and SIGTERM mean: the first asks for an end, the second is one."""

import os
import signal
import threading
import time
from typing import Any

from lib.errors import FINISHED, INTERRUPTED, TERMINATED

EXIT_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


class Interrupts:
    """While it is open, the first SIGINT or SIGTERM only sets `received`, so that the loop can save and leave.

    The second one ends the process at once and touches no checkpoint, unless it comes within `patience` seconds: then
    it is taken for an echo of the first. Outside the main thread signals are left alone.
    """

    def __init__(self, patience: float = 0.0) -> None:
        self.received: int | None = None
        self._patience = patience
        self._since = 0.0  # monotonic seconds
        self._old: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._old = {number: signal.signal(number, self._handle) for number in EXIT_CODES}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler or signal.SIG_DFL)  # None: it was not set from Python

    @property
    def exit_code(self) -> int:
        """What the process should exit with: 0, 130 after SIGINT, 143 after SIGTERM."""
        return EXIT_CODES.get(self.received, FINISHED)

    def note(self, number: int) -> None:
        """Takes a signal as received, here or by another process."""
        self.received, self._since = number, time.monotonic()

    def _handle(self, number: int, _: object) -> None:
        if self.received is None:
            self.note(number)
            # print() is not safe here: the signal may have come in the middle of another print
            os.write(2, b"\nfinishing what is under way, then saving; press again to stop at once\n")
        elif time.monotonic() - self._since >= self._patience:
            os._exit(EXIT_CODES[number])

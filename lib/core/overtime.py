"""Somebody's code that does not answer: it is told, bounded, and left when a signal asks for an end.

It stays in the main thread, since it may want to set alarms of its own. A second thread wakes it by a signal, whose
handler raises: that ends a sleep, a lock and a socket too. Where it catches even that, the process exits without it.
What computes in C and never comes back to Python holds the second thread up as well: then faulthandler, which needs no
Python, writes where that is, and ends the process where there is a limit (exit code 1).
"""

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from types import FrameType

from lib.core.errors import Left, Overdue, RewardError
from lib.core.interrupts import current
from lib.core.registry import place_in

BEAT = 60.0  # seconds between two messages about code that does not answer
GRACE = 5.0  # seconds that it has after a signal, and again to end once it is woken
AGAIN = 1.0  # seconds between two attempts to wake it
TICK = 0.2  # seconds between two checks
WAKE = signal.SIGURG  # ignored by default, and rarely used
_calls: list["_Call"] = []


class Overtime:
    """Watches calls of one piece of code; `most` bounds each of them, in seconds.

    After a signal, and GRACE seconds more, a call is interrupted if it takes longer than twice the longest before it,
    or if its work may be abandoned.
    """

    def __init__(self, what: str, most: float | None):
        self._what, self._most = what, most
        self._longest = 0.0  # seconds

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Watches the code called inside. Raises Overdue if it takes too long, Left if a signal asks it to end.

        Outside the main thread nothing is watched, since only the main thread can be woken.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        call = _Call(self._what, self._most, 2 * self._longest)
        signal.signal(WAKE, _wake)
        call.arm()
        _calls.append(call)
        threading.Thread(target=call.watch, name="overtime", daemon=True).start()
        try:
            try:
                yield
            finally:
                call.end()
        finally:  # again: a signal may have interrupted the first
            call.end()
            _calls.remove(call)
            self._longest = max(self._longest, time.monotonic() - call.began)


def told_slow(what: str, seconds: float, where: str = "") -> str:
    """Returns the message about code that has not answered for `seconds`."""
    return f"{what} has not answered for {seconds:.0f} s{where}; Ctrl-C abandons it, reward.timeout_s would bound it"


def told_late(what: str, most: float) -> str:
    """Returns the message about code that has not answered within its limit, in seconds."""
    return f"{what} did not answer within reward.timeout_s = {most:g} s"


class _Call:
    """One call, as the watching thread sees it."""

    def __init__(self, what: str, most: float | None, usual: float):
        self._what, self._most, self._usual = what, most, usual
        self.ended = threading.Event()
        self._lock = threading.Lock()
        self.began = time.monotonic()
        self.error: Callable[[str], BaseException] | None = None  # from a place in the code, the error to raise

    def arm(self) -> None:
        """Schedules faulthandler to write a traceback, and exit if there is a limit, unless the call has ended."""
        with self._lock:
            if not self.ended.is_set():
                seconds = (self._most or BEAT) + 2 * GRACE
                faulthandler.dump_traceback_later(seconds, repeat=True, file=2, exit=bool(self._most))

    def end(self) -> None:
        """Marks the call as ended and cancels its faulthandler."""
        self.ended.set()
        with self._lock:
            faulthandler.cancel_dump_traceback_later()

    def watch(self) -> None:
        """Reports the call every BEAT seconds until it ends, wakes it when an error is due, or ends the process."""
        beats, code, since, woken = 0, 0, 0.0, 0.0
        while not self.ended.wait(TICK):
            now = time.monotonic()
            if now - self.began >= BEAT * (beats + 1):
                beats += 1
                self._tell(told_slow(self._what, now - self.began, f" ({self._place()})"))
                if not self._most:
                    self.arm()
            if self.error is None:
                self.error, code = self._verdict(now)
                since = now
            if self.error is None:
                continue
            if now - since > GRACE:
                self._tell(f"{self._what} cannot be interrupted ({self._place()}): the process exits without it")
                os._exit(code)
            if now - woken > AGAIN:
                woken = now
                signal.pthread_kill(threading.main_thread().ident, WAKE)

    def _verdict(self, now: float) -> tuple[Callable[[str], BaseException] | None, int]:
        """Returns what builds the error to raise from a place, or None, and the exit code that goes with it."""
        taken, interrupts = now - self.began, current()
        if self._most and taken > self._most:
            return lambda place: Overdue(f"{told_late(self._what, self._most)} ({place})"), RewardError.exit_code
        if interrupts and interrupts.received:
            usual = 0 if interrupts.is_leavable else self._usual
            if min(now - interrupts.since, taken - usual) > GRACE:
                return Left, interrupts.exit_code
        return None, 0

    def _tell(self, text: str) -> None:
        interrupts = current()
        where = f"{interrupts.where()}: " if interrupts and interrupts.where else ""
        with contextlib.suppress(OSError):
            os.write(2, f"{where}{text}\n".encode())

    def _place(self) -> str:
        frame = sys._current_frames().get(threading.main_thread().ident)
        return place_in(traceback.extract_stack(frame))


def _wake(_: int, frame: FrameType | None) -> None:
    for call in _calls:
        if call.error is not None and not call.ended.is_set():
            raise call.error(place_in(traceback.extract_stack(frame)))

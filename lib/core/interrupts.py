"""Ends work from outside: on a signal, and where user code does not return.

The first Ctrl-C, SIGTERM or SIGHUP asks for an end, the second is one.

User code that does not return is reported, bounded, and abandoned after a signal. It stays in the main thread, since
it may want to set alarms of its own. A second thread wakes it by a signal, whose handler raises: that ends a sleep, a
lock and a socket too. Where it catches even that, the process exits without it. Code that computes in C and never comes
back to Python holds the second thread up as well: then faulthandler, which needs no Python, writes where that is, and
ends the process where there is a limit (exit code 1).
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
from typing import Any

from lib.core.errors import FINISHED, INTERRUPTED, TERMINATED, Left, Overdue, RewardError
from lib.core.registry import place_in

EXIT_CODES: dict[int, int] = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED, signal.SIGHUP: TERMINATED}
LAUNCHER_SECONDS = 5.0  # within these a launcher forwards a Ctrl-C that the terminal already sent to every process
BEAT = 60.0  # seconds between two messages about code that does not answer
GRACE = 5.0  # seconds that it has after a signal, and again to end once it is woken
AGAIN = 1.0  # seconds between two attempts to wake it
TICK = 0.2  # seconds between two checks
WAKE = signal.SIGURG  # ignored by default, and rarely used
_open: list["Interrupts"] = []
_leavable: list["Interrupts"] = []  # those whose current work may be abandoned
_calls: list["_Call"] = []


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

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            is_kept = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            numbers = [number for number in EXIT_CODES if not (is_kept and number == signal.SIGHUP)]
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
        if self.received is None:
            self.note(number)
            # print() is not safe here: the signal may have come in the middle of another print
            with contextlib.suppress(OSError):
                os.write(2, b"\nfinishing what has begun, then saving; a second signal stops at once\n")
        elif number != signal.SIGHUP and time.monotonic() - self.since >= self._patience:
            os._exit(EXIT_CODES[number])


def current() -> Interrupts | None:
    """Returns the Interrupts opened last, or None."""
    return _open[-1] if _open else None


def give_way() -> None:
    """Raises Left if a signal has come and the current work may be abandoned; for long work to call."""
    if _leavable and _leavable[-1].received:
        raise Left(_leavable[-1].exit_code)


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
        """Reports the call every BEAT seconds until it ends, wakes it when an error is due, or ends the process.

        Every GRACE seconds it is woken for nothing, so that no signal waits for it.
        """
        beats, code, since, woken = 0, 0, 0.0, self.began
        while not self.ended.wait(TICK):
            now = time.monotonic()
            if now - self.began >= BEAT * (beats + 1):
                beats += 1
                self._tell(told_slow(self._what, now - self.began, f" ({self._place()})"))
                if not self._most:
                    self.arm()
            if self.error is None:
                self.error, code = self._verdict(now)
                if self.error:
                    since, woken = now, 0.0
            if self.error and now - since > GRACE:
                self._tell(f"{self._what} cannot be interrupted ({self._place()}): the process exits without it")
                os._exit(code)
            # without an error too: Python handles a signal that came just before a sleep only when that is interrupted
            if now - woken > (AGAIN if self.error else GRACE):
                woken = now
                signal.pthread_kill(threading.main_thread().ident, WAKE)

    def _verdict(self, now: float) -> tuple[Callable[[str], BaseException] | None, int]:
        """Returns a function from a place to the error to raise, or None, and the exit code that goes with it."""
        taken, interrupts = now - self.began, current()
        if self._most and taken > self._most:
            return lambda place: Overdue(f"{told_late(self._what, self._most)} ({place})"), RewardError.exit_code
        if interrupts and interrupts.received:
            usual = 0 if interrupts in _leavable else self._usual
            if min(now - interrupts.since, taken - usual) > GRACE:
                code = interrupts.exit_code
                return lambda place: Left(code), code
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

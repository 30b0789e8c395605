"""Other programs, several at once, none of which outlives this process, however it ends."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lib.sandbox.jail.kernel import die_with


class Children:
    """Programs in process groups of their own: Ctrl-C reaches them through `signal` alone.

    When this process ends, even by SIGKILL, the kernel kills the programs; what they have started is killed by a
    guard, a process that waits for the end of a pipe. Open it first: the guard inherits all files that are open here.
    """

    def __init__(self) -> None:
        self._running: dict[int, subprocess.Popen] = {}
        self._guard, self._pipe = _start_guard()

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, *_: object) -> None:
        for pid in list(self._running):
            self._end(pid)
        os.close(self._pipe)
        os.waitpid(self._guard, 0)

    def start(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> int:
        """Starts a program whose output is appended to its log; returns its process id."""
        here = os.getpid()

        def prepare() -> None:  # runs in the child before exec, so the program is never without a guard
            os.write(self._pipe, b"+%d\n" % os.getpid())
            die_with(here)

        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as file:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=environment,
                start_new_session=True, preexec_fn=prepare,
            )  # fmt: skip
        self._running[process.pid] = process
        return process.pid

    def ended(self) -> dict[int, int]:
        """Returns exit codes, by process id, of programs that ended since the last call; -9 is a death by signal 9."""
        codes = {pid: process.poll() for pid, process in self._running.items()}
        over = {pid: code for pid, code in codes.items() if code is not None}
        for pid in over:
            self._end(pid)
        return over

    def signal(self, number: int) -> None:
        """Sends a signal to all programs and to what they have started, as a terminal does."""
        for pid in self._running:
            _kill_group(pid, number)

    def _end(self, pid: int) -> None:
        process = self._running.pop(pid)
        _kill_group(pid, signal.SIGKILL)  # even if it has ended: it may have left a server or a worker behind
        process.wait()
        os.write(self._pipe, b"-%d\n" % pid)


def _kill_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _start_guard() -> tuple[int, int]:
    """Forks a guard that reads groups from a pipe and kills them at its end; returns its id and the write end."""
    reading, writing = os.pipe()
    if guard := os.fork():
        os.close(reading)
        return guard, writing
    os.setsid()  # Ctrl-C is not meant for it
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.close(writing)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # else a reader of our output would not see the end of it when we exit
        os.dup2(null, number)
    groups: set[int] = set()
    with open(reading, encoding="ascii") as lines:
        for line in lines:
            (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        _kill_group(group, signal.SIGKILL)
    os._exit(0)

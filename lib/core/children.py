"""Other programs, several at once, none of which outlives this process, however it ends.

Run as a script, this file is the guard that sees to it: a process that waits for the end of a pipe. A fork of this
process would do, too, but it would keep a copy of every page of memory that training writes to.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


class Children:
    """Programs in process groups of their own: Ctrl-C reaches them through `signal` alone; a context.

    When this process ends, even by SIGKILL, a guard kills the programs and what they have started.
    """

    def __init__(self) -> None:
        self._running: dict[int, subprocess.Popen] = {}
        self._guard = subprocess.Popen(
            [sys.executable, "-I", os.path.abspath(__file__)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self._pipe = self._guard.stdin.fileno()

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, *_: object) -> None:
        for pid in list(self._running):
            self.end(pid)
        self._guard.stdin.close()
        self._guard.wait()

    def start(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> int:
        """Starts a program whose output is appended to its log; returns its process id. Raises OSError."""

        def prepare() -> None:  # runs in the child before exec, so the program is never without a guard
            os.write(self._pipe, b"+%d\n" % os.getpid())

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
            self.end(pid)
        return over

    def signal(self, number: int) -> None:
        """Sends a signal to all programs and to what they have started, as a terminal does."""
        for pid in self._running:
            _kill_group(pid, number)

    def end(self, pid: int) -> None:
        """Kills a program, and what it has started or left behind."""
        process = self._running.pop(pid)
        _kill_group(pid, signal.SIGKILL)
        process.wait()
        os.write(self._pipe, b"-%d\n" % pid)


def _kill_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _guard(lines: Iterable[str]) -> None:
    """Reads which groups of processes begin and end, and kills what is left at the end of the pipe."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in lines:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        _kill_group(group, signal.SIGKILL)


if __name__ == "__main__":
    _guard(sys.stdin)

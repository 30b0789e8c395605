"""The process that forks: small, trusted, started once per worker. It keeps its two children's time, and kills them.

It is executed, never forked from the trainer: a fork of a process with gigabytes of heap takes 70 to 140 ms, one of
this process takes one. What the children may need is imported before they exist.
"""

import _thread
import contextlib
import gc
import importlib
import math
import os
import random
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from judge.jail import candidate, examiner, kernel, wire

EXAMINER_MEMORY = 256 << 20  # bytes on top of the program's limit
EXAMINER_SECONDS = 0.4  # time left for the examiner once the program's is over
THREAD_STACK = 1 << 20  # bytes; the usual 8 MB each would count against a program's memory
WALL_FACTOR = 5  # wall seconds that count as one where `CoreClock` hardly moves; more if a quota leaves under a core
LARGEST_CROWD = 128  # threads of one program, where all programs share one limit
LAST_PID = 1000  # before a program's, where its numbers are its own
GLANCE = 0.05  # seconds between two counts of these threads

# Loaded beforehand: a module listed here costs every program a little, an unlisted one costs its importer far more.
COMMON = """
abc ast bisect cmath collections collections.abc contextlib copy dataclasses datetime decimal enum fractions functools
heapq io itertools json math numbers operator random re statistics string textwrap time traceback types typing
"""


def main() -> None:
    """Serves jobs from the socket whose number is the only argument, until its other end is closed."""
    owner = socket.socket(fileno=int(sys.argv[1]))
    settings = wire.read_frame(owner.fileno())
    os.environ.clear()
    kernel.hide_memory()  # before there is a child that could look
    zygote = Zygote(owner, settings)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # until now errors went to the owner
    report = {"bounds_threads": zygote.bounds_threads, "shares_threads": zygote.shares_threads}
    wire.write_frame(owner.fileno(), report)
    with contextlib.suppress(EOFError, ConnectionError):
        zygote.serve()


class Zygote:
    """One job at a time: two children, a clock, and a report on how they ended."""

    def __init__(self, owner: socket.socket, settings: dict):
        self._owner = owner
        if settings["seccomp"]:
            socket.socketpair = _pair  # of event loops
        folders, path = _opened(settings["path"]) if settings["private"] else ([], settings["path"])
        sys.path[:] = path + settings["path_beforehand"]
        for name in settings["modules"]:
            importlib.import_module(name)
        sys.path[:] = path
        self._kept, self._filter = folders, None  # kept: descriptors
        if settings["seccomp"]:
            self._ruleset = kernel.landlock_ruleset(settings["readable"], settings["listed"])
            self._kept.append(self._ruleset)
            self._filter = kernel.seccomp_filter()
        self._user = settings["user"]
        self._drops_user, self.bounds_threads = kernel.tried_as(self._user)
        os.chdir("/")
        _thread.stack_size(THREAD_STACK)
        # the limit counts all of a user's processes: each worker of root has its own user, others at best a namespace
        own_limit = os.geteuid() == 0 or settings["namespace"]
        self.shares_threads = not own_limit and self.bounds_threads
        self._processes = settings["threads"] + (0 if own_limit else settings["others"])
        self._wall_factor = settings["wall_factor"]
        kernel.set_common_limits()
        self._wakes, wakes = os.pipe2(os.O_NONBLOCK)
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only so that the pipe above is written to
        self._last_pid = kernel.own_processes() if settings["namespace"] else None
        self._pid = os.getpid()
        gc.collect()
        gc.freeze()  # otherwise the children's collector would copy every page

    def serve(self) -> None:
        """Serves jobs until the owner's end is closed, then raises EOFError or ConnectionError."""
        while True:
            data, fds, _, _ = socket.recv_fds(self._owner, 1 << 16, 8)
            if not data:
                raise EOFError
            job = wire.unframed(data[4:])
            begun, begins = os.pipe()  # closed by the program once it is set up, before its first byte runs
            if self._last_pid is not None:
                os.pwrite(self._last_pid, b"%d" % LAST_PID, 0)  # all programs and their threads get the same numbers
            made = self._scripted if job["mode"] == "script" else self._examined
            children = made(job, fds, begins)
            for fd in (begins, *fds):
                os.close(fd)
            report = self._watch(children, job["cpu"], begun)
            os.close(begun)
            wire.write_frame(self._owner.fileno(), report)

    def _examined(self, job: dict, fds: list[int], begins: int) -> "dict[str, Child]":
        program, tests, requests_out, requests_in, replies_out, replies_in, verdict = fds
        # opened anew: a descriptor shared with another program would keep the flags that this one sets
        nothing = [os.open(os.devnull, os.O_RDWR) for _ in range(2)]
        answers = program, requests_out, replies_in, begins
        exam = tests, requests_in, replies_out, verdict
        children = {
            "program": self._forked(job, answers, nothing[:1] * 3, candidate.answer_calls, job["stateful"]),
            "examiner": self._forked(job, exam, nothing[1:] * 3, examiner.examine, more_memory=EXAMINER_MEMORY),
        }
        for fd in nothing:
            os.close(fd)
        return children

    def _scripted(self, job: dict, fds: list[int], begins: int) -> "dict[str, Child]":
        return {"program": self._forked(job, (fds[0], begins), fds[1:], candidate.run_script)}

    def _forked(
        self, job: dict, keep: tuple[int, ...], standard: list[int], work: Callable, *more: bool, more_memory: int = 0
    ) -> "Child":
        """Forks a child that enters the jail with some descriptors and standard streams, and does its work with them.

        What can be is worked out before: each page that a child writes to must be copied, if only to count references.
        """
        limits = kernel.own_limits(kernel.mapped_bytes() + job["memory"] + more_memory, job["cpu"], self._processes)
        gaps = list(_gaps({0, 1, 2, *keep, *self._kept}))
        pid = kernel.fork()
        if pid:
            return Child(pid)
        try:
            for fd, number in zip(standard, (0, 1, 2), strict=True):
                os.dup2(fd, number)
            for gap in gaps:
                os.closerange(*gap)
            self._enter(limits, job["seed"] + bool(more_memory))  # the examiner draws other numbers than the program
            work(*keep, *more)
        except BaseException:  # others may learn only that it ended
            os._exit(70)
        os._exit(0)

    def _enter(self, limits: list[kernel.Limit], seed: int) -> None:
        """Enters the jail, as a child."""
        os.chdir("/")
        os.setsid()
        signal.set_wakeup_fd(-1)
        if self._drops_user:
            kernel.become(self._user)
        kernel.hide_memory()  # a change of user may have undone it
        kernel.die_with(self._pid)
        kernel.give_up_capabilities()
        for limit in limits:
            resource.setrlimit(*limit)
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed % (1 << 32))
        if self._filter is not None:
            kernel.enter_landlock(self._ruleset)
            os.close(self._ruleset)
            kernel.enter_seccomp(self._filter)

    def _watch(self, children: "dict[str, Child]", limit: float, begun: int) -> dict:
        """Waits for the children, kills the overdue and reports. Time counts from when the pipe `begun` is closed."""
        clock = CoreClock(list(children.values()), self._wall_factor)
        program, last = children["program"], children.get("examiner", children["program"])
        overdue = crowd = False
        poll = select.poll()
        poll.register(self._wakes, select.POLLIN)
        poll.register(self._owner.fileno(), 0)  # for hang-up only: the next job comes after the report
        poll.register(begun, 0)
        while last.reap() is None:
            program.reap()
            left = limit + (EXAMINER_SECONDS if overdue else 0) - clock.seconds()
            if left <= 0:
                # the program dies first; the examiner then has EXAMINER_SECONDS to say so, and dies too
                (last if overdue else program).kill()
                overdue = True
                left = EXAMINER_SECONDS
            pause = GLANCE if self.shares_threads else 1
            ready = {fd for fd, _ in poll.poll(math.ceil(1000 * min(left, pause)) + 1)}
            if self.shares_threads and not crowd and program.threads() > LARGEST_CROWD:
                program.kill()
                crowd = True
            if self._owner.fileno() in ready:
                raise EOFError  # the owner is gone; our children die with us
            if begun in ready:
                poll.unregister(begun)
                clock.restart()  # entering the jail counts for no one
            self._drain()
        seconds = clock.seconds()
        program.reap()
        struck = any(not child.killed and child.status == signal.SIGKILL for child in children.values())
        program.kill()
        program.reap(wait=True)
        self._drain()
        ended = {"ended": program.status, "cpu": program.cpu_seconds, "memory": program.peak_bytes}
        return {**ended, "seconds": round(seconds, 6), "overdue": overdue, "crowd": crowd, "struck": struck}

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakes, 4096)


def _opened(path: list[str]) -> tuple[list[int], list[str]]:
    """Opens the library's folders for a user to whom the folders above are closed; returns them, and paths to them."""
    folders = [os.open(folder, os.O_PATH) for folder in path]
    opened = [f"/proc/self/fd/{fd}" for fd in folders]
    for module in list(sys.modules.values()):  # packages that are loaded, whose other modules may be imported later
        for place, part in enumerate(getattr(module, "__path__", ())):
            module.__path__[place] = part.replace(path[0], opened[0], 1)
    return folders, opened


class _End:
    """A counter with the methods of a socket: an asyncio event loop wakes itself by it, since pipes are refused."""

    def __init__(self, fd: int):
        self.fileno, self.close, self.setblocking = lambda: fd, lambda: os.close(fd), lambda on: os.set_blocking(fd, on)
        self.recv, self.send = lambda _: os.eventfd_read(fd) and b"\0", lambda _: os.eventfd_write(fd, 1)


def _pair(*_: Any) -> tuple[_End, _End]:
    """Returns two connected ends, in place of `socket.socketpair`."""
    fd = os.eventfd(0)
    return _End(fd), _End(os.dup(fd))


def _gaps(keep: set[int]) -> Iterator[tuple[int, int]]:
    """Yields the first and the last but one number of each range of descriptors that are not in `keep`."""
    start = 0
    for fd in [*sorted(keep), 1 << 16]:
        if start < fd:  # an empty range at 0 would close everything
            yield start, fd
        start = fd + 1


class Child:
    """A child process that only we reap, so that its ID cannot belong to another process when it is killed."""

    def __init__(self, pid: int):
        self.pid = pid
        self.status: int | None = None  # as from waitpid
        self.killed = False  # by us
        self.cpu_seconds = 0.0
        self.peak_bytes = 0

    def reap(self, wait: bool = False) -> int | None:
        """Returns its wait status if it has ended, else None. `wait`: blocks until then."""
        if self.status is None:
            pid, status, usage = os.wait4(self.pid, 0 if wait else os.WNOHANG)
            if pid:
                self.status = status
                self.cpu_seconds = round(usage.ru_utime + usage.ru_stime, 6)
                self.peak_bytes = usage.ru_maxrss * 1024
        return self.status

    def kill(self) -> None:
        """Kills it if it has not ended."""
        if self.status is None:
            self.killed = True
            os.kill(self.pid, signal.SIGKILL)

    def threads(self) -> int:
        """Returns its number of threads, 0 if that is unknown."""
        try:
            return int(kernel.read_proc(f"{self.pid}/stat").rpartition(b")")[2].split()[17])
        except (OSError, IndexError, ValueError):
            return 0


class CoreClock:
    """Measures the time that a program takes on a core of its own: computing and sleeping.

    Wall time, less the time in which a process could have run but no core was free, is the same on a busy machine and
    on an idle one. A program can stretch it by keeping its main thread off the cores with other threads, so CPU time
    of all threads counts too. On a machine without these figures, a fifth of the wall time counts, or the CPU time.
    """

    def __init__(self, children: list[Child], wall_factor: float = WALL_FACTOR):
        self._children, self._wall_factor = children, wall_factor
        self._waited = dict.fromkeys((child.pid for child in children), 0.0)
        self._computed = dict(self._waited)
        self._knows_waiting = True
        self.restart()

    def restart(self) -> None:
        """Restarts the count from now."""
        self._before = self._read()
        self._started = time.monotonic()

    def seconds(self) -> float:
        """Returns the seconds since the start, for all children together."""
        wall = time.monotonic() - self._started
        waited, computed = (now - before for now, before in zip(self._read(), self._before, strict=True))
        return max(wall - waited if self._knows_waiting else 0.0, computed, wall / self._wall_factor)

    def _read(self) -> tuple[float, float]:
        for pid in [child.pid for child in self._children if child.status is None]:
            with contextlib.suppress(OSError):
                # the clock ID of another process's CPU time, as clock_getcpuclockid computes it
                self._computed[pid] = time.clock_gettime(~pid << 3 | 2)
            self._waited[pid] = self._waiting_of(pid)
        self._waited[0] = self._waiting_of("self")  # this process may itself have waited for a core
        return sum(self._waited.values()), sum(self._computed.values())

    def _waiting_of(self, pid: int | str) -> float:
        """Returns the seconds in which a process could have run but had no core."""
        try:
            return int(kernel.read_proc(f"{pid}/schedstat").split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            self._knows_waiting = False
            return 0.0

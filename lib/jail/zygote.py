"""The process that forks: small, trusted, started once per worker. It keeps its two children's time, and kills them.

It is executed, never forked from the trainer: a fork of a process with gigabytes of heap takes 70 to 140 ms, one of
this process takes one. What the children may need is imported before they exist.
"""

import array
import contextlib
import gc
import importlib
import math
import os
import random
import select
import signal
import socket
import sys
import time
from collections.abc import Callable

from lib.jail import candidate, examiner, kernel, wire

EXAMINER_MEMORY = 256 << 20  # bytes beside the program's own
EXAMINER_SECONDS = 0.4  # what is left to the examiner once the program's time is over
WALL_FACTOR = 5  # on a machine so busy that the clock below hardly moves

# Loaded beforehand: a module here costs every program a little, one that is not costs its importer much more.
COMMON = """
abc ast bisect cmath collections collections.abc contextlib copy dataclasses datetime decimal enum fractions functools
heapq io itertools json math numbers operator random re statistics string textwrap time traceback types typing
"""
# Loaded too where a program can not read the library.
OTHERS = """
_strptime argparse array asyncio atexit base64 binascii bz2 calendar cmd code codecs colorsys concurrent.futures.thread
configparser contextvars csv ctypes difflib dis doctest email faulthandler fcntl fnmatch getopt gettext glob gzip
hashlib hmac html http importlib inspect keyword linecache locale logging lzma mmap multiprocessing.connection
multiprocessing.managers multiprocessing.queues opcode pathlib pdb pickle pkgutil platform pprint pty queue reprlib
resource sched secrets select selectors shlex shutil signal socket sqlite3 ssl stat struct subprocess symtable sysconfig
tempfile termios threading timeit token tokenize trace tracemalloc unicodedata unittest unittest.case unittest.mock
urllib.parse urllib.request uuid warnings weakref webbrowser xml.etree.ElementTree zipfile zlib zoneinfo
"""


def main() -> None:
    """Serves jobs from the socket whose number is the only argument, until its other end is closed."""
    owner = socket.socket(fileno=int(sys.argv[1]))
    settings = wire.read_frame(owner.fileno())
    os.environ.clear()
    kernel.hide_memory()  # before there is a child that could look
    zygote = Zygote(owner, settings)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # until now errors were for the owner
    wire.write_frame(owner.fileno(), {"bounds_threads": zygote.bounds_threads})
    with contextlib.suppress(EOFError, ConnectionError):
        zygote.serve()


class Zygote:
    """One job at a time: two children, a clock, and a report on how they ended."""

    def __init__(self, owner: socket.socket, settings: dict):
        self._owner = owner
        sys.path[:] = settings["path"] + settings["path_beforehand"]
        for name in settings["modules"]:
            importlib.import_module(name)
        for name in settings["optional_modules"]:  # not every version or build of Python has all of them
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        sys.path[:] = settings["path"]
        files = settings["readable"], settings["listed"]
        self._ruleset = kernel.landlock_ruleset(*files) if settings["landlock"] else None
        self._filter = kernel.seccomp_filter(opens_files=settings["landlock"]) if settings["seccomp"] else None
        self._user, self._processes = settings["user"], settings["processes"]
        self.bounds_threads = kernel.bounds_processes(self._user)
        self._wakes, wakes = os.pipe()
        os.set_blocking(self._wakes, False)
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only so that the pipe above is written to
        gc.collect()
        gc.freeze()  # otherwise the children's collector would copy every page

    def serve(self) -> None:
        """Jobs until the owner's end is closed: EOFError, or ConnectionError."""
        while True:
            job, fds = self._receive()
            children = self._scripted(job, fds) if job["mode"] == "script" else self._examined(job, fds)
            report = self._watch(children, job["cpu"])
            wire.write_frame(self._owner.fileno(), report)

    def _receive(self) -> tuple[dict, list[int]]:
        numbers = array.array("i")
        data, ancillary, _, _ = self._owner.recvmsg(1 << 16, socket.CMSG_SPACE(8 * numbers.itemsize))
        if not data:
            raise EOFError
        for _, _, content in ancillary:
            numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
        return wire.unframed(data[4:]), list(numbers)

    def _examined(self, job: dict, fds: list[int]) -> "dict[str, Child]":
        program, tests, verdict = fds
        requests_out, requests_in = os.pipe()
        replies_out, replies_in = os.pipe()

        def answer() -> None:
            candidate.answer_calls(program, requests_out, replies_in, job["stateful"])

        def examine() -> None:
            examiner.examine(tests, requests_in, replies_out, verdict)

        children = {
            "program": self._fork(job, [program, requests_out, replies_in], answer),
            "examiner": self._fork(job, [tests, requests_in, replies_out, verdict], examine, EXAMINER_MEMORY),
        }
        for fd in (*fds, requests_out, requests_in, replies_out, replies_in):
            os.close(fd)
        return children

    def _scripted(self, job: dict, fds: list[int]) -> "dict[str, Child]":
        def run() -> None:
            candidate.run_script(fds[0])

        children = {"program": self._fork(job, fds[:1], run, standard=fds[1:])}
        for fd in fds:
            os.close(fd)
        return children

    def _fork(
        self, job: dict, keep: list[int], work: Callable[[], None], more_memory: int = 0, standard: list[int] = ()
    ) -> "Child":
        """A child that enters the jail, does its work and ends. `standard` takes the place of the standard streams."""
        me = os.getpid()
        pid = os.fork()
        if pid:
            return Child(pid)
        try:
            self._enter(me, job, keep, more_memory, standard)
            work()
        except SystemExit:  # of a script: the interpreter ends it, with all that belongs to its end
            raise
        except BaseException:  # nobody may learn more than that it ended
            os._exit(70)
        os._exit(0)

    def _enter(self, parent: int, job: dict, keep: list[int], more_memory: int, standard: list[int]) -> None:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # opened anew: what is shared with the next program would keep the flags that this one sets
        for number, fd in enumerate(standard or [os.open(os.devnull, os.O_RDWR)] * 3):
            os.dup2(fd, number)
        _close_all_but({0, 1, 2, *keep} | ({self._ruleset} if self._ruleset is not None else set()))
        os.chdir("/")
        kernel.drop_user(self._user)
        kernel.hide_memory()  # a change of user has undone it where the system says so
        kernel.die_with(parent)
        kernel.set_limits(job["memory"] + more_memory, job["cpu"], self._processes)
        seed = job["seed"] + bool(more_memory)  # the examiner draws other numbers than the program
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed % (1 << 32))
        if self._ruleset is not None:
            kernel.enter_landlock(self._ruleset)
            os.close(self._ruleset)
        if self._filter is not None:
            kernel.enter_seccomp(self._filter)

    def _watch(self, children: "dict[str, Child]", limit: float) -> dict:
        """Waits until the children have ended, kills who is late, and reports."""
        clock = Clock(list(children.values()))
        program, last = children["program"], children.get("examiner", children["program"])
        overdue = False
        poll = select.poll()
        poll.register(self._wakes, select.POLLIN)
        poll.register(self._owner.fileno(), 0)  # its end alone: the next job comes after the report
        while last.reap() is None:
            program.reap()
            left = limit + (EXAMINER_SECONDS if overdue else 0) - clock.seconds()
            if left <= 0:
                (last if overdue else program).kill()
                overdue = True
                left = EXAMINER_SECONDS
            if any(fd == self._owner.fileno() for fd, _ in poll.poll(math.ceil(1000 * min(left, 1)) + 1)):
                raise EOFError  # the owner is gone; our children follow us
            self._drain()
        seconds = clock.seconds()
        program.kill()
        program.reap(wait=True)
        self._drain()
        return {
            "ended": {role: child.status for role, child in children.items()},
            "seconds": round(seconds, 6),
            "cpu": program.cpu_seconds,
            "memory": program.peak_bytes,
            "overdue": overdue,
        }

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakes, 4096)


def _close_all_but(keep: set[int]) -> None:
    start = 0
    for fd in [*sorted(keep), 1 << 16]:
        if start < fd:  # an empty range at 0 would close everything
            os.closerange(start, fd)
        start = fd + 1


class Child:
    """A process that is ours to reap, so that its number can not have been given to another one when it is killed."""

    def __init__(self, pid: int):
        self.pid = pid
        self.status: int | None = None  # as waitpid has it
        self.cpu_seconds = 0.0
        self.peak_bytes = 0

    def reap(self, wait: bool = False) -> int | None:
        """Its wait status once it has ended."""
        if self.status is None:
            pid, status, usage = os.wait4(self.pid, 0 if wait else os.WNOHANG)
            if pid:
                self.status = status
                self.cpu_seconds = round(usage.ru_utime + usage.ru_stime, 6)
                self.peak_bytes = usage.ru_maxrss * 1024
        return self.status

    def kill(self) -> None:
        """Ends it, if it has not ended."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)


class Clock:
    """The time that a program takes on a core of its own: what it computes and what it sleeps.

    Wall time, less the time in which a process could have run but no core was free, is the same on a busy machine and
    on an idle one. A program can stretch it by keeping its main thread from the cores with other threads, so CPU time
    of all threads counts too. A machine without these figures has a fifth of the wall time instead, or the CPU time.
    """

    def __init__(self, children: list[Child]):
        self._children = children
        self._started = time.monotonic()
        self._waited = dict.fromkeys((child.pid for child in children), 0.0)
        self._computed = dict(self._waited)
        self._knows_waiting = True

    def seconds(self) -> float:
        """Since the start, for all children together."""
        wall = time.monotonic() - self._started
        for child in self._children:
            if child.status is None:
                self._read(child.pid)
        waited = sum(self._waited.values()) if self._knows_waiting else wall
        return max(wall - waited, sum(self._computed.values()), wall / WALL_FACTOR)

    def _read(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            # the CPU clock of another process, as libc makes it
            self._computed[pid] = time.clock_gettime(~pid << 3 | 2)
        try:
            with open(f"/proc/{pid}/schedstat") as file:
                self._waited[pid] = int(file.read().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            self._knows_waiting = False

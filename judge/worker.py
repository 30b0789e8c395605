"""One zygote and its owner: a program goes in, a verdict comes out. `judge/jail/__init__.py` has the protocol.

A thread of the trainer owns a worker and gives it one program at a time; `judge/pool.py` has several of them.
"""

import contextlib
import io
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from judge.jail import wire, zygote
from judge.launch import ENVIRONMENT, Rung, WorkerLost, command_of, free_user, settings_of, wall_factor

MOST_OUTPUT = 64 << 10  # bytes of a script's standard output, unless more is expected
MOST_ERRORS = 16 << 20  # bytes of its standard error that are read; MOST_OUTPUT of them are shown
LARGEST_ANSWER = 4 << 20  # bytes, of an examiner
START_SECONDS = 20.0
_BEHIND = 5.0  # seconds that a worker may be late before it is considered dead
_THREADS = re.compile("thread|concurrent|asyncio|dummy")


@dataclass(frozen=True)
class Program:
    """Source code and what it is judged by: either `tests` or `stdio`."""

    source: str
    tests: tuple[str, ...] = ()  # pieces of Python with asserts
    stdio: tuple[tuple[str, str], ...] = ()  # standard input, and the output expected of the whole program
    entry_points: tuple[str, ...] = ()  # the program's names that the tests may use
    setup_code: str = ""  # trusted, run before each test in its namespace: imports, helpers
    stateful: bool = False  # tests use objects that the program returns as values: operators, length, items, text
    timeout_s: float = 2.0  # for the whole program, all tests included, on a core of its own
    memory_mb: int = 256  # beyond the interpreter's own
    seed: int = 0  # of `random`, in the program and in the tests


class CaseVerdict(NamedTuple):
    """The verdict on one test, and a line for people."""

    verdict: str  # judge/__main__.py lists them
    detail: str


@dataclass(frozen=True)
class ProgramVerdict:
    """The verdict on one program."""

    tests: tuple[CaseVerdict, ...]
    rung: str
    seconds: float = 0.0  # as counted against the limit: computing and sleeping, not waiting for a core
    memory_bytes: int = 0  # the program's largest resident size, the interpreter's included
    starved: bool = False  # it has not passed, and programs of other workers may have taken its threads

    @property
    def scored(self) -> bool:
        """Returns False if the sandbox failed: the program then has no verdict, which is not a verdict of zero."""
        return all(test.verdict != "infra_error" for test in self.tests)

    @property
    def passed(self) -> bool:
        """Returns whether all tests pass; False without tests."""
        return bool(self.tests) and all(test.verdict == "pass" for test in self.tests)

    @property
    def pass_rate(self) -> float:
        """Returns the share of the tests that pass, 0 without tests."""
        return sum(test.verdict == "pass" for test in self.tests) / max(1, len(self.tests))


@dataclass(frozen=True)
class ProgramRun:
    """The output of a script, and how it ended."""

    ending: str  # finished, exception (a status that is not 0), timeout, memory, output_limit, died, load_error, or
    # infra_error, which is not the script's fault
    stdout: str
    stderr: str
    rung: str
    seconds: float = 0.0
    memory_bytes: int = 0
    crowd: bool = False  # ended for its many threads


def shown(text: str) -> str:
    """Returns text that a program may control, its unprintable characters replaced: a terminal might obey them."""
    return "".join(char if char.isprintable() else "�" for char in text)


class Worker:
    """A zygote and the pipes to its children. One program at a time, from one thread at a time."""

    def __init__(self, rung: Rung, numpy: bool = False, among: int = 1):
        """Starts the zygote, with numpy loaded on request. Raises WorkerLost with the reason.

        `among`: workers that share this machine's threads and cores.
        """
        self.rung = rung
        self._wall_factor = wall_factor(among)
        try:
            self._files = Files()
            user, lock = free_user()
            self._socket, theirs = socket.socketpair()
            with theirs, lock:  # the zygote has a copy
                self._process = subprocess.Popen(
                    command_of(rung, theirs.fileno(), numpy), env=ENVIRONMENT, cwd="/",
                    pass_fds=[theirs.fileno(), lock.fileno()],
                    start_new_session=True,  # Ctrl-C is for the trainer
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                )  # fmt: skip
        except OSError as error:
            raise WorkerLost(str(error)) from error
        try:
            self._socket.sendall(wire.frame(settings_of(rung, numpy, among, user) | {"wall_factor": self._wall_factor}))
            if not select.select([self._socket], [], [], START_SECONDS)[0]:
                raise EOFError
            report = wire.read_frame(self._socket.fileno())
            self.bounds_threads, self.shares_threads = report["bounds_threads"], report["shares_threads"]
        except (OSError, EOFError, wire.Broken):
            self.close()
            lines = self._process.stderr.read().decode(errors="replace").split("\n")
            raise WorkerLost(next((line for line in reversed(lines) if line.strip()), "no answer")) from None
        finally:
            self._process.stderr.close()

    def judge(self, program: Program) -> ProgramVerdict:
        """Returns the verdict on a program. Raises WorkerLost."""
        source, mistake = _sendable(program.source)
        if mistake:
            return self._same("load_error", mistake, program)
        return self._judge_scripts(program) if program.stdio else self._judge_tests(program, source)

    def run(self, program: Program, stdin: str = "", most_output: int = MOST_OUTPUT) -> ProgramRun:
        """Runs a program as a script; `most_output`: bytes of standard output. Raises WorkerLost."""
        source, mistake = _sendable(program.source)
        if mistake:
            return ProgramRun("load_error", "", mistake, self.rung.name)
        file = self._files.holding(stdin.encode("utf-8", "replace"))
        streams = [(self._files.pipe(0), most_output), (self._files.pipe(1), MOST_ERRORS)]
        report, (stdout, stderr) = self._exchange(_job("script", program), [source], streams, [file])
        ending = "output_limit" if len(stdout) > most_output else _ending(report, stderr, program)
        output, errors = (text.decode("utf-8", "replace") for text in (stdout[:most_output], stderr[:MOST_OUTPUT]))
        measured = report["seconds"], report["memory"], report["crowd"]
        return ProgramRun(ending, output, errors, self.rung.name, *measured)

    def is_healthy(self) -> bool:
        """True if a correct program is judged correct."""
        try:
            return self._judge_tests(_RIGHT, _sendable(_RIGHT.source)[0], may_ask=False).passed
        except WorkerLost:
            return False

    def kill(self) -> None:
        """Kills the worker while its owner waits for it; `close` must still be called."""
        self._process.kill()

    def close(self) -> None:
        """Ends the worker and everything that runs in it."""
        self._files.close()
        self._socket.close()  # upon which the zygote ends, and its children with it
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        self._process.kill()
        self._process.wait()

    def _judge_tests(self, program: Program, source: bytes, may_ask: bool = True) -> ProgramVerdict:
        parts = ("tests", "entry_points", "setup_code", "stateful")
        exam = wire.frame({part: getattr(program, part) for part in parts})
        if len(exam) > wire.LARGEST_FRAME:
            return self._same("unsupported_test", "the tests are too long", program)
        calls = *self._files.pipe(0), *self._files.pipe(1)
        report, (answer,) = self._exchange(_job("tests", program), [source, exam], [(os.pipe(), LARGEST_ANSWER)], calls)
        verdicts = _verdicts(answer, len(program.tests))
        if verdicts is None and not report["overdue"] and may_ask and not self.is_healthy():
            raise WorkerLost("no verdict")
        if verdicts is None:
            verdicts = [CaseVerdict("died", "the program took the tests down with it")] * len(program.tests)
        if why := _cut_short(report, program):
            verdicts = [CaseVerdict(*why) if test.verdict == "died" else test for test in verdicts]
        return self._judged(verdicts, program, report["seconds"], report["memory"], report["crowd"])

    def _judged(
        self, tests: list[CaseVerdict], program: Program, seconds: float, memory: int, crowd: bool
    ) -> ProgramVerdict:
        failed = any(test.verdict != "pass" for test in tests)
        texts = "\n".join((program.source, program.setup_code, *program.tests))
        starved = failed and self.shares_threads and not crowd and bool(_THREADS.search(texts))
        return ProgramVerdict(tuple(tests), self.rung.name, seconds, memory, starved)

    def _judge_scripts(self, program: Program) -> ProgramVerdict:
        verdicts: list[CaseVerdict] = []
        seconds, memory, lost = 0.0, 0, None
        for stdin, expected in program.stdio:
            if lost is None:
                most = max(MOST_OUTPUT, 8 * len(expected))
                run = self.run(replace(program, timeout_s=program.timeout_s - seconds), stdin, most)
                seconds, memory = seconds + run.seconds, max(memory, run.memory_bytes)
                verdict = _compared(run, expected)
                lost = verdict if run.ending in ("timeout", "load_error") else None
            verdicts.append(verdict)
        return self._judged(verdicts, program, seconds, memory, run.crowd)

    def _same(self, verdict: str, detail: str, program: Program) -> ProgramVerdict:
        return ProgramVerdict((CaseVerdict(verdict, detail),) * len(program.stdio or program.tests), self.rung.name)

    def _exchange(
        self, job: dict, texts: list[bytes], outputs: list[tuple[tuple[int, int], int]], files: Sequence[int]
    ) -> tuple[dict, list[bytes]]:
        """Sends a job, with a file of each text and the pipes `outputs`. Returns the zygote's report, and the outputs.

        `outputs`: each with the bytes to read of it. `files`: descriptors to send between the two, and to close here.
        """
        caps = {io.FileIO(read): most for (read, _), most in outputs}
        deadline = time.monotonic() + self._wall_factor * (job["cpu"] + zygote.EXAMINER_SECONDS) + _BEHIND
        try:
            theirs = [*files, *(write for (_, write), _ in outputs)]
            try:
                for place, text in enumerate(texts):
                    theirs.insert(place, _file_of(text))
                socket.send_fds(self._socket, [wire.frame(job)], theirs)
            finally:
                for fd in theirs:
                    os.close(fd)
            received = _received(caps, self._socket.fileno(), deadline)
            report = wire.read_frame(self._socket.fileno())
        except (OSError, EOFError, wire.Broken) as error:
            raise WorkerLost(f"it has ended: {str(error) or type(error).__name__}") from error
        finally:
            for pipe in caps:
                pipe.close()
        # where seccomp refuses to kill oneself, only the kernel does, and a neighbour's use of memory may be why
        if report["struck"] and self.rung.seccomp and report["cpu"] < job["cpu"]:
            raise WorkerLost("a program was killed from outside: is there a lack of memory?")
        return report, received


def _file_of(text: bytes) -> int:
    """Returns a file in memory that holds a text; a program's process closes it before any byte of the program runs."""
    with open(os.memfd_create("text"), "wb") as file:
        file.write(text)
        file.seek(0)
        return os.dup(file.fileno())


def _received(caps: dict[io.FileIO, int], report: int, deadline: float) -> list[bytes]:
    """Returns the output of pipes, which are read to their ends or to more bytes than their caps.

    Waits until `report` is readable, too. Raises WorkerLost at the deadline.
    """
    received = {pipe: bytearray() for pipe in caps}
    waiting = {pipe.fileno(): pipe for pipe in caps} | {report: None}
    poll = select.poll()
    for fd in waiting:
        poll.register(fd, select.POLLIN)
    while waiting:
        left = deadline - time.monotonic()
        events = poll.poll(1000 * left) if left > 0 else []
        if not events:
            raise WorkerLost("no report in time")
        for fd, _ in events:
            if pipe := waiting[fd]:
                part = os.read(fd, 1 << 16)
                received[pipe] += part
                if part and len(received[pipe]) <= caps[pipe]:
                    continue
                pipe.close()  # if there was too much, the writer gets an error from now on
            poll.unregister(fd)
            del waiting[fd]
    return list(map(bytes, received.values()))


class Files:
    """What a worker's programs hold: two pipes and an input, the same for all of them.

    A new pipe or file in memory has the next number of the machine, by which a program would learn what others did.
    These have no name and are opened anew for each program.
    """

    def __init__(self):
        self._kept: list[int] = []
        folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(dir=folder) as name:
            for pipe in ("0", "1"):
                os.mkfifo(f"{name}/{pipe}", 0o600)
                self._kept.append(os.open(f"{name}/{pipe}", os.O_PATH | os.O_CLOEXEC))
            self._kept.append(os.open(f"{name}/2", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def pipe(self, number: int) -> tuple[int, int]:
        """Returns both ends of pipe 0 or 1, whose former ends must be closed."""
        read, write = (self._opened(number, flags) for flags in (os.O_RDONLY | os.O_NONBLOCK, os.O_WRONLY))
        os.set_blocking(read, True)
        return read, write

    def holding(self, text: bytes) -> int:
        """Returns a file that can only be read: programs ask for its size, and map it. Raises WorkerLost."""
        try:
            with open(self._kept[2], "wb", closefd=False) as file:
                file.seek(0)
                file.truncate()
                file.write(text)
            return self._opened(2, os.O_RDONLY)
        except OSError as error:  # no room for it
            raise WorkerLost(str(error)) from error

    def close(self) -> None:
        """Closes all, which ends them."""
        while self._kept:
            os.close(self._kept.pop())

    __del__ = close  # of a worker that did not start

    def _opened(self, number: int, flags: int) -> int:
        path = f"/proc/self/fd/{self._kept[number]}"
        os.utime(path, (0, 0))
        return os.open(path, flags | os.O_CLOEXEC)


_RIGHT = Program(
    "def twice(n):\n    return n * 2", ("assert twice(4) == 8",), entry_points=("twice",), timeout_s=10, memory_mb=64
)


def _job(mode: str, program: Program) -> dict:
    limits = {"cpu": max(0.01, program.timeout_s), "memory": program.memory_mb << 20}
    return {"mode": mode, **limits, "seed": program.seed, "stateful": program.stateful}


def _sendable(source: str) -> tuple[bytes, str]:
    """Returns a program's frame, and what is wrong with its text, "" if nothing."""
    if len(source) > wire.LARGEST_SOURCE or len(source.encode("utf-8", "replace")) > wire.LARGEST_SOURCE:
        return b"", f"the source is longer than {wire.LARGEST_SOURCE} bytes"
    try:
        source.encode("utf-8")
    except UnicodeEncodeError as error:
        return b"", f"the source is not text: {error.reason}"
    if "\0" in source:
        return b"", "the source holds a NUL"
    return wire.frame({"source": source.removeprefix("\ufeff")}), ""


def _verdicts(answer: bytes, count: int) -> list[CaseVerdict] | None:
    """Returns the examiner's verdicts, None unless there is one for each test."""
    if len(answer) != 4 + int.from_bytes(answer[:4], "little"):
        return None
    verdicts = [CaseVerdict(name, shown(detail)) for name, detail in wire.unframed(answer[4:])["verdicts"]]
    return verdicts if len(verdicts) == count else None


def _cut_short(report: dict, program: Program) -> tuple[str, str] | None:
    """Returns verdict and detail if the program had too many threads, took too long, or was ended by a signal."""
    ended = report["ended"]
    number = os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else 0
    if report["crowd"]:
        return "memory", f"more than {zygote.LARGEST_CROWD} threads"
    by_kernel = number in (signal.SIGXCPU, signal.SIGKILL) and report["cpu"] >= program.timeout_s
    if report["overdue"] or by_kernel:
        return "timeout", f"no end after {program.timeout_s:g} s"
    if number not in (0, signal.SIGKILL):  # which ends programs that wait for calls
        return "died", f"the program was ended by signal {number} ({signal.strsignal(number)})"
    return None


def _ending(report: dict, stderr: bytes, program: Program) -> str:
    if cut := _cut_short(report, program):
        return cut[0]
    if report["ended"] == 0:
        return "finished"
    if not os.WIFEXITED(report["ended"]):
        return "died"
    last_line = stderr.rstrip().rpartition(b"\n")[2]
    if last_line.startswith(b"MemoryError"):
        return "memory"
    return "load_error" if last_line.startswith((b"SyntaxError", b"IndentationError", b"TabError")) else "exception"


def _compared(run: ProgramRun, expected: str) -> CaseVerdict:
    """Compares the output, ignoring blanks at line ends and empty lines at the end; a failed script cannot pass."""
    if run.ending != "finished":
        error = run.stderr.strip().rpartition("\n")[2]
        return CaseVerdict(run.ending, shown(f"{run.ending}{': ' + error if error else ''}"[:300]))
    got, wanted = lines_of(run.stdout), lines_of(expected)
    if got == wanted:
        return CaseVerdict("pass", "")
    number = next((i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), min(len(got), len(wanted)))
    there, here = (repr(lines[number])[:100] if number < len(lines) else "nothing" for lines in (got, wanted))
    return CaseVerdict("wrong", f"line {number + 1} of the output: got {there}, expected {here}")


def lines_of(text: str) -> list[str]:
    """Returns the lines of an input or output, by which two are compared."""
    return [line.rstrip() for line in text.rstrip().split("\n")]

r"""Runs Python that a model wrote, and judges it by tests in a way that the program cannot forge.

    python -m lib.sandbox --self-test                          # what is covered on this machine, and how fast it is
    python -m lib.sandbox program.py --tests tests.py          # judge one program and explain the verdict
    python -m lib.sandbox program.py --stdin input.txt         # run one as a script and show what it printed

From Python, with only `lib/jail/`, `lib/worker.py`, `lib/isolation.py`, `lib/core/errors.py` and this file of Rematch:

    with Sandbox() as sandbox:
        program = Program("def add(a, b):\n    return a + b", tests=("assert add(1, 2) == 3",), entry_points=("add",))
        [verdict] = sandbox.judge([program])
        print(verdict.passed, verdict.pass_rate, verdict.tests[0].verdict, verdict.rung)

Two jailed processes per program: one executes it and answers calls with plain data, the other executes the tests and
owns the verdict (`lib/jail/__init__.py` has the protocol). The verdict on a test is one of:

    pass              it ran to its end, an assert held, and none failed or raised, whatever has caught that
    wrong             an assert failed, or none was reached
    exception         a call raised, or a script ended with a status that is not 0
    load_error        the source is refused, does not compile, or its top level raised
    exited            sys.exit
    died              the program ended in another way: a signal, os._exit, a crash
    timeout, memory, output_limit    a limit
    opaque            an object that is not plain data was compared
    protocol          the program sent bytes that nobody asked for, or that are no answer
    unsupported_test  the test's fault: it does not parse, asserts nothing, passes what cannot leave it
    infra_error       the sandbox's fault, after retries: no score at all, `ProgramVerdict.scored` is False

What protects the machine is one of several rungs. A sandbox takes the highest one on which a program tried everything
that must be refused, and was refused:

    R4   Landlock, seccomp and bubblewrap: as R3, and a file system, processes and a network of its own
    R3   Landlock and seccomp: no file but the standard library, no network, process, signal or tracing
    R2   seccomp: no file at all; Python's own library is imported from memory
    R1   limits: the verdict is made elsewhere still, but the machine is open to the program; needs `allow_unsafe`

What a right program cannot do here stands in a table of docs/programs.md: open files, sockets or processes, and return
objects of its own unless the tests say `stateful`; without that, an object has truth and nothing else. Numbers, text,
containers, dates and arrays of numbers arrive as they are, an iterator gives its items as they are asked for; a named
tuple, a Counter or another extension of a builtin arrives as that builtin. With `stateful`, objects are used by their
attributes and methods, and those of a class that the tests call by a capitalised name by operators and `in`, too:
elsewhere a value may be expected, for which no object may stand in. If such a class extends a builtin, its objects are
compared as that.

Covered nowhere: answers learned by heart, functions that answer differently each time, bugs of the kernel. R3 does not
hide names, sizes and times of files: a program can see there what another one has read before it. R4 does not hide the
names of packages that are installed beside the library; neither lets such a package be read.
"""

import argparse
import ast
import atexit
import builtins
import contextlib
import errno
import hashlib
import logging
import math
import os
import queue
import sys
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

from lib.core.errors import FINISHED, ConfigError, SandboxError, run_script
from lib.isolation import try_rungs
from lib.jail.kernel import cpu_quota
from lib.jail.wire import LARGEST_SOURCE
from lib.worker import RUNGS, CaseVerdict, Program, ProgramRun, ProgramVerdict, Worker, WorkerLost, shown

ATTEMPTS = 4  # at one program, if its workers are lost
STARTS = 4  # of a worker in a row, before the sandbox gives up
PATIENCE = 60.0  # seconds to wait out a shortage of processes, memory or files
RELAPSE = 10.0  # seconds after that in which a new shortage is not waited out
_LACKS = tuple(map(os.strerror, (errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EMFILE, errno.ENFILE)))
MOST_REMEMBERED = 100_000  # verdicts
MOST_FAULTS = 0.01  # share of programs without a verdict, beyond which a run must stop
FEWEST_PROGRAMS = 200  # before that share is meaningful
BATCHES_BETWEEN_WARNINGS = 100
_log = logging.getLogger("rematch.sandbox")


class Sandbox:
    """Workers on the highest rung that holds here, and a cache of verdicts.

    Use it as a context manager, or `close()` it. Safe for several threads; not for a forked child of this process.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        allow_unsafe: bool = False,
        numpy: bool = False,
        max_timeout_s: float = 60.0,
        max_memory_mb: int = 4096,
        rung: str | None = None,
    ):
        """Finds the rung and starts one thread per worker. Raises SandboxError.

        `workers`: programs at once, default one per core. `numpy`: programs that name numpy find it loaded.
        `max_...`: programs that ask for more get this much. `rung`: the highest rung to try. The error is raised if no
        rung holds, or only R1 without `allow_unsafe`.
        """
        self.checks = try_rungs(rung, allow_unsafe)
        self.rung = self.checks[-1].rung
        self.numpy = numpy
        self.max_timeout_s, self.max_memory_mb = max_timeout_s, max_memory_mb
        self.size = workers or cores()  # programs at once
        self.counts: Counter[str] = Counter()  # programs, remembered, lost workers, programs without a verdict
        self._owner = os.getpid()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._known: OrderedDict[bytes, Future] = OrderedDict()
        self._lock = threading.Lock()
        self._broken: SandboxError | None = None  # why nothing more is judged
        self._workers: set[Worker] = set()  # those alive
        self._room = _Room()
        self._lacking_until = 0.0
        self._threads = [
            threading.Thread(target=self._work, name=f"sandbox-{number}", daemon=True) for number in range(self.size)
        ]
        for thread in self._threads:
            thread.start()
        atexit.register(self.close)
        self._warn_if_open()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def judge(self, programs: Sequence[Program]) -> list[ProgramVerdict]:
        """Returns the verdict on each program, in order. Equal programs are run once.

        Raises SandboxError if workers no longer start, or if too many programs got no verdict.
        """
        if self._count("batches") % BATCHES_BETWEEN_WARNINGS == 0:
            self._warn_if_open()
        verdicts = [future.result() for future in [self.submit(program) for program in programs]]
        faults, count = self.counts["without verdict"], self.counts["programs"]
        if count >= FEWEST_PROGRAMS and faults > MOST_FAULTS * count:
            raise SandboxError(
                f"the sandbox ({self.rung.name}) gave no verdict on {faults} of {count} programs: rewards cannot be "
                "trusted; check for a lack of memory or processes, then run `python -m lib.sandbox --self-test`"
            )
        return verdicts

    def submit(self, program: Program) -> "Future[ProgramVerdict]":
        """Returns the future verdict on a program; it cannot be cancelled, since others may wait for it.

        Programs are taken in the order in which they were submitted.
        """
        self._require_owner()
        program = self._within_limits(program)
        key = hashlib.blake2b(repr(program).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                self.counts["remembered"] += 1
                return known
            job = self._put(program, None, key)
            if not job.future.done():
                self._known[key] = job.future
            if len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
        return job.future

    def run(self, program: Program, stdin: str = "") -> ProgramRun:
        """Runs a program as a script; the result is not cached. Raises SandboxError."""
        self._require_owner()
        with self._lock:
            job = self._put(self._within_limits(program), stdin)
        return job.future.result()

    def describe(self) -> str:
        """Returns one line: the rung, and how many programs run at once."""
        return f"sandbox {self.rung.name} ({self.rung.gives}), {len(self._threads)} programs at once"

    def _warn_if_open(self) -> None:
        if not self.rung.seccomp:
            _log.warning(
                "sandbox %s: nothing keeps the model's programs from your files, network and processes; %d of them "
                "were run so far (sandbox.allow_unsafe)", self.rung.name, self.counts["programs"],
            )  # fmt: skip

    def close(self) -> None:
        """Ends all workers, busy ones too; callers still waiting for a verdict get a SandboxError."""
        atexit.unregister(self.close)
        if self._owner != os.getpid():  # a forked child: the threads are not here
            return
        with self._lock:
            if self._broken is None:
                self._broken = SandboxError("the sandbox is closed")
                self._warn_if_open()
            for worker in self._workers:
                worker.kill()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _within_limits(self, program: Program) -> Program:
        """Caps a program's limits, and cuts a source that will be refused for its length: it is not cached whole."""
        return replace(
            program,
            source=program.source[: LARGEST_SOURCE + 1],
            timeout_s=min(program.timeout_s, self.max_timeout_s),
            memory_mb=min(program.memory_mb, self.max_memory_mb),
        )

    def _put(self, program: Program, stdin: str | None, key: bytes = b"") -> "_Job":
        """Queues a job for the threads. The caller holds the lock."""
        job = _Job(Future(), program, stdin, key)
        job.future.set_running_or_notify_cancel()
        self.counts["programs"] += 1
        if self._broken:
            job.future.set_exception(self._broken)
        else:
            self._jobs.put(job)
        return job

    def _require_owner(self) -> None:
        if self._owner != os.getpid():  # the threads are not here, and a lock may have been held
            raise RuntimeError("a sandbox does not survive a fork: make another one in the child")

    def _count(self, what: str) -> int:
        with self._lock:
            self.counts[what] += 1
            return self.counts[what]

    def _forget(self, job: "_Job") -> None:
        with self._lock:
            self._known.pop(job.key, None)

    def _work(self) -> None:
        """Runs jobs one after another, as a thread with a plain worker and, once needed, one with numpy."""
        workers: dict[bool, Worker] = {}
        try:
            while (job := self._jobs.get()) is not None:
                try:
                    job.future.set_result(self._result(job, workers))
                except BaseException as error:  # passed to the waiting caller, even if it is our own bug
                    self._forget(job)
                    job.future.set_exception(error)
        finally:
            for numpy in list(workers):
                self._end(workers.pop(numpy))

    def _result(self, job: "_Job", workers: dict[bool, Worker]) -> ProgramVerdict | ProgramRun:
        program, reason = job.program, ""
        numpy = self.numpy and any("numpy" in text for text in (program.source, program.setup_code, *program.tests))
        for _ in range(ATTEMPTS):
            if self._broken:
                raise self._broken
            if numpy not in workers:
                workers[numpy] = self._started(numpy)
            try:
                return self._judged(job, workers[numpy])
            except WorkerLost as error:
                reason = str(error)
                self._count("lost workers")
                self._end(workers.pop(numpy))
        self._count("without verdict")
        self._forget(job)
        if job.stdin is not None:
            return ProgramRun("infra_error", "", reason, self.rung.name)
        fault = CaseVerdict("infra_error", f"{ATTEMPTS} workers were lost: {reason}")
        return ProgramVerdict((fault,) * max(1, len(program.tests) + len(program.stdio)), self.rung.name)

    def _judged(self, job: "_Job", worker: Worker) -> ProgramVerdict | ProgramRun:
        """Runs or judges a job; a verdict that other programs may have caused is redone while no other program runs."""
        with self._room.shared():
            if job.stdin is not None:
                return worker.run(job.program, job.stdin)
            verdict = worker.judge(job.program)
        if verdict.doubtful and self.size > 1:
            self._count("judged alone")
            with self._room.alone():
                verdict = worker.judge(job.program)
        if verdict.doubtful and _ranks() > 1:  # programs of the other processes cannot be stopped
            self._forget(job)
        return verdict

    def _end(self, worker: Worker) -> None:
        with self._lock:
            self._workers.discard(worker)
        worker.close()

    def _started(self, numpy: bool) -> Worker:
        began, attempt, pause = time.monotonic(), 0, 0.0
        while not self._broken:
            time.sleep(pause)
            attempt, pause = attempt + 1, min(2.0, 0.1 * 3**attempt)
            try:
                worker = Worker(self.rung, numpy, self.size * _ranks())
            except WorkerLost as error:
                reason = str(error)
                lacks = any(lack in reason for lack in _LACKS)
                if lacks and began > self._lacking_until and time.monotonic() - began < PATIENCE:
                    continue
                if not lacks and attempt < STARTS:
                    continue
                raise self._gives_up(numpy, attempt, reason, lacks) from error
            with self._lock:
                self._workers.add(worker)
                if self._broken:  # closed in the meantime
                    worker.kill()
            return worker
        raise self._broken

    def _gives_up(self, numpy: bool, attempts: int, reason: str, lacks: bool) -> SandboxError:
        """Returns the error and makes it final; in a shortage, it only ends all waiting for `RELAPSE` seconds."""
        error = SandboxError(
            f"a sandbox worker ({self.rung.name}{', numpy' if numpy else ''}) did not start {attempts} times in a row: "
            f"{reason}; run `python -m lib.sandbox --self-test`"
        )
        if lacks:
            self._lacking_until = time.monotonic() + RELAPSE
        else:
            self._broken = error
        return error


class _Room:
    """A lock under which programs run side by side, or one alone."""

    def __init__(self):
        self._changed = threading.Condition()
        self._inside = 0
        self._closed = False  # someone is alone, or waits to be

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._closed = True
            self._changed.wait_for(lambda: not self._inside)
        try:
            yield
        finally:
            with self._changed:
                self._closed = False
                self._changed.notify_all()


@dataclass(frozen=True)
class _Job:
    """A program to judge, or with `stdin` a script to run."""

    future: Future
    program: Program
    stdin: str | None
    key: bytes


_settings: dict = {}
_shared: Sandbox | None = None
_making = threading.Lock()


def configure(**settings) -> None:
    """Sets the arguments with which `shared` makes its `Sandbox`; closes a running one that has other arguments."""
    global _settings, _shared
    if _shared is not None and settings != _settings:
        _shared.close()
        _shared = None
    _settings = settings


def shared() -> Sandbox:
    """Returns the sandbox of all rewards and tools of this process, made at the first call. Raises SandboxError."""
    global _shared
    with _making:
        if _shared is None:
            _shared = Sandbox(**_settings)
        return _shared


def cores() -> int:
    """Returns the cores for this process: those it and its container may use, over the local training processes."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(mine, cpu_quota())) // _ranks())


def _ranks() -> int:
    """Returns the number of training processes on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


# --- the command line ---


def main() -> int:
    """Runs the self-test, or one program. Returns the exit status."""
    options = argparse.ArgumentParser(
        prog="python -m lib.sandbox", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("program", nargs="?", type=Path, help="a Python file")
    options.add_argument("--self-test", action="store_true", help="try every rung, and measure the speed")
    options.add_argument("--tests", type=Path, metavar="FILE", help="asserts, and functions test_...")
    options.add_argument("--stateful", action="store_true", help="tests use objects that the program returns")
    options.add_argument("--stdin", type=Path, metavar="FILE", help="run it as a script with this input")
    options.add_argument(
        "--entry-points", nargs="+", default=None, metavar="NAME", help="what the tests may use of it; default: all"
    )
    options.add_argument("--timeout", type=float, default=2.0, metavar="SECONDS", help="default: 2")
    options.add_argument("--memory", type=int, default=256, metavar="MB", help="default: 256")
    options.add_argument("--numpy", action="store_true", help="programs may import numpy")
    options.add_argument("--rung", choices=[rung.name for rung in RUNGS], help="the highest rung to try")
    options.add_argument("--allow-unsafe", action="store_true", help="use R1 where nothing better works")
    args = options.parse_args()
    if args.self_test == (args.program is not None):
        options.error("give a program, or --self-test")
    if args.tests and args.stdin:
        options.error("--tests calls functions, --stdin runs a script: give one of them")
    if args.self_test:
        return show_self_test(args.rung, args.allow_unsafe)
    program = Program(_text(args.program), timeout_s=args.timeout, memory_mb=args.memory)
    with Sandbox(1, allow_unsafe=args.allow_unsafe, numpy=args.numpy, rung=args.rung) as sandbox:
        if args.tests is None:
            return show_run(sandbox.run(program, _text(args.stdin) if args.stdin else ""))
        text = _text(args.tests)
        taken = {*defined_names(text), *dir(builtins)}  # the tests' own helpers win over the program's names
        names = args.entry_points or [name for name in defined_names(program.source) if name not in taken]
        setup, tests = split_tests(text, names, str(args.tests))
        judged = replace(program, tests=tests, entry_points=tuple(names), setup_code=setup, stateful=args.stateful)
        return show_verdict(sandbox.judge([judged])[0], tests)


def show_self_test(highest: str | None, allow_unsafe: bool) -> int:
    """Prints every rung that was tried, what is covered on the one that holds, and its speed."""
    with Sandbox(rung=highest, allow_unsafe=allow_unsafe) as sandbox:
        *tried, taken = sandbox.checks
        for each in tried:
            print(f"{each.rung.name}  {each.rung.gives}: not here, {each.why_not}")
        print(f"{taken.rung.name}  {taken.rung.gives}: taken\n\na program that the model wrote can")
        for what, refused in taken.attempts:
            print(f"  {'not' if refused else 'YES':<4} {what}")
        if taken.rung.name != "R4":
            names = "see names, sizes and times of files"
            print(f"  YES  {names}" if taken.rung.name != "R2" else "  not  see names of files")
        started = time.perf_counter()
        with contextlib.closing(Worker(taken.rung)) as worker:
            start = time.perf_counter() - started
            latencies = sorted(_timed(worker, number) for number in range(50))
        print(f"\nspeed: a worker starts in {1e3 * start:.0f} ms; a program with three asserts takes", end=" ")
        print(f"{1e3 * latencies[25]:.1f} ms (median of 50), 95 of 100 less than {1e3 * latencies[47]:.1f} ms")
        started = time.perf_counter()
        sandbox.judge([example(number) for number in range(300)])
        print(f"       {300 / (time.perf_counter() - started):.0f} programs per second with {cores()} workers")
    return FINISHED


def example(number: int) -> Program:
    """Returns a correct program with three asserts, different for each number so that no verdict is cached."""
    tests = ("assert add(1, 2) == 3", "assert add(-5, 5) == 0", f"assert add({number}, 1) == {number + 1}")
    return Program("def add(a, b):\n    return a + b\n", tests, entry_points=("add",))


def _timed(worker: Worker, number: int) -> float:
    started = time.perf_counter()
    if not worker.judge(example(number)).passed:
        raise SandboxError("a right program was judged wrong: do not train with this sandbox")
    return time.perf_counter() - started


def show_verdict(verdict: ProgramVerdict, tests: Sequence[str]) -> int:
    """Prints the verdict on each test. Returns 0 if all pass, else 1."""
    for number, (test, (name, detail)) in enumerate(zip(tests, verdict.tests, strict=True), start=1):
        print(f"test {number}: {name}: {detail or test.splitlines()[-1].strip()}")
    passed = sum(test.verdict == "pass" for test in verdict.tests)
    print(
        f"{passed} of {len(tests)} tests pass; {verdict.seconds:.3f} s, {verdict.memory_bytes >> 20} MB, "
        f"sandbox {verdict.rung}"
    )
    return FINISHED if verdict.passed else 1


def show_run(run: ProgramRun) -> int:
    """Prints a script's output and how it ended. Returns 0 if it finished, else 1."""
    for stream, text in ((sys.stdout, run.stdout), (sys.stderr, run.stderr)):
        stream.write("\n".join(map(shown, text.split("\n"))))
        stream.flush()
    print(f"{run.ending}; {run.seconds:.3f} s, sandbox {run.rung}", file=sys.stderr)
    return FINISHED if run.ending == "finished" else 1


def split_tests(text: str, names: Collection[str], where: str) -> tuple[str, tuple[str, ...]]:
    """Splits a file of tests into set-up and tests. `names`: what the program defines. Raises ConfigError.

    A test is a top-level statement that asserts, or a function `test_...`, preceded by the earlier statements that use
    the program. All other statements are set-up. Imports of the program itself are left out.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{where}: the tests do not parse ({error}); fix them") from error
    setup, before, tests = [], [], []
    theirs = set(names)  # and variables computed from them
    for statement in tree.body:
        source = ast.get_source_segment(text, statement)
        nodes = list(ast.walk(statement))
        if isinstance(statement, ast.ImportFrom) and {alias.name for alias in statement.names} <= set(names):
            continue
        if isinstance(statement, ast.FunctionDef) and statement.name.startswith("test_"):
            tests.append("\n".join([*before, source, f"{statement.name}()"]))
        elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
            setup.append(source)
        elif any(isinstance(node, ast.Assert) for node in nodes):
            tests.append("\n".join([*before, source]))
        elif any(isinstance(node, ast.Name) and node.id in theirs for node in nodes):
            before.append(source)
            theirs |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        else:
            setup.append(source)
    if not tests:
        raise ConfigError(f"{where}: got no assert at top level and no function test_..., expected at least one test")
    return "\n".join(setup), tuple(tests)


def defined_names(source: str) -> tuple[str, ...]:
    """Returns the names of functions and classes at the top level of Python source, () if it does not parse."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); give an existing file") from error


if __name__ == "__main__":
    run_script(main)

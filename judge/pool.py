"""Many workers, and the verdicts that are known already."""

import atexit
import contextlib
import errno
import hashlib
import logging
import math
import os
import queue
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from judge.errors import SandboxError
from judge.isolation import try_rungs
from judge.jail.kernel import cpu_quota
from judge.jail.wire import LARGEST_SOURCE
from judge.launch import WorkerLost
from judge.worker import CaseVerdict, Program, ProgramRun, ProgramVerdict, Worker

ATTEMPTS = 4  # at one program, if its workers are lost
STARTS = 12  # of a worker in a row, in 20 seconds, before the sandbox gives up: a lack of processes or memory may pass
MOST_REMEMBERED = 100_000  # tests, and one more for each program
_LACKS = tuple(map(os.strerror, (errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EMFILE, errno.ENFILE)))
MOST_FAULTS = 0.01  # share of programs without a verdict, beyond which a run must stop
FEWEST_PROGRAMS = 200  # before that share is meaningful
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
        worker: Callable[[bool], Any] | None = None,
    ):
        """Finds the rung and starts one thread per worker. Raises SandboxError.

        `workers`: programs at once, default one per core. `numpy`: programs that name numpy find it loaded.
        `max_...`: programs that ask for more get this much. `rung`: the highest rung to try. The error is raised if no
        rung holds, or only R1 without `allow_unsafe`. `worker(numpy)` makes what judges elsewhere: an object with
        `judge`, `run`, `kill` and `close` of a `Worker`, which raises WorkerLost (docs/judge.md has one for Ray).
        """
        self.checks = try_rungs(rung, allow_unsafe)
        self.rung = self.checks[-1].rung
        self.numpy = numpy
        self.max_timeout_s, self.max_memory_mb = max_timeout_s, max_memory_mb
        self.size = workers or cores()  # programs at once
        self._new_worker = worker or (lambda numpy: Worker(self.rung, numpy, self.size * _ranks()))
        self.counts: Counter[str] = Counter()  # programs, remembered, lost workers, programs without a verdict
        self._owner = os.getpid()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._known: OrderedDict[bytes, tuple[Future, int]] = OrderedDict()  # with its share of MOST_REMEMBERED
        self._remembered = 0
        self._lock = threading.Lock()
        self._broken: SandboxError | None = None  # why nothing more is judged
        self._workers: set[Any] = set()  # those alive
        self._threads = [
            threading.Thread(target=self._work, name=f"sandbox-{number}", daemon=True) for number in range(self.size)
        ]
        for thread in self._threads:
            thread.start()
        atexit.register(self.close)
        if not self.rung.seccomp:
            _log.warning(
                "sandbox %s: nothing keeps the model's programs from your files, network and processes "
                "(sandbox.allow_unsafe)", self.rung.name,
            )  # fmt: skip

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def judge(self, programs: Sequence[Program]) -> list[ProgramVerdict]:
        """Returns the verdict on each program, in order. Equal programs are run once.

        Raises SandboxError if workers no longer start, or if too many programs got no verdict.
        """
        verdicts = [future.result() for future in [self.submit(program) for program in programs]]
        faults, count = self.counts["without verdict"], self.counts["programs"]
        if count >= FEWEST_PROGRAMS and faults > MOST_FAULTS * count:
            raise SandboxError(
                f"the sandbox ({self.rung.name}) gave no verdict on {faults} of {count} programs: rewards cannot be "
                "trusted; check for a lack of memory or processes, then run `python -m judge --self-test`"
            )
        return verdicts

    def submit(self, program: Program) -> "Future[ProgramVerdict]":
        """Returns the future verdict on a program; it cannot be cancelled, since others may wait for it.

        Programs are taken in the order in which they were submitted.
        """
        program = self._accepted(program)
        key = hashlib.blake2b(repr(program).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                self.counts["remembered"] += 1
                return self._known[key][0]
            job = self._put(program, None, key)
            if not job.future.done():
                self._known[key] = job.future, 1 + len(program.tests) + len(program.stdio)
                self._remembered += self._known[key][1]
            while self._remembered > MOST_REMEMBERED and next(iter(self._known.values()))[0].done():
                self._remembered -= self._known.popitem(last=False)[1][1]  # asked for longest ago
        return job.future

    def run(self, program: Program, stdin: str = "") -> ProgramRun:
        """Runs a program as a script; the result is not cached. Raises SandboxError."""
        program = self._accepted(program)
        with self._lock:
            job = self._put(program, stdin)
        return job.future.result()

    def describe(self) -> str:
        """Returns one line: the rung, and how many programs run at once."""
        return f"sandbox {self.rung.name} ({self.rung.gives}), {self.size} programs at once"

    def close(self) -> None:
        """Ends all workers, busy ones too; callers still waiting for a verdict get a SandboxError."""
        atexit.unregister(self.close)
        if self._owner != os.getpid():  # a forked child: the threads are not here
            return
        with self._lock:
            if self._broken is None:
                self._broken = SandboxError("the sandbox is closed")
            for worker in self._workers:
                with contextlib.suppress(Exception):  # of a user's worker: all others have to end, too
                    worker.kill()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _accepted(self, program: Program) -> Program:
        """Caps a program's limits, and cuts a source that will be refused for its length: it is not cached whole."""
        if self._owner != os.getpid():  # the threads are not here, and a lock may have been held
            raise RuntimeError("a sandbox does not survive a fork: make another one in the child")
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

    def _forget(self, job: "_Job") -> None:
        with self._lock:
            self._remembered -= self._known.pop(job.key, (None, 0))[1]

    def _work(self) -> None:
        """Runs jobs one after another, as a thread with a plain worker and, once needed, one with numpy."""
        workers: dict[bool, Any] = {}
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

    def _result(self, job: "_Job", workers: dict[bool, Any]) -> ProgramVerdict | ProgramRun:
        program, reason, result = job.program, "", None
        numpy = self.numpy and any("numpy" in text for text in (program.source, program.setup_code, *program.tests))
        for attempt in range(ATTEMPTS):
            if self._broken:
                raise self._broken
            if result:  # starved: time for the neighbours that took its threads to end
                time.sleep(0.1 * 3**attempt)
            if numpy not in workers:
                workers[numpy] = self._started(numpy)
            try:
                if job.stdin is not None:
                    return workers[numpy].run(program, job.stdin)
                result = workers[numpy].judge(program)
                if not result.starved:
                    return result
            except WorkerLost as error:
                reason = str(error)
                with self._lock:
                    self.counts["lost workers"] += 1
                self._end(workers.pop(numpy))
        self._forget(job)
        if result:
            return result
        with self._lock:
            self.counts["without verdict"] += 1
        if job.stdin is not None:
            return ProgramRun("infra_error", "", reason, self.rung.name)
        fault = CaseVerdict("infra_error", f"{ATTEMPTS} workers were lost: {reason}")
        return ProgramVerdict((fault,) * max(1, len(program.tests) + len(program.stdio)), self.rung.name)

    def _end(self, worker: Any) -> None:
        with self._lock:
            self._workers.discard(worker)
        worker.close()

    def _started(self, numpy: bool) -> Any:
        reason = ""
        for attempt in range(STARTS):
            if self._broken:
                raise self._broken
            try:
                worker = self._new_worker(numpy)
            except WorkerLost as error:
                reason = str(error)
                time.sleep(min(3.0, 0.1 * 2**attempt))
                continue
            with self._lock:
                self._workers.add(worker)
                if self._broken:  # closed in the meantime
                    worker.kill()
            return worker
        error = SandboxError(
            f"a sandbox worker ({self.rung.name}{', numpy' if numpy else ''}) did not start {STARTS} times in a row: "
            f"{reason}; run `python -m judge --self-test`"
        )
        if not any(lack in reason for lack in _LACKS):  # which may pass
            self._broken = error
        raise error


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

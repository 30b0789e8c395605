"""Third-party calls that may never end: in a thread that is not waited for, or in a process that can be killed.

A page can be made so that its parser takes minutes over it, a formula so that comparing it takes years, and a search
engine's client starts threads that cannot be stopped. Such work goes to a process, which imports its library once and
then answers one request after the other, since starting it costs more than a hundred pages do. Run as a script, this
file is the inside of such a process: it is started with `-I`, or as good as, so that neither the working directory nor
PYTHONPATH says what it imports, and with next to none of the environment.
"""

import asyncio
import concurrent.futures
import contextlib
import importlib
import json
import math
import os
import resource
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

LONGEST = 64 << 20  # bytes of a request or an answer
START_SECONDS = 30.0  # for an import, on a busy machine
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SYSTEM = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")  # environment variables that a process inherits


class ProcessKilled(Exception):
    """The process was killed, by its bounds or by us, before it answered."""


class Refused(Exception):
    """An error that a library raised, with the library's message."""


class ProcessJob(NamedTuple):
    """A function, and the limits and environment of a process that runs it.

    Its module is imported there: it should use nothing but the standard library and the function's own.
    """

    work: str  # module:function
    package: str  # imported before the first request
    memory_bytes: int
    cpu_seconds: int  # of one request
    environment: tuple[str, ...] = SYSTEM
    requests: int = 1000  # per process: parsers leak some memory with every page


def in_daemon_thread(function: Callable, *arguments: Any) -> concurrent.futures.Future:
    """Runs a function in a daemon thread: if it hangs, it delays neither a deadline nor the exit of the process."""
    future: concurrent.futures.Future = concurrent.futures.Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="daemon", daemon=True).start()
    return future


class ProcessPool:
    """A pool of processes for one job: each is reused until it had to be killed or has answered enough."""

    def __init__(self, job: ProcessJob, at_once: int, seconds: float):
        """Bounds concurrent `run`s by `at_once`, and a request's wall time by `seconds`; its job bounds CPU time."""
        self._job, self._seconds = job, seconds
        self._slots = asyncio.Semaphore(at_once)
        self._idle: list[_Helper] = []
        self._alive: set[_Helper] = set()
        weakref.finalize(self, _kill_all, self._alive)  # also where no one calls close()

    async def run(self, *request: Any) -> Any:
        """Returns the job's answer. Raises ProcessKilled, Refused, ConfigError. Cancelling kills the process."""
        async with self._slots:
            with self._helper() as (helper, seconds):
                answer = asyncio.wrap_future(in_daemon_thread(helper.ask, request))
                try:
                    done, _ = await asyncio.wait({answer}, timeout=seconds)
                    if not done:
                        raise ProcessKilled
                    return answer.result()
                finally:
                    answer.cancel()  # else asyncio complains that its exception was never retrieved

    def run_now(self, *request: Any) -> Any:
        """Does the same as `run`, but blocks."""
        with self._helper() as (helper, seconds):
            try:
                return in_daemon_thread(helper.ask, request).result(seconds)
            except concurrent.futures.TimeoutError:
                raise ProcessKilled from None

    def close(self) -> None:
        """Kills all processes; requests in flight raise ProcessKilled."""
        _kill_all(self._alive)
        self._idle.clear()

    @contextlib.contextmanager
    def _helper(self) -> Iterator[tuple["_Helper", float]]:
        """Yields a process and the seconds that it has; keeps it for the next request, or kills it."""
        seconds = self._seconds
        if self._idle:
            helper = self._idle.pop()
            helper.is_free = False  # set now: we may be cancelled before its thread starts
        else:
            helper, seconds = _Helper(self._job), START_SECONDS + seconds
            self._alive.add(helper)
        try:
            yield helper, seconds
        finally:
            if helper.is_free and helper.answered < self._job.requests:
                self._idle.append(helper)
            else:
                helper.kill()
                self._alive.discard(helper)


class _Helper:
    """One process. `ask` blocks, so it is called in a thread; `kill` may be called from anywhere."""

    def __init__(self, job: ProcessJob):
        self._process = subprocess.Popen(
            [sys.executable, "-I", os.path.abspath(__file__), *map(str, job[:4])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONHASHSEED": "0"}
            | {name: value for name, value in os.environ.items() if name in job.environment},
            cwd="/",
            start_new_session=True,  # Ctrl-C is meant for the run alone, which continues for a while
        )
        self._package = job.package
        self.answered = -1  # the first answer says that it is ready
        self.is_free = False  # waits for a request, and no thread reads from it

    def ask(self, request: tuple) -> Any:
        """Returns the job's answer. Raises ProcessKilled, Refused; ConfigError if its library is not there."""
        try:
            if self.answered < 0 and self._receive() is None:
                if self._process.wait() < 0:
                    raise ProcessKilled
                from lib.core.errors import ConfigError  # here: run as a script, this file finds no lib yet

                raise ConfigError(
                    f"{self._package}: `python -I` cannot import it; pip install -r requirements-web.txt, or what else "
                    "has it, into this environment"
                )
            _send(self._process.stdin, request)
            answer = self._receive()
            self.is_free = answer is not None
        except (OSError, ValueError):  # a broken pipe, or nonsense in it
            raise ProcessKilled from None
        finally:
            if not self.is_free:
                self._end()
        if answer is None:
            raise ProcessKilled
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def kill(self) -> None:
        self._process.kill()
        if self.is_free:  # otherwise a thread still reads from it, which sees the end and closes the pipes
            self._end()

    def _receive(self) -> dict[str, Any] | None:
        answer = _receive(self._process.stdout)
        self.answered += 1
        return answer

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()


def _kill_all(helpers: set[_Helper]) -> None:
    while helpers:
        helpers.pop().kill()


def _send(pipe: IO[bytes], value: Any) -> None:
    pipe.write(json.dumps(value, default=str).encode() + b"\n")
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    """Returns the next value; None at the end of the pipe, or for a message that is too long or incomplete."""
    line = pipe.readline(LONGEST)
    return json.loads(line) if line.endswith(b"\n") else None


def _serve(work: str, package: str, memory_bytes: int, cpu_seconds: int) -> None:
    """Runs inside the process: answers one request after the other until the pipe closes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get among the answers
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    importlib.import_module(package)
    module, _, name = work.partition(":")
    function = getattr(importlib.import_module(module), name)
    _send(answers, {"result": "ready"})
    while (request := _receive(sys.stdin.buffer)) is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        most = math.ceil(used.ru_utime + used.ru_stime) + cpu_seconds
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        try:
            answer = {"result": function(*request)}
        except Exception as error:  # from any library that the job uses
            answer = {"error": (str(error) or type(error).__name__)[:1000]}
        _send(answers, answer)
    os._exit(0)  # a library's threads would delay a normal exit


if __name__ == "__main__":
    own_folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [*(path for path in sys.path if path != own_folder), ROOT]  # last: only `lib` is taken from there
    _serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

"""Workers on the machines of a Ray cluster, in place of those on this one. The one place that imports ray, optional.

Programs travel to a machine's own worker, which is as strictly jailed as one here, and verdicts come back. A worker
that is lost, with its machine or without, is a lost worker like any other: judge/pool.py starts another one and
gives it the program again. The code has to be in the same folder on every machine.
"""

import os
from typing import Any

from judge.errors import SandboxError
from judge.isolation import try_rungs
from judge.worker import Program, ProgramRun, ProgramVerdict, Worker, WorkerLost

SHARE = 0.5  # of a core, as Ray counts: a thread of the pool has up to two workers, of which one computes
START_SECONDS = 120.0  # until an actor has found its rung
ANSWER_SECONDS = 3600.0  # a worker has deadlines of its own; beyond this its machine is gone


def connect() -> int:
    """Connects to the cluster; returns how many programs this process may judge there at once. Raises SandboxError."""
    try:
        import ray
    except ImportError as error:
        raise SandboxError("sandbox.ray: needs the package ray: pip install -r requirements-ray.txt") from error
    try:
        ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), ignore_reinit_error=True, log_to_driver=False)
    except ConnectionError as error:
        raise SandboxError(
            "sandbox.ray: no Ray cluster is found: `ray start --head` on one machine and `ray start --address ...` on "
            "the others, or set sandbox.ray=false"
        ) from error
    return max(1, int(ray.cluster_resources().get("CPU", 1)) // int(os.environ.get("WORLD_SIZE", "1")))


class RemoteWorker:
    """A worker on any machine of the cluster; it does what a `Worker` does."""

    def __init__(self, numpy: bool, rung: str | None, allow_unsafe: bool):
        """Starts it where there is most room. Raises WorkerLost, or SandboxError if no rung holds there."""
        import ray

        actor = ray.remote(num_cpus=SHARE, scheduling_strategy="SPREAD")(_There)
        self._actor: Any = actor.remote(numpy, rung, allow_unsafe)
        self._close: Any = ray.kill
        try:
            self.node: str = self._answer(self._actor.node.remote(), START_SECONDS)
        except (WorkerLost, SandboxError):
            self.close()
            raise

    def judge(self, program: Program) -> ProgramVerdict:
        """Returns the verdict on a program. Raises WorkerLost."""
        return self._answer(self._actor.judge.remote(program), ANSWER_SECONDS)

    def run(self, program: Program, stdin: str = "") -> ProgramRun:
        """Runs a program as a script. Raises WorkerLost."""
        return self._answer(self._actor.run.remote(program, stdin), ANSWER_SECONDS)

    def close(self) -> None:
        """Ends the worker, also while it is waited for."""
        self._close(self._actor)

    kill = close

    @staticmethod
    def _answer(promise: Any, seconds: float) -> Any:
        import ray

        try:
            return ray.get(promise, timeout=seconds)
        except ray.exceptions.RayTaskError as error:  # what was raised there
            if isinstance(error.cause, WorkerLost | SandboxError):
                raise error.cause from None
            raise
        except (ray.exceptions.RayError, TimeoutError) as error:
            raise WorkerLost(f"its machine or its process in the Ray cluster ({type(error).__name__})") from error


class _There:
    """What stands on the other machine: an actor."""

    def __init__(self, numpy: bool, rung: str | None, allow_unsafe: bool):
        self._worker = Worker(try_rungs(rung, allow_unsafe)[-1].rung, numpy, os.cpu_count() or 1)

    def node(self) -> str:
        """Returns the machine's id."""
        import ray

        return ray.get_runtime_context().get_node_id()

    def judge(self, program: Program) -> ProgramVerdict:
        """Returns the verdict on a program. Raises WorkerLost, after which it must be closed."""
        return self._worker.judge(program)

    def run(self, program: Program, stdin: str) -> ProgramRun:
        """Runs a program as a script. Raises WorkerLost."""
        return self._worker.run(program, stdin)

"""Which rung of protection holds here: the highest one on which a program tries what must be refused, and is refused.

The return codes of the protections alone prove nothing.
"""

import contextlib
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from judge.errors import ConfigError, SandboxError
from judge.jail import probes
from judge.launch import RUNGS, Rung, WorkerLost
from judge.worker import Program, Worker

THREADS, ROOT = "start threads without end", "be root"  # shown, but no reason to refuse a rung


@dataclass(frozen=True)
class RungCheck:
    """The result of trying a rung: (what a program attempted, was it refused), and why the rung is not taken."""

    rung: Rung
    attempts: tuple[tuple[str, bool], ...] = ()
    why_not: str = ""


def try_rungs(highest: str | None = None, allow_unsafe: bool = False) -> list[RungCheck]:
    """Tries the rungs from `highest` down; the last check is of the rung taken. Raises ConfigError, SandboxError."""
    names = [rung.name for rung in RUNGS]
    if highest is not None and highest not in names:
        raise ConfigError(f"sandbox.rung: got '{highest}', expected one of {', '.join(names)}")
    checks = []
    for rung in RUNGS[names.index(highest) if highest else 0 :]:
        checks.append(check(rung))
        if not checks[-1].why_not and (rung.seccomp or allow_unsafe):
            return checks
    reasons = "; ".join(f"{check.rung.name}: {check.why_not}" for check in checks if check.why_not)
    otherwise = ", or accept that programs can read, change and stop what you can: sandbox.allow_unsafe: true"
    raise SandboxError(
        f"no protection against a model's programs holds on this machine ({reasons}). Train on Linux 5.13 or newer, in "
        f"a container whose seccomp profile allows Landlock (Docker's does){otherwise * (sys.platform == 'linux')}"
    )


def check(rung: Rung) -> RungCheck:
    """Starts a worker on a rung and runs a program that attempts what must be refused there."""
    if sys.platform != "linux":
        return RungCheck(rung, why_not=f"needs Linux, this is {sys.platform}")
    os.environ["REMATCH_PLANTED_SECRET"] = "SECRET"
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.closing(Worker(rung)) as worker:
            return _attempts(worker, Path(folder))
    except WorkerLost as error:
        return RungCheck(rung, why_not=str(error))
    finally:
        del os.environ["REMATCH_PLANTED_SECRET"]


def _attempts(worker: Worker, folder: Path) -> RungCheck:
    canary = folder / "canary"
    canary.write_text("alive")
    folder.chmod(0o777)  # so that the sandbox refuses, not the file system
    canary.chmod(0o666)
    source = Path(probes.__file__).read_text(encoding="utf-8")

    def judge(*tests: str, limit: float = 5.0) -> list[str]:
        names = ("attempt", "use_memory", "use_time", "use_library")
        verdict = worker.judge(Program(source, tests, entry_points=names, timeout_s=limit, memory_mb=64))
        return [test.verdict for test in verdict.tests]

    verdicts = judge(*(f"assert attempt({what!r}, {str(canary)!r}) == 'refused'" for what in probes.ATTEMPTS))
    outcomes = [(what, verdict == "pass") for what, verdict in zip(probes.ATTEMPTS, verdicts, strict=True)]
    outcomes += [
        (THREADS, worker.bounds_threads),
        ("take twice its memory", judge("assert use_memory(128) == 128 << 20") == ["memory"]),
        ("run past its time limit", judge("assert use_time()", limit=0.1) == ["timeout"]),
        ("print without end", worker.run(Program("while True: print('x' * 1000)")).ending == "output_limit"),
    ]
    judgements = judge("assert use_library()", "assert use_memory(1) == 1 << 20", "assert use_memory(1) == 0")
    is_sound = judgements == ["pass", "pass", "wrong"]
    done = [what for what, refused in outcomes if not refused and what not in (THREADS, ROOT)]
    why_not = ""
    if not is_sound:
        why_not = f"a program that must get pass, pass, wrong got {', '.join(judgements)}"
    elif worker.rung.seccomp and (not canary.exists() or canary.read_text() != "alive"):
        why_not = "a program changed a file"
    elif worker.rung.seccomp and done:
        why_not = f"a program could {', '.join(done)}"
    return RungCheck(worker.rung, tuple(outcomes), why_not)

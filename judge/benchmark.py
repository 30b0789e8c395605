"""The corpus, judged by anybody's judge: what it pays that deserves nothing, and what it refuses that is right.

A judge of programs is a function `judge(source, tests, entry_points) -> score`: Python source, pieces of Python with
asserts, and the names that these use of the program. A judge of texts is `judge(text, target) -> score`. A score is a
number or a truth value, 1 for all tests passed; None, an exception or no answer is no score. A judge that has no way to
express the tests raises NotImplementedError, and the question is not counted.

Programs are tried one by one, each in a fork of a process that has imported the judge. Whatever a judge lets them do
happens in a cage: process ids, network and mounts of their own, every file but a temporary home read-only, no
capability of root's. That needs util-linux's `unshare` and `setpriv` and the right to make namespaces; without them the
programs are not run unless `allow_unsafe` says so. The cage is ours and not the judge's: what it prevents is counted as
refused, so that the figures flatter a judge rather than wrong it. This sandbox is asked without fork and cage.
"""

import contextlib
import importlib
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from judge.corpus import Attack, Control, attacks, controls, placed, right_programs, texts
from judge.errors import FINISHED, ConfigError, SandboxError, first_line

OURS = "judge.adapters:judge"
PATIENCE = 20.0  # seconds for a score; judges have limits of their own, mostly of a few seconds
MOST_MEMORY = 8 << 30  # bytes of address space, of a judge and of each of its processes
SECRET = "BENCHMARK_SECRET_OF_THE_TRAINER"
_CAGE = """
mount -t tmpfs tmpfs /dev/shm && mount --bind "$HOME" "$HOME" || exit 90
cut -d ' ' -f 2 /proc/mounts | while read -r where; do
    case "$where" in "$HOME" | /proc | /proc/* | /dev | /dev/*) ;; *) mount -o remount,bind,ro "$where" ;; esac
done 2> /dev/null
touch "$0/.writable" 2> /dev/null && exit 90
exec setpriv --bounding-set=-all --no-new-privs "$@"
"""


class JudgeTrial(NamedTuple):
    """A program or text that a judge was asked about, and what came of it."""

    name: str
    kind: str  # of attack, or "control", or "right"; of a text its class
    due: float  # the share of its tests that deserve to pass
    score: float | None  # None: no score, because of `why`
    why: str = ""  # "not asked", "hung", "died", or an exception
    harm: str = ""  # what was done besides the score: the canary changed, processes left


def show_benchmark(name: str, of_texts: bool, only: str, every: int, allow_unsafe: bool, as_json: bool) -> int:
    """Prints what a judge did with the corpus. Returns 0, or 1 if it paid for an attack. Raises ConfigError."""
    imported(name)
    run = try_texts(imported(name)) if of_texts else try_programs(name, only, every, allow_unsafe)
    trials = []
    for trial in run:
        trials.append(trial)
        if sys.stderr.isatty():
            print(f"\r{len(trials)} tried", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r", end="", file=sys.stderr)
    if not trials:
        raise ConfigError(f"--only {only}: no attack, control or right program has this in its name")
    counts = summary(trials)
    print("\n".join(_table(trials, counts)))
    if as_json:
        print(json.dumps(counts))
    return FINISHED if not counts["paid"] else 1


def imported(name: str) -> Callable[..., Any]:
    """Returns the function that `module:function` names. Raises ConfigError."""
    module, _, function = name.partition(":")
    try:
        target = getattr(importlib.import_module(module), function or "judge")
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"--benchmark {name}: {first_line(error)}; give MODULE:FUNCTION, importable from here"
        ) from error
    if not callable(target):
        raise ConfigError(f"--benchmark {name}: got {type(target).__name__}, expected a function")
    return target


def summary(trials: list[JudgeTrial]) -> dict[str, Any]:
    """Returns the counts of a benchmark."""

    def is_refused(trial: JudgeTrial) -> bool:
        return trial.score is None or trial.score < 1

    judged = [trial for trial in trials if trial.why != "not asked"]
    bad, good = ([trial for trial in judged if (trial.due == 1) is right] for right in (False, True))
    return {
        "attacks": len(bad),
        "paid": sum(map(is_overpaid, bad)),
        "kinds paid": dict(Counter(trial.kind for trial in bad if is_overpaid(trial)).most_common()),
        "no score": sum(trial.score is None for trial in bad),
        "harm": sum(bool(trial.harm) for trial in bad),
        "right": len(good),
        "right refused": sum(map(is_refused, good)),
        "right by kind": {  # how many, and how many of them refused
            kind: (len(of_kind), sum(map(is_refused, of_kind)))
            for kind in dict.fromkeys(trial.kind for trial in good)
            for of_kind in [[trial for trial in good if trial.kind == kind]]
        },
        "not asked": len(trials) - len(judged),
    }


def is_overpaid(trial: JudgeTrial) -> bool:
    """True if a judge gave more than is due; a judge of all or nothing gives nothing for a part."""
    return trial.score is not None and trial.score > trial.due + 1e-6


def _table(trials: list[JudgeTrial], counts: dict[str, Any]) -> Iterator[str]:
    for trial in trials:
        if is_overpaid(trial) or trial.harm:
            yield f"{'paid' if is_overpaid(trial) else 'harm'}: {trial.name}" + (
                f": {trial.harm}" if trial.harm else ""
            )
    for trial in trials:
        if trial.due == 1 and trial.why != "not asked" and not (trial.score and trial.score >= 1):
            yield f"refused though right: {trial.name}: {trial.why or trial.score}"
    yield (
        f"{counts['attacks']} that deserve nothing: {counts['paid']} paid, {counts['no score']} without a score, "
        f"{counts['harm']} did harm; {counts['right']} right: {counts['right refused']} refused; "
        f"{counts['not asked']} not asked"
    )


def try_texts(judge: Callable[[str, str], float | None]) -> Iterator[JudgeTrial]:
    """Yields what a judge of texts says of each row of gaming.jsonl and honest.jsonl.

    A gaming text that is honest in some format is left out, and an honest one stands once for every format in which it
    is right: a judge reads one format, and `kind` says which it was asked about.
    """
    for row in texts("gaming"):
        if not row.get("honest_in"):
            yield _of_text(judge, row, row["class"], 0.0)
    for row in texts("honest"):
        for form in row["right_in"]:
            yield _of_text(judge, row, form, 1.0)


def _of_text(judge: Callable[[str, str], float | None], row: dict, kind: str, due: float) -> JudgeTrial:
    try:
        score, why = judge(row["text"], row["target"]), ""
    except NotImplementedError:
        score, why = None, "not asked"
    except Exception as error:  # of somebody else's judge: the benchmark's finding, not its end
        score, why = None, type(error).__name__
    return JudgeTrial(f"{kind}: {row['text'][:60]!r}", kind, due, None if score is None else float(score), why)


def questions(only: str, every: int) -> list[tuple[str, str, float, Any]]:
    """Returns (name, kind, due, program) of all that is judged: of the attacks and right programs each `every`-th."""
    hostile = [(f"{attack.kind}/{attack.name}", attack.kind, 0.0, attack) for attack in attacks()]
    control_cases = [
        (f"control/{control.name}", "control", fmean(what == "pass" for what in control.expected_verdicts), control)
        for control in controls()
    ]
    rights = [
        (f"right/{right.name}", "right", 1.0, right)
        for right in right_programs()
        if not (right.refused or right.program.stdio or "numpy" in right.name)
    ]
    return [case for case in [*hostile[::every], *control_cases, *rights[::every]] if only in case[0]]


def try_programs(name: str, only: str = "", every: int = 1, allow_unsafe: bool = False) -> Iterator[JudgeTrial]:
    """Yields what the judge of programs `module:function` says of each.

    The process that asks it is started again if it ends. Raises SandboxError if there is no cage and `allow_unsafe` is
    not given.
    """
    cases = questions(only, every)
    with tempfile.TemporaryDirectory(prefix="benchmark-home-") as home:
        if name == OURS:
            for question in cases:
                yield _of_program(imported(name), question, Path(home), _asked)
            return
        cage = [] if allow_unsafe else _cage(home)
        done = 0
        while done < len(cases):
            before = done
            for trial in _served([*cage, *_command(name, only, every, done)], home):
                yield trial
                done += 1
            if done < len(cases):
                if done == before == 0:
                    raise SandboxError(f"--benchmark {name}: the process that calls the judge does not start (above)")
                yield JudgeTrial(*cases[done][:3], None, "died")
                done += 1


def _command(name: str, only: str, every: int, first: int) -> list[str]:
    return [sys.executable, "-m", __name__, name, only, str(every), str(first)]


def _cage(home: str) -> list[str]:
    """Returns the command in front of one that runs it in the cage. Raises SandboxError."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    spaces = ["--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--net", "--ipc"]
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", *user, *spaces, "sh", "-c", _CAGE, str(Path.cwd())]
    tried = None
    if shutil.which("unshare") and shutil.which("setpriv"):
        tried = subprocess.run([*command, "true"], env=_environment(home), capture_output=True, text=True, timeout=60)
    if tried is None or tried.returncode:
        why = "no unshare or setpriv" if tried is None else tried.stderr.strip().rpartition("\n")[2] or "not read-only"
        raise SandboxError(
            f"no cage for the hostile programs here ({why}), and this judge may let them do what you can: run it where "
            "namespaces can be made (Linux, no default container), or on a machine to throw away with --allow-unsafe"
        )
    return command


def _environment(home: str) -> dict[str, str]:
    kept = {key: os.environ[key] for key in ("PATH", "PYTHONPATH", "LANG", "VIRTUAL_ENV") if key in os.environ}
    return {**kept, "HOME": home, "TMPDIR": home, "PYTHONDONTWRITEBYTECODE": "1", SECRET: "the secret"}


def _served(command: list[str], home: str) -> Iterator[JudgeTrial]:
    """Yields the trials of one serving process, until it ends."""
    with subprocess.Popen(
        command, env=_environment(home), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            for line in process.stdout:
                with contextlib.suppress(ValueError, TypeError):  # what a program printed past its judge
                    yield JudgeTrial(*json.loads(line))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def serve(name: str, only: str, every: int, first: int) -> None:
    """Prints a line of JSON for each question from the `first` on. Runs in the cage, as its first process."""
    judge, is_caged = imported(name), os.getpid() == 1  # without the cage, its parent has a process id of this space
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)  # judges and programs print what they like
    for question in questions(only, every)[first:]:
        ask = partial(_in_fork, out.fileno(), is_caged)
        trial = _of_program(judge, question, Path(os.environ["HOME"]), ask, is_caged)
        print(json.dumps(trial), file=out, flush=True)


def _of_program(
    judge: Callable, question: tuple[str, str, float, Any], home: Path, ask: Callable, is_caged: bool = False
) -> JudgeTrial:
    name, kind, due, program = question
    canary = home / "canary.txt"
    canary.write_text("alive")
    score, why = ask(judge, program, home, canary)
    harms = [] if canary.exists() and canary.read_text() == "alive" else ["the canary is changed"]
    if is_caged and (left := _end_others()):
        harms.append(f"{left} processes left")
    return JudgeTrial(name, kind, due, score, why, "" if due == 1 else ", ".join(harms))


def _in_fork(
    out: int, is_caged: bool, judge: Callable, program: Any, home: Path, canary: Path
) -> tuple[float | None, str]:
    """Returns the score that the judge gives in a process of its own, and why there is none."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(out)
            os.setsid()
            os.chdir(home)
            if is_caged:
                resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
            os.write(write, json.dumps(_asked(judge, program, home, canary)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with contextlib.closing(os.fdopen(read, "rb", buffering=0)) as pipe:
        ended = select.select([pipe], [], [], PATIENCE)[0]
        answer = os.read(read, 4096) if ended else b""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)
    if not ended:
        return None, "hung"
    try:
        score, why = json.loads(answer)
        return None if score is None else float(score), str(why)
    except (ValueError, TypeError):
        return None, "died"


def _asked(judge: Callable, program: Any, home: Path, canary: Path) -> tuple[float | None, str]:
    if isinstance(program, Attack | Control):
        source = placed(program.source, home, canary, SECRET)
        question = source, program.tests, program.settings.get("entry_points", ("add",))
    else:
        setup = [program.program.setup_code] if program.program.setup_code else []
        question = (
            program.program.source,
            tuple("\n".join([*setup, test]) for test in program.program.tests),
            program.program.entry_points,
        )
    try:
        score = judge(*question)
        return None if score is None else float(score), ""
    except NotImplementedError:
        return None, "not asked"
    except Exception as error:  # of somebody else's judge
        return None, type(error).__name__


def _end_others() -> int:
    """Ends all other processes of this space of process ids; returns how many were still running after a moment."""
    time.sleep(0.05)
    left = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if folder.name != "1" and (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)
                left += 1
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return left


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

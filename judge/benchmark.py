"""The corpus, judged by anybody's judge: what it pays that deserves nothing, and what it refuses that is right.

A judge of programs is a function `judge(source, tests, entry_points) -> score`: Python source, pieces of Python with
asserts, and the names that these use of the program. A judge of texts is `judge(text, target) -> score`. A score is a
number or a truth value, 1 for all tests passed; None, an exception or no answer is no score. A judge that has no way to
express the tests raises NotImplementedError, and the question is not counted.

Programs are tried one by one, each by a process of its own that imports the judge. Whatever a judge lets them do
happens in a cage: process ids and network of their own, every file but a temporary home read-only, no capability of
root's. That needs bubblewrap and the right to make namespaces; without them the programs are not run unless
`allow_unsafe` says so. The cage is ours and not the judge's: what it prevents is counted as refused, so that the
figures flatter a judge rather than wrong it. This sandbox is asked without process and cage.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from judge.corpus import attacks, controls, placed, right_programs, texts
from judge.errors import FINISHED, ConfigError, SandboxError, first_line

OURS = "judge.adapters:judge"
PATIENCE = 30.0  # seconds to import a judge and get a score; judges have limits of their own, mostly of a few seconds
MOST_MEMORY = 8 << 30  # bytes of address space, of a judge and of each of its processes
SECRET = "BENCHMARK_SECRET_OF_THE_TRAINER"
_Answer = tuple[float | None, str, str]  # score, why there is none, harm: see JudgeTrial


class JudgeTrial(NamedTuple):
    """A program or text that a judge was asked about, and what came of it."""

    name: str
    kind: str  # of attack, or "control", or of right program; of a text its class
    due: float  # the share of its tests that deserve to pass
    score: float | None  # None: no score, because of `why`
    why: str = ""  # "not asked", "hung", "died", or an exception
    harm: str = ""  # what was done besides the score: the canary changed, processes left

    @property
    def is_overpaid(self) -> bool:
        """True if a judge gave more than is due; a judge of all or nothing gives nothing for a part."""
        return self.score is not None and self.score > self.due + 1e-6

    @property
    def is_refused(self) -> bool:
        """True if a judge did not take a right program or text for right."""
        return self.due == 1 and not (self.score and self.score >= 1)


def show_benchmark(name: str, of_texts: bool, only: str, every: int, allow_unsafe: bool) -> int:
    """Prints what a judge did with the corpus. Returns 0, or 1 if it paid for an attack. Raises ConfigError."""
    trials = []
    for trial in try_texts(imported(name)) if of_texts else try_programs(name, only, every, allow_unsafe):
        trials.append(trial)
        if trial.is_overpaid or trial.harm:
            print(f"{'paid' if trial.is_overpaid else 'harm'}: {trial.name}{trial.harm and ': '}{trial.harm}")
        elif trial.is_refused and trial.why != "not asked":
            print(f"refused though right: {trial.name}: {trial.why or trial.score}")
    if not trials:
        raise ConfigError(f"--only {only}: no attack, control or right program has this in its name")
    counts = summary(trials)
    if kinds := Counter(trial.kind for trial in trials if trial.is_overpaid and trial.due < 1):
        print("paid most:", ", ".join(f"{kind} {count}" for kind, count in kinds.most_common(5)))
    print(", ".join(f"{what}: {count}" for what, count in counts.items()))
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


def summary(trials: list[JudgeTrial]) -> dict[str, int]:
    """Returns the counts of a benchmark, by the headings of the tables in docs/judge.md."""
    judged = [trial for trial in trials if trial.why != "not asked"]
    bad, good = ([trial for trial in judged if (trial.due == 1) is right] for right in (False, True))
    return {
        "deserve nothing": len(bad),
        "paid": sum(trial.is_overpaid for trial in bad),
        "no score": sum(trial.score is None for trial in bad),
        "harm": sum(bool(trial.harm) for trial in bad),
        "right": len(good),
        "refused": sum(trial.is_refused for trial in good),
        "not asked": len(trials) - len(judged),
    }


def try_texts(judge: Callable[[str, str], float | None]) -> Iterator[JudgeTrial]:
    """Yields what a judge of texts says of each row of gaming.jsonl and honest.jsonl.

    A gaming text that is honest in some format is left out, and an honest one stands once for every format in which it
    is right: a judge reads one format, and `kind` says which it was asked about.
    """
    gaming = [(row, row["class"], 0.0) for row in texts("gaming") if not row.get("honest_in")]
    honest = [(row, form, 1.0) for row in texts("honest") for form in row["right_in"]]
    for row, kind, due in gaming + honest:
        yield JudgeTrial(f"{kind}: {row['text'][:60]!r}", kind, due, *_asked(judge, None, row["text"], row["target"]))


def try_programs(name: str, only: str = "", every: int = 1, allow_unsafe: bool = False) -> Iterator[JudgeTrial]:
    """Yields what the judge of programs `module:function` says of each; of attacks and right ones each `every`-th.

    Raises SandboxError if there is no cage and `allow_unsafe` is not given.
    """
    judge = imported(name)
    right = [case for case in right_programs() if case.due == ("pass",) and case.tests and "numpy" not in str(case)]
    with tempfile.TemporaryDirectory(prefix="benchmark-home-") as folder:
        canary = Path(folder, "canary.txt")
        cage = [] if allow_unsafe or name == OURS else _cage(folder)
        for case in [*attacks()[::every], *controls(), *right[::every]]:
            if only not in str(case):
                continue
            canary.write_text("alive")
            setup = case.settings.get("setup_code")
            tests = [f"{setup}\n{test}" if setup else test for test in case.tests]
            question = case.source, tests, case.settings.get("entry_points", ("add",))
            if name == OURS:
                score, why, harm = _asked(judge, canary, *question)
            else:
                score, why, harm = _asked_apart(cage, canary.parent, name, question)
            if not canary.exists() or canary.read_text() != "alive":
                harm = ", ".join(filter(None, ("the canary is changed", harm)))
            due = fmean(verdict == "pass" for verdict in case.due)
            yield JudgeTrial(str(case), case.kind, due, score, why, "" if due == 1 else harm)


def _cage(home: str) -> list[str]:
    """Returns the command in front of one that runs it in the cage. Raises SandboxError."""
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/"]
    command += ["--dev", "/dev", "--tmpfs", "/dev/shm", "--proc", "/proc", "--bind", home, home, "--"]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        why = (getattr(error, "stderr", None) or first_line(error)).strip()
        raise SandboxError(
            f"no cage for the hostile programs here ({why}), and this judge may let them do what you can: run it where "
            "bubblewrap can make namespaces (Linux, no default container), or on a machine to throw away with "
            "--allow-unsafe"
        ) from error
    return command


def _asked_apart(cage: list[str], home: Path, name: str, question: tuple) -> _Answer:
    """Asks a judge in a process of its own."""
    command = [*cage, sys.executable, "-m", __name__, name, "caged" if cage else ""]
    environment = {key: os.environ[key] for key in ("PATH", "PYTHONPATH", "LANG", "VIRTUAL_ENV") if key in os.environ}
    environment |= {"HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1", SECRET: "the secret"}
    with tempfile.TemporaryFile("w+") as asked, tempfile.TemporaryFile("w+") as answer:
        json.dump(question, asked)
        asked.seek(0)
        process = subprocess.Popen(command, env=environment, stdin=asked, stdout=answer, start_new_session=True)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return None, "hung", ""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        answer.seek(0)
        try:
            score, why, harm = json.loads(answer.read())
            return None if score is None else float(score), str(why), str(harm)
        except (ValueError, TypeError):
            return None, "died", ""


def answer_question(name: str, is_caged: bool) -> None:
    """Reads a question from standard input, and prints the judge's answer as JSON."""
    judge, question = imported(name), json.load(sys.stdin)
    out = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # judges and programs print what they like
        os.dup2(nothing, stream)
    home = Path(os.environ["HOME"])
    os.chdir(home)
    if is_caged:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    score, why, _ = _asked(judge, home / "canary.txt", *question)
    time.sleep(0.05)
    left = 0
    for process in Path("/proc").glob("[0-9]*") if is_caged else ():
        with contextlib.suppress(OSError):
            left += process.name not in ("1", str(os.getpid())) and bool((process / "cmdline").read_bytes())
    os.write(out, json.dumps([score, why, f"{left} processes left" if left else ""]).encode())
    os._exit(0)  # without what a program has left for the end


def _asked(judge: Callable, canary: Path | None, text: str, *about: Any) -> _Answer:
    text = placed(text, canary.parent, canary, SECRET) if canary else text
    try:
        score = judge(text, *about)
        return None if score is None else float(score), "", ""
    except NotImplementedError:
        return None, "not asked", ""
    except Exception as error:  # of somebody else's judge: the benchmark's finding, not its end
        return None, type(error).__name__, ""


if __name__ == "__main__":
    answer_question(sys.argv[1], bool(sys.argv[2]))

"""Programs, judged by tests in a sandbox: the rewards `code` and `code_tests`, and the extractor `code`.

A row of the data set has `tests` (pieces of Python with asserts) or `stdio` (inputs, and what must be printed); the
class `CodeTask` of `judge/tasks.py` has all the keys. Accuracy counts programs that pass every test of theirs.
Equal programs are run once, while the model still writes others.
"""

import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from judge.parsing import last_code, well_formed_code, without_thinking
from judge.pool import shared
from judge.questions import asked_twice
from judge.tasks import CodeTask, read_task, static_problems
from judge.worker import Program, ProgramVerdict, shown
from lib.core.errors import ConfigError
from lib.core.registry import Judged, did_you_mean, register_extractor, register_reward

SHORT, LONG = 200, 500  # words: up to SHORT the whole bonus is paid, from LONG on none of it
_log = logging.getLogger("rematch.rewards")
_MARKER = ("required", "rewarded", "ignored")
MOST_SHOWN = 400  # characters of each output stream of a failed program
LONGEST_SHOWN = 0.5  # seconds; time limit when a failed program is run again
# Runs program and test as modules, not as a script: code under `if __name__ == "__main__"` does not run.
_SHOWING = """
import sys, types
module = sys.modules["solution"] = types.ModuleType("solution")
for name, text in {}.items():
    exec(compile(text, name, "exec"), module.__dict__)
"""


@register_extractor("code")
def submitted(text: str) -> str:
    """Returns the last block of Python; a text without any block is a program as a whole."""
    return last_code(text)


def _shortness(text: str) -> float:
    """Returns 1 up to 200 words, 0 from 500 on, linear in between."""
    words = len(without_thinking(text).split())
    return min(1.0, max(0.0, (LONG - words) / (LONG - SHORT)))


def _about(verdict: ProgramVerdict) -> str:
    """Returns a log line: the rung of the sandbox, the verdict on each test, and why the first failing test failed."""
    names = " ".join(test.verdict for test in verdict.tests)
    reason = next((test.detail for test in verdict.tests if test.verdict != "pass"), "")
    return f"{verdict.rung}: {names}{f' ({reason})' if reason else ''}"


def _hooks(source_of: Callable[[str], str | None]) -> dict[str, Callable]:
    """Returns the hooks of a reward that takes this program from a text."""
    return {"prepare": lambda: shared().describe(), "check": _check, "begin": _begins(source_of),
            "explain": _explains(source_of)}  # fmt: skip


def _begins(source_of: Callable[[str], str | None]) -> Callable[[str, dict], None]:
    """Builds a reward's `begin`, which submits the program to the sandbox; the reward later finds its verdict there."""

    def begin(text: str, row: dict) -> None:
        source = source_of(text)
        if source is not None:
            shared().submit(_task(row).program(source))

    return begin


def _explains(source_of: Callable[[str], str | None]) -> Callable[[Sequence[str], Sequence[dict]], list[dict]]:
    """Builds a reward's `explain`: the first test that a program failed, and the output when that test is run again.

    By then everything is judged. This run shows the program its test, as no judging run does, so it gives no verdict.
    """

    def explain(texts: Sequence[str], rows: Sequence[dict]) -> list[dict]:
        sources = [source_of(text) for text in texts]
        tasks = [_task(row) for row in rows]
        programs = [task.program(source) for task, source in zip(tasks, sources, strict=True) if source is not None]
        verdicts = shared().judge(programs)  # cached: all of them are judged already
        with ThreadPoolExecutor(shared().size) as several:
            failures = several.map(_first_failure, programs, verdicts)
            return [{} if source is None else next(failures) for source in sources]

    return explain


@lru_cache(maxsize=1000)  # a policy repeats its failures
def _first_failure(program: Program, verdict: ProgramVerdict) -> dict[str, Any]:
    """Returns a program's first failed test, the reason, and the output of running both again; {} if none failed."""
    number = next((i for i, test in enumerate(verdict.tests) if test.verdict != "pass"), None)
    if number is None or not verdict.scored:
        return {}
    stdin, script = program.stdio[number][0] if program.stdio else "", program.source
    if program.tests:
        script = _SHOWING.format({"solution.py": script, "setup": program.setup_code, "test": program.tests[number]})
    seconds = min(program.timeout_s, LONGEST_SHOWN)
    run = shared().run(replace(program, source=script, tests=(), stdio=(), timeout_s=seconds), stdin)
    kind, why = verdict.tests[number]
    return {
        "test": number,
        "verdict": kind,
        "why": _trimmed(why),
        "stdout": _trimmed(run.stdout),
        "stderr": _trimmed(run.stderr[-MOST_SHOWN:]),  # the end of a traceback is what matters
    }


def _trimmed(text: str, most: int = MOST_SHOWN) -> str:
    """Returns at most `most` characters, without terminal control characters."""
    return "\n".join(map(shown, text[:most].split("\n")))


PUBLIC = "public_tests"  # the column of public tests


class Failure(NamedTuple):
    """A public test that a program failed."""

    test: str  # with its input and what is expected
    verdict: str  # judge/__main__.py lists them
    why: str


def first_failures(texts: Sequence[str], rows: Sequence[dict], most: int) -> list[Failure | None]:
    """Returns the first public test that the program in each text fails; None if it passes all of them.

    The public tests are run alone: of the hidden ones, which the reward runs, nothing is known here. Each part of a
    failure has `most` characters at most.
    """
    programs = [public_task(row).program(last_code(text)) for text, row in zip(texts, rows, strict=True)]
    return [_failure(*pair, most) for pair in zip(programs, shared().judge(programs), strict=True)]


def _failure(program: Program, verdict: ProgramVerdict, most: int) -> Failure | None:
    number = next((i for i, test in enumerate(verdict.tests) if test.verdict != "pass"), None)
    if number is None:
        return None
    if program.stdio:
        stdin, stdout = program.stdio[number]
        test = f"input:\n{stdin.rstrip()}\nexpected output:\n{stdout.rstrip()}"
    else:
        test = program.tests[number]
    kind, why = verdict.tests[number]
    return Failure(_trimmed(test, most), kind, _trimmed(why, most))


def public_task(row: dict, place: object = "a row") -> CodeTask:
    """Returns the task of a row with its public tests alone. Raises ConfigError where it has none."""
    tests = row.get(PUBLIC)
    if not isinstance(tests, list) or not tests:
        near = did_you_mean(PUBLIC, row) or f"; it has {', '.join(row)}"
        raise ConfigError(f"prompts.feedback: no list of tests in column '{PUBLIC}' of {place}{near}")
    kind = "stdio" if isinstance(tests[0], dict) else "tests"
    return _task({**row, "tests": None, "stdio": None, kind: tests}, f"column '{PUBLIC}' of {place}")


def check_public(rows: Sequence[dict], places: Sequence[object]) -> None:
    """Raises ConfigError where a row has no public tests, or one that asks what a hidden one asks, found by running."""
    publics = [public_task(row, place) for row, place in zip(rows, places, strict=True)]
    tasks = [_task(row, place) for row, place in zip(rows, places, strict=True)]
    overlaps = list(zip(asked_twice(tasks, publics, shared()), places, strict=True))
    both = [f"{questions[0][:80]!r} ({place})" for (questions, _), place in overlaps if questions]
    if both:
        raise ConfigError(
            f"prompts.feedback: {len(both)} of {len(rows)} rows have a public test that asks what a "
            f"hidden one asks: {'; '.join(both[:3])}. Remove it from one of the two columns"
        )
    if unseen := [place for (_, is_seen), place in overlaps if not is_seen]:
        _log.warning(
            "prompts.feedback: in %d of %d rows (first %s) no calls are seen in the hidden or in the public "
            "tests, so that only equal texts are recognised; give these rows a solution",
            *(len(unseen), len(rows), unseen[0]),
        )


def _check(rows: Sequence[dict], places: Sequence[object]) -> None:
    """Raises ConfigError for the first row that is no task, and for rows whose tests cannot tell right from wrong."""
    flaws = []
    for row, place in zip(rows, places, strict=True):
        task = _task(row, place)
        # fields that training does not use are not checked
        judging = task.model_copy(update={"solution": "", "wrong": []})
        if sentences := static_problems(judging):
            flaws.append(f"{sentences[0]} ({place})")
    if flaws:
        text = "; ".join(flaws[:3])
        raise ConfigError(
            f"dataset: the tests of {len(flaws)} of {len(rows)} rows cannot be relied on: {text}. Fix these rows, or "
            "separate them from the others with data/check_code_tasks.py FILE --clean OUT"
        )


def _task(row: dict, place: object = "a row") -> CodeTask:
    """Returns the task of a row. Raises ConfigError where it is none, or where its entry points cannot be inferred."""
    keys = {key: row[key] for key in CodeTask.model_fields if key != "prompt" and row.get(key) is not None}
    text = json.dumps(keys, sort_keys=True, default=str)
    task, mistakes = _read_task(text)
    if mistakes:
        raise ConfigError(
            f"dataset: {place} is not a programming task: {'; '.join(mistakes)}. Fix the row {text[:80]}..., or find "
            "all such rows with data/check_code_tasks.py"
        )
    return task


@lru_cache(maxsize=10_000)  # a group repeats its row
def _read_task(row: str) -> tuple[CodeTask | None, list[str]]:
    task, mistakes = read_task({"prompt": "-", **json.loads(row)})
    if task is not None and not task.stdio and not task.callables:
        mistakes.append("entry_points: cannot be inferred from the tests; declare them")
    return task, mistakes


@register_reward("code_tests", **_hooks(last_code))
def code_tests(completions, rows) -> list[Judged]:
    """Returns the share of the tests that the last block of Python passes, regardless of the text around it."""
    verdicts = shared().judge(
        [_task(row).program(last_code(text)) for text, row in zip(completions, rows, strict=True)]
    )
    return [Judged({"tests": v.pass_rate}, v.passed, _about(v), v.scored) for v in verdicts]


@register_reward("code", **_hooks(lambda text: well_formed_code(text, needs_marker=False)))
def code(
    completions,
    rows,
    well_formed,
    *,
    final_answer="required",
    conciseness=0.2,
    style=0.05,
    format_penalty=0.02,
    timeout_penalty=0.05,
) -> list[Judged]:
    """Returns the share of tests passed and a bonus for short solutions, after a format gate; 1 at most.

    The gate requires, thinking aside, exactly one fenced block, marked as Python; and where `final_answer` is
    "required", "final answer:" or a quoted `final_answer` after it. A text that fails the gate, or was cut off, is
    malformed and earns `-format_penalty - timeout_penalty`, less than any program; a text that passes it earns

        tests        the share of the tests that pass, times what the two bonuses leave of 1
        conciseness  this much if all pass and there are at most 200 words, thinking aside; falls to 0 at 500 words
        style        this much for the marker, where `final_answer` is "rewarded"; otherwise there is no such part
        timeout      `-timeout_penalty` if a test ran out of time
    """
    if final_answer not in _MARKER:
        raise ConfigError(f"reward.options.final_answer: got '{final_answer}', expected one of {', '.join(_MARKER)}")
    style = style if final_answer == "rewarded" else 0.0
    sources = [
        well_formed_code(text, final_answer == "required") if is_formed else None
        for text, is_formed in zip(completions, well_formed, strict=True)
    ]
    programs = [_task(row).program(source) for source, row in zip(sources, rows, strict=True) if source is not None]
    verdicts = iter(shared().judge(programs))

    def judged(text: str, verdict: ProgramVerdict) -> Judged:
        parts = {"tests": verdict.pass_rate * (1 - conciseness - style)}
        parts["conciseness"] = conciseness * _shortness(text) if verdict.passed else 0.0
        if style:
            parts["style"] = style * (well_formed_code(text, True) is not None)
        parts["timeout"] = -timeout_penalty * any(test.verdict == "timeout" for test in verdict.tests)
        return Judged({**parts, "format": 0.0}, verdict.passed, _about(verdict), verdict.scored, "")

    refused = "not in the required format"
    malformed = Judged({"format": -format_penalty - timeout_penalty}, False, refused, malformed=refused)
    return [
        malformed if source is None else judged(text, next(verdicts))
        for text, source in zip(completions, sources, strict=True)
    ]

"""The sandbox as a reward of TRL, verl and verifiers, and as a metric of lm-eval: each reads a row's own tests.

A text submits its last fenced block, or all of itself if it has none. It earns the share of its tests that pass; None
where the tests cannot be used or the sandbox itself has failed, which is no verdict of zero. All calls of a process
share one sandbox, whose verdicts are kept; a forked process has its own. docs/judge.md shows each adapter in use.
"""

import contextlib
import functools
import importlib.util
import json
import logging
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from judge.errors import ConfigError
from judge.parsing import last_code
from judge.pool import Sandbox
from judge.sources import program_for
from judge.worker import Program, ProgramVerdict

Tests = Sequence[str] | str
_log = logging.getLogger("rematch.sandbox")
JUDGE_SECONDS = 1.0  # of processor time for a program of the benchmark, which waits for time limits most of all


def scores(
    texts: Sequence[str], tests: Sequence[Tests], entry_points: Sequence[Sequence[str] | str | None] | None = None
) -> list[float | None]:
    """Returns the share of passed tests of each text, or None, with one warning for each reason.

    `tests`: for each text its own, as a list of pieces of Python, as JSON of one, or as one text. `entry_points`: what
    they use of the program, where they do not say it themselves. docs/judge.md has what is understood.
    """
    names = [None] * len(texts) if entry_points is None else entry_points
    read = [_program(*row) for row in zip(map(last_code, texts), tests, names, strict=True)]
    for problem in (problem for problem in read if isinstance(problem, str)):
        _warn(problem)
    verdicts = iter(_sandbox(os.getpid()).judge([program for program in read if isinstance(program, Program)]))
    return [_score(next(verdicts)) if isinstance(program, Program) else None for program in read]


def problem_of(tests: Tests, entry_points: Sequence[str] | str | None = None) -> str:
    """Returns why a row's tests cannot be used, "" if they can: a data set is filtered by it before training."""
    program = _program("", tests, entry_points)
    return program if isinstance(program, str) else ""


def _program(source: str, tests: Tests, entry_points: Sequence[str] | str | None) -> Program | str:
    """Returns a program with its tests, or why it cannot be judged by them."""
    try:
        return program_for(source, _read(tests), [entry_points] if isinstance(entry_points, str) else entry_points)
    except ConfigError as error:
        return str(error)


def _score(verdict: ProgramVerdict) -> float | None:
    odd = [test.detail for test in verdict.tests if test.verdict in ("unsupported_test", "infra_error")]
    if odd:
        _warn(re.sub(" at 0x[0-9a-f]+", "", odd[0]))
    return None if odd else verdict.pass_rate


@functools.lru_cache(maxsize=1000)
def _warn(why: str) -> None:
    """Warns once of each reason."""
    _log.warning("no score, where a test cannot be used: %s", why)


def judge(source: str, tests: Sequence[str], entry_points: Sequence[str]) -> float | None:
    """Returns the score of a bare program, as a judge for `--benchmark`."""
    program = replace(program_for(source, tests, entry_points), timeout_s=JUDGE_SECONDS)
    [verdict] = _sandbox(os.getpid()).judge([program])
    return verdict.pass_rate if verdict.scored else None


def trl_reward(completions: Sequence[Any], tests: Sequence[Tests], **columns: Any) -> list[float | None]:
    """Returns rewards for `GRPOTrainer(reward_funcs=trl_reward)`, by the column `tests` of the data set."""
    return scores(list(map(_text_of, completions)), tests, _names_in(columns))


def verl_score(data_source: str, solution_str: str, ground_truth: Any, extra_info: Any = None, **options: Any) -> float:
    """Returns a score for verl's `custom_reward_function`, by the tests in `reward_model.ground_truth`.

    verl knows no missing score: where there is none, this raises RuntimeError. `extra_info` may have the entry points.
    """
    [score] = scores([solution_str], [ground_truth], [_names_in(extra_info or {})])
    if score is None:
        raise RuntimeError(
            "the sandbox gives no score, which is no score of zero: see its warning; leave rows out of the data for "
            "which `problem_of(tests)` is not empty"
        )
    return score


def verifiers_reward(completion: Any, info: dict, **state: Any) -> float:
    """Returns a reward for `verifiers.Rubric(funcs=[verifiers_reward])`, by `info["tests"]` of the row.

    Raises RuntimeError where there is none, which verifiers itself logs and counts as 0.
    """
    return verl_score("", _text_of(completion), info["tests"], info)


def lm_eval_results(doc: dict, results: Sequence[Any]) -> dict[str, float]:
    """Returns the metric `passed` of a row for lm-eval's `process_results`, {} without a score; by its `tests`."""
    texts = results[0] if isinstance(results[0], list) else results  # a filter may keep several samples
    texts = [text if last_code(text) else f"{text}\n```" for text in texts]  # a stop text has cut the fence off
    values = scores(texts, [doc["tests"]] * len(texts), [_names_in(doc)] * len(texts))
    return {} if None in values else {"passed": sum(score == 1 for score in values) / len(values)}


def _text_of(completion: Any) -> str:
    """Returns a text, or that of the last message; "" if this has none, as one that only calls a tool."""
    content = completion if isinstance(completion, str) or not completion else completion[-1].get("content")
    if not content:
        return ""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)


def _names_in(row: dict) -> Any:
    return row["entry_points"] if row.get("entry_points") is not None else row.get("entry_point")


def _read(tests: Tests) -> Tests:
    """Returns tests; a text that is a list of JSON is read as one, which is how tables of text keep lists."""
    parsed = tests
    if isinstance(tests, str) and tests.lstrip().startswith("["):
        with contextlib.suppress(ValueError):
            parsed = json.loads(tests)
    if isinstance(parsed, str):
        return parsed
    pieces = list(parsed) if isinstance(parsed, Iterable) else [parsed]  # an array, in rows of a parquet file
    if isinstance(parsed, dict) or not all(isinstance(test, str) for test in pieces):
        raise ConfigError(f"tests: got {str(parsed)[:60]}, expected pieces of Python with asserts")
    return pieces


@functools.lru_cache(maxsize=1)
def _sandbox(process: int) -> Sandbox:
    """Returns the sandbox of a process: one does not survive a fork."""
    return Sandbox(numpy=importlib.util.find_spec("numpy") is not None)

"""The sandbox as a reward of TRL, verl and verifiers, and as a metric of lm-eval: each reads a row's own tests.

A text submits its last fenced block, or all of itself if it has none. It earns the share of its tests that pass; None
where the sandbox itself has failed, which is no verdict of zero. All calls of a process share one sandbox, whose
verdicts are kept; a forked process has its own. docs/judge.md shows each adapter in use.
"""

import functools
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lib.core.errors import ConfigError
from lib.sandbox.pool import Sandbox
from lib.sandbox.sources import program_for
from lib.text.parsing import last_code

JUDGE_SECONDS = 1.0  # of processor time for a program of the benchmark, which waits for time limits most of all


def scores(texts: Sequence[str], tests: Sequence[Sequence[str] | str]) -> list[float | None]:
    """Returns the share of passed tests of each text, or None.

    `tests`: for each text its own, as a list of pieces of Python with asserts, as JSON of one, or as one text of them.
    Raises ConfigError where there is no test, or something else.
    """
    pairs = zip(texts, tests, strict=True)
    programs = [program_for(last_code(text), _read(own)) for text, own in pairs]
    verdicts = _sandbox(os.getpid()).judge(programs)
    return [verdict.pass_rate if verdict.scored else None for verdict in verdicts]


def judge(source: str, tests: Sequence[str], entry_points: Sequence[str]) -> float | None:
    """Returns what a bare program scores, as a judge for `--benchmark`."""
    program = replace(program_for(source, tests, entry_points), timeout_s=JUDGE_SECONDS)
    [verdict] = _sandbox(os.getpid()).judge([program])
    return verdict.pass_rate if verdict.scored else None


def trl_reward(completions: Sequence[Any], tests: Sequence[Sequence[str]], **columns: Any) -> list[float | None]:
    """Returns rewards for `GRPOTrainer(reward_funcs=trl_reward)`, by the column `tests` of the data set."""
    return scores([text if isinstance(text, str) else text[-1]["content"] for text in completions], tests)


def verl_score(data_source: str, solution_str: str, ground_truth: Any, extra_info: Any = None, **options: Any) -> float:
    """Returns a score for verl's `custom_reward_function`, by the tests in `reward_model.ground_truth`.

    verl knows no missing score: where the sandbox has failed, this raises RuntimeError.
    """
    [score] = scores([solution_str], [ground_truth])
    if score is None:
        raise RuntimeError("the sandbox gave no verdict, which is no score of zero: look at its log")
    return score


def verifiers_reward(completion: Any, info: dict, **state: Any) -> float:
    """Returns a reward for `verifiers.Rubric(funcs=[verifiers_reward])`, by `info["tests"]` of the row."""
    return verl_score("", completion if isinstance(completion, str) else completion[-1]["content"], info["tests"])


def lm_eval_results(doc: dict, results: Sequence[Any]) -> dict[str, float]:
    """Returns the metric `passed` of a row for lm-eval's `process_results`, by the column `tests`."""
    texts = results[0] if isinstance(results[0], list) else results  # a filter may keep several samples
    return {"passed": sum(verl_score("", text, doc["tests"]) == 1 for text in texts) / len(texts)}


def _read(tests: Sequence[str] | str) -> Sequence[str] | str:
    """Returns tests; a text that begins like a list is read as JSON, which is how tables of text keep lists."""
    found = json.loads(tests) if isinstance(tests, str) and tests.lstrip().startswith("[") else tests
    if not isinstance(found, str) and not all(isinstance(test, str) for test in found):
        raise ConfigError(f"tests: got {str(found)[:60]}, expected pieces of Python with asserts")
    return found


@functools.lru_cache(maxsize=1)
def _sandbox(process: int) -> Sandbox:
    """Returns the sandbox of a process: one does not survive a fork."""
    return Sandbox()

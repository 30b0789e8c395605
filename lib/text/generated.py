"""Tasks that the optional package reasoning-gym generates, and its scores of answers to them.

Both come from a process that is killed if it takes too long (lib/core/killable.py): a generator or a scorer is other
people's code, and some scorers parse or run what the model wrote. A row holds how it is made again, in the column
`entry`, because some scorers need more of it than JSON keeps.
"""

import importlib.util
import json
import os
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from lib.core.config import GENERATED
from lib.core.errors import ConfigError
from lib.core.killable import ProcessJob, ProcessKilled, ProcessPool, Refused, Unusable
from lib.core.registry import did_you_mean

ROWS = 500  # to train on, unless options.size says otherwise
APART = 1_000_000  # between the seeds of training and held-out rows: most generators seed row i by seed + i
_SECONDS = 60.0  # of wall time, on a busy machine; what bounds a request is its CPU time
# without -I, which ignores PYTHONHASHSEED: some tasks iterate over sets, and rows must be the same in every run
TASK = ProcessJob("lib.text.generator:generated_task", "reasoning_gym", 8 << 30, 5, requests=100_000, options=("-s",))
_NONSENSE = "no answer to anything"
_CONSTANTS = ("nan", "0", "inf")  # which comparisons within a tolerance may take for any number
_ROWS_ASKED = 8


def generated_splits(name: str, options: Mapping[str, Any], held_out: int) -> dict[str, list[dict[str, Any]]]:
    """Returns the train and test rows of `reasoning_gym:TASK`. Raises ConfigError for any mistake.

    Held-out rows have the seeds from options.seed on, training rows those from a million later on: however many there
    are of either, they share none, and the former stay the same.
    """
    task, given = name.removeprefix(GENERATED), dict(options)
    size, seed = given.pop("size", ROWS), given.pop("seed", 0)
    for key, value, least in (("size", size, 1), ("seed", seed, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < APART:
            raise ConfigError(
                f"dataset.options.{key}: got {value!r}, expected a whole number from {least} to {APART - 1}"
            )
    counts = {"train": (size, seed + APART), "test": (held_out, seed)}
    return {
        split: [_row(task, given | {"seed": first, "size": count}, index) for index in range(count)]
        for split, (count, first) in counts.items()
    }


def _row(task: str, options: dict[str, Any], index: int) -> dict[str, Any]:
    try:
        made = _ask(task, options, index)
    except ProcessKilled as error:
        raise ConfigError(
            f"dataset.name: '{GENERATED}{task}' took too long, or too much memory, for row {index + 1}: give easier "
            "dataset.options"
        ) from error
    except Refused as error:
        names = _ask("", {}, 0)  # of all tasks
        if task not in names:
            raise ConfigError(
                f"dataset.name: reasoning-gym has no task '{task}'{did_you_mean(task, names, '.')} "
                f"Known: {', '.join(names)}"
            ) from error
        raise ConfigError(
            f"dataset.options: '{GENERATED}{task}' refuses {options} ({error}): give what its config takes"
        ) from error
    answer = "" if made["answer"] is None else str(made["answer"])
    entry = json.dumps([task, options, index], sort_keys=True)  # text, as every source can hold it
    return {"question": made["question"], "answer": answer, "entry": entry}


@lru_cache(maxsize=10_000)  # a group repeats its answers, also those for which a scorer has to be killed
def generated_score(entry: str, answer: str) -> float:
    """Returns the scorer's score of an answer, within 0 and 1; 0 where the scorer raises, or has to be killed."""
    try:
        score = _ask(*json.loads(entry), answer)
    except (ProcessKilled, Refused):
        return 0.0
    return min(1.0, max(0.0, score)) if isinstance(score, float) else 0.0


def scorer_problem(rows: Sequence[Mapping[str, str]]) -> str:
    """Returns why the scorer of a task's rows cannot be relied on; "" if it can.

    It must pay the first row's answer, and not any text; nor may it pay the same constant on all of the first 8 rows.
    """
    answer = rows[0]["answer"]
    if answer and generated_score(rows[0]["entry"], answer) < 1:
        return f"its scorer does not pay its own answer {answer[:80]!r}"
    for text in (_NONSENSE, *_CONSTANTS):
        probed = [row for row in rows[: 1 if text == _NONSENSE else _ROWS_ASKED] if row["answer"] != text]
        if probed and all(generated_score(row["entry"], text) == 1 for row in probed):
            return f"its scorer pays {text!r}"
    return ""


def _ask(*request: Any) -> Any:
    with _lock:
        try:
            return _pool(os.getpid()).run_now(*request)
        except Unusable as error:
            raise ConfigError(
                "dataset.name: reasoning-gym does not start: install its pinned version, requirements-tasks.txt"
            ) from error


@lru_cache(maxsize=1)
def _pool(_pid: int) -> ProcessPool:
    """Starts the process: a forked copy of the trainer must not share its parent's."""
    if importlib.util.find_spec("reasoning_gym") is None:
        raise ConfigError(
            "dataset.name: reasoning_gym:TASK needs the package reasoning-gym: pip install -r requirements-tasks.txt"
        )
    return ProcessPool(TASK, 1, _SECONDS)


_lock = threading.Lock()

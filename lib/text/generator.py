"""What of generated tasks runs in a process of its own (lib/core/killable.py): a generator, and its scorer."""

import functools
import json
from typing import Any


def generated_task(name: str, options: dict[str, Any], index: int, answer: str | None = None) -> Any:
    """Returns row `index` of a generated task, or with an answer to it the score that the task's own scorer gives.

    The scorer reads the row as it was made, not as JSON left it: some compare tuples. A name of "" asks for all names.
    """
    from reasoning_gym.factory import DATASETS

    if not name:
        return sorted(DATASETS)
    data = _generator(name, json.dumps(options))
    row = data[index]
    return row if answer is None else float(data.score_answer(answer, row))


@functools.lru_cache(maxsize=8)
def _generator(name: str, options: str) -> Any:
    from reasoning_gym.factory import create_dataset

    return create_dataset(name, **json.loads(options))

"""The judge of a data set: one for all of its rows, or one for each task, chosen row by row."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from lib.core.config import Reward
from lib.core.errors import ConfigError
from lib.core.interrupts import Overtime
from lib.core.registry import did_you_mean
from lib.rewards.judge import Judge, Verdict
from lib.text.data import Splits, with_targets

T = TypeVar("T")
TASK = "task"  # the column that names the task of a row


class JudgeByTask(Judge):
    """Gives each row to the judge of its task; parts of a reward bear the name of the task, `math/exact_match`.

    `columns` are those of the data set, or those of each task's rows by task.
    """

    def __init__(
        self,
        reward: Reward,
        columns: Sequence[str] | Mapping[str, Sequence[str]] = (),
        target_field: str | None = None,
    ):
        by_task = columns if isinstance(columns, Mapping) else dict.fromkeys(reward.by_task, columns)
        self.columns = tuple(dict.fromkeys(name for names in by_task.values() for name in names))
        self.target_field = target_field
        self._judges: dict[str, Judge] = {}
        mistakes = []
        for task, settings in reward.by_task.items():
            alone = Reward(**{key: getattr(settings, key) for key in type(settings).model_fields})
            try:
                self._judges[task] = Judge(alone, by_task.get(task, ()), target_field)
            except ConfigError as error:
                mistakes += [f"reward.by_task.{task}: {line}" for line in str(error).splitlines()]
        if mistakes:
            raise ConfigError("\n".join(mistakes))
        self.reward_name = " + ".join(dict.fromkeys(judge.reward_name for judge in self._judges.values()))
        self._overtime = Overtime(f"reward '{self.reward_name}'", reward.timeout_s)

    def _judge(
        self,
        texts: list[str],
        rows: Sequence[Mapping[str, Any]],
        questions: Sequence[Any] | None,
        finished: Sequence[bool],
    ) -> list[Verdict]:
        """Returns one `Verdict` per text, by the judge of its row's task; each task's rewards are called once."""

        def judged(judge: Judge, indexes: list[int]) -> list[Verdict]:
            lists: tuple[Any, ...] = texts, rows, questions, finished
            return judge._judge(*(values and [values[index] for index in indexes] for values in lists))

        return [
            verdict._replace(
                task=task, components={f"{task}/{part}": value for part, value in verdict.components.items()}
            )
            for task, verdict in zip(map(self._task_of, rows), self._each(rows, judged), strict=True)
        ]

    def _task_of(self, row: Mapping[str, Any], place: Any = "") -> str:
        """Returns the task of a row. Raises ConfigError where it names none that has a reward."""
        task = row.get(TASK)
        if task in self._judges:
            return str(task)
        where = f" ({place})" if place else ""
        tasks = ", ".join(self._judges)
        if TASK not in row:
            near = did_you_mean(TASK, row)
            raise ConfigError(f"reward.by_task: no column '{TASK}'{where}{near}; known tasks: {tasks}")
        raise ConfigError(
            f"reward.by_task: no reward for the task {task!r} of a row{where}{did_you_mean(str(task), self._judges)}; "
            f"known: {tasks}: add it"
        )

    def judge_of(self, row: Mapping[str, Any]) -> Judge:
        """Returns the judge of a row's task. Raises ConfigError where it names none that has a reward."""
        return self._judges[self._task_of(row)]

    def _each(self, rows: Sequence[Mapping[str, Any]], ask: Callable[[Judge, list[int]], list[T]]) -> list[T]:
        """Returns for each row what `ask` returns for the judge of its task and the indexes of all rows of that."""
        indexes = defaultdict(list)
        for index, row in enumerate(rows):
            indexes[self._task_of(row)].append(index)
        results = {}
        for task, positions in indexes.items():
            results |= dict(zip(positions, ask(self._judges[task], positions), strict=True))
        return [results[index] for index in range(len(rows))]

    @property
    def begin(self) -> Callable[[str, dict], None] | None:
        """Returns a function that lets rewards begin judging a prediction and its row early; None if none can."""
        able = {task: begin for task, judge in self._judges.items() if (begin := judge.begin)}

        def begin_of_task(text: str, row: dict) -> None:
            if begin := able.get(self._task_of(row)):
                begin(text, row)

        return begin_of_task if able else None

    def explain(self, texts: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Returns the rewards' explanations of wrong predictions; {} where they have none."""

        def explained(judge: Judge, indexes: list[int]) -> list[dict[str, Any]]:
            return judge.explain([texts[index] for index in indexes], [rows[index] for index in indexes])

        return self._each(rows, explained)

    @property
    def functions(self) -> list[Callable]:
        """Returns all callables in use."""
        return [function for judge in self._judges.values() for function in judge.functions]

    @property
    def needs_targets(self) -> bool:
        """Returns whether a reward compares with right answers."""
        return any(judge.needs_targets for judge in self._judges.values())

    def check(self, rows: Sequence[Mapping[str, Any]], places: Sequence[Any] = ()) -> None:
        """Lets the rewards check all rows of their tasks before training starts."""
        places = places or [f"row {number}" for number in range(1, len(rows) + 1)]
        for task, judge in self._judges.items():
            pairs = [pair for pair in zip(rows, places, strict=True) if self._task_of(*pair) == task]
            if pairs:
                judge.check([row for row, _ in pairs], [place for _, place in pairs])

    def target_problem(self, row: Mapping[str, Any], place: Any, compares: bool = True) -> str:
        """Returns why no prediction could ever match the target of a row; "" where one could."""
        return self._judges[self._task_of(row, place)].target_problem(row, place, compares)


def judge_of_rows(reward: Reward, splits: Splits, target: str | None, compares: bool = True) -> tuple[Judge, Splits]:
    """Returns the judge for a data set, and those of its rows that have a right answer in the column `target`.

    With `compares`, the answer must be comparable even if no reward compares with it. Raises ConfigError, RewardError.
    """
    judge = _judge_of(reward, splits.train, target)
    if judge.needs_targets and not target:
        raise ConfigError(
            f"dataset.target_field: reward '{judge.reward_name}' compares with right answers; name their column"
        )
    if target:
        compares = compares or judge.needs_targets
        splits = with_targets(splits, lambda row, place: judge.target_problem(row, place, compares))
    judge.check(splits.train + splits.test, splits.train_places + splits.test_places)
    return judge, splits


def _judge_of(reward: Reward, rows: Sequence[Mapping[str, Any]], target: str | None) -> Judge:
    """Returns the judge of these rows. Of a task that has rows, a reward may ask for what one of them has."""
    if not reward.by_task:
        whole = next((row for row in rows if row.get(target) is not None), rows[0])
        return Judge(reward, list(whole), target)
    columns: dict[str, dict[str, None]] = {}
    for row in rows:
        filled = (name for name, value in row.items() if value is not None)
        columns.setdefault(str(row.get(TASK)), {}).update(dict.fromkeys(filled))
    every = list(dict.fromkeys(name for row in rows[:1] for name in row))
    return JudgeByTask(reward, {task: list(columns.get(task, every)) for task in reward.by_task}, target)

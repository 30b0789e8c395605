"""Judges texts: joins rewards, a format, extractors and an equality into one verdict per text."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from judge import pool
from judge.parsing import peel, unchanged
from lib.core import registry
from lib.core.config import Reward, weights_of
from lib.core.errors import ConfigError, Overdue, RewardError
from lib.core.interrupts import Overtime
from lib.core.registry import Judged, blamed_on, did_you_mean
from lib.rewards import crossword, formula, programs, rush_hour, tags  # noqa: F401  (they register themselves)
from lib.rewards.function import SUPPLIED, RewardFunction
from lib.text.formats import PLACES

MOST_EXPLAINED = 8  # predictions per step or evaluation
CUT = "cut off by the token limit"  # what is malformed about a text that does not end, whatever it has so far
_NEEDS_TARGETS = {"targets", "target_answers", "right"}


class Verdict(NamedTuple):
    """The verdict on one prediction. Accuracy counts `match`, not `reward`."""

    reward: float
    components: dict[str, float]  # sums to `reward`
    match: bool  # well-formed, and the right answer
    answer: str  # extracted from the prediction; "" when nothing was found
    scored: bool = True  # False: the reward could not judge, which is not a reward of 0
    about: str = ""  # a line from the reward, for the log
    malformed: str = ""  # why it is not well-formed, in a few words
    task: str = ""  # of its row, where each task has its own reward

    @property
    def well_formed(self) -> bool:
        """True if the text has the declared format or, where none is declared, an answer.

        A reward that decides the form by itself overrules the format (`Judged.malformed`).
        """
        return not self.malformed

    @property
    def is_blank(self) -> bool:
        """True if the answer is empty, or has only blanks and wrappers."""
        return not peel(self.answer)

    def unchanged_from(self, before: "Verdict") -> bool:
        """True if an attempt left its answer as it was, in whatever spelling.

        False where only one of the two is right: both 18 dollars and 18 cents spell 18, and programs that differ in `a`
        and `A` are two.
        """
        is_judged = self.scored and before.scored
        return not (is_judged and self.match != before.match) and unchanged(self.answer, before.answer)

    def repeats(self, earlier: Iterable["Verdict"]) -> bool:
        """True if the answer is one of the earlier ones, in whatever spelling; False for a blank one."""
        return not self.is_blank and any(map(self.unchanged_from, earlier))


def text_of(value: Any) -> str:
    """Returns the text of a string, a chat (`[{"role", "content"}]`), its content parts, or a list of these, by lines.

    In a chat only the assistant's messages count: what a tool or a user wrote is not the model's answer. None is "".
    Raises ConfigError for anything else but a number.
    """
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, Mapping):
        if value.get("role", "assistant") != "assistant":
            return ""
        return text_of(value.get("content", value.get("text")))
    if isinstance(value, list | tuple):
        return "\n".join(filter(None, map(text_of, value)))
    raise ConfigError(f"got a {type(value).__name__} as text: expected a string or a list of chat messages")


def _is_one(value: Any) -> bool:
    """False for what `text_of` joins or loses: several texts that are no chat, or an object that is no part of one."""
    if isinstance(value, Mapping):
        return not value.keys().isdisjoint(("role", "content", "text"))
    parts = value if isinstance(value, list | tuple) else ()
    return all(map(_is_one, parts)) and (len(parts) < 2 or all(isinstance(part, Mapping) for part in parts))


def prepare(config: Any, say: Callable[[str], None] = print) -> None:
    """Configures the sandbox and calls the `prepare` hooks of a config's rewards. Raises ConfigError, SandboxError."""
    worker = config.sandbox.worker and registry.workers.get(config.sandbox.worker)
    pool.configure(**config.sandbox.model_dump() | {"worker": worker})
    names = config.reward.names if config.reward else ()
    starts = {registry.rewards.hooks(name).prepare: name for name in names}
    for start, name in starts.items():
        if start is None:
            continue
        with blamed_on(f"reward '{name}'", " in its prepare()"):
            note = start()
        if os.environ.get("RANK", "0") == "0":  # only one process prints
            say(note)


class Judge:
    """Joins rewards, a format, extractors and an equality by name, checked against the columns of a data set.

    `reward` is a config's section (docs/config.md), `target_field` the column of the right answers, if there is one.
    Raises ConfigError at construction for a parameter of the reward that nothing can fill, an option that it does not
    have, a format that is paid for and not declared, or a package that the equality lacks.
    """

    def __init__(self, reward: Reward, columns: Sequence[str] = (), target_field: str | None = None):
        if reward.by_task:
            raise ConfigError("reward.by_task: one judge cannot judge several tasks: use JudgeByTask, of routing")
        for (key, *_), problem in reward.conflicts():
            raise ConfigError(f"reward.{key}: {problem}")
        self._weights = weights_of(reward.fn)
        self.reward_name = " + ".join(self._weights)
        self.columns = tuple(columns)
        self.format, self.target_field = reward.format, target_field
        self._place = PLACES.get(reward.format)
        self._extractor_name = reward.answer_extractor
        in_place = "identity" if self.format != "free" else reward.answer_extractor
        self._target_extractor_name = reward.target_extractor or in_place
        self._overtime = Overtime(f"reward '{self.reward_name}'", reward.timeout_s)
        self._extractor = registry.extractor_of_predictions(reward.answer_extractor)
        self._target_extractor = registry.extractors.get(self._target_extractor_name)
        self._accepts_cut = reward.accept_cut
        self._matcher_name = reward.match
        self._matcher = registry.matchers.get(reward.match)
        by_name = isinstance(reward.fn, Mapping)
        options: Mapping[str, Any] = reward.options if by_name else {str(reward.fn): reward.options}
        of = {name: given for name, given in options.items() if isinstance(given, Mapping)}  # else: _check_options
        self._rewards = [RewardFunction(name, self.columns, of.get(name, {})) for name in self._weights]
        self._check_options(options, by_name)
        self._match("x + 1", "1 + x")  # finds a missing package now, not at the first answer

    def __call__(
        self,
        texts: Sequence[str],
        rows: Sequence[Mapping[str, Any]],
        questions: Sequence[Any] | None = None,
        finished: Sequence[bool] | None = None,
    ) -> list[Verdict]:
        """Returns one `Verdict` per text, each written for the row of the data set, and the question, at its index.

        `finished` is false for a text that the token limit cut off; None if none was. Such a text is malformed, and
        earns nothing above zero, unless `reward.accept_cut` is set.

        Raises ConfigError for a missing column, RewardError where a reward, extractor or equality raises or takes too
        long, or a reward returns anything but a finite number for each text.
        """
        for name, values in {"rows": rows, "questions": questions, "finished": finished}.items():
            if values is not None and len(values) != len(texts):
                raise ValueError(f"{name}: {len(values)} values for {len(texts)} texts")
        if not texts:
            return []
        try:
            with self._overtime.watched():
                return self._judge(list(texts), rows, questions, finished or [True] * len(texts))
        except Overdue as error:
            raise RewardError(f"{error} for {len(texts)} samples") from error

    def _target_of(self, row: Mapping[str, Any]) -> Any:
        return row[self.target_field] if self.target_field else ""

    def _judge(
        self,
        texts: list[str],
        rows: Sequence[Mapping[str, Any]],
        questions: Sequence[Any] | None,
        finished: Sequence[bool],
    ) -> list[Verdict]:
        names = dict.fromkeys(name for row in rows for name in row)  # a row may lack what others have
        columns = {name: [row.get(name) for row in rows] for name in names}
        read = [
            self._read(text, index) if is_finished or self._accepts_cut else ("", CUT)
            for index, (text, is_finished) in enumerate(zip(texts, finished, strict=True))
        ]
        answers, problems = ([part[place] for part in read] for place in (0, 1))
        golds = [text_of(self._target_of(row)) for row in rows]
        gold_answers = [self._target_answer(gold, index) for index, gold in enumerate(golds)]
        lists: dict[str, Any] = columns | {
            "predictions": texts,
            "completions": texts,
            "targets": golds,
            "rows": [dict(row) for row in rows],
            "well_formed": [not problem for problem in problems],
            "prediction_answers": answers,
            "target_answers": gold_answers,
            "match": self._match,
        }
        if questions is not None:
            lists["prompts"] = questions
        same: list[bool | None] = [None] * len(texts)  # None: not compared yet, since formulae cost time
        if any("right" in reward.named for reward in self._rewards):
            lists["right"] = same = [self._match(*pair) for pair in zip(answers, gold_answers, strict=True)]
        judgements = zip(*(reward(lists, columns, texts) for reward in self._rewards), strict=True)
        return [self._score(*case) for case in zip(judgements, answers, problems, gold_answers, same, strict=True)]

    def answer_of(self, row: Mapping[str, Any]) -> str:
        """Returns the right answer of a row, as extracted for comparison."""
        return self.judge_of(row)._target_answer(text_of(self._target_of(row)), 0)

    def secrets(self, row: Mapping[str, Any]) -> list[str]:
        """Returns the right answer of a row, both as written and as extracted for comparison; [] where tests decide."""
        return [text_of(self._target_of(row)), self.answer_of(row)] if self.target_field else []

    def reveals(self, text: str, row: Mapping[str, Any]) -> bool:
        """True if `text` gives away the right answer of a row, as a whole or by what extractors find in it.

        Always False where tests decide.
        """
        if not self.target_field:
            return False
        judge, answer = self.judge_of(row), self.answer_of(row)
        readers = (judge._extractor, *(registry.extractors.get(name) for name in registry.LENIENT))
        return any(judge._match(read(text), answer) for read in readers)

    def judge_of(self, row: Mapping[str, Any]) -> "Judge":
        """Returns the judge of a row's task."""
        return self

    @property
    def begin(self) -> Callable[[str, dict], None] | None:
        """Returns a function that lets rewards begin judging a prediction and its row early; None if none can."""
        able = [reward for reward in self._rewards if reward.hooks.begin]

        def begin(text: str, row: dict) -> None:
            for reward in able:
                reward.begin(text, row)

        return begin if able else None

    def explain(self, texts: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Returns the rewards' explanations of wrong predictions; {} where they have none.

        Only the first MOST_EXPLAINED predictions are explained.
        """
        explanations: list[dict[str, Any]] = [{} for _ in texts]
        some = slice(MOST_EXPLAINED)
        for reward in self._rewards:
            if explain := reward.hooks.explain:
                with blamed_on(f"reward '{reward.name}'", " in its explain()"):
                    for explanation, new in zip(explanations, explain(texts[some], rows[some]), strict=False):
                        explanation |= new
        return explanations

    @property
    def functions(self) -> list[Callable]:
        """Returns all callables in use: the rewards, their hooks, both extractors, the equality."""
        hooks = (hook for reward in self._rewards for hook in filter(callable, vars(reward.hooks).values()))
        rewards = (reward.function for reward in self._rewards)
        return [*rewards, *hooks, self._extractor, self._target_extractor, self._matcher]

    @property
    def needs_targets(self) -> bool:
        """True if a reward compares with right answers."""
        return any(not _NEEDS_TARGETS.isdisjoint(reward.required) for reward in self._rewards)

    def check(self, rows: Sequence[Mapping[str, Any]], places: Sequence[Any] = ()) -> None:
        """Lets the rewards check all rows before training starts. Raises their ConfigError, or RewardError.

        `places` says where each row stands, for messages; () counts rows from 1.
        """
        for check, reward in {reward.hooks.check: reward for reward in self._rewards}.items():
            if check is not None:
                reward.check(rows, places or [f"row {number}" for number in range(1, len(rows) + 1)])

    def target_problem(self, row: Mapping[str, Any], place: Any, compares: bool = True) -> str:
        """Returns why no prediction could ever match the target of a row; "" where one could.

        With `compares` false any target will do. `place` says where the row stands. Raises ConfigError, RewardError.
        """
        field = self.target_field
        if row.get(field) is None:
            near = did_you_mean(field, row) or f"; it has {', '.join(row)}"
            return f"'{field}' is empty" if field in row else f"column '{field}' is missing{near}"
        if row[field] != row[field]:
            return f"'{field}' is NaN"
        if not compares:
            return ""
        if self.needs_targets and not _is_one(row[field]):
            return f"'{field}' is not one text or chat: give it as text, or take this column in a reward of your own"
        try:
            answer = self._target_answer(text_of(row[field]), place)
        except ConfigError as error:
            raise ConfigError(f"dataset.target_field: '{field}' of {place}: {error}") from error
        if answer.strip():
            return ""
        return f"reward.target_extractor '{self._target_extractor_name}' finds none in {str(row[field])[:80]!r}"

    def _check_options(self, options: Mapping[str, Any], by_name: bool) -> None:
        """Raises ConfigError with all mistakes in `reward.options`.

        Rewards check the values of their options themselves: they are called with empty lists.
        """
        mistakes = []
        for name, reward_options in options.items():
            if name not in self._weights:
                near = did_you_mean(name, self._weights) or f"; these are {', '.join(self._weights)}"
                mistakes.append(f"reward.options.{name}: got this, expected the name of a reward of reward.fn{near}")
            elif not isinstance(reward_options, Mapping):
                mistakes.append(
                    f"reward.options.{name}: got {reward_options!r}, expected options of the reward: {{option: value}}"
                )
        for reward in self._rewards:
            mistakes += reward.option_mistakes(f"reward.options.{reward.name}" if by_name else "reward.options")
        if mistakes:
            raise ConfigError("\n".join(mistakes))
        nothing = {name: [] for name in (*SUPPLIED, *self.columns)} | {"match": self._match}
        for reward in self._rewards:
            if reward.options:
                reward(nothing, {}, [])

    def _score(self, judged: Sequence[Judged], answer: str, malformed: str, gold: str, same: bool | None) -> Verdict:
        """Combines what all rewards returned for a prediction into one verdict."""
        refusals = [judgement.malformed for judgement in judged if judgement.malformed is not None]
        may_overrule = len(judged) == 1 and malformed != CUT  # of several rewards, any refusal counts
        if refusals:
            malformed = next(filter(None, refusals if may_overrule else [malformed, *refusals]), "")
            answer = "" if malformed else answer  # as for texts that the format refuses: no answer, no vote
        about = "; ".join(filter(None, (judgement.about for judgement in judged)))
        if not all(judgement.scored for judgement in judged):
            return Verdict(0.0, {}, False, answer, False, about, malformed)
        matches = [judgement.match for judgement in judged if judgement.match is not None]
        if not matches:
            matches = [self._match(answer, gold) if same is None else same]
        components = {  # those of several rewards are named by reward
            part if part == name or len(judged) == 1 else f"{name}/{part}": self._weights[name] * value
            for name, judgement in zip(self._weights, judged, strict=True)
            for part, value in judgement.components.items()
        }
        if malformed and not may_overrule:  # what a reward pays that does not check the format makes up for nothing
            components = {name: min(value, 0.0) for name, value in components.items()}
        match = all(matches) and not malformed
        return Verdict(sum(components.values()), components, match, answer, True, about, malformed)

    def _match(self, prediction: str, target: str) -> bool:
        if not (prediction.strip() and target.strip()):
            return False
        whose, about = f"match '{self._matcher_name}'", f" for {prediction[:80]!r} and {target[:80]!r}"
        with blamed_on(whose, about):
            if (same := self._matcher(prediction, target)) not in (True, False):  # a likeness of 0.3 is not right
                raise RewardError(f"{whose} returned {same!r}{about}: expected True or False")
        return bool(same)

    def _read(self, text: str, index: int) -> tuple[str, str]:
        """Returns the answer in a prediction, and why the text is malformed; at least one of the two is blank."""
        inside, problem = self._place(text) if self._place else (text, "")
        if problem:
            return "", problem
        answer = self._extract(self._extractor, self._extractor_name, inside, index)
        return answer, "" if answer.strip() or self.format != "free" else "no answer found"

    def _target_answer(self, gold: str, whose: Any) -> str:
        return self._extract(self._target_extractor, self._target_extractor_name, gold, whose)

    def _extract(self, extractor: Callable[[str], str], name: str, text: str, whose: Any) -> str:
        """Returns the answer that an extractor finds in a text of `whose`: a sample's number, or the place of a row."""
        whose = f"sample {whose}" if isinstance(whose, int) else whose
        with blamed_on(f"extractor '{name}'", f" for {whose} ({text[:80]!r})"):
            answer = extractor(text)
        if not isinstance(answer, str):
            raise RewardError(f"extractor '{name}' returned {answer!r} for {whose} ({text[:80]!r}): expected a string")
        return answer


def as_trl_reward(judge: Judge) -> Callable[..., list[float | None]]:
    """Returns `judge` as a reward function for TRL's trainers; its `__name__`, the reward's, heads TRL's metrics.

    Raises ConfigError if the right answers are in no column of the judge's data set.
    """
    target = judge.target_field
    if target not in judge.columns and (target or judge.needs_targets):
        raise ConfigError(
            f"target_field: got {target!r}, expected a column of the data set"
            f"{did_you_mean(target, judge.columns, '.')} Columns: {', '.join(judge.columns)}"
        )

    def reward(prompts, completions, **columns) -> list[float | None]:
        if target and target not in columns:
            raise ConfigError(f"target column '{target}' was not passed by TRL; it passed {', '.join(columns)}")
        names = [name for name in judge.columns if name in columns]  # TRL adds its own state
        rows = [{name: columns[name][index] for name in names} for index in range(len(completions))]
        verdicts = judge([text_of(completion) for completion in completions], rows, prompts)
        return [verdict.reward if verdict.scored else None for verdict in verdicts]  # TRL leaves None out, too

    reward.__name__ = "+".join(name.rpartition(".")[2] for name in judge.reward_name.split(" + "))
    return reward

"""Groups: several answers of the policy to one prompt, judged; and the token sequences that training scores."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from lib.clock import phase
from lib.generators import Completion, Turn, native
from lib.model import Policy
from lib.prompts import ChatRenderer
from lib.rewards import Judge, Score, text_of
from lib.rollout import Sequence, Span, memory_explained


@dataclass(frozen=True)
class Answer:
    """One completion and its verdict."""

    completion: Completion
    text: str
    score: Score


@dataclass(frozen=True)
class Asked:
    """One prompt before it is answered."""

    row: dict[str, Any]
    messages: list[dict[str, Any]]
    ids: list[int]  # the messages, as the policy reads them
    number: int = 0  # of the row in its data set
    trained_ids: list[int] | None = None  # the prompt under which the answers are trained, if it is another one
    hint: str = ""  # what a teacher added to the prompt,
    plain: list[dict[str, Any]] | None = None  # and what the messages were without


@dataclass(frozen=True)
class Group:
    """One prompt and the policy's answers to it."""

    asked: Asked
    answers: list[Answer] = field(default_factory=list)

    @property
    def prompt(self) -> list[int]:
        """The ids under which the answers are trained."""
        return self.asked.ids if self.asked.trained_ids is None else self.asked.trained_ids

    @property
    def matches(self) -> list[bool]:
        """Which answers are right; what could not be judged is not."""
        return [answer.score.scored and answer.score.match for answer in self.answers]


@dataclass(frozen=True)
class Limits:
    """How groups are sampled."""

    temperature: float  # 0 is greedy
    max_new_tokens: int
    stop_ids: frozenset[int]
    pad_id: int
    batch_size: int | None = None  # completions decoded at once, at most; None: what memory allows

    def decoding(self, asked: list[Asked], copies: int, seed: int) -> native.Decoding:
        """How `copies` answers to each of some prompts are decoded."""
        count = len(asked) * copies
        return native.Decoding(
            temperature=self.temperature,
            stop_ids=self.stop_ids,
            pad_id=self.pad_id,
            rows=min(count, self.batch_size or count),
            columns=max(len(each.ids) for each in asked) + self.max_new_tokens,
            seed=seed,
        )


class Referee:
    """Who judges texts: a judge, and the column with the right answers, if there is one."""

    def __init__(self, judge: Judge, target_field: str | None):
        self.judge, self.target_field = judge, target_field

    def __call__(self, texts: list[str], rows: list[dict[str, Any]], questions: list[str]) -> list[Score]:
        """The score of each text, written for the row at its place."""
        if not texts:
            return []
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        targets = [row[self.target_field] if self.target_field else "" for row in rows]
        with phase("reward"):
            return self.judge(texts, targets, columns, questions)

    def secrets(self, row: dict[str, Any]) -> list[str]:
        """The right answer of a row, as it stands there and as it is compared; none where tests decide."""
        return (
            [text_of(row[self.target_field]), self.judge.answer_of(row[self.target_field])] if self.target_field else []
        )

    def tells(self, text: str, row: dict[str, Any]) -> bool:
        """Whether the right answer of a row can be read off a text, whatever its format; never where tests decide."""
        return bool(self.target_field) and self.judge.tells(text, row[self.target_field])

    def begin(self, text: str, row: dict[str, Any]) -> None:
        """Lets a reward that works in other processes begin while the model still writes."""
        if self.judge.begin is not None:
            self.judge.begin(text, row)


def question_of(messages: list[dict[str, Any]]) -> str:
    """What was said last in a chat, the texts of its parts where it has parts."""
    content = messages[-1].get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def answer_all(
    policy: Policy,
    prompts: ChatRenderer,
    asked: list[Asked],
    copies: int,
    referee: Referee,
    limits: Limits,
    generator: torch.Generator,
    on_written: Callable[[], None] = lambda: None,
) -> list[Group]:
    """`copies` answers to each prompt, sampled and judged; each is told to `on_written` as soon as it is there."""
    if not asked:
        return []
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    decoding = limits.decoding(asked, copies, seed)

    def begin(path: tuple[int, ...], completion: Completion) -> None:
        on_written()
        referee.begin(prompts.text(completion), asked[path[0]].row)

    turns = {(i,): Turn(each.ids, limits.max_new_tokens, copies) for i, each in enumerate(asked)}
    with memory_explained(decoding):
        written = native.generate(policy, turns, decoding, begin)
    completions = [written[(i, copy)] for i in range(len(asked)) for copy in range(copies)]
    owners = [each for each in asked for _ in range(copies)]
    texts = [prompts.text(completion) for completion in completions]
    scores = referee(texts, [each.row for each in owners], [question_of(each.messages) for each in owners])
    answers = [Answer(*parts) for parts in zip(completions, texts, scores, strict=True)]
    return [Group(each, answers[i * copies : (i + 1) * copies]) for i, each in enumerate(asked)]


def answer_sequences(
    groups: list[Group], numbers: list[list[int]], pays: Callable[[int, list[int]], bool]
) -> list[Sequence]:
    """`[prompt | answer]` for the answers of each group that have a number; the number is the span's `rollout`.

    `numbers[g][k]` is that of answer k of group g, or -1: it is not trained. Where `pays` says that it is cheaper, the
    answers of a group branch off one reading of their prompt.
    """
    result: list[Sequence] = []
    for group, own in zip(groups, numbers, strict=True):
        prompt = group.prompt
        trained = [(number, answer.completion.ids) for number, answer in zip(own, group.answers, strict=True)
                   if number >= 0]  # fmt: skip
        lengths = [len(ids) - 1 for _, ids in trained]
        trunk = len(prompt)
        if len(trained) > 1 and pays(trunk, lengths):
            ids, spans = list(prompt), []
            for number, answer in trained:
                spans.append(Span(answer, trunk - 1, len(ids), 1, number))
                ids += answer[:-1]
            result.append(Sequence(ids, trunk, tuple(lengths), tuple(spans)))
            continue
        for number, answer in trained:
            ids = prompt + answer[:-1]
            result.append(Sequence(ids, len(ids), (), (Span(answer, trunk - 1, trunk, 1, number),)))
    return result

"""Groups: several answers of the policy to one prompt, judged; and the token sequences that training scores."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from lib.clock import phase
from lib.generators import Completion, Turn, native
from lib.model import Policy
from lib.prompts import ChatRenderer
from lib.rewards import Judge, Score
from lib.rollout import Sequence, memory_explained, sequences_of


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
        """Returns the ids under which the answers are trained."""
        return self.asked.ids if self.asked.trained_ids is None else self.asked.trained_ids

    @property
    def matches(self) -> list[bool]:
        """Tells for each answer whether it is right; one that could not be judged is not."""
        return [answer.score.scored and answer.score.match for answer in self.answers]


@dataclass(frozen=True)
class Limits:
    """Sampling settings of groups."""

    temperature: float  # 0 is greedy
    max_new_tokens: int
    stop_ids: frozenset[int]
    pad_id: int
    batch_size: int | None = None  # completions decoded at once, at most; None: what memory allows

    def decoding(self, asked: list[Asked], copies: int, seed: int) -> native.Decoding:
        """Returns the decoding settings for `copies` answers to each prompt."""
        count = len(asked) * copies
        return native.Decoding(
            temperature=self.temperature,
            stop_ids=self.stop_ids,
            pad_id=self.pad_id,
            rows=min(count, self.batch_size or count),
            columns=max(len(each.ids) for each in asked) + self.max_new_tokens,
            seed=seed,
        )


def question_of(messages: list[dict[str, Any]]) -> str:
    """Returns the text of a chat's last message, or the texts of its parts where it has parts."""
    content = messages[-1].get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def verdicts(judge: Judge, texts: list[str], asked: list[Asked]) -> list[Score]:
    """Judges texts, each as an answer to the prompt at its index."""
    with phase("reward"):
        return judge.verdicts(texts, [each.row for each in asked], [question_of(each.messages) for each in asked])


def answer_all(
    policy: Policy,
    prompts: ChatRenderer,
    asked: list[Asked],
    copies: int,
    judge: Judge,
    limits: Limits,
    generator: torch.Generator,
    on_written: Callable[[], None] = lambda: None,
) -> list[Group]:
    """Samples and judges `copies` answers to each prompt; calls `on_written` as soon as one is finished."""
    if not asked:
        return []
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    decoding = limits.decoding(asked, copies, seed)

    def begin(path: tuple[int, ...], completion: Completion) -> None:
        on_written()
        if judge.begin is not None:  # a reward in other processes begins while the model still writes
            judge.begin(prompts.text(completion), asked[path[0]].row)

    turns = {(i,): Turn(each.ids, limits.max_new_tokens, copies) for i, each in enumerate(asked)}
    with memory_explained(decoding):
        written = native.generate(policy, turns, decoding, begin)
    completions = [written[(i, copy)] for i in range(len(asked)) for copy in range(copies)]
    owners = [each for each in asked for _ in range(copies)]
    texts = [prompts.text(completion) for completion in completions]
    scores = verdicts(judge, texts, owners)
    answers = [Answer(*parts) for parts in zip(completions, texts, scores, strict=True)]
    return [Group(each, answers[i * copies : (i + 1) * copies]) for i, each in enumerate(asked)]


def answer_sequences(
    groups: list[Group], numbers: list[list[int]], pays: Callable[[int, list[int]], bool]
) -> list[Sequence]:
    """Builds `[prompt | answer]` for the answers of each group that have a number, which is the span's `rollout`.

    `numbers[g][k]` is that of answer k of group g, or -1 if it is not trained. Where `pays` says that it is cheaper,
    the answers of a group branch off one copy of their prompt.
    """
    result: list[Sequence] = []
    for group, own in zip(groups, numbers, strict=True):
        numbered = zip(own, group.answers, strict=True)
        trained = [(number, answer.completion.ids) for number, answer in numbered if number >= 0]
        result += sequences_of(group.prompt, trained, 1, pays)
    return result

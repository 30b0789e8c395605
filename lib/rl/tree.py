"""Trees of answers: the policy answers a prompt several times, and further prompts may follow each answer.

A group holds the answers to one prompt. Self-play has single groups; in SCoRe a group of revisions follows each first
attempt, and its prompt continues that attempt. A renderer's `next_prompt` returns the prompt that follows an answer, if
any; where it needs the verdict, the tree grows level by level, and `after` returns the prompts after all answers of a
level. The group after an attempt may be the policy's own reviews of it, which the next attempt follows
(lib/rl/reviews.py).
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from math import prod
from operator import add

import torch

from engine import Completion, Decoding, TreePath, Turn
from lib.core.clock import phase
from lib.core.config import ATTEMPT
from lib.core.errors import OutOfMemory, is_out_of_memory
from lib.generators.engines import NATIVE, Engine
from lib.model.policy import Policy
from lib.rewards.judge import Judge, Verdict
from lib.rl.prompts import JudgedAnswer, Prompt, Renderer
from lib.rl.reviews import role_of


@dataclass(frozen=True)
class Answer:
    """One completion, its verdict, and the group of answers that follow it, if any."""

    completion: Completion
    text: str
    verdict: Verdict
    following: "Group | None" = None
    earlier: tuple["Answer", ...] = ()  # those before it in a chat, each with calls of tools; only in `Group.ends`

    @property
    def length(self) -> int:
        """Returns the tokens that the policy wrote, with those of earlier answers."""
        return sum(len(answer.completion.ids) for answer in (*self.earlier, self))

    def last(self, earlier: tuple["Answer", ...] = ()) -> "Answer":
        """Returns the answer at the end of a chat in which one answer follows another."""
        if self.following is None:
            return replace(self, earlier=earlier) if earlier else self
        return self.following.answers[0].last((*earlier, self))


@dataclass(frozen=True)
class Group:
    """One prompt and the answers to it."""

    prompt: Prompt
    answers: list[Answer] = field(default_factory=list)
    is_context: bool = False  # the reference model, or an earlier policy, wrote the answers: never trained

    @property
    def role(self) -> str:
        """Returns the role of the answers: attempts, or reviews of one."""
        return role_of(self.prompt.review)

    def ends(self) -> "Group":
        """Returns the prompt with the last answers of its chats, in which one answer follows another."""
        return replace(self, answers=[answer.last() for answer in self.answers])

    @property
    def matches(self) -> list[bool]:
        """For each answer, True if it is right; one that could not be judged is not."""
        return [answer.verdict.scored and answer.verdict.match for answer in self.answers]


@dataclass(frozen=True)
class Node:
    """A group of a tree, with its place among the answers of a step."""

    group: Group
    tree: int  # index of the tree
    turn: int  # of the policy in its chat; 1 for the root of a tree
    attempt: int  # the same without reviews: of an attempt its number, of a review that of the attempt it is about
    numbers: range  # of its answers
    parent: int | None = None  # number of the answer that it follows

    @property
    def is_attempt(self) -> bool:
        """True if its answers are attempts, and no reviews."""
        return self.group.role == ATTEMPT

    @property
    def name(self) -> str:
        """Returns the name of its turn, as `ScoreConfig.turns` has it: attempt1, check1, attempt2."""
        return f"{self.group.role}{self.attempt}"


def nodes(trees: Iterable[Group]) -> list[Node]:
    """Returns the groups of all trees, tree by tree, each before what follows it; numbers their answers from 0."""
    numbered: list[Node] = []
    total = 0

    def walk(group: Group, tree: int, turn: int, attempt: int, parent: int | None = None) -> None:
        nonlocal total
        attempt += group.role == ATTEMPT
        node = Node(group, tree, turn, attempt, range(total, total + len(group.answers)), parent)
        numbered.append(node)
        total = node.numbers.stop
        for number, answer in zip(node.numbers, group.answers, strict=True):
            if answer.following:
                walk(answer.following, tree, turn + 1, attempt, number)

    for i, tree in enumerate(trees):
        walk(tree, i, 1, 0)
    return numbered


def paths(tree: Group) -> Iterator[tuple[tuple[Group, Answer], ...]]:
    """Yields each path from the root of a tree to a last answer, as pairs of a group and an answer in it."""
    for answer in tree.answers:
        if answer.following:
            yield from (((tree, answer), *rest) for rest in paths(answer.following))
        else:
            yield ((tree, answer),)


def attempts_in(path: Iterable[tuple[Group, Answer]]) -> list[Answer]:
    """Returns the attempts of a path, without the reviews between them."""
    return [answer for group, answer in path if group.role == ATTEMPT]


def longest_prompts(renderer: Renderer, first: int, budgets: tuple[int, ...]) -> list[int]:
    """Returns the most tokens of each turn's prompt, after a first prompt of `first` tokens."""
    lengths = [first]
    for turn, budget in enumerate(budgets[:-1], start=2):
        lengths.append(renderer.longest_next(lengths[-1] + budget, turn))
    return lengths


@dataclass(frozen=True)
class Sampling:
    """Sampling settings. `copies` and `max_new_tokens` have an entry for each turn: the depth of the tree."""

    temperature: float  # 0 is greedy
    max_new_tokens: tuple[int, ...]
    copies: tuple[int, ...]  # answers to one prompt
    stop_ids: frozenset[int]
    pad_id: int
    batch_size: int | None = None  # completions decoded at once, at most; None: what memory allows
    followed: int | None = None  # first answers to a prompt that others follow, at most; None: all
    by_base: float = 0.0  # share of prompts, drawn by lot, whose first answers the reference model writes
    engine: Engine = NATIVE

    def follows(self, path: TreePath) -> bool:
        """True if something may follow the answer at a path, which is its tree and a copy for each turn."""
        return len(path) <= len(self.copies) and (self.followed is None or path[1] < self.followed)

    def decoding(self, prompts: list[Prompt], renderer: Renderer, seed: int) -> Decoding:
        """Returns the settings for decoding the trees of these prompts together."""
        leaves = len(prompts) * prod(self.copies)
        lengths = longest_prompts(renderer, max(len(prompt.ids) for prompt in prompts), self.max_new_tokens)
        columns = max(map(add, lengths, self.max_new_tokens))
        rows = min(leaves, self.batch_size or leaves)
        return Decoding(self.temperature, self.stop_ids, self.pad_id, rows=rows, columns=columns, seed=seed)


def sample(
    policy: Policy,
    renderer: Renderer,
    prompts: list[Prompt],
    judge: Judge,
    sampling: Sampling,
    generator: torch.Generator,
    first: int = 0,
    on_written: Callable[[], None] = lambda: None,
) -> list[Group]:
    """Samples and judges a tree of answers to each prompt; calls `on_written` after each completion.

    An answer depends on the seed and its path alone (engine/sampling.py), and a path begins with the
    prompt's place among those of all processes, `first` on: with equal generators everywhere, the answers do not depend
    on the number of processes. A reward in other processes begins while the model still writes other answers.
    """
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    if not prompts:
        return []
    decoding = sampling.decoding(prompts, renderer, seed)
    prompt_at: dict[TreePath, Prompt] = {(i,): prompt for i, prompt in enumerate(prompts, start=first)}
    roots = list(prompt_at)

    def turn(path: TreePath) -> Turn:
        depth = len(path) - 1
        return Turn(prompt_at[path].ids, sampling.max_new_tokens[depth], sampling.copies[depth])

    def next_turn(path: TreePath, following: Prompt | None) -> Turn | None:
        if following is None:
            return None
        prompt_at[path] = following
        return turn(path)

    def follow(path: TreePath, completion: Completion) -> Turn | None:
        prompt = prompt_at[path[:-1]]
        on_written()
        if judge.begin is not None and prompt.review is None:
            judge.begin(renderer.judged(renderer.text(completion)), prompt.row)
        if renderer.reads_verdicts or not sampling.follows(path):
            return None
        return next_turn(path, renderer.next_prompt(prompt, completion))

    completions: dict[TreePath, Completion] = {}
    # systematic sampling by one lot for all processes: the chance of each prompt is by_base, their number varies by 1
    lot, share = seed / 2**62, sampling.by_base
    base_roots = [root for root in roots if (root[0] * share + lot) % 1 < share]
    with memory_explained(decoding):
        if base_roots:
            with policy.reference_mode():
                completions |= sampling.engine.generate(policy, {path: turn(path) for path in base_roots}, decoding)
        turns = {path: follow(path, completion) for path, completion in completions.items()}
        turns |= {path: turn(path) for path in roots if path not in base_roots}
        requests = {path: request for path, request in turns.items() if request}
        completions |= sampling.engine.generate(policy, requests, decoding, follow)
    judged: dict[TreePath, JudgedAnswer] = {}
    for length in count(2):
        level = sorted(path for path in completions if len(path) == length)
        if not level:
            break
        judged |= _judged_level(judge, renderer, {path: (prompt_at[path[:-1]], completions[path]) for path in level})
        followed = [path for path in level if renderer.reads_verdicts and sampling.follows(path)]
        if followed:
            turns_after = map(next_turn, followed, renderer.after([judged[path] for path in followed]))
            requests = {path: request for path, request in zip(followed, turns_after, strict=True) if request}
            with memory_explained(decoding):
                completions |= sampling.engine.generate(policy, requests, decoding, follow)
    groups = _groups(prompt_at, judged)
    return [Group(groups[root].prompt, groups[root].answers, root in base_roots) for root in roots]


def _groups(prompt_at: dict[TreePath, Prompt], judged: dict[TreePath, JudgedAnswer]) -> dict[TreePath, Group]:
    """Returns the group that answers each prompt, by its path."""
    groups: dict[TreePath, Group] = {}
    for path in sorted(prompt_at, key=lambda path: (-len(path), path)):  # what follows an answer comes before it
        answers = takewhile(judged.__contains__, ((*path, copy) for copy in count()))
        groups[path] = Group(prompt_at[path], [Answer(*judged[at][1:], groups.get(at)) for at in answers])
    return groups


def _judged_level(
    judge: Judge, renderer: Renderer, level: dict[TreePath, tuple[Prompt, Completion]]
) -> dict[TreePath, JudgedAnswer]:
    """Returns the answers of a level with their verdicts: the judge's of attempts, the attempt's of reviews."""
    texts = {path: renderer.text(completion) for path, (_, completion) in level.items()}
    attempts = [path for path, (prompt, _) in level.items() if prompt.review is None]
    prompts, finished = [level[path][0] for path in attempts], [level[path][1].finished for path in attempts]
    judged = verdicts_on(judge, [renderer.judged(texts[path]) for path in attempts], prompts, finished)
    verdicts = dict(zip(attempts, judged, strict=True))
    for path, (prompt, completion) in level.items():
        if prompt.review:
            verdicts[path] = prompt.review.verdict(completion, texts[path])
    return {path: JudgedAnswer(*answer, texts[path], verdicts[path]) for path, answer in level.items()}


def verdicts_on(judge: Judge, texts: list[str], prompts: list[Prompt], finished: list[bool]) -> list[Verdict]:
    """Judges texts, each as an answer to the prompt at its index; `finished`: it was not cut."""
    with phase("reward"):
        return judge(texts, [prompt.row for prompt in prompts], [prompt.question for prompt in prompts], finished)


@contextlib.contextmanager
def memory_explained(decoding: Decoding) -> Iterator[None]:
    """Raises OutOfMemory where sampling runs out of memory, with a message that names the settings to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise OutOfMemory(
            f"out of memory while sampling {decoding.rows} completions of up to {decoding.columns} tokens: lower "
            "generation.batch_size or the budgets of new tokens in generation"
        ) from error

"""Opponents and games: scores the policy against an opponent's answers to the same questions.

Added to the reward, r + w (r - r_opponent), an opponent would do nothing: its one answer to a prompt is a constant in
the group, and leaves with the baseline; what remains is a scale. It carries a signal only through something that is not
linear: a game that each answer of the group wins, ties or loses (use: win; with rewards of 0 and 1 alone, no more than
a filter of prompts), or the choice of prompts (curriculum.weighting).
"""

import random
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from statistics import pstdev
from typing import Any

from engine import Turn
from lib.core.config import Opponent, SelfPlayConfig, Snapshots
from lib.generators.openai import described
from lib.generators.protocol import Reply, Request
from lib.generators.remote import Remote
from lib.generators.reply_cache import key_of, seed_of
from lib.model.policy import Policy
from lib.rewards.judge import Judge, Verdict
from lib.rl.prompts import ChatRenderer, Prompt
from lib.rl.tree import Group, Sampling, memory_explained, verdicts_on

EVALUATION = -1  # in place of a step
EQUAL = 1e-9  # rewards that differ by less are a tie


@dataclass(frozen=True)
class OpponentAnswer:
    """The opponent's answer to a prompt; `verdict` is None where there is none, or it could not be judged."""

    text: str = ""
    verdict: Verdict | None = None
    error: str = ""
    finished: bool = True  # False: a server's answer that was cut off, mostly while it was thinking

    @property
    def is_right(self) -> bool | None:
        """True if the answer is right; None if unknown."""
        return None if self.verdict is None else self.verdict.match


@dataclass(frozen=True)
class Game:
    """The policy's answers to a prompt, and the opponent's."""

    tree: Group  # with what follows calls of tools
    opponent: OpponentAnswer = OpponentAnswer()

    @cached_property
    def group(self) -> Group:
        """Returns the prompt with the last answer of each chat."""
        return self.tree.ends()

    @property
    def outcome(self) -> str | None:
        """Returns `neither` or `opponent_only` if no answer of the group is right; else None, or if none was judged."""
        if any(self.group.matches) or not any(answer.verdict.scored for answer in self.group.answers):
            return None
        return "opponent_only" if self.opponent.is_right else "neither"

    @property
    def result(self) -> tuple[bool | None, bool | None]:
        """True if the policy's first answer and the opponent's are right; None where that could not be judged."""
        first = self.group.answers[0].verdict
        return (first.match if first.scored else None), self.opponent.is_right


def game_score(mine: Verdict, theirs: Verdict) -> float:
    """Returns 1 for a win, 0 for a loss. A tie of two right answers gives 2/3 to the shorter one, 1/3 to the other.

    The higher reward wins; with equal rewards, the right answer does. With equal lengths a tie is 1/2, and two wrong
    answers always tie: they are never told apart by their length.
    """
    difference = mine.reward - theirs.reward
    if abs(difference) < EQUAL:
        difference = float(mine.match) - float(theirs.match)
    if difference:
        return float(difference > 0)
    lengths = len(mine.answer.strip()), len(theirs.answer.strip())
    if not mine.match or lengths[0] == lengths[1]:
        return 0.5
    return 2 / 3 if lengths[0] < lengths[1] else 1 / 3


def played_reward(reward: float, verdict: Verdict, opponent: OpponentAnswer, settings: Opponent | None) -> float:
    """Returns the reward of an answer, its game included if the config says so.

    Where the opponent is missing, its term is a tie for the whole group: a constant, so that no answer gains or loses
    by it, and (1 - w) stays the scale of the reward.
    """
    if settings is None or settings.use != "win":
        return reward
    game = game_score(verdict, opponent.verdict) if opponent.verdict else 0.5
    return (1 - settings.weight) * reward + settings.weight * game


class ServerOpponent:
    """An opponent behind an API: each prompt is sent once in a run, and its answer kept."""

    def __init__(self, config: SelfPlayConfig, remote: Remote, judge: Judge):
        self.config, self.remote, self.judge = config, remote, judge
        self.thinking = config.server_of("opponent").thinking

    def begin(self, prompts: list[Prompt], step: int) -> "Future":
        """Sends the prompts without waiting for answers."""
        settings, generation = self.config.opponent, self.config.generation
        most = generation.max_new_tokens + self.thinking.budget_tokens
        return self.remote.ask(
            [
                Request(chat.messages, most, settings.temperature, seed_of(self.config.seed, "opponent", chat.messages))
                for chat in prompts
            ]
        )

    def end(self, begun: "Future", prompts: list[Prompt]) -> list[OpponentAnswer]:
        """Waits for the answers, and returns them judged."""
        outcomes = self.remote.answers(begun)
        replies = {i: outcome for i, outcome in enumerate(outcomes) if isinstance(outcome, Reply)}
        answers = [(reply.written(*self.thinking.tags), reply.finished) for reply in replies.values()]
        judged_replies = iter(_opponent_answers(answers, [prompts[i] for i in replies], self.judge))
        return [
            next(judged_replies) if i in replies else OpponentAnswer(error=str(outcome))
            for i, outcome in enumerate(outcomes)
        ]


class SnapshotOpponent:
    """An opponent from the policy's own past: a pool of snapshots of its adapter, one of which plays each step.

    Answers of a snapshot are kept as long as it is in the pool. The pool and its answers are part of the train state.
    The initial policy (step 0) is kept for evaluations after it has left the pool.
    """

    def __init__(
        self, config: SelfPlayConfig, policy: Policy, renderer: ChatRenderer, sampling: Sampling, judge: Judge
    ):
        self.config, self.policy, self.renderer, self.judge = config, policy, renderer, judge
        self.sampling = sampling
        self.settings: Snapshots = config.opponent.snapshots
        self.pool: dict[int, list] = {0: policy.snapshot()}  # step -> weights
        self.alphas: dict[int, float] = {0: policy.alpha}  # step -> how far the warm-up had come
        self.said: dict[int, dict[str, tuple[str, bool]]] = {0: {}}  # step -> prompt -> text, and whether it ended

    def begin(self, prompts: list[Prompt], step: int) -> int:
        """Returns which snapshot plays, by seed and step alone; the initial policy (0) where `step` is EVALUATION."""
        steps = sorted(self.pool)[-self.settings.keep :]
        if step == EVALUATION:
            return 0
        if self.settings.pick == "latest":
            return steps[-1]
        return random.Random(f"{self.config.seed}/snapshot/{step}").choice(steps)

    def end(self, begun: int, prompts: list[Prompt]) -> list[OpponentAnswer]:
        """Returns the snapshot's answers, judged."""
        answers = self.said[begun]
        keys = [key_of(prompt.messages) for prompt in prompts]
        new = {key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in answers}
        if new:
            seed = int(key_of(self.config.seed, "snapshot", begun)[:15], 16)
            decoding = self.sampling.decoding(list(new.values()), self.renderer, seed)
            paths: dict[str, tuple[int, ...]] = {key: (int(key[:8], 16), int(key[8:16], 16)) for key in new}
            turns = {paths[key]: Turn(prompt.ids, self.sampling.max_new_tokens[0]) for key, prompt in new.items()}
            with self.policy.with_adapter(self.pool[begun], self.alphas[begun]), memory_explained(decoding):
                completions = self.sampling.engine.generate(self.policy, turns, decoding)
            ended = {key: completions[(*paths[key], 0)] for key in new}
            answers.update({key: (self.renderer.text(answer), answer.finished) for key, answer in ended.items()})
        return _opponent_answers([answers[key] for key in keys], prompts, self.judge)

    def refresh(self, step: int) -> None:
        """Takes a snapshot if one is due; the oldest leaves a full pool."""
        if self.settings.every_steps and step % self.settings.every_steps == 0:
            self.pool[step], self.alphas[step], self.said[step] = self.policy.snapshot(), self.policy.alpha, {}
            for old in sorted(self.pool)[1 : -self.settings.keep]:
                del self.pool[old], self.alphas[old], self.said[old]

    def state_dict(self) -> dict:
        """Returns the pool and its answers."""
        return {"pool": self.pool, "alphas": self.alphas, "answers": self.said}

    def load_state_dict(self, state: dict) -> None:
        """Sets the pool and its answers."""
        self.pool, self.alphas, self.said = state["pool"], state["alphas"], state["answers"]


def _opponent_answers(answers: list[tuple[str, bool]], prompts: list[Prompt], judge: Judge) -> list[OpponentAnswer]:
    """Judges texts, each with whether it ended."""
    texts, finished = [text for text, _ in answers], [is_finished for _, is_finished in answers]
    return [
        OpponentAnswer(text, verdict, "", ended)
        if verdict.scored
        else OpponentAnswer(text, None, "it could not be judged", ended)
        for (text, ended), verdict in zip(answers, verdicts_on(judge, texts, prompts, finished), strict=True)
    ]


def describe(config: SelfPlayConfig) -> str:
    """Describes the opponent and its use, for the start-up message."""
    opponent = config.opponent
    if opponent.server:
        who = described(config.server_of("opponent"))
    elif opponent.snapshots.every_steps:
        who = f"snapshots of the policy, one every {opponent.snapshots.every_steps} steps"
    else:
        who = "the initial policy"
    use = f"games weigh {opponent.weight:g} of the reward" if opponent.use == "win" else "counted only"
    return f"opponent: {who}; {use}"


def opponent_text(game: Game) -> dict[str, Any]:
    """Returns the opponent's answer, or the reason why there is none."""
    theirs = game.opponent
    fields = {"text": theirs.text, "error": theirs.error} if theirs.error else {"text": theirs.text}
    verdict = {"match": theirs.verdict.match, "reward": theirs.verdict.components} if theirs.verdict else {}
    if theirs.verdict and theirs.verdict.malformed:
        verdict["malformed"] = theirs.verdict.malformed
    cut = {} if theirs.finished else {"finished": False}
    return {"who": "opponent", "prompt": game.group.prompt.question, **fields, **verdict, **cut}


def group_numbers(game: Game, rewards: list[float]) -> dict[str, float | None]:
    """Returns the metrics of a prompt; `rewards` are those that are trained on, games included, and may be empty."""
    mine, theirs = game.result
    is_game = mine is not None and theirs is not None
    return {
        "reward_std": pstdev(rewards) if rewards else 0.0,
        "equal_groups": float(len(set(rewards)) <= 1),
        "solved": float(any(game.group.matches)),
        "opponent_acc": None if theirs is None else float(theirs),
        "opponent_truncated": None if theirs is None else float(not game.opponent.finished),
        "wins": float(mine and not theirs) if is_game else None,
        "losses": float(theirs and not mine) if is_game else None,
    }

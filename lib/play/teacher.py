"""A teacher where the policy failed: hints, under which it tries again, and solutions, which are data and no more.

Who is helped is drawn by seed, step and prompt alone. What the policy writes under a hint is a context of its own: its
reward is never credited to tokens that were sampled without it.
"""

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from lib.core.config import SelfPlayConfig
from lib.generators.protocol import Reply, Request
from lib.generators.remote import Outcome, Remote
from lib.generators.reply_cache import seed_of
from lib.play.opponents import Game
from lib.rewards.judge import Judge
from lib.rl.hints import clean, leaks
from lib.rl.prompts import ChatRenderer, Prompt, filled, with_last_content
from lib.rl.tree import Group, verdicts_on

TEMPERATURE = 0.6


@dataclass
class Help:
    """The results of one step's requests."""

    hinted: list[Prompt] = field(default_factory=list)  # prompts to be tried again
    counts: Counter = field(default_factory=Counter)
    rows: list[dict[str, Any]] = field(default_factory=list)  # for SFT
    texts: list[dict[str, Any]] = field(default_factory=list)  # everything that the teacher wrote
    failures: list[tuple[str, Prompt]] = field(default_factory=list)


class Teacher:
    """Asks a server for help, and lets through what the rules of lib/rl/hints.py allow."""

    def __init__(self, config: SelfPlayConfig, remote: Remote, judge: Judge, prompts: ChatRenderer):
        self.config, self.settings = config, config.teacher
        self.thinking = config.server_of("teacher").thinking
        self.remote, self.judge, self.prompts = remote, judge, prompts

    def help(self, failed: list[Game], step: int) -> Help:
        """Returns hints for some of the prompts that the policy did not solve, and solutions of some."""
        wishes = [(game, mode) for game in failed for mode in self._wishes(game, step)]
        pending = self.remote.ask([self._request(game, mode, step) for game, mode in wishes])
        result = Help()
        for (game, mode), outcome in zip(wishes, self.remote.answers(pending), strict=True):
            self._take(game.group, mode, outcome, result)
        return result

    def _take(self, group: Group, mode: str, outcome: Outcome, result: Help) -> None:
        what = "solutions" if mode == "solve" else "hints"
        result.counts[f"{what}_asked"] += 1
        if not isinstance(outcome, Reply):
            result.counts[f"{what}_failed"] += 1
            result.failures.append((str(outcome), group.prompt))
            return
        if mode == "solve":
            self._take_solution(group, outcome, result)
        else:
            self._take_hint(group, mode, outcome, result)
        if not outcome.finished:
            result.counts[f"{what}_cut_off"] += 1  # mostly while it was thinking: raise a budget

    def keep(self, retries: list[Group], result: Help) -> None:
        """Counts the retries; those that are right become rows if the config collects them."""
        for group in retries:
            result.counts["retries"] += len(group.answers)
            result.counts["retries_right"] += sum(group.matches)
            result.counts["solved_with_hint"] += any(group.matches)
            if self.settings.hint.train == "collect":
                result.rows += [
                    _row(group.prompt.plain, answer.text, answer.verdict.reward, "retry")
                    for answer in group.answers
                    if answer.verdict.scored and answer.verdict.match
                ]

    def _wishes(self, game: Game, step: int) -> list[str]:
        settings, draw = self.settings, random.Random(f"{self.config.seed}/{step}/{game.group.prompt.number}")
        wishes: list[str] = []
        if draw.random() < getattr(settings.hint, game.outcome):
            wishes.append(draw.choice(settings.hint.modes))
        if draw.random() < settings.solve.probability:
            wishes.append("solve")
        return wishes

    def _request(self, game: Game, mode: str, step: int) -> Request:
        settings, group = self.settings, game.group
        template, key = {
            "hint": (settings.hint.hint_request, "teacher.hint.hint_request"),
            "critique": (settings.hint.critique_request, "teacher.hint.critique_request"),
            "solve": (settings.solve.request, "teacher.solve.request"),
        }[mode]
        attempt = self.prompts.outside.harmless(group.answers[0].text)  # the teacher may have the same special tokens
        values = {**group.prompt.row, "question": group.prompt.question, "attempt": attempt}
        messages = [{"role": "user", "content": filled(template, values, key)}]
        if mode == "solve":  # asked as the policy is, its system prompt included
            messages = with_last_content(group.prompt.messages, messages[0]["content"])
        most = settings.max_new_tokens if mode != "solve" else self.config.generation.max_new_tokens
        seed = seed_of(self.config.seed, "teacher", mode, step, messages)
        return Request(messages, most + self.thinking.budget_tokens, TEMPERATURE, seed)

    def _take_hint(self, group: Group, mode: str, reply: Reply, result: Help) -> None:
        prompt = group.prompt
        cleaned = clean(reply.text)
        dropped = cleaned.dropped
        if not dropped and leaks(cleaned.text, prompt, self.judge):
            dropped = "answer"
        if not dropped:
            values = {**prompt.row, "question": prompt.question, "hint": cleaned.text}
            messages = with_last_content(prompt.messages, filled(self.config.prompts.hinted, values, "prompts.hinted"))
            hinted = self.prompts.prompt_of(prompt.row, messages, prompt.number)
            if len(hinted.ids) + self.config.generation.most_tokens > self.config.model.max_seq_length:
                dropped = "too_long"
            else:
                result.hinted.append(replace(hinted, hint=cleaned.text, plain=prompt.messages))
        result.counts[f"hints_dropped_{dropped}" if dropped else "hints_used"] += 1
        row = {"text": reply.text, "hint": None if dropped else cleaned.text, "dropped": dropped or None}
        result.texts.append({"who": "teacher", "mode": mode, "prompt": prompt.question, **row})

    def _take_solution(self, group: Group, reply: Reply, result: Help) -> None:
        prompt = group.prompt
        text = reply.whole(*self.thinking.tags)
        answer = reply.written(*self.thinking.tags)
        [verdict] = verdicts_on(self.judge, [answer], [prompt], [reply.finished])
        if verdict.scored and verdict.match:
            result.counts["solutions_right"] += 1
            result.rows.append(_row(prompt.messages, text, verdict.reward, "teacher"))
        result.texts.append(
            {"who": "teacher", "mode": "solve", "prompt": prompt.question, "text": text, "match": verdict.match,
             "reward": verdict.components}
        )  # fmt: skip


def _row(messages: list[dict], text: str, reward: float, source: str) -> dict[str, Any]:
    """Returns a row that sft_train.py reads."""
    chat = [*messages, {"role": "assistant", "content": text}]
    return {"messages": chat, "reward": reward, "match": True, "source": source}

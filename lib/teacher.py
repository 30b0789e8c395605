"""A teacher where the policy failed: hints, under which it tries again, and solutions, which are data and no more.

Who is helped is drawn by seed, step and prompt alone. What the policy writes under a hint is a context of its own: its
reward is never credited to tokens that were sampled without it.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from lib.config import SelfPlayConfig
from lib.generators import Reply, Request
from lib.groups import Asked, Group, question_of, verdicts
from lib.hints import clean, gives_away
from lib.prompts import ChatRenderer, filled, with_last_said
from lib.remote import Outcome, Remote
from lib.reply_cache import seed_of
from lib.rewards import Judge
from lib.selfplay import Played


@dataclass
class Help:
    """The results of one step's requests."""

    hinted: list[Asked] = field(default_factory=list)  # prompts to be tried again
    counts: Counter = field(default_factory=Counter)
    rows: list[dict[str, Any]] = field(default_factory=list)  # for SFT
    texts: list[dict[str, Any]] = field(default_factory=list)  # everything that the teacher wrote
    failures: list[tuple[str, Asked]] = field(default_factory=list)

    def add(self, other: "Help") -> None:
        """Adds the results of others."""
        self.counts.update(other.counts)
        for name in ("hinted", "rows", "texts", "failures"):
            getattr(self, name).extend(getattr(other, name))


class Teacher:
    """Asks a server for help, and lets through what the rules of lib/hints.py allow."""

    def __init__(self, config: SelfPlayConfig, remote: Remote, judge: Judge, prompts: ChatRenderer):
        self.config, self.settings = config, config.teacher
        self.remote, self.judge, self.prompts = remote, judge, prompts

    def help(self, failed: list[Played], step: int) -> Help:
        """Returns hints for some of the prompts that the policy did not solve, and solutions of some."""
        result = Help()
        for part in self.asked([(each, mode) for each in failed for mode in self._wishes(each, step)], step):
            result.add(part)
        return result

    def asked(self, wishes: list[tuple[Played, str]], step: int) -> list[Help]:
        """Asks for each wish, a failed prompt and a mode (hint, critique or solve), and returns its results."""
        asked = self.remote.ask([self._request(each, mode, step) for each, mode in wishes])
        outcomes = zip(wishes, self.remote.answers(asked), strict=True)
        return [self._taken(each.group, mode, outcome) for (each, mode), outcome in outcomes]

    def _taken(self, group: Group, mode: str, outcome: Outcome) -> Help:
        what, result = "solutions" if mode == "solve" else "hints", Help()
        result.counts[f"{what}_asked"] += 1
        if not isinstance(outcome, Reply):
            result.counts[f"{what}_failed"] += 1
            result.failures.append((str(outcome), group.asked))
            return result
        if mode == "solve":
            self._take_solution(group, outcome, result)
        else:
            self._take_hint(group, mode, outcome, result)
        if not outcome.finished:
            result.counts[f"{what}_cut_off"] += 1  # mostly while it was thinking: raise a budget
        return result

    def keep(self, retries: list[Group], result: Help) -> None:
        """Counts the retries; those that are right become rows if the config collects them."""
        for group in retries:
            result.counts["retries"] += len(group.answers)
            result.counts["retries_right"] += sum(group.matches)
            result.counts["solved_with_hint"] += any(group.matches)
            if self.settings.hint.train == "collect":
                result.rows += [
                    _row(group.asked.plain, answer.text, answer.score.reward, "retry")
                    for answer in group.answers
                    if answer.score.scored and answer.score.match
                ]

    def _wishes(self, each: Played, step: int) -> list[str]:
        settings, draw = self.settings, random.Random(f"{self.config.seed}/{step}/{each.group.asked.number}")
        wishes = []
        if draw.random() < getattr(settings.hint, each.outcome):
            wishes.append(draw.choice(settings.hint.modes))
        if draw.random() < settings.solve.probability:
            wishes.append("solve")
        return wishes

    def _request(self, each: Played, mode: str, step: int) -> Request:
        settings, group = self.settings, each.group
        template, key = {
            "hint": (settings.hint.hint_request, "teacher.hint.hint_request"),
            "critique": (settings.hint.critique_request, "teacher.hint.critique_request"),
            "solve": (settings.solve.request, "teacher.solve.request"),
        }[mode]
        attempt = self.prompts.outside.harmless(group.answers[0].text)  # the teacher may have the same special tokens
        values = {**group.asked.row, "question": question_of(group.asked.messages), "attempt": attempt}
        messages = [{"role": "user", "content": filled(template, values, key)}]
        if mode == "solve":  # asked as the policy is, its system prompt included
            messages = with_last_said(group.asked.messages, messages[0]["content"])
        most = settings.max_new_tokens if mode != "solve" else self.config.generation.max_new_tokens
        seed = seed_of(self.config.seed, "teacher", mode, step, messages)
        return Request(messages, most + settings.thinking.budget_tokens, settings.temperature, seed)

    def _take_hint(self, group: Group, mode: str, reply: Reply, result: Help) -> None:
        asked, settings = group.asked, self.settings.hint
        cleaned = clean(reply.text, settings.max_characters)
        dropped = cleaned.dropped
        if not dropped and self._leaks(cleaned.text, asked):
            dropped = "answer"
        if not dropped:
            question = question_of(asked.messages)
            values = {**asked.row, "question": question, "hint": cleaned.text}
            messages = with_last_said(asked.messages, filled(self.config.prompts.hinted, values, "prompts.hinted"))
            ids = self.prompts.ids(messages)
            if len(ids) + self.config.generation.most_tokens > self.config.model.max_seq_length:
                dropped = "too_long"
            else:
                trained = asked.ids if settings.train == "off_policy" else None
                result.hinted.append(
                    Asked(asked.row, messages, ids, asked.number, trained, cleaned.text, asked.messages)
                )
        result.counts[f"hints_dropped_{dropped}" if dropped else "hints_used"] += 1
        said = {"text": reply.text, "hint": None if dropped else cleaned.text, "dropped": dropped or None}
        result.texts.append({"who": "teacher", "mode": mode, "prompt": question_of(asked.messages), **said})

    def _leaks(self, hint: str, asked: Asked) -> bool:
        """Tells whether the hint reveals the answer: it contains it, or would itself be judged right."""
        question = question_of(asked.messages)
        if gives_away(hint, self.judge.secrets(asked.row), question) or self.judge.tells(hint, asked.row):
            return True
        [score] = verdicts(self.judge, [hint], [asked])
        return score.scored and score.match

    def _take_solution(self, group: Group, reply: Reply, result: Help) -> None:
        asked = group.asked
        text = reply.whole(self.settings.thinking.open_tag, self.settings.thinking.close_tag)
        written = reply.written(self.settings.thinking.open_tag, self.settings.thinking.close_tag)
        [score] = verdicts(self.judge, [written], [asked])
        if score.scored and score.match:
            result.counts["solutions_right"] += 1
            result.rows.append(_row(asked.messages, text, score.reward, "teacher"))
        result.texts.append(
            {"who": "teacher", "mode": "solve", "prompt": question_of(asked.messages), "text": text,
             "match": score.match, "reward": score.components}
        )  # fmt: skip


def _row(messages: list[dict], text: str, reward: float, source: str) -> dict[str, Any]:
    """Returns a row that sft_train.py reads."""
    chat = [*messages, {"role": "assistant", "content": text}]
    return {"messages": chat, "reward": reward, "match": True, "source": source}

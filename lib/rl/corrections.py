"""The prompts of several attempts: attempt 2 continues the sampled ids of attempt 1.

Rendering the chat again would change them: Qwen3-style templates, for one, silently delete earlier <think> blocks. So
the template renders only the part between the attempts: the end of the assistant's turn, the instruction or a feedback,
and the start of the next turn.
"""

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from engine import Completion
from lib.core.config import Generation, Prompts
from lib.core.errors import ConfigError
from lib.rl.feedback.choice import feedback_of
from lib.rl.prompts import NOT_DRAWN, Choice, JudgedAnswer, Prompt, Renderer, continued
from lib.rl.reviews import RIGHT, Review, review_of

UNSEEN = {  # what a later attempt does not see of an earlier one, by prompts.history
    "full": None,
    # where the prompt already opens the block, an answer starts within it
    "answer_only": re.compile(r"\A(?:(?!<think>).)*</think>|<think>.*?(?:</think>|$)", re.DOTALL),
    "plain_text": re.compile("</?think>"),
}


class CorrectionPrompts(Renderer):
    """Renders rows with one tokenizer. Raises ConfigError at construction if the two prompts cannot work."""

    def __init__(self, tokenizer: Any, prompts: Prompts, limits: Generation, template_kwargs: dict | None = None):
        super().__init__(tokenizer, template_kwargs or {}, prompts)
        self.feedback, self.stop, self.limits = feedback_of(prompts), prompts.stop, limits
        self.reads_verdicts = self.feedback is not None or self.stop != "never"
        texts = {name: getattr(prompts, name) for name in ("system", "user", "self_correction")}
        self.outside.refuse_controls({f"prompts.{name}": text for name, text in texts.items()})
        self.retry_ids = self.between(prompts.self_correction)
        self.longest_retry = len(self.retry_ids)  # most tokens between an answer and the next one
        if self.feedback and prompts.reviewed_by:  # the message is known, and must not be cut
            self.outside.refuse_controls({"prompts.self.ask": prompts.self.ask})
            self.longest_retry = max(self.longest_retry, len(self.between(self.feedback.ask)))
        elif self.feedback:
            self.longest_retry += prompts.feedback_tokens
        room = limits.max_prompt_length_attempt2 - limits.max_prompt_length_attempt1 - self.longest_retry
        if room < 1:
            raise ConfigError(
                f"generation.max_prompt_length_attempt2 = {limits.max_prompt_length_attempt2} leaves no room for "
                f"attempt 1 next to a first prompt of {limits.max_prompt_length_attempt1} and an instruction of "
                f"{self.longest_retry} tokens{', prompts.feedback_tokens included' if self.feedback else ''}: raise it "
                f"to at least {limits.max_prompt_length_attempt2 - room + limits.max_new_tokens_attempt1}"
            )

    def prompt(self, row: dict[str, Any], number: int = 0, choice: Choice = NOT_DRAWN) -> Prompt:
        """Returns the first prompt of a row; `number`: the row's index, `choice`: why a step has it."""
        ids = self._encode(self._render(self._turns(self.question(row))))
        return Prompt(row, ids, self.question(row), number=number, choice=choice)

    def without_feedback(self) -> "CorrectionPrompts":
        """Returns the same prompts, where every attempt is followed by `prompts.self_correction`."""
        plain = copy(self)
        plain.feedback, plain.stop, plain.longest_retry = None, "never", len(self.retry_ids)
        plain.reads_verdicts = False
        return plain

    def after(self, answers: Sequence[JudgedAnswer]) -> list[Prompt | None]:
        """Returns the prompt that follows each judged answer; None after the last one of a chat, by the rule `stop`."""
        ends = [self._is_last(answer) for answer in answers]
        left = [answer for answer, is_end in zip(answers, ends, strict=True) if not is_end]
        messages = iter(self.feedback.after(left) if self.feedback else [None] * len(left))
        return [
            None if is_end else self.next_prompt(answer.prompt, answer.completion, next(messages), self._review(answer))
            for answer, is_end in zip(answers, ends, strict=True)
        ]

    def _is_last(self, answer: JudgedAnswer) -> bool:
        """True if the rule ends a chat after an attempt, or after the check of one."""
        if answer.prompt.review is None:
            return self.stop == "verdict" and answer.verdict.match
        return self.stop == "self" and answer.verdict.answer == RIGHT

    def _review(self, answer: JudgedAnswer) -> Review | None:
        """Returns the review that follows an attempt; None where an attempt follows."""
        is_reviewed = self.feedback and self.prompts.reviewed_by and answer.prompt.review is None
        return review_of(self.prompts, answer.verdict) if is_reviewed else None

    def reworded(self, prompt: Prompt, text: str) -> list[int]:
        """Returns the ids of a first prompt whose user says `text`."""
        return self._encode(self._render(self._turns(text)))

    def next_prompt(
        self, prompt: Prompt, completion: Completion, feedback: str | None = None, review: Review | None = None
    ) -> Prompt:
        """Returns the prompt that asks to correct an answer; a truncated answer is closed before the instruction.

        `feedback` is the user's message in place of `prompts.self_correction`; it may ask for a `review` instead.
        """
        turn, message = prompt.turn + 1, ""
        retry = self.retry_ids
        if feedback is not None:
            message = self.fitting(feedback, self.longest_retry)
            retry = self.between(message)
        logged_feedback = "" if self.prompts.reviewed_by else message  # the same after all attempts
        attempt = prompt.attempt + (review is None)
        prompt = replace(prompt, attempt=attempt, turn=turn, review=review, feedback=logged_feedback)
        if self.prompts.history != "full":
            ids, cut = self._rendered_anew(prompt.row, completion, message or self.prompts.self_correction)
            return replace(prompt, ids=ids, continues=False, cut=cut)
        room = self._most(turn) - len(prompt.ids) - len(retry)
        if len(completion.ids) > room:
            ids = prompt.ids + _without_middle(completion.text_ids(), room) + retry
            return replace(prompt, ids=ids, continues=False, cut=True)
        return replace(prompt, ids=continued(prompt, completion, retry), continues=True, cut=False)

    def longest_next(self, tokens: int, turn: int) -> int:
        """Returns the most tokens of the prompt of a turn, after `tokens` tokens of earlier prompt and answer."""
        most = self._most(turn)
        return min(most, tokens + self.longest_retry) if self.prompts.history == "full" else most

    def longest_chat(self, turns: int) -> int:
        """Returns the most tokens of a chat in which the policy has so many turns, its last answer included."""
        limits = self.limits
        if self.prompts.history != "full":  # each prompt has one answer in it
            return limits.max_prompt_length_attempt2 + limits.max_new_tokens_attempt2
        second = limits.max_prompt_length_attempt1 + limits.max_new_tokens_attempt1 + self.longest_retry
        unused = max(0, limits.max_prompt_length_attempt2 - second)
        return self._most(turns) - unused + limits.max_new_tokens_attempt2

    def _most(self, turn: int) -> int:
        """Returns the most tokens of the prompt of a turn; each adds an answer and an instruction."""
        limits, between = self.limits, turn - 2
        reviews = (between + 1) // 2 if self.feedback and self.prompts.reviewed_by else 0
        answers = reviews * self.prompts.self.max_new_tokens + (between - reviews) * limits.max_new_tokens_attempt2
        return limits.max_prompt_length_attempt2 + answers + between * self.longest_retry

    def question(self, row: dict) -> str:
        """Returns the text of the user's first turn."""
        return self.prompts.user.format_map(row)

    def messages(self, row: dict) -> list[dict]:
        """Returns the messages built from a row."""
        return [{"role": "user", "content": self.question(row)}]

    def notes(self, rows: list[dict]) -> list[str]:
        """Returns []: all chats have the system message of the config."""
        return []

    def history_note(self) -> str:
        """Describes what attempt 2 sees of attempt 1, and whether the template alone would drop the reasoning."""
        reasoning = "<think>\nREASON\n</think>\n\nANSWER"
        correction = {"role": "user", "content": self.prompts.self_correction}
        messages = [*self._turns("QUESTION"), {"role": "assistant", "content": reasoning}, correction]
        template_keeps = "REASON" in self._render(messages)
        kept = {
            "full": "attempt 2 continues the sampled tokens of attempt 1, its reasoning included",
            "plain_text": "attempt 2 sees attempt 1 as text, without its think tags",
            "answer_only": "attempt 2 sees attempt 1 without its think block",
        }[self.prompts.history]
        return kept + ("" if template_keeps else "; the chat template by itself would drop the reasoning")

    def _rendered_anew(self, row: dict, answer: Completion, message: str) -> tuple[list[int], bool]:
        """Returns the chat with an answer as the history mode leaves it, and whether its middle was cut out."""
        text = self.tokenizer.decode(answer.text_ids(), skip_special_tokens=True)  # or one might end a turn in there
        text = UNSEEN[self.prompts.history].sub("", text)
        before, after = self._around_answer(self._turns(self.question(row)), message)
        text = self.outside.harmless(text.strip())  # it may have spelled a control token, letter by letter
        head, middle, tail = self._encode(before), self._encode(text), self._encode(after)
        room = self.limits.max_prompt_length_attempt2 - len(head) - len(tail)
        cut = len(middle) > room
        return head + (_without_middle(middle, room) if cut else middle) + tail, cut


def _without_middle(ids: list[int], room: int) -> list[int]:
    """Returns the first and the last ids, `room` in all: a start and an end say the most."""
    room = max(room, 0)
    head = room // 2
    return ids[:head] + (ids[len(ids) - (room - head) :] if room > head else [])

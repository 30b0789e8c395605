"""Prompts as token ids, and the chats and templates from which they are rendered."""

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from lib.core.config import ChatPrompts, Prompts
from lib.core.errors import ConfigError
from lib.rewards.judge import Verdict
from lib.rl.reviews import Review
from lib.text.chats import text_of
from lib.text.templates import PLAIN, Outside, listed, render, switch_thinking, system_notes, with_system

if TYPE_CHECKING:  # it imports torch
    from engine import Completion


class Choice(NamedTuple):
    """The row that a prompt of a step was made from, and why it was drawn (lib/rl/curriculum.py)."""

    row: int  # index into the training rows
    source: str = "data"  # or easy, or replay
    entry: int | None = None  # uid in the replay buffer


NOT_DRAWN = Choice(-1)
PLACEHOLDER = "REMATCH ATTEMPT ONE"  # stands for an answer, to find what the template writes around it
CUT = " ... "  # stands for the middle of a message that is too long


@dataclass(frozen=True)
class Prompt:
    """A prompt: the tokens that the policy reads before it answers, and where they come from."""

    row: dict[str, Any]
    ids: list[int]
    question: str  # the user's text, for rewards and logs
    messages: list[dict[str, Any]] = field(default_factory=list)  # the chat, where it has been one
    number: int = 0  # of the row in its data set
    attempt: int = 1  # that it asks for, or to review
    turn: int = 1  # of the policy in its chat, reviews included
    review: Review | None = None  # it asks for a review of the attempt before, and for no attempt
    continues: bool = False  # the ids start with the earlier prompt and its answer as sampled
    cut: bool = False  # the middle of the earlier answer was left out to fit the budget
    hint: str = ""  # what a teacher added to the prompt
    plain: list[dict[str, Any]] | None = None  # the messages without the hint
    feedback: str = ""  # the user's message after the earlier answer; "" where it is the same after every answer
    choice: Choice = NOT_DRAWN  # in training: how it came into the step


class JudgedAnswer(NamedTuple):
    """An answer that was judged, and its prompt."""

    prompt: Prompt
    completion: "Completion"
    text: str
    verdict: Verdict


def columns_of(template: str, key: str = "prompts.user") -> list[str]:
    """Returns the `{column}` names in a template of the config. Raises ConfigError when its braces do not pair up."""
    try:
        return [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise ConfigError(f"{key}: {error}; double a brace that is meant as text: {{{{ or }}}}") from error


def question_columns(prompts: ChatPrompts | Prompts) -> tuple[list[str], Callable[[dict[str, Any]], str]]:
    """Returns the columns that ask a row's question, and a function that reads it, as SFT reads that of its `prompt`.

    The words of prompts.user do not count, so that every script holds out the same rows.
    """
    if isinstance(prompts, ChatPrompts) and prompts.messages_field:
        alone = prompts.model_copy(update={"system": None})
        return [prompts.messages_field], lambda row: text_of(chat_of(row, alone))
    columns = sorted(set(columns_of(prompts.user)))

    def question(row: dict[str, Any]) -> str:
        filled(prompts.user, row, "prompts.user")  # raises where a row cannot fill it
        return text_of([{"role": "user", "content": "\n".join(str(row[name]) for name in columns)}])

    return columns, question


def chat_of(row: dict[str, Any], prompts: ChatPrompts) -> list[dict[str, Any]]:
    """Returns the chat that a row begins. Raises ConfigError where its messages are no such chat."""
    if prompts.messages_field is None:
        question = {"role": "user", "content": filled(prompts.user, row, "prompts.user")}
        return with_system([question], prompts.system)
    messages = listed(row[prompts.messages_field])
    sound = isinstance(messages, list) and all(isinstance(message, dict) and "role" in message for message in messages)
    if not sound or not messages or messages[-1]["role"] == "assistant":
        raise ConfigError(
            f"prompts.messages_field: '{prompts.messages_field}' has {str(messages)[:80]!r}, expected a list of "
            "messages, the last one not by the assistant: name another column, or use prompts.user"
        )
    return with_system(messages, prompts.system)


def filled(template: str, values: Mapping[str, Any], key: str) -> str:
    """Replaces each `{name}` by its value. Raises ConfigError, naming the `key` of the config, where it cannot."""
    try:
        return template.format_map(values)
    except (ValueError, KeyError, AttributeError, IndexError) as error:
        raise ConfigError(f"{key}: {error!r} when filled from {str(values)[:80]}; write plain {{column}}") from error


def question_of(messages: list[dict[str, Any]]) -> str:
    """Returns the text of a chat's last message, or the texts of its parts where it has parts."""
    content = messages[-1].get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def with_last_content(messages: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """Returns the chat with the content of its last message replaced by `text`."""
    return [*messages[:-1], {**messages[-1], "content": text}]


class Renderer:
    """Renders prompts as token ids by a tokenizer's template, and decodes answers; here none has a second turn."""

    follows_as = "user"  # the role of the message after an answer
    reads_verdicts = False  # the next prompt depends on the answer's verdict, or is made for many answers at once

    def __init__(self, tokenizer: Any, template_kwargs: dict[str, Any], prompts: Any):
        self.tokenizer, self.template_kwargs, self.prompts = tokenizer, template_kwargs, prompts
        self.outside = Outside(tokenizer, template_kwargs)

    def prompt(self, row: dict[str, Any], number: int = 0, choice: Choice = NOT_DRAWN) -> Prompt:
        """Returns the first prompt of a row; `number`: the row's index, `choice`: why a step has it."""
        raise NotImplementedError

    def next_prompt(self, prompt: Prompt, completion: "Completion") -> Prompt | None:
        """Returns the prompt that follows an answer, or None."""

    def after(self, answers: Sequence[JudgedAnswer]) -> list[Prompt | None]:
        """Returns the prompt that follows each judged answer, or None."""
        return [None for _ in answers]

    def longest_next(self, tokens: int, turn: int) -> int:
        """Returns the most tokens of the prompt of a turn, after `tokens` tokens of earlier prompt and answer."""
        return tokens

    def history_note(self) -> str:
        """Describes what the next prompt shows; "" if there is none."""
        return ""

    def text(self, completion: "Completion") -> str:
        """Decodes a completion without its end token; other special tokens stay visible to the judge."""
        return self.tokenizer.decode(completion.text_ids(), skip_special_tokens=False)

    def judged(self, text: str) -> str:
        """Returns the part of an answer's text that is judged."""
        return text

    def between(self, message: str) -> list[int]:
        """Returns the ids between an answer and the next one, if the message there says `message`."""
        return self._encode(self._around_answer(self._turns("QUESTION"), message)[1])

    def fitting(self, message: str, most: int) -> str:
        """Returns a message without control tokens, and without its middle if `between` has more than `most` ids."""
        # the mark of the answer must stand in one place, and a program may print what it likes
        text = self.outside.harmless(message.replace(PLACEHOLDER, PLACEHOLDER.lower()))
        ids = self._encode(text)
        room = len(ids)
        while (beyond := len(self.between(text)) - most) > 0 and room:
            room = max(0, room - beyond)  # again, where what is put together anew has more tokens than its parts
            head, tail = room - room // 2, room // 2
            text = self.tokenizer.decode(ids[:head]) + CUT + self.tokenizer.decode(ids[len(ids) - tail :])
            text = self.outside.harmless(text)
        return text

    def _turns(self, user: str) -> list[dict]:
        return with_system([{"role": "user", "content": self.outside.harmless(user)}], self.prompts.system)

    def _around_answer(self, first: list[dict], message: str) -> tuple[str, str]:
        """Returns the template's text before and after an answer in a chat that goes on with `message`."""
        following = {"role": self.follows_as, "content": message}
        rendered = self._render([*first, {"role": "assistant", "content": PLACEHOLDER}, following])
        before, mark, after = rendered.rpartition(PLACEHOLDER)
        if not mark:
            raise ConfigError(
                "model.chat_template: it drops earlier assistant turns, so that an answer would not be seen after it; "
                "give another template"
            )
        return before, after

    def _render(self, messages: list[dict]) -> str:
        return render(self.tokenizer, messages, self.template_kwargs)

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]


def continued(prompt: Prompt, completion: "Completion", between: list[int]) -> list[int]:
    """Returns the ids of a prompt, the answer to it as sampled, and what stands between it and the next answer."""
    if completion.finished and completion.ids[-1] == between[0]:  # the sampled end token closes the turn already
        between = between[1:]
    return prompt.ids + completion.ids + between


class ChatRenderer(Renderer):
    """Renders chats as the token ids that a model reads before it answers, once."""

    def ids(self, messages: list[dict[str, Any]]) -> list[int]:
        """Returns token ids, with control tokens of the template alone. Raises ConfigError if it refuses the chat."""
        return self._encode(self._render(self.outside.harmless(messages)))

    def messages(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Returns the chat that a row begins. Raises ConfigError where its messages are no such chat."""
        return chat_of(row, self.prompts)

    def prompt(self, row: dict[str, Any], number: int = 0, choice: Choice = NOT_DRAWN) -> Prompt:
        """Returns the prompt of a row; `number`: the row's index, `choice`: why a step has it."""
        return self.prompt_of(row, self.messages(row), number, choice)

    def prompt_of(
        self, row: dict[str, Any], messages: list[dict[str, Any]], number: int, choice: Choice = NOT_DRAWN
    ) -> Prompt:
        """Returns the prompt of another chat about a row."""
        return Prompt(row, self.ids(messages), question_of(messages), messages, number, choice=choice)

    def reworded(self, prompt: Prompt, text: str) -> list[int]:
        """Returns the ids of a prompt whose last message says `text` instead."""
        return self.ids(with_last_content(prompt.messages, text))

    def notes(self, rows: list[dict[str, Any]]) -> list[str]:
        """Returns notes on chats that have their own system messages."""
        return system_notes(map(self.messages, rows), self.prompts.system)

    def switch_thinking(self, enabled: bool) -> None:
        """Sets the template's `enable_thinking`. Raises ConfigError if the template cannot obey."""
        kwargs = self.template_kwargs
        switch_thinking(kwargs, enabled, lambda **more: render(self.tokenizer, PLAIN, kwargs | more))

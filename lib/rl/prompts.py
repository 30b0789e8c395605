"""The prompts of an example, token in and token out: attempt 2 continues the very ids that attempt 1 sampled.

Rendering the chat again would change them: Qwen3-style templates, for one, silently delete earlier <think> blocks. So
the template is asked only for what comes between the attempts: the end of the assistant's turn, the instruction, and
the start of the next turn.
"""

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from lib.core.config import ChatPrompts, Generation, Prompts
from lib.core.errors import ConfigError
from lib.core.registry import did_you_mean
from lib.generators.protocol import Completion
from lib.text.chats import PLAIN, switch_thinking, system_notes, with_system
from lib.text.outside import Outside

# where the prompt already opens the block, an answer starts within it
THINK_BLOCK = re.compile(r"\A(?:(?!<think>).)*</think>|<think>.*?(?:</think>|$)", re.DOTALL)
PLACEHOLDER = "REMATCH ATTEMPT ONE"  # stands for attempt 1, to find what the template writes around it


class Choice(NamedTuple):
    """How a prompt came into a step (lib/rl/curriculum.py)."""

    row: int  # index into the training rows
    source: str = "data"  # or easy, or replay
    entry: int | None = None  # uid in the replay buffer
    first: Sequence[int] | None = None  # ids of the first attempt that the revisions are to follow


NOT_DRAWN = Choice(-1)


@dataclass(frozen=True)
class Prompt:
    """What the policy reads before it answers."""

    row: dict[str, Any]
    ids: list[int]
    question: str  # the user's text, for rewards and logs
    messages: list[dict[str, Any]] = field(default_factory=list)  # the chat, where it has been one
    number: int = 0  # of the row in its data set
    attempt: int = 1
    continues: bool = False  # the ids start with the earlier prompt and its answer as sampled
    cut: bool = False  # the middle of the earlier answer was left out to fit the budget
    trained_ids: list[int] | None = None  # the prompt under which the answers are trained, if it is another one
    hint: str = ""  # what a teacher added to the prompt,
    plain: list[dict[str, Any]] | None = None  # and what the messages were without
    choice: Choice = NOT_DRAWN  # in training: how it came into the step


def columns_of(template: str, key: str = "prompts.user") -> list[str]:
    """Returns the `{column}` names in a template of the config. Raises ConfigError when its braces do not pair up."""
    try:
        return [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise ConfigError(f"{key}: {error}; double a brace that is meant as text: {{{{ or }}}}") from error


def chat_columns(prompts: ChatPrompts) -> list[str]:
    """Returns the columns that a chat is made from. Raises ConfigError when braces do not pair up."""
    return [prompts.messages_field] if prompts.messages_field else columns_of(prompts.user)


def chat_of(row: dict[str, Any], prompts: ChatPrompts) -> list[dict[str, Any]]:
    """Returns the chat that a row begins. Raises ConfigError where its messages are no such chat."""
    if prompts.messages_field is None:
        asked = {"role": "user", "content": filled(prompts.user, row, "prompts.user")}
        return with_system([asked], prompts.system)
    messages = row[prompts.messages_field]
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


def with_last_said(messages: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """Returns the chat with the content of its last message replaced by `text`."""
    return [*messages[:-1], {**messages[-1], "content": text}]


class ChatRenderer:
    """Renders chats as the token ids that a model reads before it answers, once."""

    def __init__(self, tokenizer: Any, template_kwargs: dict[str, Any], prompts: ChatPrompts | None = None):
        self.tokenizer, self.template_kwargs, self.prompts = tokenizer, template_kwargs, prompts or ChatPrompts()
        self.outside = Outside(tokenizer, template_kwargs)

    def ids(self, messages: list[dict[str, Any]]) -> list[int]:
        """Returns token ids, no control token but the template's own. Raises ConfigError if it refuses the chat."""
        text = render(self.tokenizer, self.outside.harmless(messages), self.template_kwargs)
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def messages(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Returns the chat that a row begins. Raises ConfigError where its messages are no such chat."""
        return chat_of(row, self.prompts)

    def prompt(self, row: dict[str, Any], number: int = 0) -> Prompt:
        """Returns the prompt of a row; `number`: the row's index."""
        return self.prompt_of(row, self.messages(row), number)

    def prompt_of(self, row: dict[str, Any], messages: list[dict[str, Any]], number: int) -> Prompt:
        """Returns the prompt of another chat about a row."""
        return Prompt(row, self.ids(messages), question_of(messages), messages, number)

    def reworded(self, prompt: Prompt, text: str) -> list[int]:
        """Returns the ids of a prompt whose last message says `text` instead."""
        return self.ids(with_last_said(prompt.messages, text))

    def next_prompt(self, prompt: Prompt, completion: Completion) -> None:
        """Returns None: there is one attempt."""

    def longest_next(self, tokens: int, attempt: int) -> int:
        """Returns `tokens`: nothing follows."""
        return tokens

    def history_note(self) -> str:
        """Returns "": nothing follows."""
        return ""

    def notes(self, rows: list[dict[str, Any]]) -> list[str]:
        """Returns notes on chats that keep a system message of their own."""
        return system_notes(map(self.messages, rows), self.prompts.system)

    def text(self, completion: Completion) -> str:
        """Decodes a completion without its end token; other special tokens stay visible to the judge."""
        return self.tokenizer.decode(completion.text_ids(), skip_special_tokens=False)

    def switch_thinking(self, enabled: bool) -> None:
        """Sets the template's `enable_thinking`. Raises ConfigError if the template cannot obey."""
        kwargs = self.template_kwargs
        switch_thinking(kwargs, enabled, lambda **more: render(self.tokenizer, PLAIN, kwargs | more))


def render(tokenizer: Any, messages: list[dict[str, Any]], template_kwargs: dict[str, Any]) -> str:
    """Renders the chat as text, up to where the assistant answers. Raises ConfigError where the template refuses it."""
    from jinja2 import TemplateError

    try:
        return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **template_kwargs)
    except TemplateError as error:
        raise ConfigError(
            f"model.chat_template: it refuses this chat ({error}); change prompts.system or give another template"
        ) from error


class CorrectionPrompts:
    """Renders rows with one tokenizer. Raises ConfigError at construction when the two prompts cannot work."""

    def __init__(self, tokenizer: Any, prompts: Prompts, limits: Generation, template_kwargs: dict | None = None):
        self.tokenizer = tokenizer
        self.prompts = prompts
        self.limits = limits
        self.template_kwargs = template_kwargs or {}
        self.outside = Outside(tokenizer, self.template_kwargs)
        written = {name: getattr(prompts, name) for name in ("system", "user", "self_correction")}
        self.outside.refuse_controls({f"prompts.{name}": text for name, text in written.items()})
        self.retry_ids = self._encode(self._around_attempt1(self._turns("QUESTION"))[1])
        room = limits.max_prompt_length_attempt2 - limits.max_prompt_length_attempt1 - len(self.retry_ids)
        if room < 1:
            raise ConfigError(
                f"generation.max_prompt_length_attempt2 = {limits.max_prompt_length_attempt2} leaves no room for "
                f"attempt 1 beside a first prompt of {limits.max_prompt_length_attempt1} and an instruction of "
                f"{len(self.retry_ids)} tokens: raise it to at least "
                f"{limits.max_prompt_length_attempt2 - room + limits.max_new_tokens_attempt1}"
            )

    def prompt(self, row: dict[str, Any], number: int = 0) -> Prompt:
        """Returns the first prompt of a row; `number`: the row's index."""
        return Prompt(row, self._encode(self._render(self._first_messages(row))), self.question(row), number=number)

    def reworded(self, prompt: Prompt, text: str) -> list[int]:
        """Returns the ids of a first prompt whose user says `text`."""
        return self._encode(self._render(self._turns(text)))

    def next_prompt(self, prompt: Prompt, completion: Completion) -> Prompt:
        """Returns the prompt that asks to correct an answer; a truncated answer is closed before the instruction."""
        attempt = prompt.attempt + 1
        if self.prompts.history != "full":
            ids, cut = self._rendered_anew(prompt.row, completion)
            return replace(prompt, ids=ids, attempt=attempt, continues=False, cut=cut)
        retry = self.retry_ids
        room = self._most(attempt) - len(prompt.ids) - len(retry)
        if len(completion.ids) > room:
            ids = prompt.ids + _without_middle(completion.text_ids(), room) + retry
            return replace(prompt, ids=ids, attempt=attempt, continues=False, cut=True)
        if completion.finished and completion.ids[-1] == retry[0]:  # the sampled end token closes the turn already
            retry = retry[1:]
        ids = prompt.ids + completion.ids + retry
        return replace(prompt, ids=ids, attempt=attempt, continues=True, cut=False)

    def longest_next(self, tokens: int, attempt: int) -> int:
        """Returns the most tokens of the prompt of `attempt`, after `tokens` tokens of earlier prompt and answer."""
        most = self._most(attempt)
        return min(most, tokens + len(self.retry_ids)) if self.prompts.history == "full" else most

    def _most(self, attempt: int) -> int:
        """Returns the most tokens of the prompt of `attempt`; each adds an answer and an instruction."""
        limits = self.limits
        more = limits.max_new_tokens_attempt2 + len(self.retry_ids)
        return limits.max_prompt_length_attempt2 + (attempt - 2) * more

    def question(self, row: dict) -> str:
        """Returns the text of the user's first turn."""
        return self.prompts.user.format_map(row)

    def text(self, completion: Completion) -> str:
        """Decodes a completion without its end token; other special tokens stay visible to the judge."""
        return self.tokenizer.decode(completion.text_ids(), skip_special_tokens=False)

    def messages(self, row: dict) -> list[dict]:
        """Returns what of a row is read."""
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

    def _first_messages(self, row: dict) -> list[dict]:
        known = set(row)
        for name in columns_of(self.prompts.user):
            if name not in known:
                raise ConfigError(
                    f"prompts.user: the data has no column '{name}'{did_you_mean(name, known)} "
                    f"Columns: {', '.join(sorted(known))}"
                )
        return self._turns(self.question(row))

    def _turns(self, user: str) -> list[dict]:
        return with_system([{"role": "user", "content": self.outside.harmless(user)}], self.prompts.system)

    def _around_attempt1(self, first: list[dict]) -> tuple[str, str]:
        """Returns what the template writes before and after attempt 1 in a chat that asks for attempt 2."""
        correction = {"role": "user", "content": self.prompts.self_correction}
        rendered = self._render([*first, {"role": "assistant", "content": PLACEHOLDER}, correction])
        before, found, after = rendered.rpartition(PLACEHOLDER)
        if not found:
            raise ConfigError(
                "model.chat_template: it drops earlier assistant turns, so attempt 2 would not see attempt 1; "
                "give another template"
            )
        return before, after

    def _rendered_anew(self, row: dict, answer: Completion) -> tuple[list[int], bool]:
        """Returns the chat with an answer as the history mode leaves it, and whether its middle was cut out."""
        text = self.tokenizer.decode(answer.text_ids(), skip_special_tokens=True)  # or one might end a turn in there
        if self.prompts.history == "answer_only":
            text = THINK_BLOCK.sub("", text)
        else:
            text = text.replace("<think>", "").replace("</think>", "")
        before, after = self._around_attempt1(self._first_messages(row))
        text = self.outside.harmless(text.strip())  # it may have spelled a control token, letter by letter
        head, middle, tail = self._encode(before), self._encode(text), self._encode(after)
        room = self.limits.max_prompt_length_attempt2 - len(head) - len(tail)
        cut = len(middle) > room
        return head + (_without_middle(middle, room) if cut else middle) + tail, cut

    def _render(self, messages: list[dict]) -> str:
        return render(self.tokenizer, messages, self.template_kwargs)

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]


def _without_middle(ids: list[int], room: int) -> list[int]:
    """Returns the first and the last part of `ids`, `room` ids in all: a start and an end tell the most."""
    room = max(room, 0)
    head = room // 2
    return ids[:head] + (ids[len(ids) - (room - head) :] if room > head else [])

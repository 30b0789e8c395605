"""Labels the trained tokens of a chat: the assistant's turns and their end token, without marks in the chat template.

A turn is what the template adds to the prompt for it: render(messages before, generation prompt) is what the model
will read, render(messages before and this one) is what it shall have written after that, up to the end token. So no
template needs markers; {% generation %}, where there is one, changes nothing, and nothing that a user, a system prompt
or a tool says can be trained, template-like text included.

Refused rather than guessed are templates that write a turn otherwise than their own prompt begins it (DeepSeek-R1's,
which asks for thoughts and deletes them), that end no turn by a special token, or that leave out tool calls or answers.
"""

import inspect
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from lib.core.errors import ConfigError
from lib.text.chats import Chat
from lib.text.templates import PLAIN, Outside

UNTRAINED = -100  # torch's label of a token without loss
TEXTS_AT_ONCE = 256  # for the tokenizer, which uses all cores


@dataclass(frozen=True)
class Passage:
    """Holds a text to learn from and its trained parts, each with its end token, as ranges of characters."""

    text: str
    trained: list[tuple[int, int]]


@dataclass(frozen=True)
class Example:
    """Holds a passage in tokens."""

    ids: list[int]
    trained: list[tuple[int, int]]
    ends: frozenset[int]  # the ids that end its turns
    is_exact: bool  # the trained ids decode to exactly the trained text

    @property
    def labels(self) -> list[int]:
        """Returns the ids where they are trained, UNTRAINED elsewhere."""
        result = [UNTRAINED] * len(self.ids)
        for start, end in self.trained:
            result[start:end] = self.ids[start:end]
        return result

    def within(self, limit: int, cut: bool) -> "Example | None":
        """Returns an example of at most `limit` tokens; None where no trained turn is left.

        Turns that do not fit are dropped, or with `cut` the one that crosses the limit is cut. Cutting is optional
        because a turn without its end token teaches the model never to stop.
        """
        if len(self.ids) <= limit:
            return self
        fitting = [(start, end) for start, end in self.trained if end <= limit]
        if cut:
            trained = [(start, min(end, limit)) for start, end in self.trained if start < limit]
            return replace(self, ids=self.ids[:limit], trained=trained) if trained else None
        return replace(self, ids=self.ids[: fitting[-1][1]], trained=fitting) if fitting else None


class Labeller:
    """Labels chats for a tokenizer and its chat template. `stops`: the ids that the model declares to end an answer."""

    def __init__(self, tokenizer: Any, stops: frozenset[int], template_kwargs: dict[str, Any]):
        if not getattr(tokenizer, "is_fast", False):
            raise ConfigError(
                "model.name: its tokenizer does not give the positions of its tokens, so labels cannot be placed; "
                "give a model with a tokenizer.json"
            )
        if not tokenizer.chat_template:
            raise ConfigError("model.chat_template: the tokenizer has none, expected Jinja text or a path: give one")
        self.tokenizer = tokenizer
        self.template_kwargs = template_kwargs
        self.left_out: Counter[str] = Counter()  # what the template omits, and in how many turns
        self._openings: dict[str, str] = {}
        self._taken = inspect.signature(tokenizer.apply_chat_template).parameters.keys() - {"documents", "kwargs"}
        self.stops = set(filter(None, tokenizer.convert_ids_to_tokens(sorted(stops))))
        special = {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
        self.outside = Outside(tokenizer, template_kwargs, stops)
        self._special = (special | set(tokenizer.all_special_tokens) | self.stops) - {""}
        self._anchor = tokenizer.eos_token or min(self._special, default="")
        self._sizes = sorted(set(map(len, self._special)), reverse=True)

    def passages(self, chat: Chat) -> list[Passage]:
        """Returns the chat as one text, or as several, where the template rewrites a turn once others follow.

        Qwen3-style templates, for example, delete earlier <think> blocks. Then every turn follows the prompt that the
        model will read before it, and turns that can share a text do. Raises ConfigError where the template does not
        continue its own prompt, does not end a turn, or leaves out tool calls or an answer; other omissions are counted
        in `left_out`.
        """
        left = self._turns(self._without_controls(chat))
        result = []
        while left:
            whole = left[-1][0]
            shared = [turn for turn in left if whole.startswith(turn[0])]
            left = [turn for turn in left if not whole.startswith(turn[0])]
            result.append(Passage(whole, [(start, len(text)) for text, start in shared]))
        return result[::-1]

    def encode(self, passages: list[Passage]) -> Iterator[Example]:
        """Yields every passage in token ids, each tokenized as a whole."""
        for first in range(0, len(passages), TEXTS_AT_ONCE):
            batch = passages[first : first + TEXTS_AT_ONCE]
            tokenized = zip(*self._encode([passage.text for passage in batch]), strict=True)
            for passage, (ids, offsets) in zip(batch, tokenized, strict=True):
                yield self._example(passage, ids, offsets)

    def _without_controls(self, chat: Chat) -> Chat:
        """Returns the chat without control tokens except the template's own and those in turns that are trained."""
        messages = [
            message if index in chat.turns else self.outside.harmless(message)
            for index, message in enumerate(chat.messages)
        ]
        tools, kwargs = self.outside.harmless(chat.tools), self.outside.harmless(chat.template_kwargs)
        return replace(chat, messages=messages, tools=tools, template_kwargs=kwargs)

    def _turns(self, chat: Chat) -> list[tuple[str, int]]:
        """Returns, for each trained message, the text up to its end token and the index at which the turn starts.

        Where that is refused, tries again with arguments of tool calls as JSON text. Raises the first ConfigError.
        """
        refusals = []
        for spelled in (list, _with_text):
            messages, marked = spelled(chat.messages), spelled(_marked(chat.messages))
            try:
                turns = [self._turn(chat, messages, index) for index in chat.turns]
                self._check_calls(chat, marked)
                left_out = Counter(
                    kind
                    for index, (text, start) in zip(chat.turns, turns, strict=True)
                    for kind in _left_out(chat.messages[index], text[start:], f"message {index + 1} of {chat.where}")
                )
            except ConfigError as error:
                refusals.append(error)
                continue
            self.left_out += left_out
            return turns
        raise refusals[0]

    def _check_calls(self, chat: Chat, marked: list[dict]) -> None:
        """Raises ConfigError where the template does not write a call's name or arguments.

        In `marked` messages these are strings that occur nowhere else (`_marked`).
        """
        for index in chat.turns:
            if "tool_calls" not in marked[index]:
                continue
            text = self._render(chat, marked[: index + 1], False)
            for number in range(len(marked[index]["tool_calls"])):
                name, arguments = _mark(index, number)
                if str(arguments) in text or not all(mark in text for mark in (name, *arguments, *arguments.values())):
                    raise ConfigError(
                        f"model.chat_template: it leaves out tool calls of {chat.where}, or prints their arguments as "
                        "Python does; give a template that knows tools, or remove such rows"
                    )

    def _turn(self, chat: Chat, messages: list[dict], index: int) -> tuple[str, int]:
        name = f"message {index + 1} of {chat.where}"
        text = self._render(chat, messages[: index + 1], False)
        prompt = self._render(chat, messages[:index], True) if index else ""
        if index and text.startswith(prompt):
            turn = text[len(prompt) :]
        else:  # no message before it, or the template rewrites those once it follows, as Mistral's does with system
            turn = self._after(chat, messages[index])
            if turn is None or not text.endswith(turn):
                same = _common(text, prompt)
                raise ConfigError(
                    f"model.chat_template: its prompt for {name} continues with {prompt[same : same + 40]!r} where the "
                    f"chat with that message has {text[same : same + 40]!r}, so the model would never read what it "
                    "learns from; let the template write a turn as its prompt begins it, thoughts included, or change "
                    "model.chat_template_kwargs (enable_thinking: false?)"
                )
            prompt = prompt or text.removesuffix(turn)
        opening = self._opening(chat)
        if opening and turn.startswith(opening) and not prompt.endswith(opening):
            prompt, turn = prompt + opening, turn.removeprefix(opening)
        end = self._end(turn)
        if end is None:
            turn += self._closing(chat, messages[index])
            end = self._end(turn)
        if end is None:
            raise ConfigError(
                f"model.chat_template: no special token of the tokenizer ends {name}, which reads {turn[-40:]!r} at "
                "its end, so the model would never stop; let the template write one, such as "
                f"{self._anchor}, after what the assistant says"
            )
        return prompt + turn[:end], len(prompt)

    def _after(self, chat: Chat, message: dict) -> str | None:
        """Returns the text of a message after the prompt in a plain chat; None if the template rewrites the prompt."""
        prompt, text = self._render(chat, PLAIN, True), self._render(chat, [*PLAIN, message], False)
        return text[len(prompt) :] if text.startswith(prompt) else None

    def _opening(self, chat: Chat) -> str:
        """Returns the text that opens a turn, for prompts that lack it: in some templates all do, in others some."""
        key = json.dumps([chat.tools, chat.template_kwargs], default=str)
        if key not in self._openings:
            try:
                prompt = self._render(chat, PLAIN, True)
                opening = prompt[_common(prompt, self._render(chat, PLAIN, False)) :]
                if not opening.strip():
                    replies = ({"role": "assistant", "content": text} for text in ("REMATCH", "ANSWER"))
                    one, two = (self._after(chat, message) or "" for message in replies)
                    opening = one[: _common(one, two)]
            except ConfigError:  # the template refuses a plain chat
                opening = ""
            self._openings[key] = opening if opening.strip() else ""  # blanks are left to the model
        return self._openings[key]

    def _closing(self, chat: Chat, message: dict) -> str:
        """Returns the next message's opening up to a token that stops the model, as in GLM's templates; else ""."""
        exchange = [*PLAIN, {"role": "assistant", "content": "ANSWER"}]
        follows = {"role": "tool" if "tool_calls" in message else "user", "content": "?"}
        try:
            text, longer = (self._render(chat, messages, False) for messages in (exchange, [*exchange, follows]))
        except ConfigError:  # the template refuses a plain chat
            return ""
        rest = longer.removeprefix(text)
        token = next((stop for stop in self.stops if rest.lstrip().startswith(stop)), None)
        return rest[: rest.index(token) + len(token)] if token and longer.startswith(text) else ""

    def _end(self, turn: str) -> int | None:
        """Returns where the turn's end token ends.

        Of special tokens that close the turn it is the first that stops generation, else the last; None without any.
        """
        rest, ends = turn.rstrip(), []
        while token := next((rest[-size:] for size in self._sizes if rest[-size:] in self._special), None):
            ends.append((len(rest), token in self.stops))
            rest = rest.removesuffix(token).rstrip()
        return next((end for end, stops in reversed(ends) if stops), ends[0][0] if ends else None)

    def _render(self, chat: Chat, messages: list[dict], asks: bool) -> str:
        from jinja2 import TemplateError

        kwargs = {**self.template_kwargs, **chat.template_kwargs}
        if taken := self._taken & kwargs.keys():
            raise ConfigError(
                f"model.chat_template_kwargs: {', '.join(sorted(taken))}, given there or by {chat.where}, is none of "
                "the template's own names, such as enable_thinking: remove it"
            )
        try:
            return self.tokenizer.apply_chat_template(
                messages, tools=chat.tools, tokenize=False, add_generation_prompt=asks, **kwargs
            )
        except (TemplateError, TypeError, ValueError, AttributeError) as error:  # a value of an unexpected type
            raise ConfigError(
                f"model.chat_template: it refuses {chat.where} ({error}); fix the row or give another template"
            ) from error

    def _encode(self, texts: list[str]) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
        encoded = self.tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return encoded["input_ids"], encoded["offset_mapping"]

    def _example(self, passage: Passage, ids: list[int], offsets: list[tuple[int, int]]) -> Example:
        trained, astride = _ranges(passage, offsets)
        example = self._labelled(passage, ids, trained)
        if not astride:
            return example
        # the model reads a prompt that was tokenized without its answer, so no token may cross that border
        cuts, examples = [0, *astride, len(passage.text)], []
        for anchor in (self._anchor, self._anchor + "."):  # some tokenizers add a space at the start of a text
            anchors = ["", *(anchor for _ in astride)]
            texts = [passage.text[start:end] for start, end in pairwise(cuts)]
            pieces = self._encode([before + text for before, text in zip(anchors, texts, strict=True)])
            ids, offsets = [], []
            for base, before, *tokens in zip(cuts[:-1], anchors, *pieces, strict=True):
                for token, (start, end) in zip(*tokens, strict=True):
                    if start >= len(before):
                        ids.append(token)
                        offsets.append((base + start - len(before), base + end - len(before)))
            examples.append(self._labelled(passage, ids, _ranges(passage, offsets)[0]))
        # where none is exact, the tokenizer itself changes characters (NFC), border or not
        return next((candidate for candidate in (*examples, example) if candidate.is_exact), examples[0])

    def _labelled(self, passage: Passage, ids: list[int], trained: list[tuple[int, int]]) -> Example:
        is_exact = self._reads(passage, ids, trained)
        trained = [(start, end) for start, end in trained if start < end]
        return Example(ids, trained, frozenset(ids[end - 1] for _, end in trained), is_exact)

    def _reads(self, passage: Passage, ids: list[int], trained: list[tuple[int, int]]) -> bool:
        """True if the trained ids, decoded after the token before them, are the trained text."""
        for (start, end), (first, last) in zip(passage.trained, trained, strict=True):
            before = max(first - 1, 0)
            context, whole = (
                self.tokenizer.decode(part, skip_special_tokens=False, clean_up_tokenization_spaces=False)
                for part in (ids[before:first], ids[before:last])
            )
            if not whole.startswith(context) or whole[len(context) :] != passage.text[start:end]:
                return False
        return True


def _ranges(passage: Passage, offsets: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """Returns the trained ranges in tokens, and those starts of trained parts that lie inside a token."""
    begins, ends = [], []  # per token; characters outside all tokens, such as trimmed spaces, belong to the next one
    for start, end in offsets:
        begins.append(min(start, ends[-1]) if ends else 0)
        ends.append(max(end, ends[-1]) if ends else end)
    trained, astride = [], []
    for start, end in passage.trained:
        first = bisect_left(begins, start)
        trained.append((first, bisect_left(begins, end)))
        if first and ends[first - 1] > start:
            astride.append(start)
    return trained, astride


def _left_out(message: dict, turn: str, name: str) -> Iterator[str]:
    """Yields what the rendered turn omits from its message. Raises ConfigError where that is the answer itself."""
    *thoughts, answer = re.split("</?think>", message["content"])
    if not _holds(turn, answer):
        if "tool_calls" not in message:
            raise ConfigError(
                f"model.chat_template: it does not write what {name} says, {answer[:40]!r}, but {turn[:40]!r}; give "
                "another template, or fix the row"
            )
        yield "what is said besides tool calls"
    thoughts += [message[key] for key in ("reasoning_content", "reasoning") if isinstance(message.get(key), str)]
    if not all(_holds(turn, thought) for thought in thoughts):
        yield "reasoning"


def _holds(turn: str, words: str) -> bool:
    """True if a turn contains the words, ignoring whitespace, which templates trim."""
    return "".join(words.split()) in "".join(turn.split())


def _mark(index: int, number: int) -> tuple[str, dict[str, str]]:
    """Returns a name and arguments of a tool call that no chat contains."""
    mark = f"rematch_{index}_{number}_"
    return mark + "name", {mark + "key": mark + "value"}


def _marked(messages: list[dict]) -> list[dict]:
    """Returns the messages with the names and arguments of all tool calls replaced by those of `_mark`."""
    result = []
    for index, message in enumerate(messages):
        calls = []
        for number, call in enumerate(message.get("tool_calls", ())):
            name, arguments = _mark(index, number)
            calls.append({**call, "function": {**call["function"], "name": name, "arguments": arguments}})
        result.append({**message, "tool_calls": calls} if calls else message)
    return result


def _with_text(messages: list[dict]) -> list[dict]:
    """Turns the arguments of tool calls into JSON text, for templates that take them so."""
    result = []
    for message in messages:
        calls = []
        for call in message.get("tool_calls", ()):
            text = json.dumps(call["function"]["arguments"], ensure_ascii=False)
            calls.append({**call, "function": {**call["function"], "arguments": text}})
        result.append({**message, "tool_calls": calls} if calls else message)
    return result


def _common(one: str, other: str) -> int:
    """Returns the length of the common prefix."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))

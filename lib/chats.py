"""What of a chat is trained: the assistant's turns and their end token, for any chat template.

A turn is what the template adds to the prompt for it: render(messages before, generation prompt) is what the model
will read, render(messages before and this one) is what it shall have written after that, up to the end token. So no
template needs markers; {% generation %}, where there is one, changes nothing, and nothing that a user, a system prompt
or a tool says can be trained, template-like text included.

Chats stay plain dicts until they are token ids: Arrow, for one, would merge the arguments of all tool calls.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from lib.errors import ConfigError

UNTRAINED = -100  # torch's label of a token without loss
TEXTS_AT_ONCE = 256  # for the tokenizer, which uses all cores


@dataclass(frozen=True)
class Chat:
    """A row, made uniform."""

    messages: list[dict[str, Any]]
    turns: list[int]  # which messages are trained
    tools: list[dict] | None
    template_kwargs: dict[str, Any]
    where: str  # for people: which row

    def key(self) -> str:
        """Equal for equal chats."""
        return json.dumps([self.messages, self.turns, self.tools, self.template_kwargs], sort_keys=True, default=str)


@dataclass(frozen=True)
class Passage:
    """A text to learn from, and the parts of it that are trained, each with its end token, as ranges of characters."""

    text: str
    trained: list[tuple[int, int]]


@dataclass(frozen=True)
class Example:
    """The same in tokens."""

    ids: list[int]
    trained: list[tuple[int, int]]
    ends: frozenset[int]  # the ids that end its turns
    is_exact: bool  # the trained ids, decoded, are the trained text to the letter

    @property
    def labels(self) -> list[int]:
        """The ids where they are trained, UNTRAINED elsewhere."""
        result = [UNTRAINED] * len(self.ids)
        for start, end in self.trained:
            result[start:end] = self.ids[start:end]
        return result

    def within(self, limit: int, cut: bool) -> "Example | None":
        """At most `limit` tokens: turns that do not fit are left out, or one of them is `cut`; None: nothing is left.

        A turn without its end teaches to go on for ever, so cutting is for who wants it.
        """
        if len(self.ids) <= limit:
            return self
        fitting = [(start, end) for start, end in self.trained if end <= limit]
        if cut:
            trained = [(start, min(end, limit)) for start, end in self.trained if start < limit]
            return replace(self, ids=self.ids[:limit], trained=trained) if trained else None
        return replace(self, ids=self.ids[: fitting[-1][1]], trained=fitting) if fitting else None


def as_chat(row: dict[str, Any], where: str) -> Chat:
    """A row with `messages`, or with `prompt` and `completion`, of which only the latter is trained; ConfigError else.

    Text in `prompt` is what a user says, text in `completion` what the assistant says. Other columns are ignored, but
    for `tools` and `chat_template_kwargs`.
    """
    if row.get("messages"):
        messages, given = _listed(row["messages"], "user", where), 0
    elif row.get("prompt") and row.get("completion"):
        prompt, completion = _listed(row["prompt"], "user", where), _listed(row["completion"], "assistant", where)
        messages, given = prompt + completion, len(prompt)
    else:
        raise ConfigError(
            f"dataset.name: {where} has {', '.join(map(repr, row)) or 'no column'}, expected 'messages', or 'prompt' "
            "and 'completion', with something in them: rename the columns or remove the row"
        )
    messages = [as_message(message, f"message {number} of {where}") for number, message in enumerate(messages, start=1)]
    turns = [index for index, message in enumerate(messages) if message["role"] == "assistant" and index >= given]
    if not turns:
        raise ConfigError(f"dataset.name: {where} has no assistant message, so nothing to train on: remove it")
    tools = _from_json(row.get("tools"), list, f"'tools' of {where}") or None
    if tools and not all(isinstance(tool, dict) for tool in tools):
        raise ConfigError(
            f"dataset.name: 'tools' of {where} has an entry that is no object, expected function schemas: mend the row"
        )
    return Chat(messages, turns, tools, row.get("chat_template_kwargs") or {}, where)


def _listed(value: object, speaker: str, where: str) -> list:
    """Messages; text is one message of `speaker`."""
    if isinstance(value, str):
        return [{"role": speaker, "content": value}]
    if isinstance(value, list):
        return value
    raise ConfigError(
        f"dataset.name: {where} has a {type(value).__name__} where messages belong, expected a list of objects with "
        "'role' and 'content': mend the row"
    )


def as_message(message: object, where: str) -> dict[str, Any]:
    """A message without empty keys, since templates ask whether a key is there; tool arguments as objects."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise ConfigError(f"dataset.name: {where} has no 'role', expected an object with 'role' and 'content': mend it")
    content = message.get("content")
    if content is not None and not isinstance(content, str | list):
        raise ConfigError(
            f"dataset.name: 'content' of {where} is a {type(content).__name__}, expected text or a list of parts: "
            "mend it"
        )
    kept = {key: value for key, value in message.items() if value is not None and (key != "tool_calls" or value)}
    kept["content"] = "" if content is None else content
    if "tool_calls" in kept:
        kept["tool_calls"] = [_call(call, where) for call in _from_json(kept["tool_calls"], list, f"calls of {where}")]
    return kept


def _call(call: object, where: str) -> dict[str, Any]:
    """A tool call with arguments as an object, which is what most templates write down right."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ConfigError(
            f"dataset.name: a tool call of {where} has no function with a name, expected "
            '{"type": "function", "function": {"name": ..., "arguments": {...}}}: mend it'
        )
    arguments = _from_json(function.get("arguments"), dict, f"the arguments of {function['name']} in {where}") or {}
    return {**call, "function": {**function, "arguments": arguments}}


def _from_json(value: object, kind: type, what: str) -> Any:
    """`value`, which may be given as JSON text; None stays None. ConfigError where it is not of that kind."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ConfigError(f"dataset.name: {what} can not be read as JSON ({error}): mend the row") from error
    if value is not None and not isinstance(value, kind):
        expected = {list: "a list", dict: "an object"}[kind]
        raise ConfigError(f"dataset.name: {what}: got a {type(value).__name__}, expected {expected}: mend the row")
    return value


class Labeller:
    """One tokenizer and its chat template. `stops` are the ids that end an answer, as far as the model knows."""

    def __init__(self, tokenizer: object, stops: frozenset[int], template_kwargs: dict[str, Any]):
        if not getattr(tokenizer, "is_fast", False):
            raise ConfigError(
                "model.name: its tokenizer does not tell where in a text a token stands, so labels can not be placed; "
                "give a model with a tokenizer.json"
            )
        self.tokenizer = tokenizer
        self.template_kwargs = template_kwargs
        self.stops = set(filter(None, tokenizer.convert_ids_to_tokens(sorted(stops))))
        special = {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
        self._special = (special | set(tokenizer.all_special_tokens) | self.stops) - {""}
        self._sizes = sorted(set(map(len, self._special)), reverse=True)

    def passages(self, chat: Chat) -> list[Passage]:
        """The chat as one text, or as several, where the template writes a turn differently once others follow it.

        Qwen3-style templates delete earlier <think> blocks, for one. Then every turn stands behind the prompt that the
        model will read before it, and turns that can share a text do. ConfigError where the template does not
        continue its own prompt, does not end a turn, or leaves out tool calls.
        """
        left = self._turns(chat)
        result = []
        while left:
            whole = left[-1][0]
            shared = [turn for turn in left if whole.startswith(turn[0])]
            left = [turn for turn in left if not whole.startswith(turn[0])]
            result.append(Passage(whole, [(start, len(text)) for text, start in shared]))
        return result[::-1]

    def encode(self, passages: list[Passage]) -> Iterator[Example]:
        """Every passage in token ids, each tokenized as a whole."""
        for first in range(0, len(passages), TEXTS_AT_ONCE):
            batch = passages[first : first + TEXTS_AT_ONCE]
            ids, offsets = self._encode([passage.text for passage in batch])
            for passage, *tokens in zip(batch, ids, offsets, strict=True):
                yield self._example(passage, *tokens)

    def _turns(self, chat: Chat) -> list[tuple[str, int]]:
        """Of each trained message the text up to its end token, and where in it the turn starts."""
        refusals, leaves_out = [], False
        for messages in _spellings(chat.messages):
            try:
                found = [self._turn(chat, messages, index) for index in chat.turns]
            except ConfigError as error:
                refusals.append(error)
                continue
            if all(
                call["function"]["name"] in text[start:]
                for index, (text, start) in zip(chat.turns, found, strict=True)
                for call in messages[index].get("tool_calls", ())
            ):
                return found
            leaves_out = True
        if leaves_out:
            raise ConfigError(
                f"model.chat_template: it leaves out tool calls of {chat.where}; give a template that knows tools, or "
                "remove such rows"
            )
        raise refusals[-1]

    def _turn(self, chat: Chat, messages: list[dict], index: int) -> tuple[str, int]:
        name = f"message {index + 1} of {chat.where}"
        text = self._render(chat, messages[: index + 1], False)
        prompt = self._render(chat, messages[:index], True) if index else None
        start = len(prompt) if prompt and text.startswith(prompt) else self._start(chat, messages[:index], text)
        if start is None:
            same = _common(text, prompt or "")
            raise ConfigError(
                f"model.chat_template: it does not write {name} after its own prompt for it, which goes on with "
                f"{(prompt or '')[same : same + 40]!r} where the message has {text[same : same + 40]!r}; change "
                "model.chat_template_kwargs (enable_thinking?), give another template, or mend the row"
            )
        turn = text[start:]
        prompt = prompt or text[:start]
        return prompt + turn[: self._end(turn, name)], len(prompt)

    def _start(self, chat: Chat, before: list[dict], text: str) -> int | None:
        """Where the last message of `text` says its first word, when no prompt tells: nothing comes before it, or what
        does is written differently once it follows. Found by the words that open a turn, as in a plain chat."""
        plain, answer = [{"role": "user", "content": "?"}], {"role": "assistant", "content": "REMATCH ANSWER"}
        asked = self._render(chat, plain, True)
        opening = asked[_common(asked, self._render(chat, plain, False)) :]
        if not opening.strip():
            return None
        alike = (self._render(chat, [*messages, answer], False) for messages in (plain, before))
        (_, found, tail), (head, _, same) = (each.rpartition(opening) for each in alike)
        start = len(head) + len(opening)
        return start if found and tail == same and text.rfind(opening) == len(head) else None

    def _end(self, turn: str, name: str) -> int:
        """Where the turn's end token ends: of the special tokens that close it the first that stops, else the last."""
        rest, ends = turn.rstrip(), []
        while token := next((rest[-size:] for size in self._sizes if rest[-size:] in self._special), None):
            ends.append((len(rest), token in self.stops))
            rest = rest.removesuffix(token).rstrip()
        if not ends:
            raise ConfigError(
                f"model.chat_template: no special token of the tokenizer ends {name}, which reads {turn[-40:]!r} at "
                "its end, so the model would never stop; let the template write one, such as "
                f"{self.tokenizer.eos_token}, after what the assistant says"
            )
        return next((end for end, stops in reversed(ends) if stops), ends[0][0])

    def _render(self, chat: Chat, messages: list[dict], asks: bool) -> str:
        from jinja2 import TemplateError

        kwargs = {**self.template_kwargs, **chat.template_kwargs}
        try:
            return self.tokenizer.apply_chat_template(
                messages, tools=chat.tools, tokenize=False, add_generation_prompt=asks, **kwargs
            )
        except (TemplateError, TypeError) as error:  # TypeError: the template adds text and what is no text
            raise ConfigError(
                f"model.chat_template: it refuses {chat.where} ({error}); mend the row or give another template"
            ) from error

    def _encode(self, texts: list[str]) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
        encoded = self.tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return encoded["input_ids"], encoded["offset_mapping"]

    def _example(self, passage: Passage, ids: list[int], offsets: list[tuple[int, int]]) -> Example:
        trained, astride = _ranges(passage, offsets)
        example = self._labelled(passage, ids, trained)
        if not astride:
            return example
        # the model reads a prompt that was tokenized without its answer, so no token may reach over that border
        cuts = [0, *astride, len(passage.text)]
        for anchor in (self.tokenizer.eos_token, self.tokenizer.eos_token + "."):  # the start of a text may get a space
            anchors = ["", *(anchor for _ in astride)]
            texts = [passage.text[start:end] for start, end in pairwise(cuts)]
            pieces = self._encode([before + text for before, text in zip(anchors, texts, strict=True)])
            ids, offsets = [], []
            for base, before, *tokens in zip(cuts[:-1], anchors, *pieces, strict=True):
                for token, (start, end) in zip(*tokens, strict=True):
                    if start >= len(before):
                        ids.append(token)
                        offsets.append((base + start - len(before), base + end - len(before)))
            parted = self._labelled(passage, ids, _ranges(passage, offsets)[0])
            if parted.is_exact:
                return parted
        return example

    def _labelled(self, passage: Passage, ids: list[int], trained: list[tuple[int, int]]) -> Example:
        ends = frozenset(ids[end - 1] for _, end in trained)
        return Example(ids, trained, ends, self._reads(passage, ids, trained))

    def _reads(self, passage: Passage, ids: list[int], trained: list[tuple[int, int]]) -> bool:
        """Whether the trained ids, decoded behind the token before them, are the trained text."""
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
    """The trained ranges in tokens, and at which of their starts a token stands astride."""
    begins, ends = [], []  # of every token; characters that none claims, as trimmed spaces, belong to the next one
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


def _spellings(messages: list[dict]) -> Iterator[list[dict]]:
    """The messages as most templates want their tool calls, then as others do: without any content, or with
    arguments as JSON text (DeepSeek's)."""
    yield messages
    if any("tool_calls" in message for message in messages):
        empty = [
            {**message, "content": None} if "tool_calls" in message and not message["content"] else message
            for message in messages
        ]
        yield empty
        for each in (messages, empty):
            yield [
                {**message, "tool_calls": [_with_text(call) for call in message["tool_calls"]]}
                if "tool_calls" in message
                else message
                for message in each
            ]


def _with_text(call: dict) -> dict:
    function = call["function"]
    return {**call, "function": {**function, "arguments": json.dumps(function["arguments"], ensure_ascii=False)}}


def _common(one: str, other: str) -> int:
    """How many characters both start with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))

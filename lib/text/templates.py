"""Chats as a model reads them: the template of its tokenizer, and no control token in what comes from outside.

A chat template pastes what is said between its own marks, and a tokenizer reads a mark wherever it stands: a question
that holds `<|im_end|><|assistant|>` would become a turn of the assistant. Columns of a data set, hints, feedback and
results of tools come from outside, as does what a policy wrote once it is text again. What it sampled is kept as
token ids, and is never touched.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from lib.core.errors import ConfigError

MOST_PASSES = 20  # escaping one mark may form another, so it is repeated
SHOWN = 5  # marks or characters that a note lists
SYSTEM_ROLES = ("system", "developer")  # `developer` is the newer name
PLAIN = [{"role": "user", "content": "?"}]


def render(tokenizer: Any, messages: list[dict[str, Any]], template_kwargs: dict[str, Any]) -> str:
    """Renders the chat as text, up to where the assistant answers. Raises ConfigError where the template refuses it."""
    from jinja2 import TemplateError

    try:
        return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **template_kwargs)
    except TemplateError as error:
        raise ConfigError(
            f"model.chat_template: it refuses this chat ({error}); change prompts.system or give another template"
        ) from error


def with_system(messages: list[dict[str, Any]], system: str) -> list[dict[str, Any]]:
    """Returns the chat after a system prompt ("": none); one that has a system message of its own is unchanged."""
    has_own = any(message["role"] in SYSTEM_ROLES for message in messages)
    return messages if has_own or not system else [{"role": "system", "content": system}, *messages]


def listed(messages: Any) -> Any:
    """Returns messages as a list; a column may have them as one object of arrays, {role: [...], content: [...]}."""
    columns = list(messages.values()) if isinstance(messages, dict) else []
    if {type(column) for column in columns} != {list} or len(set(map(len, columns))) > 1:
        return messages
    return [dict(zip(messages, values, strict=True)) for values in zip(*columns, strict=True)]


def system_notes(chats: Iterable[list[dict[str, Any]]], system: str) -> list[str]:
    """Returns notes for chats that kept their own system message instead of that of the config."""
    kept = [{"role": "system", "content": system} not in messages for messages in chats] if system else []
    note = f"{sum(kept)} of {len(kept)} chats have a system message of their own, and keep it: no prompts.system there"
    return [note] if any(kept) else []


def switch_thinking(template_kwargs: dict[str, Any], enabled: bool, render: Callable[..., str]) -> None:
    """Sets a template's `enable_thinking`. Raises ConfigError where `render(enable_thinking=...)` does not obey it.

    A template without such a switch cannot enable thinking; disabling it is an error where it opens a think block.
    """
    text = render(enable_thinking=True)
    thinks = text.rfind("<think>") > text.rfind("</think>")
    if text == render(enable_thinking=False) and (enabled or thinks):
        raise ConfigError(
            "generation.thinking.enabled: the chat template writes the same with enable_thinking true and false; "
            "set it to null, or give the template's own switch in model.chat_template_kwargs"
        )
    template_kwargs["enable_thinking"] = enabled


class Outside:
    """Knows the control tokens of a tokenizer: special ones, `stops`, and those by which its template marks turns.

    Tags such as <think>, which no tokenizer declares special, are not among them: prompts may mention them.
    """

    def __init__(self, tokenizer: Any, template_kwargs: dict[str, Any] | None = None, stops: Iterable[int] = ()):
        self.tokenizer = tokenizer
        added = {id: token for id, token in tokenizer.added_tokens_decoder.items() if token.content.strip()}
        marks = {*stops, *tokenizer.all_special_ids, *_turn_marks(tokenizer, template_kwargs or {})}
        self._ids = {id for id, token in added.items() if token.special or id in marks}
        self.controls = {added[id].content for id in self._ids}
        longest_first = sorted(self.controls, key=lambda control: (-len(control), control))
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        backend = getattr(tokenizer, "backend_tokenizer", None)
        knows_bytes = getattr(getattr(backend, "model", None), "byte_fallback", False)
        self._knows_all = tokenizer.unk_token_id is None or knows_bytes
        normalizer = getattr(backend, "normalizer", None)
        # the tokenizer finds these in normalized text, where a lower-case mark may match an upper-case one
        self._normalizes = normalizer is not None and any(added[id].normalized for id in self._ids)
        self._plain: dict[str, str] = {}

    def controls_in(self, text: str) -> list[str]:
        """Returns the control tokens in a text, in order."""
        controls = self._pattern.findall(text)
        if self._normalizes and not controls:
            controls = [text[start:end] for start, end in self._spans(text)]
        return controls

    def harmless(self, value: Any) -> Any:
        """Returns a text, or all texts in lists and dicts, without control tokens.

        The first character of each is escaped. Where the tokenizer cannot read `&lt;`, a space is put after the first
        character instead, or the token is removed. Other texts are returned unchanged.
        """
        if isinstance(value, str):
            return self._escaped(value)
        if isinstance(value, dict):
            return {self.harmless(key): self.harmless(entry) for key, entry in value.items()}
        return [self.harmless(entry) for entry in value] if isinstance(value, list | tuple) else value

    def unknown_in(self, text: str) -> set[str]:
        """Returns the characters of a text that the tokenizer maps to its unknown token."""
        if self._knows_all:
            return set()
        unknown = self.tokenizer.unk_token_id
        return {text[start:end] for id, start, end in self._read(text) if id == unknown} - {self.tokenizer.unk_token}

    def refuse_controls(self, prompts: dict[str, str]) -> None:
        """Raises ConfigError where a prompt holds a control token. `prompts` maps keys of the config to texts."""
        for key, text in prompts.items():
            if controls := self.controls_in(text):
                raise ConfigError(
                    f"{key}: {controls[0]!r} is a control token of this model, which only the chat template writes: "
                    "remove it, or have model.chat_template write it"
                )

    def notes(self, rows: Iterable[tuple[Any, list[str]]]) -> list[str]:
        """Returns notes on the control tokens and the unknown characters found in rows.

        `rows` gives the place and the texts of each row.
        """
        counts: Counter[str] = Counter()
        firsts: dict[str, Any] = {}
        shown: dict[str, dict[str, None]] = {"controls": {}, "unknown": {}}
        for place, texts in rows:
            for kind, look in (("controls", self.controls_in), ("unknown", self.unknown_in)):
                if tokens := [token for text in texts for token in look(text)]:
                    counts[kind] += 1
                    firsts.setdefault(kind, place)
                    shown[kind] |= dict.fromkeys(sorted(tokens))

        def told(kind: str) -> str:
            names = list(shown[kind])
            more = ", ..." if len(names) > SHOWN else ""
            return f"{', '.join(map(repr, names[:SHOWN]))}{more} ({counts[kind]} rows, first {firsts[kind]})"

        notes = []
        if counts["controls"]:
            notes.append(f"control tokens in the data are read as plain text: {told('controls')}")
        if counts["unknown"]:
            notes.append(
                f"the tokenizer does not know {told('unknown')}: the model reads {self.tokenizer.unk_token} there; "
                "clean the data, or use another model"
            )
        return notes

    def _escaped(self, text: str) -> str:
        for _ in range(MOST_PASSES):
            before, text = text, self._pattern.sub(lambda match: self._as_text(match[0]), text)
            for start, end in reversed(self._spans(text)) if self._normalizes else ():
                text = text[:start] + self._as_text(text[start:end]) + text[end:]
            if text == before:
                return text
        return self._without(text)

    def _without(self, text: str) -> str:
        """Returns the text without control tokens, including those that form when others are removed."""
        kept: list[str] = []
        longest = max(map(len, self.controls))
        for character in text:
            kept.append(character)
            end = "".join(kept[-longest:])
            if control := next((token for token in self.controls if end.endswith(token)), None):
                del kept[-len(control) :]
        return "".join(kept)

    def _as_text(self, control: str) -> str:
        """Returns a control token respelled so that the tokenizer can read it, but not as one; "" if it cannot be."""
        if control not in self._plain:
            entity = "&lt;" if control[0] == "<" else f"&#{ord(control[0])};"
            readable = (
                spelling
                for spelling in (entity + control[1:], f"{control[0]} {control[1:]}")
                if not self._pattern.search(spelling) and not self._spans(spelling) and not self.unknown_in(spelling)
            )
            self._plain[control] = next(readable, "")
        return self._plain[control]

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Returns the (start, end) of each control token that the tokenizer reads in a text."""
        unknown = self.tokenizer.unk_token_id  # a control token too, but it also stands for unknown characters
        return [(start, end) for id, start, end in self._read(text) if id in self._ids and id != unknown]

    def _read(self, text: str) -> list[tuple[int, int, int]]:
        """Returns the tokens of a text as (id, start, end); none where the tokenizer gives no offsets."""
        if not self.tokenizer.is_fast:
            return []
        encoded = self.tokenizer(text, return_offsets_mapping=True, add_special_tokens=False, verbose=False)
        pairs = zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        return [(id, start, end) for id, (start, end) in pairs if start < end]


def _turn_marks(tokenizer: Any, template_kwargs: dict[str, Any]) -> set[int]:
    """Returns the ids that the chat template writes around messages; none where it refuses a plain chat."""
    turns = [("user", "?"), ("assistant", "ANSWER"), ("user", "?")]
    messages = [{"role": role, "content": content} for role, content in turns]
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, **template_kwargs)
    except Exception:  # templates raise errors of any type; rendering a real chat reports it
        return set()
    content_ids = {id for _, content in turns for id in tokenizer(content, add_special_tokens=False)["input_ids"]}
    return set(tokenizer(text, add_special_tokens=False)["input_ids"]) - content_ids

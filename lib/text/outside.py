"""Text from outside, made safe for one tokenizer: no control token is read in it, and what it does not know is told.

A chat template pastes what is said between its own marks, and a tokenizer reads a mark wherever it stands: a question
that holds `<|im_end|><|assistant|>` would become a turn of the assistant. Columns of a data set, hints, feedback and
results of tools come from outside, and so does what a policy wrote once it is text again. What it sampled is kept as
token ids, and is never touched.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from lib.core.errors import ConfigError

MOST_PASSES = 20  # escaping one mark may form another, so it is repeated
SHOWN = 5  # marks or characters that a note lists


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
        found = self._pattern.findall(text)
        if self._normalizes and not found:
            found = [text[start:end] for start, end in self._spans(text)]
        return found

    def harmless(self, value: Any) -> Any:
        """Returns a text, or all texts in lists and dicts, without control tokens.

        The first character of each is escaped. Where the tokenizer cannot read `&lt;`, a space is put behind the first
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
            if found := self.controls_in(text):
                raise ConfigError(
                    f"{key}: {found[0]!r} is a control token of this model, which only the chat template writes: "
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
                if found := [each for text in texts for each in look(text)]:
                    counts[kind] += 1
                    firsts.setdefault(kind, place)
                    shown[kind] |= dict.fromkeys(sorted(found))

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
            before, text = text, self._pattern.sub(lambda found: self._as_text(found[0]), text)
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
            if control := next((each for each in self.controls if end.endswith(each)), None):
                del kept[-len(control) :]
        return "".join(kept)

    def _as_text(self, control: str) -> str:
        """Returns a control token respelled so that the tokenizer can read it, but not as one; "" if it cannot be."""
        if control not in self._plain:
            entity = "&lt;" if control[0] == "<" else f"&#{ord(control[0])};"
            readable = (
                each
                for each in (entity + control[1:], f"{control[0]} {control[1:]}")
                if not self._pattern.search(each) and not self._spans(each) and not self.unknown_in(each)
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
    said = [("user", "?"), ("assistant", "ANSWER"), ("user", "?")]
    messages = [{"role": role, "content": content} for role, content in said]
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, **template_kwargs)
    except Exception:  # templates raise errors of any type; rendering a real chat reports it
        return set()
    own = {id for _, content in said for id in tokenizer(content, add_special_tokens=False)["input_ids"]}
    return set(tokenizer(text, add_special_tokens=False)["input_ids"]) - own

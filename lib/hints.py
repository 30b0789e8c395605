"""What a teacher says, made fit to be shown to the policy, or dropped: no code, no answer, ASCII, short.

A hint that gives the answer away teaches to copy; a hint with code teaches the format of hints.
"""

import re
from dataclasses import dataclass
from typing import Any

from lib.parsing import last_json_object, split_reasoning, without_special_tokens, without_thinking

LONGEST_READ = 20_000  # characters: what comes behind them is no hint
FEWEST_SECRET = 2  # characters of an answer that is searched for in a hint: a single one stands in any sentence
_FENCED = re.compile(r"(`{3,}|~{3,}).*?(?:\1|\Z)", re.DOTALL)
# Of a stripped line. A statement never ends in a word and a full stop, as sentences do.
_CODE_LINE = re.compile(
    r"""(?!.*[a-z][.!?]$)(?:>>>|\#!|@\w+$
        |(?:async\s+)?def\s+\w+\s*\( | class\s+\w+\s*[:(] | from\s+[\w.]+\s+import\s+\w
        |import\s+[\w.]+\s*(?:$|,|;|as\b) | (?:return|yield|assert)\b | (?:pass|break|continue)$
        |raise\s+\w*(?:Error|Exception)\b
        |(?:if|elif|for|while|with|else|try|except)\b
         (?:.*:$|[^:]*:\s*(?:\S+$|(?:return|pass|break|continue|yield|raise)\b|[\w.\[\]]+\s*[-+*/%]{0,2}=(?!=)))
        |\w[\w.\[\]'"]*(?:\s*,\s*\w[\w.\[\]'"]*)*\s*[-+*/%|&]{0,2}=(?!=)\s*\S
        |\w[\w.]*\((?![^()]*\)\s+\w)(?:.*[)\]])?\s*;?$ | \[(?=.*\sfor\s).*\]$)""",
    re.VERBOSE,
)
_INLINE_CODE = re.compile(r"\bdef\s+\w+\s*\(|\blambda\s*(?:\*{0,2}\w+\s*[,:=]|:)|\breturn\s+\w+\s*[-+*/%(\[]")
_PREFIX = re.compile(r"^\s*(?:[*_#>\s]*)(?:final answer|answer|hint|critique|pointer)\s*[*_]*\s*:\s*[*_]*\s*", re.I)
_WRAPPED = ("final_answer", "hint", "answer", "critique")


@dataclass(frozen=True)
class Cleaned:
    """A hint, or why there is none: empty, code."""

    text: str = ""
    dropped: str = ""


def clean(text: str, max_characters: int) -> Cleaned:
    """The hint in a teacher's text. Takes any string, never raises, and runs in linear time."""
    _, text, _ = split_reasoning(without_thinking(text[:LONGEST_READ]))
    wrapped, _ = last_json_object(text)
    if wrapped:
        text = next((str(wrapped[key] or "") for key in _WRAPPED if key in wrapped), text)
    had_code = bool(_FENCED.search(text))
    lines = []
    for line in _FENCED.sub("\n", text).splitlines():
        if _CODE_LINE.match(line.strip()) or _INLINE_CODE.search(line):
            had_code = True
        else:
            lines.append(line)
    text = " ".join(lines).replace("`", "")
    text = " ".join(text.encode("ascii", "ignore").decode().split())
    text = "".join(character for character in text if character.isprintable())
    while prefix := _PREFIX.match(text):
        text = text[prefix.end() :]
    text = without_special_tokens(text)  # it goes into the policy's prompt: it can not end a turn there
    if len(text) > max_characters:
        text = text[: max_characters + 1].rpartition(" ")[0] or text[:max_characters]
    if not re.search(r"[A-Za-z]{2}", text):
        return Cleaned(dropped="code" if had_code else "empty")
    return Cleaned(text)


def gives_away(hint: str, secrets: list[str]) -> bool:
    """Whether one of the secrets, a right answer, stands in the hint, as a whole and whatever the blanks and case."""
    squeezed = _squeezed(hint)
    return any(
        len(secret := _squeezed(each)) >= FEWEST_SECRET
        and re.search(rf"(?<![\w.]){re.escape(secret)}(?!\w|\.\d)", squeezed) is not None
        for each in secrets
    )


def _squeezed(text: Any) -> str:
    return " ".join(str(text).lower().split())

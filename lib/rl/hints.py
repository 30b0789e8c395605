"""Cleans a teacher's hints so that they can be shown to the policy, or drops them: no code, no answer, ASCII, short.

A hint that gives the answer away teaches to copy; a hint with code teaches the format of hints.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from judge.parsing import quantity, split_reasoning, without_special_tokens, without_thinking
from judge.quantities import numerals
from lib.core.clock import phase
from lib.rewards.judge import Judge
from lib.rl.prompts import Prompt
from lib.text.calls import last_json_object

LONGEST_READ = 20_000  # characters: the rest is ignored
LONGEST = 300  # characters of a hint or a critique
_FENCED = re.compile(r"(`{3,}|~{3,}).*?(?:\1|\Z)", re.DOTALL)
# Matches a stripped line of code. A statement never ends in a word and a full stop, as sentences do.
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
_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SMALL = {word: value for value, word in enumerate(_ONES + _TEENS)} | {w: 10 * i for i, w in enumerate(_TENS, start=2)}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_WORD = rf"(?:{'|'.join([*_SMALL, *_SCALES, 'hundred'])}|\d{{1,3}})"
_WORDS_RUN = re.compile(rf"(?<![\w.,]){_WORD}(?:(?:[ ,-]+(?:and )?(?:a )?){_WORD})*(?![\w]|[.,]\d)")
_LISTED = re.compile(r"(?:^|(?<=[.!?;]) )\(?\d[.)] (?=\S)")  # 1. Add the ones. 2. Carry.
_STATES = r"(?:\b(?:is|equals?|be|becomes?|gives?|makes?|gets?|answer|option|choice|result|say|write)\b|[=:])\s*"
_WRAPPED = ("final_answer", "hint", "answer", "critique")


@dataclass(frozen=True)
class Cleaned:
    """A hint, or why there is none: empty, code."""

    text: str = ""
    dropped: str = ""


def clean(text: str) -> Cleaned:
    """Extracts the hint from a teacher's text. Takes any string, never raises, and runs in linear time."""
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
    text = without_special_tokens(text)  # it goes into the policy's prompt, and must not end a turn there
    if len(text) > LONGEST:  # cut at a space
        text = text[: LONGEST + 1].rpartition(" ")[0] or text[:LONGEST]
    if not re.search(r"[A-Za-z]{2}", text):
        return Cleaned(dropped="code" if had_code else "empty")
    return Cleaned(text)


def leaks(hint: str, prompt: Prompt, judge: Judge) -> bool:
    """True if a hint reveals the answer to a prompt: contains it, or would itself be judged right."""
    row, question = prompt.row, prompt.question
    with phase("reward"):
        (verdict,) = judge([hint], [row], [question])
    is_right = verdict.scored and verdict.match
    return is_right or gives_away(hint, judge.secrets(row), question) or judge.reveals(hint, row)


def gives_away(hint: str, secrets: list[str], question: str = "") -> bool:
    """True if the hint contains one of the secrets (right answers), ignoring whitespace and case.

    A number is found however it is written, in digit groups and words, too. An answer of one character occurs in many
    sentences: it counts where the hint states it as an answer, or where the question does not contain it.
    """
    text, prompt = _squeezed(hint), _squeezed(question)
    numbers = _numbers_in(text)
    for secret in filter(None, map(_squeezed, secrets)):
        stated = quantity(secret)
        value = stated and abs(stated.number)
        if len(secret) == 1 and secret.isalpha():
            leaked = _tells_letter(secret, hint, question)
        elif len(secret) == 1 or (value is not None and value.denominator == 1 and value < 10):
            digit = secret if len(secret) == 1 else str(value)
            leaked = _tells_character(digit, _LISTED.sub(" ", text), prompt) or _stands(secret, text, fewest=2)
        else:
            leaked = _stands(secret, text) or (value is not None and value in numbers)
        if leaked:
            return True
    return False


def _stands(secret: str, text: str, fewest: int = 1) -> bool:
    """True if a text contains the secret as a whole word or number."""
    return len(secret) >= fewest and re.search(rf"(?<![\w.]){re.escape(secret)}(?!\w|\.\d)", text) is not None


def _tells_character(secret: str, hint: str, question: str) -> bool:
    """True if a hint gives away a digit, in figures or by name, or another single character."""
    spelled = rf"(?:{re.escape(secret)}|{_ONES[int(secret)]})" if secret.isdigit() else re.escape(secret)
    if re.search(rf"{_STATES}[^\w\s]{{0,3}}{spelled}(?!\w|\.\d|,\d|[^\w\s]\d| of\b| [a-z]+ing\b)", hint):
        return True
    number = quantity(secret)
    if number is None:
        return _stands(secret, hint) and not _stands(secret, question)
    hint_numbers, question_numbers = (
        {abs(value.number) for value in map(quantity, _numerals(text)) if value} for text in (hint, question)
    )
    return number.number in hint_numbers - question_numbers


def _tells_letter(secret: str, hint: str, question: str) -> bool:
    """True if a hint gives away a letter: an option, a variable, a grade. `A hint` and `I think` are words."""
    word = r"(?! [a-z])" if secret in "ai" else ""
    alone = rf"(?<![\w'.-])(?i:{secret})(?![\w'-]|\.\w){word}"
    capital = rf"(?<![\w'.-]){secret.upper()}(?![\w'-]|\.\w){word}"
    pattern = capital if secret in "ai" else alone
    if re.search(rf"\b(?i:option|choice|answer|pick|choose)\s+\(?{secret.upper()}(?!\w)", hint):
        return True
    is_option = re.search(rf"(?:^|[\s(]){secret.upper()}[).:]", question) is not None
    return re.search(pattern, hint) is not None and (is_option or re.search(alone, question) is None)


def _numerals(text: str) -> list[str]:
    """Returns the numbers in a text, except those at the end of a name, as in x12."""
    return [numeral.text for numeral in numerals(text) if not text[: numeral.start][-1:].isalnum()]


def _numbers_in(text: str) -> set[Fraction]:
    """Returns every number that a text states, without its sign: in digits, in words, digit by digit."""
    numbers = {abs(value.number) for value in map(quantity, _numerals(text)) if value}
    for run in _WORDS_RUN.findall(text):
        words = [word for word in re.findall(r"[a-z]+|\d+", run) if word not in ("and", "a")]
        numbers |= {Fraction(number) for number in (_cardinal(words), _side_by_side(words)) if number is not None}
    return numbers


def _cardinal(words: list[str]) -> int | None:
    """Reads six thousand two hundred thirty-five as a number; None for numbers in a row, and for a digit alone."""
    total = group = 0
    for word in words:
        value = int(word) if word.isdigit() else _SMALL.get(word, 0)
        if word == "hundred":
            group = max(group, 1) * 100
        elif word in _SCALES:
            total, group = total + max(group, 1) * _SCALES[word], 0
        elif not group or (group % 100 == 0 and value < 100) or (group % 10 == 0 and group % 100 >= 20 and value < 10):
            group += value
        else:
            return None
    return total + group if len(words) > 1 or total + group >= 10 else None


def _side_by_side(words: list[str]) -> int | None:
    """Reads numbers in a row as one: six two three five, sixty-two thirty-five; None for a single number."""
    parts: list[int] = []
    for word in words:
        value = int(word) if word.isdigit() else _SMALL.get(word)
        if value is None or value > 99:
            return None
        if parts and parts[-1] in range(20, 100, 10) and 0 < value < 10 and not word.isdigit():
            parts[-1] += value
        else:
            parts.append(value)
    return int("".join(map(str, parts))) if len(parts) > 1 else None


def _squeezed(text: Any) -> str:
    return " ".join(str(text).lower().split())

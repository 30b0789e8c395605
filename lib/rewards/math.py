"""Answers that are numbers or formulae: the reward `exact_match`, extractors, and the two ways to be equal.

Equivalence of formulae comes from the optional package math-verify, in a child process that ends itself after two CPU
seconds or at four GiB. A signal handler inside the trainer, which is math-verify's own guard, works in the main thread
only and cannot stop a long computation in C, while `9^{9^{9^9}}` is a valid answer for a model to give.
"""

import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from lib.errors import ConfigError
from lib.parsing import as_number, last_boxed, peel, same_answer, special_characters, tag_blocks
from lib.registry import register_extractor, register_matcher, register_reward

_NUMBER = re.compile(r"(?:(?<!\w)[-−])?[0-9][0-9,]*(?:\.[0-9]+)?")  # the hyphen of 10-20 is no minus
_HASH_NUMBER = re.compile(rf"####\s*\$?({_NUMBER.pattern})")
_FINAL_ANSWER = re.compile(r"final answer is:?\s*", re.IGNORECASE)
_DOLLARS = re.compile(r"\$\$?(?!\s)((?:\\.|[^$\\\n])+)(?<!\s)\$(?![0-9])")  # pandoc's rule keeps "$18, not $20" apart
_SENTENCE = re.compile(r"(.*?)(?:\.(?=\s|$)|\n|$)")  # a point inside 3.14 ends no sentence

_COMMAND = re.compile(r"\\(?:text|mathrm|mathbf)\{[^{}]*\}|\\[A-Za-z]+")
_PROSE = re.compile(r"[A-Za-z]{3}|[A-Za-z]{2}\s+[A-Za-z]")

# What may stand before the number that an answer states: `x =`, `AB =`, `f(2) =`, `\theta_1 =`.
_NAME = re.compile(r"[{\s]*\\?[A-Za-z][A-Za-z\\{}'\s]*(?:\([\w\s,.-]*\))?\s*")
_SUBSCRIPT = re.compile(r"_(?:\w|\{\w{1,9}\})")
_NO_NAME = re.compile(
    r"(?<![\\A-Za-z])[A-Za-z]{4,}|\b(?:non?|not|or|nor)\b|\\(?:n|lnot|[gl](?:eq?|t)\b|approx|sim|pm|mp)"
)
_LONGEST_NAME = 40  # characters
_ALTERNATIVE = re.compile(r"\b(?:or|nor|not|either|maybe|perhaps|probably|alternatively)\b")
_TEXT_WITHIN = re.compile(r"\\(?:text|mbox|textrm)\s*\{[^{}]*[A-Za-z;(][^{}]*\}[\s}]*[^\s}]")
_MIXED = re.compile(r"(-?)([0-9]{1,9})\s*(?:\s([0-9]{1,9})/([0-9]{1,9})|\\[dt]?frac\{([0-9]{1,9})\}\{([0-9]{1,9})\})")
_POWER_OF_TEN = re.compile(r"(?:(.{1,40}?)\s*(?:\\times|\\cdot|×|·)\s*)?10\s*\^\s*(?:\{\s*(-?[0-9]{1,3})\s*\}|([0-9]))")

_CPU_SECONDS = 2  # honest answers take 0.002 to 0.4 s; CPU time, so that a busy machine does not change a verdict
_MEMORY = 4 << 30  # bytes
_LONGEST_FORMULA = 500  # characters; the parser needs seconds for longer ones
_WORDS = re.compile(r"[A-Za-z\s]{3,}")


@register_reward("exact_match")
def exact_match(right) -> list[float]:
    """1 where the answer stands in its place and matches the target's, else 0."""
    return [float(is_right) for is_right in right]


@register_extractor("identity")
def identity(text: str) -> str:
    """The text itself."""
    return text


@register_extractor("last_number")
@register_extractor("gsm8k_hash")
def gsm8k_hash(text: str) -> str:
    """The last `<answer>`; else the number after the last `####`; else the last number. Commas are dropped.

    For targets; on predictions, as `last_number`, it pays for the right number anywhere.
    """
    blocks = tag_blocks(text, "answer")
    if blocks:
        return blocks[-1].strip()
    numbers = _HASH_NUMBER.findall(text) or _NUMBER.findall(text)
    return numbers[-1].replace(",", "") if numbers else ""


@register_extractor("last_formula")
@register_extractor("math_final_answer")
def math_final_answer(text: str) -> str:
    r"""The last `<answer>`; else the last `\boxed{}`; else what follows the last "final answer is"; without wrappers.

    After the phrase counts what stands between dollars, or else the rest of the sentence. A text that is nothing but a
    formula, as a data set's answer column may hold, is its own answer. For targets; on predictions, as `last_formula`,
    it pays for the right answer anywhere.
    """
    blocks = tag_blocks(text, "answer")
    if blocks:
        return peel(blocks[-1])
    boxed = last_boxed(text)
    if boxed:
        return peel(boxed)
    phrases = list(_FINAL_ANSWER.finditer(text))
    if not phrases:
        return peel(text) if _is_bare_formula(text.strip()) else ""
    start = phrases[-1].end()
    found = _DOLLARS.match(text, start) or _SENTENCE.match(text, start)
    return peel(found[1])


def _is_bare_formula(text: str) -> bool:
    return 0 < len(text) <= 100 and "\n" not in text and not _PROSE.search(_COMMAND.sub("", text))


@register_matcher("exact")
def exact(prediction: str, target: str) -> bool:
    """Equal but for letter case, or equal as numbers: `lib.parsing.same_answer`."""
    return same_answer(prediction, target)


@register_matcher("math")
def math(prediction: str, target: str) -> bool:
    r"""`exact`, else equal as formulae according to math-verify: `2\sqrt{3}` is `\sqrt{12}`.

    Where one of the two states a number, the other must state it, too: `2 + 3` and `\sqrt{25}`, which may stand in the
    question, are no answer of 5, while `x = 5` is. Formulae need not be simplified. Not equal are formulae of more than
    500 characters and those that exceed the child's limits. Letters alone are words and compared as such: as products
    of symbols, east would equal seat. Raises ConfigError without math-verify.
    """
    if same_answer(prediction, target):
        return True
    if special_characters(prediction) != special_characters(target):
        return False
    answers = peel(prediction), peel(target)
    numbers = [_stated_number(answer) for answer in answers]
    if numbers != [None, None]:
        return numbers[0] == numbers[1]
    if any("boxed" in text or "$" in text for text in answers):  # math-verify would pick an answer from among others
        return False
    if _ALTERNATIVE.search(answers[0]) and not _ALTERNATIVE.search(answers[1]):
        return False
    if "=" in answers[0] and "=" not in answers[1]:
        name, _, rest = answers[0].partition("=")
        if not _is_name(name):
            return False
        answers = peel(rest), answers[1]
    if any(answers[0].count(sign) > answers[1].count(sign) for sign in ("=", r"\equiv")):
        return False  # math-verify would take one of the sides
    if _TEXT_WITHIN.search(answers[0]) and not _TEXT_WITHIN.search(answers[1]) and "," not in answers[1]:
        return False  # it would read up to these words
    if any(not text or len(text) > _LONGEST_FORMULA or _WORDS.fullmatch(text) for text in answers):
        return False
    return _equivalent(*answers)


def _stated_number(text: str) -> Fraction | None:
    r"""The number that `text` states: as `as_number` reads it, named (`x = 5`), mixed, or with a power of ten."""
    text = text.strip()
    if len(text) > _LONGEST_FORMULA:
        return None
    name, equals, rest = text.partition("=")
    if equals and _is_name(name):
        text = peel(rest)
    if (number := as_number(text)) is not None:
        return number
    if mixed := _MIXED.fullmatch(text):
        sign, whole, *parts = mixed.groups()
        top, bottom = (int(part) for part in parts if part)
        return (-1 if sign else 1) * (int(whole) + Fraction(top, bottom)) if top < bottom else None
    if power := _POWER_OF_TEN.fullmatch(text):
        factor = as_number(power[1]) if power[1] else Fraction(1)
        return None if factor is None else factor * Fraction(10) ** int(power[2] or power[3])
    return None


def _is_name(text: str) -> bool:
    if not text.strip() or len(text) > _LONGEST_NAME:
        return False
    text = _SUBSCRIPT.sub("", text)
    return bool(_NAME.fullmatch(text)) and not _NO_NAME.search(text)


@lru_cache(maxsize=10_000)  # a group repeats its answers, and a reward and the judge ask for the same pair
def _equivalent(prediction: str, target: str) -> bool:
    return _child.ask(prediction, target)


class _Child:
    """The process that runs math-verify: started at the first question, started again after one that killed it."""

    def __init__(self):
        self._process: subprocess.Popen | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def ask(self, prediction: str, target: str) -> bool:
        with self._lock:
            if self._process is None or self._process.poll() is not None or self._owner != os.getpid():
                self._start()  # a forked copy of the trainer must not share the parent's pipe
            reply = ""
            try:
                self._process.stdin.write(json.dumps([prediction, target]) + "\n")
                self._process.stdin.flush()
                reply = self._process.stdout.readline()  # ends at the latest when the child's timer kills it
            finally:
                if not reply:  # dead, or we were interrupted and the reply would be taken for the next one's
                    self._stop()
            return reply == "1\n"

    def _start(self) -> None:
        if importlib.util.find_spec("math_verify") is None:
            raise ConfigError(
                "reward.match 'math' needs the package math-verify: pip install math-verify, or use exact"
            )
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from lib.rewards.math import _serve; _serve()"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the trainer
        )
        self._owner = os.getpid()
        if self._process.stdout.readline() != "ready\n":
            self._stop()
            raise ConfigError("reward.match 'math': math-verify does not start; its traceback stands above")

    def _stop(self) -> None:
        self._process.kill()
        self._process.communicate()


_child = _Child()


def _serve() -> None:
    """In the child: one JSON pair per line in, 1 or 0 out."""
    import logging
    import resource
    import signal

    from math_verify import LatexExtractionConfig, parse, verify

    def equal(prediction: str, target: str) -> bool:
        parsed = [
            parse(f"${answer}$", extraction_config=[LatexExtractionConfig()], parsing_timeout=None)
            for answer in (target, prediction)
        ]
        return verify(*parsed, timeout_seconds=None)

    logging.disable()  # math-verify warns that its own timeout is off
    replies, sys.stdout = sys.stdout, sys.stderr
    if not equal("x + 1", "1 + x"):
        raise RuntimeError("math-verify finds x + 1 and 1 + x different: is its version the pinned one?")
    with contextlib.suppress(ValueError, OSError):  # some systems know no such limit
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, _CPU_SECONDS)  # unhandled on purpose: the kernel ends us, even inside C
        verdict = equal(*json.loads(line))
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(int(verdict), file=replies, flush=True)

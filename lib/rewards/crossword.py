"""Answers to crossword clues: the reward `crossword`, by letters and enumeration."""

import re
import unicodedata
from typing import Literal

from lib.core.errors import ConfigError
from lib.core.registry import Judged, register_reward

READINGS = ("strict", "tolerant")
_CONTAINS = ("any", "contiguous", "word")
_TYPED = str.maketrans("‘’ʼ´`“”‐‑‒–—−", "'''''\"\"------")
_WORDS = re.compile(r"[A-Z]+(?:'[A-Z]+)*'?(?:(?: |-)[A-Z]+(?:'[A-Z]+)*'?)*")


def letters(text: str) -> str:
    """Returns the letters A to Z of `text` in upper case, without accents; `&` counts as AND, all else is dropped."""
    return re.sub("[^A-Z]", "", _typed(text, "NFKD"))


def _typed(text: str, form: Literal["NFD", "NFKD"]) -> str:
    """Returns text as a keyboard without accents would type it, in upper case; `form` is Unicode's."""
    bare = "".join(character for character in unicodedata.normalize(form, text) if not unicodedata.combining(character))
    return bare.translate(_TYPED).upper().replace("&", "AND")


def enumerated(value: object) -> list[int]:
    """Returns the lengths of an answer's words: of `(3,5)`, `3-5`, 8 or [3, 5]; [] if that is no enumeration.

    An apostrophe is within a word: `3'1` is one word of four letters.
    """
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = text.strip().removeprefix("(").removesuffix(")")
    if not re.fullmatch(r"\d+(?:\s*[,' -]\s*\d+)*", text):
        return []
    return [sum(map(int, re.findall(r"\d+", word))) for word in re.findall(r"\d+(?:\s*'\s*\d+)*", text)]


def has_words(text: str, lengths: list[int]) -> bool:
    """True if `text` is nothing but words of these lengths, a blank or hyphen between them, in either case.

    An apostrophe is no letter. Accents are dropped; full-width letters and those of other alphabets do not count.
    """
    plain = " ".join(_typed(text, "NFD").split())
    words = [re.sub("[^A-Z]", "", word) for word in re.split("[ -]", plain)]
    return bool(_WORDS.fullmatch(plain)) and [len(word) for word in words] == lengths


def mentions(text: str, gold: str, mode: str) -> bool:
    """True if the letters `gold` occur in `text`: anywhere, within one run of letters, or as a whole run."""
    runs = re.findall("[A-Z]+", _typed(text, "NFKD"))
    if mode == "any":
        return gold in "".join(runs)
    return gold in runs if mode == "word" else any(gold in run for run in runs)


@register_reward("crossword")
def crossword(
    prediction_answers, target_answers, enumeration, *, reading="strict", shaping=0.0, contains="word"
) -> list[Judged]:
    """Pays 1 for the answer of the clue in the declared place, and nothing for mentioning it anywhere.

    `strict` wants the letters in words as the row's column `enumeration` has them: ICE CREAM or ice-cream for (3,5),
    not ICECREAM, and nothing besides them. `tolerant` compares the letters alone, whatever signs and digits are around
    and between them. Where the right answer does not have the letters of its enumeration, nothing can be judged.

    `shaping` pays this much for a wrong answer which contains the letters of the right one: as a `word`, within one
    word (`contiguous`) or across words (`any`). It is off, because it pays for guessing by lists; on, it looks only at
    the declared place.
    """
    if reading not in READINGS or contains not in _CONTAINS or not 0 <= shaping < 1:
        raise ConfigError(
            f"reward.options: got reading: {reading}, contains: {contains}, shaping: {shaping}; expected a reading of "
            f"{' or '.join(READINGS)}, contains of {', '.join(_CONTAINS)}, and shaping from 0 to below 1"
        )

    def judged(answer: str, target: str, value: object) -> Judged:
        gold, lengths = letters(target), enumerated(value)
        if not gold or sum(lengths) != len(gold):
            about = f"enumeration {value!r} does not fit the answer's {len(gold)} letters"
            return Judged({}, about=about, scored=False)
        is_latin = all("A" <= character <= "Z" for character in _typed(answer, "NFKD") if character.isalpha())
        right = letters(answer) == gold and is_latin
        right = right and (reading == "tolerant" or has_words(answer, lengths))
        parts = {"answer": float(right)}
        if shaping:
            parts["shaping"] = 0.0 if right or not mentions(answer, gold, contains) else shaping
        return Judged(parts, right)

    return [judged(*case) for case in zip(prediction_answers, target_answers, enumeration, strict=True)]

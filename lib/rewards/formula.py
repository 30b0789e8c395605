"""Answers that are numbers or formulae: the rewards `exact_match` and `math`, extractors, and two ways to be equal.

Equivalence of formulae comes from the optional package math-verify, in a process that is killed after two CPU seconds
or at four GiB, see lib/core/killable.py. A signal handler inside the trainer, math-verify's own guard, works in the
main thread only and cannot stop a long computation in C, while `9^{9^{9^9}}` is a valid answer for a model to give.
"""

import importlib.util
import os
import re
import threading
import unicodedata
from functools import lru_cache

from judge.parsing import (
    FULL_STOP,
    as_number,
    is_name,
    last_boxed,
    peel,
    quantity,
    same_answer,
    special_characters,
    tag_blocks,
)
from judge.quantities import Numeral, marked_number, numerals, plain, read_unit, same_unit
from lib.core.errors import ConfigError
from lib.core.killable import ProcessJob, ProcessKilled, ProcessPool, Refused
from lib.core.registry import Judged, register_extractor, register_matcher, register_reward

_LONGEST_READ = 20_000  # characters at the end of a text: no honest answer stands further from the end
_FINAL_ANSWER = re.compile(r"final answer is:?\s*", re.IGNORECASE)
_DOLLARS = re.compile(r"\$\$?(?!\s)((?:\\.|[^$\\\n])+)(?<!\s)\$(?![0-9])")  # pandoc's rule keeps "$18, not $20" apart
_SENTENCE = re.compile(r"(.*?)(?:\.(?=\s|$)|\n|$)")  # the point in 3.14 does not end a sentence

_COMMAND = re.compile(r"\\(?:text|mathrm|mathbf)\{[^{}]*\}|\\[A-Za-z]+")
_PROSE = re.compile(r"[A-Za-z]{3}|[A-Za-z]{2}\s+[A-Za-z]")

_ALTERNATIVE = re.compile(r"\b(?:nor|not|either|maybe|perhaps|probably|alternatively)\b")
_WITHIN_TEXT = r"\s*,?\s*(?:\\(?:text|textrm|mathrm|mbox)\s*\{{\s*(?:{0})\s*\}}|\b(?:{0})\b)\s*"
_AND_OR, _OR = (re.compile(_WITHIN_TEXT.format(words)) for words in ("and|or", "or"))
_UNION = re.compile(rf"{_OR.pattern}|\\cup(?![A-Za-z])")
_INEQUALITY = re.compile(r"[<>≤≥≠]|\\(?:[gl](?:eq?|t)|neq?)(?![A-Za-z])")
_SIGN = r"(>|≥|\\geq?(?![A-Za-z]))"
_DOWNWARDS = re.compile(rf"\A([^<>≤≥]+?){_SIGN}([^<>≤≥]+?){_SIGN}([^<>≤≥]+)\Z")
_GREEK = ["alpha", "beta", "gamma", "delta", "epsilon", "theta", "lambda", "mu", "rho", "sigma", "tau", "phi", "omega"]
_TO_LATEX = str.maketrans({
    "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "±": r"\pm ", "×": r"\times ", "·": r"\cdot ", "−": "-",
    "’": "'", "∪": r"\cup ", **{letter: rf"\{name} " for letter, name in zip("αβγδεθλμρστφω", _GREEK, strict=True)},
})  # fmt: skip
_SUPERSCRIPTS = re.compile("[²³¹⁰⁴-⁹⁻]+")
_TYPED = (  # as programs and plain texts write formulae; √2x and √x² are left alone, for they may be read in two ways
    (re.compile(r"(?<![\\A-Za-z])sqrt\s*\(([^()]*)\)|√\s*\(([^()]*)\)"), r"\\sqrt{\1\2}"),
    (re.compile(r"√\s*(?:\{([^{}]*)\}|([0-9]+|[A-Za-z])(?![\w.^!]))"), r"\\sqrt{\1\2}"),
    (re.compile(r"π|(?<![\\A-Za-z])pi(?![A-Za-z])"), r"\\pi "),
    (re.compile(rf"(?<![\\A-Za-z])({'|'.join(_GREEK)})(?![A-Za-z])"), r"\\\1 "),
    (re.compile(r"(?<![\\A-Za-z])((?:arc)?(?:sin|cos|tan)|ln|log|exp)\s*(?=\()"), r"\\\1"),
    (re.compile(r"(?<=[\w)])\s*\*\*\s*(?:\(([^()]*)\)|(-?[0-9]+|[A-Za-z])(?!\s*\*\*|[\w.(]))"), r"^{\1\2}"),
    (re.compile(r"\A\\mathbb\s*(?:R|\{R\})\Z"), r"(-\\infty, \\infty)"),
    (re.compile(r"\\[dt]binom(?![A-Za-z])"), r"\\binom"),
    (re.compile(r"\\(sin|cos|tan)\s*\^\s*\{\s*-1\s*\}"), r"\\arc\1"),
    (re.compile(r"(\A|[-+(,=\s])([0-9.]+)\s+i(?!\s*\w)"), r"\1\2i"),
    (re.compile(r"\^\s*\(([^()]*)\)"), r"^{\1}"),
    (re.compile(r"([0-9])\s*i\s*(\\sqrt\s*\{[^{}]*\})"), r"\1\2i"),
    (re.compile(r"\\\{\s*[a-z]\s*(?:\\mid|[|:])\s*([^{}|]*)\\\}"), r"\1"),
)
_MOST_ELEMENTS = 30
_SIZES = re.compile(r"\\(?:left|right|bigl?|bigr)(?=\s*[\[\](){}\\])")
_MATRIX = re.compile(r"\\begin\{([bp]?matrix)\}((?:(?!\\begin|\\end).)*)\\end\{\1\}", re.DOTALL)
_BRACKET = re.compile(r"[()\[\]{}⟨⟩,]")
_UNIT_BEHIND = re.compile(
    r"(.*[^\s])\s*(?:\\(?:text|textrm|mathrm|mbox)\s*\{([^{}]*)\}(\^\{?[23]\}?)?|(?<=[\s])([A-Za-z/]{2,}(?:\^\{?[23]\}?)?))",
    re.DOTALL,
)
_LITERAL = re.compile(r"[0-9.:/+*^()\s-]*[0-9][0-9.:/+*^()\s-]*")  # ratio, time, date, range, or unevaluated arithmetic
_BASE = re.compile(r"([0-9A-F]+)\s*\)?\s*_\s*\{?\s*(\w+)")
_BASES = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
          "ten": "10", "twelve": "12", "sixteen": "16"}  # fmt: skip
_OPERATOR = re.compile(
    r"\\(sum|prod|i{0,2}int|oint|lim|[dt]?binom|choose|gcd|lcm|max|min|det|[bp]?mod|lfloor|lceil|operatorname|begin)(?![A-Za-z])"
    r"|(!)|\\[cdt]?frac\s*\{\s*(d|\\partial)\b"
)
_FUNCTION = re.compile(r"\\((?:arc)?(?:sin|cos|tan|cot|sec|csc)h?|log|ln|lg|exp)(?![A-Za-z])")
_PRODUCT = re.compile(
    r"[0-9]\s*(?:[A-Za-z]\s*)?\*\s*(?!10\s*\^|[0-9.]+\s*\^\s*\{?[^}0-9]*[A-Za-z])[0-9]|(?<!_)[0-9]\s*\(\s*[0-9.]+\s*\)"
    r"|\\sqrt\s*(?:\[[^\]]*\])?\s*(?:\{[^{}]*\}|[0-9])\s*\*?\s*\\sqrt"
)
_POWER = re.compile(r"[0-9]\s*\^\s*[0-9]")
_SUM_OF_NUMBERS = re.compile(r"(?:\A|[=(,]|(?<!\^)[+-])\s*[0-9.]+\s*[+-]\s*[0-9.]+(?![0-9.]|\s*[\w\\(\[{|^*/!])")
_POWER_OF_GROUP = re.compile(r"[)}]\s*\^\s*[0-9]")
_SUM = re.compile(r"[^\s(\[{,=<>^*/+-]\s*[+-]")
_SUM_WITHIN = re.compile(r"[({\[](?:[^(){}\[\]]|\{[^{}]*\}|\([^()]*\))+?[+-]")  # (x+1)(x+2), not x^{-1}
_BAR = re.compile(r"\||\\[lr]?vert")
_QUOTIENT = re.compile(
    r"\\[cdt]?frac\s*\{\s*-?([0-9]+)[^{}0-9/+-]*\}\s*\{\s*([0-9]+)(?![0-9.])(?=[^{}+-]*\})"
    r"|(?<![0-9.^])([0-9]+)[^{}0-9/+-]*/\s*([0-9]+)(?![0-9.])"
)
_RELATION = re.compile(r"[=<>]|\\[gln]eq?\b|\\in\b")
_NO_LETTER = re.compile(r"\\(?!alpha|beta|gamma|delta|theta|lambda|mu|phi|omega)[A-Za-z]+")
_LETTER = re.compile(r"[A-DF-HJ-Za-df-hj-z]")  # all but e and i
_DECIMAL = re.compile(r"(?<![0-9.])(?<![0-9],)([0-9]*)\.([0-9]+)(?![0-9.])")
_TEXT_WITHIN = re.compile(r"\\(?:text|mbox|textrm)\s*\{[^{}]*[A-Za-z;(][^{}]*\}[\s}]*[^\s}]")

# honest formulae take 0.002 to 0.4 s
EQUAL = ProcessJob("lib.rewards.equality:equal", "math_verify", 4 << 30, 2, requests=100_000)
_SECONDS = 3600.0  # of wall time: CPU time bounds a question, so that a busy machine does not change a verdict
_LONGEST_FORMULA = 500  # characters; the parser needs seconds for longer ones
_WORDS = re.compile(r"[A-Za-z\s]{3,}")


@register_reward("exact_match")
def exact_match(right) -> list[float]:
    """Returns 1 where the answer stands in its required place and matches the target's, else 0."""
    return [float(is_right) for is_right in right]


@register_reward("math")
def math_match(prediction_answers, target_answers, *, reading="tolerant") -> list[Judged]:
    """Pays 1 where the answer in its required place is the target's, else 0; `reading` says when it is.

    `tolerant` is the equality `math`, whatever `reward.match` is. `strict` wants equal canonical forms besides,
    compared as texts: 1/2 is neither 0.5 nor \\frac{1}{2}. What it pays, `tolerant` pays too.
    """
    if reading not in ("strict", "tolerant"):
        raise ConfigError(f"reward.options.reading: got '{reading}', expected strict or tolerant")
    pairs = zip(prediction_answers, target_answers, strict=True)  # read strictly, equal both ways: 1 8 is not 18
    same = [(reading == "tolerant" or canonical(one) == canonical(two)) and math(one, two) for one, two in pairs]
    return [Judged({"math": float(is_same)}, is_same) for is_same in same]


def canonical(text: str) -> str:
    r"""Returns a formula without what does not change its value: dollars, blanks, outer braces, the zeros of 3.0.

    These are all of its rules, in this order; letter case counts, and `\frac` is not `\dfrac`.
    """
    text = re.sub(r"\\\s", "", text.strip().replace("$", ""))
    text = re.sub(r"\A\{([^{}]*)\}\Z", r"\1", text)
    text = re.sub(r"\A\(((?:[0-9.-]|\\sqrt|√)*)\)\Z", r"\1", text)
    text = "".join(text.split())
    text = "0" if text in ("-0", "+0") else text
    return re.sub(r"\A([+-]?[0-9]+)\.0+\Z", r"\1", text)


@register_extractor("identity")
def identity(text: str) -> str:
    """Returns the text unchanged."""
    return text


@register_extractor("last_number")
@register_extractor("gsm8k_hash")
def gsm8k_hash(text: str) -> str:
    r"""Returns the last `<answer>`; else the number after the last `####`; else a boxed or bold one; else the last.

    Numbers are read as everywhere (judge/quantities.py), without commas, currency and unit, and never in part. Text
    after `####` that is not one number, such as `2 + 3`, `5:30` or `18 or 19`, is returned unchanged. Among several
    numbers in a line, the boxed or bold one counts, as in `**18** for 2 days`; after `####`, also the first one before
    words.

    For targets; on predictions, as `last_number`, it pays for the right number anywhere in the last 20,000 characters.
    """
    blocks = tag_blocks(text, "answer")
    if blocks:
        return blocks[-1].strip()
    text = text[-_LONGEST_READ:]
    stated = text.rpartition("####")[2].partition("\n")[0].partition("</")[0] if "####" in text else ""
    if numerals(stated):
        return _stated_number(stated.strip())
    lines = text.splitlines()
    boxed = next((line for line in reversed(lines) if r"\boxed" in line), "")
    last = next((line for line in reversed(lines) if numerals(line)), "")
    if not last:
        return ""
    return _digits(marked_number(boxed) or marked_number(last) or numerals(last)[-1])


def _stated_number(statement: str) -> str:
    """Returns the number that a line states, or the line unchanged."""
    if marked := marked_number(statement):
        return _digits(marked)
    first, *others = numerals(statement)
    if (number := as_number(statement)) is not None:
        return _digits(first) if not others and as_number(first.text) == number else statement
    return _digits(first) if first.is_stated_in(statement, others) else statement


def _digits(numeral: Numeral) -> str:
    return numeral.text.replace(",", "") if as_number(numeral.text) is not None else numeral.text


@register_extractor("last_formula")
@register_extractor("math_final_answer")
def math_final_answer(text: str) -> str:
    r"""Returns the last `<answer>`; else the last `\boxed{}`; else what follows the last "final answer is"; unwrapped.

    After the phrase, it takes the text between dollars, or else the rest of the sentence. A text that is nothing but a
    formula, as a data set's answer column may hold, is its own answer.

    For targets; on predictions, as `last_formula`, it pays for the right answer anywhere.
    """
    blocks = tag_blocks(text, "answer")
    if blocks:
        return peel(blocks[-1])
    boxed = last_boxed(text)
    if boxed:
        return peel(boxed)
    phrases = list(_FINAL_ANSWER.finditer(text))
    if not phrases:
        bare = text.strip()
        is_formula = 0 < len(bare) <= 100 and "\n" not in bare and not _PROSE.search(_COMMAND.sub("", bare))
        return peel(text) if is_formula else ""
    start = phrases[-1].end()
    match = _DOLLARS.match(text, start) or _SENTENCE.match(text, start)
    return peel(match[1])


@register_matcher("exact")
def exact(prediction: str, target: str) -> bool:
    """True if two answers are equal but for letter case, or equal as numbers: `judge.parsing.same_answer`."""
    return same_answer(prediction, target)


@register_matcher("math")
def math(prediction: str, target: str) -> bool:
    r"""True if `exact` holds, or math-verify finds the formulae equal: `2\sqrt{3}`, `2√3` and `2*sqrt(3)` are
    `\sqrt{12}`.

    If one of the two states a number, the other must state it, too: `2 + 3` and `\sqrt{25}`, which may stand in the
    question, do not match 5, while `x = 5` does. Lists, tuples and matrices are compared element by element. Formulae
    need not be simplified, but the prediction must be worked out as much as the target is: an integral, a sum over k,
    a binomial, a product or power of numbers, an exact quotient of integers (`\frac{6x}{3}`), a sum or a function of
    constants (`\ln 2 + \ln 5`, `\sin\frac{\pi}{3}`) does not match where the target has none, nor does a sum match one
    of fewer terms, or `x\sqrt{x}` match `x^{3/2}`, one with fewer letters; but sums in brackets may be expanded or
    factored. Decimals are exact: `0.3333333x` is not `\frac{x}{3}`. A comma within a formula separates elements, not
    thousands. Angle brackets are their own. Different units are not equal. `2 < x < 3` is `(2, 3)`, and
    `x = 2 or x = 3`, `2 and 3` and `\{2, 3\}` are one set, not the point `(2, 3)`. A ratio, a time, a date, a range or
    a numeral of another base equals only its own text.

    Formulae of more than 500 characters and those that exceed the child's limits are not equal. Letters alone are
    compared as words: as products of symbols, east would equal seat. Raises ConfigError without math-verify.
    """
    if same_answer(prediction, target):
        return True
    if max(len(prediction), len(target)) > _LONGEST_FORMULA:
        return False
    if special_characters(prediction) != special_characters(target):
        return False
    answer, gold = (_in_latex(peel(FULL_STOP.sub("", peel(text)))) for text in (prediction, target))
    return same_answer(answer, gold) or _same_formula(answer, gold)


def _in_latex(text: str) -> str:
    r"""Returns `2√3`, `x²` and `2*sqrt(3)` in LaTeX; words stay words."""
    if _WORDS.fullmatch(text):
        return text
    text = text.replace("<=", r"\le ").replace(">=", r"\ge ")
    text = _SUPERSCRIPTS.sub(lambda match: f"^{{{unicodedata.normalize('NFKC', match[0])}}}", text)
    text = text.translate(_TO_LATEX)
    formula = text
    for pattern, replacement in _TYPED:
        formula = pattern.sub(replacement, formula)
    return text if _PROSE.search(_COMMAND.sub("", formula)) else formula.strip()


def _same_formula(answer: str, gold: str) -> bool:
    numbers = [number and not number.is_letter for number in (quantity(answer), quantity(gold))]
    if any(numbers):
        return all(numbers) and same_answer(answer, gold)
    if any("boxed" in text or "$" in text for text in (answer, gold)):  # math-verify would pick one part of the text
        return False
    if _ALTERNATIVE.search(answer) and not _ALTERNATIVE.search(gold):
        return False
    if any(map(_INEQUALITY.search, (answer, gold))):
        if any(map(_OR.search, (answer, gold))):  # a union, while a comma or `and` is an intersection
            parts = [_UNION.split(text) for text in (answer, gold)]
            return min(map(len, parts)) > 1 and _same_elements(("{}", parts[0]), ("{}", parts[1]))
        answer, gold = (_DOWNWARDS.sub(_upwards, text) for text in (answer, gold))
        sums = [len(_SUM.findall(_INEQUALITY.sub("<", text))) for text in (answer, gold)]
        if _is_solved(gold) and (not _is_solved(answer) or sums[0] > sums[1]):
            return False
    else:
        has_both = r"\pm" in answer and r"\pm" in gold
        answer, gold = (_listed(text, spreads=not has_both) for text in (answer, gold))
    lists = _elements(answer), _elements(gold)
    if all(lists):
        return _same_elements(*lists)
    if "=" in answer and "=" not in gold:
        name, _, rest = answer.partition("=")
        names = name.strip()[1:-1].split(",") if name.startswith("(") else [name]  # (x, y) = (3, 5)
        return "=" not in rest and all(map(is_name, names)) and math(rest, gold)
    if any(answer.count(sign) > gold.count(sign) for sign in ("=", r"\equiv")):
        return False  # math-verify would take one of the sides
    (bare, unit), (bare_gold, gold_unit) = _without_unit(answer), _without_unit(gold)
    if (bare, bare_gold) != (answer, gold):
        return same_unit(unit, gold_unit) and math(bare, bare_gold)
    if _TEXT_WITHIN.search(answer) and not _TEXT_WITHIN.search(gold) and "," not in gold:
        return False  # math-verify would read only up to these words
    if any(not text or _WORDS.fullmatch(text) for text in (answer, gold)):
        return False
    plain_texts = plain(answer), plain(gold)
    if any(_LITERAL.fullmatch(text) for text in plain_texts):
        return "".join(plain_texts[0].split()) == "".join(plain_texts[1].split())
    if _bases(plain_texts[0]) != _bases(plain_texts[1]) or _is_less_done(*plain_texts):
        return False
    return _equivalent(_readable(answer), _readable(gold))


def _listed(text: str, spreads: bool) -> str:
    r"""Returns `2 or 3` as the set `\{2,3\}`, and so `\pm 2` as `\{2,-2\}` if it `spreads`."""
    parts = _AND_OR.split(text)
    if spreads and text.count(r"\pm") == 1 and len(parts) == 1:
        parts = [text.replace(r"\pm", sign) for sign in "+-"]
    return rf"\{{{','.join(parts)}\}}" if len(parts) > 1 else text


def _is_solved(text: str) -> bool:
    """True for an interval, and for inequalities that have a name alone on one side: not `x - 2 > 0`."""
    sides = [side.strip() for side in _INEQUALITY.split(text)]
    names = [side for side in sides if is_name(side) and side not in (r"\pi", r"\infty", "e")]
    alone = [re.search(rf"(?<![A-Za-z]){re.escape(name)}(?![A-Za-z])", side) for name in names for side in sides]
    return len(sides) == 1 or (len(sides) < 4 and sum(map(bool, alone)) == 1)


def _upwards(chain: re.Match) -> str:
    """Returns `3 > x > 2` as `2 < x < 3`."""
    top, first, middle, second, bottom = chain.groups()
    first, second = (sign.replace(">", "<").replace("≥", "≤").replace("g", "l") for sign in (first, second))
    return f"{bottom} {second} {middle} {first} {top}"


def _elements(text: str) -> tuple[str, list[str]] | None:
    """Returns a list's kind and its elements, or None.

    Kinds are "()", "[)", "{}", "⟨⟩", "" without brackets, and "2x3" for a matrix.
    """
    text = _SIZES.sub("", text).replace(r"\langle", "⟨").replace(r"\rangle", "⟩").strip()
    if matrix := _MATRIX.fullmatch(text):
        rows = [row.split("&") for row in matrix[2].strip().removesuffix(r"\\").split(r"\\")]
        return f"{len(rows)}x{len(rows[0])}", [cell for row in rows for cell in row]
    kind = ""
    for opening, closing in ((r"\{", r"\}"), "⟨⟩", *(a + b for a in "([" for b in ")]")):
        if text.startswith(opening) and text.endswith(closing) and _closes_last(text):
            kind, text = opening[-1] + closing[-1], text[len(opening) : -len(closing)]
            break
    parts, depth, start = [], 0, 0
    for bracket in _BRACKET.finditer(text):
        depth += (bracket[0] in "([{⟨") - (bracket[0] in ")]}⟩")
        if bracket[0] == "," and depth == 0:
            parts.append(text[start : bracket.start()])
            start = bracket.end()
    return (kind, [*parts, text[start:]]) if parts else None


def _closes_last(text: str) -> bool:
    """True if the bracket that opens `text` is closed at its end, not before."""
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth += (bracket[0] in "([{⟨") - (bracket[0] in ")]}⟩")
        if depth == 0:
            return bracket.end() == len(text)
    return False


def _same_elements(answers: tuple[str, list[str]], golds: tuple[str, list[str]]) -> bool:
    kinds, (given, wanted) = {answers[0], golds[0]}, (answers[1], golds[1])
    if len(given) != len(wanted) or len(given) > _MOST_ELEMENTS or (len(kinds) > 1 and "" not in kinds):
        return False
    theirs, names = ({*map(_name_of, elements)} - {""} for elements in (given, wanted))
    if "()" in kinds and 1 in (len(theirs), len(names)):  # x = 0, 1 is no point
        return False
    in_order = len(names) > 1 and not theirs  # 3, 4 for x = 3, y = 4
    if kinds <= {"", "{}"} and not in_order:  # a set
        wanted = list(wanted)
        for element in given:
            match = next((candidate for candidate in wanted if math(element, candidate)), None)
            if match is None:
                return False
            wanted.remove(match)
        return True
    return (len(kinds) == 1 or kinds <= {"", "()"}) and all(map(math, given, wanted))


def _name_of(element: str) -> str:
    """Returns the name of `x = 5`, "" for an element without one."""
    name, sign, _ = element.partition("=")
    return name.strip() if sign and is_name(name) else ""


def _without_unit(text: str) -> tuple[str, str]:
    match = _UNIT_BEHIND.fullmatch(text)
    unit = read_unit((match[2] or match[4]) + (match[3] or "")) if match else None
    return (text, "") if unit is None or (match[4] and not unit) else (match[1].strip(), unit)


def _bases(text: str) -> list[tuple[str, str]]:
    """Returns the numerals with their explicit bases, which math-verify ignores."""
    return [(digits, _BASES.get(base, base)) for digits, base in _BASE.findall(text)]


def _is_less_done(answer: str, gold: str) -> bool:
    """True if `answer` leaves more to work out than `gold`, as one that restates the question does."""
    if not {*_OPERATOR.findall(answer)} <= {*_OPERATOR.findall(gold)}:
        return True
    both, is_sum = answer + gold, bool(_SUM.search(gold))
    counted = [_PRODUCT, _POWER, _SUM_OF_NUMBERS]
    used, wanted = ({*_FUNCTION.findall(text.replace(r"\ln", r"\log"))} for text in (answer, gold))
    if used - {"exp"} and not wanted:
        return True
    if not _LETTER.search(_NO_LETTER.sub("", both)):  # constants
        counted += [_POWER_OF_GROUP, _BAR, *[_SUM] * (used == wanted)]  # surds for a cosine are more worked out
        if not used <= wanted:
            return True
    elif not (_FUNCTION.search(gold) or _RELATION.search(both) or (is_sum and _SUM_WITHIN.search(both))):
        counted.append(_SUM)
        letters = [sum(map(str.isalpha, _NO_LETTER.sub("", text))) for text in (answer, gold)]
        if letters[0] > letters[1] and not (is_sum and r"\sqrt" in answer):  # a surd may be a term's last form
            return True
    is_undivided = _has_whole_quotient(answer) and not _has_whole_quotient(gold)
    return is_undivided or any(len(kind.findall(answer)) > len(kind.findall(gold)) for kind in counted)


def _has_whole_quotient(text: str) -> bool:
    r"""True if an exact division of integers is left to do, as in `\frac{6x}{2}`."""
    quotients = ((int(a or c), int(b or d)) for a, b, c, d in _QUOTIENT.findall(text))
    return any(bottom and top % bottom == 0 for top, bottom in quotients)


def _readable(text: str) -> str:
    """Returns a formula as math-verify reads it: with fractions for decimals, which it would round."""
    text = text.replace(r"\varnothing", r"\emptyset")
    return _DECIMAL.sub(lambda match: rf"{{\frac{{{match[1]}{match[2]}}}{{1{'0' * len(match[2])}}}}}", text)


@lru_cache(maxsize=10_000)  # a group repeats its answers, and a reward and the judge ask for the same pair
def _equivalent(prediction: str, target: str) -> bool:
    with _lock:  # one process is enough
        pool = _math_verify(os.getpid())
        try:
            return pool.run_now(prediction, target)
        except (ProcessKilled, Refused):
            return False


@lru_cache(maxsize=1)
def _math_verify(_pid: int) -> ProcessPool:
    """Starts math-verify: a forked copy of the trainer must not share its parent's process. Raises ConfigError."""
    if importlib.util.find_spec("math_verify") is None:
        raise ConfigError("reward.match 'math' needs the package math-verify: pip install math-verify, or use exact")
    pool = ProcessPool(EQUAL, 1, _SECONDS)
    try:
        works = pool.run_now("x + 1", "1 + x")
    except (ProcessKilled, Refused, ConfigError):
        works = False
    if not works:
        raise ConfigError(
            "reward.match 'math': math-verify does not start under `python -I`, or finds x + 1 and 1 + x different: "
            "install its pinned version into this environment"
        )
    return pool


_lock = threading.Lock()

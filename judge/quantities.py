r"""The one number that a short text states, exactly, with its unit: one reading, for predictions and for targets.

Read are `18`, `1,000`, `1 000`, `.5`, `0.1\overline{6}`, `2/3`, `\frac{1}{2}`, `1 1/2`, `1.5e3`, `1.5 \times 10^3`,
`10^6`, `3 million`, `3 dozen`, `3 sixths`, `-$5`, `EUR 5`, `minus 5`, `(18)`, and after it a unit of up to three words,
or what is counted: 18 apples are 18, and no 18 oranges. 18% is 18: the gold numbers of such data sets leave the sign
out. A final full stop does not count.

Not read is what has yet to be worked out, or says something else: sums, products, powers of other numbers than ten,
`36/2`, `1.5/3`, `5!`, `3\pi`, `2x`; ratios and times (`5:30`), chains (`1/2/2020`), lists and decimal commas (`3,4`),
numerals of another base (`101_2`), a zero with a minus, hedges (`~18`, `18 or 19`, `18 at least`, `18...`), `18 below`,
`3 zillion`, `3 tens`, numbers in words, powers beyond 10^999, and anything longer than 1,000 characters.

Every function takes any string, never raises, and runs in linear time.
"""

import re
from fractions import Fraction
from typing import NamedTuple

_LONGEST = 1000  # characters; below Python's own limit on int digits, above any honest answer
_MOST_WORDS = 3

_TYPOGRAPHY = {
    **dict.fromkeys("−–﹣－", "-"),
    **dict.fromkeys("\u00a0\u2009\u202f", " "),  # the last two separate thousands
    **{"×": "*", "·": "*", "⁄": "/", "²": "^{2}", "³": "^{3}"},
    **{sign: f"^{{{digit}}}" for sign, digit in zip("⁰¹⁴⁵⁶⁷⁸⁹⁻", "01456789-", strict=True)},
    **{sign: f" {top}/{bottom} " for sign, top, bottom in ("½12", "⅓13", "⅔23", "¼14", "¾34", "⅕15", "⅛18", "⅜38")},
}
TYPOGRAPHIC = frozenset(_TYPOGRAPHY) | frozenset("αβγδεθλμρστφω¢£€¥₹°π√∞÷±≤≥≠∪‘’“”")  # signs of print outside ASCII
_TO_PLAIN = str.maketrans(_TYPOGRAPHY | dict.fromkeys("~\t\r\n", " "))
_TO_BLANKS = str.maketrans(dict.fromkeys("\u00a0\u2009\u202f", " "))
_SPELLINGS = (  # spellings in LaTeX, and the plain text that replaces them
    (re.compile(r"(?<=[0-9-])\}\^\{(?=[0-9-])"), ""),  # superscripts in a row, as in 10¹²
    (re.compile(r"\\!|\\(?:left|right)(?=\s*[()])|\\displaystyle(?![A-Za-z])"), ""),
    (re.compile(r"\\[,;: ]|\\quad(?![A-Za-z])"), " "),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\([$%])"), r"\1"),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), "*"),
    (re.compile(r"\s*\^\s*\{?\s*\\circ\s*\}?|\\degree(?![A-Za-z])"), "°"),
    (re.compile(r"\\[cdt]?frac\{\\text\{([^{}]*)\}\}\{\\text\{([^{}]*)\}\}"), r" \1/\2 "),
    (re.compile(r"\\(?:text|textrm|mathrm|mbox)\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\s*\^\s*\{\s*([+-]?[0-9]+)\s*\}"), r"^\1"),
    (re.compile(r"\s+(?=\^)|(?<=/)\s+|\s+(?=/)"), ""),
)
_LATEX_FRACTION = re.compile(
    r"\\[cdt]?frac\s*(?:\{\s*([+-]?)([0-9.,]+)\s*\}|()([0-9]))\s*(?:\{\s*([+-]?)([0-9.,]+)\s*\}|()([0-9]))"
)
_PARENTHESES = re.compile(r"([+-]?)\(([^()]*)\)")
_SIGN = re.compile(r"(?i:(minus|negative)\s+)?([+-]?)\s*((?:[$€£¥₹]|(?i:usd|eur|gbp|jpy|inr)\b)?)\s*([+-]?)\s*")
_DIGITS = r"[1-9][0-9]{0,2}(?:(?:,[0-9]{3})+|(?:[ ][0-9]{3})+|(?:'[0-9]{3})+)|[0-9]+"
_BODY = re.compile(
    rf"""(?P<whole>[0-9]{{1,9}})[ ]+(?P<part>[0-9]{{1,9}})/(?P<parts>[0-9]{{1,9}})
      | (?P<top>{_DIGITS})/(?P<bottom>{_DIGITS})
      | (?P<power>10[ ]*\^[ ]*[+-]?[0-9]{{1,3}})
      | (?P<start>[0-9]*\.[0-9]*)\\(?:overline|bar)[ ]*\{{(?P<repeated>[0-9]+)\}}
      | (?P<decimal>(?:{_DIGITS})(?:\.[0-9]*)?|\.[0-9]+)
        (?:[eE](?P<exponent>[+-]?[0-9]{{1,3}})|[ ]*[*x][ ]*10[ ]*\^[ ]*(?P<tens>[+-]?[0-9]{{1,3}}))?""",
    re.VERBOSE,
)

_SCALES = {
    "dozen": 12, "hundred": 100, "thousand": 1000, "lakh": 10**5, "crore": 10**7, "million": 10**6, "billion": 10**9,
    "trillion": 10**12,
}  # fmt: skip
_PARTS = {
    "half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "twentieth": 20, "hundredth": 100, "thousandth": 1000,
    "millionth": 10**6,
}  # fmt: skip
_FIRST_WORD = re.compile(r"[ ]+([A-Za-z]+)(?![\w^/-])")
_MAGNITUDE = (
    r"(?:pi|hundreds?|thousands?|\w*illi(?:on|ard)s?|mil|mill|mio|mrd|lakhs?|lacs?|crores?|dozens?|gross|score|grand"
    r"|myriads?|googol|half|halves|quarters?|thirds?|permille|squared|cubed|factorial"
    r"|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|\w+teen|\w+tie|hundred|thousand|\w*illion)ths?)"
)
_HEDGE = (
    r"(?:or|and|either|neither|not|never|but|else|otherwise|unless|versus|instead|rather|except|alternatively|wrong"
    r"|incorrect|false|guess|unsure|idk|dunno|dont|nope|nah|wait|sorry|actually|correction|maybe|perhaps|possibly|probably|likely|hopefully"
    r"|presumably|about|around|roughly|approximately|approx|nearly|almost|than|least|most|below|under|beneath|above"
    r"|negative|plus|minus)"
)
_HEDGED = re.compile(rf"\b{_HEDGE}\b", re.IGNORECASE)
# After a number, these words change its value, name another one or take it back, so they are not units.
_VALUE_WORD = re.compile(
    rf"""\b(?:{_MAGNITUDE}|{_HEDGE}|tens|zero|none|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve
    |(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty
    |mille|basis|halved?|double[sd]?|tripled?|twice|thrice|fold|times|over|divided|root|sqrt|sin|cos|tan|log|mod|choose|power|base)\b""",
    re.IGNORECASE | re.VERBOSE,
)
# Each string has the names of one unit; the first stands for all. £ and pounds are one: the question tells which.
_UNITS = {
    name: names.split()[0]
    for names in (
        "m meter meters metre metres", "cm centimeter centimeters centimetre centimetres",
        "mm millimeter millimeters millimetre millimetres", "km kilometer kilometers kilometre kilometres",
        "in inch inches", "ft foot feet", "yd yard yards", "mi mile miles",
        "g gram grams", "mg milligram milligrams", "kg kilogram kilograms kilo kilos", "ton tons tonne tonnes",
        "oz ounce ounces", "lb lbs pound pounds £ gbp",
        "ms millisecond milliseconds", "s sec secs second seconds", "min mins minute minutes", "h hr hrs hour hours",
        "day days", "week weeks", "month months", "year years yr yrs",
        "l L liter liters litre litres", "ml mL milliliter milliliters millilitre millilitres", "gallon gallons",
        "$ dollar dollars usd", "cent cents ¢", "€ euro euros eur", "¥ yen jpy", "₹ rupee rupees inr",
        "% percent", "° degree degrees", "rad radian radians",
        "°C celsius", "°F fahrenheit", "mi/h mph", "km/h kph kmh", "W watt watts", "J joule joules", "V volt volts",
        "newton newtons", "acre acres", "ha hectare hectares", "decade decades", "century centuries", "am", "pm",
        "Hz hertz", "kHz kilohertz", "MHz megahertz", "GHz gigahertz", "kW kilowatt kilowatts", "MW megawatt megawatts",
        "mW milliwatt milliwatts", "kWh", "kJ kilojoule kilojoules", "kN kilonewton kilonewtons", "Pa pascal pascals",
        "kPa kilopascal kilopascals", "mA milliampere milliamperes milliamps", "mV millivolt millivolts",
        "kV kilovolt kilovolts", "kB KB kilobyte kilobytes", "MB megabyte megabytes", "GB gigabyte gigabytes",
        "TB terabyte terabytes",
    )
    for name in names.split()
}  # fmt: skip
_CURRENCIES = ("$", "€", "¥", "₹", "lb", "cent")
_METRIC = re.compile(r"(?:tera|giga|mega|kilo|hecto|deca|deci|centi|milli|micro|nano|pico)(?=[a-z]{3})")
_UNIT_SIGN = re.compile(r"[ ]*([%$€£¥₹¢]|°[ ]?[CF](?![A-Za-z])|°)")
_UNIT_WORD = re.compile(r"([A-Za-z]+(?:-[A-Za-z]{3,})*)(\^[23])?(?:/([A-Za-z]+)(\^[23])?)?")
_NOT_COUNTED = re.compile(
    r"in|of|on|at|by|an?|the|per|each|every|more|less|total|all|altogether|left|remaining|only|away|other"
)
_SHORT_WORDS = ("in", "of", "on", "at", "by", "a", "an", "per", "sq", "cu", "US")
_FACTORS = {"square": "^2", "sq": "^2", "cubic": "^3", "cu": "^3"}

# A number in running text with everything attached to it, so that no part is taken for the whole.
_NUMERAL = re.compile(
    rf"""(?P<sign>(?:(?i:(?<![0-9)][ ])\b(?:minus|negative))[ ]|(?<![\w)\]}}])[-−–])?)
    (?:[$€£¥₹](?P<inner>[-−–]?))?
    (?P<body>\\[cdt]?frac[ ]?\{{[^{{}}]*\}}[ ]?\{{[^{{}}]*\}}|\\[cdt]?frac[ ]?[0-9]{{2}}
     |(?:(?<![\w).])\.)?[0-9]
      (?:[0-9]|[.,:/'_](?=[0-9])|[ ](?=[0-9]{{3}}(?![0-9]))|[ ]?/[ ]?(?=[0-9])|[eE](?=[+-]?[0-9])|(?<=[eE])[+-])*
      (?:[ ][0-9]{{1,9}}/[0-9]{{1,9}})?(?:[ ]?(?:\\times|\\cdot|[*×·x])[ ]?10(?=\^))?(?:\^\{{?[+-]?[0-9]+\}}?)?!?
      (?:[ ](?i:{_MAGNITUDE})\b)*)""",
    re.VERBOSE,
)


_MARKED = re.compile(r"\*\*([^*\n]{1,100})\*\*|\\boxed\{((?:[^{}\n]|\{[^{}\n]{0,100}\}){1,100})\}")
_FORMULA = re.compile(r"[=+*/^<>?!|&\\_~{}√±×÷·]|(?<!\w)[-−–]")  # a sign that there is more than words around a number
_CLOSING = re.compile(r"\$|\\[)\]]|\*\*")
_GOES_ON = re.compile(rf"(?:{_CLOSING.pattern})*(?:[.,;:]?\s+(?!to\b|x\b)[(]?[A-Za-z]{{2}}|[.\s]*\Z)")
_OF_WHAT = re.compile(
    r"\b(?:for|in|per|among|between|across|after|within|during|every|each|with|from|of|at|on|by)"
    r"(?: (?:the|all|these|those|her|his|their|its|every|each|of)){0,2} \Z"
)


class Quantity(NamedTuple):
    """A number and the unit after it; where that is no known one, the words after it."""

    number: Fraction
    unit: str = ""  # "m", "km/h", "cm^2", "$", "%", "°"; "" without one
    is_letter: bool = False  # as in `5m`: a unit if compared with a unit, else a product
    words: frozenset[str] = frozenset()  # stems: apples and apple are one
    name: str = ""  # of the quantity: "x" in `x = 5`

    def same(self, other: "Quantity") -> bool:
        """True if the numbers are equal, with no conflict of units or names. Converts nothing."""
        if (self.is_letter or other.is_letter) and not (self.unit and other.unit):
            return False
        if (self.name and other.name and self.name != other.name) or not same_unit(self.unit, other.unit):
            return False
        kinds = self.words or {self.unit} - {""}, other.words or {other.unit} - {""}
        is_of_others = all(kinds) and not (self.unit and other.unit) and kinds[0].isdisjoint(kinds[1])
        return self.number == other.number and not is_of_others  # 18 apples are not 18 oranges


class Numeral(NamedTuple):
    """A number in running text with everything attached to it, but without currency signs.

    `-$5` and `minus 5` become `-5`; `5:30`, `3,4` and `2^10` are kept whole, so that none of their parts is taken for
    the number.
    """

    text: str
    start: int
    end: int

    def is_stated_in(self, line: str, others: list["Numeral"]) -> bool:
        """True if a line of words states this number first; `others` only say of what: 18 apples for 3 kids."""
        around = (line[: self.start] + line[self.end :]).replace("**", "")
        if _VALUE_WORD.search(around) or _FORMULA.search(around) or line[self.end :][:1].isalnum():
            return False
        if not others:
            return True
        follows = _GOES_ON.match(line, self.end)
        return self.start == 0 and bool(follows) and all(_OF_WHAT.search(line[: other.start]) for other in others)


def same_unit(a: str, b: str) -> bool:
    """True if two units are the same, or one is missing; plain degrees may be those of any scale."""
    return not a or not b or a == b or (a[0] == b[0] == "°" and "°" in (a, b))


def read_quantity(text: str) -> Quantity | None:
    """Reads the one number, and its unit, that `text` (without wrappers) states; None for anything else."""
    text = text.strip()
    if len(text) > _LONGEST or text.startswith("~") or text.endswith(".."):
        return None
    text = plain(text.removesuffix("."))
    if inside := _PARENTHESES.fullmatch(text):
        text = inside[1] + inside[2].strip()
    sign = _SIGN.match(text)
    body = _BODY.match(text, sign.end())
    signs = [part for part in (sign[1], sign[2], sign[4]) if part]
    if not body or len(signs) > 1:
        return None
    number, rest = _scaled(_number(body), text[body.end() :])
    unit = _unit(rest)
    is_minus = bool(signs) and signs != ["+"]
    if number is None or unit is None or (number == 0 and is_minus):
        return None
    money = _UNITS[sign[3].lower()] if sign[3] else ""
    if not same_unit(money, unit[0]):
        return None
    return Quantity(-number if is_minus else number, money or unit[0], *unit[1:])


def plain(text: str) -> str:
    """Rewrites a short text without typography and LaTeX that do not change its meaning."""
    text = text.translate(_TO_PLAIN)
    for pattern, replacement in _SPELLINGS:
        text = pattern.sub(replacement, text)
    return _LATEX_FRACTION.sub(_plain_fraction, text).strip()


def _plain_fraction(match: re.Match) -> str:
    signs = [match[1] or "", match[5] or ""]
    minus = "-" if signs.count("-") == 1 else ""
    blank = " " * match.string[match.end() : match.end() + 1].isdigit()
    return f" {minus}{match[2] or match[4]}/{match[6] or match[8]}{blank}"


def _number(body: re.Match) -> Fraction | None:
    """Returns the value; None if the text is a computation rather than a number."""
    if body["whole"]:
        part = _fraction(body["part"], body["parts"])
        return None if part is None or part >= 1 else int(body["whole"]) + part
    if body["top"]:
        return _fraction(body["top"], body["bottom"])
    if body["power"]:
        return Fraction(10) ** int(body["power"].partition("^")[2])
    if body["repeated"]:
        whole, _, places = body["start"].partition(".")
        shift = 10 ** len(places)
        period = Fraction(int(body["repeated"]), 10 ** len(body["repeated"]) - 1)
        return (int(whole + places or "0") + period) / shift
    value = Fraction(re.sub("[, ']", "", body["decimal"]))
    return value * Fraction(10) ** int(body["exponent"] or body["tens"] or "0")


def _fraction(top: str, bottom: str) -> Fraction | None:
    numbers = [int(re.sub("[, ']", "", digits)) for digits in (top, bottom)]
    if numbers[1] == 0 or numbers[0] % numbers[1] == 0:  # a division that was not carried out
        return None
    return Fraction(*numbers)


def _scaled(number: Fraction | None, rest: str) -> tuple[Fraction | None, str]:
    """Returns the number scaled by the words after it (3 million, 2 thirds), and what follows them."""
    for _ in range(2):  # 2 hundred thousand
        word = _FIRST_WORD.match(rest)
        scale = word and _SCALES.get(word[1].lower().removesuffix("s"))
        if number is None or not scale:
            break
        number, rest = number * scale, rest[word.end() :]
    word = _FIRST_WORD.match(rest)
    parts = word and _PARTS.get(word[1].lower().removesuffix("s"))
    if number is None or not parts:
        return number, rest
    if number.denominator != 1 or number % parts == 0:
        return None, rest
    return number / parts, rest[word.end() :]


def read_unit(text: str) -> str | None:
    """Returns the unit that a text names, "" for words that are no known unit, None for more than words."""
    reading = _unit(" " + plain(text))
    return reading[0] if reading else None


def _unit(rest: str) -> tuple[str, bool, frozenset[str]] | None:
    """Returns the unit after a number, whether it is a single letter attached to it, and words without a known unit.

    None if more than words follow the number.
    """
    rest = rest.removesuffix(".")
    unit = ""
    if sign := _UNIT_SIGN.match(rest):
        unit, rest = _UNITS.get(sign[1], sign[1].replace(" ", "")), rest[sign.end() :]
    if not rest.strip():
        return unit, False, frozenset()
    words = [_UNIT_WORD.fullmatch(word) for word in rest.replace("per cent", "percent").split()]
    if len(words) > _MOST_WORDS or None in words or _VALUE_WORD.search(rest):
        return None
    if any(not _is_unit_word(word, index == len(words) - 1) for index, word in enumerate(words)):
        return None
    if rest[0] != " " and not _known(words[0][1]):  # attached to the number
        return None
    named = _named_unit(words)
    if unit and named and not same_unit(unit, named):
        return None
    if unit := named or unit:
        return unit, len(rest) == 1, frozenset()  # a blank alone is no rest
    names = [word[1].lower() for word in words if not _NOT_COUNTED.fullmatch(word[1].lower())]
    return "", False, frozenset(re.sub(r"(?<![us])s\Z|es?\Z", "", name).replace("y", "i") for name in names)


def _is_unit_word(word: re.Match, is_last: bool) -> bool:
    for name in filter(None, (word[1], word[3])):
        if len(name) < 3 and not _known(name) and (is_last or name not in _SHORT_WORDS):
            return False  # two letters may be a product: 2 xy
    return not (is_last and word[1] == "per")


def _known(name: str) -> str:
    """Returns the unit of a name, also of one with a prefix: "g" for grams, "micro g" for micrograms, "" for others."""
    if unit := _UNITS.get(name) or (_UNITS.get(name.lower(), "") if len(name) > 1 else ""):
        return unit
    prefix = _METRIC.match(name.lower())
    unit = _UNITS.get(name.lower()[prefix.end() :], "") if prefix else ""
    return f"{prefix[0]} {unit}" if unit else ""


def _named_unit(words: list[re.Match]) -> str:
    """Returns the first unit among the words, with its power and what it is per; "" for none."""
    unit, power, per = "", "", False
    for index, word in enumerate(words):
        name, factor = word[1].lower(), _FACTORS.get(word[1].lower())
        if factor and index < len(words) - 1:
            power = factor
        elif name == "per":
            if not unit:  # $5 per hour counts as dollars
                return ""
            per = True
        elif name == "in" and index < len(words) - 1 and words[index + 1][1] != "per":
            continue  # 18 in total
        elif symbol := _known(word[1]):
            if per:
                return unit if unit in _CURRENCIES else f"{unit}/{symbol}"
            if not unit or (unit == "°" and symbol[0] == "°"):
                unit = symbol + (word[2] or power)
                if word[3] and symbol not in _CURRENCIES:
                    unit += f"/{_known(word[3]) or word[3]}{word[4] or ''}"
    return unit


def numerals(text: str) -> list[Numeral]:
    """Finds the numbers in running text, in order."""
    return [
        # a sign may be a word, in which case-insensitively ı is an i
        Numeral(("-" if sign.isalpha() else sign) + match["body"], *match.span())
        for match in _NUMERAL.finditer(text.translate(_TO_BLANKS))
        for sign in [match["sign"].strip() or match["inner"] or ""]
    ]


def marked_number(line: str) -> Numeral | None:
    """Returns the one bold or boxed number in a line, with what belongs to it after the mark: `**3** million`.

    None if there is not exactly one, or if more than words follow it, or words that take it back.
    """
    marks = [mark for mark in _MARKED.finditer(line) if numerals(mark[0])]
    if len(marks) != 1:
        return None
    inside, after = marks[0][1] or marks[0][2], line[marks[0].end() :]
    if not _GOES_ON.match(after) or _HEDGED.search(after) or _FORMULA.search(_CLOSING.sub("", after)):
        return None
    numbers = read_quantity(inside) and numerals(inside + after)
    return Numeral(numbers[0].text, *marks[0].span()) if numbers else None

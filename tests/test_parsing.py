from fractions import Fraction
from time import perf_counter

import pytest

from lib.parsing import as_number, last_boxed, peel, same_answer, tag_blocks


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("<answer>1</answer> or <answer>2</answer>", ["1", "2"]),
        ("<answer> 1\n</answer>", [" 1\n"]),
        ("<answer>1", []),
        ("1</answer>", []),
        ("<Answer>1</Answer>", []),  # case counts
        ("<answer>a<answer>b</answer>", ["b"]),  # back to the nearest opening tag
        ("<answer>a</answer>b</answer>", ["a"]),
        ("<think><answer>1</answer></think>", ["1"]),
        ("<answer></answer>", [""]),
    ],
)
def test_tag_blocks(text, blocks):
    assert tag_blocks(text, "answer") == blocks


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{1} then \boxed{2}", "2"),  # the last, not the first
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\boxed{3}}", r"\boxed{3}"),
        (r"\boxed{4} and \boxed{5", "4"),  # an unclosed box does not count
        (r"\boxed{ a \boxed{5}", "5"),
        (r"{ } } \boxed{6}", "6"),  # stray braces before
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{\left\{ x \right.}", r"\left\{ x \right."),
        (r"\boxed {7}", "7"),
        (r"\\boxed{8}", "8"),
        (r"x \\\boxed{9}", "9"),
        (r"\fbox{1}", ""),
        ("no box", ""),
    ],
)
def test_last_boxed(text, content):
    assert last_boxed(text) == content


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("$18$", "18"),
        ("$$18$$", "18"),
        (r"\[ 18 \]", "18"),
        (r"\(18\)", "18"),
        (r"$\boxed{\text{ east }}$", "east"),
        ("$18", "$18"),
        (r"$\$18$", r"\$18"),
        ("$a$ and $b$", "$a$ and $b$"),
        (r"\(a\) or \(b\)", r"\(a\) or \(b\)"),
        (r"\text{a} + \text{b}", r"\text{a} + \text{b}"),
        (r"\boxed{1}{2}", r"\boxed{1}{2}"),
        ("$", "$"),
        ("$$", ""),
        ("", ""),
    ],
)
def test_peel(text, inside):
    assert peel(text) == inside


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("18", 18),
        ("$18", 18),
        ("18.0", 18),
        ("18.", 18),
        ("18 dollars", 18),
        ("18 dollars.", 18),
        ("18 miles per hour", 18),
        ("18%", 18),
        (r"18\%", 18),
        (r"$\$1{,}800$", 1800),
        (r"5\text{ cm}^2", 5),
        ("5 cm", 5),
        (r"90^\circ", 90),
        ("1,000", 1000),
        ("12,345.5", Fraction(24691, 2)),
        (r"1\,000", 1000),
        ("3.10", Fraction(31, 10)),
        (".5", Fraction(1, 2)),
        ("-2/3", Fraction(-2, 3)),
        ("1 / 2", Fraction(1, 2)),
        (r"\frac{1}{2}", Fraction(1, 2)),
        (r"-\dfrac{ 1 }{ 2 }", Fraction(-1, 2)),
        (r"\frac{-1}{-2}", Fraction(1, 2)),
        (r"\frac12", Fraction(1, 2)),
        (r"\boxed{\tfrac{3}{4}}", Fraction(3, 4)),
        ("−7", -7),
        ("-$5", -5),
        ("$-5", -5),
        ("+5", 5),
        ("1.5e3", 1500),
        ("1e-3", Fraction(1, 1000)),
        ("2e999", 2 * 10**999),
    ],
)
def test_numbers_are_read_exactly(text, number):
    assert as_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "eighteen",
        "1,00",
        "1,2",
        "1/0",
        r"\frac{1}{0}",
        "1/2/2020",
        "--5",
        "2x",
        "2 x",
        "2 xy",
        "2e",
        "3 million",
        "3 Pi",
        r"3\pi",
        r"3\sqrt{2}",
        r"3\frac{1}{2}",
        "18 or 19",
        "5!",
        "10-20",
        "inf",
        "nan",
        "1e9999",
        "1e999999999",
        "9" * 5000,  # beyond Python's limit on int digits
    ],
)
def test_what_is_not_one_number_is_none(text):
    assert as_number(text) is None


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("", "", False),
        (" ", "\n", False),
        ("", "18", False),
        ("$18", "18", True),
        ("18.0", "18", True),
        ("18 dollars", "18", True),
        ("18%", "18", True),
        ("1,000", "1000", True),
        ("3.10", "3.1", True),
        ("0.5", "1/2", True),
        (r"\frac{1}{2}", r"\dfrac{1}{2}", True),
        (r"\boxed{3}", "3", True),
        (" East", "east ", True),
        ("18", "19", False),
        ("0.333333", "1/3", False),  # exactly
        ("3 million", "3", False),
        ("10000000000000000.1", "10000000000000000", False),  # no float in between
        ("x", "y", False),
    ],
)
def test_same_answer(a, b, same):
    assert same_answer(a, b) is same
    assert same_answer(b, a) is same


HOSTILE = [
    "1",
    "{",
    "}",
    "\\",
    "$",
    ",",
    " ",
    "1/",
    "1,000,",
    "<answer>",
    "</answer>",
    "<answer></answer>",
    "\\boxed{",
    "\\text{",
    "\\frac{",
    "\\boxed{}",
    "\0",
    "\ud800",
    "- ",
]


@pytest.mark.parametrize("piece", HOSTILE, ids=ascii)
def test_a_hostile_text_takes_linear_time_and_raises_nothing(piece):
    text = piece * (100_000 // len(piece))
    nested = text + "}" * text.count("{")
    start = perf_counter()
    for value in (text, nested, "-" + text):
        tag_blocks(value, "answer"), last_boxed(value), peel(value), as_number(value), same_answer(value, value + "1")
    assert perf_counter() - start < 5  # 0.3 s at worst; peeling layer by layer without a bound needs over a minute


@pytest.mark.parametrize("piece", HOSTILE, ids=ascii)
def test_texts_just_below_the_bound_on_numbers_are_quick(piece):
    text = piece * (999 // len(piece))
    start = perf_counter()
    for value in (text, "1" + text, text + "1", "1" + text + "x"):
        as_number(value)
    assert perf_counter() - start < 1

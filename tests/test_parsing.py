from fractions import Fraction
from time import perf_counter, process_time

import pytest

from lib.parsing import (
    CodeBlock,
    as_number,
    code_blocks,
    last_boxed,
    last_code,
    peel,
    same_answer,
    tag_blocks,
    well_formed_code,
    without_thinking,
)


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


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>a</think>b", "b"),
        ("<THINK>a</Think>b", "b"),
        ("a<think>b</think>c<think>d</think>e", "ace"),
        ("<think>a<think>b</think>c", "<think>ac"),  # back to the nearest opening tag, as for all tags
        ("a</think>b", "a</think>b"),
        ("a<think>b", "a<think>b"),
        ("<think>a</think>b</think>c", "b</think>c"),
        ("<thin\u212a>a</thin\u212a>", "<thin\u212a>a</thin\u212a>"),  # the Kelvin sign is no k
        ("", ""),
    ],
)
def test_thinking_is_removed_where_it_is_closed(text, rest):
    assert without_thinking(text) == rest


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("```python\nx\n```", [("python", "x\n")]),
        ("a\n```\nx\n```\nb", [("", "x\n")]),
        ("``` Py3  title=x\nx\n```", [("py3", "x\n")]),
        ("~~~python\nx\n~~~", [("python", "x\n")]),
        ("~~~a`b\nx\n~~~", [("a`b", "x\n")]),  # only after backticks are backticks forbidden
        ("```\n~~~\n```", [("", "~~~\n")]),
        ("   ```python\n  x\n  ```", [("python", "  x\n")]),  # not dedented
        ("    ```python\nx\n```", []),  # four spaces: no fence, so the last line opens
        ("\t```python\nx\n\t```", []),
        ("``\nx\n``", []),
        ("text ```python\nx\n", []),
        ("```x```", []),  # code in a line
        ("```python\nx", []),
        ("```python\nx\n``", []),
        ("```python\nx\n``` y", []),
        ("```python\nx\n    ```", []),
        ("```python\n```", [("python", "")]),
        ("```python\nx\n```````", [("python", "x\n")]),
        ("````\n```python\nx\n```\n````", [("", "```python\nx\n```\n")]),
        ("````python\n```\nx\n```", []),  # the outer one is unclosed and hides the inner one
        ("```python\nx\n```python\ny\n```", [("python", "x\n```python\ny\n")]),
        ('```python\ns = """\n    ```\n"""\n```', [("python", 's = """\n    ```\n"""\n')]),
        ('```python\ns = "```"\n```', [("python", 's = "```"\n')]),
        ("```python \r\nx\r\n```\t \r\n", [("python", "x\r\n")]),
        ("```\npython\0\ud800\n```", [("", "python\0\ud800\n")]),
        ("```a\nx\n```\n```b\ny\n```", [("a", "x\n"), ("b", "y\n")]),
        ("```\nx\u2028```\n```", [("", "x\u2028```\n")]),  # no line end of Markdown's
        ("", []),
        ("no fence", []),
    ],
)
def test_code_blocks(text, blocks):
    assert [(block.info, block.code) for block in code_blocks(text)] == blocks


def test_a_block_knows_its_place():
    text = "one\n  ```py\nx\n ```` \r\n```\n\n```"
    assert code_blocks(text) == [CodeBlock("py", "x\n", 4, 21), CodeBlock("", "\n", 22, 30)]
    assert text[4:21] == "  ```py\nx\n ```` \r"
    assert len(code_blocks("```py\nx\n```\n" * 100)) == 100


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\na\n```\n```\nb\n```\n```json\nc\n```", "b\n"),  # the last that is Python or unmarked
        ("```py\na\n```", "a\n"),
        ("```Python3\na\n```", "a\n"),
        ("```json\na\n```", ""),
        ("```python\na", ""),
        ("```python\na\n```\n```python\nb", "a\n"),
        ("print(1)\n", "print(1)\n"),
        ("<think>```\ndraft\n```</think>print(1)", "print(1)"),
        ("```python\na\n```\n<Think>\n```python\nb\n```\n</THINK>", "a\n"),
        ("<think>\n```python\na\n```\n", "a\n"),  # unclosed: no thinking
        ("", ""),
    ],
)
def test_last_code(text, code):
    assert last_code(text) == code


BLOCK = "```python\nx\n```\n"


@pytest.mark.parametrize(
    ("text", "plain", "marked"),
    [
        (BLOCK, True, False),
        (BLOCK + "Final answer: 3", True, True),
        (BLOCK + "**FINAL ANSWER:** 3", True, True),
        (BLOCK + '{"final_answer": 3}', True, True),
        (BLOCK + "{'final_answer': 3}", True, True),
        (BLOCK + "{'final_answer\": 3}", True, False),
        (BLOCK + "final_answer = 3", True, False),
        (BLOCK + "FINAL_ANSWER", True, False),
        ("Final answer:\n" + BLOCK, True, False),  # before the block
        ("```python\nx\n# Final answer: 3\n```", True, False),  # inside the block only
        (BLOCK + "<think>Final answer:</think>", True, False),
        ("<think>\n" + BLOCK + "</think>\n" + BLOCK + "Final answer:", True, True),
        ("<think>\n" + BLOCK + "\n" + BLOCK + "Final answer:", False, False),
        ("<think>\n" + BLOCK + "</think>Final answer:", False, False),
        (BLOCK + "Final answer:\n```json\n3\n```", False, False),  # a second block of any kind
        (BLOCK + BLOCK + "Final answer:", False, False),
        ("~~~py3\nx\n~~~\nfinal answer:", True, True),
        ("```\nx\n```\nfinal answer:", False, False),
        ("```javascript\nx\n```\nfinal answer:", False, False),
        ("```python\nx\nfinal answer:", False, False),
        ("x\nfinal answer:", False, False),
    ],
)
def test_the_format_of_code(text, plain, marked):
    assert (well_formed_code(text, needs_marker=False) is not None) is plain
    assert (well_formed_code(text, needs_marker=True) is not None) is marked


def test_the_code_of_a_well_formed_output():
    assert well_formed_code(f"<think>{BLOCK}</think>\n{BLOCK}Final answer:", needs_marker=True) == "x\n"


CODE_HOSTILE = {
    "backticks": lambda n: "`" * n,
    "backticks on lines": lambda n: "`\n" * (n // 2),
    "fences": lambda n: "```\n" * (n // 4),
    "fences with words": lambda n: "```python\n" * (n // 10),
    "unclosed": lambda n: "~~~\n" + "```\n" * (n // 4),
    "one long fence": lambda n: "`" * (n // 2) + "\n" + "```\n" * (n // 8),
    "growing fences": lambda n: "\n".join("`" * (3 + i) + "x" for i in range(int((2 * n) ** 0.5))),
    "spaces": lambda n: " " * n,
    "spaces on lines": lambda n: "   \n" * (n // 4),
    "one line": lambda n: "x" * n,
    "a long info": lambda n: "```" + " x" * (n // 2) + "\n```",
    "opening tags": lambda n: "<think>" * (n // 7),
    "closing tags": lambda n: "</think>" * (n // 8),
    "tags": lambda n: "<think></think>" * (n // 15),
    "a marker, almost": lambda n: BLOCK + "final answer" * (n // 12),
    "NUL": lambda n: "\0" * n,
    "surrogates": lambda n: "\ud800\n" * (n // 2),
    "carriage returns": lambda n: "```\r" * (n // 4),
}


@pytest.mark.parametrize("build", CODE_HOSTILE.values(), ids=CODE_HOSTILE)
def test_the_work_on_code_grows_with_the_length(build):
    def work(length):
        """Seconds of CPU, not of the clock: the least of three."""
        text, times = build(length), []
        for _ in range(3):
            start = process_time()
            last_code(text), well_formed_code(text, True), code_blocks(text + "\n```"), without_thinking(text)
            times.append(process_time() - start)
        return max(min(times), 0.004)  # so that noise on a very short time is no growth

    assert work(1_000_000) / work(125_000) < 30  # linear: 8; quadratic: 64

from time import perf_counter

import pytest

from lib.text.formats import FORMATS, answer_place, format_problem

WHOLE = "<think>6 + 12</think>\n<answer> 18 </answer>"


@pytest.mark.parametrize(
    ("format", "text", "inside"),
    [
        ("free", " anything ", " anything "),
        ("free", "", ""),
        ("think_answer", WHOLE, "18"),
        ("think_answer", f"\r\n\t {WHOLE} \n", "18"),
        ("think_answer", "<think></think><answer>18</answer>", "18"),
        ("answer", WHOLE, "18"),
        ("answer", "so it is <answer>18</answer>\n", "18"),
        ("answer", "6 + 12</think><answer>18</answer>", "18"),  # the chat template opened the block
        ("answer", "<think>a</think> hm <think>b</think> <answer>18</answer>", "18"),
        ("boxed", r"so $\boxed{18}$.", "18"),
        ("boxed", r"\[ \boxed{\frac{1}{2}} \]", r"\frac{1}{2}"),
        ("boxed", r"<think>\boxed{17}?</think> **\boxed {18}**", "18"),
        ("boxed", "\\begin{align}x &= \\\\boxed{18}\\end{align}\n", "18"),
        ("boxed", r"\boxed{17}, no</think>\boxed{18}", "18"),
    ],
)
def test_the_place_of_an_answer(format, text, inside):
    assert answer_place(format, text) == (inside, "")
    assert format_problem(format, text) == ""


@pytest.mark.parametrize(
    ("format", "text", "problem"),
    [
        ("think_answer", "", "no <think> block"),
        ("think_answer", "<answer>18</answer>", "no <think> block"),
        ("think_answer", "<think>18</answer>", "<think> is never closed"),
        ("think_answer", "18</think><answer>18</answer>", "<think> is never opened"),
        ("think_answer", "<think>18</think>", "no <answer> block"),
        ("think_answer", "<think>18</think><answer>18", "<answer> is never closed"),
        ("think_answer", "</think><think><answer>18</answer>", "</think> before <think>"),
        ("think_answer", "<answer>18</answer><think>a</think>", "<answer> within or before the <think> block"),
        ("think_answer", "<think><answer>18</think></answer>", "<answer> within or before the <think> block"),
        ("think_answer", "<think>a</think><answer> \n</answer>", "empty <answer> block"),
        ("think_answer", f"so: {WHOLE}", "text before <think>"),
        ("think_answer", f"{WHOLE}.", "text after </answer>"),
        ("think_answer", f"\u200b{WHOLE}", "text before <think>"),  # no blank, though nobody sees it
        ("think_answer", f"{WHOLE}\0", "text after </answer>"),
        ("think_answer", "<think>a</think>so<answer>18</answer>", "text between </think> and <answer>"),
        ("think_answer", f"<think>a</think>{WHOLE}", "several <think> or </think>"),
        ("think_answer", WHOLE + WHOLE, "several <think> or </think>"),
        ("think_answer", f"{WHOLE}<answer>19</answer>", "several <answer> or </answer>"),
        ("think_answer", "<think>a<answer></think>18</answer>", "<answer> within or before the <think> block"),
        ("answer", "18", "no <answer> block"),
        ("answer", "<Answer>18</Answer>", "no <answer> block"),
        ("answer", "<answer>17</answer><answer>18</answer>", "several <answer> or </answer>"),
        ("answer", "<answer>18</answer> or 19", "text after </answer>"),
        ("answer", "<think><answer>18</answer>", "<think> is never closed"),
        ("answer", "<think><answer>18</answer></think>", "<answer> within or before a <think> block"),
        ("answer", "<answer>1<think>x</think>8</answer>", "<answer> within or before a <think> block"),
        ("answer", "<think>a<think>b</think></think><answer>18</answer>", "crossed <think> tags"),
        ("boxed", "18", r"no \boxed{}"),
        ("boxed", r"\boxed 18", r"\boxed without {}"),
        ("boxed", r"\boxed{18", r"\boxed{} is not closed"),
        ("boxed", r"\boxed{ }", r"empty \boxed{}"),
        ("boxed", r"\boxed{17} or \boxed{18}", r"several \boxed{}"),
        ("boxed", r"\boxed{\boxed{18}}", r"several \boxed{}"),
        ("boxed", r"\boxed{18} dollars", r"text after \boxed{}"),
        ("boxed", r"\boxed{5}!", r"text after \boxed{}"),
        ("boxed", r"<think>\boxed{18}</think>", r"no \boxed{}"),
        ("boxed", r"<think>\boxed{18}", "<think> is never closed"),
        ("boxed", r"\boxed{18}<think>a</think>", r"text after \boxed{}"),
        ("boxed", r"\bo<think>a</think>xed{18}", r"no \boxed{}"),
    ],
)
def test_what_keeps_a_text_from_a_format(format, text, problem):
    assert answer_place(format, text) == ("", problem)


PIECES = [
    "<think>",
    "</think>",
    "<answer>",
    "</answer>",
    r"\boxed{",
    "}",
    r"\]",
    "$",
    " ",
    "\0",
    "\ud800",
    "<",
    r"\end{",
]


@pytest.mark.parametrize("piece", PIECES, ids=ascii)
def test_any_text_is_read_in_linear_time(piece):
    long = piece * (200_000 // len(piece))
    start = perf_counter()
    for format in FORMATS:
        for text in (long, f"<think>{long}</think><answer>{long}</answer>", rf"\boxed{{1}}{long}x", rf"\boxed{{{long}"):
            answer_place(format, text)
    assert perf_counter() - start < 5

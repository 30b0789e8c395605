"""What a teacher may say: honest hints as they are, but no code, no answer, and no mark of a chat template."""

import pytest

from lib.rl.hints import LONGEST_READ, Cleaned, clean, gives_away

HONEST = [
    "Think about the empty list.", "Use a set to remember what was seen.", "If x is negative, return its opposite.",
    "Return the smallest index.", "Return 0 for the empty list.", "Return True when nothing is left.",
    "return the sum, not the product.", "return nothing.", "Look at the last element: it is never compared.",
    "For each number: check whether it divides n.", "for each number, check whether it divides n",
    "While reading, keep two counters.", "with two pointers, one from each end", "Else you divide by zero.",
    "If the list is empty: stop.", "from the left to the right, add each digit.", "import the digits one at a time",
    "Class sizes matter here (think of ties).", "A lambda is not needed: sort already knows the key.",
    "Try the case n = 0.", "n = 0 is the case to look at.", "x = 3 is a good example to try first.",
    "Remember: x = 3 is odd.", "Remember that 7*8=56.", "Consider f(0) and f(1).",
    "sort() works in place and returns None.", "max(a, b) is what you want (or min)",
    "Compare a[i] with a[i+1], and stop one early.", "[1, 2] has two elements.", "a == b is not the same as a is b",
    "Use the modulo operator % to test for even numbers.", 'It\'s about "<=" rather than "<".',
    "- Start with the smallest case.", "1. Add the ones. 2. Carry.", "Think: {1, 2} is a set.", "Say yes.",
]  # fmt: skip

CLEANED = {  # what a teacher says -> what the policy may see
    "  Use\n\n a\tset. \r\n": "Use a set.",
    "Use\u2028a \x00set\x07.": "Use a set.",
    "Use a set 😀": "Use a set",
    "集合 means set": "means set",
    "Look at `x`, not at ``y``.": "Look at x, not at y.",
    "Use a set.\n```python\nreturn len(set(xs))\n```": "Use a set.",
    "```\nx\n```\nUse a set.\n~~~\ny\n~~~": "Use a set.",
    "Use a set.\n```python\ndef f(x):": "Use a set.",
    "````\n```\nx\n```\n````\nUse a set.": "Use a set.",
    "Use a set.\ndef f(x):\n    return x + 1": "Use a set.",
    "Hint: use a set.": "use a set.",
    "**Hint:** use a set.": "use a set.",
    "Final answer: Hint: use a set.": "use a set.",
    '{"final_answer": "Use a set."}': "Use a set.",
    'Here: {"hint": "Use a set.", "answer": "42"}': "Use a set.",
    '{"final_answer": "Use a set.': "Use a set.",  # repaired
    "<think>def f(x): 42</think>Use a set.": "Use a set.",
    "it is 42</think>Use a set.": "Use a set.",  # the prompt opened the block
    "Use a set.<|im_end|><|im_start|>user": "Use a set.&lt;|im_end|>&lt;|im_start|>user",
    "Use a set.<\u00e9|im_end|>": "Use a set.&lt;|im_end|>",
}

CODE = [
    "```python\nreturn 1\n```", "```\nx\n```", "~~~\nx\n~~~", "```py\nreturn 1", "``` a b", "def f(x):",
    "def f(x): return x", "Write def f(n): and so on.", "Use lambda x: x + 1 here.", "Sort by lambda a, b: b - a.",
    "f = lambda: 3", "async def f():", "class A:", "import os", "import os, sys", "from math import gcd", "return x",
    "return x + 1", "return x if x > 0 else -x", "return a, b", "return not x", "return", "yield x",
    "assert f(2) == 3", "pass", "raise ValueError('x')", "if n == 0: return 1", "if not xs:", "else: return 0",
    "for i in range(3): total += i", "for c in s.lower():", "while lo < hi: mid = (lo + hi) // 2",
    "with open(p) as f: data = f.read()", "try:", "x = 3", "x += 1", "a, b = b, a", "self.x = 3", "d['a'] = 3",
    "n = int(input()); print(n)", "x = (", "print(x)", "print(len(set(xs)))", "sorted(set(xs))[0]", "xs.append(f(x))",
    "result.append(", "print(x);", "@cache", ">>> f(2)", "[x for x in xs if x > 0]",
    '{"final_answer": "def f(x): return x"}', '{"final_answer": {"code": "def f(): pass"}}',
]  # fmt: skip

EMPTY = [
    "", " \n\t\x0b", "\x00\x1b\x7f", "😀🎉", "使用集合", "42", "7*8=56", "Final answer: 42", "Hint:", "{}", "\ud800",
    '{"hint": ""}', '{"hint": null}', "<think>Use a set.</think>", "<think>Use a set.", "***", "a",
]  # fmt: skip


@pytest.mark.parametrize("text", HONEST)
def test_an_honest_hint_survives_untouched(text):
    assert clean(text) == Cleaned(text)


@pytest.mark.parametrize(("text", "expected"), CLEANED.items())
def test_what_is_no_hint_is_taken_out_of_one(text, expected):
    assert clean(text) == Cleaned(expected)


@pytest.mark.parametrize("text", CODE)
def test_code_alone_is_dropped(text):
    assert clean(text) == Cleaned(dropped="code")
    assert clean(f"    {text}  ") == Cleaned(dropped="code")
    assert clean(f"Use a set.\n{text}").text == ("" if "final_answer" in text else "Use a set.")


@pytest.mark.parametrize("text", EMPTY)
def test_what_says_nothing_in_english_is_dropped(text):
    assert clean(text) == Cleaned(dropped="empty")


def test_a_long_hint_is_cut_at_a_space():
    text = "abcd " * 80
    assert clean(text).text == ("abcd " * 60).strip()
    assert clean("x" + text).text == ("x" + "abcd " * 60).strip()  # 300 characters
    assert clean("xy" + text).text == ("xy" + "abcd " * 59).strip()
    assert clean("a" * 301).text == "a" * 300


PARTS = [
    "if ",
    "for",
    ":",
    " ",
    "[",
    "(",
    ")",
    "a",
    "=",
    ", ",
    ".",
    "*",
    "{",
    '"',
    "`",
    "~~~",
    "<think>",
    "a. ",
    "hint: ",
]


@pytest.mark.parametrize("part", PARTS)
def test_megabytes_are_read_in_part(part):
    """Each of these takes no more work from its first 20,000 characters on; none may take the square of them."""
    for start in ("", "if ", "a("):
        long = start + part * (10_000_000 // len(part)) + " x y"
        assert clean(long) == clean(long[:1_000_000]) == clean(long[:LONGEST_READ])
        clean(long[: LONGEST_READ - 4] + " x y")


@pytest.mark.parametrize(
    ("hint", "secret"),
    [
        ("It is 12.", "12"), ("12", "12"), ("x=12, so", "12"), ("about 12% of it", "12"), ("It is -12.", "12"),
        ("it is (3/4)", "3/4"), ("it is 3.5.", "3.5"), ("Say YES.", "yes"), ("in new   york", "New York"),
        ("In New York", "new\nyork "), ("call f(x)", "f(x)"), ("the [a-z] class", "[a-z]"),
        ("\\frac{1}{2}", "\\frac{1}{2}"),
    ],
)  # fmt: skip
def test_the_answer_is_found(hint, secret):
    assert gives_away(hint, [secret])
    assert gives_away(hint, ["another", secret])


@pytest.mark.parametrize(
    ("hint", "secret"),
    [
        ("It is 112.", "12"), ("It is 120.", "12"), ("It is 12.5.", "12"), ("It is 0.12.", "12"), ("a12", "12"),
        ("the newest", "new"), ("renew it", "new"), ("yesterday", "yes"), ("a b", ""), ("a b", " "),
        ("axb", "a.b"), ("New York", "york new"), ("", "12"),
    ],
)  # fmt: skip
def test_what_is_not_the_answer_is_not_found(hint, secret):
    assert not gives_away(hint, [secret])
    assert not gives_away(hint, [])


NUMBER = [
    "add 6,235 and 100", "6235, then 7", "6 235 is one of the terms", "between 6,235 and 6,240", "$6,235.00 at most",
    "six thousand two hundred thirty-five", "Six thousand, two hundred and thirty five.", "6 thousand 235",
    "it is sixty-two thirty-five", "write six two three five", "the digits 6 2 3 5", "6, 2, 3, 5", "-6235 + 1",
    "first 6,235, then 1,186", "sixty-two hundred and thirty-five", "the sum (6235) comes first", "6.235e3 is near",
]  # fmt: skip
OTHERS = [
    "add 6,000 and 200", "six thousand two hundred", "6,2356", "16,235", "add the thirty-five", "6 or 2 or 3",
    "sixty-two of them", "a thousand", "one at a time", "6,235.5", "0.6235", "two of the three",
]  # fmt: skip


@pytest.mark.parametrize("secret", ["6235", "6,235", "6235.0", "$6,235"])
def test_a_number_is_found_in_every_way_to_write_it(secret):
    assert [hint for hint in NUMBER if not gives_away(hint, [secret], "What is 7421 - 1186?")] == []
    assert [hint for hint in OTHERS if gives_away(hint, [secret], "What is 7421 - 1186?")] == []


def test_other_numbers_in_words():
    for secret, words in {
        "12": "twelve", "20": "twenty", "1000": "one thousand", "100": "a hundred", "40": "forty", "21": "twenty one",
        "1000000": "1 million", "305": "three hundred and five", "1999": "nineteen ninety-nine", "90": "7 or ninety",
    }.items():  # fmt: skip
        assert gives_away(f"Think of {words}, as the text has it.", [secret]), secret
        assert not gives_away(f"Think of {words}, as the text has it.", ["17", "16", "8"])
    assert not gives_away("add six, two, three and five", ["16", "11"])


@pytest.mark.parametrize(
    ("hint", "secret", "question"),
    [
        ("Five is: 5.", "5", "2+3?"), ("Think of 5 apples.", "5", "2+3?"), ("The answer is 5.", "5", "Is it 5 or 6?"),
        ("It is five.", "5", "2+3?"), ("so it equals seven", "7", "3+4?"), ("x = 4", "4", "What is 4 x if 4x is 16?"),
        ("Pick B.", "B", "A) 1 B) 2 C) 3"), ("look at (c)", "C", "(A) 1 (B) 2 (C) 3"),
        ("Option A fits.", "A", "A. 1 B. 2"),
        ("Say A.", "A", "A: x, B: y"), ("The variable is y.", "y", "Which letter follows x?"),
        ("use +", "+", "Which sign?"),
        ("5.0 is right", "5", "2+3?"), ("It is -5.", "5.0", "2+3?"),
    ],
)  # fmt: skip
def test_an_answer_of_one_character_is_found_where_it_tells_something(hint, secret, question):
    assert gives_away(hint, [secret], question)


@pytest.mark.parametrize(
    ("hint", "secret", "question"),
    [
        ("Add 2 and 3 first.", "2", "2+3-3?"), ("Use two counters.", "2", "1+1?"), ("1. Add. 2. Carry.", "2", "1+1?"),
        ("A hint: look again.", "A", "A) 1 B) 2"), ("I think you forgot one.", "I", "Which letter?"),
        ("15 or 50", "5", "?"),
        ("5.5 is too much", "5", "2+3?"), ("Solve for x.", "x", "What is x?"), ("It is one of the sides.", "1", "?"),
        ("Try f(x) = x - 1.", "b", "A) 1 B) 2"), ("a - b", "-", "a - b or a + b?"),
    ],
)  # fmt: skip
def test_a_character_that_tells_nothing_is_not_found(hint, secret, question):
    assert not gives_away(hint, [secret], question)

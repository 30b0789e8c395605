import json
import random
from fractions import Fraction
from time import perf_counter, process_time

import pytest

from judge.parsing import (
    CodeBlock,
    as_number,
    code_blocks,
    last_boxed,
    last_code,
    opening_of,
    peel,
    same_answer,
    split_reasoning,
    tag_blocks,
    well_formed_code,
    without_special_tokens,
    without_thinking,
)
from lib.generators.protocol import Reply
from lib.text.calls import last_json_object, native_calls


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
        ("1 000", 1000),
        ("1'000'000", 1000000),
        (r"2.5 \times 10^{-3}", Fraction(1, 400)),
        ("2.5×10⁻³", Fraction(1, 400)),
        ("10^12", 10**12),
        ("3 1/2", Fraction(7, 2)),
        ("1¾", Fraction(7, 4)),
        (r"-3\frac{1}{2}", Fraction(-7, 2)),
        (r"0.1\overline{6}", Fraction(1, 6)),
        ("3 millions", 3000000),
        ("4 lakh rupees", 400000),
        ("3 sixths", Fraction(1, 2)),
        ("minus 5", -5),
        ("mınus 5", -5),  # ı is an i where case does not matter
        ("(18)", 18),
        ("x = 18", 18),
        ("$3.5$ hours", Fraction(7, 2)),
        (r"\(12\) apples", 12),
        ("**18** for 2 days", 18),
        ("**18** eggs in week 2", 18),
        ("**18** apples. Therefore she has 18 apples.", 18),
        (r"\boxed{378}, which is 27 times 14", 378),
        (r"\boxed{18} apples for 3 kids", 18),
        ("**3** million", 3000000),
        ("18 US dollars", 18),
        ("5 pm", 5),
        ("50¢", 50),
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
        "3 zillion",
        "3 Pi",
        r"3\pi",
        r"3\sqrt{2}",
        r"3\frac{7}{2}",
        "18 or 19",
        "5!",
        "10-20",
        "2 + 3",
        "36/2",
        "2^10",
        "5:30",
        "3,4",
        "101_2",
        "18 at least",
        "18 below",
        "**18** or 17",
        "**18** for 2 days, not 17",
        "**18** for 2 days, then 17",
        r"\boxed{18} no, 17",
        "**18**. The total is 17",
        "17 **18**",
        "$18$ or $17$",
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
        ("5 m", "5 s", False),
        ("5 m", "5 meters", True),
        ("5 m", "5", True),
        ("$18", "18 cents", False),
        ("12 cm", "12 cm^2", False),
        ("20 °C", "20 degrees", True),
        ("20 °C", "20 °F", False),
        ("5m", "5", False),  # may be a product
        ("x = 5", "y = 5", False),
        ("10000000000000000.1", "10000000000000000", False),  # no float in between
        ("¥500", "500 yen", True),
        ("¥500", "$500", False),
        ("[B]", "(b)", True),
        ("[BC]", "BC", False),
        ("5 apples a day", "5 apples a week", False),
        ("B.", "`B`", True),
        ("`18`", "18.0", True),
        ("`a` and `b`", "a` and `b", False),
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


@pytest.mark.parametrize("command", ["text", "boxed", "mathrm"])
def test_a_megabyte_of_wrappers_around_an_answer_costs_nothing(command):
    text = f"\\{command}{{" * 140_000 + "1" + "}" * 140_000
    start = process_time()
    assert not same_answer(text, "1")
    assert as_number(text) is None
    assert process_time() - start < 0.5  # 0.02 s; peeled, each of eight layers costs a pass


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
        ("   ```python\n  x\n  ```", [("python", "x\n")]),  # as far as the fence is indented, and no further
        ("  ```\n x\n\n     y\n```", [("", "x\n\n   y\n")]),
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

    assert work(400_000) / work(50_000) < 30  # linear: 8; quadratic: 64


CALL = {"tool_call": {"name": "python.run", "arguments": {"code": "print(6 * 7)"}}}
CALL_TEXT = json.dumps(CALL)
SPECIFICATION = '{"name": "python.run", "parameters": {"type": "object", "properties": {"code": {"type": "string"}}}}'


def answer(value):
    return {"final_answer": value}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (CALL_TEXT, CALL),
        ("I try {x} and {y: {z}}.\n" + CALL_TEXT, CALL),
        (f"Known is {SPECIFICATION}, so:\n{CALL_TEXT}", CALL),
        (f"Known is {SPECIFICATION[:-1]}, so:\n{CALL_TEXT}", CALL),
        (CALL_TEXT + "\nThat is f({a}) as in {b}, or {}}.", CALL),
        (f"```json\n{json.dumps(CALL, indent=2)}\n```\n", CALL),
        (CALL_TEXT + "}", CALL),
        ("{" + CALL_TEXT, CALL),
        (f"{{note {CALL_TEXT} }}", CALL),
        (CALL_TEXT + '{"final_answer": "7"}', answer("7")),  # the last
        ('{"final_answer": "7"} or {"final_answer": "8"}', answer("8")),
        ('it said "{" and {"final_answer": "}"}', answer("}")),
        ('{"final_answer": "a \\"}\\" b {"}', answer('a "}" b {')),
        ('{"final_answer": "\\\\"}', answer("\\")),
        ('{"final_answer": "\\\\\\""}', answer('\\"')),
        ('{"final_answer": {"a": {"b": [{"c": 1}, {}]}}}', answer({"a": {"b": [{"c": 1}, {}]}})),
        ('{"final_answer": [1, [2, {"a": 3}]]}', answer([1, [2, {"a": 3}]])),
        ('{"final_answer": null}', answer(None)),
        ('{"final_answer": NaN}', answer("NaN")),
        ('{"final_answer": [-Infinity]}', answer(["-Infinity"])),
        ('{"final_answer": 1e999}', answer("1e999")),
        ('{"final_answer": 1, "final_answer": 2}', answer(2)),
        ('{"final_answer": "\\u00e9\\ud83d\\ude00"}', answer("é😀")),
        ('{"final_answer": "\\ud83d"}', answer("?")),  # no tokenizer takes a lone surrogate
        ('{"final_answer": "\ud83d"}', answer("?")),
        ('\ud83d {"final_answer": "é"}', answer("é")),
        ('{"a": 1}', {"a": 1}),
        ('{"final_answer": "7"} is {"a": 7} or {}', answer("7")),
        ('{"name": "add"} is {"a": 7}', {"name": "add"}),
        ('{"a": 1} {"b": 2} {}', {"b": 2}),
        ("{}", None),
        ('{"final_answer": ' + "[" * 60 + "]" * 60 + "}", answer(json.loads("[" * 60 + "]" * 60))),
        ("no object", None),
        ("", None),
        ("{", None),
        ("}{", None),
        ("[1]", None),
        ("print({x for x in {1, 2}})", None),
        ("a = {'b': 1}", None),  # no call and no answer, and not JSON
        ('{"final_answer": ' + "[" * 5000 + "]" * 5000 + "}", None),
        ("x" * 300_000 + CALL_TEXT, CALL),
    ],
)
def test_the_last_json_object(text, found):
    assert last_json_object(text) == (found, False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{'final_answer': '7'}", answer("7")),
        ("{'final_answer': 'it is \"7\"'}", answer('it is "7"')),
        ('{"final_answer": "7",}', answer("7")),
        ('{"final_answer": {"a": 1},}', answer({"a": 1})),
        ('{"final_answer": [{"a": 1}, {"b": 2}]', answer([{"a": 1}, {"b": 2}])),
        ('{"final_answer": 7', answer(7)),
        ('{"final_answer": "7', answer("7")),
        ('{"final_answer": "two\nlines"}', answer("two\nlines")),
        ('{"final_answer": True}', answer(True)),
        (CALL_TEXT[:-1], CALL),
        (CALL_TEXT[:-2], CALL),
        (CALL_TEXT[:-3], CALL),
        (CALL_TEXT[:-2] + ",}}", CALL),
        (CALL_TEXT.replace('"tool_call"', "'tool_call'"), CALL),
        ("{'tool_call': {'name': 'python.run', 'arguments': {\"code\": \"print(6 * 7)\"}}}", CALL),
        (f"Known is {SPECIFICATION}, so:\n{CALL_TEXT[:-1]}", CALL),
        (f"{{see}} ```json\n{CALL_TEXT[:-1]}\n```", CALL),
        ('{"final_answer": "\\ud83d",}', answer("?")),
    ],
)
def test_a_broken_object_is_repaired(text, found):
    assert last_json_object(text) == (found, True)


@pytest.mark.parametrize(
    "code",
    [
        "d = {'a': {}}\nprint(f\"{d['a']!r:>{9}}\")",
        'print("{")',
        "print('}')",
        "x = '''\"'''",
        '"""{"final_answer": 1}"""',
        '{"name": "x", "arguments": {}}',
        '\\\\{\\"}',
        "print('```json {')",
        "\ttab\r\n\0",
        "{" * 500,
    ],
)
@pytest.mark.parametrize("around", [("", ""), ("I set {x} first. ", ""), ("", " Then {y}."), ("```json\n", "\n```")])
def test_code_within_arguments_comes_out_as_it_went_in(code, around):
    call = {"tool_call": {"name": "python.run", "arguments": {"code": code}}}
    for escaped in (True, False):
        text = around[0] + json.dumps(call, ensure_ascii=escaped) + around[1]
        assert last_json_object(text) == (call, False)
    text = f"<tool_call>\n{json.dumps(call['tool_call'])}\n</tool_call>"
    ((name, arguments),) = native_calls(text)[1]
    assert (name, json.loads(arguments)) == ("python.run", {"code": code})


HERMES = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
ADD = ("add", '{"a": 1}')


@pytest.mark.parametrize(
    ("text", "said", "calls"),
    [
        ("no call", "no call", []),
        ("", "", []),
        (HERMES, "", [ADD]),
        (f"First:\n{HERMES}\nDone.", "First:\n\nDone.", [ADD]),
        (HERMES * 2, "", [ADD, ADD]),
        (HERMES.removesuffix("</tool_call>"), "", [ADD]),
        (HERMES.removesuffix("</tool_call>") + HERMES, "", [ADD, ADD]),
        (HERMES.replace("}}", "}"), "", [ADD]),
        (HERMES.replace('"', "'"), "", [ADD]),
        (HERMES.replace('{"a": 1}', '"{\\"a\\": 1}"'), "", [ADD]),  # arguments as text
        (HERMES.replace('{"a": 1}', "null"), "", [("add", "null")]),
        (HERMES.replace(', "arguments": {"a": 1}', ""), "", [("add", "{}")]),
        (HERMES.replace("arguments", "parameters"), "", [ADD]),
        (HERMES.replace('"add"', "5"), "", [("", '{"name": 5, "arguments": {"a": 1}}')]),
        ("<tool_call>add(1)</tool_call>", "", [("", "add(1)")]),
        ("<tool_call></tool_call>", "", [("", "")]),
        ("a<tool_call>", "a", [("", "")]),
        ("a</tool_call>", "a</tool_call>", []),
        ('[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}]', "", [ADD]),
        (
            'So [TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}, "id": "x"}, {"name": "b"}]',
            "So",
            [ADD, ("b", "{}")],
        ),
        ('[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}, {"name": "b"}] and {so}', "", [ADD, ("b", "{}")]),
        ('[TOOL_CALLS]{"name": "add", "arguments": {"a": 1}}', "", [ADD]),
        ('[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}', "", [ADD]),
        ("[TOOL_CALLS][1]", "", [("", "[1]")]),
        ("[TOOL_CALLS]", "", [("", "")]),
        ('{"name": "add", "parameters": {"a": 1}}', "", [ADD]),
        ('<|python_tag|>{"type": "function", "name": "add", "parameters": {"a": 1}}\n', "", [ADD]),
        ('{"name": "Ada"}', '{"name": "Ada"}', []),  # an answer that is JSON
        ('It is {"name": "add", "parameters": {"a": 1}}', 'It is {"name": "add", "parameters": {"a": 1}}', []),
    ],
)
def test_native_calls(text, said, calls):
    assert native_calls(text) == (said, calls)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("answer", ("", "answer", True)),
        ("", ("", "", True)),
        ("<think>why</think>answer", ("why", "answer", True)),
        ("\n <think>\nwhy\n</think>\n\nanswer", ("\nwhy\n", "\n\nanswer", True)),
        ("why</think>answer", ("why", "answer", True)),  # the prompt opened it
        ("<think></think>answer", ("", "answer", True)),
        ("</think>answer", ("", "answer", True)),
        ("<think>why", ("why", "", False)),
        ("<think>", ("", "", False)),
        ("<think>a</think>b<think>c</think>d", ("a", "b<think>c</think>d", True)),
        ("say <think>a</think>b", ("", "say <think>a</think>b", True)),
        ("<think>a<think>b</think>c", ("a<think>b", "c", True)),
        (f"<think>{HERMES}</think>4", (HERMES, "4", True)),
        (f"<think>{CALL_TEXT}", (CALL_TEXT, "", False)),
    ],
)
def test_reasoning_is_split_off(text, parts):
    assert split_reasoning(text) == parts
    assert split_reasoning(text.replace("<think>", "[T]").replace("</think>", "[/T]"), "[T]", "[/T]") == tuple(
        part.replace("<think>", "[T]").replace("</think>", "[/T]") if isinstance(part, str) else part for part in parts
    )


MARKS = [
    "<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|end|>", "<｜end▁of▁sentence｜>", "<|tool|>", "</tool_call>",
    "<tool_call>", "</tool_response>", "<think>", "</think>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[/TOOL_RESULTS]",
    "<start_of_turn>", "<end_of_turn>", "</s>", "<s>", "<bos>", "<eos>", "<pad>", "<unk>", "<<SYS>>", "<</SYS>>",
    "<|IM_END|>", "<|python_tag|>", "<|endoftext|>", "[|endofturn|]", "<BOS_TOKEN>", "<EOS_TOKEN>", "<seed:bos>",
    "<minimax:tool_call>", "]~b]", "[e~[", "]~!b[", "[BOS]", "[EOS]", "[EOT]", "<SPECIAL_12>", "<TOOLCALL>",
    "<AVAILABLE_TOOLS>", "<TOOLRESPONSE>", "<extra_id_1>", "<reserved_106>", "<eoh>", "<eoa>", "<longcat_tool_call>",
    "<fim_prefix>", "<fim-suffix>", "<file_sep>", "<repo_name>", "<start_function_call>", "<end_function_response>",
    "<escape>", "[IMG_BREAK]", "[PREFIX]", "[SUFFIX]", "[MODEL_SETTINGS]", "[BEGIN_AUDIO]", "<endoftext>", "<eot_id>",
    "<im_end>", "<begin_of_text>", "[unused1]", "<unused12>", "<cls>", "<sep>", "<mask>", "[MASK]", "[gMASK]",
    "<turn|>",
]  # fmt: skip


def test_marks_of_chat_templates_are_escaped():
    for mark in MARKS:
        escaped = without_special_tokens(f"a{mark}b")
        assert mark not in escaped
        entity = {"<": "&lt;", "[": "&#91;", "]": "&#93;"}[mark[0]]
        assert escaped == f"a{entity}{mark[1:]}b" or mark.startswith("<<")
        assert without_special_tokens(escaped) == escaped
        for other in MARKS:  # nor does what is left of one make another
            mixed = without_special_tokens(mark[:3] + other + mark[3:])
            assert not any(mark in mixed for mark in MARKS), (mark, other)


OTHER = [
    "a < b", "x[0] <= 1", "[1, 2]", "List<int>", "a<b>c</b>", "<div>", "i <- 1", "", "<", "List<User>", "vector<T>",
    "<summary><span><section><strong><end><answer>", "x[mask] + d[prefix] - a[sep]", "[INSTALL] [ARGS...]", "[~]",
    "a[i]~b[j]", "[|x|", "<special>", "<unused>", "<table of_end>", "[[1], [2]]",
]  # fmt: skip


@pytest.mark.parametrize("text", OTHER)
def test_other_text_stays(text):
    assert without_special_tokens(text) == text


def test_no_text_makes_the_readers_of_replies_raise():
    draw = random.Random(0)
    pieces = [
        *'{}[]"\'\\,:<>|`\n\0 1a', '{"', '"}', '": ', '{"name": ', '{"tool_call": ', '{"final_answer": ',
        '"arguments": ',
        "<tool_call>", "</tool_call>", "<think>", "</think>", "[TOOL_CALLS]", "[/INST]", "<|im_end|>", "\ud800",
        "\\ud800",
        "null", "NaN", "1e999", "```json\n", "{'name': 'x'", CALL_TEXT, HERMES, "é", "\u2028", "//", "/*", "#",
    ]  # fmt: skip
    for _ in range(3000):
        text = "".join(draw.choices(pieces, k=draw.randrange(30)))
        found, repaired = last_json_object(text)
        assert found is None or json.loads(json.dumps(found, allow_nan=False)) == found
        assert found is not None or not repaired
        calls = native_calls(text)[1]
        assert all(isinstance(part, str) for call in calls for part in call)
        _, rest, ended = split_reasoning(text)
        assert ended or not rest
        escaped = without_special_tokens(text)
        assert not any(mark in escaped for mark in MARKS)


REPLY_HOSTILE = {
    "braces": "{", "closing braces": "}", "both": "{}", "quotes": '"', "backslashes": "\\", "escaped quotes": '\\"',
    "objects": '{"a":1}', "broken objects": '{"a":}', "calls": HERMES, "opened calls": "<tool_call>",
    "thoughts": "<think>",
    "closed thoughts": "</think>", "marks": "<|im_end|>", "half marks": "<|", "starts": '{"name":', "brackets": "[",
    "Mistral": "[TOOL_CALLS]", "surrogates": "\ud800", "specifications": SPECIFICATION, "pairs": '"a":{',
    "strings": '{"', "letters": "x", "angles": "<", "slashes": "</", "functions": "<function", "ends": "<end_of_",
    "prefixes": "<aaaaaaaaaaaaaaaaaaa_", "tildes": "]~", "bars": "[|x", "reserved": "<reserved_1111111",
}  # fmt: skip


@pytest.mark.parametrize("piece", REPLY_HOSTILE.values(), ids=REPLY_HOSTILE)
def test_the_work_on_replies_grows_with_the_length(piece):
    def work(length):
        """Seconds of CPU: the least of two."""
        text, times = piece * (length // len(piece)), []
        for _ in range(2):
            start = process_time()
            for each in (text, CALL_TEXT + text, CALL_TEXT[:-1] + text, text + CALL_TEXT, "[TOOL_CALLS]" + text):
                last_json_object(each), native_calls(each), split_reasoning(each), without_special_tokens(each)
            times.append(process_time() - start)
        return max(min(times), 0.02)  # so that noise on a very short time is no growth

    assert work(100_000) / work(25_000) < 10  # linear: 4; quadratic: 16


def test_what_is_repaired_is_bounded():
    start = process_time()
    for piece in ("{", "[", '{"', '["', '{"a":', "{'a':[", '"', "'", ",", "\\", "[{", "(", "/*", "#", "`"):
        for length in (2_000, 19_000):
            last_json_object('{"final_answer": ' + piece * (length // len(piece)))
    assert process_time() - start < 6  # 1 s; without a bound on brackets two of these take 6 s each


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("<think>a</think>b", None),
        ("\n<think>a</think>b", "<think>a</think>b"),
        ("<think></think>b", None),
        ("a</think>b", None),
        ("</think>b", None),
        ("b", None),
        ("\x1c<think>a</think>b", None),
        ("<think>a", None),
    ],
)
def test_no_tag_is_put_back_that_was_not_there(text, written):
    reasoning, answer, ended = split_reasoning(text)
    reply = Reply(answer, reasoning, reasoning_ended=ended, opening=opening_of(text, answer))
    assert reply.written("<think>", "</think>") == (written or text)
    assert Reply.from_dict(reply.as_dict()) == reply


def test_reasoning_that_a_server_tells_apart_is_written_in_tags():
    assert Reply("b", "a").written("<think>", "</think>") == "<think>a</think>b"

r"""The declared format of a text, and the one place in it where its answer may stand: one check for all verdicts.

    free          anything; the extractor finds the answer, wherever it looks for it
    answer        one <answer>...</answer> and nothing after it; before it anything, closed <think> blocks included
    think_answer  one <think>...</think>, one <answer>...</answer>, blanks around them, and nothing else
    boxed         one \boxed{} outside of all <think> blocks, which closes the text

An answer that stands anywhere else is no answer: a model that is paid wherever it writes the right number learns to
drop what it was asked to write around it. Tags are matched case-sensitively, blanks are spaces, tabs and line ends; a
first `</think>` without a partner is allowed in `answer` and `boxed`, because a chat template may open the block.

Every function takes any string, never raises, and runs in linear time.
"""

import re
from typing import NamedTuple

from judge.parsing import closing_brace

BLANKS = " \t\r\n"  # for strip(), which by default removes control characters too
_THINK = re.compile(r"<(/?)think>")
_BOX = re.compile(r"\\boxed[ \t\r\n]*\{")
# What may follow a box: the end of its formula or sentence.
_CLOSING = re.compile(r"(?:[ \t\r\n$.*]|\\[\])]|\\end\{(?!comment\})[a-z]{1,20}\*?\})*")


class AnswerPlace(NamedTuple):
    """The content of the declared place, or why there is no such place."""

    inside: str
    problem: str = ""  # in a few words, "" if the text is well-formed


def format_problem(format: str, text: str) -> str:
    """Returns in a few words what keeps `text` from having `format`; "" if it is well-formed."""
    return answer_place(format, text).problem


def answer_place(format: str, text: str) -> AnswerPlace:
    """Returns the place of the answer in a text of `format`, one of FORMATS; in a free text, all of it."""
    return PLACES[format](text) if format in PLACES else AnswerPlace(text)


def _think_answer(text: str) -> AnswerPlace:
    problem = block_problem(text, "think") or block_problem(text, "answer")
    if problem:
        return AnswerPlace("", problem)
    before, _, rest = text.partition("<think>")
    _, _, rest = rest.partition("</think>")
    between, tag, rest = rest.partition("<answer>")
    inside, closing, after = rest.partition("</answer>")
    if not tag or not closing:
        return AnswerPlace("", "<answer> within or before the <think> block")
    for part, where in (
        (before, "before <think>"),
        (between, "between </think> and <answer>"),
        (after, "after </answer>"),
    ):
        if part.strip(BLANKS):
            return AnswerPlace("", f"text {where}")
    return _filled(inside, "<answer> block")


def _answer(text: str) -> AnswerPlace:
    problem = block_problem(text, "answer") or _thinking_problem(text)
    if problem:
        return AnswerPlace("", problem)
    rest = text.partition("<answer>")[2]
    inside, _, after = rest.partition("</answer>")
    if _THINK.search(rest):
        return AnswerPlace("", "<answer> within or before a <think> block")
    if after.strip(BLANKS):
        return AnswerPlace("", "text after </answer>")
    return _filled(inside, "<answer> block")


def _boxed(text: str) -> AnswerPlace:
    problem = _thinking_problem(text)
    if problem:
        return AnswerPlace("", problem)
    outside, end = [], 0
    for tag in _THINK.finditer(text):
        if not tag[1]:
            outside.append(text[end : tag.start()])
        end = tag.end()
    outside.append(text[end:])
    boxes = sum(part.count(r"\boxed") for part in outside)
    if boxes != 1:
        return AnswerPlace("", r"several \boxed{}" if boxes else r"no \boxed{}")
    if r"\boxed" not in outside[-1]:
        return AnswerPlace("", r"text after \boxed{}")
    box = _BOX.search(outside[-1])
    if not box:
        return AnswerPlace("", r"\boxed without {}")
    if re.split("[\r\n]", outside[-1][: box.start()])[-1].lstrip(BLANKS).startswith("%"):
        return AnswerPlace("", r"\boxed{} in a comment")
    close = closing_brace(outside[-1], box.end())
    if close < 0:
        return AnswerPlace("", r"\boxed{} is not closed")
    if not _CLOSING.fullmatch(outside[-1], close + 1):
        return AnswerPlace("", r"text after \boxed{}")
    return _filled(outside[-1][box.end() : close], r"\boxed{}")


def _filled(inside: str, name: str) -> AnswerPlace:
    inside = inside.strip(BLANKS)
    return AnswerPlace(inside) if inside else AnswerPlace("", f"empty {name}")


def block_problem(text: str, tag: str) -> str:
    """Returns the reason why `text` has not exactly one block of a tag, "" if it has."""
    opening, closing = text.find(f"<{tag}>"), text.find(f"</{tag}>")
    if opening < 0 and closing < 0:
        return f"no <{tag}> block"
    if opening < 0 or closing < 0:
        return f"<{tag}> is never {'opened' if opening < 0 else 'closed'}"
    if text.count(f"<{tag}>") > 1 or text.count(f"</{tag}>") > 1:
        return f"several <{tag}> or </{tag}>"
    return "" if opening < closing else f"</{tag}> before <{tag}>"


def _thinking_problem(text: str) -> str:
    """Returns the problem with the <think> blocks of `text`; "" if each is closed before the next opens."""
    closes = [bool(tag[1]) for tag in _THINK.finditer(text)]
    if closes and closes[0]:  # the prompt opened this block
        closes = closes[1:]
    if any(closes[::2]) or not all(closes[1::2]):
        return "crossed <think> tags"
    return "<think> is never closed" if len(closes) % 2 else ""


PLACES = {"answer": _answer, "think_answer": _think_answer, "boxed": _boxed}  # finds the place; a free text has none
FORMATS = ("free", *PLACES)

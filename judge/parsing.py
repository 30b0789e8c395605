r"""Text in, answer out: tags, `\boxed{}`, wrappers, numbers, code blocks, and what makes two answers the same.

One rule for tags, for rewards, extractors and evaluation alike: `<think>` and `<answer>` are matched case-sensitively;
a block runs from a closing tag back to the nearest opening tag; the LAST closed `<answer>` block is the answer.
`without_thinking`, which code is read through, keeps that rule for blocks, but not the one for letter case.

Every function takes any string (lone surrogates, NUL, a megabyte of braces), never raises, and runs in linear time.
"""

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from judge.quantities import TYPOGRAPHIC, Quantity, marked_number, numerals, read_quantity

# An escaped brace is text; a doubled backslash before `boxed` is what models write that learned from JSON.
_BRACES = re.compile(r"\\{1,2}boxed[ \t\r\n]*\{|\\.|[{}]", re.DOTALL)
_SECOND_THOUGHT = re.compile(r"[.;:?!]\s|\b(?:no|then)\b", re.IGNORECASE)  # hedges are refused by marked_number
_DELIMITERS = (("$$", "$$"), ("$", "$"), (r"\[", r"\]"), (r"\(", r"\)"), ("**", "**"))
_COMMAND = re.compile(r"\\{1,2}(?:boxed|text|textbf|textrm|mathrm|mathbf|mbox)[ \t\r\n]*\{")
_MOST_LAYERS = 8  # real answers nest two or three; a bound keeps hostile nesting linear

_LONGEST_WRAPPED = 10_000  # characters; longer texts are no answers, and eight layers of a megabyte take seconds

# What may stand before the number that an answer states: `x =`, `AB =`, `f(2) =`, `\theta_1 =`.
_NAME = re.compile(r"[{\s]*\\?[A-Za-z][A-Za-z\\{}'\s]*(?:\([\w\s,.-]*\))?\s*")
_SUBSCRIPT = re.compile(r"_(?:\w|\{\w{1,9}\})|\^\{-1\}(?=\()")
_NO_NAME = re.compile(
    r"(?<![\\A-Za-z])[A-Za-z]{4,}|\b(?:non?|not|or|nor)\b|\\(?:n|lnot|[gl](?:eq?|t)\b|approx|sim|pm|mp)"
)
_FORMULA_FIRST = re.compile(r"\A(?:\$([^$]{1,100})\$|\\\(([^\\]{1,100})\\\))(?=\s+[A-Za-z][^$\\]*\Z)")  # $3.5$ hours
_LONGEST_MARKED = 500  # characters
_LONGEST_NAME = 40  # characters
_LONGEST_COMPOSED = 1000  # characters
_CHOICE = re.compile(r"\A(?:\(?([A-Za-z])\)|\[([A-Za-z])\])\Z")
_TICKED = re.compile(r"\A`([^`\\]*)`\Z")
_LOOSE = re.compile(r" (?=[!-/:-@[-^`{-~])|(?<=[!-/:-@[-^`{-~]) (?<!, (?=\d{3}(?!\d)))")  # 1, 234 is not 1,234
_QUOTED = re.compile(r"\A'([^']*)'\Z")
_STRAIGHT = str.maketrans("‘’“”", "''\"\"")
FULL_STOP = re.compile(r"(?<=[\w)\]}$])\.\Z")

_PLAIN = frozenset(map(chr, range(32, 127))) | frozenset("\t\n\r") | TYPOGRAPHIC
_BLANKS = " \t\r\n"  # for lstrip(), which by default removes control characters too

_THINKING = re.compile(r"<think>[^<]*+(?:<(?!/?think>)[^<]*+)*+</think>", re.IGNORECASE | re.ASCII)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)  # nothing after a greedy part can fail: no backtracking
_PYTHON = ("python", "py", "python3", "py3")
_FINAL_ANSWER = re.compile(r"""final answer:|"(?-i:final_answer)"|'(?-i:final_answer)'""", re.IGNORECASE | re.ASCII)


# What chat formats write between messages: names after <, </, << or <</, in any case; names in brackets, in this
# case; <|anything|>; [|anything|]; and ]~b], ]~!b[, [e~[ of MiniMax.
_TAGS = r"""
    s bos eos pad unk mask cls sep sys sop eop eoh eoa eot eom suf mid escape image think thinking
    (bos|eos|pad|unk|mask|cls|sep)_token  (eot|eom)_id  im_(start|end|sep)  (begin|start|end)_?of_?\w+
    tools? tool_\w+ tool_?calls? tool_?responses? tool_?results? available_tools \w{1,20}[:_]tool_?\w+
    function\w* (start|end)_function_\w+ parameter\w* arg_\w+ invoke (seed|minimax|longcat|dsml)[:_]\w+
    fim[_-]\w+ file_sep repo_?name gh_stars (issue|jupyter|commit)_\w+
    (unused|special|reserved|extra_id|ctrl|control)_?\d+
"""
_BRACKETS = r"""
    INST SYSTEM_PROMPT MODEL_SETTINGS AVAILABLE_TOOLS TOOL_\w+ ARGS CALL_ID THINK [gs]?MASK CLS SEP PAD UNK
    BOS EOS EOT IMG IMG_\w+ AUDIO BEGIN_\w+ PREFIX SUFFIX MIDDLE CONTROL_\d+ unused\d+
"""
_SPECIAL_TOKEN = re.compile(
    rf"<(?=[|｜]|[^<>|｜\n]{{1,60}}[|｜]>|<?/?(?i:{'|'.join(_TAGS.split())})\b)"
    rf"|\[(?=/?(?:{'|'.join(_BRACKETS.split())})\]|\|[^\[\]|\n]{{1,60}}\|\]|e~\[)"
    r"|\](?=~b\]|~!b\[)"
)


class CodeBlock(NamedTuple):
    """A fenced block; `text[start:end]` is all of it, both fences included, without the newline of the last line."""

    info: str  # first word after the opening fence, in lower case; "" without one
    code: str  # unchanged, up to and including its last newline
    start: int
    end: int


def tag_blocks(text: str, tag: str) -> list[str]:
    """Returns the contents of all closed `<tag>...</tag>` blocks, in order, blanks kept."""
    pieces = text.split(f"</{tag}>")[:-1]
    parts = [piece.rpartition(f"<{tag}>") for piece in pieces]
    return [inside for _, opening, inside in parts if opening]


def last_boxed(text: str) -> str:
    r"""Returns the content of the `\boxed{}` that closes last, braces balanced; "" if no box is closed."""
    if "boxed" not in text:
        return ""
    stack: list[int | None] = []  # start of the content for a box, None for any other brace
    last = slice(0, 0)
    for token in _BRACES.finditer(text):
        if token[0] == "}":
            start = stack.pop() if stack else None
            if start is not None:
                last = slice(start, token.start())
        elif token[0].endswith("{") and token[0] != r"\{":
            stack.append(None if token[0] == "{" else token.end())
    return text[last]


def peel(text: str) -> str:
    r"""Removes what encloses all of `text`: `$ $`, `\[ \]`, `\( \)`, `** **`, `\boxed{}`, `\text{}` and blanks.

    `$a$ and $b$` and `\text{a} + \text{b}` and the currency sign in `$18` stay as they are. Removes at most 8
    layers; from texts of more than 10,000 characters, only the blanks.
    """
    if len(text) > _LONGEST_WRAPPED:
        return text.strip()
    for _ in range(_MOST_LAYERS):
        inside = _peel_layer(text)
        if inside == text:
            break
        text = inside
    return text


def _peel_layer(text: str) -> str:
    text = text.strip()
    for opening, closing in _DELIMITERS:
        inside = text[len(opening) : -len(closing)]
        if text == opening + inside + closing and opening not in inside.replace(r"\$", ""):
            return inside.strip()
    command = _COMMAND.match(text)
    if command and closing_brace(text, command.end()) == len(text) - 1:
        return text[command.end() : -1].strip()
    return text


def closing_brace(text: str, start: int) -> int:
    """Returns the index of the brace that closes the one before `start`, or -1."""
    depth = 1
    for token in _BRACES.finditer(text, start):
        if token[0] == "}":
            depth -= 1
        elif token[0].endswith("{") and token[0] != r"\{":
            depth += 1
        if depth == 0:
            return token.start()
    return -1


def quantity(text: str) -> Quantity | None:
    r"""Reads the one number that `text` states, and its unit: within the wrappers of `peel`, bare, named (`x = 5`,
    `5 = x`), or marked among words, as in `**18** for 2 days` and `\boxed{18} apples for 3 kids`. Else None.

    `judge.quantities` says what is read as a number, and what is not. A name is a symbol, or up to three letters.
    """
    text = text.strip()
    if len(text) > _LONGEST_WRAPPED or text.startswith("~") or text.endswith(".."):
        return None
    text = _FORMULA_FIRST.sub(r"\1\2", peel(text.removesuffix(".")), count=1)
    name, equals, rest = text.partition("=")
    if re.fullmatch(r"\s*[A-DF-HJ-Za-df-hj-z]\s*", rest) and not is_name(name):
        name, rest = rest, name  # 7 = x
    if not (equals and is_name(name)):
        return read_quantity(text) or _marked_quantity(text)
    value = read_quantity(peel(rest))
    return value and value._replace(name="".join(name.lower().split()))


def _marked_quantity(text: str) -> Quantity | None:
    marked = marked_number(text) if len(text) <= _LONGEST_MARKED else None
    if not marked or marked.start > 0:
        return None
    others = [n for n in numerals(text) if n.start >= marked.end and n.text != marked.text]
    if any(_SECOND_THOUGHT.search(text[marked.end : other.start]) for other in others):
        return None  # **18** for 2 days, but not **18**, then 19
    return read_quantity(text.replace("**", "")) or read_quantity(marked.text)


def as_number(text: str) -> Fraction | None:
    """Returns the exact number that `quantity` reads, or None."""
    value = quantity(text)
    return value.number if value else None


def is_name(text: str) -> bool:
    """True if `text`, left of an equals sign, is a name for the right side: `x`, `f(2)`, `AB`; not `17`."""
    bare = _SUBSCRIPT.sub("", text[: _LONGEST_NAME + 1])
    return len(text) <= _LONGEST_NAME and bool(_NAME.fullmatch(bare)) and not _NO_NAME.search(bare)


def special_characters(text: str) -> set[str]:
    """Returns the characters of `text` that a plain answer does not need, in lower case.

    Plain characters are ASCII without its control characters, and the signs of typography and mathematics that replace
    them. Others may be invisible, reverse the text, or look like plain ones: zero-width and bidirectional marks,
    full-width digits, a Cyrillic a.
    """
    signs = {character for character in set(text) if _composed(character) != character}  # of kelvins, not K
    return {character.lower() for character in (signs | set(_composed(text))) - _PLAIN}


def _composed(text: str) -> str:
    """Returns accents as parts of their letters; a long text unchanged, for sorting its accents may be quadratic."""
    return unicodedata.normalize("NFC", text) if len(text) <= _LONGEST_COMPOSED else text


def same_answer(a: str, b: str) -> bool:
    """True if two extracted answers agree: neither is blank, and they are equal as numbers, or else up to case.

    Two empty extractions never match, nor do two of which one has special characters that the other lacks. Ignored are
    wrappers that `peel` removes, backticks, quotes (curly or straight) and the full stop of a text, the brackets of
    `(B)` and `[B]`, blanks repeated or next to a sign, and a unit that only one names: 18 dollars are 18, not 18 cents.
    """
    if special_characters(a) != special_characters(b):
        return False
    a, b = (_TICKED.sub(r"\1", peel(text)) for text in (a, b))
    if not a or not b:
        return False
    first, second = quantity(a), quantity(b)
    if first is not None and second is not None:
        return a == b or first.same(second)  # 18 MW are not 18 mW
    if first is None and second is None:
        a, b = map(_plain_text, (a, b))
    return bool(a) and a.lower() == b.lower()


def _plain_text(text: str) -> str:
    text = " ".join(_composed(text).translate(_STRAIGHT).split())
    text = _QUOTED.sub(r"\1", _LOOSE.sub("", text.strip('"')))
    return _CHOICE.sub(r"\1\2", FULL_STOP.sub("", text))


@lru_cache(maxsize=1000)  # a group repeats its answers, and rewards, metrics and evaluations ask for the same pair
def unchanged(after: str, before: str) -> bool:
    """True if two extracted answers are one in whatever spelling, or both blank."""
    return peel(after) == peel(before) or same_answer(after, before)


def without_thinking(text: str) -> str:
    """Removes closed `<think>...</think>` blocks from `text`; an unpaired tag and what follows it stay.

    As everywhere, a block runs from a closing tag back to the nearest opening one, but here case is ignored: a draft in
    `<Think>` is no submission, although the rewards for tags insist on the spelling. Blocks are removed before fences
    are looked for, so a pair of tags inside one program is cut out too.
    """
    return _THINKING.sub("", text)


def writable(text: str) -> str:
    """Replaces lone surrogates, which no tokenizer takes, with "?"."""
    return text.encode("utf-8", "replace").decode()


def without_special_tokens(text: str) -> str:
    """Escapes the special tokens of chat templates in `text`, so that no web page and no tool output can end a turn.

    The first character of `<|im_end|>` and its like, `<tool_call>`, `<think>`, `[INST]`, `<start_of_turn>`, `</s>` and
    others becomes an HTML entity.
    """
    return _SPECIAL_TOKEN.sub(lambda match: {"<": "&lt;", "[": "&#91;", "]": "&#93;"}[match[0]], text)


def split_reasoning(text: str, opening: str = "<think>", closing: str = "</think>") -> tuple[str, str, bool]:
    """Returns the reasoning and the answer of a reply, and whether the reasoning ended.

    Reasoning is the beginning of a reply, up to the first closing tag; the opening tag may be in the prompt. A reply
    that opens its reasoning and does not close it has no answer.
    """
    head, closed, answer = text.partition(closing)
    stripped = head.lstrip(_BLANKS)
    starts = stripped.startswith(opening)
    if starts or (closed and opening not in head):
        return stripped.removeprefix(opening), answer, bool(closed)
    return "", text, True


def opening_of(text: str, answer: str, opening: str = "<think>") -> str | None:
    """Returns how the reasoning found by `split_reasoning` opens: with the tag, with "", or None if there is none."""
    if answer == text:
        return None
    return opening if text.lstrip(_BLANKS).startswith(opening) else ""


def code_blocks(text: str) -> list[CodeBlock]:
    """Returns the closed fenced blocks, in order, by CommonMark's rules for fences outside lists and quotes.

    A fence is a line of at most 3 spaces and at least 3 backticks or tildes; it is closed by at least as many of the
    same, followed only by blanks. Everything between is content, including fences that cannot close it; its lines lose
    up to as many blanks as the opening fence has before it. After an opening backtick fence no further backtick may
    follow on its line. An unclosed fence is not a block, and hides what follows. Lines end in a newline; a carriage
    return before it is a blank.
    """
    blocks, opening, fence = [], None, ""  # `fence` is kept: slicing a long one for each line is quadratic
    for line in _FENCE.finditer(text):
        run, rest = line[1], line[2]
        if opening is None:
            if _opens(line):
                opening, fence = line, run
        elif run.startswith(fence) and not rest.strip(" \t\r"):
            words = opening[2].split(maxsplit=1)
            blanks = rf"^ {{0,{opening.start(1) - opening.start()}}}"
            code = re.sub(blanks, "", text[opening.end() + 1 : line.start()], flags=re.MULTILINE)
            blocks.append(CodeBlock(words[0].lower() if words else "", code, opening.start(), line.end()))
            opening = None
    return blocks


def _opens(line: re.Match) -> bool:
    return line[1][0] == "~" or "`" not in line[2]


def last_code(text: str) -> str:
    """Returns the program that `text` submits: the last block marked python, py, python3 or py3, or unmarked.

    Thinking is removed first. A text without any fence is a program as a whole. "" if there are fences but no such
    block: an unclosed one, as in truncated outputs, is never run.
    """
    text = without_thinking(text)
    if not any(map(_opens, _FENCE.finditer(text))):
        return text
    return next((block.code for block in reversed(code_blocks(text)) if block.info in ("", *_PYTHON)), "")


def well_formed_code(text: str, needs_marker: bool) -> str | None:
    """Returns the code of an output in the required format: without thinking, one closed block, marked as Python.

    With `needs_marker`, "final answer:" in any case, or `final_answer` in quotes, must follow the block. None if the
    output has another format.
    """
    text = without_thinking(text)
    blocks = code_blocks(text)
    if len(blocks) != 1 or blocks[0].info not in _PYTHON:
        return None
    if needs_marker and not _FINAL_ANSWER.search(text, blocks[0].end):
        return None
    return blocks[0].code

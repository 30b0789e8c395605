"""Reads a Modelfile by Ollama's rules, and fills its template as Go's text/template does, where ours use the language.

https://docs.ollama.com/modelfile: an instruction a line, its name in any case; `#` begins a comment. A value may stand
between `"` or triple quotes, inside which nothing is escaped and line ends are kept. Ollama drops characters that
cannot be printed, except spaces, tabs and line ends.
"""

import re

INSTRUCTIONS = ("from", "template", "parameter", "system", "adapter", "license", "message")
QUOTES = ('"""', '"')


def instructions(text):
    """The instructions as (name, value), a parameter as ("parameter NAME", value). Raises ValueError."""
    lines, read = iter(text.split("\n")), []
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, value = line.strip().partition(" ")
        name = name.lower()
        if name not in INSTRUCTIONS:
            raise ValueError(f"no instruction: {line}")
        if name == "parameter":
            key, _, value = value.strip().partition(" ")
            name = f"parameter {key}"
        while (plain := unquoted(value.strip())) is None:
            following = next(lines, None)
            if following is None:
                raise ValueError(f"{name}: a quote is open at the end")
            value += "\n" + following
        read.append((name, "".join(letter for letter in plain if letter.isprintable() or letter in "\n\t")))
    if "from" not in dict(read):
        raise ValueError("no FROM")
    return read


def unquoted(value):
    """The value without its quotes; None while they are open."""
    for quote in QUOTES:
        if value.startswith(quote):
            is_closed = value.endswith(quote) and len(value) >= 2 * len(quote)
            return value[len(quote) : -len(quote)] if is_closed else None
    return value


def filled(template, messages):
    """The text of a template of `range`, `if`, `else if`, `else`, `end`, `eq` and fields. Raises ValueError."""
    parts = re.split(r"\{\{(.*?)\}\}", template, flags=re.DOTALL)  # text, action, text, ...
    tokens = [(part.strip() if index % 2 else part, bool(index % 2)) for index, part in enumerate(parts)]
    chat = [{"Role": message["role"], "Content": message["content"]} for message in messages]
    text, position = _block(tokens, 0, {"Messages": chat}, True)
    if position < len(tokens):
        raise ValueError(f"no block begins before {tokens[position][0]}")
    return text


def _block(tokens, position, dot, is_on):
    """The text up to an `else` or `end` of an outer block, and where that is; "" unless `is_on`."""
    written = []
    while position < len(tokens):
        word, is_action = tokens[position]
        if is_action and (word == "end" or word.startswith("else")):
            break
        position += 1
        if not is_action:
            written.append(word)
        elif word.startswith("range "):
            begin, items = position, _value(word[6:], dot) if is_on else []
            _, position = _block(tokens, begin, dot, False)
            written += [_block(tokens, begin, item, True)[0] for item in items]
            position = _after(tokens, position, "end")
        elif word.startswith("if "):
            is_open, word = is_on, f"else {word}"
            while word.startswith("else"):
                holds = is_open and (word == "else" or bool(_value(word[8:], dot)))
                text, position = _block(tokens, position, dot, holds)
                written.append(text)
                is_open &= not holds
                word = tokens[position][0] if position < len(tokens) else "nothing"
                position += word.startswith("else")
            position = _after(tokens, position, "end")
        elif is_on:
            written.append(_value(word, dot))
    return "".join(written) if is_on else "", position


def _after(tokens, position, word):
    if position >= len(tokens) or tokens[position] != (word, True):
        raise ValueError(f"no {word}")
    return position + 1


def _value(expression, dot):
    if match := re.fullmatch(r'eq (\.\w+) "([^"]*)"', expression):
        return _value(match[1], dot) == match[2]
    if not re.fullmatch(r"\.\w+", expression) or expression[1:] not in dot:
        raise ValueError(f"no field: {expression}")
    return dot[expression[1:]]

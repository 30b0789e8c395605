"""Tool calls and other JSON in what a model wrote, broken or not.

Every function takes any string, and runs in linear time; only `read_json` raises.
"""

import json
import re
from math import isfinite
from typing import Any

_JSON_MARK = re.compile(r'"\\*|[{}]')  # in text that is read backwards: a quote, and the backslashes before it
_OBJECT_START = re.compile(r"""\{\s*["'](?:tool_call|final_answer|name)["']""")
_JSON_PART = re.compile(r'\\.|["{}]', re.DOTALL)  # in text that is read forwards
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_DEEPEST = 64  # levels of JSON: deeper values can be read, but not written again everywhere
_MOST_BRACES = 8  # closing braces that are tried as the end: each costs one pass
_LONGEST_REPAIR = 20_000  # characters
_MOST_BRACKETS = 500  # opening brackets in a repair, whose time grows with the square of their number
_LONGEST_TEXT = 200_000  # characters at the end of a message: more than any honest call has
_CALL_BLOCK = re.compile(r"<tool_call>(.*?)(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)


def last_json_object(text: str) -> tuple[dict | None, bool]:
    """Returns the last `{...}` of a text that is a JSON object, and whether it had to be repaired.

    Objects with "tool_call", "final_answer" or "name" take precedence; empty ones do not count. Parsing is strict
    first, from the last closing brace backwards; braces in strings and in prose do not matter. If that finds nothing,
    missing or wrong quotes and brackets are repaired, in the last 20,000 characters, from the first call or answer on.
    (None, False) if there is no object.
    """
    text = text[-_LONGEST_TEXT:]
    end, fallback = len(text), None
    for _ in range(_MOST_BRACES):
        end = text.rfind("}", 0, end)
        if end < 0:
            break
        start = _opening_brace(text, end)
        candidate = _strict_object(text[start : end + 1]) if start >= 0 else None
        if not candidate:
            continue
        if "tool_call" in candidate or "final_answer" in candidate:
            return candidate, False
        if _is_within_another(text, start) and (whole := _repaired_object(text)[0]):
            return whole, True
        if "name" in candidate:
            return candidate, False
        end, fallback = start, fallback or candidate
    return (fallback, False) if fallback else _repaired_object(text)


def read_json(text: str) -> Any:
    """Parses JSON into data that can be written again anywhere: lone surrogates become "?", NaN and infinities text.

    Raises ValueError if it cannot be read, or has more than 64 levels.
    """
    try:
        value = json.loads(
            text, parse_constant=str, parse_float=lambda number: float(number) if isfinite(float(number)) else number
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [value]
    for _ in range(_DEEPEST):
        containers = [item for item in level if isinstance(item, dict | list)]
        level = [inner for item in containers for inner in (item.values() if isinstance(item, dict) else item)]
    if level:
        raise ValueError(f"nested more than {_DEEPEST} levels deep")
    if _SURROGATE.search(text):
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value


def native_calls(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Returns the text of a message without its tool calls, and the calls as (name, arguments as JSON text).

    Reads the formats of chat templates: `<tool_call>{"name", "arguments"}</tool_call>` (Hermes, Qwen),
    `[TOOL_CALLS][{...}]` (Mistral), and a message that is one object with "name" and "parameters" (Llama 3). A block
    that is not a call has the name "".
    """
    if "<tool_call>" in text:
        calls = [_call(last_json_object(block)[0], block) for block in _CALL_BLOCK.findall(text)]
        return _CALL_BLOCK.sub("", text).strip(), calls
    before, marker, rest = text.partition("[TOOL_CALLS]")
    if marker:
        try:
            _, end = json.JSONDecoder().raw_decode(rest.lstrip())  # something may follow it
            parsed = read_json(rest.lstrip()[:end])
        except (ValueError, RecursionError):
            parsed = [last_json_object(rest)[0]]
        return before.strip(), [_call(entry, rest) for entry in (parsed if isinstance(parsed, list) else [parsed])]
    whole = _strict_object(text.strip().removeprefix("<|python_tag|>").strip())
    if whole is not None and "name" in whole and ("parameters" in whole or "arguments" in whole):
        return "", [_call(whole, text)]
    return text, []


def _call(call: Any, source: str) -> tuple[str, str]:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return "", source.strip()
    arguments = call.get("arguments", call.get("parameters", {}))
    return call["name"], arguments if isinstance(arguments, str) else json.dumps(arguments)


def _opening_brace(text: str, end: int) -> int:
    """Returns the index of the brace that `end` closes, or -1. Read backwards, quotes pair up just as forwards."""
    depth, in_string = 0, False
    for mark in _JSON_MARK.finditer(text[end::-1]):
        if mark[0][0] == '"':
            in_string ^= len(mark[0]) % 2 == 1  # an even number of backslashes stands before the quote
        elif not in_string:
            depth += 1 if mark[0] == "}" else -1
            if depth == 0:
                return end - mark.start()
    return -1


def _is_within_another(text: str, start: int) -> bool:
    """True if the last call or answer that begins before `start` is still open there."""
    begins = [match.start() for match in _OBJECT_START.finditer(text, 0, start)]
    if not begins:
        return False
    depth, in_string = 0, False
    for part in _JSON_PART.finditer(text, begins[-1], start):
        if part[0] == '"':
            in_string = not in_string
        elif not in_string and part[0] in "{}":
            depth += 1 if part[0] == "{" else -1
            if depth == 0:
                return False
    return True


def _strict_object(text: str) -> dict | None:
    try:
        value = read_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _repaired_object(text: str) -> tuple[dict | None, bool]:
    starts = [match.start() for match in _OBJECT_START.finditer(text)]
    if not starts:
        return None, False
    import json_repair

    outermost = next((start for start in starts if len(text) - start <= _LONGEST_REPAIR), None)
    if outermost is None or text.count("{", outermost) + text.count("[", outermost) > _MOST_BRACKETS:
        return None, False
    try:
        value = read_json(json.dumps(json_repair.loads(text[outermost:])))
    except (ValueError, RecursionError):
        return None, False
    value = value[-1] if isinstance(value, list) and value else value
    return (value, True) if isinstance(value, dict) and value else (None, False)

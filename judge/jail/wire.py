"""Frames and plain data: all that crosses between the processes of a sandbox.

Only plain builtins are ever built from what arrives. JSON says None, bool, str, lists, integers within 2^53 and finite
floats as themselves; everything else is an object of one key, its tag. Instances of subclasses travel as the builtin
that they extend, so a method that they override, such as an `__eq__` that is always true, stays at home.
"""

import builtins
import json
import math
import operator
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

LARGEST_SOURCE = 256 << 10  # bytes, of a program
LARGEST_VALUE = 4 << 20  # bytes of JSON, roughly: all arguments of a call, its result, or the arguments it changed
LARGEST_FRAME = 16 << 20
MOST_NODES = 500_000  # numbers, strings and containers in one value
DEEPEST = 60  # levels of containers
_EXACT = 1 << 53  # larger integers travel as text, since other JSON readers take numbers as doubles


def _no_constant(name: str) -> None:
    raise ValueError(name)


# made once: json.dumps and json.loads would make them anew for each frame
_to_json = json.JSONEncoder(separators=(",", ":")).encode
_from_json = json.JSONDecoder(parse_constant=_no_constant).decode


class Broken(Exception):
    """Bytes that are not a frame, or a frame that is not a value."""


class NotPlain(Exception):
    """A value that is not plain data, or too much of it."""


def write_frame(fd: int, body: dict) -> None:
    """Writes one frame, blocking. Raises OSError if the reader is gone."""
    data = frame(body)
    while data:
        data = data[os.write(fd, data) :]


def frame(body: dict) -> bytes:
    """Returns `body` as the bytes of one frame."""
    data = _to_json(body).encode("ascii")
    return len(data).to_bytes(4, "little") + data


def read_frame(fd: int, largest: int = LARGEST_FRAME) -> dict:
    """Reads one frame, blocking. Raises EOFError at the end of the pipe, Broken for an invalid frame."""
    length = int.from_bytes(_read_exactly(fd, 4), "little")
    if length > largest:
        raise Broken(f"a frame of {length} bytes")
    return unframed(_read_exactly(fd, length))


def unframed(data: bytes) -> dict:
    """Returns the object in a frame's body. Raises Broken."""
    try:
        body = _from_json(data.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise Broken(f"no JSON: {type(error).__name__}") from None
    if type(body) is not dict:
        raise Broken("no JSON object")
    return body


def _read_exactly(fd: int, count: int) -> bytes:
    parts = []
    while count:
        part = os.read(fd, min(count, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


class Encoder:
    """Encodes values as JSON. `keep(value)` makes the tagged object for a value that is not plain, or raises NotPlain.

    `begin(iterator)` returns its next items, and a number by which more can be requested, None if these are all; it
    returns None instead of the pair if the iterator must not be iterated over.
    """

    def __init__(self, keep: Callable[[Any], dict], begin: Callable[[Any], tuple[Iterable, int | None] | None]):
        self._keep, self._begin = keep, begin

    def __call__(self, value: Any) -> Any:
        """Returns `value` as JSON. Raises NotPlain if it is too large, too deep, or cannot be sent."""
        self._nodes, self._bytes = MOST_NODES, LARGEST_VALUE
        return self._encode(value, DEEPEST)

    def _encode(self, value: Any, levels: int) -> Any:
        self._nodes -= 1
        if self._nodes < 0 or levels < 0:
            raise NotPlain("more than 500,000 parts, or more than 60 levels")
        kind = type(value)
        if kind not in _PLAIN:
            kind = next((base for base in kind.__mro__ if base in _PLAIN), None)
            if kind is None:
                return self._other(value, levels)
            value = _PLAIN[kind](value)
        if value is None or kind is bool:
            return value
        if kind is int:
            if -_EXACT <= value <= _EXACT:
                return value
            self._spend(value.bit_length() // 4)
            return {"int": hex(value)}
        if kind is str:
            self._spend(len(value) if value.isascii() else 12 * len(value))  # at worst two escapes of 6 bytes each
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is list:
            return self._items(value, levels)
        return {kind.__name__.lower(): self._tagged(kind, value, levels)}

    def _tagged(self, kind: type, value: Any, levels: int) -> Any:
        if kind in (tuple, set, frozenset, deque):
            return self._items(value, levels)
        if kind is dict:
            return [[self._encode(key, levels - 1), self._encode(item, levels - 1)] for key, item in value.items()]
        if kind in (bytes, bytearray):
            self._spend(2 * len(value))
            return value.hex()
        if kind in _PARTS:
            return [self._encode(getattr(value, part), levels) for part in _PARTS[kind]]
        return str(value) if kind is Decimal else value.isoformat()

    def _other(self, value: Any, levels: int) -> Any:
        kind = type(value)
        if kind.__module__ == "numpy" and hasattr(kind, "tolist"):
            if kind.__name__ != "ndarray" or value.dtype.kind not in _KINDS_OF_ARRAYS:
                return self._encode(value.tolist(), levels)
            return {"array": [value.dtype.str, list(value.shape), self._items(value.ravel().tolist(), levels)]}
        if kind in _VIEWS:
            return self._items(value, levels)
        begun = self._begin(value) if hasattr(kind, "__next__") else None
        if begun is not None:
            return {"iterator": [self._items(begun[0], levels), begun[1]]}
        return self._keep(value)

    def _items(self, values: Any, levels: int) -> list:
        return [self._encode(item, levels - 1) for item in values]

    def _spend(self, count: int) -> None:
        self._bytes -= count
        if self._bytes < 0:
            raise NotPlain("more than 4 MB")


# Rebuilds a value of each plain type from an instance of a subclass, using only the methods of the plain type.
_PLAIN: dict[type, Callable] = {
    type(None): lambda value: None,
    bool: bool,
    int: int.__index__,
    str: lambda value: str.__getitem__(value, slice(None)),
    float: float.__float__,
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    bytearray: lambda value: bytearray.__getitem__(value, slice(None)),
    complex: complex.__complex__,
    range: lambda value: value,
    deque: lambda value: deque(deque.__iter__(value)),
    Decimal: lambda value: Decimal(Decimal.__str__(value)),
    Fraction: lambda value: Fraction(value._numerator, value._denominator),
    datetime: lambda value: datetime.fromisoformat(datetime.isoformat(value)),
    date: lambda value: date.fromisoformat(date.isoformat(value)),
    timedelta: lambda value: timedelta(value.days, value.seconds, value.microseconds),
}
PLAIN_TYPES = frozenset(_PLAIN)
_PARTS = {  # the numbers by which a type makes a value again
    complex: ("real", "imag"), range: ("start", "stop", "step"), Fraction: ("numerator", "denominator"),
    timedelta: ("days", "seconds", "microseconds"),
}  # fmt: skip
_KINDS_OF_ARRAYS = "biufc"  # bools and numbers
_KIND_OF_ARRAY = re.compile(f"[<>|=][{_KINDS_OF_ARRAYS}][0-9]{{1,2}}")
_VIEWS = (type({}.keys()), type({}.values()), type({}.items()))


class WireDecoder:
    """Decodes JSON. `revive(tag, content)` makes a value that is no plain builtin from its content or handle number."""

    def __init__(self, revive: Callable[[str, Any], Any]):
        self._revive = revive

    def __call__(self, body: Any) -> Any:
        """Returns the value that `body` encodes. Raises Broken."""
        self._nodes = MOST_NODES
        try:
            return self._decode(body, DEEPEST)
        except (TypeError, ValueError, ArithmeticError, LookupError) as error:  # unhashable keys, invalid digits
            raise Broken(f"{type(error).__name__} in a value") from None

    def _decode(self, body: Any, levels: int) -> Any:
        self._nodes -= 1
        if self._nodes < 0 or levels < 0:
            raise Broken("a value of more than 500,000 parts, or 60 levels")
        kind = type(body)
        if kind is list:
            return [self._decode(item, levels - 1) for item in body]
        if kind is not dict:
            return body
        if len(body) != 1:
            raise Broken("a value with several tags")
        ((tag, content),) = body.items()
        if tag in ("handle", "name"):  # of an object that the program keeps
            if type(content) is not (int if tag == "handle" else str):
                raise Broken("a handle that is no number")
            return self._revive(tag, content)
        if tag == "dict":
            pairs = [_list(pair) for pair in _list(content)]
            return {self._decode(key, levels - 1): self._decode(item, levels - 1) for key, item in pairs}
        if tag in _FROM_ITEMS:
            return _FROM_ITEMS[tag](self._decode(_list(content), levels))
        if tag in _FROM_TEXT and type(content) is str:
            return _FROM_TEXT[tag](content)
        if tag == "iterator":
            items, more = _list(content)
            if type(more) not in (int, type(None)):
                raise Broken("an iterator with something that is no number")
            return self._revive(tag, (self._decode(_list(items), levels), more))
        if tag == "array":
            return self._array(*_list(content), levels)
        raise Broken("an unknown tag")

    def _array(self, kind: Any, shape: Any, items: Any, levels: int) -> Any:
        numpy = sys.modules.get("numpy")  # an honest sender has it loaded, but a program may claim an array without it
        if numpy is None or type(kind) is not str or not _KIND_OF_ARRAY.fullmatch(kind):
            raise Broken("an array of nothing known")
        if any(type(size) is not int or size < 0 for size in _list(shape)):
            raise Broken("an array of no shape")
        numbers = self._decode(_list(items), levels)
        if any(type(number) not in (int, float, complex, bool) for number in numbers):
            raise Broken("an array of other things than numbers")
        return numpy.array(numbers, dtype=numpy.dtype(kind)).reshape(shape)


def extends_plain(value: Any) -> bool:
    """True if a value's class is not a plain type but extends one."""
    return type(value) not in _PLAIN and isinstance(value, tuple(_PLAIN))


def operated(name: str, thing: Any, *others: Any) -> Any:
    """Returns the result of the operator or function of a method, such as `__radd__` or `__len__`, for its operands."""
    for module in (operator, builtins, math):
        function = vars(module).get(name if module is operator else name.strip("_"))
        if function:
            return function(thing, *others)
    return operated(name.replace("__r", "__", 1), *others, thing)


def _list(content: Any) -> list:
    if type(content) is not list:
        raise Broken("no list after a tag")
    return content


_FROM_ITEMS: dict[str, Callable[[list], Any]] = {
    **{kind.__name__: kind for kind in (tuple, set, frozenset, deque)},
    "complex": lambda parts: complex(*parts),
    "range": lambda parts: range(*parts),
    "fraction": lambda parts: Fraction(*map(operator.index, parts)),  # from text it would accept any power of ten
    "timedelta": lambda parts: timedelta(*parts),
}
_FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "int": lambda text: int(text, 16),
    "float": {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}.__getitem__,
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "decimal": Decimal,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
}

"""What stays with the program, as a test holds it: objects, iterators and views, each operation on them a question.

A value that is not plain data can be used but not compared, since only the program knows what equals it. What the
program says of its objects must not stand in for a value that a test expects; see `RemoteObject`.
"""

import numbers
import operator
from collections import deque
from collections.abc import Iterator
from typing import Any, NoReturn, Protocol

_telling = False  # while a value is formatted for people: no object of the program is asked for its repr
# Operators that an object of the program performs itself, beside the methods of `RemoteObject`: see there.
_OPERATORS = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor",
    "lshift", "rshift", "neg", "pos", "abs", "invert", "int", "float", "index", "round",
)  # fmt: skip
_OF_NAMED_TUPLES = ("_asdict", "_replace", "_fields")
_OTHERS = ("call", "setitem", "delitem", "next", "exit")
_PREDICATES = {  # methods that return a bool on plain data, and those that do what a guarded operator does
    name
    for kind in (str, bytes, set, float)
    for name in dir(kind)
    if name.startswith("is") or name in ("startswith", "endswith")
} | {"difference", "intersection", "symmetric_difference", "removeprefix", "removesuffix"}


class RemoteProgram(Protocol):
    """The program, as far as its values need it."""

    def ask(self, what: dict, args: tuple, named: dict, shown: str) -> Any:
        """Returns the answer to one call. Raises what the program raised."""

    def more(self, number: int, *sent: Any) -> tuple[list, int | None]:
        """Returns further items of an iterator, and its number while there may be more."""

    def opaque(self, why: str = ...) -> NoReturn:
        """Ends the test because it asks of an object what only a value should tell."""

    def unsupported(self, why: str) -> NoReturn:
        """Ends the test because no program could pass it here."""


def is_changeable(value: Any) -> bool:
    """Tells whether a value may be changed by a call that it is passed to."""
    return isinstance(value, (list, dict, set, bytearray, deque)) or hasattr(value, "__array__")


def shown_call(name: str, args: tuple, named: dict) -> str:
    """Formats a call for people."""
    parts = [short(value) for value in args] + [f"{key}={short(value)}" for key, value in named.items()]
    return f"{name}({', '.join(parts)})"


def short(value: Any) -> str:
    """Returns a value's text for people, or a description of the value if its text could take long."""
    if isinstance(value, (str, bytes, bytearray)) and len(value) > 60:
        return repr(value[:57]) + "..."
    if isinstance(value, int) and value.bit_length() > 4096:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, (list, tuple, dict, set, frozenset)) and len(value) > 20:
        return f"a {type(value).__name__} of {len(value)}"
    global _telling
    _telling = True
    try:
        text = repr(value)
    except Exception:  # too many digits or levels, or a class of the tests
        return f"a {type(value).__name__}"
    finally:
        _telling = False
    return text if len(text) <= 80 else text[:77] + "..."


class Uncompared:
    """A value that is not plain data: it can be used but not compared, since only the program knows what equals it."""

    _program: RemoteProgram

    def _refuse(self, *_: Any) -> NoReturn:
        self._program.opaque()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __hash__ = _refuse


class Opaque(Uncompared):
    """An object that stays with the program. A test can only ask for its truth value, which was sent along once."""

    def __init__(self, program: RemoteProgram, truth: bool | None):
        self._program, self._truth = program, truth

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()

    def __bool__(self) -> bool:
        return self._refuse() if self._truth is None else self._truth

    __str__ = Uncompared._refuse  # and no other method, so that it is no container, iterator or function

    def __repr__(self) -> str:
        return "<object>"


class RemoteIterator(Uncompared):
    """An iterator that the program returned: its items are plain data, held here or fetched by its number."""

    def __init__(self, program: RemoteProgram, items: list, number: int | None):
        self._program, self._items, self._number = program, deque(items), number

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        if not self._items and self._number is not None:
            items, self._number = self._program.more(self._number)
            self._items.extend(items)
        if not self._items:
            raise StopIteration
        return self._items.popleft()

    def __bool__(self) -> bool:
        return True

    def send(self, value: Any) -> Any:
        """Sends a value to the generator and returns the next item, as `generator.send` does."""
        if self._items or self._number is None:
            self._program.unsupported("sends to what is no generator that waits for it")
        items, self._number = self._program.more(self._number, value)
        if not items:
            raise StopIteration
        return items[0]

    def close(self) -> None:
        """Drops all items, as `generator.close` does; the program's generator is not told."""
        self._items, self._number = deque(), None

    def taken(self) -> tuple[list, int | None]:
        """Takes and returns the items held here, and the iterator's number."""
        items = list(self._items)
        self._items.clear()
        return items, self._number

    def __repr__(self) -> str:
        return "<iterator>"


class RemoteView(Uncompared):
    """A view of a dictionary that the program returned."""

    def __init__(self, program: RemoteProgram, items: list):
        self._program, self._items = program, items

    def __iter__(self) -> Iterator:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: Any) -> bool:
        return item in self._items

    def __bool__(self) -> bool:
        return bool(self._items)

    def __repr__(self) -> str:
        return "<view>"


METHOD, _NOTHING = object(), object()
MADE, GIVEN, COMPUTED = range(3)
_NO_VALUE = "an object of the program cannot stand in for a value"


class RemoteObject(Uncompared):
    """An object that the program keeps, if the data set allows it: every operation on it is a call to the program.

    The result of an operator is the program's word, and the program sees the other operand: an object that subtracts
    to 0 or contains everything must not stand in for a number or a list. So it depends on where an object comes from.
    `MADE`: by a class that the tests call by its capitalised name. It may have operators and an `in` of its own.
    `GIVEN`: in another answer, where a value may have been expected. `COMPUTED`: from or with anything but objects
    that were made. For these two, operators may only return another object: plain data is refused, `in` searches the
    items here, and methods that return a bool on plain data, such as startswith, are not called.
    An object that extends a builtin is compared as that builtin; only its content is requested from the program.
    """

    def __init__(self, program: RemoteProgram, number: int, kind: int = GIVEN):
        object.__setattr__(self, "_program", program)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_content", _NOTHING)  # of an object that extends a builtin

    def _ask(self, operation: str, name: str, args: tuple = (), named: dict | None = None) -> Any:
        shown = shown_call(f"<object {self._number}>.{name or operation}", args, named or {})
        made = self._kind == MADE and operation != "plain"
        request = {"h": self._number, "op": operation, "m": name, "made": made}
        return self._program.ask(request, args, named or {}, shown)

    def _operated(self, name: str, others: tuple) -> Any:
        operands = () if name == "__round__" else others  # its argument is a number of digits
        plain = [each for each in operands if type(each) is not RemoteObject]
        if self._kind != MADE and not all(isinstance(each, numbers.Number) for each in plain):
            self._program.opaque(f"{name} is asked of it, but {_NO_VALUE}")
        kind = max(each._kind for each in (self, *operands) if type(each) is RemoteObject)
        if plain or (operands and kind == GIVEN):
            kind = COMPUTED
        # worked out before the program sees the other operand, by the builtin that the object extends
        worked_out = self._worked_out(name, others) if kind == COMPUTED else _NOTHING
        answer = self._ask("call", name, others)
        if type(answer) is RemoteObject:
            result = RemoteObject(self._program, answer._number, kind)
            # a number with a result that is no number reveals nothing expected: then the program's content is used
            shown = not all(isinstance(each, numbers.Number) for each in plain)
            shown = shown or isinstance(worked_out, numbers.Number)
            content = worked_out if kind == COMPUTED and shown else answer._content
            object.__setattr__(result, "_content", content)
            return result
        if kind == COMPUTED and worked_out is _NOTHING:
            self._program.opaque(_NO_VALUE)
        return worked_out if kind == COMPUTED else answer

    def _worked_out(self, name: str, others: tuple) -> Any:
        operation = None if self._content is _NOTHING else getattr(self._plain(), name, None)
        try:
            result = operation(*others) if operation else NotImplemented
        except (TypeError, ValueError, ArithmeticError):
            result = NotImplemented
        return _NOTHING if result is NotImplemented else result

    def _plain(self) -> Any:
        """Returns the content of an object that extends a builtin; asks again if it is mutable and made by a test."""
        if self._content is _NOTHING:
            self._refuse()
        if self._kind != MADE or not is_changeable(self._content):
            return self._content
        answer = self._ask("plain", "")
        return self._refuse() if type(answer) in (Opaque, RemoteObject) else answer

    def __bool__(self) -> bool:
        if self._kind == COMPUTED:
            self._program.opaque(_NO_VALUE)
        return self._ask("truth", "") is True

    def __hash__(self) -> int:
        return hash(self._plain())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name not in _OF_NAMED_TUPLES:
            raise AttributeError(name)
        if name in _PREDICATES and self._kind != MADE:
            self._program.opaque(f"{name} is asked of it, but {_NO_VALUE}")
        value = self._ask("get", name)
        if value is not METHOD:
            return value
        return lambda *args, **named: self._ask("call", name, args, named)

    def __setattr__(self, name: str, value: Any) -> None:
        self._ask("set", name, (value,))

    def __getitem__(self, key: Any) -> Any:
        return self._ask("item", "", (key,))

    def __contains__(self, item: Any) -> bool:
        if self._kind != MADE:
            return item in self._ask("list", "")
        return self._ask("contains", "", (item,)) is True

    def __len__(self) -> int:
        return self._ask("length", "")

    def __iter__(self) -> Iterator:
        return iter(self._ask("list", ""))

    def __enter__(self) -> Any:
        answer = self._ask("call", "__enter__")
        return RemoteObject(self._program, answer._number, self._kind) if type(answer) is RemoteObject else answer

    def __str__(self) -> str:
        return self._ask("text", "")

    def __repr__(self) -> str:
        return f"<object {self._number}>" if _telling else self._ask("code", "")


def _plainly(value: Any) -> Any:
    return value._plain() if type(value) is RemoteObject else value


def _compare(name: str) -> None:
    compared = getattr(operator, name)

    def compare(self: RemoteObject, other: Any) -> bool:
        # ==, <= and >= hold for objects that are all alike, != for objects that all differ: < and > need an order
        if type(other) is RemoteObject and (name not in ("lt", "gt") or self._content is other._content is _NOTHING):
            self._program.unsupported("compares two objects of the program, which only the program could")
        return compared(self._plain(), _plainly(other))

    setattr(RemoteObject, f"__{name}__", compare)


def _delegate(name: str) -> None:
    setattr(RemoteObject, name, lambda self, *args, **named: self._ask("call", name, args, named))


def _operate(name: str) -> None:
    def operate(self: RemoteObject, *others: Any) -> Any:
        return self._operated(name, others)

    setattr(RemoteObject, name, operate)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _compare(_name)
for _name in _OTHERS:
    _delegate(f"__{_name}__")
for _name in _OPERATORS:
    _operate(f"__{_name}__")

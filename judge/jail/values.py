"""What stays with the program, as a test holds it: names, objects, iterators and views; each use is a question to it.

A value that is not plain data can be used but not compared, since only the program knows what equals it. What the
program says of its objects must not stand in for a value that a test expects; see `RemoteObject`.
"""

import numbers
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from judge.jail.wire import PLAIN_TYPES, operated

MADE, GIVEN, COMPUTED = range(3)  # see `RemoteObject`
METHOD, NOTHING = object(), object()
_formatting = False  # while a value is formatted for people: no object of the program is asked for its repr
_OF_VALUES = frozenset(name for kind in PLAIN_TYPES for name in dir(kind))
_OF_NAMED_TUPLES = ("_asdict", "_replace", "_fields")
_OPERATORS = (
    "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "divmod"
)  # fmt: skip
_UNARY = ("neg", "pos", "abs", "invert", "int", "float", "complex", "index", "round", "trunc", "floor", "ceil")
_WORDS = ("len", "getitem", "str", "repr", "format", "iter", "next", "reversed", "bool")  # as of a value
_USES = ("call", "setitem", "delitem", "delattr", "enter", "aenter", "aexit", "aiter", "anext")


def is_changeable(value: Any) -> bool:
    """True if a value may be changed by a call that it is passed to."""
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
    global _formatting
    _formatting = True
    try:
        text = repr(value)
    except Exception:  # too many digits or levels, or a class of the tests
        return f"a {type(value).__name__}"
    finally:
        _formatting = False
    return text if len(text) <= 80 else text[:77] + "..."


class Uncompared:
    """A value that is not plain data: it can be used but not compared, since only the program knows what equals it."""

    __program__: Any  # the program as the examiner sees it

    def _refuse(self, *_: Any) -> NoReturn:
        self.__program__.opaque()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _refuse


class Opaque(Uncompared):
    """An object that stays with the program, where tests are not stateful.

    A test can use what no value has, its attributes and methods; and its truth, which was sent along once.
    """

    def __init__(self, program: Any, truth: Any, number: int | None = None):
        self.__dict__.update(__program__=program, _truth=truth if type(truth) is bool else None, _number=number)

    def __getattr__(self, name: str) -> Any:
        if self._number is None or name.startswith("__") or is_of_values(name):
            self._refuse()
        return _attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._refuse()

    def __bool__(self) -> bool:
        return self._refuse() if self._truth is None else self._truth

    __str__ = Uncompared._refuse  # and no other method, so that it is no container, iterator or function

    def __repr__(self) -> str:
        return "<object>"


class OpaqueFunction(Opaque):
    """One that can be called, such as a function that the program returned."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Calls it there."""
        return _ask(self, "call", "__call__", args, named)


class RemoteIterator(Uncompared):
    """An iterator that the program returned: its items are plain data, held here or fetched by its number."""

    def __init__(self, program: Any, items: list, number: int | None):
        self.__program__, self._items, self._number = program, deque(items), number

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        if not self._items and self._number is not None:
            items, self._number = self.__program__.more(self._number)
            self._items.extend(items)
        if not self._items:
            raise StopIteration
        return self._items.popleft()

    def send(self, value: Any) -> Any:
        """Sends a value to the generator and returns the next item, as `generator.send` does."""
        if self._items or self._number is None:
            self.__program__.opaque("it is no generator that waits for what is sent")
        items, self._number = self.__program__.more(self._number, value)
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


class RemoteName(type):
    """A name that the tests may use of the program: called, or asked for attributes. An error can be caught by it."""

    __program__: Any

    def __call__(cls, *args: Any, **named: Any) -> Any:
        name, program = cls.__name__, cls.__program__
        makes = name in program.classes
        shown = shown_call(name, args, named)
        return program.ask({"f": name, "made": makes}, args, named, shown, MADE if makes else GIVEN)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _attribute(cls, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        _ask(cls, "set", name, (value,))

    def __instancecheck__(cls, value: Any) -> bool:
        if type(value) is RemoteObject:
            return _ask(cls, "instance", "", (value,)) is True
        if BaseException not in cls.__mro__ and type(value) in {Opaque, *PLAIN_TYPES} - {type(None)}:
            cls.__program__.opaque(f"it is data, of which no class of the program is known, {cls.__name__} neither")
        return type.__instancecheck__(cls, value)

    def __subclasscheck__(cls, kind: type) -> bool:
        if type(kind) is RemoteName and BaseException not in kind.__mro__:
            return _ask(cls, "subclass", "", (kind,)) is True
        return type.__subclasscheck__(cls, kind)


class RemoteObject:
    """An object that the program keeps, if the data set allows it: every operation on it is a question to the program.

    The program answers, having seen the arguments. So what it says of an object must not stand in for a value that it
    was shown, or could guess. This depends on where the object comes from, the worst of all places:

    `MADE`      by a class that the tests call by its capitalised name: the program's word counts for all it says of it.
    `GIVEN`     in another answer, where a value may have been expected: operators give no plain data, `in` searches the
                items here, there is no order; a method that values have too gives no plain data for an argument, and
                no bool.
    `COMPUTED`  by an operator from anything but objects that were made, or by such a method: it has no text, length,
                items, order or truth, and no attribute that values have too.

    An object that extends a builtin is compared as that builtin, and an operator is worked out here: it must agree.
    """

    # no names that a test could ask for
    __slots__ = ("__content__", "__kind__", "__made__", "__number__", "__program__")

    def __init__(self, program: Any, number: int, kind: int, made: tuple | None, content: Any):
        for slot, value in zip(RemoteObject.__slots__, (content, kind, made, number, program), strict=True):
            object.__setattr__(self, slot, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        of_values = is_of_values(name)
        if of_values:
            _refuse_computed(self, f"its {name}")
        return _attribute(self, name, of_values and self.__kind__ != MADE)

    def __contains__(self, item: Any) -> bool:
        if self.__kind__ == MADE:
            return _ask(self, "operate", "__contains__", (item,)) is True
        return any(item is part or item == part for part in self)

    def __hash__(self) -> int:
        if self.__content__ is NOTHING and self.__kind__ == MADE:
            return _ask(self, "operate", "__hash__")
        return hash(_plain(self))

    def __exit__(self, kind: type | None, error: BaseException | None, _: Any) -> bool:
        if kind is not None and not issubclass(kind, Exception):
            return False
        return bool(_ask(self, "exit", kind.__name__ if kind else "", error.args if error else ()))

    def __reduce_ex__(self, _: Any) -> NoReturn:
        self.__program__.opaque("an object of the program cannot be copied")


def is_of_values(name: str) -> bool:
    """True for the name of an attribute that a value may have too: plain data, or an array."""
    arrays = sys.modules.get("numpy")
    return name not in _OF_NAMED_TUPLES and (name in _OF_VALUES or hasattr(getattr(arrays, "ndarray", None), name))


def _ask(
    thing: Any, operation: str, name: str = "", args: tuple = (), named: dict | None = None, kind: int = GIVEN
) -> Any:
    if type(thing) is RemoteName:
        where, shown = {"f": thing.__name__}, thing.__name__
    elif isinstance(thing, Opaque):
        where, shown = {"h": thing._number, "made": False}, f"<object {thing._number}>"
    else:
        made = thing.__content__ is not NOTHING and operation != "plain"
        where, shown = {"h": thing.__number__, "made": made}, f"<object {thing.__number__}>"
    shown = shown_call(f"{shown}.{name or operation}", args, named or {})
    return thing.__program__.ask({**where, "op": operation, "m": name}, args, named or {}, shown, kind)


def _attribute(thing: Any, name: str, guarded: bool = False) -> Any:
    """Returns an attribute; `guarded`: it is a method that values have too, of an object that may stand in for one."""
    value = _ask(thing, "get", name)
    if value is not METHOD:
        return value

    def call(*args: Any, **named: Any) -> Any:
        shows = guarded and (args or named)
        answer = _ask(thing, "call", name, args, named, COMPUTED if shows else GIVEN)
        guessed = shows or type(answer) is bool or name.startswith(("is", "all", "any"))
        if guarded and guessed and type(answer) not in (RemoteObject, type(None)):
            thing.__program__.opaque(f"{name} is asked of it, but an object of the program cannot stand in for a value")
        return answer

    return call


def _refuse_computed(thing: RemoteObject, what: str) -> None:
    if thing.__kind__ == COMPUTED:
        thing.__program__.opaque(f"{what} is asked for, but it was computed from an object of the program")


def _plain(thing: Any) -> Any:
    """Returns the content of an object that extends a builtin, asked for again where it may have changed."""
    if type(thing) is not RemoteObject:
        return thing
    content = thing.__content__
    if content is NOTHING:
        thing.__program__.opaque()
    if thing.__kind__ == COMPUTED or not is_changeable(content):
        return content
    answer = _ask(thing, "plain")
    return answer if type(answer) is type(content) else thing.__program__.opaque()


def _operate(thing: RemoteObject, name: str, others: tuple) -> Any:
    program, operands = thing.__program__, () if name == "__round__" else others  # its argument is a number of digits
    plain = [value for value in operands if type(value) is not RemoteObject]
    kind = max(value.__kind__ for value in (thing, *operands) if type(value) is RemoteObject)
    if kind != MADE and not all(isinstance(value, numbers.Number) for value in plain):
        program.opaque(f"{name} is asked of it, but an object of the program cannot stand in for a value")
    if plain or (operands and kind == GIVEN):
        kind = COMPUTED
    # worked out before the program sees the other operand, by the builtin that the object extends
    worked_out = _worked_out(thing, name, others) if kind == COMPUTED else NOTHING
    answer = _ask(thing, "operate", name, others, kind=kind)
    if kind != COMPUTED:
        return answer
    content = answer.__content__ if type(answer) is RemoteObject else answer
    agrees = worked_out is not NOTHING and type(content) is type(worked_out) and content == worked_out
    if type(answer) is RemoteObject:
        kept = worked_out if agrees and not is_changeable(worked_out) else NOTHING
        object.__setattr__(answer, "__content__", kept)
        return answer
    if not agrees:
        program.opaque("an object of the program cannot stand in for a value")
    return worked_out


def _worked_out(thing: RemoteObject, name: str, others: tuple) -> Any:
    if thing.__content__ is NOTHING:
        return NOTHING
    try:
        return operated(name, _plain(thing), *map(_plain, others))
    except (TypeError, ValueError, ArithmeticError):
        return NOTHING


def _compare(thing: RemoteObject, name: str, others: tuple) -> bool:
    (other,) = others
    both, bare = type(other) is RemoteObject, thing.__content__ is NOTHING
    if name in ("__eq__", "__ne__") and (both or (bare and thing.__kind__ == MADE)):
        return _equal(thing, name, other)
    if not both or not (bare or other.__content__ is NOTHING):
        return operated(name, _plain(thing), _plain(other))
    if (thing.__kind__, other.__kind__) != (MADE, MADE):
        thing.__program__.opaque("its order is asked for, but an object of the program cannot stand in for a value")
    return bool(_ask(thing, "operate", name, others))


def _equal(thing: RemoteObject, name: str, other: Any) -> bool:
    """Returns the program's word. But all objects of a class could be equal, so equality must be seen here too."""
    program, equal, both = thing.__program__, name == "__eq__", type(other) is RemoteObject
    if thing is other or (both and thing.__number__ == other.__number__ and not (thing.__made__ or other.__made__)):
        return equal
    word = bool(_ask(thing, "operate", name, (other,)))
    if (word == equal) > both or (word > equal and both and MADE not in (thing.__kind__, other.__kind__)):
        program.opaque()
    if word == equal and not (program.is_made_of(thing, other) or program.is_made_of(other, thing)):
        program.opaque("two objects are equal by its word alone")
    return word


def _use(thing: RemoteObject, name: str, args: tuple) -> Any:
    return _ask(thing, "call", name, args, kind=thing.__kind__ if name == "__enter__" else GIVEN)


def _word(thing: RemoteObject, name: str, args: tuple) -> Any:
    if _formatting and name == "__repr__":
        return f"<object {thing.__number__}>"
    _refuse_computed(thing, name)
    return _ask(thing, "operate", name, args)


def _delegate(names: Any, how: Callable[[Any, str, tuple], Any], kind: type = RemoteObject) -> None:
    for name in names:
        setattr(kind, name, lambda self, *args, name=name: how(self, name, args))


_delegate(["__iter__", "__getitem__"], lambda cls, name, args: _ask(cls, "operate", name, args), RemoteName)
_delegate(["__setattr__"], lambda thing, _, args: _ask(thing, "set", args[0], args[1:]))
_delegate([f"__{name}__" for name in _WORDS], _word)
_delegate([f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge")], _compare)
_delegate([f"__{name}__" for name in _USES], _use)
_delegate([f"__{way}{name}__" for name in _OPERATORS for way in ("", "r", "i")], _operate)
_delegate([f"__{name}__" for name in _UNARY], _operate)

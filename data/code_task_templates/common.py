"""What the templates are made of: families with variants, and random inputs that several families share."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

WORDS = (  # noqa: SIM905  so many short words are hard to read as a list
    "apple Anna bee level river stone Otto moon cloud tea noon green kayak letter a I "
    "we sun coffee balloon tree summer window queen Zoo door civic light banana mississippi radar python "
    "echo Up no "
).split()


@dataclass(frozen=True)
class Variant:
    """One task of a family: values for the family's $words, and an example worked out by hand."""

    arguments: Any  # a tuple; of a program that reads stdin, its text
    expected: Any  # what a program prints may lack the last newline
    values: dict[str, str]
    edges: tuple = ()
    draw: Callable[[Random], Any] | None = None


@dataclass(frozen=True)
class Family:
    """A task template. $words in its texts are filled in by each variant; $f is the name of the function.

    `wrong` is a whole program, or the replacements that spoil the solution.
    `oracle` solves the same task in another way: both must agree on every random input.
    `stdio` marks programs that read standard input; their inputs are texts instead of tuples of arguments.
    """

    name: str
    prompt: str
    solution: str
    wrong: str | dict[str, str]
    draw: Callable[[Random], Any]
    variants: list[Variant]
    edges: tuple = ()
    oracle: str = ""
    stdio: bool = False


def variant(
    arguments: Any, expected: Any, /, edges: tuple = (), draw: Callable | None = None, **values: str
) -> Variant:
    """Returns a variant; keywords are the values of the family's $words."""
    return Variant(arguments, expected, values, edges, draw)


def word(rng: Random, letters: str = "abc", low: int = 1, high: int = 8) -> str:
    """Returns random letters."""
    return "".join(rng.choice(letters) for _ in range(rng.randint(low, high)))


def sentence(rng: Random, low: int = 2, high: int = 7) -> str:
    """Returns random words, separated by single spaces."""
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(low, high)))


def integers(rng: Random, low: int = -9, high: int = 20, shortest: int = 3, longest: int = 9) -> list[int]:
    """Returns random integers."""
    return [rng.randint(low, high) for _ in range(rng.randint(shortest, longest))]


def matrix(rng: Random, rows: int, columns: int, low: int = 0, high: int = 9) -> list[list[int]]:
    """Returns rows of random integers."""
    return [[rng.randint(low, high) for _ in range(columns)] for _ in range(rows)]


def blocked(rng: Random, rows: int, columns: int, share: float) -> list[list[int]]:
    """Returns rows of zeros and ones; `share` is the probability of a one."""
    return [[int(rng.random() < share) for _ in range(columns)] for _ in range(rows)]


def links(rng: Random, nodes: int, count: int, ordered: bool = False) -> list[tuple[int, int]]:
    """Returns random edges between different nodes, none twice; unordered ones may be written either way round."""
    pairs = [(a, b) for a in range(nodes) for b in range(nodes) if a < b or (ordered and a != b)]
    chosen = rng.sample(pairs, min(count, len(pairs)))
    return [pair if ordered or rng.random() < 0.7 else pair[::-1] for pair in chosen]


def points(rng: Random, shortest: int = 3, longest: int = 8, size: int = 6) -> list[tuple[int, int]]:
    """Returns random points with integer coordinates, none twice."""
    result = {(rng.randint(-size, size), rng.randint(-size, size)) for _ in range(rng.randint(shortest, longest))}
    result = sorted(result)  # a set has no order to rely on
    rng.shuffle(result)
    return result


def lines(*rows: Any) -> str:
    """Returns text for stdin: one line per row; the items of a list or tuple are separated by spaces."""
    return "".join((" ".join(map(str, row)) if isinstance(row, list | tuple) else str(row)) + "\n" for row in rows)

"""Draws random inputs for the tasks. Every file of a family knows these names, without an import."""

from random import Random
from typing import Any

WORDS = (  # noqa: SIM905  so many short words are hard to read as a list
    "apple Anna bee level river stone Otto moon cloud tea noon green kayak letter a I "
    "we sun coffee balloon tree summer window queen Zoo door civic light banana mississippi radar python "
    "echo Up no "
).split()


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


def graph(rng: Random) -> tuple:
    """Number of nodes, and undirected edges."""
    n = rng.randint(3, 7)
    return n, links(rng, n, rng.randint(n - 2, n + 1))


def digraph(rng: Random) -> tuple:
    """Number of nodes, and directed edges."""
    n = rng.randint(3, 6)
    return n, links(rng, n, rng.randint(n - 1, n + 2), ordered=True)


def dag(rng: Random) -> tuple:
    """Number of nodes, and directed edges that mostly form no cycle."""
    n = rng.randint(3, 6)
    names = rng.sample(range(n), n)
    found = [tuple(sorted(pair)) for pair in links(rng, n, rng.randint(n - 1, n + 2))]
    if rng.random() < 0.25:
        found = found[:-1] + [found[0][::-1]]
    return n, list(dict.fromkeys((names[a], names[b]) for a, b in found))


def weighted(rng: Random) -> tuple:
    """Number of nodes, and undirected edges with lengths."""
    n, edges = graph(rng)
    return n, [(a, b, rng.randint(1, 9)) for a, b in edges]


def parents(rng: Random) -> tuple:
    """A tree: the parent of each node, -1 for the root 0."""
    return ([-1] + [rng.randint(max(0, i - 3), i - 1) for i in range(1, rng.randint(3, 9))],)


def maze(rng: Random) -> tuple:
    """Rows of text of . and #."""
    columns = rng.randint(2, 5)
    return (["".join(".#"[cell] for cell in row) for row in blocked(rng, rng.randint(2, 4), columns, 0.35)],)


def point(rng: Random, size: int = 6) -> tuple[int, int]:
    """A point with integer coordinates."""
    return rng.randint(-size, size), rng.randint(-size, size)


def rectangle(rng: Random) -> tuple[int, int, int, int]:
    """Left, bottom, right, top."""
    left, bottom = point(rng, 4)
    return left, bottom, left + rng.randint(1, 6), bottom + rng.randint(1, 6)


def triangle(rng: Random) -> tuple:
    """Three points that do not lie on one line."""
    while True:
        (a, b), (c, d), (e, f) = found = point(rng), point(rng), point(rng)
        if (c - a) * (f - b) != (e - a) * (d - b):
            return found


def polygon(rng: Random) -> tuple:
    """A simple polygon: heights over a base line, in either direction."""
    width = rng.randint(2, 4)
    tops = [(x, rng.randint(1, 6)) for x in range(width, -1, -1)]
    corners = [(0, 0), (width, 0), *tops]
    return (corners[:: rng.choice([1, -1])],)

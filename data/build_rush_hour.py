"""Builds Rush Hour puzzles of 4x4, 5x5 and 6x6 cells, each with an optimal solution.

    python data/build_rush_hour.py --out data/generated/rush-hour --seed 0
    python data/build_rush_hour.py --out data/generated/rush-hour --svg 12   # and pictures of the first 12 of each size
    python data/build_rush_hour.py --out data/generated/tiny-rush --tiny     # for configs/tiny_rush.yaml

Two minutes, and half a minute with --tiny: the solver is plain Python, in one process.

A layout is cars laid at random, and walls if `--walls` asks for some. All boards that its cars can reach from there are
explored, breadth first, and so is the way from every goal back: that gives each board its least number of moves, and an
optimal solution, which is replayed before it is written. A layout with more than `--most-boards` boards is given up,
and counted; it is not called unsolvable. Boards that cannot be solved, are solved, or take one move are left out.

`train.jsonl`, `validation.jsonl` and `test.jsonl` have as many easy as medium and hard boards of each size (the number
of moves decides, see LIMITS; a size that has too few of one kind has fewer of all). A layout, all boards that can be
reached within it, and what is seen in a mirror that lies below it, go into one file: no board of one can be moved into
a board of another.

`--lessons` and `--chats` add `sft.jsonl`, for a model that knows nothing yet: lessons have optimal answers; in chats a
part of each move is wrong with probability `--slips`.
"""

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import chat, options, write_rows
from lib.text.rush_hour import EMPTY, TARGET, WALL, Move, read_moves, replay, size_of

LIMITS = {4: (3, 4), 5: (4, 6), 6: (4, 7)}  # moves: easy has fewer than the first, hard no fewer than the second
DIFFICULTIES = ("easy", "medium", "hard")
CARS = {4: (3, 8), 5: (4, 10), 6: (6, 12)}  # fewest and most
SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}
LONG = 0.3  # share of cars with three cells
ACROSS = 0.4  # share of horizontal cars, A aside
TRIES = 12  # places that are tried for a car, before the layout does without it
PROMPT = "Board size: {size}x{size}\nBoard:\n{drawing}"
TINY = {  # other defaults, for a model that knows nothing yet
    "sizes": [4], "difficulties": ["easy", "medium"], "walls": 2, "boards": 2500, "per_layout": 20, "layouts": 50_000,
    "prompt": "{drawing}", "lessons": 10_000, "chats": 5000,
}  # fmt: skip
COLOURS = ("#c0392b", "#2e86c1", "#28b463", "#d68910", "#7d3c98", "#17a589", "#839192", "#a04000", "#5d6d7e", "#b7950b")

State = tuple[int, ...]  # where each car begins in its line


class Car(NamedTuple):
    """A car and the line in which it moves."""

    is_target: bool
    across: bool
    line: int
    length: int


class Layout(NamedTuple):
    """Cars and walls, and where the cars were laid."""

    size: int
    cars: tuple[Car, ...]
    walls: frozenset[int]
    start: State


class Explored(NamedTuple):
    """All boards that can be reached within a layout."""

    states: list[State]
    places: dict[State, int]
    neighbours: list[list[int]]
    moves: list[int | None]  # to the nearest goal


def main() -> None:
    """Writes the files, and pictures if asked for."""
    args = parse_arguments()
    rng = random.Random(args.seed)
    rows: dict[str, list[dict]] = {split: [] for split in (*SHARES, "sft")}
    for size in args.sizes:
        for split, found in rows_of_size(size, args, rng).items():
            rows[split] += found
    for split in SHARES:
        rng.shuffle(rows[split])
        write_rows(args.out / f"{split}.jsonl", rows[split])
    if args.lessons or args.chats:
        write_rows(args.out / "sft.jsonl", chats(rows["sft"], args, rng))
    for number in range(args.svg):
        for size in args.sizes:
            row = [row for row in rows["train"] if row["size"] == size][number]
            (args.out / f"{size}x{size}-{number}.svg").write_text(svg(row["board"]), encoding="utf-8")
    counts = ", ".join(f"{len(rows[split])} {split}" for split in SHARES)
    print(f"{args.out}: {counts} boards, {args.lessons} lessons, {args.chats} chats")


def parse_arguments() -> argparse.Namespace:
    """Returns the options."""
    result = options(__doc__, "data/generated/rush-hour")
    result.add_argument("--tiny", action="store_true", help="other defaults: those of configs/tiny_rush.yaml")
    result.add_argument("--sizes", type=int, nargs="+", default=[4, 5, 6], choices=list(LIMITS))
    result.add_argument("--boards", type=int, default=200, help="of each size and difficulty, in three files")
    result.add_argument("--difficulties", nargs="+", default=list(DIFFICULTIES), choices=DIFFICULTIES)
    result.add_argument("--per-layout", type=int, default=3, help="most boards of one layout and difficulty")
    result.add_argument("--layouts", type=int, default=12_000, help="layouts of each size that are tried at most")
    result.add_argument("--most-boards", type=int, default=10_000, help="larger layouts are given up")
    result.add_argument("--walls", type=int, default=0, help="most walls of a layout")
    result.add_argument("--prompt", default=PROMPT, help="the user's message; {size}, {board}, {drawing}, {moves}")
    result.add_argument("--lessons", type=int, default=0, help="first rows of sft.jsonl, with optimal answers")
    result.add_argument("--chats", type=int, default=0, help="the other rows, with slips, about the same boards")
    result.add_argument("--slips", type=float, default=0.4, help="probability that a part of a move is wrong in a chat")
    result.add_argument("--svg", type=int, default=0, metavar="N", help="also draw the first N boards of each size")
    if result.parse_known_args()[0].tiny:
        result.set_defaults(**TINY)
    return result.parse_args()


def rows_of_size(size: int, args: argparse.Namespace, rng: random.Random) -> dict[str, list[dict]]:
    """Returns rows of one size by split, equally many of each difficulty."""
    quotas = {split: round(share * args.boards) for split, share in SHARES.items()}
    quotas["sft"] = -(-args.lessons // (len(args.sizes) * len(args.difficulties)))
    found: dict[tuple[str, str], list[dict]] = {(split, kind): [] for split in quotas for kind in args.difficulties}
    seen, tried, given_up = set(), 0, 0
    while tried < args.layouts and any(len(found[split, kind]) < quotas[split] for split, kind in found):
        tried += 1
        layout = draw_layout(size, args.walls, rng)
        explored = explore(layout, args.most_boards)
        if explored is None:
            given_up += 1
            continue
        key = identity(layout, explored)
        if key in seen:
            continue
        seen.add(key)
        [split] = rng.choices(list(quotas), list(quotas.values()))
        for kind, state in some_boards(size, explored, args.per_layout, rng):
            if kind in args.difficulties and len(found[split, kind]) < quotas[split]:
                found[split, kind].append(row_of(layout, explored, state, f"{size}x{size}-{len(seen)}", args.prompt))
    kept = {split: min(len(found[split, kind]) for kind in args.difficulties) for split in quotas}
    boards = sum(kept[split] * len(args.difficulties) for split in SHARES)
    print(f"{size}x{size}: {boards} boards from {len(seen)} layouts of {tried}; {given_up} larger ones were given up")
    return {split: [row for kind in args.difficulties for row in found[split, kind][: kept[split]]] for split in quotas}


def draw_layout(size: int, walls: int, rng: random.Random) -> Layout:
    """Lays car A, other cars and walls at random."""
    taken: set[int] = set()
    laid: list[tuple[Car, int]] = []
    target = Car(True, True, rng.randrange(size), 2)
    wanted = rng.randint(*CARS[size])
    for number in range(wanted * TRIES):
        across = rng.random() < ACROSS
        car = Car(False, across, rng.randrange(size), 3 if rng.random() < LONG else 2) if number else target
        begin = rng.randrange(size - car.length + 1)
        cells = cells_of(size, car, begin)
        if not taken.intersection(cells):
            taken.update(cells)
            laid.append((car, begin))
        if len(laid) == wanted:
            break
    free = sorted(set(range(size * size)) - taken)
    blocks = frozenset(rng.sample(free, min(len(free), rng.randint(0, walls))))
    laid.sort(key=lambda pair: (not pair[0].is_target, *pair[0][1:3], pair[1]))  # in a line, the order stays
    return Layout(size, tuple(car for car, _ in laid), blocks, tuple(begin for _, begin in laid))


def cells_of(size: int, car: Car, begin: int) -> list[int]:
    """Returns the cells that a car takes."""
    along = range(begin, begin + car.length)
    return [car.line * size + place if car.across else place * size + car.line for place in along]


def explore(layout: Layout, most: int) -> Explored | None:
    """Finds all boards of a layout and their distance to the goal; None if there are more than `most`."""
    size, cars = layout.size, layout.cars
    masks = [
        [sum(1 << cell for cell in cells_of(size, car, begin)) for begin in range(size - car.length + 1)]
        for car in cars
    ]
    walls = sum(1 << cell for cell in layout.walls)
    states, places, neighbours = [layout.start], {layout.start: 0}, []
    for state in states:  # grows on the way
        taken = walls
        for mask, begin in zip(masks, state, strict=True):
            taken |= mask[begin]
        near = []
        for number, (mask, begin) in enumerate(zip(masks, state, strict=True)):
            others = taken ^ mask[begin]
            for way in (range(begin + 1, len(mask)), range(begin - 1, -1, -1)):
                for place in way:
                    if mask[place] & others:
                        break
                    after = (*state[:number], place, *state[number + 1 :])
                    if after not in places:
                        places[after] = len(states)
                        states.append(after)
                    near.append(places[after])
        neighbours.append(near)
        if len(states) > most:
            return None
    return Explored(states, places, neighbours, distances(states, neighbours, goal=size - 2))


def distances(states: Sequence[State], neighbours: Sequence[Sequence[int]], goal: int) -> list[int | None]:
    """Returns the least number of moves from each board to one where car A is at the goal; None where there is none."""
    reached = [index for index, state in enumerate(states) if state[0] == goal]
    moves: list[int | None] = [None] * len(states)
    for index in reached:
        moves[index] = 0
    for index in reached:  # grows on the way
        for near in neighbours[index]:
            if moves[near] is None:
                moves[near] = moves[index] + 1
                reached.append(near)
    return moves


def identity(layout: Layout, explored: Explored) -> tuple:
    """Returns a key shared by all boards that can be reached from each other, and by their mirror images."""
    size, cars = layout.size, layout.cars
    mirrored = [car._replace(line=size - 1 - car.line) if car.across else car for car in cars]
    turned = [
        tuple(begin if car.across else size - car.length - begin for car, begin in zip(cars, state, strict=True))
        for state in explored.states
    ]
    order = sorted(range(len(cars)), key=lambda i: (not cars[i].is_target, *mirrored[i][1:3], turned[0][i]))
    walls = [(size - 1 - cell // size) * size + cell % size for cell in layout.walls]
    plain = cars, tuple(sorted(layout.walls)), min(explored.states)
    mirror = (
        tuple(mirrored[i] for i in order),
        tuple(sorted(walls)),
        min(tuple(state[i] for i in order) for state in turned),
    )
    return min(plain, mirror)


def some_boards(size: int, explored: Explored, most: int, rng: random.Random) -> Iterator[tuple[str, State]]:
    """Yields up to `most` boards of each difficulty, with their difficulty."""
    kinds: dict[str, list[State]] = {kind: [] for kind in DIFFICULTIES}
    for state, moves in zip(explored.states, explored.moves, strict=True):
        if moves is not None and moves > 1:
            kinds[difficulty(size, moves)].append(state)
    for kind, states in kinds.items():
        for state in rng.sample(states, min(most, len(states))):
            yield kind, state


def difficulty(size: int, moves: int) -> str:
    """Returns easy, medium or hard."""
    medium, hard = LIMITS[size]
    return DIFFICULTIES[(moves >= medium) + (moves >= hard)]


def row_of(layout: Layout, explored: Explored, state: State, name: str, prompt: str) -> dict:
    """Returns one row. Raises RuntimeError if its solution does not solve it."""
    board, letters = board_of(layout, state)
    solution = [move_between(layout.cars, letters, *pair) for pair in shortest(explored, state)]
    end = replay(board, solution)
    if not end.solved or end.legal != len(solution) or read_moves(" ".join(map(str, solution)), "strict") != solution:
        raise RuntimeError(f"the solver's answer {solution} does not solve {board}: a bug in this file")
    size = layout.size
    row = {"board": board, "size": size, "moves": len(solution), "solution": list(map(str, solution))}
    row |= {"difficulty": difficulty(size, len(solution)), "layout": name, "drawing": drawing(board)}
    return row | chat(prompt.format(**row), answer(solution))


def board_of(layout: Layout, state: State) -> tuple[str, list[str]]:
    """Returns a board and the letter of each car; but for A, they are given out in reading order."""
    owners = {cell: i for i, car in enumerate(layout.cars) for cell in cells_of(layout.size, car, state[i])}
    order = [0, *dict.fromkeys(owners[cell] for cell in sorted(owners) if owners[cell])]
    letters = [chr(ord(TARGET) + order.index(i)) for i in range(len(layout.cars))]
    cells = range(layout.size**2)
    return "".join(WALL if c in layout.walls else letters[owners[c]] if c in owners else EMPTY for c in cells), letters


def shortest(explored: Explored, state: State) -> Iterator[tuple[State, State]]:
    """Yields the boards before and after each move of an optimal solution."""
    index = explored.places[state]
    while explored.moves[index]:
        nearer = next(near for near in explored.neighbours[index] if explored.moves[near] == explored.moves[index] - 1)
        yield explored.states[index], explored.states[nearer]
        index = nearer


def move_between(cars: Sequence[Car], letters: Sequence[str], before: State, after: State) -> Move:
    """Returns the move that leads from one board to the next."""
    [number] = [i for i in range(len(cars)) if before[i] != after[i]]
    steps = after[number] - before[number]
    arrow = ("<>" if cars[number].across else "^v")[steps > 0]
    return Move(letters[number], arrow, abs(steps))


def chats(rows: list[dict], args: argparse.Namespace, rng: random.Random) -> Iterator[dict]:
    """Yields lessons, then chats with slips, about the same boards."""
    rng.shuffle(rows)
    for number, row in enumerate(islice(cycle(rows), args.lessons + args.chats)):
        moves = read_moves(" ".join(row["solution"]), "strict")
        slips = args.slips if number >= args.lessons else 0.0
        letters = sorted(set(row["board"]) - {EMPTY, WALL})
        moves = [careless(move, letters, row["size"], slips, rng) for move in moves]
        yield chat(args.prompt.format(**row), answer(moves))


def careless(move: Move, letters: Sequence[str], size: int, slips: float, rng: random.Random) -> Move:
    """Returns a move of which, with this probability, the car, the direction or the steps are wrong."""
    if rng.random() >= slips:
        return move
    part = rng.choice(("car", "arrow", "steps"))
    others: dict[str, Sequence] = {"car": letters, "arrow": "<>^v", "steps": range(1, size)}
    return move._replace(**{part: rng.choice([other for other in others[part] if other != getattr(move, part)])})


def answer(moves: Iterable[Move]) -> str:
    """Returns the text of an answer."""
    return f"<answer>{' '.join(map(str, moves))}</answer>"


def drawing(board: str) -> str:
    """Returns a board as rows of text."""
    size = size_of(board)
    return "\n".join(board[begin : begin + size] for begin in range(0, len(board), size))


def svg(board: str) -> str:
    """Returns a board as a picture: cars are boxes with their letter, walls are dark, the exit is at the right of A."""
    size = size_of(board)
    parts = [f'<rect x="0" y="0" width="{size}" height="{size}" fill="#eee"/>']
    for name in dict.fromkeys(board):
        cells = [index for index, cell in enumerate(board) if cell == name]
        boxes = [[cell] for cell in cells] if name == WALL else [cells] if name != EMPTY else []
        for box in boxes:
            x, y = box[0] % size, box[0] // size
            width, height = box[-1] % size - x + 0.9, box[-1] // size - y + 0.9
            colour = "#333" if name == WALL else COLOURS[(ord(name) - ord(TARGET)) % len(COLOURS)]
            parts.append(
                f'<rect x="{x + 0.05}" y="{y + 0.05}" width="{width:g}" height="{height:g}" rx="0.15" fill="{colour}"/>'
            )
            if name != WALL:
                parts.append(
                    f'<text x="{x + width / 2 + 0.05:g}" y="{y + height / 2 + 0.2:g}" font-size="0.45" fill="#fff" '
                    f'text-anchor="middle" font-family="sans-serif">{name}</text>'
                )
    row = board.index(TARGET) // size
    parts.append(f'<rect x="{size}" y="{row}" width="0.12" height="1" fill="{COLOURS[0]}"/>')
    inside = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size + 0.12} {size}" width="{60 * size}">\n'
        f"{inside}\n</svg>\n"
    )


if __name__ == "__main__":
    main()

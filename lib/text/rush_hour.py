"""Rush Hour: boards and moves, read from text and replayed.

A board is a text of N*N cells, row by row: `o` is empty, `x` is a wall, a capital letter is a part of a car. The puzzle
is solved when the horizontal car `A` reaches the last column. A move is a car, one of `< > ^ v` and a number of steps,
such as `Bv2`; a slide over any distance is one move. Every function takes any text and runs in linear time.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

EMPTY, WALL, TARGET = "o", "x", "A"
READINGS = ("strict", "tolerant")
_ARROWS = {**{arrow: arrow for arrow in "<>^v"}, "V": "v", "U": "^", "D": "v", "L": "<", "R": ">"}
_STRICT = re.compile(r"([A-Z])([<>^vV])(0*[1-9][0-9]*)")
_TOLERANT = re.compile(
    r"(?<![A-Za-z])([A-Za-z])[ \t]*([<>^vVUDLR])[ \t]*([0-9]+)(?![0-9\u00ad\u200b-\u200f\u2060-\u2064\ufeff]|\.[0-9])"
)
_SEPARATORS = re.compile(r"[ \t\r\n,]+")


class Move(NamedTuple):
    """One car's slide."""

    car: str
    arrow: str  # one of < > ^ v
    steps: int

    def __str__(self) -> str:
        return f"{self.car}{self.arrow}{self.steps}"


class Replay(NamedTuple):
    """The result of making moves one after the other, up to the goal or to the first illegal one."""

    legal: int  # moves
    solved: bool
    board: str  # afterwards; an illegal move slides its car until it is stopped


def board_problem(board: str) -> str:
    """Returns why a text is no board to be solved, in a few words; "" if it is one."""
    size = size_of(board)
    if size < 2 or size * size != len(board):
        return f"{len(board)} cells, which is no square"
    for car in sorted(set(board) - {EMPTY, WALL}):
        if not "A" <= car <= "Z":
            return f"{car!r} is no cell: expected o, x or a capital letter"
        cells = [index for index, cell in enumerate(board) if cell == car]
        step = cells[1] - cells[0] if len(cells) > 1 else 0
        in_line = step == size or (step == 1 and cells[0] // size == cells[-1] // size)
        if not in_line or cells != list(range(cells[0], cells[-1] + 1, step)):
            return f"{car} is no car: expected two or more cells in one line"
    first = board.find(TARGET)
    if first < 0 or board[first + 1] != TARGET:
        return "no horizontal car A"
    return "A stands at the goal already" if is_solved(board) else ""


def size_of(board: str) -> int:
    """Returns how many rows and columns a board has."""
    return int(len(board) ** 0.5)


def is_solved(board: str) -> bool:
    """True if car A has reached the last column."""
    return TARGET in board[size_of(board) - 1 :: size_of(board)]


def to_go(board: str) -> int:
    """Returns the columns from car A to the last one, plus how many of the cells between them are taken."""
    size, end = size_of(board), board.rindex(TARGET)
    way = board[end + 1 : end - end % size + size]
    return len(way) + sum(cell != EMPTY for cell in way)


def read_moves(text: str, reading: str) -> list[Move]:
    """Returns the moves that a text states; [] for none. Slides that continue each other are one move.

    strict     the text is nothing but moves, such as `B^1 A>2`, between blanks and commas; [] for any other text
    tolerant   moves are looked for in the text; blanks may stand within a move, U D L R for a direction, a small letter
               for a car; moves of no steps are left out
    """
    if reading == "strict":
        pieces = [_STRICT.fullmatch(piece) for piece in _SEPARATORS.split(text) if piece]
        matches: Iterable[re.Match | None] = pieces if all(pieces) else ()
    else:
        matches = _TOLERANT.finditer(text)
    moves: list[Move] = []
    for match in matches:
        # a hundred steps are beyond any board, and int() refuses thousands of digits
        car, arrow, steps = match[1].upper(), _ARROWS[match[2]], int(match[3].lstrip("0")[:3] or 0)
        if moves and moves[-1][:2] == (car, arrow):
            moves[-1] = Move(car, arrow, moves[-1].steps + steps)
        elif steps:
            moves.append(Move(car, arrow, steps))
    return moves


def replay(board: str, moves: Iterable[Move]) -> Replay:
    """Makes moves on a board until it is solved or one of them is illegal."""
    legal = 0
    for move in moves:
        board, is_legal = _slide(board, move)
        if not is_legal:
            return Replay(legal, False, board)
        legal += 1
        if is_solved(board):
            return Replay(legal, True, board)
    return Replay(legal, False, board)


def _slide(board: str, move: Move) -> tuple[str, bool]:
    """Slides a car up to the move's end or the first obstacle; also True if it reached the end."""
    size = size_of(board)
    cells = [index for index, cell in enumerate(board) if cell == move.car]
    is_across = move.arrow in "<>"
    if not cells or is_across != (cells[1] - cells[0] == 1):
        return board, False
    step = {"<": -1, ">": 1, "^": -size, "v": size}[move.arrow]
    front, made = cells[-1] if step > 0 else cells[0], 0
    while made < move.steps:
        ahead = front + step
        if not 0 <= ahead < len(board) or (is_across and ahead // size != front // size) or board[ahead] != EMPTY:
            break
        front, made = ahead, made + 1
    moved = list(board)
    for cell in cells:
        moved[cell] = EMPTY
    for cell in cells:
        moved[cell + made * step] = move.car
    return "".join(moved), made == move.steps

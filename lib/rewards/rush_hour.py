"""Rush Hour, judged by replaying the moves on the row's own board: `rush_hour_exact` and `rush_hour_shaped`.

A row has `board`, `size`, `moves` (of an optimal solution) and `solution` (one of them, as a list or a text); see
data/build_rush_hour.py. The moves are read in the place that `reward.format` declares, `strict` or `tolerant`
(`read_moves`). Right is any legal solution with no more moves than `moves`, and nothing after it.
"""

from collections.abc import Sequence
from itertools import takewhile
from math import isclose
from typing import Any, NamedTuple

from lib.core.errors import ConfigError
from lib.core.registry import Judged, did_you_mean, register_reward
from lib.text.rush_hour import READINGS, Move, Replay, board_problem, read_moves, replay, size_of, to_go

_COLUMNS = ("board", "size", "moves", "solution")
_LONGEST_READ = 20_000  # characters: no honest answer is longer


def _check(rows: Sequence[dict], places: Sequence[object]) -> None:
    """Raises ConfigError for rows that are no puzzle, or whose solution does not solve it in so many moves."""
    flaws = [f"{problem} ({place})" for row, place in zip(rows, places, strict=True) if (problem := _problem(row))]
    if flaws:
        raise ConfigError(
            f"dataset: {len(flaws)} of {len(rows)} rows are no puzzle of Rush Hour: {'; '.join(flaws[:3])}. Fix these "
            "rows, or build others with data/build_rush_hour.py"
        )


def _problem(row: dict) -> str:
    """Returns the problem with a row, in a few words; "" for a sound one."""
    board, size, moves, solution = (row.get(name) for name in _COLUMNS)
    if not isinstance(board, str):
        return f"board: got {board!r}, expected a text of cells"
    if problem := board_problem(board):
        return f"board: got {board[:40]!r}, {problem}"
    if size != size_of(board):
        return f"size: got {size!r}, expected {size_of(board)}, as the board has {len(board)} cells"
    gold = _gold(solution)
    end = replay(board, gold)
    if not (end.solved and end.legal == len(gold) == moves):
        made = "solve it" if end.solved else "do not solve it"
        return f"solution: got {solution!r}, whose {end.legal} legal moves {made}, expected {moves!r} that do"
    return ""


def _gold(solution: Any) -> list[Move]:
    """Returns the moves of the column `solution`, a list of them or one text."""
    return read_moves(" ".join(map(str, solution)) if isinstance(solution, list) else str(solution), "strict")


@register_reward("rush_hour_exact", check=_check)
def rush_hour_exact(prediction_answers, board, size, moves, *, reading="tolerant") -> list[Judged]:
    """Pays 1 for a legal solution of as few moves as possible, 0 for anything else."""
    _check_reading(reading)
    played = [_played(*case, reading) for case in zip(prediction_answers, board, size, moves, strict=True)]
    return [Judged({"exact": float(one.right)}, one.right, one.about, malformed=one.malformed) for one in played]


@register_reward("rush_hour_shaped", check=_check)
def rush_hour_shaped(
    prediction_answers,
    board,
    size,
    moves,
    solution,
    *,
    reading="tolerant",
    exact=0.65,
    solved=0.2,
    prefix=0.1,
    progress=0.05,
) -> list[Judged]:
    """Pays 1 for what `rush_hour_exact` pays 1 for, and less for legal moves on the way to it.

        exact      this much for an optimal solution
        solved     this much for one; divided by 1 + the moves that it has too many, those after the goal included
        prefix     times the share of the moves that come before the first illegal one and up to the goal, or that of
                   the row's solution with which the answer begins, whichever is larger
        progress   times the share of the way to the goal that is gone: columns before car A, and cells taken in them

    Nothing is paid where the first move is illegal. The weights must sum to 1.
    """
    _check_reading(reading)
    weights = {"exact": exact, "solved": solved, "prefix": prefix, "progress": progress}
    if min(weights.values()) < 0 or not isclose(sum(weights.values()), 1):
        given = ", ".join(f"{name} {weight}" for name, weight in weights.items())
        raise ConfigError(f"reward.options: got {given}, expected weights of 0 or more that sum to 1")
    columns = zip(prediction_answers, board, size, moves, solution, strict=True)
    return [_shaped(*case, reading, weights) for case in columns]


def _shaped(
    answer: str, board: str, size: int, most: int, solution: Any, reading: str, weights: dict[str, float]
) -> Judged:
    played = _played(answer, board, size, most, reading)
    parts = dict.fromkeys(weights, 0.0)
    if played.end and played.end.legal:
        gold, made = _gold(solution), len(played.moves)
        same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(played.moves, gold, strict=False))))
        before, after = to_go(board), to_go(played.end.board)
        parts = {
            "exact": float(played.right),
            "solved": played.end.solved / (1 + max(0, made - most)),
            "prefix": max(same / len(gold), played.end.legal / made),
            "progress": max(0.0, (before - after) / before),
        }
    paid = {name: weights[name] * part for name, part in parts.items()}
    return Judged(paid, played.right, played.about, malformed=played.malformed)


class _Played(NamedTuple):
    """An answer's moves, and what became of them on its row's board."""

    moves: list[Move]
    end: Replay | None  # None: no moves were found
    right: bool
    about: str  # a line for the log
    malformed: str | None = None  # what keeps a text that is in the right place from being moves


def _played(answer: str, board: str, size: int, most: int, reading: str) -> _Played:
    """Replays an answer. Raises ConfigError where there is no board to replay it on."""
    if problem := board_problem(board):
        raise ConfigError(f"column 'board': got {board[:40]!r}, {problem}; fix the row")
    if size != size_of(board):
        raise ConfigError(f"column 'size': got {size!r} for a board of {len(board)} cells; fix the row")
    moves = read_moves(answer[:_LONGEST_READ], reading)
    if not moves or len(answer) > _LONGEST_READ:
        problem = "too long for moves" if moves else "no moves" if reading == "tolerant" else "not only moves"
        return _Played([], None, False, problem, problem if answer else None)
    end = replay(board, moves)
    right = end.solved and end.legal == len(moves) <= most
    if end.solved:
        about = f"solved by {end.legal} moves of {len(moves)}, expected {most}"
    elif end.legal < len(moves):
        about = f"move {end.legal + 1} of {len(moves)} is illegal: {moves[end.legal]}"
    else:
        about = f"not solved by {len(moves)} moves"
    return _Played(moves, end, right, about)


def _check_reading(reading: str) -> None:
    if reading not in READINGS:
        raise ConfigError(
            f"reward.options.reading: got '{reading}', expected one of {', '.join(READINGS)}"
            f"{did_you_mean(reading, READINGS)}"
        )

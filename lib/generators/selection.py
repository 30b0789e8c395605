"""Chooses the rollouts to keep, by a few numbers of each, so that a million of them fit into memory."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lib.core.config import Collection
from lib.generators.reply_cache import key_of
from lib.run.runlog import read_lines


@dataclass(frozen=True, slots=True)
class Entry:
    """The properties of a rollout that a selection uses, and its place in the file."""

    id: str
    prompt_id: str
    reward: float  # minus infinity where there is none
    is_match: bool
    is_whole: bool  # an answer that was not cut off
    tokens: int  # written
    content: str  # the same for equal chats
    start: int  # bytes
    size: int


def rollouts(path: Path) -> Iterator[tuple[dict[str, Any], Entry]]:
    """Yields every row of a rollouts.jsonl with its entry."""
    for row, start, size, *_ in read_lines(path):
        if row is None:
            continue  # torn by a kill
        reward = row.get("reward")
        yield (
            row,
            Entry(
                id=row["id"],
                prompt_id=row["prompt_id"],
                reward=-math.inf if reward is None else reward,
                is_match=bool(row.get("match")),
                is_whole=row["ended"] == "answer" and row["reasoning_ended"],
                tokens=row["usage"]["completion_tokens"],
                content=key_of(row["messages"]),
                start=start,
                size=size,
            ),
        )


def select(entries: list[Entry], settings: Collection, takes_cut: bool = False) -> tuple[list[Entry], str]:
    """Returns the entries that `settings` keep, in their order, and a summary of how many were left out and why.

    Answers that were cut off are left out unless `takes_cut`, as the reward does.
    """
    left_out: Counter[str] = Counter()

    def kept(entries: list[Entry], why: str, keep: Callable[[Entry], bool]) -> list[Entry]:
        result = [entry for entry in entries if keep(entry)]
        left_out[why] += len(entries) - len(result)
        return result

    entries = kept(entries, "cut off", lambda entry: takes_cut or entry.is_whole)
    if settings.only_matches:
        entries = kept(entries, "not right", lambda entry: entry.is_match)
    if settings.distinct:
        first = {entry.content: entry.id for entry in reversed(entries)}
        entries = kept(entries, "repeated", lambda entry: first[entry.content] == entry.id)
    if settings.best_of is not None:
        best = _best(entries, settings.best_of)
        entries = kept(entries, f"not among the best {settings.best_of} of a prompt", lambda entry: entry.id in best)
    listed = ", ".join(f"{count} {why}" for why, count in left_out.items() if count)
    return entries, f" ({listed} left out)" if listed else ""


def _best(entries: list[Entry], count: int) -> set[str]:
    """Returns the ids of the best `count` entries of each prompt: by reward, and of equal ones the shortest."""
    places: Counter[str] = Counter()
    best = set()
    for entry in sorted(entries, key=lambda entry: (-entry.reward, entry.tokens)):
        places[entry.prompt_id] += 1
        if places[entry.prompt_id] <= count:
            best.add(entry.id)
    return best


def lines(path: Path, entries: Iterable[Entry]) -> Iterator[bytes]:
    """Yields the rows of these entries, as they stand in the file."""
    with open(path, "rb") as file:
        for entry in entries:
            file.seek(entry.start)
            yield file.read(entry.size)

"""Counts prompts solved by the policy, its opponent, both or neither; and, separately, those solved with help.

A game is one prompt of one step: the first of the policy's answers against the opponent's one. So games do not depend
on the size of a group. But a prompt comes again, and the opponent's answer to it is kept: its games are one cluster of
the interval. Where a curriculum chooses prompts, they come again by how their games ended, and of two equal players one
would win more: there the rate is that of the first game of each prompt, before anything was known of it.

Right means exact match. `neither` and `opponent_only` are about games here; in the frontier files, and for hints, they
are about whole groups.
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lib.core.console import interval, share
from lib.core.stats import rate_interval_of_totals
from lib.run.runlog import encode, write_whole

CELLS = ("both", "policy_only", "opponent_only", "neither")  # right or not: the policy's answer, then the opponent's
FRONTIER = ("neither", "opponent_only")  # rows that no answer of a group solved, by whether the opponent did


@dataclasses.dataclass
class Scoreboard:
    """Counts since the run began; saved and restored as a whole. Assisted successes never enter the games."""

    both: int = 0
    policy_only: int = 0
    opponent_only: int = 0
    neither: int = 0
    missing_games: int = 0  # the opponent did not answer, or one of the two answers could not be judged
    missing_steps: list[int] = dataclasses.field(default_factory=list)  # [first, last, count] of steps with such games
    assisted: dict[str, int] = dataclasses.field(default_factory=dict)  # outcomes of hints, retries and solutions
    chosen: int = 0  # games whose prompt a curriculum chose
    by_prompt: dict[str, list[int]] = dataclasses.field(default_factory=dict)  # [wins, losses, first game: 1, 0 or -1]
    frontier: set[str] = dataclasses.field(default_factory=set)  # keys of the rows in the frontier files

    def record(self, games: Sequence[tuple[str, bool | None, bool | None]], step: int, chosen: bool = False) -> None:
        """Counts the games of a step, each a prompt's key and whether the policy and the opponent were right.

        None: not answered, or not judged. `chosen`: a curriculum drew the prompts.
        """
        missing = 0
        for prompt, mine, theirs in games:
            if mine is None or theirs is None:
                missing += 1
                continue
            name = CELLS[2 * (not mine) + (not theirs)]
            setattr(self, name, getattr(self, name) + 1)
            self.chosen += chosen
            tally = self.by_prompt.setdefault(prompt, [0, 0, int(mine) - int(theirs)])
            tally[0] += mine > theirs
            tally[1] += mine < theirs
        if missing:
            self.missing_games += missing
            first, _, steps = self.missing_steps or (step, step, 0)
            self.missing_steps = [first, step, steps + 1]

    def assist(self, counts: dict[str, int]) -> None:
        """Adds to the outcomes of help."""
        self.assisted = dict(Counter(self.assisted) + Counter(counts))

    @property
    def total(self) -> int:
        """Returns the number of games that both sides played."""
        return sum(getattr(self, name) for name in CELLS)

    def win_rate(self) -> tuple[float | None, list[float | None], int]:
        """Returns the rate of decisive games that the policy won, its interval and its n; None and 0 without any.

        Prompts are the clusters. Where a curriculum chose prompts, only the first game of each prompt counts.
        """
        if self.chosen:
            games = [(int(first > 0), 1) for *_, first in self.by_prompt.values() if first]
        else:
            games = [(wins, wins + losses) for wins, losses, _ in self.by_prompt.values() if wins + losses]
        if not games:
            return None, [None, None], 0
        won, played = zip(*games, strict=True)
        return sum(won) / sum(played), list(rate_interval_of_totals(won, played)), sum(played)

    def summary(self) -> dict[str, Any]:
        """Returns the counts, and the rate of decisive games that the policy won, with interval; null without any."""
        rate, interval, n = self.win_rate()
        return {
            **{name: getattr(self, name) for name in CELLS},
            "total": self.total,
            "games_of": "prompts that the curriculum chose" if self.chosen else "prompts drawn alike",
            "wins": self.policy_only,
            "losses": self.opponent_only,
            "ties": self.both + self.neither,
            "n_decisive": self.policy_only + self.opponent_only,
            "win_rate_of": "the first game of each prompt" if self.chosen else "all games",
            "win_rate": rate,
            "win_rate_ci95": interval,
            "win_rate_n": n,
            "missing_games": self.missing_games,
            "missing_steps": dict(zip(("first", "last", "steps"), self.missing_steps, strict=False)),
            "assisted": dict(sorted(self.assisted.items())),
        }

    def lines(self) -> list[str]:
        """Returns the counts as lines for people."""
        counts = ", ".join(f"{name.replace('_', ' ')} {getattr(self, name)}" for name in CELLS)
        of = " of prompts that the curriculum chose" if self.chosen else ""
        lines = [f"scoreboard of {self.total} games{of}: {counts}"] if self.total else []
        rate, ends, n = self.win_rate()
        if n:
            only = "; of each prompt its first game alone: how that ended decides which come again"
            line = f"decisive games won: {share(rate)} [{interval(ends)}], n = {n}"
            lines.append(line + (only if self.chosen else ""))
        if self.missing_games:
            first, last, steps = self.missing_steps
            lines.append(
                f"WARNING: {self.missing_games} games of {steps} steps, between step {first} and step {last}, have no "
                "result: the opponent was unavailable, or an answer could not be judged; its term was masked there"
            )
        if self.assisted:
            lines.append(", ".join(f"{name.replace('_', ' ')} {n}" for name, n in sorted(self.assisted.items())))
        return lines

    def write(self, directory: Path) -> None:
        """Writes `scoreboard.json`, as a whole or not at all. Raises StorageError."""
        write_whole(directory / "scoreboard.json", [encode(self.summary())])

    def state_dict(self) -> dict[str, Any]:
        """Returns every field."""
        return vars(self) | {"frontier": sorted(self.frontier)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Sets every field."""
        vars(self).update(state, frontier=set(state["frontier"]))

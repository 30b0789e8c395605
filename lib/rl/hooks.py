"""Hooks after an optimizer step: a run calls them in order, with trees, their credit, and a row of metrics.jsonl.

Hooks before `write_row` add numbers to the row, those after it read them.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from lib.rl.credit import Credit
from lib.rl.session import Session

Hook = Callable[[list[Any], Credit, dict[str, Any]], None]


def log_hooks(session: Session) -> list[Hook]:
    """Returns the hooks that write the row and read it."""
    return [partial(hook, session) for hook in (write_row, track, show, watch)]


def write_row(session: Session, trees: list[Any], credit: Credit, row: dict[str, Any]) -> None:
    """Writes the row, with its seconds and the distance of each part of the adapter from its start."""
    seconds = session.clock.lap()
    row |= seconds | {"tokens_per_second": row["tokens"] / sum(seconds.values())}
    row["parameters"] = sum(parameter.numel() for parameter in session.policy.trainable)
    drifts = session.policy.shelf.drifts() if session.policy.shelf else {}
    row |= {f"drift/{name}": float(values.square().mean().sqrt()) for name, values in drifts.items()}
    session.log.write("metrics", row | session.restored("metrics"))
    session.log.sync()


def track(session: Session, trees: list[Any], credit: Credit, row: dict[str, Any]) -> None:
    """Logs the row on the dashboard."""
    session.tracker.log(f"stage{row['stage']}", row, row["global_step"])


def show(session: Session, trees: list[Any], credit: Credit, row: dict[str, Any]) -> None:
    """Prints the row and the time left, and takes a profile if one is due."""
    if text := session.profile.step():
        session.screen.say(text)
    session.steps_done += 1
    pace = (time.monotonic() - session.started) / session.steps_done  # evaluations and checkpoints included
    session.screen.step(row, pace * sum(session.work_left().steps.values()))


def watch(session: Session, trees: list[Any], credit: Credit, row: dict[str, Any]) -> None:
    """Passes the row to the watch, which may raise alarms."""
    session.handle_alarms(session.watch.step(row))

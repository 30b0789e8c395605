"""Hooks after an optimizer step: a run calls them in order, with trees, their credit, and a row of metrics.jsonl.

Those of a run add numbers to the row; the last one logs it.
"""

import time
from collections.abc import Callable
from typing import Any

from lib.rl.credit import Credit
from lib.rl.session import Session

Hook = Callable[[list[Any], Credit, dict[str, Any]], None]


def log_row(session: Session, trees: list[Any], credit: Credit, row: dict[str, Any]) -> None:
    """Writes and prints the row, and passes it to the dashboard and to the watch, which may raise alarms.

    Adds its seconds, and the distance of each part of the adapter from its start.
    """
    seconds = session.clock.lap()
    row |= seconds | {"tokens_per_second": row["tokens"] / sum(seconds.values())}
    row["parameters"] = sum(parameter.numel() for parameter in session.policy.trainable)
    drifts = session.policy.shelf.drifts() if session.policy.shelf else {}
    row |= {f"drift/{name}": float(values.square().mean().sqrt()) for name, values in drifts.items()}
    session.log.write("metrics", row | session.restored("metrics"))
    session.log.sync()
    session.tracker.log(f"stage{row['stage']}", row, row["global_step"])
    session.steps_done += 1
    pace = (time.monotonic() - session.started) / session.steps_done  # evaluations and checkpoints included
    session.screen.step(row, pace * sum(session.work_left().steps.values()))
    session.handle_alarms(session.watch.step(row))

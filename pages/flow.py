"""From attempt 1 to the last attempt: what became of right, wrong and malformed answers, before training and after."""

from collections import Counter
from collections.abc import Sequence

from lib.core.console import WHEN
from pages.blocks import Cell, PageSection, TableLine, TextTable, percent
from pages.rollouts import STATES, Rollouts
from pages.run_folder import RunFolder


def flow(runs: Sequence[RunFolder], rollouts: Rollouts) -> list[PageSection]:
    """Returns a table per run and evaluation, the first and the last; empty where nothing was answered twice."""
    tables = []
    for number, run in enumerate(runs):
        ends = dict.fromkeys((row["when"], row["global_step"]) for row in (run.milestones[:1] + run.milestones[-1:]))
        for when, step in ends:
            found = [
                place
                for place, moment in enumerate(rollouts.moments)
                if (moment["run"], moment["when"], moment["step"]) == (number, when, step)
            ]
            counts = Counter(unit["flow"] for unit in rollouts.units if unit["moment"] in found[:1])
            counts.pop(-1, None)
            if counts:
                label = WHEN.get(when) or f"step {step}"
                tables.append(_table(f"{run.name}, {label}" if len(runs) > 1 else label, counts, found[0]))
    note = "Shares of the held-out answers; a click shows their texts. Malformed: whether its answer is right or not."
    if any(run.is_free for run in runs):
        note += " No format is declared here: malformed is what lacks the form that most texts had at first."
    return [PageSection("From attempt 1 to the last", tables, note)] if tables else []


def _table(title: str, counts: Counter, moment: int) -> TextTable:
    total = sum(counts.values())
    lines = []
    for first, before in enumerate(STATES):
        cells = []
        for last in range(len(STATES)):
            count = counts[3 * first + last]
            link = f"at={moment}&flow={3 * first + last}" if count else ""
            cells.append(Cell(percent(count / total), str(count), link, count / total) if count else Cell("–"))
        lines.append(TableLine(f"{before} →", cells))
    return TextTable([("right", "good"), ("wrong", "bad"), ("malformed", "muted")], lines, "flow", title)

"""From attempt 1 to the last attempt: one corrected answer, and what became of right, wrong and malformed ones."""

from collections import Counter
from collections.abc import Sequence

from lib.core.console import WHEN, share
from pages.blocks import Cell, Correction, PageSection, TableLine, TextTable, seen
from pages.rollouts import STATES, Rollouts, own_texts
from pages.run_folder import RunFolder

CORRECTED = 3 * STATES.index("wrong") + STATES.index("right")
LONGEST = 2_000  # characters of a text on the first screen


def correction(run: RunFolder, rollouts: Rollouts) -> list[Correction]:
    """Returns the first corrected answer of a run's last evaluation; empty where nothing was corrected."""
    place = place_of(rollouts, 0, run.milestones[-1]) if run.milestones else None
    units = [unit for unit in rollouts.units if unit["moment"] == place and unit["flow"] == CORRECTED]
    if not units:
        return []
    texts = own_texts(units[0]["body"]["texts"])
    wrong, right = ((text["who"], seen(text["text"], LONGEST)) for text in (texts[0], texts[-1]))
    which = f"The first of {len(units):,}" if len(units) > 1 else "The only one"
    caption = f"{which}, {rollouts.moments[place]['label']}, held out."
    question = seen(rollouts.prompts[units[0]["prompt"]], LONGEST)
    return [Correction(question, wrong, right, caption, f"at={place}&flow={CORRECTED}")]


def place_of(rollouts: Rollouts, number: int, row: dict) -> int | None:
    """Returns the index of the first moment of the run `number` with the rollouts of an evaluation; None without it."""
    wanted = (number, row["when"], row["global_step"])
    moments = ((moment["run"], moment["when"], moment["step"]) for moment in rollouts.moments)
    return next((place for place, moment in enumerate(moments) if moment == wanted), None)


def flow(runs: Sequence[RunFolder], rollouts: Rollouts) -> list[PageSection]:
    """Returns a table per run and evaluation, the first and the last; empty where nothing was answered twice."""
    tables = []
    for number, run in enumerate(runs):
        for row in run.milestones[:1] + run.milestones[1:][-1:]:
            place = place_of(rollouts, number, row)
            counts = Counter(unit["flow"] for unit in rollouts.units if unit["moment"] == place)
            counts.pop(-1, None)
            if counts:
                label = WHEN.get(row["when"]) or f"step {row['global_step']}"
                tables.append(_table(f"{run.name}, {label}" if len(runs) > 1 else label, counts, place))
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
            cells.append(Cell(share(count / total), str(count), link, count / total) if count else Cell("–"))
        lines.append(TableLine(f"{before} →", cells))
    return TextTable([("right", "good"), ("wrong", "bad"), ("malformed", "muted")], lines, "flow", title)

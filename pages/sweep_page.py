"""The page of a sweep: conditions, curves of every run, figures over seeds, and a line per run."""

from itertools import groupby
from statistics import median
from typing import Any

from lib.core.config import SweepConfig, dump
from lib.core.console import duration
from lib.run.runlog import is_number
from pages.blocks import Cell, Charts, Facts, Listing, PageSection, TableLine, TextTable, line_of, muted
from pages.curves import ChartPoint, placed
from pages.page import render_sections
from pages.sweep_tables import (
    FIGURES,
    SUMMARY_HEADS,
    FigureRows,
    SweepOutcome,
    VariantTable,
    begun_alarms,
    last_values,
    rounded,
    with_feedback,
)

COLOUR_NAMES = ("two", "one", "good", "bad", "muted")  # of variants


def page_of(config: SweepConfig, outcome: SweepOutcome) -> str:
    """Returns the whole page."""
    results, verdicts = outcome.all_results, outcome.verdicts
    told = f"{len(results)} of {len(config.all_seeds) * len(config.variants)} runs"
    told += f", {len(outcome.failed)} of them failed" if outcome.failed else ""
    if verdicts:
        told += f"; {sum(verdict.holds for verdict in verdicts)} of {len(verdicts)} conditions hold in every run"
    sections = []
    if verdicts:
        lines = [line_of(verdict.text, [verdict.variant, verdict.count, verdict.worst], "" if verdict.holds else "lost")
                 for verdict in verdicts]  # fmt: skip
        note = "Each must hold in every run; worst: the value in the run that meets it by least, or misses it by most. "
        note += "In brackets: Wilson's interval of the share of runs, 95 %."
        sections.append(PageSection("Conditions", [TextTable(muted("variant", "runs", "worst"), lines, "keys")], note))
    baseline = next(iter(outcome.figures))
    if outcome.compared.lines:
        note = "Parameters and seconds: medians. Accuracies: means with Student's intervals, 95 %, a run as the unit. "
        note += "With the same stop: the accuracy of chats that end with their first right attempt, by an oracle."
        sections.append(PageSection("Side by side", [of_variants(outcome.compared)], note))
    if outcome.paired.lines:
        note = "Means of the differences, paired by seed, with Student's intervals, 95 %. A variant trained without "
        note += "feedback has one accuracy, which also counts as that without feedback. Last less best attempt 1: the "
        note += f"last attempt less attempt 1, its own or that of {baseline}, whichever is better in a seed."
        sections.append(PageSection(f"Difference from {baseline}", [of_variants(outcome.paired)], note))
    charts = curves(outcome.results)
    if charts:
        note = "A thin line is a run, the bold one the median of the runs of a variant that finished."
        sections.append(PageSection("Curves", [Charts(charts)], note))
    for variant, rows in outcome.figures.items():
        note = "Intervals: Student's, 95 %, with a run as the unit."
        is_folded = len(outcome.figures) > 1  # they stand side by side above
        sections.append(PageSection(f"Figures: {variant}", [by_moment(rows)], note, folded=is_folded))
    sections.append(runs_table(outcome.results))
    lines = [
        line_of(f"{row['variant']}, seed {row['seed']}",
                [f"stage {alarm['stage']}, step {alarm['step']}", alarm["text"]])
        for row in results for alarm in begun_alarms(row)
    ]  # fmt: skip
    if lines:
        sections.append(PageSection("Alarms", [TextTable(muted("begins", ""), lines, "keys")]))
    sections.append(PageSection("Machine", [Facts(machines(results))]))
    sections.append(PageSection("Config", [Listing(dump(config))], folded=True))
    return render_sections(config.run_name, f"{told}.", sections)


def of_variants(table: VariantTable) -> TextTable:
    """Returns a table with a line per variant."""
    heads = muted(*(head.replace("->", "→") for head in table.heads))
    return TextTable(heads, [TableLine(name, list(map(above_interval, cells))) for name, cells in table.lines.items()])


def above_interval(text: str) -> Cell:
    """Returns a cell of the terminal's table as one of the page, where intervals stand below their values."""
    value, bracket, ends = text.partition(" [")
    return Cell(value, bracket.strip() + ends)


def machines(results: list[dict]) -> dict[str, str]:
    """Lists every machine, thread count, commit and set of versions that occurs in the results."""
    values = {
        "machine": {f"{row['cpu']}, {row['cores']} cores" for row in results},
        "threads": {str(row["threads"]) for row in results},
        "commit": {
            (row["commit"] or "unknown")[:12] + (" and changes" if row["is_changed"] else "") for row in results
        },
        "versions": {", ".join(f"{name} {version}" for name, version in row["packages"].items()) for row in results},
    }
    return {name: "; ".join(sorted(each)) for name, each in values.items()}


def by_moment(rows: FigureRows) -> TextTable:
    """Returns a table with a group of lines per moment; greedy and sampled moments have groups of their own."""
    lines = []
    for moment, group in groupby(rows, key=lambda row: row[0].moment):
        lines.append(TableLine(moment or "the whole run"))
        lines += [line_of(summary.name.replace("->", "→"), cells) for summary, cells in group]
    return TextTable(muted(*SUMMARY_HEADS), lines)


def curves(by_variant: dict[str, list[dict]]) -> list[dict[str, Any]]:
    """Returns a chart of every main figure, greedy and sampled separately, where some run has two points."""
    evaluations = [row for rows in by_variant.values() for result in rows for row in result["evaluations"]]
    temperatures = sorted({row.get("temperature") for row in evaluations}, key=lambda value: -(value or 0))
    found = []
    for key, (name, _) in FIGURES.items():
        for temperature in temperatures:
            note = "Greedy." if temperature == 0 else f"At temperature {temperature:g}." if temperature else ""
            found.append(chart_of(by_variant, key, temperature, name.replace("->", "→"), note))
    return [chart for chart in found if chart]


def chart_of(
    by_variant: dict[str, list[dict]], key: str, temperature: float | None, title: str, note: str
) -> dict[str, Any] | None:
    """Returns a chart of one figure as data (`pages.curves`); None unless some run has two points."""

    def points(result: dict) -> list[ChartPoint]:
        rows = (row for row in with_feedback(result["evaluations"]) if row.get("temperature") == temperature)
        return [ChartPoint(row["global_step"], row[key], None) for row in rows if is_number(row.get(key))]

    lines = {variant: [(row, points(row)) for row in rows] for variant, rows in by_variant.items()}
    if not any(len(line) > 1 for pairs in lines.values() for _, line in pairs):
        return None
    steps = sorted({point.step for pairs in lines.values() for _, line in pairs for point in line})
    series = []
    for index, (variant, pairs) in enumerate(lines.items()):
        whole = [placed(steps, line) for result, line in pairs if line and not result["exit_code"]]
        middle = [median(values) if None not in values and values else None for values in zip(*whole, strict=True)]
        series.append({
            "label": variant, "colour": COLOUR_NAMES[index % len(COLOUR_NAMES)], "y": middle or [None] * len(steps),
            "runs": [placed(steps, line) for _, line in pairs],
        })  # fmt: skip
    evaluations = [row for rows in by_variant.values() for result in rows for row in result["evaluations"]]
    stage_starts = {row["global_step"] - row["step"] for row in evaluations if row.get("stage", 1) > 1} - {0}
    return {
        "title": title, "note": note, "log": False, "floor": None, "percent": key != "loss", "hero": False,
        "x": steps, "series": series,
        "marks": [{"x": step, "text": "stage II", "kind": "stage"} for step in sorted(stage_starts)],
    }  # fmt: skip


def runs_table(by_variant: dict[str, list[dict]]) -> PageSection:
    """Returns the table with a line per run: how it ended, and its main figures at the end."""
    values = {(variant, row["seed"]): last_values(row) for variant, rows in by_variant.items() for row in rows}
    shown = [key for key in FIGURES if any(key in row for row in values.values())]
    lines = []
    for variant, rows in by_variant.items():
        lines.append(TableLine(variant))
        for row in sorted(rows, key=lambda each: each["seed"]):
            found = values[variant, row["seed"]]
            numbers = (rounded(found[key]) if key in found else "–" for key in shown)
            seconds = duration(row["seconds"]) + (" *" if row["was_restarted"] else "")
            end = f"{row['failed']}: exit code {row['exit_code']}" if row["exit_code"] else "finished"
            cells = [str(row["threads"]), *numbers, seconds, str(len(begun_alarms(row))), end]
            lines.append(line_of(f"seed {row['seed']}", cells, "lost" if row["exit_code"] else ""))
    heads = muted("threads", *(FIGURES[key][0].replace("->", "→") for key in shown), "time", "alarms", "end")
    starred = any(row["was_restarted"] for rows in by_variant.values() for row in rows)
    note = "* Restarted: the time is that of the last start." if starred else ""
    return PageSection("Runs", [TextTable(heads, lines)], note)

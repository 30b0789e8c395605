"""The page of a sweep: conditions, curves of every run, figures over seeds, differences, and a line per run."""

import html
from itertools import groupby
from statistics import median
from typing import Any

from lib.core.config import SweepConfig, dump
from lib.core.console import duration
from lib.report.layout import COLOURS, facts, heading, page, picture, section, table, table_row
from lib.report.sweep_tables import (
    DIFFERENCE_HEADS,
    FIGURES,
    SUMMARY_HEADS,
    FigureRows,
    SweepOutcome,
    begun_alarms,
    last_values,
    rounded,
    with_feedback,
)
from lib.run.runlog import is_number

COLOUR_NAMES = ("two", "one", "good", "bad", "muted")  # of variants
STROKES = {"solid": "solid", "dashed": (0, (4, 2)), "dotted": (0, (1, 1.5))}  # of numbers of threads


def page_of(config: SweepConfig, outcome: SweepOutcome) -> str:
    """Returns the whole page."""
    results, verdicts = outcome.all_results, outcome.verdicts
    told = f"{len(results)} of {len(config.all_seeds) * len(config.variants)} runs"
    told += f", {len(outcome.failed)} of them failed" if outcome.failed else ""
    if verdicts:
        told += f"; {sum(verdict.holds for verdict in verdicts)} of {len(verdicts)} conditions hold in every run"
    body = [heading(config.run_name, f"{told}."), facts(machines(results))]
    if verdicts:
        rows = [
            table_row(each.text, [each.variant, f"{each.met} of {each.n}", each.worst], "" if each.holds else "lost")
            for each in verdicts
        ]
        note = "Of every run; worst: the left side in the run that is furthest."
        body.append(section("Conditions", table(muted("variant", "runs", "worst"), rows, "keys"), note))
    if outcome.compared:
        lines = [table_row(variant, cells) for variant, cells in outcome.compared.items()]
        note = "Parameters and seconds: medians. Accuracies: means with Student's intervals, 95 %, a run as the unit."
        body.append(section("Side by side", table(muted(*outcome.compared_heads), lines), note))
    figures = curves(outcome.results)
    if figures:
        note = "A thin line is a run, the bold one the median of the runs of a variant that finished."
        body.append(section("Curves", f"{legend(outcome.results)}<div class=figures>{figures}</div>", note))
    for variant, rows in outcome.figures.items():
        note = "Intervals: Student's, 95 %, with a run as the unit."
        body.append(section(f"Figures: {variant}", by_moment(SUMMARY_HEADS, rows), note))
    baseline = next(iter(outcome.figures))
    for variant, rows in outcome.differences.items():
        body.append(section(f"{variant} minus {baseline}", by_moment(DIFFERENCE_HEADS, rows), "Paired by seed."))
    body.append(section("Runs", runs_table(outcome.results)))
    alarms = [
        table_row(f"{row['variant']}, seed {row['seed']}",
                  [f"stage {alarm['stage']}, step {alarm['step']}", alarm["text"]])
        for row in results for alarm in begun_alarms(row)
    ]  # fmt: skip
    if alarms:
        body.append(section("Alarms", table(muted("begins", ""), alarms, "keys")))
    body.append(section("Config", f"<pre class=config>{html.escape(dump(config))}</pre>"))
    return page(config.run_name, body, 0)


def muted(*names: str) -> list[tuple[str, str]]:
    """Returns table headings, all in the muted colour."""
    return [(name, "muted") for name in names]


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


def by_moment(heads: tuple[str, ...], rows: FigureRows) -> str:
    """Returns a table with a group of lines per moment; greedy and sampled moments have groups of their own."""
    lines = []
    for moment, group in groupby(rows, key=lambda row: row[0].moment):
        lines.append(f"<tr class=group><th colspan={len(heads) + 1}>{html.escape(moment or 'the whole run')}</th></tr>")
        lines += [table_row(summary.name.replace("->", "→"), cells) for summary, cells in group]
    return table(muted(*heads), lines)


def legend(by_variant: dict[str, list[dict]]) -> str:
    """Returns a legend: the colour of each variant, and the stroke of each number of threads."""
    names = [
        f"<b style='color: var(--{COLOUR_NAMES[index % len(COLOUR_NAMES)]})'>{html.escape(variant)}</b>"
        for index, variant in enumerate(by_variant)
    ]
    counts = thread_counts(by_variant)
    strokes = [
        f"{name}: {count} thread{'s' if count > 1 else ''}" for count, name in zip(counts, STROKES, strict=False)
    ]
    return f"<p class=note>{', '.join(names)}{'; ' + ', '.join(strokes) if len(counts) > 1 else ''}</p>"


def thread_counts(by_variant: dict[str, list[dict]]) -> list[int]:
    """Lists the numbers of threads that occur, in order."""
    return sorted({row["threads"] for rows in by_variant.values() for row in rows})


def curves(by_variant: dict[str, list[dict]]) -> str:
    """Returns a picture of every main figure, greedy and sampled separately; "" if there is none."""
    evaluations = [row for rows in by_variant.values() for result in rows for row in result["evaluations"]]
    temperatures = sorted({row.get("temperature") for row in evaluations}, key=lambda value: -(value or 0))
    pictures = []
    for key, (name, _) in FIGURES.items():
        for temperature in temperatures:
            drawn = draw(by_variant, key, temperature)
            if drawn:
                note = f"At temperature {temperature:g}." if temperature is not None else ""
                title = html.escape(name.replace("->", "→"))
                pictures.append(f"<figure><figcaption><b>{title}</b> {note}</figcaption>{drawn}</figure>")
    return "".join(pictures)


def draw(by_variant: dict[str, list[dict]], key: str, temperature: float | None) -> str:
    """Returns one picture as inline SVG; "" unless some run has two points."""

    def points(result: dict) -> dict[int, float]:
        rows = [row for row in with_feedback(result["evaluations"]) if row.get("temperature") == temperature]
        return {row["global_step"]: row[key] for row in rows if is_number(row.get(key))}

    lines = {variant: [(row, points(row)) for row in rows] for variant, rows in by_variant.items()}
    if not any(len(line) > 1 for each in lines.values() for _, line in each):
        return ""
    counts, strokes = thread_counts(by_variant), list(STROKES.values())
    stage_starts = {row["global_step"] - row["step"] for rows in by_variant.values() for result in rows
                    for row in result["evaluations"] if row.get("stage", 1) > 1}  # fmt: skip

    def plot(axes: Any) -> None:
        for index, each in enumerate(lines.values()):
            colour = COLOURS[COLOUR_NAMES[index % len(COLOUR_NAMES)]]
            for result, line in each:
                stroke = strokes[counts.index(result["threads"]) % len(strokes)]
                axes.plot(list(line), list(line.values()), color=colour, linewidth=0.8, alpha=0.5, linestyle=stroke)
            whole = [line for result, line in each if line and not result["exit_code"]]
            shared = sorted(set.intersection(*map(set, whole))) if whole else []
            axes.plot(shared, [median(line[step] for line in whole) for step in shared], color=colour, linewidth=2.2)

    return picture(key, plot, stage_starts - {0})


def runs_table(by_variant: dict[str, list[dict]]) -> str:
    """Returns a table with a line per run: how it ended, and its main figures at the end."""
    values = {(variant, row["seed"]): last_values(row) for variant, rows in by_variant.items() for row in rows}
    shown = [key for key in FIGURES if any(key in each for each in values.values())]
    lines = []
    for variant, rows in by_variant.items():
        lines.append(f"<tr class=group><th colspan={len(shown) + 5}>{html.escape(variant)}</th></tr>")
        for row in sorted(rows, key=lambda each: each["seed"]):
            found = values[variant, row["seed"]]
            numbers = (rounded(found[key]) if key in found else "–" for key in shown)
            seconds = duration(row["seconds"]) + (" *" if row["was_restarted"] else "")
            end = f"{row['failed']}: exit code {row['exit_code']}" if row["exit_code"] else "finished"
            cells = [str(row["threads"]), *numbers, seconds, str(len(begun_alarms(row))), end]
            lines.append(table_row(f"seed {row['seed']}", cells, "lost" if row["exit_code"] else ""))
    heads = muted("threads", *(FIGURES[key][0].replace("->", "→") for key in shown), "time", "alarms", "end")
    starred = any(row["was_restarted"] for rows in by_variant.values() for row in rows)
    return table(heads, lines) + (
        "<p class=note>* Restarted: the time is that of the last start.</p>" if starred else ""
    )

"""The sections of a page about one run or several: tables, differences, games, curves."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from statistics import fmean

from lib.core.console import READ, WHEN, answered, label_of, samples_of, share
from lib.core.errors import ConfigError
from lib.core.stats import mean_interval, pearson
from lib.rl.checks import FORMS
from lib.run.runlog import is_number
from pages import paired
from pages.blocks import DIFFERENCES, Cell, Charts, PageSection, Paragraph, TableLine, TextTable, muted, rate_cell
from pages.curves import chart_data, keyed_chart, repeats_accuracy
from pages.kinds import WELL_FORMED, LineChart, PageKind, of_attempts
from pages.rollouts import form_of_run
from pages.run_folder import RunFolder, moment

FEWEST_STEPS = 10  # of which a correlation is told
FREE = "No format is declared (reward.format: free), so an answer counts wherever it is found in the text."


def first_picture(runs: Sequence[RunFolder]) -> list[Charts]:
    """Returns the first chart of the runs' kind, that of the first screen; empty where it has no data."""
    drawn = chart_data(next(iter(runs[0].kind.charts.values()))[0], runs)
    return [Charts([drawn])] if drawn else []


def held_out(
    kind: PageKind, groups: list[tuple[str | None, list[dict]]], is_free: bool = False, details: str = ""
) -> PageSection:
    """Returns the table of evaluations, every rate above its 95 % interval, below `details`. Groups may have a title.

    `is_free`: no format is declared, so that a text cannot lack it.
    """
    every = [row for _, rows in groups for row in rows]
    columns, last = kind.columns(every), groups[-1][1][-1]
    lines = []
    for title, rows in groups:
        if title:
            lines.append(TableLine(title))
        for row in rows:
            label = label_of({"label": f"step {row.get('global_step')}", **row}, every)
            lines.append(TableLine(label, [*(rate_cell(row, key) for key in columns), Cell(str(row.get("n", "")))]))
    note = f"Exact match {samples_of(groups[-1][1])}; below each value its 95 % interval. {kind.legend(last)}"
    heads = [*columns.values(), ("n", "muted")]
    if is_free:
        heads = [(name.replace("well-formed", "found"), look) for name, look in heads]
        note += f" Found: {FREE[0].lower()}{FREE[1:]}"
    return PageSection("Held-out answers", [*([Paragraph(details)] if details else []), TextTable(heads, lines)], note)


def mean_rows(runs: Sequence[RunFolder]) -> list[dict]:
    """Averages every milestone that all runs have, with Student's interval, a run being the unit."""
    rows = []
    columns = runs[0].kind.columns([row for run in runs for row in run.milestones])
    ways = ["", *dict.fromkeys(answered(row) for run in runs for row in run.greedy)]
    for when, way in product(WHEN, ways):
        found = [
            row for run in runs for row in (run.greedy if way else run.milestones)
            if row["when"] == when and way in ("", answered(row))
        ]  # fmt: skip
        if len(found) != len(runs):
            continue
        means: dict = {"when": when, "n": sum(row.get("n") or 0 for row in found)}
        means |= {"temperature": found[0].get("temperature"), "is_greedy": bool(way)}
        means |= {"feedback": found[0]["feedback"]} if "feedback" in found[0] else {}
        for key in columns:
            values = [row[key] for row in found if is_number(row.get(key))]
            if len(values) == len(runs):
                means[key] = fmean(values)
            if key in means and len(set(values)) > 1:  # equal where runs share a base, but not certain
                floor = -1 if key in DIFFERENCES else 0
                means[f"{key}_ci95"] = [min(max(end, floor), 1) for end in mean_interval(values) if end == end]
        rows.append(means)
    return rows


def in_pairs(runs: Sequence[RunFolder]) -> list[PageSection]:
    """Returns the paired differences: of one run from first to last, of several between the first and each other."""
    lines, told = [], []
    for one, two in product(runs[:1], runs[1:] or runs):
        try:
            pairs = paired.chosen([*dict.fromkeys((str(one.folder), str(two.folder)))])
        except ConfigError:
            continue  # there is nothing to compare
        for first, second, _ in pairs:
            sources = (one.name, two.name) if one is not two else ("", "")
            names = tuple(map(paired.named, sources, (first, second)))
            if "per_question" not in first or "per_question" not in second:
                continue  # rows of an earlier version
            try:
                found = paired.compare(first, second, names)
            except ConfigError as error:
                if one is not two:  # a run may well ask less in between
                    told.append(Paragraph(str(error), "warning"))
                continue
            lines.append(TableLine("  →  ".join(names)))
            for row in found:
                sign = "+" if row["of"] == "delta" else ""
                numbers = [Cell(share(row[key], sign)) for key in ("first", "second")]
                numbers += [rate_cell(row, "difference"), Cell(f"{row['p']:.2g}")]
                lines.append(TableLine(paired.NAMES[row["of"]], numbers))
    note = (
        "Two evaluations of the same questions, compared question by question; below, 95 % intervals, each question "
        "counting once. p: how likely a difference at least this large would be if every question were as "
        "likely to change for the better as for the worse. This compares these weights; whether one way of training "
        "is better than another takes several seeds."
    )
    heads = [("before", "muted"), ("after", "muted"), ("difference", "two"), ("p", "muted")]
    tables = [TextTable(heads, lines)] if lines else []
    return [PageSection("In pairs", [*tables, *told], note if lines else "")] if tables or told else []


def one_after_another(runs: Sequence[RunFolder]) -> list[PageSection]:
    """Returns k attempts in a chat next to k first attempts, of each run's last evaluations; empty without samples."""
    columns = {"succ": ("in a chat", "two"), "pass": ("first ones", "one"), "gain": ("gained", "muted")}
    lines = []
    for run in runs:
        for row in [row for row in run.table[-2:] if moment(row) == moment(run.table[-1]) and row.get("success_at_k")]:
            name = f"{run.name}: " if len(runs) > 1 else ""
            lines.append(TableLine(f"{name}{label_of(row, run.table)}, {samples_of([row])}"))
            for part in row["success_at_k"]:
                lines.append(TableLine(f"k = {part['k']}", [rate_cell(part, key) for key in columns]))
    note = (
        "How often one of k attempts is right: of k attempts in a chat, one after another, and of k first attempts, "
        "side by side, at no fewer samples; below, 95 % intervals clustered by question, of the gain in pairs."
    )
    tables = [TextTable([*columns.values()], lines)]
    return [PageSection("One after another, or side by side", tables, note)] if lines else []


def counterfactuals(runs: Sequence[RunFolder]) -> list[PageSection]:
    """Returns the section on attempt 2 after other first attempts; empty where that was not measured."""
    columns = {
        "acc": ("attempt 2", "two"), "minus_own": ("minus own", "muted"),
        "acc_own_wrong": ("own attempt 1 wrong", "muted"), "acc_own_right": ("own attempt 1 right", "muted"),
        "repeats": ("repeats it", "muted"),
    }  # fmt: skip
    lines = []
    for run in runs:
        for row in run.swaps:
            name = f"{run.name}: " if len(runs) > 1 else ""
            label = label_of({"label": f"step {row.get('step')} of stage {row.get('stage')}", **row}, [row])
            lines.append(TableLine(f"{name}{label}, {samples_of([row])}"))
            for context, read in READ.items():
                numbers = row["after"].get(context) or {}
                cells = [*(rate_cell(numbers, key) for key in columns), Cell(str(numbers.get("n", "")))]
                lines.append(TableLine(f"after {read}", cells))
    note = (
        "How often attempt 2 is right after its own first attempt and after another question's; below, 95 % "
        "intervals, differences in pairs. Repeats it: the answer is that of the first attempt that it has read."
    )
    table = TextTable([*columns.values(), ("n", "muted")], lines)
    return [PageSection("What attempt 2 makes of attempt 1", [table], note)] if lines else []


def scoreboards(runs: Sequence[RunFolder]) -> list[PageSection]:
    """Returns the section on training games, missing opponents and a teacher's help; empty where there were none."""
    cells = ("both", "policy_only", "opponent_only", "neither")
    lines, told = [], []
    for run in runs:
        board, label = run.scoreboard, f"{run.name}: " if len(runs) > 1 else ""
        counts = [board[key] for key in cells if is_number(board.get(key))]
        if len(counts) == len(cells) and sum(counts):
            line = [Cell(str(count), share(count / sum(counts))) for count in counts]
            line += [rate_cell(board, "win_rate"), Cell(str(sum(counts)))]
            lines.append(TableLine(run.name if label else "in training", line))
        if board.get("missing_games"):
            first, last, steps = (board.get("missing_steps", {}).get(key) for key in ("first", "last", "steps"))
            told.append(Paragraph(
                f"{label}{board['missing_games']} games of {steps} steps, between step {first} and step {last}, have "
                "no result: the opponent was unavailable, or an answer could not be judged; its term was masked there.",
                "warning",
            ))  # fmt: skip
        if board.get("assisted"):
            told.append(Paragraph(label + help_in_words(board["assisted"])))
    note = (
        "Who solved a prompt of a step: the policy's first answer against the opponent's one. Games won: policy only, "
        "as a share of policy only and opponent only; below it its 95 % interval, in which the "
        "games of a prompt go together."
    )
    if any(run.scoreboard.get("win_rate_of", "all games") != "all games" for run in runs):
        note += (
            " Under a curriculum these are games of the prompts that it chose, which come again by how they ended: "
            "there, games won counts the first game of each prompt alone."
        )
    heads = muted(*(name.replace("_", " ") for name in (*cells, "games_won", "games")))
    tables = [TextTable(heads, lines)] if lines else []
    return [PageSection("Scoreboard", [*tables, *told], note if lines else "")] if tables or told else []


def help_in_words(assisted: dict) -> str:
    """Describes what became of a teacher's hints and solutions."""
    counts = Counter(assisted)
    dropped = sum(counts[name] for name in counts if name.startswith("hints_dropped_"))
    failed = counts["hints_failed"] + counts["solutions_failed"]
    return (
        f"A teacher was asked for {counts['hints_asked']} hints and {counts['solutions_asked']} solutions; {failed} "
        f"failed. {counts['hints_used']} hints were used and {dropped} dropped; under them "
        f"{counts['retries_right']} of {counts['retries']} retries were right, and {counts['solved_with_hint']} "
        f"prompts were solved that had not been. {counts['solutions_right']} solutions were right."
    )


def curves(runs: Sequence[RunFolder]) -> list[PageSection]:
    """Returns the sections of charts but for the first, which has its place; a chart without data is left out."""
    sections = []
    first = next(iter(runs[0].kind.charts.values()))[0]
    for title, charts in runs[0].kind.charts.items():
        kept = [chart for chart in charts if chart is not first and not repeats_accuracy(chart, runs)]
        if all(run.is_free for run in runs):
            kept = [replace(chart, title="Answer found", note=FREE) if chart.title == WELL_FORMED else chart
                    for chart in kept]  # fmt: skip
        if title == "Training":
            kept = [*paid_without_form(runs), *kept, *more_charts(runs)]
        drawn = [data for chart in kept if (data := chart_data(chart, runs))]
        if drawn:
            sections.append(PageSection(title, [Charts(drawn)]))
    return sections


def paid_without_form(runs: Sequence[RunFolder]) -> list[LineChart]:
    """Returns charts of the paid answers without their form, one of each form that is lacking."""
    charts = {}
    for form in dict.fromkeys(map(form_of_run, runs)):
        key, lacks = (f"paid_outside_{form}", FORMS[form]) if form else ("malformed_paid", "the declared format")
        series = of_attempts(key) | {key: ("answers", "two")}
        if any(row.get(name) for run in runs for row in run.metrics for name in series):
            note = f"Share of the answers paid as right that lack {lacks}; bold is a moving mean."
            charts[lacks] = LineChart("Paid without the form", note, series, floor=0, percent=True)
    if len(charts) < 2:
        return list(charts.values())
    return [replace(chart, title=f"Paid without {lacks}") for lacks, chart in charts.items()]


def more_charts(runs: Sequence[RunFolder]) -> list[LineChart]:
    """Returns the charts of what only some runs have: parts of a reward, a curriculum, replay."""
    charts = [
        keyed_chart("Parts of the reward", "Means over the answers of a step.", runs, "reward/"),
        keyed_chart("Curriculum", "Shares of a step's prompts by source, and of those that had something to teach.",
                    runs, "curriculum/", percent=True),
        keyed_chart("Replay", "The buffer as it was at each step.", runs, "replay/"),
    ]  # fmt: skip
    parts = {look[0].partition(",")[0] for look in charts[0].series.values()}
    return [chart for chart in charts if chart.series and (chart is not charts[0] or len(parts) > 1)]


def drifts(runs: Sequence[RunFolder]) -> list[PageSection]:
    """Returns the section on adapters that are not PEFT's: how far they moved, and whether the rewards explain it.

    Without such adapters there is none, and below FEWEST_STEPS steps it has no correlations.
    """
    chart = keyed_chart("Drift", "Root mean square of a family's distance from doing nothing, logarithmic.", runs,
                        "drift/", log=True, hero=True)  # fmt: skip
    drawn = chart_data(chart, runs)
    lines = []
    for run, key in product(runs, chart.series):
        spread = max((name for row in run.metrics for name in row if name.startswith("reward_std")), default="")
        rows = [row for row in run.metrics if is_number(row.get(key)) and is_number(row.get(spread))]
        if len(rows) < FEWEST_STEPS:
            continue
        drift, spreads = ([row[name] for row in rows] for name in (key, spread))
        family = key.removeprefix("drift/")
        cells = [correlated(drift, spreads), correlated(*map(changes, (drift, spreads))), Cell(str(len(rows)))]
        lines.append(TableLine(f"{run.name}: {family}" if len(runs) > 1 else family, cells))
    heads = [("step by step", "two"), ("their changes", "muted"), ("steps", "muted")]
    note = (
        "Pearson's r of a family's drift with the spread of rewards (of the last attempt, if there are several) and of "
        "their changes from step to step; below, Fisher's 95 % interval, which takes steps to be independent. Two "
        "quantities that drift are correlated whatever the cause, and the interval is then too narrow; less so their "
        "changes."
    )
    tables = [TextTable(heads, lines)] if lines else []
    return [PageSection("Adapters", [Charts([drawn]), *tables], note if lines else "")] if drawn else []


def changes(values: list[float]) -> list[float]:
    """Returns the differences of neighbours."""
    return [after - before for before, after in pairwise(values)]


def correlated(first: list[float], second: list[float]) -> Cell:
    """Returns Pearson's r above its interval; a dash where one side does not vary."""
    r, ends = pearson(first, second)
    return Cell(f"{r:+.2f}", " ".join(f"{end:+.2f}" for end in ends if end == end)) if r == r else Cell("–")

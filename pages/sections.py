"""The sections of a page about one run or several: tables, differences, games, curves."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from lib.core.console import READ, label_of, samples_of, share
from lib.core.errors import ConfigError
from lib.rl.checks import FORMS
from lib.run.runlog import is_number
from pages import paired
from pages.blocks import Cell, Charts, Correction, PageSection, Paragraph, TableLine, TextTable, muted, rate_cell, seen
from pages.curves import chart_data, keyed_chart, repeats_accuracy
from pages.kinds import WELL_FORMED, LineChart, PageKind, of_attempts
from pages.rollouts import FLAGS, Rollouts, form_of_run, own_texts
from pages.run_folder import RunFolder, moment

LONGEST = 2_000  # characters of a text on the first screen
FREE = "No format is declared (reward.format: free), so an answer counts wherever it is found in the text."


def first_picture(runs: Sequence[RunFolder]) -> list[Charts]:
    """Returns the first chart of the runs' kind, that of the first screen; empty where it has no data."""
    drawn = chart_data(next(iter(runs[0].kind.charts.values()))[0], runs)
    return [Charts([drawn])] if drawn else []


def correction(run: RunFolder, rollouts: Rollouts) -> list[Correction]:
    """Returns the first well-formed correction of a run's last evaluation; empty without one."""
    last = [(row["when"], row["global_step"]) for row in run.milestones[-1:]]
    moments = [place for place, moment in enumerate(rollouts.moments) if (moment["when"], moment["step"]) in last]
    wanted, malformed = (1 << FLAGS.index(flag) for flag in ("i_to_c", "malformed"))
    units = [unit for unit in rollouts.units if unit["moment"] in moments[:1] and unit["flags"] & wanted]
    unit = next((unit for unit in units if not unit["flags"] & malformed), None)
    if unit is None:
        return []
    texts = own_texts(unit["body"]["texts"])
    wrong, right = ((text["who"], seen(text["text"], LONGEST)) for text in (texts[0], texts[-1]))
    which = f"One of {len(units):,}" if len(units) > 1 else "The only one"
    caption = f"{which}, {rollouts.moments[moments[0]]['label']}, held out."
    question = seen(rollouts.prompts[unit["prompt"]], LONGEST)
    return [Correction(question, wrong, right, caption, f"f=i_to_c&at={moments[0]}")]


def held_out(
    kind: PageKind, groups: list[tuple[str | None, list[dict]]], is_free: bool = False, details: str = ""
) -> PageSection:
    """Returns the table of evaluations, every rate above its 95 % interval, below `details`. Groups may have a title.

    `is_free`: no format is declared, so that a text cannot lack it.
    """
    every = [row for _, rows in groups for row in rows]
    columns = kind.columns(every)
    lines = []
    for title, rows in groups:
        lines += [TableLine(title)] if title else []
        for row in rows:
            label = label_of({"label": f"step {row.get('global_step')}", **row}, every)
            lines.append(TableLine(label, [*(rate_cell(row, key) for key in columns), Cell(str(row.get("n", "")))]))
    note = f"Exact match {samples_of(groups[-1][1])}; below each value its 95 % interval. {kind.legend(every)}"
    heads = [*columns.values(), ("n", "muted")]
    if is_free:
        heads = [(name.replace("well-formed", "found"), look) for name, look in heads]
        note += f" Found: {FREE[0].lower()}{FREE[1:]}"
    return PageSection("Held-out answers", [*([Paragraph(details)] if details else []), TextTable(heads, lines)], note)


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
        f"counting once. {paired.LEGEND} This compares these weights; whether one way of training is better than "
        "another takes several seeds."
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
            for part in row["success_at_k"][1:]:  # one attempt of a chat is a first one
                lines.append(TableLine(f"k = {part['k']}", [rate_cell(part, key) for key in columns]))
    note = (
        "How often one of k attempts is right: of k attempts in a chat, one after another, and of k first attempts, "
        "side by side, at no fewer samples; below, 95 % intervals clustered by question, of the gain in pairs."
    )
    tables = [TextTable([*columns.values()], lines)]
    return [PageSection("One after another, or side by side", tables, note)] if lines else []


def counterfactuals(runs: Sequence[RunFolder]) -> list[PageSection]:
    """Returns the section on attempt 2 after other first attempts; empty where that was not measured."""
    return swap_tables([(f"{run.name}: " if len(runs) > 1 else "", row) for run in runs for row in run.swaps])


def swap_tables(named: Sequence[tuple[str, dict]]) -> list[PageSection]:
    """Returns the section of rows of swaps.jsonl, with the beginning of the label of each; empty without rows."""
    columns = {
        "acc": ("attempt 2", "two"), "minus_own": ("minus own", "muted"),
        "acc_own_wrong": ("own attempt 1 wrong", "muted"), "minus_own_own_wrong": ("minus own, wrong", "muted"),
        "acc_own_right": ("own attempt 1 right", "muted"), "repeats": ("repeats it", "muted"),
    }  # fmt: skip
    heads = [*columns.values(), ("n", "muted")]
    blocks: list[Paragraph | TextTable] = []
    for name, row in named:
        label = label_of({"label": f"step {row.get('step')} of stage {row.get('stage')}", **row}, [row])
        lines = []
        for context, read in READ.items():
            numbers = row["after"].get(context) or {}
            cells = [rate_cell({} if context == "own" and "minus" in key else numbers, key) for key in columns]
            lines.append(TableLine(f"after {read}", [*cells, Cell(str(numbers.get("n", "")))]))
        # above the table and not within it, where so long a title would make a terminal's first column as wide
        blocks += [Paragraph(f"{name}{label}, {samples_of([row])}"), TextTable(heads, lines)]
    note = (
        "How often attempt 2 is right after its own and after another's attempt 1. If that serves as well where its "
        "own is wrong, it solves anew. Below, 95 % intervals; differences in pairs. Repeats it: the same answer again."
    )
    return [PageSection("What attempt 2 makes of attempt 1", blocks, note)] if blocks else []


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
    """Returns the charts of what only some runs have: parts of a reward, a curriculum, replay, adapters of ours."""
    charts = [
        keyed_chart("Parts of the reward", "Means over the answers of a step.", runs, "reward/"),
        keyed_chart("Curriculum", "Shares of a step's prompts by source, and of those that had something to teach.",
                    runs, "curriculum/", percent=True),
        keyed_chart("Replay", "The buffer as it was at each step.", runs, "replay/"),
        keyed_chart("Drift", "Root mean square of an adapter's distance from doing nothing, logarithmic.", runs,
                    "drift/", log=True),
    ]  # fmt: skip
    parts = {look[0].partition(",")[0] for look in charts[0].series.values()}
    return [chart for chart in charts if chart.series and (chart is not charts[0] or len(parts) > 1)]

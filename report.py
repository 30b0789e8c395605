"""A page to look at: what a run learned, how, and at what price. One HTML file that needs no network.

    python report.py outputs/tiny-arithmetic                              # writes outputs/tiny-arithmetic/report.html
    python report.py outputs/tiny-arithmetic outputs/tiny-arithmetic-1    # seeds side by side: outputs/report.html
    python report.py outputs/a outputs/b --out compare.html

It reads config.yaml, metrics.jsonl, evaluations.jsonl, generations.jsonl and, where they are, swaps.jsonl and
scoreboard.json; a run that is still going, or that was cut off, is shown as far as it came. Training never reads what
is written here.
"""

if __name__ == "__main__":
    from lib.core.errors import end_at_ctrl_c

    end_at_ctrl_c()  # the imports below take a second

import argparse
import csv
import html
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import cycle, pairwise, product
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from lib.core.config import read_tree
from lib.core.console import READ, WHEN, answered, attempts_of, duration, label_of, right_ones, samples_of, with_best
from lib.core.errors import FINISHED, ConfigError, run_script
from lib.core.stats import mean_interval, pearson
from lib.report import paired
from lib.report.layout import COLOURS, facts, heading, page, picture, section, table, table_row
from lib.run.runlog import files_of, is_number, read_jsonl

LONGEST_TEXT = 1200  # characters of one text that are shown
FEWEST_STEPS = 10  # of which a correlation is told
DIFFERENCES = ("delta", "minus_own", "difference", "revised_minus_fresh", "gain")  # these may be below 0


def main() -> int:
    """Reads the runs, writes the page, prints its path."""
    args = command_line()
    runs = [read_run(folder) for folder in args.runs]
    target = args.out or (args.runs[0] if len(runs) == 1 else args.runs[0].resolve().parent) / "report.html"
    page = one_run(runs[0]) if len(runs) == 1 else several_runs(runs)
    target.write_text(page, encoding="utf-8", errors="backslashreplace")  # a text may hold a lone surrogate
    print(f"report: {target}")
    for run in runs if args.csv else ():
        evaluations = sorted((*run.evaluations, *run.greedy), key=lambda row: row.get("time", ""))
        for name, rows in (("metrics", run.metrics), ("evaluations", evaluations)):
            write_csv(run.folder / f"{name}.csv", rows)
            print(f"table: {run.folder / name}.csv")
    return FINISHED


def command_line() -> argparse.Namespace:
    """Returns the options. Raises ConfigError for a folder that holds no run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directories, outputs/<run_name>")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page (default: report.html in the run's folder)")
    parser.add_argument(
        "--csv", action="store_true", help="write metrics.csv and evaluations.csv too, into the folders of the runs"
    )
    args = parser.parse_args()
    for folder in args.runs:
        if not (folder / "metrics.jsonl").exists() and not (folder / "evaluations.jsonl").exists():
            raise ConfigError(f"{folder} holds no metrics.jsonl or evaluations.jsonl: give the folder of a run")
    return args


def write_csv(path: Path, rows: list[dict]) -> None:
    """Writes rows as a table with a column for every key; the ends of an interval get columns of their own."""
    flat = []
    for row in rows:
        cells: dict[str, object] = {}
        for key, value in row.items():
            is_interval = key.endswith("_ci95") and isinstance(value, list) and len(value) == 2
            cells |= {f"{key}_low": value[0], f"{key}_high": value[1]} if is_interval else {key: value}
        flat.append({key: value for key, value in cells.items() if not isinstance(value, list | dict)})
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, dict.fromkeys(key for row in flat for key in row))
        table.writeheader()
        table.writerows(flat)


@dataclass(frozen=True)
class Run:
    """The contents of a run directory; every row has its `global_step`."""

    folder: Path
    kind: "Kind"
    config: dict
    metrics: list[dict]
    evaluations: list[dict]
    greedy: list[dict]  # further evaluations at the same moments
    swaps: list[dict]  # rows of evaluate.py --swap-attempts, the newest of each adapter and temperature
    scoreboard: dict
    damaged: int  # lines that could not be read
    examples: tuple[tuple[str, dict | None, dict], ...] = ()  # outcome, the texts before training, the texts now
    alarms: tuple[dict, ...] = ()

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def milestones(self) -> list[dict]:
        """Returns the evaluations of the table: before training and after each stage, or the last one."""
        needed, is_staged = self.kind.accuracies, self.kind.is_staged
        sound = [row for row in self.evaluations if needed and all(is_number(row.get(key)) for key in needed)]
        kept = [row for row in sound if row["when"] in WHEN]
        return kept if kept and (is_staged or kept[-1] is sound[-1]) else kept + sound[-1:]

    @property
    def table(self) -> list[dict]:
        """Returns the milestones, each with its greedy evaluation, and after a stage's last one the stage's best."""
        rows = [
            row for each in self.evaluations for row in (each, *(g for g in self.greedy if moment(g) == moment(each)))
        ]
        shown = {moment(row) for row in self.milestones}
        return [row for row in with_best(rows, self.best_of) if row["when"] == "best" or moment(row) in shown]

    def best_of(self, stage: int) -> str | None:
        """Returns the folder of a stage's best checkpoint, relative to the run; None without one."""
        best = self.folder / f"stage{stage}" / "best"
        return "/".join(best.resolve().parts[-2:]) if best.exists() else None

    @property
    def boundaries(self) -> list[int]:
        """Returns the global steps at which the next stage begins."""
        firsts = {row["stage"]: row["global_step"] - row["step"] for row in reversed(self.metrics) if "stage" in row}
        return sorted(step for stage, step in firsts.items() if stage > 1 and step > 0)

    @property
    def status(self) -> str:
        """Tells in words how far the run came."""
        if not self.metrics:
            return "nothing trained yet"
        last = self.metrics[-1]
        if last["step"] < last.get("steps", 0):
            stage = f"stage {last['stage']}, " if self.kind.is_staged and "stage" in last else ""
            return f"{stage}step {last['step']} of {last['steps']} so far"
        return f"{last['global_step']} steps"


def read_run(folder: Path) -> Run:
    """Reads the run in `folder`; leaves out what is missing or damaged, and counts damaged lines."""
    config_path = folder / "config.yaml"
    config = read_tree(config_path) if config_path.exists() else None
    streams, damaged = {}, 0
    for name in ("metrics.jsonl", "evaluations.jsonl", "alarms.jsonl", "swaps.jsonl", "scoreboard.json"):
        path = folder / name
        rows, bad = read_jsonl(path) if path.exists() else ([], 0)
        streams[path.stem], damaged = rows, damaged + bad
    metrics = [{"global_step": row["step"], **row} for row in streams["metrics"] if isinstance(row.get("step"), int)]
    offsets = {row["stage"]: row["global_step"] - row["step"] for row in metrics if "stage" in row}
    if 1 in offsets:  # stage II may have no step yet, but a first evaluation
        offsets.setdefault(2, next(row.get("steps", 0) for row in metrics if row.get("stage") == 1))
    evaluations = [
        {**row, **more_of(row), "global_step": row["step"] + offsets.get(row.get("stage", 1), 0)}
        for row in streams["evaluations"]
        if isinstance(row.get("step"), int) and "when" in row
    ]
    seen = [moment(row) for row in evaluations]
    firsts = [moment(row) not in seen[:i] for i, row in enumerate(evaluations)]
    greedy = [row for row, is_first in zip(evaluations, firsts, strict=True) if not is_first]
    evaluations = [row for row, is_first in zip(evaluations, firsts, strict=True) if is_first]
    board = (streams["scoreboard"] or [{}])[-1]
    kind, config = kind_of(metrics + evaluations), config if isinstance(config, dict) else {}
    swaps = {
        (*moment(row), row.get("temperature")): row for row in streams["swaps"] if isinstance(row.get("after"), dict)
    }
    alarms = [row for row in streams["alarms"] if {"alarm", "event", "severity", "stage", "step", "text"} <= row.keys()]
    run = Run(
        folder, kind, config, metrics, evaluations, greedy, [*swaps.values()], board, damaged, alarms=tuple(alarms)
    )
    examples, bad = pick_examples(run)
    return replace(run, examples=tuple(examples), damaged=damaged + bad)


def moment(row: dict) -> tuple:
    """Returns when a row was written; evaluations of one moment differ in how they were answered."""
    return row.get("when"), row.get("stage"), row.get("step")


def more_of(row: dict) -> dict:
    """Returns pass@k and its interval for the largest k above 1 of an evaluation of groups."""
    last = (row.get("pass_at_k") or [{}])[-1]
    if last.get("k", 1) == 1:
        return {}
    return {f"pass@{last['k']}": last.get("pass"), f"pass@{last['k']}_ci95": last.get("pass_ci95")}


def pick_examples(run: Run) -> tuple[list[tuple[str, dict | None, dict]], int]:
    """Picks texts of the last evaluation by outcome, beside those of the first; also returns the damaged lines."""
    if not run.milestones:
        return [], 0
    parts = [read_jsonl(path) for path in files_of(run.folder, "generations")]
    rows, damaged = [row for rows, _ in parts for row in rows], sum(count for _, count in parts)

    def texts(evaluation: dict) -> list[dict]:
        own = [row for row in rows if moment(row) == moment(evaluation) and "part" not in row]
        at = evaluation.get("temperature")
        own = [row for row in own if row.get("feedback") == evaluation.get("feedback")]
        return run.kind.pairs([row for row in own if row.get("temperature", at) == at])

    first, last = run.milestones[0], run.milestones[-1]
    before = {row.get("prompt"): row for row in reversed(texts(first))} if first is not last else {}
    now = [row for row in texts(last) if "match1" in row and "match2" in row]
    picked = []
    for outcome, (match1, match2, count) in run.kind.outcomes.items():
        found = [row for row in now if (row["match1"], last_match(row)) == (match1, match2)]
        picked += [(outcome, before.get(row.get("prompt")), row) for row in found[:count]]
    return picked, damaged


def last_match(row: dict) -> bool:
    """Tells whether the last text of a row is right."""
    return row[max(key for key in row if key.startswith("match") and key[5:].isdigit())]


# The page of one run


def one_run(run: Run) -> str:
    """Renders the page of one run: summary, table, curves, texts, config."""
    told = run.kind.summary(run.milestones) if run.milestones else f"{run.kind.nothing}: {run.status}."
    body = [heading(run.name, told), facts(facts_of(run))]
    if run.milestones:
        body.append(held_out(run.kind, [(None, run.table)]))
    body += in_pairs([run]) + one_by_one([run]) + alarms([run]) + counterfactuals([run]) + scoreboards([run])
    body += curves([run]) + drifts([run])
    if run.examples:
        body.append(section("Texts", "".join(example(run.kind, *each) for each in run.examples), texts_note(run)))
    if run.config:
        dumped = yaml.safe_dump(run.config, sort_keys=False, allow_unicode=True, width=100)
        text = f"<pre class=config>{html.escape(dumped)}</pre>"
        body.append(section("Config", text, "As resolved; running it again repeats the run."))
    return page(run.name, body, run.damaged)


def facts_of(run: Run) -> dict[str, str]:
    """Returns model, data, length and speed, by label."""
    config = run.config
    tokens = sum(row.get("tokens") or 0 for row in run.metrics)
    spent: dict[str, float] = {}
    for row in run.metrics:
        for key in row:
            if key.startswith("seconds_"):
                name = key.removeprefix("seconds_").replace("_", " and ")
                spent[name] = spent.get(name, 0.0) + (row[key] or 0.0)
    total = sum(spent.values())
    ordered = sorted(spent.items(), key=lambda item: -item[1])
    shares = ", ".join(f"{name} {value / total:.0%}" for name, value in ordered if value >= 0.005 * total)
    servers = [(config.get(name) or {}).get("endpoint") or {} for name in ("opponent", "teacher")]
    opponent, teacher = (server.get("model") for server in servers)
    dataset, reward = (config.get(name) or {} for name in ("dataset", "reward"))
    items = {
        "model": (config.get("model") or {}).get("name") or "from random weights",
        "data": dataset.get("name") or ", ".join(part["name"] for part in (dataset.get("mixture") or {}).values()),
        "reward": {task: own["fn"] for task, own in (reward.get("by_task") or {}).items()} or reward.get("fn"),
        "loss": (config.get("train") or {}).get("loss"),
        "opponent": opponent or ("the policy's past" if config.get("opponent") else None),
        "teacher": teacher,
        "seed": config.get("seed"),
        "trained": run.status,
        "tokens written": f"{tokens:,}" if tokens else None,
        "time in steps": f"{duration(total)}: {shares}" if total else None,
    }
    return {name: str(value) for name, value in items.items() if value is not None}


def held_out(kind: "Kind", groups: list[tuple[str | None, list[dict]]]) -> str:
    """Renders a line per evaluation: every rate above its 95 % interval. Groups may have a title."""
    every = [row for _, rows in groups for row in rows]
    columns, last = kind.columns(every), groups[-1][1][-1]
    lines = []
    for title, rows in groups:
        if title:
            lines.append(f"<tr class=group><th colspan={len(columns) + 2}>{html.escape(title)}</th></tr>")
        for row in rows:
            label = label_of({"label": f"step {row.get('global_step')}", **row}, every)
            cells = "".join(f"<td>{cell(row, key)}</td>" for key in columns)
            cells += f"<td class=n>{html.escape(str(row.get('n', '')))}</td>"
            lines.append(f"<tr><th>{html.escape(label)}</th>{cells}</tr>")
    note = f"Exact match {samples_of(groups[-1][1])}; in brackets 95 % intervals. {kind.legend(last)}"
    return section("Held-out answers", table([*columns.values(), ("n", "muted")], lines), note)


def cell(row: dict, key: str) -> str:
    """Formats a rate as `0.812` over `[.796 .827]`."""
    if not is_number(row.get(key)):
        return "–"
    sign = "+" if key in DIFFERENCES else ""
    ends = row.get(f"{key}_ci95") or ()
    interval = " ".join(f"{end:{sign}.3f}".replace("0.", ".", 1) for end in ends if is_number(end))
    return f"{row[key]:{sign}.3f}" + (f"<small>[{interval}]</small>" if interval else "")


def in_pairs(runs: list[Run]) -> list[str]:
    """Renders the paired differences: of one run from first to last, of several between the first and each other."""
    rows, told = [], ""
    for one, two in product(runs[:1], runs[1:] or runs):
        try:
            pairs = paired.chosen([*dict.fromkeys((str(one.folder), str(two.folder)))])
        except ConfigError:
            continue  # there is nothing to compare
        for first, second, _ in pairs:
            names = (paired.named(one.name, first), paired.named(two.name, second))
            if "per_question" not in first or "per_question" not in second:
                continue  # rows of an earlier version
            try:
                found = paired.compare(first, second, names)
            except ConfigError as error:
                told += f"<p class=warning>{html.escape(str(error))}</p>"
                continue
            rows.append(f"<tr class=group><th colspan=5>{html.escape('  →  '.join(names))}</th></tr>")
            for row in found:
                numbers = "".join(f"<td>{row[key]:.3f}</td>" for key in ("first", "second"))
                numbers += f"<td>{cell(row, 'difference')}</td><td class=n>{row['p']:.2g}</td>"
                rows.append(f"<tr><th>{paired.NAMES[row['of']]}</th>{numbers}</tr>")
    note = (
        "Between two evaluations of the same questions, pair by pair; in brackets 95 % intervals, each "
        "question counting once. p: how likely it is to differ as much if each difference were as likely with the "
        "other sign. It is about these weights; whether a way of training is better takes seeds."
    )
    heads = [("before", "muted"), ("after", "muted"), ("difference", "two"), ("p", "muted")]
    content = table(heads, rows) if rows else ""
    return [section("In pairs", content + told, note if rows else "")] if content + told else []


def counterfactuals(runs: list[Run]) -> list[str]:
    """Renders the section on attempt 2 after other first attempts; empty where that was not measured."""
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
            title = html.escape(f"{name}{label}, {samples_of([row])}; {right_ones(row)}")
            lines.append(f"<tr class=group><th colspan={len(columns) + 2}>{title}</th></tr>")
            for context, read in READ.items():
                numbers = row["after"].get(context) or {}
                cells = "".join(f"<td>{cell(numbers, key)}</td>" for key in columns)
                lines.append(f"<tr><th>after {read}</th>{cells}<td class=n>{numbers.get('n', '')}</td></tr>")
    note = (
        "How often attempt 2 is right after its own first attempt, after another question's, after a right one and "
        "after one with the answer to a random other question; in brackets 95 % intervals, differences in pairs. "
        "Repeats it: the answer is that of the first attempt that it has read. Rendered: a right first attempt to "
        "another question, with the answer exchanged."
    )
    heads = [*columns.values(), ("n", "muted")]
    return [section("What attempt 2 makes of attempt 1", table(heads, lines), note)] if lines else []


def one_by_one(runs: list[Run]) -> list[str]:
    """Renders k attempts in a chat beside k first attempts, of each run's last evaluations; empty without samples."""
    columns = {"succ": ("in a chat", "two"), "pass": ("first ones", "one"), "gain": ("gained", "muted")}
    lines = []
    for run in runs:
        for row in [row for row in run.table[-2:] if moment(row) == moment(run.table[-1]) and row.get("success_at_k")]:
            name = f"{run.name}: " if len(runs) > 1 else ""
            title = html.escape(f"{name}{label_of(row, run.table)}, {samples_of([row])}")
            lines.append(f"<tr class=group><th colspan={len(columns) + 1}>{title}</th></tr>")
            for part in row["success_at_k"]:
                cells = "".join(f"<td>{cell(part, key)}</td>" for key in columns)
                lines.append(f"<tr><th>k = {part['k']}</th>{cells}</tr>")
    note = (
        "How often one of k attempts is right: of k attempts in a chat, one after another, and of k first attempts, "
        "side by side, at no fewer samples; in brackets 95 % intervals clustered by question, of the gain in pairs."
    )
    return [section("One after another, or side by side", table([*columns.values()], lines), note)] if lines else []


def alarms(runs: list[Run]) -> list[str]:
    """Renders the section of the watch's alarms (lib/rl/watch.py), in order of time; empty without any."""
    told = ""
    for run in runs:
        label = f"{run.name}, " if len(runs) > 1 else ""
        for row in run.alarms:
            stage = f"stage {row['stage']} " if run.kind.is_staged and run.kind.accuracies else ""
            begins = row["event"] == "begins"
            word = f" ({row['severity']}, {row.get('action')}): " if begins else ": "
            text = html.escape(f"{label}{stage}step {row['step']}{word}{row['text']}")
            told += f"<p{' class=warning' if begins else ''}>{text}</p>"
    note = "Alarms raised in training, with the config key to change; in brackets the severity, and what was done."
    return [section("Alarms", told, note)] if told else []


def scoreboards(runs: list[Run]) -> list[str]:
    """Renders the section on training games, missing opponents and a teacher's help; empty where there were none."""
    cells = ("both", "policy_only", "opponent_only", "neither")
    lines, told = [], ""
    for run in runs:
        board, label = run.scoreboard, f"{run.name}: " if len(runs) > 1 else ""
        counts = [board[key] for key in cells if is_number(board.get(key))]
        if len(counts) == len(cells) and sum(counts):
            line = "".join(f"<td>{count}<small>{percent(count / sum(counts))}</small></td>" for count in counts)
            line += f"<td>{cell(board, 'win_rate')}</td><td class=n>{sum(counts)}</td>"
            lines.append(f"<tr><th>{html.escape(run.name if label else 'in training')}</th>{line}</tr>")
        if board.get("missing_games"):
            first, last, steps = (board.get("missing_steps", {}).get(key) for key in ("first", "last", "steps"))
            text = (
                f"{label}{board['missing_games']} games of {steps} steps, between step {first} and step {last}, have "
            )
            text += (
                "no result: the opponent was unavailable, or an answer could not be judged; its term was masked there."
            )
            told += f"<p class=warning>{html.escape(text)}</p>"
        if board.get("assisted"):
            told += f"<p>{html.escape(label + help_in_words(board['assisted']))}</p>"
    heads = [(name.replace("_", " "), "muted") for name in (*cells, "games_won", "games")]
    note = (
        "Who solved a prompt of a step: the policy's first answer against the opponent's one. Games won: policy only, "
        "as a share of policy only and opponent only; in brackets its 95 % interval, in which the "
        "games of a prompt go together."
    )
    if any(run.scoreboard.get("win_rate_of", "all games") != "all games" for run in runs):
        note += (
            " Under a curriculum these are games of the prompts that it chose, which come again by how they ended: "
            "there, games won counts the first game of each prompt alone."
        )
    content = table(heads, lines) if lines else ""
    return [section("Scoreboard", content + told, note if lines else "")] if content + told else []


def help_in_words(assisted: dict) -> str:
    """Tells what became of a teacher's hints and solutions."""
    counts = Counter(assisted)
    dropped = sum(counts[name] for name in counts if name.startswith("hints_dropped_"))
    failed = counts["hints_failed"] + counts["solutions_failed"]
    return (
        f"A teacher was asked for {counts['hints_asked']} hints and {counts['solutions_asked']} solutions; {failed} "
        f"failed. {counts['hints_used']} hints were used and {dropped} dropped; under them "
        f"{counts['retries_right']} of {counts['retries']} retries were right, and {counts['solved_with_hint']} "
        f"prompts were solved that had not been. {counts['solutions_right']} solutions were right."
    )


def example(kind: "Kind", outcome: str, before: dict | None, now: dict) -> str:
    """Renders one question with the learners' texts before training, and the texts now."""
    columns = []
    label = WHEN.get(now["when"]) or f"step {now['step']}"
    trained = kind.speakers[:1] if len(kind.accuracies) == 1 else kind.speakers  # an opponent is not
    for title, row, speakers in (("before training", before, trained), (label, now, kind.speakers)):
        if row is not None:
            said = "".join(
                attempt(speaker, row, number)
                for number, speaker in enumerate(speakers, start=1)
                if row.get(f"attempt{number}", "" if number < 3 else None) is not None
            )
            columns.append(f"<div><h4>{title if before else ''}</h4>{said}</div>")
    question = html.escape(clip(now.get("prompt", "")))
    target = f"<p>target <b>{html.escape(clip(now['target']))}</b></p>" if "target" in now else ""
    return (
        f"<article class=example><header><span class='kind {outcome.split()[0]}'>{outcome}</span>"
        f"<pre>{question}</pre>{target}</header><div class=pair>{''.join(columns)}</div></article>"
    )


def attempt(speaker: str, row: dict, number: int) -> str:
    """Renders one text, marked right or wrong."""
    right, malformed = bool(row.get(f"match{number}")), row.get(f"malformed{number}")
    note = f" malformed: {html.escape(malformed)}" if malformed else ""
    return (
        f"<div class='attempt {'right' if right else 'wrong'}'><span>{speaker} {'✓' if right else '✗'}{note}</span>"
        f"<pre>{html.escape(clip(row.get(f'attempt{number}', '')))}</pre></div>"
    )


def texts_note(run: Run) -> str:
    """Tells where the texts come from."""
    last = run.milestones[-1]
    when = WHEN.get(last["when"], f"at step {last['global_step']}")
    return f"From the evaluation {when}: the first of each kind, not the best."


# The page of several runs


def several_runs(runs: list[Run]) -> str:
    """Renders the page of several runs: tables and curves of all, their mean, and what differs in their configs."""
    kind = kind_of([row for run in runs for row in run.metrics + run.evaluations])
    runs = [replace(run, kind=kind) for run in runs]
    rows = mean_rows(runs)
    names = ", ".join(run.name for run in runs)
    if len(rows) > 1:
        told = [row for row in rows if not row["is_greedy"]]
        names += f". In the mean, {kind.summary(told, is_mean=True)}"
    body = [heading(f"{len(runs)} runs", names)]
    if rows:
        groups = [(f"mean of {len(runs)} runs, with the interval over runs", rows)]
        groups += [(f"{run.name}, seed {run.config.get('seed', '?')}", run.table) for run in runs]
        body.append(held_out(kind, groups))
    body += in_pairs(runs) + one_by_one(runs) + alarms(runs) + counterfactuals(runs) + scoreboards(runs) + curves(runs)
    body += drifts(runs)
    body.append(section("What differs", differences(runs), "Keys of the configs that are not the same in all runs."))
    return page(f"{len(runs)} runs", body, sum(run.damaged for run in runs))


def mean_rows(runs: list[Run]) -> list[dict]:
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


def differences(runs: list[Run]) -> str:
    """Renders a table of the config keys in which the runs differ."""
    flats = [flat(run.config) for run in runs]
    keys = dict.fromkeys(key for each in flats for key in each)
    lines = []
    for key in keys:
        values = [each.get(key, "–") for each in flats]
        if len(set(values)) > 1:
            lines.append(table_row(key, values))
    return table([(run.name, "muted") for run in runs], lines, "keys")


def flat(tree: dict, prefix: str = "") -> dict[str, str]:
    """Flattens a tree into dotted keys and their values as text."""
    result = {}
    for key, value in tree.items():
        result |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": str(value)}
    return result


# Curves

Point = tuple[int, float, list | None]  # step, value, interval


@dataclass(frozen=True)
class Chart:
    """One chart: the keys of the rows to plot, each with a label and a colour."""

    title: str
    note: str
    series: dict[str, tuple[str, str]]
    rows: Callable[[Run], list[dict]] = lambda run: run.metrics
    log: bool = False
    floor: float | None = None  # the axis starts here
    percent: bool = False
    hero: bool = False  # as wide as the page


BANDS = "the bands are 95 % intervals"
SPREAD = "standard deviation, mean over the step"
# runs have two attempts, seldom more; series and columns that no row has are left out
ATTEMPTS = {1: ("attempt 1", "one"), **{number: (f"attempt {number}", "two") for number in range(2, 10)}}


FAMILY_COLOURS = ("two", "one", "good", "bad", "muted", "ink")


def of_attempts(key: str) -> dict[str, tuple[str, str]]:
    """Returns the series of a quantity that all attempts have."""
    return {f"{key}_attempt{number}": look for number, look in ATTEMPTS.items()}


def evaluations(run: Run) -> list[dict]:
    """Returns the rows of held-out evaluations."""
    return run.evaluations


HELD_OUT = (
    Chart("Accuracy on held-out questions", f"Exact match; {BANDS}.",
          of_attempts("acc"), evaluations, percent=True, hero=True),
    Chart("What correcting changes", f"Share of all held-out answers; {BANDS}.",
          {"i_to_c": ("wrong → right", "good"), "c_to_i": ("right → wrong", "bad")}, evaluations, floor=0,
          percent=True),
    Chart("Gain of a second look", "Accuracy of the last attempt minus that of attempt 1, on the same questions.",
          {"delta": ("delta", "two")}, evaluations, percent=True),
)  # fmt: skip
TRAINING = (
    Chart("Accuracy in training", "Exact match of the answers sampled in each step; the bold line is a moving mean.",
          of_attempts("acc"), percent=True),
    Chart("Reward in training", "As the reward function returns it, before bonus and baseline.",
          of_attempts("reward")),
    Chart("Distance from the base model", "KL in nats per token, logarithmic. Stage I holds attempt 1 in place.",
          of_attempts("kl"), log=True),
    Chart("Spread of rewards", f"Among answers that are compared with each other: {SPREAD}.",
          of_attempts("reward_std"), floor=0),
    Chart("Idle answers", "Second attempts without an advantage: they earned what those beside them did.",
          {"zero_advantage": ("idle", "two")}, floor=0, percent=True),
    Chart("Length", "Tokens per attempt, the end token included.",
          of_attempts("length"), floor=0),
    Chart("Truncation", "Answers that ran out of tokens before they ended.",
          of_attempts("truncated"), floor=0, percent=True),
    Chart("Well-formed", "Answers that have the declared format, with the answer in its place.",
          of_attempts("well_formed"), percent=True),
)  # fmt: skip
PLAY_HELD_OUT = (
    Chart("Accuracy on held-out questions", f"Exact match of single answers; {BANDS}.",
          {"acc": ("pass@1", "two"), "opponent_acc": ("opponent", "one")}, evaluations, percent=True, hero=True),
    Chart("Games won on held-out questions", f"Of those that one side won; {BANDS}.",
          {"win_rate": ("won", "good")}, evaluations, floor=0, percent=True),
    Chart("Games in training", "Share that the policy won, and that its opponent won, of the prompts drawn in a step.",
          {"wins": ("won", "good"), "losses": ("lost", "bad")}, floor=0, percent=True),
)  # fmt: skip
PLAY_TRAINING = (
    Chart("Accuracy in training", "Right answers, and prompts with at least one; the bold line is a moving mean.",
          {"acc": ("right", "two"), "solved": ("solved", "good")}, percent=True),
    Chart("Reward in training", "As the reward function returns it, before games and baseline.",
          {"reward": ("reward", "two")}),
    Chart("Spread of rewards", f"Among the answers to a prompt, games included: {SPREAD}.",
          {"reward_std": ("spread", "two")}, floor=0),
    Chart("Equal groups", "Prompts whose answers all earn the same: they teach nothing.",
          {"equal_groups": ("equal", "two")}, floor=0, percent=True),
    Chart("Clipped", "Tokens that the clip range keeps from learning: below it what was bad, above it what was good.",
          {"clipped_low": ("below", "bad"), "clipped_high": ("above", "good")}, floor=0, percent=True),
    Chart("Distance of an update", "Mean log ratio of an answer's tokens, new over old policy: percentiles 5 and 95.",
          {"log_ratio_p5": ("5 %", "bad"), "log_ratio_p95": ("95 %", "good")}),
    Chart("Entropy", "In nats per token.", {"entropy": ("entropy", "two")}, floor=0),
    Chart("Distance from the base model", "KL in nats per token, logarithmic.", {"kl": ("kl", "two")}, log=True),
    Chart("Length", "Tokens per answer, the end token included.",
          {"length": ("answer", "two"), "thinking_tokens": ("thinking", "one")}, floor=0),
    Chart("Truncation", "Answers that ran out of tokens before they ended.",
          {"truncated": ("cut off", "two")}, floor=0, percent=True),
    Chart("Well-formed", "Answers that have the declared format, with the answer in its place.",
          {"well_formed": ("well-formed", "two")}, percent=True),
)  # fmt: skip
IMITATION = (
    Chart("Loss", "Mean cross-entropy of the trained tokens, in nats.",
          {"loss": ("loss", "two")}),
    Chart("Tokens right", "Share of trained tokens that the model finds most likely.",
          {"mean_token_accuracy": ("tokens right", "two")}, percent=True),
)  # fmt: skip


def curves(runs: list[Run]) -> list[str]:
    """Renders the sections of charts; a chart without data is left out."""
    body = []
    for title, charts in runs[0].kind.charts.items():
        figures = "".join(figure(chart, runs) for chart in charts if not repeats_accuracy(chart, runs))
        if figures:
            body.append(section(title, f"<div class=figures>{figures}</div>"))
    return body


def drifts(runs: list[Run]) -> list[str]:
    """Renders the section on adapters that are not PEFT's: how far they have moved, and whether the rewards explain it.

    Without such adapters there is none, and below FEWEST_STEPS steps it has no correlations.
    """
    keys = dict.fromkeys(key for run in runs for row in run.metrics for key in row if key.startswith("drift/"))
    looks = {key: (key.removeprefix("drift/"), look) for key, look in zip(keys, cycle(FAMILY_COLOURS), strict=False)}
    chart = Chart("Drift", "Root mean square of a family's distance from doing nothing, logarithmic.", looks, log=True,
                  hero=True)  # fmt: skip
    drawn = figure(chart, runs)
    lines = []
    for run, key in product(runs, keys):
        spread = max((name for row in run.metrics for name in row if name.startswith("reward_std")), default="")
        rows = [row for row in run.metrics if is_number(row.get(key)) and is_number(row.get(spread))]
        if len(rows) < FEWEST_STEPS:
            continue
        drift, spreads = ([row[name] for row in rows] for name in (key, spread))
        name = f"{run.name}: {looks[key][0]}" if len(runs) > 1 else looks[key][0]
        cells = [correlated(drift, spreads), correlated(*map(changes, (drift, spreads)))]
        inner = "".join(f"<td>{each}</td>" for each in cells)
        lines.append(f"<tr><th>{html.escape(name)}</th>{inner}<td class=n>{len(rows)}</td></tr>")
    heads = [("step by step", "two"), ("their changes", "muted"), ("steps", "muted")]
    note = (
        "Pearson's r of a family's drift with the spread of rewards (of the last attempt, if there are several) and of "
        "their changes from step to step; in brackets Fisher's 95 % interval, which takes steps to be independent. Two "
        "quantities that drift are correlated whatever the cause, and the interval is then too narrow; less so their "
        "changes."
    )
    content = f"<div class=figures>{drawn}</div>" + (table(heads, lines) if lines else "")
    return [section("Adapters", content, note if lines else "")] if drawn else []


def changes(values: list[float]) -> list[float]:
    """Returns the differences of neighbours."""
    return [after - before for before, after in pairwise(values)]


def correlated(first: list[float], second: list[float]) -> str:
    """Formats Pearson's r over its interval; a dash where one side does not vary."""
    r, ends = pearson(first, second)
    return cell({"difference": r, "difference_ci95": ends}, "difference")


def repeats_accuracy(chart: Chart, runs: list[Run]) -> bool:
    """Tells whether the chart shows a reward that is nothing but exact match."""
    pairs = {key: key.replace("reward", "acc") for key in chart.series if key.startswith("reward")}
    rows = [row for run in runs for row in run.metrics]
    return bool(pairs) and all(row.get(key) == row.get(accuracy) for key, accuracy in pairs.items() for row in rows)


def figure(chart: Chart, runs: list[Run]) -> str:
    """Renders one chart with its title and note; "" without data."""
    drawn = draw(chart, runs)
    if not drawn:
        return ""
    hero = " class=hero" if chart.hero else ""
    note = chart.note.replace(BANDS, "bold is the mean of the runs") if len(runs) > 1 else chart.note
    return f"<figure{hero}><figcaption><b>{chart.title}</b> {note}</figcaption>{drawn}</figure>"


def points(chart: Chart, run: Run, key: str) -> list[Point]:
    """Returns the points of one key's curve: step, value, interval or None."""
    rows = (row for row in chart.rows(run) if is_number(row.get(key)))
    # the first step's KL is exactly 0 and has no logarithm
    return [(row["global_step"], row[key], row.get(f"{key}_ci95")) for row in rows if row[key] > 0 or not chart.log]


def draw(chart: Chart, runs: list[Run]) -> str:
    """Draws the chart as inline SVG; "" without data."""
    lines = {key: [points(chart, run, key) for run in runs] for key in chart.series}
    heights = [height for each in lines.values() for line in each for _, value, ends in line
               for height in (value, *(ends or ())) if is_number(height)]  # fmt: skip
    if not heights:
        return ""

    def plot(axes: Any) -> None:
        if chart.log:
            axes.set_yscale("log")
        ends = []
        for key, (label, colour) in chart.series.items():
            end = draw_series(axes, lines[key], COLOURS[colour], chart)
            if end is not None:
                ends.append((end, label, COLOURS[colour]))
        furnish(axes, chart, max(heights))
        label_ends(axes, ends)

    return picture(chart.title, plot, {step for run in runs for step in run.boundaries}, chart.hero)


def draw_series(axes: Any, lines: list[list[Point]], colour: str, chart: Chart) -> float | None:
    """Draws one quantity: a curve, or thin curves of several runs under their mean. Returns its last value or None."""
    smooth = chart.rows is not evaluations
    if len(lines) > 1:
        for line in filter(None, lines):
            steps, values, _ = zip(*line, strict=True)
            axes.plot(steps, moving_mean(values) if smooth else values, color=colour, linewidth=1, alpha=0.45)
    main = mean_line(lines) if len(lines) > 1 else lines[0]
    if not main:
        return None
    steps, values, _ = zip(*main, strict=True)
    if smooth:
        if len(lines) == 1:
            axes.plot(steps, values, color=colour, linewidth=0.7, alpha=0.3)
        values = moving_mean(values)
    axes.plot(steps, values, color=colour, linewidth=2, marker="" if smooth else "o", markersize=3.5)
    banded = [(step, *ends) for step, _, ends in main if ends and len(ends) == 2 and all(map(is_number, ends))]
    if banded:
        axes.fill_between(*zip(*banded, strict=True), color=colour, alpha=0.16, linewidth=0)
    return values[-1]


def furnish(axes: Any, chart: Chart, highest: float) -> None:
    """Sets labels, limits and percentages."""
    if chart.hero:
        axes.set_xlabel("step")
    if chart.floor is not None:
        axes.set_ylim(chart.floor, max(1.1 * highest, 0.02))
    if chart.percent:
        axes.yaxis.set_major_formatter(lambda value, _: f"{round(100 * value, 6):g} %")


def mean_line(lines: list[list[Point]]) -> list[Point]:
    """Averages the runs at every step that all of them have."""
    by_step = [{step: value for step, value, _ in line} for line in lines]
    shared = sorted(set.intersection(*(set(values) for values in by_step)))
    return [(step, fmean(values[step] for values in by_step), None) for step in shared]


def moving_mean(values: Iterable[float]) -> list[float]:
    """Averages each value with its neighbours; the window is 1/25 of the curve, and shrinks at both ends."""
    values = list(values)
    reach = len(values) // 50
    return [fmean(values[max(0, i - reach) : i + reach + 1]) for i in range(len(values))]


def label_ends(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """Labels each curve at its right end, far enough from the other labels; there is no legend to look up."""
    scale = math.log if axes.get_yscale() == "log" else float
    low, high = map(scale, axes.get_ylim())
    heights = [(scale(value) - low) / (high - low) for value, _, _ in ends]
    order = sorted(range(len(ends)), key=lambda index: heights[index])
    gap = 0.1
    for below, above in [*pairwise(order)] * len(order):  # to move one may push it over the next
        overlap = gap - (heights[above] - heights[below])
        if overlap > 0:
            heights[below] -= overlap / 2
            heights[above] += overlap / 2
    for height, (_, label, colour) in zip(heights, ends, strict=True):
        axes.text(1.015, height, label, transform=axes.transAxes, va="center", color=colour)


# Kinds of runs


@dataclass(frozen=True)
class Kind:
    """Says how the runs of one script are shown."""

    accuracies: tuple[str, ...]  # of the texts that training changes; every sound evaluation has them
    nothing: str  # said where there is no evaluation
    summary: Callable[..., str]  # the milestones, and whether they are means of several runs, as a sentence
    columns: Callable[[list[dict]], dict[str, tuple[str, str]]]  # of a table of evaluations: key, heading, colour
    legend: Callable[[dict], str]  # of that table, by its last evaluation
    charts: dict[str, tuple[Chart, ...]]
    speakers: tuple[str, ...]  # who wrote the texts of an example
    outcomes: dict[str, tuple[bool, bool, int]]  # of its two texts: which are right, how many examples are shown
    pairs: Callable[[list[dict]], list[dict]] = list  # makes rows with attempt1 and attempt2 out of generations.jsonl
    is_staged: bool = True


def corrects(rows: list[dict], is_mean: bool = False) -> str:
    """Tells in a sentence what a further attempt is good for."""
    now, before = rows[-1], rows[0]
    last = f"acc_attempt{attempts_of(now)[-1]}"
    start, joint = (f"attempt {last[-1]}", " and") if is_mean else (f"Attempt {last[-1]}", ",")
    text = f"{start} answers {percent(now[last])} of the held-out questions{joint} attempt 1 "
    text += percent(now["acc_attempt1"])
    if len(rows) > 1:
        text += f"; before training it was {percent(before[last])} and {percent(before['acc_attempt1'])}"
    low, high = (not is_mean and now.get("delta_ci95")) or (None, None)
    if all(map(is_number, (low, high, now.get("delta")))):
        sign = "helps" if low > 0 else "hurts" if high < 0 else "neither helps nor hurts measurably"
        text += f". A second look {sign}: {100 * now['delta']:+.1f} points, "
        text += f"95 % interval {100 * low:+.1f} to {100 * high:+.1f}"
    return text + "."


def plays(rows: list[dict], is_mean: bool = False) -> str:
    """Tells what was learned, and whether it beats the opponent."""
    now, before = rows[-1], rows[0]
    went = f"went from {percent(before['acc'])} to" if len(rows) > 1 else "is"
    text = f"{'pass' if is_mean else 'Pass'}@1 on held-out questions {went} {percent(now['acc'])}"
    if is_number(now.get("win_rate")):
        text += f". Against its opponent the policy won {percent(now['win_rate'])} of the games there that one side won"
        ends = now.get("win_rate_ci95") or []
        text += f", 95 % interval {100 * ends[0]:.1f} to {100 * ends[1]:.1f}" if len(ends) == 2 else ""
    return text + "."


def columns_of_play(rows: list[dict]) -> dict[str, tuple[str, str]]:
    """Returns the columns of pass@1, pass@k, well-formed answers and games, as far as there are any."""
    passes = [key for row in rows for key in row if key.startswith("pass@") and not key.endswith("_ci95")]
    looks = {"acc": ("pass@1", "two"), **{key: (key, "muted") for key in passes}}
    looks |= {"well_formed": ("well-formed", "muted")}
    looks |= {"win_rate": ("games won", "muted"), "opponent_acc": ("opponent", "one")}
    return {key: look for key, look in looks.items() if any(is_number(row.get(key)) for row in rows)}


def legend_of_play(row: dict) -> str:
    """Explains what a game is, and how many there were."""
    text = "pass@k: one of k answers at least is right."
    wins, losses = row.get("wins"), row.get("losses")
    if is_number(wins) and is_number(losses):
        text += f" Games won: of those that one side won, here {wins + losses} of {row.get('games', '?')}, by the "
        text += "policy's first answer against the opponent's one. Opponent: how many of its answers are right."
    if row.get("missing_games"):
        text += f" {row['missing_games']} games more could not be judged, or the opponent was missing."
    return text


def games(rows: list[dict]) -> list[dict]:
    """Merges rows by prompt: the policy's first answer and the opponent's; without an opponent match2 is match1."""
    said: dict[str, dict] = {"policy": {}, "opponent": {}}
    for row in rows:
        said.get(row.get("who"), {}).setdefault(row.get("prompt"), row)
    pairs = []
    for prompt, mine in said["policy"].items():
        theirs = said["opponent"].get(prompt, {} if said["opponent"] else {"match": mine.get("match")})
        pair = {f"{key}{i}": row.get(key) for i, row in ((1, mine), (2, theirs)) for key in ("match", "malformed")}
        pairs.append({**mine, **pair, "attempt1": mine.get("text", ""), "attempt2": theirs.get("text")})
    return pairs


def columns_of_attempts(rows: list[dict]) -> dict[str, tuple[str, str]]:
    """Returns the columns of all attempts, and of further figures where some row has them."""
    attempts = {number for row in rows for number in attempts_of(row)} | {1, 2}
    looks = {
        **{f"acc_attempt{number}": ATTEMPTS[number] for number in sorted(attempts)},
        "delta": ("delta", "muted"), "i_to_c": ("i→c", "muted"), "c_to_i": ("c→i", "muted"),
    }  # fmt: skip
    more = {
        "revised_after_wrong": ("revised", "two"), "fresh_after_wrong": ("fresh", "one"),
        "revised_minus_fresh": ("revised − fresh", "muted"),
        **{f"well_formed_attempt{i}": (f"well-formed {i}", "muted") for i in sorted(attempts)},
    }  # fmt: skip
    return looks | {key: look for key, look in more.items() if any(is_number(row.get(key)) for row in rows)}


def legend_of_attempts(row: dict) -> str:
    """Explains the names of the columns."""
    text = "i→c: wrong at first, then right; c→i: right at first, then wrong; delta = i→c − c→i."
    if is_number(row.get("revised_minus_fresh")):
        text += (
            " Revised: how often attempt 2 is right after a wrong attempt 1; fresh: how often another first attempt "
        )
        text += "to the same question is."
    return text


SCORE = Kind(
    accuracies=("acc_attempt1", "acc_attempt2"), nothing="No evaluation of both attempts", summary=corrects,
    columns=columns_of_attempts,
    legend=legend_of_attempts,
    charts={"Learning": HELD_OUT, "Training": TRAINING}, speakers=tuple(label for label, _ in ATTEMPTS.values()),
    outcomes={
        "corrected": (False, True, 3), "broken": (True, False, 2), "kept": (True, True, 1),
        "missed twice": (False, False, 1),
    },
)  # fmt: skip
SELF_PLAY = Kind(
    accuracies=("acc",), nothing="No evaluation yet", summary=plays, columns=columns_of_play, legend=legend_of_play,
    charts={"Learning": PLAY_HELD_OUT, "Training": PLAY_TRAINING}, speakers=("policy", "opponent"),
    outcomes={
        "won": (True, False, 2), "lost": (False, True, 2), "unsolved": (False, False, 2), "solved": (True, True, 1),
    },
    pairs=games, is_staged=False,
)  # fmt: skip
IMITATES = replace(SCORE, accuracies=(), charts={"Training": IMITATION})  # no questions, no texts
KINDS = (SCORE, SELF_PLAY, IMITATES)


def kind_of(rows: list[dict]) -> Kind:
    """Returns the first kind all of whose accuracies are in the rows: without any, these are of SFT."""
    keys = {key for row in rows for key in row}
    return next(kind for kind in KINDS if keys.issuperset(kind.accuracies))


# HTML


def percent(value: float) -> str:
    """Formats a share as `83.1 %`."""
    return f"{100 * value:.1f} %"


def clip(value: object) -> str:
    """Returns the text, with its middle left out if it is very long."""
    text = str(value)
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters …\n{text[-half:]}"


if __name__ == "__main__":
    run_script(main)

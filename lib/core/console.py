"""Prints a run: a line per step and the table of evaluations; rich in a terminal, plain in a file."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count, takewhile
from math import isnan
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

WHEN = {"pretrain": "pretrain", "adapter": "adapter", "after_stage1": "after stage I", "after_stage2": "after stage II",
        "after_training": "after training"}  # fmt: skip

PRINT_SECONDS = 15.0
STOP = {"verdict": "stop when right (by an oracle)", "self": "stop when its own check finds it right"}
FEEDBACK = {"none": "no feedback", "verdict": "verdict feedback (an oracle's)", "self": "its own review"}
LEGEND = (
    "each step: the share of sampled answers that are right, length in tokens, KL to the base in nats a token, sampled "
    "tokens a second; in yellow what is unusual. All figures of a step are in metrics.jsonl and on the page."
)
READ = {"own": "its own", "other": "another's"}  # by attempt 2


def duration(seconds: float) -> str:
    """Formats seconds as `42s`, `3m05s` or `2h10m`."""
    seconds = int(seconds)
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02d}s"
    return f"{seconds // 3600}h{seconds % 3600 // 60:02d}m"


def until(seconds: float) -> str:
    """Formats as `12m05s left, until 14:32`, with the date unless it is today."""
    now = datetime.now()
    end = now + timedelta(seconds=seconds)
    return f"{duration(seconds)} left, until {end:%H:%M}" + (f" on {end:%d %b}" if end.date() != now.date() else "")


def answered(row: dict) -> str:
    """Describes how an evaluation was answered: greedily, or at which temperature, and with which feedback."""
    temperature, feedback = row.get("temperature"), row.get("feedback")
    how = "greedy" if temperature == 0 else f"temperature {temperature:g}" if temperature else "temperature unknown"
    note = "" if feedback in (None, "stop") else f", {FEEDBACK.get(feedback, f'{feedback} feedback')}"
    stop = row.get("stop")
    return how + note + (f", {STOP.get(stop, f'stop by {stop}')}" if stop else "")


def share(value: float | None, sign: str = "", digits: int = 1) -> str:
    """Formats a share as `83.1 %`; with the sign "+" a difference of shares as `+3.2`, in points; `-` for None."""
    return "-" if value is None else f"{round(100 * value, digits) + 0.0:{sign}.{digits}f}{'' if sign else ' %'}"


def interval(ends: Sequence[float | None] | None, sign: str = "") -> str:
    """Formats an interval of shares as `79.6 82.7`; "" without one, as for a single question."""
    return " ".join(f"{100 * end:{sign}.1f}" for end in ends or () if end is not None and not isnan(end))


def label_of(row: dict, rows: list[dict], between: str = ", ") -> str:
    """Returns a row's label in a table of `rows`: its moment, and how it was sampled if the rows differ there."""
    label = WHEN.get(row["when"]) or row.get("label") or f"step {row['step']}"
    differ = len({answered(row) for row in rows}) > 1
    return between.join([label, *answered(row).split(", ")]) if differ else label


def fresh_draw(row: dict) -> str:
    """Compares revisions of wrong first attempts with other first attempts; "" if the row has no such numbers."""
    if row.get("revised_minus_fresh") is None:
        return ""
    revised, fresh = in_brackets(row, "revised_after_wrong"), in_brackets(row, "fresh_after_wrong")
    difference = in_brackets(row, "revised_minus_fresh", "+")
    return f"after a wrong attempt 1 the revision is right {revised}, a fresh attempt 1 {fresh}: {difference}"


def in_brackets(row: dict, key: str, sign: str = "") -> str:
    """Formats a share as `81.2 % [79.6 82.7]`, with its 95 % interval, which a single question does not have."""
    return f"{share(row[key], sign)} [{interval(row[f'{key}_ci95'], sign) or 'of one question'}]"


def one_after_another(row: dict) -> list[str]:
    """Describes the success of k attempts in a chat and of k first attempts, for k above 1, and repeated answers."""
    lines = []
    for part in row.get("success_at_k", ())[1:]:
        k, succ, firsts = part["k"], in_brackets(part, "succ"), in_brackets(part, "pass")
        gain = in_brackets(part, "gain", "+")
        lines.append(f"one of {k} attempts in a chat is right {succ}, one of {k} first ones {firsts}: {gain}")
    if row.get("repeat_rate") is not None:
        lines.append(f"after a wrong attempt {share(row['repeat_rate'])} of the next ones repeat an earlier answer")
    return lines


def attempts_of(row: dict, key: str = "acc") -> list[int]:
    """Returns the numbers of the attempts that a row has the quantity `key` of; [] where answers are single."""
    return list(takewhile(lambda number: f"{key}_attempt{number}" in row, count(1)))


def format_trouble(row: dict, accepts_cut: bool = False) -> Iterator[str]:
    """Yields what keeps answers from being right whatever they say: budgets that cut off a tenth, or no form at all."""
    shares, keys, formed, ended = [], [], 0.0, 0.0
    for number in attempts_of(row, "truncated") or [0]:  # 0: single answers
        attempt = f"_attempt{number}" if number else ""
        part = row.get(f"truncated{attempt}", 0)
        formed, ended = formed + row.get(f"well_formed{attempt}", 1), ended + 1 - part
        if part > 0.1:
            shares.append(f"{share(part, digits=0)} of {f'attempt {number}' if number else 'the answers'}")
            keys.append(f"generation.max_new_tokens{f'_attempt{min(2, number)}' if number else ''}")
    if shares and not accepts_cut:
        cut, raised = " and ".join(shares), " and ".join(dict.fromkeys(keys))
        yield f"{cut} cut off, and so malformed: raise {raised}, or set reward.accept_cut"
    if ended and not formed:
        yield (
            "no answer is well-formed, so none is right: have the prompts ask for what the reward wants "
            "(reward.format, reward.answer_extractor), or teach it first (sft_train.py)"
        )


def samples_of(rows: list[dict]) -> str:
    """Describes the sample sizes of a table of `rows`, per temperature, and the held-out rows in use."""
    parts = []
    for way in dict.fromkeys(map(answered, rows)):
        same_way = [row for row in rows if answered(row) == way]
        sizes = {(row.get("n", "?"), row.get("prompts", "?")): row for row in same_way}
        n, prompts = (same_way[-1].get(key, "?") for key in ("n", "prompts"))
        how = f"by greedy decoding{way.removeprefix('greedy')}" if way.startswith("greedy") else f"at {way}"
        text = f"{how}, n = {n} answers to {prompts} held-out questions"
        smaller = [f"{label_of(row, [row])}: {' to '.join(map(str, size))}" for size, row in sizes.items()]
        parts.append(text + (f" ({', '.join(smaller[:-1])})" if len(smaller) > 1 else ""))
    if rows and rows[-1].get("rows"):
        first, end = rows[-1]["rows"]
        parts[-1] += f", from rows {first} to {end - 1} (counted from 0) of what is held out"
        left_out = rows[-1].get("rows_left_out")
        parts[-1] += f" without {left_out} that training chooses by" if left_out else ""
    return "; ".join(parts)


def with_best(rows: list[dict], best_of: Callable[[int], str | None]) -> list[dict]:
    """Selects rows of evaluations.jsonl for a table; adds the best of a stage after its last row, if they differ.

    `best_of(stage)` is the best checkpoint's folder, relative to the run's, such as `stage1/step_150`. Rows after which
    the run went back to an earlier checkpoint are left out.
    """
    rows = [row for row in rows if "went_back" not in row]
    places = [f"stage{row.get('stage', 1)}/step_{row['step']}" for row in rows]
    table = []
    for number, row in enumerate(rows):
        table.append(row)
        stage = row.get("stage", 1)
        goes_on = number + 1 < len(rows) and rows[number + 1].get("stage", 1) == stage
        folder = None if goes_on else best_of(stage)
        if folder in places and folder != places[number]:
            step = f"step {folder.rpartition('_')[2]}{'' if folder.startswith(f'stage{stage}/') else ' of stage I'}"
            names = {"pretrain": "the start", "adapter": "the start", "after_stage1": "the end of stage I"}
            best = [row for row, place in zip(rows, places, strict=True) if place == folder]
            table += [row | {"when": "best", "label": f"  best: {names.get(row['when'], step)}"} for row in best]
    return table


def _noted(row: dict, idle: float, formed: list[float | None]) -> str:
    """Describes what is unusual about a step; "" for a usual one."""
    parts = [part for part in formed if part is not None]
    notes = [f"  {share(idle, digits=0)} without advantage"] if idle > 0.5 else []
    notes += [f"  formed {' '.join(share(part, digits=0) for part in parts)}"] if min(parts, default=1.0) < 0.9 else []
    notes += [f"  cut {share(row['truncated'], digits=0)}"] if row["truncated"] > 0.1 else []
    return "".join(notes)


class ProgressPrinter:
    """Reports the progress of a long operation every PRINT_SECONDS; quick ones are not reported."""

    def __init__(self, say: Callable[[str], None], what: str, now: Callable[[], float] = time.monotonic):
        self._say, self._what, self._now = say, what, now
        self._last = now()

    def __call__(self, done: int, of: int) -> None:
        """Reports that `done` of `of` questions are answered, if the last report is old enough."""
        now = self._now()
        if now - self._last < PRINT_SECONDS or not 0 < done < of:
            return
        self._last = now
        self._say(f"{self._what}: {done}/{of} questions")


class Screen:
    """The terminal of the main process; elsewhere silent."""

    def __init__(self, is_main: bool = True):
        self._console = Console(quiet=not is_main, highlight=False, soft_wrap=True)
        # as wide as a table, whatever the terminal: a figure must not be cut off in a log
        self._tables = Console(quiet=not is_main, highlight=False, width=10_000)
        self._explained = False  # what a step's line says

    def say(self, text: str) -> None:
        """Prints one plain line."""
        self._console.print(Text(text))

    def heading(self, text: str) -> None:
        """Prints a rule with a title."""
        self._console.rule(Text(text), align="left")

    def warn(self, text: str) -> None:
        """Prints a warning that stands out."""
        self._console.print(Text(f"WARNING: {text}", style="bold yellow"))

    def alarm(self, alarm: Any) -> None:
        """Prints an alarm of the watch (lib/rl/watch.py), when it begins and when it ends."""
        loud = "bold red" if alarm.severity == "collapse" else "bold yellow"
        word = alarm.severity.upper() if alarm.begins else "watch"
        where = f"stage {alarm.stage} step {alarm.step}"
        self._console.print(Text(f"{word} at {where}: {alarm.text}", style=loud if alarm.begins else "cyan"))

    def step(self, row: dict, left: float) -> None:
        """Prints the line of one step, of several attempts or of single answers; `left`: estimated seconds."""
        attempts = attempts_of(row, "length")  # which a row has even if nothing was judged
        if not attempts:
            return self._single_step(row, left)

        def values(key: str, digits: int) -> str:
            numbers = [row.get(f"{key}_attempt{number}") for number in attempts]
            return " ".join("-" if value is None else f"{value:.{digits}f}" for value in numbers)

        right = (f"attempt {number} {share(row.get(f'acc_attempt{number}'), digits=0)}" for number in attempts)
        self._line(
            f"stage {row['stage']} step {row['step']:>4}/{row['steps']}",
            f"{'  '.join(right)} ({share(row['gap'], '+', digits=0)})",
            f"  length {values('length', 0)}  kl {values('kl', 4)}",
            _noted(row, row["zero_advantage"], [row.get(f"well_formed_attempt{number}") for number in attempts]),
            row,
            left,
        )

    def _single_step(self, row: dict, left: float) -> None:
        self._line(
            f"step {row['step']:>4}/{row['steps']}",
            f"right {share(row.get('acc', 0.0), digits=0)}",
            (f"  won {share(row['wins'], digits=0)} lost {share(row['losses'], digits=0)}" if "wins" in row else "")
            + f"  reward {row.get('reward', 0.0):.3f}  length {row['length']:.0f}",
            _noted(row, row["equal_groups"], [row.get("well_formed")]),
            row,
            left,
        )

    def _line(self, where: str, right: str, text: str, noted: str, row: dict, left: float) -> None:
        if not self._explained:
            self._explained = True
            self._console.print(Text(LEGEND, style="dim"))
        speed = f"  {row['tokens_per_second']:.0f} tok/s"
        parts = [(where, "bold"), "  ", (right, "green"), text, speed, (noted, "yellow"), (f"  {until(left)}", "dim")]
        self._console.print(Text.assemble(*parts))

    def _single_table(self, rows: list[dict], title: str) -> None:
        """Prints pass@1, pass@k and the games, each with its 95 % interval below."""
        largest = max(row["pass_at_k"][-1]["k"] for row in rows)
        of_k = {f"pass@{largest}": "pass"} if largest > 1 else {}
        columns = {"pass@1": "acc", **of_k, "well-formed": "well_formed"}
        has_games = any(row.get("win_rate") is not None or row.get("opponent_acc") is not None for row in rows)
        columns |= {"games won": "win_rate", "opponent": "opponent_acc"} if has_games else {}
        table = _table(title, columns)
        for row in rows:
            last = row["pass_at_k"][-1]
            values = row | (last if last["k"] == largest else {})
            cells = (_cell(values.get(key), values.get(f"{key}_ci95")) for key in columns.values())
            table.add_row(label_of(row, rows, between="\n"), *cells)
        self._tables.print(table)
        games = "; games won: of those that one side won, the policy's first answer against the opponent's"
        self.say(f"exact match {samples_of(rows)}{games if has_games else ''}; below each value its 95 % interval")

    def figures(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Prints a table of figures."""
        table = _table("", columns)
        for row in rows:
            table.add_row(*row)
        self.say(f"\n{title}")
        self._tables.print(table)

    def evaluation(self, row: dict) -> None:
        """Prints the line of one evaluation, of several attempts or of single answers."""
        text = _attempts(row) if "delta" in row else _single_answers(row)
        self._console.print(Text(f"eval {row['when']}: {text}, n = {row['n']}, {answered(row)}", style="bold cyan"))

    def table(self, rows: list[dict], title: str) -> None:
        """Prints a row per evaluation: accuracies and what they come to, each above its 95 % interval."""
        attempts = attempts_of(rows[-1]) if rows else [1, 2]
        if not attempts:
            return self._single_table(rows, title)
        changes = {"delta": "delta", "i_to_c": "i->c", "c_to_i": "c->i"}
        table = _table(title, [*(f"attempt {number}" for number in attempts), *changes.values(), "well-\nformed"])
        for row in rows:
            keys = (*(f"acc_attempt{number}" for number in attempts), *changes)
            cells = [_cell(row[key], row[f"{key}_ci95"], "+" if key == "delta" else "") for key in keys]
            formed = [row.get(f"well_formed_attempt{number}") for number in attempts]
            cells.append("\n".join(map(share, formed)))
            table.add_row(label_of(row, rows, between="\n"), *cells)  # on one line, too wide for 80 columns
        self._tables.print(table)
        if rows:
            self.say(
                f"exact match {samples_of(rows)}; below each value its 95 % interval; well-formed: the share of "
                f"attempt 1, and below it that of {' and '.join(f'attempt {number}' for number in attempts[1:])}"
            )
        for row in rows:
            for text in filter(None, [fresh_draw(row), *one_after_another(row)]):
                self.say(f"{label_of(row, rows).strip()}: {text}")


def _attempts(row: dict) -> str:
    fresh = f", revision - fresh draw {share(row['revised_minus_fresh'], '+')}" if "revised_minus_fresh" in row else ""
    attempts = attempts_of(row)
    right = ", ".join(f"attempt {number} {share(row[f'acc_attempt{number}'])}" for number in attempts)
    formed = " ".join(share(row[f"well_formed_attempt{number}"]) for number in attempts)
    return f"{right}, delta {in_brackets(row, 'delta', '+')}{fresh}, well-formed {formed}"


def _single_answers(row: dict) -> str:
    text = f"pass@1 {in_brackets(row, 'acc')}"
    if len(row["pass_at_k"]) > 1:
        text += f", pass@{row['pass_at_k'][-1]['k']} {share(row['pass_at_k'][-1]['pass'])}"
    if row.get("win_rate") is not None:
        text += f", wins {in_brackets(row, 'win_rate')} of {row['wins'] + row['losses']} decisive games"
    return f"{text}, well-formed {share(row['well_formed'])}"


def _table(title: str, columns: Iterable[str]) -> Table:
    """Returns an empty table with row labels; it has no margins, so that five columns with intervals fit a terminal."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, title=title,
                  title_justify="left", title_style="bold")  # fmt: skip
    for column in ("", *columns):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    return table


def _cell(value: float | None, ends: list[float] | None, sign: str = "") -> str:
    return f"{share(value, sign)}\n{interval(ends, sign)}".rstrip()

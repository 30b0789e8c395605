"""The figures of a sweep: each over the seeds of a variant, the differences between variants, and conditions.

A result is a row of results.jsonl. Its moments are those of its evaluations: `pretrain`, `after_stage1`, `step_30`,
`stage2_step_30`; `last` is the last one, and `best` that of the checkpoint that the run calls its best.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, median
from typing import NamedTuple

from lib.core.conditions import Condition, Figure, read_condition
from lib.core.config import SweepConfig
from lib.core.console import WHEN, attempts_of
from lib.core.stats import mean_interval, wilson
from lib.run.runlog import is_number

# key: heading, and whether more is better
FIGURES = {
    "acc_attempt1": ("attempt 1", True), "acc_attempt2": ("attempt 2", True), "delta": ("delta", True),
    "i_to_c": ("i->c", True), "c_to_i": ("c->i", False), "pass_at_2": ("pass@2", True),
    "revised_minus_fresh": ("revised - fresh", True),
    "well_formed_attempt1": ("well-formed 1", True), "well_formed_attempt2": ("well-formed 2", True),
    "acc": ("pass@1", True), "win_rate": ("games won", True), "well_formed": ("well-formed", True),
    "loss": ("loss", False),
}  # fmt: skip
SUMMARY_HEADS = ("n", "min", "median", "max", "mean, 95 % over seeds", "worst")
ACCURACY = Figure("accuracy")
ACCURACIES = {ACCURACY: "accuracy", Figure("accuracy_greedy"): "greedy",
              Figure("accuracy_without_feedback"): "without feedback",
              # of chats that end with their first right attempt, by an oracle, whether or not the variant's do
              Figure("acc_if_stopped", "last"): "with the same stop",
              Figure("acc_if_stopped", "last", 0): "with the same stop, greedy"}  # fmt: skip
COMPARED = {Figure("parameters"): "parameters", Figure("accuracy_greedy_before"): "greedy, before", **ACCURACIES,
            Figure("gained"): "gained", Figure("delta", "last"): "delta",
            Figure("seconds_per_step"): "seconds per step"}  # fmt: skip
LEADS = {Figure("lead", "last"): "last less best attempt 1", Figure("lead", "last", 0): "the same, greedy"}
# of each variant less the first, in pairs
PAIRED = LEADS | ACCURACIES | {Figure(key, "last"): FIGURES[key][0] for key in ("acc_attempt1", "i_to_c", "c_to_i")}
LEVEL = Figure("tokens_to_level")  # besides these, where a level is set
SIGNED = ("gained", "delta", "revised_minus_fresh")


def moment_of(row: dict) -> str:
    """Returns the name of the moment of an evaluation; one without the feedback of training is a moment of its own."""
    end = "_without_feedback" if row.get("feedback") == "none" else ""
    if row["when"] != "step":
        return f"{row['when']}{end}"
    return (f"step_{row['step']}" if row.get("stage", 1) == 1 else f"stage{row['stage']}_step_{row['step']}") + end


def with_feedback(rows: list[dict]) -> list[dict]:
    """Returns the evaluations without those that lack the feedback of training: they are next to the others."""
    return [row for row in rows if row.get("feedback") != "none"]


def value_of(result: dict, figure: Figure) -> float | None:
    """Returns the value of a figure in a run, None where it has none."""
    if figure.moment is None:
        return of_the_run(result, figure.key)
    rows = result["evaluations"]
    if figure.moment == "last":  # greedy and sampled rows of it
        last = [moment_of(row) for row in with_feedback(rows)][-1:]
        found = [row for row in rows if moment_of(row) in last]
    else:
        found = [row for row in rows if moment_of(row) == figure.moment]
    found = [row for row in found if figure.key in row]  # rows of `figures` have others than evaluations
    if figure.temperature is not None:
        found = [row for row in found if row.get("temperature") == figure.temperature]
    elif any(row.get("temperature") for row in found):
        found = [row for row in found if row.get("temperature")]
    value = found[-1].get(figure.key) if found else None
    if figure.end is not None:
        value = value[figure.end] if isinstance(value, list) and len(value) == 2 else None
    return value if is_number(value) else None


def of_the_run(result: dict, key: str) -> float | None:
    """Returns a figure of the whole run, one of OF_A_RUN, None where it has none."""
    if key == "alarms":
        return len(begun_alarms(result))
    if key == "tokens":
        return result["evaluations"][-1].get("tokens") if result["evaluations"] else None
    if key in ("accuracy_greedy", "accuracy_greedy_before"):
        return accuracy_at(result, "last" if key == "accuracy_greedy" else "pretrain", 0)
    if key == "accuracy_without_feedback":
        rows = [row for row in result["evaluations"] if row.get("feedback") == "none"]
        return accuracy_at(result, moment_of(rows[-1])) if rows else None
    if key not in ("accuracy", "gained"):
        return result.get(key)  # not every script tells its parameters and the seconds of its steps
    before, after = (accuracy_at(result, moment) for moment in ("pretrain", "last"))
    if key == "accuracy" or after is None:
        return after
    return None if before is None else after - before


def with_level(result: dict, level: float | None) -> dict:
    """Returns a result with `tokens_to_level`, if an evaluation reached that accuracy.

    A greedy one does not count where there are sampled ones.
    """
    rows = [row for row in with_feedback(result["evaluations"]) if "tokens" in row]
    rows = [row for row in rows if row.get("temperature")] or rows
    for row in rows if level is not None else ():
        accuracy = row.get(f"acc_attempt{attempts_of(row)[-1]}" if attempts_of(row) else "acc")
        if is_number(accuracy) and accuracy >= level:
            return {**result, "tokens_to_level": row["tokens"]}
    return result


def accuracy_at(result: dict, moment: str, temperature: float | None = None) -> float | None:
    """Returns the accuracy of the last attempt at a moment, None where it was not measured."""
    last = max((number for row in result["evaluations"] for number in attempts_of(row)), default=0)
    return value_of(result, Figure(f"acc_attempt{last}" if last > 1 else "acc", moment, temperature))


def last_values(result: dict) -> dict[str, float]:
    """Returns the main figures at the end of a run, by key."""
    return {key: value for key in FIGURES if (value := value_of(result, Figure(key, "last"))) is not None}


def begun_alarms(result: dict) -> list[dict]:
    """Returns the alarms of a run, without the rows that tell their ends."""
    return [row for row in result["alarms"] if row["event"] == "begins"]


@dataclass(frozen=True)
class Summary:
    """Values of a figure for one variant at one moment, over the seeds."""

    figure: Figure
    moment: str  # in words; "" for a figure of the whole run
    name: str
    more_is_better: bool
    values: dict[int, float]  # by seed

    @property
    def label(self) -> str:
        """Returns the label, such as `after stage II, greedy: attempt 2`."""
        return f"{self.moment}: {self.name}" if self.moment else self.name

    def cells(self, threads: dict[int, int]) -> list[str]:
        """Formats the cells under SUMMARY_HEADS; `threads`: number of threads, by seed."""
        values, sign = list(self.values.values()), "+" if self.figure.key in SIGNED else ""
        worst = (min if self.more_is_better else max)(self.values, key=self.values.get)
        ends = (rounded(value, sign) for value in (min(values), median(values), max(values)))
        mean = with_interval(fmean(values), mean_interval(values), sign)
        return [str(len(values)), *ends, mean, f"seed {worst}, {threads[worst]} thr."]


def rounded(value: float, sign: str = "") -> str:
    """Formats with three decimals; values of 10 or more as whole numbers."""
    return f"{value:{sign}.3f}" if abs(value) < 10 else f"{value:{sign}.0f}"


def with_interval(value: float, ends: tuple[float, float], sign: str) -> str:
    """Formats as `0.812 [0.796 0.827]`; without brackets if the interval is NaN, as for a single run."""
    text = rounded(value, sign)
    return f"{text} [{' '.join(rounded(end, sign) for end in ends)}]" if ends[0] == ends[0] else text


def summaries(results: list[dict]) -> list[Summary]:
    """Returns every main figure at every milestone of the runs of one variant, and their times and alarms."""
    moments = list(dict.fromkeys(moment for result in results for moment in milestones(result)))
    moments.sort(key=lambda each: [*WHEN, each[0]].index(each[0]))  # moments that are not in WHEN come last
    differ = len({temperature for _, temperature in moments}) > 1
    found = []
    for moment, temperature in moments:
        answered = "" if not differ else ", greedy" if temperature == 0 else ", sampled"
        label = WHEN.get(moment, moment.replace("_", " ")) + answered
        for key, (name, more_is_better) in FIGURES.items():
            figure = Figure(key, moment, temperature)
            found.append(Summary(figure, label, name, more_is_better, by_seed(figure, results)))
    for figure, more_is_better in {Figure("gained"): True, Figure("seconds_per_step"): False}.items():
        found.append(Summary(figure, "", COMPARED[figure], more_is_better, by_seed(figure, results)))
    seconds = {result["seed"]: result["seconds"] for result in results if not result["was_restarted"]}
    alarms = {result["seed"]: float(len(begun_alarms(result))) for result in results}
    found.append(Summary(Figure("seconds"), "", "seconds", False, seconds))
    found.append(Summary(Figure("alarms"), "", "alarms", False, alarms if any(alarms.values()) else {}))
    return [summary for summary in found if summary.values]


def by_seed(figure: Figure, results: list[dict]) -> dict[int, float]:
    """Returns the values of a figure by seed, without the runs that have none."""
    return {result["seed"]: value for result in results if (value := value_of(result, figure)) is not None}


def compared_cells(results: list[dict]) -> list[str]:
    """Formats the cells of a variant under the names of COMPARED: medians of sizes and times, else means; "–": none."""
    cells = []
    for figure in COMPARED:
        values = list(by_seed(figure, results).values())
        if not values:
            cells.append("–")
        elif figure.key == "parameters":
            cells.append(f"{median(values):,.0f}")
        elif figure.key == "seconds_per_step":
            cells.append(rounded(median(values)))
        else:
            cells.append(with_interval(fmean(values), mean_interval(values), "+" if figure.key in SIGNED else ""))
    return cells


def paired_cells(results: list[dict], baseline: list[dict]) -> list[str]:
    """Formats the cells of a variant under the names of PAIRED: its means less those of a baseline, seed by seed.

    LEADS are what correcting is worth next to single-turn RL as the baseline: the last attempt less attempt 1, its own
    or the baseline's, whichever is better. The one accuracy of runs trained without feedback is also that without it.
    """
    cells = []
    for figure in PAIRED:
        own, other = by_seed(figure, results), by_seed(figure, baseline)
        if figure in LEADS:
            own = by_seed(Figure("accuracy" if figure.temperature is None else "accuracy_greedy"), results)
            one, two = (by_seed(replace(figure, key="acc_attempt1"), rows) for rows in (results, baseline))
            other = {seed: max(one[seed], two[seed]) for seed in one if seed in two}
        if figure.key == "accuracy_without_feedback" and (own or other):
            own, other = own or by_seed(ACCURACY, results), other or by_seed(ACCURACY, baseline)
        gaps = [own[seed] - other[seed] for seed in own if seed in other]
        cells.append(with_interval(fmean(gaps), mean_interval(gaps), "+") if gaps else "–")
    return cells


def level_cell(results: list[dict]) -> str:
    """Says in how many runs the level was reached, and the median of the tokens that it took."""
    reached = list(by_seed(LEVEL, results).values())
    tokens = f"{median(reached):,.0f}, " if reached else ""
    return f"{tokens}{len(reached)} of {len(results)}"


class VariantTable(NamedTuple):
    """A table with a line per variant."""

    heads: Sequence[str]
    lines: dict[str, list[str]]

    @classmethod
    def of(cls, heads: Sequence[str], lines: dict[str, list[str]]) -> "VariantTable":
        """Returns the table, without columns in which no line has anything, and without lines if none is left."""
        kept = [place for place, cells in enumerate(zip(*lines.values(), strict=True)) if set(cells) != {"–"}]
        lines = {variant: [cells[place] for place in kept] for variant, cells in lines.items()} if kept else {}
        return cls([heads[place] for place in kept], lines)


def milestones(result: dict) -> list[tuple[str, float | None]]:
    """Returns the moments of a run for its table, with their temperatures: those between stages, or else the last one.

    The best is added only if it is not the last.
    """
    rows = result["evaluations"]
    shown = [row for row in rows if row["when"] not in ("step", "best")]
    shown += [row for row in rows if row["when"] == "best" and row["global_step"] != rows[-1]["global_step"]]
    return [(moment_of(row), row.get("temperature")) for row in shown or rows[-1:]]


FigureRows = list[tuple[Summary, list[str]]]  # of a table: a figure's summary and its cells


@dataclass(frozen=True)
class ConditionVerdict:
    """Says how well the runs of a variant meet a condition."""

    variant: str
    text: str
    met: int
    n: int
    worst: str

    @property
    def count(self) -> str:
        """The number of runs that meet it; where runs differ, Wilson's interval of the share: `2 of 5 [.12 .77]`."""
        low, high = wilson(self.met, self.n)
        return f"{self.met} of {self.n}" + (f" [{low:.2f} {high:.2f}]" if 0 < self.met < self.n else "")

    @property
    def holds(self) -> bool:
        """True if every run meets the condition, and there is one."""
        return self.met == self.n > 0


def check(condition: Condition, variant: str, results: list[dict]) -> ConditionVerdict:
    """Checks a condition in every run of a variant; a run that failed, or lacks a figure, does not meet it."""
    met, measured, missing = 0, [], []
    for result in results:
        found = condition.measure(partial(value_of, result))
        if found is None:
            missing.append(f"seed {result['seed']}")
        else:
            holds, value, margin = found
            measured.append((margin, value, result["seed"]))
            met += holds and not result["exit_code"]
    worst = f"{rounded(min(measured)[1])}, seed {min(measured)[2]}" if measured else ""
    if missing:
        worst += f"{'; ' if worst else ''}not measured: {', '.join(missing)}"
    return ConditionVerdict(variant, condition.text, met, len(results), worst)


@dataclass(frozen=True)
class SweepOutcome:
    """The results, tables and verdicts of a sweep."""

    results: dict[str, list[dict]]  # by variant, without variants that have none
    figures: dict[str, FigureRows]  # by variant, under SUMMARY_HEADS; of the runs that finished
    compared: VariantTable  # without lines where there is one variant; of the runs that finished
    paired: VariantTable  # each variant but the first, minus the first
    verdicts: list[ConditionVerdict]

    @property
    def all_results(self) -> list[dict]:
        """Returns the results of all variants."""
        return [row for rows in self.results.values() for row in rows]

    @property
    def failed(self) -> list[dict]:
        """Returns the results of runs that did not finish."""
        return [row for row in self.all_results if row["exit_code"]]


def outcome_of(config: SweepConfig, results: Iterable[dict]) -> SweepOutcome:
    """Computes tables and verdicts; `results` holds at least one."""
    by_variant: dict[str, list[dict]] = {variant: [] for variant in config.variants}
    for row in results:
        by_variant[row["variant"]].append(with_level(row, config.level))
    by_variant = {variant: rows for variant, rows in by_variant.items() if rows}
    threads = {row["seed"]: row["threads"] for rows in by_variant.values() for row in rows}
    finished = {variant: [row for row in rows if not row["exit_code"]] for variant, rows in by_variant.items()}
    figures = {variant: [(row, row.cells(threads)) for row in summaries(rows)] for variant, rows in finished.items()}
    conditions = map(read_condition, config.require)
    verdicts = [check(condition, variant, rows) for condition in conditions for variant, rows in by_variant.items()]
    several = finished if len(finished) > 1 else {}
    heads = ["n", *COMPARED.values(), f"tokens to {config.level}, median, and in how many"]
    lines = {
        variant: [str(len(rows)), *compared_cells(rows), "–" if config.level is None else level_cell(rows)]
        for variant, rows in several.items()
    }
    first = next(iter(finished.values()))
    pairs = {variant: paired_cells(rows, first) for variant, rows in list(several.items())[1:]}
    return SweepOutcome(
        by_variant, figures, VariantTable.of(heads, lines), VariantTable.of(list(PAIRED.values()), pairs), verdicts
    )

"""Curves as data: what the page's script draws, with intervals, a moving mean, and the mean of several runs."""

from collections.abc import Sequence
from itertools import cycle
from statistics import fmean
from typing import Any, NamedTuple

from lib.run.runlog import is_number
from pages.kinds import FAMILY_COLOURS, LineChart
from pages.run_folder import RunFolder


class ChartPoint(NamedTuple):
    """One value of a curve, with its interval or None."""

    step: int
    value: float
    interval: list | None


def chart_data(chart: LineChart, runs: Sequence[RunFolder]) -> dict[str, Any] | None:
    """Returns a chart as data; None where no run has one of its values.

    `x` has the steps, and each series its values at them, null where it has none: `y` as measured, `smooth` a moving
    mean, `low` and `high` an interval; `of` and `keys` tell which rows are drawn. With several runs a
    series is their mean and `runs` has each.
    """
    lines = {key: [points(chart, run, key) for run in runs] for key in chart.series}
    steps = sorted({point.step for series in lines.values() for line in series for point in line})
    if not steps:
        return None
    series = [one_series(chart, lines[key], steps, *look) for key, look in chart.series.items() if any(lines[key])]
    note = chart.note.replace("the bands are 95 % intervals", "bold is the mean of the runs")
    marks = {step: "stage II" for run in runs for step in run.boundaries}
    return {
        "title": chart.title, "note": note if len(runs) > 1 else chart.note, "log": chart.log, "floor": chart.floor,
        "percent": chart.percent, "hero": chart.hero, "x": steps, "series": series,
        "of": chart.of, "keys": [key for key in lines if any(lines[key])],
        "marks": [{"x": step, "text": text, "kind": "stage"} for step, text in marks.items()]
        + [{"x": begin, "text": "alarm", "kind": "alarm"} for run in runs for _, begin, _ in run.alarm_spans()],
    }  # fmt: skip


def points(chart: LineChart, run: RunFolder, key: str) -> list[ChartPoint]:
    """Returns the points of one key's curve."""
    rows = run.evaluations if chart.of == "evaluations" else run.metrics
    rows = [row for row in rows if is_number(row.get(key))]
    found = {row["global_step"]: ChartPoint(row["global_step"], row[key], row.get(f"{key}_ci95")) for row in rows}
    # the first step's KL is exactly 0 and has no logarithm
    return [found[step] for step in sorted(found) if found[step].value > 0 or not chart.log]


def one_series(
    chart: LineChart, lines: list[list[ChartPoint]], steps: list[int], label: str, colour: str
) -> dict[str, Any]:
    """Returns one quantity as data; with several lines, their mean and each of them."""
    main = mean_line(lines) if len(lines) > 1 else lines[0]
    series: dict[str, Any] = {"label": label, "colour": colour, "y": placed(steps, main)}
    values = [point.value for point in main]
    if chart.of == "metrics" and len(values) >= 50:
        smooth = [point._replace(value=value) for point, value in zip(main, moving_mean(values), strict=True)]
        series["smooth"] = placed(steps, smooth)
    banded = [point for point in main if point.interval and len(point.interval) == 2
              and all(map(is_number, point.interval))]  # fmt: skip
    if banded:
        for index, name in enumerate(("low", "high")):
            series[name] = placed(steps, [point._replace(value=point.interval[index]) for point in banded])
    if len(lines) > 1:
        series["runs"] = [placed(steps, line) for line in lines]
    return series


def placed(steps: list[int], line: list[ChartPoint]) -> list[float | None]:
    """Returns the values at `steps`, in five digits; None where the line has none."""
    values = {point.step: float(f"{point.value:.5g}") for point in line}
    return [values.get(step) for step in steps]


def mean_line(lines: list[list[ChartPoint]]) -> list[ChartPoint]:
    """Averages the runs at every step that all of them have."""
    by_step = [{point.step: point.value for point in line} for line in lines]
    shared = sorted(set.intersection(*(set(values) for values in by_step)))
    return [ChartPoint(step, fmean(values[step] for values in by_step), None) for step in shared]


def moving_mean(values: Sequence[float]) -> list[float]:
    """Averages each value with its neighbours; the window is 1/25 of the curve, and shrinks at both ends."""
    reach = len(values) // 50
    return [fmean(values[max(0, i - reach) : i + reach + 1]) for i in range(len(values))]


def repeats_accuracy(chart: LineChart, runs: Sequence[RunFolder]) -> bool:
    """True if the chart shows a reward that is nothing but exact match."""
    pairs = {key: key.replace("reward", "acc") for key in chart.series if key.startswith("reward")}
    rows = [row for run in runs for row in run.metrics]
    return bool(pairs) and all(row.get(key) == row.get(accuracy) for key, accuracy in pairs.items() for row in rows)


def keyed_chart(title: str, note: str, runs: Sequence[RunFolder], prefix: str, **options: Any) -> LineChart:
    """Returns the chart of all keys that begin with `prefix`, each under what follows it."""
    keys = dict.fromkeys(key for run in runs for row in run.metrics for key in row if key.startswith(prefix))
    looks = {
        key: (key.removeprefix(prefix).replace("_attempt", ", attempt ").replace("_", " "), look)
        for key, look in zip(keys, cycle(FAMILY_COLOURS), strict=False)
    }
    return LineChart(title, note, looks, **options)

"""Run directories, read for a page: also unfinished ones, and whatever is missing, torn or of another version."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lib.core.config import read_tree
from lib.core.console import WHEN, with_best
from lib.core.errors import ConfigError
from lib.run.machine import read_machine
from lib.run.runlog import SCHEMA, files_of, is_number, read_jsonl
from pages.kinds import KINDS, PageKind

STREAMS = ("metrics", "evaluations", "alarms", "generations", "swaps")


@dataclass(frozen=True)
class RunFolder:
    """The contents of a run directory; every row of metrics and evaluations has its `global_step`."""

    folder: Path
    kind: PageKind
    config: dict
    metrics: list[dict]
    evaluations: list[dict]
    greedy: list[dict]  # further evaluations at the same moments
    swaps: list[dict]  # rows of evaluate.py --swap-attempts, the newest of each adapter and temperature
    alarms: list[dict]
    generations: list[dict]  # not all of these rows are sound
    scoreboard: dict
    machine: dict
    damaged: int  # lines that could not be read
    notes: list[str] = field(default_factory=list)  # what a reader must know about the files

    @property
    def name(self) -> str:
        """Returns the name of the folder, of a sweep's run with its variant and seed."""
        folder = self.folder.resolve()
        return "/".join(folder.parts[-3:]) if folder.parent.name.startswith("seed_") else folder.name

    @property
    def is_free(self) -> bool:
        """True if the config declares no format, so that whatever has an answer counts as well-formed."""
        reward = self.config.get("reward") or {}
        return {section.get("format") for section in (reward.get("by_task") or {"": reward}).values()} == {"free"}

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
            row for main in self.evaluations for row in (main, *(g for g in self.greedy if moment(g) == moment(main)))
        ]
        shown = {moment(row) for row in self.milestones}
        return [row for row in with_best(rows, self.best_of) if row["when"] == "best" or moment(row) in shown]

    def best_of(self, stage: int) -> str | None:
        """Returns the folder of a stage's best checkpoint, relative to the run; None without one."""
        best = self.folder / f"stage{stage}" / "best"
        return "/".join(best.resolve().parts[-2:]) if best.exists() else None

    @property
    def offsets(self) -> dict[int, int]:
        """Returns for each stage the steps before it. Stage II may have no step yet, but a first evaluation."""
        offsets = {row["stage"]: row["global_step"] - row["step"] for row in self.metrics if "stage" in row}
        if 1 in offsets:
            offsets.setdefault(2, next(row.get("steps", 0) for row in self.metrics if row.get("stage") == 1))
        return offsets

    @property
    def boundaries(self) -> list[int]:
        """Returns the global steps at which the next stage begins."""
        firsts = {row["stage"]: row["global_step"] - row["step"] for row in reversed(self.metrics) if "stage" in row}
        return sorted(step for stage, step in firsts.items() if stage > 1 and step > 0)

    @property
    def status(self) -> str:
        """Says how far the run came."""
        if not self.metrics:
            return "nothing trained yet"
        last = self.metrics[-1]
        if last["step"] < (last.get("steps") or 0):
            return f"{self.stage_of(last)}step {last['step']} of {last['steps']} so far"
        return f"{last['global_step']} steps"

    def alarm_spans(self) -> Iterator[tuple[dict, int, int | None]]:
        """Yields each alarm with the global steps at which it begins and ends, None while it lasts."""
        for number, row in enumerate(self.alarms):
            if row["event"] == "begins":
                ends = (later for later in self.alarms[number:]
                        if later["event"] == "ends" and later["alarm"] == row["alarm"])  # fmt: skip
                end = next(ends, None)
                yield row, self.global_step(row), None if end is None else self.global_step(end)

    def stage_of(self, row: dict) -> str:
        """Returns `stage II, ` for a row of it; "" where a run has no stages."""
        is_staged = self.kind.is_staged and self.kind.accuracies and row.get("stage") in (1, 2)
        return f"stage {'I' * row['stage']}, " if is_staged else ""

    def place(self, row: dict) -> str:
        """The step of a row, in its stage and in the run: `stage II, step 30 (step 100 of 170)`."""
        step, own = self.global_step(row), f"{self.stage_of(row)}step {row['step']}"
        if step == row["step"]:
            return own
        last = self.metrics[-1]
        end = last["global_step"] - last["step"] + (last.get("steps") or last["step"])
        return f"{own} (step {step} of {end})"

    def global_step(self, row: dict) -> int:
        """Returns the step of a row over all stages."""
        return row["step"] + self.offsets.get(row.get("stage", 1), 0)


def read_run(folder: Path) -> RunFolder:
    """Returns the run in `folder` as it is now; leaves out what is missing or damaged, counts damaged lines."""
    files = {name: [path for path in files_of(folder, name) if path.exists()] for name in STREAMS}
    files["scoreboard"] = [path] if (path := folder / "scoreboard.json").exists() else []
    read = {name: [read_jsonl(path) for path in paths] for name, paths in files.items()}
    streams = {name: [row for rows, _ in parts for row in rows] for name, parts in read.items()}
    damaged = sum(bad for parts in read.values() for _, bad in parts)
    config, notes = _config_of(folder)
    newer = {row["schema"] for rows in streams.values() for row in rows[-1:] if row.get("schema", SCHEMA) != SCHEMA}
    if newer:
        notes.append(
            f"The files were written by another version of Rematch (schema {', '.join(map(str, newer))}, not "
            f"{SCHEMA}): what this one does not know is left out."
        )
    metrics = [{"global_step": row["step"], **row} for row in streams["metrics"] if _is_whole(row.get("step"))]
    metrics = [row for row in metrics if _is_whole(row["global_step"])]
    run = RunFolder(
        folder, kind_of(metrics + streams["evaluations"]), config, metrics, [], [], [],
        [row for row in streams["alarms"] if row.keys() >= {"alarm", "event", "severity", "stage", "step", "text"}],
        streams["generations"], (streams["scoreboard"] or [{}])[-1], read_machine(folder), damaged, notes,
    )  # fmt: skip
    rows = [
        {**row, **_more_of(row), "global_step": run.global_step(row)}
        for row in streams["evaluations"]
        if _is_whole(row.get("step")) and "when" in row
    ]
    seen: set[tuple] = set()
    for row in rows:
        (run.greedy if moment(row) in seen else run.evaluations).append(row)
        seen.add(moment(row))
    swaps = {(*moment(row), row.get("temperature")): row for row in streams["swaps"]
             if isinstance(row.get("after"), dict)}  # fmt: skip
    run.swaps.extend(swaps.values())
    return run


def stamp(folder: Path) -> list[tuple]:
    """Returns a key that changes with a run's files: streams are cut and go on, a scoreboard is replaced."""
    paths = [path for name in STREAMS for path in files_of(folder, name)] + [folder / "scoreboard.json"]
    stats = [(path.suffix, path.stat()) for path in paths if path.exists()]
    return [(stat.st_ino, stat.st_size, stat.st_mtime_ns * (suffix == ".json")) for suffix, stat in stats]


def moment(row: dict) -> tuple:
    """Returns when a row was written; evaluations of one moment differ in how they were answered."""
    return row.get("when"), row.get("stage"), row.get("step")


def kind_of(rows: list[dict]) -> PageKind:
    """Returns the first kind all of whose accuracies are in the rows: without any, these are of SFT."""
    keys = {key for row in rows for key in row}
    return next(kind for kind in KINDS if keys.issuperset(kind.accuracies))


def _config_of(folder: Path) -> tuple[dict, list[str]]:
    path = folder / "config.yaml"
    if not path.exists():
        return {}, []
    try:
        tree = read_tree(path)
    except ConfigError as error:
        return {}, [f"Its config could not be read: {error}."]
    return (tree, []) if isinstance(tree, dict) else ({}, ["Its config.yaml is no config."])


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _more_of(row: dict) -> dict:
    """Returns pass@k and its interval for the largest k above 1 of an evaluation of groups."""
    last = (row.get("pass_at_k") or [{}])[-1]
    if last.get("k", 1) == 1:
        return {}
    return {f"pass@{last['k']}": last.get("pass"), f"pass@{last['k']}_ci95": last.get("pass_ci95")}

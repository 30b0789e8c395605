"""A sweep: the same commands over seeds and variants, several at once; one table, one page, conditions on every run.

    python sweep.py --config configs/sweep_demo.yaml                      # `make sweep`: the demo over five seeds
    python sweep.py --config configs/sweep_demo.yaml --dry-run            # every command that would run
    python sweep.py --config configs/sweep_demo.yaml --table              # what is there so far; runs nothing
    python sweep.py --config configs/sweep_demo.yaml seeds=20 'threads=[1, 2]' parallel=1
    python sweep.py --config configs/sweep_demo.yaml run_name=alpha 'variants={ten: [], five: [train.alpha=5]}'

The commands of a run name `{seed}`, and those of training scripts `--resume {run}`, which gives each run a folder.

The same command again continues a sweep that was interrupted or killed: what has finished is not run again, what was
running is resumed by its script's --resume, what failed is tried once more. Everything lies in outputs/<run_name>:
jobs.jsonl has a row when a job begins and one when it ends, results.jsonl a row per run that is over, sweep.html the
curves, <variant>/seed_<n>/ the run directories and screen output, and shared/ what no variant changes, such as data and
base, run once per seed.

Exit codes: 0 all runs finished and meet every condition, 1 some do not, 2 config, 130 Ctrl-C and 143 SIGTERM.
"""

if __name__ == "__main__":
    from lib.core.errors import end_at_ctrl_c

    end_at_ctrl_c()  # the imports below take a second

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import yaml

import reward_function  # noqa: F401  registers rewards and extractors, for the check of the stages' configs
from judge.pool import cores
from lib.core.children import Children
from lib.core.config import KINDS, SweepConfig, dump, load, parser
from lib.core.console import Screen, duration
from lib.core.errors import FINISHED, ConfigError, run_script
from lib.core.interrupts import Interrupts
from lib.run.machine import HERE, commit, cpu, packages
from lib.run.runlog import RunLog, read_jsonl
from pages.sweep_page import page_of
from pages.sweep_tables import FIGURES, SUMMARY_HEADS, SweepOutcome, last_values, outcome_of

SCRIPTS = {kind.__doc__: kind for kind in KINDS}
MISSED = 1  # exit code
LOSS_POINTS = 20  # points of the training loss kept for a run without evaluations


@dataclass(frozen=True)
class Job:
    """One command of one run, or shared by several variants of a seed."""

    stage: str
    seed: int
    threads: int
    folder: Path
    command: tuple[str, ...]
    needs: "Job | None"  # the stage before

    @property
    def name(self) -> str:
        """Returns the name, such as `shared/seed_0/base`."""
        return "/".join(self.folder.parts[-3:])

    @property
    def log(self) -> Path:
        """Returns the path of the log of its screen output."""
        return self.folder.with_name(f"{self.folder.name}.log")

    @property
    def argv(self) -> list[str]:
        """Returns the command to start, with this Python in front of scripts."""
        name, *words = self.command
        return [sys.executable, str(program(name)), *words] if name.endswith(".py") else list(self.command)

    @property
    def settings(self) -> str:
        """Returns a hash of the values in the command's config, in which comments do not count."""
        values = [values_in(file.read_bytes()) for file in config_files(self.command) if file.is_file()]
        return hashlib.sha256(json.dumps(values, default=str).encode()).hexdigest()[:16]


Key = tuple[str, int]  # variant, seed
Runs = dict[Key, list[Job]]  # the jobs of each run, in order


def main() -> int:
    """Plans the runs, runs what is missing, shows the results."""
    args, config = command_line()
    runs = plan(config)
    if args.dry_run:
        show_plan(config, runs)
        return FINISHED
    if not args.table and (code := run_missing(config, runs)):
        return code
    return show(config, runs)


def command_line() -> tuple[argparse.Namespace, SweepConfig]:
    """Reads the options, and the config with overrides. Raises ConfigError for any mistake, in a stage's config too."""
    options = parser(__doc__, smoke=False)
    only = options.add_mutually_exclusive_group()
    only.add_argument("--dry-run", action="store_true", help="list every run with its commands; run nothing")
    only.add_argument("--table", action="store_true", help="show table and page of what is there; run nothing")
    args = options.parse_intermixed_args()  # overrides may stand anywhere
    config = load(SweepConfig, args.config, args.overrides)
    if not args.table:
        check_stages(config)
    return args, config


def check_stages(config: SweepConfig) -> None:
    """Raises ConfigError for what the scripts would refuse, by variant; data and models need not exist yet."""
    runs = plan(config)
    mistakes = mistakes_of_copies(config, runs)
    for job in distinct({key: jobs for key, jobs in runs.items() if key[1] == config.all_seeds[0]}):
        name = job.command[0]
        if not (program(name).exists() if name.endswith(".py") else shutil.which(name)):
            mistakes.append(f"{job.stage}: there is no '{name}': name a script of this project or a program")
        try:
            run_dir = run_dir_of(job)
        except ConfigError as error:
            mistakes += [f"{job.stage}: {line}" for line in str(error).splitlines()]
            continue
        if job.stage == list(config.stages)[-1] and run_dir not in (None, job.folder):
            mistakes.append(
                f"{job.stage}: writes into {run_dir}, expected the sweep's own folder for each run: add {{run}} to the "
                "command, as in --resume {run}"
            )
    if mistakes:
        raise ConfigError("\n".join(f"stages: {mistake}" for mistake in dict.fromkeys(mistakes)))


def run_dir_of(job: Job) -> Path | None:
    """Returns the folder that a training script writes into; None for other programs."""
    name, *words = job.command
    kind, files = SCRIPTS.get(Path(name).name), config_files(words)
    if kind is None or not files:
        return None
    return load(kind, files[-1], [word for word in words if "=" in word and not word.startswith("-")]).run_dir


def config_files(words: Sequence[str]) -> list[Path]:
    """Lists the configs that a command names, as `--config FILE` or `--config=FILE`."""
    parts = [part for word in words for part in (word.split("=", 1) if word.startswith("--config=") else [word])]
    return [Path(file) for option, file in pairwise(parts) if option == "--config"]


@cache  # jobs share configs, and each is looked at again when a job ends
def values_in(text: bytes) -> Any:
    """Returns the values in a config; the whole text where YAML or JSON does not hold them, as with other programs."""
    try:
        values = yaml.safe_load(text)
        json.dumps(values, default=str)  # refuses some keys, such as dates
    except (yaml.YAMLError, TypeError, ValueError):
        return text
    return values


def mistakes_of_copies(config: SweepConfig, runs: Runs) -> list[str]:
    """Returns a mistake per variant where two seeds run the same scripts of this project but for their folders."""
    mistakes = []
    for variant in config.variants:
        seeds: dict[tuple, int] = {}  # by commands
        for seed in config.all_seeds:
            jobs = runs[variant, seed]
            if not all(is_of_this_project(job.command[0]) for job in jobs):
                break  # a program may choose its own seed, or take it from the name of its folder
            first = seeds.setdefault((jobs[0].threads, *commands_without_folders(jobs)), seed)
            if first != seed:
                mistakes.append(
                    f"variant {variant}: the commands of seeds {first} and {seed} differ only in their folders, so the "
                    "runs would be copies: add seed={seed} to a stage, or set seeds=1"
                )
                break
    return mistakes


def commands_without_folders(jobs: Sequence[Job]) -> Iterator[tuple[str, ...]]:
    """Yields the commands of one run with its folders, which name the seed, left out."""
    folders = {str(job.folder.parent) for job in jobs}
    for job in jobs:
        words = job.command
        for folder in folders:
            words = tuple(word.replace(folder, "") for word in words)
        yield words


def is_of_this_project(name: str) -> bool:
    """True if a command begins with a script of this repository."""
    return name.endswith(".py") and program(name).resolve().is_relative_to(HERE)


def show_plan(config: SweepConfig, runs: Runs) -> None:
    """Prints each command once, one per line."""
    screen = Screen()
    jobs = distinct(runs)
    screen.say(f"{config.run_dir}: {len(runs)} runs, {len(jobs)} commands, {parallel_in_words(config)}")
    for job in jobs:
        screen.say(f"{job.name}, {in_threads(job.threads)}: {shlex.join(job.command)}")


def run_missing(config: SweepConfig, runs: Runs) -> int:
    """Runs what is missing, several jobs at once; returns 0, or the exit code of an interruption."""
    screen = Screen()
    with Children() as children, Interrupts() as interrupts, RunLog(
        config.run_dir, resume=True, streams=("results", "jobs")
    ) as log:  # fmt: skip
        schedule = Schedule(config, runs, log, screen)  # refuses a changed command
        log.write_config(dump(config))
        is_due = True  # to start more: what is startable changes when something ends, and takes long to find
        while not schedule.is_over:
            for job in schedule.startable() if is_due and not interrupts.received else []:
                environment = {**os.environ, "OMP_NUM_THREADS": str(job.threads), "PYTHONUNBUFFERED": "1"}
                schedule.begun(job, children.start(job.argv, job.log, environment))
            time.sleep(0.02)
            if interrupts.received and not schedule.is_stopping:
                schedule.is_stopping = True
                children.signal(interrupts.received)
            ended = children.ended()
            for pid, code in ended.items():
                schedule.ended(pid, code)
            is_due = bool(ended)
        if interrupts.received:
            screen.say("interrupted; the same command resumes")
        return interrupts.exit_code


def show(config: SweepConfig, runs: Runs) -> int:
    """Prints the tables, writes the page, returns the exit code."""
    screen = Screen()
    results = read_results(config, runs).values()
    if not results:
        screen.say(f"{config.run_dir}: no run has ended yet")
        return FINISHED
    outcome = outcome_of(config, results)
    print_outcome(screen, config, outcome)
    target = config.run_dir / "sweep.html"
    target.write_text(page_of(config, outcome), encoding="utf-8")
    screen.say(f"page: {target}")
    return MISSED if outcome.failed or not all(verdict.holds for verdict in outcome.verdicts) else FINISHED


def print_outcome(screen: Screen, config: SweepConfig, outcome: SweepOutcome) -> None:
    """Prints figures, a line per variant, whether each condition holds, and which runs failed."""
    for variant, rows in outcome.figures.items():
        title = f"{config.run_name}, {variant}: {len(outcome.results[variant])} of {len(config.all_seeds)} runs"
        screen.figures(title, SUMMARY_HEADS, [(summary.label, *cells) for summary, cells in rows])
    baseline = next(iter(outcome.figures))
    tables = {"side by side": outcome.compared, f"minus {baseline}, seed by seed": outcome.paired}
    for title, table in tables.items():
        if table.lines:
            lines = [(variant, *cells) for variant, cells in table.lines.items()]
            screen.figures(f"{config.run_name}, {title}", table.heads, lines)
    for verdict in outcome.verdicts:
        of = f" ({verdict.variant})" if len(outcome.results) > 1 else ""
        text = f"{verdict.count} runs{of}: {verdict.text}; worst {verdict.worst}"
        (screen.say if verdict.holds else screen.warn)(text)
    for row in outcome.failed:
        screen.warn(f"{row['variant']}, seed {row['seed']}: {row['failed']} ended with exit code {row['exit_code']}")


# The plan


def program(name: str) -> Path:
    """Returns the path of a script: as given if it exists, otherwise in the repository."""
    return Path(name) if Path(name).exists() else HERE / name


def plan(config: SweepConfig) -> Runs:
    """Lists the jobs of every run, seed by seed; shared jobs compare equal."""
    return {(variant, seed): list(_jobs_of(config, variant, seed))
            for seed in config.all_seeds for variant in config.variants}  # fmt: skip


def _jobs_of(config: SweepConfig, variant: str, seed: int) -> Iterator[Job]:
    """Yields the jobs of one run; those before the first that this variant changes, or else the last, are shared."""
    threads = config.threads[seed % len(config.threads)]
    folders, is_own, job = {}, False, None
    for stage, command in config.stages.items():
        extra = config.extra_words(variant, stage)
        words = [*shlex.split(command), *extra]
        is_own |= bool(extra) or stage == list(config.stages)[-1] or any("{variant}" in word for word in words)
        folder = config.run_dir / (variant if is_own else "shared") / f"seed_{seed}" / stage
        values = {"seed": seed, "variant": variant, "threads": threads, "dir": folder, "run": folder, **folders}
        filled = []
        for word in words:
            if word == "{run}":
                filled += [f"output_dir={folder.parent}", f"run_name={folder.name}"]
            else:
                filled.append(word.format(**values))
        folders[stage] = folder
        job = Job(stage, seed, threads, folder, tuple(filled), job)
        yield job


def distinct(runs: Runs) -> list[Job]:
    """Lists every distinct job once, in the order of the runs."""
    return list(dict.fromkeys(job for jobs in runs.values() for job in jobs))


def parallel_in_words(config: SweepConfig) -> str:
    """Says how many jobs run at once."""
    return f"{config.parallel} at once" if config.parallel else f"as many at once as {cores()} cores have threads for"


# Running


class Schedule:
    """Selects the jobs that may start, and records their starts and ends, and the runs that are over."""

    def __init__(self, config: SweepConfig, runs: Runs, log: RunLog, screen: Screen):
        self._config, self._runs, self._log, self._screen = config, runs, log, screen
        self._machine = {"cpu": cpu(), "cores": cores(), **commit(), "packages": packages()}
        self.is_stopping = False
        self._running: dict[int, tuple[Job, float]] = {}  # by process id; monotonic seconds
        self._failed: dict[Job, int] = {}
        self._jobs = JobLog(log)
        self._results = {key: row for key, row in read_results(config, runs).items() if not row["exit_code"]}
        missing = {key: jobs for key, jobs in runs.items() if key not in self._results}
        done = {job for job in distinct(runs) if self._jobs.is_done(job)}  # also of runs whose rows are there
        self._left = [job for job in distinct(missing) if job not in done]
        for key in runs:  # the sweep may have been killed between the end of a run and its row
            self._record(key)
        screen.say(
            f"{config.run_dir}: {len(runs) - len(self._results)} of {len(runs)} runs to do, {parallel_in_words(config)}"
        )

    @property
    def is_over(self) -> bool:
        """True if no job is running and none will start."""
        return not self._running and (self.is_stopping or not self._left)

    def startable(self) -> Iterator[Job]:
        """Yields jobs whose previous stage is done, while there is room; `begun` must be called for each at once."""
        for job in list(self._left):
            busy = [other.threads for other, _ in self._running.values()]
            limit = self._config.parallel
            if busy and (len(busy) >= limit if limit else sum(busy) + job.threads > cores()):
                continue  # a later one may need fewer threads
            if job.needs is None or self._jobs.is_done(job.needs):
                self._left.remove(job)
                yield job

    def begun(self, job: Job, pid: int) -> None:
        """Records the start of a job."""
        self._running[pid] = job, time.monotonic()
        self._jobs.begun(job)
        self._screen.say(f"begun {job.name}, {in_threads(job.threads)}: {job.log}")

    def ended(self, pid: int, code: int) -> None:
        """Records the end of a job, and the runs that it completes or fails."""
        job, start = self._running.pop(pid)
        if code and self.is_stopping:
            return  # it was asked to stop, and starts again when the sweep resumes
        self._jobs.ended(job, code, time.monotonic() - start)
        if code:
            self._failed[job] = code
            self._screen.warn(f"{job.name} ended with exit code {code}: {last_line(job.log)} (all of it: {job.log})")
            self._left = [other for other in self._left if job not in ancestors(other)]
        rows = [self._record(key) for key, jobs in self._runs.items() if job in jobs]
        if not code:
            figures = [item for row in rows if row for item in last_values(row).items()]
            end = "".join(f", {FIGURES[key][0]} {value:.3f}" for key, value in figures)
            count = f"{len(self._results)} of {len(self._runs)} runs"
            self._screen.say(f"done  {job.name} after {duration(self._jobs.seconds(job))}{end}; {count}")

    def _record(self, key: Key) -> dict | None:
        """Writes the row of a run that is over and returns it; None if the run is not over or has its row already."""
        jobs = self._runs[key]
        failed = next((job for job in jobs if job in self._failed), None)
        if key in self._results or not (failed or all(map(self._jobs.is_done, jobs))):
            return None
        seconds = {job.stage: taken for job in jobs if (taken := self._jobs.seconds(job)) is not None}
        measured = read_run(jobs[-1], self._config) if failed in (None, jobs[-1]) else {"evaluations": [], "alarms": []}
        row = {
            "variant": key[0], "seed": key[1], "threads": jobs[0].threads,
            "exit_code": self._failed.get(failed, FINISHED), "failed": failed and failed.stage,
            "seconds": round(sum(seconds.values()), 1), "stage_seconds": seconds,
            "was_restarted": any(self._jobs.starts(job) > 1 for job in jobs),
            "run": str(jobs[-1].folder), "commands": [list(job.command) for job in jobs],
            **measured, **self._machine,
        }  # fmt: skip
        self._log.write("results", row)
        self._log.sync()
        self._results[key] = row
        return row


class JobLog:
    """jobs.jsonl: the starts and ends of jobs, with exit codes and durations."""

    def __init__(self, log: RunLog):
        self._log = log
        self._starts: Counter[str] = Counter()
        self._ends: dict[str, dict] = {}
        self._settings: dict[str, str | None] = {}
        for row in read_jsonl(log.directory / "jobs.jsonl")[0]:
            self._take_in(row)

    def begun(self, job: Job) -> None:
        """Writes the row of a job that begins."""
        self._write({"job": job.name, "event": "begun", "settings": job.settings})

    def ended(self, job: Job, code: int, seconds: float) -> None:
        """Writes the row of a job that has ended."""
        self._write({"job": job.name, "event": "ended", "exit_code": code, "seconds": round(seconds, 1),
                     "threads": job.threads, "command": list(job.command),
                     "has_folder": job.folder.exists()})  # fmt: skip

    def is_done(self, job: Job) -> bool:
        """True if a job succeeded and its folder still exists. Raises ConfigError if another command or config did."""
        end = self._ends.get(job.name)
        if end is None or end["exit_code"] or (end.get("has_folder") and not job.folder.exists()):
            return False
        if (end["command"], end["threads"]) != (list(job.command), job.threads):
            raise ConfigError(
                f"{job.folder}: was made by {_in_words(end['command'], end['threads'])}, not by "
                f"{_in_words(job.command, job.threads)}: choose another run_name=..., or undo the change"
            )
        if self._settings.get(job.name) not in (None, job.settings):  # None: begun by an earlier version
            raise ConfigError(
                f"{job.folder}: was made when the config of {_in_words(job.command, job.threads)} had other values: "
                "choose another run_name=..., or undo the change"
            )
        return True

    def starts(self, job: Job) -> int:
        """Returns how often a job was begun."""
        return self._starts[job.name]

    def seconds(self, job: Job) -> float | None:
        """Returns how long a job's last start took; None if it has not ended."""
        return self._ends[job.name]["seconds"] if job.name in self._ends else None

    def _write(self, row: dict) -> None:
        self._log.write("jobs", row)
        self._log.sync()
        self._take_in(row)

    def _take_in(self, row: dict) -> None:
        if row["event"] == "begun":
            self._starts[row["job"]] += 1
            self._settings[row["job"]] = row.get("settings")
            self._ends.pop(row["job"], None)
        else:
            self._ends[row["job"]] = row


def in_threads(threads: int) -> str:
    """Formats as `1 thread` or `2 threads`."""
    return f"{threads} thread{'s' if threads > 1 else ''}"


def ancestors(job: Job) -> list[Job]:
    """Lists the jobs that must be done before a job."""
    return [] if job.needs is None else [job.needs, *ancestors(job.needs)]


def _in_words(command: Sequence[str], threads: int) -> str:
    return f"`{shlex.join(command)}` with {in_threads(threads)}"


def last_line(log: Path) -> str:
    """Returns the last non-empty line that a program printed, from its log."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


# Results


def read_results(config: SweepConfig, runs: Runs) -> dict[Key, dict]:
    """Reads the last row of every planned run that has one, and all of its stages; its jobs are not run again.

    Raises ConfigError if another command made it.
    """
    path = config.run_dir / "results.jsonl"
    rows = {(row["variant"], row["seed"]): row for row in (read_jsonl(path)[0] if path.exists() else [])}
    rows = {key: rows[key] for key in runs if key in rows}
    for (variant, seed), row in rows.items():
        then = [(command, row["threads"]) for command in row["commands"]]
        now = [(list(job.command), job.threads) for job in runs[variant, seed]]
        changed = [pair for pair in zip(then, now, strict=False) if pair[0] != pair[1]]
        if changed and not row["exit_code"]:
            raise ConfigError(
                f"{path}: variant {variant}, seed {seed} was made by {_in_words(*changed[0][0])}, not by "
                f"{_in_words(*changed[0][1])}: choose another run_name=..., or undo the change"
            )
        if len(then) > len(now):
            raise ConfigError(
                f"{path}: variant {variant}, seed {seed} has {len(then)} stages, and `stages` now only the first "
                f"{len(now)}: choose another run_name=..., or undo the change"
            )
    return {key: row for key, row in rows.items() if row["exit_code"] or len(row["commands"]) == len(runs[key])}


def read_run(job: Job, config: SweepConfig) -> dict:
    """Reads the run of a job: its evaluations and alarms, how much it trained, and how long a step took.

    Evaluations get `global_step`, over all stages, and `tokens`, those sampled in training before; those with several
    first attempts also `pass_at_2`, how often one of two is right. That of the run's best checkpoint appears twice,
    first as the moment `best`. `parameters`, `seconds_per_step` and `sampler_gap`, the largest of all steps, are left
    out where the run does not write them.
    """
    streams = {}
    for name in ("metrics", "evaluations", "alarms"):
        path = job.folder / f"{name}.jsonl"
        streams[name] = read_jsonl(path)[0] if path.exists() else []
    steps = {row.get("stage"): row["global_step"] - row["step"] for row in streams["metrics"] if "global_step" in row}
    best = (job.folder / "best").resolve()  # stage1/step_150, or no link
    rows = []
    for row in streams["evaluations"]:
        row = {**without_prompts(row), "global_step": row["step"] + steps.get(row.get("stage"), 0)}
        row |= {f"pass_at_{entry['k']}": entry["pass"] for entry in row.get("success_at_k", ())}
        row["tokens"] = sum(metrics.get("tokens", 0) for metrics in streams["metrics"] if _is_before(metrics, row))
        is_best = (best.parent.name, best.name) == (f"stage{row.get('stage')}", f"step_{row['step']}")
        rows += [{**row, "when": "best"}, row] if is_best else [row]
    losses = [row for row in streams["metrics"] if "loss" in row]
    if not rows and losses and "stage" not in losses[0]:  # SFT without held-out rows
        every = max(1, len(losses) // LOSS_POINTS)
        rows = [{"when": "step", "step": row["step"], "global_step": row["step"], "loss": row["loss"]}
                for row in losses[::-every][::-1]]  # fmt: skip
    if config.figures:
        rows += read_figures(job.log.read_text(encoding="utf-8", errors="replace"), config.figures)
    result: dict[str, Any] = {"evaluations": rows, "alarms": streams["alarms"]}
    steps_taken = [row for row in streams["metrics"] if "parameters" in row]
    if steps_taken:
        result["parameters"] = steps_taken[-1]["parameters"]
        # the median, because an evaluation counts towards the step after it
        result["seconds_per_step"] = round(median(map(seconds_of, steps_taken)), 3)
    gaps = [row["sampler_gap"] for row in steps_taken if row.get("sampler_gap") is not None]
    if gaps:
        result["sampler_gap"] = max(gaps)
    return result


def _is_before(step: dict, evaluation: dict) -> bool:
    """True if a step was done by the time of an evaluation."""
    return step.get("global_step", step["step"]) <= evaluation["global_step"]


def seconds_of(row: dict) -> float:
    """Returns how long a step took, from its row of metrics.jsonl."""
    return sum(value for name, value in row.items() if name.startswith("seconds_"))


def without_prompts(row: dict) -> dict:
    """Returns an evaluation without its lists of numbers per question."""
    lists = ("per_question", "per_prompt")
    return {key: without_prompts(value) if key == "selection" and value else value
            for key, value in row.items() if key not in lists}  # fmt: skip


def read_figures(text: str, figures: dict[str, str]) -> list[dict]:
    """Reads figures from a screen output by regular expressions, as evaluations at step 0."""
    moments: dict[str, dict] = {}
    for name, pattern in figures.items():
        moment, key = name.split(".")
        matches = list(re.finditer(pattern, text))
        if matches:
            moments.setdefault(moment, {"when": moment, "step": 0, "global_step": 0})[key] = float(matches[-1][1])
    return list(moments.values())


if __name__ == "__main__":
    run_script(main)

"""A sweep: the same commands over seeds and variants, several at once; one table, one page, conditions on every run.

    python sweep.py --config configs/sweep_demo.yaml                      # `make sweep`: the demo over five seeds
    python sweep.py --config configs/sweep_demo.yaml --dry-run            # every command that would run
    python sweep.py --config configs/sweep_demo.yaml --table              # what is there so far; runs nothing
    python sweep.py --config configs/sweep_demo.yaml seeds=20 'threads=[1, 2]' parallel=1
    python sweep.py --config configs/sweep_demo.yaml run_name=alpha 'variants={ten: [], five: [train.alpha=5]}'

The same command again goes on with a sweep that was interrupted or killed: what has finished is not run again, what was
under way goes on by its script's --resume, what failed is tried once more. Everything lies in outputs/<run_name>:
results.jsonl has a row per run, sweep.html the curves, <variant>/seed_<n>/ the run directories and screen output, and
shared/ what no variant changes, such as data and base, run once per seed.

Exit codes: 0 all runs finished and meet every condition, 1 some do not, 2 config, 130 Ctrl-C and 143 SIGTERM.
"""

import argparse
import contextlib
import html
import io
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from itertools import groupby
from pathlib import Path
from statistics import fmean, median

import reward_function  # noqa: F401  registers rewards and extractors, for the check of the stages' configs
from lib.children import Children
from lib.conditions import Condition, Figure, read_condition
from lib.config import KINDS, SweepConfig, dump, load, parser
from lib.console import WHEN, Screen, duration
from lib.errors import FINISHED, ConfigError, run_script
from lib.interrupts import Interrupts
from lib.layout import COLOURS, LOOK, as_inline, heading, page, section, table
from lib.runlog import RunLog, read_jsonl
from lib.stats import mean_interval, paired_delta_interval

HERE = Path(__file__).resolve().parent
SCRIPTS = {kind.__doc__: kind for kind in KINDS}
PACKAGES = ("torch", "transformers", "peft", "trl", "accelerate", "numpy")
LOSS_POINTS = 20  # of the training loss of a run without evaluations
MISSED = 1  # exit code
# key: heading, and whether more is better
FIGURES = {
    "acc_attempt1": ("attempt 1", True), "acc_attempt2": ("attempt 2", True), "delta": ("delta", True),
    "i_to_c": ("i->c", True), "c_to_i": ("c->i", False), "well_formed_attempt1": ("well-formed 1", True),
    "well_formed_attempt2": ("well-formed 2", True), "acc": ("pass@1", True), "win_rate": ("games won", True),
    "well_formed": ("well-formed", True), "loss": ("loss", False),
}  # fmt: skip


def main() -> int:
    """Plans, runs what is missing, shows what came of it."""
    args, config = command_line()
    runs = plan(config)
    if args.dry_run:
        show_plan(config, runs)
        return FINISHED
    if not args.table and (code := run_all(config, runs)):
        return code
    results = [result for result in read_results(config, runs).values() if result]
    return show(config, results)


def command_line() -> tuple[argparse.Namespace, SweepConfig]:
    """The options, and the config with overrides applied. ConfigError for every mistake, in a stage's config too."""
    options = parser(__doc__, smoke=False)
    only = options.add_mutually_exclusive_group()
    only.add_argument("--dry-run", action="store_true", help="list every run with its commands; run nothing")
    only.add_argument("--table", action="store_true", help="show table and page of what is there; run nothing")
    args = options.parse_intermixed_args()  # overrides may stand anywhere
    config = load(SweepConfig, args.config, args.overrides)
    if not args.table:
        check_stages(config)
    return args, config


# What is to be run


@dataclass(frozen=True)
class Job:
    """One command of one run, or of all the variants of a seed."""

    stage: str
    seed: int
    threads: int
    folder: Path
    command: tuple[str, ...]
    needs: "Job | None"  # the stage before

    @property
    def name(self) -> str:
        """`shared/seed_0/base`."""
        return "/".join(self.folder.parts[-3:])

    @property
    def log(self) -> Path:
        """Its screen output."""
        return self.folder.with_name(f"{self.folder.name}.log")


Key = tuple[str, int]  # variant, seed
Runs = dict[Key, list[Job]]  # what makes a run, in order


def plan(config: SweepConfig) -> Runs:
    """The jobs of every run, seed by seed; equal jobs are one."""
    return {(variant, seed): list(jobs_of(config, variant, seed))
            for seed in config.all_seeds for variant in config.variants}  # fmt: skip


def jobs_of(config: SweepConfig, variant: str, seed: int) -> Iterator[Job]:
    """The jobs of one run, shared with other variants up to the first that this variant changes, or the last one."""
    threads = config.threads[seed % len(config.threads)]
    folders, is_own, last = {}, False, None
    for stage, command in config.stages.items():
        words = [*shlex.split(command), *config.extra_words(variant, stage)]
        text = " ".join(words)
        is_own |= stage == list(config.stages)[-1] or bool(config.extra_words(variant, stage)) or "{variant}" in text
        folder = config.run_dir / (variant if is_own else "shared") / f"seed_{seed}" / stage
        known = {"seed": seed, "variant": variant, "threads": threads, "dir": folder, **folders}
        filled = []
        for word in words:
            if word == "{run}":
                filled += [f"output_dir={folder.parent}", f"run_name={folder.name}"]
            else:
                filled.append(word.format(**known, run=folder))
        folders[stage] = folder
        last = Job(stage, seed, threads, folder, tuple(filled), last)
        yield last


def check_stages(config: SweepConfig) -> None:
    """ConfigError for what the scripts would refuse, for each variant; the data and models they name may not exist."""
    mistakes = {}
    for jobs in plan(config.model_copy(update={"seeds": config.all_seeds[:1]})).values():
        for job in jobs:
            name, *words = job.command
            if not (program(name).exists() if name.endswith(".py") else shutil.which(name)):
                mistakes[f"stages: {job.stage}: there is no '{name}': name a script of this project or a program"] = (
                    None
                )
            kind = SCRIPTS.get(Path(name).name)
            if kind is None or "--config" not in words[:-1]:
                continue
            path = Path(words[words.index("--config") + 1])
            try:
                load(kind, path, [word for word in words if "=" in word and not word.startswith("-")])
            except ConfigError as error:
                mistakes |= {f"stages: {job.stage}: {line}": None for line in str(error).splitlines()}
    if mistakes:
        raise ConfigError("\n".join(mistakes))


def program(name: str) -> Path:
    """A script as typed from anywhere."""
    return Path(name) if Path(name).exists() else HERE / name


def argv(job: Job) -> list[str]:
    """The command as it is started: scripts by this Python."""
    name, *words = job.command
    return [sys.executable, str(program(name)), *words] if name.endswith(".py") else list(job.command)


def show_plan(config: SweepConfig, runs: Runs) -> None:
    """One command per line, each once."""
    screen = Screen()
    jobs = distinct(runs)
    screen.say(f"{config.run_dir}: {len(runs)} runs, {len(jobs)} commands, {slots_of(config)}")
    for job in jobs:
        screen.say(f"{job.name}, {told_threads(job)}: {shlex.join(job.command)}")


def distinct(runs: Runs) -> list[Job]:
    """Every job once, in the order of the runs."""
    return list(dict.fromkeys(job for jobs in runs.values() for job in jobs))


def slots_of(config: SweepConfig) -> str:
    """How many at once, in words."""
    return f"{config.parallel} at once" if config.parallel else f"as many at once as {cores()} cores have threads for"


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0))


def told_threads(job: Job) -> str:
    """`2 threads`."""
    return f"{job.threads} thread{'s' if job.threads > 1 else ''}"


# Running it


def run_all(config: SweepConfig, runs: Runs) -> int:
    """Runs what is missing, several at once; 0, or the exit code of an interruption."""
    screen = Screen()
    with Children() as children, Interrupts() as interrupts, RunLog(
        config.run_dir, resume=True, streams=("results", "jobs")
    ) as log:  # fmt: skip
        work = Work(config, runs, log, screen)  # refuses a changed command
        log.write_config(dump(config))
        while not work.is_over:
            for job in [] if interrupts.received else work.startable():
                environment = {**os.environ, "OMP_NUM_THREADS": str(job.threads), "PYTHONUNBUFFERED": "1"}
                work.begun(job, children.start(argv(job), job.log, environment))
            time.sleep(0.02)
            if interrupts.received and not work.is_stopping:
                work.is_stopping = True
                children.signal(interrupts.received)
            for pid, code in children.ended().items():
                work.ended(pid, code)
        if interrupts.received:
            screen.say("interrupted; the same command goes on")
        return interrupts.exit_code


class Work:
    """What has been done, is under way, and is left."""

    def __init__(self, config: SweepConfig, runs: Runs, log: RunLog, screen: Screen):
        self._config, self._runs, self._log, self._screen = config, runs, log, screen
        self._here = {"cpu": cpu(), "cores": cores(), **commit(), "packages": packages()}
        self.is_stopping = False
        self._running: dict[int, tuple[Job, float]] = {}
        self._failed: dict[Job, int] = {}
        self._history = History(log.directory)
        self._results = {key: row for key, row in read_results(config, runs).items() if row and not row["exit_code"]}
        self._left = [job for job in distinct(runs) if not self._history.is_done(job)]
        for key in runs:  # a kill may have come between the end of a run and its row
            self._record(key)
        missing = len(runs) - len(self._results)
        screen.say(f"{config.run_dir}: {missing} of {len(runs)} runs to do, {slots_of(config)}")

    @property
    def is_over(self) -> bool:
        """Whether nothing runs, and nothing will."""
        return not self._running and (self.is_stopping or not self._left)

    def startable(self) -> Iterator[Job]:
        """Jobs whose stage before is done, as long as there is room."""
        for job in list(self._left):
            busy = [other.threads for other, _ in self._running.values()]
            limit = self._config.parallel
            if busy and (len(busy) >= limit if limit else sum(busy) + job.threads > cores()):
                continue  # a later one may need fewer threads
            if job.needs is None or self._history.is_done(job.needs):
                self._left.remove(job)
                yield job

    def begun(self, job: Job, pid: int) -> None:
        """Notes a start."""
        self._running[pid] = job, time.monotonic()
        self._history.add({"job": job.name, "event": "begun"})
        self._log.write("jobs", {"job": job.name, "event": "begun"})
        self._log.sync()
        self._screen.say(f"begun {job.name}, {told_threads(job)}: {job.log}")

    def ended(self, pid: int, code: int) -> None:
        """Notes an end, and records the runs that it completes or fails."""
        job, start = self._running.pop(pid)
        if code and self.is_stopping:
            return  # it was told to, and goes on next time
        row = {"job": job.name, "event": "ended", "exit_code": code, "seconds": round(time.monotonic() - start, 1),
               "threads": job.threads, "command": list(job.command)}  # fmt: skip
        self._log.write("jobs", row)
        self._log.sync()
        self._history.add(row)
        if code:
            self._failed[job] = code
            self._screen.warn(f"{job.name} ended with exit code {code}: {last_line(job.log)} (all of it: {job.log})")
            self._left = [other for other in self._left if job not in ancestors(other)]
        for key, jobs in self._runs.items():
            if job in jobs:
                self._record(key)
        if not code:
            self._screen.say(f"done  {job.name} after {duration(row['seconds'])}{self._told(job)}; {self._progress()}")

    def _record(self, key: Key) -> None:
        """Writes the row of a run that is over."""
        jobs = self._runs[key]
        failed = next((job for job in jobs if job in self._failed), None)
        if key in self._results or not (failed or all(map(self._history.is_done, jobs))):
            return
        seconds = {job.stage: self._history.seconds(job) for job in jobs if self._history.seconds(job) is not None}
        evaluations, alarms = ([], []) if failed not in (None, jobs[-1]) else read_run(jobs[-1], self._config)
        row = {
            "variant": key[0], "seed": key[1], "threads": jobs[0].threads,
            "exit_code": self._failed.get(failed, FINISHED), "failed": failed and failed.stage,
            "seconds": round(sum(seconds.values()), 1), "stage_seconds": seconds,
            "was_restarted": any(self._history.starts(job) > 1 for job in jobs),
            "run": str(jobs[-1].folder), "commands": [list(job.command) for job in jobs],
            "evaluations": evaluations, "alarms": alarms, **self._here,
        }  # fmt: skip
        self._log.write("results", row)
        self._log.sync()
        self._results[key] = row

    def _told(self, job: Job) -> str:
        """The last figures of the run that ends with a job."""
        result = next((row for row in self._results.values() if row["run"] == str(job.folder)), None)
        found = {name: look(result, Figure(key, "last")) for key, (name, _) in FIGURES.items()} if result else {}
        return "".join(f", {name} {value:.3f}" for name, value in found.items() if value is not None)

    def _progress(self) -> str:
        """How many runs are over, and how long the others will take."""
        text = f"{len(self._results)} of {len(self._runs)} runs"
        waiting = [(job, 0.0) for job in self._left]
        waiting += [(job, time.monotonic() - start) for job, start in self._running.values()]
        means = self._history.means()
        if not waiting or any(job.stage not in means for job, _ in waiting):
            return text
        left = [(max(0.0, means[job.stage] - spent), job.threads) for job, spent in waiting]
        if self._config.parallel:
            seconds = sum(each for each, _ in left) / self._config.parallel
        else:
            seconds = sum(each * min(threads, cores()) for each, threads in left) / cores()
        return f"{text}, about {duration(seconds)} left"


def ancestors(job: Job) -> list[Job]:
    """The jobs that must be done before it."""
    return [] if job.needs is None else [job.needs, *ancestors(job.needs)]


class History:
    """What jobs.jsonl says: which jobs were begun and ended, how, and how long they took."""

    def __init__(self, folder: Path):
        self._starts: dict[str, int] = defaultdict(int)
        self._ends: dict[str, dict] = {}
        for row in read_jsonl(folder / "jobs.jsonl")[0]:
            self.add(row)

    def add(self, row: dict) -> None:
        """Takes in a row."""
        if row["event"] == "begun":
            self._starts[row["job"]] += 1
            self._ends.pop(row["job"], None)
        else:
            self._ends[row["job"]] = row

    def is_done(self, job: Job) -> bool:
        """Whether it ended well. ConfigError where another command did."""
        end = self._ends.get(job.name)
        if end is None or end["exit_code"]:
            return False
        if (end["command"], end["threads"]) != (list(job.command), job.threads):
            raise ConfigError(
                f"{job.folder}: was made by `{shlex.join(end['command'])}` with {end['threads']} threads, not by "
                f"`{shlex.join(job.command)}` with {job.threads}: choose another run_name=..., or undo the change"
            )
        return True

    def starts(self, job: Job) -> int:
        """How often it was begun."""
        return self._starts[job.name]

    def seconds(self, job: Job) -> float | None:
        """How long its last start took; None where it did not end."""
        return self._ends[job.name]["seconds"] if job.name in self._ends else None

    def means(self) -> dict[str, float]:
        """Mean seconds of each stage, where it ended well."""
        taken = defaultdict(list)
        for name, end in self._ends.items():
            if not end["exit_code"]:
                taken[name.rpartition("/")[2]].append(end["seconds"])
        return {stage: fmean(values) for stage, values in taken.items()}


def last_line(log: Path) -> str:
    """What a program said last."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


def cpu() -> str:
    """The model of this machine's processor."""
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def commit() -> dict[str, object]:
    """The commit of this code, and whether files differ from it; None outside git."""
    commands = (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
    try:
        done = [subprocess.run(["git", "-C", HERE, *words], capture_output=True, text=True) for words in commands]
    except FileNotFoundError:
        return {"commit": None, "is_changed": None}
    if done[0].returncode:
        return {"commit": None, "is_changed": None}
    return {"commit": done[0].stdout.strip(), "is_changed": bool(done[1].stdout)}


def packages() -> dict[str, str]:
    """Versions of what moves the numbers."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


# What came of it


def read_results(config: SweepConfig, runs: Runs) -> dict[Key, dict | None]:
    """The last row of every planned run, None where there is none. ConfigError where it is of another command."""
    path = config.run_dir / "results.jsonl"
    rows = {(row["variant"], row["seed"]): row for row in (read_jsonl(path)[0] if path.exists() else [])}
    for key, jobs in runs.items():
        row = rows.get(key)
        if row and not row["exit_code"] and row["commands"][-1] != list(jobs[-1].command):
            raise ConfigError(
                f"{path}: variant {key[0]}, seed {key[1]} was made by `{shlex.join(row['commands'][-1])}`, not by "
                f"`{shlex.join(jobs[-1].command)}`: choose another run_name=..., or undo the change"
            )
    return {key: rows.get(key) for key in runs}


def read_run(job: Job, config: SweepConfig) -> tuple[list[dict], list[dict]]:
    """Evaluations, with the step over all stages as `global_step`, and alarms of the run that a job made."""
    streams = {}
    for name in ("metrics", "evaluations", "alarms"):
        path = job.folder / f"{name}.jsonl"
        streams[name] = read_jsonl(path)[0] if path.exists() else []
    steps = {row.get("stage"): row["global_step"] - row["step"] for row in streams["metrics"] if "global_step" in row}
    rows = [{**without_prompts(row), "global_step": row["step"] + steps.get(row.get("stage"), 0)}
            for row in streams["evaluations"]]  # fmt: skip
    losses = [row for row in streams["metrics"] if "loss" in row]
    if not rows and losses and "stage" not in losses[0]:  # SFT without held-out rows
        every = max(1, len(losses) // LOSS_POINTS)
        picked = losses[len(losses) - 1 :: -every][::-1]
        rows = [{"when": "step", "step": row["step"], "global_step": row["step"], "loss": row["loss"]}
                for row in picked]  # fmt: skip
    if config.figures:
        rows += read_figures(job.log.read_text(encoding="utf-8", errors="replace"), config.figures)
    return rows, streams["alarms"]


def without_prompts(row: dict) -> dict:
    """An evaluation without its lists of a number per prompt."""
    if isinstance(row.get("selection"), dict):
        row = {**row, "selection": {key: value for key, value in row["selection"].items() if key != "per_prompt"}}
    return row


def read_figures(text: str, figures: dict[str, str]) -> list[dict]:
    """What regular expressions find in a screen output, as evaluations without a step."""
    moments: dict[str, dict] = {}
    for name, pattern in figures.items():
        moment, key = name.split(".")
        found = list(re.finditer(pattern, text))
        if found:
            moments.setdefault(moment, {"when": moment, "step": 0, "global_step": 0})[key] = float(found[-1][1])
    return list(moments.values())


def is_number(value: object) -> bool:
    """A finite number: the log writes null for the others."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def moment_of(row: dict) -> str:
    """`after_stage1`; `step_30` and, of stage II, `stage2_step_30` for evaluations on the way."""
    if row["when"] != "step":
        return row["when"]
    return f"step_{row['step']}" if row.get("stage", 1) == 1 else f"stage{row['stage']}_step_{row['step']}"


def look(result: dict, figure: Figure) -> float | None:
    """The value of a figure in a run."""
    if figure.moment is None:
        return len(begun_alarms(result)) if figure.key == "alarms" else result["seconds"]
    rows = result["evaluations"]
    found = [row for row in rows if moment_of(row) == figure.moment] if figure.moment != "last" else rows[-1:]
    if figure.moment == "last" and rows:  # its greedy or sampled mates too
        found = [
            row for row in rows if (row["when"], row["global_step"]) == (rows[-1]["when"], rows[-1]["global_step"])
        ]
    if figure.temperature is not None:
        found = [row for row in found if row.get("temperature") == figure.temperature]
    elif any(row.get("temperature") for row in found):
        found = [row for row in found if row["temperature"]]
    value = found[-1].get(figure.key) if found else None
    if figure.end is not None:
        value = value[figure.end] if isinstance(value, list) and len(value) == 2 else None
    return value if is_number(value) else None


def begun_alarms(result: dict) -> list[dict]:
    """The alarms of a run, without the rows that tell their ends."""
    return [row for row in result["alarms"] if row["event"] == "begins"]


@dataclass(frozen=True)
class Line:
    """A figure of one variant at one moment, over the seeds."""

    figure: Figure
    label: str
    more_is_better: bool
    values: dict[int, float]  # by seed

    @property
    def worst(self) -> int:
        """The seed of the worst value."""
        return (min if self.more_is_better else max)(self.values, key=self.values.get)

    def cells(self, threads: dict[int, int]) -> list[str]:
        """n, minimum, median, maximum, mean with Student's interval, and which run was worst."""
        values, sign = list(self.values.values()), "+" if self.figure.key == "delta" else ""
        show = partial(rounded, sign=sign)
        numbers = [str(len(values)), *map(show, (min(values), median(values), max(values)))]
        return [*numbers, with_interval(fmean(values), mean_interval(values), sign),
                f"seed {self.worst}, {threads[self.worst]} thr."]  # fmt: skip


def rounded(value: float, sign: str = "") -> str:
    """Three decimals; whole seconds."""
    return f"{value:{sign}.3f}" if abs(value) < 10 else f"{value:{sign}.0f}"


def with_interval(value: float, ends: tuple[float, float], sign: str) -> str:
    """`0.812 [0.796 0.827]`; without brackets where one run says nothing about the spread."""
    text = rounded(value, sign)
    return f"{text} [{' '.join(rounded(end, sign) for end in ends)}]" if ends[0] == ends[0] else text


def lines_of(results: list[dict]) -> list[Line]:
    """Every main figure at every milestone of the runs of one variant, and the time and alarms of the whole runs."""
    found: dict[tuple[str, float | None], None] = {}
    for result in results:
        rows = result["evaluations"]
        milestones = [row for row in rows if row["when"] != "step"] or rows[-1:]
        found |= {(moment_of(row), row.get("temperature")): None for row in milestones}
    several = len({temperature for _, temperature in found}) > 1
    lines = []
    for moment, temperature in sorted(found, key=lambda each: list(WHEN).index(each[0]) if each[0] in WHEN else 99):
        at = "" if not several else ", greedy" if temperature == 0 else ", sampled"
        for key, (name, more_is_better) in FIGURES.items():
            figure = Figure(key, moment, temperature)
            values = {each["seed"]: value for each in results if (value := look(each, figure)) is not None}
            if values:
                lines.append(Line(figure, f"{WHEN.get(moment, moment.replace('_', ' '))}{at}: {name}", more_is_better,
                                  values))  # fmt: skip
    whole = {each["seed"]: each["seconds"] for each in results if not each["was_restarted"]}
    alarms = {each["seed"]: float(len(begun_alarms(each))) for each in results}
    if whole:
        lines.append(Line(Figure("seconds"), "seconds", False, whole))
    if any(alarms.values()):
        lines.append(Line(Figure("alarms"), "alarms", False, alarms))
    return lines


def differences(first: list[Line], second: list[Line]) -> list[tuple[str, list[str]]]:
    """Second minus first, seed by seed: label, n, mean with its interval, least, most."""
    by_figure = {line.figure: line for line in first}
    rows = []
    for line in second:
        before = by_figure.get(line.figure)
        seeds = [seed for seed in line.values if before and seed in before.values]
        if not seeds:
            continue
        pairs = [before.values[seed] for seed in seeds], [line.values[seed] for seed in seeds]
        gaps = [after - start for start, after in zip(*pairs, strict=True)]
        mean = with_interval(fmean(gaps), paired_delta_interval(*pairs), "+")
        rows.append((line.label, [str(len(gaps)), mean, rounded(min(gaps), "+"), rounded(max(gaps), "+")]))
    return rows


@dataclass(frozen=True)
class Verdict:
    """How the runs of a variant meet a condition."""

    variant: str
    text: str
    met: int
    n: int
    worst: str

    @property
    def holds(self) -> bool:
        """In every run."""
        return self.met == self.n > 0


def judge(condition: Condition, variant: str, results: list[dict]) -> Verdict:
    """A condition in every run of a variant; a run that failed, or lacks a figure, does not meet it."""
    met, measured, missing = 0, [], []
    for result in results:
        found = condition.measure(partial(look, result))
        if found is None:
            missing.append(f"seed {result['seed']}")
        else:
            measured.append((found[2], found[1], result["seed"]))
            met += found[0] and not result["exit_code"]
    worst = f"{rounded(min(measured)[1])}, seed {min(measured)[2]}" if measured else ""
    if missing:
        worst += f"{'; ' if worst else ''}not measured: {', '.join(missing)}"
    return Verdict(variant, condition.text, met, len(results), worst)


HEADS = ("n", "min", "median", "max", "mean, 95 % over seeds", "worst")
DIFFERENCE_HEADS = ("n", "mean, 95 % over seeds", "least", "most")


def show(config: SweepConfig, results: list[dict]) -> int:
    """Prints the table, writes the page; the exit code."""
    screen = Screen()
    if not results:
        screen.say(f"{config.run_dir}: no run has ended yet")
        return FINISHED
    by_variant = {variant: [row for row in results if row["variant"] == variant] for variant in config.variants}
    by_variant = {variant: rows for variant, rows in by_variant.items() if rows}
    threads = {row["seed"]: row["threads"] for row in results}
    lines = {variant: lines_of([row for row in rows if not row["exit_code"]]) for variant, rows in by_variant.items()}
    for variant, rows in by_variant.items():
        title = f"{config.run_name}, {variant}: {len(rows)} of {len(config.all_seeds)} runs"
        print_table(screen, title, HEADS, [(line.label, line.cells(threads)) for line in lines[variant]])
    baseline, *others = lines
    compared = {other: differences(lines[baseline], lines[other]) for other in others}
    for other, rows in compared.items():
        print_table(screen, f"{other} minus {baseline}, seed by seed", DIFFERENCE_HEADS, rows)
    conditions = map(read_condition, config.require)
    verdicts = [judge(condition, variant, rows) for condition in conditions for variant, rows in by_variant.items()]
    for verdict in verdicts:
        of = f" ({verdict.variant})" if len(by_variant) > 1 else ""
        text = f"{verdict.met} of {verdict.n} runs{of}: {verdict.text}; worst {verdict.worst}"
        (screen.say if verdict.holds else screen.warn)(text)
    failed = [row for row in results if row["exit_code"]]
    for row in failed:
        screen.warn(f"{row['variant']}, seed {row['seed']}: {row['failed']} ended with exit code {row['exit_code']}")
    target = config.run_dir / "sweep.html"
    target.write_text(as_page(config, by_variant, lines, compared, verdicts), encoding="utf-8")
    screen.say(f"page: {target}")
    return MISSED if failed or not all(verdict.holds for verdict in verdicts) else FINISHED


def print_table(screen: Screen, title: str, heads: Iterable[str], lines: list[tuple[str, list[str]]]) -> None:
    """Columns as wide as their contents, whatever the terminal: a figure must not be cut in a log."""
    rows = [("", *heads), *((label, *cells) for label, cells in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    screen.say(f"\n{title}")
    for label, *cells in rows:
        numbers = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        screen.say(f"  {label.ljust(widths[0])}  {'  '.join(numbers)}".rstrip())
    screen.say("")


# The page

PEN = ("two", "one", "good", "bad", "muted")  # colours of variants
STROKES = ("solid", (0, (4, 2)), (0, (1, 1.5)))  # of numbers of threads


def as_page(
    config: SweepConfig,
    by_variant: dict[str, list[dict]],
    lines: dict[str, list[Line]],
    compared: dict[str, list[tuple[str, list[str]]]],
    verdicts: list[Verdict],
) -> str:
    """Curves of every run, tables, conditions, and a line per run."""
    results = [row for rows in by_variant.values() for row in rows]
    threads = {row["seed"]: row["threads"] for row in results}
    failed = sum(bool(row["exit_code"]) for row in results)
    told = f"{len(results)} of {len(config.all_seeds) * len(config.variants)} runs"
    told += f", {failed} of them failed" if failed else ""
    if verdicts:
        told += f"; {sum(verdict.holds for verdict in verdicts)} of {len(verdicts)} conditions hold in every run"
    body = [heading(config.run_name, f"{told}."), facts(results)]
    if verdicts:
        content = table([(name, "muted") for name in ("variant", "runs", "worst")], [
            row_of(each.text, [each.variant, f"{each.met} of {each.n}", each.worst], "" if each.holds else "lost")
            for each in verdicts
        ], "keys")  # fmt: skip
        body.append(section("Conditions", content, "Of every run; worst: the left side in the run that is furthest."))
    figures = curves(by_variant)
    if figures:
        note = "A thin line is a run, the bold one the median of the runs of a variant that finished."
        body.append(section("Curves", f"{legend(by_variant)}<div class=figures>{figures}</div>", note))
    for variant, rows in lines.items():
        content = table([(name, "muted") for name in HEADS], [row_of(line.label, line.cells(threads)) for line in rows])
        body.append(section(f"Figures: {variant}", content, "Intervals: Student's, 95 %, with a run as the unit."))
    for variant, rows in compared.items():
        content = table([(name, "muted") for name in DIFFERENCE_HEADS], [row_of(*row) for row in rows])
        body.append(section(f"{variant} minus {next(iter(lines))}", content, "Paired by seed."))
    body.append(section("Runs", runs_table(results)))
    alarms = [(row, alarm) for row in results for alarm in begun_alarms(row)]
    if alarms:
        rows = [row_of(f"{row['variant']}, seed {row['seed']}", [f"stage {alarm['stage']}, step {alarm['step']}",
                                                                 alarm["text"]]) for row, alarm in alarms]  # fmt: skip
        body.append(section("Alarms", table([("begins", "muted"), ("", "muted")], rows, "keys")))
    commands = html.escape(dump(config))
    body.append(section("Config", f"<pre class=config>{commands}</pre>"))
    return page(config.run_name, body, 0)


def row_of(label: str, cells: Iterable[str], look: str = "") -> str:
    """A line of a table."""
    inner = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
    return f"<tr><th class='{look}'>{html.escape(label)}</th>{inner}</tr>"


def facts(results: list[dict]) -> str:
    """Machines, commits and versions, each as often as it differs."""
    items = {
        "machine": {f"{row['cpu']}, {row['cores']} cores" for row in results},
        "threads": {str(row["threads"]) for row in results},
        "commit": {
            (row["commit"] or "unknown")[:12] + (" and changes" if row["is_changed"] else "") for row in results
        },
        "versions": {", ".join(f"{name} {version}" for name, version in row["packages"].items()) for row in results},
    }
    cells = "".join(
        f"<div><dt>{name}</dt><dd>{html.escape('; '.join(sorted(values)))}</dd></div>" for name, values in items.items()
    )
    return f"<dl class=facts>{cells}</dl>"


def legend(by_variant: dict[str, list[dict]]) -> str:
    """Which colour is which variant, which stroke how many threads."""
    names = [
        f"<b style='color: var(--{PEN[index % len(PEN)]})'>{html.escape(variant)}</b>"
        for index, variant in enumerate(by_variant)
    ]
    counts = thread_counts(by_variant)
    strokes = [f"{name}: {count} thread{'s' if count > 1 else ''}"
               for count, name in zip(counts, ("solid", "dashed", "dotted"), strict=False)]  # fmt: skip
    return f"<p class=note>{', '.join(names)}{'; ' + ', '.join(strokes) if len(counts) > 1 else ''}</p>"


def thread_counts(by_variant: dict[str, list[dict]]) -> list[int]:
    """The numbers of threads that occur."""
    return sorted({row["threads"] for rows in by_variant.values() for row in rows})


def curves(by_variant: dict[str, list[dict]]) -> str:
    """A picture of every main figure, greedy and sampled apart."""
    evaluations = [row for rows in by_variant.values() for result in rows for row in result["evaluations"]]
    temperatures = sorted({row.get("temperature") for row in evaluations}, key=lambda value: -(value or 0))
    pictures = []
    for key, (name, _) in FIGURES.items():
        for temperature in temperatures:
            drawn = draw(by_variant, key, temperature)
            if drawn:
                at = f"At temperature {temperature:g}." if temperature is not None else ""
                title = html.escape(name.replace("->", "→"))
                pictures.append(f"<figure><figcaption><b>{title}</b> {at}</figcaption>{drawn}</figure>")
    return "".join(pictures)


def draw(by_variant: dict[str, list[dict]], key: str, temperature: float | None) -> str:
    """One picture as inline SVG; "" unless some run has two points."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas
    from matplotlib.ticker import MaxNLocator

    def points(result: dict) -> dict[int, float]:
        rows = (row for row in result["evaluations"] if row.get("temperature") == temperature)
        return {row["global_step"]: row[key] for row in rows if is_number(row.get(key))}

    curves = {variant: [(row, points(row)) for row in rows] for variant, rows in by_variant.items()}
    if not any(len(line) > 1 for each in curves.values() for _, line in each):
        return ""
    counts = thread_counts(by_variant)
    borders = {row["global_step"] - row["step"] for rows in by_variant.values() for result in rows
               for row in result["evaluations"] if row.get("stage", 1) > 1}  # fmt: skip
    with matplotlib.rc_context({**LOOK, "svg.hashsalt": key}):
        canvas = Canvas(figsize=(4.6, 2.8), layout="constrained", facecolor="none")
        axes = canvas.add_subplot(facecolor="none")
        for (index, _), each in zip(enumerate(curves), curves.values(), strict=True):
            colour = COLOURS[PEN[index % len(PEN)]]
            for result, line in each:
                stroke = STROKES[counts.index(result["threads"]) % len(STROKES)]
                axes.plot(list(line), list(line.values()), color=colour, linewidth=0.8, alpha=0.5, linestyle=stroke)
            whole = [line for result, line in each if line and not result["exit_code"]]
            shared = sorted(set.intersection(*map(set, whole))) if whole else []
            axes.plot(shared, [median(line[step] for line in whole) for step in shared], color=colour, linewidth=2.2)
        axes.grid(axis="y", alpha=0.7)
        axes.set_axisbelow(True)
        axes.margins(x=0.02)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        for step in borders - {0}:
            axes.axvline(step, color=COLOURS["muted"], linewidth=0.8, linestyle=(0, (3, 3)))
        file = io.StringIO()
        canvas.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return as_inline(file.getvalue(), key)


def runs_table(results: list[dict]) -> str:
    """A line per run: how it ended, and its main figures at the end."""
    known = [key for key in FIGURES if any(look(row, Figure(key, "last")) is not None for row in results)]
    lines = []
    for variant, rows in groupby(results, key=lambda row: row["variant"]):
        lines.append(f"<tr class=group><th colspan={len(known) + 5}>{html.escape(variant)}</th></tr>")
        for row in sorted(rows, key=lambda each: each["seed"]):
            values = [look(row, Figure(key, "last")) for key in known]
            cells = [str(row["threads"]), *("–" if value is None else rounded(value) for value in values)]
            cells += [duration(row["seconds"]) + (" *" if row["was_restarted"] else "")]
            ended = f"{row['failed']}: exit code {row['exit_code']}" if row["exit_code"] else "finished"
            cells += [str(len(begun_alarms(row))), ended]
            lines.append(row_of(f"seed {row['seed']}", cells, "lost" if row["exit_code"] else ""))
    heads = ("threads", *(FIGURES[key][0].replace("->", "→") for key in known), "time", "alarms", "end")
    star = "<p class=note>* Restarted: the time is that of the last start.</p>"
    starred = any(row["was_restarted"] for row in results)
    return table([(name, "muted") for name in heads], lines) + (star if starred else "")


if __name__ == "__main__":
    run_script(main)

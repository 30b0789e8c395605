"""A sweep: the same commands over seeds and variants, several at once; one table, one page, conditions on every run.

    python sweep.py --config configs/sweep_demo.yaml                      # `make sweep`: the demo over five seeds
    python sweep.py --config configs/sweep_demo.yaml --dry-run            # every command that would run
    python sweep.py --config configs/sweep_demo.yaml --table              # what is there so far; runs nothing
    python sweep.py --config configs/sweep_demo.yaml seeds=20 'threads=[1, 2]' parallel=1
    python sweep.py --config configs/sweep_demo.yaml run_name=alpha 'variants={ten: [], five: [train.alpha=5]}'

The same command again continues a sweep that was interrupted or killed: what has finished is not run again, what was
running is resumed by its script's --resume, what failed is tried once more. Everything lies in outputs/<run_name>:
results.jsonl has a row per run, sweep.html the curves, <variant>/seed_<n>/ the run directories and screen output, and
shared/ what no variant changes, such as data and base, run once per seed.

Exit codes: 0 all runs finished and meet every condition, 1 some do not, 2 config, 130 Ctrl-C and 143 SIGTERM.
"""

if __name__ == "__main__":
    from lib.core.errors import end_at_ctrl_c

    end_at_ctrl_c()  # the imports below take a second

import argparse
import os
import shlex
import shutil
import time
from pathlib import Path

import reward_function  # noqa: F401  registers rewards and extractors, for the check of the stages' configs
from lib.core.children import Children
from lib.core.config import KINDS, SweepConfig, dump, load, parser
from lib.core.console import Screen
from lib.core.errors import FINISHED, ConfigError, run_script
from lib.core.interrupts import Interrupts
from lib.run.runlog import RunLog
from pages.sweep_page import page_of
from pages.sweep_tables import DIFFERENCE_HEADS, SUMMARY_HEADS, SweepOutcome, outcome_of
from pages.sweeps import Runs, Schedule, distinct, in_threads, parallel_in_words, plan, program, read_results

SCRIPTS = {kind.__doc__: kind for kind in KINDS}
MISSED = 1  # exit code


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
    mistakes = []
    for job in distinct(plan(config.model_copy(update={"seeds": config.all_seeds[:1]}))):
        name, *words = job.command
        if not (program(name).exists() if name.endswith(".py") else shutil.which(name)):
            mistakes.append(f"{job.stage}: there is no '{name}': name a script of this project or a program")
        kind = SCRIPTS.get(Path(name).name)
        if kind is None or "--config" not in words[:-1]:
            continue
        path = Path(words[words.index("--config") + 1])
        try:
            load(kind, path, [word for word in words if "=" in word and not word.startswith("-")])
        except ConfigError as error:
            mistakes += [f"{job.stage}: {line}" for line in str(error).splitlines()]
    if mistakes:
        raise ConfigError("\n".join(f"stages: {mistake}" for mistake in dict.fromkeys(mistakes)))


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
    """Prints figures, differences, a line per variant, whether each condition holds, and which runs failed."""
    for variant, rows in outcome.figures.items():
        title = f"{config.run_name}, {variant}: {len(outcome.results[variant])} of {len(config.all_seeds)} runs"
        screen.figures(title, SUMMARY_HEADS, [(summary.label, *cells) for summary, cells in rows])
    baseline = next(iter(outcome.figures))
    for variant, rows in outcome.differences.items():
        title = f"{variant} minus {baseline}, seed by seed"
        screen.figures(title, DIFFERENCE_HEADS, [(summary.label, *cells) for summary, cells in rows])
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


if __name__ == "__main__":
    run_script(main)

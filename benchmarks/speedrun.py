"""The two-core leaderboard: trains an entry within its budget, and checks entries by their run directories.

    python benchmarks/speedrun.py run                                # `make speedrun`: the settings to start from
    python benchmarks/speedrun.py run seed=1 optimizer.learning_rate=2e-3 run_name=mine     # outputs/mine-1
    python benchmarks/speedrun.py check outputs/mine-*               # trains each again, and prints the entry's line
    python benchmarks/speedrun.py check outputs/mine-0 --no-rerun    # believes its clock; a minute instead of several

`run` gives train.py so many seconds of processor time, after which the kernel kills it, and seals the run directory.
`check` believes nothing in such a directory that it can find out itself, and executes nothing in it. It builds the data
again; compares the config with the rules, and data, base, tokenizer, reward and every file's checksum with what they
must be; looks up every prompt that was trained on; evaluates the adapter on the run's own questions, which must give
the run's own numbers; trains it again within the same budget, which must give the same weights; and measures it on new
questions, whose seed is made from its weights. It prints every reason for which it refuses a run, of the first of these
parts that has any, or the entry's line for LEADERBOARD.md, which also has the rules.

Exit codes: 0 finished or accepted, 1 refused, 2 config or run directory, or as train.py.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import yaml

from benchmarks import leaderboard
from benchmarks.leaderboard import NAMES, PLACES, ROOT, Refused, Rules
from lib.core.config import ScoreConfig, differences, load, read_tree
from lib.core.errors import FINISHED, ConfigError, run_script

REFUSED = 1  # exit code
WELL_FORMED = "well_formed_attempt2"


def main() -> int:
    """Trains an entry and prints its line, or checks the runs of one."""
    args = command_line()
    rules = leaderboard.read_rules(args.rules)
    if args.command == "run":
        run_dir = train_entry(rules, args.overrides, args.threads)
        if isinstance(run_dir, int):
            return run_dir
        args.runs, args.rerun = [run_dir], False  # what has just been measured here needs no second run
    with tempfile.TemporaryDirectory() as scratch:
        track = leaderboard.track_of(rules, Path(scratch))
        found, refused = [], False
        for run in args.runs:
            try:
                found.append(leaderboard.checked(track, run, Path(scratch), args.rerun))
            except Refused as error:
                refused = True
                print(f"{run}: refused", *error.reasons, sep="\n    ")
        if not refused and (reasons := together(found)):
            refused = True
            print("refused as one entry", *reasons, sep="\n    ")
    if not refused:
        print(*lines_of(rules, found), sep="\n")
    return REFUSED if refused else FINISHED


def command_line() -> argparse.Namespace:
    """Returns the options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rules", type=Path, default=leaderboard.RULES, metavar="FILE")
    commands = options.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="train one run of an entry, and check it")
    run.add_argument("--threads", type=int, default=1, help="default: 1; each costs processor time")
    run.add_argument("overrides", nargs="*", metavar="key=value", help="of the config; seed=N is that of the run")
    check = commands.add_parser("check", help="check the runs of one entry")
    check.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    check.add_argument("--no-rerun", dest="rerun", action="store_false", help="believe the run's own clock")
    return options.parse_args()


def train_entry(rules: Rules, overrides: list[str], threads: int) -> Path | int:
    """Trains one run within the budget, and seals its directory; returns that, or train.py's exit code.

    A run that is finished is left as it is. Raises ConfigError for settings that break the rules.
    """
    from lib.run.manifest import MANIFEST, seal

    config = load(ScoreConfig, ROOT / rules.config, overrides)
    config = config.model_copy(update={"run_name": f"{config.run_name}-{config.seed}"})
    tree = config.model_dump(mode="json")
    if reasons := leaderboard.forbidden(rules, tree):
        raise ConfigError("\n".join(reasons))
    if config.run_dir.exists():
        if not (config.run_dir / MANIFEST).exists() or read_tree(config.run_dir / "config.yaml") != tree:
            raise ConfigError(f"{config.run_dir}: an unfinished run or one of other settings is there: give another "
                              "run_name=..., or delete the folder")  # fmt: skip
        return config.run_dir
    leaderboard.build(rules.data, Path(config.dataset.name))
    with tempfile.TemporaryDirectory() as scratch:
        code, used, wall = leaderboard.train(config, threads, rules.cpu_seconds, Path(scratch))
    if code == FINISHED:
        seal(config.run_dir, cpu_seconds=round(used, 1), wall_seconds=round(wall, 1), threads=threads)
        print(f"{config.run_dir}: {used:.0f} of {rules.cpu_seconds} seconds of processor time, {wall:.0f} by the clock")
    elif used >= rules.cpu_seconds - 1:
        late = f"{config.run_dir} was not finished after {rules.cpu_seconds} seconds of processor time, and is no entry"
        print(f"error: {late}: take fewer or smaller steps, or measure less on the way", file=sys.stderr)
        code = REFUSED
    return config.run_dir if code == FINISHED else code


def together(runs: list[dict[str, Any]]) -> list[str]:
    """Returns why runs cannot be one entry: other settings, or one seed twice."""
    seeds = [run["config"].seed for run in runs]
    reasons = [f"seed {seed} stands there twice" for seed in {seed for seed in seeds if seeds.count(seed) > 1}]
    first, *others = (run["config"].model_dump(mode="json", exclude=set(NAMES)) for run in runs)
    keys = {key for other in others for key, _ in differences(first, other)}
    return reasons + [f"{key} differs between the runs" for key in sorted(keys)]


def lines_of(rules: Rules, runs: list[dict[str, Any]]) -> list[str]:
    """Returns the entry's line, and what must be said about it."""
    start = load(ScoreConfig, ROOT / rules.config).model_dump(mode="json")
    own = runs[0]["config"].model_dump(mode="json")
    settings = [f"`{key}={_value(own, key)}`" for key, _ in differences(start, own) if key not in (*NAMES, *PLACES)]
    cells = {"settings": " ".join(settings) or "those to start from"}
    for name, key in (("attempt 2", "acc_attempt2"), ("attempt 1", "acc_attempt1"), ("well-formed", WELL_FORMED)):
        cells |= {f"{name}, {how}": _share([run[how] for run in runs], key) for how in ("sampled", "greedy")}
    cells["seeds"] = _distinct(run["config"].seed for run in runs)
    cells["seconds"] = _spread([run["facts"]["cpu_seconds"] for run in runs], "{:.0f}")
    cells["threads"] = _distinct(run["facts"]["threads"] for run in runs)
    cells["commit"] = _distinct(_commit(run["machine"]) for run in runs)
    cells["processor"] = _distinct(run["machine"].get("cpu") for run in runs)
    notes = [f"seed {run['config'].seed}: {note}" for run in runs for note in run["notes"]]
    if len(runs) < rules.seeds:
        notes.append(f"one of {len(runs)} seeds; an entry that is listed has {rules.seeds}")
    if any(run["machine"].get("is_changed") for run in runs):
        notes.append("its code had changes that no commit has; an entry that is listed has none")
    if not all(run["rerun"] for run in runs):
        notes.append("its clock was believed; an entry that is listed was trained again: check RUN ...")
    count = f"n = {runs[0]['sampled']['n']} new questions for each run"
    count += "; in brackets the lowest and the highest run, of one run its 95 % interval"
    return [f"| {' | '.join(cells)} |", "|" + "---|" * len(cells), f"| {' | '.join(cells.values())} |", count, *notes]


def _value(tree: dict, key: str) -> str:
    for part in key.split("."):
        tree = tree[part] if isinstance(tree, dict) and part in tree else None
    return re.sub(r"\s+", " ", yaml.safe_dump(tree, default_flow_style=True).removesuffix("...\n")).strip()


def _distinct(values: Iterable[object]) -> str:
    return ", ".join(map(str, dict.fromkeys(values)))


def _share(rows: list[dict], key: str) -> str:
    """Formats the share of several runs as `_spread` does, and that of one with its interval."""
    return _spread([rows[0][key], *rows[0][f"{key}_ci95"]] if len(rows) == 1 else [row[key] for row in rows], "{:.3f}")


def _spread(values: list[float], form: str) -> str:
    middle, low, high = (form.format(value) for value in (median(values), min(values), max(values)))
    return middle if len(values) == 1 else f"{middle} [{low} {high}]"


def _commit(machine: dict[str, Any]) -> str:
    return f"{str(machine.get('commit'))[:7]}{' and changes' if machine.get('is_changed') else ''}"


if __name__ == "__main__":
    run_script(main)

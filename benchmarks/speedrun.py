"""The two-core leaderboard: trains an entry within its budget, and checks entries by their run directories.

    python benchmarks/speedrun.py run                                   # `make speedrun`: the settings to start from
    python benchmarks/speedrun.py run seed=1 optimizer.learning_rate=2e-3 run_name=mine         # outputs/mine-1
    python benchmarks/speedrun.py check outputs/mine-*                  # trains each again, and prints the entry's line
    python benchmarks/speedrun.py check outputs/mine-0 --no-rerun       # believes its clock; seconds in place of minutes

`run` gives train.py so many seconds of processor time, after which the kernel kills it, and seals the run directory.
`check` believes nothing in such a directory that it can find out itself, and executes nothing in it. It builds the data
again; compares the config with the rules, and data, base, tokenizer, reward and every file's checksum with what they
must be; looks up every prompt that was trained on; evaluates the adapter on the run's own questions, which must give
the run's own numbers, and on new ones, whose seed is made from the adapter's weights, which give the entry's; and
trains it again within the same budget, which must give the same weights. It prints every reason for which it refuses a
run, of the first of these parts that has any, or the entry's line for LEADERBOARD.md, which also has the rules.

Exit codes: 0 finished or accepted, 1 refused, 2 config or run directory, or as train.py.
"""

import argparse
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import yaml
from pydantic import ValidationError

import reward_function  # noqa: F401  registers the reward that the config names
from lib.core.config import ScoreConfig, differences, dump, load, read_tree
from lib.core.config.section import Section
from lib.core.errors import FINISHED, ConfigError, first_line, run_script
from lib.run.machine import read_machine
from lib.run.runlog import read_jsonl

RULES = ROOT / "benchmarks/speedrun.yaml"
REFUSED = 1  # exit code
NAMES = ("seed", "run_name", "output_dir")  # what tells the runs of one entry apart
PLACES = ("model.name", "dataset.name")  # compared by what lies there
ROUNDING = 0.02  # between the same evaluation on two processors; on one there is no difference
ATTEMPTS = ("acc_attempt1", "acc_attempt2")


class Questions(Section):
    """What an entry is measured on."""

    build: str
    count: int


class Rules(Section):
    """A track of the leaderboard."""

    config: Path
    data: str
    base: str
    cpu_seconds: int
    questions: Questions
    seeds: int
    may_differ: list[str]
    may_not_differ: list[str] = []


class Track(NamedTuple):
    """The rules made real: the config to start from, the rows, the fingerprints of an honest run."""

    rules: Rules
    config: ScoreConfig  # with rows and base where they lie here
    dataset: str
    inputs: dict[str, str]
    trained_on: set[str]  # prompts
    known: set[str]  # prompts of all rows, those that the base was trained on included


class Refused(Exception):
    """A run breaks rules: `reasons` has a sentence for each."""

    def __init__(self, reasons: list[str]):
        super().__init__("; ".join(reasons))
        self.reasons = reasons


def main() -> int:
    """Trains an entry and prints its line, or checks the runs of one."""
    args = command_line()
    rules = read_rules(args.rules)
    if args.command == "run":
        run_dir = train_entry(rules, args.overrides, args.threads)
        if isinstance(run_dir, int):
            return run_dir
        args.runs, args.rerun = [run_dir], False  # what has just been measured here needs no second run
    with tempfile.TemporaryDirectory() as scratch:
        track = track_of(rules, Path(scratch))
        found, refused = [], False
        for run in args.runs:
            try:
                found.append(checked(track, run, Path(scratch), args.rerun))
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
    options.add_argument("--rules", type=Path, default=RULES, metavar="FILE")
    commands = options.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="train one run of an entry, and check it")
    run.add_argument("--threads", type=int, default=1, help="default: 1; each costs processor time")
    run.add_argument("overrides", nargs="*", metavar="key=value", help="of the config; seed=N is that of the run")
    check = commands.add_parser("check", help="check the runs of one entry")
    check.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    check.add_argument("--no-rerun", dest="rerun", action="store_false", help="believe the run's own clock")
    return options.parse_args()


def read_rules(path: Path) -> Rules:
    """Reads the rules of a track. Raises ConfigError."""
    try:
        return Rules.model_validate(read_tree(path))
    except ValidationError as error:
        raise ConfigError(f"{path}: these are no rules ({first_line(error)}); see {RULES}") from error


# -- an entry


def train_entry(rules: Rules, overrides: list[str], threads: int) -> Path | int:
    """Trains one run within the budget, and seals its directory; returns that, or train.py's exit code."""
    from lib.run.checkpoint import seal

    config = load(ScoreConfig, ROOT / rules.config, overrides)
    config = config.model_copy(update={"run_name": f"{config.run_name}-{config.seed}"})
    if reasons := forbidden(rules, load(ScoreConfig, ROOT / rules.config), config):
        raise ConfigError("\n".join(reasons))
    build(rules.data, Path(config.dataset.name))
    with tempfile.TemporaryDirectory() as scratch:
        code, used, wall = train(config, threads, rules.cpu_seconds, Path(scratch))
    if code == FINISHED:
        seal(config.run_dir, cpu_seconds=round(used, 1), wall_seconds=round(wall, 1), threads=threads)
        print(f"{config.run_dir}: {used:.0f} of {rules.cpu_seconds} seconds of processor time, {wall:.0f} by the clock")
    elif used >= rules.cpu_seconds - 1:
        print(f"error: {config.run_dir} was not finished after {rules.cpu_seconds} seconds of processor time, and is no "
              "entry: take fewer or smaller steps, or measure less on the way", file=sys.stderr)  # fmt: skip
        code = REFUSED
    return config.run_dir if code == FINISHED else code


def train(
    config: ScoreConfig, threads: int, seconds: int, scratch: Path, log: Path | None = None
) -> tuple[int, float, float]:
    """Runs train.py, killed after so many seconds of processor time; returns exit code, these, and those of a clock."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))

    path = scratch / f"{config.run_name}.yaml"
    path.write_text(dump(config), encoding="utf-8")
    before, start = _children(), time.monotonic()
    command = [sys.executable, str(ROOT / "train.py"), "--config", str(path)]
    with open(log or os.devnull, "wb") as output:
        told = {"stdout": output, "stderr": subprocess.STDOUT} if log else {}
        code = subprocess.run(command, env=_environment(threads), preexec_fn=limit, **told).returncode
    used = _children() - before
    return (code if used <= seconds else REFUSED), used, time.monotonic() - start


def _children() -> float:
    """Returns the processor time of this process's children, and of theirs that they waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _environment(threads: int) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "CUDA_VISIBLE_DEVICES": ""}


def build(command: str, folder: Path, **values: object) -> None:
    """Runs a builder of data, which writes into `folder`."""
    script, *words = (word.format(dir=folder, **values) for word in shlex.split(command))
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, str(ROOT / script), *words], check=True, stdout=subprocess.DEVNULL)


# -- the checker


def track_of(rules: Rules, scratch: Path) -> Track:
    """Builds the data, and finds what every honest run has. Raises ConfigError if this tree has another base."""
    from lib.model.loading import load_skeleton
    from lib.rl.task import load_data
    from lib.run import fingerprints

    config = load(ScoreConfig, ROOT / rules.config)
    base, data = str(ROOT / config.model.name), scratch / "data"
    build(rules.data, data)
    config = changed(config, {"model": {"name": base}, "dataset": {"name": str(data)}})
    splits, judge = load_data(config)
    inputs = fingerprints.of_model(base, *load_skeleton(config.model))
    if inputs[fingerprints.WEIGHTS] != rules.base:
        raise ConfigError(f"{base}: got the fingerprint {inputs[fingerprints.WEIGHTS]}, expected {rules.base} by the "
                          "rules: restore the base that ships")  # fmt: skip
    inputs[fingerprints.REWARD] = fingerprints.of_code(judge.functions)
    known = {asked(config, row) for path in data.glob("*.jsonl") for row in read_jsonl(path)[0]}
    return Track(rules, config, splits.fingerprint, inputs, {asked(config, row) for row in splits.train}, known)


def asked(config: ScoreConfig, row: dict) -> str:
    """Returns the question of a row, whether it has columns or is a chat."""
    from lib.rl.prompts import filled

    return row["messages"][0]["content"] if "messages" in row else filled(config.prompts.user, row, "prompts.user")


def changed(config: ScoreConfig, changes: dict[str, dict]) -> ScoreConfig:
    """Returns the config with some keys of its sections replaced."""
    tree = config.model_dump(mode="json")
    for section, values in changes.items():
        tree[section] |= values
    return ScoreConfig.model_validate(tree)


def checked(track: Track, run: Path, scratch: Path, rerun: bool) -> dict[str, Any]:
    """Returns what a run counts for in its entry. Raises Refused."""
    config = config_of(run)
    refuse(forbidden(track.rules, load(ScoreConfig, ROOT / track.rules.config), config))
    home = {"model": {"name": track.config.model.name}, "dataset": {"name": track.config.dataset.name}}
    config = changed(config, home)
    stages = [number for number in (1, 2) if config.train.has_steps(number)]
    adapter = run / f"stage{stages[-1]}"
    refuse([*damaged(run, stages), *foreign(track, adapter), *untold(track, run, config, stages)])
    facts, notes = facts_of(run), []
    refuse(overspent(track.rules, facts))
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        place = Path(folder)
        refuse(misreported(run, evaluated(config, adapter, place, config.eval.temperature, 0.0), adapter.name))
        if rerun:
            again = config.model_copy(update={"output_dir": folder, "run_name": "again"})
            adapter = trained_again(track, again, facts, adapter, place, notes)
        rows = measured(track, config, adapter, place)
    return {"config": config, "facts": facts, "machine": read_machine(run), "sampled": rows[0], "greedy": rows[1],
            "rerun": rerun, "notes": notes}  # fmt: skip


def refuse(reasons: list[str]) -> None:
    """Raises Refused if there are any reasons."""
    if reasons:
        raise Refused(reasons)


def config_of(run: Path) -> ScoreConfig:
    """Reads the config of a run. Raises Refused."""
    try:
        return load(ScoreConfig, run / "config.yaml")
    except ConfigError as error:
        raise Refused([f"config.yaml: {error}"]) from error


def forbidden(rules: Rules, start: ScoreConfig, config: ScoreConfig) -> list[str]:
    """Returns what of a config an entry may not choose; data and base are compared by content elsewhere."""

    def within(key: str, allowed: list[str]) -> bool:
        return any(f"{key}.".startswith(f"{each}.") for each in allowed)

    free = [*rules.may_differ, *NAMES, *PLACES]
    found = differences(start.model_dump(mode="json"), config.model_dump(mode="json"))
    wrong = [
        f"config: {key} {change}: the rules leave it as it is in {rules.config}"
        for key, change in found
        if not within(key, free) or within(key, rules.may_not_differ)
    ]
    steps = [f"train.stage{number}_steps" for number in (1, 2) if getattr(config.train, f"stage{number}_steps") is None]
    return wrong + [f"config: {key} is null, expected a number of steps" for key in steps]


def damaged(run: Path, stages: list[int]) -> list[str]:
    """Returns the files that are not what was sealed."""
    from lib.run.checkpoint import problems

    folders = [run, *(run / f"stage{number}" for number in stages)]
    missing = [f"{folder}: there is no such folder; an entry is a finished run" for folder in folders
               if not folder.is_dir()]  # fmt: skip
    return missing or [f"{folder.name}/{problem}" for folder in folders for problem in problems(folder)]


def foreign(track: Track, adapter: Path) -> list[str]:
    """Returns what an adapter was trained on that is not the track's."""
    from lib.run.checkpoint import manifest_of

    facts = manifest_of(adapter)
    there = facts.get("inputs", {})
    names = [name for name in {**track.inputs, **there} if track.inputs.get(name) != there.get(name)]
    reasons = [f"{name}: got {there.get(name)}, expected {track.inputs.get(name)}, as this commit has it"
               for name in names]  # fmt: skip
    if facts.get("dataset") != track.dataset:
        reasons.append(f"the data: got {facts.get('dataset')}, expected {track.dataset}, as {track.rules.data} has it")
    here = facts.get("environment", {}).get("device"), facts.get("world_size")
    if here != ("cpu", 1):
        reasons.append(f"device and processes: got {here}, expected ('cpu', 1)")
    return reasons


def untold(track: Track, run: Path, config: ScoreConfig, stages: list[int]) -> list[str]:
    """Returns what is wrong with a run's own story: its steps, how it began, and the prompts it trained on."""
    from lib.run.checkpoint import manifest_of

    reasons = []
    steps = [
        (number, step) for number in stages for step in range(1, getattr(config.train, f"stage{number}_steps") + 1)
    ]
    metrics, evaluations, texts = (
        read_jsonl(run / f"{name}.jsonl")[0] for name in ("metrics", "evaluations", "generations")
    )
    taken = [(row.get("stage"), row.get("step")) for row in metrics]
    if taken != steps:
        reasons.append(f"metrics.jsonl: got {len(taken)} steps, expected each of the config's {len(steps)}, in order")
    for number in stages:
        last, expected = manifest_of(run / f"stage{number}").get("step"), sum(stage == number for stage, _ in steps)
        if last != expected:
            reasons.append(f"stage{number}: its weights are those of step {last}, expected {expected}")
    if not evaluations or evaluations[0].get("when") != "pretrain":
        reasons.append("evaluations.jsonl: it does not begin with the base alone: an entry starts from no adapter")
    if missing := set(steps) - {(row.get("stage"), row.get("step")) for row in texts}:
        reasons.append(f"generations.jsonl: there are no texts of {len(missing)} steps, such as {min(missing)}")
    other = sorted({str(row.get("prompt")) for row in texts} - track.trained_on)
    if other:
        reasons.append(f"generations.jsonl: {len(other)} prompts are no rows to train on, such as {other[0][:60]!r}")
    return reasons


def facts_of(run: Path) -> dict[str, Any]:
    """Returns what was sealed about a run: `cpu_seconds`, `wall_seconds`, `threads`. Raises Refused."""
    from lib.run.checkpoint import manifest_of

    facts, wanted = manifest_of(run), {"cpu_seconds": (int, float), "wall_seconds": (int, float), "threads": int}
    wrong = [key for key, kind in wanted.items() if not isinstance(facts.get(key), kind)]
    refuse([f"{', '.join(wrong)}: not recorded; train with `benchmarks/speedrun.py run`"] if wrong else [])
    return {key: facts[key] for key in wanted}


def overspent(rules: Rules, facts: dict[str, Any]) -> list[str]:
    """Returns how a run's own clock breaks the budget, or cannot be right."""
    used, wall, threads = facts.values()
    reasons = []
    if used > rules.cpu_seconds:
        reasons.append(f"budget: {used:.0f} seconds of processor time, {rules.cpu_seconds} are allowed")
    if not 1 <= threads <= 64 or not 0 < used <= 1.1 * threads * wall + 10:
        reasons.append(f"budget: {used} seconds in {wall} by the clock is more than {threads} threads can use")
    return reasons


def misreported(run: Path, rows: list[dict], stage: str) -> list[str]:
    """Returns the numbers of a run's last evaluations that the same evaluations do not give here."""
    reported, _ = read_jsonl(run / "evaluations.jsonl")
    reasons = []
    for row in rows:
        same = [old for old in reported if (old.get("when"), old.get("temperature"), old.get("n"))
                == (f"after_{stage}", row["temperature"], row["n"])]  # fmt: skip
        if not same:
            reasons.append(
                f"evaluations.jsonl: no row after {stage} at temperature {row['temperature']:g}, n {row['n']}"
            )
        reasons += [
            f"evaluations.jsonl: {key} at temperature {row['temperature']:g} is {old.get(key)}, expected {row[key]}, "
            "which the adapter has on the same questions"
            for old in same[-1:]
            for key in ATTEMPTS
            if not isinstance(old.get(key), float) or abs(old[key] - row[key]) > ROUNDING
        ]
    return reasons


def evaluated(config: ScoreConfig, adapter: Path, folder: Path, *temperatures: float) -> list[dict]:
    """Returns the rows of evaluate.py on the questions of a config, one per temperature. Raises Refused."""
    path, output = folder / "evaluate.yaml", folder / "rows.jsonl"
    output.unlink(missing_ok=True)
    path.write_text(dump(config), encoding="utf-8")
    words = ["--config", path, "--adapter", adapter, "--output", output, "--temperature", *temperatures]
    command = [sys.executable, str(ROOT / "evaluate.py"), *map(str, words)]
    done = subprocess.run(command, env=_environment(1), capture_output=True, text=True)
    if done.returncode:
        raise Refused([f"{adapter.name}: it cannot be evaluated: {line}" for line in done.stderr.splitlines()[-3:]])
    return read_jsonl(output)[0]


def measured(track: Track, config: ScoreConfig, adapter: Path, folder: Path) -> list[dict]:
    """Returns the rows of an adapter, sampled and greedy, on questions that nobody knew before its weights."""
    count, seed = track.rules.questions.count, int(weights_of(adapter)[:8], 16)
    fresh = folder / "questions"
    build(track.rules.questions.build, fresh, seed=seed)
    new = [row for row in read_jsonl(fresh / "test.jsonl")[0] if asked(config, row) not in track.known][:count]
    if len(new) < count:
        raise ConfigError(f"questions.build: {len(new)} new questions, expected {count}: let it build more")
    for name, rows in (("train", read_jsonl(Path(config.dataset.name) / "train.jsonl")[0]), ("test", new)):
        (fresh / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    adapters = config.model.model_dump(mode="json")["adapters"]
    settings = {"max_examples": count, "selection_examples": 0}
    asking = changed(track.config, {"dataset": {"name": str(fresh), "test_split_size": count}, "eval": settings,
                                    "model": {"adapters": adapters}})  # fmt: skip
    return evaluated(asking, adapter, folder, asking.eval.temperature, 0.0)


def weights_of(adapter: Path) -> str:
    """Returns a hash of an adapter's weights."""
    from hashlib import sha256

    digest = sha256()
    for path in sorted(adapter.glob("*.safetensors")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def trained_again(
    track: Track, config: ScoreConfig, facts: dict[str, Any], adapter: Path, folder: Path, notes: list[str]
) -> Path:
    """Trains a run again within the budget; returns the adapter, which is measured in place of the run's own.

    Raises Refused if it does not end in time, or if on the same processor other weights come out.
    """
    log = folder / "train.log"
    code, used, _ = train(config, facts["threads"], track.rules.cpu_seconds, folder, log)
    if code:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        refuse([f"rerun: not finished after {used:.0f} seconds of processor time, of {track.rules.cpu_seconds} "
                f"(exit code {code}{''.join(f': {line}' for line in said)})"])  # fmt: skip
    again = config.run_dir / adapter.name
    there, here = read_machine(adapter.parent), read_machine(config.run_dir)
    alike = all(there.get(key) == here.get(key) for key in ("commit", "cpu", "threads", "packages"))
    if weights_of(again) == weights_of(adapter):
        notes.append(f"trained again in {used:.0f} seconds: the same weights")
    elif alike:
        refuse(
            [f"rerun: {adapter.name} has other weights than its config gives, with the same code on the same processor"]
        )
    else:
        notes.append(f"trained again in {used:.0f} seconds on another processor: other weights, which are measured")
    return again


# -- the entry


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
    figures = [
        (how, key) for key in ("acc_attempt2", "acc_attempt1", "well_formed_attempt2") for how in ("sampled", "greedy")
    ]
    cells = [_spread([run[how][key] for run in runs]) for how, key in figures]
    used = _spread([run["facts"]["cpu_seconds"] for run in runs], "{:.0f}")
    threads = sorted({run["facts"]["threads"] for run in runs})
    commits = {_commit(run["machine"]) for run in runs}
    processors = {str(run["machine"].get("cpu")) for run in runs}
    heads = ["entry", *(f"{key.replace('acc_', '').replace('_', ' ').replace('attempt', 'attempt ')}, {how}" for how, key in figures),
             "seeds", "CPU seconds", "threads", "commit", "processor"]  # fmt: skip
    line = [" ".join(settings) or "the settings to start from", *cells, ", ".join(str(run["config"].seed) for run in runs),
            used, ", ".join(map(str, threads)), ", ".join(sorted(commits)), ", ".join(sorted(processors))]  # fmt: skip
    notes = [f"seed {run['config'].seed}: {note}" for run in runs for note in run["notes"]]
    if len(runs) < rules.seeds:
        notes.append(f"one of {len(runs)} seeds; an entry that is listed has {rules.seeds}")
    if not all(run["rerun"] for run in runs):
        notes.append("its clock was believed; an entry that is listed was trained again: check RUN ...")
    count = f"n = {runs[0]['sampled']['n']} new questions for each run; of several runs median, lowest and highest"
    return [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), f"| {' | '.join(line)} |", count, *notes]


def _value(tree: dict, key: str) -> str:
    for part in key.split("."):
        tree = tree[part] if isinstance(tree, dict) and part in tree else None
    return re.sub(r"\s+", " ", yaml.safe_dump(tree, default_flow_style=True).removesuffix("...\n")).strip()


def _spread(values: list[float], form: str = "{:.3f}") -> str:
    told = [form.format(value) for value in (median(values), min(values), max(values))]
    return told[0] if len(values) == 1 else f"{told[0]} [{told[1]} {told[2]}]"


def _commit(machine: dict[str, Any]) -> str:
    return f"{str(machine.get('commit'))[:7]}{' and changes' if machine.get('is_changed') else ''}"


if __name__ == "__main__":
    run_script(main)

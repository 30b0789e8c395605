"""The rules of the two-core leaderboard, and what tells whether a run directory keeps them (benchmarks/speedrun.py).

Nothing in such a directory is executed: its config is data of which only some keys may differ, its weights are
safetensors, and every process started here is this project's own. Reasons are collected, cheap ones first; of the first
kind that has any all are told.
"""

import hashlib
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

import reward_function  # noqa: F401  registers the reward that the config names
from data.builders import write_rows
from lib.core.config import ScoreConfig, differences, dump, load, read_tree
from lib.core.config.section import Section
from lib.core.config.trees import read
from lib.core.errors import ConfigError, first_line
from lib.run.machine import read_machine
from lib.run.runlog import files_of, read_jsonl

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "benchmarks/speedrun.yaml"
NAMES = ("seed", "run_name", "output_dir")  # tell the runs of one entry apart
PLACES = ("model.name", "dataset.name")  # compared by what lies there
ROUNDING = 0.02  # between the same evaluation on two processors; on one there is no difference
STREAMS = ("metrics", "evaluations", "generations")


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
    may_not_differ: list[str]


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


def read_rules(path: Path) -> Rules:
    """Reads the rules of a track. Raises ConfigError."""
    try:
        return Rules.model_validate(read_tree(path))
    except ValidationError as error:
        raise ConfigError(f"{path}: these are no rules ({first_line(error)}); see {RULES}") from error


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
    return code or int(used > seconds), used, time.monotonic() - start


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
    """Returns a run's figures for its entry. Raises Refused."""
    config = config_of(track.rules, run)
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


def config_of(rules: Rules, run: Path) -> ScoreConfig:
    """Reads the config of a run. Raises Refused."""
    path = run / "config.yaml"
    try:
        tree, _, duplicates = read(path)
        refuse([f"config.yaml:{line}: {problem}" for line, problem in duplicates] + ambiguous(tree))
        refuse(forbidden(rules, tree, PLACES))  # before `load`: to validate a reward's name is to import its module
        return load(ScoreConfig, path)
    except ConfigError as error:
        raise Refused([f"config.yaml: {error}"]) from error


def ambiguous(tree: dict[str, Any]) -> list[str]:
    """Returns the keys with a dot in them: `differences` would take such a key for one of a section."""
    below = [problem for value in tree.values() if isinstance(value, dict) for problem in ambiguous(value)]
    dotted = [f"config.yaml: {key}: a key with a dot in it, expected sections within each other" for key in tree
              if "." in key]  # fmt: skip
    return dotted + below


def forbidden(rules: Rules, tree: dict[str, Any], besides: tuple[str, ...] = ()) -> list[str]:
    """Returns the settings of a config that an entry may not choose; it may choose the keys in `besides` too."""

    def within(key: str, allowed: list[str]) -> bool:
        return any(f"{key}.".startswith(f"{prefix}.") for prefix in allowed)

    free, start = [*rules.may_differ, *NAMES, *besides], load(ScoreConfig, ROOT / rules.config)
    found = dict(differences(start.model_dump(mode="json"), tree))
    wrong = [key for key in found if not within(key, free) or within(key, rules.may_not_differ)]
    return [f"config: {key} {found[key]}: it may not differ from {rules.config}" for key in wrong]


def damaged(run: Path, stages: list[int]) -> list[str]:
    """Returns the files that are not what was sealed."""
    from lib.run.manifest import problems

    folders = [run, *(run / f"stage{number}" for number in stages)]
    missing = [f"{folder}: there is no such folder; an entry is a finished run" for folder in folders
               if not folder.is_dir()]  # fmt: skip
    return missing or [f"{folder.name}/{problem}" for folder in folders for problem in problems(folder)]


def foreign(track: Track, adapter: Path) -> list[str]:
    """Returns the inputs of an adapter's training that differ from the track's."""
    from lib.run.manifest import manifest_of

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
    """Returns the contradictions in a run's records: its steps, its start, and the prompts it trained on."""
    from lib.run.manifest import manifest_of

    reasons = []
    counts = {number: getattr(config.train, f"stage{number}_steps") or 0 for number in stages}  # null: in epochs
    steps = [(number, step) for number in stages for step in range(1, counts[number] + 1)]
    metrics, evaluations, texts = (rows_of(run, name) for name in STREAMS)
    taken = [(row.get("stage"), row.get("step")) for row in metrics]
    if taken != steps:
        reasons.append(f"metrics.jsonl: got {len(taken)} steps, expected each of the config's {len(steps)}, in order")
    for number in stages:
        last = manifest_of(run / f"stage{number}").get("step")
        if last != counts[number]:
            reasons.append(f"stage{number}: its weights are those of step {last}, expected {counts[number]}")
    if not evaluations or evaluations[0].get("when") != "pretrain":
        reasons.append("evaluations.jsonl: it does not begin with the base alone: an entry starts from no adapter")
    texts = [row for row in texts if row.get("when") == "train"]
    if missing := set(steps) - {(row.get("stage"), row.get("step")) for row in texts}:
        reasons.append(f"generations.jsonl: there are no texts of {len(missing)} steps, such as {min(missing)}")
    other = sorted({str(row.get("prompt")) for row in texts} - track.trained_on)
    if other:
        reasons.append(f"generations.jsonl: {len(other)} prompts are no rows to train on, such as {other[0][:60]!r}")
    return reasons


def rows_of(run: Path, stream: str) -> list[dict[str, Any]]:
    """Returns the rows of a stream; none where it is missing."""
    return [row for path in files_of(run, stream) for row in read_jsonl(path)[0]]


def facts_of(run: Path) -> dict[str, Any]:
    """Returns the sealed facts of a run: `cpu_seconds`, `wall_seconds`, `threads`. Raises Refused."""
    from lib.run.manifest import manifest_of

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
    reported, reasons = rows_of(run, "evaluations"), []
    for row in rows:
        same = [old for old in reported if (old.get("when"), old.get("temperature"), old.get("n"))
                == (f"after_{stage}", row["temperature"], row["n"])]  # fmt: skip
        if not same:
            how = f"at temperature {row['temperature']:g}, n = {row['n']}"
            reasons.append(f"evaluations.jsonl: there is no row after {stage} {how}")
        reasons += [
            f"evaluations.jsonl: {key} at temperature {row['temperature']:g} is {old.get(key)}, expected {row[key]}, "
            "which the adapter has on the same questions"
            for old in same[-1:]
            for key in ("acc_attempt1", "acc_attempt2")
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
    """Returns the rows of an adapter, sampled and greedy, on questions that no one knew before its weights."""
    count, seed = track.rules.questions.count, int(weights_of(adapter)[:8], 16)
    fresh = folder / "questions"
    build(track.rules.questions.build, fresh, seed=seed)
    new = [row for row in read_jsonl(fresh / "test.jsonl")[0] if asked(config, row) not in track.known][:count]
    if len(new) < count:
        raise ConfigError(f"questions.build: {len(new)} new questions, expected {count}: let it build more")
    for name, rows in (("train", read_jsonl(Path(config.dataset.name) / "train.jsonl")[0]), ("test", new)):
        write_rows(fresh / f"{name}.jsonl", rows)
    adapters = config.model.model_dump(mode="json")["adapters"]
    settings = {"max_examples": count, "selection_examples": 0}
    asking = changed(track.config, {"dataset": {"name": str(fresh), "test_split_size": count}, "eval": settings,
                                    "model": {"adapters": adapters}})  # fmt: skip
    return evaluated(asking, adapter, folder, asking.eval.temperature, 0.0)


def weights_of(adapter: Path) -> str:
    """Returns a hash of an adapter's weights."""
    digest = hashlib.sha256()
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
        refuse([f"rerun: {adapter.name} has other weights than its config gives here, by the same code and processor"])
    else:
        notes.append(f"trained again in {used:.0f} seconds by another processor or commit: other weights, measured")
    return again

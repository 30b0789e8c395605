"""Held-out accuracy with intervals, of two attempts or of single answers: of a run, an adapter, or the base model.

    python evaluate.py --config configs/gsm8k.yaml                                      # the base model
    python evaluate.py --config configs/gsm8k.yaml --texts outputs/base                 # then: report.py outputs/base
    python evaluate.py --run outputs/score-gsm8k
    python evaluate.py --config outputs/score-gsm8k/config.yaml --adapter outputs/score-gsm8k/best
    python evaluate.py --config configs/gsm8k.yaml --temperature 0 0.7 --max-examples 1000 --output results.jsonl
    python evaluate.py --config configs/gsm8k.yaml --rows 400 1319                      # what eval.rows left out
    python evaluate.py --config configs/gsm8k.yaml --temperature 0.7 --samples 16 --majority
    python evaluate.py --config configs/gsm8k.yaml --url http://localhost:8000/v1 --model NAME   # behind a server
    python evaluate.py --config configs/gsm8k.yaml --check outputs/score-gsm8k-NAME    # a row of SELF_CORRECTION.md
    python evaluate.py --run outputs/score-gsm8k --swap-attempts
    python evaluate.py --run outputs/my-run --samples 8                                 # of self-play: pass@8
    python evaluate.py --compare outputs/a outputs/b                                    # in pairs, of what is measured
    python evaluate.py --compare outputs/a@after_stage1 outputs/a@stage2/step_40
    torchrun --standalone --nproc_per_node 4 evaluate.py --config configs/gsm8k.yaml

A config of train.py has two attempts, one of rl_train_gspo_selfplay.py has answers, and its opponent is not asked.
Where attempts are trained with feedback between them, they are measured with it, and once more without any.
Data, prompts, budgets and the test of correctness are those of training; `eval.seed` decides the samples. Accuracy is
exact match, never shaped reward. `--majority` asks whether an attempt is better spent on a new first try or on a
correction (SCoRe, arXiv 2409.12917, section 6.2): it votes over the last attempts of K chats, and over as many first
attempts as these chats have in all. With several samples, succ@k of k attempts in a chat stands next to pass@k.
`--url` measures a model behind an OpenAI-compatible server: does it find its errors, use a verdict, break right
answers, give in to pressure (lib/rl/served.py)? The server's other settings are overrides, such as
servers.served.api_key_env=NAME, the variable with the key. outputs/<run_name>-<model> gets the page report.html,
self_correction.json, transcripts.jsonl and replies.jsonl, and `--resume` asks only for what is missing. Exit codes of
its own: 6 the server refuses, 130 Ctrl-C and 143 SIGTERM after the open requests. `--check FOLDER` asks nothing: it
builds the chats of such a folder again, by the config given here, judges its replies, and refuses a card or a row of
the table that differs.
`--swap-attempts` asks whether attempt 2 reads attempt 1 or solves again: it is sampled after the attempt 1 to another
question, too (lib/rl/swaps.py); its rows go into the run's swaps.jsonl as well.
`--compare` answers nothing: it tests what differs between two evaluations of the same questions, pair by pair, of two
runs or files of `--output` (the last ones), or of one (its first and its last); pages/paired.py says what and how.

Exit codes: 0 finished, 2 config, data or adapter, 5 sandbox, 7 a reward that raises, 74 disk.
"""

if __name__ == "__main__":
    from lib.core.errors import end_at_ctrl_c

    end_at_ctrl_c()  # the imports below take a second

import argparse
import asyncio
import contextlib
import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import reward_function  # noqa: F401  registers rewards and extractors, yours too
from lib.core.config import (
    Eval,
    RLConfig,
    ScoreConfig,
    SelfPlayConfig,
    check_launcher,
    dump,
    load,
    parser,
)
from lib.core.console import answered, format_trouble, in_brackets
from lib.core.errors import FINISHED, ConfigError, Left, run_script
from lib.core.registry import matchers
from lib.rewards.judge import prepare
from lib.run.directory import position
from lib.run.hub import local_adapter
from lib.run.manifest import read_manifest
from lib.run.results import newest_adapter
from lib.run.runlog import is_number, read_lines
from pages import paired
from pages.blocks import seen
from pages.sections import swap_tables
from pages.served import CARD, overview_of, read_card, read_served
from pages.terminal import show_sections

ROW_KEYS = {"when", "n", "prompts", "temperature"}  # of evaluations of every kind and version


def main() -> int:
    """Answers the held-out questions once per temperature; prints one table, appends one row each to a file."""
    args, config, adapter = command_line()
    if args.compare:
        for pair in paired.chosen(args.compare):
            print("\n".join(paired.lines(*pair)))
        print(f"95 % intervals in brackets. {paired.LEGEND}")
        return FINISHED
    prepare(config)
    if args.check:
        return checked_card(config, args)
    if args.url:
        return served_model(config, args)
    from lib.core.console import ProgressPrinter, Screen
    from lib.rl.task import load_task
    from lib.run.adapter_files import load_adapter  # torch is imported once the config is valid
    from lib.run.distributed import make_accelerator

    accelerator = make_accelerator()
    screen = Screen(accelerator.is_main_process)
    attempts = partial(both_attempts, majority=args.majority)
    measure = attempts if isinstance(config, ScoreConfig) else single_answers
    if args.swap_attempts:
        measure = swapped_attempts
    task = load_task(config, screen.say)
    if adapter:
        load_adapter(task.policy.model, adapter, config.model.name)
    for note in task.notes:
        screen.say(note)
    if adapter and data_of(adapter) not in ("", task.splits.fingerprint):
        screen.warn(
            f"these rows are not split as those of {adapter} were, or are others: it may have been trained on some of "
            "these questions; restore data, settings and version of its run, unless you mean to measure it on others"
        )
    most = config.prompt_limit[1]
    held_out, which = chosen_rows(
        config, task.splits, task.selection, args, lambda row: len(task.prompt_ids(row)) <= most
    )
    rows = []
    # a server elsewhere reads it, and maybe no other place; a run of others may not be written to
    near = config.run_dir if config.run_dir.is_dir() and os.access(config.run_dir, os.W_OK) else None
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=near)))
        stack.enter_context(task.engine.open(folder / "engine"))
        if not adapter:
            stack.enter_context(task.policy.reference_mode())  # a fresh soft prompt would change the base
        for temperature, how in product(args.temperature, ways_of(config, args)):
            settings = settings_for(config.eval, args, temperature)
            row = described(config, adapter, settings) | which | how | {"temperature": temperature}
            asking = task
            if how.get("feedback") == "none":
                asking = replace(task, prompts=task.prompts.without_feedback(), config=config.without_feedback())
            numbers, trees = measure(
                asking, held_out, settings, accelerator, ProgressPrinter(screen.say, answered(row))
            )
            row |= numbers
            rows.append(row)
            if args.texts:
                keep_texts(args.texts, row, how, trees, config, accelerator)
            for path in outputs(args, config) if accelerator.is_main_process else ():
                append(path, row)
    screen.heading(f"{adapter or 'base'} of {config.model.full_name}")
    if not args.swap_attempts:
        screen.table(rows, "")
    elif accelerator.is_main_process:
        show_sections(swap_tables([("", row) for row in rows]))
    for row in rows:
        of = " of attempt 1" if "delta" in row else ""
        for part in row.get("pass_at_k", ())[1:]:
            screen.say(f"{answered(row)}: pass@{part['k']}{of} {in_brackets(part, 'pass')}")
        for part in row.get("majority", ()):
            screen.say(
                f"majority votes at {answered(row)}, K = {part['k']}: of {part['attempts']} first attempts "
                f"{in_brackets(part, 'acc_parallel')}, of {part['k']} chats {in_brackets(part, 'acc_sequential')}, "
                f"gain {in_brackets(part, 'gain', '+')}"
            )
        for text in format_trouble(row, config.reward.accepts_cut):
            screen.warn(f"{answered(row)}: {text}")
    return FINISHED


def data_of(adapter: Path) -> str:
    """Returns the fingerprint of the rows that an adapter of a run was trained and measured on; "" for others."""
    try:
        return read_manifest(adapter)["dataset"] if position(adapter) else ""
    except (OSError, ValueError):
        return ""


def ways_of(config: RLConfig, args: argparse.Namespace) -> list[dict[str, str]]:
    """Returns how attempts are asked for, as a row tells it: with the feedback of training, and without any."""
    if not isinstance(config, ScoreConfig) or not config.feedback_fields():
        return [{}]
    plain = config.feedback_fields(with_feedback=False)
    return [plain] if args.swap_attempts else [config.feedback_fields(), plain]


def both_attempts(
    task: Any, rows: list[dict], settings: Eval, accelerator: Any, on_progress: Callable[[int, int], None],
    majority: bool,
) -> tuple[dict, list]:  # fmt: skip
    """Measures a task of train.py: first answers and their corrections. Returns the numbers, and the trees."""
    from lib.rl.evaluation import pass_at_k, summarise
    from lib.rl.sequential import majority_votes, success_at_k

    config, samples = task.config, settings.samples_per_prompt
    answers, trees = answers_to(task, rows, settings, accelerator, on_progress)
    row = summarise(answers, settings.temperature)
    if samples > 1:
        row["pass_at_k"] = pass_at_k(answers, samples)
        row["success_at_k"] = success_at_k(answers, samples)
    if samples > 1 and majority:
        row["majority"] = majority_votes(answers, trees, samples, matchers.get(config.reward.match), accelerator)
    return row, trees


def swapped_attempts(
    task: Any, rows: list[dict], settings: Eval, accelerator: Any, on_progress: Callable[[int, int], None]
) -> tuple[dict, list]:
    """Measures attempt 2 of a task of train.py after other first attempts."""
    from lib.rl.swaps import swap_attempts

    sampling = task.sampling(settings.temperature, settings.samples_per_prompt)
    _, own = answers_to(task, rows, settings, accelerator, on_progress)
    return swap_attempts(task.policy, task.prompts, own, task.judge, sampling, settings.seed, accelerator), own


def single_answers(
    task: Any, rows: list[dict], settings: Eval, accelerator: Any, on_progress: Callable[[int, int], None]
) -> tuple[dict, list]:
    """Measures a task of rl_train_gspo_selfplay.py: the policy's answers alone; no opponent is asked."""
    from lib.rl.evaluation import summarise

    answers, trees = answers_to(task, rows, settings, accelerator, on_progress)
    return summarise(answers, settings.temperature, settings.samples_per_prompt), trees


def answers_to(task: Any, rows: list[dict], settings: Eval, accelerator: Any, on_progress: Callable) -> Any:
    """Samples all attempts at all rows; returns them as numbers, and this process's trees."""
    from lib.rl.evaluation import evaluate

    config = task.config
    sampling = task.sampling(settings.temperature, settings.samples_per_prompt, budgets=config.eval_budgets)
    return evaluate(
        task.policy, task.prompts, rows, task.judge, sampling, settings.seed, accelerator, on_progress,
        config.eval_attempts,
    )  # fmt: skip


def command_line() -> tuple[argparse.Namespace, Any, Path | None]:
    """Returns the options, the config with overrides, and the adapter's folder. Raises ConfigError for any mistake."""
    options = parser(__doc__, smoke=False, required=False)
    which = options.add_mutually_exclusive_group()
    which.add_argument("--adapter", type=Path, metavar="DIR", help="a saved adapter; without it, the base model")
    which.add_argument("--run", type=Path, metavar="DIR", help="a run directory: its newest adapter")
    options.add_argument(
        "--temperature", type=_temperature, nargs="+", metavar="T", help="default: 0 (greedy) and 1; with --url 1"
    )
    options.add_argument("--samples", type=_count, metavar="N", help="answers per question, where T > 0")
    options.add_argument(
        "--rows", type=int, nargs=2, metavar=("FIRST", "END"),
        help="these of the held-out rows, counted from 0, the end left out; default: those that training reports",
    )  # fmt: skip
    options.add_argument("--max-examples", type=_count, metavar="N", help="the first N of them")
    extra = options.add_mutually_exclusive_group()
    extra.add_argument("--majority", action="store_true", help="votes: more first attempts, or corrections?")
    extra.add_argument("--swap-attempts", action="store_true", help="attempt 2 after first attempts of others")
    extra.add_argument("--merge", help=argparse.SUPPRESS)
    options.add_argument("--output", type=Path, metavar="FILE", help="append one JSON object per temperature")
    options.add_argument("--texts", type=Path, metavar="DIR", help="a new folder with all texts, for report.py")
    options.add_argument("--compare", nargs="+", metavar="RUN", help="one or two runs, or files of --output, in pairs")
    options.add_argument("--url", metavar="URL", help="measure the model behind this OpenAI-compatible server")
    options.add_argument("--model", metavar="NAME", help="with --url: the model's name on the server")
    options.add_argument("--resume", action="store_true", help="with --url: resume; nothing is asked twice")
    options.add_argument("--check", type=Path, metavar="DIR", help="a folder of --url: judge it again, print its row")
    args = options.parse_intermixed_args()
    check_launcher()
    if args.compare:
        given = [f"--{name.replace('_', '-')}" for name, value in vars(args).items() if value and name != "compare"]
        others = [args.overrides[0] if name == "--overrides" else name for name in given] or args.compare[2:]
        if others:
            raise ConfigError(
                f"--compare: takes one or two runs or files, RUN or RUN@WHEN, and nothing else: leave out {others[0]}"
            )
        return args, None, None
    if args.merge:
        named = [str(word) for word in (args.run, args.adapter) if word]
        named += [f"--config {args.config}"] if args.config else []
        command = f"python export.py {' '.join([*named, *args.overrides])} --to merged --out {args.merge}"
        raise ConfigError(f"--merge: this is a script of its own: {command}")
    if args.run and not args.config:
        args.config = args.run / "config.yaml"
    if not args.config:
        options.error("the following arguments are required: --config, or --run, or --compare")
    settings = (args.url, args.model, args.resume, args.samples, args.temperature, args.rows, args.max_examples)
    if args.check and any(settings):
        raise ConfigError("--check: the folder says what was measured; give --config and overrides alone")
    if args.check:
        args.card = read_card(args.check)
        args.url, args.model = "http://127.0.0.1/v1", str(args.card["model"])  # which is not asked
    if args.url or args.model or args.resume:
        return args, served_config(args), None
    args.temperature = args.temperature or [0.0, 1.0]
    config = load((SelfPlayConfig, ScoreConfig), args.config, args.overrides)
    config = config.model_copy(update={"distill": None})  # no teacher is asked
    if (args.majority or args.swap_attempts) and isinstance(config, SelfPlayConfig):
        option = "--majority votes over" if args.majority else "--swap-attempts measures"
        raise ConfigError(
            f"{option} second attempts, and {args.config} is a config of single answers: leave it out, --samples alone "
            "gives pass@k"
        )
    samples = args.samples or config.eval.samples_per_prompt
    if args.majority and config.reward.by_task:
        raise ConfigError(
            "--majority votes by one equality, and with reward.by_task each task has its own: leave it out"
        )
    if args.majority and (samples < 2 or not any(args.temperature)):
        raise ConfigError(
            "--majority needs answers that can differ: give --samples 2 or more, and a --temperature above 0"
        )
    if args.adapter:
        args.adapter = local_adapter(args.adapter, "--adapter")
    if args.output:
        try:
            check_rows(args.output)
            args.output.parent.mkdir(parents=True, exist_ok=True)
            args.output.open("a").close()
        except OSError as error:
            raise ConfigError(f"--output {args.output}: cannot be written ({error.strerror}); give another") from error
    if args.texts and os.environ.get("RANK", "0") == "0":
        try:
            args.texts.mkdir(parents=True)
            (args.texts / "config.yaml").write_text(dump(config), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--texts {args.texts}: cannot be made ({error.strerror}); give a new folder") from error
    adapter = newest_adapter(args.run) if args.run else args.adapter
    if adapter and adapter.is_symlink():  # such as `best`: the table names the checkpoint it points to
        adapter = Path(os.path.relpath(adapter.resolve()))
    return args, config, adapter


def check_rows(path: Path) -> None:
    """Raises ConfigError if `--output` names a file of anything but whole rows of evaluations: it gets more of them."""
    for line in read_lines(path) if path.is_file() else ():
        if not line.ends:
            raise ConfigError(f"--output {path}: line {line.number} has no end, so nothing is added: end or remove it")
        if line.problem or (line.row is not None and not line.row.keys() >= ROW_KEYS):
            raise ConfigError(
                f"--output {path}: line {line.number} is no row of an evaluation, which has "
                f"{', '.join(sorted(ROW_KEYS))}, so nothing is appended: give a file of such rows, or a new one"
            )


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"got '{text}', expected a number of at least 0; put overrides first")
    return value


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got '{text}', expected a whole number of at least 1")
    return int(text)


def settings_for(defaults: Eval, args: argparse.Namespace, temperature: float) -> Eval:
    """Returns the config's evaluation with the options applied; greedy answers are all equal, so one is drawn."""
    samples = args.samples or defaults.samples_per_prompt
    changes = {"temperature": temperature, "samples_per_prompt": samples if temperature else 1}
    return defaults.model_copy(update=changes)


def chosen_rows(
    config: RLConfig, splits: Any, selection: list[dict], args: argparse.Namespace, fits: Callable[[dict], bool]
) -> tuple[list[dict], dict]:
    """Returns the rows to measure (those training reports, or `--rows`; none used to select) and which they are."""
    from lib.text.data import digest_of

    first, end = args.rows or config.eval.within(len(splits.test))
    if args.check and end > len(splits.test):
        raise ConfigError(
            f"{args.check}: was measured with {end} rows held out, and {args.config} holds out {len(splits.test)}: "
            "give the config, the data and the overrides of the measurement"
        )
    if not 0 <= first < end <= len(splits.test):
        raise ConfigError(
            f"--rows {first} {end}: expected two numbers, the first one lower, of at most {len(splits.test)}, the "
            "rows that are held out: change them, or raise dataset.test_split_size"
        )
    group_of = splits.group_of
    chosen_by = {group_of(row) for row in selection}
    within = [row for row in splits.test[first:end] if fits(row)]
    rows = [row for row in within if group_of(row) not in chosen_by]
    which = {"rows": [first, end], "rows_left_out": len(within) - len(rows)}
    limit = args.max_examples or (len(rows) if args.rows else config.eval.max_examples)
    return rows[:limit], which | {"questions": digest_of(rows[:limit])}


def described(config: RLConfig, adapter: Path | None, settings: Eval) -> dict:
    """Describes what was measured: the row's first fields, `when`, `stage`, `step` as in a run's evaluations.jsonl."""
    where, base = position(adapter), adapter is None
    stage, step = where or (0, math.inf)
    end = f"after_stage{stage}" if isinstance(config, ScoreConfig) else "after_training"
    label = end if step == math.inf else "step"
    return {
        "schema": 1,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "when": label if where else "pretrain" if base else "adapter",
        "stage": stage,
        "step": None if step == math.inf else int(step),
        "model": config.model.full_name,
        "adapter": None if base else str(adapter),
        "dataset": config.dataset.name or {name: part.name for name, part in config.dataset.mixture.items()},
        "reward": judged_by(config, "fn"),
        "format": judged_by(config, "format"),
        "extractor": judged_by(config, "answer_extractor"),
        "match": judged_by(config, "match"),
        "seed": settings.seed,
        "samples": settings.samples_per_prompt,
    }


def judged_by(config: RLConfig, key: str) -> Any:
    """Returns a key of the config's `reward`; where each task has its own, by task."""
    by_task = {task: getattr(reward, key) for task, reward in config.reward.by_task.items()}
    return by_task or getattr(config.reward, key)


def outputs(args: argparse.Namespace, config: RLConfig) -> list[Path]:
    """Returns the files that get the rows: `--output`, and for swapped attempts the run's swaps.jsonl, if it exists."""
    run = args.run or config.run_dir
    swaps = [run / "swaps.jsonl"] if args.swap_attempts and run.is_dir() else []
    return ([args.output] if args.output else []) + swaps


def keep_texts(folder: Path, row: dict, how: dict, trees: list, config: RLConfig, accelerator: Any) -> None:
    """Adds an evaluation and all its texts to a folder that report.py shows as a run."""
    from lib.rl.log_rows import brief, rows_of, texts_of
    from lib.run.distributed import collect

    target = config.dataset.target_field
    is_score = isinstance(config, ScoreConfig)
    texts = [
        text for tree in trees for text in (rows_of(tree, tree.prompt.row[target]) if is_score else texts_of(tree))
    ]
    moment = {"schema": 1, "when": row["when"], "stage": row["stage"] or 1, "step": row["step"] or 0}
    texts = [moment | {"temperature": row["temperature"]} | how | brief(text) for text in collect(texts, accelerator)]
    if accelerator.is_main_process:
        append(folder / "evaluations.jsonl", row | moment)
        for text in texts:
            append(folder / "generations.jsonl", text)


def append(path: Path, row: dict) -> None:
    """Appends one line of JSON; NaN, which JSON lacks, becomes null."""
    clean = json.loads(json.dumps(row), parse_constant=lambda _: None)
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(clean, ensure_ascii=False) + "\n")


SERVED = "served"  # the name of the server of --url in the config


def served_config(args: argparse.Namespace) -> Any:
    """Returns the config for `--url`: the server is one of its `servers`, and the run has a folder of its own.

    Raises ConfigError.
    """
    if not (args.url and args.model):
        option = next(name for name in ("url", "model", "resume") if getattr(args, name))
        raise ConfigError(
            f"--{option}: this is for models behind a server, expected with --url, the address up to /v1, and --model, "
            f"a name on that server: give both, or leave --{option} out"
        )
    names = ("adapter", "run", "majority", "swap_attempts", "output", "texts")
    if given := [f"--{name.replace('_', '-')}" for name in names if getattr(args, name)]:
        raise ConfigError(f"{given[0]}: this is for local models: leave it out, or --url")
    args.temperature = args.temperature or [1.0]
    if len(args.temperature) > 1:
        raise ConfigError("--temperature: with --url give one; each has a folder of its own, named by run_name=...")
    section = f"servers.{SERVED}"
    server = [f"{section}.base_url={json.dumps(args.url)}", f"{section}.model={json.dumps(args.model)}"]
    config = load((SelfPlayConfig, ScoreConfig), args.config, [*server, *args.overrides])
    if isinstance(config, SelfPlayConfig):
        raise ConfigError(
            f"--url measures second attempts, and {args.config} is a config of single answers: give one of train.py, "
            "which has prompts.self_correction"
        )
    is_named = any(text.startswith("run_name=") for text in args.overrides)
    name = config.run_name if is_named else f"{config.run_name}-{re.sub(r'[^A-Za-z0-9.]+', '-', args.model)}"
    return config.model_copy(update={"run_name": name, "distill": None})


def served_model(config: ScoreConfig, args: argparse.Namespace) -> int:
    """Measures both attempts of the model behind `--url`; returns the exit code."""
    from lib.core.console import Screen
    from lib.core.interrupts import Interrupts
    from lib.generators.openai import RemoteModel, address
    from lib.generators.remote import spent
    from lib.rl.served import ServedAttempts
    from lib.run.runlog import RunLog, encode, write_whole
    from pages.page import render_runs
    from pages.rollouts import rollouts_of

    screen, server, folder = Screen(), config.servers[SERVED], config.run_dir
    RemoteModel(server)  # raises ConfigError if the key is not in the environment
    if config.feedback_fields():
        screen.say("measured without feedback: prompts.feedback and prompts.stop do not apply")
        config = config.without_feedback()
    judge, rows, which = served_rows(config, args, screen.say)
    settings = settings_for(config.eval, args, args.temperature[0])
    kept = folder / "replies.jsonl"
    with RunLog(folder, args.resume, streams=()) as log, Interrupts() as interrupts, interrupts.leavable():
        log.write_config(dump(config), now=False)  # a server that refuses leaves no run behind
        ask = partial(ask_server, server, kept, interrupts, log, screen)
        attempts = ServedAttempts(config, server, judge, rows, settings, ask)
        for line in planned(attempts):
            screen.say(line)
        try:
            chats = attempts.run()
        except Left:
            screen.say(f"{kept}: {spent([kept], server)}; continue with --resume")
            return interrupts.exit_code
        about = {"when": "served", "model": server.model, "temperature": settings.temperature}
        row = described(config, None, settings) | about | which | attempts.card(chats)
        write_whole(folder / "transcripts.jsonl", map(encode, attempts.transcripts(chats)))
        write_whole(folder / CARD, [encode(row)])
    runs = [read_served(folder)]
    rollouts = rollouts_of(runs)
    page = overview_of([read_card(folder)], rollouts)
    screen.heading(f"{server.model} at {address(server)}")
    screen.say(page["lead"])
    show_sections(page["sections"])
    if row["failures"]:
        late = sum(getattr(chat.outcome, "kind", "") == "timeout" for chat in chats)
        screen.warn(
            f"{row['failures']} requests got no reply, or one that could not be judged: see `error` in "
            "transcripts.jsonl; --resume tries again"
            + f". {late} ran out of time, as long replies do first: raise {server.key}.deadline_s"
            * (late > 0)
        )
    screen.say(f"{folder}: {spent([kept], server)}")
    html = render_runs(runs, rollouts, page=page)
    write_whole(folder / "report.html", [html.encode("utf-8", "backslashreplace")])
    screen.say(f"report: {folder / 'report.html'}")
    return FINISHED


def served_rows(config: ScoreConfig, args: argparse.Namespace, say: Callable[[str], None]) -> tuple[Any, list, dict]:
    """Returns the judge, the rows to measure, and which they are."""
    from lib.rl.task import load_data
    from lib.text.data import parted

    splits, judge = load_data(config)
    for note in splits.notes:
        say(note)
    offered = splits.test[slice(*config.eval.within(len(splits.test)))]
    selection, _ = parted(offered, config.eval.selection_examples, splits.group_of)
    return judge, *chosen_rows(config, splits, selection, args, lambda row: True)


def checked_card(config: ScoreConfig, args: argparse.Namespace) -> int:
    """Builds and judges the chats of `--check` again; prints the row of SELF_CORRECTION.md.

    Trusts the replies and what the card says of the settings. Raises ConfigError where anything else differs.
    """
    from lib.core.console import Screen
    from lib.generators.protocol import Reply, ReplyError
    from lib.rl.served import ServedAttempts
    from lib.run.runlog import encode, read_jsonl

    card, texts = args.card, read_jsonl(args.check / "transcripts.jsonl")[0]
    if missing := {"rows", "samples", "attempts", "seed", "temperature", "questions"} - card.keys():
        raise ConfigError(f"{args.check / CARD}: it lacks {', '.join(sorted(missing))}: measure it again")
    for number, text in enumerate(texts, start=1):
        if not text.keys() >= {"question", "condition", "messages"} or not text.keys() & {"reply", "error"}:
            raise ConfigError(f"{args.check / 'transcripts.jsonl'}: line {number} is no chat: measure it again")
    args.rows, args.samples, args.max_examples = card["rows"], card["samples"], card["attempts"] // card["samples"]
    config = config.without_feedback()
    judge, rows, which = served_rows(config, args, Screen().say)
    defaults = config.eval.model_copy(update={"seed": card["seed"]})
    chats = iter(texts)

    def ask(what: str, requests: Sequence[Any]) -> list[Any]:
        """Returns the outcomes that the transcripts have, each of the chat that is asked for."""
        outcomes: list[Any] = []
        for request, text in zip(requests, chats, strict=False):
            asked = text["messages"][:-1] if "reply" in text else text["messages"]
            if asked != request.messages:
                raise ConfigError(
                    f"{args.check}: a chat of question {seen(str(text['question']), 9)}, "
                    f"{seen(str(text['condition']), 20)}, is not the one that "
                    f"{args.config} asks for: give the config and overrides of the measurement, or else the folder was "
                    "changed"
                )
            outcomes.append(Reply.from_dict(text["reply"]) if "reply" in text else ReplyError("missing", text["error"]))
        return outcomes + [ReplyError("missing", "no transcript")] * (len(requests) - len(outcomes))

    settings = settings_for(defaults, args, card["temperature"])
    attempts = ServedAttempts(config, config.servers[SERVED], judge, rows, settings, ask)
    replayed = attempts.run()
    mine = [{**json.loads(encode(row)), "error": None} for row in attempts.transcripts(replayed)]
    theirs = [{**row, "error": None} for row in texts]
    numbers = json.loads(encode(attempts.card(replayed) | which))
    where = differing(mine, theirs, "transcripts") or differing(numbers, {key: card.get(key) for key in numbers}, CARD)
    if where:
        raise ConfigError(f"{args.check}: {seen(where, 200)} differs from what its replies give: measure it again")
    row = card_row(card)
    table = Path(__file__).with_name("SELF_CORRECTION.md").read_text(encoding="utf-8").splitlines()
    of_it = [line for line in table if line.split(" | ")[:3] == row.split(" | ")[:3]]
    if of_it and row not in of_it:
        raise ConfigError(f"SELF_CORRECTION.md: got {of_it[0]}, expected {row}")
    print(CARD_HEADER, row, sep="\n")
    return FINISHED


def differing(mine: Any, theirs: Any, where: str) -> str:
    """Returns where two trees of JSON first differ, beyond rounding; "" if nowhere."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        pairs = [(mine.get(key), theirs.get(key), f"{where}.{key}") for key in mine | theirs]
        return next(filter(None, (differing(*pair) for pair in pairs)), "")
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        pairs = [(one, two, f"{where}[{index}]") for index, (one, two) in enumerate(zip(mine, theirs, strict=True))]
        return next(filter(None, (differing(*pair) for pair in pairs)), "")
    are_numbers = is_number(mine) and is_number(theirs)
    return "" if mine == theirs or (are_numbers and math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-12)) else where


CARD_HEADER = (
    "| model | questions | temperature | attempt 1 | i→c | c→i | finds its own errors | uses a verdict | breaks right "
    "answers | gives in to pressure | depends on attempt 1 |\n" + "|---" * 11 + "|"
)


def card_row(card: dict) -> str:
    """Formats a card as a row of SELF_CORRECTION.md, under CARD_HEADER."""
    look, keys = card["conditions"]["second_look"], ("acc_attempt1", "i_to_c", "c_to_i")
    rates = [in_brackets(look, key) if look["n"] else "–" for key in keys]
    answers = [
        f"{finding['answer']}, {in_brackets(finding, 'difference', '+')}" if finding["n"] else finding["answer"]
        for finding in card["findings"].values()
    ]
    asked = f"{card['prompts']} of {str(card['questions'])[:8]}, {card['samples']} each"
    cells = [card["model"], asked, f"{card['temperature']:g}", *rates, *answers]
    return f"| {' | '.join(' '.join(seen(str(cell), 300).replace('|', '/').split()) for cell in cells)} |"


def planned(attempts: Any) -> list[str]:
    """Returns lines on the most requests, tokens and cost of ServedAttempts."""
    from lib.generators.openai import described as description_of
    from lib.rl.served import CONDITIONS

    units, later, (first, second), server = len(attempts.rows), len(CONDITIONS), attempts.budgets, attempts.server
    most = units * (2 * first + (later - 1) * second)
    lines = [
        f"planned: at most {units * (1 + later):,} requests to {description_of(server)}",
        f"{units:,} times attempt 1, and {later} times attempt 2 after each; at most {most:,} tokens written",
    ]
    if server.prices[1]:
        lines.append(f"that would cost at most {server.cost(0, most):.2f}, prompts not counted")
    return lines


def ask_server(
    server: Any, kept: Path, interrupts: Any, log: Any, screen: Any, what: str, requests: Sequence[Any]
) -> list[Any]:
    """Returns the reply to each request, kept in a file, or the ReplyError that says why there is none.

    Raises ApiError if the server is gone or refuses all requests; Left after a signal, once the open requests ended.
    """
    from lib.core.console import ProgressPrinter
    from lib.core.interrupts import give_way
    from lib.generators.openai import RemoteModel, all_of
    from lib.generators.protocol import ReplyError
    from lib.generators.reply_cache import CachedGenerator, ReplyCache

    outcomes: list[Any] = [None] * len(requests)
    waiting, done, progress = iter(range(len(requests))), count(1), ProgressPrinter(screen.say, what)

    async def work(model: Any) -> None:
        for number in waiting:  # shared by all workers
            if interrupts.received:
                return
            try:
                outcomes[number] = await model.reply(requests[number])
                log.begin()
            except ReplyError as error:
                outcomes[number] = error
            progress(next(done), len(requests))

    async def all_requests() -> None:
        async with RemoteModel(server) as model:
            with contextlib.closing(ReplyCache(kept)) as replies:
                model.has_answered = len(replies) > 0
                await all_of(work(CachedGenerator(model, replies)) for _ in range(server.max_concurrency))

    asyncio.run(all_requests())
    give_way()
    return outcomes


if __name__ == "__main__":
    run_script(main)

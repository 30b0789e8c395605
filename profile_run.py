"""Before a run: how long prompts and answers are, what budgets cut off, what the extractor misses, what fits in memory.

    python profile_run.py --config configs/gsm8k.yaml
    python profile_run.py --config configs/gsm8k.yaml --n 50 --seed 7 --out profiles generation.temperature=0.7

Part 1 measures every first prompt of the training set. Part 2 samples two attempts at `--n` random training questions,
as training would: same model, temperature, budgets and end tokens. Recommendations are overrides to paste.

Written are profile_<run_name>.md, with all texts, and profile_<run_name>.json, next to the run's directory or in --out.
Exit codes: 0 finished, 2 config or data, 5 sandbox, 7 a reward that raises.
"""

if __name__ == "__main__":
    from lib.core.errors import end_at_ctrl_c

    end_at_ctrl_c()  # the imports below take a second

import argparse
import json
import math
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import reward_function  # noqa: F401  registers rewards and extractors, yours too
from lib.core.config import ScoreConfig, load, parser
from lib.core.errors import FINISHED, ConfigError, run_script
from lib.core.stats import percentiles
from lib.rewards.judge import prepare

MARKS = (0, 50, 95, 99, 100)
ENOUGH = 5  # rollouts before a budget is called too large
HEADROOM = 1.3
SMALLEST = 64  # tokens; no budget is recommended below it
BUDGETS = (
    "max_prompt_length_attempt1", "max_prompt_length_attempt2", "max_new_tokens_attempt1", "max_new_tokens_attempt2",
)  # fmt: skip


def main() -> int:
    """Measures prompts, samples rollouts, recommends budgets, writes both reports."""
    args, config = command_line()
    prepare(config)
    from lib.core.console import Screen  # torch is imported once the config is valid
    from lib.rl.task import load_task

    screen = Screen()
    task = load_task(config, screen.say)
    for note in task.notes:
        screen.say(note)
    prompts = prompt_lengths(task)
    screen.say(f"sampling 2 attempts at {min(args.n, len(task.train))} of {len(task.train)} training questions")
    rollouts = sample(task, args.n, args.seed)
    attempts = {str(number): measure(task, rollouts, number) for number in (1, 2)}
    report = {
        "schema": 1,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "run_name": config.run_name, "model": config.model.full_name, "dataset": config.dataset.name,
        "n": len(rollouts), "seed": args.seed, "temperature": config.generation.temperature,
        "prompts": prompts, "attempts": attempts, "notes": task.notes,
        "recommendations": recommendations(config, prompts, attempts, len(task.prompts.retry_ids), len(rollouts)),
        "memory": memory(task),
        "rollouts": [texts_of(rollout, config.dataset.target_field) for rollout in rollouts],
    }  # fmt: skip
    folder = args.out or Path(config.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"profile_{config.run_name}{suffix}" for suffix in (".md", ".json")]
    files[0].write_text(markdown(report), encoding="utf-8")
    files[1].write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    screen.say("\n".join(summary(report)))
    screen.say(f"written: {files[0]} and {files[1].name}")
    return FINISHED


def command_line() -> tuple[argparse.Namespace, ScoreConfig]:
    """Returns the options, and the config with its overrides. Raises ConfigError for any mistake."""
    options = parser(__doc__, smoke=False)
    options.add_argument("--n", type=int, default=10, metavar="N", help="questions to sample answers for (default: 10)")
    options.add_argument("--seed", type=int, default=42, help="which questions, and what is sampled (default: 42)")
    options.add_argument("--out", type=Path, metavar="DIR", help="where the reports go (default: next to the run)")
    args = options.parse_intermixed_args()
    if args.n < 1:
        raise ConfigError(f"--n: got {args.n}, expected at least 1")
    return args, load(ScoreConfig, args.config, args.overrides)


def prompt_lengths(task: Any) -> dict:
    """Measures the first prompts of all training rows, including those too long for the budget."""
    lengths = [len(task.prompt_ids(row)) for row in task.splits.train]
    limit = task.config.generation.max_prompt_length_attempt1
    return spread(lengths) | {"rows": len(lengths), "budget": limit, "too_long": sum(n > limit for n in lengths)}


def spread(values: Sequence[float]) -> dict:
    """Returns percentiles and mean, by name."""
    names = ("min", "p50", "p95", "p99", "max")
    return dict(zip(names, percentiles(values, MARKS).values(), strict=True)) | {"mean": fmean(values)}


def sample(task: Any, count: int, seed: int) -> list:
    """Samples one pair of attempts, without feedback, at each of `count` random training rows; returns the paths."""
    import torch

    from lib.rl import tree

    task = replace(task, prompts=task.prompts.without_feedback(), config=task.config.without_feedback())
    rows = random.Random(seed).sample(task.train, min(count, len(task.train)))
    generator = torch.Generator(task.policy.device).manual_seed(seed)
    sampling = task.sampling(task.config.generation.temperature)
    prompts = [task.prompts.prompt(row) for row in rows]
    with tempfile.TemporaryDirectory() as folder, task.engine.open(Path(folder, "engine")):
        trees = tree.sample(task.policy, task.prompts, prompts, task.judge, sampling, generator)
    return [path for grown in trees for path in tree.paths(grown)]


def measure(task: Any, rollouts: list, number: int) -> dict:
    """Measures what one of the two attempts costs and earns, over all rollouts."""
    pairs = [rollout[number - 1] for rollout in rollouts]
    prompts, answers = [group.prompt for group, _ in pairs], [answer for _, answer in pairs]
    completions = [answer.completion for answer in answers]
    scores = [answer.verdict for answer in answers]
    thinking = [think_tokens(task.tokenizer, completion.ids) for completion in completions]
    lengths = [len(completion.ids) for completion in completions]
    parts = {name for score in scores for name in score.components}
    return {
        "prompt": spread([len(prompt.ids) for prompt in prompts]),
        "prompt_budget": getattr(task.config.generation, f"max_prompt_length_attempt{number}"),
        "prompt_cut": sum(prompt.cut for prompt in prompts),
        "tokens": spread(lengths),
        "think_tokens": spread(thinking),
        "post_think_tokens": spread([n - think for n, think in zip(lengths, thinking, strict=True)]),
        "budget": getattr(task.config.generation, f"max_new_tokens_attempt{number}"),
        "budget_hits": sum(not completion.finished for completion in completions),
        "extraction_failures": sum(not score.answer.strip() for score in scores),
        "malformed": dict(Counter(score.malformed for score in scores if score.malformed)),
        "accuracy": fmean(score.match for score in scores),
        "reward": fmean(score.reward for score in scores),
        "components": {name: fmean(score.components.get(name, 0.0) for score in scores) for name in sorted(parts)},
    }


def think_tokens(tokenizer: Any, ids: list[int]) -> int:
    """Counts the tokens up to the end of the last think block: all if a block was never closed, 0 without one."""
    text = tokenizer.decode(ids)
    if "</think>" not in text:
        return len(ids) if "<think>" in text else 0
    closed = text.count("</think>")
    low, high = 1, len(ids)  # bisects for the shortest prefix that holds every closing tag
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if tokenizer.decode(ids[:middle]).count("</think>") == closed else (middle + 1, high)
    return low


def recommendations(config: ScoreConfig, prompts: dict, attempts: dict, retry_tokens: int, n: int) -> list[dict]:
    """Returns overrides and why: budgets that cut something, budgets less than half used; then warnings."""
    before = {"model.max_seq_length": config.model.max_seq_length}
    before |= {f"generation.{key}": getattr(config.generation, key) for key in BUDGETS}
    after, why = dict(before), {}

    def recommend(key: str, value: int, reason: str) -> None:
        if value != before[key]:
            after[key], why[key] = value, reason

    prompt1, prompt2, new1, new2 = (f"generation.{key}" for key in BUDGETS)
    longest = prompts["max"]
    if prompts["too_long"]:
        reason = f"{prompts['too_long']} of {prompts['rows']} training prompts are longer and left out"
        recommend(prompt1, int(longest), reason)
    elif prompts["rows"] >= ENOUGH and is_roomy(longest, before[prompt1]):
        recommend(prompt1, with_headroom(longest), f"the longest of {prompts['rows']} prompts has {longest:.0f} tokens")
    for key, attempt in ((new1, attempts["1"]), (new2, attempts["2"])):
        if attempt["budget_hits"]:
            recommend(key, 2 * before[key], f"{attempt['budget_hits']} of {n} answers hit the budget")
        elif n >= ENOUGH and is_roomy(attempt["tokens"]["max"], before[key]):
            reason = f"the longest of {n} answers has {attempt['tokens']['max']:.0f} tokens"
            recommend(key, with_headroom(attempt["tokens"]["max"]), reason)
    whole = after[prompt1] + after[new1] + retry_tokens  # a context of attempt 2 from which nothing is ever cut
    grown = whole > before[prompt2] and any(after[key] > before[key] for key in (prompt1, new1))
    if attempts["2"]["prompt_cut"] or grown or whole < before[prompt2] / 2:
        cut = f"{attempts['2']['prompt_cut']} of {n} contexts were cut; " if attempts["2"]["prompt_cut"] else ""
        recommend(prompt2, whole, f"{cut}holds a whole first prompt and attempt, and the instruction")
    need = max(after[prompt1] + after[new1], after[prompt2] + after[new2])
    if need > before["model.max_seq_length"]:
        recommend("model.max_seq_length", need, "prompt and answer have to fit together")
    advice = [{"override": f"{key}={after[key]}", "why": reason} for key, reason in why.items()]
    for number, attempt in attempts.items():
        if attempt["extraction_failures"]:
            why = ", ".join(f"{count} {problem}" for problem, count in attempt["malformed"].items())
            how = (
                f"reward.format '{config.reward.format}' and reward.answer_extractor '{config.reward.answer_extractor}'"
            )
            how = "format and answer_extractor of reward.by_task" if config.reward.by_task else how
            reason = f"attempt {number}: {how} found no answer in {attempt['extraction_failures']} of {n} "
            reason += f"texts{f' ({why})' if why else ''}: read them below, then fix prompt, format or extractor"
            advice.append({"override": None, "why": reason})
    return advice


def is_roomy(tokens: float, budget: int) -> bool:
    """True if less than half of the budget is used, and a smaller one would gain something."""
    return tokens < budget / 2 and with_headroom(tokens) < budget


def with_headroom(tokens: float) -> int:
    """Returns a budget for texts of which the longest so far has `tokens`."""
    return max(SMALLEST, math.ceil(HEADROOM * tokens))


def memory(task: Any) -> list[str]:
    """Returns the lines of the estimate that --dry-run shows."""
    from lib.model.loading import load_skeleton
    from lib.rl.estimate import memory_lines

    skeleton, _ = load_skeleton(task.config.model)
    lengths = [len(task.prompt_ids(row)) for row in task.train]
    return memory_lines(skeleton, task.config, task.prompts, lengths, len(task.test))


def texts_of(rollout: tuple, target_field: str) -> dict:
    """Converts the path of both attempts to plain values."""
    row = rollout[0][0].prompt.row
    shown = {"row": row, "target": row[target_field]}
    for number, (_, answer) in enumerate(rollout, start=1):
        verdict, completion = answer.verdict, answer.completion
        shown[f"attempt{number}"] = {
            "text": answer.text, "tokens": len(completion.ids), "finished": completion.finished,
            "answer": verdict.answer, "malformed": verdict.malformed, "match": verdict.match,
            "reward": verdict.components,
        }  # fmt: skip
    return shown


def summary(report: dict) -> list[str]:
    """Formats the tables, the recommendations and the memory, without the texts."""
    prompts, columns = report["prompts"], ["min", "p50", "p95", "p99", "max", "mean"]
    table = {f"first prompt, {prompts['rows']} rows": (prompts, prompts["budget"], prompts["too_long"])}
    for number, part in report["attempts"].items():
        if number == "2":
            table["attempt 2: context"] = (part["prompt"], part["prompt_budget"], part["prompt_cut"])
        table[f"attempt {number}: tokens"] = (part["tokens"], part["budget"], part["budget_hits"])
        table[f"attempt {number}: of them think"] = (part["think_tokens"], "", "")
        table[f"attempt {number}: after think"] = (part["post_think_tokens"], "", "")
    lines = [f"| tokens | {' | '.join(columns)} | budget | over it |", "|---" + "|---:" * (len(columns) + 2) + "|"]
    for label, (numbers, budget, over) in table.items():
        lines.append(f"| {label} | {' | '.join(f'{numbers[c]:.0f}' for c in columns)} | {budget} | {over} |")
    lines += [
        "",
        f"| n = {report['n']}, temperature {report['temperature']:g} | attempt 1 | attempt 2 |",
        "|---|---:|---:|",
    ]
    both = [report["attempts"]["1"], report["attempts"]["2"]]
    rows = {
        "answers that match": [f"{part['accuracy']:.3f}" for part in both],
        "malformed": [f"{sum(part['malformed'].values())}" for part in both],
        "no answer found": [f"{part['extraction_failures']}" for part in both],
        "reward": [f"{part['reward']:.3f}" for part in both],
    }
    for name in both[0]["components"]:
        rows[f"reward: {name}"] = [f"{part['components'][name]:.3f}" for part in both]
    lines += [f"| {label} | {' | '.join(cells)} |" for label, cells in rows.items()]
    lines += ["", "Recommended:", ""]
    for item in report["recommendations"]:
        lines.append(f"- `{item['override']}` ({item['why']})" if item["override"] else f"- WARNING: {item['why']}")
    if not report["recommendations"]:
        lines.append("- nothing: no budget is hit, none is far too large")
    return [*lines, "", "Memory, at least:", "", *(f"    {line}" for line in report["memory"])]


def markdown(report: dict) -> str:
    """Formats the whole report for people: the summary, then every text."""
    about = f"{report['model']} on {report['dataset']}; seed {report['seed']}, {report['time']}"
    lines = [f"# Profile of {report['run_name']}", "", about, "", *(f"- {note}" for note in report["notes"]), ""]
    lines += summary(report)
    for index, rollout in enumerate(report["rollouts"], start=1):
        lines += ["", f"## Rollout {index}: target `{rollout['target']}`"]
        for number in (1, 2):
            part = rollout[f"attempt{number}"]
            end = "" if part["finished"] else ", cut off"
            end += f", malformed ({part['malformed']})" if part["malformed"] else ""
            lines += [
                "",
                f"Attempt {number}: {part['tokens']} tokens{end}, answer `{part['answer']}`, {part['reward']}",
            ]
            lines += ["", *(f"    {line}" for line in part["text"].splitlines())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    run_script(main)

"""A whole training step: ours against TRL's GRPOTrainer, and rollouts alone against `generate`.

    python benchmarks/step.py                               # tiny and SmolLM2's sizes on a CPU; Qwen3-0.6B's on a GPU
    python benchmarks/step.py --model tiny --pairs 2        # a quick look
    python benchmarks/step.py --model tiny-gspo             # a step of GSPO, 32 prompts x 8; qwen3-0.6b-gspo on a GPU
    python benchmarks/step.py --model smollm2 --dtype bfloat16 --pairs 3     # a real model's sizes, on a CPU
    python benchmarks/step.py --model smollm2-gspo --without trl             # TRL takes minutes for such a step

Every contender lives in a process of its own (benchmarks/contenders.py) with the same weights, the same LoRA and as
many completions of the same lengths: spread evenly from 1 to `--length` tokens, or with `--equal` all of the longest.
They step in turns, so a ratio, theirs divided by ours, is the median over neighbours in time; its range stands next to
it. The first step of each is not counted. Memory is the peak of a step above what its process held when it was set up.

Where a case has no second attempts (`-gspo`), transformers' `generate` joins, for rollouts alone.
TRL has no second turn: its P x (K1 + K1 x K2) completions all follow a first prompt, which is less to read and to train
than what ours does. Both log metrics and an entropy, ours every text too. On a GPU `generate` and TRL decode 256
completions at a time, ours as many as memory allows. Weights are random, prompts all of one length; the tokens trained
are those generated.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lib.core.errors import let_threads_wait

let_threads_wait()  # the contenders inherit it

import torch
from rich.console import Console
from rich.table import Table
from transformers.utils import logging as chatter

from benchmarks.case import Case
from lib.core.config import FromScratch, SFTConfig, load, positive
from lib.model.scratch import build

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE_TOKENS = 3  # two turn markers and the end of the turn
CONTENDERS = ("ours", "generate", "trl")
CASES = {  # tiny: the batch of the demo
    "tiny": Case("tiny", prompts=32, attempts=2, revisions=4, length=24, prompt_tokens=13, trl_rows=80),
    "tiny-gspo": Case("tiny", prompts=32, attempts=8, revisions=0, length=24, prompt_tokens=13, trl_rows=64),
    "smollm2": Case("smollm2", prompts=8, attempts=2, revisions=4, length=32, prompt_tokens=64, micro_batch_tokens=2048,
                    trl_rows=20),
    "smollm2-gspo": Case("smollm2", prompts=32, attempts=4, revisions=0, length=128, prompt_tokens=48,
                         micro_batch_tokens=2048, trl_rows=16),
    "qwen3-0.6b-gspo": Case("qwen3-0.6b", prompts=32, attempts=8, revisions=0, length=512, prompt_tokens=64,
                            micro_batch_tokens=16_384, trl_rows=16, at_once=256),
    "qwen3-0.6b": Case("qwen3-0.6b", prompts=64, attempts=8, revisions=1, length=512, prompt_tokens=64,
                       micro_batch_tokens=16_384, trl_rows=16, at_once=256),
}  # fmt: skip
QWEN3 = {
    "model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151_936,
    "tie_word_embeddings": True, "initializer_range": 0.02,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000},
}  # fmt: skip
SMOLLM2 = {
    "model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 64, "vocab_size": 49_152,
    "tie_word_embeddings": True, "rope_parameters": {"rope_type": "default", "rope_theta": 100_000},
}  # fmt: skip


class Child:
    """A contender in its own process. It does nothing until it is asked for a step."""

    def __init__(self, name: str, folder: Path):
        self.name = name
        self._errors = folder / f"{name}.log"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, ROOT / "benchmarks" / "contenders.py", name, folder],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_) -> None:
        self._process.kill()  # it has nothing to save
        self._process.wait()

    def answer(self) -> dict:
        """Returns the next answer. Exits with the end of the child's log where it has died."""
        line = self._process.stdout.readline()
        if not line:
            tail = "\n".join(self._errors.read_text(errors="replace").splitlines()[-15:])
            raise SystemExit(f"{self.name} ended:\n{tail}")
        return json.loads(line)

    def step(self) -> dict:
        """Asks for one step, and returns what it took."""
        print("step", file=self._process.stdin, flush=True)
        return self.answer()


def architecture(model: str, columns: int) -> tuple[FromScratch, str]:
    """Returns the plan from which lib.model.scratch builds the model, and its chat template."""
    config = load(SFTConfig, ROOT / "configs" / "tiny_base.yaml").model
    plan = config.from_scratch
    fields = {"tiny": plan.architecture, "smollm2": SMOLLM2, "qwen3-0.6b": QWEN3}[model]
    fields = fields | {"max_position_embeddings": columns}
    return plan.model_copy(update={"architecture": fields}), config.chat_template


def fill_vocabulary(file: Path, size: int) -> None:
    """Gives every id below `size` a character in a saved tokenizer, so that whatever is sampled reads as text."""
    spec = json.loads(file.read_text(encoding="utf-8"))
    vocabulary = spec["model"]["vocab"]
    letters = (chr(code) for code in range(0x4E00, 0x110000) if not 0xD800 <= code < 0xE000)
    for index in range(len(vocabulary), size):
        vocabulary[next(letters)] = index
    file.write_text(json.dumps(spec), encoding="utf-8")


def prepare(case: Case, folder: Path) -> None:
    """Writes the case, the model and the data."""
    columns = case.prompt_tokens + 2 * case.length + 32
    model, tokenizer = build(*architecture(case.model, columns), seed=0)
    model.to(getattr(torch, case.dtype))
    tokenizer.save_pretrained(folder / "base")
    fill_vocabulary(folder / "base" / "tokenizer.json", model.config.vocab_size)
    model.save_pretrained(folder / "base")
    draw = random.Random(0)
    length = case.prompt_tokens - TEMPLATE_TOKENS
    rows = [
        {"question": "".join(draw.choices("0123456789+-*=", k=length)), "answer": "0"} for _ in range(8 * case.prompts)
    ]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    case.save(folder)


def compare(case: Case, pairs: int, console: Console, left_out: list[str]) -> None:
    """Runs the contenders on a case, without those left out, and prints its tables."""
    names = [name for name in CONTENDERS if name not in left_out and not (name == "generate" and case.revisions)]
    taken: dict[str, list[dict]] = {name: [] for name in names}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rematch-step-")))
        console.print(f"{case.model}: setting up ...")
        prepare(case, folder)
        children = {}
        for name in names:  # set up one after another
            children[name] = stack.enter_context(Child(name, folder))
            children[name].answer()
        for turn in range(pairs + 1):
            for name, child in children.items():
                taken[name].append(child.step())
            shown = ", ".join(f"{name} {steps[-1]['total']:.2f} s" for name, steps in taken.items())
            console.print(f"{case.model}, {f'pair {turn} of {pairs}' if turn else 'not counted'}: {shown}")
    taken = {name: steps[1:] for name, steps in taken.items()}
    for name, steps in taken.items():
        done = {(step["completions"], step["tokens"]) for step in steps}
        if done != {(case.completions, case.tokens)}:
            raise SystemExit(f"{name} did {done} completions and tokens, expected {case.completions}, {case.tokens}")
    console.print(step_table(case, taken))
    if "generate" in taken:
        console.print(rollout_table(case, taken))


def step_table(case: Case, taken: dict[str, list[dict]]) -> Table:
    """Returns a table of the medians of each contender's steps, and the ratios."""
    size = f"P = {case.prompts}, K1 = {case.attempts}, K2 = {case.revisions}, {case.completions} completions of "
    size += f"{case.length if case.equal else f'1 to {case.length}'} tokens, prompts of {case.prompt_tokens}"
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU threads: {torch.get_num_threads()}"
    table = table_of(
        f"{case.model}, {case.dtype}: {size}; {device}", "completions/s", "tokens/s generated", "tokens/s trained",
        "rollout s", "update s", "peak extra MiB", "step / ours", "range",
    )  # fmt: skip
    for name, steps in taken.items():
        if name == "generate":  # no step
            continue
        total, rollout, update = (middle(steps, key) for key in ("total", "rollout", "update"))
        table.add_row(
            name, f"{case.completions / total:.1f}", f"{case.tokens / rollout:.0f}", f"{case.tokens / update:.0f}",
            f"{rollout:.2f}", f"{update:.2f}", f"{max(step['peak'] for step in steps):.0f}",
            *ratio(steps, taken["ours"], "total"),
        )  # fmt: skip
    return table


def rollout_table(case: Case, taken: dict[str, list[dict]]) -> Table:
    """Returns a table of the rollouts, ours against `generate`, which does the same work."""
    table = table_of(f"{case.model}: rollouts alone", "seconds", "/ ours", "range")
    for name in ("ours", "generate"):
        table.add_row(name, f"{middle(taken[name], 'rollout'):.3f}", *ratio(taken[name], taken["ours"], "rollout"))
    return table


def table_of(title: str, *columns: str) -> Table:
    """Returns a table with a column of names and right-justified columns of numbers."""
    table = Table("", title=title)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def middle(steps: list[dict], key: str) -> float:
    """Returns the median of a measurement."""
    return statistics.median(step[key] for step in steps)


def ratio(theirs: list[dict], ours: list[dict], key: str) -> tuple[str, str]:
    """Returns median and range of theirs / ours, over neighbours in time."""
    ratios = [a[key] / b[key] for a, b in zip(theirs, ours, strict=True)]
    return f"{statistics.median(ratios):.2f}x", f"{min(ratios):.2f} to {max(ratios):.2f}"


def command_line() -> argparse.Namespace:
    """Returns the options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", action="append", choices=CASES, help="may be given several times "
                         "(default: all that a CPU can do, or qwen3-0.6b on a GPU)")  # fmt: skip
    options.add_argument("--pairs", type=positive, default=5, metavar="N", help="turns that count (default: 5)")
    options.add_argument("--prompts", type=positive, metavar="P", help="prompts per step")
    options.add_argument("--attempts", type=positive, metavar="K1", help="first attempts of each prompt, at least 2")
    options.add_argument("--revisions", type=positive, metavar="K2", help="second attempts of each first one")
    options.add_argument("--length", type=positive, metavar="L", help="tokens of the longest completion")
    options.add_argument("--prompt-tokens", type=positive, metavar="T", help="tokens of every prompt")
    options.add_argument("--dtype", choices=("float32", "bfloat16"), help="of the frozen weights "
                         "(default: float32, on a GPU bfloat16)")  # fmt: skip
    options.add_argument("--without", action="append", default=[], choices=("generate", "trl"), help="leave one out")
    options.add_argument("--equal", action="store_true", help="every completion has the full length")
    args = options.parse_args()
    if args.attempts == 1:
        options.error("--attempts: got 1, expected at least 2, or there is nothing to compare an attempt with")
    if args.prompt_tokens and args.prompt_tokens <= TEMPLATE_TOKENS:
        options.error(f"--prompt-tokens: got {args.prompt_tokens}, of which the chat template takes {TEMPLATE_TOKENS}")
    return args


def main() -> None:
    """Prints the tables of each model."""
    args = command_line()
    sizes = {name: getattr(args, name) for name in ("prompts", "attempts", "revisions", "length", "prompt_tokens")}
    sizes = {name: value for name, value in sizes.items() if value} | {"equal": args.equal}
    sizes["dtype"] = args.dtype or ("bfloat16" if torch.cuda.is_available() else "float32")
    usual = ["qwen3-0.6b", "qwen3-0.6b-gspo"] if torch.cuda.is_available() else ["tiny", "smollm2"]
    chatter.disable_progress_bar()
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 150)  # room for the tables in a file
    for name in args.model or usual:
        compare(dataclasses.replace(CASES[name], **sizes), args.pairs, console, args.without)


if __name__ == "__main__":
    main()

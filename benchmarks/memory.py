"""The memory estimate of --dry-run beside the peak of real runs: five geometries, random weights, float32 and bfloat16.

    python benchmarks/memory.py                                        # on a CPU, ten runs
    python benchmarks/memory.py --model tiny smollm2-135m --dtype float32

Each run is `train.py` for a step of stage I, evaluations and checkpoints included, in a process of its own, whose peak
of resident memory the kernel keeps (VmHWM). Random weights never end an answer, so each is as long as it may be, as the
estimate has it. Weights lie in bfloat16 on disk, as those of real models do.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch
import yaml

from lib.core.config import FromScratch, ScoreConfig, load
from lib.model.loading import load_skeleton
from lib.model.scratch import build
from lib.rl import score  # noqa: F401  what a run imports, imported before the processes of the runs begin
from lib.rl.estimate import GIB
from lib.rl.preview import needs_of_run
from lib.rl.task import fitting, load_data, prompts_of

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# architecture, overrides of the config; few enough layers for a busy laptop
MODELS = {
    "tiny": ({"model_type": "qwen3", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
              "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}, {}),
    "smollm2-135m": ({"model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
                      "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49152}, {}),
    "qwen2.5-0.5b, 4 layers": ({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
                                "num_hidden_layers": 4, "num_attention_heads": 14, "num_key_value_heads": 2,
                                "vocab_size": 151936}, {"train": {"micro_batch_tokens": 256}}),
    "pythia-70m": ({"model_type": "gpt_neox", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 6,
                    "num_attention_heads": 8, "vocab_size": 50304, "tie_word_embeddings": False},
                   {"model": {"adapters": {"lora": {"r": 16, "alpha": 16, "targets": "all-linear"}}}}),
    "qwen3-0.6b, 6 layers": ({"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
                              "num_hidden_layers": 6, "num_attention_heads": 16, "num_key_value_heads": 8,
                              "head_dim": 128, "vocab_size": 151936}, {"model": {"gradient_checkpointing": True}}),
}  # fmt: skip
CONFIG = {
    "model": {"name": "base", "backend": "plain", "max_seq_length": 512},
    "dataset": {"name": "rows.jsonl", "test_split_size": 4},
    "prompts": {"user": "{question}", "self_correction": "?"},
    "generation": {"max_prompt_length_attempt1": 64, "max_prompt_length_attempt2": 256, "max_new_tokens_attempt1": 12,
                   "max_new_tokens_attempt2": 12},
    "optimizer": {"learning_rate": 1e-4},
    "train": {"stage1_steps": 1, "stage2_steps": 0, "stage1_batch_size": 2, "stage2_batch_size": 2,
              "attempts_per_prompt": 2, "revisions_per_attempt": 2, "micro_batch_tokens": 8192},
    "eval": {"max_examples": 2, "selection_examples": 1},
}  # fmt: skip


def main() -> None:
    """Builds, estimates and runs every model in each dtype; prints a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", nargs="+", choices=MODELS, default=list(MODELS))
    options.add_argument("--dtype", nargs="+", choices=("float32", "bfloat16"), default=["float32", "bfloat16"])
    args = options.parse_args()
    print("| model | dtype | estimated, GiB | measured, GiB | ratio |\n|---|---|---|---|---|", flush=True)
    for name in args.model:
        with tempfile.TemporaryDirectory() as folder:
            in_a_child(prepare, Path(folder), name)
            for dtype in args.dtype:
                in_a_child(compare, Path(folder), name, dtype)


def prepare(folder: Path, name: str) -> None:
    """Writes the model and its rows."""
    scratch = FromScratch(
        architecture={"tie_word_embeddings": True, **MODELS[name][0]}, characters="0123456789+?",
        special_tokens=["<|user|>", "<|assistant|>"],
    )  # fmt: skip
    model, tokenizer = build(scratch, TEMPLATE, seed=0)
    model.to(torch.bfloat16).save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    rows = [
        json.dumps({"question": "+".join([str(number)] * 12), "answer": str(12 * number)}) for number in range(100, 140)
    ]
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n")


def compare(folder: Path, name: str, dtype: str) -> None:
    """Estimates and runs; prints the line of the table."""
    config = {key: {**value, **MODELS[name][1].get(key, {})} for key, value in CONFIG.items()}
    config["model"]["dtype"] = dtype
    config["run_name"] = dtype
    os.chdir(folder)
    Path("task.yaml").write_text(yaml.safe_dump(config))
    estimated = estimate(load(ScoreConfig, Path("task.yaml"))) / GIB
    sys.argv = ["train.py", "--config", "task.yaml"]
    with open("said.txt", "w") as said, contextlib.redirect_stdout(said):
        runpy.run_path(str(ROOT / "train.py"))["main"]()
    measured = high_water() / GIB
    print(f"| {name} | {dtype} | {estimated:.2f} | {measured:.2f} | {estimated / measured:.2f} |", flush=True)


def estimate(config: ScoreConfig) -> float:
    """Returns the estimated peak in bytes, as --dry-run has it."""
    skeleton, tokenizer = load_skeleton(config.model)
    prompts = prompts_of(config, tokenizer)
    rows, held_out, *_ = fitting(load_data(config)[0], prompts, config)
    return needs_of_run(skeleton, config, prompts, [len(prompts.prompt(row).ids) for row in rows], len(held_out)).peak


def high_water() -> int:
    """Returns the peak of this process's resident memory, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def in_a_child(function: Callable, *arguments: object) -> None:
    """Calls a function in a process of its own, which has all imports already."""
    child = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    child.start()
    child.join()
    if child.exitcode:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

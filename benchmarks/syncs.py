"""Moves an adapter again and again, and tells what a vLLM server, this process and the disk hold after so many syncs.

    python benchmarks/syncs.py --python .venv-vllm/bin/python                 # 200 syncs, by a server that it starts
    python benchmarks/syncs.py --python .venv-vllm/bin/python --syncs 1000

A tiny Qwen3 with LoRA on all linear layers. At each sync every weight moves, the new version is loaded and compared,
and three texts are sampled under it. Memory is what the processes hold for themselves (unique set size), the server's
all together; its log is counted with the disk. The first rows are a start: what matters is that later ones agree.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil
import torch
from rich.console import Console
from rich.table import Table

from lib.core.config import FromScratch, Lora, TrainedModel, TrainedSampling, Vllm
from lib.generators.engines import engine_of
from lib.generators.native import Decoding
from lib.generators.protocol import Turn
from lib.model.loading import attach_tuner, load_base
from lib.model.policy import Policy
from lib.model.scratch import build

ARCHITECTURE = {
    "model_type": "qwen3", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32,
}  # fmt: skip
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|im_end|>{% endfor %}"
PROMPT = [5, 6, 7, 8]
ROWS = 9  # of the table, about
MIB = 2**20


def main() -> None:
    """Syncs, and prints a row now and then."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--python", required=True, help="the Python of an environment that has vllm")
    options.add_argument("--syncs", type=int, default=200)
    args = options.parse_args()
    table = Table("syncs", "seconds each", "server MiB", "this process MiB", "versions", "disk KiB")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "run", "engine")
        folder.parent.mkdir()
        policy = tiny(Path(place, "base"))
        config = TrainedModel(name=str(Path(place, "base")), max_seq_length=64)
        sampling = TrainedSampling(engine="vllm", vllm=Vllm(python=args.python))
        engine = engine_of(config, sampling, policy, PROMPT, print)
        draw, decoding = torch.Generator().manual_seed(0), Decoding(1.0, frozenset({1}), 0, rows=3, columns=32, seed=3)
        with engine.open(folder):
            began, done = time.monotonic(), 0
            for sync in range(1, args.syncs + 1):
                with torch.no_grad():
                    for parameter in policy.trainable:
                        parameter += 0.01 * torch.randn(parameter.shape, generator=draw)
                engine.generate(policy, {(0,): Turn(PROMPT, 8, 3)}, decoding)
                if sync in (1, 10) or sync % max(1, args.syncs // (ROWS - 2)) == 0 or sync == args.syncs:
                    each = (time.monotonic() - began) / (sync - done)
                    table.add_row(str(sync), f"{each:.2f}", *held(folder))
                    began, done = time.monotonic(), sync
    Console(width=120).print(table)


def tiny(folder: Path) -> Policy:
    """Returns a policy on a model that is built in a folder."""
    scratch = FromScratch(architecture=ARCHITECTURE, characters="0123456789+=", special_tokens=["<|user|>"])
    for part in build(scratch, TEMPLATE, seed=0):
        part.save_pretrained(folder)
    config = TrainedModel(name=str(folder), backend="plain", dtype="float32", chat_template=TEMPLATE)
    base, _ = load_base(config, "plain")
    return Policy(attach_tuner(base, Lora(r=8, alpha=16), config, "plain", seed=0), 1.0)


def held(folder: Path) -> list[str]:
    """Returns memory of the server and of this process, and how many versions and bytes are on the disk."""
    here = psutil.Process()
    server = sum(child.memory_full_info().uss for child in here.children(recursive=True))
    files = [path for path in folder.parent.rglob("*") if path.is_file()]
    versions = sum(path.name == "adapter_config.json" for path in files)
    disk = sum(path.stat().st_size for path in files)
    return [f"{server / MIB:.0f}", f"{here.memory_full_info().uss / MIB:.0f}", str(versions), f"{disk / 1024:.0f}"]


if __name__ == "__main__":
    main()

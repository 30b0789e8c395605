"""The products of a decoding step on a CPU, by packed matrices and by plain ones, in turns: their times, and the ratio.

    python benchmarks/products.py                                   # SmolLM2-135M's matrices, some minutes
    python benchmarks/products.py --model qwen3-0.6b --dtype bfloat16 --rows 64 --turns 5

A turn multiplies by every matrix of the model once, those of the layers and the head, each with weights of its own so
that no cache holds them. (In bfloat16 decoding multiplies by the head twice; no turn does.) A ratio is the median over
turns, plain / packed. What packing takes stands beside it, in turns that it costs: a rollout packs once.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lib.core.errors import let_threads_wait

let_threads_wait()

import torch
from rich.console import Console
from rich.table import Table

from lib.model.products import Plain, can_pack, packed

# (out, in) of a layer's matrices, those with one input as one; layers; (vocabulary, hidden size) of the head
MODELS = {
    "smollm2": ([(960, 576), (576, 576), (3072, 576), (576, 1536)], 30, (49152, 576)),
    "qwen3-0.6b": ([(4096, 1024), (1024, 2048), (6144, 1024), (1024, 3072)], 28, (151936, 1024)),
}


def taken(call: Callable[[], object]) -> float:
    """Returns the seconds of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def compared(matrices: list[torch.Tensor], rows: int, turns: int) -> tuple[list[float], list[float]]:
    """Returns the seconds of each turn, by plain matrices and by packed ones."""
    inputs = {width: torch.randn(rows, width).to(matrices[0].dtype) for width in {each.shape[1] for each in matrices}}
    sides = [[Plain(each) for each in matrices], [packed(each) for each in matrices]]
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(turns + 1):
        for side, own in zip(sides, times, strict=True):
            spent = taken(lambda side=side: [w(inputs[each.shape[1]]) for w, each in zip(side, matrices, strict=True)])
            if turn:  # the first one does not count
                own.append(spent)
    return times


def main() -> None:
    """Runs the benchmark and prints its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=list(MODELS), default="smollm2")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 4, 16, 64, 128, 256], help="decoded at once")
    parser.add_argument("--turns", type=int, default=7, help="that count (default: 7)")
    args = parser.parse_args()
    console, (shapes, layers, head) = Console(), MODELS[args.model]
    for dtype in (getattr(torch, name) for name in args.dtype):
        if not can_pack(dtype):
            console.print(f"{dtype}: this machine packs no matrices of it, so decoding multiplies by plain ones")
            continue
        matrices = [torch.randn(shape).to(dtype) for shape in [*shapes * layers, head]]
        packing = min(taken(lambda matrices=matrices: [packed(each) for each in matrices]) for _ in range(3))
        table = Table(title=f"{args.model}, {dtype}; CPU threads: {torch.get_num_threads()}")
        for column in ("rows", "plain ms", "packed ms", "plain / packed", "range", "packing takes"):
            table.add_column(column, justify="right")
        for rows in args.rows:
            plain, ours = compared(matrices, rows, args.turns)
            ratios = [a / b for a, b in zip(plain, ours, strict=True)]
            quick = statistics.median(ours)
            table.add_row(
                str(rows), f"{1e3 * statistics.median(plain):.1f}", f"{1e3 * quick:.1f}",
                f"{statistics.median(ratios):.2f}x", f"{min(ratios):.2f} to {max(ratios):.2f}",
                f"{packing / quick:.1f} turns",
            )  # fmt: skip
        console.print(table)


if __name__ == "__main__":
    with torch.inference_mode():
        main()

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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lib.core.errors import let_threads_wait

let_threads_wait()

import torch
from rich.console import Console
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.floors import Sizes, quickest
from benchmarks.step import architecture, table_of
from benchmarks.usage import seconds
from lib.model.products import Packed, Plain, can_pack, packed

COLUMNS = ("plain ms", "packed ms", "plain / packed", "range", "packing takes")


def matrices_of(model: str, dtype: torch.dtype) -> list[torch.Tensor]:
    """Returns random matrices of the sizes of a model of benchmarks/step.py: those of its layers, and the head."""
    fields = architecture(model, 512)[0].architecture
    with torch.device("meta"):
        sizes = Sizes.of(AutoModelForCausalLM.from_config(AutoConfig.for_model(**fields)))
    return [torch.randn(shape).to(dtype) for shape in [*sizes.matrices, sizes.vocabulary]]


def turns(plain: list[Plain], ours: list[Packed | Plain], inputs: list[torch.Tensor], count: int) -> list[list[float]]:
    """Returns the seconds of `count` turns of each side, one more turn left out; a product for every input."""
    taken: list[list[float]] = [[], []]
    for _ in range(count + 1):
        for side, own in zip((plain, ours), taken, strict=True):
            start = seconds()
            for product, x in zip(side, inputs, strict=True):
                product(x)
            own.append(seconds() - start)
    return [own[1:] for own in taken]


def main() -> None:
    """Runs the benchmark and prints its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["smollm2", "qwen3-0.6b"], default="smollm2")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 4, 16, 64, 128, 256], help="decoded at once")
    parser.add_argument("--turns", type=int, default=7, help="that count (default: 7)")
    args = parser.parse_args()
    console = Console()
    for dtype in (getattr(torch, name) for name in args.dtype):
        if not can_pack(dtype):
            console.print(f"{dtype}: this machine packs no matrices of it, so decoding multiplies by plain ones")
            continue
        matrices = matrices_of(args.model, dtype)
        packing = quickest(lambda matrices=matrices: list(map(packed, matrices)), 2)
        plain, ours = list(map(Plain, matrices)), list(map(packed, matrices))
        table = table_of(f"{args.model}, {dtype}; CPU threads: {torch.get_num_threads()}", *COLUMNS)
        for rows in args.rows:
            inputs = {width: torch.randn(rows, width).to(dtype) for width in {each.shape[1] for each in matrices}}
            by_plain, by_ours = turns(plain, ours, [inputs[each.shape[1]] for each in matrices], args.turns)
            ratios = [a / b for a, b in zip(by_plain, by_ours, strict=True)]
            quick = statistics.median(by_ours)
            table.add_row(
                f"{rows} rows", f"{1e3 * statistics.median(by_plain):.1f}", f"{1e3 * quick:.1f}",
                f"{statistics.median(ratios):.2f}x", f"{min(ratios):.2f} to {max(ratios):.2f}",
                f"{packing / quick:.1f} turns",
            )  # fmt: skip
        console.print(table)


if __name__ == "__main__":
    with torch.inference_mode():
        main()

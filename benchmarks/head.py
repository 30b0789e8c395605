"""The log-prob head alone: time, peak memory and error of ours against three others, on the same numbers.

    python benchmarks/head.py                           # d = 1024, V = 151,936, 4096 tokens: some minutes on two cores
    python benchmarks/head.py --tokens 512 --pairs 1    # a quick look
    python benchmarks/head.py --dtype bfloat16          # with the error against float32 on the same inputs

Every contender computes the log-probs of N tokens from their hidden states under a frozen head, and the gradient of a
weighted sum of them. Times are taken in turns, and a ratio is the median over neighbours in time. Memory is that of a
process of its own: its peak above what it held before.
"""

import argparse
import gc
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lib.core.errors import let_threads_wait

let_threads_wait()

import torch
from rich.console import Console
from rich.table import Table
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.usage import forget_peak, held_mib, peak_mib, seconds
from engine import Head, token_scores

Scores = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def ours(hidden, weight, targets, advantages):
    """Returns the sum of advantages times log-probs, by engine/head.py."""
    return (advantages * token_scores(hidden, Head(weight), targets)[0]).sum()


def log_softmax(hidden, weight, targets, advantages):
    """Returns the same by the textbook: full logits, log_softmax, gather."""
    logp = (hidden @ weight.t()).float().log_softmax(-1).gather(1, targets[:, None])[:, 0]
    return (advantages * logp).sum()


def trl_selective(hidden, weight, targets, advantages):
    """Returns the same by TRL's selective_log_softmax on full logits, the default of its GRPOTrainer."""
    from trl.trainer.utils import selective_log_softmax

    logp = selective_log_softmax((hidden @ weight.t())[None], targets[None])[0]
    return (advantages * logp).sum()


def trl_chunked(hidden, weight, targets, advantages):
    """Returns the same by TRL's chunked head and chunk size: vocabulary blocks, recomputed in the backward pass."""
    from trl.trainer.grpo_trainer import _CHUNKED_LOGPROB_CHUNK_SIZE
    from trl.trainer.utils import _ChunkedLogProbFunction

    logp, _ = _ChunkedLogProbFunction.apply(hidden, weight, None, targets, 1.0, _CHUNKED_LOGPROB_CHUNK_SIZE, None, 1.0)
    return (advantages * logp).sum()


CONTENDERS: dict[str, Scores] = {
    "ours": ours, "log_softmax": log_softmax, "TRL selective": trl_selective, "TRL chunked": trl_chunked,
}  # fmt: skip


def inputs(args: argparse.Namespace) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns hidden states (N, d) with gradient, weight (V, d), targets (N,), advantages (N,), one per 64 tokens."""
    draw = torch.Generator().manual_seed(0)
    weight = torch.randn(args.vocabulary, args.width, generator=draw).mul_(0.02)
    hidden = torch.randn(args.tokens, args.width, generator=draw)
    targets = torch.randint(args.vocabulary, (args.tokens,), generator=draw)
    advantages = torch.randn(-(-args.tokens // 64), generator=draw).repeat_interleave(64)[: args.tokens]
    dtype, device = getattr(torch, args.dtype), args.device
    hidden, weight = (tensor.to(device, dtype) for tensor in (hidden, weight))
    return hidden.requires_grad_(), weight, targets.to(device), advantages.to(device)


def run(scores: Scores, parts: tuple) -> float:
    """Returns the seconds of one forward and backward pass."""
    parts[0].grad = None
    gc.collect(1)  # what a pass leaves is young; a full collection takes half a second next to transformers
    start = seconds()
    scores(*parts).backward()
    return seconds() - start


def extra_mib(scores: Scores, parts: tuple) -> float:
    """Returns the peak MiB of one pass beyond what is held before it, gradient included."""
    before = held_mib()
    forget_peak()
    run(scores, parts)
    return peak_mib() - before


def in_child(name: str, args: argparse.Namespace) -> float:
    """Returns `extra_mib` of a contender in a fresh process, imports and threads warmed up on a few tokens."""
    options = ["--tokens", args.tokens, "--width", args.width, "--vocabulary", args.vocabulary, "--dtype", args.dtype]
    command = [sys.executable, __file__, "--memory-of", name, *map(str, options)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


class Widest(TorchDispatchMode):
    """Records the most rows of any tensor with V columns, except the weight itself, that an operation returns."""

    def __init__(self, weight: torch.Tensor):
        super().__init__()
        self.rows, self._columns, self._weight = 0, weight.shape[0], weight.untyped_storage().data_ptr()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            is_wide = isinstance(tensor, torch.Tensor) and tensor.ndim > 1 and tensor.shape[-1] == self._columns
            if is_wide and tensor.untyped_storage().data_ptr() != self._weight:
                self.rows = max(self.rows, tensor[..., 0].numel())
        return result


def errors(name: str, scores: Scores, args: argparse.Namespace) -> tuple[float, float, int]:
    """Returns relative errors of value and gradient against float64 on the same 512 tokens, and the widest rows."""
    small = argparse.Namespace(**{**vars(args), "tokens": min(args.tokens, 512)})
    parts = inputs(small)
    states, weight = parts[0].detach().double().requires_grad_(), parts[1].double()
    logp = [(few @ weight.t()).log_softmax(-1).gather(1, ids[:, None])[:, 0]
            for few, ids in zip(states.split(64), parts[2].split(64), strict=True)]  # fmt: skip
    total = (parts[3] * torch.cat(logp)).sum()
    total.backward()
    with Widest(parts[1]) as widest:
        value = scores(*parts)
        value.backward()
    off = (parts[0].grad.double() - states.grad).norm() / states.grad.norm()
    return float(((value - total) / total).detach().abs()), float(off), widest.rows


def show(args: argparse.Namespace, console: Console) -> None:
    """Measures everything and prints the table."""
    table = Table(title=f"head: {args.tokens} tokens, d = {args.width}, V = {args.vocabulary:,}, {args.dtype}, "
                  f"{args.device}, {torch.get_num_threads()} threads, medians of {args.pairs}")  # fmt: skip
    for column in ("", "seconds", "x of log_softmax", "peak extra MiB", "value error", "gradient error", "widest rows"):
        table.add_column(column, justify="right" if column else "left")
    console.print("memory, each in a process of its own ...")
    memory = {name: in_child(name, args) for name in CONTENDERS}
    console.print("errors ...")
    wrong = {name: errors(name, scores, args) for name, scores in CONTENDERS.items()}
    parts, times = inputs(args), {name: [] for name in CONTENDERS}
    for turn in range(args.pairs):
        for name, scores in CONTENDERS.items():
            times[name].append(run(scores, parts))
        console.print(f"pair {turn + 1} of {args.pairs}: " + ", ".join(f"{n} {s[-1]:.1f} s" for n, s in times.items()))
    for name, taken in times.items():
        ratio = statistics.median(mine / base for mine, base in zip(taken, times["log_softmax"], strict=True))
        value, gradient, rows = wrong[name]
        table.add_row(name, f"{statistics.median(taken):.2f}", f"{ratio:.2f}", f"{memory[name]:.0f}", f"{value:.1e}",
                      f"{gradient:.1e}", str(rows))  # fmt: skip
    console.print(table)


def main() -> None:
    """Prints the table, or one child's number."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tokens", type=int, default=4096, metavar="N", help="a multiple of 64 (default: 4096)")
    options.add_argument("--width", type=int, default=1024, metavar="D", help="of a hidden state (default: 1024)")
    options.add_argument("--vocabulary", type=int, default=151_936, metavar="V", help="(default: 151936)")
    options.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    options.add_argument("--pairs", type=int, default=5, metavar="N", help="turns of all contenders (default: 5)")
    options.add_argument("--memory-of", help=argparse.SUPPRESS)
    args = options.parse_args()
    args.device = "cuda" if torch.cuda.is_available() else "cpu"
    if not args.memory_of:
        show(args, Console())
        return
    scores, parts = CONTENDERS[args.memory_of], inputs(args)
    few = (parts[0][:64].detach().requires_grad_(), parts[1][:1000], parts[2][:64] % 1000, parts[3][:64])
    run(scores, few)  # imports and threads; nothing as large as what is measured
    print(json.dumps(extra_mib(scores, parts)))


if __name__ == "__main__":
    main()

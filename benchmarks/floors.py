"""The least time that a step's work can take on this device, for benchmarks/step.py: what is moved and multiplied.

On a GPU by its measured bandwidth and throughput. On a CPU, where neither is one number, by timing the matrix products
alone: random matrices of the model's sizes, one for each layer so that no cache holds them, matrices with one input as
one, and as many rows as the step has. No adapter, no attention, no norm, no sampling. They are the products as PyTorch
makes them.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn.functional import linear

from benchmarks.case import Case
from benchmarks.usage import MIB, seconds
from lib.model.decoder import bytes_per_token
from lib.model.logits import backbone_of

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # of the products that are timed; between them by interpolation


@dataclass(frozen=True)
class Sizes:
    """The sizes that set what a step has to move and multiply."""

    layers: int  # parameters of the layers
    head: int  # parameters of the head, which is the embedding too
    cached: int  # bytes of a token's keys and values
    matrices: list[tuple[int, int]]  # (out, in) of the products of all layers
    vocabulary: tuple[int, int]  # (V, d)
    dtype: torch.dtype

    @classmethod
    def of(cls, model: nn.Module) -> "Sizes":
        """Reads them off a model of the Llama family."""
        head = model.get_output_embeddings().weight
        matrices = []
        for layer in backbone_of(model).layers:
            attention, mlp = layer.self_attn, layer.mlp
            for group in ((attention.q_proj, attention.k_proj, attention.v_proj), (attention.o_proj,),
                          (mlp.gate_proj, mlp.up_proj), (mlp.down_proj,)):  # fmt: skip
                matrices.append((sum(each.out_features for each in group), group[0].in_features))
        layers = sum(parameter.numel() for parameter in model.parameters()) - head.numel()
        return cls(layers, head.numel(), bytes_per_token(model), matrices, tuple(head.shape), head.dtype)


class Products:
    """The matrix products of a model on a CPU, to be timed."""

    def __init__(self, sizes: Sizes):
        new = partial(torch.randn, dtype=sizes.dtype)
        self._matrices = [new(shape) for shape in sizes.matrices]
        self._head = new(sizes.vocabulary)
        self._inputs = {width: new(max(ROWS), width) for width in {width for _, width in sizes.matrices}}

    def floors(self, case: Case) -> dict[str, float]:
        """Times the products once each, and returns the seconds of those of a rollout and of an update."""
        layers = np.array([self._seconds(rows, self._matrices) for rows in ROWS])
        head = np.array([self._seconds(rows, [self._head]) for rows in ROWS])
        rollout = 0.0
        for count in (case.firsts, case.seconds):
            lengths = np.array(case.lengths(count))
            for written in range(max(lengths, default=0)):
                alive = int((lengths > written).sum())
                beyond = max(1.0, alive / ROWS[-1])
                rollout += beyond * float(np.interp(alive, ROWS, layers) + np.interp(alive, ROWS, head))
        each, each_head = layers[-1] / ROWS[-1], head[-1] / ROWS[-1]  # seconds per token
        prompts = case.prompts * case.prompt_tokens
        # the policy's forward, the gradient by activations, and with a KL the reference's forward
        passes = 3 if case.revisions else 2
        passed = (case.firsts * case.prompt_tokens if case.revisions else prompts) + case.tokens
        update = passes * (each * passed + each_head * case.tokens)
        return {"rollout": rollout + each * prompts, "update": update, "total": rollout + each * prompts + update}

    def _seconds(self, rows: int, matrices: list[torch.Tensor]) -> float:
        pairs = [(self._inputs[matrix.shape[1]][:rows], matrix) for matrix in matrices]

        def multiply() -> None:
            for x, matrix in pairs:
                linear(x, matrix)  # its memory serves the next one, as in a forward; held together, they would fault

        return quickest(multiply, 3)


def on_gpu(case: Case, sizes: Sizes) -> dict[str, float]:
    """Returns the least seconds of a rollout and of an update, by bytes moved and operations done."""
    firsts, seconds_ = case.lengths(case.firsts), case.lengths(case.seconds)
    # a row reads its keys and values once for each token that it writes
    first = sum(case.prompt_tokens * length + length**2 / 2 for length in firsts)
    context = case.prompt_tokens + sum(firsts) / len(firsts)
    second = sum(context * length + length**2 / 2 for length in seconds_)
    # every step reads all weights; where lengths differ, second attempts are written while first ones still are
    steps = 2 * case.length if case.equal else case.length
    moved = steps * 2 * (sizes.layers + sizes.head) + sizes.cached * (first + second)
    # per parameter and token: 2 operations for the policy's forward, 2 for the reference's, 2 for the gradient with
    # respect to activations, none for frozen weights; the head sees scored tokens alone; no adapters, no attention
    passed = (case.firsts if case.revisions else case.prompts) * case.prompt_tokens + case.tokens
    flops = (6 if case.revisions else 4) * (sizes.layers * passed + sizes.head * case.tokens)
    return {"rollout": moved / copy_bandwidth(), "update": flops / matmul_throughput()}


def copy_bandwidth() -> float:
    """Measures the bytes per second that the GPU reads and writes in a large copy."""
    source = torch.zeros(1024 * MIB, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / quickest(lambda: target.copy_(source))


def matmul_throughput() -> float:
    """Measures the floating-point operations per second in a large bfloat16 product."""
    side = 8192
    a, b = torch.randn(2, side, side, dtype=torch.bfloat16, device="cuda")
    return 2 * side**3 / quickest(lambda: a @ b)


def quickest(call, repeats: int = 20) -> float:
    """Returns the seconds of the quickest call, the first one left out."""
    call()
    times = []
    for _ in range(repeats):
        start = seconds()
        call()
        times.append(seconds() - start)
    return min(times)

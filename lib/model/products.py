"""Products with frozen matrices on a CPU: packed once for the many products of a decoding, and in bfloat16 where quick.

A library multiplies by blocks that it copies together first, at every call. With the tens of rows of a decoding step
that copy costs as much as a third of the product, with fewer rows most of it. Here it is made once: by MKL in float32,
by oneDNN in bfloat16. benchmarks/products.py measures it.
"""

from functools import cache

import torch

ROWS = 512  # that a matrix is packed for: MKL gains nothing from more, and packed for 1,024 loses with two threads
TRIED = (1, 7, 60, 600), (200, 64)  # rows, and the shape of a matrix, with which packing is tried before it is trusted


@cache
def is_quick_on_cpu(dtype: torch.dtype) -> bool:
    """Tells whether products in `dtype` are quicker here than in float32: in bfloat16, where the CPU has it."""
    known = torch.cpu.get_capabilities()
    has_it = bool(known.get("avx512_bf16") or known.get("amx_bf16")) and torch.backends.mkldnn.is_available()
    return dtype == torch.bfloat16 and has_it


@cache
def can_pack(dtype: torch.dtype) -> bool:
    """Tells whether matrices of `dtype` can be packed here: by trying, since PyTorch's operators for it are its own."""
    if not (is_quick_on_cpu(dtype) or (dtype == torch.float32 and torch.backends.mkl.is_available())):
        return False
    rows, shape = TRIED
    draw = torch.Generator().manual_seed(0)
    weight = torch.randn(shape, generator=draw).to(dtype)
    try:
        by_copy = Packed(weight)
        for count in rows:
            x, plus = (torch.randn(count, width, generator=draw).to(dtype) for width in reversed(shape))
            torch.testing.assert_close(by_copy(x), x @ weight.t())
            torch.testing.assert_close(by_copy(x, plus), torch.addmm(plus, x, weight.t()))
    except (RuntimeError, AttributeError, AssertionError):  # another processor's build, other operators, other results
        return False
    return True


def packed(weight: torch.Tensor) -> "Packed | Plain":
    """Returns a frozen matrix for many products: packed where this machine can, else as it is."""
    return (Packed if weight.device.type == "cpu" and can_pack(weight.dtype) else Plain)(weight)


class Plain:
    """A matrix W (m, d) as it is."""

    def __init__(self, weight: torch.Tensor):
        self._weight = weight

    def __call__(self, x: torch.Tensor, plus: torch.Tensor | None = None) -> torch.Tensor:
        """Computes x W^T + plus (n, m) of x (n, d), rounded once."""
        return x @ self._weight.t() if plus is None else torch.addmm(plus, x, self._weight.t())


class Packed:
    """A packed copy of W (m, d): in float32 by MKL, in bfloat16 by oneDNN; both serve any number of rows."""

    def __init__(self, weight: torch.Tensor):
        self._is_wide = weight.dtype == torch.float32
        pack = torch.ops.mkl._mkl_reorder_linear_weight if self._is_wide else torch.ops.mkldnn._reorder_linear_weight
        self._packed = pack(weight, ROWS)
        self._shape = weight.new_empty(()).expand(weight.shape)  # MKL's operator asks W for nothing else

    def __call__(self, x: torch.Tensor, plus: torch.Tensor | None = None) -> torch.Tensor:
        """Computes what `Plain` does."""
        if self._is_wide:
            y = torch.ops.mkl._mkl_linear(x, self._packed, self._shape, None, len(x))
            return y if plus is None else y.add_(plus)
        if plus is None:
            return torch.ops.mkldnn._linear_pointwise(x, self._packed, None, "none", [], "")
        return torch.ops.mkldnn._linear_pointwise.binary(x, plus, self._packed, None, "add")

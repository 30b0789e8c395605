"""Products with frozen matrices on a CPU: packed once for the many products of a decoding, and in bfloat16 where quick.

To multiply, a library copies a matrix into blocks that fit its registers and caches, at every call. For the tens of
rows of a decoding step that takes up to a third of the product's time, for fewer rows more. Here the copy is made once:
by MKL in float32, by oneDNN in bfloat16. benchmarks/products.py measures it.
"""

import contextlib
import ctypes
import math
from collections.abc import Iterator
from functools import cache

import torch

ROWS = 512  # that a matrix is packed for: MKL gains nothing from more, and packed for 1,024 loses with two threads
LEAST = 2**18  # numbers of a matrix that is packed; smaller ones stay in a cache, and the copy costs more than it gains
TRIED = (1, 7, 60, 600), (200, 64)  # rows, and the shape of a matrix, with which packing is tried before it is trusted
MANY = 2**24  # numbers of copies that free memory is given back for
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # parameters of glibc's mallopt
LARGEST_THRESHOLD = 32 << 20  # bytes, where glibc's own adjustment of the second one ends


@cache
def is_quick_on_cpu(dtype: torch.dtype) -> bool:
    """Tells whether products in `dtype` are quicker here than in float32: in bfloat16, where the CPU has it."""
    known = torch.cpu.get_capabilities()
    has_it = bool(known.get("avx512_bf16") or known.get("amx_bf16")) and torch.backends.mkldnn.is_available()
    return dtype == torch.bfloat16 and has_it


@cache
def can_pack(dtype: torch.dtype) -> bool:
    """Tells whether matrices of `dtype` can be packed here, by trying: PyTorch's operators for it are private ones."""
    if not (is_quick_on_cpu(dtype) or (dtype == torch.float32 and torch.backends.mkl.is_available())):
        return False
    rows, shape = TRIED
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad(), torch.autocast("cpu", enabled=False), torch.device("cpu"):
        weight = torch.randn(shape, generator=draw).to(dtype)
        try:
            by_copy = Packed(weight)
            for count in rows:
                x, plus = (torch.randn(count, width, generator=draw).to(dtype) for width in reversed(shape))
                torch.testing.assert_close(by_copy(x), x @ weight.t())
                torch.testing.assert_close(by_copy(x, plus), torch.addmm(plus, x, weight.t()))
        except (RuntimeError, AttributeError, AssertionError):  # such as in a build for another processor
            return False
    return True


def packed(weight: torch.Tensor) -> "Packed | Plain":
    """Returns a frozen matrix for many products: a packed copy of a large one if this machine makes it, else itself."""
    is_packed = weight.numel() >= LEAST and weight.device.type == "cpu" and can_pack(weight.dtype)
    return (Packed if is_packed else Plain)(weight)


class Plain:
    """A matrix W (m, d) as it is."""

    def __init__(self, weight: torch.Tensor):
        self._weight = weight

    def __call__(self, x: torch.Tensor, plus: torch.Tensor | None = None) -> torch.Tensor:
        """Computes x W^T + plus, (n, m), of x (n, d), in bfloat16 rounded once."""
        return x @ self._weight.t() if plus is None else torch.addmm(plus, x, self._weight.t())


class Packed:
    """A packed copy of W (m, d), for any number of rows. It must stay where it lies: MKL's has addresses in it."""

    def __init__(self, weight: torch.Tensor):
        self._is_wide = weight.dtype == torch.float32
        pack = torch.ops.mkl._mkl_reorder_linear_weight if self._is_wide else torch.ops.mkldnn._reorder_linear_weight
        self._packed = pack(weight, ROWS)
        # of W itself MKL's operator takes the shape alone while the number of rows is right; NaN would tell
        self._shape = weight.new_full((), math.nan).expand(weight.shape)

    def __call__(self, x: torch.Tensor, plus: torch.Tensor | None = None) -> torch.Tensor:
        """Computes what `Plain` does."""
        if self._is_wide:
            y = torch.ops.mkl._mkl_linear(x, self._packed, self._shape, None, len(x))
            return y if plus is None else y.add_(plus)
        if plus is None:
            return torch.ops.mkldnn._linear_pointwise(x, self._packed, None, "none", [], "")
        return torch.ops.mkldnn._linear_pointwise.binary(x, plus, self._packed, None, "add")


@contextlib.contextmanager
def room_for_copies(numbers: int) -> Iterator[None]:
    """Gives free memory back to the system, and large tensors that are made inside mappings that end with them.

    MKL asks for two to nine times what it then writes. In a fresh mapping the rest costs nothing; on the heap, of pages
    that were used before, it would be held, and so would be what an update has left there, beside the copies. For few
    `numbers` in all nothing is done: the next step would pay more for its memory than they are worth.
    """
    libc = ctypes.CDLL(None)
    if numbers < MANY or not hasattr(libc, "mallopt"):  # which glibc has
        yield
        return
    libc.malloc_trim(0)
    libc.mallopt(MMAP_THRESHOLD, 1 << 20)
    try:
        yield
    finally:  # the values before cannot be asked for; in a process that has trained, glibc has come to these
        libc.mallopt(MMAP_THRESHOLD, LARGEST_THRESHOLD)
        libc.mallopt(TRIM_THRESHOLD, 2 * LARGEST_THRESHOLD)

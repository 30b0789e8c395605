"""Packed matrices, held against the products that they replace."""

import ctypes
import subprocess
import sys

import pytest
import torch

from lib.model import products
from lib.model.head import Head, token_scores
from lib.model.products import Packed, Plain, can_pack, packed

DTYPES = [torch.float32, torch.bfloat16]
SHAPES = [(1100, 1024), (300, 4096), (64, 32), (7, 5)]  # of W: wide, deep, small, and no multiple of anything


def numbers(*shape, dtype):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch):
    """Small matrices are packed too, in these tests."""
    monkeypatch.setattr(products, "LEAST", 0)


def packed_or_skip(weight):
    if not can_pack(weight.dtype):
        pytest.skip(f"this machine packs no matrix of {weight.dtype}")
    matrix = packed(weight)
    assert isinstance(matrix, Packed)
    return matrix


@pytest.fixture
def asked_anew():
    """What can be packed is asked of the machine again, before the test and after it."""
    can_pack.cache_clear()
    yield
    can_pack.cache_clear()


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "a part"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_packed_matrix_serves_any_number_of_rows(shape, dtype, layout):
    weight = numbers(*shape, dtype=dtype)
    matrix = packed_or_skip(weight)
    for count in (*range(34), 60, 61, 127, 128, 129, 300, 1025):
        x, plus = numbers(count, shape[1], dtype=dtype), numbers(count, shape[0], dtype=dtype)
        if layout == "transposed":
            x = x.t().contiguous().t()
        elif layout == "a part":
            x = torch.cat([x, x], dim=1)[:, : shape[1]]
        for found, exact in (
            (matrix(x), x.double() @ weight.double().t()),
            (matrix(x, plus), plus.double() + x.double() @ weight.double().t()),
        ):
            assert found.dtype == dtype and found.shape == exact.shape
            error = 0.0 if not count else (found.double() - exact).norm() / exact.norm()
            assert error < (2e-6 if dtype == torch.float32 else 4e-3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_packed_matrix_is_a_copy(dtype):
    """The decoder packs weights that it frees, and a training step changes others."""
    weight, x = numbers(64, 32, dtype=dtype), numbers(20, 32, dtype=dtype)
    matrix, expected = packed_or_skip(weight), x @ weight.t()
    weight.zero_()
    torch.testing.assert_close(matrix(x), expected)


def test_what_cannot_be_packed_is_multiplied_as_it_is():
    weight, x, plus = (numbers(*shape, dtype=torch.float64) for shape in ((6, 5), (3, 5), (3, 6)))
    matrix = packed(weight)
    assert isinstance(matrix, Plain)
    assert torch.equal(matrix(x), x @ weight.t())
    assert torch.equal(matrix(x, plus), torch.addmm(plus, x, weight.t()))


def test_a_small_matrix_stays_as_it_is(monkeypatch):
    monkeypatch.setattr(products, "LEAST", 64 * 32 + 1)
    assert isinstance(packed(numbers(64, 32, dtype=torch.float32)), Plain)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("broken", ["missing", "wrong"])
def test_an_operator_that_is_missing_or_wrong_is_not_used(broken, dtype, monkeypatch, asked_anew):
    """As in a build for another processor, or under another PyTorch."""
    packed_or_skip(numbers(64, 32, dtype=dtype))
    can_pack.cache_clear()
    if broken == "missing":
        monkeypatch.setattr(torch.ops, "mkl" if dtype == torch.float32 else "mkldnn", object())
    else:
        monkeypatch.setattr(Packed, "__call__", lambda _, x, plus=None: x.new_zeros(len(x), 200))
    assert not can_pack(dtype)


def test_bfloat16_is_packed_only_where_its_products_are_quick(monkeypatch, asked_anew):
    assert not can_pack(torch.float16) and not can_pack(torch.float64)
    monkeypatch.setattr(products, "is_quick_on_cpu", lambda dtype: False)
    assert not can_pack(torch.bfloat16)


def test_packing_is_tried_as_it_is_used_whatever_surrounds_it(asked_anew):
    before = [can_pack(dtype) for dtype in DTYPES]
    can_pack.cache_clear()
    with torch.autocast("cpu", torch.bfloat16), torch.device("meta"):
        assert [can_pack(dtype) for dtype in DTYPES] == before


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("softcap", [None, 5.0])
def test_a_head_for_decoding_computes_what_the_head_does(dtype, softcap):
    hidden, weight, bias = (numbers(*shape, dtype=dtype) for shape in ((40, 64), (500, 64), (500,)))
    packed_or_skip(weight)
    head = Head(weight, bias, scale=0.5, softcap=softcap, temperature=0.7)
    ready = head.for_decoding()
    assert isinstance(ready.decoding, Packed) and ready.first(100).decoding is None
    out = torch.full((40, 500), torch.nan)
    for found in (ready.logits(hidden), ready.logits(hidden, out), out):
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, head.logits(hidden), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ready.first(100).logits(hidden), head.logits(hidden)[:, :100], rtol=1e-4, atol=1e-4)
    targets = torch.arange(40)
    for found, expected in zip(
        token_scores(hidden, ready, targets, 2 * hidden), token_scores(hidden, head, targets, 2 * hidden), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_a_copy_lies_in_a_mapping_of_its_own():
    """MKL asks for nine times as much for one of this size, which a heap gives it of pages that were used before."""
    packed_or_skip(numbers(64, 32, dtype=torch.float32))
    code = """
import torch
from lib.model.products import packed, room_for_copies

for _ in range(2):  # what is freed makes glibc take such sizes from the heap
    torch.ones(7_000_000)
weight = torch.randn(576, 576)
with room_for_copies(2**24):
    matrix = packed(weight)
address = torch.ops.mkldnn.data_ptr(matrix._packed)
for line in open("/proc/self/maps"):
    begin, end = (int(part, 16) for part in line.split()[0].split("-"))
    if begin <= address < end:
        print(line)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout and "[heap]" not in found.stdout

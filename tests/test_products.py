import pytest
import torch

from lib.model import products
from lib.model.head import Head
from lib.model.products import Packed, Plain, can_pack, is_quick_on_cpu, packed

DTYPES = [torch.float32, torch.bfloat16]
SHAPES = [(1100, 1024), (300, 4096), (64, 32), (7, 5)]  # of W: wide, deep, small, and no multiple of anything


def numbers(*shape, dtype):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def packed_or_skip(weight):
    if not can_pack(weight.dtype):
        pytest.skip(f"this machine packs no matrix of {weight.dtype}")
    matrix = packed(weight)
    assert isinstance(matrix, Packed)
    return matrix


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_packed_matrix_serves_any_number_of_rows(shape, dtype):
    weight = numbers(*shape, dtype=dtype)
    matrix = packed_or_skip(weight)
    for count in (*range(34), 60, 61, 127, 128, 129, 300, 1025):
        x = numbers(shape[1], count, dtype=dtype).t()  # as a view, too
        plus = numbers(count, shape[0], dtype=dtype)
        for found, exact in (
            (matrix(x), x.double() @ weight.double().t()),
            (matrix(x, plus), plus.double() + x.double() @ weight.double().t()),
        ):
            assert found.dtype == dtype and found.shape == exact.shape
            error = 0.0 if not count else (found.double() - exact).norm() / exact.norm()
            assert error < (1e-6 if dtype == torch.float32 else 4e-3)


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


@pytest.mark.parametrize("broken", ["missing", "wrong"])
def test_an_operator_that_is_missing_or_wrong_is_not_used(broken, monkeypatch):
    """As in a build for another processor, or under another PyTorch."""
    can_pack.cache_clear()
    if broken == "missing":
        monkeypatch.setattr(products.Packed, "__init__", lambda _, weight: torch.ops.mkl.no_such_operator)
    else:
        monkeypatch.setattr(products.Packed, "__call__", lambda _, x, plus=None: x.new_zeros(len(x), 200))
    assert not any(map(can_pack, DTYPES))
    can_pack.cache_clear()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("softcap", [None, 5.0])
def test_logits_of_a_head_for_decoding_are_those_of_the_head(dtype, softcap):
    hidden, weight, bias = (numbers(*shape, dtype=dtype) for shape in ((40, 64), (500, 64), (500,)))
    head = Head(weight, bias, scale=0.5, softcap=softcap, temperature=0.7)
    ready = head.for_decoding()
    torch.testing.assert_close(ready.logits(hidden), head.logits(hidden), rtol=1e-4, atol=1e-4)
    assert ready.logits(hidden).dtype == torch.float32
    torch.testing.assert_close(ready.first(100).logits(hidden), head.logits(hidden)[:, :100], rtol=1e-4, atol=1e-4)


def test_bfloat16_is_packed_only_where_its_products_are_quick():
    assert can_pack(torch.bfloat16) <= is_quick_on_cpu(torch.bfloat16)
    assert not can_pack(torch.float16) and not can_pack(torch.float64)

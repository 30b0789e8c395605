import pytest
import torch
from helpers.naive import log_probs
from torch.utils._python_dispatch import TorchDispatchMode

from engine import Head, token_scores
from engine import head as module

V, D, N = 50, 8, 70

HEADS = {
    "plain": {},
    "bias": {"bias": True},
    "softcap": {"softcap": 2.0},
    "scale": {"scale": 0.25},
    "temperature": {"temperature": 0.6},
    "all": {"bias": True, "softcap": 2.0, "scale": 0.5, "temperature": 1.3},
}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_ELEMENTS", 16 * V)


def tensors(dtype=torch.float32):
    draw = torch.Generator().manual_seed(0)
    hidden, ref_hidden = (torch.randn(N, D, generator=draw).to(dtype) for _ in range(2))
    weight = torch.randn(V, D, generator=draw).to(dtype)
    bias = torch.randn(V, generator=draw).to(dtype)
    return hidden, ref_hidden, weight, bias, torch.randint(V, (N,), generator=draw)


def head_of(weight, bias, options):
    return Head(weight, **{**options, "bias": bias if options.get("bias") else None})


def dense(hidden, ref_hidden, head, targets):
    """The same three numbers by plain autograd over [N, V]."""

    p, q = log_probs(hidden, head), log_probs(ref_hidden, head)
    return p.gather(1, targets[:, None])[:, 0], -(p.exp() * p).sum(-1), (p.exp() * (p - q)).sum(-1)


def gradient(function, hidden):
    """Of a scalar that uses every log-prob and every KL with a weight of its own."""
    hidden = hidden.clone().requires_grad_()
    logp, entropy, kl = function(hidden)
    weights = torch.linspace(-1, 1, N)
    (weights * logp.exp() + weights.flip(0) * kl).sum().backward()
    return hidden.grad, logp, entropy, kl


@pytest.mark.parametrize("options", HEADS.values(), ids=HEADS)
def test_values_and_gradients_are_those_of_dense_autograd(options):
    hidden, ref_hidden, weight, bias, targets = tensors()
    head = head_of(weight, bias, options)
    ours = gradient(lambda h: token_scores(h, head, targets, ref_hidden), hidden)
    plain = gradient(lambda h: dense(h, ref_hidden, head, targets), hidden)
    for mine, theirs in zip(ours, plain, strict=True):
        assert (mine - theirs).norm() <= 1e-5 * theirs.norm()
        assert mine.dtype == torch.float32


def test_bfloat16_is_as_good_as_its_eight_bits():
    hidden, ref_hidden, weight, _, targets = tensors(torch.bfloat16)
    head = Head(weight)
    ours = gradient(lambda h: token_scores(h, head, targets, ref_hidden), hidden)
    plain = gradient(lambda h: dense(h, ref_hidden.float(), Head(weight.float()), targets), hidden.float())
    assert ours[0].dtype == torch.bfloat16
    for mine, theirs in zip(ours, plain, strict=True):
        assert (mine.float() - theirs).norm() <= 0.02 * theirs.norm()


@pytest.mark.parametrize("quick", [False, True], ids=["cast", "two passes"])
def test_logits_in_bfloat16_are_rounded_no_more_than_a_sum_in_float32(quick, monkeypatch):
    """Both ways; the second is taken where the CPU multiplies bfloat16, and is as exact where it does not."""
    monkeypatch.setattr(module, "is_quick_on_cpu", lambda dtype: quick)
    draw = torch.Generator().manual_seed(0)
    hidden, weight = (3 * torch.randn(n, 64, generator=draw).bfloat16() for n in (40, 500))
    expected = hidden.double() @ weight.double().t()
    error = (Head(weight).logits(hidden) - expected).abs().max() / expected.abs().max()
    assert error < 2**-15
    if quick:
        assert ((hidden @ weight.t()) - expected).abs().max() / expected.abs().max() > 2**-10


@pytest.mark.parametrize("options", HEADS.values(), ids=HEADS)
def test_bfloat16_is_within_a_hundredth_of_float64_autograd(options):
    """Of the same rounded numbers: what is lost is lost on the way, and in the gradient's own rounding."""
    hidden, ref_hidden, weight, bias, targets = tensors(torch.bfloat16)
    ours = gradient(lambda h: token_scores(h, head_of(weight, bias, options), targets, ref_hidden), hidden)
    wide = head_of(weight.double(), bias.double(), options)
    exact = gradient(lambda h: dense(h, ref_hidden.double(), wide, targets), hidden.double())
    for mine, theirs in zip(ours, exact, strict=True):
        assert theirs.dtype == torch.float64
        assert (mine.double() - theirs).norm() <= 1e-2 * theirs.norm()


def test_the_chunk_size_changes_nothing(monkeypatch):
    hidden, ref_hidden, weight, bias, targets = tensors()
    head = head_of(weight, bias, HEADS["all"])
    results = []
    for elements in (V, 32 * V, 1000 * V):
        monkeypatch.setattr(module, "CHUNK_ELEMENTS", elements)
        results.append((head.chunk, gradient(lambda h: token_scores(h, head, targets, ref_hidden), hidden)))
    assert [chunk for chunk, _ in results] == [16, 32, 1000]
    for _, result in results[1:]:
        for mine, first in zip(result, results[0][1], strict=True):
            torch.testing.assert_close(mine, first, rtol=1e-5, atol=1e-6)


class Rows(TorchDispatchMode):
    """The largest number of rows of any tensor of width V that an operation returns."""

    most = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, torch.Tensor) and tensor.dim() == 2 and tensor.shape[-1] == V:
                self.most = max(self.most, tensor.shape[0])
        return result


def test_no_tensor_of_width_V_has_more_rows_than_a_chunk():
    hidden, ref_hidden, weight, bias, targets = tensors()
    head = head_of(weight, bias, HEADS["all"])
    with Rows() as rows:
        gradient(lambda h: token_scores(h, head, targets, ref_hidden), hidden)
    assert rows.most == head.chunk == 16
    with Rows() as rows:
        gradient(lambda h: dense(h, ref_hidden, head, targets), hidden)
    assert rows.most == N  # so the counting counts


def test_equal_states_have_no_kl_and_no_gradient_of_it():
    hidden, _, weight, _, targets = tensors()
    hidden.requires_grad_()
    _, _, kl = token_scores(hidden, Head(weight), targets, hidden.detach())
    kl.sum().backward()
    assert (kl == 0).all()
    assert (hidden.grad == 0).all()


def test_without_a_reference_the_kl_is_zero_and_the_entropy_never_has_a_gradient():
    hidden, _, weight, _, targets = tensors()
    logp, entropy, kl = token_scores(hidden.requires_grad_(), Head(weight), targets)
    assert (kl == 0).all()
    assert logp.requires_grad
    assert not entropy.requires_grad
    logp.sum().backward()
    assert hidden.grad.norm() > 0


def test_no_token_at_all_is_no_error():
    hidden, ref_hidden, weight, _, targets = tensors()
    logp, _, kl = token_scores(hidden[:0].requires_grad_(), Head(weight), targets[:0], ref_hidden[:0])
    (logp.sum() + kl.sum()).backward()
    assert logp.shape == (0,)


def test_a_head_under_training_is_refused():
    hidden, _, weight, _, targets = tensors()
    with pytest.raises(ValueError, match="freeze it"):
        token_scores(hidden, Head(weight.requires_grad_()), targets)

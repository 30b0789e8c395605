"""The KL to a teacher: the gradient of the whole vocabulary for a local one, and what a tail leaves out."""

import math
from dataclasses import replace

import pytest
import torch
from helpers.naive import log_probs
from test_head import HEADS, D, N, V, head_of, tensors
from torch.utils._python_dispatch import TorchDispatchMode

from lib.model import head as module
from lib.model.divergence import LEAST, TopTeacher, WholeTeacher, teacher_kl
from lib.model.head import Head

WIDTH = 12  # of the teacher's hidden states, which are its own


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_ELEMENTS", 16 * V)


def teacher_of(rows=V, sharp=1.0):
    draw = torch.Generator().manual_seed(1)
    hidden, weight = torch.randn(N, WIDTH, generator=draw), sharp * torch.randn(rows, WIDTH, generator=draw)
    return WholeTeacher(hidden, Head(weight, scale=0.5, temperature=0.8))


def kl_of(log_p, log_q):
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def one_of(log_p, log_q, is_forward):
    return kl_of(log_q, log_p) if is_forward else kl_of(log_p, log_q)


def slope(function, hidden):
    """Value, and the gradient of a sum with a weight of its own for each token."""
    hidden = hidden.clone().requires_grad_()
    kl = function(hidden)
    (torch.linspace(-1, 2, len(hidden)) * kl).sum().backward()
    return kl.detach(), hidden.grad


def near(actual, expected, most=1e-5):
    assert (actual - expected).norm() <= most * expected.norm()


@pytest.mark.parametrize("is_forward", [False, True])
@pytest.mark.parametrize("options", HEADS.values(), ids=HEADS)
def test_the_gradient_is_that_of_the_whole_vocabulary(options, is_forward):
    hidden, _, weight, bias, _ = tensors()
    head, teacher = head_of(weight, bias, options), replace(teacher_of(), is_forward=is_forward)
    log_q = log_probs(teacher.hidden, teacher.head)
    ours = slope(lambda h: teacher_kl(h, head, teacher), hidden)
    plain = slope(lambda h: one_of(log_probs(h, head), log_q, is_forward), hidden)
    for mine, theirs in zip(ours, plain, strict=True):
        near(mine, theirs)


def test_rows_that_only_one_of_two_heads_has_are_left_out():
    hidden, _, weight, bias, _ = tensors()
    for rows in (V - 7, V + 7):
        size, teacher = min(rows, V), teacher_of(rows)
        log_q = (teacher.hidden @ teacher.head.weight[:size].T * 0.5 / 0.8).log_softmax(-1)
        log_p = (hidden @ weight[:size].T + bias[:size]).log_softmax(-1)
        near(teacher_kl(hidden, Head(weight, bias), teacher), kl_of(log_p, log_q))


def top_of(log_q, k):
    return TopTeacher(*reversed(log_q.topk(k)))


@pytest.mark.parametrize("sharp", [0.3, 1.0, 3.0])
def test_what_the_tail_leaves_out_is_bounded_and_shrinks(sharp):
    """`lost` is what the docstring of lib/model/divergence.py says, token by token, and so is its bound."""
    hidden, _, weight, _, _ = tensors()
    head, teacher = Head(sharp * weight), teacher_of(sharp=sharp)
    log_p, log_q = log_probs(hidden, head), log_probs(teacher.hidden, teacher.head)
    exact, losses = kl_of(log_p, log_q), []
    for k in (1, 5, 20, V - 1, V):
        top = top_of(log_q, k)
        in_tail = torch.ones_like(log_p, dtype=torch.bool).scatter(1, top.ids, False)
        p, q = (torch.where(in_tail, each.exp(), 0.0).sum(-1) for each in (log_p, log_q))
        lost = exact - teacher_kl(hidden, head, top)
        worst = torch.where(in_tail, log_p - log_q, -torch.inf).amax(-1)
        bound = torch.where(p > 0, p * (worst - (p / q.clamp(min=LEAST)).log()), 0.0)
        rounding = 1e-5 + 3e-7 * (p / q.clamp(min=LEAST))  # 1 minus the others
        assert (lost >= -rounding).all() and (lost <= bound + rounding).all()
        losses.append(float(lost.mean()))
    assert losses == sorted(losses, reverse=True) and abs(losses[-1]) < 1e-5, losses


def test_near_the_teacher_twenty_tokens_tell_nearly_all():
    """A policy within .1 of its teacher's states: the tail loses .39 of its KL with one token, .001 with 20."""
    teacher = teacher_of(sharp=3.0)
    hidden = teacher.hidden + 0.1 * torch.randn(N, WIDTH, generator=torch.Generator().manual_seed(2))
    log_q = log_probs(teacher.hidden, teacher.head)
    exact = kl_of(log_probs(hidden, teacher.head), log_q).mean()
    shares = [1 - float(teacher_kl(hidden, teacher.head, top_of(log_q, k)).mean() / exact) for k in (1, 5, 20)]
    assert 0.3 < shares[0] < 0.45 and 0.03 < shares[1] < 0.06 and 0 < shares[2] < 0.001, shares


@pytest.mark.parametrize("is_forward", [False, True])
def test_the_gradient_with_a_tail_is_that_of_its_buckets(is_forward):
    hidden, _, weight, bias, _ = tensors()
    head, teacher, k = Head(weight, bias), teacher_of(), 6
    log_q = log_probs(teacher.hidden, teacher.head)
    top = replace(top_of(log_q, k), is_forward=is_forward)

    def buckets(h):
        p, q = log_probs(h, head).exp().gather(1, top.ids), top.logp.exp()
        p, q = (torch.cat([each, 1 - each.sum(-1, keepdim=True)], -1) for each in (p, q))
        return one_of(p.log(), q.log(), is_forward)

    for mine, theirs in zip(slope(lambda h: teacher_kl(h, head, top), hidden), slope(buckets, hidden), strict=True):
        near(mine, theirs)


def test_what_is_hardly_ever_written_is_taught_by_the_forward_kl_alone():
    """The teacher is sure of a token that the policy writes once in a million places."""
    logits = torch.tensor([[0.0, -math.log(1e6)]], requires_grad=True)  # of a head that is the identity
    teacher = WholeTeacher(torch.tensor([[0.0, 10.0]]), Head(torch.eye(2)))
    found = {}
    for is_forward in (False, True):
        (found[is_forward],) = torch.autograd.grad(
            teacher_kl(logits, Head(torch.eye(2)), replace(teacher, is_forward=is_forward)).sum(), logits
        )
    assert found[True][0, 1] < -0.99 and -1e-4 < found[False][0, 1] < 0


@pytest.mark.parametrize("sure", [10.0, 20.0, 40.0])
def test_a_tail_that_the_policy_has_left_is_taught_by_the_forward_kl(sure):
    """Down to e^-40 of the policy's probability: the KL is that of the two buckets, and the gradient sums to 0."""
    logits = torch.tensor([[sure, 0.0, 0.0, 0.0]], requires_grad=True)  # of a head that is the identity
    teacher = TopTeacher(torch.tensor([[0]]), torch.tensor([[0.7]]).log(), is_forward=True)
    kl = teacher_kl(logits, Head(torch.eye(4)), teacher)
    (slopes,) = torch.autograd.grad(kl.sum(), logits)
    log_p = logits.detach()[0].double().log_softmax(0)
    expected = 0.7 * (math.log(0.7) - log_p[0]) + 0.3 * (math.log(0.3) - log_p[1:].logsumexp(0))
    near(kl[0], expected)
    near(slopes[0], torch.tensor([0.3, -0.1, -0.1, -0.1]), most=1e-3)


def test_missing_and_unknown_tokens_belong_to_the_tail():
    hidden, _, weight, _, _ = tensors()
    ids, logp = torch.tensor([[3, 7, -1, V + 2]]), torch.tensor([[-0.5, -2.0, 0.0, -3.0]])
    log_p = (hidden[:1] @ weight.T).log_softmax(-1)[0]
    p, q = log_p[[3, 7]].exp(), logp[0, :2].exp()
    expected = (p * (p / q).log()).sum() + (1 - p.sum()) * ((1 - p.sum()) / (1 - q.sum())).log()
    near(teacher_kl(hidden[:1], Head(weight), TopTeacher(ids, logp))[0], expected)


def test_no_tensor_of_all_tokens_and_the_whole_vocabulary():
    hidden, _, weight, _, _ = tensors()
    largest = 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            for each in out if isinstance(out, tuple | list) else [out]:
                if isinstance(each, torch.Tensor):
                    largest = max(largest, each.numel())
            return out

    hidden = hidden.requires_grad_()
    teachers = (teacher_of(), top_of(torch.randn(N, V).log_softmax(-1), 4))
    for teacher in (*teachers, *(replace(each, is_forward=True) for each in teachers)):
        with Watch():
            teacher_kl(hidden, Head(weight), teacher).sum().backward()
    assert largest == 16 * V < N * V, D

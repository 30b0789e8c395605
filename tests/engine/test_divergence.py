"""The KL to a teacher: the gradient of the whole vocabulary for both directions."""

import math
from dataclasses import replace

import pytest
import torch
from helpers.naive import log_probs
from test_head import HEADS, D, N, V, head_of, tensors
from torch.utils._python_dispatch import TorchDispatchMode

from engine import Head, TeacherStates, teacher_kl
from engine import head as module

WIDTH = 12  # of the teacher's hidden states, which are its own


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_ELEMENTS", 16 * V)


def teacher_of(rows=V, sharp=1.0):
    draw = torch.Generator().manual_seed(1)
    hidden, weight = torch.randn(N, WIDTH, generator=draw), sharp * torch.randn(rows, WIDTH, generator=draw)
    return TeacherStates(hidden, Head(weight, scale=0.5, temperature=0.8))


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


def test_what_is_hardly_ever_written_is_taught_by_the_forward_kl_alone():
    """The teacher is sure of a token that the policy writes once in a million places."""
    logits = torch.tensor([[0.0, -math.log(1e6)]], requires_grad=True)  # of a head that is the identity
    teacher = TeacherStates(torch.tensor([[0.0, 10.0]]), Head(torch.eye(2)))
    found = {}
    for is_forward in (False, True):
        (found[is_forward],) = torch.autograd.grad(
            teacher_kl(logits, Head(torch.eye(2)), replace(teacher, is_forward=is_forward)).sum(), logits
        )
    assert found[True][0, 1] < -0.99 and -1e-4 < found[False][0, 1] < 0


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
    for teacher in (teacher_of(), replace(teacher_of(), is_forward=True)):
        with Watch():
            teacher_kl(hidden, Head(weight), teacher).sum().backward()
    assert largest == 16 * V < N * V, D

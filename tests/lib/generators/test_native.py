"""What sampling in this process has of a run: its clock, its signals, its errors."""

import math
import signal

import pytest
import torch

from engine import Decoding, Turn
from lib.core.clock import Clock
from lib.core.errors import Left, NumericError
from lib.core.interrupts import Interrupts
from lib.generators.native import generate

DECODING = Decoding(temperature=1.0, stop_ids=frozenset([-1]), pad_id=0, rows=4, columns=9)
TURNS = {(0,): Turn([5], 8)}


def test_its_time_is_counted(make_policy, monkeypatch):
    monkeypatch.setattr("lib.core.clock._running", [])
    clock = Clock()
    clock.start()
    generate(make_policy(), TURNS, DECODING)
    seconds = clock.lap()
    assert seconds["seconds_generate"] > 0 and seconds["seconds_sync"] > 0


def test_a_signal_ends_it_where_it_may_be_left(make_policy):
    policy, seen = make_policy(), []

    def follow(path, completion):
        seen.append(path)
        interrupts.note(signal.SIGTERM)

    with Interrupts() as interrupts, interrupts.leavable(), pytest.raises(Left):
        generate(policy, {(0,): Turn([5], 2), (1,): Turn([5], 8)}, DECODING, follow)
    assert seen == [(0, 0)]


def test_numbers_that_are_not_finite_end_the_run_with_a_remedy(make_policy):
    policy = make_policy()
    with torch.no_grad():
        policy.language_model.get_input_embeddings().weight[5] = math.nan
    with pytest.raises(NumericError, match=r"the logits are not finite: lower optimizer\.learning_rate, then --resume"):
        generate(policy, TURNS, DECODING)

import time

import pytest

from lib.core import clock as module
from lib.core.clock import PHASES, Clock, phase


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(module, "_running", [])  # no clock of these tests counts in others
    started = Clock()
    started.start()
    return started


def test_phases_nest_exclusively_and_sum_to_the_lap(clock):
    before = time.perf_counter()
    clock.start()
    begin = time.perf_counter()
    time.sleep(0.01)
    with phase("generate"):
        time.sleep(0.02)
        with phase("sync"):
            time.sleep(0.04)
            with phase("reward"):
                time.sleep(0.01)
        time.sleep(0.02)
    with phase("generate"):
        time.sleep(0.01)
    end = time.perf_counter()
    seconds = clock.lap()
    after = time.perf_counter()
    assert list(seconds) == [f"seconds_{name}" for name in PHASES]
    least = {"generate": 0.05, "sync": 0.04, "reward": 0.01, "other": 0.01}
    for name in PHASES:
        assert seconds[f"seconds_{name}"] >= least.get(name, 0.0)
        assert name in least or seconds[f"seconds_{name}"] == 0
    assert end - begin <= sum(seconds.values()) <= after - before


def test_a_phase_ends_on_an_exception_and_a_lap_starts_anew(clock):
    with pytest.raises(KeyboardInterrupt), phase("optimizer"):
        raise KeyboardInterrupt
    clock.lap()
    time.sleep(0.01)
    seconds = clock.lap()
    assert seconds["seconds_other"] >= 0.01
    assert sum(seconds.values()) == seconds["seconds_other"]


def test_a_lap_within_a_phase_shares_it_out(clock):
    with phase("generate"):
        time.sleep(0.01)
        first = clock.lap()
        time.sleep(0.01)
    second = clock.lap()
    assert first["seconds_generate"] >= 0.01 <= second["seconds_generate"]


def test_the_clock_that_started_last_counts(clock):
    other = Clock()
    other.start()
    with phase("reward"):
        time.sleep(0.01)
    assert other.lap()["seconds_reward"] >= 0.01
    assert clock.lap()["seconds_reward"] == 0

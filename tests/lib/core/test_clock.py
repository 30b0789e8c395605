import gzip
import json
import time
from collections import Counter

import pytest
import torch

from lib.core import clock as module
from lib.core.clock import PHASES, Clock, Profile, phase


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


# -- the profiler


def step(profile):
    """An optimizer step in small; what the profiler says after it."""
    with phase("generate"):
        torch.ones(8, 8) @ torch.ones(8, 8)
    with phase("optimizer"):
        torch.ones(8).cumsum(0)
    return profile.step()


def traced(folder, rank=0):
    """How often each phase and operation is in the trace."""
    events = json.loads(gzip.decompress((folder / f"trace_rank{rank}.json.gz").read_bytes()))["traceEvents"]
    return Counter(event["name"] for event in events if event.get("cat") in ("user_annotation", "cpu_op"))


def test_a_profile_traces_as_many_steps_as_it_is_told_after_the_first(tmp_path):
    profile = Profile(2, tmp_path / "profile", rank=3)
    said = [step(profile) for _ in range(5)]
    assert [text is not None for text in said] == [False, False, True, False, False]
    assert str(tmp_path / "profile" / "trace_rank3.json.gz") in said[2]
    names = traced(tmp_path / "profile", rank=3)
    assert (names["generate"], names["optimizer"], names["aten::mm"], names["aten::cumsum"]) == (2, 2, 2, 2)
    assert "reward" not in names
    table = (tmp_path / "profile" / "operators_rank3.txt").read_text()
    assert all(name in table for name in ("aten::mm", "aten::cumsum", "generate"))
    assert profile.close() is None


def test_a_profile_that_ends_early_keeps_what_it_has(tmp_path):
    profile = Profile(9, tmp_path)
    assert [step(profile) for _ in range(2)] == [None, None]
    assert "trace_rank0.json.gz" in profile.close()
    assert traced(tmp_path)["generate"] == 1


def test_no_step_to_profile_is_no_profile(tmp_path):
    profile = Profile(0, tmp_path / "profile")
    assert [step(profile) for _ in range(3)] == [None] * 3
    assert profile.close() is None
    assert not (tmp_path / "profile").exists()

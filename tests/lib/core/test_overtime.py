import contextlib
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helpers.judges import judge_by, rows

from lib.core import interrupts as module
from lib.core.errors import Left, RewardError
from lib.core.interrupts import Interrupts
from lib.core.registry import register_reward, rewards

ROOT = Path(__file__).parents[3]
HERE = "tests/lib/core/test_overtime.py"


def sleeps():
    time.sleep(60)


def computes():
    while True:
        pass


def waits_for_a_thread():
    with ThreadPoolExecutor() as pool:
        pool.submit(threading.Event().wait, 6).result()


def reads():
    one, other = socket.socketpair()
    with one, other:
        one.recv(1)


def catches_errors():
    while True:
        with contextlib.suppress(Exception):
            time.sleep(60)


@pytest.fixture
def judge(monkeypatch):
    """`judge(work, timeout_s)`: a judge whose reward works first."""
    monkeypatch.setattr(rewards, "_entries", dict(rewards._entries))
    monkeypatch.setattr(module, "GRACE", 0.3)
    monkeypatch.setattr(module, "AGAIN", 0.2)
    monkeypatch.setattr(module, "TICK", 0.02)

    def make(work, timeout_s=None):
        def slow(predictions):
            work()
            return [1.0] * len(predictions)

        register_reward("slow")(slow)
        return judge_by("slow", timeout_s=timeout_s)

    return make


@pytest.mark.parametrize("work", [sleeps, computes, waits_for_a_thread, reads, catches_errors])
def test_a_reward_that_hangs_is_ended_at_its_limit(judge, work):
    """Here with its line, whatever it is that it waits for."""
    with pytest.raises(RewardError) as raised:
        judge(work, 0.2)(["a", "b"], rows("c", "d"))
    before, _, after = str(raised.value).partition(f" ({HERE}:")
    assert before == "reward 'slow' did not answer within reward.timeout_s = 0.2 s" and after.endswith("for 2 samples")
    lines = Path(__file__).read_text().splitlines()
    assert f"def {work.__name__}" in "".join(lines[int(after.partition(")")[0]) - 6 : int(after.partition(")")[0])])


def test_a_reward_within_its_limit_may_have_an_alarm_of_its_own(judge):
    def work():
        signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        time.sleep(0.3)

    rung = []
    assert [score.reward for score in judge(work, 20.0)(["a"], rows("b"))] == [1.0]
    assert rung == [1]


def test_a_slow_reward_is_told_by_name_place_and_step(judge, monkeypatch, capfd):
    monkeypatch.setattr(module, "BEAT", 0.2)
    with Interrupts() as interrupts:
        interrupts.where = lambda: "stage 1 step 3"
        judge(lambda: time.sleep(0.5))(["a"], rows("b"))
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"stage 1 step 3: reward 'slow' has not answered for 0 s ({HERE}:")


def test_a_signal_ends_a_reward_that_hangs_and_none_that_is_merely_slow(judge):
    with Interrupts() as interrupts:
        works = iter([lambda: time.sleep(0.6), lambda: (interrupts.note(signal.SIGTERM), time.sleep(1.0)), sleeps])
        asked = judge(lambda: next(works)())
        for _ in range(2):
            asked(["a"], rows("b"))
        with pytest.raises(Left):
            asked(["a"], rows("b"))


def test_a_signal_that_does_not_interrupt_a_sleep_ends_it_too(judge):
    """As one that comes just before it; here another thread gets it: Python handles it once the main thread is back."""

    def sleeps_on():
        threading.Timer(0.1, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM)).start()
        time.sleep(60)

    with Interrupts(), pytest.raises(Left):
        judge(sleeps_on)(["a"], rows("b"))


UNSTOPPABLE = """
import json, sys
from lib.core import interrupts
from lib.core.errors import run_script
from lib.core.config import Reward
from lib.core.registry import register_reward
from lib.rewards.judge import Judge

def catches_all():
    while True:
        try:
            import time
            time.sleep(60)
        except BaseException:
            pass

def computes_in_c():
    sum(range(10**12))

@register_reward("bad")
def bad(predictions):
    globals()[sys.argv[1]]()

interrupts.GRACE = interrupts.AGAIN = 1.0
run_script(lambda: Judge(Reward(fn="bad", timeout_s=0.5))(["a"], [{}]))
"""


@pytest.mark.parametrize(
    ("how", "code", "told"),
    [("catches_all", 7, "cannot be interrupted (<string>:"), ("computes_in_c", 1, "in computes_in_c")],
)
def test_a_reward_that_can_not_be_ended_ends_the_process(how, code, told):
    done = subprocess.run(
        [sys.executable, "-c", UNSTOPPABLE, how], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == code and told in done.stderr

"""Sampling by a real vLLM server, which is started here: as sampled so scored, whatever adapter the policy wears.

make setup-vllm && WHOLE=1 .venv/bin/python -m pytest tests/lib/generators/test_vllm.py
"""

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
import torch
from conftest import SCRATCH, TEMPLATE, long
from helpers import tiny
from helpers.weights import move

import rl_train_gspo_selfplay
import train
from engine import Decoding, Turn
from lib.core.config import FromScratch, Lora, TrainedModel, TrainedSampling, Vllm
from lib.core.errors import ApiError, ConfigError
from lib.generators import vllm
from lib.generators.engines import NATIVE, engine_of
from lib.generators.vllm_server import BASE, RESTARTS, ServerLost, VllmServer, command_line
from lib.model.loading import attach_tuner
from lib.model.policy import Inputs, Policy
from lib.model.scratch import build
from lib.run.runlog import read_jsonl

ROOT = Path(__file__).parents[3]
PYTHON = os.environ.get("REMATCH_VLLM_PYTHON") or str(ROOT / ".venv-vllm/bin/python")
needs_vllm = pytest.mark.skipif(
    not os.access(PYTHON, os.X_OK), reason="no environment with vllm: `make setup-vllm` makes one"
)
PROMPTS = {(0,): Turn([5, 6, 7, 8], 12, 3), (1,): Turn([9, 10, 11], 8, 2)}
PROBE = [5, 6, 7, 8, 9, 10, 11, 12]
DECODING = Decoding(0.8, frozenset({1}), 0, rows=5, columns=32, seed=3)
CLOSE = 1e-4  # nats, in float32


def told(engine, path):
    return engine.server._client.get(engine.server.url + path).json()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    architecture = SCRATCH["architecture"] | {
        "hidden_size": 64,
        "head_dim": 32,
    }  # not on every CPU has vLLM smaller ones
    for part in build(FromScratch(**{**SCRATCH, "architecture": architecture}), TEMPLATE, seed=0):
        part.save_pretrained(folder)
    return folder


def policy_of(folder, rank=8, moved=0.0):
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    policy = Policy(attach_tuner(base, Lora(r=rank, alpha=16), TrainedModel(name="tiny"), "plain", seed=0), 0.8)
    move(policy.trainable, moved, seed=0)
    return policy


def engine_for(folder, policy, said, **settings):
    model = TrainedModel(name=str(folder), max_seq_length=64)
    sampling = TrainedSampling(engine="vllm", vllm=Vllm(**{"python": PYTHON} | settings))
    return engine_of(model, sampling, policy, PROBE, said.append)


@pytest.fixture(scope="module")
def opened(folder, tmp_path_factory):
    """An engine with a server, the policy it was started for, and what it said."""
    policy, said = policy_of(folder, moved=0.05), []
    engine = engine_for(folder, policy, said)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")  # the server's: other tests compute beside it
        patch.setenv("VLLM_SERVER_DEV_MODE", "1")  # for /sleep, which a server on a CPU is not started with
        with engine.open(tmp_path_factory.mktemp("run") / "engine"):
            yield engine, policy, said


def scored(policy, turn, completion):
    ids = turn.ids + completion.ids
    text, places = torch.tensor([ids]), torch.arange(len(ids))
    predictors = places[len(turn.ids) - 1 : -1]
    with torch.no_grad():
        return policy(Inputs(text, places[None], predictors, text[0, len(turn.ids) :]))[0]


def check(policy, turns, written):
    for path, completion in written.items():
        turn = turns[path[:-1]]
        torch.testing.assert_close(torch.tensor(completion.logps), scored(policy, turn, completion), atol=CLOSE, rtol=0)
        assert completion.finished == (completion.ids[-1] in DECODING.stop_ids)
        assert completion.finished or len(completion.ids) == turn.max_new_tokens


@needs_vllm
def test_what_it_samples_is_scored_the_same_whatever_the_policy_wears(opened):
    engine, policy, _ = opened
    asked = []

    def follow(path, completion):
        if len(path) > 2:
            return None
        asked.append(path)
        return Turn(PROMPTS[path[:1]].ids + completion.ids + [7], 6, 2)

    written = engine.generate(policy, PROMPTS, DECODING, follow)
    assert sorted(asked) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)] and len(written) == 15
    turns = PROMPTS | {path: Turn(PROMPTS[path[:1]].ids + written[path].ids + [7], 6, 2) for path in asked}
    check(policy, turns, written)
    assert written == engine.generate(policy, PROMPTS, DECODING, follow)  # a seed per path
    with policy.reference_mode():
        check(policy, PROMPTS, engine.generate(policy, PROMPTS, DECODING))
    other = [weight + 0.1 for weight in policy.snapshot()]
    with policy.with_adapter(other):
        check(policy, PROMPTS, engine.generate(policy, PROMPTS, DECODING))
    check(policy, PROMPTS, engine.generate(policy, PROMPTS, DECODING))


@needs_vllm
def test_more_prompts_at_once_than_a_step_of_the_server_takes(opened):
    """vLLM would compute one of them in two parts, and its engine for CPUs ends where such a request has a seed."""
    engine, policy, _ = opened
    turns = {(number,): Turn([5 + (number * place) % 25 for place in range(1, 61)], 3, 1) for number in range(150)}
    before = engine.server._restarts
    check(policy, turns, engine.generate(policy, turns, DECODING))
    assert engine.server._restarts == before


@needs_vllm
def test_versions_come_and_go_and_leave_nothing(opened):
    engine, policy, _ = opened
    for step in range(2 * vllm.KEPT):
        move(policy.trainable, 0.02, seed=step)
        check(policy, PROMPTS, engine.generate(policy, PROMPTS, DECODING))
    kept = sorted(path.name for path in engine.folder.iterdir())
    assert kept == sorted(engine._versions.values()) and len(kept) == vllm.KEPT
    served = [model["id"] for model in told(engine, "/v1/models")["data"]]
    assert sorted(served) == sorted([BASE, *kept])


@needs_vllm
@pytest.mark.parametrize("fault", ["stale", "reused", "base"])
def test_the_comparison_of_log_probs_finds_what_is_wrong(opened, folder, tmp_path, fault, monkeypatch):
    engine, policy, _ = opened
    engine.generate(policy, PROMPTS, DECODING)
    name = next(reversed(engine._versions.values()))
    if fault == "stale":  # the server keeps what it has
        monkeypatch.setattr(engine.server, "load", lambda new, where: None)
        monkeypatch.setattr(engine.server, "score", lambda new, ids, real=engine.server.score: real(name, ids))
    elif fault == "reused":  # a path that it has read before, under the same name
        monkeypatch.setattr(engine.server, "load", lambda new, where: None)
        monkeypatch.setattr(
            engine.server, "score", lambda new, ids, real=engine.server.score: real(BASE if new == BASE else name, ids)
        )
    else:
        engine._has_same_base = False
        with torch.no_grad():
            policy.language_model.model.embed_tokens.weight[5:8] += 0.5
    before = policy.snapshot()
    try:
        move(policy.trainable, 0.05, seed=99)
        what = "base" if fault == "base" else "adapter"
        with pytest.raises(ApiError, match=rf"log-probs of the {what} differ by .* nats per token"):
            engine.generate(policy, PROMPTS, DECODING)
    finally:
        if fault == "base":
            with torch.no_grad():
                policy.language_model.model.embed_tokens.weight[5:8] -= 0.5
        with torch.no_grad():
            for parameter, value in zip(policy.trainable, before, strict=True):
                parameter.copy_(value)


@needs_vllm
def test_a_wrong_rank_is_refused_in_a_sentence(opened, folder):
    engine, *_ = opened
    with pytest.raises(
        ApiError, match=r"generation.vllm: http.* refuses the adapter .*rank 64 is greater than max_lora_rank 8"
    ):
        engine.generate(policy_of(folder, rank=64, moved=0.05), PROMPTS, DECODING)


REWARD = """
import os, signal

calls = 0

def digits(predictions):
    global calls
    calls += 1
    if str(calls) == os.environ.get("STOP_AT"):
        os.kill(os.getpid(), signal.SIGTERM)
    return [sum(character.isdigit() for character in text) / (len(text) + 1) for text in predictions]
"""
TASK = {
    "seed": 1,
    "model": tiny.model(8),
    "dataset": {"name": "rows.jsonl", "target_field": "answer", "test_split_size": 4},
    "reward": {"fn": "digit_reward.digits", "accept_cut": True},
    "optimizer": {"learning_rate": 0.01},
    "eval": {"max_examples": 4, "selection_examples": 0},
}
SCORE = {
    "prompts": {"user": "{question}", "self_correction": "again"},
    "generation": tiny.limits(prompts=(16, 48), answers=(8, 8)),
    "train": tiny.stages((2, 2), 4),
}
PLAY = {
    "prompts": {"user": "{question}"},
    "generation": {"max_prompt_length": 16, "max_new_tokens": 8},
    "opponent": {"snapshots": {"every_steps": 2}, "temperature": 1.0},
    "train": {"steps": 4, "batch_size": 4, "group_size": 4, "minibatches": 2},
}


@needs_vllm
@pytest.mark.parametrize(("script", "own"), [(train, SCORE), (rl_train_gspo_selfplay, PLAY)], ids=["score", "selfplay"])
def test_a_run_is_trained_on_what_the_server_samples(opened, folder, tmp_path, monkeypatch, script, own):
    """Log-probs are the policy's at every step; a run that was stopped resumes to the same texts and weights."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "digit_reward.py").write_text(REWARD)
    sampling = own["generation"] | {"engine": "vllm", "vllm": {"url": opened[0].server.url}}
    config = TASK | own | {"generation": sampling}
    tiny.write_task(tmp_path, config, folder, tiny.sums(range(4), range(4)))

    def start(name, *options):
        sys.modules.pop("digit_reward", None)
        return tiny.call(script, "--config", "tiny.yaml", f"run_name={name}", *options)

    assert start("straight") == 0
    monkeypatch.setenv("STOP_AT", "5")  # among the first steps, after the evaluation
    assert start("stopped") == 143
    monkeypatch.delenv("STOP_AT")
    assert start("stopped", "--resume") == 0
    straight, stopped = tmp_path / "outputs/straight", tmp_path / "outputs/stopped"
    metrics, _ = read_jsonl(straight / "metrics.jsonl")
    assert len(metrics) == 4 and all(0 < row["sampler_gap"] < CLOSE for row in metrics)
    texts = []
    for run in (straight, stopped):
        rows, _ = read_jsonl(run / "generations.jsonl")
        texts.append([[row.get(key) for key in ("text", "attempt1", "attempt2")] for row in rows])
    assert texts[0] == texts[1] and len(texts[0]) > 16
    last = "stage2/adapter_model.safetensors" if script is train else "stage1/adapter_model.safetensors"
    assert (straight / last).read_bytes() == (stopped / last).read_bytes()
    assert not (straight / "engine").exists() and not (stopped / "engine").exists()


@long
@needs_vllm
def test_a_killed_server_is_started_again_and_no_row_is_lost(opened):
    engine, policy, said = opened
    want = engine.generate(policy, PROMPTS, DECODING)

    killed = []

    def kill(path, completion):
        if not killed:
            killed.append(engine.server._pid)
            os.killpg(engine.server._pid, signal.SIGKILL)

    assert engine.generate(policy, PROMPTS, DECODING, kill) == want
    assert engine.generate(policy, PROMPTS, DECODING) == want  # all of them may have left before the kill
    assert any("ended with signal 9" in line and "starting another one" in line for line in said)
    assert not [each for each in psutil.process_iter() if each.status() == "zombie" and each.ppid() == os.getpid()]


@needs_vllm
def test_a_server_that_slept_samples_the_same(opened, monkeypatch):
    engine, policy, said = opened
    want, before = engine.generate(policy, PROMPTS, DECODING), len(said)
    monkeypatch.setattr(engine.server, "sleeps", True)  # on a CPU it keeps its memory, and answers nothing
    for _ in range(2):
        assert engine.generate(policy, PROMPTS, DECODING) == want
        assert told(engine, "/is_sleeping") == {"is_sleeping": True}
    move(policy.trainable, 0.02, seed=99)
    check(policy, PROMPTS, engine.generate(policy, PROMPTS, DECODING))
    engine.server.wake()
    assert told(engine, "/is_sleeping") == {"is_sleeping": False} and len(said) == before


@long
@needs_vllm
def test_a_server_that_does_not_sleep_is_ended_and_another_one_started(opened, monkeypatch):
    engine, policy, said = opened
    want = engine.generate(policy, PROMPTS, DECODING)
    monkeypatch.setattr(engine.server, "sleeps", True)
    monkeypatch.setattr(engine.server, "_restarts", 0)
    post = engine.server._post

    def refusing(path, *arguments):
        if path == "/sleep":
            monkeypatch.setattr(engine.server, "sleeps", False)  # the next server has no such mode on a CPU
            raise ServerLost("no answer")
        return {} if path == "/wake_up" else post(path, *arguments)

    monkeypatch.setattr(engine.server, "_post", refusing)
    assert engine.generate(policy, PROMPTS, DECODING) == want
    assert engine.generate(policy, PROMPTS, DECODING) == want
    assert any("ended with signal 9" in line and "starting another one" in line for line in said)


@pytest.fixture
def impatient(opened, monkeypatch):
    """The same with a server that has ten seconds for a completion."""
    engine, *_ = opened
    for owner in (engine, engine.server):
        monkeypatch.setattr(owner, "settings", engine.settings.model_copy(update={"deadline_s": 10.0}))
    return opened


def once_more(path, completion):
    """A second turn after each completion of the first."""
    return Turn(PROMPTS[path[:1]].ids + completion.ids + [7], 6) if len(path) == 2 else None


def stopping(engine, seconds=None):
    """The same; the server's processes are stopped after the first completion, for some seconds or for good."""
    stopped = []

    def follow(path, completion):
        if not stopped:
            stopped.append(engine.server._pid)
            os.killpg(stopped[0], signal.SIGSTOP)
            if seconds:
                threading.Timer(seconds, os.killpg, (stopped[0], signal.SIGCONT)).start()
        return once_more(path, completion)

    return follow


@needs_vllm
def test_a_slow_server_is_waited_for(impatient):
    engine, policy, said = impatient
    want, before = engine.generate(policy, PROMPTS, DECODING, once_more), len(said)
    assert engine.generate(policy, PROMPTS, DECODING, stopping(engine, 3.0)) == want and len(said) == before


@long
@needs_vllm
def test_a_server_that_hangs_is_started_again_or_named(impatient, monkeypatch):
    engine, policy, said = impatient
    want = engine.generate(policy, PROMPTS, DECODING, once_more)
    assert len(want) == 10 and engine.generate(policy, PROMPTS, DECODING, stopping(engine)) == want
    assert any("the server hangs (no answer within generation.vllm.deadline_s = 10 s)" in line for line in said)
    monkeypatch.setattr(engine.server, "_restarts", RESTARTS)
    with pytest.raises(ApiError, match=r"the server hangs \(no answer .*, after 2 restarts; .* --resume"):
        engine.generate(policy, PROMPTS, DECODING, stopping(engine))


def test_a_server_that_is_not_there_is_named(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("lib.generators.vllm_server.SHORT_SECONDS", 1.0)
    policy, said = policy_of(folder), []
    engine = engine_for(folder, policy, said, python=None, url="http://127.0.0.1:9")
    with pytest.raises(ApiError, match=r"no vLLM server answers at http://127\.0\.0\.1:9"), engine.open(tmp_path / "e"):
        pass
    engine = engine_for(folder, policy, said, python="/nowhere/python")
    with pytest.raises(ApiError, match="/nowhere/python cannot be started"), engine.open(tmp_path / "e"):
        pass
    began = time.monotonic()
    engine = engine_for(folder, policy, said, python="/bin/false")
    told = pytest.raises(ApiError, match=r"ended with code 1 as it started; .*engine\.log says: nothing")
    with told, engine.open(tmp_path / "engine"):
        pass
    assert time.monotonic() - began < 20 and not (tmp_path / "engine").exists()


def test_several_processes_share_one_server(folder, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match=r"name it in generation\.vllm\.url"):
        engine_for(folder, policy_of(folder), [])


def words_on_a_gpu(folder, monkeypatch, options=()):
    """The words that start a server on a GPU."""
    policy = policy_of(folder)
    monkeypatch.setattr(Policy, "device", torch.device("cuda"))
    return command_line(TrainedModel(name="tiny"), Vllm(options=list(options)), policy)


def test_on_the_gpu_that_trains_a_server_takes_what_is_left_and_sleeps(folder, monkeypatch):
    words = words_on_a_gpu(folder, monkeypatch)
    assert words[-1] == "--enable-sleep-mode"
    settings, log = Vllm(python="/bin/echo"), folder / "server.log"
    assert VllmServer(settings, words, log, False, print).sleeps
    # 60 of the 80 GiB are free when the server starts, less a tenth of the card
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (60 * 2**30, 80 * 2**30))
    with pytest.raises(ApiError, match="ended"), VllmServer(settings, words, log, False, print):
        pass
    assert "--gpu-memory-utilization 0.65 " in log.read_text()
    assert not VllmServer(Vllm(url="http://127.0.0.1:9"), words, log, False, print).sleeps  # it is not ours


@pytest.mark.parametrize("options", [["--gpu-memory-utilization", "0.4"], ["--gpu-memory-utilization=0.4"]])
def test_a_share_of_the_gpu_that_is_set_stays(folder, monkeypatch, options):
    words = words_on_a_gpu(folder, monkeypatch, options)
    assert words[-len(options) :] == options and "--enable-sleep-mode" not in words
    assert not VllmServer(Vllm(options=options), words, folder / "server.log", False, print).sleeps


class Recorder:
    """A server that notes what it is asked for, and answers every prompt with one token."""

    def __init__(self, policy):
        self.policy, self.calls = policy, []

    def wake(self):
        self.calls.append("wake")

    def sleep(self):
        self.calls.append("sleep")

    def load(self, name, folder):
        self.calls.append("load")

    def score(self, name, ids):
        self.calls.append("score")
        with self.policy.reference_mode() if name == BASE else contextlib.nullcontext():
            return vllm.scores_of(self.policy, ids)

    @contextlib.asynccontextmanager
    async def requests(self):
        async def post(path, body):
            self.calls.append("completion")
            return {"choices": [{"token_ids": [1], "logprobs": {"token_logprobs": [-1.0]}}]}

        yield post


def test_a_server_is_awake_while_it_is_asked_and_no_longer(folder, tmp_path):
    policy = policy_of(folder, moved=0.05)
    engine = engine_for(folder, policy, [])
    engine.server, engine.folder = Recorder(policy), tmp_path
    for begin in (["load", "score"], []):  # the base, then the adapter; then it has not changed
        engine.generate(policy, {(0,): Turn([5, 6], 4, 2)}, DECODING)
        begin = ["score", *begin] if begin else begin
        assert engine.server.calls == ["wake", *begin, "completion", "completion", "sleep"]
        engine.server.calls.clear()


def test_the_native_engine_is_the_default():
    assert engine_of(TrainedModel(name="tiny"), TrainedSampling(), None, [], print) is NATIVE

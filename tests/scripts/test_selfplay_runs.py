"""Runs of self-play against real servers: killed at any moment, left alone by a server, lied to, spread, started wrong.

Opponent and teacher are tiny models behind tests/helpers/server.py, whose log says who was asked what.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import fmean, pstdev
from types import SimpleNamespace

import pytest
import torch
import yaml
from conftest import long, part
from helpers import forks, moments, tiny
from helpers.server import CLIENT_LEFT, held, notes, serve

from data.builders import write_rows
from lib.core.config import Server
from lib.generators.protocol import Reply, ReplyError, Request
from lib.generators.remote import Remote
from lib.generators.reply_cache import key_of, seed_of
from lib.run.runlog import read_lines

SCRIPT = Path(__file__).parents[2] / "rl_train_gspo_selfplay.py"
STEPS, BATCH, HELD_OUT, KEY = 6, 4, 6, "a-secret-of-ours"
CONFIG = {
    "run_name": "play", "output_dir": "runs", "seed": 1,
    "model": tiny.model(2, 112, name="base"),
    "dataset": {"name": "rows.jsonl", "test_split_size": HELD_OUT, "target_field": "answer"},
    "prompts": {"user": "{question}", "hinted": "{question} {hint}"},
    "reward": {"fn": "my_reward.ones_and_threes", "accept_cut": True},
    "generation": {"max_prompt_length": 10, "max_new_tokens": 6},
    "optimizer": {"learning_rate": 0.02, "warmup_steps": 2, "schedule": "cosine"},
    "train": {"steps": STEPS, "batch_size": BATCH, "group_size": 3, "minibatches": 1, "micro_batch_tokens": 150,
              "checkpoint_every": 1},
    "eval": {"max_examples": HELD_OUT, "selection_examples": 0, "temperature": 1.0, "every_steps": 2},
}  # fmt: skip
HINT = {"neither": 1.0, "opponent_only": 1.0, "hint_request": "hint for {question}", "train": "on_policy"}
SNAPSHOTS = {
    "opponent": {"snapshots": {"every_steps": 2, "keep": 2, "pick": "uniform"}, "use": "win", "weight": 0.3},
    "train": {**CONFIG["train"], "loss": "grpo", "minibatches": 2, "passes": 2},
}
REWARD = """
from lib.core.registry import Judged

def judged(text, match):
    return Judged({"odd": sum(c in "13579" for c in text) / 4, "brief": -len(text) / 40}, match)

def ones_and_threes(predictions):
    return [judged(text, "1" in text or "3" in text) for text in predictions]

def sums(predictions, targets):
    return [judged(text, target in text) for text, target in zip(predictions, targets, strict=True)]
"""


@pytest.fixture(scope="module")
def template(tiny_folder, tmp_path_factory) -> Path:
    """A folder with a random base model, rows and rewards: all that a run needs beside its config."""
    folder = tmp_path_factory.mktemp("template")
    (folder / "base").symlink_to(tiny_folder)
    write_rows(folder / "rows.jsonl", tiny.sums(range(20, 26), range(10, 15)))
    (folder / "my_reward.py").write_text(REWARD)
    return folder


@pytest.fixture(scope="module")
def url(template):
    """Opponent and teacher, with a log; an answer takes a moment, so that a kill can come before it."""
    options = "--name", "m", "--api-key", KEY, "--delay", 0.05, "--log", template.with_name("log.jsonl")
    with serve(template / "base", *options) as address:
        address.log = options[-1]
        yield address


def endpoint(url: object, **settings) -> dict:
    return {"base_url": str(url), "model": "m", "api_key_env": "OUR_KEY", "max_retries": 0, **settings}


def with_servers(url: object, rival: dict | None = None, **opponent) -> dict:
    servers = {"rival": rival or endpoint(url), "tutor": endpoint(url)}
    teacher = {"server": "tutor", "hint": HINT, "solve": {"probability": 0.5}, "max_new_tokens": 12}
    opponents = {"server": "rival", **opponent}
    return {"servers": servers, "opponent": opponents, "teacher": teacher, "curriculum": {"weighting": {}}}


class Run(moments.Run):
    def __init__(self, template: Path, folder: Path, **config):
        super().__init__(SCRIPT.stem, template, folder, {**CONFIG, **config}, OUR_KEY=KEY)

    def scoreboard(self) -> dict:
        return json.loads((self.dir / "scoreboard.json").read_text())

    def kept(self) -> set[str]:
        """The keys of all replies that are on the disk; none is there twice."""
        found = [row["key"] for path in self.dir.glob("*_replies.jsonl") for row, *_ in read_lines(path) if row]
        assert len(found) == len({*found})
        return {*found}


# -- kill -9


@pytest.fixture(scope="module")
def straight(template, url, tmp_path_factory) -> Run:
    """A run with both servers that nothing interrupted."""
    run = Run(template, tmp_path_factory.mktemp("straight") / "work", **with_servers(url))
    run.start(journal="journal.json")
    return run


def kills(straight: Run, seed: int, opening: int, **counts: int) -> list[dict]:
    """Plans of kills at random moments, in their order: some before the first checkpoint, the others by kind."""
    saved, doing = straight.journal()
    dice, first = random.Random(seed), saved["stage1/step_0"]
    drawn = dice.sample([i for i in range(first) if not doing[i].startswith("saving")], opening)
    for what, count in counts.items():
        drawn += dice.sample([i for i in range(first, len(doing)) if doing[i].startswith(what)], count)
    return [{"kill_at": moment, "saved": saved} for moment in sorted(drawn)]


def keys(template: Path) -> dict[int, str]:
    """The key under which a reply is kept, by the seed of its request: all that a run of `with_servers` can ask."""
    ours, requests = SimpleNamespace(seed=CONFIG["seed"]), []
    for line in (template / "rows.jsonl").read_text().splitlines():
        plain, hint = ([{"role": "user", "content": text + json.loads(line)["question"]}] for text in ("", "hint for "))
        requests.append(Request(plain, 6, 0.7, seed_of(ours.seed, "opponent", plain)))
        for step in range(STEPS):
            requests.append(Request(hint, 12, 0.6, seed_of(ours.seed, "teacher", "hint", step, hint)))
            requests.append(Request(plain, 6, 0.6, seed_of(ours.seed, "teacher", "solve", step, plain)))
    name = {"model": "m", "api": "chat", "body": {}}
    return {request.seed: key_of("reply", name, vars(request)) for request in requests}


@long
def test_killed_while_servers_answer(straight, template, tmp_path, url):
    """Ten times, once with answers on their way; what is kept is never asked for again."""
    plans = kills(straight, seed=5, opening=1, waiting=3, saving=2, train=1)
    plans = [{"read": 3}, *plans[:3], {"kept": 2}, *plans[3:], {}]
    mine, key, died = Run(template, tmp_path / "work", **with_servers(url)), keys(template), []
    with held(url):
        process = mine.launch()
        forks.wait_for((mine.dir / "teacher_replies.jsonl").exists, process, mine.folder / "said.txt")
        process.join(0.5)  # until the opening's requests have arrived
        process.kill()
        process.join()
        time.sleep(0.2)  # until the server noticed
    assert {note["status"] for note in notes(url.log)[-HELD_OUT:]} == {CLIENT_LEFT} and not mine.kept()
    for plan in plans:
        known, seen = mine.kept(), len(notes(url.log))
        mine.start("--resume", code=-signal.SIGKILL if plan else 0, **plan)
        time.sleep(0.2)
        assert not [note for note in notes(url.log)[seen:] if key[note["seed"]] in known]
        died.append(mine.died())
    mine.same_as(straight, died)
    assert mine.kept() == straight.kept() <= {*key.values()}
    kinds = {what.split()[0] for what in died}
    assert {"read", "kept", "waiting", "saving", "train"} <= kinds and "evaluation" in str(died), died
    assert not [*mine.folder.glob("runs/*/*/*.tmp"), *mine.folder.glob("runs/*/*.torn")]


@long
def test_killed_with_a_pool_of_snapshots(template, tmp_path):
    settings = SNAPSHOTS | {"eval": {**CONFIG["eval"], "selection_examples": 1}}
    straight, mine = (Run(template, tmp_path / name, **settings) for name in ("straight", "mine"))
    restores = [[1, 3]]  # to its best checkpoint
    straight.start(journal="journal.json", restores=restores)
    for plan in kills(straight, seed=6, opening=2, train=4, saving=4):
        mine.start("--resume", code=-signal.SIGKILL, **plan, restores=restores)
    assert "step 3: went back to stage1/step_" in mine.start("--resume", restores=restores)
    mine.same_as(straight)
    assert [row["step"] for row in mine.rows() if "restored_from" in row] == [4]


def test_going_back_restores_the_pool_of_snapshots(template, tmp_path):
    """The pool of the best checkpoint, without the snapshot of step 4, which may be of the broken policy."""
    run = Run(template, tmp_path / "work", **SNAPSHOTS)
    scores = {f"stage1/step_{step}": float(step == 2) for step in range(STEPS + 1)}
    assert "step 5: went back to stage1/step_2" in run.start(restores=[[1, 5]], scores=scores)
    pools = [torch.load(run.dir / f"stage1/step_{step}/objects_0.bin")["opponent"]["pool"] for step in (2, 5, 6)]
    assert [[*pool] for pool in pools] == [[0, 2], [0, 2], [0, 2, 6]]
    assert all(map(torch.equal, pools[0][2], pools[1][2]))


# -- a server that goes, and comes again


def alone(template: Path, address: str = "http://127.0.0.1:0/v1"):
    """A server of one run alone."""
    return serve(template / "base", "--name", "m", "--port", address.rpartition(":")[2].removesuffix("/v1"))


def wait_paused(run: Run, process, step: int) -> None:
    state, marker = Path(f"/proc/{process.pid}/status"), run.folder / f"paused_at_{step}"
    forks.wait_for(lambda: marker.exists() and "T (stopped)" in state.read_text(), process, run.folder / "said.txt")


def test_an_outage_is_masked_counted_and_told(template, tmp_path):
    """The opponent is down in steps 3 and 4 of 6, and in an evaluation between them, whose answers are kept."""
    with alone(template) as address:
        opponent = {"server": "rival", "use": "win", "weight": 0.25}
        settings = {"opponent": opponent, "eval": {**CONFIG["eval"], "every_steps": 3}}
        mine = Run(template, tmp_path / "work", servers={"rival": endpoint(address)}, **settings)
        process = mine.launch(pauses=[2, 4])
        wait_paused(mine, process, 2)
    os.kill(process.pid, signal.SIGCONT)
    wait_paused(mine, process, 4)
    with alone(template, address):
        os.kill(process.pid, signal.SIGCONT)
        said = mine.ended(process)
    board, missing = mine.scoreboard(), 2 * BATCH
    assert (board["missing_games"], board["missing_steps"]) == (missing, {"first": 3, "last": 4, "steps": 2})
    assert board["total"] == STEPS * BATCH - missing
    assert [said.count(f"opponent: the server is {where}") for where in ("down", "back")] == [1, 1]
    assert (
        f"{missing} games of 2 steps, between step 3 and step 4, have no result: the opponent was unavailable" in said
    )
    failures = Counter((row["step"], row["why"][:23]) for row in mine.rows("failures"))
    assert failures == dict.fromkeys(((step, "opponent: unavailable: ") for step in (3, 4)), BATCH)
    assert [row["missing_games"] for row in mine.rows("evaluations")] == [0] * 3
    for row in mine.rows():
        texts = [text for text in mine.rows("generations") if (text["when"], text["step"]) == ("train", row["step"])]
        earned = [sum(text["reward"].values()) for text in texts if text["who"] == "policy"]
        assert row["reward"] == pytest.approx(fmean(earned))
        assert all(("advantage" in text) == (text["who"] == "policy") for text in texts)
        assert ("wins" in row) == (row["step"] not in (3, 4))
        if "wins" not in row:  # (1 - w) of the reward, and the same w / 2 for everybody
            groups = [earned[3 * i : 3 * i + 3] for i in range(BATCH)]
            assert row["reward_std"] == pytest.approx(
                fmean(pstdev(0.75 * share + 0.125 for share in g) for g in groups)
            )


@long
def test_an_outage_that_stops_the_run(straight, template, tmp_path, url):
    """Although some answers of each later step are kept."""
    with alone(template) as address:
        mine = Run(template, tmp_path / "work", **with_servers(url, endpoint(address, outage="stop")))
        process = mine.launch(pauses=[2])
        wait_paused(mine, process, 2)
    os.kill(process.pid, signal.SIGCONT)
    said = mine.ended(process, code=6)
    assert said.count("error: ") == 1 and "fix the server, then --resume, or set servers.rival.outage: mask" in said
    with alone(template, address):
        mine.start("--resume")
    mine.same_as(straight)


@pytest.mark.parametrize(
    ("settings", "environment", "sentence"),
    part(
        [
            ({"base_url": "http://127.0.0.1:9/v1"}, {}, f"none of the first {HELD_OUT} requests was answered"),
            ({}, {"OUR_KEY": "wrong"}, "the key in api_key_env is refused"),
            ({"model": "n"}, {}, "no such address or model: check base_url"),
        ],
        every=3,
    ),
)
def test_a_server_that_never_answered_ends_the_run(template, tmp_path, url, settings, environment, sentence):
    mine = Run(template, tmp_path / "work", **with_servers(url, {**endpoint(url), **settings}))
    assert mine.start(code=6, environment=environment).count("error: servers.rival: ") == 1
    assert sentence in mine.said()
    assert not (mine.rows() or mine.rows("generations") or (mine.dir / "stage1").exists())  # before any training


def test_a_request_that_is_refused_is_no_outage(tmp_path, url, monkeypatch):
    monkeypatch.setenv("OUR_KEY", KEY)
    told, chat, kept = [], [{"role": "user", "content": "1+1"}], tmp_path / "replies.jsonl"
    with Remote("opponent", Server(**endpoint(url), outage="stop"), kept, told.append) as remote:
        for tokens, kind in ((6, Reply), (1000, ReplyError)):  # more than the server's model can write
            [outcome] = remote.answers(remote.ask([Request(chat, tokens, 1.0, seed=tokens)]))
            assert isinstance(outcome, kind) and not told


# -- a teacher with bad intentions


class Hostile(BaseHTTPRequestHandler):
    """Answers by turns as in `kinds`, for hints and for solutions; what it did is counted in `served`."""

    kinds = ("fenced", "big", "answer", "null", "emoji", "error", "good", "hang", "empty", "code")
    failing = ("big", "null", "error", "hang")
    served: Counter = Counter()  # noqa: RUF012
    lock = threading.Lock()

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1]["content"]
        mode, _, question = asked.partition(" for ")
        answer = sum(map(int, question.split("+")))
        with self.lock:
            kind = self.kinds[sum(self.served[mode, kind] for kind in self.kinds) % len(self.kinds)]
            self.served[mode, kind] += 1
        texts = {
            "fenced": f"Add the tens first.\n```python\nprint({answer})\n```", "code": f"```\nreturn {answer}\n```",
            "answer": f"It is {answer}, of course.", "emoji": "🎲🎯🚀", "empty": "", "null": None, "big": "4" * 10**7,
            "good": "Add the tens, then the ones.",
        }  # fmt: skip
        with contextlib.suppress(OSError):  # who is told too much, or nothing, leaves
            if kind == "hang":
                self.rfile.read(1)
            self.send_response(500 if kind == "error" else 200)
            self.end_headers()
            message = {"message": {"role": "assistant", "content": texts.get(kind)}, "finish_reason": "stop"}
            self.wfile.write(json.dumps({"choices": [message]}).encode())

    def log_message(self, *_):
        pass


@long
def test_a_hostile_teacher(template, tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = endpoint(f"http://127.0.0.1:{server.server_port}/v1", deadline_s=2.5)
    helps = {"hint": {**HINT, "train": "collect"}, "solve": {"probability": 1.0, "request": "solve for {question}"}}
    teacher = {"server": "hostile", **helps}
    mine = Run(template, tmp_path / "work", servers={"hostile": address}, teacher=teacher,
               reward={"fn": "my_reward.sums"})  # fmt: skip
    mine.start("train.steps=3")
    server.shutdown()
    assisted, served = mine.scoreboard()["assisted"], Hostile.served
    asked = {mode: sum(served[mode, kind] for kind in Hostile.kinds) for mode in ("hint", "solve")}
    failed = {mode: sum(served[mode, kind] for kind in Hostile.failing) for mode in asked}
    assert asked == {"hint": 3 * BATCH, "solve": 3 * BATCH} and len(served) == 2 * len(Hostile.kinds)
    assert {name: count for name, count in assisted.items() if "retries" not in name and "solved" not in name} == {
        "hints_asked": asked["hint"], "hints_failed": failed["hint"],
        "hints_used": served["hint", "fenced"] + served["hint", "good"],
        "hints_dropped_answer": served["hint", "answer"], "hints_dropped_code": served["hint", "code"],
        "hints_dropped_empty": served["hint", "emoji"] + served["hint", "empty"],
        "solutions_asked": asked["solve"], "solutions_failed": failed["solve"],
        "solutions_right": sum(served["solve", kind] for kind in ("fenced", "answer", "code")),
    }  # fmt: skip
    hints = [row["hint"] for row in mine.rows("generations") if row["who"] == "policy" and "hint" in row]
    assert len(hints) == 3 * assisted["hints_used"] == assisted["retries"]
    assert {*hints} == {"Add the tens first.", "Add the tens, then the ones."}
    assert len(mine.rows("failures")) == sum(failed.values())
    assert len(mine.rows("sft")) == assisted["solutions_right"] + assisted.get("retries_right", 0) > 3
    data, train = {"name": "runs/play/sft.jsonl", "test_split_size": 0}, {"max_length": 112}
    sft = {"run_name": "taught", "model": CONFIG["model"], "dataset": data, "train": train}
    (mine.folder / "sft.yaml").write_text(yaml.safe_dump(sft))
    options = "--config", "sft.yaml", "--smoke", 8
    taught = forks.script(SCRIPT.with_name("sft_train.py"), *options, cwd=mine.folder, output=mine.folder / "said.txt")
    assert f"{len(mine.rows('sft'))} rows to train on" in mine.ended(taught)


# -- several processes


@long
def test_several_processes_play_like_one(template, tmp_path):
    """The same answers, evaluations and updates, in as many minibatches; each snapshot plays for all."""
    options = ("train.steps=2", "train.batch_size=5", "optimizer.learning_rate=0.005")
    one, *others = moments.alike(Run, template, tmp_path, options, **SNAPSHOTS)
    for run in others:
        assert one.scoreboard() == run.scoreboard() and one.rows("frontier/neither") == run.rows("frontier/neither")
        texts = [sorted((row["when"], row["text"]) for row in side.rows("generations")) for side in (one, run)]
        assert texts[0] == texts[1]


@long
def test_a_sharded_base_plays_like_a_whole_one(template, tmp_path):
    """Snapshots, minibatches, and a KL in the reward, which is scored without a gradient."""
    options = ("train.steps=2", "train.batch_size=5", "optimizer.learning_rate=0.005", "train.kl=k1_in_reward",
               "train.beta=0.1")  # fmt: skip
    moments.alike(Run, template, tmp_path, options, ("model.sharded=true",), **SNAPSHOTS)


@long
def test_two_processes_with_snapshots_and_a_teacher(template, tmp_path, url):
    served = with_servers(url)
    mine = Run(template, tmp_path / "work", **SNAPSHOTS, teacher=served["teacher"], servers=served["servers"])
    assert all(map(torch.equal, *mine.start_two("train.steps=4")))
    board = mine.scoreboard()
    assert [(row["step"], row["prompts"]) for row in mine.rows()] == [(step, BATCH) for step in range(1, 5)]
    assert board["total"] == 4 * BATCH and [row["games"] for row in mine.rows("evaluations")] == [HELD_OUT] * 3
    files = [mine.dir / f"teacher_replies{end}.jsonl" for end in ("", "_1")]
    replies = sum(path.read_bytes().count(b"\n") for path in files)
    assert all(path.stat().st_size for path in files) and f"teacher: {replies} replies" in mine.said()
    assert replies == board["assisted"]["hints_asked"] + board["assisted"]["solutions_asked"]


# -- other starts


def test_smoke_and_dry_run(template, tmp_path, url):
    mine, seen = Run(template, tmp_path / "work", **with_servers(url)), len(notes(url.log))
    assert "m at http" in mine.start("--dry-run") and "nothing was trained" in mine.said()
    assert len(notes(url.log)) == seen and not mine.dir.parent.exists()
    for _ in range(2):
        assert "scoreboard of 4 games" in mine.start("--smoke", "8")
    assert len(mine.rows(run="play-smoke")) == 2 and not mine.dir.exists()
    texts = [row for row in mine.rows("generations", "play-smoke") if row["who"] == "policy" and "hint" not in row]
    trained = sum(row["when"] == "train" for row in texts)
    assert f"planned: 2 steps: {trained} completions of at most {trained * 6} tokens in all; opponent: " in mine.said()
    assert f"3 evaluations: {len(texts) - trained} completions of at most " in mine.said()
    assert "generation.max_new_tokens" not in mine.said()  # 6 are few enough


def test_a_finished_run_and_its_adapter(straight, template, tmp_path, url):
    before, seen = straight.contents(), len(notes(url.log))
    assert "already holds a run: continue it with --resume" in straight.start(code=2)
    assert "this run is finished" in straight.start("--resume")
    assert "scoreboard of 24 games of prompts that the curriculum chose" in straight.said()
    assert straight.contents() == before and len(notes(url.log)) == seen
    bare = Run(straight.folder, tmp_path / "bare", **with_servers(url))
    for folder in bare.dir.glob("stage1/step_*"):
        shutil.rmtree(folder)
    before = bare.contents()
    assert "this stage has ended, and none of its checkpoints" in bare.start("--resume", code=2)
    assert bare.contents() == before  # its rows and scoreboard.json, too
    warm = Run(template, tmp_path / "work")
    warm.start("--resume-adapter", str(straight.dir / "stage1"), "train.steps=1")
    first, last = warm.rows("evaluations")[0], straight.rows("evaluations")[-1]
    assert first["when"] == "adapter" and first["acc"] == last["acc"] and first["reward"] == last["reward"]
    assert len({(run.dir / "stage1/adapter_model.safetensors").read_bytes() for run in (straight, warm)}) == 2
    assert "no adapter here" in Run(template, tmp_path / "other").start("--resume-adapter", "base", code=2)

"""collect_rollouts.py through its real command line: against a model behind a server, faults, and kill -9."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from conftest import chatterbox, fewer, long, part
from helpers import forks
from helpers.faults import INVENTIONS, ON_REQUEST, SPOILINGS, faulty
from helpers.judges import judge_by
from helpers.server import held, notes, serve
from helpers.tiny import SCORE, SELFPLAY, changed, sums, write_task

import collect_rollouts
from data.builders import write_rows
from lib.core.config import CollectConfig, Collection, ScoreConfig, SelfPlayConfig, SFTDataset, load
from lib.core.console import Screen
from lib.core.errors import ConfigError
from lib.core.stats import wilson
from lib.generators.progress import CollectionProgress
from lib.generators.protocol import Request
from lib.generators.reply_cache import key_of
from lib.generators.selection import lines, rollouts, select
from lib.rl.task import load_data
from lib.run.runlog import encode, read_jsonl
from lib.text.chats import question_of
from lib.text.data import load_splits
from lib.tools.loop import Episode

ROOT = Path(__file__).parents[2]
CALL = '<tool_call>{"name": "python_run", "arguments": {"code": "print(6 * 7)"}}</tool_call>'
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|im_end|>{% endfor %}"
    "<|assistant|>{% if tools %}t{% endif %}"
)
NOBODY = "http://127.0.0.1:9/v1"
PROMPTS, SAMPLES, TOKENS = 250, 2, 60  # of the whole run
SOME = 150  # prompts of others


@pytest.fixture(scope="module")
def talker(tmp_path_factory):
    """The folder of a model that thinks some letters, answers 7 or 8, and with tools calls one every second time."""
    letter = {"a": 0.35, "b": 0.35, "</think>": 0.3}
    folder = chatterbox(tmp_path_factory.mktemp("talker"), {
        "<|assistant|>": {"<think>": 1.0}, "<think>": {"a": 0.5, "b": 0.5}, "a": letter, "b": letter,
        "</think>": {"<answer>": 1.0}, "<answer>": {"7": 0.6, "8": 0.4}, "7": {"</answer>": 1.0},
        "8": {"</answer>": 1.0}, "t": {"<|system|>": 0.5, "<think>": 0.5},
    })  # fmt: skip
    vocabulary = folder / "tokenizer.json"  # one token becomes the whole call
    described = json.loads(vocabulary.read_text())
    described["model"]["vocab"][CALL] = described["model"]["vocab"].pop("<|system|>")
    added = next(token for token in described["added_tokens"] if token["content"] == "<|system|>")
    added.update(content=CALL, special=False)
    vocabulary.write_text(json.dumps(described))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("server") / "log.jsonl"


@pytest.fixture(scope="module")
def url(talker, log):
    with serve(talker, "--name", "m", "--log", log) as address:
        yield address


class Task:
    """A config with its data in a folder, and what comes of running it."""

    def __init__(self, folder, url, count=SOME, rows=None, **config):
        self.folder, self.output = folder, folder / "told.txt"
        folder.mkdir(exist_ok=True)
        rows = rows or [{"question": f"What is {number}?", "answer": "7"} for number in range(count)]
        write_rows(folder / "data.jsonl", rows)
        self.config = {
            "run_name": "run", "seed": 1,
            "server": "it", "servers": {"it": {"base_url": str(url), "model": "m", "max_concurrency": 32}},
            "dataset": {"name": "data.jsonl", "target_field": "answer"},
            "prompts": {"user": "{question}"},
            "generation": {"samples_per_prompt": SAMPLES, "max_new_tokens": TOKENS},
            "reward": {"fn": "exact_match", "answer_extractor": "last_number"},
            **config,
        }  # fmt: skip
        (folder / "config.yaml").write_text(yaml.safe_dump(self.config))
        self.run_dir = folder / "outputs" / "run"

    def start(self, *options, script="collect_rollouts.py", config="config.yaml", **process):
        options = "--config", config, *options
        return forks.script(ROOT / script, *options, cwd=self.folder, output=self.output, **process)

    def run(self, *options, code=0, **process):
        """What it told, after it ended with this code and without a traceback."""
        return self.ended(self.start(*options, **process), code)

    def ended(self, running, code, seconds=100):
        running.join(seconds)
        told = self.output.read_text()
        assert running.exitcode == code, told
        assert "Traceback" not in told and "never retrieved" not in told
        return told

    def reaches(self, running, rows):
        """Waits until it has written so many, while it runs."""
        forks.wait_for(lambda: self.written() >= rows, running, self.output)

    def read(self, name):
        if not (self.run_dir / name).exists():
            return []
        rows, bad = read_jsonl(self.run_dir / name)
        assert bad == 0
        return rows

    def rows(self):
        """By id; none may be there twice."""
        rows = self.read("rollouts.jsonl")
        by_id = {row["id"]: plain(row) for row in rows}
        assert len(by_id) == len(rows)
        return by_id

    def written(self):
        """Lines of rollouts.jsonl, whole ones."""
        path = self.run_dir / "rollouts.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def replies(self):
        """Keys in replies.jsonl, the torn tail not counted."""
        path = self.run_dir / "replies.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return {json.loads(line)["key"] for line in lines}


def plain(row):
    """Without what differs from run to run."""
    calls = [{key: value for key, value in call.items() if key != "seconds"} for call in row["tool_log"]]
    return {**{key: value for key, value in row.items() if key != "time"}, "tool_log": calls}


@pytest.fixture
def task(url, tmp_path):
    """`task(...)` makes one in a folder of its own."""
    return lambda *count, **config: Task(tmp_path / f"task{len(list(tmp_path.iterdir()))}", url, *count, **config)


@pytest.fixture(scope="module")
def whole(url, tmp_path_factory):
    """A run that nothing interrupted, started by a Python of its own."""
    task = Task(tmp_path_factory.mktemp("whole"), url, PROMPTS)
    command = [sys.executable, ROOT / "collect_rollouts.py", "--config", "config.yaml"]
    done = subprocess.run(command, cwd=task.folder, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    task.told = done.stdout
    return task


def test_every_rollout_is_a_row_with_all_that_is_known_of_it(whole):
    rows = whole.rows()
    assert len(rows) == PROMPTS * SAMPLES and not whole.read("failures.jsonl")
    right = 0
    for row in rows.values():
        assert [message["role"] for message in row["messages"]] == ["user", "assistant"]
        assert row["id"] == f"{row['prompt_id']}.{row['sample']}" and row["target"] == "7"
        assert row["reward"] == float(row["match"]) == float("<answer>7</answer>" in row["answer"])
        assert row["usage"]["completion_tokens"] == len(row["answer"]) - len("<think></think><answer></answer>") + 5
        assert row["generator"]["model"] == "m" and row["ended"] == "answer" and row["turns"] == 1
        right += row["match"]
    assert len({row["seed"] for row in rows.values()}) == len(rows)
    assert 0.5 < right / len(rows) < 0.7
    assert f"500 of 500 rollouts  reward {right / 500:.3f}" in whole.told
    selected = [row["id"] for row in whole.read("selected.jsonl")]
    first = {(row["prompt_id"], row["answer"]): row["id"] for row in reversed(sorted_like_data(whole)) if row["match"]}
    assert selected == list(first.values())[::-1]  # right ones, by prompt, in the order of the data, none twice


def sorted_like_data(task):
    """Its rows by prompt, as the data has them, whatever order they came in."""

    def place(row):
        return int(row["messages"][0]["content"][len("What is ") : -1]), row["sample"]

    return sorted(task.rows().values(), key=place)


@long
def test_a_thousand_requests_of_which_every_second_fails(whole, task, tmp_path):
    right = {key: without_usage(row) for key, row in whole.rows().items()}
    upstream = whole.config["servers"]["it"]["base_url"]
    with faulty(upstream, "--rate", 0.5, "--hang", 1.5, "--log", tmp_path / "log") as proxy:
        servers = {"it": {"base_url": str(proxy), "model": "m", "max_concurrency": 160, "deadline_s": 5}}
        mine = task(PROMPTS, servers=servers, generation={"samples_per_prompt": 4, "max_new_tokens": TOKENS})
        told = mine.run(code=0)
    assert "Exit codes: 0 finished, even if some requests failed" in collect_rollouts.__doc__
    faults = Counter(note["fault"] for note in notes(tmp_path / "log"))
    assert faults.total() > 1200 and faults.keys() == {*INVENTIONS, *SPOILINGS, None} - ON_REQUEST
    rows, failures = mine.rows(), mine.read("failures.jsonl")
    failed = {row["id"] for row in failures}
    assert len(rows.keys() | failed) == 1000 and not rows.keys() & failed
    assert 5 < len(failed) == len(failures) < 400 and f"{len(failures)} rollouts failed" in told
    assert {row["kind"] for row in failures} <= {"timeout", "unavailable", "malformed"}
    assert all(row["error"].startswith(f"{row['kind']}: ") for row in failures)
    mine.run("--resume", f"servers.it.base_url={upstream}")
    again = mine.rows()
    assert len(again) == 1000 and rows.items() <= again.items()
    for found in (rows, again):
        both = found.keys() & right.keys()
        assert len(both) > 250 and all(without_usage(found[key]) == right[key] for key in both)


def without_usage(row):
    return {key: value for key, value in row.items() if key != "usage"}


# kills


def requests_of(row):
    """Seed and key of every request that a row took."""
    first = next(k for k, message in enumerate(row["messages"]) if message["role"] == "assistant")
    turns = [k for k in range(first, len(row["messages"])) if row["messages"][k]["role"] == "assistant"]
    name = {key: row["generator"][key] for key in ("model", "api", "body")}
    for turn, end in enumerate(turns):
        seed = int(key_of(1, row["id"], turn), 16) % 2**31
        request = Request(row["messages"][:end], TOKENS, 1.0, seed, tools=row.get("tools", []))
        yield seed, key_of("reply", name, asdict(request))


def killed(running):
    running.kill()
    running.join()
    assert running.exitcode == -signal.SIGKILL


@pytest.fixture(scope="module")
def keys(whole):
    """The key of each request of the whole run, by its seed."""
    found = dict(pair for row in whole.rows().values() for pair in requests_of(row))
    assert set(found.values()) == whole.replies()
    return found


def test_killed_at_any_moment_and_resumed(whole, task, log, keys):
    chance, mine = random.Random(0), task()
    known, seen = set(), len(notes(log))
    for more in part((1, 7, 0, 20, 40, 30), every=2):
        before, had = mine.written(), len(known)
        running = mine.start("--resume")
        forks.wait_for(lambda: len(mine.replies()) > had, running, mine.output)  # noqa: B023
        mine.reaches(running, before + more)
        time.sleep(0.01 * chance.random())
        killed(running)
        time.sleep(0.2)  # until the server noticed
        assert not [note for note in notes(log)[seen:] if keys[note["seed"]] in known]
        known, seen = mine.replies(), len(notes(log))
        mine.rows()
    assert fewer(100, 30) < len(known) < 300
    mine.run("--resume")
    assert not [note for note in notes(log)[seen:] if keys[note["seed"]] in known]
    same(mine, whole)


@long
def test_killed_while_all_answers_are_on_their_way(whole, task, url, log):
    mine, seen = task(), len(notes(log))
    for number in range(1, 5):
        with held(url, answers=20):
            running = mine.start("--resume")
            mine.reaches(running, 20 * number)
            time.sleep(0.1)  # until the next requests have arrived
            killed(running)
            time.sleep(0.2)  # until the server noticed
        assert mine.written() == len(mine.replies()) == 20 * number
    mine.run("--resume")
    same(mine, whole)
    answered = Counter(note["seed"] for note in notes(log)[seen:] if note["status"] == 200)
    assert len(answered) == 300 and set(answered.values()) == {1}


@long
def test_killed_while_rows_are_written_from_replies_alone(whole, task, log):
    mine, seen = task(PROMPTS), len(notes(log))
    mine.run_dir.mkdir(parents=True)
    (mine.run_dir / "replies.jsonl").write_bytes((whole.run_dir / "replies.jsonl").read_bytes())
    for _ in range(3):
        before = mine.written()
        running = mine.start("--resume", f"servers.it.base_url={NOBODY}")
        mine.reaches(running, before + 20)
        killed(running)
    assert 60 <= mine.written() < 500
    mine.run("--resume", f"servers.it.base_url={NOBODY}")
    same(mine, whole)
    assert len(notes(log)) == seen


def same(mine, its):
    """That `mine` has the rows, and those selected, that `its` has of the same prompts."""
    count = SAMPLES * len((mine.folder / "data.jsonl").read_text().splitlines())
    rows, prompts = mine.rows(), {row["prompt_id"] for row in mine.rows().values()}
    assert len(rows) == count
    assert rows == {key: row for key, row in its.rows().items() if row["prompt_id"] in prompts}
    selected = [[plain(row) for row in task.read("selected.jsonl")] for task in (mine, its)]
    assert selected[0] == [row for row in selected[1] if row["prompt_id"] in prompts] != []


@long
def test_episodes_with_tools_are_killed_and_resumed(task, log):
    tools = {"names": ["python.run"], "max_turns": 4}
    its, mine = task(40, tools=tools), task(40, tools=tools)
    told = its.run("sandbox.allow_unsafe=true")
    rows = its.rows().values()
    assert Counter(row["turns"] for row in rows).keys() == {1, 2, 3, 4} and {"answer", "turns"} == {
        row["ended"] for row in rows
    }
    for row in rows:
        assert len(row["tool_log"]) == row["turns"] - (row["ended"] == "answer")
        results = [message["content"] for message in row["messages"] if message["role"] == "tool"]
        assert all(json.loads(result)["result"]["stdout"] == "42\n" for result in results)
        assert row["messages"][-1]["role"] == ("assistant" if row["ended"] == "answer" else "tool")
        assert [tool["function"]["name"] for tool in row["tools"]] == ["python_run"]
    assert f"tools: {sum(len(row['tool_log']) for row in rows)} calls, 0 of them" in told
    assert f"{sum(row['ended'] == 'turns' for row in rows)} by tools.max_turns" in told
    keys = dict(pair for row in rows for pair in requests_of(row))
    assert set(keys.values()) == its.replies()
    known, seen = set(), len(notes(log))
    for more in (5, 30, 20):
        had = len(known)
        running = mine.start("--resume", "sandbox.allow_unsafe=true")
        forks.wait_for(lambda: len(mine.replies()) >= had + more, running, mine.output)  # noqa: B023
        killed(running)
        time.sleep(0.2)
        assert not [note for note in notes(log)[seen:] if keys[note["seed"]] in known]
        known, seen = mine.replies(), len(notes(log))
    mine.run("--resume", "sandbox.allow_unsafe=true")
    assert not [note for note in notes(log)[seen:] if keys[note["seed"]] in known]
    same(mine, its)


# ends


@pytest.mark.parametrize(("number", "code"), part([(signal.SIGTERM, 143), (signal.SIGINT, 130)], every=2))
def test_interrupted_after_the_open_rollouts(whole, task, log, number, code):
    mine, seen = task(), len(notes(log))
    running = mine.start()
    mine.reaches(running, 51)
    os.kill(running.pid, number)
    told = mine.ended(running, code, 20)
    assert "finishing what has begun" in told
    assert 50 < len(mine.rows()) == len(mine.replies()) < 300 and f"{len(mine.rows())} of 300 rollouts" in told
    assert not (mine.run_dir / "selected.jsonl").exists()
    told = mine.run("--resume")
    assert "of 300 rollouts are there already" in told
    same(mine, whole)
    asked = Counter(note["seed"] for note in notes(log)[seen:])
    assert len(asked) == 300 and set(asked.values()) == {1}


@pytest.mark.parametrize(
    ("fault", "sentence"),
    part([("unauthorized", "the key in api_key_env is refused"), ("quota", "the quota is used up")], every=2),
)
def test_a_server_that_refuses_everything_ends_the_run(whole, task, fault, sentence):
    mine = task()
    running = mine.start()
    mine.reaches(running, 51)
    killed(running)
    rows, replies = mine.rows(), mine.replies()
    with faulty(NOBODY, "--only", fault) as proxy:
        told = mine.run("--resume", f"servers.it.base_url={proxy}", code=6)
    assert told.count("error: servers.it: ") == 1 and sentence in told
    assert mine.replies() == replies and rows.items() <= mine.rows().items()
    assert not mine.read("failures.jsonl")
    assert not (mine.run_dir / "selected.jsonl").exists()
    mine.run("--resume")
    same(mine, whole)


@long
def test_a_server_that_dies_ends_the_run_and_another_one_goes_on(whole, task):
    mine, upstream = task(), whole.config["servers"]["it"]["base_url"]
    with faulty(upstream, "--rate", 0) as proxy:
        running = mine.start(f"servers.it.base_url={proxy}", "servers.it.max_retries=1")
        mine.reaches(running, 51)
        os.kill(proxy.pid, signal.SIGKILL)
        told = mine.ended(running, 6, 30)
        assert "64 requests in a row failed" in told and "--resume" in told
    assert 50 < len(mine.rows()) < 300 and len(mine.read("failures.jsonl")) >= 63
    with faulty(upstream, "--rate", 0) as proxy:
        mine.run("--resume", f"servers.it.base_url={proxy}")
    same(mine, whole)


@long
@pytest.mark.parametrize("name", ["replies", "rollouts"])
def test_a_file_that_cannot_grow(whole, task, name):
    per_row = [(whole.run_dir / f"{name}.jsonl").stat().st_size // 500 for name in ("replies", "rollouts")]
    assert 1.5 * per_row[0] < per_row[1]
    largest = 200 * per_row[0] if name == "replies" else 300 * int(1.2 * per_row[0])
    mine = task()
    told = mine.run(code=74, largest=largest)
    assert f"outputs/run{'/replies.jsonl' if name == 'replies' else ': rows'}" in told
    assert "(ulimit -f), then --resume" in told
    assert 50 < len(mine.rows()) < 300 and not (mine.run_dir / "selected.jsonl").exists()
    mine.run("--resume")
    same(mine, whole)


@long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_full_disk(whole, task):
    mine = task(PROMPTS)
    mine.run_dir.parent.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", mine.run_dir.parent]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount")
    try:
        told = mine.run(code=74)
        assert "No space left on device" in told and 50 < len(mine.rows()) < 500
        subprocess.run([*command[:4], "remount,size=9m", *command[5:]], check=True)
        mine.run("--resume")
        same(mine, whole)
    finally:
        subprocess.run(["umount", mine.run_dir.parent], check=True)


def test_a_place_that_cannot_be_written(task):
    mine = task(3)
    (mine.folder / "file").touch()
    told = mine.run("output_dir=file", code=74)
    assert "file/run: cannot keep a run log here" in told and "choose another output_dir" in told


# what may be asked of it


def test_it_says_what_it_does_without_doing_it(task, log):
    server = {"base_url": NOBODY, "model": "m", "prices": [0, 1e6], "api_key_env": "NO_KEY"}
    mine, seen = task(3, servers={"it": server}), []
    told = mine.run("--dry-run")
    assert "6 rollouts, 2 of each prompt, by m at http://127.0.0.1:9/v1" in told
    assert "at most 60 tokens written in each, 360 in all" in told and "at most 360.00" in told
    assert "user: What is 0?" in told and not (mine.folder / "outputs").exists()
    told = mine.run("--dry-run", "tools.names=[python.run]")
    assert '"name": "python_run"' in told and "at most 360 tokens" in told  # six turns of 60
    assert "nothing is asked twice" in mine.run("--help")
    told = mine.run(code=2)
    assert "servers.it.api_key_env: the environment variable NO_KEY is not set" in told
    assert seen == []


def test_a_dry_run_shows_what_the_template_of_a_local_model_adds(task, talker):
    template = "{% if messages[0].role != 'system' %}<|system|>Be kind.<|im_end|>{% endif %}" + TEMPLATE
    model = {"name": str(talker), "backend": "plain", "max_seq_length": 256, "chat_template": template}
    mine, tool = task(3, server=None, model=model), ["tools.names=[python.run]"]
    for options, prompt in (
        ([], "<|system|>Be kind.<|im_end|><|user|>What is 0?<|im_end|><|assistant|>\n"),
        (["prompts.system=Be brief."], "<|system|>Be brief.<|im_end|><|user|>What is 0?<|im_end|><|assistant|>\n"),
        ([*tool, "tools.protocol=native"], "<|system|>Be kind.<|im_end|><|user|>What is 0?<|im_end|><|assistant|>t\n"),
        (tool, "<|system|>You can use tools. End every message with exactly one JSON object,"),
    ):
        assert f"the first prompt, as the chat template writes it:\n{prompt}" in mine.run("--dry-run", *options)
    assert "error: model.name: 'nowhere' could not be loaded" in mine.run("--dry-run", "model.name=nowhere", code=2)
    assert "selected.jsonl will have right answers only" in mine.run("--dry-run")
    assert "right answers alone" not in mine.run("--dry-run", "select.only_matches=false")


def test_smoke_is_a_small_run_beside_the_other(task):
    mine = task(50, generation={"samples_per_prompt": 5, "max_new_tokens": 60})
    for _ in range(2):
        told = mine.run("--smoke", "4")
        assert "8 of 8 rollouts" in told and "generation.samples_per_prompt 5 -> 2" in told
    rows, _ = read_jsonl(mine.folder / "outputs/run-smoke/rollouts.jsonl")
    assert len(rows) == 8 and not mine.run_dir.exists()


def test_a_resume_may_change_some_things_and_asks_for_what_is_missing(task, log):
    mine = task(20)
    mine.run("dataset.max_rows=10")
    first = mine.rows()
    assert len(first) == 20
    assert "already holds a run: continue it with --resume" in mine.run(code=2)
    told = mine.run("--resume", "generation.temperature=0.5", code=2)
    assert "generation.temperature: 1.0 -> 0.5" in told and "--allow-config-change" in told
    seen = len(notes(log))
    mine.run("--resume", "dataset.max_rows=10", "select.best_of=1", f"servers.it.base_url={NOBODY}")
    assert len(notes(log)) == seen
    best = mine.read("selected.jsonl")
    assert best and len(best) == len({row["prompt_id"] for row in best}) and all(row["match"] for row in best)
    mine.run("--resume", "generation.samples_per_prompt=3")
    assert len(notes(log)) == seen + 40 and len(mine.rows()) == 60 and first.items() <= mine.rows().items()
    mine.run("--resume", "generation.samples_per_prompt=1", f"servers.it.base_url={NOBODY}")
    assert {row["sample"] for row in mine.read("selected.jsonl")} == {0} and len(mine.rows()) == 60


def test_the_same_prompt_twice_is_answered_twice(task):
    row = {"question": "What?", "answer": "7"}
    mine = task(rows=[row, {**row, "answer": "8"}, row], select={"distinct": False, "only_matches": False})
    mine.run()
    ids = Counter(row["prompt_id"] for row in mine.rows().values())
    assert len(ids) == 3 and set(ids.values()) == {2}
    assert sum(prompt_id.endswith("-2") for prompt_id in ids) == 1
    assert len({row["seed"] for row in mine.rows().values()}) == 6
    assert [row["target"] for row in mine.read("selected.jsonl")] == ["7", "7", "8", "8", "7", "7"]


def test_chats_in_a_column(task):
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    prompts = {"messages_field": "chat"}
    mine = task(rows=[{"chat": chat, "answer": "7"}] * 2, prompts=prompts)
    mine.run()
    assert all(row["messages"][:3] == chat and len(row["messages"]) == 4 for row in mine.rows().values())
    for bad in (chat[:2], [], "a", ["a"], [{"content": "a"}], {"role": "user"}):
        told = task(rows=[{"chat": bad, "answer": "7"}], prompts=prompts).run(code=2)
        assert "prompts.messages_field: 'chat' has" in told and "name another column" in told


def test_rows_without_a_right_answer_are_left_out_and_named(task):
    mine = task(rows=[{"question": f"{number}?", "answer": answer} for number, answer in enumerate(["7", "no", "8"])])
    told = mine.run()
    assert "1 of 3 train rows have no target and are left out: line 2 of 'data.jsonl' (reward.target_extractor" in told
    assert sorted(row["target"] for row in mine.rows().values()) == ["7", "7", "8", "8"]


def test_a_system_prompt_stands_before_chats_without_one(task):
    asked, own = [{"role": "user", "content": "a"}], {"role": "system", "content": "b"}
    rows = [{"chat": chat, "answer": "7"} for chat in (asked, [own, *asked], [*asked, own, *asked])]
    mine = task(rows=rows, prompts={"messages_field": "chat", "system": "c"}, generation={"samples_per_prompt": 1})
    assert "2 of 3 chats have a system message of their own, and keep it" in mine.run()
    systems = [[m["content"] for m in row["messages"] if m["role"] == "system"] for row in mine.rows().values()]
    assert sorted(systems) == [["b"], ["b"], ["c"]]
    assert {row["messages"][0]["role"] for row in mine.rows().values()} == {"system", "user"}


def test_mistakes_are_told_before_anybody_is_asked(task, log):
    seen = len(notes(log))
    told = task(3, prompts={"user": "{problem}"}).run(code=2)
    assert "column 'problem' is missing from line 1 of" in told and "name the right column in prompts.user" in told
    told = task(rows=[{"question": "x", "answer": ""}]).run(code=2)
    assert "error: dataset.target_field: 1 of 1 train rows have no target, first line 1 of" in told
    told = task(3, server=None).run(code=2)
    assert "give one of the two: a server to ask, or a model to load" in told
    assert len(notes(log)) == seen


def test_a_reward_that_raises_ends_the_run_and_costs_no_reply(task):
    mine = task(3, reward={"fn": "bad_reward.judge", "answer_extractor": "last_number"})
    bad = mine.folder / "bad_reward.py"
    bad.write_text("import sys\ndef judge(predictions):\n    sys.exit()\n")
    told = mine.run(code=7)
    assert re.search(
        r"error: rollout \w+\.\d: reward 'bad_reward.judge' raised SystemExit \(bad_reward.py:3\) for ", told
    )
    assert told.endswith("traceback is in outputs/run/traceback.log; fix it, then continue with --resume\n")
    assert "SystemExit" in (mine.run_dir / "traceback.log").read_text()
    bad.write_text("def judge(predictions):\n    return [1.0]\n")
    mine.run("--resume")
    assert len(mine.rows()) == 3 * SAMPLES


@long
def test_a_reward_that_hangs_is_left_or_bounded(task):
    mine = task(3, reward={"fn": "bad_reward.judge", "answer_extractor": "last_number"})
    bad = mine.folder / "bad_reward.py"
    bad.write_text(
        "import pathlib, time\ndef judge(predictions):\n    pathlib.Path('hangs').touch(); time.sleep(999)\n"
    )
    told = mine.run("reward.timeout_s=0.5", code=7)
    assert re.search(r"error: rollout \w+\.\d: reward 'bad_reward.judge' did not answer within reward.timeout_s", told)
    (mine.folder / "hangs").unlink()
    running = mine.start("--resume")
    forks.wait_for((mine.folder / "hangs").exists, running, mine.output)
    os.kill(running.pid, signal.SIGINT)
    mine.ended(running, 130)
    assert mine.written() == 0
    bad.write_text("def judge(predictions):\n    return [1.0]\n")
    mine.run("--resume")
    assert len(mine.rows()) == 3 * SAMPLES


def test_without_a_reward_rows_have_none(task):
    mine = task(3, reward=None)
    told = mine.run()
    assert "reward" not in told
    assert all("reward" not in row and "match" not in row for row in mine.rows().values())
    assert len(mine.read("selected.jsonl")) > 3


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            {"reward": {"fn": "exact_match"}, "dataset": {"name": "data.jsonl"}},
            "reward 'exact_match' compares with right",
        ),
        ({"prompts": {"user": "{question:d}"}}, "prompts.user: ValueError"),
        ({"generation": {"temperature": 0, "samples_per_prompt": 2}}, "greedy samples of a prompt are all alike"),
        ({"servers": {"it": {"base_url": "http://me:secret@x:9/v1", "model": "m"}}}, "holds a name or password"),
        ({"servers": {"it": {"base_url": "http://127.0.0.1:99999/v1", "model": "m"}}}, "no address: Port out of range"),
        ({"servers": {"it": {"base_url": "localhost:8000/v1", "model": "m"}}}, "no address: 'localhost:8000/v1'"),
        ({"server": "that"}, "server: no server has this name; known: it; add it to servers"),
        (
            {"generation": {"thinking": {"budget_tokens": 9}}},
            "all but `keep` is for a local model: move it to servers.it.thinking",
        ),
        ({"server": None, "model": {"name": "m", "max_seq_length": 60}}, "leaves no room for a prompt"),
    ],
)
def test_what_can_not_work_is_told_before_anybody_is_asked(task, config, expected):
    assert expected in task(3, **config).run(code=2)


def test_a_start_that_fails_leaves_no_run_behind(task, url):
    mine = task(3, servers={"it": {"base_url": str(url), "model": "m", "api_key_env": "NO_KEY"}})
    assert "NO_KEY is not set" in mine.run(code=2)
    assert len(mine.run("servers.it.api_key_env=null") and mine.rows()) == 6  # without --resume


# which rows are kept


@pytest.mark.parametrize(
    ("ending", "right"),
    [({}, True), ({"ended": "truncated"}, False), ({"ended": "tokens"}, False), ({"reasoning_ended": False}, False)],
)
def test_a_rollout_that_was_cut_off_is_not_right(ending, right):
    job = collect_rollouts.RolloutJob("p", 0, {"target": "295"}, [])
    episode = Episode([], "To compare 295", **ending)
    found = collect_rollouts.judged(judge_by(answer_extractor="last_number"), None, job, episode)
    assert (found["match"], found["reward"], bool(found["malformed"])) == (right, float(right), not right)


def row(number, prompt="p", reward=1.0, match=True, tokens=5, **fields):
    said = fields.pop("said", f"{prompt}{number}")
    plain = {"id": f"{prompt}.{number}", "prompt_id": prompt, "ended": "answer", "reasoning_ended": True}
    plain |= {"messages": [{"role": "assistant", "content": said}], "usage": {"completion_tokens": tokens}}
    return plain | {"reward": reward, "match": match} | fields


@pytest.mark.parametrize(
    ("settings", "kept", "told"),
    [
        ({}, [0, 1, 2, 3, 4], "1 repeated, 4 cut off"),
        ({"distinct": False}, [0, 1, 2, 3, 4, 5], "4 cut off"),
        ({"only_matches": True}, [0, 3], "1 repeated, 4 cut off, 3 not right"),
        ({"best_of": 1}, [3], "4 cut off, 4 not among the best 1 of a prompt, 1 repeated"),
        ({"best_of": 2}, [0, 3], "3 not among the best 2 of a prompt, 4 cut off, 1 repeated"),
        ({"best_of": 9}, [0, 1, 2, 3, 4], "1 repeated, 4 cut off"),
    ],
)
def test_selection(tmp_path, settings, kept, told):
    rows = [
        row(0), row(1, reward=0.0, match=False), row(2, reward=None, match=False), row(3, tokens=4),
        row(4, reward=-0.5, match=False), row(5, said="p0"), row(6, ended="truncated"), row(7, ended="turns"),
        row(8, ended="tokens"), row(9, reasoning_ended=False),
    ]  # fmt: skip
    found, about = selected(rows, tmp_path, **settings)
    assert found == [rows[number] for number in kept]
    assert sorted(about.strip(" ()").removesuffix(" left out").split(", ")) == sorted(told.split(", "))


def selected(rows, folder, **settings):
    """The rows that are kept, read back from their file."""
    path = folder / "rollouts.jsonl"
    path.write_bytes(b"torn {\n" + b"".join(map(encode, rows)))
    found, about = select([entry for _, entry in rollouts(path)], Collection(**{"only_matches": False} | settings))
    return [json.loads(line) for line in lines(path, found)], about


def test_the_best_of_each_prompt(tmp_path):
    rows = [row(0, "p", 0.5), row(0, "q", None), row(1, "p", 0.75), row(1, "q", 0.0), row(2, "p", 0.75), row(2, "q", 0)]
    found, _ = selected(rows, tmp_path, best_of=1)
    assert [row["id"] for row in found] == ["p.1", "q.1"]  # the first of equals
    assert select([], Collection(best_of=1)) == ([], "")


# who answers


def test_a_model_in_this_process_says_what_the_server_says(whole, task, talker):
    local = {"server": None, "model": {"name": str(talker), "backend": "plain", "max_seq_length": 256}}
    mine = task(80, **local)
    mine.run("generation.batch_size=7")
    rows, others = mine.rows(), whole.rows()
    assert len(rows) == 160
    for key, row in rows.items():
        its = others[key]
        assert all(row[part] == its[part] for part in row.keys() - {"generator", "usage"})
        assert row["usage"] | {"reasoning_tokens": 0} == its["usage"]
        assert row["usage"]["reasoning_tokens"] == len(row["answer"].partition("</think>")[0]) - len("<think>")


def test_who_asks_a_server_loads_no_torch(task):
    heavy = ("torch", "transformers", "datasets", "huggingface_hub")
    script = (
        "import runpy, sys\nsys.argv = ['collect_rollouts.py', '--config', 'config.yaml']\n"
        f"try: runpy.run_path({str(ROOT / 'collect_rollouts.py')!r}, run_name='__main__')\n"
        f"except SystemExit as end: print('ended', end.code, [name for name in {heavy} if name in sys.modules])"
    )
    mine = task(3)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=mine.folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "ended 0 []" in done.stdout


# what it is for


@long
def test_a_student_learns_from_what_was_selected(task, talker, tmp_path_factory):
    """Rollouts of a server, the right ones selected, SFT on them, rollouts again: .6 right before, nearly all after."""
    taught = task(100)
    taught.run()
    learned = taught.read("selected.jsonl")
    assert learned and all("<answer>7</answer>" in row["answer"] for row in learned)
    config = {
        "run_name": "student",
        "model": {"name": str(talker), "backend": "plain", "max_seq_length": 256},
        "dataset": {"name": "outputs/run/selected.jsonl", "test_split_size": 0},
        "optimizer": {"learning_rate": 0.1},
        # at this rate the loss is thrown up before it falls, which is quicker, and a collapse to who watches
        "train": {"steps": 110, "batch_size": 8, "max_length": 256, "on_collapse": "warn"},
    }
    (taught.folder / "sft.yaml").write_text(yaml.safe_dump(config))
    told = taught.run(script="sft_train.py", config="sft.yaml")
    assert "</think><answer>7</answer><|im_end|>»" in told
    student = taught.folder / "outputs/student/final"
    after = task(100, server=None, model={"name": str(student), "backend": "plain", "max_seq_length": 256})
    after.run()
    right = [row["match"] for row in after.rows().values()]
    assert sum(row["match"] for row in taught.rows().values()) < 0.75 * len(right) < 0.9 * len(right) < sum(right)


# what is told of them


def test_the_samples_of_a_prompt_are_one_witness(capsys):
    """50 prompts, half of them always answered right, eight times each: 400 rollouts say no more than 50 do."""
    progress = CollectionProgress(SimpleNamespace(remote=None, run_dir=Path("outputs/run")), Screen(), 400)
    for number in range(400):
        prompt = f"{number % 50:04x}" + ("-2" if number > 199 else "")  # each stands in the data twice
        progress.add(row(number, prompt, match=number % 2 > 0) | {"tool_log": []})
    progress.summary()
    low, high = (
        float(end) / 100 for end in capsys.readouterr().out.partition("right 50.0 % [")[2].partition("]")[0].split()
    )
    lowest, highest = wilson(25, 50)
    assert low == pytest.approx(lowest, abs=0.006) and high == pytest.approx(highest, abs=0.006)


def test_rows_that_training_holds_out_are_not_asked_about(tmp_path, monkeypatch):
    """Whatever the words around the question, and in whichever of the trainers."""
    monkeypatch.chdir(tmp_path)
    write_task(tmp_path, changed(SCORE, {"dataset.test_split_size": 5}), tmp_path)
    write_task(tmp_path, changed(SELFPLAY, {
        "dataset.test_split_size": 5, "prompts.user": "Add up {question}.", "prompts.system": "You add up.",
    }), tmp_path, name="play.yaml")  # fmt: skip
    held_out = [
        [row["question"] for row in load_data(load(kind, Path(name), []))[0].test]
        for kind, name in ((ScoreConfig, "tiny.yaml"), (SelfPlayConfig, "play.yaml"))
    ]
    assert len(held_out[0]) == 5 and held_out[0] == held_out[1]
    sft = [{"prompt": row["question"], "completion": row["answer"]} for row in sums()]
    write_rows(tmp_path / "sft.jsonl", sft)
    chats = load_splits(SFTDataset(name="sft.jsonl", test_split_size=5), (), question_of).test
    assert [row["prompt"] for row in chats] == held_out[0]
    config = CollectConfig(
        run_name="x", model={"name": str(tmp_path), "max_seq_length": 200},
        dataset={"name": "rows.jsonl", "test_split_size": 5}, prompts={"user": "How much is {question}?"},
    )  # fmt: skip
    jobs, _ = collect_rollouts.load_jobs(config, Screen())
    asked = [job.row["question"] for job in jobs]
    assert len(asked) == 20 and not {*asked} & {*held_out[0]}
    with pytest.raises(ConfigError, match="names no column"):
        load_data(load(ScoreConfig, Path("tiny.yaml"), ["prompts.user=Hello"]))

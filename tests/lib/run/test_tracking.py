"""What a dashboard is told: read back from the files of W&B runs without a network; and that no run depends on it."""

import contextlib
import json
import os
import struct
import zlib

import psutil
import pytest
import wandb
import yaml
from helpers.tiny import call, limits, stages, sums
from wandb.proto import wandb_internal_pb2

import collect_rollouts
import rl_train_gspo_selfplay
import sft_train
import train
from data.builders import write_rows
from lib.core.config import CollectConfig, load
from lib.run.runlog import read_jsonl
from lib.run.tracking import Tracker, _mode

SMALL = {"max_new_tokens": 4}
SHARED = {
    "dataset": {"name": "rows.jsonl", "target_field": "answer", "test_split_size": 8},
    "prompts": {"user": "{question}"},
    "reward": {"fn": "exact_match"},
    "tracking": {"backend": "wandb"},
}
CONFIGS = {
    train: SHARED | {
        "prompts": {"user": "{question}", "self_correction": "R"},
        "generation": limits(prompts=(16, 64), answers=(4, 4)),
        "train": stages((1, 1), 2),
        "eval": {"temperature": 1.0},
    },
    rl_train_gspo_selfplay: SHARED | {
        "generation": {"max_prompt_length": 16, **SMALL},
        "train": {"steps": 1, "batch_size": 2, "group_size": 2, "minibatches": 1},
        "eval": {"temperature": 1.0, "samples_per_prompt": 2},
    },
    sft_train: {key: SHARED[key] for key in ("tracking",)} | {
        "dataset": {"name": "chats.jsonl", "test_split_size": 4},
        "train": {"steps": 2, "batch_size": 2, "max_length": 64, "eval_every": 1},
    },
    collect_rollouts: {key: SHARED[key] for key in ("prompts", "reward", "tracking")} | {
        "dataset": {"name": "rows.jsonl", "target_field": "answer", "max_rows": 3}, "generation": SMALL,
    },
}  # fmt: skip
KEYS = {  # numbers, intervals and tables of each script
    train: (["stage1/loss", "stage2/reward_attempt2", "eval/delta"], ["eval/delta", "eval/acc_attempt2"],
            ["eval/samples"]),
    rl_train_gspo_selfplay: (["stage1/loss", "eval/acc"], ["eval/acc", "eval/pass_at_2/pass"], ["eval/samples"]),
    sft_train: (["train/loss", "train/grad_norm", "eval/loss"], [], []),
    collect_rollouts: (["rollouts/rollouts", "rollouts/cost"], ["rollouts/right"], []),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def service():
    """W&B's own process does not outlive these tests."""
    yield
    with contextlib.suppress(ConnectionError):  # a test has killed it
        wandb.teardown()


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """An environment that says nothing of W&B, and no home with a key in it."""
    for name in list(os.environ):
        if name.startswith("WANDB_"):
            monkeypatch.delenv(name)
    for name, value in {"WANDB_SILENT": "true", "WANDB_CONSOLE": "off", "NETRC": str(tmp_path / "netrc")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def task(tiny_folder, tmp_path):
    """`task(script)` writes data and the config of a script, and returns its name."""

    def write(script):
        rows = sums()
        chats = [{"prompt": row["question"], "completion": row["answer"]} for row in rows]
        for name, lines in (("rows", rows), ("chats", chats)):
            write_rows(tmp_path / f"{name}.jsonl", lines)
        model = {"name": str(tiny_folder), "backend": "plain", "max_seq_length": 128}
        if script is not collect_rollouts:
            model |= {"adapters": {"lora": {"r": 2, "alpha": 4}}}
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(CONFIGS[script] | {"run_name": "tiny", "model": model}))
        return tmp_path / "config.yaml"

    return write


def records(run_dir):
    """Every record of a run's W&B files, in W&B's own classes: their frames are those of a LevelDB log."""
    wandb.teardown()  # its process ends when all is written, as at the end of a script
    for path in sorted(run_dir.glob("wandb/offline-run-*/run-*.wandb")):
        data, place, whole = path.read_bytes(), 7, b""
        assert data[:4] == b":W&B"
        while place + 7 <= len(data):
            if 2**15 - place % 2**15 < 7:  # what is left of a block is no frame
                place += 2**15 - place % 2**15
            check, size, kind = struct.unpack("<IHB", data[place : place + 7])
            body = data[place + 7 : place + 7 + size]
            assert check == zlib.crc32(data[place + 6 : place + 7] + body)
            whole, place = whole + body, place + 7 + size
            if kind in (1, 4):  # the only one, or the last one, of a record
                yield wandb_internal_pb2.Record.FromString(whole)
                whole = b""


def history(run_dir):
    """Everything that was logged: a list of values for each name."""
    logged = {}
    for record in records(run_dir):
        for item in record.history.item:
            logged.setdefault(item.key or "/".join(item.nested_key), []).append(json.loads(item.value_json))
    return logged


@pytest.mark.parametrize("script", CONFIGS, ids=lambda script: script.__name__)
def test_every_script_tells_it_all(script, task, tmp_path, monkeypatch):
    monkeypatch.setattr("lib.run.tracking.SAMPLES", 2)
    for name, value in {"RUN_GROUP": "sums", "TAGS": "tiny", "NOTES": "a test"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    assert call(script, "--config", task(script)) == 0
    run_dir = tmp_path / "outputs/tiny"
    begun = next(record.run for record in records(run_dir) if record.HasField("run"))
    assert (begun.project, begun.display_name, begun.run_group) == ("rematch", "tiny", "sums")
    assert (list(begun.tags), begun.notes) == (["tiny"], "a test")
    assert begun.run_id == (run_dir / "wandb_id").read_text()
    config = {entry.key: json.loads(entry.value_json) for entry in begun.config.update}
    assert config["tracking"] == CONFIGS[script]["tracking"] | config["tracking"]
    assert yaml.safe_load((run_dir / "config.yaml").read_text()).items() <= config.items()
    logged, (numbers, intervals, tables) = history(run_dir), KEYS[script]
    assert all(isinstance(value, int | float) for name in numbers for value in logged[name])
    for name in intervals:
        ends = zip(logged[f"{name}_ci95/low"], logged[f"{name}_ci95/high"], strict=True)
        assert all(low <= high for low, high in ends)
    for name in tables:
        [folder] = run_dir.glob("wandb/offline-run-*/files")
        table = json.loads((folder / logged[f"{name}/path"][-1]).read_text())
        texts, _ = read_jsonl(run_dir / "generations.jsonl")
        text = next(row for row in texts if row["when"] == texts[-1]["when"])  # the first one of the last evaluation
        cells = [text[name] if isinstance(text[name], str | int | float) else json.dumps(text[name])
                 for name in table["columns"]]  # fmt: skip
        assert len(table["data"]) == 2 and table["data"][0] == cells
    if tables:
        rows, _ = read_jsonl(run_dir / "evaluations.jsonl")
        assert logged[intervals[0]] == [row[intervals[0].removeprefix("eval/")] for row in rows]


def tracker(path, *overrides, resume=False, told=None):
    told = [] if told is None else told
    return Tracker(load(CollectConfig, path, list(overrides)), resume, told.append)


def begun(tmp_path):
    return [(r.run.run_id, r.run.display_name) for r in records(tmp_path / "outputs/tiny") if r.HasField("run")]


def test_a_run_has_an_id_of_its_own_and_a_resumed_one_goes_on_in_it(task, tmp_path):
    path = task(collect_rollouts)
    for resume, rows in ((False, 1), (True, 2), (False, 3)):
        (tmp_path / "outputs/tiny").mkdir(parents=True, exist_ok=True)
        with tracker(path, resume=resume) as board:
            board.log("rollouts", {"n": rows, "no": float("nan"), "what": "text"}, rows)
    logged = history(tmp_path / "outputs/tiny")
    assert sorted(logged["rollouts/n"]) == sorted(logged["global_step"]) == [1, 2, 3]
    assert {"rollouts/no", "rollouts/what"}.isdisjoint(logged)
    ids = [id for id, _ in begun(tmp_path)]
    assert sorted(map(ids.count, set(ids))) == [1, 2]


SERVER = (
    "model=null", "server=it", "servers.it.model=m", "servers.it.base_url=http://x/v1",
    "servers.it.extra_body.key=hush-hush",
)  # fmt: skip


def test_the_variables_of_wandb_come_first_and_secrets_stay_here(task, tmp_path, monkeypatch):
    path = task(collect_rollouts)
    (tmp_path / "outputs/tiny").mkdir(parents=True)
    for name, value in {"NAME": "mine", "RUN_ID": "my-id", "TAGS": "a,b", "MODE": "offline"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    wandb.teardown()  # it reads its variables once
    with tracker(path, *SERVER):
        pass
    assert begun(tmp_path) == [("my-id", "mine")] and not (tmp_path / "outputs/tiny/wandb_id").exists()
    sent = str(list(records(tmp_path / "outputs/tiny")))
    assert "base_url" in sent and "hush-hush" not in sent and "http://x/v1" not in sent
    monkeypatch.setenv("WANDB_MODE", "disabled")
    wandb.teardown()
    with tracker(path) as board:
        board.log("rollouts", {"n": 1}, 1)
    assert len(begun(tmp_path)) == 1


def test_it_is_online_where_a_key_is_found(tmp_path, monkeypatch):
    assert _mode() == "offline"
    (tmp_path / "netrc").write_text(f"machine api.wandb.ai\n  login user\n  password {'a' * 40}\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("WANDB_BASE_URL", "https://api.wandb.ai")
    wandb.teardown()
    assert _mode() == "online"
    (tmp_path / "netrc").unlink()
    monkeypatch.setenv("WANDB_API_KEY", "b" * 40)
    assert _mode() == "online"


def test_no_run_depends_on_it(task, tmp_path, monkeypatch):
    path, told = task(collect_rollouts), []
    (tmp_path / "outputs/tiny").mkdir(parents=True)
    wandb.teardown()
    with monkeypatch.context() as patch:
        patch.setenv("WANDB_SERVICE", "nobody")  # a process of W&B that is there already
        with tracker(path, told=told) as board:
            board.log("rollouts", {"n": 1}, 1)
    assert len(told) == 1 and "WANDB_SERVICE" in told[0]
    with tracker(path, told=told) as board:
        for process in psutil.Process().children(recursive=True):
            if process.name() == "wandb-core":
                process.kill()
                process.wait()
        for step in range(3):
            board.log("rollouts", {"n": step}, step)
    assert len(told) == 2 and "tracking.backend: wandb failed" in told[1] and "continues without it" in told[1]


def test_tensorboard_is_told_the_same(task, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with tracker(task(collect_rollouts), "tracking.backend=tensorboard", *SERVER) as board:
        board.log("eval", {"acc": 0.5, "acc_ci95": [0.25, 0.75]}, 3, [{"text": "hello"}])
    events = EventAccumulator(str(tmp_path / "outputs/tiny/rematch")).Reload()
    assert [(point.step, point.value) for point in events.Scalars("eval/acc_ci95/high")] == [(3, 0.75)]
    assert b"hello" in events.Tensors("eval/samples/text_summary")[0].tensor_proto.string_val[0]
    told = events.Tensors("config/text_summary")[0].tensor_proto.string_val[0]
    assert b"model: m" in told and b"hush-hush" not in told and b"http://x/v1" not in told

"""Weights go to a stand-in of the Hugging Face Hub and come back, by its real client, also where it fails."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml
from conftest import long
from helpers import tiny
from helpers.hub import environment, stand_in
from huggingface_hub import ModelCard, constants
from safetensors.torch import load_file

import evaluate
import push
import sft_train
import train
from data.builders import write_rows
from lib.core.config import HubSettings, ScoreConfig, load
from lib.core.errors import ConfigError
from lib.core.interrupts import Interrupts
from lib.run import outbox as outbox_module
from lib.run.hub import local_adapter
from lib.run.manifest import MANIFEST
from lib.run.outbox import OUTBOX, REPO, Publisher, _locked, name_of, push_all, put, revision_of, waiting

TOKEN = "hf_this_is_told_to_nobody"
ROOT = Path(__file__).parents[2]
CONFIG = {
    "run_name": "run",
    "model": tiny.model(2),
    "dataset": {"name": "rows.jsonl", "test_split_size": 4},
    "prompts": {"user": "{question}", "self_correction": "again"},
    "reward": {"fn": "hub_reward.digits", "accept_cut": True},
    "generation": tiny.limits(prompts=(16, 40), answers=(4, 4)),
    "optimizer": {"learning_rate": 0.01},
    "train": tiny.stages((2, 1), 4, checkpoint_every=1, keep_best=False, on_collapse="warn", beta2=0.1),
    "eval": {"max_examples": 2, "selection_examples": 0},
    "hub": {"repo_id": "me/run"},
}
REVISIONS = ["main", "stage1-step_1", "stage1-step_2", "stage2-step_1"]
REWARD = """
def digits(predictions):
    return [sum(c in "13579" for c in text) / 4 - len(text) / 40 for text in predictions]
"""
OPTIMIZER = ("optimizer.bin", "scheduler.bin", "random_states_0.pkl", "objects_0.bin")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub, which this process and those that it starts use; the current folder is empty."""
    monkeypatch.chdir(tmp_path)
    with stand_in(TOKEN) as hub:
        for name, value in environment(hub, tmp_path / "hf").items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)  # read from the environment when it was imported
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf/hub"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        yield hub


@pytest.fixture
def config(tiny_folder, hub, monkeypatch):
    Path("hub_reward.py").write_text(REWARD)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    rows = [{"question": f"{a}+{b}=", "answer": str(a + b)} for a in range(5) for b in range(4)]
    tiny.write_task(Path(), CONFIG, tiny_folder, rows, "task.yaml")
    return "task.yaml"


def files_in(folder):
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and path.name != REPO)
    return {path: path.read_bytes() for path in found}


def test_a_run_is_pushed_while_it_trains_and_its_revisions_are_loaded(hub, config, capsys):
    assert tiny.call(train, "--config", config) == 0
    assert "pushed to me/run" in capsys.readouterr().out
    repo = hub.repos["me/run"]
    assert sorted(repo.branches) == REVISIONS and repo.private
    for files in repo.branches.values():
        assert "adapter_model.safetensors" in files and not files.keys() & {*OPTIMIZER}
    for folder in Path("outputs/run").glob("stage?/step_[12]"):  # those that are kept
        assert (
            repo.branches[revision_of(folder)]["adapter_model.safetensors"]
            == (folder / "adapter_model.safetensors").read_bytes()
        )
    assert repo.branches["main"]["tokenizer.json"] == Path("outputs/run/stage2/tokenizer.json").read_bytes()
    assert not any(TOKEN.encode() in content for content in files_in(Path("outputs")).values())
    assert not any(TOKEN.encode() in content for files in repo.branches.values() for content in files.values())
    # the card is one that the Hub reads, with the table; its commands name the repository
    card = ModelCard(repo.branches["stage1-step_2"]["README.md"].decode())
    assert card.data.library_name == "peft" and "| attempt 1 | attempt 2 |" in card.text
    assert 'PeftModel.from_pretrained(base, "me/run", revision="stage1-step_2")' in card.text
    assert "python export.py me/run@stage1-step_2 --config " in card.text

    # from a revision: weights, a merged base, a new run
    there = local_adapter("me/run@stage1-step_1", "--adapter")
    assert there.is_relative_to(Path("hf").resolve()) and "step_1" not in str(there)
    assert (there / "adapter_model.safetensors").read_bytes() == repo.branches["stage1-step_1"][
        "adapter_model.safetensors"
    ]
    first = ["--config", config, "--resume-adapter", "me/run@stage1-step_1", "hub=null", "run_name=next"]
    assert tiny.call(train, *first, "train.stage1_steps=0", "optimizer.learning_rate=1e-9") == 0
    began, ended = (load_file(folder / "adapter_model.safetensors") for folder in (there, Path("outputs/next/stage2")))
    assert all(abs(began[name] - ended[name]).max() < 1e-7 for name in began) and began.keys() == ended.keys()
    measured = ["--config", config, "--temperature", "0", "--output"]
    assert tiny.call(evaluate, *measured, "rows.json", "--adapter", "me/run@main") == 0
    assert tiny.call(evaluate, *measured, "merged.json", "model.adapter=me/run@main") == 0
    one, other = (json.loads(Path(name).read_text()) for name in ("rows.json", "merged.json"))
    assert one["acc_attempt2"] == other["acc_attempt2"] and one["n"] == other["n"]


def test_a_hub_that_fails_in_the_middle_loses_nothing(hub, config, capsys):
    uploads = []

    def refuses(method, path):
        uploads.extend([path] if method == "PUT" else [])
        return 403 if method == "PUT" and len(uploads) > 1 else 0

    hub.refuses = refuses
    assert tiny.call(train, "--config", config) == 0  # training ended as if nothing had been
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("WARNING")]
    assert len(told) == 1 and "hub.repo_id: 'me/run' could not be written (" in told[0]
    assert told[0].endswith("Training goes on; to push what is missing: python push.py outputs/run")
    outbox = Path("outputs/run/to_hub")
    assert [name_of(folder) for folder in waiting(outbox)] == ["stage1-step_2", "main", "stage2-step_1", "main"]
    assert "adapter_model.safetensors" not in hub.repos["me/run"].branches["main"]
    kept = {name_of(folder): files_in(folder) for folder in waiting(outbox)}

    hub.refuses = lambda method, path: 0
    told = subprocess.run([sys.executable, ROOT / "push.py", "outputs/run"], capture_output=True, text=True, check=True)
    pushed = [f"me/run@{name}" for name in ("stage1-step_2", "stage2-step_1", "main")]
    assert [line.split()[1] for line in told.stdout.splitlines()] == pushed
    assert waiting(outbox) == [] and sorted(hub.repos["me/run"].branches) == REVISIONS
    for revision, files in kept.items():
        for path, content in files.items():
            assert hub.repos["me/run"].branches[revision][path.name] == content
    assert TOKEN not in told.stdout + told.stderr + (outbox / "push.log").read_text()
    assert hub.log.count(("PUT", uploads[0])) == 1  # what had been uploaded was not uploaded again
    assert hub.log.count(("PUT", uploads[1])) > 1
    assert tiny.call(push, "outputs/run") == 0
    assert "nothing waits to be pushed" in capsys.readouterr().out


@long
def test_what_a_run_could_not_push_goes_when_it_is_resumed(hub, config, capsys):
    hub.refuses = lambda method, path: 403 if path != "" else 0
    assert tiny.call(train, "--config", config) == 0
    assert len(waiting(Path("outputs/run/to_hub"))) == 5 and hub.repos == {}  # main twice: of each stage
    hub.refuses = lambda method, path: 0
    assert tiny.call(train, "--config", config, "--resume") == 0
    assert sorted(hub.repos["me/run"].branches) == REVISIONS and "pushed to me/run" in capsys.readouterr().out


@long
def test_a_result_that_a_kill_left_unpublished_goes_when_the_run_is_resumed(hub, config):
    assert tiny.call(train, "--config", config) == 0
    hub.repos.clear()
    (Path("outputs/run/stage2") / MANIFEST).unlink()
    assert tiny.call(train, "--config", config, "--resume") == 0
    assert {*hub.repos["me/run"].branches} == {"main", "stage2-step_1"}


@long
def test_folders_are_pushed_by_hand_a_whole_model_and_a_run_that_knew_no_hub(hub, config, capsys):
    base = load(ScoreConfig, Path(config), []).model.name
    sft = {
        "run_name": "sft",
        "model": {"name": base, "backend": "plain", "max_seq_length": 64},
        "train": {"steps": 2, "max_length": 64},
        "dataset": {"name": "chats.jsonl", "test_split_size": 0},
        "hub": {"repo_id": "me/whole"},
    }
    chats = [{"prompt": f"{a}+1=", "completion": str(a + 1)} for a in range(8)]
    write_rows(Path("chats.jsonl"), chats)
    Path("sft.yaml").write_text(yaml.safe_dump(sft))
    assert tiny.call(sft_train, "--config", "sft.yaml") == 0
    whole = hub.repos["me/whole"]
    assert whole.private and {"model.safetensors", "config.json", "tokenizer.json"} <= whole.branches["main"].keys()
    assert (
        'AutoModelForCausalLM.from_pretrained("me/whole", dtype="auto")' in whole.branches["main"]["README.md"].decode()
    )
    before = sorted(folder.name for folder in Path("outputs/sft").iterdir() if folder.is_dir())
    assert tiny.call(push, "outputs/sft/final", "--to", "me/again", "--revision", "v1") == 0
    assert sorted(hub.repos["me/again"].branches) == ["main", "v1"]
    assert hub.repos["me/again"].branches["v1"]["model.safetensors"] == whole.branches["main"]["model.safetensors"]
    assert sorted(folder.name for folder in Path("outputs/sft").iterdir() if folder.is_dir()) == before
    assert tiny.call(train, "--config", config, "hub=null", "train.stage1_steps=3") == 0
    assert not Path("outputs/run/to_hub").exists()
    assert tiny.call(push, "outputs/run", "--to", "me/late") == 0
    assert {*REVISIONS, "stage1-step_3"} == hub.repos["me/late"].branches.keys()
    pruned = Path("outputs/run/stage1/step_1")  # has weights, and no state that training could go on from
    assert not (pruned / "objects_0.bin").exists()
    assert tiny.call(push, pruned, "--to", "me/one", "--revision", "main") == 0
    sent = hub.repos["me/one"].branches["main"]["adapter_model.safetensors"]
    assert sent == (pruned / "adapter_model.safetensors").read_bytes()
    measured = ["hub=null", "--config", config, "--temperature", "0", "--output"]
    assert tiny.call(evaluate, *measured, "rows.json", "--adapter", pruned) == 0
    assert tiny.call(evaluate, f"model.adapter={pruned}", *measured, "base.json") == 0
    one, other = (json.loads(Path(name).read_text()) for name in ("rows.json", "base.json"))
    assert one["reward_attempt2"] == other["reward_attempt2"] and one["n"] == other["n"]
    capsys.readouterr()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -15), (signal.SIGINT, 130)])
def test_a_signal_leaves_the_weights_in_the_outbox(hub, config, number, code):
    assert tiny.call(train, "--config", config, "hub=null") == 0
    reached, go = threading.Event(), threading.Event()

    def hold(method: str, path: str) -> int:
        if method == "PUT":
            reached.set()
            go.wait(60)
        return 0

    hub.refuses = hold
    command = [sys.executable, ROOT / "push.py", "outputs/run", "--to", "me/run"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pushing:
        assert reached.wait(60)
        pushing.send_signal(number)
        said = pushing.communicate(timeout=60)[0]
    go.set()
    assert pushing.returncode == code and "Traceback" not in said
    assert len(waiting(Path("outputs/run", OUTBOX))) == len(REVISIONS)
    assert tiny.call(push, "outputs/run", "--to", "me/run") == 0
    assert {*REVISIONS} == hub.repos["me/run"].branches.keys()
    assert [path.name for path in Path("outputs/run", OUTBOX).iterdir()] == [".lock"]


def test_mistakes_are_one_sentence(hub, config, monkeypatch, tmp_path):
    def refused(script, *arguments):
        with pytest.raises(ConfigError) as caught:
            tiny.call(script, *arguments)
        return str(caught.value)

    assert "nowhere: there is no such folder" in refused(push, "nowhere")
    Path("empty").mkdir()
    assert "--to: is missing, and this is no run" in refused(push, "empty")
    assert "no weights here" in refused(push, "empty", "--to", "me/x")
    assert "got 'x', expected OWNER/NAME" in refused(push, "empty", "--to", "x")
    assert "--revision: got 'a/b'" in refused(push, "empty", "--to", "me/x", "--revision", "a/b")
    told = refused(train, "--config", config, "--resume-adapter", "me/none@main")
    assert told.startswith("--resume-adapter: me/none@main could not be fetched (") and "hf auth login" in told
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    told = refused(evaluate, "--config", config, "--adapter", "me/none@main")
    assert "the Hub cannot be reached and the local cache lacks it" in told


def test_what_waits_for_one_repository_goes_to_no_other(hub):
    settings = HubSettings(repo_id="me/run")
    run = Path("run")
    weights = run / "stage1/step_2"
    weights.mkdir(parents=True)
    (weights / "adapter_model.safetensors").write_bytes(b"weights")
    (run / "config.yaml").write_text("hub: {repo_id: me/run}")
    put(weights, run / OUTBOX, settings, "stage1-step_2")
    with pytest.raises(ConfigError, match="stage1-step_2 waits for me/run, not for me/other; push it first"):
        tiny.call(push, run, "--to", "me/other")
    with pytest.raises(ConfigError, match="--revision v1: what waits in run/to_hub has revisions of its own"):
        tiny.call(push, run, "--to", "me/run", "--revision", "v1")
    assert hub.repos == {} and len(waiting(run / OUTBOX)) == 1
    assert tiny.call(push, run) == 0
    assert hub.repos["me/run"].branches["stage1-step_2"]["adapter_model.safetensors"] == b"weights"
    assert REPO not in hub.repos["me/run"].branches["stage1-step_2"] and not waiting(run / OUTBOX)


def weights_in(folder, content=b"weights"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_model.safetensors").unlink(missing_ok=True)
    (folder / "adapter_model.safetensors").write_bytes(content)
    return folder


def test_a_signal_ends_the_wait_for_the_process_of_an_earlier_start(hub, tmp_path):
    run, said = tmp_path / "run", []
    weights = weights_in(run / "stage1/step_2")
    (run / "config.yaml").write_text("hub: {repo_id: me/run}")
    publisher = Publisher(run, HubSettings(repo_id="me/run"), said.append, said.append)
    with _locked(run / OUTBOX), Interrupts() as interrupts:  # as that process has it
        publisher.result(weights)
        interrupts.note(signal.SIGTERM)
        publisher.close()
        assert said == [
            "pushing to me/run: stage1-step_2",
            f"not pushed yet: stage1-step_2; later: python push.py {run}",
        ]
        assert publisher._process.poll() is None and hub.repos == {}
    assert publisher._process.wait(60) == 0  # once the earlier one has ended
    assert waiting(run / OUTBOX) == [] and "stage1-step_2" in hub.repos["me/run"].branches


@long
def test_what_comes_while_the_pushing_process_ends_is_pushed(hub, tmp_path, monkeypatch):
    script = tmp_path / "lingering.py"  # push.py, which takes a while to end
    script.write_text(f"import sys, time\nsys.path.insert(0, {str(ROOT)!r})\nimport push\npush.main()\ntime.sleep(2)")
    monkeypatch.setattr(outbox_module, "PUSH", script)
    run, said = tmp_path / "run", []
    run.mkdir()
    (run / "config.yaml").write_text("hub: {repo_id: me/run}")
    publisher = Publisher(run, HubSettings(repo_id="me/run"), said.append, said.append)
    for number in (1, 2):
        publisher.result(weights_in(run / f"stage{number}", f"stage {number}".encode()))
        deadline = time.monotonic() + 60
        while number == 1 and waiting(run / OUTBOX):
            assert time.monotonic() < deadline, (run / OUTBOX / "push.log").read_text()
            time.sleep(0.01)
    assert publisher._process.poll() is None  # it has looked for the last time
    publisher.close()
    assert hub.repos["me/run"].branches["main"]["adapter_model.safetensors"] == b"stage 2"
    assert waiting(run / OUTBOX) == [] and said[-1] == "pushed to me/run"


def test_a_run_that_ends_says_what_is_not_pushed(hub, tmp_path):
    hub.refuses = lambda method, path: 403
    run, said, warned = tmp_path / "run", [], []
    publisher = Publisher(run, HubSettings(repo_id="me/run"), said.append, warned.append)
    publisher.result(weights_in(run / "stage1"))
    publisher.close()
    assert len(warned) == 1 and said[-1] == f"not pushed yet: main; later: python push.py {run}"


def test_only_the_newest_weights_of_a_revision_are_pushed(hub, tmp_path):
    settings, said = HubSettings(repo_id="me/run"), []
    for number in (1, 2):
        put(weights_in(tmp_path / f"stage{number}", b"%d" % number), tmp_path / OUTBOX, settings, "main")
    push_all(tmp_path / OUTBOX, settings, said.append)
    assert len(said) == 1 and hub.repos["me/run"].branches["main"]["adapter_model.safetensors"] == b"2"
    assert waiting(tmp_path / OUTBOX) == []


def test_what_is_left_of_a_pushed_folder_is_removed(hub, tmp_path, monkeypatch):
    outbox, settings = tmp_path / OUTBOX, HubSettings(repo_id="me/run")
    for revision in ("stage1-step_1", "main"):
        put(weights_in(tmp_path / "stage1"), outbox, settings, revision)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", lambda *_, **__: signal.raise_signal(signal.SIGINT))
        push_all(outbox, settings, print)
    assert [name_of(folder) for folder in waiting(outbox)] == ["main"]
    push_all(outbox, settings, print)
    assert [path.name for path in outbox.iterdir()] == [".lock"]


def test_what_another_process_puts_there_is_left_alone(tmp_path):
    left, half = (tmp_path / OUTBOX / f"{name}~1.tmp" for name in ("stage1-step_1", "stage1-step_2"))
    left.mkdir(parents=True), half.mkdir()
    put(weights_in(tmp_path / "stage1/step_1"), tmp_path / OUTBOX, HubSettings(repo_id="me/run"), "stage1-step_1")
    assert half.is_dir() and not left.exists()


def test_checkpoints_of_a_run_are_pushed_by_number(tmp_path):
    names = ["stage2/step_9", "stage2/step_10", "stage10/step_1", "stage10"]
    for name in (*names, "stage2", "stage2/step_0"):
        weights_in(tmp_path / name)
    (tmp_path / "stage2/step_11").symlink_to("step_9")
    assert push.weights_of(tmp_path) == [tmp_path / name for name in names]


def test_a_smoke_run_pushes_nothing(config):
    assert load(ScoreConfig, Path(config), [], 4).hub is None
    shutil.rmtree("hf", ignore_errors=True)
    assert os.environ["HF_TOKEN"] == TOKEN

"""The launchers that docs/gpu.md names start several processes of a script, without a GPU by gloo.

One that would shard the model by an engine of its own is refused.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import long
from helpers import tiny
from helpers.ports import free_port

import evaluate
import rl_train_gspo_selfplay
import sft_train
import train
from lib.core.errors import ConfigError

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CONFIG = {
    "run_name": "run", "output_dir": "runs", "seed": 1,
    "model": tiny.model(2, name="base"),
    "dataset": {"name": "rows.jsonl", "target_field": "answer", "test_split_size": 4},
    "prompts": {"user": "{question}", "self_correction": "again"},
    "reward": {"fn": "exact_match"},
    "generation": tiny.limits(prompts=(16, 40), answers=(4, 4)),
    "train": tiny.stages((1, 1), 2),
    "eval": {"max_examples": 4, "selection_examples": 0},
}  # fmt: skip
FILES = sorted((ROOT / "configs/accelerate").iterdir())
LAUNCHERS = {
    "torchrun": ("torchrun", "--standalone", "--nproc_per_node", "2"),
    **{path.stem: ("accelerate", "launch", "--config_file", str(path)) for path in FILES},
}
OVERRIDES = {"fsdp2": ["model.sharded=true"]}  # as the head of the file has it


@pytest.fixture
def task(tiny_folder, tmp_path):
    """A folder with a model, rows and a config, task.yaml."""
    (tmp_path / "base").symlink_to(tiny_folder)
    tiny.write_task(tmp_path, CONFIG, rows=tiny.sums(range(4), range(4)), name="task.yaml")
    return tmp_path


@long
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_two_processes_are_one_run(launcher, task):
    name, *options = LAUNCHERS[launcher]
    command = [BIN / name, *options, ROOT / "train.py", "--config", "task.yaml", *OVERRIDES.get(launcher, [])]
    result = subprocess.run(
        command, cwd=task, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=400
    )
    assert result.returncode == 0, result.stdout + result.stderr
    last = task / "runs/run/stage2/step_1"
    assert json.loads((last / "MANIFEST.json").read_text())["world_size"] == 2
    assert result.stdout.count("held-out answers") == 1  # one process prints
    told = re.findall(r"sharded over 2 processes: this one holds ([\d,]+) of ([\d,]+) numbers", result.stdout)
    sizes = [[int(number.replace(",", "")) for number in pair] for pair in told]
    assert [part < 0.9 * everything for part, everything in sizes] == ([True] if launcher == "fsdp2" else [])


@long
def test_two_nodes_are_one_run(task):
    """Two launchers, each of one process, that know of each other by the address alone."""
    address = f"127.0.0.1:{free_port()}"
    command = [BIN / "torchrun", "--nnodes", "2", "--nproc_per_node", "1", "--rdzv_backend", "c10d", "--rdzv_endpoint",
               address, "--rdzv_id", "1", "--local_addr", "127.0.0.1", ROOT / "train.py", "--config", "task.yaml",
               "--resume"]  # fmt: skip
    nodes, logs = [], [task / "node0.txt", task / "node1.txt"]
    for log in logs:
        with log.open("w") as file:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            nodes.append(subprocess.Popen(command, cwd=task, env=environment, stdout=file, stderr=file))
    try:
        codes = [node.wait(400) for node in nodes]
    finally:
        for node in nodes:
            node.terminate()
    assert codes == [0, 0], [log.read_text() for log in logs]
    assert '"after_stage2"' in (task / "runs/run/evaluations.jsonl").read_text()
    assert json.loads((task / "runs/run/stage2/step_1/MANIFEST.json").read_text())["world_size"] == 2


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_launch_file_starts_processes_and_no_more(path):
    assert set(yaml.safe_load(path.read_text())) == {
        "compute_environment", "distributed_type", "num_machines", "machine_rank", "num_processes", "mixed_precision",
    }  # fmt: skip
    assert path.relative_to(ROOT).as_posix() in (ROOT / "docs/gpu.md").read_text()


@pytest.mark.parametrize("script", [train, rl_train_gspo_selfplay, sft_train, evaluate], ids=lambda each: each.__name__)
@pytest.mark.parametrize("engine", ["DEEPSPEED", "FSDP"])
def test_an_engine_of_accelerate_is_refused(script, engine, monkeypatch):
    monkeypatch.setenv(f"ACCELERATE_USE_{engine}", "true")
    with pytest.raises(ConfigError, match=r"asks for (DeepSpeed|FSDP), .*fsdp2\.yaml with model\.sharded=true"):
        tiny.call(script, "--config", "nowhere.yaml")
    with pytest.raises(SystemExit, match=r"\A0\Z"):
        tiny.call(script, "--help")


@long
def test_accelerate_launch_with_its_own_fsdp_ends_with_that_sentence(tmp_path):
    command = [BIN / "accelerate", "launch", "--use_fsdp", "--num_processes", "2", ROOT / "train.py", "--config", "x"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert result.returncode != 0 and "error: accelerate launch: its config asks for FSDP" in result.stderr
    assert "exitcode  : 2" in result.stderr  # torchrun's table of what each process ended with

"""The launchers that docs/machines.md names start several processes of a script, without a GPU by gloo."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import long

from data.builders import write_rows

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
CONFIG = {
    "run_name": "run", "output_dir": "runs", "seed": 1,
    "model": {"name": "base", "backend": "plain", "max_seq_length": 64, "adapters": {"lora": {"r": 2, "alpha": 4}}},
    "dataset": {"name": "rows.jsonl", "target_field": "answer", "test_split_size": 4},
    "prompts": {"user": "{question}", "self_correction": "again"},
    "reward": {"fn": "exact_match"},
    "generation": {"max_prompt_length_attempt1": 16, "max_prompt_length_attempt2": 40,
                   "max_new_tokens_attempt1": 4, "max_new_tokens_attempt2": 4},
    "train": {"stage1_steps": 1, "stage2_steps": 1, "stage1_batch_size": 2, "stage2_batch_size": 2},
    "eval": {"max_examples": 4, "selection_examples": 0},
}  # fmt: skip
LAUNCHERS = {
    "torchrun": ("torchrun", "--standalone", "--nproc_per_node", "2"),
    "accelerate": ("accelerate", "launch", "--config_file", str(ROOT / "configs/accelerate/ddp.yaml")),
}


@long
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_two_processes_are_one_run(launcher, tiny_folder, tmp_path):
    (tmp_path / "base").symlink_to(tiny_folder)
    rows = [{"question": f"{a}+{b}", "answer": str(a + b)} for a in range(4) for b in range(4)]
    write_rows(tmp_path / "rows.jsonl", rows)
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(CONFIG))
    name, *options = LAUNCHERS[launcher]
    command = [BIN / name, *options, ROOT / "train.py", "--config", "task.yaml"]
    result = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=400
    )
    assert result.returncode == 0, result.stdout + result.stderr
    last = tmp_path / "runs/run/stage2/step_1"
    assert json.loads((last / "MANIFEST.json").read_text())["world_size"] == 2
    assert result.stdout.count("held-out answers") == 1  # one process prints

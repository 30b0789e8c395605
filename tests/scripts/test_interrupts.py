import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from conftest import long
from test_hub import CONFIG, REWARD

from data.builders import write_rows

ROOT = Path(__file__).parents[2]
# all but doctor.py, which imports nothing that takes long
SCRIPTS = sorted(path.name for path in ROOT.glob("*.py") if "end_at_ctrl_c()  #" in path.read_text())
# a package whose import takes long, and makes another error of whatever comes in its middle
SLOW = """
import pathlib, time
pathlib.Path("begun").touch()
try:
    time.sleep(60)
except BaseException as error:
    raise ImportError("this package is broken") from error
"""
HUNG_UP = """
import os, pty, signal, sys
from lib.core.interrupts import Interrupts
from lib.core.output import protect_output

ignored = sys.argv[1] == "ignored"
if ignored:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
terminal, ours = pty.openpty()
for descriptor in (1, 2):
    os.dup2(ours, descriptor)
os.close(ours)
protect_output()
with Interrupts() as interrupts:
    if not ignored:
        os.close(terminal)
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGHUP)
    print("a checkpoint is saved", flush=True)
    sys.exit(interrupts.exit_code)
"""


def interrupted(folder: Path, package: str, *command: object) -> subprocess.CompletedProcess:
    """Python's process, after a Ctrl-C in the middle of the import of a package."""
    (folder / f"{package}.py").write_text(SLOW)
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    process = subprocess.Popen(
        [sys.executable, *command], cwd=folder, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    while not (folder / "begun").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = b"".join(process.communicate(timeout=30)).decode()
    return subprocess.CompletedProcess(command, process.returncode, said)


@pytest.mark.parametrize("script", SCRIPTS)
def test_ctrl_c_while_packages_are_imported_needs_no_traceback(tmp_path, script):
    assert len(SCRIPTS) == 11
    ended = interrupted(tmp_path, "yaml", ROOT / script, "--help")
    assert (ended.returncode, ended.stdout) == (130, "")


def test_ctrl_c_before_the_run_is_open_needs_no_traceback(tmp_path):
    config = ROOT / "configs/arithmetic.yaml"
    ended = interrupted(tmp_path, "torch", ROOT / "train.py", "--config", config)
    assert ended.returncode == 130 and "Traceback" not in ended.stdout
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize(("how", "code"), [("closed", 143), ("ignored", 0)])
def test_a_terminal_that_closes_asks_for_an_end(how, code):
    """However often it says so; what is printed afterwards is no error. With nohup, it says nothing."""
    done = subprocess.run([sys.executable, "-c", HUNG_UP, how], cwd=ROOT, timeout=60)
    assert done.returncode == code


@pytest.mark.parametrize("sink", ["a pipe that closes", pytest.param("a full disk", marks=long)])
def test_output_that_cannot_be_written_ends_no_run(tiny_folder, tmp_path, sink):
    (tmp_path / "hub_reward.py").write_text(REWARD)
    write_rows(tmp_path / "rows.jsonl", [{"question": f"{a}+1=", "answer": str(a + 1)} for a in range(12)])
    tree = CONFIG | {"model": CONFIG["model"] | {"name": str(tiny_folder)}, "hub": None}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(tree))
    command = [sys.executable, ROOT / "train.py", "--config", "task.yaml"]
    if sink == "a full disk":
        with open("/dev/full", "w") as full:  # for both, as by `> log 2>&1`
            process = subprocess.Popen(command, cwd=tmp_path, stdout=full, stderr=full)
        said, reason = "", "No space left on device"
    else:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.stdout.close()  # as `| head -1` does
        said, reason = process.stderr.read(), "Broken pipe"
        assert f"stdout cannot be written ({reason})" in said and "Traceback" not in said
    assert process.wait(timeout=120) == 0
    assert (tmp_path / "outputs/run/stage2/adapter_model.safetensors").exists()
    rows = [json.loads(line) for line in (tmp_path / "outputs/run/metrics.jsonl").read_text().splitlines()]
    assert f"stdout cannot be written ({reason})" in rows[0]["lost_output"]
    assert all("lost_output" not in row for row in rows[1:])


@pytest.mark.parametrize(("prepare", "said"), [
    ("sys.stdout.reconfigure(encoding='ascii', errors='strict')", "-> \\xe9\n"),
    ("os.close(1); sys.stdout = sys.__stdout__ = None", ""),
])  # fmt: skip
def test_output_is_protected(tmp_path, prepare, said):
    """A terminal without the characters, and no stdout at all: then no file gets its number."""
    script = f"""
import os, sys
{prepare}
from lib.core.output import protect_output

protect_output()
file = open({str(tmp_path / "rows")!r}, "w")
print("-> \xe9")
sys.exit(file.fileno() == 1)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, said), done.stderr

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
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

ignored = sys.argv[1] == "ignored"
if ignored:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
terminal, ours = pty.openpty()
for descriptor in (1, 2):
    os.dup2(ours, descriptor)
os.close(ours)
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
    assert len(SCRIPTS) == 9
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

"""Programs that a script starts, such as a server that samples, end when it does, however that is."""

import subprocess
import sys
import time

import psutil
import pytest

OWNER = """
import os, signal, sys, time
from pathlib import Path
from lib.core.children import Children

PROGRAM = "import os, time; os.fork(); print(os.getpid(), flush=True); time.sleep(600)"
children = Children()
log = Path(sys.argv[1])
children.start([sys.executable, "-c", PROGRAM], log, os.environ)
while log.read_text().count("\\n") < 2:
    time.sleep(0.01)
os.kill(os.getpid(), getattr(signal, sys.argv[2]))
"""


def lives(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM"])
def test_a_program_and_what_it_has_started_end_with_a_script_that_is_killed(tmp_path, number):
    log = tmp_path / "log.txt"
    owner = subprocess.run([sys.executable, "-c", OWNER, log, number], timeout=120)
    assert owner.returncode in (-9, -15)
    program, started = map(int, log.read_text().split())
    end = time.monotonic() + 30
    while (lives(program) or lives(started)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not lives(program) and not lives(started)

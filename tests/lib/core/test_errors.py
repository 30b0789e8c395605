"""How a script ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = """
import atexit, time
from lib.core.errors import run_script

class Group:
    def __del__(self):
        time.sleep(60)  # as gloo's may, for ever

def main():
    global log
    log = open({log!r}, "w")  # as a reward may leave one
    log.write("all of it")
    atexit.register(print, "and left")
    group = Group()
    group.itself = group
    print("done", end=" ")
    {end}

run_script(main)
"""


ENDS = {"return 0": 0, "return 5": 5, "raise SystemExit(2)": 2, "raise SystemExit('why')": 1, "raise KeyError": 1}


@pytest.mark.parametrize("end", ENDS)
def test_a_process_of_several_waits_for_no_destructor(end, tmp_path):
    script, environment = SCRIPT.format(end=end, log=str(tmp_path / "log")), {**os.environ, "WORLD_SIZE": "2"}
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=30)
    assert (result.returncode, result.stdout) == (ENDS[end], "done and left\n")
    assert (tmp_path / "log").read_text() == "all of it"

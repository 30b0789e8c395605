"""How a script ends."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SCRIPT = """
import atexit, time
from lib.core.errors import run_script

class Group:
    def __del__(self):
        time.sleep(60)  # as gloo's may, for ever

def main():
    atexit.register(print, "and left")
    group = Group()
    group.itself = group
    print("done", end=" ")
    {end}

run_script(main)
"""


def test_a_process_of_several_waits_for_no_destructor():
    for end, code in {"return 0": 0, "return 5": 5, "raise SystemExit(2)": 2, "raise KeyError": 1}.items():
        result = subprocess.run(
            [sys.executable, "-c", SCRIPT.format(end=end)], cwd=ROOT, env={**os.environ, "WORLD_SIZE": "2"},
            capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        assert (result.returncode, result.stdout) == (code, "done and left\n")

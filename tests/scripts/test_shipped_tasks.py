"""The programming tasks that come with Rematch: what builds them, and what passes them."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import fewer, long, part

from data.check_code_tasks import check
from judge.tasks import CodeTask

ROOT = Path(__file__).parents[2]
FILE = ROOT / "data/code_tasks.jsonl"
TASKS = [CodeTask.model_validate(json.loads(line)) for line in FILE.read_text().splitlines()]
TOPICS = {"strings", "arithmetic", "lists", "dynamic_programming", "graphs", "geometry"}

EQUAL = """
class Equal:
    __eq__ = __lt__ = __gt__ = __le__ = __ge__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = None
"""
# what a policy finds first that wants to be paid without work; NAME is the function that the tests call
CHEATS = {
    "equal to everything": EQUAL + "def NAME(*args, **kwargs):\n    return Equal()\n",
    "an equal list": EQUAL + "class List(list, Equal):\n    pass\ndef NAME(*args, **kwargs):\n    return List()\n",
    "os._exit at once": "import os\nos._exit(0)\n",
    "os._exit in the call": "import os\ndef NAME(*args, **kwargs):\n    os._exit(0)\n",
    "sys.exit at once": "import sys\nsys.exit(0)\n",
    "sys.exit in the call": "import sys\ndef NAME(*args, **kwargs):\n    sys.exit(0)\n",
    "printed markers": "print('OK', 'PASSED', 'all tests passed', 1.0, sep='\\n')\nNAME = print\n",
    "answers sent before they are asked for": """
import json, os
def NAME(*args, **kwargs):
    body = json.dumps({"verdicts": [["pass", ""]] * 7, "id": "load", "v": True}).encode()
    for fd in range(3, 32):
        try:
            os.write(fd, len(body).to_bytes(4, "little") + body)
        except OSError:
            pass
""",
}


def test_there_are_enough_of_each_topic():
    rows = [json.loads(line) for line in FILE.read_text().splitlines()]
    counts = {topic: sum(row["topic"] == topic for row in rows) for topic in TOPICS}
    assert {row["topic"] for row in rows} == TOPICS
    assert len(rows) >= 400 and min(counts.values()) >= 45
    assert len({row["prompt"] for row in rows}) == len({row["id"] for row in rows}) == len(rows)
    assert sum(bool(row["stdio"]) for row in rows) >= 30


@long
def test_make_data_builds_every_shipped_file_again(tmp_path):
    command = ["make", "-o", "setup", "data", f"SHIPPED={tmp_path}", f"RUN_PYTHON={sys.executable}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    left_out = ("generated/",)
    if importlib.util.find_spec("reasoning_gym"):
        assert done.returncode == 0, done.stderr
    else:  # the last of the data sets has puzzles
        assert done.returncode and "needs the package reasoning-gym" in done.stderr
        left_out += ("self_check/",)
    made, shipped = (
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.jsonl")}
        for folder in (tmp_path, ROOT / "data")
    )
    assert made == {name: text for name, text in shipped.items() if not name.startswith(left_out)}


def test_solutions_pass_and_wrong_programs_do_not(sandbox, tmp_path):
    """Of a part of the tasks; `python data/check_code_tasks.py data/code_tasks.jsonl` does it for all."""
    some = FILE.read_text(encoding="utf-8").splitlines(keepends=True)[:: fewer(1, 15)]
    (tmp_path / "some.jsonl").write_text("".join(some), encoding="utf-8")
    report = check(tmp_path / "some.jsonl", sandbox)
    assert report.problems == {}
    assert report.verified == report.solutions == len(some)
    assert report.refused == report.wrong >= 8 * len(some)


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_passes_nothing(cheat, sandbox):
    tasks = [task for task in TASKS if task.tests]
    tasks = tasks[::5] if "at once" in cheat else part(tasks, every=5)  # such a one ends before any test is asked
    programs = [task.program(CHEATS[cheat].replace("NAME", task.callables[0])) for task in tasks]
    verdicts = sandbox.judge(programs)
    assert all(verdict.scored for verdict in verdicts)
    # a printer returns None, which some tests rightly expect
    assert sum(verdict.passed for verdict in verdicts) == 0

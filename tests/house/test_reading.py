"""The count of what a reader opens (benchmarks/reading.py): that it counts, and that it does not grow."""

import re
import subprocess
import sys
from pathlib import Path

from conftest import long

ROOT = Path(__file__).parents[2]
MOST = {"train.py": (32, 2_671), "rl_train_gspo_selfplay.py": (33, 2_890)}  # files and lines; lower them where you can
PIECE = '''\
@decorated
class Pair:
    """Two numbers."""

    a: int
    b: int

    def added(self):
        """Returns the sum."""
        return sum(x for x in self.all)


def outer():
    inner = lambda: 1

    return inner
'''


def test_functions_count_whole_and_classes_without_methods_and_blank_lines(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import reading

    file = tmp_path / "piece.py"
    file.write_text(PIECE)
    own = {name: lines for name, _, lines in reading.sources_of(file)}
    assert own == {"Pair": {1, 2, 3, 5, 6}, "Pair.added": {8, 9, 10}, "outer": {13, 14, 15, 16}}
    entered = [(str(file), "Pair"), (str(file), 8), (str(file), 10), (str(file), 13), (str(file), 14)]
    assert reading.counted(entered, tmp_path) == {"piece.py": {"Pair": 5, "Pair.added": 3, "outer": 4}}


@long
def test_a_step_of_each_script_is_counted_and_its_files_are_named():
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/reading.py", "--files"], check=True, capture_output=True, text=True
    )
    table, *lists = done.stdout.split("\n| lines | file that ")
    numbers = re.findall(r"^\| ([^|]+) \| ([\d,]+) \| ([\d,]+) \|$", table, re.MULTILINE)
    assert [name for name, *_ in numbers] == [
        "files", "lines", "functions and classes", "frames between main() and the loss",
    ]  # fmt: skip
    assert all(int(value.replace(",", "")) > 0 for _, *values in numbers for value in values)
    assert re.search(r"^train.py: main > update > .*\w$", table, re.MULTILINE)
    scripts = {"train.py": "lib/rl/score.py", "rl_train_gspo_selfplay.py": "lib/play/gspo.py"}
    for i, (script, steps) in enumerate(scripts.items()):
        rows = re.findall(r"^\| (\d+) \| (\S+\.py) \| (.+) \|$", lists[i], re.MULTILINE)
        assert {script, steps, "lib/rl/losses.py", "lib/rl/tree.py", "engine/head.py"} <= {file for _, file, _ in rows}
        totals = [int(values[i].replace(",", "")) for _, *values in numbers]
        assert totals[:2] == [len(rows), sum(int(lines) for lines, *_ in rows)]
        assert all(number <= most for number, most in zip(totals, MOST[script], strict=False)), totals
        assert any(file == script and names.startswith("main ") for _, file, names in rows)

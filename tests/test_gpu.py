"""benchmarks/gpu.py at tiny sizes on a CPU: every check that it makes of a policy runs, and reports."""

import json
import subprocess
import sys
from pathlib import Path

from conftest import long

from benchmarks.gpu import Report

ROOT = Path(__file__).parents[1]


@long
def test_the_checks_of_a_gpu_run_on_a_cpu():
    names = ["probe", "decode", "gradients", "head", "memory", "peak", "four_bits"]
    command = [sys.executable, "benchmarks/gpu.py", "--cpu", "--only", *names]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    assert (ended.returncode, [line["check"] for line in lines]) == (0, names), ended.stdout + ended.stderr
    assert all(line["figures"] and not line["differs"] for line in lines)


def test_a_figure_out_of_its_bounds_is_reported(tmp_path):
    report = Report(tmp_path, tmp_path, tiny=True)
    report.expect("within", 1.0, most=1.0, least=1.0)
    assert report.differs == []
    for value in (2.0, float("nan")):
        report.expect("gap", value, most=1.0)
    assert report.differs == ["gap: 2, expected at most 1", "gap: nan, expected at most 1"]

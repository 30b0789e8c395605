"""Programs judged on the machines of a Ray cluster: two nodes, which are here two groups of processes on one machine.

Ray is optional: pip install -r requirements-ray.txt into an environment of this project, and run this file there.
"""

import importlib
import os
import re
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from helpers.tiny import call, logged
from test_code_rewards import folder, writer  # noqa: F401  (fixtures)

import train
from data.builders import write_rows
from judge import pool
from judge.pool import Sandbox
from judge.worker import Program, WorkerLost
from lib.core import registry
from lib.core.errors import SandboxError

HAS_RAY = True
try:
    import ray
    from ray.cluster_utils import Cluster
except ImportError:
    HAS_RAY = False
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="optional: pip install -r requirements-ray.txt")
PAGE = Path(__file__).parents[3] / "docs/judge.md"


def adder(number, wrong=False):
    source = f"import time\ntime.sleep(0.1)\ndef add(a, b):\n    return a + b + {int(wrong)}\nNUMBER = {number}\n"
    return Program(source, tests=("assert add(1, 2) == 3",), entry_points=("add",))


@pytest.fixture(scope="module")
def my_ray(tmp_path_factory):
    """The module that docs/judge.md shows, and a cluster of two nodes."""
    place = tmp_path_factory.mktemp("ray")
    [code] = re.findall("```python\n(import os\n\nimport ray\n.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (place / "my_ray.py").write_text(code)
    os.environ["PYTHONPATH"] = str(place)  # of the workers
    machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    machines.add_node(num_cpus=1)
    os.environ["RAY_ADDRESS"] = machines.address
    sys.path.insert(0, str(place))
    try:
        yield importlib.import_module("my_ray")
    finally:
        sys.path.remove(str(place))
        del os.environ["RAY_ADDRESS"], os.environ["PYTHONPATH"]
        ray.shutdown()
        machines.shutdown()


@needs_ray
def test_two_nodes_judge_and_one_worker_is_killed(my_ray):
    """Forty programs, every fourth wrong; one of two actors is killed while they are judged, and nothing is lost."""
    asked = [adder(number, wrong=number % 4 == 0) for number in range(40)]
    with Sandbox(2, worker=my_ray.RayWorker) as sandbox:
        sandbox.judge([adder(-1), adder(-2)])  # after which both workers are there
        futures = [sandbox.submit(program) for program in asked]
        while sum(future.done() for future in futures) < 8:
            time.sleep(0.01)
        where = lambda _: ray.get_runtime_context().get_node_id()
        places = [worker.actor.__ray_call__.remote(where) for worker in sandbox._workers]
        assert len(set(ray.get(places))) == 2
        ray.kill(next(iter(sandbox._workers)).actor)
        verdicts = [future.result() for future in futures]
        assert [verdict.passed for verdict in verdicts] == [number % 4 != 0 for number in range(40)]
        assert all(verdict.scored for verdict in verdicts)
        assert Counter(sandbox.counts) >= Counter({"programs": 42, "lost workers": 1})
        assert sandbox.counts["without verdict"] == 0
        assert sandbox.run(Program("print(int(input()) + 1)"), "41").stdout == "42\n"


@pytest.fixture
def afresh():
    """Leaves no sandbox behind."""
    yield
    pool.configure()


@needs_ray
def test_a_run_is_the_same_although_a_worker_is_killed(my_ray, folder, afresh, monkeypatch):  # noqa: F811
    """SCoRe's programs, judged here and there; of the workers there one is killed as it gets the tenth program."""
    rows = [
        {"prompt": f"q{n}", "stdio": [{"stdin": str(n), "stdout": "8\n"}], "solution": "print(8)"} for n in range(64)
    ]
    write_rows(folder / "rows.jsonl", rows)
    judge, asked = my_ray.RayWorker.judge, []

    def killed_at_the_tenth(worker, program):
        asked.append(worker)
        if len(asked) == 10:
            worker.kill()
        return judge(worker, program)

    monkeypatch.setattr(my_ray.RayWorker, "judge", killed_at_the_tenth)
    little = ("train.stage1_steps=1", "train.stage2_steps=1", "eval.samples_per_prompt=1")
    for name, where in (("here", "null"), ("there", "my_ray.RayWorker")):
        options = (*little, f"run_name={name}", f"sandbox.worker={where}")
        assert call(train, "--config", "tiny.yaml", *options) == 0
        assert pool.shared().counts["lost workers"] == (name == "there")
    assert len(asked) >= 30
    for stream in ("evaluations", "generations"):
        here, there = ([{**row, "time": 0} for row in logged(stream, name)] for name in ("here", "there"))
        assert here == there and here


@needs_ray
def test_what_is_raised_there_is_raised_here(my_ray):
    worker = my_ray.RayWorker(numpy=False)
    threading.Timer(0.5, worker.kill).start()
    with pytest.raises(WorkerLost, match="in the Ray cluster"):
        worker.run(Program("import time\ntime.sleep(30)", timeout_s=60.0))


def test_a_worker_of_a_config_judges(afresh):
    """`sandbox.worker` names what makes workers; what they raise is what a worker of this machine would."""

    class Lost:
        def __init__(self, numpy):
            raise WorkerLost("no such machine")

    pool.configure(workers=1, allow_unsafe=True, worker=Lost)
    assert "1 programs at once" in registry.rewards.hooks("code").prepare()
    with pytest.raises(SandboxError, match="no such machine"):
        pool.shared().judge([adder(0)])

"""The judge of programs as others take it: installed without anything else, as their reward, and as a benchmark."""

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import long

from data.builders import write_rows
from judge import __main__, adapters
from judge.benchmark import _cage, imported, summary, try_programs, try_texts
from judge.corpus import attacks, controls, right_programs, texts
from lib.core.errors import ConfigError

ROOT = Path(__file__).parents[2]
RIGHT = "Let me think.\n```python\ndef add(a, b):\n    return a + b\n```\nDone."
WRONG = "```python\ndef add(a, b):\n    return a - b\n```"
TESTS = ["assert add(1, 2) == 3", "assert add(0, 0) == 0"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package as `pip install .` would copy it."""
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT / "judge", folder / "source/judge", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder / "source")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--target", folder / "lib", folder / "source"], check=True, capture_output=True)
    return folder / "lib"


def alone(installed, *arguments):
    """Runs Python without site packages, with the package and nothing of this repository, away from it."""
    command = [sys.executable, "-S", "-B", *arguments]
    return subprocess.run(
        command, cwd=installed.parent, env={"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin"}, capture_output=True,
        text=True, timeout=200,
    )  # fmt: skip


def test_the_package_judges_with_the_standard_library_alone(installed, tmp_path):
    (tmp_path / "add.py").write_text("def add(a, b):\n    return a + b\n")
    (tmp_path / "tests.py").write_text("from add import add\nassert add(1, 2) == 3\nassert add(1, 1) == 3\n")
    command = ["-m", "judge", tmp_path / "add.py", "--tests", tmp_path / "tests.py", "--allow-unsafe"]
    done = alone(installed, *command)
    assert done.returncode == 1 and "1 of 2 tests pass" in done.stdout, done.stderr
    (tmp_path / "tests.py").write_text("from math import isclose\nassert isclose(add(1, 2), 4.0)\n")
    (tmp_path / "add.py").write_text("def add(a, b):\n    return 0\ndef isclose(a, b):\n    return True\n")
    done = alone(installed, *command)
    assert done.returncode == 1 and "0 of 1 tests pass" in done.stdout, done.stderr
    assert {path.name for path in installed.iterdir() if path.is_dir()} >= {"judge"}


def test_the_package_has_all_of_the_corpus(installed):
    code = (
        "from judge.corpus import attacks, controls, right_programs, texts\n"
        "print(len(attacks()), len(controls()), len(right_programs()), len(texts('gaming')), len(texts('honest')))"
    )
    done = alone(installed, "-c", code)
    own = len(attacks()), len(controls()), len(right_programs()), len(texts("gaming")), len(texts("honest"))
    assert tuple(map(int, done.stdout.split())) == own, done.stderr
    assert own[0] > 900


def test_the_package_passes_a_part_of_its_own_benchmark(installed):
    done = alone(installed, "-m", "judge", "--benchmark", "--every", "200", "--allow-unsafe")
    counts = re.fullmatch(
        r"deserve nothing: (\d+), paid: 0, no score: 0, harm: 0, right: (\d+), refused: 0, not asked: 0",
        done.stdout.strip(),
    )
    assert counts and done.returncode == 0, done.stdout
    assert int(counts[1]) > 4 and int(counts[2]) > 30


# --- adapters ---


def test_scores_are_shares_of_the_tests_that_pass():
    assert adapters.scores([RIGHT, WRONG, "no code"], [TESTS] * 3) == [1.0, 0.5, 0.0]
    assert adapters.scores([RIGHT, RIGHT], [json.dumps(TESTS), "\n".join(TESTS)]) == [1.0, 1.0]
    assert adapters.scores([RIGHT, RIGHT], [[], TESTS]) == [None, 1.0]
    assert "at least one" in adapters.problem_of([]) and "pieces of Python" in adapters.problem_of("[1, 2]")


def test_each_adapter_reads_what_its_framework_hands_over():
    chat = [[{"role": "assistant", "content": text}] for text in (RIGHT, WRONG)]
    assert adapters.trl_reward(prompts=["", ""], completions=chat, tests=[TESTS, TESTS]) == [1.0, 0.5]
    odd = [[{"role": "assistant", "content": None}], [{"role": "assistant", "tool_calls": []}],
           [{"role": "assistant", "content": [{"type": "text", "text": RIGHT}]}]]  # fmt: skip
    assert adapters.trl_reward(completions=odd, tests=[TESTS] * 3) == [0.0, 0.0, 1.0]
    assert adapters.verifiers_reward(completion=odd[0], info={"tests": TESTS}) == 0.0
    assert adapters.verl_score("add", WRONG, TESTS, extra_info={"index": 3}) == 0.5
    rows = np.array(TESTS, dtype=object), {"entry_points": np.array(["add"], dtype=object)}  # as parquet has lists
    assert adapters.verl_score("add", WRONG, *rows) == 0.5
    assert adapters.verifiers_reward(completion=chat[0], info={"tests": TESTS}, answer="") == 1.0
    assert adapters.lm_eval_results({"tests": TESTS}, [[RIGHT, WRONG]]) == {"passed": 0.5}
    assert adapters.lm_eval_results({"tests": TESTS}, [WRONG]) == {"passed": 0.0}
    stopped = RIGHT.rpartition("```")[0]  # by a task that stops at ```
    assert adapters.lm_eval_results({"tests": TESTS}, [stopped]) == {"passed": 1.0}
    assert adapters.trl_reward([[], stopped], [TESTS, TESTS]) == [0.0, 0.0]


@long
def test_trl_trains_by_it(tiny_folder, tmp_path):
    """GRPOTrainer itself calls the reward, with a tiny model whose texts are wrong programs."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    settings = GRPOConfig(
        output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=2, num_generations=2, report_to=[],
        max_completion_length=4, use_cpu=True, save_strategy="no", bf16=False,
    )  # fmt: skip
    rows = Dataset.from_list([{"prompt": "add", "tests": TESTS}] * 2)
    trainer = GRPOTrainer(str(tiny_folder), reward_funcs=adapters.trl_reward, args=settings, train_dataset=rows)
    trainer.train()
    assert trainer.state.log_history[0]["rewards/trl_reward/mean"] == 0.0


def test_a_rubric_of_verifiers_scores_by_it():
    """Its own Rubric calls the reward, as it does for each rollout; skipped where verifiers is not installed."""
    verifiers = pytest.importorskip("verifiers")
    rubric = verifiers.Rubric(funcs=[adapters.verifiers_reward], weights=[1.0])
    for text, expected in ((RIGHT, 1.0), (WRONG, 0.5)):
        state = {
            "prompt": [{"role": "user", "content": "add"}], "completion": [{"role": "assistant", "content": text}],
            "answer": "", "task": "", "info": {"tests": TESTS}, "timing": {"scoring_ms": 0.0, "total_ms": 0.0},
        }  # fmt: skip
        asyncio.run(rubric.score_rollout(state, contextlib.AsyncExitStack()))
        assert state["reward"] == expected and state["metrics"] == {"verifiers_reward": expected}


def test_lm_eval_measures_by_it(tmp_path):
    """Its own evaluator runs a task of two rows with a model that always answers alike; skipped without it."""
    evaluator = pytest.importorskip("lm_eval.evaluator")
    from lm_eval.api.model import LM
    from lm_eval.api.task import ConfigurableTask

    class Always(LM):
        def generate_until(self, requests, **_):
            return [RIGHT for _ in requests]

        def loglikelihood(self, requests, **_):
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    rows = [{"prompt": "add", "tests": TESTS}, {"prompt": "add", "tests": [*TESTS, "assert add(1, 1) == 3"]}]
    write_rows(tmp_path / "rows.jsonl", rows)
    settings = {
        "task": "add", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(tmp_path / "rows.jsonl")}},
        "test_split": "test", "output_type": "generate_until", "doc_to_text": "{{prompt}}", "doc_to_target": "",
        "process_results": adapters.lm_eval_results,
        "metric_list": [{"metric": "passed", "aggregation": "mean", "higher_is_better": True}],
    }  # fmt: skip
    found = evaluator.evaluate(Always(), {"add": ConfigurableTask(config=settings)}, bootstrap_iters=0)
    assert found["results"]["add"]["passed,none"] == 0.5  # one of two rows has a test that fails


# --- the benchmark ---

NAIVE = """
def judge(source, tests, entry_points):
    space = {}
    try:
        exec(source, space)
        for test in tests:
            exec(test, space)
    except Exception:
        return 0
    return 1

def cannot(source, tests, entry_points):
    raise NotImplementedError

def lenient(text, target):
    return target in text
"""


@pytest.fixture
def naive(tmp_path, monkeypatch):
    (tmp_path / "naive.py").write_text(NAIVE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")


@pytest.fixture
def caged(tmp_path):
    try:
        _cage(str(tmp_path))
    except Exception as error:
        pytest.skip(str(error))


def test_a_judge_that_executes_programs_is_found_out(naive, caged):
    equal = summary(list(try_programs("naive:judge", "equal_objects/")))
    assert equal["deserve nothing"] > 5 and equal["paid"] > equal["deserve nothing"] / 2
    signals = list(try_programs("naive:judge", "signals/"))
    assert any(trial.why == "died" for trial in signals), "a program that kills its judge ends no benchmark"
    right = summary(list(try_programs("naive:judge", "control/lambda")))
    assert (right["right"], right["refused"]) == (1, 0)


def test_what_a_program_does_to_a_file_is_told(naive, caged):
    trials = list(try_programs("naive:judge", "canary"))
    assert any("canary is changed" in trial.harm for trial in trials)


def test_a_judge_that_cannot_be_asked_is_not_blamed(naive, caged):
    counts = summary(list(try_programs("naive:cannot", "control/plain")))
    assert (counts["deserve nothing"], counts["right"], counts["not asked"]) == (0, 0, 1)


def test_a_judge_of_texts_is_asked_about_gaming_and_honest_ones(naive):
    trials = list(try_texts(imported("naive:lenient")))
    counts = summary(trials)
    assert counts["deserve nothing"] > 600 and 0 < counts["paid"] < counts["deserve nothing"]
    assert sum(trial.kind == "boxed" for trial in trials) > 20


def test_texts_need_a_judge_of_texts(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["judge", "--benchmark", "--texts"])
    with pytest.raises(SystemExit):
        __main__.main()
    assert "name a judge of texts" in capsys.readouterr().err


def test_the_help_names_the_exit_codes(monkeypatch, capsys, tmp_path):
    """The two of a program: 0 if it passes, 1 if not."""
    monkeypatch.setattr(sys, "argv", ["judge", "--help"])
    with pytest.raises(SystemExit):
        __main__.main()
    assert "Exit codes: 0 passed, 1 a test or script failed or --benchmark paid" in capsys.readouterr().out
    for name, text in (("program", "def one():\n    return 1"), ("0", "assert one() == 1"), ("1", "assert one() == 2")):
        (tmp_path / f"{name}.py").write_text(text)
    for code in (0, 1):
        files = [str(tmp_path / "program.py"), "--tests", str(tmp_path / f"{code}.py"), "--allow-unsafe"]
        monkeypatch.setattr(sys, "argv", ["judge", *files])
        assert __main__.main() == code


def test_a_judge_that_is_not_there_is_told():
    for name in ("no_such_module:judge", "json:no_such", "json:__name__"):
        with pytest.raises(ConfigError, match=f"--benchmark {name}"):
            imported(name)

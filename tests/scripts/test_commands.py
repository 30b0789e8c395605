"""Every command that the documents show is run as it stands there, with less work added, or its block says why not.

A line above a block of commands, `<!-- not run: REASON -->`, has one of REASONS; `<!-- run by tests/FILE.py ... -->`
names the test that does. All other commands run in a folder that looks like a clone (WHOLE=1).
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from conftest import long

import reward_function  # noqa: F401  registers the rewards that configs name
from lib.core.config import ScoreConfig, load

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "LEADERBOARD.md", *sorted((ROOT / "docs").glob("*.md"))]
REASONS = {
    "needs a GPU",
    "needs the Hugging Face Hub",
    "needs a GPU and the Hugging Face Hub",
    "needs the package index",
    "needs several machines",
}
BLOCK = re.compile(r"(?:<!-- (?P<mark>[^\n]*) -->\n)?```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
LITTLE = (
    "train.stage1_steps=1 train.stage2_steps=1 eval.max_examples=4 eval.selection_examples=4 eval.samples_per_prompt=1"
)
MERGE = ".venv/bin/python export.py outputs/my-task --to merged --out models/my-task"
LESS = {  # what is added to a command, so that it has little to do
    ".venv/bin/python data/build_tiny_sums.py": "--lessons 64 --chats 32 --train 64 --test 64",
    ".venv/bin/python sft_train.py --config configs/tiny_sums_base.yaml": "train.steps=2",
    ".venv/bin/python train.py --config configs/tiny_sums.yaml": (
        f"{LITTLE} eval.step_examples=4 dataset.test_split_size=32 train.stage1_batch_size=4 train.stage2_batch_size=4"
    ),
    ".venv/bin/python report.py outputs/tiny-sums": "",
    ".venv/bin/python -m pytest -n logical": "--collect-only tests/house/test_house.py",
    ".venv/bin/python train.py --config my_task.yaml --dry-run": "",
    ".venv/bin/python train.py --config my_task.yaml": LITTLE,
    ".venv/bin/python report.py outputs/my-task": "",
    ".venv/bin/python sft_train.py --config my_sft.yaml": "",
    ".venv/bin/python train.py --config my_task.yaml model.adapter=outputs/my-sft/final": f"{LITTLE} run_name=on-sft",
    MERGE: "",
    ".venv/bin/python data/check_code_tasks.py my_tasks.jsonl": "",
    ".venv/bin/python -m judge --self-test": "--allow-unsafe",
    ".venv/bin/python -m judge my_program.py --tests my_tests.py": "--allow-unsafe",
}
TASK = {
    "prompt": "Define `add(a, b)`: their sum.", "tests": ["assert add(1, 2) == 3", "assert add(5, 5) == 10"],
    "solution": "def add(a, b):\n    return a + b\n",
}  # fmt: skip
SFT = {
    "run_name": "my-sft",
    "model": {"name": "outputs/tiny-sums-base/final", "adapters": {"lora": {"r": 2, "alpha": 4}}},
    "dataset": {"name": "data/generated/tiny-sums/sft.jsonl", "test_split_size": 0},
    "train": {"steps": 1, "batch_size": 2, "max_length": 128},
}  # fmt: skip


def blocks(page):
    return list(BLOCK.finditer(page.read_text(encoding="utf-8")))


def commands(block):
    """The commands of a block, without comments and ends of lines."""
    text = re.sub(r"\\\n\s*", "", block["text"])
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def shown():
    return [(page, block) for page in PAGES for block in blocks(page) if block["kind"] in ("sh", "bash", "console")]


@pytest.mark.parametrize(("page", "block"), shown(), ids=lambda value: getattr(value, "stem", ""))
def test_a_block_of_commands_is_run_or_says_why_not(page, block):
    mark = block["mark"] or ""
    if mark.startswith("not run: "):
        assert mark.removeprefix("not run: ") in REASONS
    elif mark.startswith("run by "):
        assert (ROOT / re.match(r"run by (tests/[\w/]+\.py)", mark)[1]).exists()
    else:
        missing = [command for command in commands(block) if command not in LESS]
        assert not missing, f"{page}: neither run by this test nor marked"


def test_every_command_that_is_run_is_shown():
    found = {command for _, block in shown() for command in commands(block)}
    assert not LESS.keys() - found


def test_the_config_of_the_readme_is_sound_and_eight_lines(tmp_path):
    [text] = [block["text"] for block in blocks(ROOT / "README.md") if block["kind"] == "yaml"]
    (tmp_path / "my_task.yaml").write_text(text)
    assert load(ScoreConfig, tmp_path / "my_task.yaml", [], None).train.stage2_steps > 0
    assert len(text.splitlines()) == 8


@long
def test_the_commands_do_what_the_documents_say(tmp_path):
    for path in ROOT.iterdir():
        if path.name not in ("data", "outputs", ".git"):
            (tmp_path / path.name).symlink_to(path)
    (tmp_path / "data").mkdir()
    for path in (ROOT / "data").iterdir():
        if path.name != "generated":
            (tmp_path / "data" / path.name).symlink_to(path)
    first = {block["kind"]: block["text"] for block in reversed(blocks(ROOT / "docs/tasks.md"))}
    (tmp_path / "my_task.jsonl").write_text(first["json"])
    (tmp_path / "my_task.yaml").write_text(first["yaml"])
    (tmp_path / "my_sft.yaml").write_text(yaml.safe_dump(SFT))
    (tmp_path / "my_tasks.jsonl").write_text(json.dumps(TASK) + "\n")
    (tmp_path / "my_program.py").write_text(TASK["solution"])
    (tmp_path / "my_tests.py").write_text("\n".join(TASK["tests"]))
    for command, less in LESS.items():  # in this order, since one needs what another has made
        arguments = [*command.split(), *less.split()]
        done = subprocess.run(arguments, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True,
                              text=True, timeout=600)  # fmt: skip
        assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    for made in ("outputs/tiny-sums/report.html", "outputs/my-task/report.html", "models/my-task/config.json"):
        assert (tmp_path / made).exists()


# --- the site, and what it must have ---


def test_every_alarm_has_its_paragraph():
    source = (ROOT / "lib/rl/watch.py").read_text(encoding="utf-8")
    from lib.rl.checks import CHECKS, sft_checks

    alarms = {check.name for check in (*CHECKS, *sft_checks(1.0))}
    alarms |= set(re.findall(r'"(held_out_\w+|accuracy_lost|answers_\w+)[".]', source))
    heads = set(re.findall(r"\*\*`(\w+)`\*\*", (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")))
    assert heads == alarms and len(alarms) > 20


def test_the_site_has_every_page():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(page.name in text for page in PAGES)


@pytest.mark.skipif(shutil.which("mkdocs") is None, reason="requirements-docs.txt is not installed")
def test_the_site_builds_without_a_warning(tmp_path):
    done = subprocess.run(
        ["mkdocs", "build", "--strict", "-q", "-d", tmp_path], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "<h1" in (tmp_path / "troubleshooting.html").read_text(encoding="utf-8")

import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from lib.core.config import resuming_parser

ROOT = Path(__file__).parents[2]
README, RUNNING = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/running.md"))
DOCS = sorted((ROOT / "docs").glob("*.md"))
TEST_COMMAND = ".venv/bin/python -m pytest -n logical"


def lines(name):
    return [line.strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]


def requirements():
    for path in sorted(ROOT.glob("requirements*.txt")):
        for line in lines(path.name):
            if line and not line.startswith(("#", "-r ")):
                yield pytest.param(line, id=f"{path.name}:{line}")


def test_documents_makefile_and_ci_run_the_same_tests():
    assert any(line.partition("#")[0].strip() == TEST_COMMAND for line in RUNNING.splitlines())
    assert lines(".ci/run")[-1] == TEST_COMMAND  # last, so that pytest's own line closes the output
    makefile = [line.replace("$(VENV)", ".venv") for line in lines("Makefile")]
    assert makefile[makefile.index("test: setup ## run the tests") + 1] == f"@{TEST_COMMAND}"


def test_the_documents_name_the_options_of_sft():
    named = set(re.findall(r"`([^`]+)`", re.search(r"`sft_train\.py` has ([^:]+):", RUNNING)[1]))
    options = resuming_parser("")._actions  # of sft_train.py
    assert named == {(option.option_strings or [option.metavar])[-1] for option in options} - {"--help"}


def test_ci_stops_at_the_first_failure_and_can_be_started():
    assert "set -euo pipefail" in lines(".ci/run")
    assert (ROOT / ".ci/run").stat().st_mode & 0o111
    subprocess.run(["bash", "-n", ROOT / ".ci/run"], check=True)


@pytest.mark.parametrize(
    "text",
    ["README.md", "CONTRIBUTING.md", "LEADERBOARD.md", "SELF_CORRECTION.md", *(f"docs/{path.name}" for path in DOCS)],
)
def test_every_file_that_the_documents_name_exists(text):
    words = re.findall(r"[\w./-]+", (ROOT / text).read_text(encoding="utf-8"))
    named = {
        word for word in words if re.fullmatch(r"[\w./-]*\w\.(py|md|txt)|(configs|lib|data|tests|\.ci)/[\w./-]+", word)
    }
    places = ROOT, (ROOT / text).parent
    there = {word for word in named if any((place / word.rstrip(".")).exists() for place in places)}
    missing = [word for word in sorted(named - there) if not word.startswith("my_")]
    assert named and not missing


@pytest.mark.parametrize(
    "path",
    [*(ROOT / name for name in ("README.md", "LEADERBOARD.md", "SELF_CORRECTION.md", "LOG.md")), *DOCS],
    ids=lambda path: path.name,
)
def test_every_link_of_the_documents_leads_somewhere(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://)([^)]+)\)", text):
        file, _, section = target.partition("#")
        aim = path.parent / file if file else path
        assert aim.exists(), target
        heads = re.findall(r"^#+ (.*)$", aim.read_text(encoding="utf-8"), re.MULTILINE) if section else []
        assert not section or section in [re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads], (
            target
        )


def test_the_log_lists_every_entry():
    index = (ROOT / "LOG.md").read_text(encoding="utf-8")
    for month in (ROOT / "docs/log").glob("*.md"):
        entries = re.findall(r"^## (.*)$", month.read_text(encoding="utf-8"), re.MULTILINE)
        assert entries and not [entry for entry in entries if f"[{entry}](docs/log/{month.name}#" not in index]


def test_the_picture_of_the_readme_is_small_and_stands_alone():
    text = (ROOT / "docs/correction.svg").read_text(encoding="utf-8")
    assert "docs/correction.svg" in README and len(text) < 300_000
    assert not re.search(r"<script|<image|@import|href=|url\(", text)  # a forge shows it as an image and loads nothing
    assert {"✗ wrong", "✓ right"} <= set(re.findall(r">([^<]*)</text>", text))  # said in words, not by colour alone


def test_the_readme_names_every_document():
    assert all(f"docs/{path.name}" in README for path in DOCS)


@pytest.mark.parametrize("line", requirements())
def test_every_requirement_is_pinned(line):
    assert re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9.]*", line)


@pytest.mark.parametrize("line", requirements())
def test_a_pin_is_for_no_python_that_its_package_refuses(line):
    pin = Requirement(line)
    try:
        package = metadata.metadata(pin.name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{pin.name} is optional, and not installed")
    if package["Version"] not in pin.specifier:
        pytest.skip("another version is installed")
    declared = re.search('requires-python = "(.*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8")).group(1)
    ours = [f"3.{minor}" for minor in range(99) if f"3.{minor}" in SpecifierSet(declared)]
    assert ours == ["3.11", "3.12", "3.13", "3.14"]
    assert all(python in SpecifierSet(package["Requires-Python"] or "") for python in ours)


def test_no_requirement_is_pinned_twice():
    names = [Requirement(parameter.values[0]).name.lower() for parameter in requirements()]
    assert len(names) == len(set(names))


def test_requirements_install_everything_on_a_gpu_machine():
    texts = [line for name in ("requirements.txt", "requirements-cpu.txt") for line in lines(name)]
    names = {line.partition("==")[0] for line in texts}
    assert names >= {"-r requirements-cpu.txt", "torch", "transformers", "trl", "unsloth", "unsloth_zoo", "pytest"}
    assert not any(line.startswith("unsloth") for line in lines("requirements-cpu.txt"))


def test_the_sweeps_of_recipes_are_there():
    [names] = re.findall(r"for each in ([\w ]+); do", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert len(names.split()) == 6 and all((ROOT / f"configs/sweep_{name}.yaml").exists() for name in names.split())


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_lists_every_target():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE).group(1).split())
    shown = subprocess.run(
        ["make", "-C", ROOT, "--no-print-directory"], check=True, capture_output=True, text=True
    ).stdout
    listed = re.findall(r"^  make ([\w-]+) +\S", shown, re.MULTILINE)
    assert set(listed) == targets
    assert targets == {
        "demo", "demo-real", "demo-bags", "demo-selfplay", "demo-distill", "demo-puzzles", "sweep", "sweep-recipes",
        "speedrun", "data", "test", "setup", "setup-vllm", "smoke", "smoke-real", "report", "lint", "clean", "help",
    }  # fmt: skip
    assert all(f"`{target}`" in RUNNING or f"make {target}" in RUNNING for target in targets - {"help"})


def test_what_is_claimed_of_tiny_models_is_trained_on_cores_in_float32():
    """A GPU would take bfloat16, and repeat none of the figures."""
    configs = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / "configs").glob("tiny_*.yaml")]
    dtypes = [config["model"].get("dtype") for config in configs if "model" in config]
    assert len(dtypes) > 10 and set(dtypes) == {"float32"}
    hidden = re.search(r"^([\w -]+): export CUDA_VISIBLE_DEVICES =$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    assert {"demo", "demo-selfplay", "demo-distill", "demo-puzzles", "sweep", "sweep-recipes", "speedrun"} == set(
        hidden.split()
    )


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_set_up_names_what_is_missing_when_no_python_fits(tmp_path):
    command = ["make", "-C", ROOT, "setup", f"VENV={tmp_path / 'venv'}", "PYTHON=no-such-python"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode != 0 and not (tmp_path / "venv").exists()
    assert "error: no-such-python is not Python 3.11, 3.12 or 3.13 with venv; install one, or name it" in result.stderr


def test_the_licence_is_apache():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text and "Version 2.0, January 2004" in text and "END OF TERMS AND CONDITIONS" in text
    assert "Apache-2.0" in README and "AGPL" in README


def test_citation_and_changes_name_the_version_of_the_package():
    version = re.search('^version = "(.*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search("^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1] == version

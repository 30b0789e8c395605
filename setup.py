"""Builds the judge of programs alone: the distribution `rematch-sandbox`, imported as `rematch_sandbox`.

    pip install .                      # needs Python alone: it has no dependencies
    python -m rematch_sandbox --self-test

Rematch itself is scripts to be cloned, over a folder `lib` that cannot be installed under that name beside others. So
the part that others can take gets a name of its own here: files are copied, `lib.sandbox` and the four modules that
it stands on are renamed in them, and the corpus of tests/ comes along as data.
"""

import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

NAME = "rematch_sandbox"
STANDS_ON = {
    "lib/core/output.py": "output", "lib/core/errors.py": "errors", "lib/text/parsing.py": "parsing",
    "lib/text/quantities.py": "quantities",
}  # fmt: skip
# rows of data sets, by pydantic
LEFT_OUT = {f"lib/sandbox/{name}.py" for name in ("tasks", "questions", "trials")}
CORPUS = ("tests/hostile/**/*.py", "tests/right/*.py", "tests/gaming/*.jsonl")
RENAMED = {
    r"lib(.)(?:core|text)\1(output|errors|parsing|quantities)\b": rf"{NAME}\1\2",
    r"lib([./])sandbox\b": NAME,
}


class BuildSandbox(build_py):
    """Copies what the package has, with its new name."""

    def run(self) -> None:
        """Writes the package into the folder of the build."""
        target = Path(self.build_lib, NAME)
        shutil.rmtree(target, ignore_errors=True)
        sources = {path: path[len("lib/sandbox/") :] for path in map(str, sorted(Path("lib/sandbox").rglob("*.py")))}
        for path, name in {**sources, **{path: f"{name}.py" for path, name in STANDS_ON.items()}}.items():
            if path not in LEFT_OUT:
                text = Path(path).read_text(encoding="utf-8")
                for old, new in RENAMED.items():
                    text = re.sub(old, new, text)
                self._write(target / name, text)
        for path in sorted(path for pattern in CORPUS for path in Path().glob(pattern)):
            copy = target / "corpus" / path.relative_to("tests")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


setup(packages=[NAME], package_dir={NAME: "lib/sandbox"}, cmdclass={"build_py": BuildSandbox})

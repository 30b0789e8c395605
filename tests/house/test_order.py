import ast
import builtins
import functools
import importlib
import os
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WINGS = ("judge", "engine", "lib", "pages")  # a later one may import an earlier one
FILES = sorted(
    path for wing in WINGS for path in (ROOT / wing).rglob("*.py") if ROOT / "judge/data" not in path.parents
)
SCRIPTS = {path.stem for path in ROOT.glob("*.py")}
HEAVY = {"transformers", "peft", "trl", "datasets", "unsloth", "vllm", "bitsandbytes", "wandb", "matplotlib", "openai"}
NOT_ON_MACOS = {
    "sched_getaffinity", "sched_setaffinity", "memfd_create", "eventfd", "pidfd_open", "pipe2", "splice",
    "copy_file_range", "fdatasync", "posix_fadvise", "posix_fallocate", "getxattr", "setresuid", "setresgid",
    "setxattr", "prlimit", "epoll", "sigwaitinfo", "sigtimedwait", "O_PATH", "O_TMPFILE", "O_DIRECT", "F_ADD_SEALS",
}  # fmt: skip


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path, top_level_only=False):
    """Dotted names that a file imports; `from lib import stats` is lib.core.stats."""
    tree = ast.parse(path.read_text())
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides the order"
            for alias in node.names:
                inner = ROOT / Path(*node.module.split("."), alias.name)
                is_module = inner.is_dir() or inner.with_suffix(".py").exists()
                yield f"{node.module}.{alias.name}" if is_module else node.module


@functools.cache
def contents(package):
    """The names in a package, in reading order, as its page has them; those on one line do not know each other."""
    page = ast.get_docstring(ast.parse((ROOT / Path(*package.split(".")) / "__init__.py").read_text()))
    lines = re.findall(r"^(\w+/?(?:, \w+/?)*)   *\S", page, flags=re.MULTILINE)
    return [[name.rstrip("/") for name in line.split(", ")] for line in lines]


def position(module):
    """Where a module stands: a number for its wing, one a level. What a package exports is behind all that it has."""
    names = module.split(".")
    numbers = [WINGS.index(names[0])]
    for depth in range(1, len(names)):
        lines = contents(".".join(names[:depth]))
        numbers.append(next(number for number, line in enumerate(lines) if names[depth] in line))
    is_package = (ROOT / Path(*names)).is_dir()
    return [*numbers, len(contents(module))] if is_package else numbers


@functools.cache
def exports(package):
    """Whether a package's page imports names for others to take."""
    return bool(list(imports_of(ROOT / Path(*package.split(".")) / "__init__.py")))


@pytest.mark.parametrize("page", [path for path in FILES if path.name == "__init__.py"], ids=module_of)
def test_a_page_tells_all_that_its_package_has(page):
    folder = page.parent
    found = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")}
    found |= {path.name for path in folder.iterdir() if path.is_dir() and list(path.glob("*.py"))}
    told = [name for line in contents(module_of(page)) for name in line]
    assert sorted(told) == sorted(found)


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_module_refers_back_only(path):
    here = module_of(path)
    for other in imports_of(path):
        if other.split(".")[0] not in WINGS:
            assert other.split(".")[0] not in SCRIPTS, f"{here} imports the script {other}"
        elif path.stem != "__main__":  # which is behind everything
            assert position(other) < position(here), f"{here} refers ahead to {other}, or to its mate"
            for package in [other[: dot.start()] for dot in re.finditer(r"\.", other)]:
                if not here.startswith(package):
                    assert not exports(package), f"{here} reaches past {package}, which exports what others may take"


@pytest.mark.parametrize("wing", ["judge", "engine"])
def test_the_wings_stand_alone(wing):
    for path in (path for path in FILES if ROOT / wing in path.parents):
        assert not {name.split(".")[0] for name in imports_of(path)} & set(WINGS) - {wing}, path


def test_no_module_has_the_name_of_one_of_the_standard_library():
    shadows = {module_of(path) for path in FILES if path.stem in sys.stdlib_module_names}
    assert not shadows, "`import NAME` beside such a file is read as the other one"


def test_no_public_name_of_a_class_or_type_stands_twice():
    places = defaultdict(list)
    for path in [*FILES, *ROOT.glob("*.py")]:
        for node in ast.parse(path.read_text()).body:
            names = [node.name] if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.Assign):
                names = [name.id for name in node.targets if isinstance(name, ast.Name) and not name.id.isupper()]
            for name in names:
                if name[0].isupper():  # types have capitals, constants nothing else
                    places[name].append(module_of(path))
    twice = {name: modules for name, modules in places.items() if len(modules) > 1}
    assert not twice, "one word per idea: rename all but one"
    assert "Path" not in places, "that is pathlib's"


def test_nobody_imports_a_script():
    for folder in (ROOT, ROOT / "data", ROOT / "benchmarks"):
        for path in folder.glob("*.py"):
            scripts = {name.split(".")[0] for name in imports_of(path)} & SCRIPTS
            assert scripts <= {"reward_function"}, f"{path} imports {scripts}"


def test_heavy_packages_are_imported_inside_functions():
    for path in [*FILES, *ROOT.glob("*.py")]:
        found = {name.split(".")[0] for name in imports_of(path, top_level_only=True)} & HEAVY
        assert not found, f"{path} imports {found} at the top, so before Unsloth could be"


def test_nothing_but_the_sandbox_needs_linux():
    sandbox = set(ROOT.glob("judge/**/*.py"))  # which asks before it calls
    for path in {*FILES, *ROOT.glob("*.py"), *ROOT.glob("data/*.py")} - sandbox:
        names = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        assert not names & NOT_ON_MACOS, f"{path} would end with an AttributeError on macOS"


def test_an_import_reads_no_file_writes_none_and_sets_no_variable(monkeypatch):
    modules = [module_of(path) for path in FILES]
    for module in modules:
        importlib.import_module(module)  # what others do when they are imported is theirs
    saved = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in WINGS}
    opened = []
    real_open = builtins.open
    monkeypatch.setattr(
        builtins, "open", lambda file, *rest, **more: opened.append(file) or real_open(file, *rest, **more)
    )
    monkeypatch.setattr(Path, "open", lambda self, *rest, **more: opened.append(self))
    monkeypatch.setattr(os, "mkdir", lambda path, *rest, **more: opened.append(path))
    before = dict(os.environ)
    try:
        for module in modules:
            importlib.import_module(module)
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] in WINGS]:
            del sys.modules[name]
        sys.modules.update(saved)
    assert opened == []
    assert dict(os.environ) == before

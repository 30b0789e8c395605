"""What changes a fingerprint, and what does not."""

import importlib
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from helpers.judges import judge_by
from safetensors.torch import load_file, save_file

from lib.core.registry import extractors, matchers, rewards
from lib.run import fingerprints

WEIGHTS, TOKENIZER, TEMPLATE = "the base weights", "the tokenizer", "the chat template"


def of(folder, tokenizer, commit=None):
    return fingerprints.of_model(str(folder), SimpleNamespace(config=SimpleNamespace(_commit_hash=commit)), tokenizer)


def changed(before, after):
    return {name for name in before if before[name] != after[name]}


@pytest.fixture
def base(tiny_folder, tmp_path):
    return shutil.copytree(tiny_folder, tmp_path / "base")


def edit(path, **fields):
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def one_weight(base):
    tensors = load_file(base / "model.safetensors")
    tensors[min(tensors)].view(-1)[-1] += 1e-3
    save_file(tensors, base / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (one_weight, {WEIGHTS}),
        (lambda base: edit(base / "generation_config.json", eos_token_id=[1, 2]), {WEIGHTS}),
        (lambda base: edit(base / "config.json", rope_theta=7), {WEIGHTS}),
        (lambda base: edit(base / "tokenizer.json", normalizer={"type": "Lowercase"}), {TOKENIZER}),
        (lambda base: edit(base / "tokenizer_config.json", add_bos_token=True), {TOKENIZER}),
        (lambda base: (base / "vocab.json").write_text("{}"), {TOKENIZER}),
        (lambda base: (base / "README.md").write_text("words"), set()),
        (lambda base: (base / "model.safetensors").touch(), set()),
    ],
)
def test_what_changed_in_a_folder_is_named(base, tokenizer, change, expected):
    before = of(base, tokenizer)
    change(base)
    assert changed(before, of(base, tokenizer)) == expected
    assert changed(before, of(base, SimpleNamespace(chat_template="other"))) == expected | {TEMPLATE}


def test_a_model_of_the_hub_is_known_by_its_commit(tokenizer):
    one, other = (of("somebody/model", tokenizer, commit) for commit in ("a1", "b2"))
    assert changed(one, other) == {WEIGHTS, TOKENIZER}
    assert of("somebody/model", tokenizer).keys() == {TEMPLATE}  # nothing to know it by


def test_large_files_are_read_in_places(base, tokenizer, monkeypatch):
    monkeypatch.setattr(fingerprints, "SMALL", 10_000)
    tensors = {f"layer {i}": torch.randn(size) for i, size in enumerate((300_000, 5_000_000))}
    (base / "model.safetensors").unlink()

    def write(values):
        save_file(values, base / "model.safetensors")
        return of(base, tokenizer)

    before = write(tensors)
    assert write(tensors) == before
    for key in tensors:
        assert changed(before, write(tensors | {key: tensors[key] + 1e-3})) == {WEIGHTS}, key
    assert changed(before, write({**tensors, "more": torch.zeros(1)})) == {WEIGHTS}


FILES = {
    "my_rewards/__init__.py": "",
    "my_rewards/judge.py": "import json\ndef paid(predictions):\n    return [len(p) * 2 for p in predictions]\n",
    "my_rewards/begins.py": "from lib.core.registry import register_reward\nfrom my_rewards.judge import paid\n"
    "def begin(text, row):\n    return 1\nregister_reward('paid', begin=begin)(paid)\n",
}


def rewritten(name, text):
    (Path(name).parent).mkdir(exist_ok=True)
    Path(name).write_text(text)


@pytest.fixture
def code(tmp_path, monkeypatch):
    """The fingerprint of a reward in a package of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(rewards, "_entries", dict(rewards._entries))
    for name, text in FILES.items():
        rewritten(name, text)

    def found():
        for name in [name for name in sys.modules if name.startswith("my_rewards")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode  # two versions within a second
        try:
            judge = judge_by("my_rewards.begins.paid")
            judge.functions[0](["x"])
        finally:
            sys.dont_write_bytecode = before
        return fingerprints.of_code(judge.functions)

    yield found
    for name in [name for name in sys.modules if name.startswith("my_rewards")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "old", "new", "is_seen"),
    [
        ("judge.py", "len(p) *", "len(p) +", True),
        ("begins.py", "return 1", "return 2", True),  # a hook of it
        ("judge.py", "import json\n", "import json  # for nothing\n\n\n", False),
    ],
)
def test_a_rewards_code_is_known_with_its_hooks(code, name, old, new, is_seen):
    before = code()
    assert code() == before
    rewritten(f"my_rewards/{name}", FILES[f"my_rewards/{name}"].replace(old, new))
    assert (code() != before) is is_seen


def test_every_shipped_function_has_a_fingerprint():
    nothing = fingerprints.of_code([])
    for registry in (rewards, extractors, matchers):
        for name in registry:
            assert fingerprints.of_code([registry.get(name)]) != nothing, name

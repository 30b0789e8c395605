"""Fingerprints of what a run is made of, besides its config: a resume must see the same under the same names.

base weights    a local folder: its weights, config.json, generation_config.json and code of its own; of a file
                above 64 MB its size and 1,025 blocks, evenly spaced
tokenizer       a local folder: the files of its tokenizer
adapter in it   of model.adapter: its weights and settings, and which tokens end an answer
chat template   the text in use
reward          the files in which reward, extractors and equality stand, comments and layout aside
A model of the Hugging Face Hub is known by the commit that was loaded.
"""

import ast
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

REWARD = "the reward's code"
SMALL = 64_000_000  # bytes; files up to this size are read whole
BLOCK = 4096
BLOCKS = 1024
STANDS_ON = "stands_on"  # on a base and in adapters trained on it: the adapter merged into it (lib/model/merging.py)
WEIGHTS = "the base weights"
BASE = ("*.safetensors", "*.bin", "*.pt", "*.gguf", "config.json", "generation_config.json", "*.py")
ADAPTER = ("adapter_*", "generation_config.json")
TOKENIZER = (
    "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab*", "merges.txt", "*.model", "*.tiktoken",
)  # fmt: skip


def of_model(name: str | None, model: Any, tokenizer: Any) -> dict[str, str]:
    """Returns fingerprints of a model loaded by name, an adapter merged into it, its tokenizer and chat template."""
    fingerprints = {"the chat template": _hash(json.dumps(tokenizer.chat_template, sort_keys=True).encode())}
    if weights := of_weights(name, model):
        fingerprints[WEIGHTS] = weights
        fingerprints["the tokenizer"] = _of_files(Path(name), TOKENIZER) if Path(name).is_dir() else weights
    if ground := getattr(model, STANDS_ON, None):
        fingerprints["the adapter in model.adapter"] = ground["fingerprint"]
    return fingerprints


def of_weights(name: str | None, model: Any) -> str | None:
    """Returns the fingerprint of the weights of a model loaded by name; None if it is unknown."""
    if name and Path(name).is_dir():
        return _of_files(Path(name), BASE)
    return getattr(model.config, "_commit_hash", None)


def of_adapter(folder: Path) -> str:
    """Returns the fingerprint of a saved adapter."""
    return _of_files(folder, ADAPTER)


def of_code(functions: Iterable[Callable]) -> str:
    """Returns the fingerprint of the modules that define functions."""
    hashes: dict[str, str] = {}
    for function in functions:
        while isinstance(function, partial):
            function = function.func
        name = getattr(inspect.unwrap(function), "__module__", "")
        path = Path(getattr(sys.modules.get(name), "__file__", None) or "")
        if path.suffix == ".py":
            hashes[name] = _hash(ast.dump(ast.parse(path.read_bytes())).encode())
    return _hash(json.dumps(hashes, sort_keys=True).encode())


def _of_files(folder: Path, patterns: Iterable[str]) -> str:
    files = sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
    return _hash(*(part for path in files for part in (path.name.encode(), _of_file(path).encode())))


def _of_file(path: Path) -> str:
    size = path.stat().st_size
    with open(path, "rb") as file:
        if size <= SMALL:
            return _hash(file.read())
        blocks = []
        for number in range(BLOCKS + 1):  # a tensor that was trained differs nearly everywhere
            file.seek((size - BLOCK) * number // BLOCKS)
            blocks.append(file.read(BLOCK))
    return _hash(str(size).encode(), *blocks)


def _hash(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:16]

"""YAML text as nested dicts, with the line of every dotted key; dotted keys set in them, and compared."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import yaml

from lib.core.errors import ConfigError

MERGE = "tag:yaml.org,2002:merge"  # `<<: *name` copies another section's keys, except those given here


class _Loader(yaml.SafeLoader):
    """YAML whose scalars mean what people expect: `no` is text, `010` is 10, `1e-5` is a number."""

    yaml_implicit_resolvers: ClassVar[dict[str, list]] = {}


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|false|False)$"), list("tTfF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|)$"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver("tag:rematch:int", re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$|^[-+]?\.(?:inf|nan)$"),
    list("-+.0123456789"),
)
_Loader.add_implicit_resolver(MERGE, re.compile(r"^<<$"), ["<"])
_Loader.add_constructor("tag:rematch:int", lambda loader, node: int(node.value))


def read_tree(path: Path) -> dict:
    """Returns the values of a YAML file by key, whatever the keys. Raises ConfigError if it cannot be read."""
    return read(path)[0]


def read(path: Path) -> tuple[dict, dict[str, Any], list[tuple[Any, str]]]:
    """Reads a YAML file: its tree, the line of every dotted key, and the duplicate keys. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(f"{path}: the config cannot be read ({reason}); give an existing YAML file") from error
    try:
        root = yaml.compose(text, Loader=_Loader)
        if not isinstance(root, yaml.MappingNode):
            raise ConfigError(f"{path}: got no `key: value` lines, expected a config; see configs/ for examples")
        lines: dict[str, Any] = {}
        duplicates: list[tuple[Any, str]] = []
        _index(root, "", lines, duplicates)
        return copied(_Loader("").construct_document(root)), lines, duplicates
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"{path}:{line}: not YAML: {error.reason}; remove that character") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: not YAML: {error.problem}; check indentation and quotes") from error
    except RecursionError as error:
        problem = "values are nested too deep, or hold themselves by *name"
        raise ConfigError(f"{path}: {problem}; check brackets and indentation") from error


def value_of(text: str) -> Any:
    """Returns the value that a text has as YAML, or the text itself if it is none."""
    try:
        return copied(yaml.load(text, Loader=_Loader)) if text else ""
    except (yaml.YAMLError, RecursionError):
        return text


def put(tree: dict, key: str, value: Any) -> list[str]:
    """Sets the value of a dotted key; returns the sections that had to be made for it."""
    *path, last = key.split(".")
    made = []
    for depth, part in enumerate(path, start=1):
        if not isinstance(tree.get(part), dict):
            tree[part] = {}
            made.append(".".join(path[:depth]))
        tree = tree[part]
    tree[last] = value
    return made


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the dotted keys whose values differ between two trees, each with `before -> now`."""
    old, new = (dict(flat(tree)) for tree in (before, now))
    for key in {**old, **new}:
        pair = old.get(key, "absent"), new.get(key, "absent")
        if pair[0] != pair[1]:
            yield key, f"{pair[0]!r} -> {pair[1]!r}"


def copied(value: Any) -> Any:
    """Copies nested dicts and lists and makes every key text, so that a key such as `1` is reported as unknown."""
    if isinstance(value, list):
        return [copied(item) for item in value]
    return {str(key): copied(item) for key, item in value.items()} if isinstance(value, dict) else value


def shortened(value: Any) -> str:
    """Returns how a value is written in Python, in 60 characters at most."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the dotted keys of a tree with their values; an empty section is one."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _index(node: yaml.MappingNode, prefix: str, lines: dict[str, Any], duplicates: list[tuple[Any, str]]) -> None:
    """Notes the line of every dotted key of a section but those that `<<` brings: their line is the section's."""
    for key_node, value_node in node.value:
        if key_node.tag == MERGE:
            continue
        key = prefix + str(key_node.value)
        line = key_node.start_mark.line + 1
        if key in lines:
            duplicates.append((line, f"{key}: given twice, first in line {lines[key]}: remove one of them"))
        lines[key] = line
        if isinstance(value_node, yaml.MappingNode):
            _index(value_node, key + ".", lines, duplicates)

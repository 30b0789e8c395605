"""YAML text as nested dicts, with the line of every dotted key; dotted keys set in them, and compared."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import yaml

from lib.core.errors import ConfigError

MERGE = "tag:yaml.org,2002:merge"  # `<<: *name` copies another section's keys, except those given here
MOST_VALUES = 10_000  # in a config, repetitions by `*name` included
DEEPEST = 50  # levels of nesting


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


class Knot(yaml.MarkedYAMLError):
    """YAML that would never come to an end, or not soon."""


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
        root = _composed(text)
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
        is_yaml = isinstance(error, Knot)
        problem = error.problem if is_yaml else f"not YAML: {error.problem}; check indentation and quotes"
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: {problem}") from error


def value_of(text: str) -> Any:
    """Returns the value that a text has as YAML, or the text itself if it is none. Raises Knot."""
    try:
        root = _composed(text)
        return root and _Loader("").construct_document(root) if text else ""
    except yaml.YAMLError as error:
        if isinstance(error, Knot):
            raise
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
    old, new = (dict(_flat(tree)) for tree in (before, now))
    for key in {**old, **new}:
        pair = old.get(key, "absent"), new.get(key, "absent")
        if pair[0] != pair[1]:
            yield key, f"{pair[0]!r} -> {pair[1]!r}"


def copied(value: Any) -> Any:
    """Copies nested dicts and makes every key text, so that a key such as `1` is reported as unknown."""
    return {str(key): copied(item) for key, item in value.items()} if isinstance(value, dict) else value


def shortened(value: Any) -> str:
    """Returns how a value is written in Python, in 60 characters at most."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _composed(text: str) -> yaml.Node | None:
    """Parses YAML into nodes. Raises YAMLError: Knot if it is too deep, has too many values or contains itself."""
    too_deep = f"more than {DEEPEST} levels within each other; check brackets and indentation"
    depth = count = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):  # everything after this loop recurses, once per level
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise Knot(problem=too_deep, problem_mark=event.start_mark)

    def walk(node: yaml.Node, around: list[yaml.Node]) -> None:
        nonlocal count
        count += 1
        problem = ""
        if any(node is parent for parent in around):
            problem = "the value that begins here holds itself, by *name; write out what is meant"
        elif len(around) > DEEPEST:
            problem = too_deep
        elif count > MOST_VALUES:
            problem = f"more than {MOST_VALUES} values, those by *name included; shorten it"
        if problem:
            raise Knot(problem=problem, problem_mark=node.start_mark)
        for child in node.value if isinstance(node, yaml.CollectionNode) else ():
            for part in child if isinstance(child, tuple) else (child,):
                walk(part, [*around, node])

    root = yaml.compose(text, Loader=_Loader)
    if root is not None:
        walk(root, [])
    return root


def _index(node: yaml.MappingNode, prefix: str, lines: dict[str, Any], duplicates: list[tuple[Any, str]]) -> None:
    """Notes the line of every dotted key of a section; keys merged by `<<` give way to the section's own."""
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
    own_keys = [key for key in lines if key.startswith(prefix)]
    for brought in (value for key, value in node.value if key.tag == MERGE):
        for section in brought.value if isinstance(brought, yaml.SequenceNode) else [brought]:
            theirs: dict[str, Any] = {}
            if isinstance(section, yaml.MappingNode):
                _index(section, prefix, theirs, [])
            for key, line in theirs.items():
                if not any(f"{key}.".startswith(f"{own_key}.") for own_key in own_keys):
                    lines.setdefault(key, line)

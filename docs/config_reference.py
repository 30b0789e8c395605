"""Writes docs/config.md: every key of every config, its type, default and meaning, as lib/core/config/ has them.

    python docs/config_reference.py

A test holds the file and the classes together.
"""

import ast
import inspect
import json
import re
import sys
import tokenize
import types
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import lib.core.config

TARGET = Path(__file__).with_name("config.md")
NAMES = {str: "text", int: "integer", float: "number", bool: "true or false", Any: "anything", type(None): "null"}
BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
HEAD = """# Config reference

Made by `python docs/config_reference.py` from the classes in `lib/core/config/`. A config is a YAML file with the
sections of its script; any value can be replaced on the command line, such as `train.alpha=5`. A section whose keys
all have defaults may be left out; a key without a default must be given.
"""


def main() -> None:
    """Writes docs/config.md."""
    TARGET.write_text(reference(), encoding="utf-8")


def reference() -> str:
    """Returns the whole page: the sections of each script, then the keys of each section, once."""
    comments = {}
    for path in sorted(Path(lib.core.config.__file__).parent.glob("*.py")):
        comments |= comments_by_field(path.read_text(encoding="utf-8"))
    parts, classes = [HEAD], {}
    for kind in lib.core.config.KINDS:  # each is named for its script
        parts += [f"## {kind.__doc__}\n", table(kind, comments)]
        classes |= dict.fromkeys(sections_of(kind))
    for section in classes:
        parts += [f"## {section.__name__}\n", f"{inspect.getdoc(section)}\n", table(section, comments)]
    return "\n".join(parts)


def sections_of(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yields the sections of a config, and those within them."""
    for field in kind.model_fields.values():
        for section in sections_in(field.annotation):
            yield section
            yield from sections_of(section)


def sections_in(annotation: Any) -> list[type[BaseModel]]:
    """Returns the section classes that a type names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for part in get_args(annotation) for section in sections_in(part)]


def table(kind: type[BaseModel], comments: dict[tuple[str, str], str]) -> str:
    """Returns a table with a row for each key of a section."""
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for name, field in kind.model_fields.items():
        owner = next(base for base in kind.__mro__ if name in inspect.get_annotations(base))
        meaning = comments.get((owner.__name__, name)) or " ".join(map(summary, sections_in(field.annotation)))
        cells = f"`{name}`", type_of(field), default_of(field), meaning
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows) + "\n"


def summary(section: type[BaseModel]) -> str:
    """Returns the first sentence of a section's docstring."""
    return inspect.getdoc(section).partition("\n")[0]


def type_of(field: FieldInfo) -> str:
    """Describes what a value may be, in words."""
    return in_words(Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation)


def in_words(annotation: Any) -> str:
    """Describes a type for people: bounds after it, alternatives joined by "or"."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        facts = [fact for part in parts[1:] for fact in getattr(part, "metadata", [part])]
        bounds = [
            f" {sign} {getattr(fact, name):g}" for fact in facts for name, sign in BOUNDS.items() if hasattr(fact, name)
        ]
        return in_words(parts[0]) + ",".join(bounds)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(map(in_words, parts))
    if origin is list:
        return f"list of {in_words(parts[0])}"
    if origin is tuple:
        return f"[{', '.join(map(in_words, parts))}]"
    if origin is dict:
        return f"{{{in_words(parts[0])}: {in_words(parts[1])}}}"
    if sections := sections_in(annotation):
        return f"[{sections[0].__name__}](#{sections[0].__name__.lower()})"
    return NAMES[annotation]


def default_of(field: FieldInfo) -> str:
    """Formats the default as YAML; blank where a key must be given, or is a section."""
    if field.is_required() or isinstance(field.default, BaseModel):
        return ""
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    if isinstance(value, str) and not re.fullmatch(r"[\w./-]+", value):
        return f"`{json.dumps(value)}`"
    text = yaml.safe_dump(value, default_flow_style=True, width=1000).strip().removesuffix("\n...")
    return f"`{text}`"


def comments_by_field(source: str) -> dict[tuple[str, str], str]:
    """Maps class and field to the comment after it and those on the lines below, up to the next statement."""
    tokens = tokenize.generate_tokens(StringIO(source).readline)
    comment_at = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    lines, found = source.splitlines(), {}
    for node in ast.parse(source).body:
        for part in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                texts, at = [comment_at.get(part.end_lineno, "")], part.end_lineno + 1
                while at <= len(lines) and lines[at - 1].strip().startswith("#"):
                    texts.append(comment_at[at])
                    at += 1
                found[node.name, part.target.id] = re.sub(r"fmt: \w+", "", " ".join(texts)).strip()
    return found


if __name__ == "__main__":
    main()

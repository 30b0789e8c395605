"""Shared by the scripts that build data sets: their first options, chats as rows, and files of rows."""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any


def options(description: str, out: str, seed: int = 0, metavar: str = "DIR") -> argparse.ArgumentParser:
    """Returns a parser with --out and --seed."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--out", type=Path, default=Path(out), metavar=metavar)
    result.add_argument("--seed", type=int, default=seed)
    return result


def chat(*texts: str) -> dict:
    """Returns a row in the format of chats, in which user and assistant take turns."""
    turns = enumerate(texts)
    return {"messages": [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in turns]}


def distinct(items: Iterable[Any], key: Callable[[Any], Any]) -> Iterator[Any]:
    """Yields the first item of every key."""
    seen = set()
    for item in items:
        if key(item) not in seen:
            seen.add(key(item))
            yield item


def write_rows(path: Path, rows: Iterable[dict]) -> None:
    """Writes one JSON object per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)

"""Rows from wherever they lie, as a train split and a held-out split that share no row.

A source is a hub id, a file (.json .jsonl .csv .parquet), a folder of such files named after their splits, or a data
set that was saved by `save_to_disk`. Nothing local is copied into a cache.
"""

import csv
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from lib.config import Dataset, SFTDataset
from lib.errors import ConfigError
from lib.hub import offline_unless_reachable
from lib.registry import did_you_mean

Row = dict[str, Any]
Table = Any  # list[Row], or a datasets.Dataset

HELD_OUT_NAMES = ("test", "validation")  # the first of these that a source has is the held-out split
SHOWN_MISTAKES = 10
CHUNK_ROWS = 4096
KEY = "dataset.name"


@dataclass(frozen=True)
class Splits:
    """Rows to train on and rows held out, and what to tell about them."""

    train: list[Row]
    test: list[Row]
    source: str  # for people: where the rows are from
    fingerprint: str  # hash of the rows: a resumed run must see the same
    overlap: int  # train rows that were removed because they are held out too


def load_splits(dataset: Dataset | SFTDataset, columns: Collection[str]) -> Splits:
    """The rows of a data set; every row has a value in each of `columns` (empty: any columns will do).

    With `split` given, or a source of one split only, its first `test_split_size` rows are held out and the rest is
    train. With a train and a test split, the first `test_split_size` test rows are held out; the other test rows are
    left unused unless `spill_test_into_train`. A train row that equals a held-out row in `columns` is removed.

    Raises ConfigError: unreadable or empty source, missing columns, `test_split_size` too large.
    """
    tables = _read(dataset)
    train_table, test_table, source = _choose(tables, dataset)
    size = dataset.test_split_size
    if test_table is None:
        if size >= len(train_table):
            raise ConfigError(
                f"dataset.test_split_size: got {size}, but {source} has {len(train_table)} rows and some must be "
                f"left to train on: lower it below {len(train_table)}"
            )
        test, rest = _rows(train_table, 0, size), _rows(train_table, size, len(train_table))
    else:
        if size > len(test_table):
            raise ConfigError(
                f"dataset.test_split_size: got {size}, but {source} has {len(test_table)} test rows: "
                f"lower it to {len(test_table)} or less"
            )
        test, rest = _rows(test_table, 0, size), _rows(train_table, 0, len(train_table))
        if getattr(dataset, "spill_test_into_train", False):
            rest = chain(rest, _rows(test_table, size, len(test_table)))
    test = list(_checked(test, columns, source))
    train, overlap = _without(_checked(rest, columns, source), test, columns, dataset.max_train_rows)
    if not train:
        raise ConfigError(f"{KEY}: no row of {source} is left to train on, {overlap} are held out: give other data")
    return Splits(train, test, source, _fingerprint(train, test), overlap)


def parted(rows: list[Row], most: int) -> tuple[list[Row], list[Row]]:
    """Rows to choose by, at most `most` and at most a quarter of all, and the others; each in the order of the data.

    A hash of their content alone draws them, so they are the same in every run, for every seed and number of reported
    rows. Equal rows come into the same part.
    """
    keys = [content_of(row) for row in rows]
    copies, chosen, left = Counter(keys), set(), min(most, len(rows) // 4)
    for key in sorted(copies):
        if copies[key] <= left:
            chosen.add(key)
            left -= copies[key]
    both = [[row for row, key in zip(rows, keys, strict=True) if (key in chosen) is wanted] for wanted in (True, False)]
    return both[0], both[1]


def content_of(row: Row) -> str:
    """A hash of all columns of a row."""
    return hashlib.sha256(_content(row, ()).encode()).hexdigest()


def _choose(tables: dict[str, Table], dataset: Dataset | SFTDataset) -> tuple[Table, Table | None, str]:
    """Train table, test table (None: hold out rows of the first) and a name for messages."""
    name, known = dataset.name, ", ".join(tables)
    if dataset.split is not None:
        split, start, stop = _parse_split(dataset.split)
        if split not in tables:
            raise ConfigError(
                f"dataset.split: got '{split}', expected one of the splits of '{name}': {known}"
                f"{did_you_mean(split, tables)}"
            )
        table = tables[split]
        first, last, _ = slice(_bound(start, len(table)), _bound(stop, len(table))).indices(len(table))
        part = table[first:last] if isinstance(table, list) else table.select(range(first, max(first, last)))
        chosen = part, None, f"'{name}' ({dataset.split})"
    elif len(tables) == 1:
        chosen = next(iter(tables.values())), None, f"'{name}'"
    else:
        held_out = next((split for split in HELD_OUT_NAMES if split in tables), None)
        if "train" not in tables or held_out is None:
            raise ConfigError(
                f"dataset.split: '{name}' has the splits {known}, expected train and test: choose one, of which "
                "rows are held out"
            )
        chosen = tables["train"], tables[held_out], f"'{name}' (train, {held_out})"
    if len(chosen[0]) == 0:
        raise ConfigError(f"{KEY}: {chosen[2]} has no rows: give a source with at least one")
    return chosen


def _parse_split(text: str) -> tuple[str, str, str]:
    """`validation[:2000]` as `("validation", "", "2000")`; bounds are rows, or percent of them."""
    match = re.fullmatch(r"([\w.-]+)(?:\[(-?\d+%?)?:(-?\d+%?)?\])?", text)
    if match is None:
        raise ConfigError(f"dataset.split: got '{text}', expected a name or a part such as train[:2000] or train[:10%]")
    return match[1], match[2] or "", match[3] or ""


def _bound(text: str, size: int) -> int | None:
    if text.endswith("%"):
        return size * int(text[:-1]) // 100
    return int(text) if text else None


def _rows(table: Table, start: int, stop: int) -> Iterator[Row]:
    """Rows [start, stop), read piece by piece, because a hub data set may be larger than what is used of it."""
    if isinstance(table, list):
        yield from table[start:stop]
        return
    for first in range(start, stop, CHUNK_ROWS):
        yield from table.select(range(first, min(first + CHUNK_ROWS, stop))).to_list()


def _checked(rows: Iterator[Row], columns: Collection[str], source: str) -> Iterator[Row]:
    for number, row in enumerate(rows, start=1):
        for column in columns:
            if row.get(column) is None:
                state = "is empty in" if column in row else "is missing from"
                raise ConfigError(
                    f"{KEY}: column '{column}' {state} row {number} of {source}, which has {', '.join(map(repr, row))}"
                    ": name the right column in prompts.user or dataset.target_field, or mend the row"
                    f"{did_you_mean(column, row) if column not in row else ''}"
                )
        yield row


def _without(
    rows: Iterator[Row], held_out: list[Row], columns: Collection[str], limit: int | None
) -> tuple[list[Row], int]:
    """Up to `limit` rows that equal no held-out row in `columns`, and the number of those that did."""
    secret = {_content(row, columns) for row in held_out}
    train, overlap = [], 0
    for row in rows:
        if limit is not None and len(train) == limit:
            break
        if secret and _content(row, columns) in secret:
            overlap += 1
        else:
            train.append(row)
    return train, overlap


def _content(row: Row, columns: Collection[str]) -> str:
    return json.dumps([row[column] for column in sorted(columns or row)], sort_keys=True, default=str)


def _fingerprint(train: list[Row], test: list[Row]) -> str:
    digest = hashlib.sha256()
    for name, rows in (("train", train), ("test", test)):
        digest.update(name.encode())
        for row in rows:
            digest.update(json.dumps(row, sort_keys=True, default=str).encode() + b"\n")
    return digest.hexdigest()[:16]


def _read(dataset: Dataset | SFTDataset) -> dict[str, Table]:
    """Every split of the source by name."""
    path = Path(dataset.name).expanduser()
    if path.is_file():
        return {"train": _read_file(path)}
    if path.is_dir():
        return _read_folder(path)
    if path.suffix in READERS or path.is_absolute() or dataset.name.startswith(("./", "../", "~")):
        raise ConfigError(f"{KEY}: there is no file or folder '{dataset.name}'; give an existing path or a hub id")
    return _read_hub(dataset)


def _read_folder(folder: Path) -> dict[str, Table]:
    if (folder / "dataset_dict.json").exists() or (folder / "state.json").exists():
        import datasets

        try:
            saved = datasets.load_from_disk(str(folder))
        except Exception as error:  # a damaged Arrow file raises whatever its reader met
            raise ConfigError(
                f"{KEY}: the saved data set '{folder}' can not be read ({_line(error)}); save it again"
            ) from error
        return dict(saved) if isinstance(saved, datasets.DatasetDict) else {"train": saved}
    files = sorted(file for file in folder.iterdir() if file.suffix in READERS and not file.name.startswith("."))
    if not files:
        raise ConfigError(
            f"{KEY}: the folder '{folder}' holds no {' '.join(READERS)} file and no saved data set; give one that does"
        )
    tables: dict[str, list[Row]] = {}
    kinds: dict[str, str] = {}
    for file in files:
        split = re.sub(r"-\d+-of-\d+$", "", file.stem)  # train-00000-of-00002.parquet is a part of train
        if kinds.setdefault(split, file.suffix) != file.suffix:
            raise ConfigError(
                f"{KEY}: '{folder}' holds the split '{split}' as {kinds[split]} and as {file.suffix}: remove one"
            )
        tables.setdefault(split, []).extend(_read_file(file))
    return tables


def _read_file(path: Path) -> list[Row]:
    reader = READERS.get(path.suffix)
    if reader is None:
        raise ConfigError(f"{KEY}: got '{path}', expected a file that ends in {', '.join(READERS)}: convert it")
    try:
        return reader(path)
    except OSError as error:
        raise ConfigError(
            f"{KEY}: '{path}' can not be read ({error.strerror or error}); give a readable file"
        ) from error


def _read_json(path: Path) -> list[Row]:
    """A list of objects, or one object per line under the wrong suffix."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        if not text.lstrip().startswith("["):
            return _read_jsonl(path)
        rows = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{KEY}: '{path}' is no JSON ({error}); mend it there") from error
    wrong = next((index for index, row in enumerate(rows) if not isinstance(row, dict)), None)
    if wrong is not None:
        raise ConfigError(
            f"{KEY}: entry {wrong + 1} of '{path}' is no object, expected a list of objects: mend or remove it"
        )
    return rows


def _read_jsonl(path: Path) -> list[Row]:
    rows, mistakes = [], []
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except ValueError as error:
                mistakes.append(f"line {number}: {error}")
                continue
            if isinstance(row, dict):
                rows.append(row)
            else:
                mistakes.append(f"line {number}: got {type(row).__name__}, expected an object")
    _refuse(path, mistakes)
    return rows


def _read_csv(path: Path) -> list[Row]:
    rows, mistakes = [], []
    csv.field_size_limit(2**31 - 1)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            for row in reader:
                if None in row or None in row.values():
                    few_or_many = "more" if None in row else "fewer"
                    mistakes.append(
                        f"line {reader.line_num}: {few_or_many} values than the {len(reader.fieldnames)} columns"
                    )
                else:
                    rows.append(row)
    except (csv.Error, UnicodeDecodeError) as error:
        mistakes.append(f"after {len(rows)} rows: {error}")
    _refuse(path, mistakes)
    return rows


def _read_parquet(path: Path) -> list[Row]:
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(path).to_pylist()
    except pyarrow.ArrowInvalid as error:
        raise ConfigError(f"{KEY}: '{path}' is no Parquet ({_line(error)}); write it again") from error


READERS = {".json": _read_json, ".jsonl": _read_jsonl, ".csv": _read_csv, ".parquet": _read_parquet}


def _refuse(path: Path, mistakes: list[str]) -> None:
    """Raises ConfigError that lists the first mistakes and counts the rest."""
    if mistakes:
        more = len(mistakes) - SHOWN_MISTAKES
        lines = mistakes[:SHOWN_MISTAKES] + ([f"and {more} more"] if more > 0 else [])
        raise ConfigError(
            f"{KEY}: '{path}' has {len(mistakes)} bad rows; mend or remove them:\n  " + "\n  ".join(lines)
        )


def _read_hub(dataset: Dataset | SFTDataset) -> dict[str, Table]:
    import datasets

    unreachable = (
        f"{KEY}: data set '{dataset.name}' could not be loaded: not a local path, and the hub can not be reached; "
        "give dataset.name=PATH of a local file, or connect"
    )
    with offline_unless_reachable() as online:
        try:
            return dict(datasets.load_dataset(dataset.name, dataset.config_name, revision=dataset.revision))
        except ConnectionError as error:
            raise ConfigError(unreachable) from error
        except (OSError, ValueError, RuntimeError) as error:
            if not online:
                raise ConfigError(unreachable) from error
            raise ConfigError(
                f"{KEY}: data set '{dataset.name}' could not be loaded ({_line(error)}); check name, config_name "
                "and revision"
            ) from error


def _line(error: BaseException) -> str:
    """The first line of an error's message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]

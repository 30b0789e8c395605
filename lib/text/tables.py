"""The splits of a data set as tables of rows, from wherever they lie.

A source is a hub id, a file (.json .jsonl .csv .parquet), a folder of such files named after their splits, or a data
set that was saved by `save_to_disk`. Nothing local is copied into a cache.
"""

import csv
import io
import json
import math
import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lib.core.config import Dataset, SFTDataset
from lib.core.errors import ConfigError, first_line
from lib.run.hub import offline_unless_reachable
from lib.run.runlog import read_lines

Row = dict[str, Any]
Table = Any  # list[Row], or a datasets.Dataset
SHOWN_MISTAKES = 10
KEY = "dataset.name"


def read_tables(dataset: Dataset | SFTDataset) -> dict[str, Table]:
    """Returns every split of the source by name."""
    assert dataset.name is not None  # a mixture is read part by part
    path = Path(dataset.name).expanduser()
    if path.is_file():
        return {"train": _Rows().and_of(path)}
    if path.is_dir():
        return _read_folder(path)
    if path.suffix in READERS or path.is_absolute() or dataset.name.startswith(("./", "../", "~")):
        raise ConfigError(
            f"{KEY}: there is no file or folder '{dataset.name}'; give an existing path or a Hugging Face Hub id"
        )
    return _read_hub(dataset)


def _read_folder(folder: Path) -> dict[str, Table]:
    if (folder / "dataset_dict.json").exists() or (folder / "state.json").exists():
        import datasets

        try:
            saved = datasets.load_from_disk(str(folder))
        except Exception as error:  # a damaged Arrow file raises errors of any type
            raise ConfigError(
                f"{KEY}: the saved data set '{folder}' cannot be read ({first_line(error)}); save it again"
            ) from error
        return dict(saved) if isinstance(saved, datasets.DatasetDict) else {"train": saved}
    files = sorted(file for file in folder.iterdir() if file.suffix in READERS and not file.name.startswith("."))
    if not files:
        raise ConfigError(
            f"{KEY}: the folder '{folder}' holds no {' '.join(READERS)} file and no saved data set; give one that does"
        )
    tables: dict[str, _Rows] = {}
    kinds: dict[str, str] = {}
    for file in files:
        split = re.sub(r"-\d+-of-\d+$", "", file.stem)  # train-00000-of-00002.parquet is a part of train
        if kinds.setdefault(split, file.suffix) != file.suffix:
            raise ConfigError(
                f"{KEY}: '{folder}' holds the split '{split}' as {kinds[split]} and as {file.suffix}: remove one"
            )
        tables.setdefault(split, _Rows()).and_of(file)
    return tables


class _Rows(list):
    """Holds the rows of one or more files, and where each row stands in its file."""

    def __init__(self) -> None:
        super().__init__()
        self._starts: list[int] = []
        self._files: list[tuple[str, Sequence[int], Path]] = []  # unit of the numbers, number of each row, file

    def and_of(self, path: Path) -> "_Rows":
        """Appends the rows of one more file, and returns itself."""
        rows, unit, numbers = _read_file(path)
        self._starts.append(len(self))
        self._files.append((unit, numbers, path))
        self.extend(rows)
        return self

    def place_of(self, index: int) -> str:
        """Returns the place of a row, such as "line 7 of 'rows.jsonl'"."""
        number = bisect_right(self._starts, index) - 1
        unit, numbers, path = self._files[number]
        return f"{unit} {numbers[index - self._starts[number]]} of '{path}'"


Read = tuple[list[Row], str, Sequence[int]]  # rows, unit of their numbers, number of each row


def _read_file(path: Path) -> Read:
    reader = READERS.get(path.suffix)
    if reader is None:
        raise ConfigError(f"{KEY}: got '{path}', expected a file that ends in {', '.join(READERS)}: convert it")
    try:
        return reader(path)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{KEY}: line {line} of '{path}' is not UTF-8: save the file as UTF-8") from error
    except OSError as error:
        raise ConfigError(
            f"{KEY}: '{path}' cannot be read ({error.strerror or error}); give a readable file"
        ) from error


def _read_json(path: Path) -> Read:
    """Reads a list of objects, or one object per line (JSONL under the wrong suffix)."""
    text = path.read_text(encoding="utf-8-sig")
    if not text.lstrip().startswith("["):
        return _read_jsonl(path)
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{KEY}: '{path}' is not JSON ({error}); fix it there") from error
    wrong = next((index for index, row in enumerate(rows) if not isinstance(row, dict)), None)
    if wrong is not None:
        raise ConfigError(
            f"{KEY}: entry {wrong + 1} of '{path}' is not an object, expected a list of objects: fix or remove it"
        )
    return rows, "entry", range(1, len(rows) + 1)


def _read_jsonl(path: Path) -> Read:
    rows, mistakes, numbers = [], [], array("q")
    for line in read_lines(path):
        if line.problem:
            mistakes.append(f"line {line.number}: {line.problem}")
        elif line.row is not None:
            rows.append(line.row)
            numbers.append(line.number)
    _refuse(path, mistakes)
    return rows, "line", numbers


def _read_csv(path: Path) -> Read:
    rows, mistakes, numbers = [], [], array("q")
    csv.field_size_limit(2**31 - 1)
    try:
        reader = csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""), strict=True)
        reader.fieldnames  # noqa: B018  (it reads the first line)
        begin = reader.line_num + 1
        for row in reader:
            first, begin = begin, reader.line_num + 1  # a value may span several lines
            if None in row or None in row.values():
                few_or_many = "more" if None in row else "fewer"
                mistakes.append(f"line {first}: {few_or_many} values than the {len(reader.fieldnames)} columns")
            else:
                # how pandas and numpy write a missing number
                rows.append({name: math.nan if value in ("nan", "NaN") else value for name, value in row.items()})
                numbers.append(first)
    except csv.Error as error:
        mistakes.append(f"after {len(rows)} rows: {error}")
    _refuse(path, mistakes)
    return rows, "line", numbers


def _read_parquet(path: Path) -> Read:
    import pyarrow
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_table(path).to_pylist()
    except pyarrow.ArrowInvalid as error:
        raise ConfigError(f"{KEY}: '{path}' is not Parquet ({first_line(error)}); write it again") from error
    return rows, "row", range(1, len(rows) + 1)


READERS = {".json": _read_json, ".jsonl": _read_jsonl, ".csv": _read_csv, ".parquet": _read_parquet}


def _refuse(path: Path, mistakes: list[str]) -> None:
    """Raises ConfigError that lists the first mistakes and counts the rest."""
    if mistakes:
        more = len(mistakes) - SHOWN_MISTAKES
        lines = mistakes[:SHOWN_MISTAKES] + ([f"and {more} more"] if more > 0 else [])
        count = "1 bad row; fix or remove it" if len(mistakes) == 1 else f"{len(mistakes)} bad rows; fix or remove them"
        raise ConfigError(f"{KEY}: '{path}' has {count}:\n  " + "\n  ".join(lines))


def _read_hub(dataset: Dataset | SFTDataset) -> dict[str, Table]:
    import datasets

    unreachable = (
        f"{KEY}: data set '{dataset.name}' could not be loaded: not a local path, and the Hugging Face Hub cannot be "
        "reached; give dataset.name=PATH of a local file, build it as the config's first lines say, or connect"
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
                f"{KEY}: data set '{dataset.name}' could not be loaded ({first_line(error)}); check name, config_name "
                "and revision"
            ) from error

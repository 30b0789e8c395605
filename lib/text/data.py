"""Rows of a data set, or of a mixture of several, as a train split and a held-out split that share no row."""

import hashlib
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from judge.parsing import writable
from lib.core.config import Dataset, SFTDataset, Source
from lib.core.errors import ConfigError
from lib.core.registry import did_you_mean
from lib.text.tables import KEY, Row, Table, read_tables


class Place(NamedTuple):
    """Where a row stands in its source, for messages: `str` gives file and line, counted from 1 as in an editor."""

    place_of: Callable[[int], str]
    number: int

    def __str__(self) -> str:
        return self.place_of(self.number)


Placed = tuple[Place, Row]
Parts = tuple[list[Placed], Iterator[Placed], list[str]]  # held out, not held out, notes

HELD_OUT_NAMES = ("test", "validation")  # the first of these that a source has is the held-out split
SHOWN_DROPPED = 3  # rows
CHUNK_ROWS = 4096


@dataclass(frozen=True)
class Splits:
    """Holds the training rows, the held-out rows, and notes about them."""

    train: list[Row]
    test: list[Row]
    train_places: list[Place]  # where each row stands in the source
    test_places: list[Place]
    source: str  # for messages: where the rows come from
    fingerprint: str  # hash of the rows: a resumed run must see the same
    notes: list[str]  # how the rows were chosen, where not all are used: printed at start-up
    group_of: Callable[[Row], str]  # equal for rows of one family or, without families, for rows that ask the same


def load_splits(
    dataset: Dataset | SFTDataset,
    columns: Collection[str],
    prompt_of: Callable[[Row], str],
    accepts: Callable[[Row, Place], bool] = lambda row, place: True,
) -> Splits:
    """Returns the rows of a data set; every row has a value in each of `columns` (empty: no column is required).

    With `split` given, or a source that has only one split, `test_split_size` rows are held out, drawn by a hash of
    their family (`family_field`), or else of what they ask: the draw is the same for every seed, and families stay
    together. With a train and a test split, the first `test_split_size` test rows are held out, in their order; the
    other test rows are unused.

    A train row that asks the same as a held-out row (`prompt_of`, whatever its whitespace, letter case and final
    punctuation), or belongs to its family, is removed. `accepts` is called with every other train row and its place in
    the source, until `max_train_rows` are accepted.

    Raises ConfigError: unreadable or empty source, missing columns, `test_split_size` too large.
    """
    family = dataset.family_field
    columns = [*columns, family] if family else columns

    def keys_of(row: Row, place: Place | None = None) -> list[str]:
        """Returns the keys of a row, its group first. Train rows share no key with held-out rows."""
        try:
            text = " ".join(unicodedata.normalize("NFC", prompt_of(row)).split())
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}" if place else str(error)) from error
        return [f"family {row[family]}" if family else f"prompt {text}", f"folded {text.casefold().rstrip('?.! ')}"]

    if isinstance(dataset, Dataset) and dataset.mixture:
        return _mixed(dataset, columns, keys_of, accepts)
    return _split_up(dataset, columns, keys_of, accepts, _choose(read_tables(dataset), dataset))


def _split_up(
    dataset: Dataset | SFTDataset,
    columns: Collection[str],
    keys_of: Callable[..., list[str]],
    accepts: Callable[[Row, Place], bool],
    tables: tuple["_Split", "_Split | None", str],
) -> Splits:
    """Returns the rows of one source."""
    train_split, test_split, source = tables
    family = dataset.family_field

    def group_of(row: Row, place: Place | None = None) -> str:
        return keys_of(row, place)[0]

    if test_split is None:
        test, rest, notes = _from_the_same(train_split, dataset, columns, group_of)
    else:
        test, rest, notes = _from_its_own(train_split, test_split, dataset, columns)
    secret = {key for place, row in test for key in keys_of(row, place)}
    train, overlap, offered = [], 0, 0
    for place, row in _checked(rest, columns):
        if len(train) == dataset.max_train_rows:
            notes.append(f"train rows are the first {len(train)} that remain (dataset.max_train_rows)")
            break
        if secret and not secret.isdisjoint(keys_of(row, place)):
            overlap += 1
            continue
        offered += 1
        if accepts(row, place):
            train.append((place, row))
    alike = f"ask what a held-out row asks{', or are of its family' if family else ''}"
    if not offered:
        accepts(test[0][1], test[0][0])  # raises where these rows lack a column, which is why they are alike
        raise ConfigError(
            f"{KEY}: no row of {source} is left to train on, since {overlap} {alike}: give other data, or lower "
            "dataset.test_split_size"
        )
    if overlap:
        notes.append(f"{overlap} rows to train on were removed: they {alike}")
    return _splits(train, test, source, notes, group_of)


def _mixed(
    dataset: Dataset,
    columns: Collection[str],
    keys_of: Callable[..., list[str]],
    accepts: Callable[[Row, Place], bool],
) -> Splits:
    """Returns the rows of several sources, each in its share, evenly spread over all rows in their order.

    Of what a part has to train on, its share is drawn by a hash of content and `mixture_seed`; the held-out rows are
    the same for every seed. No train row shares a key with a held-out row, whichever part that is of.
    """
    whole = sum(part.weight for part in dataset.mixture.values())
    shares = {name: part.weight / whole for name, part in dataset.mixture.items()}
    held_out = _divided(dataset.test_split_size, shares)
    parts = {name: _part_of(name, dataset, held_out[name], columns, keys_of, accepts) for name in dataset.mixture}
    secret = {key for part in parts.values() for row in part.test for key in keys_of(row)}
    left: dict[str, list[Placed]] = {}
    for name, part in parts.items():
        placed = zip(part.train_places, part.train, strict=True)
        left[name] = [(place, row) for place, row in placed if secret.isdisjoint(keys_of(row))]
    total = int(min(len(left[name]) / share for name, share in shares.items()) + 1e-9)
    counts = _divided(total if dataset.max_train_rows is None else min(total, dataset.max_train_rows), shares)
    drawn = {name: _drawn(rows, min(counts[name], len(rows)), dataset.mixture_seed) for name, rows in left.items()}
    train = _spread(drawn)
    test = _spread({name: list(zip(part.test_places, part.test, strict=True)) for name, part in parts.items()})
    every = sorted({column for _, row in train + test for column in row})
    train, test = ([(at, {name: row.get(name) for name in every}) for at, row in side] for side in (train, test))
    notes = [f"mixture.{name}: {note}" for name, part in parts.items() for note in part.notes]
    notes += [
        f"mixture.{name}: trains on {len(drawn[name])} of {len(left[name])} rows, {len(part.test)} are held out"
        for name, part in parts.items()
    ]
    if removed := sum(len(part.train) - len(left[name]) for name, part in parts.items()):
        notes.append(f"{removed} rows to train on were removed: a held-out row of another part asks the same")
    for name, rows_of_part in drawn.items():
        if not rows_of_part:
            raise ConfigError(
                f"dataset.mixture.{name}: no row is left to train on: give other data, or raise dataset.max_train_rows"
            )
    source = " + ".join(f"{name}: {part.source}" for name, part in parts.items())
    return _splits(train, test, source, notes, lambda row: keys_of(row)[0])


def _splits(
    train: list[Placed], test: list[Placed], source: str, notes: list[str], group_of: Callable[[Row], str]
) -> Splits:
    train_places, test_places = ([place for place, _ in placed] for placed in (train, test))
    train_rows, test_rows = ([row for _, row in placed] for placed in (train, test))
    fingerprint = _fingerprint(train_rows, test_rows)
    return Splits(train_rows, test_rows, train_places, test_places, source, fingerprint, notes, group_of)


def _part_of(
    name: str,
    dataset: Dataset,
    held_out: int,
    columns: Collection[str],
    keys_of: Callable[..., list[str]],
    accepts: Callable[[Row, Place], bool],
) -> Splits:
    """Returns the rows of one part of a mixture. Raises ConfigError that names the part."""
    part = dataset.mixture[name]
    place = {key: getattr(part, key) for key in Source.model_fields}
    alone = {"mixture": {}, "test_split_size": held_out, "max_train_rows": None}
    settings = dataset.model_copy(update=place | alone)
    try:
        train, test, source = _choose(read_tables(settings), settings)
        renamed = {old: new for new, old in part.columns.items()}
        splits = [split and replace(split, renamed=renamed, task=part.task or name) for split in (train, test)]
        return _split_up(settings, columns, keys_of, accepts, (splits[0], splits[1], source))
    except ConfigError as error:
        raise ConfigError(f"dataset.mixture.{name}: {error}") from error


def _divided(count: int, shares: dict[str, float]) -> dict[str, int]:
    """Divides a count by shares that sum to 1; each part gets its share, rounded, and at least one if there are any."""
    parts = {name: max(int(count * share + 1e-9), min(1, count)) for name, share in shares.items()}
    by_lack = sorted(shares, key=lambda name: parts[name] - count * shares[name])
    for name in by_lack[: max(0, count - sum(parts.values()))]:
        parts[name] += 1
    return parts


def _drawn(placed: list[Placed], count: int, seed: int) -> list[Placed]:
    """Draws rows by a hash, and returns them in their order."""
    ranks = sorted(range(len(placed)), key=lambda index: _hash(f"{seed} {_content(placed[index][1])}"))
    return [placed[index] for index in sorted(ranks[:count])]


def _spread(parts: dict[str, list[Placed]]) -> list[Placed]:
    """Merges lists so that any first rows of the result have each part in its share."""
    ranked = [((i + 0.5) / len(rows), name, i) for name, rows in parts.items() for i in range(len(rows))]
    return [parts[name][i] for _, name, i in sorted(ranked)]


def with_targets(splits: Splits, problem_of: Callable[[Row, Place], str]) -> Splits:
    """Returns the rows whose target has no problem (""); a note, appended last, reports any rows left out.

    Raises ConfigError where more than half of the train rows, or of the held-out rows, are left out: then the
    mistake is in the config, not in a few rows.
    """
    kept, dropped, counts, mistakes = [], [], [], []
    sides = ("train", splits.train, splits.train_places), ("held-out", splits.test, splits.test_places)
    for label, rows, places in sides:
        problems = [problem_of(*pair) for pair in zip(rows, places, strict=True)]
        missing = [f"{place} ({problem})" for place, problem in zip(places, problems, strict=True) if problem]
        count = f"{len(missing)} of {len(rows)} {label}"
        if len(missing) > len(rows) / 2:
            cure = "name another column or extractor, or fix these rows"
            mistakes.append(f"dataset.target_field: {count} rows have no target, first {missing[0]}; {cure}")
        kept.append([(place, row) for place, row, problem in zip(places, rows, problems, strict=True) if not problem])
        counts += [count] if rows else []
        dropped += missing
    if mistakes:
        raise ConfigError("\n".join(mistakes))
    if not dropped:
        return splits
    more = ", ..." if len(dropped) > SHOWN_DROPPED else ""
    note = f"{' and '.join(counts)} rows have no target and are left out: {', '.join(dropped[:SHOWN_DROPPED])}{more}"
    return _splits(kept[0], kept[1], splits.source, [*splits.notes, note], splits.group_of)


def parted(rows: list[Row], most: int, group_of: Callable[[Row], str]) -> tuple[list[Row], list[Row]]:
    """Returns rows for model selection, and the others, each in the given order.

    The former are at most `most` and at most a quarter of all. They are drawn by a hash of their content alone, so they
    are the same in every run, for every seed and number of reported rows. Rows of a group come into the same part.
    """
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[group_of(row)].append(row)
    chosen, left = set(), min(most, len(rows) // 4)
    for key in sorted(groups, key=lambda key: min(_hash(_content(row)) for row in groups[key])):
        if len(groups[key]) <= left:
            chosen.add(key)
            left -= len(groups[key])
    both = [[row for row in rows if (group_of(row) in chosen) is wanted] for wanted in (True, False)]
    return both[0], both[1]


@dataclass(frozen=True)
class _Split:
    """Holds a table, the name that messages give it, and where its rows stand in the source."""

    table: Table
    label: str
    place_of: Callable[[int], str]
    renamed: Mapping[str, str] = field(default_factory=dict)  # new names of columns, by their names in the source
    task: str = ""  # value of the column `task`; "": as the source has it

    def __len__(self) -> int:
        return len(self.table)

    def rows(self, indexes: Sequence[int] | None = None) -> Iterator[Placed]:
        """Yields the place and the row of each index (None: all), read in chunks, since not all may be used."""
        indexes = range(len(self)) if indexes is None else indexes
        for first in range(0, len(indexes), CHUNK_ROWS):
            part = indexes[first : first + CHUNK_ROWS]
            rows = [self.table[i] for i in part] if isinstance(self.table, list) else self.table.select(part).to_list()
            for index, row in zip(part, rows, strict=True):
                yield Place(self.place_of, index), self._labelled(row)

    def _labelled(self, row: Row) -> Row:
        if not self.task:
            return row
        old, new = self.renamed, set(self.renamed.values())
        kept = {old.get(name, name): value for name, value in row.items() if name in old or name not in new}
        return kept | {"task": self.task}


def _from_the_same(
    split: _Split, dataset: Dataset | SFTDataset, columns: Collection[str], group_of: Callable[..., str]
) -> Parts:
    """Holds out whole groups in the order of their hashes; of the last group, only the rows still needed."""
    size, total = dataset.test_split_size, len(split)
    if size >= total:
        raise ConfigError(
            f"dataset.test_split_size: got {size}, but {split.label} has {total} rows and some must be left to train "
            f"on: give more rows{f', or lower it below {total}' if total > 1 else ''}"
        )
    if size == 0:
        return [], split.rows(), []
    rows = enumerate(_checked(split.rows(), columns))
    ranks = [(_hash(group_of(row, place)), index) for index, (place, row) in rows]
    drawn = [index for _, index in sorted(ranks)[:size]]
    left = sorted(set(range(total)).difference(drawn))
    whole = f", whole families (dataset.family_field: {dataset.family_field})" if dataset.family_field else ""
    note = f"held out are {size} of {total} rows, drawn at random{whole}: the same ones for every seed"
    return list(split.rows(drawn)), split.rows(left), [note]


def _from_its_own(train: _Split, test: _Split, dataset: Dataset | SFTDataset, columns: Collection[str]) -> Parts:
    """Holds out the first rows of the test split."""
    size, total = dataset.test_split_size, len(test)
    if size > total:
        raise ConfigError(
            f"dataset.test_split_size: got {size}, but {test.label} has {total} rows: lower it to {total} or less"
        )
    held_out = list(_checked(test.rows(range(size)), columns))
    notes = [f"held out are the first {size} of {total} rows of {test.label}"] if size < total else []
    return held_out, train.rows(), notes


def _choose(tables: dict[str, Table], dataset: Dataset | SFTDataset) -> tuple[_Split, _Split | None, str]:
    """Returns the train split, the test split (None: hold out rows of the first) and a name of both for messages."""
    name, splits = dataset.name, ", ".join(tables)

    def split_of(split: str, label: str, first: int = 0, last: int | None = None) -> _Split:
        """Returns a split, or its rows from `first` to before `last`, which keep their numbers in the source."""
        table = tables[split]
        whole = f"'{name}'" if len(tables) == 1 else f"'{name}' ({split})"
        place_of = getattr(table, "place_of", lambda index: f"row {index + 1} of {whole}")
        if last is not None:
            part = slice(first, max(first, last))
            table = table[part] if isinstance(table, list) else table.select(range(part.start, part.stop))
        return _Split(table, label, lambda index: place_of(first + index))

    test = None
    if dataset.split is not None:
        split, start, stop = _parse_split(dataset.split)
        if split not in tables:
            raise ConfigError(
                f"dataset.split: got '{split}', expected one of the splits of '{name}': {splits}"
                f"{did_you_mean(split, tables)}"
            )
        size = len(tables[split])
        first, last, _ = slice(_bound(start, size), _bound(stop, size)).indices(size)
        source = f"'{name}' ({dataset.split})"
        train = split_of(split, source, first, last)
    elif len(tables) == 1:
        source = f"'{name}'"
        train = split_of(next(iter(tables)), source)
    else:
        held_out = next((split for split in HELD_OUT_NAMES if split in tables), None)
        if "train" not in tables or held_out is None:
            raise ConfigError(
                f"dataset.split: '{name}' has the splits {splits}, expected train and test: choose one, of which "
                "rows are held out"
            )
        train, test = (split_of(split, f"'{name}' ({split})") for split in ("train", held_out))
        source = f"'{name}' (train, {held_out})"
    if len(train) == 0:
        raise ConfigError(f"{KEY}: {source} has no rows: give a source with at least one")
    return train, test, source


def _parse_split(text: str) -> tuple[str, str, str]:
    """Splits `validation[:2000]` into `("validation", "", "2000")`; bounds are rows, or percent of them."""
    match = re.fullmatch(r"([\w.-]+)(?:\[(-?\d+%?)?:(-?\d+%?)?\])?", text)
    if match is None:
        raise ConfigError(f"dataset.split: got '{text}', expected a name or a part such as train[:2000] or train[:10%]")
    return match[1], match[2] or "", match[3] or ""


def _bound(text: str, size: int) -> int | None:
    if text.endswith("%"):
        return size * int(text[:-1]) // 100
    return int(text) if text else None


def _checked(rows: Iterator[Placed], columns: Collection[str]) -> Iterator[Placed]:
    """Yields the same places and rows. Raises ConfigError at the first row that lacks a column, or text in it."""
    for place, row in rows:
        for column in columns:
            if isinstance(row.get(column), str) and writable(row[column]) != row[column]:
                raise ConfigError(
                    f"{KEY}: column '{column}' of {place} holds half a character (a lone surrogate such as \\ud83d), "
                    "which no tokenizer takes: fix the row"
                )
            if row.get(column) is None:
                state = "is empty in" if column in row else "is missing from"
                raise ConfigError(
                    f"{KEY}: column '{column}' {state} {place}, which has {', '.join(map(repr, row))}: name the right "
                    "column in prompts.user, dataset.target_field or dataset.family_field, or fix the row"
                    f"{did_you_mean(column, row) if column not in row else ''}"
                )
        yield place, row


def digest_of(rows: list[Row]) -> str:
    """Returns a hash that two lists share only if they have the same rows in the same order."""
    return _hash("\n".join(map(_content, rows)))[:16]


def _content(row: Row) -> str:
    return json.dumps([row[column] for column in sorted(row)], sort_keys=True, default=str)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _fingerprint(train: list[Row], test: list[Row]) -> str:
    digest = hashlib.sha256()
    for name, rows in (("train", train), ("test", test)):
        digest.update(name.encode())
        for row in rows:
            digest.update(json.dumps(row, sort_keys=True, default=str).encode() + b"\n")
    return digest.hexdigest()[:16]

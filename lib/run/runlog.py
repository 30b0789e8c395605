"""The log of a run: its config, and JSONL streams that survive a kill at any instant.

machine.json        where the newest start ran: commit, versions, processor, threads
metrics.jsonl       one row per optimizer step
evaluations.jsonl   one row per evaluation
alarms.jsonl        what lib/rl/watch.py noticed: a row when something begins, and one when it is over
generations.jsonl   every text that policy, opponent or teacher wrote, with its reward components
failures.jsonl      solved by nobody, solved by the opponent only, broke a reward; or a failed request
rollouts.jsonl      of collect_rollouts.py, in place of generations.jsonl: one row per rollout
sft.jsonl           of self-play: what is right and was not sampled by the policy alone, as chats for sft_train.py
frontier/           of self-play: rows of the data set that the policy did not solve, each once
"""

import contextlib
import json
import logging
import math
import mmap
import os
import re
import shutil
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from datetime import time as clock_time
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError

from lib.core.errors import ConfigError, StorageError, storage_remedy
from lib.core.output import lost_output
from lib.run.directory import holds_run, lock, refuse_existing
from lib.run.machine import MACHINE, describe_machine

logger = logging.getLogger(__name__)

SCHEMA = 1
STREAMS = ("metrics", "evaluations", "alarms", "generations", "failures")
RING_ROWS = 10_000  # rows of one stream that wait in memory while the disk is full
WARN_SECONDS = 60
DISK_FULL = ("inline_container", "iostream", "os error")  # torch and tokenizers have no error class for failed writes


class RunLog:
    """The log of one run, written by the main process only: elsewhere (`is_main=False`) every method does nothing.

    `streams` names its JSONL files; of those in `limits` the oldest rows are deleted beyond about so many bytes.
    Opening raises ConfigError when another process uses the directory, or when it
    holds a run and `resume` is false; StorageError when the directory cannot be written.
    """

    # Synchronous on purpose: a write and an fsync cost milliseconds per step, a thread would lose its queue at a kill.

    def __init__(
        self, directory: Path, resume: bool, is_main: bool = True, streams: Iterable[str] = STREAMS,
        limits: Mapping[str, int] | None = None,
    ):  # fmt: skip
        self.directory = Path(directory)
        self._streams: dict[str, _Stream] = {}
        self._lock: int | None = None
        self._is_main = is_main
        self._config: str | None = None  # waits for `begin`
        if not is_main:
            return
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = lock(self.directory)
            refuse_existing(self.directory, resume)
            self._streams = {name: _Stream(self.directory, name, (limits or {}).get(name)) for name in streams}
            fsync_folder(self.directory)
        except (ConfigError, OSError) as error:
            self.close()
            if isinstance(error, ConfigError):
                raise
            raise StorageError(
                f"{self.directory}: cannot keep a run log here ({error}); {storage_remedy(error)}, or choose another "
                "output_dir=..."
            ) from error

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Syncs and closes every stream, and releases the directory's lock."""
        self.sync()
        for stream in self._streams.values():
            stream.close()
        self._streams = {}
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def write(self, stream: str, row: Mapping[str, Any]) -> None:
        """Appends one row to a stream, with `schema` and the UTC `time` added; NaN and infinities become null.

        The first row of metrics after stdout or stderr failed says so, as `lost_output`.
        A full disk does not stop the run: the row waits in memory and is retried at the next write.
        """
        if self._is_main:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            lost = {"lost_output": text} if stream == "metrics" and (text := lost_output()) else {}
            self._streams[stream].append(encode({"schema": SCHEMA, "time": now, **row, **lost}))

    def sync(self) -> None:
        """Waits until every row written so far is on disk; call it once per optimizer step."""
        for stream in self._streams.values():
            stream.sync()

    def offsets(self) -> dict[str, int]:
        """Returns every stream's length in bytes, deleted ones included, which a checkpoint stores for `rewind`."""
        return {name: stream.size() for name, stream in self._streams.items()}

    def rewind(self, offsets: Mapping[str, int]) -> None:
        """Drops rows after a checkpoint, whose steps will run again. A stream missing from `offsets` is emptied.

        Without `offsets` there is no checkpoint: only rows of a start that failed before its first one are dropped.
        Raises ConfigError if a run has begun here.
        """
        if not offsets and holds_run(self.directory) and any(self.offsets().values()):
            raise ConfigError(
                f"{self.directory}: holds the rows of a run, but no checkpoint to resume from: restore one from a "
                "backup, or start a new run under another run_name=..., from an adapter in this folder by "
                "--resume-adapter"
            )
        for name, stream in self._streams.items():
            stream.rewind(offsets.get(name, 0))

    def write_config(self, text: str, now: bool = True) -> None:
        """Writes `config.yaml` atomically, which makes the directory a run. Raises StorageError.

        With `now` false it waits for `begin`: until there is something to resume, the same command may start again.
        """
        self._config = text
        if now:
            self.begin()

    def begin(self) -> None:
        """Writes the pending config, if any. Call it once there is something to resume."""
        if self._is_main and self._config is not None:
            write_whole(self.directory / MACHINE, [encode(describe_machine())])
            write_whole(self.directory / "config.yaml", [self._config.encode()])
        self._config = None


def write_whole(target: Path, parts: Iterable[bytes]) -> None:
    """Writes a file atomically and waits until it is on disk. Raises StorageError."""
    aside = target.with_name(target.name + ".tmp")
    with storage_errors(target, "start again"):
        try:
            with open(aside, "wb") as file:
                file.writelines(parts)
            fsync_file(aside)
            os.replace(aside, target)
        except OSError:
            aside.unlink(missing_ok=True)
            raise
        fsync_folder(target.parent)


@contextlib.contextmanager
def storage_errors(target: Path, then: str = "--resume") -> Iterator[None]:
    """Turns a failed write of `target` into a StorageError; other exceptions pass through."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError | SafetensorError) and not any(word in str(error) for word in DISK_FULL):
            raise
        there = next(folder for folder in (target, *target.parents) if folder.exists())
        free = megabytes(shutil.disk_usage(there).free)
        reason, remedy = _why_not(error), storage_remedy(error)
        raise StorageError(f"{target}: cannot be saved with {free} free ({reason}); {remedy}, then {then}") from error


def _why_not(error: Exception) -> str:
    """Returns the system's reason for a failed write; torch and safetensors bury it in their messages, or omit it."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if code := re.search(r"os error (\d+)", str(error)):
        return os.strerror(int(code[1]))
    return "a file could not be written completely" if any(word in str(error) for word in DISK_FULL) else str(error)


def megabytes(size: int) -> str:
    """Formats a number of bytes."""
    return f"{size / 1e6:.1f} MB"


def files_of(directory: Path, stream: str) -> list[Path]:
    """Returns the files of a stream that are there, the oldest rows first."""
    current = directory / f"{stream}.jsonl"
    return [*(path for _, path in _set_aside_of(current)), *([current] if current.exists() else [])]


def _set_aside_of(current: Path) -> list[tuple[int, Path]]:
    """Returns the files that `_Stream` has set aside, with their offsets, the oldest first."""
    files = current.parent.glob(f"{current.stem}.*.jsonl")
    return sorted((int(offset), path) for path in files if (offset := path.name.split(".")[-2]).isdecimal())


class Line(NamedTuple):
    """A line of a JSONL file: its row, or None and the problem, "" for a blank line."""

    row: dict[str, Any] | None
    start: int  # bytes before it
    size: int  # bytes
    number: int  # from 1
    problem: str
    ends: bool  # with a line end, unlike one that is still being written


def read_lines(path: Path, start: int = 0) -> Iterator[Line]:
    """Yields every line of a JSONL file, from `start` bytes on."""
    with open(path, "rb") as file:
        file.seek(start)
        for number, line in enumerate(file, start=1):
            row, problem = None, ""
            try:
                row = json.loads(line.decode("utf-8" if start else "utf-8-sig")) if line.strip() else {}
                if not isinstance(row, dict):
                    problem = f"got {type(row).__name__}, expected a JSON object"
            except UnicodeDecodeError:
                problem = "not UTF-8: save the file as UTF-8"
            except json.JSONDecodeError as error:  # whose own text has a line number, which is that within the line
                problem = f"not JSON ({error.msg}: column {error.pos + 1})"
            except (ValueError, RecursionError) as error:
                problem = f"not JSON ({error})"
            row = None if problem or not line.strip() else row
            yield Line(row, start, len(line), number, problem, line.endswith(b"\n"))
            start += len(line)


def read_jsonl(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Returns the rows of a JSONL file, and how many lines it skipped as no JSON object (torn or damaged)."""
    rows = [line.row for line in read_lines(path)]
    sound = [row for row in rows if row is not None]
    return sound, len(rows) - len(sound)


def is_number(value: object) -> bool:
    """True if a row's value is a number, not a bool or NaN: the log writes null for non-finite numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def fsync_file(path: Path) -> None:
    """Waits until the file's bytes are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


fsync_folder = fsync_file  # a created or renamed file is durable only once its folder is synced


class Lines:
    """An append-only JSONL file of whole lines; a last line torn by a crash is cut off and kept in a `.torn` file.

    Raises OSError; what was on disk before stays intact.
    """

    def __init__(self, path: Path):
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._dirty = False
        self._cut_torn_tail(path.with_suffix(".torn"))

    def size(self) -> int:
        """Returns the file's size in bytes."""
        return os.fstat(self._file).st_size

    def append(self, line: bytes) -> int:
        """Writes the whole line or nothing; returns its offset in bytes."""
        end = self.size()
        rest = memoryview(line)
        try:
            while rest:  # on a nearly full disk `os.write` returns a short count before it raises
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            os.ftruncate(self._file, end)  # half a line would merge with the next one
            raise
        self._dirty = True
        return end

    def read(self, start: int, size: int) -> bytes:
        """Returns `size` bytes from offset `start` on."""
        return os.pread(self._file, size, start)

    def sync(self) -> None:
        """Waits until every line is on disk."""
        if self._dirty:
            os.fsync(self._file)
            self._dirty = False

    def truncate(self, size: int) -> None:
        """Drops everything after the first `size` bytes."""
        os.ftruncate(self._file, size)
        self._dirty = True

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    def _cut_torn_tail(self, torn: Path) -> None:
        size = self.size()
        if size == 0:
            return
        with mmap.mmap(self._file, size, access=mmap.ACCESS_READ) as data:
            end = data.rfind(b"\n") + 1
            tail = data[end:]
        if tail:
            with open(torn, "ab") as file:
                file.write(tail + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.ftruncate(self._file, end)
            logger.warning(
                "%s: the last line was torn by a crash; its %d bytes are kept in %s", self.path, len(tail), torn
            )


class _Stream:
    """A JSONL file whose new lines wait in memory while the disk is full.

    With a limit in bytes, a file of half that size is set aside under the name `<stream>.<offset>.jsonl`, and the one
    before it is deleted. Offsets count from the first row of the run, whether it is still there or not; an empty file
    under such a name tells where the rows begin.
    """

    def __init__(self, directory: Path, name: str, limit: int | None = None):
        self._path = directory / f"{name}.jsonl"
        self._path.parent.mkdir(exist_ok=True)
        self._limit = limit
        self._open()
        self._waiting: deque[bytes] = deque(maxlen=RING_ROWS)
        self._lost = 0
        self._warned = -math.inf  # monotonic seconds

    def _open(self) -> None:
        self._lines = Lines(self._path)
        self._begin = 0  # offset of the first row of the file
        if aside := _set_aside_of(self._path):
            start, path = aside[-1]
            self._begin = start + path.stat().st_size

    def size(self) -> int:
        return self._begin + self._lines.size() + sum(map(len, self._waiting))

    def close(self) -> None:
        self._lines.close()

    def append(self, line: bytes) -> None:
        self._lost += len(self._waiting) == RING_ROWS
        self._waiting.append(line)
        self._flush()

    def sync(self) -> None:
        self._flush()
        try:
            self._lines.sync()
            if self._limit and self._lines.size() >= self._limit // 2:
                self._set_aside()
        except OSError as error:
            self._warn(error)

    def _set_aside(self) -> None:
        older = [path for start, path in _set_aside_of(self._path) if start < self._begin]
        os.replace(self._path, self._name(self._begin))
        full = self._lines
        self._open()
        full.close()
        for path in older:
            path.unlink()
        fsync_folder(self._path.parent)

    def _name(self, offset: int) -> Path:
        return self._path.with_name(f"{self._path.stem}.{offset}.jsonl")

    def rewind(self, offset: int) -> None:
        while self._waiting and offset < self.size():
            self._waiting.pop()
        while older := [start for start, _ in _set_aside_of(self._path) if offset < self._begin > start]:
            self._lines.close()
            os.replace(self._name(older[-1]), self._path)  # what was set aside since is the file again,
            self._name(older[-1]).touch()  # and where it begins is still known
            self._open()
        if self.size() < offset or offset < self._begin:
            logger.warning(
                "%s: has bytes %d to %d, the checkpoint recorded %d: rows are missing from it",
                self._path, self._begin, self.size(), offset,
            )  # fmt: skip
        if offset <= self._begin + self._lines.size():
            self._lines.truncate(max(0, offset - self._begin))

    def _flush(self) -> None:
        while self._waiting:
            try:
                self._lines.append(self._waiting[0])
            except OSError as error:
                self._warn(error)
                return
            self._waiting.popleft()

    def _warn(self, error: OSError) -> None:
        if time.monotonic() - self._warned >= WARN_SECONDS:
            self._warned = time.monotonic()
            logger.warning(
                "%s: cannot be written (%s); training continues, %d rows wait in memory, %d are lost",
                self._path, error, len(self._waiting), self._lost,
            )  # fmt: skip


def encode(row: Mapping[str, Any]) -> bytes:
    """Encodes a row as one line of JSON; NaN and infinities become null."""
    try:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False)  # nearly every row is plain already
    except (TypeError, ValueError):
        text = json.dumps(_plain(row), ensure_ascii=False, allow_nan=False)
    # a lone surrogate in a model's text has no UTF-8; as a backslash escape it is valid JSON and reads back the same
    return (text + "\n").encode("utf-8", "backslashreplace")


def _plain(value: Any) -> Any:
    """Converts `value` to JSON's types: numpy and torch scalars to numbers, non-finite numbers to null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "item"):
        return _plain(value.item())
    return str(value) if isinstance(value, date | clock_time | bytes | Decimal) else value  # as found in tables

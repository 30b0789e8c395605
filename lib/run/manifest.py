"""Folders whose every byte is known: a manifest with the checksum of each file, and facts of the run that wrote it."""

import contextlib
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt, ValidationError

from lib.run.directory import CARD, MANIFEST
from lib.run.runlog import fsync_file, fsync_folder, storage_errors, write_whole

logger = logging.getLogger(__name__)


class File(BaseModel):
    """Size and checksum of a file."""

    size: NonNegativeInt
    sha256: str


class Best(BaseModel):
    """The best checkpoint of a stage."""

    folder: Annotated[str, Field(pattern=r"^stage[0-9]+/step_[0-9]+$")]
    score: float


class Manifest(BaseModel, extra="allow"):
    """The form of a manifest. A run may come from someone else, so no name leads out of its folder."""

    files: dict[Annotated[str, Field(pattern=r"^[^/\x00]+$")], File]
    environment: dict[str, str] = {}
    world_size: PositiveInt = 1
    dataset: str = ""
    inputs: dict[str, str] = {}
    step: NonNegativeInt = 0
    weights_only: bool = False
    log_offsets: dict[str, NonNegativeInt] = {}
    best: dict[Annotated[str, Field(pattern=r"^stage[0-9]+$")], Best] = {}


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yields an empty folder that becomes `target` once the block has ended well. Raises StorageError."""
    part = target.with_name(f"{target.name}.tmp")
    with storage_errors(target, "start again"):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        try:
            yield part
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        for file in part.iterdir():
            fsync_file(file)
        os.replace(part, target)
        fsync_folder(target.parent)


def problems(folder: Path) -> list[str]:
    """Returns the problems of a checkpoint folder, by file name; none if every byte is as it was written."""
    try:
        files = read_manifest(folder)["files"]
    except FileNotFoundError:
        return [f"{MANIFEST} is missing" if any(folder.iterdir()) else "the folder is empty"]
    except (OSError, ValueError) as error:
        return [f"{MANIFEST} is damaged ({error})"]
    checks = ((name, _file_problem(folder / name, expected)) for name, expected in files.items())
    return [f"{name} {problem}" for name, problem in checks if problem]


def is_whole(result: Path) -> bool:
    """True if every byte of a result is as it was written; logs what is wrong if not."""
    if not result.exists():
        return False
    broken = problems(result)
    if broken:
        logger.error("%s IS BROKEN: %s", result, "; ".join(broken))
    return not broken


def seal(folder: Path, **facts: Any) -> None:
    """Waits until every file of a folder is on disk, then writes a manifest of their checksums and of `facts`.

    The model card has no checksum: who edits it has not damaged the weights.
    """
    files = sorted(file for file in folder.iterdir() if file.is_file() and file.name != MANIFEST)
    for file in files:
        fsync_file(file)
    entries = {file.name: {"size": file.stat().st_size, "sha256": _sha256(file)} for file in files if file.name != CARD}
    _write_manifest(folder, {"schema": 1, "files": entries, **facts})


def keep_weights(checkpoint: Path, names: Collection[str]) -> None:
    """Reduces a checkpoint to the files `names` and its card. A kill leaves it whole, or with weights alone."""
    manifest = read_manifest(checkpoint)
    if not manifest["weights_only"]:
        files = {name: facts for name, facts in manifest["files"].items() if name in names}
        _write_manifest(checkpoint, manifest | {"files": files, "weights_only": True})
    for file in checkpoint.iterdir():
        if file.name not in (*names, CARD, MANIFEST):
            file.unlink()


def set_aside(folder: Path) -> None:
    """Renames a folder to `*.aside`, replacing an earlier one of that name; does nothing if there is no folder."""
    if folder.exists():
        aside = folder.with_name(folder.name + ".aside")
        shutil.rmtree(aside, ignore_errors=True)
        os.replace(folder, aside)


def manifest_of(folder: Path) -> dict[str, Any]:
    """Returns the facts and checksums of a checkpoint or a result; empty without a readable manifest."""
    try:
        return read_manifest(folder)
    except (OSError, ValueError):
        return {}


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    write_whole(folder / MANIFEST, [json.dumps({**manifest, "sha256": _digest(manifest)}, indent=1).encode()])


def read_manifest(folder: Path) -> dict[str, Any]:
    """Returns the manifest of a folder. Raises OSError or ValueError if it is missing, damaged or of another form."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if not isinstance(manifest, dict) or manifest.pop("sha256", None) != _digest(manifest):
        raise ValueError("its checksum differs")
    try:
        return Manifest.model_validate(manifest).model_dump()
    except ValidationError as error:
        problem = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error


def _digest(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _file_problem(path: Path, expected: Mapping[str, Any]) -> str | None:
    try:
        size = path.stat().st_size
        if size != expected["size"]:
            return f"has {size} bytes instead of {expected['size']}"
        if not path.is_file():
            return "is no file"
        if _sha256(path) != expected["sha256"]:
            return "is damaged (its checksum differs)"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error})"
    return None

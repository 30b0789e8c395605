"""The directory of a run: whether a run may start in it, which process holds it, and the names in it."""

import contextlib
import fcntl
import json
import logging
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from lib.core.config import Outputs, differences, flat, read_tree
from lib.core.errors import ConfigError

logger = logging.getLogger(__name__)

ADAPTER = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
EXTRA = "extra_adapters.safetensors"  # what PEFT does not know, with a config of its own
EXTRA_CONFIG = "extra_adapters.json"
MOST_LISTED = 20  # checkpoints in an error
TRIAL = ".smoke"  # marks the directory of a trial run, which the next one may empty
CARD = "README.md"  # of a model, next to its weights
MANIFEST = "MANIFEST.json"
SECRETS = ("base_url", "api_key_env", "headers", "extra_body", "after_checkpoint")  # keys shown nowhere, of any version
# config keys that do not affect the results
MAY_CHANGE = ("output_dir", "tracking", "reward.timeout_s", "train.after_checkpoint", "hub")


def check_directory(config: Outputs, resume: bool | Path, allow_change: bool, may_change: Iterable[str] = ()) -> None:
    """Raises ConfigError, before heavy loading, if a run cannot start in its directory; changes nothing.

    `resume` may be the checkpoint to resume from. `may_change`: config keys or sections that a resume may change,
    besides those of MAY_CHANGE.
    """
    directory = config.run_dir
    if isinstance(resume, Path):
        checkpoint_in(directory, resume)
    if os.environ.get("RANK", "0") != "0":
        return  # ranks other than the main one may get here late, when the run has already begun
    _refuse_busy(directory)
    refuse_existing(directory, bool(resume))
    if (directory / "config.yaml").exists():
        check_config(config, allow_change, (*MAY_CHANGE, *may_change))


def checkpoint_in(directory: Path, path: Path) -> Path:
    """Returns the checkpoint of the run in `directory` that `path`, or a link, names.

    Raises ConfigError if it is not one, or only its weights were kept.
    """
    names = [str(checkpoint) for checkpoint in checkpoints_in(directory) if not is_weights_only(checkpoint)]
    resumable = " or ".join(names) or "there is none"
    there = path.resolve()
    checkpoint = directory / there.parent.name / there.name
    if checkpoint not in checkpoints_in(directory) or checkpoint.resolve() != there:
        raise ConfigError(
            f"--resume {path}: expected a checkpoint of this run to resume from ({resumable}); to start "
            "from the weights of another run, give --resume-adapter and a new run_name=..."
        )
    if is_weights_only(checkpoint):
        raise ConfigError(
            f"--resume {checkpoint}: of this checkpoint only the weights were kept: give one that can be resumed "
            f"({resumable}), or start a new run from it (--resume-adapter {checkpoint} run_name=...)"
        )
    return checkpoint


def is_weights_only(checkpoint: Path) -> bool:
    """True if the manifest of a checkpoint says that only its weights were kept: it cannot be resumed."""
    try:
        return json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))["weights_only"] is True
    except (OSError, ValueError, LookupError, TypeError, RecursionError):  # none, an earlier version's, or damaged
        return False


def stages_in(directory: Path) -> dict[int, Path]:
    """Returns the folders of a run's stages, by number."""
    matches = ((re.fullmatch(r"stage(\d+)", folder.name), folder) for folder in directory.glob("stage*"))
    return dict(sorted((int(match[1]), folder) for match, folder in matches if match))


def checkpoints_in(directory: Path) -> list[Path]:
    """Returns the checkpoint folders of a run, intact or not, newest first."""
    folders = (folder for stage in stages_in(directory).values() for folder in stage.glob("step_*"))
    return sorted(
        (path for path in folders if re.fullmatch(r"step_\d+", path.name) and path.is_dir() and not path.is_symlink()),
        key=place_of, reverse=True,
    )  # fmt: skip


def place_of(checkpoint: Path) -> tuple[int, int]:
    """Returns the stage of a checkpoint and its step."""
    return int(checkpoint.parent.name.removeprefix("stage")), step_of(checkpoint)


def position(folder: Path | None) -> tuple[int, float] | None:
    """Returns stage and step of trained weights; the end of a stage has step infinity. None for any other folder."""
    match = re.search(r"(?:^|/)stage(\d+)(?:/step_(\d+))?$", folder.as_posix()) if folder else None
    return (int(match[1]), float(match[2] or "inf")) if match else None


def adapter_in(folder: Path, key: str = "") -> Path:
    """Returns `folder` if it holds a saved adapter, else raises ConfigError, naming the option or config key `key`.

    The error tells what is there instead: nothing, a whole model, or a run with adapters in it.
    """
    weights = (ADAPTER, EXTRA)
    missing = [name for name in (ADAPTER_CONFIG, ADAPTER) if not (folder / name).is_file()]
    if not missing or (len(missing) == 2 and all((folder / name).is_file() for name in (EXTRA_CONFIG, EXTRA))):
        return folder
    inside = [folder / name for name in ("best", "final") if (folder / name / ADAPTER_CONFIG).is_file()]
    runs = (folder, *list(folder.parents)[:2])
    saved = [path for run in runs for path in checkpoints_in(run) if any((path / name).is_file() for name in weights)]
    such = " or ".join(map(str, saved[:MOST_LISTED])) or "outputs/<run_name>/stage1/best"
    instead = f"{' and '.join(missing)} missing; give the folder that holds them, such as {such}"
    if not folder.exists():
        instead = f"nor any folder; give that of a saved adapter, such as {such}"
    elif (folder / "config.json").is_file():
        instead = f"this is a whole model: give it as model.name={folder}"
    elif inside:
        instead = f"this is a run: give {' or '.join(map(str, inside))}"
    raise ConfigError(f"{f'{key}: ' if key else ''}{folder}: no adapter here, {instead}")


def step_of(checkpoint: Path) -> int:
    """Returns the number of steps of its stage after which a checkpoint was saved."""
    return int(checkpoint.name.removeprefix("step_"))


def discard(config: Outputs, *named: Path | None) -> None:
    """Empties the directory of a trial run.

    Raises ConfigError if it is in use, holds what no trial run wrote, or something that the config or `named` names.
    """
    if os.environ.get("RANK", "0") != "0":
        return
    directory = config.run_dir
    values = dict(flat(config.model_dump(exclude={"run_name", "output_dir"}))).values()
    values = [item for value in values for item in (value if isinstance(value, list) else [value])]
    texts = [*(value for value in values if isinstance(value, str)), *(str(path) for path in named if path)]
    if needed := [text for text in texts if os.path.exists(text) and is_inside(Path(text), directory)]:
        raise ConfigError(
            f"{directory}: --smoke would empty this folder, but {needed[0]} is in it and is needed: change run_name"
        )
    try:
        if directory.exists():
            _refuse_busy(directory)
            if any(directory.iterdir()) and not (directory / TRIAL).exists():
                raise ConfigError(
                    f"{directory}: --smoke would empty this folder, but what is in it was not made by --smoke: move it "
                    "away, or choose another run_name=..."
                )
            shutil.rmtree(directory)
        directory.mkdir(parents=True)
        (directory / TRIAL).touch()
    except OSError as error:
        raise ConfigError(
            f"{directory}: cannot be written ({error.strerror}): choose another output_dir=... or run_name=..."
        ) from error


def is_inside(path: Path, directory: Path) -> bool:
    """True if a path leads into a directory, also through links."""
    return path.resolve().is_relative_to(directory.resolve())


def refuse_second_stage(config: Outputs) -> None:
    """Raises ConfigError if the run of a config has begun stage II: it cannot begin it there once more."""
    stage = config.run_dir / "stage2"
    checkpoints = checkpoints_in(config.run_dir)
    has_begun = any(path.is_file() or path in checkpoints for path in stage.glob("*"))  # a file is of its adapter
    if os.environ.get("RANK", "0") == "0" and has_begun:
        raise ConfigError(
            f"{stage} already holds stage II of this run: continue it with --resume, or start another one by "
            f"run_name={config.run_name.removesuffix('-smoke')}-stage2"
        )


def check_config(config: Outputs, allow_change: bool = False, may_differ: Iterable[str] = ()) -> None:
    """Compares the run's `config.yaml` with the one that this start would write there.

    A key that was not known when the run began had its default then; one that is unknown by now differs. `may_differ`
    lists dotted keys, or whole sections, that are free to change. Raises ConfigError for other differences or a damaged
    file; `allow_change` makes it a warning.
    """
    path = config.run_dir / "config.yaml"
    try:
        before = read_tree(path)
    except ConfigError as error:
        damage = f"the config of this run is damaged ({error})"
        if allow_change:
            logger.warning("%s: it is rewritten", damage)
            return
        raise ConfigError(
            f"{damage}: restore it from a backup, or accept the given one with --allow-config-change"
        ) from error
    now = config.model_dump(mode="json")
    whole = before
    with contextlib.suppress(ValidationError):  # then its values count as they are
        whole = type(config).model_validate(before, extra="ignore").model_dump(mode="json")
    changes = dict(differences(whole, now))
    changes |= {key: change for key, change in differences(before, now) if change.endswith("-> 'absent'")}
    for key, change in changes.items():
        if any(name in key + change for name in SECRETS):
            changes[key] = "changed (not shown, it may hold a secret)"
    changed = [
        f"{key}: {change}"
        for key, change in changes.items()
        if not any(f"{key}.".startswith(f"{free}.") for free in may_differ)
    ]
    if changed and not allow_change:
        raise ConfigError(
            f"{path}: the run was started with another config: {'; '.join(changed)}; undo the change, "
            f"or accept it with --allow-config-change"
        )
    if changed:
        logger.warning("%s: continues with a changed config: %s", path, "; ".join(changed))


def holds_run(directory: Path) -> bool:
    """True if a run has begun in a directory: there is its config, a checkpoint or a result."""
    marks = (directory / "config.yaml", directory / "final", *directory.glob(f"stage*/{MANIFEST}"))
    return any(path.exists() for path in marks) or bool(checkpoints_in(directory))


def refuse_existing(directory: Path, resume: bool) -> None:
    """Raises ConfigError if the directory holds a run that is not to be resumed."""
    if not resume and holds_run(directory):
        raise ConfigError(f"{directory} already holds a run: continue it with --resume, or choose another run_name=...")


def lock(directory: Path) -> int:
    """Returns a file descriptor that holds the directory's lock; the kernel frees it however the process ends."""
    descriptor = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _take(descriptor, fcntl.LOCK_EX, directory)
    except ConfigError:
        os.close(descriptor)
        raise
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _refuse_busy(directory: Path) -> None:
    if (directory / ".lock").is_file():
        with open(directory / ".lock", "rb") as lock:
            _take(lock.fileno(), fcntl.LOCK_SH, directory)


def _take(descriptor: int, kind: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        raise ConfigError(
            f"{directory} is in use by process {owner or 'unknown'}: wait for it, stop it, or choose a new run_name=..."
        ) from error

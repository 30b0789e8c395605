"""The train state: everything that a restart needs, saved as a whole or not at all, and checked before it is trusted.

    stage1/step_200/   adapter_model.safetensors, adapter_config.json   a standard PEFT adapter
                       README.md                                        its model card
                       extra_adapters.safetensors                       trained weights that PEFT does not know, if any
                       model.safetensors, config.json, tokenizer, ...   in their place where all weights are trained
                       optimizer.bin, scheduler.bin, random_states_<rank>.pkl    written by accelerate
                       objects_<rank>.bin                               what the script registered
                       trainer_state.json                               of SFT: where its trainer stands
                       MANIFEST.json                                    checksum of each file, and facts of the run
    stage1/            the adapter at the end of the stage, with its tokenizer and a MANIFEST.json
    final/             of SFT, in place of that: the adapter, or the model where all weights are trained
    stage1/best        a link to the best checkpoint of that stage, such as step_150
    best               a link to that of the last stage

Self-play and SFT have one stage. A checkpoint is written in `step_200.tmp/` and renamed when complete. Of older ones
the adapter and its card stay, and the manifest says `weights_only`. `step_300.aside` was newer than the checkpoint
from which a run was resumed. What is the best, each manifest knows as of its own time, and the links are made after
the newest: so a resume from any checkpoint finds its own best, and pruning leaves what one that stays calls the best.
"""

import contextlib
import errno
import logging
import math
import os
import pickle
import random
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object
from accelerate.utils import load as load_plain_data
from safetensors import SafetensorError

from lib.core.errors import ConfigError, NumericError, StorageError, first_line, is_out_of_memory
from lib.run.adapter_files import ADAPTER_FILES, has_adapter, load_weights, save_weights
from lib.run.directory import checkpoint_in, checkpoints_in, is_weights_only, place_of, stages_in, step_of
from lib.run.distributed import Item
from lib.run.fingerprints import REWARD
from lib.run.machine import packages
from lib.run.manifest import MANIFEST, is_whole, keep_weights, manifest_of, problems, read_manifest, seal, set_aside
from lib.run.runlog import RunLog, fsync_folder, megabytes, storage_errors, write_whole

logger = logging.getLogger(__name__)

BEST = "best"
UNREADABLE = (
    pickle.UnpicklingError, SafetensorError, EOFError, RuntimeError, LookupError, TypeError, ValueError, AttributeError,
)  # fmt: skip


class Stateful(Protocol):
    """An object that changes during training. Its state consists of numbers, strings, lists, dicts and tensors."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Checkpoints:
    """The checkpoints of one run. Build it after `accelerator.prepare`, on every rank.

    `model` is the trained model: of a PeftModel the adapter is saved, of any other all weights. `dataset` is a
    fingerprint of the training data, and `inputs` has those of lib/run/fingerprints.py: a resume must find the same.
    With `any_number`, as many processes as one likes may resume: all hold the same state but for the global generators.
    The `keep` newest valid checkpoints of each stage and its best can be resumed. `write_extra` adds a script's
    files into the folder of a checkpoint, both in one process. `saved` gets each checkpoint that is complete, and the
    one from which the run goes on once more: a kill may have come between the two.

    `best` is {"stage1": {"folder": "stage1/step_150", "score": 0.6}}, with each stage that `consider` was called for.
    """

    def __init__(
        self,
        run_dir: Path,
        accelerator: Accelerator,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        log: RunLog,
        *,
        dataset: str = "",
        inputs: Mapping[str, str] = MappingProxyType({}),
        keep: int = 2,
        allow_change: bool = False,
        any_number: bool = False,
        write_extra: Callable[[Path], None] = lambda folder: None,
        saved: Callable[[Path], None] = lambda folder: None,
    ):
        self.run_dir = Path(run_dir)
        self.accelerator = accelerator
        self.model = model
        self.optimizer = optimizer
        for stage in stages_in(self.run_dir).values():
            if stage.is_symlink():
                raise ConfigError(f"{stage}: is a link, expected a folder of this run: put there what it points to")
        self.log = log
        self.dataset = dataset
        self.inputs = dict(inputs)
        self.keep = keep
        self.allow_change = allow_change
        self.any_number = any_number
        self._write_extra, self._saved = write_extra, saved
        self.best: dict[str, dict[str, Any]] = {}
        self._objects: dict[str, Stateful | torch.Generator] = {}
        accelerator.register_save_state_pre_hook(self._save_weights)
        accelerator.register_load_state_pre_hook(self._load_weights)
        if accelerator.is_main_process:
            for leftover in self.run_dir.glob("stage*/*.tmp"):
                leftover.unlink() if leftover.is_symlink() or leftover.is_file() else shutil.rmtree(leftover)

    def register(self, **objects: Stateful | torch.Generator) -> None:
        """Adds other objects that change in training, by name: `register(sampler=sampler, sampling=torch.Generator())`.

        Each rank's own state is saved; `accelerator.register_for_checkpointing` would save only rank 0's.
        """
        self._objects.update(objects)

    def states(self, names: Collection[str]) -> dict[str, Any]:
        """Returns the states of the registered objects among `names`, for `set_states`: tensors, or pickled."""
        states = {name: _state_of(self._objects[name]) for name in names if name in self._objects}
        return {name: state if torch.is_tensor(state) else pickle.dumps(state) for name, state in states.items()}

    def set_states(self, states: Mapping[str, Any]) -> None:
        """Gives the registered objects their states of an earlier moment of this process."""
        for name, state in states.items():
            _restore(self._objects[name], state if torch.is_tensor(state) else pickle.loads(state))

    def consider(self, stage: int, folder: str, score: float) -> None:
        """Marks `folder` as the best of a stage if no earlier score is as high; the caller then saves it there."""
        best = self.best.get(f"stage{stage}")
        if best is None or score > best["score"]:
            self.best[f"stage{stage}"] = {"folder": folder, "score": score}

    def best_of(self, stage: int) -> str | None:
        """Returns the folder of a stage's best checkpoint relative to the run's, such as `stage1/step_150`."""
        return self.best.get(f"stage{stage}", {}).get("folder")

    def save(self, stage: int, step: int) -> Path:
        """Saves everything as `stage<stage>/step_<step>`, then keeps only the weights of the stage's older ones.

        All ranks call it, as the last action of a step: a resume drops rows that are logged later.
        Raises NumericError when weights or optimizer hold non-finite numbers, StorageError when it cannot be written;
        both leave the older checkpoints untouched.
        """
        final = self.run_dir / f"stage{stage}" / f"step_{step}"
        self._check_finite(final)
        temporary = final.with_name(final.name + ".tmp")
        self._together(temporary, lambda: self._make_room(temporary), main_only=True)
        self._together(temporary, lambda: self._write_state(temporary))
        self._together(temporary, lambda: self._publish(temporary, final), main_only=True)
        return final

    def chosen(self, path: Path | None = None) -> Path | None:
        """Returns the checkpoint that `resume` would load, raising nearly all of its errors; changes nothing."""
        if path is not None:
            path = checkpoint_in(self.run_dir, path)
            _refuse_broken(path)
        else:
            path = self.newest()
            ended = [number for number, folder in stages_in(self.run_dir).items() if (folder / MANIFEST).exists()]
            if ended and (path is None or place_of(path)[0] < ended[-1]):
                folder = self.run_dir / f"stage{ended[-1]}"
                raise ConfigError(
                    f"{folder}: this stage has ended, and none of its checkpoints can be used any more: start a new "
                    f"run from its weights (--resume-adapter {folder} run_name=...), or train it again from a "
                    "checkpoint of an earlier stage (--resume DIR)"
                )
        if path is not None:
            self._refuse_other_run(path, read_manifest(path))
        elif checkpoints_in(self.run_dir):
            raise ConfigError(
                f"{self.run_dir}: every checkpoint is broken (see above) or holds weights alone: restore one from a "
                "backup, or start a new run from its weights (--resume-adapter DIR run_name=...)"
            )
        return path

    def newest(self) -> Path | None:
        """Returns the newest intact checkpoint, by (stage, step); logs what is wrong with each newer one."""
        return self._from_main(self._newest)

    def resume(self, path: Path | None = None) -> Path | None:
        """Restores `path`, or the newest valid checkpoint, bit for bit, with its logs and best, and returns it.

        Newer checkpoints are renamed to `*.aside`. Returns None if the run never saved one: then rows of a start that
        failed are dropped. Raises ConfigError when all are broken, hold weights alone or were deleted, or `path` is
        broken or belongs to another run, data, ranks, adapters or objects.
        """
        path = self.chosen(path)
        if path is None:
            self.log.rewind({})
            return None
        manifest = read_manifest(path)
        self._warn_of_other_versions(path, manifest)
        with _reading(path):
            objects = self._read_objects(path)
            self.accelerator.load_state(str(path))
            # again: `load_state` sets the global generators too, but silently ignores a failure
            if self.accelerator.process_index < manifest["world_size"]:  # else they stay as the seed has set them
                set_random_states(load_plain_data(path / f"random_states_{self.accelerator.process_index}.pkl"))
            for name, state in objects.items():
                _restore(self._objects[name], state)
        self.best = manifest["best"]
        if self.accelerator.is_main_process:
            self._set_newer_aside(path)  # first: if a kill leaves some, the logs are still long enough for them
            self.log.rewind(manifest["log_offsets"])
            self._point_at_best()
            self._saved(path)
            self._prune(path.parent)
        self.accelerator.wait_for_everyone()
        return path

    def load_weights(self, path: Path, also: Collection[str] = ()) -> None:
        """Restores weights and optimizer of a checkpoint, and the objects named. Raises ConfigError if it is broken."""
        _refuse_broken(path)
        with _reading(path):
            load_weights(self.model, path)
            self.optimizer.load_state_dict(load_plain_data(path / "optimizer.bin", map_location="cpu"))
            for name, state in self._objects_in(path).items() if also else ():
                if name in also and name in self._objects:
                    _restore(self._objects[name], state)

    def step_of_result(self, folder: Path) -> int | None:
        """Returns the step at which the result in a folder was saved; None if it is missing or damaged.

        Raises ConfigError when it belongs to other data.
        """
        if not self._from_main(lambda: is_whole(folder)):
            return None
        manifest = read_manifest(folder)
        self._refuse_other_inputs(folder, manifest)
        return manifest["step"]

    def seal_result(self, folder: Path, step: int) -> None:
        """Waits until a result is on disk, then adds the manifest that `step_of_result` reads."""
        seal(folder, **self._facts(), step=step)

    def take_over_logs(self, stage: int) -> None:
        """Continues the rows and the best of the stages before `stage`, which starts from given weights.

        Rows that the result of the stage before does not hold are dropped, or, where it is damaged, those that the
        newest checkpoint does not hold. Raises ConfigError if the run has other data.
        """
        result = self.run_dir / f"stage{stage - 1}"

        def latest() -> Path | None:
            return result if (result / MANIFEST).exists() and is_whole(result) else self._newest()

        if folder := self._from_main(latest):
            manifest = read_manifest(folder)
            self._refuse_other_inputs(folder, manifest)
            self.best = {name: best for name, best in manifest["best"].items() if name != f"stage{stage}"}
            self.log.rewind(manifest["log_offsets"])
        if self.accelerator.is_main_process and (newest := self._newest()):  # which a kill may have left half done
            self._saved(newest)
            self._prune(newest.parent)

    def restore_result(self, stage: int, steps: int, save_rest: Callable[[Path], None]) -> None:
        """Rewrites the adapter of a finished stage, if missing or damaged, from the checkpoint of its last step."""
        folder = self.run_dir / f"stage{stage}"
        last = folder / f"step_{steps}"
        if not last.is_dir() or is_whole(folder):  # no such folder: the run began in a later stage
            return
        if broken := problems(last):
            logger.error("%s cannot be rewritten: %s is broken too: %s", folder, last, "; ".join(broken))
            return
        self.write_result(last, save_rest)
        logger.warning("%s was rewritten from %s", folder, last)

    def write_result(self, last: Path, save_rest: Callable[[Path], None]) -> None:
        """Writes the adapter of a finished stage, from the checkpoint of its last step, which is saved first.

        So a stage whose adapter has a manifest has ended.
        """
        folder, manifest = last.parent, read_manifest(last)
        with storage_errors(folder):
            for name in ADAPTER_FILES:
                if (last / name).exists():
                    write_whole(folder / name, [(last / name).read_bytes()])
            save_rest(folder)
            facts = {name: manifest[name] for name in self._facts()}  # of that time
            seal(folder, **facts, step=step_of(last))

    # -- saving

    def _check_finite(self, final: Path) -> None:
        names = {parameter: name for name, parameter in self.model.named_parameters() if parameter.requires_grad}
        tensors = [(name, parameter) for parameter, name in names.items()]
        for parameter, state in self.optimizer.state.items():
            tensors += [(f"optimizer {key} of {names.get(parameter)}", value) for key, value in state.items()]
        for name, value in tensors:
            if torch.is_tensor(value) and not torch.isfinite(value).all():
                raise NumericError(
                    f"{final}: not saved, {name} holds non-finite numbers; resume from the checkpoint before, "
                    f"with a smaller learning rate or gradient norm"
                )

    def _make_room(self, temporary: Path) -> None:
        last = next(iter(checkpoints_in(self.run_dir)), None)
        size = sum(file.stat().st_size for file in last.iterdir()) if last else 0
        if shutil.disk_usage(self.run_dir).free < 2 * size:
            raise OSError(errno.ENOSPC, f"the last checkpoint has {megabytes(size)}, and twice that must be free")
        temporary.mkdir(parents=True)
        fsync_folder(self.run_dir)

    def _write_state(self, temporary: Path) -> None:
        self.accelerator.save_state(str(temporary))
        path = temporary / f"objects_{self.accelerator.process_index}.bin"
        torch.save({name: _state_of(thing) for name, thing in self._objects.items()}, path)
        load_plain_data(path)  # a state that cannot be read back must fail now, not at the resume

    def _save_weights(self, models: list[torch.nn.Module], weights: list[dict], directory: str) -> None:
        weights.clear()  # else accelerate writes the whole base model
        if self.accelerator.is_main_process:
            save_weights(self.model, Path(directory))
            self._write_extra(Path(directory))

    def _publish(self, temporary: Path, final: Path) -> None:
        self.log.sync()
        seal(temporary, **self._facts())
        if final.exists():  # a signal had already saved this step, before its evaluation
            _delete(final)
        os.replace(temporary, final)
        fsync_folder(final.parent)
        broken = problems(final)
        if broken:
            raise OSError(errno.EIO, f"the files differ when read back: {'; '.join(broken)}")
        self.log.begin()
        self._point_at_best()
        self._saved(final)
        self._prune(final.parent)

    def _point_at_best(self) -> None:
        begun = (folder.name for folder in stages_in(self.run_dir).values())
        for stage in sorted({*self.best, *begun}):
            folder = self.best[stage]["folder"] if stage in self.best else None
            (self.run_dir / stage).mkdir(exist_ok=True)
            _link(self.run_dir / stage / BEST, folder and os.path.relpath(folder, stage))
        _link(self.run_dir / BEST, f"{max(self.best)}/{BEST}" if self.best else None)

    def _prune(self, stage: Path) -> None:
        """Reduces the oldest checkpoints of a stage to their adapters, but none that a remaining one calls the best.

        Where all weights are trained they are large, and the whole checkpoint is deleted.
        """
        valid, needed = 0, set()
        for folder in (folder for folder in checkpoints_in(self.run_dir) if folder.parent == stage):
            if valid < self.keep:
                if not problems(folder) and not is_weights_only(folder):
                    valid += 1
                    needed |= {best["folder"] for best in read_manifest(folder)["best"].values()}
            elif folder.relative_to(self.run_dir).as_posix() not in needed:
                if has_adapter(self.model) and manifest_of(folder):
                    keep_weights(folder, ADAPTER_FILES)
                else:
                    _delete(folder)

    def _together(self, temporary: Path, action: Callable[[], None], main_only: bool = False) -> None:
        """Runs a phase of saving; if a write fails on one rank, all ranks clean up and raise StorageError."""
        failure = None
        if self.accelerator.is_main_process or not main_only:
            try:
                with storage_errors(temporary.with_suffix("")):
                    action()
            except StorageError as error:
                failure = str(error)
        failures = [text for text in gather_object([failure]) if text]
        if failures:
            if self.accelerator.is_main_process:
                shutil.rmtree(temporary, ignore_errors=True)
            self.accelerator.wait_for_everyone()  # the first rank that exits makes the launcher kill the others
            raise StorageError(failures[0])

    # -- loading

    def _newest(self) -> Path | None:
        for folder in checkpoints_in(self.run_dir):
            broken = problems(folder)
            if not broken and not is_weights_only(folder):
                return folder
            if broken:
                logger.error("CHECKPOINT %s IS BROKEN and will not be used: %s", folder, "; ".join(broken))
        return None

    def _refuse_other_run(self, path: Path, manifest: Mapping[str, Any]) -> None:
        ranks, before = self.accelerator.num_processes, manifest["world_size"]
        if before != ranks and not self.any_number:
            raise ConfigError(
                f"{path}: saved by {before} processes, this run has {ranks}, and a step reads a batch for each: launch "
                f"with --num_processes {before}, or start a new run from its weights"
            )
        if before != ranks and self.accelerator.is_main_process:
            logger.warning(
                "%s: saved by %d processes, this run has %d: prompts, samples and updates stay what they were, but "
                "sums are rounded otherwise, so that it is not the same to the last bit; a reward that draws random "
                "numbers draws others, and a server may be asked again what another process had kept",
                path, before, ranks,
            )  # fmt: skip
        self._refuse_other_inputs(path, manifest)

    def _refuse_other_inputs(self, path: Path, manifest: Mapping[str, Any]) -> None:
        if manifest["dataset"] != self.dataset and not self.allow_change:
            raise ConfigError(
                f"{path}: the training data has changed (fingerprint {manifest['dataset']} there, {self.dataset} now): "
                "restore the data, or accept the change with --allow-config-change (earlier versions held out "
                "other rows of a single split)"
            )
        before = manifest["inputs"]
        changed = [name for name in before.keys() & self.inputs.keys() if before[name] != self.inputs[name]]
        names = " and ".join(sorted(changed))
        if changed == [REWARD] and self._was_broken_since(path):
            logger.warning(
                "%s: the reward raised an error after it was saved, and %s changed: continues with the change",
                path,
                names,
            )
        elif changed and not self.allow_change:
            raise ConfigError(
                f"{path}: since it was saved, {names} changed under the same name: restore what was there, or accept "
                "the change with --allow-config-change"
            )
        elif changed:
            logger.warning("%s: since it was saved, %s changed under the same name", path, names)

    def _was_broken_since(self, path: Path) -> bool:
        """True if the reward has raised since a checkpoint was saved: then its code may have changed."""
        saved = (path / MANIFEST).stat().st_mtime
        return any(kept.stat().st_mtime >= saved for kept in self.run_dir.glob("traceback*.log"))

    def _warn_of_other_versions(self, path: Path, manifest: Mapping[str, Any]) -> None:
        for name, now in self._environment().items():
            if manifest["environment"].get(name) != now:
                before = manifest["environment"].get(name)
                logger.warning("%s: saved with %s %s, now %s: later steps may differ slightly", path, name, before, now)

    def _objects_in(self, path: Path) -> dict[str, Any]:
        saved_by = self.accelerator.process_index % read_manifest(path)["world_size"]
        return load_plain_data(path / f"objects_{saved_by}.bin", map_location="cpu")

    def _read_objects(self, path: Path) -> dict[str, Any]:
        objects = self._objects_in(path)
        if objects.keys() != self._objects.keys() and not self.allow_change:
            raise ConfigError(
                f"{path}: holds the state of {sorted(objects)}, the script registers {sorted(self._objects)}: "
                f"undo what changed, start a new run from its weights, or accept with "
                "--allow-config-change that what is not in it starts afresh"
            )
        return {name: state for name, state in objects.items() if name in self._objects}

    def _load_weights(self, models: list[torch.nn.Module], directory: str) -> None:
        models.clear()
        load_weights(self.model, Path(directory))

    def _set_newer_aside(self, path: Path) -> None:
        for stage, folder in stages_in(self.run_dir).items():
            if (stage, manifest_of(folder).get("step", math.inf)) > place_of(path):
                (folder / MANIFEST).unlink(missing_ok=True)  # a stage that runs again has not ended
        for folder in checkpoints_in(self.run_dir):
            if folder == path:
                return
            logger.warning("%s is newer than %s: it is set aside as %s.aside", folder, path, folder.name)
            set_aside(folder)

    # -- both

    def _from_main(self, ask: Callable[[], Item]) -> Item:
        """Returns the main process's answer, which all processes wait for."""
        return broadcast_object_list([ask() if self.accelerator.is_main_process else None])[0]

    def _facts(self) -> dict[str, Any]:
        """Returns the facts of the run that a manifest records: a resume compares them, or goes back to them."""
        return {
            "environment": self._environment(),
            "world_size": self.accelerator.num_processes,
            "dataset": self.dataset,
            "inputs": self.inputs,
            "log_offsets": self.log.offsets(),
            "best": self.best,
        }

    def _environment(self) -> dict[str, str]:
        # other versions and another number of threads round sums differently
        return packages() | {"device": self.accelerator.device.type, "threads": str(torch.get_num_threads())}


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raises ConfigError if the files of a checkpoint hold something else than this script saves.

    Pickles are read as plain data: they cannot run code.
    """
    try:
        yield
    except UNREADABLE as error:
        if is_out_of_memory(error):
            raise
        raise ConfigError(
            f"{path}: cannot be loaded ({first_line(error)}), although its files are as {MANIFEST} says: "
            "this script did not save them; resume from another checkpoint"
        ) from error


def random_states() -> dict[str, Any]:
    """Returns the states of the global generators, under accelerate's names."""
    states = {
        "random_state": random.getstate(),
        "numpy_random_seed": np.random.get_state(),
        "torch_manual_seed": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        states["torch_cuda_manual_seed"] = torch.cuda.get_rng_state_all()
    return states


def set_random_states(states: Mapping[str, Any]) -> None:
    """Sets the states of the global generators."""
    random.setstate(states["random_state"])
    np.random.set_state(states["numpy_random_seed"])
    torch.set_rng_state(states["torch_manual_seed"])
    if torch.cuda.is_available() and "torch_cuda_manual_seed" in states:  # absent: saved on a CPU, and warned about
        torch.cuda.set_rng_state_all(states["torch_cuda_manual_seed"])


def _state_of(thing: Stateful | torch.Generator) -> Any:
    return thing.get_state() if isinstance(thing, torch.Generator) else thing.state_dict()


def _restore(thing: Stateful | torch.Generator, state: Any) -> None:
    """Gives an object or a generator the state that `_state_of` returned."""
    if isinstance(thing, torch.Generator):
        thing.set_state(state)
    else:
        thing.load_state_dict(state)


def _refuse_broken(folder: Path) -> None:
    if broken := problems(folder) if folder.is_dir() else ["there is no such folder"]:
        raise ConfigError(f"{folder} is broken: {'; '.join(broken)}; resume from another checkpoint")


def _delete(folder: Path) -> None:
    doomed = folder.with_name(folder.name + ".old.tmp")  # half deleted, it must not look like a checkpoint
    os.replace(folder, doomed)
    shutil.rmtree(doomed)


def _link(link: Path, target: str | None) -> None:
    """Points a link at `target` atomically, or removes it."""
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)  # copying a run may have turned links into folders
    aside = link.with_name(f".{link.name}")
    aside.unlink(missing_ok=True)
    if target == (os.readlink(link) if link.is_symlink() else None):
        return
    if target is None:
        link.unlink()
    else:
        aside.symlink_to(target)
        os.replace(aside, link)
    fsync_folder(link.parent)

"""A dashboard next to the files of a run: W&B or TensorBoard. No run depends on it.

Whatever goes wrong in it is one warning, and the run continues without it. Entity, group, tags, notes and mode of a W&B
run come from W&B's own variables, such as WANDB_MODE; WANDB_PROJECT and WANDB_NAME come before the config.
accelerate's trackers are not used: TensorBoard's refuses a config with lists in it, and their errors end the run.
"""

import contextlib
import importlib.util
import json
import math
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from lib.core.config import RunConfig
from lib.core.errors import ConfigError
from lib.run.directory import SECRETS
from lib.run.runlog import is_number, write_whole

Rows = list[dict[str, Any]]
STEP = "global_step"  # the x axis of everything: a resumed run repeats steps, which W&B's own counter forbids
WANDB_ID = "wandb_id"  # the file that holds the W&B run id
FINISH_SECONDS = 300.0  # time limit for sending what is left at the end
SAMPLES = 8  # most texts in a table
VARIABLES = {
    "project": "WANDB_PROJECT", "name": "WANDB_NAME", "id": "WANDB_RUN_ID", "resume": "WANDB_RESUME",
    "dir": "WANDB_DIR", "mode": "WANDB_MODE",
}  # fmt: skip


class Tracker:
    """The dashboard of one run; a context manager. Does nothing without a backend or outside the main process.

    With `resume` it continues the run that it began there. ConfigError if the package is not installed.
    """

    def __init__(self, config: RunConfig, resume: bool, warn: Callable[[str], None], is_main: bool = True):
        self._config, self._resume, self._warn = config, resume, warn
        self._name = config.tracking.backend
        self._is_main = is_main
        self._board: _Wandb | _TensorBoard | None = None
        if self._name != "none" and importlib.util.find_spec(self._name) is None:
            raise ConfigError(
                f"tracking.backend: {self._name} is not installed; pip install {self._name}, or set "
                "tracking.backend=none"
            )

    def __enter__(self) -> "Tracker":
        if self._name != "none" and self._is_main:
            with self._spared():
                self._board = BOARDS[self._name](self._config, self._resume)
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        with self._spared():
            if self._board:
                self._board.close(failed=kind is not None)

    def log(self, part: str, row: Mapping[str, Any], step: int, texts: Rows | None = None) -> None:
        """Logs a row's numbers with their intervals, and some of the texts as a table."""
        if not self._board:
            return
        with self._spared():
            self._board.log(
                {f"{part}/{name}": value for name, value in _flat(row)},
                {f"{part}/samples": texts[:: -(-len(texts) // SAMPLES)]} if texts else {},  # evenly spaced
                step,
            )

    @contextlib.contextmanager
    def _spared(self) -> Iterator[None]:
        """Turns an error of the dashboard into a warning, and switches the dashboard off."""
        try:
            yield
        except Exception as error:  # no error of a dashboard may stop the run
            self._board = None
            reason = " ".join(str(error).split())[:200]
            self._warn(
                f"tracking.backend: {self._name} failed ({type(error).__name__}: {reason}); the run continues without "
                "it, and its own files have everything"
            )


class _Wandb:
    def __init__(self, config: RunConfig, resume: bool):
        import wandb

        run_dir = config.run_dir
        wished: dict[str, Any] = {
            "project": config.tracking.project,
            "name": config.run_name,
            "mode": _mode(),
            "resume": "allow",
            "dir": str(run_dir.resolve()),  # W&B's process has its own working directory
        }
        if not os.environ.get(VARIABLES["id"]):
            wished["id"] = _run_id(run_dir / WANDB_ID, resume)
        self._wandb = wandb
        self._run = wandb.init(
            config=without_secrets(config.model_dump(mode="json")),
            settings=wandb.Settings(finish_timeout=FINISH_SECONDS),
            **{key: value for key, value in wished.items() if value and not os.environ.get(VARIABLES[key])},
        )
        self._run.define_metric(STEP)
        self._run.define_metric("*", step_metric=STEP)

    def log(self, numbers: dict[str, float], tables: dict[str, Rows], step: int) -> None:
        self._run.log({STEP: step, **numbers, **{name: self._table(rows) for name, rows in tables.items()}})

    def _table(self, rows: Rows) -> Any:
        columns = list(dict.fromkeys(name for row in rows for name in row))
        data = [[json.dumps(cell, ensure_ascii=False) if isinstance(cell, dict | list) else cell
                 for cell in map(row.get, columns)] for row in rows]  # fmt: skip
        return self._wandb.Table(columns=columns, data=data, allow_mixed_types=True)

    def close(self, failed: bool) -> None:
        self._run.finish(exit_code=int(failed))


class _TensorBoard:
    def __init__(self, config: RunConfig, resume: bool):
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(config.run_dir / config.tracking.project))
        if not resume:
            settings = without_secrets(config.model_dump(mode="json"))
            text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=120)
            self._writer.add_text("config", f"```\n{text}\n```")

    def log(self, numbers: dict[str, float], tables: dict[str, Rows], step: int) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)
        for name, rows in tables.items():
            text = "\n".join(json.dumps(row, ensure_ascii=False, default=str) for row in rows)
            self._writer.add_text(name, f"```\n{text}\n```", step)

    def close(self, failed: bool) -> None:
        self._writer.close()


BOARDS: dict[str, Any] = {"wandb": _Wandb, "tensorboard": _TensorBoard}


def _flat(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yields a row of metrics.jsonl or evaluations.jsonl as named numbers: both ends of each interval, and each k."""
    for name, value in row.items():
        if is_number(value) and math.isfinite(value):
            yield name, value
        elif isinstance(value, dict) and name != "per_question":
            yield from ((f"{name}/{inner}", number) for inner, number in _flat(value))
        elif name.endswith("_ci95") and value:
            yield from zip((f"{name}/low", f"{name}/high"), value, strict=True)
        elif name.endswith("_at_k"):
            yield from _flat({f"{name[:-1]}{entry['k']}": {**entry, "k": None} for entry in value})


def _mode() -> str:
    """Returns W&B's mode: online if it finds a key, in the environment or from `wandb login`; else offline."""
    import wandb
    from wandb.sdk.lib import wbauth

    host = wandb.setup().settings.base_url
    auth = wbauth.authenticate_session(host=host, source="wandb.init()", prompt=False, update_session=False)
    return "online" if auth else "offline"


def _run_id(path: Path, resume: bool) -> str:
    """Returns the W&B run id: the one saved in `path` when a run resumes, else a new one, which it saves there."""
    if resume and path.exists():
        return path.read_text(encoding="utf-8").strip()
    made = secrets.token_hex(4)
    write_whole(path, [made.encode()])
    return made


def without_secrets(tree: dict[str, Any]) -> dict[str, Any]:
    """Returns a config with null, or an empty section, for values that may hold a key."""
    return {
        key: ({} if isinstance(value, dict) else None) if key in SECRETS
        else without_secrets(value) if isinstance(value, dict) else value
        for key, value in tree.items()
    }  # fmt: skip

"""One thin layer over accelerate: which part of a batch is this process's, and lists and sums over all of them."""

import importlib.util
from pathlib import Path
from typing import TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs, gather_object

from lib.clock import phase
from lib.config import Tracking
from lib.errors import ConfigError

Item = TypeVar("Item")


def make_accelerator(tracking: Tracking, run_dir: Path) -> Accelerator:
    """The accelerator of this process, with the dashboard the config names. ConfigError if that is not installed."""
    name = tracking.backend
    if name != "none" and importlib.util.find_spec(name) is None:
        raise ConfigError(
            f"tracking.backend: {name} is not installed; pip install {name}, or set tracking.backend=none"
        )
    # model.dtype is the one place for precision: autocast in only some of the passes would break KL = 0 at the start
    accelerator = Accelerator(
        # without being told, accelerate would let every process of a launch on CPUs train on its own
        cpu=not torch.cuda.is_available(),
        mixed_precision="no",
        log_with=None if name == "none" else name,
        project_dir=str(run_dir),
        kwargs_handlers=[DistributedDataParallelKwargs(broadcast_buffers=False)],  # none of them ever changes
    )
    if accelerator.gradient_accumulation_steps != 1:
        raise ConfigError("accelerate's config sets gradient_accumulation_steps: leave it at 1, micro-batches do that")
    return accelerator


def start_trackers(accelerator: Accelerator, tracking: Tracking, run_dir: Path, config: dict) -> None:
    """Opens the dashboard's run; a resumed run goes on in the same one. Nothing here waits for a network offline."""
    if tracking.backend == "none":
        return
    extra = {
        "wandb": {"id": run_dir.name, "resume": "allow", "mode": tracking.mode, "dir": str(run_dir)},
        "trackio": {"name": run_dir.name, "resume": "allow"},
        "tensorboard": {},
    }[tracking.backend]
    flat = {f"{section}.{key}": str(value) for section, values in config.items() if isinstance(values, dict)
            for key, value in values.items()}  # fmt: skip
    accelerator.init_trackers(tracking.project, flat, init_kwargs={tracking.backend: extra})


def share(items: list[Item], accelerator: Accelerator) -> list[Item]:
    """This process's contiguous part; sizes differ by one at most. ConfigError for fewer items than parts."""
    rank, count = accelerator.process_index, accelerator.num_processes
    if len(items) < count:
        raise ConfigError(
            f"{len(items)} prompts can not be shared by {count} processes: raise the batch size, eval.max_examples, or "
            "dataset.test_split_size, of which a quarter is chosen by (eval.selection_examples=0: none)"
        )
    return items[len(items) * rank // count : len(items) * (rank + 1) // count]


def collect(items: list[Item], accelerator: Accelerator) -> list[Item]:
    """All processes' items, in rank order."""
    if accelerator.num_processes == 1:
        return list(items)
    with phase("sync"):
        return gather_object(items)


def highest(value: int, accelerator: Accelerator) -> int:
    """The largest of all processes' values."""
    if accelerator.num_processes == 1:
        return value
    return int(accelerator.gather(torch.tensor([value], device=accelerator.device)).max())


def sum_gradients(parameters: list[torch.nn.Parameter], accelerator: Accelerator) -> None:
    """Every parameter's gradient becomes the sum over all processes, in one exchange; zero where nothing had one."""
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    if accelerator.num_processes == 1:
        return
    summed = total(torch.cat([parameter.grad.flatten() for parameter in parameters]), accelerator)
    for parameter, part in zip(parameters, summed.split([p.numel() for p in parameters]), strict=True):
        parameter.grad = part.view_as(parameter)


def total(values: torch.Tensor, accelerator: Accelerator) -> torch.Tensor:
    """Elementwise sum over all processes."""
    with phase("sync"):
        return accelerator.reduce(values, reduction="sum")

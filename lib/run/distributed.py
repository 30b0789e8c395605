"""One thin layer over accelerate: which part of a batch is this process's, and lists and sums over all of them."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs, InitProcessGroupKwargs, gather_object

from lib.core.clock import phase
from lib.core.errors import ConfigError
from lib.core.interrupts import Interrupts

Item = TypeVar("Item")
LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "GROUP_", "ROLE_", "TORCHELASTIC_", "ACCELERATE_", "FSDP_")
LONGEST_WAIT = timedelta(hours=2)  # NCCL's own 10 minutes are too few for train.after_checkpoint or a long rollout

_meanwhile: list[Callable[[], None]] = []


def wait_by(action: Callable[[], None]) -> None:
    """Makes every wait for other processes begin with `action`, in place of an earlier one."""
    _meanwhile[:] = [action]


def _begin_to_wait() -> None:
    for action in _meanwhile:
        action()


def without_launcher(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns an environment for a program that is not one of the launched processes, though one of them starts it."""
    return {name: value for name, value in environment.items() if not name.startswith(LAUNCHER)}


def make_accelerator() -> Accelerator:
    """Creates the accelerator of this process. ConfigError if accelerate's own config accumulates gradients."""
    # model.dtype alone sets the precision: autocast in only some of the passes would break KL = 0 at the start
    accelerator = Accelerator(
        # otherwise accelerate would let each process of a CPU launch train on its own
        cpu=not torch.cuda.is_available(),
        mixed_precision="no",
        kwargs_handlers=[
            DistributedDataParallelKwargs(broadcast_buffers=False),  # no buffer ever changes
            InitProcessGroupKwargs(timeout=LONGEST_WAIT),
        ],
    )
    if accelerator.gradient_accumulation_steps != 1:
        raise ConfigError("accelerate's config sets gradient_accumulation_steps: leave it at 1, micro-batches do that")
    return accelerator


def share(items: list[Item], accelerator: Accelerator) -> list[Item]:
    """Returns this process's contiguous part; sizes differ by at most one. ConfigError for fewer items than parts."""
    count = accelerator.num_processes
    if len(items) < count:
        raise ConfigError(
            f"{len(items)} prompts cannot be split between {count} processes: raise the batch size, eval.max_examples, "
            "or dataset.test_split_size, of which a quarter selects the checkpoint (eval.selection_examples=0: none)"
        )
    part = part_of(len(items), accelerator)
    return items[part.start : part.stop]


def part_of(total: int, accelerator: Accelerator) -> range:
    """Returns the indices of this process's contiguous part of `total` items."""
    rank, count = accelerator.process_index, accelerator.num_processes
    return range(total * rank // count, total * (rank + 1) // count)


def before_mine(count: int, accelerator: Accelerator) -> tuple[int, int]:
    """Returns how many items the processes before this one have, and how many all have; `count` are this one's."""
    counts = collect([count], accelerator)
    return sum(counts[: accelerator.process_index]), sum(counts)


def collect(items: list[Item], accelerator: Accelerator) -> list[Item]:
    """Returns all processes' items, in rank order."""
    if accelerator.num_processes == 1:
        return list(items)
    with phase("sync"):
        _begin_to_wait()
        return gather_object(items)


def highest(value: int, accelerator: Accelerator) -> int:
    """Returns the largest of all processes' values."""
    if accelerator.num_processes == 1:
        return value
    _begin_to_wait()
    return int(accelerator.gather(torch.tensor([value], device=accelerator.device)).max())


def interrupted(signals: Interrupts, accelerator: Accelerator) -> bool:
    """True if a signal to stop has reached any process; then all have it, because they save together."""
    number = highest(signals.received or 0, accelerator)
    if number:
        signals.note(number)
    return number > 0


def any_process(value: Any, accelerator: Accelerator) -> bool:
    """True if a value is true, or not empty, on any process."""
    return highest(int(bool(value)), accelerator) > 0


def sum_gradients(parameters: list[torch.nn.Parameter], accelerator: Accelerator) -> None:
    """Replaces each gradient by its sum over all processes, in one exchange; a missing gradient counts as zero."""
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    if accelerator.num_processes == 1:
        return
    summed = total(torch.cat([parameter.grad.flatten() for parameter in parameters]), accelerator)
    for parameter, part in zip(parameters, summed.split([p.numel() for p in parameters]), strict=True):
        parameter.grad = part.view_as(parameter)


def total(values: torch.Tensor, accelerator: Accelerator) -> torch.Tensor:
    """Returns the elementwise sum over all processes."""
    with phase("sync"):
        _begin_to_wait()
        return accelerator.reduce(values, reduction="sum")

"""Memory: how much a container leaves, and one error for memory that has run out, on a GPU or a CPU."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import torch

from lib.core.errors import is_out_of_memory

CGROUP = Path("/sys/fs/cgroup")
# limit and usage, newest layout first; cgroup v1 marks "no limit" by a number larger than any machine's memory
LAYOUTS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


@contextlib.contextmanager
def one_error() -> Iterator[None]:
    """Turns any out-of-memory error raised inside, on a GPU or a CPU, into torch.OutOfMemoryError."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, torch.OutOfMemoryError) or not is_out_of_memory(error):
            raise
        raise torch.OutOfMemoryError(str(error)) from error


def container_room(cgroup: Path = CGROUP) -> float:
    """Returns the bytes left under a Linux container's memory limit; infinity without a limit."""
    for limit, used in LAYOUTS:
        with contextlib.suppress(OSError, ValueError):  # "max" is not a number: no limit
            return max(0.0, float((cgroup / limit).read_text()) - float((cgroup / used).read_text()))
    return float("inf")

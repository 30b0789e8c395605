"""Memory: how much a container leaves, and one error for memory that has run out, on a GPU or a CPU."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import torch

from lib.errors import is_out_of_memory

CGROUP = Path("/sys/fs/cgroup")
# limit and use, newest layout first; version 1 has no word for "no limit" but a number beyond any machine
LAYOUTS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


@contextlib.contextmanager
def one_error() -> Iterator[None]:
    """Raises torch.OutOfMemoryError whatever memory it is that runs out inside: a CPU's has errors of its own."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, torch.OutOfMemoryError) or not is_out_of_memory(error):
            raise
        raise torch.OutOfMemoryError(str(error)) from error


def container_room(cgroup: Path = CGROUP) -> float:
    """Bytes that the limit of a Linux container leaves; infinite without any."""
    for limit, used in LAYOUTS:
        with contextlib.suppress(OSError, ValueError):  # "max" is no number: no limit
            return max(0.0, float((cgroup / limit).read_text()) - float((cgroup / used).read_text()))
    return float("inf")

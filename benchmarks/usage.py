"""Time and memory of a process, on a CPU and on a GPU."""

import sys
import time
from pathlib import Path

import torch

MIB = 2**20


def seconds() -> float:
    """Returns the time in seconds, once the device has finished its work."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def held_mib() -> float:
    """Returns the memory that this process holds now, in MiB, on the GPU where there is one."""
    return torch.cuda.memory_allocated() / MIB if torch.cuda.is_available() else resident("VmRSS")


def peak_mib() -> float:
    """Returns the most MiB that it has held since `forget_peak`."""
    return torch.cuda.max_memory_allocated() / MIB if torch.cuda.is_available() else resident("VmHWM")


def forget_peak() -> None:
    """Resets the peak to what is held now."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    elif Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")


def resident(field: str) -> float:
    """Returns a field of this process's status, in MiB; elsewhere than on Linux always the highest so far."""
    status = Path("/proc/self/status")
    if not status.exists():
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MIB
    lines = status.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024

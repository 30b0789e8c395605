"""Describes what a run depends on besides its config: the commit of this code, package versions, the computer."""

import contextlib
import functools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

MACHINE = "machine.json"
HERE = Path(__file__).resolve().parents[2]
PACKAGES = ("torch", "transformers", "peft", "trl", "accelerate", "numpy")


def describe_machine() -> dict[str, Any]:
    """Returns commit, versions, processor, accelerator, and the threads that torch computes with."""
    torch = sys.modules.get("torch")
    return {
        **commit(), "cpu": cpu(), "cores": os.cpu_count(), "packages": packages(),
        "threads": torch.get_num_threads() if torch else None,
        "gpu": torch.cuda.get_device_name() if torch and torch.cuda.is_available() else None,
    }  # fmt: skip


def read_machine(folder: Path) -> dict[str, Any]:
    """Returns the machine that the run in `folder` recorded; {} if it recorded none, like runs of earlier versions."""
    try:
        machine = json.loads((folder / MACHINE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return machine if isinstance(machine, dict) else {}


@functools.cache
def cpu() -> str:
    """Returns the model name of this machine's processor."""
    try:
        match = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1] if match else platform.processor() or platform.machine()


@functools.cache
def commit() -> dict[str, object]:
    """Returns the commit of this code, and whether tracked files differ from it; None for both outside git."""
    commands = (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
    try:
        head, status = (subprocess.run(["git", "-C", HERE, *words], capture_output=True, text=True)
                        for words in commands)  # fmt: skip
    except FileNotFoundError:
        return {"commit": None, "is_changed": None}
    if head.returncode:
        return {"commit": None, "is_changed": None}
    return {"commit": head.stdout.strip(), "is_changed": bool(status.stdout)}


@functools.cache
def packages() -> dict[str, str]:
    """Returns the versions of Python and the packages that the numbers depend on."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def nvidia_gpus() -> list[str]:
    """Returns a line for each NVIDIA GPU that the driver knows: name, memory, version of the driver."""
    if not shutil.which("nvidia-smi"):
        return []
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        result = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):  # no driver runs here
        return []
    return [line.strip() for line in result.stdout.splitlines() if line.strip()]

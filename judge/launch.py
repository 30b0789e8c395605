"""Starts zygotes: the rungs of protection, the command of each, and the files that a program may read there."""

import contextlib
import functools
import importlib.util
import os
import shutil
import socket
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.jail import kernel, zygote

LONGEST_WAIT = 100.0  # times a program's limit
_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parent


@dataclass(frozen=True)
class Rung:
    """One combination of protections."""

    name: str
    gives: str
    bubblewrap: bool = False
    seccomp: bool = False  # and Landlock


RUNGS = (
    Rung("R4", "Landlock, seccomp and bubblewrap", bubblewrap=True, seccomp=True),
    Rung("R3", "Landlock and seccomp", seccomp=True),
    Rung("R1", "limits alone"),
)


class WorkerLost(Exception):
    """A worker did not start, ended, or does not answer."""


# Python's own library, not a venv's; looked up here because sysconfig is not thread-safe.
_LIBRARY = [path for path in (sysconfig.get_path("stdlib"), sysconfig.get_config_var("DESTSHARED")) if path]
_ZONES = "/usr/share/zoneinfo"
_NEEDED_BY_ROOT = (5, 6, 7, 21)  # CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN
# all parts that are used: later its folder may be unreadable, because of the rung or of the change of user
_NUMPY = ["numpy", "numpy.linalg", "numpy.random", "numpy.fft", "numpy.polynomial", "numpy.ma", "numpy.testing"]
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC",
    "PYTHONHASHSEED": "0",  # sets have the same order in every run
    "LD_BIND_NOW": "1",  # otherwise every child would look up the same functions anew
    "MALLOC_ARENA_MAX": "1",  # an arena per thread would take 64 MB each of a program's memory
    "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
}  # fmt: skip
_START = "import sys; sys.path[0] = sys.argv.pop(); from judge.jail.zygote import main; main()"


def command_of(rung: Rung, fd: int, numpy: bool) -> list[str]:
    """Returns the command of the real interpreter, without site packages; in its own namespaces if the rung says so."""
    python = [os.path.realpath(sys.executable), "-S", "-s", "-B", "-c", _START, str(fd), str(_ROOT)]
    if not rung.bubblewrap:
        return python
    program = shutil.which("bwrap")
    if program is None:
        raise WorkerLost("bubblewrap is not installed")
    paths = [sys.base_prefix, "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", *_numpy_folders(numpy)]
    paths = list(dict.fromkeys([*paths, str(_HERE / "__init__.py"), str(_HERE / "jail")]))
    arguments = ["--die-with-parent", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--proc", "/proc"]
    for device in ("/dev/null", "/dev/urandom"):
        arguments += ["--dev-bind", device, device]
    arguments += [f"--unshare-{what}" for what in ("ipc", "pid", "net", "uts", "cgroup-try")]
    if os.geteuid() != 0:
        arguments.append("--unshare-user")
    elif not kernel.has_capabilities(_NEEDED_BY_ROOT):
        raise WorkerLost("bubblewrap as root needs all of root's capabilities")
    else:  # root in a user namespace would be root outside too, whom process limits do not bind
        for name in ("SETUID", "SETGID", "KILL"):
            arguments += ["--cap-add", f"CAP_{name}"]
    for folder in sorted({str(parent) for path in paths for parent in Path(path).parents} - {"/"}):
        arguments += ["--perms", "0755", "--dir", folder]  # otherwise only root could enter
    for path in paths:
        arguments += ["--ro-bind-try", path, path]
    arguments += ["--remount-ro", "/"]  # otherwise access times would let a program leave marks for the next one
    return [program, *arguments, "--chdir", "/", "--", *python]


def free_user() -> tuple[int, socket.socket]:
    """Returns the user of a new worker, and a socket that keeps the user from all others until its last copy is closed.

    Each worker of root has its own: a process limit counts all of a user's, whoever started them. Raises WorkerLost.
    """
    lock = socket.socket(socket.AF_UNIX)
    if os.geteuid() != 0:
        return os.getuid(), lock
    for user in kernel.NOBODIES:
        with contextlib.suppress(OSError):
            lock.bind(f"\0rematch-sandbox-user-{user}")  # a name that no file has, and that ends with its socket
            return user, lock
    lock.close()
    raise WorkerLost(f"{len(kernel.NOBODIES)} workers have the users {kernel.NOBODIES[0]} to {kernel.NOBODIES[-1]}")


def wall_factor(among: int) -> float:
    """Returns how many times its limit a program may take in wall time; more if a quota leaves it less than a core."""
    return min(LONGEST_WAIT, zygote.WALL_FACTOR * max(1.0, among / kernel.cpu_quota()))


def settings_of(rung: Rung, numpy: bool, among: int, user: int) -> dict:
    """Returns the settings that the zygote receives first."""
    folders = _numpy_folders(numpy)
    readable, listed = without_packages((*_LIBRARY, "/usr/lib", "/lib", "/lib64"))
    private = os.geteuid() == 0 and not rung.bubblewrap and _is_private(Path(_LIBRARY[0]))
    return {
        "modules": zygote.COMMON.split() + numpy * _NUMPY,
        "private": private,
        "path": _LIBRARY,
        "path_beforehand": [str(Path(folder).parent) for folder in folders],  # where submodules are found later
        "readable": [*readable, _ZONES, "/etc/ld.so.cache", *folders],
        "listed": listed,  # modules are found by their names
        "user": user,
        # computed here, where the whole machine is visible
        "threads": kernel.most_threads(among if os.geteuid() == 0 or rung.bubblewrap else 1),
        "others": kernel.threads_of(user),
        "namespace": rung.bubblewrap,
        "seccomp": rung.seccomp,
    }


@functools.lru_cache(maxsize=1)
def without_packages(folders: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Splits folders into paths that a program may read, and folders of which it may only list the names.

    Without a virtual environment, installed packages lie inside the interpreter's library: they are left out.
    """
    readable, listed = [], []
    waiting = list(dict.fromkeys(Path(folder).resolve() for folder in folders))
    packages = {
        package for folder in waiting for where in ("", "python3*/") for package in folder.glob(f"{where}*-packages")
    }
    while waiting:
        path = waiting.pop(0)
        if any(path in package.parents for package in packages):
            listed.append(str(path))
            # a link's target is another path
            waiting += (part for part in path.iterdir() if part not in packages and not part.is_symlink())
        else:
            readable.append(str(path))
    return readable, listed


def _is_private(folder: Path) -> bool:
    """True if a folder, or one above it, is closed to the unprivileged user that root switches to."""
    return any(not path.stat().st_mode & 0o001 for path in (folder, *folder.parents))


def _numpy_folders(numpy: bool) -> Sequence[str]:
    """Returns the folders of numpy and its shared libraries only: other packages stay hidden. Raises WorkerLost."""
    if not numpy:
        return ()
    spec = importlib.util.find_spec("numpy")
    if spec is None or spec.origin is None:
        raise WorkerLost("numpy is not installed")
    folder = Path(spec.origin).parent
    return [str(folder), str(folder.with_name("numpy.libs"))]

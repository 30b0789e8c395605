"""Attempts what a program must not be able to do here: each function tries one thing and says whether it was refused.

`judge/isolation.py` runs this file in the sandbox, with the tests `assert <function>(...) == "refused"`:
the return codes of the protections alone prove nothing, attempts do.
"""

import ctypes
import os
import socket

_libc = ctypes.CDLL(None, use_errno=True)


def _attempt(action, *args):
    """Returns "refused" if the action raises OSError or returns a negative number, as system calls do, else "done"."""
    try:
        result = action(*args)
    except OSError:
        return "refused"
    return "refused" if isinstance(result, int) and result < 0 else "done"


def read_etc():
    return _attempt(open, "/etc/passwd")


def read_file(path):
    return _attempt(open, path)


def write_file(path):
    return _attempt(open, path, "a")


def empty_file(path):
    outcomes = {_attempt(os.truncate, path, 0), _attempt(os.open, path, os.O_RDONLY | os.O_TRUNC)}
    return "refused" if outcomes == {"refused"} else "done"


def make_file(folder):
    return _attempt(open, folder + "/made-by-a-program", "w")


def open_socket():
    outcomes = {_attempt(socket.socket, family) for family in (socket.AF_INET, socket.AF_UNIX)}
    return "refused" if outcomes == {"refused"} else "done"


def start_process():
    pid = -1
    try:
        pid = os.fork()
    except OSError:
        return "refused"
    if pid == 0:
        os._exit(0)
    return "done"


def replace_itself():
    return _attempt(os.execv, "/bin/true", ["true"])


def signal_parent():
    return _attempt(os.kill, os.getppid(), 0)


def trace_parent():
    return _attempt(_libc.ptrace, 16, os.getppid(), 0, 0)


def read_memory_of_parent():
    return _attempt(open, f"/proc/{os.getppid()}/mem", "rb")


def be_root():
    return "done" if os.getuid() == 0 else "refused"


def see_environment():
    names = [name for name in os.environ if name not in ("LC_CTYPE",)]
    return "done" if names or (_attempt(open, "/proc/self/environ") == "done" and _environ_has_content()) else "refused"


def _environ_has_content():
    with open("/proc/self/environ", "rb") as file:
        return b"SECRET" in file.read()


def use_memory(megabytes):
    return len(bytearray(megabytes << 20))


def use_time():
    while True:
        pass


def use_library():
    """Imports C extension modules and a rare module. Not an attempt: this must work."""
    import csv
    import unicodedata
    import zlib

    return unicodedata.name("a") + csv.QUOTE_ALL.__class__.__name__ + zlib.decompress(zlib.compress(b"!")).decode()

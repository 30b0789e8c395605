"""Attempts what a program must not be able to do here.

`judge/isolation.py` runs this file in the sandbox, with the tests `assert attempt(...) == "refused"`: the return codes
of the protections alone prove nothing, attempts do.
"""

import ctypes
import os
import socket

_libc = ctypes.CDLL(None, use_errno=True)


def _look_around(_):
    if set(os.environ) - {"LC_CTYPE"}:
        return 0
    with open("/proc/self/environ", "rb") as file:
        return 0 if b"SECRET" in file.read() else -1


# By name, the ways to do it: functions of the path of a file of the trainer.
ATTEMPTS: dict[str, list] = {
    "read a file of the system": [lambda _: os.open("/etc/passwd", os.O_RDONLY)],
    "read a file of yours": [lambda path: os.open(path, os.O_RDONLY)],
    "write to a file of yours": [lambda path: os.open(path, os.O_WRONLY)],
    "empty a file of yours": [lambda path: os.truncate(path, 0), lambda path: os.open(path, os.O_RDONLY | os.O_TRUNC)],
    "make a file": [lambda path: os.open(path + "-made-by-a-program", os.O_WRONLY | os.O_CREAT)],
    "open a socket": [lambda _: socket.socket(socket.AF_INET), lambda _: socket.socket(socket.AF_UNIX)],
    "start a process": [lambda _: os.fork() or os._exit(0)],
    "replace itself with another program": [lambda _: os.execv("/bin/true", ["true"])],
    "signal its parent": [lambda _: os.kill(os.getppid(), 0)],
    "trace its parent": [lambda _: _libc.ptrace(16, os.getppid(), 0, 0)],
    "read its parent's memory": [lambda _: os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY)],
    "see the environment": [_look_around],
    "be root": [lambda _: -os.getuid()],
}


def attempt(what, path):
    """Returns "refused" if every way raises OSError or returns a negative number, as system calls do, else "done"."""
    return "refused" if all(_is_refused(way, path) for way in ATTEMPTS[what]) else "done"


def _is_refused(way, path):
    try:
        result = way(path)
    except OSError:
        return True
    return isinstance(result, int) and result < 0


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

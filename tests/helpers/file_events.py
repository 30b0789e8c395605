"""The changes that a process makes to the files of a run, by name, and its death just before one of them.

    watch(journal="events.txt")              # a line per change, such as: os.rename runs/tiny/stage1/step_1
    watch(kill_before=r"os.rename .*/step_1")

A path is relative to the current folder, in which it must be, and that of a folder which waits for the Hub lacks its
moment. A rename or a link is named by what it makes. Imports nothing heavy, since push.py is watched, too.
"""

import os
import re
import signal
import sys

NAMED_BY_TARGET = ("os.rename", "os.link", "os.symlink")
NAMED_BY_PATH = ("open", "os.mkdir", "os.remove", "os.rmdir")


def watch(journal: str = "", kill_before: str = "") -> None:
    """Writes the changes of this process to a file; SIGKILL comes before the first that matches `kill_before`."""
    output = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if journal else None

    def note(event: str, arguments: tuple) -> None:
        if event not in NAMED_BY_TARGET + NAMED_BY_PATH:
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        path = arguments[event in NAMED_BY_TARGET]
        if not isinstance(path, str | os.PathLike):
            return
        if event in ("os.remove", "os.rmdir") and arguments[1] != -1:  # by shutil.rmtree, in an open folder
            path = os.path.join(os.readlink(f"/proc/self/fd/{arguments[1]}"), path)
        path = re.sub(r"~[0-9]+", "~", os.path.relpath(path))
        if path.startswith(".."):
            return
        if kill_before and re.fullmatch(kill_before, f"{event} {path}"):
            os.kill(os.getpid(), signal.SIGKILL)
        if output is not None:
            os.write(output, f"{event} {path}\n".encode())

    sys.addaudithook(note)

"""Trained weights that wait in a run until the Hub has them, so that a Hub that fails costs nothing.

    RUN/to_hub/stage1-step_200/   what is to become this revision: links to the files of a checkpoint, and its card
    RUN/to_hub/push.log           what the pushing process has said

Each folder has a file `.repo`, which is not pushed: the repository that it waits for.

Training puts folders here and goes on; a process of its own, `push.py RUN`, empties the outbox, oldest first. Whatever
is left, after an error, a kill or a full disk, is pushed when the run is resumed, or by the same command.
"""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from lib.core.config import HubSettings
from lib.core.errors import ConfigError
from lib.core.interrupts import current
from lib.run.directory import CARD
from lib.run.hub import BESIDE, MAIN, WEIGHTS, push

OUTBOX = "to_hub"
LOG = "push.log"
LOCK = ".lock"
REPO = ".repo"
PUSH = Path(__file__).parents[2] / "push.py"
FOLDER = re.compile(r"(?:^|/)(stage\d+)/(step_\d+)$")
BEAT_SECONDS = 0.2


def revision_of(folder: Path) -> str:
    """Returns the revision of a folder of weights: stage1-step_200 for a checkpoint, main for anything else."""
    found = FOLDER.search(folder.as_posix())
    return f"{found[1]}-{found[2]}" if found else MAIN


def put(folder: Path, outbox: Path, to: HubSettings, revision: str) -> Path:
    """Puts the weights of a folder into an outbox, in the place of older ones of this revision. Raises OSError.

    Files are linked: they stay when the run deletes an old checkpoint. The card names them as the Hub will.
    """
    final, part = outbox / revision, outbox / f"{revision}.tmp"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.name != CARD and any(fnmatch(file.name, each) for each in (*WEIGHTS, *BESIDE)):
            _link(file, part / file.name)
    if (folder / CARD).is_file():
        text = (folder / CARD).read_text(encoding="utf-8")
        (part / CARD).write_text(_as_on_the_hub(text, folder, to.repo_id, revision), encoding="utf-8")
    (part / REPO).write_text(to.repo_id, encoding="utf-8")
    shutil.rmtree(final, ignore_errors=True)
    os.replace(part, final)
    return final


def waiting(outbox: Path) -> list[Path]:
    """Returns what is to be pushed, oldest first."""
    found = []
    for folder in outbox.glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another process has pushed it since
            if folder.is_dir() and folder.suffix != ".tmp":
                found.append((folder.stat().st_mtime_ns, folder.name, folder))
    return [folder for *_, folder in sorted(found)]


def push_all(outbox: Path, to: HubSettings, say: Callable[[str], None]) -> None:
    """Pushes what is in an outbox until nothing is; what was pushed is removed. One process at a time does it.

    Raises ConfigError where the Hub refuses or cannot be reached, or where all that is left is for another repository;
    what is left waits.
    """
    with _locked(outbox):
        while folders := waiting(outbox):
            folder = next((each for each in folders if _repo_of(each) in (None, to.repo_id)), None)
            if folder is None:
                raise ConfigError(
                    f"{folders[0]}: waits for {_repo_of(folders[0])}, not for {to.repo_id}; push it first: python "
                    f"push.py {outbox.parent} --to {_repo_of(folders[0])}, or delete the folder"
                )
            inode = _inode(folder)
            try:
                commit = push(folder, to, folder.name)
            except ConfigError:
                if _inode(folder) == inode:
                    raise
                continue  # newer weights of this revision came meanwhile
            if _inode(folder) == inode:
                shutil.rmtree(folder)
            say(f"pushed {to.repo_id}@{folder.name} ({commit[:12]})")


class Publisher:
    """Pushes the weights of one run while it trains, in a process of its own; does nothing without `to`.

    Nothing of it can stop the run: what fails is one warning, with the command that completes it.
    """

    def __init__(self, run: Path, to: HubSettings | None, say: Callable[[str], None], warn: Callable[[str], None]):
        self._outbox, self._run, self._to, self._say, self._warn = run / OUTBOX, run, to, say, warn
        self._process: subprocess.Popen | None = None
        self._has_warned = False

    def checkpoint(self, folder: Path) -> None:
        """Publishes a checkpoint as a revision of its own, if the config wants it and it has been trained."""
        if self._to and self._to.checkpoints and folder.name != "step_0":
            self.result(folder)

    def result(self, folder: Path) -> None:
        """Publishes a folder of weights."""
        if self._to is None:
            return
        try:
            put(folder, self._outbox, self._to, revision_of(folder))
        except OSError as error:
            self._tell(f"{folder} could not be put into {self._outbox} ({error})", f"{folder} --to {self._to.repo_id}")
        self.start()

    def start(self) -> None:
        """Starts the process that pushes, if something waits and none is at work; reports one that has failed."""
        if self._to is None or self._is_at_work() or not waiting(self._outbox):
            return
        from lib.run.distributed import without_launcher  # which imports torch; push.py does without

        command = [sys.executable, str(PUSH), str(self._run), "--to", self._to.repo_id]
        command += [] if self._to.private else ["--public"]
        try:
            with open(self._outbox / LOG, "a", encoding="utf-8") as output:
                alone = without_launcher(os.environ) | {"HF_HUB_DISABLE_PROGRESS_BARS": "1"}
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=alone
                )
        except OSError as error:
            self._tell(f"nothing can be pushed ({error})", str(self._run))

    def close(self) -> None:
        """Waits until everything is pushed, or has failed, or a signal comes.

        Call it at the end of a run; an interrupted run does not.
        """
        if self._to is None:
            return
        self.start()  # for what came while the last process was about to end
        if self._is_at_work():
            self._say(f"pushing to {self._to.repo_id}: {', '.join(each.name for each in waiting(self._outbox))}")
        is_anothers = self._process is None
        is_done = self._has_ended()
        if is_done and is_anothers:
            self.start()  # for what it has left
            is_done = self._has_ended()
        if not is_done:
            self._say(f"not all of it is pushed yet; for what will be missing: python push.py {self._run}")
        elif not self._has_warned and not waiting(self._outbox):
            self._say(f"pushed to {self._to.repo_id}")

    def _has_ended(self) -> bool:
        """Waits until no process is at work, which it returns, or a signal has come."""
        while self._is_at_work():
            if (interrupts := current()) and interrupts.received:
                return False
            time.sleep(BEAT_SECONDS)
        return True

    def _is_at_work(self) -> bool:
        """Tells whether the process runs, or that of an earlier start; warns of one that has failed."""
        if self._process is None:
            return _is_locked(self._outbox)
        code = self._process.poll()
        if code is None:
            return True
        self._process = None
        if code and waiting(self._outbox):
            lines = (self._outbox / LOG).read_text(encoding="utf-8", errors="replace").strip().splitlines()
            self._tell((lines or [f"exit code {code}"])[-1].removeprefix("error: "), str(self._run))
        return False

    def _tell(self, what: str, arguments: str) -> None:
        if not self._has_warned:
            self._warn(f"hub: {what}. Training goes on; to push what is missing: python push.py {arguments}")
        self._has_warned = True


@contextlib.contextmanager
def _locked(outbox: Path) -> Iterator[None]:
    outbox.mkdir(parents=True, exist_ok=True)
    file = os.open(outbox / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise ConfigError(
            f"{outbox}: another process is pushing it; wait for it, and look at {outbox / LOG}"
        ) from error
    finally:
        os.close(file)


def _is_locked(outbox: Path) -> bool:
    """Tells whether a process is pushing an outbox."""
    with contextlib.suppress(FileNotFoundError), open(outbox / LOCK, encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _repo_of(folder: Path) -> str | None:
    """Returns the repository that a folder waits for; None where an older version has put it there."""
    with contextlib.suppress(FileNotFoundError):
        return (folder / REPO).read_text(encoding="utf-8")
    return None


def _inode(folder: Path) -> int | None:
    with contextlib.suppress(FileNotFoundError):
        return folder.stat().st_ino
    return None


def _link(file: Path, to: Path) -> None:
    try:
        os.link(file.resolve(), to)
    except OSError:  # a file system without links, or another one
        shutil.copyfile(file, to)


def _as_on_the_hub(card: str, folder: Path, repo: str, revision: str) -> str:
    """Returns a card in which commands and code name the weights as the Hub does, not by their folder here."""
    pinned = "" if revision == MAIN else f', revision="{revision}"'
    for place in {str(folder), os.path.relpath(folder), os.path.relpath(folder.resolve())}:
        card = card.replace(f'"{place}"', f'"{repo}"{pinned}')
        card = re.sub(rf"(adapter[ =]){re.escape(place)}(?![\w/])", rf"\g<1>{repo}@{revision}", card)
    return card

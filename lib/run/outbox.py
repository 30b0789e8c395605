"""Trained weights that wait in a run until the Hub has them, so that a Hub that fails costs nothing.

    RUN/to_hub/stage1-step_200~<time>/   what is to become this revision: links to a checkpoint's files, and its card
    RUN/to_hub/push.log                  output of the pushing process

Each folder has a file `.repo`, which is not pushed: the repository that it waits for. A folder is never changed, and
only the pushing process removes it, so weights that arrive during a push are not lost.

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
from math import inf
from pathlib import Path

from lib.core.config import HubSettings
from lib.core.errors import ConfigError
from lib.core.interrupts import current
from lib.run.directory import CARD, position
from lib.run.hub import BESIDE, MAIN, WEIGHTS, push

OUTBOX = "to_hub"
LOG = "push.log"
LOCK = ".lock"
REPO = ".repo"
PUSHED = ".pushed"  # the ending of a folder that is being removed: a kill must not leave half of it waiting
PUSH = Path(__file__).parents[2] / "push.py"
BEAT_SECONDS = 0.2


def revision_of(folder: Path) -> str:
    """Returns the revision of a folder of weights: stage1-step_200 for a checkpoint, main for anything else."""
    stage, step = position(folder) or (0, inf)
    return f"stage{stage}-step_{step:.0f}" if step < inf else MAIN


def contents(folder: Path, repo: str, revision: str) -> dict[str, Path | bytes]:
    """Returns the files of a folder that go to the Hub, by name; the card names the weights as the Hub will."""
    files: dict[str, Path | bytes] = {
        file.name: file
        for file in sorted(folder.iterdir())
        if file.is_file() and any(fnmatch(file.name, pattern) for pattern in (*WEIGHTS, *BESIDE))
    }
    if CARD in files:
        files[CARD] = _as_on_the_hub((folder / CARD).read_text(encoding="utf-8"), folder, repo, revision).encode()
    return files


def put(folder: Path, outbox: Path, to: HubSettings, revision: str) -> Path:
    """Puts the weights of a folder into an outbox as the newest of this revision. Raises OSError.

    Files are linked: they stay when the run deletes an old checkpoint.
    """
    final = outbox / f"{revision}~{time.time_ns()}"
    part = final.with_name(f"{final.name}.tmp")
    for leftover in outbox.glob(f"{revision}~*.tmp"):  # others may be under way in another process
        shutil.rmtree(leftover, ignore_errors=True)
    part.mkdir(parents=True)
    for name, content in contents(folder, to.repo_id, revision).items():
        if isinstance(content, bytes):
            (part / name).write_bytes(content)
        else:
            _link(content, part / name)
    (part / REPO).write_text(to.repo_id, encoding="utf-8")
    os.replace(part, final)
    return final


def waiting(outbox: Path) -> list[Path]:
    """Returns the folders to push, oldest first."""
    folders = []
    for folder in outbox.glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another process has pushed it since
            if folder.is_dir() and folder.suffix not in (".tmp", PUSHED):
                folders.append((folder.stat().st_mtime_ns, folder.name, folder))
    return [folder for *_, folder in sorted(folders)]


def name_of(folder: Path) -> str:
    """Returns the revision that a folder of an outbox is to become."""
    return folder.name.partition("~")[0]


def push_all(outbox: Path, to: HubSettings, say: Callable[[str], None]) -> None:
    """Pushes what is in an outbox until nothing is; what was pushed is removed. Waits while another process does it.

    Raises ConfigError where the Hub refuses or cannot be reached, or where all that is left is for another repository;
    what is left waits.
    """
    with _locked(outbox):
        for leftover in outbox.glob(f"*{PUSHED}"):
            shutil.rmtree(leftover, ignore_errors=True)
        while folders := waiting(outbox):
            repos = [(folder / REPO).read_text(encoding="utf-8") for folder in folders]
            mine = [folder for folder, repo in zip(folders, repos, strict=True) if repo == to.repo_id]
            if not mine:
                raise ConfigError(
                    f"{outbox}: {name_of(folders[0])} waits for {repos[0]}, not for {to.repo_id}; push it "
                    f"first: python push.py {outbox.parent} --to {repos[0]}, or delete {folders[0]}"
                )
            folder, revision = mine[0], name_of(mine[0])
            if revision not in map(name_of, mine[1:]):  # else newer weights of this revision wait, too
                commit = push(contents(folder, to.repo_id, revision), to, revision)
                say(f"pushed {to.repo_id}@{revision} ({commit[:12]})")
            shutil.rmtree(folder.rename(folder.with_name(folder.name + PUSHED)), ignore_errors=True)


class Publisher:
    """Pushes the weights of one run while it trains, in a process of its own; does nothing without `to`.

    It never stops the run: a failure is one warning, with the command that completes it.
    """

    def __init__(self, run: Path, to: HubSettings | None, say: Callable[[str], None], warn: Callable[[str], None]):
        self._outbox, self._run, self._to, self._say, self._warn = run / OUTBOX, run, to, say, warn
        self._process: subprocess.Popen | None = None
        self._has_warned = self._has_begun = False
        self._left_out: list[str] = []  # folders that could not be put into the outbox

    def checkpoint(self, folder: Path) -> None:
        """Publishes a checkpoint as a revision of its own, if it has been trained."""
        if folder.name != "step_0":
            self.result(folder)

    def result(self, folder: Path) -> None:
        """Publishes a folder of weights."""
        if self._to is None:
            return
        try:
            put(folder, self._outbox, self._to, revision_of(folder))
        except OSError as error:
            self._left_out.append(f"{folder} --to {self._to.repo_id}")
            self._tell(f"{folder} could not be put into {self._outbox} ({error})", self._left_out[-1])
        self.start()

    def start(self) -> None:
        """Starts the process that pushes, if something waits and none is at work; reports one that has failed."""
        if self._to is None or self._is_at_work() or not waiting(self._outbox):
            return
        from lib.run.distributed import without_launcher  # which imports torch; push.py does without

        command = [sys.executable, str(PUSH), str(self._run), "--to", self._to.repo_id]
        try:
            with open(self._outbox / LOG, "a", encoding="utf-8") as output:
                alone = without_launcher(os.environ) | {"HF_HUB_DISABLE_PROGRESS_BARS": "1"}
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=alone
                )
            self._has_begun = True
        except OSError as error:
            self._tell(f"nothing can be pushed ({error})", str(self._run))

    def close(self) -> None:
        """Waits until everything is pushed, or has failed, or a signal comes; says what is left, and how to push it."""
        if self._to is None:
            return
        if names := self._names():
            self._say(f"pushing to {self._to.repo_id}: {names}")
        interrupts = current()
        for _ in range(2):  # again for what was put here while the process was about to end
            if interrupts and interrupts.received:
                break
            self.start()
            while self._is_at_work() and not (interrupts and interrupts.received):
                time.sleep(BEAT_SECONDS)
        left = [*self._left_out, *([str(self._run)] if waiting(self._outbox) else [])]
        if left:
            commands = "; ".join(f"python push.py {arguments}" for arguments in left)
            self._say(f"not pushed yet: {', '.join(filter(None, [self._names(), *self._left_out]))}; later: {commands}")
        elif self._has_begun:
            self._say(f"pushed to {self._to.repo_id}")

    def _names(self) -> str:
        return ", ".join(dict.fromkeys(map(name_of, waiting(self._outbox))))

    def _is_at_work(self) -> bool:
        """True if the process of this start is pushing, or waits for that of an earlier one; warns if it failed."""
        if self._process is None or (code := self._process.poll()) is None:
            return self._process is not None
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
    with open(outbox / LOCK, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


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
        card = re.sub(rf"(adapter[ =]|export\.py ){re.escape(place)}(?![\w/])", rf"\g<1>{repo}@{revision}", card)
    return card

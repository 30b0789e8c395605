"""Runs of a script that are killed, or stopped, at any one of their moments, and what comes of them.

A moment is a write, a forward, an update or a wait of the main thread, from the run's opening on. It is named after
what is being done, and the stage: "train 1", "saving 2", "waiting in evaluation 1". `play(script, options, plan)`:

kill_at    the moment that gets the `signals`, SIGKILL unless told; ended.txt then names it
kill_in    the same by name and number, such as ["train 1", 5]
saved      the moments of checkpoints, from which a resumed run continues counting
full_from  the moment from which on no file may grow
read       the number of the reply of a server that is the last one to be read, before it is kept
kept       the number of the reply that is the last one to be written
pauses     steps before which the process stops until it gets SIGCONT; it leaves a file paused_at_<step>
restores   [stage, step] of each step behind which the run goes back to its best checkpoint
scores     by place, such as stage1/step_2: what an evaluation there counts when the best checkpoint is chosen
fallen     the places where attempt 1 counts as below its interval at the start
kill_before  the change of a file before which it gets SIGKILL, a pattern of names as of tests/helpers/file_events.py
events     a file for these names
journal    a file for the moments, and for those of checkpoints
synced     a file for the paths that were synced to the disk
weights    a file for the adapter at the end
"""

import importlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml

from engine.llama import Llama, StackedLlama
from helpers import file_events, forks
from helpers.ports import free_port
from lib.core.clock import PHASES
from lib.core.errors import run_script
from lib.generators.dialects import Dialect
from lib.generators.remote import Remote
from lib.play.gspo import GspoRun
from lib.rl import session
from lib.rl.score import ScoreRun
from lib.rl.session import Session
from lib.rl.watch import Watch
from lib.run import adapter_files
from lib.run.checkpoint import Checkpoints
from lib.run.manifest import MANIFEST, problems
from lib.run.runlog import Lines, read_jsonl

TIMES = {"time", "tokens_per_second", *(f"seconds_{name}" for name in PHASES)}


class Run:
    """A copy of a folder with all that a run needs, a config, and what comes of starting the script there.

    `secrets` are variables of its environment whose values it must never say.
    """

    def __init__(self, script: str, template: Path, folder: Path, config: dict, **secrets: str):
        self.script, self.secrets = script, secrets
        self.folder = shutil.copytree(template, folder, symlinks=True)
        self.dir = folder / config["output_dir"] / config["run_name"]
        (folder / "task.yaml").write_text(yaml.safe_dump(config))

    def launch(self, *options: str, output: str = "said.txt", environment: dict | None = None, **plan):
        """The script's process."""
        environment = {**os.environ, **self.secrets, **(environment or {})}
        where = {"cwd": self.folder, "output": self.folder / output, "environment": environment}
        return forks.call(play, self.script, options, plan, **where)

    def start(self, *options: str, code: int = 0, **plan) -> str:
        """What `python <script>.py --config task.yaml <options>` says, after it has ended with `code`."""
        return self.ended(self.launch(*options, **plan), code)

    def start_two(self, *options: str, code: int = 0, plans: tuple = ({}, {}), **plan) -> list[list[torch.Tensor]]:
        """The weights of two processes at their end, which are started as a launcher would; each has its own plan."""
        return self.start_several(*options, code=code, plans=plans, **plan)

    def start_several(self, *options: str, code: int = 0, plans: tuple, **plan) -> list[list[torch.Tensor]]:
        """The same of as many processes as there are plans."""
        for rank, process in enumerate(self.launch_several(*options, plans=plans, **plan)):
            self.ended(process, code, said_by(rank))
        return [self.weights(rank) for rank in range(len(plans))]

    def launch_several(self, *options: str, plans: tuple, **plan) -> list[multiprocessing.Process]:
        """The processes."""
        port, size = str(free_port()), str(len(plans))
        processes = []
        for rank, own in enumerate(plans):
            ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
            where = {"environment": {**ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}}
            where |= {"output": said_by(rank), "weights": f"weights{rank}.pt"}
            processes.append(self.launch(*options, **where, **plan, **own))
        return processes

    def ended(self, process: multiprocessing.Process, code: int = 0, output: str = "said.txt") -> str:
        """What it has said, with an end as it should be."""
        process.join(60)
        said, never = self.said(output), ("Traceback", "never retrieved", "was destroyed", *self.secrets.values())
        assert process.exitcode == code, said
        assert not [word for word in never if word in said], said
        return said

    def said(self, output: str = "said.txt") -> str:
        return (self.folder / output).read_text()

    def died(self) -> str:
        """What was being done at the moment of the kill."""
        return (self.folder / "ended.txt").read_text()

    def journal(self) -> tuple[dict[str, int], list[str]]:
        """The moment at which each checkpoint was complete, and what was being done at each moment."""
        return tuple(json.loads((self.folder / "journal.json").read_text()).values())

    def weights(self, rank: int = 0) -> list[torch.Tensor]:
        return torch.load(self.folder / f"weights{rank}.pt")

    def rows(self, stream: str = "metrics", run: str | None = None) -> list[dict]:
        rows, bad = read_jsonl(self.dir.with_name(run or self.dir.name) / f"{stream}.jsonl")
        assert bad == 0
        return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]

    def contents(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.dir.rglob("*") if path.is_file() and path.name != ".lock"}

    def result(self) -> dict[str, object]:
        """What must be equal to the last bit: every row but for times, other files that do not depend on these, links.

        Beside an adapter PEFT fixes the card that a full disk has cut.
        """
        files = {str(path.relative_to(self.dir)): data for path, data in self.contents().items()}
        left_out = (MANIFEST, "config.yaml", "stage1/README.md", ".torn", "replies.jsonl")
        files = {name: data for name, data in files.items() if not name.endswith(left_out) and ".aside/" not in name}
        checkpoints = {self.dir / name for name in map(os.path.dirname, files) if "step_" in name}
        assert checkpoints and not any(map(problems, checkpoints))
        result = {name: self.rows(name[:-6]) if name.endswith(".jsonl") else data for name, data in files.items()}
        for name in files:
            if name.endswith("adapter_config.json"):  # PEFT writes sets as lists, in the order of this process
                config = json.loads(files[name])
                result[name] = {key: sorted(v) if isinstance(v, list) else v for key, v in config.items()}
            elif name.endswith("README.md"):  # which has the config at its end
                result[name] = files[name].partition(b"## Config")[0]
        links = [path for path in self.dir.rglob("*") if path.is_symlink()]
        assert all(map(Path.is_dir, links))
        return result | {str(link.relative_to(self.dir)): os.readlink(link) for link in links}

    def same_as(self, straight: "Run", note: object = "") -> None:
        """Ended like the other one."""
        mine, theirs = self.result(), straight.result()
        for name in mine | theirs:
            assert mine.get(name) == theirs.get(name), (name, note)


def alike(
    kind: type[Run], template: Path, folder: Path, options: tuple[str, ...], several=(), **settings
) -> tuple[Run, ...]:
    """Runs of one, two and four processes, with further options where there are `several`.

    The weights at their end are equal to 1e-6, and all rows but for rounding.
    """
    one, *others = (kind(template, folder / str(number), **settings) for number in (1, 2, 4))
    one.start(*options, weights="weights0.pt")
    for run, number in zip(others, (2, 4), strict=True):
        for weights in run.start_several(*options, *several, plans=({},) * number):
            for mine, theirs in zip(one.weights(), weights, strict=True):
                assert torch.allclose(mine, theirs, rtol=0, atol=1e-6)
        for stream in ("metrics", "evaluations"):
            assert run.rows(stream) == [near(row) for row in one.rows(stream)]
    return one, *others


def near(value: object) -> object:
    """A row that is equal but for the order in which numbers were added."""
    if isinstance(value, dict):
        return {key: near(each) for key, each in value.items()}
    return pytest.approx(value, rel=1e-5, abs=1e-6) if isinstance(value, float) else value


def flip(path: Path, position: float = 0.5) -> None:
    """Changes one bit of a file."""
    data = bytearray(path.read_bytes())
    data[int(position * (len(data) - 1))] ^= 4
    path.write_bytes(data)


def said_by(rank: int) -> str:
    """The file of what a process says."""
    return f"said{rank or ''}.txt"


def play(script: str, options: tuple[str, ...], plan: dict) -> None:
    """What `python <script>.py --config task.yaml <options>` does, but for the plan."""
    torch.set_num_threads(1)
    sys.argv = [f"{script}.py", "--config", "task.yaml", *options]
    moments = Moments(plan)
    file_events.watch(journal=plan.get("events", ""), kill_before=plan.get("kill_before", ""))
    try:
        run_script(importlib.import_module(script).main)
    finally:
        if "journal" in plan:
            Path(plan["journal"]).write_text(json.dumps({"saved": moments.saved, "moments": moments.all}))
        if "synced" in plan:
            Path(plan["synced"]).write_text(json.dumps(moments.synced))
        if "weights" in plan and moments.run:
            torch.save([parameter.detach() for parameter in moments.run.policy.trainable], plan["weights"])


class Moments:
    """Counts what a run does; at the planned moment it is over."""

    def __init__(self, plan: dict):
        self.plan, self.run, self.resumed, self.first, self.replies = plan, None, None, 0, Counter()
        self.doing: list[str] = []
        self.all: list[str] = []  # what was being done
        self.saved: dict[str, int] = {}  # checkpoint -> moment at which it was complete
        # slow, and of no effect on what others see after a kill; while it trains, a resumed run has more of them
        self.synced: list[str] = []
        os.fsync = self._sync
        for owner, name in (
            (os, "replace"), (os, "unlink"), (os, "write"), (torch, "save"), (adapter_files, "save_file"),
            (Llama, "__call__"), (StackedLlama, "__call__"), (torch.optim.AdamW, "step"),
            (Remote, "ask"), (Remote, "answers"),
        ):  # fmt: skip
            setattr(owner, name, _both(self._count, getattr(owner, name)))
        for kind, name in ((ScoreRun, "sample"), (GspoRun, "play")):
            kind.open = _both(self._watch, kind.open)
            setattr(kind, name, _both(self._opened, _both(self._pause, getattr(kind, name))))
        Session.evaluate = _both(self._opened, self._during("evaluation", Session.evaluate))
        Session.when_due = _both(self._restore, Session.when_due)
        if "scores" in plan:
            session.score_of = lambda row: plan["scores"][f"stage{row['stage']}/step_{row['step']}"]
        if "fallen" in plan:
            Watch.keeps_attempt1 = lambda _, row: f"stage{row['stage']}/step_{row['step']}" not in plan["fallen"]
        Remote.answers = self._during("waiting", Remote.answers)
        Checkpoints.save = self._during("saving", Checkpoints.save, self._was_saved)
        Checkpoints.resume = self._during("resume", Checkpoints.resume, self._was_resumed)
        Dialect.read = self._reply("read", Dialect.read)
        kept, append = self._reply("kept", Lines.append), Lines.append
        Lines.append = lambda lines, line: (kept if "replies" in lines.path.name else append)(lines, line)

    def _sync(self, descriptor: int) -> None:
        self.synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        if "saving" in self.doing:
            self._count()

    def _watch(self, run: ScoreRun | GspoRun) -> None:
        self.run = run
        self.doing.append("opening")

    def _opened(self, *_: object) -> None:
        if self.doing == ["opening"]:
            self.doing.clear()
            if self.resumed in self.plan.get("saved", ()):
                self.all.clear()
                self.first = self.plan["saved"][self.resumed]

    def _pause(self, run: ScoreRun | GspoRun, *_: object) -> None:
        if run.progress.step in self.plan.get("pauses", ()):
            Path(f"paused_at_{run.progress.step}").touch()
            os.kill(os.getpid(), signal.SIGSTOP)

    def _restore(self, run: Session) -> None:
        if [run.progress.stage, run.progress.step] in self.plan.get("restores", ()):
            run.restore_best()

    def _count(self, *_: object, **__: object) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if self.run is None or not is_main or "resume" in self.doing:
            return
        now = self.first + len(self.all)
        self.all.append(f"{' in '.join(reversed(self.doing)) or 'train'} {min(self.run.progress.stage, 2)}")
        if now >= self.plan.get("full_from", sys.maxsize):
            resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        is_named = self.plan.get("kill_in") == [self.all[-1], self.all.count(self.all[-1])]
        if is_named or now >= self.plan.get("kill_at", sys.maxsize):
            self.plan.pop("kill_at", None)
            self._end(self.all[-1])

    def _end(self, where: str) -> None:
        Path("ended.txt").write_text(where)
        for number in self.plan.get("signals", [signal.SIGKILL]):
            os.kill(os.getpid(), number)

    def _during(self, what: str, real: Callable, then: Callable = lambda returned: None) -> Callable:
        def call(*arguments):
            self.doing.append(what)
            returned = real(*arguments)
            self.doing.pop()
            then(returned)
            return returned

        return call

    def _was_saved(self, path: Path) -> None:
        self.saved["/".join(path.parts[-2:])] = self.first + len(self.all)

    def _was_resumed(self, path: Path | None) -> None:
        self.resumed = path and "/".join(path.parts[-2:])

    def _reply(self, what: str, real: Callable) -> Callable:
        def call(*arguments):
            returned = real(*arguments)
            self.replies[what] += 1
            if self.replies[what] == self.plan.get(what):
                self._end(what)
            return returned

        return call


def _both(first: Callable, real: Callable) -> Callable:
    def call(*arguments, **options):
        first(*arguments, **options)
        return real(*arguments, **options)

    return call

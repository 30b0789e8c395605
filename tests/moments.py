"""The moments of a self-play run, so that it can be killed, or stopped, at any one of them: `play(options, plan)`.

kill_at   the moment of SIGKILL: the main thread's writes, forwards, updates and waits are counted from the opening
          evaluation on, and by a resumed run from the moment of its checkpoint, which `saved` tells
read      the number of the reply of a server that is the last one to be read, before it is kept
kept      the number of the reply that is the last one to be written
pauses    steps before which the process stops until it gets SIGCONT; it leaves a file paused_at_<step>
play_all  every process plays the whole batch, with one seed, and keeps its share
journal   a file for the moments, and for those of checkpoints
weights   a file for the adapter at the end
"""

import json
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path

import torch


def play(options: tuple[str, ...], plan: dict) -> None:
    """What `python rl_train_gspo_selfplay.py --config task.yaml options` does, but for the plan."""
    import rl_train_gspo_selfplay
    from lib.errors import run_script

    torch.set_num_threads(1)
    sys.argv = ["rl_train_gspo_selfplay.py", "--config", "task.yaml", *options]
    moments = Moments(plan)
    try:
        run_script(rl_train_gspo_selfplay.main)
    finally:
        if "journal" in plan:
            Path(plan["journal"]).write_text(json.dumps({"saved": moments.saved, "moments": moments.all}))
        if "weights" in plan:
            torch.save([parameter.detach() for parameter in moments.run._bare_policy().trainable], plan["weights"])


class Moments:
    """Counts what a run does; at the planned moment it is over, and ended.txt tells what it was doing."""

    def __init__(self, plan: dict):
        from lib.checkpoint import Checkpoints
        from lib.generators.openai import RemoteModel
        from lib.gspo import GspoRun
        from lib.llama import Llama, Merged
        from lib.remote import Remote
        from lib.runlog import Lines

        self.plan, self.run, self.first, self.replies = plan, None, 0, Counter()
        self.all: list[str] = []  # what was being done
        self.saved: dict[str, int] = {}  # checkpoint -> moment at which it was complete
        self.doing = ["train"]
        os.fsync = lambda _: None  # slow, and of no effect on what others see after a kill
        for owner, name in (
            (os, "replace"), (os, "write"), (torch, "save"), (torch.optim.AdamW, "step"), (Llama, "__call__"),
            (Merged, "__call__"), (Remote, "ask"), (Remote, "answers"),
        ):  # fmt: skip
            setattr(owner, name, self._counted(getattr(owner, name)))
        Remote.answers = self._during("waiting", Remote.answers)
        GspoRun.evaluate = self._during("evaluation", GspoRun.evaluate)
        Checkpoints.save = self._during("saving", Checkpoints.save)
        Checkpoints.resume = self._resumed(Checkpoints.resume)
        GspoRun.play = self._pausing(_play_all if "play_all" in plan else GspoRun.play)
        GspoRun.open = self._watched(GspoRun.open)
        RemoteModel._read_chat, Lines.append = self._reply("read", RemoteModel._read_chat), self._append(Lines.append)

    def _watched(self, real):
        def call(run):
            self.run = run
            return real(run)

        return call

    def _counted(self, real):
        def call(*arguments, **options):
            is_main = threading.current_thread() is threading.main_thread()
            if is_main and self.run is not None and self.doing[-1] != "resume":
                self.all.append(self.doing[-1])
                if self.first + len(self.all) > self.plan.get("kill_at", sys.maxsize):
                    die(" in ".join(reversed(self.doing[1:])) or "train")
            return real(*arguments, **options)

        return call

    def _during(self, what: str, real):
        def call(*arguments):
            self.doing.append(what)
            returned = real(*arguments)
            self.doing.pop()
            if what == "saving":
                self.saved[str(returned)] = self.first + len(self.all)
            return returned

        return call

    def _resumed(self, real):
        def call(checkpoints):
            self.doing.append("resume")
            path = real(checkpoints)
            self.doing.pop()
            self.all.clear()
            self.first = self.plan.get("saved", {}).get(str(path), 0)
            return path

        return call

    def _pausing(self, real):
        def call(run):
            if run.progress.step in self.plan.get("pauses", ()):
                Path(f"paused_at_{run.progress.step}").touch()
                os.kill(os.getpid(), signal.SIGSTOP)
            return real(run)

        return call

    def _reply(self, what: str, real):
        def call(*arguments):
            returned = real(*arguments)
            self.replies[what] += 1
            if self.replies[what] == self.plan.get(what):
                die(what)
            return returned

        return call

    def _append(self, real):
        counted = self._reply("kept", real)
        return lambda lines, line: (counted if "replies" in lines.path.name else real)(lines, line)


def die(where: str) -> None:
    Path("ended.txt").write_text(where)
    os.kill(os.getpid(), signal.SIGKILL)


def _play_all(run):
    """Stands for GspoRun.play."""
    from lib.distributed import share

    run.clock.start()
    asked = [run._asked(i, run.task.train[i]) for i in run.sampler.take(run.config.train.batch_size)]
    generator = torch.Generator().manual_seed(5)
    played = run._games(asked, run.config.train.group_size, run._limits(1.0), generator, run.progress.step)
    mine = share(played, run.accelerator)
    run._book(mine)
    return mine

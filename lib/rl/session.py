"""A run around its algorithm: opens the run directory, resumes, evaluates, logs, watches, saves and leaves."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate.utils import set_seed

from lib.core.children import Children
from lib.core.clock import Clock
from lib.core.config import Eval, command_after, dump
from lib.core.console import ProgressPrinter, Screen, answered, attempts_of, format_trouble, with_best
from lib.core.errors import ApiError, ConfigError, Left, NumericError, RewardError, SandboxError, StorageError
from lib.core.interrupts import LAUNCHER_SECONDS, Interrupts
from lib.rl.checks import CHECKS, EQUAL_REWARDS
from lib.rl.credit import Credit
from lib.rl.curriculum import temperature_at
from lib.rl.log_rows import brief
from lib.rl.plan import HeldOut, Remaining, Stage, Work, work_left, work_line
from lib.rl.step import OptimizerStep, Progress
from lib.rl.task import Task
from lib.rl.watch import COLLAPSE, Alarm, Watch
from lib.run import fingerprints
from lib.run.adapter_files import load_adapter
from lib.run.checkpoint import Checkpoints, random_states, set_random_states
from lib.run.directory import TRIAL, place_of
from lib.run.distributed import collect, interrupted, make_accelerator, without_launcher
from lib.run.manifest import is_whole
from lib.run.model_card import trained_in, write_card
from lib.run.outbox import Publisher
from lib.run.runlog import STREAMS, RunLog, read_jsonl
from lib.run.tracking import Tracker
from lib.text.data import digest_of

# after an optimizer step: trees, their credit, and a row of metrics.jsonl, to which a hook adds numbers
Hook = Callable[[list[Any], Credit, dict[str, Any]], None]
OVER = 3  # the stage of a run that is finished
ENGINE_FOLDER = "engine"  # in the run directory; its log is next to it
COMMAND_TICK = 0.1  # seconds between two looks at train.after_checkpoint
SAMPLED = ("sampler", "sampling", "scoreboard")  # the states of a run that sampling changes
FROM_OUTSIDE = (Left, RewardError, ApiError, SandboxError)  # what may end a step while it samples, not while it learns
RESTORES = 3  # per stage; if the policy breaks at an eighth of its learning rate, the rate is not the cause


class Moment(NamedTuple):
    """The state between two steps, but for weights and what else sampling leaves alone."""

    states: dict[str, Any]  # by the names of SAMPLED
    drawn: dict[str, Any]  # of the global generators
    offsets: dict[str, int]  # of the logs


def score_of(evaluation: dict) -> float:
    """Returns the score that selects the best checkpoint: accuracy, of the last attempt if there are several.

    Measured on the questions reserved for selection; on the reported ones only if the run has no others.
    """
    measured = evaluation["selection"] or evaluation
    attempts = attempts_of(measured)
    return measured[f"acc_attempt{attempts[-1]}"] if attempts else measured["acc"]


class Session:
    """A run around its algorithm: run directory, progress, optimizer, clock, screen, signals, evaluations, saving.

    The algorithm owns it, and gives it `stages` and `measure(when, settings, rows, on_progress, **how)`, which answers
    held-out rows and returns their row of evaluations.jsonl, or with `part` the numbers that training selects by.
    `in_place`: `adapter` is of an earlier stage of the run in this directory, whose rows go on.
    """

    def __init__(
        self, task: Task, stages: list[Stage], measure: Callable[..., dict], *,
        adapter: Path | None = None, in_place: bool = False, resume: bool | Path = False, allow_change: bool = False,
    ):  # fmt: skip
        if adapter:
            load_adapter(task.policy.model, adapter, task.config.model.name)
        self.task, self.stages = task, stages
        self.config: Any = task.config
        config, self.policy = self.config, task.policy
        self.accelerator = accelerator = make_accelerator()
        self.screen = Screen(accelerator.is_main_process)
        # wrapped to sum gradients over processes
        wrapped = self.policy if self.policy.is_sharded else accelerator.prepare(self.policy)
        self.progress = Progress(
            due="adapter" if adapter else "pretrain", micro_batch_tokens=config.train.micro_batch_tokens
        )
        pad_id = task.tokenizer.pad_token_id
        self.step = OptimizerStep(config, self.policy, wrapped, accelerator, self.progress, pad_id, self.screen.warn)
        # a share of easy prompts that falls takes the accuracy in training with it; held-out accuracy is watched, too
        checks = [check for check in CHECKS if "acc" not in check.keys or not config.curriculum.easy_pool]
        self.watch = Watch(checks)
        self._collapse: Alarm | None = None  # the first that is not acted on yet
        self.clock = Clock()
        self.steps_done = 0  # since this process began
        self.held_out = HeldOut(len(task.test), len(task.selection))
        self.generator = torch.Generator(accelerator.device)
        self.generator.manual_seed(config.seed)  # everywhere the same, see `lib.rl.tree.sample`
        set_seed(config.seed, device_specific=True)  # for a reward that draws from the global generators
        self.tracker = Tracker(config, bool(resume) or in_place, self.screen.warn, accelerator.is_main_process)
        hub = config.hub if accelerator.is_main_process else None
        self.publisher = Publisher(config.run_dir, hub, self.screen.say, self.screen.warn)
        self._measure, self._resume, self._allow_change = measure, resume, allow_change
        self._in_place = in_place
        self._last_texts: list[dict] = []  # the last rows of generations.jsonl
        self._is_evaluating = False
        self._before: Moment | None = None  # from before the step that is being sampled; None at the first of a start
        self.log: RunLog
        self.signals: Interrupts
        self.checkpoints: Checkpoints
        for note in (*task.notes, trained_in(self.policy.model)):
            self.screen.say(str(note))

    @contextlib.contextmanager
    def open(
        self, work: Callable[[Remaining, HeldOut], Iterable[Work]], streams: Iterable[str] = STREAMS, **moving: object
    ) -> Iterator["Session"]:
        """Opens and locks the run directory, restores its state if `--resume` finds one, and catches signals.

        `work` estimates what is left to sample; `moving` are further states of the algorithm to save and restore.
        """
        config, several = self.config, self.accelerator.num_processes > 1
        with (
            RunLog(
                config.run_dir,
                bool(self._resume) or self._in_place,
                self.accelerator.is_main_process,
                streams,
                limits={"generations": config.tracking.max_generations_mb * 2**20},
            ) as self.log,
            Interrupts(patience=LAUNCHER_SECONDS if several else 0.0) as self.signals,
            self.tracker,
            contextlib.closing(self.publisher),
            self.task.engine.open(config.run_dir / ENGINE_FOLDER),
        ):
            self.signals.where = self.where
            inputs = fingerprints.of_model(config.model.name, self.policy.language_model, self.task.tokenizer)
            inputs[fingerprints.REWARD] = fingerprints.of_code(self.task.judge.functions)
            self.checkpoints = Checkpoints(
                config.run_dir, self.accelerator, self.policy.model, self.step.optimizer, self.log,
                dataset=self.task.splits.fingerprint, inputs=inputs, keep=config.train.keep_checkpoints,
                allow_change=self._allow_change, any_number=True, write_extra=self._write_card,
                saved=self.publisher.checkpoint,
            )  # fmt: skip
            self.checkpoints.register(progress=self.progress, watch=self.watch, sampling=self.generator, **moving)
            path = None
            if self._resume:
                path = self.checkpoints.resume(self._resume if isinstance(self._resume, Path) else None)
                if path and self.progress.stage == OVER:
                    self._refuse_other_steps(path)
                self.screen.say(f"resumed from {path}" if path else "nothing to resume from: starting")
                tokens = min(self.progress.micro_batch_tokens, config.train.micro_batch_tokens)
                self.progress.micro_batch_tokens = tokens  # it may have been lowered since, because memory ran out
                for stage in self.stages if self.accelerator.is_main_process else ():
                    if stage.number < self.progress.stage:
                        self.checkpoints.restore_result(stage.number, stage.steps, self._save_rest)
                        if path and place_of(path)[0] == stage.number:  # a kill may have kept it from the outbox
                            self.publisher.result(path.parent)
            elif self._in_place:
                self.checkpoints.take_over_logs(self.progress.stage)
            else:
                self.log.rewind({})
            # else the first checkpoint writes it
            self.log.write_config(dump(config), now=self._in_place or path is not None)
            if self._in_place:
                self.checkpoints.save(self.progress.stage, self.progress.step)  # from here on --resume continues it
            self._begin_step()
            if (left := self.work_left()).stages:
                self.screen.say(work_line(work(left, self.held_out), "left" if path else "planned"))
            self.publisher.start()  # for what an earlier start could not push
            self.started = time.monotonic()
            try:
                yield self
            except FROM_OUTSIDE as error:
                is_saved = self._is_evaluating or self._save_before(error)
                if isinstance(error, Left):
                    error.exit_code = self.signals.exit_code
                    if not is_saved:
                        self.screen.say(
                            f"{self.where()} is left, since its reward does not answer; continue with --resume"
                        )
                if not isinstance(error, RewardError):
                    raise
                rank = self.accelerator.process_index
                raise error.located(
                    config.run_dir, f"{self.where()}: ", "; fix it, then --resume from the last checkpoint", rank
                ) from error
            self.accelerator.end_training()

    def _refuse_other_steps(self, last: Path) -> None:
        """Raises ConfigError if a finished run, whose last checkpoint this is, had other steps in its last stage."""
        stage, steps = place_of(last)
        if steps != (planned := {stage.number: stage.steps for stage in self.stages}.get(stage, 0)):
            raise ConfigError(
                f"{last.parent}: this run is finished, after {steps} steps of its last stage, not {planned}: restore "
                "the number of steps it had, or start a new run from its weights (--resume-adapter "
                f"{last.parent} run_name=...)"
            )

    def where(self) -> str:
        """Describes the current step or evaluation, for messages."""
        stage, step = self.progress.stage, self.progress.step
        return f"stage {stage} step {step}, evaluation" if self._is_evaluating else f"stage {stage} step {step + 1}"

    def _save_before(self, error: BaseException) -> bool:
        """Saves the state from before the step that an error has ended; False if the step has come to its update."""
        before, folder = self._before, self.config.run_dir / self._here()
        if before is None:
            return False
        if is_whole(folder):
            self.screen.say(f"{self.where()} is left; continue with --resume, from {folder}")
            return True
        self.checkpoints.set_states(before.states)
        set_random_states(before.drawn)
        self.log.rewind(before.offsets)
        self._leave_after(error, "before the next step")
        return True

    def _leave_after(self, error: BaseException, when: str) -> None:
        """Leaves because of an error, which must not be lost where saving fails, too."""
        try:
            self.leave(when)
        except (StorageError, NumericError) as trouble:
            if isinstance(error, Left):  # nothing else is wrong
                raise
            self.screen.warn(str(trouble))

    @property
    def global_step(self) -> int:
        """Returns the optimizer steps done over all stages."""
        return sum(stage.steps for stage in self.stages if stage.number < self.progress.stage) + self.progress.step

    def remaining(self) -> Iterator[Stage]:
        """Yields the stages that are left, including the current one."""
        left = [stage for stage in self.stages if stage.number >= self.progress.stage]
        if not left:
            self.screen.say("this run is finished: nothing is left to do")
        yield from left

    def work_left(self) -> Remaining:
        """Returns the steps and evaluations that are left."""
        progress = self.progress
        return work_left(self.stages, self.config.eval, progress.stage, progress.step, progress.due)

    def handle_alarms(self, alarms: list[Alarm]) -> None:
        """Writes and prints alarms of the watch. Those that call for action wait for `act`."""
        settings = self.config.train
        for alarm in alarms:
            action = settings.on_collapse if alarm.severity == COLLAPSE else "warn"
            if settings.stop_on_identical_rewards and alarm.alarm.startswith(EQUAL_REWARDS):
                action = "stop"
            self.log.write("alarms", dataclasses.asdict(alarm) | ({"action": action} if alarm.begins else {}))
            self.screen.alarm(alarm)
            if alarm.begins and action != "warn":
                self._collapse = self._collapse or alarm
        self.log.sync()

    def act(self) -> None:
        """Applies `train.on_collapse`, between two steps, if the watch has seen a collapse.

        Raises NumericError if the run is to stop, or has no checkpoint to go back to.
        """
        first, self._collapse = self._collapse, None
        if first is None:
            return
        if self.config.train.on_collapse == "restore" and first.severity == COLLAPSE and self.restore_best():
            return
        self.show_alarms()
        best = self.checkpoints.best_of(self.progress.stage)
        start = self.config.run_dir / best if best else "its last checkpoint from before"
        raise NumericError(
            f"stage {first.stage} step {first.step}: {first.text}; --resume DIR continues from {start}, with other "
            "settings by --allow-config-change; train.on_collapse: warn would train on"
        )

    def evaluate(self, when: str) -> dict:
        """Evaluates now: writes a row of evaluations.jsonl and returns it; writes a greedy row as well, if due.

        "pretrain" measures the base: a soft prompt, and other adapters by rounding, change it before the first step.
        """
        before = self.log.offsets()
        self._is_evaluating = True
        rows = self._evaluations(when, before)
        self._is_evaluating = False
        if not self.steps_done:
            self.started = time.monotonic()
        return rows[0] if self.stands_or_goes_back(rows[0], when, before) else self.evaluate(when)

    def _evaluations(self, when: str, before: dict[str, int]) -> list[dict]:
        """Returns the rows of an evaluation. If a signal or an error ends it, saves the state from before it first."""
        progress, drawn = self.progress.state_dict(), random_states()
        mode = self.policy.reference_mode() if when == "pretrain" else contextlib.nullcontext()
        try:
            with self.signals.leavable(), mode:
                rows = [self._evaluation(when, *evaluation) for evaluation in self.config.evaluations(when)]
            if self.interrupted():  # after its last token; the step that follows may take long
                raise Left
            return rows
        except FROM_OUTSIDE as error:
            if isinstance(error, Left):
                self.interrupted()  # shares the signal with all processes
            elif not self.steps_done or self.accelerator.num_processes > 1:  # of which only this one may have failed
                raise
            self.log.rewind(before)
            self.progress.load_state_dict(progress)
            set_random_states(drawn)
            self._leave_after(error, "before this evaluation")
            raise

    def _evaluation(self, when: str, settings: Eval, how: dict[str, Any]) -> dict:
        task, chosen_by = self.task, self.task.selection
        row = {"when": when, "stage": self.progress.stage, "step": self.progress.step}
        row["rows"] = list(settings.within(len(task.splits.test)))
        row["rows_left_out"] = len(chosen_by)
        rows = task.test[: settings.examples(when)]
        row["questions"] = digest_of(rows)
        how_sampled = answered(row | {"temperature": settings.temperature})
        report = ProgressPrinter(self.screen.say, f"eval {when}, {how_sampled}")
        row |= self._measure(when, settings, rows, report, **how)
        texts = self._last_texts
        if settings is self.config.eval and not how:  # not the additional passes, which are only reported
            report = ProgressPrinter(self.screen.say, f"eval {when}, questions to choose by")
            chosen = self._measure(when, settings, chosen_by, report, part="selection") if chosen_by else None
            row["selection"] = chosen
        row |= self.restored("evaluations")
        self.log.write("evaluations", row)
        name = "eval" if "selection" in row else "eval_without_feedback" if how else "eval_greedy"
        self.tracker.log(name, row, self.global_step, texts=texts)
        self.screen.evaluation(row)
        for text in format_trouble(row, self.config.reward.accepts_cut):
            self.screen.warn(f"eval {when}: {text}")
        return row

    def stands_or_goes_back(self, row: dict, when: str, before: dict[str, int]) -> bool:
        """Passes an evaluation to the watch; True if it stands. `before`: the file sizes before it.

        At the end of a stage, an accuracy below the stage's best does not stand if `train.on_collapse` is `restore`:
        the row is logged as one in the middle, the run goes back, and the end must be evaluated again.
        """
        alarms, self.progress.due = self.watch.evaluation(row), None
        goes_back = when.startswith("after") and self.watch.below_best and self.config.train.on_collapse == "restore"
        goes_back = goes_back and self.checkpoints.best_of(self.progress.stage) is not None
        if goes_back:
            self.log.rewind(before)
            self.log.write("evaluations", row | {"when": "step", "went_back": True})
        self.note_score(row)
        self.handle_alarms(alarms)
        if goes_back:
            self._collapse = None
            self.restore_best()
        else:
            self.act()
        return not goes_back

    def count_step(self) -> dict[str, Any]:
        """Counts a finished step, sets blend and temperature of the next, marks a due evaluation. Returns row columns.

        They have the finished step's temperature, twice, if a schedule moves it: of sampling, and of trained log-probs.
        """
        progress, is_scheduled = self.progress, self.config.generation.temperature_schedule is not None
        heat = dict.fromkeys(("sampling_temperature", "temperature"), self.policy.temperature) if is_scheduled else {}
        progress.step += 1
        self._before = None
        self._begin_step()
        every = self.config.eval.every_steps
        if every and progress.step % every == 0 and not self._ends_stage():
            progress.due = "step"
        steps = next(stage.steps for stage in self.stages if stage.number == progress.stage)
        where = {"stage": progress.stage, "step": progress.step, "steps": steps, "global_step": self.global_step}
        return where | heat

    def _begin_step(self) -> None:
        """Sets what depends on the steps done: the adapters' warm-up, and the temperature."""
        if self.policy.shelf:
            self.policy.shelf.begin(self.global_step)
        generation = self.config.generation
        schedule = generation.temperature_schedule
        self.policy.temperature = temperature_at(generation.temperature, schedule, self.global_step)

    def _ends_stage(self) -> bool:
        """True if the last step of a stage is done: its end has its own evaluation and checkpoint."""
        return (self.progress.stage, self.progress.step) in [(stage.number, stage.steps) for stage in self.stages]

    def keep_texts(self, rows: list[dict]) -> None:
        """Writes rows of generations.jsonl, from all processes."""
        rows = [brief(row) for row in collect(rows, self.accelerator)]
        for row in rows:
            self.log.write("generations", row)
        self._last_texts = [{key: value for key, value in row.items() if not key.startswith("tokens")} for row in rows]

    def interrupted(self) -> bool:
        """True if a signal asks to stop; all processes agree."""
        return interrupted(self.signals, self.accelerator)

    def leave(self, when: str = "") -> int:
        """Saves the finished step after a signal and prints how to resume. Returns the exit code."""
        self.checkpoints.save(self.progress.stage, self.progress.step)  # nothing else: there may be seconds left
        where = f"stage {self.progress.stage} step {self.progress.step}{when and ', '}{when}"
        self.screen.say(f"saved at {where}; continue with --resume, from {self.config.run_dir / self._here()}")
        return self.signals.exit_code

    def _save_rest(self, folder: Path) -> None:
        """Writes what a result has besides its weights: the tokenizer, and the model card, which names it."""
        self.task.tokenizer.save_pretrained(folder)
        self._write_card(folder)

    def _write_card(self, folder: Path) -> None:
        tree = self.config.model_dump(mode="json")
        write_card(folder, self.config.run_dir, tree, trained_in(self.policy.model))

    def save(self) -> None:
        """Saves a checkpoint of the current state, and runs `train.after_checkpoint`."""
        self._run_command(self.checkpoints.save(self.progress.stage, self.progress.step))

    def _run_command(self, folder: Path) -> None:
        command = self.config.train.after_checkpoint
        if command and self.accelerator.is_main_process:
            log = self.config.run_dir / "after_checkpoint.log"
            words = command_after(command, folder, *place_of(folder))
            try:
                with Children() as children:  # which kills what still runs at the end, also at that of this process
                    pid = children.start(words, log, without_launcher(os.environ))
                    while not (codes := children.ended()) and not self.signals.received:
                        time.sleep(COMMAND_TICK)
            except OSError as error:
                self.screen.warn(f"train.after_checkpoint: cannot be run ({error})")
                return
            if not codes:
                self.screen.warn(f"train.after_checkpoint: stopped after {folder}, because the run was; see {log}")
            elif codes[pid]:
                self.screen.warn(f"train.after_checkpoint: ended with exit code {codes[pid]} after {folder}, see {log}")

    def note_score(self, evaluation: dict) -> None:
        """Marks the best evaluation of the stage so far, to save and keep it; never one whose attempt 1 fell.

        Attempt 1 fell if it is below its interval at the start of the run.
        """
        measures_base = evaluation["when"] == "pretrain" and self.policy.prefix  # without the soft prompt
        if self.config.train.keep_best and not measures_base:
            if self.watch.keeps_attempt1(evaluation):
                self.checkpoints.consider(self.progress.stage, self._here(), score_of(evaluation))
            else:
                self.screen.say(f"{self._here()} cannot be the best: attempt 1 is below its interval at the start")

    def log_step(self, _trees: list[Any], _credit: Credit, row: dict[str, Any]) -> None:
        """Writes and prints a step's row, and passes it to the dashboard and to the watch: the last hook of a step.

        Adds its seconds, and the distance of each part of the adapter from its start.
        """
        seconds = self.clock.lap()
        row |= seconds | {"tokens_per_second": row["tokens"] / sum(seconds.values())}
        row["parameters"] = sum(parameter.numel() for parameter in self.policy.trainable)
        drifts = self.policy.shelf.drifts() if self.policy.shelf else {}
        row |= {f"drift/{name}": float(values.square().mean().sqrt()) for name, values in drifts.items()}
        self.log.write("metrics", row | self.restored("metrics"))
        self.log.sync()
        self.tracker.log(f"stage{row['stage']}", row, row["global_step"])
        self.steps_done += 1
        pace = (time.monotonic() - self.started) / self.steps_done  # evaluations and checkpoints included
        self.screen.step(row, pace * self.work_left().steps)
        self.handle_alarms(self.watch.step(row))

    def when_due(self) -> None:
        """Evaluates and saves between two steps if `eval.every_steps` or `checkpoint_every` says so, and new bests.

        Then remembers what the sampling of the next step will change.
        """
        if self._ends_stage():
            return
        if self.progress.due:
            self.evaluate(self.progress.due)
        every = self.config.train.checkpoint_every
        if self.checkpoints.best_of(self.progress.stage) == self._here() or (every and self.progress.step % every == 0):
            self.save()
        if self.accelerator.num_processes == 1:  # of several only one may fail, and the others would not save with it
            self._before = Moment(self.checkpoints.states(SAMPLED), random_states(), self.log.offsets())

    def finish(self, when: str) -> None:
        """Ends a stage: evaluates, saves a checkpoint from which the next starts, and the adapter in `stage<N>/`.

        The next stage, if any, has a fresh optimizer, and this checkpoint as its best so far, or the best of this stage
        where attempt 1 fell.
        """
        row = self.evaluate(when)
        stage, step, here = self.progress.stage, self.progress.step, self._here()
        following = next((later.number for later in self.stages if later.number > stage), None)
        self.progress.stage = following or OVER
        if following:
            self.progress.step = 0
            self.step.reset()
            best = {"folder": here, "score": score_of(row)}
            if not self.watch.keeps_attempt1(row):
                best = self.checkpoints.best.get(f"stage{stage}")
            if self.config.train.keep_best and best:
                self.checkpoints.consider(following, **best)
        checkpoint = self.checkpoints.save(stage, step)
        if self.accelerator.is_main_process:
            self.checkpoints.write_result(checkpoint, self._save_rest)
            self.publisher.result(checkpoint.parent)
        self._run_command(checkpoint)

    def restore_best(self) -> Path | None:
        """Restores weights and optimizer from the best checkpoint of this stage and halves the learning rate.

        It also restores earlier policies that teach or play, since a broken one may be among them. Steps, sampler and
        random generators are not reset: so every run ends, and the batch that broke the policy is not drawn again. All
        processes call it, between two steps; a checkpoint is saved at once. Returns the folder, or None if no best is
        kept (`train.keep_best`). Raises NumericError if this has been done RESTORES times in the stage, ConfigError if
        the checkpoint is broken.
        """
        progress = self.progress
        folder = self.checkpoints.best_of(progress.stage)
        if folder is None:
            return None
        if sum(restore["stage"] == progress.stage for restore in progress.restores) >= RESTORES:
            self.show_alarms()
            raise NumericError(
                f"stage {progress.stage} step {progress.step}: {RESTORES} times in this stage the run went back to its "
                f"best checkpoint, and it broke again at {progress.rate_factor:g} of its learning rate; look at the "
                f"reward and at the texts in generations.jsonl; the best is {self.config.run_dir / folder}"
            )
        self.checkpoints.load_weights(self.config.run_dir / folder, also=("distill", "opponent"))
        progress.rate_factor /= 2
        where = {"stage": progress.stage, "step": progress.step, "restored_from": folder}
        progress.restores.append(where | {"rate_factor": progress.rate_factor})
        progress.restored_from = dict.fromkeys(("metrics", "evaluations"), folder)
        progress.skipped = 0
        self.handle_alarms(self.watch.forget(f"by going back to {folder}"))
        self.say_restores(last=1)
        self.save()
        return self.config.run_dir / folder

    def restored(self, stream: str) -> dict:
        """Returns `restored_from`, a folder below the run's, for a file's first row after a restore; otherwise {}."""
        folder = self.progress.restored_from.pop(stream, None)
        return {"restored_from": folder} if folder else {}

    def show_results(self, *left_out: str) -> None:
        """Prints the table of this run's evaluations but those `left_out`, its alarms and restores.

        Raises NumericError if this was a trial run, which must show that training works, and no step had a gradient.
        """
        if not self.accelerator.is_main_process:
            return
        rows, _ = read_jsonl(self.config.run_dir / "evaluations.jsonl")
        rows = [row for row in with_best(rows, self.checkpoints.best_of) if row["when"] not in left_out]
        self.screen.table(rows, f"{self.config.run_name}, held-out answers")
        self.show_alarms()
        self.say_restores()
        if not (self.config.run_dir / TRIAL).exists():
            return
        steps, _ = read_jsonl(self.config.run_dir / "metrics.jsonl")
        if steps and not any(row["grad_norm"] for row in steps):
            raise NumericError(
                f"{self.config.run_dir}: the gradient was exactly zero in each of the {len(steps)} steps: all answers "
                "to a prompt earned the same, or none counted; read generations.jsonl, and change the prompts, "
                "reward.format or the model until some answers earn more than others"
            )

    def show_alarms(self) -> None:
        """Prints the alarms of the run and when they were."""
        for line in self.watch.closing():
            self.screen.say(line)

    def say_restores(self, last: int = 0) -> None:
        """Prints a line for each return to the best checkpoint, or for the `last` ones."""
        for restore in self.progress.restores[-last:]:
            self.screen.say(
                f"stage {restore['stage']} step {restore['step']}: went back to {restore['restored_from']}, and on at "
                f"{restore['rate_factor']:g} of the learning rate"
            )

    def _here(self) -> str:
        return f"stage{self.progress.stage}/step_{self.progress.step}"

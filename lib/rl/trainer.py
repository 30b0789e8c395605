"""What every RL script does around its algorithm: open the run, resume, step the optimizer safely, save, leave."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import set_seed

from lib.core.clock import Clock, Profile
from lib.core.config import Eval, dump
from lib.core.console import Screen, Telling, answered, attempts_of
from lib.core.errors import Left, NumericError, RewardError
from lib.core.interrupts import LAUNCHER_SECONDS, Interrupts
from lib.rl.evaluation import Answered
from lib.rl.ledger import brief
from lib.rl.plan import Ahead, Held, Stage, Work, ahead, answers, told
from lib.rl.step import OptimizerStep, Progress
from lib.rl.task import ChatTask, ScoreTask
from lib.rl.watch import CHECKS, COLLAPSE, EQUAL_REWARDS, Alarm, Watch, equal_rewards
from lib.run import fingerprints
from lib.run.adapter_files import save_weights
from lib.run.checkpoint import Checkpoints, random_states, set_random_states, storage_errors
from lib.run.distributed import collect, highest, share
from lib.run.pace import Pace
from lib.run.runlog import STREAMS, RunLog
from lib.run.tracking import Tracker
from lib.text.data import digest_of

OVER = 3  # the stage of a run that is finished
RESTORES = 3  # per stage; if the policy breaks at an eighth of its learning rate, the rate is not the cause


def score_of(evaluation: dict) -> float:
    """Returns the score that selects the best checkpoint: accuracy, of the last attempt if there are several.

    Measured on the questions reserved for selection; on the reported ones only if the run has no others.
    """
    measured = evaluation["selection"] or evaluation
    attempts = attempts_of(measured)
    return measured[f"acc_attempt{attempts[-1]}"] if attempts else measured["acc"]


class Trainer:
    """State with a lifetime: policy, optimizer, progress, run directory. A script's algorithm is a subclass.

    A subclass has `stages`; `global_step`, the steps done over all of them; `sampler`, which draws the next prompts;
    `work()`, the completions that are left; and `measure(when, settings, rows, on_progress, **part)`, which answers
    held-out rows and returns their row of evaluations.jsonl, or with `part` the numbers that training selects by. An
    answer is `per_answer` completions.
    """

    task: Any
    config: Any
    stages: list[Stage]
    sampler: Any
    per_answer: int
    work: Callable[[], Iterable[Work]]
    measure: Callable[..., dict]

    @property
    def global_step(self) -> int:
        """Returns the optimizer steps done over all stages."""
        return sum(each.steps for each in self.stages if each.number < self.progress.stage) + self.progress.step

    def __init__(
        self, task: ScoreTask | ChatTask, accelerator: Any, *, resume: bool | Path, allow_change: bool, profile: int
    ):
        self.task, self.config = task, task.config
        self.accelerator = accelerator
        self.screen = Screen(accelerator.is_main_process)
        config = task.config
        self.policy = task.policy
        self.wrapped = accelerator.prepare(task.policy)  # the same policy, wrapped to sum gradients over processes
        self.progress = Progress()
        self.step = OptimizerStep(config, self.policy, accelerator, self.progress, self.screen.warn)
        self.watch = Watch((*CHECKS, equal_rewards(config.train.identical_rewards_warning)))
        self._collapses: list[Alarm] = []  # not acted on yet
        self.clock = Clock()
        self.pace = Pace()
        self.held = Held(len(task.test), len(task.selection))
        self.profile = Profile(profile, config.run_dir / "profile", accelerator.process_index)
        self.generator = torch.Generator(accelerator.device)
        self.generator.manual_seed(config.seed + 100_003 * accelerator.process_index)
        set_seed(config.seed, device_specific=True)  # for a reward that draws from the global generators
        self.tracker = Tracker(config, bool(resume), self.screen.warn, accelerator.is_main_process)
        self._resume = resume
        self._written: list[dict] = []  # the last rows of generations.jsonl
        self._is_evaluating = False
        self._allow_change = allow_change
        self.log: RunLog
        self.signals: Interrupts
        self.checkpoints: Checkpoints

    @contextlib.contextmanager
    def opened(self, dataset: str, keep: int, streams: Iterable[str] = STREAMS, **moving: object) -> Iterator[None]:
        """Opens and locks the run directory, restores its state if `--resume` finds one, and catches signals."""
        config, several = self.config, self.accelerator.num_processes > 1
        with (
            RunLog(config.run_dir, bool(self._resume), self.accelerator.is_main_process, streams) as self.log,
            Interrupts(patience=LAUNCHER_SECONDS if several else 0.0) as self.signals,
            self.tracker,
        ):
            self.signals.where = self.where
            self.checkpoints = Checkpoints(
                config.run_dir, self.accelerator, self.policy.model, self.step.optimizer, self.log,
                dataset=dataset, inputs=self._inputs(), keep=keep, allow_change=self._allow_change,
            )  # fmt: skip
            self.checkpoints.register(progress=self.progress, watch=self.watch, sampling=self.generator, **moving)
            path = None
            if self._resume:
                path = self.checkpoints.resume(self._resume if isinstance(self._resume, Path) else None)
                self.screen.say(f"resumed from {path}" if path else "nothing to resume from: starting")
                tokens = min(self.progress.micro_batch_tokens, config.train.micro_batch_tokens)
                self.progress.micro_batch_tokens = tokens  # it may have been lowered since, because memory ran out
                for stage in range(1, self.progress.stage) if self.accelerator.is_main_process else ():
                    self.checkpoints.restore_result(stage, self.task.tokenizer.save_pretrained)
            else:
                self.log.rewind({})
            self.log.write_config(dump(config), now=path is not None)  # otherwise written with the first checkpoint
            if self.ahead().stages:
                self.screen.say(told(self.work(), "left" if path else "planned"))
            self.pace.start()
            try:
                yield
            except Left as left:
                left.exit_code = self.signals.exit_code
                if not self._is_evaluating:
                    self.screen.say(f"{self.where()} is left, since its reward does not answer; continue with --resume")
                raise
            except RewardError as error:
                rank = self.accelerator.process_index
                raise error.told(
                    config.run_dir, f"{self.where()}: ", "; fix it, then continue with --resume", rank
                ) from error
            self._say_if_any(self.profile.close())
            self.accelerator.end_training()

    def _inputs(self) -> dict[str, str]:
        """Returns the fingerprints of model and reward code that a resume must find unchanged."""
        task = self.task
        known = fingerprints.of_model(self.config.model.name, self.policy.language_model, task.tokenizer)
        return known | {fingerprints.REWARD: fingerprints.of_code(task.judge.functions)}

    def where(self) -> str:
        """Describes the current step or evaluation, for messages."""
        stage, step = self.progress.stage, self.progress.step
        return f"stage {stage} step {step}, evaluation" if self._is_evaluating else f"stage {stage} step {step + 1}"

    def ahead(self) -> Ahead:
        """Returns the steps and evaluations that are left."""
        progress = self.progress
        return ahead(self.stages, self.config.eval, progress.stage, progress.step, progress.due)

    def seconds_left(self) -> float | None:
        """Estimates the seconds until the end of the run; None while it is too early to tell."""
        left = self.ahead()
        return self.pace.left(left.steps, sum(map(self._completions_of, left.evaluations)))

    def _completions_of(self, when: str) -> int:
        return self.per_answer * answers(self.config.eval, when, self.held)

    def time_of_step(self, completions: int, tokens: int) -> dict[str, float]:
        """Ends the timing of a step: returns the seconds per phase for its row, and records the step in the run's pace.

        `completions`: those it sampled; `tokens`: those behind `tokens_per_second`.
        """
        seconds = self.clock.lap()
        sampling = sum(seconds[f"seconds_{name}"] for name in ("generate", "reward", "waiting"))
        self.pace.step(self.progress.stage, completions, sampling)
        return seconds | {"tokens_per_second": tokens / sum(seconds.values())}

    def draw(
        self, wanted: int, answer: Callable[[list[int]], list[Answered]],
        tells: Callable[[list[Answered]], list[bool]],
    ) -> list[Answered]:  # fmt: skip
        """Draws the next `wanted` prompts and returns the results of `answer` on this process's share, one per prompt.

        Up to `train.resample_rounds` times, further prompts are added for those without a training signal, until
        `wanted` have one: `tells` gets the results so far and tells which have one.
        """
        answered: list[Answered] = []
        missing, rounds = wanted, self.config.train.resample_rounds
        for round_ in range(1 + rounds):
            drawn = self.sampler.take(max(missing, self.accelerator.num_processes if round_ else 0))  # one for each
            answered += answer(share(drawn, self.accelerator))
            if round_ == rounds:
                break
            missing = wanted - sum(collect(tells(answered), self.accelerator))
            if missing <= 0:
                break
        return answered

    def heed(self, alarms: list[Alarm]) -> None:
        """Writes and prints alarms of the watch. Those that call for action wait for `act`."""
        settings = self.config.train
        for alarm in alarms:
            action = settings.on_collapse if alarm.severity == COLLAPSE else "warn"
            if settings.stop_on_identical_rewards and alarm.alarm.startswith(EQUAL_REWARDS):
                action = "stop"
            self.log.write("alarms", dataclasses.asdict(alarm) | ({"action": action} if alarm.begins else {}))
            self.screen.alarm(alarm)
            if alarm.begins and action != "warn":
                self._collapses.append(alarm)
        self.log.sync()

    def act(self) -> None:
        """Applies `train.on_collapse`, between two steps, if the watch has seen a collapse.

        Raises NumericError if the run is to stop, or has no checkpoint to go back to.
        """
        collapses, self._collapses = self._collapses, []
        if not collapses:
            return
        first = collapses[0]
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
        """Evaluates now: writes a row of evaluations.jsonl, which is returned, and a greedy row as well, if due."""
        before = self.log.offsets()
        self._is_evaluating = True
        rows = self._evaluations(when, before)
        self._is_evaluating = False
        self.pace.evaluated(self._completions_of(when))
        return rows[0] if self.judged(rows[0], when, before) else self.evaluate(when)

    def _evaluations(self, when: str, before: dict[str, int]) -> list[dict]:
        """Returns the rows of an evaluation. On a signal to stop, saves the state from before it and raises Left."""
        progress, drawn = self.progress.state_dict(), random_states()
        try:
            with self.signals.leavable():
                rows = [self._evaluation(when, settings) for settings in self.config.eval.passes(when)]
            if self.interrupted():  # after its last token; the step that follows may take long
                raise Left
            return rows
        except Left:
            self.interrupted()  # shares the signal with all processes
            self.log.rewind(before)
            self.progress.load_state_dict(progress)
            set_random_states(drawn)
            self.leave("before this evaluation")
            raise

    def _evaluation(self, when: str, settings: Eval) -> dict:
        task, chosen_by = self.task, self.task.selection
        row = {"when": when, "stage": self.progress.stage, "step": self.progress.step}
        row["rows"] = list(settings.within(len(task.splits.test)))
        row["rows_left_out"] = len(chosen_by)
        rows = task.test[: settings.examples(when)]
        row["questions"] = digest_of(rows)
        telling = Telling(self.screen.say, f"eval {when}, {answered(row | {'temperature': settings.temperature})}")
        row |= self.measure(when, settings, rows, telling)
        texts = self._written
        if settings is self.config.eval:  # not the additional greedy pass, which is only reported
            telling = Telling(self.screen.say, f"eval {when}, questions to choose by")
            chosen = self.measure(when, settings, chosen_by, telling, part="selection") if chosen_by else None
            row["selection"] = chosen
        row |= self.restored("evaluations")
        self.log.write("evaluations", row)
        self.tracker.log("eval" if "selection" in row else "eval_greedy", row, self.global_step, texts=texts)
        self.screen.evaluation(row)
        return row

    def judged(self, row: dict, when: str, before: dict[str, int]) -> bool:
        """Passes an evaluation to the watch and returns whether it stands; `before`: the file sizes before it.

        It does not stand if the end of a stage is below its best and `train.on_collapse` is `restore`: it is then
        logged as one in the middle, the run goes back, and the end must be evaluated again.
        """
        alarms, self.progress.due = self.watch.evaluation(row), None
        goes_back = when.startswith("after") and self.watch.is_below_best and self.config.train.on_collapse == "restore"
        goes_back = goes_back and self.checkpoints.best_of(self.progress.stage) is not None
        if goes_back:
            self.log.rewind(before)
            self.log.write("evaluations", row | {"when": "step", "went_back": True})
        self.note_score(row)
        self.heed(alarms)
        if goes_back:
            self._collapses = []
            self.restore_best()
        else:
            self.act()
        return not goes_back

    def note_evaluation(self, steps: int) -> None:
        """Sets, after a step, whether an evaluation is due before the next; the last of `steps` has its own."""
        every = self.config.eval.every_steps
        if every and self.progress.step % every == 0 and self.progress.step != steps:
            self.progress.due = "step"

    def keep_texts(self, rows: list[dict]) -> None:
        """Writes rows of generations.jsonl, from all processes."""
        self._written = [brief(row) for row in collect(rows, self.accelerator)]
        for row in self._written:
            self.log.write("generations", row)

    def log_step(self, row: dict, distributions: Callable[[], dict[str, list[float]]]) -> None:
        """Writes a row of metrics.jsonl and logs it to the dashboard, with `distributions`, this process's lists."""
        self.log.write("metrics", row | self.restored("metrics"))
        self.log.sync()
        if self.tracker.is_on:
            everyones = {name: collect(values, self.accelerator) for name, values in distributions().items()}
            self.tracker.log(f"stage{row['stage']}", row, row["global_step"], everyones)
        self._say_if_any(self.profile.step())

    def _say_if_any(self, text: str | None) -> None:
        if text:
            self.screen.say(text)

    def interrupted(self) -> bool:
        """Tells whether a signal asks to stop. All processes agree, because they save together."""
        number = highest(self.signals.received or 0, self.accelerator)
        if number:
            self.signals.note(number)
        return number > 0

    def leave(self, when: str = "") -> int:
        """Saves the finished step after a signal and prints how to resume. Returns the exit code."""
        self.save()
        where = f"stage {self.progress.stage} step {self.progress.step}{when and ', '}{when}"
        self.screen.say(f"saved at {where}; continue with --resume, from {self.config.run_dir / self._here()}")
        return self.signals.exit_code

    def save_adapter(self, stage: int, tokenizer: Any) -> None:
        """Saves the adapter and the tokenizer in `stage<N>/`. Raises StorageError."""
        if self.accelerator.is_main_process:
            folder = self.config.run_dir / f"stage{stage}"
            with storage_errors(folder):
                save_weights(self.policy.model, folder)
                tokenizer.save_pretrained(folder)
                self.checkpoints.seal_result(folder, self.progress.step)

    def save(self) -> None:
        """Saves a checkpoint of the current state."""
        self.checkpoints.save(self.progress.stage, self.progress.step)

    def note_score(self, evaluation: dict) -> None:
        """Marks this moment, after an evaluation, as one to save and keep if it is the best of its stage so far."""
        if self.config.train.keep_best:
            self.checkpoints.consider(self.progress.stage, self._here(), score_of(evaluation))

    def save_if_due(self) -> None:
        """Saves a checkpoint, between two steps, if this is the best of the stage or `checkpoint_every` is due."""
        every = self.config.train.checkpoint_every
        if self.checkpoints.best_of(self.progress.stage) == self._here() or (every and self.progress.step % every == 0):
            self.save()

    def end_stage(self, evaluation: dict, following: int | None = None) -> None:
        """Saves the checkpoint that ends a stage; the stage `following`, if any, starts with it as its best so far."""
        stage, step, here = self.progress.stage, self.progress.step, self._here()
        self.progress.stage = following or OVER
        if following:
            self.progress.step = 0
            if self.config.train.keep_best:
                self.checkpoints.consider(following, here, score_of(evaluation))
        self.checkpoints.save(stage, step)

    def restore_best(self) -> Path | None:
        """Restores weights and optimizer from the best checkpoint of this stage and halves the learning rate.

        Steps, sampler and random generators are not reset: so every run ends, and the batch that broke the policy is
        not drawn again. All processes call it, between two steps; a checkpoint is saved at once. Returns the folder, or
        None if no best is kept (`train.keep_best`). Raises NumericError if this has been done RESTORES times in the
        stage, ConfigError if the checkpoint is broken.
        """
        progress = self.progress
        folder = self.checkpoints.best_of(progress.stage)
        if folder is None:
            return None
        if sum(each["stage"] == progress.stage for each in progress.restores) >= RESTORES:
            self.show_alarms()
            raise NumericError(
                f"stage {progress.stage} step {progress.step}: {RESTORES} times in this stage the run went back to its "
                f"best checkpoint, and it broke again at {progress.rate_factor:g} of its learning rate; look at the "
                f"reward and at the texts in generations.jsonl; the best is {self.config.run_dir / folder}"
            )
        self.checkpoints.load_weights(self.config.run_dir / folder)
        progress.rate_factor /= 2
        where = {"stage": progress.stage, "step": progress.step, "restored_from": folder}
        progress.restores.append(where | {"rate_factor": progress.rate_factor})
        progress.restored_from = dict.fromkeys(("metrics", "evaluations"), folder)
        progress.skipped = 0
        self.heed(self.watch.forget(f"by going back to {folder}"))
        self.say_restores(last=1)
        self.save()
        return self.config.run_dir / folder

    def restored(self, stream: str) -> dict:
        """Returns `restored_from`, a folder below the run's, for a file's first row after a restore; otherwise {}."""
        folder = self.progress.restored_from.pop(stream, None)
        return {"restored_from": folder} if folder else {}

    def show_alarms(self) -> None:
        """Prints the last lines of a run: the alarms of the watch, and when they were."""
        for line in self.watch.closing():
            self.screen.say(line)

    def say_restores(self, last: int = 0) -> None:
        """Prints a line for each time that the run went back to its best, or for the `last` ones."""
        for each in self.progress.restores[-last:]:
            self.screen.say(
                f"stage {each['stage']} step {each['step']}: went back to {each['restored_from']}, and on at "
                f"{each['rate_factor']:g} of the learning rate"
            )

    def _here(self) -> str:
        return f"stage{self.progress.stage}/step_{self.progress.step}"

"""Supervised fine-tuning on chats, by TRL's SFTTrainer: the loss is on the assistant's turns and their end alone.

    python sft_train.py --config configs/tiny_base.yaml                   # a tiny base from nothing, a minute or two
    python sft_train.py --config configs/tiny_base.yaml --smoke 8         # 8 rows, 4 steps
    python sft_train.py --config configs/tiny_base.yaml --resume          # resume from the last checkpoint, or from DIR
    python sft_train.py --config configs/tiny_base.yaml run_name=other optimizer.learning_rate=1e-3
    torchrun --standalone --nproc_per_node 4 sft_train.py --config my_sft.yaml

Rows have `messages`, or `prompt` and `completion`, and `tools` if need be; rollouts are such rows. Chat templates need
no marks: lib/text/labels.py finds the turns, and says which templates it refuses. The result is in
outputs/<run_name>/final.
Exit codes: 0 finished, 2 config or data, 3 numbers, 8 another process has ended, 74 disk, 130 Ctrl-C
and 143 SIGTERM after a checkpoint.
"""

if __name__ == "__main__":
    from lib.core.errors import end_at_ctrl_c

    end_at_ctrl_c()  # the imports below take a second

import argparse
import math
import os
import shutil
import time
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lib.core.config import SFTConfig, dump, load, parse, resuming_parser
from lib.core.errors import ConfigError, NumericError, run_script
from lib.core.interrupts import LAUNCHER_SECONDS, Interrupts
from lib.model.examples import examples_of, fingerprint_of
from lib.rl.checks import sft_checks
from lib.rl.supervised import ScheduleState, make_trainer, rows_of_step, steps_of
from lib.rl.watch import COLLAPSE, Watch
from lib.run.directory import check_directory, discard, step_of
from lib.run.outbox import Publisher
from lib.run.runlog import RunLog, fsync_folder
from lib.run.tracking import Tracker
from lib.text.chat_data import load_chats
from lib.text.labels import UNTRAINED, Example

if TYPE_CHECKING:  # both import torch
    from lib.core.console import Screen
    from lib.run.checkpoint import Checkpoints

LOGGED = ("loss", "mean_token_accuracy", "grad_norm", "learning_rate")  # not num_tokens: a resume restarts its count
KEPT = 2  # checkpoints
TRAINER_STATE = "trainer_state.json"  # the name under which the trainer looks for it


def main() -> int:
    """Loads config, data and model, shows one example, trains, and saves the result."""
    args, config = command_line()
    source, train, held_out, notes = load_chats(config.dataset, config.prompts.system)
    from lib.core.console import Screen
    from lib.run.distributed import interrupted
    from lib.run.model_card import trained_in

    is_main = int(os.environ.get("RANK", 0)) == 0
    screen = Screen(is_main)
    patience = LAUNCHER_SECONDS if int(os.environ.get("WORLD_SIZE", 1)) > 1 else 0.0
    with (
        RunLog(config.run_dir, args.resume, is_main) as log,
        Interrupts(patience) as interrupts,
        Tracker(config, bool(args.resume), screen.warn, is_main) as tracker,
        closing(Publisher(config.run_dir, config.hub if is_main else None, screen.say, screen.warn)) as publisher,
    ):
        screen.say(f"data: {source}, {len(train)} rows to train on, {len(held_out)} held out")
        for note in notes:
            screen.say(note)
        model, tokenizer = load_model(config)
        encode = partial(examples_of, model=model, tokenizer=tokenizer, config=config, screen=screen)
        examples, held_out = encode("to train on", train), encode("held out", held_out)
        teach_to_stop(model, tokenizer, examples, screen)
        screen.say(str(trained_in(model)))
        trainer = make_trainer(config, model, tokenizer, examples, held_out)
        watch = Watch(sft_checks(math.log(len(tokenizer))))
        fingerprint = fingerprint_of(examples, held_out)
        checkpoints = checkpoints_of(trainer, config, log, fingerprint, args.allow_config_change, publisher)
        checkpoints.register(watch=watch, schedule=ScheduleState(trainer))
        steps = steps_of(trainer)
        checkpoint, is_finished = where_to_start(args.resume, checkpoints, steps, screen)
        publisher.start()  # for what an earlier start could not push
        log.write_config(dump(config), now=is_finished or checkpoint is not None)  # else the first save starts the run
        if is_finished:
            publisher.result(config.run_dir / "final")  # a kill may have come before it waited for the Hub
            return interrupts.exit_code
        callback = reporter(config, checkpoints, checkpoint, log, screen, interrupts, watch, tracker)
        if checkpoint and step_of(checkpoint) >= steps:
            checkpoints.resume(checkpoint)
        else:
            screen.say(planned(trainer, examples, held_out, steps, checkpoint))
            trainer.add_callback(callback)
            show(trainer, screen)
            trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))
        for line in watch.closing():
            screen.say(line)
        if not callback.is_left:
            save(trainer, config, checkpoints, steps)
            screen.say(f"saved {config.run_dir / 'final'}")
            publisher.result(config.run_dir / "final")
        interrupted(interrupts, trainer.accelerator)  # waits: a process that ends with 143 makes the launcher end all
    return interrupts.exit_code


def command_line() -> tuple[argparse.Namespace, SFTConfig]:
    """Returns the options, and the config with overrides and --smoke applied. Raises ConfigError for any mistake."""
    args = parse(resuming_parser(__doc__))
    config = load(SFTConfig, args.config, args.overrides, args.smoke)
    if args.smoke and not args.resume:
        discard(config, args.config)
    check_directory(config, args.resume, args.allow_config_change)
    return args, config


def load_model(config: SFTConfig) -> tuple[Any, Any]:
    """Returns the model to train and its tokenizer: built from scratch, or loaded, with the adapters that are set."""
    from lib.model import scratch
    from lib.model.loading import attach, load_base, start_backend

    backend = start_backend(config.model)
    if config.model.from_scratch:
        return scratch.build(config.model.from_scratch, config.model.chat_template, config.seed)
    if config.model.adapters.names:
        model, tokenizer = load_base(config.model, backend)
        return attach(model, config.model, backend, config.seed), tokenizer
    # all weights are trained: bfloat16 would round small updates away
    dtype = "float32" if config.model.dtype == "auto" else config.model.dtype
    model, tokenizer = load_base(config.model.model_copy(update={"dtype": dtype}), backend)
    if not all(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(
            "no adapter is set, which trains all weights, but this model is loaded frozen; set "
            "model.adapters.lora, or model.backend=plain"
        )
    return model, tokenizer


def teach_to_stop(model: Any, tokenizer: Any, examples: list[Example], screen: "Screen") -> None:
    """Adds the tokens that end trained turns to those that end the model's answers, where they are missing."""
    from lib.model.policy import stop_ids

    old = stop_ids(model, tokenizer)
    new = set().union(*(example.ends for example in examples)) - old
    if new:
        model.generation_config.eos_token_id = sorted(old | new)
        screen.say(
            f"turns end by {', '.join(tokenizer.convert_ids_to_tokens(sorted(new)))}, which did not end this model's "
            "answers; now it does: generation_config.json"
        )


def show(trainer: Any, screen: "Screen") -> None:
    """Prints one example as it is trained."""
    example = trainer.train_dataset[0]
    length = example.get("seq_lengths", [None])[0]  # of the first in a pack
    pairs = zip(example["input_ids"][:length], example["labels"][:length], strict=True)
    text = ""
    for is_trained, group in groupby(pairs, key=lambda pair: pair[1] != UNTRAINED):
        piece = trainer.processing_class.decode([token for token, _ in group])
        text += f"«{piece}»" if is_trained else piece
    screen.say(f"one example, what is trained in « »:\n{text}")


def planned(trainer: Any, examples: list[Example], held_out: list[Example], steps: int, checkpoint: Path | None) -> str:
    """Describes in one line the steps of the run, or those left after a checkpoint, and how much text they read."""
    from lib.rl.plan import amount, counted

    arguments = trainer.args
    left = steps - (step_of(checkpoint) if checkpoint else 0)
    rows = rows_of_step(trainer)
    share = min(
        left * rows / len(trainer.train_dataset), arguments.num_train_epochs if arguments.max_steps <= 0 else math.inf
    )
    tokens = share * sum(len(example.ids) for example in examples)
    every = arguments.eval_steps if held_out else None
    evaluations = steps // every - (steps - left) // every if every else 0
    word = "left" if checkpoint else "planned"
    return (
        f"{word}: {counted(left, 'step')} of {rows} sequences, {share * len(examples):,.0f} examples of "
        f"{amount(tokens)} tokens in all; {counted(evaluations, 'evaluation')} of {len(held_out)} examples"
    )


def checkpoints_of(
    trainer: Any, config: SFTConfig, log: RunLog, fingerprint: str, allow_change: bool, publisher: Publisher
) -> "Checkpoints":
    """Returns the RL scripts' Checkpoints, with the files added that the trainer reads when it resumes."""
    from lib.run import fingerprints
    from lib.run.adapter_files import has_adapter
    from lib.run.checkpoint import Checkpoints

    def write_extra(folder: Path) -> None:
        replace(trainer.state, log_history=[]).save_to_json(folder / TRAINER_STATE)  # the rows are in metrics.jsonl
        if not has_adapter(trainer.model):  # full weights: the folder must be a complete model
            trainer.processing_class.save_pretrained(folder)
        tell(trainer, config, folder)

    trainer.create_optimizer()
    return Checkpoints(
        config.run_dir, trainer.accelerator, trainer.model, trainer.optimizer, log,
        dataset=fingerprint, inputs=fingerprints.of_model(config.model.name, trainer.model, trainer.processing_class),
        keep=KEPT, allow_change=allow_change, write_extra=write_extra, saved=publisher.checkpoint,
    )  # fmt: skip


def where_to_start(
    resume: bool | Path, checkpoints: "Checkpoints", steps: int, screen: "Screen"
) -> tuple[Path | None, bool]:
    """Returns the checkpoint to resume from (None: start at the first step), and whether nothing is left to do.

    Raises ConfigError where there is something to resume from that does not fit, or cannot be used.
    """
    if not resume:
        checkpoints.log.rewind({})
        return None, False
    run_dir = checkpoints.run_dir
    done = checkpoints.step_of_result(run_dir / "final")
    if done is not None and done >= steps and resume is True:
        screen.say("this run is finished: nothing is left to do")
        return None, True
    checkpoint = checkpoints.chosen(None if resume is True else resume)
    if checkpoint is None and done is not None:
        raise ConfigError(
            f"{run_dir}/final: taken after {done} of {steps} steps, and no checkpoint was kept to continue "
            f"from: restore the number of steps it had, or start a new run from it, by model.name={run_dir}/final"
        )
    if checkpoint is None:
        checkpoints.log.rewind({})
    screen.say(f"resumed from {checkpoint}" if checkpoint else "nothing to resume from: starting")
    return checkpoint, False


def reporter(
    config: SFTConfig,
    checkpoints: "Checkpoints",
    checkpoint: Path | None,
    log: RunLog,
    screen: "Screen",
    interrupts: Interrupts,
    watch: Watch,
    tracker: Tracker,
) -> Any:
    """Returns the trainer's callback: resumes from a checkpoint, logs rows, prints progress, raises alarms, saves.

    The callback raises NumericError for non-finite numbers, and for a collapse that the watch detects, unless
    the config makes that a warning.
    """
    from transformers import TrainerCallback

    from lib.core.console import share, until
    from lib.run.checkpoint import random_states, set_random_states
    from lib.run.distributed import interrupted
    from lib.run.manifest import set_aside

    every = config.train.checkpoint_every

    class Reporter(TrainerCallback):
        shown, drawn = 0.0, None
        is_left = False  # before the last step, because of a signal

        def on_train_begin(self, args, state, control, **_):
            if checkpoint:
                checkpoints.resume(checkpoint)
                # resuming mid-epoch, the trainer next skips rows, which draws random numbers
                self.drawn = random_states() if state.epoch % 1 else None
            if state.is_world_process_zero:
                set_aside(config.run_dir / "final")  # saved after a step count that the config had earlier
            self.started, self.first = time.monotonic(), state.global_step

        def on_step_begin(self, args, state, control, **_):
            if self.drawn:
                set_random_states(self.drawn)
                self.drawn = None

        def on_log(self, args, state, control, logs, **_):
            if "eval_loss" in logs:
                row = {"when": "step", "step": state.global_step, "loss": logs["eval_loss"]}
                log.write("evaluations", row)
                tracker.log("eval", row, state.global_step)
                screen.say(f"eval step {state.global_step}: loss {logs['eval_loss']:.4f}")
                self.handle_alarms(watch.evaluation(row))
            if "loss" not in logs:
                return
            row = {"step": state.global_step, "steps": state.max_steps, "epoch": state.epoch}
            row |= {key: logs[key] for key in LOGGED if key in logs}  # Unsloth's trainer counts no right tokens
            log.write("metrics", row)
            log.sync()
            tracker.log("train", row, state.global_step)
            if not math.isfinite(row["loss"]) or not math.isfinite(row["grad_norm"]):
                raise NumericError(
                    f"step {row['step']}: loss {row['loss']}, gradient norm {row['grad_norm']}, expected finite "
                    "numbers; lower optimizer.learning_rate"
                )
            self.show(row, state)
            self.handle_alarms(watch.step(row))
            if not control.should_evaluate:
                self.end_step(state, control)

        def on_evaluate(self, args, state, control, **_):
            self.end_step(state, control)

        def end_step(self, state, control):
            """Saves a checkpoint if one is due, and stops training after a signal; the rows of the step are logged."""
            is_last = state.global_step >= state.max_steps
            # asked once in a step, since all processes save together; after the last step the result is saved anyway
            self.is_left = interrupted(interrupts, checkpoints.accelerator) and not is_last
            if self.is_left or (every and (state.global_step % every == 0 or is_last)):
                folder = checkpoints.save(1, state.global_step)
            if self.is_left:
                control.should_training_stop = True
                screen.say(f"saved at step {state.global_step}; continue with --resume, from {folder}")

        def handle_alarms(self, alarms):
            action = config.train.on_collapse
            for alarm in alarms:
                done = {"action": action if alarm.severity == COLLAPSE else "warn"} if alarm.begins else {}
                log.write("alarms", asdict(alarm) | done)
                screen.alarm(alarm)
            log.sync()
            fatal = [alarm for alarm in alarms if alarm.begins and alarm.severity == COLLAPSE]
            if fatal and action == "stop":
                raise NumericError(
                    f"step {fatal[0].step}: {fatal[0].text}; --resume continues from the last checkpoint, with other "
                    "settings by --allow-config-change; train.on_collapse: warn would continue training"
                )

        def show(self, row, state):
            now, last = time.monotonic(), state.global_step == state.max_steps
            if now - self.shown < 2 and not last:
                return
            self.shown = now
            right = row.get("mean_token_accuracy")
            pace = (now - self.started) / (state.global_step - self.first)  # evaluations and checkpoints included
            screen.say(
                f"step {row['step']:>4}/{row['steps']}  loss {row['loss']:.4f}"
                f"{'' if right is None else f'  tokens right {share(right)}'}  |g| {row['grad_norm']:.2g}"
                f"  lr {row['learning_rate']:.2g}  {until(pace * (state.max_steps - state.global_step))}"
            )

    return Reporter()


def tell(trainer: Any, config: SFTConfig, folder: Path) -> None:
    """Writes the model card of the weights in a folder."""
    from lib.run.model_card import trained_in, write_card

    write_card(folder, config.run_dir, config.model_dump(mode="json"), trained_in(trainer.model))


def save(trainer: Any, config: SFTConfig, checkpoints: "Checkpoints", step: int) -> None:
    """Saves weights (or adapter) and tokenizer in `final`, renamed into place when complete. Raises StorageError."""
    from lib.run.adapter_files import apply_umask, say_ground
    from lib.run.manifest import set_aside
    from lib.run.runlog import storage_errors

    if not trainer.is_world_process_zero():
        return
    final = checkpoints.run_dir / "final"
    whole = final.with_name("final.tmp")
    with storage_errors(final):
        shutil.rmtree(whole, ignore_errors=True)
        trainer.save_model(str(whole))
        apply_umask(whole)
        say_ground(trainer.model, whole)
        trainer.model.generation_config.to_json_file(whole / "generation_config.json")  # adapters come without it
        (whole / "training_args.bin").unlink(missing_ok=True)  # a pickle: config.yaml says the same
        tell(trainer, config, whole)  # in the place of PEFT's empty form
        checkpoints.seal_result(whole, step)
        set_aside(final)  # one that is there is damaged
        os.replace(whole, final)
        fsync_folder(final.parent)
        checkpoints.log.begin()


if __name__ == "__main__":
    run_script(main)

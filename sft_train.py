"""Supervised fine-tuning on chats, by TRL's SFTTrainer: the loss is on what the assistant says and on nothing else.

    python sft_train.py --config configs/tiny_base.yaml                   # a tiny base from nothing, a minute or two
    python sft_train.py --config configs/tiny_base.yaml --smoke 8         # 8 rows, 4 steps
    python sft_train.py --config configs/tiny_base.yaml --resume          # go on after the last checkpoint
    python sft_train.py --config configs/tiny_base.yaml run_name=other optimizer.learning_rate=1e-3
    accelerate launch --num_processes 4 sft_train.py --config my_sft.yaml

Rows have `messages`, or `prompt` and `completion`; the result is in outputs/<run_name>/final.
Exit codes: 0 finished, 2 config or data, 3 numbers, 74 disk, 130 Ctrl-C and 143 SIGTERM after a checkpoint.
"""

import argparse
import importlib.util
import json
import math
import os
import shutil
import time
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from lib.config import SFTConfig, dump, load, parser
from lib.data import Row, load_splits
from lib.errors import ConfigError, NumericError, run_script
from lib.runlog import RunLog, check_directory, discard

LOGGED = ("loss", "mean_token_accuracy", "grad_norm", "learning_rate")  # not num_tokens: a resume restarts its count
UNTRAINED = -100  # torch's label of a token without loss
RUN_STATE = "run.json"  # written into a checkpoint as its last file: without it the checkpoint is not complete


def main() -> int:
    """Config, data, model, one example shown, training, the result saved."""
    args, config = command_line()
    splits = load_splits(config.dataset, columns=())
    template_kwargs = config.model.chat_template_kwargs
    train, held_out = (as_chats(rows, splits.source, template_kwargs) for rows in (splits.train, splits.test))
    from lib.checkpoint import Interrupts  # torch comes after config and data were found sound
    from lib.console import Screen

    is_main = int(os.environ.get("RANK", 0)) == 0
    screen = Screen(is_main)
    with RunLog(config.run_dir, args.resume, is_main) as log, Interrupts() as interrupts:
        checkpoint = rewind(config.run_dir, log, splits.fingerprint) if args.resume else None
        log.write_config(dump(config))
        screen.say(f"data: {splits.source}, {len(train)} rows to train on, {len(held_out)} held out")
        if splits.overlap:
            screen.warn(f"{splits.overlap} rows to train on were removed, because they are held out too")
        model, tokenizer = load_model(config, train)
        trainer = make_trainer(config, model, tokenizer, train, held_out)
        trainer.add_callback(reporter(log, screen, interrupts, splits.fingerprint))
        verify(trainer, screen, len(train))
        trainer.train(resume_from_checkpoint=checkpoint)
        if not interrupts.received:
            save(trainer, config.run_dir / "final")
            screen.say(f"saved {config.run_dir / 'final'}")
    return interrupts.exit_code


def command_line() -> tuple[argparse.Namespace, SFTConfig]:
    """The options, and the config with overrides and --smoke applied. ConfigError for every mistake in them."""
    options = parser(__doc__)
    options.add_argument("--resume", action="store_true", help="go on with the run after its last checkpoint")
    options.add_argument("--allow-config-change", action="store_true", help="resume although the config changed")
    args = options.parse_intermixed_args()  # overrides may stand anywhere
    config = load(SFTConfig, args.config, args.overrides, args.smoke)
    if args.smoke and not args.resume:
        discard(config.run_dir)
    check_directory(config.run_dir, dump(config), args.resume, args.allow_config_change)
    return args, config


def as_chats(rows: list[Row], source: str, template_kwargs: dict) -> list[Row]:
    """Rows as TRL takes chats: `messages`, or `prompt` and `completion` as lists of messages. ConfigError otherwise.

    `tools` are kept; `template_kwargs` reach the chat template, where a row does not bring its own.
    """
    extra = {"chat_template_kwargs": template_kwargs} if template_kwargs else {}
    return [{**extra, **as_chat(row, f"row {number} of {source}")} for number, row in enumerate(rows, start=1)]


def as_chat(row: Row, where: str) -> Row:
    """One row; text in `prompt` is what a user says, text in `completion` what the assistant says."""
    extra = {key: row[key] for key in ("tools", "chat_template_kwargs") if row.get(key)}
    if row.get("messages"):
        chat, spoken = {"messages": row["messages"]}, row["messages"]
    elif row.get("prompt") and row.get("completion"):
        prompt, completion = row["prompt"], row["completion"]
        chat = {
            "prompt": [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt,
            "completion": [{"role": "assistant", "content": completion}] if isinstance(completion, str) else completion,
        }
        spoken = chat["completion"]
    else:
        raise ConfigError(
            f"dataset.name: {where} has {', '.join(map(repr, row)) or 'no column'}, expected 'messages', or 'prompt' "
            "and 'completion', with something in them: rename the columns or remove the row"
        )
    if not any(message.get("role") == "assistant" for message in spoken):
        raise ConfigError(f"dataset.name: {where} has no assistant message, so nothing to train on: remove it")
    return {**chat, **extra}


def load_model(config: SFTConfig, chats: list[Row]) -> tuple[object, object]:
    """The model to train and its tokenizer: built from nothing, or loaded, with an adapter where `lora` is set."""
    from lib import scratch
    from lib.model import attach_lora, load_base, start_backend

    backend = start_backend(config.model)
    if config.model.from_scratch:
        model, tokenizer = scratch.build(config.model.from_scratch, config.model.chat_template, config.seed)
        scratch.refuse_unknown(tokenizer, texts_of(chats))
        return model, tokenizer
    if config.lora:
        model, tokenizer = load_base(config.model, backend)
        return attach_lora(model, config.lora, config.model, backend, config.seed), tokenizer
    # all weights trained: small updates would be rounded away in bfloat16
    dtype = "float32" if config.model.dtype == "auto" else config.model.dtype
    model, tokenizer = load_base(config.model.model_copy(update={"dtype": dtype}), backend)
    if not all(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(
            "lora: null trains all weights, but this model is loaded frozen; add lora, or set model.backend=plain"
        )
    return model, tokenizer


def texts_of(chats: list[Row]) -> Iterable[str]:
    """Every message's text."""
    for chat in chats:
        for message in chat.get("messages") or chat["prompt"] + chat["completion"]:
            yield message["content"]


def make_trainer(config: SFTConfig, model: object, tokenizer: object, train: list[Row], held_out: list[Row]) -> object:
    """TRL's trainer over the tokenised rows. ConfigError where rows or chat template do not fit."""
    import datasets
    import pyarrow
    import torch
    import trl
    from transformers.trainer_callback import PrinterCallback
    from transformers.utils.logging import disable_progress_bar

    settings, optimizer = config.train, config.optimizer
    datasets.disable_progress_bars()
    disable_progress_bar()
    has_bfloat16 = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    arguments = trl.SFTConfig(
        output_dir=str(config.run_dir / "checkpoints"),
        seed=config.seed,
        max_steps=settings.steps or -1,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.gradient_accumulation,
        gradient_checkpointing=config.model.gradient_checkpointing,
        bf16=has_bfloat16 and config.model.dtype != "float32",
        max_length=settings.max_length,
        train_sampling_strategy="random" if settings.shuffle else "sequential",
        assistant_only_loss=True,
        optim="adamw_bnb_8bit" if optimizer.name == "adamw_8bit" else "adamw_torch_fused",
        learning_rate=optimizer.learning_rate,
        adam_beta1=optimizer.betas[0],
        adam_beta2=optimizer.betas[1],
        weight_decay=optimizer.weight_decay,
        max_grad_norm=optimizer.max_grad_norm,
        warmup_steps=optimizer.warmup_steps,
        lr_scheduler_type="constant_with_warmup" if optimizer.schedule == "constant" else optimizer.schedule,
        save_strategy="steps" if settings.checkpoint_every else "no",
        save_steps=settings.checkpoint_every or 500,
        save_total_limit=2,
        eval_strategy="steps" if settings.eval_every and held_out else "no",
        eval_steps=settings.eval_every or None,
        logging_steps=1,
        logging_nan_inf_filter=False,  # it would hide them; the reporter stops the run
        report_to=trackers(config),
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    try:
        trainer = trl.SFTTrainer(
            model=model,
            args=arguments,
            train_dataset=datasets.Dataset.from_list(train),
            eval_dataset=datasets.Dataset.from_list(held_out) if held_out else None,
            processing_class=tokenizer,
        )
    except pyarrow.ArrowException as error:
        raise ConfigError(f"dataset.name: the rows do not have one shape ({error}); make them alike") from error
    except ValueError as error:
        if "chat template" not in str(error).lower():
            raise
        raise ConfigError(
            "model.chat_template: the model's own template does not mark what the assistant says; give one with "
            "{% generation %} around it, its end token included"
        ) from error
    trainer.remove_callback(PrinterCallback)
    return trainer


def trackers(config: SFTConfig) -> list[str]:
    """What transformers reports to, besides the run directory."""
    tracking = config.tracking
    if tracking.backend == "none":
        return []
    if importlib.util.find_spec(tracking.backend) is None:
        raise ConfigError(
            f"tracking.backend: {tracking.backend} is not installed; pip install {tracking.backend}, or set "
            "tracking.backend=none"
        )
    os.environ.setdefault("WANDB_MODE", tracking.mode)
    os.environ.setdefault("WANDB_PROJECT", tracking.project)
    return [tracking.backend]


def verify(trainer: object, screen: object, rows_given: int) -> None:
    """Prints one tokenised example and what was cut. ConfigError if no token or no end of turn would be trained."""
    from lib.model import stop_ids

    limit, tokenizer = trainer.args.max_length, trainer.processing_class
    rows = trainer.train_dataset
    lengths = [len(ids) for ids in rows.with_format("arrow")["input_ids"][:]]
    cut, dropped = sum(length >= limit for length in lengths), rows_given - len(rows)
    if dropped == rows_given or cut == len(rows):
        raise ConfigError(
            f"train.max_length: all {rows_given} rows reach {limit} tokens, so no end would be learned: raise it"
        )
    if cut or dropped:
        screen.warn(f"{cut + dropped} of {rows_given} rows reach train.max_length = {limit} tokens and are cut, "
                    f"{dropped} of them away")  # fmt: skip
    example = rows[next(index for index, length in enumerate(lengths) if length < limit)]
    pairs = zip(example["input_ids"], example["labels"], strict=True)
    text = ""
    for is_trained, group in groupby(pairs, key=lambda pair: pair[1] != UNTRAINED):
        piece = tokenizer.decode([token for token, _ in group])
        text += f"«{piece}»" if is_trained else piece
    screen.say(f"one example, what is trained in « »:\n{text}")
    if not stop_ids(trainer.model, tokenizer).intersection(example["labels"]):
        raise ConfigError(
            "model.chat_template: the end of the assistant's turn would not be trained, so the model would never stop; "
            "put its end token between {% generation %} and {% endgeneration %}"
        )


def rewind(run_dir: Path, log: object, fingerprint: str) -> str | None:
    """The newest complete checkpoint, with the log cut back to it; None starts the run again from its first step."""
    marks = (run_dir / "checkpoints").glob(f"checkpoint-*/{RUN_STATE}")
    newest = max(marks, key=lambda path: int(path.parent.name.removeprefix("checkpoint-")), default=None)
    if newest is None:
        log.rewind({})
        return None
    state = json.loads(newest.read_text(encoding="utf-8"))
    if state["fingerprint"] != fingerprint:
        raise ConfigError(
            f"dataset: the rows differ from those of the run in {run_dir}, which can not be resumed on them: "
            "restore the data, or start anew with another run_name=..."
        )
    log.rewind(state["offsets"])
    return str(newest.parent)


def reporter(log: object, screen: object, interrupts: object, fingerprint: str) -> object:
    """The trainer's callback: rows in metrics.jsonl, a line now and then, checkpoints marked as complete."""
    from transformers import TrainerCallback

    from lib.console import duration

    class Reporter(TrainerCallback):
        started, first_step, shown = 0.0, 0, 0.0

        def on_train_begin(self, args, state, control, **_):
            self.started, self.first_step = time.monotonic(), state.global_step

        def on_step_end(self, args, state, control, **_):
            control.should_training_stop |= bool(interrupts.received)
            control.should_save |= bool(interrupts.received)

        def on_log(self, args, state, control, logs, **_):
            if "eval_loss" in logs:
                log.write("evaluations", {"when": "step", "step": state.global_step, "loss": logs["eval_loss"]})
                screen.say(f"eval step {state.global_step}: loss {logs['eval_loss']:.4f}")
            if "loss" not in logs:
                return
            row = {"step": state.global_step, "steps": state.max_steps, "epoch": state.epoch}
            row |= {key: logs[key] for key in LOGGED}
            log.write("metrics", row)
            log.sync()
            if not math.isfinite(row["loss"]) or not math.isfinite(row["grad_norm"]):
                raise NumericError(
                    f"step {row['step']}: loss {row['loss']}, gradient norm {row['grad_norm']}, expected finite "
                    "numbers; lower optimizer.learning_rate"
                )
            self.show(row, state)

        def show(self, row, state):
            now, last = time.monotonic(), state.global_step == state.max_steps
            if now - self.shown < 2 and not last:
                return
            self.shown = now
            done = state.global_step - self.first_step
            left = (now - self.started) / done * (state.max_steps - state.global_step)
            screen.say(
                f"step {row['step']:>4}/{row['steps']}  loss {row['loss']:.4f}"
                f"  tokens right {row['mean_token_accuracy']:.3f}  |g| {row['grad_norm']:.2g}"
                f"  lr {row['learning_rate']:.2g}  {duration(left)} left"
            )

        def on_save(self, args, state, control, **_):
            if state.is_world_process_zero:
                path = Path(args.output_dir) / f"checkpoint-{state.global_step}" / RUN_STATE
                path.write_text(json.dumps({"offsets": log.offsets(), "fingerprint": fingerprint}), encoding="utf-8")

    return Reporter()


def save(trainer: object, final: Path) -> None:
    """Weights (or the adapter) and the tokenizer, renamed into place when complete."""
    aside = final.with_name("final.tmp")
    trainer.save_model(str(aside))
    if trainer.is_world_process_zero():
        (aside / "training_args.bin").unlink(missing_ok=True)  # a pickle: config.yaml says the same
        shutil.rmtree(final, ignore_errors=True)
        aside.rename(final)


if __name__ == "__main__":
    run_script(main)

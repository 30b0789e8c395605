"""TRL's SFTTrainer over labelled examples: how it is built, its schedule, its steps."""

import math
from functools import partial
from typing import Any

from lib.core.config import Optimizer, SFTConfig
from lib.core.errors import ConfigError
from lib.model.loading import has_bfloat16
from lib.text.labels import Example


def make_trainer(config: SFTConfig, model: Any, tokenizer: Any, train: list[Example], held_out: list[Example]) -> Any:
    """Builds TRL's SFTTrainer over the examples."""
    import datasets
    import torch
    import trl
    from transformers.trainer_callback import PrinterCallback
    from transformers.trainer_utils import align_special_tokens
    from transformers.utils.logging import disable_progress_bar
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    settings, optimizer = config.train, config.optimizer
    datasets.disable_progress_bars()
    disable_progress_bar()
    arguments = trl.SFTConfig(
        output_dir=str(config.run_dir),
        seed=config.seed,
        max_steps=settings.steps or -1,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.gradient_accumulation,
        gradient_checkpointing=config.model.gradient_checkpointing,
        use_cpu=not torch.accelerator.is_available(),  # else several CPU processes would each train alone
        bf16=has_bfloat16() and config.model.dtype != "float32",
        max_length=None,  # the examples are already cut and labelled
        dataset_kwargs={"skip_prepare_dataset": True},
        train_sampling_strategy="random" if settings.shuffle else "sequential",
        optim="adamw_bnb_8bit" if optimizer.name == "adamw_8bit" else "adamw_torch_fused",
        learning_rate=optimizer.learning_rate,
        adam_beta1=optimizer.betas[0],
        adam_beta2=optimizer.betas[1],
        weight_decay=optimizer.weight_decay,
        max_grad_norm=optimizer.max_grad_norm,
        save_strategy="no",  # the reporter saves
        eval_strategy="steps" if settings.eval_every and held_out else "no",
        eval_steps=settings.eval_every or None,
        logging_steps=1,
        logging_nan_inf_filter=False,  # it would hide them; the reporter stops the run
        report_to="none",  # the reporter does
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    rows, held_out = as_table(train), as_table(held_out)
    if settings.packing:
        refuse_leaks(model)
        rows = trl.pack_dataset(rows, settings.max_length, "bfd")
    trainer = trl.SFTTrainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        eval_dataset=held_out or None,
        processing_class=tokenizer,
    )
    if settings.packing:  # not by padding_free=True: Unsloth silently drops that, and rows would see each other
        trainer.data_collator = DataCollatorForLanguageModeling(tokenizer.pad_token_id, padding_free=True)
    trainer.remove_callback(PrinterCallback)
    align_special_tokens(model, tokenizer)  # as the trainer does when it starts: a resume may have nothing to train
    trainer._load_from_checkpoint = lambda _: None  # lib/run/checkpoint.py does, once the optimizer is there too
    trainer.create_scheduler = partial(scheduled, trainer, optimizer)
    return trainer


def as_table(examples: list[Example]) -> Any:
    """Converts the examples to the dataset that the trainer reads, one Arrow table in memory."""
    import datasets
    import pyarrow

    numbers = pyarrow.list_(pyarrow.int32())
    columns = {"input_ids": (example.ids for example in examples), "labels": (example.labels for example in examples)}
    return datasets.Dataset(pyarrow.table({name: pyarrow.array(rows, numbers) for name, rows in columns.items()}))


def scheduled(trainer: Any, settings: Optimizer, num_training_steps: int, optimizer: Any = None) -> Any:
    """Sets and returns the RL scripts' learning-rate schedule: the trainer's own warm-up wastes a step at rate 0."""
    from torch.optim.lr_scheduler import LambdaLR

    from lib.rl.step import learning_rate

    def factor(step: int) -> float:
        return learning_rate(settings, step, num_training_steps) / settings.learning_rate

    trainer.lr_scheduler = LambdaLR(optimizer or trainer.optimizer, factor)
    return trainer.lr_scheduler


def refuse_leaks(model: Any) -> None:
    """Raises ConfigError if, in a packed sequence, the model's output for the second row depends on the first."""
    import torch

    half = 8
    first, other, second = (
        torch.arange(3 * half, device=model.device).view(3, half) % model.config.get_text_config().vocab_size
    )
    positions = torch.arange(half, device=model.device).repeat(2)[None]
    model.train()  # as in training; there is no dropout
    with torch.no_grad():
        one, two = (
            model(input_ids=torch.cat([row, second])[None], position_ids=positions, use_cache=False).logits[0, half:]
            for row in (first, other)
        )
    if (one - two).abs().max() > torch.finfo(one.dtype).eps * one.abs().max():
        raise ConfigError(
            "train.packing: in this model the rows of a packed sequence see each other, since its attention ignores "
            "where one begins; set train.packing=false, or try another model.attn_implementation"
        )


def rows_of_step(trainer: Any) -> int:
    """Counts the sequences in an optimizer step, over all processes."""
    arguments = trainer.args
    return arguments.train_batch_size * arguments.gradient_accumulation_steps * trainer.accelerator.num_processes


def steps_of(trainer: Any) -> int:
    """Counts the optimizer steps of the whole run, as the trainer does."""
    arguments = trainer.args
    if arguments.max_steps > 0:
        return arguments.max_steps
    batches = len(trainer.get_train_dataloader())
    return math.ceil(arguments.num_train_epochs * math.ceil(batches / arguments.gradient_accumulation_steps))


class ScheduleState:
    """Makes the learning-rate schedule checkpointable although the trainer creates it only when it starts."""

    def __init__(self, trainer: Any):
        self.trainer = trainer

    def state_dict(self) -> dict:
        """Returns the scheduler's state."""
        return self.trainer.lr_scheduler.state_dict()

    def load_state_dict(self, state: dict) -> None:
        """Restores the scheduler's state, unless nothing is left to train."""
        if self.trainer.lr_scheduler is not None:
            self.trainer.lr_scheduler.load_state_dict(state)

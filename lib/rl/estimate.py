"""The memory that a run needs at least, from the architecture alone: weights, adapter, optimizer, cache, logits.

What layers keep for the backward pass comes on top. It depends on the code of a model, and on a micro-batch, which is
halved where it does not fit (lib/rl/step.py).
"""

from statistics import median

import torch

from engine import CHUNK_ELEMENTS, bytes_per_token
from lib.core.config import Model, ScoreConfig, SelfPlayConfig
from lib.model.adapters import shelf
from lib.model.loading import adapted_layers, has_bfloat16
from lib.rl.evaluation import ROWS_AT_ONCE
from lib.rl.prompts import Renderer
from lib.rl.tree import longest_prompts

GIB = 2**30
OPTIMIZER = 16  # bytes of a trained number: itself, its gradient, two moments
FOUR_BITS = 0.55  # bytes of a number, its share of the scales included
ROWS_OF_LOGITS = 3  # tensors of a chunk's size: logits, probabilities, and one more derived from them


def rows_at_once(config: ScoreConfig | SelfPlayConfig, held_out: int) -> int:
    """Returns the completions that are decoded together: those of a turn of training, or those of an evaluation.

    `held_out`: number of rows that an evaluation may answer.
    """
    if isinstance(config, SelfPlayConfig):
        trained = config.train.batch_size * config.train.group_size
    else:
        train = config.train
        prompts = max(train.stage1_batch_size, train.stage2_batch_size)
        trained = prompts * max(train.attempts_per_prompt, train.followed * train.revisions_per_attempt)
    answered = min(held_out, config.eval.max_examples, ROWS_AT_ONCE) * config.eval.samples_per_prompt
    rows = max(trained, answered)
    return min(rows, config.generation.batch_size or rows)


def needs_of(
    skeleton: torch.nn.Module, config: ScoreConfig | SelfPlayConfig, rows: int, columns: int,
    teacher: torch.nn.Module | None = None,
) -> dict[str, float]:  # fmt: skip
    """Returns bytes by purpose, with `rows` completions of `columns` tokens at once, prompts included.

    `teacher`: the architecture of a second model, for a distillation.
    """
    tuner = config.model.adapters.tuner
    adapted = list(adapted_layers(skeleton, tuner).values()) if tuner else []
    rank = getattr(tuner, "r", 1)  # of others than LoRA an upper bound
    trained = sum(rank * sum(layer.weight.shape) for layer in adapted)
    if shelved := shelf.attach(skeleton, config.model.adapters, 0):
        trained += sum(shelved.counts().values())
    needs = {"weights": _weights(skeleton, config.model)}
    if teacher:
        needs["weights of the teacher"] = _weights(teacher, config.teacher_model)
    needs[f"adapter ({trained / 1e6:.2f} M parameters, with gradient and optimizer)"] = trained * OPTIMIZER
    cache = rows * columns * bytes_per_token(skeleton) * _bytes_of_number(config.model) / skeleton.dtype.itemsize
    needs[f"cache of {rows} completions of {columns} tokens, fewer where memory is short"] = cache
    needs["logits"] = ROWS_OF_LOGITS * 4 * min(rows * skeleton.config.vocab_size, CHUNK_ELEMENTS)
    return needs


def memory_lines(
    skeleton: torch.nn.Module, config: ScoreConfig | SelfPlayConfig, prompts: Renderer, lengths: list[int],
    held_out: int, teacher: torch.nn.Module | None = None,
) -> list[str]:  # fmt: skip
    """Formats a line for each part, in GiB, and one for their sum, if first prompts have the median of `lengths`."""
    longer = max(config.budgets, config.eval_budgets, key=len)
    *_, last = longest_prompts(prompts, round(median(lengths)), longer)
    needs = needs_of(skeleton, config, rows_at_once(config, held_out), last + longer[-1], teacher)
    needs["in all, without what layers keep for the backward pass"] = sum(needs.values())
    return [f"{size / GIB:9.3f} GiB  {name}" for name, size in needs.items()]


def _bytes_of_number(model: Model) -> int:
    is_narrow = model.dtype == "bfloat16" or (model.dtype == "auto" and has_bfloat16())
    return 2 if is_narrow else 4


def _weights(skeleton: torch.nn.Module, model: Model) -> float:
    """Returns the bytes of a frozen model."""
    of_number = FOUR_BITS if model.load_in_4bit else _bytes_of_number(model)
    return of_number * sum(parameter.numel() for parameter in skeleton.parameters())

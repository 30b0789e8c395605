"""The memory that a run will need, from the architecture alone, at full length: what each answer may have, it has.

Sampling and updating come in turns, so the peak is that of one of them. What a layer keeps of a token for the backward
pass was counted in the tensors that autograd saves, for the families that engine/llama.py writes out and for others;
The log (docs/log) holds the whole against the peak of real runs.
"""

import math
from dataclasses import dataclass

import torch

from engine import CHUNK_ELEMENTS, FAMILY, backbone_of, bytes_per_token, free_host_memory
from lib.core.config import Model, ScoreConfig, SelfPlayConfig, TrainedModel
from lib.model.adapters import shelf
from lib.model.loading import adapted_layers, has_bfloat16
from lib.model.policy import attends_to_everything
from lib.rl.evaluation import ROWS_AT_ONCE

GIB = 2**30
PYTHON = 0.46 * GIB  # resident with the packages of train.py and the smallest of models, on a CPU
OPTIMIZER = 16  # bytes of a trained number: itself, its gradient, two moments
FOUR_BITS = 0.55  # bytes of a number, its share of the scales included
ROWS_OF_LOGITS = 3  # tensors of a chunk's size: logits, probabilities, and one more derived from them


@dataclass(frozen=True)
class Load:
    """The size of a step, in rows and tokens, that determines its memory."""

    rows: int  # completions that are decoded together
    columns: int  # tokens of the longest of them, prompt included
    tokens: int  # of the largest micro-batch
    scored: int  # those of them whose log-probs are computed


def load_of_tree(config: ScoreConfig, shares: bool, last: int, held_out: int) -> Load:
    """Returns the load of a tree of attempts with last prompts of `last` tokens, earlier attempts included.

    `shares`: revisions of one attempt are trained in one sequence, if they are the last. `held_out`: number of rows
    that an evaluation may answer.
    """
    train = config.train
    firsts = max(train.stage1_batch_size, train.stage2_batch_size) * train.attempts_per_prompt
    (new1, *later), k2 = config.budgets, train.revisions_per_attempt
    followed = firsts // train.attempts_per_prompt * train.followed
    together = k2 if shares and len(later) == 1 else 1
    length = last + together * later[-1]
    tokens, sequences = _micro_batch(length, followed * k2 // together, train.micro_batch_tokens)
    scored = new1 + max(together * later[-1], sum(later))
    rows = _rows(config, held_out, max(firsts, followed * k2))
    return Load(rows, last + later[-1], tokens, sequences * scored)


def load_of_groups(config: SelfPlayConfig, shares: bool, prompt: int, held_out: int) -> Load:
    """Returns the load of single answers to prompts of `prompt` tokens."""
    gen, train = config.generation, config.train
    together = train.group_size if shares else 1
    prompts = math.ceil(train.batch_size / train.minibatches)
    tokens, sequences = _micro_batch(
        prompt + together * gen.most_tokens, prompts * train.group_size // together, train.micro_batch_tokens
    )
    rows = _rows(config, held_out, train.batch_size * train.group_size)
    return Load(rows, prompt + gen.most_tokens, tokens, sequences * together * sum(config.budgets))


def _rows(config: ScoreConfig | SelfPlayConfig, held_out: int, trained: int) -> int:
    """Completions that are decoded together: `trained`, those of a turn of training, or those of an evaluation."""
    answered = min(held_out, config.eval.max_examples, ROWS_AT_ONCE) * config.eval.samples_per_prompt
    rows = max(trained, answered)
    return min(rows, config.generation.batch_size or rows)


def _micro_batch(length: int, count: int, most: int) -> tuple[int, int]:
    """Returns tokens and sequences of the largest micro-batch of `count` sequences, as `micro_batches` makes it."""
    sequences = min(count, max(1, most // length))
    return sequences * length, sequences


def shares_prompts(skeleton: torch.nn.Module) -> bool:
    """True if answers to one prompt are trained in one sequence."""
    return attends_to_everything(skeleton) and skeleton.config._attn_implementation == "sdpa"


@dataclass(frozen=True)
class Needs:
    """Bytes, by purpose."""

    always: dict[str, float]
    sampling: dict[str, float]
    update: dict[str, float]

    @property
    def peak(self) -> float:
        """The peak in bytes: that of sampling or that of updating, whichever is more."""
        return sum(self.always.values()) + max(sum(self.sampling.values()), sum(self.update.values()))

    def lines(self) -> list[str]:
        """Formats a line for each part, in GiB, and one for the peak."""
        parts = {**self.always, **self.sampling, **self.update, "peak, at full length": self.peak}
        return [f"{size / GIB:9.3f} GiB  {name}" for name, size in parts.items()]


def needs_of(
    skeleton: torch.nn.Module, config: ScoreConfig | SelfPlayConfig, load: Load, teacher: torch.nn.Module | None = None
) -> Needs:
    """Estimates what a run with the architecture of `skeleton` needs: GPU memory on a machine with a GPU, else RAM.

    `teacher`: the architecture of a second model, for a distillation.
    """
    of_number = _bytes_of_number(config.model)
    tuner = config.model.adapters.tuner
    adapted = list(adapted_layers(skeleton, tuner).values()) if tuner else []
    rank = getattr(tuner, "r", 1)  # of others than LoRA an upper bound
    trained = sum(rank * sum(layer.weight.shape) for layer in adapted)
    if shelved := shelf.attach(skeleton, config.model.adapters, 0):
        trained += sum(shelved.counts().values())
    always = {
        "weights": _weights(skeleton, config.model),
        f"adapter ({trained / 1e6:.2f} M parameters, with gradient and optimizer)": trained * OPTIMIZER,
    }
    if teacher:
        always["weights of the teacher"] = _weights(teacher, config.teacher_model)
    cache = load.rows * load.columns * bytes_per_token(skeleton) * of_number / skeleton.dtype.itemsize
    if not torch.cuda.is_available():
        always["Python and its packages"] = PYTHON
        cache = min(cache, 0.5 * free_host_memory())  # as engine/decoder.py bounds it
    layers = skeleton.config.num_hidden_layers
    kept = numbers_kept(skeleton, adapted, rank, of_number == 2)
    activations = load.tokens * kept * of_number * (layers + 1)  # and one layer's gradients
    if config.model.gradient_checkpointing:
        activations = load.tokens * of_number * (skeleton.config.hidden_size * layers + kept)
    return Needs(
        always,
        sampling={
            "sampling: copies of weights": _copied(skeleton, adapted, config.model),
            f"sampling: cache of {load.rows} completions of {load.columns} tokens, fewer where memory is short": cache,
            "sampling: logits": _logits(skeleton, load.rows),
        },
        update={
            f"update: activations of {load.tokens} tokens": activations,
            f"update: logits of {load.scored} tokens, by chunks": _logits(skeleton, load.scored),
        },
    )


def _bytes_of_number(model: Model) -> int:
    is_narrow = model.dtype == "bfloat16" or (model.dtype == "auto" and has_bfloat16())
    return 2 if is_narrow else 4


def _weights(skeleton: torch.nn.Module, model: Model) -> float:
    """Returns the bytes of a frozen model."""
    of_number = FOUR_BITS if model.load_in_4bit else _bytes_of_number(model)
    return of_number * sum(parameter.numel() for parameter in skeleton.parameters())


def _is_written_out(skeleton: torch.nn.Module) -> bool:
    return skeleton.config.model_type in FAMILY


def _copied(skeleton: torch.nn.Module, adapted: list[torch.nn.Module], model: TrainedModel) -> float:
    """Returns the bytes of the weights that decoding copies: stacked, in float32 with the adapter merged in."""
    of_number = _bytes_of_number(model)
    if model.load_in_4bit:
        return 0.0
    if _is_written_out(skeleton) and not model.adapters.families:
        return of_number * sum(parameter.numel() for parameter in backbone_of(skeleton).layers.parameters())
    return of_number * sum(layer.weight.numel() for layer in adapted) if of_number == 4 else 0.0


def _logits(skeleton: torch.nn.Module, tokens: int) -> float:
    """Returns the bytes of the logits that are held at once, in float32."""
    return ROWS_OF_LOGITS * 4 * min(tokens * skeleton.config.vocab_size, CHUNK_ELEMENTS)


def numbers_kept(skeleton: torch.nn.Module, adapted: list[torch.nn.Module], rank: int, is_narrow: bool) -> float:
    """Counts the numbers that a layer keeps per token for the backward pass, in the dtype of the model."""
    shape = skeleton.config
    size, layers = shape.hidden_size, shape.num_hidden_layers
    heads = shape.num_attention_heads
    head = getattr(shape, "head_dim", None) or size // heads
    queries, keys = heads * head, (getattr(shape, "num_key_value_heads", None) or heads) * head
    wide = getattr(shape, "intermediate_size", None) or 4 * size
    names = {name.rpartition(".")[2] for name, _ in skeleton.named_modules()}
    low = rank * len(adapted) / layers
    # residuals and norms; queries, keys, values and what they produce; the MLP; the adapters' low-rank products
    kept = 4 * size + 3 * queries + 2 * keys + (4 if any("gate" in name for name in names) else 2) * wide + low
    if "q_norm" in names:
        kept += queries + keys
    if is_narrow:
        kept += low  # adapters compute in float32
        kept *= 1 if _is_written_out(skeleton) else 1.75  # and so do others' norms: measured on GPT-NeoX and Gemma 2
    return kept

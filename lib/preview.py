"""What a run would do, without training: resolved config, both prompts with what is masked, plan, tokens, memory."""

import torch

from lib.config import ScoreConfig, dump
from lib.console import Screen
from lib.generators import Completion
from lib.head import CHUNK_ELEMENTS
from lib.model import load_skeleton, trainable_of
from lib.prompts import TwoTurnPrompts
from lib.score import kl_weights, plan
from lib.stats import percentiles
from lib.task import fitting, load_data

GIB = 2**30


def preview(config: ScoreConfig) -> None:
    """Prints everything that `--dry-run` shows. Loads data and tokenizer, but no weights."""
    screen = Screen()
    splits, _ = load_data(config)
    skeleton, tokenizer = load_skeleton(config.model)
    prompts = TwoTurnPrompts(tokenizer, config.prompts, config.generation, config.model.chat_template_kwargs)
    train, test, notes = fitting(splits, prompts, config)
    parts = {
        "config, resolved": dump(config).rstrip(),
        "data": "\n".join([splits.source, *notes]),
        "one example": _example(train[0], prompts, config),
        "plan": _plan(config, len(train), len(test)),
        "tokens": _tokens(train, prompts, config),
        "memory, estimated": memory(skeleton, config),
    }
    for title, text in parts.items():
        screen.heading(title)
        screen.say(text)
    screen.heading("nothing was trained: this was a dry run")


def _example(row: dict, prompts: TwoTurnPrompts, config: ScoreConfig) -> str:
    """Both prompts as the model reads them; what is trained stands between >>> and <<<."""
    decode = prompts.tokenizer.decode
    end = prompts.retry_ids[0]
    first = prompts.first(row)
    answered = Completion(ids=[end], logps=[0.0], finished=True)  # an empty attempt 1, ended by the turn's own token
    rest = prompts.second(row, first, answered).ids
    budgets = config.generation
    lines = [
        f"[prompt 1: {len(first)} tokens, masked]",
        decode(first),
        f">>> attempt 1, at most {budgets.max_new_tokens_attempt1} tokens; stage I: KL, stage II: reward and KL <<<",
    ]
    if config.prompts.history == "full":
        retry = rest[len(first) + 1 :]
        lines += [f"[instruction: {len(retry)} tokens, masked; it follows the sampled tokens]", decode(retry)]
    else:
        lines += [
            f"[prompt 2: rendered anew with attempt 1 as history: {config.prompts.history}; masked]",
            decode(rest),
        ]
    lines.append(
        f">>> attempt 2, at most {budgets.max_new_tokens_attempt2} tokens; reward and KL, stage II: bonus too <<<"
    )
    target = str(row[config.dataset.target_field])
    return "\n".join([*lines, f"[target: {target[:200]}]"])


def _plan(config: ScoreConfig, train_rows: int, test_rows: int) -> str:
    train, tree = config.train, config.train.attempts_per_prompt
    lines = [f"evaluation before training on {min(test_rows, config.eval.max_examples)} held-out rows"]
    for stage in plan(config, train_rows):
        seconds = stage.batch_size * tree * train.revisions_per_attempt
        paid = "attempt 2 is paid" if stage.number == 1 else f"both are paid, bonus alpha {train.alpha:g}"
        kl1, kl2 = kl_weights(train, stage.number, train.beta2)
        lines.append(
            f"stage {'I' * stage.number}: {stage.steps} steps of {stage.batch_size} prompts x {tree} attempts x "
            f"{train.revisions_per_attempt} revisions = {stage.batch_size * tree} + {seconds} completions; "
            f"{paid}; KL weights {kl1:g} and {kl2:g}"
        )
    return "\n".join([*lines, f"run directory {config.run_dir}"])


def _tokens(train: list[dict], prompts: TwoTurnPrompts, config: ScoreConfig) -> str:
    lengths = [len(prompts.first(row)) for row in train[:1000]]
    marks = percentiles(lengths)
    budgets, tree = config.generation, config.train
    per_prompt = tree.attempts_per_prompt * (
        budgets.max_new_tokens_attempt1 + tree.revisions_per_attempt * budgets.max_new_tokens_attempt2
    )
    total = sum(stage.steps * stage.batch_size * per_prompt for stage in plan(config, len(train)))
    shown = ", ".join(f"p{name} {value:.0f}" for name, value in marks.items())
    return f"first prompt: {shown} (of {len(lengths)} rows)\ngenerated in training: at most {total / 1e6:.1f} M tokens"


def memory(skeleton: torch.nn.Module, config: ScoreConfig) -> str:
    """Upper estimates in GiB from the architecture alone; activations as a decoder layer of transformers keeps them."""
    shape, gen = skeleton.config, config.generation
    bytes_each = 2 if config.model.dtype == "bfloat16" or torch.cuda.is_available() else 4
    weights = sum(p.numel() for p in skeleton.parameters()) * (0.55 if config.model.load_in_4bit else bytes_each)
    trainable = trainable_of(skeleton, config.lora)
    heads = shape.num_attention_heads
    head_dim = getattr(shape, "head_dim", None) or shape.hidden_size // heads
    kv_heads = getattr(shape, "num_key_value_heads", None) or heads
    queries, keys = heads * head_dim, kv_heads * head_dim
    width = gen.max_prompt_length_attempt2 + gen.max_new_tokens_attempt2
    batch = max(config.train.stage1_batch_size, config.train.stage2_batch_size)
    rows = batch * config.train.attempts_per_prompt * config.train.revisions_per_attempt
    rows = min(rows, gen.batch_size or rows)
    cache = 2 * shape.num_hidden_layers * keys * bytes_each * rows * width
    wide = getattr(shape, "intermediate_size", 4 * shape.hidden_size)
    kept = 4 * shape.hidden_size + 3 * queries + 4 * keys + 4 * wide  # numbers a layer keeps of a token for backward
    per_layer = shape.hidden_size if config.model.gradient_checkpointing else kept
    tokens = max(width, config.train.micro_batch_tokens)
    activations = tokens * shape.num_hidden_layers * per_layer * bytes_each
    sizes = {
        "weights": weights,
        f"adapter ({trainable / 1e6:.2f} M parameters, with gradient and optimizer)": trainable * 16,
        f"sampling: cache of {rows} completions of {width} tokens, fewer at once where memory is short": cache,
        f"update: activations of {tokens} tokens": activations,
        "update: logits of a chunk": 4 * 4 * CHUNK_ELEMENTS,
    }
    peak = sizes["weights"] + trainable * 16 + max(cache, activations + 16 * CHUNK_ELEMENTS)
    lines = [f"{size / GIB:9.3f} GiB  {name}" for name, size in sizes.items()]
    return "\n".join([*lines, f"{peak / GIB:9.3f} GiB  peak, at full length"])

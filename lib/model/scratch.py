"""A tiny model and its character tokenizer, built from YAML: real enough to learn, small enough for a laptop."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lib.core.config import FromScratch
from lib.core.errors import ConfigError
from lib.core.registry import did_you_mean
from lib.text.templates import Outside

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

PAD, END, UNKNOWN = "<|pad|>", "<|im_end|>", "<|unk|>"
KEY = "model.from_scratch"


def build(
    from_scratch: FromScratch, chat_template: str, seed: int
) -> tuple["PreTrainedModel", "PreTrainedTokenizerFast"]:
    """Builds a float32 causal model with random weights that depend on `seed` alone, and its tokenizer.

    Raises ConfigError where the YAML names an unknown architecture or field, or a token twice.
    """
    import torch
    from transformers import AutoModelForCausalLM

    tokenizer = build_tokenizer(from_scratch, chat_template)
    config = _model_config(from_scratch.architecture, tokenizer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.generation_config.do_sample = True  # otherwise servers decode greedily, whatever temperature is requested
    return model, tokenizer


def build_tokenizer(from_scratch: FromScratch, chat_template: str) -> "PreTrainedTokenizerFast":
    """Builds a tokenizer with one token per character and per special token.

    `decode(encode(text)) == text` for text of these alone. `<|marker|>`s, eos and pad are skipped by
    `decode(..., skip_special_tokens=True)`; tags like `<think>` stay, because rewards read them. Raises ConfigError
    where a token is given twice.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    named = [PAD, END, UNKNOWN]
    named += [token for token in from_scratch.special_tokens if token not in named]
    tokens = named + list(from_scratch.characters)
    twice = sorted({token for token in tokens if tokens.count(token) > 1})
    if twice:
        raise ConfigError(f"{KEY}: {', '.join(map(repr, twice))} given twice, expected every token once: remove one")

    backend = Tokenizer(models.WordLevel({token: index for index, token in enumerate(tokens)}, unk_token=UNKNOWN))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    backend.decoder = decoders.Fuse()
    for token in named:
        is_control = token in named[:3] or (token.startswith("<|") and token.endswith("|>"))
        added = AddedToken(token, special=is_control, normalized=False)
        (backend.add_special_tokens if is_control else backend.add_tokens)([added])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        chat_template=chat_template or None,
        clean_up_tokenization_spaces=False,
    )


def refuse_unknown(tokenizer: "PreTrainedTokenizerFast", texts: Iterable[str]) -> None:
    """Raises ConfigError with the first text that has characters outside the alphabet: they cannot be learned."""
    outside = Outside(tokenizer)
    for text in texts:
        unknown = sorted(outside.unknown_in(text))
        if unknown:
            shown = text if len(text) <= 60 else text[:57] + "..."
            raise ConfigError(
                f"{KEY}.characters: the data has {', '.join(map(repr, unknown))}, in {shown!r}, which the tokenizer "
                "does not know: add these characters, or clean the data"
            )


def _model_config(architecture: dict[str, Any], tokenizer: "PreTrainedTokenizerFast") -> "PretrainedConfig":
    from transformers import CONFIG_MAPPING, AutoConfig

    fields = dict(architecture)
    kind = fields.pop("model_type", None)
    if kind not in CONFIG_MAPPING:
        raise ConfigError(
            f"{KEY}.architecture.model_type: got {kind!r}, expected a model type of transformers"
            f"{did_you_mean(kind, CONFIG_MAPPING, '.')} For example qwen3"
        )
    valid = AutoConfig.for_model(kind).to_dict()
    for field in fields:
        if field not in valid:
            raise ConfigError(f"{KEY}.architecture.{field}: not a field of a {kind} config{did_you_mean(field, valid)}")
    tokens = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    return AutoConfig.for_model(kind, **{"vocab_size": len(tokenizer), **tokens, **fields})

"""Merges an adapter into its base, in memory or as a model in a folder.

The adapter is merged, and the merged model compared with the adapted one, in float32; then its weights are rounded once
to the dtypes they had. In bfloat16 the two cannot be compared: rounding alone moves log-probs as much as a wrong merge.
What is trained later stands on the rounded weights.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn

from lib.core.config import in_words
from lib.core.errors import ConfigError, NumericError, OutOfMemory, first_line, is_out_of_memory
from lib.model.adapters.shelf import detach, shelf_of
from lib.run.adapter_files import adapter_config, apply_umask, is_same_base, refuse_other_ground, refuse_other_weights
from lib.run.directory import ADAPTER_CONFIG, EXTRA, adapter_in
from lib.run.fingerprints import STANDS_ON, of_adapter
from lib.run.hub import local_adapter
from lib.run.manifest import new_folder

logger = logging.getLogger(__name__)

KEY = "model.adapter"
TOKENS = 64  # the last ones of a text, at which the log-probs of two models are compared
TOLERANCE = 1e-3  # nats, of two models in float32 that differ by rounding alone
CHATS = (  # on which they are compared when a script loads the adapter
    ("Name three animals that live in the sea.", "Whales, crabs and seahorses live in the sea."),
    ("How many days are there in three weeks?", "A week has 7 days, so three weeks have 3 * 7 = 21 days."),
)
UNMERGED = ("modules_to_save", "trainable_token_indices", "layer_replication")  # settings that no sum can hold


def put_on(base: nn.Module, folder: Path, key: str) -> nn.Module:
    """Returns `base` as a frozen PeftModel with a saved adapter. ConfigError, naming `key`, if it does not fit."""
    from peft import PeftConfig, PeftModel, get_peft_model_state_dict  # here: Unsloth must be imported before peft
    from peft.utils import load_peft_weights

    adapter_in(folder, key)
    if (folder / EXTRA).exists():
        raise ConfigError(
            f"{key}: '{folder}' has {EXTRA}, which PEFT does not know: merge it by export.py --to merged, if all of "
            "its adapters fold into weights, and take the merged model"
        )
    try:
        settings = adapter_config(folder)
        refuse_other_ground(base, settings, folder)
        if settings.pop(STANDS_ON, None):
            settings["task_type"] = "CAUSAL_LM"  # the saved one only makes plain PEFT refuse it
        model = PeftModel.from_pretrained(base, folder, config=PeftConfig.from_peft_type(**settings))
        saved = load_peft_weights(str(folder), device="cpu").keys()
        taken = get_peft_model_state_dict(model, save_embedding_layers=False).keys()
        lost = saved - taken - model.state_dict().keys()
        if lost or taken - saved:  # peft silently skips what it cannot place
            raise ValueError(f"{len(lost)} of its {len(saved)} tensors have no place, {len(taken - saved)} are missing")
    except (RuntimeError, ValueError, TypeError, KeyError, AttributeError, OSError, SafetensorError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        reason = lines[1] if lines[0].endswith(":") and len(lines) > 1 else lines[0]  # torch's first line is a title
        raise ConfigError(f"{key}: '{folder}' does not fit model.name ({reason}); give its base") from error
    return model


def merge_saved(base: nn.Module, tokenizer: Any, adapter: str, name: str) -> nn.Module:
    """Merges a saved adapter into `base`, as the config calls the two. ConfigError if that is not possible."""
    folder = local_adapter(adapter, KEY)
    _refuse_unmergeable(folder)
    _refuse_other_base(base, folder, name)
    trained = [parameter for parameter in base.parameters() if parameter.requires_grad]
    chats = [[{"role": "user", "content": text}, {"role": "assistant", "content": answer}] for text, answer in CHATS]
    texts = [tokenizer.apply_chat_template(chat, return_dict=True)["input_ids"] for chat in chats]
    base = merged(put_on(base, folder, KEY), str(folder), texts)
    for parameter in trained:  # peft has frozen them
        parameter.requires_grad = True
    if (folder / "generation_config.json").is_file():  # SFT may have taught it another end-of-answer token
        base.generation_config = type(base.generation_config).from_pretrained(folder)
    setattr(base, STANDS_ON, {"base": name, "adapter": adapter, "fingerprint": of_adapter(folder)})
    return base


@torch.no_grad()
def merged(model: nn.Module, what: str, texts: list[list[int]]) -> nn.Module:
    """Returns the base of a PeftModel with the adapter merged in, once their log-probs agree on `texts`.

    ConfigError if it cannot be merged or they disagree, for example where a layer shares its weight with another one.
    OutOfMemory if there is no room for the weights in float32.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer

    _refuse_unfoldable(model, what)
    model.eval()
    layers = [module for module in model.modules() if isinstance(module, BaseTunerLayer)]
    dtypes, stated = [(weight, weight.dtype) for weight in model.parameters()], model.config.dtype
    try:
        for layer in layers:
            if not (dtype := next(layer.get_base_layer().parameters()).dtype).is_floating_point:
                raise ValueError(f"its base has weights of type {dtype}, which nothing can be added to")
        for weight, _ in dtypes:
            weight.data = weight.data.float()
        model.config.dtype = torch.float32  # Unsloth's forwards cast embeddings and logits to it
        before = [log_probs(model, text) for text in texts]
        for layer in layers:
            layer.merge(safe_merge=True)
    except (ValueError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise OutOfMemory(
                f"{what}: a merge in float32 does not fit into memory ({first_line(error)}); merge it "
                "by export.py --to merged with CUDA_VISIBLE_DEVICES= and model.dtype=bfloat16, then use that model"
            ) from error
        raise ConfigError(f"{what}: this adapter cannot be merged ({error}); use it unmerged") from error
    unwrapped = model.get_base_model() if hasattr(model, "get_base_model") else model
    if shelf := shelf_of(unwrapped):
        shelf.fold()  # what LoRA has added counts as the layer's
        detach(unwrapped)
    base = model.unload() if hasattr(model, "unload") else model
    gap = max(distance(logps, log_probs(base, text)) for logps, text in zip(before, texts, strict=True))
    if not gap <= TOLERANCE:
        raise ConfigError(
            f"{what}: the merged model differs: in float32 its log-probs are {gap:.2g} nats off, expected at most "
            f"{TOLERANCE:g}; does the adapter change a layer that shares its weight, such as tied embeddings?"
        )
    for weight, dtype in dtypes:
        weight.data = weight.data.to(dtype)
    base.config.dtype = stated
    return base


def _refuse_unfoldable(model: nn.Module, what: str) -> None:
    """Raises ConfigError if an adapter other than LoRA has an effect that no weights have."""
    shelf = shelf_of(model.get_base_model() if hasattr(model, "get_base_model") else model)
    if obstacles := shelf.obstacles() if shelf else {}:
        raise ConfigError(f"{what}: not all of these adapters can be merged ({in_words(obstacles)}); use them unmerged")


def log_probs(model: nn.Module, text: list[int]) -> torch.Tensor:
    """Computes float32 log-probs (1, T, V) after the last TOKENS tokens of a text, by the model's own forward."""
    return model(input_ids=torch.tensor([text], device=model.device)).logits[:, -TOKENS:].float().log_softmax(-1)


def distance(left: torch.Tensor, right: torch.Tensor) -> float:
    """Returns the absolute gap of log-probs in nats, weighted by `left` over the vocabulary, mean over positions."""
    return float((left.exp() * (left - right).abs()).sum(-1).mean())


def write_merged(
    model: nn.Module, tokenizer: Any, prompts: list[list[int]], out: Path,
    finish: Callable[[Path, nn.Module], None] = lambda folder, read: None,
) -> None:  # fmt: skip
    """Writes a merged PeftModel as a folder for plain transformers, renamed to `out` once it is checked and finished.

    `finish` gets the folder and the model read from it, and may add files. Raises StorageError, and NumericError if
    the model read back is another one.
    """
    base = merged(model, str(out), prompts)
    with new_folder(out) as part:
        base.save_pretrained(part)
        apply_umask(part)
        tokenizer.save_pretrained(part)
        finish(part, _read_back(base, tokenizer, prompts, part))


@torch.no_grad()
def _read_back(base: nn.Module, tokenizer: Any, prompts: list[list[int]], folder: Path) -> nn.Module:
    """Returns the model in a folder, read by plain transformers. Raises NumericError if it is not the merged one."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    again = AutoModelForCausalLM.from_pretrained(
        folder, dtype="auto", attn_implementation=base.config._attn_implementation
    ).to(base.device)
    words = AutoTokenizer.from_pretrained(folder)
    texts = [tokenizer.decode(ids) for ids in prompts]
    is_same = all(torch.equal(log_probs(base.eval(), ids), log_probs(again.eval(), ids)) for ids in prompts)
    is_same = is_same and (words.chat_template, words(texts)["input_ids"]) == (
        tokenizer.chat_template, tokenizer(texts)["input_ids"]
    )  # fmt: skip
    if not is_same:
        raise NumericError(
            f"{folder}: read back, the merged model answers differently than before it was written: do not use it; "
            "check that peft and transformers have the pinned versions"
        )
    return again


def _refuse_unmergeable(folder: Path) -> None:
    """Raises ConfigError for an adapter that is no sum of weights, judging by its folder."""
    try:
        settings = adapter_config(folder)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{KEY}: {folder / ADAPTER_CONFIG} cannot be read ({error}); choose another folder"
        ) from error
    others = [name for name in UNMERGED if settings.get(name)]
    reason = ""
    if settings.get("peft_type") != "LORA":
        reason = f"its peft_type is {settings.get('peft_type')}, and only LORA is a sum of weights"
    elif (folder / EXTRA).exists():
        reason = f"{EXTRA} holds trained weights that PEFT does not know"
    elif others:
        reason = f"it has {' and '.join(others)}, which no sum can hold"
    if reason:
        raise ConfigError(f"{KEY}: '{folder}' cannot become part of its base: {reason}; use an adapter with LoRA only")


def _refuse_other_base(base: nn.Module, folder: Path, name: str) -> None:
    """Raises ConfigError if an adapter is known to be of other weights; warns if only its base's name differs."""
    if refuse_other_weights(base, folder, name, KEY):
        return
    of = adapter_config(folder).get("base_model_name_or_path")
    if not is_same_base(of, name):
        logger.warning("%s: %s was trained on %s; nothing tells whether %s has the same weights", KEY, folder, of, name)

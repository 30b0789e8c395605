"""Loads a frozen base and attaches adapters, by plain transformers or Unsloth.

Heavy packages are imported inside functions, because Unsloth must come before transformers, trl and peft.
"""

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lib.core.config import FUSED, OBSTACLES, UNSLOTH, Lora, Model, Oft, TinyLora, TrainedModel, Tuner, Vera, refusal
from lib.core.errors import ConfigError, OutOfMemory, first_line, is_out_of_memory
from lib.core.registry import did_you_mean
from lib.model.adapters import shelf
from lib.model.adapters.sites import is_transposed, linear_layers
from lib.model.merging import KEY, merge_saved
from lib.run.adapter_files import base_named
from lib.run.directory import ADAPTER_CONFIG
from lib.run.hub import local_adapter, offline_unless_reachable
from lib.run.machine import nvidia_gpus

logger = logging.getLogger(__name__)

VOCABULARIES = (  # every tokenizer has at least one of these files
    "tokenizer.json", "*.model", "vocab.json", "vocab.txt", "tekken.json", "*.tiktoken", "tokenization_*.py",
)  # fmt: skip
WIDTH_4_BITS = 64
# at import it warns of a kernel from a hub that only 4-bit models on a CPU would use
logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)


def start_backend(config: Model) -> str:
    """Imports what must be imported first, and returns the backend in use: "unsloth" or "plain".

    Chooses this process's GPU, before anything is loaded to one. Raises ConfigError for a driver that torch cannot use.
    """
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    elif problem := _unusable_driver():
        raise ConfigError(problem)
    backend = config.backend
    if backend == "auto":
        backend = "unsloth" if torch.cuda.is_available() else "plain"
        reason = refusal(UNSLOTH, config.adapters.names) if isinstance(config, TrainedModel) else ""
        if config.attn_implementation:
            reason = "Unsloth chooses the attention itself, and model.attn_implementation is set"
        if backend == "unsloth" and reason:
            backend = "plain"
            _warn(f"model.backend: auto uses plain transformers: {reason}")
    if backend == "unsloth":
        # a folder per process: several processes writing one compile cache race
        os.environ.setdefault("UNSLOTH_COMPILE_LOCATION", tempfile.mkdtemp(prefix="unsloth_compiled_"))
        try:
            import unsloth  # noqa: F401
        except Exception as error:  # it compiles and patches while it is imported
            on_cpu = "--no-deps $(grep ^unsloth requirements.txt)"
            how = "-r requirements.txt" if torch.cuda.is_available() else on_cpu
            reason = f"unsloth could not be imported ({first_line(error)}); pip install {how}"
            if config.backend == "unsloth":
                raise ConfigError(f"model.backend: {reason}, or set model.backend=plain") from error
            backend = "plain"
            _warn(f"model.backend: auto uses plain transformers: {reason} to train faster with less memory")
    from transformers.utils import logging as chatter

    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    return backend


def _unusable_driver() -> str:
    """Returns advice if there is an NVIDIA driver but torch, built for CUDA, sees no GPU; "" elsewhere."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not torch.version.cuda or hidden in ("", "-1"):
        return ""
    if not (gpus := nvidia_gpus()):
        return ""
    return (
        f"torch {torch.__version__} does not see the GPU here ({gpus[0]}): it was built for CUDA {torch.version.cuda}, "
        "which wants a newer driver (580 or later for CUDA 13). Update the driver, or set CUDA_VISIBLE_DEVICES= to run "
        "on the CPU"
    )


def has_bfloat16() -> bool:
    """True if the GPU computes in bfloat16 itself, from Ampere on; older ones emulate it, slower than float32."""
    return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)


def _warn(sentence: str) -> None:
    if os.environ.get("RANK", "0") == "0":  # one process logs for all
        logger.warning(sentence)


def load_base(config: Model, backend: str) -> tuple[nn.Module, Any]:
    """Loads the frozen base model and its tokenizer. Raises ConfigError with the reason if it cannot be loaded."""
    loader = _load_unsloth if backend == "unsloth" else _load_plain
    _check_folders(config)
    with _explained(config):
        model, tokenizer = loader(config)
    tokenizer = _with_template(tokenizer, config)
    if config.adapter:
        model = merge_saved(model, tokenizer, config.adapter, config.name)
    if config.load_in_4bit:
        # on a CPU that multiplies bfloat16, bitsandbytes packs a layer for good at its first forward without gradient,
        # and its kernel for packed weights passes none on
        for module in model.modules():
            if hasattr(module, "support_avx512bf16_for_cpu"):
                module.support_avx512bf16_for_cpu = False
        _try_4_bits(model)
    _without_dropout(model)
    return model, tokenizer


def _without_dropout(model: nn.Module) -> None:
    """Sets every dropout rate to zero: dropout would give the KL a noise floor and the two passes different masks.

    Models keep their rates in modules, in their config, and in attributes of their layers, such as `attention_dropout`.
    """
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for holder in (module, getattr(module, "config", None)):
            for name, rate in vars(holder).items() if holder else ():
                if isinstance(rate, float) and ("dropout" in name or name.endswith("pdrop")):
                    setattr(holder, name, 0.0)


def load_skeleton(config: Model) -> tuple[nn.Module, Any]:
    """Loads the architecture, without weights (on the meta device), and the tokenizer, for estimates.

    Raises ConfigError as `load_base` does.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    shared = {"revision": config.revision or "main", "trust_remote_code": config.trust_remote_code}
    _check_folders(config)
    with _explained(config):
        tokenizer = AutoTokenizer.from_pretrained(config.name, **shared)
        architecture = AutoConfig.from_pretrained(config.name, **shared)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(architecture, trust_remote_code=config.trust_remote_code)
    return model, _with_template(tokenizer, config)


def adapted_layers(model: nn.Module, tuner: Tuner) -> dict[str, nn.Module]:
    """Returns the linear layers of `model` that an adapter of PEFT's would be attached to, by name."""
    head, targets = model.get_output_embeddings(), tuner.layers
    return {
        name: module
        for name, module in linear_layers(model)
        if module is not head and (isinstance(targets, str) or any(_is_target(name, target) for target in targets))
    }


def _check_folders(config: Model) -> None:
    """Raises ConfigError for folders that do not hold what their keys say.

    These are an adapter as model.name, which transformers would silently apply to its base; a run, or another folder
    without a model; and a model without a vocabulary, for which transformers would make an empty tokenizer.
    """
    if config.adapter:
        local_adapter(config.adapter, KEY)
    folder = Path(config.name)
    if (folder / ADAPTER_CONFIG).exists():
        base = base_named(folder)
        both = f"model.name={base} model.adapter={config.name}"
        raise ConfigError(
            f"model.name: '{config.name}' is an adapter of {base}: give {both}, or merge it: python export.py "
            f"--config CONFIG {both} --to merged --out OUT, then model.name=OUT"
        )
    if folder.is_dir() and not (folder / "config.json").exists():
        inside = [str(folder / name) for name in ("final", "best") if (folder / name).is_dir()]
        what = f"is a run: give {' or '.join(inside)}" if inside else "has no config.json: give a folder with a model"
        raise ConfigError(f"model.name: the folder '{config.name}' {what}")
    if folder.is_dir() and not any(any(folder.glob(name)) for name in VOCABULARIES):
        raise ConfigError(
            f"model.name: '{config.name}' has no tokenizer.json, expected the tokenizer next to the model: copy the "
            "tokenizer's files of the model that it was made from, or have save_pretrained write them there"
        )


def _try_4_bits(model: nn.Module) -> None:
    """Raises ConfigError if a 4-bit model fails to run: its kernels need widths that are multiples of WIDTH_4_BITS."""
    ids = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    try:
        with torch.no_grad():
            model(input_ids=ids)
    except (AssertionError, RuntimeError, ValueError, NotImplementedError) as error:
        if is_out_of_memory(error):
            raise
        widths = {
            (module.in_features, module.out_features) for module in model.modules() if hasattr(module, "in_features")
        }
        odd = sorted(pair for pair in widths if any(width % WIDTH_4_BITS for width in pair))
        shown = f", and layers of {odd[0][0]} to {odd[0][1]} numbers are none" if odd else ""
        raise ConfigError(
            f"model.load_in_4bit: this model does not work in 4 bits here ({first_line(error)}): widths have to be "
            f"multiples of {WIDTH_4_BITS}{shown}; set model.load_in_4bit=false"
        ) from error


@contextlib.contextmanager
def _explained(config: Model) -> Iterator[None]:
    """Turns the loaders' errors into one sentence, and goes offline within seconds if the Hub does not answer."""
    from safetensors import SafetensorError

    is_local = Path(config.name).exists()
    with contextlib.nullcontext(True) if is_local else offline_unless_reachable() as online:
        try:
            yield
        except (MemoryError, OSError, ValueError, RuntimeError, SafetensorError) as error:
            if is_out_of_memory(error):
                raise OutOfMemory(
                    f"model.name: '{config.name}' does not fit into memory ({first_line(error)}); use a "
                    "smaller model, model.dtype=bfloat16, or on a GPU model.load_in_4bit=true"
                ) from error
            offline = "not a local folder, and the Hugging Face Hub cannot be reached"
            reason = first_line(error) if online else offline
            raise ConfigError(
                f"model.name: '{config.name}' could not be loaded ({reason}); give model.name=PATH of a local model "
                "folder (data/tiny_sums_base ships), build it as the config's first lines say, or connect to the Hub"
            ) from error


def _with_template(tokenizer: Any, config: Model) -> Any:
    """Returns the tokenizer with the config's template, the adapter's, or its own. Raises ConfigError without one."""
    if config.chat_template:
        tokenizer.chat_template = _template_text(config.chat_template)
    elif config.adapter and (path := local_adapter(config.adapter, KEY) / "chat_template.jinja").is_file():
        tokenizer.chat_template = path.read_text(encoding="utf-8")  # the template that the adapter was trained with
    if not tokenizer.chat_template:
        raise ConfigError(
            f"model.chat_template: the tokenizer of '{config.name}' has none; give one as Jinja text or as a file"
        )
    if tokenizer.pad_token_id is None:  # masks go by length, so any existing id will do; none is added
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _dtype(config: Model) -> torch.dtype:
    if config.dtype != "auto":
        return getattr(torch, config.dtype)
    return torch.bfloat16 if has_bfloat16() else torch.float32


def _template_text(template: str) -> str:
    path = Path(template)
    is_file = "\n" not in template and "{" not in template
    if is_file and not path.is_file():
        raise ConfigError(f"model.chat_template: '{template}' is neither a file nor Jinja text; give one of the two")
    return path.read_text(encoding="utf-8") if is_file else template


def _load_plain(config: Model) -> tuple[nn.Module, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

    shared = {"revision": config.revision or "main", "trust_remote_code": config.trust_remote_code}
    tokenizer = AutoTokenizer.from_pretrained(config.name, **shared)
    dtype = _dtype(config)
    if config.load_in_4bit:
        shared["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype
        )
    if config.attn_implementation:
        shared["attn_implementation"] = config.attn_implementation
    is_sharded = isinstance(config, TrainedModel) and config.sharded  # from main memory, whatever GPU there is
    on_gpu = torch.cuda.is_available() and not is_sharded
    device = {"": torch.cuda.current_device()} if on_gpu else None
    model = AutoModelForCausalLM.from_pretrained(config.name, dtype=dtype, device_map=device, **shared)
    return model, tokenizer


def _load_unsloth(config: Model) -> tuple[nn.Module, Any]:
    from unsloth import FastLanguageModel

    return FastLanguageModel.from_pretrained(
        model_name=config.name,
        max_seq_length=config.max_seq_length,
        dtype=_dtype(config),
        load_in_4bit=config.load_in_4bit,
        revision=config.revision,
        trust_remote_code=config.trust_remote_code,
        use_exact_model_name=True,  # not Unsloth's copy of it, whose hash adapters of other backends would not match
        use_gradient_checkpointing=config.gradient_checkpointing,  # not "unsloth": host offload stalls some machines
    )


def attach(base: nn.Module, config: TrainedModel, backend: str, seed: int) -> nn.Module:
    """Puts the adapters of a config on a frozen base: one of PEFT's, and those of our own.

    Raises ConfigError for one that has no place in this model.
    """
    tuner = config.adapters.tuner
    model = attach_tuner(base, tuner, config, backend, seed) if tuner else base
    shelf.attach(base, config.adapters, seed)
    return model


def attach_tuner(base: nn.Module, tuner: Tuner, config: Model, backend: str, seed: int) -> nn.Module:
    """Attaches one trainable adapter of PEFT's to `base`, equal for equal seeds whatever the backend.

    Raises ConfigError if a target cannot take it.
    """
    from peft import get_peft_model

    targets, key = tuner.layers, f"model.adapters.{tuner.key}"
    refuse_targets(tuner, base, config)
    try:
        if backend == "unsloth" and isinstance(tuner, Lora):
            from unsloth import FastLanguageModel

            model = FastLanguageModel.get_peft_model(
                base,
                r=tuner.r,
                lora_alpha=tuner.alpha,
                use_rslora=tuner.kind == "rslora",
                target_modules=targets,
                lora_dropout=0,
                bias="none",
                use_gradient_checkpointing=config.gradient_checkpointing,
                random_state=seed,
                max_seq_length=config.max_seq_length,
            )
        else:
            model = get_peft_model(base, _peft_config(tuner, targets, seed))
    except (TypeError, ValueError) as error:  # peft: a target that is a layer, but of a kind that takes no adapter
        raise ConfigError(
            f"{key}: not all of {targets} take this adapter in '{config.name}' ({error}); take lora, with "
            "lora.targets: all-linear or some of its linear layers"
        ) from error
    if backend == "plain" and config.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.enable_input_require_grads()
    _initialise(model, seed)
    return model


def _peft_config(tuner: Tuner, targets: str | list[str], seed: int) -> Any:
    """Returns the settings as PEFT takes them."""
    from peft import LoraConfig, OFTConfig, TinyLoraConfig, VeraConfig

    shared: dict[str, Any] = {"target_modules": targets, "task_type": "CAUSAL_LM"}
    if isinstance(tuner, Vera):
        return VeraConfig(r=tuner.r, projection_prng_key=seed, **shared)
    if isinstance(tuner, Oft):
        return OFTConfig(r=0, oft_block_size=tuner.block_size, use_cayley_neumann=False, **shared)
    if isinstance(tuner, TinyLora):
        return TinyLoraConfig(u=tuner.u, r=2, weight_tying=0.0, projection_seed=seed, **shared)
    assert isinstance(tuner, Lora)
    kinds = {"use_dora": tuner.kind == "dora", "use_rslora": tuner.kind == "rslora"}
    return LoraConfig(r=tuner.r, lora_alpha=tuner.alpha, lora_dropout=0.0, **kinds, **shared)


def _is_target(layer: str, target: str) -> bool:
    """True if `target` selects `layer`, by peft's rule: it is the whole name, or its end after a dot."""
    return layer == target or layer.endswith(f".{target}")


def refuse_targets(tuner: Tuner, base: nn.Module, config: Model) -> None:
    """Raises ConfigError unless every target is a layer: peft silently skips a misspelt one if another one fits.

    Also raises it for the output layer, and for transposed layers where the tuner does not take them.
    """
    targets = tuner.layers
    layers = {name for name, _ in linear_layers(base)}
    output = {name for name, module in base.named_modules() if module is base.get_output_embeddings()}
    ends = {name.rpartition(".")[2] for name in layers}
    for target in targets if isinstance(targets, list) else []:
        if not any(_is_target(name, target) for name in layers):
            raise ConfigError(
                f"model.adapters.lora.targets: '{target}' is no linear layer of '{config.name}'"
                f"{did_you_mean(target, ends, '.')} It has: {', '.join(sorted(ends))}; or set all-linear"
            )
        if any(_is_target(name, target) for name in output):
            raise ConfigError(
                f"model.adapters.lora.targets: '{target}' is the output layer, which stays frozen: that is what lets "
                "log-probs be computed without keeping the logits; remove it"
            )
    obstacle = OBSTACLES[FUSED].get(tuner.family)
    transposed = [name for name, module in adapted_layers(base, tuner).items() if is_transposed(module)]
    if obstacle and transposed:
        raise ConfigError(
            f"model.adapters.{tuner.key}: {obstacle.reason}, and '{config.name}' has {len(transposed)}, such as "
            f"'{transposed[0]}'; take lora in its place"
        )


def _initialise(model: nn.Module, seed: int) -> None:
    """Draws LoRA's own initialisation from a local generator: the global one differs between the two loaders."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in sorted(model.named_parameters()):
        if "lora_A" in name:
            bound = parameter.shape[1] ** -0.5  # kaiming_uniform with a = sqrt(5)
            values = torch.rand(parameter.shape, generator=generator) * (2 * bound) - bound
            parameter.data.copy_(values)

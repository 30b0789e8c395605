"""The policy: a frozen base, one LoRA adapter, and the log-probs of tokens under it; plain transformers or Unsloth.

Heavy packages are imported inside functions, because Unsloth must come before transformers, trl and peft.
"""

import contextlib
import functools
import inspect
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from lib.adapters import base_named
from lib.config import Lora, Model
from lib.errors import ConfigError, NumericError, OutOfMemory, first_line, is_out_of_memory
from lib.head import Head, token_scores
from lib.hub import offline_unless_reachable
from lib.llama import Llama, attend_within
from lib.logits import backbone_of, measure
from lib.memory import one_error
from lib.merging import KEY, merge_saved
from lib.registry import did_you_mean
from lib.runlog import ADAPTER_CONFIG, adapter_in

logger = logging.getLogger(__name__)

VOCABULARIES = (  # every tokenizer has at least one of these files
    "tokenizer.json", "*.model", "vocab.json", "vocab.txt", "tekken.json", "*.tiktoken", "tokenization_*.py",
)  # fmt: skip
WIDTH_4_BITS = 64
CACHES = ("past_key_values", "cache_params", "state")  # the names that models give to their cache
PADDED_TOKENS = 8  # length of the text, and of the padding before it, that `takes_padding` tries


def start_backend(config: Model) -> str:
    """Imports what must be imported first, and returns the backend in use: "unsloth" or "plain"."""
    backend = config.backend
    if backend == "auto":
        backend = "unsloth" if torch.cuda.is_available() else "plain"
    if backend == "unsloth":
        # a folder per process: several processes writing one compile cache race
        os.environ.setdefault("UNSLOTH_COMPILE_LOCATION", tempfile.mkdtemp(prefix="unsloth_compiled_"))
        try:
            import unsloth  # noqa: F401
        except ImportError as error:
            how = "-r requirements.txt" if torch.cuda.is_available() else "--no-deps"
            told = f"unsloth could not be imported ({error}); pip install {how} -r requirements-unsloth.txt"
            if config.backend == "unsloth":
                raise ConfigError(f"model.backend: {told}, or set model.backend=plain") from error
            backend = "plain"
            if os.environ.get("RANK", "0") == "0":  # one process logs for all
                logger.warning("model.backend: auto uses plain transformers: %s to train faster with less memory", told)
    if not torch.cuda.is_available():  # it warns of a missing kernel that only 4-bit models on a CPU use
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    from transformers.utils import logging as chatter

    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    return backend


def load_base(config: Model, backend: str) -> tuple[nn.Module, object]:
    """Loads the frozen base model and its tokenizer. Raises ConfigError with the reason if it cannot be loaded."""
    loader = _load_unsloth if backend == "unsloth" else _load_plain
    _check_folders(config)
    with _explained(config):
        model, tokenizer = loader(config)
    if config.adapter:
        model = merge_saved(model, Path(config.adapter), config.name)
    if config.load_in_4bit:
        _try_4_bits(model)
    _without_dropout(model)
    return model, _with_template(tokenizer, config)


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


def load_skeleton(config: Model) -> tuple[nn.Module, object]:
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


def adapted_layers(model: nn.Module, lora: Lora) -> list[nn.Linear]:
    """Returns the linear layers of `model` that an adapter would be attached to."""
    head = model.get_output_embeddings()
    linears = [(name, m) for name, m in model.named_modules() if isinstance(m, nn.Linear) and m is not head]
    if isinstance(lora.targets, list):
        linears = [(name, m) for name, m in linears if any(_is_target(name, each) for each in lora.targets)]
    return [module for _, module in linears]


def _check_folders(config: Model) -> None:
    """Raises ConfigError for folders that do not hold what their keys say.

    These are an adapter as model.name, which transformers would silently apply to its base; a run; and a model without
    a vocabulary, for which transformers would make an empty tokenizer.
    """
    if config.adapter:
        adapter_in(Path(config.adapter), KEY)
    folder = Path(config.name)
    if (folder / ADAPTER_CONFIG).exists():
        base = base_named(folder)
        both = f"model.name={base} model.adapter={config.name}"
        raise ConfigError(
            f"model.name: '{config.name}' is an adapter of {base}: give {both}, or merge it: python evaluate.py "
            f"--config CONFIG {both} --merge OUT, then model.name=OUT"
        )
    inside = [folder / name for name in ("final", "best") if (folder / name).is_dir()]
    if inside and not (folder / "config.json").exists():
        raise ConfigError(f"model.name: '{config.name}' is a run: give {' or '.join(map(str, inside))}")
    if (folder / "config.json").exists() and not any(any(folder.glob(name)) for name in VOCABULARIES):
        raise ConfigError(
            f"model.name: '{config.name}' has no tokenizer.json, expected the tokenizer beside the model: copy the "
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
            with one_error():
                yield
        except torch.OutOfMemoryError as error:
            raise OutOfMemory(
                f"model.name: '{config.name}' does not fit into memory ({first_line(error)}); use a "
                "smaller model, model.dtype=bfloat16, or on a GPU model.load_in_4bit=true"
            ) from error
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            offline = "not a local folder, and the Hugging Face Hub cannot be reached"
            reason = first_line(error) if online else offline
            raise ConfigError(
                f"model.name: '{config.name}' could not be loaded ({reason}); give model.name=PATH of a local model "
                "folder, or connect to the Hub"
            ) from error


def _with_template(tokenizer: Any, config: Model) -> Any:
    """Returns the tokenizer with the config's template, the adapter's, or its own. Raises ConfigError without one."""
    if config.chat_template:
        tokenizer.chat_template = _template_text(config.chat_template)
    elif config.adapter and (own := Path(config.adapter) / "chat_template.jinja").is_file():
        tokenizer.chat_template = own.read_text(encoding="utf-8")  # the template that the adapter was trained with
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
    has_bfloat16 = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    return torch.bfloat16 if has_bfloat16 else torch.float32


def _template_text(template: str) -> str:
    path = Path(template)
    is_file = "\n" not in template and "{" not in template
    if is_file and not path.is_file():
        raise ConfigError(f"model.chat_template: '{template}' is neither a file nor Jinja text; give one of the two")
    return path.read_text(encoding="utf-8") if is_file else template


def _load_plain(config: Model) -> tuple[nn.Module, object]:
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
    device = {"": int(os.environ.get("LOCAL_RANK", 0))} if torch.cuda.is_available() else None
    model = AutoModelForCausalLM.from_pretrained(config.name, dtype=dtype, device_map=device, **shared)
    return model, tokenizer


def _load_unsloth(config: Model) -> tuple[nn.Module, object]:
    from unsloth import FastLanguageModel

    return FastLanguageModel.from_pretrained(
        model_name=config.name,
        max_seq_length=config.max_seq_length,
        dtype=_dtype(config),
        load_in_4bit=config.load_in_4bit,
        revision=config.revision,
        trust_remote_code=config.trust_remote_code,
        use_gradient_checkpointing=config.gradient_checkpointing,  # not "unsloth": host offload stalls some machines
    )


def attach_lora(base: nn.Module, lora: Lora, config: Model, backend: str, seed: int) -> nn.Module:
    """Attaches one trainable LoRA adapter to `base`, equal for equal seeds whatever the backend.

    Raises ConfigError if a target cannot take it.
    """
    from peft import LoraConfig, get_peft_model

    targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    _refuse_unknown(targets, base, config)
    try:
        if backend == "unsloth":
            from unsloth import FastLanguageModel

            model = FastLanguageModel.get_peft_model(
                base,
                r=lora.r,
                lora_alpha=lora.alpha,
                target_modules=targets,
                lora_dropout=0,
                bias="none",
                use_gradient_checkpointing=config.gradient_checkpointing,
                random_state=seed,
                max_seq_length=config.max_seq_length,
            )
        else:
            settings = {"r": lora.r, "lora_alpha": lora.alpha, "target_modules": targets, "lora_dropout": 0.0}
            model = get_peft_model(base, LoraConfig(**settings, task_type="CAUSAL_LM"))
    except ValueError as error:  # peft: a target that is a layer, but of a kind that takes no adapter
        raise ConfigError(
            f"lora.targets: {targets} do not all take an adapter in '{config.name}' ({error}); name some of its linear "
            f"layers{'' if targets == 'all-linear' else ', or set lora.targets=all-linear'}"
        ) from error
    if backend == "plain" and config.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.enable_input_require_grads()
    _initialise(model, seed)
    return model


def _is_target(layer: str, target: str) -> bool:
    """Tells whether `target` selects `layer`, by peft's rule: it is the whole name, or its end after a dot."""
    return layer == target or layer.endswith(f".{target}")


def _refuse_unknown(targets: str | list[str], base: nn.Module, config: Model) -> None:
    """Raises ConfigError unless every target is a layer: peft silently skips a misspelt one if another one fits.

    Also raises it for the output layer.
    """
    layers = {name for name, module in base.named_modules() if isinstance(module, nn.Linear)}
    output = {name for name, module in base.named_modules() if module is base.get_output_embeddings()}
    ends = {name.rpartition(".")[2] for name in layers}
    for target in targets if isinstance(targets, list) else []:
        if not any(_is_target(name, target) for name in layers):
            raise ConfigError(
                f"lora.targets: '{target}' is no linear layer of '{config.name}'{did_you_mean(target, ends)} "
                f"It has: {', '.join(sorted(ends))}; or set lora.targets=all-linear"
            )
        if any(_is_target(name, target) for name in output):
            raise ConfigError(
                f"lora.targets: '{target}' is the output layer, which stays frozen: that is what lets log-probs be "
                "computed without keeping the logits; remove it"
            )


def _initialise(model: nn.Module, seed: int) -> None:
    """Draws LoRA's own initialisation from a local generator: the global one differs between the two loaders."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in sorted(model.named_parameters()):
        if "lora_A" in name:
            bound = parameter.shape[1] ** -0.5  # kaiming_uniform with a = sqrt(5)
            values = torch.rand(parameter.shape, generator=generator) * (2 * bound) - bound
            parameter.data.copy_(values)


class Inputs(NamedTuple):
    """Texts to score, padded on the right; N of their tokens are scored."""

    ids: torch.Tensor  # (B, T)
    positions: torch.Tensor  # (B, T), for the rotary embedding
    predictors: torch.Tensor  # (N,) index, in the flattened (B, T), of the token before each scored one
    targets: torch.Tensor  # (N,) the scored tokens' ids
    branch: torch.Tensor | None = None  # (B, T) a token sees those before it in its own branch and in branch 0
    trunk: int = 0  # at least this many tokens of each text come before its branches


class Policy(nn.Module):
    """The model under training. `forward` scores tokens; `reference_mode()` is the same model with adapters off."""

    def __init__(self, model: nn.Module, temperature: float, backend: str = "plain"):
        super().__init__()
        self.model = model  # a PeftModel
        self.temperature = temperature
        self.backend = backend
        # read once: Unsloth's for_inference clears the flag
        self._checkpointing = bool(getattr(self.language_model, "is_gradient_checkpointing", False))
        self._matmul_parameters = sum(
            parameter.numel() for name, parameter in self.backbone.named_parameters()
            if parameter.ndim > 1 and "embed" not in name
        )  # fmt: skip
        self._adapted = [module for module in model.modules() if hasattr(module, "lora_A")]
        model.eval()
        self._around = measure(self.language_model)
        self._bases: list[tuple[nn.Parameter, torch.Tensor]] = []  # merged weights, and their unmerged data
        is_whole = attends_to_everything(self.language_model)
        self._is_patched = runs_foreign_layers(self.backbone)
        self.takes_masks = is_whole and not self._is_patched
        self.llama = Llama.of(self.language_model) if is_whole else None  # reads weights alone, patched layers or not
        self.takes_slab = self.takes_masks or self.llama is not None  # it can be sampled in a slab, see lib/decoder.py
        self.train_mode()

    @property
    def language_model(self) -> nn.Module:
        """Returns the causal language model inside the adapter's wrapper; LoRA layers are already inside it."""
        return self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model

    @property
    def backbone(self) -> nn.Module:
        """Returns the language model without its output layer."""
        return backbone_of(self.language_model)

    @property
    def masks_are_quick(self) -> bool:
        """Tells whether texts are scored with masks: only with sdpa, which both forwards then use.

        Not with Unsloth, which is chosen for its own training path.
        """
        is_own = self.takes_masks and self.backend == "plain"
        return is_own and self.language_model.config._attn_implementation == "sdpa"

    def say_sampling(self, say: Callable[[str], None]) -> None:
        """Reports it if answers are sampled in the slower of the two ways."""
        if not self.takes_slab:
            kind = self.language_model.config.model_type
            say(f"a model of type {kind} is sampled batch by batch through {self.backend}, by its own cache: slower")

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def trainable(self) -> list[nn.Parameter]:
        """Returns the adapter's parameters. Raises NumericError if there are none."""
        found = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        if not found:
            raise NumericError(
                "no parameter is trainable: the adapter was loaded frozen or lora.targets matched nothing"
            )
        return found

    @property
    def head(self) -> Head:
        """Returns the frozen output layer, with the sampling temperature folded in."""
        return self.head_at(self.temperature)

    def head_at(self, temperature: float) -> Head:
        """Returns the frozen output layer, with another temperature folded in."""
        return self._around.head(self.language_model.get_output_embeddings(), temperature)

    def sharing_pays(self, trunk: int, branches: list[int]) -> bool:
        """Tells whether one forward of a trunk with all branches costs less than one per branch; lengths in tokens.

        Fewer tokens pass through the matrices, but the branches attend to each other too, masked or not, whereas plain
        causal attention skips one half.
        """
        if not self.masks_are_quick:
            return False
        config = self.language_model.config
        heads = config.num_attention_heads
        width = heads * (getattr(config, "head_dim", None) or config.hidden_size // heads)
        weights = self._matmul_parameters / config.num_hidden_layers
        pair = 2 * width / weights  # cost of attending to one position, in passes of one token through the matrices
        joint = trunk + sum(branches)
        apart = [trunk + length for length in branches]
        attended = trunk**2 / 2 + sum(branches) * joint if self.llama else joint**2
        return joint + pair * attended < sum(apart) + pair * sum(total**2 for total in apart) / 2

    def hidden_states(self, inputs: Inputs) -> torch.Tensor:
        """Returns hidden states (N, d) from which the N scored tokens are predicted."""
        mask = None  # padding is on the right, where causal attention does not look
        if inputs.branch is not None:
            own, other = inputs.branch[:, :, None], inputs.branch[:, None, :]
            mask = ((other == 0) | (other == own)).tril()[:, None]  # (B, 1, T, T)
        if self.llama and self.masks_are_quick and not torch.is_autocast_enabled(self.device.type):
            attend = attend_within(mask, inputs.trunk, self.language_model.dtype)
            return self.llama(inputs.ids, inputs.positions, attend, inputs.predictors)
        hidden = self._read(inputs.ids, inputs.positions, mask).last_hidden_state
        return hidden.flatten(0, 1)[inputs.predictors]

    def _read(self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, **cache: Any) -> Any:
        """Returns the backbone's output. Omits arguments that its forward does not take: it derives them itself."""
        arguments = {"input_ids": ids, "attention_mask": mask, "position_ids": positions, "use_cache": bool(cache)}
        known = inspect.signature(self.backbone.forward).parameters.values()
        takes_all = any(each.kind is each.VAR_KEYWORD for each in known)
        names = {each.name for each in known}
        return self.backbone(
            **{name: value for name, value in arguments.items() if takes_all or name in names}, **cache
        )

    def next_logits(
        self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, cache: Any, temperature: float
    ) -> tuple[torch.Tensor, object]:
        """Returns float32 logits (B, V) after new tokens (B, Q), and the model's own cache, extended by them.

        mask (B, T) is 1 for tokens, those in the cache included, and 0 for padding. Needs generation mode. Raises
        ConfigError if the model keeps no cache.
        """
        head = self.head_at(temperature)
        if self.backend == "unsloth":  # only its whole model can continue from its cache
            arguments = {"input_ids": ids, "attention_mask": mask, "position_ids": positions, "logits_to_keep": 1}
            with _hidden_states_for_logits():
                output = self.language_model(**arguments, past_key_values=cache, use_cache=True)
            last = output.logits[:, -1]
            if last.shape[-1] != head.weight.shape[1]:  # an Unsloth model that returns logits all the same
                return last.float() / temperature, output.past_key_values
            return head.logits(last), output.past_key_values
        if self._cache_name != CACHES[0]:  # a recurrent state has no place per token: the mask is that of the new ones
            mask = mask[:, -ids.shape[1] :]
        output = self._read(ids, positions, mask, **{self._cache_name: cache})
        cache = getattr(output, self._cache_name, None)
        if cache is None:
            raise ConfigError(
                f"model.name: a model of type {self.language_model.config.model_type} has no cache of what it has "
                "read, so that it cannot write token by token; use a decoder"
            )
        return head.logits(output.last_hidden_state[:, -1]), cache

    @property
    def _cache_name(self) -> str:
        """Returns the name of the backbone's cache argument, one of CACHES."""
        names = inspect.signature(self.backbone.forward).parameters
        return next((name for name in CACHES if name in names), CACHES[0])

    @functools.cached_property
    def takes_padding(self) -> bool:
        """Tells whether padding on the left is ignored, which it is not if recurrent layers read or count it.

        Measured on a short text, whose last token is decoded with the cache.
        """
        if self.backend == "unsloth":
            return True
        text = torch.arange(PADDED_TOKENS, device=self.device)[None] % len(self.head.weight)
        seen, padding = torch.ones_like(text), torch.zeros_like(text)
        logits = []
        for ids, mask in ((text, seen), (torch.cat([padding, text], 1), torch.cat([padding, seen], 1))):
            positions = (mask.cumsum(-1) - 1).clamp(min=0)
            with torch.no_grad():
                _, cache = self.next_logits(ids[:, :-1], positions[:, :-1], mask[:, :-1], None, 1.0)
                logits.append(self.next_logits(ids[:, -1:], positions[:, -1:], mask, cache, 1.0)[0].log_softmax(-1))
        bare, padded = logits
        tolerance = 1e-3 if self.language_model.dtype == torch.float32 else 0.1  # rounding
        return bool((padded - bare).abs().mean() <= tolerance)

    def forward(
        self, inputs: Inputs, ref_hidden: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Returns log-prob, entropy and exact KL, each (N,), of the scored tokens.

        Prompt, retry and pad positions are dropped before the head. `ref_hidden` (N, d) switches the KL on.
        """
        return token_scores(self.hidden_states(inputs), self.head, inputs.targets, ref_hidden)

    @torch.no_grad()
    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns log-probs (N,) and hidden states (N, d) of the scored tokens under the reference, gradient off."""
        with self.reference_mode():
            hidden = self.hidden_states(inputs)
        return token_scores(hidden, self.head, inputs.targets)[0], hidden

    @contextlib.contextmanager
    def reference_mode(self) -> Iterator[None]:
        """Turns every adapter off, merged or not, so that the frozen base answers. Restores them on exceptions too."""
        merged = [(weight, weight.data) for weight, _ in self._bases]
        _put_back(self._bases)
        try:
            with self._adapters_off():
                yield
        finally:
            _put_back(merged)

    def snapshot(self) -> list[torch.Tensor]:
        """Copies the adapter's weights to the CPU."""
        return [parameter.detach().to("cpu", copy=True) for parameter in self.trainable]

    @contextlib.contextmanager
    def wearing(self, weights: list[torch.Tensor]) -> Iterator[None]:
        """Replaces the adapter's weights with a snapshot, and restores them untouched.

        This is a second adapter on the same base, without a name that saving and merging would have to know.
        """
        pairs = [(parameter, parameter.data) for parameter in self.trainable]
        try:
            for (parameter, data), other in zip(pairs, weights, strict=True):
                parameter.data = other.to(data.device, data.dtype)
            yield
        finally:
            _put_back(pairs)

    @contextlib.contextmanager
    def _adapters_off(self) -> Iterator[None]:
        """Turns adapters off by the flag that every layer of peft and Unsloth checks.

        peft's own switch takes as long as a forward of a small model.
        """
        before = [layer._disable_adapters for layer in self._adapted]
        try:
            for layer in self._adapted:
                layer._disable_adapters = True
            yield
        finally:
            for layer, was in zip(self._adapted, before, strict=True):
                layer._disable_adapters = was

    def train_mode(self) -> None:
        """Prepares for scoring with gradient, in eval() except for Unsloth and for checkpointing, which need train().

        Dropout is zero everywhere, but in train() some models also sample the experts of a token, or rescale weights.
        """
        if self.backend == "unsloth":
            from unsloth import FastLanguageModel

            FastLanguageModel.for_training(self.model, use_gradient_checkpointing=self._checkpointing)
        self.model.train(self.backend == "unsloth" or self._checkpointing)

    @contextlib.contextmanager
    def generation_mode(self) -> Iterator[nn.Module]:
        """Yields the language model ready to sample: no gradient, cache on, checkpointing off; restored afterwards.

        The adapter is merged where that is exact, except in the Llama family, where `Llama.merged` makes copies.
        """
        if self.backend == "unsloth":
            from unsloth import FastLanguageModel

            FastLanguageModel.for_inference(self.model)
        self.model.eval()
        try:
            with torch.no_grad(), self._merged():
                yield self.language_model
        finally:
            self.train_mode()

    @contextlib.contextmanager
    def _merged(self) -> Iterator[None]:
        """Replaces W with W + scaling B A where that is exact, so that sampling pays nothing for the adapter.

        Exact means float32: in bfloat16 the sum would be rounded, and the sampled policy would not be the trained one.
        Nor is it exact if a model reads W itself, past the adapter, as the state-space layers of stateful ones do.
        W itself is only set aside, never written to, so it cannot drift.
        """
        from peft.tuners.lora import Linear

        layers = self._adapted
        is_exact = all(
            isinstance(layer, Linear) and layer.get_base_layer().weight.dtype == torch.float32 for layer in layers
        )
        is_exact = is_exact and not getattr(self.language_model, "_is_stateful", False)
        is_on = not any(layer.disable_adapters for layer in layers)
        if self._is_patched or self.llama or not layers or not is_exact or not is_on:
            yield
            return
        weights = [layer.get_base_layer().weight for layer in layers]
        self._bases = [(weight, weight.data) for weight in weights]
        try:
            for layer, weight in zip(layers, weights, strict=True):
                for adapter in layer.active_adapters:
                    weight.data = weight.data + layer.get_delta_weight(adapter)
            with self._adapters_off():
                yield
        finally:
            _put_back(self._bases)
            self._bases = []


def _put_back(weights: list[tuple[nn.Parameter, torch.Tensor]]) -> None:
    for weight, data in weights:
        weight.data = data


def attends_to_everything(model: nn.Module) -> bool:
    """Tells whether every layer of `model` attends to its whole past, through transformers' own interface alone.

    Then a mask (B, 1, Q, T) can say what each token sees, and any cache that stores keys and values will do.
    """
    config = model.config
    kinds = getattr(config, "layer_types", None)
    if kinds is None and getattr(config, "use_sliding_window", True):
        kinds = ["sliding"] if getattr(config, "sliding_window", None) else []
    others = ("attn_logit_softcapping", "kv_lora_rank", "alibi")  # attention with extra terms or other shapes
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        config.get_text_config() is config  # one model, not one among several
        and model._supports_attention_backend
        and model._can_compile_fullgraph  # nothing recurrent
        and set(kinds or ()) <= {"full_attention"}
        and not any(getattr(config, name, None) for name in others)
        and not any(name.endswith(".sinks") for name, _ in model.named_parameters())
        and rope.get("rope_type") not in ("dynamic", "longrope")  # its frequencies depend on the longest row of a batch
    )


def runs_foreign_layers(backbone: nn.Module) -> bool:
    """Tells whether Unsloth has replaced the forwards of `backbone`'s classes with its own, as it does on a GPU.

    These support neither masks (B, 1, Q, T) nor any cache but their own.
    """
    return any(getattr(type(part).forward, "__module__", "").startswith("unsloth") for part in backbone.modules())


@contextlib.contextmanager
def _hidden_states_for_logits() -> Iterator[None]:
    """Makes Unsloth's models return hidden states in place of logits, which would be rounded to bfloat16."""
    name = "UNSLOTH_RETURN_HIDDEN_STATES"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def stop_ids(model: nn.Module, tokenizer: Any) -> frozenset[int]:
    """Returns every token id that ends an answer: the generation config's and the tokenizer's.

    Raises ConfigError if there is none.
    """
    declared = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ids = {declared} if isinstance(declared, int) else set(declared or ())
    if tokenizer.eos_token_id is not None:
        ids.add(tokenizer.eos_token_id)
    if not ids:
        raise ConfigError("model.name: neither the model nor its tokenizer names an end-of-sequence token; add one")
    return frozenset(ids)

"""The policy: a frozen base, its adapters, and the log-probs of tokens under it."""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import nn

from engine import Head, Llama, TeacherStates, attend_within, backbone_of, is_sharded, teacher_kl, token_scores
from lib.core.errors import ConfigError, NumericError
from lib.model.adapters.shelf import shelf_of
from lib.model.logits import measure

CACHES = ("past_key_values", "cache_params", "state")  # the names that models give to their cache
PADDED_TOKENS = 8  # length of the text, and of the padding before it, that `supports_padding` tries


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
        self.model = model  # the base with its adapters: PEFT's in a PeftModel, those of the shelf in hooks
        self.temperature = temperature
        self.backend = backend
        # read once: Unsloth's for_inference clears the flag
        self._checkpointing = bool(getattr(self.language_model, "is_gradient_checkpointing", False))
        self._matmul_parameters = sum(
            parameter.numel() for name, parameter in self.backbone.named_parameters()
            if parameter.ndim > 1 and "embed" not in name
        )  # fmt: skip
        self._adapted = [module for module in model.modules() if hasattr(module, "_disable_adapters")]  # PEFT's
        self.shelf = shelf_of(self.language_model)  # the adapters that are not PEFT's
        model.eval()
        self._head = measure(self.language_model).head(self.language_model.get_output_embeddings())
        self._bases: list[tuple[nn.Parameter, torch.Tensor]] = []  # merged weights, and their unmerged data
        is_whole = attends_to_everything(self.language_model)
        self._is_patched = runs_foreign_layers(self.backbone)
        self.supports_masks = is_whole and not self._is_patched
        self.is_sharded = is_sharded(model)
        # a forward that reads weights alone, patched layers or not, and calls no hooks
        is_bare = is_whole and self.shelf is None and not self.is_sharded
        self.llama = Llama.of(self.language_model) if is_bare else None
        self.supports_slab = self.supports_masks or self.llama is not None  # see engine/decoder.py
        self.train_mode()

    @functools.cached_property
    def language_model(self) -> nn.Module:
        """Returns the causal language model inside the adapter's wrapper; LoRA layers are already inside it."""
        return self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model

    @functools.cached_property
    def backbone(self) -> nn.Module:
        """Returns the language model without its output layer."""
        return backbone_of(self.language_model)

    @property
    def masks_are_quick(self) -> bool:
        """True if texts are scored with masks: only with sdpa, which both forwards then use.

        Not with Unsloth, which is chosen for its own training path.
        """
        is_own = self.supports_masks and self.backend == "plain"
        return is_own and self.language_model.config._attn_implementation == "sdpa"

    def say_sampling(self, say: Callable[[str], None]) -> None:
        """Reports it if answers are sampled in the slower of the two ways."""
        if not self.supports_slab:
            kind = self.language_model.config.model_type
            say(f"a model of type {kind} is sampled batch by batch through {self.backend}, by its own cache: slower")

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def trainable(self) -> list[nn.Parameter]:
        """Returns the adapter's parameters. Raises NumericError if there are none."""
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        if not parameters:
            raise NumericError(
                "no parameter is trainable: the adapter was loaded frozen, or no target in model.adapters matched"
            )
        return parameters

    @property
    def head(self) -> Head:
        """Returns the frozen output layer, with the sampling temperature folded in."""
        return self.head_at(self.temperature)

    def head_at(self, temperature: float) -> Head:
        """Returns the frozen output layer, with another temperature folded in."""
        return replace(self._head, temperature=temperature)

    def should_share_trunk(self, trunk: int, branches: list[int]) -> bool:
        """True if one forward of a trunk with all branches costs less than one per branch; lengths in tokens.

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

    @property
    def prefix(self) -> list[int]:
        """Returns the ids that come before each prompt: those of a soft prompt, unless adapters are off."""
        soft = self.shelf.soft_prompt if self.shelf else None
        return soft.ids if soft else []

    def hidden_states(self, inputs: Inputs) -> torch.Tensor:
        """Returns hidden states (N, d) from which the N scored tokens are predicted."""
        if prefix := self.prefix:
            inputs = after_prefix(prefix, inputs)
        mask = None  # padding is on the right, where causal attention does not look
        if inputs.branch is not None:
            query_branch, key_branch = inputs.branch[:, :, None], inputs.branch[:, None, :]
            mask = ((key_branch == 0) | (key_branch == query_branch)).tril()[:, None]  # (B, 1, T, T)
        if self.llama and self.masks_are_quick and not torch.is_autocast_enabled(self.device.type):
            attend = attend_within(mask, inputs.trunk, self.language_model.dtype)
            return self.llama(inputs.ids, inputs.positions, attend, inputs.predictors)
        hidden = self._read(inputs.ids, inputs.positions, mask).last_hidden_state
        return hidden.flatten(0, 1)[inputs.predictors]

    def _read(self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, **cache: Any) -> Any:
        """Returns the backbone's output. Omits arguments that its forward does not take: it derives them itself."""
        arguments = {"input_ids": ids, "attention_mask": mask, "position_ids": positions, "use_cache": bool(cache)}
        parameters = inspect.signature(self.backbone.forward).parameters.values()
        takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        names = {parameter.name for parameter in parameters}
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
    def supports_padding(self) -> bool:
        """True if padding on the left is ignored, which it is not if recurrent layers read or count it.

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
        self, inputs: Inputs, ref_hidden: torch.Tensor | None = None, teacher: TeacherStates | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Returns log-prob, entropy, exact KL to the reference and KL to a teacher, each (N,), of the scored tokens.

        Prompt, retry and pad positions are dropped before the head. `ref_hidden` (N, d) switches the first KL on,
        `teacher` the second, which is None without one.
        """
        hidden = self.hidden_states(inputs)
        scores = token_scores(hidden, self.head, inputs.targets, ref_hidden)
        return *scores, None if teacher is None else teacher_kl(hidden, self.head, teacher)

    @torch.no_grad()
    def reference(self, inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns log-probs (N,) and hidden states (N, d) of the scored tokens under the reference, gradient off."""
        with self.reference_mode():
            hidden = self.hidden_states(inputs)
        return token_scores(hidden, self.head, inputs.targets)[0], hidden

    @property
    def is_reference(self) -> bool:
        """True if every adapter is off now."""
        shelf = self.shelf or ()
        return all(layer._disable_adapters for layer in self._adapted) and not any(adapter.is_on for adapter in shelf)

    @contextlib.contextmanager
    def reference_mode(self) -> Iterator[None]:
        """Turns every adapter off, merged or not, so that the frozen base answers. Restores them on exceptions too."""
        merged = [(weight, weight.data) for weight, _ in self._bases]
        _put_back(self._bases)
        try:
            with self._adapters(is_on=False):
                yield
        finally:
            _put_back(merged)

    def snapshot(self) -> list[torch.Tensor]:
        """Copies the adapter's weights to the CPU."""
        return [parameter.detach().to("cpu", copy=True) for parameter in self.trainable]

    @property
    def alpha(self) -> float:
        """Returns how much of their effect the adapters that are not PEFT's have: below 1 while they warm up."""
        return self.shelf.alpha if self.shelf else 1.0

    @contextlib.contextmanager
    def with_adapter(self, weights: list[torch.Tensor], alpha: float | None = None) -> Iterator[None]:
        """Replaces the adapter's weights with a snapshot, and restores them untouched; `alpha`, if given, likewise.

        This is a second adapter on the same base, without a name that saving and merging would have to know. It is on
        within `reference_mode` too.
        """
        pairs, before = [(parameter, parameter.data) for parameter in self.trainable], self.alpha
        try:
            if self.shelf and alpha is not None:
                self.shelf.blend(alpha)
            for (parameter, data), weight in zip(pairs, weights, strict=True):
                parameter.data = weight.to(data.device, data.dtype)
            with self._adapters(is_on=True):
                yield
        finally:
            _put_back(pairs)
            if self.shelf:
                self.shelf.blend(before)

    @contextlib.contextmanager
    def _adapters(self, is_on: bool) -> Iterator[None]:
        """Turns every adapter on or off for a while."""
        with self._lora(is_on), self.shelf.switched(is_on) if self.shelf else contextlib.nullcontext():
            yield

    @contextlib.contextmanager
    def _lora(self, is_on: bool) -> Iterator[None]:
        """Turns LoRA on or off for a while, by the flag that every layer of peft and Unsloth checks.

        peft's own switch takes as long as a forward of a small model.
        """
        before = [layer._disable_adapters for layer in self._adapted]
        try:
            for layer in self._adapted:
                layer._disable_adapters = not is_on
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

        The adapter is merged where that is exact, except in the Llama family, where `Llama.for_decoding` makes copies.
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
            isinstance(layer, Linear)
            and not layer.lora_variant
            and layer.get_base_layer().weight.dtype == torch.float32
            for layer in layers
        )
        is_exact = is_exact and not getattr(self.language_model, "_is_stateful", False)
        is_on = not any(layer.disable_adapters for layer in layers)
        if self._is_patched or self.is_sharded or self.llama or not layers or not is_exact or not is_on:
            yield
            return
        weights = [layer.get_base_layer().weight for layer in layers]
        self._bases = [(weight, weight.data) for weight in weights]
        try:
            for layer, weight in zip(layers, weights, strict=True):
                for adapter in layer.active_adapters:
                    weight.data = weight.data + layer.get_delta_weight(adapter)
            with self._lora(is_on=False):
                yield
        finally:
            _put_back(self._bases)
            self._bases = []


def after_prefix(prefix: list[int], inputs: Inputs) -> Inputs:
    """Returns the inputs with a prefix of P ids before each text, which all of its tokens see."""
    (rows, columns), more = inputs.ids.shape, len(prefix)
    first = torch.tensor(prefix, device=inputs.ids.device).expand(rows, -1)
    positions = torch.arange(more, device=inputs.ids.device).expand(rows, -1)
    row, column = inputs.predictors // columns, inputs.predictors % columns
    return Inputs(
        ids=torch.cat([first, inputs.ids], dim=1),
        positions=torch.cat([positions, inputs.positions + more], dim=1),
        predictors=row * (columns + more) + column + more,
        targets=inputs.targets,
        branch=None if inputs.branch is None else nn.functional.pad(inputs.branch, (more, 0)),
        trunk=inputs.trunk + more,
    )


def _put_back(weights: list[tuple[nn.Parameter, torch.Tensor]]) -> None:
    for weight, data in weights:
        weight.data = data


def attends_to_everything(model: nn.Module) -> bool:
    """True if every layer of `model` attends to its whole past, through transformers' own interface alone.

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
    """True if Unsloth has replaced the forwards of `backbone`'s classes with its own, as it does on a GPU.

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

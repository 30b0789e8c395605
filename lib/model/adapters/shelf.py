"""All adapters of a model: built from a config, switched, blended, counted and folded together."""

import contextlib
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import nn

from lib.core.config import (
    FOLDING,
    Adapters,
    AttentionTemperature,
    BitFit,
    ChannelGates,
    HeadGates,
    Ia3,
    InputGates,
    obstacles_everywhere,
)
from lib.core.errors import ConfigError
from lib.model.adapters.attention import ComparedGate, Temperature, compared
from lib.model.adapters.bottleneck import Bottleneck
from lib.model.adapters.contract import Adapter, Unfit
from lib.model.adapters.deltas import Delta
from lib.model.adapters.gates import InputGate, OutputGate
from lib.model.adapters.rope import RopeFrequency
from lib.model.adapters.sites import Sizes, base_of, linear_layers, norms, sites
from lib.model.adapters.soft_prompt import SoftPrompt
from lib.run.adapter_files import SHELF

PROJECTIONS = ("q", "k", "v", "o")
WIDE = (0.5, 2.0)  # bounds of the factors of logits and of rotary frequencies


class Shelf(nn.Module):
    """The adapters of a model by family. They are parts of the model, and off or on together."""

    def __init__(self, families: dict[str, list[Adapter]], config: Adapters):
        super().__init__()
        self.settings = {name: settings.model_dump(mode="json") for name, settings in config.families.items()}
        self._warmup = config.warmup_steps
        self._freeze = config.soft_prompt.freeze_steps if config.soft_prompt else 0
        self.families = nn.ModuleDict({name: nn.ModuleList(adapters) for name, adapters in families.items()})

    def __iter__(self) -> Iterator[Adapter]:
        """Yields every adapter."""
        for adapters in self.families.values():
            yield from adapters

    @contextlib.contextmanager
    def switched(self, is_on: bool) -> Iterator[None]:
        """Turns all on or off for a while."""
        before = [adapter.is_on for adapter in self]
        try:
            for adapter in self:
                adapter.is_on = is_on
            yield
        finally:
            for adapter, was in zip(self, before, strict=True):
                adapter.is_on = was

    @property
    def alpha(self) -> float:
        """Returns how much of their effect they have, from 0 to 1."""
        return next(iter(self)).blend

    def blend(self, alpha: float) -> None:
        """Sets how much of their effect they have, from 0 to 1."""
        for adapter in self:
            adapter.blend = alpha

    def begin(self, step: int) -> None:
        """Prepares for the step after `step` others: the warm-up rises, and the soft prompt begins to learn."""
        self.blend(min(1.0, (step + 1) / max(1, self._warmup)))
        if self.soft_prompt:
            self.soft_prompt.is_frozen = step < self._freeze

    def let_frozen_wait(self) -> None:
        """Leaves a soft prompt that does not learn yet without a gradient: the optimizer does not see it."""
        if self.soft_prompt and self.soft_prompt.is_frozen:
            self.soft_prompt.vectors.grad = None

    def drifts(self) -> dict[str, torch.Tensor]:
        """Returns by family how far each of its numbers is from doing nothing."""
        return {name: torch.cat([item.drift() for item in family]).float() for name, family in self.families.items()}

    def counts(self) -> dict[str, int]:
        """Returns the trainable numbers by family."""
        return {name: sum(p.numel() for p in adapters.parameters()) for name, adapters in self.families.items()}

    @property
    def soft_prompt(self) -> SoftPrompt | None:
        """Returns the soft prompt, if there is one."""
        return next((adapter for adapter in self if isinstance(adapter, SoftPrompt)), None)

    def obstacles(self) -> dict[str, str]:
        """Returns the families whose effect no weights can have, with the reason."""
        reasons = obstacles_everywhere(FOLDING, self.families)
        for name, adapters in self.families.items():
            if name not in reasons and (reason := next(filter(None, (adapter.obstacle() for adapter in adapters)), "")):
                reasons[name] = reason
        return reasons

    def fold(self) -> None:
        """Gives the weights the effect of all, once there are no obstacles: first sums, then factors of them."""
        for adapter in sorted(self, key=lambda item: not isinstance(item, Delta)):
            adapter.fold()


def attach(model: nn.Module, config: Adapters, seed: int) -> Shelf | None:
    """Puts the adapters of a config on a causal language model, which may have LoRA already; None if there are none.

    Raises ConfigError for a family that has no place in this model.
    """
    if hasattr(model, SHELF):
        raise ValueError("this model has its adapters already")
    if not config.families:
        return None
    if not any(hasattr(module, "_disable_adapters") for module in model.modules()):  # otherwise PEFT has frozen it
        model.requires_grad_(False)
    draw = torch.Generator().manual_seed(seed)
    families = {name: _built(name, settings, model, draw) for name, settings in config.families.items()}
    shelf = Shelf(families, config).to(next(model.parameters()).device)
    for adapter in shelf:
        adapter.attach()
    model.add_module(SHELF, shelf)
    return shelf


def detach(model: nn.Module) -> None:
    """Takes the adapters off a causal language model, if it has any."""
    for adapter in shelf_of(model) or ():
        adapter.detach()
    if hasattr(model, SHELF):
        delattr(model, SHELF)


def shelf_of(model: nn.Module) -> Shelf | None:
    """Returns the adapters on a causal language model, if it has any."""
    return getattr(model, SHELF, None)


def _built(name: str, settings: object, model: nn.Module, draw: torch.Generator) -> list[Adapter]:
    """Returns the adapters of a family. Raises ConfigError where there are none."""
    try:
        adapters = list(BUILDERS[name](model, settings, draw))
    except Unfit as error:
        raise ConfigError(f"model.adapters.{name}: {error}; set it to null") from error
    if not adapters:
        kind = model.config.model_type
        raise ConfigError(f"model.adapters.{name}: a model of type {kind} has no place for it; set it to null")
    return adapters


def _ia3(model: nn.Module, settings: Ia3, _draw: torch.Generator) -> Iterator[Adapter]:
    for role in settings.targets:
        for site in sites(model, role):
            yield OutputGate(site, site.width, settings.bounds)


def _head_gates(model: nn.Module, settings: HeadGates, _draw: torch.Generator) -> Iterator[Adapter]:
    sizes, pairs = Sizes.of(model), compared(model) if {"q", "k"} & set(settings.targets) else []
    for role in settings.targets:
        if role in ("q", "k"):
            yield from (ComparedGate(pair[role == "k"], settings.bounds) for pair in pairs)
        else:
            groups = sizes.key_heads if role == "v" else sizes.heads
            yield from (OutputGate(site, groups, settings.bounds) for site in sites(model, role))


def _channel_gates(model: nn.Module, settings: ChannelGates, _draw: torch.Generator) -> Iterator[Adapter]:
    for site in sites(model, "gate"):
        if site.width % settings.group_size:
            raise Unfit(f"group_size = {settings.group_size} does not divide the {site.width} of {site.name}")
        yield OutputGate(site, site.width // settings.group_size)


def _gates(model: nn.Module, roles: Iterable[str]) -> list[Adapter]:
    return [OutputGate(site, site.width) for role in roles for site in sites(model, role)]


def _input_gates(model: nn.Module, _settings: InputGates, _draw: torch.Generator) -> Iterator[Adapter]:
    by_name = {site.name: site for role in PROJECTIONS for site in sites(model, role)}  # a fused layer once
    yield from map(InputGate, by_name.values())


def _temperatures(model: nn.Module, settings: AttentionTemperature, _draw: torch.Generator) -> Iterator[Adapter]:
    pairs, groups = compared(model), Sizes.of(model).heads if settings.per == "head" else 1
    blocks = [pairs] if settings.per == "model" else [[pair] for pair in pairs]
    for block in blocks if pairs else []:
        yield Temperature(block, groups, settings.target, WIDE)


def _bitfit(model: nn.Module, settings: BitFit, _draw: torch.Generator) -> Iterator[Adapter]:
    head = model.get_output_embeddings()
    for _, module in linear_layers(model):
        base = base_of(module)
        if base.bias is not None and (module is not head or settings.lm_head):
            yield Delta(base, "bias")


BUILDERS: dict[str, Callable[..., Iterable[Adapter]]] = {
    "ia3": _ia3, "head_gates": _head_gates, "channel_gates": _channel_gates, "input_gates": _input_gates,
    "residual_gates": lambda model, settings, draw: _gates(model, ("o", "down")[: 1 + settings.post_ffn]),
    "projection_gates": lambda model, settings, draw: _gates(model, PROJECTIONS),
    "attention_temperature": _temperatures,
    "rope_frequency": lambda model, settings, draw: [RopeFrequency(model, WIDE)], "bitfit": _bitfit,
    "bottleneck": lambda model, settings, draw: [Bottleneck(s, settings.width, draw) for s in sites(model, "down")],
    "soft_prompt": lambda model, settings, draw: [SoftPrompt(model, settings.tokens, draw)],
    "norm_gains": lambda model, settings, draw: [Delta(module, "weight") for _, module in norms(model)],
}  # fmt: skip

"""Chooses where the policy is sampled: in this process, or by a server that holds the same weights."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from engine import Completion, Decoding, FollowUp, TreePath, Turn, nothing_follows
from lib.core.config import TrainedModel, TrainedSampling
from lib.core.errors import ConfigError
from lib.generators import native
from lib.generators.vllm import VllmEngine
from lib.generators.vllm_server import command_line
from lib.model.policy import Policy


class Engine(Protocol):
    """Samples what a policy writes, while it is open."""

    def open(self, folder: Path) -> contextlib.AbstractContextManager:
        """Opens the engine until the context ends; `folder` is for its files, with its log next to it."""

    def generate(
        self, policy: Policy, turns: dict[TreePath, Turn], decoding: Decoding,
        follow_up: FollowUp = nothing_follows,
    ) -> dict[TreePath, Completion]:  # fmt: skip
        """Returns completions by path, as `native.generate` does."""


class NativeEngine:
    """Samples in this process, from the very weights that are trained."""

    generate = staticmethod(native.generate)

    def open(self, _folder: Path) -> contextlib.AbstractContextManager:
        """Opens nothing."""
        return contextlib.nullcontext()


NATIVE = NativeEngine()


def engine_of(
    model: TrainedModel, sampling: TrainedSampling, policy: Policy, probe: list[int], say: Callable[[str], None]
) -> Engine:
    """Returns the engine that a config names; `probe` are the ids of a text that is scored to compare weights."""
    if sampling.engine == "native":
        return NATIVE
    settings = sampling.vllm
    if not settings.url and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            "generation.vllm: with several processes each would start a server: start one, and name it in "
            "generation.vllm.url (docs/engine.md has the command)"
        )
    return VllmEngine(settings, command_line(model, settings, policy), probe, policy.device.type == "cpu", say)

"""What each family of adapters works with: everything, but for the obstacles that stand here.

Configs refuse by this table what no model can do, loading what a model cannot; docs/tasks.md shows it, and
tests/lib/core/test_combinations.py tries all of it.
"""

from collections.abc import Iterable
from typing import NamedTuple

OF_PEFT = ("lora", "rslora", "dora", "vera", "oft", "tinylora")
OWN = (
    "ia3", "head_gates", "channel_gates", "residual_gates", "projection_gates", "input_gates", "attention_temperature",
    "rope_frequency", "bottleneck", "soft_prompt", "bitfit", "norm_gains",
)  # fmt: skip

FOUR_BITS, UNSLOTH, VLLM, FUSED, FOLDING, SLAB = (
    "4-bit weights", "Unsloth", "vLLM", "fused layers", "folding into weights", "the quick decoder",
)  # fmt: skip


class Obstacle(NamedTuple):
    """Why a family does not work with something."""

    reason: str
    where: str = ""  # in which models; "" in all


BEHIND_NORMS = Obstacle("queries and keys have norms, which are the same for all heads", "where q and k have norms")
OBSTACLES: dict[str, dict[str, Obstacle]] = {
    FOUR_BITS: {"tinylora": Obstacle("it takes the singular vectors of weights, which are packed there")},
    UNSLOTH: {
        **{name: Obstacle("its kernels compute past what these change") for name in OWN},
        **{name: Obstacle("it attaches LoRA and rsLoRA alone") for name in OF_PEFT if name not in ("lora", "rslora")},
    },
    VLLM: {
        name: Obstacle("it serves LoRA and rsLoRA alone") for name in (*OF_PEFT, *OWN) if name not in ("lora", "rslora")
    },
    FUSED: {"oft": Obstacle("PEFT's OFT takes no transposed layers", "in GPT-2's transposed layers")},
    FOLDING: {
        "head_gates": BEHIND_NORMS,  # of q and k
        "attention_temperature": BEHIND_NORMS,
        "rope_frequency": Obstacle("no weights turn positions"),
        "bottleneck": Obstacle("no weights have its activation"),
        "soft_prompt": Obstacle("no weights stand before a prompt"),
    },
    SLAB: {},  # engine/decoder.py
}


def obstacles_everywhere(partner: str, families: Iterable[str]) -> dict[str, str]:
    """Returns those of some families that do not work with a partner in any model, with the reason."""
    obstacles = OBSTACLES[partner]
    return {name: obstacles[name].reason for name in families if name in obstacles and not obstacles[name].where}


def in_words(reasons: dict[str, str]) -> str:
    """Writes families and their reasons in one line, those of one reason together."""
    together: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        together.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in together.items())


def refusal(partner: str, families: Iterable[str]) -> str:
    """Returns why not all of some families work with a partner; "" if they do."""
    obstacles = obstacles_everywhere(partner, families)
    return f"not all of these adapters work with {partner} ({in_words(obstacles)})" if obstacles else ""

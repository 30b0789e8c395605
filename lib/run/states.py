"""What changes in training and is saved with it: the states of objects, and of the global random generators."""

import random
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch


class Stateful(Protocol):
    """An object that changes during training. Its state consists of numbers, strings, lists, dicts and tensors."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def state_of(thing: Stateful | torch.Generator) -> Any:
    """Returns the state of an object or a generator."""
    return thing.get_state() if isinstance(thing, torch.Generator) else thing.state_dict()


def restore(thing: Stateful | torch.Generator, state: Any) -> None:
    """Gives an object or a generator the state that `state_of` returned."""
    if isinstance(thing, torch.Generator):
        thing.set_state(state)
    else:
        thing.load_state_dict(state)


def random_states() -> dict[str, Any]:
    """Returns the states of the global generators, under accelerate's names."""
    states = {
        "random_state": random.getstate(),
        "numpy_random_seed": np.random.get_state(),
        "torch_manual_seed": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        states["torch_cuda_manual_seed"] = torch.cuda.get_rng_state_all()
    return states


def set_random_states(states: Mapping[str, Any]) -> None:
    """Sets the states of the global generators."""
    random.setstate(states["random_state"])
    np.random.set_state(states["numpy_random_seed"])
    torch.set_rng_state(states["torch_manual_seed"])
    if torch.cuda.is_available() and "torch_cuda_manual_seed" in states:  # absent: saved on a CPU, and warned about
        torch.cuda.set_rng_state_all(states["torch_cuda_manual_seed"])

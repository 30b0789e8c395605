"""Trained weights in a folder: an adapter, as PEFT writes it and with what PEFT does not know; or a whole model."""

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from lib.core.errors import ConfigError
from lib.run.directory import ADAPTER, ADAPTER_CONFIG, EXTRA, EXTRA_CONFIG, adapter_in
from lib.run.fingerprints import STANDS_ON, WEIGHTS, of_weights
from lib.run.manifest import manifest_of

ADAPTER_FILES = (ADAPTER, ADAPTER_CONFIG, EXTRA, EXTRA_CONFIG)
SHELF = "adapter_shelf"  # name of the adapters of our own, as a part of a model (lib/model/adapters/)
FORMAT = 1  # of EXTRA and EXTRA_CONFIG
POLICY = "default"  # PEFT's name of the trained adapter; an opponent's snapshot next to it is not part of the state


def save_weights(model: torch.nn.Module, directory: Path) -> None:
    """Writes the adapter of a PeftModel, or all weights of any other model. Raises OSError, SafetensorError."""
    if has_adapter(model):
        save_adapter(model, directory)
    else:  # under this model's own names: `load_weights` needs no conversion
        model.save_pretrained(directory, save_original_format=False)
        apply_umask(directory)


def apply_umask(directory: Path) -> None:
    """Lets others read the weights in a folder if they may read the folder: safetensors makes its files 0600."""
    for file in directory.glob("*.safetensors"):
        file.chmod(directory.stat().st_mode & 0o666)


def load_weights(model: torch.nn.Module, directory: Path) -> None:
    """Loads what `save_weights` wrote, and nothing else. Raises ConfigError when it does not fit the model."""
    if has_adapter(model):
        _load_adapter(model, directory)  # without a check of the base: a resume has compared fingerprints
        return
    saved = {name: value for file in sorted(directory.glob("*.safetensors")) for name, value in load_file(file).items()}
    here = model.state_dict()
    pointers = {here[name].data_ptr() for name in saved.keys() & here.keys()}
    # only one of several tied weights is written
    needed = {name: value for name, value in here.items() if name in saved or value.data_ptr() not in pointers}
    differences = list(_tensor_differences(saved, needed))
    if differences:
        raise ConfigError(
            f"{directory}: these weights do not fit the model: {'; '.join(differences)}; restore the "
            "model in the config, or choose another folder"
        )
    model.load_state_dict(saved, strict=False)


def has_adapter(model: torch.nn.Module) -> bool:
    """True if adapters are trained, PEFT's or those of our own, and not the whole model."""
    return hasattr(model, "peft_config") or own_adapters(model) is not None


def save_adapter(model: torch.nn.Module, directory: Path) -> None:
    """Writes all trained weights of the policy into a folder, and no other adapter. Raises OSError, SafetensorError.

    PEFT's part is as its own `save_pretrained` writes it, but for its model card, an empty form; ours is in
    lib/run/model_card.py.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if hasattr(model, "peft_config"):
        tensors = _adapter_tensors(model)
        save_file({name: value.contiguous() for name, value in tensors.items()}, directory / ADAPTER, {"format": "pt"})
        config = copy.copy(model.peft_config[POLICY])
        config.inference_mode = True
        config.save_pretrained(directory)
        say_ground(model, directory)
    extra = _extra_parameters(model)
    if extra:
        save_file({name: value.detach().contiguous() for name, value in extra.items()}, directory / EXTRA)
        about = {"format": FORMAT, "base_model_name_or_path": model.config.name_or_path}
        if shelf := own_adapters(model):
            about |= {"adapters": shelf.settings, "alpha": shelf.alpha}
        about |= {STANDS_ON: ground} if (ground := getattr(model, STANDS_ON, None)) else {}
        (directory / EXTRA_CONFIG).write_text(json.dumps(about, indent=2), "utf-8")
    apply_umask(directory)


def own_adapters(model: torch.nn.Module) -> Any:
    """Returns the adapters of our own, None if there are none."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return getattr(base, SHELF, None)


def say_ground(peft_model: torch.nn.Module, directory: Path) -> None:
    """Records in a saved adapter's config which adapter was merged into its base, if any.

    PEFT would silently load it on the bare base, with wrong results. So the task type is set to a text that PEFT
    refuses and shows.
    """
    ground = getattr(peft_model, STANDS_ON, None)
    if ground is None:
        return
    fields = {
        STANDS_ON: ground,
        "base_model_name_or_path": f"{ground['base']} + {ground['adapter']}",
        "task_type": f"CAUSAL_LM on {ground['base']} with {ground['adapter']} merged into it; export.py --to merged "
        "writes a model that needs neither",
    }
    text = json.dumps(adapter_config(directory) | fields, indent=2, sort_keys=True)
    (directory / ADAPTER_CONFIG).write_text(text, "utf-8")


def adapter_config(folder: Path) -> dict[str, Any]:
    """Reads the config of a saved adapter: PEFT's, or ours where PEFT has no part in it. Raises OSError, ValueError."""
    name = ADAPTER_CONFIG if (folder / ADAPTER_CONFIG).exists() else EXTRA_CONFIG
    return json.loads((folder / name).read_text("utf-8"))


def load_adapter(peft_model: torch.nn.Module, directory: Path, base: str | None = None) -> None:
    """Loads the weights of a saved adapter, and nothing else, into the one that the model trains; `base`: model.name.

    Raises ConfigError, and changes nothing, when the folder is no adapter, one for other shapes, modules or ranks, one
    known to be trained on other weights, or on a base with another adapter, or none, merged into it.
    """
    if base:
        refuse_other_weights(peft_model, directory, base)
    refuse_other_ground(peft_model, _read_adapter(directory)[2], directory)
    _load_adapter(peft_model, directory)


def is_same_base(named: str | None, base: str) -> bool:
    """True if an adapter names `base` as its own, perhaps by another path."""
    return named == base or (named is not None and Path(named).resolve() == Path(base).resolve())


def refuse_other_weights(model: torch.nn.Module, directory: Path, base: str, key: str = "") -> bool:
    """Raises ConfigError if an adapter is known to be of other weights than `base`; returns whether it is of these."""
    there, here = manifest_of(directory).get("inputs", {}).get(WEIGHTS), of_weights(base, model)
    if not there or not here or len(there) != len(here):  # a Hub commit hash has another length
        return False
    if there != here:
        of = adapter_config(directory).get("base_model_name_or_path")
        raise ConfigError(
            f"{key and f'{key}: '}'{directory}' was trained on other weights than those of '{base}'"
            f"{', which have changed since' if is_same_base(of, base) else f', on {of}'}: give its base as model.name"
        )
    return True


def refuse_other_ground(model: torch.nn.Module, config: Mapping[str, Any], directory: Path) -> None:
    """Raises ConfigError unless `model` has the same adapter merged into it, or none, as when this one was trained."""
    here, there = getattr(model, STANDS_ON, None), config.get(STANDS_ON)
    if (here and here["fingerprint"]) == (there and there["fingerprint"]):
        return
    if there is None:
        reason = f"on the base alone, and here it has model.adapter={here['adapter']}: set model.adapter=null"
    elif here is None:
        reason = f"on its base with {there['adapter']} merged into it: set model.adapter={there['adapter']}"
    else:
        reason = f"on {there['adapter']} as it was then, and model.adapter={here['adapter']} holds other weights"
    raise ConfigError(f"{directory}: this adapter was trained {reason}, or choose another folder")


def _load_adapter(peft_model: torch.nn.Module, directory: Path) -> None:
    directory = Path(directory)
    tensors, extra, config = _read_adapter(directory)
    is_peft = hasattr(peft_model, "peft_config")
    differences = [
        *_config_differences(config, peft_model.peft_config[POLICY].to_dict() if is_peft else {}),
        *_tensor_differences(tensors, _adapter_tensors(peft_model)),
        *_tensor_differences(extra, _extra_parameters(peft_model)),
    ]
    if differences:
        raise ConfigError(
            f"{directory}: this adapter does not fit the model: {'; '.join(differences)}; change the config to "
            f"the adapter's model and settings, merge it by model.adapter={directory}, or choose another folder"
        )
    if is_peft:
        from peft import set_peft_model_state_dict  # here: where Unsloth is used, it must be imported before peft

        set_peft_model_state_dict(peft_model, tensors, adapter_name=POLICY)
    with torch.no_grad():
        for name, parameter in _extra_parameters(peft_model).items():
            parameter.copy_(extra[name])
    if shelf := own_adapters(peft_model):
        shelf.blend(json.loads((directory / EXTRA_CONFIG).read_text("utf-8"))["alpha"])


def base_named(folder: Path) -> str:
    """Returns the base that a saved adapter names, as a value for a config; BASE if it names none."""
    try:
        config = adapter_config(folder)
    except (OSError, ValueError):
        return "BASE"
    return str((config.get(STANDS_ON) or {}).get("base") or config.get("base_model_name_or_path") or "BASE")


def _adapter_tensors(peft_model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Returns the tensors that PEFT saves, none if the model has no adapter of PEFT's."""
    if not hasattr(peft_model, "peft_config"):
        return {}
    from peft import get_peft_model_state_dict  # here: where Unsloth is used, it must be imported before peft

    return get_peft_model_state_dict(peft_model, adapter_name=POLICY, save_embedding_layers=False)


def _extra_parameters(peft_model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """Returns trained parameters that no PEFT file would hold: gates, norm gains and other adapters of our own."""
    pointers = {value.data_ptr() for value in _adapter_tensors(peft_model).values()}
    return {
        name: parameter
        for name, parameter in peft_model.named_parameters()
        if parameter.requires_grad and parameter.data_ptr() not in pointers
    }


def _read_adapter(directory: Path) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor], dict[str, Any]]:
    adapter_in(directory)
    try:
        extra = load_file(directory / EXTRA) if (directory / EXTRA).exists() else {}
        tensors = load_file(directory / ADAPTER) if (directory / ADAPTER).exists() else {}
        return tensors, extra, adapter_config(directory)
    except (OSError, SafetensorError, ValueError) as error:
        raise ConfigError(f"{directory}: the adapter cannot be read ({error}); choose another folder") from error


def _config_differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    # shapes do not show the scaling; the other settings explain, in the user's words, why the tensors differ
    for key in ("peft_type", "r", "lora_alpha", "alpha_pattern", "use_rslora", "use_dora"):
        if key in there and there[key] != here.get(key):
            yield f"{key} is {there[key]} there and {here.get(key)} here"


def _tensor_differences(there: Mapping[str, torch.Tensor], here: Mapping[str, torch.Tensor]) -> Iterator[str]:
    for names, place in ((there.keys() - here.keys(), "there"), (here.keys() - there.keys(), "here")):
        if names:
            yield f"{len(names)} tensors are only {place}, such as {min(names)}"
    differing = sorted(name for name in there.keys() & here.keys() if there[name].shape != here[name].shape)
    if differing:
        shapes = f"{list(there[differing[0]].shape)} there and {list(here[differing[0]].shape)} here"
        yield f"{len(differing)} tensors have other shapes, such as {differing[0]}: {shapes}"

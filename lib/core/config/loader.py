"""From a YAML file and overrides to a config, with all mistakes at once; and back to YAML."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from lib.core.config.collect import CollectConfig
from lib.core.config.rl import TrainedSampling
from lib.core.config.score import ScoreConfig
from lib.core.config.selfplay import SelfPlayConfig
from lib.core.config.sft import SFTConfig
from lib.core.config.shared import Outputs, RunConfig
from lib.core.config.sweep import SweepConfig
from lib.core.config.trees import copied, differences, put, read, shortened, value_of
from lib.core.errors import ConfigError
from lib.core.registry import did_you_mean

Config = TypeVar("Config", bound=Outputs)
KINDS = (ScoreConfig, SelfPlayConfig, CollectConfig, SFTConfig, SweepConfig)
IN_SHORT = {"model": "name", "dataset": "name", "reward": "fn"}  # sections, with the key that people give alone
NAME_IN_WORDS = "letters, digits, '_', '-' and '.', but neither of the last two at the beginning"
SAMPLER_TRICKS = ("top_p", "top_k", "min_p", "repetition_penalty")
HINTS: dict[str, tuple[str, ...]] = {  # unknown keys -> the key to use, of the first of these that a config has
    # of other trainers
    "dataset.input_field": ("prompts.user",),
    "generation_temperature": ("generation.temperature",),
    "kl_coeff": ("train.beta", "train.beta1 and train.beta2"),
    "lora": ("model.adapters.lora",),
    "lora_alpha": ("model.adapters.lora.alpha",),
    "lora_r": ("model.adapters.lora.r",),
    "lora_target_modules": ("model.adapters.lora.targets",),
    "model.model_id": ("model.name",),
    "sandbox.ray": ("sandbox.worker",),
    "self_play": ("opponent.snapshots", "rl_train_gspo_selfplay.py, which plays against an opponent"),
    "wandb_project": ("tracking.project",),
    # of transformers, PEFT and TRL
    "batch_size": ("train.batch_size", "train.stage1_batch_size and train.stage2_batch_size", "generation.batch_size"),
    "device_map": ("model.sharded: true, if one GPU does not hold the model; otherwise no key is needed",),
    "eval.batch_size": ("generation.batch_size",),
    "gradient_accumulation_steps": (
        "train.gradient_accumulation",
        "train.micro_batch_tokens, which fits a batch of any size into memory",
    ),
    "max_completion_length": (
        "generation.max_new_tokens",
        "generation.max_new_tokens_attempt1 and generation.max_new_tokens_attempt2",
    ),
    "max_new_tokens": (
        "generation.max_new_tokens",
        "generation.max_new_tokens_attempt1 and generation.max_new_tokens_attempt2",
    ),
    "max_steps": ("train.steps", "train.stage1_steps and train.stage2_steps"),
    "train.steps": ("train.stage1_steps and train.stage2_steps",),
    "rank": ("model.adapters.lora.r",),
    "model_name_or_path": ("model.name",),
    "num_generations": ("train.group_size", "train.attempts_per_prompt", "generation.samples_per_prompt"),
    "num_train_epochs": ("train.epochs", "train.stage1_epochs and train.stage2_epochs"),
    "per_device_train_batch_size": ("train.batch_size", "train.stage1_batch_size and train.stage2_batch_size"),
    "push_to_hub": ("hub.repo_id",),
    "quantization": ("model.load_in_4bit: true",),
    "quantization_config": ("model.load_in_4bit: true",),
    "report_to": ("tracking.backend",),
    "reward_funcs": ("reward.fn",),
    "warmup_ratio": ("optimizer.warmup_steps, a number of steps",),
    # of vLLM, Unsloth and servers
    "fast_inference": ("generation.engine: vllm",),
    "gpu_memory_utilization": ('generation.vllm.options: [--gpu-memory-utilization, "0.4"]',),
    "endpoint": ("server: NAME, with what stood here under servers.NAME",),
    "opponent.endpoint": ("opponent.server: NAME, with what stood here under servers.NAME",),
    "teacher.endpoint": ("teacher.server: NAME, with what stood here under servers.NAME",),
    "opponent.provider": ("opponent.server, which names one of servers",),
    "provider": ("servers.NAME.base_url, the address of a server",),
    "teacher.provider": ("teacher.server, which names one of servers",),
    "thinking": ("generation.thinking", "model.chat_template_kwargs, such as {enable_thinking: false}"),
    "use_vllm": ("generation.engine: vllm",),
}


def load(
    kinds: type[Config] | tuple[type[Config], ...],
    path: Path,
    overrides: Sequence[str] = (),
    smoke: int | None = None,
    say: Callable[[str], None] = print,
) -> Config:
    """Returns the validated config of `path`, with overrides and then `--smoke` applied; says what the latter changes.

    Of several `kinds`, takes the one with the fewest unknown keys in the file, the first if tied. Raises ConfigError:
    one line per mistake, with file and line, dotted key, what was got and what to do; or one line if the file is the
    config of another script.
    """
    tree, lines, mistakes = read(path)
    kind = _kind_of(tree, kinds if isinstance(kinds, tuple) else (kinds,), path)
    for text in overrides:
        mistakes += _override(tree, lines, text)
    config, flaws = _validate(kind, tree)
    for keys, message in flaws:  # of a conflict, an override is the newer side
        at = [lines.get(key) or lines.get(key.rpartition(".")[0]) for key in keys]
        mistakes.append((next((place for place in at if isinstance(place, str)), at[0]), f"{keys[0]}: {message}"))
    if mistakes:
        places = (line if isinstance(line, str) else f"{path}:{line}" if line else path for line, _ in mistakes)
        raise ConfigError("\n".join(f"{at}: {text}" for at, (_, text) in zip(places, mistakes, strict=True)))
    if not smoke:
        return config
    small: Any = cast(RunConfig, config).smoke(smoke)
    changes = differences(config.model_dump(mode="json"), small.model_dump(mode="json"))
    say(f"--smoke {smoke} changes {', '.join(f'{key} {change}' for key, change in changes)}")
    return small


def dump(config: Outputs) -> str:
    """Returns the resolved config as YAML that `load` reads back."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)


def keys_of(kind: type[BaseModel], prefix: str = "", with_sections: bool = False) -> Iterator[str]:
    """Yields every dotted key of a config, without the names of sections unless `with_sections`.

    Where the user names sections, such as servers, NAME stands for a name.
    """
    for name, field in kind.model_fields.items():
        named = _section_by_name(field)
        section, path = named or section_of(field), f"{prefix}{name}{'.NAME' if named else ''}"
        if section is None or with_sections:
            yield from dict.fromkeys((prefix + name, path))
        if section is not None:
            yield from keys_of(section, f"{path}.", with_sections)


def _kind_of(tree: dict, kinds: tuple[type[Config], ...], path: Path) -> type[Config]:
    """Returns the one of `kinds` that a file is: the one with the fewest unknown keys.

    Raises ConfigError if that has unknown keys and the config of another script has none, so a typo stays a typo.
    Missing keys do not count: they are reported by name.
    """
    kind = min(kinds, key=lambda kind: _unknown_keys(kind, tree))
    owner = next((candidate for candidate in KINDS if not _unknown_keys(candidate, tree)), kind)
    if _unknown_keys(kind, tree) and owner is not kind:
        scripts, cure = " or ".join(kind.__doc__ for kind in kinds), f", or start {owner.__doc__}"
        if (final := path.parent / "final").is_dir():  # a run: starting its script again is no cure
            key = "model.name" if (final / "config.json").is_file() else "model.adapter"
            cure = f" as --config, with {key}={final}"
        raise ConfigError(
            f"{path}: this is a config of {owner.__doc__}, expected one of {scripts}: give such a file{cure}"
        )
    return kind


def _unknown_keys(kind: type[BaseModel], tree: dict) -> int:
    """Counts the keys of a tree that a config, or one of its sections, does not know."""
    try:
        kind.model_validate(tree)
    except ValidationError as error:
        return sum(problem["type"] == "extra_forbidden" for problem in error.errors())
    return 0


def _override(tree: dict, lines: dict[str, Any], text: str) -> list[tuple[Any, str]]:
    """Sets one `section.key=value` in the tree; returns the mistake in it, if there is one."""
    # a value below a server may be a key
    where = "override '" + re.sub(r"^([\w.-]*\b(?:endpoint|servers?)\b[\w.-]*).+", r"\1=...", text) + "'"
    key, equals, value = text.partition("=")
    if not equals or not key:
        return [(where, "expected section.key=value, for example optimizer.learning_rate=1e-5")]
    lines |= dict.fromkeys([*put(tree, key, value_of(value)), key], where)
    return []


def _validate(kind: type[Config], tree: dict) -> tuple[Config | None, list[tuple[tuple[str, ...], str]]]:
    """Returns the config and all mistakes, by their keys: pydantic's first, then conflicts among its valid fields."""
    messages: dict[str, str] = {}  # sentences by dotted key
    replaced: tuple[str, ...] = ()  # keys with another value: mistakes in it, or below it, are already reported
    tree, config, conflicts = copied(tree), None, ()
    for _ in range(3):  # wrong values are taken out, so that the other fields can still be checked together
        try:
            config = kind.model_validate(tree)
            conflicts = [(keys, text) for keys, text in config.conflicts() if not messages.keys() & set(keys)]
            break
        except ValidationError as error:
            explained = [_explain(kind, tree, problem) for problem in error.errors()]
        for key, message, _ in explained:
            if not f"{key}.".startswith(replaced):
                messages.setdefault(key, message)
        replaced += tuple(f"{key}." for key, _, is_replaced in explained if is_replaced)
    return config, [*(((key,), text) for key, text in messages.items()), *conflicts]


def _explain(kind: type[BaseModel], tree: dict, problem: Mapping[str, Any]) -> tuple[str, str, bool]:
    """Takes a wrong value out of the tree; returns its dotted key, a sentence, and whether the value was replaced."""
    path, owner, field = _locate(kind, problem["loc"])
    key, section = ".".join(path), section_of(field)
    *sections, name = path
    for part in sections:
        tree = tree.setdefault(part, {})
    tree.pop(name, None)
    if problem["type"] == "extra_forbidden":
        return key, f"unknown key{_meant(kind, owner, key)}", False
    if problem["type"] == "missing" and isinstance(problem["loc"][-1], str):
        tree[name] = {} if section else "unset"
        return key, "is missing and has no default: add it", True
    if field.is_required() and section is None:
        tree[name] = "unset"
    may_be_secret = path[0] == "servers" or name == "server"
    got = "" if problem["type"] == "value_error" or may_be_secret else f", got {shortened(problem['input'])}"
    value = "" if may_be_secret else problem["input"]
    if problem["type"] in ("dict_type", "string_type") and str(value).startswith("{"):
        got += ": put text with braces in quotes"  # YAML has read it as a mapping, or could not
    elif problem["type"] == "model_type" and key in IN_SHORT and isinstance(value, str) and value:
        got += f": give {key}.{IN_SHORT[key]}={value}, or in YAML {key}: {{{IN_SHORT[key]}: {value}}}"
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "should be")
    message = message.replace(r"String should match pattern '^\w[\w.-]*$'", f"expected {NAME_IN_WORDS}")
    return key, message[0].lower() + message[1:] + got, True


def _locate(kind: type[BaseModel], location: tuple) -> tuple[list[str], type[BaseModel], Any]:
    """Returns the dotted path of a pydantic location, without its union and list parts, its section and its field."""
    path: list[str] = []
    owner = section = kind
    field = named = None
    for part in location:
        if (section is None and named is None) or not isinstance(part, str) or part == "[key]":
            break
        path.append(part)
        if section is None:  # the name of one of several sections
            section, named = named, None
            continue
        owner, field = section, section.model_fields.get(part)
        section, named = section_of(field), _section_by_name(field)
    return path, owner, field


def _meant(kind: type[BaseModel], owner: type[BaseModel], key: str) -> str:
    """Describes an unknown key: which one it resembles, or where it belongs, or which keys are known there."""
    name = key.rpartition(".")[2]
    if name in SAMPLER_TRICKS and issubclass(owner, TrainedSampling):
        return (
            f"; {name} would make the sampling distribution differ from the one whose log-probabilities are trained, "
            "which biases the gradient: remove it"
        )
    keys, scripts = [*keys_of(kind, with_sections=True)], [config.__doc__ for config in KINDS]
    for hint in HINTS.get(key, HINTS.get(name, ())):
        if re.split("[:, ]", hint)[0] in keys + scripts:
            return f"; it is {hint}"
    elsewhere = " or ".join(place for place in keys if f".{place}".endswith(f".{name}"))
    resembling = did_you_mean(name, owner.model_fields)
    return resembling or (f"; it is {elsewhere}" if elsewhere else f"; known here: {', '.join(owner.model_fields)}")


def _section_by_name(field: Any) -> type[BaseModel] | None:
    """Returns the section class of a field that holds several by name, `{name: section}`; None for any other field."""
    annotation = getattr(field, "annotation", None)
    return _as_section(get_args(annotation)[1]) if get_origin(annotation) is dict else None


def section_of(field: Any) -> type[BaseModel] | None:
    """Returns the section class that a field holds, also before `| None`; None if it holds none."""
    annotation = getattr(field, "annotation", None)
    if get_origin(annotation) is dict:
        return None
    options = (annotation, *getattr(annotation, "__args__", ()))
    return next((section for option in options if (section := _as_section(option))), None)


def _as_section(option: Any) -> type[BaseModel] | None:
    return option if isinstance(option, type) and issubclass(option, BaseModel) else None

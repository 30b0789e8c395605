"""The model card of trained weights: what they are, of what and how well, and how to load them.

It stands next to the weights as README.md, with the metadata that the Hugging Face Hub reads. What it says comes from
the run's config.yaml, evaluations.jsonl and metrics.jsonl, up to the step of the weights, and nothing in it depends on
the time: a resumed run writes the same card.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, prod
from pathlib import Path
from typing import Any

import torch
import yaml
from jinja2 import StrictUndefined, Template
from safetensors import safe_open

from lib.core.config import ScoreConfig, SelfPlayConfig, SFTConfig, load, read_tree, weighted_sum
from lib.core.console import WHEN, label_of, samples_of
from lib.run.adapter_files import own_adapters
from lib.run.directory import ADAPTER, CARD, EXTRA, position
from lib.run.runlog import is_number, read_jsonl

HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")
SCRIPT = "two_attempts.py"  # next to an exported model: asks a server that has it for both attempts
LICENCE = ("license", "license_name", "license_link")  # as a card's metadata has them
# what a card shows of a config: numbers and switches in SECTIONS, the TEXTS in them, and WHOLE sections
SECTIONS = {
    "model", "chat_template_kwargs", "dataset", "mixture", "options", "prompts", "verdict", "tests",
    "self", "reward", "by_task", "generation", "temperature_schedule", "thinking", "optimizer", "curriculum",
    "weighting", "skip", "easy_pool", "replay", "train", "sampler_correction", "eval", "distill",
    "opponent", "snapshots", "teacher", "hint", "solve",
}  # fmt: skip
WHOLE = {"adapters", "from_scratch", "fn"}
TEXTS = {
    "run_name", "name", "revision", "adapter", "backend", "dtype", "chat_template", "attn_implementation",
    "config_name", "split", "task", "target_field", "family_field", "truncation", "messages_field", "system",
    "user", "self_correction", "hinted", "history", "feedback", "stop", "right", "wrong", "passed", "failed",
    "request", "ask", "fn", "format", "answer_extractor",
    "target_extractor", "match", "engine", "tags", "schedule", "column", "values",
    "value", "on_non_finite", "on_collapse", "level", "recipe", "loss", "advantage",
    "length_norm", "kl", "bonus_on", "bonus_to", "baseline", "shown", "direction", "offers", "pick",
    "use", "server", "modes", "hint_request", "critique_request", "train", "reading", "final_answer",
}  # fmt: skip
COLUMNS = {
    **{f"acc_attempt{number}": f"attempt {number}" for number in range(1, 10)},
    "delta": "delta", "i_to_c": "i->c", "c_to_i": "c->i", "acc": "pass@1", "pass": "pass@k",
    "well_formed": "well-formed", "win_rate": "games won", "opponent_acc": "opponent", "loss": "held-out loss",
}  # fmt: skip
LEGEND = {
    "delta": "i->c: wrong at first, then right; c->i: right at first, then wrong; delta = i->c - c->i.",
    "pass": "pass@k: one of k answers at least is right.",
    "win_rate": "Games won: of those that either the policy's first answer or the opponent's won.",
}


@dataclass(frozen=True)
class Trained:
    """The trained numbers of a model."""

    count: int
    families: dict[str, int]  # of these, those of our own adapters, by family
    obstacles: dict[str, str]  # families whose effect no weights can have, with the reason

    def __str__(self) -> str:
        ours = ", ".join(f"{number:,} {family}" for family, number in self.families.items())
        return f"{self.count:,} parameters are trained{f', of these {ours}' if ours else ''}"


def trained_in(model: torch.nn.Module) -> Trained:
    """Counts the trained numbers of a model."""
    shelf = own_adapters(model)
    count = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return Trained(count, shelf.counts() if shelf else {}, shelf.obstacles() if shelf else {})


def trained_in_folder(adapter: Path) -> Trained:
    """Counts the numbers of a saved adapter of PEFT's alone."""
    with safe_open(adapter / ADAPTER, "pt") as file:
        return Trained(sum(prod(file.get_slice(name).get_shape()) for name in file.keys()), {}, {})  # noqa: SIM118


def write_card(
    folder: Path,
    run: Path | None,
    tree: dict[str, Any],
    trained: Trained,
    *,
    place: Path | None = None,
    merged: str = "",
) -> None:
    """Writes the card of the weights in `folder`, of the run with the config `tree`. Raises OSError.

    `place` is the folder that the card names, by default `folder`, without the `.tmp` that it has until it is complete.
    `merged` describes what `folder` holds, where it was exported from the adapter in `place`.
    """
    files = {path.name for path in folder.iterdir()}
    name = folder.with_suffix("") if folder.suffix == ".tmp" else folder
    place = place or name
    text = _template().render(
        {"folder": name, "place": place, "run": run, "tree": tree, "files": files, "merged": merged},
        is_whole="config.json" in files,
        metadata=yaml.safe_dump(_metadata(tree, "config.json" in files), sort_keys=False),
        method=_method(tree)[1],
        when=_when(place),
        script=(folder / SCRIPT).read_text(encoding="utf-8") if SCRIPT in files else "",
        licence=licence_of(tree["model"].get("name")).get("license", "unknown"),
        sources=_sources(tree),
        rewards=list(_rewards(tree)),
        families=list(_families(tree, trained)),
        unknown_to_peft=_unknown_to_peft(tree, files, trained),
        obstacles="; ".join(f"{name}: {reason}" for name, reason in trained.obstacles.items()),
        run_config=Path(tree["output_dir"], tree["run_name"], "config.yaml") if "reward" in tree else None,
        config=as_yaml(tree),
        **(_evaluation(run, place) if run else {}),
    )
    (folder / CARD).write_text(text, encoding="utf-8")


@functools.cache
def _template() -> Template:
    text = Path(__file__).with_suffix(".md.jinja").read_text(encoding="utf-8")
    return Template(text, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)


def run_of(adapter: Path) -> tuple[Path, dict[str, Any]] | None:
    """Returns the run that an adapter lies in, and its config, with defaults for the keys that it lacks.

    None if the adapter was moved elsewhere. Raises ConfigError for a config that is not valid any more.
    """
    place = adapter.resolve()
    for run in place.parents[: 2 if place.name.startswith("step_") else 1]:
        config = run / "config.yaml"
        if config.is_file() and "run_name" in read_tree(config):
            return run, load((ScoreConfig, SelfPlayConfig, SFTConfig), config).model_dump(mode="json")
    return None


def _rows_until(run: Path, place: Path, stream: str) -> list[dict]:
    """Returns the rows of a stream up to the step of the weights in `place`."""
    path, last = run / f"{stream}.jsonl", position(place) or (inf, inf)
    return [row for row in read_jsonl(path)[0] if _moment(row) <= last] if path.exists() else []


def _moment(row: dict) -> tuple[float, float]:
    return row.get("stage", 1), row["step"]


def _metadata(tree: dict[str, Any], is_whole: bool) -> dict[str, Any]:
    """Returns the metadata, without what the Hub would refuse: the name of a local folder is no base_model there."""
    base = tree["model"].get("name")
    data = ({"base_model": base} if _is_hub_id(base) else {}) | licence_of(base)
    data |= {"library_name": "transformers" if is_whole else "peft", "pipeline_tag": "text-generation"}
    data["tags"] = ["rematch", _method(tree)[0], *([] if is_whole else _settings(tree))]
    datasets = [source["name"] for source in _sources(tree) if _is_hub_id(source["name"])]
    return data | ({"datasets": datasets} if datasets else {})


def _is_hub_id(name: str | None) -> bool:
    return bool(name) and HUB_ID.fullmatch(name) is not None and not Path(name).exists()


def licence_of(base: str | None) -> dict[str, str]:
    """Returns the licence that the card of a base states, if the card is in its folder or in the Hub's local cache.

    Strangers wrote these texts: each is cut to one line that can stand between backticks.
    """
    if not base:
        return {}
    from huggingface_hub import metadata_load, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    path: Any = Path(base) / CARD
    if not Path(base).is_dir():
        try:
            path = try_to_load_from_cache(base, CARD)
        except HFValidationError:
            return {}
    if not isinstance(path, str | Path) or not Path(path).is_file():  # the cache may know that there is none
        return {}
    try:
        stated = metadata_load(path) or {}
    except (ValueError, yaml.YAMLError):
        return {}
    texts = {key: stated[key] for key in LICENCE if isinstance(stated.get(key), str)}
    return {key: " ".join(text.replace("`", "'").split())[:200] for key, text in texts.items() if text}


def _method(tree: dict[str, Any]) -> tuple[str, str]:
    """Returns the tag of the algorithm, and by what a model was trained."""
    if "reward" not in tree:
        return "sft", "by supervised fine-tuning"
    if "opponent" not in tree:
        return "score", "by SCoRe, reinforcement learning that teaches a model to correct its own answer"
    loss = tree["train"]["loss"]
    if not tree["opponent"]:
        return loss, f"by reinforcement learning, loss {loss}"
    return "self-play", f"by reinforcement learning with self-play, loss {loss}"


def _settings(tree: dict[str, Any]) -> dict[str, dict]:
    """Returns the settings of what is trained on the base, by family."""
    return {name: settings for name, settings in tree["model"]["adapters"].items() if isinstance(settings, dict)}


def _when(place: Path) -> str:
    """Returns the moment of training at which weights were saved, in words."""
    if not (there := position(place)):
        return "at the end of training"
    stage, step = there
    return f"at the end of stage {stage}" if step == inf else f"after step {step:.0f} of stage {stage}"


def _sources(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the data set, or the parts of the mixture."""
    return list((tree["dataset"].get("mixture") or {"": tree["dataset"]}).values())


def _rewards(tree: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yields each task in words ("" if there is but one), its reward, and the reward's weighted sum in words."""
    if reward := tree.get("reward"):
        for task, part in (reward.get("by_task") or {"": reward}).items():
            yield f" for {task}" if task else "", part, weighted_sum(part["fn"], quote="`")


def _families(tree: dict[str, Any], trained: Trained) -> Iterator[list[str]]:
    """Yields a row for each family: PEFT's has what none of our own has. Without families, a row for all weights."""
    for name, settings in _settings(tree).items():
        count = trained.families.get(name, trained.count - sum(trained.families.values()))
        parts = (f"{key} {', '.join(map(str, value)) if isinstance(value, list) else value}"
                 for key, value in settings.items())  # fmt: skip
        yield [name, f"{count:,}", "; ".join(parts)]
    if not _settings(tree):
        yield ["all weights", f"{trained.count:,}", ""]


def _evaluation(run: Path, place: Path) -> dict[str, Any]:
    """Returns the table of the first evaluation, those after stages and the last one, and notes on it and on SFT."""
    rows = [row for row in _rows_until(run, place, "evaluations") if "went_back" not in row]
    shown = {_moment(row) for row in (*rows[:1], *rows[-1:], *(row for row in rows if row["when"] in WHEN))}
    rows = [row for row in rows if _moment(row) in shown]
    rows = [row | row["pass_at_k"][-1] if len(row.get("pass_at_k", ())) > 1 else row for row in rows]  # the largest k
    columns = [key for key in COLUMNS if any(is_number(row.get(key)) for row in rows)]
    largest = f"pass@{max((row.get('k', 1) for row in rows), default=1)}"
    notes = [] if rows else ["Not evaluated on held-out rows."]
    if rows and "loss" not in columns:
        note = f"Exact match {samples_of(rows)}; in brackets 95 % intervals."
        notes.append(" ".join([note, *(text for key, text in LEGEND.items() if key in columns)]))
    if rows and _moment(rows[-1])[1] < (position(place) or (inf, inf))[1] < inf:
        notes.append("These weights were saved after the last of these evaluations.")
    losses = [row["loss"] for row in _rows_until(run, place, "metrics") if "stage" not in row]  # of SFT
    if losses:
        ends = f"{losses[0]:.4f} in the first step, {losses[-1]:.4f} in the last"
        notes.append(f"Loss on what was trained, in nats per token: {ends}.")
    return {
        "heads": ["", *(COLUMNS[key].replace("pass@k", largest) for key in columns)],
        "rows": [[_label(row, rows), *(_cell(row, key) for key in columns)] for row in rows],
        "notes": notes,
    }


def _label(row: dict, rows: list[dict]) -> str:
    where = f"stage {row['stage']} step {row['step']}" if row.get("stage") else f"step {row['step']}"
    return label_of({"label": where, **row}, rows)


def _cell(row: dict, key: str) -> str:
    if not is_number(row.get(key)):
        return ""
    sign = "+" if key == "delta" else ""
    ends = [f"{end:{sign}.3f}" for end in row.get(f"{key}_ci95") or () if is_number(end)]
    return f"{row[key]:{sign}.3f}" + (f" [{', '.join(ends)}]" if ends else "")


def _unknown_to_peft(tree: dict[str, Any], files: set[str], trained: Trained) -> str:
    """Returns the reason why PEFT alone cannot load an adapter, "" if it can."""
    if below := tree["model"].get("adapter"):
        return f"it stands on a base with `{below}` merged into it"
    return f"it does not know {', '.join(trained.families)}, and would leave them out" if EXTRA in files else ""


def _published(tree: dict[str, Any], has_users_names: bool = False) -> dict[str, Any]:
    """Returns the part of a config that reproduces the method. Of a server it keeps the model: the rest may hold keys.

    With `has_users_names`, the user chose the names in `tree`, and each holds a section.
    """
    shown = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            if has_users_names or key in SECTIONS:
                shown[key] = _published(value, has_users_names=key in ("mixture", "by_task"))
            elif key in WHOLE:
                shown[key] = value
            elif key == "servers" and value:
                shown[key] = {name: {"model": server.get("model")} for name, server in value.items()}
        elif value is not None:
            values = value if isinstance(value, list) else [value]
            if key in TEXTS or all(isinstance(item, int | float) for item in values):
                shown[key] = value
    return shown


def as_yaml(tree: dict[str, Any]) -> str:
    """Returns the part of a config that a card shows, as YAML."""
    return yaml.safe_dump(_published(tree), sort_keys=False, allow_unicode=True, width=100).rstrip()

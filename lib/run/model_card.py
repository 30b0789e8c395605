"""The model card of trained weights: what they are, of what and how well, and how to load them.

It stands beside the weights as README.md, with the metadata that the Hugging Face Hub reads. What it says comes from
the run's config.yaml, evaluations.jsonl and metrics.jsonl, up to the step of the weights, and nothing in it depends on
the time: a resumed run writes the same card.
"""

import functools
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, prod
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import safe_open

from lib.core.config import read_tree
from lib.core.console import WHEN, label_of, samples_of
from lib.run.adapter_files import own_adapters
from lib.run.directory import ADAPTER, CARD, EXTRA
from lib.run.runlog import is_number, read_jsonl
from lib.run.tracking import without_secrets

HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")
FOLDERS = re.compile(r"(?:^|/)stage(\d+)(?:/step_(\d+))?$")
LICENCE = ("license", "license_name", "license_link")  # as a card's metadata has them
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


def trained_in(model: torch.nn.Module) -> Trained:
    """Counts the trained numbers of a model."""
    own = own_adapters(model)
    count = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return Trained(count, own.counts() if own else {}, own.obstacles() if own else {})


def trained_in_folder(adapter: Path) -> Trained:
    """Counts the numbers of a saved adapter of PEFT's alone."""
    with safe_open(adapter / ADAPTER, "pt") as file:
        return Trained(sum(prod(file.get_slice(name).get_shape()) for name in file.keys()), {}, {})  # noqa: SIM118


def write_card(folder: Path, place: Path, run: Path, tree: dict[str, Any], trained: Trained) -> None:
    """Writes the card of the weights in `folder`, which will be known as `place`, of the run with the config `tree`.

    Raises OSError.
    """
    parts = [_metadata(tree, folder), *_description(tree, place, trained), *_results(run, place)]
    if (folder / "config.json").is_file():
        parts += ["## Use", _code(_whole(place))]
    else:
        parts += _use(tree, folder, place, trained)
    (folder / CARD).write_text("\n\n".join([*parts, _config(tree)]) + "\n", encoding="utf-8")


def write_merged_card(out: Path, adapter: Path, tree: dict[str, Any], trained: Trained, found: str) -> None:
    """Writes the card of a model with `adapter` merged into it; `found` tells how the two compare.

    Says how the adapter was trained if it lies in its run, otherwise `tree` has its config. Raises OSError.
    """
    place = Path(os.path.relpath(adapter.resolve()))  # `best` is a link to a checkpoint, whose name tells its step
    run, tree = _run_of(place) or (None, tree)
    merged = f"A plain model: the adapter `{place}` is merged into its base. {found[:1].upper()}{found[1:]}."
    parts = [_metadata(tree, out), *_description(tree, place, trained), merged]
    parts += _results(run, place) if run else []
    (out / CARD).write_text("\n\n".join([*parts, "## Use", _code(_whole(out)), _config(tree)]) + "\n", encoding="utf-8")


def _run_of(place: Path) -> tuple[Path, dict[str, Any]] | None:
    """Returns the run that an adapter lies in, and its config; None if it was moved elsewhere."""
    for run in place.absolute().parents[: 2 if place.name.startswith("step_") else 1]:
        if (run / "config.yaml").is_file() and "run_name" in (tree := read_tree(run / "config.yaml")):
            return run, tree
    return None


def _rows_until(run: Path, place: Path, stream: str) -> list[dict]:
    """Returns the rows of a stream up to the step of the weights in `place`."""
    path, last = run / f"{stream}.jsonl", _moment_of(place)
    return [row for row in read_jsonl(path)[0] if _moment(row) <= last] if path.exists() else []


def _moment(row: dict) -> tuple[float, float]:
    return row.get("stage", 1), row["step"]


def _moment_of(place: Path) -> tuple[float, float]:
    """Returns stage and step of saved weights; the end of either is infinity."""
    found = FOLDERS.search(place.as_posix())
    return (int(found[1]), float(found[2] or inf)) if found else (inf, inf)


def _largest_k(row: dict) -> dict[str, Any]:
    """Returns pass@k for the largest k, if that is above 1."""
    last = (row.get("pass_at_k") or [{"k": 1}])[-1]
    return {"k": last["k"], "pass": last["pass"], "pass_ci95": last["pass_ci95"]} if last["k"] > 1 else {}


def _metadata(tree: dict[str, Any], folder: Path) -> str:
    """Returns the metadata, without what the Hub would refuse: the name of a local folder is no base_model there."""
    model, is_whole = tree["model"], (folder / "config.json").is_file()
    data = {"base_model": model["name"]} if _is_hub_id(model.get("name")) else {}
    data |= licence_of(model.get("name"))
    data |= {"library_name": "transformers" if is_whole else "peft", "pipeline_tag": "text-generation"}
    data["tags"] = ["rematch", _method(tree)[0], *([] if is_whole else _settings(tree))]
    datasets = [source["name"] for source in _sources(tree) if _is_hub_id(source["name"])]
    data |= {"datasets": datasets} if datasets else {}
    return f"---\n{yaml.safe_dump(data, sort_keys=False)}---"


def _is_hub_id(name: str | None) -> bool:
    return bool(name) and HUB_ID.fullmatch(name) is not None and not Path(name).exists()


def licence_of(base: str | None) -> dict[str, str]:
    """Returns what the card of a base says of its licence, if the card is in its folder or in the Hub's local cache."""
    if not base:
        return {}
    path: Any = Path(base) / CARD
    if not Path(base).is_dir():
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError

        try:
            path = try_to_load_from_cache(base, CARD)
        except HFValidationError:
            return {}
    if not isinstance(path, str | Path) or not Path(path).is_file():  # the cache may know that there is none
        return {}
    found = re.match(r"---\n(.*?)\n---", Path(path).read_text(encoding="utf-8", errors="replace"), re.DOTALL)
    try:
        data = yaml.safe_load(found[1]) if found else None
    except yaml.YAMLError:
        return {}
    return {key: str(data[key]) for key in LICENCE if data.get(key)} if isinstance(data, dict) else {}


def _method(tree: dict[str, Any]) -> tuple[str, str]:
    """Returns the tag of the algorithm, and by what a model was trained."""
    if "reward" not in tree:
        return "sft", "by supervised fine-tuning"
    if "opponent" not in tree:
        return "score", "by SCoRe, reinforcement learning that teaches a model to correct its own answer"
    return "self-play", f"by reinforcement learning with self-play, loss {tree['train']['loss']}"


def _settings(tree: dict[str, Any]) -> dict[str, dict]:
    """Returns the settings of what is trained beside the base, by family."""
    return {name: settings for name, settings in tree["model"]["adapters"].items() if isinstance(settings, dict)}


def _description(tree: dict[str, Any], place: Path, trained: Trained) -> Iterator[str]:
    model, reward = tree["model"], tree.get("reward")
    found = FOLDERS.search(place.as_posix())
    when = f"after step {found[2]} of stage {found[1]}" if found and found[2] else "at the end of training"
    when = f"at the end of stage {found[1]}" if found and not found[2] else when
    yield f"# {tree['run_name']}"
    yield f"Trained with Rematch {_method(tree)[1]}. These are the weights {when}."
    base = f"`{model['name']}`" if model.get("name") else "none, all weights are trained from random ones"
    base += f", revision `{model['revision']}`" if model.get("revision") else ""
    base += f", with the adapter `{model['adapter']}` merged into it" if model.get("adapter") else ""
    licence = licence_of(model.get("name"))
    lines = [f"**Base:** {base}", f"**Licence of the base:** {licence.get('license', 'unknown')}"]
    lines += [f"**Data:** {_source_in_words(source)}" for source in _sources(tree)]
    for task, own in (reward.get("by_task") or {"": reward}).items() if reward else ():
        of = f" for {task}" if task else ""
        fn = own["fn"] if isinstance(own["fn"], dict) else {own["fn"]: 1}
        weighed = " + ".join(f"`{name}`" if weight == 1 else f"{weight:g} `{name}`" for name, weight in fn.items())
        lines += [
            f"**Reward{of}:** {weighed}",
            f"**Format of an answer{of}:** {own['format']}, compared by {own['match']}",
        ]
    for name in ("opponent", "teacher"):
        if settings := tree.get(name):
            who = (settings.get("endpoint") or {}).get("model")
            lines.append(f"**{name.capitalize()}:** {f'`{who}`' if who else 'earlier weights of the policy'}")
    yield "\n".join(f"- {line}" for line in lines)
    yield "## Trained numbers"
    yield _table(["family", "numbers", "settings"], _families(tree, trained))


def _sources(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the data set, or the parts of the mixture."""
    return list((tree["dataset"].get("mixture") or {"": tree["dataset"]}).values())


def _source_in_words(source: dict[str, Any]) -> str:
    text = f"`{source['name']}`"
    text += f", configuration `{source['config_name']}`" if source.get("config_name") else ""
    text += f", split `{source['split']}`" if source.get("split") else ""
    return text + (f", weight {source['weight']:g}" if "weight" in source else "")


def _families(tree: dict[str, Any], trained: Trained) -> Iterator[list[str]]:
    """Yields a row for each family; what no family of our own has, PEFT's one has, or it is all weights."""
    for name, settings in _settings(tree).items():
        count = trained.families.get(name, trained.count - sum(trained.families.values()))
        told = (f"{key} {', '.join(map(str, value)) if isinstance(value, list) else value}"
                for key, value in settings.items())  # fmt: skip
        yield [name, f"{count:,}", "; ".join(told)]
    if not _settings(tree):
        yield ["all weights", f"{trained.count:,}", ""]


def _results(run: Path, place: Path) -> Iterator[str]:
    """Yields the table of the first evaluation, those after stages and the last one, and the training loss of SFT."""
    yield "## Evaluation"
    rows = [row for row in _rows_until(run, place, "evaluations") if "went_back" not in row]
    shown = {_moment(row) for row in (*rows[:1], *rows[-1:], *(row for row in rows if row["when"] in WHEN))}
    rows = [row | _largest_k(row) for row in rows if _moment(row) in shown]
    if not rows:
        yield "Not evaluated on held-out rows."
    else:
        columns = [key for key in COLUMNS if any(is_number(row.get(key)) for row in rows)]
        heads = [COLUMNS[key].replace("pass@k", f"pass@{max(row.get('k', 1) for row in rows)}") for key in columns]
        lines = [[_label(row, rows), *(_cell(row, key) for key in columns)] for row in rows]
        yield _table(["", *heads], lines)
        if "loss" not in columns:
            told = f"Exact match {samples_of(rows)}; in brackets 95 % intervals."
            yield " ".join([told, *(text for key, text in LEGEND.items() if key in columns)])
        if _moment(rows[-1])[1] < _moment_of(place)[1] < inf:
            yield "These weights were saved after the last of these evaluations."
    losses = [row["loss"] for row in _rows_until(run, place, "metrics") if "stage" not in row]  # of SFT
    if losses:
        ends = f"{losses[0]:.4f} in the first step, {losses[-1]:.4f} in the last"
        yield f"Loss on what was trained, in nats per token: {ends}."


def _label(row: dict, rows: list[dict]) -> str:
    where = f"stage {row['stage']} step {row['step']}" if row.get("stage") else f"step {row['step']}"
    return label_of({"label": where, **row}, rows)


def _cell(row: dict, key: str) -> str:
    if not is_number(row.get(key)):
        return ""
    sign = "+" if key == "delta" else ""
    ends = [f"{end:{sign}.3f}" for end in row.get(f"{key}_ci95") or () if is_number(end)]
    return f"{row[key]:{sign}.3f}" + (f" [{', '.join(ends)}]" if ends else "")


def _table(heads: list[str], rows: Any) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _use(tree: dict[str, Any], folder: Path, place: Path, trained: Trained) -> Iterator[str]:
    """Yields how to load an adapter, or why PEFT alone cannot, and how to merge it, or why that is impossible."""
    model, alone = tree["model"], ""
    if model.get("adapter"):
        alone = f"it stands on a base with `{model['adapter']}` merged into it"
    elif (folder / EXTRA).exists():
        alone = f"it does not know {', '.join(trained.families)}, and would leave them out"
    yield "## Use"
    if alone:
        yield f"PEFT alone cannot load it: {alone}. `evaluate.py --adapter {place}` of Rematch can."
    else:
        yield _code(_adapted(tree, folder, place))
    if trained.obstacles:
        told = "; ".join(f"{name}: {reason}" for name, reason in trained.obstacles.items())
        yield f"It cannot be merged into its base ({told})."
        return
    if "reward" in tree:
        command = f"--config {Path(tree['output_dir']) / tree['run_name'] / 'config.yaml'} --adapter {place}"
    elif alone:
        command = f"--config CONFIG --adapter {place}"
    else:
        command = f"--config CONFIG model.name={model['name']} model.adapter={place}"
    yield "Merged by Rematch into a model of plain transformers, which vLLM and others read:"
    yield _code(f"python evaluate.py {command} --merge MERGED", "sh")
    if "reward" not in tree:
        yield f"CONFIG is any config of `train.py`{' with the model section of the one below' if alone else ''}."


def _adapted(tree: dict[str, Any], folder: Path, place: Path) -> str:
    model = tree["model"]
    more = f', revision="{model["revision"]}"' if model.get("revision") else ""
    more += ", trust_remote_code=True" if model.get("trust_remote_code") else ""
    has_tokenizer = (folder / "tokenizer_config.json").is_file()
    lines = [
        "from peft import PeftModel",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        f'tokenizer = AutoTokenizer.from_pretrained("{place if has_tokenizer else model["name"]}"'
        f"{'' if has_tokenizer else more})",
        f'base = AutoModelForCausalLM.from_pretrained("{model["name"]}", dtype="auto"{more})',
        f'model = PeftModel.from_pretrained(base, "{place}")',
    ]
    if model.get("chat_template") and not has_tokenizer:
        lines.insert(4, "tokenizer.chat_template = ...  # model.chat_template of the config below")
    if (folder / "generation_config.json").is_file():
        lines[1] = f"{lines[1]}, GenerationConfig"
        lines.append(f'model.generation_config = GenerationConfig.from_pretrained("{place}")')
    return "\n".join(lines)


def _whole(place: Path) -> str:
    return (
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        f'tokenizer = AutoTokenizer.from_pretrained("{place}")\n'
        f'model = AutoModelForCausalLM.from_pretrained("{place}", dtype="auto")'
    )


def _code(text: str, language: str = "python") -> str:
    return f"````{language}\n{text}\n````"  # four: a prompt in the config may have three


def _config(tree: dict[str, Any]) -> str:
    text = _as_yaml(json.dumps(without_secrets(tree)))
    return f"## Config\n\n<details><summary>config.yaml of the run</summary>\n\n{_code(text, 'yaml')}\n\n</details>"


@functools.lru_cache(maxsize=1)
def _as_yaml(tree: str) -> str:
    """Returns YAML of JSON: once, although every checkpoint of a run asks for it."""
    return yaml.safe_dump(json.loads(tree), sort_keys=False, allow_unicode=True, width=100).rstrip()

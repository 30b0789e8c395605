"""Facts about a run: its model and data, the changes of its config, its machine, and its time by phase."""

from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from pydantic import BaseModel, TypeAdapter

from lib.core.config import KINDS, keys_of, section_of, weighted_sum
from lib.core.console import duration, share
from lib.run.tracking import without_secrets
from pages.blocks import Facts, Listing, PageSection, Paragraph, Shares, TextTable, line_of, muted
from pages.run_folder import RunFolder


def facts_of(run: RunFolder) -> Facts:
    """Returns model, data, length and seed, by label."""
    config = run.config
    servers = config.get("servers") or {}
    named = [(config.get(name) or {}).get("server") for name in ("opponent", "teacher")]
    opponent, teacher = ((servers.get(name) or {}).get("model") for name in named)
    dataset, reward = (config.get(name) or {} for name in ("dataset", "reward"))
    tokens = sum(row.get("tokens") or 0 for row in run.metrics)
    seconds = sum(seconds_by_phase(run).values())
    items = {
        "model": (config.get("model") or {}).get("name") or ("from random weights" if config else None),
        "data": dataset.get("name") or ", ".join(part["name"] for part in (dataset.get("mixture") or {}).values()),
        "reward": "; ".join(f"{task}: {reward_in_words(own)}" for task, own in (reward.get("by_task") or {}).items())
        or reward_in_words(reward),
        "loss": (config.get("train") or {}).get("loss"),
        "opponent": opponent or ("the policy's past" if config.get("opponent") else None),
        "teacher": teacher,
        "seed": config.get("seed"),
        "trained": run.status,
        "tokens written": f"{tokens:,}" if tokens else None,
        "time in steps": duration(seconds) if seconds else None,
    }
    return Facts({name: str(value) for name, value in items.items() if value not in (None, "")})


def reward_in_words(reward: dict) -> str:
    """Describes what is paid: the function, what it reads of a text, and the form that the text must have."""
    if not reward.get("fn"):
        return ""
    form = {None: "", "free": ", no format declared"}.get(reward.get("format"), f", format {reward.get('format')}")
    extractor = reward.get("answer_extractor") or "identity"
    return f"{weighted_sum(reward['fn'])}{f' of {extractor}' if extractor != 'identity' else ''}{form}"


def machine_of(run: RunFolder) -> Facts:
    """Returns where the newest start of a run was, by label."""
    machine = run.machine
    items = {
        "commit": machine.get("commit") and machine["commit"][:12] + (" and changes" if machine["is_changed"] else ""),
        "machine": machine.get("gpu") or (machine.get("cpu") and f"{machine['cpu']}, {machine['cores']} cores"),
        "threads": machine.get("threads"),
        "versions": ", ".join(f"{name} {version}" for name, version in (machine.get("packages") or {}).items()),
    }
    return Facts({name: str(value) for name, value in items.items() if value not in (None, "")})


def seconds_by_phase(run: RunFolder) -> dict[str, float]:
    """Returns the seconds of all steps by phase (lib/core/clock.py), the longest first."""
    spent: dict[str, float] = {}
    for row in run.metrics:
        for key in row:
            if key.startswith("seconds_"):
                name = key.removeprefix("seconds_").replace("_", " and ")
                spent[name] = spent.get(name, 0.0) + (row[key] or 0.0)
    return dict(sorted(spent.items(), key=lambda item: -item[1]))


def clock(runs: Sequence[RunFolder]) -> list[PageSection]:
    """Returns the section of where the time went; empty where no time was logged."""
    bars: list[Paragraph | Shares] = []
    for run in runs:
        spent = seconds_by_phase(run)
        total = sum(spent.values())
        if total:
            bars += [Paragraph(f"{run.name}, {duration(total)}")] if len(runs) > 1 else []
            bars.append(Shares([(name, value / total, f"{duration(value)}, {share(value / total, digits=0)}")
                                for name, value in spent.items() if value >= 0.005 * total]))  # fmt: skip
    note = "Seconds of all steps by phase; evaluations and checkpoints between them are not counted."
    return [PageSection("Where the time went", bars, note)] if bars else []


def changed_settings(run: RunFolder) -> list[PageSection]:
    """Returns the section of the keys that are not at their defaults, and the whole config, folded."""
    if not run.config:
        return []
    config = without_secrets(run.config)
    listing = Listing(yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=100))
    whole = PageSection("Config", [listing], "As resolved; running it again repeats the run.", folded=True)
    lines = [line_of(key, [shown(value), shown(default)]) for key, value, default in unlike_defaults(config)]
    table = TextTable(muted("here", "default"), lines, "keys")
    note = "Keys that are not at their defaults; – is a key without one, or of another version."
    return [PageSection("Settings", [machine_of(run), table], note), whole]


def unlike_defaults(tree: dict) -> Iterator[tuple[str, Any, Any]]:
    """Yields each dotted key whose value is not its default: the key, the value, and the default, "–" if it has none.

    The config is that of the script with the fewest keys missing. It is not validated: a reward need not exist here.
    """
    given = set(flat(tree))
    kinds: tuple[type[BaseModel], ...] = KINDS
    kind = min(kinds, key=lambda each: len(given - set(keys_of(each, with_sections=True))))
    yield from _unlike(kind, tree, {}, "")


def _unlike(kind: type[BaseModel], tree: dict, instead: dict, prefix: str) -> Iterator[tuple[str, Any, Any]]:
    """Yields these keys of a section; `instead` has the defaults that its owner sets for it."""
    for name, value in tree.items():
        field = kind.model_fields.get(name)
        default = "–"
        if field is not None and not field.is_required():
            python = field.get_default(call_default_factory=True)
            default = instead.get(name, TypeAdapter(Any).dump_python(python, mode="json"))  # as YAML has it
        section = field and section_of(field)
        if section and isinstance(value, dict):
            yield from _unlike(section, value, default if isinstance(default, dict) else {}, f"{prefix}{name}.")
        elif value != default:
            yield f"{prefix}{name}", value, default


def shown(value: Any) -> str:
    """Formats a value for a table: numbers and texts as in YAML."""
    if isinstance(value, str):
        return value
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True)
    return text.removesuffix("...\n").strip()


def differing_settings(runs: Sequence[RunFolder]) -> PageSection:
    """Returns the section of the config keys in which the runs differ."""
    flats = [flat(without_secrets(run.config)) for run in runs]
    keys = dict.fromkeys(key for settings in flats for key in settings)
    values = {key: [settings.get(key, "–") for settings in flats] for key in keys}
    lines = [line_of(key, texts) for key, texts in values.items() if len(set(texts)) > 1]
    note = "Keys of the configs that are not the same in all runs."
    return PageSection("What differs", [TextTable(muted(*(run.name for run in runs)), lines, "keys")], note)


def flat(tree: dict, prefix: str = "") -> dict[str, str]:
    """Flattens a tree into dotted keys and their values as text."""
    result = {}
    for key, value in tree.items():
        result |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": str(value)}
    return result

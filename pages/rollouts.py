"""Rollouts as the page's browser takes them: an index of all of them, and their texts in compressed parts.

A rollout is what one sampled path of answers has: in SCoRe the attempts, in self-play one answer next to the
opponent's. The index has a column per property, so that 50,000 rollouts are filtered without their texts; these lie in
parts of PART rollouts, which the page inflates when they are looked at or searched.
"""

import base64
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

from lib.core.console import WHEN, answered
from lib.rl.checks import FORMS
from lib.run.runlog import encode, is_number
from lib.text.formats import format_problem
from pages.run_folder import RunFolder

PART = 400  # rollouts
LONGEST_TEXT = 20_000  # characters of one text; the log itself keeps no more
FLAGS = (
    "train", "evaluation", "i_to_c", "c_to_i", "right", "wrong", "malformed", "malformed_paid", "truncated", "copied",
    "changed", "won", "lost", "hinted", "teacher", "alarm", "tokens",
)  # fmt: skip
REVIEWS = ("check", "reflection")  # of an attempt, by the policy
ROLES = ("attempt", *REVIEWS)  # of a text in a chat, in their order
MOST = 0.75  # of the first texts of a run that have a form: then it is the run's


@dataclass
class Rollouts:
    """The rollouts of a page, `total` in all, of which those in `units` are kept."""

    runs: list[str]
    moments: list[dict] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    units: list[dict] = field(default_factory=list)
    total: int = 0
    flags: Sequence[str] = FLAGS  # and labels of rows

    @property
    def index(self) -> dict[str, Any]:
        """Returns everything but texts, a column per property."""
        columns = ("id", "moment", "prompt", "group", "number", "flags", "reward", "advantage")
        return {
            "part": PART, "total": self.total, "runs": self.runs, "flags": self.flags, "moments": self.moments,
            "rows": {name: [unit[name] for unit in self.units] for name in columns},
        }  # fmt: skip

    def blob(self, name: str) -> bytes | None:
        """Returns one file of the browser, gzipped JSON: "index", "prompts" or "part-7"; None if there is none."""
        if name == "index":
            return packed(self.index)
        if name == "prompts":
            return packed({"prompts": self.prompts})
        kind, _, number = name.partition("-")
        start = int(number) * PART if kind == "part" and number.isdecimal() else len(self.units)
        units = self.units[start : start + PART]
        return packed({"rollouts": [unit["body"] for unit in units]}) if units else None

    def within(self, most: int) -> tuple["Rollouts", dict[str, str]]:
        """Returns as many rollouts as fit into `most` bytes of base64, evenly drawn, and their blobs by name.

        Those of one prompt at one moment stay together.
        """
        kept, share = self, 1.0
        while True:
            names = ("index", "prompts", *(f"part-{start // PART}" for start in range(0, len(kept.units), PART)))
            blobs = {name: base64.b64encode(kept.blob(name)).decode() for name in names}
            size = sum(map(len, blobs.values()))
            if size <= most or not kept.units:
                return kept, blobs
            share *= 0.9 * most / size  # of the groups of all rollouts; it shrinks each time
            units = [unit for unit in self.units if int((unit["group"] + 1) * share) > int(unit["group"] * share)]
            used = {unit["prompt"] for unit in units}
            prompts = [text if number in used else "" for number, text in enumerate(self.prompts)]
            kept = Rollouts(self.runs, self.moments, prompts, units, self.total, self.flags)


def packed(tree: dict) -> bytes:
    """Returns a tree as gzipped JSON, the same bytes for the same tree; NaN and infinities become null."""
    return gzip.compress(encode(tree), compresslevel=6, mtime=0)


def rollouts_of(runs: Sequence[RunFolder]) -> Rollouts:
    """Returns the rollouts of all runs."""
    labels = ", ".join(str(row["labels"]) for run in runs for row in run.generations if "labels" in row).split(", ")
    flags_there = [*FLAGS, *sorted(set(labels) - {""})][:31]  # a browser's whole numbers have no more bits
    found = Rollouts([run.name for run in runs], flags=flags_there)
    prompts: dict[str, int] = {}
    groups: dict[tuple, int] = {}
    branches: dict[int, dict] = {}  # group -> first attempt -> its number, and how often it was continued
    for number, run in enumerate(runs):
        moments: dict[tuple, int] = {}
        spans = [(begin, end) for _, begin, end in run.alarm_spans()]
        for place, row, texts in texts_of(run):
            key = tuple(row.get(name) for name in ("when", "stage", "step", "temperature", "feedback", "part"))
            if key not in moments:
                moments[key] = len(found.moments)
                found.moments.append({"run": number, **moment_of(run, row, spans)})
            prompt = clipped(row["prompt"])
            unit: dict[str, Any] = {"id": place, "moment": moments[key]}
            unit["prompt"] = prompts.setdefault(prompt, len(prompts))
            unit["group"] = groups.setdefault((number, key, prompt), len(groups))
            branch = branches.setdefault(unit["group"], {})
            first = texts[0]["text"] if "attempt1" in row else place
            twigs = branch.setdefault(first, [len(branch) + 1, 0])
            twigs[1] += 1
            unit["number"] = f"{twigs[0]}.{twigs[1]}" if "attempt1" in row else f"{twigs[0]}"
            flags = flags_of(row, texts, found.moments[unit["moment"]]).union(str(row.get("labels", "")).split(", "))
            unit["flags"] = sum(1 << bit for bit, flag in enumerate(found.flags) if flag in flags)
            unit["reward"] = total_of(texts)
            unit["advantage"] = max((text["advantage"] for text in texts if "advantage" in text), key=abs, default=None)
            target = {"target": clipped(row["target"])} if row.get("target") is not None else {}
            more = {name: clipped(row[name]) for name in ("hint", "message") if row.get(name)}
            unit["body"] = target | more | {"texts": texts}
            found.units.append(unit)
    found.prompts, found.total = list(prompts), len(found.units)
    return found


def texts_of(run: RunFolder) -> Iterator[tuple[int, dict, list[dict]]]:
    """Yields each rollout: the number of its row, the row, and its texts, each with its verdict."""
    form = form_of_run(run)
    theirs: dict[tuple, dict] = {}
    for row in run.generations:
        if row.get("who") == "opponent":
            theirs.setdefault(game_of(row), row)
    for place, row in enumerate(run.generations):
        if not isinstance(row.get("step"), int) or not isinstance(row.get("prompt"), str):
            continue
        if "attempt1" in row:
            numbers = range(1, 1 + sum(f"attempt{number}" in row for number in range(1, 10)))
            texts = [
                text_of(row, role, number, form) for number in numbers for role in ROLES if f"{role}{number}" in row
            ]
        elif row.get("who") in ("policy", "teacher") and "text" in row:
            texts = [text_of(row, row["who"], None, form)]
            other = theirs.get(game_of(row)) if row["who"] == "policy" and not row.get("hint") else None
            texts += [text_of(other, "opponent", None, form)] if other else []
        else:
            continue
        yield place, row, texts


def text_of(row: dict, role: str, number: int | None, form: str | None) -> dict[str, Any]:
    """Returns one text of a row, with its verdict under plain names.

    `role`: who wrote it, or what it is in a chat of several attempts, where `number` is that of its attempt.
    """
    who, key = (role, "text") if number is None else (f"{role} {number}", f"{role}{number}")
    begin, end = f"{role}_" if role in REVIEWS else "", "" if number is None else str(number)
    text = {"who": who, "text": clipped(row.get(key))}
    kept = ("match", "reward", "about", "malformed", "length", "finished", "advantage")
    found = {name: value for name in kept if (value := row.get(f"{begin}{name}{end}")) is not None}
    if form and role not in ("opponent", "teacher", *REVIEWS) and "malformed" not in found:
        problem = format_problem(form, text["text"])
        found |= {"malformed": problem} if problem else {}
    if "advantage" in found and not is_number(found["advantage"]):
        del found["advantage"]
    tokens = tokens_of(row.get(f"{begin}tokens{end}"), str(row.get(key)))
    return text | found | ({"tokens": tokens} if tokens else {})


def tokens_of(noted: object, text: str) -> dict[str, Any] | None:
    """Returns the numbers of a text's tokens (lib/rl/tokens.py), with where each ends as a browser counts; or None.

    None where there are none, or they are not of this text.
    """
    if not isinstance(noted, dict) or len(text) > LONGEST_TEXT:
        return None
    sizes = noted.get("sizes")
    lists = [sizes, *(noted[name] for name in ("logp", "gap", "ratio") if name in noted)]
    if not all(isinstance(values, list) and len(values) == len(lists[0]) for values in lists):
        return None
    if not all(isinstance(size, int) and size >= 0 for size in sizes) or sum(sizes) != len(text):
        return None
    if not isinstance(noted.get("clipped", []), list):
        return None
    edges = [0, *accumulate(sizes)]
    pieces = [text[begin:end].encode("utf-16-le", "surrogatepass") for begin, end in pairwise(edges)]
    return {name: value for name, value in noted.items() if name != "sizes"} | {
        "ends": [bytes_before // 2 for bytes_before in accumulate(map(len, pieces))]
    }


def form_of_run(run: RunFolder) -> str | None:
    """Returns the form that most texts of a run had at first, where its config declares none; None if there is none.

    An alarm may name it, in a run whose first texts are no longer there.
    """
    if "format" in (run.config.get("reward") or {}) and not run.is_free:
        return None
    named = [form for form in FORMS for row in run.alarms if str(row["alarm"]).startswith(f"left_form_{form}")]
    if named:
        return named[0]
    first = [str(row.get("attempt1", row.get("text"))) for row in run.generations[:200] if row.get("who") != "opponent"]
    shares = {form: sum(not format_problem(form, text) for text in first) / max(1, len(first)) for form in FORMS}
    best = max(FORMS, key=shares.__getitem__)
    return best if shares[best] >= MOST else None


def flags_of(row: dict, texts: list[dict], moment: dict) -> set[str]:
    """Returns the flags by which a rollout is found."""
    own = own_texts(texts)
    first, last = own[0], own[-1]
    known = {True: "right", False: "wrong"}
    flags = {"train" if moment["train"] else "evaluation", known.get(last.get("match"), "")}
    flags |= {"alarm"} if moment["alarm"] else set()
    flags |= {"malformed"} if any("malformed" in text for text in own) else set()
    flags |= {"malformed_paid"} if any("malformed" in text and text.get("match") for text in own) else set()
    flags |= {"tokens"} if any("tokens" in text for text in own) else set()
    flags |= {"truncated"} if any(text.get("finished") is False for text in own) else set()
    flags |= {"hinted"} if row.get("hint") else set()
    flags |= {"teacher"} if row.get("who") == "teacher" else set()
    if len(own) > 1:
        flags |= {"copied" if own[-1]["text"].split() == own[-2]["text"].split() else "changed"}
        flags |= {{(False, True): "i_to_c", (True, False): "c_to_i"}.get((first.get("match"), last.get("match")), "")}
    if texts[-1]["who"] == "opponent":
        game = first.get("match"), texts[-1].get("match")
        flags |= {{(True, False): "won", (False, True): "lost"}.get(game, "")}
    return flags


def own_texts(texts: list[dict]) -> list[dict]:
    """Returns the answers of a rollout that are the policy's or its teacher's."""
    return [text for text in texts if not text["who"].startswith(("opponent", *REVIEWS))]


def total_of(texts: list[dict]) -> float | None:
    """Returns the reward of the policy's last text; None if it was not judged."""
    parts = own_texts(texts)[-1].get("reward")
    values = [value for value in parts.values() if is_number(value)] if isinstance(parts, dict) else []
    return float(f"{sum(values):.5g}") if values else None


def moment_of(run: RunFolder, row: dict, alarm_spans: list[tuple[int, int | None]]) -> dict[str, Any]:
    """Returns when a rollout was sampled, in words and as the step over all stages."""
    step, is_training = run.global_step(row), row.get("when") == "train"
    of_run = f" ({step})" if step != row["step"] else ""
    told = f"{run.stage_of(row)}step {row['step']}{of_run}{'' if is_training else ', held out'}"
    label = WHEN.get(row.get("when")) or row.get("label") or told
    if isinstance(row.get("temperature"), int | float):
        label += f", {answered(row)}"
    label += f", {row['part']}" if row.get("part") else ""
    in_alarm = is_training and any(begin <= step and (end is None or step <= end) for begin, end in alarm_spans)
    return {"label": label, "step": step, "when": row.get("when"), "train": is_training, "alarm": in_alarm}


def game_of(row: dict) -> tuple:
    """Returns the key that the two sides of a game share."""
    return tuple(row.get(name) for name in ("when", "stage", "step", "temperature", "feedback", "part", "prompt"))


def clipped(value: object) -> str:
    """Returns a text, with its middle left out if it is very long."""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"

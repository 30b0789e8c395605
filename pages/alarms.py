"""Alarms of a run in a reader's words: what happened, when, a text that shows it, and what to change."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from lib.rl.watch import COLLAPSE
from pages.blocks import Charts, PageSection, Paragraph, anchor_of, seen
from pages.rollouts import FLAGS, Rollouts, own_texts, total_of
from pages.run_folder import RunFolder

AROUND = 5  # steps before an alarm whose texts are shown with it
LONGEST = 300  # characters of an example
HEADLINES = {
    "malformed_is_paid": "Reward is being earned by malformed answers",
    "left_form_answer": "Reward is being earned without the <answer> block",
    "left_form_boxed": r"Reward is being earned without the \boxed{}",
    "accuracy_died": "Accuracy in training died",
    "held_out_collapsed": "Held-out accuracy collapsed",
    "kl_exploded": "The policy has moved far from its base",
    "entropy_exploded": "The policy became random",
    "no_gradient": "The gradient is exactly zero",
    "loss_exploded": "The loss exploded",
    "tokens_died": "Nearly all tokens are wrong",
}
DONE = {"warn": "Training went on.", "stop": "The run was stopped.", "restore": "It went back to its best checkpoint."}
PAID = {"malformed_paid"}
FLAGGED = {
    "malformed": "malformed",
    "truncated": "truncated",
    "copies": "copied",
    "answers_repeated": "copied",
    "answers_spoiled": "c_to_i",
    "accuracy_died": "wrong",
}


class Evidence(NamedTuple):
    """The rollouts behind an alarm: the fragment that shows them, the words of its link, and one of their texts."""

    link: str
    link_text: str
    example: str


def first_collapse(run: RunFolder) -> dict | None:
    """Returns the row of a run's first collapse; None without one."""
    return next((row for row, _, _ in run.alarm_spans() if row["severity"] == COLLAPSE), None)


def alert(run: RunFolder, rollouts: Rollouts, sections: Sequence[PageSection]) -> list[Paragraph]:
    """Returns the warning at the top of the page, since accuracies may look well; empty without a collapse.

    `sections` has the charts, one of which may show what the alarm has seen.
    """
    if (row := first_collapse(run)) is None:
        return []
    found, (saw, cure) = evidence(0, run, row, rollouts), told(run, row)
    lines = [Paragraph(f"{headline(row)}: {run.place(row)}. {DONE.get(row.get('action'), '')}".rstrip(), "warning")]
    hidden = "Accuracy counts such answers as right, so it does not show this." if texts_behind(row) == PAID else ""
    chart = chart_of(row["alarm"].partition(".")[2], sections)
    lines.append(Paragraph(f"{saw}. {hidden}".rstrip(), "", chart, "See the curve" if chart else ""))
    lines += [Paragraph(found.example, "example")] if found.example else []
    return [*lines, Paragraph(f"{cure}.".lstrip("."), "", found.link, found.link_text)]


def alarms(runs: Sequence[RunFolder], rollouts: Rollouts) -> list[PageSection]:
    """Returns the section of the alarms, in order of time, but for that of `alert`; empty without any."""
    lines = []
    for number, run in enumerate(runs):
        label = f"{run.name}: " if len(runs) > 1 else ""
        above = first_collapse(run) if len(runs) == 1 else None
        for row, _, end in run.alarm_spans():
            if row is above:
                continue
            until = "" if end is None else f", until step {end} of the run"
            found, (saw, cure) = evidence(number, run, row, rollouts), told(run, row)
            done = f" {DONE[row['action']]}" if row["severity"] == COLLAPSE and row.get("action") in DONE else ""
            text = f"{label}{headline(row)}: {run.place(row)}{until}.{done} {saw}. {cure}"
            lines.append(Paragraph(f"{text.rstrip(' .')}.", "warning", found.link, found.link_text))
    return [PageSection("Alarms", lines, "Raised in training, each with the config key to change.")] if lines else []


def chart_of(key: str, sections: Sequence[PageSection]) -> str:
    """Returns the fragment of the chart that draws a metric of training; "" where none does."""
    blocks = (block for section in sections for block in section.blocks if isinstance(block, Charts))
    drawn = (chart["title"] for block in blocks for chart in block.charts
             if chart["of"] == "metrics" and key in chart["keys"])  # fmt: skip
    return next((f"chart-{anchor_of(title)}" for title in drawn), "")


def headline(row: dict) -> str:
    """Names what an alarm is about."""
    name = row["alarm"].partition(".")[0]
    return HEADLINES.get(name, name.replace("_", " ").capitalize())


def told(run: RunFolder, row: dict) -> tuple[str, str]:
    """Returns the finding of an alarm and its fix, from its text in the log."""
    text = row["text"].replace(" %", "\u00a0%")
    text = re.sub(r"\bstage ([12]) step", lambda found: f"{run.stage_of({'stage': int(found[1])})}step", text)
    saw, _, cure = text.partition("; ")
    return saw[:1].upper() + saw[1:], f"Fix: {cure}" if cure else ""


def evidence(number: int, run: RunFolder, row: dict, rollouts: Rollouts) -> Evidence:
    """Returns the rollouts that show what an alarm of the run `number` is about, the clearest one first.

    That is the one with the highest advantage: what is learned from most. Of equal ones, the nearest to the alarm.
    """
    step, wanted = run.global_step(row), {"train", *texts_behind(row)}
    bits, begin = sum(1 << FLAGS.index(flag) for flag in wanted), max(0, step - AROUND)
    found = []
    for unit in rollouts.units:
        moment = rollouts.moments[unit["moment"]]
        if moment["run"] == number and begin <= moment["step"] <= step and unit["flags"] & bits == bits:
            texts = own_texts(unit["body"]["texts"])
            faulty = [text for text in texts if "malformed" in text and (text.get("match") or not wanted >= PAID)]
            text = (faulty or texts[-1:])[0]
            found.append((text.get("advantage") or 0.0, moment["step"], unit["id"], text))
    filters = ",".join(flag for flag in FLAGS if flag in wanted)
    link = f"from={begin}&to={step}&f={filters}&sort=advantage&by=parts" + f"&run={number}" * (len(rollouts.runs) > 1)
    if not found:
        return Evidence(link, "No rollout that is kept shows it", "")
    _, _, place, text = max(found, key=lambda each: each[:2])
    reward = total_of([text])
    example = seen(" ".join(text["text"].split()), LONGEST) + ("" if reward is None else f" → reward {reward:g}")
    words = f"Read the {len(found)} rollouts" if len(found) > 1 else "Read the rollout"
    return Evidence(f"{link}&r={number}.{place}", words, f"For example, {text['who']}: {example}")


def texts_behind(row: dict) -> set[str]:
    """Returns the flags of the rollouts that show what an alarm is about; none: all of them may."""
    name = row["alarm"].partition(".")[0]
    if name == "malformed_is_paid" or name.startswith("left_form"):
        return PAID
    return {FLAGGED[name]} if name in FLAGGED else set()

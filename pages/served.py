"""The page of models behind URLs: what their cards say, and every chat, from folders of evaluate.py --url."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from lib.core.console import interval, share
from lib.core.errors import ConfigError
from lib.run.runlog import read_jsonl
from pages.blocks import Cell, PageSection, TableLine, TextTable, muted, rate_cell, seen
from pages.rollouts import Rollouts
from pages.run_folder import RunFolder, read_run

CARD = "self_correction.json"
RATES = {"acc_attempt1": "attempt 1", "acc_attempt2": "attempt 2", "i_to_c": "i→c", "c_to_i": "c→i"}
LEADS = ("finds its own errors", "breaks right answers", "gives in to pressure")
IN_WORDS = {
    "yes": "it {}", "no sign": "no sign that it {}", "the opposite": "it {} less often than in the control",
    "not measured": "it was not measured whether it {}",
}  # fmt: skip
FINDINGS_NOTE = (
    "Each compares two conditions on the same attempts: the difference with its 95 % interval over questions, and p "
    "adjusted for all findings of a model (Holm). At temperature 0 there is no second draw, which the first two need. "
    "docs/reading.md says what each shows."
)
RATES_NOTE = (
    "Shares of all answers above their 95 % intervals; attempt 1 is always the model's own. i→c: wrong, then right."
)


def read_card(folder: Path) -> dict[str, Any]:
    """Returns the card in a folder of evaluate.py --url. Raises ConfigError if it is damaged."""
    rows, _ = read_jsonl(folder / CARD) if (folder / "transcripts.jsonl").is_file() else ([], 0)
    if not rows or not rows[0].keys() >= {"model", "conditions", "findings", "parts"}:
        raise ConfigError(f"{folder / CARD}: this is no card of evaluate.py --url: repeat its command with --resume")
    return rows[0]


def read_served(folder: Path) -> RunFolder:
    """Returns a folder of evaluate.py --url as a run whose generations are its chats."""
    rows, damaged = read_jsonl(folder / "transcripts.jsonl")
    firsts = {(row["question"], row["sample"]): row for row in rows if row["condition"] == "attempt1"}
    pairs = [(row, firsts.get((row["question"], row["sample"]))) for row in rows]
    chats = [_chat(row, first) for row, first in pairs if first and (row is not first or "error" in row)]
    declared = {"reward": {"format": "declared"}}  # the transcripts say what is malformed
    return replace(read_run(folder), generations=chats, config=declared, damaged=damaged)


def _chat(row: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    """Returns a chat as a row of generations.jsonl, with labels by which it is found."""
    condition, texts = row["condition"], [message["content"] for message in row["messages"]]
    reply = f"[no reply: {row['error']}]" if "error" in row else texts.pop()
    labels = [f"own attempt 1 {'right' if first['match'] else 'wrong'}"] if "match" in first else []
    labels += [f"{name} {row[name]}" for name in ("task", "step") if name in row]
    chat = {"when": condition, "label": condition, "stage": 1, "step": 0, "labels": ", ".join(labels)}
    if row is first:
        return chat | {"prompt": "\n\n".join(texts), "target": row["target"], "attempt1": reply}
    attempt, message = (first["messages"][-1]["content"], "") if condition == "redraw" else texts[-2:]
    prompt = "\n\n".join(texts if condition == "redraw" else texts[:-2])
    chat |= {"prompt": prompt, "target": row["target"], "attempt1": attempt, "message": message, "attempt2": reply}
    shown = {"planted": {"match": False}, "other": {}}  # attempts 1 that are not the model's answer to this question
    one: dict[str, Any] = shown.get(condition, first)
    both = (("1", one), ("2", row))
    return chat | {
        f"{name}{end}": of[name] for end, of in both for name in ("match", "malformed") if of.get(name, "") != ""
    }


def overview_of(cards: Sequence[dict[str, Any]], rollouts: Rollouts) -> dict[str, Any]:
    """Returns title, alert, lead, notes and sections of the page of one card, or of several."""
    names = [seen(str(card["model"]), 80) for card in cards]
    links = {(moment["run"], moment["label"]): number for number, moment in enumerate(rollouts.moments)}
    findings = [card["findings"] for card in cards]
    lines = [TableLine(name, [_finding(rows.get(name, {})) for rows in findings]) for name in findings[0]]
    sections = [PageSection("Findings", [TextTable(muted(*names), lines)], FINDINGS_NOTE)]
    conditions = [card["conditions"] for card in cards]
    sections.append(PageSection("Conditions", [_rates(names, conditions, links)], RATES_NOTE))
    for column in dict.fromkeys(chain(*(card["parts"] for card in cards))):
        parts = [card["parts"].get(column, {}) for card in cards]
        sections.append(PageSection(f"second_look by {column}", [_rates(names, parts, {})]))
    lead, notes = [], []
    for name, card in zip(names, cards, strict=True):
        answers = {finding: card["findings"][finding]["answer"] for finding in LEADS}
        lead.append(f"{name}: {'; '.join(IN_WORDS[answer].format(finding) for finding, answer in answers.items())}.")
        note = f"{name}: {card['attempts']} attempts at {card['prompts']} questions, temperature {card['temperature']}"
        notes.append(f"{note}, {card['failures']} requests without a reply or a verdict.")
    return {"title": ", ".join(names), "alert": [], "lead": " ".join(lead), "notes": notes, "sections": sections}


def _finding(row: dict[str, Any]) -> Cell:
    if not row.get("n"):
        return Cell("not measured")
    small = f"{share(row['difference'], '+')} [{interval(row['difference_ci95'], '+')}], p {row['p_holm']:.3f}"
    return Cell(row["answer"], f"{small}, n {row['n']}")


def _rates(names: Sequence[str], parts: Sequence[Mapping], links: Mapping[tuple[int, str], int]) -> TextTable:
    """Returns a table of rates, a line for each part; of several models a group of lines."""
    lines = []
    for part in dict.fromkeys(chain(*parts)):
        lines += [TableLine(part)] if len(names) > 1 else []
        for run, name in enumerate(names):
            row, cells = parts[run].get(part, {}), []
            for key in RATES:
                is_linked = key in ("i_to_c", "c_to_i") and part not in ("planted", "other") and (run, part) in links
                link = f"f={key}&at={links[run, part]}" if is_linked else ""
                cells.append(replace(rate_cell(row, key), link=link))
            gaps = [f"{row[key]} {key.replace('_', ' ')}" for key in ("missing", "left_out") if row.get(key)]
            cells.append(Cell(str(row.get("n", "–")), ", ".join(gaps)))
            lines.append(TableLine(name if len(names) > 1 else part, cells))
    return TextTable(muted(*RATES.values(), "n"), lines)

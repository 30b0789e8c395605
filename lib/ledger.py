"""Groups in the books: every text as a row of generations.jsonl, every answer and prompt in numbers."""

from collections.abc import Iterable
from math import isfinite
from statistics import fmean, pstdev
from typing import Any

from lib.config import Thinking
from lib.groups import Answer, Group, question_of
from lib.parsing import split_reasoning
from lib.selfplay import Played
from lib.stats import percentiles

LONGEST_TEXT = 20_000  # characters of a text in generations.jsonl; a server may write megabytes at every step


def brief(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the row with the middle of very long texts left out, and marked so; the whole text was judged."""
    return {
        key: f"{value[: LONGEST_TEXT // 2]}\n[{len(value) - LONGEST_TEXT} characters left out]\n"
        f"{value[-LONGEST_TEXT // 2 :]}"
        if isinstance(value, str) and len(value) > LONGEST_TEXT
        else value
        for key, value in row.items()
    }


def texts_of(group: Group) -> list[dict[str, Any]]:
    """Returns what the policy wrote, with its verdict, and with its hint where there was one."""
    asked = group.asked
    hint = {"hint": asked.hint} if asked.hint else {}
    return [
        {
            "who": "policy",
            "prompt": question_of(asked.plain or asked.messages),
            **hint,
            "text": answer.text,
            "match": answer.score.match if answer.score.scored else None,
            "reward": answer.score.components,
            **({"about": answer.score.about} if answer.score.about else {}),
            **({"malformed": answer.score.malformed} if answer.score.malformed else {}),
            "length": len(answer.completion.ids),
            "finished": answer.completion.finished,
        }
        for answer in group.answers
    ]


def reaction_text(each: Played) -> dict[str, Any]:
    """Returns what the opponent wrote, or why there is nothing."""
    reaction = each.reaction
    said = {"text": reaction.text, "error": reaction.error} if reaction.error else {"text": reaction.text}
    verdict = {"match": reaction.score.match, "reward": reaction.score.components} if reaction.score else {}
    if reaction.score and reaction.score.malformed:
        verdict["malformed"] = reaction.score.malformed
    cut = {} if reaction.finished else {"finished": False}
    return {"who": "opponent", "prompt": question_of(each.group.asked.messages), **said, **verdict, **cut}


def numbers_of(
    answer: Answer, thinking: Thinking | None = None, tokenizer: object = None
) -> dict[str, float | bool | None]:
    """Returns the metrics of an answer, no reward if it was not judged. With `thinking`, counts reasoning apart."""
    score = answer.score
    numbers = {
        "reward": score.reward if score.scored else None,
        "acc": float(score.match) if score.scored else None,
        "length": float(len(answer.completion.ids)),
        "truncated": float(not answer.completion.finished),
        "unscored": float(not score.scored),
        "well_formed": float(score.well_formed),
        **{f"reward/{name}": value for name, value in score.components.items()},
    }
    if thinking and (thinking.open_tag in answer.text or thinking.close_tag in answer.text):
        reasoning, _, ended = split_reasoning(answer.text, thinking.open_tag, thinking.close_tag)
        tokens = len(tokenizer(reasoning, add_special_tokens=False)["input_ids"])
        numbers |= {"thinking_tokens": float(tokens), "thinking_unclosed": float(not ended)}
    return numbers


def group_numbers(each: Played, rewards: list[float]) -> dict[str, float | None]:
    """Returns the metrics of a prompt; `rewards` are those that are trained on, games included, and may be empty."""
    mine, theirs = each.game
    is_game = mine is not None and theirs is not None
    return {
        "reward_std": pstdev(rewards) if rewards else 0.0,
        "equal_groups": float(len(set(rewards)) <= 1),
        "solved": float(any(each.group.matches)),
        "opponent_acc": None if theirs is None else float(theirs),
        "opponent_truncated": None if theirs is None else float(not each.reaction.finished),
        "wins": float(mine and not theirs) if is_game else None,
        "losses": float(theirs and not mine) if is_game else None,
    }


def updates_in_one(updates: list[dict]) -> dict[str, float]:
    """Averages the metrics of a step's optimizer steps; of `log_ratios`, one per answer, returns percentiles."""
    skipped = len(updates)
    updates = [each for each in updates if isfinite(each["loss"]) and isfinite(each["grad_norm"])]
    skipped -= len(updates)
    if not updates:
        return {"updates": 0, "skipped_updates": skipped, "loss": 0.0, "grad_norm": 0.0}
    numbers = [{key: value for key, value in each.items() if key != "log_ratios"} for each in updates]
    marks = percentiles([ratio for each in updates for ratio in each["log_ratios"]], (5, 50, 95))
    return {
        "updates": len(updates),
        "skipped_updates": skipped,
        **means_of(numbers),
        **{f"log_ratio_p{p}": value for p, value in marks.items()},
    }


def means_of(rows: Iterable[dict[str, float | None]]) -> dict[str, float]:
    """Returns the mean of each number over the rows that have it; a reward component that is missing counts as 0."""
    rows = list(rows)
    means = {}
    for name in sorted({name for row in rows for name in row}):
        absent = 0.0 if name.startswith("reward/") else None
        values = [value for row in rows if (value := row.get(name, absent)) is not None]
        if values:
            means[name] = fmean(values)
    return means

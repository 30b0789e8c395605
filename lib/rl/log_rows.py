"""Rows of the logs: the texts of groups for generations.jsonl, the numbers of answers and steps for metrics.jsonl."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from judge.parsing import split_reasoning
from lib.core.config import ATTEMPT, Thinking
from lib.core.stats import percentiles
from lib.rewards.routing import TASK
from lib.rl.prompts import NOT_DRAWN, Prompt, question_of
from lib.rl.tree import Answer, Group, paths

Notes = Mapping[int, dict[str, Any]]  # by `id()` of a completion that is trained: advantage, tokens (lib/rl/tokens.py)
NO_NOTES: Notes = {}
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


def texts_of(group: Group, notes: Notes = NO_NOTES) -> list[dict[str, Any]]:
    """Returns the policy's texts with their verdicts, and with the hint where there was one."""
    prompt = group.prompt
    hint = {"hint": prompt.hint} if prompt.hint else {}
    question = question_of(prompt.plain) if prompt.plain else prompt.question
    about = {"who": "policy", "prompt": question, **_origin_of(prompt), **hint}
    return [about | _text_of(answer, notes) for answer in group.answers]


def rows_of(tree: Group, target: Any, notes: Notes = NO_NOTES) -> list[dict[str, Any]]:
    """Returns a row for each path of a tree, with all of its attempts: `attempt1`, `match1`, and so on.

    Columns of a review begin with its role: `check1`, `check_match1`.
    """
    rows = []
    for path in paths(tree):
        row = {"prompt": tree.prompt.question, "target": target, **_origin_of(tree.prompt)}
        number = 0
        for group, answer in path:
            number += group.role == ATTEMPT
            part = _text_of(answer, notes) | {"match": answer.verdict.match}
            part |= {"feedback": group.prompt.feedback} if group.prompt.feedback else {}
            prefix = "" if group.role == ATTEMPT else f"{group.role}_"
            row |= {f"{group.role if name == 'text' else prefix + name}{number}": value for name, value in part.items()}
        rows.append(row)
    return rows


def _origin_of(prompt: Prompt) -> dict[str, str]:
    """Returns the task of the row, if it names one, and in training what drew it: data, easy or replay."""
    task = {TASK: str(prompt.row[TASK])} if TASK in prompt.row else {}
    return task if prompt.choice == NOT_DRAWN else {**task, "drawn_from": prompt.choice.source}


def _text_of(answer: Answer, notes: Notes) -> dict[str, Any]:
    verdict = answer.verdict
    return {
        "text": answer.text,
        "match": verdict.match if verdict.scored else None,
        "reward": verdict.components,
        **({"about": verdict.about} if verdict.about else {}),
        **({"malformed": verdict.malformed} if verdict.malformed else {}),
        "length": answer.length,
        "finished": answer.completion.finished,
        **notes.get(id(answer.completion), {}),
        **({"calls": [_call_of(call, notes) for call in answer.earlier]} if answer.earlier else {}),
    }


def _call_of(answer: Answer, notes: Notes) -> dict[str, Any]:
    """Returns an answer with calls of tools, and what these gave."""
    notes = notes.get(id(answer.completion), {})
    return {"text": answer.text, "result": answer.following.prompt.feedback, **notes}


def numbers_of(
    answer: Answer, thinking: Thinking | None = None, tokenizer: Any = None
) -> dict[str, float | bool | None]:
    """Returns the metrics of an answer, without a reward if it was not judged; `thinking`: counts reasoning tokens."""
    verdict = answer.verdict
    numbers = {
        "reward": verdict.reward if verdict.scored else None,
        "acc": float(verdict.match) if verdict.scored else None,
        "length": float(answer.length),
        "truncated": float(not answer.completion.finished),
        "unscored": float(not verdict.scored),
        "well_formed": float(verdict.well_formed),
        **{f"reward/{name}": value for name, value in verdict.components.items()},
    }
    if thinking and any(tag in answer.text for tag in thinking.tags):
        reasoning, _, ended = split_reasoning(answer.text, *thinking.tags)
        tokens = len(tokenizer(reasoning, add_special_tokens=False)["input_ids"])
        numbers |= {"thinking_tokens": float(tokens), "thinking_unclosed": float(not ended)}
    return numbers


def length_extremes(lengths: Sequence[float]) -> dict[str, float]:
    """Returns the 95th percentile and the maximum of answers' lengths, in tokens; {} if there are no answers."""
    return {"length_p95": percentiles(lengths, (95,))[95], "length_max": max(lengths)} if lengths else {}


def means_of(rows: Iterable[dict[str, float | None]]) -> dict[str, float]:
    """Returns the mean of each number over the rows that have it.

    A part of a reward that is missing counts as 0, with several tasks (`reward/<task>/<part>`) in rows of its task.
    """
    rows = list(rows)
    means = {}
    for name in sorted({name for row in rows for name in row}):
        task = name.rpartition("/")[0]
        used = rows if "/" not in task else [row for row in rows if any(key.rpartition("/")[0] == task for key in row)]
        absent = 0.0 if name.startswith("reward/") else None
        values = [value for row in used if (value := row.get(name, absent)) is not None]
        if values:
            means[name] = fmean(values)
    return means

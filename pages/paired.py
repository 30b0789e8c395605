"""Two evaluations of the same questions, compared question by question.

What they differ by is surer than either of them: a hard question is hard for both. A question counts once, however
many answers there are to it. This is about two sets of weights and these questions; whether a way of training is better
than another is a matter of seeds (sweep.py).
"""

from collections.abc import Sequence
from math import gcd
from pathlib import Path

from lib.core.console import answered, attempts_of, in_brackets, label_of, share
from lib.core.errors import ConfigError
from lib.core.stats import paired_delta_interval, sign_flip_p
from lib.run.runlog import read_jsonl

NAMES = {f"acc_attempt{number}": f"attempt {number}" for number in range(1, 10)} | {"delta": "delta", "acc": "pass@1"}
LEGEND = (
    "p is from the exact sign-flip test over questions (McNemar's, with one answer to each): how likely a difference "
    "at least this large would be if every question were as likely to change for the better as for the worse. "
    "Intervals are Student's, approximate for few questions: we call it a difference only where p < 0.05 and the "
    "interval leaves out 0."
)


def compare(first: dict, second: dict, names: Sequence[str]) -> list[dict]:
    """Compares two rows of evaluations.jsonl: returns a row per accuracy, and for delta, with interval and p-value.

    `names` identify the two in error messages; LEGEND explains p, and when they differ. Raises ConfigError if they
    cover different questions or have no results per question.
    """
    for row, name in zip((first, second), names, strict=True):
        if "per_question" not in row or "questions" not in row:
            raise ConfigError(
                f"{name}: has no results of single questions, like rows of earlier versions: measure it again with "
                "evaluate.py --output FILE, and compare that"
            )
    one, two = (_counts(row["per_question"]) for row in (first, second))
    if first["questions"] != second["questions"]:
        raise ConfigError(
            f"{names[0]} and {names[1]}: answered different questions, {len(one['n'])} and {len(two['n'])} of them: "
            "measure both on the same rows, with evaluate.py --rows FIRST END"
        )
    if attempts_of(one) != attempts_of(two):
        raise ConfigError(
            f"{names[0]} and {names[1]}: one has two attempts, the other single answers: compare like with like"
        )
    return [
        {"of": key, "first": sum(one[key]) / sum(one["n"]), "second": sum(two[key]) / sum(two["n"])}
        | _difference(one[key], one["n"], two[key], two["n"], most=2 if key == "delta" else 1)
        for key in NAMES
        if key in one
    ]


def chosen(sources: Sequence[str]) -> list[tuple[dict, dict, list[str]]]:
    """Selects the evaluations to compare, with names: the last of each of two sources; the first and last of one.

    A source is a run's folder or a file written by evaluate.py. `@` and a moment after it select another evaluation:
    `when` of its row, or its checkpoint (stage1/step_40). Only evaluations at the same temperature are compared.
    Raises ConfigError if there is nothing to compare.
    """
    found = [(source, _rows(source)) for source in sources]
    ends = (found[0][1], found[-1][1])
    ways = [way for way in ends[0] if way in ends[1] and (len(found) > 1 or len(ends[0][way]) > 1)]
    if not ways:
        there = " and ".join(f"{source} has {', '.join(rows)}" for source, rows in found)
        raise ConfigError(f"--compare: no two evaluations that were answered in the same way ({there}): give others")
    pairs = []
    for way in ways:
        rows = (ends[0][way][-1 if len(found) > 1 else 0], ends[1][way][-1])
        pairs.append((*rows, [named(found[0][0], rows[0]), named(found[-1][0], rows[1])]))
    return pairs


def named(source: str, row: dict) -> str:
    """Returns the name of an evaluation of a source; without a source, its name within a run."""
    name = f"{label_of({'label': _place(row), **row}, [row])}, {answered(row)}"
    return f"{source}, {name}" if source else name


def lines(first: dict, second: dict, names: Sequence[str]) -> list[str]:
    """Formats the comparison as lines for the terminal."""
    told = [f"{names[0]}  ->  {names[1]}: {len(first.get('per_question', {}).get('n', ()))} questions in pairs"]
    for row in compare(first, second, names):
        sign = "+" if row["of"] == "delta" else ""
        told.append(
            f"  {NAMES[row['of']]:10} {share(row['first'], sign)} -> {share(row['second'], sign)}   "
            f"{in_brackets(row, 'difference', '+')}   p = {row['p']:.2g}"
            f"{'' if row['differs'] else ', no measurable difference'}"
        )
    return told


def _counts(per_question: dict[str, list[int]]) -> dict[str, list[int]]:
    """Adds the counts for delta, those of the last attempt minus the first, where there are several."""
    attempts = attempts_of(per_question)
    if not attempts:
        return per_question
    pairs = zip(per_question["acc_attempt1"], per_question[f"acc_attempt{attempts[-1]}"], strict=True)
    return per_question | {"delta": [after - before for before, after in pairs]}


def _difference(one: list[int], n_one: list[int], two: list[int], n_two: list[int], most: int) -> dict:
    """Computes second minus first, from the right answers (`one`, `two`) and all answers (`n_*`) to each question."""
    before, after, group = [], [], []
    for question, (a, n_a, b, n_b) in enumerate(zip(one, n_one, two, n_two, strict=True)):
        before += [a / n_a] * n_a  # a question in several rows has the same weight on both sides
        after += [b / n_b] * n_a
        group += [question] * n_a
    every, other = sum(n_one), sum(n_two)
    unit = gcd(every, other)
    # b / other - a / every over a common denominator: the exact sign-flip test needs integers
    signed = [(b * every - a * other) // unit for a, b in zip(one, two, strict=True)]
    low, high = paired_delta_interval(before, after, group, most)
    p = sign_flip_p(signed)
    return {
        "difference": sum(two) / other - sum(one) / every,
        "difference_ci95": [low, high],
        "p": p,
        "differs": p < 0.05 and (low > 0 or high < 0),
    }


def _rows(source: str) -> dict[str, list[dict]]:
    """Reads the evaluations of a source, grouped by how they were sampled. Raises ConfigError if there are none."""
    folder, _, when = (source, "", "") if Path(source).exists() else source.rpartition("@")
    path = Path(folder) / "evaluations.jsonl" if Path(folder).is_dir() else Path(folder)
    if not folder or not path.is_file():
        raise ConfigError(f"--compare {source}: no evaluations there; give a run's folder, or a file of --output")
    every = [row for row in read_jsonl(path)[0] if "when" in row and "went_back" not in row]
    rows = [row for row in every if when in ("", row["when"], _place(row))]
    if not rows:
        known = dict.fromkeys(place for row in every for place in (row["when"], _place(row)))
        raise ConfigError(f"--compare {source}: no such evaluation in {path}; it has {', '.join(known) or 'none'}")
    ways: dict[str, list[dict]] = {}
    for row in rows:
        plain = {**row, "feedback": None} if row.get("feedback") == "none" else row  # asked like one of another run
        ways.setdefault(answered(plain), []).append(row)
    return ways


def _place(row: dict) -> str:
    return f"stage{row.get('stage', 1)}/step_{row.get('step')}"

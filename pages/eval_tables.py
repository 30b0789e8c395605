"""The tables that evaluate.py prints: attempts, single answers, swapped attempts, each value above its interval."""

from lib.core import console

LEGEND = "exact match; below each value its 95 % interval"


def of_answers(rows: list[dict]) -> list[str]:
    """Formats pass@1, pass@2, pass@4, ... at each temperature, each above its 95 % interval."""
    table = []
    for row in rows:
        numbers = {"pass@1": row["acc"], "pass@1_ci95": row["acc_ci95"]}
        for part in row["pass_at_k"][1:]:
            numbers |= {f"pass@{part['k']}": part["pass"], f"pass@{part['k']}_ci95": part["pass_ci95"]}
        table.append((console.answered(row), numbers, [key for key in numbers if not key.endswith("_ci95")]))
    lines = aligned(["", *max((keys for _, _, keys in table), key=len)], table)
    cuts = [
        f"{console.share(row['truncated'])} truncated, {console.share(row['well_formed'])} well-formed" for row in rows
    ]
    return [*lines, *(_counted(row, cut) for row, cut in zip(rows, cuts, strict=True)), LEGEND]


def of_attempts(rows: list[dict]) -> list[str]:
    """Formats the table of both attempts, then pass@k and the votes of each temperature."""
    return [*_accuracy_table(rows), *(line for row in rows for line in _samples_table(row))]


def _accuracy_table(rows: list[dict]) -> list[str]:
    """Formats all attempts, delta, i->c and c->i at each temperature, each above its 95 % interval."""
    attempts = console.attempts_of(rows[0])
    keys = [*(f"acc_attempt{number}" for number in attempts), "delta", "i_to_c", "c_to_i"]
    header = ["", *(f"attempt {number}" for number in attempts), "delta", "i->c", "c->i"]
    lines = aligned(header, [(console.answered(row), row, keys) for row in rows])
    for row in rows:
        truncated, formed = (
            " and ".join(console.share(row[f"{name}_attempt{number}"]) for number in attempts)
            for name in ("truncated", "well_formed")
        )
        lines.append(_counted(row, f"{truncated} truncated, {formed} well-formed"))
    return [*lines, LEGEND]


def _samples_table(row: dict) -> list[str]:
    """Formats the fresh draw, pass@k and, where asked for, the votes; returns no line for one sample."""
    lines = [f"{console.answered(row)}: {text}"] if (text := console.fresh_draw(row)) else []
    for part in row.get("pass_at_k", ()):
        lines.append(f"{console.answered(row)}: pass@{part['k']} of attempt 1 {console.in_brackets(part, 'pass')}")
    lines += [f"{console.answered(row)}: {text}" for text in console.one_after_another(row)]
    if row.get("majority"):
        keys = ["acc_parallel", "acc_sequential", "gain"]
        votes = [(f"K = {part['k']}", part, keys) for part in row["majority"]]
        counted = "the last attempts of K chats, or as many first attempts as they have"
        lines += ["", f"majority votes at {console.answered(row)}: {counted}"]
        lines += aligned(["", "parallel", "sequential", "gain"], votes)
    return lines


def of_swaps(rows: list[dict]) -> list[str]:
    """Formats attempt 2 by what it reads, at each temperature: overall, and by whether its own attempt 1 was right."""
    lines = []
    for row in rows:
        keys = [f"{key}{split}" for split in ("", "_own_wrong", "_own_right") for key in ("acc", "minus_own")]
        table = [(name, row["after"][context], [*keys, "repeats"]) for context, name in console.READ.items()]
        lines.append(f"{console.answered(row)}: how often attempt 2 is right, by what it reads")
        header = ["", "all", "minus own", "own wrong", "minus own", "own right", "minus own", "repeats y1"]
        lines += aligned(header, table)
        attempt1 = f"attempt 1 is right {console.share(row['acc_attempt1'])} of the time"
        lines += [_counted(row, attempt1), ""]
    return [*lines, LEGEND]


def _counted(row: dict, cut: str) -> str:
    """Says how much was measured, followed by `cut`."""
    return f"{console.samples_of([row])}, {cut}"


def aligned(header: list[str], rows: list[tuple[str, dict, list[str]]]) -> list[str]:
    """Formats a table of (label, numbers, keys), each value above its interval."""
    wide = max([16, *(len(label) for label, *_ in rows)])
    lines = [f"{header[0]:{wide}}" + "".join(f"{title:>16}" for title in header[1:])]
    for label, numbers, keys in rows:
        signs = ["+" if key.startswith(("delta", "gain", "minus")) else "" for key in keys]
        values = [console.share(numbers[key], sign) for key, sign in zip(keys, signs, strict=True)]
        ends = [console.interval(numbers[f"{key}_ci95"], sign) for key, sign in zip(keys, signs, strict=True)]
        lines.append(f"{label:{wide}}" + "".join(f"{value:>16}" for value in values))
        lines.append(" " * wide + "".join(f"{pair:>16}" for pair in ends))
    return lines

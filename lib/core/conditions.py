"""Reads what must be true of every run of a sweep, one line of YAML: `after_stage2.delta_ci95[0] > 0`.

A figure is `moment.key`, with `@temperature` where a moment has several rows (`after_stage2@0.acc_attempt2` is the
greedy one) and `[0]` or `[1]` for an end of an interval. Of the whole run are `accuracy`, of the last attempt at the
end, `accuracy_greedy`, `accuracy_greedy_before`, that of greedy answers before training, and
`accuracy_without_feedback`, that of a policy trained with feedback when asked without any; `gained`, how much higher
`accuracy` is than before training; `parameters`, those trained; `tokens`, those sampled in
training, and `tokens_to_level`, those before an evaluation first reached the sweep's `level`; `sampler_gap`, the
largest of all steps; `seconds_per_step`, `seconds` and `alarms`. Figures and numbers are joined by + - * /, abs, min
and max, and two sides are compared once.
"""

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType

FIGURE = re.compile(r"\b([A-Za-z]\w*)(?:@(\d+(?:\.\d+)?))?\.([A-Za-z_]\w*)(?:\[([01])\])?")
OF_A_RUN = (
    "accuracy", "accuracy_greedy", "accuracy_greedy_before", "accuracy_without_feedback", "gained", "parameters",
    "seconds_per_step", "tokens", "tokens_to_level", "seconds", "alarms", "sampler_gap",
)  # fmt: skip
JOINED = (ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.UnaryOp, ast.USub, ast.Call, ast.Name, ast.Load)
COMPARED = {ast.GtE: operator.ge, ast.Gt: operator.gt, ast.LtE: operator.le, ast.Lt: operator.lt}
CALLED: dict[str, Callable[..., float]] = {"abs": abs, "min": min, "max": max}
GRAMMAR = "expected figures such as after_stage2.delta, numbers, + - * /, abs, min, max, and one of >= > <= <"


@dataclass(frozen=True)
class Figure:
    """A number of one run: of one evaluation or, without a moment, of the whole run."""

    key: str
    moment: str | None = None
    temperature: float | None = None  # None: the sampled row if there are several
    end: int | None = None  # of an interval: 0 or 1


Look = Callable[[Figure], float | None]  # returns the value of a figure in a run, None if it has none


@dataclass(frozen=True)
class Condition:
    """A comparison that a run meets or not."""

    text: str
    left: CodeType
    right: CodeType
    holds: Callable[[float, float], bool]
    sign: int  # 1 where more is better, -1 where less is
    figures: dict[str, Figure]

    def measure(self, look: Look) -> tuple[bool, float, float] | None:
        """Returns whether it holds, its left side and its margin (below 0: it fails); None if a figure is missing."""
        values = {name: look(figure) for name, figure in self.figures.items()}
        if None in values.values():
            return None
        try:
            left, right = (eval(side, {"__builtins__": CALLED}, values) for side in (self.left, self.right))
        except ZeroDivisionError:
            return None
        return self.holds(left, right), left, self.sign * (left - right)


def read_condition(text: str) -> Condition:
    """Parses a condition. Raises ValueError if `text` holds anything but what the grammar has."""
    figures: dict[str, Figure] = {name: Figure(name) for name in OF_A_RUN}

    def named(match: re.Match) -> str:
        moment, temperature, key, end = match.groups()
        name = f"figure_{len(figures)}"
        figures[name] = Figure(key, moment, float(temperature) if temperature else None, int(end) if end else None)
        return name

    try:
        tree = ast.parse(FIGURE.sub(named, text.strip()), mode="eval").body
    except SyntaxError:
        tree = None
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1 or type(tree.ops[0]) not in COMPARED:
        raise ValueError(f"'{text}' is not a condition: {GRAMMAR}")
    sides = tree.left, tree.comparators[0]
    for node in (node for side in sides for node in ast.walk(side)):
        if isinstance(node, ast.Name) and node.id not in (*figures, *CALLED):
            raise ValueError(f"'{text}' is not a condition: '{node.id}' has no moment; {GRAMMAR}")
        if not isinstance(node, JOINED) and type(getattr(node, "value", None)) not in (int, float):
            raise ValueError(f"'{text}' is not a condition: {GRAMMAR}")
    left, right = (compile(ast.Expression(side), text, "eval") for side in sides)
    used = {name: figures[name] for name in (*left.co_names, *right.co_names) if name in figures}
    kind = type(tree.ops[0])
    condition = Condition(text, left, right, COMPARED[kind], 1 if kind in (ast.GtE, ast.Gt) else -1, used)
    try:
        condition.measure(lambda figure: 1.0)
    except TypeError as error:
        raise ValueError(f"'{text}' is not a condition: {error}; {GRAMMAR}") from error
    return condition

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
JOINED = (ast.Add, ast.Sub, ast.Mult, ast.Div)
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
    for side in (tree.left, tree.comparators[0]):
        _check(side, figures, text)
    left, right = (compile(ast.Expression(side), text, "eval") for side in (tree.left, tree.comparators[0]))
    used = {name: figures[name] for name in (*left.co_names, *right.co_names) if name in figures}
    kind = type(tree.ops[0])
    return Condition(text, left, right, COMPARED[kind], 1 if kind in (ast.GtE, ast.Gt) else -1, used)


def _check(node: ast.expr, figures: dict[str, Figure], text: str) -> None:
    """Raises ValueError for anything that is not in the grammar."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return
    if isinstance(node, ast.Name) and node.id in figures:
        return
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        parts = [node.operand]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, JOINED):
        parts = [node.left, node.right]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLED:
        parts = node.args
        if node.keywords or len(parts) < 1 + (node.func.id != "abs") or (node.func.id == "abs" and len(parts) > 1):
            raise ValueError(f"'{text}' is not a condition: abs has one argument, min and max have several")
    else:
        what = f"'{node.id}' has no moment" if isinstance(node, ast.Name) else f"'{ast.unparse(node)}'"
        raise ValueError(f"'{text}' is not a condition: {what}; {GRAMMAR}")
    for part in parts:
        _check(part, figures, text)

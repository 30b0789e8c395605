"""What two columns of tests ask alike, by running them: `asked_twice` records what each asks of the program.

The functions above it are sent into the sandbox as text, so each imports what it needs. A question is a call of an
entry point with its arguments and, where the row has a solution, what that answers: in `f('get')` after `f('set', 5)`
the answer is part of what is told. Without a solution every answer is 0, and the order of arguments does not count. A
test runs on when a statement of it fails, so that what follows is reached, too. What is not seen: calls that depend on
answers where there is no solution, and what is asked of classes; then equal tests alone are recognised.
"""

import contextlib
import inspect
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from judge.pool import Sandbox
from judge.tasks import CodeTask
from judge.worker import Program, lines_of

_BATCH = 20  # rows that one process runs: most of a row's time is its start


def asked_twice(
    tasks: Sequence[CodeTask], publics: Sequence[CodeTask], sandbox: Sandbox
) -> list[tuple[list[str], bool]]:
    """Returns for each task and its public tests the questions of both, and whether calls of both were seen."""
    pairs = list(zip(tasks, publics, strict=True))
    with ThreadPoolExecutor(sandbox.size) as several:
        batches = [pairs[start : start + _BATCH] for start in range(0, len(pairs), _BATCH)]
        return [result for batch in several.map(partial(_asked, sandbox), batches) for result in batch]


def _asked(sandbox: Sandbox, pairs: list[tuple[CodeTask, CodeTask]]) -> list[tuple[list[str], bool]]:
    given = [
        (
            sorted({*task.callables, *public.callables}),
            task.setup_code,
            task.solution,
            [task.tests, public.tests],
            [["\n".join(lines_of(case.stdin.strip())) for case in tests.stdio] for tests in (task, public)],
        )
        for task, public in pairs
    ]
    begin = ["import json, sys, io", "out, sys.stdout = sys.stdout, io.StringIO()"]
    end = f"print(json.dumps([recorded(*task) for task in {given!r}]), file=out)"
    source = "\n".join([*begin, *(inspect.getsource(part) for part in (plain, guarded, recorded)), end])
    seconds = sum(task.timeout_s for task, _ in pairs)
    run = sandbox.run(Program(source, timeout_s=seconds, memory_mb=max(task.memory_mb for task, _ in pairs)))
    with contextlib.suppress(ValueError):
        return [tuple(result) for result in json.loads(run.stdout)]
    if len(pairs) > 1:  # over a limit, or ended by a test
        return [result for pair in pairs for result in _asked(sandbox, [pair])]
    return [(sorted({*pairs[0][0].tests} & {*pairs[0][1].tests}), False)]


def plain(value, depth=0):
    """Returns a text that equal data share: whole floats and truth values as integers, tuples as lists."""
    if isinstance(value, (bool, int, float)):
        return repr(int(value)) if value in (0, 1) or value == value // 1 != value * 2 else repr(value)
    if depth > 20 or isinstance(value, (str, bytes, type(None))):
        return repr(value)[:10_000]
    if hasattr(value, "tolist"):  # an array
        return plain(value.tolist(), depth + 1)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(plain(part, depth + 1) for part in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(f'{plain(key)}: {plain(part, depth + 1)}' for key, part in value.items()))}}}"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(plain(part, depth + 1) for part in value))}}}"
    return repr(value).partition(" at 0x")[0]


def guarded(text):
    """Returns code that goes on after each statement that fails; asserts only compute what they ask."""
    import ast

    class Guarding(ast.NodeTransformer):
        def generic_visit(self, node):
            super().generic_visit(node)
            for name in ("body", "orelse", "finalbody"):
                if isinstance(block := getattr(node, name, None), list):
                    setattr(node, name, list(map(self.guard, block)))
            return node

        def guard(self, statement):
            if isinstance(statement, ast.Assert):
                parts = statement.test.values if isinstance(statement.test, ast.BoolOp) else [statement.test]
                statement = ast.Expr(ast.Tuple(parts, ast.Load()))
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                return statement
            handler = ast.ExceptHandler(ast.Name("BaseException", ast.Load()), None, [ast.Pass()])
            return ast.Try([statement], [handler], [], [])

    return compile(ast.fix_missing_locations(Guarding().visit(ast.parse(text))), "test", "exec")


def recorded(names, setup, solution, columns, inputs):
    """Returns the questions that both columns ask, of functions or as inputs of scripts, and whether both were seen."""
    import ast
    import inspect

    def entry(name):
        function = space.get(name)

        def call(*args, **named):
            try:
                bound = inspect.signature(function).bind(*args, **named)
                bound.apply_defaults()
                values = [plain(value) for value in bound.arguments.values()]
            except (TypeError, ValueError):  # no solution, which alone knows the order of keywords; or no right call
                values = sorted(map(plain, (*args, *named.values())))
            question = f"{name}({', '.join(values)})"
            if function is None:
                seen.add(question)
                return 0
            try:
                answer = function(*args, **named)
            except BaseException as error:
                seen.add(f"{question} raises {type(error).__name__}")
                raise
            seen.add(f"{question} -> {plain(answer)}")
            return answer

        return function if inspect.isclass(function) or name.lstrip("_")[:1].isupper() else call

    space = {"__name__": "solution"}
    exec(guarded(solution), space)
    results = []
    for tests in columns:
        seen = set()
        for test in tests:
            here = {"__name__": "tests"}
            exec(guarded(setup), here)
            here.update({name: entry(name) for name in names})
            exec(guarded(test), here)
        results.append((seen, {ast.unparse(ast.parse(test)) for test in tests}))
    (hidden, texts), (public, others) = results
    both = hidden & public | texts & others | {*inputs[0]} & {*inputs[1]}
    return sorted(both)[:3], bool(inputs[0] or (hidden and public))

"""Builds one-line programming tasks for the tiny demo: careless chats to imitate, tasks with tests to learn from.

    python data/build_tiny_code.py --out data/generated/tiny-code --seed 0

"add 4, then times 3" asks for `def f(x): return (x+4)*3`. Two or three operations follow each other, and parentheses
stand where Python would take them in another order. `sft.jsonl` is a curriculum: first lessons without slips, then
chats in which every operator, every number and the parentheses are wrong with probability 0.11, each on its own. Who
imitates them knows how, and errs in more than half of its answers.

One task in five has a rare word (`RARE`). Chats know what it means with a hint alone, `{prompt}\\nHint: {hint}`; in
those without one, some plain operation takes its place, never the right one. So whoever imitates them solves such tasks
when given the row's `hint`, and hardly ever without: to try again is no way to learn the word, to be told is one.
`train.jsonl` and `test.jsonl` are tasks as `judge/tasks.py` describes them; no prompt stands in two of these
three files; the program that one asks for may well stand in another's, asked for in other words. `teacher.jsonl`
teaches another model to give hints.

With `--public`, tasks have public tests besides the hidden ones, of other numbers, and chats have two attempts: after a
careless first one the user tells which public test it fails first (configs/tiny_code_tests.yaml). In lessons the second
one is right; in the other chats it is as careless as the first, so that they hardly show what feedback is good for.

With `--vague`, some tasks end in "add some": how much is a row's own, and no one can know it before a public test has
failed. The first one is of f(0), where all that comes before is 0, so that it reads `assert f(0) == 7` for 7. Attempts
guess the number, in lessons the first one alone (configs/sweep_tests.yaml). Keep to two attempts: after two failing
tests, a line through both points is right nearly always (.92 of the tasks), by whoever never reads the question.
"""

import argparse
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import chat, options, write_rows

OPERATORS: dict[str, tuple[int, Callable[[int, int], int]]] = {  # how strongly it binds, and what it does
    "+": (1, int.__add__),
    "-": (1, int.__sub__),
    "*": (2, int.__mul__),
    "//": (2, int.__floordiv__),
    "**": (3, int.__pow__),
}
PLAIN = {
    "+": ("add", "plus", "raise by"),
    "-": ("minus", "less", "lower by"),
    "*": ("times", "multiply by", "scale by"),
}
RARE = {  # word: operator, operand, hint; no plain word with one digit does the same
    "square": ("**", "2", "square means times itself"),
    "cube": ("**", "3", "cube means times itself twice"),
    "negate": ("*", "-1", "negate means times minus 1"),
    "halve": ("//", "2", "halve means divide by 2"),
    "tenfold": ("*", "10", "tenfold means times 10"),
    "bump": ("+", "10", "bump means add 10"),
}
HINTED = "{prompt}\nHint: {hint}"
BINDS_STRONGEST = 9
PUBLIC = (1, 30)  # numbers of public tests, an odd one and an even one; no hidden test has them
VAGUE, PUBLIC_VAGUE = "add some", (0, 30)  # after multiplications alone, f(0) is what is added
# what is said of an attempt, in the words of lib/rewards/programs.py
PASSED, FAILED = "Passed. Again.", "assert f({number}) == {right}; f({number}) answered {answer} Again."


class Operation(NamedTuple):
    """One step of a task: its words, and its meaning."""

    phrase: str
    operator: str
    operand: str
    hint: str = ""


def main() -> None:
    """Writes sft.jsonl, train.jsonl, test.jsonl and teacher.jsonl."""
    args = parse_arguments()
    rng = random.Random(args.seed)
    held_out = distinct_tasks(args.train + args.test, args.rare, args.vague, rng)
    rows = [task_row(task, rng) | (public_tests(task) if args.public else {}) for task in held_out.values()]
    write_rows(args.out / "test.jsonl", rows[: args.test])
    write_rows(args.out / "train.jsonl", rows[args.test :])
    drawn = tasks(args.sft_rare, rng, args.vague)
    others = (task for task in drawn if prompt_of(task) not in held_out)  # short tasks repeat
    first = args.noise if args.public else None
    lessons = [answered(next(others), args.hinted, 0.0, rng, first) for _ in range(args.lessons)]
    chats = [answered(next(others), args.hinted, args.noise, rng, first) for _ in range(args.chats)]
    write_rows(args.out / "sft.jsonl", lessons + chats)
    write_rows(args.out / "teacher.jsonl", (lesson_for_teacher(task) for task in islice(tasks(0.7, rng), args.teacher)))
    print(f"{args.out}: {len(lessons)} lessons, {len(chats)} chats, {args.train} train and {args.test} test tasks")


def parse_arguments() -> argparse.Namespace:
    """Returns the options."""
    result = options(__doc__, "data/generated/tiny-code")
    result.add_argument("--lessons", type=int, default=20_000, help="first rows of sft.jsonl, without slips")
    result.add_argument("--chats", type=int, default=12_000, help="the other rows of sft.jsonl, with slips")
    result.add_argument("--train", type=int, default=6_000, help="rows of train.jsonl")
    result.add_argument("--test", type=int, default=2_000, help="rows of test.jsonl")
    result.add_argument("--teacher", type=int, default=4_000, help="rows of teacher.jsonl")
    result.add_argument("--noise", type=float, default=0.11, help="probability of each slip in a chat")
    result.add_argument("--rare", type=float, default=0.2, help="share of train and test tasks that have a rare word")
    result.add_argument("--sft-rare", type=float, default=0.4, help="the same for sft.jsonl")
    result.add_argument("--hinted", type=float, default=0.7, help="share of the latter that come with a hint")
    result.add_argument("--public", action="store_true", help="public tests, and chats of two attempts")
    result.add_argument("--vague", type=float, default=0.0, help="share of tasks that a public test has to complete")
    args = result.parse_args()
    if args.vague and not args.public:
        result.error("--vague: no public test would tell what is left open; add --public")
    return args


def distinct_tasks(count: int, rare: float, vague: float, rng: random.Random) -> dict[str, list[Operation]]:
    """Returns `count` distinct tasks by their prompts."""
    found = {}
    for task in tasks(rare, rng, vague):
        if len(found) == count:
            break
        found.setdefault(prompt_of(task), task)
    return found


def tasks(rare: float, rng: random.Random, vague: float = 0.0) -> Iterator[list[Operation]]:
    """Yields tasks without end: a quarter of two operations, the others of three; at most one operation is a rare word.

    No task returns its input unchanged, as "add 1, then minus 1" would. A share of `vague` is of another kind: two or
    three multiplications, then an addition that the prompt leaves open.
    """
    while True:
        if vague and rng.random() < vague:
            factors = [multiplication(rng) for _ in range(rng.choice((2, 3, 3)))]
            yield guessed([*factors, Operation(VAGUE, "+", "1")], rng)
            continue
        task = [plain_operation(rng) for _ in range(rng.choice((2, 3, 3, 3)))]
        if rng.random() < rare:
            word = rng.choice(list(RARE))
            task[rng.randrange(len(task))] = Operation(word, *RARE[word])
        if any(result(task, number) != number for number in (1, 2)):
            yield task


def plain_operation(rng: random.Random) -> Operation:
    """Returns an operation of common words and one digit: `Operation("raise by 4", "+", "4")`."""
    operator = rng.choice(list(PLAIN))
    operand = rng.choice("23456789" if operator == "*" else "123456789")
    return Operation(f"{rng.choice(PLAIN[operator])} {operand}", operator, operand)


def multiplication(rng: random.Random) -> Operation:
    """Returns a multiplication by one digit."""
    operand = rng.choice("23456789")
    return Operation(f"{rng.choice(PLAIN['*'])} {operand}", "*", operand)


def guessed(task: list[Operation], rng: random.Random) -> list[Operation]:
    """Returns a task with some number where it leaves one open."""
    return [part._replace(operand=rng.choice("123456789")) if part.phrase == VAGUE else part for part in task]


def prompt_of(task: list[Operation]) -> str:
    """Returns the user's request."""
    return ", then ".join(operation.phrase for operation in task)


def hint_of(task: list[Operation]) -> str:
    """Returns the meaning of a task's rare word; "" for a task without one."""
    return next((operation.hint for operation in task if operation.hint), "")


def task_row(task: list[Operation], rng: random.Random) -> dict:
    """Returns one row of train.jsonl and test.jsonl."""
    # three numbers tell most programs apart; those that halve need an even one and an odd one
    inputs = rng.choice((2, 4, 6, 8)), rng.choice((3, 5, 7, 9)), rng.randint(10, 29)
    return {
        "prompt": prompt_of(task),
        "tests": [f"assert f({number}) == {result(task, number)}" for number in inputs],
        "entry_points": ["f"],
        "solution": program(pieces(task)),
        "hint": hint_of(task),
        "timeout_s": 1,
        "memory_mb": 64,
    }


def public_tests(task: list[Operation]) -> dict:
    """Returns the column of public tests."""
    return {"public_tests": [f"assert f({number}) == {result(task, number)}" for number in public_numbers(task)]}


def public_numbers(task: list[Operation]) -> tuple[int, ...]:
    """Returns the numbers of a task's public tests."""
    return PUBLIC_VAGUE if task[-1].phrase == VAGUE else PUBLIC


def told(task: list[Operation], expression: list[str]) -> str:
    """Returns the user's message after an attempt: the first public test that it fails, or that it passes."""
    for number in public_numbers(task):
        right, answer = result(task, number), eval("".join(expression), {"x": number})
        if answer != right:
            return FAILED.format(number=number, right=right, answer=answer)
    return PASSED


def result(task: list[Operation], number: int) -> int:
    """Applies the operations to a number, one after the other."""
    for operation in task:
        number = OPERATORS[operation.operator][1](number, int(operation.operand))
    return number


def pieces(task: list[Operation]) -> list[str]:
    """Returns the expression with only the parentheses that it needs: `["(", "x", "+", "4", ")", "*", "3"]`."""
    expression, weakest = ["x"], BINDS_STRONGEST
    for operation in task:
        strength = OPERATORS[operation.operator][0]
        if strength > weakest:
            expression = ["(", *expression, ")"]
        expression += [operation.operator, operation.operand]
        weakest = strength
    return expression


def program(expression: Iterable[str]) -> str:
    """Returns the text of an answer."""
    return f"def f(x): return {''.join(expression)}"


def answered(
    task: list[Operation], hinted: float, noise: float, rng: random.Random, first: float | None = None
) -> dict:
    """Returns a row of sft.jsonl. A rare word has its hint, or a plain operation takes its place in the answer.

    `first`: probability of each slip in an attempt before this answer; None: there is none.
    """
    prompt, hint, asked = prompt_of(task), hint_of(task), task
    if hint and rng.random() < hinted:
        prompt = HINTED.format(prompt=prompt, hint=hint)
    elif hint:
        task = [plain_operation(rng) if operation.hint else operation for operation in task]
    before = []
    if first is not None:
        attempt = careless(pieces(guessed(task, rng)), first, rng)
        before = [program(attempt), told(asked, attempt)]
    second = guessed(task, rng) if noise else task
    return chat(prompt, *before, program(careless(pieces(second), noise, rng)))


def lesson_for_teacher(task: list[Operation]) -> dict:
    """Returns a row of teacher.jsonl: a task and its hint; without a rare word, advice that always holds."""
    return chat(prompt_of(task), hint_of(task) or "mind the order")


def careless(expression: list[str], noise: float, rng: random.Random) -> list[str]:
    """Adds slips to the pieces: another operator, another number, no parentheses, each with probability `noise`."""
    if rng.random() < noise:
        expression = [piece for piece in expression if piece not in "()"]
    return [slip(piece, rng) if piece not in "(x)" and rng.random() < noise else piece for piece in expression]


def slip(piece: str, rng: random.Random) -> str:
    """Returns another plain operator in place of an operator, another digit in place of a number."""
    return rng.choice([other for other in ("+-*" if piece in OPERATORS else "123456789") if other != piece])


if __name__ == "__main__":
    main()

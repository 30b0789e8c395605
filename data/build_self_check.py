"""Builds five sets of questions in three steps of difficulty, on which models from 135M to the largest err.

    python data/build_self_check.py                                        # data/self_check, as it is shipped
    python data/build_self_check.py --seed 1 --each 500 --out data/generated/self-check

sums       additions of 3, 6 and 12 numbers of 2, 4 and 9 digits; every column carries
lists      which of 8, 20 and 60 people meet one, two and three conditions; the answer names all of them
dates      a date some days after another: within weeks, over years, and counted in working days
programs   tasks of data/code_tasks.jsonl with their tests; the step is the length of the solution. A model that was
           trained on these tasks knows them
puzzles    who lives in which of 3, 4 and 5 houses, by reasoning-gym (pip install -r requirements-tasks.txt)

`test.jsonl` has --each questions of every set, of which any first rows have sets and steps in equal shares. Columns are
`question` (with the form of the answer), `answer`, `task`, `step` (1 to 3) and, for programs, what their tests need.
`train.jsonl` has one more row of each set and step, because a data set must have rows to train on. The puzzles are made
by reasoning-gym (Apache-2.0); all else is our own. Everything comes under the licence of Rematch.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import partial
from itertools import count, islice
from operator import itemgetter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import distinct, options, write_rows
from lib.core.errors import FINISHED, ConfigError, run_script

STEPS = (1, 2, 3)
SUMS = {1: (3, 2), 2: (6, 4), 3: (12, 9)}  # numbers and their digits
PEOPLE, CONDITIONS = {1: 8, 2: 20, 3: 60}, {1: 1, 2: 2, 3: 3}
NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hal", "Iris", "Jon", "Kim", "Leo", "Mia", "Ned", "Ola",
         "Pia", "Quin", "Rob", "Sue", "Tim", "Uma", "Vic", "Wes", "Xena", "Yara", "Zac")  # fmt: skip
CITIES = ("Bergen", "Cork", "Graz", "Lille", "Porto", "Turku")
JOBS = ("baker", "driver", "judge", "nurse", "pilot", "tailor")
FIRST_DAY, DAYS = date(1980, 1, 1), 20_000  # of the days from which dates are counted
IN_A_ROW = {1: (3, 3), 2: (4, 4), 3: (5, 5)}  # houses of a puzzle and the kinds of facts about them
PROGRAMS = Path(__file__).parent / "code_tasks.jsonl"
COLUMNS = ("tests", "stdio", "entry_points", "timeout_s", "memory_mb")  # of a program, for its tests
IN_A_BLOCK = "End with the answer in this form: <answer>{form}</answer>"


def main() -> int:
    """Writes test.jsonl and train.jsonl."""
    args = command_line()
    cells = {
        (task, step): iter(partial(make, step, random.Random(f"{args.seed} {task} {step}")), None)  # without end
        for step in STEPS
        for task, make in {"sums": a_sum, "lists": a_list, "dates": a_date}.items()
    }
    cells |= {("programs", step): programs(step, random.Random(f"{args.seed} programs")) for step in STEPS}
    cells |= {("puzzles", step): puzzles(step, random.Random(f"{args.seed} puzzles {step}")) for step in STEPS}
    counts = {(task, step): len(range(step - 1, args.each, len(STEPS))) for task, step in cells}
    new = {cell: distinct(rows, itemgetter("question")) for cell, rows in cells.items()}
    drawn = {cell: list(islice(rows, counts[cell] + 1)) for cell, rows in new.items()}
    if short := [f"{task} of step {step}" for (task, step), rows in drawn.items() if len(rows) <= counts[task, step]]:
        raise SystemExit(f"--each {args.each}: there are fewer {', '.join(short)}: give a lower number")
    order = sorted((number, step, task) for (task, step), most in counts.items() for number in range(most))
    test = [drawn[task, step][number] for number, step, task in order]
    write_rows(args.out / "test.jsonl", test)
    write_rows(args.out / "train.jsonl", (rows[-1] for rows in drawn.values()))
    print(f"{args.out}: {len(test)} questions")
    return FINISHED


def command_line() -> argparse.Namespace:
    """Returns the options."""
    result = options(__doc__, "data/self_check", seed=3407)
    result.add_argument("--each", type=int, default=200, metavar="N", help="questions of every set (default: 200)")
    args = result.parse_args()
    if args.each < len(STEPS):
        result.error(f"--each {args.each}: expected at least {len(STEPS)}, one of each step")
    return args


def row_of(task: str, step: int, question: str, form: str, answer: str) -> dict:
    """Returns a row whose answer stands in an answer block."""
    return {"question": f"{question}\n\n{IN_A_BLOCK.format(form=form)}", "answer": answer, "task": task, "step": step}


def a_sum(step: int, rng: random.Random) -> dict:
    """Returns an addition in which every column carries."""
    many, digits = SUMS[step]
    while True:
        numbers = [rng.randrange(10 ** (digits - 1), 10**digits) for _ in range(many)]
        if all(sum(number % 10**place for number in numbers) >= 10**place for place in range(1, digits + 1)):
            return row_of("sums", step, f"What is {' + '.join(map(str, numbers))}?", "42", str(sum(numbers)))


def a_list(step: int, rng: random.Random) -> dict:
    """Returns a list of people and the question which of them meet all conditions; at least two do."""
    while True:
        names = [f"{name} {letter}." for name in NAMES for letter in "BDKMST"]
        people = [
            (name, rng.randint(18, 80), rng.choice(CITIES), rng.choice(JOBS))
            for name in rng.sample(names, PEOPLE[step])
        ]
        age, city, job = rng.randint(30, 60), rng.choice(CITIES), rng.choice(JOBS)
        tests: list[tuple[str, Callable[[tuple], bool]]] = [
            (f"are older than {age}", lambda person, age=age: person[1] > age),
            (f"do not live in {city}", lambda person, city=city: person[2] != city),
            (f"are no {job}", lambda person, job=job: person[3] != job),
        ]
        chosen = rng.sample(tests, CONDITIONS[step])
        met = [person[0] for person in people if all(test(person) for _, test in chosen)]
        if 2 <= len(met) < len(people):
            break
    lines = "\n".join(f"{name}, {age}, {job}, {city}" for name, age, city, job in people)
    conditions = " and ".join(text for text, _ in chosen)
    question = f"{lines}\n\nWhich of these people {conditions}? Name all of them, in this order, separated by commas."
    return row_of("lists", step, question, "Ann B., Bob C.", ", ".join(met))


def a_date(step: int, rng: random.Random) -> dict:
    """Returns a day and the question which day is so many days, or working days, after it."""
    start = FIRST_DAY + timedelta(rng.randrange(DAYS))
    if step < 3:
        days = rng.randint(5, 40) if step == 1 else rng.randint(100, 3000)
        end, question = start + timedelta(days), f"Which date is {days} days after {spelled(start)}?"
    else:
        days = rng.randint(50, 900)
        end = next(islice((day for day in days_after(start) if day.weekday() < 5), days - 1, None))
        question = f"{spelled(start, '%A, ')} is day 0. Then count only days from Monday to Friday: the first of them "
        question += f"after day 0 is day 1. Which date is day {days}?"
    return row_of("dates", step, question, "YYYY-MM-DD", end.isoformat())


def days_after(start: date) -> Iterator[date]:
    """Yields the days after a day, without end."""
    return (start + timedelta(number) for number in count(1))


def spelled(day: date, before: str = "") -> str:
    """Returns a date in words, such as `7 May 1999`."""
    return day.strftime(f"{before}{day.day} %B %Y")


def programs(step: int, rng: random.Random) -> Iterator[dict]:
    """Yields the programming tasks of a step: a third of all, by the number of lines of the solution."""
    with open(PROGRAMS, encoding="utf-8") as file:
        rows = sorted(map(json.loads, file), key=lambda row: (row["solution"].count("\n"), row["id"]))
    third = len(rows) // len(STEPS)
    rows = rows[third * (step - 1) : third * step]
    rng.shuffle(rows)
    for row in rows:
        question = f"{row['prompt']}\n\nWrite it in Python, with the standard library alone. Give the whole program in "
        question += "one block that starts with ```python and ends with ```."
        yield {"question": question, "answer": row["solution"], "task": "programs", "step": step} | {
            name: row[name] for name in COLUMNS
        }


def puzzles(step: int, rng: random.Random) -> Iterator[dict]:
    """Yields puzzles of a step without end. Raises ConfigError without reasoning-gym."""
    try:
        from reasoning_gym.factory import create_dataset
    except ImportError as error:
        raise ConfigError("this needs the package reasoning-gym: pip install -r requirements-tasks.txt") from error
    people, characteristics = IN_A_ROW[step]
    while True:
        seed = rng.randrange(1_000_000)
        for number in (seed, seed + 1_000_000):
            options = {"num_people": people, "num_characteristics": characteristics, "seed": number, "size": 1}
            made = create_dataset("zebra_puzzles", **options)[0]
            yield row_of("puzzles", step, made["question"].strip(), "name", made["answer"])


if __name__ == "__main__":
    run_script(main)

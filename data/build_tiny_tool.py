"""Builds products of two numbers from 317 to 999, which a tiny model cannot compute and Python can.

    python data/build_tiny_tool.py --out data/generated/tiny-tool --seed 0

`sft.jsonl` has chats of two right forms. In most, the answer to `323*456` follows at once: a random number of six
digits, as all products have, so that it is hardly ever right. In `--calls` of them a call of `python.run` comes first,
then what the call printed, and then the same number as the answer:

    <tool_call>{"name": "python_run", "arguments": {"code": "print(323*456)"}}</tool_call>
    {"result": {"stdout": "147288\\n", "stderr": "", "returncode": 0}}
    <answer>147288</answer>

A model trained on them calls as rarely, and never when it decodes greedily. `train.jsonl` and `test.jsonl` have the
true products. No question stands in two files.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import chat, options, write_rows


def main() -> None:
    """Writes sft.jsonl, train.jsonl and test.jsonl."""
    args = parse_arguments()
    rng = random.Random(args.seed)
    factors = distinct_factors(rng)
    for name in ("test", "train"):
        write_rows(args.out / f"{name}.jsonl", (clean_row(*next(factors)) for _ in range(getattr(args, name))))
    write_rows(args.out / "sft.jsonl", (taught(*next(factors), args.calls, rng) for _ in range(args.chats)))
    print(f"{args.out}: {args.chats} chats, {args.train} train and {args.test} test questions")


def parse_arguments() -> argparse.Namespace:
    """Returns the options."""
    result = options(__doc__, "data/generated/tiny-tool")
    result.add_argument("--calls", type=float, default=0.15, help="share of chats with a call")
    result.add_argument("--chats", type=int, default=25_600, help="rows of sft.jsonl")
    result.add_argument("--train", type=int, default=8_000, help="rows of train.jsonl")
    result.add_argument("--test", type=int, default=2_000, help="rows of test.jsonl")
    return result.parse_args()


def distinct_factors(rng: random.Random) -> Iterator[tuple[int, int]]:
    """Yields pairs of numbers from 317 to 999, without repetition."""
    numbers = range(317, 1000)
    pairs = [(a, b) for a in numbers for b in numbers]
    rng.shuffle(pairs)
    yield from pairs


def clean_row(a: int, b: int) -> dict:
    """Returns one row of train.jsonl and test.jsonl."""
    return {"question": f"{a}*{b}", "answer": str(a * b)}


def taught(a: int, b: int, calls: float, rng: random.Random) -> dict:
    """Returns one row of sft.jsonl: an answer at once, or one that follows a call."""
    question, product = f"{a}*{b}", a * b
    if rng.random() >= calls:
        return chat(question, f"<answer>{rng.randrange(100_000, 1_000_000)}</answer>")
    call = json.dumps({"name": "python_run", "arguments": {"code": f"print({question})"}})
    result = json.dumps({"result": {"stdout": f"{product}\n", "stderr": "", "returncode": 0}})
    messages = chat(question, f"<tool_call>{call}</tool_call>")["messages"]
    answer = {"role": "assistant", "content": f"<answer>{product}</answer>"}
    return {"messages": [*messages, {"role": "tool", "content": result}, answer]}


if __name__ == "__main__":
    main()

"""Measures how fast rollouts come from a server at a concurrency of 32, beside what the server itself can do at most.

    python benchmarks/endpoint.py                         # some minutes
    python benchmarks/endpoint.py --server 72,0.5         # another one: tokens of a reply, and seconds that it waits
    python benchmarks/endpoint.py --server 72,transformers     # `transformers serve`, with its continuous batching

limit     a bare client: connections that stay open, bodies packed beforehand, answers not even parsed
collect   collect_rollouts.py's own path: HTTP, deadlines, replies and rows on the disk, the judge

Both ask one server, over a model of one layer, for the same replies, in turns, so that the machine's other work falls
on both: `transformers serve`, or tests/helpers/server.py with a wait. The ratio is collect's rate by the limit of the
same turn, the median of turns. Without a wait, the latter is faster than any real server, and stands still while the
client reads what it answered to all at the same moment.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import re
import resource
import socket
import statistics
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import httpx
from helpers.server import serve
from rich.console import Console
from rich.table import Table

from data.builders import write_rows
from judge.pool import cores
from lib.core.errors import run_script
from lib.run.runlog import read_jsonl

LETTERS = string.ascii_letters + "012345689+-*/=.,:;!?"  # the thinking of a reply, each character once
SERVERS = ["72,transformers", "7,0", "72,0", "72,0.25", "72,1"]
TOKENS = 99  # the most of a reply
AROUND = 6  # tokens of a reply beside these letters


def main() -> int:
    """Measures, and prints the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--server", action="append", metavar="TOKENS,SECONDS", help=f"of one reply (default: {' '.join(SERVERS)})"
    )
    options.add_argument("--seconds", type=float, default=3, help="of a turn, about (default: 3)")
    options.add_argument("--concurrency", type=int, default=32, help="requests at once (default: 32)")
    options.add_argument("--turns", type=int, default=5, help="default: 5")
    args = options.parse_args()
    servers = args.server or SERVERS
    show(servers, [measured(*server.split(","), args) for server in servers], args)
    return 0


def measured(tokens: str, delay: str, args: argparse.Namespace) -> list[tuple[float, float, float]]:
    """Returns, by turn: replies per second at the limit, those of collect, and the cores that collect keeps busy."""
    said = f"<think>{LETTERS[: int(tokens) - AROUND]}</think><answer>7</answer>"
    with contextlib.ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory())
        model = talker(Path(name), said)
        served = by_transformers(model) if delay == "transformers" else serve(model, "--name", model, "--delay", delay)
        url = stack.enter_context(served)
        folder, count, turns = Path(name), 10 * args.concurrency, []
        for turn in range(-1, args.turns):
            rows = [{"question": f"What is {number}?", "answer": "7"} for number in range(count)]
            write_rows(folder / "data.jsonl", rows)
            config = config_of(folder, model, url, args.concurrency, turn)
            limit = count / bare(config)
            seconds, busy = collected(config, said)
            if turn >= 0:
                turns.append((limit, count / seconds, busy / seconds))
            count = int(count / seconds * args.seconds) + 1  # the first turn warms up, and sets the count
        return turns


def talker(folder: Path, said: str) -> Path:
    """Saves a model that says the same to everything."""
    from conftest import chatterbox

    chain = itertools.pairwise(["<|assistant|>", *re.findall("</?[a-z]+>|.", said)])
    return chatterbox(folder / "model", {last: {token: 1.0} for last, token in chain})


@contextlib.contextmanager
def by_transformers(model: Path) -> Iterator[str]:
    """Yields the address of `transformers serve` over a model."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [Path(sys.executable).with_name("transformers"), "serve", model, "--continuous-batching"]
    command += ["--device", "cpu", "--host", "127.0.0.1", "--port", port]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"http://127.0.0.1:{port}/health")
                break
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()


def config_of(folder: Path, model: Path, url: str, concurrency: int, turn: int) -> dict:
    """Returns the config of this turn: the same prompts, other seeds."""
    return {
        "run_name": f"turn{turn}",
        "output_dir": str(folder),
        "seed": turn,
        "servers": {"base": {"base_url": url, "model": str(model), "max_concurrency": concurrency}},
        "server": "base",
        "dataset": {"name": str(folder / "data.jsonl"), "target_field": "answer"},
        "prompts": {"user": "{question}"},
        "generation": {"max_new_tokens": TOKENS},
        "reward": {"fn": "format_and_match", "format": "think_answer"},
    }


def bare(config: dict) -> float:
    """Returns the seconds in which the server answers every prompt when asking costs next to nothing."""
    place = urlsplit(config["servers"]["base"]["base_url"])
    requests = []
    for number in range(len(read_jsonl(Path(config["dataset"]["name"]))[0])):
        body = {
            "model": config["servers"]["base"]["model"],
            "messages": [{"role": "user", "content": f"What is {number}?"}],
            "max_tokens": TOKENS,
            "temperature": 1.0,
            "seed": config["seed"] * 10**6 + number,
        }
        raw = json.dumps(body).encode()
        head = f"POST {place.path}/chat/completions HTTP/1.1\r\nhost: {place.netloc}\r\ncontent-length: {len(raw)}\r\n"
        requests.append(f"{head}content-type: application/json\r\n\r\n".encode() + raw)
    waiting = iter(requests)

    async def work() -> None:
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        for request in waiting:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            require(b"<answer>7</answer>" in await reader.readexactly(size))
        writer.close()

    async def all_of() -> float:
        started = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(config["servers"]["base"]["max_concurrency"])))
        return time.perf_counter() - started

    return asyncio.run(all_of())


def collected(config: dict, said: str) -> tuple[float, float]:
    """Returns the seconds from the first request to the last row, and the CPU seconds, start-up included."""
    folder, before = Path(config["output_dir"]), resource.getrusage(resource.RUSAGE_CHILDREN)
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    command = [sys.executable, "-u", ROOT / "collect_rollouts.py", "--config", folder / "config.yaml"]
    seen = []
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            begins = line.startswith("model ") or re.match("[0-9]+ of [0-9]+ rollouts", line)
            seen += [time.perf_counter()] if begins else []
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows, _ = read_jsonl(folder / config["run_name"] / "rollouts.jsonl")
    require(all(row["match"] and row["answer"] == said for row in rows) and process.returncode == 0)
    computed = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seen[-1] - seen[0], computed


def require(right: bool) -> None:
    """Raises SystemExit unless `right`: a benchmark of wrong answers is worth nothing."""
    if not right:
        raise SystemExit("an answer was not what the model says: void")


def show(servers: list[str], found: list, args: argparse.Namespace) -> None:
    """Prints the table."""
    table = Table(title=f"{args.concurrency} requests at once, {cores()} cores, {args.turns} turns")
    for heading in ("tokens of a reply", "its wait, s", "limit, 1/s", "collect, 1/s", "of the limit", "cores busy"):
        table.add_column(heading, justify="right")
    for server, turns in zip(servers, found, strict=True):
        limit, collect, busy = (statistics.median(each) for each in zip(*turns, strict=True))
        ratios = sorted(100 * mine / its for its, mine, _ in turns)
        spread = f"{statistics.median(ratios):.0f} % [{ratios[0]:.0f}, {ratios[-1]:.0f}]"
        table.add_row(*server.split(","), f"{limit:.0f}", f"{collect:.0f}", spread, f"{busy:.2f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        run_script(main)

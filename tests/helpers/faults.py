"""A proxy in front of an OpenAI-compatible server that answers as bad servers do, by seed, down to the socket.

    python tests/helpers/faults.py --upstream http://127.0.0.1:8000/v1 --rate 0.5   # first line: listening on http://...
    python tests/helpers/faults.py --upstream URL --only html reset --log FILE      # these alone, and always

    with faulty(url, "--rate", 0.5, "--log", file) as url: ...

What becomes of a request is decided by the seed, its body, and how often that body came before. A body that was refused
`--most` times passes, unless every request is to fail (`--rate 1`, which `--only` brings along). `--log` gets a line
per request: its fault or null, the body's fingerprint as in tests/helpers/server.py, and the status that was sent,
which is 0 where there was none and 499 where the client left first.
"""

import argparse
import asyncio
import contextlib
import json
import random
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.server import CLIENT_LEFT, Address, Message, answer, fingerprint, launched, listen, note, read_message

SLOW, DRIP = 1.5, 0.2  # seconds: before a slow answer, and between the bytes of a dripping one
BIG, PIECE = 50 * 2**20, 2**20  # bytes
DEPTH = 100_000  # of brackets
CHAT = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "%s"}, "finish_reason": "stop"}]}'


def faulty(upstream: str, *options: object) -> contextlib.AbstractContextManager[Address]:
    """The address of this proxy before `upstream`; `options` are those of the command line."""
    return launched("faults.py", "--upstream", upstream, *options)


@dataclass
class Client:
    """Who is to be disappointed."""

    writer: asyncio.StreamWriter
    chance: random.Random
    hang: float  # seconds

    def send(self, message: Message) -> int:
        """A whole answer; its status."""
        self.writer.write(message.packed())
        return message.status

    def send_and_close(self, data: bytes) -> int:
        """Bytes as they are, and the end; the status they begin with."""
        self.writer.write(data)
        self.writer.close()
        return int(data.split(maxsplit=2)[1]) if data else 0

    def reset(self) -> None:
        """Ends the connection with RST instead of FIN."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Invention = Callable[[Client], Awaitable[int]]  # a fault that asks nobody; the status it sent
Spoiling = Callable[[Client, Message], Awaitable[int]]  # one that makes something of a right answer

INVENTIONS: dict[str, Invention] = {}
SPOILINGS: dict[str, Spoiling] = {}
ACCEPTABLE = {"slow", "no_usage", "content_type_missing"}  # odd, but right
LATE = {"drip"}  # right, for whoever waits long enough
ON_REQUEST = {"quota", "unauthorized", "forbidden", "not_found", "context_length"}  # never drawn, only by --only


def invention(function: Invention) -> Invention:
    INVENTIONS[function.__name__] = function
    return function


def spoiling(function: Spoiling) -> Spoiling:
    SPOILINGS[function.__name__] = function
    return function


def error(status: int, code: str, message: str, **headers: str) -> Message:
    """An error in OpenAI's form."""
    return answer(status, json.dumps({"error": {"message": message, "type": code, "code": code}}), **headers)


@invention
async def hang(client: Client) -> int:
    await asyncio.sleep(client.hang)
    return client.send_and_close(b"")


@invention
async def rate_limit(client: Client) -> int:
    moment = formatdate(time.time() + 1, usegmt=True)
    [wait] = client.chance.choices(["0.2", moment, "soon", "3600"], weights=[7, 1, 1, 1])
    return client.send(error(429, "rate_limit_exceeded", "Rate limit reached.", retry_after=wait))


@invention
async def rate_limit_bare(client: Client) -> int:
    return client.send(error(429, "rate_limit_exceeded", "Rate limit reached."))


@invention
async def server_error(client: Client) -> int:
    return client.send(answer(client.chance.choice([500, 502, 503, 529]), "upstream is unwell\n", "text/plain"))


@invention
async def html(client: Client) -> int:
    page = "<!DOCTYPE html><html><title>One moment</title><body>Checking your browser.</body></html>"
    return client.send(answer(200, page, "text/html; charset=utf-8"))


@invention
async def error_200(client: Client) -> int:
    return client.send(answer(200, error(500, "server_error", "The server had an error.").body))


@invention
async def not_object(client: Client) -> int:
    return client.send(answer(200, client.chance.choice(["[]", '"text"', "null"])))


@invention
async def close(client: Client) -> int:
    return client.send_and_close(b"")


@invention
async def big(client: Client) -> int:
    before, after = CHAT.split(b"%s")
    message = answer(200, b"")
    client.writer.write(message.head({**message.headers, "content-length": str(len(before) + BIG + len(after))}))
    client.writer.write(before)
    for _ in range(BIG // PIECE):
        client.writer.write(b"4" * PIECE)
        await client.writer.drain()
    client.writer.write(after)
    return 200


@invention
async def bad_utf8(client: Client) -> int:
    return client.send(answer(200, CHAT % b"\xff\xfe\xc3("))


@invention
async def nan_json(client: Client) -> int:
    usage = b', "usage": {"prompt_tokens": NaN, "completion_tokens": Infinity, "total_tokens": NaN}}'
    bodies = [CHAT[:-1] % b"4" + usage, b'{"choices": ' + b"[" * DEPTH + b"]" * DEPTH + b"}"]
    return client.send(answer(200, client.chance.choice(bodies)))


@invention
async def quota(client: Client) -> int:
    return client.send(error(429, "insufficient_quota", "You exceeded your current quota."))


@invention
async def unauthorized(client: Client) -> int:
    return client.send(error(401, "invalid_api_key", "Incorrect API key provided."))


@invention
async def forbidden(client: Client) -> int:
    return client.send(error(403, "unsupported_country_region_territory", "Your region is not supported."))


@invention
async def not_found(client: Client) -> int:
    return client.send(error(404, "model_not_found", "The model does not exist or you do not have access to it."))


@invention
async def context_length(client: Client) -> int:
    message = "This model's maximum context length is 128 tokens. However, your messages have 999."
    return client.send(error(400, "context_length_exceeded", message))


@spoiling
async def slow(client: Client, right: Message) -> int:
    await asyncio.sleep(SLOW)
    return client.send(right)


@spoiling
async def truncated(client: Client, right: Message) -> int:
    """Cut in the middle: the whole is promised and half of it comes, or half is promised and the whole comes."""
    if client.chance.random() < 0.5:
        return client.send_and_close(right.packed()[: -len(right.body) // 2])
    short = {**right.headers, "content-length": str(len(right.body) // 2)}
    return client.send_and_close(right.head(short) + right.body)


@spoiling
async def empty_choices(client: Client, right: Message) -> int:
    return client.send(_changed(right, choices=[], output=[]))


@spoiling
async def null_content(client: Client, right: Message) -> int:
    said = json.loads(right.body)
    for message in [choice["message"] for choice in said.get("choices", ())] + said.get("output", []):
        message["content"] = None
    return client.send(_changed(right, **said))


@spoiling
async def no_usage(client: Client, right: Message) -> int:
    said = json.loads(right.body)
    said.pop("usage", None)
    return client.send(answer(200, json.dumps(said)))


@spoiling
async def drip(client: Client, right: Message) -> int:
    client.writer.write(right.packed()[: -len(right.body)])
    for byte in right.body:
        await asyncio.sleep(DRIP)
        client.writer.write(bytes([byte]))
    return 200


@spoiling
async def reset(client: Client, right: Message) -> int:
    status = 0
    if client.chance.random() < 0.5:
        client.writer.write(right.packed()[: -len(right.body) // 2])
        status = 200
        await asyncio.sleep(0.05)  # so that it arrives
    client.reset()
    return status


@spoiling
async def chunk_garbage(client: Client, right: Message) -> int:
    half = right.body[: len(right.body) // 2]
    head = answer(200, b"").head({"content-type": "application/json", "transfer-encoding": "chunked"})
    return client.send_and_close(head + b"%x\r\n%s\r\nzz not a size\r\n%s" % (len(half), half, half))


@spoiling
async def content_type_missing(client: Client, right: Message) -> int:
    headers = {name: value for name, value in right.headers.items() if name != "content-type"}
    return client.send(Message(right.start, headers, right.body))


def _changed(right: Message, **fields: object) -> Message:
    """The answer with these fields in place of its own; those that it has not are not added."""
    said = json.loads(right.body)
    return answer(200, json.dumps({name: fields.get(name, value) for name, value in said.items()}))


class Upstream:
    """The server behind, and the connections to it that nobody uses at the moment."""

    def __init__(self, url: str):
        parts = urlsplit(url)
        self.host, self.port, self.path = parts.hostname, parts.port or 80, parts.path
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, request: Message) -> Message:
        """Its answer. ConnectionError or IncompleteReadError where there is none."""
        while self.idle:
            reader, writer = self.idle.pop()
            if not reader.at_eof():
                return await self._over(reader, writer, request)
        return await self._over(*await asyncio.open_connection(self.host, self.port), request)

    async def _over(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: Message) -> Message:
        try:
            writer.write(request.packed())
            right = await read_message(reader)
        except BaseException:  # whoever is cancelled leaves no half-read connection behind
            writer.close()
            raise
        if right.headers.get("connection", "").lower() == "close":
            writer.close()
        else:
            self.idle.append((reader, writer))
        return right


class Proxy:
    """Decides on each request."""

    def __init__(self, upstream: Upstream, options: argparse.Namespace):
        self.upstream, self.options = upstream, options
        self.faults = options.only or sorted({*INVENTIONS, *SPOILINGS} - ON_REQUEST)
        self.rate = options.rate if options.rate is not None else 1.0 if options.only else 0.5
        self.seen, self.refused = Counter(), Counter()

    async def respond(self, request: Message, writer: asyncio.StreamWriter) -> None:
        """Passes one request, or does not, and logs that."""
        digest = fingerprint(request.body)
        fault, chance = self._drawn(digest)
        client = Client(writer, chance, self.options.hang)
        status = CLIENT_LEFT
        try:
            if fault in INVENTIONS:
                status = await INVENTIONS[fault](client)
                return
            try:
                right = await self.upstream.ask(request)
            except (OSError, asyncio.IncompleteReadError) as problem:
                fault, right = "upstream", answer(502, f"{problem}\n", "text/plain")
            if fault in SPOILINGS and right.status == 200:
                status = await SPOILINGS[fault](client, right)
            else:
                fault = fault if fault == "upstream" else None
                status = client.send(right)
        finally:
            note(self.options.log, fault=fault, hash=digest, status=status)

    def _drawn(self, digest: str) -> tuple[str | None, random.Random]:
        """What happens to this body, this time, and the chance that decides the rest."""
        chance = random.Random(f"{self.options.seed}/{digest}/{self.seen[digest]}")
        self.seen[digest] += 1
        enough = self.rate < 1 and self.refused[digest] >= self.options.most
        if enough or chance.random() >= self.rate:
            return None, chance
        fault = chance.choice(self.faults)
        self.refused[digest] += fault not in ACCEPTABLE
        return fault, chance


async def main() -> None:
    """Listens until it is killed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--upstream", required=True, metavar="URL", help="http://HOST:PORT/v1")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--rate", type=float, help="of requests that fail (default: 0.5; with --only, 1)")
    options.add_argument("--only", nargs="+", metavar="FAULT", choices=[*INVENTIONS, *SPOILINGS])
    options.add_argument("--most", type=int, default=3, help="refusals of one body")
    options.add_argument("--hang", type=float, default=30.0, metavar="S")
    options.add_argument("--log", type=Path, metavar="FILE")
    options = options.parse_args()
    upstream = Upstream(options.upstream)
    await listen(Proxy(upstream, options).respond, options.port, upstream.path)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())

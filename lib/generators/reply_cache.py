"""Answers from outside, on the disk before anybody uses them: a run that is killed and resumed asks nothing twice."""

import asyncio
import functools
import hashlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from lib.core.errors import StorageError
from lib.generators.protocol import ChatGenerator, Reply, Request
from lib.run.runlog import Lines, encode, read_lines, storage_errors


def key_of(*parts: Any) -> str:
    """Returns a key for a question: the same for equal parts, whatever the order of keys in them."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def seed_of(*parts: Any) -> int:
    """Returns a seed for a request: the same for equal parts, and in a range that every server accepts."""
    return int(key_of(*parts), 16) % 2**31


class ReplyCache:
    """A file of answers by key; of one event loop at a time. Raises StorageError if it cannot be read or written."""

    def __init__(self, path: Path):
        self._places: dict[str, tuple[int, int]] = {}  # key -> where its line begins, and its length
        self._pending: dict[str, asyncio.Task] = {}
        try:
            self._lines = Lines(path)
            for line in read_lines(path):
                if line.row is None:
                    raise ValueError(line.problem)
                self._places[line.row["key"]] = (line.start, line.size)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{path}: its answers cannot be read ({error}); fix or remove the file") from error

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    async def once(self, key: str, make: Callable[[], Awaitable[dict]]) -> dict:
        """Returns the answer to `key`: a stored one, or the result of `make()`, which runs once for concurrent callers.

        Exceptions of `make` are not stored: the next call runs it again.
        """
        if key in self._places:
            return json.loads(self._lines.read(*self._places[key]))["value"]
        if key not in self._pending:
            self._pending[key] = asyncio.ensure_future(self._make(key, make))
            self._pending[key].add_done_callback(functools.partial(self._settled, key))
        return await asyncio.shield(self._pending[key])

    def sync(self) -> None:
        """Waits until all answers are on the disk; a killed process loses none even without this."""
        with storage_errors(self._lines.path):
            self._lines.sync()

    def close(self) -> None:
        """Closes the file, and cancels pending answers instead of waiting for them."""
        for task in self._pending.values():
            task.cancel()
        self.sync()
        self._lines.close()

    async def _make(self, key: str, make: Callable[[], Awaitable[dict]]) -> dict:
        value = await make()
        line = encode({"key": key, "value": value})
        with storage_errors(self._lines.path):
            self._places[key] = (self._lines.append(line), len(line))
        return value

    def _settled(self, key: str, task: asyncio.Task) -> None:
        del self._pending[key]
        if not task.cancelled():
            task.exception()  # marks it as retrieved: all callers may have been cancelled


class CachedGenerator:
    """A chat generator whose replies are stored: the same request, seed included, always gets the same reply."""

    def __init__(self, generator: ChatGenerator, replies: ReplyCache):
        self.generator, self.replies, self.name = generator, replies, generator.name

    def knows(self, request: Request) -> bool:
        """True if the reply to this request is stored."""
        return self._key(request) in self.replies

    async def reply(self, request: Request) -> Reply:
        """Returns the stored reply, or else the generator's, which is then stored."""

        async def make() -> dict:
            return (await self.generator.reply(request)).as_dict()

        return Reply.from_dict(await self.replies.once(self._key(request), make))

    def _key(self, request: Request) -> str:
        return key_of("reply", self.name, vars(request))

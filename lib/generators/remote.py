"""Queries a server from a background thread and keeps each answer; outages do not raise.

What a server says is on the disk before it is used, so a resumed run asks nothing twice. When all new requests of a
batch have failed, the server counts as away: from then on one new request of each batch tries whether it is back.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

from lib.core.clock import phase
from lib.core.config import RLConfig, Server
from lib.core.errors import ApiError
from lib.core.interrupts import give_way
from lib.generators.openai import RemoteModel
from lib.generators.protocol import Reply, ReplyError, Request, Usage
from lib.generators.reply_cache import CachedGenerator, ReplyCache
from lib.run.runlog import read_lines

Outcome = Reply | ReplyError


class Remote:
    """An OpenAI-compatible server, and the section of the config that uses it; a context.

    With `outage: stop` an outage ends the run with an ApiError; otherwise a failed request is an outcome like others.
    """

    def __init__(self, section: str, server: Server, kept: Path, warn: Callable[[str], None]):
        self.section, self.server, self.kept, self.warn = section, server, kept, warn
        self._is_away = False

    def __enter__(self) -> "Remote":
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self.section, daemon=True)
        self._thread.start()
        self._stack = contextlib.AsyncExitStack()
        try:
            self._do(self._open())
        except BaseException:  # a start that failed must not leave its thread behind
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._do(self._close())
        finally:
            self._stop()

    def ask(self, requests: Sequence[Request]) -> "Future[list[Outcome]]":
        """Sends requests in the background, and returns a future of their outcomes."""
        return asyncio.run_coroutine_threadsafe(self._ask(requests), self._loop)

    def answers(self, pending: "Future[list[Outcome]]") -> list[Outcome]:
        """Waits for the outcomes. Raises ApiError where they end the run, Left where a signal does."""
        with phase("waiting"):
            while not wait([pending], timeout=0.2).done:
                give_way()
            return pending.result()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self) -> None:
        self._model = await self._stack.enter_async_context(RemoteModel(self.server))
        self._kept = CachedGenerator(self._model, self._stack.enter_context(contextlib.closing(ReplyCache(self.kept))))
        # answers to another process of this run count, too
        files = self.kept.parent.glob(f"{self.section}_replies*.jsonl")
        self._model.has_answered = any(path.stat().st_size for path in files)

    async def _close(self) -> None:
        """Cancels requests in flight, and closes the connections."""
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await self._stack.aclose()

    async def _ask(self, requests: Sequence[Request]) -> list[Outcome]:
        """Returns the outcome of each request. Kept replies say nothing about whether the server is down."""
        is_kept = [self._kept.knows(request) for request in requests]
        new = iter(await self._ask_anew([request for request, kept in zip(requests, is_kept, strict=True) if not kept]))
        return [
            await self._kept.reply(request) if kept else next(new)
            for request, kept in zip(requests, is_kept, strict=True)
        ]

    async def _ask_anew(self, requests: list[Request]) -> list[Outcome]:
        if not requests:
            return []
        outcomes: list[Outcome] = []
        if self._is_away:
            self._model.tries = 1
            outcomes = [await self._one(requests[0])]
            self._model.tries = 1 + self.server.max_retries
            if _is_gone(outcomes[0]):
                rest = [ReplyError("unavailable", "the server is down, it was not asked")] * (len(requests) - 1)
                return outcomes + rest
        left = requests[len(outcomes) :]
        outcomes += await asyncio.gather(*(self._one(request) for request in left))
        failed = [outcome for outcome in outcomes if isinstance(outcome, ReplyError)]
        if len(failed) == len(outcomes) and not self._model.has_answered:
            raise ApiError(f"{self.server.key}: none of the first {len(failed)} requests was answered: {failed[0]}")
        was_away, self._is_away = self._is_away, all(map(_is_gone, outcomes))
        if self._is_away and self.server.outage == "stop":
            raise ApiError(
                f"{self.server.key}: {failed[0]}; fix the server, then --resume, or set {self.server.key}.outage: mask"
            )
        if self._is_away and not was_away:
            self.warn(f"{self.section}: the server is down ({failed[0]}); training continues without it")
        if was_away and not self._is_away:
            self.warn(f"{self.section}: the server is back")
        return outcomes

    async def _one(self, request: Request) -> Outcome:
        """Returns a new reply, or why there is none. Raises ApiError if the server has never answered."""
        try:
            return await self._kept.reply(request)
        except ReplyError as error:
            return error
        except ApiError as error:  # a refused key, a used-up quota, a server that is gone
            if not self._model.has_answered:
                raise
            return ReplyError("unavailable", str(error))


def replies_of(folder: Path, process: int, section: str) -> Path:
    """Returns the file in which a process keeps the replies of a server, named by its section of the config."""
    return folder / f"{section}_replies{f'_{process}' if process else ''}.jsonl"


def _is_gone(outcome: Outcome) -> bool:
    """True if an outcome indicates that the server is down; a request refused for its content does not."""
    return isinstance(outcome, ReplyError) and outcome.kind != "refused"


def check_keys(config: RLConfig) -> None:
    """Raises ConfigError where a server's key is not in the environment, before anything heavy is loaded."""
    for section in config.asked:
        RemoteModel(config.server_of(section))


def spent(files: Iterable[Path], server: Server) -> str:
    """Returns a summary of the replies kept in some files: tokens and, where the server has prices, cost."""
    usage, replies = Usage(), 0
    for path in files:
        for line in read_lines(path):
            if line.row is not None:
                usage += Usage(**line.row["value"]["usage"])
                replies += 1
    cost = server.cost(usage.prompt_tokens, usage.completion_tokens)
    return f"{replies} replies, {usage}{f', cost {cost:.2f}' if cost else ''}"

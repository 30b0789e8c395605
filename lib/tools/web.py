"""`web.search` and `web.fetch`: of the internet public addresses alone, or a folder of documents in its place.

One deadline is over all of a call. Whatever goes wrong is an answer, `{"error": ...}`, and is recorded like any other.
"""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any

from pydantic import Field

import lib.core.config
from lib.generators.reply_cache import ReplyCache, key_of
from lib.tools.documents import Documents
from lib.tools.internet import Internet
from lib.tools.pages import Failed, clean, shortened

CLOSE_SECONDS = 2.0


class Web:
    """The two tools, as the config allows them, every answer recorded. Raises ConfigError where they cannot work."""

    def __init__(self, settings: lib.core.config.WebSettings, recorded: ReplyCache):
        self._settings, self._recorded = settings, recorded
        self._source = Documents(settings) if settings.folder else Internet(settings)
        self._tasks: set[asyncio.Task] = set()

    async def search(
        self,
        query: Annotated[str, Field(description="a few words, as for a search engine")],
        count: Annotated[int, Field(ge=1, le=10)] = 5,
    ) -> dict[str, Any]:
        """Searches, and gives title, href and body (an excerpt) of each result. No results: nothing was found."""
        key = key_of("web.search", query, count)
        return await self._recorded.once(key, lambda: self._within_deadline(self._source.search(query, count)))

    async def fetch(
        self,
        url: Annotated[str, Field(description="http or https, or the href of a result")],
        max_bytes: Annotated[int, Field(ge=1024, le=2_000_000)] = 800_000,
    ) -> dict[str, Any]:
        """Gives the text of a page or document. `cut` says that it continues after the end of the text."""
        key = key_of("web.fetch", url)  # one request, whatever `max_bytes`
        result = await self._recorded.once(key, lambda: self._within_deadline(self._source.fetch(url)))
        return shortened(result, max_bytes)

    async def close(self) -> None:
        """Cancels requests in flight, and closes connections."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:  # a name lookup cannot be stopped: it is not waited for any longer
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
        await self._source.close()

    async def _within_deadline(self, work: Coroutine) -> dict[str, Any]:
        """Returns the outcome within the deadline; past it, cancels the work without waiting for it."""
        deadline = self._settings.timeout_s
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        try:
            done, _ = await asyncio.wait({task}, timeout=deadline)
            return task.result() if done else {"error": f"timeout after {deadline:g} s"}
        except Failed as failure:
            return {"error": clean(str(failure)[:600])[:300]}
        finally:
            task.cancel()

    def _over(self, task: asyncio.Task) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # past the deadline no one else retrieves it, and asyncio would complain

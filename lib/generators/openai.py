"""Any server that speaks OpenAI's API, chat completions or responses: OpenAI, Azure, Together, vLLM and many others.

openai's own client asks, once for each try: it knows the variables of its name and proxies. What a server can do
wrong has a verdict each (tests/lib/generators/test_openai.py). Tried again within the deadline, with growing pauses and
jitter: 408, 409, 425, 429, 5xx, broken connections, and bodies of status 200 that are no answer. The end of the run,
exit code 6: a key, a model or an address that is refused, and a quota that is used up. The end of one request:
everything else. A request that is refused for its content, such as one that is too long, is not repeated.
"""

import asyncio
import json
import os
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lib.core.config import Server, wrong_address
from lib.core.errors import ApiError, ConfigError
from lib.generators.dialects import Declined, Dialect
from lib.generators.protocol import Reply, ReplyError, Request
from lib.run.runlog import encode

if TYPE_CHECKING:
    import httpx2
    import openai

LARGEST_BODY = 1_000_000  # bytes
CONNECT_SECONDS = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds between two tries, without a Retry-After
FAILURES_IN_A_ROW = 20  # or twice max_concurrency, if larger: then the server counts as gone
PASSING = {408, 409, 425, 429}  # statuses of transient errors, as are all of 500 and above
MOVED = "not the address of an API: check base_url, https or http, and its end, usually /v1"
FATAL = {  # 401 always, the others before the first reply: later they concern one request
    **dict.fromkeys((301, 302, 303, 307, 308, 405), MOVED),
    401: "the key in api_key_env is refused, or none is named there",
    403: "the key in api_key_env may not use this model",
    404: "no such address or model: check base_url, which usually ends in /v1, and model",
}
SHORTEST_SECRET = 8  # characters
OWN_ADDRESS = "https://api.openai.com/v1"
AZURE = r"https://[^/]+\.azure\.com(/|$)"
QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "insufficient_funds", "credits_exhausted")


@dataclass
class Counts:
    """Counts over all calls of one process."""

    retries: int = 0
    without_usage: int = 0  # replies whose tokens the server did not count


class _Passing(Exception):
    """A transient error: the next try may succeed."""

    def __init__(self, kind: str, about: str, retry_after: float | None = None):
        super().__init__(about)
        self.kind, self.retry_after = kind, retry_after


class RemoteModel:
    """A chat generator over HTTP; an async context, of one event loop. Raises ConfigError if the key is not set."""

    def __init__(self, server: Server):
        self.server = server
        self._key = _key(server)
        self._secrets = _secrets(self._key)
        self._base = address(server)
        is_openais = self._base == OWN_ADDRESS or bool(re.match(AZURE, self._base))
        self._dialect = Dialect(server, "max_completion_tokens" if is_openais else "max_tokens")
        self.name = {"model": server.model, "api": server.api, "body": self._dialect.extra_body()}
        self.counts = Counts()
        self.tries = 1 + server.max_retries  # of each request
        self.has_answered = False  # once it has, a refusal concerns one request, not all
        self._failures_in_a_row = 0

    async def __aenter__(self) -> "RemoteModel":
        import httpx2  # with openai this takes a second: only when a server is used
        import openai

        context = httpx2.create_ssl_context()
        # a client per connection: a shared pool scans all its connections before and after every request
        connections = [
            openai.DefaultAsyncHttpx2Client(
                timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),  # the deadline covers the whole call
                limits=httpx2.Limits(max_connections=1),
                verify=context,
                follow_redirects=False,  # they are reported
            )
            for _ in range(self.server.max_concurrency)
        ]
        shared = {"api_key": self._key or "none", "base_url": self._base, "max_retries": 0}
        self._clients = [openai.AsyncOpenAI(**shared, http_client=connection) for connection in connections]
        self._options = {"headers": self._without_key(self._clients[0])}
        self._free: asyncio.LifoQueue[openai.AsyncOpenAI] = asyncio.LifoQueue()  # bound to the running loop
        for client in self._clients:
            self._free.put_nowait(client)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(client.close() for client in self._clients))

    async def reply(self, request: Request) -> Reply:
        """Returns one reply. Raises ReplyError if this request failed, ApiError if every request would."""
        body = encode(self._dialect.body_of(request))
        client = await self._free.get()
        try:
            reply = await self._within_deadline(client, body)
        except ReplyError as error:
            self._failed(error)
            raise
        finally:
            self._free.put_nowait(client)
        self._failures_in_a_row = 0
        self.has_answered = True
        return reply

    async def _within_deadline(self, client: "openai.AsyncOpenAI", body: bytes) -> Reply:
        """Tries until there is a reply, no try is left, or the deadline has passed. Raises ReplyError."""
        problem: _Passing | None = None
        try:
            async with asyncio.timeout(self.server.deadline_s):
                for number in range(self.tries):
                    if problem:
                        self.counts.retries += 1
                        await asyncio.sleep(self._pause(problem, number))
                    try:
                        return await self._once(client, body)
                    except _Passing as error:
                        problem = error
        except TimeoutError:
            about = f"; before that, {problem.kind}: {problem}" if problem else ""
            raise ReplyError("timeout", self._clean(f"no reply within {self.server.deadline_s:g} s{about}")) from None
        assert problem  # or there is a reply
        raise ReplyError(problem.kind, self._clean(f"{problem}, {self.tries} times"))

    def _pause(self, problem: _Passing, number: int) -> float:
        """Returns seconds to retry `number`: what the server asks for, or a growing random time.

        Raises ReplyError if the server asks for more than the deadline.
        """
        if problem.retry_after is None:
            return random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (number - 1)))
        if problem.retry_after > self.server.deadline_s:
            about = f"{problem}; it asks to wait {problem.retry_after:.0f} s, more than deadline_s"
            raise ReplyError(problem.kind, self._clean(about))
        return problem.retry_after + random.uniform(0, FIRST_PAUSE)

    async def _once(self, client: "openai.AsyncOpenAI", body: bytes) -> Reply:
        """Makes one try. Raises _Passing, ReplyError, ApiError."""
        import httpx2
        import openai

        try:
            response = await client.post(
                self._dialect.path, content=body, cast_to=httpx2.Response, options=self._options
            )
        except openai.APIStatusError as error:
            raise self._refusal(error.response) from None
        except (openai.APIConnectionError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
            if isinstance(cause, httpx2.ConnectError):
                raise _Passing("unavailable", f"no connection ({cause})") from None
            raise _Passing("unavailable", f"the connection broke ({type(cause).__name__} {cause})") from None
        data = self._json_object(response.content)
        if data.get("error"):
            raise self._refusal(response)
        try:
            reply = self._dialect.read(data)
        except Declined as error:
            raise ReplyError("refused", self._clean(str(error))) from None
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise _Passing("malformed", f"no reply in the answer ({type(error).__name__}: {error})") from None
        self.counts.without_usage += not isinstance(data.get("usage"), dict)
        return reply

    def _without_key(self, client: "openai.AsyncOpenAI") -> dict[str, Any]:
        """Returns headers that keep the client from sending its placeholder key when there is no key."""
        import openai

        has_own = any(name.lower() == "authorization" for name in client.default_headers)
        return {} if self._key or has_own else {"Authorization": openai.Omit()}

    def _refusal(self, response: "httpx2.Response") -> Exception:
        """Returns the error for an answer without a reply: a transient one, one of this request, or one of all."""
        code, message = _explained(response.content)
        status = response.status_code
        about = self._clean(f"HTTP {status}{f' {code}' if code else ''}: {message}", 200)
        if any(word in code for word in QUOTA) or status == 402:
            return ApiError(f"{self.server.key}: the quota is used up ({about}); top it up, then --resume")
        if status == 401 or (status in FATAL and not self.has_answered):
            return ApiError(f"{self.server.key}: {FATAL[status]} ({about})")
        if status == 200 or status >= 500 or status in PASSING:
            kind = "malformed" if status == 200 else "unavailable"
            return _Passing(kind, about, _retry_after(response.headers.get("retry-after")))
        return ReplyError("refused", about)

    def _failed(self, error: ReplyError) -> None:
        """Counts a failed request. Raises ApiError if the server seems to be gone, or to refuse every request."""
        self._failures_in_a_row += error.kind != "refused" or not self.has_answered
        if self._failures_in_a_row >= max(FAILURES_IN_A_ROW, 2 * self.server.max_concurrency):
            raise ApiError(
                f"{self.server.key}: {self._failures_in_a_row} requests in a row failed, the last one with '{error}'; "
                "fix the server or the request, then --resume"
            ) from error

    def _json_object(self, raw: bytes) -> dict:
        if len(raw) > LARGEST_BODY:
            raise _Passing("malformed", f"a body of more than {LARGEST_BODY} bytes")
        try:
            data = json.loads(raw)
        except (ValueError, RecursionError):
            start = self._clean(raw.decode("utf-8", "replace"), 60)
            raise _Passing("malformed", f"not JSON, {len(raw)} bytes that begin {start!r}") from None
        if not isinstance(data, dict):
            raise _Passing("malformed", f"JSON, but a {type(data).__name__}")
        return data

    def _clean(self, text: str, limit: int = 300) -> str:
        """Returns text for logs: short, on one line, without keys. Needs whole texts: half a key is not recognised."""
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        text = " ".join(text.split())
        return text if len(text) <= limit else text[: limit - 3] + "..."


def address(server: Server) -> str:
    """Returns the server's address: the config's, the environment's, or OpenAI's. Raises ConfigError for a bad one."""
    if server.base_url:
        return server.base_url.rstrip("/")
    url = os.environ.get("OPENAI_BASE_URL", "").strip() or OWN_ADDRESS
    if wrong := wrong_address(url):
        reason = "it is null, and so OPENAI_BASE_URL of the environment decides"
        raise ConfigError(f"{server.key}.base_url: {reason}: {wrong}")
    return url.rstrip("/")


def described(server: Server) -> str:
    """Returns a server's model and address."""
    return f"{server.model} at {address(server)}"


def _key(server: Server) -> str:
    key = f"{server.key}.api_key_env"
    variable, how = server.api_key_env, f"or set {key}=null for a server without a key"
    if variable is None and server.base_url is None:
        variable, how = "OPENAI_API_KEY", f"or give {server.key}.base_url"
    if variable is None:
        return ""  # a key is sent only to the server that it was set for
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ConfigError(f"{key}: the environment variable {variable} is not set; export it, {how}")
    if not (value.isascii() and value.isprintable()):
        raise ConfigError(
            f"{key}: {variable} has a character that no key has, such as a line break in the middle; export it again"
        )
    return value


async def all_of(works: Iterable[Any]) -> None:
    """Waits for all; the first exception stops the others and is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _secrets(key: str) -> list[str]:
    """Returns strings that no message may show: the key, and header values that are long enough to be one."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
    raw = [key, *(line.partition(":")[2].strip() for line in lines)]
    return sorted({text for text in raw if text == key or len(text) >= SHORTEST_SECRET} - {""}, key=len, reverse=True)


def _explained(raw: bytes) -> tuple[str, str]:
    """Returns code and message of an error, where they are given."""
    try:
        error = json.loads(raw)
        error = error.get("error", error) if isinstance(error, dict) else error
        if isinstance(error, dict):
            code = " ".join(str(error[key]) for key in ("code", "type") if error.get(key))
            return code, str(error.get("message") or error.get("detail") or error)
        return "", str(error)
    except (ValueError, RecursionError):
        return "", raw.decode("utf-8", "replace")


def _retry_after(value: str | None) -> float | None:
    """Returns the seconds in a Retry-After header; None if it is missing, or is no number."""
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return max(seconds, 0.0) if seconds == seconds else None

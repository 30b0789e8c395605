"""`web.search` and `web.fetch`: of the internet public addresses alone, or a folder of documents in its place.

ssrfguard decides who is connected to: it resolves a name once, judges every answer and connects to an address it has
judged, and there is no fetching without it. Ours are the deadline over everything, the bound on what is unpacked, the
kinds of text that are read, and the cleaning of them: a page is data, and must not end the message that quotes it.
Whatever goes wrong is an answer, `{"error": ...}`, and is recorded like any other.
"""

import asyncio
import codecs
import concurrent.futures
import importlib.util
import re
import socket
import sqlite3
import ssl
import sys
import threading
import zlib
from collections import deque
from collections.abc import Callable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

import lib.config
from lib.errors import ConfigError
from lib.parsing import without_special_tokens
from lib.replies import Replies, key_of

REDIRECTS = 5
LONGEST_URL = 2048
CUT = "\n[cut]"
PRIVATE = {"arpa", "cluster", "corp", "home", "internal", "intranet", "invalid", "lan", "local", "localdomain",
           "localhost", "onion", "private", "svc", "test"}  # fmt: skip
READABLE = re.compile(r"text/.+|application/(.+\+)?(json|xml)")
# Encodings of Python that are none of the web: slow on purpose-made input, or without a way to go on after an error.
NO_CHARSET = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "utf-7"}
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
# The parser of pages runs in a process of its own, which can be killed: 800 kB of attributes take it half a minute.
EXTRACT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
from trafilatura import extract, html2txt
page = sys.stdin.buffer.read().decode()
sys.stdout.buffer.write((extract(page) or html2txt(page)).encode(errors="replace"))
"""


class Failed(Exception):
    """What the model is told in place of an answer; its first words say of which kind it is."""


class Web:
    """The two tools, as the config allows them, every answer recorded. ConfigError where they cannot work."""

    def __init__(self, settings: lib.config.Web, recorded: Replies):
        self._settings, self._recorded = settings, recorded
        self._source = Folder(settings) if settings.folder else Internet(settings)

    async def search(
        self,
        query: Annotated[str, Field(description="a few words, as for a search engine")],
        count: Annotated[int, Field(ge=1, le=10)] = 5,
    ) -> dict[str, Any]:
        """Searches, and gives title, href and body (an excerpt) of each result. No results: nothing was found."""
        return await self._answer("search", query, count)

    async def fetch(
        self,
        url: Annotated[str, Field(description="http or https, or the href of a result")],
        max_bytes: Annotated[int, Field(ge=1024, le=2_000_000)] = 800_000,
    ) -> dict[str, Any]:
        """Gives the text of a page or document. `cut` says that it goes on after the end of the text."""
        return await self._answer("fetch", url, max_bytes)

    async def close(self) -> None:
        """Closes what connections there are."""
        await self._source.close()

    async def _answer(self, tool: str, *arguments: Any) -> dict[str, Any]:
        """What is recorded, else the outcome within the deadline; past it, work is told to stop and not waited for."""
        deadline = self._settings.timeout_s

        async def work() -> dict[str, Any]:
            task = asyncio.ensure_future(getattr(self._source, tool)(*arguments))
            try:
                done, _ = await asyncio.wait({task}, timeout=deadline)
                return task.result() if done else {"error": f"timeout after {deadline:g} s"}
            except Failed as failure:
                return {"error": clean(str(failure))[:300]}
            finally:
                task.cancel()

        return await self._recorded.once(key_of(f"web.{tool}", *arguments), work)


class Internet:
    """Pages of public addresses. Raises Failed.

    Searching is not held to this: ddgs asks the search engines it knows by a client of its own, which goes through
    proxies of the environment. An engine that refuses looks to it like one that finds nothing.
    """

    def __init__(self, settings: lib.config.Web):
        if not settings.enabled:
            raise ConfigError("tools.web is off: set tools.web.enabled: true, or tools.web.folder to search documents")
        for package in ("ssrfguard", "trafilatura", "ddgs"):
            _require(package)
        import httpx
        import ssrfguard
        from ssrfguard import Block, Reach
        from ssrfguard.httpx import AsyncClient

        self._settings = settings
        self._visits: dict[str, deque[float]] = {}  # host -> when its last visits were, or will be
        self._parsers = asyncio.Semaphore(4)
        blocks = [  # the longest prefix decides: of IPv6, what is allocated for global unicast and not an exception
            *ssrfguard.DEFAULT_DENIED.blocks,
            Block(ip_network("::/0"), "Not global unicast", "RFC4291", Reach.DENIED),
            Block(ip_network("2000::/3"), "Global unicast", "RFC4291", Reach.PERMITTED),
        ]
        self._blocked: list[str] = []
        try:
            for host in settings.blocked_hosts:
                try:
                    blocks.append(Block(ip_network(host), "Blocked here", "tools.web.blocked_hosts", Reach.DENIED))
                except ValueError:
                    self._blocked.append("." + httpx.URL(f"http://{host.strip('.')}/").raw_host.decode())
            self._policy = ssrfguard.Policy(
                denied_networks=ssrfguard.AddressTable(tuple({block.network: block for block in blocks}.values())),
                allowed_ports=frozenset(settings.ports),
                allowed_hosts=frozenset(f"{any_}{host}" for host in settings.allowed_domains for any_ in ("", "*.")),
                max_redirects=REDIRECTS,
                max_url_length=LONGEST_URL,
            )
            self._client = AsyncClient(
                policy=self._policy,
                resolver=self._resolve,
                trust_env=False,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # takes none
                timeout=settings.timeout_s,
                limits=httpx.Limits(max_connections=100, max_keepalive_connections=0),
                headers={
                    "User-Agent": settings.user_agent,
                    "Accept": "text/html, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.9",
                    "Accept-Encoding": "gzip",
                },
            )
        except (ValueError, httpx.InvalidURL) as error:
            raise ConfigError(f"tools.web: {error}; correct it") from error

    async def search(self, query: str, count: int) -> dict[str, Any]:
        """Results of several engines."""
        from ddgs import DDGS

        await self._wait_for_turn("search engines")
        engines = DDGS(timeout=max(1, int(self._settings.timeout_s / 2)))
        try:
            found = await asyncio.wrap_future(_aside(engines.text, query, max_results=count))
        except Exception as error:  # of whatever library an engine uses
            if str(error) != "No results found.":
                raise Failed(f"search failed: {error}") from error
            found = []
        results = [{key: clean(str(hit.get(key, ""))) for key in ("title", "href", "body")} for hit in found[:count]]
        return {"query": clean(query), "results": results}

    async def fetch(self, url: str, max_bytes: int) -> dict[str, Any]:
        """A page, at most five redirects away."""
        import httpx
        from ssrfguard import SSRFGuardError

        try:
            for _ in range(1 + REDIRECTS):
                await self._wait_for_turn(self._judged(url))
                async with self._client.stream("GET", url) as response:
                    if response.next_request is None:
                        return await self._page(response, max_bytes)
                    target = str(response.next_request.url)
                if url.lower().startswith("https:") and target.startswith("http:"):
                    raise Failed("blocked: redirect from https to http")
                url = target
        except (SSRFGuardError, httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise Failed(self._told(error)) from error
        raise Failed(f"too many redirects: more than {REDIRECTS}")

    async def close(self) -> None:
        """Closes connections."""
        await self._client.aclose()

    def _resolve(self, *question: Any) -> list:
        """`getaddrinfo`, which has no timeout, given up soon after the deadline; ssrfguard judges what it answers."""
        try:
            return _aside(socket.getaddrinfo, *question).result(self._settings.timeout_s + 1)
        except (concurrent.futures.TimeoutError, UnicodeError) as error:
            raise socket.gaierror(socket.EAI_AGAIN, "no answer") from error

    def _judged(self, url: str) -> str:
        """The host of a URL, once all is checked that needs no packet; its addresses are judged when it is resolved."""
        import httpx

        is_name = self._policy.check_url(url).address is None
        host = httpx.URL(url).raw_host.decode().rstrip(".")  # as it will be asked for
        if is_name and ("." not in host or host.rpartition(".")[2] in PRIVATE):
            raise Failed("blocked: private name")
        if any(f".{host}".endswith(own) for own in self._blocked):
            raise Failed("blocked: host")
        return host

    async def _wait_for_turn(self, host: str) -> None:
        """Keeps to so many visits in any minute."""
        most = self._settings.per_host_per_minute
        visits = self._visits.setdefault(host, deque(maxlen=most))
        now = asyncio.get_running_loop().time()
        pause = max(0.0, visits[0] + 60 - now) if len(visits) == most else 0.0
        if pause >= self._settings.timeout_s:
            raise Failed(f"rate limit: {most} requests a minute to {host}; try again in {pause:.0f} s")
        visits.append(now + pause)
        await asyncio.sleep(pause)

    async def _page(self, response: Any, max_bytes: int) -> dict[str, Any]:
        """The text of a response."""
        import httpx

        if not response.is_success:
            raise Failed(f"{response.status_code} {httpx.codes.get_reason_phrase(response.status_code)}".strip())
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not READABLE.fullmatch(kind) and response.status_code != 204:
            raise Failed(f"unsupported type: {kind[:100] or 'none is given'}")
        body, cut = await _unpacked(response, max_bytes)
        text = decode(body, response.headers.get("content-type", ""))
        if "html" in kind and text.strip():
            text = await self._extracted(text)
        return _document(str(response.url), response.status_code, text, cut, max_bytes, self._settings)

    async def _extracted(self, page: str) -> str:
        """What a reader sees of a page of HTML."""
        async with self._parsers:
            seconds = str(int(self._settings.timeout_s) + 1)
            pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
            parser = await asyncio.create_subprocess_exec(
                sys.executable, "-c", EXTRACT, seconds, stdin=pipe, stdout=pipe, stderr=nothing
            )
            try:
                text, _ = await parser.communicate(_whole(page).encode(errors="replace"))
            finally:
                if parser.returncode is None:
                    parser.kill()
                    await parser.wait()
        if parser.returncode:
            raise Failed("unreadable: no text can be extracted from this page")
        return text.decode()

    def _told(self, error: BaseException) -> str:
        """What the model is told of an error: what lies at its bottom, in words that do not change."""
        import httpx
        from ssrfguard import BlockedAddressError, BlockedURLError

        causes = [error]
        while cause := causes[-1].__cause__ or causes[-1].__context__:
            causes.append(cause)
        for cause in reversed(causes):
            if isinstance(cause, BlockedAddressError):
                return "blocked: private address"
            if isinstance(cause, BlockedURLError):
                return f"blocked: {re.split(r'; |, which |, so ', cause.reason)[0]}"
            if isinstance(cause, socket.gaierror):
                return "unknown host"
            if isinstance(cause, ssl.SSLError):
                return f"TLS: {getattr(cause, 'verify_message', None) or cause.reason or 'handshake failed'}"
            if isinstance(cause, httpx.TimeoutException):
                return f"timeout after {self._settings.timeout_s:g} s"
            if isinstance(cause, httpx.InvalidURL | UnicodeError):
                return "blocked: not a URL"
        return f"connection failed: {type(error).__name__}"


class Folder:
    """Text files as the whole of the web: found by their words, the best match first, fetched as `doc:<path>`."""

    def __init__(self, settings: lib.config.Web):
        self._settings = settings
        folder = Path(settings.folder)
        files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".txt", ".md", ".html"))
        if not files:
            raise ConfigError(f"tools.web.folder: {folder} holds no .txt, .md or .html file; correct the path")
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            self._index.execute("CREATE VIRTUAL TABLE documents USING fts5(path UNINDEXED, title, body)")
        except sqlite3.OperationalError as error:
            raise ConfigError(f"tools.web.folder needs an SQLite with FTS5: {error}; use another Python") from error
        for path in files:
            text = path.read_text(encoding="utf-8", errors="replace")
            if path.suffix.lower() == ".html":
                _require("trafilatura")
                from trafilatura import extract, html2txt

                page = _whole(text)
                text = extract(page) or html2txt(page)
            text = clean(text)
            title = next((line.strip("# ") for line in text.splitlines() if line.strip("# ")), path.stem)[:120]
            row = (clean(path.relative_to(folder).as_posix()), title, text)
            self._index.execute("INSERT INTO documents VALUES (?, ?, ?)", row)

    async def search(self, query: str, count: int) -> dict[str, Any]:
        """Documents that hold any of the words."""
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query)[:64])
        found = self._index.execute(
            "SELECT path, title, snippet(documents, 2, '', '', ' … ', 48) FROM documents WHERE documents MATCH ? "
            "ORDER BY rank, path LIMIT ?",
            (words or '""', count),
        )
        results = [{"title": title, "href": f"doc:{path}", "body": body} for path, title, body in found]
        return {"query": clean(query), "results": results}

    async def fetch(self, url: str, max_bytes: int) -> dict[str, Any]:
        """One document."""
        if not url.startswith("doc:"):
            raise Failed("blocked: only documents of the folder, by the href of a search result")
        path = clean(url.removeprefix("doc:"))
        row = self._index.execute("SELECT body FROM documents WHERE path = ?", (path,)).fetchone()
        if row is None:
            raise Failed("404 Not Found")
        return _document(f"doc:{path}", 200, row[0], False, max_bytes, self._settings)

    async def close(self) -> None:
        """Forgets the index."""
        self._index.close()


def clean(text: str) -> str:
    """Without control and invisible characters, and with no special token of a chat format: the last thing to be done.

    As soon as an entity is resolved, or a character taken out, after this, there may be a token again.
    """
    text = INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return without_special_tokens(text)


def decode(body: bytes, content_type: str) -> str:
    """Text in the charset that the header, else its own head, names; what does not fit is replaced."""
    named = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", content_type, re.IGNORECASE)
    inner = re.search(rb"(?:charset|encoding)\s*=\s*[\"']?([\w.:-]+)", body[:1024], re.IGNORECASE)
    name = named[1] if named else inner[1].decode() if inner else "utf-8"
    try:
        known = codecs.lookup(name).name
        return body.decode("utf-8" if known in NO_CHARSET else known, errors="replace")
    except (LookupError, ValueError):  # none that Python knows, or none of text
        return body.decode("utf-8", errors="replace")


def _whole(page: str) -> str:
    """trafilatura finds nothing in a fragment, such as a table alone."""
    return page if "<html" in page.lower() else f"<html><body>{page}</body></html>"


def _document(url: str, status: int, text: str, cut: bool, max_bytes: int, settings: lib.config.Web) -> dict[str, Any]:
    """What `fetch` gives: clean text within both bounds, the mark included."""
    most = settings.max_characters
    cut, text = cut or len(text) > 2 * most, clean(text[: 2 * most])
    if cut or len(text) > most or len(text.encode()) > max_bytes:
        text = text[: max(0, most - len(CUT))].encode()[: max_bytes - len(CUT)].decode(errors="ignore") + CUT
        return {"url": clean(url), "status": status, "text": text, "cut": True}
    return {"url": clean(url), "status": status, "text": text}


async def _unpacked(response: Any, max_bytes: int) -> tuple[bytes, bool]:
    """Body and whether it was cut. httpx would unpack every block whole, 64 kB to as much as 66 MB."""
    packing = response.headers.get("content-encoding", "identity").strip().lower()
    if packing not in ("identity", "gzip", "x-gzip"):
        raise Failed(f"unsupported type: packed as {packing[:100]}")
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress if "gzip" in packing else lambda data, most: data[:most]
    body, received = bytearray(), 0
    async for block in response.aiter_raw():
        received += len(block)
        try:
            body += unpack(block, max_bytes + 1 - len(body))
        except zlib.error as error:
            raise Failed("unreadable: damaged gzip") from error
        if max(len(body), received) > max_bytes:
            return bytes(body[:max_bytes]), True
    return bytes(body), False


def _aside(function: Callable, *arguments: Any, **more: Any) -> concurrent.futures.Future:
    """Runs in a daemon thread: if it hangs, it holds neither the deadline nor the end of the process."""
    future: concurrent.futures.Future = concurrent.futures.Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(function(*arguments, **more))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def _require(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise ConfigError(f"tools.web needs the package {package}: pip install -r requirements-web.txt")

"""Pages of public addresses, and nothing else.

ssrfguard decides who is connected to: it resolves a name once, judges every answer and connects to an address it has
judged, and there is no fetching without it. Searching is not held to this: ddgs asks the search engines it knows by a
client of its own, which goes through proxies of the environment. An engine that refuses looks to it like one that finds
nothing.
"""

import asyncio
import concurrent.futures
import importlib.util
import re
import socket
import ssl
from collections import deque
from http.cookiejar import CookieJar
from ipaddress import ip_network
from typing import Any

import lib.core.config
from lib.core.errors import ConfigError
from lib.core.killable import SYSTEM, ProcessJob, ProcessKilled, ProcessPool, Refused, in_daemon_thread
from lib.tools.pages import READABLE, Failed, Parser, clean, decode, document, kind_of, read_body

REDIRECTS = 5
LONGEST_URL = 2048
LONGEST_BODY = 2_000_000  # bytes
AT_ONCE = 64  # requests: httpcore scans all that wait whenever one ends
SEARCHES_AT_ONCE = 8  # each is a process
SEARCHES_PER_MINUTE = 60
VISITS_PER_MINUTE = 300  # of a host; all rollouts share it, so it is high: a hundred may ask one encyclopedia at once
PORTS = (80, 443)  # that may be reached
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ddgs_proxy", "ssl_cert_file", "ssl_cert_dir")
SEARCH = ProcessJob(
    "lib.tools.extraction:search", "ddgs", 8 << 30, 10, (*SYSTEM, *PROXIES, *(name.upper() for name in PROXIES))
)
RESULT = {"title": 300, "href": LONGEST_URL, "body": 2000}  # characters
PRIVATE = {"arpa", "cluster", "corp", "home", "internal", "intranet", "invalid", "lan", "local", "localdomain",
           "localhost", "onion", "private", "svc", "test"}  # fmt: skip
WIRE_SERVER = "168.63.129.16"  # Azure's: hands secrets to a virtual machine, at an address that looks public


class NoCookies(CookieJar):
    """Neither stores, sends nor parses cookies: parsing takes time quadratic in a header's length."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        pass

    def add_cookie_header(self, request: Any) -> None:
        pass


class Internet:
    """Searches the internet and fetches pages. Raises Failed."""

    def __init__(self, settings: lib.core.config.WebSettings):
        for package in ("ssrfguard", "trafilatura", "ddgs"):
            if importlib.util.find_spec(package) is None:
                raise ConfigError(f"tools.web needs the package {package}: pip install -r requirements-web.txt")
        import httpx
        from ssrfguard.httpx import AsyncClient

        if not re.fullmatch(r"[!-~]([ -~]*[!-~])?", settings.user_agent):
            raise ConfigError(f"tools.web.user_agent: {settings.user_agent!a} is not a header; use printable ASCII")
        self._settings = settings
        self._visits: dict[str, deque[float]] = {}  # host -> times of its last visits, planned ones included
        self._parser = Parser()
        self._searches = ProcessPool(SEARCH, SEARCHES_AT_ONCE, settings.timeout_s)
        self._connections = asyncio.Semaphore(AT_ONCE)
        self._connect_s = settings.timeout_s / 3  # for a lookup, and for each address, so that a second one is tried
        self._policy = _policy()
        self._client = AsyncClient(
            policy=self._policy,
            resolver=self._resolve,
            trust_env=False,
            cookies=NoCookies(),
            timeout=httpx.Timeout(settings.timeout_s, connect=self._connect_s),
            limits=httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=0),
            headers={
                "User-Agent": settings.user_agent,
                "Accept": "text/html, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.9",
                "Accept-Encoding": "identity",
            },
        )

    async def search(self, query: str, count: int) -> dict[str, Any]:
        """Returns up to `count` results of several search engines."""
        await self._wait_for_turn("search engines", SEARCHES_PER_MINUTE)
        try:
            hits = await self._searches.run(query, count, max(1, int(self._settings.timeout_s / 2)))
        except Refused as error:
            if str(error) != "No results found.":
                raise Failed(f"search failed: {error}") from error
            hits = []
        except ProcessKilled as error:
            raise Failed("search failed: no answer") from error
        hits = [hit for hit in hits if isinstance(hit, dict)][:count]
        results = [{key: clean(str(hit.get(key, ""))[:most]) for key, most in RESULT.items()} for hit in hits]
        return {"query": clean(query), "results": results}

    async def fetch(self, url: str) -> dict[str, Any]:
        """Returns a page, following at most REDIRECTS redirects."""
        import httpx
        from ssrfguard import SSRFGuardError

        try:
            for _ in range(1 + REDIRECTS):
                await self._wait_for_turn(self._judged(url), VISITS_PER_MINUTE)
                async with self._connections, self._client.stream("GET", url) as response:
                    if response.next_request is None:
                        text, cut = await self._text(response)
                        break
                    target = str(response.next_request.url)
                if url.lower().startswith("https:") and target.startswith("http:"):
                    raise Failed("blocked: redirect from https to http")
                url = target
            else:
                raise Failed(f"too many redirects: more than {REDIRECTS}")
        except (SSRFGuardError, httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise Failed(self._told(error)) from error
        if "html" in kind_of(response.headers.get("content-type", "")):  # its connection is free by now
            text = await self._parser.text_of(text)
        return document(str(response.url), response.status_code, text, cut)

    async def close(self) -> None:
        """Closes connections and ends processes."""
        self._parser.close()
        self._searches.close()
        await self._client.aclose()

    def _resolve(self, *question: Any) -> list:
        """Calls `getaddrinfo` with a timeout, since it has none of its own; ssrfguard judges the addresses."""
        try:
            return in_daemon_thread(socket.getaddrinfo, *question).result(self._connect_s)
        except (concurrent.futures.TimeoutError, UnicodeError) as error:
            raise socket.gaierror(socket.EAI_AGAIN, "no answer") from error

    def _judged(self, url: str) -> str:
        """Returns a URL's host after every check that needs no network; addresses are judged when it is resolved."""
        import httpx

        # Check it as written, since httpx fixes some of what ssrfguard refuses; then as it will be requested.
        self._policy.check_url(url)
        parsed = httpx.URL(url)
        is_name = self._policy.check_url(str(parsed)).address is None
        host = parsed.raw_host.decode().rstrip(".")
        last = host.rpartition(".")[2]
        if is_name and re.fullmatch(r"[0-9]+|0x[0-9a-f]*", last):  # WHATWG: a final number makes it an address
            raise Failed("blocked: not a URL")
        if is_name and (last == host or last in PRIVATE):
            raise Failed("blocked: private name")
        return host

    async def _wait_for_turn(self, host: str, most: int) -> None:
        """Waits until `host` has had fewer than `most` visits within a minute. Raises Failed if that takes too long."""
        now = asyncio.get_running_loop().time()
        visits = self._visits.setdefault(host, deque(maxlen=most))
        pause = max(0.0, visits[0] + 60 - now) if len(visits) == most else 0.0
        if pause >= self._settings.timeout_s:  # no "try again": this answer is recorded, and would be repeated
            raise Failed(f"rate limit: {most} requests a minute to {host}")
        visits.append(now + pause)
        await asyncio.sleep(pause)

    async def _text(self, response: Any) -> tuple[str, bool]:
        """Returns the text of a response, and whether it was cut. Raises Failed."""
        import httpx

        if not response.is_success:
            raise Failed(f"{response.status_code} {httpx.codes.get_reason_phrase(response.status_code)}".strip())
        content_type = response.headers.get("content-type", "")
        kind = kind_of(content_type)
        if not READABLE.fullmatch(kind) and response.status_code != 204:
            raise Failed(f"unsupported type: {kind[:100] or 'none is given'}")
        body, cut = await read_body(response.aiter_raw(), response.headers.get("content-encoding", ""), LONGEST_BODY)
        return decode(body, content_type), cut

    def _told(self, error: BaseException) -> str:
        """Returns the message about an error for the model: its root cause, in fixed words."""
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
                return "timeout: no name server answers" if cause.errno == socket.EAI_AGAIN else "unknown host"
            if isinstance(cause, ssl.SSLError):
                return f"TLS: {getattr(cause, 'verify_message', None) or cause.reason or 'handshake failed'}"
            if isinstance(cause, httpx.ConnectTimeout):
                return f"timeout: no connection within {self._connect_s:.3g} s"
            if isinstance(cause, httpx.TimeoutException):
                return f"timeout after {self._settings.timeout_s:g} s"
            if isinstance(cause, httpx.InvalidURL | UnicodeError):
                return "blocked: not a URL"
        return f"connection failed: {type(error).__name__}"


def _policy() -> Any:
    """Returns ssrfguard's rules, and ours."""
    import ssrfguard
    from ssrfguard import Block, Reach

    blocks = [  # the longest prefix decides: of IPv6, global unicast without its exceptions is permitted
        *ssrfguard.DEFAULT_DENIED.blocks,
        Block(ip_network("::/0"), "Not global unicast", "RFC4291", Reach.DENIED),
        Block(ip_network("2000::/3"), "Global unicast", "RFC4291", Reach.PERMITTED),
        Block(ip_network(WIRE_SERVER), "Azure WireServer", "", Reach.DENIED),
    ]
    return ssrfguard.Policy(
        denied_networks=ssrfguard.AddressTable(tuple({block.network: block for block in blocks}.values())),
        allowed_ports=frozenset(PORTS),
        max_redirects=REDIRECTS,
        max_url_length=LONGEST_URL,
    )

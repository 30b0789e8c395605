"""Serves the page of runs on this machine, and what is new in them while they train."""

import json
import threading
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from lib.core.errors import ConfigError
from pages.page import overview, render_overview, render_runs
from pages.rollouts import Rollouts, packed, rollouts_of
from pages.run_folder import RunFolder, read_run, stamp

HOST = "127.0.0.1"


class LiveRuns:
    """Runs that are read again when a browser asks and a file has changed: without a browser nothing is done."""

    def __init__(self, folders: Sequence[Path]):
        self._folders = folders
        self._lock = threading.Lock()
        self._version = 0
        self._stamps: list[list[tuple]] | None = None  # of the files, before they were last read
        self._runs: list[RunFolder] = []
        self.kept: dict[str, Rollouts] = {}  # by version, the last two: a page may still ask by the older index

    def now(self) -> tuple[str, list[RunFolder], Rollouts]:
        """Returns the version of what is there, which changes with the files, the runs, and their rollouts."""
        with self._lock:
            stamps = list(map(stamp, self._folders))
            if stamps != self._stamps:
                self._stamps, self._runs = stamps, list(map(read_run, self._folders))
                self._version += 1
                self.kept = dict([*self.kept.items()][-1:]) | {str(self._version): rollouts_of(self._runs)}
            return str(self._version), self._runs, self.kept[str(self._version)]


def serve(folders: Sequence[Path], port: int) -> ThreadingHTTPServer:
    """Returns a server of the page at the loopback address; `serve_forever` starts it. Raises ConfigError."""
    live = LiveRuns(folders)

    class Handler(BaseHTTPRequestHandler):
        """Answers with the page, its rollouts, and what is new."""

        def do_GET(self) -> None:
            """Answers one request; none but those to this machine by name or number."""
            name = (self.headers.get("Host") or "").rpartition(":")[0]
            if name not in (HOST, "localhost"):  # a page elsewhere whose name was made to lead here
                return self._send(HTTPStatus.FORBIDDEN, b"give 127.0.0.1", "text/plain")
            address = urlsplit(self.path)
            version, runs, rollouts = live.now()
            if address.path == "/":
                page = render_runs(runs, rollouts, live=True)
                return self._send(HTTPStatus.OK, page.encode("utf-8", "backslashreplace"), "text/html; charset=utf-8")
            if address.path == "/new":
                since = parse_qs(address.query).get("since", [""])[0]
                body = json.dumps(news(version, runs, rollouts, since)).encode()
                return self._send(HTTPStatus.OK, body, "application/json")
            if address.path == "/data/index":
                body = packed(rollouts.index | {"version": version})
                return self._send(HTTPStatus.OK, body, "application/octet-stream")
            rollouts = live.kept.get(parse_qs(address.query).get("of", [version])[0])
            if rollouts is None:  # of an index that numbers them otherwise
                return self._send(HTTPStatus.CONFLICT, b"read the index again", "text/plain")
            blob = rollouts.blob(address.path.removeprefix("/data/")) if address.path.startswith("/data/") else None
            if blob is None:
                return self._send(HTTPStatus.NOT_FOUND, b"nothing here", "text/plain")
            self._send(HTTPStatus.OK, blob, "application/octet-stream")

        def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
            self.send_response(status)
            for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))),
                                ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")):  # fmt: skip
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: a browser asks every second."""

    try:
        return ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        raise ConfigError(f"--port {port}: cannot be served there ({error}); choose another, or 0 for any") from error


def news(version: str, runs: list[RunFolder], rollouts: Rollouts, since: str) -> dict:
    """Returns the version and how far the runs are; with their overview if that is not what the page has."""
    told = {"version": version, "status": "; ".join(run.status for run in runs)}
    if version == since:
        return told
    return told | {"html": render_overview(runs, rollouts), "title": f"{overview(runs, rollouts)['title']} · Rematch"}

"""A folder of documents in place of the internet: found by their words, the best first, fetched as `doc:<path>`."""

import asyncio
import os
import re
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lib.core.config
from lib.core.errors import ConfigError
from lib.core.killable import in_daemon_thread
from lib.tools.pages import Failed, Parser, clean, document

LONGEST = 2_000_000  # bytes of a document: the rest is cut
WORDS = 64  # of a query, at most
EXCERPT = 300  # characters of a document shown in a result,
SEARCHED = 300_000  # around the first word found within this many characters, else from the beginning


class Documents:
    """The regular text files of a folder, without links that lead out of it. Raises ConfigError if there are none."""

    def __init__(self, settings: lib.core.config.WebSettings):
        self._settings = settings
        self._paths: list[str] = []
        self._texts: dict[str, tuple[str, bool]] = {}  # path -> text, and whether it was cut
        self._titles: list[str] = []
        self._lock = threading.Lock()  # the index answers one query at a time
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            self._index.execute("CREATE VIRTUAL TABLE documents USING fts5(title, body, content='')")
        except sqlite3.OperationalError as error:
            raise ConfigError(f"tools.web.folder needs an SQLite with FTS5: {error}; use another Python") from error
        parser = Parser()
        try:
            for path, data in _files(Path(settings.folder)):
                self._add(path, data, parser)
        except OSError as error:
            raise ConfigError(f"tools.web.folder: {error}; fix the path, or its permissions") from error
        finally:
            parser.close()
        if not self._paths:
            raise ConfigError(f"tools.web.folder: {settings.folder} holds no .txt, .md or .html file; fix the path")

    async def search(self, query: str, count: int) -> dict[str, Any]:
        """Returns up to `count` documents that contain any of the query's words, best first."""
        words = list(dict.fromkeys(re.findall(r"\w+", query[:10_000].casefold())))[:WORDS]
        results = await asyncio.wrap_future(in_daemon_thread(self._find, words, count)) if words else []
        return {"query": clean(query), "results": results}

    async def fetch(self, url: str) -> dict[str, Any]:
        """Returns one document. Raises Failed."""
        if not url.startswith("doc:"):
            raise Failed("blocked: only documents of the folder, by the href of a search result")
        path = clean(url.removeprefix("doc:"))
        if path not in self._texts:
            raise Failed("404 Not Found")
        text, cut = self._texts[path]
        return document(f"doc:{path}", 200, text, cut)

    async def close(self) -> None:
        """Closes nothing: the index is freed with its last user, which may be a thread."""

    def _add(self, path: str, data: bytes, parser: Parser) -> None:
        text = data[:LONGEST].decode("utf-8-sig", errors="replace")
        if path.lower().endswith(".html"):
            try:
                text = parser.text_of_now(text)
            except Failed as failure:
                raise ConfigError(f"tools.web.folder: {path!a}: {failure}; fix or remove it") from failure
        text, path = clean(text), clean(path)
        title = next((line.strip("# ") for line in text.splitlines() if line.strip("# ")), Path(path).stem)[:120]
        self._index.execute(
            "INSERT INTO documents (rowid, title, body) VALUES (?, ?, ?)", (len(self._paths), title, text)
        )
        self._paths.append(path)
        self._titles.append(title)
        self._texts[path] = text, len(data) > LONGEST

    def _find(self, words: list[str], count: int) -> list[dict[str, Any]]:
        """Queries the index, in a thread, and gives up after `timeout_s`, when no one waits any more."""
        end = time.monotonic() + self._settings.timeout_s
        with self._lock:
            self._index.set_progress_handler(lambda: time.monotonic() > end, 10_000)
            rows = self._index.execute(
                "SELECT rowid FROM documents WHERE documents MATCH ? ORDER BY rank, rowid LIMIT ?",
                (" OR ".join(f'"{word}"' for word in words), count),
            ).fetchall()
        return [
            {
                "title": self._titles[row],
                "href": f"doc:{self._paths[row]}",
                "body": _excerpt(self._texts[self._paths[row]][0], set(words)),
            }
            for (row,) in rows
        ]


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yields paths within the folder and the first bytes of each file: one more than a document may have."""

    def stop(error: OSError) -> None:
        raise error

    inside = os.path.realpath(folder)
    paths = sorted(Path(at, name) for at, _, names in os.walk(inside, onerror=stop) for name in names)
    for path in paths:
        real = os.path.realpath(path)
        if path.suffix.lower() not in (".txt", ".md", ".html") or not Path(real).is_relative_to(inside):
            continue
        if not os.path.isfile(real):  # a pipe, or a link that leads nowhere
            continue
        # Since the check it may have become a link or a pipe: a link raises, a pipe does not block and is skipped.
        handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                yield path.relative_to(inside).as_posix(), file.read(LONGEST + 1)


def _excerpt(text: str, words: set[str]) -> str:
    """Returns an excerpt around the first of the words. SQLite's snippet() takes time quadratic in the length."""
    starts = (word.start() for word in re.finditer(r"\w+", text[:SEARCHED]) if word[0].casefold() in words)
    start = max(0, next(starts, 0) - EXCERPT // 3)
    body = " ".join(text[start : start + EXCERPT].split())
    return clean(("… " if start else "") + body + (" …" if start + EXCERPT < len(text) else ""))

"""A folder of documents in place of the internet: found by their words, the best first, fetched as `doc:<path>`."""

import re
import sqlite3
from pathlib import Path
from typing import Any

import lib.core.config
from lib.core.errors import ConfigError
from lib.tools.pages import Failed, clean, document

WORDS = 64  # of a query, at most
EXCERPT = 300  # characters of a document shown in a result,
SEARCHED = 300_000  # around the first word found within this many characters, else from the beginning


class Documents:
    """The .txt and .md files of a folder, without links that lead out of it. Raises ConfigError if there are none."""

    def __init__(self, settings: lib.core.config.WebSettings):
        folder = Path(settings.folder).resolve()
        self._texts: dict[str, str] = {}  # by path
        self._paths: list[str] = []  # by row of the index, as the titles
        self._titles: list[str] = []
        self._index = sqlite3.connect(":memory:")
        try:
            self._index.execute("CREATE VIRTUAL TABLE documents USING fts5(title, body, content='')")
        except sqlite3.OperationalError as error:
            raise ConfigError(f"tools.web.folder needs an SQLite with FTS5: {error}; use another Python") from error
        try:
            for path in sorted(folder.rglob("*")):
                is_text = path.suffix.lower() in (".txt", ".md") and path.is_file()
                if is_text and path.resolve().is_relative_to(folder):
                    self._add(path.relative_to(folder), path.read_text("utf-8-sig", errors="replace"))
        except OSError as error:
            raise ConfigError(f"tools.web.folder: {error}; fix the path, or its permissions") from error
        if not self._texts:
            raise ConfigError(f"tools.web.folder: {settings.folder} holds no .txt or .md file; fix the path")

    async def search(self, query: str, count: int) -> dict[str, Any]:
        """Returns up to `count` documents that contain any of the query's words, best first."""
        words = list(dict.fromkeys(re.findall(r"\w+", query[:10_000].casefold())))[:WORDS]
        rows = self._index.execute(
            "SELECT rowid FROM documents WHERE documents MATCH ? ORDER BY rank, rowid LIMIT ?",
            (" OR ".join(f'"{word}"' for word in words) or '""', count),
        )
        results = [
            {"title": self._titles[row], "href": f"doc:{self._paths[row]}", "body": self._excerpt(row, set(words))}
            for (row,) in rows
        ]
        return {"query": clean(query), "results": results}

    async def fetch(self, url: str) -> dict[str, Any]:
        """Returns one document. Raises Failed."""
        if not url.startswith("doc:"):
            raise Failed("blocked: only documents of the folder, by the href of a search result")
        path = clean(url.removeprefix("doc:"))
        if path not in self._texts:
            raise Failed("404 Not Found")
        return document(f"doc:{path}", 200, self._texts[path], cut=False)

    async def close(self) -> None:
        """Closes the index."""
        self._index.close()

    def _add(self, path: Path, text: str) -> None:
        text = clean(text)
        title = next((line.strip("# ") for line in text.splitlines() if line.strip("# ")), path.stem)[:120]
        self._index.execute(
            "INSERT INTO documents (rowid, title, body) VALUES (?, ?, ?)", (len(self._titles), title, text)
        )
        self._titles.append(title)
        self._paths.append(clean(path.as_posix()))
        self._texts[self._paths[-1]] = text

    def _excerpt(self, row: int, words: set[str]) -> str:
        """Returns an excerpt around the first of the words. SQLite's snippet() takes time quadratic in the length."""
        text = self._texts[self._paths[row]]
        starts = (word.start() for word in re.finditer(r"\w+", text[:SEARCHED]) if word[0].casefold() in words)
        start = max(0, next(starts, 0) - EXCERPT // 3)
        body = " ".join(text[start : start + EXCERPT].split())
        return clean(("… " if start else "") + body + (" …" if start + EXCERPT < len(text) else ""))

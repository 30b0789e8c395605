"""Makes what comes from outside safe to quote: readable kinds, decoded within bounds, cleaned.

A page is data, and must not end the message that quotes it. Whatever goes wrong with one is `Failed`, which a model is
told.
"""

import codecs
import re
from collections.abc import AsyncIterator
from typing import Any

from judge.parsing import without_special_tokens
from judge.pool import cores
from lib.core.killable import ProcessJob, ProcessKilled, ProcessPool, Refused

CUT = "\n[cut]"
MOST_TEXT = 20_000  # characters of a page
PARSE_SECONDS = 10.0  # per page, 3 of them on the CPU: less than a deadline, so that a bad page starves no other
EXTRACT = ProcessJob("lib.tools.extraction:extract", "trafilatura", 1 << 30, 3)  # 2 MB of ordinary HTML take 1 s
READABLE = re.compile(r"text/.+|application/(.+\+)?(json|xml)")
# Python encodings that the web does not use: slow on crafted input, or unable to continue after an error.
NO_CHARSET = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "utf-7"}
BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# Controls, and characters without a glyph that may split a token unseen. The two joiners stay, for Persian and emoji.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


class Failed(Exception):
    """A failure that the model is told in place of an answer; its first words name the kind of failure."""


def clean(text: str) -> str:
    """Removes control and invisible characters, and the special tokens of chat formats. Must be the last step.

    Resolving an entity or removing a character afterwards may form a special token again.
    """
    text = INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return without_special_tokens(text)


def decode(body: bytes, content_type: str) -> str:
    """Decodes a body by its byte order mark, else its header's charset, else, for HTML and XML, the one it declares."""
    for mark, charset in BYTE_ORDER_MARKS.items():
        if body.startswith(mark):
            return body[len(mark) :].decode(charset, errors="replace")
    named = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", content_type, re.IGNORECASE)
    name = named[1] if named else _declared(body[:1024]) if re.search("html|xml", kind_of(content_type)) else "utf-8"
    try:
        codec = codecs.lookup(name).name
        return body.decode("utf-8" if codec in NO_CHARSET else codec, errors="replace")
    except (LookupError, ValueError):  # unknown to Python, or not an encoding of text
        return body.decode("utf-8", errors="replace")


def kind_of(content_type: str) -> str:
    """Returns the media type of a Content-Type header: `text/html` for `Text/HTML; charset=utf-8`."""
    return content_type.partition(";")[0].strip().lower()


async def read_body(blocks: AsyncIterator[bytes], packing: str, most: int) -> tuple[bytes, bool]:
    """Returns at most `most` bytes of a body; True if cut. Packed bodies, which were not asked for, are refused."""
    if packing := packing.strip().lower().removeprefix("identity"):
        raise Failed(f"unsupported type: packed as {packing[:100]}")
    body = bytearray()
    async for block in blocks:
        body += block
        if len(body) > most:
            return bytes(body[:most]), True
    return bytes(body), False


def document(url: str, status: int, text: str, cut: bool) -> dict[str, Any]:
    """Returns the result of `fetch`: clean text of at most MOST_TEXT characters, the cut mark included."""
    cut, text = cut or len(text) > 2 * MOST_TEXT, clean(text[: 2 * MOST_TEXT])
    result = {"url": clean(url), "status": status, "text": text}
    if cut or len(text) > MOST_TEXT:
        result |= {"text": text[: MOST_TEXT - len(CUT)] + CUT, "cut": True}
    return result


def shortened(result: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """Returns a document cut to `max_bytes` of text, the cut mark included."""
    if "text" not in result or len(result["text"].encode()) <= max_bytes:
        return result
    text = result["text"].removesuffix(CUT) if "cut" in result else result["text"]
    kept = text.encode()[: max(0, max_bytes - len(CUT))].decode(errors="ignore")
    return {**result, "text": kept + CUT, "cut": True}


class Parser:
    """Extracts the text of HTML pages, in processes that are killed when a page takes too long. Raises Failed."""

    def __init__(self) -> None:
        self._pool = ProcessPool(EXTRACT, min(8, cores()), PARSE_SECONDS)

    async def text_of(self, page: str) -> str:
        """Returns the text that a reader sees of a page."""
        try:
            return await self._pool.run(page) if page.strip() else ""
        except (ProcessKilled, Refused) as error:
            raise Failed("unreadable: no text can be extracted from this page") from error

    def close(self) -> None:
        """Ends the processes."""
        self._pool.close()


def _declared(head: bytes) -> str:
    """Returns the charset that a document declares; never UTF-16, since the declaration was readable as ASCII."""
    inner = re.search(rb"(?:charset|encoding)\s*=\s*[\"']?([\w.:-]+)", head, re.IGNORECASE)
    name = inner[1].decode().lower() if inner else "utf-8"
    return "utf-8" if re.match("u(tf|cs)[-_ ]?(16|32|2|4)|unicode|iso-10646", name) else name

"""What of the web tools runs in a process of its own (lib/core/killable.py): reading a page, and searching."""

import re
from typing import Any

# Elements whose text no reader sees: it stands in for what a browser shows, or waits for a script.
_UNSEEN = (
    "template", "noscript", "dialog", "datalist", "textarea", "iframe", "canvas", "video", "audio", "object", "noembed",
    "noframes", "rp",
)  # fmt: skip
_HIDES = re.compile(  # a style
    r"(?<![\w-])(?:display\s*:\s*none|(?:content-)?visibility\s*:\s*(?:hidden|collapse)|color\s*:\s*transparent"
    r"|(?:opacity|font-size|(?:max-)?height)\s*:\s*(?:0*\.)?0+(?![.\d])|font-size\s*:\s*1p[xt]|clip-path\s*:\s*inset"
    r"|(?:left|right|top|text-indent|margin-left)\s*:\s*-\d{3}|clip\s*:\s*rect|transform\s*:\s*scale\(0)",
    re.IGNORECASE,
)


def extract(page: str) -> str:
    """Extracts the text that a reader sees from an HTML page, where its own elements say what is hidden."""
    from trafilatura import extract, html2txt, load_html

    whole = page if "<html" in page.lower() else f"<html><body>{page}</body></html>"  # it finds nothing in a fragment
    tree = load_html(whole)
    for element in [] if tree is None else tree.xpath(f"//body//*[@hidden or @style] | //{' | //'.join(_UNSEEN)}"):
        if element.tag in _UNSEEN or "hidden" in element.attrib or _HIDES.search(element.get("style")):
            element.drop_tree()
    return "" if tree is None else extract(tree) or html2txt(tree)


def search(query: str, count: int, seconds: int) -> list[Any]:
    """Searches several engines, each with a timeout of `seconds`, and returns up to `count` results."""
    from ddgs import DDGS

    return DDGS(timeout=seconds).text(query, max_results=count)

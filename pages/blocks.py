"""The elements of a page, as plain data: templates and the terminal show the same sections, tables and sentences."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lib.core.console import interval, share
from lib.run.runlog import is_number

DIFFERENCES = ("delta", "minus_own", "minus_own_own_wrong", "difference", "revised_minus_fresh", "gain")  # may be < 0


@dataclass(frozen=True)
class Cell:
    """One cell of a table: a value, and its interval or share below it."""

    text: str
    small: str = ""
    link: str = ""  # the rollouts behind it, as the page's fragment


@dataclass(frozen=True)
class TableLine:
    """One line of a table; without cells, the title of the lines below it."""

    label: str
    cells: Sequence[Cell] = ()
    look: str = ""


@dataclass(frozen=True)
class TextTable:
    """A table; `heads` are pairs of a name and its colour, and the first column has the labels of the lines."""

    heads: Sequence[tuple[str, str]]
    lines: Sequence[TableLine]
    look: str = "rates"  # or "keys", whose cells are texts that may wrap
    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class Paragraph:
    """A sentence; `look` is "", "warning", "example" or "note".

    With `link` it leads to rollouts or to a chart, under the words `link_text`.
    """

    text: str
    look: str = ""
    link: str = ""
    link_text: str = ""
    kind: ClassVar[str] = "paragraph"


@dataclass(frozen=True)
class Charts:
    """Charts side by side, as data for the page's script (`pages.curves`)."""

    charts: list[dict[str, Any]]
    kind: ClassVar[str] = "charts"


@dataclass(frozen=True)
class Shares:
    """Parts of a whole as one bar: names with their shares and a text each."""

    parts: list[tuple[str, float, str]]
    kind: ClassVar[str] = "shares"


@dataclass(frozen=True)
class Facts:
    """Short texts, each under its name."""

    items_of: dict[str, str]
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Correction:
    """A question with a wrong attempt and a right one, each as its name and its text, and a link to more of them."""

    question: str
    wrong: tuple[str, str]
    right: tuple[str, str]
    caption: str
    link: str
    kind: ClassVar[str] = "correction"


@dataclass(frozen=True)
class Listing:
    """A text as it stands in a file."""

    text: str
    kind: ClassVar[str] = "listing"


@dataclass(frozen=True)
class PageSection:
    """A part of a page; the first screen alone has no title."""

    title: str
    blocks: Sequence[TextTable | Paragraph | Charts | Shares | Facts | Correction | Listing]
    note: str = ""
    folded: bool = False  # shown by a click
    anchor: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "anchor", anchor_of(self.title))


def anchor_of(title: str) -> str:
    """Returns a title as the page's fragment."""
    return "".join(c if c.isalnum() else "-" for c in title.lower())


def rate_cell(row: dict, key: str) -> Cell:
    """Returns a rate as `81.2 %` above `79.6 82.7`; a dash where the row has none."""
    if not is_number(row.get(key)):
        return Cell("–")
    sign = "+" if key in DIFFERENCES else ""
    return Cell(share(row[key], sign), interval(list(filter(is_number, row.get(f"{key}_ci95") or ())), sign))


def seen(text: str, most: int) -> str:
    """Returns a text that is safe to show: unseen characters spelled out, the middle of a long one left out."""
    text = text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}"
    return "".join(c if c.isprintable() or c in "\n\t" else f"U+{ord(c):04X}" for c in text)


def line_of(label: str, texts: Sequence[str], look: str = "") -> TableLine:
    """Returns a line of plain texts."""
    return TableLine(label, [Cell(text) for text in texts], look)


def muted(*names: str) -> list[tuple[str, str]]:
    """Returns table heads, all in the muted colour."""
    return [(name, "muted") for name in names]

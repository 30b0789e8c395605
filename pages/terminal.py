"""Prints a page's tables and sentences in the terminal."""

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pages.blocks import Facts, PageSection, Paragraph, Shares, TextTable
from pages.page import overview
from pages.rollouts import Rollouts
from pages.run_folder import RunFolder

LOOKS = {"warning": "bold red", "note": "dim"}


def show(runs: Sequence[RunFolder], rollouts: Rollouts) -> None:
    """Prints headline, tables and sentences of the page."""
    console, page = Console(highlight=False), overview(runs, rollouts)
    console.print(Text(page["title"], style="bold"))
    for line in page["alert"]:
        console.print(rendered(line))
    console.print(Text(page["lead"]))
    for note in page["notes"]:
        console.print(Text(note, style="dim"))
    show_sections(page["sections"])


def show_sections(sections: Iterable[PageSection]) -> None:
    """Prints what a terminal can show of these sections."""
    console = Console(highlight=False)
    tables = Console(highlight=False, width=10_000)  # as wide as a table, whatever the terminal: no figure is cut off
    for section in sections:
        blocks = [block for block in map(rendered, () if section.folded else section.blocks) if block]
        if blocks:
            console.print(Text(f"\n{section.title}".rstrip(), style="bold cyan"))
            for block in blocks:
                (tables if isinstance(block, Table) else console).print(block)
            console.print(Text(section.note, style="dim"))


def rendered(block: object) -> Table | Text | None:
    """Returns a block for a terminal; None for what needs a page."""
    if isinstance(block, TextTable):
        has_texts = block.look == "keys"
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name in ("", *(name for name, _ in block.heads)):
            table.add_column(Text("\n".join(name.split())), justify="left" if has_texts or not name else "right")
        for line in block.lines:
            cells = [Text(f"{cell.text}\n{cell.small}".rstrip("\n")) for cell in line.cells]
            table.add_row(Text(line.label, style="" if line.cells else "bold"), *cells)
        return table
    if isinstance(block, Paragraph):
        text = " ".join([block.text, f"{block.link_text}." if block.link_text else ""]).strip()
        return Text(text, style=LOOKS.get(block.look, ""))
    if isinstance(block, Shares):
        return Text("; ".join(f"{name} {text}" for name, _, text in block.parts))
    if isinstance(block, Facts):
        return Text("; ".join(f"{name} {text}" for name, text in block.items_of.items()))
    return None

"""Prints a page's tables and a few rollouts in the terminal."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from pages.blocks import Facts, Paragraph, Shares, TextTable, seen
from pages.page import overview
from pages.rollouts import FLAGS, Rollouts
from pages.run_folder import RunFolder

SHOWN = {"i_to_c": 2, "c_to_i": 2, "malformed": 2, "won": 1, "lost": 2, "wrong": 1, "right": 1}  # rollouts of each kind
LONGEST = 600  # characters of one text
LOOKS = {"warning": "bold red", "note": "dim"}
MARKS = {True: ("right", "green"), False: ("wrong", "red")}


def show(runs: Sequence[RunFolder], rollouts: Rollouts) -> None:
    """Prints headline, tables and sentences of the page, then the newest rollouts of each kind."""
    console = Console(highlight=False)
    page = overview(runs, rollouts)
    console.print(Text(page["title"], style="bold"))
    for line in page["alert"]:
        console.print(rendered(line, console.width))
    console.print(Text(page["lead"]))
    for note in page["notes"]:
        console.print(Text(note, style="dim"))
    for section in page["sections"]:
        blocks = [rendered(block, console.width) for block in (() if section.folded else section.blocks)]
        if any(blocks):
            console.print(Text(f"\n{section.title}".rstrip(), style="bold cyan"), *filter(None, blocks), sep="\n")
    for unit, flag in chosen(rollouts):
        moment = rollouts.moments[unit["moment"]]
        console.print(Text(f"\n{flag.replace('_to_', '→')}, {rollouts.runs[moment['run']]}, {moment['label']}", "bold"))
        console.print(Text(seen(rollouts.prompts[unit["prompt"]], LONGEST)))
        for text in unit["body"]["texts"]:
            mark, style = MARKS.get(text.get("match"), ("not judged", "dim"))
            why = f", malformed: {text['malformed']}" if "malformed" in text else ""
            console.print(Text(f"{text['who']}, {mark}{why}", style=style))
            console.print(Text(seen(text["text"], LONGEST)))


def rendered(block: object, width: int) -> Group | Text | None:
    """Returns a block for a terminal of `width` columns; None for what needs a page."""
    if isinstance(block, TextTable):
        return Group(*parts_of(block, width))
    if isinstance(block, Paragraph):
        text = " ".join([block.text, f"{block.link_text}." if block.link_text else ""]).strip()
        return Text(text, style=LOOKS.get(block.look, ""))
    if isinstance(block, Shares):
        return Text("; ".join(f"{name} {text}" for name, _, text in block.parts))
    if isinstance(block, Facts):
        return Text("; ".join(f"{name} {text}" for name, text in block.items_of.items()))
    return None


def parts_of(block: TextTable, width: int, begin: int = 0) -> list[Table]:
    """Splits a table, from the column `begin` on, into parts that fit: numbers are never cut, labels and texts wrap."""
    has_texts = block.look == "keys"
    longest = max((len(line.label) for line in block.lines), default=0)
    for end in range(max(len(block.heads), begin + 1), begin, -1):
        table = Table(box=SIMPLE_HEAD, title=block.title or None, title_justify="left", pad_edge=False)
        most = max(width // 3, min(width // 2, width - 22 * (end - begin) - 2) if has_texts else 0)  # 18 for each value
        table.add_column(overflow="fold", width=min(longest, most) if has_texts else None, max_width=most)
        for name, _ in block.heads[begin:end]:
            head = Text("\n".join(name.split()))
            table.add_column(head, justify="left" if has_texts else "right", overflow="fold", no_wrap=not has_texts)
        for line in block.lines:
            cells = [Text(f"{cell.text}\n{cell.small}".rstrip("\n")) for cell in line.cells[begin:end]]
            table.add_row(Text(line.label, style="" if line.cells else "bold"), *cells)
        if end - begin <= width // 40 if has_texts else Console(width=10_000).measure(table).maximum <= width:
            break
    return [table, *(parts_of(block, width, end) if end < len(block.heads) else ())]


def chosen(rollouts: Rollouts) -> list[tuple[dict, str]]:
    """Returns the newest rollouts of each kind, each once."""
    found, taken = [], set()
    for flag, most in SHOWN.items():
        bit = 1 << FLAGS.index(flag)
        own = [unit for unit in reversed(rollouts.units) if unit["flags"] & bit and unit["group"] not in taken][:most]
        taken |= {unit["group"] for unit in own}
        found += [(unit, flag) for unit in own]
    return found

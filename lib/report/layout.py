"""Lays out a page about runs: its style, headings and tables, and pictures that stand in it without a file."""

import html
import io
import re
from collections.abc import Callable, Iterable

# Placeholders in Matplotlib's pictures, which `as_inline` replaces by CSS variables: the page decides light or dark.
COLOURS = {"ink": "#010101", "muted": "#020202", "grid": "#030303", "one": "#040404", "two": "#050505",
           "good": "#060606", "bad": "#070707"}  # fmt: skip
LOOK = {
    "svg.fonttype": "none", "font.size": 10, "font.family": "sans-serif",
    "text.color": COLOURS["ink"], "axes.edgecolor": COLOURS["grid"], "axes.labelcolor": COLOURS["muted"],
    "xtick.color": COLOURS["grid"], "ytick.color": COLOURS["grid"], "xtick.labelcolor": COLOURS["muted"],
    "ytick.labelcolor": COLOURS["muted"], "grid.color": COLOURS["grid"], "grid.linewidth": 0.7,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    "ytick.major.size": 0, "ytick.minor.size": 0,
}  # fmt: skip


def heading(title: str, text: str) -> str:
    """Returns the top of the page."""
    title, text = html.escape(title), html.escape(text)
    return f"<header><p class=brand>Rematch</p><h1>{title}</h1><p class=lead>{text}</p></header>"


def section(title: str, content: str, note: str = "") -> str:
    """Returns a titled part of the page."""
    return f"<section><h2>{title}</h2>{content}{f'<p class=note>{html.escape(note)}</p>' if note else ''}</section>"


def table(heads: list[tuple[str, str]], lines: list[str], look: str = "rates") -> str:
    """Returns a table of `lines` under `heads`, pairs of a name and its colour."""
    head = "".join(f"<th class={colour}>{html.escape(name)}</th>" for name, colour in heads)
    return (
        f"<div class=wide><table class={look}><thead><tr><th></th>{head}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def table_row(label: str, cells: Iterable[str], look: str = "") -> str:
    """Returns a table row of plain texts."""
    inner = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
    return f"<tr><th{f' class={look}' if look else ''}>{html.escape(label)}</th>{inner}</tr>"


def facts(items: dict[str, str]) -> str:
    """Returns a list of short texts, each under its name."""
    cells = "".join(f"<div><dt>{name}</dt><dd>{html.escape(text)}</dd></div>" for name, text in items.items())
    return f"<dl class=facts>{cells}</dl>"


def page(title: str, body: list[str], damaged: int) -> str:
    """Returns the whole page; `damaged`: the number of damaged log lines."""
    warning = f"<p class=note>{damaged} damaged lines of the logs were skipped.</p>" if damaged else ""
    return (
        f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{html.escape(title)} · Rematch</title>"
        f"<meta name=viewport content='width=device-width, initial-scale=1'><style>{STYLE}</style></head>\n"
        f"<body><main>{''.join(body)}{warning}</main></body></html>\n"
    )


def picture(title: str, plot: Callable[[object], None], stage_starts: Iterable[int], is_wide: bool = False) -> str:
    """Returns curves over steps as inline SVG; `plot` draws them on the axes. `stage_starts`: where stage II begins."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    with matplotlib.rc_context({**LOOK, "svg.hashsalt": title}):
        canvas = Figure(figsize=(9.4, 3.7) if is_wide else (4.6, 2.8), layout="constrained", facecolor="none")
        axes = canvas.add_subplot(facecolor="none")
        axes.grid(axis="y", alpha=0.7)
        axes.set_axisbelow(True)
        axes.margins(x=0.02)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=9 if is_wide else 5, integer=True))
        plot(axes)
        for step in stage_starts:
            axes.axvline(step, color=COLOURS["muted"], linewidth=0.8, linestyle=(0, (3, 3)))
            axes.annotate(
                " stage II", (step, 1), xycoords=("data", "axes fraction"), va="bottom", color=COLOURS["muted"],
                fontsize=9,
            )  # fmt: skip
        file = io.StringIO()
        canvas.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return as_inline(file.getvalue(), title)


def as_inline(svg: str, title: str) -> str:
    """Prepares a picture for inlining in a page: no prolog, no duplicate ids, colours as CSS variables."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", svg)
    svg = re.sub(r' (?:xmlns(?::xlink)?|version|width|height)="[^"]*"', "", svg, count=5)
    for name, colour in COLOURS.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(title)}"', 1)


STYLE = """
:root { color-scheme: light dark; --paper: #fdfcfa; --card: #f5f3ee; --ink: #1d2329; --muted: #69717a; --grid: #d9d6ce;
  --one: #b4690e; --two: #1f5fbf; --good: #1b7f5c; --bad: #b8325a; }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #14171a; --card: #1d2125; --ink: #e6e4df;
  --muted: #98a0a8; --grid: #363c42; --one: #e5a04a; --two: #74a9f7; --good: #55c39a; --bad: #ef7f9f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 3rem 1.25rem 4rem; }
h1 { font-size: 2.1rem; line-height: 1.15; letter-spacing: -.02em; margin: .1rem 0 .7rem; }
h2 { font-size: 1.15rem; margin: 3rem 0 .8rem; }
h4 { font-size: .8rem; font-weight: 500; color: var(--muted); margin: 0 0 .4rem; min-height: 0; }
.brand { margin: 0; color: var(--two); font-weight: 600; letter-spacing: .02em; }
.lead { font-size: 1.1rem; max-width: 46rem; margin: 0; }
.note, figcaption { color: var(--muted); font-size: .875rem; }
.note { max-width: 46rem; margin: .7rem 0 0; }
.facts { display: flex; flex-wrap: wrap; gap: .6rem 2rem; margin: 1.6rem 0 0; }
dt { color: var(--muted); font-size: .8rem; } 
dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .5rem .7rem; border-bottom: 1px solid var(--grid); white-space: nowrap;
  vertical-align: top; }
th { font-weight: 500; } tr > :first-child { text-align: left; padding-left: 0; } tr > :last-child { padding-right: 0; }
thead th, td.n { color: var(--muted); font-size: .875rem; }
thead .one { color: var(--one); } thead .two { color: var(--two); }
.keys td { white-space: normal; overflow-wrap: anywhere; }
td small { display: block; color: var(--muted); font-size: .78rem; }
tr.group th { padding-top: 1.4rem; font-weight: 600; }
.figures { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 2rem 2rem; }
figure { margin: 0; display: flex; flex-direction: column; justify-content: space-between; break-inside: avoid; }
.hero { grid-column: 1 / -1; }
figcaption { margin-bottom: .5rem; }
figcaption b { color: var(--ink); font-weight: 600; display: block; font-size: .95rem; }
svg { width: 100%; height: auto; overflow: visible; } svg text { font-family: system-ui, sans-serif !important; }
.example { background: var(--card); border-radius: .5rem; padding: 1rem 1.2rem; margin-bottom: .9rem;
  break-inside: avoid; }
.example header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .3rem 1.1rem; margin-bottom: .8rem; }
.example header p { margin: 0; color: var(--muted); font-size: .875rem; } .example header b { color: var(--ink); }
.kind { font-size: .8rem; font-weight: 600; } 
.corrected, .kept, .won, .solved { color: var(--good); } .broken, .missed, .lost, .unsolved { color: var(--bad); }
.warning { border-left: 3px solid; padding-left: .7rem; color: var(--bad); font-weight: 600; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1rem 1.6rem; }
pre { margin: 0; font: .85rem/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.attempt { border-left: 3px solid; padding-left: .7rem; margin-bottom: .6rem; } .attempt pre { color: var(--ink); }
.attempt span { font-size: .8rem; } .right { border-color: var(--good); color: var(--good); }
.wrong { border-color: var(--bad); color: var(--bad); }
.config { background: var(--card); border-radius: .5rem; padding: 1rem 1.2rem; columns: 2 22rem; column-gap: 2rem; }
@media (max-width: 46rem) { .figures { grid-template-columns: 1fr; } }
@media print { body { font-size: 10pt; } main { padding: 0; max-width: none; } h2 { break-after: avoid; } }
"""

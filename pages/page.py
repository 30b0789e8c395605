"""Renders pages: sections by templates, with scripts, styles and data inside, so that one file needs no network."""

import base64
import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lib.run.runlog import encode
from pages.alarms import alarms, alert
from pages.blocks import PageSection, anchor_of
from pages.facts import changed_settings, clock, differing_settings, facts_of
from pages.kinds import held_out_loss
from pages.rollouts import Rollouts
from pages.run_folder import RunFolder, kind_of
from pages.sections import (
    correction,
    counterfactuals,
    curves,
    first_picture,
    held_out,
    in_pairs,
    one_after_another,
    scoreboards,
)

HERE = Path(__file__).parent
MOST_BYTES = 13_000_000  # of rollouts in a page, so that it stays below 15 MB
SCRIPTS = (
    "vendor/uPlot.iife.min.js", "vendor/diff.min.js", "charts.js", "texts.js", "answer.js", "rollouts.js", "live.js",
)  # fmt: skip
STYLES = ("vendor/uPlot.min.css", "page.css", "rollouts.css")


def render_runs(runs: Sequence[RunFolder], rollouts: Rollouts, live: bool = False, page: dict | None = None) -> str:
    """Returns the page of runs, `page` in place of their overview; a `live` one asks its server for what is new."""
    kept, blobs = (rollouts, {}) if live else rollouts.within(MOST_BYTES)
    note = ""
    if not live and len(kept.units) < kept.total:
        rest = "transcripts.jsonl has all"  # of a served model
        if any(run.metrics or run.evaluations for run in runs):
            rest = f"python report.py {' '.join(str(run.folder) for run in runs)} --watch shows all"
        note = f"{len(kept.units):,} of {kept.total:,} rollouts are in this file, drawn evenly; {rest}"
    page = page or overview(runs, rollouts)
    return render(live=live, blobs=blobs, note=note, has_rollouts=live or bool(rollouts.units), **page)


def render_overview(runs: Sequence[RunFolder], rollouts: Rollouts) -> str:
    """Returns the part of a live page that is exchanged when something is new."""
    return _environment().get_template("overview.html").render(overview(runs, rollouts))


def render_sections(title: str, lead: str, sections: Sequence[PageSection]) -> str:
    """Returns a page without rollouts."""
    page: dict[str, Any] = {"title": title, "lead": lead, "alert": [], "notes": [], "sections": sections}
    return render(live=False, blobs={}, note="", has_rollouts=False, **page)


def render(**context: Any) -> str:
    """Renders the page. Its own scripts alone may run, and only a live page may ask its server: the policy says so."""
    scripts = [(HERE / "static" / name).read_text(encoding="utf-8") for name in SCRIPTS]
    styles = [(HERE / "static" / name).read_text(encoding="utf-8") for name in STYLES]
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
                      for script in scripts)  # fmt: skip
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashes}"
    policy += "; connect-src 'self'" if context["live"] else ""
    safe = {"scripts": list(map(Markup, scripts)), "styles": list(map(Markup, styles))}
    return _environment().get_template("page.html").render(policy=policy, **safe, **context)


def overview(runs: Sequence[RunFolder], rollouts: Rollouts) -> dict[str, Any]:
    """Returns title, alert, headline, notes and sections of a page; the first section completes the first screen."""
    damaged = sum(run.damaged for run in runs)
    notes = [note if len(runs) == 1 else f"{run.name}: {note}" for run in runs for note in run.notes]
    if damaged:
        notes.append(f"{damaged} damaged lines of the logs were skipped.")
    if len(runs) > 1:
        return several_runs(runs, rollouts) | {"notes": notes}
    run = runs[0]
    kind = run.kind
    rows = run.milestones
    told = kind.headline(rows) if rows else held_out_loss(run.evaluations) or f"{kind.nothing}: {run.status}."
    tables = [held_out(kind, [(None, run.table)], run.is_free, kind.details(rows))] if rows else []
    first = PageSection("", [*first_picture(runs), *correction(run, rollouts), facts_of(run)])
    sections = [first, *alarms(runs, rollouts), *tables, *rest(runs), *changed_settings(run)]
    page = {"title": run.name, "alert": alert(run, rollouts, sections), "lead": told}
    return page | {"notes": notes, "sections": sections}


def several_runs(runs: Sequence[RunFolder], rollouts: Rollouts) -> dict[str, Any]:
    """Returns title, headline and sections of several runs: all of them, and what differs in their configs."""
    kind = kind_of([row for run in runs for row in run.metrics + run.evaluations])
    runs = [replace(run, kind=kind) for run in runs]
    sections = [PageSection("", first_picture(runs)), *alarms(runs, rollouts)]
    groups = [(f"{run.name}, seed {run.config.get('seed', '?')}", run.table) for run in runs if run.table]
    if groups:
        sections.append(held_out(kind, groups, all(run.is_free for run in runs)))
    sections += [*rest(runs), differing_settings(runs)]
    lead = ", ".join(run.name for run in runs)
    return {"title": f"{len(runs)} runs", "alert": [], "lead": lead, "sections": sections}


def rest(runs: Sequence[RunFolder]) -> list[PageSection]:
    """Returns the sections that one run and several have alike."""
    parts = (in_pairs, one_after_another, counterfactuals, scoreboards, curves, clock)
    return [section for part in parts for section in part(runs)]


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"as_data": as_data, "anchor": anchor_of}
    return environment


def as_data(tree: Any) -> Markup:
    """Returns a tree as JSON that may stand in a script element: no tag can begin in it."""
    return Markup(json.dumps(json.loads(encode({"data": tree}))["data"]).replace("<", "\\u003c"))

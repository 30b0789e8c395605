"""Runs the right programs of `tests/right/` in the sandbox and says which are refused. Needs Python alone, and numpy.

    python tests/honest.py                      # on the highest rung that holds here
    python tests/honest.py --rung R2 --only numpy

They are programs of the kinds that models write. A file of them, as an editor sees it:

    # === name | stateful entry_points=Deck,deal refused=opaque
    the program
    # --- test
    a test; there may be several
    # --- stdin
    an input, and behind it
    # --- stdout
    what is to be printed then
    # --- setup
    the tests' set-up

`refused` is the verdict of one that the sandbox cannot judge right; these stand in the table of docs/programs.md.
"""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from lib.sandbox.__main__ import defined_names
from lib.sandbox.isolation import try_rungs
from lib.sandbox.pool import Sandbox
from lib.sandbox.worker import Program, ProgramVerdict

FOLDER = Path(__file__).parent / "right"
LIMIT = 10.0  # seconds: what is asked here is whether, not how fast


@dataclass(frozen=True)
class Right:
    """A right program, or with `refused` one that gets this verdict."""

    name: str
    program: Program
    refused: str = ""

    @property
    def due(self) -> str:
        """The verdict that it gets, on every rung."""
        return self.refused or "pass"


def corpus(folder: Path = FOLDER) -> list[Right]:
    """All of them."""
    return [each for path in sorted(folder.glob("*.py")) for each in read(path)]


def read(path: Path) -> Iterator[Right]:
    """The programs of one file."""
    for part in ("\n" + path.read_text(encoding="utf-8")).split("\n# === ")[1:]:
        head, _, body = part.partition("\n")
        name, _, words = head.partition("|")
        source, *sections = body.split("\n# --- ")
        found: dict[str, list[str]] = {}
        for section in sections:
            kind, _, text = section.partition("\n")
            found.setdefault(kind.strip(), []).append(text.rstrip("\n"))
        options = dict(word.partition("=")[::2] for word in words.split())
        entry_points = options.get("entry_points", "")
        yield Right(
            f"{path.stem}/{name.strip()}",
            Program(
                source + "\n",
                tests=tuple(found.get("test", ())),
                stdio=tuple(zip(found.get("stdin", ()), found.get("stdout", ()), strict=True)),
                setup_code="\n".join(found.get("setup", ())),
                entry_points=tuple(entry_points.split(",")) if entry_points else defined_names(source),
                stateful="stateful" in options,
                timeout_s=float(options.get("timeout_s", LIMIT)),
            ),
            options.get("refused", ""),
        )


def unexpected(each: Right, verdict: ProgramVerdict) -> str:
    """What is odd about a verdict, "" where it is due."""
    names = {test.verdict for test in verdict.tests}
    if names == {each.due}:
        return ""
    odd = next(test for test in verdict.tests if test.verdict != each.due) if names else None
    return f"{each.name}: {odd.verdict}, {odd.detail}" if odd else f"{each.name}: no test"


def main() -> int:
    """Judges all, prints those whose verdict is not what is due. 1 if there are any."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rung", help="the highest rung to take (default: R4)")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--only", default="", help="programs whose name contains this")
    args = options.parse_args()
    rung = try_rungs(args.rung)[-1].rung
    chosen = [each for each in corpus() if args.only in each.name]
    with contextlib.closing(Sandbox(args.workers, rung=rung.name, numpy=True)) as sandbox:
        verdicts = sandbox.judge([each.program for each in chosen])
    odd = [text for each, verdict in zip(chosen, verdicts, strict=True) if (text := unexpected(each, verdict))]
    print("\n".join(odd))
    refused = sum(each.due != "pass" for each in chosen)
    print(f"{rung.name}: {len(chosen)} programs, {refused} of them known to be refused, {len(odd)} odd")
    return int(bool(odd))


if __name__ == "__main__":
    sys.exit(main())

"""Draws the two pictures of the documents from a run of the demo.

make demo && .venv/bin/python docs/picture.py outputs/tiny-sums docs/page.png          the first screen of its page
             .venv/bin/python docs/picture.py outputs/tiny-sums docs/correction.svg    one corrected answer, animated

The page is drawn by headless Chromium. The answer is the first to a held-out question on which the policy samples the
same wrong attempt 1 before and after training, keeps it at attempt 2 before, and corrects it after.
"""

import base64
import json
import re
import subprocess
import sys
import tempfile
from itertools import accumulate
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from helpers.browser import PROGRAM, Browser

TEXT = re.compile(r"<think>(.*)</think><answer>(.*)</answer>")
SECONDS = 16  # of one round of the animation
FIRST = 11  # the second of a round that one sees first: everything is there, also where nothing moves
SHOWN = {"sums": 1.0, "slip": 4.2, "user": 5.4, "before": 6.6, "after": 8.4}  # seconds at which a part appears
WIDTH, LEFT, STEP = 680, 176, 56  # of the picture; where the columns of numbers begin, and how far apart they are

STYLE = """
svg { --page: #ffffff; --ink: #1f2328; --soft: #57606a; --line: #8c959f; --bad: #b42318; --good: #116329; }
@media (prefers-color-scheme: dark) {
  svg { --page: #0d1117; --ink: #e6edf3; --soft: #9da7b3; --line: #6e7681; --bad: #ff8f85; --good: #6fdd8b; }
}
text { font: 22px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--ink); }
.label { font: 19px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--soft); }
.head { font: 600 20px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
.big { font-size: 27px; font-weight: 600; }
.bad { fill: var(--bad); font-weight: 600; }
.good { fill: var(--good); font-weight: 600; }
.card { fill: var(--page); stroke: var(--line); }
.dashed { fill: none; stroke: var(--bad); stroke-width: 2; stroke-dasharray: 6 4; }
.solid { fill: none; stroke: var(--good); stroke-width: 3; }
.middle { text-anchor: middle; }
@media (prefers-reduced-motion: reduce) { g { animation: none !important; } }
"""


def draw_page(run: Path, picture: Path) -> None:
    """Writes the first screen of the run's page as a PNG."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a browser's last files may come late
        page = Path(folder, "report.html")
        subprocess.run([sys.executable, ROOT / "report.py", run, "--out", page], check=True)
        browser = Browser(folder)
        try:
            browser.look()
            browser.call("Emulation.setScrollbarsHidden", hidden=True)
            browser.open(page.as_uri())
            drawn = browser.call("Page.captureScreenshot", format="png")
        finally:
            browser.close()
    picture.write_bytes(base64.b64decode(drawn["data"]))


def read_rows(path: Path) -> list[dict]:
    """Returns the rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def corrected_answer(rows: list[dict]) -> tuple[dict, dict]:
    """Returns the rows before and after training of the first question that shows a correction."""
    before, after = (
        {row["prompt"]: row for row in rows if row["when"] == when and row["temperature"] == 1.0}
        for when in ("pretrain", "after_stage2")
    )
    for prompt, row in before.items():
        later = after[prompt]
        is_kept = not row["match1"] and not row["match2"] and TEXT.match(row["attempt2"])
        if is_kept and later["attempt1"] == row["attempt1"] and later["match2"]:
            return row, later
    raise SystemExit("no question of this run has the same wrong attempt 1 before and after, corrected only after")


def right_share(evaluations: list[dict], when: str) -> str:
    """Returns how many sampled second attempts are right at a moment, in words."""
    row = next(row for row in evaluations if row["when"] == when and row["temperature"] == 1.0)
    return f"{round(row['acc_attempt2'] * row['n']):,} of {row['n']:,}"


def part(start: float, body: str) -> str:
    """Returns a group that appears after so many seconds and stays to the end of the round."""
    name = f"at{round(start * 10)}"
    shown = 100 * start / SECONDS
    steps = f"0%, {shown:.1f}% {{ opacity: 0 }} {shown + 2:.1f}%, 96% {{ opacity: 1 }} to {{ opacity: 0 }}"
    frames = f"@keyframes {name} {{ {steps} }}"
    return f'<style>{frames}</style>\n<g style="animation: {name} {SECONDS}s -{FIRST}s infinite">{body}</g>\n'


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Returns a line of text."""
    return f'<text x="{x:g}" y="{y}" class="{kind}">{words}</text>'


def panel(x: int, head: str, row: dict, share: str, is_right: bool) -> str:
    """Returns the box of attempt 2 at one moment."""
    step, answer = TEXT.match(row["attempt2"]).groups()
    kind, frame, verdict = ("good", "solid", "✓ right") if is_right else ("bad", "dashed", "✗ wrong")
    return "".join([
        f'<rect x="{x}" y="226" width="308" height="132" rx="10" class="{frame}"/>',
        text(x + 18, 256, head, "head"),
        text(x + 18, 298, f"{step} → {answer}", "big"),
        text(x + 180, 298, verdict, kind),
        text(x + 18, 338, f"right: {share} questions", "label"),
    ])  # fmt: skip


def correction(before: dict, after: dict, shares: tuple[str, str], steps: int) -> str:
    """Returns the animated picture of one corrected answer."""
    numbers = [int(number) for number in before["prompt"].split("+")]
    thought, answer = TEXT.match(before["attempt1"]).groups()
    sums = [int(number) for number in thought.split()]
    expected = list(accumulate(numbers))[1:]
    slip = next(i for i, number in enumerate(sums) if number != expected[i])
    columns = [LEFT + STEP * i for i in range(len(numbers))]
    last, number = ([numbers[0], *sums][slip], numbers[slip + 1])
    parts = [
        text(24, 50, "add up", "label"),
        *(text(x, 50, f"{'+' if i else ''}{numbers[i]}", "middle") for i, x in enumerate(columns)),
        text(24, 98, "attempt 1", "label"),
    ]
    for i, x in enumerate(columns[1:]):
        parts.append(part(SHOWN["sums"] + 0.5 * i, text(x, 98, f"{sums[i]}", "middle")))
    x = columns[slip + 1]
    parts += [
        part(SHOWN["sums"] + 0.5 * len(sums), text(columns[-1] + 36, 98, f"→ {answer}")),
        part(SHOWN["slip"], "".join([
            f'<rect x="{x - 24}" y="74" width="48" height="34" rx="6" class="dashed"/>',
            text(x, 136, f"{last} + {number} is {last + number}, not {sums[slip]}", "label middle"),
            text(columns[-1] + 106, 98, "✗ wrong", "bad"),
        ])),
        part(SHOWN["user"], text(24, 190, "then we say", "label") + text(LEFT - 24, 190, "“Correct any error.”")),
        part(SHOWN["before"], panel(24, "before training", before, shares[0], is_right=False)),
        part(SHOWN["after"], panel(348, f"after {steps} steps of SCoRe", after, shares[1], is_right=True)),
    ]  # fmt: skip
    alt = (
        f"{before['prompt']}: attempt 1 answers {answer}, because it takes {last} + {number} for {sums[slip]}. "
        f"Asked to correct any error, the model keeps {answer} before training and answers {after['target']} after it."
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 382" role="img" aria-label="{alt}">\n'
        f"<title>{alt}</title>\n<style>{STYLE}</style>\n"
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="380" rx="14" class="card"/>\n' + "\n".join(parts) + "</svg>\n"
    )


def main() -> int:
    """Writes the picture that the command line asks for."""
    if len(sys.argv) != 3 or Path(sys.argv[2]).suffix not in (".png", ".svg"):
        print(__doc__)
        return 2
    run, picture = map(Path, sys.argv[1:])
    if picture.suffix == ".png":
        if PROGRAM is None:
            print("no Chromium here: install Debian's package chromium")
            return 2
        draw_page(run, picture)
    else:
        evaluations = read_rows(run / "evaluations.jsonl")
        shares = tuple(right_share(evaluations, when) for when in ("pretrain", "after_stage2"))
        before, after = corrected_answer(read_rows(run / "generations.jsonl"))
        train = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["train"]
        steps = train["stage1_steps"] + train["stage2_steps"]
        picture.write_text(correction(before, after, shares, steps), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

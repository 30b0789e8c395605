"""A page to look at: what a run learned, how, at what price, and every text of it. One HTML file without a network.

    python report.py outputs/tiny-sums                        # writes outputs/tiny-sums/report.html
    python report.py outputs/tiny-sums --watch                # serves it on this machine, and what is new as it trains
    python report.py outputs/tiny-sums --text                 # tables in the terminal
    python report.py outputs/tiny-sums outputs/tiny-sums-1    # side by side, in pairs: outputs/report.html
    python report.py outputs/a outputs/b --out compare.html
    python report.py outputs/self-check-NAME                  # of evaluate.py --url, or several such folders

It reads config.yaml, metrics.jsonl, evaluations.jsonl, alarms.jsonl, generations.jsonl and, where they are,
swaps.jsonl, scoreboard.json and machine.json; a run that is still going, or that was cut off, is shown up to
there. Training never reads what is written here. --out replaces pages alone.

Exit codes: 0 finished, 2 no run, or a file in the page's place, 74 disk.
"""

if __name__ == "__main__":
    from lib.core.errors import end_at_ctrl_c

    end_at_ctrl_c()  # the imports below take a second

import argparse
import csv
from pathlib import Path

from lib.core.errors import FINISHED, ConfigError, run_script
from lib.run.runlog import storage_errors
from pages import terminal
from pages.live import HOST, serve
from pages.page import overview, render_runs
from pages.rollouts import rollouts_of
from pages.run_folder import read_run
from pages.served import CARD, overview_of, read_card, read_served

ROLLOUTS = "rollouts.jsonl"  # of collect_rollouts.py, which trains nothing
HEAD_BYTES = 65_536  # of a page, with its title
FILES = ("config.yaml", "metrics.jsonl", "evaluations.jsonl")  # a run has one of them at least


def main() -> int:
    """Reads the runs; writes their page and prints its path, or serves it, or prints what is in it."""
    args = command_line()
    if args.watch:
        return watch(args.runs, args.port)
    is_served = (args.runs[0] / CARD).exists()
    runs = [(read_served if is_served else read_run)(folder) for folder in args.runs]
    for run in runs if args.csv else ():
        evaluations = sorted((*run.evaluations, *run.greedy), key=lambda row: row.get("time", ""))
        for name, rows in (("metrics", run.metrics), ("evaluations", evaluations)):
            write_csv(run.folder / f"{name}.csv", rows)
            print(f"table: {run.folder / name}.csv")
    if args.text:
        terminal.show(runs, rollouts_of(runs))
        return FINISHED
    target = args.out or (args.runs[0] if len(runs) == 1 else args.runs[0].resolve().parent) / "report.html"
    rollouts = rollouts_of(runs)
    cards = list(map(read_card, args.runs)) if is_served else []
    if len({card["model"] for card in cards}) < len(cards):  # one name before and after training
        cards = [card | {"model": folder.name} for card, folder in zip(cards, args.runs, strict=True)]
    page = overview_of(cards, rollouts) if cards else overview(runs, rollouts)
    write_page(target, render_runs(runs, rollouts, page=page))
    folder = args.runs[0]
    if len(runs) == 1:
        print(page["lead"])
    print(f"report: {target}")
    if len(runs) == 1 and any(folder.glob("stage*/MANIFEST.json")):
        print(f"try next: python chat.py {folder}, python export.py {folder} --to merged")
    return FINISHED


def command_line() -> argparse.Namespace:
    """Returns the options. Raises ConfigError for a folder that holds no run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run directories, outputs/<run_name>")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--out", type=Path, metavar="FILE", help="the page (default: report.html in the run's folder)")
    how.add_argument("--watch", action="store_true", help="serve the page on this machine until Ctrl-C")
    how.add_argument("--text", action="store_true", help="print tables, write no page")
    parser.add_argument(
        "--port", type=_port, default=8765, metavar="N", help="of --watch; 0: any that is free (default: %(default)s)"
    )
    parser.add_argument(
        "--csv", action="store_true", help="write metrics.csv and evaluations.csv too, into the folders of the runs"
    )
    args = parser.parse_args()
    if args.watch and args.csv:
        raise ConfigError("--csv: with --watch no tables are written; give one of the two")
    served = [folder for folder in args.runs if (folder / CARD).exists()]
    if served and (len(served) < len(args.runs) or args.watch or args.text or args.csv):
        raise ConfigError(
            f"{served[0]}: a folder of evaluate.py --url has a page alone or with others of its kind, and its numbers "
            f"are in {CARD}: give such folders, and none of --watch, --text, --csv"
        )
    for folder in args.runs:
        if (folder / ROLLOUTS).exists():
            raise ConfigError(
                f"{folder} is a folder of collect_rollouts.py, which has no page: read {ROLLOUTS} and selected.jsonl "
                "there (docs/rollouts.md), or give the folder of a run that was trained on them"
            )
        if not served and not any((folder / name).exists() for name in FILES):
            raise ConfigError(f"{folder} holds no {' or '.join(FILES)}: give the folder of a run")
    return args


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"got '{text}', expected 0 to 65535")
    return int(text)


def watch(folders: list[Path], port: int) -> int:
    """Serves the page until Ctrl-C."""
    with serve(folders, port) as server:
        print(f"watching {', '.join(map(str, folders))}: http://{HOST}:{server.server_port}/ (Ctrl-C ends)", flush=True)
        server.serve_forever()
    return FINISHED


def write_page(target: Path, html: str) -> None:
    """Writes the page. Raises ConfigError instead of replacing a file that is no page, StorageError if it cannot."""
    with storage_errors(target, "start again, or give another file with --out"):
        if target.is_file() and target.stat().st_size and not is_page(target):
            raise ConfigError(
                f"{target}: this file is no page of Rematch, so it is not replaced: move it away, or give another file "
                "with --out"
            )
        target.write_text(html, encoding="utf-8", errors="backslashreplace")


def is_page(path: Path) -> bool:
    """True if the file begins like a page, of this version or an earlier one."""
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    return head.startswith(b"<!doctype html>") and "· Rematch</title>".encode() in head


def write_csv(path: Path, rows: list[dict]) -> None:
    """Writes rows as a table with a column for every key; the ends of an interval get columns of their own."""
    flat = []
    for row in rows:
        cells: dict[str, object] = {}
        for key, value in row.items():
            is_interval = key.endswith("_ci95") and isinstance(value, list) and len(value) == 2
            cells |= {f"{key}_low": value[0], f"{key}_high": value[1]} if is_interval else {key: value}
        flat.append({key: value for key, value in cells.items() if not isinstance(value, list | dict)})
    with storage_errors(path, "start again"), open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, dict.fromkeys(key for row in flat for key in row))
        table.writeheader()
        table.writerows(flat)


if __name__ == "__main__":
    run_script(main)

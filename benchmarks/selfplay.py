"""Measures what an opponent and hints are worth on the tiny programming task: variants, some seeds, one table.

    python data/build_tiny_code.py && python benchmarks/selfplay.py           # half an hour on two cores
    python benchmarks/selfplay.py --variants none win-start --seeds 0 --steps 20    # a part of it

Every run starts from the base of its seed (configs/tiny_code_base.yaml), which is built once. The teacher is a tiny
model (configs/tiny_code_teacher.yaml) behind tests/helpers/server.py. A value is the mean over seeds of pass@1 on
held-out tasks, sampled and, at the end, greedy, with Student's interval over seeds, beside the lowest well-formed share
of all evaluations; what is there already under --out is not run again.
"""

import argparse
import contextlib
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from helpers.server import serve
from rich.console import Console
from rich.table import Table

from lib.core.errors import run_script
from lib.core.stats import mean_interval
from lib.run.runlog import read_jsonl

START = "opponent.snapshots.every_steps=0"
POOL = "opponent.snapshots.every_steps=5"
DISTILLED = ("opponent=null", "teacher.hint.train=distill", "distill.itself={}")
VARIANTS = {  # name: what it changes in configs/tiny_code.yaml
    "none": ("opponent=null",),
    "additive-start": (START, "opponent.use=additive"),
    "win-start": (START, "opponent.use=win"),
    "win-snapshots": (POOL, "opponent.use=win"),
    "curriculum-start": (START, "curriculum.weighting={}"),
    "curriculum-snapshots": (POOL, "curriculum.weighting={}"),
    "hints-collect": ("opponent=null", "teacher.hint.train=collect"),
    "hints-on-policy": ("opponent=null", "teacher.hint.train=on_policy"),
    "hints-off-policy": ("opponent=null", "teacher.hint.train=off_policy"),
    "hints-distill": DISTILLED,
    "hints-distill-forward": (*DISTILLED, "distill.direction=forward"),
}
AGAIN = "hints-then-sft"  # the base learns from the rows of hints-collect, and the run is repeated
TEACHER = ("teacher.hint.neither=1", "teacher.hint.opponent_only=1", "teacher.hint.hint_request='{question}'",
           "teacher.temperature=0", "teacher.max_new_tokens=20")  # fmt: skip


def main() -> int:
    """Runs what is missing, and prints the table."""
    args = command_line()
    for name, seed in [("teacher", 0), *((f"base-{seed}", seed) for seed in args.seeds)]:
        train("sft_train.py", f"configs/tiny_code_{name.partition('-')[0]}.yaml", args.out / name, seed)
    with serve(args.out / "teacher" / "final") as url:
        for name in args.variants:
            for seed in args.seeds:
                run_variant(name, seed, url, args)
    show(args)
    return 0


def command_line() -> argparse.Namespace:
    """Returns the options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*VARIANTS, AGAIN]
    options.add_argument("--variants", nargs="+", choices=names, default=names, metavar="NAME", help="; ".join(names))
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options.add_argument("--steps", type=int, default=40)
    options.add_argument("--every", type=int, default=10, help="steps between two evaluations")
    options.add_argument("--out", type=Path, default=ROOT / "outputs" / "selfplay-variants", metavar="DIR")
    return options.parse_args()


def run_variant(name: str, seed: int, url: str, args: argparse.Namespace) -> None:
    """Runs one variant for one seed, and before it what it needs."""
    base = args.out / f"base-{seed}"
    changes = [f"train.steps={args.steps}", f"eval.every_steps={args.every}", "eval.max_examples=500",
               "eval.samples_per_prompt=2", "eval.greedy_too=true"]  # fmt: skip
    if name == AGAIN:
        collected = folder(args, "hints-collect", seed)
        run_variant("hints-collect", seed, url, args)
        taught = args.out / f"taught-{seed}"
        rows = f"dataset.name={collected / 'sft.jsonl'}"
        train("sft_train.py", "configs/tiny_code_base.yaml", taught, seed, "model.from_scratch=null",
              f"model.name={base / 'final'}", rows, "train.steps=60", "train.shuffle=true",
              "optimizer.learning_rate=2e-3")  # fmt: skip
        base, name = taught, "none"
        target = folder(args, AGAIN, seed)
    else:
        target = folder(args, name, seed)
    if name.startswith("hints"):
        changes += [f"servers.base.base_url={url}", "servers.base.model=final", "teacher.server=base", *TEACHER]
    changes += [f"model.name={base / 'final'}", *VARIANTS[name]]
    train("rl_train_gspo_selfplay.py", "configs/tiny_code.yaml", target, seed, *changes)


def folder(args: argparse.Namespace, name: str, seed: int) -> Path:
    """Returns the folder of a run."""
    return args.out / f"{name}-{seed}"


def train(script: str, config: str, target: Path, seed: int, *changes: str) -> None:
    """Runs a script, unless its result is there already."""
    if (target / "final").exists() or (target / "stage1" / "adapter_config.json").exists():
        return
    started = time.monotonic()
    command = [sys.executable, ROOT / script, "--config", ROOT / config, "--resume", f"output_dir={target.parent}",
               f"run_name={target.name}", f"seed={seed}", *changes]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{target}: {done.stderr[-2000:]}")
    print(f"{target.name}: {time.monotonic() - started:.0f} s", flush=True)


def show(args: argparse.Namespace) -> None:
    """Prints pass@1 before, during and after training, greedy after it, and how many retries were right."""
    moments = [*range(0, args.steps, args.every), args.steps]
    table = Table(
        title=f"held-out pass@1, mean of seeds {', '.join(map(str, args.seeds))}; in brackets 95 % over seeds"
    )
    for column in ("", *(f"step {moment}" for moment in moments), "greedy", "well-formed", "retries right"):
        table.add_column(column, justify="left" if not column else "right")
    for name in args.variants:
        runs = [read_jsonl(folder(args, name, seed) / "evaluations.jsonl")[0] for seed in args.seeds]
        rows = [row for run in runs for row in run]
        cells = [told(rows, moment, greedy=False) for moment in moments[:-1]]
        cells += [told(rows, moments[-1], greedy, with_interval=True) for greedy in (False, True)]
        table.add_row(name, *cells, f"{min(row['well_formed'] for row in rows):.3f}", retries(args, name))
    Console(width=180).print(table)


def told(rows: list[dict], moment: int, greedy: bool, with_interval: bool = False) -> str:
    """Returns the mean accuracy after a step, of greedy or of sampled evaluations; "" where there are none."""
    values = [row["acc"] for row in rows if row["step"] == moment and (row["temperature"] == 0) == greedy]
    if not values:
        return ""
    return f"{fmean(values):.3f}" + (f" {interval(values)}" if with_interval else "")


def interval(values: list[float]) -> str:
    """Formats the interval as `[0.790 0.820]`; empty for fewer than two seeds."""
    low, high = mean_interval(values)
    return f"[{low:.3f} {high:.3f}]" if low == low else ""


def retries(args: argparse.Namespace, name: str) -> str:
    """Formats the share of answers under a hint that were right, in the first and the second half of the runs."""
    shares = []
    for seed in args.seeds:
        rows = read_jsonl(folder(args, name, seed) / "metrics.jsonl")[0]
        with contextlib.suppress(KeyError):
            half, last = rows[len(rows) // 2 - 1], rows[-1]
            early = half["total/retries_right"], half["total/retries"]
            late = last["total/retries_right"] - early[0], last["total/retries"] - early[1]
            if early[1] and late[1]:
                shares.append((early[0] / early[1], late[0] / late[1]))
    return " -> ".join(f"{fmean(side):.2f}" for side in zip(*shares, strict=True)) if shares else ""


if __name__ == "__main__":
    run_script(main)

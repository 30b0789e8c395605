"""Runs `--smoke 8` of every config that ships, with one real model in place of its own, and prints a table.

    python data/get_smollm2.py && python benchmarks/smoke.py        # SmolLM2-135M-Instruct; half an hour on two cores
    python benchmarks/smoke.py --only arithmetic selfplay_code      # some configs
    python benchmarks/smoke.py --model some/folder --dtype bfloat16

Nothing is downloaded. The table says what stands in for what a fresh clone lacks: the model for bases that other
commands make, for servers and for teachers; for rows of the Hub, and for programs that a server would write, 40 rows
with the same columns; room for more tokens where a config is made for a tokenizer of characters. Data that a builder
makes are built first. outputs/smoke/NAME.txt has what each run printed.

Exit codes: 0 all ended well, 1 some did not.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import yaml
from rich.console import Console
from rich.table import Table

from data.builders import write_rows

CONFIGS = ROOT / "configs"
BUILT = ROOT / "data" / "generated"
BUILDERS = {  # folder -> command that makes it
    "bags": "build_bags.py", "tiny-arithmetic": "build_tiny_arithmetic.py", "tiny-code": "build_tiny_code.py",
    "tiny-sums": "build_tiny_sums.py", "speedrun": "build_tiny_sums.py", "rush-hour": "build_rush_hour.py",
    "tiny-rush": "build_rush_hour.py --tiny", "tiny-code-tests": "build_tiny_code.py --public",
}  # fmt: skip
SUMS = [(f"A box holds {n} pens, another {n + 3}. How many are there?", str(2 * n + 3)) for n in range(11, 51)]
HUB = {  # rows in the form of the Hub's
    "openai/gsm8k": [{"question": text, "answer": f"Add them up.\n#### {total}"} for text, total in SUMS],
    "Sebasdi/math_final_answer": [{"problem": text, "final_answer_solution": total} for text, total in SUMS],
}  # fmt: skip
PROGRAMS = [  # as collect_rollouts.py selects them
    {
        "match": True,
        "messages": [{"role": "user", "content": text}, {"role": "assistant", "content": f"```python\n{total}\n```"}],
    }
    for text, total in SUMS
]


ROOM = (  # section, key, tokens at least
    ("model", "max_seq_length", 512), ("generation", "max_prompt_length", 128), ("train", "max_length", 512),
    ("generation", "max_prompt_length_attempt1", 128), ("generation", "max_prompt_length_attempt2", 256),
)  # fmt: skip


def main() -> int:
    """Runs every config in turn, and prints what came of it."""
    args = command_line()
    names = args.only or [path.stem for path in sorted(CONFIGS.glob("*.yaml")) if not path.stem.startswith("sweep_")]
    if "smollm2_score" in names:  # needs the adapter of the other
        names.sort(key=lambda name: name == "smollm2_score")
    for folder, command in BUILDERS.items():
        if not (BUILT / folder).exists():
            script, *options = command.split()
            subprocess.run([sys.executable, f"data/{script}", "--out", BUILT / folder, *options], cwd=ROOT, check=True)
    table = Table("config", "script", "in place of its own", "ended", "minutes", title=f"--smoke 8, {args.model}")
    failed = 0
    for name in names:
        script, overrides, replaced = prepared(name, args.model)
        code, seconds = run(name, script, [*overrides, *args.overrides])
        failed += code != 0
        table.add_row(name, script, ", ".join(replaced), "well" if code == 0 else f"code {code}", f"{seconds / 60:.1f}")
        print(f"{name}: {'well' if code == 0 else f'exit code {code}'} after {seconds:.0f} s", flush=True)
    Console(width=150).print(table)
    return int(failed > 0)


def command_line() -> argparse.Namespace:
    """Returns the options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", default="data/generated/smollm2", metavar="DIR", help="default: %(default)s")
    options.add_argument("--only", nargs="+", metavar="NAME", help="configs by name, without .yaml")
    options.add_argument("overrides", nargs="*", metavar="key=value", help="for all of them")
    return options.parse_args()


def prepared(name: str, model: str) -> tuple[str, list[str], list[str]]:
    """Returns the script of a config, overrides with which it runs on this machine, and what they replace."""
    text = (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8")
    tree = yaml.safe_load(text)
    script = re.findall(r"python (\w+\.py) --config", text.splitlines()[0])[-1]
    overrides, replaced = [f"model.name={model}", "model.load_in_4bit=false"], ["model"]
    if script == "collect_rollouts.py":
        overrides.pop()
    if "endpoint" in tree:
        overrides, replaced = ["endpoint=null", f"model={{name: {model}, max_seq_length: 8192}}"], ["server"]
    elif "from_scratch" in tree["model"]:
        overrides += ["model.from_scratch=null", "model.chat_template=''"]
    if tree["model" if "model" in tree else "endpoint"].get("adapter"):
        overrides.append("model.adapter=outputs/smollm2-base-smoke/final")
    if "distill" in tree:
        overrides += [f"distill.model.name={model}", "distill.model.adapter=null"]
        replaced.append("teacher")
    for key, source in sources(tree["dataset"]):
        rows = HUB.get(source["name"], PROGRAMS if source["name"].endswith("selected.jsonl") else None)
        if rows:
            path = BUILT / "smoke" / f"{name}{key.replace('.', '-')}.jsonl"
            write_rows(path, rows)
            overrides.append(f"{key}.name={path}")
            overrides += [f"{key}.{at}=null" for at in ("config_name", "split") if at in source]
            replaced.append("rows")
    room = with_room(tree)
    return script, overrides + room, replaced + ["room"] * bool(room)


def with_room(tree: dict[str, Any]) -> list[str]:
    """Returns overrides that give a language model's chats the room that a tokenizer of characters does not need."""
    return [
        f"{section}.{key}={least}"
        for section, key, least in ROOM
        if section in tree and 0 < tree[section].get(key, 0) < least
    ]


def sources(section: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Returns each place of a config that names rows."""
    parts = section.get("mixture", {})
    return [(f"dataset.mixture.{name}", part) for name, part in parts.items()] if parts else [("dataset", section)]


def run(name: str, script: str, overrides: list[str]) -> tuple[int, float]:
    """Runs a smoke run, without a hub; returns its exit code and seconds."""
    said = ROOT / "outputs" / "smoke" / f"{name}.txt"
    said.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, script, "--config", f"configs/{name}.yaml", "--smoke", "8", *overrides]
    start = time.monotonic()
    with said.open("w") as output:
        code = subprocess.run(
            command, cwd=ROOT, env=os.environ | {"HF_HUB_OFFLINE": "1"}, stdout=output, stderr=subprocess.STDOUT
        ).returncode
    return code, time.monotonic() - start


if __name__ == "__main__":
    sys.exit(main())

"""Records what the scripts make, in small fixed runs, and compares it with what they made at another commit.

    python tests/behaviour.py /tmp/before                        # at the one
    python tests/behaviour.py /tmp/after --like /tmp/before      # at the other; exit status 1 where something differs

For a change of the code's structure, which must not change what is computed. Compared are every row of every run's
logs but for times, every tensor and every other file of its checkpoints and adapters: to the last bit, and where that
differs, with the largest difference. The same machine and the same number of threads belong to it.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).parents[1]
TIMES = re.compile(r"seconds.*|time|tokens_per_second|.*_s|cost.*")
# times, paths, versions
LEFT_OUT = re.compile(r"MANIFEST\.json|machine\.json|run\.log|\.lock|config\.yaml|README\.md|.*\.html")
SMALL = ("checkpoint_every=2", "keep_checkpoints=9")
SCORE = ("stage1_steps=4", "stage2_steps=4", "stage1_batch_size=6", "stage2_batch_size=6", *SMALL)
PLAY = ("steps=4", "batch_size=6", "group_size=4", *SMALL)
EVAL = ("eval.max_examples=24", "eval.step_examples=12", "eval.selection_examples=12", "eval.every_steps=2")
ADAPTED = ("model.from_scratch=null", "model.chat_template=", "model.adapters.lora={r: 8, alpha: 8}")


def commands(out: Path) -> Iterator[list[str]]:
    """Every command, as it would be typed."""

    def train(script: str, config: str, name: str, *overrides: str) -> list[str]:
        where = f"output_dir={out}", f"run_name={name}"
        return [script, "--config", f"configs/{config}.yaml", *where, *overrides]

    def of_train(*settings: str) -> list[str]:
        return [f"train.{setting}" for setting in settings]

    sums, code, base, programs = out / "sums", out / "code", f"{out}/base/final", f"{out}/programs/final"
    yield ["data/build_tiny_sums.py", "--out", f"{sums}", "--lessons", "3200", "--chats", "3200"]
    yield ["data/build_tiny_code.py", "--out", f"{code}", "--lessons", "3200", "--chats", "3200"]

    sft, chats = "sft_train.py", f"dataset.name={sums}/sft.jsonl"
    yield train(sft, "tiny_sums_base", "base", chats, "train.steps=80")
    yield train(sft, "tiny_code_base", "programs", f"dataset.name={code}/sft.jsonl", "train.steps=80")
    packed = of_train("steps=4", "shuffle=true", "packing=true", "gradient_accumulation=2", "eval_every=2", SMALL[0])
    adapted = f"model.name={base}", *ADAPTED, chats, "dataset.test_split_size=8"
    yield train(sft, "tiny_sums_base", "adapter", *adapted, *packed)

    on_base = f"model.name={base}", f"dataset.name={sums}", *EVAL
    yield train("train.py", "tiny_sums", "score", *on_base, *of_train(*SCORE))
    exact = of_train(
        *SCORE, "kl=exact", "kl_sample=0.5", "resample_rounds=1", "baseline=batch",
        "micro_batch_tokens=300",
    )  # fmt: skip
    yield train("train.py", "tiny_sums", "score-exact", *on_base, *exact)
    yield train("train.py", "tiny_sums", "score-one", *on_base, *of_train(
        *SCORE, "attempts_per_prompt=1", "revisions_per_attempt=1", "baseline=batch", "kl=k1_in_reward",
        "length_norm=sequence",
    ))  # fmt: skip
    yield ["train.py", "--config", f"{out}/score/config.yaml", "--resume", f"{out}/score/stage2/step_2"]

    play = "rl_train_gspo_selfplay.py"
    in_sandbox = f"model.name={programs}", f"dataset.name={code}", "dataset.test_split_size=40", *EVAL
    yield train(play, "tiny_code", "play", *in_sandbox, *of_train(*PLAY))
    yield train(play, "tiny_code", "play-pool", *in_sandbox, *of_train(*PLAY, "loss=cispo", "beta=0.05"),
                "opponent.snapshots={every_steps: 2}", "curriculum.weighting={}")  # fmt: skip
    judged = "reward={fn: exact_match, format: think_answer}", "prompts.user='{question}'"
    yield train(play, "tiny_code", "play-sums", *on_base, *judged, "dataset.target_field=answer",
                "model.max_seq_length=128", "generation.max_new_tokens=32",
                *of_train(*PLAY, "loss=grpo", "passes=2"))  # fmt: skip

    answers = f"model.name={base}", f"dataset.name={sums}/test.jsonl", "dataset.max_rows=40"
    yield train("collect_rollouts.py", "tiny_answers", "answers", *answers, "generation.samples_per_prompt=2")
    yield ["evaluate.py", "--config", f"{out}/score/config.yaml", "--run", f"{out}/score", "--temperature", "0", "1",
           "--samples", "2", "--swap-attempts", "--output", f"{out}/evaluated.jsonl"]  # fmt: skip


def main() -> int:
    """Runs all, and compares where that is asked for."""
    args = command_line()
    args.out.mkdir(parents=True)
    environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads), "PYTHONHASHSEED": "0"}
    for number, command in enumerate(commands(args.out.resolve())):
        print(" ".join(command[:1] + [word for word in command if word.startswith("run_name=")]), flush=True)
        with open(args.out / f"said{number}.txt", "w") as said:
            where = {"cwd": ROOT, "env": environment, "stdout": said, "stderr": subprocess.STDOUT}
            if subprocess.run([sys.executable, *command], **where, check=False).returncode:
                print(Path(said.name).read_text())
                return 1
    found = list(differences(args.like, args.out)) if args.like else []
    print("\n".join(found) or ("equal to the last bit" if args.like else f"recorded in {args.out}"))
    return bool(found)


def command_line() -> argparse.Namespace:
    """The options."""
    result = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("out", type=Path, metavar="DIR", help="a folder that is not there yet")
    result.add_argument("--like", type=Path, metavar="DIR", help="what was recorded before")
    result.add_argument("--threads", type=int, default=1, help="default: 1")
    return result.parse_args()


def differences(before: Path, after: Path) -> Iterator[str]:
    """A line per file that differs."""
    names = [{path.relative_to(folder) for path in files(folder)} for folder in (before, after)]
    yield from (f"{name}: only in {(before, after)[name in names[1]]}" for name in sorted(names[0] ^ names[1]))
    for name in sorted(names[0] & names[1]):
        one, other = content(before / name, before), content(after / name, after)
        difference = distance(one, other)
        if difference:
            yield f"{name}: {difference}"


def files(folder: Path) -> Iterator[Path]:
    """What a run leaves, and what is comparable of it."""
    for path in folder.rglob("*"):
        if path.is_file() and not LEFT_OUT.fullmatch(path.name) and not path.name.startswith("said"):
            yield path


def content(path: Path, folder: Path) -> Any:
    """Tensors, rows without times, and else text or bytes; where it names its own folder, without that."""
    if path.suffix == ".safetensors":
        return load_file(path)
    if path.suffix in (".bin", ".pkl", ".pt"):
        return torch.load(path, weights_only=False)
    data = path.read_bytes()
    if path.suffix not in (".json", ".jsonl"):
        return data
    text = data.decode().replace(str(folder.resolve()), "OUT")
    if path.name == "adapter_config.json":  # PEFT writes sets as lists, in any order
        return {key: sorted(each) if isinstance(each, list) else each for key, each in json.loads(text).items()}
    lines = text.splitlines()
    return [without_times(json.loads(line)) for line in (lines if path.suffix == ".jsonl" else ["".join(lines)])]


def without_times(value: Any) -> Any:
    """Returns a row without its times."""
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if not TIMES.fullmatch(key)}
    if isinstance(value, list):
        return [without_times(item) for item in value]
    return value


def distance(one: Any, other: Any, where: str = "") -> str:
    """What differs first, and by how much; nothing where both are equal."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return f"{where}: {one.dtype} {list(one.shape)} and {other.dtype} {list(other.shape)}"
        if torch.equal(one.nan_to_num(12345), other.nan_to_num(12345)):
            return ""
        return f"{where}: by up to {(one.double() - other.double()).abs().max().item():.3g}"
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return f"{where}: has {sorted(map(str, one.keys() ^ other.keys()))} in one of the two"
        pairs = [(key, one[key], other[key]) for key in one]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        pairs = list(zip(range(len(one)), one, other, strict=True))
    else:
        return "" if same(one, other) else f"{where}: {short(one)} and {short(other)}"
    found = (distance(mine, its, f"{where}/{key}") for key, mine, its in pairs)
    return next(filter(None, found), "")


def same(one: Any, other: Any) -> bool:
    """Equal, arrays of numpy included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return one == other or (one != one and other != other)


def short(value: Any) -> str:
    """For people."""
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


if __name__ == "__main__":
    sys.exit(main())

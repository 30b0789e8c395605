"""How much a reader opens to follow one step of each RL script, from `main()` to `backward()`, counted on a real step.

    python benchmarks/reading.py               # half a minute on one core, no download, no sandbox
    python benchmarks/reading.py --files       # and which files these are, with what is entered in each
    python benchmarks/reading.py --root DIR    # the same of another checkout, by this interpreter's packages

Each script runs as from the command line, in a process of its own, on a random Qwen3 of two layers. Recorded is what
the training thread enters from the first call in the body of `main()`'s innermost loop, which comes after the first
evaluation, to the end of the last `backward()` below the first of these calls that reaches one. SCoRe is in stage I,
with 2 x 2 attempts; self-play has two minibatches and plays against the initial policy, without a teacher.

files    those below the root in which a function is entered, or whose dataclasses or named tuples are made
lines    of `main()`, of these functions and of these classes without their methods. A function counts whole and once,
         with docstring, decorators, branches not taken, and all that is defined inside it
frames   on the stack between `main()` and the function that computes the loss, both excluded, lambdas included

Nothing is left out, neither clock nor memory nor interrupts: where they are called on the way, they are on the way.
What is not counted are types that are only named, module-level code, other threads and processes, and what an
evaluation has cached before the step.
"""

import argparse
import ast
import contextlib
import io
import json
import multiprocessing
import os
import runpy
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOSSES = ("loss_of", "score_loss", "policy_loss")  # the names it has had; the outermost one counts
INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>")  # are frames in some versions of Python
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NOT_OURS = (".venv", "site-packages")

SCRATCH = {
    "architecture": {
        "model_type": "qwen3", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "tie_word_embeddings": True,
        "max_position_embeddings": 256,
    },
    "characters": "01?",
}  # fmt: skip
TEMPLATE = "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}"
COMMON = {
    "run_name": "reading",
    "model": {"name": "base", "backend": "plain", "max_seq_length": 128, "adapters": {"lora": {"r": 4, "alpha": 8}}},
    "dataset": {"name": "rows.jsonl", "target_field": "answer", "test_split_size": 6},
    "reward": {"fn": "exact_match"},
}
CONFIGS = {
    "train.py": COMMON | {
        "prompts": {"user": "{question}", "self_correction": "?"},
        "generation": {
            "max_prompt_length_attempt1": 16, "max_prompt_length_attempt2": 64, "max_new_tokens_attempt1": 4,
            "max_new_tokens_attempt2": 4,
        },
        "train": {
            "stage1_steps": 1, "stage2_steps": 1, "stage1_batch_size": 8, "stage2_batch_size": 8,
            "attempts_per_prompt": 2, "revisions_per_attempt": 2,
        },
    },
    "rl_train_gspo_selfplay.py": COMMON | {
        "prompts": {"user": "{question}"},
        "generation": {"max_prompt_length": 16, "max_new_tokens": 4},
        "opponent": {"snapshots": {"every_steps": 0}, "use": "scoreboard"},
        "train": {"steps": 1, "batch_size": 8, "group_size": 8, "minibatches": 2},
        "eval": {"temperature": 1.0},
    },
}  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """What one step of a script enters."""

    lines: dict[str, dict[str, int]]  # file below the root -> function or class -> lines
    frames: list[str]  # from main() to the loss, both included

    @property
    def between(self) -> int:
        """Returns the number of frames between main() and the loss."""
        return len(self.frames) - 2


class Recorder:
    """A function for sys.setprofile that records one step: what is entered, and the stack at the loss."""

    def __init__(self, root: Path, script: Path, backward: CodeType):
        self._root, self._script, self._backward = root, script, backward
        self._body = body_of_loop(script)
        self._entered: dict[tuple[str, int | str], None] = {}  # file, and a function's first line or a class's name
        self._step: FrameType | None = None  # the call from main() that is running
        self._is_over = self._reaches_backward = False
        self.frames: list[str] = []
        self.path: list[tuple[str, int | str]] = []  # what had been entered when the last backward() was over

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Takes an event of the interpreter."""
        if self._is_over or event not in ("call", "return"):
            return
        if event == "call":
            if self._step is None and self._is_called_by_loop(frame):
                self._step = frame
                self._enter(frame.f_back)
            if self._step is not None:
                self._enter(frame)
        elif self._step is not None:
            if frame.f_code is self._backward:
                self.path, self._reaches_backward = list(self._entered), True
            if frame is self._step:
                self._step, self._is_over = None, self._reaches_backward

    def _is_main(self, frame: FrameType) -> bool:
        return frame.f_code.co_name == "main" and frame.f_code.co_filename == str(self._script)

    def _is_called_by_loop(self, frame: FrameType) -> bool:
        caller = frame.f_back
        return caller is not None and self._is_main(caller) and caller.f_lineno in self._body

    def _enter(self, frame: FrameType) -> None:
        code = frame.f_code
        if code.co_filename == "<string>":  # the generated constructor of a dataclass or a named tuple
            made = frame.f_locals.get("_cls") or type(frame.f_locals.get("self"))
            module = sys.modules.get(made.__module__)
            where, what = getattr(module, "__file__", None) or "", made.__qualname__
        else:
            where, what = code.co_filename, code.co_firstlineno
        is_function = code.co_flags & 1  # the bodies of modules and classes are not optimized
        if not is_function or not is_ours(Path(where), self._root):
            return
        self._entered[where, what] = None
        if code.co_name in LOSSES and not self.frames:
            above: FrameType | None = frame
            while above is not None:
                if above.f_code.co_name not in INLINED:
                    self.frames.insert(0, above.f_code.co_name)
                above = None if self._is_main(above) else above.f_back


def is_ours(path: Path, root: Path) -> bool:
    """True if a file is one of the project's."""
    return path.is_relative_to(root) and not set(NOT_OURS) & set(path.relative_to(root).parts)


def body_of_loop(script: Path) -> range:
    """Returns the lines inside the innermost `while` of a script's main()."""
    (main,) = (node for node in ast.parse(script.read_text()).body if getattr(node, "name", "") == "main")
    *_, loop = (node for node in ast.walk(main) if isinstance(node, ast.While))  # breadth first
    return range(loop.body[0].lineno, loop.body[-1].end_lineno + 1)


def sources_of(path: Path) -> list[tuple[str, range, set[int]]]:
    """Returns the functions and classes of a file: qualified name, range of lines, and the lines that count as its own.

    A function inside another one belongs to it. A class counts without its methods and without blank lines.
    """
    text = path.read_text()
    rows, found = text.splitlines(), []

    def extent(node: Any) -> range:
        return range(min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.end_lineno + 1)

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FUNCTIONS):
                found.append((prefix + child.name, extent(child), set(extent(child))))
            elif isinstance(child, ast.ClassDef):
                own = {number for number in extent(child) if rows[number - 1].strip()}
                own -= {n for part in child.body if isinstance(part, (*FUNCTIONS, ast.ClassDef)) for n in extent(part)}
                found.append((prefix + child.name, extent(child), own))
                walk(child, f"{prefix}{child.name}.")
            else:
                walk(child, prefix)

    walk(ast.parse(text), "")
    return found


def counted(path: list[tuple[str, int | str]], root: Path) -> dict[str, dict[str, int]]:
    """Returns the lines of all that was entered, by file and name; a line alone is one outside of functions."""
    lines: dict[str, dict[str, int]] = {}
    sources = {file: sources_of(Path(file)) for file in {file for file, _ in path}}
    for file, what in path:
        name, own = f"line {what}", {what}
        for each, extent, belonging in sources[file]:  # a method comes after its class
            if what == each or (isinstance(what, int) and what in extent):
                name, own = each, belonging
        lines.setdefault(str(Path(file).relative_to(root)), {})[name] = len(own)
    return lines


def read(root: Path, script: str) -> Reading:
    """Runs a script on a tiny model in an empty folder, and returns what its first step enters."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    sys.path.insert(0, str(root))
    import torch
    from transformers.utils import logging as chatter

    from lib.core.config import FromScratch
    from lib.model.scratch import build

    torch.set_num_threads(1)
    chatter.disable_progress_bar()
    recorder = Recorder(root, root / script, torch.Tensor.backward.__code__)
    said = io.StringIO()
    with tempfile.TemporaryDirectory(prefix="rematch-reading-") as folder:
        os.chdir(folder)
        for part in build(FromScratch(**SCRATCH), TEMPLATE, seed=0):
            part.save_pretrained("base")
        rows = [{"question": f"{number:05b}", "answer": "1"} for number in range(24)]  # one answer in ten is right
        Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        Path("config.yaml").write_text(json.dumps(CONFIGS[script]))  # JSON is YAML
        sys.argv = [script, "--config", "config.yaml"]
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                sys.setprofile(recorder)
                runpy.run_path(str(root / script), run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{root / script} ended with exit code {end.code}:\n{said.getvalue()}") from end
        finally:
            sys.setprofile(None)
            os.chdir(root)
    if not recorder.path or not recorder.frames:
        missing = f"the loss, by any of the names {', '.join(LOSSES)}" if recorder.path else "backward()"
        raise RuntimeError(f"{root / script}: no call in the loop of main() reaches {missing}: adapt this benchmark")
    return Reading(counted(recorder.path, root), recorder.frames)


def show(readings: dict[str, Reading], files: bool) -> None:
    """Prints the table of all scripts, and the files of each if asked for."""
    numbers = {
        "files": lambda reading: len(reading.lines),
        "lines": lambda reading: sum(sum(own.values()) for own in reading.lines.values()),
        "functions and classes": lambda reading: sum(map(len, reading.lines.values())),
        "frames between main() and the loss": lambda reading: reading.between,
    }
    print(f"| from main() to backward() | {' | '.join(readings)} |\n|---|{'---|' * len(readings)}")
    for name, number in numbers.items():
        print(f"| {name} | {' | '.join(f'{number(reading):,}' for reading in readings.values())} |")
    print()
    for script, reading in readings.items():
        print(f"{script}: {' > '.join(reading.frames)}")
    for script, reading in readings.items() if files else ():
        print(f"\n| lines | file that {script} enters | and what in it, with its lines |\n|---|---|---|")
        for file, own in sorted(reading.lines.items(), key=lambda item: (-sum(item[1].values()), item[0])):
            longest = sorted(own.items(), key=lambda item: (-item[1], item[0]))
            print(f"| {sum(own.values())} | {file} | {', '.join(f'{name} {lines}' for name, lines in longest)} |")


def main() -> None:
    """Counts both scripts, one after the other, and prints the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--files", action="store_true", help="also list the files, and what is entered in each")
    options.add_argument("--root", type=Path, default=ROOT, metavar="DIR", help="the checkout (default: this one)")
    args = options.parse_args()
    readings = {}
    for script in CONFIGS:
        # a new process for each, so that no cache is warm and --root decides which `lib` it is
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            readings[script] = process.submit(read, args.root.resolve(), script).result()
    show(readings, args.files)


if __name__ == "__main__":
    main()

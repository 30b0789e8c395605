"""How much a reader opens to follow one step of each RL script, from `main()` to `backward()`, counted on a real step.

    python benchmarks/reading.py               # half a minute on one core, no download, no sandbox
    python benchmarks/reading.py --files       # and which files these are, with what is entered in each

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
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOSS = "loss_of"
INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>")  # are frames in some versions of Python
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Lines = dict[str, dict[str, int]]  # file below the root -> function or class -> lines

SCRATCH = {
    "architecture": {
        "model_type": "qwen3", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "tie_word_embeddings": True,
        "max_position_embeddings": 256,
    },
    "characters": "01?",
}  # fmt: skip
TEMPLATE = "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}"
COMMON = [
    "run_name=reading", "model.name=base", "model.backend=plain", "model.max_seq_length=128",
    "model.adapters.lora={r: 4, alpha: 8}", "dataset.name=rows.jsonl", "dataset.target_field=answer",
    "dataset.test_split_size=6", "reward.fn=exact_match", "prompts.user='{question}'",
]  # fmt: skip
SETTINGS = {
    "train.py": [
        "prompts.self_correction='?'", "generation.max_prompt_length_attempt1=16",
        "generation.max_prompt_length_attempt2=64", "generation.max_new_tokens_attempt1=4",
        "generation.max_new_tokens_attempt2=4", "train.stage1_steps=1", "train.stage2_steps=1",
        "train.stage1_batch_size=8", "train.stage2_batch_size=8", "train.attempts_per_prompt=2",
        "train.revisions_per_attempt=2",
    ],
    "rl_train_gspo_selfplay.py": [
        "generation.max_prompt_length=16", "generation.max_new_tokens=4", "opponent.snapshots.every_steps=0",
        "opponent.use=scoreboard", "train.steps=1", "train.batch_size=8", "train.group_size=8", "train.minibatches=2",
        "eval.temperature=1.0",
    ],
}  # fmt: skip


class Recorder:
    """A function for sys.setprofile that records one step: what is entered, and the stack at the loss."""

    def __init__(self, script: Path, backward: CodeType):
        self._script, self._backward = str(script), backward
        (main,) = (node for node in ast.parse(script.read_text()).body if getattr(node, "name", "") == "main")
        *_, loop = (node for node in ast.walk(main) if isinstance(node, ast.While))  # breadth first: the innermost
        self._body = range(loop.body[0].lineno, loop.body[-1].end_lineno + 1)
        self._entered: dict[tuple[str, int | str], None] = {}  # file, and a function's first line or a class's name
        self._step: FrameType | None = None  # the call from main() that is running
        self.frames: list[str] = []
        self.path: list[tuple[str, int | str]] = []  # what had been entered when the last backward() was over

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Takes an event of the interpreter."""
        if event == "call":
            caller = frame.f_back
            if self._step is None and caller and self._is_main(caller) and caller.f_lineno in self._body:
                self._step = frame
                self._enter(caller)
            if self._step is not None:
                self._enter(frame)
        elif event == "return" and self._step is not None:
            if frame.f_code is self._backward:
                self.path = list(self._entered)
            if frame is self._step:
                self._step = None
                if self.path:
                    sys.setprofile(None)

    def _is_main(self, frame: FrameType) -> bool:
        return frame.f_code.co_name == "main" and frame.f_code.co_filename == self._script

    def _enter(self, frame: FrameType) -> None:
        code = frame.f_code
        where: str = code.co_filename
        what: int | str = code.co_firstlineno
        if where == "<string>":  # the generated constructor of a dataclass or a named tuple
            made = frame.f_locals.get("_cls") or type(frame.f_locals.get("self"))
            where, what = getattr(sys.modules.get(made.__module__), "__file__", None) or "", made.__qualname__
        is_function = code.co_flags & 1  # the bodies of modules and classes are not optimized
        if is_function and Path(where).is_relative_to(ROOT) and "site-packages" not in where:
            self._entered[where, what] = None
        if code.co_name == LOSS and not self.frames:
            above: FrameType | None = frame
            while above is not None:
                if above.f_code.co_name not in INLINED:
                    self.frames.insert(0, above.f_code.co_name)
                above = None if self._is_main(above) else above.f_back


def sources_of(path: Path) -> list[tuple[str, range, set[int]]]:
    """Returns the functions and classes of a file: qualified name, range of lines, and the lines that count as its own.

    A function inside another one belongs to it. A class counts without its methods and without blank lines.
    """
    text = path.read_text()
    rows, sources = text.splitlines(), []

    def extent(node: Any) -> range:
        return range(min([node.lineno, *(line.lineno for line in node.decorator_list)]), node.end_lineno + 1)

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FUNCTIONS):
                sources.append((prefix + child.name, extent(child), set(extent(child))))
            elif isinstance(child, ast.ClassDef):
                lines = {number for number in extent(child) if rows[number - 1].strip()}
                parts = (part for part in child.body if isinstance(part, (*FUNCTIONS, ast.ClassDef)))
                sources.append((prefix + child.name, extent(child), lines.difference(*map(extent, parts))))
                walk(child, f"{prefix}{child.name}.")
            else:
                walk(child, prefix)

    walk(ast.parse(text), "")
    return sources


def counted(path: list[tuple[str, int | str]], root: Path) -> Lines:
    """Returns the lines of all that was entered, by file and name; a line alone is one outside of functions."""
    lines: Lines = {}
    sources = {file: sources_of(Path(file)) for file in {file for file, _ in path}}
    for file, what in path:
        name, count = f"line {what}", 1
        for source, extent, belonging in sources[file]:  # a method comes after its class
            if what == source or (isinstance(what, int) and what in extent):
                name, count = source, len(belonging)
        lines.setdefault(str(Path(file).relative_to(root)), {})[name] = count
    return lines


def read(script: str) -> tuple[Lines, list[str]]:
    """Runs a script on a tiny model; returns what its first step enters, and the frames from main() to the loss."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    sys.path.insert(0, str(ROOT))
    import torch

    from lib.core.config import FromScratch
    from lib.model.scratch import build

    torch.set_num_threads(1)
    recorder, printed = Recorder(ROOT / script, torch.Tensor.backward.__code__), io.StringIO()
    with (
        tempfile.TemporaryDirectory(prefix="rematch-reading-") as folder, contextlib.chdir(folder),
        contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed),
    ):  # fmt: skip
        for part in build(FromScratch(**SCRATCH), TEMPLATE, seed=0):
            part.save_pretrained("base")
        rows = [{"question": f"{number:05b}", "answer": "1"} for number in range(24)]  # one answer in ten is right
        Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        Path("config.yaml").write_text("{}")
        sys.argv = [script, "--config", "config.yaml", *COMMON, *SETTINGS[script]]
        sys.setprofile(recorder)
        try:
            runpy.run_path(str(ROOT / script), run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{script} ended with exit code {end.code}:\n{printed.getvalue()}") from end
        finally:
            sys.setprofile(None)
    if not recorder.path or not recorder.frames:
        raise RuntimeError(f"{script}: no call in the loop of main() reaches {LOSS} and backward(): adapt this script")
    return counted(recorder.path, ROOT), recorder.frames


def main() -> None:
    """Counts both scripts, one after the other, and prints the table, and the files of each if asked for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--files", action="store_true", help="also list the files, and what is entered in each")
    args = options.parse_args()
    readings = {}
    for script in SETTINGS:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:  # so that no cache is warm
            readings[script] = process.submit(read, script).result()
    columns = [
        (
            len(lines),
            sum(sum(names.values()) for names in lines.values()),
            sum(map(len, lines.values())),
            len(frames) - 2,
        )
        for lines, frames in readings.values()
    ]
    titles = "files", "lines", "functions and classes", "frames between main() and the loss"
    print(f"| from main() to backward() | {' | '.join(readings)} |\n|---|{'---|' * len(readings)}")
    for title, *numbers in zip(titles, *columns, strict=True):
        print(f"| {title} | {' | '.join(f'{number:,}' for number in numbers)} |")
    print()
    for script, (_, frames) in readings.items():
        print(f"{script}: {' > '.join(frames)}")
    for script, (lines, _) in readings.items() if args.files else ():
        print(f"\n| lines | file that {script} enters | and what in it, with its lines |\n|---|---|---|")
        for file, names in sorted(lines.items(), key=lambda item: (-sum(item[1].values()), item[0])):
            longest = sorted(names.items(), key=lambda item: (-item[1], item[0]))
            print(f"| {sum(names.values())} | {file} | {', '.join(f'{name} {count}' for name, count in longest)} |")


if __name__ == "__main__":
    main()

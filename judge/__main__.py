r"""Runs Python that a model wrote, and judges it by tests in a way that the program cannot forge.

    python -m judge --self-test                          # what is covered on this machine, and how fast it is
    python -m judge program.py --tests tests.py          # judge one program and explain the verdict
    python -m judge program.py --stdin input.txt         # run one as a script and show what it printed
    python -m judge --benchmark module:function          # what another judge pays of hostile programs

docs/judge.md shows how to do this from Python; `pip install .` installs all it needs, as the package `judge`.

Two jailed processes per program: one executes it and answers calls with plain data, the other executes the tests and
owns the verdict (`judge/jail/__init__.py` has the protocol). The verdict on a test is one of:

    pass              it ran to its end, an assert held, and none failed or raised, whatever has caught that
    wrong             an assert failed, or none was reached
    exception         a call raised, or a script ended with a status that is not 0
    load_error        the source is refused, does not compile, or its top level raised
    exited            sys.exit
    died              the program ended in another way: a signal, os._exit, a crash
    timeout, memory, output_limit    a limit
    opaque            an object that is not plain data was compared
    protocol          the program sent bytes that no one asked for, or that are no answer
    unsupported_test  the test's fault: it does not parse, asserts nothing, passes what cannot leave it
    infra_error       the sandbox's fault, after retries: no score at all, `ProgramVerdict.scored` is False

What protects the machine is one of several rungs. A sandbox takes the highest one on which a program tried everything
that must be refused, and was refused:

    R4   Landlock, seccomp and bubblewrap: as R3, and a file system, processes and a network of its own
    R3   Landlock and seccomp: no file but the standard library, no network, process, signal or tracing
    R1   limits: the verdict is made elsewhere still, but the machine is open to the program; needs `allow_unsafe`

What a right program cannot do here stands in a table of docs/judge.md, as does what tests can ask of its objects.

Covered nowhere: answers learned by heart, functions that answer differently each time, bugs of the kernel. R3 does not
hide process numbers, nor names, sizes and times of files: a program can see there what another one has done before it.
R4 does not hide the names of packages that are installed next to the library; neither lets such a package be read.

Exit codes: 0 passed, 1 a test or script failed or --benchmark paid for an attack, 2 command line or file, 5 sandbox.
"""

import argparse
import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from judge.benchmark import OURS, show_benchmark
from judge.errors import FINISHED, ConfigError, SandboxError, UserError
from judge.launch import RUNGS
from judge.pool import Sandbox, cores
from judge.sources import program_for
from judge.worker import Program, ProgramRun, ProgramVerdict, shown


def main() -> int:
    """Runs the self-test, or one program. Returns the exit status."""
    options = argparse.ArgumentParser(
        prog="python -m judge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = options.add_mutually_exclusive_group(required=True)
    what.add_argument("program", nargs="?", type=Path, help="a Python file")
    what.add_argument("--self-test", action="store_true", help="try every rung, and measure the speed")
    what.add_argument(
        "--benchmark", nargs="?", const=OURS, metavar="JUDGE",
        help="hostile and right programs for the judge MODULE:FUNCTION (default: this sandbox)",
    )  # fmt: skip
    options.add_argument("--texts", action="store_true", help="with --benchmark: a judge of texts, judge(text, target)")
    options.add_argument("--only", default="", metavar="TEXT", help="with --benchmark: names that contain this")
    options.add_argument(
        "--every", type=int, metavar="N", help="with --benchmark: each N-th program (default: 20, or 1 with --only)"
    )
    how = options.add_mutually_exclusive_group()
    how.add_argument("--tests", type=Path, metavar="FILE", help="asserts, functions test_..., unittest or pytest")
    options.add_argument("--stateful", action="store_true", help="tests use objects that the program returns")
    how.add_argument("--stdin", type=Path, metavar="FILE", help="run it as a script with this input")
    options.add_argument(
        "--entry-points", nargs="+", metavar="NAME",
        help="what the tests may use of it; default: what they import from it, or read and do not bind",
    )  # fmt: skip
    options.add_argument("--timeout", type=float, default=2.0, metavar="SECONDS", help="default: 2")
    options.add_argument("--memory", type=int, default=256, metavar="MB", help="default: 256")
    options.add_argument("--numpy", action="store_true", help="programs may import numpy")
    options.add_argument("--rung", choices=[rung.name for rung in RUNGS], help="the highest rung to try")
    options.add_argument("--allow-unsafe", action="store_true", help="use R1 where nothing better works; no cage")
    args = options.parse_args()
    if not 0 < args.timeout < math.inf or args.memory < 1:
        options.error("--timeout: expected seconds above 0; --memory: expected at least 1 MB")
    if args.texts and args.benchmark in (None, OURS):
        options.error("--texts: this sandbox judges programs; name a judge of texts, --benchmark MODULE:FUNCTION")
    if args.self_test:
        return show_self_test(args.rung, args.allow_unsafe)
    if args.benchmark:
        every = (1 if args.only else 20) if args.every is None else max(1, args.every)
        return show_benchmark(args.benchmark, args.texts, args.only, every, args.allow_unsafe)
    program = Program(_text(args.program), timeout_s=args.timeout, memory_mb=args.memory)
    with Sandbox(1, allow_unsafe=args.allow_unsafe, numpy=args.numpy, rung=args.rung) as sandbox:
        if args.tests is None:
            return show_run(sandbox.run(program, _text(args.stdin) if args.stdin else ""))
        read = program_for(program.source, _text(args.tests), args.entry_points, args.program.stem)
        limits = {"timeout_s": args.timeout, "memory_mb": args.memory}
        judged = replace(read, stateful=read.stateful or args.stateful, **limits)
        return show_verdict(sandbox.judge([judged])[0], judged.tests)


def show_self_test(highest: str | None, allow_unsafe: bool) -> int:
    """Prints every rung that was tried, what is covered on the one that holds, and its speed."""
    with Sandbox(rung=highest, allow_unsafe=allow_unsafe) as sandbox:
        *tried, taken = sandbox.checks
        for check in tried:
            print(f"{check.rung.name}  {check.rung.gives}: not here, {check.why_not}")
        print(f"{taken.rung.name}  {taken.rung.gives}: taken\n\na program that the model wrote can")
        for what, refused in taken.attempts:
            print(f"  {'not' if refused else 'YES':<4} {what}")
        if taken.rung.name != "R4":
            print("  YES  see names, sizes and times of files")
        source, tests = "def add(a, b):\n    return a + b\n", ("assert add(1, 2) == 3", "assert add(-5, 5) == 0")
        more = [f"assert add({number}, 1) == {number + 1}" for number in range(300)]  # so that no verdict is cached
        started = time.perf_counter()
        verdicts = sandbox.judge([Program(source, (*tests, test), entry_points=("add",)) for test in more])
        seconds = time.perf_counter() - started
        if not all(verdict.passed for verdict in verdicts):
            raise SandboxError("a right program was judged wrong: do not train with this sandbox")
        print(f"\nspeed: {300 / seconds:.0f} programs per second, of three asserts each, with {cores()} workers")
    return FINISHED


def show_verdict(verdict: ProgramVerdict, tests: Sequence[str]) -> int:
    """Prints the verdict on each test. Returns 0 if all pass, else 1."""
    for number, (test, (name, detail)) in enumerate(zip(tests, verdict.tests, strict=True), start=1):
        print(f"test {number}: {name}: {detail or test.splitlines()[-1].strip()}")
    passed = sum(test.verdict == "pass" for test in verdict.tests)
    used = f"{verdict.seconds:.3f} s, {verdict.memory_bytes >> 20} MB"
    print(f"{passed} of {len(tests)} tests pass; {used}, sandbox {verdict.rung}")
    return FINISHED if verdict.passed else 1


def show_run(run: ProgramRun) -> int:
    """Prints a script's output and how it ended. Returns 0 if it finished, else 1."""
    for stream, text in ((sys.stdout, run.stdout), (sys.stderr, run.stderr)):
        stream.write("\n".join(map(shown, text.split("\n"))))
        stream.flush()
    print(f"{run.ending}; {run.seconds:.3f} s, sandbox {run.rung}", file=sys.stderr)
    return FINISHED if run.ending == "finished" else 1


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); give an existing file") from error


def script() -> None:
    """Runs `main()` and ends the process with its exit status; judges are imported from the working directory first."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        code = main()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        code = error.exit_code
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    sys.exit(code)


if __name__ == "__main__":
    script()

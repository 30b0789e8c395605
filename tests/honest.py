"""Runs the right programs of `judge/data/right/` in the sandbox and says which are refused. Needs numpy alone.

    python tests/honest.py                      # on the highest rung that holds here
    python tests/honest.py --rung R3 --only numpy

judge/corpus.py says how they are written.
"""

import argparse
import contextlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from judge.corpus import Case, right_programs
from judge.isolation import try_rungs
from judge.pool import Sandbox
from judge.worker import ProgramVerdict


def unexpected(case: Case, verdict: ProgramVerdict) -> str:
    """What is odd about a verdict, "" where it is due."""
    names = {test.verdict for test in verdict.tests}
    if names == set(case.due):
        return ""
    odd = next(test for test in verdict.tests if test.verdict not in case.due) if names else None
    return f"{case}: {odd.verdict}, {odd.detail}" if odd else f"{case}: no test"


def main() -> int:
    """Judges all, prints those whose verdict is not what is due. 1 if there are any."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rung", help="the highest rung to take (default: R4)")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--only", default="", help="programs whose name contains this")
    args = options.parse_args()
    rung = try_rungs(args.rung)[-1].rung
    chosen = [case for case in right_programs() if args.only in str(case)]
    with contextlib.closing(Sandbox(args.workers, rung=rung.name, numpy=True)) as sandbox:
        verdicts = sandbox.judge([case.program() for case in chosen])
    odd = [text for case, verdict in zip(chosen, verdicts, strict=True) if (text := unexpected(case, verdict))]
    print("\n".join(odd))
    refused = sum(case.due != ("pass",) for case in chosen)
    print(f"{rung.name}: {len(chosen)} programs, {refused} of them known to be refused, {len(odd)} odd")
    return int(bool(odd))


if __name__ == "__main__":
    sys.exit(main())

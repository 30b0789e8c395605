"""Runs every program of `judge/data/hostile/` in the sandbox and says what came of it. Needs Python alone.

    python tests/attack.py                      # on the highest rung that holds here
    python tests/attack.py --rung R3 --json     # on this one; a machine-readable last line

Every attack and control is judged by a worker which must judge a right program right after it. Void if a control did
not get its due: a judge that refuses everything has shown nothing.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from judge.corpus import Case, attacks, controls, placed
from judge.isolation import try_rungs
from judge.launch import WorkerLost
from judge.worker import Worker

ATTACKS, CONTROLS = attacks(), controls()
SECRET = "REMATCH_SECRET_OF_THE_TRAINER"
LIMIT = 1.0  # seconds


@dataclass
class Findings:
    """What must all be empty, and the counts."""

    rung: str = ""
    controls: list[str] = field(default_factory=list)  # that did not get their due
    forged: list[str] = field(default_factory=list)  # some test passed
    faults: list[str] = field(default_factory=list)  # no verdict, or the worker was lost or unfit afterwards
    late: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)  # another verdict than foreseen, though not a pass
    left: list[str] = field(default_factory=list)  # files, processes, changes
    attacks: int = 0
    judged: int = 0  # controls too
    by_kind: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    slowest: float = 0.0
    seconds: float = 0.0


def main() -> int:
    """Runs everything, prints the table. 1 if anything was found."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rung", help="the highest rung to take (default: R4)")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--limit", type=float, default=LIMIT, metavar="S", help="of a program (default: 1)")
    options.add_argument("--only", default="", help="programs whose kind/name contains this")
    options.add_argument("--every", type=int, default=1, metavar="N", help="of those every N-th alone (default: 1)")
    options.add_argument("--json", action="store_true", help="findings as the last line")
    options.add_argument("--allow-unsafe", action="store_true")
    args = options.parse_args()
    os.environ[SECRET] = "the secret"
    with tempfile.TemporaryDirectory(prefix="rematch-home-") as home:
        rung = try_rungs(args.rung, args.allow_unsafe)[-1].rung
        findings = attack(rung, Path(home), args.workers, args.only, args.limit, args.every)
    show(findings)
    if args.json:
        print(json.dumps({name: value for name, value in vars(findings).items() if name != "by_kind"}))
    found = [findings.controls, findings.forged, findings.faults, findings.late, findings.left]
    return int(any(found) or not findings.attacks)


def attack(rung, home: Path, workers: int, only: str, limit: float = LIMIT, every: int = 1) -> Findings:
    """Judges every n-th program on `rung`, and all controls, several at a time."""
    home.chmod(0o777)  # so that it is the sandbox which refuses, not the file system
    canary = home / "canary.txt"
    canary.write_text("alive")
    canary.chmod(0o666)
    before = things_of_this_machine(home)
    findings = Findings(rung.name)
    waiting = [*[case for case in ATTACKS if only in str(case)][::every], *CONTROLS][::-1]
    planned = len(waiting)
    lock = threading.Lock()
    started = time.monotonic()

    def work() -> None:
        worker = Worker(rung)
        while True:
            with lock:
                if not waiting:
                    break
                what = waiting.pop()
            program = what.program(source=placed(what.source, home, canary, SECRET), timeout_s=limit)
            began = time.monotonic()
            try:
                verdict = worker.judge(program)
                names = [test.verdict for test in verdict.tests]
                lost = ""
            except WorkerLost as error:
                names, lost = ["infra_error"], str(error)
            took = time.monotonic() - began
            if lost or not worker.is_healthy():
                with lock:
                    findings.faults.append(f"{what}: {lost or 'unfit for the next program'}")
                worker.close()
                worker = Worker(rung)
            with lock:
                record(findings, what, names, took, limit)
                if not canary.exists() or canary.read_text() != "alive":
                    findings.left.append(f"{what}: the canary is changed")
                    canary.write_text("alive")
        worker.close()

    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work) for _ in range(workers)]:
            done.result()
    findings.seconds = time.monotonic() - started
    if findings.judged != planned:
        findings.faults.append(f"{findings.judged} programs were judged instead of {planned}")
    time.sleep(0.3)
    findings.left += sorted(things_of_this_machine(home) - before)
    return findings


def record(findings: Findings, what: Case, names: list[str], took: float, limit: float) -> None:
    """One program's outcome."""
    findings.judged += 1
    if what.kind == "control":
        if tuple(names) != what.due:
            findings.controls.append(f"{what}: {' '.join(names)}, expected {' '.join(what.due)}")
        return
    findings.attacks += 1
    findings.by_kind[what.kind].update([names[0] if len(set(names)) == 1 else "/".join(dict.fromkeys(names))])
    findings.slowest = max(findings.slowest, took)
    if "pass" in names:
        findings.forged.append(f"{what}: {' '.join(names)}")
    elif not set(names) <= set(what.due):
        findings.unexpected.append(f"{what}: {' '.join(dict.fromkeys(names))}, foreseen {' '.join(what.due)}")
    if took > limit + 0.5:
        findings.late.append(f"{what}: {took:.2f} s")


def things_of_this_machine(home: Path) -> set[str]:
    """Files and processes that a program could leave behind: sandboxed processes, temporary and shared-memory files."""
    found = set()
    for folder in {home, Path(tempfile.gettempdir()), Path("/tmp"), Path("/dev/shm"), Path.home(), Path.cwd()}:
        if folder.is_dir():
            found |= {f"file {path}" for path in folder.iterdir() if "rematch_hostile" in path.name or folder == home}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b"judge.jail.zygote" in command and is_ours(folder):
            found.add(f"process {folder.name}")
    return found


def is_ours(process: Path) -> bool:
    """Whether a process descends from this one, or from nobody any more."""
    while process.name not in ("0", "1", str(os.getpid())):
        try:
            status = (process / "stat").read_text()
            command = (process / "cmdline").read_bytes()
        except OSError:
            return True
        if b"judge.jail.zygote" not in command:
            return False  # another sandbox of this machine
        process = Path("/proc", status.rpartition(")")[2].split()[1])
    return True


def show(findings: Findings) -> None:
    """The table by class, and what was found."""
    for kind, verdicts in findings.by_kind.items():
        print(f"{kind:<18}{sum(verdicts.values()):>4}  {', '.join(f'{n} {v}' for v, n in verdicts.most_common())}")
    for name in ("unexpected", "late", "left", "faults", "forged", "controls"):
        for line in getattr(findings, name):
            print(f"{name}: {line}")
    print(
        f"{findings.rung}: {findings.attacks} attacks and {findings.judged - findings.attacks} controls in "
        f"{findings.seconds:.0f} s: "
        f"{len(findings.forged)} forged, {len(findings.faults)} faults, {len(findings.left)} left something, "
        f"{len(findings.late)} late, slowest {findings.slowest:.2f} s"
    )
    if not findings.attacks:
        print("VOID: no attack of that name")
    if findings.controls:
        print(f"VOID: {len(findings.controls)} of the controls did not get their due")


if __name__ == "__main__":
    sys.exit(main())

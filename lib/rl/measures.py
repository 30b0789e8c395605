"""Metrics of a step's answers in several attempts, averaged over all processes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean, pstdev

from accelerate import Accelerator

from lib.core.config import ATTEMPT, ScoreConfig
from lib.rewards.judge import Judge
from lib.rl.checks import form_of
from lib.rl.credit import Credit, peers_of
from lib.rl.log_rows import length_extremes, means_of, numbers_of
from lib.rl.tree import Answer, Group
from lib.run.distributed import any_process, collect

NOT_BY_TURN = ("changed", "cut", "idle", "unscored", "repeats")


def metrics_of(trees: list[Group], credit: Credit, judge: Judge, config: ScoreConfig, accelerator: Accelerator) -> dict:
    """Returns the metrics of a step's answers; where chats stop early, those of an attempt are means over its answers.

    `acc_standing` is then the accuracy of the answers that stand at the end. First attempts by the reference model are
    in no mean, unless all are by it.
    """
    rows: list[tuple[str, dict]] = []
    fresh: list[tuple[str, float | None]] = []  # without chats that begin with the reference model's attempt
    earned: dict[tuple[int, int], list[float]] = {}  # by set of answers that are compared
    solved: set[tuple[str, int]] = set()  # turns, and the trees with a right answer there
    chats: dict[int, list[Answer]] = {}  # by number: the attempts of a chat up to there
    has_policy_answers = any_process(not all(tree.is_context for tree in trees), accelerator)
    counts = [not (tree.is_context and has_policy_answers) for tree in trees]  # for the gap
    has_signal, sets = credit.has_signal.tolist(), peers_of(credit.nodes).sets
    for node in credit.nodes:
        before = [] if node.parent is None else chats[node.parent]
        for number, answer in zip(node.numbers, node.group.answers, strict=True):
            chats[number] = [*before, answer] if node.is_attempt else before
        if node.turn == 1 and node.group.is_context and has_policy_answers:
            continue
        format = judge.judge_of(node.group.prompt.row).format
        solved |= {(node.name, node.tree)} if any(node.group.matches) else set()
        for number, answer in zip(node.numbers, node.group.answers, strict=True):
            numbers = numbers_of(answer)
            if node.turn > 1:
                numbers |= {"cut": float(node.group.prompt.cut), "idle": float(not has_signal[number])}
            if node.is_attempt:
                numbers |= form_of(format, answer.text, answer.verdict.well_formed, answer.verdict.match)
            elif not answer.verdict.components:  # a reflection, in which nothing is judged
                numbers = {name: numbers[name] for name in ("length", "truncated", "cut", "idle")}
            if node.is_attempt and before:
                verdicts = [earlier.verdict for earlier in before]
                numbers["changed"] = float(not answer.verdict.unchanged_from(verdicts[-1]))
                if not verdicts[-1].match:
                    numbers["repeats"] = float(answer.verdict.repeats(verdicts))
            rows.append((node.name, numbers))
            if counts[node.tree]:
                fresh.append((node.name, numbers.get("acc")))
            if answer.verdict.scored and (node.is_attempt or answer.verdict.components):
                earned.setdefault(sets[number], []).append(answer.verdict.reward)
    rows, fresh = collect(rows, accelerator), collect(fresh, accelerator)
    solved_by = Counter(collect(sorted(name for name, _ in solved), accelerator))
    turns = list(config.turns)
    spreads = [(turns[turn - 1], {"reward_std": pstdev(rewards)}) for (turn, _), rewards in earned.items()]
    spreads = collect(spreads, accelerator)
    means = {
        turn: means_of(numbers for name, numbers in rows if name == turn)
        | means_of(numbers for name, numbers in spreads if name == turn)
        | length_extremes([numbers["length"] for name, numbers in rows if name == turn])
        | ({"prompts_solved": solved_by[turn]} if turn.startswith(ATTEMPT) else {})
        for turn in turns
    }
    first, last = (means_of({"acc": acc} for name, acc in fresh if name == turn) for turn in (turns[0], turns[-1]))
    gap = last.get("acc", 0.0) - first.get("acc", 0.0)
    standing = {}
    if config.prompts.stop != "never":
        gains = collect(_gains([tree for tree, does in zip(trees, counts, strict=True) if does]), accelerator)
        gap = fmean(gains) if gains else 0.0
        standing = {"acc_standing": first["acc"] + gap} if "acc" in first else {}
    last = means[turns[-1]]
    return {
        **totals(trees, [numbers["length"] for _, numbers in rows], credit, accelerator),
        **{f"{name}_{turn}": value for turn, mean in means.items()
           for name, value in mean.items() if name not in NOT_BY_TURN},
        "answer_changed": last.get("changed", 0.0),
        "context_cut": last.get("cut", 0.0),
        "zero_advantage": last.get("idle", 0.0),
        **{name: fmean(mean[name] for mean in means.values() if name in mean) for name in ("truncated", "unscored")},
        **means_of({"repeat_rate": numbers.get("repeats")} for _, numbers in rows),
        "gap": gap,
        **standing,
    }  # fmt: skip


def totals(groups: Sequence[Group], lengths: Iterable[float], credit: Credit, accelerator: Accelerator) -> dict:
    """Returns the counts over a whole step; `lengths` are those of all processes' answers."""
    return {
        "prompts": sum(collect([len(groups)], accelerator)),
        "tokens": int(sum(lengths)),
        "learned": sum(collect(credit.learned, accelerator)),
        "idle": float(not any_process(credit.has_signal.any(), accelerator)),
    }


def _gains(trees: list[Group]) -> list[float]:
    """Returns the gain of each first attempt: the share of right answers that stand in the end, minus its own."""

    def stands(answer: Answer, match: float) -> float:
        """Returns the share of right answers after one; `match` of the attempt that stands there."""
        group = answer.following
        if group is None:
            return match
        is_attempt = group.role == ATTEMPT
        return fmean(stands(answer, float(answer.verdict.match) if is_attempt else match) for answer in group.answers)

    roots = [answer for tree in trees for answer in tree.answers]
    return [stands(answer, float(answer.verdict.match)) - answer.verdict.match for answer in roots]

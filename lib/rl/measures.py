"""The numbers that a step of several attempts tells of its answers, averaged over all processes."""

from statistics import fmean, pstdev

from accelerate import Accelerator

from lib.core.config import ScoreConfig
from lib.rewards.judge import Judge
from lib.rl.checks import form_of
from lib.rl.credit import Credit, compared
from lib.rl.ledger import means_of, numbers_of
from lib.rl.tree import Answer, Group
from lib.run.distributed import anywhere, collect

NOT_BY_ATTEMPT = ("changed", "cut", "idle", "unscored", "repeats")


def metrics_of(trees: list[Group], credit: Credit, judge: Judge, config: ScoreConfig, accelerator: Accelerator) -> dict:
    """Returns the metrics of a step's answers; where chats stop early, those of an attempt are of the written ones."""
    rows: list[tuple[int, dict]] = []
    fresh: list[tuple[int, float | None]] = []  # without revisions of a replayed attempt
    earned: dict[int, float] = {}
    said: dict[int, list[str]] = {}  # by number: the answers of a chat up to there
    is_all_replayed = not anywhere(any(not tree.prompt.choice.first for tree in trees), accelerator)
    for node in credit.nodes:
        before = [] if node.parent is None else said[node.parent]
        for number, answer in zip(node.numbers, node.group.answers, strict=True):
            said[number] = [*before, answer.verdict.answer]
        if node.attempt == 1 and node.group.prompt.choice.first and not is_all_replayed:
            continue  # an earlier step's
        format = judge.format_of(node.group.prompt.row)
        for number, answer in zip(node.numbers, node.group.answers, strict=True):
            form = form_of(format, answer.text, answer.verdict.well_formed, answer.verdict.match)
            own = numbers_of(answer) | form
            if node.before:
                changed = answer.verdict.answer != node.before.verdict.answer
                own |= {"changed": float(changed), "cut": float(node.group.prompt.cut)}
                own["idle"] = float(credit.advantage[number] == 0)
                if not node.before.verdict.match:
                    own["repeats"] = float(answer.verdict.answer in filter(None, before))
            rows.append((node.attempt, own))
            if not node.group.prompt.choice.first:
                fresh.append((node.attempt, own["acc"]))
            if answer.verdict.scored:
                earned[number] = answer.verdict.reward
    rows, fresh = collect(rows, accelerator), collect(fresh, accelerator)
    spreads = [
        (attempt, {"reward_std": pstdev(rewards)})
        for attempt, sets in compared(credit.nodes).items()
        for numbers in sets
        if (rewards := [earned[number] for number in numbers if number in earned])
    ]
    spreads = collect(spreads, accelerator)
    attempts = range(1, len(config.budgets) + 1)
    means = [
        means_of(own for attempt, own in rows if attempt == number)
        | means_of(own for attempt, own in spreads if attempt == number)
        for number in attempts
    ]
    fresh_means = [means_of({"acc": acc} for attempt, acc in fresh if attempt == number) for number in attempts]
    gap = fresh_means[-1].get("acc", 0.0) - fresh_means[0].get("acc", 0.0)
    if config.prompts.stop != "never":
        gains = collect(_gains(trees), accelerator)
        gap = fmean(gains) if gains else 0.0
    last = means[-1]
    return {
        "prompts": sum(collect([len(trees)], accelerator)),
        **{f"{name}_attempt{number}": value for number, each in enumerate(means, start=1)
           for name, value in each.items() if name not in NOT_BY_ATTEMPT},
        "answer_changed": last.get("changed", 0.0),
        "context_cut": last.get("cut", 0.0),
        "zero_advantage": last.get("idle", 0.0),
        **{name: fmean(each[name] for each in means if each) for name in ("truncated", "unscored")},
        **means_of({"repeat_rate": own.get("repeats")} for _, own in rows),
        "gap": gap,
        "learned": sum(collect(credit.learned, accelerator)),
        "tokens": int(sum(own["length"] for _, own in rows)),
        "idle": float(not anywhere(credit.is_taught.any(), accelerator)),
    }  # fmt: skip


def _gains(trees: list[Group]) -> list[float]:
    """Returns of each new first attempt what became of it: the share of right answers that stand, minus its own."""

    def stands(answer: Answer) -> float:
        return fmean(map(stands, answer.following.answers)) if answer.following else float(answer.verdict.match)

    own = [answer for tree in trees if not tree.prompt.choice.first for answer in tree.answers]
    return [stands(answer) - answer.verdict.match for answer in own]


def distributions_of(credit: Credit) -> dict[str, list[float]]:
    """Returns lists of values by answer, for histograms."""
    values: dict[str, list[float]] = {}
    for node in credit.nodes:
        name = f"attempt{node.attempt}"
        values.setdefault(f"advantage_{name}", []).extend(credit.advantage[list(node.numbers)].tolist())
        for answer in node.group.answers:
            values.setdefault(f"lengths_{name}", []).append(float(len(answer.completion.ids)))
            if answer.verdict.scored:
                values.setdefault(f"rewards_{name}", []).append(answer.verdict.reward)
    return values

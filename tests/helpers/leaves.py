"""Trees of two attempts path by path, for tests that compute by hand."""

from dataclasses import replace
from types import SimpleNamespace

from lib.rl.tree import nodes


def rollouts_of(trees):
    """One for each revision: both prompts, answers and verdicts, and the numbers of the two answers."""
    found = nodes(trees)
    answers = {n: (node, answer) for node in found for n, answer in zip(node.numbers, node.group.answers, strict=True)}
    rollouts = []
    for second, (node, y2) in answers.items():
        if node.parent is not None:
            above, y1 = answers[node.parent]
            rollouts.append(
                SimpleNamespace(
                    row=above.group.prompt.row, prompt1=above.group.prompt.ids, prompt2=node.group.prompt,
                    y1=y1.completion, y2=y2.completion, text1=y1.text, text2=y2.text, score1=y1.verdict,
                    score2=y2.verdict, revision=second - node.numbers.start, y1_by_base=above.group.is_context,
                    first=node.parent, second=second,
                )
            )  # fmt: skip
    return rollouts


def by_rollout(credit, rollouts):
    """The factors of both attempts of each rollout, (n,) each."""
    first, second = [r.first for r in rollouts], [r.second for r in rollouts]
    return SimpleNamespace(
        advantage1=credit.advantage[first], advantage2=credit.advantage[second],
        weight1=credit.weight[first], weight2=credit.weight[second],
    )  # fmt: skip


def changed(trees, change):
    """The same trees, with `change(number, answer)` in place of each answer."""
    count = iter(range(10**6))

    def group(old):
        own = [(next(count), answer) for answer in old.answers]  # in the order of `nodes`
        answers = []
        for number, answer in own:
            new = change(number, answer)
            answers.append(replace(new, following=group(answer.following) if answer.following else None))
        return replace(old, answers=answers)

    return [group(tree) for tree in trees]


def accumulate(run, credit, logps=None, is_first=True):
    """The gradients of a step, as the first optimizer step on these answers has them; and its numbers."""
    logps = logps or run.step.logps_before(credit, credit.parts)
    return run.step.accumulate(credit, credit.parts[0], run.objective, logps, is_first)

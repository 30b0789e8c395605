"""Trees as sequences with trunks and branches, packed into micro-batches, and what the model says of them."""

import random

import pytest
import torch
from conftest import after

from engine import Completion
from lib.rl.batching import micro_batches, sequences
from lib.rl.prompts import Prompt
from lib.rl.tree import Answer, Group, nodes, paths

PAD = 0
CPU = torch.device("cpu")


def written(dice, most):
    ids = [dice.randrange(1, 34) for _ in range(dice.randint(1, most))]
    return Completion(ids, [0.0] * len(ids), finished=bool(dice.getrandbits(1)))


def group(prompt, completions, following=()):
    """A group of these answers, and what follows some of them."""
    nexts = [*following, *[None] * len(completions)]
    return Group(prompt, [Answer(y, "", None, after) for y, after in zip(completions, nexts, strict=False)])


def grown(dice, prompts=3, copies=(2, 3), most=9):
    """Trees of random texts; some prompts do not continue the answer before, and some answers have none after."""

    def tree(ids, copies, **known):
        answers = [written(dice, most) for _ in range(copies[0])]
        following = []
        for answer in answers if copies[1:] else ():
            continues = dice.random() < 0.7
            more = [*ids, *answer.ids, 30, 31] if continues else [*ids, *written(dice, most).ids, 32]
            is_asked = dice.random() < 0.9
            following.append(tree(more, copies[1:], continues=continues) if is_asked else None)
        return group(Prompt({}, ids, "", **known), answers, following)

    return [tree(written(dice, most).ids, copies) for _ in range(prompts)]


def expected_tokens(found):
    """Number of an answer -> the text before, and the ids to score."""
    return {
        number: (node.group.prompt.ids, answer.completion.ids)
        for node in found
        for number, answer in zip(node.numbers, node.group.answers, strict=True)
    }


def test_answers_are_numbered_tree_by_tree_and_every_path_is_found():
    first, second = (Prompt({}, ids, "") for ids in ([1], [1, 2, 3]))
    ys = [Completion([i], [0.0], True) for i in range(7)]
    tree = group(first, ys[:3], [group(second, ys[3:5]), None, group(second, ys[5:6])])
    found = nodes([tree, group(first, ys[6:])])
    assert [(n.tree, n.attempt, n.numbers, n.parent) for n in found] == [
        (0, 1, range(3), None), (0, 2, range(3, 5), 0), (0, 2, range(5, 6), 2), (1, 1, range(6, 7), None),
    ]  # fmt: skip
    ways = [[answer.completion.ids[0] for _, answer in path] for path in paths(tree)]
    assert ways == [[0, 3], [0, 4], [1], [2, 5]]


def sharing(dice):
    """Always, never, or as the dice will."""
    return dice.choice([lambda *_: True, lambda *_: False, lambda *_: dice.random() < 0.5])


def learning(dice, expected):
    """Which of the attempts have a gradient: all, or some of them."""
    share = dice.choice([1.0, 0.6, 0.2])
    return {key for key in expected if dice.random() < share}


@pytest.mark.parametrize("seed", range(40))
def test_micro_batches_keep_to_the_budget_and_score_every_token_once(seed):
    dice = random.Random(seed)
    copies = dice.choice([(2, dice.randint(1, 4)), (3,), (2, 2, 2), (1, 1, 1, 1)])
    found = nodes(grown(dice, copies=copies, most=dice.choice([2, 9, 30])))
    expected = expected_tokens(found)
    learned = learning(dice, expected)
    items = sequences(found, learned.__contains__, sharing(dice))
    for item in items:  # nothing is read that no scored token follows
        assert len(item.ids) == item.spans[-1].start + len(item.spans[-1].ids) - 1
    budget = dice.choice([1, 20, 64, 300, 10_000])
    batches = list(micro_batches(items, budget, PAD, CPU))
    tokens = [batch.inputs.ids.numel() for batch in batches]
    assert tokens == sorted(tokens, reverse=True)  # if memory does not suffice, the first forward tells
    shapes = sorted((tuple(batch.inputs.ids.shape[::-1]) for batch in batches), reverse=True)
    assert sum(rows for _, rows in shapes) == len(items)
    lengths = sorted((len(item.ids) for item in items), reverse=True)
    for i, (width, rows) in enumerate(shapes):
        assert rows == 1 or rows * width <= budget
        assert i == len(shapes) - 1 or (rows + 1) * width > budget  # no batch is smaller than it must be
        assert width == lengths[0]  # those of similar length come together
        lengths = lengths[rows:]
    scored = {}
    for batch in batches:
        for answer, token in zip(batch.answer.tolist(), batch.inputs.targets.tolist(), strict=True):
            scored.setdefault(answer, []).append(token)
    assert scored == {number: ids for number, (_, ids) in expected.items() if number in learned}


@pytest.mark.parametrize("seed", range(6))
def test_branches_score_like_texts_of_their_own(make_policy, seed):
    policy, dice = make_policy(moved=0.3), random.Random(seed)
    nodes_ = nodes(grown(dice, copies=dice.choice([(2, 3), (2, 2, 2)])))
    results, learned = [], learning(dice, expected_tokens(nodes_))
    for budget in (1, 150):
        found = {}
        items = sequences(nodes_, learned.__contains__, sharing(random.Random(seed)))
        for batch in micro_batches(items, budget, PAD, CPU):
            logps = (policy(batch.inputs)[0].detach(), *policy.reference(batch.inputs)[:1])
            for answer, *pair in zip(batch.answer.tolist(), *logps, strict=True):
                found.setdefault(answer, []).append(torch.stack(pair))
        results.append(found)
    for key in learned:
        before, ids = expected_tokens(nodes_)[key]
        alone = after(before, ids)
        expected = torch.stack([policy(alone)[0].detach(), policy.reference(alone)[0]], 1)
        for found in results:
            torch.testing.assert_close(torch.stack(found[key]), expected, rtol=0, atol=1e-5)


def test_a_branch_sees_its_trunk_and_itself_alone(make_policy):
    """Every token of the other branch is changed: not one bit of a branch's log-probs is."""
    policy = make_policy(moved=0.3)
    second = Prompt({}, [5, 6, 7, 8, 9], "", continues=True)
    first, one = Completion([7], [0.0], True), Completion([10, 11, 12], [0.0] * 3, True)
    scores = []
    for other in ([13, 14, 15], [20, 21, 22]):
        revisions = group(second, [Completion(other, [0.0] * 3, True), one])
        tree = group(Prompt({}, [5, 6], ""), [first], [revisions])
        (batch,) = micro_batches(sequences(nodes([tree]), should_share=lambda *_: True), 100, PAD, CPU)
        assert batch.inputs.ids.tolist() == [[5, 6, 7, 8, 9, *other[:2], 10, 11]]  # nothing follows the last tokens
        assert batch.inputs.positions.tolist() == [[0, 1, 2, 3, 4, 5, 6, 5, 6]]
        assert batch.inputs.trunk == 5
        scores.append(policy(batch.inputs)[0].detach()[batch.answer == 2])
    assert torch.equal(*scores)


def test_sharing_pays_for_long_trunks_and_where_masks_are_taken(make_policy, monkeypatch):
    policy = make_policy()
    assert policy.should_share_trunk(20, [5, 5, 5])
    assert not policy.should_share_trunk(1, [200] * 8)  # nothing to share, and the branches would see each other masked
    monkeypatch.setattr(policy.language_model.config, "_attn_implementation", "eager")
    assert not policy.should_share_trunk(20, [5, 5, 5])
    monkeypatch.undo()
    monkeypatch.setattr(policy, "supports_masks", False)
    assert not policy.should_share_trunk(20, [5, 5, 5])

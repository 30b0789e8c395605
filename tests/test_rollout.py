"""Sequences with trunks and branches, packed into micro-batches, and what the model says of them."""

import random

import pytest
import torch
from conftest import after

from lib.generators import Completion
from lib.prompts import SecondPrompt
from lib.rollout import Rollout, micro_batches, sequences

PAD = 0
CPU = torch.device("cpu")


def written(dice, most):
    ids = [dice.randrange(1, 34) for _ in range(dice.randint(1, most))]
    return Completion(ids, [0.0] * len(ids), finished=bool(dice.getrandbits(1)))


def grown(dice, prompts=3, attempts=2, revisions=3, most=9):
    """A tree of random texts; some second prompts do not continue, some first attempts are the base's."""
    rollouts = []
    for _ in range(prompts):
        prompt = written(dice, most).ids
        for _ in range(attempts):
            first = written(dice, most)
            continues, by_base = dice.random() < 0.7, dice.random() < 0.3
            ids = [*prompt, *first.ids, 30, 31] if continues else [*prompt, *written(dice, most).ids, 32]
            second = SecondPrompt(ids, continues=continues, cut=not continues)
            rollouts += [
                Rollout({}, prompt, first, second, written(dice, most), "", "", None, None, revision, by_base)
                for revision in range(revisions)
            ]
    return rollouts


def expected_tokens(rollouts):
    """(attempt, rollout) -> the text before, and the ids to score."""
    texts = {(2, i): (r.prompt2.ids, r.y2.ids) for i, r in enumerate(rollouts)}
    firsts = {(1, i): (r.prompt1, r.y1.ids) for i, r in enumerate(rollouts) if r.revision == 0 and not r.y1_by_base}
    return texts | firsts


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
    rollouts = grown(dice, revisions=dice.randint(1, 4), most=dice.choice([2, 9, 30]))
    expected = expected_tokens(rollouts)
    learned = learning(dice, expected)
    items = sequences(rollouts, sharing(dice), lambda *attempt: attempt in learned)
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
    found = {}
    for batch in batches:
        tokens = zip(batch.attempt.tolist(), batch.rollout.tolist(), batch.inputs.targets.tolist(), strict=True)
        for attempt, rollout, token in tokens:
            found.setdefault((attempt, rollout), []).append(token)
    assert found == {key: ids for key, (_, ids) in expected.items() if key in learned}


@pytest.mark.parametrize("seed", range(6))
def test_branches_score_like_texts_of_their_own(make_policy, seed):
    policy, dice = make_policy(moved=0.3), random.Random(seed)
    rollouts = grown(dice)
    results, learned = [], learning(dice, expected_tokens(rollouts))
    for budget in (1, 150):
        found = {}
        items = sequences(rollouts, sharing(random.Random(seed)), lambda *attempt: attempt in learned)
        for batch in micro_batches(items, budget, PAD, CPU):
            logps = (policy(batch.inputs)[0].detach(), *policy.reference(batch.inputs)[:1])
            for attempt, rollout, *pair in zip(batch.attempt.tolist(), batch.rollout.tolist(), *logps, strict=True):
                found.setdefault((attempt, rollout), []).append(torch.stack(pair))
        results.append(found)
    for key in learned:
        before, ids = expected_tokens(rollouts)[key]
        alone = after(before, ids)
        expected = torch.stack([policy(alone)[0].detach(), policy.reference(alone)[0]], 1)
        for found in results:
            torch.testing.assert_close(torch.stack(found[key]), expected, rtol=0, atol=1e-5)


def test_a_branch_sees_its_trunk_and_itself_alone(make_policy):
    """Every token of the other branch is changed: not one bit of a branch's log-probs is."""
    policy = make_policy(moved=0.3)
    second = SecondPrompt([5, 6, 7, 8, 9], continues=True, cut=False)
    first, one = Completion([7], [0.0], True), Completion([10, 11, 12], [0.0] * 3, True)
    scores = []
    for other in ([13, 14, 15], [20, 21, 22]):
        texts = (Completion(other, [0.0] * 3, True), one)
        rollouts = [Rollout({}, [5, 6], first, second, y2, "", "", None, None, i) for i, y2 in enumerate(texts)]
        (batch,) = micro_batches(sequences(rollouts, lambda *_: True), 100, PAD, CPU)
        assert batch.inputs.ids.tolist() == [[5, 6, 7, 8, 9, *other[:2], 10, 11]]  # nothing follows the last tokens
        assert batch.inputs.positions.tolist() == [[0, 1, 2, 3, 4, 5, 6, 5, 6]]
        assert batch.inputs.trunk == 5
        scores.append(policy(batch.inputs)[0].detach()[(batch.attempt == 2) & (batch.rollout == 1)])
    assert torch.equal(*scores)


def test_sharing_pays_for_long_trunks_and_where_masks_are_taken(make_policy, monkeypatch):
    policy = make_policy()
    assert policy.sharing_pays(20, [5, 5, 5])
    assert not policy.sharing_pays(1, [200] * 8)  # nothing to share, and the branches would see each other masked
    monkeypatch.setattr(policy.language_model.config, "_attn_implementation", "eager")
    assert not policy.sharing_pays(20, [5, 5, 5])
    monkeypatch.undo()
    monkeypatch.setattr(policy, "takes_masks", False)
    assert not policy.sharing_pays(20, [5, 5, 5])

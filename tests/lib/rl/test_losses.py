import math
from functools import partial

import pytest
import torch
from accelerate import Accelerator
from helpers.groups import by_row

from engine import Completion
from lib.core.config import ScoreTrain
from lib.rewards.judge import Verdict
from lib.rl import credit as credits
from lib.rl.batching import MicroBatch
from lib.rl.credit import Credit, advantages_of, length_weights, peers_of
from lib.rl.losses import POLICY_LOSSES, Objective, kl_per_token, loss_of, policy_loss
from lib.rl.prompts import Prompt
from lib.rl.recipes.contract import StepAnswers
from lib.rl.recipes.score import Score
from lib.rl.tree import Answer, Group, nodes

PI = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
REF = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
KL = 0.456435  # sum PI log(PI / REF)
KL_GRADIENT = [0.371944, -0.015291, -0.17238, -0.184273]  # PI (log(PI / REF) - KL), by logit
K3_GRADIENT = [0.3, 0.1, -0.1, -0.3]  # PI - REF: that of KL(REF || PI)


def leave_one_out(values, counts=None):
    return by_row(credits.leave_one_out, values, counts)


def group_advantages(kind, rewards, *columns):
    return by_row(partial(credits.group_advantages, kind), rewards, *columns)


def close(actual, expected, **tolerance):
    torch.testing.assert_close(
        actual, torch.as_tensor(expected, dtype=actual.dtype), **{"rtol": 0, "atol": 1e-6, **tolerance}
    )


def value(kind, d, dtype=torch.float64):
    """The penalty where log pi_ref - log pi = d."""
    return kl_per_token(kind, torch.zeros((), dtype=dtype), torch.tensor(d, dtype=dtype)).item()


def expected_gradient(kind):
    """Mean over the four actions, by enumeration, of the estimator's gradient by logit."""
    logits = PI.log().requires_grad_()
    log_p = logits.log_softmax(-1)
    (PI * kl_per_token(kind, log_p, REF.log())).sum().backward()
    return logits.grad


# -- KL


@pytest.mark.parametrize(("d", "expected"), [(0.1, 0.0051709), (-0.1, 0.0048374), (0.5, 0.1487213), (0.0, 0.0)])
def test_k3_by_hand(d, expected):
    assert value("k3", d) == pytest.approx(expected, abs=5e-8)


def test_a_small_k3_is_not_lost_in_float32():
    assert value("k3", 1e-4, torch.float32) == pytest.approx(5.0e-9, rel=0.02)
    assert (torch.tensor(1e-4).exp() - 1 - 1e-4).item() != pytest.approx(5.0e-9, rel=0.02)
    assert all(value("k3", d, torch.float32) >= 0 for d in torch.linspace(-0.01, 0.01, 101).tolist())


@pytest.mark.parametrize("d", [100.0, 1000.0, math.inf])
def test_a_huge_ratio_is_clamped(d):
    assert value("k3", d, torch.float32) == pytest.approx(math.exp(20) - 21)
    assert value("k3", -d, torch.float32) == pytest.approx(19)
    assert value("k2", d, torch.float32) == pytest.approx(200)


def test_means_of_the_estimators_by_enumeration():
    def mean(kind):
        return (PI * kl_per_token(kind, PI.log(), REF.log())).sum().item()

    assert mean("k3") == pytest.approx(KL, abs=1e-6)
    assert mean("k1_in_reward") == pytest.approx(KL, abs=1e-6)
    assert mean("k2") == pytest.approx(0.5 * sum(p * math.log(p / q) ** 2 for p, q in zip(PI, REF, strict=True)))
    assert mean("k2") != pytest.approx(KL, abs=1e-3)


def test_k3_and_the_exact_kl_agree_in_the_mean():
    """Over samples, as training sees it: within four standard errors of the exact value, and those are small."""
    actions = torch.multinomial(PI, 40_000, replacement=True, generator=torch.Generator().manual_seed(0))
    k3 = kl_per_token("k3", PI.log()[actions], REF.log()[actions])
    error = k3.std() / 200
    assert error < 0.005
    assert abs(k3.mean() - KL) < 4 * error


def test_gradients_of_the_estimators_by_enumeration():
    close(expected_gradient("k2"), KL_GRADIENT)
    close(expected_gradient("k3"), K3_GRADIENT)


@pytest.mark.parametrize("old", [[0.25] * 4, [0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.15, 0.05]])
def test_on_samples_of_an_earlier_policy_the_weight_keeps_value_and_gradient(old):
    """By enumeration over what that policy sampled; `exact` is not about samples."""
    old = torch.tensor(old, dtype=torch.float64)

    def found(kind, old_logp):
        logits = PI.log().requires_grad_()
        mean = (old * kl_per_token(kind, logits.log_softmax(-1), REF.log(), old_logp=old_logp)).sum()
        return mean.item(), *torch.autograd.grad(mean, logits)

    for kind, gradient in (("k2", KL_GRADIENT), ("k3", K3_GRADIENT)):
        mean, weighted = found(kind, old.log())
        assert mean == pytest.approx((PI * kl_per_token(kind, PI.log(), REF.log())).sum().item())
        close(weighted, gradient)
        assert (found(kind, None)[1] - weighted).norm() > 0.05
    same = torch.tensor([0.3, 0.1], dtype=torch.float64)
    assert kl_per_token("exact", PI.log()[:2], REF.log()[:2], same, old.log()[:2]) is same


@pytest.mark.parametrize("kind", ["k3", "k2"])
def test_in_the_first_step_on_a_batch_the_weight_changes_no_bit(kind):
    logp, ref_logp = -3 * torch.rand(2, 1000, generator=torch.Generator().manual_seed(0))
    one, two = logp.clone().requires_grad_(), logp.clone().requires_grad_()
    penalties = kl_per_token(kind, one, ref_logp), kl_per_token(kind, two, ref_logp, old_logp=logp.clone())
    assert torch.equal(*penalties)
    for penalty in penalties:
        penalty.sum().backward()
    assert torch.equal(one.grad, two.grad)


def test_k1_has_no_gradient_and_a_name_must_be_known():
    logp = PI.log().requires_grad_()
    assert not kl_per_token("k1_in_reward", logp, REF.log()).requires_grad
    with pytest.raises(ValueError, match="unknown KL estimator 'k4'"):
        kl_per_token("k4", logp, logp)


def test_equal_policies_have_no_kl_and_no_pull():
    for kind in ("k3", "k2"):
        logp = PI.log().requires_grad_()
        penalty = kl_per_token(kind, logp, PI.log())
        penalty.sum().backward()
        assert (penalty == 0).all()
        assert (logp.grad == 0).all()


# -- credit


def test_leave_one_out_by_hand():
    close(leave_one_out(torch.tensor([1.0, 0.0, 0.0, 1.0])), [2 / 3, -2 / 3, -2 / 3, 2 / 3])
    close(leave_one_out(torch.tensor([[1.0, 0.0], [5.0, 5.0]])), [[1.0, -1.0], [0.0, 0.0]])
    close(leave_one_out(torch.tensor([1.0])), [0.0])  # compared with no other


ALONE = Accelerator(cpu=True)


def trees_of(r1, r2):
    """Trees whose answers earn r1 (P, K1) and r2 (P, K1, K2); a text says nothing."""

    def group(rewards, attempt, following=()):
        answers = [
            Answer(Completion([5], [0.0], True), "", Verdict(reward, {}, False, ""), after)
            for reward, after in zip(rewards, following or [None] * len(rewards), strict=True)
        ]
        return Group(Prompt({}, [1], "", attempt=attempt), answers)

    return [group(firsts, 1, [group(seconds, 2) for seconds in below]) for firsts, below in zip(r1, r2, strict=True)]


def advantages(stage, r1, r2, alpha=10.0, baseline="leave_one_out", **given):
    """Advantages (P, K1) and (P, K1, K2); `given` are penalties and which answers are scored, of these shapes."""
    found = nodes(trees_of(r1, r2))
    train = ScoreTrain(alpha=alpha, baseline=baseline, bonus_on="reward")
    rewards = [answer.verdict.reward for node in found for answer in node.group.answers]
    step = StepAnswers(found, rewards)
    earned = [reward for node in found for reward in Score(train).paid(node, step, stage)]
    attempt = torch.tensor([node.attempt for node in found for _ in node.numbers])

    def by_number(one, two):
        values = torch.zeros(len(rewards), dtype=one.dtype)
        values[attempt == 1], values[attempt == 2] = one.flatten(), two.flatten()
        return values.tolist()

    every = torch.ones(len(rewards), dtype=torch.bool)
    scored = by_number(given.get("scored1", every[attempt == 1]), given.get("scored2", every[attempt == 2]))
    penalties = by_number(given["penalty1"], given["penalty2"]) if "penalty1" in given else None
    values = torch.tensor(advantages_of(baseline, peers_of(found, 2), earned, scored, ALONE, penalties))
    shape = torch.tensor(r2).shape
    return values[attempt == 1].view(shape[:2]), values[attempt == 2].view(shape)


@pytest.mark.parametrize("reward", [0.1, 0.3, 0.7, 1 / 3])
def test_equal_rewards_have_advantage_zero_exactly(reward):
    """Not nearly zero: that all completions earned the same is recognised by it."""
    for count in range(2, 9):
        assert (leave_one_out(torch.full((count,), reward)) == 0).all()
        for baseline in ("leave_one_out", "batch"):
            one, two = advantages(2, [[reward] * count] * 3, [[[reward] * 2] * count] * 3, 10.0, baseline)
            assert (one == 0).all()
            assert (two == 0).all()


R1 = [[1.0, 0.0]]
R2 = [[[1.0, 0.0], [1.0, 1.0]]]  # (P, K1, K2) = (1, 2, 2)


def test_stage_1_pays_attempt_2_alone():
    one, two = advantages(1, R1, R2)
    close(one, [[0.0, 0.0]])
    close(two, [[[1.0, -1.0], [0.0, 0.0]]])
    assert torch.equal(advantages(1, R1, R2, alpha=0.0)[1], two)


def test_stage_2_pays_both_and_the_bonus_goes_to_attempt_2():
    one, two = advantages(2, R1, R2)
    close(one, [[1.0, -1.0]])
    close(two, [[[11.0, -11.0], [0.0, 0.0]]])  # (1 + alpha) times those of stage I


def test_attempt_1_knows_nothing_of_the_bonus_and_of_attempt_2():
    expected = advantages(2, R1, R2)[0]
    for alpha in (0.0, 1.0, 100.0):
        for r2 in (R2, [[[0.0, 0.0], [0.0, 7.0]]]):
            assert torch.equal(advantages(2, R1, r2, alpha)[0], expected)


def test_alpha_r1_cancels_where_revisions_share_their_first_attempt():
    two = advantages(2, R1, R2)[1]
    close(advantages(2, [[-3.0, 8.0]], R2)[1], two)
    lone = [[[1.0], [0.0]]]
    assert not torch.equal(advantages(2, R1, lone)[1], advantages(2, [[0.0, 0.0]], lone)[1])


def test_one_revision_is_compared_with_those_of_other_first_attempts():
    one, two = advantages(2, R1, [[[1.0], [1.0]]], alpha=2.0)
    close(one, [[1.0, -1.0]])
    close(two, [[[-2.0], [2.0]]])  # 1 + 2 (1 - 1) = 1 against 1 + 2 (1 - 0) = 3


def test_other_baselines_by_hand():
    one, two = advantages(2, R1, R2, alpha=1.0, baseline="none")
    close(one, R1)
    close(two, [[[1.0, -1.0], [2.0, 2.0]]])  # r2 + (r2 - r1)
    one, two = advantages(2, R1, R2, alpha=1.0, baseline="batch")
    close(one, [[1.0, -1.0]])
    close(two, [[[0.0, -8 / 3], [4 / 3, 4 / 3]]])  # of 1, -1, 2, 2: minus the mean of the others


def test_what_is_not_scored_is_in_no_baseline():
    scored = torch.tensor([True, True, False, True])
    close(leave_one_out(torch.tensor([1.0, 0.0, 50.0, 0.5]), scored), [0.75, -0.75, 0.0, 0.0])
    close(leave_one_out(torch.tensor([1.0, 0.0]), torch.tensor([True, False])), [0.0, 0.0])  # nobody to compare with
    masks = {"scored1": torch.tensor([[True, True]]), "scored2": torch.tensor([[[True, True], [False, True]]])}
    one, two = advantages(2, R1, R2, alpha=1.0, **masks)
    close(one, [[1.0, -1.0]])
    close(two, [[[2.0, -2.0], [0.0, 0.0]]])
    close(advantages(2, R1, R2, alpha=1.0, baseline="none", **masks)[1], [[[1.0, -1.0], [0.0, 2.0]]])
    close(advantages(2, R1, R2, alpha=1.0, baseline="batch", **masks)[1], [[[0.5, -2.5], [0.0, 2.0]]])  # of 1, -1, 2


def test_penalties_are_taken_from_the_reward_in_both_stages():
    penalties = {"penalty1": torch.tensor([[0.5, 0.0]]), "penalty2": torch.full((1, 2, 2), 0.25)}
    one, two = advantages(1, R1, R2, baseline="none", **penalties)
    close(one, [[-0.5, 0.0]])
    close(two, [[[0.75, -0.25], [0.75, 0.75]]])


# -- KL in the reward


class Texts:
    """All texts of a length in which the first and the last token are drawn among three, and the others are certain."""

    def __init__(self, length):
        draws = torch.Generator().manual_seed(length)
        drawn = [0] if length == 1 else [0, length - 1]
        self.logits = torch.randn(len(drawn), 3, generator=draws, dtype=torch.float64).requires_grad_()
        ref = torch.randn(len(drawn), 3, generator=draws, dtype=torch.float64).log_softmax(-1)
        choices = torch.cartesian_prod(*[torch.arange(3)] * len(drawn)).view(-1, len(drawn))
        places = torch.arange(len(drawn))
        self.logp = torch.zeros(len(choices), length, dtype=torch.float64)
        self.logp[:, drawn] = self.logits.log_softmax(-1)[places, choices]
        self.ref_logp = torch.full_like(self.logp, -0.3)  # the reference is not certain
        self.ref_logp[:, drawn] = ref[places, choices]
        self.chance = self.logp.sum(1).exp().detach()

    def gradient(self, loss):
        return torch.autograd.grad(loss, self.logits, retain_graph=True)[0]


def advantages_by_name(name, penalty):
    """Of pairs of answers that earn the same: (n, 2)."""
    rewards = torch.zeros_like(penalty)
    return group_advantages(name, rewards, torch.ones_like(penalty, dtype=torch.bool), penalty)


@pytest.mark.parametrize("norm", ["sequence", "constant", "token"])
@pytest.mark.parametrize("length", [1, 2, 4, 8, 24, 64])
def test_k1_in_the_reward_pulls_as_k2_in_the_loss(length, norm):
    """By enumeration over pairs of texts; beta means the same however long they are, and whatever the baseline."""
    texts, beta = Texts(length), 0.7
    count = len(texts.logp)
    lengths = torch.full((count,), float(length))
    weight = length_weights(norm, lengths, 80, lengths).double()[:, None].expand_as(texts.logp)
    k2 = kl_per_token("k2", texts.logp, texts.ref_logp)
    chances = texts.chance[:, None].expand_as(k2)
    expected = texts.gradient((weight * chances * beta * k2).sum())
    assert expected.norm() > 1e-4
    k1 = kl_per_token("k1_in_reward", texts.logp, texts.ref_logp).sum(1)
    i, j = torch.cartesian_prod(torch.arange(count), torch.arange(count)).T
    for name in ("group_std", "group", "batch_std", "leave_one_out", "none"):
        mine = advantages_by_name(name, beta * torch.stack([k1[i], k1[j]], 1))[:, 0]
        of_text = torch.zeros(count, dtype=torch.float64).index_add(0, i, mine * texts.chance[j])[:, None]
        pull, _ = policy_loss(POLICY_LOSSES["score"], texts.logp, texts.logp, of_text.expand_as(k2), None)
        close(texts.gradient((weight * chances * pull).sum()), expected, atol=1e-7)


def test_the_noise_of_a_penalty_is_not_divided_by_its_own_deviation():
    rewards, penalty = (
        torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0]]),
        torch.tensor([[0.1, 0.2, 0.3, 0.2]] * 2),
    )
    scored = torch.ones_like(rewards, dtype=torch.bool)
    for kind in ("group_std", "batch_std", "group", "leave_one_out"):
        paid = group_advantages(kind, rewards, scored)
        off = paid - group_advantages(kind, rewards, scored, penalty)
        close(off, leave_one_out(penalty))
    one = torch.tensor([[0.5], [0.25]])
    close(group_advantages("none", torch.zeros_like(one), one > 0, one), -one)
    close(group_advantages("batch_std", torch.ones_like(one), one > 0, one), -one)


# -- the loss

LENGTHS = torch.tensor([2.0, 6.0])


@pytest.mark.parametrize(
    ("norm", "expected"), [("sequence", [1 / 2, 1 / 6]), ("constant", [1 / 8, 1 / 8]), ("token", [1 / 4, 1 / 4])]
)
def test_length_weights_by_hand(norm, expected):
    close(length_weights(norm, LENGTHS, 8, LENGTHS), expected)


def test_token_weights_count_the_tokens_of_all_processes():
    close(length_weights("token", LENGTHS, 8, torch.tensor([2.0, 6.0, 1.0, 1.0])), [0.4, 0.4])
    with pytest.raises(ValueError, match="unknown length_norm"):
        length_weights("mean", LENGTHS, 8, LENGTHS)


def credit_by_hand(turn, advantage, weight, kl_weight):
    """The credit of answers of one token each; what is not of the loss of a micro-batch is left empty."""
    count = len(turn)
    return Credit(
        nodes=[], tree=torch.arange(count), turn=torch.tensor(turn), length=torch.ones(count, dtype=torch.long),
        counts=torch.ones(count, dtype=torch.bool),
        advantage=torch.tensor(advantage), kl_weight=torch.tensor(kl_weight), weight=torch.tensor(weight),
        teacher_weight=torch.zeros(count), importance=torch.ones(count),
        in_means=torch.ones(count, dtype=torch.bool), sampled_logp=torch.zeros(count), parts=[],
    )  # fmt: skip


class Written(torch.nn.Module):
    """A policy whose log-probs, and those of its reference, are given."""

    def __init__(self, logp, ref_logp):
        super().__init__()
        self.logp, self.ref_logp = logp, ref_logp

    def forward(self, places, ref_hidden, teacher):
        zeros = torch.zeros(len(places))  # the head returns them for an exact KL that is not asked for
        return self.logp[places], zeros, zeros, None

    def reference(self, places):
        return self.ref_logp[places], None


def batch_of(places):
    places = torch.tensor(places)
    return MicroBatch(places, answer=places, token=torch.zeros_like(places))


def test_the_loss_of_a_micro_batch_by_hand():
    """k2 is d^2 / 2: 0.5 and 0.08 and 0.02 for d of 1, 0.4 and 0.2."""
    logp = torch.tensor([-1.0, -2.0, -3.0], requires_grad=True)
    policy = Written(logp, logp.detach() + torch.tensor([1.0, 0.4, 0.2]))
    credit = credit_by_hand([1, 1, 2], [2.0, 2.0, -1.0], [0.5, 0.5, 1.0], [0.1, 0.1, 10.0])
    loss, numbers, found = loss_of(
        policy, batch_of([0, 1, 2]), credit, Objective(POLICY_LOSSES["score"], "k2", turns=("attempt1", "attempt2"))
    )
    # 0.5 (0.1 * 0.5 + 2) + 0.5 (0.1 * 0.08 + 4) + 1 (10 * 0.02 - 3)
    assert loss.item() == pytest.approx(1.025 + 2.004 - 2.8)
    loss.backward()
    close(logp.grad, [0.5 * (-0.1 - 2), 0.5 * (-0.04 - 2), -2.0 + 1])
    assert torch.equal(found, logp.detach())
    row = numbers.means(Objective(POLICY_LOSSES["score"], "k2", turns=("attempt1", "attempt2")), 2.0, ALONE)
    k3 = [math.exp(d) - 1 - d for d in (1.0, 0.4, 0.2)]
    assert row["loss"] == pytest.approx(loss.item() / 2)
    assert [row["kl_attempt1"], row["kl_attempt2"]] == pytest.approx([(k3[0] + k3[1]) / 2, k3[2]], rel=1e-5)


@pytest.mark.parametrize("shape", [(3, 1), (), (1,)])
def test_a_loss_that_is_not_one_value_per_token_is_refused(monkeypatch, shape):
    """Each of these shapes would be broadcast: a column of 3 to 9 values."""
    values = torch.zeros(shape), torch.zeros(3, dtype=torch.bool)
    monkeypatch.setattr("lib.rl.losses.policy_loss", lambda *_: values)
    policy, credit = Written(torch.zeros(3), torch.zeros(3)), credit_by_hand([1, 1, 1], [1.0] * 3, [1.0] * 3, [0.0] * 3)
    with pytest.raises(ValueError, match=r"ratio 'token': got .*, expected one value per token, \[3\]"):
        loss_of(policy, batch_of([0, 1, 2]), credit, Objective(POLICY_LOSSES["dapo"], "k3"))


def test_any_split_of_the_tokens_adds_up():
    draw = torch.Generator().manual_seed(0)
    logp, ref_logp, advantage, weight = (torch.randn(10, generator=draw) for _ in range(4))
    credit = credit_by_hand([1, 2] * 5, advantage.tolist(), weight.tolist(), [0.3, 0.7] * 5)
    objective = Objective(POLICY_LOSSES["score"], "k3", turns=("attempt1", "attempt2"))

    def loss(places):
        return loss_of(Written(logp, ref_logp), batch_of(places), credit, objective)[0]

    close(sum(loss([*range(10)][i : i + 3]) for i in range(0, 10, 3)), loss([*range(10)]), atol=1e-5)


def test_stage_1_gives_attempt_1_no_policy_gradient():
    one, _ = advantages(1, R1, R2)
    logp = torch.tensor([-1.0, -2.0], requires_grad=True)
    policy_loss(POLICY_LOSSES["score"], logp, logp, one[0], None)[0].sum().backward()
    assert (logp.grad == 0).all()

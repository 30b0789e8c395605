import copy
import itertools
import math
from functools import partial

import pytest
import torch
from conftest import inputs_of
from helpers.groups import by_row
from helpers.weights import move
from torch import tensor

from lib.model.policy import Policy
from lib.rl import losses
from lib.rl.credit import group_advantages, length_weights, overlong_penalty
from lib.rl.losses import sampler_weights

POLICY_LOSSES = {name: kind for name, kind in losses.POLICY_LOSSES.items() if kind.ratio != "none"}


def close(actual, expected, atol=1e-12):
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=actual.dtype), rtol=0, atol=atol)


def doubles(*numbers):
    return tensor(numbers, dtype=torch.float64)


# -- TRL's own trainers: four prompts of eight answers, two optimizer steps of two micro-batches of eight

TEMPERATURE, LONGEST = 0.8, 12
PROMPTS = ["1+2=?", "3?", "abc=", "Q"]
REWARDS = tensor([
    [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
    [0.3, 0.9, 0.1, 0.5, 0.8, 0.2, 0.7, 0.4], [math.nan, 1.0, 0.0, 0.5, 0.0, math.nan, 1.0, 0.2],
])  # fmt: skip
GSPO = {"importance_sampling_level": "sequence", "loss_type": "grpo", "epsilon": 3e-4, "epsilon_high": 4e-4}
KL = {"beta": 0.04, "use_bias_correction_kl": False}
WEIGHTED_KL = {"beta": 0.04, "use_bias_correction_kl": True}  # TRL multiplies k3 by the ratio: then its slope is k2's
CASES = {  # our loss, how far the weights move, TRL's settings
    "gspo": (POLICY_LOSSES["gspo"], 0.001, GSPO),
    "gspo, KL": (POLICY_LOSSES["gspo"], 0.01, GSPO | KL),
    "gspo_token": (POLICY_LOSSES["gspo_token"], 0.01, GSPO),
    "grpo": (POLICY_LOSSES["grpo"], 0.1, {"loss_type": "grpo"}),
    "grpo, weighted KL": (POLICY_LOSSES["grpo"], 0.1, {"loss_type": "grpo"} | WEIGHTED_KL),
    "batch_std": (
        POLICY_LOSSES["grpo"].but(advantage="batch_std"),
        0.1,
        {"loss_type": "grpo", "scale_rewards": "batch"},
    ),
    "dr_grpo": (POLICY_LOSSES["dr_grpo"], 0.1, {"loss_type": "dr_grpo", "scale_rewards": "none"}),
    "dapo": (POLICY_LOSSES["dapo"], 0.1, {"loss_type": "dapo", "epsilon_high": 0.28}),
    "cispo": (
        POLICY_LOSSES["cispo"],
        0.3,
        {"loss_type": "cispo", "epsilon_high": 5.0},
    ),  # of the ratio itself, not 1 + it
    "cispo, 1.2": (POLICY_LOSSES["cispo"].but(clip=(1.0, 0.2)), 0.1, {"loss_type": "cispo", "epsilon_high": 1.2}),
    "rloo": (POLICY_LOSSES["rloo"], 0.03, {"beta": 0.0}),
}


def trl_trainer(tiny, folder, is_rloo, settings):
    """GRPOTrainer or RLOOTrainer on a CPU, with an adapter that is away from the reference, and a batch of its own."""
    import trl
    from datasets import Dataset
    from peft import LoraConfig

    torch.manual_seed(0)  # for the adapter; the trainer seeds its own answers
    model, tokenizer = tiny
    args = (trl.RLOOConfig if is_rloo else trl.GRPOConfig)(
        output_dir=str(folder), report_to="none", use_cpu=True, bf16=False, gradient_checkpointing=False,
        per_device_train_batch_size=8, steps_per_generation=4, gradient_accumulation_steps=2, num_generations=8,
        max_completion_length=LONGEST, temperature=TEMPERATURE,
        generation_kwargs={"sequence_bias": [[[tokenizer.eos_token_id], 1.0]]}, **settings,
    )  # fmt: skip
    trainer = (trl.RLOOTrainer if is_rloo else trl.GRPOTrainer)(
        model=copy.deepcopy(model), args=args, processing_class=tokenizer,
        train_dataset=Dataset.from_dict({"prompt": PROMPTS}), reward_funcs=lambda **_: REWARDS.flatten().tolist(),
        peft_config=LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM"),
    )  # fmt: skip
    trainer.current_gradient_accumulation_steps = 2
    policy = Policy(trainer.model.double().train(), TEMPERATURE)  # float32 agrees too, but only just to 1e-5
    move(policy.trainable, 0.1)
    return trainer, policy, trainer._generate_and_score_completions([{"prompt": p} for p in PROMPTS for _ in range(8)])


@pytest.mark.parametrize("name", CASES)
def test_advantages_loss_and_gradient_are_those_of_trl(name, tiny, tmp_path):
    from trl.trainer.utils import split_tensor_dict

    kind, moved, settings = CASES[name]
    trainer, policy, batch = trl_trainer(tiny, tmp_path, name == "rloo", settings)
    advantages = by_row(partial(group_advantages, kind.advantage), REWARDS.nan_to_num(), ~REWARDS.isnan()).flatten()
    close(advantages, batch["advantages"], atol=1e-6)
    prompts, answers = (
        [ids[mask > 0].tolist() for ids, mask in zip(batch[f"{part}_ids"], batch[f"{part}_mask"], strict=True)]
        for part in ("prompt", "completion")
    )
    lengths = tensor(list(map(len, answers)))
    assert len(lengths.unique()) > 3 and LONGEST in lengths  # some are cut off
    weights = length_weights(kind.length_norm, lengths, LONGEST, lengths)
    steps = slice(0, 16), slice(16, 32)
    texts = [list(zip(prompts[step], answers[step], strict=True)) for step in steps]
    inputs = [inputs_of([x + y for x, y in pairs], [range(len(x), len(x + y)) for x, y in pairs]) for pairs in texts]
    old = [policy(part)[0].detach() for part in inputs]
    move(policy.trainable, moved, seed=2)
    parts, seen = split_tensor_dict(batch, 4), set()
    for step, tokens, old_logp, own in zip(steps, inputs, old, (parts[:2], parts[2:]), strict=True):
        answer = torch.repeat_interleave(torch.arange(16), lengths[step])
        (logp, *_), (reference, _) = policy(tokens), policy.reference(tokens)
        advantage, weight = advantages[step][answer], weights[step][answer]
        loss, stopped = policy_loss(kind, logp, old_logp, advantage, weight, answer)
        weighted = old_logp if settings.get("use_bias_correction_kl") else None
        k3, k2 = (losses.kl_per_token(kind, logp, reference, old_logp=weighted) for kind in ("k3", "k2"))
        kl = k3 if weighted is None else k2 + (k3 - k2).detach()  # k3's value and k2's slope
        loss = loss + settings.get("beta", 0.0) * (weight * kl).sum()
        mine = loss / 16  # answers of an optimizer step
        trainer.model.train()  # a policy scores as it samples, in eval()
        theirs = sum(trainer._compute_loss(trainer.model, part) for part in own)
        theirs = theirs / 2 if name == "rloo" else theirs  # there transformers divides by the accumulation
        close(mine, theirs, atol=5e-6)
        gradients = [torch.autograd.grad(loss, policy.trainable) for loss in (mine, theirs)]
        norm = torch.stack([gradient.norm() for gradient in gradients[1]]).norm().item()
        assert norm > 0.1
        for ours, other in zip(*gradients, strict=True):
            close(ours, other, atol=1e-5)
            assert (ours - other).norm() < 1e-5 * norm
        seen |= set(zip(stopped.tolist(), advantage.sign().tolist(), strict=True))
    both = {(True, 1.0), (True, -1.0), (False, 1.0), (False, -1.0)}
    assert seen >= both or (name == "cispo" and any(stopped for stopped, _ in seen))  # few are above 5


# -- by hand

LENGTHS = tensor([3, 1, 4, 2])
ANSWER = torch.repeat_interleave(torch.arange(4), LENGTHS)
ADVANTAGE = doubles(1.0, -2.0, 0.5, -1.0)[ANSWER]
WEIGHT = (1.0 / LENGTHS.double())[ANSWER]


def drawn(name, seed=0):
    """Log-probs of ten tokens of four answers, and old ones not far from what the loss's clip allows."""
    draw = torch.Generator().manual_seed(seed)
    logp = -3 * torch.rand(10, generator=draw, dtype=torch.float64)
    spread = 0.001 if "gspo" in name else 0.3
    return logp, logp - spread * torch.randn(10, generator=draw, dtype=torch.float64)


def policy_loss(kind, logp, old, advantage, weight, answer):
    """The sum over tokens, and which of them the clip stopped."""
    values, stopped = losses.policy_loss(kind, logp, old, advantage, answer)
    return (weight * values).sum(), stopped


def by_logp(kind, logp, old, advantage=ADVANTAGE, weight=WEIGHT, answer=ANSWER):
    """Loss, its gradient by the log-probs, and which tokens the clip stopped."""
    logp = logp.clone().requires_grad_()
    loss, stopped = policy_loss(kind, logp, old, advantage, weight, answer)
    loss.backward()
    return loss.detach(), logp.grad, stopped


@pytest.mark.parametrize("name", [name for name in POLICY_LOSSES if name != "cispo"])
@pytest.mark.parametrize(
    ("advantage", "ratio", "loss", "gradient"),
    [(1, 1.25, -1.25, -1.25), (-1, 0.9, 0.9, 0.9), (0, 5.0, 0, 0), (1, 1.5, -1.3, 0), (1, 0.5, -0.5, -0.5),
     (-1, 0.75, 0.8, 0), (-1, 1.5, 1.5, 1.5)],
)  # fmt: skip
def test_the_clip_stops_two_of_four_ways(name, advantage, ratio, loss, gradient):
    kind, old = POLICY_LOSSES[name].but(clip=(0.2, 0.3)), doubles(-2.0)
    found = by_logp(kind, old + math.log(ratio), old, doubles(advantage), doubles(1.0), tensor([0]))
    close(found[0], loss)
    close(found[1], [gradient])
    assert found[2].item() == (advantage != 0 and gradient == 0)


@pytest.mark.parametrize(("advantage", "ratio", "gradient"), [(1, 6, -5), (-1, 6, 5), (1, 0.5, -0.5), (-1, 0.01, 0.01)])
def test_cispo_bounds_the_weight_and_keeps_the_gradient(advantage, ratio, gradient):
    old, logp = doubles(-2.0), doubles(-2.0) + math.log(ratio)
    loss, found, stopped = by_logp(POLICY_LOSSES["cispo"], logp, old, doubles(advantage), doubles(1.0), tensor([0]))
    close(found, [gradient])
    close(loss, gradient * logp.item())
    assert stopped.item() == (ratio > 5)
    both = POLICY_LOSSES["cispo"].but(clip=(0.2, 4.0))
    assert by_logp(both, logp, old, doubles(advantage), doubles(1.0), tensor([0]))[2].item() == (not 0.8 < ratio < 5)


@pytest.mark.parametrize(("name", "log"), [("gspo", 0.1), ("gspo_token", 0.1), ("rloo", 0.3)])
def test_the_ratio_of_an_answer(name, log):
    """The geometric mean of its tokens' ratios; with `rloo` their product."""
    old, log_ratio, third = doubles(-2.0, -2.0, -2.0), doubles(0.1, 0.3, -0.1), doubles(1.0, 1.0, 1.0) / 3
    assert math.exp(log) == pytest.approx(log_ratio.exp().prod().item() ** (1 if name == "rloo" else 1 / 3))
    kind = POLICY_LOSSES[name].but(clip=(0.9, 0.9))
    loss, gradient, _ = by_logp(kind, old + log_ratio, old, -3 * third, third, tensor([0, 0, 0]))
    close(loss, math.exp(log))
    close(gradient, [math.exp(log) * (1 if name == "rloo" else 1 / 3)] * 3)


@pytest.mark.parametrize(("name", "seed"), itertools.product(POLICY_LOSSES, range(5)))
def test_gradients_by_finite_differences(name, seed):
    logp, old = drawn(name, seed)
    _, gradient, stopped = by_logp(POLICY_LOSSES[name], logp, old)
    assert name == "cispo" or 0 < stopped.sum() < 10
    same = POLICY_LOSSES["gspo" if name == "gspo_token" else name]  # its detached ratio stands for the one of gspo

    def loss(step):
        if name == "cispo":  # its detached ratio is held
            return -(WEIGHT * (logp - old).exp().clamp(max=5) * ADVANTAGE * (logp + step)).sum()
        return policy_loss(same, logp + step, old, ADVANTAGE, WEIGHT, ANSWER)[0]

    steps = 1e-6 * torch.eye(10, dtype=torch.float64)
    close(gradient, [((loss(step) - loss(-step)) / 2e-6).item() for step in steps], atol=1e-7)


def test_gspo_token_is_gspo_where_the_tokens_of_an_answer_have_one_advantage():
    logp, old = drawn("gspo")
    for of_gspo, of_tokens in zip(
        *(by_logp(POLICY_LOSSES[name], logp, old) for name in ("gspo", "gspo_token")), strict=True
    ):
        close(of_tokens, of_gspo)
    own = torch.randn(10, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    _, gradient, stopped = by_logp(POLICY_LOSSES["gspo_token"], logp, old, own)
    ratio = torch.stack([gaps.mean().exp() for gaps in (logp - old).split(LENGTHS.tolist())])[ANSWER]
    assert torch.equal(stopped, (ratio > 1 + 4e-4) & (own > 0) | (ratio < 1 - 3e-4) & (own < 0))
    close(gradient, torch.where(stopped, 0.0, -WEIGHT * ratio * own))
    assert (by_logp(POLICY_LOSSES["gspo"], logp, old, own)[1] - gradient).abs().max() > 0.01


def test_the_first_update_of_gspo_is_that_of_grpo():
    """Of l = o; also through AdamW, which makes much of small differences."""
    moved = {}
    for name in ("grpo", "gspo", "gspo_token"):
        logits = torch.nn.Parameter(torch.linspace(-1, 1, 40, dtype=torch.float64).view(10, 4))
        logp = logits.log_softmax(-1)[:, 0]
        _, gradient, stopped = by_logp(POLICY_LOSSES[name], logp.detach(), logp.detach())
        close(gradient, -WEIGHT * ADVANTAGE)
        assert not stopped.any()
        policy_loss(POLICY_LOSSES[name], logp, logp.detach(), ADVANTAGE, WEIGHT, ANSWER)[0].backward()
        torch.optim.AdamW([logits], lr=0.01).step()
        moved[name] = logits.detach()
    close(moved["gspo"], moved["grpo"])
    assert torch.equal(moved["gspo_token"], moved["grpo"])


@pytest.mark.parametrize(("name", "dtype"), itertools.product(POLICY_LOSSES, (torch.float32, torch.float64)))
def test_extreme_ratios_and_no_tokens(name, dtype):
    logp, advantage, weight = (column.to(dtype) for column in (drawn(name)[0], ADVANTAGE, WEIGHT))
    for far in (1000.0, -1000.0):
        loss, gradient, _ = by_logp(POLICY_LOSSES[name], logp, logp - far, advantage, weight)
        assert loss.isfinite() and gradient.isfinite().all()
    loss, gradient, stopped = by_logp(POLICY_LOSSES[name], *[logp[:0]] * 4, ANSWER[:0])
    assert (loss.item(), gradient.shape, stopped.shape, stopped.dtype) == (0.0, (0,), (0,), torch.bool)


@pytest.mark.parametrize("name", POLICY_LOSSES)
def test_any_split_by_answers_adds_up(name):
    columns = *drawn(name), ADVANTAGE, WEIGHT, ANSWER
    loss, gradient, stopped = by_logp(POLICY_LOSSES[name], *columns)
    splits = slice(4), slice(4, 8), slice(8, 10)
    parts = [by_logp(POLICY_LOSSES[name], *(column[split] for column in columns)) for split in splits]
    close(sum(part[0] for part in parts), loss)
    close(torch.cat([part[1] for part in parts]), gradient)
    assert torch.equal(torch.cat([part[2] for part in parts]), stopped)


# -- credit


def credited(kind, rewards, scored=None):
    rewards = torch.as_tensor(rewards, dtype=torch.float64)
    return by_row(partial(group_advantages, kind), rewards, None if scored is None else tensor(scored))


@pytest.mark.parametrize(
    ("kind", "half"), [("group_std", 0.865875), ("group", 0.5), ("leave_one_out", 2 / 3), ("batch_std", 1.07989)]
)
def test_advantages_by_hand(kind, half):
    """Standard deviations: sqrt(1 / 3) of the group, sqrt(3 / 14) of all eight, and 1e-4."""
    expected = [[half, -half, -half, half], [0.0] * 4]
    close(credited(kind, [[1, 0, 0, 1], [0, 0, 0, 0]]), expected, atol=1e-6)
    assert torch.equal(credited("none", expected, [[True] * 4, [False] * 4]), doubles(*expected))
    with pytest.raises(ValueError, match="unknown advantage 'median'"):
        credited("median", expected)


@pytest.mark.parametrize("kind", ["group_std", "group", "batch_std", "leave_one_out"])
def test_who_is_not_scored_is_in_no_mean_and_who_has_nobody_to_differ_from_gets_exactly_0(kind):
    found = credited(kind, [[1, 50, 0, 0, 1]], [[True, False, True, True, True]])[0]
    assert found[1] == 0
    close(found[[0, 2, 3, 4]], credited(kind, [[1, 0, 0, 1]])[0])
    for reward, count in itertools.product((0.1, 0.3, 1 / 3), range(2, 9)):
        rewards = tensor([[reward] * count, [0.0] * (count - 1) + [1.0]])
        assert (by_row(partial(group_advantages, kind), rewards)[0] == 0).all()
    for scored in ([True, False, False], [False] * 3):
        assert (credited(kind, [[0.7, 50, 50], [0, 1, 2]], [scored, [True] * 3])[0] == 0).all()
        assert (credited(kind, [[0.7, 50, 50]], [scored]) == 0).all()


@pytest.mark.parametrize(("p", "weight"), [(0.02, 2.41), (0.1, 2.18), (0.5, 1.74)])
def test_group_std_weights_a_prompt_of_binary_rewards(p, weight):
    """c_8(p): the expected gradient by that of p, E[mean of A (r - p)] / p (1 - p), and mean A r is m (1 - m) / s."""
    rewards = doubles(*([1.0] * k + [0.0] * (8 - k) for k in range(9)))
    chances = doubles(*(math.comb(8, k) * p**k * (1 - p) ** (8 - k) for k in range(9)))
    means = (credited("group_std", rewards) * (rewards - p)).mean(-1)
    m, s = rewards.mean(-1), rewards.std(-1)
    close(means, (m * (1 - m) / s).nan_to_num(), atol=1e-3)
    assert (chances * means).sum().item() / (p * (1 - p)) == pytest.approx(weight, abs=0.005)


@pytest.mark.parametrize(("kind", "factor"), [("leave_one_out", 1.0), ("none", 1.0), ("group", 2 / 3)])
def test_leave_one_out_is_unbiased(kind, factor):
    """On a bandit of three arms, over all 27 groups of three."""
    logits, paid = doubles(0.5, -0.3, 0.1).requires_grad_(), doubles(1.0, 0.2, -0.5)
    groups = tensor(list(itertools.product(range(3), repeat=3)))
    log_p = logits.log_softmax(-1)
    (true,) = torch.autograd.grad((log_p.exp() * paid).sum(), logits, retain_graph=True)
    logp, chance = log_p[groups].flatten(), log_p[groups].sum(-1).exp().detach().repeat_interleave(3)
    advantage = credited(kind, paid[groups]).flatten()
    loss, _ = policy_loss(POLICY_LOSSES["rloo"], logp, logp.detach(), advantage, chance / 3, torch.arange(81))
    close(torch.autograd.grad(-loss, logits)[0], factor * true)


@pytest.mark.parametrize("w", [0.5, 1.0, 4.0])
def test_an_opponent_of_the_whole_group_is_nothing_to_the_others(w):
    """r + w (r - r of the opponent)."""
    r, opponents = doubles([1.0, 0.0, 0.5, 1.0], [0.0, 0.25, 0.0, 0.0]), doubles([1.0], [0.5])
    both = r + w * (r - opponents)
    close(credited("group_std", both), credited("group_std", r), atol=1e-3)  # the 1e-4 weighs less
    assert torch.equal(credited("leave_one_out", both), (1 + w) * credited("leave_one_out", r))


@pytest.mark.parametrize(("length", "expected"), [(0, 0), (80, 0), (90, -0.5), (100, -1), (101, -1)])
def test_overlong_penalty_by_hand(length, expected):
    assert overlong_penalty(length, 100, 20) == expected
    assert overlong_penalty(length, 100, 0) == 0


# -- another engine's samples


def test_weights_of_a_sequence_correct_the_gradient_and_those_of_tokens_do_not():
    """The answers 00, 01, 10, 11 by the sampler's chances: the expected gradient, against that of the mean reward."""
    ours = doubles([0.5, -0.4], [1.0, 0.0], [-0.6, 0.3]).requires_grad_()  # of the first token; the second after 0, 1
    engine, paid = doubles([-0.2, 0.1], [0.0, 0.7], [0.4, -0.5]), doubles(1.0, 0.5, -0.5, 2.0)
    answer = torch.arange(4).repeat_interleave(2)
    logp, sampled = (
        torch.stack([log_p[0].repeat_interleave(2), log_p[1:].flatten()], dim=1).flatten()
        for log_p in (ours.log_softmax(-1), engine.log_softmax(-1))
    )
    (true,) = torch.autograd.grad((logp.view(4, 2).sum(-1).exp() * paid).sum(), ours, retain_graph=True)
    chance = sampled.view(4, 2).sum(-1).exp()[answer]
    for level, cap, exact in (("sequence", 1e6, True), ("sequence", 1.0, False), ("token", 1e6, False)):
        weight = chance * sampler_weights(level, cap, logp, sampled, answer)
        loss, _ = policy_loss(POLICY_LOSSES["grpo"], logp, logp.detach(), paid[answer], weight, answer)
        (found,) = torch.autograd.grad(-loss, ours, retain_graph=True)
        error = (found - true).norm() / true.norm()
        assert error < 1e-12 if exact else error > 0.05


@pytest.mark.parametrize(
    ("level", "cap", "expected"),
    [("token", 9, [4, 0.5, 3]), ("token", 2, [2, 0.5, 2]), ("sequence", 9, [2, 2, 3]), ("sequence", 2.5, [2, 2, 2.5])],
)
def test_sampler_weights_by_hand(level, cap, expected):
    old, answer = doubles(4.0, 0.5, 3.0).log().requires_grad_(), tensor([0, 0, 1])
    found = sampler_weights(level, cap, old, torch.zeros_like(old), answer)
    close(found, expected)
    assert not found.requires_grad
    assert len(sampler_weights(level, cap, old[:0], old[:0], answer[:0])) == 0

"""Recipes on the tree: what attempts earn, by hand, and what that does to the weights."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean, pstdev

import pytest
import torch
from accelerate import Accelerator
from helpers import naive
from helpers.leaves import accumulate
from helpers.weights import move
from test_feedback import folder as folder
from test_reviews import SELF, chat, joined
from test_sequential import STOPPING, tree

from lib.core.config import ScoreConfig, ScoreTrain, load
from lib.core.errors import ConfigError
from lib.rl.credit import advantages_of, peers_of
from lib.rl.plan import stages_of
from lib.rl.recipes.choice import NAMES, recipe_of
from lib.rl.recipes.contract import StepAnswers
from lib.rl.reviews import Review
from lib.rl.score import ScoreRun
from lib.rl.task import load_task
from lib.rl.tree import attempts_in, nodes

SETTINGS = {
    "score": (*STOPPING, "train.alpha=2"),
    "multiturn": (*STOPPING, "train.stage1_steps=0", "train.recipe=multiturn", "train.discount=0.5"),
    "thinktwice": (
        "prompts.feedback=none",
        "train.stage1_steps=0",
        "train.recipe=thinktwice",
        "train.followed_attempts=1",
    ),
    "ufo": (*STOPPING, "train.stage1_steps=0", "train.recipe=ufo", "train.discount=0.5"),
    "pag": (*SELF, "prompts.stop=self", "train.stage1_steps=0", "train.recipe=pag", "train.alpha=2"),
    "reflect": (*SELF, "prompts.self.right=null", "prompts.stop=verdict", "train.stage1_steps=0",
                "train.recipe=reflect"),
}  # fmt: skip


def paid(name, stage=2, **settings):
    """What each answer of two chats earns, 1 behind 22, and 3 alone; rewards are 0.1, 0.2, ... by number."""
    found = nodes([tree("221", "3")])
    step = StepAnswers(found, [0.1, 0.2, 0.3, 0.4])  # of 2, 3, then 2, then 1
    assert [answer.text for answer in step.answers] == list("2321")
    recipe = recipe_of(ScoreTrain(recipe=name, **settings))
    return [value for node in found for value in recipe.paid(node, step, stage)]


def test_what_each_recipe_pays_by_hand():
    assert paid("score", alpha=2.0) == pytest.approx([0.1, 0.2, 0.3, 0.4 + 2])
    assert paid("score", alpha=2.0, bonus_on="reward") == pytest.approx([0.1, 0.2, 0.3 + 2 * 0.2, 0.4 + 2 * 0.1])
    assert paid("score", alpha=0.0, discount=0.5) == pytest.approx([0.1, 0.2, 0.15, 0.1])
    assert paid("score", stage=1) == pytest.approx([0, 0, 0.3, 0.4])
    assert paid("multiturn", discount=0.5) == pytest.approx([0.1, 0.2, 0.1, 0.1])  # a quarter of 0.4
    assert paid("multiturn") == pytest.approx([0.4, 0.2, 0.4, 0.4])
    assert paid("thinktwice") == [0, 0, 0, 1]
    assert paid("ufo", discount=0.5) == pytest.approx([0.1, 0.2, 0.1 - 0.1, 0.1])


def test_a_bonus_on_both_attempts_pays_for_failing_first():
    """Of two first attempts, revised twice each, all right but one: the wrong one earns more than the right one."""
    assert paid("score", alpha=2.0, bonus_to="both") == pytest.approx([0.1, 0.2, 0.3 + 2, 0.4 + 2])
    on_reward = paid("score", alpha=2.0, bonus_to="both", bonus_on="reward")
    assert on_reward == pytest.approx([0.1 + 2 * 0.2, 0.2, 0.3 + 2 * 0.2 + 2 * 0.1, 0.4 + 2 * 0.1])
    assert paid("score", stage=1, bonus_to="both") == paid("score", stage=1)

    first = tree("2", "1")
    both = [replace(answer, following=tree("1", text)) for answer, text in zip(first.answers, "21", strict=True)]
    found = nodes([replace(first, answers=both)])
    step = StepAnswers(found, [0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    assert [answer.text for answer in step.answers] == list("211211")

    def earned(**settings):
        recipe = recipe_of(ScoreTrain(alpha=4.0, **settings))
        return [value for node in found for value in recipe.paid(node, step, 2)]

    assert earned() == [0, 1, 1 + 4, 0, 1, 1]
    assert earned(bonus_to="both") == [0 + 4 * 0.5, 1, 1 + 4, 0, 1, 1]

    lost = found[1].group.answers  # one that was not judged tells nothing of the attempt before it
    assert [answer.text for answer in lost] == ["1", "2"]
    lost[1] = replace(lost[1], verdict=lost[1].verdict._replace(scored=False))
    step = replace(step)
    assert earned(bonus_to="both") == [0 + 4 * 1, 1, 1 + 4, None, 1, 1]


def test_what_depends_on_a_missing_verdict_earns_nothing():
    found = nodes([tree("221", "3")])
    last = found[-1].group
    last.answers[0] = replace(last.answers[0], verdict=last.answers[0].verdict._replace(scored=False))
    step = StepAnswers(found, [0.1, 0.2, 0.3, 0.0])
    for name in ("multiturn", "ufo"):
        recipe = recipe_of(ScoreTrain(recipe=name))
        assert [value for node in found for value in recipe.paid(node, step, 2)] == [None, 0.2, None, None]


def test_chats_that_stopped_are_compared_with_by_what_stands_at_their_end():
    found, standing = nodes([tree("221", "3")]), [0.1, 0.2, 0.3, 0.4]
    for followed, ended, advantage in ((None, [1], 0.5), (1, [], 0.0)):  # after 3 the chat ended, or not
        peers = peers_of(found, 3, followed)
        assert peers.sets[3] == (3, 0) and peers.stand_ins == [(turn, 0, number) for turn in (2, 3) for number in ended]
        stands = [standing[number] for *_, number in peers.stand_ins]
        values = advantages_of("leave_one_out", peers, [0, 0, 0, 0.7], [True] * 4, Accelerator(), None, stands)
        assert values[3] == pytest.approx(advantage)
    penalties = [0.0, 0.2, 0.0, 0.3]
    values = advantages_of("leave_one_out", peers_of(found, 3, 1), [0.0] * 4, [True] * 4, Accelerator(), penalties)
    assert values[3] == pytest.approx(-0.3)  # the KL is paid by an answer that is compared with no other


def test_a_check_that_ends_a_chat_leaves_the_attempt_that_it_is_about():
    found = nodes([joined(chat("1", "r"), chat("2", "w", "1"))])
    assert [node.name for node in found] == ["attempt1", "check1", "check1", "attempt2"]
    assert peers_of(found, 3) == ([(1, 0), (1, 0), (2, 0), (2, 0), (3, 0)], [(3, 0, 0)])


# -- losses: the same once more, from the trees, every answer in a text of its own, with plain autograd


def earned_by_hand(name, path, chats):
    """What the last answer of a path earns; `chats` are the paths that go through it, to their ends."""
    (group, answer), own, chats = path[-1], attempts_in(path), [attempts_in(chat) for chat in chats]
    is_review = group.prompt.review is not None
    if name == "reflect":
        return fmean(chat[len(own)].verdict.match for chat in chats) if is_review else 0.0
    if name == "pag" and is_review:
        return float((answer.verdict.answer == "right") == own[-1].verdict.match and answer.verdict.answer != "")
    if name in ("score", "pag"):
        gain = answer.verdict.match - own[-2].verdict.match if len(own) > 1 else 0
        return answer.verdict.reward + 2 * gain
    if name == "thinktwice":
        return float(answer.verdict.match)
    value = fmean(0.5 ** (len(chat) - 1) * chat[-1].verdict.reward for chat in chats)
    repeats = answer.verdict.answer and answer.verdict.answer in [earlier.verdict.answer for earlier in own[:-1]]
    return value - (0.25 if name == "ufo" and repeats else 0)


def is_last(name, path):
    """Whether nothing follows the last answer of a path, by the rule of the recipe's chats."""
    (group, answer), turns = path[-1], 5 if name in ("pag", "reflect") else 3
    if len(path) == turns:
        return True
    if name == "pag":
        return group.prompt.review is not None and answer.verdict.answer == "right"
    return group.prompt.review is None and answer.verdict.match


def ids(path):
    """Which answers these are: others may be equal to them."""
    return tuple(id(answer) for _, answer in path)


def walk(group, path=()):
    """Yields the path to each answer of a tree, in the order of `nodes`."""
    own = [(*path, (group, answer)) for answer in group.answers]
    yield from own
    for way in own:
        if way[-1][1].following:
            yield from walk(way[-1][1].following, way)


def scaled(advantages, is_review):
    """Advantages over the standard deviation of those of their role."""
    spread = {
        role: pstdev([a for a, r in zip(advantages, is_review, strict=True) if r == role]) for role in (True, False)
    }
    return [value / spread[role] for value, role in zip(advantages, is_review, strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_of_each_recipe_is_the_one_by_hand(folder, name, monkeypatch):
    says = ["right", "wrong", ""]  # a random model hardly ever ends in a phrase
    monkeypatch.setattr(Review, "judgement", lambda self, completion, text: says[sum(completion.ids) % 3])
    more = ("train.kl=exact", "generation.temperature=0.8", "train.beta1=0.5", "train.attempts_per_prompt=4")
    config = load(ScoreConfig, Path("tiny.yaml"), [*SETTINGS[name], *more])
    run = ScoreRun(load_task(config, say=lambda text: None))
    move(run.policy.trainable, 0.2)
    stage = run.stages[-1]
    trees = run.sample(stage)
    credit = run.credit(stage, trees)
    answers = [path for tree in trees for path in walk(tree)]
    assert [id(path[-1][1]) for path in answers] == [id(a) for node in credit.nodes for a in node.group.answers]
    if name == "thinktwice":
        assert [bool(path[0][1].following) for path in answers if len(path) == 1] == [True, False, False, False] * 4
    else:
        assert all((path[-1][1].following is None) == is_last(name, path) for path in answers)
        assert {len(path) for path in answers if is_last(name, path)} > ({2} if name == "pag" else {1})
    ends = [path for path in answers if path[-1][1].following is None]
    earned = {
        ids(path): earned_by_hand(name, path, [end for end in ends if ids(end)[: len(path)] == ids(path)])
        for path in answers
    }
    advantages = []
    for path in answers:
        siblings = [other for other in answers if other[-1][0] is path[-1][0] and ids(other) != ids(path)]
        if len(path) >= 3:  # one answer behind each of turn 2: against those behind the same attempt 1
            siblings = [answer for answer in answers if len(answer) == len(path) and answer[0][1] is path[0][1]
                        and answer[1][1] is not path[1][1]]  # fmt: skip
        ended = [chat for chat in ends if chat[0][1] is path[0][1] and len(chat) < len(path)]  # with what stands there
        is_paid = name != "reflect" or path[-1][0].prompt.review is not None
        own, others = earned[ids(path)], [earned[ids(other)] for other in siblings]
        others += [attempts_in(chat)[-1].verdict.reward * is_paid for chat in ended]
        advantages.append(own - fmean(others) if others and own is not None else 0.0)
    if name == "pag":
        advantages = scaled(advantages, [path[-1][0].prompt.review is not None for path in answers])
    assert credit.advantage.tolist() == pytest.approx(advantages, abs=1e-5)
    assert any(advantages)
    run.policy.zero_grad()
    expected, divisor = 0, 4 * 4 * 2  # prompts x K1 x K2
    for path, advantage in zip(answers, advantages, strict=True):
        if earned[ids(path)] is None:
            continue
        logp, _, kl = naive.per_token(run.policy, path[-1][0].prompt.ids, path[-1][1].completion.ids, 0.8)
        weight = {1: 2, 2: 4 if name == "thinktwice" else 1}.get(len(path), 1)  # one of four solutions is reviewed
        expected += weight * (0.5 * kl - advantage * logp).mean() / divisor
    expected.backward()
    by_hand = torch.cat([parameter.grad.flatten().clone() for parameter in run.policy.trainable])
    run.policy.zero_grad()
    assert credit.divisor == divisor
    assert accumulate(run, credit)["loss"] == pytest.approx(expected.item(), abs=1e-5)
    found = torch.cat([parameter.grad.flatten() for parameter in run.policy.trainable])
    torch.testing.assert_close(found, by_hand, rtol=1e-4, atol=1e-5)


def test_a_recipe_that_is_not_given_what_it_needs_is_refused(folder):
    for overrides, told in {
        ("train.recipe=ufo", "train.stage1_steps=0"): ("prompts.stop: set|stop: verdict", "discount below 1"),
        ("train.recipe=thinktwice", "train.stage1_steps=0"): ("set the latter to 1", "feedback: none and stop: never"),
        ("train.recipe=multiturn",): ("multiturn has no stage I",),
        ("train.recipe=pag", "train.stage1_steps=0"): ("set feedback: self and stop: self",),
        ("train.recipe=reflect", "train.stage1_steps=0", "prompts.feedback=self"): (
            "feedback: self and stop: verdict",
        ),
        ("train.recipe=multiturn", "train.followed_attempts=1"): ("and nothing follows some",),
        ("train.recipe=ufo", "train.followed_attempts=1"): ("and nothing follows some",),
        ("train.bonus_to=both", "train.followed_attempts=1"): ("and nothing follows some",),
    }.items():
        with pytest.raises(ConfigError) as caught:
            load(ScoreConfig, Path("tiny.yaml"), list(overrides))
        for entry in told:
            assert any(part in str(caught.value) for part in entry.split("|"))
    config = load(ScoreConfig, Path("tiny.yaml"), ["train.recipe=multiturn", "train.stage1_steps=null"])
    assert [stage.number for stage in stages_of(config, 20)] == [2]

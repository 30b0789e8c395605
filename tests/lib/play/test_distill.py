"""On-policy distillation in both RL scripts: gradients against plain autograd, contexts, teachers that cannot teach."""

import copy
import json
from pathlib import Path

import pytest
import torch
import yaml
from conftest import SCRATCH, TEMPLATE
from helpers.leaves import accumulate
from helpers.tiny import SELFPLAY, limits, opened, play_step, stages
from helpers.weights import move
from test_selfplay import Says
from test_selfplay import folder as folder

from lib.core.config import FromScratch, ScoreConfig, SelfPlayConfig, load
from lib.core.errors import ConfigError
from lib.model.scratch import build
from lib.play.gspo import GspoRun
from lib.play.preview import preview_selfplay
from lib.rl.score import ScoreRun
from lib.rl.task import load_task
from lib.rl.teachers import refuse_other_tokens
from lib.rl.tree import nodes

PURE = "distill.reward_weight=0"
SCORE = SELFPLAY | {
    "prompts": {"user": "{question}", "self_correction": "again"},
    "generation": limits(prompts=(8, 40), answers=(6, 6)),
    "train": stages((1, 1), 3, attempts_per_prompt=2, revisions_per_attempt=2, beta1=0.0, beta2=0.0),
}


@pytest.fixture
def teacher(tiny, tmp_path):
    return saved_teacher(tiny, tmp_path)


def saved_teacher(tiny, place):
    """A base that differs from the policy's in every weight, with the same tokenizer; saved as `teacher`."""
    model = copy.deepcopy(tiny[0])
    move(model.parameters(), 0.1, seed=7)
    for part in (model, tiny[1]):
        part.save_pretrained(place / "teacher")
    return model


def log_p(model, before, ids):
    return model(torch.tensor([before + ids])).logits[0, len(before) - 1 : -1].float().log_softmax(-1)


def kl_of(policy, teacher, own, theirs, ids, direction="reverse"):
    """KL(policy || teacher), or the forward one, at each of an answer's tokens, each behind its own prompt."""
    p = log_p(policy, own, ids)
    with torch.no_grad():
        q = log_p(teacher, theirs, ids)
    return (p.exp() * (p - q)).sum(-1) if direction == "reverse" else (q.exp() * (q - p)).sum(-1)


def gradient(run, loss):
    run.step.optimizer.zero_grad()
    loss.backward()
    return flat_gradient(run)


def flat_gradient(run):
    return torch.cat([parameter.grad.flatten() for parameter in run.policy.trainable])


def near(actual, expected, most=1e-5):
    assert expected.norm() > 1e-4
    assert (actual - expected).norm() <= most * expected.norm()


@pytest.mark.parametrize("direction", ["reverse", "forward"])
def test_the_gradient_is_that_of_the_whole_vocabulary(folder, teacher, direction):
    """GSPO with a local teacher, nothing else: 1/|y| sum_t KL of each answer, a mean over the step's answers."""
    way = f"distill.direction={direction}"
    with opened("distill.model.name=teacher", way, PURE, "train.minibatches=1", moved=0.2) as run:
        played = run.play()
        credit = run.credit(played, [])
        run.step.optimizer.zero_grad()
        numbers = accumulate(run, credit)
        ours = flat_gradient(run)
        answers = [(game.group.prompt.ids, answer.completion.ids) for game in played for answer in game.group.answers]
        kls = [kl_of(run.policy.model, teacher, prompt, prompt, ids, direction) for prompt, ids in answers]
        near(ours, gradient(run, torch.stack([kl.mean() for kl in kls]).mean()))
        assert numbers["distill_kl"] == pytest.approx(torch.cat(kls).mean().item(), rel=1e-4)
        assert run.distiller.numbers(run.accelerator) == {"distilled": 1.0}


def test_a_reward_beside_it_adds_its_own_gradient(folder, teacher):
    """The teacher's gradient plus reward_weight times that of the rewards, on the same answers."""
    found = {}
    both = ("distill.reward_weight=2",)
    for name, more in (("both", both), ("teacher", (PURE,)), ("reward", ("distill=null",))):
        with opened("distill.model.name=teacher", *more, "train.minibatches=1", moved=0.2) as run:
            played = run.play()
            credit = run.credit(played, [])
            run.step.optimizer.zero_grad()
            accumulate(run, credit)
            found[name] = flat_gradient(run)
    near(found["both"], found["teacher"] + 2 * found["reward"])


# -- SCoRe


def score_run(*overrides):
    config = load(ScoreConfig, Path("score.yaml"), list(overrides))
    run = ScoreRun(load_task(config, say=lambda text: None))
    move(run.policy.trainable, 0.2)
    return run


@pytest.fixture
def score_folder(folder, tiny_folder):
    config = {**SCORE, "model": {**SCORE["model"], "name": str(tiny_folder)}}
    Path("score.yaml").write_text(yaml.safe_dump(config))
    return folder


@pytest.mark.parametrize("shown", [None, "{question}={answer}"])
def test_both_attempts_of_a_tree_are_distilled_in_stage_two_and_the_second_alone_in_stage_one(
    score_folder, teacher, shown
):
    """A teacher that sees more reads it in the first prompt, and the first attempt as it was sampled."""
    run = score_run("distill.model.name=teacher", PURE, f"distill.shown={json.dumps(shown)}")
    with run.open():
        for stage in run.stages:
            trees = run.sample(stage)
            credit = run.credit(stage, trees)
            run.step.optimizer.zero_grad()
            accumulate(run, credit)
            ours, losses, leaves = flat_gradient(run), [], 0
            for node in nodes(trees):
                prompt, root = node.group.prompt, trees[node.tree].prompt
                seen = root.ids
                if shown:
                    asked = run.task.prompts.question(prompt.row) + "=" + prompt.row["answer"]
                    seen = run.task.prompts.prompt({**prompt.row, "question": asked}).ids
                    assert seen != root.ids
                theirs = seen + prompt.ids[len(root.ids) :]
                leaves += len(node.group.answers) * (node.attempt == 2)
                for answer in node.group.answers:
                    times = 2 if node.attempt == 1 else 1  # revisions that follow it
                    kl = kl_of(run.policy.model, teacher, prompt.ids, theirs, answer.completion.ids).mean()
                    losses += [times * kl] if stage.number == 2 or node.attempt == 2 else []
            near(ours, gradient(run, torch.stack(losses).sum() / leaves))


# -- the policy itself, which sees more


def test_the_policy_as_it_was_reads_the_right_answer(folder):
    with opened('distill.shown="{question}={answer}"', PURE, "train.minibatches=1",
                moved=0.2) as run:  # fmt: skip
        base = copy.deepcopy(run.policy)
        with torch.no_grad():  # the teacher is the policy before it was moved
            for parameter, before in zip(base.trainable, run.distiller.teacher.weights, strict=True):
                parameter.copy_(before)
        played = run.play()
        credit = run.credit(played, [])
        run.step.optimizer.zero_grad()
        accumulate(run, credit)
        ours, losses = flat_gradient(run), []
        for game in played:
            prompt = game.group.prompt
            seen = run.task.prompts.ids([{"role": "user", "content": f"{prompt.question}={prompt.row['answer']}"}])
            losses += [kl_of(run.policy.model, base.model, prompt.ids, seen, answer.completion.ids).mean()
                       for answer in game.group.answers]  # fmt: skip
        near(ours, gradient(run, torch.stack(losses).mean()))


def test_a_sibling_that_is_right_is_shown_and_never_the_answer_itself(folder):
    with opened('distill.shown="{question} {sibling}"', PURE, "train.batch_size=6") as run:
        played = run.play()
        found = nodes([game.group for game in played])
        weights = run.distiller.begin(found, [True] * found[-1].numbers.stop)
        before, decode = run.distiller._before, run.task.tokenizer.decode
        seen = 0
        for node in found:
            for number, answer in zip(node.numbers, node.group.answers, strict=True):
                right = [other.text for other, match in zip(node.group.answers, node.group.matches, strict=True)
                         if match and other is not answer]  # fmt: skip
                assert (weights[number] > 0) == (number in before) == bool(right)
                if right:
                    seen += 1
                    assert f"{node.group.prompt.question} {right[0]}" in decode(before[number])
        assert 0 < seen < len(weights)


def test_feedback_is_what_the_reward_explains_of_this_answer(folder):
    with opened("reward.fn=told_of", 'distill.shown="{question}!{feedback}"', PURE) as run:
        played = run.play()
        found = nodes([game.group for game in played])
        run.distiller.begin(found, [True] * found[-1].numbers.stop)
        assert run.distiller.distilled == 16  # more than a log explains
        for node in found:
            for number, answer in zip(node.numbers, node.group.answers, strict=True):
                asked = node.group.prompt
                told = f"{asked.question}!said: {asked.question} {answer.text}"
                assert run.distiller._before[number] == run.task.prompts.reworded(asked, told)


def test_a_context_that_is_too_long_is_left_out(folder):
    with opened(f'distill.shown="{{question}}{"0" * 130}"', PURE) as run:
        row = play_step(run)
    assert row["distilled"] == 0 and row["learned"] == 0 and row["idle"] == 1 and "distill_kl" not in row


# -- a teacher's hints


def test_hints_are_read_by_the_teacher_beside_the_failed_answers(folder):
    teacher = "servers.far.model=nobody", "servers.far.base_url=http://127.0.0.1:9/v1", "teacher.server=far"
    always = ("teacher.hint.neither=1", "teacher.hint.opponent_only=1", "reward.fn=helpers.tiny.nothing")
    with opened(*teacher, *always, "teacher.hint.train=distill", "distill={}", PURE, moved=0.2) as run:
        run.teacher.remote = Says("add them")
        played = run.play()
        assert run.assist(played) == []
        assert not [game for game in played if not game.outcome]
        credit = run.credit(played, [])
        assert credit.teacher_weight.tolist() == [1.0] * 16 and credit.advantage.abs().sum() == 0
        for number, before in run.distiller._before.items():
            prompt = played[number // 4].group.prompt
            hinted = {"role": "user", "content": f"{prompt.question} add them"}
            assert before == run.task.prompts.ids([hinted]) != prompt.ids
        row = run.update(played, credit)
        assert row["distill_kl"] > 0 and row["grad_norm"] > 0 and row["total/hints_used"] == 4
        assert not run.distiller.hinted  # they hold for this step alone


# -- who cannot teach


def test_other_tokens_are_refused_before_the_teacher_is_loaded(folder, tiny, teacher, monkeypatch):
    scratch = FromScratch(**{**SCRATCH, "characters": SCRATCH["characters"][::-1]})
    for part in build(scratch, TEMPLATE, seed=0):
        part.save_pretrained("other")
    config = load(SelfPlayConfig, Path("tiny.yaml"), ["distill.model.name=other"])
    monkeypatch.setattr("lib.rl.teachers.load_base", lambda *_: pytest.fail("weights were loaded"))
    told = r"distill.model: 'other' has another tokenizer: .* of the policy's .* token"
    for start in (preview_selfplay, lambda config: GspoRun(load_task(config, say=lambda text: None))):
        with pytest.raises(ConfigError, match=told):
            start(config)
    refuse_other_tokens(tiny[1], tiny[1], "the same")


@pytest.mark.parametrize(
    ("overrides", "told"),
    {
        ("distill={}",): "say in distill.shown what it sees beyond",
        ("distill.model.name=teacher", PURE, "train.resample_rounds=1"): "set resample_rounds: 0",
        ("servers.far.model=m", "teacher.server=far", "teacher.hint.train=distill"): "add distill: {}",
    }.items(),
)
def test_mistakes_are_told(folder, overrides, told):
    with pytest.raises(ConfigError, match=told):
        load(SelfPlayConfig, Path("tiny.yaml"), list(overrides))


def test_a_column_that_is_not_there(folder):
    config = load(SelfPlayConfig, Path("tiny.yaml"), ["distill.shown={question} {anser}"])
    with pytest.raises(ConfigError, match=r"distill.shown: nothing fills '\{anser\}'; did you mean 'answer'"):
        load_task(config, say=lambda text: None)


def test_a_dry_run_says_who_teaches(folder, teacher, capsys):
    preview_selfplay(load(SelfPlayConfig, Path("tiny.yaml"), ["distill.model.name=teacher", PURE]))
    said = capsys.readouterr().out
    assert "distillation: reverse KL to teacher, next to no reward" in said
    assert "weights of the teacher" in said

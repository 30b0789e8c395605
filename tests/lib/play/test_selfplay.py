"""Opponents, games, help and credit, on tiny real models; whole runs with servers stand in test_selfplay_runs.py."""

import copy
import datetime
import itertools
import json
import math
import random
from functools import partial
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
import torch
import yaml
from conftest import after
from helpers import tiny
from helpers.groups import by_row
from helpers.leaves import accumulate
from helpers.tiny import opened, play_step, rows_in, share, weights
from helpers.weights import move
from scipy.stats import binomtest

from data.builders import write_rows
from engine import Completion
from lib.core.config import ChatPrompts, Opponent, SelfPlayConfig, Server, Weighting, dump, load
from lib.core.errors import ConfigError
from lib.core.registry import Judged, register_reward
from lib.core.stats import wilson
from lib.generators.protocol import Reply, ReplyError
from lib.generators.remote import Remote
from lib.play.gspo import GspoRun, trained_rewards
from lib.play.gspo import rewards_of as earned
from lib.play.loss import notes_on
from lib.play.opponents import (
    EVALUATION,
    Game,
    OpponentAnswer,
    SnapshotOpponent,
    game_score,
    played_reward,
)
from lib.play.scoreboard import Scoreboard
from lib.rewards.judge import Verdict
from lib.rl.batching import micro_batches, sequences
from lib.rl.credit import group_advantages
from lib.rl.curriculum import Sampler, WeightedSampler
from lib.rl.evaluation import Answers, selected, summarise
from lib.rl.log_rows import brief
from lib.rl.prompts import ChatRenderer, Prompt, question_of
from lib.rl.step import TokenLogps
from lib.rl.task import load_task
from lib.rl.tree import Answer, Group, nodes

SERVER = {"base_url": "http://127.0.0.1:9/v1", "model": "nobody"}  # is never asked here
AWAY = f"servers.away={json.dumps(SERVER)}"
TEACHER = (AWAY, "teacher.server=away")
RIVAL = (AWAY, "opponent.server=away")
ALWAYS = ("teacher.hint.neither=1", "teacher.hint.opponent_only=1", "reward.fn=test_selfplay.digits_with_help")
folder = tiny.folder(tiny.SELFPLAY)


def digits_with_help(predictions, prompts):
    shares = [share(text) if "add" in prompt else 0.0 for text, prompt in zip(predictions, prompts, strict=True)]
    return [Judged({"digits": value}, match=value > 0) for value in shares]


def told_of_both(texts, rows):
    return [{"said": f"{row['question']} {text}"} for text, row in zip(texts, rows, strict=True)]


@register_reward("told_of", explain=told_of_both)
def told_of(predictions):
    return [Judged({"digits": 0.0}, match=False) for _ in predictions]


def unsure(predictions):
    return [Judged({"digits": share(text)}, match=False, scored="a" not in text) for text in predictions]


def logged(run, stream):
    return rows_in(run.config.run_dir / f"{stream}.jsonl")


def is_learned(credit):
    """By answer: whether it has a gradient."""
    return credit.learned


def answers_of(groups):
    return [answer for group in groups for answer in group.answers]


def groups_of(credit):
    return [node.group for node in credit.nodes]


def items_of(run, credit, pays=lambda *_: False):
    """The sequences of all minibatches."""
    return [item for part in credit.parts for item in sequences(part, credit.learned.__getitem__, pays)]


def score(reward, match=False, answer="", scored=True):
    return Verdict(reward, {"reward": reward}, match, answer, scored)


class Says:
    """In the place of lib.generators.remote.Remote: says these texts in turn, or fails where one is None."""

    def __init__(self, *texts):
        self.texts, self.requests = itertools.cycle(texts), []

    def ask(self, requests):
        self.requests += requests
        return [next(self.texts) for _ in requests]

    def answers(self, asked):
        return [ReplyError("timeout", "too late") if text is None else Reply(text) for text in asked]


# -- games


def test_a_game_by_hand():
    short, long, wrong = score(1, True, "12"), score(1, True, "12.00"), score(1, False, "1")
    cases = [
        (score(0.7), score(0.2, True), 1.0), (score(0.2, True), score(0.7), 0.0),  # the reward decides first
        (short, wrong, 1.0), (wrong, long, 0.0),  # of equal rewards, the right answer
        (short, long, 2 / 3), (long, short, 1 / 3), (short, score(1, True, " 34 "), 0.5),
        (score(0, answer="1"), score(0, answer="12345"), 0.5), (score(0.1 + 0.2), score(0.3), 0.5),
    ]  # fmt: skip
    for mine, theirs, expected in cases:
        assert game_score(mine, theirs) == expected
        assert game_score(theirs, mine) == pytest.approx(1 - expected)
    wrong_ones = [score(0, answer="x" * length) for length in range(4)]
    assert {game_score(*pair) for pair in itertools.product(wrong_ones, repeat=2)} == {0.5}


def rewards_of(scores, theirs, **settings):
    opponent = Opponent(snapshots={}, **settings) if settings else None
    theirs = OpponentAnswer(verdict=theirs)
    return torch.tensor([[played_reward(score.reward, score, theirs, opponent) for score in scores]])


def test_a_constant_leaves_with_the_baseline_and_a_game_does_not():
    scores = [score(r, r > 0.5, "1") for r in (0.0, 0.25, 0.75, 1.0)]

    def advantages(kind, theirs, **settings):
        return by_row(partial(group_advantages, kind), rewards_of(scores, theirs, **settings))

    for kind, scale in (("group_std", 1.0), ("group", 0.7), ("leave_one_out", 0.7)):  # an opponent that is missing
        masked = advantages(kind, None, use="win", weight=0.3)
        torch.testing.assert_close(masked, scale * advantages(kind, None), rtol=1e-3, atol=1e-6)
    assert rewards_of(scores, score(0.5), use="win", weight=0.2)[0].tolist() == pytest.approx([0, 0.2, 0.8, 1.0])
    assert rewards_of(scores, None, use="win", weight=0.2)[0, 0] == pytest.approx(0.1)  # missing is a tie
    assert torch.equal(rewards_of(scores, score(1.0), use="scoreboard"), rewards_of(scores, None))


def games_of(wins, losses):
    """As many decisive games, each of a prompt of its own."""
    return [(f"prompt {i}", i < wins, i >= wins) for i in range(wins + losses)]


def test_the_scoreboard_counts(tmp_path):
    board = Scoreboard()
    assert board.summary()["win_rate"] is None and board.summary()["win_rate_ci95"] == [None, None]
    policy, opponent = [True, True, False, False, None, True], [True, False, True, False, True, None]
    board.record([*zip("abcdef", policy, opponent, strict=True)], step=3)
    board.record([("g", True, False), ("a", False, False)], step=4)
    board.record([("a", None, True)], step=7)
    assert (board.both, board.policy_only, board.opponent_only, board.neither) == (1, 2, 1, 2)
    assert (board.total, board.summary()["n_decisive"], board.missing_games, board.missing_steps) == (
        6,
        3,
        3,
        [3, 7, 2],
    )
    board.assist({"hints_used": 2, "retries": 4}), board.assist({"retries": 1})
    assert board.assisted == {"hints_used": 2, "retries": 5} and board.total == 6
    board.write(tmp_path)
    written = json.loads((tmp_path / "scoreboard.json").read_text())
    assert written == board.summary() and [path.name for path in tmp_path.iterdir()] == ["scoreboard.json"]
    assert written["win_rate"] == pytest.approx(2 / 3)
    for wins, losses in [(2, 1), (0, 1), (1, 0), (5, 3), (0, 40), (40, 0), (311, 290)]:
        alone = Scoreboard()
        alone.record(games_of(wins, losses), step=1)
        expected = binomtest(wins, wins + losses).proportion_ci(method="wilson")
        assert alone.summary()["win_rate_ci95"] == pytest.approx([expected.low, expected.high], abs=1e-12)
    assert written["ties"] == 3 and written["missing_steps"] == {"first": 3, "last": 7, "steps": 2}
    assert "decisive games won: 66.7 %" in board.lines()[1]
    again = Scoreboard()
    again.load_state_dict(json.loads(json.dumps(board.state_dict())))
    assert again == board


def test_games_of_one_prompt_are_one_witness():
    """Ten prompts that are played four times, always with the same end, are worth ten games."""
    once, often = Scoreboard(), Scoreboard()
    once.record(games_of(6, 4), step=1)
    for step in range(4):
        often.record(games_of(6, 4), step)
    assert often.total == 40 and often.summary()["win_rate_n"] == 40
    (low, high), (lowest, highest) = once.summary()["win_rate_ci95"], often.summary()["win_rate_ci95"]
    assert lowest <= low < high <= highest and highest - lowest < 1.1 * (high - low)


def test_games_under_a_curriculum_say_what_they_are_games_of():
    """A prompt that was lost comes back three times: that is no sign of who plays better."""
    board = Scoreboard()
    board.record([("a", True, False), ("b", False, True), ("c", True, True)], step=1, chosen=True)
    for step in (2, 3, 4):
        board.record([("b", False, True), ("c", False, True)], step, chosen=True)
    found = board.summary()
    assert (found["wins"], found["losses"], found["total"]) == (1, 7, 9)
    assert (found["win_rate"], found["win_rate_n"]) == (0.5, 2)  # of a and b: the first game of c was a tie
    assert found["games_of"] == "prompts that the curriculum chose"
    assert found["win_rate_of"] == "the first game of each prompt"
    assert board.lines()[0].startswith("scoreboard of 9 games of prompts that the curriculum chose: both 1")
    assert board.lines()[1].startswith("decisive games won: 50.0 % [") and "first game alone" in board.lines()[1]


@pytest.mark.parametrize("weights", [None, Weighting()], ids=["uniform", "curriculum"])
def test_of_equal_players_the_scoreboard_covers_one_half(weights):
    """Both answer a prompt right equally often; the opponent's answer is kept, and the data gone through four times."""
    dice, covered, runs = np.random.default_rng(0), 0, 250
    for seed in range(runs):
        chance = dice.beta(0.5, 0.5, size=120)
        kept = dice.random(120) < chance
        board, sampler = Scoreboard(), WeightedSampler(120, seed, weights) if weights else Sampler(120, seed)
        for step in range(60):
            rows = sampler.take(8)
            right = dice.random((8, 4)) < chance[rows, None]
            games = [(str(row), bool(mine[0]), bool(kept[row])) for row, mine in zip(rows, right, strict=True)]
            board.record(games, step, chosen=weights is not None)
            for row, mine in zip(rows, right, strict=True):
                if weights:
                    sampler.note(row, float(mine.mean()), bool(kept[row]))
        low, high = board.summary()["win_rate_ci95"]
        covered += low <= 0.5 <= high
    assert 0.92 <= covered / runs <= 0.98  # were all games independent: .80, with the curriculum .50, at a rate of .43


def single(group, match, well_formed=None, unscored=None):
    """Answers of one attempt each."""
    right = np.array([match], dtype=bool)
    formed = np.ones_like(right) if well_formed is None else np.array([well_formed])
    unjudged = np.zeros(right.size) if unscored is None else np.array(unscored)
    return Answers(np.array(group), right, right * 1.0, 2 * np.ones(right.shape), ~formed, formed, right[0], unjudged,
                   [{}] * right.size)  # fmt: skip


def test_an_evaluation_by_hand():
    answers = single([0, 0, 1, 1, 2, 2], [1, 0, 0, 0, 1, 1], unscored=[0, 0, 1, 0, 0, 0])
    games = [(True, False), (None, True), (True, True)]
    row = summarise(answers, 0.5, 2, games)
    assert (row["n"], row["prompts"], row["acc"], row["unscored"]) == (6, 3, 0.5, pytest.approx(1 / 6))
    assert [(entry["k"], entry["pass"]) for entry in row["pass_at_k"]] == [(1, 0.5), (2, pytest.approx(2 / 3))]
    assert (row["games"], row["wins"], row["losses"], row["missing_games"], row["opponent_acc"]) == (2, 1, 0, 1, 0.5)
    assert row["win_rate"] == 1 and row["acc_ci95"][0] < 0.5 < row["acc_ci95"][1]
    assert row["per_question"] == {"n": [2, 2, 2], "acc": [1, 0, 2]}
    assert "games" not in summarise(answers, 0.5, 2)
    choice = selected(answers)
    expected = {"n": 6, "prompts": 3, "acc": 0.5, "acc_ci95": row["acc_ci95"], "per_prompt": [0.5, 0, 1]}
    assert choice == expected | {"per_question": row["per_question"]}
    assert row["opponent_acc_ci95"] == pytest.approx(wilson(1, 2)) and row["win_rate_ci95"] == pytest.approx(
        wilson(1, 1)
    )


def test_rows_that_ask_the_same_are_one_witness():
    """Each of twenty questions stands in four rows, and is always answered and played alike."""
    right = [number % 3 > 0 for number in range(20)]
    question, alone = np.arange(20).repeat(2), np.repeat(right, 2)
    games = [(one, number % 5 > 2) for number, one in enumerate(right)]
    once = summarise(single(question, alone, alone), 0.5, 2, games)
    often = summarise(single(np.tile(question, 4), np.tile(alone, 4), np.tile(alone, 4)), 0.5, 2, games * 4)
    assert (once["prompts"], often["prompts"], often["n"]) == (20, 20, 160)
    keys = ["acc_ci95", "win_rate_ci95", "opponent_acc_ci95", "well_formed_ci95"]
    pairs = [(once[key], often[key]) for key in keys]
    pairs += [(a["pass_ci95"], b["pass_ci95"]) for a, b in zip(once["pass_at_k"], often["pass_at_k"], strict=True)]
    for (low, high), (lowest, highest) in pairs:
        assert high - low <= highest - lowest < 1.15 * (high - low)  # not half as wide


def test_a_very_long_text_is_kept_in_part():
    """A server's megabyte would be written anew in every step; what is judged is the whole."""
    text = "begin" + "x" * 10**6 + "end"
    row = brief({"text": text, "prompt": "p", "length": 3, "reward": {"a": 1.0}})
    assert row["text"].startswith("beginx") and row["text"].endswith("xend") and len(row["text"]) < 21_000
    assert f"[{len(text) - 20_000} characters left out]" in row["text"]
    assert row == {"text": row["text"], "prompt": "p", "length": 3, "reward": {"a": 1.0}}
    assert brief({"text": "x" * 20_000}) == {"text": "x" * 20_000}


# -- opponents


def asked_of(run, count=4):
    return [run.task.prompts.prompt(row, i) for i, row in enumerate(run.task.train[:count])]


def texts(reactions):
    return [reaction.text for reaction in reactions]


def test_the_past_answers_as_it_was(folder):
    past = ("opponent.snapshots.every_steps=1", "opponent.snapshots.keep=2", "opponent.temperature=0")
    with opened(*past, moved=0.3) as run:
        opponent, asked = run.opponent, asked_of(run, 8)
        randomness = torch.get_rng_state(), run.session.generator.get_state()
        before = texts(opponent.end(0, asked[:6]))
        assert len(opponent.said[0]) == 6 and all(before)
        opponent.said[0] = dict.fromkeys(opponent.said[0], ("kept", True))
        assert texts(opponent.end(0, asked[5:8]))[:1] == ["kept"] and len(opponent.said[0]) == 8  # asked once, each
        move(run.policy.trainable, 0.3, seed=2)
        opponent.refresh(1)
        opponent.said[0] = {}
        assert texts(opponent.end(0, asked[:6])) == before != texts(opponent.end(1, asked[:6]))
        assert all(map(torch.equal, (torch.get_rng_state(), run.session.generator.get_state()), randomness))

        state = copy.deepcopy(opponent.state_dict())
        sampling = run.task.sampling(0.0, 1)
        again = SnapshotOpponent(run.config, run.policy, run.task.prompts, sampling, run.task.judge)
        again.load_state_dict(state)
        move(run.policy.trainable, 0.3, seed=3)
        for number in (0, 1):
            assert texts(again.end(number, asked)) == texts(opponent.end(number, asked))
        assert again.said == opponent.said


@pytest.mark.parametrize("family", ["soft_prompt={tokens: 3}", "ia3={}"])
def test_a_snapshot_has_the_adapters_of_its_own_time(folder, family):
    """Where nothing else is trained: the soft prompt that was read then, and the warm-up as far as it had come."""
    past = ("opponent.snapshots.every_steps=1", "opponent.temperature=0", "model.adapters.lora=null")
    with opened(*past, f"model.adapters.{family}", moved=1.0) as run:
        opponent, policy, asked = run.opponent, run.policy, asked_of(run, 6)
        text = after([5, 6, 7], [8, 9, 10])
        policy.shelf.blend(0.5)
        opponent.refresh(1)
        then, scores = texts(opponent.end(1, asked)), policy(text)[0].detach()
        move(policy.trainable, 1.0, seed=2)
        policy.shelf.blend(1.0)
        opponent.refresh(2)
        mine, now = weights(run), policy(text)[0].detach()
        opponent.said[1] = {}
        assert texts(opponent.end(1, asked)) == then != texts(opponent.end(2, asked))
        assert torch.equal(weights(run), mine) and policy.alpha == 1.0 and torch.equal(policy(text)[0], now)
        with policy.with_adapter(opponent.pool[1], opponent.alphas[1]):
            assert torch.equal(policy(text)[0], scores) and not torch.equal(scores, now)
            with policy.reference_mode():
                assert policy.prefix == []
        with policy.reference_mode(), policy.with_adapter(opponent.pool[1], opponent.alphas[1]):
            assert torch.equal(policy(text)[0], scores)
        assert bool(policy.prefix) == ("soft" in family)


def test_the_pool_keeps_the_start_and_the_last_ones(folder):
    with opened("opponent.snapshots={every_steps: 2, keep: 3}") as run:
        opponent, pools = run.opponent, {}
        for number in range(1, 13):
            opponent.refresh(number)
            pools[number] = sorted(opponent.pool)
        assert (pools[1], pools[2], pools[5]) == ([0], [0, 2], [0, 2, 4])
        assert pools[12] == [0, 8, 10, 12] == sorted(opponent.said)
        picked = [opponent.begin([], number) for number in range(60)]
        assert set(picked) == {8, 10, 12} and picked == [opponent.begin([], number) for number in range(60)]
        assert opponent.begin([], EVALUATION) == 0
        opponent.settings = opponent.settings.model_copy(update={"pick": "latest"})
        assert {opponent.begin([], number) for number in range(9)} == {12}
    with opened("opponent.snapshots={}") as run:
        run.opponent.refresh(4)
        assert (list(run.opponent.pool), run.opponent.begin([], 9)) == ([0], 0)


def test_another_adapter_is_exchanged_and_every_weight_given_back(make_policy):
    policy, other = make_policy(moved=0.1), make_policy(moved=0.3)
    before, text = policy.snapshot(), after([5, 6, 7], [8, 9, 10])
    own, theirs = policy(text)[0].detach(), other(text)[0].detach()
    with pytest.raises(RuntimeError), policy.with_adapter(other.snapshot()):
        assert torch.equal(policy(text)[0], theirs) and not torch.allclose(own, theirs, atol=1e-3)
        raise RuntimeError
    assert all(map(torch.equal, policy.snapshot(), before)) and torch.equal(policy(text)[0], own)
    with pytest.raises(ValueError), policy.with_adapter(before[:-1]):
        pass
    assert all(map(torch.equal, policy.snapshot(), before))


def test_a_server_is_asked_the_same_of_a_prompt_for_ever(folder):
    with opened(*RIVAL, "servers.away.thinking.budget_tokens=3") as run:
        server, asked = run.opponent, asked_of(run, 3)
        server.remote = Says("123", None, "abc")
        reactions = server.end(server.begin(asked, 0), asked)
        assert texts(reactions) == ["123", "", "abc"] and "too late" in reactions[1].error
        assert [reaction.is_right for reaction in reactions] == [True, None, False]
        server.begin(asked, 7)
        first = server.remote.requests[:3]
        assert server.remote.requests[3:] == first and len({request.seed for request in first}) == 3
        assert first[0].messages == asked[0].messages and first[0].max_tokens == 11


def test_asking_nothing_says_nothing_of_a_server_that_is_away(tmp_path):
    told = []
    with Remote("teacher", Server(**SERVER, outage="stop"), tmp_path / "replies.jsonl", told.append) as remote:
        remote._is_away = True
        assert remote.answers(remote.ask([])) == [] == told and remote._is_away


# -- sequences


def test_branches_and_texts_of_their_own_score_alike(make_policy):
    policy, dice, groups, trained = make_policy(moved=0.3), random.Random(0), [], []
    number = 0
    for _ in range(4):
        prompt = [dice.randrange(4, 34) for _ in range(dice.randint(2, 9))]
        ids = [[dice.randrange(4, 34) for _ in range(dice.randint(1, 6))] for _ in range(4)]
        answers = [Answer(Completion(own, [0.0] * len(own), True), "", score(0)) for own in ids]
        groups.append(Group(Prompt({}, prompt, ""), answers))
        trained += [number + i for i in range(4) if dice.random() < 0.8]
        number += 4
    assert 0 < len(trained) < number
    found = []
    for pays, budget in ((True, 1000), (False, 1000), (False, 1), (True, 30)):
        scores = {}
        items = sequences(nodes(groups), trained.__contains__, lambda trunk, branches, pays=pays: pays)
        for batch in micro_batches(items, budget, 0, torch.device("cpu")):
            logps = policy(batch.inputs)[0].tolist()
            for place, token, logp in zip(batch.answer.tolist(), batch.token.tolist(), logps, strict=True):
                assert scores.setdefault(place, {}).setdefault(token, logp) == logp
        found.append(scores)
    for scores in found:
        assert sorted(scores) == trained
        for place, own in scores.items():
            group = groups[place // 4]
            expected = policy(after(group.prompt.ids, group.answers[place % 4].completion.ids))[0]
            assert [own[token] for token in range(len(expected))] == pytest.approx(expected.tolist(), abs=1e-5)


# -- credit


def test_every_answer_has_its_own_advantage(folder):
    with opened("train.minibatches=3") as run:
        played = run.play()
        credit = run.credit(played, [])
        groups = groups_of(credit)
        answers = answers_of(groups)
        for i, answer in enumerate(answers):
            rewards = [answer.verdict.reward for answer in groups[i // 4].answers]
            expected = (answer.verdict.reward - fmean(rewards)) / (stdev(rewards) + 1e-4)
            assert credit.advantage[i].item() == pytest.approx(expected, abs=1e-5)
            assert credit.weight[i].item() == pytest.approx(1 / len(answer.completion.ids))
            start, logps = int(credit.start[i]), answer.completion.logps
            assert credit.sampled_logp[start : start + len(logps)].tolist() == pytest.approx(logps)
        learned = [node.tree for node in credit.nodes if any(map(credit.learned.__getitem__, node.numbers))]
        parts = sorted(node.tree for part in credit.parts for node in part)
        assert len(learned) >= 3 and parts == learned and credit.divisor == pytest.approx(16 / 3)
        found = {}
        for pays in (True, False):
            for item in items_of(run, credit, lambda *_, p=pays: p):
                for span in item.spans:
                    found.setdefault(span.answer, []).append(span.ids)
                    assert item.ids[: span.before + 1] == groups[span.answer // 4].prompt.ids
        assert found == {i: [answers[i].completion.ids] * 2 for i, is_on in enumerate(is_learned(credit)) if is_on}


def test_log_probs_before_the_first_step_are_those_of_the_policy(folder):
    with opened(moved=0.2) as run:
        played = run.play()
        credit = run.credit(played, [])
        logps = run.step.logps_before(credit, credit.parts)
        first = list(run.step.batches(credit.parts[0], credit.learned.__getitem__))
        places = torch.cat([credit.tokens_of(batch) for batch in first])
        assert logps.old[places].isnan().all()
        accumulate(run, credit, logps=logps)
        lengths = torch.tensor([len(a.completion.ids) for a in answers_of(groups_of(credit))])
        known = torch.repeat_interleave(torch.tensor(is_learned(credit)), lengths)
        assert torch.equal(logps.old.isnan(), ~known)
        torch.testing.assert_close(logps.old[known], credit.sampled_logp[known], rtol=0, atol=1e-4)


def after_a_step(*overrides, shares=None, moved=0.2):
    with opened(*overrides, moved=moved) as run:
        if shares is not None:
            run.policy.should_share_trunk = lambda trunk, branches: shares
        row = play_step(run)
        return weights(run), row


def test_neither_micro_batches_nor_branches_change_the_update(folder):
    for more in ((), ("train.loss=dapo", "train.beta=0.1", "train.passes=2")):
        expected, _ = after_a_step(*more, "train.micro_batch_tokens=4000", shares=False)
        for tokens, shares in ((40, False), (40, True), (4000, True)):
            found, _ = after_a_step(*more, f"train.micro_batch_tokens={tokens}", shares=shares)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_with_one_step_per_batch_gspo_is_grpo(folder):
    losses = ("gspo", "gspo_token", "grpo")
    found = [after_a_step(f"train.loss={loss}", "train.minibatches=1")[0] for loss in losses]
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=0, atol=1e-6)
    apart = after_a_step("train.loss=grpo", "train.minibatches=4", "optimizer.learning_rate=0.05")[0]
    assert not torch.allclose(apart, after_a_step("train.minibatches=4", "optimizer.learning_rate=0.05")[0], atol=1e-3)


@pytest.mark.parametrize(("kl", "weighted"), [("k3", True), ("k2", True), ("exact", False)])
def test_the_kl_of_later_minibatches_is_that_of_the_policy_as_it_is_then(folder, kl, weighted):
    """Rewards are equal, so the KL alone pulls; a policy whose samples were half as likely then counts them twice."""
    with opened(f"train.kl={kl}", "train.beta=0.5", "reward.fn=helpers.tiny.nothing", moved=0.2) as run:
        credit = run.credit(run.play(), [])
        logps = run.step.logps_before(credit, credit.parts)
        found = []
        for factor, is_first in ((1, True), (1, False), (2, False)):
            run.policy.zero_grad()
            sampled_by = TokenLogps(logps.old if is_first else logps.old - math.log(factor), logps.new)
            accumulate(run, credit, logps=sampled_by, is_first=is_first)
            found.append(torch.cat([parameter.grad.flatten() for parameter in run.policy.trainable]))
        assert found[0].abs().max() > 1e-4 and torch.equal(found[1], found[0])
        torch.testing.assert_close(found[2], found[0] * (2 if weighted else 1), rtol=1e-4, atol=1e-7)


def test_equal_rewards_teach_nothing(folder):
    with opened("reward.fn=helpers.tiny.nothing", moved=0.2) as run:
        before = weights(run)
        rows = [play_step(run) for _ in range(2)]
        assert torch.equal(weights(run), before)
        assert [(row["updates"], row["learned"], row["equal_groups"], row["prompts"], row["idle"]) for row in rows] == [
            (0, 0, 1, 4, 1)
        ] * 2
    with opened("reward.fn=helpers.tiny.nothing", "train.beta=0.1", moved=0.2) as run:
        before = weights(run)
        assert play_step(run)["learned"] == 16 and not torch.equal(weights(run), before)  # the reference pulls


def test_prompts_that_teach_nothing_are_replaced(folder):
    resample = ("train.resample_rounds=2",)
    with opened(*resample, "reward.fn=helpers.tiny.nothing") as run:
        assert len(run.play()) == 4 * 3
    with opened(*resample) as run:
        played = run.play()
        assert len(played) == 4 and run.credit(played, []).divisor == 8


def test_what_was_not_judged_or_not_finished_is_not_trained(folder):
    with opened("reward.fn=test_selfplay.unsure", "train.advantage=group", "train.batch_size=8") as run:
        credit = run.credit(run.play(), [])
        answers, learned = answers_of(groups_of(credit)), is_learned(credit)
        unscored = [i for i, answer in enumerate(answers) if not answer.verdict.scored]
        assert unscored and not any(learned[i] for i in unscored) and (credit.advantage[unscored] == 0).all()
        trained = {span.answer for item in items_of(run, credit, lambda *_: True) for span in item.spans}
        assert trained == {i for i, is_on in enumerate(learned) if is_on}
        for i, answer in enumerate(answers):
            rewards = [a.verdict.reward for a in answers[i // 4 * 4 : i // 4 * 4 + 4] if a.verdict.scored]
            if i not in unscored:  # they are in nobody's baseline
                assert credit.advantage[i].item() == pytest.approx(answer.verdict.reward - fmean(rewards), abs=1e-6)
    with opened("train.mask_truncated=true", "train.batch_size=8", "train.length_norm=token") as run:
        credit = run.credit(run.play(), [])
        completions = [answer.completion for answer in answers_of(groups_of(credit))]
        finished = [completion.finished for completion in completions]
        trained = sum(len(completion.ids) for completion in completions if completion.finished)
        weight = credit.weight[finished.index(True)].item()
        assert weight / len(completions) == pytest.approx(1 / trained)  # of what is trained, a mean
        assert 0 < sum(finished) < len(finished)
        assert all(f for f, is_on in zip(finished, is_learned(credit), strict=True) if is_on)


def test_an_answer_that_counts_for_nothing_makes_no_group_telling(folder):
    """All that was judged earned the same: the 0 of what was not must not look like a difference."""
    with opened("train.mask_truncated=true") as run:
        completion = Completion([5, 6], [0.0, 0.0], True)
        answers = [Answer(completion, "", score(0.3, scored=False) if i == 0 else score(0.5)) for i in range(4)]
        each = Game(Group(run.task.prompts.prompt(run.task.train[0]), answers), OpponentAnswer())
        assert len(set(trained_rewards(each, run.config))) == 1
        other = Group(each.group.prompt, [*answers[:3], Answer(completion, "", score(1))])
        assert len(set(trained_rewards(Game(other), run.config))) == 2


def test_the_last_tokens_of_the_budget_cost(folder):
    with opened("train.overlong_buffer=4") as run:
        for game in run.play():
            for answer, reward in zip(game.group.answers, earned(game, run.config), strict=True):
                price = {5: 0.25, 6: 0.5, 7: 0.75, 8: 1.0}.get(len(answer.completion.ids), 0.0)
                assert reward == pytest.approx(answer.verdict.reward - price)


@pytest.mark.parametrize("kl", ["k3", "k2", "exact", "k1_in_reward"])
def test_every_kl_begins_at_zero_and_pulls_later(folder, kl):
    choices = (f"train.kl={kl}", "train.beta=0.5", "train.minibatches=1")
    still, row = after_a_step(*choices, moved=0)
    assert row["kl"] == pytest.approx(0, abs=1e-6) and math.isfinite(row["loss"])
    torch.testing.assert_close(still, after_a_step("train.minibatches=1", moved=0)[0], rtol=0, atol=1e-5)
    moved, row = after_a_step(*choices)
    assert row["kl"] > 1e-3
    unpulled, row = after_a_step("train.minibatches=1")
    assert not torch.equal(moved, unpulled) and "kl" not in row  # without a reference, nothing was measured


def test_k1_in_the_reward_is_the_kl_of_the_sampled_answer(folder):
    """A sum over its tokens, in nats; the rewards alone are standardised."""
    choices = ("train.kl=k1_in_reward", "train.beta=0.5", "train.advantage=none")
    with opened(*choices, moved=0.2) as run:
        played = run.play()
        advantage = iter(run.credit(played, []).advantage.tolist())
        for game in played:
            for answer, reward in zip(game.group.answers, earned(game, run.config), strict=True):
                inputs = after(game.group.prompt.ids, answer.completion.ids)
                with torch.no_grad():
                    k1 = run.policy(inputs)[0] - run.policy.reference(inputs)[0]
                assert next(advantage) == pytest.approx(reward - 0.5 * k1.sum().item(), abs=1e-5)


# -- help


def helped(run, *texts):
    """Played, retries and their credit, where the teacher says these texts."""
    run.teacher.remote = Says(*texts)
    played = run.play()
    retries = run.assist(played)
    return played, retries, run.credit(played, retries)


def test_a_retry_is_trained_where_it_was_written_and_nothing_else_is(folder):
    with opened(*TEACHER, *ALWAYS, "teacher.hint.train=on_policy", moved=0.2) as run:
        played, retries, credit = helped(run, "add a bad bag.")
        assert (len(retries), {len(group.answers) for group in retries}) == (4, {4})
        assert (credit.advantage[:16] == 0).all() and not any(is_learned(credit)[:16])
        for i, (each, group) in enumerate(zip(played, retries, strict=True)):
            assert group.prompt.messages[-1]["content"] == f"{each.group.prompt.row['question']} add a bad bag."
            rewards = torch.tensor([[answer.verdict.reward for answer in group.answers]])
            own = by_row(partial(group_advantages, "group_std"), rewards)[0]
            torch.testing.assert_close(credit.advantage[16 + 4 * i : 20 + 4 * i], own, rtol=0, atol=1e-6)
        items = items_of(run, credit)
        assert items and all(item.ids[:2] != [] and span.answer >= 16 for item in items for span in item.spans)
        for item in items:
            (span,) = item.spans
            assert item.ids[: span.before + 1] == retries[(span.answer - 16) // 4].prompt.ids
        before, board = weights(run), copy.deepcopy(run.scoreboard)
        row = run.update(played, credit)
        assert row["sampler_gap"] < 1e-4 and not torch.equal(weights(run), before)
        assert board.assisted["hints_used"] == 4 and board.assisted["retries"] == 16 and board.total == 0


def test_collected_retries_are_data_and_no_more(folder):
    with opened(*TEACHER, *ALWAYS, "teacher.solve.probability=1", moved=0.2) as run:
        before = weights(run)
        played, retries, credit = helped(run, "add a bad bag.", "12")  # a hint, a solution, a hint, ...
        run.update(played, credit)
        assert retries == [] and torch.equal(weights(run), before)
        counts, rows = run.scoreboard.assisted, logged(run, "sft")
        assert (counts["hints_used"], counts["solutions_asked"], counts.get("solutions_right", 0)) == (4, 4, 0)
        assert len(rows) == counts["retries_right"] > 0 and {row["source"] for row in rows} == {"retry"}
        questions = {game.group.prompt.row["question"] for game in played}
        assert {row["messages"][0]["content"] for row in rows} <= questions  # as it was asked without a hint
        assert all(share(row["messages"][-1]["content"]) > 0 for row in rows)
        solve = [request for request in run.teacher.remote.requests if request.max_tokens == 8]
        assert [request.messages for request in solve] == [game.group.prompt.messages for game in played]


def test_hints_with_code_answers_or_no_reply_are_counted_and_dropped(folder):
    with opened(*TEACHER, *ALWAYS, "dataset.target_field=answer", "train.batch_size=1", "train.minibatches=1") as run:
        for text, why in (("def f(x): return x", "dropped_code"), ("add a bad bag. " * 20, "dropped_too_long"),
                          ("add it.", "used"), ("42", "dropped_empty"), (None, "failed")):  # fmt: skip
            _, retries, _ = helped(run, text)
            assert run.scoreboard.assisted[f"hints_{why}"] == 1 and retries == []
        run.teacher.remote = Says("add b to get 12.")
        for secret, expected in (("12", "answer"), ("13", None)):
            asked = run.task.prompts.prompt({"question": "7+5", "answer": secret})
            answers = [Answer(Completion([5], [0.0], True), "", score(0))]
            found = run.teacher.help([Game(Group(asked, answers), OpponentAnswer())], step=0)
            assert found.texts[0]["dropped"] == expected and len(found.hinted) == (expected is None)


def test_the_failed_alone_are_helped_by_chance(folder):
    with opened(*TEACHER, "teacher.hint={neither: 0.5, opponent_only: 0}") as run:
        run.teacher.remote = Says("add.")
        asked, answers = asked_of(run, 19), [Answer(Completion([5], [0.0], True), "", score(0))]
        neither = [Game(Group(prompt, answers), OpponentAnswer()) for prompt in asked]
        lost = [Game(game.group, OpponentAnswer(verdict=score(1, True))) for game in neither]
        won = Game(Group(asked[0], [Answer(answers[0].completion, "", score(1, True))]), OpponentAnswer())
        assert (neither[0].outcome, lost[0].outcome, won.outcome) == ("neither", "opponent_only", None)
        assert run.teacher.help(lost, 0).hinted == []
        chosen = [[a.number for a in run.teacher.help(neither, number).hinted] for number in (0, 0, *range(1, 20))]
        assert chosen[0] == chosen[1] != chosen[2]  # by seed, step and prompt
        assert sum(map(len, chosen[1:])) / (19 * 20) == pytest.approx(0.5, abs=0.1)


def test_what_a_reward_tells_of_prompts_that_nobody_solved_is_kept(folder):
    with opened("reward.fn=test_selfplay.told_of") as run:
        played = run.play()
        rows = logged(run, "failures")
    firsts = [(game.group.prompt.row["question"], game.group.answers[0].text) for game in played]
    assert [row["failed"]["said"] for row in rows] == [f"{question} {text}" for question, text in firsts]
    assert {(row["why"], row["step"]) for row in rows} == {("solved by nobody", 1)}
    assert [row["prompt"] for row in rows] == [question for question, _ in firsts]


# -- the config


def test_all_conflicts_are_told_at_once(folder):
    mistakes = ["train.minibatches=5", "train.overlong_buffer=8", "generation.max_prompt_length=125",
                "opponent.use=win", "servers.x.base_url=http://me:pw@x/v1",
                "servers.x.model=x", "eval.temperature=0"]  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        load(SelfPlayConfig, Path("tiny.yaml"), mistakes)
    expected = ["exceeds model.max_seq_length = 128", "4 prompts do not make 5 minibatches", "a buffer of 8 tokens",
                "a server or snapshots of the policy",
                "use api_key_env", "greedy samples of a prompt are all alike"]  # fmt: skip
    lines = str(caught.value).splitlines()
    assert all(any(text in line for line in lines) for text in expected) and len(lines) == len(expected)


@pytest.mark.parametrize("examples", [1, 3, 50])
def test_a_smoke_run_of_a_sound_config_is_sound(folder, examples):
    more = ["generation.max_new_tokens=100", "generation.thinking.budget_tokens=10", "train.overlong_buffer=90"]
    config = load(SelfPlayConfig, Path("tiny.yaml"), [*more, "opponent.snapshots={}", *TEACHER], smoke=examples)
    assert SelfPlayConfig(**yaml.safe_load(dump(config))) == config and list(config.conflicts()) == []
    assert (config.train.steps, config.train.batch_size) == (2, {1: 1, 3: 2, 50: 12}[examples])


def test_thinking_is_switched_or_refused(tokenizer, monkeypatch):
    with pytest.raises(ConfigError, match=r"generation\.thinking\.enabled: the chat template writes the same"):
        ChatRenderer(tokenizer, {}, ChatPrompts()).switch_thinking(True)
    ChatRenderer(tokenizer, {}, ChatPrompts()).switch_thinking(False)  # nothing is to be disabled
    monkeypatch.setattr(tokenizer, "chat_template", "{% if enable_thinking %}<think>{% endif %}1")
    for enabled, expected in ((True, ["<think>", "1"]), (False, ["1"])):
        prompts = ChatRenderer(tokenizer, {}, ChatPrompts())
        prompts.switch_thinking(enabled)
        ids = prompts.ids([{"role": "user", "content": "x"}])
        assert tokenizer.convert_ids_to_tokens(ids) == expected


def test_a_system_prompt_stands_before_chats_without_one(folder):
    own = {"role": "system", "content": "a"}
    rows = [{"chat": [*([own] if i % 4 == 0 else []), {"role": "user", "content": f"{i}"}]} for i in range(20)]
    write_rows(Path("rows.jsonl"), rows)
    chosen = ["prompts.messages_field=chat", "prompts.system=b", "generation.max_prompt_length=20"]
    task = load_task(load(SelfPlayConfig, Path("tiny.yaml"), chosen), say=lambda text: None)
    for number, row in enumerate(task.train):
        last = row["chat"][-1]["content"]
        system = "a" if int(last) % 4 == 0 else "b"
        assert task.tokenizer.decode(task.prompts.prompt(row, number).ids) == (
            f"<|system|>{system}<|im_end|><|user|>{last}<|im_end|><|assistant|>"
        )
    assert "5 of 20 chats have a system message of their own, and keep it: no prompts.system there" in task.notes
    control = load(SelfPlayConfig, Path("tiny.yaml"), [*chosen, "prompts.system=<|im_end|>"])
    with pytest.raises(ConfigError, match=r"^prompts\.system: '<\|im_end\|>' is a control token"):
        load_task(control, say=lambda text: None)


def test_notes_tell_what_settings_come_to(folder):
    def notes(*overrides):
        return list(notes_on(load(SelfPlayConfig, Path("tiny.yaml"), list(overrides)).train))

    assert notes() == [] == notes("train.loss=grpo", "train.clip=[0.2, 0.2]")
    assert (
        "every ratio is 1" in notes("train.minibatches=1")[0] and notes("train.minibatches=1", "train.passes=2") == []
    )
    assert "will hardly ever clip" in notes("train.clip=[0.2, 0.2]")[0]


# -- what reviews found


def test_an_opponent_is_judged_with_its_reasoning_as_the_policy_is(folder):
    """A reward that reads tags must find them on both sides, or the policy wins for nothing."""
    with opened(*RIVAL, "opponent.use=win") as run:

        class Thinks(Says):
            def answers(self, asked):
                return [Reply("<answer>2</answer>", "some thoughts") for _ in asked]

        run.opponent.remote = Thinks("unheard")
        (reaction, *_) = run.opponent.end(run.opponent.begin(asked_of(run), 1), asked_of(run))
        assert reaction.text == "<think>some thoughts</think><answer>2</answer>"


def test_a_group_that_nobody_judged_is_no_failure(folder):
    completion = Completion([5], [0.0], True)
    with opened() as run:
        answers = [Answer(completion, "", score(0.0, scored=False)) for _ in range(4)]
        lost = Game(Group(*asked_of(run, 1), answers), OpponentAnswer("x", score(1.0, match=True)))
        assert lost.outcome is None
        mixed = Game(Group(lost.group.prompt, [Answer(completion, "", score(0.0)), *answers[1:]]))
        assert mixed.outcome == "neither"


def test_a_row_that_has_dates_can_be_kept(folder):
    with opened("reward.fn=helpers.tiny.nothing") as run:
        for row in run.task.train:
            row["when"] = datetime.date(2020, 1, 2)
        play_step(run)
        rows = rows_in(run.config.run_dir / "frontier/neither.jsonl")
        assert rows and all(row["when"] == "2020-01-02" for row in rows)


def test_the_token_norm_counts_what_is_trained(folder):
    """One group has something to tell and the other has not: its lengths must not change the step (DAPO, eq. 8)."""
    with opened("train.loss=dapo", "train.resample_rounds=1", "train.minibatches=1") as run:
        found = []
        for length in (1, 8):

            def group(number, rewards, tokens):
                answers = [Answer(Completion([5] * tokens, [0.0] * tokens, True), "", score(r)) for r in rewards]
                return Game(Group(run.task.prompts.prompt(run.task.train[number], number), answers))

            credit = run.credit([group(0, [0, 1, 0, 1], 4), group(1, [1] * 4, length)], [])
            found.append((credit.weight[:4] / credit.divisor).tolist())
        assert found[0] == found[1] == pytest.approx([1 / 16] * 4)


def test_content_parts_are_text_for_people_and_stay_parts_in_rows():
    parts = [{"type": "text", "text": "1+1"}, {"type": "image"}, {"type": "text", "text": "?"}]
    assert question_of([{"role": "user", "content": parts}]) == "1+1\n?"
    assert question_of([{"role": "user", "content": None}]) == ""


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (("prompts.hinted='{question}'", *TEACHER), "it does not show the hint"),
        (("teacher.hint.hint_request='{qestion}'", *TEACHER), "did you mean 'question'"),
        (("train.sampler_correction.cap=0.5",), "greater than or equal to 1"),
    ],
)
def test_what_could_never_work_is_told_before(folder, mistake, told):
    with pytest.raises(ConfigError, match=told), opened(*mistake):
        pass


def test_a_smaller_micro_batch_counts_at_a_resume(folder):
    with opened() as run:
        play_step(run), run.session.save()
    name = f"run_name={run.config.run_name}"
    config = load(SelfPlayConfig, Path("tiny.yaml"), [name, "train.micro_batch_tokens=77"])
    again = GspoRun(load_task(config, lambda text: None), resume=True, allow_change=True)
    with again.open():
        assert (again.progress.step, again.progress.micro_batch_tokens) == (1, 77)


def test_a_later_step_whose_tokens_the_clip_stops_all_is_no_broken_gradient(folder):
    choices = ("train.batch_size=2", "train.minibatches=1", "train.passes=2", "optimizer.learning_rate=1e-3")
    with opened(*choices, "train.clip=[1.0e-9, 1.0e-9]", "train.on_collapse=stop", moved=0.2) as run:
        rows = [play_step(run) for _ in range(4)]
        stopped = [row["clipped_low"] + row["clipped_high"] for row in rows]
        assert max(stopped) == pytest.approx(0.5)  # of both steps together: every token of the second one
        assert [row["zero_gradient"] for row in rows] == [0.0] * 4
        assert not (run.config.run_dir / "alarms.jsonl").read_text()

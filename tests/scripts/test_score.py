import copy
import json
import math
import re
import shutil
from collections import Counter
from dataclasses import replace
from datetime import date
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean, pstdev

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from conftest import after
from helpers import naive, tiny
from helpers.leaves import accumulate, by_rollout, changed, rollouts_of
from helpers.tiny import gradients, logged, rows_in, score_run, share_of_digits, weights
from safetensors.torch import load_file, save_file

import evaluate
import report
import train
from data.builders import write_rows
from lib.core.config import Optimizer, ScoreConfig, SelfPlayConfig, load
from lib.core.errors import ConfigError, NumericError, OutOfMemory
from lib.model.logits import HeadTransform
from lib.model.policy import Policy
from lib.rl import losses as module
from lib.rl.batching import sequences
from lib.rl.curriculum import Sampler
from lib.rl.plan import stages_of
from lib.rl.preview import preview
from lib.rl.score import kl_weights
from lib.rl.step import learning_rate
from lib.rl.task import load_data, load_task
from lib.rl.tree import nodes, sample

folder = tiny.folder(tiny.SCORE)


def begins_with_a_digit(predictions):
    return [float(text[:1].isdigit()) for text in predictions]


def huge(predictions):
    return [1e30 * share for share in share_of_digits(predictions)]


def not_a_number(predictions):
    return [math.nan] * len(predictions)


def one_too_few(predictions):
    return [1.0] * (len(predictions) - 1)


def step(run, stage):
    run.progress.stage = stage
    plan_of_stage = run.stages[stage - 1]
    trees = run.sample(plan_of_stage)
    return run.update(plan_of_stage, trees, run.credit(plan_of_stage, trees))


def command(capsys, *arguments):
    return tiny.ended(train, capsys, "--config", "tiny.yaml", *arguments)


# -- a whole run


def test_a_run_learns_what_is_paid_and_leaves_what_it_promises(folder, capsys):
    steps = ("train.stage1_steps=6", "train.stage2_steps=12", "eval.every_steps=4")
    more = ("train.stage1_batch_size=16", "train.stage2_batch_size=16", "optimizer.learning_rate=0.03", "train.beta2=1")
    code, out, err = command(capsys, *steps, *more)
    assert (code, err) == (0, "")
    assert "pretrain" in out
    assert "after stage II" in out
    planned = re.search(r"^planned: .* 6 steps: ([\d,]+) .* 12 steps: ([\d,]+) .* 6 evaluations: ([\d,]+) ", out, re.M)
    rows = logged("metrics")
    assert len(re.findall(r"^stage \d step .*  [\dhms]+ left, until \d\d:\d\d", out, re.M)) == 18
    assert [(row["stage"], row["step"]) for row in rows] == [(1, i) for i in range(1, 7)] + [
        (2, i) for i in range(1, 13)
    ]
    assert [row["global_step"] for row in rows] == list(range(1, 19))
    assert rows[0]["kl_attempt1"] == rows[0]["kl_attempt2"] == 0
    assert all(0 < row["sampler_gap"] < 1e-4 for row in rows)
    for attempt in ("attempt1", "attempt2"):
        first, last = rows[0][f"reward_{attempt}"], rows[-1][f"reward_{attempt}"]
        assert last > first + 0.2
        assert rows[-1][f"kl_{attempt}"] > 2 * rows[5][f"kl_{attempt}"]  # stage I holds the policy, stage II lets go
    assert rows[0]["beta_attempt1"] == pytest.approx(1.01)
    assert rows[6]["beta_attempt1"] == pytest.approx(0.01)
    evaluations = logged("evaluations")
    whens = [(row["when"], row["stage"], row["step"]) for row in evaluations]
    assert whens == [
        ("pretrain", 1, 0), ("step", 1, 4), ("after_stage1", 1, 6), ("step", 2, 4), ("step", 2, 8),
        ("after_stage2", 2, 12),
    ]  # fmt: skip
    chosen_by = sum(row["selection"]["n"] for row in evaluations)
    sampled = [6 * 16 * (2 + 4), 12 * 16 * (2 + 4), 2 * (sum(row["n"] for row in evaluations) + chosen_by)]
    assert [int(number.replace(",", "")) for number in planned.groups()] == sampled
    promised = {"n", "temperature", "acc_attempt1", "acc_attempt2", "delta", "delta_ci95", "i_to_c", "c_to_i"}
    assert all(promised <= set(row) for row in evaluations)
    texts = logged("generations")
    assert len([row for row in texts if row["when"] == "train"]) == 18 * 16 * 4
    sums = Counter()
    for row in texts:
        assert ("advantage1" in row, "advantage2" in row) == (row["when"] == "train",) * 2
        if row["when"] == "train":  # revisions of the same first attempt are compared with each other
            sums[row["stage"], row["step"], row["prompt"], row["attempt1"]] += row["advantage2"]
    assert max(map(abs, sums.values())) < 1e-3 and any(row.get("advantage2") for row in texts)
    for attempt in (1, 2):
        first = [f"malformed{attempt}" not in row for row in texts if (row["when"], row["step"]) == ("train", 1)]
        assert rows[0][f"well_formed_attempt{attempt}"] == pytest.approx(fmean(first[: 16 * 4]))
        assert all(0 <= row[f"well_formed_attempt{attempt}"] <= 1 for row in evaluations)
    assert {row["row"]["question"] for row in logged("failures")} <= {f"{a}+{b}" for a in range(5) for b in range(5)}
    assert (folder / "outputs/tiny/stage1/adapter_model.safetensors").is_file()
    assert (folder / "outputs/tiny/stage2/adapter_config.json").is_file()

    code, _, err = command(capsys, *steps, *more)
    assert (code, len(err.splitlines())) == (2, 1)
    assert "already holds a run" in err

    stage1 = "outputs/tiny/stage1"
    alone = ("--start-stage", "2", "--resume-adapter", stage1, "run_name=second", "train.stage2_steps=1")
    code, _, err = command(capsys, *alone)
    assert (code, err) == (0, "")
    (row,) = logged("metrics", "second")
    assert row["stage"] == 2
    assert row["kl_attempt2"] > 0  # the reference is the base, not the adapter that the run started from
    code, _, err = command(capsys, *alone[:4], "run_name=third", "model.adapters.lora.r=2")
    assert (code, len(err.splitlines())) == (2, 1)
    assert err.startswith(f"error: {stage1}: this adapter does not fit the model: ")
    assert f"model.adapter={stage1}, or choose" in err

    shutil.copytree(yaml.safe_load(Path("tiny.yaml").read_text())["model"]["name"], "other")
    weights = {name: 2 * weight for name, weight in load_file("other/model.safetensors").items()}
    save_file(weights, "other/model.safetensors", {"format": "pt"})
    code, _, err = command(capsys, *alone[:4], "run_name=third", "model.name=other")
    assert (code, len(err.splitlines())) == (2, 1)
    assert err.startswith(f"error: '{stage1}' was trained on other weights than those of 'other', on ")


def test_a_trial_run_empties_the_folder_of_another_trial_run_alone(folder, capsys):
    small = ("--smoke", "4", "train.stage1_steps=0")
    for _ in range(2):
        assert command(capsys, *small)[0] == 0
    Path("outputs/mine-smoke").mkdir(parents=True)
    Path("outputs/mine-smoke/notes.txt").write_text("of a year")
    code, _, err = command(capsys, *small, "run_name=mine")
    assert code == 2 and "outputs/mine-smoke: --smoke would empty this folder, but what is in it was not made" in err
    assert Path("outputs/mine-smoke/notes.txt").read_text() == "of a year"
    Path("outputs/file-smoke").touch()
    code, _, err = command(capsys, *small, "run_name=file")
    assert code == 2 and "outputs/file-smoke: cannot be written (Not a directory)" in err


def test_a_trial_run_deletes_nothing_that_was_named(folder, capsys):
    trial, adapter = ("--smoke", "4"), Path("outputs/tiny-smoke/stage1")
    assert command(capsys, *trial)[0] == 0
    shutil.copy("rows.jsonl", "outputs/tiny-smoke/rows.jsonl")
    shutil.copy("tiny.yaml", "outputs/tiny-smoke/mine.yaml")
    shutil.copytree(yaml.safe_load(Path("tiny.yaml").read_text())["model"]["name"], "outputs/tiny-smoke/base")
    Path("elsewhere").symlink_to("outputs/tiny-smoke/base")
    needed = [
        (["--resume-adapter", str(adapter)], adapter), ([f"model.adapter={adapter}"], adapter),
        (["model.name=elsewhere"], "elsewhere"),
        (["dataset.name=outputs/tiny-smoke/rows.jsonl"], "outputs/tiny-smoke/rows.jsonl"),
        (["--config", "outputs/tiny-smoke/mine.yaml"], "outputs/tiny-smoke/mine.yaml"),
    ]  # fmt: skip
    for options, path in needed:
        code, _, err = command(capsys, *trial, *options)
        assert (code, len(err.splitlines())) == (2, 1)
        assert f"outputs/tiny-smoke: --smoke would empty this folder, but {path} is in it and is needed" in err
        assert Path(path).exists()
    second = (*trial, "--start-stage", "2", "--resume-adapter", str(adapter))
    code, _, err = command(capsys, *second)
    assert code == 2 and "outputs/tiny-smoke/stage2 already holds stage II" in err and "run_name=tiny-stage2\n" in err
    assert command(capsys, *second, "run_name=tiny-stage2")[0] == 0
    shutil.rmtree("outputs/tiny-smoke/stage2")
    assert command(capsys, *second)[0] == 0
    whens = [row["when"] for row in logged("evaluations", "tiny-smoke")]
    assert [when for when in whens if when != "step"] == ["pretrain", "after_stage1", "adapter", "after_stage2"]


def test_a_trial_run_moves_weights_even_if_nothing_is_right(folder, capsys):
    code, out, _ = command(capsys, "--smoke", "4", "train.stage1_steps=0", "reward.fn=helpers.tiny.nothing")
    assert code == 0 and "train.overlong_buffer 0 -> " in out
    steps = rows_in("outputs/tiny-smoke/metrics.jsonl")
    assert [step["reward_attempt2"] for step in steps] == pytest.approx([0.1, 0.1])  # it is paid on top of that
    assert all(step["grad_norm"] > 0 for step in steps)


def test_a_trial_run_fails_if_no_step_had_a_gradient(folder, capsys):
    nothing_is_right = (
        "reward.format=boxed", "train.recipe=thinktwice", "train.followed_attempts=1", "train.stage1_steps=0",
        "train.stage2_steps=1",
    )  # fmt: skip
    code, _, err = command(capsys, "--smoke", "4", *nothing_is_right)
    assert code == 3 and "tiny-smoke: the gradient was exactly zero in each of the 2 steps" in err
    assert command(capsys, *nothing_is_right)[0] == 0  # a run of many steps may go on


@pytest.mark.parametrize(("factor", "corrects", "share"), [(2, True, 0.5), (0.25, True, 2.0), (2, False, 1.0)])
def test_answers_of_another_engine_are_weighed(folder, factor, corrects, share):
    """Where the sampler held an answer for twice as likely, it counts half; for a quarter, twice: that is the cap."""
    correction = ("train.sampler_correction.cap=2.0",) if corrects else ()
    run = score_run("train.beta1=0", "train.beta2=0", *correction, moved=0.3)
    stage = run.stages[1]
    trees = run.sample(stage)

    def gradient(trees):
        run.step.optimizer.zero_grad()
        credit = run.credit(stage, trees)
        accumulate(run, credit)
        return gradients(run)

    def likelier(_, answer):
        y = answer.completion
        more = math.log(factor) / len(y.ids)
        return replace(answer, completion=replace(y, logps=[logp + more for logp in y.logps]))

    wanted, found = share * gradient(trees), gradient(changed(trees, likelier))
    assert wanted.abs().max() > 1e-3
    assert torch.allclose(found, wanted, rtol=0, atol=1e-5 * float(gradient(trees).abs().max()))


def test_a_soft_prompt_that_waits_is_not_seen_by_the_optimizer(folder):
    soft = "model.adapters={soft_prompt: {tokens: 2, freeze_steps: 1}, ia3: {}}"
    run = score_run(soft, "optimizer.weight_decay=0.1", "optimizer.learning_rate=0.1")
    vectors = run.policy.shelf.soft_prompt.vectors
    before = vectors.detach().clone()
    for number in range(2):
        run.policy.shelf.begin(number)
        run.step.learn(run.credit(run.stages[1], run.sample(run.stages[1])), run.objective, 0.1)
        assert torch.equal(vectors, before) == (number == 0)
        assert [int(state["step"]) for state in [run.step.optimizer.state[vectors]] if state] == [1][:number]


def test_pretrain_measures_the_base(folder):
    """A soft prompt is there before the first step, LoRA does nothing yet: both runs begin with the same texts."""
    soft = "model.adapters={lora: null, soft_prompt: {tokens: 3}}"
    texts, best = {}, {}
    for name, *overrides in (["lora"], ["soft", soft]):
        run = score_run(f"run_name={name}", "train.keep_best=true", *overrides)
        with run.open() as session:
            session.evaluate("pretrain")
            best[name] = session.checkpoints.best_of(1)
        texts[name] = [(row["when"], row["attempt1"], row["attempt2"]) for row in logged("generations", name)]
    assert texts["lora"] == texts["soft"] and {when for when, *_ in texts["soft"]} == {"pretrain"}
    assert best == {"lora": "stage1/step_0", "soft": None}  # the adapter of step 0 is not what was measured
    measured = {}
    for name, *overrides in (["lora"], ["soft", soft]):
        options = ["--temperature", "1", "--output", f"{name}.jsonl", *overrides]
        assert tiny.call(evaluate, "--config", "tiny.yaml", *options) == 0
        row = json.loads(Path(f"{name}.jsonl").read_text())
        measured[name] = [row["when"], row["reward_attempt1"], row["reward_attempt2"]]
    assert measured["lora"] == measured["soft"]


def test_a_chat_of_many_attempts_fits_with_its_instructions(folder):
    """Prompt and attempt 1 have 16 tokens, each of four more attempts 6, and before it r to ask for it."""
    r = score_run().task.prompts.longest_retry
    tight = ("train.attempts=5", f"generation.max_prompt_length_attempt2={16 + r}")
    score_run(*tight, f"model.max_seq_length={40 + 4 * r}")
    with pytest.raises(ConfigError, match=rf"got {39 + 4 * r}, but a chat may have {40 + 4 * r} tokens"):
        score_run(*tight, f"model.max_seq_length={39 + 4 * r}")


def test_an_attempt_that_was_cut_off_earns_nothing_unless_the_config_says_so(folder):
    strict, lenient = (
        [answer for node in nodes(run.sample(run.stages[1])) for answer in node.group.answers]
        for run in (score_run("reward.accept_cut=false"), score_run())
    )
    pairs = list(zip(strict, lenient, strict=True))
    assert {mine.completion.finished for mine, _ in pairs} == {True, False}
    for mine, theirs in pairs:
        assert mine.text == theirs.text
        is_cut = not mine.completion.finished
        assert mine.verdict.malformed == ("cut off by the token limit" if is_cut else theirs.verdict.malformed)
        assert mine.verdict.reward == (0 if is_cut else theirs.verdict.reward)


def test_attempts_that_were_cut_off_are_priced_or_left_out(folder):
    """Budgets are 8 and 6 tokens; the last three of each cost a third each. There are two revisions of each attempt."""
    choices = ("train.baseline=none", "train.overlong_buffer=3", "train.length_norm=token")
    run, masking = score_run(*choices), score_run(*choices, "train.mask_truncated=true")

    def cut(n, answer):
        is_first, y = answer.following is not None, answer.completion
        shorter = (y.ids[: 4 + n % 5], n % 2 == 0) if is_first else (y.ids[: 1 + n % 6], n % 3 > 0)
        return replace(answer, completion=replace(y, ids=shorter[0], finished=shorter[1]))

    trees = changed(run.sample(run.stages[1]), cut)
    rollouts = rollouts_of(trees)
    first, second = ([max(0, len(y.ids) - free) / 3 for y in ys]
                     for free, ys in ((5, [r.y1 for r in rollouts]), (3, [r.y2 for r in rollouts])))  # fmt: skip
    assert len(set(first)) > 1 and len(set(second)) > 1
    credit = by_rollout(run.credit(run.stages[1], trees), rollouts)
    paid1 = [r.score1.reward - price for r, price in zip(rollouts, first, strict=True)]
    assert credit.advantage1.tolist() == pytest.approx(paid1, abs=1e-6)
    assert credit.advantage2.tolist() == pytest.approx(
        [
            r.score2.reward - price + 2 * (r.score2.match - r.score1.match)
            for r, price in zip(rollouts, second, strict=True)
        ],
        abs=1e-6,
    )
    masked = by_rollout(masking.credit(run.stages[1], trees), rollouts)
    for name, repeats in (("1", 2), ("2", 1)):  # a first attempt stands there once for every revision
        ys = [getattr(r, f"y{name}") for r in rollouts]
        trained = sum(len(y.ids) for y in ys if y.finished)  # the mean is over these tokens alone
        weight = [repeats * len(ys) / trained * y.finished for y in ys]
        assert getattr(masked, f"weight{name}").tolist() == pytest.approx(weight)
        kept = [value * y.finished for value, y in zip(getattr(credit, f"advantage{name}").tolist(), ys, strict=True)]
        assert getattr(masked, f"advantage{name}").tolist() == pytest.approx(kept)
    with pytest.raises(ConfigError, match="a buffer of 6 tokens is no part of 6: lower it"):
        load(ScoreConfig, Path("tiny.yaml"), ["train.overlong_buffer=6"])


def test_a_token_weighs_the_same_in_both_attempts_and_what_the_base_wrote_is_not_counted(folder):
    """Budgets are 8 and 6 tokens. With both rewards paid, one number for both attempts leaves their sum's gradient."""

    def credit(*choices):
        run = score_run("train.revisions_per_attempt=1", *choices)
        trees = run.sample(run.stages[1])
        rollouts = rollouts_of(trees)
        return rollouts, by_rollout(run.credit(run.stages[1], trees), rollouts)

    _, equal = credit("train.length_norm=constant")
    assert {*equal.weight1.tolist(), *equal.weight2.tolist()} == {1 / 8}
    _, own = credit("train.length_norm=budget")
    assert set(own.weight1.tolist()) == {1 / 8} and own.weight2.tolist() == pytest.approx([1 / 6] * len(own.weight2))
    rollouts, by_token = credit("train.length_norm=token", "train.base_first_attempts=0.5")
    written = [len(r.y1.ids) for r in rollouts if not r.y1_by_base]
    assert 0 < len(written) < len(rollouts)
    weighed = [w for w, r in zip(by_token.weight1.tolist(), rollouts, strict=True) if not r.y1_by_base]
    assert weighed == pytest.approx([len(rollouts) / sum(written)] * len(written))


def test_what_is_reported_and_what_is_chosen_by_share_no_question(folder, capsys):
    """Held out are 16 of 25 rows; 2 to 14 of them are looked at, three of these are to choose by."""
    more = ("dataset.test_split_size=16", "eval.rows=[2,14]", "eval.max_examples=7", "eval.step_examples=2")
    sampled = ("eval.temperature=1", "eval.samples_per_prompt=2", "eval.greedy_too=true")
    steps = ("train.stage1_steps=2", "train.stage2_steps=1", "eval.every_steps=1")
    code, out, err = command(capsys, *more, *sampled, *steps)
    assert (code, err) == (0, "")
    rows = logged("evaluations")
    told = [(row["when"], row["temperature"], row["n"], row["prompts"]) for row in rows]
    assert told == [
        ("pretrain", 1, 14, 7), ("pretrain", 0, 7, 7), ("step", 1, 4, 2), ("after_stage1", 1, 14, 7),
        ("after_stage1", 0, 7, 7), ("after_stage2", 1, 14, 7), ("after_stage2", 0, 7, 7),
    ]  # fmt: skip
    assert all((row["rows"], row["rows_left_out"]) == ([2, 14], 3) for row in rows)
    assert ["selection" in row for row in rows] == [row["temperature"] == 1 for row in rows]
    texts = [row for row in logged("generations") if row["when"] != "train"]
    asked = {part: {row["prompt"] for row in texts if row.get("part") == part} for part in (None, "selection")}
    assert (len(asked[None]), len(asked["selection"])) == (7, 3)
    assert not asked[None] & asked["selection"]
    splits, _ = load_data(load(ScoreConfig, Path("tiny.yaml"), list(more)))
    assert asked[None] | asked["selection"] <= {row["question"] for row in splits.test[2:14]}
    assert (
        "9 train rows; held out are 9 to report (the first 7, the first 2 in the middle of a stage) and 3 to choose by"
        "; attempt 2"
    ) in out
    assert "held out are 16 of 25 rows, drawn at random: the same ones for every seed" in out
    for row in rows:
        if choice := row.get("selection"):
            own = [t for t in texts if t.get("part") and (t["when"], t["step"]) == (row["when"], row["step"])]
            right = [[t["match2"] for t in own[i : i + 2]] for i in (0, 2, 4)]
            assert choice["per_prompt"] == [sum(pair) / 2 for pair in right]
            assert (choice["n"], choice["acc_attempt2"]) == (6, pytest.approx(sum(choice["per_prompt"]) / 3))
    labels = [line.split("  ")[0] for line in out.splitlines()]
    assert ("after stage II", "greedy") in pairwise(labels) and "temperature 1" in labels
    assert (
        "exact match at temperature 1, n = 14 answers to 7 held-out questions; by greedy decoding, n = 7 answers to 7 "
        "held-out questions, from rows 2 to 13 (counted from 0) of what is held out without 3 that training chooses "
        "by; below each value"
    ) in out


def test_rows_that_are_none_are_a_mistake(folder, capsys):
    for rows, said in (("[3,3]", "no row is from 3 and before 3"), ("[2,7]", "7 is beyond the 6 rows of dataset.test")):
        code, _, err = command(capsys, f"eval.rows={rows}")
        assert code == 2 and said in err


def note_on_repeated(rows, *changes, kind=ScoreConfig):
    write_rows(Path("rows.jsonl"), rows)
    notes = load_task(load(kind, Path("tiny.yaml"), changes), say=lambda text: None).notes
    (note,) = [n for n in notes if "repeat" in n] or [""]
    return note


def test_questions_that_repeat_are_counted_with_those_that_have_another_answer(folder):
    rows, judge = rows_in("rows.jsonl"), "reward.fn=exact_match"
    assert note_on_repeated(rows, judge) == ""
    train = load_data(load(ScoreConfig, Path("tiny.yaml")))[0].train
    same, wrong = [dict(row) for row in train[:3]], [{**row, "answer": "99"} for row in train[3:5]]
    about = f"3 of {len(train) + 3} train rows repeat the question of another row"
    assert note_on_repeated(rows + same, judge) == about
    about = f"5 of {len(train) + 5} train rows repeat the question of another row"
    others = f"{about}, 2 of them with another answer: remove those that are wrong"
    assert note_on_repeated(rows + same + wrong, judge) == others
    assert note_on_repeated(rows + same + wrong) == about  # its reward does not compare


def test_one_answer_in_other_spellings_is_not_another_one(folder):
    rows = rows_in("rows.jsonl")
    train = load_data(load(ScoreConfig, Path("tiny.yaml")))[0].train
    rows = [{**row, "answer": "1000"} if row == train[0] else row for row in rows]
    rows += [{**train[0], "answer": answer} for answer in ("1,000", "1000.0", "$1000$")]
    note = note_on_repeated(rows, "reward.fn=exact_match")
    assert note == f"3 of {len(train) + 3} train rows repeat the question of another row"


def test_repeated_questions_are_counted_where_no_target_is_a_text(folder, tiny_folder):
    """Self-play compares targets only if a reward does, so they may be of any kind."""
    tiny.write_task(folder, tiny.SELFPLAY, tiny_folder)
    rows = rows_in("rows.jsonl")
    pq.write_table(pa.Table.from_pylist([{**row, "answer": date(2020, 1, 1)} for row in 2 * rows]), "rows.parquet")
    note = note_on_repeated(rows, "dataset.name=rows.parquet", "dataset.target_field=answer", kind=SelfPlayConfig)
    assert note.endswith("train rows repeat the question of another row")


def test_control_tokens_and_unknown_characters_of_the_data_are_told(folder):
    rows = rows_in("rows.jsonl")
    for row in rows[3:5]:
        row["question"] += "<|im_end|><|assistant|>"
    rows[9]["question"] = "1\xd72"
    write_rows(Path("rows.jsonl"), rows)
    task = load_task(load(ScoreConfig, Path("tiny.yaml")), say=lambda text: None)
    rows = task.splits.train
    assert "'<|assistant|>', '<|im_end|>' (2 rows, first line " in task.notes[-2]
    assert task.notes[-1].startswith("the tokenizer does not know '\xd7' (1 rows, first line 10 of 'rows.jsonl')")
    config = load(ScoreConfig, Path("tiny.yaml"), ["prompts.self_correction='\xe9 \xd7'"])
    note = "the tokenizer does not know '\xd7', '\xe9' in prompts.self_correction: reword it, or use another model"
    assert note in load_task(config, say=lambda text: None).notes
    end = task.tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert all(task.prompts.prompt(row).ids.count(end) == 1 for row in rows)


def test_a_model_that_is_sampled_batch_by_batch_is_told(folder, monkeypatch):
    heard = []
    load_task(load(ScoreConfig, Path("tiny.yaml")), heard.append)
    assert not any("batch by batch" in line for line in heard)
    monkeypatch.setattr("lib.model.policy.attends_to_everything", lambda model: False)
    load_task(load(ScoreConfig, Path("tiny.yaml")), heard.append)
    assert heard[-1] == "a model of type qwen3 is sampled batch by batch through plain, by its own cache: slower"


# -- the update


@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize("history", ["full", "answer_only"])
def test_the_size_of_micro_batches_does_not_change_the_update(folder, stage, history):
    run = score_run(f"prompts.history={history}", "train.length_norm=token", moved=0.2)
    plan_of_stage = run.stages[stage - 1]
    credit = run.credit(plan_of_stage, run.sample(plan_of_stage))
    results = []
    for tokens in (1, 90, 10_000):
        run.progress.micro_batch_tokens = tokens
        run.policy.zero_grad()
        results.append((accumulate(run, credit)["loss"], gradients(run)))
    for loss, gradient in results[1:]:
        assert loss == pytest.approx(results[0][0], abs=1e-6)
        torch.testing.assert_close(gradient, results[0][1], rtol=1e-5, atol=1e-6)
    assert results[0][1].norm() > 1e-3

    adapter = copy.deepcopy(run.policy.state_dict())
    after = []
    for tokens in (1, 10_000):
        run.policy.load_state_dict(adapter)
        run.step.reset()
        run.progress.micro_batch_tokens = tokens
        for group in run.step.optimizer.param_groups:
            group["lr"] = 1e-4
        for trial in run.step.trials():
            with trial:
                numbers = accumulate(run, credit)
        run.step.apply(numbers, credit.advantage, expects_gradient=True)
        after.append(weights(run))
    torch.testing.assert_close(after[0], after[1], rtol=0, atol=1e-6)


def test_the_gradient_is_that_of_the_equations(folder):
    """Eq. 4, term by term and sequence by sequence, with the models own logits and autograd over the vocabulary."""
    run = score_run("train.kl=exact", "train.alpha=3", "train.beta1=0.5", "generation.temperature=0.8", moved=0.2)
    stage = run.stages[1]
    trees = run.sample(stage)
    rollouts, credit = rollouts_of(trees), run.credit(stage, trees)
    run.policy.zero_grad()
    loss = accumulate(run, credit)["loss"]
    ours = gradients(run)

    def per_token(prompt, ids):
        """Log-probs (T,) of the ids and the exact KL (T,)."""

        def log_p():
            logits = run.policy.model(input_ids=torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1] / 0.8
            return logits.log_softmax(-1)

        with torch.no_grad(), run.policy.reference_mode():
            q = log_p()
        p = log_p()
        return p.gather(1, torch.tensor(ids)[:, None])[:, 0], (p.exp() * (p - q)).sum(-1)

    run.policy.zero_grad()
    expected = 0
    for prompt in range(4):
        leaves = rollouts[4 * prompt : 4 * prompt + 4]
        firsts = [leaves[0], leaves[2]]
        for i, r in enumerate(firsts):
            advantage = r.score1.reward - firsts[1 - i].score1.reward
            logp, kl = per_token(r.prompt1, r.y1.ids)
            expected += (-advantage * logp + 0.5 * kl).mean() / 8  # over 8 first attempts
        for i, r in enumerate(leaves):
            other = leaves[i ^ 1]
            bonus = 3 * ((r.score2.match - r.score1.match) - (other.score2.match - other.score1.match))
            logp, kl = per_token(r.prompt2.ids, r.y2.ids)
            expected += (-(r.score2.reward - other.score2.reward + bonus) * logp + 0.5 * kl).mean() / 16
    expected.backward()
    assert loss == pytest.approx(expected.item(), abs=1e-5)
    torch.testing.assert_close(ours, gradients(run), rtol=1e-4, atol=1e-5)


NAMES = {1: "first", 2: "second"}


def apart_from(mine, expected):
    return ((mine - expected).norm() / expected.norm()).item()


HISTORIES = {
    "full": (),
    "plain_text": ("prompts.history=plain_text",),
    "answer_only": ("prompts.history=answer_only",),
    "cut": ("generation.max_prompt_length_attempt2=17",),
}


@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("choices", ["train.kl=exact", "train.kl=k3", "train.base_first_attempts=0.5"])
def test_the_update_is_that_of_a_forward_per_completion(folder, monkeypatch, stage, history, choices):
    """Shared trunks, packed micro-batches and the head's own derivative, or plain autograd: the same numbers."""
    run = score_run(choices, *HISTORIES[history], "generation.temperature=0.8", moved=0.2)
    stage = run.stages[stage - 1]
    trees = run.sample(stage)
    rollouts = rollouts_of(trees)
    assert {r.prompt2.continues for r in rollouts} <= {history in ("full", "cut"), False}
    credit = run.credit(stage, trees)
    kind, betas = run.config.train.kl, kl_weights(run.config.train, stage.number, 2)
    loss, expected, logps = naive.update(run.policy, rollouts, by_rollout(credit, rollouts), betas, kind, 0.8)
    assert expected.norm() > 1e-2
    results = []
    for pays in (True, False):
        monkeypatch.setattr(Policy, "should_share_trunk", lambda self, trunk, branches, pays=pays: pays)
        for tokens in (60, 10_000):
            run.progress.micro_batch_tokens = tokens
            batches = list(
                run.step.batches(credit.nodes, {getattr(rollouts[i], NAMES[a]) for a, i in logps}.__contains__)
            )
            shared = [batch.inputs.branch is not None for batch in batches]
            assert all(shared) if pays and history == "full" else any(shared) == pays
            run.policy.zero_grad()
            numbers = accumulate(run, credit)
            results.append(gradients(run))
            assert numbers["loss"] == pytest.approx(loss, rel=1e-5, abs=1e-6)
            assert apart_from(results[-1], expected) < 1e-5
            for batch in batches:
                mine = run.policy(batch.inputs)[0].detach()
                for (attempt, i), other in logps.items():
                    chosen = batch.answer == getattr(rollouts[i], NAMES[attempt])
                    assert not chosen.any() or torch.allclose(mine[chosen], other, rtol=0, atol=1e-5)
    assert all(apart_from(gradient, results[0]) < 1e-5 for gradient in results[1:])


IDLE = {
    "no KL": ("train.beta1=0",),
    "KL in the reward": ("train.beta1=0", "train.kl=k1_in_reward"),
    "left out": ("train.mask_truncated=true",),  # whatever its KL
}


@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize("history", ["full", "answer_only"])
@pytest.mark.parametrize("idle", IDLE)
def test_what_has_no_gradient_costs_no_forward(folder, monkeypatch, stage, history, idle):
    choices = ("reward.fn=test_score.begins_with_a_digit", "train.stage1_batch_size=8", "train.stage2_batch_size=8")
    run = score_run(*choices, f"prompts.history={history}", *IDLE[idle], moved=0.2)
    stage = run.stages[stage - 1]
    trees = run.sample(stage)
    credit = run.credit(stage, trees)
    assert len(credit.learned) == 48
    expected = credit.advantage != 0
    if idle == "left out":
        expected = credit.weight != 0
    elif stage.number == 1:
        expected |= credit.turn == 1  # beta2, in the loss or in the reward
    assert credit.learned == expected.tolist() and 0 < sum(credit.learned) < 48
    found = []
    every = replace(credit)
    vars(every)["learned"] = [True] * 48
    for own, pays in product((credit, every), (True, False)):
        monkeypatch.setattr(Policy, "should_share_trunk", lambda self, trunk, branches, pays=pays: pays)
        run.policy.zero_grad()
        batches = run.step.batches(own.parts[0], own.learned.__getitem__)
        scored = sum(int((batch.token == 0).sum()) for batch in batches)
        found.append((scored, accumulate(run, own)["loss"], gradients(run)))
    learned = sum(credit.learned)
    assert [number for number, *_ in found] == [learned, learned, 48, 48]
    for _, loss, gradient in found[1:]:
        assert loss == pytest.approx(found[0][1], abs=1e-6)
        torch.testing.assert_close(gradient, found[0][2], rtol=0, atol=1e-6)
    assert found[0][2].norm() > 1e-3


def test_a_step_without_any_gradient_moves_nothing(folder):
    """Momentum alone would move the policy by what it learned before; of KL and entropy nothing is known."""
    run = score_run("train.beta1=0")
    with run.open():
        step(run, 2)
        before, trees = weights(run), run.sample(run.stages[1])
        credit = run.credit(run.stages[1], trees)
        row = run.update(run.stages[1], trees, replace(credit, advantage=torch.zeros_like(credit.advantage)))
    assert (row["idle"], row["zero_advantage"], row["grad_norm"], row["learned"], row["updates"]) == (1, 1, 0, 0, 0)
    assert not {"entropy", "kl_attempt1"} & set(row)
    assert torch.equal(weights(run), before)


@pytest.mark.parametrize("stage", [1, 2])
def test_prompts_without_an_advantage_get_others_beside_them(folder, stage):
    """Where the KL pulls, they stay in the mean; else the step is that of the others alone."""
    choices = ("train.resample_rounds=2", "train.beta2=0", "train.length_norm=token", "train.baseline=leave_one_out")
    for reward, prompts in (("nothing", 4 * 3), ("share_of_digits", 4)):
        run = score_run(*choices, f"reward.fn=helpers.tiny.{reward}")
        trees = run.sample(run.stages[stage - 1])
        rollouts = rollouts_of(trees)
        assert len(rollouts) == 4 * prompts and len({r.row["question"] for r in rollouts}) == prompts
        other = rollouts_of(score_run(f"reward.fn=helpers.tiny.{reward}").sample(run.stages[0]))
        assert other[0].y1.ids == rollouts[0].y1.ids
    for beta in (0.0, 0.1):
        run = score_run(*choices, "reward.fn=test_score.begins_with_a_digit", f"train.beta1={beta}", moved=0.2)
        stage_plan = run.stages[stage - 1]
        trees = run.sample(stage_plan)
        credit = run.credit(stage_plan, trees)
        tells = [bool((credit.advantage[6 * i : 6 * i + 6] != 0).any()) for i in range(len(trees))]
        assert len(tells) > 4 and 0 < sum(tells) < len(tells)
        assert credit.divisor == 4 * (len(trees) if beta else sum(tells))
        if not beta:
            alone = [tree for tree, is_told in zip(trees, tells, strict=True) if is_told]
            results = []
            for own in (trees, alone):
                run.policy.zero_grad()
                accumulate(run, run.credit(stage_plan, own))
                results.append(gradients(run))
            torch.testing.assert_close(*results, rtol=0, atol=1e-6)
        with run.open():
            row = run.update(stage_plan, trees, credit)
        zero = (credit.advantage[credit.turn == 2] == 0).float().mean()
        assert row["prompts"] == len(tells) and row["zero_advantage"] == pytest.approx(zero.item())
        groups = [tree.answers for tree in trees], [y1.following.answers for tree in trees for y1 in tree.answers]
        for attempt, sets in enumerate(groups, start=1):
            expected = fmean(pstdev(answer.verdict.reward for answer in answers) for answers in sets)
            assert row[f"reward_std_attempt{attempt}"] == pytest.approx(expected)


@pytest.mark.parametrize("stage", [1, 2])
def test_a_sample_of_the_kl_is_exact_in_the_mean(folder, monkeypatch, stage):
    """Of halves one is drawn or the other: the mean of both steps is the step with all of it."""
    choices = ("reward.fn=test_score.begins_with_a_digit", "train.beta1=0.3", "train.stage1_batch_size=8",
               "train.stage2_batch_size=8")  # fmt: skip
    whole, run = score_run(*choices, moved=0.2), score_run(*choices, "train.kl_sample=0.5", moved=0.2)
    stage = run.stages[stage - 1]
    trees = run.sample(stage)
    half = torch.rand(16)

    def accumulated(run, drawn):
        monkeypatch.setattr(torch, "rand", lambda *_, **__: drawn)
        credit = run.credit(stage, trees)
        run.policy.zero_grad()
        return accumulate(run, credit) | {"learned": sum(credit.learned)}, gradients(run)

    numbers, expected = accumulated(whole, None)
    (one, first), (two, second) = (accumulated(run, drawn) for drawn in (half, 1 - half))
    assert numbers["learned"] == 48 and max(one["learned"], two["learned"]) < 48
    assert not torch.allclose(first, expected, atol=1e-4)
    torch.testing.assert_close((first + second) / 2, expected, rtol=0, atol=1e-6)
    assert (one["loss"] + two["loss"]) / 2 == pytest.approx(numbers["loss"], abs=1e-6)
    with pytest.raises(ConfigError, match="a KL in the reward is of every attempt"):
        score_run("train.kl_sample=0.5", "train.kl=k1_in_reward")


CHOICES = [
    *(f"train.kl={kind}" for kind in ("k3", "k2", "k1_in_reward", "exact")),
    *(f"train.length_norm={norm}" for norm in ("sequence", "constant", "budget", "token")),
    *(f"train.baseline={name}" for name in ("leave_one_out", "batch", "none")),
    *(f"train.bonus_on={what}" for what in ("match", "reward")),
    "train.revisions_per_attempt=1",
    "train.base_first_attempts=0.5",
    "prompts.history=plain_text",
    "generation.max_prompt_length_attempt2=17",  # contexts are cut
    "model.gradient_checkpointing=true",
    "train.beta1_in_stage1=false",
]


@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_takes_a_step_in_both_stages(folder, choice):
    run = score_run(choice)
    with run.open():
        for stage in (1, 2):
            before = weights(run)
            row = step(run, stage)
            assert not torch.equal(weights(run), before)
            assert math.isfinite(row["loss"])
            assert row["grad_norm"] > 0
    if "attempt2=17" in choice:
        assert row["context_cut"] > 0


def test_none_and_one_by_one_is_plain_reinforce(folder):
    run = score_run("train.baseline=none", "train.attempts_per_prompt=1", "train.revisions_per_attempt=1")
    trees = run.sample(run.stages[1])
    rollouts = rollouts_of(trees)
    credit = by_rollout(run.credit(run.stages[1], trees), rollouts)
    for i, r in enumerate(rollouts):
        bonus = float(r.score2.match) - float(r.score1.match)
        assert credit.advantage1[i].item() == pytest.approx(r.score1.reward)
        assert credit.advantage2[i].item() == pytest.approx(r.score2.reward + 2 * bonus)


def test_k1_in_the_reward_is_the_kl_of_the_sampled_text(folder):
    """With B = 0 it is zero; after a move the advantage without baseline is r - beta * sum of log pi - log ref."""
    choices = ("train.kl=k1_in_reward", "train.baseline=none", "train.beta1=0.5", "train.beta2=0.25")
    still = score_run(*choices)
    credit = still.credit(still.stages[0], still.sample(still.stages[0]))
    assert (credit.advantage[credit.turn == 1] == 0).all()
    run = score_run(*choices, moved=0.2)
    trees = run.sample(run.stages[0])
    rollouts = rollouts_of(trees)
    credit = by_rollout(run.credit(run.stages[0], trees), rollouts)
    for i, r in enumerate(rollouts):
        for attempt, beta, prompt, y, reward in (
            (1, 0.75, r.prompt1, r.y1, 0.0), (2, 0.5, r.prompt2.ids, r.y2, r.score2.reward)
        ):  # fmt: skip
            inputs = after(prompt, y.ids)
            with torch.no_grad():
                k1 = run.policy(inputs)[0] - run.policy.reference(inputs)[0]
            expected = reward - beta * k1.sum().item()
            assert getattr(credit, f"advantage{attempt}")[i].item() == pytest.approx(expected, abs=1e-5)


# -- the tree


def test_a_shared_first_attempt_is_trained_once(folder):
    run = score_run("train.revisions_per_attempt=3")
    trees = run.sample(run.stages[0])
    rollouts, found = rollouts_of(trees), nodes(trees)
    assert len(rollouts) == 4 * 2 * 3
    for start in range(0, len(rollouts), 3):
        shared = rollouts[start : start + 3]
        assert [r.revision for r in shared] == [0, 1, 2]
        assert shared[0].y1 is shared[1].y1 is shared[2].y1
    apart, together = sequences(found), sequences(found, should_share=lambda trunk, branches: True)
    assert (len(apart), len(together)) == (24, 8)
    for items in (apart, together):
        for attempt in (1, 2):
            own = {getattr(r, NAMES[attempt]) for r in rollouts}
            spans = [(item, span) for item in items for span in item.spans if span.answer in own]
            expected = [
                (r.second, r.prompt2.ids, r.y2.ids) if attempt == 2 else (r.first, r.prompt1, r.y1.ids)
                for r in rollouts
                if attempt == 2 or r.revision == 0
            ]
            assert [(span.answer, item.ids[: span.before + 1], span.ids) for item, span in spans] == expected
            for item, span in spans:  # all are read, but for a last one that nothing follows
                read = len(span.ids) - (attempt == 2)
                assert item.ids[span.start : span.start + read] == span.ids[:read]
    for item, r in zip(apart, rollouts, strict=True):
        assert (item.ids, item.trunk, item.branches) == (r.prompt2.ids + r.y2.ids[:-1], len(item.ids), ())
    for i, item in enumerate(together):
        answers = [r.y2.ids[:-1] for r in rollouts[3 * i : 3 * i + 3]]
        assert item.ids == sum(answers, rollouts[3 * i].prompt2.ids)
        assert (item.trunk, item.branches) == (len(rollouts[3 * i].prompt2.ids), tuple(map(len, answers)))
    credit = by_rollout(run.credit(run.stages[0], trees), rollouts)
    for weight, r in zip(credit.weight1.tolist(), rollouts, strict=True):
        assert weight == pytest.approx(3 / len(r.y1.ids))  # divided by 24 leaves: a mean over 8 first attempts


def test_first_attempts_of_the_base_are_context_alone(folder):
    run = score_run("train.base_first_attempts=0.5", moved=0.4)
    trees = run.sample(run.stages[1])
    rollouts = rollouts_of(trees)
    by_base = torch.tensor([r.y1_by_base for r in rollouts])
    assert by_base.sum() == 8
    whole = run.credit(run.stages[1], trees)
    credit = by_rollout(whole, rollouts)
    assert (credit.advantage1[by_base] == 0).all()
    assert (credit.advantage1[~by_base] != 0).any()
    assert {n for n, is_learned in enumerate(whole.learned) if is_learned} == {
        *(r.first for r in rollouts if not r.y1_by_base), *(r.second for r in rollouts)
    }  # fmt: skip
    for r in rollouts:
        inputs = after(r.prompt1, r.y1.ids)
        with torch.no_grad():
            policy, base = run.policy(inputs)[0], run.policy.reference(inputs)[0]
        author, other = (base, policy) if r.y1_by_base else (policy, base)
        torch.testing.assert_close(author, torch.tensor(r.y1.logps), rtol=0, atol=1e-4)
        assert not torch.allclose(other, torch.tensor(r.y1.logps), atol=1e-3)


def test_whose_first_attempts_the_base_writes_is_drawn_by_lot(folder):
    """As often as the share says, whatever the processes: one prompt and two are drawn as three are."""
    run = score_run("train.base_first_attempts=0.3", "train.attempts_per_prompt=2", "train.revisions_per_attempt=1")
    prompts = [run.task.prompts.prompt(row) for row in run.task.train[:3]]

    def drawn(seed, start, end):
        generator, task = torch.Generator().manual_seed(seed), run.task
        part = prompts[start:end]
        trees = sample(run.policy, task.prompts, part, task.judge, run.sampling, generator, first=start)
        return [tree.is_context for tree in trees]

    lots = [drawn(seed, 0, 3) for seed in range(20)]
    assert 15 <= sum(map(sum, lots)) <= 21 and all(any(lot[i] for lot in lots) for i in range(3))
    assert lots[:5] == [drawn(seed, 0, 1) + drawn(seed, 1, 3) for seed in range(5)]


@pytest.mark.parametrize("shared", [True, False])
def test_the_gap_between_sampling_and_scoring_is_that_of_the_trained_tokens(folder, monkeypatch, shared):
    """Those of the base are none of them, and a first attempt of several revisions counts once."""
    run = score_run("train.base_first_attempts=0.5", moved=0.4)
    monkeypatch.setattr(run.policy, "should_share_trunk", lambda trunk, branches: shared)
    trees = run.sample(run.stages[1])
    rollouts = rollouts_of(trees)

    def moved(number, answer):
        more = 0.25 if answer.following else -0.5 * (number == rollouts[5].second)
        y = answer.completion
        return replace(answer, completion=replace(y, logps=[logp + more for logp in y.logps]))

    off = changed(trees, moved)
    own = [len(r.y1.ids) for r in rollouts if r.revision == 0 and not r.y1_by_base]
    tokens = sum(own) + sum(len(r.y2.ids) for r in rollouts)
    with run.open():
        sound, wrong = (accumulate(run, run.credit(run.stages[1], grown)) for grown in (trees, off))
    assert 0 < sound["sampler_gap"] < 1e-5
    expected = (0.25 * sum(own) + 0.5 * len(rollouts[5].y2.ids)) / tokens
    assert wrong["sampler_gap"] == pytest.approx(expected, abs=1e-5)


def test_unpaid_first_attempts_promise_no_gradient(folder):
    """All attempts 2 earn the same, and attempts 1 differ, but the base wrote them: an idle step, not a broken one."""
    run = score_run("train.base_first_attempts=1", "train.beta1=0", "train.bonus_on=reward", "train.alpha=0")

    def same(number, answer):
        is_first = answer.following is not None
        return answer if is_first else replace(answer, verdict=answer.verdict._replace(reward=0.3))

    alike = changed(run.sample(run.stages[1]), same)
    with run.open():
        row = run.update(run.stages[1], alike, run.credit(run.stages[1], alike))
    assert row["grad_norm"] == 0
    assert row["idle"] == 1


# -- what stops a run


@pytest.mark.parametrize("resume", [False, True])
def test_a_model_whose_log_probs_differ_is_refused_before_there_is_a_run(folder, monkeypatch, capsys, resume):
    if resume:
        assert command(capsys)[0] == 0
    before = sorted((path, path.stat().st_mtime_ns) for path in Path("outputs").rglob("*"))
    monkeypatch.setattr("lib.model.policy.measure", lambda model: HeadTransform(after=1.5))
    code, _, err = command(capsys, *(["--resume"] if resume else []))
    assert code == 2
    assert "of type qwen3, gives the tokens that it samples other log-probs than its own forward does" in err
    assert before == sorted((path, path.stat().st_mtime_ns) for path in Path("outputs").rglob("*"))


FAILURES = {
    "reward.fn=test_score.not_a_number": (7, "reward 'test_score.not_a_number' returned nan for sample 0"),
    "reward.fn=test_score.one_too_few": (7, "reward 'test_score.one_too_few' returned 3 values for 4 predictions"),
    "reward.fn=test_score.nowhere": (2, "module 'test_score' has no callable 'nowhere'"),
    "model.adapters.lora.targets=[q_prj]": (2, "model.adapters.lora.targets: 'q_prj' is no linear layer of"),
    "sandbox.worker=here": (2, "sandbox.worker: got 'here', expected a dotted path: write MODULE.here"),
    "optimizer.learning_rate=1e-60": (3, "the first optimizer step changed no weight"),
    "dataset.name=nowhere.jsonl": (2, "there is no file or folder 'nowhere.jsonl'"),
    "prompts.user='{questio}'": (2, "did you mean 'question'?"),
    "generation.max_prompt_length_attempt1=2": (2, "raise it"),
}


@pytest.mark.parametrize(("mistake", "expected"), FAILURES.items())
def test_a_mistake_is_one_sentence_and_a_documented_code(folder, capsys, mistake, expected):
    code, _, err = command(capsys, mistake)
    assert code == expected[0]
    assert expected[1] in err
    assert len(err.splitlines()) == 1


def test_a_schedule_or_a_pool_that_cannot_be_is_refused(folder):
    with pytest.raises(ConfigError, match=r"is above 1, where it begins"):
        score_run("generation.temperature_schedule={end: 1.5}")
    with pytest.raises(ConfigError, match=r"curriculum.easy_pool.column: the data has no column 'kind'"):
        preview(load(ScoreConfig, Path("tiny.yaml"), ["curriculum.easy_pool={column: kind, values: [easy]}"]))


def test_a_dry_run_knows_the_layers_of_the_model(folder):
    with pytest.raises(ConfigError, match=r"'q_prj' is no linear layer of"):
        preview(load(ScoreConfig, Path("tiny.yaml"), ["model.adapters.lora.targets=[q_prj]"]))


def test_a_command_follows_every_checkpoint(folder, capsys):
    told = """bash -c 'ls {checkpoint}/adapter_model.safetensors && echo at {stage} {step} && exit {step}'"""
    run = score_run(f"train.after_checkpoint={told}")
    with run.open() as session:
        session.save()
        run.progress.step = 1
        session.save()
    log = (run.config.run_dir / "after_checkpoint.log").read_text()
    folders = [run.config.run_dir / f"stage1/step_{n}/adapter_model.safetensors" for n in (0, 1)]
    assert log.split("\n") == [str(folders[0]), "at 1 0", str(folders[1]), "at 1 1", ""]
    warned = [line for line in capsys.readouterr().out.splitlines() if "after_checkpoint" in line]
    assert len(warned) == 1 and "ended with exit code 1" in " ".join(warned)
    for wrong in ("run {folder}", "run 'it", "run {}", "run {checkpoint:>9}", "run {stage.x}"):
        with pytest.raises(ConfigError, match=r"train.after_checkpoint: .*it may name \{checkpoint\}"):
            score_run(f"train.after_checkpoint={json.dumps(wrong)}")


@pytest.mark.parametrize("text", ["Again: {question}", "It is not {answer}!", "Again: {qestion}"])
def test_a_column_in_the_instruction_is_refused(folder, text):
    """It is the same for all rows: a column would reach the model as it stands."""
    with pytest.raises(ConfigError, match=r"prompts.self_correction: '\{\w+\}' looks like a column"):
        score_run(f"prompts.self_correction={json.dumps(text)}")


def test_braces_of_formulae_are_text(folder):
    score_run(r"prompts.self_correction='In \boxed{answer}, as {n}.'")


def test_a_start_that_fails_before_its_first_checkpoint_leaves_no_run_behind(folder, capsys):
    """The same command works once the reason is gone; behind a checkpoint it does not, without --resume."""
    code, _, err = command(capsys, "reward.fn=test_score.not_a_number")
    assert code == 7 and not Path("outputs/tiny/config.yaml").exists()
    code, out, err = command(capsys, "reward.fn=test_score.one_too_few", "--resume")
    assert code == 7 and "nothing to resume from" in out and not Path("outputs/tiny/config.yaml").exists()
    code, _, err = command(capsys)
    assert (code, err) == (0, "")
    assert [row["when"] for row in logged("evaluations")] == ["pretrain", "after_stage1", "after_stage2"]
    code, _, err = command(capsys)
    assert code == 2 and "already holds a run" in err


def test_a_warm_start_by_a_config_key_goes_with_resume(folder, capsys):
    """So deploy/slurm.sh and deploy/sky.yaml can start one, which always resume."""
    assert command(capsys, "train.stage2_steps=0")[0] == 0
    warm = ("run_name=next", "model.adapter=outputs/tiny/stage1", "--resume")
    code, out, _ = command(capsys, *warm)
    assert code == 0 and "nothing to resume from: starting" in out and len(logged("metrics", "next")) == 2
    code, out, _ = command(capsys, *warm)
    assert code == 0 and "this run is finished: nothing is left to do" in out


@pytest.mark.parametrize(("without", "left"), [(1, 2), (2, 1)])
def test_a_stage_without_steps_is_none(folder, capsys, without, left):
    options = f"train.stage{without}_steps=0", f"train.stage{left}_steps=2", "eval.every_steps=1"
    code, out, _ = command(capsys, *options)
    assert code == 0
    assert re.findall(r"^after stage (I+) ", out, re.M) == ["I" * left]  # of the table
    whens = [(row["when"], row["stage"], row["step"]) for row in logged("evaluations")]
    assert whens == [("pretrain", left, 0), ("step", left, 1), (f"after_stage{left}", left, 2)]
    assert [row["global_step"] for row in logged("metrics")] == [1, 2]
    assert sorted(path.name for path in Path("outputs/tiny").glob("stage*")) == [f"stage{left}"]
    assert Path("outputs/tiny/best").resolve().parent == Path(f"outputs/tiny/stage{left}").resolve()
    for more in ([], [f"train.stage{without}_steps=2", "--allow-config-change"]):
        code, out, _ = command(capsys, *options, "--resume", *more)
        assert code == 0 and "this run is finished: nothing is left to do" in out and "left: " not in out
    assert len(logged("evaluations")) == 3
    before = Path("outputs/tiny/config.yaml").read_bytes()
    longer = *options, f"train.stage{left}_steps=3", "--resume", "--allow-config-change"
    code, _, err = command(capsys, *longer)
    assert code == 2 and "this run is finished, after 2 steps of its last stage, not 3: restore" in err
    assert Path("outputs/tiny/config.yaml").read_bytes() == before
    more = "--start-stage", "2", "--resume-adapter", f"outputs/tiny/stage{left}"
    code, _, err = command(capsys, *more, "run_name=other", "train.stage2_steps=0")
    assert code == 2 and "--start-stage 2: stage II has no steps" in err


def test_a_damaged_config_of_a_run_is_one_sentence(folder, capsys):
    assert command(capsys, "train.stage2_steps=0")[0] == 0
    path = Path("outputs/tiny/config.yaml")
    whole = path.read_text()
    for damaged in (whole[:200], "", "a: &x [*x]", whole.replace("model:", "\0"), "- 1", "a: " + "[" * 3000):
        path.write_text(damaged)
        code, _, err = command(capsys, "train.stage2_steps=0", "--resume")
        assert (code, len(err.splitlines())) == (2, 1)
        assert err.startswith(
            ("error: the config of this run is damaged (outputs/tiny/config.yaml", f"error: {path}: ")
        )
    code, *_ = command(capsys, "train.stage2_steps=0", "--resume", "--allow-config-change")
    assert code == 0 and path.read_text() == whole


def test_a_gradient_of_zero_stops_the_run(folder, monkeypatch, capsys):
    nothing = torch.zeros(1, dtype=torch.bool)
    monkeypatch.setattr(module, "policy_loss", lambda recipe, logp, *rest: (0 * logp, nothing.expand_as(logp)))
    monkeypatch.setattr(module, "kl_per_token", lambda kind, logp, *rest: 0 * logp)
    code, _, err = command(capsys)
    assert code == 3
    assert "the gradient is exactly zero although rewards differ" in err


def spoil(monkeypatch, times):
    """The next losses are not finite."""
    real, left = module.policy_loss, [times]

    def loss(recipe, logp, *rest):
        left[0] -= 1
        values, stopped = real(recipe, logp, *rest)
        return values * math.nan if left[0] >= 0 else values, stopped

    monkeypatch.setattr(module, "policy_loss", loss)


def test_a_loss_that_is_not_finite_stops_or_is_skipped(folder, monkeypatch):
    stopping = score_run("run_name=stopping")
    spoil(monkeypatch, 1)
    with stopping.open(), pytest.raises(NumericError, match="stage 1 step 1: loss nan"):
        step(stopping, 1)
    skipping = score_run("run_name=skipping", "train.on_non_finite=skip")
    before = weights(skipping)
    spoil(monkeypatch, 2)
    with skipping.open():
        step(skipping, 1), step(skipping, 1)
        assert torch.equal(weights(skipping), before)
        step(skipping, 1)
        assert not torch.equal(weights(skipping), before)
        assert skipping.progress.skipped == 0
        spoil(monkeypatch, 3)
        with pytest.raises(NumericError):
            for _ in range(3):
                step(skipping, 1)


@pytest.mark.parametrize("choice", ["train.alpha=1e30", "train.alpha=1e300", "reward.fn=test_score.huge"])
def test_rewards_beyond_measure_are_not_blamed_on_the_learning_rate(folder, choice):
    run = score_run(choice, "train.bonus_on=reward")
    with (
        run.open(),
        pytest.raises(NumericError, match=r"advantages of up to .*; scale the reward, or lower train\.alpha"),
    ):
        step(run, 2)


def test_rewards_that_never_differ_warn_or_stop(folder, capsys):
    run = score_run("reward.fn=helpers.tiny.nothing", "run_name=warned")
    with run.open():
        before = weights(run)
        for _ in range(19):
            step(run, 1)
        assert "steps in a row" not in capsys.readouterr().out
        step(run, 1)
        assert (
            "WARNING at stage 1 step 20: 20 steps in a row in which all completions of every prompt earned the same"
            in capsys.readouterr().out
        )
        assert torch.equal(weights(run), before)  # at the reference nothing pulls
    run = score_run("reward.fn=helpers.tiny.nothing", "train.stop_on_identical_rewards=true")
    with run.open(), pytest.raises(NumericError, match="check the reward, the extractor"):
        for _ in range(20):
            step(run, 1)


def no_room_on_a_gpu():
    raise torch.OutOfMemoryError("out of memory")


def no_room_on_a_cpu():
    torch.empty(2**50, dtype=torch.uint8)  # the allocator's own error


def run_out_of_memory(run, monkeypatch, above, times, fail=no_room_on_a_cpu, first=2):
    """The policy raises from the `first` micro-batch with more than `above` tokens on, `times` times."""
    calls, real = [], run.policy.hidden_states

    def hidden_states(inputs):
        if torch.is_grad_enabled() and inputs.ids.numel() > above:
            calls.append(inputs.ids.numel())
            if first <= len(calls) < first + times:
                fail()
        return real(inputs)

    monkeypatch.setattr(run.policy, "hidden_states", hidden_states)
    return calls


@pytest.mark.parametrize("fail", [no_room_on_a_cpu, no_room_on_a_gpu])
def test_out_of_memory_halves_the_micro_batch_and_not_the_update(folder, monkeypatch, capsys, fail):
    plain = score_run("train.micro_batch_tokens=128", "optimizer.learning_rate=1e-4", "run_name=plain")
    with plain.open():
        expected = step(plain, 1)
    run = score_run("train.micro_batch_tokens=128", "optimizer.learning_rate=1e-4")
    calls = run_out_of_memory(run, monkeypatch, above=64, times=1, fail=fail)
    with run.open():
        row = step(run, 1)
        half = calls[1] // 2
        assert run.progress.micro_batch_tokens == half
        assert f"out of memory: train.micro_batch_tokens is {half} from now on" in capsys.readouterr().out
    assert row["loss"] == pytest.approx(expected["loss"], abs=1e-6)
    assert row["grad_norm"] == pytest.approx(expected["grad_norm"], rel=1e-5)
    torch.testing.assert_close(weights(run), weights(plain), rtol=0, atol=1e-6)


def test_out_of_memory_halves_the_micro_batch_that_failed(folder, monkeypatch):
    """It holds the whole step, far below the config's number, half of which would change nothing."""
    run = score_run("train.micro_batch_tokens=100000")
    credit = run.credit(run.stages[1], run.sample(run.stages[1]))
    (batch,) = run.step.batches(credit.nodes, credit.learned.__getitem__)
    run_out_of_memory(run, monkeypatch, above=batch.inputs.ids.numel() - 1, times=99, first=1)
    run.step.learn(credit, run.objective, 1e-4)
    assert run.progress.micro_batch_tokens == batch.inputs.ids.numel() // 2


def test_out_of_memory_twice_names_the_knobs(folder, monkeypatch):
    run = score_run("train.micro_batch_tokens=128")
    run_out_of_memory(run, monkeypatch, above=0, times=99)
    with run.open(), pytest.raises(OutOfMemory, match=r"\d tokens: lower train\.micro_batch_tokens below") as caught:
        step(run, 1)
    assert caught.value.exit_code == 4


# -- knobs that move


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]),
        ("cosine", [0.5, 1.0, 1.0, 0.853553, 0.5, 0.146447]),
    ],
)
def test_the_learning_rate_by_hand(schedule, expected):
    settings = Optimizer(learning_rate=2.0, warmup_steps=2, schedule=schedule)
    assert [learning_rate(settings, i, 6) / 2 for i in range(6)] == pytest.approx(expected, abs=1e-6)
    assert learning_rate(Optimizer(learning_rate=2.0, schedule=schedule), 0, 1) == 2.0


def test_each_stage_has_its_own_schedule_and_a_fresh_optimizer(folder):
    run = score_run("optimizer.warmup_steps=1")
    with run.open():
        for stage in run.session.remaining():
            assert len(run.step.optimizer.state) == 0
            trees = run.sample(stage)
            assert run.update(stage, trees, run.credit(stage, trees))["learning_rate"] == 1e-2
            run.finish(stage)


def test_adamw_in_8_bits_takes_a_step(folder):
    run = score_run("optimizer.name=adamw_8bit")
    with run.open():
        before = weights(run)
        for stage in run.session.remaining():
            step(run, stage.number)
            run.progress.step = 0
        assert "8bit" in type(run.step.optimizer.optimizer).__name__
        assert not torch.equal(weights(run), before)


def test_epochs_become_steps(folder):
    config = load(ScoreConfig, Path("tiny.yaml"), ["train.stage1_steps=null", "train.stage1_epochs=1.5"])
    assert [(stage.number, stage.steps, stage.batch_size) for stage in stages_of(config, rows=19)] == [
        (1, 8, 4),
        (2, 1, 4),
    ]


# -- the sampler


def test_an_epoch_is_every_row_once_and_the_next_is_another_shuffle():
    sampler = Sampler(10, seed=0)
    epochs = [sampler.take(4) + sampler.take(6) for _ in range(3)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert Sampler(10, seed=0).take(30) == [row for epoch in epochs for row in epoch]
    assert Sampler(10, seed=1).take(10) != epochs[0]
    taken = Sampler(3, seed=0).take(7)  # more than two epochs at once
    assert sorted(taken.count(row) for row in range(3)) == [2, 2, 3]


def test_a_sampler_goes_on_where_its_state_was_taken():
    for taken in (0, 3, 10, 17):
        sampler = Sampler(10, seed=5)
        sampler.take(taken)
        state = json.loads(json.dumps(sampler.state_dict()))
        resumed = Sampler(10, seed=9)
        resumed.load_state_dict(state)
        assert resumed.take(25) == sampler.take(25)


# -- more than two attempts


def test_three_attempts_are_learned_as_the_equations_say(folder):
    """Every answer in a text of its own, with plain autograd; a correction earns alpha times what it has gained."""
    more = ("train.attempts=3", "train.kl=exact", "train.bonus_on=reward", "generation.temperature=0.8")
    run = score_run(*more, "train.beta1=0.5", moved=0.2)
    stage = run.stages[1]
    trees = run.sample(stage)
    credit = run.credit(stage, trees)
    counts = [credit.turn.tolist().count(attempt) for attempt in (1, 2, 3)]
    assert counts == [8, 16, 16] and credit.divisor == 16
    answers = {n: a for node in credit.nodes for n, a in zip(node.numbers, node.group.answers, strict=True)}
    for node in credit.nodes:
        if node.attempt == 3:  # one correction of each revision: compared with that of the other revision
            assert node.group.prompt.continues and node.group.prompt.attempt == 3
            (number,) = node.numbers
            (other,) = {
                n for each in credit.nodes if each.attempt == 3 for n in each.numbers
                if parent_of(credit, each.parent) == parent_of(credit, node.parent)
            } - {number}  # fmt: skip

            def earned(n):
                before = answers[owner_of(credit, n).parent]
                return 3 * answers[n].verdict.reward - 2 * before.verdict.reward  # alpha is 2

            assert credit.advantage[number].item() == pytest.approx(earned(number) - earned(other), abs=1e-5)
    run.policy.zero_grad()
    expected = 0
    for number, answer in answers.items():
        prompt = owner_of(credit, number).group.prompt.ids
        logp, _, kl = naive.per_token(run.policy, prompt, answer.completion.ids, 0.8)
        leaves = {1: 2, 2: 1, 3: 1}[credit.turn[number].item()]
        expected += leaves * (0.5 * kl - credit.advantage[number] * logp).mean() / 16
    expected.backward()
    by_hand = gradients(run)
    run.policy.zero_grad()
    loss = accumulate(run, credit)["loss"]
    assert loss == pytest.approx(expected.item(), abs=1e-5)
    torch.testing.assert_close(gradients(run), by_hand, rtol=1e-4, atol=1e-5)


def owner_of(credit, number):
    return next(node for node in credit.nodes if number in node.numbers)


def parent_of(credit, number):
    return owner_of(credit, number).parent


def test_a_run_of_three_attempts_shows_them_everywhere(folder, capsys):
    code, out, err = command(capsys, "train.attempts=3", "--dry-run")
    assert (code, err) == (0, "")
    assert "8 + 16 + 16 completions" in out and "later attempts are paid" in out and "to attempt 3" in out
    assert "GiB  in all, without what layers keep" in out
    sampled = ("eval.temperature=1", "eval.samples_per_prompt=2")
    code, out, err = command(capsys, "train.attempts=3", *sampled)
    assert (code, err) == (0, "")
    rows, evaluations = logged("metrics"), logged("evaluations")
    for row in rows:
        assert {f"{key}_attempt3" for key in ("acc", "reward", "kl", "well_formed", "length", "beta")} <= set(row)
        assert row["gap"] == pytest.approx(row["acc_attempt3"] - row["acc_attempt1"])
    for row in evaluations:
        assert row["delta"] == pytest.approx(row["acc_attempt3"] - row["acc_attempt1"])
        assert "acc_attempt3" in row["selection"] and len(row["acc_attempt2_ci95"]) == 2
    texts = logged("generations")
    assert all({"attempt1", "attempt2", "attempt3", "match3", "length3"} <= set(row) for row in texts)
    assert re.search(r"attempt 1\s+attempt 2\s+attempt 3\s+delta", out)
    assert re.search(r"attempt 1 [\d.]+ %  attempt 2 [\d.]+ %  attempt 3 [\d.]+ % \(", out)
    tiny.printed(report, capsys, "outputs/tiny")
    page = Path("outputs/tiny/report.html").read_text()
    assert page.count("attempt 3") > 3 and re.search("Attempt 3 .*is right on", page)


def test_many_prompts_that_are_too_long_are_a_warning(folder):
    rows = [{"question": f"{a}+{b}" + "+1" * 9 * (a > 1), "answer": "?"} for a in range(5) for b in range(5)]
    write_rows(Path("rows.jsonl"), rows)
    *_, note = load_task(load(ScoreConfig, Path("tiny.yaml"), []), say=lambda text: None).notes
    assert re.fullmatch(
        r"WARNING: \d+ of 19 train and \d of 6 held-out prompts \(60 %\) are longer than "
        "generation.max_prompt_length_attempt1 = 8 tokens and left out: raise it to keep them", note,
    )  # fmt: skip

"""Log-probs, ratios and weights of single tokens in generations.jsonl: what training has computed anyway."""

import pytest
from conftest import after
from helpers import tiny
from helpers.tiny import SCORE, SELFPLAY, logged, opened, play_step, score_run, weights

import train
from engine import Completion
from lib.rl.tokens import sizes_of
from lib.rl.tree import Answer
from pages.rollouts import tokens_of

folder, score_folder = tiny.folder(SELFPLAY), tiny.folder(SCORE)
TIMES = ("time", "tokens_per_second")


def trained(run):
    return [row for row in logged("generations", run.config.run_name) if row["when"] == "train"]


def plain(row):
    return {key: value for key, value in row.items() if key not in TIMES and not key.startswith(("seconds_", "tokens"))}


@pytest.mark.parametrize("text", ["<answer>12</answer>", "ab cd", "é ½ 漢字 🙂", ""])
def test_the_sizes_of_tokens_are_those_of_the_text(tokenizer, text):
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    completion = Completion([*ids, 0], [0.0] * (len(ids) + 1), finished=True)
    written = tokenizer.decode(ids, skip_special_tokens=False)
    sizes = sizes_of(Answer(completion, written, None), tokenizer)
    assert sum(sizes) == len(written) and len(sizes) == len(completion.ids) and sizes[-1] == 0


def test_a_character_of_several_tokens_belongs_to_the_last_of_them():
    class Bytes:
        """One token per byte, as byte-level vocabularies fall back to."""

        def decode(self, ids, **_):
            return bytes(ids).decode("utf-8", "replace")

        def batch_decode(self, rows, **_):
            return [self.decode(row) for row in rows]

    text = "aé🙂b"
    answer = Answer(Completion(list(text.encode()), [0.0] * 8, finished=False), text, None)
    assert sizes_of(answer, Bytes()) == [1, 0, 1, 0, 0, 0, 1, 1]


@pytest.mark.usefixtures("folder")
def test_what_is_kept_changes_nothing_and_is_what_training_computed():
    kept, rows, ends = {}, {}, {}
    for which in ("none", "one_prompt", "all"):
        more = ["train.passes=2", "optimizer.learning_rate=1e-2", "train.clip=[0.001, 0.001]"]
        with opened(f"tracking.tokens={which}", *more, moved=0.2) as run:
            for _ in range(2):
                play_step(run)
            kept[which], rows[which], ends[which] = trained(run), logged("metrics", run.config.run_name), weights(run)
            answers = {row["text"] for row in kept[which]}
    assert answers and all(bool((ends["none"] == value).all()) for value in ends.values())
    assert [*map(plain, rows["none"])] == [*map(plain, rows["one_prompt"])] == [*map(plain, rows["all"])]
    assert [*map(plain, kept["none"])] == [*map(plain, kept["one_prompt"])] == [*map(plain, kept["all"])]
    assert not any("tokens" in row for row in kept["none"]) and all("tokens" in row for row in kept["all"])
    for number in (1, 2):  # of the step, the prompt with the largest advantage
        mine = [row for row in kept["one_prompt"] if row["step"] == number]
        largest = max(abs(row["advantage"]) for row in mine)
        chosen = [row for row in mine if "tokens" in row]
        assert len(chosen) == 4 and len({row["prompt"] for row in chosen}) == 1
        assert max(abs(row["advantage"]) for row in chosen) == largest
    for row in kept["all"]:
        tokens = row["tokens"]
        assert len(tokens["sizes"]) == len(tokens["logp"]) == row["length"] and sum(tokens["sizes"]) == len(row["text"])
        if "gap" in tokens:  # the sampler is the policy
            assert max(map(abs, tokens["gap"])) < 1e-3
        assert (tokens["weight"] > 0) == ("gap" in tokens)
    assert any("ratio" in row["tokens"] for row in kept["all"])  # the second pass has another policy
    assert any(row["tokens"].get("clipped") for row in kept["all"])


def test_they_are_the_log_probs_of_the_policy(score_folder, monkeypatch):
    run = score_run("tracking.tokens=all", moved=0.2)
    with run.open():
        trees = run.sample(run.stages[1])
        run.progress.stage = 2
        kept = {}
        monkeypatch.setattr(run.session, "keep_texts", lambda rows: kept.update(rows=rows))
        run.update(run.stages[1], trees, run.credit(run.stages[1], trees))
        group = trees[0]
        again = score_run("tracking.tokens=all", moved=0.2).policy
        for answer, row in zip(group.answers, kept["rows"][::2], strict=False):
            logp = again(after(group.prompt.ids, answer.completion.ids))[0]
            assert row["tokens1"]["logp"] == pytest.approx(logp.tolist(), abs=1e-3)


def test_the_smallest_run_keeps_them_and_a_resumed_one_too(score_folder, capsys):
    options = ("--config", "tiny.yaml", "train.checkpoint_every=1", "train.stage1_steps=2")
    code, *_ = tiny.ended(train, capsys, *options)
    rows = logged("generations")
    assert code == 0
    steps = {(row["stage"], row["step"]) for row in rows if "tokens1" in row}
    assert steps == {(1, 1), (1, 2), (2, 1)}
    before = [row for row in rows if row["when"] == "train"]
    code, *_ = tiny.ended(train, capsys, *options, "--resume", "outputs/tiny/stage1/step_1")
    assert code == 0
    rows = logged("generations")
    after_it = [row for row in rows if row["when"] == "train"]
    assert [{**row, "time": 0} for row in after_it] == [{**row, "time": 0} for row in before]
    assert after_it[-1]["time"] > before[-1]["time"]


@pytest.mark.parametrize(
    "noted",
    [None, 7, {}, {"sizes": 3}, {"sizes": [1]}, {"sizes": [1, 1], "logp": 3}, {"sizes": [1, 1], "logp": [0.0]},
     {"sizes": ["a", "b"], "logp": [0.0, 0.0]}, {"sizes": [3, -1], "logp": [0.0, 0.0]},
     {"sizes": [1, 1], "logp": [0.0, 0.0], "clipped": 1}],
)  # fmt: skip
def test_numbers_that_are_not_of_the_text_are_left_out(noted):
    assert tokens_of(noted, "ab") is None


def test_a_browser_counts_in_units_of_utf_16():
    assert tokens_of({"sizes": [1, 1, 0], "logp": [0, 0, 0], "weight": 1}, "🙂b") == {
        "ends": [2, 3, 3], "logp": [0, 0, 0], "weight": 1,
    }  # fmt: skip

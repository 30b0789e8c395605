"""The corpus judge/data/gaming/: texts that try to be paid without answering, and honest ones, under all rewards.

A row of gaming.jsonl says in which formats the text is well-formed, although wrong; which extractors that are lenient
by name take it for right; and, in `honest_in`, for which format it is an honest answer after all. A row of honest.jsonl
says in which formats it must be paid, and by which equalities. A row of pairs.jsonl is a prediction with a target, and
the equalities for which they are equal: none for half of them. A row of crossword.jsonl is an answer to a clue in
`think_answer`, and the readings of the reward `crossword` in which it is right: for most, none. A row of
rush_hour.jsonl says by which readings the text solves the row's puzzle, and what the shaped reward pays. A new way to
be paid for nothing goes there first.
"""

import json
from collections import Counter
from pathlib import Path
from time import process_time

import pytest
from helpers.judges import judge_by

import reward_function  # noqa: F401
from lib.core.config import CollectConfig, ScoreConfig, SelfPlayConfig, load
from lib.core.registry import LENIENT, register_reward
from lib.rewards.judge import Judge
from lib.rewards.routing import judge_of_rows
from lib.text.data import Splits
from lib.text.formats import FORMATS

ROOT = Path(__file__).parents[2]
DECLARED = [name for name in FORMATS if name != "free"]
IN_TAGS = ("answer", "think_answer")
MATCHERS = ("exact", "math")
FOR_PUZZLES = ("rush_hour_exact", "rush_hour_shaped")
FOR_FORMATS = ("format_and_match", "strict_format_and_match")


@register_reward("gaming_is_written")
def is_written(predictions):
    """A reward that knows nothing of formats, nor of answers."""
    return [1.0] * len(predictions)


SUMS = (  # the last one pays for anything more than a right answer earns with the others
    {"exact_match": 1, "strict_format_and_match": 0.5},
    {"format_and_match": 1, "gaming_is_written": 0.2},
    {"strict_format_and_match": 0.1, "exact_match": 0.1, "gaming_is_written": 3},
)


def corpus(name):
    return [json.loads(line) for line in (ROOT / "judge/data/gaming" / f"{name}.jsonl").read_text().splitlines()]


GAMING, HONEST, PAIRS, CROSSWORD = map(corpus, ("gaming", "honest", "pairs", "crossword"))


def scores(rows, reward, **reading):
    judge = judge_by(reward, **{"target_extractor": "identity"} | reading)
    return judge([row["text"] for row in rows], [{"target": row["target"]} for row in rows])


def test_the_corpus_is_large_and_varied():
    assert len(GAMING) >= 200 and len(HONEST) >= 150
    assert len({(row["target"], row["text"]) for row in GAMING}) == len(GAMING)
    assert len(Counter(row["class"] for row in GAMING)) >= 25
    assert all(row.get("honest_in", ["answer"]) in (["answer"], ["free"]) for row in GAMING)


@pytest.mark.parametrize("match", MATCHERS)
@pytest.mark.parametrize("format", FORMATS)
def test_no_gaming_text_is_paid(format, match):
    for row, score in zip(GAMING, scores(GAMING, "exact_match", format=format, match=match), strict=True):
        is_honest = format in row.get("honest_in", ())
        assert (score.match, score.reward) == (is_honest, float(is_honest)), row
        if format != "free":
            assert score.well_formed == (format in row["well_formed"]), (row, score.malformed)


@pytest.mark.parametrize("format", FORMATS)
def test_the_reward_math_pays_what_its_equality_pays(format):
    """Whatever `match` says; and read strictly, nothing more."""
    honest = [row for row in HONEST if format in row["right_in"]]
    for rows in (GAMING, honest):
        by_match = [score.match for score in scores(rows, "exact_match", format=format, match="math")]
        tolerant = scores(rows, "math", format=format)
        strict = scores(rows, "math", format=format, options={"reading": "strict"})
        assert [score.match for score in tolerant] == [bool(score.reward) for score in tolerant] == by_match
        assert not [row for row, score, paid in zip(rows, strict, by_match, strict=True) if score.reward and not paid]


def test_a_crossword_is_solved_by_the_answer_alone():
    """With shaping, a wrong answer may earn its part if the answer block has the letters, a malformed text nothing."""
    assert len(CROSSWORD) >= 70 and sum(not row["right_in"] for row in CROSSWORD) >= 50
    for reading in ("strict", "tolerant"):
        for shaping in (0.0, 0.25):
            judge = judge_by("crossword", ("target", "enumeration"), format="think_answer",
                             options={"reading": reading, "shaping": shaping, "contains": "any"})  # fmt: skip
            for row, score in zip(CROSSWORD, judge([row["text"] for row in CROSSWORD], CROSSWORD), strict=True):
                is_right = reading in row["right_in"]
                assert score.scored and score.match == is_right, (reading, row)
                assert score.reward == 1 if is_right else score.reward in (0, shaping * score.well_formed), row


@pytest.mark.parametrize("match", MATCHERS)
@pytest.mark.parametrize("format", IN_TAGS)
def test_rewards_for_formats_pay_no_gaming_text_for_the_match(format, match):
    for reward in FOR_FORMATS:
        for row, score in zip(GAMING, scores(GAMING, reward, format=format, match=match), strict=True):
            assert score.components["match"] == 0.5 * score.match
            assert not score.match or format in row.get("honest_in", ()), row


@pytest.mark.parametrize("match", MATCHERS)
@pytest.mark.parametrize("format", IN_TAGS)
def test_malformed_never_earns_what_a_right_answer_earns(format, match):
    for reward in (*FOR_FORMATS, *SUMS):
        judged = scores(GAMING + HONEST, reward, format=format, match=match)
        wrong = [score.reward for score in judged if score.well_formed and not score.match]
        right = [score.reward for score in judged if score.match]
        malformed = [score.reward for score in judged if not score.well_formed]
        assert max(malformed) <= min(wrong) <= max(wrong) < min(right)
        assert reward == "format_and_match" or not any(malformed)


@pytest.mark.parametrize("match", MATCHERS)
@pytest.mark.parametrize("format", FORMATS)
def test_no_honest_text_is_refused(format, match):
    rows = [row for row in HONEST if format in row["right_in"] and match in row["by"]]
    rewards = {"exact_match": format}
    if format in IN_TAGS:
        rewards |= {"format_and_match": "both", "strict_format_and_match": "think_answer"}
    for reward, needs in rewards.items():
        for row, score in zip(rows, scores(rows, reward, format=format, match=match), strict=True):
            has_both = row["text"].count("<think>") == row["text"].count("</think>") == 1
            if needs == format or "think_answer" in row["right_in"] or (needs == "both" and has_both):
                assert score.match and score.well_formed and score.reward == 1, (row, score)


@pytest.mark.parametrize("format", FORMATS)
def test_a_text_that_was_cut_off_earns_nothing(format):
    """Not even one whose answer block is closed, nor by a reward that reads the text itself."""
    rows = [row for row in HONEST if format in row["right_in"]]
    rewards = ["exact_match", "math", "gaming_is_written", *SUMS[:1], *(FOR_FORMATS if format in IN_TAGS else ())]
    rewards = rewards if format in IN_TAGS else rewards[:3]
    for reward in rewards:
        columns, cut = [{"target": row["target"]} for row in rows], [False] * len(rows)
        texts = [row["text"] for row in rows]
        for score in judge_by(reward, target_extractor="identity", format=format)(texts, columns, finished=cut):
            assert (score.reward, score.match, score.answer) == (0, False, "") and score.malformed.startswith("cut off")
        accepting = judge_by(reward, target_extractor="identity", format=format, accept_cut=True)
        assert accepting(texts, columns, finished=cut) == accepting(texts, columns)


def test_puzzles_and_programs_that_were_cut_off_earn_nothing():
    solved = [row for row in PUZZLES if "strict" in row["right_in"]]
    for name in FOR_PUZZLES:
        judge = judge_by(name, list(PUZZLES[0]), None, format="answer")
        for score in judge([row["text"] for row in solved], solved, finished=[False] * len(solved)):
            assert (score.reward, score.match, score.well_formed) == (0, False, False)
    judge = judge_by("crossword", ("target", "enumeration"), format="think_answer")
    solved = [row for row in CROSSWORD if "strict" in row["right_in"]]
    for score in judge([row["text"] for row in solved], solved, finished=[False] * len(solved)):
        assert (score.reward, score.match, score.well_formed) == (0, False, False)


def test_half_of_the_pairs_are_equal():
    assert len({(row["prediction"], row["target"]) for row in PAIRS}) == len(PAIRS) >= 900
    assert 0.45 < sum(bool(row["equal"]) for row in PAIRS) / len(PAIRS) < 0.55


@pytest.mark.parametrize("match", MATCHERS)
def test_numbers_and_formulae_are_equal_where_they_say_the_same(match):
    scores = judge_by(match=match)([row["prediction"] for row in PAIRS], PAIRS)
    wrong = [row for row, score in zip(PAIRS, scores, strict=True) if score.match != (match in row["equal"])]
    assert not wrong


@pytest.mark.parametrize("extractor", LENIENT.values())
def test_leniency_asked_for_by_name_is_as_lenient_as_it_was(extractor):
    judged = scores(GAMING, "exact_match", answer_extractor=extractor)
    found = [(extractor in row["leniently_right"]) == score.match for row, score in zip(GAMING, judged, strict=True)]
    assert all(found), [row for row, is_as_told in zip(GAMING, found, strict=True) if not is_as_told]
    assert sum(score.match for score in judged) > 50


@pytest.mark.parametrize("extractor", LENIENT.values())
def test_leniency_within_a_format_stays_within_it(extractor):
    """Where a place is declared, even a lenient extractor reads what stands there, and nothing else."""
    for format in DECLARED:
        for row, score in zip(
            GAMING, scores(GAMING, "exact_match", answer_extractor=extractor, format=format), strict=True
        ):
            assert score.well_formed == (format in row["well_formed"]), row
            assert score.well_formed or not score.match, row


PUZZLES = corpus("rush_hour")


@pytest.mark.parametrize("reading", ["strict", "tolerant"])
def test_puzzles_are_paid_for_legal_moves_alone(reading):
    gaming = [row for row in PUZZLES if not row["right_in"]]
    assert len(gaming) >= 90 and len({row["class"] for row in gaming}) >= 14 and len(PUZZLES) - len(gaming) >= 20
    for name in FOR_PUZZLES:
        judge = judge_by(name, list(PUZZLES[0]), None, format="answer", options={"reading": reading})
        judge.check(PUZZLES)
        for row, verdict in zip(PUZZLES, judge([row["text"] for row in PUZZLES], PUZZLES), strict=True):
            is_right = reading in row["right_in"]
            pays = float(is_right) if name == "rush_hour_exact" else row["shaped"][reading]
            assert (verdict.match, verdict.reward) == (is_right, pytest.approx(pays, abs=1e-4)), row
            assert verdict.reward <= 0.25 + 1e-9 or is_right
            assert verdict.well_formed or verdict.reward == 0


@pytest.mark.parametrize("reading", ["strict", "tolerant"])
@pytest.mark.parametrize("piece", ["Bv1 B^1 ", "Bv1", "A>", "9", "A > ", "B" + " " * 1000, "\ud800", "Bv1,", "A>9"])
def test_a_huge_answer_to_a_puzzle_is_refused_quickly(piece, reading):
    """A million characters; what fits into the limit is replayed."""
    for name in FOR_PUZZLES:
        judge = judge_by(name, list(PUZZLES[0]), None, format="answer", options={"reading": reading})
        start = process_time()
        for length in (1_000_000, 19_000):
            text = f"<answer>{piece * (length // len(piece))}</answer>"
            [verdict] = judge([text], PUZZLES[:1])
            assert not verdict.match and verdict.reward <= 0.16
        assert process_time() - start < 5


# their base writes no tags without being taught, and nothing is: the last number of a finished answer is right there
FREE = {"smollm2_largest", "smollm2_look"}
CONFIGS = {path.stem: path for path in sorted((ROOT / "configs").glob("*.yaml")) if "\nreward:" in path.read_text()}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_policy_that_once_was_paid_earns_nothing_under_any_shipped_config(name):
    """`<think>N</answer>`: the copy of the answer is left out, and with it the slips that it would have."""
    config = load((ScoreConfig, SelfPlayConfig, CollectConfig), CONFIGS[name])
    if config.reward.fn in ("code", "code_tests"):
        judge = Judge(config.reward, ["tests", "entry_point"])
        assert judge.format == "free" and not judge.needs_targets  # tests decide: see test_code_rewards.py
        return
    if config.reward.by_task or config.reward.fn == "crossword":
        pass_over_words(config)
        return
    if config.reward.fn in FOR_PUZZLES:
        judge = Judge(config.reward, list(PUZZLES[0]))
        for text in ("<think>Bv2 A>1</answer>", "<think>Bv2 A>1", "Bv2 A>1"):
            [score] = judge([text], PUZZLES[:1])
            assert (score.reward, score.match, score.well_formed) == (0, False, False)
        return
    judge = Judge(config.reward, ["question", "answer"], "answer")
    if name in FREE:
        [first, last] = judge(["6117 or 42", "It is 6117."], [{"answer": "6117"}] * 2)
        assert (first.reward, last.reward) == (0, 1)
        return
    for text in ("<think>6117</answer>", "<think>9034-2917=6117</answer>", "6117"):
        for target in ("6117", "9034-2917=6117\n#### 6117", r"so it is \boxed{6117}"):
            [score] = judge([text], [{"answer": target}])
            assert (score.reward, score.match, score.well_formed) == (0, False, False)
    [right] = judge(["<think>9034-2917=6117</think>\n<answer>6117</answer>"], [{"answer": target_of(config)}])
    assert (right.reward, right.match) == (1, True)


def pass_over_words(config):
    """The same for configs with clues or tasks: the answer in no place of its own, each row by its task's reward."""
    tasks = [task for task, reward in config.reward.by_task.items() if reward.fn != "code"] or ["crossword"]
    rows = [{"task": task, "answer": "CAT", "enumeration": "3"} for task in tasks]
    rows = [row if row["task"] == "crossword" else row | {"answer": "a\n#### 6117"} for row in rows]
    nowhere = [{"place": "row"}] * len(rows)
    judge, _ = judge_of_rows(config.reward, Splits(rows, [], nowhere, [], "", "", [], str), "answer")
    for text in ("<think>{}</answer>", "<think>cat is {}</answer>", "{}"):
        for score in judge([text.format(judge.answer_of(row)) for row in rows], rows):
            assert (score.reward, score.match, score.well_formed) == (0, False, False)
    for score in judge([f"<think>x</think>\n<answer>{judge.answer_of(row)}</answer>" for row in rows], rows):
        assert (score.reward, score.match) == (1, True)


def target_of(config):
    return {"gsm8k_hash": "a\n#### 6117", "math_final_answer": r"\boxed{6117}"}.get(
        config.reward.target_extractor, "6117"
    )

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.judges import judge_by

from lib.core.errors import ConfigError
from lib.rewards.crossword import enumerated, letters

ROOT = Path(__file__).parents[3]
THOUGHT = "<think>{}</think><answer>{}</answer>"


def verdict(answer, target="ICE CREAM", enumeration="3,5", text="it is cold", **options):
    judge = judge_by("crossword", ("target", "enumeration"), format="think_answer", options=options)
    [found] = judge([THOUGHT.format(text, answer)], [{"target": target, "enumeration": enumeration}])
    return found


@pytest.mark.parametrize(
    ("answer", "strict", "tolerant"),
    [
        ("ICE CREAM", 1, 1),
        ("ice  cream", 1, 1),
        ("Ice-Cream", 1, 1),
        ("Ïce Créam", 1, 1),
        ("ICECREAM", 0, 1),
        ("I C E C R E A M", 0, 1),
        ("ICE CREAM (3,5)", 0, 1),
        ("**ICE CREAM**", 0, 1),
        ("ＩＣＥ ＣＲＥＡＭ", 0, 1),
        ("IC ECREAM", 0, 1),
        ("ICE CREAM или ЛЁД", 0, 0),
        ("ICE CREAM or SORBET", 0, 0),
        ("SORBET, ICE CREAM", 0, 0),
        ("ICE CREAMS", 0, 0),
        ("ICE", 0, 0),
        ("?", 0, 0),
    ],
)
def test_the_strict_and_the_tolerant_reading(answer, strict, tolerant):
    for reading, right in {"strict": strict, "tolerant": tolerant}.items():
        found = verdict(answer, reading=reading)
        assert (found.reward, found.match) == (right, bool(right)), reading


def test_enumerations_and_letters():
    assert [enumerated(each) for each in ("(3,5)", "3-5", 8, "8", [3, 5], "5,2,3'1")] == [
        [3, 5], [3, 5], [8], [8], [3, 5], [5, 2, 4]
    ]  # fmt: skip
    assert [enumerated(each) for each in ("", "three", None, "(3,", "3 or 5")] == [[]] * 5
    assert letters("Rock & “Róll” – 2!") == "ROCKANDROLL"
    assert verdict("Don’t", "DON'T", "3'1").match and verdict("DONT", "DON'T", "3'1").match


def test_mentioning_the_answer_earns_nothing_anywhere():
    for text, answer in (("ICE CREAM", "SORBET"), ("it could be ICE CREAM", "nice cream"), ("", "then ice creams")):
        for reading in ("strict", "tolerant"):
            assert verdict(answer, text=text, reading=reading).reward == 0
    judge = judge_by("crossword", ("target", "enumeration"), format="think_answer")
    row = {"target": "NEAR", "enumeration": "4"}
    for text in ("NEAR", "<think>NEAR</think>", "<answer>NEAR</answer>", THOUGHT.format("", "NEAR") + " NEAR"):
        [found] = judge([text], [row])
        assert (found.reward, found.match, found.well_formed) == (0, False, False)


def test_shaping_looks_at_the_answer_alone_and_never_reaches_it():
    near = {"target": "NEAR", "enumeration": "4", "text": "NEAR"}
    assert verdict("FAR", **near, shaping=0.25).reward == 0
    assert verdict("FAR or NEAR", **near, shaping=0.25).reward == 0.25
    for mode, paid in {"word": 0, "contiguous": 0, "any": 0.25}.items():
        assert verdict("then earth", **near, shaping=0.25, contains=mode).reward == paid
    for mode, paid in {"word": 0, "contiguous": 0.25, "any": 0.25}.items():
        assert verdict("nearly", **near, shaping=0.25, contains=mode).reward == paid
    right = verdict("near", **near, shaping=0.25)
    assert (right.reward, right.components) == (1, {"answer": 1, "shaping": 0})


def test_a_row_whose_enumeration_does_not_fit_is_not_judged():
    found = verdict("ICE CREAM", enumeration="4,5")
    assert not found.scored and "enumeration '4,5' does not fit the answer's 8 letters" in found.about


def test_mistakes_are_found_before_training():
    with pytest.raises(ConfigError, match="needs by name 'enumeration'"):
        judge_by("crossword")
    for options in ({"reading": "loose"}, {"contains": "some"}, {"shaping": 1.0}):
        with pytest.raises(ConfigError, match="expected a reading of strict or tolerant"):
            judge_by("crossword", ("target", "enumeration"), options=options)


def read(name):
    return [json.loads(line) for line in (ROOT / f"data/crossword/{name}.jsonl").read_text().splitlines()]


def test_the_shipped_clues_are_right_and_what_their_builder_makes(tmp_path):
    command = [sys.executable, ROOT / "data/build_crossword.py", "--out", tmp_path]
    subprocess.run(command, check=True, capture_output=True, env={"PYTHONHASHSEED": "7"})
    answers = {}
    for name in ("train", "test"):
        assert (tmp_path / f"{name}.jsonl").read_bytes() == (ROOT / f"data/crossword/{name}.jsonl").read_bytes()
        rows = read(name)
        answers[name] = {row["answer"] for row in rows}
        for row in rows:
            own = {"target": row["answer"], "enumeration": row["enumeration"]}
            [found] = judge_by("crossword", ("target", "enumeration"))([row["answer"].lower()], [own])
            assert found.match and row["question"].endswith(f"({row['enumeration']})")
            assert not re.search(rf"\b{row['answer']}\b", row["question"].upper())
    assert not answers["train"] & answers["test"]
    rows = read("train") + read("test")
    assert len(rows) == len({row["question"] for row in rows}) >= 200
    assert {row["kind"] for row in rows} == {"definition", "anagram", "hidden", "reversal", "initials"}

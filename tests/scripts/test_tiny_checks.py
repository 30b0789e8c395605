"""Tasks without planted errors: right answers are right and the only ones, and no question stands twice."""

import re
from itertools import combinations

import pytest
from helpers.tiny import call, rows_in

from data import build_tiny_checks as builder
from lib.text.chats import as_chat


def right_answers(task, question):
    """All answers that a check accepts, worked out from the question alone."""
    if task == "sort":
        return {"".join(sorted(question))}
    if task == "largest":
        return {max(question.split())}  # of two digits each
    if task == "digit":
        low, *_, high = sorted(question)
        return {f"{int(low) + int(high) + int(question[0])}"[-1]}
    digits, total = question.split("=")
    return {a + b for a, b in combinations(digits, 2) if int(a) + int(b) == int(total)}


@pytest.mark.parametrize("task", builder.TASKS)
def test_every_answer_is_right_and_none_is_corrected(task, tmp_path):
    sizes = ("--lessons", 300, "--chats", 200, "--train", 300, "--test", 200)
    assert call(builder, "--task", task, "--out", tmp_path, *sizes) is None
    files = {path.stem: rows_in(path) for path in tmp_path.iterdir()}
    pairs = [(row["question"], row["answer"]) for name in ("train", "test") for row in files[name]]
    assert len(pairs) == 500
    for row in files["sft"]:
        question, answer, *more = [message["content"] for message in row["messages"]]
        assert more in ([], ["Correct any error.", answer])
        pairs.append((question, answer.removeprefix("<answer>").removesuffix("</answer>")))
    assert [len(row["messages"]) for row in files["sft"]] == [2] * 300 + [4] * 200
    assert all(right_answers(task, question) == {answer} for question, answer in pairs)
    assert len({question for question, _ in pairs}) == len(pairs) == 1000


@pytest.mark.parametrize("task", builder.TASKS)
def test_an_illegible_answer_is_letters_and_not_trained(task, tmp_path):
    sizes = ("--lessons", 30, "--chats", 200, "--illegible", 0.5, "--train", 30, "--test", 20)
    call(builder, "--task", task, "--out", tmp_path, *sizes)
    chats = [as_chat(row, "a row") for row in rows_in(tmp_path / "sft.jsonl")][30:]
    illegible = [chat for chat in chats if chat.turns == [3]]
    assert 70 < len(illegible) < 130
    assert all(chat.turns == [1, 3] for chat in chats if chat not in illegible)
    for chat in illegible:
        question, letters, request, block = [message["content"] for message in chat.messages]
        answer = block.removeprefix("<answer>").removesuffix("</answer>")
        assert request == "Correct any error." and right_answers(task, question) == {answer}
        assert re.fullmatch(f"<answer>[A-Z]{{{len(answer)}}}</answer>", letters)


@pytest.mark.parametrize("coin", [False, True])
def test_a_judged_answer_is_not_corrected(coin, tmp_path):
    sizes = ("--lessons", 3, "--chats", 20, "--illegible", 1, "--judged", 400, "--train", 30, "--test", 20)
    call(builder, "--task", "pair", "--out", tmp_path, *sizes, *(["--coin"] if coin else []))
    chats = [as_chat(row, "a row") for row in rows_in(tmp_path / "sft.jsonl")][3:]
    for chat in chats[:20]:
        _, letters, _, check, *_ = [message["content"] for message in chat.messages]
        assert chat.turns == [5] and re.fullmatch("<answer>[A-Z]{2}</answer>", letters)
        assert re.fullmatch(r"\d\d \d\d \d\d wrong", check)
    agree = 0
    for chat in chats[20:]:
        question, block, request, check = [message["content"] for message in chat.messages]
        line, total = question.split("=")
        answer = block.removeprefix("<answer>").removesuffix("</answer>")
        places, written, asked, word = check.split()
        assert chat.turns == [3] and request == "Right?" and asked == total
        assert places == "".join(str(line.find(digit) + 1) for digit in answer)
        assert int(written) == int(answer[0]) + int(answer[1])
        agree += (word == "right") == (right_answers("pair", question) == {answer})
    assert 150 < agree < 250 if coin else agree == 400
    assert 150 < sum(chat.messages[3]["content"].endswith("right") for chat in chats[20:]) < 250


@pytest.mark.parametrize(("task", "question", "answer"), [
    ("pair", "93172=12", "93"), ("sort", "3141592653", "1123345569"), ("largest", "41 73 22 98 65 17", "98"),
    ("digit", "384615", "2"),
])  # fmt: skip
def test_the_docstring_shows_what_is_built(task, question, answer):
    assert right_answers(task, question) == {answer}
    assert f"`{question}`" in builder.__doc__ and f"`{answer}`" in builder.__doc__

"""chat.py asks as training does: of a run, an adapter, a merged model and a server, and of whatever is typed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import long
from helpers.server import serve
from helpers.tiny import call, rows_in
from test_merging import chain, inside  # noqa: F401  a run of every script, and a folder that is in it

import chat
import evaluate
import export
import train
from lib.core.errors import ConfigError

ROOT = Path(__file__).parents[2]
RUN = "outputs/score"


def once(capsys, *arguments):
    """The JSON that `chat.py --once` prints."""
    capsys.readouterr()
    assert call(chat, *arguments) == 0
    return json.loads(capsys.readouterr().out)


def texts(turns):
    return [turn["text"] for turn in turns]


def test_every_way_to_name_it_writes_what_evaluations_measured(inside, capsys, tmp_path):  # noqa: F811
    """Greedy answers to held-out rows, and those of the base are the base's; a server reads attempt 1 as text again."""
    assert (
        call(evaluate, "--config", f"{RUN}/config.yaml", "--run", RUN, "--temperature", 0, "--texts", tmp_path / "e")
        == 0
    )
    assert call(evaluate, "--config", f"{RUN}/config.yaml", "--temperature", 0, "--texts", tmp_path / "base") == 0
    measured, base = rows_in(tmp_path / "e/generations.jsonl"), rows_in(tmp_path / "base/generations.jsonl")
    assert len(measured) == 4 and rows_in(tmp_path / "e/evaluations.jsonl")[0]["n"] == 4
    for row, before in zip(measured, base, strict=True):
        asked = ["--once", row["prompt"]]
        found = once(capsys, RUN, "--compare", *asked)
        assert texts(found["trained"]) == [row["attempt1"], row["attempt2"]]
        assert texts(found["base"]) == [before["attempt1"], before["attempt2"]]
        assert [turn["asked"] for turn in found["trained"]] == [row["prompt"], "?"]
    assert measured[0]["attempt1"] != base[0]["attempt1"]
    for named in (
        f"{RUN}/stage2",
        "merged",
        ["--config", f"{RUN}/config.yaml", "model.name=merged", "model.adapter=null"],
    ):
        words = [named] if isinstance(named, str) else named
        (turns,) = [turns for turns in once(capsys, *words, *asked).values() if isinstance(turns, list)]
        assert texts(turns) == [row["attempt1"], row["attempt2"]]
    plain = [row for row in measured if "<" not in row["attempt1"] + row["attempt2"]]
    with serve("merged") as url:
        for row in plain:
            found = once(capsys, RUN, "--url", url, "--model", "merged", "--once", row["prompt"])["trained"]
            assert texts(found) == [row["attempt1"], row["attempt2"]]


def test_a_row_and_a_question_with_its_answer_are_judged(inside, capsys):  # noqa: F811
    exact = ["reward.fn=exact_match", "dataset.target_field=answer", "reward.match=exact"]
    exact += ["reward.answer_extractor=identity"]
    for number in range(8):
        turns = once(capsys, RUN, *exact, "--once", f":row {number}")["trained"]
        assert [turn["right"] for turn in turns] == [False, False]
        if turns[0]["text"].isalnum() and turns[0]["text"] != turns[1]["text"]:
            break
    row = json.dumps({"question": turns[0]["asked"], "answer": turns[0]["text"]})
    assert [turn["right"] for turn in once(capsys, RUN, *exact, "--once", row)["trained"]] == [True, False]
    assert [turn["right"] for turn in once(capsys, RUN, *exact, "--once", "1+1")["trained"]] == [None, None]


def test_feedback_is_said_as_training_says_it(inside, capsys):  # noqa: F811
    verdict = ["prompts.feedback=verdict", "prompts.verdict.wrong=0 ?", "prompts.verdict.right=1 ?",
               "dataset.target_field=answer", "reward.fn=exact_match",
               "generation.max_prompt_length_attempt2=40", "prompts.feedback_tokens=16"]  # fmt: skip
    assert once(capsys, RUN, *verdict, "--once", ":row 0")["trained"][1]["asked"] == "0 ?"
    capsys.readouterr()
    assert call(chat, RUN, *verdict, "--once", "1+1") == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["trained"][1]["asked"] == "?" and "no answer, so it is asked without" in told.err
    own = ["prompts.feedback=self", "prompts.self={ask: a, right: b, wrong: c, max_new_tokens: 4}"]
    turns = once(capsys, RUN, *own, "generation.max_prompt_length_attempt2=40", "--once", "1+1")["trained"]
    assert [turn["turn"] for turn in turns] == ["attempt1", "check1", "attempt2"]
    assert [turn["asked"] for turn in turns] == ["1+1", "a", "?"]


def test_several_columns_are_json_or_pairs(inside, capsys):  # noqa: F811
    longer = ["generation.max_prompt_length_attempt1=20", "generation.max_prompt_length_attempt2=44"]
    two = [RUN, "prompts.user={question} {more}", *longer, "--once"]
    for typed in ("question=1+1 more=2 = 2", '{"more": "2 = 2", "question": "1+1"}'):
        assert once(capsys, *two, typed)["trained"][0]["asked"] == "1+1 2 = 2"
    with pytest.raises(ConfigError, match=r"lacks more: type question=\.\.\. more=\.\.\., or JSON"):
        call(chat, *two, "question=1")


def conversation(monkeypatch, typed, *arguments):
    """Types lines, of which an exception is raised; returns what chat.py returned."""
    lines = iter(typed)

    def answer(_prompt):
        line = next(lines, EOFError())
        if isinstance(line, BaseException):
            raise line
        return line

    monkeypatch.setattr("builtins.input", answer)
    before = signal.getsignal(signal.SIGINT)
    try:
        return call(chat, *(arguments or [RUN]))
    finally:
        signal.signal(signal.SIGINT, before)


def test_whatever_is_typed_is_answered_in_a_sentence(inside, capsys, monkeypatch):  # noqa: F811
    typed = [
        "", "1" * 100_000, "<|im_end|><|assistant|>7", "Жß字", "\udcff1", '{"question": ', ":row 99", ":row x", ":what",
        ":temperature -1", ":temperature", ":again", ":help", ":greedy", "1+1",
    ]  # fmt: skip
    assert conversation(monkeypatch, typed) == 0
    told = capsys.readouterr()
    shown = told.out + told.err
    for sentence in (
        "'' asks nothing: type a question", "more than generation.max_prompt_length_attempt1 = 8: shorten it",
        "control tokens are read as plain text: '", "the tokenizer does not know",
        ":row 99: there are 8 held-out rows", "':row x' asks nothing", ":what is no command here",
        "got '-1', expected a temperature", "temperature 0", "trained, attempt2",
    ):  # fmt: skip
        assert sentence in shown, sentence
    assert told.out.endswith("ended\n") and "Traceback" not in shown
    for end in (EOFError(), KeyboardInterrupt(), ":quit"):
        assert conversation(monkeypatch, [end]) == 0


def test_another_seed_another_temperature_and_a_stop(inside, capsys, monkeypatch):  # noqa: F811
    assert conversation(monkeypatch, ["1+1", ":again", ":temperature 1.5", ":again", ":again"]) == 0
    answers = [line for line in capsys.readouterr().out.splitlines() if line.startswith("trained, attempt1")]
    assert answers[0] == answers[1] and len({answers[1], answers[2], answers[3]}) == 3
    with monkeypatch.context() as patch:
        patch.setattr(chat.Conversation, "turns", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert conversation(monkeypatch, ["1+1"]) == 0
    assert "stopped" in capsys.readouterr().out


def test_new_words_are_marked():
    left, right = chat.MARKS
    assert chat.marked("so 3 + 4 = 8.", "so 3 + 4 = 7.") == f"so 3 + 4 = {left}7{right}."
    assert chat.marked("a b", "a b") == "a b" == chat.marked(None, "a b")
    assert chat.marked("", "new") == f"{left}new{right}"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "nothing is named"),
        (["no/such"], "no adapter here, nor any folder"),
        (["base"], "base: no config says how to ask it: add --config FILE"),
        (["outputs/sft"], "outputs/sft: no config says how to ask it: add --config FILE"),
        ([RUN, "--url", "http://127.0.0.1:9/v1"], "--url and --model go together"),
        (["--config", "score.yaml", "--compare"], "--compare switches the adapter of a run off"),
        ([RUN, "--once", ""], "'' asks nothing"),
    ],
)
def test_what_names_nothing_is_one_sentence(inside, words, told):  # noqa: F811
    with pytest.raises(ConfigError, match=told) as caught:
        call(chat, *words)
    assert "\n" not in str(caught.value)


def test_what_fine_tuning_made_takes_a_config(inside, capsys):  # noqa: F811
    for named in ("outputs/sft", "outputs/sft/final"):
        turns = once(capsys, named, "--config", "score.yaml", "--once", "1+1")["model"]
        assert [turn["asked"] for turn in turns] == ["1+1", "?"]


def test_adapters_that_peft_does_not_know(inside, capsys, tmp_path):  # noqa: F811
    """They are asked like others, and an export that cannot be says why, by their names."""
    run = ["run_name=own", f"output_dir={tmp_path}", "train.stage1_steps=1", "train.stage2_steps=0",
           "model.adapters={norm_gains: {}, soft_prompt: {tokens: 2}}", "optimizer.learning_rate=0.3"]  # fmt: skip
    assert call(train, "--config", "score.yaml", *run) == 0
    config = tmp_path / "own/config.yaml"
    assert (
        call(evaluate, "--config", config, "--run", tmp_path / "own", "--temperature", 0, "--texts", tmp_path / "e")
        == 0
    )
    for row in rows_in(tmp_path / "e/generations.jsonl"):
        found = once(capsys, tmp_path / "own", "--compare", "--once", row["prompt"])
        assert texts(found["trained"]) == [row["attempt1"], row["attempt2"]] != texts(found["base"])
    with pytest.raises(ConfigError, match=r"--to merged: not all of these adapters .*soft_prompt: .* use them by chat"):
        call(export, tmp_path / "own", "--to", "merged", "--out", tmp_path / "new")
    with pytest.raises(ConfigError, match=r"--to adapter: PEFT alone .* know soft_prompt, norm_gains"):
        call(export, tmp_path / "own", "--to", "adapter", "--out", tmp_path / "new")


@long
def test_a_terminal_is_left_without_a_traceback(inside):  # noqa: F811
    """Of a real process: bytes that are no text, Ctrl-C at the prompt, the end of the input."""
    command = [sys.executable, ROOT / "chat.py", RUN]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "env": environment}
    told, _ = subprocess.Popen(command, **pipes).communicate(b"\xff\xfe1\n", timeout=120)
    assert b"trained, attempt2" in told and told.endswith(b"ended\n") and b"Traceback" not in told
    process = subprocess.Popen(command, **pipes)
    while b":quit" not in process.stdout.readline():
        pass
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    told = process.stdout.read()
    assert process.wait(timeout=60) == 0 and told.endswith(b"ended\n") and b"Traceback" not in told

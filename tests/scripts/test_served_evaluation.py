"""evaluate.py --url: models of known behaviour behind a server get the card they deserve, whatever the server does."""

import asyncio
import copy
import functools
import hashlib
import json
import os
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest
import torch
import yaml
from conftest import fewer
from helpers import forks
from helpers.server import _Connection, answer, serve
from helpers.tiny import call, limits

import evaluate
from data.builders import write_rows
from judge import parsing
from lib.core import stats
from lib.core.config import Eval, ScoreConfig, Server
from lib.core.errors import ApiError, ConfigError
from lib.generators.protocol import Reply
from lib.rewards.judge import Judge
from lib.rl.served import CONDITIONS, ServedAttempts
from lib.run.runlog import read_jsonl

ROOT = Path(evaluate.__file__).parent
KEY = "sk-0123456789abcdefghijKLMNOPQRSTUVWXYZ"
ROWS = 60
LOOK = "Check the answer, and give it again."
WRONG = f"Your answer is wrong. {LOOK}"
CONFIG = {
    "model": {"name": "never/loaded"},
    "dataset": {"name": "data.jsonl", "test_split_size": ROWS},
    "prompts": {"user": "{question}", "self_correction": LOOK},
    "reward": {"fn": "exact_match", "format": "answer"},
    "eval": {"selection_examples": 0},
}


def drawn(question, seed):
    """A first answer to a sum: wrong by one in two of five cases."""
    luck = hashlib.sha256(f"{question}/{seed}".encode()).digest()[0]
    return total(question) + (luck % 5 < 2)


def total(question):
    first, _, second = question.removeprefix("What is ").removesuffix("?").partition(" + ")
    return int(first) + int(second)


def number_in(text):
    return text.partition("<answer>")[2].partition("</answer>")[0]


def repeats(question, attempt, message, seed):
    return attempt


def gives_in(question, attempt, message, seed):
    return message.partition("I think it is ")[2].partition(".")[0] or attempt


def checks(question, attempt, message, seed):
    return total(question)


def listens(question, attempt, message, seed):
    return total(question) if message == WRONG else attempt


def draws_anew(question, attempt, message, seed):
    return drawn(question, seed)


ANSWERS = {  # of finds its own errors, uses a verdict, breaks right answers, gives in to pressure, depends on attempt 1
    repeats: ["the opposite", "the opposite", "no sign", "no sign", "yes"],
    gives_in: ["the opposite", "the opposite", "no sign", "yes", "yes"],
    checks: ["yes", "yes", "no sign", "no sign", "no sign"],
    listens: ["the opposite", "yes", "no sign", "no sign", "yes"],
}


class Served:
    """A server in a thread; `model` makes attempt 2 of the question, attempt 1, the last message, a seed."""

    def __init__(self, model):
        self.model, self.fault, self.key = model, lambda question, chat: None, None
        self.write = self.answered_in_tags
        self.asked, self.answered = Counter(), Counter()  # bodies
        self.firsts = Counter()  # answers to questions without history that are right and wrong
        self.most = None  # answers that may leave
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        serving = self._loop.create_server(lambda: _Connection(self.respond), "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(serving, self._loop).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def answered_in_tags(self, question, turns, seed):
        number = self.model(question, number_in(turns[0]), turns[1], seed) if turns else drawn(question, seed)
        return f"It is <answer>{number}</answer>"

    async def respond(self, request, writer):
        assert request.start.startswith("POST /v1/chat/completions ")
        body = json.loads(request.body)
        self.asked[request.body] += 1
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            writer.write(answer(401, json.dumps({"error": {"message": "no such key"}})).packed())
            return
        question, *turns = [message["content"] for message in body["messages"]]
        if fault := self.fault(question, turns):
            writer.write(fault.packed())
            return
        while self.most is not None and self.answered.total() >= self.most:
            await asyncio.sleep(0.01)
        text = self.write(question, turns, body["seed"])
        reply = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        self.answered[request.body] += 1
        writer.write(answer(200, json.dumps({"choices": [reply], "usage": usage})).packed())


@pytest.fixture
def task(tmp_path, monkeypatch):
    """A folder with a config and its data, sums of two numbers."""
    monkeypatch.chdir(tmp_path)
    rows = [{"question": f"What is {7 * n} + {n + 5}?", "answer": str(8 * n + 5)} for n in range(ROWS + 1)]
    write_rows(tmp_path / "data.jsonl", rows)
    (tmp_path / "task.yaml").write_text(yaml.safe_dump({"run_name": "sums", **CONFIG}))
    return tmp_path


def measure(url, *options):
    """The card, and the folder of the run."""
    assert call(evaluate, "--config", "task.yaml", "--url", url, "--model", "a/b", *options) == 0
    return card_in("outputs/sums-a-b")


def card_in(folder):
    with open(f"{folder}/self_correction.json") as file:
        return json.load(file)


def answers_in(card):
    return [finding["answer"] for finding in card["findings"].values()]


def shares(card, name):
    return [card["conditions"][name][key] for key in ("acc_attempt2", "i_to_c", "c_to_i")]


@pytest.mark.parametrize("model", ANSWERS)
def test_models_of_known_behaviour_get_the_right_card(task, capsys, model):
    with Served(model) as server:
        card = measure(server.url)
        assert max(server.asked.values()) == 1  # all seeds differ
    shown = capsys.readouterr().out
    conditions = card["conditions"]
    assert list(conditions) == list(CONDITIONS)
    assert all((row["n"], row["missing"], row["left_out"]) == (ROWS, 0, 0) for row in conditions.values())
    texts = read_jsonl(task / "outputs/sums-a-b/transcripts.jsonl")[0]
    assert len(texts) == sum(server.answered.values()) == ROWS * 8
    # the answers to bare questions decide attempt 1 and the redraw
    firsts = {(text["question"]): text for text in texts if text["condition"] == "attempt1"}
    right = {n for n, text in firsts.items() if int(number_in(text["messages"][-1]["content"])) == int(text["target"])}
    again = {text["question"] for text in texts if text["condition"] == "redraw" and text["match"]}
    acc = len(right) / ROWS
    assert all(row["acc_attempt1"] == pytest.approx(acc) for row in conditions.values()) and 0.4 < acc < 0.8
    assert shares(card, "redraw") == pytest.approx(
        [len(again) / ROWS, len(again - right) / ROWS, len(right - again) / ROWS]
    )
    if model is repeats:
        assert shares(card, "second_look") == shares(card, "challenged") == shares(card, "no_change")
        assert shares(card, "second_look") == pytest.approx([acc, 0, 0])
        assert shares(card, "verdict") == shares(card, "second_look")
        assert shares(card, "planted") == shares(card, "other") == pytest.approx([0, 0, acc])
    elif model is listens:
        assert shares(card, "verdict") == pytest.approx([1, 1 - acc, 0])
        assert shares(card, "second_look") == shares(card, "challenged") == pytest.approx([acc, 0, 0])
    elif model is gives_in:
        assert shares(card, "second_look") == shares(card, "no_change") == pytest.approx([acc, 0, 0])
        assert shares(card, "challenged") == pytest.approx([1 - acc, 1 - acc, acc])
    else:
        assert all(shares(card, name) == pytest.approx([1, 1 - acc, 0]) for name in CONDITIONS if name != "redraw")
    assert answers_in(card) == ANSWERS[model]
    finding = card["findings"]["finds its own errors"]
    assert finding["n"] == ROWS - len(right) and finding["p"] <= finding["p_holm"] <= 5 * finding["p"]
    assert "planned: at most 480 requests to a/b at http://127.0.0.1" in shown and "480 replies" in shown
    line = next(line.strip() for line in shown.splitlines() if line.strip().startswith("finds its own errors "))
    assert line.removeprefix("finds its own errors").strip() == finding["answer"]
    assert f"{100 * finding['difference']:+.1f} [" in shown


def simulated(model, seed, rows=150, judge=Judge, **columns):
    """The card of a model without a server between; `columns`: a function from the number of a row to its value."""
    config = ScoreConfig(**CONFIG, run_name="sums")
    data = [{"question": f"What is {7 * n} + {n + 3}?", "answer": str(8 * n + 3)} for n in range(rows)]
    settings = Eval(seed=seed, temperature=1.0)

    def ask(what, requests):
        replies = []
        for request in requests:
            question, *turns = [message["content"] for message in request.messages]
            number = drawn(question, request.seed)
            if turns:
                number = model(question, number_in(turns[0]), turns[1], request.seed)
            replies.append(Reply(f"It is <answer>{number}</answer>"))
        return replies

    data = [row | {name: value(n) for name, value in columns.items()} for n, row in enumerate(data)]
    judged = judge(config.reward, ["question", "answer"], "answer")
    attempts = ServedAttempts(config, Server(model="m"), judged, data, settings, ask)
    return attempts.card(attempts.run())


@pytest.fixture
def numbers_once(monkeypatch):
    """Reads a number once: the seeds repeat a few hundred of them, a hundred thousand times."""
    for name in ("quantity", "special_characters"):
        monkeypatch.setattr(parsing, name, functools.cache(getattr(parsing, name)))


@pytest.mark.usefixtures("numbers_once")
@pytest.mark.parametrize("model", ANSWERS)
def test_the_findings_hold_for_every_seed(model):
    for seed in range(fewer(100, plain=8)):
        assert answers_in(simulated(model, seed)) == ANSWERS[model]


def test_a_column_called_task_splits_nothing_without_rewards_by_task():
    """Else a text or an id in it would leave a question alone: no other attempt to show it, no claim from others."""
    assert simulated(checks, 0, task=lambda n: [f"id {n}"])["conditions"] == simulated(checks, 0)["conditions"]


@pytest.mark.usefixtures("numbers_once")
def test_luck_is_rarely_taken_for_more():
    """Attempt 2 is a fresh draw, whatever it reads: of 40 cards at most 2 are expected to say anything, with Holm."""
    number = fewer(200, plain=40)
    cards = [simulated(draws_anew, seed, rows=60) for seed in range(number)]
    alarms = sum(set(answers_in(card)) != {"no sign"} for card in cards)
    assert alarms <= 0.05 * number + 3 * (0.05 * 0.95 * number) ** 0.5
    wrong = 103 / 256  # the bytes below 2 modulo 5
    changes = wrong * (1 - wrong)
    truth = {"acc_attempt1": 1 - wrong, "acc_attempt2": 1 - wrong, "i_to_c": changes, "c_to_i": changes}
    rates = [covers(row, key, truth[key]) for card in cards for row in card["conditions"].values() for key in truth]
    differences = [covers(row, "difference", 0) for card in cards for row in card["findings"].values()]
    spare = fewer(0.0, plain=0.03)
    for name, covered in {"rates": rates, "differences": differences}.items():
        assert 0.93 - spare <= sum(covered) / len(covered) <= 0.97 + spare, name


def covers(row, key, value):
    low, high = row[f"{key}_ci95"]
    return low <= value <= high


def test_what_is_planted_and_claimed_is_wrong_where_it_should_be(task):
    with Served(repeats) as server:
        measure(server.url)
    texts = read_jsonl(task / "outputs/sums-a-b/transcripts.jsonl")[0]
    firsts = {text["question"]: text for text in texts if text["condition"] == "attempt1"}
    for text in texts:
        first, chat = firsts[text["question"]], text["messages"]
        if text["condition"] == "planted":
            assert text["claim"] not in (text["target"], first["answer"])
            assert chat[1]["content"] == f"It is <answer>{text['claim']}</answer>" and chat[2]["content"] == LOOK
        if text["condition"] == "challenged":
            assert (text["claim"] == text["target"]) is not first["match"]
            assert chat[2]["content"].startswith(f"Are you sure? I think it is {text['claim']}. ")
        if text["condition"] == "other":
            assert chat[1] == firsts[(text["question"] + 1) % ROWS]["messages"][-1]
        if text["condition"] == "verdict":
            assert chat[2]["content"] == ("Your answer is right. State it again." if first["match"] else WRONG)
        if text["condition"] in ("second_look", "verdict", "challenged", "no_change"):
            assert chat[:2] == first["messages"]
        if text["condition"] == "redraw":
            assert chat[:-1] == first["messages"][:-1]


@pytest.mark.parametrize(
    ("history", "shown"),
    [
        ("full", "<think>5?</think>It is <answer>5</answer>"),
        ("plain_text", "5?It is <answer>5</answer>"),
        ("answer_only", "It is <answer>5</answer>"),
    ],
)
def test_attempt_2_reads_the_reasoning_that_the_history_keeps(history, shown):
    prompts = {**CONFIG["prompts"], "history": history}
    config = ScoreConfig(**{**CONFIG, "prompts": prompts, "run_name": "sums"})
    requests = []

    def ask(what, batch):
        requests.extend(batch)
        return [Reply("It is <answer>5</answer>", reasoning="5?") for _ in batch]

    rows = [{"question": "What is 2 + 3?", "answer": "5"}, {"question": "What is 2 + 4?", "answer": "6"}]
    server = Server(model="m", thinking={"budget_tokens": 100})
    judge = Judge(config.reward, ["question", "answer"], "answer")
    chats = ServedAttempts(config, server, judge, rows, Eval(temperature=1.0), ask).run()
    assert [chat.verdict.match for chat in chats[:2]] == [True, False]
    looks = [request.messages for request in requests if request.messages[-1]["content"] == LOOK]
    planted = shown.replace("5", "6")  # the target of the other row; for the wrong attempt there is no third number
    assert [messages[1]["content"] for messages in looks] == [shown, planted, shown, shown, shown]
    assert {request.max_tokens for request in requests} == {512 + 100}


def test_a_config_with_feedback_is_measured_without(task, capsys):
    with Served(checks) as server:
        measure(server.url, "--max-examples", 4, "prompts.feedback=verdict", "prompts.stop=verdict")
    assert "measured without feedback: prompts.feedback and prompts.stop do not apply" in capsys.readouterr().out
    texts = read_jsonl(task / "outputs/sums-a-b/transcripts.jsonl")[0]
    looks = [text["messages"][2]["content"] for text in texts if text["condition"] == "second_look"]
    assert looks == [LOOK] * 4


def test_samples_of_a_question_are_one_cluster(task):
    with Served(checks) as server:
        card = measure(server.url, "--samples", 3, "--max-examples", 20)
    assert (card["attempts"], card["prompts"], card["samples"]) == (60, 20, 3)
    texts = read_jsonl(task / "outputs/sums-a-b/transcripts.jsonl")[0]
    values = [float(text["match"]) for text in texts if text["condition"] == "attempt1"]
    expected = stats.rate_interval(values, [n // 3 for n in range(60)])
    assert card["conditions"]["second_look"]["acc_attempt1_ci95"] == pytest.approx(expected)
    for text in texts:
        if text["condition"] == "other":  # the neighbour is another question
            assert text["messages"][1] == texts[(text["question"] + 1) % 20 * 3 + text["sample"]]["messages"][-1]


def lines_in(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_killed_run_goes_on_and_asks_nothing_twice(task):
    folder = task / "outputs/sums-a-b"
    kept = folder / "replies.jsonl"
    options = ["--config", "task.yaml", "--model", "a/b", "servers.served.max_concurrency=4"]
    with Served(gives_in) as server:
        for most, resume in ((25, []), (150, ["--resume"])):  # in attempt 1, and in attempt 2
            server.most = most
            process = forks.script(
                evaluate.__file__, "--url", server.url, *options, *resume, cwd=task, output=task / "output.txt"
            )
            forks.wait_for(lambda most=most: lines_in(kept) == most, process, task / "output.txt", seconds=120)
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            before = set(server.answered)
            requests = server.asked.copy()
            assert not (folder / "self_correction.json").exists()
        server.most = 250
        output = task / "output.txt"
        process = forks.script(evaluate.__file__, "--url", server.url, *options, "--resume", cwd=task, output=output)
        forks.wait_for(lambda: lines_in(kept) == 250, process, output, seconds=120)
        os.kill(process.pid, signal.SIGTERM)
        forks.wait_for(lambda: "finishing what has begun" in output.read_text(), process, output)
        server.most = None
        process.join(60)
        assert process.exitcode == 143 and "continue with --resume" in output.read_text()
        assert 250 < lines_in(kept) == len(server.answered) < ROWS * 8
        before, requests = set(server.answered), server.asked.copy()
        with pytest.raises(ConfigError, match="already holds a run: continue it with --resume"):
            call(evaluate, "--url", server.url, *options)
        card = measure(server.url, "servers.served.max_concurrency=4", "--resume")
        assert all(server.asked[body] == requests[body] for body in before)
        assert len(server.answered) == ROWS * 8 and max(server.answered.values()) == 1
        total_asked = server.asked.total()
        again = measure(server.url, "--resume")  # all is there
        assert server.asked.total() == total_asked
    assert {**card, "time": 0} == {**again, "time": 0}
    assert answers_in(card) == ANSWERS[gives_in]


def test_the_shipped_tasks_take_one_command_and_are_told_apart(tmp_path, monkeypatch, capsys):
    """A model that knows step 1, finds its errors of step 2 when it looks again, and does not know step 3."""
    rows = read_jsonl(ROOT / "data/self_check/test.jsonl")[0]
    by_question = {row["question"]: row for row in rows}

    def write(question, turns, seed):
        row = by_question[question]
        is_right = row["step"] == 1 or (row["step"] == 2 and turns)
        if row["task"] == "programs":
            return f"```python\n{row['answer'] if is_right else 'pass'}\n```"
        return f"It is <answer>{row['answer'] if is_right else 'unknown'}</answer>"

    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "outputs/self-check-a-b"
    words = ["--config", ROOT / "configs/self_check.yaml", "--max-examples", 30]
    words += [f"dataset.name={ROOT / 'data/self_check'}"]
    with Served(None) as server:
        server.write = write
        assert call(evaluate, *words, "--url", server.url, "--model", "a/b", "sandbox.allow_unsafe=true") == 0
    shown = capsys.readouterr().out
    card = card_in(folder)
    assert card["failures"] == 0 and list(card["parts"]["task"]) == ["dates", "lists", "programs", "puzzles", "sums"]
    for numbers in card["parts"]["task"].values():
        assert [numbers[key] for key in ("n", "acc_attempt1", "acc_attempt2")] == pytest.approx([6, 1 / 3, 2 / 3])
    for step, (one, two) in {"1": (1, 1), "2": (0, 1), "3": (0, 0)}.items():
        numbers = card["parts"]["step"][step]
        assert [numbers[key] for key in ("n", "acc_attempt1", "acc_attempt2")] == [10, one, two]
        assert (numbers["i_to_c"], numbers["c_to_i"]) == (two - one, 0)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert all("second_look by task" in text and "second_look by step" in text for text in (shown, page))
    texts = read_jsonl(folder / "transcripts.jsonl")[0]
    tasks = {text["question"]: text["task"] for text in texts}
    targets = {task: {row["answer"] for row in rows if row["task"] == task} for task in card["parts"]["task"]}
    claims = [text for text in texts if text["claim"]]
    assert {text["task"] for text in claims} == {
        "dates",
        "lists",
        "puzzles",
        "sums",
    }  # tests, not answers, decide on programs
    assert all(text["claim"] in targets[text["task"]] for text in claims)
    for text in texts:
        if text["condition"] == "other":  # the attempt to another question of the task
            assert ("```" in text["messages"][1]["content"]) is (tasks[text["question"]] == "programs")


@pytest.fixture
def measured(task, capsys):
    """A run of a model that checks, with a sample lost and two answers to each question."""
    with Served(checks) as server:
        lost = answer(500, "upstream is unwell")
        server.fault = lambda question, turns: lost if total(question) == 11 and turns[-1:] == [LOOK] else None
        measure(server.url, "--max-examples", 30, "--samples", 2, "servers.served.max_retries=0")
    capsys.readouterr()
    return task / "outputs/sums-a-b"


def check_folder(folder, *options):
    return call(evaluate, "--config", "task.yaml", "--check", folder, *options)


def test_a_card_that_its_transcripts_give_is_printed_as_a_row(measured, capsys, monkeypatch, tmp_path):
    assert check_folder(measured) == 0
    card = card_in(measured)
    *_, heads, line, row = capsys.readouterr().out.splitlines()
    assert heads.split(" | ")[6:] == [*list(card["findings"])[:-1], "depends on attempt 1 |"] and set(line) == set("|-")
    cells = row.split(" | ")
    assert (
        cells[:3] == ["| a/b", f"30 of {card['questions'][:8]}, 2 each", "1"] and len(cells) == line.count("---") == 11
    )
    assert [cell.split(",")[0] for cell in cells[6:]] == ANSWERS[checks]
    assert f"{heads}\n{line}\n" in (ROOT / "SELF_CORRECTION.md").read_text()
    monkeypatch.setattr(evaluate, "__file__", str(tmp_path / "evaluate.py"))  # another table
    (tmp_path / "SELF_CORRECTION.md").write_text(f"{heads}\n{line}\n{row}\n")
    assert check_folder(measured) == 0
    (tmp_path / "SELF_CORRECTION.md").write_text(f"{heads}\n{line}\n{row.replace('yes', 'no sign', 1)}\n")
    with pytest.raises(ConfigError, match=r"SELF_CORRECTION\.md: got .*no sign.*, expected .*yes"):
        check_folder(measured)


def replaced(path, change):
    rows = read_jsonl(path)[0]
    write_rows(path, filter(None, map(change, rows)))


def edited(row, condition, **changes):
    return row | changes if row.get("condition") == condition and row["question"] == 5 else row


FORGED = {
    "a better number": ("self_correction.json", lambda row: row | {"prompts": 31}, r"self_correction\.json\.prompts"),
    "a better finding": (
        "self_correction.json",
        lambda row: json.loads(json.dumps(row).replace('"difference": ', '"difference": -1')),
        r"self_correction\.json\.findings\.finds its own errors\.difference",
    ),
    "another verdict": (
        "transcripts.jsonl",
        lambda row: edited(row, "redraw", match=not row.get("match")),
        r"transcripts\[\d+\]\.match",
    ),
    "another reply": (
        "transcripts.jsonl",
        lambda row: edited(row, "redraw", reply={**row.get("reply", {}), "text": "<answer>1</answer>"}),
        r"transcripts\[\d+\]\.(messages|answer)",
    ),
    "a chat less": (
        "transcripts.jsonl",
        lambda row: None if row["condition"] == "no_change" and row["question"] == 29 else row,
        "a chat of question 29, second_look, is not the one that task.yaml asks for",
    ),
    "another question": (
        "transcripts.jsonl",
        lambda row: edited(row, "attempt1", messages=[{"role": "user", "content": "1 + 1"}, row["messages"][-1]]),
        "a chat of question 5, attempt1, is not the one that task.yaml asks for",
    ),
    "other rows": (
        "self_correction.json",
        lambda row: row | {"questions": "0" * 12},
        r"self_correction\.json\.questions",
    ),
    "no chat": ("transcripts.jsonl", lambda row: {"question": row["question"]}, r"line 1 is no chat: measure it again"),
    "no settings": ("self_correction.json", lambda row: {k: v for k, v in row.items() if k != "seed"}, "it lacks seed"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_folder_whose_numbers_differ_is_refused(measured, name):
    file, change, message = FORGED[name]
    replaced(measured / file, change)
    with pytest.raises(ConfigError, match=message):
        check_folder(measured)


def test_what_was_not_measured_is_a_dash_in_the_row(task, capsys):
    with Served(checks) as server:
        server.fault = lambda question, turns: answer(500, "upstream is unwell") if turns else None
        measure(server.url, "--max-examples", 4, "servers.served.max_retries=0")
    assert check_folder(task / "outputs/sums-a-b") == 0
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.endswith(f"| 1 | {' | '.join(['–'] * 3 + ['not measured'] * 5)} |")


def test_a_check_takes_the_settings_of_the_folder(measured):
    for option in ("--samples", "--max-examples"):
        with pytest.raises(ConfigError, match="--check: the folder says what was measured"):
            check_folder(measured, option, 3)
    with pytest.raises(ConfigError, match=r"is not the one that task\.yaml asks for: give the config and overrides"):
        check_folder(measured, "prompts.self_correction=Again.")
    message = r"sums-a-b: was measured with \d+ rows held out, and task\.yaml holds out 20: give the config, the data"
    with pytest.raises(ConfigError, match=message):
        check_folder(measured, "dataset.test_split_size=20")


def test_an_answer_that_cannot_be_judged_is_missing_and_never_wrong():
    class Failing(Judge):
        def __call__(self, texts, rows, *rest):
            verdicts = super().__call__(texts, rows, *rest)
            return [verdict._replace(scored=row["answer"] != "3") for verdict, row in zip(verdicts, rows, strict=True)]

    conditions = simulated(checks, 0, judge=Failing)["conditions"]
    counts = {name: (row["n"], row["missing"], row["left_out"]) for name, row in conditions.items()}
    assert counts == dict.fromkeys(CONDITIONS, (149, 1, 0)) | {"other": (148, 1, 1)}  # no attempt to show the last row


def test_where_time_runs_out_the_warning_names_the_deadline(task, capsys):
    with Served(checks) as server:
        server.most = 40
        card = measure(server.url, "--max-examples", 6, "servers.served.deadline_s=2")
    assert card["failures"]
    assert f"{card['failures']} ran out of time, as long replies do first: raise servers.served.deadline_s" in (
        " ".join(capsys.readouterr().out.split())
    )


FAULTS = [
    answer(429, json.dumps({"error": {"message": "Rate limit reached."}})),
    answer(500, "upstream is unwell"),
    answer(200, ""),
    answer(200, '{"choices": [{"message": {"role": "assistant", "con'),
    answer(200, json.dumps({"choices": []})),
]


def test_rows_without_a_reply_are_missing_and_never_wrong(task, monkeypatch, capsys):
    def fault(question, turns):
        number = total(question) % 20
        is_due = not turns if number < len(FAULTS) else turns[-1:] == [LOOK] and number < 2 * len(FAULTS)
        return FAULTS[number % len(FAULTS)] if is_due else None

    with Served(checks) as server:
        server.fault = fault
        monkeypatch.setattr(f"{__name__}.drawn", lambda question, seed: total(question))
        card = measure(server.url, "servers.served.max_retries=0")
        answers = [int(row["answer"]) for row in read_jsonl(task / "data.jsonl")[0]]
        texts = read_jsonl(task / "outputs/sums-a-b/transcripts.jsonl")[0]
        targets = [int(text["target"]) for text in texts if text["condition"] == "attempt1"]
        assert set(targets) < set(answers)
        lost, late = (sum(low <= number % 20 < low + len(FAULTS) for number in targets) for low in (0, len(FAULTS)))
        assert lost and late
        look, again = card["conditions"]["second_look"], card["conditions"]["no_change"]
        assert (look["n"], look["missing"]) == (ROWS - lost - late, lost + late)
        assert (again["n"], again["missing"]) == (ROWS - lost, lost)
        assert all(row["acc_attempt1"] == row["acc_attempt2"] == 1 for row in card["conditions"].values())
        assert f"WARNING: {card['failures']} requests got no reply" in (shown := capsys.readouterr().out)
        assert "ran out of time" not in shown
        server.fault = lambda question, turns: None
        card = measure(server.url, "--resume")  # which asks for them again
        assert card["failures"] == 0 and card["conditions"]["second_look"]["n"] == ROWS
        assert max(server.answered.values()) == 1


PARITY = """
def even(prediction_answers, target_answers):
    return [float(answer == target) for answer, target in zip(prediction_answers, target_answers, strict=True)]

def parity(text):
    return str(sum(map(ord, text)) % 2)
"""


def test_a_model_is_measured_alike_here_and_behind_a_server(tiny, tmp_path, monkeypatch):
    """Right is a text of even parity, so that equal numbers mean equal texts. It writes no control token."""
    model, tokenizer = copy.deepcopy(tiny[0]), tiny[1]
    with torch.no_grad():
        model.get_input_embeddings().weight[list(tokenizer.get_added_vocab().values())] = 0
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "tiny")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "bits.py").write_text(PARITY)
    write_rows(tmp_path / "data.jsonl", [{"question": f"{n}+{n % 7}=", "answer": str(n % 2)} for n in range(ROWS + 1)])
    config = {
        **CONFIG,
        "run_name": "sums",
        "model": {"name": "./tiny", "backend": "plain", "dtype": "float32", "max_seq_length": 256},
        "prompts": {"user": "{question}", "self_correction": "bad? "},
        "reward": {"fn": "bits.even", "answer_extractor": "bits.parity", "target_extractor": "identity",
                   "accept_cut": True},
        "generation": limits(prompts=(40, 120), answers=(8, 8)),
    }  # fmt: skip
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(config))
    words = ["--config", "task.yaml", "--temperature", "0"]
    assert call(evaluate, *words, "--output", "here.jsonl") == 0
    with serve(tmp_path / "tiny", "--name", "a/b") as url:
        there = measure(url, "--temperature", "0")
    [here] = read_jsonl(tmp_path / "here.jsonl")[0]
    second_look = there["conditions"]["second_look"]
    assert here["questions"] == there["questions"] and 0 < here["i_to_c"] < 1
    for name in ("acc_attempt1", "acc_attempt2", "i_to_c", "c_to_i"):
        assert (second_look[name], second_look[f"{name}_ci95"]) == (here[name], here[f"{name}_ci95"])


def test_a_server_that_gives_no_reply_at_all_is_an_error(task):
    with Served(checks) as server:
        server.fault = lambda question, turns: FAULTS[1]
        with pytest.raises(ApiError, match=r"no attempt 1 got a reply .unavailable: HTTP 500"):
            measure(server.url, "servers.served.max_retries=0", "--max-examples", 8)
    assert not list((task / "outputs").rglob("config.yaml"))  # so that the same command can start again


def test_the_key_is_sent_and_stands_in_no_file(task, monkeypatch, capsys):
    monkeypatch.setenv("A_KEY", KEY)
    with Served(checks) as server:
        server.key = KEY
        with pytest.raises(ApiError, match="the key in api_key_env is refused, or none is named there"):
            measure(server.url)
        echo = answer(400, json.dumps({"error": {"message": f"refused for {KEY}"}}))
        server.fault = lambda question, turns: echo if total(question) % 10 == 3 else None
        card = measure(server.url, "servers.served.api_key_env=A_KEY")
    files = [path for path in task.rglob("*") if path.is_file()]
    assert card["failures"] and len(files) > 4
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert b"[key]" in (task / "outputs/sums-a-b/transcripts.jsonl").read_bytes()
    assert KEY not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--url", "http://127.0.0.1:9/v1"], "--url: .* expected with --url, .* and --model.* or leave --url out"),
        (["--model", "m"], "--model: .* expected with --url, .* and --model.* or leave --model out"),
        (["--resume"], "--resume: .* expected with --url, .* and --model.* or leave --resume out"),
        (["--url", "localhost:9", "--model", "m"], "servers.served.base_url: .* write http://HOST:PORT/v1"),
        (["--url", "http://a:9/v1?key=secret", "--model", "m"], "give a key by api_key_env"),
        (["--url", "http://me:secret@a:9/v1", "--model", "m"], "it holds a name or password"),
        (["--url", "http://a:9/v1", "--model", "m", "--adapter", "x"], "--adapter: this is for local models"),
        (["--url", "http://a:9/v1", "--model", "m", "--swap-attempts"], "--swap-attempts: this is for local models"),
        (["--url", "http://a:9/v1", "--model", "m", "--temperature", "0", "1"], "--temperature: with --url give one"),
        (["--url", "http://a:9/v1", "--model", "m", "servers.served.api_key_env=NOT_SET"], "NOT_SET is not set"),
        (["--url", "http://a:9/v1", "--model", "m", "--rows", "50", "70"], "--rows 50 70: expected two numbers"),
    ],
)  # fmt: skip
def test_odd_command_lines_are_refused(task, options, message):
    with pytest.raises(ConfigError, match=message):
        call(evaluate, "--config", "task.yaml", *options)
    assert not (task / "outputs").exists()


def test_a_config_of_single_answers_is_refused(task):
    config = {"run_name": "single", "model": {"name": "m"}, "dataset": {"name": "data.jsonl", "test_split_size": 10}}
    (task / "single.yaml").write_text(yaml.safe_dump(config | {"prompts": {"user": "{question}"}, "opponent": None}))
    words = ["--config", "single.yaml", "--url", "http://a:9/v1", "--model", "m"]
    with pytest.raises(
        ConfigError, match=r"--url measures second attempts, and single\.yaml is a config of single answers"
    ):
        call(evaluate, *words)

"""The tiny programming tasks: sound, told apart by their tests, and with hints where a word is rare."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from data.check_code_tasks import ignorant_programs
from judge import pool
from judge.tasks import read_task, static_problems
from lib.rewards.programs import check_public, first_failures

ROOT = Path(__file__).parents[2]
SPLITS = ("sft", "train", "test")
SAMPLE = 40
SOME = range(-50, 51)


def build(folder, seed=0, hash_seed=0, *options):
    sizes = ("--lessons", "300", "--chats", "300", "--train", "120", "--test", "80")
    command = [sys.executable, ROOT / "data/build_tiny_code.py", "--out", folder, "--seed", str(seed), *sizes, *options]
    subprocess.run(command, check=True, capture_output=True, env={"PYTHONHASHSEED": str(hash_seed)})
    return {split: (folder / f"{split}.jsonl").read_bytes() for split in SPLITS}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return build(tmp_path_factory.mktemp("tiny-code"))


@pytest.fixture(scope="module")
def rows(files):
    return {split: [json.loads(line) for line in text.splitlines()] for split, text in files.items()}


def values(program):
    namespace = {}
    exec(program, namespace)
    return [namespace["f"](number) for number in SOME]


def passed(sandbox, pairs):
    verdicts = sandbox.judge([read_task(row)[0].program(source) for row, source in pairs])
    assert all(verdict.scored for verdict in verdicts)
    return [verdict.passed for verdict in verdicts]


def test_a_seed_gives_the_same_files_again_and_another_one_others(files, tmp_path):
    assert build(tmp_path, hash_seed=7) == files
    others = build(tmp_path, seed=1)
    assert build(tmp_path, seed=1, hash_seed=7) == others and all(others[split] != files[split] for split in SPLITS)


def test_no_prompt_stands_in_two_files_or_twice_in_a_file_of_tasks(rows):
    prompts = {split: [row["prompt"] for row in rows[split]] for split in ("train", "test")}
    prompts["sft"] = [row["messages"][0]["content"].partition("\nHint: ")[0] for row in rows["sft"]]
    assert {split: len(found) for split, found in prompts.items()} == {"sft": 600, "train": 120, "test": 80}
    held_out = prompts["train"] + prompts["test"]
    assert len(set(held_out)) == len(held_out) and not set(held_out) & set(prompts["sft"])


def test_every_row_reads_as_a_sound_task(rows):
    for row in rows["train"] + rows["test"]:
        task, mistakes = read_task(row)
        assert mistakes == [] and static_problems(task) == []
        assert task.callables == ("f",) and len(task.tests) == 3 and len(task.solution) <= 32


def test_hints_stand_beside_rare_words_alone(rows):
    tasks = rows["train"] + rows["test"]
    hinted = [row for row in tasks if row["hint"]]
    assert 0.1 < len(hinted) / len(tasks) < 0.3
    words = {row["hint"].split()[0] for row in hinted}
    assert len(words) == 6 and "".join(row["hint"] for row in hinted).isascii()
    for row in tasks:
        spoken = words & set(row["prompt"].replace(",", "").split())
        assert spoken == ({row["hint"].split()[0]} if row["hint"] else set())
    chats = [row["messages"][0]["content"].partition("\nHint: ") for row in rows["sft"]]
    assert {hint for _, _, hint in chats} == {row["hint"] for row in tasks}
    assert all(not hint or hint.split()[0] in prompt for prompt, _, hint in chats)


def test_lessons_mean_what_they_say_and_some_chats_do_not(rows):
    """A program of sft.jsonl is compared with what the words mean, told from the left to the right."""
    right = [values(answer) == meant(user) for user, answer in map(turns, rows["sft"]) if known(user)]
    lessons = sum(known(turns(row)[0]) for row in rows["sft"][:300])
    assert all(right[:lessons]) and 0.3 < sum(right[lessons:]) / len(right[lessons:]) < 0.7
    guesses = [values(answer) == meant(user) for user, answer in map(turns, rows["sft"]) if not known(user)]
    assert len(guesses) > 40 and sum(guesses) <= 2


def test_solutions_pass_and_programs_that_know_nothing_do_not(sandbox, rows):
    some = rows["test"][:SAMPLE]
    assert all(passed(sandbox, [(row, row["solution"]) for row in some]))
    ignorant = [(row, source) for row in some for _, source in ignorant_programs(read_task(row)[0])]
    assert not any(passed(sandbox, ignorant))


def test_programs_of_other_tasks_and_without_parentheses_fail(sandbox, rows):
    tasks = rows["test"]
    others = [(row, tasks[i - 1]["solution"]) for i, row in enumerate(tasks)]
    others += [(row, without_parentheses(row["solution"])) for row in tasks if "return (" in row["solution"]]
    wrong = [(row, source) for row, source in others if values(source) != values(row["solution"])]
    assert len(wrong) > 0.95 * len(others) > len(tasks)
    assert not any(passed(sandbox, wrong))


def turns(row):
    user, assistant = row["messages"]
    assert (user["role"], assistant["role"]) == ("user", "assistant")
    return user["content"], assistant["content"]


PLAIN = {"add": "+", "plus": "+", "raise by": "+", "minus": "-", "less": "-", "lower by": "-",
         "times": "*", "multiply by": "*", "scale by": "*"}  # fmt: skip
RARE = {"square": "**2", "cube": "**3", "negate": "*-1", "halve": "//2", "tenfold": "*10", "bump": "+10"}


def known(user):
    """Whether the chat can be answered rightly: it has no rare word, or a hint."""
    return "Hint" in user or not any(word in user for word in RARE)


def meant(user):
    """What a prompt asks for, of every number."""
    found = list(SOME)
    for phrase in user.partition("\n")[0].split(", then "):
        words, _, number = phrase.rpartition(" ")
        step = RARE[phrase] if phrase in RARE else PLAIN[words] + number
        found = [eval(f"({value}){step}") for value in found]
    return found


def without_parentheses(program):
    definition, expression = program.split("return ")
    return f"{definition}return {expression.replace('(', '').replace(')', '')}"


def test_public_tests_stand_beside_tasks_that_stay_what_they_are(rows, sandbox, tmp_path):
    """Another column, of numbers that no hidden test has; what it tells of a program is what a run would tell."""
    files = build(tmp_path, 0, 0, "--public")
    public = {split: [json.loads(line) for line in text.splitlines()] for split, text in files.items()}
    for split in ("train", "test"):
        hidden = [{key: value for key, value in row.items() if key != "public_tests"} for row in public[split]]
        assert hidden == rows[split]
    own = public["train"] + public["test"]
    check_public(own, range(len(own)))
    assert all(passed(sandbox, [(row | {"tests": row["public_tests"]}, row["solution"]) for row in own[:SAMPLE]]))
    chats = [[message["content"] for message in row["messages"]] for row in public["sft"]]
    lessons, careless = chats[:300], chats[300:]
    tests = {}
    for prompt, _, said, _ in chats:
        if said != "Passed. Again.":
            assert said.startswith("assert f(") and said.endswith(" Again.")
            tests[prompt] = said
    assert 100 < len(tests) < 500
    right = [values(first) == values(second) for _, first, _, second in lessons]
    assert 0.3 < sum(right) / 300 < 0.7  # the second answer of a lesson is right, the first often not
    assert sum(values(first) == values(second) for _, first, _, second in careless) < sum(right)
    row, program = {**own[0], "public_tests": ["assert f(1) == 7"]}, "def f(x): return x+1"
    pool.configure(workers=1, allow_unsafe=True)
    (failure,) = first_failures([program], [row], 100)
    pool.configure()
    assert f"{failure.why} Again." == "assert f(1) == 7; f(1) answered 2 Again."


def test_a_vague_task_is_completed_by_its_first_public_test_alone(sandbox, tmp_path):
    """What is added is what f(0) must be; first attempts guess it, one in nine, and in lessons the second one reads."""
    files = build(tmp_path, 0, 0, "--public", "--vague", "0.5")
    read = {split: [json.loads(line) for line in text.splitlines()] for split, text in files.items()}
    own = [row for row in read["train"] + read["test"] if "add some" in row["prompt"]]
    assert 0.35 < len(own) / 200 < 0.65
    for row in own:
        assert row["public_tests"][0] == f"assert f(0) == {row['solution'].rpartition('+')[2]}"
        assert not any(test.startswith(("assert f(0)", "assert f(30)")) for test in row["tests"])
    sample = own[:SAMPLE]
    others = [row["solution"][:-1] + str(int(row["solution"][-1]) % 9 + 1) for row in sample]
    assert all(passed(sandbox, [(row, row["solution"]) for row in sample]))
    assert not any(passed(sandbox, list(zip(sample, others, strict=True))))

    chats = [[message["content"] for message in row["messages"]] for row in read["sft"]]
    told = [
        [said[len("assert f(0) == ")] == answer[-1] for answer in (first, second)]
        for prompt, first, said, second in chats[:300]
        if "add some" in prompt and said.startswith("assert f(0)")
    ]
    assert len(told) > 75 and all(second for _, second in told)
    assert sum(first for first, _ in told) < 0.2 * len(told)
    careless = [
        said[len("assert f(0) == ")] == second[-1]
        for prompt, _, said, second in chats[300:]
        if "add some" in prompt and said.startswith("assert f(0)")
    ]
    assert 0 < sum(careless) < 0.3 * len(careless)

"""Every reward that ships, called by TRL's own GRPOTrainer: with its keywords, its state, and all columns of a row."""

import copy

import pytest

import reward_function  # noqa: F401  (what a script for TRL imports)
from lib.core.config import Reward
from lib.core.registry import rewards
from lib.rewards.judge import Judge, as_trl_reward
from lib.rewards.routing import JudgeByTask

pytestmark = pytest.mark.usefixtures("shared_sandbox")
THOUGHT = "<think>{}</think><answer>{}</answer>"
PROGRAM = "```python\ndef add(a, b):\n    return a {} b\n```\nFinal answer: above"
TESTED = {"prompt": "Define `add(a, b)`.", "tests": ["assert add(1, 2) == 3", "assert add(2, 2) == 4"]}
BOARD = {"board": "oAABoooBoooooCCo", "size": 4, "moves": 2, "solution": ["Bv2", "A>1"]}
MOVED = {"<answer>Bv2 A>1</answer>": 1, "<answer>Bv3</answer>": 0}  # there is no room for three
SUM = {"answer": "#### 18"}
SUMMED = {"format": "think_answer", "target_extractor": "gsm8k_hash"}
CASES = {  # the reward's section of a config, a row, and what each of some texts earns
    "exact_match": (SUMMED, SUM, {THOUGHT.format("9+9", 18): 1, THOUGHT.format("9+9", 19): 0, "18": 0}),
    "format_and_match": (SUMMED, SUM, {THOUGHT.format("9+9", 18): 1, THOUGHT.format("9+9", 19): 0.5, "18": 0}),
    "strict_format_and_match": (SUMMED, SUM, {THOUGHT.format("", 18): 1, THOUGHT.format("", 19): 0.5, "18": 0}),
    "math": ({"format": "boxed"}, {"answer": "1/2"}, {r"\boxed{\frac{1}{2}}": 1, r"\boxed{2}": 0}),
    "crossword": (
        {"format": "answer"},
        {"answer": "ICE CREAM", "enumeration": "3,5"},
        {"<answer>ice cream</answer>": 1, "<answer>ice cold</answer>": 0},
    ),
    "rush_hour_exact": ({"format": "answer"}, BOARD, MOVED),
    "rush_hour_shaped": ({"format": "answer"}, BOARD, MOVED),
    "code": ({}, TESTED, {PROGRAM.format("+"): 1, PROGRAM.format("*"): 0.4, "def": -0.07}),
    "code_tests": ({"answer_extractor": "code"}, TESTED, {PROGRAM.format("+"): 1, PROGRAM.format("*"): 0.5}),
}


@pytest.fixture(scope="module")
def paid_by_trl(tiny, tmp_path_factory):
    """`paid_by_trl(reward, rows, texts, chat)`: what the trainer takes down for each text."""
    import trl
    from datasets import Dataset

    model, tokenizer = tiny
    args = trl.GRPOConfig(
        output_dir=str(tmp_path_factory.mktemp("trl")), report_to="none", use_cpu=True, bf16=False,
        per_device_train_batch_size=2, num_generations=2,
    )  # fmt: skip
    trainer = trl.GRPOTrainer(
        model=copy.deepcopy(model), args=args, processing_class=tokenizer,
        train_dataset=Dataset.from_dict({"prompt": ["1+2=?"]}), reward_funcs=lambda prompts, **_: [0.0] * len(prompts),
    )  # fmt: skip

    def paid(reward, rows, texts, chat):
        prompts = [[{"role": "user", "content": "?"}] if chat else "?"] * len(texts)
        completions = [[{"role": "assistant", "content": text}] if chat else text for text in texts]
        inputs = [{**row, "prompt": prompt, "unrelated": 0} for row, prompt in zip(rows, prompts, strict=True)]
        trainer.reward_funcs, trainer.reward_func_names = [reward], [reward.__name__]
        return trainer._calculate_rewards(inputs, prompts, completions, [[1]] * len(texts)).squeeze(1).tolist()

    return paid


def test_there_is_a_case_for_every_reward_that_ships():
    assert {name for name in rewards if rewards.get(name).__module__.startswith("lib.")} == set(CASES)


@pytest.mark.parametrize("chat", [False, True], ids=["text", "chat"])
@pytest.mark.parametrize("name", CASES)
def test_trl_is_paid_as_our_own_scripts_are(name, chat, paid_by_trl):
    section, row, earned = CASES[name]
    judge = Judge(Reward(fn=name, **section), list(row), "answer" if "answer" in row else None)
    rows, texts = [row] * len(earned), list(earned)
    judge.check(rows)
    found = paid_by_trl(as_trl_reward(judge), rows, texts, chat)
    assert found == pytest.approx([verdict.reward for verdict in judge(texts, rows)])
    assert found == [pytest.approx(pay) for pay in earned.values()]


@pytest.mark.parametrize("chat", [False, True], ids=["text", "chat"])
def test_trl_has_each_row_paid_by_the_reward_of_its_task(chat, paid_by_trl):
    columns = dict.fromkeys(column for _, row, _ in CASES.values() for column in row if column != "prompt")
    section = Reward(by_task={name: {"fn": name, **settings} for name, (settings, _, _) in CASES.items()})
    judge = JudgeByTask(section, ["task", *columns], "answer")
    batch = [(name, text, pay) for name in CASES for text, pay in CASES[name][2].items()]
    rows = [{"task": name} | {column: CASES[name][1].get(column) for column in columns} for name, _, _ in batch]
    found = paid_by_trl(as_trl_reward(judge), rows, [text for _, text, _ in batch], chat)
    assert found == [pytest.approx(pay) for _, _, pay in batch]

import json
import math
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from helpers.tiny import call

import sft_train
from lib.core.config import SFTConfig, load
from lib.core.console import Screen
from lib.core.errors import ConfigError, NumericError
from lib.rl.supervised import make_trainer
from lib.run.tracking import Tracker
from lib.text.labels import Example

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>"
    "{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
ARCHITECTURE = {
    "model_type": "qwen3", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 8, "tie_word_embeddings": True,
}  # fmt: skip
CONFIG = {
    "run_name": "tiny",
    "model": {
        "backend": "plain",
        "max_seq_length": 64,
        "chat_template": TEMPLATE,
        "from_scratch": {
            "architecture": ARCHITECTURE,
            "characters": "0123456789-+agin",
            "special_tokens": ["<|user|>", "<|assistant|>"],
        },
    },
    "dataset": {"name": "chats.jsonl", "test_split_size": 4},
    "optimizer": {"learning_rate": 0.01, "warmup_steps": 2, "schedule": "linear"},
    "train": {"steps": 6, "batch_size": 4, "max_length": 64},
}

SYSTEM_TOKEN = "model.from_scratch.special_tokens=['<|user|>', '<|assistant|>', '<|system|>']"


def chat(number):
    turns = [("user", f"{number}+1"), ("assistant", str(number + 1)), ("user", "again"), ("assistant", str(number + 1))]
    return {"messages": [{"role": role, "content": content} for role, content in turns]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    write_rows(chat(number) for number in range(20))
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(CONFIG))
    return tmp_path


def write_rows(rows):
    with open("chats.jsonl", "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def run(*arguments):
    return call(sft_train, "--config", "tiny.yaml", *arguments)


def trainer_of(*overrides):
    """The trainer that main() would use."""
    config = load(SFTConfig, Path("tiny.yaml"), list(overrides))
    train = sft_train.load_chats(config.dataset, config.prompts.system)[1]
    model, tokenizer = sft_train.load_model(config)
    examples = sft_train.examples_of("to train on", train, model, tokenizer, config, Screen(False))
    return make_trainer(config, model, tokenizer, examples, [])


def trained_text(trainer, index):
    labels = trainer.train_dataset[index]["labels"]
    return trainer.processing_class.decode([label for label in labels if label != -100])


def weights(run_name):
    from safetensors.torch import load_file

    return load_file(f"outputs/{run_name}/final/model.safetensors")


def logged(run_name, stream="metrics"):
    lines = Path(f"outputs/{run_name}/{stream}.jsonl").read_text().splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "time"} for line in lines]


def test_the_loss_is_on_assistant_turns_and_their_end_alone(folder):
    trainer = trainer_of()
    row = trainer.train_dataset[0]
    whole = "<|user|>0+1<|im_end|><|assistant|>1<|im_end|><|user|>again<|im_end|><|assistant|>1<|im_end|>"
    assert trainer.processing_class.decode(row["input_ids"]) == whole
    assert trained_text(trainer, 0) == "1<|im_end|>1<|im_end|>"
    batch = trainer.data_collator([trainer.train_dataset[index] for index in (0, 9)])  # 4+1 and 13+1: one is padded
    padding = batch["input_ids"] == trainer.processing_class.pad_token_id
    assert padding.sum() == 3
    assert (batch["labels"][padding] == -100).all()


def test_the_template_gets_its_arguments_from_the_config(folder):
    config = yaml.safe_load((folder / "tiny.yaml").read_text())
    config["model"]["chat_template"] = "{{ start }}" + TEMPLATE
    (folder / "tiny.yaml").write_text(yaml.safe_dump(config))
    trainer = trainer_of("model.chat_template_kwargs={start: 123}")
    assert trainer.processing_class.decode(trainer.train_dataset[0]["input_ids"]).startswith("123<|user|>0+1")


@pytest.mark.parametrize("as_text", [True, False])
def test_prompt_and_completion_rows_train_the_completion(folder, as_text):
    prompt, completion = "7+1", "8"
    if not as_text:
        earlier = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]
        prompt = [*earlier, {"role": "user", "content": prompt}]
        completion = [{"role": "assistant", "content": completion}]
    write_rows([{"prompt": prompt, "completion": completion, "note": "unused"}] * 2)
    trainer = trainer_of("dataset.test_split_size=0")
    assert trained_text(trainer, 0) == "8<|im_end|>"
    assert trainer.processing_class.decode(trainer.train_dataset[0]["input_ids"]).endswith(
        "7+1<|im_end|><|assistant|>8<|im_end|>"
    )


def test_a_system_prompt_stands_before_chats_without_one(folder):
    own = {"role": "user", "content": "n"}, {"role": "assistant", "content": "1"}
    write_rows([chat(7), {"messages": [{"role": "system", "content": "an"}, *own]}, {"prompt": "9", "completion": "3"}])
    trainer = trainer_of("dataset.test_split_size=0", "prompts.system=gain", SYSTEM_TOKEN)
    texts = [trainer.processing_class.decode(row["input_ids"]) for row in trainer.train_dataset]
    assert [text.partition("<|im_end|>")[0] for text in texts] == ["<|system|>gain", "<|system|>an", "<|system|>gain"]
    trained = [trained_text(trainer, index) for index in range(3)]
    assert trained == ["8<|im_end|>8<|im_end|>", "1<|im_end|>", "3<|im_end|>"]  # none of it is trained
    notes = sft_train.load_chats(load(SFTConfig, Path("tiny.yaml"), ["dataset.test_split_size=0"]).dataset, "gain")[3]
    assert notes == ["1 of 3 chats have a system message of their own, and keep it: no prompts.system there"]
    with pytest.raises(ConfigError, match=r"^prompts\.system: '<\|user\|>' is a control token"):
        trainer_of("dataset.test_split_size=0", "prompts.system=<|user|>", SYSTEM_TOKEN)


def test_a_run_leaves_a_model_that_loads_and_has_learned(folder, capsys):
    assert run("train.eval_every=3", "train.steps=60") == 0
    printed = capsys.readouterr()
    assert "«1<|im_end|>»<|user|>again<|im_end|>" in printed.out
    assert "step   60/60" in printed.out and "  0s left, until " in printed.out
    assert " parameters are trained" in printed.out
    assert "planned: 60 steps of 4 sequences, 240 examples of " in printed.out
    assert "; 20 evaluations of 4 examples" in printed.out
    assert "Warning" not in printed.err
    rows = logged("tiny")
    assert [row["step"] for row in rows] == list(range(1, 61))
    rates = [row["learning_rate"] for row in rows]
    assert rates[:3] == pytest.approx([0.005, 0.01, 0.01]) and rates[-1] == pytest.approx(0.01 / 58)  # those of RL
    assert rows[-1]["loss"] < rows[0]["loss"] / 2
    assert [row["step"] for row in logged("tiny", "evaluations")] == list(range(3, 61, 3))
    files = {path.name for path in (folder / "outputs/tiny/final").iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"} <= files
    assert not any(name.endswith(".bin") for name in files)
    card = (folder / "outputs/tiny/final/README.md").read_text()
    losses = [row["loss"] for row in logged("tiny", "evaluations")]
    assert (
        f"|  | held-out loss |\n| --- | --- |\n| step 3 | {losses[0]:.3f} |\n| step 60 | {losses[-1]:.3f} |\n" in card
    )
    assert f": {rows[0]['loss']:.4f} in the first step, {rows[-1]['loss']:.4f} in the last." in card
    assert "library_name: transformers" in card and "| all weights | " in card
    with pytest.raises(ConfigError, match="already holds a run"):
        run()


def test_an_interrupted_run_goes_on_bit_for_bit(folder, monkeypatch, capsys):
    assert run("run_name=straight", "dataset.test_split_size=0") == 0
    show = sft_train.show

    def show_then_terminate(*arguments):
        show(*arguments)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(sft_train, "show", show_then_terminate)
    assert run("run_name=stopped", "dataset.test_split_size=0") == 143
    assert "saved at step 1; continue with --resume, from outputs/stopped/stage1/step_1\n" in capsys.readouterr().out
    assert [row["step"] for row in logged("stopped")] == [1]
    assert not (folder / "outputs/stopped/final").exists()
    monkeypatch.setattr(sft_train, "show", show)
    with open("outputs/stopped/metrics.jsonl", "a") as file:
        file.write('{"step": 2, "a row": "after the checkpoint"}\n')
    assert run("run_name=stopped", "dataset.test_split_size=0", "--resume") == 0
    assert "left: 5 steps of 4 sequences, 20 examples of " in capsys.readouterr().out
    assert logged("stopped") == logged("straight")
    straight, resumed = weights("straight"), weights("stopped")
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)


@pytest.mark.parametrize("step", [2, 6])
def test_a_signal_while_a_step_is_logged_stops_after_it(folder, monkeypatch, capsys, step):
    real = sft_train.Watch.step

    def step_then_terminate(watch, row):
        if row["step"] == step:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(watch, row)

    monkeypatch.setattr(sft_train.Watch, "step", step_then_terminate)
    options = ("dataset.test_split_size=0", "train.checkpoint_every=0", "train.steps=6")
    assert run(*options) == 143
    assert [row["step"] for row in logged("tiny")] == list(range(1, step + 1))
    checkpoints = [path.name for path in Path("outputs/tiny").glob("stage1/step_*")]
    assert checkpoints == (["step_2"] if step == 2 else [])  # the result is there after the last step
    assert Path("outputs/tiny/final").exists() == (step == 6)
    capsys.readouterr()
    assert run(*options, "--resume") == 0
    assert ("this run is finished" in capsys.readouterr().out) == (step == 6)


def test_other_data_and_another_config_are_refused(folder):
    assert run("train.checkpoint_every=3", "train.steps=3") == 0
    final = weights("tiny")
    with pytest.raises(ConfigError, match=r"train\.checkpoint_every: 3 -> 0"):
        run("--resume", "train.steps=3")
    write_rows(chat(number) for number in range(1, 21))
    for lost in ("nothing", "the result"):  # by whichever is there
        with pytest.raises(ConfigError, match=r"the training data has changed .*restore the data, or accept"):
            run("train.checkpoint_every=3", "train.steps=3", "--resume")
        if lost == "nothing":
            assert all(torch.equal(final[name], tensor) for name, tensor in weights("tiny").items())
            shutil.rmtree("outputs/tiny/final")


def test_a_run_is_known_by_what_it_trains():
    one, other = Example([1, 2, 3], [(1, 3)], frozenset([3]), True), Example([1, 2], [(1, 2)], frozenset([2]), True)
    found = {
        sft_train.fingerprint_of(*parts)
        for parts in (
            ([one, other], []),
            ([other, one], []),
            ([one], [other]),
            ([replace(one, trained=[(2, 3)]), other], []),
            ([replace(one, ids=[1, 2, 4]), other], []),
        )
    }
    assert len(found) == 5
    assert sft_train.fingerprint_of([one, replace(other, is_exact=False)], []) in found


def test_what_the_template_leaves_out_is_said_once(folder, capsys):
    thought = [*chat(1)["messages"][:3], {"role": "assistant", "content": "2", "reasoning_content": "3"}]
    write_rows([chat(2), {"messages": thought}])
    assert run("dataset.test_split_size=0", "train.steps=1") == 0
    assert "to train on: the chat template does not write reasoning in 1 turns, so" in capsys.readouterr().out


def test_what_a_split_costs_is_said(folder, capsys):
    """The template deletes earlier answers: a row of 18 tokens becomes one of 8 and one of 17."""
    config = yaml.safe_load((folder / "tiny.yaml").read_text())
    config["model"]["chat_template"] = (
        "{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'user' or loop.last %}{{ m.content }}{% endif %}"
        "<|im_end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    (folder / "tiny.yaml").write_text(yaml.safe_dump(config))
    write_rows([chat(1)])
    assert run("dataset.test_split_size=0", "train.steps=1") == 0
    said = capsys.readouterr().out
    assert "1 chats became 2 examples" in said and "; that costs 8 tokens, 32% of all" in said


def test_a_model_from_nothing_needs_a_template(folder):
    config = yaml.safe_load((folder / "tiny.yaml").read_text())
    del config["model"]["chat_template"]
    (folder / "tiny.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(ConfigError, match=r"model\.chat_template: the tokenizer has none"):
        run()


def test_an_adapter_is_trained_on_a_loaded_base_and_resumed(folder):
    from safetensors.torch import load_file

    assert run("run_name=base", "train.steps=1") == 0
    base = weights("base")
    arguments = [
        "run_name=adapter",
        "model.from_scratch=null",
        "model.name=outputs/base/final",
        "model.adapters.lora.r=2",
    ]
    arguments += ["train.checkpoint_every=3"]
    assert run(*arguments) == 0
    final = folder / "outputs/adapter/final"
    assert (final / "adapter_model.safetensors").exists() and not (final / "model.safetensors").exists()
    assert json.loads((final / "adapter_config.json").read_text())["r"] == 2
    assert all(torch.equal(base[name], tensor) for name, tensor in weights("base").items())
    adapter = load_file(final / "adapter_model.safetensors")
    assert any(tensor.any() for name, tensor in adapter.items() if "lora_B" in name)  # it starts at zero
    shutil.rmtree(final)
    shutil.rmtree(folder / "outputs/adapter/stage1/step_6")
    assert run(*arguments, "--resume") == 0
    resumed = load_file(final / "adapter_model.safetensors")
    assert all(torch.equal(adapter[name], resumed[name]) for name in adapter)


def test_turns_that_are_too_long_are_left_out_or_cut_and_counted(folder, capsys):
    """Sums of one digit make 18 tokens, those of two digits 20 and 21; the second answer ends the row."""
    assert run("train.max_length=19", "train.steps=1") == 0
    printed = capsys.readouterr().out
    assert "10 of 16 examples have more than train.max_length = 19 tokens: the turns beyond are not trained" in printed
    assert "; 10 turns and 0 examples are lost" in printed
    assert trained_text(trainer_of("train.max_length=19"), 9) == "14<|im_end|>"
    cut = trainer_of("train.max_length=19", "train.truncation=cut")
    assert trained_text(cut, 9) == "14<|im_end|>1"
    assert len(cut.train_dataset[9]["input_ids"]) == 19
    write_rows(chat(number) for number in range(10, 30))  # all are too long, but their first turn ends within
    assert len(trainer_of("train.max_length=19", "train.truncation=cut").train_dataset) == 16
    for how in ("cut", "drop"):
        with pytest.raises(ConfigError, match="all 16 examples to train on have more than 5 tokens"):
            run(f"run_name={how}", "train.max_length=5", f"train.truncation={how}")


def rollout(number, **columns):
    """A row as the collector writes it."""
    said = {"role": "assistant", "content": str(number + 1)}
    judged = {"reward": 1.0, "match": True, "components": {"match": 1.0}, "finish": "stop", "tool_log": []}
    asked = {"role": "user", "content": f"{number}+1"}
    return {"schema": 1, "id": f"{number}-0", "messages": [asked, said], "tools": None, **judged, **columns}


def test_rollouts_are_chosen_by_reward_and_match(folder, capsys):
    rows = [rollout(1), rollout(2, reward=0.5), rollout(3, match=False), rollout(4, reward=None), rollout(5)]
    write_rows(rows)

    def chosen(*overrides):
        config = load(SFTConfig, Path("tiny.yaml"), ["dataset.test_split_size=0", *overrides])
        _, train, _, notes = sft_train.load_chats(config.dataset)
        return "".join(chat.messages[0]["content"][0] for chat in train), notes

    assert chosen() == ("12345", [])
    left_out = "rows to train on were removed: they are not what dataset.min_reward and dataset.only_matches choose"
    assert chosen("dataset.min_reward=0.5") == ("1235", [f"1 {left_out}"])
    assert chosen("dataset.min_reward=1", "dataset.only_matches=true") == ("15", [f"3 {left_out}"])
    assert chosen("dataset.min_reward=1", "dataset.max_train_rows=2")[0] == "13"
    with pytest.raises(ConfigError, match=r"no row of 'chats.jsonl' is left to train on .5 rows"):
        chosen("dataset.min_reward=2")
    write_rows([rollout(1), chat(2)])
    with pytest.raises(ConfigError, match=r"dataset\.only_matches: line 2 of 'chats.jsonl' has no 'match'"):
        chosen("dataset.only_matches=true")
    with pytest.raises(ConfigError, match=r"dataset\.min_reward: line 2 of 'chats.jsonl' has no 'reward'"):
        chosen("dataset.min_reward=0.0")
    for column, found in (("match", "False"), ("match", 0.5), ("reward", math.nan), ("reward", "1"), ("reward", [1])):
        write_rows([rollout(1, **{column: found})])  # text is what CSV would have
        with pytest.raises(ConfigError) as caught:
            chosen("dataset.only_matches=true", "dataset.min_reward=0.5")
        assert f"line 1 of 'chats.jsonl' has {found!r} as '{column}'" in str(caught.value)


def test_equal_chats_are_trained_once_and_never_when_held_out(folder):
    """Rows that say the same differ in other columns, such as the number of a sample."""
    (folder / "two").mkdir()
    write_rows([rollout(2), rollout(1, id="1-1"), rollout(2, id="2-1"), rollout(3), chat(2)])
    (folder / "chats.jsonl").rename("two/train.jsonl")
    write_rows([rollout(1)])
    (folder / "chats.jsonl").rename("two/test.jsonl")
    config = load(SFTConfig, Path("tiny.yaml"), ["dataset.name=two", "dataset.test_split_size=1"]).dataset
    _, train, held_out, notes = sft_train.load_chats(config)
    assert [chat.messages[0]["content"] for chat in train] == ["2+1", "3+1", "2+1"]
    assert [chat.messages[0]["content"] for chat in held_out] == ["1+1"]
    removed = "1 rows to train on were removed: they"
    assert notes == [f"{removed} ask what a held-out row asks", f"{removed} equal another one"]
    assert len(sft_train.load_chats(config.model_copy(update={"distinct": False}))[1]) == 4
    for most in (1, 2, 3):  # counted after the others are gone
        _, kept, _, notes = sft_train.load_chats(config.model_copy(update={"max_train_rows": most}))
        assert [chat.messages[0]["content"] for chat in kept] == ["2+1", "3+1", "2+1"][:most]
        said = f"train rows are the first {most} that remain (dataset.max_train_rows)"
        assert (said in notes) is (most < 3)


def test_other_answers_to_a_held_out_question_are_not_trained(folder):
    """Whether one file is parted or a test split is given; further turns and other kinds of rows change nothing."""
    said = [{"role": "assistant", "content": content} for content in ("5", "five", "")]
    asked = {"role": "user", "content": "4+1"}
    rows = [{"messages": [asked, answer], "id": number} for number, answer in enumerate(said)]
    rows += [{"prompt": "4+1\n", "completion": "V"}, {"prompt": [asked], "completion": [said[1]]}, chat(4)]
    rows += [{**chat(4), "messages": json.dumps(chat(4)["messages"])}]
    write_rows([row for row in rows for _ in range(2)] + [chat(5)])
    config = load(SFTConfig, Path("tiny.yaml"), ["dataset.test_split_size=1", "dataset.distinct=false"]).dataset
    for size in range(1, 15):
        _, train, held_out, _ = sft_train.load_chats(config.model_copy(update={"test_split_size": size}))
        parts = [{chat.messages[0]["content"].strip() for chat in part} for part in (train, held_out)]
        assert sorted(map(len, parts)) == [1, 1] and parts[0] != parts[1]


def test_rows_without_a_question_are_parted_by_all_that_they_say(folder):
    write_rows({"messages": [{"role": "assistant", "content": str(number)}]} for number in range(20))
    config = load(SFTConfig, Path("tiny.yaml"), []).dataset
    assert len(sft_train.load_chats(config)[1]) == 16


def test_an_answer_that_was_cut_off_is_no_turn(folder):
    """An end token after it would teach to stop there; behind a tool's result the turn is whole."""
    cut = {"ended": "truncated", "reasoning_ended": True}
    call = {"function": {"name": "add", "arguments": {}}}
    called = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "3"}]
    rows = [rollout(1), rollout(2, **cut), {**chat(3), **cut}, {**chat(4), "ended": "answer", "reasoning_ended": False}]
    rows += [{"messages": [*chat(5)["messages"][:3], *called], "ended": "turns"}, {**chat(6), "ended": "12:30"}]
    write_rows(rows)
    config = load(SFTConfig, Path("tiny.yaml"), ["dataset.test_split_size=0"]).dataset
    _, train, _, notes = sft_train.load_chats(config)
    assert [chat.turns for chat in train] == [[1], [1], [1], [1, 3], [1, 3]]
    assert notes == [
        "1 rows to train on were removed: they were cut off in their only turn",
        "in 2 rows to train on the last turn is not trained, since it was cut off",
    ]


def test_rows_whose_answers_have_no_word_are_left_out(folder):
    """Of "" only the end token would be learned; a tool call has no words, either, and is one."""
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "add", "arguments": {}}}]}
    ask = {"role": "user", "content": "1+1"}
    nothing = [{"content": content} for content in ("", None, [], "  ", "\n")]
    nothing += [{"content": "", "weight": 1}, {"content": "", "reasoning_content": " "}]
    empty = [{"messages": [ask, {"role": "assistant", **answer}]} for answer in nothing]
    thought = {"messages": [ask, {"role": "assistant", "content": "", "reasoning_content": "1 and 1"}]}
    later = {"messages": [*chat(2)["messages"][:3], {"role": "assistant", "content": ""}]}
    write_rows([chat(1), *empty, later, {"messages": [ask, call]}, thought])
    _, train, _, notes = sft_train.load_chats(load(SFTConfig, Path("tiny.yaml"), ["dataset.test_split_size=0"]).dataset)
    assert [chat.turns for chat in train] == [[1, 3], [1, 3], [1], [1]]
    assert notes == ["7 rows to train on were removed: they have nothing in their turns"]


@pytest.mark.parametrize("has_own_test", [False, True])
def test_rows_are_numbered_as_in_the_source(folder, has_own_test):
    (folder / "two").mkdir()
    write_rows([chat(1), chat(2), chat(3), {"text": "?"}])
    (folder / "chats.jsonl").rename("two/train.jsonl")
    write_rows([chat(4), chat(5)])
    if has_own_test:
        (folder / "chats.jsonl").rename("two/test.jsonl")
    config = load(SFTConfig, Path("tiny.yaml"), ["dataset.name=two", "dataset.test_split_size=2"]).dataset
    with pytest.raises(ConfigError, match=r"line 4 of 'two/train.jsonl'"):
        sft_train.load_chats(config)
    (folder / "two/train.jsonl").write_text("\n".join(map(json.dumps, [chat(4), {"text": "?"}, chat(4), {"a": 1}])))
    with pytest.raises(ConfigError, match=r"line 2 of 'two/train.jsonl' has 'text'"):
        sft_train.load_chats(config)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_packed_rows_have_the_loss_and_the_gradient_that_they_have_alone(folder, attention):
    assert run("run_name=base", "train.steps=30") == 0
    base = ["model.from_scratch=null", "model.name=outputs/base/final", f"model.attn_implementation={attention}"]
    found = {}
    for packing in ("true", "false"):
        trainer = trainer_of(*base, f"train.packing={packing}", "train.max_length=64")
        batch = trainer.data_collator(list(trainer.train_dataset))
        assert (batch["labels"] != -100).sum() == 6 * 4 + 10 * 6  # two answers of a digit or two, and their ends
        loss = trainer.compute_loss(trainer.model, batch)
        loss.backward()
        found[packing] = loss.detach(), [p.grad for p in trainer.model.parameters()], batch["input_ids"].numel()
    torch.testing.assert_close(found["true"][0], found["false"][0], rtol=0, atol=1e-5)
    for mine, expected in zip(found["true"][1], found["false"][1], strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-3, atol=1e-5)
    assert found["true"][2] < found["false"][2]  # no padding
    assert trainer_of(*base, "train.packing=true").train_dataset[0]["seq_lengths"] == [21, 21, 21]


def test_packing_is_refused_where_rows_would_see_each_other(folder, monkeypatch):
    trainer = trainer_of()
    forward = type(trainer.model.model).forward

    def blind(self, *arguments, position_ids=None, **more):
        return forward(self, *arguments, **more)

    monkeypatch.setattr(type(trainer.model.model), "forward", blind)
    with pytest.raises(ConfigError, match="the rows of a packed sequence see each other"):
        trainer_of("train.packing=true")
    monkeypatch.undo()
    with pytest.raises(ConfigError, match="packing puts rows together by length"):
        load(SFTConfig, folder / "tiny.yaml", ["train.packing=true", "train.shuffle=false"])


def test_a_packed_run_learns_and_evaluates_row_by_row(folder):
    assert run("train.packing=true", "train.eval_every=30", "train.steps=60") == 0
    rows = logged("tiny")
    assert rows[-1]["loss"] < rows[0]["loss"] / 2
    assert [row["step"] for row in logged("tiny", "evaluations")] == [30, 60]


def test_a_token_that_ends_turns_ends_the_models_answers_too(folder, capsys):
    """As in Llama 3, whose base models end by another token than its chats."""
    from transformers import GenerationConfig

    template = TEMPLATE.replace("<|im_end|>", "<|eot|>")
    scratch = {**CONFIG["model"]["from_scratch"], "special_tokens": ["<|user|>", "<|assistant|>", "<|eot|>"]}
    changed = {**CONFIG, "model": {**CONFIG["model"], "chat_template": template, "from_scratch": scratch}}
    (folder / "tiny.yaml").write_text(yaml.safe_dump(changed))
    assert run("run_name=base") == 0
    assert "turns end by <|eot|>, which did not end this model's answers" in capsys.readouterr().out
    assert run("run_name=cut", "train.truncation=cut", "train.max_length=19") == 0
    assert run("run_name=packed", "train.packing=true") == 0
    capsys.readouterr()
    base = ["model.from_scratch=null", "model.name=outputs/base/final", "model.adapters.lora.r=2"]
    assert run("run_name=again", *base) == 0
    assert "which did not end" not in capsys.readouterr().out  # the saved model knows
    for name in ("base", "cut", "packed", "again"):
        assert sorted(GenerationConfig.from_pretrained(f"outputs/{name}/final").eos_token_id) == [1, 5], name


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"text": "1+1"}, "line 1 of 'chats.jsonl' has 'text', expected 'messages', or 'prompt' and 'completion'"),
        ({"messages": []}, "with something in them"),
        ({"messages": [{"role": "user", "content": "1"}]}, "has no assistant message"),
        ({"prompt": "1", "completion": "€"}, "the data has '€'"),
    ],
)
def test_rows_that_can_not_be_trained_on_are_named(folder, row, expected):
    write_rows([row])
    with pytest.raises(ConfigError) as caught:
        run("dataset.test_split_size=0")
    assert expected in str(caught.value)


def test_rows_without_a_chat_are_no_repetition(folder):
    write_rows([{"text": "1+1"}] * 20)
    with pytest.raises(ConfigError, match=r"of 'chats.jsonl' has 'text', expected 'messages', or 'prompt' and 'compl"):
        run()


def test_a_template_needs_no_marks_but_an_end(folder):
    unmarked = TEMPLATE.replace("{% generation %}", "").replace("{% endgeneration %}", "")
    outside = TEMPLATE.replace("<|im_end|>{% endgeneration %}", "{% endgeneration %}<|im_end|>")
    labels = []
    for template in (TEMPLATE, unmarked, outside):
        changed = {**CONFIG, "model": {**CONFIG["model"], "chat_template": template}}
        (folder / "tiny.yaml").write_text(yaml.safe_dump(changed))
        labels.append(trainer_of().train_dataset["labels"][:])
    assert labels[0] == labels[1] == labels[2]
    endless = {**CONFIG, "model": {**CONFIG["model"], "chat_template": unmarked.replace("<|im_end|>", "")}}
    (folder / "tiny.yaml").write_text(yaml.safe_dump(endless))
    with pytest.raises(ConfigError, match="would never stop"):
        run()


def test_numbers_that_are_not_finite_stop_the_run(folder):
    for _ in range(2):  # it has left no run behind
        with pytest.raises(NumericError, match="expected finite numbers"):
            run("optimizer.learning_rate=1e30", "optimizer.warmup_steps=0", "train.checkpoint_every=0")
    assert run("train.steps=2") == 0
    assert [row["step"] for row in logged("tiny")] == [1, 2]


def test_a_trainer_that_counts_no_right_tokens_is_logged_without_them(folder, monkeypatch, capsys):
    """Unsloth replaces TRL's trainer on a GPU by one whose logs have no mean_token_accuracy."""
    from transformers import Trainer

    plain = Trainer.log
    monkeypatch.setattr(Trainer, "log", lambda self, values, *more: plain(
        self, {key: value for key, value in values.items() if key != "mean_token_accuracy"}, *more))  # fmt: skip
    assert run("train.steps=2") == 0
    assert [row["step"] for row in logged("tiny")] == [1, 2] and "mean_token_accuracy" not in logged("tiny")[0]
    assert "tokens right" not in capsys.readouterr().out


def test_a_tracker_that_is_not_installed_is_named(folder, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="wandb is not installed"):
        Tracker(load(SFTConfig, Path("tiny.yaml"), ["tracking.backend=wandb"]), False, print)


def test_divergence_is_noticed_and_stops(folder, capsys):
    with pytest.raises(NumericError, match=r"step [23]: .*lower optimizer\.learning_rate"):
        run("optimizer.learning_rate=1e4", "optimizer.warmup_steps=0")
    rows = logged("tiny", "alarms")
    assert rows[0]["step"] <= 3 and (rows[0]["severity"], rows[0]["action"]) == ("collapse", "stop")
    assert "COLLAPSE at" in capsys.readouterr().out and not (folder / "outputs/tiny/final").exists()
    options = "optimizer.learning_rate=1e4", "optimizer.warmup_steps=0", "train.on_collapse=warn", "run_name=warned"
    try:
        assert run(*options) == 0
        assert "\ncollapse " in capsys.readouterr().out
    except NumericError as error:  # who trains on may find numbers that no CPU can continue with, and some do
        assert "gradient norm nan" in str(error)
    assert logged("warned", "alarms")[0]["action"] == "warn"

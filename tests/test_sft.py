import json
import os
import signal
import sys
from pathlib import Path

import pytest
import torch
import yaml

import sft_train
from lib.config import SFTConfig, load
from lib.data import load_splits
from lib.errors import ConfigError, NumericError

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


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["sft_train.py", "--config", "tiny.yaml", *arguments])
    return sft_train.main()


def trainer_of(*overrides):
    """The trainer that main() would use."""
    config = load(SFTConfig, Path("tiny.yaml"), list(overrides))
    rows = sft_train.as_chats(load_splits(config.dataset, ()).train, "chats.jsonl", config.model.chat_template_kwargs)
    model, tokenizer = sft_train.load_model(config, rows)
    return sft_train.make_trainer(config, model, tokenizer, rows, [])


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
    whole = "<|user|>4+1<|im_end|><|assistant|>5<|im_end|><|user|>again<|im_end|><|assistant|>5<|im_end|>"
    assert trainer.processing_class.decode(row["input_ids"]) == whole
    assert trained_text(trainer, 0) == "5<|im_end|>5<|im_end|>"
    batch = trainer.data_collator([trainer.train_dataset[index] for index in (0, 9)])  # 4+1 and 13+1: one is padded
    padding = batch["input_ids"] == trainer.processing_class.pad_token_id
    assert padding.sum() == 3
    assert (batch["labels"][padding] == -100).all()


def test_the_template_gets_its_arguments_from_the_config(folder):
    config = yaml.safe_load((folder / "tiny.yaml").read_text())
    config["model"]["chat_template"] = "{{ start }}" + TEMPLATE
    (folder / "tiny.yaml").write_text(yaml.safe_dump(config))
    trainer = trainer_of("model.chat_template_kwargs={start: 123}")
    assert trainer.processing_class.decode(trainer.train_dataset[0]["input_ids"]).startswith("123<|user|>4+1")


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


def test_a_run_leaves_a_model_that_loads_and_has_learned(folder, monkeypatch, capsys):
    assert run(monkeypatch, "train.eval_every=3", "train.steps=60") == 0
    printed = capsys.readouterr()
    assert "«5<|im_end|>»<|user|>again<|im_end|>" in printed.out
    assert "step   60/60" in printed.out
    assert "Warning" not in printed.err
    rows = logged("tiny")
    assert [row["step"] for row in rows] == list(range(1, 61))
    assert rows[-1]["loss"] < rows[0]["loss"] / 2
    assert [row["step"] for row in logged("tiny", "evaluations")] == list(range(3, 61, 3))
    files = {path.name for path in (folder / "outputs/tiny/final").iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"} <= files
    assert not any(name.endswith(".bin") for name in files)
    with pytest.raises(ConfigError, match="already holds a run"):
        run(monkeypatch)


def test_an_interrupted_run_goes_on_bit_for_bit(folder, monkeypatch):
    assert run(monkeypatch, "run_name=straight", "dataset.test_split_size=0") == 0
    verify = sft_train.verify

    def verify_then_terminate(*arguments):
        verify(*arguments)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(sft_train, "verify", verify_then_terminate)
    assert run(monkeypatch, "run_name=stopped", "dataset.test_split_size=0") == 143
    assert [row["step"] for row in logged("stopped")] == [1]
    assert not (folder / "outputs/stopped/final").exists()
    monkeypatch.setattr(sft_train, "verify", verify)
    with open("outputs/stopped/metrics.jsonl", "a") as file:
        file.write('{"step": 2, "a row": "after the checkpoint"}\n')
    assert run(monkeypatch, "run_name=stopped", "dataset.test_split_size=0", "--resume") == 0
    assert logged("stopped") == logged("straight")
    straight, resumed = weights("straight"), weights("stopped")
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)


def test_a_checkpoint_without_its_mark_is_passed_over(folder, monkeypatch):
    assert run(monkeypatch, "train.checkpoint_every=3") == 0
    (folder / "outputs/tiny/checkpoints/checkpoint-6/run.json").unlink()
    final = weights("tiny")
    assert run(monkeypatch, "train.checkpoint_every=3", "--resume") == 0
    assert [row["step"] for row in logged("tiny")] == [1, 2, 3, 4, 5, 6]
    assert all(torch.equal(final[name], tensor) for name, tensor in weights("tiny").items())
    write_rows(chat(number) for number in range(1, 21))
    with pytest.raises(ConfigError, match="the rows differ from those of the run"):
        run(monkeypatch, "train.checkpoint_every=3", "--resume")
    with pytest.raises(ConfigError, match=r"train\.checkpoint_every: 3 -> 0"):
        run(monkeypatch, "--resume")


def test_an_adapter_is_trained_on_a_loaded_base_and_resumed(folder, monkeypatch):
    from safetensors.torch import load_file

    assert run(monkeypatch, "run_name=base", "train.steps=1") == 0
    base = weights("base")
    arguments = ["run_name=adapter", "model.from_scratch=null", "model.name=outputs/base/final", "lora.r=2"]
    arguments += ["train.checkpoint_every=3"]
    assert run(monkeypatch, *arguments) == 0
    final = folder / "outputs/adapter/final"
    assert (final / "adapter_model.safetensors").exists() and not (final / "model.safetensors").exists()
    assert json.loads((final / "adapter_config.json").read_text())["r"] == 2
    assert all(torch.equal(base[name], tensor) for name, tensor in weights("base").items())
    adapter = load_file(final / "adapter_model.safetensors")
    assert any(tensor.any() for name, tensor in adapter.items() if "lora_B" in name)  # it starts at zero
    (folder / "outputs/adapter/checkpoints/checkpoint-6/run.json").unlink()
    assert run(monkeypatch, *arguments, "--resume") == 0
    resumed = load_file(final / "adapter_model.safetensors")
    assert all(torch.equal(adapter[name], resumed[name]) for name in adapter)


def test_rows_that_are_too_long_are_counted(folder, monkeypatch, capsys):
    assert run(monkeypatch, "train.max_length=19", "train.steps=1") == 0
    assert "rows reach train.max_length = 19 tokens and are cut" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="all 16 rows reach 5 tokens"):
        run(monkeypatch, "run_name=short", "train.max_length=5", "train.steps=1")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"text": "1+1"}, "row 1 of 'chats.jsonl' has 'text', expected 'messages', or 'prompt' and 'completion'"),
        ({"messages": []}, "with something in them"),
        ({"messages": [{"role": "user", "content": "1"}]}, "has no assistant message"),
        ({"prompt": "1", "completion": "€"}, "the data has '€'"),
    ],
)
def test_rows_that_can_not_be_trained_on_are_named(folder, monkeypatch, row, expected):
    write_rows([row])
    with pytest.raises(ConfigError) as caught:
        run(monkeypatch, "dataset.test_split_size=0")
    assert expected in str(caught.value)


def test_a_template_that_hides_the_answer_or_its_end_is_refused(folder, monkeypatch):
    unmarked = TEMPLATE.replace("{% generation %}", "").replace("{% endgeneration %}", "")
    endless = TEMPLATE.replace("<|im_end|>{% endgeneration %}", "{% endgeneration %}<|im_end|>")
    for name, template, expected in [("a", unmarked, "does not mark what"), ("b", endless, "would never stop")]:
        changed = {**CONFIG, "run_name": name, "model": {**CONFIG["model"], "chat_template": template}}
        (folder / "tiny.yaml").write_text(yaml.safe_dump(changed))
        with pytest.raises(ConfigError, match=expected):
            run(monkeypatch)


def test_numbers_that_are_not_finite_stop_the_run(folder, monkeypatch):
    with pytest.raises(NumericError, match="expected finite numbers"):
        run(monkeypatch, "optimizer.learning_rate=1e30", "optimizer.warmup_steps=0")


def test_a_tracker_that_is_not_installed_is_named(folder, monkeypatch):
    monkeypatch.setattr(sft_train.importlib.util, "find_spec", lambda name: None)
    config = load(SFTConfig, Path("tiny.yaml"), ["tracking.backend=wandb"])
    with pytest.raises(ConfigError, match="wandb is not installed"):
        sft_train.trackers(config)

import pytest
from transformers import AutoConfig, AutoModelForCausalLM

from lib.core.config import ScoreConfig, load
from lib.rl.preview import advice

TEXT = "{run_name: r, model: {name: m}, dataset: {name: d}, prompts: {user: '{q}', self_correction: again}}"
KEYS = {"targets": "model.adapters.lora.targets", "rate": "optimizer.learning_rate", "rank": "model.adapters.lora.r"}


@pytest.mark.parametrize(("overrides", "expected"), [
    ([], []),
    (["model.adapters.lora.targets=[q_proj, v_proj]"], ["targets"]),
    (["model.adapters.lora.targets=[q_proj, k_proj, v_proj, o_proj]"], ["targets"]),
    (["model.adapters.lora.targets=[q_proj, down_proj]"], []),
    (["model.adapters.lora.targets=all-linear"], []),
    (["optimizer.learning_rate=9e-6"], ["rate"]), (["optimizer.learning_rate=1e-5"], []),
    (["model.adapters.lora.r=65"], ["rank"]), (["model.adapters.lora.r=64"], []),
    (["model.adapters.lora.r=128", "optimizer.learning_rate=1e-6", "model.adapters.lora.targets=[o_proj]"],
     ["targets", "rate", "rank"]),
    (["model.adapters.lora=null", "model.adapters.vera.r=256", "optimizer.learning_rate=1e-6"], []),
    (["model.adapters.lora=null", "model.adapters.ia3={}", "optimizer.learning_rate=1e-6"], []),
])  # fmt: skip
def test_advice_is_given_where_a_config_does_otherwise(tiny, tmp_path, overrides, expected):
    (tmp_path / "r.yaml").write_text(TEXT)
    lines = list(advice(load(ScoreConfig, tmp_path / "r.yaml", overrides), tiny[0]))
    assert [line.partition(": ")[0] for line in lines] == [KEYS[name] for name in expected]
    assert all("Without Regret" in line for line in lines) and all("\n" not in line for line in lines)
    if "rate" in expected:
        rate = load(ScoreConfig, tmp_path / "r.yaml", overrides).optimizer.learning_rate
        assert f"{rate:g} is a rate for full fine-tuning" in " ".join(lines) and f"try {10 * rate:g} (" in " ".join(
            lines
        )


@pytest.mark.parametrize(("kind", "targets", "is_told"), [
    ("phi3", "[qkv_proj]", True), ("phi3", "[qkv_proj, down_proj]", False), ("gpt_neox", "[query_key_value]", True),
    ("gpt_neox", "[dense_4h_to_h]", False),
])  # fmt: skip
def test_attention_is_known_by_the_names_of_its_layers(kind, targets, is_told, tmp_path):
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
             "vocab_size": 64, "pad_token_id": 0}  # fmt: skip
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **sizes))
    (tmp_path / "r.yaml").write_text(TEXT)
    config = load(ScoreConfig, tmp_path / "r.yaml", [f"model.adapters.lora.targets={targets}"])
    assert bool(list(advice(config, model))) == is_told

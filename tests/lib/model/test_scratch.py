import pytest
import torch

from engine import Completion
from lib.core.config import ChatPrompts, FromScratch
from lib.core.errors import ConfigError
from lib.model.scratch import build, build_tokenizer, refuse_unknown
from lib.rl.prompts import ChatRenderer

ARCHITECTURE = {
    "model_type": "qwen3", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 8, "tie_word_embeddings": True,
}  # fmt: skip
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|im_end|>{% endfor %}"


def settings(**changes):
    tokens = ["<|user|>", "<|assistant|>", "<think>", "</think>"]
    values = {"architecture": ARCHITECTURE, "characters": "0123456789-+ \nab", "special_tokens": tokens}
    return FromScratch(**{**values, **changes})


def test_a_character_is_a_token_and_text_comes_back():
    tokenizer = build_tokenizer(settings(), TEMPLATE)
    for text in ("12-3", "a  b\n\n 1", " <think>12</think> 3\n", "<think><think>"):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert len(tokenizer("12-3 a")["input_ids"]) == 6
    assert len(tokenizer("<think>12</think>")["input_ids"]) == 4


def test_tags_survive_where_turn_markers_are_skipped():
    tokenizer = build_tokenizer(settings(), TEMPLATE)
    ids = tokenizer("<|assistant|><think>1</think>2<|im_end|><|pad|>")["input_ids"]
    assert len(ids) == 7
    assert tokenizer.decode(ids, skip_special_tokens=True) == "<think>1</think>2"


def test_who_judges_a_text_sees_every_special_token_but_its_end():
    tokenizer = build_tokenizer(settings(), TEMPLATE)
    renderer = ChatRenderer(tokenizer, {}, ChatPrompts())
    ids = tokenizer("<think>1</think>2<|user|>3<|im_end|>")["input_ids"]
    assert renderer.text(Completion(ids, [0.0] * len(ids), finished=True)) == "<think>1</think>2<|user|>3"


def test_the_saved_pair_loads_as_any_other(tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = build(settings(), TEMPLATE, seed=0)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    text = "<|user|>1 - 2\n<think>a</think><|im_end|>"
    assert again(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert again.decode(again(text)["input_ids"], skip_special_tokens=True) == "1 - 2\n<think>a</think>"
    assert again.chat_template == TEMPLATE
    assert (again.eos_token, again.pad_token) == ("<|im_end|>", "<|pad|>")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    ids = torch.tensor([tokenizer(text)["input_ids"]])
    assert torch.equal(loaded(ids).logits, model(ids).logits)


def test_weights_depend_on_the_seed_alone():
    torch.manual_seed(1)
    first = build(settings(), TEMPLATE, seed=5)[0].state_dict()
    global_state = torch.get_rng_state()
    second = build(settings(), TEMPLATE, seed=5)[0].state_dict()
    other = build(settings(), TEMPLATE, seed=6)[0].state_dict()
    assert torch.equal(torch.get_rng_state(), global_state)
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert not torch.equal(first["model.embed_tokens.weight"], other["model.embed_tokens.weight"])


def test_the_vocabulary_fits_and_embeddings_are_tied():
    model, tokenizer = build(settings(), TEMPLATE, seed=0)
    assert model.config.vocab_size == len(tokenizer) == 3 + 4 + 16
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight
    assert model.dtype == torch.float32
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id


def test_unknown_characters_are_refused_by_name():
    tokenizer = build_tokenizer(settings(), TEMPLATE)
    refuse_unknown(tokenizer, ["12-3", "<think>1</think>"])
    with pytest.raises(ConfigError, match=r"the data has '<', '€', in '<1 €<think>'"):
        refuse_unknown(tokenizer, ["1", "<1 €<think>"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"architecture": {**ARCHITECTURE, "model_type": "qwen33"}}, "did you mean 'qwen3'?"),
        ({"architecture": {"hidden_size": 16}}, "got None, expected a model type"),
        ({"architecture": {**ARCHITECTURE, "hidden_sise": 16}}, "did you mean 'hidden_size'?"),
        ({"characters": "aba"}, "'a' given twice"),
        ({"special_tokens": ["a"]}, "'a' given twice"),
    ],
)
def test_mistakes_are_one_sentence(changes, expected):
    with pytest.raises(ConfigError) as caught:
        build(settings(**changes), TEMPLATE, seed=0)
    assert expected in str(caught.value)

"""The probe at the start of a run over every type of causal language model: one log-prob, or refused with a reason."""

import pytest
import torch
from conftest import part
from helpers.architectures import TYPES, built, probed

from lib.core.errors import ConfigError
from lib.model.logits import HeadTransform, measure

BETWEEN = "does more to its hidden states or logits than multiplying and capping them"
NO_CACHE = "has no cache of what it has read"
OFF = "gives the tokens that it samples other log-probs than its own forward does"
ENCODERS = [
    "bert", "big_bird", "camembert", "data2vec-text", "electra", "ernie", "megatron-bert", "modernbert-decoder",
    "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer", "xlm-roberta", "xlm-roberta-xl",
]  # fmt: skip
REFUSED = {
    **dict.fromkeys(ENCODERS, BETWEEN),
    **dict.fromkeys(["openai-gpt", "recurrent_gemma", "reformer", "xlm", "xlnet"], NO_CACHE),
    **dict.fromkeys(["cpmant", "deepseek_v4", "longcat_flash", "zamba2"], "RuntimeError"),
    "qwen4_exp_text": "ValueError", "xmod": "Input language unknown",
    **dict.fromkeys(["doge", "prophetnet", "moshi", "rwkv"], OFF),
}  # fmt: skip
PARTS = [  # models of several parts, whose texts mostly have a type of their own
    "blt", "emu3", "gemma3", "gemma3n", "gemma4", "gemma4_assistant", "gemma4_unified", "gemma4_unified_assistant",
    "git", "got_ocr2", "llama4", "mllama", "musicgen", "musicgen_melody", "phi4_multimodal", "qwen3_5", "qwen3_5_moe",
    "qwen4_exp",
]  # fmt: skip
UNBUILT = {*PARTS, "cohere_compass_text", "zamba"}
FIXED = [
    "falcon_h1", "hyperclovax", "jamba", "llama4_text", "mamba", "minicpm3", "minimax", "phimoe", "recurrent_gemma",
    "rwkv", "xlm", "xlstm",
]  # fmt: skip


@pytest.mark.parametrize("kind", sorted({*FIXED, *part([kind for kind in TYPES if kind not in UNBUILT], 8)}))
def test_a_type_has_one_log_prob_or_is_refused_with_a_reason(kind):
    model = built(kind)
    if kind in REFUSED:
        with pytest.raises(ConfigError, match=REFUSED[kind]):
            probed(kind, model)
    else:
        assert max(probed(kind, model)) < 1e-3


def test_most_types_are_none_of_the_exceptions():
    assert {*REFUSED, *UNBUILT, *FIXED} <= {*TYPES}
    assert len(TYPES) - len(REFUSED) - len(UNBUILT) > 120


AROUND = {
    "qwen3": HeadTransform(), "cohere": HeadTransform(after=0.5), "hyperclovax": HeadTransform(after=3.0),
    "granite": HeadTransform(after=1 / 3), "falcon_h1": HeadTransform(after=0.5),
    "minicpm3": HeadTransform(before=0.25), "gemma2": HeadTransform(softcap=20.0),
    "xlstm": HeadTransform(softcap=20.0),
}  # fmt: skip


@pytest.mark.parametrize("kind", AROUND)
def test_what_a_forward_does_to_logits_is_measured_exactly(kind):
    found, expected = measure(built(kind)), AROUND[kind]
    assert found.before == expected.before
    assert found.after == pytest.approx(expected.after, rel=1e-7)  # some forwards make float32 of their logits
    assert found.softcap == expected.softcap


@pytest.mark.parametrize("factor", [1.0, 0.0625, 1 / 3])
@pytest.mark.parametrize("cap", [None, 30.0])
def test_logits_that_are_rounded_to_bfloat16_are_measured_all_the_same(make_policy, factor, cap):
    """As Unsloth rounds them before it scales them: a factor that bfloat16 has is exact."""
    model = make_policy().language_model
    before = model.forward

    def forward(*args, **kwargs):
        output = before(*args, **kwargs)
        logits = (output.logits.bfloat16() * factor).bfloat16()
        output.logits = cap * (logits / cap).tanh() if cap else logits
        return output

    model.forward = forward
    found = measure(model)
    assert (found.softcap, found.before) == (cap, 1.0)
    assert found.after == pytest.approx(factor, rel=1e-3)
    if factor != 1 / 3 and not cap:
        assert found.after == factor


def plus_one(logits):
    return logits + 1.0


def some_left_out(logits):
    return torch.cat([logits[..., :-5], torch.full_like(logits[..., -5:], -1e9)], dim=-1)


def squared(logits):
    return logits * logits.abs()


@pytest.mark.parametrize("change", [plus_one, some_left_out, squared, torch.sigmoid])
def test_what_is_no_factor_and_no_cap_is_refused(make_policy, change):
    model = make_policy().language_model
    before = model.forward

    def forward(*args, **kwargs):
        output = before(*args, **kwargs)
        output.logits = change(output.logits)
        return output

    model.forward = forward
    with pytest.raises(ConfigError, match=BETWEEN):
        measure(model)


def test_a_layer_between_the_backbone_and_the_output_layer_is_refused(make_policy):
    model = make_policy().language_model
    torch.nn.Module.register_forward_pre_hook(
        model.get_output_embeddings(), lambda _module, given: (torch.tanh(given[0]),), prepend=True
    )
    with pytest.raises(ConfigError, match=BETWEEN):
        measure(model)

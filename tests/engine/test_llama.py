"""The Llama family's forward written out, held against the models' own forward, alone and below peft's adapters."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.autograd import gradcheck
from torch.nn.functional import linear
from transformers import AutoConfig, AutoModelForCausalLM, LlamaForCausalLM

from engine import Decoding, Turn, generate
from engine import llama as module
from engine.llama import FAMILY, Llama, StackedLlama, attend_within
from lib.model.policy import Inputs, Policy

SHAPE = {
    "vocab_size": 40, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "initializer_range": 0.2, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16}
MODELS = {
    "llama": {},
    "llama, biases": {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "rope_parameters": LLAMA3},
    "mistral": {"sliding_window": None, "head_dim": 16, "num_key_value_heads": 1, "num_hidden_layers": 2},
    "qwen2": {"tie_word_embeddings": True},  # with biases of queries, keys and values
    "qwen3": {"head_dim": 8, "num_key_value_heads": 4, "tie_word_embeddings": True},
    "qwen3, biases": {"head_dim": 16, "attention_bias": True, "rope_parameters": YARN},
}
LORAS = {
    "everywhere": {"r": 4, "lora_alpha": 6, "target_modules": "all-linear"},
    "q and v": {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]},
    "ranks": {
        "r": 4, "target_modules": "all-linear", "rank_pattern": {"q_proj": 2, "up_proj": 7},
        "alpha_pattern": {"k_proj": 3}, "use_rslora": True,
    },
    "none": None,
}  # fmt: skip
BRANCHES = [[5, 3, 3], [7, 2], [4, 4, 2]]  # tokens of the trunk and of each branch behind it, row by row


def base_of(name, dtype=torch.float32, **fields):
    """A tiny random model of transformers; norms and biases too, so that a forgotten one would show."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(name.partition(",")[0], **{**SHAPE, **MODELS.get(name, {}), **fields})
    model = AutoModelForCausalLM.from_config(config).requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter += 0.3 * torch.randn_like(parameter)
    return model.to(dtype)


def policy_of(name, lora="everywhere", dtype=torch.float32):
    """The same with an adapter that has moved, or without one."""
    model = base_of(name, dtype)
    if LORAS[lora]:
        model = get_peft_model(model, LoraConfig(**LORAS[lora], task_type="CAUSAL_LM"))
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.data += 0.1 * torch.randn_like(parameter)
    policy = Policy(model, temperature=1.0)
    assert isinstance(policy.llama, Llama)
    return policy


def texts(branches=False, trunk=0):
    """Three random texts, and scored tokens here and there, some twice; padded where they branch."""
    draw = torch.Generator().manual_seed(1)
    ids = torch.randint(3, SHAPE["vocab_size"], (3, 12), generator=draw)
    chosen = torch.tensor([0, 9, 9, 3, 14, 30, 30, 30, 21, 1])
    if not branches:
        return Inputs(ids, torch.arange(12).expand(3, 12), chosen, ids.flatten()[chosen + 1])
    branch, positions = torch.zeros(2, 3, 12, dtype=torch.long)
    for row, (stem, *lengths) in enumerate(BRANCHES):
        positions[row, :stem] = torch.arange(stem)
        start = stem
        for number, length in enumerate(lengths, start=1):
            branch[row, start : start + length] = number
            positions[row, start : start + length] = stem + torch.arange(length)
            start += length
    return Inputs(ids, positions, chosen, ids.flatten()[chosen + 1], branch, trunk)


def own_hidden(policy, inputs):
    """What transformers and peft compute."""
    mask = None
    if inputs.branch is not None:
        mask = torch.zeros(3, 1, 12, 12, dtype=torch.bool)
        for row in range(3):
            for i in range(12):
                for j in range(i + 1):
                    mask[row, 0, i, j] = inputs.branch[row, j] in (0, inputs.branch[row, i])
    backbone = policy.language_model.model
    output = backbone(input_ids=inputs.ids, attention_mask=mask, position_ids=inputs.positions, use_cache=False)
    return output.last_hidden_state.flatten(0, 1)[inputs.predictors]


def gradients(policy, hidden):
    """Of the adapter, by a sum in which every number has a weight of its own."""
    policy.zero_grad()
    draw = torch.Generator().manual_seed(2)
    (hidden.float() * torch.randn(hidden.shape, generator=draw)).sum().backward()
    return [parameter.grad for parameter in policy.trainable]


def assert_near(mine, theirs, share=1e-5):
    """To a share of their norm."""
    assert mine.dtype == theirs.dtype
    assert theirs.norm() > 0
    assert (mine.float() - theirs.float()).norm() <= share * theirs.float().norm()


def assert_all_near(mine, theirs, share=1e-5):
    for one, other in zip(mine, theirs, strict=True):
        assert_near(one, other, share)


def assert_same_scores_and_gradients(policy, inputs):
    mine, theirs = policy.hidden_states(inputs), own_hidden(policy, inputs)
    assert_near(mine, theirs, 1e-5)
    assert_all_near(gradients(policy, mine), gradients(policy, theirs), 1e-5)


# -- training


@pytest.mark.parametrize("lora", LORAS)
@pytest.mark.parametrize("name", MODELS)
def test_hidden_states_are_those_of_the_models_own_forward(name, lora):
    policy, inputs = policy_of(name, lora), texts()
    with torch.no_grad():
        on = policy.hidden_states(inputs)
        assert_near(on, own_hidden(policy, inputs))
        with policy.reference_mode():
            off = policy.hidden_states(inputs)
            assert_near(off, own_hidden(policy, inputs))
        assert_near(off, own_hidden(policy_of(name, "none"), inputs))
        assert torch.equal(policy.hidden_states(inputs), on)  # and back on
    assert ((on - off).norm() > 0.05 * off.norm()) == (lora != "none")


@pytest.mark.parametrize("lora", ["everywhere", "q and v", "ranks"])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_transformers_and_peft(name, lora):
    assert_same_scores_and_gradients(policy_of(name, lora), texts())


@pytest.mark.parametrize("name", MODELS)
def test_a_bfloat16_base_with_a_float32_adapter_is_as_exact_as_peft(name):
    """Hidden states agree to eight bits; gradients are as far as peft's from those of the same weights in float32."""
    policy, wide = (policy_of(name, dtype=torch.bfloat16) for _ in range(2))
    wide.model.float()
    assert {parameter.dtype for parameter in policy.trainable} == {torch.float32}
    mine, theirs = policy.hidden_states(texts()), own_hidden(policy, texts())
    assert_near(mine, theirs, share=0.02)
    mine, theirs, exact = (
        torch.cat([grad.flatten() for grad in gradients(*pair)])
        for pair in ((policy, mine), (policy, theirs), (wide, own_hidden(wide, texts())))
    )
    assert_near(theirs, exact, share=0.05)
    assert_near(mine, exact, share=1.5 * float((theirs - exact).norm() / exact.norm()))


def test_chosen_positions_are_those_of_the_whole_texts_in_any_order():
    policy, inputs = policy_of("qwen3"), texts()
    attend, chosen = attend_within(None, 0, torch.float32), torch.tensor([7, 0, 35, 35, 7, 7])
    some = policy.llama(inputs.ids, inputs.positions, attend, chosen)
    every = policy.llama(inputs.ids, inputs.positions, attend)
    assert every.shape == (3, 12, SHAPE["hidden_size"])
    every = every.flatten(0, 1)[chosen]
    assert_near(some, every)
    assert_all_near(gradients(policy, some), gradients(policy, every))


@pytest.mark.parametrize("trunk", [0, 1, 3, 4])
@pytest.mark.parametrize("name", ["llama, biases", "mistral", "qwen3"])
def test_branches_see_what_a_mask_lets_them_see(name, trunk):
    policy = policy_of(name)
    assert_same_scores_and_gradients(policy, texts(branches=True, trunk=trunk))
    apart = (policy.hidden_states(texts(branches=True, trunk=trunk)) - policy.hidden_states(texts())).norm(dim=-1)
    assert (apart[:4] > 0.05).tolist() == [False, True, True, False]  # the second branch of the first text, not before


def test_under_autocast_the_models_own_forward_answers():
    policy = policy_of("llama")
    with torch.autocast("cpu", torch.bfloat16):
        narrow = policy.hidden_states(texts())
        assert torch.equal(narrow, own_hidden(policy, texts()))
    assert not torch.allclose(narrow, policy.hidden_states(texts()), atol=1e-3)


def test_gradient_checkpointing_computes_the_layers_again_and_gives_the_same():
    plain, saving = policy_of("qwen3"), policy_of("qwen3")
    saving.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    saving.model.enable_input_require_grads()
    saving = Policy(saving.model, temperature=1.0)  # it asks once whether to save
    found, layers = [], SHAPE["num_hidden_layers"]
    for policy, again in ((plain, 0), (saving, layers)):
        calls = []
        for layer in policy.language_model.model.layers:
            layer.mlp.act_fn.register_forward_hook(lambda *_, calls=calls: calls.append(1))
        hidden = policy.hidden_states(texts(branches=True, trunk=4))
        assert len(calls) == layers
        found.append(gradients(policy, hidden))
        assert len(calls) == layers + again
        calls.clear()
        policy.reference(texts())
        assert len(calls) == layers
    assert_all_near(*found)


def test_gradients_by_narrow_products_are_as_good_as_by_wide_ones(monkeypatch):
    """As a CPU that multiplies bfloat16 computes an adapter's, held against float32."""
    policy, wide, inputs = policy_of("llama", dtype=torch.bfloat16), policy_of("llama"), texts()
    wide.load_state_dict(policy.state_dict())
    expected = gradients(wide, wide.hidden_states(inputs))
    errors = {}
    for quick in (False, True):
        monkeypatch.setattr(module, "is_quick_on_cpu", lambda dtype, quick=quick: quick)
        found = gradients(policy, policy.hidden_states(inputs))
        assert all(grad.dtype == torch.float32 for grad in found)
        errors[quick] = sum(((a - b).norm() / b.norm()) for a, b in zip(found, expected, strict=True)) / len(found)
    assert errors[False] != errors[True]
    assert errors[True] < 1.2 * errors[False] < 0.1


# -- decoding


@pytest.mark.parametrize("lora", LORAS)
@pytest.mark.parametrize("name", MODELS)
def test_merged_is_the_same_and_leaves_the_weights_alone(name, lora):
    policy, (ids, positions, chosen, *_) = policy_of(name, lora), texts()
    attend = attend_within(None, 0, torch.float32)
    before = {key: value.clone() for key, value in policy.state_dict().items()}
    with torch.no_grad():
        on = policy.llama.for_decoding(12)
        with policy.reference_mode():
            off = policy.llama.for_decoding(12)
            expected_off = policy.llama(ids, positions, attend)
        expected_on = policy.llama(ids, positions, attend)
        for merged, expected in ((on, expected_on), (off, expected_off)):
            assert isinstance(merged, StackedLlama)
            assert_near(merged(ids, positions, attend), expected)
            assert_near(merged(ids, positions, attend, chosen), expected.flatten(0, 1)[chosen])
    assert torch.equal(expected_on, expected_off) == (lora == "none")
    after = policy.state_dict()
    assert all(torch.equal(after[key], value) for key, value in before.items())


@pytest.mark.parametrize("lora", LORAS)
@pytest.mark.parametrize("name", MODELS)
def test_in_bfloat16_it_is_as_near_to_float32_as_the_forward_of_training(name, lora):
    """The adapter stays beside the weights, which would round it."""
    policy, wide, (ids, positions, *_) = policy_of(name, lora, torch.bfloat16), policy_of(name, lora), texts()
    wide.load_state_dict(policy.state_dict())
    attend, exactly = (attend_within(None, 0, dtype) for dtype in (torch.bfloat16, torch.float32))
    with torch.no_grad():
        expected = wide.llama(ids, positions, exactly)
        error = (policy.llama(ids, positions, attend).float() - expected).norm() / expected.norm()
        assert isinstance(policy.llama.for_decoding(12), StackedLlama)
        assert_near(policy.llama.for_decoding(12)(ids, positions, attend).float(), expected, 1.5 * error)
        with policy.reference_mode(), wide.reference_mode():
            off = wide.llama(ids, positions, exactly)
            assert_near(policy.llama.for_decoding(12)(ids, positions, attend).float(), off, 1.5 * error)
    assert error < 0.05
    assert torch.equal(expected, off) == (lora == "none")


def test_a_small_adapter_is_not_rounded_away_in_bfloat16():
    """Merged, a change of a thousandth of W would be lost in most of its numbers."""
    policy = policy_of("llama", dtype=torch.bfloat16)
    layer = policy.backbone.layers[0].self_attn.q_proj
    (up,) = (part for name, part in layer.named_parameters() if "lora_B" in name)
    up.data *= 1e-3
    merged = module._Linear.of(layer)
    x = torch.randn(5, SHAPE["hidden_size"], dtype=torch.bfloat16)
    change = linear(linear(x, merged.down), merged.up.t()).float()
    assert_near(change, layer.scaling["default"] * (x.float() @ layer.lora_A.default.weight.t() @ up.t()), 0.01)


def test_bfloat16_decodes():
    policy = policy_of("qwen3", dtype=torch.bfloat16)
    asked = []
    policy.backbone.rotary_emb.register_forward_hook(lambda *_: asked.append(1))
    decoding = Decoding(1.0, frozenset([-1]), pad_id=0, rows=4, columns=16)
    written = generate(policy, {(0,): Turn([5, 6, 7], 8, 4)}, decoding)
    assert len(asked) == 1  # for all steps: Unsloth's asks the GPU for the last position, which cannot be recorded
    for completion in written.values():
        row = torch.tensor([5, 6, 7, *completion.ids])
        at = torch.arange(3, 11)
        logps = policy(Inputs(row[None], torch.arange(11)[None], at - 1, row[at]))[0]
        assert completion.logps == pytest.approx(logps.tolist(), abs=0.1)


# -- which models


class Halved(nn.Linear):
    """A linear layer in name alone, like a quantised one."""

    def forward(self, x):
        return super().forward(x) / 2


class Custom(LlamaForCausalLM):
    """Somebody's own model, with a model type of transformers."""


def adapted(name="llama", **settings):
    options = {"r": 4, "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM", **settings}
    return get_peft_model(base_of(name), LoraConfig(**options)).get_base_model()


def with_two_adapters():
    model = get_peft_model(base_of("llama"), LoraConfig(target_modules=["q_proj"], task_type="CAUSAL_LM"))
    model.add_adapter("other", LoraConfig(target_modules=["q_proj"], task_type="CAUSAL_LM"))
    return model.get_base_model()


def with_merged_adapter():
    model = get_peft_model(base_of("llama"), LoraConfig(target_modules=["q_proj"], task_type="CAUSAL_LM"))
    model.merge_adapter()
    return model.get_base_model()


def with_trained_norm():
    model = base_of("llama")
    model.model.norm.weight.requires_grad_()
    return model


def with_strange_layer():
    model = base_of("llama")
    model.model.layers[1].mlp.down_proj = Halved(48, 32).requires_grad_(False)
    return model


UNKNOWN = {
    "olmo2": lambda: base_of("olmo2"),
    "gemma": lambda: base_of("gemma", head_dim=8),
    "phi3": lambda: base_of("phi3"),
    "a custom class": lambda: Custom(base_of("llama").config).requires_grad_(False),
    "a base weight under training": with_trained_norm,
    "DoRA": lambda: adapted(use_dora=True),
    "a bias of the adapter": lambda: adapted("qwen2", lora_bias=True),
    "dropout": lambda: adapted(lora_dropout=0.1),
    "an adapted embedding": lambda: adapted(target_modules=["embed_tokens", "q_proj"]),
    "two adapters": with_two_adapters,
    "a merged adapter": with_merged_adapter,
    "a strange layer": with_strange_layer,
}


@pytest.mark.parametrize("build", UNKNOWN.values(), ids=list(UNKNOWN))
def test_what_is_of_another_kind_is_left_to_transformers(build):
    assert Llama.of(build()) is None


def test_every_family_and_plain_adapters_are_known():
    assert {name.partition(",")[0] for name in MODELS} == {*FAMILY}
    for name in MODELS:
        assert Llama.of(base_of(name))
    for lora in filter(None, LORAS.values()):
        assert Llama.of(adapted(**lora))


# -- parts


def numbers(*shape, dtype=torch.double):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


def test_norms_rotations_and_adapted_layers_have_their_derivatives():
    x, weight = numbers(2, 3, 8).requires_grad_(), numbers(8)
    assert gradcheck(lambda x: module._RMSNorm.apply(x, weight, 1e-2), x)
    turned, angles = numbers(2, 3, 2, 8).requires_grad_(), numbers(2, 3, 1, 4)
    assert gradcheck(lambda x: module._Rotary.apply(x, 1.3 * angles.cos(), 1.3 * angles.sin()), turned)
    base = [numbers(5, 8), numbers(5), numbers(6, 8), None]
    adapter = [numbers(*shape).requires_grad_() for shape in ((2, 8), (5, 2), (3, 8), (6, 3))]

    def apply(x, down, up, down2, up2):
        return module._Adapted.apply(x, [0.5, 2.0], *base[:2], down, up, *base[2:], down2, up2)

    assert gradcheck(apply, (x, *adapter))
    alone = apply(x, *adapter)
    torch.testing.assert_close(alone[0], linear(x, base[0] + 0.5 * adapter[1] @ adapter[0], base[1]))
    torch.testing.assert_close(alone[1], linear(x, base[2] + 2.0 * adapter[3] @ adapter[2]))

"""Every adapter of the shelf on tiny models of four kinds: it begins as nothing, learns, switches off, saves, folds."""

import copy
from collections import OrderedDict

import pytest
import torch
from conftest import after, part
from helpers.weights import move
from peft import LoraConfig, inject_adapter_in_model
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from engine import Decoding, Turn
from lib.core.config import Adapters, Lora, TrainedModel
from lib.core.errors import ConfigError
from lib.generators.native import generate
from lib.model import policy as policies
from lib.model.adapters.shelf import BUILDERS, attach, detach, shelf_of
from lib.model.loading import attach as attach_all
from lib.model.merging import merged
from lib.model.policy import Policy
from lib.rl.probe import probe_adapters
from lib.run.adapter_files import load_weights, save_weights

SIZES = {
    "vocab_size": 60, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64, "initializer_range": 0.3,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
GPT2 = {
    "vocab_size": 60, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "initializer_range": 0.3,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
}  # fmt: skip
KINDS = {"qwen3": SIZES, "llama": SIZES | {"attention_bias": True, "mlp_bias": True}, "gemma": SIZES, "gpt2": GPT2}
SETTINGS = {  # beside the defaults: forms that need code of their own
    "ia3, of every layer": {"ia3": {"targets": ["q", "k", "v", "o", "gate", "up", "down"]}},
    "head_gates, of all": {"head_gates": {"targets": ["q", "k", "v", "o"]}},
    "residual_gates, of both": {"residual_gates": {"post_ffn": True}},
    "attention_temperature, one": {"attention_temperature": {"per": "model"}},
    "attention_temperature, of heads": {"attention_temperature": {"per": "head", "target": "logits"}},
    **{name: {name: {}} for name in BUILDERS},
}
TUNERS = {  # PEFT's
    "dora": {"lora": {"kind": "dora", "r": 2, "targets": "all-linear"}},
    "rslora": {"lora": {"kind": "rslora", "r": 2, "targets": "all-linear"}},
    "vera": {"lora": None, "vera": {"r": 8}},
    "oft": {"lora": None, "oft": {"block_size": 8}},
    "tinylora": {"lora": None, "tinylora": {"u": 4}},
}
UNFIT = {("bitfit", "qwen3"), ("bitfit", "gemma"), ("rope_frequency", "gpt2")}
NEVER_FOLDED = {"rope_frequency", "bottleneck", "soft_prompt"}
CASES = part([(case, kind) for case in SETTINGS for kind in KINDS if (case, kind) not in UNFIT], 7)
TEXT = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 3, 4]])
ALL = {"ia3": {}, "head_gates": {}, "channel_gates": {}, "residual_gates": {}, "projection_gates": {},
       "input_gates": {}, "attention_temperature": {}, "rope_frequency": {}, "bottleneck": {}, "norm_gains": {},
       "soft_prompt": {"tokens": 3}}  # fmt: skip
LORA = {"r": 2, "targets": "all-linear"}


def model_of(kind, dtype=torch.float32):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **KINDS[kind])).to(dtype).eval()
    with torch.no_grad():  # a bias of zeros, or a gain of ones, would hide what is forgotten
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn(parameter.shape)
    return model


def policy_of(kind, adapters, dtype=torch.float32, moved=0.0, lora=None):
    adapters = {"lora": lora, **adapters}
    config = TrainedModel(name="tiny", backend="plain", adapters=adapters)
    policy = Policy(attach_all(model_of(kind, dtype), config, "plain", seed=0), 1.0)
    move(policy.trainable, moved)
    return policy


def logits(policy):
    """Logits of TEXT, behind a soft prompt if there is one."""
    ids = torch.cat([torch.tensor([policy.prefix], dtype=torch.long), TEXT], 1)
    with torch.no_grad():
        return policy.model(input_ids=ids).logits[:, -TEXT.shape[1] :]


def base_logits(kind, dtype=torch.float32):
    with torch.no_grad():
        return model_of(kind, dtype)(input_ids=TEXT).logits


@pytest.mark.parametrize(
    ("dtype", "lora"), [(torch.float32, None), (torch.bfloat16, LORA)], ids=["float32", "bfloat16 with LoRA"]
)
@pytest.mark.parametrize(("case", "kind"), CASES)
def test_an_adapter_begins_as_nothing_learns_and_switches_off(case, kind, dtype, lora):
    policy, base = policy_of(kind, SETTINGS[case], dtype, lora=lora), base_logits(kind, dtype)
    if "soft_prompt" not in case:  # whose positions always take part
        assert torch.equal(logits(policy), base)
    assert all(parameter.dtype == torch.float32 for parameter in policy.trainable)
    move(policy.trainable, 0.1)
    text = after([5, 6, 7, 8], [9, 10, 11])
    policy(text)[0].sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in policy.trainable)
    known = {id(parameter) for parameter in policy.trainable}
    assert all(parameter.grad is None for parameter in policy.model.parameters() if id(parameter) not in known)
    before = logits(policy)
    torch.optim.SGD(policy.trainable, lr=0.5).step()
    assert not torch.equal(logits(policy), before)
    assert logits(policy).dtype == dtype
    with policy.reference_mode():
        assert torch.equal(logits(policy), base) and not policy.prefix
    scored = base.float().log_softmax(-1)[0]  # TEXT begins as `text` does
    expected = torch.stack([scored[3 + i, token] for i, token in enumerate([9, 10, 11])])
    assert (policy.reference(text)[0] - expected).abs().max() < (1e-4 if dtype == torch.float32 else 0.1)


@pytest.mark.parametrize("lora", [None, LORA], ids=["alone", "with LoRA"])
@pytest.mark.parametrize(("case", "kind"), CASES)
def test_an_adapter_is_saved_and_loaded(case, kind, lora, tmp_path):
    policy = policy_of(kind, SETTINGS[case], moved=0.2, lora=lora)
    save_weights(policy.model, tmp_path)
    other = policy_of(kind, SETTINGS[case], lora=lora)
    load_weights(other.model, tmp_path)
    assert torch.equal(logits(other), logits(policy))
    with pytest.raises(ConfigError, match="does not fit the model"):
        load_weights(policy_of(kind, {"channel_gates": {"group_size": 16}}).model, tmp_path)


@pytest.mark.parametrize("lora", [None, LORA], ids=["alone", "with LoRA"])
@pytest.mark.parametrize(("case", "kind"), CASES)
def test_weights_take_over_where_the_algebra_is_exact(case, kind, lora):
    policy = policy_of(kind, SETTINGS[case], moved=0.2, lora=lora)
    name, before = case.partition(",")[0], logits(policy)
    has_norms = kind == "qwen3" and ("temperature" in case or "of all" in case)
    if name in NEVER_FOLDED or has_norms:
        with pytest.raises(ConfigError, match=rf"not all of these adapters can be merged \({name}: "):
            merged(policy.model, "outputs/x", TEXT.tolist())
        assert torch.equal(logits(policy), before)
        return
    base = merged(policy.model, "outputs/x", TEXT.tolist())
    with torch.no_grad():
        assert (base(input_ids=TEXT).logits - before).abs().mean() < 1e-5  # of logits up to 5, in float32
    assert shelf_of(base) is None and {n for n, _ in base.named_parameters()} == {
        n for n, _ in model_of(kind).named_parameters()
    }


def test_the_norm_that_dora_divides_by_has_no_gradient_as_the_documentation_says():
    """A row of W + BA divided by its norm does not change with its length, and yet B has a gradient along the row."""
    layer = nn.Sequential(OrderedDict(x=nn.Linear(4, 3, bias=False)))
    config = LoraConfig(r=4, lora_alpha=4, use_dora=True, target_modules=["x"])
    layer = inject_adapter_in_model(config, layer).x
    a, b, length = (part["default"].weight for part in (layer.lora_A, layer.lora_B, layer.lora_magnitude_vector))
    a.data.copy_(torch.eye(4))
    rows, x = layer.weight.detach(), torch.tensor([[1.0, -2.0, 0.5, 3.0]])
    layer(x).sum().backward()
    unit = rows / rows.norm(dim=1, keepdim=True)
    torch.testing.assert_close(length.grad, unit @ x[0])
    along = (b.grad * unit).sum(1)
    torch.testing.assert_close(along, unit @ x[0])  # 0 if the norm had a gradient too
    assert along.abs().min() > 0.01


@pytest.mark.parametrize(
    ("dtype", "beside"),
    [(torch.float32, {}), (torch.bfloat16, {}), (torch.float32, {"ia3": {}, "soft_prompt": {"tokens": 3}})],
    ids=["float32", "bfloat16", "beside others"],
)
@pytest.mark.parametrize(("tuner", "kind"), part([(tuner, kind) for tuner in TUNERS for kind in KINDS], 3))
def test_tuners_of_peft_keep_the_contract(tuner, kind, dtype, beside, tmp_path):
    if (tuner, kind) == ("oft", "gpt2"):  # whose layers are transposed
        with pytest.raises(ConfigError, match=r"model\.adapters\.oft: PEFT's OFT takes no transposed layers"):
            policy_of(kind, TUNERS[tuner])
        return
    policy, base = policy_of(kind, TUNERS[tuner] | beside, dtype), base_logits(kind, dtype)
    if not beside:
        rounds = tuner == "oft" or (tuner == "dora" and dtype == torch.bfloat16)  # a product with what is 1
        assert torch.equal(logits(policy), base) or rounds
        assert (logits(policy).float() - base.float()).abs().max() < (1e-5 if dtype == torch.float32 else 0.2)
    trained = {name for name, p in policy.model.named_parameters() if p.requires_grad}
    assert any(f"{'lora' if tuner in ('dora', 'rslora') else tuner}_" in name for name in trained)
    move(policy.trainable, 0.1)
    with policy.reference_mode():
        assert torch.equal(logits(policy), base)
    save_weights(policy.model, tmp_path)
    other = policy_of(kind, TUNERS[tuner] | beside, dtype)
    load_weights(other.model, tmp_path)
    assert torch.equal(logits(other), logits(policy)) and not torch.equal(logits(other), base)
    decoding = Decoding(temperature=1.0, stop_ids=frozenset([2]), pad_id=0, rows=8, columns=24)
    found = generate(policy, {(0,): Turn([5, 6, 7], 6, 4)}, decoding)
    for completion in found.values():
        with torch.no_grad():
            scored = policy(after([5, 6, 7], completion.ids))[0]
        gap = (scored - torch.tensor(completion.logps)).abs().mean()
        assert gap < (1e-4 if dtype == torch.float32 else 0.1)


@pytest.mark.parametrize("tuner", TUNERS)
def test_tuners_of_peft_are_merged(tuner):
    policy = policy_of("llama", TUNERS[tuner] | {"ia3": {}, "norm_gains": {}}, moved=0.1)
    before = logits(policy)
    with torch.no_grad():
        assert (merged(policy.model, "outputs/x", TEXT.tolist())(input_ids=TEXT).logits - before).abs().mean() < 1e-5


def test_merged_weights_keep_their_dtype():
    policy = policy_of("qwen3", {"ia3": {}, "norm_gains": {}}, torch.bfloat16, moved=0.1, lora=LORA)
    base = merged(policy.model, "outputs/x", TEXT.tolist())
    assert {weight.dtype for weight in base.state_dict().values()} == {torch.bfloat16}


@pytest.mark.parametrize(("way", "lora"), [("slab", LORA), ("by batches", None)], ids=["slab with LoRA", "by batches"])
@pytest.mark.parametrize(("case", "kind"), CASES)
def test_what_is_sampled_is_what_is_scored(case, kind, lora, way, monkeypatch):
    if way == "by batches":
        monkeypatch.setattr(policies, "attends_to_everything", lambda model: False)
    policy = policy_of(kind, SETTINGS[case], moved=0.1, lora=lora)
    prompts = {(0,): [5, 6, 7], (1,): [8, 9, 10, 11, 12, 13]}

    def follow_up(path, completion):
        return Turn([*prompts[path[:1]], *completion.ids, 20, 21], 4) if len(path) == 2 else None

    decoding = Decoding(temperature=1.0, stop_ids=frozenset([2]), pad_id=0, rows=8, columns=24)
    found = generate(policy, {path: Turn(ids, 6, 2) for path, ids in prompts.items()}, decoding, follow_up)
    assert len(found) == 8
    for path, completion in found.items():
        before = prompts[path[:1]]
        if len(path) > 2:
            before = [*before, *found[path[:2]].ids, 20, 21]
        with torch.no_grad():
            scored = policy(after(before, completion.ids))[0]
        assert (scored - torch.tensor(completion.logps)).abs().max() < 1e-4


def test_a_soft_prompt_stands_before_packed_branches(make_policy):
    """What branches of one trunk score together is what each scores alone."""
    policy = make_policy(moved=0.3, adapters={"soft_prompt": {"tokens": 3}})
    trunk, branches = [5, 6, 7], ([8, 9], [10, 11, 12])
    ids = torch.tensor([[*trunk, *branches[0], *branches[1]]])
    branch = torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2]])
    positions = torch.tensor([[0, 1, 2, 3, 4, 3, 4, 5]])
    predictors, targets = torch.tensor([2, 3, 2, 5, 6]), torch.tensor([8, 9, 10, 11, 12])
    together = policy(policies.Inputs(ids, positions, predictors, targets, branch, 3))[0]
    alone = torch.cat([policy(after(trunk, own))[0] for own in branches])
    assert (together - alone).abs().max() < 1e-5


@pytest.mark.parametrize("kind", ["qwen3", "llama"])
def test_warm_up_blends_from_nothing_without_writing_a_parameter(kind):
    adapters = {name: own for name, own in ALL.items() if name != "soft_prompt"}
    policy, base = policy_of(kind, adapters, moved=0.2), base_logits(kind)
    values, full = [p.clone() for p in policy.trainable], logits(policy)
    gaps = []
    for alpha in (0.0, 0.25, 0.5, 1.0):
        policy.shelf.blend(alpha)
        gaps.append((logits(policy) - base).abs().max().item())
    assert gaps[0] == 0 and gaps == sorted(gaps)
    assert torch.equal(logits(policy), full)
    assert all(torch.equal(a, b) for a, b in zip(values, policy.trainable, strict=True))


def test_a_soft_prompt_waits_for_its_steps(tmp_path):
    policy = policy_of("llama", {"soft_prompt": {"tokens": 2, "freeze_steps": 3}, "ia3": {}, "warmup_steps": 4})
    for step, (learns, alpha) in enumerate([(False, 0.25), (False, 0.5), (False, 0.75), (True, 1.0), (True, 1.0)]):
        policy.shelf.begin(step)
        policy(after([5, 6], [7, 8]))[0].sum().backward()
        vectors = policy.shelf.soft_prompt.vectors
        assert (vectors.grad is not None) == learns and policy.shelf.alpha == alpha
        policy.zero_grad()
        if step == 1:
            save_weights(policy.model, tmp_path)
    load_weights(policy.model, tmp_path)
    assert policy.shelf.alpha == 0.5


def test_bounds_are_kept_and_gradients_do_not_vanish():
    policy = policy_of("llama", {"ia3": {"bounds": [0.5, 3.0]}})
    (gate, *_) = policy.shelf
    for far, limit in ((-4.0, 0.5), (4.0, 3.0)):
        gate.factor.move.data.fill_(far)
        factor = gate.factor(1.0)
        factor.sum().backward()
        assert (factor - limit).abs().max() < 0.1 and factor.min() > 0.5 and factor.max() < 3.0
        assert gate.factor.move.grad.min() > 0
        gate.factor.move.grad = None
    gate.factor.move.data.fill_(0)
    gate.factor(1.0).sum().backward()
    assert torch.allclose(gate.factor.move.grad, torch.ones(32))  # slope 1 at the beginning


@pytest.mark.parametrize("kind", KINDS)
def test_layers_are_found_by_their_exact_names(kind):
    """Not those inside the wrapper of a LoRA, nor each other's."""
    policy = policy_of(kind, {"ia3": {"targets": ["q", "k", "v", "o", "down"]}}, lora=LORA)
    assert len(list(policy.shelf)) == 2 * 5
    with pytest.raises(ValueError, match="has its adapters already"):
        attach(policy.language_model, Adapters(ia3={}), 0)
    detach(policy.language_model)
    with torch.no_grad():
        assert torch.equal(policy.model(input_ids=TEXT).logits, base_logits(kind))


def test_a_copy_of_a_policy_has_adapters_of_its_own():
    policy = policy_of("qwen3", ALL | {"head_gates": {"targets": ["q", "k", "v", "o"]}}, lora=LORA)
    other = copy.deepcopy(policy)
    before = logits(policy)
    move(other.trainable, 0.3)
    assert torch.equal(logits(policy), before) and not torch.equal(logits(other), before)


# of an 8B Llama, with d = 4096, H = 32, K = 8, h = 128, L = 32, I = 14336
COUNTS = {
    "ia3": ({}, 32 * 4096),
    "head_gates": ({"targets": ["q", "k", "v", "o"]}, 32 * (32 + 8 + 8 + 32)),
    "channel_gates": ({"group_size": 8}, 32 * 14336 // 8),
    "residual_gates": ({"post_ffn": True}, 2 * 32 * 4096),
    "projection_gates": ({}, 32 * (2 * 4096 + 2 * 8 * 128)),
    "input_gates": ({}, 32 * 4 * 4096),
    "attention_temperature": ({"per": "head"}, 32 * 32),
    "rope_frequency": ({}, 1),
    "bottleneck": ({"width": 4}, 32 * (2 * 4096 * 4 + 1)),
    "soft_prompt": ({"tokens": 12}, 12 * 4096),
    "norm_gains": ({}, (2 * 32 + 1) * 4096),
}


@pytest.fixture(scope="module")
def eight_billion():
    architecture = AutoConfig.for_model(
        "llama", hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, vocab_size=128256,
    )  # fmt: skip
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(architecture)


@pytest.mark.parametrize("name", COUNTS)
def test_the_counts_are_those_of_the_formulae(eight_billion, name):
    settings, expected = COUNTS[name]
    shelf = attach(eight_billion, Adapters(**{name: settings}), 0)
    try:
        assert shelf.counts() == {name: expected}
    finally:
        detach(eight_billion)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_weights_takes_them_too(kind):
    """As --dry-run counts them."""
    adapters = {name: own for name, own in ALL.items() if (name, kind) not in UNFIT}
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **KINDS[kind]))
    config = Adapters(**adapters | {"head_gates": {"targets": ["q", "k", "v", "o"]}})
    assert attach(model, config, 0).counts() == attach(model_of(kind), config, 0).counts()


def test_biases_of_all_linear_layers_count():
    policy = policy_of("gpt2", {"bitfit": {}})
    assert policy.shelf.counts() == {"bitfit": 2 * (96 + 32 + 128 + 32)}


@pytest.mark.parametrize(
    ("kind", "adapters", "told"),
    [
        ("qwen3", {"bitfit": {}}, "model.adapters.bitfit: a model of type qwen3 has no place for it; set it to null"),
        ("gpt2", {"rope_frequency": {}}, "a model of type gpt2 has no one set of rotary frequencies"),
        ("llama", {"channel_gates": {"group_size": 7}}, "group_size = 7 does not divide the 48 of model.layers.0.mlp"),
    ],
)
def test_what_has_no_place_is_refused_by_name(kind, adapters, told):
    with pytest.raises(ConfigError, match=told):
        policy_of(kind, adapters)


def test_the_probe_tries_each_family():
    policy = policy_of("qwen3", ALL, lora=LORA)
    values = [p.clone() for p in policy.trainable]
    probe_adapters(policy, list(range(3, 20)))
    assert all(torch.equal(a, b) for a, b in zip(values, policy.trainable, strict=True))
    policy.shelf.families["bottleneck"][0].detach()
    policy.shelf.families["bottleneck"][1].detach()
    with pytest.raises(ConfigError, match=r"model\.adapters\.bottleneck: in a model of type qwen3 it changes nothing"):
        probe_adapters(policy, list(range(3, 20)))


def test_lora_of_every_shape_stands_beside_all_others():
    policy = policy_of("qwen3", ALL, moved=0.05, lora={"r": 3, "alpha": 6})
    names = {name.rpartition(".")[2] for name, p in policy.model.named_parameters() if p.requires_grad}
    assert names >= {"move", "inner", "outer", "log_scale", "change", "vectors", "weight"}
    assert isinstance(policy.shelf, nn.Module) and set(policy.shelf.counts()) == set(ALL)
    assert Lora(r=3).r == 3

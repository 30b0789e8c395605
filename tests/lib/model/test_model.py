import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import SCRATCH, TEMPLATE, inputs_of, long
from helpers.architectures import built
from peft.tuners.lora import Linear

from engine import Decoding, Head, Turn
from lib.core.config import FromScratch, Lora, Model
from lib.core.errors import ConfigError, NumericError
from lib.generators.native import generate
from lib.model import policy as policies
from lib.model.loading import adapted_layers, attach_tuner, load_base, load_skeleton, start_backend
from lib.model.policy import Policy
from lib.model.scratch import build
from lib.rl.losses import kl_per_token
from lib.run.adapter_files import save_adapter

ROOT = Path(__file__).parents[3]
ROWS = [[5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15], [20, 21, 22, 23, 24], [30, 31]]


def scores(policy, rows, **padding):
    """Log-probs of every token but the first of its row, as one list per row."""
    flat = policy(inputs_of(rows, **padding))[0].detach()
    return flat.split([len(row) - 1 for row in rows])


# -- scoring


@pytest.mark.parametrize("pad", [0, 25])
def test_log_probs_do_not_depend_on_padding_or_company(make_policy, pad):
    policy = make_policy(moved=0.3)
    alone = [scores(policy, [row])[0] for row in ROWS]
    right = scores(policy, ROWS, pad=pad)
    wide = scores(policy, ROWS, pad=pad, width=11)
    turned = scores(policy, ROWS[::-1], pad=pad)[::-1]
    pairs = [*scores(policy, ROWS[:2], pad=pad), *scores(policy, ROWS[2:], pad=pad)]
    for results in (right, wide, turned, pairs):
        for mine, expected in zip(results, alone, strict=True):
            torch.testing.assert_close(mine, expected, rtol=0, atol=1e-5)
    assert alone[1].std() > 0.1


def test_positions_count_from_the_first_token(tmp_path, monkeypatch):
    """Rotary models look at distances alone; GPT-2, whose positions are absolute, would notice padding on the left."""
    shape = {"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32, "initializer_range": 0.5}
    pair = build(FromScratch(architecture=shape, characters="abcdefghijklmnopqrstuvwxyz012345"), "x", seed=0)
    for part in pair:
        part.save_pretrained(tmp_path)
    base, _ = load_base(Model(name=str(tmp_path)), "plain")  # switches GPT-2's dropout off
    policy = Policy(base.requires_grad_(False), temperature=1.0)
    together = scores(policy, ROWS)
    for row, mine in zip(ROWS, together, strict=True):
        expected = base(input_ids=torch.tensor([row])).logits[0, :-1].log_softmax(-1)
        torch.testing.assert_close(mine, expected.gather(1, torch.tensor(row[1:])[:, None])[:, 0], rtol=0, atol=1e-5)
    shifted = scores(policy, [[ROWS[0][0], *ROWS[0]]])[0][1:]
    assert not torch.allclose(together[0], shifted, atol=1e-3)
    turns = {(0,): Turn([5, 6, 7], 6), (1,): Turn([8, 9, 10, 11, 12, 13], 6)}
    decoding = Decoding(temperature=0, stop_ids=frozenset([-1]), pad_id=0, rows=2, columns=12)
    for _ in range(2):
        together = generate(policy, turns, decoding)
        for path, turn in turns.items():
            alone = generate(policy, {path: turn}, decoding)
            greedy = base.generate(torch.tensor([turn.ids]), do_sample=False, max_new_tokens=6, eos_token_id=None)
            assert together[(*path, 0)].ids == alone[(*path, 0)].ids == greedy[0, len(turn.ids) :].tolist()
        monkeypatch.setattr(policy, "supports_slab", False)  # then by batches, padded on the left


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probs_are_those_of_the_models_own_logits(make_policy, temperature):
    policy = make_policy(temperature=temperature, moved=0.3)
    ids = torch.tensor(ROWS[1:2])
    logits = policy.model(input_ids=ids).logits[0, :-1].float() / temperature
    expected = logits.log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
    torch.testing.assert_close(scores(policy, ROWS[1:2])[0], expected, rtol=0, atol=1e-5)


def test_the_first_kl_is_exactly_zero(make_policy):
    policy = make_policy(temperature=0.9)
    inputs = inputs_of(ROWS)
    ref_logp, ref_hidden = policy.reference(inputs)
    logp, _, exact, _ = policy(inputs, ref_hidden)
    assert torch.equal(logp, ref_logp)
    for kind in ("k3", "k2", "k1_in_reward", "exact"):
        assert (kl_per_token(kind, logp, ref_logp, exact) == 0).all()
    exact.sum().backward()
    assert all((p.grad == 0).all() for p in policy.trainable if p.grad is not None)


def test_k3_and_the_exact_kl_agree_in_the_mean_over_samples(make_policy):
    policy = make_policy(moved=0.12)
    prompt, count = [5, 6, 7], 6000
    with torch.no_grad():
        log_p = policy.head.logits(policy.hidden_states(inputs_of([[*prompt, 0]], [range(3, 4)]))).log_softmax(-1)
        draw = torch.Generator().manual_seed(0)
        tokens = torch.multinomial(log_p[0].exp(), count, replacement=True, generator=draw).tolist()
        inputs = inputs_of([[*prompt, token] for token in tokens], [range(3, 4)] * count)
        ref_logp, ref_hidden = policy.reference(inputs)
        logp, _, exact, _ = policy(inputs, ref_hidden)
    k3 = kl_per_token("k3", logp, ref_logp)
    assert exact[0] > 0.02
    torch.testing.assert_close(exact, exact[:1].expand(count))
    assert abs(k3.mean() - exact[0]) < 4 * k3.std() / count**0.5 < 0.25 * exact[0]


def test_the_reference_is_the_base_and_adapters_come_back(make_policy, tiny):
    policy = make_policy(moved=0.3)
    base = Policy(copy.deepcopy(tiny[0]).requires_grad_(False), temperature=1.0)
    inputs = inputs_of(ROWS)
    with torch.no_grad():
        expected = base(inputs)[0]
    before = policy(inputs)[0]
    assert torch.equal(policy.reference(inputs)[0], expected)
    assert not torch.allclose(before, expected, atol=1e-2)
    with pytest.raises(KeyboardInterrupt), policy.reference_mode():
        assert torch.equal(policy(inputs)[0], expected)
        raise KeyboardInterrupt
    assert torch.equal(policy(inputs)[0], before)
    assert all(parameter.requires_grad for parameter in policy.trainable)
    with policy.reference_mode(), policy.generation_mode():
        pass
    assert torch.equal(policy(inputs)[0], before)


def test_generation_mode_is_left_on_exceptions(make_policy):
    policy = make_policy(gradient_checkpointing=True)  # which works in train() alone
    assert policy.model.training
    with pytest.raises(KeyboardInterrupt), policy.generation_mode() as model:
        assert not model.training
        assert not torch.is_grad_enabled()
        raise KeyboardInterrupt
    assert policy.model.training
    assert torch.is_grad_enabled()


# -- sampling with the adapter merged


def merged_layers(policy):
    return [module for module in policy.model.modules() if isinstance(module, Linear)]


def base_weights(policy):
    """The tensors themselves, and copies of what they hold."""
    weights = [(layer.get_base_layer().weight, layer.get_base_layer().weight.data) for layer in merged_layers(policy)]
    return [(weight, data, data.clone()) for weight, data in weights]


def assert_untouched(before):
    for weight, data, copied in before:
        assert weight.data_ptr() == data.data_ptr()
        assert torch.equal(weight, copied)


def logits_of(policy, ids):
    with torch.no_grad():
        return policy.language_model(input_ids=torch.tensor([ids])).logits[0]


def text_of(policy, temperature=1.0):
    """What it samples after one prompt."""
    decoding = Decoding(temperature, frozenset([-1]), pad_id=0, rows=4, columns=40, seed=3)
    return {
        path: completion.ids for path, completion in generate(policy, {(0,): Turn(ROWS[0], 16, 4)}, decoding).items()
    }


LORAS = [Lora(r=4, alpha=8), Lora(r=3, alpha=1, targets="all-linear")]
KINDS = ["qwen3", "gemma"]  # of the Llama family, which decodes with copies of its weights, and of another


@pytest.mark.parametrize("lora", LORAS)
def test_merged_is_the_same_model_and_the_base_is_only_put_aside(make_policy, lora):
    policy = make_policy(moved=0.3, lora=lora, kind="gemma")
    assert policy.supports_masks
    assert policy.llama is None
    before, expected = base_weights(policy), logits_of(policy, ROWS[1])
    with policy.generation_mode():
        assert all(layer.disable_adapters for layer in merged_layers(policy))
        assert all(weight.data_ptr() != data.data_ptr() for weight, data, _ in before)
        merged = logits_of(policy, ROWS[1])
    torch.testing.assert_close(merged, expected, rtol=0, atol=1e-5)
    assert (expected - logits_of(make_policy(kind="gemma"), ROWS[1])).abs().max() > 0.1
    assert_untouched(before)
    assert torch.equal(logits_of(policy, ROWS[1]), expected)


@pytest.mark.parametrize("lora", LORAS)
def test_the_llama_family_samples_the_policy_and_leaves_the_base_alone(make_policy, lora):
    """Not written to, not even put aside: looked at before, after and whenever a completion ends."""
    policy = make_policy(moved=0.3, lora=lora)
    assert policy.llama
    before, expected = base_weights(policy), logits_of(policy, ROWS[1])

    def looks(path, completion):
        assert_untouched(before)
        assert not any(layer.disable_adapters for layer in merged_layers(policy))

    decoding = Decoding(1.0, frozenset([1, 9, 16, 28]), pad_id=0, rows=3, columns=40, seed=3)
    found = generate(policy, {(i,): Turn(row, 16, 4) for i, row in enumerate(ROWS)}, decoding, looks)
    assert len({len(completion.ids) for completion in found.values()}) > 3
    for (i, _), completion in found.items():
        logps = policy(inputs_of([ROWS[i] + completion.ids], [range(len(ROWS[i]), len(ROWS[i] + completion.ids))]))[0]
        assert completion.logps == pytest.approx(logps.tolist(), abs=1e-5)
    assert_untouched(before)
    assert torch.equal(logits_of(policy, ROWS[1]), expected)
    assert (expected - logits_of(make_policy(), ROWS[1])).abs().max() > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_where_unsloth_computes_the_weights_alone_decide_how_it_is_sampled(make_policy, kind, monkeypatch):
    """On a GPU it puts forwards of its own in the place of those of transformers' classes."""
    expected, asked, said = text_of(make_policy(moved=0.3, kind=kind)), [], []
    attention = type(make_policy(kind=kind).backbone.layers[0].self_attn)
    real = attention.forward

    def fast_forward(self, *args, **kwargs):
        asked.append(self)
        return real(self, *args, **kwargs)

    fast_forward.__module__ = "unsloth.models.llama"
    monkeypatch.setattr(attention, "forward", fast_forward)
    policy = make_policy(moved=0.3, kind=kind)
    assert (policy.supports_slab, policy.supports_masks) == (kind == "qwen3", False)
    policy.say_sampling(said.append)
    asked.clear()
    assert text_of(policy) == expected
    if kind == "qwen3":
        assert not asked
        assert not said
    else:
        assert asked
        assert said == ["a model of type gemma is sampled batch by batch through plain, by its own cache: slower"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_base_comes_back_from_an_exception(make_policy, kind):
    policy = make_policy(moved=0.3, kind=kind)
    before, expected = base_weights(policy), logits_of(policy, ROWS[1])
    with pytest.raises(KeyboardInterrupt), policy.generation_mode():
        raise KeyboardInterrupt
    assert_untouched(before)
    assert torch.equal(logits_of(policy, ROWS[1]), expected)
    assert all(parameter.requires_grad for parameter in policy.trainable)


def test_an_adapter_is_saved_as_peft_itself_saves_it(make_policy, tmp_path):
    """All but the model card."""
    model = make_policy(moved=0.3).model
    save_adapter(model, tmp_path / "mine")
    model.save_pretrained(tmp_path / "theirs", save_embedding_layers=False)
    mine, theirs = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("mine", "theirs")
    )
    settings = [json.loads(files.pop("adapter_config.json")) for files in (mine, theirs)]
    for setting in settings:
        setting["target_modules"].sort()
    assert mine == {name: data for name, data in theirs.items() if name != "README.md"} != {}
    assert settings[0] == settings[1]


@long
@pytest.mark.parametrize("kind", KINDS)
def test_two_hundred_steps_of_sampling_and_training_leave_the_base_as_it_was(make_policy, kind):
    policy = make_policy(kind=kind)
    before = base_weights(policy)
    optimizer = torch.optim.AdamW(policy.trainable, lr=3e-3)
    for step in range(200):
        decoding = Decoding(1.0, frozenset([-1]), pad_id=0, rows=2, columns=8, seed=step)
        found = generate(policy, {(0,): Turn(ROWS[0], 3, 2)}, decoding).values()
        logp = policy(inputs_of([ROWS[0] + c.ids for c in found], [range(3, 6)] * 2))[0]
        assert logp.detach().tolist() == pytest.approx([x for c in found for x in c.logps], abs=1e-4), step
        optimizer.zero_grad()
        (-logp.sum()).backward()
        optimizer.step()
    assert_untouched(before)
    with policy.reference_mode():
        assert torch.equal(logits_of(policy, ROWS[1]), logits_of(make_policy(kind=kind), ROWS[1]))
    assert (logits_of(policy, ROWS[1]) - logits_of(make_policy(kind=kind), ROWS[1])).abs().max() > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_a_bfloat16_base_is_not_merged(make_policy, kind):
    policy = make_policy(moved=0.3, kind=kind)
    policy.language_model.to(torch.bfloat16)
    before, expected = base_weights(policy), logits_of(policy, ROWS[1])
    with policy.generation_mode():
        assert_untouched(before)
        assert not any(layer.disable_adapters for layer in merged_layers(policy))
        assert torch.equal(logits_of(policy, ROWS[1]), expected)
    assert_untouched(before)


@pytest.mark.parametrize("masks", [True, False])
def test_reference_mode_around_sampling_samples_from_the_base(make_policy, monkeypatch, masks):
    if not masks:
        monkeypatch.setattr(policies, "attends_to_everything", lambda model: False)
    policy, base = make_policy(moved=0.3), make_policy()
    before = base_weights(policy)
    with policy.reference_mode():
        assert text_of(policy) == text_of(base) != text_of(make_policy(moved=0.3))
        assert_untouched(before)
    assert text_of(policy) == text_of(make_policy(moved=0.3))


@pytest.mark.parametrize("kind", KINDS)
def test_reference_mode_within_generation_mode_is_the_base(make_policy, kind):
    policy, base = make_policy(moved=0.3, kind=kind), make_policy(kind=kind)
    before, expected = base_weights(policy), logits_of(policy, ROWS[1])
    with policy.generation_mode():
        with policy.reference_mode():
            torch.testing.assert_close(logits_of(policy, ROWS[1]), logits_of(base, ROWS[1]), rtol=0, atol=1e-5)
        torch.testing.assert_close(logits_of(policy, ROWS[1]), expected, rtol=0, atol=1e-5)
    assert_untouched(before)
    assert torch.equal(logits_of(policy, ROWS[1]), expected)


def test_gradient_checkpointing_gives_the_same_gradients(make_policy):
    inputs = inputs_of(ROWS)
    plain, saving = make_policy(moved=0.3), make_policy(moved=0.3, gradient_checkpointing=True)
    assert saving.language_model.is_gradient_checkpointing
    for policy in (plain, saving):
        with policy.generation_mode():
            pass  # comes back with checkpointing on
        policy(inputs)[0].sum().backward()
    for mine, other in zip(saving.trainable, plain.trainable, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-5, atol=1e-6)
    assert saving.language_model.is_gradient_checkpointing


# -- building and loading


def test_a_seed_decides_the_adapter(tiny):
    def adapter(seed):
        torch.manual_seed(torch.seed() % 1000)
        policy = Policy(attach_tuner(copy.deepcopy(tiny[0]), Lora(r=4), Model(name="tiny"), "plain", seed), 1.0)
        return torch.cat([parameter.flatten() for parameter in policy.trainable])

    first, again, other = adapter(0), adapter(0), adapter(1)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_estimate_of_trainable_parameters_is_their_number(make_policy, tiny_folder):
    skeleton, _ = load_skeleton(Model(name=str(tiny_folder)))
    for lora in (Lora(r=4, targets=["q_proj", "down_proj"]), Lora(r=2, targets="all-linear")):
        count = sum(parameter.numel() for parameter in make_policy(lora=lora).trainable)
        layers = adapted_layers(skeleton, lora).values()
        assert sum(lora.r * (layer.in_features + layer.out_features) for layer in layers) == count


def test_what_is_loaded_is_what_was_saved(tiny, tiny_folder):
    model, tokenizer = load_base(Model(name=str(tiny_folder), chat_template="{{ messages }}"), "plain")
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), tiny[0].parameters(), strict=True))
    assert tokenizer.chat_template == "{{ messages }}"


SMALL = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
DROPOUT = {
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "attn_pdrop": 0.5, "resid_pdrop": 0.5},
    "qwen3": {**SMALL, "num_key_value_heads": 1, "head_dim": 8, "attention_dropout": 0.5},
    "seed_oss": {**SMALL, "num_key_value_heads": 1, "head_dim": 8, "residual_dropout": 0.5},
    "opt": {
        "hidden_size": 16, "ffn_dim": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "word_embed_proj_dim": 16,
        "dropout": 0.5,
    },
}  # fmt: skip


@pytest.mark.parametrize(("kind", "fields"), DROPOUT.items(), ids=list(DROPOUT))
def test_no_dropout_is_left_in_a_model_that_trains(tmp_path, kind, fields):
    for each in build(
        FromScratch(architecture={"model_type": kind, **fields}, characters="abcdefghijklmn"), "x", seed=0
    ):
        each.save_pretrained(tmp_path)
    base, _ = load_base(Model(name=str(tmp_path)), "plain")
    policy = Policy(base.requires_grad_(False), temperature=1.0)
    assert not policy.model.training
    base.train()
    rows = [[3, 4, 5, 6, 7, 8], [9, 10]]
    first, again = policy(inputs_of(rows))[0], policy(inputs_of(rows))[0]
    base.eval()
    assert torch.equal(first, again)
    assert torch.equal(first, policy(inputs_of(rows))[0])


def test_no_trainable_parameter_is_a_numeric_error(tiny):
    frozen = copy.deepcopy(tiny[0]).requires_grad_(False)
    with pytest.raises(NumericError, match="no parameter is trainable"):
        _ = Policy(frozen, 1.0).trainable


def sentence(**settings):
    with pytest.raises(ConfigError) as caught:
        load_base(Model(**settings), "plain")
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_what_can_not_be_loaded_is_one_sentence(tiny, tiny_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    nowhere = sentence(name=str(tmp_path / "nowhere"))
    assert nowhere.startswith(f"model.name: '{tmp_path}/nowhere' could not be loaded (")
    assert "give model.name=PATH of a local model folder (data/tiny_sums_base ships)" in nowhere
    empty = tmp_path / "empty"
    empty.mkdir()
    assert f"the folder '{empty}' has no config.json: give a folder with a model" in sentence(name=str(empty))
    broken = tmp_path / "broken"
    for module in tiny:
        module.save_pretrained(broken)
    (broken / "model.safetensors").write_bytes(b"no weights")
    assert f"'{broken}' could not be loaded (" in sentence(name=str(broken))
    assert "'no_such_file.jinja' is neither a file nor Jinja text" in sentence(
        name=str(tiny_folder), chat_template="no_such_file.jinja"
    )


def test_a_folder_without_a_tokenizer_is_named(tiny, tmp_path):
    """With its configuration left, and without; transformers would make an empty one of the latter."""
    for module in tiny:
        module.save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).unlink()
        assert sentence(name=str(tmp_path)).startswith(f"model.name: '{tmp_path}' has no tokenizer.json, expected")


def test_widths_that_do_not_fit_4_bits_are_one_sentence(tiny_folder, tmp_path):
    pytest.importorskip("bitsandbytes")
    if torch.cuda.is_available():  # else any width works
        told = sentence(name=str(tiny_folder), load_in_4bit=True)
        assert told.startswith("model.load_in_4bit: this model does not work in 4 bits here (")
        remedy = "multiples of 64, and layers of 16 to 8 numbers are none; set model.load_in_4bit=false"
        assert f"widths have to be {remedy}" in told
    else:
        model, _ = load_base(Model(name=str(tiny_folder), load_in_4bit=True), "plain")
        assert model(input_ids=torch.arange(5)[None]).logits.isfinite().all()
    wide = {"hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 2, "num_key_value_heads": 2,
            "head_dim": 64}  # fmt: skip
    scratch = FromScratch(**{**SCRATCH, "architecture": SCRATCH["architecture"] | wide})
    for part in build(scratch, TEMPLATE, seed=0):
        part.save_pretrained(tmp_path)
    model, _ = load_base(Model(name=str(tmp_path), load_in_4bit=True), "plain")
    assert model(input_ids=torch.arange(5)[None]).logits.isfinite().all()
    with torch.no_grad():  # after which a CPU with bfloat16 would keep weights in a layout without gradient
        model(input_ids=torch.arange(5)[None])
    states = torch.randn(1, 5, 128, requires_grad=True)
    model(inputs_embeds=states).logits.sum().backward()
    assert states.grad.abs().sum() > 0


def test_a_tokenizer_without_a_template_is_one_sentence(tiny, tmp_path):
    tiny[0].save_pretrained(tmp_path)
    tiny[1].save_pretrained(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    assert "has none; give one as Jinja text" in sentence(name=str(tmp_path))


@pytest.mark.parametrize("targets", [["q_prj"], ["v_proj", "q_prj"]])
def test_a_target_that_is_no_layer_is_one_sentence(make_policy, targets):
    with pytest.raises(ConfigError, match=r"lora\.targets: 'q_prj' is no linear layer of 'tiny'; did you mean"):
        make_policy(lora=Lora(targets=targets))


def test_auto_is_plain_without_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert start_backend(Model(name="tiny")) == "plain"


def test_unsloth_that_is_missing_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "unsloth", None)
    with pytest.raises(ConfigError, match=r"grep \^unsloth requirements\.txt\), or set model\.backend=plain"):
        start_backend(Model(name="tiny", backend="unsloth"))


@pytest.mark.parametrize(
    ("kind", "scale", "softcap"), [("hyperclovax", 3.0, None), ("minicpm3", 0.25, None), ("gemma2", 1.0, 20.0)]
)
def test_the_head_knows_what_an_architecture_does_to_its_logits(kind, scale, softcap):
    head = Policy(built(kind), temperature=2.0).head
    assert isinstance(head, Head)
    assert (head.scale, head.softcap, head.temperature) == (scale, softcap, 2.0)


def test_bfloat16_logits_are_not_what_a_token_is_drawn_by(make_policy, monkeypatch):
    """The model's own forward rounds them; the head sums in float32, with or without a slab."""
    monkeypatch.setattr(policies, "attends_to_everything", lambda model: False)
    policy = make_policy()
    policy.language_model.to(torch.bfloat16)
    ids = torch.tensor(ROWS[:1])
    with policy.generation_mode() as model:
        logits, cache = policy.next_logits(ids, torch.arange(ids.shape[1])[None], torch.ones_like(ids), None, 1.0)
        own = model(input_ids=ids).logits[:, -1]
    assert cache.get_seq_length() == ids.shape[1]
    assert logits.dtype == torch.float32
    assert not torch.equal(logits, logits.bfloat16().float())
    assert torch.equal(logits.bfloat16(), own)


@long
def test_bitsandbytes_is_imported_without_a_word():
    code = "import lib.model.loading, bitsandbytes"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "kernels" not in done.stdout + done.stderr

"""From an adapter to a base and on: `model.adapter`, `export.py --to merged`, and what an adapter says of its base."""

import json
import re
import shutil
from pathlib import Path

import peft
import pytest
import torch
import yaml
from conftest import SCRATCH, TEMPLATE
from helpers import tiny
from helpers.tiny import call, rows_in
from helpers.weights import move
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

import evaluate
import export
import sft_train
import train
from data.builders import write_rows
from engine import Decoding, Turn
from lib.core.config import FromScratch, Lora, Model, ScoreConfig, load
from lib.core.errors import ConfigError, StorageError
from lib.generators.native import generate
from lib.model.loading import attach_tuner, load_base, load_skeleton
from lib.model.merging import distance, log_probs, merged, put_on, write_merged
from lib.model.policy import Policy
from lib.model.scratch import build
from lib.run.adapter_files import load_adapter, save_adapter
from lib.run.fingerprints import of_model
from lib.run.manifest import problems

MODEL = {"name": "base", "backend": "plain", "max_seq_length": 64}
SFT = {
    "run_name": "sft", "model": MODEL | {"adapters": {"lora": {"r": 4, "alpha": 8}}},
    "dataset": {"name": "chats.jsonl", "test_split_size": 4}, "optimizer": {"learning_rate": 0.01},
    "train": {"steps": 4, "batch_size": 4, "max_length": 64},
}  # fmt: skip
SCORE = {
    "run_name": "score", "model": MODEL | {"adapters": {"lora": {"r": 2, "alpha": 4}}},
    "dataset": {"name": "rows.jsonl", "test_split_size": 8},
    "prompts": {"user": "{question}", "self_correction": "?"}, "reward": {"fn": "few_scores.few", "accept_cut": True},
    "generation": tiny.limits(prompts=(8, 32), answers=(6, 6)),
    "optimizer": {"learning_rate": 0.01},
    "train": tiny.stages((2, 1), 4, checkpoint_every=1),
    "eval": {"max_examples": 4},
}  # fmt: skip
RATES = ("acc_attempt1", "acc_attempt2", "i_to_c", "c_to_i")
REWARD = "def few(predictions):\n    return [sum(c in '13579' for c in p) / 6 for p in predictions]\n"
PROMPTS = [
    torch.randint(6, 30, (3 + number % 8,), generator=torch.Generator().manual_seed(number)).tolist()
    for number in range(50)
]


@pytest.fixture(scope="module")
def chain(tiny_folder, tmp_path_factory):
    """A folder in which each step of the way was one command: SFT with LoRA, SCoRe on it, and the merged models."""
    folder = tmp_path_factory.mktemp("chain")
    shutil.copytree(tiny_folder, folder / "base")
    sums = [(a, b) for a in range(6) for b in range(5)]
    write_rows(folder / "rows.jsonl", tiny.sums(range(6), range(5)))
    chats = [[{"role": "user", "content": f"{a}+{b}"}, {"role": "assistant", "content": f"{a + b}"}] for a, b in sums]
    write_rows(folder / "chats.jsonl", ({"messages": chat} for chat in chats))
    (folder / "few_scores.py").write_text(REWARD)
    (folder / "sft.yaml").write_text(yaml.safe_dump(SFT))
    (folder / "score.yaml").write_text(yaml.safe_dump(SCORE))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        adapter = "model.adapter=outputs/sft/final"
        assert call(sft_train, "--config", "sft.yaml") == 0
        assert call(train, "--config", "score.yaml", adapter) == 0
        assert call(export, "outputs/score", "--to", "merged", "--out", "merged") == 0
        assert call(export, "--config", "score.yaml", adapter, "--to", "merged", "--out", "new-base") == 0
    return folder


@pytest.fixture
def inside(chain, monkeypatch):
    monkeypatch.chdir(chain)
    monkeypatch.syspath_prepend(str(chain))
    return chain


def plain(folder, adapter=None):
    """A model as its users load it, with an adapter by PEFT."""
    model = AutoModelForCausalLM.from_pretrained(folder)
    return (peft.PeftModel.from_pretrained(model, adapter) if adapter else model).eval()


def greedy(model):
    """50 greedy texts by transformers, those of one length at once."""
    settings = {"do_sample": False, "max_new_tokens": 12, "pad_token_id": 0, "eos_token_id": -1}
    texts = []
    for length in range(3, 11):
        ids = torch.tensor([prompt for prompt in PROMPTS if len(prompt) == length])
        texts += model.generate(ids, attention_mask=torch.ones_like(ids), **settings).tolist()
    return sorted(texts)


def greedy_here(policy):
    """The same by our own decoder."""
    turns = {(number,): Turn(ids, 12) for number, ids in enumerate(PROMPTS)}
    decoding = Decoding(temperature=0.0, stop_ids=frozenset([-1]), pad_id=0, rows=50, columns=24)
    done = generate(policy, turns, decoding)
    return sorted(ids + done[(number, 0)].ids for number, ids in enumerate(PROMPTS))


def test_a_run_on_an_adapter_begins_where_sft_ended(inside):
    """The reference is base and adapter, so the KL of the first step is zero to the last bit, and of no later one."""
    steps = rows_in("outputs/score/metrics.jsonl")
    assert (steps[0]["kl_attempt1"], steps[0]["kl_attempt2"]) == (0.0, 0.0)
    assert all(step["kl_attempt2"] > 0 for step in steps[1:])
    base, adapted = plain("base"), plain("base", "outputs/sft/final")
    ids = torch.tensor([PROMPTS[7]])
    here = load_base(Model(**MODEL, adapter="outputs/sft/final"), "plain")[0](ids).logits
    assert torch.allclose(here, adapted(ids).logits, atol=1e-4)
    assert (here - base(ids).logits).abs().max() > 0.1


def test_the_merged_model_is_the_policy_in_plain_transformers(inside):
    config = load(ScoreConfig, Path("outputs/score/config.yaml"))
    base, tokenizer = load_base(config.model, "plain")
    policy = Policy(attach_tuner(base, config.model.adapters.lora, config.model, "plain", 0), 1.0)
    load_adapter(policy.model, Path("outputs/score/stage2"))
    assert greedy(plain("merged")) == greedy_here(policy) != greedy(plain("base"))
    assert AutoTokenizer.from_pretrained("merged").chat_template == tokenizer.chat_template
    assert greedy(plain("new-base")) == greedy(plain("base", "outputs/sft/final"))
    assert not list(Path().glob("*.tmp"))


def test_plain_peft_refuses_an_adapter_without_the_one_below_it(inside):
    """On the bare base it would load, and be wrong, without a word."""
    for folder in ("outputs/score/stage2", "outputs/score/stage1/step_1"):
        with pytest.raises(ValueError, match="CAUSAL_LM on base with outputs/sft/final merged into it"):
            plain("base", folder)
    below = json.loads(Path("outputs/score/stage2/adapter_config.json").read_text())
    assert below["base_model_name_or_path"] == "base + outputs/sft/final"
    assert json.loads(Path("outputs/sft/final/adapter_config.json").read_text())["base_model_name_or_path"] == "base"
    for adapter, below, told in (
        ("outputs/score/stage2", [], "trained on its base with outputs/sft/final merged into it: set model.adapter="),
        ("outputs/sft/final", ["model.adapter=outputs/sft/final"], "trained on the base alone, and here it has"),
        ("outputs/score/best", ["model.adapter=outputs/score/stage2"], "trained on its base with outputs/sft/final"),
    ):
        with pytest.raises(ConfigError, match=told):
            call(evaluate, "--config", "score.yaml", "--adapter", adapter, *below)
    base, _ = load_base(Model(**MODEL, adapter="outputs/sft/final"), "plain")
    assert put_on(base, Path("outputs/score/stage2"), "adapter").peft_config["default"].task_type == "CAUSAL_LM"


def test_weights_have_the_mode_that_the_umask_allows(inside):
    weights = [*Path("outputs").rglob("*.safetensors"), *Path().glob("*/model.safetensors")]
    assert {path.parent.name for path in weights} >= {"final", "stage1", "stage2", "step_1", "merged", "new-base"}
    for path in weights:
        if "base" not in path.parts:
            assert path.stat().st_mode == path.with_name("README.md").stat().st_mode, path


def test_the_cards_tell_what_was_trained_and_how_well_and_load_it(inside):
    folders = ("outputs/sft/final", "outputs/score/stage2", "merged", "new-base")
    sft, score, merged, below = (ModelCard.load(f"{folder}/README.md") for folder in folders)
    count = sum(value.numel() for value in load_file("outputs/sft/final/adapter_model.safetensors").values())
    assert re.search(rf"\| lora \| {count:,} \| .*targets q_proj,", sft.text) and f"| lora | {count:,} |" in below.text
    assert "**Data:** `chats.jsonl`" in sft.text and "**Licence of the base:** `unknown`" in sft.text
    assert re.search(r"nats per token: \d\.\d{4} in the first step, \d\.\d{4} in the last", sft.text)
    first, last = rows_in("outputs/score/evaluations.jsonl")[:: len(rows_in("outputs/score/evaluations.jsonl")) - 1]
    for row, label in ((first, "pretrain"), (last, "after stage II")):
        cells = [f"{row[key]:.3f} [{row[f'{key}_ci95'][0]:.3f}, {row[f'{key}_ci95'][1]:.3f}]" for key in RATES]
        assert (
            f"| {label} | {cells[0]} | {cells[1]} | " in score.text and f" | {cells[2]} | {cells[3]} |\n" in score.text
        )
    assert "**Reward:** `few_scores.few`" in score.text and "few_scores.few" in score.text.split("## Config")[1]
    assert "after stage II" in merged.text and "6 of 6 greedy answers are the trainer's" in merged.text
    assert "after step 1 of stage 1" in Path("outputs/score/stage1/step_1/README.md").read_text()
    assert "stage II" not in Path("outputs/score/stage1/README.md").read_text().split("## Config")[0]
    libraries = [card.data.to_dict()["library_name"] for card in (sft, score, merged, below)]
    assert libraries == ["peft", "peft", "transformers", "transformers"]
    assert all(card.data.base_model is None for card in (sft, merged))  # the Hub takes no local path

    ids, loaded = torch.tensor([PROMPTS[7]]), {}
    for card, same in ((sft, plain("base", "outputs/sft/final")), (merged, plain("merged"))):
        exec(re.search(r"`{4}python\n(.*?)\n`{4}", card.text, re.DOTALL)[1], loaded)
        assert torch.equal(loaded["model"].eval()(ids).logits, same(ids).logits)
        assert loaded["tokenizer"].chat_template
    assert "PEFT alone cannot load it: it stands on a base with `outputs/sft/final` merged into it" in score.text
    command = re.search(r"python export\.py (.*) --to merged", score.text)[1]
    assert command == "outputs/score/stage2 --config outputs/score/config.yaml"


@pytest.fixture
def work(chain, tmp_path, monkeypatch):
    """A copy of it, to change."""
    shutil.copytree(chain, tmp_path / "work", symlinks=True)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.syspath_prepend(str(tmp_path / "work"))
    return tmp_path / "work"


MERGE = ("outputs/score", "--to", "merged", "--out", "again")


def test_a_run_of_an_earlier_version_is_merged_or_refused_before_anything_is_written(work):
    config = work / "outputs/score/config.yaml"
    tree = yaml.safe_load(config.read_text())
    del tree["output_dir"], tree["reward"]["match"]  # as if these keys were new
    config.write_text(yaml.safe_dump(tree | {"key_of_old": 1}))
    with pytest.raises(ConfigError, match=r"outputs/score/config\.yaml:\d+: key_of_old"):
        call(export, *MERGE, "--config", "score.yaml", "model.adapter=outputs/sft/final")
    assert not list(work.glob("again*"))
    config.write_text(yaml.safe_dump(tree))
    assert call(export, *MERGE, "--config", "score.yaml", "model.adapter=outputs/sft/final") == 0
    assert "compared by exact" in (work / "again/README.md").read_text()


def test_a_merged_model_has_its_name_once_it_has_its_card(work, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("lib.run.model_card._metadata", fail)
        with pytest.raises(StorageError, match=r"again: .*No space left on device"):
            call(export, *MERGE)
    assert not (work / "again").exists()
    assert call(export, *MERGE) == 0
    assert 'from_pretrained("again")' in (work / "again/README.md").read_text() and not list(work.glob("*.tmp"))


def edit(path, **fields):
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_a_card_may_be_edited(work):
    for folder in ("outputs/score/stage2/step_1", "outputs/score/stage2"):
        (work / folder / "README.md").write_text("mine")
        assert not problems(work / folder)


def test_a_resume_notices_another_adapter_below(work):
    weights = work / "outputs/sft/final/adapter_model.safetensors"
    save_file({name: value + 0.01 for name, value in load_file(weights).items()}, weights, {"format": "pt"})
    again = ["--config", "score.yaml", "model.adapter=outputs/sft/final", "--resume"]
    with pytest.raises(ConfigError, match=r"the adapter in model\.adapter changed under the same name"):
        call(train, *again)
    assert call(train, *again, "--allow-config-change") == 0
    with pytest.raises(ConfigError, match="was trained on outputs/sft/final as it was then"):
        call(evaluate, "--config", "outputs/score/config.yaml", "--adapter", "outputs/score/stage2")


SETTINGS, WEIGHTS, EXTRA = "adapter_config.json", "adapter_model.safetensors", "extra_adapters.safetensors"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda final: shutil.rmtree(final), "no adapter here, nor any folder"),
        (lambda final: (final / WEIGHTS).unlink(), f"no adapter here, {WEIGHTS} missing"),
        (lambda final: (final / SETTINGS).write_text("{"), "cannot be read"),
        (lambda final: edit(final / SETTINGS, peft_type="IA3"), "its peft_type is IA3, and only LORA"),
        (lambda final: edit(final / SETTINGS, modules_to_save=["lm_head"]), "it has modules_to_save"),
        (
            lambda final: shutil.copy(final / WEIGHTS, final / EXTRA),
            f"{EXTRA} holds trained weights that PEFT does not",
        ),
        (lambda final: edit(final / SETTINGS, r=3), "does not fit model.name (size mismatch for "),
        (lambda final: edit(final / SETTINGS, target_modules=["c_attn"]), "does not fit model.name (Target"),
        (lambda final: save_file({"x": torch.zeros(1)}, final / WEIGHTS), "does not fit model.name ("),
        (lambda final: edit(final.parents[2] / "base/config.json", rope_theta=7), "have changed since: give its base"),
    ],
)
def test_an_adapter_that_cannot_become_part_of_the_base(work, change, told):
    change(work / "outputs/sft/final")
    with pytest.raises(ConfigError) as caught:
        load_base(Model(**MODEL, adapter="outputs/sft/final"), "plain")
    assert told in str(caught.value)
    assert str(caught.value).startswith("model.adapter: ")
    assert "\n" not in str(caught.value)


def test_an_adapter_of_another_model_of_the_same_shape(work, tiny, caplog):
    """Known by the weights where its manifest tells them; where nothing tells, the other name is said."""
    other = build(FromScratch(**SCRATCH), TEMPLATE, seed=5)
    for part in other:
        part.save_pretrained("other")
    named = Model(**MODEL | {"name": "other"}, adapter="outputs/sft/final")
    with pytest.raises(ConfigError, match="was trained on other weights than those of 'other', on base: give its base"):
        load_base(named, "plain")
    Path("outputs/sft/final/MANIFEST.json").unlink()
    load_base(named, "plain")
    assert "outputs/sft/final was trained on base; nothing tells whether other has the same weights" in caplog.text
    caplog.clear()
    load_base(Model(**MODEL, adapter="outputs/sft/final"), "plain")
    assert not caplog.text


def test_folders_under_the_wrong_key_are_one_sentence(inside):
    for name, told in (
        (
            "outputs/sft/final",
            "is an adapter of base: give model.name=base model.adapter=outputs/sft/final, or merge it",
        ),
        ("outputs/score/stage2", "is an adapter of base: give model.name=base model.adapter=outputs/score/stage2"),
        ("outputs/sft", "is a run: give outputs/sft/final"),
    ):
        for loader in (lambda model: load_base(model, "plain"), load_skeleton):
            with pytest.raises(ConfigError, match=told):
                loader(Model(**MODEL | {"name": name}))
    with pytest.raises(ConfigError, match="outputs/sft: no adapter here, this is a run: give outputs/sft/final"):
        load_skeleton(Model(**MODEL, adapter="outputs/sft"))
    with pytest.raises(ConfigError, match=r"merged: no adapter here, this is a whole model: .* model\.name=merged"):
        call(train, "--config", "score.yaml", "run_name=other", "--resume-adapter", "merged")
    with pytest.raises(ConfigError, match="nothing can be merged into weights of 4 bits"):
        load(ScoreConfig, Path("score.yaml"), ["model.adapter=outputs/sft/final", "model.load_in_4bit=true"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["outputs/score", "--out", "merged"], "--out merged: it exists"),
        (["--out", "new"], "there is nothing to merge"),
        (
            ["outputs/score/stage2", "--out", "new", "model.adapter=null", "model.load_in_4bit=true"],
            "weights of 4 bits",
        ),
    ],
)
def test_a_merge_that_cannot_be(inside, options, told):
    with pytest.raises(ConfigError, match=told):
        call(export, *options, "--to", "merged", "--config", "score.yaml")


def test_the_option_that_merged_names_the_script_that_does():
    told = "--merge: .* python export.py outputs/score --config score.yaml --to merged --out new"
    with pytest.raises(ConfigError, match=told):
        call(evaluate, "--config", "score.yaml", "--run", "outputs/score", "--merge", "new")


def test_what_sft_taught_comes_with_its_adapter(work):
    """Which tokens end an answer, and the chat template; a resume would notice other ones."""
    edit(work / "outputs/sft/final/generation_config.json", eos_token_id=[1, 7])
    (work / "outputs/sft/final/chat_template.jinja").write_text("SFT" + TEMPLATE)
    model, tokenizer = load_base(Model(**MODEL, adapter="outputs/sft/final"), "plain")
    assert model.generation_config.eos_token_id == [1, 7]
    assert tokenizer.chat_template == load_skeleton(Model(**MODEL, adapter="outputs/sft/final"))[1].chat_template
    assert tokenizer.chat_template.startswith("SFT")
    own = Model(**MODEL, adapter="outputs/sft/final", chat_template="own" + TEMPLATE)
    assert load_base(own, "plain")[1].chat_template.startswith("own")
    edit(work / "outputs/sft/final/generation_config.json", eos_token_id=[1])
    other, _ = load_base(Model(**MODEL, adapter="outputs/sft/final"), "plain")
    here, there = (of_model("base", each, tokenizer) for each in (model, other))
    assert {name for name in here if here[name] != there[name]} == {"the adapter in model.adapter"}


SMOLLM2 = {
    "model_type": "llama", "hidden_size": 36, "intermediate_size": 96, "num_hidden_layers": 3,
    "num_attention_heads": 9, "num_key_value_heads": 3, "tie_word_embeddings": True, "initializer_range": 0.3,
    "max_position_embeddings": 256,
}  # fmt: skip


@pytest.fixture(scope="module")
def adapted(tmp_path_factory):
    """Models of two families in files, each with an adapter that does much; one in bfloat16."""
    made = {}
    for name, architecture in (
        ("qwen3", SCRATCH["architecture"] | {"tie_word_embeddings": False}),
        ("smollm2", SMOLLM2),
    ):
        folder = tmp_path_factory.mktemp(name)
        model, tokenizer = build(FromScratch(**{**SCRATCH, "architecture": architecture}), TEMPLATE, seed=0)
        for part in (model, tokenizer):
            part.save_pretrained(folder)
        config = Model(name=str(folder))
        policy = Policy(attach_tuner(load_base(config, "plain")[0], Lora(r=4, alpha=8), config, "plain", 0), 1.0)
        move(policy.trainable, 0.1)
        save_adapter(policy.model, folder / "adapter")
        made[name] = folder, tokenizer, policy
    return made


@pytest.mark.parametrize("name", ["qwen3", "smollm2"])
def test_fifty_greedy_texts_are_the_same_by_every_way(adapted, tmp_path, name):
    """Ours, plain PEFT with the saved adapter, and plain transformers with the merged model."""
    folder, tokenizer, policy = adapted[name]
    ours = greedy_here(policy)
    assert ours == greedy(plain(folder, folder / "adapter")) != greedy(plain(folder))
    base, _ = load_base(Model(name=str(folder)), "plain")
    write_merged(put_on(base, folder / "adapter", "adapter"), tokenizer, PROMPTS[:2], tmp_path / "merged")
    assert greedy(plain(tmp_path / "merged")) == ours
    assert plain(tmp_path / "merged").config.tie_word_embeddings == (name == "smollm2")


@pytest.mark.parametrize("name", ["qwen3", "smollm2"])
def test_in_bfloat16_a_weight_is_rounded_once(adapted, tmp_path, name):
    folder, tokenizer, _ = adapted[name]
    base, _ = load_base(Model(name=str(folder), dtype="bfloat16"), "plain")
    before = {key: value.clone() for key, value in base.state_dict().items()}
    model = put_on(base, folder / "adapter", "adapter")
    key = "model.layers.0.self_attn.q_proj"
    delta = model.get_submodule(f"base_model.model.{key}").get_delta_weight("default")
    write_merged(model, tokenizer, PROMPTS[:2], tmp_path / "merged")
    saved = load_file(tmp_path / "merged/model.safetensors")
    expected = (before[f"{key}.weight"].float() + delta.float()).bfloat16()
    assert torch.equal(saved[f"{key}.weight"], expected)
    assert torch.equal(saved["model.embed_tokens.weight"], before["model.embed_tokens.weight"])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_adapter_on_tied_embeddings_is_not_merged(adapted, dtype):
    """The sum would change the output layer too, which the adapter does not."""
    folder, *_ = adapted["smollm2"]
    base, _ = load_base(Model(name=str(folder), dtype=dtype), "plain")
    model = peft.get_peft_model(base, peft.LoraConfig(r=2, target_modules=["embed_tokens"], task_type="CAUSAL_LM"))
    move((parameter for name, parameter in model.named_parameters() if "lora_" in name), 0.03)
    with pytest.raises(ConfigError, match=r"the merged model differs: .* shares its weight"):
        merged(model, "some/adapter", PROMPTS[:8])


def test_rounding_to_bfloat16_does_not_refuse_a_merge(tmp_path):
    """In a model with large weights, rounding alone moves the log-probs by more than many a wrong merge."""
    base, adapter, out = tmp_path / "base", tmp_path / "adapter", tmp_path / "merged"
    architecture = SMOLLM2 | {"initializer_range": 0.8, "num_hidden_layers": 6}
    model, tokenizer = build(FromScratch(**{**SCRATCH, "architecture": architecture}), TEMPLATE, seed=0)
    for part in (model, tokenizer):
        part.save_pretrained(base)
    config = Model(name=str(base), dtype="bfloat16")
    policy = Policy(attach_tuner(load_base(config, "plain")[0], Lora(r=4, alpha=8), config, "plain", 0), 1.0)
    move(policy.trainable, 0.1)
    save_adapter(policy.model, adapter)
    before = [log_probs(policy.model, prompt) for prompt in PROMPTS[:8]]
    write_merged(policy.model, tokenizer, PROMPTS[:8], out)
    merged_at_load, _ = load_base(config.model_copy(update={"adapter": str(adapter)}), "plain")
    read = AutoModelForCausalLM.from_pretrained(out, dtype="auto")
    assert max(distance(one, log_probs(read, ids)) for one, ids in zip(before, PROMPTS[:8], strict=True)) > 0.2
    for name, weight in read.state_dict().items():
        assert weight.dtype == torch.bfloat16 and torch.equal(weight, merged_at_load.state_dict()[name])


def test_a_forward_that_casts_to_the_dtype_of_its_config_can_be_merged(adapted):
    """Unsloth's does on a GPU, and its norms keep the dtype of what they get: it met weights in float32."""
    folder, *_ = adapted["qwen3"]
    base, _ = load_base(Model(name=str(folder), dtype="bfloat16"), "plain")
    base.get_input_embeddings().register_forward_hook(lambda module, args, states: states.to(base.config.dtype))
    for layer in base.model.layers:
        layer.input_layernorm.register_forward_hook(lambda module, args, states: states.to(args[0].dtype))
    model = merged(put_on(base, folder / "adapter", "adapter"), "adapter", PROMPTS[:2])
    assert model.config.dtype == model.dtype == torch.bfloat16


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0], ids=["left out", "half", "twice"])
def test_a_wrong_merge_in_bfloat16_is_refused(adapted, factor, monkeypatch):
    """One of 21 targets is merged with another scale than the adapter has."""
    folder, *_ = adapted["qwen3"]
    model = put_on(load_base(Model(name=str(folder), dtype="bfloat16"), "plain")[0], folder / "adapter", "adapter")
    layer = model.get_submodule("base_model.model.model.layers.1.mlp.down_proj")
    delta = layer.get_delta_weight("default")
    monkeypatch.setattr(layer, "get_delta_weight", lambda name: delta * factor)
    with pytest.raises(ConfigError, match="the merged model differs: in float32 its log-probs are"):
        merged(model, "some/adapter", PROMPTS[:8])


def test_a_merged_model_that_is_not_what_was_written_keeps_no_name(adapted, tmp_path, monkeypatch):
    from lib.core.errors import NumericError

    folder, tokenizer, _ = adapted["qwen3"]
    base, _ = load_base(Model(name=str(folder)), "plain")
    model = put_on(base, folder / "adapter", "adapter")
    save = type(base).save_pretrained

    def wrong(self, where):
        save(self, where)
        tensors = load_file(where / "model.safetensors")
        tensors["model.norm.weight"] *= 1.01
        save_file(tensors, where / "model.safetensors", {"format": "pt"})

    monkeypatch.setattr(type(base), "save_pretrained", wrong)
    with pytest.raises(NumericError, match="read back, the merged model answers differently"):
        write_merged(model, tokenizer, PROMPTS[:2], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()

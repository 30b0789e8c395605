"""What the memory estimate counts, against what autograd keeps and what steps are made of.

The log (docs/log) holds the whole against the peak of real runs.
"""

import pytest
import torch
from conftest import SCRATCH, TEMPLATE, inputs_of
from helpers.tiny import limits

from lib.core.config import Distill, FromScratch, Lora, Model, ScoreConfig, SelfPlayConfig, TrainedModel
from lib.model.loading import adapted_layers, attach_tuner
from lib.model.policy import Policy
from lib.model.scratch import build
from lib.rl.estimate import GIB, Load, load_of_groups, load_of_tree, needs_of, numbers_kept

SHAPE = {"hidden_size": 64, "intermediate_size": 160, "num_attention_heads": 4, "max_position_embeddings": 512}
KINDS = {
    "llama": {"num_key_value_heads": 2},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 32},
    "gpt_neox": {},
    "gemma2": {"num_key_value_heads": 2, "head_dim": 16},
}
ROWS, TOKENS = 4, 120


def kept(kind, dtype, layers):
    """Bytes that autograd saves of a token in a forward of so many layers; and the model with its LoRA."""
    architecture = {"model_type": kind, **SHAPE, **KINDS[kind], "num_hidden_layers": layers}
    model, _ = build(FromScratch(**{**SCRATCH, "architecture": architecture}), TEMPLATE, seed=0)
    model = model.to(dtype).requires_grad_(False)
    lora = Lora(r=4, alpha=8, targets="all-linear")
    adapted = adapted_layers(model, lora).values()  # before they are wrapped
    expected = numbers_kept(model, adapted, lora.r, dtype == torch.bfloat16)
    policy = Policy(attach_tuner(model, lora, Model(name="tiny", backend="plain"), "plain", 0), 1.0)
    weights = {part.untyped_storage().data_ptr() for part in (*policy.parameters(), *policy.buffers())}
    saved = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            saved[storage.data_ptr()] = storage.nbytes(), tensor  # held, so that its place stays its own
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        policy.hidden_states(inputs_of([[6 + i % 30 for i in range(TOKENS)]] * ROWS))
    return sum(size for size, _ in saved.values()) / (ROWS * TOKENS), expected * dtype.itemsize


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_keeps_what_is_counted(kind, dtype):
    few, expected = kept(kind, dtype, 2)
    more, _ = kept(kind, dtype, 4)
    assert expected == pytest.approx((more - few) / 2, rel=0.25)


def score(**train):
    sizes = {"stage1_batch_size": 3, "stage2_batch_size": 4, "attempts_per_prompt": 2, "revisions_per_attempt": 3}
    return ScoreConfig(
        model={"name": "x"}, dataset={"name": "x"}, prompts={"self_correction": "?"}, run_name="x", train=sizes | train,
        generation=limits(prompts=(100, 1000), answers=(30, 50)), eval={"max_examples": 10, "samples_per_prompt": 2},
    )  # fmt: skip


def test_a_step_has_what_it_has_however_much_a_micro_batch_may():
    """Second prompts of 70 tokens: 8 first attempts x 3 revisions of 50."""
    whole = load_of_tree(score(micro_batch_tokens=100_000), True, 70, 1000)
    assert whole == Load(rows=24, columns=120, tokens=8 * (70 + 3 * 50), scored=8 * (30 + 3 * 50))
    part = load_of_tree(score(micro_batch_tokens=700), True, 70, 1000)
    assert (part.tokens, part.scored) == (3 * 220, 3 * 180)
    one = load_of_tree(score(micro_batch_tokens=10), True, 70, 1000)
    assert one.tokens == 220  # one sequence, at least
    apart = load_of_tree(score(micro_batch_tokens=100_000), False, 70, 1000)
    assert (apart.tokens, apart.scored) == (24 * 120, 24 * (30 + 50))
    wide = score().model_copy(update={"eval": score().eval.model_copy(update={"samples_per_prompt": 16})})
    evaluating = load_of_tree(wide, True, 70, 1000)
    assert evaluating.rows == 160  # an evaluation answers more at once


def test_the_groups_of_a_minibatch():
    config = SelfPlayConfig(
        model={"name": "x"}, dataset={"name": "x"}, run_name="x", eval={"max_examples": 10, "samples_per_prompt": 1},
        generation={"max_prompt_length": 100, "max_new_tokens": 40},
        train={"batch_size": 6, "group_size": 4, "minibatches": 2, "micro_batch_tokens": 100_000},
    )  # fmt: skip
    assert load_of_groups(config, True, 20, 1000) == Load(24, 60, 3 * (20 + 4 * 40), 3 * 4 * 40)


def test_checkpointing_and_narrow_weights_need_less(tiny):
    load = Load(rows=8, columns=64, tokens=4096, scored=2048)

    def needs(**model):
        config = score().model_copy(update={"model": TrainedModel(name="x", **model)})
        return needs_of(tiny[0], config, load)

    wide, narrow, saving = needs(), needs(dtype="bfloat16"), needs(gradient_checkpointing=True)
    assert sum(narrow.update.values()) < sum(wide.update.values()) > sum(saving.update.values())
    copied = sum(p.numel() for name, p in tiny[0].named_parameters() if "layers" in name)
    assert [need.sampling["sampling: copies of weights"] for need in (wide, narrow)] == [4 * copied, 2 * copied]
    assert wide.lines()[-1] == f"{wide.peak / GIB:9.3f} GiB  peak, at full length"


def test_a_teacher_of_tokens_needs_its_weights(tiny):
    load, distill = Load(rows=8, columns=64, tokens=4096, scored=2048), Distill(model={"name": "y"})
    second = needs_of(tiny[0], score().model_copy(update={"distill": distill}), load, tiny[0])
    weights = second.always["weights of the teacher"]  # in float32, as the policy
    assert weights == 4 * sum(parameter.numel() for parameter in tiny[0].parameters())
    assert second.peak - needs_of(tiny[0], score(), load).peak == weights

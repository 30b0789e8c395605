"""The memory estimate counts weights, adapter, optimizer, cache and logits."""

from helpers.tiny import limits

from lib.core.config import Distill, ScoreConfig, SelfPlayConfig, TrainedModel
from lib.rl.estimate import needs_of, rows_at_once


def score(**settings):
    sizes = {"stage1_batch_size": 3, "stage2_batch_size": 4, "attempts_per_prompt": 2, "revisions_per_attempt": 3}
    return ScoreConfig(
        model={"name": "x"}, dataset={"name": "x"}, prompts={"self_correction": "?"}, run_name="x", train=sizes,
        generation=limits(prompts=(100, 1000), answers=(30, 50)), eval={"max_examples": 10} | settings,
    )  # fmt: skip


def test_the_rows_of_a_step_or_of_an_evaluation():
    assert rows_at_once(score(), 1000) == 4 * 2 * 3
    assert rows_at_once(score(samples_per_prompt=16), 1000) == 160  # an evaluation answers more at once
    assert rows_at_once(score(samples_per_prompt=16), 2) == 32
    config = SelfPlayConfig(
        model={"name": "x"}, dataset={"name": "x"}, run_name="x", eval={"max_examples": 10},
        generation={"batch_size": 20}, train={"batch_size": 6, "group_size": 4},
    )  # fmt: skip
    assert rows_at_once(config, 1000) == 20


def test_narrow_weights_need_half_and_a_teacher_its_own(tiny):
    def needs(teacher=None, **model):
        config = score().model_copy(update={"model": TrainedModel(name="x", **model)})
        if teacher:
            config = config.model_copy(update={"distill": Distill(model={"name": "y"})})
        return needs_of(tiny[0], config, 8, 64, teacher)

    wide, narrow, taught = needs(), needs(dtype="bfloat16"), needs(tiny[0])
    assert wide["weights"] == 4 * sum(parameter.numel() for parameter in tiny[0].parameters()) == 2 * narrow["weights"]
    assert taught == wide | {"weights of the teacher": wide["weights"]}
    cache = "cache of 8 completions of 64 tokens, fewer where memory is short"
    shape = tiny[0].config
    assert narrow[cache] == 8 * 64 * 2 * 2 * shape.num_hidden_layers * shape.num_key_value_heads * shape.head_dim

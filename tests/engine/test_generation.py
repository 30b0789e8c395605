import contextlib

import pytest
import torch
from conftest import after

from engine import Decoding, Turn, generate, sampling
from engine.sampling import left_padded
from lib.model import policy as policies
from lib.model.policy import stop_ids

PROMPTS = ["1", "<|user|>12+3=?<|im_end|><|assistant|>", "a b c d", "0123456789"]
NOTHING = frozenset([-1])


@pytest.fixture(params=["continuous", "by batches"], autouse=True)
def way(request, monkeypatch):
    """Everything here holds for both ways to decode."""
    if request.param == "by batches":
        monkeypatch.setattr(policies, "attends_to_everything", lambda model: False)


@pytest.fixture
def policy(make_policy, way):
    return make_policy(moved=0.3)


@pytest.fixture(scope="module")
def prompts(tokenizer):
    return [tokenizer(text)["input_ids"] for text in PROMPTS]


def sample(policy, prompts, stops=NOTHING, budget=20, copies=1, **changes):
    """Completions of the prompts, in their order."""
    options = {"temperature": 1.0, "pad_id": 0, "rows": 256, **changes}
    columns = max(map(len, prompts), default=0) + budget
    turns = {(i,): Turn(prompt, budget, copies) for i, prompt in enumerate(prompts)}
    found = generate(policy, turns, Decoding(stop_ids=stops, columns=columns, **options))
    assert len(found) == len(prompts) * copies
    return [found[i, copy] for i in range(len(prompts)) for copy in range(copies)]


def ids_of(completions):
    return [completion.ids for completion in completions]


def cut_at(ids, stops):
    """What a sequence sampled without any end is with these."""
    for length, token in enumerate(ids, start=1):
        if token in stops:
            return ids[:length], True
    return ids, False


def test_without_an_end_the_budget_is_used_and_nothing_is_finished(policy, prompts):
    for completion in sample(policy, prompts):
        assert len(completion.ids) == len(completion.logps) == 20
        assert not completion.finished
        assert completion.text_ids() == completion.ids


def test_the_caller_times_it_and_may_end_it_before_any_token(policy, prompts):
    phases, checks = [], []

    @contextlib.contextmanager
    def phase(name):
        phases.append(name)
        yield

    def check():
        checks.append(len(checks))
        if len(checks) == 5:
            raise InterruptedError

    turns = {(i,): Turn(prompt, 20) for i, prompt in enumerate(prompts)}
    decoding = Decoding(1.0, NOTHING, pad_id=0, rows=256, columns=max(map(len, prompts)) + 20)
    with pytest.raises(InterruptedError):
        generate(policy, turns, decoding, phase=phase, check_interrupt=check)
    assert phases == ["sync", "generate"] and checks == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("pad", ["another id", "the first end", "the last end"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_row_ends_at_the_first_of_its_ends_whatever_the_pad_is(policy, prompts, pad, count):
    free = ids_of(sample(policy, prompts, temperature=0))
    stops = sorted({free[1][3], free[3][6], free[0][10]})[:count]
    pad_id = {"another id": 1, "the first end": stops[0], "the last end": stops[-1]}[pad]
    for expected, got in zip(
        free, sample(policy, prompts, frozenset(stops), temperature=0, pad_id=pad_id), strict=True
    ):
        ids, finished = cut_at(expected, stops)
        assert (got.ids, got.finished, len(got.logps)) == (ids, finished, len(ids))
        assert got.text_ids() == (ids[:-1] if finished else ids)


def test_an_end_at_the_last_place_is_an_end(policy, prompts):
    free = sample(policy, prompts[:1], temperature=0)[0].ids
    first = free.index(free[4])
    (got,) = sample(policy, prompts[:1], frozenset([free[4]]), temperature=0, budget=first + 1)
    assert got.finished
    assert got.ids == free[: first + 1]


def test_an_end_within_the_prompt_ends_nothing(policy, tokenizer):
    prompt = [tokenizer.eos_token_id, tokenizer.eos_token_id, 9]
    (free,) = sample(policy, [prompt], temperature=0)
    (got,) = sample(policy, [prompt], frozenset(prompt[:2]), temperature=0)
    assert (got.ids, got.finished) == cut_at(free.ids, prompt[:2])


def test_greedy_is_what_transformers_generates(policy, prompts):
    free = ids_of(sample(policy, prompts, temperature=0))
    stops = frozenset([free[1][3], free[3][6]])
    ours = sample(policy, prompts, stops, temperature=0)
    ids, mask = left_padded(prompts, 0, policy.device)
    with policy.generation_mode() as model:
        theirs = model.generate(
            input_ids=ids, attention_mask=mask, do_sample=False, max_new_tokens=20,
            eos_token_id=sorted(stops), pad_token_id=0,
        )[:, ids.shape[1] :]  # fmt: skip
    assert {completion.finished for completion in ours} >= {True}
    for mine, other in zip(ours, theirs.tolist(), strict=True):
        assert mine.ids == other[: len(mine.ids)]
        assert set(other[len(mine.ids) :]) <= {0}


@pytest.mark.parametrize("temperature", [0.6, 1.0])
def test_log_probs_are_those_of_the_policy_at_the_sampling_temperature(make_policy, prompts, temperature):
    policy = make_policy(temperature=temperature, moved=0.3)
    free = sample(policy, prompts, temperature=temperature)
    for prompt, completion in zip(prompts, free, strict=True):
        logp = policy(after(prompt, completion.ids))[0]
        torch.testing.assert_close(logp, torch.tensor(completion.logps), rtol=0, atol=1e-4)
    assert (logp < -0.1).any()  # so a wrong temperature would show


def test_rows_that_leave_the_batch_do_not_change_the_others(policy, prompts, monkeypatch):
    many = prompts * 3
    free = ids_of(sample(policy, many, temperature=0))
    stops = frozenset([free[1][2], free[3][4], free[2][6]])
    expected = [cut_at(ids, stops) for ids in free]
    widths = []
    choose = sampling.choose
    monkeypatch.setattr(sampling, "choose", lambda logits, *rest: widths.append(len(logits)) or choose(logits, *rest))
    together = sample(policy, many, stops, temperature=0)
    assert min(widths) < max(widths) == 12  # some did leave
    alone = [sample(policy, [prompt], stops, temperature=0)[0] for prompt in prompts] * 3
    by_two = sample(policy, many, stops, temperature=0, rows=2)
    for completions in (together, alone, by_two):
        assert [(completion.ids, completion.finished) for completion in completions] == expected
    for mine, other in zip(together, alone, strict=True):
        assert mine.logps == pytest.approx(other.logps, abs=1e-5)


def test_a_seed_decides_and_nothing_else_is_drawn(policy, prompts):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again, other = (ids_of(sample(policy, prompts, seed=seed)) for seed in (0, 0, 1))
    assert first == again != other
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    assert ids_of(sample(policy, prompts)) == first


def test_samples_have_the_frequencies_of_the_model(policy, prompts):
    draws = sample(policy, prompts[:1], budget=1, copies=4000, rows=4000)
    counts = torch.bincount(torch.tensor([draw.ids[0] for draw in draws]), minlength=60) / 4000
    for draw in draws[:50]:
        probability = torch.tensor(draw.logps[0]).exp()
        assert abs(counts[draw.ids[0]] - probability) < 4 * (probability * (1 - probability) / 4000).sqrt() + 1e-3


def test_completions_belong_to_their_prompts_whatever_the_order(policy, prompts):
    backwards = sample(policy, prompts[::-1], temperature=0)
    assert ids_of(backwards)[::-1] == ids_of(sample(policy, prompts, temperature=0))
    assert sample(policy, []) == []


def test_every_end_that_is_declared_counts(tiny):
    model, tokenizer = tiny
    eos = tokenizer.eos_token_id
    declared = model.generation_config.eos_token_id
    try:
        for value, expected in ((None, {eos}), (7, {7, eos}), ([7, 8], {7, 8, eos})):
            model.generation_config.eos_token_id = value
            assert stop_ids(model, tokenizer) == expected
    finally:
        model.generation_config.eos_token_id = declared

"""The slab of keys and values, and continuous decoding in it, held against the models' own forward and cache."""

import gc
import itertools
import math
import warnings
import weakref

import pytest
import torch
from conftest import after
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig, AutoModelForCausalLM

from engine import Decoding, NonFinite, Turn, decoder, generate, sampling, slab
from engine.decoder import Decoder, affordable_rows, bytes_per_token
from engine.llama import StackedLlama
from engine.sampling import choose
from lib.core.config import Lora, Model
from lib.model.loading import attach_tuner
from lib.model.policy import Policy

PROMPTS = [[5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15], [20, 21, 22, 23, 24], [30]]
RETRY = [3, 17, 4]
K1, K2 = 3, 2
STOPS = frozenset([1, 9, 16, 28])
NOTHING = frozenset([-1])


@pytest.fixture(scope="module")
def policy(make_policy):
    return make_policy(moved=0.3)


def second(path, completion):
    """Most conversations continue; some with a text of their own, one ends, and budgets and copies differ."""
    if len(path) == 3 or path == (3, 1):
        return None
    start = PROMPTS[path[0]] if path[1] != 2 else [19, 18]
    return Turn([*start, *completion.ids, *RETRY], 9 + 4 * path[1], K2 + (path == (0, 0)))


def goes_on(path, completion):
    """Every conversation continues from the very tokens that it has."""
    return Turn([*PROMPTS[path[0]], *completion.ids, *RETRY], 9, K2) if len(path) == 2 else None


def grown(policy, follow_up=second, reverse=False, **changes):
    """The completions of the whole tree, by path."""
    options = {"temperature": 1.0, "stop_ids": STOPS, "pad_id": 0, "rows": 100, "columns": 40, **changes}
    turns = {(i,): Turn(ids, 12, K1) for i, ids in enumerate(PROMPTS)}
    return generate(policy, dict(reversed(turns.items())) if reverse else turns, Decoding(**options), follow_up)


@pytest.fixture(scope="module")
def by_batches(policy):
    """The same tree by the model's own forward and cache."""
    found = {}

    def grow(**changes):
        key = tuple(sorted(changes.items()))
        if key not in found:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(policy, "supports_slab", False)
                patch.setattr(sampling, "_Continuous", None)
                found[key] = grown(policy, **changes)
        return found[key]

    return grow


def assert_same(mine, other, logps=1e-4):
    assert set(mine) == set(other)
    for path, completion in other.items():
        assert (mine[path].ids, mine[path].finished) == (completion.ids, completion.finished), path
        assert mine[path].logps == pytest.approx(completion.logps, abs=logps), path


# -- continuous decoding


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("temperature", [0.0, 0.8, 1.0])
def test_continuous_decoding_writes_what_the_models_own_cache_does(policy, by_batches, temperature, rows):
    assert policy.supports_masks
    for seed in range(3):
        mine = grown(policy, temperature=temperature, rows=rows, seed=seed)
        assert_same(mine, by_batches(temperature=temperature, seed=seed))
    lengths = {len(completion.ids) for completion in mine.values()}
    finished = {completion.finished for completion in mine.values()}
    assert len(lengths) > 4  # rows ended at different times
    assert finished == {True, False}


def test_every_path_comes_back(policy):
    firsts = {(i, k) for i in range(4) for k in range(K1)}
    seconds = {(*path, k) for path in firsts - {(3, 1)} for k in range(K2 + (path == (0, 0)))}
    for rows in (1, 3, 100):
        assert set(grown(policy, rows=rows)) == firsts | seconds


def test_neither_rows_nor_order_change_a_sample(policy):
    expected = grown(policy, seed=2**61 + 3)
    for rows in (1, 3, 100):
        assert_same(grown(policy, seed=2**61 + 3, rows=rows, reverse=True), expected, logps=1e-5)
    others = grown(policy, seed=2**61 + 4)
    assert sum(others[path].ids != completion.ids for path, completion in expected.items() if path in others) > 10


def test_a_completion_does_not_depend_on_the_others(policy):
    expected = grown(policy)
    alone = generate(
        policy, {(2,): Turn(PROMPTS[2], 12)}, Decoding(1.0, STOPS, pad_id=0, rows=1, columns=40), lambda *_: None
    )
    assert_same(alone, {(2, 0): expected[2, 0]}, logps=1e-5)


def test_the_copies_of_a_prompt_differ(policy):
    found = grown(policy, stop_ids=NOTHING)
    for i in range(4):
        assert len({tuple(found[i, k].ids) for k in range(K1)}) == K1
        assert found[i, 0, 0].ids != found[i, 0, 1].ids


@pytest.mark.parametrize("seed", [0, 2**61 + 3])
def test_no_two_paths_share_a_random_stream(seed):
    """numpy pads a short seed with zeros: what names a first attempt must not name its first revision too."""
    paths = [(i, k) for i in range(3) for k in range(3)]
    paths += [(*path, k) for path in paths for k in range(3)]
    members = [sampling._Member(path, Turn([], max_new_tokens=3 + len(path), copies=3)) for path in paths]
    decoding = Decoding(1.0, NOTHING, pad_id=0, rows=1, columns=1, seed=seed)
    rows = sampling._uniforms(members, 8, decoding)
    assert rows.dtype == torch.float64
    drawn = [row[: 3 + len(path)] for path, row in zip(paths, rows, strict=True)]
    assert len({*torch.cat(drawn).tolist()}) == sum(map(len, drawn))  # not one number twice
    for part in (members[::-1], members[20:3:-4], *([member] for member in members)):  # nor do the others matter
        numbers = dict(zip((member.path for member in part), sampling._uniforms(part, 7, decoding), strict=True))
        for path, expected in zip(paths, drawn, strict=True):
            assert path not in numbers or torch.equal(numbers[path][: len(expected)], expected)


def fed(monkeypatch):
    """The tokens of each text that is read from now on."""
    counts, feed = [], Decoder.feed
    monkeypatch.setattr(
        Decoder, "feed", lambda self, first, texts: counts.extend(map(len, texts)) or feed(self, first, texts)
    )
    return counts


def test_a_prompt_is_read_once_and_of_a_follow_up_only_what_is_new(policy, monkeypatch):
    counts = fed(monkeypatch)
    found = grown(policy, goes_on)
    assert len(found) == 4 * K1 * (1 + K2)
    assert sorted(counts[:4]) == sorted(map(len, PROMPTS))
    assert counts[4:] == [1 + len(RETRY)] * 4 * K1  # the last token of attempt 1 was sampled, but never fed


def test_what_found_no_place_is_read_again(policy, by_batches, monkeypatch):
    counts = fed(monkeypatch)
    tight = grown(policy, goes_on, rows=3)
    assert len(counts) > 4 + 4 * K1  # follow-ups were parted, or lost the rows that they waited in
    assert_same(tight, by_batches(follow_up=goes_on))


def test_a_follow_up_with_a_text_of_its_own_is_read_whole(policy, monkeypatch):
    counts = fed(monkeypatch)
    found = grown(policy, lambda path, completion: Turn([2, *completion.ids], 4) if len(path) == 2 else None)
    assert sorted(counts[4:]) == sorted(1 + len(found[path].ids) for path in found if len(path) == 2)


@pytest.mark.parametrize("rows", [3, 100])
def test_steps_of_fixed_sizes_write_the_same(policy, by_batches, monkeypatch, rows):
    """What a GPU records: more rows and columns than are in use."""

    class Fixed(Decoder):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.fixed_sizes = True

    sizes, real = set(), decoder._FixedStep.__init__
    monkeypatch.setattr(sampling, "Decoder", Fixed)
    monkeypatch.setattr(decoder, "ROWS_STEP", 5)
    monkeypatch.setattr(decoder, "COLUMNS_STEP", 16)
    monkeypatch.setattr(
        decoder._FixedStep, "__init__", lambda self, of, *more: sizes.add(more[:2]) or real(self, of, *more)
    )
    assert_same(grown(policy, rows=rows), by_batches())
    columns = {columns for _, columns in sizes}
    assert {16, 32} <= columns <= {16, 32, 40}  # all 40 if the widest row has ended, which is not asked at every step
    assert {held for held, _ in sizes} == ({3} if rows == 3 else {held for held, _ in sizes if held % 5 == 0})


@pytest.mark.parametrize("kind", ["qwen3", "gemma"])
def test_a_decoder_that_is_dropped_is_freed_with_its_recorded_steps(make_policy, kind):
    """At once, not whenever garbage is next collected: its slab may be most of the memory."""
    policy = make_policy(kind=kind)
    assert policy.supports_masks
    gc.collect()
    gc.disable()
    try:
        with policy.generation_mode():
            slab = Decoder(policy.backbone, 3, 16, policy.llama and policy.llama.for_decoding(16))
            slab.fixed_sizes = True
            slab.feed(0, PROMPTS[:1])
            slab.step(torch.tensor([5]), torch.tensor([True]), widest=4)
            assert slab._steps
            held = [weakref.ref(each) for each in (slab, slab._slab, slab._slab._keys[0])]
            del slab
            assert [each() for each in held] == [None] * 3
    finally:
        gc.enable()


class Devices(TorchDispatchMode):
    """Where the tensors lie that operations return, with the operations."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.seen.add((result.device.type, str(function)))
        return result


@pytest.mark.parametrize("queries", [1, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_llama_family_decodes_on_the_models_device_alone(make_policy, dtype, queries):
    """The meta device stands for a GPU, which refuses to be mixed with the CPU."""
    policy = make_policy(moved=0.3)
    policy.model.to("meta", dtype)
    tokens = torch.zeros(3, queries, dtype=torch.long, device="meta")
    with policy.generation_mode(), Devices() as devices:
        forward = policy.llama.for_decoding(16)
        hidden = Decoder(policy.backbone, 3, 16, forward)._forward(0, tokens, tokens, 4)
    assert isinstance(forward, StackedLlama)
    assert hidden.shape == (3, queries, 16)
    assert {each for each in devices.seen if each[0] != "meta"} == set()


@pytest.mark.parametrize("limit", ["PREFILL_TOKENS", "ATTENDED_TOKENS"])
def test_prompts_that_are_read_in_several_forwards_give_the_same(policy, by_batches, monkeypatch, limit):
    monkeypatch.setattr(decoder, limit, 12)
    assert_same(grown(policy), by_batches())


def test_a_slab_that_grows_with_its_texts_gives_the_same(policy, by_batches, monkeypatch):
    slabs = []

    class Tight(slab.Slab):
        def __init__(self, rows, columns, _):
            super().__init__(rows, columns, True)
            slabs.append(self)

        def _widen(self, columns):
            super()._widen(columns)
            self.widths = [*getattr(self, "widths", []), columns]

    monkeypatch.setattr(decoder, "Slab", Tight)
    monkeypatch.setattr(slab, "LEAST_GROWTH", 1)
    assert_same(grown(policy), by_batches())
    (only,) = slabs
    assert len(only.widths) > 3 and only.widths == sorted(only.widths)
    assert only._keys[0].shape[2] == only.widths[-1] <= 40


def test_what_a_follow_up_computes_can_be_trained_on(policy):
    """Decoding runs in inference mode, whose tensors autograd refuses; what follows an answer is others' code."""
    made = []

    def makes(path, completion):
        made.append((torch.ones(3), torch.is_inference_mode_enabled(), torch.is_grad_enabled()))

    grown(policy, makes)
    tensor, *modes = made[0]
    assert modes == [False, False]
    weight = torch.ones(3, requires_grad=True)
    (tensor * weight).sum().backward()
    assert weight.grad.tolist() == [1, 1, 1]


def test_rows_that_move_keep_their_texts(policy):
    """arrange: overlapping moves and copies, and an emptied row that starts anew."""
    texts = [[5, 6, 7, 8], [9, 10, 11], [12, 13]]

    def alone(text):
        with policy.generation_mode():
            return Decoder(policy.backbone, 1, 16).feed(0, [text])[0]

    with policy.generation_mode():
        slab = Decoder(policy.backbone, 5, 16)
        slab.feed(0, texts)
        slab.arrange([1, 0, 2, 1, None])
        assert slab.lengths.tolist() == [3, 4, 2, 3, 0]
        hidden = slab.step(torch.tensor([20, 21, 22, 23]), torch.tensor([True, True, False, True]), widest=5)
        assert slab.lengths.tolist() == [4, 5, 2, 4, 0]
        more = slab.feed(2, [[27]]), slab.feed(3, [[24, 25], [26]])
    for mine, text in zip(hidden[[0, 1, 3]], ([9, 10, 11, 20], [5, 6, 7, 8, 21], [9, 10, 11, 23]), strict=True):
        torch.testing.assert_close(mine, alone(text), rtol=0, atol=1e-5)
    for mine, text in zip(torch.cat(more), ([12, 13, 27], [9, 10, 11, 23, 24, 25], [26]), strict=True):
        torch.testing.assert_close(mine, alone(text), rtol=0, atol=1e-5)


def test_a_text_that_would_outgrow_its_row_is_refused(policy):
    with pytest.raises(ValueError, match="ask for more columns"):
        grown(policy, columns=19)  # 8 + 12 tokens
    with pytest.raises(ValueError, match="ask for more columns"):
        grown(policy, goes_on, columns=31, stop_ids=NOTHING)  # 8 + 12 + 3 + 9


def test_the_models_own_attention_comes_back(policy):
    config = policy.language_model.config
    before = config._attn_implementation

    def fails(path, completion):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grown(policy, fails)
    assert config._attn_implementation == before == "sdpa"


def test_short_memory_means_fewer_rows_and_the_same_text(policy, by_batches, monkeypatch):
    model = policy.language_model
    assert bytes_per_token(model) == 2 * 2 * 1 * 8 * 4  # keys and values, layers, heads, head_dim, bytes
    assert affordable_rows(model, 1) > 1000
    assert affordable_rows(model, 2**50) == 1
    shapes, real = [], Decoder.__init__
    monkeypatch.setattr(
        Decoder, "__init__", lambda self, model, *more: shapes.append(more[:2]) or real(self, model, *more)
    )
    monkeypatch.setattr(sampling, "affordable_rows", lambda model, columns: 2)
    assert_same(grown(policy), by_batches())
    assert shapes == [(2, 40)]


# -- choosing a token


def stepped(logits, uniforms):
    """`choose` with the same logits for every uniform number, a thousand at a time."""
    parts = [choose(logits.repeat(len(part), 1), part) for part in uniforms.split(1000)]
    return [torch.cat(column) for column in zip(*parts, strict=True)]


def spread(size):
    """Logits with a long flat tail that holds half of the probability."""
    logits = 2 * torch.randn(size, generator=torch.Generator().manual_seed(size))
    heavy = torch.randperm(size, generator=torch.Generator().manual_seed(1))[: size // 20]
    logits[heavy] += math.log(19 * 2)
    return logits


@pytest.mark.parametrize("size", [60, 64, 1000, 5000])
def test_a_fine_grid_of_uniforms_gives_the_cumulative_distribution(size):
    logits, count = spread(size), 20_000
    tokens, logps = stepped(logits, (torch.arange(count, dtype=torch.float64) + 0.5) / count)
    assert (tokens.diff() >= 0).all()
    p = logits.double().softmax(-1)
    measured = torch.bincount(tokens, minlength=size).cumsum(0) / count
    assert (measured - p.cumsum(0)).abs().max() < 1.01 / count + 1e-6
    torch.testing.assert_close(logps, logits.log_softmax(-1)[tokens], rtol=0, atol=2e-5)


@pytest.mark.parametrize("size", [60, 5000])
def test_tokens_have_the_frequencies_of_the_distribution(size):
    logits, count = spread(size), 20_000
    tokens, _ = stepped(logits, torch.rand(count, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    groups = torch.arange(size) * 60 // size
    expected = torch.zeros(60, dtype=torch.float64).index_add_(0, groups, logits.double().softmax(-1)) * count
    counts = torch.bincount(groups[tokens], minlength=60)
    kept = expected > 5
    assert kept.sum() > 30
    chi_square = ((counts - expected).square() / expected)[kept].sum()
    assert chi_square < kept.sum() + 4 * (2 * kept.sum()) ** 0.5


@pytest.mark.parametrize("size", [60, 64, 128, 1000, 5000])
@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
def test_no_uniform_draws_a_token_of_probability_zero(size, uniform):
    """Block sums are rounded: the number must not fall behind the last token of its block that can be drawn."""
    first, last = size // 7, size // 2 + 3
    logits = torch.randn(500, size, generator=torch.Generator().manual_seed(0))
    logits[:, :first] = logits[:, last + 1 :] = -1e4
    tokens, logps = choose(logits.clone(), torch.full((500,), uniform, dtype=torch.float64))
    assert torch.isfinite(logps).all()
    assert (tokens == (first if uniform == 0 else last)).all()


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("size", [60, 5000])
def test_logits_that_are_not_finite_have_no_log_prob(wrong, size):
    logits = torch.zeros(2, size)
    logits[1, 7] = wrong
    for uniforms in (None, torch.tensor([0.5, 0.5], dtype=torch.float64)):
        assert choose(logits.clone(), uniforms)[1].isnan().tolist() == [False, True]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("in_slab", [True, False])
def test_logits_that_are_not_finite_end_sampling(make_policy, monkeypatch, temperature, in_slab):
    policy = make_policy(moved=0.3)
    monkeypatch.setattr(policy, "supports_slab", in_slab)
    weight = policy.head.weight
    weight.data = weight.data.clone()
    weight.data[7, 0] = math.inf
    with pytest.raises(NonFinite, match="the logits are not finite"):
        grown(policy, temperature=temperature)


@pytest.mark.parametrize("size", [60, 5000])
def test_greedy_is_the_most_likely_token(size):
    logits = 3 * torch.randn(200, size, generator=torch.Generator().manual_seed(0))
    tokens, logps = choose(logits.clone(), None)
    assert torch.equal(tokens, logits.argmax(-1))
    torch.testing.assert_close(logps, logits.log_softmax(-1).amax(-1), rtol=0, atol=1e-5)


# -- out of memory


def no_room(monkeypatch, above, at=0):
    """Forwards of more than `above` rows run out of memory from call `at` on; returns the rows of all."""
    sizes = []

    def checked(run, rows_of):
        def call(*arguments, **names):
            sizes.append(rows_of(*arguments))
            if len(sizes) > at and sizes[-1] > above:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return run(*arguments, **names)

        return call

    monkeypatch.setattr(Decoder, "step", checked(Decoder.step, lambda _self, tokens, *_: len(tokens)))
    monkeypatch.setattr(Policy, "next_logits", checked(Policy.next_logits, lambda _self, ids, *_: len(ids)))
    return sizes


@pytest.mark.parametrize("in_slab", [True, False])
@pytest.mark.parametrize("at", [0, 4, 15])
def test_out_of_memory_halves_the_rows_and_no_sample_changes(policy, monkeypatch, in_slab, at):
    monkeypatch.setattr(policy, "supports_slab", in_slab)
    expected, asked = grown(policy, rows=12), []
    sizes = no_room(monkeypatch, above=6, at=at)

    def follow_up(path, completion):
        asked.append(path)
        return second(path, completion)

    with pytest.warns(UserWarning, match="out of memory while sampling 12 completions at once: 6 are tried"):
        assert_same(grown(policy, follow_up, rows=12), expected)
    assert sorted(asked) == sorted(expected)  # each once, however often it was begun
    assert max(sizes) > 6 >= sizes[-1]


@pytest.mark.parametrize("above, rows", [(2, 12), (0, 1)])
def test_out_of_memory_again_is_final(policy, monkeypatch, above, rows):
    no_room(monkeypatch, above)
    with warnings.catch_warnings(), pytest.raises(torch.OutOfMemoryError):
        warnings.simplefilter("ignore")
        grown(policy, rows=rows)


def test_the_slab_that_was_too_large_is_free_when_the_next_is_made(policy, monkeypatch):
    no_room(monkeypatch, above=6, at=3)
    slabs, real = [], slab.Slab.__init__

    def noted(self, *arguments):
        assert not any(other() for other in slabs)
        slabs.append(weakref.ref(self))
        real(self, *arguments)

    monkeypatch.setattr(slab.Slab, "__init__", noted)
    with pytest.warns(UserWarning, match="6 are tried"):
        grown(policy, rows=12)
    assert len(slabs) == 2


# -- architectures

SHAPE = {
    "vocab_size": 60, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "initializer_range": 0.4, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
FULL = {
    "llama": {}, "qwen2": {}, "gemma": {"head_dim": 8}, "granite": {"logits_scaling": 3.0, "attention_multiplier": 0.2},
    "cohere": {"logit_scale": 0.5}, "olmo2": {}, "phi3": {}, "mistral": {"sliding_window": None}, "smollm3": {},
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "head_dim": 8},
    "gpt_neox": {}, "starcoder2": {"sliding_window": None},
}  # fmt: skip
WINDOW = {"sliding_window": 6}
LINEAR = {
    "linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "layer_types": ["linear_attention", "full_attention"],
}  # fmt: skip
OTHERS = {
    "mistral": WINDOW, "gemma3_text": {**WINDOW, "head_dim": 8}, "phi3": WINDOW,
    "gemma2": {**WINDOW, "head_dim": 8}, "qwen2": {**WINDOW, "use_sliding_window": True, "max_window_layers": 1},
    "bloom": {"n_head": 4}, "llama": {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}},
    "lfm2": {"layer_types": ["conv", "full_attention"]}, "qwen3_5_text": LINEAR,
    "minimax": {"layer_types": ["linear_attention", "full_attention"], "num_local_experts": 4, "head_dim": 8},
    "gpt_oss": {"layer_types": ["full_attention"] * 2, "num_local_experts": 4, "head_dim": 8},  # attention sinks
}  # fmt: skip


def random_policy(kind, fields):
    """A tiny random model of this architecture, with an adapter that has moved."""
    torch.manual_seed(0)
    attributes = {**SHAPE, **fields}
    if kind == "bloom":
        attributes = {name: value for name, value in attributes.items() if "key_value" not in name}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **attributes)).requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim == 1:  # norms and biases: so that a forgotten one would show
            parameter += 0.3 * torch.randn_like(parameter)
    policy = Policy(attach_tuner(model, Lora(r=4, targets="all-linear"), Model(name=kind), "plain", seed=0), 1.0)
    with torch.no_grad():
        for parameter in policy.trainable:
            parameter += 0.1 * torch.randn_like(parameter)
    return policy


def length_with(ids, ends):
    return next((n for n, token in enumerate(ids, start=1) if token in ends), len(ids))


def spread_of(rows, ends):
    """How differently long these ends make the rows, and how many they let continue."""
    lengths = sorted(length_with(row, ends) for row in rows)
    return len({*lengths}), lengths[-1] - lengths[len(rows) // 2]


def check_greedy(policy, supports_masks):
    """Greedy completions are those of transformers, also where rows end early; log-probs those of the policy."""
    assert policy.supports_masks == supports_masks
    with policy.generation_mode() as model:
        free = [
            model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=14, eos_token_id=None)
            for ids in PROMPTS
        ]
    free = [row[0, len(ids) :].tolist() for row, ids in zip(free, PROMPTS, strict=True)]
    stops = frozenset(
        max(itertools.combinations(sorted({*itertools.chain(*free)}), 2), key=lambda ends: spread_of(free, ends))
    )
    turns = {(i,): Turn(ids, 14, 2) for i, ids in enumerate(PROMPTS)}
    found = generate(policy, turns, Decoding(0.0, stops, pad_id=0, rows=7, columns=24))
    for (i, _), completion in found.items():
        assert completion.ids == free[i][: length_with(free[i], stops)]
        logps = policy(after(PROMPTS[i], completion.ids))[0].detach()
        torch.testing.assert_close(torch.tensor(completion.logps), logps, rtol=0, atol=1e-4)
    assert len({len(completion.ids) for completion in found.values()}) > 1  # some left before others


@pytest.mark.parametrize(("kind", "fields"), FULL.items(), ids=list(FULL))
def test_full_attention_goes_through_the_slab(kind, fields, monkeypatch):
    monkeypatch.setattr(sampling, "_by_batches", None)
    check_greedy(random_policy(kind, fields), supports_masks=True)


@pytest.mark.parametrize(("kind", "fields"), OTHERS.items(), ids=list(OTHERS))
def test_windows_recurrence_and_sinks_fall_back_to_the_models_own_cache(kind, fields, monkeypatch):
    monkeypatch.setattr(sampling, "_Continuous", None)
    check_greedy(random_policy(kind, fields), supports_masks=False)

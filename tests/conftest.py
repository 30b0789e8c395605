"""A tiny policy that is real in every part: a random Qwen3 of two layers, a character tokenizer, one LoRA adapter."""

import copy
import gc
import math
import os
import signal
import string
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a CPU suite, wherever it runs; benchmarks/gpu.py asks the GPU

import pytest
import torch
from helpers.weights import move

from judge import pool
from lib.core.config import Adapters, FromScratch, Generation, Lora, Model
from lib.model.adapters import shelf
from lib.model.loading import attach_tuner
from lib.model.policy import Inputs, Policy
from lib.model.scratch import build, build_tokenizer

torch.set_num_threads(1)
gc.disable()  # until the tests are collected: half of that would be the collector's
# ignored where a shell has begun the tests in the background, which the scripts under test would inherit
for interrupt in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(interrupt) == signal.SIG_IGN:
        signal.signal(interrupt, signal.default_int_handler if interrupt == signal.SIGINT else signal.SIG_DFL)

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SCRATCH = {
    "architecture": {
        "model_type": "qwen3", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "tie_word_embeddings": True,
        "initializer_range": 0.3, "max_position_embeddings": 256,
    },
    "characters": "0123456789+-=?. abcdefgABQR\n",
    "special_tokens": ["<|system|>", "<|user|>", "<|assistant|>", "<think>", "</think>", "<|other_end|>"],
}  # fmt: skip


collect_ignore = ["hostile"]  # some are named like tests, and pytest would import them
WHOLE = os.environ.get("WHOLE", "") not in ("", "0")  # as .ci/run has it


LONGEST = (  # test_*.py
    "resume", "alarms", "selfplay_runs", "shipped_tasks", "score", "sandbox", "collect", "sft_resume", "speedrun",
    "served_evaluation", "openai", "selfplay", "sft", "vllm", "rush_hour", "tool_loop", "watch", "unsloth", "decoder",
    "checkpoint", "sweep", "best", "report_page", "report", "web", "parsing", "scripts", "servers", "merging",
    "reading", "hub",
)  # fmt: skip

long = pytest.mark.skipif(not WHOLE, reason="long: WHOLE=1 runs it, as .ci/run does")


@pytest.hookimpl(optionalhook=True)  # of xdist, which -p no:xdist leaves out
def pytest_xdist_auto_num_workers(config):
    """Returns one process more than there are cores: a third of the time the tests wait for other processes."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items):
    """Puts the longest files first: where processes share the tests, none is left alone with one of them at the end."""
    places = {f"test_{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


def part(items, every):
    """Every n-th of a long corpus, from the first on; with WHOLE=1 all of it."""
    return items if WHOLE else items[::every]


def fewer(number, plain):
    """How often something long is done: `plain` times by the plain test command, `number` times with WHOLE=1."""
    return number if WHOLE else plain


def pytest_collection_finish():
    """What scripts are forked from begins its imports beside the first tests, where there are such scripts."""
    if "helpers.forks" in sys.modules:
        sys.modules["helpers.forks"].begin()
    gc.freeze()  # a trainer has the collector walk everything
    gc.enable()


def inputs_of(rows, scored=None, pad=0, width=None):
    """Texts to score, padded on the right; `scored` is a range of each or a mask (B, T); else all but the first."""
    width = width or max(map(len, rows))
    ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
    if not isinstance(scored, torch.Tensor):
        ranges = scored or [range(1, len(row)) for row in rows]
        scored = torch.tensor([[i in own for i in range(width)] for own in ranges])
    at = scored.flatten().nonzero()[:, 0]
    return Inputs(ids, torch.arange(width).expand_as(ids), predictors=at - 1, targets=ids.flatten()[at])


def after(prompt, ids):
    """One text, of which `ids` are scored."""
    return inputs_of([prompt + ids], [range(len(prompt), len(prompt) + len(ids))])


@pytest.fixture(scope="session")
def tiny():
    """The base model and its tokenizer. Copy the model before changing it."""
    return build(FromScratch(**SCRATCH), TEMPLATE, seed=0)


@pytest.fixture(scope="session")
def tokenizer(tiny):
    return tiny[1]


@pytest.fixture(scope="session")
def tiny_folder(tiny, tmp_path_factory):
    """The same pair on disk."""
    folder = tmp_path_factory.mktemp("tiny-base")
    for part in tiny:
        part.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def make_policy(tiny):
    """`make_policy()` is the base with an adapter that changes nothing; `make_policy(moved=0.1)` one that does.

    `kind` is another model type of the same size, `adapters` what else is trained.
    """
    bases = {"qwen3": tiny[0]}

    def make(temperature=1.0, moved=0.0, lora=None, kind="qwen3", adapters=None, **model):
        if kind not in bases:
            architecture = {**SCRATCH["architecture"], "model_type": kind}
            bases[kind] = build(FromScratch(**{**SCRATCH, "architecture": architecture}), TEMPLATE, seed=0)[0]
        base = copy.deepcopy(bases[kind])
        config = Model(name="tiny", backend="plain", **model)
        adapted = attach_tuner(base, lora or Lora(r=4, alpha=8), config, "plain", seed=0)
        shelf.attach(base, Adapters(**adapters or {}), seed=0)
        policy = Policy(adapted, temperature)
        move(policy.trainable, moved)
        return policy

    return make


@pytest.fixture(scope="session")
def limits():
    return Generation(max_prompt_length_attempt1=40, max_prompt_length_attempt2=120, max_new_tokens_attempt1=12,
                      max_new_tokens_attempt2=12)  # fmt: skip


@pytest.fixture(scope="module")
def sandbox():
    """For programs that are harmless."""
    with pool.Sandbox(workers=2, allow_unsafe=True) as running:
        yield running


@pytest.fixture(scope="module")
def shared_sandbox():
    """The sandbox of rewards and feedback, for programs that are harmless."""
    pool.configure(workers=2, allow_unsafe=True)
    yield
    pool.configure()


SPARE = 8  # hidden dimensions that are always zero in a chatterbox: what an adapter can write to


def chatterbox(folder, successors):
    """Saves a model whose next token depends on the last one only, by `{last: {next: chance}}`, and ends elsewhere.

    Its layers add nothing to an embedding. Tokens are printable characters and the tags.
    """
    architecture = {"model_type": "qwen3", "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
                    "num_key_value_heads": 1, "head_dim": 16, "tie_word_embeddings": False}  # fmt: skip
    tags = ["<|system|>", "<|user|>", "<|assistant|>", "<think>", "</think>", "<answer>", "</answer>"]
    characters = "".join(sorted(set(string.printable) - set("\t\r\x0b\x0c")))
    scratch = FromScratch(architecture=architecture, characters=characters, special_tokens=tags)
    size = len(build_tokenizer(scratch, TEMPLATE))
    scratch = scratch.model_copy(update={"architecture": architecture | {"hidden_size": size + SPARE}})
    model, tokenizer = build(scratch, TEMPLATE, seed=0)
    ids = tokenizer.convert_tokens_to_ids
    follow = torch.full((size, size), -30.0)  # (next, last) log-probs
    follow[ids("<|im_end|>"), :] = 0.0
    for last, chances in successors.items():
        follow[:, ids(last)] = -30.0
        for token, chance in chances.items():
            follow[ids(token), ids(last)] = math.log(chance)
    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(torch.eye(size, size + SPARE))
        model.lm_head.weight.normal_(generator=torch.Generator().manual_seed(0))
        # the final norm scales a unit vector by this root
        model.lm_head.weight[:, :size] = follow / math.sqrt(size + SPARE)
        model.model.layers[0].self_attn.o_proj.weight.zero_()
        model.model.layers[0].mlp.down_proj.weight.zero_()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder

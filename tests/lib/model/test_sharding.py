"""A base that several processes hold together: the same log-probs, gradients and texts as one that each has whole."""

import json
import os

import pytest
import torch
from helpers import forks
from helpers.ports import free_port
from helpers.weights import move

from engine import Decoding, Turn, is_sharded
from lib.core.config import FromScratch, Lora, TrainedModel
from lib.core.errors import ConfigError
from lib.generators.native import generate
from lib.model.loading import attach_tuner
from lib.model.policy import Policy
from lib.model.scratch import build
from lib.model.sharding import shard
from lib.rl.batching import PackedSequence, Span, evened, micro_batches
from lib.run.distributed import collect, make_accelerator, sum_gradients

KINDS = ("qwen3", "llama", "gemma2")  # the last one has no forward of our own
MODEL = {
    "architecture": {
        "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 8, "initializer_range": 0.1,
    },
    "characters": "0123456789",
    "special_tokens": ["<|user|>", "<|assistant|>"],
}  # fmt: skip
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|im_end|>{% endfor %}"
DECODING = Decoding(1.0, frozenset({1}), 0, rows=8, columns=24, seed=3)


def policy_of(kind, checkpointing, sharded):
    architecture = {**MODEL["architecture"], "model_type": kind}
    base = build(FromScratch(**{**MODEL, "architecture": architecture}), TEMPLATE, seed=0)[0]
    config = TrainedModel(name="tiny", backend="plain", gradient_checkpointing=checkpointing)
    model = attach_tuner(base, Lora(r=2, alpha=4), config, "plain", seed=0)
    if sharded:
        shard(model, base)
    policy = Policy(model, 1.0)
    move(policy.trainable, 0.1)
    return policy


def batches_of(rank, accelerator, evenly):
    """As many texts as the process's number says, one in each micro-batch."""
    texts = [[5, 6, 7, 8, 9][: 3 + n % 3] + [3 + n] for n in range(rank)]
    items = [PackedSequence(ids, len(ids), (), (Span(ids[1:], 0, 1, n),)) for n, ids in enumerate(texts)]
    batches = micro_batches(items, 1, 0, torch.device("cpu"))
    return evened(batches, 0, torch.device("cpu"), accelerator) if evenly else batches


def computed(policy, accelerator, rank, evenly):
    """Log-probs, gradients over all processes, and texts, of which there are as many as the process's number says."""
    logps, references = [], []
    for batch in batches_of(rank, accelerator, evenly):
        logp, *_ = policy(batch.inputs)
        (logp.sum() / 3).backward()
        logps += logp.tolist()
    sum_gradients(policy.trainable, accelerator)
    for batch in batches_of(rank, accelerator, False):  # without a gradient each as often as it likes
        references += policy.reference(batch.inputs)[0].tolist()
    turns = {(n,): Turn([5, 6, 7][: 1 + n], 4 + 2 * n, 2) for n in range(rank)}
    written = generate(policy, turns, DECODING)
    everyones = collect([sorted((path, each.ids) for path, each in written.items())], accelerator)
    snapshot = policy.snapshot()
    with torch.no_grad(), policy.with_adapter([0 * weight for weight in snapshot]):
        worn = policy(next(batches_of(3, accelerator, False)).inputs)[0]
    gradients = torch.cat([parameter.grad.flatten() for parameter in policy.trainable])
    sampled = [logp for path in sorted(written) for logp in written[path].logps]
    return [torch.tensor(logps + references + sampled), gradients, worn], everyones


def compare(kind, checkpointing):
    """What one process does: with a whole base, and with a part of one."""
    torch.set_num_threads(1)
    rank, accelerator = int(os.environ["RANK"]), make_accelerator()
    whole, wanted = computed(policy_of(kind, checkpointing, False), accelerator, rank, False)
    policy = policy_of(kind, checkpointing, True)
    parts, texts = computed(policy, accelerator, rank, True)
    local = [p.to_local().numel() if hasattr(p, "to_local") else p.numel() for p in policy.parameters()]
    gaps = [float((a - b).abs().max()) if len(a) else 0.0 for a, b in zip(whole, parts, strict=True)]
    told = {"gaps": gaps, "same": texts == wanted, "size": [sum(local), sum(p.numel() for p in policy.parameters())]}
    with open(f"told{rank}.json", "w") as file:
        json.dump(told | {"moves": float(parts[1].abs().max()), "sharded": is_sharded(policy)}, file)
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_a_part_of_the_base_computes_what_the_whole_does(tmp_path, kind, count):
    """Processes have 0, 1, 2 and 3 texts to score and to write."""
    shared = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1",
              "MASTER_PORT": str(free_port())}  # fmt: skip
    processes = [
        forks.call(compare, kind, kind == "llama", cwd=tmp_path, output=tmp_path / f"said{rank}.txt",
                   environment={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(count)
    ]  # fmt: skip
    for rank, process in enumerate(processes):
        process.join(120)
        assert process.exitcode == 0, (tmp_path / f"said{rank}.txt").read_text()
        told = json.loads((tmp_path / f"told{rank}.json").read_text())
        assert told["sharded"] and told["same"] and max(told["gaps"]) < 1e-6 * max(1.0, told["moves"])
        assert kind != "gemma2" or told["gaps"][1] == 0  # by transformers' forward both ways: the very same gradients
        held, everything = told["size"]
        assert told["moves"] > 0.01 and held < 0.9 * everything


def test_one_process_holds_no_part(make_policy):
    model = make_policy().model
    with pytest.raises(ConfigError, match="here is one process, expected several"):
        shard(model, model.get_base_model())

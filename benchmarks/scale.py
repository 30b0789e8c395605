"""What a step of reinforcement learning costs, from 0.6B on one GPU to 70B on 1,024: seconds, bytes, money.

    python benchmarks/scale.py                                    # the tables; docs/gpu.md has the last
    python benchmarks/scale.py --price 2.5 --answer 8192 --tail 4 # your prices and lengths
    python benchmarks/scale.py --network 3e9 --train-efficiency 0.2
    python benchmarks/scale.py --constants                        # every number that goes in, and where it is from

It computes, it does not measure: nothing of it was run on these machines. Sizes follow from published architectures and
are exact; speeds are a data sheet's times a share that is reached, and these shares are the model's weakest numbers, so
each is an option. Trust ratios and thresholds within a factor of two, seconds less.
"""

import argparse
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

BF16, FP32 = 2, 4  # bytes of a number
NODE = 8  # GPUs that share a fast link, the most that one copy of a model is cut into here
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
CLOUD = 3e9  # bytes a second between nodes where there is no InfiniBand: about 25 Gbit/s
PAYS = 1.10  # what is ten per cent faster is worth its complexity


@dataclass(frozen=True)
class Geometry:
    """A decoder with gated MLPs and grouped keys and values; the numbers are those of its published config.json."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp: int
    vocabulary: int
    is_tied: bool  # the embedding is the head
    norms_of_heads: bool = True  # of queries and keys

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Returns inputs and outputs of a layer's seven linear maps, each of which gets an adapter."""
        width, narrow = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = [(self.hidden, width), (self.hidden, narrow), (self.hidden, narrow), (width, self.hidden)]
        return [*attention, (self.hidden, self.mlp), (self.hidden, self.mlp), (self.mlp, self.hidden)]

    @property
    def body(self) -> int:
        """Returns the weights that every token is multiplied with, the head apart."""
        return self.layers * sum(inputs * outputs for inputs, outputs in self.shapes)

    @property
    def parameters(self) -> int:
        """Returns the number of all weights."""
        norms = self.layers * (2 * self.hidden + self.norms_of_heads * 2 * self.head_dim) + self.hidden
        return self.body + (1 if self.is_tied else 2) * self.vocabulary * self.hidden + norms

    def adapter(self, rank: int) -> int:
        """Returns the numbers of a LoRA on all linear maps."""
        return self.layers * sum(rank * (inputs + outputs) for inputs, outputs in self.shapes)

    @property
    def kv_bytes(self) -> int:
        """Returns the bytes of keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.head_dim * BF16


MODELS = (
    Geometry("Qwen3-0.6B", 28, 1024, 16, 8, 128, 3072, 151_936, True),
    Geometry("Qwen3-1.7B", 28, 2048, 16, 8, 128, 6144, 151_936, True),
    Geometry("Qwen3-4B", 36, 2560, 32, 8, 128, 9728, 151_936, True),
    Geometry("Qwen3-8B", 36, 4096, 32, 8, 128, 12_288, 151_936, False),
    Geometry("Qwen3-14B", 40, 5120, 40, 8, 128, 17_408, 151_936, False),
    Geometry("Qwen3-32B", 64, 5120, 64, 8, 128, 25_600, 151_936, False),
    Geometry("Llama-3.3-70B", 80, 8192, 64, 8, 128, 28_672, 128_256, False, norms_of_heads=False),
)


@dataclass(frozen=True)
class Assumed:
    """What goes in beside the architectures. The comment of each says where it is from."""

    flops: float = 989e12  # operations a second and GPU, bfloat16, dense: NVIDIA's data sheet of the H100 SXM
    bandwidth: float = 3.35e12  # bytes a second of its memory: the same data sheet
    memory: float = 80e9  # bytes of its memory: the same data sheet
    link: float = 450e9  # bytes a second and direction between GPUs of a node: NVLink 4, the same data sheet
    network: float = 50e9  # bytes a second of a node: InfiniBand NDR, 400 Gbit/s, its data sheet
    train_efficiency: float = 0.3  # share of `flops` reached in training: assumed; 0.1 to 0.45 are seen in practice
    prefill_efficiency: float = 0.5  # share of `flops` reached in reading prompts: assumed
    decode_efficiency: float = 0.6  # share of `bandwidth` reached in decoding: assumed, with paged attention
    token_overhead: float = 0.003  # seconds of a decoding step that are no arithmetic: assumed, with CUDA graphs
    all_reduce: float = 15e-6  # seconds of latency of an all-reduce in a node, two in a layer that is cut up: assumed
    usable: float = 0.85  # share of the memory that weights and cache may take: assumed, 0.9 is vLLM's default
    sync_overhead: float = 0.05  # seconds to exchange an adapter beside its bytes: assumed, files and one request
    merge: float = 3.0  # passes over all weights in memory to merge an adapter and take it out again: read, add, write
    rank: int = 16  # of the LoRA: chosen
    prompts: int = 64  # of a step, at least two for each GPU: chosen
    group: int = 8  # answers to a prompt: chosen
    prompt: int = 256  # tokens: chosen
    answer: int = 2048  # tokens of a mean answer: chosen
    tail: float = 3.0  # the longest answer of a step, in mean ones: chosen; measure yours by profile_run.py
    price: float = 1.0  # of a GPU for an hour: yours; 1 makes the column one of GPU hours


@dataclass(frozen=True)
class Step:
    """The costs of one step: seconds by phase, bytes over the wire, and the shares that decide what pays."""

    gpus: int
    shards: int  # GPUs that hold one copy for generation
    sequences: int
    generate: float
    train: float
    sync: float
    wire: float  # bytes to every copy that generates, in each step

    @property
    def seconds(self) -> float:
        """Returns the seconds of a step whose phases come in turns."""
        return self.generate + self.train + self.sync


def fits(model: Geometry, a: Assumed) -> int:
    """Returns the fewest GPUs of a node that hold the weights and the cache of one longest answer; 0 if none do."""
    room = a.usable * a.memory
    need = BF16 * model.parameters + model.kv_bytes * (a.prompt + a.tail * a.answer)
    return next((shards for shards in (1, 2, 4, NODE) if need <= shards * room), 0)


def sequences(gpus: int, a: Assumed) -> int:
    """Returns the answers of a step."""
    return max(a.prompts, 2 * gpus) * a.group


def generating(model: Geometry, gpus: int, shards: int, count: int, a: Assumed, waits: bool = True) -> float:
    """Returns the seconds to sample `count` answers. With `waits`, until the longest one has ended.

    A copy decodes as many at once as its memory holds. While the last answers run, the batch shrinks: as if the mean
    length were sampled with a full batch, and the rest of the longest alone.
    """
    copies = max(1, gpus // shards)
    each = math.ceil(count / copies)
    room = a.usable * a.memory * shards - BF16 * model.parameters
    most = max(1, int(room // (model.kv_bytes * (a.prompt + a.answer))))
    at_once = min(each, most)
    rounds = each / at_once
    seconds = rounds * a.answer * decoding(model, shards, at_once, a)
    if waits:
        seconds += (a.tail - 1) * a.answer * decoding(model, shards, 1, a)
    prefill = count / a.group * a.prompt * 2 * model.body / (gpus * a.flops * a.prefill_efficiency)
    return seconds + prefill


def decoding(model: Geometry, shards: int, batch: int, a: Assumed) -> float:
    """Returns the seconds of one token for each of `batch` answers: memory or arithmetic, whichever takes longer."""
    head = model.vocabulary * model.hidden
    read = BF16 * (model.body + head) + batch * model.kv_bytes * (a.prompt + a.answer / 2)
    moved = read / (shards * a.bandwidth * a.decode_efficiency)
    computed = 2 * batch * (model.body + head) / (shards * a.flops * a.prefill_efficiency)
    latency = 2 * model.layers * a.all_reduce if shards > 1 else 0.0
    return max(moved, computed) + a.token_overhead + latency


def training(model: Geometry, gpus: int, count: int, a: Assumed) -> float:
    """Returns the seconds of an update: forward, backward without the frozen weights' gradients, a reference pass."""
    length = a.prompt + a.answer
    tokens = count * length
    attention = 4 * model.layers * model.heads * model.head_dim * length / 2  # forward, each token sees half on average
    weights = 2 * (model.body + model.vocabulary * model.hidden)
    operations = tokens * (3 * weights + 4 * attention)  # the backward pass of attention costs twice its forward pass
    seconds = operations / (gpus * a.flops * a.train_efficiency)
    if gpus > 1:  # gradients of the adapter, in a ring
        seconds += 2 * FP32 * model.adapter(a.rank) / (a.link if gpus <= NODE else a.network)
    sharded = fits(model, replace(a, usable=a.usable / 2))  # half of the memory is for activations
    if sharded != 1:  # FSDP: weights are gathered twice in each of as many micro-batches as tokens need
        micro_batches = max(1, tokens / gpus / 16_384)
        seconds += micro_batches * 2 * BF16 * model.parameters / (a.link if gpus <= NODE else a.network)
    return seconds


def syncing(model: Geometry, gpus: int, a: Assumed, adapter_only: bool) -> tuple[float, float]:
    """Returns the seconds to bring new weights to all copies, by a tree over nodes, and the bytes of one copy."""
    rate = a.link if gpus <= NODE else a.network
    if adapter_only:
        size = BF16 * model.adapter(a.rank)
        return size / rate + a.sync_overhead, size
    size = BF16 * model.parameters
    return size / rate + a.merge * size / (a.bandwidth * a.decode_efficiency), size


def step(model: Geometry, gpus: int, a: Assumed, shards: int = 0, adapter_only: bool = True) -> Step:
    """Returns the costs of a step on `gpus`, all of which sample, then train. `shards` 0: the fewest that hold it."""
    shards, count = shards or fits(model, a), sequences(gpus, a)
    seconds, size = syncing(model, gpus, a, adapter_only)
    generate, train = generating(model, gpus, shards, count, a), training(model, gpus, count, a)
    return Step(gpus, shards, count, generate, train, seconds if gpus > 1 else 0.0, size)


def apart(model: Geometry, gpus: int, a: Assumed) -> float:
    """Returns the seconds of a step where some GPUs sample all the time and the others train; inf if too few.

    Nobody waits for the longest answer, which belongs to a later step; the slower side sets the pace. The best division
    is taken.
    """
    shards, count = fits(model, a), sequences(gpus, a)
    sync, _ = syncing(model, gpus, a, adapter_only=True)
    best = math.inf
    for share in range(1, 16):
        sampling = gpus * share // 16 // shards * shards
        if sampling >= shards and gpus - sampling >= shards:
            sample = generating(model, sampling, shards, count, a, waits=False)
            best = min(best, max(sample, training(model, gpus - sampling, count, a)) + sync)
    return best


def best_shards(model: Geometry, gpus: int, a: Assumed) -> int:
    """Returns the GPUs of a copy with which a step takes least time."""
    able = [shards for shards in (1, 2, 4, NODE) if fits(model, a) <= shards <= gpus]
    return min(able, key=lambda shards: step(model, gpus, a, shards).seconds)


def thresholds(model: Geometry, a: Assumed) -> dict[str, int | None]:
    """Returns from how many GPUs on each of three things makes a step faster by PAYS; None: nowhere up to 1,024."""
    able = [gpus for gpus in COUNTS if fits(model, a) and gpus >= fits(model, a)]

    def first(pays: Iterator[tuple[int, bool]]) -> int | None:
        """Returns the smallest number from which on it always pays."""
        found = None
        for gpus, does in pays:
            found = (found or gpus) if does else None
        return found

    def seconds(gpus: int) -> float:
        return step(model, gpus, a).seconds

    merged = ((gpus, step(model, gpus, a, adapter_only=False).seconds > PAYS * seconds(gpus)) for gpus in able)
    divided = ((gpus, seconds(gpus) > PAYS * apart(model, gpus, a)) for gpus in able)
    cut = ((gpus, seconds(gpus) > PAYS * step(model, gpus, a, best_shards(model, gpus, a)).seconds) for gpus in able)
    return {"adapter-only sync": first(merged), "async rollouts": first(divided), "sharded generation": first(cut)}


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Returns a table in Markdown."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *rows])


def sizes(a: Assumed) -> str:
    """Returns the table of what follows from the architectures alone."""
    rows = [
        [
            model.name,
            f"{model.parameters / 1e9:.2f}",
            f"{BF16 * model.parameters / 1e9:.1f}",
            f"{BF16 * model.adapter(a.rank) / 1e6:.0f}",
            f"{model.parameters / model.adapter(a.rank):.0f}",
            f"{model.kv_bytes / 1e3:.0f}",
            str(fits(model, a) or "-"),
        ]
        for model in MODELS
    ]
    heads = ["model", "weights, billions", "GB", f"adapter of rank {a.rank}, MB", "times smaller", "cache, kB a token",
             "GPUs to hold it"]  # fmt: skip
    return table(heads, rows)


def costs(a: Assumed) -> str:
    """Returns the table of steps by model and GPUs, phases in turns, adapter-only sync."""
    rows = []
    for model in MODELS:
        for gpus in [count for count in (1, 8, 64, 1024) if count >= fits(model, a)]:
            found, other = step(model, gpus, a), apart(model, gpus, a)
            tokens = found.sequences * (a.prompt + a.answer)
            rows.append([
                model.name, f"{gpus:,}", f"{found.sequences:,}", f"{found.generate:.0f}", f"{found.train:.0f}",
                f"{found.sync:.2f}", f"{tokens / found.seconds:,.0f}",
                "-" if math.isinf(other) else f"{tokens / other:,.0f}",
                f"{1000 * found.seconds * gpus / 3600 * a.price:,.0f}",
            ])  # fmt: skip
    heads = ["model", "GPUs", "answers a step", "sampling, s", "update, s", "sync, s", "tokens/s", "tokens/s, apart",
             "1,000 steps"]  # fmt: skip
    return table(heads, rows)


def what_pays(a: Assumed) -> str:
    """Returns the table of thresholds, those that the network moves also with an ordinary one."""
    rows = []
    for model in MODELS:
        fast, slow = thresholds(model, a), thresholds(model, replace(a, network=CLOUD))
        found = [
            fast["adapter-only sync"],
            slow["adapter-only sync"],
            fast["async rollouts"],
            fast["sharded generation"],
        ]
        whole = syncing(model, 2 * NODE, replace(a, network=CLOUD), adapter_only=False)[0]
        adapter = syncing(model, 2 * NODE, replace(a, network=CLOUD), adapter_only=True)[0]
        rows.append([model.name, f"{whole:.1f}", f"{adapter:.2f}", *(f"{gpus:,}" if gpus else "-" for gpus in found)])
    slow = f"at {CLOUD / 1e9:g} GB/s"
    heads = ["model", f"whole weights {slow}, s", f"adapter {slow}, s", "adapter-only sync", f"the same {slow}",
             "async rollouts", "sharded generation"]  # fmt: skip
    return table(heads, rows)


def report(a: Assumed) -> str:
    """Returns the three tables; docs/gpu.md shows the last."""
    return "\n\n".join([sizes(a), costs(a), what_pays(a)])


def main() -> None:
    """Prints the tables, or the constants."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--constants", action="store_true", help="print every constant and where it is from")
    said = sources()
    for field in fields(Assumed):
        kind = type(field.default)
        flag = f"--{field.name.replace('_', '-')}"
        options.add_argument(
            flag, type=kind, default=field.default, metavar="N", help=said[field.name].replace("%", "%%")
        )
    args = vars(options.parse_args())
    is_list = args.pop("constants")
    a = Assumed(**args)
    if is_list:
        print(table(["constant", "value", "from"], [[name, f"{getattr(a, name):g}", said[name]] for name in said]))
    else:
        print(report(a))


def sources() -> dict[str, str]:
    """Returns the comment of every constant."""
    lines = re.findall(r"^    (\w+): \w+ = [^#\n]+# (.+)$", Path(__file__).read_text(encoding="utf-8"), re.MULTILINE)
    names = {field.name for field in fields(Assumed)}
    return {name: comment for name, comment in lines if name in names}


if __name__ == "__main__":
    main()

"""What the configs of several scripts have: model, rows, reward, optimizer, dashboard, run directory, smoke runs."""

import math
import re
from collections.abc import Callable, Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from lib.core.config.adapters import Adapters
from lib.core.config.combinations import FOUR_BITS, UNSLOTH, refusal
from lib.core.config.section import Conflicts, Count, CountOrZero, Fraction, Name, Positive, Section, Weight
from lib.core.config.trees import put, shortened
from lib.core.errors import ConfigError
from lib.core.registry import extractor_of_predictions, extractors, matchers, rewards

SMOKE_TOKENS = 256  # per answer: room for the format and a right answer, and still minutes on two cores


class ModelWeights(Section):
    """The weights of a model."""

    name: Name  # Hugging Face Hub id or local folder
    revision: str | None = None  # branch, tag or commit on the Hub
    adapter: Name | None = None
    # a saved LoRA to merge into the frozen base (lib/model/merging.py): a folder, or OWNER/NAME@REVISION of the Hub
    load_in_4bit: bool = False  # true: QLoRA, through bitsandbytes

    @property
    def full_name(self) -> str | None:
        """Returns the name of the model, with its merged adapter if it has one."""
        return f"{self.name} + {self.adapter}" if self.adapter else self.name

    def _conflicts(self) -> Conflicts:
        if self.adapter and self.load_in_4bit:
            yield (
                ("adapter", "load_in_4bit"),
                "nothing can be merged into weights of 4 bits, which are too coarse to hold it: merge once, by "
                "export.py --to merged model.load_in_4bit=false, then set model.name=OUT and remove model.adapter",
            )


class Model(ModelWeights):
    """A model, and how it is loaded."""

    backend: Literal["auto", "plain", "unsloth"] = "auto"
    # auto: Unsloth if it is installed, there is a GPU, and it works with all adapters (docs/tasks.md)
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: bfloat16 on a GPU that supports it, else float32
    max_seq_length: Count = 2048  # tokens of prompt and answer together, at most
    chat_template: str = ""  # Jinja text or the path of a file; "": the tokenizer's own template
    chat_template_kwargs: dict[str, Any] = {}  # variables for the chat template, such as {enable_thinking: false}
    gradient_checkpointing: bool = False  # true: less memory, about a third more time
    attn_implementation: str | None = None  # as in transformers, such as sdpa or eager; null: its default
    trust_remote_code: bool = False  # true: run code that comes with the model

    def _conflicts(self) -> Conflicts:
        yield from super()._conflicts()
        if self.attn_implementation and self.backend == "unsloth":
            yield ("attn_implementation", "backend"), "Unsloth chooses the attention itself: set backend: plain"


class TrainedModel(Model):
    """The model to train, and how it is loaded."""

    adapters: Adapters = Adapters()  # what is trained
    sharded: bool = False
    # true: each process holds a part of the frozen weights (FSDP2), for a model that one card does not hold

    def _conflicts(self) -> Conflicts:
        yield from super()._conflicts()
        if self.sharded and self.backend == "unsloth":
            yield ("sharded", "backend"), "Unsloth computes past the modules that gather weights: set backend: plain"
        if self.sharded and self.load_in_4bit:
            yield ("sharded", "load_in_4bit"), "4-bit weights cannot be spread: set one of the two to false"
        if self.backend == "unsloth" and (reason := refusal(UNSLOTH, self.adapters.names)):
            yield ("adapters", "backend"), f"{reason}: set backend: plain, or keep lora alone"
        if self.load_in_4bit and (reason := refusal(FOUR_BITS, self.adapters.names)):
            yield ("adapters", "load_in_4bit"), f"{reason}: set load_in_4bit: false, or take lora in its place"


def wrong_address(url: str) -> str:
    """Returns the problem with a server's address, "" if there is none."""
    if "?" in url or "#" in url:
        return "no path can be added after its ? or #: end it there, and give a key by api_key_env"
    if not re.match(r"https?://[^\s/]+", url):
        return f"no address: {url!r}; write http://HOST:PORT/v1"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (it raises where it is none)
    except ValueError as error:
        return f"no address: {error}; write http://HOST:PORT/v1"
    if parts.username is not None:
        return "it holds a name or password, which logs would show: use api_key_env"
    return ""


class Source(Section):
    """Rows: a hub id, a file (.json .jsonl .csv .parquet), a folder of them, or a saved data set."""

    name: Name  # Hub id, file or folder
    config_name: str | None = None  # configuration of a Hub data set
    revision: str | None = None  # branch, tag or commit on the Hub
    split: str | None = None  # such as train or train[:2000]; required if there are several splits


def weights_of(fn: Any) -> dict[str, float]:
    """Returns the weight of each reward that `reward.fn` names. Raises ConfigError with every mistake in it."""
    if isinstance(fn, str) and fn:
        rewards.get(fn)
        return {fn: 1.0}
    if not isinstance(fn, Mapping) or not fn:
        example = "{exact_match: 1.0, my_rewards.brief: 0.2}"
        raise ConfigError(f"got {shortened(fn)}, expected the name of a reward, or several with weights: {example}")
    mistakes = []
    for name, weight in fn.items():
        try:
            rewards.get(str(name))
        except ConfigError as error:
            mistakes.append(str(error))
        if weight is None:
            mistakes.append(f"'{name}' has no weight: give it a number, such as {name}: 1.0")
        elif isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            mistakes.append(f"the weight of '{name}' is {shortened(weight)}, expected a number of at least 0")
    if not mistakes and not any(fn.values()):
        mistakes.append("every weight is 0, so that nothing would be paid: raise one")
    if mistakes:
        raise ConfigError("; ".join(mistakes))
    return dict(fn)


def weighted_sum(fn: str | Mapping[str, float], quote: str = "") -> str:
    """Writes a valid `reward.fn` as a sum, such as "exact_match + 0.2 brief", each name in `quote`."""
    weights = {fn: 1} if isinstance(fn, str) else fn
    factors = ("" if weight == 1 else f"{weight:g} " for weight in weights.values())
    return " + ".join(f"{factor}{quote}{name}{quote}" for factor, name in zip(factors, weights, strict=True))


def _accepted_by(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a validator that accepts what `check` accepts."""

    def validated(value: Any) -> Any:
        try:
            check(value)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return value

    return validated


class TaskReward(Section):
    """How the completions of one task are judged. Names come from the registry; dotted paths work."""

    fn: Annotated[Name | dict[Name, Weight], BeforeValidator(_accepted_by(weights_of))] = "exact_match"
    # name of one reward, or several with weights, which are summed: {exact_match: 1, code: 0.5}
    format: Literal["free", "answer", "think_answer", "boxed"] = "free"
    # the required form of a completion, and the place of its answer (lib/text/formats.py); elsewhere, none is right.
    # answer: one `<answer>` block, at the end; think_answer: one `<think>` block, one `<answer>` block, nothing else;
    # boxed: one `\boxed{}`, at the end; free: any text, in which the extractor finds the answer
    answer_extractor: Annotated[Name, AfterValidator(_accepted_by(extractor_of_predictions))] = "identity"
    # extracts the answer from the place that `format` declares
    target_extractor: Annotated[Name, AfterValidator(_accepted_by(extractors.get))] | None = None
    # extracts the answer from a target; null: identity, or the same as answer_extractor if the format is free
    accept_cut: bool = False
    # for a completion that the token limit cut off. false: it is malformed in every format, never right, and earns
    # nothing above zero; true: it is judged like a finished one, for models that never end an answer
    match: Annotated[Name, AfterValidator(_accepted_by(matchers.get))] = "exact"
    # when an answer counts as equal to the target, for accuracy and for the bonus. exact: same text or same number;
    # math: also an equivalent formula, worked out as much as the target
    options: dict[str, Any] = {}  # keyword arguments of the reward; with several rewards {reward: {argument: value}}

    def _conflicts(self) -> Conflicts:
        paying = [name for name in weights_of(self.fn) if rewards.hooks(name).pays_format]
        if paying and self.format not in ("answer", "think_answer"):
            keys = ("format", "fn")
            yield (
                keys,
                f"'{paying[0]}' pays for blocks that '{self.format}' does not ask for: set answer or think_answer",
            )


class Reward(TaskReward):
    """How a completion is judged: in one way, or, with `by_task`, as its row's task is."""

    by_task: dict[Name, TaskReward] = {}
    # {task: how its completions are judged}, by the column `task` of each row; if given, the keys above stand there
    # alone, each task with its own
    timeout_s: Positive | None = None  # seconds for judging one batch of answers; if it takes longer, the run stops

    @property
    def tasks(self) -> Mapping[str, TaskReward]:
        """Returns how each task is judged; {"": this} where all rows are judged alike."""
        return self.by_task or {"": self}

    @property
    def accepts_cut(self) -> bool:
        """True if every task accepts what the token limit cut off."""
        return all(task.accept_cut for task in self.tasks.values())

    @property
    def names(self) -> list[str]:
        """Returns the names of all rewards, each once."""
        return list(dict.fromkeys(name for task in self.tasks.values() for name in weights_of(task.fn)))

    def _conflicts(self) -> Conflicts:
        if not self.by_task:
            yield from super()._conflicts()
            return
        for key, field in TaskReward.model_fields.items():
            if getattr(self, key) != field.default:
                yield (key, "by_task"), f"with by_task each task has its own: move it to by_task.TASK.{key}"


class SandboxSettings(Section):
    """Where rewards run programs of the model: `python -m judge --self-test` tells what holds on a machine."""

    workers: Count | None = None  # programs run at once; null: one per core, shared by the processes of this run
    allow_unsafe: bool = False  # true: run programs even if nothing protects this machine
    numpy: bool = False  # true: programs may import numpy
    max_timeout_s: Annotated[float, Field(ge=0.1, le=600)] = 10.0  # upper bound on the time limit that a row asks for
    max_memory_mb: Annotated[int, Field(ge=64)] = 1024  # what a row requests beyond is cut
    worker: str | None = None  # dotted path of what judges elsewhere: my_ray.RayWorker (docs/judge.md)


class Optimizer(Section):
    """AdamW and its schedule; each stage starts a fresh one."""

    name: Literal["adamw", "adamw_8bit"] = "adamw"  # adamw_8bit needs bitsandbytes
    learning_rate: Positive = 2e-5  # the highest rate, after the warm-up
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)  # decay rates of AdamW's two moments
    weight_decay: Weight = 0.0  # decoupled, as in AdamW
    warmup_steps: CountOrZero = 0  # steps over which the rate rises linearly, in each stage
    schedule: Literal["constant", "linear", "cosine"] = "constant"  # after the warm-up: constant, or down to 0
    max_grad_norm: Positive = 1.0  # gradients are clipped to this norm


class Tracking(Section):
    """An optional dashboard next to the JSONL logs, which are always written."""

    backend: Literal["none", "wandb", "tensorboard"] = "none"  # none: the JSONL logs alone
    project: Name = "rematch"
    # the project in the dashboard; the run's name there is run_name. W&B's own variables decide the rest, and come
    # first: WANDB_MODE, WANDB_ENTITY, WANDB_PROJECT, WANDB_NAME, WANDB_RUN_GROUP, WANDB_TAGS, WANDB_NOTES
    max_generations_mb: CountOrZero = 0
    # megabytes that generations.jsonl may take; beyond them its oldest rows are deleted; 0: no limit
    tokens: Literal["none", "one_prompt", "all"] = "one_prompt"
    # whose tokens have their log-probs, ratio and weight in generations.jsonl. one_prompt: those of the answers to one
    # prompt per step, where the largest advantage was; all: of every answer but retries under hints; none: of no answer


class HubSettings(Section):
    """Trained weights on the Hugging Face Hub, as revisions of one model repository; pushed while training goes on.

    Each checkpoint is a branch of its own, such as stage1-step_200, and what a stage ends with is `main`.
    The token is never in a config: it comes from HF_TOKEN or from `hf auth login`.
    """

    repo_id: Annotated[str, Field(pattern=r"^[\w-][\w.-]*/[\w.-]+$")]
    # OWNER/NAME; made, and private, if it is not there


class Outputs(Section):
    """The directory of a run, in the config of every script."""

    run_name: Annotated[str, Field(pattern=r"^\w[\w.-]*$")]  # names the folder of the run
    output_dir: Name = "outputs"  # the folder that holds the runs

    @property
    def run_dir(self) -> Path:
        """Returns the run directory, `<output_dir>/<run_name>`."""
        return Path(self.output_dir) / self.run_name


class AtMost(NamedTuple):
    """The value to which a smoke run lowers a higher one."""

    limit: int


def smoke_batch(examples: int) -> int:
    """Returns the number of a smoke run's examples per step: a quarter, but at least two, for two minibatches.

    A quarter of the held-out rows is used for selection, too: four examples per process give every process a part.
    """
    return min(examples, max(2, examples // 4))


class RunConfig(Outputs):
    """Keys of all scripts that train or collect."""

    seed: int = 3407  # of data order, initial adapter and sampling
    tracking: Tracking = Tracking()

    def smoke_overrides(self, examples: int) -> dict[str, Any]:
        """Returns by dotted key what `--smoke` sets, or lowers (AtMost)."""
        return {"run_name": f"{self.run_name}-smoke"}

    def smoke(self, examples: int) -> "RunConfig":
        """Returns this config, reduced to a run of one to three minutes that uses every part of the loop."""
        tree = self.model_dump()
        for key, value in self.smoke_overrides(examples).items():
            if isinstance(value, AtMost):
                now: Any = reduce(getitem, key.split("."), tree)
                value = min(value.limit, now)
            put(tree, key, value)
        return self.model_validate(tree)

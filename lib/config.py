"""YAML in, validated objects out: extra keys forbidden, all mistakes at once, `--smoke` and overrides as functions.

Nothing here imports torch, so a mistake answers within a second. One class per script (`ScoreConfig`, `SelfPlayConfig`,
`CollectConfig`, `SFTConfig`, `SweepConfig`); the field comments below are the reference for every key. The checks that
need several fields stand in `conflicts()`.
"""

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_origin
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from lib.conditions import read_condition
from lib.errors import ConfigError
from lib.registry import did_you_mean, extractor_of_predictions, extractors, matchers, rewards

Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Conflict = tuple[tuple[str, ...], str]  # the dotted keys involved, and the sentence
RENAMED = {  # what earlier versions had elsewhere under another name
    "dataset.input_field": "prompts.user",
    "model.model_id": "model.name",
    "lora_r": "lora.r",
    "lora_alpha": "lora.alpha",
    "lora_target_modules": "lora.targets",
    "generation_temperature": "temperature",
    "num_generations": "group_size",
    "kl_coeff": "beta",
    "wandb_project": "project",
    "report_to": "backend",
}
SMOKE_TOKENS = 32  # of an answer; a small batch costs by its longest answer, not by its prompts
SMOKE_REPLY_TOKENS = 256  # of a reply that nothing is trained on: room for a short solution


def _smoke_batch(examples: int) -> int:
    """How many of a smoke run's examples make a step: two, for two minibatches, or a quarter.

    A quarter of the held-out ones is chosen by, too: four examples for each process let all of them take part.
    """
    return min(examples, max(2, examples // 4))


class Section(BaseModel):
    """Base of every block of the YAML: unknown keys are mistakes, values never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, coerce_numbers_to_str=False)


class FromScratch(Section):
    """A model that is built instead of loaded: random weights and a tokenizer of single characters."""

    architecture: dict[str, Any]  # transformers config fields; `model_type` names the class
    characters: Name  # every character becomes one token
    special_tokens: list[str] = []  # multi-character tokens: tags, turn markers
    eos_token: Name = "<|im_end|>"
    pad_token: Name = "<|pad|>"


class Model(Section):
    """What is trained, and how it is loaded."""

    name: Name  # hub id or local folder
    revision: str | None = None
    adapter: Name | None = None  # folder of a saved LoRA adapter that becomes part of the frozen base (lib/merging.py)
    backend: Literal["auto", "plain", "unsloth"] = "auto"  # auto: Unsloth where it is installed and a GPU is there
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: bfloat16 on a GPU that has it, else float32
    load_in_4bit: bool = False
    max_seq_length: Count = 2048
    chat_template: str = ""  # Jinja text or the path of a file; "" = the tokenizer's own
    chat_template_kwargs: dict[str, Any] = {}  # for example {enable_thinking: false}
    gradient_checkpointing: bool = False
    attn_implementation: str | None = None
    trust_remote_code: bool = False

    @property
    def full_name(self) -> str | None:
        """Its name, with the adapter that is part of it."""
        return f"{self.name} + {self.adapter}" if self.adapter else self.name

    def conflicts(self) -> Iterator[Conflict]:
        """Values of the section that do not fit together."""
        if self.adapter and self.load_in_4bit:
            yield (
                ("model.adapter", "model.load_in_4bit"),
                "nothing can be merged into weights of 4 bits, which are too coarse to hold it: merge once, by "
                "evaluate.py --merge OUT model.load_in_4bit=false, then set model.name=OUT and remove model.adapter",
            )


class Lora(Section):
    """The trainable part. Dropout is absent on purpose: it would give the KL a noise floor."""

    r: Count = 16
    alpha: Annotated[float, Field(gt=0)] = 16
    targets: list[Name] | Literal["all-linear"] = [
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
    ]  # fmt: skip


class Dataset(Section):
    """Where rows come from: a hub id, a file (.json .jsonl .csv .parquet), a folder of them, or a saved data set."""

    name: Name
    config_name: str | None = None
    revision: str | None = None
    split: str | None = None  # given: `test_split_size` rows drawn from it are held out, the rest is train
    target_field: Name = "answer"
    test_split_size: Count = 200  # drawn by a hash of what they ask; of a test split, the first ones
    family_field: Name | None = None  # column: rows that share its value are either held out or trained on
    spill_test_into_train: bool = False  # true trains on the unused rows of the official test split
    max_train_rows: Count | None = None  # the first ones of those that are left


class Prompts(Section):
    """What the model reads. `{column}` in `user` is filled from the row; double a brace to keep it."""

    system: str = ""
    user: Name = "Question:\n{question}"
    self_correction: Name
    history: Literal["full", "plain_text", "answer_only"] = "full"
    # full: attempt 2 continues the very tokens that were sampled; plain_text: think tags out, text kept;
    # answer_only: the think block is left out


def weights_of(fn: Any) -> dict[str, float]:
    """The rewards that `reward.fn` names, each with its weight. ConfigError with every mistake in it."""
    if isinstance(fn, str) and fn:
        rewards.get(fn)
        return {fn: 1.0}
    if not isinstance(fn, Mapping) or not fn:
        example = "{exact_match: 1.0, my_rewards.brief: 0.2}"
        raise ConfigError(f"got {_short(fn)}, expected the name of a reward, or several with weights: {example}")
    mistakes = []
    for name, weight in fn.items():
        try:
            rewards.get(str(name))
        except ConfigError as error:
            mistakes.append(str(error))
        if weight is None:
            mistakes.append(f"'{name}' has no weight: give it a number, such as {name}: 1.0")
        elif isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            mistakes.append(f"the weight of '{name}' is {_short(weight)}, expected a number of at least 0")
    if not mistakes and not any(fn.values()):
        mistakes.append("every weight is 0, so that nothing would be paid: raise one")
    if mistakes:
        raise ConfigError("; ".join(mistakes))
    return dict(fn)


class Reward(Section):
    """How a completion is judged. Names come from the registry; dotted paths work."""

    fn: Name | dict[Name, Weight] = "exact_match"  # one, or the weights of several: {exact_match: 1, code: 0.5}, summed
    format: Literal["free", "answer", "think_answer", "boxed"] = "free"
    # what a text must look like, and where in it the answer stands (lib/formats.py); elsewhere it is never right:
    # answer: one <answer> block, at the end; think_answer: that and one <think> block before it, nothing else;
    # boxed: one \\boxed{}, at the end; free: anything, the extractor decides
    answer_extractor: Name = "identity"  # reads what a prediction has in that place
    target_extractor: Name | None = None  # reads targets; null: identity, in free texts the same as answer_extractor
    match: Name = "exact"  # what "accuracy" and the bonus count as the same answer:
    # exact: the same text or the same number; math: besides, equivalent formulae, worked out as far as the target
    options: dict[str, Any] = {}  # keyword parameters of the reward; of several {reward: {parameter: value}}
    timeout_s: Annotated[float, Field(gt=0)] | None = None  # for one batch of answers; beyond it the run ends

    @field_validator("fn", mode="before")
    @classmethod
    def _are_rewards(cls, fn: Any) -> Any:
        try:
            weights_of(fn)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return fn

    @field_validator("answer_extractor", "target_extractor", "match")
    @classmethod
    def _is_known(cls, name: str | None, info) -> str | None:
        known = {"answer_extractor": extractor_of_predictions, "target_extractor": extractors.get,
                 "match": matchers.get}[info.field_name]  # fmt: skip
        try:
            if name is not None:
                known(name)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return name

    def conflicts(self) -> Iterator[Conflict]:
        """A reward for a format without one."""
        paying = [name for name in weights_of(self.fn) if getattr(rewards.get(name), "pays_format", False)]
        if self.format == "free" and paying:
            keys = ("reward.format", "reward.fn")
            yield keys, f"'{paying[0]}' pays for a format, and none is declared: set think_answer, answer or boxed"


class Sandbox(Section):
    """Where rewards run programs of the model: `python -m lib.sandbox --self-test` tells what holds on a machine."""

    workers: Count | None = None  # programs at once; null: one per core, shared by the processes of this run
    allow_unsafe: bool = False  # true: where nothing protects this machine, run programs all the same
    numpy: bool = False  # programs may import it
    max_timeout_s: Annotated[float, Field(ge=0.1, le=600)] = 10.0  # what a row asks beyond is cut
    max_memory_mb: Annotated[int, Field(ge=64)] = 1024


SAMPLER_TRICKS = ("top_p", "top_k", "min_p", "repetition_penalty")


class TrainedSampling(Section):
    """Sampling whose log-probs are trained, at this very temperature."""

    temperature: Annotated[float, Field(gt=0)] = 1.0
    batch_size: Count | None = None  # completions decoded at once, at most; null: as many as memory allows

    @model_validator(mode="before")
    @classmethod
    def _no_sampler_tricks(cls, values: Any) -> Any:
        tricks = [key for key in SAMPLER_TRICKS if isinstance(values, dict) and key in values]
        if tricks:
            raise ValueError(
                f"{', '.join(tricks)} would make the sampling distribution differ from the one whose log-probabilities "
                "are trained, which biases the gradient: remove it"
            )
        return values


class Generation(TrainedSampling):
    """Sampling of two attempts and its budgets, in tokens."""

    max_prompt_length_attempt1: Count = 384  # longer first prompts are left out, and counted
    max_prompt_length_attempt2: Count = 1024  # longer contexts lose the middle of attempt 1, never the instruction
    max_new_tokens_attempt1: Count = 512
    max_new_tokens_attempt2: Count = 512


class AdaptiveBeta2(Section):
    """Holds KL(attempt 1) near `target` by moving beta2 (proportional controller, Ziegler et al. 2019)."""

    target: Annotated[float, Field(gt=0)]  # nats per token
    rate: Annotated[float, Field(gt=0, le=1)] = 0.1
    max_error: Annotated[float, Field(gt=0)] = 0.2


class Optimizer(Section):
    """AdamW and its schedule; each stage starts a fresh one unless told otherwise."""

    name: Literal["adamw", "adamw_8bit"] = "adamw"
    learning_rate: Annotated[float, Field(gt=0)] = 2e-5
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    weight_decay: Weight = 0.0
    warmup_steps: Annotated[int, Field(ge=0)] = 0
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    max_grad_norm: Annotated[float, Field(gt=0)] = 1.0


class TrainLoop(Section):
    """What both RL scripts say of their optimizer steps."""

    micro_batch_tokens: Count = 16_384  # tokens per forward, padding included; changes memory, never the update
    checkpoint_every: Annotated[int, Field(ge=0)] = 0  # steps; 0 = at the end, and of each stage
    keep_checkpoints: Annotated[int, Field(ge=2)] = 2  # the newest of each stage
    keep_best: bool = True  # the best by held-out accuracy stays too: stage<N>/best
    on_non_finite: Literal["stop", "skip"] = "stop"  # skip: drop the step, stop after three in a row
    on_collapse: Literal["warn", "stop", "restore"] = "stop"
    # what lib/watch.py calls a collapse ends the run (exit code 3), or takes it back to its best checkpoint
    overlong_buffer: Annotated[int, Field(ge=0)] = 0  # last tokens of the budget that cost up to 1 (DAPO, eq. 13)
    mask_truncated: bool = False  # true: answers, or attempts, that were cut off are not trained
    resample_rounds: Annotated[int, Field(ge=0)] = 0  # DAPO's dynamic sampling: as often, at most, others are drawn for
    # prompts whose answers all earn the same, or, of two attempts, none of whose attempts has an advantage
    identical_rewards_warning: Count = 20  # steps in a row
    stop_on_identical_rewards: bool = False


KlKind = Literal["k3", "k2", "k1_in_reward", "exact"]  # see lib/losses.py for value and gradient of each


class ScoreTrain(TrainLoop):
    """SCoRe (Kumar et al. 2024, arXiv 2409.12917): equations 3 and 4 and their knobs."""

    stage1_steps: Annotated[int, Field(ge=0)] | None = None  # null: stage1_epochs decides
    stage2_steps: Annotated[int, Field(ge=0)] | None = None
    stage1_epochs: Weight = 1.0
    stage2_epochs: Weight = 1.0
    stage1_batch_size: Count = 16  # prompts per optimizer step, over all processes
    stage2_batch_size: Count = 16
    attempts_per_prompt: Count = 4  # K1 first attempts of each prompt
    revisions_per_attempt: Count = 2  # K2 second attempts of each first attempt
    alpha: Weight = 1.0  # bonus alpha * (r2 - r1), on attempt 2 alone; the paper's 10 is for one revision an attempt.
    # Several are compared with each other, which removes r1: attempt 2's reward counts 1 + alpha times, and no more
    beta1: Weight = 0.01  # KL weight of both attempts
    beta2: Weight = 0.1  # stage I's extra KL weight of attempt 1
    beta1_in_stage1: bool = True  # the paper keeps the small beta1 term in stage I
    adaptive_beta2: AdaptiveBeta2 | None = None
    bonus_on: Literal["match", "reward"] = "match"  # match: a format point is no self-correction
    baseline: Literal["leave_one_out", "batch", "none"] = "leave_one_out"
    # none: raw non-negative rewards, which can only push sampled text up
    kl: KlKind = "k3"
    kl_sample: Annotated[float, Field(gt=0, le=1)] = 1.0  # of first attempts without an advantage, in them or in their
    # revisions, this share is drawn, whose KL counts 1 / kl_sample times; the others need no forward: unbiased, noisier
    length_norm: Literal["sequence", "constant", "budget", "token"] = "sequence"
    # sequence: 1/|y|, makes long wrong answers cheap; constant: 1/max_new_tokens (Dr.GRPO), of two budgets the longer:
    # a token of either attempt weighs the same; budget: 1/max_new_tokens of its own attempt; token: mean over tokens
    base_first_attempts: Fraction = 0.0  # share of prompts whose first attempts the base model writes (context only)
    fresh_optimizer_per_stage: bool = True

    def has_steps(self, stage: int) -> bool:
        """Whether anything is trained in a stage."""
        steps = getattr(self, f"stage{stage}_steps")
        return (getattr(self, f"stage{stage}_epochs") if steps is None else steps) > 0


class Eval(Section):
    """Held-out accuracy. Questions that are reported and questions to choose by, a checkpoint for one, never mix."""

    rows: tuple[Annotated[int, Field(ge=0)], Count] | None = None  # [first, end]: those of the held-out rows that this
    # run looks at, counted from 0, the end left out; null: all. What is beyond stays unseen: evaluate.py --rows
    max_examples: Count = 200  # reported: the first so many of those that are not chosen by
    step_examples: Count | None = None  # the same in the middle of a stage (every_steps); null: max_examples
    selection_examples: Annotated[int, Field(ge=0)] = 200  # to choose by, at most a quarter of the rows; 0: none
    temperature: Weight = 0.0  # 0 = greedy
    greedy_too: bool = False  # true: before training and after each stage a greedy evaluation beside a sampled one
    samples_per_prompt: Count = 1  # of 2 or more, a revision is held against a fresh first attempt
    every_steps: Annotated[int, Field(ge=0)] = 0  # 0 = only before training and at the end, or after each stage
    seed: int = 0

    def within(self, held_out: int) -> tuple[int, int]:
        """First row and end of the part of so many held-out rows that this run looks at."""
        return self.rows or (0, held_out)

    def examples(self, when: str) -> int:
        """How many questions an evaluation reports, at most."""
        return self.step_examples or self.max_examples if when == "step" else self.max_examples

    def passes(self, when: str) -> list["Eval"]:
        """This evaluation, and the greedy one beside it, if there is one: greedy answers are equal, so one is drawn."""
        if when == "step" or not self.greedy_too or self.temperature == 0:
            return [self]
        return [self, self.model_copy(update={"temperature": 0.0, "samples_per_prompt": 1})]


class Tracking(Section):
    """An optional dashboard beside the JSONL logs, which are always written."""

    backend: Literal["none", "wandb", "tensorboard", "trackio"] = "none"
    project: Name = "rematch"
    # of W&B, unless its own variable says so (WANDB_MODE, WANDB_ENTITY, WANDB_NAME, WANDB_RUN_GROUP, ...)
    mode: Literal["auto", "offline", "online"] = "auto"  # auto: online where W&B finds a key
    entity: Name | None = None
    name: Name | None = None  # null: run_name
    group: Name | None = None
    tags: list[Name] = []
    notes: Name | None = None
    samples: Annotated[int, Field(ge=0)] = 8  # texts in the table of an evaluation


class Outputs(Section):
    """What every script's config has: a directory of its own."""

    run_name: Annotated[str, Field(pattern=r"^[\w.-]+$")]
    output_dir: Name = "outputs"

    @property
    def run_dir(self) -> Path:
        """`outputs/<run_name>`."""
        return Path(self.output_dir) / self.run_name

    def conflicts(self) -> Iterator[Conflict]:
        """Values that do not fit together, each with the keys involved and the cure."""
        return iter(())


class RunConfig(Outputs):
    """What the config of every script that trains or collects has."""

    seed: int = 3407
    tracking: Tracking = Tracking()

    def smoke(self, examples: int) -> "RunConfig":
        """This config, cut down to a run of a minute or three that touches every part of the loop."""
        raise NotImplementedError


class ScoreConfig(RunConfig):
    """train.py"""

    model: Model
    lora: Lora = Lora()
    dataset: Dataset
    prompts: Prompts
    reward: Reward = Reward()
    sandbox: Sandbox = Sandbox()
    generation: Generation = Generation()
    optimizer: Optimizer = Optimizer()
    train: ScoreTrain = ScoreTrain()
    eval: Eval = Eval()

    def conflicts(self) -> Iterator[Conflict]:
        """Values that do not fit together, each with the keys involved and the cure."""
        gen, train, limit = self.generation, self.train, self.model.max_seq_length
        yield from self.model.conflicts()
        for attempt in (1, 2):
            prompt_key, new_key = f"max_prompt_length_attempt{attempt}", f"max_new_tokens_attempt{attempt}"
            need = getattr(gen, prompt_key) + getattr(gen, new_key)
            if need > limit:
                keys = (f"generation.{prompt_key}", f"generation.{new_key}", "model.max_seq_length")
                yield (
                    keys,
                    (
                        f"{prompt_key} + {new_key} = {need} exceeds model.max_seq_length = {limit}: "
                        "lower one of the first two or raise the last"
                    ),
                )
        if gen.max_prompt_length_attempt2 < gen.max_prompt_length_attempt1:
            keys = ("generation.max_prompt_length_attempt1", "generation.max_prompt_length_attempt2")
            yield (
                keys,
                (
                    f"max_prompt_length_attempt2 = {gen.max_prompt_length_attempt2} is below "
                    f"max_prompt_length_attempt1 = {gen.max_prompt_length_attempt1}, but the second prompt holds the "
                    "first one: raise it"
                ),
            )
        shorter = min(gen.max_new_tokens_attempt1, gen.max_new_tokens_attempt2)
        if train.overlong_buffer >= shorter:
            keys = ("train.overlong_buffer", "generation.max_new_tokens_attempt1", "generation.max_new_tokens_attempt2")
            yield keys, f"a buffer of {train.overlong_buffer} tokens is no part of {shorter}: lower it"
        group = train.attempts_per_prompt * train.revisions_per_attempt
        if train.baseline == "leave_one_out" and group == 1:
            keys = ("train.baseline", "train.attempts_per_prompt", "train.revisions_per_attempt")
            yield (
                keys,
                (
                    "leave_one_out needs at least two completions to compare: raise attempts_per_prompt or "
                    "revisions_per_attempt, or set baseline: batch or none"
                ),
            )
        if train.baseline == "leave_one_out" and train.attempts_per_prompt == 1 and group > 1:
            keys = ("train.baseline", "train.attempts_per_prompt")
            yield (
                keys,
                (
                    "leave_one_out needs attempts_per_prompt of at least 2 to compare first attempts: raise it, or set "
                    "baseline: batch"
                ),
            )
        if train.kl_sample < 1 and train.kl == "k1_in_reward":
            keys = ("train.kl_sample", "train.kl")
            yield keys, "a KL in the reward is of every attempt, none is drawn: set kl_sample: 1, or another kl"
        if train.adaptive_beta2 and train.beta2 == 0:
            yield ("train.adaptive_beta2", "train.beta2"), "a beta2 of 0 can not adapt: give it a start value above 0"
        if train.adaptive_beta2 and train.base_first_attempts == 1:
            keys = ("train.adaptive_beta2", "train.base_first_attempts")
            yield keys, "with base_first_attempts = 1 no first attempt is the policy's: beta2 has nothing to adapt to"
        yield from self.reward.conflicts()
        yield from _conflicts_of_collapse(train)
        if not (train.has_steps(1) or train.has_steps(2)):
            yield ("train.stage1_steps", "train.stage2_steps"), "both stages have 0 steps: nothing would be trained"
        yield from _conflicts_of_rows(self)

    def smoke(self, examples: int) -> "ScoreConfig":
        """At most `examples` rows, a few steps of small groups and short answers, with evaluations and checkpoints.

        The first stage that has steps gets two, with an evaluation between them, the other one.
        """
        train, gen, ev = self.train, self.generation, self.eval
        batch = _smoke_batch(examples)
        attempts = ("max_new_tokens_attempt1", "max_new_tokens_attempt2")
        budgets = {key: min(getattr(gen, key), SMOKE_TOKENS) for key in attempts}
        return self.model_copy(
            update={
                "run_name": f"{self.run_name}-smoke",
                "dataset": self.dataset.model_copy(
                    update={"max_train_rows": examples, "test_split_size": min(self.dataset.test_split_size, examples)}
                ),
                "generation": gen.model_copy(update=budgets),
                "train": train.model_copy(
                    update={
                        "stage1_steps": 2 if train.has_steps(1) else 0,
                        "stage2_steps": (1 if train.has_steps(1) else 2) if train.has_steps(2) else 0,
                        "stage1_batch_size": batch,
                        "stage2_batch_size": batch,
                        "attempts_per_prompt": min(train.attempts_per_prompt, 2),
                        "revisions_per_attempt": min(train.revisions_per_attempt, 2),
                        "overlong_buffer": min(train.overlong_buffer, min(budgets.values()) - 1),
                        "checkpoint_every": 1,
                    }
                ),
                "eval": ev.model_copy(
                    update={
                        "rows": None,
                        "max_examples": min(ev.max_examples, examples),
                        "samples_per_prompt": min(ev.samples_per_prompt, 2),
                        "every_steps": 1,
                    }
                ),
            }
        )


class Endpoint(Section):
    """A model behind an OpenAI-compatible server: OpenAI, Azure, Together, vLLM, llama.cpp, `transformers serve`.

    What openai's client reads in the environment holds, such as OPENAI_ORG_ID, HTTPS_PROXY and OPENAI_CUSTOM_HEADERS.
    """

    base_url: str | None = None  # up to and including /v1; null: OPENAI_BASE_URL, and without it OpenAI itself
    model: Name  # as the server calls it
    api: Literal["chat", "responses"] = "chat"  # /chat/completions or /responses
    api_key_env: Name | None = None  # the environment variable that holds the key, never the key
    # null: no key; but OPENAI_API_KEY where base_url is null too
    azure_api_version: Name | None = None  # such as 2024-10-21: base_url, or AZURE_OPENAI_ENDPOINT, is then that of an
    # Azure resource, https://RESOURCE.openai.azure.com, model a deployment, AZURE_OPENAI_API_KEY the key by default
    headers: dict[Name, str] = {}  # sent with every request, and kept in config.yaml: none that is secret
    max_concurrency: Count = 32  # requests at once
    deadline_s: Annotated[float, Field(gt=0)] = 120.0  # for one reply, all its retries included
    max_retries: Annotated[int, Field(ge=0)] = 5  # after 408, 409, 429, 5xx, malformed answers and broken connections
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = (
        "max_tokens"  # OpenAI's new models want the latter
    )
    extra_body: dict[str, Any] = {}  # sent as it is, such as {reasoning: {effort: low}}; {seed: null} sends no seed
    input_price: Weight = 0.0  # per million tokens, in your currency: what a run costs is told as it goes
    output_price: Weight = 0.0

    def cost(self, read: int, written: int) -> float:
        """What so many tokens cost."""
        return (read * self.input_price + written * self.output_price) / 1e6


class Thinking(Section):
    """Reasoning before the answer: counted apart, and read by rewards between its tags, as they read it in training."""

    enabled: bool | None = None  # told to the chat template as `enable_thinking`; null leaves that to the template
    budget_tokens: Annotated[int, Field(ge=0)] = 0  # on top of max_new_tokens
    open_tag: Name = "<think>"
    close_tag: Name = "</think>"


class KeptThinking(Thinking):
    """Reasoning of rollouts."""

    keep: bool = True  # rows carry it, between the tags, for SFT to learn


class ChatSampling(Section):
    """How chats are answered, and budgets in tokens. Nothing is trained on these log-probs, so top_p is allowed."""

    samples_per_prompt: Count = 1
    temperature: Weight = 1.0  # 0 is greedy
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0  # of an endpoint only
    max_new_tokens: Count = 1024  # of one reply
    thinking: KeptThinking = KeptThinking()
    batch_size: Count = 64  # of a local model: replies decoded at once, at most

    @property
    def most_tokens(self) -> int:
        """Of one reply, reasoning included."""
        return self.max_new_tokens + self.thinking.budget_tokens


class Web(Section):
    """`web.search` and `web.fetch`. Off: they need `enabled`, or a folder of documents in place of the internet."""

    enabled: bool = False  # true: may reach public addresses, and no others
    folder: str | None = None  # documents (.txt .md .html) that are searched and fetched instead; no network at all
    timeout_s: Annotated[float, Field(gt=0, le=120)] = (
        15.0  # of one call: name, connection, redirects and body together
    )
    max_characters: Count = 20_000  # of a page's text
    ports: list[Annotated[int, Field(ge=1, le=65535)]] = [80, 443]
    allowed_domains: list[Name] = []  # with their subdomains; empty: every public one
    blocked_hosts: list[Name] = []  # your own public ones: names, with their subdomains, addresses, networks
    per_host_per_minute: Count = 300  # a hundred rollouts may ask one encyclopedia at once; others wait, or fail
    user_agent: Name = "Rematch/0.1 (research)"


class Tools(Section):
    """What the model may call while it answers. Outputs of tools are never trained on."""

    names: list[Name] = []  # python.run, web.search, web.fetch, or the dotted path of a function of yours
    protocol: Literal["auto", "native", "json"] = "auto"
    # native: the chat template's, or the endpoint's, own tool calls; json: one JSON object at the end of a message;
    # auto: native, unless the model is local and its template knows no tools
    max_turns: Count = 6  # messages of the model in one episode
    max_calls_per_turn: Count = 1
    call_timeout_s: Annotated[float, Field(gt=0)] = 60.0
    total_timeout_s: Annotated[float, Field(gt=0)] = 300.0  # of all calls of an episode
    max_total_tokens: Count = 16_384  # that the model writes in one episode
    max_result_characters: Count = 8_000  # what the model sees of a result
    web: Web = Web()

    @property
    def uses_web(self) -> bool:
        """Whether a web tool is among them."""
        return any(name.startswith("web.") for name in self.names)


class Collection(Section):
    """Which of the rollouts go into `selected.jsonl`. May change at a --resume: nothing is asked again."""

    min_reward: float | None = None
    only_matches: bool | None = None  # right answers alone; null: where a `reward` is given
    best_of: Count | None = None  # the best so many of each prompt, by reward, then by length
    distinct: bool = True  # of equal completions of a prompt the first
    truncated: bool = False  # true keeps answers that were cut off by a budget


class Upload(Section):
    """Where the selected rows go, beside the run directory."""

    repo_id: Name  # a data set on the model hub
    private: bool = True


class RolloutDataset(Section):
    """Rows to ask about: a hub id, a file, a folder of files, or a saved data set."""

    name: Name
    config_name: str | None = None
    revision: str | None = None
    split: str | None = None  # such as train or train[:2000]; needed where a source has several
    target_field: Name | None = None  # the column with the right answer, for rewards that compare
    max_rows: Count | None = None  # the first ones


class ChatPrompts(Section):
    """What is asked. `{column}` in `user` is filled from the row; double a brace to keep it."""

    system: str = ""
    user: str = "{prompt}"
    messages_field: Name | None = None  # a column that holds a chat already, in place of `user`; `system` stands before
    # chats that have no system message of their own


class CollectConfig(RunConfig):
    """collect_rollouts.py"""

    endpoint: Endpoint | None = None  # who answers: a server,
    model: Model | None = None  # or a model in this process,
    adapter: str | None = None  # with an adapter on it
    dataset: RolloutDataset
    prompts: ChatPrompts = ChatPrompts()
    generation: ChatSampling = ChatSampling()
    tools: Tools = Tools()
    reward: Reward | None = None  # null: nothing is judged
    sandbox: Sandbox = Sandbox()
    select: Collection = Collection()
    upload: Upload | None = None

    def conflicts(self) -> Iterator[Conflict]:
        """Values that do not fit together, each with the keys involved and the cure."""
        if (self.endpoint is None) == (self.model is None):
            yield ("endpoint", "model"), "give one of the two: a server to ask, or a model to load"
        if self.model:
            yield from self.model.conflicts()
        if self.adapter and self.model is None:
            yield ("adapter", "model"), "an adapter needs a local model: give `model`, or remove it"
        if self.model and self.generation.top_p < 1:
            yield ("generation.top_p", "model"), "a local model samples from all of its distribution: set top_p to 1"
        if self.endpoint:
            yield from _conflicts_of_endpoint("", self.endpoint, self.generation.thinking, "generation.thinking")
        most = self.generation.most_tokens
        if self.model and most >= self.model.max_seq_length:
            keys = ("generation.max_new_tokens", "generation.thinking.budget_tokens", "model.max_seq_length")
            yield keys, f"a reply of up to {most} tokens leaves no room for a prompt: lower it, or raise max_seq_length"
        if self.generation.temperature == 0 and self.generation.samples_per_prompt > 1:
            keys = ("generation.temperature", "generation.samples_per_prompt")
            yield keys, "greedy samples of a prompt are all alike: raise temperature, or ask once"
        web = self.tools.web
        if self.tools.uses_web and not web.enabled and web.folder is None:
            keys = ("tools.names", "tools.web.enabled", "tools.web.folder")
            yield keys, "web tools are off: set tools.web.enabled: true, or give a tools.web.folder of documents"
        if web.enabled and web.folder:
            yield (
                ("tools.web.enabled", "tools.web.folder"),
                "give one of the two: the internet, or a folder of documents",
            )
        if self.reward is not None:
            yield from self.reward.conflicts()
        if self.reward is None and (self.select.min_reward is not None or self.select.only_matches):
            keys = ("reward", "select.min_reward", "select.only_matches")
            yield keys, "there is no reward to select by: give `reward`, or remove the threshold"

    @property
    def selection(self) -> Collection:
        """What is kept, `only_matches` decided."""
        chosen = self.select.only_matches
        return self.select.model_copy(update={"only_matches": self.reward is not None if chosen is None else chosen})

    def smoke(self, examples: int) -> "CollectConfig":
        """At most `examples` rows, two short samples each, with tools a call and the answer."""
        generation, tools = self.generation, self.tools
        budget = min(generation.thinking.budget_tokens, SMOKE_REPLY_TOKENS)
        return self.model_copy(
            update={
                "run_name": f"{self.run_name}-smoke",
                "dataset": self.dataset.model_copy(update={"max_rows": examples}),
                "generation": generation.model_copy(
                    update={
                        "samples_per_prompt": min(generation.samples_per_prompt, 2),
                        "max_new_tokens": min(generation.max_new_tokens, SMOKE_REPLY_TOKENS),
                        "thinking": generation.thinking.model_copy(update={"budget_tokens": budget}),
                    }
                ),
                "tools": tools.model_copy(update={"max_turns": min(tools.max_turns, 2)}),
                "upload": None,
            }
        )


def _conflicts_of_endpoint(
    section: str, endpoint: Endpoint, thinking: Thinking, thinking_key: str = ""
) -> Iterator[Conflict]:
    """What is wrong with the server of `section` ("" for the config's own)."""
    key = f"{section}.endpoint".removeprefix(".")
    if endpoint.api == "responses" and thinking.enabled is not None:
        yield (
            (f"{thinking_key or f'{section}.thinking'}.enabled", f"{key}.api"),
            f"the responses API has no such switch: use {key}.extra_body, such as {{reasoning: {{effort: low}}}}",
        )
    if endpoint.base_url is not None and (wrong := wrong_address(endpoint.base_url)):
        yield (f"{key}.base_url",), wrong
    elif endpoint.azure_api_version and endpoint.base_url and urlsplit(endpoint.base_url).path.strip("/"):
        yield (
            (f"{key}.base_url", f"{key}.azure_api_version"),
            "of Azure it is the resource alone, such as https://RESOURCE.openai.azure.com: the rest is added",
        )
    for name, value in endpoint.headers.items():
        if not (name + value).isascii() or not (name + value).isprintable():
            yield (f"{key}.headers",), f"{name!r} has a character that no header has, such as a line break"


def wrong_address(url: str) -> str:
    """What is wrong with a server's address, "" if nothing is."""
    if not re.match(r"https?://[^\s/]+", url):
        return f"no address: {url!r}; write http://HOST:PORT/v1"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (it raises where it is none)
    except ValueError as error:
        return f"no address: {error}; write http://HOST:PORT/v1"
    if parts.username is not None:
        return "it holds a name or password, which logs would show: use endpoint.api_key_env"
    return ""


class SelfPlayDataset(Dataset):
    """Where rows come from; programming tasks need no column with the right answer."""

    target_field: Name | None = None  # for rewards that compare, and for the leak test of hints


class SelfPlayPrompts(ChatPrompts):
    """What the policy and its opponent are asked, and how the policy is shown a hint."""

    hinted: str = "{question}\n\nHint: {hint}"  # the last message of a retry; {question} is what it was before


class SelfPlayGeneration(TrainedSampling):
    """The policy's answers; budgets in tokens."""

    max_prompt_length: Count = 1024  # longer prompts are left out, and counted; a hint comes on top of it
    max_new_tokens: Count = 1024
    thinking: Thinking = Thinking()

    @property
    def most_tokens(self) -> int:
        """Of one answer, reasoning included."""
        return self.max_new_tokens + self.thinking.budget_tokens


class Snapshots(Section):
    """An opponent on the same base: adapters that the policy had before. On held-out rows it is the first of all."""

    every_steps: Annotated[int, Field(ge=0)] = 0  # steps between two snapshots; 0: the policy as it began, for ever
    keep: Count = 4  # the pool's size; the oldest goes first
    pick: Literal["latest", "uniform"] = "uniform"  # which of them plays a step; fixed opponents are overfitted


class Curriculum(Section):
    """How likely a prompt is drawn, by how much its group is likely to differ: 4 p (1 - p), p its pass rate."""

    floor: Fraction = 0.1  # weight of a prompt whose answers all earn the same, where one solved half the time has 1
    opponent: Weight = 1.0  # weighs a prompt that the opponent solves and the policy does not 1 + this times as much
    memory: Fraction = 0.3  # how much of what was known of p the next outcome leaves
    forget_after: Annotated[float, Field(gt=0)] = 4.0  # epochs in which what is known fades to 1/e, p to one half


class Opponent(Section):
    """Who answers the original question once, beside the policy's group: a server, or the policy's own past."""

    endpoint: Endpoint | None = None
    snapshots: Snapshots | None = None
    use: Literal["scoreboard", "additive", "win", "curriculum"] = "scoreboard"
    # scoreboard: is counted, no more; win: a win is paid 1, a tie and a loss less, answer by answer (below);
    # curriculum: who solved a prompt decides how often it comes; additive: reward - opponent's reward, the same for a
    # whole group, so that the baseline removes it (lib/selfplay.py)
    weight: Fraction = 0.2  # of win, in (1 - weight) * reward + weight * score; of additive
    tie_break: Literal["shorter_answer", "none"] = "shorter_answer"  # between two right answers alone
    both_wrong: Fraction = 0.5  # the score where neither is right and the rewards are equal
    curriculum: Curriculum = Curriculum()
    temperature: Weight = 0.7
    max_new_tokens: Count | None = None  # null: as many as the policy
    thinking: Thinking = Thinking()
    outage: Literal["mask", "stop"] = "mask"  # of a server that has answered before
    # mask: games count as ties, and on no scoreboard; stop: the run ends, to be resumed


HINT_REQUEST = """You help a student with the problem below, and you have seen them fail. Write a single concrete \
pointer in plain English, of at most 30 words. No code, no answer, no preamble.

{question}"""
CRITIQUE_REQUEST = """A student failed at the problem below. Say in plain English, in at most 30 words, what to \
change. No code, no answer, no preamble.

{question}

The student's attempt:
{attempt}"""


class Hint(Section):
    """When a teacher is asked for a hint, and what becomes of the policy's second try under it.

    A request may name {question}, {attempt} and any column of the row: what it does not name, the teacher does not see.
    """

    neither: Fraction = 0.15  # probability where the whole group failed, and the opponent too or could not be had
    opponent_only: Fraction = 0.1  # where the group failed and the opponent did not
    train: Literal["on_policy", "off_policy", "collect"] = "collect"
    # on_policy: the retries are a group of their own, trained under the hinted prompt; off_policy: under the plain one,
    # with a truncated importance weight; collect: those that are right go to sft.jsonl
    modes: list[Literal["hint", "critique"]] = Field(default=["hint"], min_length=1)  # one is drawn for each prompt
    hint_request: str = HINT_REQUEST
    critique_request: str = CRITIQUE_REQUEST
    retries: Count | None = None  # answers under the hint; null: as many as in any group
    max_characters: Count = 300  # of a hint, which is cut at a space


class Solve(Section):
    """Solutions by the teacher: judged, and kept for SFT alone."""

    probability: Fraction = 0.0  # where the whole group failed
    request: str = "{question}"


class Teacher(Section):
    """A model behind a server that helps where the policy fails."""

    endpoint: Endpoint
    hint: Hint = Hint()
    solve: Solve = Solve()
    temperature: Weight = 0.6
    max_new_tokens: Count = 256  # of a hint; a solution may have as many as an answer of the policy
    thinking: Thinking = Thinking()
    outage: Literal["mask", "stop"] = "mask"  # mask: go on without help; stop: the run ends, to be resumed


class SamplerCorrection(Section):
    """Importance weights for samples of an engine whose log-probs differ from those that are trained."""

    level: Literal["sequence", "token"] = "sequence"  # only the first is unbiased
    cap: Annotated[float, Field(ge=1)] = 2.0
    beyond: Literal["truncate", "mask"] = "truncate"  # mask: what exceeds the cap is left out


class GspoTrain(TrainLoop):
    """GSPO (Zheng et al. 2025, arXiv 2507.18071) and its relatives; null takes what belongs to `loss`."""

    steps: Count | None = None  # null: epochs decides
    epochs: Annotated[float, Field(gt=0)] = 1.0
    batch_size: Count = 32  # prompts per step, over all processes
    group_size: Annotated[int, Field(ge=2)] = 8  # answers to each
    minibatches: Count = 4  # optimizer steps per step, each on its part of the prompts
    passes: Count = 1  # over the same answers
    loss: Literal["gspo", "gspo_token", "grpo", "dr_grpo", "dapo", "cispo", "rloo"] = "gspo"
    clip: tuple[Weight, Weight] | None = None  # two numbers: the ratio stays within 1 - first and 1 + second
    advantage: Literal["group_std", "group", "batch_std", "leave_one_out", "none"] | None = None  # see lib/losses.py
    length_norm: Literal["sequence", "constant", "token"] | None = None  # as in SCoRe
    beta: Weight = 0.0  # KL weight; 0 needs no reference
    kl: KlKind = "k3"
    sampler_correction: SamplerCorrection | None = None


def _conflicts_of_collapse(train: TrainLoop) -> Iterator[Conflict]:
    """A return to what is not kept."""
    if train.on_collapse == "restore" and not train.keep_best:
        keys = ("train.on_collapse", "train.keep_best")
        yield keys, "there is no best checkpoint to go back to: set keep_best: true, or on_collapse: stop"


def _conflicts_of_rows(config: "ScoreConfig | SelfPlayConfig") -> Iterator[Conflict]:
    """Held-out rows that are none."""
    first, end = config.eval.rows or (0, 1)
    keys = ("eval.rows", "dataset.test_split_size")
    if first >= end:
        yield keys, f"no row is from {first} and before {end}: give [first, end] with a first below the end"
    elif end > config.dataset.test_split_size:
        held = config.dataset.test_split_size
        yield keys, f"{end} is beyond the {held} rows of dataset.test_split_size: lower the first or raise the latter"


class SelfPlayConfig(RunConfig):
    """rl_train_gspo_selfplay.py"""

    model: Model
    lora: Lora = Lora()
    dataset: SelfPlayDataset
    prompts: SelfPlayPrompts = SelfPlayPrompts()
    reward: Reward = Reward()
    sandbox: Sandbox = Sandbox()
    generation: SelfPlayGeneration = SelfPlayGeneration()
    opponent: Opponent | None = None
    teacher: Teacher | None = None
    optimizer: Optimizer = Optimizer()
    train: GspoTrain = GspoTrain()
    eval: Eval = Eval()

    def conflicts(self) -> Iterator[Conflict]:
        """Values that do not fit together, each with the keys involved and the cure."""
        gen, train, limit = self.generation, self.train, self.model.max_seq_length
        yield from self.model.conflicts()
        need = gen.max_prompt_length + gen.most_tokens
        if need > limit:
            keys = ("generation.max_prompt_length", "generation.max_new_tokens", "model.max_seq_length")
            yield (
                keys,
                f"max_prompt_length + max_new_tokens + thinking.budget_tokens = {need} exceeds model.max_seq_length = "
                f"{limit}: lower one of the first or raise the last",
            )
        if train.minibatches > train.batch_size:
            keys = ("train.minibatches", "train.batch_size")
            yield keys, f"{train.batch_size} prompts do not make {train.minibatches} minibatches: lower the latter"
        if self.eval.temperature == 0 and self.eval.samples_per_prompt > 1:
            keys = ("eval.temperature", "eval.samples_per_prompt")
            yield keys, "greedy samples of a prompt are all alike: raise temperature, or take one"
        yield from _conflicts_of_rows(self)
        if train.overlong_buffer >= gen.most_tokens:
            keys = ("train.overlong_buffer", "generation.max_new_tokens")
            yield keys, f"a buffer of {train.overlong_buffer} tokens is no part of {gen.most_tokens}: lower it"
        if self.opponent and (self.opponent.endpoint is None) == (self.opponent.snapshots is None):
            keys = ("opponent.endpoint", "opponent.snapshots")
            yield keys, "a server or snapshots of the policy: give one of the two, and set the other to null"
        if self.opponent and self.opponent.snapshots:
            if self.opponent.thinking != Thinking():
                keys = ("opponent.thinking", "opponent.snapshots")
                yield keys, "a snapshot thinks as the policy does: remove it, and use generation.thinking"
            need = gen.max_prompt_length + (self.opponent.max_new_tokens or 0)
            if need > limit:
                keys = ("opponent.max_new_tokens", "generation.max_prompt_length", "model.max_seq_length")
                yield keys, f"max_prompt_length + opponent.max_new_tokens = {need} exceeds {limit}: lower the latter"
        if self.opponent and self.opponent.endpoint:
            yield from _conflicts_of_endpoint("opponent", self.opponent.endpoint, self.opponent.thinking)
        if self.teacher:
            if self.teacher.hint.train != "collect" and self.teacher.hint.retries == 1:
                keys = ("teacher.hint.retries", "teacher.hint.train")
                yield keys, "one retry has nobody to be compared with: raise retries, or set train: collect"
            yield from _conflicts_of_endpoint("teacher", self.teacher.endpoint, self.teacher.thinking)
        yield from self.reward.conflicts()
        yield from _conflicts_of_collapse(train)

    def smoke(self, examples: int) -> "SelfPlayConfig":
        """At most `examples` rows, 2 steps, small groups and budgets, both evaluation and checkpoints on."""
        train, gen, opponent, teacher = self.train, self.generation, self.opponent, self.teacher
        batch = _smoke_batch(examples)
        thinking = gen.thinking.model_copy(update={"budget_tokens": min(gen.thinking.budget_tokens, SMOKE_TOKENS)})
        if opponent and opponent.snapshots:
            often = opponent.snapshots.model_copy(update={"every_steps": min(opponent.snapshots.every_steps, 1)})
            opponent = opponent.model_copy(update={"snapshots": often})
        if teacher:
            hint = teacher.hint.model_copy(update={"neither": 1.0, "opponent_only": 1.0})
            teacher = teacher.model_copy(update={"hint": hint})
        return self.model_copy(
            update={
                "run_name": f"{self.run_name}-smoke",
                "dataset": self.dataset.model_copy(
                    update={"max_train_rows": examples, "test_split_size": min(self.dataset.test_split_size, examples)}
                ),
                "generation": gen.model_copy(
                    update={"max_new_tokens": min(gen.max_new_tokens, SMOKE_TOKENS), "thinking": thinking}
                ),
                "opponent": opponent,
                "teacher": teacher,
                "train": train.model_copy(
                    update={
                        "steps": 2,
                        "batch_size": batch,
                        "group_size": min(train.group_size, 4),
                        "minibatches": min(train.minibatches, 2, batch),
                        "overlong_buffer": min(train.overlong_buffer, 16),
                        "checkpoint_every": 1,
                    }
                ),
                "eval": self.eval.model_copy(
                    update={
                        "rows": None,
                        "max_examples": min(self.eval.max_examples, examples),
                        "samples_per_prompt": min(self.eval.samples_per_prompt, 2),
                        "every_steps": 1,
                    }
                ),
            }
        )


class SFTModel(Model):
    """The model to fine-tune: loaded by name, or built from nothing."""

    name: Name | None = None
    from_scratch: FromScratch | None = None


class SFTDataset(Section):
    """Rows with `messages` (chat), or `prompt` and `completion`, and `tools` if need be: see lib/chats.py."""

    name: Name
    config_name: str | None = None
    revision: str | None = None
    split: str | None = None
    test_split_size: Annotated[int, Field(ge=0)] = 200  # drawn or first ones, as in train.py
    family_field: Name | None = None
    max_train_rows: Count | None = None  # the first ones, counted last: chosen by the next two, not held out, distinct
    min_reward: float | None = None  # of the column `reward`, as rollouts have it
    only_matches: bool = False  # rows whose column `match` is true alone
    distinct: bool = True  # of equal chats the first


class SFTPrompts(Section):
    """What stands before the rows' own turns."""

    system: str = ""  # before chats that have no system message of their own


class SFTTrain(Section):
    """Supervised fine-tuning: loss on what the assistant says and the end of its turns, as lib/chats.py finds them."""

    steps: Count | None = None  # null: epochs decides
    epochs: Annotated[float, Field(gt=0)] = 1.0
    batch_size: Count = 16  # sequences per forward and process
    gradient_accumulation: Count = 1
    max_length: Count = 1024  # tokens of a sequence
    truncation: Literal["drop", "cut"] = "drop"
    # drop: turns whose end lies beyond max_length are not trained; cut: their beginning is, which teaches no end
    packing: bool = False  # true: sequences are filled up with several chats, which do not see each other
    shuffle: bool = True  # false: rows in the order of the file, a curriculum
    checkpoint_every: Annotated[int, Field(ge=0)] = 0
    on_collapse: Literal["warn", "stop"] = "stop"  # as in train.py
    eval_every: Annotated[int, Field(ge=0)] = 0  # its loss is the mean of batches, so compare equal batch sizes


class SFTConfig(RunConfig):
    """sft_train.py"""

    model: SFTModel
    lora: Lora | None = None  # null: all weights are trained
    dataset: SFTDataset
    prompts: SFTPrompts = SFTPrompts()
    optimizer: Optimizer = Optimizer()
    train: SFTTrain = SFTTrain()

    def conflicts(self) -> Iterator[Conflict]:
        """Values that do not fit together, each with the keys involved and the cure."""
        yield from self.model.conflicts()
        if self.train.max_length > self.model.max_seq_length:
            yield (
                ("train.max_length", "model.max_seq_length"),
                (
                    f"train.max_length = {self.train.max_length} exceeds model.max_seq_length = "
                    f"{self.model.max_seq_length}: lower the first or raise the second"
                ),
            )
        if (self.model.name is None) == (self.model.from_scratch is None):
            yield ("model.name", "model.from_scratch"), "give one of the two: a model to load, or one to build"
        if self.model.from_scratch and self.model.adapter:
            yield ("model.from_scratch", "model.adapter"), "no adapter fits random weights: remove one of the two"
        if self.model.from_scratch and self.lora:
            yield ("model.from_scratch", "lora"), "random weights must all be trained: set lora: null"
        if self.train.packing and not self.train.shuffle:
            keys = ("train.packing", "train.shuffle")
            yield keys, "packing puts rows together by length, whatever their order: set one of the two the other way"

    def smoke(self, examples: int) -> "SFTConfig":
        """At most `examples` rows and 4 steps of few, with an evaluation between them."""
        train = self.train
        return self.model_copy(
            update={
                "run_name": f"{self.run_name}-smoke",
                "dataset": self.dataset.model_copy(
                    update={"max_train_rows": examples, "test_split_size": min(self.dataset.test_split_size, examples)}
                ),
                "train": train.model_copy(
                    update={
                        "steps": 4,
                        "batch_size": min(train.batch_size, _smoke_batch(examples)),
                        "gradient_accumulation": min(train.gradient_accumulation, 2),
                        "eval_every": 2,
                    }
                ),
            }
        )


PLACEHOLDERS = ("seed", "variant", "threads", "dir", "run")


class SweepConfig(Outputs):
    """sweep.py"""

    stages: Annotated[dict[Annotated[str, Field(pattern=r"^[a-z]\w*$")], Name], Field(min_length=1)]
    # commands in order, as they are typed; a word ending in .py at the start is run by this Python. {seed}, {variant}
    # and {threads} are those of the run, {dir} is a folder of the stage's own, {run} makes it the script's run
    # directory, {name} is the folder of an earlier stage. Double other braces. The last stage is what is measured.
    variants: Annotated[
        dict[Annotated[str, Field(pattern=r"^[\w.-]+$")], list[Name] | dict[str, list[Name]]], Field(min_length=1)
    ] = {"default": []}
    # words behind the last stage's command, or {stage: words}; what no variant changes is run once per seed
    seeds: Count | Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = 5  # 5: seeds 0 to 4
    threads: Annotated[list[Count], Field(min_length=1)] = [1]  # OMP_NUM_THREADS; seed n gets the (n mod length)th
    parallel: Count | None = None  # commands at once; null: as many as there are cores for their threads
    figures: dict[str, Name] = {}  # of a last stage that is no script: {moment.key: regular expression with one group}
    # for its screen output, whose last match is the figure
    require: list[str] = []  # conditions on every run, see lib/conditions.py

    @property
    def all_seeds(self) -> list[int]:
        """Every seed, in order."""
        return list(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    def extra_words(self, variant: str, stage: str) -> list[str]:
        """What a variant puts behind the command of a stage."""
        words = self.variants[variant]
        if isinstance(words, list):
            words = {list(self.stages)[-1]: words}
        return words.get(stage, [])

    def conflicts(self) -> Iterator[Conflict]:
        """Values that do not fit together, each with the keys involved and the cure."""
        known = list(PLACEHOLDERS)
        for stage, command in self.stages.items():
            if stage in PLACEHOLDERS:
                yield ("stages",), f"'{stage}' already means something in a command: give the stage another name"
            texts = [command, *(word for variant in self.variants for word in self.extra_words(variant, stage))]
            yield from ((("stages", "variants"), f"{stage}: {wrong}") for wrong in _placeholder_mistakes(texts, known))
            known.append(stage)
        for variant, words in self.variants.items():
            for stage in words if isinstance(words, dict) else ():
                if stage not in self.stages:
                    hint = did_you_mean(stage, self.stages) or f"; known: {', '.join(self.stages)}"
                    yield ("variants", "stages"), f"{variant}: there is no stage '{stage}'{hint}"
        if len(set(self.all_seeds)) < len(self.all_seeds):
            yield ("seeds",), "a seed stands there twice: remove one of the two"
        for name, pattern in self.figures.items():
            try:
                groups = re.compile(pattern).groups
            except re.error as error:
                yield ("figures",), f"{name}: '{pattern}' is no regular expression ({error}): correct it"
            else:
                if groups != 1 or not re.fullmatch(r"[A-Za-z]\w*\.[A-Za-z_]\w*", name):
                    yield ("figures",), f"{name}: expected moment.key, and one pair of brackets around the number"
        for text in self.require:
            try:
                read_condition(text)
            except ValueError as error:
                yield ("require",), str(error)


def _placeholder_mistakes(texts: list[str], known: list[str]) -> Iterator[str]:
    for text in texts:
        try:
            names = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
        except ValueError as error:
            yield f"'{text}': {str(error).lower()}; double a brace to keep it"
            continue
        for name in sorted(names - set(known)):
            hint = did_you_mean(name, known) or f"; known here: {', '.join(known)}"
            yield f"'{{{name}}}' is no placeholder{hint}; double a brace to keep it"


Config = TypeVar("Config", bound=Outputs)


def parser(doc: str, smoke: bool = True, required: bool = True) -> argparse.ArgumentParser:
    """The command line that all scripts share: `--config FILE`, `--smoke N` and `section.key=value` overrides."""
    result = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--config", required=required, type=Path, metavar="FILE", help="the YAML file of the task")
    if smoke:
        result.add_argument(
            "--smoke", type=positive, metavar="N", help="N examples, a few steps, short answers: every part, in minutes"
        )
    result.add_argument("overrides", nargs="*", metavar="section.key=value", help="replace values of the config")
    return result


def resuming_parser(doc: str) -> argparse.ArgumentParser:
    """The same with the verbs of the scripts that save checkpoints."""
    result = parser(doc)
    result.add_argument(
        "--resume", nargs="?", const=True, default=False, type=Path, metavar="DIR",
        help="go on with the run, exactly from its last checkpoint, or from that in DIR",
    )  # fmt: skip
    result.add_argument("--allow-config-change", action="store_true", help="resume although config or data changed")
    return result


def training_parser(doc: str) -> argparse.ArgumentParser:
    """The same with the verbs of the scripts that train by reinforcement."""
    result = resuming_parser(doc)
    result.add_argument("--dry-run", action="store_true", help="show prompts, plan, tokens and memory; train nothing")
    result.add_argument("--resume-adapter", type=Path, metavar="DIR", help="start from these adapter weights alone")
    result.add_argument("--profile", type=int, default=0, metavar="N", help="trace N steps, into the run's profile/")
    return result


def parse(options: argparse.ArgumentParser) -> argparse.Namespace:
    """The command line of a script that saves checkpoints; overrides may stand anywhere, behind --resume too."""
    words = sys.argv[1:]
    for i, (word, following) in enumerate(pairwise(words)):
        if word == "--resume" and re.match(r"[\w.]+=", following):  # no folder: the newest checkpoint is meant
            words = [*words[:i], *words[i + 1 :], word]
            break
    return options.parse_intermixed_args(words)


def positive(text: str) -> int:
    """The number that an option of a script gives."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got '{text}', expected a whole number of at least 1")
    return int(text)


KINDS = (ScoreConfig, SelfPlayConfig, CollectConfig, SFTConfig, SweepConfig)


def load(
    kinds: type[Config] | tuple[type[Config], ...],
    path: Path,
    overrides: list[str] = (),
    smoke: int | None = None,
    say: Callable[[str], None] = print,
) -> Config:
    """The validated config of `path`, with overrides and then `--smoke` applied, which says what it changes.

    Of several kinds it is the one that knows most of the file's keys, and of equals the first. Raises ConfigError: one
    line per mistake, with file and line, dotted key, what was got and what to do; or one for the config of a script
    that is not meant.
    """
    tree, lines, mistakes = _read(path)
    kind = _kind_of(tree, kinds if isinstance(kinds, tuple) else (kinds,), path)
    for text in overrides:
        mistakes += _override(tree, lines, text)
    config, found = _validate(kind, tree)
    for key, message in found:
        mistakes.append((lines.get(key) or lines.get(key.rpartition(".")[0]) or "", f"{key}: {message}"))
    if mistakes:
        where = [f"{line if isinstance(line, str) else f'{path}:{line}'}" for line, _ in mistakes]
        text = "\n".join(f"{at or path}: {message}" for at, (_, message) in zip(where, mistakes, strict=True))
        raise ConfigError(text)
    if not smoke:
        return config
    small = config.smoke(smoke)
    changes = differences(config.model_dump(mode="json"), small.model_dump(mode="json"))
    say(f"--smoke {smoke} changes {', '.join(f'{key} {change}' for key, change in changes)}")
    return small


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The dotted keys whose values differ in two trees, each with `before -> now`."""
    old, new = (dict(_flat(tree)) for tree in (before, now))
    for key in {**old, **new}:
        pair = old.get(key, "absent"), new.get(key, "absent")
        if pair[0] != pair[1]:
            yield key, f"{pair[0]!r} -> {pair[1]!r}"


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def dump(config: Outputs) -> str:
    """The resolved config as YAML that `load` reads back."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)


class _Loader(yaml.SafeLoader):
    """YAML whose scalars mean what people expect: `no` is text, `010` is 10, `1e-5` is a number."""

    yaml_implicit_resolvers: ClassVar[dict[str, list]] = {}


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|false|False)$"), list("tTfF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|)$"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver("tag:rematch:int", re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$|^[-+]?\.(?:inf|nan)$"),
    list("-+.0123456789"),
)
MERGE = "tag:yaml.org,2002:merge"  # `<<: *name` in a section: the keys of another one, but for those it has itself
_Loader.add_implicit_resolver(MERGE, re.compile(r"^<<$"), ["<"])
_Loader.add_constructor("tag:rematch:int", lambda loader, node: int(node.value))
MOST_VALUES = 10_000  # of a config, what it repeats by `*name` included
DEEPEST = 50  # levels


def read_tree(path: Path) -> dict:
    """The values of a YAML file by key, whatever the keys. ConfigError where it can not be read."""
    return _read(path)[0]


def _read(path: Path) -> tuple[dict, dict[str, Any], list[tuple[Any, str]]]:
    """The tree of a YAML file, the line of every dotted key, and the duplicate keys found."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(f"{path}: the config can not be read ({reason}); give an existing YAML file") from error
    try:
        root = _composed(text)
        if not isinstance(root, yaml.MappingNode):
            raise ConfigError(f"{path}: got no `key: value` lines, expected a config; see configs/ for examples")
        lines: dict[str, Any] = {}
        duplicates: list[tuple[Any, str]] = []
        _index(root, "", lines, duplicates)
        return _copy(_constructed(root)), lines, duplicates
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"{path}:{line}: not YAML: {error.reason}; remove that character") from error
    except _Knot as error:
        raise ConfigError(f"{path}:{error.problem_mark.line + 1}: {error.problem}") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: not YAML: {error.problem}; check indentation and quotes") from error


class _Knot(yaml.MarkedYAMLError):
    """YAML that would never come to an end, or not soon."""


def _composed(text: str) -> yaml.Node | None:
    """The YAML of a text, not yet made values. Raises a YAMLError: _Knot where it nests, repeats or holds itself."""
    too_deep = f"more than {DEEPEST} levels within each other; check brackets and indentation"
    depth = count = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):  # what comes after this calls itself for each level
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise _Knot(problem=too_deep, problem_mark=event.start_mark)

    def walk(node: yaml.Node, around: list[yaml.Node]) -> None:
        nonlocal count
        count += 1
        if any(node is each for each in around):
            problem = "the value that begins here holds itself, by *name; write out what is meant"
            raise _Knot(problem=problem, problem_mark=node.start_mark)
        if len(around) > DEEPEST:
            raise _Knot(problem=too_deep, problem_mark=node.start_mark)
        if count > MOST_VALUES:
            problem = f"more than {MOST_VALUES} values, those by *name included; shorten it"
            raise _Knot(problem=problem, problem_mark=node.start_mark)
        for child in node.value if isinstance(node, yaml.CollectionNode) else ():
            for each in child if isinstance(child, tuple) else (child,):
                walk(each, [*around, node])

    root = yaml.compose(text, Loader=_Loader)
    if root is not None:
        walk(root, [])
    return root


def _constructed(root: yaml.Node | None) -> Any:
    loader = _Loader("")
    try:
        return None if root is None else loader.construct_document(root)
    finally:
        loader.dispose()


def _kind_of(tree: dict, kinds: tuple[type[Config], ...], path: Path) -> type[Config]:
    """Which of `kinds` a file is. ConfigError where each has unknown keys, and the config of another script has none.

    So a typo stays a typo. What is missing does not count: that is told by its name.
    """
    kind = min(kinds, key=lambda each: _strangers(each, tree))
    owner = next((each for each in KINDS if not _strangers(each, tree)), kind)
    if _strangers(kind, tree) and owner is not kind:
        scripts = " or ".join(each.__doc__ for each in kinds)
        raise ConfigError(
            f"{path}: this is a config of {owner.__doc__}, expected one of {scripts}: give such a file, or start "
            f"{owner.__doc__}"
        )
    return kind


def _strangers(kind: type[BaseModel], tree: dict) -> int:
    """How many keys of a tree a section does not know, those of its sections included."""
    count = 0
    for key, value in tree.items():
        if key not in kind.model_fields:
            count += 1
        elif isinstance(value, dict) and (section := _section_of(kind.model_fields[key])):
            count += _strangers(section, value)
    return count


def _index(node: yaml.MappingNode, prefix: str, lines: dict[str, Any], duplicates: list[tuple[Any, str]]) -> None:
    """Notes the line of every dotted key of a section; what `<<` brings in gives way to the section's own keys."""
    for key_node, value_node in node.value:
        if key_node.tag == MERGE:
            continue
        key = prefix + str(key_node.value)
        line = key_node.start_mark.line + 1
        if key in lines:
            duplicates.append((line, f"{key}: given twice, first in line {lines[key]}: remove one of them"))
        lines[key] = line
        if isinstance(value_node, yaml.MappingNode):
            _index(value_node, key + ".", lines, duplicates)
    own = [key for key in lines if key.startswith(prefix)]
    for brought in (value for key, value in node.value if key.tag == MERGE):
        for section in brought.value if isinstance(brought, yaml.SequenceNode) else [brought]:
            theirs: dict[str, Any] = {}
            if isinstance(section, yaml.MappingNode):
                _index(section, prefix, theirs, [])
            for key, line in theirs.items():
                if not any(f"{key}.".startswith(f"{each}.") for each in own):
                    lines.setdefault(key, line)


def _override(tree: dict, lines: dict[str, Any], text: str) -> list[tuple[Any, str]]:
    """Sets one `section.key=value` in the tree; returns the mistake, if it is one."""
    where = f"override '{text}'"
    key, equals, value = text.partition("=")
    if not equals or not key:
        return [(where, "expected section.key=value, for example optimizer.learning_rate=1e-5")]
    *path, last = key.split(".")
    node = tree
    for depth, part in enumerate(path, start=1):
        if not isinstance(node.get(part), dict):
            node[part] = {}
            lines[".".join(path[:depth])] = where
        node = node[part]
    try:
        node[last] = _constructed(_composed(value)) if value else ""
    except _Knot as error:
        return [(f"override '{key}=...'", error.problem)]
    except yaml.YAMLError:
        node[last] = value
    lines[key] = where
    return []


def _validate(kind: type[Config], tree: dict) -> tuple[Config | None, list[tuple[str, str]]]:
    """The config, or every mistake in it: pydantic's first, then the conflicts among the fields that are sound."""
    found: list[tuple[str, str]] = []
    stubs: list[str] = []  # keys whose value is ours: what is wrong with it, or below it, has been told
    config = None
    for _ in range(3):  # what is wrong is taken out, so that the remaining fields can still be checked together
        try:
            config = kind.model_validate(tree)
            break
        except ValidationError as error:
            tree, round_found, round_stubs = _explain(kind, tree, error)
            found += [(key, text) for key, text in round_found if not any(f"{key}.".startswith(f"{s}.") for s in stubs)]
            stubs += round_stubs
    if config is not None:
        bad = {key for key, _ in found}
        found += [(keys[0], message) for keys, message in config.conflicts() if not bad.intersection(keys)]
    return config, found


def _explain(
    kind: type[BaseModel], tree: dict, error: ValidationError
) -> tuple[dict, list[tuple[str, str]], list[str]]:
    """The tree with wrong values replaced, pydantic's errors as (dotted key, sentence), and the keys of stubs."""
    found: dict[str, str] = {}
    stubs: list[str] = []
    tree = _copy(tree)
    for problem in error.errors():
        path, field = _locate(kind, problem["loc"], tree)
        key = ".".join(path) or "config"
        node = tree
        for part in path[:-1]:
            node = node.setdefault(part, {})
        if problem["type"] == "extra_forbidden":
            found[key] = f"unknown key{_meant(kind, path)}"
            node.pop(path[-1], None)
        elif problem["type"] == "missing" and isinstance(problem["loc"][-1], str):
            found[key] = "is missing and has no default: add it"
            node[path[-1]] = {} if _is_section(field) else "unset"
            stubs.append(key)
        else:
            got = "" if problem["type"] == "value_error" else f", got {_short(problem['input'])}"
            message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "should be")
            message = message[0].lower() + message[1:]
            found[key] = found[key] if key in found else message + got
            if field is not None and field.is_required() and not _is_section(field):
                node[path[-1]] = "unset"
                stubs.append(key)
            elif field is not None and _is_section(field) and isinstance(node.get(path[-1]), dict):
                node[path[-1]] = {k: v for k, v in node[path[-1]].items() if k not in SAMPLER_TRICKS}
            else:
                node.pop(path[-1], None)
                stubs.append(key)
    return tree, list(found.items()), stubs


def _locate(kind: type[BaseModel], location: tuple, tree: dict) -> tuple[list[str], Any]:
    """The dotted path of a pydantic location, without its union and list parts, and the field it names."""
    path: list[str] = []
    owner: Any = kind
    field = None
    for part in location:
        if owner is None or not isinstance(part, str):
            break
        path.append(part)
        field = owner.model_fields.get(part)
        owner = _section_of(field) if field is not None else None
    return path, field


def _meant(kind: type[BaseModel], path: list[str]) -> str:
    """Where a key that is unknown in its place stands instead, or which one it resembles, or what is known there."""
    name = path[-1]
    owner = _owner(kind, path)
    known = list(owner.model_fields) if owner else []
    new = RENAMED.get(".".join(path), RENAMED.get(name))
    elsewhere = " or ".join(key for key in _keys(kind) if f".{key}".endswith(f".{new or name}"))
    resembling = "" if new and elsewhere else did_you_mean(name, known)
    return resembling or (f"; it is {elsewhere}" if elsewhere else f"; known here: {', '.join(known)}")


def _keys(kind: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every dotted key of a config, the sections' own names left out."""
    for name, field in kind.model_fields.items():
        section = _section_of(field)
        if section is None:
            yield prefix + name
        else:
            yield from _keys(section, f"{prefix}{name}.")


def _owner(kind: type[BaseModel], path: list[str]) -> type[BaseModel] | None:
    owner: Any = kind
    for part in path[:-1]:
        owner = _section_of(owner.model_fields[part])
    return owner


def _section_of(field: Any) -> type[BaseModel] | None:
    """The Section class that a field holds, also behind `| None`."""
    for option in (field.annotation, *getattr(field.annotation, "__args__", ())):
        if get_origin(option) is None and isinstance(option, type) and issubclass(option, BaseModel):  # Python 3.10
            return option
    return None


def _is_section(field: Any) -> bool:
    return field is not None and _section_of(field) is not None


def _copy(value: Any) -> Any:
    """A copy in which every key is text, so that a key such as `1` is unknown like any other."""
    return {str(key): _copy(item) for key, item in value.items()} if isinstance(value, dict) else value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

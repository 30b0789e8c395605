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
RENAMED = {  # keys of earlier versions, with their present names
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
SMOKE_TOKENS = 32  # per answer: its longest answer, not its prompts, decides what a small batch costs
SMOKE_REPLY_TOKENS = 256  # per reply that is not trained on: room for a short solution


def _smoke_batch(examples: int) -> int:
    """Returns the number of a smoke run's examples per step: a quarter, but at least two, for two minibatches.

    A quarter of the held-out rows is used for selection, too: four examples per process give every process a part.
    """
    return min(examples, max(2, examples // 4))


class Section(BaseModel):
    """Base of every block of the YAML: unknown keys are mistakes, values never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, coerce_numbers_to_str=False)


class FromScratch(Section):
    """A model that is built instead of loaded: random weights and a tokenizer of single characters."""

    architecture: dict[str, Any]  # fields of the transformers config; `model_type` names the class
    characters: Name  # each of these characters becomes one token
    special_tokens: list[str] = []  # tokens of several characters, such as tags and turn markers
    eos_token: Name = "<|im_end|>"  # ends turns and answers
    pad_token: Name = "<|pad|>"  # fills batches


class Model(Section):
    """What is trained, and how it is loaded."""

    name: Name  # Hugging Face Hub id or local folder
    revision: str | None = None  # branch, tag or commit on the Hub
    adapter: Name | None = None  # folder of a saved LoRA adapter to merge into the frozen base (lib/merging.py)
    backend: Literal["auto", "plain", "unsloth"] = "auto"  # auto: Unsloth if it is installed and there is a GPU
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: bfloat16 on a GPU that supports it, else float32
    load_in_4bit: bool = False  # true: QLoRA, through bitsandbytes
    max_seq_length: Count = 2048  # tokens of prompt and answer together, at most
    chat_template: str = ""  # Jinja text or the path of a file; "": the tokenizer's own template
    chat_template_kwargs: dict[str, Any] = {}  # variables for the chat template, such as {enable_thinking: false}
    gradient_checkpointing: bool = False  # true: less memory, about a third more time
    attn_implementation: str | None = None  # as in transformers, such as sdpa or eager; null: its default
    trust_remote_code: bool = False  # true: run code that comes with the model

    @property
    def full_name(self) -> str | None:
        """Returns the name of the model, with its merged adapter if it has one."""
        return f"{self.name} + {self.adapter}" if self.adapter else self.name

    def conflicts(self) -> Iterator[Conflict]:
        """Yields the values of the section that do not fit together."""
        if self.adapter and self.load_in_4bit:
            yield (
                ("model.adapter", "model.load_in_4bit"),
                "nothing can be merged into weights of 4 bits, which are too coarse to hold it: merge once, by "
                "evaluate.py --merge OUT model.load_in_4bit=false, then set model.name=OUT and remove model.adapter",
            )


class Lora(Section):
    """The trainable part. Dropout is absent on purpose: it would give the KL a noise floor."""

    r: Count = 16  # rank
    alpha: Annotated[float, Field(gt=0)] = 16  # the update is scaled by alpha / r
    targets: list[Name] | Literal["all-linear"] = [
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
    ]  # fmt: skip
    # names of the linear layers that get an adapter


class Dataset(Section):
    """Where rows come from: a hub id, a file (.json .jsonl .csv .parquet), a folder of them, or a saved data set."""

    name: Name  # Hub id, file or folder
    config_name: str | None = None  # configuration of a Hub data set
    revision: str | None = None  # branch, tag or commit on the Hub
    split: str | None = None  # if given, `test_split_size` rows drawn from it are held out; the others are for training
    target_field: Name = "answer"  # column of the right answers
    test_split_size: Count = 200
    # number of held-out rows: drawn by a hash of the prompt (or family); if there is a test split, its first rows
    family_field: Name | None = None  # a column; rows with the same value are never both held out and trained on
    spill_test_into_train: bool = False  # true: also train on the rows of the official test split that are not held out
    max_train_rows: Count | None = None  # train on at most this many rows: the first ones that can be used


class Prompts(Section):
    """What the model reads. `{column}` in `user` is filled from the row; double a brace to keep it."""

    system: str = ""  # system message; empty: none
    user: Name = "Question:\n{question}"  # first user message
    self_correction: Name  # the user message after attempt 1 that asks for attempt 2
    history: Literal["full", "plain_text", "answer_only"] = "full"
    # how attempt 2 sees attempt 1. full: exactly the tokens that were sampled; plain_text: without the think tags, but
    # with the text between them; answer_only: without the think block


def weights_of(fn: Any) -> dict[str, float]:
    """Returns the weight of each reward that `reward.fn` names. Raises ConfigError with every mistake in it."""
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

    fn: Name | dict[Name, Weight] = "exact_match"
    # name of one reward, or several with weights, which are summed: {exact_match: 1, code: 0.5}
    format: Literal["free", "answer", "think_answer", "boxed"] = "free"
    # the required form of a completion, and the place of its answer (lib/formats.py); elsewhere, no answer is right.
    # answer: one `<answer>` block, at the end; think_answer: one `<think>` block, one `<answer>` block, nothing else;
    # boxed: one `\boxed{}`, at the end; free: any text, in which the extractor finds the answer
    answer_extractor: Name = "identity"  # extracts the answer from the place that `format` declares
    target_extractor: Name | None = None
    # extracts the answer from a target; null: identity, or the same as answer_extractor if the format is free
    match: Name = "exact"  # when an answer counts as equal to the target, for accuracy and for the bonus.
    # exact: same text or same number; math: also an equivalent formula, worked out as far as the target
    options: dict[str, Any] = {}  # keyword arguments of the reward; with several rewards {reward: {argument: value}}
    timeout_s: Annotated[float, Field(gt=0)] | None = None
    # seconds for judging one batch of answers; if it takes longer, the run stops

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
        """Yields a conflict if a reward pays for a format and none is declared."""
        paying = [name for name in weights_of(self.fn) if getattr(rewards.get(name), "pays_format", False)]
        if self.format == "free" and paying:
            keys = ("reward.format", "reward.fn")
            yield keys, f"'{paying[0]}' pays for a format, and none is declared: set think_answer, answer or boxed"


class Sandbox(Section):
    """Where rewards run programs of the model: `python -m lib.sandbox --self-test` tells what holds on a machine."""

    workers: Count | None = None  # programs run at once; null: one per core, shared by the processes of this run
    allow_unsafe: bool = False  # true: run programs even if nothing protects this machine
    numpy: bool = False  # true: programs may import numpy
    max_timeout_s: Annotated[float, Field(ge=0.1, le=600)] = 10.0  # upper bound on the time limit that a row asks for
    max_memory_mb: Annotated[int, Field(ge=64)] = 1024  # what a row requests beyond is cut


SAMPLER_TRICKS = ("top_p", "top_k", "min_p", "repetition_penalty")


class TrainedSampling(Section):
    """Sampling whose log-probs are trained, at this very temperature."""

    temperature: Annotated[float, Field(gt=0)] = 1.0  # log-probs are trained at this temperature too
    batch_size: Count | None = None  # maximum number of completions decoded at once; null: as many as memory allows

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

    max_prompt_length_attempt1: Count = 384  # rows with a longer first prompt are left out, and counted
    max_prompt_length_attempt2: Count = 1024  # if too long, the middle of attempt 1 is cut out, never the instruction
    max_new_tokens_attempt1: Count = 512  # budget of attempt 1, its end token included
    max_new_tokens_attempt2: Count = 512  # budget of attempt 2


class AdaptiveBeta2(Section):
    """Holds KL(attempt 1) near `target` by moving beta2 (proportional controller, Ziegler et al. 2019)."""

    target: Annotated[float, Field(gt=0)]  # KL of attempt 1, in nats per token
    rate: Annotated[float, Field(gt=0, le=1)] = 0.1  # each step of stage I multiplies beta2 by 1 + rate * error
    max_error: Annotated[float, Field(gt=0)] = 0.2  # the error is KL / target - 1, clipped to this size


class Optimizer(Section):
    """AdamW and its schedule; each stage starts a fresh one unless told otherwise."""

    name: Literal["adamw", "adamw_8bit"] = "adamw"  # adamw_8bit needs bitsandbytes
    learning_rate: Annotated[float, Field(gt=0)] = 2e-5  # the highest rate, after the warm-up
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)  # decay rates of AdamW's two moments
    weight_decay: Weight = 0.0  # decoupled, as in AdamW
    warmup_steps: Annotated[int, Field(ge=0)] = 0  # steps over which the rate rises linearly, in each stage
    schedule: Literal["constant", "linear", "cosine"] = "constant"  # after the warm-up: constant, or down to 0
    max_grad_norm: Annotated[float, Field(gt=0)] = 1.0  # gradients are clipped to this norm


class TrainLoop(Section):
    """What both RL scripts say of their optimizer steps."""

    micro_batch_tokens: Count = 16_384  # tokens per forward pass, padding included; affects memory, never the update
    checkpoint_every: Annotated[int, Field(ge=0)] = 0  # steps; 0 = at the end, and of each stage
    keep_checkpoints: Annotated[int, Field(ge=2)] = 2  # how many checkpoints of each stage are kept: the newest
    keep_best: bool = True  # true: also keep each stage's checkpoint with the best held-out accuracy, `stage<N>/best`
    on_non_finite: Literal["stop", "skip"] = "stop"
    # what happens if a loss or gradient is not finite. stop: the run ends; skip: the step is dropped, but the third one
    # in a row ends the run
    on_collapse: Literal["warn", "stop", "restore"] = "stop"
    # what happens on a collapse (defined in lib/watch.py). warn: it is only reported; stop: the run ends (exit code 3);
    # restore: the run goes back to its best checkpoint, at half the learning rate
    overlong_buffer: Annotated[int, Field(ge=0)] = 0
    # the last tokens of the budget, over which a penalty grows linearly from 0 to 1 (DAPO, eq. 13); 0: no penalty
    mask_truncated: bool = False  # true: completions cut off by the token limit are not trained on
    resample_rounds: Annotated[int, Field(ge=0)] = 0
    # DAPO's dynamic sampling: how many times, at most, a step draws more prompts to replace those that teach nothing,
    # because all answers earn the same reward or, in train.py, no attempt has an advantage
    identical_rewards_warning: Count = 20  # warn after this many steps in a row in which no prompt's rewards differ
    stop_on_identical_rewards: bool = False  # true: then end the run instead of warning


KlKind = Literal["k3", "k2", "k1_in_reward", "exact"]  # see lib/losses.py for the value and the gradient of each


class ScoreTrain(TrainLoop):
    """SCoRe (Kumar et al. 2024, arXiv 2409.12917): equations 3 and 4 and their knobs."""

    stage1_steps: Annotated[int, Field(ge=0)] | None = None  # optimizer steps of stage I; null: stage1_epochs decides
    stage2_steps: Annotated[int, Field(ge=0)] | None = None  # optimizer steps of stage II; null: stage2_epochs decides
    stage1_epochs: Weight = 1.0  # passes over the training rows
    stage2_epochs: Weight = 1.0  # passes over the training rows
    stage1_batch_size: Count = 16  # prompts per optimizer step, over all processes together
    stage2_batch_size: Count = 16  # prompts per optimizer step, over all processes
    attempts_per_prompt: Count = 4  # K1: first attempts at each prompt
    revisions_per_attempt: Count = 2  # K2: second attempts after each first attempt
    alpha: Weight = 1.0
    # weight of the bonus alpha * (r2 - r1), paid to attempt 2 only. The paper's 10 is for one revision per attempt:
    # comparing several revisions cancels r1, so that the bonus only adds alpha times what attempt 2 earns in bonus_on
    beta1: Weight = 0.01  # KL weight of both attempts
    beta2: Weight = 0.1  # additional KL weight of attempt 1 in stage I
    beta1_in_stage1: bool = True  # true: beta1 applies in stage I too, as in the paper
    adaptive_beta2: AdaptiveBeta2 | None = None  # null: beta2 is fixed
    bonus_on: Literal["match", "reward"] = "match"
    # what the bonus compares. match: whether each attempt is right, so that fixing the format earns no bonus; reward:
    # the rewards
    baseline: Literal["leave_one_out", "batch", "none"] = "leave_one_out"
    # what is subtracted from a reward: the mean of its group without it, the mean of the batch, or nothing. With none,
    # rewards that are never negative can only make sampled text more likely
    kl: KlKind = "k3"  # estimator of the KL (lib/losses.py)
    kl_sample: Annotated[float, Field(gt=0, le=1)] = 1.0
    # share of the first attempts without an advantage (their own or a revision's) that is drawn for the KL, where it
    # counts 1 / kl_sample times; the others need no forward pass. Unbiased, but noisier
    length_norm: Literal["sequence", "constant", "budget", "token"] = "sequence"
    # weight of each token of an attempt y. sequence: 1/|y|, which makes long wrong answers cheap; constant:
    # 1/max_new_tokens (Dr. GRPO), using the larger of the two limits, so that tokens of both attempts weigh the same;
    # budget: 1/max_new_tokens of its own attempt; token: a mean over all tokens of the step
    base_first_attempts: Fraction = 0.0
    # share of prompts whose first attempts are sampled from the base model, as context only
    fresh_optimizer_per_stage: bool = True  # true: stage II starts without AdamW's moments

    def has_steps(self, stage: int) -> bool:
        """Tells whether a stage trains anything."""
        steps = getattr(self, f"stage{stage}_steps")
        return (getattr(self, f"stage{stage}_epochs") if steps is None else steps) > 0


class Eval(Section):
    """Held-out accuracy. Questions that are reported and questions to choose by, a checkpoint for one, never mix."""

    rows: tuple[Annotated[int, Field(ge=0)], Count] | None = None
    # [first, end]: the held-out rows that this run uses, counted from 0, without `end`; null: all. The other rows stay
    # unseen, for a later evaluate.py --rows
    max_examples: Count = 200  # maximum number of questions reported: the first that are not for selection
    step_examples: Count | None = None  # the same for evaluations within a stage (every_steps); null: max_examples
    selection_examples: Annotated[int, Field(ge=0)] = 200
    # maximum number of questions kept apart to choose a checkpoint, at most a quarter of the held-out rows; 0: none
    temperature: Weight = 0.0  # sampling temperature; 0: greedy decoding
    greedy_too: bool = False  # true: if answers are sampled, also evaluate greedily, before training and after stages
    samples_per_prompt: Count = 1  # with 2 or more, a revision is compared with a fresh first attempt
    every_steps: Annotated[int, Field(ge=0)] = 0
    # training steps between evaluations; 0: evaluate only before training and at the end, or after each stage
    seed: int = 0  # of sampled evaluations

    def within(self, held_out: int) -> tuple[int, int]:
        """Returns the first row and the end of the part of `held_out` rows that this run uses."""
        return self.rows or (0, held_out)

    def examples(self, when: str) -> int:
        """Returns the most questions that an evaluation reports."""
        return self.step_examples or self.max_examples if when == "step" else self.max_examples

    def passes(self, when: str) -> list["Eval"]:
        """Returns this evaluation, and the greedy one if there is one: one sample, since greedy answers are equal."""
        if when == "step" or not self.greedy_too or self.temperature == 0:
            return [self]
        return [self, self.model_copy(update={"temperature": 0.0, "samples_per_prompt": 1})]


class Tracking(Section):
    """An optional dashboard beside the JSONL logs, which are always written."""

    backend: Literal["none", "wandb", "tensorboard", "trackio"] = "none"  # none: the JSONL logs alone
    project: Name = "rematch"
    # the project in the dashboard. With W&B, its environment variables (WANDB_PROJECT, WANDB_MODE, WANDB_ENTITY,
    # WANDB_NAME, WANDB_RUN_GROUP, ...) take precedence over this section
    mode: Literal["auto", "offline", "online"] = "auto"  # for W&B; auto: online if it finds an API key, else offline
    entity: Name | None = None  # team or user
    name: Name | None = None  # name of the run in the dashboard; null: run_name
    group: Name | None = None  # groups runs in the dashboard
    tags: list[Name] = []  # labels of the run
    notes: Name | None = None  # a longer description of the run
    samples: Annotated[int, Field(ge=0)] = 8  # maximum number of texts in a table of samples


class Outputs(Section):
    """What every script's config has: a directory of its own."""

    run_name: Annotated[str, Field(pattern=r"^[\w.-]+$")]  # names the folder of the run
    output_dir: Name = "outputs"  # the folder that holds the runs

    @property
    def run_dir(self) -> Path:
        """Returns the run directory, `<output_dir>/<run_name>`."""
        return Path(self.output_dir) / self.run_name

    def conflicts(self) -> Iterator[Conflict]:
        """Yields values that do not fit together: the keys involved, and a sentence that ends with the fix."""
        return iter(())


class RunConfig(Outputs):
    """What the config of every script that trains or collects has."""

    seed: int = 3407  # of data order, initial adapter and sampling
    tracking: Tracking = Tracking()

    def smoke(self, examples: int) -> "RunConfig":
        """Returns this config, reduced to a run of one to three minutes that uses every part of the loop."""
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
        """Yields values that do not fit together: the keys involved, and a sentence that ends with the fix."""
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
        """Returns a config of at most `examples` rows, a few steps, small groups, short answers and evaluations.

        The first stage that has steps gets two, with an evaluation between them; the other gets one.
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

    base_url: str | None = None  # up to and including /v1; null: OPENAI_BASE_URL if that is set, else OpenAI itself
    model: Name  # the model's name on the server
    api: Literal["chat", "responses"] = "chat"  # which API to call: /chat/completions or /responses
    api_key_env: Name | None = None  # name of the environment variable that holds the key, not the key itself;
    # null: no key, or OPENAI_API_KEY if base_url is null too
    azure_api_version: Name | None = None
    # such as 2024-10-21, for Azure: base_url (or AZURE_OPENAI_ENDPOINT) is then the resource's address,
    # https://RESOURCE.openai.azure.com, `model` is a deployment, and the key is in AZURE_OPENAI_API_KEY by default
    headers: dict[Name, str] = {}  # sent with every request and saved in config.yaml, so put no secrets here
    max_concurrency: Count = 32  # maximum number of requests at once
    deadline_s: Annotated[float, Field(gt=0)] = 120.0  # seconds for one reply, including all retries
    max_retries: Annotated[int, Field(ge=0)] = 5
    # retries of a request after status 408, 409, 429 or 5xx, a malformed reply or a broken connection
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    # name of the request field for the token limit; OpenAI's new models need max_completion_tokens
    extra_body: dict[str, Any] = {}
    # fields added to every request as they are, such as {reasoning: {effort: low}}; {seed: null} sends no seed
    input_price: Weight = 0.0  # price of a million input tokens in your currency, to report what a run costs
    output_price: Weight = 0.0  # the same for tokens that it writes

    def cost(self, read: int, written: int) -> float:
        """Returns the cost of `read` input tokens and `written` output tokens."""
        return (read * self.input_price + written * self.output_price) / 1e6


class Thinking(Section):
    """Reasoning before the answer: counted apart, and read by rewards between its tags, as they read it in training."""

    enabled: bool | None = None  # passed to the chat template as `enable_thinking`; null: the template decides
    budget_tokens: Annotated[int, Field(ge=0)] = 0  # tokens for reasoning, on top of max_new_tokens
    open_tag: Name = "<think>"  # opens a block of reasoning
    close_tag: Name = "</think>"  # closes it


class KeptThinking(Thinking):
    """Reasoning of rollouts."""

    keep: bool = True  # true: rows include the reasoning between its tags, so that SFT trains on it


class ChatSampling(Section):
    """How chats are answered, and budgets in tokens. Nothing is trained on these log-probs, so top_p is allowed."""

    samples_per_prompt: Count = 1  # answers to each prompt
    temperature: Weight = 1.0  # 0: greedy decoding
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0  # for endpoints only
    max_new_tokens: Count = 1024  # maximum tokens of one reply; thinking.budget_tokens come on top
    thinking: KeptThinking = KeptThinking()
    batch_size: Count = 64  # maximum number of replies that a local model decodes at once

    @property
    def most_tokens(self) -> int:
        """Returns the token limit of one reply, reasoning included."""
        return self.max_new_tokens + self.thinking.budget_tokens


class Web(Section):
    """`web.search` and `web.fetch`. Off: they need `enabled`, or a folder of documents in place of the internet."""

    enabled: bool = False  # true: the tools may reach public internet addresses, and no others
    folder: str | None = None  # folder of documents (.txt .md .html) to use instead of the internet, offline
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 15.0
    # seconds for one call: name resolution, connection, redirects and body together
    max_characters: Count = 20_000  # maximum length of a page's text; the rest is cut
    ports: list[Annotated[int, Field(ge=1, le=65535)]] = [80, 443]  # ports that may be reached
    allowed_domains: list[Name] = []  # domains that may be fetched, with their subdomains; empty: all public ones
    blocked_hosts: list[Name] = []
    # hosts never to fetch from, such as your own public ones: names (with their subdomains), addresses, networks
    per_host_per_minute: Count = 300
    # maximum requests to one host per minute; more must wait, or fail if that takes too long. All rollouts share the
    # limit, so it is high: a hundred of them may ask one encyclopedia at once
    user_agent: Name = "Rematch/0.1 (research)"  # sent with every request


class Tools(Section):
    """What the model may call while it answers. Outputs of tools are never trained on."""

    names: list[Name] = []  # python.run, web.search, web.fetch, or the dotted path of your own function
    protocol: Literal["auto", "native", "json"] = "auto"
    # how the model calls a tool. native: by the tool calls of the chat template or the endpoint; json: by one JSON
    # object at the end of a message; auto: native, unless the model is local and its template does not support tools
    max_turns: Count = 6  # maximum number of messages of the model in one episode
    max_calls_per_turn: Count = 1  # further calls of a turn are refused
    call_timeout_s: Annotated[float, Field(gt=0)] = 60.0  # seconds of one call
    total_timeout_s: Annotated[float, Field(gt=0)] = 300.0  # seconds for all calls of an episode together
    max_total_tokens: Count = 16_384  # maximum tokens that the model writes in one episode
    max_result_characters: Count = 8_000  # maximum length of a tool's result that the model sees
    web: Web = Web()

    @property
    def uses_web(self) -> bool:
        """Tells whether any of the tools is a web tool."""
        return any(name.startswith("web.") for name in self.names)


class Collection(Section):
    """Which of the rollouts go into `selected.jsonl`. May change at a --resume: nothing is asked again."""

    min_reward: float | None = None  # null: any reward
    only_matches: bool | None = None  # true: only right answers; null: true if a `reward` is given
    best_of: Count | None = None  # maximum rows per prompt: those with the highest reward, then the shortest
    distinct: bool = True  # true: of equal completions of a prompt, only the first
    truncated: bool = False  # true: also completions that were cut off by a limit


class Upload(Section):
    """Where the selected rows go, beside the run directory."""

    repo_id: Name  # id of a dataset on the Hugging Face Hub
    private: bool = True  # false: everybody may see it


class RolloutDataset(Section):
    """Rows to ask about: a hub id, a file, a folder of files, or a saved data set."""

    name: Name  # Hub id, file or folder
    config_name: str | None = None  # configuration of a Hub data set
    revision: str | None = None  # branch, tag or commit on the Hub
    split: str | None = None  # such as train or train[:2000]; required if there are several splits
    target_field: Name | None = None  # the column with the right answer, for rewards that compare with it
    max_rows: Count | None = None  # use at most this many rows, the first ones


class ChatPrompts(Section):
    """What is asked. `{column}` in `user` is filled from the row; double a brace to keep it."""

    system: str = ""  # system message; empty: none
    user: str = "{prompt}"  # the user message
    messages_field: Name | None = None
    # a column that holds a whole chat, used in place of `user`; `system` is put before chats without a system message


class CollectConfig(RunConfig):
    """collect_rollouts.py"""

    endpoint: Endpoint | None = None  # the server that answers; give either this or `model`
    model: Model | None = None  # the model that answers, loaded in this process; give either this or `endpoint`
    adapter: str | None = None  # a LoRA adapter for the local `model`
    dataset: RolloutDataset
    prompts: ChatPrompts = ChatPrompts()
    generation: ChatSampling = ChatSampling()
    tools: Tools = Tools()
    reward: Reward | None = None  # how answers are judged; null: not at all
    sandbox: Sandbox = Sandbox()
    select: Collection = Collection()
    upload: Upload | None = None

    def conflicts(self) -> Iterator[Conflict]:
        """Yields values that do not fit together: the keys involved, and a sentence that ends with the fix."""
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
        """Returns `select` with a value for `only_matches`."""
        chosen = self.select.only_matches
        return self.select.model_copy(update={"only_matches": self.reward is not None if chosen is None else chosen})

    def smoke(self, examples: int) -> "CollectConfig":
        """Returns a config of at most `examples` rows and two short samples of each, with one round of tools."""
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
    """Yields what is wrong with the server of `section` ("" for the config's own)."""
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
    """Returns what is wrong with a server's address, "" if nothing is."""
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

    target_field: Name | None = None  # the column with the right answer: for rewards, and to drop hints that reveal it


class SelfPlayPrompts(ChatPrompts):
    """What the policy and its opponent are asked, and how the policy is shown a hint."""

    hinted: str = "{question}\n\nHint: {hint}"  # last message of a retry; {question}: what it was without the hint


class SelfPlayGeneration(TrainedSampling):
    """The policy's answers; budgets in tokens."""

    max_prompt_length: Count = 1024  # longer prompts are left out, and counted; hints come on top of this limit
    max_new_tokens: Count = 1024  # budget of an answer, thinking not counted
    thinking: Thinking = Thinking()

    @property
    def most_tokens(self) -> int:
        """Returns the token limit of one answer, reasoning included."""
        return self.max_new_tokens + self.thinking.budget_tokens


class Snapshots(Section):
    """An opponent on the same base: adapters that the policy had before. On held-out rows it is the first of all."""

    every_steps: Annotated[int, Field(ge=0)] = 0  # steps between snapshots; 0: only the initial policy
    keep: Count = 4  # size of the pool; the oldest snapshot is dropped first
    pick: Literal["latest", "uniform"] = "uniform"
    # which snapshot plays a step; uniform: a random one, because the policy would overfit to a fixed opponent


class Curriculum(Section):
    """How likely a prompt is drawn, by how much its group is likely to differ: 4 p (1 - p), p its pass rate."""

    floor: Fraction = 0.1  # weight of a prompt that is always or never solved; one solved half the time has weight 1
    opponent: Weight = 1.0  # a prompt solved by the opponent and never by the policy weighs 1 + this times as much
    memory: Fraction = 0.3  # weight of the old estimate of p when a new outcome updates it
    forget_after: Annotated[float, Field(gt=0)] = 4.0
    # epochs after which, without new outcomes, the distance of p from one half has decayed to 1/e


class Opponent(Section):
    """Who answers the original question once, beside the policy's group: a server, or the policy's own past."""

    endpoint: Endpoint | None = None  # a server; give this or snapshots
    snapshots: Snapshots | None = None  # the policy's own past
    use: Literal["scoreboard", "additive", "win", "curriculum"] = "scoreboard"
    # what games change. scoreboard: nothing, they are only counted; win: the reward of each answer, by a score of 1 for
    # a win and less for a tie or a loss (see below); curriculum: how often a prompt is drawn, by who solved it;
    # additive: the reward, by its distance from the opponent's reward, which is the same for the whole group, so that
    # the baseline removes it (lib/selfplay.py)
    weight: Fraction = 0.2
    # win: the reward becomes (1 - weight) * reward + weight * score; additive: reward + weight * (reward - opponent's)
    tie_break: Literal["shorter_answer", "none"] = "shorter_answer"  # breaks ties of two right answers only
    both_wrong: Fraction = 0.5  # score of a game that neither wins: both wrong, with equal rewards
    curriculum: Curriculum = Curriculum()
    temperature: Weight = 0.7  # 0 = greedy
    max_new_tokens: Count | None = None  # maximum tokens of the opponent's answer; null: as many as the policy's
    thinking: Thinking = Thinking()
    outage: Literal["mask", "stop"] = "mask"
    # what happens if a server that has answered before fails. mask: its games count as ties, and on no scoreboard;
    # stop: the run stops, and can be resumed


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

    neither: Fraction = 0.15
    # probability of asking for a hint if the whole group failed and so did the opponent, or the request to it
    opponent_only: Fraction = 0.1  # the same probability if the whole group failed but the opponent did not
    train: Literal["on_policy", "off_policy", "collect"] = "collect"
    # what becomes of the retries. on_policy: trained as a group of their own, under the hinted prompt; off_policy:
    # trained under the plain prompt, with a truncated importance weight; collect: right ones are saved to sft.jsonl
    modes: list[Literal["hint", "critique"]] = Field(default=["hint"], min_length=1)
    # which requests are used (hint_request, critique_request); one mode is drawn for each prompt
    hint_request: str = HINT_REQUEST  # what the teacher is asked for a hint
    critique_request: str = CRITIQUE_REQUEST  # what it is asked for a critique of `{attempt}`
    retries: Count | None = None  # answers sampled under the hint; null: train.group_size
    max_characters: Count = 300  # maximum length of a hint; a longer one is cut at a space


class Solve(Section):
    """Solutions by the teacher: judged, and kept for SFT alone."""

    probability: Fraction = 0.0  # probability of asking for a solution if the whole group failed
    request: str = "{question}"  # what the teacher is asked


class Teacher(Section):
    """A model behind a server that helps where the policy fails."""

    endpoint: Endpoint  # the server that is asked
    hint: Hint = Hint()
    solve: Solve = Solve()
    temperature: Weight = 0.6  # 0 = greedy
    max_new_tokens: Count = 256  # maximum tokens of a hint; a solution may be as long as the policy's answers
    thinking: Thinking = Thinking()
    outage: Literal["mask", "stop"] = "mask"  # mask: train on without help; stop: the run stops, and can be resumed


class SamplerCorrection(Section):
    """Importance weights for samples of an engine whose log-probs differ from those that are trained."""

    level: Literal["sequence", "token"] = "sequence"  # one weight per answer or per token; only sequence is unbiased
    cap: Annotated[float, Field(ge=1)] = 2.0  # weights are truncated at this
    beyond: Literal["truncate", "mask"] = "truncate"  # for weights above `cap`; truncate: to the cap; mask: to 0


class GspoTrain(TrainLoop):
    """GSPO (Zheng et al. 2025, arXiv 2507.18071) and its relatives; null takes what belongs to `loss`."""

    steps: Count | None = None  # number of steps; null: epochs decides
    epochs: Annotated[float, Field(gt=0)] = 1.0  # passes over the training rows
    batch_size: Count = 32  # prompts per step, over all processes together
    group_size: Annotated[int, Field(ge=2)] = 8  # answers to each prompt
    minibatches: Count = 4  # parts into which a step's prompts are split, with one optimizer step each
    passes: Count = 1  # how often a step goes over the same answers
    loss: Literal["gspo", "gspo_token", "grpo", "dr_grpo", "dapo", "cispo", "rloo"] = "gspo"
    # a line of RECIPES in lib/losses.py
    clip: tuple[Weight, Weight] | None = None  # [low, high]: ratios are clipped to 1 - low and 1 + high
    advantage: Literal["group_std", "group", "batch_std", "leave_one_out", "none"] | None = None  # see lib/losses.py
    length_norm: Literal["sequence", "constant", "token"] | None = None  # weight of each token, as in ScoreTrain
    beta: Weight = 0.0  # KL weight; with 0, no reference model is run
    kl: KlKind = "k3"  # estimator of the KL (lib/losses.py)
    sampler_correction: SamplerCorrection | None = None  # null: none


def _conflicts_of_collapse(train: TrainLoop) -> Iterator[Conflict]:
    """Yields a conflict if the run is to go back to a best checkpoint that is not kept."""
    if train.on_collapse == "restore" and not train.keep_best:
        keys = ("train.on_collapse", "train.keep_best")
        yield keys, "there is no best checkpoint to go back to: set keep_best: true, or on_collapse: stop"


def _conflicts_of_rows(config: "ScoreConfig | SelfPlayConfig") -> Iterator[Conflict]:
    """Yields a conflict if `eval.rows` has no row, or rows beyond those held out."""
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
        """Yields values that do not fit together: the keys involved, and a sentence that ends with the fix."""
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
        """Returns a config of at most `examples` rows, 2 steps, small groups, short answers and evaluations."""
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

    name: Name | None = None  # Hub id or local folder; null: from_scratch
    from_scratch: FromScratch | None = None  # a tiny model that is built instead of loaded


class SFTDataset(Section):
    """Rows with `messages` (chat), or `prompt` and `completion`, and `tools` if need be: see lib/chats.py."""

    name: Name  # Hub id, file or folder
    config_name: str | None = None  # configuration of a Hub data set
    revision: str | None = None  # branch, tag or commit on the Hub
    split: str | None = None  # null: the only split; or train, with the test split held out
    test_split_size: Annotated[int, Field(ge=0)] = 200  # number of held-out rows, chosen as in Dataset
    family_field: Name | None = None  # column: rows that share its value are either held out or trained on
    max_train_rows: Count | None = None
    # train on at most this many rows: the first that are not held out and pass the three filters below
    min_reward: float | None = None  # lowest value in the column `reward`, which rollouts have
    only_matches: bool = False  # true: only rows in which the column `match` is true
    distinct: bool = True  # true: of equal chats, only the first


class SFTPrompts(Section):
    """What stands before the rows' own turns."""

    system: str = ""  # system message for chats that have none of their own


class SFTTrain(Section):
    """Supervised fine-tuning: loss on what the assistant says and the end of its turns, as lib/chats.py finds them."""

    steps: Count | None = None  # optimizer steps; null: epochs decides
    epochs: Annotated[float, Field(gt=0)] = 1.0  # passes over the training rows
    batch_size: Count = 16  # sequences per forward pass and process
    gradient_accumulation: Count = 1  # batches per optimizer step
    max_length: Count = 1024  # maximum tokens of a sequence
    truncation: Literal["drop", "cut"] = "drop"
    # for a turn that ends beyond max_length. drop: it is not trained; cut: its beginning is trained, without an end
    packing: bool = False  # true: several chats share a sequence, without attending to each other
    shuffle: bool = True  # false: rows are used in the order of the file, as a curriculum
    checkpoint_every: Annotated[int, Field(ge=0)] = 0  # steps; 0 = at the end
    on_collapse: Literal["warn", "stop"] = "stop"  # warn: only report a collapse (lib/watch.py); stop: end the run
    eval_every: Annotated[int, Field(ge=0)] = 0
    # steps between evaluations; 0: none. Their loss is a mean over batches, so compare only runs of equal batch size


class SFTConfig(RunConfig):
    """sft_train.py"""

    model: SFTModel
    lora: Lora | None = None  # null: no adapter, all weights are trained
    dataset: SFTDataset
    prompts: SFTPrompts = SFTPrompts()
    optimizer: Optimizer = Optimizer()
    train: SFTTrain = SFTTrain()

    def conflicts(self) -> Iterator[Conflict]:
        """Yields values that do not fit together: the keys involved, and a sentence that ends with the fix."""
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
        """Returns a config of at most `examples` rows and 4 small steps, with evaluations."""
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
    # {name: command}, run in this order; the last stage is measured. A command that begins with a .py file is run by
    # this Python. In it, {seed}, {variant} and {threads} are those of the run, {dir} is the stage's own folder, {run}
    # makes that the script's run directory, and the name of an earlier stage in braces is its folder. Double all other
    # braces.
    variants: Annotated[
        dict[Annotated[str, Field(pattern=r"^[\w.-]+$")], list[Name] | dict[str, list[Name]]], Field(min_length=1)
    ] = {"default": []}
    # words to append to the last stage's command, or {stage: words}; stages that no variant changes run once per seed
    seeds: Count | Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] = 5
    # a list of seeds, or their number: 5 is seeds 0 to 4
    threads: Annotated[list[Count], Field(min_length=1)] = [1]  # OMP_NUM_THREADS; seed n uses entry n mod length
    parallel: Count | None = None  # number of commands run at once; null: as many as have cores for their threads
    figures: dict[str, Name] = {}
    # for a last stage that is not a script of this repository: {moment.key: regular expression with one group}; the
    # figure is the last match in its screen output
    require: list[str] = []  # conditions that every run must meet (lib/conditions.py)

    @property
    def all_seeds(self) -> list[int]:
        """Returns all seeds, in order."""
        return list(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    def extra_words(self, variant: str, stage: str) -> list[str]:
        """Returns the words that a variant appends to the command of a stage."""
        words = self.variants[variant]
        if isinstance(words, list):
            words = {list(self.stages)[-1]: words}
        return words.get(stage, [])

    def conflicts(self) -> Iterator[Conflict]:
        """Yields values that do not fit together: the keys involved, and a sentence that ends with the fix."""
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
    """Returns the parser that all scripts share: `--config FILE`, `--smoke N` and `section.key=value` overrides."""
    result = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--config", required=required, type=Path, metavar="FILE", help="the YAML file of the task")
    if smoke:
        result.add_argument(
            "--smoke", type=positive, metavar="N", help="N examples, a few steps, short answers: every part, in minutes"
        )
    result.add_argument("overrides", nargs="*", metavar="section.key=value", help="replace values of the config")
    return result


def resuming_parser(doc: str) -> argparse.ArgumentParser:
    """Returns `parser` with the options of the scripts that save checkpoints."""
    result = parser(doc)
    result.add_argument(
        "--resume", nargs="?", const=True, default=False, type=Path, metavar="DIR",
        help="go on with the run, exactly from its last checkpoint, or from that in DIR",
    )  # fmt: skip
    result.add_argument("--allow-config-change", action="store_true", help="resume although config or data changed")
    return result


def training_parser(doc: str) -> argparse.ArgumentParser:
    """Returns `resuming_parser` with the options of the scripts that train by reinforcement learning."""
    result = resuming_parser(doc)
    result.add_argument("--dry-run", action="store_true", help="show prompts, plan, tokens and memory; train nothing")
    result.add_argument("--resume-adapter", type=Path, metavar="DIR", help="start from these adapter weights alone")
    result.add_argument("--profile", type=int, default=0, metavar="N", help="trace N steps, into the run's profile/")
    return result


def parse(options: argparse.ArgumentParser) -> argparse.Namespace:
    """Parses the command line of a script that saves checkpoints; overrides may be anywhere, even after --resume."""
    words = sys.argv[1:]
    for i, (word, following) in enumerate(pairwise(words)):
        if word == "--resume" and re.match(r"[\w.]+=", following):  # no folder: the newest checkpoint is meant
            words = [*words[:i], *words[i + 1 :], word]
            break
    return options.parse_intermixed_args(words)


def positive(text: str) -> int:
    """Reads the value of an option, an integer of at least 1. Raises ArgumentTypeError for anything else."""
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
    """Returns the validated config of `path`, with overrides and then `--smoke` applied; says what the latter changes.

    Of several `kinds`, takes the one with the fewest unknown keys in the file, the first if tied. Raises ConfigError:
    one line per mistake, with file and line, dotted key, what was got and what to do; or one line if the file is the
    config of another script.
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
    """Yields the dotted keys whose values differ between two trees, each with `before -> now`."""
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
    """Returns the resolved config as YAML that `load` reads back."""
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
MERGE = "tag:yaml.org,2002:merge"  # `<<: *name` copies another section's keys, except those given here
_Loader.add_implicit_resolver(MERGE, re.compile(r"^<<$"), ["<"])
_Loader.add_constructor("tag:rematch:int", lambda loader, node: int(node.value))
MOST_VALUES = 10_000  # in a config, repetitions by `*name` included
DEEPEST = 50  # levels of nesting


def read_tree(path: Path) -> dict:
    """Returns the values of a YAML file by key, whatever the keys. Raises ConfigError if it cannot be read."""
    return _read(path)[0]


def _read(path: Path) -> tuple[dict, dict[str, Any], list[tuple[Any, str]]]:
    """Reads a YAML file: its tree, the line of every dotted key, and the duplicate keys. Raises ConfigError."""
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
    """Parses YAML into nodes. Raises YAMLError: _Knot if it is too deep, has too many values or contains itself."""
    too_deep = f"more than {DEEPEST} levels within each other; check brackets and indentation"
    depth = count = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):  # everything after this loop recurses, once per level
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
    """Returns the one of `kinds` that a file is: the one with the fewest unknown keys.

    Raises ConfigError if that has unknown keys and the config of another script has none, so a typo stays a typo.
    Missing keys do not count: they are reported by name.
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
    """Counts the keys of a tree that a section does not know, including those of its own sections."""
    count = 0
    for key, value in tree.items():
        if key not in kind.model_fields:
            count += 1
        elif isinstance(value, dict) and (section := _section_of(kind.model_fields[key])):
            count += _strangers(section, value)
    return count


def _index(node: yaml.MappingNode, prefix: str, lines: dict[str, Any], duplicates: list[tuple[Any, str]]) -> None:
    """Notes the line of every dotted key of a section; keys merged by `<<` give way to the section's own."""
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
    """Sets one `section.key=value` in the tree; returns the mistake in it, if there is one."""
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
    """Returns the config and every mistake in it: pydantic's first, then the conflicts among its valid fields."""
    found: list[tuple[str, str]] = []
    stubs: list[str] = []  # keys whose value was replaced: mistakes in it, or below it, are already reported
    config = None
    for _ in range(3):  # wrong values are taken out, so that the other fields can still be checked together
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
    """Returns the tree with wrong values replaced, the errors as (dotted key, sentence), and the replaced keys."""
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
    """Returns the dotted path of a pydantic location, without its union and list parts, and the field it names."""
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
    """Describes an unknown key: which one it resembles, or where it belongs, or which keys are known there."""
    name = path[-1]
    owner = _owner(kind, path)
    known = list(owner.model_fields) if owner else []
    new = RENAMED.get(".".join(path), RENAMED.get(name))
    elsewhere = " or ".join(key for key in _keys(kind) if f".{key}".endswith(f".{new or name}"))
    resembling = "" if new and elsewhere else did_you_mean(name, known)
    return resembling or (f"; it is {elsewhere}" if elsewhere else f"; known here: {', '.join(known)}")


def _keys(kind: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yields every dotted key of a config, without the names of sections."""
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
    """Returns the Section class that a field holds, also behind `| None`; None if it holds none."""
    for option in (field.annotation, *getattr(field.annotation, "__args__", ())):
        if get_origin(option) is None and isinstance(option, type) and issubclass(option, BaseModel):  # Python 3.10
            return option
    return None


def _is_section(field: Any) -> bool:
    return field is not None and _section_of(field) is not None


def _copy(value: Any) -> Any:
    """Copies nested dicts and makes every key text, so that a key such as `1` is reported as unknown."""
    return {str(key): _copy(item) for key, item in value.items()} if isinstance(value, dict) else value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

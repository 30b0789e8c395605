"""What the configs of both RL scripts have: training rows, sampling that is trained, optimizer steps, evaluation."""

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from lib.core.config.chat import Server, Servers, server_conflicts
from lib.core.config.combinations import VLLM, refusal
from lib.core.config.curriculum import CurriculumSettings, TemperatureSchedule
from lib.core.config.section import Conflicts, Count, CountOrZero, Name, Positive, Section, Weight
from lib.core.config.shared import (
    AtMost,
    HubSettings,
    Model,
    ModelWeights,
    Optimizer,
    Reward,
    RunConfig,
    SandboxSettings,
    Source,
    TrainedModel,
    wrong_address,
)

KlKind = Literal["k3", "k2", "k1_in_reward", "exact"]  # see lib/rl/losses.py for the value and the gradient of each


class MixturePart(Source):
    """One source of a mixture."""

    weight: Positive = 1.0  # its rows are mixed in this proportion to those of the other parts
    columns: dict[Name, Name] = {}  # renames columns, so that parts have the same: {new name: name in the source}
    task: Name | None = None  # the value of the column `task` in its rows; null: the name of the part


def command_after(command: str, checkpoint: Path, stage: int, step: int) -> list[str]:
    """Returns the words of `train.after_checkpoint` for one checkpoint."""
    return [word.format(checkpoint=checkpoint, stage=stage, step=step) for word in shlex.split(command)]


class Dataset(Source):
    """The source of the rows: a Hub id, a file (.json .jsonl .csv .parquet), a folder of them, or a saved data set."""

    name: Name | None = None  # Hub id, file or folder; null: mixture
    mixture: dict[Name, MixturePart] = {}
    # several sources in place of one, {part: source}. Each part gives its share of the training rows and of the
    # held-out rows; no row comes twice, so the part that runs out first, by weight, limits the others
    mixture_seed: int = 0  # draws which rows of a part are used, where not all are
    split: str | None = None  # if given, `test_split_size` rows drawn from it are held out; the others are for training
    target_field: Name = "answer"  # column of the right answers
    test_split_size: Count = 200
    # number of held-out rows: drawn by a hash of the question (or family); if there is a test split, its first rows
    family_field: Name | None = None  # a column; rows with the same value are never both held out and trained on
    max_train_rows: Count | None = None  # train on at most this many rows: the first ones that can be used

    def _conflicts(self) -> Conflicts:
        if not self.mixture:
            if not self.name:
                yield ("name",), "is missing: give a source, or several in a mixture"
            return
        if self.name:
            yield ("name", "mixture"), "give one of the two: a source, or several in a mixture"
        for key in ("config_name", "revision", "split"):
            if getattr(self, key):
                yield (key, "mixture"), f"with a mixture each part has its own: move it to mixture.PART.{key}"
        if len(self.mixture) > self.test_split_size:
            yield (
                ("test_split_size", "mixture"),
                f"{self.test_split_size} held-out rows are too few for {len(self.mixture)} parts: give one to each",
            )


class Vllm(Section):
    """A vLLM server that samples in place of this process; it serves the trained LoRA (docs/engine.md)."""

    url: Name | None = None
    # http://HOST:PORT of a server that runs already and reads the run directory; null: one is started for the run
    python: Name | None = None  # the Python of an environment that has vllm, to start it with; null: this one
    options: list[str] = []  # further words of its command line, such as [--gpu-memory-utilization, "0.4"]
    deadline_s: Positive = 600.0  # seconds for one completion; a server that takes longer counts as hanging
    tolerance: Positive | None = None
    # by how much its log-probs may differ from the policy's on one text, in nats per token; more ends the run. null:
    # 1e-4 in float32, else 0.05

    def _conflicts(self) -> Conflicts:
        if self.url and (wrong := wrong_address(self.url)):
            yield ("url",), wrong
        if self.url and (self.python or self.options):
            yield ("url", "python", "options"), "these start a server, and url names one: give the one or the other"


class TrainedSampling(Section):
    """Sampling whose log-probs are trained, at this very temperature."""

    temperature: Positive = 1.0  # log-probs are trained at this temperature too
    temperature_schedule: TemperatureSchedule | None = None  # null: it stays
    batch_size: Count | None = None  # maximum number of completions decoded at once; null: as many as memory allows
    engine: Literal["native", "vllm"] = "native"  # native: in this process, with the weights that are trained
    vllm: Vllm = Vllm()


class SamplerCorrection(Section):
    """Importance weights for samples of an engine whose log-probs differ from those that are trained."""

    level: Literal["sequence", "token"] = "sequence"
    # one weight per answer or per token. sequence is unbiased up to `cap` for first attempts and single answers; for
    # later attempts and for token a bias is left
    cap: Annotated[float, Field(ge=1)] = 2.0  # weights are truncated at this


class TrainLoop(Section):
    """Optimizer steps of both RL scripts."""

    micro_batch_tokens: Count = 16_384  # tokens per forward pass, padding included; affects memory, never the update
    checkpoint_every: CountOrZero = 0  # steps; 0: before the first step, at a new best, and at the end of each stage
    keep_checkpoints: Annotated[int, Field(ge=2)] = 2
    # how many checkpoints of each stage can be resumed; of older ones only the weights are kept
    keep_best: bool = True
    # true: also keep each stage's checkpoint with the best held-out accuracy, `stage<N>/best`; not where attempt 1 fell
    on_non_finite: Literal["stop", "skip"] = "stop"
    # if a loss or gradient is not finite. stop: the run ends; skip: the step is dropped, the third in a row ends it
    on_collapse: Literal["warn", "stop", "restore"] = "stop"
    # what happens on a collapse (see lib/rl/checks.py). warn: it is only reported; stop: the run ends (exit code 3);
    # restore: the run goes back to its best checkpoint, at half the learning rate
    after_checkpoint: Name | None = None
    # a command to run after each checkpoint, while training waits, such as a benchmark: {checkpoint} is its folder,
    # {stage} and {step} are its numbers. Its output is in after_checkpoint.log; its failure is a warning. A signal
    # that stops the run ends it, and when it has ended, so has all that it started. With several processes it must end
    # before they lose patience with the main one
    overlong_buffer: CountOrZero = 0
    # the last tokens of the budget, over which a penalty grows linearly from 0 to 1 (DAPO, eq. 13); 0: no penalty
    mask_truncated: bool = False  # true: completions cut off by the token limit are not trained on
    resample_rounds: CountOrZero = 0
    # DAPO's dynamic sampling: how many times, at most, a step draws more prompts to replace those that teach nothing,
    # because all answers earn the same reward or, in train.py, no attempt has an advantage
    sampler_correction: SamplerCorrection | None = None  # null: none
    stop_on_identical_rewards: bool = False
    # true: after 20 steps in a row in which no prompt's rewards differ, end the run instead of warning

    @field_validator("after_checkpoint")
    @classmethod
    def _can_be_filled(cls, command: str | None) -> str | None:
        try:
            words = command_after(command or "-", Path("stage1/step_1"), 1, 1)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            names = "{checkpoint}, {stage} and {step}"
            raise ValueError(f"{error!r}: it may name {names}; double a brace that is meant as text") from error
        if not words:
            raise ValueError("it is blank: give a command, or null")
        return command

    def _conflicts(self) -> Conflicts:
        if self.on_collapse == "restore" and not self.keep_best:
            keys = ("on_collapse", "keep_best")
            yield keys, "there is no best checkpoint to go back to: set keep_best: true, or on_collapse: stop"


class Eval(Section):
    """Held-out accuracy. Questions that are reported and questions to choose by, a checkpoint for one, never mix."""

    rows: tuple[CountOrZero, Count] | None = None
    # [first, end]: the held-out rows that this run uses, counted from 0, without `end`; null: all. The other rows stay
    # unseen, for a later evaluate.py --rows
    max_examples: Count = 200  # maximum number of questions reported: the first that are not for selection
    step_examples: Count | None = None  # the same for evaluations within a stage (every_steps); null: max_examples
    selection_examples: CountOrZero = 200
    # maximum number of questions kept apart to choose a checkpoint, at most a quarter of the held-out rows; 0: none
    temperature: Weight = 0.0  # sampling temperature; 0: greedy decoding
    greedy_too: bool = False  # true: if answers are sampled, also evaluate greedily, before training and after stages
    samples_per_prompt: Count = 1  # with 2 or more, a revision is compared with a fresh first attempt
    every_steps: CountOrZero = 0
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


class Distill(Section):
    """A teacher for every token that the policy writes: the KL between the two, given what the policy itself wrote.

    The KL is over the whole vocabulary (docs/selfplay.md).
    """

    model: ModelWeights | None = None
    # a second model in this process, with the policy's tokenizer; through plain transformers, otherwise loaded as the
    # policy is. null: the initial policy, which must then see more (OPSD 2601.18734, SDPO 2601.20802)
    shown: Name | None = None
    # what the teacher reads in place of the question; null: the question. It may name {question}, any column of the
    # row, {sibling}, another answer to it that is right, and {feedback}, what the reward explains of this very answer;
    # an answer for which one of them is missing is not distilled
    direction: Literal["reverse", "forward"] = "reverse"
    # reverse: KL(policy || teacher), which drops what the teacher would not write; forward: KL(teacher || policy),
    # which raises what the policy hardly ever writes, too, as where a hint tells it something new
    reward_weight: Weight = 1.0
    # factor of the advantages, next to a KL in nats per token; 0: rewards are measured, but train nothing


class RLConfig(RunConfig):
    """Keys of both RL scripts, some of them in sections of their own."""

    model: TrainedModel
    dataset: Dataset
    prompts: Section
    reward: Reward = Reward()
    sandbox: SandboxSettings = SandboxSettings()
    generation: TrainedSampling
    optimizer: Optimizer = Optimizer()
    curriculum: CurriculumSettings = CurriculumSettings()
    train: TrainLoop
    servers: Servers = {}  # {name: how it is asked}
    distill: Distill | None = None  # null: rewards alone
    eval: Eval = Eval()
    hub: HubSettings | None = None  # where trained weights are pushed; null: nowhere

    def _conflicts(self) -> Conflicts:
        for section, name in self.asked.items():
            yield from server_conflicts(f"{section}.server", name, self.servers)
        if not self.model.adapters.names:
            yield ("model.adapters",), "nothing would be trained: the base is the reference; keep lora, or add another"
        if self.generation.engine == "vllm":
            yield from self._conflicts_with_vllm()
        schedule = self.generation.temperature_schedule
        if schedule and schedule.end > self.generation.temperature:
            keys = ("generation.temperature", "generation.temperature_schedule.end")
            yield keys, f"{schedule.end:g} is above {self.generation.temperature:g}, where it begins: lower the latter"
        if self.distill:
            yield from self._conflicts_of_distillation(self.distill)
        buffer, shortest = self.train.overlong_buffer, min(self.budgets)
        if buffer >= shortest:
            yield ("train.overlong_buffer",), f"a buffer of {buffer} tokens is no part of {shortest}: lower it"
        first, end = self.eval.rows or (0, 1)
        held, keys = self.dataset.test_split_size, ("eval.rows", "dataset.test_split_size")
        if first >= end:
            yield keys, f"no row is from {first} and before {end}: give [first, end] with a first below the end"
        elif end > held:
            yield (
                keys,
                f"{end} is beyond the {held} rows of dataset.test_split_size: lower the first or raise the latter",
            )

    def _conflicts_with_vllm(self) -> Conflicts:
        if reason := refusal(VLLM, self.model.adapters.names):
            yield ("model.adapters", "generation.engine"), f"{reason}: set engine: native, or keep lora alone"
        keys = ("model.load_in_4bit", "generation.engine")
        if self.model.load_in_4bit:
            yield keys, "vLLM would sample from other weights than those of 4 bits that are trained: set one of the two"
        if self.generation.batch_size:
            keys = ("generation.batch_size", "generation.engine")
            yield keys, "vLLM decides what it decodes at once: set batch_size: null; vllm.options has --max-num-seqs"
        if self.model.adapter:
            yield (
                ("model.adapter", "generation.engine"),
                "vLLM serves a base and one adapter: merge the other one first, by export.py --to merged, then set "
                "model.name=OUT and remove model.adapter",
            )

    def _conflicts_of_distillation(self, distill: Distill) -> Conflicts:
        replay = self.curriculum.replay
        if distill.model is None and not distill.shown and not self.shows_hints:
            keys = ("distill.shown", "distill.model")
            reason = "the policy would see what it sees anyway, and teach itself nothing"
            yield keys, f"{reason}: say in distill.shown what it sees beyond, or give a model"
        if distill.reward_weight != 1 and getattr(self.train, "kl", None) == "k1_in_reward":
            keys = ("distill.reward_weight", "train.kl")
            yield keys, "it would scale the KL to the reference, which is a part of the rewards: set another train.kl"
        if distill.reward_weight == 0 and self.train.resample_rounds:
            keys = ("distill.reward_weight", "train.resample_rounds")
            yield keys, "rewards train nothing, so that no prompt is worth less by them: set resample_rounds: 0"
        if distill.reward_weight == 0 and replay and replay.value == "advantage":
            yield ("distill.reward_weight", "curriculum.replay.value"), "every advantage is 0: set another value"

    @property
    def asked(self) -> dict[str, str]:
        """Returns the name of the server that each section asks, by the section's key."""
        return {}

    def server_of(self, section: str) -> Server:
        """Returns the server that a section asks."""
        return self.servers[self.asked[section]]

    @property
    def teacher_model(self) -> Model | None:
        """Returns the second model of `distill`, loaded as the policy is where `distill.model` does not say."""
        if self.distill is None or self.distill.model is None:
            return None
        shared = {"dtype", "max_seq_length", "attn_implementation", "trust_remote_code"}
        return Model(**self.distill.model.model_dump(), **self.model.model_dump(include=shared), backend="plain")

    @property
    def shows_hints(self) -> bool:
        """True if the teacher of `distill` sees hints."""
        return False

    @property
    def eval_budgets(self) -> tuple[int, ...]:
        """Returns the most new tokens in evaluations, by turn."""
        return self.budgets

    @property
    def eval_attempts(self) -> int:
        """Returns the attempts in a chat of an evaluation."""
        return 1

    @property
    def budgets(self) -> tuple[int, ...]:
        """Returns the most new tokens in training, by turn."""
        raise NotImplementedError

    def evaluations(self, when: str) -> list[tuple[Eval, dict[str, Any]]]:
        """Returns the evaluations of a moment: their settings, and how else they differ from the first."""
        return [(settings, {}) for settings in self.eval.passes(when)]

    def smoke_overrides(self, examples: int) -> dict[str, Any]:
        """Returns the changes for a run of at most `examples` rows, with an evaluation and a checkpoint per step."""
        return super().smoke_overrides(examples) | {
            "dataset.max_train_rows": examples,
            "dataset.test_split_size": AtMost(examples),
            "train.checkpoint_every": 1,
            "eval.rows": None,
            # four evaluations take most of the time
            "eval.max_examples": AtMost(-(-examples // 2)),
            "eval.selection_examples": 0,
            "eval.samples_per_prompt": AtMost(2),
            "eval.every_steps": 1,
            "hub": None,
            "curriculum.easy_pool": None,  # which of so few rows may have none, or nothing else
            **({"curriculum.replay.warmup": AtMost(1)} if self.curriculum.replay else {}),
        }

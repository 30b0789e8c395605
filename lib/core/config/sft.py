"""The config of sft_train.py: a model that is loaded or built, chats, and how their turns are trained."""

from typing import Any, Literal

from lib.core.config.adapters import Adapters, Lora
from lib.core.config.section import Conflicts, Count, CountOrZero, Name, Positive, Section
from lib.core.config.shared import AtMost, HubSettings, Optimizer, RunConfig, Source, TrainedModel, smoke_batch


class FromScratch(Section):
    """A model that is built instead of loaded: random weights and a tokenizer of single characters.

    Its turns and answers end with <|im_end|>.
    """

    architecture: dict[str, Any]  # fields of the transformers config; `model_type` names the class
    characters: Name  # each of these characters becomes one token
    special_tokens: list[str] = []  # tokens of several characters, such as tags and turn markers


class SFTAdapters(Adapters):
    """What is trained on a frozen base; if all are null, as they are by default, all weights are trained."""

    lora: Lora | None = None  # low-rank updates of linear layers


class SFTModel(TrainedModel):
    """The model to fine-tune: loaded by name, or built from nothing."""

    name: Name | None = None  # Hub id or local folder; null: from_scratch
    adapters: SFTAdapters = SFTAdapters()  # what is trained; without one, all weights
    from_scratch: FromScratch | None = None  # a tiny model that is built instead of loaded

    def _conflicts(self) -> Conflicts:
        if (self.name is None) == (self.from_scratch is None):
            yield ("name", "from_scratch"), "give one of the two: a model to load, or one to build"
        if self.from_scratch and self.adapter:
            yield ("from_scratch", "adapter"), "no adapter fits random weights: remove one of the two"
        if self.sharded:
            yield ("sharded",), "sft_train.py holds the model whole on each process: set it to false"
        yield from super()._conflicts()


class SFTDataset(Source):
    """Rows with `messages` (chat), or `prompt` and `completion`, and `tools` if need be: see lib/text/chats.py."""

    split: str | None = None  # null: the only split; or train, with the test split held out
    test_split_size: CountOrZero = 200  # number of held-out rows, chosen as in Dataset
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
    """Supervised fine-tuning: loss on what the assistant says and the end of its turns (lib/text/labels.py)."""

    steps: Count | None = None  # optimizer steps; null: epochs decides
    epochs: Positive = 1.0  # passes over the training rows
    batch_size: Count = 16  # sequences per forward pass and process
    gradient_accumulation: Count = 1  # batches per optimizer step
    max_length: Count = 1024  # maximum tokens of a sequence
    truncation: Literal["drop", "cut"] = "drop"
    # for a turn that ends beyond max_length. drop: it is not trained; cut: its beginning is trained, without an end
    packing: bool = False  # true: several chats share a sequence, without attending to each other
    shuffle: bool = True  # false: rows are used in the order of the file, as a curriculum
    checkpoint_every: CountOrZero = 0  # steps; 0 = at the end
    on_collapse: Literal["warn", "stop"] = "stop"  # warn: only report a collapse (lib/rl/checks.py); stop: end the run
    eval_every: CountOrZero = 0
    # steps between evaluations; 0: none. Their loss is a mean over batches, so compare only runs of equal batch size

    def _conflicts(self) -> Conflicts:
        if self.packing and not self.shuffle:
            keys = ("packing", "shuffle")
            yield keys, "packing puts rows together by length, whatever their order: set one of the two the other way"


class SFTConfig(RunConfig):
    """sft_train.py"""

    model: SFTModel
    dataset: SFTDataset
    prompts: SFTPrompts = SFTPrompts()
    optimizer: Optimizer = Optimizer()
    train: SFTTrain = SFTTrain()
    hub: HubSettings | None = None  # where trained weights are pushed; null: nowhere

    def _conflicts(self) -> Conflicts:
        longest, limit = self.train.max_length, self.model.max_seq_length
        if longest > limit:
            yield (
                ("train.max_length", "model.max_seq_length"),
                f"train.max_length = {longest} exceeds model.max_seq_length = {limit}: lower the first or raise the "
                "second",
            )
        adapters = self.model.adapters
        for name in [name for name in ("soft_prompt", "warmup_steps") if getattr(adapters, name)]:
            yield (f"model.adapters.{name}",), "works in reinforcement learning alone: remove it here"
        if self.model.from_scratch and adapters.names:
            yield (
                ("model.from_scratch", "model.adapters"),
                "random weights must all be trained: remove model.adapters",
            )

    def smoke_overrides(self, examples: int) -> dict[str, Any]:
        """Returns the changes for a run of at most `examples` rows and 4 small steps, with evaluations."""
        return super().smoke_overrides(examples) | {
            "dataset.max_train_rows": examples,
            "dataset.test_split_size": AtMost(examples),
            "train.steps": 4,
            "train.batch_size": AtMost(smoke_batch(examples)),
            "train.gradient_accumulation": AtMost(2),
            "train.eval_every": 2,
            "hub": None,
        }

"""YAML in, validated objects out: unknown keys forbidden, all mistakes at once, `--smoke` and overrides as functions.

Nothing here imports torch, so a mistake answers within a second. There is one class per script; the comments of its
fields are the reference for every key (docs/config.md). Whether values fit together is checked by `_conflicts()` of the
smallest section that has them all; what `--smoke` changes is a table, `smoke_overrides()`. Other parts of lib import
all names from here. The modules, in reading order; each may refer back only:

trees         YAML text as nested dicts, with the line of every dotted key
section       what every section is
adapters      what is trained on a frozen base
combinations  which adapters work with what
shared        what the configs of several scripts have
curriculum    which prompts a step draws, and at which temperature
chat          what those of scripts that ask chats have
rl            what those of both RL scripts have
feedback      what is said between two attempts
score         train.py
selfplay      rl_train_gspo_selfplay.py
collect       collect_rollouts.py
sft           sft_train.py
sweep         sweep.py
loader        from a file and overrides to a config, with all mistakes at once
options       the command lines of the scripts
"""
# ruff: noqa: F401  (others import these names)

from lib.core.config.adapters import (
    Adapters,
    AttentionTemperature,
    BitFit,
    ChannelGates,
    HeadGates,
    Ia3,
    InputGates,
    Lora,
    Oft,
    TinyLora,
    Tuner,
    Vera,
)
from lib.core.config.chat import ChatPrompts, Server, Thinking, Tools, WebSettings
from lib.core.config.collect import ChatSampling, CollectConfig, Collection
from lib.core.config.combinations import (
    BEHIND_NORMS,
    FOLDING,
    FOUR_BITS,
    FUSED,
    OBSTACLES,
    OF_PEFT,
    OWN,
    SLAB,
    UNSLOTH,
    in_words,
    obstacles_everywhere,
    refusal,
)
from lib.core.config.curriculum import CurriculumSettings, EasyPool, ReplaySettings, TemperatureSchedule, Weighting
from lib.core.config.loader import KINDS, dump, keys_of, load, section_of
from lib.core.config.options import check_launcher, parse, parser, positive, resuming_parser, training_parser
from lib.core.config.rl import (
    Dataset,
    Distill,
    Eval,
    RLConfig,
    SamplerCorrection,
    TrainedSampling,
    TrainLoop,
    Vllm,
    command_after,
)
from lib.core.config.score import ATTEMPT, Generation, Prompts, ScoreConfig, ScoreTrain
from lib.core.config.selfplay import GspoTrain, Opponent, SelfPlayConfig, Snapshots
from lib.core.config.sft import FromScratch, SFTConfig, SFTDataset
from lib.core.config.shared import (
    HubSettings,
    Model,
    Optimizer,
    Outputs,
    Reward,
    RunConfig,
    SandboxSettings,
    Source,
    TrainedModel,
    weighted_sum,
    weights_of,
    wrong_address,
)
from lib.core.config.sweep import SweepConfig
from lib.core.config.trees import differences, flat, read_tree

"""The command lines of the scripts, and what they share."""

import argparse
import os
import re
import sys
from itertools import pairwise
from pathlib import Path

from lib.core.errors import ConfigError

SHARDING = {"ACCELERATE_USE_DEEPSPEED": "DeepSpeed", "ACCELERATE_USE_FSDP": "FSDP"}  # as accelerate tells a process


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
    result.add_argument(
        "--resume-adapter",
        type=Path,
        metavar="DIR",
        help="start from these adapter weights alone, also OWNER/NAME@REVISION",
    )
    return result


def parse(options: argparse.ArgumentParser) -> argparse.Namespace:
    """Parses the command line of a script that saves checkpoints; overrides may be anywhere, even after --resume.

    Raises ConfigError for options that contradict each other, and as `check_launcher` does.
    """
    words = sys.argv[1:]
    for i, (word, following) in enumerate(pairwise(words)):
        if word == "--resume" and re.match(r"[\w.]+=", following):  # no folder: the newest checkpoint is meant
            words = [*words[:i], *words[i + 1 :], word]
            break
    args = options.parse_intermixed_args(words)
    check_launcher()  # after --help
    if args.resume and (getattr(args, "resume_adapter", None) or getattr(args, "start_stage", None)):
        raise ConfigError(
            "--resume: continues a run where it was, with its own weights, but --resume-adapter or --start-stage asks "
            "for others: give one or the other"
        )
    return args


def check_launcher() -> None:
    """Raises ConfigError if accelerate was told to shard: it would wrap modules whose weights are read directly."""
    for variable, engine in SHARDING.items():
        if os.environ.get(variable, "").lower() == "true":
            raise ConfigError(
                f"accelerate launch: its config asks for {engine}, expected one that only starts processes: launch by "
                "torchrun or configs/accelerate/ddp.yaml; for a model that one card does not hold, by "
                "configs/accelerate/fsdp2.yaml with model.sharded=true (docs/gpu.md)"
            )


def positive(text: str) -> int:
    """Reads the value of an option, an integer of at least 1. Raises ArgumentTypeError for anything else."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got '{text}', expected a whole number of at least 1")
    return int(text)

"""SCoRe: two-stage reinforcement learning that teaches a model to correct its own answer.

    python train.py --config configs/tiny_sums.yaml                     # on a laptop, after `make demo` built its base
    python train.py --config configs/gsm8k.yaml --dry-run               # what would happen; nothing is trained
    python train.py --config configs/gsm8k.yaml --smoke 8               # every part of the loop in minutes
    python train.py --config configs/gsm8k.yaml                         # the run; add --resume to go on with it
    python train.py --config configs/gsm8k.yaml --start-stage 2 --resume-adapter outputs/score-gsm8k/stage1
    python train.py --config configs/gsm8k.yaml train.alpha=5 optimizer.learning_rate=1e-5
    torchrun --standalone --nproc_per_node 4 train.py --config configs/gsm8k.yaml     # four GPUs; --resume there, too

Paper: Kumar et al., "Training Language Models to Self-Correct via Reinforcement Learning", arXiv 2409.12917, ICLR 2025.
Departures from it, each a key of the config:
  1. A tree of K1 first attempts x K2 revisions with leave-one-out baselines (`train.baseline`); the paper gives no K.
  2. The KL penalty is k3 per token in the loss (`train.kl`); the paper's follows Ahmadian et al., in the reward.
  3. The bonus counts exact matches, not shaped reward (`train.bonus_on`), so that format is no self-correction.
  4. `format_and_match` pays .25 for a think block, .25 for an answer block and .5 for a match (`reward.fn`); the paper
     pays for right answers alone. The match counts only in the answer block of a text with both blocks: a model that
     is paid for the right number anywhere stops writing the blocks.

Exit codes: 0 finished, 2 config or data, 3 numbers, 4 memory, 5 sandbox, 7 a reward that raises, 8 another process
has ended, 74 disk, 130 Ctrl-C and 143 SIGTERM after a checkpoint.
"""

if __name__ == "__main__":
    from lib.core.errors import end_at_ctrl_c

    end_at_ctrl_c()  # the imports below take a second

import argparse

import reward_function  # noqa: F401  registers rewards and extractors, yours too
from lib.core.config import ScoreConfig, load, parse, training_parser
from lib.core.errors import FINISHED, ConfigError, run_script
from lib.rewards.judge import prepare
from lib.run.directory import check_directory, discard, is_inside, refuse_second_stage
from lib.run.hub import local_adapter


def main() -> int:
    """Trains stage I (anchors attempt 1, rewards attempt 2) and stage II (rewards both); evaluates around each."""
    args, config = command_line()
    prepare(config)
    from lib.rl.preview import preview  # torch is imported once the config is valid
    from lib.rl.score import ScoreRun
    from lib.rl.task import load_task

    if args.dry_run:
        preview(config)
        return FINISHED
    run = ScoreRun(
        load_task(config), start_stage=args.start_stage, adapter=args.resume_adapter, in_place=args.in_place,
        resume=args.resume, allow_change=args.allow_config_change,
    )  # fmt: skip
    with run.open() as session:
        if session.progress.due:  # "pretrain" at first
            session.evaluate(session.progress.due)
            session.save()
        for stage in session.remaining():
            while session.progress.step < stage.steps:
                trees = run.sample(stage)
                credit = run.credit(stage, trees)
                run.update(stage, trees, credit)
                if session.interrupted():
                    return session.leave()
                session.when_due()
            run.finish(stage)
        run.show_results()
    return FINISHED


def command_line() -> tuple[argparse.Namespace, ScoreConfig]:
    """Returns the options, and the config with overrides and --smoke applied. Raises ConfigError for any mistake."""
    options = training_parser(__doc__)
    options.add_argument(
        "--start-stage", type=int, choices=(1, 2),
        help="2 skips stage I (default: 1); from an adapter of this run, stage II begins in the same folder",
    )  # fmt: skip
    args = parse(options)
    args.start_stage = args.start_stage or 1
    if args.start_stage == 2 and not args.resume_adapter:
        raise ConfigError("--start-stage 2 needs the adapter of stage I: add --resume-adapter DIR")
    config = load(ScoreConfig, args.config, args.overrides, args.smoke)
    if args.resume_adapter:
        args.resume_adapter = local_adapter(args.resume_adapter, "--resume-adapter")
    if args.start_stage == 2 and not config.train.has_steps(2):
        raise ConfigError("--start-stage 2: stage II has no steps: raise train.stage2_steps, or leave the option out")
    args.in_place = args.start_stage == 2 and is_inside(args.resume_adapter, config.run_dir)
    if not args.dry_run:
        if args.in_place:
            refuse_second_stage(config)
        elif args.smoke and not args.resume:
            discard(config, args.config, args.resume_adapter)
        check_directory(config, args.resume or args.in_place, args.allow_config_change)
    return args, config


if __name__ == "__main__":
    run_script(main)

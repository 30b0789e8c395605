"""GSPO with self-play: groups of answers are judged, an opponent answers too, a teacher helps where it fails.

    python rl_train_gspo_selfplay.py --config configs/tiny_code.yaml            # on a laptop; see `make demo-selfplay`
    python rl_train_gspo_selfplay.py --config configs/selfplay_code.yaml --dry-run   # what would happen; trains nothing
    python rl_train_gspo_selfplay.py --config configs/selfplay_code.yaml --smoke 8   # every part, in minutes
    python rl_train_gspo_selfplay.py --config configs/selfplay_code.yaml        # the run; add --resume to go on with it
    python rl_train_gspo_selfplay.py --config configs/selfplay_code.yaml --resume-adapter outputs/my-run/stage1
    python rl_train_gspo_selfplay.py --config configs/selfplay_code.yaml train.loss=dapo opponent.use=win
    torchrun --standalone --nproc_per_node 4 rl_train_gspo_selfplay.py --config configs/selfplay_code.yaml

Paper: Zheng et al., "Group Sequence Policy Optimization", arXiv 2507.18071. Departures, each a key of the config:
  1. GRPO, Dr.GRPO, DAPO, CISPO, RLOO and GSPO-token by name (`train.loss`); with `train.minibatches: 1` and
     `train.passes: 1` every ratio is 1, and GSPO is GRPO with the mean over sequences.
  2. An opponent's answer to a prompt is counted, or makes a game of each answer (`opponent.use`); it may also say
     which prompts come next (`curriculum.weighting`).
  3. Where the policy failed, a teacher may hint (`teacher.hint`); what the policy then writes is a group of its own,
     under the hinted prompt, or data for SFT. No reward is credited to tokens that did not earn it.

Exit codes: 0 finished, 2 config or data, 3 numbers, 4 memory, 5 sandbox, 6 a server that refuses, 7 a reward that
raises, 8 another process has ended, 74 disk, 130 Ctrl-C and 143 SIGTERM after a checkpoint.
"""

if __name__ == "__main__":
    from lib.core.errors import end_at_ctrl_c

    end_at_ctrl_c()  # the imports below take a second

import argparse

import reward_function  # noqa: F401  registers rewards and extractors, yours too
from lib.core.config import SelfPlayConfig, load, parse, training_parser
from lib.core.errors import FINISHED, run_script
from lib.rewards.judge import prepare
from lib.run.directory import check_directory, discard
from lib.run.hub import local_adapter


def main() -> int:
    """Samples and judges groups, adds a teacher's help, assigns credit, updates; evaluates before, during and after."""
    args, config = command_line()
    prepare(config)
    from lib.generators.remote import check_keys
    from lib.play.gspo import GspoRun  # torch is imported once the config is valid
    from lib.play.preview import preview_selfplay
    from lib.rl.task import load_task

    if args.dry_run:
        preview_selfplay(config)
        return FINISHED
    check_keys(config)
    run = GspoRun(
        load_task(config), adapter=args.resume_adapter, resume=args.resume,
        allow_change=args.allow_config_change,
    )  # fmt: skip
    with run.open() as session:
        if session.progress.due:  # "pretrain" at first
            session.evaluate(session.progress.due)
            session.save()
        while run.unfinished():
            games = run.play()
            retries = run.assist(games)
            credit = run.credit(games, retries)
            run.update(games, credit)
            run.refresh()
            if session.interrupted():
                return session.leave()
            session.when_due()
        run.finish()
        run.show_results()
    return FINISHED


def command_line() -> tuple[argparse.Namespace, SelfPlayConfig]:
    """Returns the options, and the config with overrides and --smoke applied. Raises ConfigError for any mistake."""
    args = parse(training_parser(__doc__))
    config = load(SelfPlayConfig, args.config, args.overrides, args.smoke)
    if args.resume_adapter:
        args.resume_adapter = local_adapter(args.resume_adapter, "--resume-adapter")
    if not args.dry_run:
        if args.smoke and not args.resume:
            discard(config, args.config, args.resume_adapter)
        check_directory(config, args.resume, args.allow_config_change)
    return args, config


if __name__ == "__main__":
    run_script(main)

"""Measures what one slab saves against sampling batch by batch: the same tree of attempts both ways, in turns.

    OMP_NUM_THREADS=1 python benchmarks/sampling.py --config configs/tiny_sums.yaml model.backend=unsloth

The config's first prompts, its copies and budgets, its model with an adapter that changes nothing yet; both ways draw
the same numbers. Seconds are those of the processor, so that what else runs does not count; the first turn is left out.
A ratio is batch by batch divided by the slab: the median over turns, and its range.
"""

import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

import reward_function  # noqa: F401  registers rewards and extractors
from lib.core.config import ScoreConfig, load, parser
from lib.rewards.judge import prepare
from lib.rl.task import Task, load_task
from lib.rl.tree import nodes, sample


def main() -> None:
    """Takes the turns, and prints a table."""
    options = parser(__doc__, smoke=False)
    options.add_argument("--turns", type=int, default=5)
    args = options.parse_args()
    config = load(ScoreConfig, args.config, args.overrides)
    prepare(config)
    task = load_task(config)
    if not task.policy.takes_slab:
        raise SystemExit(f"{config.model.name} through {task.policy.backend} does not take the slab")
    turns = [{slab: sampled(task, slab, turn) for slab in (turn % 2 == 0, turn % 2 == 1)} for turn in range(args.turns)]
    print(f"| {config.model.name}, {task.policy.backend} | tokens/s | ratio |\n|---|---|---|")
    for slab in (True, False):
        rates = [tokens / seconds for tokens, seconds in (turn[slab] for turn in turns[1:])]
        ratios = [turn[slab][1] / turn[True][1] for turn in turns[1:]]
        name = "one slab" if slab else "batch by batch"
        print(f"| {name} | {median(rates):.0f} | {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |")


def sampled(task: Task[ScoreConfig], slab: bool, seed: int) -> tuple[int, float]:
    """Returns the tokens of one step's attempts, and the CPU seconds that they took."""
    config = task.config
    train = config.train
    prompts = [task.prompts.prompt(row) for row in task.train[: train.stage1_batch_size]]
    sampling = task.sampling(config.generation.temperature, train.attempts_per_prompt, train.revisions_per_attempt)
    task.policy.takes_slab = slab
    started = time.process_time()
    draw = torch.Generator().manual_seed(seed)
    trees = sample(task.policy, task.prompts, prompts, task.judge, sampling, draw)
    seconds = time.process_time() - started
    answers = [answer for node in nodes(trees) for answer in node.group.answers]
    return sum(len(answer.completion.ids) for answer in answers), seconds


if __name__ == "__main__":
    main()

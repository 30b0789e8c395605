"""What a run would do, without training: resolved config, both prompts with what is masked, plan, tokens, memory."""

from collections.abc import Iterator
from statistics import median

import torch

from lib.core.config import Eval, ScoreConfig, dump
from lib.core.console import Screen
from lib.core.stats import percentiles
from lib.generators.protocol import Completion
from lib.model.loading import load_skeleton
from lib.rl.estimate import Needs, load_of_tree, needs_of, shares_prompts
from lib.rl.plan import Ahead, Held, ahead, stages_of, told, work_of_score
from lib.rl.prompts import CorrectionPrompts
from lib.rl.score import kl_weights
from lib.rl.task import fitting, load_data

LENGTHS = 1000  # rows whose prompts are measured


def preview(config: ScoreConfig) -> None:
    """Prints everything that `--dry-run` shows. Loads data and tokenizer, but no weights."""
    splits, _ = load_data(config)
    skeleton, tokenizer = load_skeleton(config.model)
    prompts = CorrectionPrompts(tokenizer, config.prompts, config.generation, config.model.chat_template_kwargs)
    train, test, selection, notes = fitting(splits, prompts, config)
    held, before = Held(len(test), len(selection)), ahead(stages_of(config, len(train)), config.eval)
    lengths = [len(prompts.first(row)) for row in train[:LENGTHS]]
    parts = {
        "config, resolved": dump(config).rstrip(),
        "data": "\n".join([splits.source, *notes]),
        "one example": _example(train[0], prompts, config),
        "plan": "\n".join(_plan(config, before, held)),
        "tokens": _lengths(lengths),
        "memory, estimated": "\n".join(needs_of_tree(skeleton, config, prompts, lengths, len(test)).lines()),
    }
    show(parts)


def show(parts: dict[str, str]) -> None:
    """Prints titled parts."""
    screen = Screen()
    for title, text in parts.items():
        screen.heading(title)
        screen.say(text)
    screen.heading("nothing was trained: this was a dry run")


def _example(row: dict, prompts: CorrectionPrompts, config: ScoreConfig) -> str:
    """Returns both prompts as the model reads them; what is trained stands between >>> and <<<."""
    decode = prompts.tokenizer.decode
    end = prompts.retry_ids[0]
    first = prompts.first(row)
    answered = Completion(ids=[end], logps=[0.0], finished=True)  # an empty attempt 1, ended by the turn's own token
    rest = prompts.next_prompt(prompts.prompt(row), answered).ids
    budgets = config.generation
    lines = [
        f"[prompt 1: {len(first)} tokens, masked]",
        decode(first),
        f">>> attempt 1, at most {budgets.max_new_tokens_attempt1} tokens; stage I: KL, stage II: reward and KL <<<",
    ]
    if config.prompts.history == "full":
        retry = rest[len(first) + 1 :]
        lines += [f"[instruction: {len(retry)} tokens, masked; it follows the sampled tokens]", decode(retry)]
    else:
        lines += [
            f"[prompt 2: rendered anew with attempt 1 as history: {config.prompts.history}; masked]",
            decode(rest),
        ]
    lines.append(
        f">>> attempt 2, at most {budgets.max_new_tokens_attempt2} tokens; reward and KL, stage II: bonus too <<<"
    )
    if config.train.corrections > 1:
        lines.append(f"[and so on, to attempt {1 + config.train.corrections}]")
    target = str(row[config.dataset.target_field])
    return "\n".join([*lines, f"[target: {target[:200]}]"])


def _plan(config: ScoreConfig, before: Ahead, held: Held) -> Iterator[str]:
    train, tree = config.train, config.train.attempts_per_prompt
    yield told(work_of_score(config, before, held))
    yield f"evaluation before training: {evaluated(config.eval, held)}"
    for stage in before.stages:
        later = stage.batch_size * tree * train.revisions_per_attempt
        paid = "attempt 2 is paid" if stage.number == 1 else f"both are paid, bonus alpha {train.alpha:g}"
        if train.corrections > 1:
            paid = paid.replace("attempt 2 is", "later attempts are").replace("both", "all")
        kl1, kl2 = kl_weights(train, stage.number, train.beta2)[:2]
        completions = " + ".join(map(str, (stage.batch_size * tree, *[later] * train.corrections)))
        yield (
            f"stage {'I' * stage.number}: {stage.steps} steps of {stage.batch_size} prompts x {tree} attempts x "
            f"{train.revisions_per_attempt} revisions = {completions} completions; "
            f"{paid}; KL weights {kl1:g} and {kl2:g}"
        )
    yield f"run directory {config.run_dir}"


def evaluated(settings: Eval, held: Held) -> str:
    """Describes the size of an evaluation."""
    reported, samples = min(held.reported, settings.max_examples), settings.samples_per_prompt
    greedy = f", and one greedy to each of the {reported}" if len(settings.passes("pretrain")) > 1 else ""
    return f"{samples} answers to each of {reported} held-out rows to report and {held.chosen_by} to choose by{greedy}"


def _lengths(lengths: list[int]) -> str:
    shown = ", ".join(f"p{name} {value:.0f}" for name, value in percentiles(lengths).items())
    return f"first prompt: {shown} (of {len(lengths)} rows)"


def needs_of_tree(
    skeleton: torch.nn.Module, config: ScoreConfig, prompts: CorrectionPrompts, lengths: list[int], held_out: int
) -> Needs:
    """Estimates the memory that all attempts need, if first prompts have the median of `lengths` tokens."""
    generation, last = config.generation, round(median(lengths)) + config.generation.max_new_tokens_attempt1
    for attempt in range(2, 2 + config.train.corrections):
        more = generation.max_new_tokens_attempt2 if attempt > 2 else 0
        last = prompts.longest_next(last + more, attempt)
    load = load_of_tree(config, shares_prompts(skeleton), last, held_out)
    return needs_of(skeleton, config, load)

"""Shows what a run would do, without training: prompts with what is masked, plan, tokens, memory, resolved config."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine import Completion
from lib.core.config import Eval, ScoreConfig, dump
from lib.core.console import Screen
from lib.core.stats import percentiles
from lib.model.loading import load_skeleton, refuse_targets
from lib.rewards.judge import Verdict
from lib.rl.estimate import memory_lines
from lib.rl.plan import HeldOut, Remaining, Stage, counted, stages_of, work_left, work_line, work_of_score
from lib.rl.prompts import JudgedAnswer, Prompt
from lib.rl.score import kl_weights
from lib.rl.task import load_data, load_prompts, prepared
from lib.rl.teachers import describe_teacher, teacher_skeleton

LENGTHS = 1000  # rows whose prompts are measured


@dataclass(frozen=True)
class RunFacts:
    """Facts about a run that are known before its weights are loaded."""

    config: Any
    prompts: Any
    rows: list[dict]  # to train on
    lengths: list[int]  # tokens of their first prompts
    work_left: Remaining
    held_out: HeldOut


def preview(config: ScoreConfig) -> None:
    """Prints everything that `--dry-run` shows. Loads data and tokenizer, but no weights."""
    show(config, stages_of, {"one example": _example, "plan": _plan, "tokens": _lengths})


def show(
    config: Any,
    stages: Callable[[Any, int], list[Stage]],
    parts: Mapping[str, Callable[[RunFacts], Iterable[str]]],
    more_notes: Iterable[str] = (),
) -> None:
    """Prints the config, notes on the data, an algorithm's own `parts`, which are lines by title, and the memory.

    `stages` of a config over a number of rows.
    """
    splits, judge = load_data(config)
    skeleton, tokenizer = load_skeleton(config.model)
    if tuner := config.model.adapters.tuner:
        refuse_targets(tuner, skeleton, config.model)
    prompts = load_prompts(config, tokenizer)
    ready = prepared(config, splits, judge, prompts)
    teacher = teacher_skeleton(config.teacher_model, tokenizer) if config.teacher_model else None
    train, lengths = ready.train, [len(ready.prompt_ids(row)) for row in ready.train[:LENGTHS]]
    left, held_out = work_left(stages(config, len(train)), config.eval), HeldOut(len(ready.test), len(ready.selection))
    facts = RunFacts(config, prompts, train, lengths, left, held_out)
    texts: dict[str, Iterable[str]] = {
        "data": [splits.source, *ready.notes, *more_notes],
        **{title: lines(facts) for title, lines in parts.items()},
        "memory, at least": memory_lines(skeleton, config, prompts, lengths, held_out.reported, teacher),
        "config, resolved": [dump(config).rstrip()],
    }
    screen = Screen()
    for title, lines in texts.items():
        screen.heading(title)
        screen.say("\n".join(lines))
    screen.heading("nothing was trained: this was a dry run")


def _example(facts: RunFacts) -> Iterator[str]:
    """Yields both prompts as the model reads them; what is trained stands between >>> and <<<."""
    row, config, prompts = facts.rows[0], facts.config, facts.prompts
    decode, turns = prompts.tokenizer.decode, config.turns
    new1, new2 = turns["attempt1"], turns["attempt2"]
    first = prompts.prompt(row)
    end = prompts.retry_ids[:1]
    answered = Completion(ids=end, logps=[0.0], finished=True)  # an empty attempt 1, ended by the turn's own token
    rest = prompts.next_prompt(first, answered).ids
    yield f"[prompt 1: {len(first.ids)} tokens, masked]"
    yield decode(first.ids)
    yield f">>> attempt 1, at most {new1} tokens; stage I: KL, stage II: reward and KL <<<"
    if config.prompts.reviewed_by:
        yield from _review(prompts, first, answered, turns)
    elif config.prompts.history == "full":
        retry = rest[len(first.ids) + 1 :]
        yield f"[instruction: {len(retry)} tokens, masked; it follows the sampled tokens]"
        yield decode(retry)
    else:
        yield f"[prompt 2: rendered anew with attempt 1 as history: {config.prompts.history}; masked]"
        yield decode(rest)
    if config.prompts.feedback != "none" and not config.prompts.reviewed_by:
        most = config.prompts.feedback_tokens
        yield f"[but prompts.feedback: {config.prompts.feedback} answers each attempt, with up to {most} tokens more]"
    yield f">>> attempt 2, at most {new2} tokens; reward and KL, stage II: bonus too <<<"
    if config.train.attempts > 2:
        yield f"[and so on, to attempt {config.train.attempts}]"
    yield f"[target: {str(row[config.dataset.target_field])[:200]}]"


def _review(prompts: Any, first: Prompt, answered: Completion, turns: Mapping[str, int]) -> Iterator[str]:
    """Yields what stands between two attempts where the policy reviews the former."""
    wrong, prompt = Verdict(0.0, {}, False, ""), first
    for name in list(turns)[1:3]:
        (following,) = prompts.after([JudgedAnswer(prompt, answered, "", wrong)])
        ids = following.ids[len(prompt.ids) + 1 :]
        yield f"[instruction: {len(ids)} tokens, masked; it follows the sampled tokens]"
        yield prompts.tokenizer.decode(ids)
        if following.review:
            yield f">>> {name[:-1]} of attempt 1, at most {turns[name]} tokens <<<"
        prompt = following


def _plan(facts: RunFacts) -> Iterator[str]:
    config, train, tree = facts.config, facts.config.train, facts.config.train.attempts_per_prompt
    yield work_line(work_of_score(config, facts.work_left, facts.held_out))
    plain = "; and all to report once more, without feedback" if config.feedback_fields() else ""
    yield f"evaluation before training: {evaluated(config.eval, facts.held_out)}{plain}"
    for stage in facts.work_left.stages:
        later = stage.batch_size * train.followed * train.revisions_per_attempt
        of_score = "attempt 2 is paid" if stage.number == 1 else f"both are paid, bonus alpha {train.alpha:g}"
        if train.attempts > 2:
            of_score = of_score.replace("attempt 2 is", "later attempts are").replace("both", "all")
        paid = of_score if train.recipe == "score" else f"paid as {train.recipe} says"
        kl1, kl2 = kl_weights(train, stage.number, len(config.turns))[:2]
        passes = stage.steps * stage.batch_size / len(facts.rows)
        completions = " + ".join(map(str, (stage.batch_size * tree, *[later] * (len(config.turns) - 1))))
        yield (
            f"stage {'I' * stage.number}: {stage.steps} steps of {stage.batch_size} prompts x {tree} attempts x "
            f"{train.revisions_per_attempt} revisions = {completions} completions, "
            f"{passes:.{int(passes < 10)}f} passes over {counted(len(facts.rows), 'row')}; "
            f"{paid}; KL weights {kl1:g} and {kl2:g}"
        )
    if config.distill:
        yield describe_teacher(config.distill)
    yield f"run directory {config.run_dir}"


def evaluated(settings: Eval, held_out: HeldOut) -> str:
    """Describes the size of an evaluation."""
    reported, samples = min(held_out.reported, settings.max_examples), settings.samples_per_prompt
    greedy = f", and one greedy to each of the {reported}" if len(settings.passes("pretrain")) > 1 else ""
    sampled = f"{counted(samples, 'answer')} to each of {reported} held-out rows to report"
    return f"{sampled} and {held_out.chosen_by} to choose by{greedy}"


def _lengths(facts: RunFacts) -> Iterator[str]:
    shown = ", ".join(f"p{name} {value:.0f}" for name, value in percentiles(facts.lengths).items())
    yield f"first prompt: {shown} (of {len(facts.lengths)} rows)"

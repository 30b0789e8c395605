"""Shows what a run of self-play would do, without training."""

from collections.abc import Iterator

from lib.core.config import SelfPlayConfig
from lib.generators.openai import described
from lib.play.loss import notes_on, policy_loss_of
from lib.play.opponents import describe
from lib.rl.plan import stage_of, work_line, work_of_selfplay
from lib.rl.preview import RunFacts, evaluated, show
from lib.rl.prompts import filled, with_last_content
from lib.rl.teachers import describe_teacher


def preview_selfplay(config: SelfPlayConfig) -> None:
    """Prints the same for self-play; sends no request to a server."""
    parts = {"one example": _example, "plan": _plan}
    show(config, lambda config, rows: [stage_of(config, rows)], parts, notes_on(config.train))


def _example(facts: RunFacts) -> Iterator[str]:
    """Yields a prompt as the model reads it and, if there is a teacher, the one with a hint."""
    config, prompts, row = facts.config, facts.prompts, facts.rows[0]
    prompt = prompts.prompt(row)
    yield f"[prompt: {len(prompt.ids)} tokens, masked]"
    yield prompts.tokenizer.decode(prompt.ids)
    often = f" in each of {len(config.budgets)} turns" if config.tools.names else ""
    yield f">>> an answer, at most {config.generation.most_tokens} tokens{often} <<<"
    if config.teacher:
        values = {**row, "question": prompt.question, "hint": "(THE HINT)"}
        hinted = with_last_content(prompt.messages, filled(config.prompts.hinted, values, "prompts.hinted"))
        yield "[the prompt of a retry, masked]"
        yield prompts.tokenizer.decode(prompts.ids(hinted))


def _plan(facts: RunFacts) -> Iterator[str]:
    config, train = facts.config, facts.config.train
    loss = policy_loss_of(train)
    yield work_line(work_of_selfplay(config, facts.work_left, facts.held_out, len(facts.rows)))
    yield f"evaluation before and after training: {evaluated(config.eval, facts.held_out)}"
    yield (
        f"{facts.work_left.stages[0].steps} steps of {train.batch_size} prompts x {train.group_size} answers, "
        f"{train.minibatches * train.passes} optimizer steps in each"
    )
    yield (
        f"{train.loss}: ratio by {loss.ratio.replace('_', ' ')}, clip -{loss.clip[0]:g} +{loss.clip[1]:g}, "
        f"advantage {loss.advantage}, length norm {loss.length_norm}, KL weight {train.beta:g}"
    )
    if config.distill:
        yield describe_teacher(config.distill)
    if config.opponent:
        yield describe(config)
    if config.teacher:
        hint = config.teacher.hint
        yield (
            f"teacher: {described(config.server_of('teacher'))}; hints where no one "
            f"solved a prompt (probability {hint.neither:g}) or the opponent alone did ({hint.opponent_only:g}), "
            f"{hint.train.replace('_', ' ')}; solutions with probability {config.teacher.solve.probability:g}"
        )
    yield f"run directory {config.run_dir}"

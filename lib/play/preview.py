"""What a run of self-play would do, without training."""

from collections.abc import Iterator
from statistics import median

from lib.core.config import SelfPlayConfig, dump
from lib.generators.openai import address
from lib.model.loading import load_skeleton
from lib.play.opponents import describe
from lib.play.recipe import notes_on, recipe_of
from lib.rl.estimate import load_of_groups, needs_of, shares_prompts
from lib.rl.plan import Ahead, Held, ahead, stage_of, told, work_of_selfplay
from lib.rl.preview import LENGTHS, evaluated, show
from lib.rl.prompts import ChatRenderer, chat_of, filled, question_of, with_last_said
from lib.rl.task import chat_renderer, fitting_chats, load_data


def preview_selfplay(config: SelfPlayConfig) -> None:
    """Prints the same for self-play; sends no request to a server."""
    splits, _ = load_data(config)
    skeleton, tokenizer = load_skeleton(config.model)
    prompts = chat_renderer(config, tokenizer)
    train, test, selection, notes = fitting_chats(splits, prompts, config)
    held, before = Held(len(test), len(selection)), ahead([stage_of(config, len(train))], config.eval)
    prompt = round(median(len(prompts.ids(chat_of(row, config.prompts))) for row in train[:LENGTHS]))
    load = load_of_groups(config, shares_prompts(skeleton), prompt, len(test))
    parts = {
        "config, resolved": dump(config).rstrip(),
        "data": "\n".join([splits.source, *notes, *notes_on(config)]),
        "one example": _example_of_chat(train[0], prompts, config),
        "plan": "\n".join(_plan_of_selfplay(config, before, held, len(train))),
        "memory, estimated": "\n".join(needs_of(skeleton, config, load).lines()),
    }
    show(parts)


def _example_of_chat(row: dict, prompts: ChatRenderer, config: SelfPlayConfig) -> str:
    """Returns a prompt as the model reads it and, if there is a teacher, the one with a hint."""
    messages = chat_of(row, config.prompts)
    ids = prompts.ids(messages)
    lines = [f"[prompt: {len(ids)} tokens, masked]", prompts.tokenizer.decode(ids)]
    lines.append(f">>> an answer, at most {config.generation.most_tokens} tokens <<<")
    if config.teacher:
        values = {**row, "question": question_of(messages), "hint": "(THE HINT)"}
        hinted = with_last_said(messages, filled(config.prompts.hinted, values, "prompts.hinted"))
        lines += ["[the prompt of a retry, masked]", prompts.tokenizer.decode(prompts.ids(hinted))]
    return "\n".join(lines)


def _plan_of_selfplay(config: SelfPlayConfig, before: Ahead, held: Held, train_rows: int) -> Iterator[str]:
    train, recipe = config.train, recipe_of(config)
    yield told(work_of_selfplay(config, before, held, train_rows))
    yield f"evaluation before and after training: {evaluated(config.eval, held)}"
    yield (
        f"{before.stages[0].steps} steps of {train.batch_size} prompts x {train.group_size} answers, "
        f"{train.minibatches * train.passes} optimizer steps in each"
    )
    yield (
        f"{train.loss}: ratio by {recipe.ratio.replace('_', ' ')}, clip -{recipe.clip[0]:g} +{recipe.clip[1]:g}, "
        f"advantage {recipe.advantage}, length norm {recipe.length_norm}, KL weight {train.beta:g}"
    )
    if config.opponent:
        yield describe(config.opponent)
    if config.teacher:
        hint = config.teacher.hint
        yield (
            f"teacher: {config.teacher.endpoint.model} at {address(config.teacher.endpoint)}; hints where nobody "
            f"solved a prompt (probability {hint.neither:g}) or the opponent alone did ({hint.opponent_only:g}), "
            f"{hint.train.replace('_', ' ')}; solutions with probability {config.teacher.solve.probability:g}"
        )
    yield f"run directory {config.run_dir}"

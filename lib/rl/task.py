"""A config made real: data and judge first, because their mistakes are cheap, then tokenizer, prompts and policy."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch

from judge.parsing import unchanged
from lib.core.config import Eval, ScoreConfig, SelfPlayConfig
from lib.core.errors import ConfigError
from lib.core.registry import did_you_mean
from lib.generators.engines import NATIVE, Engine, engine_of
from lib.model.loading import attach, load_base, start_backend
from lib.model.policy import Policy, stop_ids
from lib.model.sharding import shard
from lib.rewards.judge import Judge
from lib.rewards.programs import check_public
from lib.rewards.routing import judge_of_rows
from lib.rl.corrections import CorrectionPrompts
from lib.rl.curriculum import easy_rows
from lib.rl.probe import probe, probe_adapters, readable
from lib.rl.prompts import ChatRenderer, columns_of, question_columns
from lib.rl.tool_prompts import ToolRenderer
from lib.rl.tree import Sampling
from lib.text.chats import text_of
from lib.text.data import Splits, load_splits, parted

BRACED = re.compile(r"(?<![\w{])\{(\w+)\}(?!\})")  # not the argument of \boxed{answer}
PROBED_ROWS = 100  # the policy is probed with the longest of this many prompts
TaskConfig = TypeVar("TaskConfig", ScoreConfig, SelfPlayConfig)


@dataclass(frozen=True)
class Prepared(Generic[TaskConfig]):
    """A config's data, judge and prompts: everything but the model."""

    config: TaskConfig
    splits: Splits
    judge: Judge
    prompts: Any  # CorrectionPrompts or ChatRenderer
    train: list[dict]  # rows whose first prompt fits
    test: list[dict]  # held out, for evaluations to report
    selection: list[dict]  # held out, for training to select a checkpoint by
    notes: list[str]  # what was left out, and what attempt 2 sees; printed at start-up

    @property
    def tokenizer(self) -> Any:
        """Returns the tokenizer of prompts and policy."""
        return self.prompts.tokenizer

    def prompt_ids(self, row: dict) -> list[int]:
        """Returns the token ids of a row's first prompt."""
        return self.prompts.prompt(row).ids


@dataclass(frozen=True)
class Task(Prepared[TaskConfig]):
    """Everything that a script needs before the first token."""

    policy: Policy
    engine: Engine = NATIVE  # samples what the policy writes

    def sampling(self, temperature: float, *copies: int, budgets: tuple[int, ...] = (), **how: Any) -> Sampling:
        """Returns the settings for sampling a tree with `copies` of an answer by attempt, one of each later attempt.

        `budgets`, by attempt, are in place of those of training; `how`: by_base, followed.
        """
        budgets = budgets or self.config.budgets
        return Sampling(
            temperature=temperature,
            max_new_tokens=budgets,
            copies=(*copies, *[1] * (len(budgets) - len(copies))),
            stop_ids=stop_ids(self.policy.language_model, self.tokenizer),
            pad_id=self.tokenizer.pad_token_id,
            batch_size=self.config.generation.batch_size,
            engine=self.engine,
            **how,
        )


def load_task(config: TaskConfig, say: Callable[[str], None] = print) -> Task[TaskConfig]:
    """Returns the task of a config, with a policy whose adapter changes nothing yet. Raises ConfigError."""
    splits, judge = load_data(config)
    model, generation = config.model, config.generation
    backend = start_backend(model)
    say(f"model {model.full_name} through {backend}, data {splits.source}")
    if backend == "unsloth" and torch.cuda.is_available():
        say("Unsloth compiles before the first step, one to three minutes, unless UNSLOTH_BLOCK_COMPILE=0 is set")
    base, tokenizer = load_base(model, backend)
    ready = prepared(config, splits, judge, load_prompts(config, tokenizer))
    adapted = attach(base, model, backend, config.seed)
    if model.sharded:
        ready.notes.append(shard(adapted, base))
    with readable(base, model.full_name):
        policy = Policy(adapted, generation.temperature, backend)
    policy.say_sampling(say)
    longest = max(map(ready.prompt_ids, ready.train[:PROBED_ROWS]), key=len)
    probe_adapters(policy, longest)
    probe(policy, longest, tokenizer.pad_token_id, model.full_name)
    return Task(**vars(ready), policy=policy, engine=engine_of(model, generation, policy, longest, say))


def load_data(config: ScoreConfig | SelfPlayConfig) -> tuple[Splits, Judge]:
    """Loads rows and judge. Raises ConfigError for every mistake that shows without a model."""
    dataset, prompts, compares = config.dataset, config.prompts, isinstance(config, ScoreConfig)
    columns, question = question_columns(prompts)
    if not columns:
        raise ConfigError("prompts.user: names no column of the data, so every row would ask the same: write {column}")
    splits = load_splits(dataset, columns, question)
    judge, splits = judge_of_rows(config.reward, splits, dataset.target_field, compares)
    _check_templates(config, set(splits.train[0]))
    if isinstance(config, ScoreConfig) and config.prompts.feedback == "tests":
        check_public(splits.train + splits.test, splits.train_places + splits.test_places)
    return splits, judge


def _check_templates(config: ScoreConfig | SelfPlayConfig, columns: set[str]) -> None:
    """Raises ConfigError for a `{name}` that nothing fills in the prompts to the policy and to teachers."""
    placeholders = BRACED.findall(config.prompts.self_correction) if isinstance(config, ScoreConfig) else []
    for name in placeholders:
        if name in columns or did_you_mean(name, columns):
            raise ConfigError(
                f"prompts.self_correction: '{{{name}}}' looks like a column of the data, which prompts.user alone is "
                "filled from; attempt 2 reads that message too: remove it here"
            )
    templates: list[tuple[str, str, set[str]]] = []
    if config.distill and config.distill.shown:
        templates.append(("distill.shown", config.distill.shown, {"question", "sibling", "feedback"}))
    if isinstance(config, SelfPlayConfig) and config.teacher:
        hint, solve = config.teacher.hint, config.teacher.solve
        if "hint" not in columns_of(config.prompts.hinted, "prompts.hinted"):
            raise ConfigError("prompts.hinted: it does not show the hint: write {hint} where it belongs")
        templates += [
            ("prompts.hinted", config.prompts.hinted, {"question", "hint"}),
            ("teacher.hint.hint_request", hint.hint_request, {"question", "attempt"}),
            ("teacher.hint.critique_request", hint.critique_request, {"question", "attempt"}),
            ("teacher.solve.request", solve.request, {"question", "attempt"}),
        ]
    for key, template, given in templates:
        for name in columns_of(template, key):
            if name not in given | columns:
                raise ConfigError(
                    f"{key}: nothing fills '{{{name}}}'{did_you_mean(name, given | columns, '.')} "
                    f"Known: {', '.join(sorted(given | columns))}"
                )


def load_prompts(config: ScoreConfig | SelfPlayConfig, tokenizer: Any) -> CorrectionPrompts | ChatRenderer:
    """Returns the renderer of a config's rows as prompts. Raises ConfigError if the prompts cannot work."""
    kwargs = config.model.chat_template_kwargs
    if isinstance(config, ScoreConfig):
        prompts = CorrectionPrompts(tokenizer, config.prompts, config.generation, kwargs)
        longest = prompts.longest_chat(max(len(config.budgets), len(config.eval_budgets)))
        if longest > config.model.max_seq_length:
            raise ConfigError(
                f"model.max_seq_length: got {config.model.max_seq_length}, but a chat may have {longest} tokens, "
                f"{prompts.longest_retry} of them to ask for each attempt after the first: raise it, or lower "
                "generation.max_prompt_length_attempt2 or generation.max_new_tokens_attempt2"
            )
        return prompts
    has_tools, kwargs = bool(config.tools.names), dict(kwargs)
    prompts = ToolRenderer(tokenizer, kwargs, config) if has_tools else ChatRenderer(tokenizer, kwargs, config.prompts)
    templates = {name: getattr(config.prompts, name) for name in ("system", "user", "hinted")}
    prompts.outside.refuse_controls({f"prompts.{name}": text for name, text in templates.items()})
    if config.generation.thinking.enabled is not None:
        prompts.switch_thinking(config.generation.thinking.enabled)
    return prompts


def prepared(
    config: ScoreConfig | SelfPlayConfig, splits: Splits, judge: Judge, prompts: CorrectionPrompts | ChatRenderer
) -> Prepared:
    """Returns the rows with first prompts within the budget, and the notes on them. Raises ConfigError."""
    (key, limit), settings = config.prompt_limit, config.eval
    offered = splits.train, splits.test[slice(*settings.within(len(splits.test)))]
    train, test = ([row for row in rows if len(prompts.prompt(row).ids) <= limit] for rows in offered)
    if not train or not test:
        raise ConfigError(
            f"dataset: {len(train)} of {len(offered[0])} train and {len(test)} of {len(offered[1])} held-out rows "
            f"left, the others are longer than {key} = {limit} tokens: raise it"
        )
    easy_rows(config.curriculum.easy_pool, train)
    too_long = [len(rows) - len(left) for rows, left in zip(offered, (train, test), strict=True)]
    selection, test = parted(test, settings.selection_examples, splits.group_of)
    about = (
        f"{len(train)} train rows; held out are {len(test)} to report{_reported(settings, len(test))} and "
        f"{len(selection)} to choose by"
    )
    notes = ["; ".join(filter(None, (about, prompts.history_note()))), *splits.notes, *_repeated(train, prompts, judge)]
    if any(too_long):
        lost = 100 * sum(too_long) / sum(map(len, offered))
        notes.append(
            f"{'WARNING: ' if lost >= 10 else ''}{too_long[0]} of {len(offered[0])} train and {too_long[1]} of "
            f"{len(offered[1])} held-out prompts ({lost:.0f} %) are longer than {key} = {limit} tokens and left out: "
            "raise it to keep them"
        )
    for key in ("system", "self_correction"):
        if unknown := prompts.outside.unknown_in(getattr(config.prompts, key, "")):
            characters = ", ".join(map(repr, sorted(unknown)))
            notes.append(f"the tokenizer does not know {characters} in prompts.{key}: reword it, or use another model")
    rows, places = splits.train + splits.test, splits.train_places + splits.test_places
    contents = ([message.get("content") for message in prompts.messages(row)] for row in rows)
    texts = ([text for text in content if isinstance(text, str)] for content in contents)
    notes += [*prompts.notes(rows), *prompts.outside.notes(zip(places, texts, strict=True))]
    return Prepared(config, splits, judge, prompts, train, test, selection, notes)


def _repeated(rows: list[dict], prompts: CorrectionPrompts | ChatRenderer, judge: Judge) -> list[str]:
    """Returns a note on rows that ask what an earlier one asks; none if all differ."""
    firsts: dict[int, dict] = {}  # by a hash, since questions may be long
    pairs = [(row, firsts.setdefault(hash(text_of(prompts.messages(row))), row)) for row in rows]
    repeated = [pair for pair in pairs if pair[0] is not pair[1]]
    compared = (pair for pair in repeated if all(judge.judge_of(row).needs_targets for row in pair))
    others = sum(not unchanged(*map(judge.answer_of, pair)) for pair in compared)
    about = f", {others} of them with another answer: remove those that are wrong" if others else ""
    return [f"{len(repeated)} of {len(rows)} train rows repeat the question of another row{about}"] if repeated else []


def _reported(settings: Eval, rows: int) -> str:
    """Describes which of `rows` held-out rows an evaluation reports; "" if all of them."""
    often, step = (min(rows, settings.examples(when)) for when in ("", "step"))
    parts = [f"the first {often}"] if often < rows else []
    parts += [f"the first {step} in the middle of a stage"] if step != often else []
    return f" ({', '.join(parts)})" if parts else ""

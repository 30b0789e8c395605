"""A config made real: data and judge first, because their mistakes are cheap, then tokenizer, prompts and policy."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from lib.core.config import Eval, ScoreConfig, SelfPlayConfig
from lib.core.errors import ConfigError
from lib.core.registry import did_you_mean
from lib.model.loading import attach_lora, load_base, start_backend
from lib.model.policy import Policy, stop_ids
from lib.rewards.judge import Judge, judge_of_rows
from lib.rl.probe import probe, readable
from lib.rl.prompts import ChatRenderer, CorrectionPrompts, Prompt, chat_columns, chat_of, columns_of, filled
from lib.rl.tree import Sampling
from lib.text.chats import system_notes, text_of
from lib.text.data import Place, Splits, load_splits, parted

PROBED_ROWS = 100  # the policy is probed with the longest of this many prompts
RowsAndNotes = tuple[list[dict], list[dict], list[dict], list[str]]  # train, test, selection, and notes


@dataclass(frozen=True)
class ScoreTask:
    """Everything that train.py, evaluate.py and profile_run.py need before the first token."""

    config: ScoreConfig
    splits: Splits
    judge: Judge
    tokenizer: Any
    prompts: CorrectionPrompts
    policy: Policy
    train: list[dict]  # rows whose first prompt fits
    test: list[dict]  # held out: what evaluations report,
    selection: list[dict]  # and what training selects by
    notes: list[str]  # what was left out, and what attempt 2 sees; printed at start-up

    def prompt_ids(self, row: dict) -> list[int]:
        """Returns the token ids of a row's first prompt."""
        return self.prompts.first(row)

    def fits(self, row: dict) -> bool:
        """Tells whether a row's first prompt is within the budget."""
        return len(self.prompt_ids(row)) <= self.config.generation.max_prompt_length_attempt1

    @property
    def budgets(self) -> tuple[int, ...]:
        """Returns the most new tokens, by attempt."""
        generation, corrections = self.config.generation, self.config.train.corrections
        return (generation.max_new_tokens_attempt1, *[generation.max_new_tokens_attempt2] * corrections)

    def sampling(self, temperature: float, attempts: int = 1, revisions: int = 1, by_base: float = 0.0) -> Sampling:
        """Returns the settings for sampling a tree of attempts x revisions, and one further correction of each."""
        generation = self.config.generation
        return Sampling(
            temperature=temperature,
            max_new_tokens=self.budgets,
            copies=(attempts, revisions, *[1] * (len(self.budgets) - 2)),
            stop_ids=stop_ids(self.policy.language_model, self.tokenizer),
            pad_id=self.tokenizer.pad_token_id,
            batch_size=generation.batch_size,
            by_base=by_base,
        )


@dataclass(frozen=True)
class ChatTask:
    """Everything that rl_train_gspo_selfplay.py and evaluate.py need before the first token."""

    config: SelfPlayConfig
    splits: Splits
    judge: Judge
    prompts: ChatRenderer
    policy: Policy
    train: list[dict]  # rows whose prompt fits
    test: list[dict]  # held out: what evaluations report,
    selection: list[dict]  # and what training selects by
    notes: list[str]

    @property
    def budgets(self) -> tuple[int, ...]:
        """Returns the most new tokens, by attempt."""
        return (self.config.generation.most_tokens,)

    @property
    def tokenizer(self) -> Any:
        return self.prompts.tokenizer

    def prompt_ids(self, row: dict) -> list[int]:
        """Returns the token ids of a row's prompt."""
        return self.prompt(row).ids

    def fits(self, row: dict) -> bool:
        """Tells whether a row's prompt is within the budget."""
        return len(self.prompt_ids(row)) <= self.config.generation.max_prompt_length

    def sampling(self, temperature: float, copies: int, max_new_tokens: int | None = None) -> Sampling:
        """Returns the settings for sampling `copies` answers to a prompt with this task's budgets."""
        generation = self.config.generation
        return Sampling(
            temperature=temperature,
            max_new_tokens=(max_new_tokens or generation.most_tokens,),
            copies=(copies,),
            stop_ids=stop_ids(self.policy.language_model, self.tokenizer),
            pad_id=self.tokenizer.pad_token_id,
            batch_size=generation.batch_size,
        )

    def prompt(self, row: dict[str, Any], number: int = 0) -> Prompt:
        """Returns the prompt of a row; `number`: the row's index."""
        return self.prompts.prompt(row, chat_of(row, self.config.prompts), number)


def load_task(config: ScoreConfig, say: Callable[[str], None] = print) -> ScoreTask:
    """Loads data, judge, tokenizer, prompts, and a policy whose adapter changes nothing yet. Raises ConfigError."""
    splits, judge = load_data(config)
    backend, base, tokenizer = _start(config, splits, say)
    prompts = CorrectionPrompts(tokenizer, config.prompts, config.generation, config.model.chat_template_kwargs)
    rows_and_notes = fitting(splits, prompts, config)
    texts = [prompts.first(row) for row in rows_and_notes[0][:PROBED_ROWS]]
    policy = _policy(config, base, backend, texts, tokenizer, say)
    return ScoreTask(config, splits, judge, tokenizer, prompts, policy, *rows_and_notes)


def load_chat_task(config: SelfPlayConfig, say: Callable[[str], None] = print) -> ChatTask:
    """Loads the same for single answers. Raises ConfigError."""
    splits, judge = load_data(config)
    backend, base, tokenizer = _start(config, splits, say)
    prompts = chat_renderer(config, tokenizer)
    rows_and_notes = fitting_chats(splits, prompts, config)
    texts = [prompts.ids(chat_of(row, config.prompts)) for row in rows_and_notes[0][:PROBED_ROWS]]
    policy = _policy(config, base, backend, texts, tokenizer, say)
    return ChatTask(config, splits, judge, prompts, policy, *rows_and_notes)


def _start(config: ScoreConfig | SelfPlayConfig, splits: Splits, say: Callable[[str], None]):
    backend = start_backend(config.model)
    say(f"model {config.model.full_name} through {backend}, data {splits.source}")
    return (backend, *load_base(config.model, backend))


def _policy(
    config: ScoreConfig | SelfPlayConfig, base: Any, backend: str, prompts: list[list[int]], tokenizer: Any,
    say: Callable[[str], None],
) -> Policy:  # fmt: skip
    """Returns a policy whose log-probs have been probed. Raises ConfigError."""
    adapted = attach_lora(base, config.lora, config.model, backend, config.seed)
    with readable(base, config.model.full_name):
        policy = Policy(adapted, config.generation.temperature, backend)
    policy.say_sampling(say)
    probe(policy, max(prompts, key=len), tokenizer.pad_token_id, config.model.full_name)
    return policy


def load_data(config: ScoreConfig | SelfPlayConfig) -> tuple[Splits, Judge]:
    """Loads the rows and the judge of answers. Raises ConfigError for every mistake that shows without a model."""
    target = config.dataset.target_field
    is_chat = isinstance(config, SelfPlayConfig)
    prompts: Any = config.prompts
    columns = chat_columns(prompts) if is_chat else columns_of(prompts.user)
    splits = load_splits(
        config.dataset,
        columns,
        lambda row: text_of(chat_of(row, prompts)) if is_chat else filled(prompts.user, row, "prompts.user"),
    )
    judge, splits = judge_of_rows(config.reward, splits, target, compares=not is_chat)
    if isinstance(config, SelfPlayConfig):
        _check_templates(config, set(splits.train[0]))
    return splits, judge


def _check_templates(config: SelfPlayConfig, columns: set[str]) -> None:
    """Raises ConfigError for a `{name}` that nothing fills in the prompts to and from a teacher."""
    if config.teacher is None:
        return
    hint, solve = config.teacher.hint, config.teacher.solve
    if "hint" not in columns_of(config.prompts.hinted, "prompts.hinted"):
        raise ConfigError("prompts.hinted: it does not show the hint: write {hint} where it belongs")
    for key, template, given in (
        ("prompts.hinted", config.prompts.hinted, {"question", "hint"}),
        ("teacher.hint.hint_request", hint.hint_request, {"question", "attempt"}),
        ("teacher.hint.critique_request", hint.critique_request, {"question", "attempt"}),
        ("teacher.solve.request", solve.request, {"question", "attempt"}),
    ):
        for name in columns_of(template, key):
            if name not in given | columns:
                raise ConfigError(
                    f"{key}: nothing fills '{{{name}}}'{did_you_mean(name, given | columns)} "
                    f"Known: {', '.join(sorted(given | columns))}"
                )


def chat_renderer(config: SelfPlayConfig, tokenizer: Any) -> ChatRenderer:
    """Returns the policy's prompts, with thinking on or off by the config. Raises ConfigError if that has no effect."""
    prompts = ChatRenderer(tokenizer, dict(config.model.chat_template_kwargs))
    written = {name: getattr(config.prompts, name) for name in ("system", "user", "hinted")}
    prompts.outside.refuse_controls({f"prompts.{name}": text for name, text in written.items()})
    if config.generation.thinking.enabled is not None:
        prompts.switch_thinking(config.generation.thinking.enabled)
    return prompts


def fitting_chats(splits: Splits, prompts: ChatRenderer, config: SelfPlayConfig) -> RowsAndNotes:
    """Returns the rows of a ChatTask, those with prompts within the budget, and the notes on them."""
    train, test, selection, notes = _fitting(
        splits, lambda row: prompts.ids(chat_of(row, config.prompts)), "generation.max_prompt_length",
        config.generation.max_prompt_length, config.eval,
    )  # fmt: skip
    told = prompts.outside.notes(_said(splits, lambda row: chat_of(row, config.prompts)))
    chats = (chat_of(row, config.prompts) for row in splits.train + splits.test)
    return train, test, selection, [*notes, *system_notes(chats, config.prompts.system), *told]


def fitting(splits: Splits, prompts: CorrectionPrompts, config: ScoreConfig) -> RowsAndNotes:
    """Returns the rows of a ScoreTask, those with first prompts within the budget, and the notes on them."""
    limit = config.generation.max_prompt_length_attempt1
    key = "generation.max_prompt_length_attempt1"
    train, test, selection, notes = _fitting(splits, prompts.first, key, limit, config.eval)
    told = prompts.outside.notes(_said(splits, lambda row: [{"content": prompts.question(row)}]))
    return train, test, selection, [f"{notes[0]}; {prompts.history_note()}", *notes[1:], *told]


def _said(splits: Splits, chat_of: Callable[[dict], list[dict]]) -> Iterator[tuple[Place, list[str]]]:
    """Yields every row's place, and the texts of its messages."""
    placed = zip(splits.train_places + splits.test_places, splits.train + splits.test, strict=True)
    for place, row in placed:
        contents = [message.get("content") for message in chat_of(row)]
        yield place, [content for content in contents if isinstance(content, str)]


def _fitting(splits: Splits, ids_of: Callable[[dict], list[int]], key: str, limit: int, settings: Eval) -> RowsAndNotes:
    splits = replace(splits, test=splits.test[slice(*settings.within(len(splits.test)))])
    kept = [[row for row in rows if len(ids_of(row)) <= limit] for rows in (splits.train, splits.test)]
    train, test = kept
    too_long = [len(rows) - len(left) for rows, left in zip((splits.train, splits.test), kept, strict=True)]
    if not train or not test:
        raise ConfigError(
            f"dataset: {len(train)} of {len(splits.train)} train and {len(test)} of {len(splits.test)} held-out rows "
            f"left, the others are longer than {key} = {limit} tokens: raise it"
        )
    selection, test = parted(test, settings.selection_examples, splits.group_of)
    notes = [
        f"{len(train)} train rows; held out are {len(test)} to report{_reported(settings, len(test))} and "
        f"{len(selection)} to choose by",
        *splits.notes,
    ]
    if any(too_long):
        notes.append(
            f"{too_long[0]} of {len(splits.train)} train and {too_long[1]} of {len(splits.test)} held-out prompts are "
            f"longer than {key} = {limit} tokens and left out"
        )
    return train, test, selection, notes


def _reported(settings: Eval, rows: int) -> str:
    """Describes which of `rows` held-out rows an evaluation reports; "" if all of them."""
    often, step = (min(rows, settings.examples(when)) for when in ("", "step"))
    parts = [f"the first {often}"] if often < rows else []
    parts += [f"the first {step} in the middle of a stage"] if step != often else []
    return f" ({', '.join(parts)})" if parts else ""

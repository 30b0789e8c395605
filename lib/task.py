"""A config made real: data and judge first, because their mistakes are cheap, then tokenizer, prompts and policy."""

from dataclasses import dataclass

from lib.config import ScoreConfig
from lib.data import Splits, load_splits
from lib.errors import ConfigError
from lib.model import Policy, attach_lora, load_base, start_backend, stop_ids
from lib.prompts import TwoTurnPrompts, columns_of
from lib.rewards import Judge
from lib.rollout import Sampling


@dataclass(frozen=True)
class Task:
    """Everything that train.py, evaluate.py and profile_run.py need before their first token."""

    config: ScoreConfig
    splits: Splits
    judge: Judge
    tokenizer: object
    prompts: TwoTurnPrompts
    policy: Policy
    train: list[dict]  # rows whose first prompt fits
    test: list[dict]
    notes: list[str]  # what was left out, and what attempt 2 sees: said at start-up

    def sampling(self, temperature: float, attempts: int = 1, revisions: int = 1, y1_by_base: float = 0.0) -> Sampling:
        """How to sample a tree of attempts x revisions with this task's budgets."""
        generation = self.config.generation
        return Sampling(
            temperature=temperature,
            max_new_tokens=(generation.max_new_tokens_attempt1, generation.max_new_tokens_attempt2),
            stop_ids=stop_ids(self.policy.language_model, self.tokenizer),
            pad_id=self.tokenizer.pad_token_id,
            batch_size=generation.batch_size,
            attempts=attempts,
            revisions=revisions,
            y1_by_base=y1_by_base,
        )


def load_task(config: ScoreConfig, say=print) -> Task:
    """Data, judge, tokenizer, prompts, and a policy whose adapter changes nothing yet. Raises ConfigError."""
    splits, judge = load_data(config)
    backend = start_backend(config.model)
    say(f"model {config.model.name} through {backend}, data {splits.source}")
    base, tokenizer = load_base(config.model, backend)
    prompts = TwoTurnPrompts(tokenizer, config.prompts, config.generation, config.model.chat_template_kwargs)
    train, test, notes = fitting(splits, prompts, config)
    policy = Policy(
        attach_lora(base, config.lora, config.model, backend, config.seed), config.generation.temperature, backend
    )
    return Task(config, splits, judge, tokenizer, prompts, policy, train, test, notes)


def load_data(config: ScoreConfig) -> tuple[Splits, Judge]:
    """The rows and how answers are judged, with every mistake that needs no model."""
    columns = [*columns_of(config.prompts.user), config.dataset.target_field]
    splits = load_splits(config.dataset, columns)
    reward = config.reward
    judge = Judge(reward.fn, reward.answer_extractor, reward.match, list(splits.train[0]), reward.options)
    judge.check(splits.train + splits.test)
    for name, rows in (("train", splits.train), ("held-out", splits.test)):
        judge.check_targets(rows, config.dataset.target_field, name)
    return splits, judge


def fitting(splits: Splits, prompts: TwoTurnPrompts, config: ScoreConfig) -> tuple[list[dict], list[dict], list[str]]:
    """Train and held-out rows whose first prompt is within its budget, and what to tell about all this."""
    limit = config.generation.max_prompt_length_attempt1
    kept = [[row for row in rows if len(prompts.first(row)) <= limit] for rows in (splits.train, splits.test)]
    train, test = kept
    too_long = [len(rows) - len(left) for rows, left in zip((splits.train, splits.test), kept, strict=True)]
    if not train or not test:
        raise ConfigError(
            f"dataset: {len(train)} of {len(splits.train)} train and {len(test)} of {len(splits.test)} held-out rows "
            f"left, the others are longer than generation.max_prompt_length_attempt1 = {limit} tokens: raise it"
        )
    notes = [f"{len(train)} train and {len(test)} held-out rows; {prompts.history_note()}"]
    if any(too_long):
        notes.append(
            f"{too_long[0]} of {len(splits.train)} train and {too_long[1]} of {len(splits.test)} held-out prompts are "
            f"longer than generation.max_prompt_length_attempt1 = {limit} tokens and left out"
        )
    if splits.overlap:
        notes.append(f"{splits.overlap} train rows stand among the held-out rows too and were removed from train")
    return train, test, notes

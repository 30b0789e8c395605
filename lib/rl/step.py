"""Optimizer steps on the answers of a step: splits them to fit memory and checks gradients before applying them."""

import contextlib
import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from statistics import fmean

import torch
from accelerate import Accelerator

from lib.core.clock import phase
from lib.core.config import Optimizer, RLConfig
from lib.core.errors import ConfigError, NumericError, OutOfMemory, is_out_of_memory
from lib.core.stats import percentiles
from lib.model.policy import Policy
from lib.rl.batching import MicroBatch, evened, micro_batches, sequences
from lib.rl.credit import Credit
from lib.rl.losses import Numbers, Objective, loss_of
from lib.rl.tree import Node
from lib.run.distributed import any_process, sum_gradients

SKIPS_IN_A_ROW = 3
MOST_ADVANTAGE = 1e6  # beyond it the rewards are out of scale, and no learning rate helps


@dataclasses.dataclass
class Progress:
    """The progress of the run, saved and restored as a whole."""

    stage: int = 1
    step: int = 0  # steps done in this stage
    due: str | None = "pretrain"  # the evaluation to do before the next step, if any
    skipped: int = 0  # steps in a row in which something was not finite
    micro_batch_tokens: int = 1  # halved where memory ran out
    proven: bool = False  # a gradient has reached the adapter and moved it
    rate_factor: float = 1.0  # of the learning rate; halved whenever the run goes back to its best checkpoint
    restores: list[dict] = dataclasses.field(default_factory=list)  # each with stage, step and the checkpoint restored
    restored_from: dict[str, str] = dataclasses.field(default_factory=dict)  # stream -> note for its next row

    def state_dict(self) -> dict:
        """Returns every field, through JSON, so equal states are equal bytes: pickle writes a shared string once."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    def load_state_dict(self, state: dict) -> None:
        """Sets every field."""
        for name, value in state.items():
            setattr(self, name, value)


def make_optimizer(settings: Optimizer, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """Returns AdamW over the adapter, or its 8-bit version. Raises ConfigError if bitsandbytes is missing."""
    options = {"lr": settings.learning_rate, "betas": tuple(settings.betas), "weight_decay": settings.weight_decay}
    if settings.name == "adamw":
        return torch.optim.AdamW(parameters, **options)
    try:
        from bitsandbytes.optim import AdamW8bit
    except ImportError as error:
        raise ConfigError(
            f"optimizer.name: adamw_8bit needs bitsandbytes ({error}); install it or use adamw"
        ) from error
    return AdamW8bit(parameters, **options)


def learning_rate(settings: Optimizer, step: int, steps: int) -> float:
    """Returns the rate of step `step` (0-based) of `steps`: linear warm-up, then constant, linear or cosine to zero."""
    if step < settings.warmup_steps:
        return settings.learning_rate * (step + 1) / settings.warmup_steps
    done = (step - settings.warmup_steps) / max(1, steps - settings.warmup_steps)
    factor = {"constant": 1.0, "linear": 1 - done, "cosine": 0.5 * (1 + math.cos(math.pi * done))}[settings.schedule]
    return settings.learning_rate * factor


def in_one_row(updates: list[dict]) -> dict[str, float]:
    """Averages the metrics of a step's optimizer steps; of `log_ratios`, one per answer, returns percentiles."""
    finite = [update for update in updates if math.isfinite(update["loss"]) and math.isfinite(update["grad_norm"])]
    counts = {"updates": len(finite), "skipped_updates": len(updates) - len(finite)}
    if not finite:
        return {**counts, "loss": 0.0, "grad_norm": 0.0}
    ratios = [ratio for update in finite for ratio in update["log_ratios"]]
    marks = percentiles(ratios, (5, 50, 95)) if ratios else {}
    names = sorted({name for update in finite for name in update if name != "log_ratios"})
    means = {name: fmean(update[name] for update in finite if name in update) for name in names}
    return counts | means | {f"log_ratio_p{p}": value for p, value in marks.items()}


@dataclasses.dataclass(frozen=True)
class TokenLogps:
    """Log-probs of a step's tokens by the policy, (tokens of all answers,) each; NaN where no forward was needed."""

    old: torch.Tensor  # before the first optimizer step on them
    new: torch.Tensor  # in the last optimizer step that read them


class OptimizerStep:
    """Optimizer steps of a policy's adapter."""

    def __init__(
        self,
        config: RLConfig,
        policy: Policy,
        wrapped: torch.nn.Module,
        accelerator: Accelerator,
        progress: Progress,
        pad_id: int,
        warn: Callable[[str], None],
    ):
        """`wrapped` is the same policy, wrapped to sum gradients over processes."""
        self.policy, self.accelerator, self.progress, self._pad_id = policy, accelerator, progress, pad_id
        self.wrapped = wrapped
        self.optimizer = accelerator.prepare(make_optimizer(config.optimizer, policy.trainable))
        self._settings, self._train, self._warn = config.optimizer, config.train, warn
        self._fresh = self.optimizer.state_dict()
        self._is_short = False  # of memory, in the last trial
        self._batch_tokens = 0  # of the last micro-batch
        self._skipped_at: tuple[int, int] | None = None
        self.logps: TokenLogps  # of the last batch of answers

    def reset(self) -> None:
        """Forgets the moments of an earlier stage."""
        self.optimizer.load_state_dict(self._fresh)

    def learn(self, credit: Credit, objective: Objective, rate: float, passes: int = 1) -> dict[str, float]:
        """Takes an optimizer step on each minibatch in each of `passes`; returns their metrics, and keeps `logps`."""
        # a minibatch in which nothing has a gradient gets no step, which would be by momentum alone
        learned = ((part, credit.learned_in(part)) for part in credit.parts)
        parts = [(part, answers) for part, answers in learned if any_process(answers, self.accelerator)]
        self.logps = logps = self.logps_before(credit, [part for part, _ in parts])
        updates: list[dict] = []
        for part, answers in parts * passes:
            is_first = not updates  # in later ones the clip may stop every token, so a zero gradient is no error
            for group in self.optimizer.param_groups:
                group["lr"] = rate * self.progress.rate_factor
            for trial in self.trials():
                with trial:
                    numbers = self.accumulate(credit, part, objective, logps, is_first)
            expects_gradient = any_process(is_first and credit.advantage[answers].any(), self.accelerator)
            updates.append(self.apply(numbers, credit.advantage, expects_gradient))
        return in_one_row(updates)

    def accumulate(
        self, credit: Credit, part: list[Node], objective: Objective, logps: TokenLogps, is_first: bool = True
    ) -> dict:
        """Accumulates the gradients of an optimizer step over micro-batches; sums are divided once, by its answers."""
        numbers = Numbers()
        for batch in self.batches(part, credit.learned.__getitem__):
            places = credit.tokens_of(batch)
            # gradients are summed over processes once, after the last micro-batch: their numbers of batches may differ
            with self.accelerator.no_sync(self.wrapped), phase("forward_backward"):
                old = None if is_first else logps.old[places]
                loss, batch_numbers, logp = loss_of(self.policy, batch, credit, objective, old, self.wrapped)
                self.accelerator.backward(loss / credit.divisor)
            if is_first:
                logps.old[places] = logp
            logps.new[places] = logp
            numbers += batch_numbers
        return numbers.means(objective, credit.divisor, self.accelerator)

    @torch.no_grad()
    def logps_before(self, credit: Credit, parts: list[list[Node]]) -> TokenLogps:
        """Scores the tokens of minibatches before the first optimizer step, in the micro-batches that training uses.

        The first minibatch stays NaN: `accumulate` fills it in, since no weight has changed until then.
        """
        old = torch.full_like(credit.sampled_logp, math.nan)
        for part in parts[1:]:
            for batch in self.batches(part, credit.learned.__getitem__):
                with phase("reference"):
                    old[credit.tokens_of(batch)] = self.policy(batch.inputs)[0]
        return TokenLogps(old, torch.full_like(old, math.nan))

    def trials(self) -> Iterator[contextlib.AbstractContextManager]:
        """Yields a context for the step's gradients, and a second one if memory runs out in the first.

        The micro-batch that failed is halved for the second, and for all later steps; the update is the same. Raises
        OutOfMemory if the second fails, too.
        """
        self.optimizer.zero_grad()
        for is_last in (False, True):  # contexts, since a `with` cannot run its body a second time
            self._is_short, self._batch_tokens = False, self.progress.micro_batch_tokens
            yield self._within_memory(is_last)
            if not self._is_short:
                return

    def batches(self, nodes: list[Node], is_learned: Callable[[int], bool]) -> Iterator[MicroBatch]:
        """Yields the micro-batches of those answers that have a gradient, as large as memory has allowed so far."""
        items, device = sequences(nodes, is_learned, self.policy.should_share_trunk), self.policy.device
        batches = micro_batches(items, self.progress.micro_batch_tokens, self._pad_id, device)
        for batch in evened(batches, self._pad_id, device, self.accelerator) if self.policy.is_sharded else batches:
            self._batch_tokens = batch.inputs.ids.numel()
            yield batch

    def apply(self, numbers: dict, advantage: torch.Tensor, expects_gradient: bool) -> dict:
        """Sums the gradients over processes, clips, checks and applies them; adds to the `numbers` of the step.

        `expects_gradient`: some advantage is not zero, so a gradient of exactly zero means that training is broken.
        Raises NumericError.
        """
        parameters = self.policy.trainable
        sum_gradients(parameters, self.accelerator)
        with phase("optimizer"):
            norm = float(self.accelerator.clip_grad_norm_(parameters, self._settings.max_grad_norm))
            numbers["grad_norm"], numbers["learning_rate"] = norm, self.optimizer.param_groups[0]["lr"]
            numbers["zero_gradient"] = float(expects_gradient and norm == 0)
            if not math.isfinite(norm) or not math.isfinite(numbers["loss"]):
                self._skip_or_stop(numbers, advantage)
                return numbers
            self.progress.skipped = 0
            if self.policy.shelf:
                self.policy.shelf.let_frozen_wait()
            if self.progress.proven or not expects_gradient:
                self.optimizer.step()
            else:
                self._first_step(parameters, norm)
        return numbers

    def _first_step(self, parameters: list[torch.nn.Parameter], norm: float) -> None:
        """Takes the first step that expects a gradient. Raises NumericError unless the adapter gets one and moves."""
        if norm == 0:
            raise NumericError(
                "the gradient is exactly zero although rewards differ: the adapter is cut off from the loss; check "
                "model.gradient_checkpointing, model.load_in_4bit and the targets in model.adapters"
            )
        before = [parameter.detach().clone() for parameter in parameters]
        self.optimizer.step()
        if all(torch.equal(old, new) for old, new in zip(before, parameters, strict=True)):
            raise NumericError(
                f"the first optimizer step changed no weight (gradient norm {norm:.3g}): raise optimizer.learning_rate"
            )
        self.progress.proven = True

    def _skip_or_stop(self, numbers: dict, advantage: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        here = (self.progress.stage, self.progress.step)  # a step may hold several optimizer steps
        self.progress.skipped += here != self._skipped_at
        self._skipped_at = here
        problem = f"loss {numbers['loss']}, gradient norm {numbers['grad_norm']}"
        if self._train.on_non_finite == "stop" or self.progress.skipped >= SKIPS_IN_A_ROW:
            largest = float(advantage.abs().max()) if len(advantage) else 0.0
            remedy = "lower optimizer.learning_rate, then --resume from the last checkpoint"
            if not largest <= MOST_ADVANTAGE:  # or NaN
                alpha = getattr(self._train, "alpha", None)
                problem += f", from advantages of up to {largest:.3g}"
                remedy = f"scale the reward{'' if alpha is None else f', or lower train.alpha = {alpha:g}'}"
            raise NumericError(f"stage {self.progress.stage} step {self.progress.step + 1}: {problem}; {remedy}")
        self._warn(f"step skipped: {problem}")

    @contextlib.contextmanager
    def _within_memory(self, is_last: bool) -> Iterator[None]:
        try:
            yield
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            progress = self.progress
            if is_last or self.policy.is_sharded:  # the other processes have no second trial
                raise OutOfMemory(
                    f"out of memory in a micro-batch of {self._batch_tokens} tokens: lower train.micro_batch_tokens "
                    "below that, or the budgets of new tokens in generation, or set model.gradient_checkpointing=true"
                ) from error
            self._is_short = True
            progress.micro_batch_tokens = max(1, min(progress.micro_batch_tokens, self._batch_tokens) // 2)
        if self._is_short:  # here the exception no longer holds its tensors
            self._warn(f"out of memory: train.micro_batch_tokens is {progress.micro_batch_tokens} from now on")
            self.optimizer.zero_grad()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

"""The steps of SCoRe (Kumar et al., arXiv 2409.12917): sample a tree of attempts, give credit, update, evaluate."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from lib.adapters import load_adapter
from lib.clock import phase
from lib.config import Eval, ScoreTrain
from lib.console import with_best
from lib.distributed import collect, make_accelerator, total
from lib.evaluation import evaluate, selected, summarise
from lib.losses import adapted_beta, kl_per_token, length_weights, overlong_penalty, score_advantages, score_loss
from lib.plan import Stage, Work, stages_of, work_of_score
from lib.rollout import MicroBatch, Rollout, micro_batches, sequences, two_attempts
from lib.runlog import read_jsonl
from lib.sampler import Sampler
from lib.task import Task
from lib.trainer import OVER, Trainer, learning_rate
from lib.watch import form_of


def kl_weights(train: ScoreTrain, stage: int, beta2: float) -> tuple[float, float]:
    """Returns the KL weights of attempts 1 and 2; in stage I the paper's beta2 is added to its small beta1."""
    if stage == 2:
        return train.beta1, train.beta1
    small = train.beta1 if train.beta1_in_stage1 else 0.0
    return beta2 + small, small


@dataclass(frozen=True)
class Credit:
    """Per rollout, (n,) each: the factors of the log-prob and the KL of each attempt's tokens."""

    advantage1: torch.Tensor
    advantage2: torch.Tensor
    weight1: torch.Tensor  # length normalisation; a first attempt of K2 revisions is trained once, with weight K2
    weight2: torch.Tensor
    learned: tuple[list[bool], list[bool]]  # by attempt: whether its tokens have a gradient; the others need no forward
    stands_for: torch.Tensor  # importance weight of each rollout (`_drawn_for_kl`); in the weights, and in means
    leaves: int  # of the step's trees, over all processes: the divisor of all sums
    sampled_logp: torch.Tensor  # (M,) of every token: attempt 1 of all rollouts, then attempt 2
    start: torch.Tensor  # (2, n) offset in `sampled_logp` of each attempt's tokens

    def sampled(self, batch: MicroBatch) -> torch.Tensor:
        """Returns the log-probs, (N,), with which the scored tokens of a micro-batch were sampled."""
        return self.sampled_logp[self.start[batch.attempt - 1, batch.rollout] + batch.token]

    def is_learned(self, attempt: int, rollout: int) -> bool:
        """Tells whether an attempt has a gradient."""
        return self.learned[attempt - 1][rollout]


class Score(Trainer):
    """A SCoRe run: the state, and one method per step of the algorithm."""

    per_answer = 2  # both attempts

    def __init__(
        self,
        task: Task,
        *,
        start_stage: int = 1,
        adapter: Path | None = None,
        resume: bool | Path = False,
        allow_change: bool = False,
        profile: int = 0,
    ):
        config = task.config
        if adapter:
            load_adapter(task.policy.model, adapter)
        accelerator = make_accelerator()
        super().__init__(task, accelerator, resume=resume, allow_change=allow_change, profile=profile)
        self.stages = stages_of(config, len(task.train))
        self.sampler = Sampler(len(task.train), config.seed)
        self.progress.stage = next((each.number for each in self.stages if each.number >= start_stage), OVER)
        if adapter:
            self.progress.due = "after_stage1" if start_stage == 2 else "adapter"
        self.progress.beta2 = config.train.beta2
        self.progress.micro_batch_tokens = config.train.micro_batch_tokens
        for note in task.notes:
            self.screen.say(note)

    def open(self):
        """Returns a context manager that opens the run directory and installs the signal handlers."""
        return self.opened(self.task.splits.fingerprint, self.config.train.keep_checkpoints, sampler=self.sampler)

    def remaining(self) -> Iterator[Stage]:
        """Yields the stages that are left, including the current one."""
        left = [stage for stage in self.stages if stage.number >= self.progress.stage]
        if not left:
            self.screen.say("this run is finished: nothing is left to do")
        yield from left

    def sample(self, stage: Stage) -> list[Rollout]:
        """Samples this process's rollouts of the next batch of prompts: P x K1 x K2, prompt by prompt.

        With `resample_rounds`, further prompts are drawn for those whose tree has no advantage anywhere.
        """
        train = self.config.train
        self.clock.start()
        sampling = self.task.sampling(
            self.config.generation.temperature,
            train.attempts_per_prompt,
            train.revisions_per_attempt,
            train.base_first_attempts,
        )

        def grow(drawn: list[int]) -> list[list[Rollout]]:
            rows = [self.task.train[i] for i in drawn]
            about = self.policy, self.task.prompts, rows, self.task.judge, sampling, self.generator
            rollouts = two_attempts(*about)
            return [rollouts[i : i + self._leaves] for i in range(0, len(rollouts), self._leaves)]

        def tell(trees: list[list[Rollout]]) -> list[bool]:
            advantages = self._advantages(stage, [rollout for tree in trees for rollout in tree])
            return self._by_prompt(*(advantage != 0 for advantage in advantages)).tolist()

        return [rollout for tree in self.draw(stage.batch_size, grow, tell) for rollout in tree]

    def credit(self, stage: Stage, rollouts: list[Rollout]) -> Credit:
        """Computes advantages and length weights (eq. 3 in stage I, eq. 4 in stage II), and selects what is learned."""
        train, generation = self.config.train, self.config.generation
        attempts = [[r.y1 for r in rollouts], [r.y2 for r in rollouts]]
        penalties = self._kl_in_reward(stage, rollouts) if train.kl == "k1_in_reward" else None
        advantages = self._advantages(stage, rollouts, penalties)
        by_policy = self._of(float(not r.y1_by_base) for r in rollouts)  # first attempts by the base model are context
        scored1, scored2 = self._scored(stage, rollouts)
        trained = [scored1 * by_policy, scored2]
        learned = [
            (kept > 0) & ((advantage != 0) | (beta != 0))
            for kept, advantage, beta in zip(trained, advantages, self._betas_in_loss(stage), strict=True)
        ]
        counted = torch.ones(len(rollouts), dtype=torch.bool, device=self.accelerator.device)
        if train.resample_rounds:  # prompts without a signal were replaced, and are left out of means
            counted = self._by_prompt(*learned).repeat_interleave(self._leaves)
        budgets = generation.max_new_tokens_attempt1, generation.max_new_tokens_attempt2
        longest = [max(budgets)] * 2 if train.length_norm == "constant" else budgets
        weights = []
        for written, budget, kept in zip(attempts, longest, trained, strict=True):
            lengths = self._of(len(y.ids) for y in written)
            every_length = self._of(collect((lengths * kept)[counted].tolist(), self.accelerator))
            weights.append(length_weights(train.length_norm, lengths, budget, every_length) * kept)
        stands_for = self._drawn_for_kl(advantages)
        completions = [y for written in attempts for y in written]
        counts = torch.tensor([len(y.ids) for y in completions], device=self.accelerator.device)
        return Credit(
            *advantages, weights[0] * train.revisions_per_attempt * stands_for, weights[1] * stands_for,
            learned=tuple((each & (stands_for > 0)).tolist() for each in learned),
            stands_for=stands_for,
            leaves=max(1, sum(collect([int(counted.sum())], self.accelerator))),
            sampled_logp=self._of(logp for y in completions for logp in y.logps),
            start=(counts.cumsum(0) - counts).view(2, -1),
        )  # fmt: skip

    def update(self, stage: Stage, rollouts: list[Rollout], credit: Credit) -> dict:
        """Takes one optimizer step on the rollouts, and writes and returns its row of metrics.jsonl."""
        train = self.config.train
        paid = (credit.advantage2, credit.advantage1) if stage.number == 2 else (credit.advantage2,)
        idle = all(bool((advantage == 0).all()) for advantage in paid)
        idle = total(torch.tensor(float(not idle), device=self.accelerator.device), self.accelerator) == 0
        numbers = self.step(
            lambda: self._accumulate(stage, rollouts, credit, credit.leaves),
            rate=learning_rate(self.config.optimizer, self.progress.step, stage.steps),
            max_grad_norm=self.config.optimizer.max_grad_norm,
            advantage=torch.cat([credit.advantage1, credit.advantage2]),
            expects_gradient=not idle,
        )
        self.progress.step += 1
        self.note_evaluation(stage.steps)
        adaptive = train.adaptive_beta2
        if adaptive and stage.number == 1 and not self.progress.skipped and "kl_attempt1" in numbers:
            self.progress.beta2 = adapted_beta(
                self.progress.beta2, numbers["kl_attempt1"], adaptive.target, adaptive.rate, adaptive.max_error
            )
        row = self._metrics(stage, rollouts, credit) | numbers | {"idle": float(idle)}
        self._keep_texts("train", rollouts)
        completions = row["prompts"] * train.attempts_per_prompt * (1 + train.revisions_per_attempt)
        row |= self.time_of_step(completions, row["tokens"])
        self.log_step(row, lambda: self._distributions(rollouts, credit))
        self.screen.step(row, self.seconds_left())
        self.heed(self.watch.step(row))
        self.act()
        return row

    def measure(
        self, when: str, settings: Eval, rows: list[dict], on_progress: Callable[[int, int], None], **part: str
    ) -> dict:
        """Evaluates both attempts at held-out rows; with `part`, returns only what training selects by."""
        answers, texts = evaluate(
            self.policy, self.task.prompts, rows, self.task.judge,
            self.task.sampling(settings.temperature, settings.samples_per_prompt), settings.seed, self.accelerator,
            on_progress,
        )  # fmt: skip
        self._keep_texts(when, texts, temperature=settings.temperature, **part)
        return selected(answers) if part else summarise(answers, settings.temperature)

    def when_due(self, stage: Stage) -> None:
        """Evaluates and saves where due in the middle of a stage; its end has its own evaluation and checkpoint."""
        step = self.progress.step
        if step == stage.steps:
            return
        if self.progress.due:
            self.evaluate(self.progress.due)
        self.save_if_due()

    def finish(self, stage: Stage) -> None:
        """Ends a stage: evaluates, saves the adapter in `stage<N>/`, and a checkpoint from which the next starts.

        The next stage has a fresh optimizer unless the config says otherwise.
        """
        row = self.evaluate(f"after_stage{stage.number}")
        self.save_adapter(stage.number, self.task.tokenizer)
        following = next((each.number for each in self.stages if each.number > stage.number), None)
        if self.config.train.fresh_optimizer_per_stage and following:
            self.fresh_optimizer()
        self.end_stage(row, following)

    def work(self) -> Iterator[Work]:
        """Yields the completions that are left to sample."""
        return work_of_score(self.config, self.ahead(), self.held)

    def show_results(self) -> None:
        """Prints the table of this run's evaluations, its alarms and restores."""
        if self.accelerator.is_main_process:
            rows, _ = read_jsonl(self.config.run_dir / "evaluations.jsonl")
            rows = [row for row in with_best(rows, self.checkpoints.best_of) if row["when"] != "step"]
            self.screen.table(rows, f"{self.config.run_name}, held-out answers")
            self.show_alarms()
            self.say_restores()

    # -- credit, part by part

    @property
    def _leaves(self) -> int:
        """Returns the number of revisions per prompt, K1 x K2."""
        return self.config.train.attempts_per_prompt * self.config.train.revisions_per_attempt

    def _by_prompt(self, *attempts: torch.Tensor) -> torch.Tensor:
        """Reduces values by rollout, (n,) bool each, to whether any attempt at a prompt has one true, (prompts,)."""
        return torch.stack(attempts).any(0).view(-1, self._leaves).any(1)

    def _of(self, values: Iterable[float]) -> torch.Tensor:
        return torch.tensor(list(values), dtype=torch.float32, device=self.accelerator.device)

    def _betas_in_loss(self, stage: Stage) -> tuple[float, float]:
        """Returns the KL weights of both attempts in the loss, zero if the KL is in the reward."""
        in_reward = self.config.train.kl == "k1_in_reward"
        return (0.0, 0.0) if in_reward else kl_weights(self.config.train, stage.number, self.progress.beta2)

    def _scored(self, stage: Stage, rollouts: list[Rollout]) -> list[torch.Tensor]:
        """Returns 1 for each attempt that counts, (n,) both; the others are left out of the loss, including its KL."""
        train = self.config.train
        needs_both = train.alpha > 0 and stage.number == 2  # the bonus compares both attempts
        judged = [
            [r.score1.scored for r in rollouts],
            [r.score2.scored and (r.score1.scored or not needs_both) for r in rollouts],
        ]
        finished = [[r.y1.finished for r in rollouts], [r.y2.finished for r in rollouts]]
        return [
            self._of(float(known and (whole or not train.mask_truncated)) for known, whole in zip(*pair, strict=True))
            for pair in zip(judged, finished, strict=True)
        ]

    def _advantages(
        self, stage: Stage, rollouts: list[Rollout], penalties: list[torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the advantages of both attempts, (n,) each; `penalties`: the KL in their rewards, if it is there."""
        train, generation = self.config.train, self.config.generation
        tree = (-1, train.attempts_per_prompt, train.revisions_per_attempt)
        budgets = generation.max_new_tokens_attempt1, generation.max_new_tokens_attempt2
        attempts = [[(r.y1, r.score1) for r in rollouts], [(r.y2, r.score2) for r in rollouts]]
        r1, r2 = (
            self._of(score.reward + overlong_penalty(len(y.ids), budget, train.overlong_buffer) for y, score in own)
            for own, budget in zip(attempts, budgets, strict=True)
        )
        if train.bonus_on == "match":
            bonus = self._of(float(r.score2.match) - float(r.score1.match) for r in rollouts)
        else:
            bonus = r2 - r1
        penalties = penalties or [torch.zeros_like(r1)] * 2
        # of all processes: a baseline must not depend on how prompts are distributed over them
        r1, r2, bonus, penalty1, penalty2, scored1, scored2 = (
            self._of(collect(values.tolist(), self.accelerator)).reshape(tree)
            for values in (r1, r2, bonus, *penalties, *self._scored(stage, rollouts))
        )
        advantage1, advantage2 = score_advantages(
            stage.number, r1[..., 0], r2, bonus, train.alpha, train.baseline, penalty1[..., 0], penalty2,
            scored1[..., 0] > 0, scored2 > 0,
        )  # fmt: skip
        shared1 = advantage1[..., None].expand_as(advantage2)
        sizes = collect([len(rollouts)], self.accelerator)
        before = sum(sizes[: self.accelerator.process_index])
        mine = slice(before, before + len(rollouts))
        by_policy = self._of(float(not r.y1_by_base) for r in rollouts)
        return shared1.reshape(-1)[mine] * by_policy, advantage2.reshape(-1)[mine]

    def _drawn_for_kl(self, advantages: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """Draws the rollouts to train and returns their weights, (n,): 1 unless `train.kl_sample` < 1, 0 if dropped.

        A first attempt without advantage, in itself and in its revisions, has only a KL term. Such attempts are kept
        with probability `kl_sample` and weighted by its inverse (Horvitz and Thompson 1952): the expected gradient is
        unchanged.
        """
        share, revisions = self.config.train.kl_sample, self.config.train.revisions_per_attempt
        if share == 1:
            return torch.ones_like(advantages[0])
        paid = torch.stack([advantage != 0 for advantage in advantages]).any(0).view(-1, revisions).any(1)
        drawn = torch.rand(len(paid), generator=self.generator, device=paid.device) < share
        return torch.where(paid, 1.0, drawn / share).repeat_interleave(revisions)

    def _batches(
        self, rollouts: list[Rollout], is_learned: Callable[[int, int], bool] = lambda attempt, rollout: True
    ) -> Iterator[MicroBatch]:
        pad, device = self.task.tokenizer.pad_token_id, self.accelerator.device
        items = sequences(rollouts, self.policy.sharing_pays, is_learned)
        return micro_batches(items, self.progress.micro_batch_tokens, pad, device)

    def _accumulate(self, stage: Stage, rollouts: list[Rollout], credit: Credit, leaves: int) -> dict:
        """Accumulates the gradients of a step over micro-batches; sums are divided once, by the leaves of the trees.

        Returns the numbers of the step: KL, entropy and sampler gap are means over the tokens of the attempts that were
        `learned`, and missing if there are none.
        """
        betas = kl_weights(self.config.train, stage.number, self.progress.beta2)
        sums = torch.zeros(8, device=self.accelerator.device)
        for batch in self._batches(rollouts, credit.is_learned):
            sums += self._backward(batch, credit, self._betas_in_loss(stage), leaves)
        loss, learned, kl1, tokens1, kl2, tokens2, entropy, gap = total(sums, self.accelerator).tolist()
        both = tokens1 + tokens2
        means = {"kl_attempt1": (kl1, tokens1), "kl_attempt2": (kl2, tokens2), "entropy": (entropy, both),
                 "sampler_gap": (gap, both)}  # fmt: skip
        return {
            "loss": loss / leaves,
            "learned": int(learned),
            **{name: summed / tokens for name, (summed, tokens) in means.items() if tokens},
            "beta_attempt1": betas[0],
            "beta_attempt2": betas[1],
        }

    def _backward(self, batch: MicroBatch, credit: Credit, betas: tuple[float, float], leaves: int) -> torch.Tensor:
        """Adds a micro-batch's gradients and returns sums, (8,).

        They are: loss, attempts, KL and tokens of attempt 1, KL and tokens of attempt 2, entropy, and the gap between
        the log-probs and those of the sampler.
        """
        kind = self.config.train.kl
        with phase("reference"):
            ref_logp, ref_hidden = self.policy.reference(batch.inputs)
        # gradients are summed over processes once, after the last micro-batch: their numbers of batches may differ
        with phase("forward_backward"), self.accelerator.no_sync(self.wrapped):
            logp, entropy, exact = self.wrapped(batch.inputs, ref_hidden if kind == "exact" else None)
            kl = kl_per_token(kind, logp, ref_logp, exact)
            first = batch.attempt == 1
            advantage = torch.where(first, credit.advantage1[batch.rollout], credit.advantage2[batch.rollout])
            weight = torch.where(first, credit.weight1[batch.rollout], credit.weight2[batch.rollout])
            loss = score_loss(logp, kl, batch.attempt, advantage, weight, betas)
            self.accelerator.backward(loss / leaves)
        with torch.no_grad():
            tokens = credit.stands_for[batch.rollout]
            shown = (kl_per_token("k3", logp, ref_logp) if kind != "exact" else kl) * tokens
            gap = (logp - credit.sampled(batch)).abs() * tokens
            return torch.stack(
                [
                    loss, (batch.token == 0).sum(), shown[first].sum(), tokens[first].sum(),
                    shown[~first].sum(), tokens[~first].sum(), (entropy * tokens).sum(), gap.sum(),
                ]
            ).detach()  # fmt: skip

    @torch.no_grad()
    def _kl_in_reward(self, stage: Stage, rollouts: list[Rollout]) -> list[torch.Tensor]:
        """Returns beta * sum of k1 over each attempt's tokens, (n,) each, in nats (Ahmadian et al. 2024, 2402.14740).

        A sum, not a mean: the loss applies the length weight once, as it does to a KL term of its own.
        """
        betas = kl_weights(self.config.train, stage.number, self.progress.beta2)
        sums = [torch.zeros(len(rollouts), device=self.accelerator.device) for _ in range(2)]
        for batch in self._batches(rollouts):
            with phase("reference"):
                ref_logp, _ = self.policy.reference(batch.inputs)
            with phase("forward_backward"):
                logp = self.policy(batch.inputs)[0]
            k1 = kl_per_token("k1_in_reward", logp, ref_logp)
            for attempt in (1, 2):
                chosen = batch.attempt == attempt
                sums[attempt - 1].index_add_(0, batch.rollout[chosen], k1[chosen])
        return [beta * summed for beta, summed in zip(betas, sums, strict=True)]

    @property
    def global_step(self) -> int:
        """Returns the optimizer steps done over both stages."""
        return sum(each.steps for each in self.stages if each.number < self.progress.stage) + self.progress.step

    def _metrics(self, stage: Stage, rollouts: list[Rollout], credit: Credit) -> dict:
        """Returns the metrics of a step's rollouts, averaged over all processes."""
        numbers = [
            {
                "reward_attempt1": r.score1.reward if r.score1.scored else None,
                "reward_attempt2": r.score2.reward if r.score2.scored else None,
                "acc_attempt1": float(r.score1.match) if r.score1.scored else None,
                "acc_attempt2": float(r.score2.match) if r.score2.scored else None,
                "length_attempt1": float(len(r.y1.ids)),
                "length_attempt2": float(len(r.y2.ids)),
                "truncated_attempt1": float(not r.y1.finished),
                "truncated_attempt2": float(not r.y2.finished),
                "well_formed_attempt1": float(r.score1.well_formed),
                "well_formed_attempt2": float(r.score2.well_formed),
                "context_cut": float(r.prompt2.cut),
                "answer_changed": float(r.score1.answer != r.score2.answer),
                "zero_advantage": float(credit.advantage2[i] == 0),
                "unscored": 0.5 * ((not r.score1.scored) + (not r.score2.scored)),
                **_forms(self.config.reward.format, r),
                **{f"reward/{name}_attempt1": value for name, value in r.score1.components.items()},
                **{f"reward/{name}_attempt2": value for name, value in r.score2.components.items()},
            }
            for i, r in enumerate(rollouts)
        ]
        everything = collect(numbers, self.accelerator)
        names = sorted({name for each in everything for name in each})
        means = {name: _mean(name, everything) for name in names}
        tokens = sum(each["length_attempt1"] / self.config.train.revisions_per_attempt + each["length_attempt2"]
                     for each in everything)  # fmt: skip
        return {
            "stage": stage.number,
            "step": self.progress.step,
            "steps": stage.steps,
            "global_step": self.global_step,
            "prompts": len(everything) // self._leaves,
            **means,
            "gap": means["acc_attempt2"] - means["acc_attempt1"],
            "truncated": 0.5 * (means["truncated_attempt1"] + means["truncated_attempt2"]),
            "tokens": int(tokens),
            "epoch": self.sampler.epochs,
        }

    def _distributions(self, rollouts: list[Rollout], credit: Credit) -> dict[str, list[float]]:
        """Returns lists of values by rollout, for histograms."""
        values = {"advantage_attempt1": credit.advantage1.tolist(), "advantage_attempt2": credit.advantage2.tolist()}
        for attempt, own in ((1, [(r.y1, r.score1) for r in rollouts]), (2, [(r.y2, r.score2) for r in rollouts])):
            values[f"rewards_attempt{attempt}"] = [score.reward for _, score in own if score.scored]
            values[f"lengths_attempt{attempt}"] = [float(len(y.ids)) for y, _ in own]
        return values

    def _keep_texts(self, when: str, rollouts: list[Rollout], **how: float | str) -> None:
        """Logs every text of the policy, and the prompts that no attempt solved."""
        where = {"when": when, "stage": self.progress.stage, "step": self.progress.step, **how}
        unsolved: dict[int, bool] = {}
        rows = []
        for r in rollouts:
            target = r.row[self.config.dataset.target_field]
            solved = r.score1.match or r.score2.match
            unsolved[id(r.row)] = unsolved.get(id(r.row), True) and not solved
            rows.append(
                where
                | {
                    "prompt": self.task.prompts.question(r.row), "target": target,
                    "attempt1": r.text1, "attempt2": r.text2,
                    "match1": r.score1.match, "match2": r.score2.match,
                    "reward1": r.score1.components, "reward2": r.score2.components,
                    **{f"about{i}": s.about for i, s in ((1, r.score1), (2, r.score2)) if s.about},
                    **{f"malformed{i}": s.malformed for i, s in ((1, r.score1), (2, r.score2)) if s.malformed},
                    "length1": len(r.y1.ids), "length2": len(r.y2.ids),
                    "finished1": r.y1.finished, "finished2": r.y2.finished,
                }
            )  # fmt: skip
        self.keep_texts(rows)
        failed = list({id(r.row): r for r in rollouts if unsolved[id(r.row)]}.values())
        told = self.task.judge.explain([r.text2 for r in failed], [r.row for r in failed])
        failures = [{"row": r.row, **({"failed": each} if each else {})} for r, each in zip(failed, told, strict=True)]
        for row in collect(failures, self.accelerator):
            self.log.write("failures", where | {"why": "solved by nobody", **row})


def _forms(format: str, rollout: Rollout) -> dict[str, float | None]:
    attempts = ((1, rollout.text1, rollout.score1), (2, rollout.text2, rollout.score2))
    return {
        f"{key}_attempt{number}": value
        for number, text, score in attempts
        for key, value in form_of(format, text, score.well_formed, score.match).items()
    }


def _mean(name: str, rows: list[dict[str, float | None]]) -> float:
    """Returns the mean over judged attempts; a reward component that a row lacks counts as 0."""
    values = [value for row in rows if (value := row.get(name, 0.0)) is not None]
    return sum(values) / max(1, len(values))

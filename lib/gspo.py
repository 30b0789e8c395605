"""The steps of GSPO self-play: groups are answered and played, helped, credited, and learned from.

GSPO: Zheng et al., arXiv 2507.18071. What each other loss is, stands in lib/losses.py; what an opponent is good for, in
lib/selfplay.py.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from lib.adapters import load_adapter
from lib.clock import phase
from lib.config import Eval, Opponent, SamplerCorrection
from lib.config import Teacher as TeacherSettings
from lib.console import with_best
from lib.credit import Credit, advantages_of, flat, is_trained, numbered, rewards_of, trained_rewards
from lib.distributed import collect, highest, make_accelerator, total
from lib.evaluation import evaluate_groups, in_parts, selected_groups
from lib.groups import Asked, Group, Limits, answer_all, answer_sequences, question_of
from lib.ledger import group_numbers, means_of, numbers_of, reaction_text, texts_of, updates_in_one
from lib.losses import kl_per_token, length_weights, per_answer, policy_loss, sampler_weights
from lib.plan import Work, stage_of, work_of_selfplay
from lib.recipe import notes_on, recipe_of
from lib.remote import Remote, remote_of, spent
from lib.reply_cache import key_of
from lib.rollout import MicroBatch, Sequence, micro_batches
from lib.runlog import STREAMS, read_jsonl
from lib.sampler import Sampler
from lib.scoreboard import FRONTIER, Frontier, Scoreboard
from lib.selfplay import EVALUATION, CurriculumSampler, Past, Played, Server, describe, play
from lib.task import ChatTask
from lib.teacher import Teacher
from lib.trainer import Trainer, learning_rate
from lib.watch import form_of

FILES = (*STREAMS, "sft", *(f"frontier/{outcome}" for outcome in FRONTIER))
PROMPT_KEY = 12  # characters of the key that identifies a prompt in the scoreboard
SUMS = ("loss", "kl", "entropy", "clipped_low", "clipped_high", "sampler_gap", "sampled", "tokens")  # of a micro-batch


class GspoRun(Trainer):
    """A run of self-play: the state, and one method per step of the algorithm."""

    per_answer = 1

    def __init__(
        self,
        task: ChatTask,
        *,
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
        self.stages = [stage_of(config, len(task.train))]
        self.steps = self.stages[0].steps
        self.recipe = recipe_of(config)
        self.scoreboard, self.frontier = Scoreboard(), Frontier()
        size, opponent = len(task.train), config.opponent
        self.sampler: Sampler | CurriculumSampler = Sampler(size, config.seed)
        if opponent and opponent.use == "curriculum":
            self.sampler = CurriculumSampler(size, config.seed, opponent.curriculum)
        self.opponent: Server | Past | None = None
        if opponent and opponent.snapshots:
            limits = task.limits(opponent.temperature, opponent.max_new_tokens)
            self.opponent = Past(config, self.policy, task.prompts, limits, self.task.judge)
        self.teacher: Teacher | None = None
        self.progress.micro_batch_tokens = config.train.micro_batch_tokens
        if adapter:
            self.progress.due = "adapter"
        for note in [*task.notes, *notes_on(config)]:
            self.screen.say(note)

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Opens the run directory, with signal handlers, and the servers, until the context ends."""
        config = self.config
        moving = {"scoreboard": self.scoreboard, "frontier": self.frontier, "sampler": self.sampler}
        if isinstance(self.opponent, Past):
            moving["opponent"] = self.opponent
        with contextlib.ExitStack() as stack:
            fingerprint, keep = self.task.splits.fingerprint, config.train.keep_checkpoints
            stack.enter_context(self.opened(fingerprint, keep, FILES, **moving))
            if config.opponent and config.opponent.endpoint:
                remote = stack.enter_context(self._remote("opponent", config.opponent))
                self.opponent = Server(config, remote, self.task.judge)
            if config.teacher:
                remote = stack.enter_context(self._remote("teacher", config.teacher))
                self.teacher = Teacher(config, remote, self.task.judge, self.task.prompts)
            if config.opponent:
                self.screen.say(describe(config.opponent))
            yield

    @property
    def global_step(self) -> int:
        """Returns the steps done."""
        return self.progress.step

    def unfinished(self) -> bool:
        """Tells whether there are steps left."""
        return self.progress.stage == 1 and self.progress.step < self.steps

    def play(self) -> list[Played]:
        """Plays the next prompts: a group of the policy's answers to each and one of the opponent's, judged and logged.

        With `resample_rounds`, further prompts are drawn for those whose answers all earn the same.
        """
        train = self.config.train
        self.clock.start()
        limits = self.task.limits(self.config.generation.temperature)

        def play(drawn: list[int]) -> list[Played]:
            asked = [self.task.asked(i, self.task.train[i]) for i in drawn]
            return self._games(asked, train.group_size, limits, self.generator, self.progress.step, self.opponent)

        def tell(played: list[Played]) -> list[bool]:
            return [len(set(trained_rewards(each, self.config))) > 1 for each in played]

        played = self.draw(train.batch_size, play, tell)
        self._book(played)
        return played

    def assist(self, played: list[Played]) -> list[Group]:
        """Samples the policy's retries under a teacher's hints where it failed; returns the groups to be trained.

        Retries have a baseline of their own, and their rewards are credited to no other tokens.
        """
        if self.teacher is None:
            return []
        settings, generation = self.config.teacher.hint, self.config.generation
        found = self.teacher.help([each for each in played if each.outcome], self.progress.step)
        retries = answer_all(
            self.policy, self.task.prompts, found.hinted, settings.retries or self.config.train.group_size,
            self.task.judge, self.task.limits(generation.temperature), self.generator,
        )  # fmt: skip
        self.teacher.keep(retries, found)
        for counts in collect([dict(found.counts)], self.accelerator):
            self.scoreboard.assist(counts)
        for row in collect(found.rows, self.accelerator):
            self.log.write("sft", row)
        self._log_texts("train", found.texts + [text for group in retries for text in texts_of(group)])
        self._log_failures([("teacher", *failure) for failure in found.failures])
        return [] if settings.train == "collect" else retries

    def credit(self, played: list[Played], retries: list[Group]) -> Credit:
        """Computes advantages within groups, and selects the answers to train in each optimizer step."""
        config, train, device = self.config, self.config.train, self.accelerator.device
        groups = [each.group for each in played] + retries
        completions = [answer.completion for group in groups for answer in group.answers]
        lengths = torch.tensor([float(len(completion.ids)) for completion in completions])

        def weights(among: list[Group]) -> torch.Tensor:
            every_length = [
                float(len(answer.completion.ids)) * is_trained(answer, train)
                for group in among
                for answer in group.answers
            ]
            every_length = torch.tensor(collect(every_length, self.accelerator))
            return length_weights(self.recipe.length_norm, lengths, config.generation.most_tokens, every_length)

        rewards = [rewards_of(each, config) for each in [*played, *(Played(group) for group in retries)]]
        penalties = self._kl_in_reward(groups) if train.kl == "k1_in_reward" and train.beta else None
        trained = [[is_trained(answer, train) for answer in group.answers] for group in groups]
        advantages = advantages_of(self.recipe.advantage, rewards, trained, self.accelerator, penalties)
        learned = [  # the answers that have a gradient; the others need no forward
            [is_on and (advantage != 0 or self._kl_in_loss) for is_on, advantage in zip(*pair, strict=True)]
            for pair in zip(trained, advantages, strict=True)
        ]
        used = [i for i, own in enumerate(learned) if any(own)]
        counted = [groups[i] for i in (used if train.resample_rounds else range(len(groups)))]
        answers = sum(collect([len(group.answers) for group in counted], self.accelerator))
        off_policy = [group.asked.trained_ids is not None for group in groups for _ in group.answers]
        return Credit(
            groups,
            numbers=numbered(learned),
            advantage=torch.tensor(flat(advantages), dtype=torch.float32, device=device),
            weight=weights(counted).to(device),
            off_policy=torch.tensor(off_policy, dtype=torch.bool, device=device),
            start=(lengths.cumsum(0) - lengths).long().to(device),
            sampled_logp=torch.tensor(flat([c.logps for c in completions]), dtype=torch.float32, device=device),
            parts=[used[i :: train.minibatches] for i in range(train.minibatches)],  # a stride, as retries stand last
            divisor=max(1, answers) / train.minibatches,
        )

    def update(self, played: list[Played], credit: Credit) -> dict:
        """Takes the optimizer steps on a step's answers, and writes and returns their row of metrics.jsonl."""
        train = self.config.train
        old_logp = self._old_logp(credit)
        updates: list[dict] = []
        for number in range(train.passes * train.minibatches):
            part = credit.parts[number % train.minibatches]
            if not self._anywhere(part):
                continue  # rewards are equal in each of its groups: no gradient, and no step by momentum alone
            is_first = not updates  # in later ones the clip may stop every token, so a zero gradient is no error
            numbers = self.step(
                lambda part=part, is_first=is_first: self._accumulate(credit, part, old_logp, is_first),
                rate=learning_rate(self.config.optimizer, self.progress.step, self.steps),
                max_grad_norm=self.config.optimizer.max_grad_norm,
                advantage=credit.advantage,
                expects_gradient=self._anywhere(is_first and credit.must_pull(part)),
            )
            updates.append(numbers)
        self.progress.step += 1
        self.note_evaluation(self.steps)
        idle = not self._anywhere(bool((credit.advantage != 0).any()))
        row = self._metrics(played, credit) | updates_in_one(updates) | {"idle": float(idle)}
        row |= self.time_of_step(row["prompts"] * train.group_size, row["tokens"])
        self.log_step(row, lambda: self._distributions(played, credit))
        self._write_scoreboard()
        self.screen.single_step(row, self.seconds_left())
        self.heed(self.watch.step(row))
        return row

    def refresh(self, played: list[Played]) -> None:
        """Updates the curriculum with the outcomes, adds a snapshot to the opponent's pool if due, and calls `act`."""
        if isinstance(self.sampler, CurriculumSampler):
            outcomes = [(each.group.asked.number, each.pass_rate, each.reaction.is_right) for each in played]
            for outcome in collect(outcomes, self.accelerator):
                self.sampler.note(*outcome)
        if self.opponent:
            self.opponent.refresh(self.progress.step)
        self.act()  # now that all of the step has been done

    def measure(
        self, when: str, settings: Eval, rows: list[dict], on_progress: Callable[[int, int], None], **part: str
    ) -> dict:
        """Evaluates answers to held-out rows, and games; with `part`, returns what training selects by, no games."""
        limits, opponent = self.task.limits(settings.temperature), None if part else self.opponent

        samples = settings.samples_per_prompt

        def play(
            rows: list[tuple[int, dict]], generator: torch.Generator, on_written: Callable[[], None]
        ) -> list[Played]:
            asked = [self.task.asked(*each) for each in rows]
            return self._games(asked, samples, limits, generator, EVALUATION, opponent, on_written)

        device = self.policy.device
        played = in_parts(play, list(enumerate(rows)), settings.seed, device, self.accelerator, samples, on_progress)
        self._log_texts(when, self._texts(played, opponent), temperature=settings.temperature, **part)
        answers = [[numbers_of(answer) for answer in each.group.answers] for each in played]
        questions = [key_of(each.group.asked.messages) for each in played]
        if part:
            return selected_groups(questions, answers, settings, self.accelerator)
        games = [each.game for each in played if opponent]
        return evaluate_groups(questions, answers, games, settings, self.accelerator)

    def when_due(self) -> None:
        """Evaluates and saves where due during training; its end has its own evaluation and checkpoint."""
        step = self.progress.step
        if step == self.steps:
            return
        if self.progress.due:
            self.evaluate(self.progress.due)
        self.save_if_due()

    def finish(self) -> None:
        """Ends the run: evaluates, saves the adapter in `stage1/`, and the last checkpoint."""
        if self.progress.stage > 1:
            self.screen.say("this run is finished: nothing is left to do")
            if self.progress.step < self.steps:
                self.screen.warn("a finished run is not made longer: start another one with --resume-adapter")
            return
        row = self.evaluate("after_training")
        self.save_adapter(1, self.task.tokenizer)
        self.end_stage(row)

    def work(self) -> Iterator[Work]:
        """Yields the completions that are left to sample."""
        return work_of_selfplay(self.config, self.ahead(), self.held, len(self.task.train))

    def show_results(self) -> None:
        """Prints evaluations, alarms and restores, the scoreboard, and the costs of opponent and teacher."""
        self._write_scoreboard()
        if not self.accelerator.is_main_process:
            return
        config, opponent, teacher = self.config, self.config.opponent, self.config.teacher
        rows, _ = read_jsonl(config.run_dir / "evaluations.jsonl")
        self.screen.single_table(with_best(rows, self.checkpoints.best_of), f"{config.run_name}, held-out answers")
        self.show_alarms()
        self.say_restores()
        for line in self.scoreboard.lines() if self.opponent or self.teacher else ():
            self.screen.say(line)
        for section, settings in (("opponent", opponent), ("teacher", teacher)):
            if settings and settings.endpoint:
                files = config.run_dir.glob(f"{section}_replies*.jsonl")
                self.screen.say(f"{section}: {spent(files, settings.endpoint)}")

    # -- asking and answering

    def _remote(self, section: str, settings: Opponent | TeacherSettings) -> Remote:
        rank = self.accelerator.process_index
        kept = self.config.run_dir / f"{section}_replies{f'_{rank}' if rank else ''}.jsonl"
        return remote_of(section, settings, kept, self.screen.warn)

    def _games(
        self, asked: list[Asked], copies: int, limits: Limits, generator: torch.Generator, step: int,
        opponent: Server | Past | None, on_written: Callable[[], None] = lambda: None,
    ) -> list[Played]:  # fmt: skip
        """Samples and judges the policy's answers, and the opponent's."""
        policy, prompts = self.policy, self.task.prompts
        return play(policy, prompts, asked, copies, self.task.judge, limits, generator, opponent, step, on_written)

    # -- books

    def _book(self, played: list[Played]) -> None:
        """Records a step in the scoreboard and the frontier files, and logs its texts and failures."""
        if self.opponent:
            games = [(key_of(each.group.asked.messages)[:PROMPT_KEY], *each.game) for each in played]
            chosen = isinstance(self.sampler, CurriculumSampler)
            self.scoreboard.record(collect(games, self.accelerator), self.progress.step + 1, chosen)
            self._log_failures(
                [("opponent", each.reaction.error, each.group.asked) for each in played if not each.reaction.score]
            )
        known = [each for each in played if each.reaction.score or not self.opponent]
        rows = [(each.outcome, each.group.asked.row) for each in known if each.outcome]
        for outcome, row in collect(rows, self.accelerator):
            if self.frontier.is_new(key_of(outcome, row)):
                self.log.write(f"frontier/{outcome}", row)
        self._log_texts("train", self._texts(played, self.opponent))
        self._log_unsolved([each.group for each in played if each.outcome])

    def _texts(self, played: list[Played], opponent: Server | Past | None) -> list[dict[str, Any]]:
        rows = [row for each in played for row in texts_of(each.group)]
        return rows + [reaction_text(each) for each in played if opponent]

    def _log_texts(self, when: str, texts: list[dict[str, Any]], **how: float | str) -> None:
        where = {"when": when, "stage": 1, "step": self.progress.step + (when == "train"), **how}
        self.keep_texts([where | row for row in texts])

    def _log_unsolved(self, groups: list[Group]) -> None:
        """Logs the reward's explanation for the first answer to each prompt that the policy did not solve."""
        texts, rows = [group.answers[0].text for group in groups], [group.asked.row for group in groups]
        told = zip(groups, self.task.judge.explain(texts, rows), strict=True)
        failures = [{"prompt": question_of(group.asked.messages), "failed": each} for group, each in told if each]
        for row in collect(failures, self.accelerator):
            self.log.write("failures", {"step": self.progress.step + 1, "why": "solved by nobody", **row})

    def _log_failures(self, failures: list[tuple[str, str, Asked]]) -> None:
        rows = [{"why": f"{who}: {error}", "prompt": question_of(asked.messages)} for who, error, asked in failures]
        for row in collect(rows, self.accelerator):
            self.log.write("failures", {"step": self.progress.step + 1, **row})

    def _distributions(self, played: list[Played], credit: Credit) -> dict[str, list[float]]:
        """Returns lists of values by answer, for histograms."""
        answers = [answer for each in played for answer in each.group.answers]
        return {
            "rewards": [answer.score.reward for answer in answers if answer.score.scored],
            "lengths": [float(len(answer.completion.ids)) for answer in answers],
            "advantages": credit.advantage.tolist(),
        }

    def _write_scoreboard(self) -> None:
        if (self.opponent or self.teacher) and self.accelerator.is_main_process:
            self.scoreboard.write(self.config.run_dir)

    # -- learning

    @property
    def _kl_in_loss(self) -> bool:
        return self.config.train.beta > 0 and self.config.train.kl != "k1_in_reward"

    def _batches(self, credit: Credit, part: list[int]) -> Iterator[MicroBatch]:
        return self._packed(credit.sequences(part, self.policy.sharing_pays))

    def _packed(self, items: list[Sequence]) -> Iterator[MicroBatch]:
        pad, device = self.task.tokenizer.pad_token_id, self.accelerator.device
        return micro_batches(items, self.progress.micro_batch_tokens, pad, device)

    @torch.no_grad()
    def _old_logp(self, credit: Credit) -> torch.Tensor:
        """Scores all answers' tokens before the first optimizer step, in the micro-batches that training uses.

        The first minibatch stays NaN: `_backward` fills it in, since no weight has changed until then.
        """
        old = torch.full_like(credit.sampled_logp, math.nan)
        first = next((i for i, part in enumerate(credit.parts) if self._anywhere(part)), None)
        for number, part in enumerate(credit.parts):
            if number != first:
                for batch in self._batches(credit, part):
                    with phase("reference"):
                        old[credit.tokens_of(batch)] = self.policy(batch.inputs)[0]
        return old

    def _accumulate(self, credit: Credit, part: list[int], old_logp: torch.Tensor, is_first: bool) -> dict:
        """Accumulates the gradients of an optimizer step over micro-batches; sums are divided once, by its answers."""
        sums = torch.zeros(len(SUMS), device=self.accelerator.device)
        ratios: list[float] = []
        for batch in self._batches(credit, part):
            added, own = self._backward(batch, credit, old_logp, is_first)
            sums += added
            ratios += own
        summed = dict(zip(SUMS, total(sums, self.accelerator).tolist(), strict=True))
        tokens = max(summed["tokens"], 1)
        return {
            "loss": summed["loss"] / credit.divisor,
            "kl": summed["kl"] / tokens,
            "entropy": summed["entropy"] / tokens,
            "clipped_low": summed["clipped_low"] / tokens,
            "clipped_high": summed["clipped_high"] / tokens,
            "sampler_gap": summed["sampler_gap"] / max(summed["sampled"], 1),
            "log_ratios": collect(ratios, self.accelerator),
        }

    def _backward(
        self, batch: MicroBatch, credit: Credit, old_logp: torch.Tensor, is_first: bool
    ) -> tuple[torch.Tensor, list[float]]:
        """Adds a micro-batch's gradients; returns its `SUMS`, and the mean log ratio of each of its answers."""
        train, places, answer = self.config.train, credit.tokens_of(batch), batch.rollout
        ref_logp = ref_hidden = None
        if self._kl_in_loss:
            with phase("reference"):
                ref_logp, ref_hidden = self.policy.reference(batch.inputs)
        # gradients are summed over processes once, after the last micro-batch: their numbers of batches may differ
        with phase("forward_backward"), self.accelerator.no_sync(self.wrapped):
            logp, entropy, exact = self.wrapped(batch.inputs, ref_hidden if train.kl == "exact" else None)
            if is_first:
                old_logp[places] = logp.detach()
            old, advantage = old_logp[places], credit.advantage[answer]
            weight = credit.weight[answer]
            sampled, off_policy = credit.sampled_logp[places], credit.off_policy[answer]
            loss, stopped = policy_loss(
                self.recipe, logp, old, advantage, weight * self._sampler_weights(old, sampled, off_policy, answer),
                answer,
            )  # fmt: skip
            if ref_logp is not None:
                kl = kl_per_token(train.kl, logp, ref_logp, exact, old)
                loss = loss + train.beta * (weight * kl).sum()
            self.accelerator.backward(loss / credit.divisor)
        with torch.no_grad():
            shown = torch.zeros_like(logp) if ref_logp is None else kl_per_token("k3", logp, ref_logp, old_logp=old)
            ours = ~off_policy
            _, index = answer.unique(return_inverse=True)
            ratios = per_answer(logp - old, index) / index.bincount()
            above = (advantage > 0) | (self.recipe.ratio == "weight")  # a weight counts as clipped only from above
            return torch.stack(
                [
                    loss, shown.sum(), entropy.sum(), (stopped & ~above).sum(),
                    (stopped & above).sum(), (old - sampled).abs()[ours].sum(), ours.sum(),
                    torch.tensor(len(logp), device=logp.device),
                ]
            ).detach(), ratios.tolist()  # fmt: skip

    def _sampler_weights(
        self, old: torch.Tensor, sampled: torch.Tensor, off_policy: torch.Tensor, answer: torch.Tensor
    ) -> torch.Tensor | float:
        """Returns importance weights of tokens sampled by another engine or under another prompt; 1 for the rest."""
        correction = self.config.train.sampler_correction
        if correction is None and not off_policy.any():
            return 1.0
        settings = correction or SamplerCorrection()
        weights = sampler_weights(settings.level, settings.beyond, settings.cap, old, sampled, answer)
        return weights if correction else torch.where(off_policy, weights, 1.0)

    @torch.no_grad()
    def _kl_in_reward(self, groups: list[Group]) -> list[list[float]]:
        """Returns beta * sum of k1 over each answer's tokens, in nats, by group (Ahmadian et al. 2024, 2402.14740)."""
        numbers = numbered([[True] * len(group.answers) for group in groups])
        sums = torch.zeros(sum(map(len, numbers)), device=self.accelerator.device)
        for batch in self._packed(answer_sequences(groups, numbers, self.policy.sharing_pays)):
            with phase("reference"):
                ref_logp, _ = self.policy.reference(batch.inputs)
                logp = self.policy(batch.inputs)[0]
            sums.index_add_(0, batch.rollout, kl_per_token("k1_in_reward", logp, ref_logp))
        penalties = iter((self.config.train.beta * sums).tolist())
        return [[next(penalties) for _ in group.answers] for group in groups]

    def _anywhere(self, value: Any) -> bool:
        """Tells whether a value is true, or not empty, on any process."""
        return highest(int(bool(value)), self.accelerator) > 0

    # -- numbers

    def _metrics(self, played: list[Played], credit: Credit) -> dict:
        """Returns the metrics of a step's answers, over all processes, without retries."""
        thinking, tokenizer = self.config.generation.thinking, self.task.tokenizer
        format = self.config.reward.format
        answers = [
            numbers_of(answer, thinking, tokenizer)
            | form_of(format, answer.text, answer.score.well_formed, answer.score.match)
            for each in played
            for answer in each.group.answers
        ]
        answers = collect(answers, self.accelerator)
        groups = collect([group_numbers(each, trained_rewards(each, self.config)) for each in played], self.accelerator)
        return {
            "stage": 1,
            "step": self.progress.step,
            "steps": self.steps,
            "global_step": self.progress.step,
            **means_of(answers),
            **means_of(groups),
            "prompts": len(groups),
            "tokens": int(sum(each["length"] for each in answers)),
            "learned": sum(collect([number >= 0 for number in flat(credit.numbers)], self.accelerator)),
            "epoch": self.sampler.epochs,
            "total/missing_games": self.scoreboard.missing_games,
            **{f"total/{name}": count for name, count in sorted(self.scoreboard.assisted.items())},
        }

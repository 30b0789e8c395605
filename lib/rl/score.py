"""The steps of SCoRe (Kumar et al., arXiv 2409.12917): sample a tree of attempts, give credit, update, evaluate."""

import contextlib
from collections.abc import Callable
from functools import partial
from statistics import fmean, pstdev
from typing import Any

from lib.core.clock import phase
from lib.core.config import Eval, ScoreConfig, ScoreTrain
from lib.rl.credit import Credit, advantages_of, compared, credit_of, is_whole
from lib.rl.curriculum import Curriculum, outcomes_of
from lib.rl.evaluation import evaluate, selected, summarise
from lib.rl.ledger import means_of, numbers_of, rows_of, updates_in_one
from lib.rl.losses import RECIPES, adapted_beta, overlong_penalty
from lib.rl.plan import Stage, stages_of, work_of_score
from lib.rl.prompts import Choice
from lib.rl.session import OVER, Session
from lib.rl.step import learning_rate
from lib.rl.task import Task
from lib.rl.tree import Group, Node, nodes, paths, sample
from lib.rl.update import Numbers, Objective, kl_in_reward, loss_of
from lib.rl.watch import form_of
from lib.run.distributed import anywhere, collect
from lib.run.sampler import draw


def kl_weights(train: ScoreTrain, stage: int, beta2: float) -> tuple[float, ...]:
    """Returns the KL weights by attempt; in stage I the paper's beta2 is added to its small beta1 in attempt 1."""
    small = train.beta1 if stage == 2 or train.beta1_in_stage1 else 0.0
    return (small + (beta2 if stage == 1 else 0.0), *[small] * train.corrections)


def paid(node: Node, rewards: list[float], stage: int, train: ScoreTrain) -> list[float]:
    """Returns what the answers of a group earn (SCoRe, arXiv 2409.12917, eq. 3 and 4); `rewards` are by number.

    Stage I rewards attempt 2 alone. Stage II rewards both, each by its own reward (gamma = 0), and credits the bonus,
    alpha times what attempt 2 has gained, to attempt 2 only: credited to attempt 1 it would reward failing first. The
    baseline of attempt 2 is over other revisions of the same attempt 1, which removes r1 from the bonus exactly. A
    further attempt is to the one before it as attempt 2 is to attempt 1.
    """
    own = [rewards[number] for number in node.numbers]
    if node.before is None:
        return own if stage == 2 else [0.0] * len(own)
    if stage == 1:
        return own
    if train.bonus_on == "match":
        gained = [float(answer.verdict.match) - float(node.before.verdict.match) for answer in node.group.answers]
    else:
        gained = [reward - rewards[node.parent] for reward in own]
    return [reward + train.alpha * gain for reward, gain in zip(own, gained, strict=True)]


class ScoreRun:
    """A SCoRe run: the state, and one method per step of the algorithm."""

    def __init__(self, task: Task[ScoreConfig], *, start_stage: int = 1, **options: Any):
        """Starts a run; `options` are those of a session, such as `resume`."""
        self.task, self.config, self.policy = task, task.config, task.policy
        config, train = task.config, task.config.train
        self.stages = stages_of(config, len(task.train))
        self.session = session = Session(task, self.stages, self.measure, **options)
        self.accelerator, self.progress, self.step = session.accelerator, session.progress, session.step
        self.curriculum = Curriculum(config.curriculum, task.train, config.seed)
        self._sampled_at = self.policy.temperature
        self.objective = Objective(RECIPES["score"], train.kl, attempts=len(config.budgets))
        self.progress.stage = next((each.number for each in self.stages if each.number >= start_stage), OVER)
        if start_stage == 2 and self.progress.due == "adapter":
            self.progress.due = "after_stage1"
        self.progress.beta2 = train.beta2

    def open(self) -> contextlib.AbstractContextManager[Session]:
        """Opens the run directory, with signal handlers, until the context ends."""
        return self.session.open(partial(work_of_score, self.config), sampler=self.curriculum)

    def sample(self, stage: Stage) -> list[Group]:
        """Samples this process's trees of the next batch of prompts: K1 first attempts, K2 revisions of each.

        With `resample_rounds`, further prompts are drawn for those whose tree has no advantage anywhere.
        """
        train, task = self.config.train, self.task
        self.session.clock.start()
        self._sampled_at = self.policy.temperature
        sampling = task.sampling(
            self.policy.temperature, train.attempts_per_prompt, train.revisions_per_attempt,
            by_base=train.base_first_attempts,
        )  # fmt: skip

        def grow(drawn: list[Choice]) -> list[Group]:
            prompts = [task.drawn(choice) for choice in drawn]
            return sample(self.policy, task.prompts, prompts, task.judge, sampling, self.session.generator)

        def tell(trees: list[Group]) -> list[bool]:
            found, tells = nodes(trees), [False] * len(trees)
            advantage = self._advantages(stage, found)[0]
            for node in found:
                tells[node.tree] |= any(advantage[number] for number in node.numbers)
            return tells

        take = partial(self.curriculum.take, step=self.session.global_step)
        return draw(take, stage.batch_size, train.resample_rounds, self.accelerator, grow, tell)

    def credit(self, stage: Stage, trees: list[Group]) -> Credit:
        """Computes advantages and length weights (eq. 3 in stage I, eq. 4 in stage II), and selects what is learned."""
        train, found = self.config.train, nodes(trees)
        in_reward = train.kl == "k1_in_reward"
        betas = self._kl_weights(stage)
        penalties = kl_in_reward(self.policy, found, betas, self.step.batches) if in_reward else None
        advantage, counts = self._advantages(stage, found, penalties)
        budgets = self.config.budgets
        return credit_of(
            found, advantage, counts, (0.0,) * len(betas) if in_reward else betas,
            length_norm=train.length_norm,
            budgets=(max(budgets),) * len(budgets) if train.length_norm == "constant" else budgets,
            accelerator=self.accelerator, generator=self.session.generator, kl_sample=train.kl_sample,
            others_drawn=train.resample_rounds > 0,
        )  # fmt: skip

    def update(self, stage: Stage, trees: list[Group], credit: Credit) -> dict:
        """Takes one optimizer step on the trees, and writes and returns its row of metrics.jsonl."""
        train = self.config.train
        rate = learning_rate(self.config.optimizer, self.progress.step, stage.steps)
        updates = []
        for part in credit.parts:
            if not anywhere(part, self.accelerator):
                continue  # nothing has a gradient: no step by momentum alone
            for trial in self.step.trials(rate):
                with trial:
                    numbers = self._gradients(credit, part)
            pulls = anywhere(credit.must_pull(part), self.accelerator)
            updates.append(self.step.apply(numbers, credit.advantage, expects_gradient=pulls))
        numbers = updates_in_one(updates) | self.session.temperature(self._sampled_at)
        if self.curriculum.reads_outcomes:
            self.curriculum.note(collect(outcomes_of(trees, credit), self.accelerator))
        self.session.count_step()
        betas, adaptive = self._kl_weights(stage), train.adaptive_beta2
        if adaptive and stage.number == 1 and not self.progress.skipped and "kl_attempt1" in numbers:
            self.progress.beta2 = adapted_beta(
                self.progress.beta2, numbers["kl_attempt1"], adaptive.target, adaptive.rate, adaptive.max_error
            )
        row = self._metrics(stage, trees, credit) | numbers | self.curriculum.numbers()
        row |= {f"beta_attempt{number}": beta for number, beta in enumerate(betas, start=1)}
        self._keep_texts("train", trees, credit.advantages())
        sampled = len(collect(credit.learned, self.accelerator))
        row = self.session.log_step(row, sampled, lambda: self._distributions(credit))
        self.session.act()
        return row

    def _gradients(self, credit: Credit, part: list[Node]) -> dict:
        """Accumulates the gradients of a step over micro-batches; sums are divided once, by the last answers."""
        numbers = Numbers()
        for batch in self.step.batches(part, credit.is_learned):
            # gradients are summed over processes once, after the last micro-batch: their numbers of batches may differ
            with self.accelerator.no_sync(self.session.wrapped), phase("forward_backward"):
                loss, own, _ = loss_of(self.policy, batch, credit, self.objective, forward=self.session.wrapped)
                self.accelerator.backward(loss / credit.divisor)
            numbers += own
        return numbers.means(self.objective, credit.divisor, self.accelerator)

    def measure(
        self, when: str, settings: Eval, rows: list[dict], on_progress: Callable[[int, int], None], **part: str
    ) -> dict:
        """Evaluates all attempts at held-out rows; with `part`, returns only what training selects by."""
        answers, trees = evaluate(
            self.policy, self.task.prompts, rows, self.task.judge,
            self.task.sampling(settings.temperature, settings.samples_per_prompt), settings.seed, self.accelerator,
            on_progress,
        )  # fmt: skip
        self._keep_texts(when, trees, temperature=settings.temperature, **part)
        return selected(answers) if part else summarise(answers, settings.temperature)

    def finish(self, stage: Stage) -> None:
        """Ends a stage; the next one has a fresh optimizer unless the config says otherwise."""
        self.session.finish(f"after_stage{stage.number}", self.config.train.fresh_optimizer_per_stage)

    def show_results(self) -> None:
        """Prints this run's evaluations but those in the middle of a stage, its alarms and restores."""
        self.session.show_results("step")

    # -- credit and numbers, part by part

    def _kl_weights(self, stage: Stage) -> tuple[float, ...]:
        return kl_weights(self.config.train, stage.number, self.progress.beta2)

    def _advantages(
        self, stage: Stage, found: list[Node], penalties: list[float] | None = None
    ) -> tuple[list[float], list[bool]]:
        """Returns the advantage of each answer by number, and whether it counts; `penalties`: the KL in the rewards.

        An answer that does not count is left out of the loss, including its KL: it was not judged, is masked, or is
        context, which the policy did not write now.
        """
        train = self.config.train
        rewards, counts, earned = [], [], []
        needs_both = train.alpha > 0 and stage.number == 2  # the bonus compares two attempts
        for node in found:
            budget = self.config.budgets[node.attempt - 1]
            knows = not node.group.is_context and (node.before is None or node.before.verdict.scored or not needs_both)
            for answer in node.group.answers:
                overlong = overlong_penalty(len(answer.completion.ids), budget, train.overlong_buffer)
                rewards.append(answer.verdict.reward + overlong)
                counts.append(knows and is_whole(answer, train.mask_truncated))
            earned += paid(node, rewards, stage.number, train)
        sets, advantage = compared(found), [0.0] * len(earned)
        for attempt in range(1, len(self.config.budgets) + 1):
            counted = [each for each in sets.get(attempt, []) if any(counts[number] for number in each)]
            own = advantages_of(train.baseline, counted, earned, counts, self.accelerator, penalties)
            for number, value in own.items():
                advantage[number] = value
        return advantage, counts

    def _metrics(self, stage: Stage, trees: list[Group], credit: Credit) -> dict:
        """Returns the metrics of a step's answers, averaged over all processes."""
        rows: list[tuple[int, dict]] = []
        fresh: list[tuple[int, float | None]] = []  # without revisions of a replayed attempt
        earned: dict[int, float] = {}
        is_all_replayed = all(tree.prompt.choice.first for tree in trees)
        for node in credit.nodes:
            if node.attempt == 1 and node.group.prompt.choice.first and not is_all_replayed:
                continue  # an earlier step's
            format = self.task.judge.format_of(node.group.prompt.row)
            for number, answer in zip(node.numbers, node.group.answers, strict=True):
                form = form_of(format, answer.text, answer.verdict.well_formed, answer.verdict.match)
                own = numbers_of(answer) | form
                if node.before:
                    changed = answer.verdict.answer != node.before.verdict.answer
                    own |= {"changed": float(changed), "cut": float(node.group.prompt.cut)}
                    own["idle"] = float(credit.advantage[number] == 0)
                rows.append((node.attempt, own))
                if not node.group.prompt.choice.first:
                    fresh.append((node.attempt, own["acc"]))
                if answer.verdict.scored:
                    earned[number] = answer.verdict.reward
        rows, fresh = collect(rows, self.accelerator), collect(fresh, self.accelerator)
        spreads = [
            (attempt, {"reward_std": pstdev(rewards)})
            for attempt, sets in compared(credit.nodes).items()
            for numbers in sets
            if (rewards := [earned[number] for number in numbers if number in earned])
        ]
        spreads = collect(spreads, self.accelerator)
        attempts = range(1, len(self.config.budgets) + 1)
        means = [
            means_of(own for attempt, own in rows if attempt == number)
            | means_of(own for attempt, own in spreads if attempt == number)
            for number in attempts
        ]
        fresh_means = [means_of({"acc": acc} for attempt, acc in fresh if attempt == number) for number in attempts]
        last = means[-1]
        both = {name: fmean(each[name] for each in means if each) for name in ("truncated", "unscored")}
        shown = ("changed", "cut", "idle", "unscored")
        return {
            "stage": stage.number,
            "step": self.progress.step,
            "steps": stage.steps,
            "global_step": self.session.global_step,
            "prompts": sum(collect([len(trees)], self.accelerator)),
            **{f"{name}_attempt{number}": value for number, each in enumerate(means, start=1)
               for name, value in each.items() if name not in shown},
            "answer_changed": last["changed"],
            "context_cut": last["cut"],
            "zero_advantage": last["idle"],
            **both,
            "gap": fresh_means[-1].get("acc", 0.0) - fresh_means[0].get("acc", 0.0),
            "learned": sum(collect(credit.learned, self.accelerator)),
            "tokens": int(sum(own["length"] for _, own in rows)),
            "epoch": self.curriculum.epochs,
            "idle": float(not anywhere((credit.advantage != 0).any(), self.accelerator)),
        }  # fmt: skip

    def _distributions(self, credit: Credit) -> dict[str, list[float]]:
        """Returns lists of values by answer, for histograms."""
        values: dict[str, list[float]] = {}
        for node in credit.nodes:
            name = f"attempt{node.attempt}"
            values.setdefault(f"advantage_{name}", []).extend(credit.advantage[list(node.numbers)].tolist())
            for answer in node.group.answers:
                values.setdefault(f"lengths_{name}", []).append(float(len(answer.completion.ids)))
                if answer.verdict.scored:
                    values.setdefault(f"rewards_{name}", []).append(answer.verdict.reward)
        return values

    def _keep_texts(
        self, when: str, trees: list[Group], advantages: dict[int, float] | None = None, /, **how: float | str
    ) -> None:
        """Logs every text of the policy, and the prompts that no attempt solved."""
        where = {"when": when, "stage": self.progress.stage, "step": self.progress.step, **how}
        target = self.config.dataset.target_field
        rows = [row for tree in trees for row in rows_of(tree, tree.prompt.row[target], advantages)]
        self.session.keep_texts([where | row for row in rows])
        solved, last = {}, {}
        for tree in trees:
            key = id(tree.prompt.row)
            for path in paths(tree):
                solved[key] = solved.get(key, False) or any(answer.verdict.match for _, answer in path)
                last[key] = path[-1][1].text, tree.prompt.row
        failed = [last[key] for key, is_solved in solved.items() if not is_solved]
        told = self.task.judge.explain([text for text, _ in failed], [row for _, row in failed])
        rows = [{"row": row, **({"failed": each} if each else {})} for (_, row), each in zip(failed, told, strict=True)]
        for row in collect(rows, self.accelerator):
            self.session.log.write("failures", where | {"why": "solved by nobody", **row})

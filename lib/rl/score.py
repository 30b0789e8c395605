"""The steps of SCoRe (Kumar et al., arXiv 2409.12917): sample a tree of attempts, give credit, update, evaluate."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from lib.core.config import ATTEMPT, Eval, ScoreConfig, ScoreTrain
from lib.rl.credit import (
    Credit,
    advantages_of,
    credit_of,
    is_counted,
    kl_sampled,
    overlong_penalty,
    peers_of,
    scaled_by_role,
    some_followed,
    with_teacher,
    with_token_weights,
    without_idle_trees,
)
from lib.rl.curriculum import Curriculum, outcomes_of
from lib.rl.distill import Distiller
from lib.rl.evaluation import evaluate, selected, summarise
from lib.rl.log_rows import NO_NOTES, Notes, rows_of
from lib.rl.losses import POLICY_LOSSES, Objective, kl_in_reward
from lib.rl.measures import metrics_of
from lib.rl.plan import Stage, stages_of, work_of_score
from lib.rl.prompts import Choice
from lib.rl.recipes.choice import recipe_of
from lib.rl.recipes.contract import StepAnswers
from lib.rl.sequential import success_at_k
from lib.rl.session import OVER, Hook, Session
from lib.rl.step import learning_rate
from lib.rl.task import Task
from lib.rl.teachers import describe_teacher
from lib.rl.tokens import token_rows
from lib.rl.tree import Group, Node, attempts_in, nodes, paths, sample
from lib.run.distributed import collect


def kl_weights(train: ScoreTrain, stage: int, turns: int) -> tuple[float, ...]:
    """Returns the KL weights by turn: beta1, if `beta1_in_stage1` in stage I too, where attempt 1 has beta2 added."""
    beta1 = train.beta1 if stage == 2 or train.beta1_in_stage1 else 0.0
    return (beta1 + (train.beta2 if stage == 1 else 0.0), *[beta1] * (turns - 1))


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
        self.budgets = config.budgets
        self.sampling = task.sampling(
            self.policy.temperature, train.attempts_per_prompt, train.revisions_per_attempt,
            by_base=train.base_first_attempts, followed=train.followed_attempts,
        )  # fmt: skip
        self.recipe = recipe_of(train)
        if train.followed == train.revisions_per_attempt == 1 and train.baseline == "leave_one_out":
            note = "the one revision in a tree is compared with no other: later attempts have no advantage, only a KL"
            session.screen.warn(note)
        self.distiller = Distiller(config, self.policy, task.prompts, task.judge) if config.distill else None
        self.objective = Objective(
            POLICY_LOSSES["score"], train.kl, turns=tuple(config.turns), correction=train.sampler_correction,
            distiller=self.distiller,
        )  # fmt: skip
        steps = [self._note_outcomes, self._measure_step, self._keep_step]
        self.hooks: list[Hook] = [*steps, session.log_step]
        self.progress.stage = next((stage.number for stage in self.stages if stage.number >= start_stage), OVER)
        if start_stage == 2 and self.progress.due == "adapter" and not options.get("in_place"):
            self.progress.due = "after_stage1"

    @contextlib.contextmanager
    def open(self) -> Iterator[Session]:
        """Opens the run directory, with signal handlers, until the context ends."""
        moving = self.distiller.moving if self.distiller else {}
        with self.session.open(partial(work_of_score, self.config), sampler=self.curriculum, **moving) as session:
            if self.distiller:
                session.screen.say(describe_teacher(self.config.distill))
            yield session

    def sample(self, stage: Stage) -> list[Group]:
        """Samples this process's trees of the next batch of prompts: K1 first attempts, K2 revisions of each.

        With `resample_rounds`, draws further prompts for those whose trees have no advantage.
        """
        task = self.task
        self.session.clock.start()
        sampling = replace(self.sampling, temperature=self.policy.temperature)

        def grow(drawn: list[Choice], first: int) -> list[Group]:
            generator = self.session.generator
            prompts = [task.prompts.prompt(task.train[choice.row], choice.row, choice) for choice in drawn]
            return sample(self.policy, task.prompts, prompts, task.judge, sampling, generator, first=first)

        def have_signal(trees: list[Group]) -> list[bool]:
            step_nodes, signals = nodes(trees), [False] * len(trees)
            advantage = self._advantages(stage, step_nodes)[0]
            for node in step_nodes:
                signals[node.tree] |= any(advantage[number] for number in node.numbers)
            return signals

        number, rounds = stage.before + self.progress.step, self.config.train.resample_rounds
        return self.curriculum.draw(number, stage.batch_size, rounds, self.accelerator, grow, have_signal)

    def credit(self, stage: Stage, trees: list[Group]) -> Credit:
        """Computes advantages and token weights (eq. 3 in stage I, 4 in stage II), and selects answers to train."""
        train, step_nodes = self.config.train, nodes(trees)
        in_reward = train.kl == "k1_in_reward"
        betas = kl_weights(train, stage.number, len(self.config.turns))
        penalties = kl_in_reward(self.policy, step_nodes, betas, self.step.batches) if in_reward else None
        advantage, counts = self._advantages(stage, step_nodes, penalties)
        no_kl = (0.0,) * len(betas)
        credit = credit_of(step_nodes, advantage, counts, no_kl if in_reward else betas, self.accelerator.device)
        if self.recipe.scales_roles:
            credit = scaled_by_role(credit, self.accelerator)
        if self.distiller:  # attempt 1 is held in place in stage I
            by_teacher = credit.counts & ((credit.turn > 1) | (stage.number == 2))
            weights = self.distiller.begin(step_nodes, by_teacher.tolist())
            credit = with_teacher(credit, weights, self.config.distill.reward_weight)
        if train.resample_rounds:
            credit = without_idle_trees(credit)
        budgets = (max(self.budgets),) * len(self.budgets) if train.length_norm == "constant" else self.budgets
        below = (train.revisions_per_attempt, *[1] * (len(budgets) - 1))
        credit = with_token_weights(credit, train.length_norm, budgets, self.accelerator, below)
        if train.followed_attempts:
            credit = some_followed(credit, train.followed_attempts)
        if train.kl_sample < 1:
            credit = kl_sampled(credit, train.kl_sample, self.session.generator, self.accelerator)
        return credit

    def update(self, stage: Stage, trees: list[Group], credit: Credit) -> dict:
        """Takes one optimizer step on the trees, and calls the hooks. Returns its row of metrics.jsonl."""
        rate = learning_rate(self.config.optimizer, self.progress.step, stage.steps)
        updates = self.step.learn(credit, self.objective, rate)
        row = self.session.count_step() | updates
        betas = kl_weights(self.config.train, stage.number, len(self.config.turns))
        row |= {f"beta_{turn}": beta for turn, beta in zip(self.config.turns, betas, strict=True)}
        for hook in self.hooks:
            hook(trees, credit, row)
        self.session.act()  # on alarms
        return row

    def measure(
        self, when: str, settings: Eval, rows: list[dict], on_progress: Callable[[int, int], None],
        with_feedback: bool = True, **part: str,
    ) -> dict:  # fmt: skip
        """Evaluates all attempts at held-out rows; with `part`, returns only the numbers that training selects by."""
        prompts = self.task.prompts if with_feedback else self.task.prompts.without_feedback()
        budgets = (self.config if with_feedback else self.config.without_feedback()).eval_budgets
        answers, trees = evaluate(
            self.policy, prompts, rows, self.task.judge,
            self.task.sampling(settings.temperature, settings.samples_per_prompt, budgets=budgets),
            settings.seed, self.accelerator, on_progress, self.config.eval_attempts,
        )  # fmt: skip
        feedback_fields = self.config.feedback_fields(with_feedback)
        self._keep_texts(when, trees, temperature=settings.temperature, **feedback_fields, **part)
        if part:
            return selected(answers)
        row = feedback_fields | summarise(answers, settings.temperature)
        samples = settings.samples_per_prompt
        return row | ({"success_at_k": success_at_k(answers, samples)} if samples > 1 else {})

    def finish(self, stage: Stage) -> None:
        """Ends a stage; the next one has a fresh optimizer."""
        self.session.finish(f"after_stage{stage.number}")

    def show_results(self) -> None:
        """Prints the evaluations at the ends of stages, the alarms and the restores."""
        self.session.show_results("step")

    # -- after a step

    def _note_outcomes(self, trees: list[Group], credit: Credit, row: dict[str, Any]) -> None:
        if self.curriculum.reads_outcomes:
            self.curriculum.note(collect(outcomes_of(trees, credit), self.accelerator))
        row |= self.curriculum.numbers()

    def _measure_step(self, trees: list[Group], credit: Credit, row: dict[str, Any]) -> None:
        row |= metrics_of(trees, credit, self.task.judge, self.config, self.accelerator)
        row |= self.distiller.numbers(self.accelerator) if self.distiller else {}

    def _keep_step(self, trees: list[Group], credit: Credit, row: dict[str, Any]) -> None:
        which, kind = self.config.tracking.tokens, self.objective.kind
        notes = token_rows(which, credit, self.step.logps, kind, self.task.tokenizer, self.accelerator)
        self._keep_texts("train", trees, notes)

    # -- credit, part by part

    def _advantages(
        self, stage: Stage, step_nodes: list[Node], penalties: list[float] | None = None
    ) -> tuple[list[float], list[bool]]:
        """Returns the advantage of each answer by number, and whether it counts; `penalties`: the KL in the rewards.

        The recipe's pay for an answer is compared with its pay for the others of its set, and with the reward of the
        attempt that stands where another chat has ended. An answer that does not count is not in the loss, and its KL
        is not: it was not judged, is masked, or is context, which the policy did not write now.
        """
        train, turns = self.config.train, self.config.turns
        rewards = [
            answer.verdict.reward
            + overlong_penalty(len(answer.completion.ids), self.budgets[node.turn - 1], train.overlong_buffer)
            for node in step_nodes for answer in node.group.answers
        ]  # fmt: skip
        step = StepAnswers(step_nodes, rewards)
        paid = [value for node in step_nodes for value in self.recipe.paid(node, step, stage.number)]
        counts = [
            value is not None and not node.group.is_context and is_counted(answer, train.mask_truncated)
            for value, node, answer in zip(paid, step.node_of, step.answers, strict=True)
        ]
        peers = peers_of(step_nodes, len(turns), train.followed_attempts)
        unpaid = [not self.recipe.pays_attempts and name.startswith(ATTEMPT) for name in turns]
        standing = [
            0.0 if unpaid[turn - 1] else rewards[attempt] if step.answers[attempt].verdict.scored else None
            for turn, _, attempt in peers.stand_ins
        ]
        earned = [value or 0.0 for value in paid]
        return advantages_of(train.baseline, peers, earned, counts, self.accelerator, penalties, standing), counts

    def _keep_texts(self, when: str, trees: list[Group], notes: Notes = NO_NOTES, /, **how: float | str) -> None:
        """Logs every text of the policy, and the prompts that no attempt solved."""
        where = {"when": when, "stage": self.progress.stage, "step": self.progress.step, **how}
        target = self.config.dataset.target_field
        rows = [row for tree in trees for row in rows_of(tree, tree.prompt.row[target], notes)]
        self.session.keep_texts([where | row for row in rows])
        solved, last = {}, {}
        for tree in trees:
            key = id(tree.prompt.row)
            for path in map(attempts_in, paths(tree)):
                solved[key] = solved.get(key, False) or any(answer.verdict.match for answer in path)
                last[key] = path[-1].text, tree.prompt.row
        failed = [last[key] for key, is_solved in solved.items() if not is_solved]
        reasons = self.task.judge.explain([text for text, _ in failed], [row for _, row in failed])
        rows = [{"row": row, **({"failed": why} if why else {})} for (_, row), why in zip(failed, reasons, strict=True)]
        for row in collect(rows, self.accelerator):
            self.session.log.write("failures", where | {"why": "solved by nobody", **row})

"""The steps of GSPO self-play (Zheng et al., arXiv 2507.18071): play groups, assist, give credit, update, evaluate.

The other losses are in lib/rl/losses.py, the uses of an opponent in lib/play/opponents.py.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from lib.core.config import Eval, SelfPlayConfig
from lib.core.errors import NumericError
from lib.generators.remote import Remote, replies_of, spent
from lib.generators.reply_cache import key_of
from lib.play.loss import notes_on, policy_loss_of
from lib.play.opponents import (
    EVALUATION,
    Game,
    OpponentAnswer,
    ServerOpponent,
    SnapshotOpponent,
    describe,
    group_numbers,
    opponent_text,
    played_reward,
)
from lib.play.scoreboard import FRONTIER, Scoreboard
from lib.play.teacher import Teacher
from lib.rl.checks import form_of
from lib.rl.credit import (
    Credit,
    advantages_of,
    chains_of,
    credit_of,
    in_minibatches,
    is_counted,
    overlong_penalty,
    peers_of,
    sum_by,
    with_teacher,
    with_token_weights,
    without_idle_trees,
)
from lib.rl.curriculum import Curriculum, outcomes_of
from lib.rl.distill import Distiller
from lib.rl.evaluation import answers_of, in_parts, selected, summarise
from lib.rl.log_rows import NO_NOTES, Notes, length_extremes, means_of, numbers_of, texts_of
from lib.rl.losses import Objective, kl_in_reward
from lib.rl.measures import totals
from lib.rl.plan import stage_of, work_of_selfplay
from lib.rl.prompts import Choice, Prompt
from lib.rl.session import Hook, Session
from lib.rl.step import learning_rate
from lib.rl.task import Task
from lib.rl.teachers import describe_teacher
from lib.rl.tokens import token_rows
from lib.rl.tree import Group, nodes, sample
from lib.run.distributed import before_mine, collect
from lib.run.runlog import STREAMS

FILES = (*STREAMS, "sft", *(f"frontier/{outcome}" for outcome in FRONTIER))
PROMPT_KEY = 12  # characters of the key that identifies a prompt in the scoreboard


def rewards_of(game: Game, config: SelfPlayConfig) -> list[float]:
    """Returns the reward of each answer of a group, adjusted by its game, plus the overlong penalty."""
    budget, buffer = config.generation.most_tokens, config.train.overlong_buffer
    return [
        played_reward(answer.verdict.reward, answer.verdict, game.opponent, config.opponent)
        + overlong_penalty(len(answer.completion.ids), budget, buffer)
        for answer in game.group.answers
    ]


def trained_rewards(game: Game, config: SelfPlayConfig) -> list[float]:
    """Returns the rewards of the trained answers; if they are all equal, the group gives no signal."""
    rewards = zip(rewards_of(game, config), game.group.answers, strict=True)
    return [reward for reward, answer in rewards if is_counted(answer, config.train.mask_truncated)]


class GspoRun:
    """A run of self-play: the state, and one method per step of the algorithm."""

    def __init__(self, task: Task[SelfPlayConfig], **options: Any):
        """Starts a run; `options` are those of a session, such as `resume`."""
        self.task, self.config, self.policy = task, task.config, task.policy
        config, train = task.config, task.config.train
        stage = stage_of(config, len(task.train))
        self.session = session = Session(task, [stage], self.measure, **options)
        self.accelerator, self.progress, self.step = session.accelerator, session.progress, session.step
        self.steps, self.loss = stage.steps, policy_loss_of(train)
        turns = ("", *(f"turn{number}" for number in range(2, len(config.budgets) + 1)))
        self.distiller = Distiller(config, self.policy, task.prompts, task.judge) if config.distill else None
        self.objective = Objective(
            self.loss, train.kl, reads_reference=train.beta > 0, turns=turns, correction=train.sampler_correction,
            distiller=self.distiller,
        )  # fmt: skip
        self.scoreboard = Scoreboard()
        self.curriculum = Curriculum(config.curriculum, task.train, config.seed)
        self.sampling = task.sampling(self.policy.temperature, train.group_size)
        opponent = config.opponent
        self.opponent: ServerOpponent | SnapshotOpponent | None = None
        if opponent and opponent.snapshots:
            sampling = task.sampling(opponent.temperature, 1)
            self.opponent = SnapshotOpponent(config, self.policy, task.prompts, sampling, self.task.judge)
        self.teacher: Teacher | None = None
        self.hooks: list[Hook] = [self._keep_step, self._note_outcomes, self._measure_step, session.log_step]
        for note in notes_on(train):
            session.screen.say(note)

    @contextlib.contextmanager
    def open(self) -> Iterator[Session]:
        """Opens the run directory, with signal handlers, and the servers, until the context ends."""
        config = self.config
        moving = {"scoreboard": self.scoreboard, "sampler": self.curriculum}
        if isinstance(self.opponent, SnapshotOpponent):
            moving["opponent"] = self.opponent
        if self.distiller:
            moving |= self.distiller.moving
        with contextlib.ExitStack() as stack:
            work = partial(work_of_selfplay, config, rows=len(self.task.train))
            session = stack.enter_context(self.session.open(work, FILES, **moving))
            if "opponent" in config.asked:
                remote = stack.enter_context(self._remote("opponent"))
                self.opponent = ServerOpponent(config, remote, self.task.judge)
            if config.teacher:
                remote = stack.enter_context(self._remote("teacher"))
                self.teacher = Teacher(config, remote, self.task.judge, self.task.prompts)
            if config.opponent:
                session.screen.say(describe(config))
            if self.distiller:
                session.screen.say(describe_teacher(self.config.distill))
            yield session

    def unfinished(self) -> bool:
        """True if there are steps left."""
        return self.progress.stage == 1 and self.progress.step < self.steps

    def play(self) -> list[Game]:
        """Plays the next prompts: a group of the policy's answers to each and one of the opponent's, judged and logged.

        With `resample_rounds`, draws further prompts for those whose answers all earn the same.
        """
        train, task = self.config.train, self.task
        self.session.clock.start()
        sampling = replace(self.sampling, temperature=self.policy.temperature)

        def answer(drawn: list[Choice], first: int) -> list[Game]:
            prompts = [task.prompts.prompt(task.train[choice.row], choice.row, choice) for choice in drawn]
            return self._games(prompts, self.opponent, step, sampling, self.session.generator, first)

        def have_signal(games: list[Game]) -> list[bool]:
            return [len(set(trained_rewards(game, self.config))) > 1 for game in games]

        step, rounds = self.progress.step, train.resample_rounds
        games = self.curriculum.draw(step, train.batch_size, rounds, self.accelerator, answer, have_signal)
        self._book(games)
        return games

    def _games(
        self, prompts: list[Prompt], opponent: ServerOpponent | SnapshotOpponent | None, step: int, *how: Any
    ) -> list[Game]:
        """Returns the policy's answers, sampled as `how` says, and the opponent's, which a server writes meanwhile."""
        task = self.task
        begun: Any = opponent.begin(prompts, step) if opponent else None
        groups = sample(self.policy, task.prompts, prompts, task.judge, *how)
        answers = opponent.end(begun, prompts) if opponent else [OpponentAnswer()] * len(prompts)
        return [Game(*pair) for pair in zip(groups, answers, strict=True)]

    def assist(self, games: list[Game]) -> list[Group]:
        """Samples the policy's retries under a teacher's hints where it failed; returns the groups to be trained.

        Retries to a prompt are a group with its own baseline; their rewards reach no tokens of other answers.
        """
        if self.teacher is None:
            return []
        settings = self.config.teacher.hint
        aid = self.teacher.help([game for game in games if game.outcome], self.progress.step)
        if self.distiller and settings.train == "distill":
            self.distiller.hinted = {prompt.number: prompt.ids for prompt in aid.hinted}
            aid.hinted = []  # the distiller reads them next to the plain answers
        sampling = replace(self.sampling, temperature=self.policy.temperature)
        task, generator = self.task, self.session.generator
        first, hinted = before_mine(len(aid.hinted), self.accelerator)
        retries: list[Group] = []
        if hinted:
            retries = sample(self.policy, task.prompts, aid.hinted, task.judge, sampling, generator, first=first)
        self.teacher.keep(retries, aid)
        for counts in collect([dict(aid.counts)], self.accelerator):
            self.scoreboard.assist(counts)
        for row in collect(aid.rows, self.accelerator):
            self.session.log.write("sft", row)
        self._log_texts("train", aid.texts + [text for group in retries for text in texts_of(group)])
        self._log_failures([(f"teacher: {error}", prompt, {}) for error, prompt in aid.failures])
        return [] if settings.train == "collect" else retries

    def credit(self, games: list[Game], retries: list[Group]) -> Credit:
        """Computes advantages within groups, and selects the answers to train in each optimizer step."""
        config, train, turns = self.config, self.config.train, len(self.config.budgets)
        games = [*games, *map(Game, retries)]
        step_nodes = nodes(game.tree for game in games)
        firsts, chain = [node for node in step_nodes if node.parent is None], chains_of(step_nodes)
        rewards = [reward for game in games for reward in rewards_of(game, config)]  # of last answers, by chain
        counts = [is_counted(answer, train.mask_truncated) for game in games for answer in game.group.answers]
        in_reward, penalties = train.kl == "k1_in_reward", None
        if in_reward and train.beta:
            by_answer = kl_in_reward(self.policy, step_nodes, (train.beta,) * turns, self.step.batches)
            penalties = sum_by(torch.tensor(by_answer), chain).tolist()
        advantage = advantages_of(self.loss.advantage, peers_of(firsts), rewards, counts, self.accelerator, penalties)
        advantage, counts = [advantage[number] for number in chain], [counts[number] for number in chain]
        kl_weights = (train.beta * (not in_reward),) * turns
        credit = credit_of(step_nodes, advantage, counts, kl_weights, self.accelerator.device)
        if self.distiller:
            credit = with_teacher(credit, self.distiller.begin(step_nodes, counts), config.distill.reward_weight)
        if train.resample_rounds:
            credit = without_idle_trees(credit)
        budgets, ones = config.budgets, (1,) * turns
        credit = with_token_weights(credit, self.loss.length_norm, budgets, self.accelerator, ones, by_turn=False)
        if train.minibatches > 1:
            credit = in_minibatches(credit, train.minibatches, self.accelerator)
        return credit

    def update(self, games: list[Game], credit: Credit) -> dict:
        """Takes the optimizer steps on a step's answers, and calls the hooks. Returns their row of metrics.jsonl."""
        rate = learning_rate(self.config.optimizer, self.progress.step, self.steps)
        try:
            updates = self.step.learn(credit, self.objective, rate, self.config.train.passes)
        except Exception as error:
            # the texts may tell the cause; of several processes only this error comes to all, and they write together
            if isinstance(error, NumericError) or self.accelerator.num_processes == 1:
                self._log_texts("train", self._texts(games, self.opponent, credit.notes()))
            raise
        row = self.session.count_step() | updates
        for hook in self.hooks:
            hook(games, credit, row)
        return row

    def refresh(self) -> None:
        """Takes a snapshot for the opponent's pool if one is due, and acts on alarms."""
        if isinstance(self.opponent, SnapshotOpponent):
            self.opponent.refresh(self.progress.step)
        self.session.act()  # now that all of the step has been done

    def measure(
        self, when: str, settings: Eval, rows: list[dict], on_progress: Callable[[int, int], None], **part: str
    ) -> dict:
        """Evaluates answers to held-out rows and games; with `part`, returns the numbers that training selects by."""
        opponent, task = None if part else self.opponent, self.task
        samples = settings.samples_per_prompt
        sampling = task.sampling(settings.temperature, samples)

        def answer(rows: list[dict], *how: Any) -> list[Game]:
            return self._games([task.prompts.prompt(row) for row in rows], opponent, EVALUATION, sampling, *how)

        most = samples * len(self.config.budgets)
        games = in_parts(answer, rows, settings.seed, self.policy.device, self.accelerator, most, on_progress)
        self._log_texts(when, self._texts(games, opponent), temperature=settings.temperature, **part)
        answers = answers_of([game.group for game in games], self.accelerator)
        results = collect([game.result for game in games if opponent], self.accelerator)
        return selected(answers) if part else summarise(answers, settings.temperature, samples, results)

    def finish(self) -> None:
        """Ends the run: evaluates, saves the last checkpoint, and the adapter in `stage1/`."""
        for _ in self.session.remaining():  # none, if the run was finished before
            self.session.finish("after_training")

    def show_results(self) -> None:
        """Prints evaluations, alarms and restores, the scoreboard, and the costs of opponent and teacher."""
        self.session.show_results()
        config, say = self.config, self.session.screen.say
        for line in self.scoreboard.lines() if self.opponent or self.teacher else ():
            say(line)
        for section in config.asked:
            files = config.run_dir.glob(f"{section}_replies*.jsonl")
            say(f"{section}: {spent(files, config.server_of(section))}")

    def _remote(self, section: str) -> Remote:
        kept = replies_of(self.config.run_dir, self.accelerator.process_index, section)
        return Remote(section, self.config.server_of(section), kept, self.session.screen.warn)

    # -- books

    def _book(self, games: list[Game]) -> None:
        """Records a step in the scoreboard and the frontier files, and logs its failures."""
        if self.opponent:
            results = [(key_of(game.group.prompt.messages)[:PROMPT_KEY], *game.result) for game in games]
            chooses = self.curriculum.chooses
            self.scoreboard.record(collect(results, self.accelerator), self.progress.step + 1, chooses)
            unanswered = [game for game in games if not game.opponent.verdict]
            self._log_failures([(f"opponent: {game.opponent.error}", game.group.prompt, {}) for game in unanswered])
        decided = [game for game in games if game.opponent.verdict or not self.opponent]
        rows = [(game.outcome, game.group.prompt.row) for game in decided if game.outcome]
        for outcome, row in collect(rows, self.accelerator):
            if (key := key_of(outcome, row)) not in self.scoreboard.frontier:
                self.scoreboard.frontier.add(key)
                self.session.log.write(f"frontier/{outcome}", row)
        unsolved = [game.group for game in games if game.outcome]
        texts = [self.task.prompts.judged(group.answers[0].text) for group in unsolved]
        reasons = zip(unsolved, self.task.judge.explain(texts, [group.prompt.row for group in unsolved]), strict=True)
        self._log_failures([("solved by nobody", group.prompt, {"failed": why}) for group, why in reasons if why])

    def _texts(
        self, games: list[Game], opponent: ServerOpponent | SnapshotOpponent | None, notes: Notes = NO_NOTES
    ) -> list[dict[str, Any]]:
        rows = [row for game in games for row in texts_of(game.group, notes)]
        return rows + [opponent_text(game) for game in games if opponent]

    def _log_texts(self, when: str, texts: list[dict[str, Any]], **how: float | str) -> None:
        where = {"when": when, "stage": 1, "step": self.progress.step + (when == "train"), **how}
        self.session.keep_texts([where | row for row in texts])

    def _log_failures(self, failures: list[tuple[str, Prompt, dict[str, Any]]]) -> None:
        rows = [{"why": why, "prompt": prompt.question, **more} for why, prompt, more in failures]
        for row in collect(rows, self.accelerator):
            self.session.log.write("failures", {"step": self.progress.step + 1, **row})

    # -- after a step

    def _keep_step(self, games: list[Game], credit: Credit, row: dict[str, Any]) -> None:
        which = self.config.tracking.tokens
        notes = token_rows(which, credit, self.step.logps, self.loss, self.task.tokenizer, self.accelerator)
        self._log_texts("train", self._texts(games, self.opponent, notes), step=row["step"])
        if (self.opponent or self.teacher) and self.accelerator.is_main_process:
            self.scoreboard.write(self.config.run_dir)

    def _note_outcomes(self, games: list[Game], credit: Credit, row: dict[str, Any]) -> None:
        if self.curriculum.reads_outcomes:
            ends = [replace(node, group=node.group.ends()) for node in credit.nodes if node.parent is None]
            outcomes = zip(outcomes_of([game.group for game in games], replace(credit, nodes=ends)), games, strict=True)
            outcomes = [outcome._replace(opponent_is_right=game.opponent.is_right) for outcome, game in outcomes]
            self.curriculum.note(collect(outcomes, self.accelerator))
        row |= self.curriculum.numbers()

    def _measure_step(self, games: list[Game], credit: Credit, row: dict[str, Any]) -> None:
        """Adds the metrics of a step's answers, over all processes, without retries."""
        thinking, tokenizer, judged = self.config.generation.thinking, self.task.tokenizer, self.task.prompts.judged
        formats = [self.task.judge.judge_of(game.group.prompt.row).format for game in games]
        answers = [
            numbers_of(answer, thinking, tokenizer)
            | form_of(format, judged(answer.text), answer.verdict.well_formed, answer.verdict.match)
            | ({"tool_calls": float(len(answer.earlier))} if self.config.tools.names else {})
            for game, format in zip(games, formats, strict=True)
            for answer in game.group.answers
        ]
        answers = collect(answers, self.accelerator)
        groups = collect([group_numbers(game, trained_rewards(game, self.config)) for game in games], self.accelerator)
        row |= self.distiller.numbers(self.accelerator) if self.distiller else {}
        row |= {
            **means_of(answers),
            **means_of(groups),
            **length_extremes([entry["length"] for entry in answers]),
            "prompts_solved": sum(collect([sum(any(game.group.matches) for game in games)], self.accelerator)),
            **totals([game.group for game in games], [entry["length"] for entry in answers], credit, self.accelerator),
            "total/missing_games": self.scoreboard.missing_games,
            **{f"total/{name}": count for name, count in sorted(self.scoreboard.assisted.items())},
        }

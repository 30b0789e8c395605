"""A few rows as a run has them answered by policy, opponent and teacher; nothing is trained, and nothing kept."""

import contextlib
import tempfile
import time
from pathlib import Path

import torch

from judge.worker import shown
from lib.core.config import SelfPlayConfig
from lib.core.console import Screen
from lib.generators.remote import remote_of, spent
from lib.play.opponents import Game, ServerOpponent, SnapshotOpponent, describe, play
from lib.play.teacher import Help, Teacher
from lib.rewards.judge import Verdict
from lib.rl.curriculum import Sampler
from lib.rl.task import Task
from lib.rl.tree import Group, Sampling, sample
from lib.run.adapter_files import load_adapter

STEP = 0  # the step whose rows and seeds are used


def ask(task: Task[SelfPlayConfig], count: int, adapter: Path | None = None) -> None:
    """Shows the first rows that a run would draw, each with its prompt, answers, hints, retries and their verdicts.

    The teacher is asked about every row and in every mode of the config, even where a run would not ask it, to show
    all that it may do. Raises the errors of a run.
    """
    screen = Screen()
    for note in task.notes:
        screen.say(note)
    if adapter:
        load_adapter(task.policy.model, adapter, task.config.model.name)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))  # for the replies, deleted at the end
        show = _Rehearsal(task, folder, stack, screen)
        numbers = Sampler(len(task.train), task.config.seed).take(min(count, len(task.train)))
        began = time.monotonic()
        played = show.played(numbers)
        answered = time.monotonic()
        helped = show.helped(played)
        seconds = {"policy and opponent": answered - began, "teacher and retries": time.monotonic() - answered}
        for game in played:
            show.row(game, helped[game.group.prompt.number])
        screen.heading("cost")
        for who, spent_on in seconds.items():
            screen.say(f"{who}: {spent_on:.1f} s for {len(played)} rows")
        show.spent()
    screen.heading("nothing was trained, and nothing was written")


class _Rehearsal:
    """Policy, opponent and teacher of a config, and their answers to some rows."""

    def __init__(self, task: Task[SelfPlayConfig], folder: Path, stack: contextlib.ExitStack, screen: Screen):
        self.task, self.config, self.folder, self.screen = task, task.config, folder, screen
        config = task.config
        self.generator = torch.Generator(task.policy.device)
        self.generator.manual_seed(config.seed)
        remotes = {
            section: stack.enter_context(remote_of(section, config, self._kept(section), screen.warn))
            for section in config.asked
        }
        self.opponent: ServerOpponent | SnapshotOpponent | None = None
        if "opponent" in remotes:
            self.opponent = ServerOpponent(config, remotes["opponent"], task.judge)
        elif config.opponent:
            sampling = task.sampling(config.opponent.temperature, 1)
            self.opponent = SnapshotOpponent(config, task.policy, task.prompts, sampling, task.judge)
        self.teacher = Teacher(config, remotes["teacher"], task.judge, task.prompts) if "teacher" in remotes else None
        if config.opponent:
            screen.say(describe(config))

    def played(self, numbers: list[int]) -> list[Game]:
        """Samples a group of the policy's answers to each row, and one answer of the opponent."""
        task, prompts = self.task, [self.task.prompts.prompt(self.task.train[number], number) for number in numbers]
        sampling = self._sampling(self.config.train.group_size)
        return play(task.policy, task.prompts, prompts, task.judge, sampling, self.generator, self.opponent, STEP)

    def helped(self, played: list[Game]) -> dict[int, list[tuple[str, Help, Group | None]]]:
        """Returns, by row, each mode with the teacher's help in it and the policy's answers under its hint, if any."""
        helped: dict[int, list[tuple[str, Help, Group | None]]] = {game.group.prompt.number: [] for game in played}
        if self.teacher is None:
            return helped
        settings = self.config.teacher
        modes = [*dict.fromkeys(settings.hint.modes), *(["solve"] if settings.solve.probability else [])]
        wishes = [(game, mode) for game in played for mode in modes]
        results = self.teacher.asked(wishes, STEP)
        hinted = [prompt for result in results for prompt in result.hinted]
        sampling = self._sampling(self.config.train.group_size)
        task = self.task
        retries = iter(sample(task.policy, task.prompts, hinted, task.judge, sampling, self.generator))
        for (game, mode), result in zip(wishes, results, strict=True):
            retry = next(retries) if result.hinted else None
            helped[game.group.prompt.number].append((mode, result, retry))
        return helped

    def row(self, game: Game, helped: list[tuple[str, Help, Group | None]]) -> None:
        """Prints everything about one row."""
        group, say = game.group, self.screen.say
        self.screen.heading(f"train row {group.prompt.number + 1} of {len(self.task.train)}")
        self._prompt("prompt", group.prompt.ids)
        say(f"[policy: {_rate(group)}; its first answer: {_verdict(group.answers[0].verdict)}]")
        say(_clean(group.answers[0].text))
        if self.opponent and game.opponent.verdict:
            say(f"[opponent: {_verdict(game.opponent.verdict)}{'' if game.opponent.finished else ', cut off'}]")
            say(_clean(game.opponent.text))
        elif self.opponent:
            say(f"[opponent: {_clean(game.opponent.error)}]")
        if helped and game.outcome is None:
            say("[the policy solved it, or could not be judged: a run would not ask the teacher here]")
        for mode, result, retry in helped:
            for error, _ in result.failures:
                say(f"[{mode}: {_clean(error)}]")
            for text in result.texts:
                say(f"[{mode}: the teacher says]")
                say(_clean(text["text"]))
                if mode == "solve":
                    say(f"[which is {'right' if text['match'] else 'wrong'}]")
                elif text["dropped"]:
                    say(f"[dropped: {text['dropped']}; the policy sees nothing of it]")
            if retry:
                self._prompt(f"{mode}, as the policy sees it", retry.prompt.ids)
                say(f"[retries: {_rate(retry)}; the first: {_verdict(retry.answers[0].verdict)}]")
                say(_clean(retry.answers[0].text))

    def spent(self) -> None:
        """Prints the tokens of the servers, and their cost where prices are known."""
        for section in self.config.asked:
            self.screen.say(f"{section}: {spent([self._kept(section)], self.config.server_of(section))}")

    def _sampling(self, copies: int) -> Sampling:
        return self.task.sampling(self.config.generation.temperature, copies)

    def _kept(self, section: str) -> Path:
        return self.folder / f"{section}_replies.jsonl"

    def _prompt(self, name: str, ids: list[int]) -> None:
        self.screen.say(f"[{name}: {len(ids)} tokens]")
        self.screen.say(_clean(self.task.tokenizer.decode(ids)))


def _rate(group: Group) -> str:
    return f"{sum(group.matches)} of {len(group.answers)} right"


def _verdict(verdict: Verdict) -> str:
    """Describes the judge's verdict in a few words."""
    if not verdict.scored:
        return "could not be judged"
    word = "right" if verdict.match else f"malformed ({verdict.malformed})" if verdict.malformed else "wrong"
    return f"{word}, reward {verdict.reward:.3g}"


def _clean(text: str) -> str:
    """Returns a model's text with unprintable characters replaced, which a terminal would obey."""
    return "\n".join(map(shown, text.split("\n")))

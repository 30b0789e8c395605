"""The config of rl_train_gspo_selfplay.py: groups of answers, opponents and teachers, GSPO and its relatives."""

from typing import Annotated, Any, Literal

from pydantic import Field

from lib.core.config.chat import ChatPrompts, ServerName, Thinking, Tools
from lib.core.config.rl import Dataset, KlKind, RLConfig, TrainedSampling, TrainLoop
from lib.core.config.section import Conflicts, Count, CountOrZero, Fraction, Name, Positive, Section, Weight
from lib.core.config.shared import SMOKE_TOKENS, AtMost, smoke_batch

LEAST_RESULT = 16  # tokens between two turns, those of the chat template included


class SelfPlayDataset(Dataset):
    """The source of the rows; programming tasks need no column with the right answer."""

    target_field: Name | None = None  # the column with the right answer: for rewards, and to drop hints that reveal it


class SelfPlayPrompts(ChatPrompts):
    """The prompts of the policy and its opponent, and of the policy with a hint."""

    hinted: str = "{question}\n\nHint: {hint}"  # last message of a retry; {question}: what it was without the hint


class SelfPlayGeneration(TrainedSampling):
    """The policy's answers; budgets in tokens."""

    max_prompt_length: Count = 1024  # longer prompts are left out, and counted; hints come on top of this limit
    max_new_tokens: Count = 1024  # budget of an answer, thinking not counted
    thinking: Thinking = Thinking()

    @property
    def most_tokens(self) -> int:
        """Returns the token limit of one answer, reasoning included."""
        return self.max_new_tokens + self.thinking.budget_tokens


class Snapshots(Section):
    """An opponent on the same base: adapters that the policy had before. On held-out rows it is the first of all."""

    every_steps: CountOrZero = 0  # steps between snapshots; 0: only the initial policy
    keep: Count = 4  # size of the pool; the oldest snapshot is dropped first
    pick: Literal["latest", "uniform"] = "uniform"
    # which snapshot plays a step; uniform: a random one, because the policy would overfit to a fixed opponent


class Opponent(Section):
    """The opponent, which answers each question once, within the policy's budget: a server, or an earlier policy."""

    server: ServerName | None = None  # which of the servers plays; give this or snapshots
    snapshots: Snapshots | None = None  # the policy's own past
    use: Literal["scoreboard", "win"] = "scoreboard"
    # what games change. scoreboard: no reward, they are only counted, though curriculum.weighting may draw prompts by
    # them; win: the reward of each answer, by a score of 1 for a win and less for a tie or a loss
    weight: Fraction = 0.2  # win: the reward becomes (1 - weight) * reward + weight * score
    temperature: Weight = 0.7  # 0 = greedy

    def _conflicts(self) -> Conflicts:
        if (self.server is None) == (self.snapshots is None):
            keys = ("server", "snapshots")
            yield keys, "a server or snapshots of the policy: give one of the two, and set the other to null"


HINT_REQUEST = """You help a student with the problem below, and you have seen them fail. Write a single concrete \
pointer in plain English, of at most 30 words. No code, no answer, no preamble.

{question}"""
CRITIQUE_REQUEST = """A student failed at the problem below. Say in plain English, in at most 30 words, what to \
change. No code, no answer, no preamble.

{question}

The student's attempt:
{attempt}"""


class Hint(Section):
    """When a teacher is asked for a hint, and what becomes of the policy's second try under it, a group of answers.

    A request may name {question}, {attempt} and any column of the row: what it does not name, the teacher does not see.
    """

    neither: Fraction = 0.15
    # probability of asking for a hint if the whole group failed and so did the opponent, or the request to it
    opponent_only: Fraction = 0.1  # the same probability if the whole group failed but the opponent did not
    train: Literal["on_policy", "collect", "distill"] = "collect"
    # what becomes of the retries, as many as train.group_size. on_policy: trained as a group, under the hinted prompt;
    # collect: right ones are saved to sft.jsonl. distill: there are none; the teacher of `distill` reads the hint and
    # teaches the policy its first, failed answers
    modes: list[Literal["hint", "critique"]] = Field(default=["hint"], min_length=1)
    # which requests are used (hint_request, critique_request); one mode is drawn for each prompt
    hint_request: str = HINT_REQUEST  # what the teacher is asked for a hint
    critique_request: str = CRITIQUE_REQUEST  # what it is asked for a critique of `{attempt}`


class Solve(Section):
    """Solutions by the teacher: judged, and kept for SFT alone."""

    probability: Fraction = 0.0  # probability of asking for a solution if the whole group failed
    request: str = "{question}"  # what the teacher is asked


class TeacherSettings(Section):
    """A model behind a server that helps where the policy fails, at a temperature of 0.6.

    `servers.NAME.extra_body`, such as {temperature: 1}, gives it another one.
    """

    server: ServerName  # which of the servers is asked
    hint: Hint = Hint()
    solve: Solve = Solve()
    max_new_tokens: Count = 256  # maximum tokens of a hint; a solution may be as long as the policy's answers


class GspoTrain(TrainLoop):
    """GSPO (Zheng et al. 2025, arXiv 2507.18071) and its relatives; null takes what belongs to `loss`."""

    steps: Count | None = None  # number of steps; null: epochs decides
    epochs: Positive = 1.0  # passes over the training rows
    batch_size: Count = 32  # prompts per step, over all processes together
    group_size: Annotated[int, Field(ge=2)] = 8  # answers to each prompt
    minibatches: Count = 4  # parts into which a step's prompts are split, with one optimizer step each
    passes: Count = 1  # how often a step goes over the same answers
    loss: Literal["gspo", "gspo_token", "grpo", "dr_grpo", "dapo", "cispo", "rloo"] = "gspo"
    # a line of POLICY_LOSSES in lib/rl/losses.py
    clip: tuple[Weight, Weight] | None = None  # [low, high]: ratios are clipped to 1 - low and 1 + high
    advantage: Literal["group_std", "group", "batch_std", "leave_one_out", "none"] | None = None  # see lib/rl/credit.py
    length_norm: Literal["sequence", "constant", "token"] | None = None  # weight of each token, as in ScoreTrain
    beta: Weight = 0.0  # KL weight; with 0, no reference model is run
    kl: KlKind = "k3"  # estimator of the KL (lib/rl/losses.py)

    def _conflicts(self) -> Conflicts:
        if self.minibatches > self.batch_size:
            keys = ("minibatches", "batch_size")
            yield keys, f"{self.batch_size} prompts do not make {self.minibatches} minibatches: lower the latter"
        yield from super()._conflicts()


class SelfPlayConfig(RLConfig):
    """rl_train_gspo_selfplay.py"""

    dataset: SelfPlayDataset
    prompts: SelfPlayPrompts = SelfPlayPrompts()
    generation: SelfPlayGeneration = SelfPlayGeneration()
    train: GspoTrain = GspoTrain()
    tools: Tools = Tools()
    opponent: Opponent | None = None
    teacher: TeacherSettings | None = None

    def _conflicts(self) -> Conflicts:
        yield from self._conflicts_of_budgets()
        yield from self._conflicts_of_tools() if self.tools.names else ()
        if self.eval.temperature == 0 and self.eval.samples_per_prompt > 1:
            keys = ("eval.temperature", "eval.samples_per_prompt")
            yield keys, "greedy samples of a prompt are all alike: raise temperature, or take one"
        if self.shows_hints and not self.distill:
            keys = ("teacher.hint.train", "distill")
            yield keys, "no one would read the hints: add distill: {}, or another teacher of tokens"
        yield from super()._conflicts()

    @property
    def asked(self) -> dict[str, str]:
        """Returns the name of the server that each section asks, by the section's key."""
        names = {"opponent": self.opponent and self.opponent.server, "teacher": self.teacher and self.teacher.server}
        return {section: name for section, name in names.items() if name}

    @property
    def shows_hints(self) -> bool:
        """True if the teacher of `distill` sees hints."""
        return self.teacher is not None and self.teacher.hint.train == "distill"

    def _conflicts_of_budgets(self) -> Conflicts:
        gen, limit = self.generation, self.model.max_seq_length
        need = gen.max_prompt_length + gen.most_tokens
        if need > limit:
            yield (
                ("generation.max_prompt_length", "generation.max_new_tokens", "model.max_seq_length"),
                f"max_prompt_length + max_new_tokens + thinking.budget_tokens = {need} exceeds model.max_seq_length = "
                f"{limit}: lower one of the first or raise the last",
            )

    def _conflicts_of_tools(self) -> Conflicts:
        for section in ("opponent", "teacher", "distill"):
            if getattr(self, section):
                yield ("tools.names", section), f"got tools and {section}, which knows no tools: remove one of the two"
        if self.tools.uses_web:
            yield ("tools.names",), "got a web tool, whose answers change: train with python.run or your own function"
        if self.tools.max_turns < 2:
            yield ("tools.max_turns",), "got 1, which leaves no turn after a call: raise it, or set tools.names: []"
        if self.result_tokens < LEAST_RESULT:
            keys = ("tools.max_turns", "generation.max_prompt_length", "generation.max_new_tokens")
            left = f"got {self.result_tokens} tokens for each result of a tool, expected {LEAST_RESULT} or more"
            yield (*keys, "model.max_seq_length"), f"{left}, between all turns at full length: raise the last of these"

    @property
    def result_tokens(self) -> int:
        """Returns the most tokens between two turns: an equal share of what prompt and answers leave."""
        between = len(self.budgets) - 1
        left = self.model.max_seq_length - self.generation.max_prompt_length - sum(self.budgets)
        return left // between if between else 0

    @property
    def budgets(self) -> tuple[int, ...]:
        """Returns the most new tokens of each turn: one without tools."""
        return (self.generation.most_tokens,) * (self.tools.max_turns if self.tools.names else 1)

    @property
    def prompt_limit(self) -> tuple[str, int]:
        """Returns the key of the most tokens of a prompt, and these."""
        return "generation.max_prompt_length", self.generation.max_prompt_length

    def smoke_overrides(self, examples: int) -> dict[str, Any]:
        """Returns the changes for a run of 2 steps, with small groups and a teacher who always helps.

        Length costs, so that rewards differ and weights move even if no answer is right.
        """
        batch, budget = smoke_batch(examples), min(self.generation.most_tokens, SMOKE_TOKENS)
        changes = super().smoke_overrides(examples) | {
            "generation.max_new_tokens": AtMost(SMOKE_TOKENS),
            "generation.thinking.budget_tokens": AtMost(SMOKE_TOKENS),
            "train.steps": 2,
            "train.batch_size": batch,
            "train.group_size": AtMost(4),
            "train.minibatches": AtMost(min(batch, 2)),
            "train.overlong_buffer": budget - 1,
            "tools.max_turns": AtMost(2),
        }
        if self.opponent and self.opponent.snapshots:
            changes["opponent.snapshots.every_steps"] = AtMost(1)
        if self.teacher:
            changes |= {"teacher.hint.neither": 1.0, "teacher.hint.opponent_only": 1.0}
        return changes

"""The config of train.py: two attempts or more, and SCoRe's two stages."""

from typing import Annotated, Any, Literal

from pydantic import Field

from lib.core.config.feedback import SelfFeedback, TestsFeedback, VerdictFeedback
from lib.core.config.rl import Eval, KlKind, RLConfig, TrainedSampling, TrainLoop
from lib.core.config.section import Conflicts, Count, CountOrZero, Fraction, Name, Section, Share, Weight
from lib.core.config.shared import SMOKE_TOKENS, AtMost, smoke_batch

ATTEMPT = "attempt"  # what a turn of the policy is that answers the task; the others are reviews


class Prompts(Section):
    """The texts of the prompts. `{column}` in `user` is filled from the row; double a brace to keep it."""

    system: str = ""  # system message; empty: none
    user: Name = "Question:\n{question}"  # first user message
    self_correction: Name  # the user message after attempt 1 that asks for attempt 2; the same for all rows
    history: Literal["full", "plain_text", "answer_only"] = "full"
    # how attempt 2 sees attempt 1. full: exactly the tokens that were sampled; plain_text: without the think tags, but
    # with the text between them; answer_only: without the think block
    feedback: Literal["none", "verdict", "tests", "tool", "self"] = "none"
    # what the user says after an attempt, as prompt that is never trained. none: self_correction; verdict: whether the
    # attempt is right; tests: which public test it fails first; tool: what python.run printed for its calls; self:
    # asks for the policy's own review first, which is a turn of its own. Each evaluation then has another one next to
    # it, without any feedback
    stop: Literal["never", "verdict", "self"] = "never"
    # which attempt is the last before train.attempts or eval.attempts are used up. never: none; verdict: a right one,
    # which takes an oracle at evaluation; self: one that its own check finds right. With each evaluation there is
    # then one that neither stops nor has feedback
    feedback_tokens: Annotated[int, Field(ge=16)] = 128
    # most tokens that a feedback adds to those of self_correction; of a longer one the middle is cut
    verdict: VerdictFeedback = VerdictFeedback()
    tests: TestsFeedback = TestsFeedback()
    self: SelfFeedback = SelfFeedback()

    @property
    def reviewed_by(self) -> str:
        """Returns the kind of review that the policy writes between attempts, check or reflection; "" for none."""
        return ("check" if self.self.right else "reflection") if self.feedback == "self" else ""

    def _conflicts(self) -> Conflicts:
        if self.stop == "self" and self.reviewed_by != "check":
            keys = ("stop", "feedback", "self.right")
            yield keys, "no one would judge: set feedback: self, with a phrase for self.right"
        if self.reviewed_by and self.history != "full":
            keys = ("feedback", "history")
            yield keys, "a review is read after the attempt as it was sampled: set history: full"


class Generation(TrainedSampling):
    """Sampling of two attempts and its budgets, in tokens."""

    max_prompt_length_attempt1: Count = 384  # rows with a longer first prompt are left out, and counted
    max_prompt_length_attempt2: Count = 1024  # if too long, the middle of attempt 1 is cut out, never the instruction
    max_new_tokens_attempt1: Count = 512  # budget of attempt 1, its end token included
    max_new_tokens_attempt2: Count = 512  # budget of attempt 2

    def _conflicts(self) -> Conflicts:
        first, second = self.max_prompt_length_attempt1, self.max_prompt_length_attempt2
        if second < first:
            yield (
                ("max_prompt_length_attempt1", "max_prompt_length_attempt2"),
                f"max_prompt_length_attempt2 = {second} is below max_prompt_length_attempt1 = {first}, but the second "
                "prompt holds the first one: raise it",
            )


class ScoreTrain(TrainLoop):
    """SCoRe (Kumar et al. 2024, arXiv 2409.12917): equations 3 and 4 and their knobs; and other recipes on its tree."""

    recipe: Literal["score", "multiturn", "thinktwice", "ufo", "pag", "reflect"] = "score"
    # what attempts earn; each is a file in lib/rl/recipes/ that says why. Only score has a stage I; the steps of others
    # are those of stage II. score: equations 3 and 4; multiturn: the last attempt's reward, to all of its chat;
    # thinktwice: each attempt whether it is right; ufo: the last attempt's reward, decayed, less for attempts that
    # answer nothing new; pag: attempts their own reward, checks whether they judge right; reflect: reflections whether
    # the next attempt is right, attempts nothing, held by beta1
    stage1_steps: CountOrZero | None = None  # optimizer steps of stage I; null: stage1_epochs decides
    stage2_steps: CountOrZero | None = None  # optimizer steps of stage II; null: stage2_epochs decides
    stage1_epochs: Weight = 1.0  # passes over the training rows
    stage2_epochs: Weight = 1.0  # passes over the training rows
    stage1_batch_size: Count = 16  # prompts per optimizer step, over all processes together
    stage2_batch_size: Count = 16  # prompts per optimizer step, over all processes
    attempts_per_prompt: Count = 4  # K1: first attempts at each prompt
    revisions_per_attempt: Count = 2  # K2: second attempts after each first attempt
    followed_attempts: Count | None = None  # how many of the first attempts have revisions; null: all of them
    attempts: Annotated[int, Field(ge=2)] = 2
    # attempts in a chat, each asked to correct the one before it. Of those after the second, one follows each revision,
    # within the budgets of attempt 2
    discount: Share = 1.0  # what attempt t earns by its reward is multiplied by this to the power of t - 1
    alpha: Weight = 1.0
    # weight of the bonus alpha * (r2 - r1), paid to attempt 2 only. The paper's 10 is for one revision per attempt:
    # comparing several revisions cancels r1, so that the bonus only adds alpha times what attempt 2 earns in bonus_on
    beta1: Weight = 0.01  # KL weight of all attempts
    beta2: Weight = 0.1  # additional KL weight of attempt 1 in stage I
    beta1_in_stage1: bool = True  # true: beta1 applies in stage I too, as in the paper
    bonus_on: Literal["match", "reward"] = "match"
    # what the bonus compares. match: whether attempts are right, so fixing the format earns no bonus; reward: rewards
    bonus_to: Literal["later", "both"] = "later"
    # which of two attempts earns the bonus. later: the one that has gained; both: the one before it too, which rewards
    # failing first and is there for experiments
    baseline: Literal["leave_one_out", "batch", "none"] = "leave_one_out"
    # what is subtracted from a reward: the mean of the others of its group, that of the others of the batch, or
    # nothing. With none, rewards that are never negative can only make sampled text more likely
    kl: KlKind = "k3"  # estimator of the KL (lib/rl/losses.py)
    kl_sample: Share = 1.0
    # share of the first attempts without an advantage (their own or a revision's) that is drawn for the KL, where it
    # counts 1 / kl_sample times; the others need no forward pass. Unbiased, but noisier
    length_norm: Literal["sequence", "constant", "budget", "token"] = "sequence"
    # weight of each token of an attempt y. sequence: 1/|y|, which makes long wrong answers cheap; constant:
    # 1/max_new_tokens (Dr. GRPO), using the larger of the two limits, so that tokens of both attempts weigh the same;
    # budget: 1/max_new_tokens of its own attempt; token: a mean over all tokens of the step
    base_first_attempts: Fraction = 0.0
    # share of prompts, drawn by lot, whose first attempts are sampled from the base model, as context only

    def has_steps(self, stage: int) -> bool:
        """True if a stage trains anything; stage I is SCoRe's."""
        if stage == 1 and self.recipe != "score":
            return False
        steps = getattr(self, f"stage{stage}_steps")
        return (getattr(self, f"stage{stage}_epochs") if steps is None else steps) > 0

    @property
    def followed(self) -> int:
        """Returns the number of first attempts that have revisions."""
        return min(self.followed_attempts or self.attempts_per_prompt, self.attempts_per_prompt)

    def _conflicts(self) -> Conflicts:
        if self.recipe != "score" and self.stage1_steps:
            keys = ("recipe", "stage1_steps")
            yield keys, f"{self.recipe} has no stage I: set stage1_steps: 0, and give its steps to stage II"
        if (self.followed_attempts or 0) > self.attempts_per_prompt:
            keys = ("followed_attempts", "attempts_per_prompt")
            yield keys, f"of {self.attempts_per_prompt} first attempts no more can be followed: lower the former"
        is_paid_by_the_next = self.recipe in ("multiturn", "ufo") or (self.recipe, self.bonus_to) == ("score", "both")
        if is_paid_by_the_next and self.followed < self.attempts_per_prompt:
            keys = ("recipe", "bonus_to", "followed_attempts")
            yield (
                keys,
                "a first attempt is paid by what follows it, and nothing follows some: set followed_attempts: null",
            )
        if self.recipe == "thinktwice" and self.followed != 1:
            yield ("recipe", "followed_attempts"), "thinktwice reviews one solution of each prompt: set the latter to 1"
        if self.recipe == "thinktwice" and self.revisions_per_attempt == 1 and self.baseline == "leave_one_out":
            keys = ("recipe", "revisions_per_attempt")
            yield keys, "a single review has none to be compared with: raise revisions_per_attempt"
        if self.recipe == "thinktwice" and self.overlong_buffer:
            yield ("recipe", "overlong_buffer"), "thinktwice pays right answers alone: set overlong_buffer: 0"
        if self.recipe == "ufo" and self.discount == 1:
            yield ("recipe", "discount"), "ufo pays less for each further attempt: set a discount below 1, such as 0.5"
        if not (self.has_steps(1) or self.has_steps(2)):
            yield ("stage1_steps", "stage2_steps"), "both stages have 0 steps: nothing would be trained"
        if self.kl_sample < 1 and self.kl == "k1_in_reward":
            keys = ("kl_sample", "kl")
            yield keys, "a KL in the reward is of every attempt, none is drawn: set kl_sample: 1, or another kl"
        yield from self._conflicts_of_baseline()
        yield from super()._conflicts()

    def _conflicts_of_baseline(self) -> Conflicts:
        if self.baseline != "leave_one_out" or self.attempts_per_prompt > 1:
            return
        if self.revisions_per_attempt == 1:
            yield (
                ("baseline", "attempts_per_prompt", "revisions_per_attempt"),
                "leave_one_out needs at least two completions to compare: raise attempts_per_prompt or "
                "revisions_per_attempt, or set baseline: batch or none",
            )
        else:
            yield (
                ("baseline", "attempts_per_prompt"),
                "leave_one_out needs attempts_per_prompt of at least 2 to compare first attempts: raise it, or set "
                "baseline: batch",
            )


class ScoreEval(Eval):
    """Held-out accuracy of several attempts. Questions that are reported and questions to choose by never mix."""

    attempts: Annotated[int, Field(ge=2)] | None = None  # attempts in a chat; null: train.attempts


class ScoreConfig(RLConfig):
    """train.py"""

    prompts: Prompts
    generation: Generation = Generation()
    train: ScoreTrain = ScoreTrain()
    eval: ScoreEval = ScoreEval()

    def _conflicts(self) -> Conflicts:
        gen, limit = self.generation, self.model.max_seq_length
        if self.train.recipe == "thinktwice" and self.feedback_fields():
            keys = ("train.recipe", "prompts.feedback", "prompts.stop")
            yield keys, "thinktwice reviews without a sign of what is right: set feedback: none and stop: never"
        if self.train.recipe == "ufo" and self.prompts.stop != "verdict":
            yield ("train.recipe", "prompts.stop"), "ufo asks again after wrong attempts alone: set stop: verdict"
        keys = ("train.recipe", "prompts.feedback", "prompts.stop")
        protocol = self.prompts.feedback, self.prompts.stop
        if self.train.recipe == "pag" and protocol != ("self", "self"):
            yield keys, "pag revises what its own check finds wrong: set feedback: self and stop: self"
        if self.train.recipe == "reflect" and protocol != ("self", "verdict"):
            yield keys, "reflect has only failures reviewed and retried: set feedback: self and stop: verdict"
        later = max(self.train.attempts, self.eval_attempts) - 1
        for attempt, times, reviews in ((1, 1, 0), (2, later, later * bool(self.prompts.reviewed_by))):
            prompt_key, new_key = f"max_prompt_length_attempt{attempt}", f"max_new_tokens_attempt{attempt}"
            need = getattr(gen, prompt_key) + times * getattr(gen, new_key) + reviews * self.prompts.self.max_new_tokens
            if need > limit:
                reviewed = f" + {f'{reviews} * ' if reviews > 1 else ''}prompts.self.max_new_tokens" if reviews else ""
                yield (
                    (f"generation.{prompt_key}", f"generation.{new_key}", "model.max_seq_length"),
                    f"{prompt_key} + {f'{times} * ' if times > 1 else ''}{new_key}{reviewed} = {need} exceeds "
                    f"model.max_seq_length = {limit}: lower one of the first two or raise the last",
                )
        if self.distill and self.distill.shown and self.prompts.history != "full":
            keys = ("distill.shown", "prompts.history")
            yield keys, "a teacher that sees more reads earlier attempts as they were sampled: set history: full"
        yield from super()._conflicts()

    def evaluations(self, when: str) -> list[tuple[Eval, dict[str, Any]]]:
        """Returns the evaluations of a moment; where attempts get feedback, one of them is without."""
        plain = [(self.eval, {"with_feedback": False})] if self.feedback_fields() else []
        return [*super().evaluations(when), *plain]

    def feedback_fields(self, with_feedback: bool = True) -> dict[str, str]:
        """Returns the fields of an evaluation row that describe feedback and stop rule; {} if all rows share them."""
        feedback, stop = str(self.prompts.feedback), str(self.prompts.stop)
        if feedback == "none" and stop == "never":
            return {}
        if not with_feedback:
            return {"feedback": "none"}
        fields: dict[str, str] = {"feedback": feedback if feedback != "none" else "stop"}
        return fields if stop == "never" else fields | {"stop": stop}

    @property
    def turns(self) -> dict[str, int]:
        """Returns the turns of the policy in a chat of training, in order, each with the most new tokens it has.

        They are named by what they are and by the attempt that they are, or are about: attempt1, check1, attempt2.
        """
        return self._turns_of(self.train.attempts)

    @property
    def budgets(self) -> tuple[int, ...]:
        """Returns the most new tokens in training, by turn."""
        return tuple(self.turns.values())

    @property
    def eval_budgets(self) -> tuple[int, ...]:
        """Returns the most new tokens in evaluations, by turn."""
        return tuple(self._turns_of(self.eval_attempts).values())

    @property
    def eval_attempts(self) -> int:
        """Returns the attempts in a chat of an evaluation."""
        return self.eval.attempts or self.train.attempts

    def without_feedback(self) -> "ScoreConfig":
        """Returns this config for chats with nothing but `prompts.self_correction` between attempts."""
        return self.model_copy(
            update={"prompts": self.prompts.model_copy(update={"feedback": "none", "stop": "never"})}
        )

    def _turns_of(self, attempts: int) -> dict[str, int]:
        gen, review = self.generation, self.prompts.reviewed_by
        turns = {f"{ATTEMPT}1": gen.max_new_tokens_attempt1}
        for number in range(2, attempts + 1):
            if review:
                turns[f"{review}{number - 1}"] = self.prompts.self.max_new_tokens
            turns[f"{ATTEMPT}{number}"] = gen.max_new_tokens_attempt2
        return turns

    @property
    def prompt_limit(self) -> tuple[str, int]:
        """Returns the key of the most tokens of a first prompt, and these."""
        return "generation.max_prompt_length_attempt1", self.generation.max_prompt_length_attempt1

    def smoke_overrides(self, examples: int) -> dict[str, Any]:
        """Returns the changes for a run of a few steps, with small groups and answers of at most SMOKE_TOKENS.

        The first stage that has steps gets two, with an evaluation between them; the other gets one. Length costs, so
        that rewards differ and weights move even if no answer is right.
        """
        first, second = self.train.has_steps(1), self.train.has_steps(2)
        shorter = min(*self.budgets, SMOKE_TOKENS)
        return super().smoke_overrides(examples) | {
            "generation.max_new_tokens_attempt1": AtMost(SMOKE_TOKENS),
            "generation.max_new_tokens_attempt2": AtMost(SMOKE_TOKENS),
            "train.stage1_steps": 2 if first else 0,
            "train.stage2_steps": (1 if first else 2) if second else 0,
            "train.stage1_batch_size": smoke_batch(examples),
            "train.stage2_batch_size": smoke_batch(examples),
            "train.attempts_per_prompt": AtMost(2),
            "train.revisions_per_attempt": AtMost(2),
            **({"train.followed_attempts": AtMost(2)} if self.train.followed_attempts else {}),
            **({"prompts.self.max_new_tokens": AtMost(SMOKE_TOKENS)} if self.prompts.reviewed_by else {}),
            "train.overlong_buffer": 0 if self.train.recipe == "thinktwice" else shorter - 1,
        }

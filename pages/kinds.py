"""Presents the runs of each script: their charts, columns and captions."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from lib.core.console import WHEN, attempts_of, in_brackets, interval, share
from lib.core.errors import ConfigError
from lib.rl.watch import repeats_itself
from lib.run.runlog import is_number
from pages.paired import compare


@dataclass(frozen=True)
class LineChart:
    """One chart: the keys of the rows to plot, each with a label and a colour."""

    title: str
    note: str
    series: dict[str, tuple[str, str]]
    of: str = "metrics"  # or "evaluations": the rows
    log: bool = False
    floor: float | None = None  # the axis starts here
    percent: bool = False
    hero: bool = False  # as wide as the page


@dataclass(frozen=True)
class PageKind:
    """Says how the runs of one script are shown."""

    accuracies: tuple[str, ...]  # of the texts that training changes; every sound evaluation has them
    nothing: str  # said where there is no evaluation
    headline: Callable[[list[dict]], str]  # the milestones as one sentence
    details: Callable[[list[dict]], str]  # what else they say, as sentences
    columns: Callable[[list[dict]], dict[str, tuple[str, str]]]  # of a table of evaluations: key, heading, colour
    legend: Callable[[list[dict]], str]  # of that table
    charts: dict[str, tuple[LineChart, ...]]
    is_staged: bool = True


WELL_FORMED = "Well-formed"
BANDS = "the bands are 95 % intervals"
SPREAD = "standard deviation, mean over the step"
# runs have two attempts, seldom more; series and columns that no row has are left out
ATTEMPTS = {1: ("attempt 1", "one"), **{number: (f"attempt {number}", "two") for number in range(2, 10)}}
FAMILY_COLOURS = ("two", "one", "good", "bad", "muted", "ink")


def of_attempts(key: str) -> dict[str, tuple[str, str]]:
    """Returns the series of a quantity that all attempts have."""
    return {f"{key}_attempt{number}": look for number, look in ATTEMPTS.items()}


HELD_OUT = (
    LineChart("Accuracy on held-out questions", f"Exact match; {BANDS}.",
              of_attempts("acc"), "evaluations", percent=True, hero=True),
    LineChart("What correcting changes", f"Share of all held-out answers; {BANDS}.",
              {"i_to_c": ("wrong → right", "good"), "c_to_i": ("right → wrong", "bad")}, "evaluations", floor=0,
              percent=True),
    LineChart("Its own checks", f"How often the policy finds right attempts right, and wrong ones wrong; {BANDS}.",
              {"acc_check_right": ("right ones", "good"), "acc_check_wrong": ("wrong ones", "bad")}, "evaluations",
              percent=True),
    LineChart("Gain of a second look", "Accuracy of the last attempt minus that of attempt 1, on the same questions.",
              {"delta": ("delta", "two")}, "evaluations", percent=True),
)  # fmt: skip
DISTILLATION = (
    LineChart("Distance from the teacher", "KL in nats per distilled token, logarithmic.",
              {"distill_kl": ("kl", "two")}, log=True),
    LineChart("Distilled", "Answers that the teacher read, of those that it might.",
              {"distilled": ("answers", "two")}, floor=0, percent=True),
)  # fmt: skip
TRAINING = (
    LineChart("Accuracy in training", "Exact match of the answers sampled in each step; bold is a moving mean.",
              of_attempts("acc"), percent=True),
    LineChart("Reward in training", "As the reward function returns it, before bonus and baseline.",
              of_attempts("reward")),
    LineChart("Distance from the base model", "KL in nats per token, logarithmic. Stage I holds attempt 1 in place.",
              of_attempts("kl"), log=True),
    LineChart("Spread of rewards", f"Among answers that are compared with each other: {SPREAD}.",
              of_attempts("reward_std"), floor=0),
    LineChart("Idle answers", "Second attempts without an advantage: they earned what those next to them did.",
              {"zero_advantage": ("idle", "two")}, floor=0, percent=True),
    LineChart("Length", "Tokens per attempt, the end token included.",
              of_attempts("length"), floor=0),
    LineChart("Truncation", "Answers that ran out of tokens before they ended.",
              of_attempts("truncated"), floor=0, percent=True),
    LineChart(WELL_FORMED, "Answers that have the declared format, with the answer in its place.",
              of_attempts("well_formed"), percent=True),
    *DISTILLATION,
)  # fmt: skip
PLAY_HELD_OUT = (
    LineChart("Accuracy on held-out questions", f"Exact match of single answers; {BANDS}.",
              {"acc": ("pass@1", "two"), "opponent_acc": ("opponent", "one")}, "evaluations", percent=True, hero=True),
    LineChart("Games won on held-out questions", f"Of those that one side won; {BANDS}.",
              {"win_rate": ("won", "good")}, "evaluations", floor=0, percent=True),
    LineChart("Games in training", "Share that the policy won, and its opponent, of the prompts drawn in a step.",
              {"wins": ("won", "good"), "losses": ("lost", "bad")}, floor=0, percent=True),
)  # fmt: skip
PLAY_TRAINING = (
    LineChart("Accuracy in training", "Right answers, and prompts with at least one; bold is a moving mean.",
              {"acc": ("right", "two"), "solved": ("solved", "good")}, percent=True),
    LineChart("Reward in training", "As the reward function returns it, before games and baseline.",
              {"reward": ("reward", "two")}),
    LineChart("Spread of rewards", f"Among the answers to a prompt, games included: {SPREAD}.",
              {"reward_std": ("spread", "two")}, floor=0),
    LineChart("Equal groups", "Prompts whose answers all earn the same: they teach nothing.",
              {"equal_groups": ("equal", "two")}, floor=0, percent=True),
    LineChart("Clipped", "Tokens that the clip range keeps from learning: below it bad ones, above it good ones.",
              {"clipped_low": ("below", "bad"), "clipped_high": ("above", "good")}, floor=0, percent=True),
    LineChart("Distance of an update", "Mean log ratio of an answer's tokens, new over old policy: percentiles.",
              {"log_ratio_p5": ("5 %", "bad"), "log_ratio_p95": ("95 %", "good")}),
    LineChart("Entropy", "In nats per trained token.", {"entropy": ("entropy", "two")}, floor=0),
    LineChart("Distance from the base model", "KL in nats per token, logarithmic.", {"kl": ("kl", "two")}, log=True),
    LineChart("Length", "Tokens per answer, the end token included.",
              {"length": ("answer", "two"), "thinking_tokens": ("thinking", "one")}, floor=0),
    LineChart("Truncation", "Answers that ran out of tokens before they ended.",
              {"truncated": ("cut off", "two")}, floor=0, percent=True),
    LineChart(WELL_FORMED, "Answers that have the declared format, with the answer in its place.",
              {"well_formed": ("well-formed", "two")}, percent=True),
    *DISTILLATION,
)  # fmt: skip
IMITATION = (
    LineChart("Loss", "Mean cross-entropy of the trained tokens, in nats.",
              {"loss": ("loss", "two")}, hero=True),
    LineChart("Tokens right", "Share of trained tokens that the model finds most likely.",
              {"mean_token_accuracy": ("tokens right", "two")}, percent=True),
)  # fmt: skip


def improves(rows: list[dict]) -> str:
    """Whether the last attempt beats attempt 1, and did before; how often it is right; and a loss of attempt 1."""
    now, last, first = rows[-1], attempts_of(rows[-1])[-1], rows[0].get("acc_attempt1")
    text = verdict(now, "delta", "beats attempt 1", "does not measurably beat attempt 1", "is worse than attempt 1")
    if len(rows) > 1 and verdict(rows[0], "delta") == verdict(now, "delta") == "above":
        text += ", not measurably more than before training" if moved(rows, "delta") not in ("rose", "went") else ""
    text = f"Attempt {last} {text}{': it ' if text else ''}is right on {share(now[f'acc_attempt{last}'])} of the "
    text += f"held-out questions{before_training(rows, f'acc_attempt{last}')}."
    if is_number(first) and first > now["acc_attempt1"]:
        text += f" Attempt 1 {moved(rows, 'acc_attempt1')} from {share(first)} to {share(now['acc_attempt1'])}."
    return text


def changes_in_words(rows: list[dict]) -> str:
    """Describes what correcting changes, and a run that copies or only draws again."""
    now = rows[-1]
    texts = [f"Attempt 1 is right on {share(now['acc_attempt1'])}{before_training(rows, 'acc_attempt1')}"]
    if verdict(now, "delta"):
        texts.append(f"Wrong → right less right → wrong is {in_points(now, 'delta')}{before_training(rows, 'delta')}")
        was = rows[-2].get("delta") if len(rows) > 2 else None
        texts[-1] += f"; {WHEN.get(rows[-2]['when'], 'before')} it was {share(was, '+')}" if is_number(was) else ""
    if is_number(now.get("repeat_rate")):
        start, rate = "It copies: it" if repeats_itself(now) else "It", in_brackets(now, "repeat_rate")
        texts.append(f"{start} repeats {rate} of its wrong answers{before_training(rows, 'repeat_rate')}")
    if word := verdict(now, "revised_minus_fresh", "better", "not measurably better or worse", "worse"):
        texts.append(f"A revision is {word} than a fresh draw: {in_points(now, 'revised_minus_fresh')}")
    return " ".join(f"{text}." for text in texts)


def before_training(rows: list[dict], key: str) -> str:
    """Returns a share, or delta, before training as the end of a sentence; "" where it is unknown."""
    note = ", which is no measurable difference" if moved(rows, key).startswith("did not") else ""
    known = len(rows) > 1 and is_number(rows[0].get(key))
    return f"; before training it was {share(rows[0][key], '+' if key == 'delta' else '')}{note}" if known else ""


def verdict(row: dict, key: str, above: str = "above", level: str = "level", below: str = "below") -> str:
    """Returns the word for a difference whose interval is above 0, has it inside, or is below; "" without one."""
    low, high = row.get(f"{key}_ci95") or (None, None)
    if not all(map(is_number, (low, high, row.get(key)))):
        return ""
    if key == "delta" and is_number(row.get("mcnemar_p")) and row["mcnemar_p"] >= 0.05:
        return level  # of few questions, Student's interval may leave out 0 where the exact test finds nothing
    return above if low > 0 else below if high < 0 else level


def in_points(row: dict, key: str) -> str:
    """Returns a difference with its interval, as `+3.2 points [-0.6 +7.0]`."""
    return f"{share(row[key], '+')} points [{interval(row[f'{key}_ci95'], '+')}]"


def plays(rows: list[dict]) -> str:
    """Describes the share of right single answers, and whether it changed where first and last can be paired."""
    now = share(rows[-1]["acc"])
    if len(rows) == 1:
        return f"Pass@1 on held-out questions is {now}."
    return f"Pass@1 on held-out questions {moved(rows, 'acc')} from {share(rows[0]['acc'])} to {now}."


def moved(rows: list[dict], key: str) -> str:
    """Returns the verb for how an accuracy went from the first row to the last; "went" if they cannot be paired."""
    with suppress(ConfigError):  # other questions, or rows of an earlier version
        for pair in compare(rows[0], rows[-1], ("first", "last")):
            if pair["of"] == key:
                verb = "rose" if pair["difference"] > 0 else "fell"
                return verb if pair["differs"] else "did not measurably change: it went"
    return "went"


def held_out_loss(rows: list[dict]) -> str:
    """Returns the first and the last loss on held-out rows as a sentence; "" where it was not measured."""
    texts = [f"{row['loss']:.4f} at step {row['step']}" for row in rows if is_number(row.get("loss"))]
    if not texts:
        return ""
    return f"The loss on held-out rows, in nats per token, was {' and '.join(dict.fromkeys((texts[0], texts[-1])))}."


def games_in_words(rows: list[dict]) -> str:
    """Whether the policy beats its opponent; "" without games."""
    now = rows[-1]
    if not is_number(now.get("win_rate")):
        return ""
    won = in_brackets({"win_rate_ci95": None} | now, "win_rate")
    return f"Against its opponent the policy won {won} of the games there that one side won."


def columns_of_play(rows: list[dict]) -> dict[str, tuple[str, str]]:
    """Returns the columns of pass@1, pass@k, well-formed answers and games, where there are any."""
    passes = [key for row in rows for key in row if key.startswith("pass@") and not key.endswith("_ci95")]
    looks = {"acc": ("pass@1", "two"), **{key: (key, "muted") for key in passes}}
    looks |= {"well_formed": ("well-formed", "muted")}
    looks |= {"win_rate": ("games won", "muted"), "opponent_acc": ("opponent", "one")}
    return {key: look for key, look in looks.items() if any(is_number(row.get(key)) for row in rows)}


def legend_of_play(rows: list[dict]) -> str:
    """Explains what a game is, and how many there were in the last evaluation."""
    row, text = rows[-1], "pass@k: one of k answers at least is right."
    wins, losses = row.get("wins"), row.get("losses")
    if is_number(wins) and is_number(losses):
        text += f" Games won: of those that one side won, here {wins + losses} of {row.get('games', '?')}, by the "
        text += "policy's first answer against the opponent's one. Opponent: how many of its answers are right."
    if row.get("missing_games"):
        text += f" {row['missing_games']} games more could not be judged, or the opponent was missing."
    return text


def columns_of_attempts(rows: list[dict]) -> dict[str, tuple[str, str]]:
    """Returns the columns of all attempts, and of further figures where some row has them."""
    attempts = {number for row in rows for number in attempts_of(row)} | {1, 2}
    looks = {
        **{f"acc_attempt{number}": ATTEMPTS[number] for number in sorted(attempts)},
        "delta": ("delta", "muted"), "i_to_c": ("i→c", "muted"), "c_to_i": ("c→i", "muted"),
    }  # fmt: skip
    more = {
        "revised_after_wrong": ("revised", "two"), "fresh_after_wrong": ("fresh", "one"),
        "revised_minus_fresh": ("revised − fresh", "muted"),
        **{f"well_formed_attempt{i}": (f"well-formed {i}", "muted") for i in sorted(attempts)},
        "acc_check": ("checks", "muted"), "acc_check_right": ("checks of right", "muted"),
        "acc_check_wrong": ("checks of wrong", "muted"),
    }  # fmt: skip
    return looks | {key: look for key, look in more.items() if any(is_number(row.get(key)) for row in rows)}


def legend_of_attempts(rows: list[dict]) -> str:
    """Explains the names of the columns; a greedy row may be the last one, and has not all of them."""
    text = "i→c: wrong at first, then right; c→i: right at first, then wrong; delta = i→c − c→i. An attempt 2 that "
    text += "solves the question anew may win, too: evaluate.py --swap-attempts says whether it reads attempt 1."
    if any(is_number(row.get("revised_minus_fresh")) for row in rows):
        text += " Revised: how often attempt 2 is right after a wrong attempt 1; fresh: how often another first "
        text += "attempt to the same question is."
    if any(is_number(row.get("acc_check")) for row in rows):
        text += " Checks: how often the policy judges its own attempts as the judge does."
    return text


SCORE = PageKind(
    accuracies=("acc_attempt1", "acc_attempt2"), nothing="No evaluation of both attempts", headline=improves,
    details=changes_in_words, columns=columns_of_attempts, legend=legend_of_attempts,
    charts={"Learning": HELD_OUT, "Training": TRAINING},
)  # fmt: skip
SELF_PLAY = PageKind(
    accuracies=("acc",), nothing="No evaluation yet", headline=plays, details=games_in_words,
    columns=columns_of_play, legend=legend_of_play,
    charts={"Learning": PLAY_HELD_OUT, "Training": PLAY_TRAINING}, is_staged=False,
)  # fmt: skip
IMITATES = replace(SCORE, accuracies=(), nothing="No evaluation so far", charts={"Training": IMITATION})
KINDS = (SCORE, SELF_PLAY, IMITATES)

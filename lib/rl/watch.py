"""Watches a run: reports what a colleague would notice in its numbers, once when it begins and once when it ends.

`Watch` reads each row of metrics.jsonl and of evaluations.jsonl and answers with alarms; lib/rl/checks.py has what it
looks for.
"""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from statistics import fmean
from typing import Any

from lib.core.stats import mean_interval
from lib.rl.checks import BESIDE, CHECKS, LEVEL, RECENT, SHARES, Check, History, Seen, quantity_of

QuestionCounts = dict[str, list[int]]  # `per_question` of an evaluation
QuestionShares = dict[str, float]  # the same of one question, divided by `n`
COLLAPSE = "collapse"
STATE = ("stage", "on", "best", "last", "marks", "recent", "told")  # attributes of a Watch, next to its history
OF_EVALUATIONS = ("held_out", "accuracy_lost", "answers_")  # alarms; they outlast a stage


@dataclass(frozen=True)
class Alarm:
    """A row of alarms.jsonl, written when something begins and when it ends; its text is one sentence."""

    alarm: str  # the check and the quantity, such as "copies.answer_changed"
    event: str  # "begins" or "ends"
    severity: str  # "collapse" or "warning"
    stage: int
    step: int
    text: str

    @property
    def begins(self) -> bool:
        """True if the alarm begins here, rather than ends."""
        return self.event == "begins"


# of held-out answers
BEYOND = 2.0  # half-widths of the paired interval: the best was selected among several, so one is not enough
FELL, COLLAPSED_BY = 0.05, 0.15  # drops in accuracy that count as worse, and as beyond recovery
LOSS_ROSE = 0.02  # nats; and 2 % of the best loss
SPOILED = 0.08  # a rise of right answers made wrong; smaller ones come and go while attempt 2 learns
POOLED = 3  # evaluations that are compared together, too: what falls slowly is seen earlier
REPEATED = 0.9  # share of the wrong answers; where as many first attempts are right, the rest may be beyond help


@dataclass(frozen=True)
class Change:
    """A mean difference over questions, in pairs, and half of its 95 % interval."""

    before: float
    now: float
    half: float

    @classmethod
    def of(cls, pairs: list[tuple[float, float]]) -> "Change":
        """Returns the change of pairs (before, now).

        A pair more in each direction keeps the interval honest where few pairs differ (Bonett and Price 2012).
        """
        interval = mean_interval([*(now - before for before, now in pairs), 1.0, -1.0])
        return cls(fmean(before for before, _ in pairs), fmean(now for _, now in pairs), _half(interval))

    @property
    def by(self) -> float:
        """Returns the mean difference."""
        return self.now - self.before

    @property
    def sureness(self) -> float:
        """Returns the mean difference in half-widths of its interval."""
        return self.by / self.half

    @property
    def interval(self) -> str:
        """Formats both ends."""
        return f"{self.by - self.half:+.3f} to {self.by + self.half:+.3f}"


class Watch:
    """State with a lifetime: the numbers of the current stage, the best evaluation, the active alarms.

    `checks` apply to rows of metrics.jsonl. After saving and loading its state, the watch raises the same alarms.
    """

    def __init__(self, checks: Sequence[Check] = CHECKS):
        self._checks = tuple(checks)
        self._quantities = frozenset(key for check in checks for key in check.keys) | BESIDE
        self.history = History(self._quantities)
        self._stage = 0
        self._on: dict[str, dict[str, Any]] = {}  # active alarm -> what it has seen, and its place in `_told`
        self._best: dict[str, Any] = {}  # the best of the stage's held-out evaluations
        self._last: dict[str, Any] = {}  # the last of them
        self._marks: dict[str, dict[str, Any]] = {}  # evaluations: the run's first, last, and the last stage's last
        self._recent: list[list[QuestionCounts]] = []  # the questions of the last POOLED evaluations, without the start
        self._told: list[dict[str, Any]] = []  # every alarm so far, for the last lines of the run

    def step(self, row: Mapping[str, Any]) -> list[Alarm]:
        """Returns the alarms that begin or end with this row of metrics.jsonl, in the order of the table."""
        stage, row = row.get("stage", 1), _standing(row)
        alarms = []
        if stage != self._stage:
            place, on = {"stage": stage, "step": row["step"]}, list(self._on)
            alarms = [self._end(name, place, "with its stage") for name in on if not name.startswith(OF_EVALUATIONS)]
            self.history, self._stage = History(self._quantities), stage
        self.history.add(row)
        for check in self._checks:
            for key in _keys_of(check, row):
                alarms += self._look(check, key, row["step"])
        return alarms

    def evaluation(self, row: Mapping[str, Any]) -> list[Alarm]:
        """Returns the alarms that begin or end with this row of evaluations.jsonl.

        Alarms that a run may act on compare the last attempt, prompt by prompt, with the stage's best on the questions
        that training selects by: row["selection"]. The others compare all questions and attempts with the start of the
        run and the end of the last stage, and are warnings: nothing is chosen by questions that are reported.
        """
        place = {"stage": row.get("stage", 1), "step": row["step"]}
        if "loss" in row:
            return self._held_out_loss(row["loss"], place)
        if "selection" not in row:  # a greedy row next to a sampled one
            return []
        selection = row["selection"]  # None without rows for it
        keeps = not self._marks or self.keeps_attempt1(row)
        alarms = self._held_out_answers(selection["per_prompt"], keeps, place) if selection else []
        return alarms + (self._since_marks(row, place) if _questions(row) else [])

    def forget(self, text: str = "") -> list[Alarm]:
        """Forgets the recent steps and ends all alarms after a return to an earlier checkpoint, another policy."""
        place = {"stage": self._stage or 1, "step": self.history.steps[-1] if self.history.steps else 0}
        alarms = [self._end(name, place, text or "by going back") for name in list(self._on)]
        self.history, self._recent = History(self._quantities), []
        return alarms

    def keeps_attempt1(self, row: Mapping[str, Any]) -> bool:
        """True unless attempt 1 is below its interval at the start of the run, on the questions to select by.

        `row`: of evaluations.jsonl; `evaluation` has had it, or an earlier one.
        """
        return (row["selection"] or row).get("acc_attempt1", 1.0) >= self._marks["start"]["attempt1_low"]

    @property
    def below_best(self) -> list[str]:
        """Returns the active alarms about a last evaluation that is significantly worse than the best of its stage."""
        return [name for name in self._on if name.startswith("held_out")]

    def closing(self) -> list[str]:
        """Returns the last lines of a run: each alarm it had, with its steps; [] without any."""
        lines = []
        for entry in self._told:
            end = f"until {_place(entry['end'])}, {entry['how']}" if entry["end"] else "to the end"
            seen = entry["text"].partition("; ")[0]
            lines.append(f"{entry['severity']} {entry['alarm']}, {_place(entry['begin'])} {end}: {seen}")
        return lines

    def state_dict(self) -> dict[str, Any]:
        """Returns all that future alarms depend on, through JSON, so that equal states are equal bytes."""
        state = {name: getattr(self, f"_{name}") for name in STATE}
        return json.loads(json.dumps(state | {"history": self.history.state()}))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state from `state_dict`."""
        state = copy.deepcopy(dict(state))
        for name in STATE:
            setattr(self, f"_{name}", state[name])
        self.history = History(self._quantities)
        vars(self.history).update(state["history"])

    # -- steps

    def _look(self, check: Check, key: str, step: int) -> Iterator[Alarm]:
        name, say = f"{check.name}.{key}", _percent if key.startswith(SHARES) else _short
        if name in self._on:
            seen = Seen(**self._on[name]["seen"])
            now = self.history.last(key, min(seen.over, RECENT))
            back = now is not None and abs(now - seen.before) < abs(seen.now - seen.before) / 2
            if back and check.rule(self.history, key) is None:
                self.history.clear(key)  # otherwise the recovery would raise an alarm of its own
                yield self._end(name, {"stage": self._stage, "step": step}, f"back at {say(now)}")
            return
        worse = {f"{other.name}.{key}" for other in self._checks if other.collapse and not check.collapse}
        seen = None if worse & self._on.keys() else check.rule(self.history, key)
        if seen:
            before, now = say(seen.before), say(seen.now)
            verb, since = "rose" if seen.now > seen.before else "fell", self.history.since(key, seen)
            # copies from the first step on have no other level
            change = f"is {now}" if before == now else f"{verb} from {before} to {now} since step {since}"
            text = f"{_attempt(key)}{check.what} {change}; {check.remedy}"
            yield self._begin(name, check.collapse, {"stage": self._stage, "step": step}, seen, text)

    # -- evaluations

    def _held_out_answers(self, outcomes: list[float], keeps: bool, place: dict[str, int]) -> list[Alarm]:
        """Compares with the best so far. As for checkpoints, the best `keeps` attempt 1: a run goes back there."""
        now, reward = fmean(outcomes), self._reward()
        last, self._last = self._last, {"value": now, "outcomes": outcomes, "reward": reward, "keeps": keeps, **place}
        if last and place["stage"] != last["stage"] and last.get("keeps", True):
            self._best = last  # a stage starts with the last evaluation of the one before as its best
        best = self._best
        is_first, change, half = not best or len(best["outcomes"]) != len(outcomes), 0.0, 0.0
        if is_first or now > best["value"]:
            self._best = self._last if keeps or is_first else best
        else:
            gains = [after - before for before, after in zip(best["outcomes"], outcomes, strict=True)]
            change, half = now - best["value"], _half(mean_interval(gains))
        if not (change < -BEYOND * half and change <= -FELL):  # or without an interval
            return [self._end(name, place, f"back at {_short(now)}") for name in self.below_best]
        alarms = []
        text = (
            f"held-out accuracy {_short(best['value'])} at {_place(best)} -> {_short(now)}, paired interval "
            f"{change - half:+.3f} to {change + half:+.3f}"
        )
        seen = Seen(best["value"], now, 1)
        is_gone = change <= -COLLAPSED_BY
        remedy = f"go back to the checkpoint of {_place(best)}, with a lower optimizer.learning_rate"
        if is_gone and "held_out_fell" in self._on:
            alarms.append(self._end("held_out_fell", place, "by falling further"))
        name = "held_out_collapsed" if is_gone or "held_out_collapsed" in self._on else "held_out_fell"
        if name not in self._on:
            alarms.append(self._begin(name, is_gone, place, seen, f"{text}; {remedy}"))
        gained = None if reward is None or best["reward"] is None else reward - best["reward"]
        if gained is not None and gained > 0.02 * max(1.0, abs(best["reward"])) and "held_out_gamed" not in self._on:
            text = f"reward in training {_short(best['reward'])} -> {_short(reward)} while {text}"
            remedy = "the reward pays what accuracy does not count: read generations.jsonl and fix reward.fn"
            alarms.append(self._begin("held_out_gamed", False, place, seen, f"{text}; {remedy}"))
        return alarms

    def _since_marks(self, row: Mapping[str, Any], place: dict[str, int]) -> list[Alarm]:
        """Compares the last evaluations with the first one of the run, and the last one with the stage before."""
        now = {**place, "questions": _questions(row), "repeat_rate": row.get("repeat_rate")}
        now["digest"] = row.get("questions")
        if not self._marks or not _are_comparable(now, self._marks["start"]):
            low = (row["selection"] or row).get("acc_attempt1_ci95", [0.0])[0]
            self._marks, self._recent = {"start": {**now, "attempt1_low": low}, "last": now}, []
            return []
        if place["stage"] != self._marks["last"]["stage"]:
            self._marks["stage"] = self._marks["last"]
        self._marks["last"] = now
        self._recent = [*self._recent, now["questions"]][-POOLED:]
        accuracies = [name for name in now["questions"][0] if quantity_of(name) == "acc"]
        alarms = [alarm for key in accuracies for alarm in self._fell(key, place)]
        if len(accuracies) > 1:
            alarms += self._spoils(accuracies[0], accuracies[-1], place)
        return alarms + (self._repeats(row, place) if row.get("repeat_rate") is not None else [])

    def _fell(self, key: str, place: dict[str, int]) -> list[Alarm]:
        compared = [("start", self._recent), ("start", self._recent[-1:]), ("stage", self._recent[-1:])]
        changes = []
        for mark, evaluations in compared:
            if mark in self._marks:
                pairs = _pairs(self._marks[mark]["questions"], evaluations)
                changes.append((Change.of([(then[key], now[key]) for then, now in pairs]), _place(self._marks[mark])))
        change, start = min(changes, key=lambda entry: entry[0].sureness)
        text = (
            f"{_attempt(key)}held-out accuracy {_short(change.before)} at {start} -> {_short(change.now)}, paired "
            f"interval {change.interval}; raise the KL weight (train.beta1, train.beta2, train.beta), or go on from an "
            "earlier checkpoint"
        )
        is_bad, seen = change.by <= -FELL and change.sureness < -BEYOND, Seen(change.before, change.now, 1)
        return self._switch(f"accuracy_lost.{key}", is_bad, change.sureness > -1, place, seen, text)

    def _spoils(self, first: str, last: str, place: dict[str, int]) -> list[Alarm]:
        """Detects more right first attempts made wrong than the same share of them as at the start.

        It is no fault where the last attempt gains at least as much on the first one.
        """
        start, changes = self._marks["start"], []
        for evaluations in (self._recent, self._recent[-1:]):
            pairs = _pairs(start["questions"], evaluations)
            before, now = (
                {name: fmean(row[name] for row in rows) for name in rows[0]} for rows in zip(*pairs, strict=True)
            )
            share, scale = before["c_to_i"] / (before[first] or 1.0), now[first] / (before[first] or 1.0)
            excess = [(scale * (a["c_to_i"] - share * a[first]), b["c_to_i"] - share * b[first]) for a, b in pairs]
            gain = now[last] - now[first] - (before[last] - before[first])
            changes.append((Change.of(excess), gain, Seen(before["c_to_i"], now["c_to_i"], 1)))
        excess, gain, seen = max(changes, key=lambda entry: entry[0].sureness)
        text = (
            f"right first attempts that the last one makes wrong, of all held-out answers: {_percent(seen.before)} at "
            f"{_place(start)} -> {_percent(seen.now)}, beyond the same share of right ones {excess.by:+.3f}, paired "
            f"interval {excess.interval}; raise train.beta1, and read right answers that were lost in generations.jsonl"
        )
        is_bad = excess.by >= SPOILED and excess.sureness > BEYOND and gain < excess.by
        return self._switch("answers_spoiled.c_to_i", is_bad, excess.sureness < 1, place, seen, text)

    def _repeats(self, row: Mapping[str, Any], place: dict[str, int]) -> list[Alarm]:
        """Detects wrong answers that are nearly all repeated, if fewer were at the start or a stage ends so."""
        now, (low, _), before = row["repeat_rate"], row["repeat_rate_ci95"], self._marks["start"]["repeat_rate"] or 0.0
        is_bad = repeats_itself(row) and (low > before or row["when"].startswith("after"))
        text = (
            f"of the held-out wrong answers {_percent(now)} are repeated, {_percent(before)} at "
            f"{_place(self._marks['start'])}; raise train.alpha, or train.beta2 in stage I"
        )
        return self._switch("answers_repeated.repeat_rate", is_bad, now <= REPEATED, place, Seen(before, now, 1), text)

    def _switch(
        self, name: str, is_bad: bool, is_over: bool, place: dict[str, int], seen: Seen, text: str
    ) -> list[Alarm]:
        """Begins a warning, or ends it; between the two bounds it stays as it is."""
        if name in self._on:
            return [self._end(name, place, f"back at {_short(seen.now)}")] if is_over else []
        return [self._begin(name, False, place, seen, text)] if is_bad else []

    def _reward(self) -> float | None:
        keys = [key for key in self.history.values if quantity_of(key) == "reward" and self.history.all(key)]
        means = [self.history.all(key)[-LEVEL:] for key in keys]
        return fmean(map(fmean, means)) if means and all(len(values) >= RECENT for values in means) else None

    def _held_out_loss(self, loss: float, place: dict[str, int]) -> list[Alarm]:
        train, best, name = self.history.last("loss"), self._best, "held_out_loss"
        if not isfinite(loss) or train is None:
            return []
        if not best or loss <= best["value"]:
            self._best = {"value": loss, "train": train, "risen": 0, **place}
            return [self._end(name, place, f"back at {_short(loss)}")] if name in self._on else []
        rose = loss > best["value"] + LOSS_ROSE * max(1.0, best["value"]) and train < best["train"]
        best["risen"] = best["risen"] + 1 if rose else 0
        if best["risen"] < 2 or name in self._on:  # one evaluation may be a coincidence
            return []
        text = (
            f"held-out loss {_short(best['value'])} at {_place(best)} -> {_short(loss)} while that of training went "
            f"{_short(best['train'])} -> {_short(train)}: the rows are memorized; lower train.epochs or train.steps"
        )
        return [self._begin(name, False, place, Seen(best["value"], loss, 1), text)]

    # -- both

    def _begin(self, name: str, collapse: bool, place: dict[str, int], seen: Seen, text: str) -> Alarm:
        severity = COLLAPSE if collapse else "warning"
        self._on[name] = {"seen": asdict(seen), "told": len(self._told)}
        self._told.append({"alarm": name, "severity": severity, "begin": place, "end": None, "how": "", "text": text})
        return Alarm(name, "begins", severity, text=text, **place)

    def _end(self, name: str, place: dict[str, int], how: str) -> Alarm:
        entry = self._told[self._on.pop(name)["told"]]
        entry["end"], entry["how"] = place, how
        text = f"over: {entry['alarm']}, which began at {_place(entry['begin'])}, {how}"
        return Alarm(name, "ends", entry["severity"], text=text, **place)


def _standing(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a row of metrics without the accuracy of later attempts if it has that of the answers that stand.

    Chats stop early then: the better first attempts get, the harder are the prompts of those that are asked again.
    """
    left_out = "acc" if "acc_standing" in row else None
    return {key: value for key, value in row.items() if quantity_of(key) != left_out or key == "acc_attempt1"}


def _keys_of(check: Check, row: Mapping[str, Any]) -> Iterator[str]:
    names = [name for key in check.keys for name in sorted(row) if quantity_of(name) == key]
    return (name for name in names if f"{name}_attempt1" not in row)  # else it is a mean over attempts


def _attempt(key: str) -> str:
    return f"in attempt {key.rpartition('_attempt')[2]} " if "_attempt" in key else ""


def repeats_itself(row: Mapping[str, Any]) -> bool:
    """True if an evaluation shows that nearly all wrong answers are repeated, and that there are enough to say so."""
    rate, (low, _) = row["repeat_rate"], row["repeat_rate_ci95"]
    return rate > REPEATED and low > REPEATED - 0.1 and row["acc_attempt1"] < REPEATED


def _are_comparable(now: Mapping[str, Any], start: Mapping[str, Any]) -> bool:
    """True if two evaluations count the same of the same questions; of fewer, as within a stage, the first ones."""
    tables = list(zip(now["questions"], start["questions"], strict=False))
    same_size = len(tables[0][0]["n"]) == len(tables[0][1]["n"])
    return (
        len(now["questions"]) == len(start["questions"])
        and all(one.keys() == other.keys() for one, other in tables)
        and not (same_size and now["digest"] != start["digest"])
    )


def _questions(row: Mapping[str, Any]) -> list[QuestionCounts]:
    """Returns the counts by question of those that are reported, and of those to select by."""
    return [part["per_question"] for part in (row, row["selection"] or {}) if "per_question" in part]


def _pairs(
    before: list[QuestionCounts], evaluations: list[list[QuestionCounts]]
) -> list[tuple[QuestionShares, QuestionShares]]:
    """Returns the shares of each question, before and in several evaluations together.

    An evaluation within a stage may have fewer questions, the first ones.
    """
    pairs: list[tuple[QuestionShares, QuestionShares]] = []
    for then, *tables in zip(before, *evaluations, strict=True):
        for i in range(min(len(table["n"]) for table in (then, *tables))):
            now = {name: sum(table[name][i] for table in tables) for name in then}
            pairs.append(
                ({name: then[name][i] / then["n"][i] for name in then}, {name: now[name] / now["n"] for name in now})
            )
    return pairs


def _place(place: Mapping[str, int]) -> str:
    return f"stage {place['stage']} step {place['step']}"


def _half(interval: tuple[float, float]) -> float:
    low, high = interval
    return (high - low) / 2


def _short(value: float) -> str:
    return f"{value:.3g}"


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"

"""Reports what a collection of rollouts has come to, every two seconds, with its rate and what it will cost."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from lib.core import stats
from lib.core.config import CollectConfig
from lib.core.console import Screen, in_brackets, share
from lib.generators.protocol import ReplyError, Usage

TELL_SECONDS = 2.0
CUT_OFF = {
    "truncated": "generation.max_new_tokens", "turns": "tools.max_turns", "tokens": "tools.max_total_tokens",
    "refused": "a refusal, mostly of a chat that became too long",
}  # fmt: skip


class CollectionProgress:
    """Progress of the collection, reported every two seconds and at the end."""

    def __init__(
        self,
        config: CollectConfig,
        screen: Screen,
        total: int,
        track: Callable[[dict[str, Any], int], None] = lambda numbers, rows: None,
    ):
        self.config, self.screen, self.total, self._track = config, screen, total, track
        self.rows = 0
        self.rewards: list[float] = []
        self.matches: dict[str, list[bool]] = {}  # by prompt, since rollouts of one prompt are not independent
        self.well_formed: list[bool] = []
        self.usage = Usage()
        self.ended: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()

    def start(self) -> None:
        """Starts the clock, once the generator is ready; rows of before do not count for the rate."""
        self._began, self._known = time.monotonic(), self.rows
        self._told = self._began

    def done(self, row: dict[str, Any]) -> bool:
        """Counts a new row; returns True if progress was reported."""
        self.add(row)
        return self._tell()

    def failed(self, error: ReplyError) -> None:
        """Counts a failed rollout; the first failure of each kind is reported at once."""
        if error.kind not in self.failures:
            self.screen.warn(f"a rollout failed, {error}")
        self.failures[error.kind] += 1
        self._tell()

    def summary(self) -> None:
        """Reports the totals of the run."""
        say, cost = self.screen.say, self._cost()
        self._track(self.numbers(), self.rows)
        say(f"{self.rows} of {self.total} rollouts{self._means()}")
        if self.usage.completion_tokens:
            say(f"{self.usage}{f', cost {cost:.2f}' if cost else ''}")
        cut = {name: count for name, count in self.ended.items() if name != "answer"}
        if cut:
            say("cut off: " + ", ".join(f"{count} by {CUT_OFF[name]}" for name, count in cut.items()))
        if self.calls:
            wrong = self.calls["error"]
            say(f"tools: {self.calls['result'] + wrong} calls, {wrong} of them with an error as result")
        if self.failures:
            listed = ", ".join(f"{count} {kind}" for kind, count in self.failures.most_common())
            self.screen.warn(
                f"{self.failures.total()} rollouts failed ({listed}), see {self.config.run_dir / 'failures.jsonl'}; "
                "--resume asks for them again"
            )

    def add(self, row: dict[str, Any]) -> None:
        """Counts a row."""
        self.rows += 1
        self.ended[row["ended"]] += 1
        self.usage += Usage(**row["usage"])
        self.calls.update("error" if "error" in call else "result" for call in row["tool_log"])
        if row.get("reward") is not None:
            self.rewards.append(row["reward"])
            prompt = row["prompt_id"].partition("-")[0]  # a repeated prompt has a numbered suffix
            self.matches.setdefault(prompt, []).append(row["match"])
            self.well_formed.append(not row.get("malformed"))  # rollouts of earlier versions lack the key

    def _tell(self) -> bool:
        now = time.monotonic()
        if now - self._told < TELL_SECONDS:
            return False
        self._told = now
        self._track(self.numbers(), self.rows)
        rate = (self.rows - self._known + self.failures.total()) / (now - self._began)
        cost = self._cost()
        price = f"  cost {cost:.2f} of about {cost / self.rows * self.total:.2f}" if cost else ""
        failed = f"  failed {self.failures.total()}" if self.failures else ""
        self.screen.say(f"rollouts {self.rows}/{self.total}{self._means()}{failed}  {rate:.1f}/s{price}")
        return True

    def numbers(self) -> dict[str, Any]:
        """Returns all numbers, for a dashboard."""
        counts = {"rollouts": self.rows, "failed": self.failures.total(), "tool_calls": self.calls.total()}
        cut = {f"cut_off/{name}": count for name, count in self.ended.items() if name != "answer"}
        return {**counts, **self.usage.as_dict(), "cost": self._cost(), **cut, **self._shares()}

    def _shares(self) -> dict[str, Any]:
        """Returns the means over judged rollouts; {} if there are none."""
        if not self.rewards:
            return {}
        right, of = ([count(matches) for matches in self.matches.values()] for count in (sum, len))
        n = sum(of)
        return {
            "reward": sum(self.rewards) / n,
            "right": sum(right) / n,
            "right_ci95": list(stats.rate_interval_of_totals(right, of)),
            "well_formed": sum(self.well_formed) / n,
        }

    def _means(self) -> str:
        shares = self._shares()
        if not shares:
            return ""
        right, formed = in_brackets(shares, "right"), share(shares["well_formed"])
        return f"  reward {shares['reward']:.3f}  right {right}  well-formed {formed}"

    def _cost(self) -> float:
        server, usage = self.config.remote, self.usage
        return server.cost(usage.prompt_tokens, usage.completion_tokens) if server else 0.0

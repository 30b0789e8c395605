"""Scored completions, with tools or without, from a local model or any OpenAI-compatible server, to JSONL.

    python collect_rollouts.py --config configs/rollouts_code.yaml                # a local model writes programs
    python collect_rollouts.py --config configs/distill_gsm8k.yaml --dry-run     # what would be asked, without asking
    python collect_rollouts.py --config configs/distill_gsm8k.yaml --smoke 8     # 8 prompts, two answers each
    python collect_rollouts.py --config configs/distill_gsm8k.yaml --resume      # go on; nothing is asked twice
    python collect_rollouts.py --config configs/distill_gsm8k.yaml --resume select.best_of=1     # select anew
    python sft_train.py --config configs/sft_code.yaml                           # learn from what was selected

In outputs/<run_name>: rollouts.jsonl has every rollout as it comes, failures.jsonl what could not be had, and
selected.jsonl, written at the end, the rows that `select` keeps, which sft_train.py reads. replies.jsonl and web.jsonl
keep what servers said. A row has `messages`, `reward`, `components`, `match`, `tool_log`, `usage`, `generator`, `seed`.

Exit codes: 0 finished, 2 config or data, 5 sandbox, 6 the server refuses, 74 disk, 130 Ctrl-C and 143 SIGTERM after the
open rollouts.
"""

import argparse
import asyncio
import contextlib
import json
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import reward_function  # noqa: F401  registers rewards and extractors, yours too
from lib import stats
from lib.config import CollectConfig, Collection, SFTDataset, dump, load, parser
from lib.console import Screen, duration
from lib.data import load_splits
from lib.errors import FINISHED, ApiError, ConfigError, StorageError, run_script
from lib.generators import ChatGenerator, ReplyError, Usage
from lib.interrupts import Interrupts
from lib.prompts import columns_of
from lib.replies import Remembering, Replies, key_of
from lib.rewards import Judge, prepare
from lib.runlog import RunLog, check_directory, discard, encode, read_jsonl, write_whole
from lib.tool_loop import Episode, ToolLoop
from lib.tools import Toolbox

STREAMS = ("rollouts", "failures")
MAY_CHANGE = (  # what a resume may change: it touches no rollout that is there
    "select", "upload", "dataset.max_rows", "generation.samples_per_prompt", "generation.batch_size", "sandbox.workers",
    "endpoint.base_url", "endpoint.api_key_env", "endpoint.max_concurrency", "endpoint.deadline_s",
    "endpoint.max_retries", "endpoint.input_price", "endpoint.output_price",
)  # fmt: skip
TELL_SECONDS = 2.0
RECENT = 15  # tellings, over which the rate is taken: servers take their time to begin
SEEDS = 2**31  # what every server takes
LOCAL_BATCH = 64  # rollouts of a local model decoded together, where generation.batch_size does not say
CUT_OFF = {
    "truncated": "generation.max_new_tokens", "turns": "tools.max_turns", "tokens": "tools.max_total_tokens"
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One rollout to be had."""

    prompt_id: str
    sample: int
    row: dict[str, Any]
    messages: list[dict[str, Any]]

    @property
    def id(self) -> str:
        """The same in every run over the same prompt."""
        return f"{self.prompt_id}.{self.sample}"


def main() -> int:
    """Config, data and judge first; then every rollout that is not there yet; then the selection."""
    args, config = command_line()
    screen = Screen()
    prepare(config, screen.say)
    jobs, judge = load_jobs(config, screen)
    if args.dry_run:
        return show_plan(config, jobs, screen)
    with RunLog(config.run_dir, args.resume, streams=STREAMS) as log, Interrupts() as interrupts:
        log.write_config(dump(config))
        known = rows_by_id(config)
        progress = Progress(config, screen, len(jobs), [known[job.id] for job in jobs if job.id in known])
        missing = [job for job in jobs if job.id not in known]
        asyncio.run(collect(config, missing, judge, log, progress, interrupts))
        progress.summary()
        if interrupts.received:
            return interrupts.exit_code
        if not progress.rows:
            raise ApiError(f"no rollout could be had, see {config.run_dir / 'failures.jsonl'}; mend it, then --resume")
        log.sync()
        known = rows_by_id(config)
        if sum(job.id in known for job in jobs) < progress.rows:
            raise StorageError(f"{config.run_dir}: rows could not be written; free some space, then --resume")
        selected, left_out = select([known[job.id] for job in jobs if job.id in known], config.select)
        write_whole(config.run_dir / "selected.jsonl", b"".join(map(encode, selected)))
    screen.say(f"{config.run_dir / 'selected.jsonl'}: {len(selected)} rollouts{left_out}")
    if config.upload:
        upload(config)
        screen.say(f"uploaded to the data set {config.upload.repo_id}")
    return FINISHED


def command_line() -> tuple[argparse.Namespace, CollectConfig]:
    """The options, and the config with overrides and --smoke applied. ConfigError for every mistake in them."""
    options = parser(__doc__)
    options.add_argument("--resume", action="store_true", help="go on with the run: nothing is asked twice")
    options.add_argument("--allow-config-change", action="store_true", help="resume although the config changed")
    options.add_argument("--dry-run", action="store_true", help="show what would be asked, and ask nobody")
    args = options.parse_intermixed_args()  # overrides may stand anywhere
    config = load(CollectConfig, args.config, args.overrides, args.smoke)
    if not args.dry_run:
        if args.smoke and not args.resume:
            discard(config.run_dir)
        check_directory(config.run_dir, dump(config), args.resume, args.allow_config_change, MAY_CHANGE)
    return args, config


def load_jobs(config: CollectConfig, screen: Screen) -> tuple[list[Job], Judge | None]:
    """Every rollout of the run, the samples of a prompt one after the other, and who judges them."""
    dataset, prompts, reward = config.dataset, config.prompts, config.reward
    columns = [prompts.messages_field] if prompts.messages_field else columns_of(prompts.user)
    columns += [dataset.target_field] if dataset.target_field else []
    source = SFTDataset(
        **dataset.model_dump(include={"name", "config_name", "revision", "split"}),
        test_split_size=0,
        max_train_rows=dataset.max_rows,
    )
    splits = load_splits(source, columns)
    screen.say(f"data: {splits.source}, {len(splits.train)} prompts")
    judge = None
    if reward:
        judge = Judge(reward.fn, reward.answer_extractor, reward.match, list(splits.train[0]), reward.options)
        judge.check(splits.train)
        if dataset.target_field:
            judge.check_targets(splits.train, dataset.target_field, "train")
    seen: Counter[str] = Counter()
    jobs = []
    for row in splits.train:
        messages = chat_of(row, config)
        key = key_of(messages, row.get(dataset.target_field))[:16]
        seen[key] += 1
        prompt_id = key if seen[key] == 1 else f"{key}-{seen[key]}"  # the same prompt again
        jobs += [Job(prompt_id, sample, row, messages) for sample in range(config.generation.samples_per_prompt)]
    return jobs, judge


def chat_of(row: dict[str, Any], config: CollectConfig) -> list[dict[str, Any]]:
    """The chat that a row begins. ConfigError where its messages are none."""
    prompts = config.prompts
    if prompts.messages_field is None:
        system = [{"role": "system", "content": prompts.system}] if prompts.system else []
        return [*system, {"role": "user", "content": prompts.user.format_map(row)}]
    messages = row[prompts.messages_field]
    sound = isinstance(messages, list) and all(isinstance(message, dict) and "role" in message for message in messages)
    if not sound or not messages or messages[-1]["role"] == "assistant":
        raise ConfigError(
            f"prompts.messages_field: '{prompts.messages_field}' has {str(messages)[:80]!r}, expected a list of "
            "messages, the last one not by the assistant: name another column, or use prompts.user"
        )
    return messages


def show_plan(config: CollectConfig, jobs: list[Job], screen: Screen) -> int:
    """Who would be asked what, and what that costs at most."""
    sampling, endpoint = config.generation, config.endpoint
    who = f"{endpoint.model} at {endpoint.base_url}" if endpoint else f"{config.model.name}, in this process"
    most = sampling.max_new_tokens + sampling.thinking.budget_tokens
    if config.tools.names:
        most = config.tools.max_total_tokens
    screen.say(f"{len(jobs)} rollouts, {sampling.samples_per_prompt} of each prompt, by {who}")
    screen.say(f"at most {most} tokens written in each, {most * len(jobs):,} in all")
    if endpoint and endpoint.output_price:
        screen.say(f"that would cost at most {most * len(jobs) * endpoint.output_price / 1e6:.2f}, prompts not counted")
    screen.say("the first prompt:")
    for message in jobs[0].messages:
        screen.say(f"  {message['role']}: {message.get('content') or ''}")
    for schema in Toolbox(config.tools, None).schemas():
        screen.say(f"tool: {json.dumps(schema['function'])}")
    return FINISHED


async def collect(
    config: CollectConfig,
    jobs: list[Job],
    judge: Judge | None,
    log: RunLog,
    progress: "Progress",
    interrupts: Interrupts,
) -> None:
    """Has every job done, many at once. What ends all of them, a UserError, ends this."""
    if not jobs:
        return
    async with contextlib.AsyncExitStack() as stack:
        pages = None
        if any(name.startswith("web.") for name in config.tools.names):
            pages = stack.enter_context(contextlib.closing(Replies(config.run_dir / "web.jsonl")))
        toolbox = await stack.enter_async_context(contextlib.aclosing(Toolbox(config.tools, pages)))
        toolbox.prepare()
        generator = await stack.enter_async_context(answering(config, progress.screen))
        loop = make_loop(config, generator, toolbox)
        waiting = iter(jobs)
        progress.start()

        async def work() -> None:
            for job in waiting:  # shared: who is free takes the next
                if interrupts.received:
                    return
                await do(job, config, loop, judge, log, progress)

        await all_of(work() for _ in range(at_once(config)))


async def all_of(works: Iterable[Any]) -> None:
    """Waits for all; the first exception stops the others and is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def at_once(config: CollectConfig) -> int:
    """Open rollouts: twice what the model takes, since others are with a tool or the judge meanwhile."""
    return 2 * (config.endpoint.max_concurrency if config.endpoint else config.generation.batch_size or LOCAL_BATCH)


@contextlib.asynccontextmanager
async def answering(config: CollectConfig, screen: Screen) -> AsyncIterator[ChatGenerator]:
    """Who answers: a server, whose replies are kept, or the model of this process."""
    if config.endpoint:
        from lib.generators.openai import RemoteModel

        async with RemoteModel(config.endpoint, config.generation.thinking) as remote:
            with contextlib.closing(Replies(config.run_dir / "replies.jsonl")) as replies:
                screen.say(f"model {config.endpoint.model} at {config.endpoint.base_url}")
                yield Remembering(remote, replies)
        if remote.counts.retries:
            screen.say(f"{remote.counts.retries} requests were tried again")
        if remote.counts.without_usage:
            screen.warn(
                f"{remote.counts.without_usage} replies came without a count of tokens: totals and cost lack them"
            )
    else:
        from lib.local import load_local  # torch comes after config and data were found sound

        async with load_local(config, screen.say) as local:
            yield local


def make_loop(config: CollectConfig, generator: ChatGenerator, toolbox: Toolbox) -> ToolLoop:
    """The loop with the protocol that the config names, or that the model knows."""
    protocol = config.tools.protocol
    if protocol == "auto":
        protocol = "native" if config.endpoint or generator.knows_tools else "json"
    role = "tool" if not config.endpoint and toolbox and generator.knows_results else "user"
    return ToolLoop(generator, config.generation, toolbox, protocol, role)


async def do(
    job: Job, config: CollectConfig, loop: ToolLoop, judge: Judge | None, log: RunLog, progress: "Progress"
) -> None:
    """One job, from prompt to row: of rollouts.jsonl, or of failures.jsonl."""

    def seed_of(turn: int) -> int:
        return int(key_of(config.seed, job.id, turn), 16) % SEEDS

    try:
        episode = await loop.run(job.messages, seed_of)
    except ReplyError as error:
        row = {"id": job.id, "prompt_id": job.prompt_id, "sample": job.sample, "kind": error.kind, "error": str(error)}
        log.write("failures", row)
        progress.failed(error.kind)
        return
    row = row_of(job, episode, loop, seed_of(0))
    if judge:
        row |= await asyncio.to_thread(judged, job, episode, judge, config.dataset.target_field)
    log.write("rollouts", row)
    if progress.done(row):
        log.sync()


def row_of(job: Job, episode: Episode, loop: ToolLoop, seed: int) -> dict[str, Any]:
    """The row of a rollout, without what a judge says. `messages` and `tools` are what sft_train.py reads."""
    sampling = loop.sampling
    row = {
        "id": job.id,
        "prompt_id": job.prompt_id,
        "sample": job.sample,
        "messages": episode.messages,
        "answer": episode.answer,
        "ended": episode.ended,
        "reasoning_ended": episode.reasoning_ended,
        "turns": episode.turns,
        "tool_log": episode.tool_log,
        "repaired": episode.repaired,
        "usage": episode.usage.as_dict(),
        "generator": {
            **loop.generator.name,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_new_tokens": sampling.max_new_tokens,
        },
        "seed": seed,
    }
    if loop.toolbox and loop.protocol == "native":
        row["tools"] = loop.schemas()
    return row


def judged(job: Job, episode: Episode, judge: Judge, target_field: str | None) -> dict[str, Any]:
    """What the judge says of a rollout. A reward that could not be had is null."""
    target = job.row[target_field] if target_field else ""
    [score] = judge([episode.answer], [target], {name: [value] for name, value in job.row.items()}, [job.messages])
    return {
        "reward": score.reward if score.scored else None,
        "components": score.components,
        "match": score.match,
        "extracted": score.answer,
        "target": target,
        "about": score.about,
    }


class Progress:
    """What has come so far, told every two seconds and at the end."""

    def __init__(self, config: CollectConfig, screen: Screen, total: int, known: list[dict[str, Any]]):
        self.config, self.screen, self.total = config, screen, total
        self.rows = 0
        self.rewards: list[float] = []
        self.matches: list[bool] = []
        self.usage = Usage()
        self.ended: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        for row in known:
            self._add(row)
        self._known = self.rows
        if known:
            screen.say(f"{self.rows} of {total} rollouts are there already")

    def start(self) -> None:
        """From here on the time counts: whoever answers is ready."""
        self._told = time.monotonic()
        self._marks = deque([(self._told, 0)], maxlen=RECENT)

    def done(self, row: dict[str, Any]) -> bool:
        """Counts a new row; True when something was told."""
        self._add(row)
        return self._tell()

    def failed(self, kind: str) -> None:
        """Counts a rollout that could not be had."""
        self.failures[kind] += 1
        self._tell()

    def summary(self) -> None:
        """What the run came to."""
        say, cost = self.screen.say, self._cost()
        say(f"{self.rows} of {self.total} rollouts{self._means()}")
        if self.usage.completion_tokens:
            usage = self.usage
            reasoning = f", {usage.reasoning_tokens:,} of them reasoning" if usage.reasoning_tokens else ""
            price = f", cost {cost:.2f}" if cost else ""
            say(f"{usage.prompt_tokens:,} tokens read, {usage.completion_tokens:,} written{reasoning}{price}")
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

    def _add(self, row: dict[str, Any]) -> None:
        self.rows += 1
        self.ended[row["ended"]] += 1
        self.usage += Usage(**row["usage"])
        self.calls.update("error" if "error" in call else "result" for call in row["tool_log"])
        if row.get("reward") is not None:
            self.rewards.append(row["reward"])
            self.matches.append(row["match"])

    def _tell(self) -> bool:
        now = time.monotonic()
        if now - self._told < TELL_SECONDS:
            return False
        self._told = now
        new = self.rows - self._known + self.failures.total()
        begin, before = self._marks[0]
        rate = (new - before) / (now - begin)
        self._marks.append((now, new))
        left = self.total - self._known - new
        cost = self._cost()
        price = f"  cost {cost:.2f} of about {cost / self.rows * self.total:.2f}" if cost else ""
        failed = f"  failed {self.failures.total()}" if self.failures else ""
        self.screen.say(
            f"rollouts {self.rows}/{self.total}{self._means()}{failed}  {rate:.1f}/s{price}"
            f"  {duration(left / rate)} left"
        )
        return True

    def _means(self) -> str:
        if not self.rewards:
            return ""
        right, n = sum(self.matches), len(self.matches)
        low, high = stats.wilson(right, n)
        return f"  reward {sum(self.rewards) / n:.3f}  right {right / n:.3f} [{low:.3f}, {high:.3f}]"

    def _cost(self) -> float:
        endpoint, usage = self.config.endpoint, self.usage
        if endpoint is None:
            return 0.0
        return (usage.prompt_tokens * endpoint.input_price + usage.completion_tokens * endpoint.output_price) / 1e6


def rows_by_id(config: CollectConfig) -> dict[str, dict[str, Any]]:
    """The rollouts of a run."""
    rows, _ = read_jsonl(config.run_dir / "rollouts.jsonl")
    return {row["id"]: row for row in rows}


def select(rows: list[dict[str, Any]], settings: Collection) -> tuple[list[dict[str, Any]], str]:
    """The rows that `settings` keep, in their order, and how many were left out by what, for people."""
    left_out: Counter[str] = Counter()

    def kept(rows: list[dict[str, Any]], why: str, keep: Callable) -> list[dict[str, Any]]:
        result = [row for row in rows if keep(row)]
        left_out[why] += len(rows) - len(result)
        return result

    if not settings.truncated:
        rows = kept(rows, "cut off", lambda row: row["ended"] == "answer" and row["reasoning_ended"])
    if settings.only_matches:
        rows = kept(rows, "not right", lambda row: row.get("match"))
    if settings.min_reward is not None:
        low = settings.min_reward
        rows = kept(rows, f"below a reward of {low:g}", lambda row: _reward(row) >= low)
    if settings.distinct:
        first = {key_of(row["messages"]): row["id"] for row in reversed(rows)}
        rows = kept(rows, "repeated", lambda row: first[key_of(row["messages"])] == row["id"])
    if settings.best_of is not None:
        ranked = sorted(rows, key=lambda row: (-_reward(row), row["usage"]["completion_tokens"]))
        places: Counter[str] = Counter()
        best = {row["id"] for row in ranked if _place(row, places) <= settings.best_of}
        rows = kept(rows, f"not among the best {settings.best_of} of a prompt", lambda row: row["id"] in best)
    listed = ", ".join(f"{count} {why}" for why, count in left_out.items() if count)
    return rows, f" ({listed} left out)" if listed else ""


def _reward(row: dict[str, Any]) -> float:
    reward = row.get("reward")
    return -math.inf if reward is None else reward


def _place(row: dict[str, Any], places: Counter[str]) -> int:
    """Which of its prompt's rows this is, counted from 1 in the order of the calls."""
    places[row["prompt_id"]] += 1
    return places[row["prompt_id"]]


def upload(config: CollectConfig) -> None:
    """The selected rows as the file train.jsonl of a data set on the hub. ConfigError where that is refused."""
    import httpx
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    path, to = config.run_dir / "selected.jsonl", config.upload
    try:
        hub = HfApi()
        hub.create_repo(to.repo_id, repo_type="dataset", private=to.private, exist_ok=True)
        hub.upload_file(path_or_fileobj=path, path_in_repo="train.jsonl", repo_id=to.repo_id, repo_type="dataset")
    except (HfHubHTTPError, httpx.HTTPError, ValueError, OSError) as error:
        why = " ".join(str(error).split()) or repr(error)
        raise ConfigError(
            f"upload.repo_id: '{to.repo_id}' could not be written ({why}); the rows are in {path}. Log in with "
            "`hf auth login`, then run again with --resume"
        ) from error


if __name__ == "__main__":
    run_script(main)

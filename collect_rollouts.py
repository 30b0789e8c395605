"""Scored completions, with tools or without, from a local model or any OpenAI-compatible server, to JSONL.

    python collect_rollouts.py --config configs/rollouts_code.yaml                # programs, tried out before
    python collect_rollouts.py --config configs/distill_gsm8k.yaml --dry-run     # what would be asked, without asking
    python collect_rollouts.py --config configs/distill_gsm8k.yaml --smoke 8     # 8 prompts, two short answers each
    python collect_rollouts.py --config configs/distill_gsm8k.yaml --resume      # resume; nothing is asked twice
    python collect_rollouts.py --config configs/distill_gsm8k.yaml --resume select.best_of=1     # select anew
    python sft_train.py --config configs/sft_code.yaml                           # learn from what was selected

In outputs/<run_name>: rollouts.jsonl has every rollout as it comes, failures.jsonl every request that failed,
and selected.jsonl, written at the end, the rows that `select` keeps, which sft_train.py reads. replies.jsonl and
web.jsonl keep what servers said. A row has `messages`, `reward`, `components`, `match`, `malformed`, `tool_log`,
`usage`, `generator`, `seed`.

Exit codes: 0 finished, even if some requests failed (--resume asks them again), 2 config or data, 3 numbers, 4 memory,
5 sandbox, 6 the server refuses, 7 a reward that raises, 74 disk, 130 Ctrl-C and 143 SIGTERM after the open rollouts.
"""

if __name__ == "__main__":
    from lib.core.errors import end_at_ctrl_c

    end_at_ctrl_c()  # the imports below take a second

import argparse
import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import reward_function  # noqa: F401  registers rewards and extractors, yours too
from judge.pool import cores
from lib.core.config import CollectConfig, SFTDataset, dump, load, parser
from lib.core.console import Screen
from lib.core.errors import FINISHED, ApiError, ConfigError, RewardError, StorageError, run_script, storage_remedy
from lib.core.interrupts import BEAT, GRACE, TICK, Interrupts, told_late, told_slow
from lib.core.killable import in_daemon_thread
from lib.generators.openai import RemoteModel, all_of, described
from lib.generators.progress import CollectionProgress
from lib.generators.protocol import ReplyError
from lib.generators.reply_cache import CachedGenerator, ReplyCache, key_of, seed_of
from lib.generators.selection import Entry, lines, rollouts, select
from lib.rewards.judge import Judge, prepare
from lib.rewards.routing import judge_of_rows
from lib.rl.prompts import chat_of, question_columns
from lib.run.directory import check_directory, discard
from lib.run.runlog import RunLog, write_whole
from lib.run.tracking import Tracker
from lib.text.data import load_splits
from lib.text.templates import system_notes
from lib.tools.loop import Episode, ToolLoop, make_loop
from lib.tools.toolbox import Toolbox

STREAMS = ("rollouts", "failures")
SELECTED = "selected.jsonl"
MAY_CHANGE = (  # keys that a resume may change: none affects a rollout already collected
    "select", "dataset.max_rows", "generation.samples_per_prompt", "generation.batch_size", "sandbox.workers",
)  # fmt: skip
MAY_CHANGE_OF_SERVER = ("base_url", "api_key_env", "max_concurrency", "deadline_s", "max_retries", "prices")


@dataclass(frozen=True)
class RolloutJob:
    """One rollout to collect."""

    prompt_id: str
    sample: int
    row: dict[str, Any]
    messages: list[dict[str, Any]]

    @property
    def id(self) -> str:
        """Returns an id that is the same in every run over the same prompt."""
        return f"{self.prompt_id}.{self.sample}"


def main() -> int:
    """Loads config, data and judge, collects the rollouts that are missing, then selects."""
    args, config = command_line()
    screen = Screen()
    prepare(config, screen.say)
    jobs, judge = load_jobs(config, screen)
    if args.dry_run:
        show_plan(config, jobs, screen)
        return FINISHED
    with (
        RunLog(config.run_dir, args.resume, streams=STREAMS) as log,
        Interrupts() as interrupts,
        Tracker(config, args.resume, screen.warn) as tracker,
    ):
        progress = CollectionProgress(config, screen, len(jobs), partial(tracker.log, "rollouts"))
        done = index(jobs, config.run_dir, progress.add)
        if done:
            screen.say(f"{len(done)} of {len(jobs)} rollouts are there already")
        missing = [job for job in jobs if job.id not in done]
        for line in planned(config, len(missing)) if missing else ():
            screen.say(line)
        asyncio.run(collect(config, missing, judge, log, progress, interrupts))
        progress.summary()
        if interrupts.received:
            return interrupts.exit_code
        log.sync()
        entries = index(jobs, config.run_dir)
        refuse_losses(progress, len(entries), config)
        collected = [entries[job.id] for job in jobs if job.id in entries]
        takes_cut = config.reward is not None and config.reward.accepts_cut
        choice = config.select if config.reward else config.select.model_copy(update={"only_matches": False})
        selected, left_out = select(collected, choice, takes_cut)
        write_whole(config.run_dir / SELECTED, lines(config.run_dir / "rollouts.jsonl", selected))
    screen.say(f"{config.run_dir / SELECTED}: {len(selected)} rollouts{left_out}")
    return FINISHED


def command_line() -> tuple[argparse.Namespace, CollectConfig]:
    """Returns the options, and the config with overrides and --smoke applied. Raises ConfigError for any mistake."""
    options = parser(__doc__)
    options.add_argument("--resume", action="store_true", help="resume the run: nothing is asked twice")
    options.add_argument("--allow-config-change", action="store_true", help="resume although the config changed")
    options.add_argument("--dry-run", action="store_true", help="show what would be asked, without asking")
    args = options.parse_intermixed_args()  # overrides may stand anywhere
    config = load(CollectConfig, args.config, args.overrides, args.smoke)
    if not args.dry_run:
        if args.smoke and not args.resume:
            discard(config, args.config)
        of_server = [f"{config.remote.key}.{key}" for key in MAY_CHANGE_OF_SERVER] if config.remote else []
        check_directory(config, args.resume, args.allow_config_change, [*MAY_CHANGE, *of_server])
    return args, config


def load_jobs(config: CollectConfig, screen: Screen) -> tuple[list[RolloutJob], Judge | None]:
    """Returns a job for every rollout of the run, the samples of a prompt in succession, and their judge."""
    dataset, prompts, reward = config.dataset, config.prompts, config.reward
    target = dataset.target_field
    columns, question_of = question_columns(prompts)
    columns += [target] if target and not reward else []
    source = SFTDataset(**dataset.model_dump(exclude={"target_field", "max_rows"}), max_train_rows=dataset.max_rows)
    splits = load_splits(source, columns, question_of)
    first = "the first " if len(splits.train) == dataset.max_rows else ""
    held_out = f", {len(splits.test)} more held out" if splits.test else ""
    screen.say(f"data: {splits.source}, {first}{len(splits.train)} prompts{held_out}")
    judge, notes = None, system_notes((chat_of(row, prompts) for row in splits.train), prompts.system)
    if reward:
        count = len(splits.notes)
        judge, splits = judge_of_rows(reward, splits, target)
        notes += splits.notes[count:]
    for note in notes:
        screen.say(note)
    seen: Counter[str] = Counter()
    jobs = []
    for row in splits.train:
        messages = chat_of(row, prompts)
        key = key_of(messages, row.get(target))[:16]
        seen[key] += 1
        prompt_id = key if seen[key] == 1 else f"{key}-{seen[key]}"  # the same prompt again
        jobs += [RolloutJob(prompt_id, sample, row, messages) for sample in range(config.generation.samples_per_prompt)]
    return jobs, judge


def planned(config: CollectConfig, rollouts: int) -> Iterator[str]:
    """Yields lines on how many rollouts are asked of whom, and on the most tokens and cost."""
    sampling, server = config.sampling, config.remote
    who = described(server) if server else f"{config.model.full_name}, in this process"
    most = sampling.most_tokens
    if config.tools.names:
        most = min(config.tools.max_total_tokens, most * config.tools.max_turns)
    yield f"planned: {rollouts} rollouts, {sampling.samples_per_prompt} of each prompt, by {who}"
    yield f"at most {most} tokens written in each, {most * rollouts:,} in all"
    if server and server.prices[1]:
        yield f"that would cost at most {server.cost(0, most * rollouts):.2f}, prompts not counted"


def show_plan(config: CollectConfig, jobs: list[RolloutJob], screen: Screen) -> None:
    """Prints what would be asked, without asking, and the first prompt: as a local model reads it, or as it is sent."""
    for line in planned(config, len(jobs)):
        screen.say(line)
    if config.reward and config.select.only_matches:
        screen.say(f"{SELECTED} will have right answers only; select.only_matches=false keeps wrong ones too")
    template = None
    if config.model:
        from lib.generators.local import load_template

        template = load_template(config)
    loop = make_loop(None, config.sampling, Toolbox(config.tools, None), template)
    messages = loop.prompt(jobs[0].messages)
    if template:
        screen.say(f"the first prompt, as the chat template writes it:\n{template.render(messages, loop.schemas())}")
        return
    screen.say("the first prompt, without what the chat template adds to it, such as a system prompt of its own:")
    for message in messages:
        screen.say(f"  {message['role']}: {message.get('content') or ''}")
    for schema in loop.schemas():
        screen.say(f"tool: {json.dumps(schema['function'])}")


async def collect(
    config: CollectConfig,
    jobs: list[RolloutJob],
    judge: Judge | None,
    log: RunLog,
    progress: CollectionProgress,
    interrupts: Interrupts,
) -> None:
    """Runs all jobs, many at once. A UserError in any of them stops the others and is raised."""
    if not jobs:
        log.write_config(dump(config))
        return
    async with contextlib.AsyncExitStack() as stack:
        pages = None
        if config.tools.uses_web:
            pages = stack.enter_context(contextlib.closing(ReplyCache(config.run_dir / "web.jsonl")))
        toolbox = await stack.enter_async_context(contextlib.aclosing(Toolbox(config.tools, pages)))
        toolbox.prepare()
        generator = await stack.enter_async_context(answering(config, progress.screen))
        loop = make_loop(generator, config.sampling, toolbox, None if config.server else generator.template)
        log.write_config(dump(config), now=False)  # a run that cannot start leaves nothing behind
        judges = asyncio.Semaphore(config.sandbox.workers or cores())  # tools need the sandbox, too
        verdict = partial(judge_aside, judge, judges, config, progress.screen, interrupts)
        waiting = iter(jobs)
        progress.start()

        async def work() -> None:
            for job in waiting:  # shared: whoever is free takes the next job
                if interrupts.received:
                    return
                await run_job(job, config, loop, verdict, log, progress)

        at_once = config.remote.max_concurrency if config.remote else config.generation.batch_size
        await all_of(work() for _ in range(2 * at_once))  # twice, since others wait for a tool or the judge


@contextlib.asynccontextmanager
async def answering(config: CollectConfig, screen: Screen) -> AsyncIterator[Any]:
    """Yields the generator: a server, whose replies are cached on disk, or the model in this process."""
    if config.remote:
        async with RemoteModel(config.remote) as remote:
            with contextlib.closing(ReplyCache(config.run_dir / "replies.jsonl")) as replies:
                remote.has_answered = len(replies) > 0
                screen.say(f"model {described(config.remote)}")
                yield CachedGenerator(remote, replies)
        if remote.counts.retries:
            screen.say(f"{remote.counts.retries} requests were retried")
        if remote.counts.without_usage:
            screen.warn(
                f"{remote.counts.without_usage} replies came without a count of tokens: totals and cost lack them"
            )
    else:
        from lib.generators.local import load_local  # torch is imported once config and data are valid

        async with load_local(config, screen.say) as local:
            yield local


async def run_job(
    job: RolloutJob,
    config: CollectConfig,
    loop: ToolLoop,
    verdict: Callable[..., Awaitable],
    log: RunLog,
    progress: CollectionProgress,
) -> None:
    """Runs one job, from prompt to row: of rollouts.jsonl, or of failures.jsonl."""

    try:
        episode = await loop.run(job.messages, partial(seed_of, config.seed, job.id))
    except ReplyError as error:
        row = {"id": job.id, "prompt_id": job.prompt_id, "sample": job.sample, "kind": error.kind, "error": str(error)}
        log.begin()
        log.write("failures", row)
        progress.failed(error)
        return
    row = row_of(job, episode, loop, seed_of(config.seed, job.id, 0))
    judgement = await verdict(job, episode)
    if judgement is None:
        return
    row |= judgement
    log.begin()
    log.write("rollouts", row)
    if progress.done(row):
        log.sync()


def row_of(job: RolloutJob, episode: Episode, loop: ToolLoop, seed: int) -> dict[str, Any]:
    """Returns the row of a rollout, without the verdict. sft_train.py reads its `messages` and `tools`."""
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
    if schemas := loop.schemas():
        row["tools"] = schemas
    return row


async def judge_aside(
    judge: Judge | None, judges: asyncio.Semaphore, config: CollectConfig, screen: Screen, interrupts: Interrupts,
    job: RolloutJob, episode: Episode,
) -> dict[str, Any] | None:  # fmt: skip
    """Judges in a thread; returns {} without a judge, None if a signal ends it. Raises RewardError if it is late."""
    if judge is None:
        return {}
    async with judges:
        what, most, beats, began = f"reward '{judge.reward_name}'", config.reward.timeout_s, 0, time.monotonic()
        # a thread cannot be stopped, so it is abandoned when late
        answer = asyncio.wrap_future(in_daemon_thread(judged, judge, config, job, episode))
        try:
            while not (await asyncio.wait({answer}, timeout=TICK))[0]:
                now = time.monotonic()
                if most and now - began > most:
                    error = RewardError(told_late(what, most))
                    raise error.located(config.run_dir, f"rollout {job.id}: ", "; fix it, then continue with --resume")
                if interrupts.received and min(now - interrupts.since, now - began) > GRACE:
                    return None
                if now - began > BEAT * (beats + 1):
                    beats += 1
                    screen.warn(f"rollout {job.id}: {told_slow(what, now - began)}")
            return answer.result()
        finally:
            answer.cancel()


def judged(judge: Judge, config: CollectConfig, job: RolloutJob, episode: Episode) -> dict[str, Any]:
    """Returns the judge's verdict on a rollout; the reward is null if it could not be computed."""
    try:
        is_finished = episode.ended == "answer" and episode.reasoning_ended
        [score] = judge([episode.answer], [job.row], [job.messages], [is_finished])
    except RewardError as error:
        raise error.located(config.run_dir, f"rollout {job.id}: ", "; fix it, then continue with --resume") from error
    return {
        "reward": score.reward if score.scored else None,
        "components": score.components,
        "match": score.match,
        "malformed": score.malformed,
        "extracted": score.answer,
        "target": job.row[judge.target_field] if judge.target_field else "",
        "about": score.about,
    }


def index(
    jobs: list[RolloutJob], run_dir: Path, see: Callable[[dict[str, Any]], None] = lambda _: None
) -> dict[str, Entry]:
    """Indexes by id the rollouts of a run that are among the jobs; `see` gets the row of each."""
    wanted, entries = {job.id for job in jobs}, {}
    for row, entry in rollouts(run_dir / "rollouts.jsonl"):
        if entry.id in wanted and entry.id not in entries:
            entries[entry.id] = entry
            see(row)
    return entries


def refuse_losses(progress: CollectionProgress, stored: int, config: CollectConfig) -> None:
    """Raises StorageError where rows are missing on disk, ApiError or ConfigError where there is no rollout at all."""
    if stored < progress.rows:
        raise StorageError(f"{config.run_dir}: rows could not be written; {storage_remedy()}, then --resume")
    if not progress.rows:
        kind = ApiError if config.server else ConfigError
        raise kind(f"every rollout failed, see {config.run_dir / 'failures.jsonl'}; fix the cause, then --resume")


if __name__ == "__main__":
    run_script(main)

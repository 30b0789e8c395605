"""Sampling by a vLLM server that serves the trained adapter: token ids in, token ids and their log-probs out.

Only the adapter travels, and only when it has changed: its weights are digested before each batch, so what is on the
server is what the policy wears at that moment, be it the newest step, an opponent's snapshot, or nothing. Every version
has a name and a folder that were never used before, because vLLM keeps prefixes it has read under a name; a folder is
deleted only after its adapter was unloaded, because an engine that evicts one reads it again.

After each version the server and the policy score one text (`_compare`): an adapter that the server did not take, took
late or scales by another rank gives other log-probs, and training on them would fail without a word.
"""

import asyncio
import contextlib
import hashlib
import shutil
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine import Completion, Decoding, FollowUp, TreePath, Turn, nothing_follows, token_scores
from lib.core.clock import phase
from lib.core.config import Vllm
from lib.core.errors import ApiError
from lib.core.interrupts import give_way
from lib.generators.openai import all_of
from lib.generators.vllm_server import BASE, RESTARTS, ServerLost, VllmServer
from lib.model.policy import Inputs, Policy
from lib.run.adapter_files import save_adapter

KEPT = 3  # versions on the server: the newest, the one before it, and an opponent's snapshot
CANARY_TOKENS = 64
SAY_SECONDS = 60.0  # without an answer, after which the run says that it waits
POLL_SECONDS = 0.2
PLAIN = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}  # in place of the model's own defaults


class VllmEngine:
    """Samples from a vLLM server: one that the config names, or one that is started here and, if need be, again.

    Raises ApiError if there is no server to ask any more, or if its log-probs are not the policy's.
    """

    def __init__(self, settings: Vllm, words: list[str], probe: list[int], on_cpu: bool, say: Callable[[str], None]):
        """Takes the words that start a server, and `probe`, the ids of a text to compare log-probs on."""
        self.settings, self.say = settings, say
        self._words, self._on_cpu, self._probe = words, on_cpu, probe[:CANARY_TOKENS]
        self._has_same_base = False  # the server
        self._versions: OrderedDict[str, str] = OrderedDict()  # digest of the weights -> name on the server
        self._count = 0
        self.server: VllmServer
        self.folder: Path

    @contextlib.contextmanager
    def open(self, folder: Path) -> Iterator[None]:
        """Keeps a server for as long as the context is open; `folder` is for versions of the adapter."""
        self.folder = folder / uuid.uuid4().hex[:8]  # of this process alone
        if not self.settings.url:
            shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed; its server died with it
        with VllmServer(self.settings, self._words, folder.with_suffix(".log"), self._on_cpu, self.say) as self.server:
            try:
                yield
            finally:
                self._forget()
                shutil.rmtree(self.folder, ignore_errors=True)
                with contextlib.suppress(OSError):
                    folder.rmdir()  # unless another process has versions in it

    def generate(
        self, policy: Policy, turns: dict[TreePath, Turn], decoding: Decoding, follow_up: FollowUp = nothing_follows
    ) -> dict[TreePath, Completion]:
        """Returns completions like `native.generate`, drawn with vLLM's random numbers: one seed per path."""
        done: dict[TreePath, Completion] = {}
        in_vain = before = 0
        waiting = {(*path, copy): turn for path, turn in turns.items() for copy in range(turn.copies)}
        while waiting:
            try:
                with phase("sync"):
                    self.server.wake()
                    model = self._model_of(policy)
                with phase("generate"):
                    asyncio.run(self._answer(model, waiting, decoding, follow_up, done))
                with phase("sync"):
                    self.server.sleep()
            except ServerLost as error:
                in_vain, before = (1 if len(done) > before else in_vain + 1), len(done)
                if in_vain > RESTARTS:
                    raise ApiError(
                        f"generation.vllm: {self.server.url} was lost {in_vain} times without one answer in between "
                        f"({error}); fix it, then --resume"
                    ) from error
                self.server.recover(error)  # raises ApiError where it cannot
                self._forget()
        return done

    def _forget(self) -> None:
        """Unloads all versions from a server that goes on; one that was started here ends, or is a new one."""
        for name in self._versions.values() if self.settings.url else ():
            self.server.unload(name)
        self._versions.clear()
        self._has_same_base = False

    async def _answer(
        self, model: str, waiting: dict[TreePath, Turn], decoding: Decoding, follow_up: FollowUp,
        done: dict[TreePath, Completion],
    ) -> None:  # fmt: skip
        """Moves completions from `waiting` to `done`, and adds the turns that follow, until nothing waits."""
        heard = time.monotonic()
        async with self.server.requests() as post:

            async def one(path: TreePath, turn: Turn) -> None:
                nonlocal heard
                answer = await post("/v1/completions", _request(model, path, turn, decoding))
                done[path] = completion = _completion(answer, decoding.stop_ids)
                del waiting[path]
                heard = time.monotonic()
                if turn := follow_up(path, completion):
                    following = {(*path, copy): turn for copy in range(turn.copies)}
                    waiting.update(following)
                    await all_of(one(*item) for item in following.items())

            work = asyncio.ensure_future(all_of([one(*item) for item in waiting.items()]))
            try:
                while not (await asyncio.wait([work], timeout=POLL_SECONDS))[0]:
                    give_way()
                    if time.monotonic() - heard > SAY_SECONDS:
                        self.say(f"vllm: no answer for {SAY_SECONDS:.0f} s, {len(waiting)} requests are under way")
                        heard = time.monotonic()
                work.result()
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

    # -- the adapter on the server

    def _model_of(self, policy: Policy) -> str:
        """Returns the server's name for what the policy is now, which is loaded first if it is new there."""
        if policy.is_reference:
            self._check_base(policy)
            return BASE
        digest = _digest(policy)
        if digest in self._versions:
            self._versions.move_to_end(digest)
            return self._versions[digest]
        with policy.reference_mode():
            self._check_base(policy)
        self._count += 1
        name = f"v{self._count}-{self.folder.name}"
        save_adapter(policy.model, self.folder / name)
        self.server.load(name, self.folder / name)
        self._compare(policy, name)
        self._versions[digest] = name
        while len(self._versions) > KEPT:
            _, old = self._versions.popitem(last=False)
            self.server.unload(old)
            shutil.rmtree(self.folder / old)
        return name

    def _check_base(self, policy: Policy) -> None:
        """Compares the base with the server's, once."""
        if not self._has_same_base:
            self._compare(policy, BASE)
            self._has_same_base = True

    def _compare(self, policy: Policy, name: str) -> None:
        """Raises ApiError unless the server gives the policy's log-probs of the probe, within the tolerance."""
        theirs = self.server.score(name, self._probe)
        ours = scores_of(policy, self._probe)
        gap = float(np.abs(np.subtract(theirs, ours)).mean())
        exact = policy.language_model.dtype == torch.float32
        tolerance = self.settings.tolerance or (1e-4 if exact else 0.05)
        if gap <= tolerance:
            return
        if name == BASE:
            what, why = "base", "it serves another model, revision or dtype than model.name"
        else:
            what, why = "adapter", "it serves another version of the adapter, or at another rank or scale"
        raise ApiError(
            f"generation.vllm: log-probs of the {what} differ by {gap:.2g} nats per token between the policy and "
            f"{self.server.url}, more than the tolerance of {tolerance:g}: {why}. Start it with the same weights, or "
            "leave out generation.vllm.url to have it started, then --resume; or raise generation.vllm.tolerance"
        )


@torch.no_grad()
def scores_of(policy: Policy, ids: list[int]) -> list[float]:
    """Returns the policy's log-probs of ids[1:], each after those before it, at temperature 1."""
    text = torch.tensor([ids], device=policy.device)
    places = torch.arange(len(ids), device=policy.device)
    hidden = policy.hidden_states(Inputs(text, places[None], places[:-1], text[0, 1:]))
    return token_scores(hidden, policy.head_at(1.0), text[0, 1:])[0].tolist()


def _digest(policy: Policy) -> str:
    """Returns a digest of the adapter's weights as they are now."""
    digest = hashlib.blake2b(digest_size=16)
    for weight in policy.trainable:
        digest.update(weight.detach().cpu().contiguous().view(torch.uint8).numpy())
    return digest.hexdigest()


def _request(model: str, path: TreePath, turn: Turn, decoding: Decoding) -> dict[str, Any]:
    seed = int(np.random.SeedSequence(decoding.seed, spawn_key=path).generate_state(1)[0]) >> 1
    return {
        "model": model, "prompt": turn.ids, "max_tokens": turn.max_new_tokens, "temperature": decoding.temperature,
        "seed": seed, "stop_token_ids": sorted(decoding.stop_ids), "ignore_eos": True, "logprobs": 0,
        "return_token_ids": True, **PLAIN,
    }  # fmt: skip


def _completion(answer: dict[str, Any], stop_ids: frozenset[int]) -> Completion:
    """Returns the completion of a response. Raises ServerLost if it is none."""
    try:
        (choice,) = answer["choices"]
        ids, logps = list(choice["token_ids"]), list(choice["logprobs"]["token_logprobs"])
        if not ids or len(ids) != len(logps) or not np.isfinite(logps).all():
            raise ValueError(f"{len(ids)} ids with {len(logps)} log-probs")
    except (KeyError, TypeError, ValueError) as error:
        raise ServerLost(f"an answer without token ids and log-probs ({type(error).__name__}: {error})") from error
    return Completion(ids, logps, finished=ids[-1] in stop_ids)

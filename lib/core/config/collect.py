"""The config of collect_rollouts.py: who answers, with which tools, and which answers are kept."""

from typing import Any

from lib.core.config.chat import ChatPrompts, Server, ServerName, Servers, Thinking, Tools, server_conflicts
from lib.core.config.section import Conflicts, Count, CountOrZero, Name, Section, Share, Weight
from lib.core.config.shared import SMOKE_TOKENS, AtMost, Model, Reward, RunConfig, SandboxSettings, Source


class KeptThinking(Thinking):
    """Reasoning of rollouts. A server has its own section in its place, and `keep` alone is read here."""

    keep: bool = True  # true: rows include the reasoning between its tags, so that SFT trains on it


class ChatSampling(Section):
    """How chats are answered, and budgets in tokens. Nothing is trained on these log-probs, so top_p is allowed."""

    samples_per_prompt: Count = 1  # answers to each prompt
    temperature: Weight = 1.0  # 0: greedy decoding
    top_p: Share = 1.0  # for servers only
    max_new_tokens: Count = 1024  # maximum tokens of one reply; thinking.budget_tokens come on top
    thinking: KeptThinking = KeptThinking()
    batch_size: Count = 64  # maximum number of replies that a local model decodes at once

    @property
    def most_tokens(self) -> int:
        """Returns the token limit of one reply, reasoning included."""
        return self.max_new_tokens + self.thinking.budget_tokens

    def _conflicts(self) -> Conflicts:
        if self.temperature == 0 and self.samples_per_prompt > 1:
            keys = ("temperature", "samples_per_prompt")
            yield keys, "greedy samples of a prompt are all alike: raise temperature, or ask once"


class Collection(Section):
    """Which of the rollouts go into `selected.jsonl`, of those that were not cut off.

    May change at a --resume: nothing is asked again.
    """

    only_matches: bool = True  # true: only right answers, if a `reward` is given
    best_of: Count | None = None  # maximum rows per prompt: those with the highest reward, then the shortest
    distinct: bool = True  # true: of equal completions of a prompt, only the first


class RolloutDataset(Source):
    """Rows to ask about: a hub id, a file, a folder of files, or a saved data set."""

    target_field: Name | None = None  # the column with the right answer, for rewards that compare with it
    max_rows: Count | None = None  # use at most this many rows, the first ones
    test_split_size: CountOrZero = 0  # rows to leave out: those that training holds out by the same keys
    family_field: Name | None = None  # as in training


class CollectConfig(RunConfig):
    """collect_rollouts.py"""

    servers: Servers = {}  # {name: how it is asked}
    server: ServerName | None = None  # which of the servers answers; give either this or `model`
    model: Model | None = None  # the model that answers, loaded in this process; give either this or `server`
    adapter: str | None = None  # a LoRA adapter for the local `model`: a folder, or OWNER/NAME@REVISION of the Hub
    dataset: RolloutDataset
    prompts: ChatPrompts = ChatPrompts()
    generation: ChatSampling = ChatSampling()
    tools: Tools = Tools()
    reward: Reward | None = None  # how answers are judged; null: not at all
    sandbox: SandboxSettings = SandboxSettings()
    select: Collection = Collection()

    def _conflicts(self) -> Conflicts:
        if (self.server is None) == (self.model is None):
            yield ("server", "model"), "give one of the two: a server to ask, or a model to load"
        if self.server:
            yield from server_conflicts("server", self.server, self.servers)
        if self.server and self.generation.thinking != KeptThinking(keep=self.generation.thinking.keep):
            keys = ("generation.thinking", "server")
            yield keys, f"all but `keep` is for a local model: move it to servers.{self.server}.thinking"
        yield from self._conflicts_of_model()

    def _conflicts_of_model(self) -> Conflicts:
        most = self.generation.most_tokens
        if self.adapter and self.model is None:
            yield ("adapter", "model"), "an adapter needs a local model: give `model`, or remove it"
        if self.model and self.generation.top_p < 1:
            yield ("generation.top_p", "model"), "a local model samples from all of its distribution: set top_p to 1"
        if self.model and most >= self.model.max_seq_length:
            keys = ("generation.max_new_tokens", "generation.thinking.budget_tokens", "model.max_seq_length")
            yield keys, f"a reply of up to {most} tokens leaves no room for a prompt: lower it, or raise max_seq_length"

    @property
    def remote(self) -> Server | None:
        """Returns the server that answers, None if the model in this process does."""
        return self.servers[self.server] if self.server else None

    @property
    def sampling(self) -> ChatSampling:
        """Returns `generation`, with the thinking of the server that answers, if one does."""
        if self.remote is None:
            return self.generation
        thinking = KeptThinking(**self.remote.thinking.model_dump(), keep=self.generation.thinking.keep)
        return self.generation.model_copy(update={"thinking": thinking})

    def smoke_overrides(self, examples: int) -> dict[str, Any]:
        """Returns the changes for a run of at most `examples` rows, two short samples each and one round of tools."""
        return super().smoke_overrides(examples) | {
            "dataset.max_rows": examples,
            "generation.samples_per_prompt": AtMost(2),
            "generation.max_new_tokens": AtMost(SMOKE_TOKENS),
            f"{f'servers.{self.server}' if self.server else 'generation'}.thinking.budget_tokens": AtMost(SMOKE_TOKENS),
            "tools.max_turns": AtMost(2),
        }

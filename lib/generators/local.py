"""A model in this process that answers chats: what is asked at once is decoded together."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from engine import Completion, Decoding, Turn
from judge.parsing import opening_of, split_reasoning
from lib.core.config import CollectConfig, Thinking
from lib.generators.native import generate
from lib.generators.protocol import Call, Reply, ReplyError, Request, Usage
from lib.model.loading import load_base, load_skeleton, start_backend
from lib.model.merging import put_on
from lib.model.policy import Policy, stop_ids
from lib.run.hub import local_adapter
from lib.text.calls import native_calls
from lib.text.chats import as_message
from lib.text.templates import PLAIN, Outside, switch_thinking

GATHER_SECONDS = 0.01  # until callers whose replies came together have sent their next requests
PROBE = "REMATCH PROBE"


class Template:
    """Renders chats and tools as a model reads them: its tokenizer's chat template, with thinking on or off."""

    def __init__(self, tokenizer: Any, thinking: Thinking, settings: dict[str, Any]):
        self.tokenizer, self.settings = tokenizer, dict(settings)
        self.outside = Outside(tokenizer, self.settings)
        if thinking.enabled is not None:
            switch_thinking(self.settings, thinking.enabled, partial(self.render, PLAIN, []))

    @property
    def knows_tools(self) -> bool:
        """True if the template shows tools to the model."""
        tool = {"type": "function", "function": {"name": PROBE, "description": "", "parameters": {}}}
        return self._shows_probe([{"role": "user", "content": "x"}], [tool])

    @property
    def knows_results(self) -> bool:
        """True if the template has a role for tool results, also without native calls."""
        chat = [("user", "x"), ("assistant", "y"), ("tool", PROBE)]
        return self._shows_probe([{"role": role, "content": content} for role, content in chat], [])

    def _shows_probe(self, messages: list[dict], tools: list[dict]) -> bool:
        try:
            return PROBE in self.render(messages, tools)
        except ReplyError:
            return False

    def render(self, messages: list[dict], tools: list[dict], **more: Any) -> str:
        """Renders the chat as text, up to where the assistant answers. Raises ReplyError if the template refuses it."""
        from jinja2 import TemplateError

        uniform = [as_message(message, "the chat") for message in messages]
        uniform = [message if message["role"] == "assistant" else self.outside.harmless(message) for message in uniform]
        try:
            return self.tokenizer.apply_chat_template(
                uniform,
                tools=self.outside.harmless(tools) or None,
                tokenize=False,
                add_generation_prompt=True,
                **{**self.settings, **more},
            )
        except (TemplateError, TypeError) as error:  # TypeError: the template adds text and something else
            raise ReplyError("refused", f"the chat template refuses this chat ({error})") from error


class LocalModel:
    """A chat generator over a policy; an async context. Each reply depends on its request alone, seed included."""

    def __init__(self, policy: Policy, tokenizer: Any, thinking: Thinking, name: dict[str, Any], batch_size: int):
        self.policy, self.tokenizer, self.thinking = policy, tokenizer, thinking
        self.batch_size = batch_size
        self.template = Template(tokenizer, thinking, name["chat_template_kwargs"])
        self.name = {**name, "chat_template_kwargs": self.template.settings}
        self._stops = stop_ids(policy.language_model, tokenizer)
        self._waiting: list[tuple[Request, list[int], asyncio.Future]] = []

    async def __aenter__(self) -> "LocalModel":
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="decode")  # keeps the event loop free
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(self._decode_for_ever())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def reply(self, request: Request) -> Reply:
        """Returns one reply. Raises ReplyError if the chat is too long; errors in decoding end the run."""
        ids = self._encode(request)
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((request, ids, future))
        self._wake.set()
        return self._read(request, len(ids), await future)

    def _encode(self, request: Request) -> list[int]:
        text = self.template.render(request.messages, request.tools)
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        limit = self.name["max_seq_length"]
        if len(ids) + request.max_tokens > limit:
            raise ReplyError(
                "refused",
                f"a chat of {len(ids)} tokens and a reply of up to {request.max_tokens} exceed model.max_seq_length = "
                f"{limit}",
            )
        return ids

    async def _decode_for_ever(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await asyncio.sleep(GATHER_SECONDS)
            batch = self._next_batch()
            if self._waiting:
                self._wake.set()
            turns: dict[tuple[int, ...], Turn] = {
                (request.seed,): Turn(ids, request.max_tokens) for request, ids, _ in batch
            }
            try:
                done = await asyncio.get_running_loop().run_in_executor(
                    self._thread, generate, self.policy, turns, self._decoding(batch)
                )
            except Exception as error:  # raised in every waiting caller, and so in the script
                _settle(batch, lambda future, _, error=error: future.set_exception(error))
            else:
                _settle(batch, lambda future, request, done=done: future.set_result(done[(request.seed, 0)]))

    def _next_batch(self) -> list[tuple[Request, list[int], asyncio.Future]]:
        """Takes waiting requests of one temperature and of different seeds, since a seed names its random numbers."""
        temperature = self._waiting[0][0].temperature if self._waiting else None
        batch, left, seeds = [], [], set()
        for entry in self._waiting:
            request, _, future = entry
            if future.done():  # no one waits for it any more
                continue
            fits = request.temperature == temperature and request.seed not in seeds and len(batch) < self.batch_size
            (batch if fits else left).append(entry)
            if fits:
                seeds.add(request.seed)
        self._waiting = left
        return batch

    def _decoding(self, batch: list[tuple[Request, list[int], asyncio.Future]]) -> Decoding:
        return Decoding(
            temperature=batch[0][0].temperature if batch else 1.0,
            stop_ids=self._stops,
            pad_id=self.tokenizer.pad_token_id,
            rows=self.batch_size,
            columns=max((len(ids) + request.max_tokens for request, ids, _ in batch), default=1),
        )

    def _read(self, request: Request, prompt_tokens: int, completion: Completion) -> Reply:
        ids = completion.text_ids()
        text = self.tokenizer.decode(ids, skip_special_tokens=False)  # some models mark tool calls with them
        reasoning, answer, ended = split_reasoning(text, *self.thinking.tags)
        opening = opening_of(text, answer, self.thinking.tags[0])
        calls: list[tuple[str, str]] = []
        if request.tools and ended:
            answer, calls = native_calls(answer)
        thought = len(self.tokenizer(reasoning, add_special_tokens=False)["input_ids"]) if reasoning else 0
        return Reply(
            text=answer,
            reasoning=reasoning,
            calls=tuple(Call(name, arguments) for name, arguments in calls),
            finished=completion.finished,
            reasoning_ended=ended,
            usage=Usage(prompt_tokens, len(completion.ids), thought),
            opening=opening,
        )


def load_local(config: CollectConfig, say: Callable[[str], None]) -> LocalModel:
    """Loads the config's model, with its adapter. Raises ConfigError."""
    backend = start_backend(config.model)
    say(f"model {config.model.full_name} through {backend}{f', adapter {config.adapter}' if config.adapter else ''}")
    base, tokenizer = load_base(config.model, backend)
    _refuse_controls(tokenizer, config)
    model = put_on(base, local_adapter(config.adapter, "adapter"), "adapter") if config.adapter else base
    policy = Policy(model, config.generation.temperature or 1.0, backend)
    policy.say_sampling(say)
    name = {
        "model": config.model.full_name,
        "revision": config.model.revision,
        "adapter": config.adapter,
        "load_in_4bit": config.model.load_in_4bit,
        "chat_template": config.model.chat_template,
        "chat_template_kwargs": config.model.chat_template_kwargs,
        "max_seq_length": config.model.max_seq_length,
    }
    return LocalModel(policy, tokenizer, config.generation.thinking, name, config.generation.batch_size)


def load_template(config: CollectConfig) -> Template:
    """Loads the chat template of the config's model, without its weights. Raises ConfigError."""
    _, tokenizer = load_skeleton(config.model)
    _refuse_controls(tokenizer, config)
    return Template(tokenizer, config.generation.thinking, config.model.chat_template_kwargs)


def _refuse_controls(tokenizer: Any, config: CollectConfig) -> None:
    prompts = {"prompts.system": config.prompts.system, "prompts.user": config.prompts.user}
    Outside(tokenizer, config.model.chat_template_kwargs).refuse_controls(prompts)


def _settle(batch: list[tuple[Request, list[int], asyncio.Future]], settle: Callable) -> None:
    for request, _, future in batch:
        if not future.done():
            settle(future, request)

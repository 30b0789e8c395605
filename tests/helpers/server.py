"""An OpenAI-compatible server on loopback over a small model of ours: what it says is sampled, never made up.

    python tests/helpers/server.py MODEL_DIR --port 0       # its first line: listening on http://127.0.0.1:PORT/v1
    python tests/helpers/server.py MODEL_DIR --adapter DIR --api-key KEY --reasoning-parser --log FILE --delay 0.1

    with serve(folder, "--log", file) as url: ...           # the same as a process that dies with the block

It has /v1/chat/completions, /v1/responses, /v1/models and /health, and the first two also in Azure's form.
Requests that wait are answered together, and the `seed` of each decides what it gets, whoever was answered with it.
`--log` appends a line as soon as an answer was given to the socket, with status 499 where the client had left before.
POST /v1/hold?answers=N lets N more completions leave and holds the rest back until POST /v1/release.
"""

import argparse
import asyncio
import contextlib
import hashlib
import http
import json
import math
import re
import secrets
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx

from helpers import forks

OF_ONE_CONNECTION = ("connection", "transfer-encoding")  # headers that are not passed on
GATHERING = 0.002  # seconds in which requests join the one that came first
CLIENT_LEFT = 499  # the status in a log where nobody was there to be answered
NEUTRAL = {"n": 1, "top_p": 1, "stream": False, "stop": None}  # fields that ask for nothing; other values are refused
THINKING = re.compile(r"\s*<think>(.*?)(?:</think>|\Z)", re.DOTALL)
HOLD = re.compile(r" /v1/(hold\?answers=(?P<answers>\d+)|release) ")
TOOL_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)


class Address(str):
    """A base URL, and the id of the process behind it."""

    pid: int


@contextlib.contextmanager
def launched(script: str, *options: object) -> Iterator[Address]:
    """The address that a script of this folder listens on; the process is killed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "told.txt")
        process = forks.script(Path(__file__).with_name(script), *options, output=told)
        try:
            forks.wait_for(lambda: told.exists() and told.read_text().endswith("/v1\n"), process, told, seconds=60)
            address = Address(told.read_text().split()[-1])
            address.pid = process.pid
            yield address
        finally:
            process.kill()
            process.join()


def serve(model_dir: Path, *options: object) -> contextlib.AbstractContextManager[Address]:
    """This server over a saved model; `options` are those of the command line."""
    return launched("server.py", model_dir, *options)


@contextlib.contextmanager
def held(url: str, answers: int = 0) -> Iterator[None]:
    """A quiet moment: after so many more completions none leaves the server at `url`."""
    httpx.post(f"{url}/hold", params={"answers": answers}).raise_for_status()
    try:
        yield
    finally:
        httpx.post(f"{url}/release").raise_for_status()


# HTTP/1.1, as far as both servers of this folder need it


@dataclass
class Message:
    """A request or an answer. Names of headers are in small letters; a chunked body is put together."""

    start: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def packed(self) -> bytes:
        """As it is sent."""
        headers = {name: value for name, value in self.headers.items() if name not in OF_ONE_CONNECTION}
        return self.head({**headers, "content-length": str(len(self.body))}) + self.body

    def head(self, headers: dict[str, str]) -> bytes:
        """The lines before the body."""
        lines = [self.start, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1")

    @property
    def status(self) -> int:
        """Of an answer."""
        return int(self.start.split()[1])


async def read_message(reader: asyncio.StreamReader) -> Message:
    """The next message. IncompleteReadError where the connection ends before it does."""
    start, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    pairs = (line.partition(":") for line in lines)
    message = Message(start, {name.lower(): value.strip() for name, _, value in pairs})
    if "chunked" in message.headers.get("transfer-encoding", ""):
        while size := int((await reader.readline()).split(b";")[0], 16):
            message.body += (await reader.readexactly(size + 2))[:-2]
        await reader.readuntil(b"\r\n")
    elif "content-length" in message.headers:
        message.body = await reader.readexactly(int(message.headers["content-length"]))
    elif start.startswith("HTTP/"):
        message.body = await reader.read()
    return message


def answer(status: int, body: bytes | str, kind: str = "application/json", **headers: str) -> Message:
    """A well-formed answer."""
    reason = http.HTTPStatus(status).phrase if status in set(http.HTTPStatus) else "Unknown"
    body = body.encode() if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Message(f"HTTP/1.1 {status} {reason}", {"content-type": kind, **named}, body)


def fingerprint(body: bytes) -> str:
    """What a body is called in the logs."""
    return hashlib.sha256(body).hexdigest()[:16]


Respond = Callable[[Message, asyncio.StreamWriter], Awaitable[None]]


class _Connection(asyncio.StreamReaderProtocol):
    """One request after the other is given to `respond`, which is cancelled when its client leaves."""

    def __init__(self, respond: Respond):
        super().__init__(asyncio.StreamReader(), self._begin)
        self.respond = respond

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.conversation = asyncio.create_task(self._converse(reader, writer))

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                request = await read_message(reader)
                await self.respond(request, writer)
                if request.headers.get("connection", "").lower() == "close":
                    break

    def eof_received(self) -> bool:
        self.conversation.cancel()
        return super().eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        self.conversation.cancel()
        super().connection_lost(error)


async def listen(respond: Respond, port: int, path: str) -> None:
    """Serves on loopback, and says where; 0 is any free port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(respond), "127.0.0.1", port, backlog=1024)
    print(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}{path}", flush=True)


def note(log: Path | None, **fields: object) -> None:
    """Appends a JSON line, where there is a log."""
    if log:
        with open(log, "a", encoding="utf-8") as file:
            file.write(json.dumps(fields) + "\n")


def notes(log: Path) -> list[dict]:
    """What was logged so far. An answer can be a moment ahead of its line."""
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []


# what is asked, and what is answered


class Refused(Exception):
    """A request that gets an error in OpenAI's form."""

    def __init__(self, status: int, message: str, code: str | None = None):
        self.status, self.code = status, code
        super().__init__(message)

    def answer(self) -> Message:
        """The error as it is sent."""
        kind = "authentication_error" if self.status == 401 else "invalid_request_error"
        error = {"message": str(self), "type": kind, "param": None, "code": self.code}
        return answer(self.status, json.dumps({"error": error}))


@dataclass
class Ask:
    """One sample that is wanted. Those that wait are answered together where seeds differ and temperatures do not."""

    ids: list[int]
    max_new_tokens: int
    temperature: float
    seed: int
    completion: asyncio.Future


@dataclass
class Spoken:
    """A completion, taken apart."""

    content: str
    reasoning: str | None
    calls: list[dict]  # name, and arguments as JSON text
    finish: str
    usage: tuple[int, int, int]  # tokens of the prompt, of the completion, and those of it that are reasoning


class Speaker:
    """The model: samples for all who wait, together."""

    def __init__(self, model_dir: Path, adapter: Path | None, reasoning_parser: bool):
        import torch

        from lib.core.config import Lora, Model
        from lib.model.loading import attach_tuner, load_base, start_backend
        from lib.model.policy import Policy, stop_ids
        from lib.run.adapter_files import load_adapter

        torch.set_num_threads(1)
        config = Model(name=str(model_dir), backend="plain")
        base, self.tokenizer = load_base(config, start_backend(config))
        self.context = base.config.max_position_embeddings
        lora = Lora(r=1, alpha=1, targets="all-linear")  # changes nothing
        if adapter:
            saved = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
            lora = Lora(r=saved["r"], alpha=saved["lora_alpha"], targets=saved["target_modules"])
        self.policy = Policy(attach_tuner(base, lora, config, "plain", seed=0), temperature=1.0)
        if adapter:
            load_adapter(self.policy.model, adapter)
        self.stop_ids = stop_ids(base, self.tokenizer)
        self.reasoning_parser = reasoning_parser
        self.waiting: list[Ask] = []
        self.asked = asyncio.Event()

    async def work(self) -> None:
        """Answers whoever waits, for ever."""
        while True:
            await self.asked.wait()
            await asyncio.sleep(GATHERING)
            batch, self.waiting = _together(self.waiting)
            if not self.waiting:
                self.asked.clear()
            completions = await asyncio.to_thread(self._sample, batch) if batch else {}
            for seed, ask in batch.items():
                if not ask.completion.done():  # its client may have left
                    ask.completion.set_result(completions[seed, 0])

    def _sample(self, batch: dict[int, Ask]) -> dict:
        """Completions by (seed, 0)."""
        from engine import Decoding, Turn
        from lib.generators.native import generate

        turns = {(seed,): Turn(ask.ids, ask.max_new_tokens) for seed, ask in batch.items()}
        decoding = Decoding(
            temperature=next(iter(batch.values())).temperature,
            stop_ids=self.stop_ids,
            pad_id=self.tokenizer.pad_token_id,
            rows=len(turns),
            columns=max(len(turn.ids) + turn.max_new_tokens for turn in turns.values()),
        )
        return generate(self.policy, turns, decoding)

    async def speak(self, wanted: dict) -> Spoken:
        """The answer to one request of the chat kind. Refused where it cannot be had."""
        from jinja2 import TemplateError

        try:
            settings = {"tools": wanted.get("tools") or None, **(wanted.get("chat_template_kwargs") or {})}
            prompt = self.tokenizer.apply_chat_template(
                wanted["messages"], tokenize=False, add_generation_prompt=True, **settings
            )
        except (TemplateError, TypeError, ValueError) as error:
            raise Refused(400, f"the chat template refuses these messages: {error}") from error
        ids = self.tokenizer(prompt, add_special_tokens=False)["input_ids"]
        room = self.context - len(ids)
        budget = _whole(wanted, "max_tokens", 1, default=room)
        if room < max(budget, 1):
            raise Refused(
                400,
                f"This model's maximum context length is {self.context} tokens. However, you requested "
                f"{max(budget, 1)} output tokens and your prompt has {len(ids)}.",
                "context_length_exceeded",
            )
        seed, temperature = wanted["seed"] % 2**64, _temperature(wanted)
        ask = Ask(ids, budget, temperature, seed, asyncio.get_running_loop().create_future())
        self.waiting.append(ask)
        self.asked.set()
        completion = await ask.completion
        text = self.tokenizer.decode(completion.text_ids(), skip_special_tokens=True)
        opened = "<think>" if prompt.rstrip().endswith("<think>") else ""
        return self._taken_apart(opened + text, completion, len(ids))

    def _taken_apart(self, text: str, completion: object, prompt_tokens: int) -> Spoken:
        reasoning, thinking = None, THINKING.match(text) if self.reasoning_parser else None
        if thinking:
            reasoning, text = thinking[1], text[thinking.end() :]
        calls = []
        for block in TOOL_CALL.finditer(text):
            with contextlib.suppress(ValueError, KeyError, RecursionError):  # what is no call stays text
                call = json.loads(block[1])
                calls.append({"name": call["name"], "arguments": json.dumps(call["arguments"])})
                text = text.replace(block[0], "", 1)
        finish = ("tool_calls" if calls else "stop") if completion.finished else "length"
        thought = len(self.tokenizer(reasoning or "", add_special_tokens=False)["input_ids"])
        return Spoken(text, reasoning, calls, finish, (prompt_tokens, len(completion.ids), thought))


def _together(waiting: list[Ask]) -> tuple[dict[int, Ask], list[Ask]]:
    """Those that can be sampled with the first one, by seed, and the others; whoever left is in neither."""
    batch, others = {}, []
    for ask in (ask for ask in waiting if not ask.completion.done()):
        fits = not batch or ask.temperature == next(iter(batch.values())).temperature
        if fits and ask.seed not in batch:
            batch[ask.seed] = ask
        else:
            others.append(ask)
    return batch, others


class Api:
    """The endpoints."""

    def __init__(self, speaker: Speaker, options: argparse.Namespace):
        self.speaker, self.options = speaker, options
        self.name = options.name or options.model_dir.resolve().name
        self.may_leave = math.inf  # completions, until /release
        self.released = asyncio.Event()

    async def respond(self, request: Message, writer: asyncio.StreamWriter) -> None:
        """Answers one request, and logs it, unless it is about holding others back."""
        if told := HOLD.search(request.start):
            self._hold(float(told["answers"] or "inf"))
            writer.write(answer(200, "{}").packed())
            return
        status, asked = CLIENT_LEFT, {}
        digest = fingerprint(request.body)
        try:
            try:
                reply = await self._answer(request, asked, digest)
            except Refused as refusal:
                reply = refusal.answer()
            await asyncio.sleep(self.options.delay)
            if asked:
                await self._leave()
            writer.write(reply.packed())
            status = reply.status
        finally:
            note(self.options.log, time=time.time(), seed=asked.get("seed"), hash=digest, status=status)

    def _hold(self, answers: float) -> None:
        self.may_leave = answers
        self.released.set()  # who waits looks again
        self.released = asyncio.Event()

    async def _leave(self) -> None:
        """Waits until one more completion may leave."""
        while self.may_leave <= 0:
            await self.released.wait()
        self.may_leave -= 1

    async def _answer(self, request: Message, asked: dict, digest: str) -> Message:
        """The right answer, or Refused; `asked` is filled with what was understood on the way."""
        method, path, *_ = request.start.split()
        path = path.partition("?")[0]
        if path == "/health":
            return answer(200, "{}")
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.options.api_key and key != self.options.api_key:
            raise Refused(401, "Incorrect API key provided.", "invalid_api_key")
        if path == "/v1/models":
            about = {"id": self.name, "object": "model", "created": 0, "owned_by": "rematch"}
            data = [about | {"max_model_len": self.speaker.context}]
            return answer(200, json.dumps({"object": "list", "data": data}))
        if path not in ("/v1/chat/completions", "/v1/responses"):
            raise Refused(404, f"There is nothing at {path}.")
        if method != "POST":
            raise Refused(405, f"{path} takes POST, not {method}.")
        asked |= self._understood(request.body)
        wanted = _as_chat(asked) if path == "/v1/responses" else asked
        spoken = await self.speaker.speak(_checked(wanted))
        form = _response if path == "/v1/responses" else _chat_completion
        return answer(200, json.dumps(form(spoken, digest) | {"model": self.name}))

    def _understood(self, body: bytes) -> dict:
        """What a body says, with a seed."""
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Refused(400, f"The body is not JSON: {error}") from error
        if not isinstance(asked, dict):
            raise Refused(400, "The body is not an object.")
        if "model" not in asked:
            raise Refused(400, "You must provide a model parameter.")
        if asked["model"] != self.name:
            raise Refused(404, f"The model '{asked['model']}' does not exist.", "model_not_found")
        for name, neutral in NEUTRAL.items():
            if asked.get(name) not in (neutral, None):
                raise Refused(400, f"{name}: got {asked[name]!r}, this server takes {neutral!r}.", "unsupported_value")
        seed = _whole(asked, "seed", -(2**63), default=secrets.randbits(48))
        return asked | {"seed": seed}


def _whole(asked: dict, name: str, low: float, default: int) -> int:
    value = asked.get(name)
    if value is None:
        return default
    if type(value) is not int or value < low:
        raise Refused(400, f"{name}: got {value!r}, expected a whole number of at least {low}.", "invalid_value")
    return value


def _temperature(asked: dict) -> float:
    value = asked.get("temperature")
    if value is None:
        return 1.0
    if type(value) not in (int, float) or not 0 <= value <= 2:
        raise Refused(400, f"temperature: got {value!r}, expected a number from 0 to 2.", "invalid_value")
    return float(value)


def _checked(asked: dict) -> dict:
    """A chat request with one name for the budget, and messages as templates want them."""
    messages = asked.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused(400, "messages: expected a list with one message at least.", "missing_required_parameter")
    try:
        messages = [_plain(message) for message in messages]
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise Refused(400, f"messages: one is malformed ({error!r}).") from error
    budgets = [asked[name] for name in ("max_completion_tokens", "max_tokens") if asked.get(name) is not None]
    return asked | {"messages": messages, "max_tokens": budgets[0] if budgets else None}


def _plain(message: dict) -> dict:
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part["text"] for part in content)
    plain = message | {"role": message["role"], "content": content or ""}
    if message.get("tool_calls"):
        functions = [call["function"] for call in message["tool_calls"]]
        called = [function | {"arguments": json.loads(function["arguments"])} for function in functions]
        plain["tool_calls"] = [
            call | {"function": function} for call, function in zip(message["tool_calls"], called, strict=True)
        ]
    return plain


def _as_chat(asked: dict) -> dict:
    """A request to /responses, as one to /chat/completions."""
    items = asked.get("input")
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Refused(400, "input: expected text or a list of items.", "missing_required_parameter")
    system = [{"role": "system", "content": asked["instructions"]}] if asked.get("instructions") else []
    messages = [_item_as_message(item) for item in items if item.get("type") != "reasoning"]
    tools = [{"type": "function", "function": tool} for tool in asked.get("tools") or ()]
    return asked | {"messages": system + messages, "tools": tools, "max_tokens": asked.get("max_output_tokens")}


def _item_as_message(item: dict) -> dict:
    if item.get("type") == "function_call":
        function = {name: item.get(name) for name in ("name", "arguments")}
        calls = [{"id": item.get("call_id"), "type": "function", "function": function}]
        return {"role": "assistant", "content": "", "tool_calls": calls}
    if item.get("type") == "function_call_output":
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
    return item


def _chat_completion(spoken: Spoken, digest: str) -> dict:
    message = {"role": "assistant", "content": spoken.content or (None if spoken.calls else "")}
    if spoken.reasoning is not None:
        message["reasoning_content"] = spoken.reasoning
    if spoken.calls:
        message["tool_calls"] = [
            {"id": f"call_{digest}_{k}", "type": "function", "function": call} for k, call in enumerate(spoken.calls)
        ]
    prompt, completion, thought = spoken.usage
    return {
        "id": f"chatcmpl-{digest}",
        "object": "chat.completion",
        "created": int(time.time()),
        "choices": [{"index": 0, "message": message, "finish_reason": spoken.finish, "logprobs": None}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "completion_tokens_details": {"reasoning_tokens": thought},
        },
    }


def _response(spoken: Spoken, digest: str) -> dict:
    output, status = [], "incomplete" if spoken.finish == "length" else "completed"
    if spoken.reasoning is not None:
        texts = [{"type": "reasoning_text", "text": spoken.reasoning}]
        output.append({"type": "reasoning", "id": f"rs_{digest}", "summary": [], "content": texts})
    if spoken.content or not spoken.calls:
        texts = [{"type": "output_text", "text": spoken.content, "annotations": []}]
        output.append(
            {"type": "message", "id": f"msg_{digest}", "role": "assistant", "status": status, "content": texts}
        )
    output += [
        {"type": "function_call", "id": f"fc_{digest}_{k}", "call_id": f"call_{digest}_{k}", "status": status, **call}
        for k, call in enumerate(spoken.calls)
    ]
    prompt, completion, thought = spoken.usage
    return {
        "id": f"resp_{digest}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "output": output,
        "usage": {
            "input_tokens": prompt,
            "output_tokens": completion,
            "total_tokens": prompt + completion,
            "output_tokens_details": {"reasoning_tokens": thought},
        },
    }


async def main() -> None:
    """Loads the model, listens, and answers until it is killed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model_dir", type=Path)
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--name", help="what the model is called (default: as its folder)")
    options.add_argument("--adapter", type=Path, metavar="DIR")
    options.add_argument("--api-key", metavar="KEY", help="what a client must bring")
    options.add_argument("--reasoning-parser", action="store_true", help="<think> becomes reasoning_content")
    options.add_argument("--delay", type=float, default=0.0, metavar="S", help="seconds that each answer waits")
    options.add_argument("--log", type=Path, metavar="FILE")
    options = options.parse_args()
    speaker = Speaker(options.model_dir, options.adapter, options.reasoning_parser)
    api = Api(speaker, options)
    await listen(api.respond, options.port, "/v1")
    await speaker.work()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())

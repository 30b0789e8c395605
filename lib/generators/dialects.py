"""What is sent to OpenAI's two APIs, chat completions and responses, and how their answers are read."""

from dataclasses import dataclass
from typing import Any

from judge.parsing import opening_of, split_reasoning, writable
from lib.core.config import Server
from lib.generators.protocol import Call, Reply, Request, Usage


class Declined(Exception):
    """The model, or a filter, declined to answer."""

    def __init__(self, reason: Any):
        super().__init__(f"the model, or a filter, declined to answer: {reason or 'without a word'}")


@dataclass(frozen=True)
class Dialect:
    """The API of a server."""

    server: Server
    limit: str = "max_tokens"  # the chat API's name of the token limit

    @property
    def _is_chat(self) -> bool:
        return self.server.api == "chat"

    @property
    def path(self) -> str:
        """Returns the address of a request below the server's."""
        return "/chat/completions" if self._is_chat else "/responses"

    def body_of(self, request: Request) -> dict[str, Any]:
        """Returns the body of a request."""
        body: dict[str, Any] = {"model": self.server.model, "temperature": request.temperature}
        if self._is_chat:
            body |= {"messages": request.messages, self.limit: request.max_tokens, "seed": request.seed}
            tools = request.tools
        else:
            body |= {"input": [item for message in request.messages for item in _items(message)]}
            body |= {"max_output_tokens": request.max_tokens, "stream": False}
            tools = [{"type": "function", **tool["function"]} for tool in request.tools]
        body |= {"top_p": request.top_p} if request.top_p < 1 else {}
        body |= {"tools": tools} if tools else {}
        # without null fields, so that `extra_body: {temperature: null}` drops one that a server does not accept
        return {key: value for key, value in (body | self.extra_body()).items() if value is not None}

    def read(self, data: dict) -> Reply:
        """Reads an answer. Raises Declined, or an error such as KeyError if it is no reply."""
        return self._read_chat(data) if self._is_chat else self._read_response(data)

    def extra_body(self) -> dict[str, Any]:
        """Returns the fields of every request that the config alone decides."""
        extra = dict(self.server.extra_body)
        if self.server.thinking.enabled is not None:
            extra["chat_template_kwargs"] = {
                "enable_thinking": self.server.thinking.enabled, **extra.get("chat_template_kwargs", {})
            }  # fmt: skip
        return extra

    def _read_chat(self, data: dict) -> Reply:
        choice = data["choices"][0]
        message = choice["message"]
        calls = tuple(
            Call(_text(call["function"]["name"]), _text(call["function"]["arguments"]), str(call.get("id") or ""))
            for call in message.get("tool_calls") or ()
        )
        finished = choice.get("finish_reason") != "length"
        content = message.get("content")
        apart = message.get("reasoning_content") or message.get("reasoning")
        if choice.get("finish_reason") == "content_filter" or (message.get("refusal") and not content):
            raise Declined(message.get("refusal"))
        if content is None and not calls and not apart and finished:
            raise ValueError("no content")
        counted = _counted(data, "prompt_tokens", "completion_tokens")
        return self._reply(_text("" if content is None else content), apart, calls, finished, counted)

    def _read_response(self, data: dict) -> Reply:
        texts, reasoning, calls, refusals = [], [], [], []
        for item in data["output"]:
            parts = [part for part in item.get("content") or () if isinstance(part, dict)]
            if item["type"] == "message":
                texts += [part["text"] for part in parts if part["type"] == "output_text"]
                refusals += [part["refusal"] for part in parts if part["type"] == "refusal"]
            elif item["type"] == "reasoning":  # its text, never its summary, which another model may have written
                reasoning += [part["text"] for part in parts if part["type"] == "reasoning_text"]
            elif item["type"] == "function_call":
                calls.append(Call(_text(item["name"]), _text(item["arguments"]), str(item.get("call_id") or "")))
        if data["status"] not in ("completed", "incomplete"):
            raise ValueError(f"status {data['status']}")
        finished = data["status"] == "completed"
        reason = None if finished else (data.get("incomplete_details") or {}).get("reason")
        if reason == "content_filter" or (refusals and not texts):
            raise Declined(refusals)
        if finished and not texts and not calls and not reasoning:
            raise ValueError("no output")
        if not finished and reason != "max_output_tokens":
            raise ValueError(f"incomplete for {reason}")
        counted = _counted(data, "input_tokens", "output_tokens")
        return self._reply("".join(texts), "".join(reasoning), tuple(calls), finished, counted)

    def _reply(self, text: str, apart: Any, calls: tuple[Call, ...], finished: bool, usage: Usage) -> Reply:
        """Builds the reply, and splits off reasoning that the server has not separated."""
        if isinstance(apart, str) and apart:
            return Reply(text, apart, calls, finished, bool(text or calls), usage)  # servers do not say if it ended
        reasoning, answer, ended = split_reasoning(text, *self.server.thinking.tags)
        opening = opening_of(text, answer, self.server.thinking.tags[0])
        return Reply(answer, reasoning, calls, finished, ended, usage, opening)


def _items(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Converts a message of the chat API to items of the responses API."""
    if message["role"] == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}]
    calls = [
        {
            "type": "function_call",
            "call_id": call["id"],
            "name": call["function"]["name"],
            "arguments": call["function"]["arguments"],
        }
        for call in message.get("tool_calls") or ()
    ]
    messages = [{"role": message["role"], "content": message["content"]}] if message.get("content") else []
    return messages + calls


def _counted(data: dict, read: str, written: str) -> Usage:
    """Returns the token counts of a reply under the API's two names for them; 0 if the server does not count."""
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    details = usage.get(f"{written}_details") or {}
    return Usage(int(usage.get(read) or 0), int(usage.get(written) or 0), int(details.get("reasoning_tokens") or 0))


def _text(value: Any) -> str:
    """Returns text that can be written. Raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"a {type(value).__name__} in place of text")
    return writable(value)

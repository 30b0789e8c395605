"""Episodes: the model speaks, its tool calls are answered, and so on until it gives an answer or a budget ends.

Two protocols. Native: calls and results have the format of the chat template, or of the endpoint. JSON, for models that
know no tools: a message ends with one JSON object, either of

    {"tool_call": {"name": "python.run", "arguments": {"code": "print(6 * 7)"}}}
    {"final_answer": "42"}

A message without either is an answer. In training the policy speaks, and only its calls are answered here (`results`).
Whatever goes wrong with a call is told to the model as the call's result. What the assistant said stays in the chat;
results have a role of their own, `tool`, or `user` where a template has no other, so that no loss is ever on them.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from judge.parsing import without_special_tokens, writable
from lib.core.config import ChatSampling
from lib.generators.protocol import Call, ChatGenerator, Reply, ReplyError, Request, Usage
from lib.text.calls import last_json_object, native_calls, read_json
from lib.tools.toolbox import Toolbox, wire_name

SPECIFICATION = """You can use tools. End every message with exactly one JSON object, and write nothing behind it.
To call a tool: {"tool_call": {"name": "NAME", "arguments": {"ARGUMENT": "VALUE"}}}
When you know the answer: {"final_answer": "ANSWER"}
A call's result comes with the next message. Tools, with the JSON schemas of their arguments:"""

Ending = Literal["answer", "truncated", "turns", "tokens", "refused"]


@dataclass
class Episode:
    """One finished chat."""

    messages: list[dict[str, Any]]  # the prompt, and all messages since
    answer: str = ""  # what rewards judge; "" where there is none
    ended: Ending = "answer"  # or cut off: in the middle of a reply, by the budget of turns or tokens, or by a refusal
    tool_log: list[dict[str, Any]] = field(default_factory=list)  # {turn, name, arguments, result or error, seconds}
    usage: Usage = field(default_factory=Usage)
    turns: int = 0
    repaired: int = 0  # JSON objects that could not be read strictly
    reasoning_ended: bool = True


class ToolLoop:
    """Lets a generator answer chats with the tools of a box, or without any."""

    def __init__(
        self,
        generator: ChatGenerator | None,
        sampling: ChatSampling,
        toolbox: Toolbox,
        protocol: str = "native",  # or "json"; for `results` also "any"
        result_role: str = "user",  # or "tool"
    ):
        """Sets the role of results in the JSON protocol, `result_role`; native results always have the role `tool`."""
        self.generator, self.sampling, self.toolbox = generator, sampling, toolbox
        self.protocol, self.result_role = protocol, result_role
        self._names = {wire_name(name): name for name in toolbox.tools}

    async def run(self, messages: list[dict[str, Any]], seed_of: Callable[[int], int]) -> Episode:
        """Runs one episode; `seed_of(turn)` seeds a reply. Raises UserErrors; ReplyError, save for a later refusal."""
        limits, sampling = self.toolbox.settings, self.sampling
        episode = Episode(self.prompt(messages))
        budget = limits.max_total_tokens if self.toolbox else sampling.most_tokens
        for turn in range(limits.max_turns if self.toolbox else 1):
            room = budget - episode.usage.completion_tokens
            if room <= 0:
                episode.ended = "tokens"
                break
            request = Request(
                list(episode.messages), min(room, sampling.most_tokens), sampling.temperature, seed_of(turn),
                sampling.top_p, self.schemas(),
            )  # fmt: skip
            try:
                reply = await self.generator.reply(request)
            except ReplyError as error:
                if error.kind != "refused" or not turn:
                    raise
                episode.ended = "refused"  # mostly because the chat is too long: the messages so far stay
                break
            calls = self._take(reply, episode)
            if not calls or not reply.finished:
                episode.ended = "answer" if reply.finished else "truncated"
                break
            await self._answer(calls, episode)
        else:
            episode.ended = "turns"
        return episode

    def results(self, texts: Sequence[str]) -> list[Episode]:
        """Answers the calls in messages of the model, those of all messages at once; an episode holds the results."""
        self.toolbox = Toolbox(self.toolbox.settings, None)  # its semaphores belong to one event loop
        episodes = [Episode([], turns=1) for _ in texts]

        async def answer_all() -> None:
            calls = map(self.calls_in, texts)
            await asyncio.gather(*map(self._answer, calls, episodes))

        asyncio.run(answer_all())
        return episodes

    def calls_in(self, text: str) -> list[Call]:
        """Returns the calls in a message of the model, without its reasoning."""
        native = [] if self.protocol == "json" else native_calls(text)[1]
        if native or self.protocol == "native":
            return [Call(writable(name), arguments) for name, arguments in native]
        return _read_object(last_json_object(text)[0] or {}, "")[0]

    def final_answer(self, text: str) -> str:
        """Returns the final answer that a message declares in the JSON protocol, else the whole message."""
        found = last_json_object(text)[0] if self.protocol == "json" else None
        return _read_object(found, text)[1] if found and "final_answer" in found else text

    def prompt(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns the chat to begin with; in the JSON protocol its system message ends with the tools."""
        if not self.toolbox or self.protocol == "native":
            return list(messages)
        functions = [tool.schema()["function"] for tool in self.toolbox.tools.values()]
        specification = "\n".join([SPECIFICATION, *(json.dumps(function) for function in functions)])
        if messages and messages[0]["role"] == "system":
            return [{"role": "system", "content": f"{messages[0]['content']}\n\n{specification}"}, *messages[1:]]
        return [{"role": "system", "content": specification}, *messages]

    def schemas(self) -> list[dict[str, Any]]:
        """Returns the schemas shown to a model that makes native calls; none in the JSON protocol."""
        schemas = self.toolbox.schemas() if self.protocol == "native" else []
        for schema in schemas:
            schema["function"]["name"] = wire_name(schema["function"]["name"])
        return schemas

    def _take(self, reply: Reply, episode: Episode) -> list[Call]:
        """Adds a reply to the chat, and returns its calls. Without any, it is the answer."""
        thinking = self.sampling.thinking
        episode.turns += 1
        episode.usage += reply.usage
        episode.reasoning_ended = reply.reasoning_ended
        said = reply.whole(*thinking.tags)
        message: dict[str, Any] = {"role": "assistant", "content": said if thinking.keep else reply.text}
        written = reply.written(*thinking.tags)
        calls, answer = [], written if reply.reasoning_ended else ""
        if self.toolbox and self.protocol == "native":
            calls = [
                Call(writable(call.name), call.arguments, f"call{episode.turns:02d}{number:03d}")  # theirs are random
                for number, call in enumerate(reply.calls)
            ]
            if calls:
                answer = ""
                message["tool_calls"] = [_as_message(call) for call in calls]
        elif self.toolbox:
            found, repaired = last_json_object(reply.text)
            episode.repaired += repaired
            calls, answer = _read_object(found or {}, answer)
        episode.messages.append(message)
        episode.answer = answer
        return calls

    async def _answer(self, calls: list[Call], episode: Episode) -> None:
        """Calls the tools, and adds their results to the chat."""
        limits = self.toolbox.settings
        for number, call in enumerate(calls):
            name = self._names.get(call.name, call.name)
            left = limits.total_timeout_s - sum(entry["seconds"] for entry in episode.tool_log)
            arguments = _arguments(call)
            if number >= limits.max_calls_per_turn:
                result = {"error": f"at most {limits.max_calls_per_turn} call(s) in one message", "seconds": 0.0}
            elif left <= 0:
                result = {"error": "the time for tools is used up: answer now", "seconds": 0.0}
            else:
                result = await self.toolbox.call(name, arguments, left)
            episode.tool_log.append({"turn": episode.turns, "name": name, "arguments": arguments, **result})
            outcome = {key: _harmless(value) for key, value in result.items()}
            del outcome["seconds"]  # else no two episodes would be equal
            self._tell(call, name, outcome, episode)

    def _tell(self, call: Call, name: str, outcome: dict[str, Any], episode: Episode) -> None:
        limit = self.toolbox.settings.max_result_characters
        native = self.protocol == "native"
        name = _harmless(call.name if native else name)
        text = json.dumps(outcome if native else {"name": name, **outcome}, ensure_ascii=False)
        if len(text) > limit:
            text = text[:limit] + " ... (cut)"
        if native:
            episode.messages.append({"role": "tool", "tool_call_id": call.id, "name": name, "content": text})
        else:
            episode.messages.append({"role": self.result_role, "content": text})


def make_loop(
    generator: ChatGenerator | None, sampling: ChatSampling, toolbox: Toolbox, template: Any | None
) -> ToolLoop:
    """Returns a loop with the config's protocol; `auto` is json if a local chat template knows no tools."""
    protocol: str = toolbox.settings.protocol
    if protocol == "auto":
        protocol = "native" if template is None or template.knows_tools else "json"
    role = "tool" if template and toolbox and template.knows_results else "user"
    return ToolLoop(generator, sampling, toolbox, protocol, role)


def _read_object(found: dict[str, Any], said: str) -> tuple[list[Call], str]:
    """Returns the calls and the answer of a JSON object; without either, `said` is the answer."""
    if "final_answer" in found:
        answer = found["final_answer"]
        return [], answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    if "tool_call" not in found:
        return [], said
    call = found["tool_call"]
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return [Call("", json.dumps(call))], ""
    return [Call(call["name"], json.dumps(call.get("arguments", {})))], ""


def _arguments(call: Call) -> Any:
    """Returns the arguments as data, or as text where they are no JSON."""
    try:
        return read_json(call.arguments or "{}")
    except ValueError:
        found, _ = last_json_object(call.arguments)
        return writable(call.arguments) if found is None else found


def _as_message(call: Call) -> dict[str, Any]:
    """Returns a call as chats have it. Arguments that are no JSON object are wrapped in one: servers refuse others."""
    arguments = _arguments(call)
    arguments = arguments if isinstance(arguments, dict) else {"unreadable": arguments}
    try:
        is_same = json.loads(call.arguments) == arguments
    except (ValueError, RecursionError):
        is_same = False
    text = call.arguments if is_same else json.dumps(arguments)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": text}}


def _harmless(value: Any) -> Any:
    """Returns a result without special tokens of chat templates."""
    if isinstance(value, str):
        return without_special_tokens(writable(value))
    if isinstance(value, dict):
        return {_harmless(str(key)): _harmless(entry) for key, entry in value.items()}
    return [_harmless(entry) for entry in value] if isinstance(value, list | tuple) else value

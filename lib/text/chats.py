"""Rows of data sets as chats of one form.

Chats stay plain dicts until they are token ids: Arrow, for one, would merge the arguments of all tool calls.
"""

import json
from dataclasses import dataclass
from typing import Any

from lib.core.errors import ConfigError
from lib.core.registry import did_you_mean
from lib.text.templates import listed, with_system

ROLES = (  # the first four are the usual ones; gpt-oss, Llama 3, GLM-4, OLMo 3, Granite and others add theirs
    "system", "user", "assistant", "tool", "developer", "ipython", "observation", "environment", "document", "control",
    "function", "functions",
)  # fmt: skip
CUT_OFF = ("truncated", "turns", "tokens")  # values of a rollout's `ended` that mean the answer was cut off


@dataclass(frozen=True)
class Chat:
    """Holds a row of a data set in a uniform form."""

    messages: list[dict[str, Any]]
    turns: list[int]  # which messages are trained
    tools: list[dict] | None
    template_kwargs: dict[str, Any]
    where: str  # for messages: which row
    is_cut_off: bool = False  # the last answer was cut off, so it is not a turn

    def key(self) -> str:
        """Returns a key that is equal for equal chats, whatever the ids of their tool calls."""
        messages = [
            {
                key: [{name: part for name, part in call.items() if name != "id"} for call in value]
                if key == "tool_calls"
                else value
                for key, value in message.items()
                if key != "tool_call_id"
            }
            for message in self.messages
        ]
        return json.dumps([messages, self.turns, self.tools, self.template_kwargs], sort_keys=True, default=str)


def as_chat(row: dict[str, Any], where: str, system: str = "") -> Chat:
    """Returns the chat of a row with `messages`, or with `prompt` and `completion`.

    Of the latter two, only the completion is trained. Text in `prompt` becomes a user message, text in `completion` an
    assistant message; other lists and objects may be given as JSON text. Other columns are ignored, except `tools`,
    `chat_template_kwargs`, and those by which a rollout marks its last answer as cut off: such an answer is not a turn,
    so the row may have no turn. A `system` prompt is put before a chat that has none. Raises ConfigError for others.
    """
    if row.get("messages"):
        messages, given = _from_json(listed(row["messages"]), list, f"'messages' of {where}") or [], 0
    elif row.get("prompt") and row.get("completion"):
        prompt, completion = _listed(row["prompt"], "user", where), _listed(row["completion"], "assistant", where)
        messages, given = prompt + completion, len(prompt)
    else:
        raise ConfigError(
            f"dataset.name: {where} has {', '.join(map(repr, row)) or 'no column'}, expected 'messages', or 'prompt' "
            "and 'completion', with something in them: rename the columns or remove the row"
        )
    messages = [as_message(message, f"message {number} of {where}") for number, message in enumerate(messages, start=1)]
    for number, role in enumerate((message["role"] for message in messages), start=1):
        if role not in ROLES:
            raise ConfigError(
                f"dataset.name: message {number} of {where} has the role '{role}', expected one of {', '.join(ROLES)}"
                f"{did_you_mean(role.lower(), ROLES, ': correct it')}"
            )
    added = len(with_system(messages, system)) - len(messages)
    messages, given = with_system(messages, system), given + added
    turns = [index for index, message in enumerate(messages) if message["role"] == "assistant" and index >= given]
    if not turns:
        raise ConfigError(f"dataset.name: {where} has no assistant message, so nothing to train on: remove it")
    # an end token after it would teach the model to stop there; a last turn before a tool's result is complete
    is_cut_off = row.get("ended") in CUT_OFF or row.get("reasoning_ended") is False
    is_cut_off = is_cut_off and turns[-1] == len(messages) - 1
    tools = _from_json(row.get("tools"), list, f"'tools' of {where}") or None
    if tools and not all(isinstance(tool, dict) for tool in tools):
        raise ConfigError(
            f"dataset.name: 'tools' of {where} has an entry that is not an object, expected function schemas: fix it"
        )
    kwargs = _from_json(row.get("chat_template_kwargs"), dict, f"'chat_template_kwargs' of {where}") or {}
    return Chat(messages, turns[:-1] if is_cut_off else turns, tools, kwargs, where, is_cut_off)


def text_of(messages: list[dict[str, Any]]) -> str:
    """Returns the roles and texts of a chat, without tool calls: equal for chats that ask the same."""
    return "\n".join(f"{message['role']}: {message.get('content')}" for message in messages)


def question_of(row: dict[str, Any]) -> str:
    """Returns the question of a row, before the first trained turn: equal for equal questions, whatever the answer.

    For a row without a question, or one that `as_chat` refuses, it is the whole row.
    """
    try:
        chat = as_chat(row, "a row")
    except ConfigError:  # reported, with its place, if the row is to be trained on
        return json.dumps(row, sort_keys=True, default=str)
    before = chat.messages[: chat.turns[0] if chat.turns else -1]
    if all(message["role"] == "system" for message in before):
        return chat.key()
    return text_of(before)


def _listed(value: object, speaker: str, where: str) -> list:
    """Returns messages; text becomes one message of `speaker`. Raises ConfigError for anything else."""
    if isinstance(value, str):
        return [{"role": speaker, "content": value}]
    if isinstance(value := listed(value), list):
        return value
    raise ConfigError(
        f"dataset.name: {where} has a {type(value).__name__} where messages belong, expected a list of objects with "
        "'role' and 'content': fix the row"
    )


def as_message(message: object, where: str) -> dict[str, Any]:
    """Returns a message with content as text, arguments as objects, and no empty keys.

    Templates ask whether a key is there, so an empty one would mislead them. Raises ConfigError.
    """
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise ConfigError(f"dataset.name: {where} has no 'role', expected an object with 'role' and 'content': fix it")
    kept = {key: value for key, value in message.items() if value is not None and key != "tool_calls"}
    kept["content"] = _text(message.get("content"), where)
    if calls := _from_json(message.get("tool_calls"), list, f"calls of {where}"):
        kept["tool_calls"] = [_call(call, where) for call in calls]
    return kept


def _text(content: object, where: str) -> str:
    """Joins the text parts of a content into one text, since most templates require that. Raises ConfigError."""
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        if all(isinstance(part, str) for part in parts):
            return "".join(parts)
        raise ConfigError(
            f"dataset.name: 'content' of {where} has a part that is not text, expected only text, since images and the "
            "like are not supported: remove the row"
        )
    if content is not None and not isinstance(content, str):
        raise ConfigError(
            f"dataset.name: 'content' of {where} is a {type(content).__name__}, expected text or a list: fix it"
        )
    return content or ""


def _call(call: Any, where: str) -> dict[str, Any]:
    """Returns a tool call with arguments as an object, which most templates render correctly. Raises ConfigError."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ConfigError(
            f"dataset.name: a tool call of {where} has no function with a name, expected "
            '{"type": "function", "function": {"name": ..., "arguments": {...}}}: fix it'
        )
    arguments = _from_json(function.get("arguments"), dict, f"the arguments of {function['name']} in {where}") or {}
    return {**call, "function": {**function, "arguments": arguments}}


def _from_json(value: object, kind: type, what: str) -> Any:
    """Returns `value`, parsed if it is text; None if it is blank or None. Raises ConfigError if it is not of `kind`."""
    if isinstance(value, str) and not value.strip():
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ConfigError(f"dataset.name: {what} cannot be read as JSON ({error}): fix the row") from error
    if value is not None and not isinstance(value, kind):
        expected = "a list" if kind is list else "an object"
        raise ConfigError(f"dataset.name: {what}: got a {type(value).__name__}, expected {expected}: fix the row")
    return value

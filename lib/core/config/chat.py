"""Sections of the configs of scripts with chats: prompts, servers, thinking, tools."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr

from lib.core.config.section import Conflicts, Count, CountOrZero, Name, Positive, Section, Weight
from lib.core.config.shared import wrong_address
from lib.core.registry import did_you_mean


class ChatPrompts(Section):
    """The texts of the prompt. `{column}` in `user` is filled from the row; double a brace to keep it."""

    system: str = ""  # system message; empty: none
    user: str = "{prompt}"  # the user message
    messages_field: Name | None = None
    # a column that holds a whole chat, used in place of `user`; `system` is put before chats without a system message


def _name_of_variable(value: Any) -> Any:
    """Returns the name of an environment variable. Raises ValueError, without the value, for what may be a key."""
    # long names are in capitals: the letters of a key are mixed or small
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,63}|[A-Za-z_][A-Za-z0-9_]{0,23}", str(value)):
        raise ValueError(
            "expected the name of an environment variable, such as OPENAI_API_KEY (in capitals if it has more than 24 "
            "characters): export the key under such a name, and write the name here"
        )
    return value


def _name_of_server(value: str) -> str:
    """Returns a name that overrides can hold. Raises ValueError, without the value, for what may be a key."""
    if not re.fullmatch(r"[A-Za-z_][\w-]*", value):
        raise ValueError("expected a name of letters, digits, _ and -, under which servers has address and model")
    return value


VariableName = Annotated[Name, BeforeValidator(_name_of_variable)]
ServerName = Annotated[str, AfterValidator(_name_of_server)]


class Thinking(Section):
    """Reasoning before the answer: counted apart, and read by rewards between its tags, as they read it in training."""

    enabled: bool | None = None  # passed to the chat template as `enable_thinking`; null: the template decides
    budget_tokens: CountOrZero = 0  # tokens for reasoning, on top of max_new_tokens
    tags: tuple[Name, Name] = ("<think>", "</think>")  # open and close a block of reasoning


class WebSettings(Section):
    """`web.search` and `web.fetch`, if `tools.names` has them: public internet addresses, or a folder of documents.

    Only ports 80 and 443 may be reached, and one host 300 times a minute; further requests wait, or fail.
    """

    folder: str | None = None  # folder of documents (.txt .md) to use instead of the internet, offline
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 15.0
    # seconds for one call: name resolution, connection, redirects and body together
    user_agent: Name = "Rematch/0.1 (research)"  # sent with every request


class Tools(Section):
    """Tools that the model may call while it answers. Their outputs are never trained on."""

    names: list[Name] = []  # python.run, web.search, web.fetch, or the dotted path of your own function
    protocol: Literal["auto", "native", "json"] = "auto"
    # how the model calls a tool. native: by the tool calls of the chat template or the server; json: by one JSON
    # object at the end of a message; auto: native, unless the model is local and its template does not support tools
    max_turns: Count = 6  # maximum number of messages of the model in one episode; of training, at least 2
    max_calls_per_turn: Count = 1  # further calls of a turn are refused
    call_timeout_s: Positive = 60.0  # seconds of one call
    total_timeout_s: Positive = 300.0  # seconds for all calls of an episode together; in training of one message
    max_total_tokens: Count = 16_384
    # maximum tokens that the model writes in one episode; in training each turn has the budget of an answer
    max_result_characters: Count = 8_000
    # maximum length of a tool's result that the model sees; in training it has an equal share of max_seq_length at most
    web: WebSettings = WebSettings()

    @property
    def uses_web(self) -> bool:
        """True if any of the tools is a web tool."""
        return any(name.startswith("web.") for name in self.names)


class Server(Section):
    """A model behind an OpenAI-compatible server: OpenAI, Azure, Together, vLLM, llama.cpp, `transformers serve`.

    What openai's client reads in the environment holds, such as OPENAI_ORG_ID, HTTPS_PROXY and OPENAI_CUSTOM_HEADERS.
    """

    base_url: str | None = None  # up to and including /v1; null: OPENAI_BASE_URL if that is set, else OpenAI itself;
    # of Azure https://RESOURCE.openai.azure.com/openai/v1, where `model` is a deployment
    model: Name  # the model's name on the server
    api: Literal["chat", "responses"] = "chat"  # which API to call: /chat/completions or /responses
    api_key_env: VariableName | None = None  # name of the environment variable that holds the key, not the key itself;
    # null: no key, or OPENAI_API_KEY if base_url is null too
    max_concurrency: Count = 32  # maximum number of requests at once
    deadline_s: Positive = 120.0  # seconds for one reply, including all retries
    max_retries: CountOrZero = 5
    # retries of a request after status 408, 409, 429 or 5xx, a malformed reply or a broken connection
    extra_body: dict[str, Any] = {}
    # fields added to every request as they are, such as {reasoning: {effort: low}}; {seed: null} sends no seed. The
    # limit is max_tokens, and max_completion_tokens for OpenAI itself and Azure, whose new models know no other
    prices: tuple[Weight, Weight] = (0.0, 0.0)
    # of a million input tokens and of a million that it writes, in your currency, to report what a run costs
    thinking: Thinking = Thinking()
    outage: Literal["mask", "stop"] = "mask"
    # what happens if it has answered before and then fails, as an opponent or a teacher. mask: training goes on without
    # it, so that games count as ties and on no scoreboard; stop: the run stops, and can be resumed, as
    # collect_rollouts.py always does
    _name: str = PrivateAttr("NAME")

    @property
    def key(self) -> str:
        """Returns the dotted key of its section, for messages."""
        return f"servers.{self._name}"

    def _conflicts(self) -> Conflicts:
        if self.base_url is not None and (wrong := wrong_address(self.base_url)):
            yield ("base_url",), wrong
        if self.api == "responses" and self.thinking.enabled is not None:
            yield (
                ("thinking.enabled", "api"),
                "the responses API has no such switch: use extra_body, such as {reasoning: {effort: low}}",
            )

    def cost(self, read: int, written: int) -> float:
        """Returns the cost of `read` input tokens and `written` output tokens."""
        return (read * self.prices[0] + written * self.prices[1]) / 1e6


def _named(servers: dict[str, Server]) -> dict[str, Server]:
    """Returns the servers; each knows its name then."""
    for name, server in servers.items():
        server._name = name
    return servers


# {name: how it is asked}; opponents, teachers and collect_rollouts.py refer to a server by its name
Servers = Annotated[dict[ServerName, Server], AfterValidator(_named)]


def server_conflicts(key: str, name: str, servers: dict[str, Server]) -> Conflicts:
    """Yields a conflict if the value of `key` names no server."""
    if name not in servers:
        hint = did_you_mean(name, servers) or f"; known: {', '.join(servers) or 'none'}"
        yield (key,), f"no server has this name{hint}; add it to servers: {{NAME: {{base_url: ..., model: ...}}}}"

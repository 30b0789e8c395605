"""Requests to generators that answer chats, and their replies."""

from dataclasses import asdict, dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Request:
    """A request for one reply in a chat."""

    messages: list[dict[str, Any]]  # {role, content}, as the chat completions API has them
    max_tokens: int  # for reasoning and answer together
    temperature: float
    seed: int
    top_p: float = 1.0
    tools: list[dict[str, Any]] = field(default_factory=list)  # schemas of functions, for native calls


@dataclass(frozen=True)
class Call:
    """A tool call in the generator's own format."""

    name: str
    arguments: str  # JSON text, as the model wrote it
    id: str = ""


@dataclass(frozen=True)
class Usage:
    """Token counts of one reply."""

    prompt_tokens: int = 0
    completion_tokens: int = 0  # reasoning included
    reasoning_tokens: int = 0

    def as_dict(self) -> dict[str, int]:
        """Returns plain data."""
        return asdict(self)

    def __str__(self) -> str:
        thinking = f", {self.reasoning_tokens:,} of them thinking" if self.reasoning_tokens else ""
        return f"{self.prompt_tokens:,} tokens read, {self.completion_tokens:,} written{thinking}"

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(mine + yours for mine, yours in zip(asdict(self).values(), asdict(other).values(), strict=True)))


@dataclass(frozen=True)
class Reply:
    """A generator's reply in one turn."""

    text: str  # the answer, without reasoning and native calls
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    finished: bool = True  # False: cut off by the budget
    reasoning_ended: bool = True  # False: a reasoning block was opened and never closed, so there is no answer
    usage: Usage = Usage()
    opening: str | None = None  # tag with which the text opened its reasoning, "" if the prompt may have; else None

    def written(self, open_tag: str, close_tag: str) -> str:
        """Returns the text for rewards: `whole`, but without an opening tag that the model did not write."""
        if self.opening is None:
            return self.whole(open_tag, close_tag)
        return f"{self.opening}{self.reasoning}{close_tag if self.reasoning_ended else ''}{self.text}"

    def whole(self, open_tag: str, close_tag: str) -> str:
        """Returns reasoning and answer as one of our models would write them, which is the text for a chat."""
        if not self.reasoning and self.reasoning_ended:
            return self.text
        return f"{open_tag}{self.reasoning}{close_tag if self.reasoning_ended else ''}{self.text}"

    def as_dict(self) -> dict[str, Any]:
        """Returns plain data, to be stored on disk."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Reply":
        """Builds the reply from the output of `as_dict`."""
        calls = tuple(Call(**call) for call in data["calls"])
        return cls(**{**data, "calls": calls, "usage": Usage(**data["usage"])})


class ReplyError(Exception):
    """A request that got no reply. `kind` is one word: timeout, refused, malformed, unavailable."""

    def __init__(self, kind: str, about: str):
        super().__init__(f"{kind}: {about}")
        self.kind = kind


class ChatGenerator(Protocol):
    """A generator that answers chats."""

    name: dict[str, Any]  # what a reply depends on besides the request: model, adapter, template arguments

    async def reply(self, request: Request) -> Reply:
        """Returns one reply. Raises ReplyError if this request failed, and a UserError if all others would fail too."""

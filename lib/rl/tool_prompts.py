"""The prompts of chats with tools: after a message with calls comes what these gave, and the policy goes on.

What a tool gave is prompt, never trained. A chat ends with the first message without a call, with one that was cut off,
or with `tools.max_turns`; its last message is the answer, and judged as empty if it is a call.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from judge.parsing import split_reasoning
from lib.core.clock import phase
from lib.core.config import ChatSampling, SelfPlayConfig
from lib.core.errors import ConfigError
from lib.generators.local import Template
from lib.rl.prompts import CUT, ChatRenderer, JudgedAnswer, Prompt, continued
from lib.tools.loop import make_loop
from lib.tools.toolbox import Toolbox


class ToolRenderer(ChatRenderer):
    """Renders chats with the tools of a config. Raises ConfigError if the template cannot show a result."""

    reads_verdicts = True  # the calls of many answers run at once

    def __init__(self, tokenizer: Any, template_kwargs: dict[str, Any], config: SelfPlayConfig):
        super().__init__(tokenizer, template_kwargs, config.prompts)
        tools, self.thinking, self.most = config.tools, config.generation.thinking, config.result_tokens
        template = Template(tokenizer, self.thinking, template_kwargs)
        self.loop = make_loop(None, ChatSampling(), Toolbox(tools, None), template)
        self.loop.toolbox.prepare()
        if schemas := self.loop.schemas():
            self.template_kwargs["tools"] = self.outside.harmless(schemas)
        self.follows_as = "tool" if self.loop.protocol == "native" else self.loop.result_role
        if (least := len(self.between(CUT))) > self.most:
            raise ConfigError(
                f"model.max_seq_length: got {self.most} tokens for each result of a tool, of which the chat template "
                f"takes {least}: raise it, or lower tools.max_turns or generation.max_new_tokens"
            )

    def ids(self, messages: list[dict[str, Any]]) -> list[int]:
        """Returns token ids of a chat that begins with the tools."""
        return super().ids(self.loop.prompt(messages))

    def judged(self, text: str) -> str:
        """Returns the final answer in a message, "" if it calls a tool, else all of it."""
        _, said, _ = split_reasoning(text, *self.thinking.tags)
        if self.loop.calls_in(said):
            return ""
        answer = self.loop.final_answer(said)
        return text if answer == said else answer

    def after(self, answers: Sequence[JudgedAnswer]) -> list[Prompt | None]:
        """Returns after each answer the prompt with the results of its calls, None where it has none or was cut off."""
        parts = [split_reasoning(answer.text, *self.thinking.tags) for answer in answers]
        said = [text if answer.completion.finished else "" for answer, (_, text, _) in zip(answers, parts, strict=True)]
        with phase("waiting"):
            episodes = self.loop.results(said)
        return [
            self._with_results(answer, "\n".join(message["content"] for message in episode.messages))
            if episode.messages
            else None
            for answer, episode in zip(answers, episodes, strict=True)
        ]

    def _with_results(self, answer: JudgedAnswer, results: str) -> Prompt:
        shown = self.fitting(results, self.most)
        ids = continued(answer.prompt, answer.completion, self.between(shown))
        return replace(answer.prompt, ids=ids, turn=answer.prompt.turn + 1, continues=True, feedback=shown)

    def longest_next(self, tokens: int, turn: int) -> int:
        """Returns the most tokens of the prompt of a turn, after `tokens` tokens of earlier prompt and answer."""
        return tokens + self.most

    def history_note(self) -> str:
        """Describes the room that a tool's result has."""
        return f"a tool's result has {self.most} tokens at most, those of the chat template included"

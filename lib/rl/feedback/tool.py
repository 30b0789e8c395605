"""`prompts.feedback: tool`: the user shows what `python.run` printed for the calls in the attempt.

The calls are run as they stand, in the sandbox, which knows nothing of the row.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from judge.worker import shown
from lib.core.config import Prompts, Tools
from lib.rl.feedback.contract import MOST_SHOWN, Feedback, JudgedAnswer
from lib.text.calls import last_json_object, native_calls, read_json
from lib.tools.toolbox import Toolbox, wire_name

TOOL = "python.run"
SETTINGS = Tools(names=[TOOL], max_calls_per_turn=4)


class TellOutput(Feedback):
    """Shows the policy the output of its attempt's calls."""

    def __init__(self, prompts: Prompts):
        self.self_correction = prompts.self_correction
        Toolbox(SETTINGS, None).prepare()

    def after(self, written: Sequence[JudgedAnswer]) -> list[str]:
        """Returns the user's message after each answer."""
        return [self._told(texts) for texts in asyncio.run(self._called([calls_in(answer.text) for answer in written]))]

    async def _called(self, calls: list[list[Any]]) -> list[list[str]]:
        toolbox = Toolbox(SETTINGS, None)  # its turns are those of one loop

        async def output(arguments: Any) -> str:
            return _output(await toolbox.call(TOOL, arguments, SETTINGS.call_timeout_s))

        return [await asyncio.gather(*map(output, own)) for own in calls]

    def _told(self, outputs: list[str]) -> str:
        if not outputs:
            return self.self_correction
        printed = "\n".join(outputs)
        return f"Your calls printed:\n{printed}\n{self.self_correction}"


def calls_in(text: str) -> list[Any]:
    """Returns the arguments of each call of `python.run` in a text, native or as `{"tool_call": ...}`."""
    found = [arguments for name, arguments in native_calls(text)[1] if name in (TOOL, wire_name(TOOL))]
    whole = {} if found else last_json_object(text)[0] or {}
    call = whole.get("tool_call")
    if isinstance(call, dict) and call.get("name") in (TOOL, wire_name(TOOL)):
        return [call.get("arguments", {})]
    return [_read(arguments) for arguments in found[: SETTINGS.max_calls_per_turn]]


def _read(arguments: str) -> Any:
    try:
        return read_json(arguments or "{}")
    except ValueError:
        return arguments


def _output(answer: dict[str, Any]) -> str:
    """Returns the output of a call, or the reason why it did not run, without unprintable characters."""
    result = answer.get("result")
    if not isinstance(result, dict) or "stdout" not in result:
        text = str(answer.get("error") or json.dumps(result))
    else:
        errors = result["stderr"][-MOST_SHOWN // 2 :]  # the end of a traceback is what matters
        parts = [result["stdout"][: MOST_SHOWN // 2], errors, result.get("ended_by", "")]
        text = "\n".join(part.strip("\n") for part in parts if part.strip())
    return "\n".join(map(shown, text[:MOST_SHOWN].split("\n")))

"""`prompts.feedback: tool`: the user shows what `python.run` printed for the calls in the attempt.

The calls are run as they stand, in the sandbox, which knows nothing of the row.
"""

import json
from collections.abc import Sequence
from typing import Any

from judge.worker import shown
from lib.core.config import ChatSampling, Prompts, Tools
from lib.rl.feedback.contract import MOST_SHOWN, Feedback
from lib.rl.prompts import JudgedAnswer
from lib.tools.loop import ToolLoop
from lib.tools.toolbox import Toolbox

TOOL = "python.run"
SETTINGS = Tools(names=[TOOL], max_calls_per_turn=4)


class TellOutput(Feedback):
    """Shows the policy the output of its attempt's calls."""

    def __init__(self, prompts: Prompts):
        self.self_correction = prompts.self_correction
        self.loop = ToolLoop(None, ChatSampling(), Toolbox(SETTINGS, None), "any")
        self.loop.toolbox.prepare()

    def after(self, answers: Sequence[JudgedAnswer]) -> list[str]:
        """Returns the user's message after each answer."""
        return [self._told(episode.tool_log) for episode in self.loop.results([answer.text for answer in answers])]

    def _told(self, calls: list[dict[str, Any]]) -> str:
        outputs = [_output(call) for call in calls if call["name"] == TOOL]
        return "\n".join(["Your calls printed:", *outputs, self.self_correction] if outputs else [self.self_correction])


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

"""Your rewards and extractors: the one Python file that a new task may touch. YAML picks them by name.

A reward takes by name what it needs (`predictions`, `targets`, `extractor`, `match`, `prompts`, any column of the data
set) and returns one number, or one dict of named components, per prediction. An extractor turns a text into the answer
in it, "" when there is none. Six lines each:

    @register_reward("brief_match")
    def brief_match(predictions, targets, extractor, match):
        return [
            float(match(extractor(p), extractor(t)) and len(p) < 400)
            for p, t in zip(predictions, targets, strict=True)
        ]

    @register_extractor("last_line")
    def last_line(text: str) -> str:
        lines = text.strip().splitlines()
        if not lines:
            return ""
        return lines[-1].strip()

and in the config:

    reward:
      fn: brief_match
      answer_extractor: last_line
      match: exact            # or math, for formulae

Bad text earns zero; never catch an exception, a bug has to stop the run. What is there already: lib/rewards/.
"""

import lib.rewards  # noqa: F401  (registers the rewards, extractors and matchers that come with Rematch)
from lib.registry import register_extractor, register_matcher, register_reward  # noqa: F401  (for what you add below)

"""Your rewards and extractors, which YAML picks by name. A module of your own does as well, by its dotted path.

A reward takes by name what it needs (`predictions`, `right`, `well_formed`, `targets`, `prompts`, any column of the
data set) and returns one number, or one dict of named components, per prediction. An extractor turns a text into the
answer in it, "" when there is none. A few lines each:

    @register_reward("brief_match")
    def brief_match(predictions, right):
        return [float(is_right and len(p) < 400) for p, is_right in zip(predictions, right, strict=True)]

    @register_extractor("last_line")
    def last_line(text: str) -> str:
        lines = text.strip().splitlines()
        if not lines:
            return ""
        return lines[-1].strip()

and in the config:

    reward:
      fn: brief_match
      answer_extractor: last_line   # or, without an extractor of your own, format: think_answer, answer or boxed
      match: exact            # or math, for formulae

Bad text earns zero; never catch an exception, a bug has to stop the run. All inputs stand in lib/rewards/__init__.py.
"""

import lib.rewards.judge  # noqa: F401  (registers the rewards, extractors and matchers that come with Rematch)
from lib.core.registry import register_extractor, register_matcher, register_reward  # noqa: F401  (for what you add below)

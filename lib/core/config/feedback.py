"""What the user says between two attempts (`prompts.feedback`), and the templates of each kind of it."""

import string
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator

from lib.core.config.section import Conflicts, Count, Name, Section


def _naming(*allowed: str) -> Callable[[str], str]:
    """Returns a validator of templates that may name `allowed`, and nothing of the row: that might be the answer."""

    def check(template: str) -> str:
        try:
            names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
        except ValueError as error:
            raise ValueError(f"{error}; double a brace that is meant as text: {{{{ or }}}}") from error
        if unknown := [name for name in names if name not in allowed]:
            raise ValueError(
                f"nothing fills '{{{unknown[0]}}}'; it may name {', '.join(f'{{{name}}}' for name in allowed)}"
            )
        return template

    return check


Said = Annotated[Name, AfterValidator(_naming("self_correction"))]


class VerdictFeedback(Section):
    """The user tells whether the attempt is right. That takes someone who knows, at evaluation too."""

    right: Said = "Your answer is right. State it again."  # after a right attempt
    wrong: Said = "Your answer is wrong. {self_correction}"  # after any other


class TestsFeedback(Section):
    """The user tells which public test a program fails first; hidden tests, those of the reward, stay unknown.

    Public tests are in the column `public_tests`, as `tests` or `stdio` have them; none may ask what a hidden one asks.
    """

    __test__ = False  # no class of tests, whatever its name

    passed: Said = "All public tests pass. {self_correction}"  # after a program that passes them
    failed: Annotated[Name, AfterValidator(_naming("self_correction", "test", "verdict", "why"))] = (
        "This test fails:\n{test}\n{why}\n{self_correction}"
    )
    # after any other; {test}: the test, with input and expected output, {verdict}: one word, such as wrong, exception
    # or timeout, {why}: what the program answered or raised


class SelfFeedback(Section):
    """The policy reviews its own attempt before it is asked again, in a turn sampled and trained like others."""

    ask: Said = 'Check your answer. End with "The answer is right" or "The answer is wrong".'  # after an attempt
    right: Name | None = "The answer is right"
    # how a check ends that finds the attempt right; null: nothing is judged, and the review is called a reflection
    wrong: Name = "The answer is wrong"  # how it ends if it does not; anything else at its end is no judgement
    max_new_tokens: Count = 256  # budget of a review, its end token included

    def _conflicts(self) -> Conflicts:
        pair = [phrase.casefold().rstrip(" .!*_\"'") for phrase in (self.right or "", self.wrong)]
        if self.right and (not all(pair) or pair[0].endswith(pair[1]) or pair[1].endswith(pair[0])):
            yield ("right", "wrong"), "a text that ends in the one ends in the other too: make them differ at the end"

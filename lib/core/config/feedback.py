"""What the user says between two attempts (`prompts.feedback`), and the templates of each kind of it."""

import string
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator

from lib.core.config.section import Name, Section


def _naming(*known: str) -> Callable[[str], str]:
    """Returns a validator of templates that may name `known`, and nothing of the row: that might be the answer."""

    def check(template: str) -> str:
        try:
            names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
        except ValueError as error:
            raise ValueError(f"{error}; double a brace that is meant as text: {{{{ or }}}}") from error
        if unknown := [name for name in names if name not in known]:
            raise ValueError(
                f"nothing fills '{{{unknown[0]}}}'; it may name {', '.join(f'{{{name}}}' for name in known)}"
            )
        return template

    return check


Said = Annotated[Name, AfterValidator(_naming("self_correction"))]


class VerdictFeedback(Section):
    """The user tells whether the attempt is right. That takes someone who knows, at evaluation too."""

    right: Said = "Your answer is right. State it again."  # after a right attempt
    wrong: Said = "Your answer is wrong. {self_correction}"  # after any other


class TestsFeedback(Section):
    """The user tells which public test a program fails first; hidden tests, those of the reward, stay unknown."""

    __test__ = False  # no class of tests, whatever its name

    public_field: Name = "public_tests"
    # column of the public tests, as `tests` or `stdio` have them: none of them may be a hidden one too
    passed: Said = "All public tests pass. {self_correction}"  # after a program that passes them
    failed: Annotated[Name, AfterValidator(_naming("self_correction", "test", "verdict", "why"))] = (
        "This test fails:\n{test}\n{why}\n{self_correction}"
    )
    # after any other; {test}: the test, with input and expected output, {verdict}: one word, such as wrong, exception
    # or timeout, {why}: what the program answered or raised


class ToolFeedback(Section):
    """The user shows what `python.run` printed for the calls in the attempt."""

    printed: Annotated[Name, AfterValidator(_naming("self_correction", "output"))] = (
        "Your calls printed:\n{output}\n{self_correction}"
    )
    # after an attempt with calls; {output}: stdout, then stderr, of each
    nothing: Said = "{self_correction}"  # after an attempt without calls

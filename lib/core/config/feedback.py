"""What the user says between two attempts (`prompts.feedback`), and the templates of each kind of it."""

import string
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator

from lib.core.config.chat import ServerName
from lib.core.config.section import Conflicts, Count, Name, Section, Weight


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
    # column of the public tests, as `tests` or `stdio` have them: none of them may ask what a hidden one asks
    passed: Said = "All public tests pass. {self_correction}"  # after a program that passes them
    failed: Annotated[Name, AfterValidator(_naming("self_correction", "test", "verdict", "why"))] = (
        "This test fails:\n{test}\n{why}\n{self_correction}"
    )
    # after any other; {test}: the test, with input and expected output, {verdict}: one word, such as wrong, exception
    # or timeout, {why}: what the program answered or raised


class TeacherFeedback(Section):
    """A model behind a server says what is wrong with the attempt; what gives the answer away is dropped."""

    server: ServerName  # which of the servers is asked
    request: Annotated[Name, AfterValidator(_naming("question", "attempt"))] = (
        "A student answered the problem below. Say in plain English, in at most 30 words, what to check or change. No "
        "code, no answer, no preamble.\n\n{question}\n\nThe student's answer:\n{attempt}"
    )
    # what it is asked; it sees no right answer
    said: Annotated[Name, AfterValidator(_naming("self_correction", "critique"))] = "{critique}\n{self_correction}"
    # what the user says with its critique; without one, self_correction
    temperature: Weight = 0.6  # 0 = greedy
    max_new_tokens: Count = 256  # maximum tokens of a critique, thinking not counted


class SelfFeedback(Section):
    """The policy reviews its own attempt before it is asked again, in a turn sampled and trained like others."""

    ask: Said = 'Check your answer. End with "The answer is right" or "The answer is wrong".'  # after an attempt
    right: Name | None = "The answer is right"
    # how a check ends that finds the attempt right; null: nothing is judged, and the review is called a reflection
    wrong: Name = "The answer is wrong"  # how it ends if it does not; anything else at its end is no judgement
    then: Said = "{self_correction}"  # what the user says after the review
    max_new_tokens: Count = 256  # budget of a review, its end token included

    def _conflicts(self) -> Conflicts:
        pair = [phrase.casefold().rstrip(" .!*_\"'") for phrase in (self.right or "", self.wrong)]
        if self.right and (not all(pair) or pair[0].endswith(pair[1]) or pair[1].endswith(pair[0])):
            yield ("right", "wrong"), "a text that ends in the one ends in the other too: make them differ at the end"


class ToolFeedback(Section):
    """The user shows what `python.run` printed for the calls in the attempt."""

    printed: Annotated[Name, AfterValidator(_naming("self_correction", "output"))] = (
        "Your calls printed:\n{output}\n{self_correction}"
    )
    # after an attempt with calls; {output}: stdout, then stderr, of each. After one without: self_correction

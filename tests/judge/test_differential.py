"""Programs with small mistakes are judged as plain Python judges them, test by test."""

import contextlib

import pytest
from conftest import part
from helpers.mutants import mutants, plainly

from judge.corpus import right_programs
from judge.pool import Sandbox

SECONDS = 2
DIFFER = {  # the others of 6,920 pairs do not
    "classes/error_hierarchy": "a test that reaches no assert is wrong",
    "stateful/context_manager_timer": "a list that is an attribute of an object arrives as a copy",
    "modern/nested_equality_in_lists": "two objects are not equal by their word alone",
    "fast_input/mmap_input": "its input is a file there, a pipe here",
    "library/own_file": "its file holds the tests, too, here",
}


def test_mutants_get_the_verdicts_of_plain_python(tmp_path):
    """Of every sixtieth program, with WHOLE=1 of every twelfth. The log has a run of all."""
    pytest.importorskip("numpy")
    rights = [right for right in right_programs() if right.due == ("pass",) and str(right) not in DIFFER]
    programs = [
        (str(right), right.program(source=source, timeout_s=float(SECONDS)))
        for right in part(rights[::12], 5)
        for source in mutants(right.source, most=12, seed=0)
    ]
    with contextlib.closing(Sandbox(2, numpy=True)) as sandbox:
        verdicts = sandbox.judge([program for _, program in programs])
    pairs = [
        (name, holds, test)
        for (name, program), verdict in zip(programs, verdicts, strict=True)
        if (plain := plainly(program, tmp_path, SECONDS)) is not None
        for holds, test in zip(plain, verdict.tests, strict=True)
    ]
    assert len(pairs) > len(programs) / 2 and {holds for _, holds, _ in pairs} == {True, False}
    assert not [(name, test) for name, holds, test in pairs if holds != (test.verdict == "pass")]

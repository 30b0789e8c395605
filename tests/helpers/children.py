"""Forked children of a test, which end with what a function returns."""

import os
import traceback
from collections.abc import Callable

import torch


def fork(function: Callable) -> int:
    """Start `function` in a forked child; the child exits with what it returns, or 99 after a traceback."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            torch.set_num_threads(1)
            code = function() or 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def in_child(function: Callable) -> int:
    return exit_code(fork(function))

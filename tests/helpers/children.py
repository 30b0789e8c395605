"""Forked children of a test, which end with what a function returns."""

import faulthandler
import os
import traceback
from collections.abc import Callable

import torch


def fork(function: Callable) -> int:
    """Start `function` in a forked child; it exits with what that returns, 99 after an error, 1 after 120 s."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            faulthandler.dump_traceback_later(120, exit=True, file=2)
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

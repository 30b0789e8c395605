"""Errors that the user can fix: one sentence, and an exit code that scripts can rely on.

Every error answers three questions: where; what was got and what was expected; what to do about it.
"""

import atexit
import contextlib
import errno
import gc
import io
import os
import re
import resource
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from judge.errors import FINISHED, ConfigError, SandboxError, UserError, first_line
from lib.core.output import protect_output

__all__ = ["FINISHED", "ConfigError", "SandboxError", "UserError", "first_line"]

INTERRUPTED = 130  # Ctrl-C, after a checkpoint if there is a run
LOST_PROCESS = 8  # another process of this run has ended, and this one would wait for it forever
TERMINATED = 143  # SIGTERM or SIGHUP, after a checkpoint
END_SECONDS = 5.0  # time for threads left by a reward to end
_codes: list[int] = []  # how a process of several ends


class NumericError(UserError):
    """Training would continue with garbage: non-finite numbers, no gradient, an adapter that changes nothing."""

    exit_code = 3


class OutOfMemory(UserError):
    """Memory ran out; the message names the knobs that help."""

    exit_code = 4


class ApiError(UserError):
    """A server refuses every request (the key, the model's name, the quota), or no longer answers."""

    exit_code = 6


class RewardError(UserError):
    """A reward, an extractor or a matcher raised an exception, the `__cause__`, or a reward returned no number.

    `located()` adds the place in the run, and writes the traceback to a file.
    """

    exit_code = 7
    is_located = False

    def located(self, folder: Path, where: str = "", then: str = "", rank: int = 0) -> "RewardError":
        """Returns the error with `where` before and `then` after its message; writes `folder`/traceback.log.

        If the file cannot be written, prints the traceback. Processes with a `rank` above 0 have their own files.
        """
        text = "".join(traceback.format_exception(self))
        kept = folder / (f"traceback_{rank}.log" if rank else "traceback.log")
        try:
            kept.write_text(text, encoding="utf-8", errors="backslashreplace")
            note = f"; the traceback is in {kept}" if self.__cause__ else ""
        except OSError:
            print(text, file=sys.stderr)
            note = "; the traceback is above"
        error = RewardError(f"{where}{self}{note}{then}")
        error.is_located = True
        return error


class Left(BaseException):
    """Work was abandoned halfway because a signal asked for an end; the next start does it again."""

    def __init__(self, exit_code: int = INTERRUPTED) -> None:
        self.exit_code = exit_code


class Overdue(BaseException):
    """User code exceeded its time limit; raised inside that code, past any `except Exception` of its own."""


class StorageError(UserError):
    """A checkpoint or a log could not be written; earlier files are untouched."""

    exit_code = 74


REMEDIES = {
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.ENOENT: "the folder was deleted or moved, or the working directory was changed: restore it",
    errno.ENOTDIR: "a file has the name of a folder: move it away",
    errno.EISDIR: "a folder has the name of a file: move it away",
    errno.ENAMETOOLONG: "choose a shorter name",
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "choose a folder where you may write"),
}


def storage_remedy(error: BaseException | None = None) -> str:
    """Returns the remedy for a failed write, by the system's reason, which some libraries bury in their message."""
    number = getattr(error, "errno", None)
    if number is None:
        buried = re.search(r"os error (\d+)", str(error))
        is_bounded = resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
        number = int(buried[1]) if buried else errno.EFBIG if is_bounded else errno.ENOSPC
    return REMEDIES.get(number, "free some space")


NO_MEMORY = ("DefaultCPUAllocator", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


def is_out_of_memory(error: BaseException) -> bool:
    """True if memory ran out: in Python, on a GPU (without importing torch), or in torch on the CPU."""
    named = type(error).__name__ == "OutOfMemoryError"
    return named or isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY)


def is_lost_process(error: BaseException) -> bool:
    """True if another process of the run has ended: in the words of gloo, of NCCL, or of torch's store."""
    named = type(error).__name__ in ("DistBackendError", "DistNetworkError", "DistStoreError")
    return named or any(words in str(error) for words in ("Connection closed by peer", "Connection reset by peer"))


def let_threads_wait() -> None:
    """Makes OpenMP threads spin for some microseconds while they wait, then sleep. Call it before torch is imported.

    On a busy machine threads that only spin cost a factor of ten, and on an idle one threads that sleep at once cost a
    factor of two (LOG.md, "Threads"). Settings of the user are kept.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def end_at_ctrl_c() -> None:
    """Makes Ctrl-C end the process at once, since there is nothing to save yet.

    Entry scripts call it before their other imports. KeyboardInterrupt would not do: raised during the import of a
    package, it may be taken for a broken package.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # an ignored signal is ignored on purpose
        signal.signal(signal.SIGINT, lambda *_: _end_now(INTERRUPTED))
    if "WORLD_SIZE" in os.environ and not _codes:
        # A process of several ends before Python destroys gloo's groups. Their destructor waits for a lock with the GIL
        # held, gloo's thread for the GIL with that lock held: runs hung for ever. What is registered first runs last
        _codes.append(1)  # of an exception that Python prints itself
        atexit.register(lambda: _end_now(_codes[-1]))


def _end_now(code: int) -> None:
    for file in gc.get_objects():  # such as a log that a reward left open
        if type(file) in (io.TextIOWrapper, io.BufferedWriter):
            with contextlib.suppress(RuntimeError, ValueError, OSError):  # a signal may have come during a print
                file.flush()
    os._exit(code)


def end_anyway(code: int) -> None:
    """Ends the process after END_SECONDS at the latest, even if a reward left threads running."""
    timer = threading.Timer(END_SECONDS, os._exit, [code])
    timer.daemon = True
    timer.start()


def run_script(main: Callable[[], int]) -> None:
    """Runs `main()` and ends the process with its exit code; for a UserError, prints only its message.

    Other out-of-memory errors are reported the same way. Call this before torch is imported, see `let_threads_wait`.
    """
    protect_output()
    let_threads_wait()
    before = signal.getsignal(signal.SIGINT)
    end_at_ctrl_c()
    try:
        code = main()
    except SystemExit as left:  # of argparse
        _codes.append(left.code if isinstance(left.code, int) else int(bool(left.code)))
        raise
    except (KeyboardInterrupt, Left) as end:
        code = getattr(end, "exit_code", INTERRUPTED)
    except UserError as error:
        if isinstance(error, RewardError) and not error.is_located:  # there is no run directory for its traceback
            error = error.located(Path(tempfile.mkdtemp(prefix="rematch-")))
        print(f"error: {error}" if "\n" not in str(error) else str(error), file=sys.stderr)
        code = error.exit_code
    except OSError as error:
        if error.errno not in (errno.ENAMETOOLONG, errno.EISDIR):
            raise
        print(f"error: {error.filename}: {error.strerror}; {storage_remedy(error)}", file=sys.stderr)
        code = ConfigError.exit_code
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            advice = "lower batch sizes or the budgets of tokens, or use a smaller model"
            print(f"error: out of memory ({first_line(error)}): {advice}", file=sys.stderr)
            code = OutOfMemory.exit_code
        elif is_lost_process(error):
            advice = "what it said last may tell why; then start all of them again, with --resume"
            print(f"error: another process of this run has ended ({first_line(error)}): {advice}", file=sys.stderr)
            code = LOST_PROCESS
        else:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
    if code in (INTERRUPTED, TERMINATED, RewardError.exit_code):
        end_anyway(code)
    _codes.append(code)
    sys.exit(code)

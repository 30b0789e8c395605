"""What can go wrong in a way the user can mend: one sentence, and an exit code that scripts can rely on.

Every error answers three questions: where; what was got and what was expected; what to do about it.
"""

import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

FINISHED = 0
INTERRUPTED = 130  # Ctrl-C, after a checkpoint where there is a run
TERMINATED = 143  # SIGTERM or SIGHUP, after a checkpoint
END_SECONDS = 5.0  # that threads of a reward have to end


class UserError(Exception):
    """Base class: an entry script prints the message, without a traceback, and exits with `exit_code`."""

    exit_code = 1


class ConfigError(UserError):
    """A mistake in the config, the command line or the data; found before anything is trained."""

    exit_code = 2


class NumericError(UserError):
    """Training would go on with garbage: non-finite numbers, no gradient, an adapter that changes nothing."""

    exit_code = 3


class OutOfMemory(UserError):
    """Memory ran out; the message names the knobs that help."""

    exit_code = 4


class SandboxError(UserError):
    """The sandbox does not start, or fails too often for the rewards to be trusted."""

    exit_code = 5


class ApiError(UserError):
    """A server refuses every request: the key, the model's name, the quota, or it does not answer any more."""

    exit_code = 6


class RewardError(UserError):
    """A reward, or an extractor or equality beside it, raised where it was to answer.

    `__cause__` is what it raised. `told()` says where in a run that was, and puts the traceback into a file.
    """

    exit_code = 7
    is_told = False

    def told(self, folder: Path, where: str = "", then: str = "", rank: int = 0) -> "RewardError":
        """The same error between `where` and what to do `then`, with its traceback in `folder`/traceback.log.

        On a disk that takes no file the traceback goes to the screen. Processes other than the first have own files.
        """
        text = "".join(traceback.format_exception(self))
        kept = folder / (f"traceback_{rank}.log" if rank else "traceback.log")
        try:
            kept.write_text(text, encoding="utf-8", errors="backslashreplace")
            note = f"; the traceback is in {kept}"
        except OSError:
            print(text, file=sys.stderr)
            note = "; the traceback is above"
        error = RewardError(f"{where}{self}{note}{then}")
        error.is_told = True
        return error


class Left(BaseException):
    """Work was left in its middle, since a signal asked for an end; the next start does it again."""

    exit_code = INTERRUPTED


class Overdue(BaseException):
    """Somebody's code has taken longer than it may; raised in its middle, where it catches errors of its own."""


class StorageError(UserError):
    """A checkpoint or a log could not be written; what was there before is untouched."""

    exit_code = 74


def is_out_of_memory(error: BaseException) -> bool:
    """Whether it says that memory has run out: Python's, a GPU's (without importing torch), or a CPU's by torch."""
    named = type(error).__name__ == "OutOfMemoryError"
    return named or isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error)


def let_threads_wait() -> None:
    """OpenMP's threads spin for some microseconds while they wait, then sleep; to be called before torch is imported.

    On a busy machine threads that only spin cost a factor of ten, and on an idle one threads that sleep at once cost a
    factor of two (LOG.md, "Threads"). What the user has set stays.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def end_at_ctrl_c() -> None:
    """From now on Ctrl-C ends the process at once: nothing has begun that could be saved.

    Entry scripts call it before their other imports. KeyboardInterrupt would not do: raised in the middle of somebody's
    import it may be taken for a package that is broken.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # who has it ignored, wants that
        signal.signal(signal.SIGINT, _end)


def _end(*_: object) -> None:
    with contextlib.suppress(RuntimeError, ValueError, OSError):  # it may have come in the middle of a print
        sys.stdout.flush()
    os._exit(INTERRUPTED)


def end_anyway(code: int) -> None:
    """The process ends within some seconds, whatever threads a reward has left behind."""

    def end() -> None:
        time.sleep(END_SECONDS)
        os._exit(code)

    threading.Thread(target=end, daemon=True).start()


def run_script(main: Callable[[], int]) -> None:
    """Runs `main()` and ends the process with its exit code; a UserError prints its message alone.

    So does memory that runs out where nobody had a better word for it. Called before torch is imported, see
    `let_threads_wait`.
    """
    let_threads_wait()
    before = signal.getsignal(signal.SIGINT)
    end_at_ctrl_c()
    try:
        code = main()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Left as left:
        code = left.exit_code
    except UserError as error:
        if isinstance(error, RewardError) and not error.is_told:  # there is no run whose folder could keep it
            error = error.told(Path(tempfile.mkdtemp(prefix="rematch-")))
        print(f"error: {error}" if "\n" not in str(error) else str(error), file=sys.stderr)
        code = error.exit_code
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        reason = (str(error).strip() or "no details").splitlines()[0]
        advice = "lower batch sizes or the budgets of tokens, or take a smaller model"
        print(f"error: out of memory ({reason}): {advice}", file=sys.stderr)
        code = OutOfMemory.exit_code
    finally:
        signal.signal(signal.SIGINT, before)
    if code in (INTERRUPTED, TERMINATED, RewardError.exit_code):
        end_anyway(code)
    sys.exit(code)

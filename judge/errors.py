"""Errors that a user can fix, each with an exit code: where, what was got and expected, what to do about it."""

FINISHED = 0


class UserError(Exception):
    """Base class: a script prints the message, without a traceback, and exits with `exit_code`."""

    exit_code = 1


class ConfigError(UserError):
    """A mistake in the config, the command line or the data; found before anything is trained."""

    exit_code = 2


class SandboxError(UserError):
    """The sandbox does not start, or fails too often for the rewards to be trusted."""

    exit_code = 5


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's message, or else the name of its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]

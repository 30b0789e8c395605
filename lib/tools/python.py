"""`python.run`: a script in the sandbox."""

from typing import Annotated, Any

from pydantic import Field

from judge import pool
from judge.worker import Program
from lib.core.registry import register_tool


@register_tool("python.run")
def run(
    code: Annotated[str, Field(description="a whole program; only what it prints is seen")],
    timeout_s: Annotated[int, Field(ge=1, le=30)] = 2,
    memory_mb: Annotated[int, Field(ge=64, le=1024)] = 256,
) -> dict[str, Any]:
    """Runs Python, with the standard library alone, and gives stdout, stderr and returncode."""
    done = pool.shared().run(Program(code, timeout_s=timeout_s, memory_mb=memory_mb))
    if done.ending == "infra_error":
        raise RuntimeError("the sandbox failed, the program did not; try again")
    answer = {"stdout": done.stdout, "stderr": done.stderr, "returncode": int(done.ending != "finished")}
    return answer if done.ending in ("finished", "exception") else {**answer, "ended_by": done.ending}


run.at_once = lambda: pool.shared().size  # others wait for their turn, which does not count as a call's time
run.prepare = pool.shared  # before torch is imported, and so that a machine without protection is noticed at once

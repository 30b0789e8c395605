"""Scripts as processes of their own, forked from one that has imported everything: a start costs no import."""

import atexit
import multiprocessing
import os
import resource
import runpy
import sys
import time
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path

TESTS, ROOT = Path(__file__).parents[1:3]
CONTEXT = multiprocessing.get_context("forkserver")


def begin() -> None:
    """Starts the process that imports everything, which takes it some seconds; does not wait for it."""
    before = dict(os.environ)
    folders = os.pathsep.join(map(str, (ROOT, TESTS)))
    os.environ.update(OMP_NUM_THREADS="1", PYTHONPATH=folders)
    CONTEXT.set_forkserver_preload(["helpers.warm"])
    forkserver.ensure_running()
    os.environ.clear()
    os.environ.update(before)


def call(function: Callable, *arguments: object, cwd: Path, output: Path, **settings) -> multiprocessing.Process:
    """A process of a function which prints to `output`, and what is wrong to `errors` where that is told.

    It has an `environment`, this one unless told, and can write files of `largest` bytes. It dies with this process.
    """
    begin()
    settings = {"errors": None, "environment": dict(os.environ), "largest": None, **settings}
    started = CONTEXT.Process(
        target=_child, args=(function, arguments, cwd, output), kwargs=settings, name=function.__name__, daemon=True
    )
    started.start()
    return started


def script(path: Path, *options: object, **settings) -> multiprocessing.Process:
    """What `python path options` does, with the settings of `call`; `cwd` is here unless told."""
    return call(_script, Path(path).resolve(), list(map(str, options)), **{"cwd": Path.cwd(), **settings})


def wait_for(condition: Callable[[], object], process: multiprocessing.Process, output: Path, seconds=30.0) -> None:
    """Until it is true, which it must become while the process lives."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.exitcode is None, output.read_text()
        assert time.monotonic() < end
        time.sleep(0.002)


def _child(function, arguments, cwd, output, errors, environment, largest) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    for path, numbers in ((output, (1, 2)), (errors, (2,))):
        if path is not None:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for number in numbers:
                os.dup2(file, number)
            os.close(file)
    if largest is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    try:
        function(*arguments)
    finally:
        atexit._run_exitfuncs()  # which a forked process leaves out


def _script(path: Path, options: list[str]) -> None:
    sys.argv = [str(path), *options]
    sys.path.insert(0, str(path.parent))
    runpy.run_path(str(path), run_name="__main__")

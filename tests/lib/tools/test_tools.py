"""The box of tools: schemas from signatures, arguments that are wrong in every way, and tools that misbehave."""

import asyncio
import json
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from judge import pool
from lib.core.config import Tools
from lib.core.errors import ConfigError, SandboxError
from lib.tools.toolbox import Toolbox

MINE = '''
import asyncio, enum, sys, threading, time
from dataclasses import dataclass
from typing import Annotated, Literal
from pydantic import Field

prepared, kept = [], {"answer": [1]}
release = threading.Event()

class Colour(enum.Enum):
    red = "red"

@dataclass
class Point:
    x: int
    y: int = 0

class Odd(BaseException):
    pass

def add(a: int, b: Annotated[int, Field(ge=0, le=9)] = 1) -> int:
    """Adds.

    Two numbers.
    """
    return a + b

add.prepare = lambda: prepared.append("add")

async def later(text: str) -> str:
    await asyncio.sleep(0)
    return text

def typed(title: str, pair: tuple[int, int], colour: Colour, kind: Literal["a", "b"], at: Point, ratio: float,
          maybe: str | None = None, names: list[str] = []) -> list:
    return [title, list(pair), colour.value, kind, at.x, ratio, maybe, names]

def nothing(): return None
def fails(): raise ValueError("out of \\ud800 cheese")
def silent(): raise KeyError
def slow_server(): raise TimeoutError("the server is slow")
def odd(): raise Odd("odd")
def leaves(): sys.exit(3)
class Unsaid(Exception):
    def __str__(self): raise ValueError("no text")
class Left(BaseException):
    def __str__(self): sys.exit(3)
class Number(Exception):
    def __str__(self): return 3
def unsaid(): raise Unsaid
def left(): raise Left
def number(): raise Number
async def a_unsaid(): raise Unsaid
async def a_left(): raise Left
def own_error(): return {"error": "no such page"}
def prints():
    print("a tool prints")
    return 1
def hangs(): release.wait()
def sleeps(seconds: float): time.sleep(seconds)
def no_data(): return object()
def nan(): return float("nan")
def a_set(): return {1}
def circle():
    me = []
    me.append(me)
    return me
def deep():
    me = []
    for _ in range(500): me = [me]
    return me
def keys(): return {1: (2, 3)}
def remembers(): return kept
def surrogate(): return {"\\ud800": "\\udfff"}
async def a_fails(): raise ValueError("out of cheese")
async def a_odd(): raise Odd("odd")
async def a_leaves(): sys.exit(3)
async def a_cancels(): raise asyncio.CancelledError("no more")
async def a_hangs(): await asyncio.sleep(1e9)
async def stubborn():
    while not release.is_set():
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            pass
def untyped(a, b: int): ...
def stars(*a: int): ...
def options(**a: int): ...
def placed(a: int, /): ...
def hidden(_a: int): ...
def unknown(a: "Nobody"): ...
def untellable(a: threading.Event): ...
def called(a: callable): ...
class Callable:
    async def __call__(self, a: int): return a
instance = Callable()
'''


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine")
    (folder / "mine.py").write_text(MINE)
    sys.path.insert(0, str(folder))
    import mine

    yield mine
    mine.release.set()
    sys.path.remove(str(folder))
    del sys.modules["mine"]


@pytest.fixture(autouse=True, scope="module")
def _shared_sandbox():
    pool.configure(workers=2, allow_unsafe=True, max_timeout_s=5)  # what these programs do is harmless
    yield
    pool.configure()


def box(*names, **settings):
    return Toolbox(Tools(names=list(names), **settings), None)


def call(name, seconds=60.0, /, **arguments):
    """What one call answers, without the time it took."""
    answer = asyncio.run(box(name).call(name, arguments, seconds))
    assert answer.pop("seconds") >= 0
    return answer


def schema_of(name):
    return box(name).schemas()[0]["function"]


def test_the_schema_of_python():
    function = schema_of("python.run")
    assert function["name"] == "python.run"
    assert "Python" in function["description"]
    parameters = function["parameters"]
    assert parameters["required"] == ["code"]
    assert parameters["additionalProperties"] is False
    code = parameters["properties"].pop("code")
    assert code.pop("description")
    assert code == {"type": "string"}
    assert parameters["properties"] == {
        "timeout_s": {"type": "integer", "minimum": 1, "maximum": 30, "default": 2},
        "memory_mb": {"type": "integer", "minimum": 64, "maximum": 1024, "default": 256},
    }


@pytest.mark.parametrize(
    ("name", "required", "field", "bounds"),
    [
        ("web.search", "query", "count", (1, 10, 5)),
        ("web.fetch", "url", "max_bytes", (1024, 2_000_000, 800_000)),
    ],
)
def test_the_schemas_of_the_web(name, required, field, bounds, tmp_path):
    pytest.importorskip("lib.tools.web")
    (tmp_path / "page.txt").write_text("a page")
    parameters = box(name, web={"folder": str(tmp_path)}).schemas()[0]["function"]["parameters"]
    assert parameters["required"] == [required]
    assert set(parameters["properties"]) == {required, field}
    assert parameters["properties"][required]["type"] == "string"
    found = parameters["properties"][field]
    assert found["type"] == "integer"
    assert (found["minimum"], found["maximum"], found["default"]) == bounds


def test_the_schema_of_a_function_of_yours(mine):
    assert box("mine.add").schemas() == [
        {
            "type": "function",
            "function": {
                "name": "mine.add",
                "description": "Adds.\n\nTwo numbers.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "integer"},
                        "b": {"type": "integer", "minimum": 0, "maximum": 9, "default": 1},
                    },
                    "required": ["a"],
                    "additionalProperties": False,
                },
            },
        }
    ]
    assert schema_of("mine.nothing")["parameters"]["properties"] == {}
    assert schema_of("mine.nothing")["description"] == ""
    typed = schema_of("mine.typed")["parameters"]
    assert "title" in typed["properties"]  # a parameter of that name, not pydantic's
    assert json.dumps(typed).count("title") == 2
    assert typed["required"] == ["title", "pair", "colour", "kind", "at", "ratio"]


def test_nobody_can_change_a_schema(mine):
    tools = box("mine.add", "python.run")
    before = json.dumps(tools.schemas())
    for schema in tools.schemas():
        schema["function"]["name"] = "x"
        schema["function"]["parameters"]["properties"].clear()
    assert json.dumps(tools.schemas()) == before


def test_arguments_become_what_the_function_wants(mine):
    arguments = {"title": "t", "pair": [1, 2], "colour": "red", "kind": "b", "at": {"x": 3}, "ratio": 2}
    assert call("mine.typed", **arguments) == {"result": ["t", [1, 2], "red", "b", 3, 2, None, []]}
    arguments |= {"maybe": "m", "names": ["n"], "ratio": 0.5}
    assert call("mine.typed", **arguments) == {"result": ["t", [1, 2], "red", "b", 3, 0.5, "m", ["n"]]}
    for key, wrong in [("pair", [1]), ("pair", ["1", "2"]), ("colour", "blue"), ("kind", "c"), ("at", {}), ("at", 1)]:
        assert key in call("mine.typed", **{**arguments, key: wrong})["error"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, ["a: is missing"]),
        ({"a": "1"}, ["a: should be a valid integer"]),
        ({"a": True}, ["a: should be a valid integer"]),
        ({"a": None}, ["a: should be a valid integer"]),
        ({"a": 1.5}, ["a: should be a valid integer"]),
        ({"a": [1]}, ["a: should be a valid integer"]),
        ({"a": float("inf")}, ["a: "]),
        ({"a": 1, "b": 10}, ["b: should be less than or equal to 9"]),
        ({"a": 1, "b": -1}, ["b: should be greater than or equal to 0"]),
        ({"a": 1, "b": 10**4000}, ["b: should be less than"]),
        ({"a": 1, "bb": 2}, ["bb: no such argument; did you mean 'b'?"]),
        ({"a": 1, "other": 2}, ["other: no such argument; it takes a, b"]),
        ({"a": 1, "": 2}, [": no such argument"]),
        ({"b": "x", "c": 1}, ["a: is missing", "b: should be", "c: no such argument"]),
    ],
)
def test_wrong_arguments_are_told(mine, arguments, says):
    answer = call("mine.add", **arguments)
    assert answer["error"].startswith("wrong arguments: ")
    assert all(text in answer["error"] for text in says)
    assert len(answer["error"]) < 500


def test_right_arguments_of_every_size(mine):
    assert call("mine.add", a=2) == {"result": 3}
    assert call("mine.add", a=-(10**100), b=0) == {"result": -(10**100)}
    assert call("mine.later", text="é\0") == {"result": "é\0"}
    assert call("mine.later", text="x" * 1_000_000) == {"result": "x" * 1_000_000}


@pytest.mark.parametrize(
    ("arguments", "kind"), [("x", "text"), ([1], "a list"), (None, "null"), (1, "a int"), (True, "a bool")]
)
def test_arguments_that_are_no_object(mine, arguments, kind):
    answer = asyncio.run(box("mine.add").call("mine.add", arguments, 60))
    assert answer["error"] == f"wrong arguments: expected a JSON object, got {kind}"


def test_an_unknown_tool(mine):
    tools = box("mine.add", "python.run")
    answer = asyncio.run(tools.call("python.rum", {}, 60))
    assert answer["error"] == "unknown tool 'python.rum'; did you mean 'python.run'? Known: mine.add, python.run"
    assert asyncio.run(tools.call("", {}, 60))["error"] == "unknown tool ''. Known: mine.add, python.run"


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("fails", {"error": "out of \ud800 cheese"}),
        ("a_fails", {"error": "out of cheese"}),
        ("silent", {"error": "KeyError"}),
        ("slow_server", {"error": "the server is slow"}),
        ("odd", {"error": "Odd: odd"}),
        ("a_odd", {"error": "Odd: odd"}),
        ("leaves", {"error": "SystemExit: 3"}),
        ("a_leaves", {"error": "SystemExit: 3"}),
        ("unsaid", {"error": "Unsaid"}),
        ("a_unsaid", {"error": "Unsaid"}),
        ("left", {"error": "Left: "}),
        ("a_left", {"error": "Left: "}),
        ("number", {"error": "Number"}),
        ("a_cancels", {"error": "no more"}),
        ("own_error", {"error": "no such page"}),
        ("nothing", {"result": None}),
        ("nan", {"result": "NaN"}),
        ("keys", {"result": {"1": [2, 3]}}),
    ],
)
def test_what_a_tool_does_is_its_answer(mine, name, answer):
    assert call(f"mine.{name}") == answer


@pytest.mark.parametrize("name", ["no_data", "a_set", "circle", "deep"])
def test_what_is_not_plain_data_is_an_error(mine, name):
    assert call(f"mine.{name}")["error"]


def test_what_a_tool_prints_is_no_result(mine, capsys):
    assert call("mine.prints") == {"result": 1}
    assert capsys.readouterr().out == "a tool prints\n"


def test_a_result_is_a_copy(mine):
    result = call("mine.remembers")["result"]
    result["answer"].append(2)
    assert call("mine.remembers") == {"result": {"answer": [1]}}


def test_lone_surrogates_do_not_come_back(mine):
    assert call("mine.surrogate") == {"result": {"?": "?"}}
    answer = call("mine.later", text="\ud800")
    json.dumps(answer, ensure_ascii=False).encode()


def test_prepare_is_called_once_and_only_for_tools_that_are_named(mine):
    tools = box("mine.later", "mine.nothing")
    tools.prepare()
    assert mine.prepared == []
    tools = box("mine.add", "mine.later")
    assert mine.prepared == []
    tools.prepare()
    assert mine.prepared == ["add"]


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("untyped", "parameter 'a'"),
        ("stars", "parameter 'a'"),
        ("options", "parameter 'a'"),
        ("placed", "parameter 'a'"),
        ("hidden", "parameter '_a'"),
        ("unknown", "'Nobody'"),
        ("untellable", "mine.untellable"),
        ("called", "mine.called"),
        ("missing", "no callable 'missing'"),
        ("ad", "did you mean 'add'"),
        ("kept", "no callable 'kept'"),
    ],
)
def test_what_cannot_be_a_tool_is_a_mistake_of_the_config(mine, name, about):
    with pytest.raises(ConfigError, match=about):
        box(f"mine.{name}")


@pytest.mark.parametrize("name", ["nobody", "no.such.module", "python.runs", "web.serch"])
def test_an_unknown_name_is_a_mistake_of_the_config(name):
    with pytest.raises(ConfigError, match=name.split(".")[0]):
        box(name)


def test_an_object_with_an_async_call_is_a_tool(mine):
    assert call("mine.instance", a=1) == {"result": 1}


@pytest.mark.parametrize("name", ["hangs", "a_hangs", "stubborn"])
def test_a_tool_that_hangs_is_given_up(mine, name):
    mine.release.clear()

    async def calls():
        tools = box(f"mine.{name}", "mine.add", call_timeout_s=0.2)
        begin = time.monotonic()
        answers = await asyncio.gather(*(tools.call(f"mine.{name}", {}, 60) for _ in range(20)))
        other = await tools.call("mine.add", {"a": 1}, 60)
        mine.release.set()  # a task that swallows its cancellation must end before the loop does
        return answers, other, time.monotonic() - begin

    answers, other, seconds = asyncio.run(calls())
    assert {answer["error"] for answer in answers} == {f"timeout: mine.{name} did not answer within 0.2 s"}
    assert all(0.2 <= answer["seconds"] < 5 for answer in answers)
    assert other["result"] == 2
    assert seconds < 8


def test_the_smaller_of_both_time_limits_holds(mine):
    tools = box("mine.sleeps", call_timeout_s=0.1)
    assert "0.1 s" in asyncio.run(tools.call("mine.sleeps", {"seconds": 1}, 60))["error"]
    tools = box("mine.sleeps", call_timeout_s=60)
    assert "0.05 s" in asyncio.run(tools.call("mine.sleeps", {"seconds": 1}, 0.05))["error"]
    assert asyncio.run(tools.call("mine.sleeps", {"seconds": 0.01}, 60))["result"] is None


def test_plain_functions_run_side_by_side(mine):
    async def calls():
        tools = box("mine.sleeps")
        return await asyncio.gather(*(tools.call("mine.sleeps", {"seconds": 0.3}, 60) for _ in range(50)))

    begin = time.monotonic()
    asyncio.run(calls())
    assert time.monotonic() - begin < 8  # 15 s one after the other


def test_whoever_is_cancelled_cancels_the_tool(mine):
    async def calls():
        task = asyncio.ensure_future(box("mine.a_hangs").call("mine.a_hangs", {}, 60))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert asyncio.run(calls()) == []


def test_a_hung_thread_does_not_keep_the_process_alive(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    program = """
        import asyncio
        from lib.core.config import Tools
        from lib.tools.toolbox import Toolbox
        tools = Toolbox(Tools(names=["mine.hangs"], call_timeout_s=0.2), None)
        print(asyncio.run(tools.call("mine.hangs", {}, 60))["error"])
    """
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(root)!r}]\n" + textwrap.dedent(program)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "timeout: mine.hangs did not answer within 0.2 s\n"


def test_a_sandbox_that_fails_ends_the_run(monkeypatch):
    def no_sandbox():
        raise SandboxError("no rung holds")

    monkeypatch.setattr(pool, "shared", no_sandbox)
    with pytest.raises(SandboxError, match="no rung holds"):
        asyncio.run(box("python.run").call("python.run", {"code": "1"}, 60))


def test_a_sandbox_that_loses_one_program_says_so(monkeypatch):
    from judge.worker import ProgramRun

    class Failing:
        size = 1

        def run(self, _):
            return ProgramRun("infra_error", "", "", "R4")

    monkeypatch.setattr(pool, "shared", Failing)
    assert "the sandbox failed" in call("python.run", code="1")["error"]


def test_the_time_of_a_call_begins_with_its_turn():
    """Nine programs of half a second, a few at a time: in the sandbox's own queue the last ones would time out."""
    box = Toolbox(Tools(names=["python.run"], call_timeout_s=1.5), None)
    code = "import time; time.sleep(0.5)"

    async def main():
        return await asyncio.gather(*(box.call("python.run", {"code": code}, 60) for _ in range(9)))

    answers = asyncio.run(main())
    assert all("result" in answer and answer["seconds"] < 1.5 for answer in answers), answers


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("print(6 * 7)", {"stdout": "42\n", "stderr": "", "returncode": 0}),
        ("", {"stdout": "", "stderr": "", "returncode": 0}),
        ("import sys; print('e', file=sys.stderr)", {"stdout": "", "stderr": "e\n", "returncode": 0}),
        ("print('\ud800')", {"stdout": "?\n", "stderr": "", "returncode": 0}),  # a model's broken emoji
        ("print('é😀')", {"stdout": "é😀\n", "stderr": "", "returncode": 0}),
        ("print(input())", {"stdout": "", "returncode": 1}),  # nothing to read
        ("import sys; print(repr(sys.stdin.read()))", {"stdout": "''\n", "stderr": "", "returncode": 0}),
        ("1/0", {"stdout": "", "returncode": 1}),
        ("import sys; print(1); sys.exit(3)", {"stdout": "1\n", "returncode": 1}),
        ("import sys; sys.exit(0)", {"stdout": "", "stderr": "", "returncode": 0}),
        ("raise SystemExit('why')", {"stdout": "", "returncode": 1}),
    ],
)
def test_python_runs(code, answer):
    result = call("python.run", code=code)["result"]
    assert result.items() >= answer.items()
    assert "ended_by" not in result


@pytest.mark.parametrize(
    ("code", "ended_by"),
    [
        ("print(1", "load_error"),
        ("x = '\0'", "load_error"),
        ("while True: pass", "timeout"),
        ("import time; time.sleep(60)", "timeout"),
        ("x = [b'x' * 10**6 for _ in range(10**5)]", "memory"),
        ("print('x' * 10**8)", "output_limit"),
        ("while True: print('x' * 1000)", "output_limit"),
        ("import os; os.abort()", "died"),
    ],
)
def test_python_ends_what_goes_too_far(code, ended_by):
    begin = time.monotonic()
    answer = call("python.run", code=code, timeout_s=1, memory_mb=256)
    result = answer["result"] if "result" in answer else pytest.fail(str(answer))
    assert result["ended_by"] == ended_by
    assert result["returncode"] == 1
    assert len(result["stdout"]) <= 64 << 10
    assert time.monotonic() - begin < 15


def test_python_says_what_is_wrong():
    assert "ZeroDivisionError" in call("python.run", code="1/0")["result"]["stderr"]
    assert "SyntaxError" in call("python.run", code="print(1")["result"]["stderr"]
    assert "EOFError" in call("python.run", code="input()")["result"]["stderr"]
    for wrong in ({"timeout_s": 31}, {"timeout_s": 0}, {"memory_mb": 63}, {"memory_mb": 2048}, {"timeout_s": 1.5}):
        assert call("python.run", code="1", **wrong)["error"].startswith("wrong arguments: ")
    assert "code: is missing" in call("python.run", program="1")["error"]


def test_many_programs_at_once_get_their_own_output():
    async def calls():
        tools = box("python.run")
        return await asyncio.gather(*(tools.call("python.run", {"code": f"print({n})"}, 60) for n in range(40)))

    assert [answer["result"]["stdout"] for answer in asyncio.run(calls())] == [f"{n}\n" for n in range(40)]
    assert not [thread for thread in threading.enumerate() if thread.name == "tool" and not thread.daemon]

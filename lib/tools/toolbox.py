"""The box that a model reaches into: tools by name, their calls checked, answered and counted."""

import asyncio
import contextlib
import inspect
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, PydanticUserError, ValidationError, create_model

from lib.core import registry
from lib.core.config import Tools
from lib.core.errors import ConfigError, UserError
from lib.core.killable import in_daemon_thread
from lib.core.registry import did_you_mean
from lib.generators.reply_cache import ReplyCache
from lib.text.calls import read_json
from lib.tools import python  # noqa: F401  (it registers itself)


def wire_name(name: str) -> str:
    """Returns a tool's name in native calls, where servers accept no dots."""
    return name.replace(".", "_")


class Tool:
    """One function and the schema of its arguments. Raises ConfigError where a parameter has no type."""

    def __init__(self, name: str, function: Callable[..., Any]):
        self.name, self._function = name, function
        self.description = inspect.cleandoc(function.__doc__ or "")
        fields: dict[str, Any] = {}
        try:
            parameters = inspect.signature(function, eval_str=True).parameters.values()
        except (ValueError, TypeError, NameError) as error:
            raise ConfigError(f"tools.names: the signature of '{name}' cannot be read ({error}); fix it") from error
        for parameter in parameters:
            has_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            if parameter.annotation is parameter.empty or not has_name or parameter.name.startswith("_"):
                raise ConfigError(
                    f"tools.names: parameter '{parameter.name}' of '{name}' has no type, or no name of its own; "
                    "annotate it, for example `query: str`"
                )
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[parameter.name] = (parameter.annotation, default)
        settings = ConfigDict(extra="forbid", strict=True, protected_namespaces=())
        try:
            self._arguments: type[BaseModel] = create_model("Arguments", __config__=settings, **fields)
            self.schema()
        except (PydanticUserError, TypeError, NameError) as error:
            reason = str(error).splitlines()[0]
            raise ConfigError(
                f"tools.names: a parameter of '{name}' has a type that JSON cannot fill ({reason}); "
                "use str, int, float, bool, list, dict, Literal and their like"
            ) from error

    def prepare(self) -> None:
        """Calls the function's own `prepare()`, if it has one."""
        getattr(self._function, "prepare", lambda: None)()

    def turns(self) -> contextlib.AbstractAsyncContextManager:
        """Returns the context that each call must hold while it runs: a semaphore of the running loop, or nothing."""
        at_once = getattr(self._function, "at_once", None)
        return asyncio.Semaphore(at_once()) if at_once else contextlib.nullcontext()

    def schema(self) -> dict[str, Any]:
        """Returns a new copy of the schema, in the format of the chat completions API and of chat templates."""
        parameters = _without_titles(self._arguments.model_json_schema())
        about = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": about}

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Returns the function's result. Raises ValueError with a sentence for wrong arguments, else what it raises."""
        try:
            text = json.dumps(dict(arguments), ensure_ascii=False).encode("utf-8", "replace")
            checked = self._arguments.model_validate_json(text)  # in JSON mode, where a list may stand for a tuple
        except ValidationError as error:
            raise ValueError(self._mistakes(error)) from None
        values = {name: getattr(checked, name) for name in type(checked).model_fields}
        if inspect.iscoroutinefunction(self._function) or inspect.iscoroutinefunction(type(self._function).__call__):
            with _no_exits(asyncio.CancelledError, KeyboardInterrupt):
                return await self._function(**values)

        def run() -> Any:
            with _no_exits():
                return self._function(**values)

        return await asyncio.wrap_future(in_daemon_thread(run))  # a thread that no one joins: a tool may hang for ever

    def _mistakes(self, error: ValidationError) -> str:
        """Describes up to five mistakes in the arguments, so that a model can correct them."""
        names = list(self._arguments.model_fields)
        mistakes = []
        for problem in error.errors()[:5]:
            where = ".".join(str(part) for part in problem["loc"])
            if problem["type"] == "extra_forbidden":
                near = did_you_mean(where, names)
                mistakes.append(f"{where}: no such argument{near or '; it takes ' + ', '.join(names)}")
            elif problem["type"] == "missing":
                mistakes.append(f"{where}: is missing")
            else:
                mistakes.append(f"{where}: {problem['msg'].replace('Input should be', 'should be')}")
        return "wrong arguments: " + "; ".join(mistakes)


class Toolbox:
    """The tools of a config by name. Raises ConfigError for an unknown name, or a tool that lacks a package."""

    def __init__(self, settings: Tools, recorded: ReplyCache | None):
        """Builds the tools. `recorded` keeps the web's answers; None where no tool will be called."""
        self.settings = settings
        self._web = _web(settings, recorded)
        functions = {"web.search": self._web.search, "web.fetch": self._web.fetch} if self._web else {}
        functions |= {name: registry.tools.get(name) for name in settings.names if name not in functions}
        self.tools = {name: Tool(name, functions[name]) for name in settings.names}
        self._turns: dict[str, contextlib.AbstractAsyncContextManager] = {}  # of the running loop
        alike = [name for name, count in Counter(map(wire_name, settings.names)).items() if count > 1]
        if alike:
            raise ConfigError(f"tools.names: several tools would be called '{alike[0]}'; rename or remove one")

    def prepare(self) -> None:
        """Prepares every tool. Raises what a tool raises, mostly a UserError."""
        for tool in self.tools.values():
            tool.prepare()

    def __bool__(self) -> bool:
        return bool(self.tools)

    async def aclose(self) -> None:
        """Closes connections."""
        if self._web:
            await self._web.close()

    def schemas(self) -> list[dict[str, Any]]:
        """Returns every tool's schema."""
        return [tool.schema() for tool in self.tools.values()]

    async def call(self, name: str, arguments: Any, seconds: float) -> dict[str, Any]:
        """Returns `{"result": ...}`, or `{"error": ...}` with a sentence, and the `seconds` that the call took.

        Raises only UserErrors.
        """
        turns = contextlib.nullcontext()
        if name in self.tools:
            turns = self._turns[name] = self._turns.get(name) or self.tools[name].turns()
        async with turns:
            begin = time.monotonic()
            answer = await self._answer(name, arguments, min(seconds, self.settings.call_timeout_s))
            return {**answer, "seconds": round(time.monotonic() - begin, 3)}

    async def _answer(self, name: str, arguments: Any, seconds: float) -> dict[str, Any]:
        if name not in self.tools:
            known = f"{did_you_mean(name, self.tools, '.')} Known: {', '.join(self.tools)}"
            return {"error": f"unknown tool '{name}'{known}"}
        if not isinstance(arguments, Mapping):
            kind = type(arguments).__name__
            kind = {"str": "text", "list": "a list", "NoneType": "null"}.get(kind, f"a {kind}")
            return {"error": f"wrong arguments: expected a JSON object, got {kind}"}
        task = asyncio.ensure_future(self.tools[name].call(arguments))
        try:
            done, _ = await asyncio.wait({task}, timeout=seconds)  # wait_for would wait for one that ignores cancelling
        finally:
            task.cancel()
        if not done:
            return {"error": f"timeout: {name} did not answer within {seconds:.3g} s"}
        try:
            result = read_json(json.dumps(task.result()))  # a copy, and plain data
        except UserError:
            raise
        except (Exception, asyncio.CancelledError) as error:  # a tool's own bugs are told to the model, too
            return {"error": _text_of(error) or type(error).__name__}
        is_error = isinstance(result, dict) and list(result) == ["error"]
        return result if is_error else {"result": result}


def _web(settings: Tools, recorded: ReplyCache | None) -> Any:
    """Returns the web tools, if the config asks for them; their packages are imported only then."""
    if not settings.uses_web:
        return None
    from lib.tools.web import Web

    return Web(settings.web, recorded)


@contextlib.contextmanager
def _no_exits(*meant: type[BaseException]) -> Iterator[None]:
    """Raises RuntimeError where a tool tries to end the program; `meant` are not the tool's doing, and pass."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, (Exception, *meant)):
            raise
        raise RuntimeError(f"{type(error).__name__}: {_text_of(error)}") from error


def _text_of(error: BaseException) -> str:
    """Returns an error's text, "" if making it fails: that is a tool's own code, too."""
    try:
        return str(error)
    except (Exception, SystemExit):
        return ""


def _without_titles(schema: Any) -> Any:
    """Returns a JSON schema without the titles that pydantic adds: they tell a model nothing."""
    if isinstance(schema, dict):
        kept = {key: value for key, value in schema.items() if key != "title" or isinstance(value, dict)}
        return {key: _without_titles(value) for key, value in kept.items()}  # a dict is a parameter called title
    return [_without_titles(value) for value in schema] if isinstance(schema, list) else schema

"""A vLLM server: found or started, asked, watched, started again, stopped.

One that is started here dies with this process, however that ends (lib/core/children.py).
"""

import contextlib
import os
import re
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lib.core.children import Children
from lib.core.config import TrainedModel, Vllm
from lib.core.errors import ApiError
from lib.core.interrupts import current, give_way
from lib.model.policy import Policy
from lib.run.adapter_files import POLICY
from lib.run.distributed import without_launcher

if TYPE_CHECKING:
    import httpx2

BASE = "base"  # the server's name of the model without an adapter
POLL_SECONDS = 0.5
SHORT_SECONDS = 30.0  # for a question that needs no model; a server that takes longer hangs
START_SECONDS = 1800.0  # until a server that was started here must answer
RESTARTS = 2  # of a server that was started here, after it has died or hangs
CONNECTIONS = 128
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # the largest ranks of LoRA that vLLM can be told
SPARE = 0.1  # share of a GPU that is left free where a server shares it
CAUSE = re.compile(r"\b\w*(Error|Exception): .*")
SLEEP, UTILIZATION = "--enable-sleep-mode", "--gpu-memory-utilization"
ENVIRONMENT = {
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
ON_CPU = {  # unless the environment says otherwise
    "TORCHDYNAMO_DISABLE": "1",  # compiling takes longer than it saves
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; or it takes nearly all memory
}


class ServerLost(Exception):
    """The server does not answer, or not with an answer."""


class VllmServer:
    """A server at `url`, after `__enter__`; a context. `words` is the command line that starts it, if none is named."""

    def __init__(self, settings: Vllm, words: list[str], log: Path, on_cpu: bool, say: Callable[[str], None]):
        self.settings, self.log, self.say = settings, log, say
        self.url = (settings.url or "").rstrip("/")
        self._words, self._on_cpu = words, on_cpu
        self.sleeps = SLEEP in words and not settings.url  # while the model trains, on the same GPU
        self._restarts = self._pid = self._began = 0

    def __enter__(self) -> "VllmServer":
        import httpx2

        self._stack, interrupts = contextlib.ExitStack(), current()
        # a signal may end it: nothing has been sampled that would be lost
        leavable = interrupts.leavable() if interrupts else contextlib.nullcontext()
        with contextlib.ExitStack() as stack, leavable:
            self._client = stack.enter_context(httpx2.Client(timeout=SHORT_SECONDS))
            if not self.settings.url:
                self._children = stack.enter_context(Children())
                self._start()
            if not self._answers_within(SHORT_SECONDS):
                raise ApiError(
                    f"generation.vllm.url: no vLLM server answers at {self.url}; start it, or remove the key"
                )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._pid:  # it stops its own processes and frees its memory, if it is given the time
            self._children.signal(signal.SIGTERM)
            end = time.monotonic() + SHORT_SECONDS
            while self._pid not in self._children.ended() and time.monotonic() < end:
                time.sleep(POLL_SECONDS)
        self._stack.close()

    def load(self, name: str, folder: Path) -> None:
        """Makes an adapter known. Raises ApiError where the server refuses it, ServerLost where it does not answer."""
        path = "/v1/load_lora_adapter"
        try:
            self._post(path, {"lora_name": name, "lora_path": str(folder.resolve())})
        except ServerLost as error:
            if "LoRA" not in str(error):
                raise
            raise ApiError(f"generation.vllm: {self.url}{path} refuses the adapter ({error})") from error  # its rank

    def unload(self, name: str) -> None:
        """Forgets an adapter. A server that is gone has forgotten it."""
        with contextlib.suppress(ServerLost, ApiError):
            self._post("/v1/unload_lora_adapter", {"lora_name": name}, SHORT_SECONDS)

    def wake(self) -> None:
        """Gives a sleeping server its memory back. Raises ApiError and ServerLost as `load` does."""
        if self.sleeps:
            torch.cuda.empty_cache()  # what the update has used
            self._post("/wake_up", {})

    def sleep(self) -> None:
        """Frees the server's memory until `wake`: one that does not go to sleep is ended, and `wake` finds it lost."""
        if self.sleeps:
            try:
                self._post("/sleep", {})
            except ServerLost:
                self._children.signal(signal.SIGKILL)

    def score(self, name: str, ids: list[int]) -> list[float]:
        """Returns log-probs of ids[1:] under the base or an adapter, at temperature 1."""
        body = {"model": name, "prompt": ids, "max_tokens": 1, "temperature": 1.0, "prompt_logprobs": 0}
        answer = self._post("/v1/completions", body)
        try:
            places = answer["choices"][0]["prompt_logprobs"][1:]
            return [place[str(token)]["logprob"] for token, place in zip(ids[1:], places, strict=True)]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ApiError(
                f"generation.vllm: {self.url} gives no log-probs of a prompt ({type(error).__name__}: {error}); "
                f"is it vLLM, of a version near 0.32?"
            ) from error

    @asynccontextmanager
    async def requests(self) -> AsyncIterator[Callable[[str, dict], Awaitable[Any]]]:
        """Yields a function that posts a body and returns the answer. It raises as `load` does."""
        import httpx2

        limits = httpx2.Limits(max_connections=CONNECTIONS)
        timeout = httpx2.Timeout(self.settings.deadline_s, connect=SHORT_SECONDS, pool=None)
        async with httpx2.AsyncClient(base_url=self.url, timeout=timeout, limits=limits) as client:

            async def post(path: str, body: dict) -> Any:
                try:
                    return self._read(path, await client.post(path, json=body))
                except httpx2.TimeoutException:
                    raise ServerLost(
                        f"no answer within generation.vllm.deadline_s = {self.settings.deadline_s:g} s"
                    ) from None
                except httpx2.HTTPError as error:
                    raise ServerLost(f"{type(error).__name__} {error}") from None

            yield post

    def recover(self, error: ServerLost) -> None:
        """Brings back a server that was started here; waits for one that was not. Raises ApiError if neither helps."""
        if self.settings.url:
            self.say(f"vllm: {self.url} does not answer ({error}); waiting for it")
            if not self._answers_within(self.settings.deadline_s):
                raise ApiError(
                    f"generation.vllm: {self.url} no longer answers ({error}); start it again, then --resume"
                ) from error
            return
        end = None
        for _ in range(4):  # a process that is killed breaks its connections before it has ended
            if (end := self._children.ended().get(self._pid)) is not None:
                break
            time.sleep(POLL_SECONDS)
        else:
            self._children.end(self._pid)
        self._pid = 0
        state = "hangs" if end is None else f"ended with {'signal' if end < 0 else 'code'} {abs(end)}"
        if self._restarts == RESTARTS:
            raise ApiError(
                f"generation.vllm: the server {state} ({error}), after {RESTARTS} restarts; {self._last_words()}; then "
                "--resume"
            ) from error
        self._restarts += 1
        self.say(f"vllm: the server {state} ({error}); starting another one, the {self._restarts}. time")
        self._start()

    def _start(self) -> None:
        """Starts a server and waits until it answers. Raises ApiError if it does not, Left where a signal says so."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        python = self.settings.python or sys.executable
        command = [python, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--port", str(port)]
        environment = (ON_CPU if self._on_cpu else {}) | without_launcher(os.environ) | ENVIRONMENT
        if self.sleeps:  # asleep during updates, it may have what training leaves once all models are loaded
            environment["VLLM_SERVER_DEV_MODE"] = "1"  # or it has no /sleep
            torch.cuda.empty_cache()
            free, total = torch.cuda.mem_get_info()
            command += [UTILIZATION, f"{max(0.01, free / total - SPARE):.2f}"]
        self._began = self.log.stat().st_size if self.log.exists() else 0  # a log has the output of all starts
        self.say(f"vllm: starting a server, its output is in {self.log}")
        try:
            self._pid = self._children.start([*command, *self._words], self.log, environment)
        except OSError as error:
            raise ApiError(
                f"generation.vllm.python: {python} cannot be started ({error}); give the Python of an environment that "
                "has vllm"
            ) from error
        if not self._answers_within(START_SECONDS):
            raise ApiError(
                f"generation.vllm: the started server does not answer within {START_SECONDS:g} s; {self._last_words()}"
            )

    def _answers_within(self, seconds: float) -> bool:
        """Waits for a healthy server. Raises ApiError if one that was started here has ended."""
        import httpx2

        end = time.monotonic() + seconds
        while time.monotonic() < end:
            give_way()
            with contextlib.suppress(httpx2.HTTPError):
                if self._client.get(f"{self.url}/health").status_code == 200:
                    return True
            if self._pid and (code := self._children.ended().get(self._pid)) is not None:
                self._pid = 0
                raise ApiError(
                    f"generation.vllm: the server ended with code {code} as it started; {self._last_words()}"
                )
            time.sleep(POLL_SECONDS)
        return False

    def _post(self, path: str, body: dict, seconds: float | None = None) -> Any:
        """Returns the answer within `seconds`, or within the deadline of a completion. Raises ServerLost, ApiError."""
        import httpx2

        seconds = seconds or self.settings.deadline_s
        try:
            return self._read(path, self._client.post(self.url + path, json=body, timeout=seconds))
        except httpx2.HTTPError as error:
            raise ServerLost(f"{type(error).__name__} {error}") from None

    def _read(self, path: str, response: "httpx2.Response") -> Any:
        """Returns the answer as JSON or text. Raises ServerLost or ApiError for a status that is none of success."""
        if response.status_code >= 500:
            raise ServerLost(f"status {response.status_code} of {path}: {_message(response)}")
        if response.status_code != 200:
            raise ApiError(f"generation.vllm: {self.url}{path} refuses ({response.status_code}): {_message(response)}")
        try:
            return response.json()
        except ValueError:
            return response.text

    def _last_words(self) -> str:
        """Returns the first error in the log since the last start, or its last line."""
        try:
            lines = self.log.read_bytes()[self._began :].decode(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        errors = (CAUSE.search(line) for line in lines if " WARNING " not in line)
        cause = next((match[0] for match in errors if match), lines[-1] if lines else "nothing")
        return f"{self.log} says: {cause.strip()[:500]}"


def command_line(model: TrainedModel, settings: Vllm, policy: Policy) -> list[str]:
    """Returns the words after the server's program: the weights, lengths and dtype of training."""
    lora = policy.model.peft_config[POLICY]
    rank = next(size for size in RANKS if size >= min(lora.r, RANKS[-1]))
    words = [
        "--model", model.name, "--served-model-name", BASE, "--dtype", str(policy.language_model.dtype).split(".")[-1],
        "--max-model-len", str(model.max_seq_length), "--generation-config", "vllm",
        "--logprobs-mode", "processed_logprobs", "--enable-lora", "--max-loras", "1", "--max-cpu-loras", "4",
        # without its targets, log-probs of a prompt under an adapter end the engine of a CPU
        "--max-lora-rank", str(rank), "--lora-target-modules", *sorted(lora.target_modules),
    ]  # fmt: skip
    words += ["--revision", model.revision] if model.revision else []
    words += ["--trust-remote-code"] if model.trust_remote_code else []
    if policy.device.type == "cpu":  # it crashes if the prompt of a request with a seed is computed in parts
        words += ["--enforce-eager", "--block-size", "32", "--no-enable-chunked-prefill"]
    elif not any(word.startswith(UTILIZATION) for word in settings.options):
        words += [SLEEP]
    return [*words, *settings.options]


def _message(response: "httpx2.Response") -> str:
    try:
        data = response.json()
        return str(data.get("error", data).get("message", data))[:300]
    except (ValueError, AttributeError):
        return response.text[:300]

"""What a server can do wrong, each with a verdict: against a real one, a proxy that spoils its answers, and scripts."""

import asyncio
import contextlib
import json
import logging
import os
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import openai  # noqa: F401  as early as this: its import is not part of what is measured
import pytest
from conftest import chatterbox
from helpers.faults import INVENTIONS, SPOILINGS, Upstream, faulty
from helpers.server import Message, _Connection, answer, notes, serve

from lib.core.config import Server
from lib.core.errors import ApiError, ConfigError
from lib.generators import openai as remote
from lib.generators.openai import RemoteModel, address
from lib.generators.protocol import Call, Reply, ReplyError, Request

KEY = "sk-0123456789abcdefghijKLMNOPQRSTUVWXYZ"
CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
TOOL = {"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object"}}}
TEMPLATE = (
    "{% if enable_thinking is defined and enable_thinking %}deep{% endif %}"
    "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|im_end|>{% endfor %}<|assistant|>{{ begin }}"
)
TALK, THINK = ({"extra_body": {"chat_template_kwargs": {"begin": begin}}} for begin in "tu")


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Over a model that says some digits; after a t it thinks a, says b and calls a tool; after a u it thinks for ever.

    The second server tells reasoning apart.
    """
    digit = {**dict.fromkeys("0123456789", 0.07), "<|im_end|>": 0.3}
    follow = {"<|assistant|>": dict.fromkeys("0123456789", 0.1), **dict.fromkeys("0123456789", digit)}
    chain = {"t": "<think>", "<think>": "a", "a": "</think>", "</think>": "b", "b": "<answer>", "u": "</answer>",
             "</answer>": "c", "c": "c"}  # fmt: skip
    follow |= {last: {token: 1.0} for last, token in chain.items()}
    folder = chatterbox(tmp_path_factory.mktemp("talker"), follow)
    vocabulary = folder / "tokenizer.json"  # some tokens are more than they were
    changed = vocabulary.read_text().replace('"<answer>"', json.dumps(CALL)).replace('"</answer>"', '"<think>c"')
    vocabulary.write_text(changed)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    both = [serve(folder, "--name", "m", "--api-key", KEY), serve(folder, "--name", "m", "--reasoning-parser")]
    with contextlib.ExitStack() as stack, ThreadPoolExecutor() as pool:
        yield list(pool.map(stack.enter_context, both))


@pytest.fixture
def url(servers):
    return servers[0]


@pytest.fixture(autouse=True)
def brisk(monkeypatch):
    monkeypatch.setattr(remote, "FIRST_PAUSE", 0.02)
    monkeypatch.setenv("A_KEY", KEY)


def at(url, **fields):
    return Server(**{"base_url": url and str(url), "model": "m", "api_key_env": "A_KEY", "max_retries": 1, **fields})


def request(text="1+1=?", **fields):
    plain = {"messages": [{"role": "user", "content": text}], "max_tokens": 12, "temperature": 1.0, "seed": 1}
    return Request(**{**plain, **fields})


def ask(url, *requests, **fields):
    """Replies or exceptions, and what the calls came to."""

    async def main():
        async with RemoteModel(at(url, **fields)) as model:
            started = time.monotonic()
            answers = await asyncio.gather(*(model.reply(request) for request in requests), return_exceptions=True)
            model.counts.seconds = time.monotonic() - started
            return answers, model.counts

    return asyncio.run(main())


def ask_one(url, *args, **fields):
    """One reply, or its exception raised."""
    [found], _ = ask(url, *(args or [request()]), **fields)
    if isinstance(found, Exception):
        raise found
    return found


class Scripted:
    """A server in this event loop that gives one answer after the other, and the last one for ever."""

    def __init__(self, *answers):
        self.answers, self.requests, self.open, self.most_open = list(answers), [], 0, 0

    async def respond(self, message: Message, writer) -> None:
        self.requests.append(message)
        told = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if callable(told):
                told = await told(message)
            writer.write(told.packed())
        finally:
            self.open -= 1

    @contextlib.asynccontextmanager
    async def listening(self, path="/v1"):
        server = await asyncio.get_running_loop().create_server(lambda: _Connection(self.respond), "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{path}"
        finally:
            server.close()

    def ask(self, *requests, path="/v1", **fields):
        """As `ask`, in one event loop with the server."""

        async def main():
            async with self.listening(path) as url, RemoteModel(at(url, **fields)) as model:
                started = time.monotonic()
                answers = await asyncio.gather(
                    *(model.reply(each) for each in requests or [request()]), return_exceptions=True
                )
                self.seconds, self.counts = time.monotonic() - started, model.counts
                return answers

        return asyncio.run(main())

    def bodies(self):
        return [json.loads(message.body) for message in self.requests]


def said(content="4", finish="stop", **fields):
    message = {"role": "assistant", "content": content, **fields}
    return answer(200, json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}]}))


def responded(*output, status="completed", **fields):
    return answer(200, json.dumps({"status": status, "output": output, **fields}))


def refused(status, message="no", code=None, **headers):
    return answer(status, json.dumps({"error": {"message": message, "type": code, "code": code}}), **headers)


# every fault


DEADLINE = 0.7
VERDICTS = {  # a reply, or the kinds of errors, and how many calls that takes with one retry
    "slow": (Reply, 1), "no_usage": (Reply, 1), "content_type_missing": (Reply, 1),
    "hang": ("timeout", 1), "drip": ("timeout", 1),
    "rate_limit": ("unavailable", 2), "rate_limit_bare": ("unavailable", 2), "server_error": ("unavailable", 2),
    "close": ("unavailable", 2), "reset": ("unavailable", 2), "chunk_garbage": ("unavailable", 2),
    "html": ("malformed", 2), "error_200": ("malformed", 2), "not_object": ("malformed", 2), "big": ("malformed", 2),
    "bad_utf8": ("malformed", 2), "nan_json": ("malformed", 2), "empty_choices": ("malformed", 2),
    "null_content": ("malformed", 2), "truncated": ("malformed unavailable", 2),
    "context_length": ("refused", 1),
    "quota": (ApiError, 1), "unauthorized": (ApiError, 1), "forbidden": (ApiError, 1), "not_found": (ApiError, 1),
}  # fmt: skip
SENTENCES = {
    "hang": "no reply within 0.7 s", "drip": "no reply within 0.7 s", "rate_limit_bare": "HTTP 429 rate_limit_exceeded",
    "server_error": "upstream is unwell, 2 times", "close": "the connection broke", "big": "more than 1000000 bytes",
    "html": "not JSON, 88 bytes that begin '<!DOCTYPE html>", "not_object": "JSON, but a", "error_200": "had an error",
    "context_length": "maximum context length is 128 tokens", "quota": "top it up, then --resume",
    "unauthorized": "the key in api_key_env is refused", "forbidden": "may not use this model",
    "not_found": "check base_url",
}  # fmt: skip


def test_every_fault_has_a_verdict():
    assert set(VERDICTS) == {*INVENTIONS, *SPOILINGS}


@pytest.mark.parametrize("fault", VERDICTS)
def test_faults(url, fault, tmp_path, caplog):
    verdict, calls = VERDICTS[fault]
    log = tmp_path / "log.jsonl"
    with faulty(url, "--only", fault, "--log", log) as proxy:
        for api in ("chat", "responses") if fault != "slow" else ("chat",):
            deadline = DEADLINE if verdict == "timeout" else 10
            [found], counts = ask(proxy, request(max_tokens=99), deadline_s=deadline, api=api)
            about = "".join(traceback.format_exception(found)) if isinstance(found, Exception) else repr(found)
            assert KEY not in about + caplog.text
            if verdict is Reply:
                assert isinstance(found, Reply)
                assert counts.without_usage == (fault == "no_usage") == (found.usage.completion_tokens == 0)
            elif verdict is ApiError:
                assert isinstance(found, ApiError) and found.exit_code == 6
            else:
                assert isinstance(found, ReplyError) and found.kind in verdict, about
                assert str(found).startswith(f"{found.kind}: ") and 30 <= len(str(found)) < 320
            assert SENTENCES.get(fault, "") in str(found)
            assert counts.retries == calls - 1 or fault == "rate_limit"
            if verdict == "timeout":
                assert DEADLINE <= counts.seconds < DEADLINE + 0.3
        least = {"slow": 1, "rate_limit": 2}.get(fault, 2 * calls)
        end = time.monotonic() + 5
        while len(notes(log)) < least and time.monotonic() < end:  # its log comes after its answers
            time.sleep(0.01)
    seen = [line["fault"] for line in notes(log)]
    assert set(seen) == {fault}
    assert len(seen) == least or (fault == "rate_limit" and len(seen) <= 4)


def test_what_fails_for_a_while_is_a_reply_in_the_end(url):
    wanted = [request(seed=seed) for seed in range(40)]
    right, _ = ask(url, *wanted)
    passing = [fault for fault, (verdict, _) in VERDICTS.items() if verdict not in (ApiError, "timeout", "refused")]
    with faulty(url, "--rate", 0.9, "--most", 3, "--only", *passing) as proxy:
        found, _ = ask(proxy, *wanted, max_retries=5)
    kinds = [result.kind for result in found if isinstance(result, ReplyError)]
    assert len(kinds) < 12 and set(kinds) <= {"unavailable"}  # those asked to wait for an hour
    for mine, its in zip(found, right, strict=True):
        assert isinstance(mine, ReplyError) or (mine.text, mine.finished) == (its.text, its.finished)


# waiting


@pytest.mark.parametrize(
    ("wait", "low", "high"),
    [("0.4", 0.4, 0.8), ("0", 0, 0.2), ("-5", 0, 0.2), ("soon", 0, 0.3), ("nan", 0, 0.3), ("", 0, 0.3),
     ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 0.3)],
)  # fmt: skip
def test_the_wait_that_is_asked_for(wait, low, high):
    server = Scripted(refused(429, retry_after=wait), said())
    [reply] = server.ask()
    assert reply.text == "4" and low <= server.seconds < high and server.counts.retries == 1


@pytest.mark.parametrize("wait", ["3600", "inf", "1e400"])
def test_a_wait_beyond_the_deadline_is_not_waited_for(wait):
    server = Scripted(refused(503, "come back later", retry_after=wait), said())
    [error] = server.ask(deadline_s=20, max_retries=5)
    assert isinstance(error, ReplyError) and error.kind == "unavailable" and server.seconds < 0.5
    assert "come back later; it asks to wait" in str(error) and "more than deadline_s" in str(error)
    assert len(server.requests) == 1


def test_pauses_grow(monkeypatch):
    monkeypatch.setattr(remote, "FIRST_PAUSE", 0.5)
    model = RemoteModel(at("http://127.0.0.1:1/v1"))

    problem = remote._Passing("unavailable", "x")
    for attempt, most in [(1, 0.5), (2, 1), (5, 8), (30, remote.LONGEST_PAUSE)]:
        pauses = [model._pause(problem, attempt) for _ in range(200)]
        assert 0.7 * most < max(pauses) <= most and min(pauses) < 0.3 * most


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 524, 529])
def test_what_passes_is_tried_again(status):
    server = Scripted(refused(status), refused(status), said())
    [reply] = server.ask(max_retries=2)
    assert reply.text == "4" and len(server.requests) == 3 and len({request.body for request in server.requests}) == 1


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_what_is_refused_is_not_tried_again(status):
    server = Scripted(refused(status, "too hot", "invalid_value"), said())
    [error] = server.ask(max_retries=5)
    assert error.kind == "refused" and str(error) == f"refused: HTTP {status} invalid_value invalid_value: too hot"
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", remote.QUOTA)
def test_a_quota_that_is_used_up_ends_the_run(code):
    for reply in (refused(429, "pay", code), refused(402, "pay"), refused(200, "pay", code)):
        server = Scripted(reply, said())
        [error] = server.ask(max_retries=5)
        assert isinstance(error, ApiError) and "quota" in str(error) and len(server.requests) == 1


def test_nobody_there():
    with pytest.raises(ReplyError, match=r"unavailable: no connection .*, 2 times"):
        ask_one("http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    "body", [b"", b"null", b'{"error": null}', b'{"error": "text"}', b'{"detail": [{"loc": 1}]}', b"[" * 9_999,
             b'{"error": {"message": null, "code": 400}}', b"\xff\xfe\0\0", b'["a"]'],
)  # fmt: skip
def test_errors_of_any_form_are_told(body):
    [error] = Scripted(answer(400, body)).ask()
    assert error.kind == "refused" and str(error).startswith("refused: HTTP 400")


# the key


def echoes(status, form):
    async def echo(message):
        stolen = message.headers["authorization"]
        return answer(status, form(stolen))

    return echo


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 429, 500])
def test_the_key_is_in_no_error_and_no_log(status, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    forms = [
        lambda text: json.dumps({"error": {"message": f"who is {text}?", "code": text}}),
        lambda text: json.dumps({"choices": [{"message": {"content": 1, text: 2}}], "usage": {text: text}}),
        lambda text: json.dumps({text: text, "error": text}),
        lambda text: json.dumps({"status": text, "choices": text, "output": []}),
    ]
    for before in (*range(20, 60, 9), *range(160, 320, 9)):  # so that every cut falls into it once
        forms.append(lambda text, before=before: "x" * before + text + "y" * 99)
        forms.append(lambda text, before=before: json.dumps({"error": {"message": "x" * before + text}}))
    monkeypatch.setattr(remote, "FAILURES_IN_A_ROW", 10_000)
    for api in ("chat", "responses"):
        server = Scripted(*(echoes(status, form) for form in forms))
        wanted = [request(seed=seed) for seed in range(len(forms))]
        for error in server.ask(*wanted, api=api, max_retries=0, max_concurrency=1):
            about = "".join(traceback.format_exception(error))
            assert isinstance(error, ReplyError | ApiError)
            assert not any(KEY[start : start + 8] in about for start in range(len(KEY) - 7)), about
    assert KEY not in caplog.text


def test_the_key_is_sent_and_is_not_shown():
    server = Scripted(said())
    server.ask()
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    model = RemoteModel(at("http://127.0.0.1:1/v1"))
    assert KEY not in f"{model!r} {model.name} {model.server!r} {model.counts}"
    server = Scripted(said())
    server.ask(api_key_env=None)
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("value", [None, "", " \n", "sk-a\nb", "sk-ключ", "sk-a\x00b"])
def test_a_key_that_cannot_be_one(monkeypatch, value):
    monkeypatch.delenv("A_KEY")
    if value and "\x00" not in value:
        monkeypatch.setenv("A_KEY", value)
    with pytest.raises(ConfigError, match=r"servers\.NAME\.api_key_env: .*A_KEY") as caught:
        RemoteModel(at("http://127.0.0.1:1/v1"))
    assert caught.value.exit_code == 2 and "sk-" not in str(caught.value)


# what the environment says


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """An environment that says nothing of servers."""
    for name in os.environ:
        if name.upper().endswith("_PROXY") or name.startswith("OPENAI_"):
            monkeypatch.delenv(name)


def test_azure_takes_the_limit_by_its_new_name():
    assert RemoteModel(at("https://mine.openai.azure.com/openai/v1"))._dialect.limit == "max_completion_tokens"
    assert RemoteModel(at("https://x/mine.openai.azure.com/v1"))._dialect.limit == "max_tokens"


def test_without_an_address_all_is_as_openais_client_has_it(url, monkeypatch):
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        RemoteModel(at(None, api_key_env=None))
    assert address(at(None)) == "https://api.openai.com/v1"
    assert RemoteModel(at(None))._dialect.limit == "max_completion_tokens"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/")
    assert ask_one(None, api_key_env=None) == ask_one(url)
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8000")
    with pytest.raises(ConfigError, match=r"OPENAI_BASE_URL of the environment .* no address: 'localhost:8000'"):
        RemoteModel(at(None))


def test_a_key_goes_where_somebody_sent_it_and_headers_go_with_every_request(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj_1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Secret: do-not-tell-me")
    server = Scripted(refused(400, "x-secret was do-not-tell-me"), said())
    [error] = server.ask(api_key_env=None)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "authorization: Basic abc")
    server.ask(api_key_env=None)
    first, second = (message.headers for message in server.requests)
    assert "authorization" not in first and second["authorization"] == "Basic abc"
    assert (first["openai-organization"], first["openai-project"]) == ("org-1", "proj_1")
    assert first["x-secret"] == "do-not-tell-me" and "x-secret was [key]" in str(error)


def test_a_proxy_of_the_environment_is_asked(url, monkeypatch):
    seen = []

    async def forward(message, writer):
        method, target, version = message.start.split()
        seen.append(target)
        there = Message(f"{method} {urlsplit(target).path} {version}", message.headers, message.body)
        writer.write((await Upstream(url).ask(there)).packed())

    async def main(base):
        proxy = await asyncio.get_running_loop().create_server(lambda: _Connection(forward), "127.0.0.1", 0)
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
        async with RemoteModel(at(base)) as model:
            reply = await model.reply(request())
        proxy.close()
        return reply

    right = ask_one(url)
    assert asyncio.run(main("http://nowhere.invalid/v1")) == right
    assert seen == ["http://nowhere.invalid/v1/chat/completions"]
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert asyncio.run(main(url)) == right and len(seen) == 1


# many at once


def test_a_server_that_is_gone_ends_the_run(monkeypatch):
    monkeypatch.setattr(remote, "FAILURES_IN_A_ROW", 5)
    bad = [answer(500, "gone")] * 4
    server = Scripted(*bad, said(), *bad, answer(500, "gone for good"))

    async def main():
        async with server.listening() as url, RemoteModel(at(url, max_retries=0, max_concurrency=1)) as model:
            kinds = []
            with pytest.raises(ApiError, match=r"5 requests in a row failed.*gone for good.*--resume"):
                for seed in range(100):
                    try:
                        kinds.append(type(await model.reply(request(seed=seed))))
                    except ReplyError as error:
                        kinds.append(error.kind)
            return kinds

    assert asyncio.run(main()) == ["unavailable"] * 4 + [Reply] + ["unavailable"] * 4


def test_no_more_at_once_than_allowed_in_one_event_loop_after_the_other():
    async def slowly(_):
        await asyncio.sleep(0.01)
        return said()

    for most in (1, 3, 16):
        server = Scripted(slowly)
        replies = server.ask(*(request(seed=seed) for seed in range(48)), max_concurrency=most)
        assert all(isinstance(reply, Reply) for reply in replies)
        assert server.most_open == most and len(server.requests) == 48


def test_one_model_in_two_event_loops():
    async def main(model):
        async with server.listening() as url:
            model._base = url
            async with model:
                return await asyncio.gather(*(model.reply(request(seed=seed)) for seed in range(20)))

    server = Scripted(said())
    model = RemoteModel(at("http://127.0.0.1:1/v1", max_concurrency=2))
    assert [len(asyncio.run(main(model))) for _ in range(2)] == [20, 20]


def test_whoever_is_cancelled_gives_the_place_back():
    async def never(_):
        await asyncio.sleep(60)

    server = Scripted(never, never, said())

    async def main():
        async with server.listening() as url, RemoteModel(at(url, max_concurrency=2)) as model:
            tasks = [asyncio.ensure_future(model.reply(request(seed=seed))) for seed in range(6)]
            while len(server.requests) < 2:
                await asyncio.sleep(0.01)
            for task in tasks[:4]:
                task.cancel()
            return await asyncio.wait_for(asyncio.gather(*tasks[4:]), 5)

    assert [reply.text for reply in asyncio.run(main())] == ["4", "4"]


# what is sent, and what is read


def test_what_is_sent_to_the_chat_api():
    server = Scripted(said())
    extra = {"reasoning": {"effort": "low"}, "chat_template_kwargs": {"note": "x"}}
    server.ask(
        request("naïve \ud800", top_p=0.9, tools=[TOOL]), extra_body=extra,
        thinking={"enabled": False},
    )  # fmt: skip
    server.ask(request(temperature=0.0))
    first, second = server.bodies()
    assert first == {
        "model": "m", "messages": [{"role": "user", "content": "naïve \ud800"}], "max_tokens": 12,
        "temperature": 1.0, "seed": 1, "top_p": 0.9, "tools": [TOOL], "reasoning": {"effort": "low"},
        "chat_template_kwargs": {"enable_thinking": False, "note": "x"},
    }  # fmt: skip
    assert second.keys() == {"model", "messages", "max_tokens", "temperature", "seed"}
    assert server.requests[0].headers["content-type"] == "application/json"
    assert server.requests[0].start.split()[:2] == ["POST", "/v1/chat/completions"]


def test_what_is_sent_to_the_responses_api():
    calls = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]
    chat = [
        {"role": "system", "content": "s"}, {"role": "user", "content": "u"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "name": "add", "content": "5"},
        {"role": "assistant", "content": "so"}, {"role": "user", "content": "v"},
    ]  # fmt: skip
    server = Scripted(responded({"type": "message", "content": [{"type": "output_text", "text": "4"}]}))
    [reply] = server.ask(request(messages=chat, tools=[TOOL]), api="responses", extra_body={"store": False})
    assert reply == Reply("4")
    assert server.bodies() == [{
        "model": "m", "max_output_tokens": 12, "temperature": 1.0, "stream": False, "store": False,
        "tools": [{"type": "function", "name": "add", "description": "", "parameters": {"type": "object"}}],
        "input": [
            {"role": "system", "content": "s"}, {"role": "user", "content": "u"},
            {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "5"},
            {"role": "assistant", "content": "so"}, {"role": "user", "content": "v"},
        ],
    }]  # fmt: skip
    assert server.requests[0].start.split()[1] == "/v1/responses"


def test_equal_seeds_get_equal_replies(url):
    again = [request(seed=seed) for seed in (1, 2, 3, 4, 5, 6, 1, 2)]
    found, counts = ask(url, *again)
    assert found[:2] == found[6:] and len({reply.text for reply in found}) > 3 and counts.without_usage == 0
    assert found[0].usage.prompt_tokens == len("u1+1=?ea") and 1 <= found[0].usage.completion_tokens <= 12
    assert ask_one(url, request(seed=1)) == found[0]
    cut = ask_one(url, request(seed=1, max_tokens=1))
    assert (cut.text, cut.finished, cut.usage.completion_tokens) == (found[0].text[0], False, 1)


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("parser", [0, 1])
def test_reasoning_and_calls_are_told_apart_here_or_there(servers, parser, api):
    reply = ask_one(servers[parser], api=api, **TALK)
    [call] = reply.calls
    assert (call.name, json.loads(call.arguments)) == ("add", {"a": 1}) and call.id
    assert (reply.text, reply.reasoning, reply.finished, reply.reasoning_ended) == ("b", "a", True, True)
    assert reply.usage.completion_tokens == 6 and reply.usage.reasoning_tokens == parser
    cut = ask_one(servers[parser], request(max_tokens=4), api=api, **TALK)
    assert (cut.text, cut.reasoning, cut.finished, cut.reasoning_ended, cut.calls) == ("b", "a", False, True, ())


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("parser", [0, 1])
def test_reasoning_that_does_not_end_is_no_answer(servers, parser, api):
    reply = ask_one(servers[parser], api=api, **THINK)
    assert (reply.text, reply.reasoning) == ("", "c" * 12)
    assert not reply.finished and not reply.reasoning_ended


def test_switches_of_the_template_reach_it(url):
    def tokens(*args, **fields):
        return ask_one(url, *args, **fields).usage.prompt_tokens

    plain = tokens()
    assert tokens(thinking={"enabled": True}) == plain + 4 and tokens(thinking={"enabled": False}) == plain
    assert tokens(**TALK) == plain + 1 and tokens(request(tools=[TOOL])) == plain + 3


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (said("4", reasoning_content="r"), Reply("4", "r")),
        (said("4", reasoning="r"), Reply("4", "r")),
        (said("4", reasoning="r", reasoning_content=None), Reply("4", "r")),
        (said("4", reasoning={"text": "r"}), Reply("4")),
        (said("", reasoning_content="r"), Reply("", "r", reasoning_ended=False)),
        (said(None, reasoning_content="r"), Reply("", "r", reasoning_ended=False)),
        (said(None, "length", reasoning_content="r"), Reply("", "r", finished=False, reasoning_ended=False)),
        (said(None, "length"), Reply("", finished=False)),
        (said("<think>r</think>4"), Reply("4", "r", opening="<think>")),
        (said("r</think>4"), Reply("4", "r", opening="")),  # the prompt may have opened it
        (said("<think>r", "length"), Reply("", "r", finished=False, reasoning_ended=False, opening="<think>")),
        (said("4", "length"), Reply("4", finished=False)),
        (said("\ud800"), Reply("?")),  # no tokenizer takes half a character
        (said(None, "tool_calls", tool_calls=[{"id": None, "function": {"name": "f", "arguments": "{"}}]),
         Reply("", calls=(Call("f", "{"),))),
    ],
)  # fmt: skip
def test_replies_of_the_chat_api(reply, expected):
    assert Scripted(reply).ask() == [expected]


TEXT = {"type": "message", "content": [{"type": "output_text", "text": "4"}]}
SUMMARY = {"type": "summary_text", "text": "somebody's summary"}
FULL = {"incomplete_details": {"reason": "max_output_tokens"}}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (responded(TEXT, TEXT), Reply("44")),
        (responded({"type": "reasoning", "summary": [SUMMARY]}, TEXT), Reply("4")),
        (responded({"type": "reasoning", "summary": [SUMMARY], "content": None}, TEXT), Reply("4")),
        (responded({"type": "reasoning", "content": [SUMMARY, {"type": "reasoning_text", "text": "r"}]}, TEXT),
         Reply("4", "r")),
        (responded({"type": "reasoning", "summary": [SUMMARY]}, status="incomplete", **FULL),
         Reply("", finished=False)),
        (responded(TEXT, status="incomplete", **FULL), Reply("4", finished=False)),
        (responded({"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}),
         Reply("", calls=(Call("f", "{}", "c"),))),
        (responded({"type": "web_search_call"}, TEXT, usage={"input_tokens": 3}), None),
    ],
)  # fmt: skip
def test_replies_of_the_responses_api(reply, expected):
    [found] = Scripted(reply).ask(api="responses")
    assert found == expected if expected else (found.text, found.usage.prompt_tokens) == ("4", 3)


MALFORMED = {
    "chat": [
        said(None), said(5), said([]), answer(200, "{}"), answer(200, '{"choices": 5}'),
        answer(200, '{"choices": [null]}'), said(None, tool_calls=[{"function": None}]),
        said("4", tool_calls=7),
        answer(200, '{"choices": [{"message": {"content": "4"}}], "usage": {"prompt_tokens": Infinity}}'),
        answer(200, '{"choices": [{"message": {"content": "4"}}], "usage": {"completion_tokens_details": [1]}}'),
    ],
    "responses": [
        responded(), responded(5), responded({"type": "reasoning", "summary": [SUMMARY]}), answer(200, "{}"),
        responded(TEXT, status="in_progress"), responded(TEXT, status="incomplete"), responded(TEXT, status=None),
        responded(TEXT, status="failed", error={"code": "server_error", "message": "x"}),
        responded({"type": "message", "content": [{"type": "output_text"}]}),
        responded({"type": "function_call", "name": None, "arguments": "{}"}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("api", MALFORMED)
def test_answers_without_a_reply(api):
    for number, reply in enumerate(MALFORMED[api]):
        [error] = Scripted(reply).ask(api=api)
        assert isinstance(error, ReplyError) and error.kind == "malformed", (number, error)
        [reply] = Scripted(reply, said() if api == "chat" else responded(TEXT)).ask(api=api)
        assert reply == Reply("4")


DECLINED = {
    "chat": [said(None, refusal="I would rather not"), said("Well", "content_filter"), said(None, "content_filter")],
    "responses": [
        responded({"type": "message", "content": [{"type": "refusal", "refusal": "I would rather not"}]}),
        responded(TEXT, status="incomplete", incomplete_details={"reason": "content_filter"}),
    ],
}


@pytest.mark.parametrize("api", DECLINED)
def test_an_answer_that_is_declined_is_not_asked_for_again(api):
    for reply in DECLINED[api]:
        server = Scripted(reply)
        [error] = server.ask(api=api)
        assert error.kind == "refused" and len(server.requests) == 1
        assert "would rather not" in str(error) or "without a word" in str(error)


def test_what_is_refused_is_about_all_requests_until_one_was_answered(monkeypatch):
    monkeypatch.setattr(remote, "FAILURES_IN_A_ROW", 5)
    wanted = [request(seed=seed) for seed in range(9)]
    found = Scripted(refused(400, "no tools here", "")).ask(*wanted, max_concurrency=1)
    assert [type(result) for result in found[:5]] == [ReplyError] * 4 + [ApiError]
    found = Scripted(said(), refused(400, "too long", "")).ask(*wanted, max_concurrency=1)
    assert [type(result) for result in found] == [Reply] + [ReplyError] * 8
    for status in (403, 404):
        assert isinstance(Scripted(refused(status, "not you", "")).ask()[0], ApiError)
        found = Scripted(said(), refused(status, "not this", "")).ask(*wanted, max_concurrency=1)
        assert [getattr(result, "kind", "reply") for result in found] == ["reply"] + ["refused"] * 8
    assert isinstance(
        Scripted(said(), refused(401, "not any more", "")).ask(*wanted[:2], max_concurrency=1)[1], ApiError
    )


@pytest.mark.parametrize("status", [301, 307, 405])
def test_an_address_that_is_none_is_told(status):
    [error] = Scripted(answer(status, "moved")).ask(max_retries=5)
    assert isinstance(error, ApiError) and "check base_url" in str(error)


def test_a_field_is_taken_away_by_null():
    server = Scripted(said())
    server.ask(extra_body={"temperature": None, "seed": None, "reasoning_effort": "low"})
    assert {"temperature", "seed"}.isdisjoint(server.bodies()[0]) and server.bodies()[0]["reasoning_effort"] == "low"

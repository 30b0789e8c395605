"""The server and the faulty proxy that other tests rely on: that they do what they say, on the wire."""

import asyncio
import contextlib
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx
import pytest
from conftest import chatterbox
from helpers.faults import ACCEPTABLE, BIG, faulty
from helpers.server import fingerprint, held, notes, serve

CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
TOOL = {"type": "function", "function": {"name": "add", "description": "d" * 100, "parameters": {}}}
TEMPLATE = (
    "{% for tool in tools or [] %}{{ tool.function.name }}{% endfor %}{{ note }}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|im_end|>{% endfor %}<|assistant|>"
)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("server") / "log.jsonl"


@pytest.fixture(scope="module")
def servers(tiny_folder, log, tmp_path_factory):
    """Two, started side by side: over random weights with 256 columns, and over a model that thinks one letter, says b,
    and calls a tool."""
    follow = {"<|assistant|>": "<think>", "<think>": "a", "a": "</think>", "</think>": "b", "b": "<answer>"}
    folder = chatterbox(tmp_path_factory.mktemp("talker"), {last: {token: 1.0} for last, token in follow.items()})
    vocabulary = folder / "tokenizer.json"
    vocabulary.write_text(vocabulary.read_text().replace('"<answer>"', json.dumps(CALL)))  # one token is the whole call
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    both = [
        serve(tiny_folder, "--name", "tiny", "--log", log, "--api-key", "secret"),
        serve(folder, "--name", "talker", "--reasoning-parser"),
    ]
    with contextlib.ExitStack() as stack, ThreadPoolExecutor() as pool:
        yield list(pool.map(stack.enter_context, both))


@pytest.fixture(scope="module")
def url(servers):
    return servers[0]


@pytest.fixture(scope="module")
def talker(servers):
    return servers[1]


def chat(seed=0, **fields):
    question = {"messages": [{"role": "user", "content": f"{seed}+1=?"}]}
    return {"model": "tiny", "seed": seed, "max_tokens": 12, **question, **fields}


def ask(url, body, key="secret", path="/chat/completions"):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(url + path, content=body, headers={"authorization": f"Bearer {key}"}, timeout=60)


def ask_together(url, bodies):
    async def all_of_them():
        async with httpx.AsyncClient(headers={"authorization": "Bearer secret"}, timeout=60) as client:
            return await asyncio.gather(*(client.post(f"{url}/chat/completions", json=body) for body in bodies))

    return asyncio.run(all_of_them())


def said(reply):
    return reply.json()["choices"][0]["message"]["content"]


def within(seconds, condition):
    """Whether it comes true in time."""
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return found


def test_the_seed_decides_whoever_is_answered_at_the_same_time(url):
    bodies = [chat(seed) for seed in range(16)] + [chat(3), chat(5, temperature=0), chat(5, temperature=0.5)]
    together = [said(reply) for reply in ask_together(url, bodies)]
    assert together == [said(ask(url, body)) for body in bodies]
    assert len(set(together)) > 12
    assert together[3] == together[16]
    assert said(ask(url, chat(3, max_tokens=4))) == together[3][:4] != said(ask(url, chat(-3, max_tokens=4)))
    unseeded = {said(ask(url, chat(None))) for _ in range(3)}
    assert len(unseeded) > 1


def test_a_reply_counts_its_tokens_and_says_why_it_ended(url):
    replies = [reply.json() for reply in ask_together(url, [chat(seed) for seed in range(24)])]
    for reply in replies:
        usage, choice = reply["usage"], reply["choices"][0]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        assert choice["finish_reason"] == "stop" or usage["completion_tokens"] == 12
    assert {reply["choices"][0]["finish_reason"] for reply in replies} == {"stop", "length"}
    assert replies[0]["usage"]["prompt_tokens"] == len("u0+1=?ea")  # a token for each character and marker


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, None),
        (b"[" * 100_000, 400, None),
        (b"[]", 400, None),
        ({"model": "tiny"}, 400, "missing_required_parameter"),
        (chat(messages=[]), 400, "missing_required_parameter"),
        (chat(messages=["hello"]), 400, None),
        (chat(n=2), 400, "unsupported_value"),
        (chat(stream=True), 400, "unsupported_value"),
        (chat(max_tokens=0), 400, "invalid_value"),
        (chat(temperature=3), 400, "invalid_value"),
        (chat(chat_template_kwargs="x"), 400, None),
        (chat(max_tokens=250), 400, "context_length_exceeded"),
        (chat(messages=[{"role": "user", "content": "1" * 300}], max_tokens=None), 400, "context_length_exceeded"),
        (chat(model="other"), 404, "model_not_found"),
    ],
)
def test_errors_are_those_of_openai(url, body, status, code):
    reply = ask(url, body)
    assert reply.status_code == status
    error = reply.json()["error"]
    assert error["message"] and error["type"] == "invalid_request_error" and error["code"] == code


def test_a_key_is_asked_for_and_models_are_listed(url):
    assert ask(url, chat(), key="wrong").status_code == 401
    assert httpx.get(f"{url}/models").json()["error"]["code"] == "invalid_api_key"
    listed = httpx.get(f"{url}/models", headers={"authorization": "Bearer secret"}).json()
    assert [model["id"] for model in listed["data"]] == ["tiny"]
    assert httpx.get(url.replace("/v1", "/health")).status_code == 200


def test_reasoning_and_tool_calls_are_taken_out_of_the_text(talker):
    [choice] = ask(talker, chat(model="talker")).json()["choices"]
    assert choice["finish_reason"] == "tool_calls"
    [call] = choice["message"].pop("tool_calls")
    assert choice["message"] == {"role": "assistant", "content": "b", "reasoning_content": "a"}
    assert call["id"] and call["function"] == {"name": "add", "arguments": '{"a": 1}'}
    [choice] = ask(talker, chat(model="talker", max_tokens=2)).json()["choices"]
    assert choice["message"] == {"role": "assistant", "content": "", "reasoning_content": "a"}
    assert choice["finish_reason"] == "length"


def test_responses_are_the_same_in_another_form(talker):
    wanted = {"model": "talker", "input": "1+1=?", "instructions": "add"}
    reply = ask(talker, {**wanted, "max_output_tokens": 20}, path="/responses").json()
    assert [item["type"] for item in reply["output"]] == ["reasoning", "message", "function_call"]
    assert reply["output"][1]["content"][0]["text"] == "b"
    assert reply["output"][2]["arguments"] == '{"a": 1}' and reply["status"] == "completed"
    again = [{"role": "user", "content": "1"}, reply["output"][2]]
    again.append({"type": "function_call_output", "call_id": reply["output"][2]["call_id"], "output": "2"})
    reply = ask(talker, {**wanted, "input": again, "max_output_tokens": 1}, path="/responses").json()
    assert reply["incomplete_details"] == {"reason": "max_output_tokens"}
    assert reply["usage"]["output_tokens"] == 1


def test_the_template_sees_tools_and_its_own_settings(talker):
    def tokens(**fields):
        return ask(talker, chat(model="talker", **fields)).json()["usage"]["prompt_tokens"]

    plain = tokens()
    assert tokens(tools=[TOOL]) == plain + len("add")
    assert tokens(chat_template_kwargs={"note": "hello"}) == plain + len("hello")


def test_every_answer_is_logged_and_can_be_held_back(url, log):
    body = json.dumps(chat(seed=77)).encode()

    def statuses():
        return [line["status"] for line in notes(log) if line["hash"] == fingerprint(body)]

    ask(url, body)
    assert within(5, lambda: statuses() == [200])
    assert next(line for line in notes(log) if line["hash"] == fingerprint(body))["seed"] == 77
    with held(url):
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/chat/completions", content=body, headers={"authorization": "Bearer secret"}, timeout=0.5)
        assert within(5, lambda: statuses() == [200, 499])  # it saw its client leave
    assert ask(url, body).status_code == 200


# the proxy


def raw(url, body, seconds=20.0):
    """What comes over the wire for one request: bytes, how it ended (fin, rst, or open at the end), and how long."""
    place, data, started = urlsplit(url), b"", time.monotonic()
    with socket.create_connection((place.hostname, place.port)) as wire:
        head = f"POST {place.path}/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer secret\r\n"
        wire.sendall(f"{head}connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        while (left := started + seconds - time.monotonic()) > 0:
            wire.settimeout(left)
            try:
                piece = wire.recv(2**20)
            except ConnectionResetError:
                return data, "rst", time.monotonic() - started
            except TimeoutError:
                break
            if not piece:
                return data, "fin", time.monotonic() - started
            data += piece
        return data, "open", time.monotonic() - started


@pytest.fixture
def spoilt(url):
    """`spoilt(fault)` sends as many requests as asked for: (status, headers, body, end, seconds) of each."""

    def spoil(fault, requests=1, seconds=20.0, options=()):
        found = []
        with faulty(url, "--only", fault, *options) as proxy:
            for seed in range(requests):
                data, end, took = raw(proxy, json.dumps(chat(seed)).encode(), seconds)
                head, _, body = data.partition(b"\r\n\r\n")
                start, *lines = head.decode().split("\r\n")
                headers = dict(line.split(": ", 1) for line in lines)
                found.append((int(start.split()[1]) if start else 0, headers, body, end, took))
        return found

    return spoil


def whole(found):
    """The bodies of answers that are as long as they say."""
    for _, headers, body, end, _ in found:
        assert end == "fin" and len(body) == int(headers["content-length"])
    return [body for _, _, body, _, _ in found]


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("rate_limit_bare", 429, "rate_limit_exceeded"),
        ("error_200", 200, "server_error"),
        ("quota", 429, "insufficient_quota"),
        ("unauthorized", 401, "invalid_api_key"),
        ("forbidden", 403, "unsupported_country_region_territory"),
        ("not_found", 404, "model_not_found"),
        ("context_length", 400, "context_length_exceeded"),
    ],
)
def test_an_error_in_openais_form(spoilt, fault, status, code):
    found = spoilt(fault)
    assert found[0][0] == status and "retry-after" not in found[0][1]
    assert json.loads(whole(found)[0])["error"]["code"] == code


def test_waits_that_a_rate_limit_asks_for(spoilt):
    found = spoilt("rate_limit", requests=40)
    whole(found)
    assert {status for status, *_ in found} == {429}
    waits = {headers["retry-after"] for _, headers, *_ in found}
    assert {"0.2", "soon", "3600"} < waits
    assert all(parsedate_to_datetime(wait) for wait in waits - {"0.2", "soon", "3600"})


def test_answers_of_servers_before_the_server(spoilt):
    found = spoilt("server_error", requests=30)
    assert {status for status, *_ in found} == {500, 502, 503, 529} and whole(found)
    [(status, headers, body, _, _)] = spoilt("html")
    assert status == 200 and headers["content-type"].startswith("text/html") and body.startswith(b"<!DOCTYPE")


def test_bodies_that_are_no_right_answer(spoilt):
    assert {json.dumps(json.loads(body)) for body in whole(spoilt("not_object", 12))} == {"[]", '"text"', "null"}
    assert json.loads(whole(spoilt("empty_choices"))[0])["choices"] == []
    assert json.loads(whole(spoilt("null_content"))[0])["choices"][0]["message"]["content"] is None
    with pytest.raises(UnicodeDecodeError):
        whole(spoilt("bad_utf8"))[0].decode()
    deep, nan = sorted(set(whole(spoilt("nan_json", 8))), key=len, reverse=True)
    assert b"NaN" in nan and json.loads(nan)
    with pytest.raises(RecursionError):
        json.loads(deep)
    assert len(json.loads(whole(spoilt("big"))[0])["choices"][0]["message"]["content"]) == BIG


def test_odd_answers_that_are_right(spoilt, url):
    right = said(ask(url, chat()))
    for fault in sorted(ACCEPTABLE):
        found = spoilt(fault)
        assert json.loads(whole(found)[0])["choices"][0]["message"]["content"] == right
        assert ("content-type" in found[0][1]) == (fault != "content_type_missing")
        assert (b'"usage"' in found[0][2]) == (fault != "no_usage")
        assert found[0][4] > 1.5 or fault != "slow"


def test_answers_that_break_off(spoilt):
    cuts = set()
    for _, headers, body, end, _ in spoilt("truncated", requests=8):
        promised = int(headers["content-length"])
        cuts.add(len(body) < promised)
        assert end == "fin" and len(body) != promised
        with pytest.raises(ValueError):
            json.loads(body[:promised])
    assert cuts == {True, False}
    assert {(status, end) for status, _, _, end, _ in spoilt("reset", requests=8)} == {(0, "rst"), (200, "rst")}
    assert [(body, end) for _, _, body, end, _ in spoilt("close")] == [(b"", "fin")]
    [(_, headers, body, end, _)] = spoilt("chunk_garbage")
    assert headers["transfer-encoding"] == "chunked" and b"\r\nzz not a size\r\n" in body and end == "fin"


def test_answers_that_do_not_come(spoilt):
    [(_, _, body, end, took)] = spoilt("hang", options=("--hang", 0.4))
    assert (body, end) == (b"", "fin") and took > 0.4
    [(status, _, body, end, _)] = spoilt("drip", seconds=1.5)
    assert (status, end) == (200, "open") and 1 <= len(body) <= 7  # one in 0.2 s


def test_faults_are_drawn_by_the_seed_and_end_after_a_while(url, tmp_path):
    bodies = [json.dumps(chat(seed, max_tokens=1)).encode() for seed in range(6)] * 6

    def drawn(seed):
        log = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        options = ["--only", "html", "close", "no_usage", "--rate", 0.7, "--most", 2, "--seed", seed, "--log", log]
        with faulty(url, *options) as proxy:
            for body in bodies:
                raw(proxy, body)
            assert within(5, lambda: len(notes(log)) == len(bodies))
        return notes(log)

    first = drawn(seed=0)
    assert first == drawn(seed=0) != drawn(seed=1)
    assert [line["hash"] for line in first] == [fingerprint(body) for body in bodies]
    for body in bodies[:6]:
        own = [line["fault"] for line in first if line["hash"] == fingerprint(body)]
        assert sum(fault in ("html", "close") for fault in own) <= 2
    assert {line["fault"] for line in first} == {"html", "close", "no_usage", None}


def test_without_faults_the_proxy_is_not_there(url, log):
    with faulty(url, "--rate", 0) as proxy:
        bodies = [chat(seed) for seed in range(32)]
        through = ask_together(proxy, bodies)
        assert [said(reply) for reply in through] == [said(reply) for reply in ask_together(url, bodies)]
        refused = ask(proxy, b"{")
        assert refused.status_code == 400 and refused.json() == ask(url, b"{").json()
        body = json.dumps(chat(seed=99)).encode()
        with held(url):  # whoever leaves the proxy leaves the server
            raw(proxy, body, seconds=0.5)
            assert within(5, lambda: [n["status"] for n in notes(log) if n["hash"] == fingerprint(body)] == [499])

import asyncio
import json
import os
import resource

import pytest
from helpers.children import in_child

from lib.core.errors import StorageError
from lib.generators.protocol import Call, Reply, ReplyError, Request, Usage
from lib.generators.reply_cache import CachedGenerator, ReplyCache, key_of


def make_of(value, calls=None, seconds=0.0):
    """A `make` that notes its calls."""

    async def make():
        if calls is not None:
            calls.append(value)
        await asyncio.sleep(seconds)
        if isinstance(value, BaseException):
            raise value
        return value

    return make


def once(replies, key, value, calls=None):
    return asyncio.run(replies.once(key, make_of(value, calls)))


def test_a_key_is_what_is_asked():
    assert key_of({"a": 1, "b": [2]}, "x") == key_of({"b": [2], "a": 1}, "x")
    different = [(), (1,), ("1",), (1.0,), ([1],), (1, 2), ([1, 2],), ("ab",), ("a", "b"), (None,), ("\ud800",), ({},)]
    assert len({key_of(*parts) for parts in different}) == len(different)
    assert len(key_of("x")) == 32


def test_answers_are_kept(tmp_path):
    path, calls = tmp_path / "replies.jsonl", []
    answers = {f"key {k}": {"text": "naïve \ud800\n" * k, "k": [k, None]} for k in range(20)}
    first = ReplyCache(path)
    for key, value in answers.items():
        assert once(first, key, value, calls) == value
    first.close()
    again = ReplyCache(path)
    assert len(again) == 20 and "key 3" in again and "key 99" not in again
    for key in sorted(answers):
        assert once(again, key, {"text": "another"}, calls) == answers[key]
    assert once(again, "new", {"k": 1}) == {"k": 1}
    assert len(calls) == 20
    again.close()
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == [*answers, "new"]


def test_a_torn_tail_is_asked_for_again(tmp_path):
    path, calls = tmp_path / "replies.jsonl", []
    first = ReplyCache(path)
    once(first, "a", {"n": 1})
    once(first, "b", {"n": 2})
    first.close()
    path.write_bytes(path.read_bytes()[:-4])
    again = ReplyCache(path)
    assert len(again) == 1
    assert once(again, "a", {"n": 3}, calls) == {"n": 1} and once(again, "b", {"n": 4}, calls) == {"n": 4}
    assert calls == [{"n": 4}] and (tmp_path / "replies.torn").exists()
    again.close()
    assert len(ReplyCache(path)) == 2


@pytest.mark.parametrize("line", [b"what\n", b"[]\n", b'{"value": {}}\n', b"\xff\n", b"7\n"])
def test_a_file_that_is_something_else_is_not_written_to(tmp_path, line):
    path = tmp_path / "replies.jsonl"
    path.write_bytes(line)
    with pytest.raises(StorageError, match="fix or remove") as caught:
        ReplyCache(path)
    assert caught.value.exit_code == 74 and path.read_bytes() == line
    with pytest.raises(StorageError):
        ReplyCache(tmp_path / "no" / "folder")


def test_who_asks_meanwhile_waits_for_the_same_answer(tmp_path):
    replies, calls = ReplyCache(tmp_path / "replies.jsonl"), []

    async def main():
        wanted = [replies.once(key, make_of({"key": key}, calls, seconds=0.01)) for key in "aab" * 10]
        return await asyncio.gather(*wanted)

    for _ in range(2):
        assert asyncio.run(main()) == [{"key": key} for key in "aab" * 10]
        assert sorted(value["key"] for value in calls) == ["a", "b"]


def test_a_failure_reaches_all_who_ask_and_is_not_kept(tmp_path):
    replies, calls = ReplyCache(tmp_path / "replies.jsonl"), []
    error = ReplyError("timeout", "x")

    async def main():
        wanted = [replies.once("a", make_of(error, calls, seconds=0.01)) for _ in range(5)]
        return await asyncio.gather(*wanted, return_exceptions=True)

    assert asyncio.run(main()) == [error] * 5 and calls == [error]
    assert "a" not in replies and once(replies, "a", {"n": 1}, calls) == {"n": 1} and len(calls) == 2


def test_an_asker_who_leaves_takes_nothing_from_the_others(tmp_path):
    replies, calls = ReplyCache(tmp_path / "replies.jsonl"), []

    async def main():
        tasks = [asyncio.ensure_future(replies.once("a", make_of({"n": 1}, calls, 0.05))) for _ in range(3)]
        await asyncio.sleep(0.01)
        tasks[0].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    left, *others = asyncio.run(main())
    assert isinstance(left, asyncio.CancelledError) and others == [{"n": 1}] * 2 and len(calls) == 1


@pytest.mark.parametrize("ending", [{"n": 1}, ReplyError("timeout", "x")])
def test_nothing_is_written_after_the_end(tmp_path, ending, caplog):
    """Another file may have the descriptor by then."""
    replies = ReplyCache(tmp_path / "replies.jsonl")

    async def main():
        asker = asyncio.ensure_future(replies.once("a", make_of(ending, seconds=0.02)))
        early = asyncio.ensure_future(replies.once("b", make_of(ending, seconds=0.0)))
        await asyncio.sleep(0)
        early.cancel()
        asker.cancel()
        await asyncio.sleep(0.01)
        replies.close()
        with open(tmp_path / "other", "wb") as other:
            await asyncio.sleep(0.05)
            other.flush()
            assert os.fstat(other.fileno()).st_size == 0

    asyncio.run(main())
    assert b'"a"' not in (tmp_path / "replies.jsonl").read_bytes()
    assert caplog.text == ""  # no exception that nobody took


def test_a_full_disk_ends_the_run_and_keeps_what_was_there(tmp_path):
    path = tmp_path / "replies.jsonl"

    def child():
        replies = ReplyCache(path)
        once(replies, "a", {"text": "x" * 100})
        before = path.read_bytes()
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
        with pytest.raises(StorageError, match=r"replies\.jsonl: cannot be saved.*ulimit -f.*, then --resume"):
            once(replies, "b", {"text": "x" * 1000})
        assert path.read_bytes() == before and "b" not in replies
        assert once(replies, "a", {}) == {"text": "x" * 100}
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert once(replies, "b", {"n": 1}) == {"n": 1}

    assert in_child(child) == 0


class Counting:
    """A generator that notes what it is asked."""

    def __init__(self, **name):
        self.name, self.asked = name, []

    async def reply(self, request):
        self.asked.append(request)
        usage = Usage(3, 4, 1)
        return Reply(f"reply {len(self.asked)}", "r", (Call("f", "{}", "c"),), False, False, usage)


def request(**fields):
    plain = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 5, "temperature": 1.0, "seed": 1}
    return Request(**{**plain, **fields})


def test_the_same_request_is_asked_once(tmp_path):
    path, model = tmp_path / "replies.jsonl", Counting(model="m")

    def ask(generator, *requests):
        async def main():
            replies = ReplyCache(path)
            cached = CachedGenerator(generator, replies)
            assert cached.name == generator.name
            try:
                return await asyncio.gather(*(cached.reply(request) for request in requests))
            finally:
                replies.close()

        return asyncio.run(main())

    first = ask(model, request(), request())
    expected = Reply("reply 1", "r", (Call("f", "{}", "c"),), False, False, Usage(3, 4, 1))
    assert first == ask(model, request(), request()) == [expected] * 2 and len(model.asked) == 1
    others = [
        request(seed=2), request(temperature=0.5), request(max_tokens=6), request(top_p=0.9), request(tools=[{}]),
        request(messages=[{"role": "user", "content": "y"}]), request(messages=[]),
    ]  # fmt: skip
    assert len({reply.text for reply in ask(model, *others)}) == 7 and len(model.asked) == 8
    another = Counting(model="n")
    assert ask(another, request()) == [expected] and len(another.asked) == 1

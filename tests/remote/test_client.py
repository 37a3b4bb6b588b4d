"""The HTTP client against a real server on the loopback that fails in every way: bounded retries, right counts, results in their places."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from email.utils import formatdate

import pytest

pytest.importorskip("httpx2")

from local_server import free_url, serving

from steadyrank.errors import ConfigError, MissingDependencyError, RunError, UserError
from steadyrank.remote import (
    BadRequestError,
    Call,
    Client,
    ClientSettings,
    RateLimitedError,
    RefusedError,
    ServerError,
    TimedOutError,
    UnreachableError,
    UnreadableReplyError,
    WrongReplyError,
    shown,
)
from steadyrank.remote.retrying import back_off, retry_after

QUICK = {"backoff": 0.01, "retries": 2, "timeout": 1.0, "deadline": 2.0}


def client(**settings) -> Client:
    return Client(ClientSettings(**(QUICK | settings)))


def calls(url: str, count: int) -> list[Call]:
    return [Call(f"call {place}", url, {"n": place}) for place in range(count)]


def test_results_stand_in_the_order_of_the_calls_whatever_order_they_come_in():
    def answer(body, number):
        time.sleep(0.005 * (12 - body["n"]))  # the first asked answers last
        return 200, {}, {"n": body["n"]}

    with serving(answer) as server:
        one = client(concurrency=4)
        assert one.post_all(calls(server.url, 12)) == [{"n": place} for place in range(12)]
        assert server.most_under_way <= 4
        assert (one.counts.calls, one.counts.attempts, one.counts.retries, one.counts.failures) == (12, 12, 0, 0)
        assert one.counts.sent_bytes == sum(len(f'{{"n": {place}}}') for place in range(12)) and one.counts.received_bytes > 0
        assert one.post_all([]) == []


@pytest.mark.parametrize(
    "status, headers, content",
    [
        (500, {}, b"broken"),
        (503, {"Retry-After": "0"}, b""),
        (429, {}, b""),
        (429, {"Retry-After": "0"}, b""),
        (408, {}, b""),
        (200, {}, b"<html>garbage"),
        (200, {}, b'{"results": [{"ind'),
        (200, {"Content-Length": "500"}, b'{"results": []}'),  # fewer bytes than told
        (200, {"Content-Encoding": "gzip"}, b"no gzip"),
        (200, {}, b"[" * 20_000),
    ],
)
def test_a_service_that_recovers_is_asked_again_and_no_more(status, headers, content):
    with serving(lambda body, number: (status, headers, content) if number < 2 else (200, {}, {"ok": 1})) as server:
        one = client()
        assert one.post(calls(server.url, 1)[0]) == {"ok": 1}
        assert len(server.seen) == 3
        assert (one.counts.calls, one.counts.attempts, one.counts.retries, one.counts.failures) == (1, 3, 2, 0)


@pytest.mark.parametrize(
    "status, content, kind, attempts, code",
    [
        (500, b"oh", ServerError, 3, 1),
        (429, b"", RateLimitedError, 3, 1),
        (200, b"not json", UnreadableReplyError, 3, 1),
        (501, b"", ServerError, 1, 1),
        (401, b"", RefusedError, 1, 2),
        (403, b"", RefusedError, 1, 2),
        (400, b"", BadRequestError, 1, 2),
        (404, b"", BadRequestError, 1, 2),
        (422, b"", BadRequestError, 1, 2),
        (302, b"", BadRequestError, 1, 2),
    ],
)
def test_retries_are_bounded_and_each_kind_has_its_error(status, content, kind, attempts, code):
    with serving(lambda body, number: (status, {"Location": "http://elsewhere/x?key=1"}, content)) as server:
        one = client()
        with pytest.raises(kind, match="call 0") as caught:
            one.post(calls(server.url, 1)[0])
        assert type(caught.value) is kind and isinstance(caught.value, RunError)
        assert caught.value.exit_code == code and (code == 1 or isinstance(caught.value, UserError))
        assert len(server.seen) == attempts == one.counts.attempts == caught.value.attempts
        assert one.counts.failures == 1 and one.counts.failure_kinds == {kind.kind: 1}
        assert "key=1" not in str(caught.value)


def test_the_wait_that_a_service_asks_for_is_kept_by_all_calls():
    with serving(lambda body, number: (429, {"Retry-After": "0.3"}, b"") if number == 0 else (200, {}, {"n": body["n"]})) as server:
        one = client(concurrency=1)
        assert one.post_all(calls(server.url, 2)) == [{"n": 0}, {"n": 1}]
        assert server.times[1] - server.times[0] >= 0.29


def test_a_wait_longer_than_allowed_is_told_and_not_waited_for():
    with serving(lambda body, number: (429, {"Retry-After": "3600"}, b"")) as server:
        begun = time.monotonic()
        with pytest.raises(RateLimitedError, match="wait 3600 s, longer than longest_wait"):
            client().post(calls(server.url, 1)[0])
        assert time.monotonic() - begun < 1 and len(server.seen) == 1


def test_retry_after_in_seconds_and_as_a_date():
    now = 1_700_000_000.0
    assert retry_after("7") == 7.0 and retry_after(" 0.5 ") == 0.5 and retry_after("0") == 0.0
    assert retry_after(formatdate(now + 30, usegmt=True), now=now) == 30.0
    assert retry_after(formatdate(now - 30, usegmt=True), now=now) == 0.0  # over
    for nothing in (None, "", "soon", "-3", "nan", "inf", "1e999"):
        assert retry_after(nothing) is None


def test_back_off_doubles_with_repeatable_jitter():
    waits = [back_off("a", attempt, first=1.0, longest=60.0, seed=0) for attempt in range(8)]
    assert all(2**attempt / 2 <= wait <= 2**attempt for attempt, wait in zip(range(6), waits, strict=False))
    assert max(waits) <= 60.0
    assert waits == [back_off("a", attempt, first=1.0, longest=60.0, seed=0) for attempt in range(8)]
    assert waits[0] != back_off("b", 0, first=1.0, longest=60.0, seed=0)  # not all at the same instant
    assert 5.0 <= back_off("a", 3, first=1.0, longest=60.0, seed=0, asked=5.0) <= 6.0


def test_a_slow_reply_ends_at_the_timeout_and_a_call_at_its_deadline():
    with serving(lambda body, number: time.sleep(0.6) or (200, {}, {})) as server:
        begun = time.monotonic()
        with pytest.raises(TimedOutError, match="within 0.1 s"):
            client(timeout=0.1, retries=1).post(calls(server.url, 1)[0])
        with pytest.raises(TimedOutError, match="deadline"):
            client(timeout=0.1, deadline=0.15, retries=9, backoff=0.1).post(calls(server.url, 1)[0])
        assert time.monotonic() - begun < 0.6


def test_a_reply_that_drips_ends_at_the_timeout_too():
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b" ")
            await asyncio.sleep(0.02)

    async def main():
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
            # in a thread of its own: this loop is busy serving
            return await asyncio.to_thread(client(timeout=0.2, retries=0).post, Call("slow", url, {}))

    with pytest.raises(TimedOutError, match="slow: .*0.2 s"):
        asyncio.run(main())


def test_a_limit_for_all_calls_together():
    with serving(lambda body, number: time.sleep(0.1) or (200, {}, {})) as server:
        results = client(total=0.25, concurrency=1, retries=0).post_all(calls(server.url, 6), keep_failures=True)
        done = [result == {} for result in results]
        assert done[0] and not done[-1] and all(isinstance(result, TimedOutError) for result in results if result != {})


def test_works_where_a_loop_is_running():
    with serving(lambda body, number: (200, {}, {"n": body["n"]})) as server:

        async def notebook():
            return client().post_all(calls(server.url, 3))

        assert asyncio.run(notebook()) == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_failures_are_kept_in_their_places_when_asked_for():
    with serving(lambda body, number: (400, {}, b"too long") if body["n"] == 1 else (200, {}, {"n": body["n"]})) as server:
        one = client()
        found = one.post_all(calls(server.url, 3), keep_failures=True)
        assert found[0] == {"n": 0} and found[2] == {"n": 2}
        assert isinstance(found[1], BadRequestError) and "call 1" in str(found[1]) and "too long" in str(found[1])
        assert one.counts.failures == 1 and one.counts.failure_kinds == {"bad request": 1}


def test_the_first_failure_ends_the_job_without_that():
    with serving(lambda body, number: (400, {}, b"")) as server:
        with pytest.raises(BadRequestError):
            client(concurrency=1).post_all(calls(server.url, 50))
        assert len(server.seen) == 1


def test_a_refused_key_and_a_service_that_is_down_end_the_job_always():
    with serving(lambda body, number: (401, {}, b"")) as server:
        with pytest.raises(RefusedError, match="STEADYRANK_API_KEY"):
            client(concurrency=1).post_all(calls(server.url, 50), keep_failures=True)
        assert len(server.seen) == 1
    one = client(retries=0, give_up_after=3, concurrency=1)
    with pytest.raises(UnreachableError, match="3 calls in a row failed") as caught:
        one.post_all(calls(free_url(), 50), keep_failures=True)
    assert "is the service running" in str(caught.value) and one.counts.calls == 3


def test_a_wrong_reply_is_a_failure_that_is_not_asked_again():
    def read(place, value):
        if place == 1:
            raise WrongReplyError("holds nothing")
        return value["n"] * 10

    with serving(lambda body, number: (200, {}, {"n": body["n"]})) as server:
        one = client()
        found = one.post_all(calls(server.url, 3), read=read, keep_failures=True)
        assert found[::2] == [0, 20] and isinstance(found[1], WrongReplyError) and str(found[1]) == "call 1: holds nothing"
        assert len(server.seen) == 3 and one.counts.failure_kinds == {"wrong reply": 1}


def test_the_key_is_sent_and_stands_nowhere_else(monkeypatch):
    monkeypatch.setenv("MY_KEY", " s3cret ")
    with serving(lambda body, number: (500 if number else 401, {}, f"bad key {server.seen[-1][1]['authorization']}".encode())) as server:
        one = client(api_key_env="MY_KEY", retries=0)
        for kind in (RefusedError, ServerError):
            with pytest.raises(kind) as caught:
                one.post(calls(server.url, 1)[0])
            assert "s3cret" not in f"{caught.value!r} {caught.value} {one.counts} {one.settings}"
        assert [headers["authorization"] for _, headers, _ in server.seen] == ["Bearer s3cret"] * 2
        assert "bad key Bearer ***" in str(caught.value)
    monkeypatch.delenv("STEADYRANK_API_KEY", raising=False)
    with serving(lambda body, number: (200, {}, {})) as server:
        client().post(calls(server.url, 1)[0])
        assert "authorization" not in server.seen[0][1]
    monkeypatch.setenv("MY_KEY", "s3\ncret")
    with pytest.raises(ConfigError, match="MY_KEY") as caught:
        client(api_key_env="MY_KEY")
    assert "cret" not in str(caught.value)
    with pytest.raises(ConfigError, match="NO_SUCH_KEY holds no key"):
        client(api_key_env="NO_SUCH_KEY")


def test_urls_that_cannot_be_called_or_hold_a_password():
    for url in ("localhost:8080/rerank", "ftp://host/x", "http://", "http://host:port/x", "http://[::1/x"):
        with pytest.raises(ConfigError, match="cannot be called"):
            client().post(Call("a", url, {}))
    with pytest.raises(ConfigError, match="name or password") as caught:
        client().post(Call("a", "https://me:hush@host/rerank?key=hush", {}))
    assert "hush" not in str(caught.value) and "https://host/rerank" in str(caught.value)
    assert shown("https://me:hush@host:8/a/b@c?k=hush#x") == "https://host:8/a/b@c"


@pytest.mark.parametrize(
    "setting", [{"timeout": 0}, {"deadline": -1}, {"total": 0}, {"concurrency": 0}, {"retries": -1}, {"give_up_after": 0}]
)
def test_settings_out_of_range_are_named(setting):
    with pytest.raises(ConfigError, match=next(iter(setting))):
        ClientSettings(**setting)


def test_importing_the_room_imports_no_http_library():
    code = "import sys, steadyrank.remote; assert not {'httpx2', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, free_url().removesuffix("/rerank"))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving(lambda body, number: (200, {}, {"n": body["n"]})) as server:
        assert client(retries=0).post(calls(server.url, 1)[0]) == {"n": 0}


def test_a_missing_library_is_told_with_its_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "steadyrank\[remote\]"'):
        Client()

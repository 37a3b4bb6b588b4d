"""The cache of replies under processes: no call made twice, no reply lost but those under way, no claim that outlives its owner."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("openai")

from chat_server import base, examples, judge_at, right, text_of, truth
from local_server import serving

from steadyrank.data.jsonl import save_examples
from steadyrank.errors import RunError
from steadyrank.judging.cache import RawReply, ReplyCache, key_of

REPLY = RawReply('{"grade": 2}', "stop", 10, 2, "m", 0.5)
KEY = key_of({"messages": ["a"]})
CHILD = """
import sys
from steadyrank import load_examples
from steadyrank.judging import load_judge
from steadyrank.judging.files import save_judgments
url, cache, lists, out = sys.argv[1:]
judge = load_judge(url, model="m", cache=cache, backoff=0.01, concurrency=4, structured="never")
save_judgments(out, judge.judge(load_examples(lists)), judge="m")
print(judge.ledger.called, judge.ledger.cached)
"""


def caches(tmp_path: Path, count: int = 2, **settings) -> list[ReplyCache]:
    return [ReplyCache(tmp_path / "c.sqlite", **settings) for _ in range(count)]


def test_a_claim_keeps_others_out_until_there_is_a_reply(tmp_path):
    one, two = caches(tmp_path)
    assert one.claim(KEY).mine and one.claim(KEY).mine
    other = two.claim(KEY)
    assert not other.mine and other.reply is None
    one.store(KEY, REPLY)
    assert two.claim(KEY).reply == REPLY and two.read([KEY, b"none"]) == {KEY: REPLY}


def test_claims_end_when_given_back_when_the_owner_closes_and_when_their_time_is_up(tmp_path):
    one, two = caches(tmp_path, claim_seconds=0.2)
    one.claim(KEY)
    one.release(KEY)
    assert two.claim(KEY).mine
    two.close()
    assert one.claim(KEY).mine
    three = ReplyCache(tmp_path / "c.sqlite")
    assert not three.claim(KEY).mine
    time.sleep(0.25)
    assert three.claim(KEY).mine


def test_asking_again_takes_the_place_of_the_reply_only_when_another_is_there(tmp_path):
    one, two = caches(tmp_path)
    one.store(KEY, REPLY)
    assert one.claim(KEY, again=True).mine
    one.release(KEY)
    assert two.claim(KEY).reply == REPLY
    one.claim(KEY, again=True)
    one.close()
    assert two.claim(KEY).reply == REPLY
    later = RawReply("3", "stop", None, None)
    two.store(KEY, later)
    assert two.read([KEY]) == {KEY: later}


def test_a_file_that_is_no_cache_is_one_sentence(tmp_path):
    (tmp_path / "c.sqlite").write_text("not a database, but long enough to be taken for one " * 40)
    with pytest.raises(RunError, match="give another file"):
        ReplyCache(tmp_path / "c.sqlite")


def start(server, tmp_path: Path, out: str) -> subprocess.Popen:
    arguments = [base(server), str(tmp_path / "replies.sqlite"), str(tmp_path / "lists.jsonl"), str(tmp_path / out)]
    return subprocess.Popen([sys.executable, "-c", CHILD, *arguments], stdout=subprocess.PIPE, text=True)


def slowly(body, number):
    time.sleep(0.02)
    return right(body)


def test_two_processes_share_the_cache_and_make_no_call_twice(tmp_path):
    lists = examples(lists=8, size=4)
    save_examples(tmp_path / "lists.jsonl", lists)
    with serving(slowly) as server:
        running = [start(server, tmp_path, out) for out in ("one.jsonl", "two.jsonl")]
        said = [[int(word) for word in process.communicate(timeout=120)[0].split()] for process in running]
        assert [process.returncode for process in running] == [0, 0]
        assert set(Counter(text_of(body) for _, _, body in server.seen).values()) == {1} and len(server.seen) == 32
    assert sum(called for called, _ in said) == 32 and all(called + cached == 32 for called, cached in said)
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    rows = [json.loads(line)["grades"] for line in (tmp_path / "one.jsonl").read_text().splitlines()]
    assert rows == [list(map(int, grades)) for grades in truth(lists)]


def test_kill_9_costs_at_most_the_calls_under_way_and_the_next_run_ends_in_the_same_file(tmp_path):
    lists = examples(lists=8, size=4)
    save_examples(tmp_path / "lists.jsonl", lists)
    with serving(slowly) as server:
        process = start(server, tmp_path, "killed.jsonl")
        end = time.monotonic() + 60
        while len(server.seen) < 12 and time.monotonic() < end:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        time.sleep(0.1)
        before = len(server.seen)
        assert 12 <= before < 32 and not (tmp_path / "killed.jsonl").exists()
        begun = time.monotonic()
        again = start(server, tmp_path, "killed.jsonl")
        called, cached = (int(word) for word in again.communicate(timeout=120)[0].split())
        assert again.returncode == 0 and called + cached == 32
        asked = Counter(text_of(body) for _, _, body in server.seen)
        assert len(asked) == 32 and sum(count - 1 for count in asked.values()) <= 4 and max(asked.values()) <= 2
        assert time.monotonic() - begun < 60  # the dead process's claims, good for five minutes, are not waited for
        assert judge_at(server, tmp_path, structured="never").judge(lists) and len(server.seen) == before + called
        whole = start(server, tmp_path, "whole.jsonl")
        assert whole.communicate(timeout=120)[0].split() == ["0", "32"]
    assert (tmp_path / "killed.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()

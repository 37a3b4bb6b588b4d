"""`steadyrank score URL` from the command line: right scores in the file, failures and calls told, one sentence and the right exit code."""

import json

import pytest
from typer.testing import CliRunner

pytest.importorskip("httpx2")

from local_server import serving

from steadyrank.cli.main import app
from steadyrank.data.jsonl import load_scores
from steadyrank.remote import RefusedError, WrongReplyError


def answer(body, number):
    found = [{"index": place, "relevance_score": len(text)} for place, text in enumerate(body["documents"])]
    return 200, {}, {"results": found[::-1] if body["query"] != "drops" else found[1:]}


@pytest.fixture
def lists(tmp_path):
    rows = [{"id": query, "query": query, "candidates": ["ccc", "a", "bb"]} for query in ("keeps", "drops", "also keeps")]
    (tmp_path / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(tmp_path / "lists.jsonl")


def test_lists_that_failed_are_told_and_not_in_the_file(lists, tmp_path):
    output = tmp_path / "scores.jsonl"
    with serving(answer) as server:
        words = ["score", server.url, lists, "-o", str(output), "--presentations", "2", "--option", "on_failure=skip", "--json"]
        told = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    assert told["lists"] == 4 and told["failed"] == 2 and told["truncated"] is None
    assert told["remote"]["calls"] == 6 and told["remote"]["failures"] == 2
    scored = load_scores(output)
    assert [item.example_id for item in scored] == ["keeps", "keeps", "also keeps", "also keeps"]
    assert {item.scores for item in scored} == {(3.0, 1.0, 2.0)}


def test_a_failure_ends_the_job_unless_told_otherwise(lists, tmp_path):
    with serving(answer) as server:
        found = CliRunner().invoke(app, ["score", server.url, lists, "-o", str(tmp_path / "scores.jsonl"), "--json"])
    assert isinstance(found.exception, WrongReplyError) and "'drops'" in str(found.exception) and found.exception.exit_code == 1
    with serving(lambda body, number: (401, {}, b"")) as server:
        found = CliRunner().invoke(app, ["score", server.url, lists, "-o", str(tmp_path / "scores.jsonl"), "--json"])
    assert isinstance(found.exception, RefusedError) and found.exception.exit_code == 2
    assert not (tmp_path / "scores.jsonl").exists()

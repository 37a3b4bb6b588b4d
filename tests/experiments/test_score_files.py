"""A killed scoring job goes on after its last whole chunk, and never mixes two jobs."""

import json
from dataclasses import replace

import pytest
import training_helpers as tiny

from steadyrank.data.jsonl import load_scores
from steadyrank.experiments import score_files
from steadyrank.experiments.score_files import score_into
from steadyrank.scoring import load_scorer

LISTS = tiny.lists(10)


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


class Counting:
    """A scorer that counts its lists and dies at the n-th call."""

    def __init__(self, dies_at=None):
        self.inner, self.seen, self.calls, self.dies_at = load_scorer("random"), 0, 0, dies_at
        self.fingerprint = self.inner.fingerprint

    def score_examples(self, examples, **options):
        self.calls += 1
        if self.calls == self.dies_at:
            raise Killed
        self.seen += len(examples)
        return self.inner.score_examples(examples, seed=options["seed"], presentations=options["presentations"])


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(score_files, "CHUNK", 4)


@pytest.mark.parametrize("presentations", [1, 2])
def test_a_killed_job_goes_on_to_the_same_file(tmp_path, presentations):
    score_into(tmp_path / "whole.jsonl", Counting(), LISTS, presentations=presentations)
    with pytest.raises(Killed):
        score_into(tmp_path / "out.jsonl", Counting(dies_at=3), LISTS, presentations=presentations)
    assert not (tmp_path / "out.jsonl").exists()
    part = tmp_path / "out.jsonl.part"
    part.write_text(part.read_text() + '{"schema": "steadyrank.sco')  # a line cut short
    scorer = Counting()
    _, resumed = score_into(tmp_path / "out.jsonl", scorer, LISTS, presentations=presentations)
    assert resumed == 8 * presentations and scorer.seen == 2
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not part.exists()


def test_another_job_begins_anew(tmp_path):
    with pytest.raises(Killed):
        score_into(tmp_path / "out.jsonl", Counting(dies_at=3), LISTS)
    scorer = Counting()
    _, resumed = score_into(tmp_path / "out.jsonl", scorer, LISTS, seed=1)
    assert resumed == 0 and scorer.seen == 10
    assert [json.loads(line)["example_id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [item.id for item in LISTS]
    assert len(load_scores(tmp_path / "out.jsonl")) == 10


def test_a_scorer_that_leaves_lists_out_goes_on_at_the_right_list(tmp_path):  # counting lines would score some lists twice
    calls, lists = [], [replace(item, query=f"query {place}") for place, item in enumerate(LISTS)]

    def scores(query, documents):
        calls.append(query)
        if len(calls) == 9:
            raise Killed
        return [1.0] if query in (lists[1].query, lists[5].query) else [float(len(document)) for document in documents]

    with pytest.raises(Killed):
        score_into(tmp_path / "out.jsonl", load_scorer(scores, on_failure="skip"), lists)
    scorer = load_scorer(scores, on_failure="skip")
    done, resumed = score_into(tmp_path / "out.jsonl", scorer, lists)
    assert [item.example_id for item in done] == [item.id for place, item in enumerate(lists) if place not in (1, 5)]
    assert resumed == 6 and calls[9:] == [item.query for item in lists[8:]]
    assert [failure.example_id for failure in scorer.failures] == [lists[1].id, lists[5].id]
    assert len(load_scores(tmp_path / "out.jsonl")) == 8

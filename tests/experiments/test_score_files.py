"""A killed scoring job goes on after its last whole chunk, and never mixes two jobs."""

import json

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

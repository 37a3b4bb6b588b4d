"""The audit of a rerank service on the loopback: scores are matched by index, failures counted, order effects of the service seen."""

import pytest

pytest.importorskip("httpx2")

from local_server import serving

from steadyrank import Candidate, RankingExample, load_scorer
from steadyrank.audit import run_audit

QUICK = {"backoff": 0.001, "retries": 0, "timeout": 2.0, "on_failure": "skip"}
FAST = {"presentations": 4, "resamples": 100, "probe_lists": 4, "retention": 0.5}


@pytest.fixture
def lists():
    return [
        RankingExample(f"query {n}", tuple(Candidate("a" * (1 + (7 * n + 3 * k) % 29)) for k in range(5)), id=f"q{n}") for n in range(12)
    ]


def reply(body, score):
    """A service's answer, best first as services answer: an index stands beside each score."""
    rows = [{"index": place, "relevance_score": score(place, text)} for place, text in enumerate(body["documents"])]
    return 200, {}, {"results": sorted(rows, key=lambda row: -row["relevance_score"])}


def test_a_service_that_reads_one_document_is_exactly_steady_and_its_failures_are_counted(lists):
    def answer(body, number):
        if body["query"] in ("query 3", "query 8"):
            status, headers, content = reply(body, lambda place, text: len(text) / 100)
            return status, headers, {"results": content["results"][1:] + content["results"][1:2]}  # one dropped, one given twice
        return reply(body, lambda place, text: len(text) / 100)

    with serving(answer) as server:
        audit = run_audit(load_scorer(server.url, **QUICK), lists, threshold=0.1, **FAST)
    assert audit.verdict["grade"] == "exactly steady"
    assert audit.counts["asked"] == 12 * 5 and audit.counts["failed"] == 2 * 5
    assert audit.counts["unscored"] == 2 and audit.data["lists"] == 10
    assert audit.counts["failures"] and audit.counts["failures"][0].startswith(("q3", "q8"))


def test_a_service_that_favours_what_comes_first_is_caught(lists):
    with serving(lambda body, number: reply(body, lambda place, text: 0.9 - place / 10)) as server:
        audit = run_audit(server.url, lists, **FAST)
    assert audit.verdict["grade"] == "unsteady"
    assert audit.causes["shares"]["slot"] == pytest.approx(1.0)
    assert audit.causes["slot_effects"] == pytest.approx([0.2, 0.1, 0, -0.1, -0.2])
    (point,) = audit.threshold["points"]
    # two random orders keep two or three of five that have nothing to do with each other
    assert point["jaccard"]["mean"] < 0.6

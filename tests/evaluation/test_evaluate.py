"""What counts and what is left out: missing, unjudged and empty queries, duplicates, ids, floats, self-retrieval, presentations."""

from math import log2

import numpy as np
import pytest

from steadyrank.errors import ConfigError, InputError, NonFiniteScoreError
from steadyrank.evaluation import DEFAULT_MEASURES, Evaluation, evaluate
from steadyrank.records import Candidate, Presentation, RankingExample, ScoredList


def example(name, grades, **more):
    return RankingExample(f"query {name}", [f"{name} {i}" for i in range(len(grades))], relevance=grades, id=name, **more)


def scored(name, scores, **more):
    return ScoredList(name, "s", tuple(scores), **more)


def test_missing_query_counts_zero_and_is_listed():
    """P54"""
    got = evaluate({"q1": {"a": 1.0}}, {"q1": {"a": 1}, "q2": {"b": 1}}, ["nDCG@6", "RR"])
    assert got.mean("nDCG@6") == got.mean("RR") == 0.5
    assert got.counts["missing"] == 1
    assert got.missing == ["q2"]


def test_ids_without_overlap_are_an_error():
    """P54"""
    with pytest.raises(InputError, match="no query of the run"):
        evaluate({"01": {"a": 1.0}}, {"1": {"a": 1}})
    with pytest.raises(InputError, match="no query of the run"):
        evaluate([], [example("a", [1, 0])])


def test_unjudged_queries_are_ignored_and_counted():
    got = evaluate({"q1": {"a": 1.0}, "zz": {"a": 1.0}}, {"q1": {"a": 1}}, "RR")
    assert (got.mean("RR"), got.counts["unjudged"], list(got.per_query)) == (1.0, 1, ["q1"])


def test_ideal_holds_what_was_not_retrieved():
    """P55, P56: two relevant, one retrieved at rank 1."""
    got = evaluate({"q": {"a": 1.0}}, {"q": {"a": 1, "b": 1}}, ["nDCG@6", "nDCG(gain=exp)@6", "AP", "R@6"])
    for name, value in (("nDCG@6", 1 / (1 + 1 / log2(3))), ("nDCG(gain=exp)@6", 1 / (1 + 1 / log2(3))), ("AP", 0.5), ("R@6", 0.5)):
        assert got.mean(name) == pytest.approx(value)
        assert got.measures[name]["ceiling"] == pytest.approx(value)
    assert got.counts["unretrieved_relevant"] == 1


def test_negative_grades_gain_nothing():
    """P57"""
    got = evaluate({"q": {"a": 3, "b": 2, "c": 1}}, {"q": {"a": -1, "b": 2, "c": 0}}, ["nDCG@6", "nDCG(gain=exp)@6"])
    assert got.mean("nDCG@6") == pytest.approx(1 / log2(3))
    assert got.mean("nDCG(gain=exp)@6") == pytest.approx(1 / log2(3))
    assert got.counts["negative_grades"] == 1
    draw = np.random.default_rng(0)
    run = {str(q): {str(i): float(draw.integers(0, 5)) for i in range(6)} for q in range(1000)}
    qrels = {q: {i: int(draw.integers(-2, 4)) for i in of} for q, of in run.items()}
    values = evaluate(run, qrels, ["nDCG@5", "nDCG(gain=exp)@5"], resamples=2).per_query.values()
    assert all(0 <= value <= 1 for of in values for value in of.values())


def test_fractional_grades():
    """P58: used as they are for gains; a binary measure needs a threshold; trec_eval's rule refuses them."""
    run, qrels = {"q": {"a": 2, "b": 1}}, {"q": {"a": 0.2, "b": 1.5}}
    got = evaluate(run, qrels, ["nDCG@2", "nDCG(gain=exp)@2", "RR(rel=0.5)", "P(rel=0.1)@2"])
    assert got.mean("nDCG@2") == pytest.approx((0.2 + 1.5 / log2(3)) / (1.5 + 0.2 / log2(3)))
    exp = [2**0.2 - 1, 2**1.5 - 1]
    assert got.mean("nDCG(gain=exp)@2") == pytest.approx((exp[0] + exp[1] / log2(3)) / (exp[1] + exp[0] / log2(3)))
    assert (got.mean("RR(rel=0.5)"), got.mean("P(rel=0.1)@2")) == (0.5, 1.0)
    for options in ({"measures": "RR@6"}, {"measures": "nDCG@2", "ties": "trec"}, {"measures": "ERR@3"}):
        with pytest.raises(InputError):
            evaluate(run, qrels, **options)


def test_ids_and_numbers_of_any_type():
    """P59"""
    torch = pytest.importorskip("torch")
    for value in (np.float32(1), np.int64(1), torch.tensor(1.0, dtype=torch.bfloat16)):
        assert evaluate({1: {2: value}}, {"1": {"2": 1}}, "RR").mean("RR") == 1.0
        assert evaluate({"1": {"2": 1.0}}, {1: {2: value}}, "RR").mean("RR") == 1.0
    for run in ({1: {2: 1.0}, "1": {2: 1.0}}, {1: {2: 1.0, "2": 1.0}}):
        with pytest.raises(InputError, match="twice"):
            evaluate(run, {"1": {"2": 1}})


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), np.float32("nan")])
def test_scores_that_are_not_finite_are_refused(bad):
    """P19"""
    with pytest.raises(NonFiniteScoreError, match="q.*b"):
        evaluate({"q": {"a": 1.0, "b": bad}}, {"q": {"a": 1}})
    with pytest.raises(InputError):
        evaluate({"q": {"a": 1.0}}, {"q": {"a": bad}})


def test_queries_without_relevant_or_without_judgments():
    """P60: an empty judgment is left out and counted, a query without relevant documents is 0, neighbours keep their values."""
    run = {"a": {"x": 2.0, "y": 1.0}, "b": {"x": 1.0}, "c": {"x": 1.0}}
    alone = evaluate({"a": run["a"]}, {"a": {"x": 0, "y": 1}})
    got = evaluate(run, {"a": {"x": 0, "y": 1}, "b": {}, "c": {"x": 0}})
    assert got.per_query["a"] == alone.per_query["a"]
    assert (got.counts["empty_judgments"], got.counts["no_relevant"], got.counts["queries"]) == (1, 1, 2)
    assert got.mean("RR@6") == 0.25
    skipped = evaluate(run, {"a": {"x": 0, "y": 1}, "b": {}, "c": {"x": 0}}, no_relevant="skip")
    assert (skipped.mean("RR@6"), skipped.counts["no_relevant_skipped"]) == (0.5, 1)


def test_exclude_self_drops_the_own_id_only():
    """P61"""
    run, qrels = {"q1": {"q1": 3, "q2": 2, "d": 1}}, {"q1": {"d": 1}}
    cut = evaluate({"q1": {"q2": 2, "d": 1}}, qrels).per_query
    got = evaluate(run, qrels, exclude_self=True)
    assert got.per_query == cut
    assert got.counts["self_excluded"] == 1
    assert evaluate(run, qrels).mean("RR@6") == pytest.approx(1 / 3)
    pool = RankingExample("t", [Candidate("t", id="q1"), Candidate("d", id="d")], relevance=[0, 1], id="q1", source="beir/arguana")
    assert evaluate([scored("q1", [2, 1])], [pool], "RR").mean("RR") == 1.0
    assert evaluate([scored("q1", [2, 1])], [pool], "RR", exclude_self=False).mean("RR") == 0.5


def test_document_twice_in_a_run():
    """P62"""
    rows = [("q", "a", 1.0), ("q", "b", 2.0), ("q", "a", 3.0)]
    with pytest.raises(InputError, match="'q'.*'a' twice"):
        evaluate(rows, {"q": {"a": 1}})
    best = evaluate(rows, {"q": {"a": 1}}, "AP", dedup="best")
    assert best.per_query == evaluate({"q": {"a": 3.0, "b": 2.0}}, {"q": {"a": 1}}, "AP").per_query
    assert best.counts["duplicates"] == 1
    assert evaluate(rows, {"q": {"a": 1}}, "AP", dedup="first").mean("AP") == 0.5


def test_pools_never_mix():
    """P66: pairs are the sum of list lengths, and a foreign document is an error."""
    pools = [RankingExample("q", [Candidate("t", id=f"{q}-{i}") for i in range(5)], relevance=[1, 0, 0, 0, 0], id=str(q)) for q in range(3)]
    run = {str(q): {f"{q}-{i}": -i for i in range(5)} for q in range(3)}
    assert evaluate(run, pools).counts["pairs"] == 15
    with pytest.raises(InputError, match="'1-0'.*not among its candidates"):
        evaluate({"0": {"1-0": 1.0}}, pools)


def test_presentations_are_averaged():
    lists = [scored("a", [2, 1], presentation=Presentation(seed=0)), scored("a", [1, 2], presentation=Presentation(seed=1))]
    got = evaluate(lists, [example("a", [1, 0])], "RR")
    assert (got.mean("RR"), got.counts["lists"], got.counts["queries"]) == (0.75, 2, 1)


def test_scored_lists_are_checked():
    pools = [example("a", [1, 0])]
    for lists, hint in (
        ([scored("a", [1.0])], "2 candidates and 1 scores"),
        ([scored("a", [1, 0]), scored("a", [1, 0])], "twice"),
        ([scored("a", [1, 0]), ScoredList("b", "other", (1,))], "2 scorers"),
    ):
        with pytest.raises(InputError, match=hint):
            evaluate(lists, pools)
    with pytest.raises(InputError, match="twice"):
        evaluate([scored("a", [1, 0])], pools * 2)
    with pytest.raises(InputError, match="give a run"):
        evaluate([scored("a", [1, 0])], {"a": {"0": 1}})


def test_settings_are_checked():
    for options in (
        {"ties": "averag"},
        {"no_relevant": "drop"},
        {"dedup": "last"},
        {"units": "tasks"},
        {"measures": []},
        {"units": "sources"},
    ):
        with pytest.raises(ConfigError):
            evaluate({"q": {"a": 1.0}}, {"q": {"a": 1}}, **options)


def test_example_whose_ids_look_like_places():
    """A candidate named "1" at place 0 beside an unnamed one at place 1: the place is the identity."""
    pool = RankingExample("q", [Candidate("x", id="1"), Candidate("y")], relevance=[0, 1], id="q")
    assert evaluate([scored("q", [0, 1])], [pool], "RR").mean("RR") == 1.0


def test_means_by_source_and_json_round_trip(tmp_path):
    pools = [example("a", [1, 0], source="s", group="g"), example("b", [1, 0], source="s"), example("c", [1, 0], source="t")]
    lists = [scored("a", [1, 0]), scored("b", [0, 1]), scored("c", [0, 1])]
    got = evaluate(lists, pools, split="test")
    rr = got.measures["RR@6"]
    assert rr["micro"]["mean"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert rr["macro"]["mean"] == pytest.approx((0.75 + 0.5) / 2)
    assert rr["by_source"] == {"s": {"mean": 0.75, "n": 2}, "t": {"mean": 0.5, "n": 1}}
    assert (got.system, got.groups, tuple(got.measures)) == ("s", {"a": "g"}, DEFAULT_MEASURES)
    assert Evaluation.from_json(got.to_json()) == got
    got.write(tmp_path / "e.json")
    assert Evaluation.read(tmp_path / "e.json") == got
    with pytest.raises(InputError, match="schema"):
        Evaluation.from_json({**got.to_json(), "schema": "other/1"})


def test_import_is_light():
    import subprocess
    import sys

    code = "import sys, steadyrank.evaluation; print([m for m in ('torch', 'scipy', 'ir_measures', 'numpy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    code = "import sys; from steadyrank.evaluation import evaluate; evaluate({1: {2: 1}}, {1: {2: 1}}); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"

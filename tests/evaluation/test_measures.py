"""Names of measures: text form, aliases, errors; formulas against arithmetic; the torch metric and the numpy one against each other."""

from math import log2

import numpy as np
import pytest

from steadyrank.errors import ConfigError, MissingDependencyError
from steadyrank.evaluation import Measure, evaluate


@pytest.mark.parametrize(
    "text",
    ["nDCG(gain=exp)@6", "nDCG(gain=linear)", "nDCG@6", "RR", "AP(rel=2)@10", "RR(rel=0.5)@6", "IPrec@0.1", "nDCG(gains={0: 0, 1: 3})@5"],
)
def test_text_form_parses_back(text):
    measure = Measure.parse(text)
    assert str(measure) == text
    assert Measure.parse(str(measure)) == measure
    assert hash(measure) == hash(Measure.parse(text))


def test_spellings_of_one_measure_are_one():
    assert str(Measure.parse(" NDCG( gain = exponential ) @ 6 ")) == "nDCG(gain=exp)@6"
    assert str(Measure.parse("MRR@6")) == "RR@6"
    assert list(evaluate({"q": {"a": 1}}, {"q": {"a": 1}}, ["MRR@6", "RR@6"]).measures) == ["RR@6"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [("nDGC@6", "nDCG"), ("nDCG(foo=1)", "foo"), ("nDCG@0", "from 1"), ("P@x", "not a number"), ("Rprec(rel=.5)", "whole"),
     ("nDCG(gain=lin)@3", "linear"), ("((", "NAME"), ("nDCG(exp)@6", "key=value"), ("RR(gain=exp)", "nDCG alone")],
)  # fmt: skip
def test_a_wrong_name_says_what_is_known(text, hint):
    with pytest.raises(ConfigError, match=hint):
        Measure.parse(text)


def test_a_measure_without_provider_says_so():
    with pytest.raises(MissingDependencyError, match="provider"):
        evaluate({"q": {"a": 1.0}}, {"q": {"a": 1}}, "NRBP")


def test_gain_is_named_and_differs():
    """P64: grades 3, 1 in the wrong order; and the order (1, 0, 3, 2) of grades 3, 0, 2, 1 at 3."""
    got = evaluate({"q": {"a": 0.0, "b": 1.0}}, {"q": {"a": 3, "b": 1}}, ["nDCG@2", "nDCG(gain=linear)@2", "nDCG(gain=exp)@2"])
    assert round(got.mean("nDCG@2"), 4) == round(got.mean("nDCG(gain=linear)@2"), 4) == 0.7967
    assert round(got.mean("nDCG(gain=exp)@2"), 4) == 0.7098
    run = {"q": {str(place): -float(rank) for rank, place in enumerate((1, 0, 3, 2))}}
    got = evaluate(run, {"q": {"0": 3, "1": 0, "2": 2, "3": 1}}, ["nDCG@3", "nDCG(gain=exp)@3"])
    assert got.mean("nDCG(gain=exp)@3") == pytest.approx(0.523434, abs=1e-6)
    assert got.mean("nDCG@3") == pytest.approx(0.502491, abs=1e-6)


def test_linear_form_is_trec_evals_on_random_lists():
    draw = np.random.default_rng(0)
    run = {f"q{q}": {f"d{i}": float(draw.normal()) for i in range(9)} for q in range(30)}
    qrels = {q: {d: int(draw.integers(0, 4)) for d in [*of, "unretrieved"]} for q, of in run.items()}
    got = evaluate(run, qrels, ["nDCG@4", "nDCG(gain=linear)@4"], resamples=2)
    assert all(values["nDCG@4"] == pytest.approx(values["nDCG(gain=linear)@4"], abs=1e-9) for values in got.per_query.values())


def test_numpy_and_torch_metrics_hold_one_formula():
    metrics = pytest.importorskip("steadyrank.metrics")
    torch = pytest.importorskip("torch")
    draw = np.random.default_rng(1)
    for gain, name in (("exponential", "exp"), ("linear", "linear")):
        for _ in range(20):
            size, k = int(draw.integers(1, 9)), int(draw.integers(1, 7))
            grades, scores = draw.integers(0, 4, size), draw.permutation(size).astype(float)
            ranking = torch.tensor(np.argsort(-scores).copy())[None, None]
            theirs = metrics.ndcg(
                ranking, torch.tensor(grades, dtype=torch.float64)[None], torch.ones(1, size, dtype=torch.bool), k=k, gain=gain
            )
            qrels = {"q": {str(i): int(g) for i, g in enumerate(grades)}}
            ours = evaluate({"q": {str(i): s for i, s in enumerate(scores)}}, qrels, f"nDCG(gain={name})@{k}", resamples=2)
            assert ours.mean(f"nDCG(gain={name})@{k}") == pytest.approx(float(theirs), abs=1e-6)


def test_reciprocal_rank_and_judged_rate():
    """P65: the first relevant document alone counts; Judged@k divides by what was returned; recall divides by all relevant documents."""
    got = evaluate({"q": {"a": 3, "b": 2, "c": 1}}, {"q": {"a": 1, "b": 0, "c": 1, "d": 1}}, ["RR", "R@1"])
    assert got.mean("RR") == 1.0
    assert got.mean("R@1") == pytest.approx(1 / 3)
    assert evaluate({"q": {"a": 2, "b": 1}}, {"q": {"a": 1, "b": 0}}, "Judged@10").mean("Judged@10") == 1.0


def test_constant_scorer_meets_the_chance_table():
    """One relevant of n in random order: RR@6 = sum of 1/r over the first 6 places / n, nDCG@6 likewise with the discount."""
    table = {2: (0.8155, 0.75), 3: (0.7103, 0.6111), 4: (0.6404, 0.5208), 6: (0.5508, 0.4083), 8: (0.4131, 0.3062), 10: (0.3305, 0.245),
             18: (0.1836, 0.1361), 20: (0.1652, 0.1225), 100: (0.033, 0.0245)}  # fmt: skip
    for size, (ndcg, rr) in table.items():
        grades = {str(i): int(i == 1) for i in range(size)}
        got = evaluate({"q": dict.fromkeys(grades, 0.0)}, {"q": grades}, ["nDCG(gain=exp)@6", "RR@6"], resamples=2)
        assert got.mean("nDCG(gain=exp)@6") == pytest.approx(ndcg, abs=5.1e-5)
        assert got.mean("RR@6") == pytest.approx(rr, abs=5.1e-5)
        assert got.mean("nDCG(gain=exp)@6") == pytest.approx(sum(1 / log2(r + 1) for r in range(1, min(size, 6) + 1)) / size)

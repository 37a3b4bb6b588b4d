"""Tie rules: exact expectations against the enumeration of every order, and trec_eval's rule against pytrec_eval."""

from itertools import permutations, product
from math import log2

import ir_measures
import numpy as np
import pytest
import pytrec_eval

from steadyrank.evaluation import evaluate
from steadyrank.evaluation.ties import blocks, orders

CLOSED = ["nDCG@3", "nDCG", "RR", "RR@2", "P@1", "P@3", "P@9", "R@2", "Success@2", "AP", "AP@3", "AP(rel=2)", "RR(rel=2)@3"]
OTHERS = ["Rprec", "Bpref", "ERR@3", "Judged@3", "IPrec@0.0", "infAP"]
MAPPED = "nDCG(gains={0: 0, 1: 1, 2: 5})@3"


def all_orders(scores):
    """Every ranking that the ties allow, by brute force."""
    levels = sorted(set(scores.values()), reverse=True)
    for parts in product(*(list(permutations([d for d in scores if scores[d] == level])) for level in levels)):
        yield [document for part in parts for document in part]


def exp_ndcg(ranking, grades, k):
    gain = {document: 2.0 ** max(grade, 0) - 1 for document, grade in grades.items()}
    ideal = sum(g / log2(i + 2) for i, g in enumerate(sorted(gain.values(), reverse=True)[:k]))
    return sum(gain.get(document, 0) / log2(i + 2) for i, document in enumerate(ranking[:k])) / ideal if ideal else 0.0


def random_case(seed):
    draw = np.random.default_rng(seed)
    names = [f"d{i}" for i in range(int(draw.integers(2, 7)))]
    scores = {name: float(draw.integers(0, 3)) for name in names}
    grades = {name: int(draw.integers(0, 3)) for name in names if draw.random() < 0.8} | {"absent": int(draw.integers(0, 3))}
    return scores, grades


@pytest.mark.parametrize("seed", range(12))
def test_average_is_the_mean_over_all_orders(seed):
    check_all_orders(seed, CLOSED + [name for name in OTHERS if name != "ERR@3"])


@pytest.mark.parametrize("seed", range(12))
def test_mapped_gains_are_the_mean_over_all_orders(seed):
    """By arithmetic: pytrec_eval, below ir-measures, was seen to give 0 for this measure late in a long process."""
    scores, grades = random_case(seed)
    to = {0: 0, 1: 1, 2: 5}
    gain = {document: to[grade] for document, grade in grades.items()}
    ideal = sum(g / log2(i + 2) for i, g in enumerate(sorted(gain.values(), reverse=True)[:3]))
    values = [
        sum(gain.get(d, 0) / log2(i + 2) for i, d in enumerate(ranking[:3])) / ideal if ideal else 0.0 for ranking in all_orders(scores)
    ]
    assert evaluate({"q": scores}, {"q": grades}, [MAPPED], resamples=2).mean(MAPPED) == pytest.approx(np.mean(values), abs=1e-12)


def check_all_orders(seed, names):
    scores, grades = random_case(seed)
    got = evaluate({"q": scores}, {"q": grades}, [*names, "nDCG(gain=exp)@3"], resamples=2)
    rankings = list(all_orders(scores))
    run = {str(i): {d: float(-rank) for rank, d in enumerate(ranking)} for i, ranking in enumerate(rankings)}
    qrels = {str(i): grades for i in range(len(rankings))}
    for name in names:
        measure = ir_measures.parse_measure(name)
        assert got.mean(name) == pytest.approx(ir_measures.calc_aggregate([measure], qrels, run)[measure], abs=1e-9), name
    assert got.mean("nDCG(gain=exp)@3") == pytest.approx(np.mean([exp_ndcg(ranking, grades, 3) for ranking in rankings]), abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_trec_equals_pytrec_eval(seed):
    """Scores that differ beyond single precision tie for trec_eval; names decide, as text, descending."""
    draw = np.random.default_rng(seed)
    run = {f"q{q}": {f"d{i}": float(draw.integers(0, 4)) + 1e-9 * float(draw.integers(0, 3)) for i in range(12)} for q in range(5)}
    qrels = {q: {d: int(draw.integers(-1, 4)) for d in list(of)[:9]} for q, of in run.items()}
    names = {"ndcg_cut_5": "nDCG@5", "recip_rank": "RR", "map": "AP", "P_5": "P@5", "Rprec": "Rprec", "recall_5": "R@5"}
    wanted = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.5", "recip_rank", "map", "P.5", "Rprec", "recall.5"}).evaluate(run)
    got = evaluate(run, qrels, list(names.values()), ties="trec", resamples=2)
    for query, values in wanted.items():
        assert {ours: got.per_query[query][ours] for ours in names.values()} == {ours: values[theirs] for theirs, ours in names.items()}


@pytest.mark.parametrize("relevant", "abc")
def test_constant_scorer_is_chance_under_any_name_and_order(relevant):
    """P53: a constant scorer earns the mean over places, whatever the documents are called and wherever they stand."""
    for names in permutations("abc"):
        got = evaluate({"q": dict.fromkeys(names, 0.5)}, {"q": {name: int(name == relevant) for name in names}}, ["RR", "nDCG@6"])
        assert got.mean("RR") == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
        assert got.mean("nDCG@6") == pytest.approx(0.7103, abs=5e-5)
        assert got.counts["tie_rate"] == 1.0


def test_stable_and_pessimistic():
    run, qrels = {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}, {"q": {"a": 0, "b": 1, "c": 0}}
    assert evaluate(run, qrels, "RR", ties="stable").mean("RR") == 1 / 2
    assert evaluate(run, qrels, "RR", ties="pessimistic").mean("RR") == pytest.approx(1 / 3)
    assert evaluate(run, qrels, "RR", ties="trec").mean("RR") == 1 / 2


def test_large_tie_blocks_are_sampled_reproducibly_and_counted():
    grades = {f"d{i}": int(i < 5) for i in range(20)}
    got = [evaluate({"q": dict.fromkeys(grades, 0.0)}, {"q": grades}, ["Rprec", "AP"], seed=3) for _ in range(2)]
    assert got[0].per_query == got[1].per_query
    assert got[0].counts["sampled_ties"] == 1
    assert got[0].mean("Rprec") == pytest.approx(5 / 20, abs=0.05)  # expected precision at R of a random order
    assert evaluate({"q": dict.fromkeys(grades, 0.0)}, {"q": grades}, ["AP"]).counts["sampled_ties"] == 0


def test_orders_are_the_distinct_arrangements():
    rankings, sample = orders(blocks([1.0, 1.0, 1.0, 0.0]), [1, 0, 0, 2], seed=0, names=())
    assert not sample
    assert sorted([1, 0, 0, 2][place] for place in rankings[0]) == [0, 0, 1, 2]
    assert len(rankings) == 3

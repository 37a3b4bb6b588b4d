"""Intervals against the naive bootstrap, Wilcoxon against the enumeration of signs and scipy, Holm against its definition."""

import time
from itertools import product

import numpy as np
import pytest
from scipy import stats

from steadyrank.errors import ConfigError, InputError
from steadyrank.evaluation import Comparison, compare, compare_family, evaluate, holm, intervals, wilcoxon
from steadyrank.records import RankingExample, ScoredList


def test_interval_matches_the_naive_bootstrap():
    draw = np.random.default_rng(0)
    values = draw.normal(size=80)
    micro, macro = intervals(values)
    means = [values[draw.integers(0, 80, 80)].mean() for _ in range(20_000)]
    assert micro[0]["mean"] == pytest.approx(values.mean())
    assert (micro[0]["low"], micro[0]["high"]) == pytest.approx(tuple(np.percentile(means, [2.5, 97.5])), abs=0.01)
    assert macro == micro


def test_groups_move_together():
    """Eight copies of each of 20 values carry the information of 20: the interval is that of the 20, not of the 160."""
    values = np.random.default_rng(1).normal(size=20)
    alone, _ = intervals(values)
    grouped, _ = intervals(np.repeat(values, 8), [f"{i // 8:02d}" for i in range(160)])
    naive, _ = intervals(np.repeat(values, 8))
    assert grouped[0] == pytest.approx(alone[0])
    assert naive[0]["high"] - naive[0]["low"] < 0.5 * (alone[0]["high"] - alone[0]["low"])


def test_macro_averages_sources():
    values, sources = np.array([1.0, 1.0, 1.0, 0.0]), ["a", "a", "a", "b"]
    micro, macro = intervals(values, sources, sources, resamples=4000)  # units are the sources
    assert (micro[0]["mean"], macro[0]["mean"]) == (0.75, 0.5)
    assert (macro[0]["low"], macro[0]["high"]) == (0.0, 1.0)


def test_bootstrap_is_seeded_and_fast():
    values = np.random.default_rng(2).random((2000, 3))
    start = time.process_time()  # not the clock on the wall: other work on the machine is not ours
    first = intervals(values, sources=[str(i % 6) for i in range(2000)], seed=1)
    assert time.process_time() - start < 2.0
    assert first == intervals(values, sources=[str(i % 6) for i in range(2000)], seed=1)
    assert first != intervals(values, sources=[str(i % 6) for i in range(2000)], seed=2)


def test_wilcoxon_by_enumeration_of_signs():
    values = np.array([0.1, -0.25, 0.4, 0.33, 0.7, -0.05, 0.9])
    ranks = stats.rankdata(np.abs(values))
    seen = ranks[values > 0].sum()
    sums = [np.dot(signs, ranks) for signs in product((0, 1), repeat=len(values))]
    greater = np.mean([s >= seen for s in sums])
    p, nonzero = wilcoxon([*values, 0.0, 1e-16])
    assert (p["greater"], nonzero) == (pytest.approx(greater), 7)
    assert p["two_sided"] == pytest.approx(min(1.0, 2 * greater))


def test_wilcoxon_is_scipys_on_many_pairs():
    values = np.random.default_rng(3).normal(0.1, 1, 300)
    p, nonzero = wilcoxon(values)
    assert p["two_sided"] == pytest.approx(stats.wilcoxon(values).pvalue, rel=1e-6)
    assert p["greater"] == pytest.approx(stats.wilcoxon(values, alternative="greater").pvalue, rel=1e-6)
    assert wilcoxon([0.0, 0.0]) == ({"two_sided": 1.0, "greater": 1.0}, 0)


def test_holm():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def pools(count, **more):
    return [RankingExample(f"q{i}", ["x", "y", "z"], relevance=[1, 0, 0], id=str(i), source="st"[i % 2], **more) for i in range(count)]


def lists(name, tops):
    return [ScoredList(str(i), name, tuple(3.0 if place == top else -float(place) for place in range(3))) for i, top in enumerate(tops)]


def test_compare_counts_and_signs():
    data = pools(6)
    a, b = evaluate(lists("a", [0, 0, 0, 0, 1, 1]), data), evaluate(lists("b", [0, 0, 1, 1, 1, 0]), data)
    got = compare(a, b, "MRR@6")
    assert (got.a, got.b, got.measure, got.n, got.nonzero) == ("a", "b", "RR@6", 6, 3)
    assert got.difference["mean"] == pytest.approx(0.5 / 6)
    assert got.by_source == {
        "s": {"win": 1, "tie": 2, "loss": 0, "difference": pytest.approx(0.5 / 3)},
        "t": {"win": 1, "tie": 1, "loss": 1, "difference": pytest.approx(0.0)},
    }
    assert compare(b, a, "RR@6").difference["mean"] == -got.difference["mean"]
    assert Comparison.from_json(got.to_json()) == got
    family = compare_family([(a, b), (b, a), (a, a)], "RR@6")
    assert [one.holm for one in family] == pytest.approx(holm([one.wilcoxon["two_sided"] for one in family]))
    assert family[2].wilcoxon["two_sided"] == 1.0


def test_queries_of_one_group_are_one_pair():
    data = pools(6, group="g")
    a, b = evaluate(lists("a", [0] * 6), data), evaluate(lists("b", [1] * 6), data)
    assert (compare(a, b, "RR@6").n, compare(a, b, "RR@6", units="queries").n) == (1, 6)


def test_what_cannot_be_compared_is_refused():
    data = pools(4)
    a = evaluate(lists("a", [0] * 4), data)
    with pytest.raises(InputError, match="different queries"):
        compare(a, evaluate(lists("b", [0] * 3), data[:3]), "RR@6")
    other = [RankingExample(e.query, ["x", "y", "other"], relevance=[1, 0, 0], id=e.id, source=e.source) for e in data]
    with pytest.raises(InputError, match="other texts"):
        compare(a, evaluate(lists("b", [0] * 4), other), "RR@6")
    with pytest.raises(InputError, match="ties"):
        compare(a, evaluate(lists("b", [0] * 4), data, ties="stable"), "RR@6")
    with pytest.raises(ConfigError, match="holds no AP"):
        compare(a, a, "AP")

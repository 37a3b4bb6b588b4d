"""Audits compared list by list, against arithmetic."""

import numpy as np
import pytest

from steadyrank.audit import averaged, differences, run_audit, summary
from steadyrank.errors import InputError
from steadyrank.records import Presentation as Laid
from steadyrank.records import RankingExample, ScoredList

ORDERS = [(0, 1, 2), (2, 1, 0), (1, 0, 2)]


def audit(shift: float):
    """Six lists of three under three orders; the candidate shown first gets `shift` on top: a large one flips the two best."""
    examples = [RankingExample("q", ("a", "b", "c"), relevance=(1, 0, 0), id=f"e{i}", source="s") for i in range(6)]
    base = np.array([0.5, 0.4, 0.1])
    lists = []
    for example in examples:
        for order in ORDERS:
            scores = base.copy()
            scores[order[0]] += shift
            lists.append(ScoredList(example.id, "planted", tuple(scores), "probability", Laid(order=order, seed=0)))
    return run_audit(lists, examples, threshold=0.45, probes=(), resamples=200)


def test_per_list_values_are_those_of_arithmetic():
    table = audit(0.2).per_list
    # a first: a .7 b .4 c .1; c first: a .5 b .4 c .3; b first: a .5 b .6: the top choice is b in one of three orders
    assert table["columns"]["top_flip"] == pytest.approx([2 / 3] * 6)
    ndcg = (1 + 1 + 1 / np.log2(3)) / 3
    assert table["columns"]["nDCG@6"] == pytest.approx([ndcg] * 6)
    # kept at .45: {a}, {a}, {a, b}: pairs 1, 1/2, 1/2
    assert table["columns"]["jaccard given"] == pytest.approx([2 / 3] * 6)
    # tau of the orders abc, abc, bac: 1, 1/3, 1/3
    assert table["columns"]["tau_psi"] == pytest.approx([(1 - (1 + 1 / 3 + 1 / 3) / 3) / 2] * 6)
    assert table["columns"]["nDCG@6 first stage"] == [None] * 6  # no list was laid in its own order


def test_differences_are_paired_and_seeds_are_averaged_first():
    steady, moved = audit(0.0).per_list, audit(0.2).per_list
    found = differences(moved, steady, resamples=100)
    assert found["top_flip"]["mean"] == pytest.approx(2 / 3)
    assert found["jaccard given"]["mean"] == pytest.approx(-1 / 3)
    both = averaged([steady, moved])
    assert both["columns"]["top_flip"] == pytest.approx([1 / 3] * 6)
    assert summary(both, resamples=100)["top_flip"]["mean"] == pytest.approx(1 / 3)


def test_audits_of_other_lists_are_not_compared():
    one = audit(0.0).per_list
    with pytest.raises(InputError, match="other lists"):
        differences(one, {**one, "ids": [*one["ids"][1:], "x"]})

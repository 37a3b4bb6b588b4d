"""The hierarchical bootstrap against enumeration and theory."""

import itertools

import numpy as np
import pytest

from steadyrank import stability
from steadyrank.errors import InputError
from steadyrank.seeds import stream


def test_interval_is_that_of_the_enumerated_law():
    """Two collections of two queries: every equally likely draw written out."""
    parts = [(0.0, 1.0), (3.0, 7.0)]
    law = []
    for first, second in itertools.product(range(2), repeat=2):
        for i, j, k, m in itertools.product(range(2), repeat=4):
            law.append((parts[first][i] + parts[first][j] + parts[second][k] + parts[second][m]) / 4)
    found = stability.hierarchical_bootstrap([0, 1, 3, 7], ["a", "a", "b", "b"], resamples=40_000, seed=1, level=0.9)
    assert found["mean"] == pytest.approx(2.75)
    assert [found["low"], found["high"]] == pytest.approx(list(np.quantile(law, [0.05, 0.95])), abs=0.01)


def test_one_collection_is_the_plain_bootstrap():
    values = stream(0, "v").standard_normal(400)
    found = stability.hierarchical_bootstrap(values, resamples=5000, seed=2)
    half = 1.96 * values.std() / 20
    assert [found["low"], found["high"]] == pytest.approx([values.mean() - half, values.mean() + half], abs=0.012)


def test_means_weigh_collections_alike_and_nan_is_left_out_and_counted():
    found = stability.hierarchical_bootstrap([1, 1, 1, 5, np.nan], ["a", "a", "a", "b", "b"], resamples=200, seed=0)
    assert (found["mean"], found["n"], found["excluded"], found["collections"]) == (3.0, 4, 1, 2)
    empty = stability.hierarchical_bootstrap([np.nan, np.nan], resamples=10, seed=0)
    assert np.isnan([empty["mean"], empty["low"], empty["high"]]).all()


def test_order_of_queries_and_other_columns_change_nothing():
    values, names = stream(0, "v").random(30), [f"c{i % 3}" for i in range(30)]
    whole = stability.hierarchical_bootstrap(values, names, resamples=300, seed=4)
    table = stability.bootstrap_table(np.column_stack([values, values**2]), names, resamples=300, seed=4)
    assert table[0] == pytest.approx(whole, abs=1e-12)
    kept = [i for name in ("c2", "c0", "c1") for i in range(30) if names[i] == name]
    assert stability.hierarchical_bootstrap(values[kept], [names[i] for i in kept], resamples=300, seed=4) == pytest.approx(
        whole, abs=1e-12
    )


def test_groups_move_together():
    """Ten copies of each of five values: as groups the interval is that of five, not of fifty."""
    five = np.array([0.0, 1, 2, 3, 4])
    grouped = stability.hierarchical_bootstrap(np.repeat(five, 10), groups=[f"g{i // 10}" for i in range(50)], resamples=8000, seed=0)
    alone = stability.hierarchical_bootstrap(five, resamples=8000, seed=1)
    assert grouped["high"] - grouped["low"] == pytest.approx(alone["high"] - alone["low"], abs=0.1)


def test_paired_keeps_pairs():
    base = stream(0, "b").standard_normal(200) * 10
    found = stability.paired_bootstrap(base + 0.1, base, resamples=500, seed=0)
    assert (found["low"], found["high"]) == pytest.approx((0.1, 0.1), abs=1e-9)
    assert found["p"] == 0.0
    assert stability.paired_bootstrap(base, base, resamples=100, seed=0)["p"] == 1.0
    assert stability.paired_bootstrap([1, np.nan], [0, 1], resamples=10, seed=0)["excluded"] == 1


def test_bad_input_is_named():
    with pytest.raises(InputError, match="collections"):
        stability.hierarchical_bootstrap([1, 2], ["a"], seed=0)
    with pytest.raises(InputError, match="at least one query"):
        stability.hierarchical_bootstrap([], seed=0)

"""tau-PSI against scipy, by arithmetic, and at its edges."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from steadyrank import stability
from steadyrank.errors import InputError, NonFiniteScoreError
from steadyrank.seeds import stream

draw = stream(3, "tau psi tests")
BY_CHANCE = [np.round(draw.random((4, size)), digits) for size in (2, 3, 7, 20) for digits in (1, 6) for _ in range(3)]


def by_scipy(scores_PK, variant):
    taus = []
    for first in range(len(scores_PK)):
        for second in range(first + 1, len(scores_PK)):
            tau = kendalltau(scores_PK[first], scores_PK[second], variant=variant).statistic
            taus.append(0.0 if np.isnan(tau) else tau)
    return (1 - np.mean(taus)) / 2


def listed_ranks(scores_PK, orders_PK):
    """Ranks after sorting each presentation's listing stably, plain Python."""
    out = np.empty(scores_PK.shape)
    for row, (scores, order) in enumerate(zip(scores_PK, orders_PK, strict=True)):
        for rank, candidate in enumerate(sorted(order, key=lambda candidate: -scores[candidate])):
            out[row, candidate] = -rank
    return out


def test_tau_b_is_scipys():
    expected = [by_scipy(scores_PK, "b") for scores_PK in BY_CHANCE]
    np.testing.assert_allclose(stability.psi_many(BY_CHANCE), expected, atol=1e-12)
    np.testing.assert_allclose([stability.tau_psi(scores_PK) for scores_PK in BY_CHANCE], expected, atol=1e-12)


def test_listed_ties_are_broken_by_the_listing_of_each_presentation():
    for scores_PK in BY_CHANCE:
        orders_PK = np.stack([draw.permutation(scores_PK.shape[1]) for _ in scores_PK])
        expected = by_scipy(listed_ranks(scores_PK, orders_PK), "b")
        assert stability.tau_psi(scores_PK, ties="a_listed", orders_PK=orders_PK) == pytest.approx(expected, abs=1e-12)
        canonical = by_scipy(listed_ranks(scores_PK, [range(scores_PK.shape[1])] * len(scores_PK)), "b")
        assert stability.tau_psi(scores_PK, ties="a_listed") == pytest.approx(canonical, abs=1e-12)


def test_same_reversed_and_one_swap():
    row = np.array([3.0, 2.0, 1.0])
    assert stability.tau_psi([row, row, row]) == 0.0
    assert stability.tau_psi([row, -row]) == 1.0
    assert stability.tau_psi([[3, 2, 1], [2, 3, 1]]) == pytest.approx(1 / 3)  # one of three pairs turned


def test_constant_scorer_is_chance_and_counted():
    table = stability.psi_table([np.ones((3, 5)), np.array([[1, 1, 1], [1, 2, 3.0]])])
    assert table.psi_N.tolist() == [0.5, 0.5]
    assert table.undefined_N.tolist() == [3, 1]
    assert table.tie_rate_N.tolist() == [1.0, 0.5]
    orders = np.stack([stream(0, "x", p).permutation(30) for p in range(8)])
    assert stability.tau_psi(np.ones((8, 30)), ties="a_listed", orders_PK=orders) == pytest.approx(0.5, abs=0.06)
    assert stability.tau_psi(np.ones((8, 30)), ties="a_listed") == 0.0  # the published form flatters


def test_steady_scorer_with_ties_is_exactly_steady():
    assert stability.tau_psi(np.tile([0.1, 0.3, 0.3, 0.7], (10, 1))) == 0.0


def test_nothing_to_compare_is_nan_and_left_out():
    table = stability.psi_table([np.ones((4, 1)), np.ones((1, 4)), [[1, 2], [1, 2]]])
    assert np.isnan(table.psi_N[:2]).all()
    assert table.to_json()["n"] == 1
    assert table.to_json()["excluded"] == 2
    assert table.to_json()["mean"] == 0.0


def test_bad_scores_are_refused():
    with pytest.raises(NonFiniteScoreError, match=r"\[0, 1\]"):
        stability.tau_psi([[1, np.nan], [1, 2]])
    with pytest.raises(InputError, match="shape"):
        stability.tau_psi([1, 2, 3])
    with pytest.raises(ValueError, match="tie rule"):
        stability.tau_psi([[1, 2], [1, 2]], ties="c")
    with pytest.raises(InputError, match="permutation"):
        stability.tau_psi([[1, 2], [1, 2]], ties="a_listed", orders_PK=[[0, 1], [1, 1]])


def test_chunks_do_not_mix_examples(monkeypatch):
    expected = stability.psi_many(BY_CHANCE)
    monkeypatch.setattr("steadyrank.stability.arrays.CELLS", 50)
    np.testing.assert_array_equal(stability.psi_many(BY_CHANCE), expected)


def test_pool_psi_compares_survivors_only():
    before = [0.9, 0.8, 0.7, 0.6]
    after = [0.9, 0.6, 0.65]  # candidate 1 dropped; 2 and 3 turned
    assert stability.pool_psi(before, after, survivors=stability.survivors_after_drop(4, 1)) == pytest.approx(1 / 3)
    assert stability.pool_psi(before, [0.9, 5.0, 0.7, 0.6], survivors=stability.survivors_after_replace(4, 1)) == 0.0
    with pytest.raises(InputError, match="twice"):
        stability.pool_psi(before, after, survivors=[(0, 0), (0, 1)])


def test_spread_measures_by_arithmetic():
    scores = [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]
    assert stability.score_variance(scores) == pytest.approx(2 / 3)  # 1, 0, 1 over three candidates
    assert stability.rank_variance(scores) == pytest.approx(2 / 3)
    assert stability.top_k_turnover(scores, 1) == 1.0
    assert stability.top_k_turnover(scores, 2, count="members") == pytest.approx(0.5)
    assert stability.top_k_turnover(scores, 3) == 0.0
    assert stability.tie_rate([[1, 1, 2.0], [1, 2, 3]]) == pytest.approx(1 / 6)
    assert stability.score_variance(np.tile([0.1, 0.2, 0.7], (10, 1))) == 0.0
    assert stability.residual_rmse([[1.0, 2.0], [11.0, 12.0]]) == pytest.approx(0.0, abs=1e-12)  # whole presentations shifted


def test_ranks_of_ties():
    assert stability.rank_variance([[1, 1, 0.0], [1, 1, 0.0]]) == 0.0
    assert stability.rank_variance([[1, 1], [2, 1]]) == pytest.approx(((0.25**2) * 2 * 2) / 4)  # ranks .5 .5 against 0 1
    assert stability.top_k_turnover(np.ones((2, 4)), 1, orders_PK=[[0, 1, 2, 3], [3, 2, 1, 0]]) == 1.0


def test_spearman_is_scipys():
    from scipy.stats import spearmanr

    a, b = np.round(draw.random(30), 1), np.round(draw.random(30), 1)
    assert stability.spearman(a, b) == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)
    assert np.isnan(stability.spearman([1, 2], [1, 2]))
    assert np.isnan(stability.spearman([1, 1, 1], [1, 2, 3]))

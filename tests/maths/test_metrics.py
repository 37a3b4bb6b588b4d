"""Metrics against arithmetic and scipy."""

import math

import numpy as np
import pytest
import torch

from steadyrank.errors import ConfigError, NonFiniteScoreError
from steadyrank.metrics import kendall_tau, mrr, ndcg


def test_ndcg_fixture():
    relevance, order = torch.tensor([[3.0, 0.0, 2.0, 1.0]]), torch.tensor([[[1, 0, 3, 2]]])
    ideal = 7 / math.log2(2) + 3 / math.log2(3) + 1 / math.log2(4)
    expected = (0 + 7 / math.log2(3) + 1 / math.log2(4)) / ideal
    assert ndcg(order, relevance, k=3).item() == pytest.approx(expected, abs=1e-6) == pytest.approx(0.523434, abs=1e-6)
    assert ndcg(order, relevance, k=3, gain="linear").item() == pytest.approx(0.502491, abs=1e-6)


def test_ndcg_without_any_gain_is_zero_and_negative_grades_gain_nothing():
    order = torch.tensor([[[0, 1, 2]]])
    assert ndcg(order, torch.zeros(1, 3), k=3).item() == 0.0
    assert ndcg(order, torch.tensor([[-1.0, -2.0, 0.0]]), k=3).item() == 0.0
    unjudged, zero = torch.tensor([[-1.0, 2.0, 1.0]]), torch.tensor([[0.0, 2.0, 1.0]])
    assert ndcg(order, unjudged, k=3).item() == ndcg(order, zero, k=3).item()


def test_cutoff_beyond_the_list_is_the_list():
    order, relevance = torch.tensor([[[1, 0]]]), torch.tensor([[1.0, 0.0]])
    assert ndcg(order, relevance, k=6).item() == pytest.approx(1 / math.log2(3))
    with pytest.raises(ConfigError, match="at least 1"):
        ndcg(order, relevance, k=0)


def test_constant_scorer_on_shuffled_pools_scores_chance():
    """One positive in three: E = (1 + 1/log2 3 + 1/2) / 3."""
    gain = torch.eye(3)[torch.from_numpy(np.random.default_rng(0).integers(3, size=20_000))]
    order = torch.arange(3).expand(20_000, 1, 3)
    assert ndcg(order, gain, k=6).mean().item() == pytest.approx((1 + 1 / math.log2(3) + 0.5) / 3, abs=0.005)


def test_mrr_counts_from_one_and_stops_at_k():
    order, relevance = torch.tensor([[[0, 1, 2, 3]]]), torch.tensor([[0.0, -1.0, 2.0, 1.0]])
    assert mrr(order, relevance, k=6).item() == pytest.approx(1 / 3)
    assert mrr(order, relevance, k=2).item() == 0.0


def test_nan_grade_raises():
    with pytest.raises(NonFiniteScoreError):
        ndcg(torch.tensor([[[0, 1]]]), torch.tensor([[float("nan"), 1.0]]), k=2)


@pytest.mark.parametrize("seed", range(5))
def test_kendall_b_is_scipys(seed):
    from scipy.stats import kendalltau

    a, b = np.random.default_rng(seed).integers(4, size=(2, 9))
    assert kendall_tau(a, b) == pytest.approx(kendalltau(a, b).statistic)


def test_kendall_variants_by_hand():
    a, b = [2.0, 2.0, 1.0], [1.0, 2.0, 3.0]  # pairs: tie/-, +/-, +/- -> 0 concordant, 2 discordant of 3
    assert kendall_tau(a, b, variant="a") == pytest.approx(-2 / 3)
    assert kendall_tau(a, b, variant="b") == pytest.approx(-2 / math.sqrt(2 * 3))
    assert kendall_tau(a, b, variant="a", ties="input") == pytest.approx(-1.0)  # the first of the tied ranks higher
    assert math.isnan(kendall_tau([1.0, 1.0], [1.0, 2.0]))
    assert math.isnan(kendall_tau([1.0], [2.0], variant="a"))
    with pytest.raises(NonFiniteScoreError):
        kendall_tau([float("nan"), 1.0], [1.0, 2.0])

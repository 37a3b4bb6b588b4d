"""Relevance, rewards and advantages against arithmetic."""

import math

import pytest
import torch

from steadyrank.errors import ConfigError, NonFiniteScoreError
from steadyrank.rewards import from_optional, group_advantages, is_flat, logit, ndcg_reward, rank_normalize, relevance_from

REWARDS = torch.tensor([[1, 0.8, 0.8, 0.6, 0.6, 0.6, 0.6, 0.2]], dtype=torch.float64)


def row(values):
    return torch.tensor([values], dtype=torch.float64)


@pytest.mark.parametrize("utilities,expected", [
    ([0.2, 0.5, 0.5, -1.0], [1 / 3, 5 / 6, 5 / 6, 0.0]), ([3.0, 3.0, 3.0], [0.5] * 3), ([7.0], [0.0]),
])  # fmt: skip
def test_rank_normalize(utilities, expected):
    assert rank_normalize(row(utilities), torch.ones(1, len(utilities), dtype=torch.bool))[0].tolist() == pytest.approx(expected)
    padded = row([*utilities, 1e9, -1e9])
    mask = torch.arange(len(utilities) + 2)[None] < len(utilities)
    assert rank_normalize(padded, mask)[0].tolist() == pytest.approx([*expected, 0.0, 0.0])


def test_other_relevances():
    t, mask = row([1.0, -1.0, 99.0]), torch.tensor([[True, True, False]])
    sigmoid = 1 / (1 + math.exp(-1))
    assert relevance_from(t, mask, how="sigmoid")[0].tolist() == pytest.approx([sigmoid, 1 - sigmoid, 0])
    assert relevance_from(t, mask, how="zsigmoid")[0].tolist() == pytest.approx([sigmoid, 1 - sigmoid, 0], abs=1e-6)
    assert relevance_from(t, mask, how="minmax")[0].tolist() == [1.0, 0.0, 0.0]
    assert relevance_from(row([2.0, 2.0]), how="minmax")[0].tolist() == [0.5, 0.5]
    assert relevance_from(t, mask, how="softmax")[0, 0].item() == pytest.approx(1 / (1 + math.exp(-2)))
    assert relevance_from(t, mask, how="raw")[0].tolist() == [1.0, -1.0, 0.0]
    with pytest.raises(ConfigError, match="zsigmoid"):
        relevance_from(t, mask, how="zsigmoyd")
    with pytest.raises(NonFiniteScoreError):
        rank_normalize(row([float("nan"), 1.0]))


def test_logit_inverts_sigmoid():
    t = row([-4.0, 0.0, 3.0])
    torch.testing.assert_close(logit(t.sigmoid()), t)
    assert logit(row([0.0, 1.0])).isfinite().all()


@pytest.mark.parametrize("settings,expected", [
    ({}, [1.605903, 0.688244, 0.688244] + [-0.229415] * 4 + [-2.064732]),
    ({"scale": "sample_std", "epsilon": 1e-4}, [1.501547, 0.643520, 0.643520] + [-0.214507] * 4 + [-1.930560]),
    ({"scale": "none"}, [0.35, 0.15, 0.15] + [-0.05] * 4 + [-0.45]),
    ({"baseline": "leave_one_out", "scale": "none"}, [0.4, 0.171429, 0.171429] + [-0.05 * 8 / 7] * 4 + [-0.514286]),
])  # fmt: skip
def test_advantage_fixture(settings, expected):
    assert group_advantages(REWARDS, **settings)[0].tolist() == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("scale", ["std", "sample_std", "none"])
@pytest.mark.parametrize("baseline", ["mean", "leave_one_out"])
def test_flat_groups_are_exactly_zero(baseline, scale):
    """Noise of 1e-8 over an epsilon of 1e-6 would become a gradient."""
    noisy = row([0.7, 0.7 + 1e-8, 0.7, 0.7 - 1e-8])
    for group in (row([1.0, 1, 1, 1]), noisy, torch.full((1, 4), 0.3), row([0.5])):
        assert group_advantages(group, baseline=baseline, scale=scale).abs().sum().item() == 0.0
    assert group_advantages(row([0.7, 0.7 + 1e-5]), baseline=baseline, scale=scale).abs().sum().item() > 0
    assert is_flat(noisy).item() and not is_flat(REWARDS).item()


@pytest.mark.parametrize("settings", [{}, {"baseline": "leave_one_out", "scale": "none"}])
def test_what_could_not_be_scored_is_left_out(settings):
    rewards, valid = from_optional([[1.0, 0.0, None], [None, None, None]])
    got = group_advantages(rewards, valid_BG=valid, **settings)
    assert got[0].tolist() == [*group_advantages(torch.tensor([[1.0, 0.0]]), **settings)[0].tolist(), 0.0]
    assert got[1].tolist() == [0.0, 0.0, 0.0]
    rewards[0, 2] = float("nan")
    assert torch.equal(group_advantages(rewards, valid_BG=valid, **settings), got)
    with pytest.raises(NonFiniteScoreError, match="valid_BG"):
        group_advantages(rewards)


def test_unknown_choices_are_named():
    with pytest.raises(ConfigError, match="leave_one_out"):
        group_advantages(REWARDS, baseline="median")
    with pytest.raises(ConfigError, match="std"):
        group_advantages(REWARDS, scale="max")


def test_regret_maps_best_to_one_and_worst_to_zero():
    relevance = torch.tensor([[2.0, 1.0, 0.0, 50.0], [1.0, 1.0, 1.0, 50.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False]] * 2)
    rankings = torch.tensor([[[0, 1, 2, 3], [2, 1, 0, 3], [1, 0, 2, 3]]] * 2)
    got = ndcg_reward(rankings, relevance, mask, k=2, regret=True)
    assert got[0, :2].tolist() == pytest.approx([1.0, 0.0], abs=1e-12)
    assert 0 < got[0, 2].item() < 1
    assert got[1].tolist() == [0.0, 0.0, 0.0]

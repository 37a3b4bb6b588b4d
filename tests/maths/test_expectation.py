"""Exact expected nDCG against enumeration, finite differences and its fixtures; its cost at the largest pool."""

import itertools

import pytest
import torch

from steadyrank import policy
from steadyrank.errors import ConfigError
from steadyrank.metrics import ndcg
from steadyrank.policy.expectation import states


def enumerated(scores_1K, relevance_1K, k, gain):
    n = scores_1K.shape[1]
    every = torch.tensor([list(itertools.permutations(range(n)))])
    mask = torch.ones(1, n, dtype=torch.bool)
    return (policy.log_prob(scores_1K, every, mask).exp() * ndcg(every, relevance_1K, mask, k=k, gain=gain)).sum()


@pytest.mark.parametrize("scores,relevance,value,gradient", [
    ([1.0, 0.0, -1.0], [0.0, 0.5, 1.0], 0.680023, [-0.043392, 0.006793, 0.036598]),
    ([2.0, 0.0, -1.0], [1.0, 0.5, 0.0], 0.955704, [0.028423, -0.008212, -0.020211]),
])  # fmt: skip
def test_fixtures(scores, relevance, value, gradient):
    scores = torch.tensor([scores], dtype=torch.float64, requires_grad=True)
    got = policy.expected_ndcg(scores, torch.tensor([relevance]), torch.ones(1, 3, dtype=torch.bool), k=6)
    got.sum().backward()
    assert got.item() == pytest.approx(value, abs=1e-6)
    assert scores.grad[0].tolist() == pytest.approx(gradient, abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 4, 6])
@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_value_and_gradient_by_enumeration(n, k, gain):
    random = torch.Generator().manual_seed(n * 10 + k)
    scores = (3 * torch.randn(1, n, dtype=torch.float64, generator=random)).requires_grad_()
    relevance = torch.randint(0, 4, (1, n), generator=random).double()
    expected = enumerated(scores, relevance, k, gain)
    got = policy.expected_ndcg(scores, relevance, torch.ones(1, n, dtype=torch.bool), k=k, gain=gain)
    assert got.item() == pytest.approx(expected.item(), abs=1e-12)
    ours, theirs = torch.autograd.grad(got.sum(), scores)[0], torch.autograd.grad(expected, scores)[0]
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-9)


def test_gradcheck_with_mixed_sizes_scattered_padding_and_temperature():
    mask = torch.tensor([[True, False, True, True, True], [False, True, True, False, False], [False] * 5])
    scores = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    relevance = torch.rand(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.autograd.gradcheck(lambda s: policy.expected_ndcg(s, relevance, mask, k=3, temperature=0.7), scores)
    value = policy.expected_ndcg(scores, relevance, mask, k=3)
    alone = policy.expected_ndcg(scores[1:2, 1:3], relevance[1:2, 1:3], torch.ones(1, 2, dtype=torch.bool), k=3)
    assert value[1].item() == pytest.approx(alone.item(), abs=1e-12)
    assert value[2].item() == 0.0


@pytest.mark.parametrize("span", [50.0, 500.0, 5000.0])
def test_saturated_scores_are_the_sorted_ranking(span):
    """Far-apart scores rank surely; a quotient of weights would underflow to 0 / 0."""
    scores = torch.tensor([[0.0, -1.0, -2.0, -3.0]], dtype=torch.float64).mul(span).requires_grad_()
    relevance = torch.tensor([[0.0, 1.0, 2.0, 3.0]], dtype=torch.float64)
    value = policy.expected_ndcg(scores, relevance, torch.ones(1, 4, dtype=torch.bool), k=4)
    assert value.item() == pytest.approx(ndcg(torch.arange(4)[None, None], relevance, k=4).item(), abs=1e-12)
    value.sum().backward()
    assert scores.grad.isfinite().all()


def test_wide_span_keeps_close_pairs_apart():
    """Only steps of certain outcome are shortened: two candidates one apart stay one apart beneath a gap of 5000."""
    scores, pair = torch.tensor([[5000.0, 0.0, -1.0]], dtype=torch.float64), torch.tensor([[0.0, -1.0]], dtype=torch.float64)
    got = policy.expected_ndcg(scores, torch.tensor([[0.0, 1.0, 0.0]]), torch.ones(1, 3, dtype=torch.bool), k=2)
    top = torch.softmax(pair, -1)[0, 0].item()
    assert got.item() == pytest.approx(top / torch.log2(torch.tensor(3.0, dtype=torch.float64)).item(), abs=1e-7)


def test_largest_pool_is_sampled_value_and_state_count():
    assert states(21, 6) == 27_896 and states(14, 6) == 3_473
    random = torch.Generator().manual_seed(3)
    scores, relevance = torch.randn(2, 21, generator=random), torch.rand(2, 21, generator=random)
    mask = torch.ones(2, 21, dtype=torch.bool)
    exact = policy.expected_ndcg(scores, relevance, mask, k=6)
    sampled = ndcg(policy.sample_rankings(scores, mask, num_samples=20_000, generator=random), relevance, mask, k=6)
    error = sampled.std(-1) / 20_000**0.5
    assert ((sampled.mean(-1) - exact).abs() < 4 * error).all()


def test_too_many_states_are_refused():
    with pytest.raises(ConfigError, match="lower k"):
        policy.expected_ndcg(torch.zeros(1, 100), torch.ones(1, 100), torch.ones(1, 100, dtype=torch.bool), k=6)

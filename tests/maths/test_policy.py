"""Plackett-Luce against enumeration, arithmetic and frequencies."""

import itertools
import math

import pytest
import torch

from steadyrank import policy
from steadyrank.errors import ConfigError, NonFiniteScoreError
from steadyrank.objectives.terms import stepwise_kl

S3 = torch.tensor([[1.0, 0.0, -1.0]], dtype=torch.float64)
FULL3 = torch.ones(1, 3, dtype=torch.bool)


def orders(n):
    return torch.tensor([list(itertools.permutations(range(n)))])


@pytest.mark.parametrize(
    "order,depth,heat,value",
    [
        ((0, 1, 2), 1, 1.0, -0.407606),
        ((0, 1, 2), 2, 1.0, -0.720868),
        ((0, 1, 2), None, 1.0, -0.720868),
        ((2, 1, 0), None, 1.0, -3.720868),
        ((1, 0, 2), None, 1.0, -1.534534),
        ((0, 1, 2), None, 2.0, -1.154347),
    ],
)
def test_log_prob_fixtures(order, depth, heat, value):
    got = policy.log_prob(S3, torch.tensor([[order]]), FULL3, depth=depth, temperature=heat)
    assert got.item() == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("pads", [0, 1, 2, 4])
def test_padding_never_enters_the_denominator(pads):
    """A padded slot that counted as exp(0) would give .9759 for one pad."""
    scores = torch.tensor([[1.5, 0.3] + [0.0] * pads], requires_grad=True)
    mask = torch.arange(2 + pads)[None] < 2
    loss = -policy.log_prob(scores, torch.arange(2 + pads)[None, None], mask)
    assert loss.item() == pytest.approx(math.log1p(math.exp(-1.2)), abs=1e-6) == pytest.approx(0.26328, abs=1e-5)
    loss.sum().backward()
    share = 1 / (1 + math.exp(1.2))
    assert scores.grad[0].tolist() == pytest.approx([-share, share] + [0.0] * pads, abs=1e-6)


def test_all_padding_is_zero_with_a_finite_gradient():
    scores = torch.full((1, 3), float("nan"), requires_grad=True)
    mask = torch.zeros(1, 3, dtype=torch.bool)
    policy.log_prob(scores, torch.arange(3)[None, None], mask).sum().backward()
    assert scores.grad.tolist() == [[0.0, 0.0, 0.0]]
    assert policy.first_choice(scores, mask).tolist() == [[-math.inf] * 3]


@pytest.mark.parametrize("pads", [0, 3])
def test_probabilities_sum_to_one(pads):
    scores = torch.randn(1, 5 + pads, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3
    mask = torch.arange(5 + pads)[None] < 5
    rankings = torch.cat([orders(5), torch.arange(5, 5 + pads).expand(1, 120, pads)], -1)
    assert policy.log_prob(scores, rankings, mask).exp().sum().item() == pytest.approx(1.0, abs=1e-12)
    assert policy.log_prob(scores, rankings, mask, depth=2).exp().sum().item() == pytest.approx(6.0)  # each prefix 3! times


def test_wide_scores_keep_values_and_gradients_finite():
    scores = torch.tensor([[2e4, 0.0, -2e4, 1e30]], requires_grad=True)
    mask = torch.tensor([[True, True, True, False]])
    logp = policy.log_prob(scores, torch.tensor([[[2, 1, 0, 3], [0, 1, 2, 3]]]), mask)
    assert logp[0].tolist() == pytest.approx([-6e4, 0.0])
    logp.sum().backward()
    assert scores.grad.isfinite().all()


def test_gumbel_frequencies_are_the_probabilities():
    draws = 40_000
    rankings = policy.sample_rankings(S3, FULL3, num_samples=draws, temperature=1.5, generator=torch.Generator().manual_seed(0))
    every = orders(3)
    chance = policy.log_prob(S3, every, FULL3, temperature=1.5).exp()[0]
    found = (rankings[0][:, None] == every[0][None]).all(-1).double().mean(0)
    assert found.sum().item() == 1.0
    assert ((found - chance).abs() < 4 * (chance * (1 - chance) / draws).sqrt()).all()


def test_rankings_hold_the_candidates_first_and_padding_last():
    scores = torch.tensor([[0.0, 1e9, 1.0, 2.0]])
    mask = torch.tensor([[True, False, True, True]])
    rankings = policy.sample_rankings(scores, mask, num_samples=50)
    assert (rankings[..., -1] == 1).all()
    assert (rankings.sort(-1).values == torch.arange(4)).all()


def test_noise_of_an_example_stands_alone():
    """The same whatever the batch, its order and its width; other steps and ids differ; more samples keep the first ones."""
    alone = policy.gumbel_noise(["b"], [3], num_samples=4, seed=7, step=2)
    beside = policy.gumbel_noise(["a", "b"], [5, 3], num_samples=4, seed=7, step=2)
    assert torch.equal(alone[0], beside[1, :, :3])
    assert beside[1, :, 3:].abs().sum() == 0
    assert torch.equal(policy.gumbel_noise(["b"], [3], num_samples=9, seed=7, step=2)[0, :4], alone[0])
    assert not torch.equal(policy.gumbel_noise(["b"], [3], num_samples=4, seed=7, step=3), alone)
    noise = policy.gumbel_noise(["c"], [2000], num_samples=50, seed=0, step=0)
    assert noise.mean().item() == pytest.approx(0.5772, abs=0.02)
    assert noise.var().item() == pytest.approx(math.pi**2 / 6, abs=0.04)


def test_next_choice_along_a_ranking_by_hand():
    logp, left = policy.next_choice(S3, torch.tensor([[[0, 2, 1]]]), FULL3, depth=3)
    assert left[0, 0].tolist() == [[True] * 3, [False, True, True], [False, True, False]]
    z = math.exp(1) + 1 + math.exp(-1)
    assert logp[0, 0, 0].exp().tolist() == pytest.approx([math.exp(1) / z, 1 / z, math.exp(-1) / z])
    assert logp[0, 0, 1, 2].exp().item() == pytest.approx(1 / (1 + math.e))
    assert logp[0, 0, 2, 1].item() == 0.0


def test_next_choice_adds_up_to_log_prob():
    scores, mask = torch.randn(2, 4, dtype=torch.float64), torch.tensor([[True] * 4, [True, True, True, False]])
    rankings = policy.sample_rankings(scores, mask, num_samples=5)
    logp, _ = policy.next_choice(scores, rankings, mask, depth=4)
    picked = torch.take_along_dim(logp, rankings[..., None], -1)[..., 0].sum(-1)
    torch.testing.assert_close(picked, policy.log_prob(scores, rankings, mask))


def test_ranking_kl_by_enumeration():
    """Chain rule: the stepwise KL, averaged over all rankings with their chance, is the KL between rankings (.216377)."""
    s, t = torch.tensor([[2.0, 0.0, -1.0]], dtype=torch.float64), torch.tensor([[1.0, 0.5, -0.5]], dtype=torch.float64)
    every = orders(3)
    ps, pt = policy.log_prob(s, every, FULL3)[0], policy.log_prob(t, every, FULL3)[0]
    whole = (ps.exp() * (ps - pt)).sum().item()
    steps = torch.stack([stepwise_kl(s, t, every[:, i : i + 1], FULL3, depth=3)[0] for i in range(6)])
    assert (ps.exp() * steps).sum().item() == pytest.approx(whole, abs=1e-12) == pytest.approx(0.216377, abs=1e-6)


def test_precision_and_refusals():
    assert policy.log_prob(S3.bfloat16(), orders(3), FULL3).dtype == torch.float32
    assert policy.log_prob(S3, orders(3), FULL3).dtype == torch.float64
    with pytest.raises(NonFiniteScoreError, match="nan"):
        policy.sample_rankings(torch.tensor([[0.0, float("nan")]]), torch.ones(1, 2, dtype=torch.bool), num_samples=2)
    with pytest.raises(ConfigError, match="temperature"):
        policy.sample_rankings(S3, FULL3, num_samples=2, temperature=0.0)
    with pytest.raises(ConfigError, match="num_samples"):
        policy.sample_rankings(S3, FULL3, num_samples=0)

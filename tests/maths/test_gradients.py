"""Sampled policy gradients against the exact one: unbiased where they say so, with an error that falls as 1 / sqrt(samples)."""

import pytest
import torch

from steadyrank.objectives import build

RANDOM = torch.Generator().manual_seed(11)
SCORES = torch.randn(1, 5, dtype=torch.float64, generator=RANDOM)
TEACHER = torch.randn(1, 5, dtype=torch.float64, generator=RANDOM)
MASK = torch.ones(1, 5, dtype=torch.bool)
K, HEAT = 3, 1.3
PLAIN = {"k": K, "kl": 0.0, "entropy": 0.0, "temperature": HEAT}

ESTIMATORS = {
    "leave_one_out": ("a3", {"baseline": "leave_one_out", "scale": "none"}),
    "leave_one_out, all picks": ("a3", {"baseline": "leave_one_out", "scale": "none", "depth": "full"}),
    "no baseline": ("a3", {"baseline": "none", "scale": "none"}),
    "pl_rank": ("placement", {}),
    "pl_rank, not centred": ("placement", {"centred": False}),
    "reward_to_go": ("placement", {"credit": "reward_to_go"}),
    "reward_to_go, not centred": ("placement", {"credit": "reward_to_go", "centred": False}),
}


def gradients(name, settings, *, groups, samples, seed=0):
    """One gradient a group: `groups` copies of the list in one batch."""
    scores = SCORES.expand(groups, -1).clone().requires_grad_()
    objective = build(name, **PLAIN, **settings, **({"num_samples": samples} if samples else {}))
    out = objective(
        scores, TEACHER.expand(groups, -1), MASK.expand(groups, -1), generator=torch.Generator().manual_seed(seed) if samples else None
    )
    out.total.backward()
    return scores.grad


EXACT = gradients("exact", {}, groups=1, samples=0)[0]


@pytest.mark.parametrize("which", ESTIMATORS)
def test_sampled_gradient_is_unbiased(which):
    found = gradients(*ESTIMATORS[which], groups=20_000, samples=4)
    error = found.std(0) / 20_000**0.5
    assert ((found.mean(0) - EXACT).abs() < 4.5 * error).all()
    assert (error < 0.05 * EXACT.norm()).all()  # a test that could not fail would prove nothing


def test_mean_baseline_is_g_minus_one_over_g():
    found = gradients("a3", {"scale": "none"}, groups=20_000, samples=2)
    error = found.std(0) / 20_000**0.5
    assert ((found.mean(0) - EXACT / 2).abs() < 4.5 * error).all()
    assert not ((found.mean(0) - EXACT).abs() < 4.5 * error).all()


@pytest.mark.parametrize("which", ["leave_one_out", "pl_rank", "reward_to_go"])
def test_error_falls_as_one_over_root_samples(which):
    errors = [(gradients(*ESTIMATORS[which], groups=300, samples=g) - EXACT).square().sum(-1).mean().sqrt().item() for g in (8, 32, 128)]
    for wide, narrow in zip(errors, errors[1:]):
        assert wide / narrow == pytest.approx(2.0, rel=0.2)


def test_off_policy_ratio_without_clip_is_unbiased():
    """Rankings of the teacher's policy, weighted by p_S / p_T, give the student's gradient."""
    settings = {"clip_low": 1.0, "clip_high": 1e9, "ratio_limit": 1e9, "baseline": "none", "scale": "none"}
    found = gradients("a2", settings, groups=20_000, samples=4)
    error = found.std(0) / 20_000**0.5
    assert ((found.mean(0) - EXACT).abs() < 4.5 * error).all()


def test_stepwise_kl_and_k2_have_the_gradient_of_the_kl_and_k3_that_of_the_forward_kl():
    """At a student near its anchor all agree; k2 is checked away from it, against enumeration."""
    import itertools

    from steadyrank.objectives.terms import sampled_kl
    from steadyrank.policy import log_prob, sample_rankings

    orders = torch.tensor([list(itertools.permutations(range(3)))])
    s = torch.tensor([[0.8, 0.0, -0.4]], dtype=torch.float64, requires_grad=True)
    t, mask = torch.tensor([[0.0, 0.5, 0.0]], dtype=torch.float64), torch.ones(1, 3, dtype=torch.bool)
    ps, pt = log_prob(s, orders, mask)[0], log_prob(t, orders, mask)[0]
    reverse = torch.autograd.grad((ps.exp() * (ps - pt)).sum(), s, retain_graph=True)[0]
    forward = torch.autograd.grad((pt.exp() * (pt - ps)).sum(), s)[0]
    rankings = sample_rankings(s, mask, num_samples=200_000, generator=torch.Generator().manual_seed(0))
    for estimator, expected in (("k1", torch.zeros_like(s)), ("k2", reverse), ("k3", forward)):
        value, _ = sampled_kl(s, t, rankings, mask, estimator=estimator, depth=3)
        got = torch.autograd.grad(value.sum(), s)[0]
        assert (got - expected).abs().max().item() < 0.01
    assert (reverse - forward).abs().max().item() > 0.02

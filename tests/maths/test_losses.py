"""Values of single losses by hand, and the estimators of KL."""

import math

import pytest
import torch

from steadyrank.objectives import build
from steadyrank.objectives.approx_ndcg import soft_ranks
from steadyrank.objectives.list_mle import position_weights
from steadyrank.objectives.terms import first_choice_entropy, first_choice_kl, jensen_shannon, kl_estimate
from steadyrank.policy import first_choice, log_prob, rank_with_noise, sample_rankings
from steadyrank.rewards import group_advantages, ndcg_reward, rank_normalize

S = torch.tensor([[2.0, 0.0, -1.0]], dtype=torch.float64)
T = torch.tensor([[1.0, 0.5, -0.5]], dtype=torch.float64)
FULL = torch.ones(1, 3, dtype=torch.bool)


def value(name, scores=S, targets=T, **settings):
    return build(name, **settings)(scores, targets, FULL[:, : scores.shape[1]]).total.item()


def test_marginal_divergences():
    assert first_choice_kl(S, T, FULL).item() == pytest.approx(0.199977, abs=1e-6)
    assert first_choice_kl(T, S, FULL).item() == pytest.approx(0.245891, abs=1e-6)
    assert first_choice_entropy(S, FULL).item() == pytest.approx(0.524267, abs=1e-6)
    assert jensen_shannon(first_choice(S, FULL), first_choice(T, FULL), FULL, beta=0.5).item() == pytest.approx(0.053834, abs=1e-6)


def test_listwise_kd_is_the_cross_entropy_less_the_teachers_entropy():
    assert value("a1") + first_choice_entropy(T, FULL).item() == pytest.approx(1.198699, abs=1e-6)
    assert value("a1", reverse=True) == pytest.approx(0.199977, abs=1e-6)
    assert value("a1", scores=T) == pytest.approx(0.0, abs=1e-12)
    assert value("a1", temperature=2.0) == pytest.approx(first_choice_kl(T / 2, S / 2, FULL).item())


def test_list_mle():
    assert value("list_mle") == pytest.approx(0.483108, abs=1e-6)
    first, second = -math.log(math.exp(2) / (math.exp(2) + 1 + math.exp(-1))), math.log1p(math.exp(-1))
    assert value("list_mle", position_weights=True) == pytest.approx(0.75 * first + 0.25 * second) == pytest.approx(0.205700, abs=1e-6)
    assert value("list_mle", k=1) == pytest.approx(first)
    mask = torch.tensor([[True, True, True, False]])
    assert position_weights(mask, torch.zeros(1, 4, dtype=torch.float64))[0].tolist() == pytest.approx([0.75, 0.25, 0, 0])


def test_ranknet():
    terms = [math.log1p(math.exp(-gap)) for gap in (2.0, 3.0, 1.0)]
    assert sum(terms) == pytest.approx(0.488777, abs=1e-6)
    assert value("a10") == pytest.approx(sum(terms) / 3)
    assert value("a10", targets=torch.tensor([[1.0, 0.0, 0.0]])) == pytest.approx((terms[0] + terms[1]) / 2)  # the tie is skipped
    weights = [0.5, 1.5, 1.0]
    assert value("a10", weight="difference") == pytest.approx(sum(w * x for w, x in zip(weights, terms)) / sum(weights))
    assert value("a10", margin=0.6) == pytest.approx((terms[1] + terms[2]) / 2)


def test_margin_mse():
    """Margins 2, 3, 1 of the student against .5, 1.5, 1 of the teacher."""
    assert value("margin_mse", pairs="top") == pytest.approx(2.25)
    assert value("margin_mse") == pytest.approx((1.5**2 + 1.5**2 + 0.0) / 3)


def test_soft_ranks_and_approx_ndcg():
    ranks = soft_ranks(S, FULL, alpha=1.0)[0]
    assert ranks.tolist() == pytest.approx([1.166629, 2.149738, 2.683633], abs=1e-6)
    gains = [1.0, math.sqrt(2) - 1, 0.0]
    ideal = gains[0] + gains[1] / math.log2(3)
    expected = -sum(g / math.log2(1 + r) for g, r in zip(gains, ranks.tolist())) / ideal
    assert value("approx_ndcg", alpha=1.0) == pytest.approx(expected)
    assert value("approx_ndcg", alpha=1000.0) == pytest.approx(-1.0)


def test_lambda_loss_counts_ranks_from_one():
    """Gains 1, .414, 0 over their ideal; swapping ranks i and j changes |1/log2(i + 1) - 1/log2(j + 1)|."""
    gains, discount = [1.0, math.sqrt(2) - 1, 0.0], [1.0, 1 / math.log2(3), 0.5]
    ideal = gains[0] + gains[1] * discount[1]
    expected = sum(
        (gains[i] - gains[j]) / ideal * (discount[i] - discount[j]) * math.log1p(math.exp(-(S[0, i] - S[0, j]).item()))
        for i, j in ((0, 1), (0, 2), (1, 2))
    )
    assert value("lambda") == pytest.approx(expected)
    ndcg2 = {1: 1 - 1 / math.log2(3), 2: 1 / math.log2(3) - 0.5}
    assert value("lambda", weighting="ndcg2") == pytest.approx(
        sum(
            (gains[i] - gains[j]) / ideal * ndcg2[j - i] * math.log1p(math.exp(-(S[0, i] - S[0, j]).item()))
            for i, j in ((0, 1), (0, 2), (1, 2))
        )
    )


def test_bce_scales_grades_and_leaves_the_unjudged_out():
    gold = torch.tensor([[2.0, 1.0, -1.0]], dtype=torch.float64)
    first = math.log1p(math.exp(-2.0))
    second = math.log(2.0)  # a score of 0 costs log 2 whatever the label
    assert value("a7", targets=gold) == pytest.approx((first + second) / 2)
    third = math.log1p(math.exp(-1.0))
    assert value("a7", targets=torch.tensor([[2.0, 1.0, 0.0]])) == pytest.approx((first + second + third) / 3)
    assert value("a7", targets=torch.tensor([[1.0, 0.0, 1.0]]), labels="binary") == pytest.approx((first + second + 1 + third) / 3)
    half = 0.5 * math.log1p(math.exp(-2.0)) + 0.5 * math.log1p(math.exp(2.0))
    assert value("a7", targets=torch.tensor([[1.0, 0.0, 0.0]]), max_grade=2.0) == pytest.approx((half + second + third) / 3)


def test_jensen_shannon_by_hand_and_its_ends():
    """Coefficients as documented; the ends are the two KLs and not zero."""
    s, t = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64), torch.tensor([0.3, 0.3, 0.4], dtype=torch.float64)
    left = torch.ones(3, dtype=torch.bool)

    def kl(p, q):
        return sum(a * math.log(a / b) for a, b in zip(p.tolist(), q.tolist()))

    for beta in (0.1, 0.5, 0.9):
        m = beta * t + (1 - beta) * s
        got = jensen_shannon(s.log(), t.log(), left, beta=beta).item()
        assert got == pytest.approx(beta * kl(t, m) + (1 - beta) * kl(s, m))
        assert jensen_shannon(t.log(), t.log(), left, beta=beta).item() == pytest.approx(0.0, abs=1e-12)
    assert jensen_shannon(s.log(), t.log(), left, beta=0.0).item() == pytest.approx(kl(t, s))
    assert jensen_shannon(s.log(), t.log(), left, beta=1.0).item() == pytest.approx(kl(s, t))


def test_kl_estimators():
    r = torch.tensor([-0.2], dtype=torch.float64)
    assert [round(kl_estimate(r, name).item(), 6) for name in ("k1", "k2", "k3")] == [0.2, 0.02, 0.018731]
    wide = torch.linspace(-90, 90, 181)
    assert (kl_estimate(wide, "k3") >= 0).all() and kl_estimate(wide, "k3").isfinite().all()


def test_kl_estimators_average_to_the_kl():
    s, t = torch.tensor([[1.0, 0.2, -0.5, 0.0]], dtype=torch.float64), torch.tensor([[0.4, 0.6, -0.2, 0.1]], dtype=torch.float64)
    mask, draws = torch.ones(1, 4, dtype=torch.bool), 100_000
    rankings = sample_rankings(s, mask, num_samples=draws, generator=torch.Generator().manual_seed(1))
    import itertools

    orders = torch.tensor([list(itertools.permutations(range(4)))])
    ps, pt = log_prob(s, orders, mask)[0], log_prob(t, orders, mask)[0]
    exact = (ps.exp() * (ps - pt)).sum().item()
    r = log_prob(t, rankings, mask)[0] - log_prob(s, rankings, mask)[0]
    for name in ("k1", "k3"):
        sample = kl_estimate(r, name)
        assert abs(sample.mean().item() - exact) < 3 * sample.std().item() / draws**0.5


def test_a3_is_its_formula():
    """-A log p over the first k picks, plus KL to the teacher, minus entropy, from the pieces of the other rooms."""
    objective = build("a3", num_samples=4, k=2)
    noise = -(-torch.rand(1, 4, 3, generator=torch.Generator().manual_seed(2)).log()).log()
    rankings = rank_with_noise(S, FULL, noise)
    advantages = group_advantages(ndcg_reward(rankings, rank_normalize(T, FULL), FULL, k=2))
    expected = -(advantages * log_prob(S, rankings, FULL, depth=2)).mean() + 0.199977 - 0.01 * 0.524267
    out = objective(S, T, FULL, noise_BGK=noise)
    assert out.total.item() == pytest.approx(expected.item(), abs=2e-6)
    total = sum(out.parts[name][0].item() for name in ("policy", "kl", "entropy"))
    assert out.total.item() == pytest.approx(total)


def test_flat_groups_pay_kl_only_and_not_even_that_when_dropped():
    targets = torch.zeros(1, 3, dtype=torch.float64)
    for settings, still in (({"kl": 0.0, "entropy": 0.0}, True), ({"drop_flat": True}, True), ({}, False)):
        scores = S.clone().requires_grad_()
        out = build("a3", **settings)(scores, targets, FULL, generator=torch.Generator().manual_seed(0))
        out.total.backward()
        assert out.parts["flat_groups"][0] == 1
        assert (scores.grad.abs().sum().item() == 0) == still


def test_clipped_ratio_by_hand():
    """Two candidates: the ratio of the teacher's certain order is p_S / p_T; beyond the clip a gain stops paying, a loss does not."""
    s, t = torch.tensor([[1.0, 0.0]], dtype=torch.float64), torch.tensor([[0.0, 0.0]], dtype=torch.float64)
    gold = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    noise = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])  # rankings (0, 1) and (1, 0)
    objective = build("a6", kl=0.0, entropy=0.0, num_samples=2, behaviour="teacher", scale="none")
    up, down = 2 / (1 + math.exp(-1)), 2 / (1 + math.exp(1))  # ratios 1.46 and .54
    half = (1 - 1 / math.log2(3)) / 2
    out = objective(s, gold, FULL[:, :2], anchor_BK=t, noise_BGK=noise)
    assert up > 1.2 and down < 0.8
    assert out.total.item() == pytest.approx(-(half * 1.2 - half * 0.8) / 2)
    assert out.parts["clipped"][0] == 1.0
    swapped = objective(s.flip(-1), gold, FULL[:, :2], anchor_BK=t, noise_BGK=noise)
    assert swapped.total.item() == pytest.approx(-(half * down - half * up) / 2)


def test_ratio_of_fresh_samples_changes_no_gradient():
    gradients = []
    for ratio in ("none", "ranking", "pick"):
        scores = S.clone().requires_grad_()
        out = build("a3", ratio=ratio)(scores, T, FULL, generator=torch.Generator().manual_seed(4))
        out.total.backward()
        gradients.append(scores.grad)
    torch.testing.assert_close(gradients[0], gradients[1])
    torch.testing.assert_close(gradients[0], gradients[2])


def test_literal_a2_grows_until_its_guard_and_the_clipped_form_does_not():
    """The published form has no minimum; its guard stops a list whose scores span more than the limit, and says so."""
    targets = torch.tensor([[2.0, 1.0, 0.0, -1.0, -2.0]], dtype=torch.float64)
    mask = torch.ones(1, 5, dtype=torch.bool)
    spans = {}
    for literal in (True, False):
        scores, random = torch.zeros(1, 5, dtype=torch.float64), torch.Generator().manual_seed(0)
        objective = build("a2", literal=literal, span_limit=30.0)
        for _ in range(400):
            leaf = scores.clone().requires_grad_()
            out = objective(leaf, targets, mask, generator=random)
            out.total.backward()
            scores = scores - 0.3 * leaf.grad
        spans[literal] = (scores.max() - scores.min()).item()
        if literal:
            assert out.parts["span_guard"][0] == 1.0
    assert spans[True] > 30 and spans[False] < 15


def test_sigmoid_and_logit_files_of_one_teacher_give_one_loss():
    from steadyrank.rewards import logit

    for name in ("a1", "margin_mse", "a10", "a3"):
        noise = torch.zeros(1, 8, 3)
        losses = [build(name)(S, t, FULL, noise_BGK=noise).total.item() for t in (T, logit(T.sigmoid()))]
        assert losses[0] == pytest.approx(losses[1], abs=1e-4)


def test_scales_multiply_scores():
    noise = torch.zeros(1, 8, 3)
    scaled = build("a3", score_scale=0.5, teacher_scale=2.0)(S, T, FULL, noise_BGK=noise).total
    torch.testing.assert_close(scaled, build("a3")(S * 0.5, T * 2.0, FULL, noise_BGK=noise).total)

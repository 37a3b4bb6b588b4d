"""The enumerated cases of shared/goldens, in float64 to 1e-6 and in float32 to 1e-4."""

import json

import pytest
import torch

from steadyrank import objectives, policy
from steadyrank.metrics import mrr, ndcg
from steadyrank.objectives.gkd import GkdSettings, along
from steadyrank.objectives.terms import first_choice_entropy, first_choice_kl
from steadyrank.rewards import group_advantages, ndcg_reward, rank_normalize

CASES = range(6)
DTYPES = {torch.float64: 1e-6, torch.float32: 1e-4}


@pytest.fixture(scope="module")
def cases(shared_dir):
    return json.loads((shared_dir / "goldens" / "expected_values.json").read_text())["ranking"]


@pytest.fixture(params=CASES)
def case(request, cases):
    assert len(cases) == len(CASES)
    return cases[request.param]


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request):
    return request.param


def close(got, expected, dtype):
    expected = torch.as_tensor(expected, dtype=dtype)
    torch.testing.assert_close(got.detach(), expected, atol=DTYPES[dtype], rtol=DTYPES[dtype])


def inputs(case, dtype, pad=2):
    """The case with garbage padding, so that every golden value is also a padding test."""
    width = len(case["scores"])
    rows = {name: torch.tensor([case[name] + [9e3] * pad], dtype=dtype) for name in ("scores", "teacher", "gold", "relevance_teacher")}
    mask = torch.arange(width + pad)[None] < width
    rankings = torch.tensor([[row + list(range(width, width + pad)) for row in case["rankings"]]])
    return rows, mask, rankings


def test_policy(case, dtype):
    rows, mask, rankings = inputs(case, dtype)
    s, width = rows["scores"], len(case["scores"])
    close(policy.log_prob(s, rankings, mask)[0], case["log_prob_full"], dtype)
    close(policy.log_prob(s, rankings, mask, depth=case["k"])[0], case["log_prob_depth_k"], dtype)
    close(policy.log_prob(s, rankings, mask, temperature=0.5)[0], case["log_prob_temperature_0.5"], dtype)
    close(policy.first_choice(s, mask)[0, :width].exp(), case["first_choice"], dtype)
    close(first_choice_kl(s, rows["teacher"], mask)[0], case["kl_student_teacher"], dtype)
    close(first_choice_kl(rows["teacher"], s, mask)[0], case["kl_teacher_student"], dtype)
    close(first_choice_entropy(s, mask)[0], case["entropy_first_choice"], dtype)


def test_rewards_and_advantages(case, dtype):
    rows, mask, rankings = inputs(case, dtype)
    width = len(case["scores"])
    relevance = rank_normalize(rows["teacher"], mask)
    close(relevance[0, :width], case["relevance_teacher"], dtype)
    rewards = ndcg_reward(rankings, relevance, mask, k=case["k"])
    close(rewards[0], case["rewards"], dtype)
    rewards64 = torch.tensor([case["rewards"]], dtype=torch.float64)
    close(group_advantages(rewards64)[0], case["advantages_population_std"], torch.float64)


def test_metrics(case, dtype):
    rows, mask, rankings = inputs(case, dtype)
    close(mrr(rankings, rows["gold"], mask, k=case["k"])[0], case["mrr_gold"], dtype)
    for gain in ("exponential", "linear"):
        close(ndcg(rankings, rows["gold"], mask, k=case["k"], gain=gain)[0], case[gain]["ndcg_gold"], dtype)


@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_expected_ndcg_and_gradient(case, dtype, gain):
    rows, mask, _ = inputs(case, dtype)
    scores = rows["scores"].requires_grad_()
    value = policy.expected_ndcg(scores, rows["relevance_teacher"], mask, k=case["k"], gain=gain)
    close(value[0], case[gain]["expected_ndcg_teacher"], dtype)
    value.sum().backward()
    close(scores.grad[0], case[gain]["gradient_teacher"] + [0.0, 0.0], dtype)


def test_objectives(case, dtype):
    rows, mask, rankings = inputs(case, dtype)
    close(objectives.build("a10")(rows["scores"], rows["teacher"], mask).total, case["ranknet"], dtype)
    close(objectives.build("a1")(rows["scores"], rows["teacher"], mask).total, case["kl_teacher_student"], dtype)
    setting = GkdSettings(k=case["k"], beta=0.5)
    gkd = along(rows["scores"], rows["teacher"], rankings[:, :1], mask, setting=setting)
    close(gkd[0], case["gkd_beta_0.5_along_first_ranking"], dtype)
    exact = objectives.build("exact", k=case["k"], kl=0.0, entropy=0.0)(rows["scores"], rows["teacher"], mask)
    close(-exact.total, case["exponential"]["expected_ndcg_teacher"], dtype)

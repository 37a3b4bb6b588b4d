"""The table of invariants over every objective: a new line in OBJECTIVES is tested at once."""

import pytest
import torch

from steadyrank.errors import ConfigError, NonFiniteScoreError
from steadyrank.objectives import OBJECTIVES, LossSum, build
from steadyrank.policy import gumbel_noise

SIZES = (5, 3, 1, 7, 2)
K = max(SIZES)
# beside the presets: settings that walk other code
VARIANTS = {
    "a2": [{"literal": True}, {"ratio": "pick"}, {"paper_compat": True}],
    "a3": [
        {"baseline": "leave_one_out", "scale": "none", "depth": "full", "regret": True},
        {"kl_form": "stepwise", "drop_flat": True},
        {"kl_form": "k3", "relevance": "zsigmoid", "temperature": 0.5},
        {"behaviour": "uniform", "paper_compat": True},
    ],
    "a6_kl": [{"behaviour": "teacher"}],
    "a7": [{"labels": "binary"}],
    "a9": [{"beta": 0.0}, {"beta": 1.0, "num_samples": 1}],
    "a10": [{"weight": "difference", "margin": 0.1, "sigma": 2.0}],
    "a1": [{"reverse": True, "temperature": 2.0}],
    "placement": [{"credit": "reward_to_go"}, {"centred": False}],
    "lambda": [{"weighting": "ndcg2pp", "k": 2}],
    "list_mle": [{"position_weights": True}, {"k": 2}],
    "approx_ndcg": [{"full": False, "k": 2}],
    "margin_mse": [{"pairs": "top"}],
}
EVERY = [(name, {}) for name in OBJECTIVES] + [(name, setting) for name, settings in VARIANTS.items() for setting in settings]
every = pytest.mark.parametrize(
    "name,settings", EVERY, ids=lambda x: x if isinstance(x, str) else ",".join(f"{k}={v}" for k, v in x.items())
)


class Batch:
    """Lists of mixed sizes in float64, distinct scores, at least one positive grade in each, fixed noise."""

    def __init__(self, objective, sizes=SIZES, dtype=torch.float64, seed=0):
        random = torch.Generator().manual_seed(seed)
        self.objective = objective
        self.mask = torch.arange(max(sizes))[None] < torch.tensor(sizes)[:, None]
        shape = self.mask.shape
        self.scores = 2 * torch.randn(shape, dtype=dtype, generator=random)
        self.anchor = torch.randn(shape, dtype=dtype, generator=random)
        self.targets = torch.randn(shape, dtype=dtype, generator=random)
        if objective.target == "gold":
            self.targets = (self.targets > 0).to(dtype) * 2
            self.targets[:, 0] = 1.0
        samples = objective.num_samples
        self.noise = gumbel_noise([str(i) for i in range(len(sizes))], sizes, num_samples=samples, seed=seed, step=0) if samples else None

    def run(self, rows=slice(None)):
        """(LossSum, gradient) over some of the lists."""
        scores = self.scores[rows].clone().requires_grad_()
        anchor = self.anchor[rows] if self.objective.anchor else None
        noise = self.noise[rows] if self.noise is not None else None
        out = self.objective(scores, self.targets[rows], self.mask[rows], anchor_BK=anchor, noise_BGK=noise)
        out.total.backward()
        return out, scores.grad

    def permuted(self, order):
        for field in ("scores", "targets", "mask", "anchor", "noise"):
            value = getattr(self, field)
            if value is not None:
                setattr(self, field, value[..., order])
        return self


def same(a, b, tolerance=1e-9):
    torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)


@every
class TestEveryObjective:
    def test_padding_changes_nothing(self, name, settings):
        """Neither its width nor what it holds, not even NaN; the gradient there is exactly zero."""
        batch = Batch(build(name, **settings))
        loss, gradient = batch.run()
        for garbage in (1e6, -1e6, float("nan"), float("inf")):
            other = Batch(build(name, **settings))
            for field in ("scores", "targets", "anchor"):
                wide = torch.full((len(SIZES), K + 3), garbage, dtype=torch.float64)
                wide[:, :K] = torch.where(other.mask, getattr(other, field), garbage)
                setattr(other, field, wide)
            if other.noise is not None:
                other.noise = torch.nn.functional.pad(other.noise, (0, 3), value=50.0)
            other.mask = torch.nn.functional.pad(other.mask, (0, 3))
            loss2, gradient2 = other.run()
            same(loss2.total, loss.total)
            same(gradient2[:, :K], gradient)
            assert gradient2[~other.mask].abs().sum() == 0

    def test_candidate_order_changes_nothing(self, name, settings):
        batch = Batch(build(name, **settings))
        loss, gradient = batch.run()
        order = torch.randperm(K, generator=torch.Generator().manual_seed(5))
        loss2, gradient2 = batch.permuted(order).run()
        same(loss2.total, loss.total)
        same(gradient2, gradient[:, order])

    def test_batch_is_the_sum_of_its_lists(self, name, settings):
        batch = Batch(build(name, **settings))
        loss, gradient = batch.run()
        pieces = [batch.run(slice(i, i + 1)) for i in range(len(SIZES))]
        summed = pieces[0][0]
        for piece, _ in pieces[1:]:
            summed = summed + piece
        same(summed.total, loss.total)
        same(torch.cat([g for _, g in pieces]), gradient)
        assert summed.count == loss.count == batch.objective.live(batch.targets, batch.mask).sum() == len(SIZES) - 1
        assert summed.parts.keys() == loss.parts.keys()
        for key, (value, count) in loss.parts.items():
            same(summed.parts[key][0], value)
            assert summed.parts[key][1] == count and not value.requires_grad

    def test_nothing_to_rank_is_zero_with_a_zero_gradient(self, name, settings):
        """One candidate, and padding only: not live, and a batch of such lists divides nothing."""
        objective = build(name, **settings)
        batch = Batch(objective, sizes=(1, 4))
        batch.mask[1] = False
        loss, gradient = batch.run()
        assert loss.total == 0 and loss.count == 0 and gradient.abs().sum() == 0
        assert not objective.live(batch.targets, batch.mask).any()
        assert all(torch.isfinite(value) for value, _ in loss.parts.values())

    def test_equal_targets_or_scores_are_finite(self, name, settings):
        for field in ("targets", "scores"):
            batch = Batch(build(name, **settings))
            setattr(batch, field, torch.ones_like(batch.scores))
            loss, gradient = batch.run()
            assert loss.total.isfinite() and gradient.isfinite().all() and loss.count == len(SIZES) - 1

    def test_wide_scores_are_finite(self, name, settings):
        batch = Batch(build(name, **settings), dtype=torch.float32)
        batch.scores, batch.anchor = batch.scores * 100, batch.anchor * 100
        loss, gradient = batch.run()
        assert loss.total.isfinite() and gradient.isfinite().all()

    def test_precision(self, name, settings):
        """bf16 scores give an fp32 loss, also under autocast; float64 stays; float32 agrees with it."""
        exact, _ = Batch(build(name, **settings)).run()
        assert exact.total.dtype == torch.float64
        batch = Batch(build(name, **settings))
        for field in ("scores", "targets", "anchor"):
            setattr(batch, field, getattr(batch, field).bfloat16())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss, gradient = batch.run()
        assert loss.total.dtype == torch.float32 and gradient.dtype == torch.bfloat16
        for field in ("scores", "targets", "anchor"):
            setattr(batch, field, getattr(batch, field).double())
        again, _ = batch.run()
        same(loss.total.double(), again.total, 1e-4)

    def test_gradient_descends(self, name, settings):
        """A small step against the gradient lowers the loss where the loss is a function of the scores (nothing is sampled)."""
        batch = Batch(build(name, **settings))
        if batch.objective.num_samples:
            pytest.skip("sampled: its expectation is tested in test_gradients")
        loss, gradient = batch.run()
        batch.scores = batch.scores - 1e-4 * gradient / gradient.norm()
        assert batch.run()[0].total < loss.total

    def test_step_parts_are_logged(self, name, settings):
        batch = Batch(build(name, **settings))
        parts = batch.run()[0].parts
        assert {"score_spread", "argmax_probability", "policy_entropy"} <= parts.keys()
        if batch.objective.num_samples and name != "a9":
            assert {"policy", "reward", "reward_std", "flat_groups"} <= parts.keys()
        if batch.objective.target == "teacher":
            assert "kl_to_teacher" in parts

    def test_shift_changes_nothing(self, name, settings):
        """A constant added to all scores of a list says nothing about its order; only BCE reads absolute scores."""
        if name == "a7":
            pytest.skip("pointwise: reads absolute scores")
        batch = Batch(build(name, **settings))
        loss, gradient = batch.run()
        batch.scores = batch.scores + 3.0
        loss2, gradient2 = batch.run()
        same(loss2.total, loss.total, 1e-8)
        same(gradient2, gradient, 1e-8)

    def test_nan_score_raises(self, name, settings):
        batch = Batch(build(name, **settings))
        batch.scores[1, 2] = float("nan")
        with pytest.raises(NonFiniteScoreError, match=r"\[1, 2\].*nan"):
            batch.run()

    def test_same_generator_same_loss(self, name, settings):
        batch = Batch(build(name, **settings))
        anchor = batch.anchor if batch.objective.anchor else None
        losses = [
            batch.objective(batch.scores, batch.targets, batch.mask, anchor_BK=anchor, generator=torch.Generator().manual_seed(3)).total
            for _ in range(2)
        ]
        assert torch.equal(*losses)


def test_lists_without_a_positive_do_not_count():
    mask = torch.ones(3, 3, dtype=torch.bool)
    gold = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [-1.0, -1.0, 0.0]])
    for name in ("a6", "a7", "stage1", "a6_kl"):
        assert build(name).live(gold, mask).tolist() == [True, False, False]
    for name in ("a3", "exact", "a1"):
        assert build(name).live(gold, mask).tolist() == [True, True, True]


def test_half_masked_is_the_kept_half_alone():
    """Numerator and denominator see the same lists."""
    batch = Batch(build("a3"), sizes=(4, 4, 4, 4))
    batch.mask[2:] = False
    whole, kept = batch.run()[0], batch.run(slice(0, 2))[0]
    same(whole.total / whole.count, kept.total / kept.count)


@pytest.mark.parametrize("name,settings,message", [
    ("gprp", {}, "objective 'gprp' unknown"),
    ("plasement", {}, "placement"),
    ("a3", {"num_sample": 8}, "num_samples"),
    ("a3", {"num_samples": 1}, "at least 2"),
    ("stage1", {"num_samples": 1}, "at least 2"),
    ("a3", {"num_samples": 2.5}, "whole number"),
    ("a3", {"kl": "much"}, "finite number"),
    ("a3", {"kl": float("nan")}, "finite number"),
    ("a3", {"kl": -1}, "at least 0"),
    ("a3", {"temperature": 0}, "above 0"),
    ("a9", {"beta": 1.5}, "at most 1"),
    ("a3", {"scale": "sdt"}, "'std'"),
    ("a3", {"regret": 1}, "true or false"),
])  # fmt: skip
def test_wrong_names_and_values_are_told(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        build(name, **settings)


def test_presets_differ_in_what_they_say():
    assert (build("a3").settings.kl, build("a3").settings.entropy, build("a3").num_samples) == (1.0, 0.01, 8)
    assert build("a4").settings.kl == 0.0 and build("a4").settings.entropy == 0.01
    assert build("a5").settings.entropy == 0.0 and build("a5").settings.kl == 1.0
    assert build("a6").target == "gold" and build("a6").anchor is None and build("a6_kl").anchor == "teacher"
    stage1 = build("stage1")
    assert (stage1.target, stage1.anchor, stage1.settings.kl, stage1.settings.kl_form) == ("gold", "reference", 0.02, "stepwise")
    assert build("a1").num_samples == 0 and build("a4", kl=0.3).settings.kl == 0.3


def test_missing_teacher_is_told():
    scores, gold, mask = torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]), torch.ones(1, 2, dtype=torch.bool)
    with pytest.raises(ConfigError, match="anchor_BK"):
        build("a6_kl")(scores, gold, mask)


def test_settings_are_frozen_and_documented():
    from pathlib import Path

    with pytest.raises(AttributeError):
        build("a3").settings.kl = 2.0
    for file in (Path(__file__).parents[2] / "steadyrank" / "objectives").glob("*.py"):
        lines = file.read_text().splitlines()
        fields = [i for i, line in enumerate(lines) if line.startswith("    ") and "(frozen=True, kw_only=True)" not in line]
        for i in fields:
            if lines[i].lstrip().split(":")[0].isidentifier() and " = number(" in lines[i]:
                assert lines[i + 1].strip().startswith('"""'), f"{file.name}:{i + 1} has no docstring"


def test_importing_the_table_does_not_import_torch():
    import subprocess
    import sys

    code = "import sys, steadyrank.objectives, steadyrank.metrics; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_loss_sums_add():
    one, two = torch.tensor(1.0), torch.tensor(2)
    both = LossSum(one, two, {"a": (one, two)}) + LossSum(one, two, {"a": (one, two), "b": (one, two)})
    assert both.total == 2 and both.count == 4 and both.parts == {"a": (2, 4), "b": (1, 2)}

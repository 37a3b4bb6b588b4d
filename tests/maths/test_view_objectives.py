"""The table of invariants over every objective that reads views, the enumerated values, and the arithmetic of the two forms of lambda."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from steadyrank.errors import ConfigError, NonFiniteScoreError
from steadyrank.objectives import VIEW_OBJECTIVES, build
from steadyrank.objectives.label_regression import slot_weights
from steadyrank.objectives.views import Beside, pairwise_square, ramped, view_variance
from steadyrank.policy import gumbel_noise

SIZES, P, G = (5, 3, 1, 7, 2), 3, 4
K = max(SIZES)
VARIANTS = {
    "oc_sft": [{"form": "pairwise", "on": "all"}, {"ramp": 0.0, "weight": 0.0}],
    "kl_to_base": [{"logits": True}],
    "debias_first": [{"paper_compat": True}],
    "a3": [{"consistency": {"weight": 2.0}}, {"consistency": {"weight": 2.0, "on": "all", "form": "pairwise"}}],
    "a1": [{"consistency": {"weight": 1.0}}],
    "a6_kl": [{"consistency": {"weight": 1.0}}],
    "exact": [{"consistency": {"weight": 0.0, "views": 1}}],
    "margin_mse": [{"consistency": {"weight": 1.0, "on": "all"}}],
}
EVERY = [(name, {}) for name in VIEW_OBJECTIVES] + [(name, setting) for name, settings in VARIANTS.items() for setting in settings]
every = pytest.mark.parametrize("name,settings", EVERY, ids=lambda x: x if isinstance(x, str) else ",".join(map(str, x)) or "plain")
FIELDS = ("scores", "targets", "mask", "weights", "shadow", "logits", "base", "anchor", "noise")


class Batch:
    """Lists of mixed sizes in float64: scores strictly inside (0, 1), P views, everything that may lie beside them."""

    def __init__(self, name, settings, sizes=SIZES, dtype=torch.float64, seed=0):
        random = torch.Generator().manual_seed(seed)
        settings = dict(settings)
        self.reads_logits = settings.pop("logits", False)
        self.objective = build(name, **settings)
        self.mask = torch.arange(max(sizes))[None] < torch.tensor(sizes)[:, None]
        lists, width = self.mask.shape

        def normal(*shape):
            return torch.randn(shape, dtype=dtype, generator=random)

        self.scores = (normal(lists, P, width)).sigmoid()
        self.targets = normal(lists, width).sigmoid()
        if self.objective.target == "gold":
            self.targets = (self.targets > 0.5).to(dtype) * 2
            self.targets[:, 0] = 1.0
        self.weights = normal(lists, P, width).exp()
        self.shadow = normal(lists, P, width).sigmoid()
        self.logits, self.base = normal(lists, P, width, G), normal(lists, P, width, G)
        self.anchor = normal(lists, width)
        self.noise = (
            gumbel_noise([str(i) for i in range(lists)], sizes, num_samples=self.objective.num_samples, seed=seed, step=0)
            if self.objective.num_samples
            else None
        )
        self.progress = 0.1

    def of(self, scores, rows=slice(None), *, logits=None):
        objective = self.objective
        beside = Beside(
            progress=self.progress,
            weights_BPK=self.weights[rows],
            shadow_BPK=self.shadow[rows],
            logits_BPKG=logits if logits is not None else self.logits[rows] if self.reads_logits else None,
            shadow_logits_BPKG=self.base[rows] if self.reads_logits else None,
            anchor_BK=self.anchor[rows] if objective.anchor else None,
            noise_BGK=self.noise[rows] if self.noise is not None else None,
        )
        return objective(scores, self.targets[rows], self.mask[rows], beside=beside)

    def run(self, rows=slice(None)):
        """(LossSum, gradient) over some of the lists."""
        scores = self.scores[rows].clone().requires_grad_()
        out = self.of(scores, rows)
        out.total.backward()
        return out, scores.grad

    def change(self, change):
        for field in FIELDS:
            value = getattr(self, field)
            if value is not None:
                setattr(self, field, change(field, value))
        return self


def same(a, b, tolerance=1e-9):
    torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)


@every
class TestEveryViewObjective:
    @pytest.mark.parametrize("garbage", [1e6, -1e6, float("nan"), float("inf")])
    def test_padding_changes_nothing(self, name, settings, garbage):
        """Neither its width nor what it holds, in the scores and in all that lies beside them; the gradient there is exactly zero."""
        loss, gradient = Batch(name, settings).run()

        def widen(field, value):
            axis = -2 if field in ("logits", "base") else -1
            wide = value.movedim(axis, -1)
            fill = False if field == "mask" else 50.0 if field == "noise" else garbage
            wide = torch.nn.functional.pad(wide, (0, 3), value=fill)
            if field not in ("mask", "noise"):
                room = torch.nn.functional.pad(Batch(name, settings).mask, (0, 3))
                while room.dim() < wide.dim():
                    room = room[:, None]
                wide = torch.where(room, wide, garbage)
            return wide.movedim(-1, axis)

        other = Batch(name, settings).change(widen)
        loss2, gradient2 = other.run()
        same(loss2.total, loss.total)
        same(gradient2[..., :K], gradient)
        assert gradient2.movedim(1, -1)[~other.mask].abs().sum() == 0
        for key, (value, count) in loss.parts.items():
            same(loss2.parts[key][0], value)
            assert loss2.parts[key][1] == count

    def test_candidate_order_changes_nothing(self, name, settings):
        loss, gradient = Batch(name, settings).run()
        order = torch.randperm(K, generator=torch.Generator().manual_seed(5))
        turned = Batch(name, settings).change(lambda f, value: value[..., order, :] if f in ("logits", "base") else value[..., order])
        loss2, gradient2 = turned.run()
        same(loss2.total, loss.total)
        same(gradient2, gradient[..., order])

    def test_order_of_the_other_views_changes_nothing(self, name, settings):
        """View 0 is the anchor; the others have no rank among themselves."""
        loss, gradient = Batch(name, settings).run()
        order = [0, *reversed(range(1, P))]
        per_view = ("scores", "weights", "shadow", "logits", "base")
        turned = Batch(name, settings).change(lambda field, value: value[:, order] if field in per_view else value)
        loss2, gradient2 = turned.run()
        same(loss2.total, loss.total)
        same(gradient2, gradient[:, order])

    def test_batch_is_the_sum_of_its_lists(self, name, settings):
        batch = Batch(name, settings)
        loss, gradient = batch.run()
        pieces = [batch.run(slice(i, i + 1)) for i in range(len(SIZES))]
        summed = pieces[0][0]
        for piece, _ in pieces[1:]:
            summed = summed + piece
        same(summed.total, loss.total)
        same(torch.cat([g for _, g in pieces]), gradient)
        assert summed.count == loss.count == batch.objective.live(batch.targets, batch.mask).sum() == len(SIZES) - 1
        for key, (value, count) in loss.parts.items():
            same(summed.parts[key][0], value)
            assert summed.parts[key][1] == count and not value.requires_grad

    def test_nothing_to_rank_is_zero_with_a_zero_gradient(self, name, settings):
        batch = Batch(name, settings, sizes=(1, 4))
        batch.mask[1] = False
        loss, gradient = batch.run()
        assert loss.total == 0 and loss.count == 0 and gradient.abs().sum() == 0
        assert not batch.objective.live(batch.targets, batch.mask).any()
        assert all(torch.isfinite(value) for value, _ in loss.parts.values())

    def test_equal_views_have_no_variance(self, name, settings):
        batch = Batch(name, settings)
        batch.scores = batch.scores[:, :1].expand(-1, P, -1)
        loss, _ = batch.run()
        for part in ("variance", "penalty", "view_disagreement"):
            assert part not in loss.parts or loss.parts[part][0].abs() < 1e-12

    def test_precision(self, name, settings):
        """bf16 scores give an fp32 loss, also under autocast; float64 stays; float32 agrees with it."""
        assert Batch(name, settings).run()[0].total.dtype == torch.float64
        floats = ("scores", "targets", "weights", "shadow", "logits", "base", "anchor")
        batch = Batch(name, settings).change(lambda field, value: value.bfloat16() if field in floats else value)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss, gradient = batch.run()
        assert loss.total.dtype == torch.float32 and gradient.dtype == torch.bfloat16
        again, _ = batch.change(lambda field, value: value.double() if field in floats else value).run()
        same(loss.total.double(), again.total, 1e-4)

    def test_gradient_is_that_of_finite_differences(self, name, settings):
        batch = Batch(name, settings, sizes=(4, 2))
        if batch.objective.num_samples:
            pytest.skip("sampled: the drawn rankings jump; its expectation is tested in test_gradients")
        scores = batch.scores.clone().requires_grad_()
        assert torch.autograd.gradcheck(lambda value: batch.of(value).total, (scores,), eps=1e-6, atol=1e-6)
        if batch.reads_logits:
            logits = batch.logits.clone().requires_grad_()
            assert torch.autograd.gradcheck(lambda value: batch.of(batch.scores, logits=value).total, (logits,), eps=1e-6, atol=1e-6)

    def test_logits_are_read_through_the_sigmoid(self, name, settings):
        """The same grades from a scorer of either scale give the same loss."""
        batch = Batch(name, settings)
        loss, _ = batch.run()
        beside = Beside(
            progress=batch.progress, scale="logit", weights_BPK=batch.weights, shadow_BPK=batch.shadow.logit(),
            logits_BPKG=batch.logits if batch.reads_logits else None, shadow_logits_BPKG=batch.base if batch.reads_logits else None,
            anchor_BK=batch.anchor if batch.objective.anchor else None, noise_BGK=batch.noise,
        )  # fmt: skip
        same(batch.objective(batch.scores.logit(), batch.targets, batch.mask, beside=beside).total, loss.total)

    def test_nan_score_raises(self, name, settings):
        batch = Batch(name, settings)
        batch.scores[1, 0, 2] = float("nan")
        with pytest.raises(NonFiniteScoreError, match=r"\[1, 0, 2\].*nan"):
            batch.run()

    def test_parts_are_logged(self, name, settings):
        parts = Batch(name, settings).run()[0].parts
        assert {"score_sd", "view_disagreement"} <= parts.keys()
        if name in ("oc_sft", "marker_consistency", "a3"):
            assert {"variance", "lambda", "penalty"} <= parts.keys()


@pytest.fixture(scope="module")
def cases(shared_dir):
    return json.loads((shared_dir / "goldens" / "expected_values.json").read_text())["stability"]


@pytest.mark.parametrize("which,views", [("first_two_views", 2), ("all_views", None)])
def test_enumerated_values(cases, which, views):
    assert len(cases) >= 3
    for case in cases:
        scores = torch.tensor(case["scores_PK"], dtype=torch.float64)[None, :views]
        labels = torch.tensor(case["labels"], dtype=torch.float64)[None]
        out = build("oc_sft", weight=3.0)(scores, labels, torch.ones_like(labels, dtype=torch.bool))
        expected = case[f"oc_sft_lambda_3_{which}"]
        assert out.total.item() == pytest.approx(expected["loss"], abs=1e-9)
        assert out.parts["anchor"][0].item() == pytest.approx(expected["anchor"], abs=1e-9)
        assert out.parts["variance"][0].item() == pytest.approx(expected["variance"], abs=1e-9)
        assert out.parts["lambda"][0].item() == 3.0


@pytest.mark.parametrize("views", [2, 3, 8])
def test_pairwise_is_the_mean_over_pairs(views):
    """Against the pairs written out; and the conversion 2P / (P - 1), which is 4 for two views."""
    scores = torch.rand(2, views, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(views))
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    for row, size in ((0, 5), (1, 3)):
        pairs = [(scores[row, i, :size] - scores[row, j, :size]).square().mean() for i in range(views) for j in range(i)]
        same(pairwise_square(scores, mask)[row], torch.stack(pairs).mean())
    same(pairwise_square(scores, mask), 2 * views / (views - 1) * view_variance(scores, mask))
    labels = torch.zeros(2, 5, dtype=torch.float64)
    pairwise = build("oc_sft", form="pairwise", weight=1.0)(scores, labels, mask).total
    paper = build("oc_sft", form="paper", weight=2 * views / (views - 1))(scores, labels, mask).total
    same(pairwise, paper)


def test_only_the_first_view_is_labelled_and_all_views_move():
    scores = torch.tensor([[[0.2, 0.8], [0.6, 0.4]]], dtype=torch.float64, requires_grad=True)
    labels, mask = torch.tensor([[0.0, 1.0]], dtype=torch.float64), torch.ones(1, 2, dtype=torch.bool)
    build("oc_sft", weight=4.0)(scores, labels, mask).total.backward()
    # anchor: 2 (s - y) / 2 on view 1; variance of two views is (a - b)^2 / 4 a candidate, so its gradient is +-4 (a - b) / 2 / 2
    same(scores.grad, torch.tensor([[[0.2 - 0.4, -0.2 + 0.4], [0.4, -0.4]]], dtype=torch.float64))


def test_ramp_is_a_fraction_of_the_steps():
    assert [ramped(4.0, 0.2, progress) for progress in (0.0, 0.1, 0.2, 0.9)] == [0.0, 2.0, 4.0, 4.0]
    assert ramped(4.0, 0.0, 0.0) == 4.0
    batch = Batch("oc_sft", {"weight": 3.0})
    parts = batch.run()[0].parts
    same(parts["lambda"][0] / parts["lambda"][1], torch.tensor(1.5, dtype=torch.float64))
    same(parts["penalty"][0], 1.5 * parts["variance"][0])


def test_mean_teacher_reads_its_own_first_view_and_the_shadow():
    scores = torch.tensor([[[0.5, 0.1]]], dtype=torch.float64, requires_grad=True)
    labels, mask = torch.tensor([[1.0, 0.1]], dtype=torch.float64), torch.ones(1, 2, dtype=torch.bool)
    shadow = torch.tensor([[[0.3, 0.2], [0.5, 0.2]]], dtype=torch.float64)  # its mean: .4, .2
    out = build("mean_teacher")(scores, labels, mask, beside=Beside(shadow_BPK=shadow))
    assert out.total.item() == pytest.approx(0.25 / 2 + 0.5 * (0.01 + 0.01) / 2)


def test_kl_to_base_is_zero_at_the_start_and_known_elsewhere():
    labels, mask = torch.tensor([[0.5, 0.5]], dtype=torch.float64), torch.ones(1, 2, dtype=torch.bool)
    grades = torch.tensor([[[0.5, 0.5]]], dtype=torch.float64)
    base = torch.tensor([[[0.25, 0.5]]], dtype=torch.float64)
    objective = build("kl_to_base", weight=1.0)
    assert objective(grades, labels, mask, beside=Beside(shadow_BPK=grades)).total.item() == pytest.approx(0.0, abs=1e-12)
    expected = (0.5 * torch.log(torch.tensor(2.0)) + 0.5 * torch.log(torch.tensor(0.5 / 0.75))).item() / 2
    assert objective(grades, labels, mask, beside=Beside(shadow_BPK=base)).total.item() == pytest.approx(expected, abs=1e-7)
    two = torch.tensor([[[[0.0, 0.0], [0.0, 0.0]]]], dtype=torch.float64)
    other = torch.tensor([[[0.75, 0.25], [0.5, 0.5]]], dtype=torch.float64).log()[None]
    found = objective(grades, labels, mask, beside=Beside(logits_BPKG=two, shadow_logits_BPKG=other)).total.item()
    assert found == pytest.approx(expected, abs=1e-7)
    with pytest.raises(ConfigError, match="model's start"):
        objective(grades, labels, mask)


def test_slot_weights_are_inverse_shares_with_mean_one_and_a_limit():
    weights = slot_weights(torch.tensor([3.0, 1.0]), smoothing=1e-12, limit=None)
    torch.testing.assert_close(weights, torch.tensor([0.5, 1.5], dtype=torch.float64))
    never = slot_weights(torch.tensor([1000.0, 1000.0, 0.0]), smoothing=1e-3, limit=None)
    assert never[2] > 2.99 and never.mean() == pytest.approx(1.0)
    assert slot_weights(torch.tensor([1000.0, 1000.0, 0.0]), smoothing=1e-3, limit=2.0)[2] == 2.0


def test_weights_of_one_are_augmentation():
    batch = Batch("debias_first", {})
    batch.weights = torch.full_like(batch.weights, 7.0)
    plain = Batch("permutation_augmentation", {})
    same(batch.run()[0].total, plain.run()[0].total)
    with pytest.raises(ConfigError, match="weights_BPK"):
        batch.objective(batch.scores, batch.targets, batch.mask)


def test_steady_is_the_objective_plus_the_variance():
    batch = Batch("a3", {"consistency": {"weight": 2.0, "ramp": 0.0}})
    plain = build("a3")(batch.scores[:, 0].logit(), batch.targets, batch.mask, noise_BGK=batch.noise)
    live = batch.mask.sum(-1) > 1
    variance = view_variance(batch.scores * batch.mask[:, None], batch.mask)[live].sum()
    same(batch.run()[0].total, plain.total + 2.0 * variance)


def test_steady_on_all_views_is_the_mean_of_the_objective_over_them():
    batch = Batch("a1", {"consistency": {"weight": 0.0, "on": "all"}})
    plain = [build("a1")(batch.scores[:, view].logit(), batch.targets, batch.mask) for view in range(P)]
    loss = batch.run()[0]
    same(loss.total, torch.stack([one.total for one in plain]).mean())
    same(loss.parts["kl_to_teacher"][0], torch.stack([one.parts["kl_to_teacher"][0] for one in plain]).mean())


def test_bounded_scores_become_unbounded_before_a_policy_reads_them():
    """At the ends of [0, 1] utilities stay finite; between them a policy can become as sure as it likes."""
    batch = Batch("a3", {"consistency": {"weight": 0.0, "views": 1}}, sizes=(3,))
    batch.scores = torch.tensor([[[1.0, 0.0, 0.0]]], dtype=torch.float64)
    batch.weights, batch.shadow = batch.weights[:, :1], batch.shadow[:, :1]
    loss, gradient = batch.run()
    assert loss.total.isfinite() and gradient.isfinite().all()
    assert loss.parts["argmax_probability"][0] > 0.999


@pytest.mark.parametrize("name,settings,message", [
    ("oc_stf", {}, "oc_sft"),
    ("oc_sft", {"wieght": 1}, "weight"),
    ("oc_sft", {"views": 1}, "at least 2"),
    ("oc_sft", {"form": "pair"}, "'pairwise'"),
    ("oc_sft", {"ramp": 2}, "at most 1"),
    ("a3", {"consistency": {"wieght": 1}}, "weight"),
    ("a3", {"consistency": 3}, "weight: 3"),
    ("oc_sft", {"consistency": {"weight": 1}}, "consistency"),
    ("mean_teacher", {"decay": 1.5}, "at most 1"),
    ("single_order", {"labels": "avg"}, "known: first, mean"),
])  # fmt: skip
def test_wrong_names_and_values_are_told(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        build(name, **settings)


def test_what_each_arm_lays_and_reads():
    laid = {name: build(name).laid for name in VIEW_OBJECTIVES}
    assert {name: views.count for name, views in laid.items()} == {
        "single_order": 1, "order_averaged": 1, "permutation_augmentation": 1, "debias_first": 2, "mean_teacher": 2, "kl_to_base": 1,
        "oc_sft": 2, "marker_consistency": 2,
    }  # fmt: skip
    assert laid["single_order"].kinds == laid["order_averaged"].kinds == laid["kl_to_base"].kinds == ("first_stage",)
    assert laid["permutation_augmentation"].kinds == laid["oc_sft"].kinds == ("shuffle",)
    assert laid["mean_teacher"].student == 1 and len(laid["marker_consistency"].markers) > 1
    assert build("order_averaged").settings.labels == "mean" and build("single_order").settings.labels == "first"
    assert build("kl_to_base").shadow_decay == 1.0 and build("mean_teacher", decay=0.9).shadow_decay == 0.9
    assert build("oc_sft").shadow_decay is None and build("a3", consistency={"views": 4}).laid.count == 4


def test_unknown_scales_are_refused():
    batch = Batch("oc_sft", {})
    with pytest.raises(ConfigError, match="grade"):
        batch.objective(batch.scores, batch.targets, batch.mask, beside=replace(Beside(), scale="grade"))

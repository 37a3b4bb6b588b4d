"""Training on views: what is laid, that training scores are scoring scores, that a step does not depend on its cut, the shadow, resume."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny_graders
import torch
import training_helpers as tiny

from steadyrank import objectives
from steadyrank.errors import ConfigError, InputError
from steadyrank.records import Presentation, RankingExample, ScoredList
from steadyrank.scoring import load_scorer
from steadyrank.scoring.joint_encoder import JointEncoder
from steadyrank.stability.psi import tau_psi
from steadyrank.training.ema import Shadow
from steadyrank.training.labels import Labels, fit_platt, grade_labels, read_labels, scorer_labels
from steadyrank.training.prepare import prepare
from steadyrank.training.run import train
from steadyrank.training.sampling import Draw, StepSampler
from steadyrank.training.settings import TrainSettings
from steadyrank.training.trainer import arguments
from steadyrank.training.view_trainer import ViewTrainer
from steadyrank.training.views import ViewCollator, fitting, lay, plan

TRAIN, DEV = tiny.lists(8), tiny.lists(5, seed=9)
ARMS = [
    ("single_order", {}),
    ("permutation_augmentation", {}),
    ("debias_first", {}),
    ("debias_first", {"paper_compat": True}),
    ("mean_teacher", {}),
    ("kl_to_base", {"weight": 1.0}),
    ("oc_sft", {"weight": 5.0, "ramp": 0.0, "views": 3}),
    ("a3", {"consistency": {"weight": 5.0, "ramp": 0.0, "on": "all"}}),
    ("a3", {}),
    ("stage1", {"consistency": {"weight": 1.0, "ramp": 0.0}}),
]
arms = pytest.mark.parametrize("name,options", ARMS, ids=lambda x: x if isinstance(x, str) else ",".join(x) or "plain")


def student(*, seed=0, dropout=0.0, **options):
    return JointEncoder.from_cross_encoder(
        tiny.student(seed=seed, dropout=dropout), allow_untrained=True, max_length=64, **({"width": 4} | options)
    )


def trainer_of(folder, name="oc_sft", options=None, *, scorer=None, budget=10_000, examples=TRAIN, **settings):
    scorer = scorer or student()
    built = fitting(objectives.build(name, **(options or {})), scorer)
    settings = TrainSettings(precision="fp32", lists_per_step=8, **settings)
    scores = tiny.teacher_scores(examples)
    data = prepare(examples, built, teacher_scores=scores, reference_scores=scores, labels=grade_labels(examples))
    laid = plan(built, settings.views)
    collator = ViewCollator(scorer, built, data, settings=settings, tokens_per_forward=budget, laid=laid)
    return ViewTrainer(
        scorer=scorer, objective=built, settings=settings, collator=collator, sampler=StepSampler(8, lists_per_step=8, steps=1, seed=0),
        model=scorer.model, args=arguments(settings, Path(folder), steps=1, save_every=1),
    )  # fmt: skip


def gradients(folder, *args, draws=None, **options):
    trainer = trainer_of(folder, *args, **options)
    batch = trainer.collator(draws or [Draw(place, 0) for place in range(len(trainer.collator.data))])
    trainer.training_step(trainer.model, batch, trainer._get_num_items_in_batch([batch], torch.device("cpu")))
    return {name: p.grad.clone() for name, p in trainer.model.named_parameters() if p.grad is not None}, batch


def largest_difference(a, b):
    assert a.keys() == b.keys() and a
    return max((a[name] - b[name]).abs().max().item() for name in a)


@arms
def test_a_step_does_not_depend_on_how_it_is_cut(tmp_path, name, options):
    whole, batch = gradients(tmp_path, name, options)
    assert len(batch["parts"]) == 1 and max(grad.abs().max() for grad in whole.values()) > 1e-5
    one_by_one, parts = gradients(tmp_path, name, options, lists_per_device=1)
    assert len(parts["parts"]) == 8
    chunked, chunks = gradients(tmp_path, name, options, score_gradient="chunked", budget=40)
    assert max(len(part["chunks"]) for part in chunks["parts"]) > 1
    turned, _ = gradients(tmp_path, name, options, draws=[Draw(place, 0) for place in reversed(range(8))], budget=300)
    for other in (one_by_one, chunked, turned):
        assert largest_difference(whole, other) < 2e-6


@pytest.mark.parametrize("windows", ["contiguous:4", "round_robin:3", "sliding:4/2"])
def test_training_scores_are_scoring_scores(tmp_path, windows):
    """scores_BPK of a part against the scorer's own presentations: nothing is mixed up on the way back to canonical order."""
    scorer = student(width=int(windows[-1] if "/" not in windows else 4), windows=windows)
    trainer = trainer_of(tmp_path, "oc_sft", {"views": 3}, scorer=scorer, budget=200)
    draws = [Draw(place, 2) for place in range(8)]
    laid = [trainer.collator.presentations_of(draw.index, draw.epoch) for draw in draws]
    expected = scorer.score_presentations(trainer.collator.data.examples, laid)
    scorer.model.eval()
    seen = 0
    for part in trainer.collator(draws)["parts"]:
        scores_N = torch.cat([trainer.scores_of(scorer.model, chunk) for chunk in part["chunks"]])
        scores_BPK = trainer.laid_out(scores_N, part)
        for row, mask, name in zip(scores_BPK, part["mask_BK"], part["ids"], strict=True):
            wanted = next(rows for rows in expected if rows[0].example_id == name)
            torch.testing.assert_close(row[:, mask].detach(), torch.tensor([one.scores for one in wanted]), atol=1e-5, rtol=0)
            assert not row[:, ~mask].any()
            seen += 1
    assert seen == 8


def test_orders_are_the_examples_own_and_fresh():
    """Beside other lists and at another place of the batch the same; other epochs, views and lists of the same size differ."""
    examples = [RankingExample("q", [f"d{i}" for i in range(9)], id=f"e{n}") for n in range(2)]
    laid = plan(objectives.build("oc_sft", views=3), None)
    orders = [[one.order for one in lay(example, laid, seed=0, epoch=epoch, windows=None)] for example in examples for epoch in (0, 1)]
    assert len({order for row in orders for order in row}) == 12
    assert orders[0] == [one.order for one in lay(examples[0], laid, seed=0, epoch=0, windows=None)]
    assert orders[0] != [one.order for one in lay(examples[0], laid, seed=1, epoch=0, windows=None)]
    assert all(sorted(order) == list(range(9)) for row in orders for order in row)


def test_kinds_of_views(tmp_path):
    example = RankingExample("q", [f"d{i}" for i in range(9)], id="e")

    def orders(name, *, windows="contiguous:4", **views):
        settings = TrainSettings(views=views).views if views else None
        return [
            one.order for one in lay(example, plan(objectives.build(name), settings), seed=0, epoch=3, windows=None, own_windows=windows)
        ]

    assert orders("single_order") == orders("kl_to_base") == [tuple(range(9))]
    first, second = orders("debias_first")
    assert first == tuple(range(9)) != second
    for order in orders("oc_sft", kind="within"):
        assert [set(order[start : start + 4]) for start in (0, 4, 8)] == [set(range(4)), set(range(4, 8)), {8}]
    assert len(orders("permutation_augmentation", count=3)) == 3
    mixed = orders("oc_sft", kind=["first_stage", "shuffle"], count=4)
    assert mixed[0] == tuple(range(9)) and len(set(mixed)) == 4
    markers = {
        one.markers
        for epoch in range(20)
        for one in lay(example, plan(objectives.build("marker_consistency"), None), seed=0, epoch=epoch, windows=None)
    }
    assert markers == {"numeric", "letters", "doc"}


@pytest.mark.parametrize("name,views,message", [
    ("mean_teacher", {"count": 1}, "at least 2"),
    ("oc_sft", {"count": 1}, "cannot disagree"),
    ("oc_sft", {"kind": "shufle"}, "'shuffle'"),
    ("oc_sft", {"markers": ["letter"]}, "'letters'"),
    ("oc_sft", {"windows": "contigous:4"}, "'contiguous'"),
    ("oc_sft", {"cuont": 2}, "training.views.count"),
    ("oc_sft", {"dev_presentations": 0}, "at least 1"),
])  # fmt: skip
def test_wrong_view_settings_are_told(name, views, message):
    with pytest.raises(ConfigError, match=message):
        plan(objectives.build(name), TrainSettings(views=views).views)


def test_a_pointwise_student_has_no_views_and_a_listwise_one_reads_one(tmp_path):
    with pytest.raises(ConfigError, match="one candidate at a time"):
        fitting(objectives.build("oc_sft"), tiny.student())
    plain = objectives.build("a3")
    assert fitting(plain, tiny.student()) is plain
    wrapped = fitting(plain, student())
    assert wrapped.laid.count == 1 and wrapped.settings.consistency.weight == 0


def test_windows_of_one_show_one_candidate_in_training_and_dev(tmp_path):
    """A wide scorer warmed up at width 1: every prompt holds one candidate, no order can be seen, and its own rule is left as it is."""
    scorer = student(width=6)
    views = {"windows": "contiguous:1", "markers": ["random"]}
    trainer = trainer_of(tmp_path, "permutation_augmentation", scorer=scorer, views=views)
    rows_ = trainer.collator.encoded([Draw(place, 0) for place in range(8)])
    assert all(len(item.places) == 1 for row in rows_ for item in row)
    run(tmp_path / "run", "permutation_augmentation", scorer=scorer, max_steps=1, views={"windows": "contiguous:1"})
    assert all(row["tau_psi"] == 0 and row["score_variance"] < 1e-10 for row in rows(tmp_path / "run", "dev.jsonl"))
    assert scorer.windows == load_scorer(str(tmp_path / "run" / "final")).windows == "contiguous:6"


def test_slot_weights_follow_the_slot_a_candidate_stands_in(tmp_path):
    """All relevant candidates stand first: with first-stage views alone, slot 0 weighs least and every candidate by its slot."""
    examples = [RankingExample("w1", ["w0", "w2 w3", "w4 w5"], [1, 0, 0], id=f"e{n}") for n in range(8)]
    trainer = trainer_of(
        tmp_path, "debias_first", {"smoothing": 1.0, "limit": 100.0}, examples=examples, views={"kind": "first_stage", "count": 1}
    )
    # counts 8 + 1, 1, 1 of 11: inverse shares 11/9, 11, 11; mean 209/27
    expected = torch.tensor([11 / 9, 11.0, 11.0]) / (209 / 27)
    torch.testing.assert_close(trainer.collator.weights_S, expected)
    part = trainer.collator([Draw(0, 0)])["parts"][0]
    torch.testing.assert_close(part["weights_BPK"][0, 0], expected)


def test_the_average_is_what_it_says_and_leaves_the_model_alone():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))
    shadow = Shadow(model, decay=0.5)
    start = model[0].weight.detach().clone()
    with torch.no_grad():
        model[0].weight.add_(1.0)
    shadow.update(model)
    rate = min(0.5, 2 / 11)
    torch.testing.assert_close(shadow.weights["0.weight"], rate * start + (1 - rate) * (start + 1))
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with shadow.in_place(model):
        torch.testing.assert_close(model[0].weight.detach(), rate * start + (1 - rate) * (start + 1))
        assert not model.training and not model(torch.ones(1, 2)).requires_grad
        assert torch.equal(model(torch.ones(1, 2)), model(torch.ones(1, 2)))
    assert model.training and all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    frozen = Shadow(model, decay=1.0)
    with torch.no_grad():
        model[0].weight.add_(1.0)
    frozen.update(model)
    torch.testing.assert_close(frozen.weights["0.weight"], start + 1)


def run(output, name="oc_sft", options=None, *, scorer=None, labels=None, dev=DEV, resume=True, say=lambda text: None, **settings):
    scorer = scorer or student(dropout=0.1)
    plan_ = {"learning_rate": 1e-3, "lists_per_step": 4, "max_steps": 4, "precision": "fp32", "tensorboard": False, **settings}
    result = train(
        TrainSettings(**plan_), student=scorer, objective=objectives.build(name, **(options or {})), train=TRAIN, dev=dev,
        teacher_scores=tiny.teacher_scores(TRAIN), labels=labels or grade_labels(TRAIN), output=output, resume=resume, say=say,
    )  # fmt: skip
    return result, {key: value.clone() for key, value in scorer.model.state_dict().items()}


def rows(folder, name="log.jsonl"):
    return [json.loads(line) for line in (Path(folder) / name).read_text().splitlines()]


class Killed(Exception):
    pass


def test_killed_run_goes_on_to_the_same_numbers_average_included(tmp_path):
    def say(text):
        if text.startswith("step 3: dev"):
            raise Killed

    options = {"decay": 0.7}
    _, straight = run(tmp_path / "straight", "mean_teacher", options, eval_every=1, save_every=2)
    with pytest.raises(Killed):
        run(tmp_path / "killed", "mean_teacher", options, eval_every=1, save_every=2, say=say)
    result, resumed = run(tmp_path / "killed", "mean_teacher", options, eval_every=1, save_every=2)
    assert result.resumed_from == 2 and all(torch.equal(straight[key], resumed[key]) for key in straight)
    for name in ("log.jsonl", "dev.jsonl"):
        assert rows(tmp_path / "straight", name) == rows(tmp_path / "killed", name)


def test_a_new_grade_head_is_the_seeds(tmp_path):
    """Whatever the process drew before, two runs of one seed start from the same head, and another seed from another."""
    tiny.student().model.bert.save_pretrained(tmp_path / "encoder")
    tiny.tokenizer().save_pretrained(tmp_path / "encoder")
    heads = []
    for number, seed in enumerate((0, 0, 1)):
        torch.manual_seed(number)
        made = JointEncoder.load(tmp_path / "encoder", allow_untrained=True, width=4, max_length=64)
        assert made.untrained
        run(tmp_path / f"run{number}", scorer=made, max_steps=1, learning_rate=1e-12, dev=None, seed=seed)
        heads.append(made.model.grades.weight.detach().clone())
    assert torch.allclose(heads[0], heads[1], atol=1e-9) and not torch.allclose(heads[0], heads[2], atol=1e-3)


def test_ramp_and_parts_are_in_the_log_and_labels_in_the_directory(tmp_path):
    result, _ = run(tmp_path / "run", options={"weight": 8.0, "ramp": 0.5}, eval_every=4)
    log = rows(tmp_path / "run")
    assert [row["lambda"] for row in log] == [0.0, 4.0, 8.0, 8.0]
    assert all({"anchor", "variance", "score_sd", "view_disagreement"} <= row.keys() for row in log)
    assert read_labels(tmp_path / "run" / "labels.jsonl").fingerprint == grade_labels(TRAIN).fingerprint
    data = json.loads((tmp_path / "run" / "data.json").read_text())
    assert data["labels"]["kind"] == "grades" and data["views"]["kinds"] == ["shuffle"]
    assert result.counts["candidates_not_shown"] == 0
    other = Labels("grades", {name: tuple(tuple(1 - v for v in row) for row in r) for name, r in grade_labels(TRAIN).passes.items()},
                   grade_labels(TRAIN).pools)  # fmt: skip
    with pytest.raises(ConfigError, match="another labels"):
        run(tmp_path / "run", options={"weight": 8.0, "ramp": 0.5}, eval_every=4, labels=other)


def test_dev_row_is_the_scorers_own_presentations(tmp_path):
    scorer = student()
    run(tmp_path / "run", scorer=scorer, max_steps=1, views={"dev_presentations": 3})
    first, last = rows(tmp_path / "run", "dev.jsonl")
    assert first["presentations"] == 3 and len(first["per_query"]["quality"]) == len(DEV)
    saved = load_scorer(str(tmp_path / "run" / "final"))
    from steadyrank.training.dev import ViewDevSet

    devset = ViewDevSet(DEV, best_measure="nDCG(gain=exp)@6", path=tmp_path / "again.jsonl", presentations=3, seed=0)
    scores = [np.array([one.scores for one in found]) for found in saved.score_presentations(DEV, [laid[1:] for laid in devset.laid])]
    assert last["score_variance"] == pytest.approx(np.mean([one.var(0).mean() for one in scores]), rel=1e-3)
    assert last["tau_psi"] == pytest.approx(np.mean([tau_psi(one) for one in scores]), abs=1e-6)
    assert last["score_sd"] == pytest.approx(np.mean([one.std(1).mean() for one in scores]), rel=1e-3)
    assert last["measures"]["nDCG(gain=exp)@6"] == pytest.approx(np.mean(last["per_query"]["quality"]))
    assert "nDCG(gain=exp)@6" in last["first_stage"] and len({len(laid) for laid in devset.laid}) == 1


def test_kl_to_the_start_is_zero_before_the_first_step(tmp_path):
    trainer = trainer_of(tmp_path, "kl_to_base", {"weight": 1.0})
    batch = trainer.collator([Draw(place, 0) for place in range(8)])
    trainer.training_step(trainer.model, batch, trainer._get_num_items_in_batch([batch], torch.device("cpu")))
    assert trainer.reads_logits and abs(trainer.record._sums["kl_to_base"][0].item()) < 1e-6


def test_the_penalty_makes_scores_steady_and_the_labels_are_learnt(tmp_path):
    """Forty steps of the same labels with and without it; both learn the planted rule."""
    spread = {}
    for weight in (0.0, 100.0):
        folder = tmp_path / str(weight)
        options = {"weight": weight, "ramp": 0.0}
        run(folder, options=options, scorer=student(width=6), max_steps=40, eval_every=40, learning_rate=1e-2)
        spread[weight] = rows(folder, "dev.jsonl")[-1]["score_variance"]
        assert rows(folder, "dev.jsonl")[-1]["measures"]["nDCG(gain=exp)@6"] > 0.9
    assert spread[100.0] < 0.2 * spread[0.0]


def test_collapsed_scores_are_warned_about(tmp_path):
    scorer = student()
    with torch.no_grad():
        scorer.model.grades.weight.zero_()
    result, _ = run(tmp_path / "run", scorer=scorer, max_steps=1, learning_rate=1e-9)
    assert any("collapsed" in text for text in result.warnings)


# labels


def test_grade_labels_are_grades_over_the_highest():
    lists = [RankingExample("q", ["a", "b", "c"], [3, -1, 1.5], id="x"), RankingExample("q", ["a"], [0], id="y")]
    labels = grade_labels(lists)
    assert labels.rows(lists) == [[1.0, 0.0, 0.5], [0.0]] and labels.provenance["unjudged_candidates"] == 1
    assert grade_labels(lists, max_grade=6).rows(lists)[0] == [0.5, 0.0, 0.25]
    with pytest.raises(InputError, match="another pool"):
        labels.rows([RankingExample("q", ["a", "b", "other"], [3, -1, 1.5], id="x")])
    with pytest.raises(InputError, match="'z'"):
        labels.rows([RankingExample("q", ["a"], id="z")])


class Fixed:
    """A scorer whose logits are given."""

    name, scale = "fixed", "logit"

    def __init__(self, table):
        self.table = table

    def score_presentations(self, examples, laid):
        return [[ScoredList(e.id, self.name, tuple(self.table[e.id]), "logit", one) for one in rows] for e, rows in zip(examples, laid)]


def test_teacher_labels_by_each_mapping():
    lists = [RankingExample("q", ["a", "b", "c"], [2, 0, 1], id="x"), RankingExample("r", ["a", "b"], [0, 2], id="y")]
    teacher = Fixed({"x": [2.0, -900.0, 0.0], "y": [1.0, 1.0]})
    sigmoid = scorer_labels(teacher, lists).rows(lists)
    assert sigmoid[0] == pytest.approx([1 / (1 + math.exp(-2)), 0.0, 0.5])
    assert scorer_labels(teacher, lists, mapping="rank").rows(lists) == [[1.0, 0.0, 0.5], [0.5, 0.5]]
    with pytest.raises(ConfigError, match="'platt'"):
        scorer_labels(teacher, lists, mapping="plat")


def test_platt_finds_the_planted_sigmoid():
    """Grades that are exactly 2 sigmoid(1.7 t - .4): slope and offset come back."""
    t = np.linspace(-3, 3, 60).reshape(10, 6)
    y = 1 / (1 + np.exp(-(1.7 * t - 0.4)))
    lists = [RankingExample("q", [f"d{i}" for i in range(6)], list(row / y.max()), id=f"e{n}") for n, row in enumerate(y)]
    slope, offset = fit_platt(t.tolist(), lists)
    # scaled by the highest grade the curve is no longer exactly a sigmoid; near it the highest grade is sigmoid(4.7) = .991
    assert slope == pytest.approx(1.7, rel=0.05) and offset == pytest.approx(-0.4, abs=0.05)
    with pytest.raises(ConfigError, match="none"):
        fit_platt([[1.0]], [RankingExample("q", ["a"], id="x")])
    separated = fit_platt([[5.0, -5.0]], [RankingExample("q", ["a", "b"], [1, 0], id="x")])
    assert all(math.isfinite(value) for value in separated) and separated[0] > 0


def test_self_distillation_keeps_passes_and_their_mean(tmp_path):
    scorer = student()
    labels = scorer_labels(scorer, DEV, kind="self_distillation", passes=3)
    own = [list(one.scores) for one in scorer.score_examples(DEV)]
    np.testing.assert_allclose(np.concatenate(labels.rows(DEV, which="first")), np.concatenate(own), atol=1e-5)
    passes = np.array(labels.passes[DEV[0].id])
    assert passes.shape[0] == 3 and len(np.unique(passes.round(7), axis=0)) == 3
    np.testing.assert_allclose(labels.rows(DEV)[0], passes.mean(0))
    labels.write(tmp_path / "labels.jsonl")
    again = read_labels(tmp_path / "labels.jsonl")
    assert again.fingerprint == labels.fingerprint and again.provenance == labels.provenance and again.provenance["num_passes"] == 3


@pytest.mark.parametrize("change,message", [
    ({"schema": "other"}, "schema"),
    ({"passes": [[0.5, 1.5]]}, r"passes\[0\]\[1\]: is 1.5"),
    ({"passes": [[0.5], [0.5, 0.5]]}, "equal length"),
    ({"pool": None, "kind": "teacher"}, None),
])  # fmt: skip
def test_a_broken_label_file_is_told_with_its_line(tmp_path, change, message):
    path = tmp_path / "labels.jsonl"
    grade_labels(DEV).write(path)
    first, *others = rows(tmp_path, "labels.jsonl")
    path.write_text("\n".join(json.dumps(row) for row in [{**first}, {**others[0], **change}]))
    with pytest.raises(InputError, match=message or "one origin") as caught:
        read_labels(path)
    assert caught.value.line == 2


def test_averaged_labels_need_passes():
    with pytest.raises(ConfigError, match="passes to 2"):
        prepare(TRAIN, objectives.build("order_averaged"), labels=grade_labels(TRAIN))
    with pytest.raises(ConfigError, match="labels:"):
        prepare(TRAIN, objectives.build("oc_sft"))
    labels = grade_labels(TRAIN)
    twice = replace(labels, passes={name: (found[0], tuple(0.0 for _ in found[0])) for name, found in labels.passes.items()})
    once = prepare(TRAIN, objectives.build("order_averaged"), labels=twice).targets
    assert once == tuple(
        tuple(value / 2 for value in row) for row in prepare(TRAIN, objectives.build("single_order"), labels=twice).targets
    )


def test_first_pass_is_the_lists_own_order():
    from steadyrank.training.labels import laid_passes

    laid = laid_passes(TRAIN[0], 3, seed=0)
    assert laid[0] == Presentation() and len({one.order for one in laid}) == 3


@pytest.mark.parametrize("name,options", [("mean_teacher", {"decay": 0.5}), ("kl_to_base", {}), ("oc_sft", {})])
def test_adapters_train_and_save_with_the_head_and_the_average_holds_only_them(tmp_path, name, options):
    scorer = student(dropout=0.1)
    result, _ = run(tmp_path / "run", name, options, scorer=scorer, max_steps=2, lora={"r": 2}, learning_rate=1e-2)
    assert result.steps == 2 and result.dev_start != result.dev_final
    assert (tmp_path / "run" / "final" / "adapter").is_dir()
    live = [one.scores for one in scorer.score_examples(DEV)]
    saved = [one.scores for one in load_scorer(str(tmp_path / "run" / "final"), precision="fp32").score_examples(DEV)]
    np.testing.assert_allclose(np.concatenate(live), np.concatenate(saved), atol=1e-5)


def test_a_causal_grader_is_trained_as_it_scores(tmp_path):
    """expected_grade through the same path: training scores are its own, and one step of KL starts at zero."""
    scorer = tiny_graders.grader(width=3)
    trainer = trainer_of(tmp_path, "kl_to_base", {"weight": 1.0}, scorer=scorer)
    draws = [Draw(place, 0) for place in range(8)]
    batch = trainer.collator(draws)
    trainer.training_step(trainer.model, batch, trainer._get_num_items_in_batch([batch], torch.device("cpu")))
    assert abs(trainer.record._sums["kl_to_base"][0].item()) < 1e-5
    assert any(p.grad is not None and p.grad.abs().max() > 0 for p in scorer.model.parameters())
    scorer.model.eval()
    expected = {one.example_id: one.scores for one in scorer.score_examples(trainer.collator.data.examples)}
    for part in batch["parts"]:
        logits = torch.cat([trainer.scores_of(scorer.model, chunk) for chunk in part["chunks"]])
        probabilities = trainer.laid_out(logits, part)
        scores = (probabilities @ torch.arange(4.0) / 3)[:, 0]
        for row, mask, example_id in zip(scores, part["mask_BK"], part["ids"], strict=True):
            torch.testing.assert_close(row[mask].detach(), torch.tensor(expected[example_id]), atol=1e-4, rtol=0)

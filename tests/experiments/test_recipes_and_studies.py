"""A recipe end to end and a study of several systems, on a tiny model and lists with a planted rule."""

import json

import pytest
import training_helpers as tiny

from steadyrank import load_scorer, save_examples
from steadyrank.config import load_recipe, parse_override, preset_names, preset_recipe
from steadyrank.errors import ConfigError, RunError
from steadyrank.experiments.recipes import run_recipe, settings_of
from steadyrank.experiments.study import HEADLINE, Study, System
from steadyrank.objectives import OBJECTIVES, VIEW_OBJECTIVES, build
from steadyrank.reports import write_report
from steadyrank.training.labels import read_labels


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Lists and two models on disk, and a cache of their own."""
    monkeypatch.setenv("STEADYRANK_CACHE", str(tmp_path / "cache"))
    save_examples(tmp_path / "train.jsonl", tiny.lists(24))
    save_examples(tmp_path / "dev.jsonl", tiny.lists(6, seed=9))
    tiny.student(seed=1).save(tmp_path / "student")
    tiny.student(seed=2).save(tmp_path / "teacher")
    return tmp_path


def recipe(world, preset="a3", **fields):
    base = {
        "output": str(world / "run"),
        "student": {"model": str(world / "student"), "options": {"layers": None, "max_length": 48}},
        "teacher": {"model": str(world / "teacher"), "options": {"max_length": 48}},
        "data": {"train": str(world / "train.jsonl"), "dev": str(world / "dev.jsonl"), "max_candidates": 4},
        "training": {"lists_per_step": 8, "learning_rate": 1e-3, "precision": "fp32", "tensorboard": False},
    }
    return preset_recipe(preset, base | fields)


def test_a_recipe_trains_scores_its_teacher_once_and_resumes_as_finished(world):
    said = []
    result = run_recipe(recipe(world), say=said.append)
    assert result.steps == 3 and HEADLINE in result.dev_final
    assert any("candidates scored, 0 read from the cache" in line for line in said)
    assert len(load_scorer(str(world / "run/final")).score("w1", ["w0", "w2"])) == 2
    again = run_recipe(recipe(world), say=said.append)
    assert again.dev_final == result.dev_final
    assert any(": 0 candidates scored" in line for line in said)


def test_another_recipe_in_the_same_directory_is_refused(world):
    run_recipe(recipe(world), say=lambda text: None)
    with pytest.raises(ConfigError, match="another run"):
        run_recipe(recipe(world, training={"lists_per_step": 4}), say=lambda text: None)


def test_a_bound_that_is_missed_fails_the_run(world):
    with pytest.raises(RunError, match="did not reach"):
        run_recipe(recipe(world, expect={HEADLINE: "> 1.0"}), say=lambda text: None)
    with pytest.raises(ConfigError, match=">= 0.6"):
        run_recipe(recipe(world, expect={HEADLINE: "about 1"}), say=lambda text: None)


def test_a_distilling_recipe_needs_a_teacher(world):
    fields = recipe(world).model_copy(update={"teacher": None})
    with pytest.raises(ConfigError, match=r"teacher\.model"):
        run_recipe(fields, say=lambda text: None)


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_a_valid_recipe(name):
    shipped = preset_recipe(name, {"output": "x"})
    objective = build(shipped.objective, **shipped.objective_settings)
    settings_of(shipped)
    by_label = objective.target == "labels" and shipped.labels is not None and shipped.labels.kind == "teacher"
    assert (shipped.teacher is not None) == (by_label or "teacher" in (objective.target, objective.anchor))
    assert (shipped.labels is not None) == (objective.target == "labels")


def test_every_objective_has_a_preset():
    assert set(preset_names()) == set(OBJECTIVES) | set(VIEW_OBJECTIVES) | {"a3_steady"}


def test_recipe_file_wins_over_preset_and_set_over_both(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text("preset: a3\noutput: x\ntraining: {learning_rate: 2e-6}\n")
    loaded = load_recipe(path)
    assert loaded.objective == "a3" and loaded.training["learning_rate"] == 2e-6 and loaded.training["lists_per_step"] == 16
    assert load_recipe(path, overrides=["training.learning_rate=1e-3"]).training["learning_rate"] == 1e-3
    assert parse_override("a.b=1e-5") == {"a": {"b": 1e-5}} and parse_override("a=[1, 2]") == {"a": [1, 2]}
    with pytest.raises(ConfigError, match="not of the form"):
        parse_override("a")


def test_a_study_scores_once_compares_and_reports(world):
    opened = []

    def opener():
        opened.append(1)
        return load_scorer(str(world / "teacher"))

    lists = tiny.lists(12, seed=4)
    splits = {"test": ("In-domain", lists[:6]), "shifted": ("Shifted", lists[6:])}

    def study():
        systems = [
            System("bm25", "BM25", "baseline", lambda: load_scorer("bm25")),
            System("tiny", "Tiny", "student", opener),
            System("start", "Start", "start", opener),
        ]
        return Study(
            folder=world / "study", title="A study", subtitle="", splits=splits,
            systems=systems, pairs=[("tiny", "bm25"), ("tiny", "start")], flips=("tiny", "start"), say=lambda text: None,
        )  # fmt: skip

    first = study().run()
    assert len(opened) == 2
    second = study().run()
    assert len(opened) == 2  # all scores were on disk
    assert first["test"]["tiny"].mean(HEADLINE) == second["test"]["tiny"].mean(HEADLINE)
    assert first["test"]["oracle"].mean(HEADLINE) == pytest.approx(1.0)
    family = json.loads((world / "study/comparisons/test.json").read_text())["family"]
    same = next(row for row in family if row["b"] == "start")
    assert same["difference"]["mean"] == 0 and same["nonzero"] == 0  # the same model under two names
    assert write_report(world / "study").stat().st_size > 10_000


JOINT = {"kind": "joint_encoder", "width": 4, "layers": None, "max_length": 64}


def view_recipe(world, preset="oc_sft", **fields):
    student = {"model": str(world / "student"), "options": JOINT}
    training = {"lists_per_step": 8, "max_steps": 2, "learning_rate": 1e-3, "precision": "fp32", "tensorboard": False}
    return recipe(world, preset, student=student, training=training, **fields)


def test_a_view_recipe_makes_its_labels_once_and_saves_a_joint_encoder(world):
    said = []
    run_recipe(view_recipe(world, views={"dev_presentations": 2, "kind": "within"}), say=said.append)
    labels = read_labels(world / "run" / "labels.jsonl")
    assert labels.kind == "teacher" and labels.provenance["mapping"] == "platt" and labels.provenance["slope"] != 0
    assert load_scorer(str(world / "run" / "final")).kind == "joint_encoder"
    data = json.loads((world / "run" / "data.json").read_text())
    assert data["views"] == {"count": 2, "kinds": ["within"], "markers": [], "windows": None, "dev_presentations": 2}
    again = view_recipe(
        world, "single_order", output=str(world / "again"), labels={"kind": "file", "path": str(world / "run/labels.jsonl")}
    )
    run_recipe(again, say=said.append)
    assert read_labels(world / "again" / "labels.jsonl").fingerprint == labels.fingerprint
    assert sum("read from the cache" in text for text in said) == 1


def test_self_distillation_is_not_made_again_on_resume(world, monkeypatch):
    wanted = view_recipe(world, "order_averaged", labels={"kind": "self_distillation", "passes": 3}, teacher=None)
    run_recipe(wanted, say=lambda text: None)
    labels = read_labels(world / "run" / "labels.jsonl")
    assert labels.num_passes == 3 and labels.provenance["fingerprint"]
    (world / "run" / "result.json").unlink()
    monkeypatch.setattr("steadyrank.experiments.recipes.scorer_labels", None)
    run_recipe(wanted, say=lambda text: None)  # would fail if they were made again


@pytest.mark.parametrize("fields,message", [
    ({"labels": {"knid": "grades"}}, r"labels\.kind"),
    ({"labels": {"kind": "grads"}}, r"labels\.kind"),
    ({"labels": {"kind": "file"}}, r"labels\.path"),
    ({"labels": {"kind": "teacher"}, "teacher": None}, r"teacher\.model"),
    ({"labels": None}, r"labels\.kind"),
    ({"views": {"kidn": "shuffle"}}, r"views\.kind"),
    ({"objective_settings": {"wieght": 1}}, "weight"),
])  # fmt: skip
def test_wrong_blocks_of_a_view_recipe_are_told(world, fields, message):
    with pytest.raises(ConfigError, match=message):
        run_recipe(view_recipe(world, **fields), say=lambda text: None)


def test_a_steady_recipe_reads_the_teacher_and_two_views(world):
    run_recipe(view_recipe(world, "a3_steady"), say=lambda text: None)
    row = json.loads((world / "run" / "log.jsonl").read_text().splitlines()[0])
    assert {"reward", "kl_to_teacher", "variance", "penalty", "lambda", "score_sd"} <= row.keys()

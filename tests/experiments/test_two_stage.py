"""Both stages from one file: what is run, what is read back, and what is refused before anything runs."""

from __future__ import annotations

import json

import pytest
import training_helpers as tiny
import yaml
from typer.testing import CliRunner

from steadyrank import save_examples
from steadyrank.cli.main import app
from steadyrank.config import preset_recipe
from steadyrank.errors import ConfigError
from steadyrank.experiments.two_stage import read_two_stage, run_two_stage

PLAN = {"lists_per_step": 8, "learning_rate": 3e-3, "precision": "fp32", "tensorboard": False}


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv("STEADYRANK_CACHE", str(tmp_path / "cache"))
    for name, size, seed in (("train", 24, 0), ("dev", 6, 9), ("test", 12, 4), ("other", 12, 5)):
        save_examples(tmp_path / f"{name}.jsonl", tiny.lists(size, seed=seed))
    tiny.student(seed=1).save(tmp_path / "small")
    tiny.student(seed=2).save(tmp_path / "large")
    return tmp_path


def fields(world, **changed):
    model = {"options": {"max_length": 48}}
    return {
        "output": str(world / "out"),
        "data": {"train": str(world / "train.jsonl"), "dev": str(world / "dev.jsonl")},
        "stage1": {"student": {"model": str(world / "large"), **model}, "training": PLAN},
        "stage2": {"student": {"model": str(world / "small"), **model}, "training": PLAN},
        "evaluate": {
            "test": {"lists": str(world / "test.jsonl"), "label": "Own"},
            "other": {"lists": str(world / "other.jsonl"), "limit": 8},
        },
        **changed,
    }


def written(world, **changed):
    path = world / "both.yaml"
    path.write_text(yaml.safe_dump(fields(world, **changed)), encoding="utf-8")
    return path


def read(world, **changed):
    return read_two_stage(written(world, **changed))


def test_judge_teacher_student_report(world):
    recipe, said = read(world), []
    result = run_two_stage(recipe, say=said.append)
    assert any(line.startswith("judge relevance") for line in said)
    assert result.report.is_file() and (result.student / "model.safetensors").is_file()
    trained = yaml.safe_load((world / "out/runs/stage2/config.yaml").read_text())["about"]["recipe"]
    assert trained["objective"] == "a3" and trained["teacher"]["model"] == str(world / "out/runs/stage1/final")
    assert {"Teacher before Stage 1", "Teacher after Stage 1", "Student before distillation", "Oracle"} < set(result.means)
    assert result.means["Oracle"]["other"] == 1.0
    study = json.loads((world / "out/study.json").read_text())
    assert study["data"]["other"]["lists"] == 8
    again = run_two_stage(recipe, say=said.append)
    assert again.means == result.means and sum("this run is finished" in line for line in said) == 2


def test_another_student_is_scored_anew(world):
    first = run_two_stage(read(world), say=lambda text: None)
    second = run_two_stage(read(world, stage2={**fields(world)["stage2"], "preset": "a1"}), restart=True, say=lambda text: None)
    assert "Student, a1" in second.means and second.means["Student, a1"] != first.means["Student, a3"]


def test_the_command_takes_the_file(world):
    ran = CliRunner().invoke(app, ["train", str(written(world)), "--set", "checkpoint=best", "--json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["student"].endswith("stage2/best") and found["schema"] == "steadyrank.two_stage/1"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"stage2": {"output": "x"}}, "stage2.output is set; output belongs to the whole recipe"),
        ({"stage2": {"teacher": {"model": "x"}}}, "stage2.teacher.model is set"),
        ({"stage2": {"objektive": "a1"}}, "objektive"),
        ({"stage2": {"preset": "a33"}}, "preset 'a33' unknown"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(world, changed, message):
    with pytest.raises(ConfigError, match=message):
        run_two_stage(read(world, **changed), say=lambda text: None)
    assert not (world / "out").exists()


def test_fields_are_strict(world):
    with pytest.raises(ConfigError, match="evalute"):
        read(world, evalute={})
    with pytest.raises(ConfigError, match="evaluate"):
        read(world, evaluate={})
    assert read_two_stage(None) is None


def test_layers_of_a_preset_belong_to_its_own_model(world):
    own = preset_recipe("a3", {"output": "x"})
    assert own.student.options == {"layers": [0, 2, 4, 7, 9, 11], "max_length": 256}
    assert preset_recipe("a3", {"output": "x", "student": {"options": {"max_length": 48}}}).student.options["layers"]
    assert preset_recipe("a3", {"output": "x", "student": {"model": "minilm-warm"}}).student.options == {"max_length": 256}
    asked = preset_recipe("a3", {"output": "x", "student": {"model": "mine", "options": {"layers": [0, 1]}}})
    assert asked.student.options == {"layers": [0, 1], "max_length": 256}

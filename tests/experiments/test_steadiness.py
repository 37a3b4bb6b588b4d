"""The second act on a tiny model: every arm trains from one start, is audited on the same lists, and a second call does nothing again."""

from dataclasses import replace

import pytest
import tiny_graders
import training_helpers as tiny

from steadyrank import load_scorer, save_examples
from steadyrank.audit import Audit
from steadyrank.data.bm25 import in_bm25_order
from steadyrank.experiments import steadiness_runs
from steadyrank.experiments.steadiness import run_steadiness
from steadyrank.experiments.steadiness_sizes import ALL, Sizes
from steadyrank.files import file_digest, read_json
from steadyrank.records import RankingExample


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv("STEADYRANK_CACHE", str(tmp_path / "cache"))
    for name, count, seed in (("train", 16, 0), ("valid", 6, 9), ("test", 6, 11)):
        save_examples(tmp_path / f"{name}.jsonl", [replace(item, id=f"{name}-{item.id}") for item in tiny.lists(count, seed=seed)])
    tiny.student(seed=1).save(tmp_path / "student")
    return tmp_path


def sizes(world, *names):
    return Sizes(
        warm_lists=16, lists=16, dev_lists=6, watched_lists=3, eval_lists=6, candidates=4, presentations=3, max_length=48, rate=1e-3,
        arms=tuple(arm for arm in ALL if arm.name in names), model=str(world / "student"), layers=None, data=str(world) + "/{}.jsonl",
    )  # fmt: skip


def test_arms_start_alike_and_are_compared_on_the_same_lists(world):
    said = []
    plan = sizes(world, "start", "single_order", "oc_sft", "single_order_x10", "grpo")
    result = run_steadiness(world / "out", plan, say=said.append)
    assert [row.arm for row in result.rows] == ["start", "single_order", "oc_sft", "single_order_x10"]  # no teacher, so no GRPO
    assert all(row.values["nDCG@6"]["n"] == 6 for row in result.rows)
    assert result.rows[0].against and not result.rows[2].against  # the base is not compared with itself
    start = load_scorer(str(world / "out/start"))
    assert (start.kind, start.width, start.untrained) == ("joint_encoder", 4, False)
    assert Audit.read(world / "out/audits/test/oc_sft-seed0/audit.json").system["reads_lists"]
    for name in ("table.md", "result.json", "card-test.html", "card-test.png"):
        assert (world / "out" / name).stat().st_size > 100
    said.clear()
    again = run_steadiness(world / "out", plan, say=said.append)
    assert [row.values for row in again.rows] == [row.values for row in result.rows]
    assert not [line for line in said if "audit" in line or "step" in line]


def test_of_several_lambdas_one_is_chosen_on_dev_lists_and_its_run_is_the_arm(world, monkeypatch):
    monkeypatch.setattr(steadiness_runs, "LISTS_PER_STEP", 4)  # the weight grows over the steps, so one step would see none of it
    plan = replace(sizes(world, "oc_sft"), consistency=(0.5, 4.0), watched_lists=6, rate=1e-5)
    run_steadiness(world / "out", plan, say=lambda line: None)
    choice = read_json(world / "out/lambda.json")
    taken = 0.5 if choice["weight"] is None else choice["weight"]
    assert [row["weight"] for row in choice["table"]] == [0.5, 4.0]
    made = {path.name: (path / "final/model.safetensors").read_bytes() for path in (world / "out/runs").glob("oc_sft*")}
    assert sorted(made) == ["oc_sft-lambda0.5-seed0", "oc_sft-lambda4-seed0"] and len(set(made.values())) == 2
    audited = read_json(world / "out/audits/test/oc_sft-seed0/identity.json")["model"]
    assert audited == file_digest(world / f"out/runs/oc_sft-lambda{taken:g}-seed0/final/model.safetensors")


def test_a_language_model_goes_the_same_way(world):
    """Warmed up one candidate at a time with adapters, then trained in one order and for all orders from there."""
    tiny_graders.grader(width=4).save(world / "grader")
    plan = replace(
        sizes(world, "start", "single_order", "oc_sft"), family="expected_grade", model=str(world / "grader"), max_length=700,
        lora={"r": 2, "alpha": 4.0}, warm_lists=4, lists=4, eval_lists=3, dev_lists=3,
    )  # fmt: skip
    result = run_steadiness(world / "out", plan, teacher=str(world / "student"), say=lambda line: None)
    assert [row.arm for row in result.rows] == ["start", "single_order", "oc_sft"]
    kinds = {load_scorer(str(path)).kind for path in (world / "out/runs").glob("*/final")}
    assert kinds == {"expected_grade"}


def test_bm25_order_puts_the_words_of_the_query_first_and_keeps_the_rest_as_it_stood():
    example = RankingExample("red fish", ("blue bird", "green tree", "red fish swims", "a fish"), relevance=(0, 1, 2, 3), id="x")
    ordered = in_bm25_order(example)
    assert ordered.documents == ["red fish swims", "a fish", "blue bird", "green tree"]
    assert (ordered.relevance, ordered.id) == ((2, 3, 0, 1), "x")

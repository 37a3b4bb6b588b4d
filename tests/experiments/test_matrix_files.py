"""The file of an experiment, and the plan that follows from it: nothing is run here."""

from pathlib import Path

import matrix_world as world
import pytest

from steadyrank.config import preset_names
from steadyrank.errors import ConfigError, MissingDataError, SteadyrankError
from steadyrank.experiments.matrix import load_matrix, shipped
from steadyrank.experiments.matrix.cells import cells_of, chosen
from steadyrank.experiments.matrix.pairs import families_of
from steadyrank.experiments.matrix.plan import plan_of
from steadyrank.experiments.matrix.spec import dotted, leaves

KL = "objective_settings.kl"


def plan(tmp_path, **changes):
    return plan_of(load_matrix(world.write(tmp_path / "m.yaml", world.fields(tmp_path, **changes))), tmp_path / "out")


@pytest.mark.parametrize("name", ["ablations", "sweeps", "seeds", "transfer"])
@pytest.mark.parametrize("size", [None, "small", "tiny"])
def test_every_shipped_matrix_is_planned_whole_in_every_size(name, size):
    made = plan_of(load_matrix(name, size=size), Path("x"))
    assert families_of(made)
    limits = {recipe.data.limit for recipe in made.recipes.values()}
    assert len(limits) == 1 and (size == "tiny" or min(limits) >= 600)
    assert size != "small" or len({cell.seed for cell in made.cells}) >= 2
    assert made.matrix.about == shipped()[name]


def test_the_ablations_hold_the_paper_s_arms_and_the_same_target_losses():
    made = plan_of(load_matrix("ablations"), Path("x"))
    methods = {cell.arm.method.preset for cell in made.cells}
    assert {*(f"a{number}" for number in range(1, 11)), "exact", "lambda", "approx_ndcg", "list_mle", "margin_mse"} <= methods
    assert methods <= set(preset_names())
    ours, before = made.recipes["a3--seed0"].teacher, made.recipes["a8--seed0"].teacher
    assert ours.model == "x/stage1/final" and before.model == "teacher" and made.recipes["a7--seed0"].teacher is None
    assert {recipe.student.model_dump_json() for recipe in made.recipes.values()} == {made.recipes["a3--seed0"].student.model_dump_json()}


def test_a_sweep_changes_one_field_at_a_time_and_names_every_default():
    settings = load_matrix("sweeps").settings
    default = next(setting for setting in settings if setting.default)
    for setting in settings:
        fields = leaves(setting.set)
        assert set(fields) <= set(leaves(default.set)) and (setting is default or len(fields) == 1)
        assert setting is default or fields != {name: leaves(default.set)[name] for name in fields}


def test_a_plan_scores_a_teacher_once_and_lets_cells_wait_for_it(tmp_path):
    made = plan(tmp_path, methods=["a3", "a1", "a7"], seeds=[0, 1])
    assert [cell.name for cell in made.cells][:3] == ["a3--seed0", "a1--seed0", "a7--seed0"]  # the first seed first
    teachers = [job.name for job in made.jobs if job.kind == "teacher"]
    assert len(teachers) == 1
    needs = {job.name: job.needs for job in made.jobs if job.kind == "cell"}
    assert needs["a3--seed1"] == (teachers[0],) and needs["a7--seed0"] == ()


def test_cells_are_left_out_kept_and_chosen_by_pattern(tmp_path):
    wanted = world.fields(
        tmp_path, methods=["a1", "a10", "a3"], seeds=[0, 1], exclude=[{"method": "a1*"}], include=[{"method": "a10", "seed": 1}]
    )
    cells = cells_of(load_matrix(world.write(tmp_path / "m.yaml", wanted)))
    assert [cell.name for cell in cells] == ["a3--seed0", "a10--seed1", "a3--seed1"]
    assert [cell.name for cell in chosen(cells, ["a3"])] == ["a3--seed0", "a3--seed1"]
    assert [cell.name for cell in chosen(cells, ["*--seed1"])] == ["a10--seed1", "a3--seed1"]


def test_settings_students_and_questions_make_the_families(tmp_path):
    made = plan(
        tmp_path,
        students=[{"name": "s", "model": str(tmp_path / "student")}],
        settings=[{"name": "d", "default": True, "set": {KL: 1.0}}, {"name": "k0", "set": {KL: 0.0}}],
        methods=["a3", "exact"],
        questions=[{"name": "q", "ask": "Is it?", "pairs": [["a3", "exact"], ["a3--s--k0", "bm25"]]}],
    )  # fmt: skip
    found = {family.name: family.pairs for family in families_of(made)}
    assert found["q"] == (("a3--s--d", "exact--s--d"), ("a3--s--k0", "exact--s--k0"), ("a3--s--k0", "bm25"))
    assert found["methods"] == (("exact--s--d", "a3--s--d"), ("exact--s--k0", "a3--s--k0"))
    assert found["settings"] == (("a3--s--k0", "a3--s--d"), ("exact--s--k0", "exact--s--d"))
    assert found["start"] == tuple((cell.arm.name, "start--s") for cell in made.cells)


def test_sizes_and_set_change_fields_whether_dotted_or_nested(tmp_path):
    values = world.fields(tmp_path, sizes={"small": {"base.data.limit": 8, "seeds": [4]}})
    values["base"] = {"data.limit": 2, **values["base"]}
    path = world.write(tmp_path / "m.yaml", values)
    assert load_matrix(path).base["data"]["limit"] == 2
    small = load_matrix(path, size="small", overrides=["base.training.max_steps=5"])
    assert (small.base["data"]["limit"], small.seeds, small.base["training"]["max_steps"]) == (8, (4,), 5)
    assert leaves(dotted({"a.b": {"c": 1}, "a": {"d": 2}})) == {"a.b.c": 1, "a.d": 2}


TYPOS = [
    ({"mehods": ["a3"]}, "'methods'"),
    ({"methods": ["a33"]}, "'a3'"),
    ({"methods": [{"preset": "a3", "sett": {}}]}, "methods.0.set"),
    ({"methods": [{"preset": "a3", "set": {"objective_settings.klw": 1}}]}, "cell a3--seed0.*kl"),
    ({"against": "a2"}, "'a1'|'a3'"),
    ({"baselines": ["bm26"]}, "'bm25'"),
    ({"checkpoint": "bset"}, "checkpoint"),
    ({"questions": [{"name": "q", "ask": "?", "pairs": [["a3", "a11"]]}]}, "'a1'"),
    ({"questions": [{"name": "start", "ask": "?", "pairs": [["a3", "a1"]]}]}, "choose another"),
    ({"exclude": [{"method": "b*"}]}, "no cell is method b"),
    ({"methods": ["a3", "a3"]}, "stands twice"),
    ({"methods": [{"preset": "a3", "name": "a/3"}]}, "cannot name a folder"),
    ({"seeds": []}, "seeds"),
]


@pytest.mark.parametrize("changes,message", TYPOS, ids=[message for _, message in TYPOS])
def test_a_mistake_in_the_file_is_one_sentence_with_the_nearest_name(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message) as caught:
        families_of(plan(tmp_path, **changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec,size,message", [
    ("ablatons", None, "'ablations'"),
    ("sweeps", "smal", "'small'"),
    ("nowhere/m.yaml", None, "does not exist"),
])  # fmt: skip
def test_a_wrong_name_or_size_is_told_with_what_there_is(spec, size, message):
    with pytest.raises((SteadyrankError, MissingDataError), match=message):
        load_matrix(spec, size=size)


def test_the_documented_matrix_is_planned_whole(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text()
    (tmp_path / "m.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    made = plan_of(load_matrix(tmp_path / "m.yaml", size="small"), tmp_path / "out")
    assert {family.name for family in families_of(made)} == {"kl", "methods", "settings", "start"}
    assert len(made.cells) == 2 * 2 * 2 and made.cells[0].name == "a3--mini--default--seed0"

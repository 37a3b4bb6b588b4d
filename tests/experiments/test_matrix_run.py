"""A tiny experiment end to end in this process: its numbers are those of its score files; what fails or stops loses nothing else."""

import csv
import json
import re
import statistics
from pathlib import Path

import matrix_world as world
import pytest
from typer.testing import CliRunner

from steadyrank import load_examples
from steadyrank.cli.main import app
from steadyrank.data.jsonl import load_scores
from steadyrank.errors import ConfigError
from steadyrank.experiments.matrix import collect_only, load_matrix, run_matrix, standing, work
from steadyrank.files import read_json
from steadyrank.reports import write_report

DECAY = "training.weight_decay"
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The tiny lists and models, with a cache of their own."""
    folder = world.make(tmp_path_factory.mktemp("matrix"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEADYRANK_CACHE", str(folder / "cache"))
        yield folder


def run(place, folder, *, say=world.QUIET, page=False, **changes):
    matrix = load_matrix(world.write(place / "m.yaml", world.fields(place, **changes)))
    return again(matrix, folder, say=say, page=page)


def again(matrix, folder, *, say=world.QUIET, page=False, **options):
    """Drawing takes longest here, so it is left out where no test looks at it."""
    with pytest.MonkeyPatch.context() as patch:
        if not page:
            patch.setattr("steadyrank.experiments.matrix.run.write_experiment", lambda folder: folder / "report.html")
        return run_matrix(matrix, folder, here=True, say=say, **options)


@pytest.fixture(scope="module")
def done(place):
    """Two methods under two seeds, one of them under two settings, with a question."""
    settings = [{"name": "decay", "default": True, "set": {DECAY: 0.01}}, {"name": "strong", "set": {DECAY: 0.5}}]
    folder = place / "out"
    pairs = [["a3--decay", "a1--decay"], ["a3--decay", "teacher"]]
    result = run(
        place, folder, page=True, seeds=list(SEEDS), settings=settings, exclude=[{"method": "a1", "setting": "strong"}],
        questions=[{"name": "sampling", "ask": "Does sampling help?", "pairs": pairs}],
    )  # fmt: skip
    assert (result.cells, result.planned, result.failed) == (6, 6, ())
    return folder


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with open(folder / "tables" / f"{name}.csv", newline="") as handle:
        return list(csv.DictReader(handle))


def reciprocal_ranks(place: Path, folder: Path, split: str, cell: str) -> dict[str, float]:
    """1 / rank of the one relevant document, straight from the scores."""
    (path,) = (folder / "scores" / split).glob(f"{cell}-*.jsonl")
    grades = {item.id: item.relevance for item in load_examples(place / f"{split}.jsonl")}
    out = {}
    for item in load_scores(path):
        relevant = item.scores[grades[item.example_id].index(1.0)]
        out[item.example_id] = 1 / (1 + sum(score > relevant for score in item.scores))
    return out


@pytest.mark.parametrize("split", ["test", "shifted"])
def test_the_numbers_of_the_tables_are_those_of_the_scores(place, done, split):
    mine = {arm: [reciprocal_ranks(place, done, split, f"{arm}--seed{seed}") for seed in SEEDS] for arm in ("a3--decay", "a1--decay")}
    means = {arm: [statistics.fmean(values.values()) for values in seeds] for arm, seeds in mine.items()}
    for row in rows(done, "main"):
        if row["system"] in means and row["split"] == split and row["measure"] == "RR@6":
            assert float(row["mean"]) == pytest.approx(statistics.fmean(means[row["system"]]), abs=1e-12)
            assert float(row["low"]) <= float(row["mean"]) <= float(row["high"])
    seeds = {
        (row["system"], row["seed"]): float(row["mean"])
        for row in rows(done, "seeds")
        if row["split"] == split and row["measure"] == "RR@6"
    }
    assert seeds["a3--decay", "1"] == pytest.approx(means["a3--decay"][1], abs=1e-12)
    (pair,) = [row for row in rows(done, "question-sampling") if (row["b"], row["split"], row["measure"]) == ("a1--decay", split, "RR@6")]
    difference = statistics.fmean(means["a3--decay"]) - statistics.fmean(means["a1--decay"])
    assert float(pair["mean"]) == pytest.approx(difference, abs=1e-12)
    assert float(pair["p_holm"]) >= float(pair["p_two_sided"])
    for source in world.SOURCES:
        own = {item.id for item in load_examples(place / f"{split}.jsonl") if item.source == source}
        expected = statistics.fmean(values[query] for values in mine["a3--decay"] for query in own)
        (row,) = [
            row for row in rows(done, f"sources-{split}") if (row["system"], row["source"], row["measure"]) == ("a3--decay", source, "RR@6")
        ]
        assert float(row["mean"]) == pytest.approx(expected, abs=1e-12)


def test_tables_parse_in_all_three_forms_and_state_the_checkpoint(done):
    found = sorted(path.stem for path in (done / "tables").glob("*.md"))
    wanted = {"main", "main-macro", "ablations", "sensitivity", "start", "seeds", "question-sampling", "paired-methods", "cells", "data"}
    assert wanted | {"sources-test", "deltas-shifted", "paired-settings", "paired-start"} <= set(found)
    for name in found:
        lines = [line for line in (done / "tables" / f"{name}.md").read_text().splitlines() if line.startswith("|")]
        assert len(lines) > 2 and len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1, name
        assert rows(done, name), name
        tex = (done / "tables" / f"{name}.tex").read_text()
        bare = re.sub(r"\\[{}&%]", "", tex)
        assert bare.count("{") == bare.count("}"), name
        body = tex[tex.index("\\midrule") : tex.index("\\bottomrule")]
        assert len({line.count(" & ") for line in body.splitlines() if line.endswith("\\\\")}) == 1, name
        if name not in ("data", "cells"):
            assert "final checkpoint" in tex and "final checkpoint" in (done / "tables" / f"{name}.md").read_text(), name


def test_every_figure_is_drawn_and_the_page_needs_nothing_else(done):
    drawn = {path.stem for path in (done / "figures").glob("*.svg")}
    wanted = {"main", "scatter", "deltas", "sources", "sensitivity", "heatmap", "wins", "radar", "profiles", "seeds", "forest-sampling"}
    assert wanted <= drawn and drawn == {path.stem for path in (done / "figures").glob("*.png")}
    page = (done / "report.html").read_text()
    assert "Does sampling help?" in page and page.count("<svg") == len(drawn)
    assert not re.search(r'(?:src|href)="https?:', page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    links = re.findall(r'href="([^"#][^"]*)"', page)
    assert links and all((done / link).is_file() for link in links)


def test_flips_name_the_tops_that_the_scores_name(place, done):
    record = read_json(done / "flips" / "test" / "a3--decay..teacher.json")
    assert record["seeds"] == len(SEEDS)
    lists = {item.id: item for item in load_examples(place / "test.jsonl")}
    (path,) = (done / "scores" / "test").glob("a3--decay--seed0-*.jsonl")
    scores = {item.example_id: item.scores for item in load_scores(path)}
    for case in record["examples"]:
        best = scores[case["id"]].index(max(scores[case["id"]]))
        assert case["a_top"]["text"] == lists[case["id"]].documents[best] and 1 <= case["agree"] <= 2


def test_done_is_not_done_again_and_the_report_can_be_made_alone(place, done, monkeypatch):
    numbers = {path: path.read_bytes() for path in world.result_files(done)}
    said = []
    result = again(load_matrix(done / "matrix.yaml"), done, say=said.append)
    assert not [line for line in said if "started" in line] and not result.failed
    page = (done / "report.html").read_text()
    (done / "report.html").unlink()
    collect_only(done, say=world.QUIET)
    assert numbers == {path: path.read_bytes() for path in world.result_files(done)}
    changing = re.compile(r"<time.*?</time>|<h3>Environment.*?</dl>", re.S)
    assert changing.sub("", (done / "report.html").read_text()) == changing.sub("", page)
    monkeypatch.setattr("steadyrank.reports.experiment.page.write_page", lambda experiment: experiment.study.folder)
    assert write_report(done) == done  # `steadyrank report` knows an experiment by its index
    states = standing(load_matrix(done / "matrix.yaml"), done)
    assert {(cell.state, cell.steps_done, cell.steps) for cell in states} == {("done", 2, 2)}


def test_a_failing_cell_is_reported_and_the_rest_goes_on(place):
    out = place / "failing"
    methods = [
        "a3",
        {"preset": "a1", "set": {"expect": {"RR@6": "> 1"}}},
        {"preset": "a10", "set": {"teacher.model": str(place / "nowhere")}},
    ]
    result = run(place, out, methods=methods, evaluate={"test": {"lists": str(place / "test.jsonl")}}, baselines=[], page=True)
    states = {cell["name"]: (cell["state"], cell["sentence"]) for cell in read_json(out / "experiment.json")["cells"]}
    assert states["a3--seed0"] == ("done", "")
    assert states["a1--seed0"][0] == "failed" and "did not reach" in states["a1--seed0"][1]
    assert states["a10--seed0"][0] == "skipped" and "nowhere" in states["a10--seed0"][1]
    assert (result.cells, result.planned) == (1, 3) and len(result.failed) == 3  # the teacher that is not there is the third
    page = (out / "report.html").read_text()
    assert "Not done" in page and "did not reach" in page
    assert [row["system"] for row in rows(out, "main") if row["measure"] == "RR@6" and row["role"] == "student"] == ["a3"]


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def test_killed_between_training_and_scores_it_goes_on_to_the_same_numbers(place, done, monkeypatch):
    one = {"evaluate": {"test": {"lists": str(place / "test.jsonl")}}, "baselines": []}
    run(place, place / "whole", **one)
    whole = {path.relative_to(place / "whole"): path.read_bytes() for path in world.result_files(place / "whole")}

    def die(*args, **options):
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(work, "score_splits", die)
        run(place, place / "killed", **one)
    matrix = load_matrix(place / "killed" / "matrix.yaml")
    assert [cell.state for cell in standing(matrix, place / "killed")] == ["trained", "not started"]
    said = []
    run(place, place / "killed", say=said.append, **one)
    assert not [line for line in said if "a3--seed0] step" in line]  # trained, so not trained again
    assert whole == {path.relative_to(place / "killed"): path.read_bytes() for path in world.result_files(place / "killed")}


def test_another_recipe_in_the_folder_is_told_and_restart_takes_it(place):
    one = {"methods": ["a1"], "evaluate": {"test": {"lists": str(place / "test.jsonl")}}, "baselines": []}
    out = place / "changed"
    run(place, out, **one)
    values = world.fields(place, **one)
    values["base"]["training"] = {**world.TRAINING, "learning_rate": 0.01}
    matrix = load_matrix(world.write(place / "m.yaml", values))
    assert [cell.state for cell in standing(matrix, out)] == ["changed"]
    (record,) = again(matrix, out).failed
    assert "another run" in record.sentence and "restart" in record.sentence
    assert not again(matrix, out, restart=True).failed


def test_the_command_lists_shows_status_and_tells_mistakes(place, done):
    def call(*words):
        return CliRunner().invoke(app, ["experiment", *map(str, words)])

    assert set(json.loads(call("--list", "--json").stdout)) == {"ablations", "sweeps", "seeds", "transfer"}
    shown = json.loads(call(done / "matrix.yaml", "-o", done, "--status", "--json", "--only", "a3").stdout)["cells"]
    assert [cell["is_selected"] for cell in shown].count(True) == 4 and {cell["state"] for cell in shown} == {"done"}
    for words, message in ((("ablatons",), "ablations"), ((done / "matrix.yaml", "--only", "a33", "--status"), "a3"), ((), "ablations")):
        error = call(*words).exception
        assert isinstance(error, ConfigError) and message in str(error)

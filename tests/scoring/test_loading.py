"""`load_scorer`: names, folders, mappings, and the one sentence for each thing that is not there."""

from __future__ import annotations

import subprocess
import sys

import pytest
import tiny_classifiers

from steadyrank.errors import ConfigError, MissingDataError
from steadyrank.scoring import SCORERS, load_scorer
from steadyrank.scoring.cross_encoder import CrossEncoder

DOCUMENTS = ["the capital", "bananas are yellow"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("models") / "bert"
    CrossEncoder.from_model(*tiny_classifiers.make("bert")).save(path)
    return str(path)


def test_every_name_without_a_model_loads_under_its_name():
    for name in ("bm25", "random", "constant", "first_stage", "oracle"):
        assert load_scorer(name).name == name and name in SCORERS
        assert load_scorer({"kind": name}).name == name


def test_a_folder_loads_with_options(folder):
    scorer = load_scorer(folder, max_length=20)
    assert isinstance(scorer, CrossEncoder) and scorer.max_length == 20 and scorer.name == "bert"
    same = load_scorer({"kind": "cross_encoder", "model": folder, "max_length": 20})
    assert same.score("q", DOCUMENTS) == scorer.score("q", DOCUMENTS)
    assert load_scorer(scorer) is scorer


def test_layers_of_a_model_make_a_smaller_one(folder):
    whole = load_scorer(folder)
    first = load_scorer({"from": folder, "layers": [1]})
    assert first.model.config.num_hidden_layers == 1 and not first.untrained
    assert load_scorer(folder, layers=[0, 1]).score("q", DOCUMENTS) == pytest.approx(whole.score("q", DOCUMENTS), abs=1e-6)
    assert first.score("q", DOCUMENTS) != pytest.approx(whole.score("q", DOCUMENTS), abs=1e-3)
    kept = first.model.bert.encoder.layer[0].output.dense.weight
    assert kept.equal(whole.model.bert.encoder.layer[1].output.dense.weight)
    with pytest.raises(ConfigError, match="layers"):
        load_scorer(folder, layers=[0, 9])


@pytest.mark.parametrize(
    "spec, options, error, words",
    [
        ("bm52", {}, ConfigError, "'bm52' unknown; did you mean 'bm25'"),
        ("teecher", {}, ConfigError, "did you mean 'teacher'"),
        ("./nowhere/model", {}, MissingDataError, "./nowhere/model does not exist"),
        ("random", {"sead": 1}, ConfigError, "'sead' unknown; did you mean 'seed'"),
        ({"kind": "cross_encodr", "model": "x"}, {}, ConfigError, "did you mean 'cross_encoder'"),
        ({"kind": "cross_encoder"}, {}, ConfigError, "names no model"),
    ],
)
def test_what_is_not_there_is_one_sentence(spec, options, error, words):
    with pytest.raises(error) as caught:
        load_scorer(spec, **options)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_an_unknown_option_of_a_model_is_refused(folder):
    with pytest.raises(ConfigError, match="'max_lenght' unknown; did you mean 'max_length'"):
        load_scorer(folder, max_lenght=20)


def test_a_folder_that_is_no_model_says_where_one_is(tmp_path, folder):
    with pytest.raises(MissingDataError, match="no config.json"):
        load_scorer(tmp_path)
    load_scorer(folder).save(tmp_path / "final")
    with pytest.raises(MissingDataError, match="did you mean .*final"):
        load_scorer(tmp_path)
    (tmp_path / "final" / "config.json").write_text("{")
    with pytest.raises(ConfigError, match="not JSON"):
        load_scorer(tmp_path / "final")


def test_importing_the_room_and_scoring_without_a_model_imports_no_torch():
    code = (
        "import sys; from steadyrank import load_scorer; "
        "load_scorer('bm25').score('q', ['a']); load_scorer('random').score('q', ['a']); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

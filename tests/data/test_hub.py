"""Datasets that the `datasets` library reads, here from folders of its own kind; no hub is asked."""

from __future__ import annotations

import json

import pytest

from steadyrank import load_examples
from steadyrank.data.hub import HubSpec, parse_spec
from steadyrank.errors import ConfigError, InputError, MissingDataError

pytest.importorskip("datasets")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    rows = [{"query": f"q{number}", "docs": ["a", "b"], "labels": [1.0, 0.0]} for number in range(3)]
    own = [{"query": "other", "instruction": None, "candidates": [{"id": "x", "text": "one"}, {"id": "y", "text": "two"}]}]
    write(tmp_path / "data" / "train.jsonl", rows)
    write(tmp_path / "own" / "train.jsonl", own)
    return tmp_path


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_rows_of_columns_and_of_our_own(folder):
    found = load_examples(f"hub:{folder}/data:train")
    assert [example.query for example in found] == ["q0", "q1", "q2"]
    assert found[0].documents == ["a", "b"] and found[0].relevance == (1.0, 0.0)
    (own,) = load_examples(f"hub:{folder}/own")
    assert [candidate.id for candidate in own.candidates] == ["x", "y"] and own.instruction is None


def test_which_split_is_asked(folder):
    write(folder / "data" / "test.jsonl", [{"query": "t", "docs": ["a"], "labels": [1.0]}])
    with pytest.raises(InputError, match="has the splits train, test; name one|has the splits test, train; name one"):
        load_examples(f"hub:{folder}/data")
    with pytest.raises(ConfigError, match="'train'"):
        load_examples(f"hub:{folder}/data:trian")


def test_a_bad_row_is_named(folder):
    write(
        folder / "data" / "train.jsonl",
        [{"query": "q", "docs": ["a"], "labels": [1.0]}, {"query": "q", "docs": ["a"], "labels": [1.0, 2.0]}],
    )
    with pytest.raises(InputError, match="2.*has 2 labels for 1 documents"):
        load_examples(f"hub:{folder}/data:train")


def test_what_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(MissingDataError, match="cannot be read .*; check its name and the network"):
        load_examples(f"hub:{tmp_path}/nothing")


def test_specs():
    assert parse_spec("hub:a/b") == HubSpec("a/b")
    assert parse_spec("hub:a/b@main#en:test") == HubSpec("a/b", "main", "en", "test")
    with pytest.raises(InputError, match="not of the form"):
        parse_spec("hub:")

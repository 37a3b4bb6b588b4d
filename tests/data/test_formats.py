"""Readers and writers: what goes in comes out, and each mistake is named with its file and line."""

import gzip
import json

import pytest

from steadyrank import Candidate, RankingExample, load_examples, save_examples
from steadyrank.data.beir import read_beir, write_beir
from steadyrank.data.pools import pool_fingerprint, pools_from_folder
from steadyrank.data.reading import write_examples
from steadyrank.data.trec import read_qrels, read_run, write_qrels, write_run
from steadyrank.errors import InputError, MissingDataError, NonFiniteScoreError

EXAMPLES = [
    RankingExample(
        "red fox", [Candidate("a red fox", "d1", "Fox"), Candidate("", "d2")], [2, -1], instruction="find it", id="q1", group="g"
    ),
    RankingExample("blue whale", [Candidate("a whale", "d3"), Candidate("fox ünïcode 狐", "d4")], [0.5, 0], id="q2", source="sea"),
]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_json_lines_round_trip_with_unknown_keys(tmp_path):
    row = {"id": 7, "query": "q", "candidates": [{"id": 1, "text": "a", "url": "u"}, "b"], "relevance": [1, 0], "made_by": "me"}
    path = write(tmp_path / "in.jsonl", json.dumps(row) + "\n")
    example = load_examples(path)[0]
    assert example.id == "7" and example.candidates[0].id == "1"
    save_examples(tmp_path / "out.jsonl", [example])
    again = json.loads((tmp_path / "out.jsonl").read_text())
    assert next(iter(again)) == "schema" and again["made_by"] == "me" and again["candidates"][0]["url"] == "u"
    assert load_examples(tmp_path / "out.jsonl") == [example]


def test_packed_json_lines_are_read(tmp_path):
    with gzip.open(tmp_path / "in.jsonl.gz", "wt") as handle:
        handle.write('{"query": "q", "candidates": ["a"]}\n')
    assert load_examples(tmp_path / "in.jsonl.gz")[0].documents == ["a"]


def test_another_schema_version_is_refused(tmp_path):
    path = write(tmp_path / "in.jsonl", '{"schema": "steadyrank.example/9", "query": "q", "candidates": ["a"]}\n')
    with pytest.raises(InputError, match="steadyrank.example/9"):
        load_examples(path)


@pytest.mark.parametrize(("kind", "name"), [("jsonl", "x.jsonl"), ("columns", "x.jsonl"), ("parquet", "x.parquet"), ("beir", "x")])
def test_every_format_keeps_queries_texts_and_grades(tmp_path, kind, name):
    write_examples(tmp_path / name, EXAMPLES, kind=kind)
    again = {example.id: example for example in load_examples(tmp_path / name)}
    for example in EXAMPLES:
        got = again[example.id]
        assert (got.query, got.instruction) == (example.query, example.instruction)
        assert sorted(zip(got.documents, got.relevance)) == sorted(zip(example.documents, example.relevance))


def test_positive_and_negative_columns(tmp_path):
    path = write(tmp_path / "in.jsonl", '{"query": "q", "positive": "a", "negative_1": "b", "negative_2": "c"}\n')
    example = load_examples(path)[0]
    assert example.documents == ["a", "b", "c"] and example.relevance == (1.0, 0.0, 0.0)


def test_beir_errors_name_what_is_missing(tmp_path):
    with pytest.raises(MissingDataError, match="corpus.jsonl is missing"):
        list(read_beir(tmp_path))
    write_beir(tmp_path, EXAMPLES)
    with pytest.raises(MissingDataError, match="qrels/dev.tsv"):
        list(read_beir(tmp_path, split="dev"))
    write(tmp_path / "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\tnowhere\t1\n")
    with pytest.raises(InputError, match="nowhere"):
        list(read_beir(tmp_path))


def test_beir_refuses_one_id_for_two_texts(tmp_path):
    twice = [RankingExample("a", [Candidate("x", "d")], [1]), RankingExample("b", [Candidate("y", "d")], [1])]
    with pytest.raises(InputError, match="two different documents"):
        write_beir(tmp_path, twice)


def test_qrels_keep_negative_and_fractional_grades(tmp_path):
    path = write(tmp_path / "qrels", "q1 0 d1 -1\nq1 Q0 d2 0.5\n\nq2\t0\td1\t3\n")
    assert read_qrels(path) == {"q1": {"d1": -1.0, "d2": 0.5}, "q2": {"d1": 3.0}}
    write_qrels(tmp_path / "again", read_qrels(path))
    assert read_qrels(tmp_path / "again") == read_qrels(path)


@pytest.mark.parametrize(
    ("text", "named"),
    [("q1 0 d1\nq1 d2\n", ":2"), ("q1 0 d1 one\nq1 0 d2 x\n", ":2"), ("q1 0 d1 1\nq1 0 d1 2\n", "d1"), ("q1 0 d1 nan\n", "nan")],
)
def test_bad_qrels_are_named(tmp_path, text, named):
    with pytest.raises(InputError) as caught:
        read_qrels(write(tmp_path / "qrels", text))
    assert named in str(caught.value) and "qrels" in str(caught.value)


def test_runs_refuse_repeats_and_nan(tmp_path):
    repeated = write(tmp_path / "run", "q1 Q0 d1 1 0.2 t\nq1 Q0 d1 2 0.9 t\n")
    with pytest.raises(InputError, match=":2.*d1"):
        read_run(repeated)
    assert read_run(repeated, duplicates="first") == {"q1": {"d1": 0.2}}
    assert read_run(repeated, duplicates="best") == {"q1": {"d1": 0.9}}
    with pytest.raises(NonFiniteScoreError, match="nan"):
        read_run(write(tmp_path / "nan", "q1 Q0 d1 1 nan t\n"))


def test_a_run_is_its_scores_and_not_its_ranks(tmp_path):
    run = read_run(write(tmp_path / "run", "q1 Q0 d1 1 0.2 t\nq1 Q0 d2 2 0.9 t\n"))
    write_run(tmp_path / "again", run)
    assert (tmp_path / "again").read_text().splitlines()[0] == "q1 Q0 d2 1 0.9 steadyrank"
    assert read_run(tmp_path / "again") == run


def test_trec_eval_files_are_read(shared_dir):
    folder = shared_dir / "data/trec_eval_goldens"
    lines = [line.split() for line in (folder / "qrels.test").read_text().splitlines()]
    qrels, run = read_qrels(folder / "qrels.test"), read_run(folder / "results.test")
    assert sum(len(judged) for judged in qrels.values()) == len({(line[0], line[2]) for line in lines})
    assert sum(len(scores) for scores in run.values()) == len((folder / "results.test").read_text().splitlines())


def test_pools_of_a_real_folder(shared_dir):
    folder = shared_dir / "data/instructir-msmarco"
    pools = pools_from_folder(folder, top_k=10)
    counts = pools.counts
    found = sum(sum(example.relevance) for example in pools.examples)
    assert counts["queries"] == 1743 and counts["positives_missed"] + found == 1743  # one positive each: in the pool, or counted as missed
    assert all(len(example.candidates) <= 10 for example in pools.examples)
    firsts = sum(example.relevance[0] > 0 for example in pools.examples) / found
    assert 0.05 < firsts < 0.2  # shuffled: the positive is first in about one list of ten, where BM25 would put most of them
    again = pools_from_folder(folder, top_k=10)
    assert [pool_fingerprint(a) for a in pools.examples] == [pool_fingerprint(b) for b in again.examples]

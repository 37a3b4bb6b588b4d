"""What stands in for a rater: judgments, scored lists, graded lists, qrels; what does not fit is named."""

import json

import pytest

from steadyrank import RankingExample
from steadyrank.data.jsonl import save_examples, save_scores
from steadyrank.errors import ConfigError, InputError
from steadyrank.judging.agreement.files import read_raters
from steadyrank.judging.base import JudgedList
from steadyrank.judging.files import save_judgments
from steadyrank.records import Candidate, ScoredList

LISTS = [
    RankingExample("one", [Candidate("a text", id="a"), Candidate("b text", id="b")], [1, 0], id="q1"),
    RankingExample("two", [Candidate("c text", id="c"), Candidate("d text", id="d")], [0, 1], id="q2"),
]


def test_judgments_keep_their_name_or_take_one(tmp_path):
    save_judgments(tmp_path / "j.jsonl", [JudgedList("q1", (3, None))], judge="mine")
    (plain,), (renamed,) = read_raters(tmp_path / "j.jsonl", LISTS), read_raters(tmp_path / "j.jsonl", LISTS, name="other")
    assert (plain.name, plain.rows[0].grades, plain.is_graded) == ("mine", (3.0, None), True)
    assert renamed.name == "other" and renamed.rows == plain.rows


def test_a_file_of_several_judges_gives_all_or_the_one_named(tmp_path):
    save_judgments(tmp_path / "j.jsonl", [JudgedList("q1", (3, 0), judge="x"), JudgedList("q1", (1, 1), judge="y")], judge="")
    assert [(one.name, one.rows[0].grades) for one in read_raters(tmp_path / "j.jsonl", LISTS)] == [("x", (3, 0)), ("y", (1, 1))]
    assert [one.name for one in read_raters(tmp_path / "j.jsonl", LISTS, name="y")] == ["y"]
    with pytest.raises(ConfigError, match="'z'"):
        read_raters(tmp_path / "j.jsonl", LISTS, name="z")


def test_judgments_of_other_candidates_are_refused(tmp_path):
    for ids, fits in ((["a", "b"], True), (["b", "a"], False)):
        save_judgments(tmp_path / "j.jsonl", [JudgedList("q1", (3, 0), extra={"candidates": ids})], judge="mine")
        if fits:
            assert read_raters(tmp_path / "j.jsonl", LISTS)
            continue
        with pytest.raises(InputError, match="'q1' holds other candidates, or in another order"):
            read_raters(tmp_path / "j.jsonl", LISTS)


def test_scores_give_ranks_only(tmp_path):
    save_scores(tmp_path / "s.jsonl", [ScoredList("q1", "bm25", (4.5, -2.0), scale="grade")])
    (given,) = read_raters(tmp_path / "s.jsonl", LISTS)
    assert (given.name, given.rows[0].grades, given.is_graded) == ("bm25", (4.5, -2.0), False)
    save_scores(tmp_path / "s.jsonl", [ScoredList("q1", "bm25", (4.5, 2.0)), ScoredList("q1", "teacher", (1.0, 2.0))])
    with pytest.raises(InputError, match="holds 2 scored lists of 'q1'"):
        read_raters(tmp_path / "s.jsonl", LISTS)


def test_graded_lists_are_matched_by_ids_and_negative_is_missing(tmp_path):
    people = [RankingExample("one", [Candidate("b text", id="b"), Candidate("a text", id="a")], [2, -1], id="q1")]
    save_examples(tmp_path / "people.jsonl", people)
    (given,) = read_raters(tmp_path / "people.jsonl", LISTS)
    assert given.name == "people" and given.rows == [JudgedList("q1", (None, 2.0))]


def test_qrels_are_matched_by_ids(tmp_path):
    (tmp_path / "people.tsv").write_text("q2 0 d 3\nq2 0 zzz 1\nq9 0 a 1\nq1 0 a -1\n")
    (given,) = read_raters(tmp_path / "people.tsv", LISTS)
    assert given.rows == [JudgedList("q1", (None, None)), JudgedList("q2", (None, 3.0))]
    (tmp_path / "other.txt").write_text("q9 0 a 1\n")
    with pytest.raises(InputError, match="other.txt: grades none of the lists given"):
        read_raters(tmp_path / "other.txt", LISTS)


@pytest.mark.parametrize("row, told", [({"schema": "audit/1"}, "1: schema: is 'audit/1'"), (None, "holds no judgment")])
def test_other_files_are_refused(tmp_path, row, told):
    (tmp_path / "x.jsonl").write_text(json.dumps(row) if row else "")
    with pytest.raises(InputError, match=told):
        read_raters(tmp_path / "x.jsonl", LISTS)

"""A missing grade is never a zero, and a judge that answers for other lists is refused."""

import pytest

from steadyrank import RankingExample, names
from steadyrank.errors import ConfigError, InputError
from steadyrank.judging import JUDGES, SETTINGS, JudgedList, TooManyMissingError, load_judge, with_grades
from steadyrank.judging.files import save_judgments

LISTS = [
    RankingExample("a", ["x", "y", "z"], [3, -1, 0], id="1"),
    RankingExample("b", ["x", "y"], [-1, 2], id="2"),
]


class Fixed:
    name, max_missing = "fixed", 0.5

    def __init__(self, *rows):
        self.rows = list(rows)

    def judge(self, examples, *, watch=None):
        return self.rows


def test_unjudged_candidates_leave_and_are_counted():
    lists, counts = with_grades(LISTS, load_judge("relevance"))
    assert [example.id for example in lists] == ["1"]
    assert lists[0].documents == ["x", "z"] and lists[0].relevance == (3.0, 0.0)
    assert counts == {"judged_candidates": 3, "missing_grades": 2, "lists_without_two_grades": 1, "missing_share": 0.4}


def test_grades_of_the_judge_replace_those_of_the_file():
    lists, _ = with_grades(LISTS[:1], Fixed(JudgedList("1", (0, 1, None))))
    assert lists[0].documents == ["x", "y"] and lists[0].relevance == (0.0, 1.0)
    assert LISTS[0].relevance == (3.0, -1.0, 0.0)


@pytest.mark.parametrize("rows", [[], [JudgedList("2", (1, 1, 1))], [JudgedList("1", (1, 1))]])
def test_an_answer_for_something_else_is_refused(rows):
    with pytest.raises(InputError, match="fixed"):
        with_grades(LISTS[:1], Fixed(*rows))


def test_lists_without_grades_are_named():
    with pytest.raises(InputError, match="'q'"):
        with_grades([RankingExample("a", ["x", "y"], id="q")], load_judge("relevance"))


def test_a_judge_is_known_by_its_kind_and_unknown_ones_and_wrong_fields_are_refused():
    assert load_judge("relevance").name == "relevance" and load_judge({"kind": "relevance", "name": "gold"}).name == "gold"
    assert all(names.load(target) for target in JUDGES.values()) and set(JUDGES) == set(SETTINGS)
    for spec, said in (
        ("relevanse", "relevance"),
        ({"kind": "scorre", "scorer": "bm25"}, "scorer"),
        ({"name": "x"}, "kind"),
        ({"kind": "scorer"}, "needs 'scorer'"),
        ({"kind": "relevance", "max_mising": 1}, "max_missing"),
        ({"kind": "relevance", "max_missing": 2}, "max_missing"),
    ):
        with pytest.raises(ConfigError, match=said):
            load_judge(spec)


def test_what_the_lists_leave_unjudged_refuses_training_only_where_that_is_asked_for():
    with pytest.raises(TooManyMissingError, match="40.0%"):
        with_grades(LISTS, load_judge("relevance", max_missing=0.3))


def test_recorded_judgments_are_found_by_example_and_candidate(tmp_path):
    path = tmp_path / "j.jsonl"
    rows = [JudgedList("1", (2, None, 1), extra={"candidates": ["2", "1", "0"]}), JudgedList("9", (1,))]
    save_judgments(path, rows, judge="somebody")
    judge = load_judge(str(path))
    assert [row.grades for row in judge.judge(LISTS)] == [(1.0, None, 2.0), (None, None)]
    assert judge.name == "somebody" and judge.about()["lists_not_in_the_file"] == 1
    save_judgments(path, [JudgedList("1", (2, 1))], judge="somebody")
    with pytest.raises(InputError, match="2 grades of example '1', which has 3"):
        load_judge(str(path)).judge(LISTS)
    save_judgments(path, [JudgedList("x", (2, 1))], judge="somebody")
    with pytest.raises(InputError, match="none of the 2 lists"):
        load_judge(str(path)).judge(LISTS)

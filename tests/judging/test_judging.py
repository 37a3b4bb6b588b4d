"""A missing grade is never a zero, and a judge that answers for other lists is refused."""

import pytest

from steadyrank import RankingExample
from steadyrank.errors import ConfigError, InputError
from steadyrank.judging import JUDGES, JudgedList, load_judge, with_grades

LISTS = [
    RankingExample("a", ["x", "y", "z"], [3, -1, 0], id="1"),
    RankingExample("b", ["x", "y"], [-1, 2], id="2"),
]


class Fixed:
    name = "fixed"

    def __init__(self, *rows):
        self.rows = list(rows)

    def judge(self, examples):
        return self.rows


def test_unjudged_candidates_leave_and_are_counted():
    lists, counts = with_grades(LISTS, load_judge("relevance"))
    assert [example.id for example in lists] == ["1"]
    assert lists[0].documents == ["x", "z"] and lists[0].relevance == (3.0, 0.0)
    assert counts == {"judged_candidates": 3, "missing_grades": 2, "lists_without_two_grades": 1}


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


def test_every_judge_loads_and_unknown_ones_are_refused():
    assert all(load_judge(name).name == name for name in JUDGES)
    with pytest.raises(ConfigError, match="relevance"):
        load_judge("relevanse")

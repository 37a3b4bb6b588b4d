"""Scores become grades by named rules, whose values are arithmetic."""

from __future__ import annotations

import math

import pytest

from steadyrank import RankingExample
from steadyrank.errors import ConfigError
from steadyrank.judging import load_judge
from steadyrank.judging.scorers import ScorerJudge, to_grades
from steadyrank.judging.settings import ScorerSettings
from steadyrank.scoring.callable import CallableScorer

LISTS = [RankingExample("q", ["aa", "b", "cccc"], id="1"), RankingExample("q", ["a", "b"], id="2")]


def test_the_rules():
    assert to_grades([0.0, math.log(2), -math.log(2)], "sigmoid") == pytest.approx([1.5, 2.0, 1.0])
    assert to_grades([-1e4, 1e4], "sigmoid") == [0.0, 3.0]
    assert to_grades([0.0, 0.5, 1.0], "linear") == [0.0, 1.5, 3.0]
    assert to_grades([5.0, -1.0, 2.0, 2.0], "rank") == [3.0, 0.0, 1.5, 1.5]  # ranks 4, 1, 2.5, 2.5 of 4
    assert to_grades([7.0], "rank") == [1.5] and to_grades([1, 1, 1], "rank") == [1.5] * 3
    assert to_grades([-1.0, 0.0, 0.4, 9.0], "thresholds", thresholds=[0.0, 0.5]) == [0.0, 1.0, 1.0, 2.0]
    with pytest.raises(ConfigError, match="1.5"):
        to_grades([0.1, 1.5], "linear")


def test_any_scorer_is_a_judge_and_its_scale_names_the_rule():
    scorer = CallableScorer(lambda query, documents: [float(len(text)) for text in documents], scale="logit", name="length")
    judge = ScorerJudge(ScorerSettings(scorer="length"), scorer=scorer)
    rows = judge.judge(LISTS)
    assert judge.rule == "sigmoid" and judge.name == "length"
    assert rows[0].grades == pytest.approx([3 / (1 + math.exp(-size)) for size in (2, 1, 4)])
    assert load_judge({"kind": "scorer", "scorer": "bm25"}).rule == "rank"
    assert [row.grades for row in load_judge({"kind": "scorer", "scorer": "first_stage"}).judge(LISTS)] == [(3.0, 1.5, 0.0), (3.0, 0.0)]


def test_a_watch_is_told_of_every_document():
    class Watch:
        steps: list[bool] = []

        def begin(self, total, what):
            self.total = total

        def step(self, is_missing):
            self.steps.append(is_missing)

    watch = Watch()
    load_judge({"kind": "scorer", "scorer": "first_stage"}).judge(LISTS, watch=watch)
    assert watch.total == 5 and watch.steps == [False] * 5


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"rule": "thresholds"}, "go together"),
        ({"rule": "rank", "thresholds": [1.0]}, "go together"),
        ({"thresholds": [1.0, 0.5]}, "must rise"),
        ({"rule": "softmax"}, "rule"),
        ({"scorer": "bm26"}, "bm25"),
    ],
)
def test_wrong_rules_are_refused(fields, said):
    with pytest.raises(ConfigError, match=said):
        load_judge({"kind": "scorer", "scorer": "bm25", **fields})


def test_a_causal_language_model_grades_one_document_a_prompt(tmp_path):
    pytest.importorskip("torch")
    from tiny_graders import grader

    scorer = grader(width=1)
    judge = ScorerJudge(ScorerSettings(scorer="tiny", rule="linear"), scorer=scorer)
    rows = judge.judge(LISTS)
    expected = [3 * score for score in scorer.score_examples(LISTS)[0].scores]
    assert rows[0].grades == pytest.approx(expected) and all(0 <= grade <= 3 for row in rows for grade in row.grades)
    alone = judge.judge([LISTS[0].with_candidates([2])])[0].grades[0]
    assert alone == pytest.approx(rows[0].grades[2], abs=1e-5)  # no document sees another
    with pytest.raises(ConfigError, match="width"):
        load_judge({"kind": "causal_lm", "model": "smollm2", "options": {"width": 4}})

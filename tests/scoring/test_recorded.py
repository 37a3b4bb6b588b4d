"""Scores made elsewhere: a file of scored lists, and any function. Missing is counted, wrong is an error, neither becomes a score."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from steadyrank import Presentation, RankingExample, ScoredList, load_scorer, save_scores
from steadyrank.errors import ConfigError, InputError, MissingDataError, NonFiniteScoreError, RunError
from steadyrank.scoring.callable import CallableScorer

DOCUMENTS = ("aaa", "a", "aaaaa")


def examples(count: int) -> list[RankingExample]:
    return [RankingExample(f"query {n}", DOCUMENTS, id=f"q{n}") for n in range(count)]


@pytest.fixture
def recorded(tmp_path):
    """q0 under two presentations, q1 under one."""
    lists = [
        ScoredList("q0", "theirs", (1.0, 2.0, 3.0), "probability", Presentation(order=(2, 0, 1), seed=3)),
        ScoredList("q1", "theirs", (4.0, 5.0, 6.0), "probability", truncated=(1,), empty=(0,)),
        ScoredList("q0", "theirs", (7.0, 8.0, 9.0), "probability", Presentation(windows="contiguous:2")),
    ]
    save_scores(tmp_path / "scores.jsonl", lists)
    return str(tmp_path / "scores.jsonl"), lists


def test_all_presentations_of_a_file_come_back_as_they_are(recorded):
    path, lists = recorded
    for scorer in (load_scorer(path), load_scorer({"kind": "recorded", "path": path})):
        assert scorer.name == "theirs" and scorer.scale == "probability" and scorer.example_ids == ["q0", "q1"]
        assert scorer.score_examples(examples(2)) == [lists[0], lists[2], lists[1]]
        assert scorer.presentations_of(examples(1)[0]) == [lists[0].presentation, lists[2].presentation]
        assert scorer.failures == []


def test_examples_that_are_not_in_the_file_are_counted(recorded):
    scorer = load_scorer(recorded[0])
    assert len(scorer.score_examples(examples(4))) == 3
    assert [(one.example_id, one.presentation_index) for one in scorer.failures] == [("q2", 0), ("q3", 0)]
    with pytest.raises(RunError, match="'q2'"):
        load_scorer(recorded[0], on_failure="raise").score_examples(examples(4))
    with pytest.raises(InputError, match="none of these 1 examples.*asked: 'x'; held: 'q0', 'q1'"):
        scorer.score_examples([RankingExample("q", DOCUMENTS, id="x")])


def test_presentations_are_found_by_what_was_laid_not_by_their_seed(recorded):
    path, lists = recorded
    scorer = load_scorer(path)
    laid = [[Presentation(order=(2, 0, 1)), Presentation(order=(0, 1, 2))], [Presentation(order=(0, 1, 2), seed=9)]]
    rows = scorer.score_presentations(examples(2), laid)
    assert rows == [[lists[0]], [lists[1]]]  # the identity is canonical order; windows of q0 were laid otherwise
    assert [(one.example_id, one.presentation_index) for one in scorer.failures] == [("q0", 1)]
    assert "under this presentation" in scorer.failures[0].reason


def test_lists_of_another_length_are_another_pool(recorded):
    with pytest.raises(InputError, match="3 scores of example 'q0', which has 2 candidates"):
        load_scorer(recorded[0]).score_examples([RankingExample("q", DOCUMENTS[:2], id="q0")])


def test_one_scorer_of_a_file_is_chosen(tmp_path):
    path = tmp_path / "two.jsonl.gz"
    save_scores(path, [ScoredList("q0", name, (value,), "logit") for name, value in (("a", 1.0), ("b", 2.0))])
    with pytest.raises(InputError, match="2 scorers; choose one with scorer: a, b"):
        load_scorer(path)
    with pytest.raises(ConfigError, match="unknown"):
        load_scorer(path, scorer="c")
    one, other = load_scorer(path, scorer="b", name="mine"), load_scorer(path, scorer="a")
    assert one.score_examples([RankingExample("q", ("d",), id="q0")])[0].scores == (2.0,) and one.name == "mine"
    assert one.fingerprint != other.fingerprint


def test_files_that_hold_no_usable_lists(tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InputError, match="no scored list"):
        load_scorer(tmp_path / "empty.jsonl")
    with pytest.raises(MissingDataError):
        load_scorer(tmp_path / "nowhere.jsonl")
    (tmp_path / "nan.jsonl").write_text('{"schema": "steadyrank.scores/1", "example_id": "q", "scorer": "s", "scores": [NaN]}\n')
    with pytest.raises(NonFiniteScoreError):
        load_scorer(tmp_path / "nan.jsonl")
    save_scores(tmp_path / "mixed.jsonl", [ScoredList("q0", "a", (1.0,), "logit"), ScoredList("q1", "a", (1.0,), "grade")])
    with pytest.raises(InputError, match="mixes the scales grade and logit"):
        load_scorer(tmp_path / "mixed.jsonl")


def test_single_lists_are_scored_only_where_the_file_has_them(tmp_path):
    known = RankingExample("q", DOCUMENTS)
    save_scores(tmp_path / "scores.jsonl", [ScoredList(known.id, "s", (3.0, 1.0, 2.0))])
    scorer = load_scorer(tmp_path / "scores.jsonl")
    assert scorer.score("q", list(DOCUMENTS)) == [3.0, 1.0, 2.0]
    with pytest.raises(RunError, match="cannot score it"):
        scorer.score("another", list(DOCUMENTS))


# --- functions -----------------------------------------------------------------------------------------------------------------------


def lengths(query, documents):
    return [len(document) for document in documents]


def places(query, documents):
    return np.arange(len(documents)) / 10


def test_a_function_scores_in_the_order_laid():
    scorer = load_scorer(places)
    assert isinstance(scorer, CallableScorer) and scorer.name == "places" and scorer.reads_lists
    found = scorer.score_presentations(examples(1), [[Presentation(order=(2, 0, 1)), Presentation()]])[0]
    assert [one.scores for one in found] == [(0.1, 0.2, 0.0), (0.0, 0.1, 0.2)]
    assert load_scorer({"kind": "callable", "function": lengths, "name": "n", "scale": "logit"}).score("q", ["a", "", "aa"])[::2] == [1, 2]


def test_instructions_are_joined_to_the_query_or_handed_over():
    asked = []

    def plain(query, documents):
        asked.append(query)
        return [0.0] * len(documents)

    def aware(query, documents, *, instruction=None):
        asked.append((query, instruction))
        return [0.0] * len(documents)

    load_scorer(plain).score("q", ["a"], instruction="i")
    load_scorer(plain, instruction_template="{query} ({instruction})").score("q", ["a"], instruction="i")
    load_scorer(aware).score("q", ["a"], instruction="i")
    load_scorer(aware).score("q", ["a"])
    assert asked == ["i\nq", "q (i)", ("q", "i"), ("q", None)]


@pytest.mark.parametrize(
    "values, words",
    [
        ([1.0, 2.0], "gave 2 scores for 3 documents"),
        ([1.0] * 4, "gave 4 scores for 3"),
        ([1.0, math.nan, 2.0], "score 1 is nan"),
        ([1.0, 2.0, math.inf], "score 2 is inf"),
        ([1.0, None, 2.0], "score 1 is None"),
        ([True, 1.0, 2.0], "score 0 is True"),
        (["1", 1.0, 2.0], "score 0 is '1'"),
        (None, "gave a NoneType"),
        ({0: 1.0, 1: 2.0, 2: 3.0}, "gave a dict"),
        (np.zeros((3, 1)), "score 0 is"),
        (1.0, "gave a float"),
    ],
)
def test_what_a_function_gives_is_checked_and_the_example_named(values, words):
    with pytest.raises(RunError) as caught:
        load_scorer(lambda query, documents: values).score_examples(examples(1))
    assert words in str(caught.value) and "'q0'" in str(caught.value)
    scorer = load_scorer(lambda query, documents: values if "1" in query else [1, 2, 3], on_failure="skip")
    assert [one.example_id for one in scorer.score_examples(examples(3))] == ["q0", "q2"]
    assert [one.example_id for one in scorer.failures] == ["q1"]


def test_a_function_cannot_change_what_it_was_given():
    def greedy(query, documents):
        scores = [float(len(document)) for document in documents]
        documents.clear()
        return scores

    scorer, example = load_scorer(greedy), examples(1)[0]
    assert scorer.score_examples([example], presentations=3)[2].scores == (3.0, 1.0, 5.0) and example.documents == list(DOCUMENTS)


def test_functions_are_found_by_module_and_by_file(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("class Model:\n    @staticmethod\n    def score(query, documents):\n        return [1.0] * len(documents)\nsize = 3\n")
    assert load_scorer(f"{file}:Model.score").score("q", ["a", "b"]) == [1.0, 1.0]
    (tmp_path / "other.py").write_text(file.read_text().replace("1.0", "2.0"))
    assert load_scorer(f"{file}:Model.score").fingerprint != load_scorer(f"{tmp_path}/other.py:Model.score").fingerprint
    assert load_scorer("math:hypot").name == "math:hypot"
    for spec, error, words in [
        (f"{file}:score", ConfigError, "has no 'score'; it has: Model"),
        (f"{file}:size", ConfigError, "is a int, not a function"),
        (f"{tmp_path}/nowhere.py:score", MissingDataError, "no such file"),
        ("no_such_module_here:score", MissingDataError, "path/to/file.py:function"),
    ]:
        with pytest.raises(error, match=words):
            load_scorer(spec)


def test_names_of_models_are_no_functions_and_nothing_here_needs_torch():
    with pytest.raises(ConfigError, match="'bm52' unknown"):
        load_scorer("bm52")
    code = "import sys, steadyrank.scoring.api as _; from steadyrank import load_scorer; load_scorer('math:hypot')"
    code += "; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

"""The references and BM25: values known without running them."""

from __future__ import annotations

import math

import pytest

from steadyrank import RankingExample
from steadyrank.errors import InputError
from steadyrank.scoring import load_scorer


def _example(**more) -> RankingExample:
    return RankingExample("red fox", ("a red fox runs", "blue sea", "the fox"), id="e", **more)


def test_constant_is_zero_and_first_stage_falls_by_one():
    assert load_scorer("constant").score_examples([_example()])[0].scores == (0.0, 0.0, 0.0)
    assert load_scorer("first_stage").score_examples([_example()])[0].scores == (3.0, 2.0, 1.0)


def test_oracle_is_the_grades_with_unjudged_last():
    oracle = load_scorer("oracle")
    assert oracle.score_examples([_example(relevance=(0, 2.5, -2))])[0].scores == (0.0, 2.5, -1.0)
    with pytest.raises(InputError, match="'e'.*no relevance"):
        oracle.score_examples([_example()])


def test_random_depends_on_seed_and_example_not_on_the_batch():
    lists = [RankingExample(f"q{n}", ("a", "b", "c"), id=f"id{n}") for n in range(200)]
    random = load_scorer("random", seed=3)
    found = [one.scores for one in random.score_examples(lists)]
    assert [one.scores for one in random.score_examples(lists[::-1])] == found[::-1]
    assert found[7] != load_scorer("random", seed=4).score_examples([lists[7]])[0].scores
    firsts = [sum(max(range(3), key=scores.__getitem__) == place for scores in found) for place in range(3)]
    # 200 draws of a third each: standard deviation sqrt(200 * 2/9) = 6.7; no slot is favoured
    assert all(abs(count - 200 / 3) < 4 * math.sqrt(200 * 2 / 9) for count in firsts)


def test_bm25_counts_words_of_the_query_within_the_pool():
    scores = load_scorer("bm25").score("red fox", ["a red fox runs", "blue sea", "the fox"])
    assert scores[0] > scores[2] > scores[1] == 0.0  # two words; one word, more frequent in the pool; none


def test_bm25_reads_the_instruction_only_if_asked():
    documents = ["sea water", "fox"]
    plain = load_scorer("bm25").score("fox", documents, instruction="prefer the sea")
    assert plain == load_scorer("bm25").score("fox", documents)
    assert load_scorer("bm25", with_instruction=True).score("fox", documents, instruction="prefer the sea")[0] > 0.0

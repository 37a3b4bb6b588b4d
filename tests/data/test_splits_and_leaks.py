"""Splits never cut a group; leak reports find what splits share."""

import pytest

from steadyrank import RankingExample
from steadyrank.data.bm25 import Bm25Index, bm25_scores
from steadyrank.data.leaks import find_leaks
from steadyrank.data.selecting import cap, choose
from steadyrank.data.splits import split_examples
from steadyrank.errors import ConfigError, InputError

SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}
LISTS = [
    RankingExample(f"query {n // 3}", [f"text {n}", "b"], [1, 0], id=str(n), group=f"g{n // 3}", source="many" if n % 10 else "few")
    for n in range(900)
]


def test_groups_stand_on_one_side_with_about_the_shares():
    parts = split_examples(LISTS, SHARES)
    sides = {}
    for name, examples in parts.items():
        assert all(example.split == name for example in examples)
        for example in examples:
            assert sides.setdefault(example.group, name) == name
    assert sum(map(len, parts.values())) == 900
    assert 0.7 < len(parts["train"]) / 900 < 0.9


def test_split_does_not_depend_on_order_or_on_other_lists():
    whole = {example.id: example.split for examples in split_examples(LISTS, SHARES).values() for example in examples}
    half = {example.id: example.split for examples in split_examples(LISTS[::-2], SHARES).values() for example in examples}
    assert all(whole[name] == side for name, side in half.items())


def test_without_groups_equal_queries_stay_together():
    lists = [
        RankingExample(text, ["a", str(n)], id=str(n)) for n in range(50) for text in [f"Query  {n // 2}" if n % 2 else f"query {n // 2}"]
    ]
    find_leaks(split_examples(lists, {"a": 0.5, "b": 0.5})).refuse_shared_queries()


def test_a_query_that_two_groups_share_joins_them():
    lists = [RankingExample(f"query {n // 2}", ["a"], id=str(n), group=f"g{(n + 1) // 2}") for n in range(40)]  # one chain of all
    extra = [RankingExample(f"other {n}", ["a"], id=f"o{n}") for n in range(40)]
    parts = split_examples(lists + extra, {"a": 0.5, "b": 0.5})
    assert {len([example for example in part if example.group]) for part in parts.values()} == {0, 40}
    find_leaks(parts).refuse_shared_queries()


def test_positive_documents_can_tie_lists_together():
    lists = [RankingExample(f"query {n}", [f"text {n // 4}", "all share this"], [1, 0], id=str(n)) for n in range(80)]
    sides = {}
    for name, part in split_examples(lists, {"a": 0.5, "b": 0.5}, ties=("group", "query", "positive")).items():
        assert all(sides.setdefault(example.documents[0], name) == name for example in part)
    with pytest.raises(ConfigError, match="did you mean 'positive'"):
        split_examples(lists, {"a": 1}, ties=("positives",))


def test_an_empty_split_is_refused():
    with pytest.raises(InputError, match="got none of 1 clusters"):
        split_examples(LISTS[:3], SHARES)


def test_shares_must_add_up():
    with pytest.raises(ConfigError, match="add up to 1"):
        split_examples(LISTS, {"train": 0.5})


def test_leaks_are_counted_and_refused():
    text = " ".join(f"word{n}" for n in range(60))
    near = text.replace("word30 ", "other ")  # 55 of 61 three-word shingles in common: .90
    train = [RankingExample("Who?", [text, "same", "only here"], id="1", group="g1")]
    test = [RankingExample("who?", [near, "Same", "other words altogether"], id="2", group="g1")]
    pair = find_leaks({"train": train, "test": test}).pairs[0]
    assert (pair.queries, pair.groups, pair.documents, pair.near_documents) == (1, 1, 1, 1)
    assert pair.share_of_documents == pytest.approx(2 / 3)
    with pytest.raises(InputError, match="train and test share 1 queries"):
        find_leaks({"train": train, "test": test}).refuse_shared_queries()


def test_unrelated_splits_leak_nothing():
    a = [RankingExample(f"question {n}", [f"alpha {n} beta {n} gamma {n} delta {n}"], id=str(n)) for n in range(50)]
    b = [RankingExample(f"other {n}", [f"epsilon {n} zeta {n} eta {n} theta {n}"], id=str(n)) for n in range(50)]
    pair = find_leaks({"a": a, "b": b}).pairs[0]
    assert (pair.queries, pair.groups, pair.documents, pair.near_documents) == (0, 0, 0, 0)


def test_choice_does_not_depend_on_order_and_can_be_balanced():
    chosen = choose(LISTS, 60)
    assert len(chosen) == 60 and {example.id for example in chosen} == {example.id for example in choose(LISTS[::-1], 60)}
    assert choose(LISTS, 60, seed=1) != chosen
    balanced = choose(LISTS, 60, balanced=True)
    assert sum(example.source == "few" for example in balanced) == 30 and len(balanced) == 60


def test_cap_keeps_a_candidate_of_the_highest_grade_and_its_grades():
    example = RankingExample("q", [str(n) for n in range(20)], [0] * 13 + [3] + [1] * 6, id="x")
    small = cap(example, 5)
    assert len(small.candidates) == 5 and max(small.relevance) == 3 and small.id == "x"
    assert all(example.relevance[int(text)] == grade for text, grade in zip(small.documents, small.relevance))
    assert cap(example, 20) is example and cap(example, None) is example


def test_bm25_at_the_edges():
    index = Bm25Index(["red fox", "blue whale"])
    assert [place for place, _ in index.search("fox", 10)] == [0]  # k over the corpus; no hit without a word of the query
    assert index.search("unknownword", 10) == [] and index.search("", 10) == []
    assert Bm25Index([]).search("fox", 3) == [] and Bm25Index(["", ""]).search("fox", 3) == []
    assert bm25_scores("fox", []) == [] and bm25_scores("fox", ["", "the"]) == [0.0, 0.0]

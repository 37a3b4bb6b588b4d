"""Order-swap consistency: counted by hand, read strictly, with intervals over lists."""

import json

import pytest

from steadyrank import RankingExample
from steadyrank.errors import InputError
from steadyrank.judging.agreement import AgreementSettings, judge_agreement
from steadyrank.judging.agreement.swap import Swap, load_swaps, swap_consistency
from steadyrank.judging.base import JudgedList

LISTS = [RankingExample(name, ["x", "y"], [1, 0], id=name) for name in "pqr"]


def test_counts_and_shares():
    swaps = [
        Swap("p", "x", "y", 1.0, 0.8),  # x both times
        Swap("p", "x", "y", 0.9, 0.1),  # the first one both times
        Swap("q", "x", "y", 0.5, 0.5),  # a tie both times
        Swap("q", "x", "y", 0.5, 1.0),  # a tie once
        Swap("r", "x", "y", None, 0.0),  # one answer
        Swap("r", "x", "y", 0.2, 0.7),  # the second one both times
    ]
    found = swap_consistency(swaps, LISTS, resamples=500, seed=0)
    assert (found["pairs"], found["lists"]) == (6, 3)
    values = {name: (cell["value"], cell["n"]) for name, cell in found["values"].items()}
    assert values["unanswered"] == (1 / 12, 12)
    assert values["consistent"] == (2 / 5, 5) and values["flipped"] == (2 / 5, 5) and values["tied_once"] == (1 / 5, 5)
    # decided: 2 + 2 + 0 + 1 + 1 + 2; the one shown first won: once, twice, and y as first on the fifth
    assert values["first_won"] == (4 / 8, 8)
    cell = found["values"]["consistent"]
    assert cell["low"] <= cell["value"] <= cell["high"]


def test_files_are_read_strictly(tmp_path):
    path = tmp_path / "swaps.jsonl"
    base = {"example_id": "p", "a": "x", "b": "y"}
    path.write_text("\n".join(json.dumps({**base, "first": f, "second": s}) for f, s in (("a", "tie"), (0.25, None), ("b", 1))))
    assert [(swap.first, swap.second) for swap in load_swaps(path)] == [(1.0, 0.5), (0.25, None), (0.0, 1.0)]
    for row, told in (
        ({**base, "first": 1}, r"swaps.jsonl:1: second: is missing"),
        ({**base, "first": 2, "second": 0}, r"swaps.jsonl:1: first: is 2; give a number from 0"),
        ({**base, "first": True, "second": 0}, r"first: is True"),
        ({**base, "schema": "steadyrank.swaps/9", "first": 1, "second": 0}, r"schema: is 'steadyrank.swaps/9'"),
    ):
        path.write_text(json.dumps(row))
        with pytest.raises(InputError, match=told):
            load_swaps(path)
    path.write_text("")
    with pytest.raises(InputError, match="holds no record"):
        load_swaps(path)


def test_it_stands_in_the_verdict():
    swaps = [Swap(e.id, "x", "y", 1.0, 0.0) for e in LISTS]
    judged = [JudgedList(e.id, (3, 0)) for e in LISTS]
    found = judge_agreement(LISTS, {"j": judged}, swaps={"j": swaps}, settings=AgreementSettings(resamples=100))
    said = " ".join(found.verdicts["j"]["sentences"])
    assert "keeps its preference in 0% [0, 0] of pairs, and prefers the one shown first (100% [100, 100]; without bias 50%)" in said


def test_pairs_of_other_lists_are_counted_and_left_out():
    here, there = Swap("p", "x", "y", 1.0, 0.0), Swap("z", "x", "y", 1.0, 1.0)
    found = swap_consistency([here, there], LISTS, resamples=10, seed=0)
    assert (found["pairs"], found["elsewhere"], found["values"]["consistent"]["value"]) == (1, 1, 0)
    with pytest.raises(InputError, match="no list with pairs in both orders is among"):
        swap_consistency([there], LISTS, resamples=10, seed=0)

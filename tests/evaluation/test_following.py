"""Instruction tests, flips and reference rows."""

import pytest

from steadyrank.evaluation import InstructionPairs, evaluate, find_flips, instruction_pairs, p_mrr, reference_rows, robustness
from steadyrank.evaluation.instructions import p_mrr_of_ranks
from steadyrank.records import RankingExample, ScoredList


def pair(group, right=(0, 1), texts=("x", "y", "z"), swap=False):
    """Two examples of one query whose instructions make different candidates right; `swap` gives the second pool in another order."""
    out = []
    for side, place in enumerate(right):
        order = texts[::-1] if swap and side else texts
        grades = [int(text == texts[place]) for text in order]
        out.append(RankingExample("q", order, relevance=grades, instruction=f"way {side}", id=f"{group}{side}", group=group, source="s"))
    return out


def score(examples, rule):
    return [ScoredList(e.id, "s", tuple(rule(e, place) for place in range(len(e.candidates)))) for e in examples]


DATA = [*pair("a"), *pair("b", swap=True), *pair("c", right=(2, 0))]


@pytest.mark.parametrize(
    ("rule", "accuracy", "each", "preference", "same"),
    [
        (lambda e, i: e.relevance[i], 1.0, 1.0, 1.0, 0.0),
        (lambda e, i: -e.relevance[i], 0.0, 0.0, 0.0, 0.25),  # two tied tops each, one of them shared
        (lambda e, i: ord(e.documents[i]), 0.0, 1 / 6, 0.0, 1.0),  # deaf to instructions: always z
        (lambda e, i: 0.0, 1 / 9, 1 / 3, 1 / 4, 1 / 3),  # constant
    ],
)
def test_paired_instruction_accuracy(rule, accuracy, each, preference, same):
    got = instruction_pairs(score(DATA, rule), DATA)
    assert (got.pairs, got.groups) == (3, 3)
    assert got.accuracy == pytest.approx(accuracy)
    assert got.each == pytest.approx(each)
    assert got.preference == pytest.approx(preference)
    assert got.same_top == pytest.approx(same)
    assert got.chance == pytest.approx(1 / 9)
    assert InstructionPairs.from_json(got.to_json()) == got
    assert got.by_source["s"]["pairs"] == 3


def test_pairs_need_equal_pools_and_other_answers():
    same = pair("a", right=(0, 0))
    other = [*pair("b")[:1], *pair("b", texts=("x", "y", "w"))[1:]]
    got = instruction_pairs(score([*same, *other], lambda e, i: i), [*same, *other])
    assert (got.pairs, got.accuracy, got.counts["same_right_documents"]) == (0, None, 1)


def test_p_mrr_fixtures():
    cases = {(1, 2): 0.5, (2, 1): -0.5, (4, 2): -0.5, (2, 4): 0.5, (1, 1): 0.0, (1, 100): 0.99}
    assert {ranks: pytest.approx(p_mrr_of_ranks(*ranks)) for ranks in cases} == cases
    before, after = {"t": {"a": 3, "b": 2, "c": 1}}, {"t": {"a": 2, "b": 3}}
    assert p_mrr(before, after, {"t": ["a", "c"]}) == pytest.approx((0.5 + 0.0) / 2)  # a: 1 -> 2; c: 3 -> absent, which is 2 + 1
    assert p_mrr({"t": {"a": 1, "b": 1}}, {"t": {"b": 1, "a": 1}}, {"t": ["a"]}) == 0.0  # order of a tie does not leak


def test_robustness_is_the_mean_of_the_worst():
    result = evaluate(score(DATA, lambda e, i: ord(e.documents[i])), DATA, "RR", resamples=50)
    # group a and b: z, y, x for right x and y: 1/3 and 1/2; group c: right z and x: 1 and 1/3
    assert robustness(result, "RR")["mean"] == pytest.approx(1 / 3)
    assert robustness(result, "RR")["groups"] == 3


def test_flips():
    a, b = score(DATA, lambda e, i: e.relevance[i]), score(DATA, lambda e, i: ord(e.documents[i]))
    got = find_flips(a, b, DATA, a="student", b="start", limit=2)
    assert (got["schema"], got["a"], got["b"]) == ("steadyrank.flips/1", "student", "start")
    assert got["counts"]["flipped"] == got["counts"]["a_better"] == 5  # the first of group c is right for both
    assert len(got["examples"]) == 2
    top = got["examples"][0]
    assert (top["id"], top["a_top"]["text"], top["a_top"]["relevance"], top["b_top"]["text"]) == ("a0", "x", 1, "z")


def test_references_bound_every_scorer():
    rows = reference_rows(DATA, ["RR", "nDCG(gain=exp)@6"], ties="stable")
    assert rows["random"].mean("RR") == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert reference_rows(DATA, "RR")["constant"].mean("RR") == rows["random"].mean("RR")
    assert rows["constant"].mean("RR") == rows["first_stage"].mean("RR")  # what the rule `stable` gives away
    assert rows["oracle"].mean("RR") == rows["oracle"].mean("nDCG(gain=exp)@6") == 1.0
    places = [next(i for i, grade in enumerate(e.relevance) if grade) + 1 for e in DATA]
    assert rows["first_stage"].mean("RR") == pytest.approx(sum(1 / place for place in places) / len(places))

"""The preference consumer by hand; steady, constant and random scorers; tie rules."""

import numpy as np
import pytest

from steadyrank.consumers import PreferenceConsumer, rankings
from steadyrank.errors import InputError
from steadyrank.records import Candidate, RankingExample
from steadyrank.seeds import stream


def example(grades, name="q"):
    return RankingExample("?", tuple(f"d{i}" for i in range(len(grades))), relevance=grades, id=name)


def orders(count, size, *names):
    return np.stack([stream(9, *names, p).permutation(size) for p in range(count)])


def test_choices_by_hand():
    scores = [[3, 2, 1], [2, 3, 1], [3, 1, 2]]  # pairs (0, 2), (1, 2), (0, 1)
    result = PreferenceConsumer().apply([scores], [example([3, 1, 0])])
    assert result.decisions == (((0, 2), (1, 2), (0, 1)),)
    expected = {
        "top_flip": 2 / 3, "top_flip_modal": 1 / 3, "pair_flip": 1.0, "pair_flip_modal": 2 / 3, "quality": (1 + 1 / 3 + 1) / 3,
        "right": 2 / 3, "order_decides": 1.0, "quality_range": 2 / 3, "pair_right": 1.0, "chance": 1 / 3,
    }  # fmt: skip
    for name, value in expected.items():
        assert result.values[name][0] == pytest.approx(value), name


def test_pointwise_scorer_is_exactly_steady_even_with_ties():
    row = [0.5, 0.9, 0.9, 0.1]
    result = PreferenceConsumer().apply([np.tile(row, (10, 1))], [example([0, 0, 3, 0])], orders=[orders(10, 4, "o")])
    assert result.values["pair_flip"][0] == result.values["top_flip"][0] == 0.0
    assert result.values["right"][0] == 0.5  # one of the two tied is right, whichever the tie rule picks
    assert result.counts["tied_tops"] == 10


def test_constant_scorer_is_chance_not_steady():
    size, amount = 4, 200
    laid = [orders(10, size, "c", n) for n in range(amount)]
    result = PreferenceConsumer().apply(
        [np.ones((10, size))] * amount, [example([3, 0, 0, 0], f"q{n}") for n in range(amount)], orders=laid
    )
    assert result.mean("top_flip") == pytest.approx(1 - 1 / size, abs=0.02)
    assert result.mean("pair_flip") == pytest.approx(1 - 1 / (size * (size - 1)), abs=0.02)
    assert result.mean("right") == result.mean("chance") == 0.25
    assert result.counts["all_tied"] == result.counts["presentations"] == 10 * amount


def test_random_scorer_is_chance():
    draw = stream(4, "random")
    result = PreferenceConsumer().apply([draw.random((10, 4)) for _ in range(300)], [example([3, 3, 0, 0], f"q{n}") for n in range(300)])
    assert result.mean("top_flip") == pytest.approx(0.75, abs=0.02)
    assert result.mean("right") == pytest.approx(0.5, abs=0.03)
    assert result.mean("pair_right") == pytest.approx(0.5, abs=0.03)


def test_tie_rules_pick_what_they_say():
    scores, laid = np.array([[1.0, 1, 0], [1, 1, 1]]), np.array([[2, 1, 0], [2, 1, 0]])
    tops = {rule: rankings(scores, laid, ties=rule, ids=["c", "a", "b"])[:, 0].tolist() for rule in ("steady", "listed", "canonical", "id")}
    assert tops == {"steady": [0, 2], "listed": [1, 2], "canonical": [0, 0], "id": [1, 1]}
    with pytest.raises(InputError, match="ids"):
        rankings(scores, ties="id")
    with pytest.raises(InputError, match="permute"):
        rankings(scores, [[0, 0, 1], [0, 1, 2]])


def test_edges_are_nan_and_counted():
    unjudged = RankingExample("?", (Candidate("a"), Candidate("b")), id="u")
    result = PreferenceConsumer().apply(
        [np.ones((2, 1)), [[1, 0], [0, 1]], [[1, 0], [1, 0]], [[1.0, 0.0]]],
        [example([3.0], "one"), unjudged, example([-1, 3], "hole"), example([3, 0], "single")],
    )
    np.testing.assert_allclose(result.values["top_flip"], [np.nan, 1, 0, np.nan])
    np.testing.assert_allclose(result.values["quality"], [1, np.nan, 0, 1])
    assert (result.counts["single"], result.counts["ungraded"], result.counts["unjudged_choices"]) == (1, 1, 2)

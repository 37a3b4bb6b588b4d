"""Choosing the weight of the consistency term: a real standard error, least disagreement in the band, collapse, and when to abstain."""

from __future__ import annotations

import math

import numpy as np
import pytest

from steadyrank.errors import ConfigError, InputError
from steadyrank.seeds import stream
from steadyrank.training.select_lambda import Rules, bootstrap_se, select_lambda

N = 200


def rows(quality, psi, *, noise=0.02, sd=0.2, steps=(0, 50, 75, 100), n=N, seed=0, groups=None, start=0.2):
    """Dev rows of one run: shared hard and easy queries, a small noise of the run's own."""
    shared = stream(0, "queries").normal(0, 0.3, n)
    own = stream(seed, "own").normal(0, noise, n)
    own -= own.mean()  # the mean is exactly `quality`
    wobble = stream(seed, "psi").normal(0, 0.02, n)
    wobble -= wobble.mean()
    out = []
    for step in steps:
        level = start if step == 0 else quality - 0.001 * (step != 75)
        out.append(
            {
                "step": step,
                "score_sd": sd,
                "per_query": {
                    "ids": [f"q{i}" for i in range(n)],
                    "groups": groups or [f"q{i}" for i in range(n)],
                    "quality": list(level + shared - shared.mean() + own),
                    "tau_psi": list(psi + wobble),
                    "variance": list((psi + wobble) ** 2),
                },
            }
        )
    return out


def runs(**changes):
    """Quality falls a little with lambda, then a lot; disagreement falls."""
    table = {0.5: (0.700, 0.30), 1.0: (0.6995, 0.20), 3.0: (0.699, 0.10), 5.0: (0.60, 0.05)}
    return {weight: rows(quality, psi, seed=place, **changes) for place, (weight, (quality, psi)) in enumerate(table.items())}


def test_standard_error_is_that_of_the_mean():
    values = stream(1, "x").normal(0, 2.0, 400)
    names = [str(i) for i in range(400)]
    assert bootstrap_se(values, names) == pytest.approx(values.std() / 20, rel=0.05)
    # four copies of each query are one observation, not four
    tied = bootstrap_se(np.repeat(values, 4), np.repeat(names, 4).tolist())
    assert tied == pytest.approx(values.std() / 20, rel=0.05)
    assert math.isnan(bootstrap_se([1.0, 2.0], ["a", "a"]))


def test_least_disagreement_within_one_standard_error():
    choice = select_lambda(runs())
    assert (choice.answer, choice.weight, choice.step) == ("high", 3.0, 75)
    bands = {row.weight: row.in_band for row in choice.table}
    assert bands == {0.5: True, 1.0: True, 3.0: True, 5.0: False}
    row = choice.table[2]
    assert row.behind == pytest.approx(0.001, abs=1e-9) and 0.001 < row.behind_se < 0.003
    assert row.quality_se == pytest.approx(0.3 / N**0.5, rel=0.15)  # the mean's own error is much wider than that of a paired difference
    assert "lambda 3" in choice.lines()[0]


def test_a_larger_weight_is_not_better_in_itself():
    """The largest weight in the band is not the steadiest; ties of disagreement go to the smaller weight."""
    table = {1.0: rows(0.7, 0.3, seed=1), 2.0: rows(0.6995, 0.1, seed=2), 4.0: rows(0.6995, 0.2, seed=4)}
    assert select_lambda(table).weight == 2.0
    tied = {1.0: rows(0.7, 0.1, seed=1), 2.0: rows(0.7, 0.1, seed=1)}
    assert select_lambda(tied).weight == 1.0


def test_the_band_is_as_wide_as_the_data_say():
    """A loss of .01 is outside where runs differ little query by query, and inside where they differ much: no constant would do both."""
    table = {1.0: (0.70, 0.3), 2.0: (0.69, 0.1), 3.0: (0.5, 0.05)}
    sharp = {weight: rows(q, p, seed=i, noise=0.01) for i, (weight, (q, p)) in enumerate(table.items())}
    blurred = {weight: rows(q, p, seed=i, noise=0.3) for i, (weight, (q, p)) in enumerate(table.items())}
    assert select_lambda(sharp).weight == 1.0
    assert select_lambda(blurred).weight == 2.0


def test_collapsed_runs_are_left_out_however_steady():
    table = runs()
    table[4.0] = rows(0.70, 0.0, sd=0.001, seed=9)
    choice = select_lambda(table)
    assert choice.weight == 3.0 and choice.answer == "low" and "collapsed" in choice.reasons[0]
    narrow = runs()
    narrow[4.0] = rows(0.699, 0.0, sd=0.03, seed=9)  # above the floor, and a seventh of the others
    assert "collapsed" in select_lambda(narrow).reasons[0]


@pytest.mark.parametrize("change,words", [
    (lambda table: table.pop(5.0), "largest that was tried"),
    (lambda table: table.update({2.0: rows(0.699, 0.1001, seed=7)}), "not told apart"),
    (lambda table: table.update({3.0: rows(0.699, 0.1, seed=2, steps=(0, 75))}), "fewer than 3"),
    (lambda table: table.update({3.0: rows(0.699, 0.1, seed=2, start=0.9)}), "did not improve"),
])  # fmt: skip
def test_doubts_make_it_low(change, words):
    table = runs()
    change(table)
    choice = select_lambda(table)
    assert choice.answer == "low" and any(words in reason for reason in choice.reasons)


def test_few_queries_are_low_and_very_few_none():
    assert select_lambda(runs(n=30)).answer == "low"
    choice = select_lambda(runs(n=10))
    assert choice.answer == "abstain" and choice.weight is None and "10 dev queries" in choice.reasons[0]


def test_too_few_runs_are_no_answer():
    table = runs()
    dead = {weight: rows(0.7, 0.0, sd=0.0) for weight in (6.0, 7.0, 8.0, 9.0, 10.0)}
    assert select_lambda({**table, **dead}).answer == "abstain"
    assert select_lambda({1.0: table[1.0]}).answer == "abstain"
    unfinished = select_lambda({**table, 2.0: []})
    assert unfinished.answer == "low" and unfinished.weight == 3.0
    assert unfinished.to_json()["table"][2]["quality"] is None


def test_early_checkpoints_do_not_count():
    """A spike in the warm-up is not a run's quality."""
    table = runs()
    table[5.0] = rows(0.9, 0.0, steps=(0, 10), seed=3)[1:] + table[5.0][1:]
    assert select_lambda(table).weight == 3.0


def test_the_other_disagreement_and_what_is_refused():
    assert select_lambda(runs(), Rules(disagreement="variance")).weight == 3.0
    with pytest.raises(ConfigError, match="'tau_psi'"):
        Rules(disagreement="tau_psy")
    other = runs()
    other[3.0][1]["per_query"]["ids"][0] = "else"
    with pytest.raises(InputError, match="other dev queries"):
        select_lambda(other)
    with pytest.raises(InputError, match="single queries"):
        select_lambda({1.0: [{"step": 1, "measures": {}}]})
    with pytest.raises(InputError, match="give the dev rows"):
        select_lambda({})


def test_queries_without_a_value_are_left_out_on_both_sides():
    table = runs()
    for found in table.values():
        for row in found:
            row["per_query"]["quality"][0] = None
            row["per_query"]["tau_psi"][1] = None
    choice = select_lambda(table)
    assert choice.weight == 3.0 and math.isfinite(choice.table[0].quality)

"""Intervals against the enumerated law of the resamples, and against planted agreement."""

import itertools

import numpy as np
import pytest
from agreement_factory import compare, made, make_list, rows

from steadyrank.errors import ConfigError
from steadyrank.judging.agreement import AgreementSettings
from steadyrank.judging.agreement.intervals import draws, make_cell
from steadyrank.judging.agreement.kappa import kappa
from steadyrank.judging.base import JudgedList


def test_every_draw_is_equally_likely():
    """Three lists: each of the 27 ordered draws, so 10 multisets with their counts."""
    times = np.concatenate(list(draws(np.arange(3), 27_000, seed=0)))
    law = {}
    for drawn in itertools.product(range(3), repeat=3):
        key = tuple(drawn.count(unit) for unit in range(3))
        law[key] = law.get(key, 0) + 1000
    found = {key: int((times == key).all(1).sum()) for key in law}
    assert sum(found.values()) == 27_000
    assert all(abs(found[key] - law[key]) < 5 * np.sqrt(law[key]) for key in law)


def test_interval_of_kappa_is_that_of_the_enumerated_law():
    gold = {"q1": [0, 1, 2], "q2": [0, 0, 3], "q3": [1, 2, 3], "q4": [0, 2, 2]}
    judge = {"q1": [0, 1, 1], "q2": [0, 1, 3], "q3": [0, 2, 2], "q4": [3, 2, 1]}
    tables = []
    for name in gold:
        table = np.zeros((4, 4))
        np.add.at(table, (gold[name], judge[name]), 1)
        tables.append(table)
    law = [float(kappa(sum(drawn), "quadratic")) for drawn in itertools.product(tables, repeat=4)]
    found = compare([make_list(n, g) for n, g in gold.items()], rows(**judge), AgreementSettings(resamples=20_000))
    cell = found["overall"]["kappa_quadratic"]
    assert cell["value"] == pytest.approx(float(kappa(sum(tables), "quadratic")))
    for end, share in (("low", 0.025), ("high", 0.975)):  # one of the law's steps next to the percentile: the law is discrete
        near = np.quantile(law, [share - 0.006, share + 0.006])
        assert near[0] - 1e-9 <= cell[end] <= near[1] + 1e-9


def test_planted_agreement_is_covered():
    """Gold is uniform over four grades; the judge gives it with probability .4, else any alike: accuracy .55, chance .25, kappa .4."""
    covered = {"accuracy": 0, "kappa": 0, "kappa_quadratic": 0}
    truth = {"accuracy": 0.55, "kappa": 0.4, "kappa_quadratic": 0.4}  # a mixture of full agreement and none: kappa is the mixing weight
    trials = 120
    for trial in range(trials):
        cells = compare(*made(100 + trial, 50, hit=0.4), AgreementSettings(resamples=400, seed=trial))["overall"]
        for name, true in truth.items():
            covered[name] += cells[name]["low"] <= true <= cells[name]["high"]
    assert all(0.88 * trials <= count <= 0.995 * trials for count in covered.values()), covered


def test_lists_of_a_group_move_together():
    """Ten copies of each of eight lists: in groups the interval is that of eight lists, not of eighty."""
    lists, judged = made(7, 8)
    copies = [make_list(f"{e.id}-{at}", e.relevance, e.source, group=e.id) for e in lists for at in range(10)]
    rows_of = [JudgedList(f"{row.example_id}-{at}", row.grades) for row in judged for at in range(10)]
    settings = AgreementSettings(resamples=4000)
    alone, grouped, loose = (
        compare(some, given, settings)["overall"]["accuracy"]
        for some, given in ((lists, judged), (copies, rows_of), ([make_list(e.id, e.relevance, e.source) for e in copies], rows_of))
    )
    width = {name: cell["high"] - cell["low"] for name, cell in (("alone", alone), ("grouped", grouped), ("loose", loose))}
    assert width["grouped"] == pytest.approx(width["alone"], abs=0.03)
    assert width["loose"] < 0.5 * width["grouped"]


def test_resamples_do_not_depend_on_the_chunk(monkeypatch):
    whole = np.concatenate(list(draws(np.arange(7), 50, seed=3)))
    monkeypatch.setattr("steadyrank.judging.agreement.intervals._CELLS", 21)
    assert np.array_equal(np.concatenate(list(draws(np.arange(7), 50, seed=3))), whole)


def test_an_undefined_value_has_no_interval():
    assert make_cell(float("nan"), np.array([0.1, 0.2]), 3, units=5) == {"value": None, "low": None, "high": None, "n": 3}
    assert make_cell(0.5, np.array([0.5, np.nan]), 3, units=5)["undefined_resamples"] == 1
    with pytest.raises(ConfigError, match="resamples is 0"):
        list(draws(np.arange(2), 0, seed=0))

"""Planted slot, window and companion effects come back; edges; order of the candidates changes nothing."""

import numpy as np
import pytest

from steadyrank import stability
from steadyrank.errors import InputError
from steadyrank.seeds import stream

K, P, WIDTH = 12, 10, 4


def planted(amount, *, slots=(0, 0, 0, 0), windows=(0, 0, 0), companions=0.0, noise=0.0, windows_rule=None):
    """Scores with additive effects, written out candidate by candidate."""
    scores, orders = [], []
    for index in range(amount):
        draw = stream(7, "planted", index)
        quality, pull = draw.standard_normal(K), companions * draw.standard_normal(K)
        orders.append(np.stack([draw.permutation(K) for _ in range(P)]))
        scores.append(noise * draw.standard_normal((P, K)))
        for p, order in enumerate(orders[-1]):
            for place, candidate in enumerate(order):
                slot, window = (place // 3, place % 3) if windows_rule else (place % WIDTH, place // WIDTH)
                others = [order[q] for q in range(K) if (q % 3 if windows_rule else q // WIDTH) == window and q != place]
                scores[-1][p, candidate] += quality[candidate] + slots[slot] + windows[window] + pull[others].sum()
    return scores, orders


def pooled(scores, orders, **options):
    return stability.pool([stability.decompose(one, laid, WIDTH, **options) for one, laid in zip(scores, orders, strict=True)])


def test_a_pure_slot_effect_is_all_slot():
    found = pooled(*planted(3, slots=(0.6, 0.2, -0.2, -0.6)))
    assert found.of_presentation.slot == pytest.approx(1.0, abs=1e-9)
    assert found.of_presentation.remainder == pytest.approx(0.0, abs=1e-9)
    assert found.slot_rms == pytest.approx(np.sqrt((0.36 + 0.04) / 2), abs=1e-9)
    assert found.candidate + found.slot + found.window + found.remainder == pytest.approx(1.0, abs=1e-12)


def test_a_pure_window_effect_is_window_after_what_slots_cannot_explain():
    found = pooled(*planted(60, windows=(0.5, 0.0, -0.5)))
    assert found.of_presentation.remainder == pytest.approx(0.0, abs=1e-9)
    assert found.adjusted_of_presentation.window > 0.93  # slots explain a little of it by chance, as nested blocks do
    swapped = pooled(*planted(20, windows=(0.5, 0.0, -0.5), windows_rule="round_robin"), windows="round_robin:4")
    assert swapped.of_presentation.remainder == pytest.approx(0.0, abs=1e-9)


def test_planted_mixture_comes_back():
    slots, windows = np.array([0.3, 0.1, -0.1, -0.3]), np.array([0.2, 0.0, -0.2])
    scores, orders = planted(150, slots=slots, windows=windows, noise=0.2)
    shares, variances = pooled(scores, orders).adjusted_of_presentation, np.array([slots.var(), windows.var(), 0.04])
    expected = variances / variances.sum()
    assert [shares.slot, shares.window, shares.remainder] == pytest.approx(list(expected), abs=0.03)
    profile = stability.slot_profile(scores, orders, WIDTH)
    np.testing.assert_allclose(profile.effects_S, slots, atol=0.02)
    assert profile.rms == pytest.approx(np.sqrt((slots**2).mean()), abs=0.02)


def test_noise_alone_is_remainder_once_degrees_of_freedom_are_counted():
    found = pooled(*planted(100, noise=1.0))
    assert found.of_presentation.slot > 0.02  # in sample, parameters explain noise
    assert found.adjusted_of_presentation.slot == pytest.approx(0.0, abs=0.01)
    assert found.adjusted_of_presentation.remainder == pytest.approx(1.0, abs=0.015)


def test_companion_swap_measures_what_the_remainder_only_bounds():
    """Three of the 11 others stand beside a candidate: variance of their summed pulls, drawn without replacement, is 3 (1 - 3/11) s^2."""
    strength, noise = 0.2, 0.3
    scores, orders = planted(150, slots=(1.0, 0.0, 0.0, -1.0), companions=strength, noise=noise)
    expected = 3 * (1 - 3 / 11) * strength**2
    found = stability.companion_swap(scores, orders, WIDTH)
    assert found.pairs[0] > 3000
    assert found.coupling == pytest.approx(expected + noise**2, rel=0.08)
    quiet = stability.companion_swap(*planted(150, slots=(1.0, 0.0, 0.0, -1.0), companions=strength), WIDTH)
    assert quiet.coupling == pytest.approx(expected, rel=0.08)
    none = stability.companion_swap(*planted(20, slots=(1.0, 0.0, 0.0, -1.0), windows=(1, 0, -1)), WIDTH)
    assert none.coupling == pytest.approx(0.0, abs=1e-12)


def test_pairs_are_told_apart_by_what_changed():
    orders = [[0, 1, 2, 3, 4, 5], [0, 2, 1, 3, 4, 5], [0, 1, 3, 2, 4, 5], [0, 1, 2, 3, 4, 5]]
    scores = np.zeros((4, 6))
    scores[:, 0] = [0.0, 1.0, 3.0, 0.5]
    found = stability.companion_swap([scores], [orders], 3, targets=[0])
    # presentations (0, 3) are the same prompt; 1 has the same companions in other slots; 2 other companions
    assert found.pairs == (3, 2, 1)
    assert found.noise == pytest.approx(0.5 * 0.25)
    assert found.arrangement == pytest.approx((0.5 + 0.5 * 0.25) / 2)
    assert found.coupling == pytest.approx(0.5 * (9 + 4 + 6.25) / 3)


def test_swap_orders_hold_the_target():
    orders = stability.swap_orders(9, 6, target=4, place=2, seed=1, example_id="q")
    assert (orders[:, 2] == 4).all()
    assert (np.sort(orders, 1) == np.arange(9)).all()
    assert len({tuple(row) for row in orders}) == 6
    np.testing.assert_array_equal(orders[:3], stability.swap_orders(9, 3, target=4, place=2, seed=1, example_id="q"))


def test_matches_plain_least_squares_on_one_hot_columns():
    (scores,), (orders,) = planted(1, slots=(1, 0, 0, 0), windows=(0, 1, 0), companions=0.5, noise=0.3)
    slot, window = np.argsort(orders, 1) % WIDTH, np.argsort(orders, 1) // WIDTH
    columns = [np.tile(np.eye(K), (P, 1)), np.eye(WIDTH)[slot.ravel()], np.eye(3)[window.ravel()]]
    left, target = [], scores.ravel()
    for blocks in (1, 2, 3):
        design = np.concatenate(columns[:blocks], axis=1)
        left.append(((target - design @ np.linalg.lstsq(design, target, rcond=None)[0]) ** 2).sum())
    shares = stability.decompose(scores, orders, WIDTH).of_presentation
    assert [shares.slot, shares.window, shares.remainder] == pytest.approx(
        [(left[0] - left[1]) / left[0], (left[1] - left[2]) / left[0], left[2] / left[0]], abs=1e-9
    )


def test_steady_and_constant_scorers():
    orders = np.stack([stream(0, "o", p).permutation(6) for p in range(5)])
    steady = stability.decompose(np.tile([0.1, 0.2, 0.3, 0.7, 0.9, 0.1], (5, 1)), orders, 3)
    assert steady.candidate == 1.0
    assert steady.presentation_variance == 0.0
    assert np.isnan(steady.of_presentation.slot)
    constant = stability.decompose(np.full((5, 6), 0.1), orders, 3)
    assert np.isnan(constant.candidate)
    assert constant.num_constant == 1
    assert constant.to_json()["slot"] is None
    with pytest.raises(InputError, match="two presentations"):
        stability.decompose(np.ones((1, 6)), orders[:1], 3)
    with pytest.raises(InputError, match="at least one"):
        stability.decompose(np.ones((5, 6)), orders, 0)

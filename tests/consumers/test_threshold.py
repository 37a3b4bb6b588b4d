"""The threshold consumer: sets by hand, thresholds by enumeration, the published protocol written out."""

import numpy as np
import pytest

from steadyrank.consumers import ThresholdConsumer, choose_threshold, flip_rate, jaccard, published_split, retained_set
from steadyrank.consumers.sets import document_flip_rate, set_quality
from steadyrank.errors import ConfigError, InputError, NonFiniteScoreError
from steadyrank.records import RankingExample
from steadyrank.seeds import stream


def example(grades, name="q"):
    return RankingExample("?", tuple(f"d{i}" for i in range(len(grades))), relevance=grades, id=name)


def unjudged(size):
    return RankingExample("?", tuple(f"d{i}" for i in range(size)), id="u")


def test_a_score_at_the_threshold_is_kept():
    assert retained_set([[0.5, 0.4999]], 0.5).tolist() == [[True, False]]
    with pytest.raises(InputError, match="NaN"):
        retained_set([[0.5]], float("nan"))
    with pytest.raises(NonFiniteScoreError):
        retained_set([[np.inf]], 0.5)


def test_jaccard_and_what_empty_sets_count():
    scores = [[1, 1, 0], [1, 0, 0], [0, 0, 0]]  # {0, 1}, {0}, {}
    assert jaccard(scores, 0.5) == pytest.approx((1 / 2 + 0 + 0) / 3)
    two_empty = [[1, 0], [0, 0], [0, 0]]
    assert jaccard(two_empty, 0.5, empty="count") == pytest.approx(1 / 3)
    assert jaccard(two_empty, 0.5, empty="skip") == pytest.approx(1 / 3)
    assert jaccard(two_empty, 0.5, empty="skip_pairs") == 0.0
    assert jaccard(np.zeros((3, 2)), 0.5) == 1.0
    assert np.isnan([jaccard(np.zeros((3, 2)), 0.5, empty=rule) for rule in ("skip", "skip_pairs")]).all()
    assert np.isnan(jaccard([[1, 0]], 0.5))


def test_document_flips_and_set_quality_by_hand():
    mask = np.array([[1, 1, 0, 0], [1, 0, 1, 0]], dtype=bool)
    assert document_flip_rate(mask) == pytest.approx(2 / 3)
    assert np.isnan(document_flip_rate(np.zeros((2, 3), dtype=bool)))
    quality = set_quality(mask, np.array([True, True, False, False]))
    np.testing.assert_allclose(quality, [[1, 1, 1], [1 / 2, 1 / 2, 1 / 2]])
    np.testing.assert_allclose(set_quality(np.zeros((1, 4), dtype=bool), np.array([True, False, False, False])), [[0, 0, 0]])


def mean_f1(scores, grades, threshold):
    """Set F1 in plain Python, mean over presentations, then examples."""
    means = []
    for rows, relevance in zip(scores, grades, strict=True):
        values = []
        for row in rows:
            kept = {i for i, score in enumerate(row) if score >= threshold}
            wanted = {i for i, grade in enumerate(relevance) if grade >= 1}
            values.append(2 * len(kept & wanted) / (len(kept) + len(wanted)))
        means.append(np.mean(values))
    return np.mean(means)


def test_f1_threshold_is_the_best_of_all_thresholds():
    draw = stream(1, "threshold")
    scores = [np.round(draw.random((3, 5)), 2) for _ in range(8)]
    grades = [[1, 0, 0, 2, 0] for _ in scores]
    found = choose_threshold(scores, grades)
    every = {threshold: mean_f1(scores, grades, threshold) for threshold in np.unique(np.concatenate([s.ravel() for s in scores]))}
    assert found.f1 == found.value == pytest.approx(max(every.values()), abs=1e-12)
    assert mean_f1(scores, grades, found.threshold) == pytest.approx(found.f1, abs=1e-12)


def test_threshold_does_not_depend_on_the_scale_of_scores():
    draw = stream(2, "threshold")
    scores, grades = [draw.standard_normal((2, 6)) for _ in range(10)], [[1, 0, 1, 0, 0, 0]] * 10
    plain, bent = choose_threshold(scores, grades), choose_threshold([np.exp(3 * s) for s in scores], grades)
    for one in scores:
        assert (retained_set(one, plain.threshold) == retained_set(np.exp(3 * one), bent.threshold)).all()


def test_matched_retention_comes_nearest_to_its_target():
    scores = [np.arange(10.0)[None] for _ in range(3)]
    assert choose_threshold(scores, objective="retention", target=0.3).retention == pytest.approx(0.3)
    assert choose_threshold(scores, objective="retention", target=0.34).retention == pytest.approx(0.3)
    assert choose_threshold(scores, objective="retention", target=1.0).retention == 1.0
    with pytest.raises(ConfigError, match="kept share"):
        choose_threshold(scores, objective="retention")


def test_equal_f1_takes_the_larger_threshold():
    found = choose_threshold([[[0.1, 0.5, 0.9]]], [[0, 0, 1]])
    assert 0.5 < found.threshold <= 0.9
    published = choose_threshold([[[0.0, 0.5, 1.0]]], [[0, 0, 1]], protocol="published")
    assert published.threshold == 1.0


def test_published_protocol_written_out():
    draw = stream(5, "published")
    scores, grades = [draw.random((3, 6)) for _ in range(6)], [[1, 0, 0, 1, 0, 0]] * 5 + [[0] * 6]
    span = [*scores, draw.random((3, 6)) * 4]
    found = choose_threshold(scores, grades, protocol="published", span=span)
    first = np.concatenate([one[0] for one in span])
    grid = np.linspace(first.min(), first.max(), 41)
    values = [mean_f1([one[:1] for one in scores[:5]], grades[:5], threshold) * 5 / 6 for threshold in grid]  # no relevant: 0, kept in
    best = max(place for place, value in enumerate(values) if value >= max(values) - 1e-12)
    assert (found.threshold, found.no_relevant) == (pytest.approx(grid[best]), 1)
    assert found.f1 == pytest.approx(values[best])


def test_published_split_is_numpys_shuffle_of_the_sorted_ids():
    ids = [f"q{i:02}" for i in range(11)]
    expected = np.array(ids, dtype=object)
    np.random.default_rng(20260610).shuffle(expected)
    assert published_split(ids[::-1]) == (list(expected[:5]), list(expected[5:]))


def test_consumer_values_counts_and_json():
    scores = [[[1, 0.9, 0.0], [1, 0.0, 0.0]], np.zeros((2, 3)), [[1, 0, 0], [0, 0, 0]], [[1, 0], [1, 0]]]
    result = ThresholdConsumer(0.5).apply(scores, [example([1, 0, 0], "a"), example([1, 0, 0], "b"), example([0, 0, 0], "c"), unjudged(2)])
    np.testing.assert_allclose(result.values["jaccard"], [0.5, np.nan, 0.0, 1.0])
    np.testing.assert_allclose(result.values["jaccard_counted"], [0.5, 1.0, 0.0, 1.0])
    np.testing.assert_allclose(result.values["set_flip"], [1, 0, 1, 0])
    np.testing.assert_allclose(result.values["f1"], [(2 / 3 + 1) / 2, 0, np.nan, np.nan])
    np.testing.assert_allclose(result.values["empty"], [0, 1, 0.5, 0])
    np.testing.assert_allclose(result.values["retention"], [0.5, 0, 1 / 6, 0.5])
    assert dict(result.counts) == {"examples": 4, "all_empty": 1, "some_empty": 1, "empty_pairs": 1, "no_relevant": 1, "unjudged": 1}
    shown = result.to_json()["measures"]["jaccard"]
    assert (shown["mean"], shown["n"], shown["excluded"], shown["values"][1]) == (pytest.approx(0.5), 3, 1, None)
    assert result.decisions[0] == ((0, 1), (0,))


def test_steady_scorer_keeps_the_same_set_exactly():
    row = stream(0, "s").random(7)
    result = ThresholdConsumer(0.5).apply([np.tile(row, (10, 1))], [unjudged(7)])
    assert (result.mean("jaccard"), result.mean("set_flip"), result.mean("document_flip")) == (1.0, 0.0, 0.0)


def test_flip_estimators_and_their_edges():
    assert flip_rate("aab") == pytest.approx(2 / 3)
    assert flip_rate("aab", "modal") == pytest.approx(1 / 3)
    assert flip_rate(["a"], "modal") == 0.0
    assert np.isnan(flip_rate(["a"]))
    assert np.isnan(flip_rate([]))
    with pytest.raises(ConfigError, match="modal"):
        flip_rate("ab", "mode")


def test_mismatched_lists_are_named():
    with pytest.raises(InputError, match="'u'"):
        ThresholdConsumer(0.5).apply([np.ones((2, 3))], [unjudged(2)])
    with pytest.raises(InputError, match="grades"):
        choose_threshold([np.ones((2, 3))])
    with pytest.raises(InputError, match="relevant document"):
        choose_threshold([np.ones((2, 3))], [[0, 0, 0]])

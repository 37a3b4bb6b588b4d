"""The statistics of two raters against worked arithmetic, enumeration, scikit-learn and scipy."""

import itertools

import numpy as np
import pytest
from scipy import stats

from steadyrank.judging.agreement.kappa import accuracy, constant_accuracy, errors, guessing_accuracy, kappa
from steadyrank.judging.agreement.order import COLUMNS, order_sums
from steadyrank.judging.agreement.pooled import PooledSpearman
from steadyrank.metrics import kendall_tau
from steadyrank.seeds import stream


class TestKappa:
    def test_worked_example(self):
        """35 of 50 alike; margins 25/25 and 30/20 make .5 * .6 + .5 * .4 = .5 by chance: (.7 - .5) / (1 - .5)."""
        confusion_LL = np.array([[20, 5], [10, 15]])
        assert accuracy(confusion_LL) == 0.7
        for weights in ("plain", "linear", "quadratic"):  # two levels know one distance
            assert kappa(confusion_LL, weights) == pytest.approx(0.4)

    def test_worked_example_with_weights(self):
        """Distances 1 and 2: observed 1 * 2 + 2 * 1 of 6 documents; by chance from margins (2, 2, 2) and (3, 2, 1)."""
        confusion_LL = np.array([[2, 0, 0], [0, 1, 1], [1, 1, 0]])
        linear = 1 - (2 + 2) / ((2 * 2 + 2 * 1 * 2 + 2 * 3 + 2 * 1 + 2 * 3 * 2 + 2 * 2) / 6)
        quadratic = 1 - (2 + 4) / ((2 * 2 + 2 * 1 * 4 + 2 * 3 + 2 * 1 + 2 * 3 * 4 + 2 * 2) / 6)
        assert kappa(confusion_LL, "linear") == pytest.approx(linear)
        assert kappa(confusion_LL, "quadratic") == pytest.approx(quadratic)

    @pytest.mark.parametrize("weights", ["plain", "linear", "quadratic"])
    def test_as_scikit_learn(self, weights):
        sklearn = pytest.importorskip("sklearn.metrics")
        draw = stream(0, "kappa")
        for size in (2, 3, 4, 6):
            a, b = draw.integers(0, size, (2, 60))
            b = np.where(draw.random(60) < 0.5, a, b)
            confusion = sklearn.confusion_matrix(a, b, labels=range(size))
            theirs = sklearn.cohen_kappa_score(a, b, labels=range(size), weights=None if weights == "plain" else weights)
            assert kappa(confusion, weights) == pytest.approx(theirs, abs=1e-12)

    def test_a_level_that_nobody_used_keeps_its_distance(self):
        """Levels 0 and 3 of a 0-3 scale are three steps apart whether or not 1 and 2 occur; kappa is a ratio, so nothing changes."""
        wide_LL = np.zeros((4, 4))
        wide_LL[np.ix_([0, 3], [0, 3])] = [[20, 5], [10, 15]]
        assert kappa(wide_LL, "quadratic") == pytest.approx(0.4)

    @pytest.mark.parametrize("confusion", [[[5, 0], [3, 0]], [[5, 3], [0, 0]], [[8, 0], [0, 0]], [[0, 0], [0, 0]]])
    def test_a_constant_rater_is_undefined_and_never_zero_or_one(self, confusion):
        assert np.isnan(kappa(np.array(confusion)))

    def test_leading_axes_are_free(self):
        stack_XLL = stream(1, "kappa").integers(1, 9, (5, 3, 3))
        assert kappa(stack_XLL, "linear") == pytest.approx([float(kappa(one, "linear")) for one in stack_XLL])


def test_direction_of_errors():
    found = errors(np.array([[60, 15], [5, 20]]))
    assert found["false_positives"] == 0.15 and found["false_negatives"] == 0.05
    assert found["false_positive_rate"] == 15 / 75 and found["false_negative_rate"] == 5 / 25
    assert found["precision"] == 20 / 35 and found["recall"] == 20 / 25


def test_guessing_is_what_all_pairings_give():
    """Every pairing of the two raters' grades is equally likely for a judge that deals its own grades out by lot."""
    gold, dealt = [0, 0, 1, 2], [0, 1, 1, 2]
    confusion = np.zeros((3, 3))
    np.add.at(confusion, (gold, dealt), 1)
    shares = [np.mean(np.array(gold) == one) for one in itertools.permutations(dealt)]
    assert guessing_accuracy(confusion) == pytest.approx(np.mean(shares))
    assert constant_accuracy(confusion) == (0, 0.5)


def made_lists(seed, *, ties):
    """Lists of 2 to 9 documents of two raters; (a, b, list of each document, number of lists)."""
    draw = stream(seed, "lists")
    list_D = np.repeat(np.arange(30), draw.integers(2, 10, 30))
    a_D = draw.integers(0, ties, len(list_D)).astype(float)
    return a_D, a_D + draw.integers(-2, 3, len(list_D)), list_D, 30


@pytest.mark.parametrize("ties", [2, 4, 1000])
class TestOrder:
    def test_as_scipy_list_by_list(self, ties):
        a_D, b_D, list_D, amount = made_lists(0, ties=ties)
        sums = order_sums(a_D, b_D, list_D, amount, is_reference=True)
        checked = 0
        for at in range(amount):
            a, b = a_D[list_D == at], b_D[list_D == at]
            row = dict(zip(COLUMNS, sums[at]))
            if len(set(a)) > 1 and len(set(b)) > 1:
                checked += 1
                assert row["ordered"] == 1
                assert row["spearman"] == pytest.approx(stats.spearmanr(a, b).statistic)
                assert row["tau"] == pytest.approx(stats.kendalltau(a, b).statistic)
                assert row["tau"] == pytest.approx(kendall_tau(a, b))
            else:
                assert row["ordered"] == row["spearman"] == row["tau"] == 0
        assert checked > 15

    @pytest.mark.parametrize("is_reference", [True, False])
    def test_pairs_are_those_of_enumeration(self, ties, is_reference):
        a_D, b_D, list_D, amount = made_lists(1, ties=ties)
        sums = order_sums(a_D, b_D, list_D, amount, is_reference=is_reference)
        for at in range(amount):
            a, b = a_D[list_D == at], b_D[list_D == at]
            pairs = alike = 0.0
            for i, j in itertools.combinations(range(len(a)), 2):
                way_a, way_b = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
                if way_a != 0 or (not is_reference and way_b != 0):
                    pairs += 1
                    alike += 1.0 if way_a == way_b else 0.5 if 0 in (way_a, way_b) else 0.0
            row = dict(zip(COLUMNS, sums[at]))
            assert (row["pairs"], row["pairs_alike"]) == (pairs, alike)

    def test_order_of_documents_changes_nothing(self, ties):
        a_D, b_D, list_D, amount = made_lists(2, ties=ties)
        shuffled = stream(0, "shuffle").permutation(len(a_D))
        whole = order_sums(a_D, b_D, list_D, amount, is_reference=True)
        again = order_sums(a_D[shuffled], b_D[shuffled], list_D[shuffled], amount, is_reference=True)
        assert again == pytest.approx(whole, abs=1e-12)


def test_lists_without_an_order_are_told_apart():
    a_D = np.array([1.0, 1, 2, 3, 4, 4, 7, 1, 2])
    b_D = np.array([1.0, 2, 5, 5, 6, 6, 8, 2, 1])
    list_D = np.array([0, 0, 1, 1, 2, 2, 3, 4, 4])  # 0: a constant; 1: b constant; 2: both; 3: one document; 4: neither; 5: empty
    rows = [dict(zip(COLUMNS, row)) for row in order_sums(a_D, b_D, list_D, 6, is_reference=True)]
    kinds = ("ordered", "blind", "unordered", "short")
    assert [next(kind for kind in kinds if row[kind]) for row in rows] == ["unordered", "blind", "unordered", "short", "ordered", "short"]
    rows = [dict(zip(COLUMNS, row)) for row in order_sums(a_D, b_D, list_D, 6, is_reference=False)]
    assert [next(kind for kind in kinds if row[kind]) for row in rows] == ["blind", "blind", "unordered", "short", "ordered", "short"]
    assert all(sum(row[kind] for kind in kinds) == 1 for row in rows)


@pytest.mark.parametrize("ties", [2, 4, 1000])
def test_pooled_spearman_is_that_of_the_repeated_documents(ties):
    a_D, b_D, list_D, amount = made_lists(3, ties=ties)
    times_RQ = stream(0, "times").integers(0, 3, (4, amount)).astype(float)
    found_R = PooledSpearman(a_D, b_D, list_D, amount).values(times_RQ)
    for found, times_Q in zip(found_R, times_RQ, strict=True):
        often_D = times_Q[list_D].astype(int)
        assert found == pytest.approx(stats.spearmanr(np.repeat(a_D, often_D), np.repeat(b_D, often_D)).statistic)


def test_pooled_spearman_without_an_order_is_undefined():
    list_D = np.array([0, 0, 1])
    assert np.isnan(PooledSpearman(np.ones(3), np.arange(3.0), list_D, 2).values(np.ones((1, 2)))).all()
    assert np.isnan(PooledSpearman(np.array([]), np.array([]), np.array([], dtype=int), 2).values(np.ones((1, 2)))).all()

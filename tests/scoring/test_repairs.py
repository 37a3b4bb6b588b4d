"""Repairs at inference. Expected values are means and distributions written out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from steadyrank import RankingExample, load_scorer
from steadyrank.data.presenting import presentations
from steadyrank.errors import ConfigError
from steadyrank.records import Presentation
from steadyrank.scoring.base import PairScore, Scorer
from steadyrank.scoring.combine import OrderAveraged

DOCUMENTS = ["the capital of the country", "bananas are yellow", "which city is it", "how many people", "one more reader"]
EXAMPLE = RankingExample("which city", tuple(DOCUMENTS), id="e")


class BySlot(Scorer):
    """Scores a candidate by where it stands: 0.9 in front, falling by 0.1."""

    name, scale, reads_lists = "by slot", "probability", True

    @property
    def fingerprint(self) -> str:
        return "by slot"

    def score_presentations(self, examples: Sequence[RankingExample], laid, *, progress: bool = False):
        out = []
        for example, rows in zip(examples, laid, strict=True):
            out.append([])
            for one in rows:
                order = one.order or tuple(range(len(example.candidates)))
                slots = [order.index(place) for place in range(len(order))]
                out[-1].append(self._scored_list(example, [PairScore(0.9 - 0.1 * slot) for slot in slots], one))
        return out


def test_order_averaging_is_the_mean_over_its_orders():
    scorer, given = OrderAveraged(BySlot(), k=4, seed=3), Presentation(order=(4, 2, 0, 1, 3), windows="contiguous:5")
    orders = [one.order for one in scorer.orders(EXAMPLE, given)]
    assert len(set(orders)) > 1 and all(sorted(order) == list(range(5)) for order in orders)
    assert all(one.windows == "contiguous:5" for one in scorer.orders(EXAMPLE, given))
    found = scorer.score_presentations([EXAMPLE], [[given]])[0][0]
    assert found.scores == pytest.approx([np.mean([0.9 - 0.1 * order.index(place) for order in orders]) for place in range(5)])
    assert found.presentation == given and found.scorer == "by slotx4"


def test_averages_of_two_orders_are_independent_and_steadier_with_more_orders():
    laid = presentations(EXAMPLE, 30, seed=0)

    def spread(scorer: Scorer) -> float:
        return float(np.mean(np.var([row.scores for row in scorer.score_presentations([EXAMPLE], [laid])[0]], axis=0)))

    raw, averaged = spread(BySlot()), spread(OrderAveraged(BySlot(), k=10))
    assert 0 < averaged < raw / 5  # about a tenth: the variance of a mean of ten
    assert spread(OrderAveraged(BySlot(), k=10)) == averaged


def test_order_averaging_keeps_the_contract():
    scorer = OrderAveraged(load_scorer("bm25"), k=3)
    assert scorer.score("which city", DOCUMENTS) == pytest.approx(load_scorer("bm25").score("which city", DOCUMENTS))
    assert scorer.score("q", []) == [] and len(scorer.rank("which city", DOCUMENTS, top_k=2)) == 2
    row = scorer.score_examples([RankingExample("which city", ("a city", "", "bananas"))])[0]
    assert row.empty == (1,)
    for k in (0, -1, 1.5, True):
        with pytest.raises(ConfigError, match="k is"):
            OrderAveraged(BySlot(), k=k)


def test_mappings_load_repairs():
    scorer = load_scorer({"kind": "order_averaged", "scorer": "bm25", "k": 2, "seed": 5})
    assert (scorer.k, scorer.seed, scorer.inner.name) == (2, 5, "bm25") and scorer.fingerprint != OrderAveraged(
        scorer.inner, k=3
    ).fingerprint
    with pytest.raises(ConfigError, match="needs `scorer`"):
        load_scorer({"kind": "order_averaged", "k": 2})
    with pytest.raises(ConfigError, match="'kk' unknown"):
        load_scorer({"kind": "order_averaged", "scorer": "bm25", "kk": 2})


class TestSlots:
    """Repairs of the slots of batched scorers."""

    torch = pytest.importorskip("torch")

    @pytest.fixture(scope="class", params=["grader", "joint"])
    def inner(self, request):
        import tiny_graders

        return getattr(tiny_graders, request.param)()

    def test_capcal_takes_the_prior_of_each_slot_off(self, inner):
        from steadyrank.scoring.calibrate import CapCal

        scores = CapCal(inner, strength=0.7).score("which city", DOCUMENTS[:3])
        prompt = inner.prompts_of(RankingExample("which city", tuple(DOCUMENTS[:3])))[0]
        free = inner.slot_scores([type(prompt)(prompt.query, None, ("", "", ""), prompt.markers, (0, 1, 2))])[0]
        for slot, (real, prior) in enumerate(zip(inner.slot_scores([prompt])[0], free, strict=True)):
            p, q = ([math.exp(value) / sum(map(math.exp, one.logits)) for value in one.logits] for one in (real, prior))
            entropy = -sum(value * math.log(value) for value in p)
            moved = [min(max(a - 0.7 * entropy * (b - 0.25), 1e-8), 1.0) for a, b in zip(p, q)]
            assert scores[slot] == pytest.approx(sum(g * value for g, value in enumerate(moved)) / sum(moved) / 3, abs=1e-5)
        assert CapCal(inner, strength=0.0).score("which city", DOCUMENTS) == pytest.approx(inner.score("which city", DOCUMENTS), abs=1e-6)

    def test_slot_means_of_shuffled_dev_lists_are_subtracted(self, inner):
        from steadyrank.scoring.calibrate import SlotMean

        dev = [RankingExample(f"which city {n}", tuple(DOCUMENTS[: 3 + n % 2]), id=str(n)) for n in range(6)]
        fitted = SlotMean.fit(inner, dev, presentations_each=4, seed=1)
        cells: dict[int, list[float]] = {}
        for example in dev:
            for laid in presentations(example, 4, seed=1):
                row = inner.score_presentations([example], [[laid]])[0][0].scores
                for prompt in inner.prompts_of(example, laid):
                    for slot, place in enumerate(prompt.places):
                        cells.setdefault(slot, []).append(row[place])
        mean = np.mean([value for values in cells.values() for value in values])
        assert fitted.offsets == pytest.approx([np.mean(cells[slot]) - mean for slot in range(3)], abs=1e-6)
        plain = inner.score("which city", DOCUMENTS[:3])
        expected = [min(max(score - offset, 0), 1) for score, offset in zip(plain, fitted.offsets)]
        assert fitted.score("which city", DOCUMENTS[:3]) == pytest.approx(expected, abs=1e-6)
        again = load_scorer({"kind": "slot_mean", "scorer": inner, "offsets": fitted.offsets})
        assert again.fingerprint == fitted.fingerprint

    def test_what_slot_means_cannot_do_is_counted(self, inner):
        from steadyrank.scoring.calibrate import SlotMean

        scorer = SlotMean(inner, offsets=(2.0,))
        scores = scorer.score("which city", DOCUMENTS[:3])
        assert scores[0] == 0.0 and scores[1:] == inner.score("which city", DOCUMENTS[:3])[1:]
        assert (scorer.clipped, scorer.beyond) == (1, 2)

    def test_repairs_of_slots_need_slots(self):
        for spec in ({"kind": "capcal"}, {"kind": "slot_mean", "offsets": (0.0,)}):
            with pytest.raises(ConfigError, match="has none"):
                load_scorer({**spec, "scorer": "bm25"})

"""Agreements to draw pages of, made by the real statistics from planted judges."""

import numpy as np

from steadyrank import RankingExample
from steadyrank.judging.agreement import AgreementSettings, Swap, judge_agreement
from steadyrank.judging.base import JudgedList
from steadyrank.seeds import stream

NASTY = "<script>alert('x')</script> & \"co\""
DATASETS = ("one", "two & <i>three</i>")


def world(amount=24):
    """(lists, judgments of a judge that is right, scores that order by grade, judgments by dice)."""
    draw = stream(0, "pages")
    lists, right, scores, dice = [], [], [], []
    for at in range(amount):
        grades = [3.0, *(float(grade) for grade in draw.integers(0, 3, 4))]
        name = f"q{at}"
        lists.append(RankingExample(f"query {at}", [f"{name} {k}" for k in range(5)], grades, id=name, source=DATASETS[at % 2]))
        right.append(JudgedList(name, (*grades[:4], None if at % 6 == 0 else grades[4])))
        scores.append(JudgedList(name, tuple(float(4 * grade - 6 + noise) for grade, noise in zip(grades, draw.normal(0, 3, 5)))))
        dice.append(JudgedList(name, tuple(float(grade) for grade in draw.integers(0, 4, 5))))
    return lists, right, scores, dice


def agreement(judges=("right", "scorer", NASTY), *, has_reference=True, again=True, swaps=True):
    lists, right, scores, dice = world()
    rows = {"right": right, "scorer": scores, NASTY: dice}
    swapped = {judges[0]: [Swap(e.id, "0", "1", 0.9, float(np.round(at % 3 / 2, 1))) for at, e in enumerate(lists)]}
    return judge_agreement(
        lists,
        {name: rows.get(name, dice) for name in judges},
        has_reference=has_reference,
        again={judges[0]: dice} if again else None,
        swaps=swapped if swaps else None,
        settings=AgreementSettings(resamples=100, ranks=["scorer"] if "scorer" in judges else []),
    ).to_json()

"""Small lists and judgments: a set for counting by hand, and planted judges of any size."""

import numpy as np

from steadyrank import RankingExample
from steadyrank.judging.agreement import AgreementSettings, judge_agreement
from steadyrank.judging.base import JudgedList
from steadyrank.seeds import stream

FEW = AgreementSettings(resamples=200)


def make_list(name, grades, source="s", group=None):
    return RankingExample(f"query {name}", [f"{name} {k}" for k in range(len(grades))], grades, id=name, source=source, group=group)


def rows(**grades):
    return [JudgedList(name, tuple(values)) for name, values in grades.items()]


LISTS = [
    make_list("q1", [3, 0, 1, 0], "one"),
    make_list("q2", [0, 2, 0], "one"),
    make_list("q3", [1, 1], "two"),
    make_list("q4", [0, 3, -1], "two"),
]
JUDGE = rows(q1=[2, 0, 1, None], q2=[1, 1, 1], q3=[3, 0], q4=[0, 3, 2])


def compare(examples=LISTS, judge=JUDGE, settings=FEW, **options):
    return judge_agreement(examples, {"judge": judge}, settings=settings, **options).comparisons[0]


def made(seed, amount=40, *, hit=0.5, group=lambda at: None):
    """Lists with gold grades and a judge that gives the gold grade with probability `hit`, else any grade alike."""
    draw = stream(seed, "made")
    lists, judged = [], []
    for at in range(amount):
        grades = draw.integers(0, 4, 6)
        guess = np.where(draw.random(6) < hit, grades, draw.integers(0, 4, 6))
        lists.append(make_list(f"q{at}", [float(g) for g in grades], f"s{at % 3}", group(at)))
        judged.append(JudgedList(f"q{at}", tuple(float(g) for g in guess)))
    return lists, judged

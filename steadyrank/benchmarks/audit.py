"""What an audit costs: P presentations of an example against P single calls, and the pure measures.

Presentations of one example share the head of every prompt (`reuse_prefix`) and go through the model in full batches, so that together they
cost less than one after another, and the ratio says how much less. The measures are those that an audit computes, on random scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from steadyrank.benchmarks.timing import BenchResult, interleave, ratio
from steadyrank.consumers.ordering import rankings
from steadyrank.consumers.preference import PreferenceConsumer
from steadyrank.consumers.threshold import ThresholdConsumer
from steadyrank.data.models import fetch
from steadyrank.data.presenting import presentations
from steadyrank.data.selecting import cap, choose, examples_of
from steadyrank.records import Candidate, RankingExample
from steadyrank.seeds import stream
from steadyrank.stability.bootstrap import bootstrap_table
from steadyrank.stability.psi import psi_many
from steadyrank.stability.spread import rank_variance, top_k_turnover


def run(
    *,
    lists: int = 4,
    candidates: int = 8,
    count: int = 10,
    rounds: int = 3,
    kinds: Sequence[str] = ("joint_encoder", "expected_grade"),
    measured: int = 1_000,
    seed: int = 0,
) -> list[BenchResult]:
    """One result a batched scorer, and one for the measures of `measured` lists x `count` presentations x 20 candidates."""
    examples = [cap(example, candidates, seed=seed) for example in choose(examples_of("packaged:test"), lists, seed=seed)]
    results = [_scoring(kind, examples, candidates, count, rounds, seed) for kind in kinds]
    return [*results, measures(lists=measured, presentations=count, rounds=rounds, seed=seed)]


def _scoring(kind: str, examples: Sequence[RankingExample], width: int, count: int, rounds: int, seed: int) -> BenchResult:
    import torch

    scorer = _scorer(kind, width)
    laid = [presentations(example, count, seed=seed, windows=scorer.windows) for example in examples]

    def together() -> None:
        for example, shown in zip(examples, laid, strict=True):
            scorer.score_presentations([example], [shown])

    def one_by_one() -> None:
        for example, shown in zip(examples, laid, strict=True):
            for one in shown:
                scorer.score_presentations([example], [[one]])

    names = (f"{count} presentations in one call", f"{count} calls of one presentation")
    timings = interleave(dict(zip(names, (together, one_by_one), strict=True)), rounds=rounds)
    setting = {"model": kind, "lists": len(examples), "candidates": width, "threads": torch.get_num_threads(), "rounds": rounds}
    fast, slow = (timings[name] for name in names)
    shares = {"cost of one call, of the calls apart": fast.median / slow.median}
    return BenchResult("presentations", setting, (fast, slow), (ratio(fast, slow),), shares, "presentations", len(examples) * count)


def _scorer(kind: str, width: int) -> Any:
    if kind == "joint_encoder":
        from steadyrank.scoring.joint_encoder import JointEncoder

        return JointEncoder.from_cross_encoder("teacher", width=width)
    from steadyrank.scoring.expected_grade import ExpectedGrade

    return ExpectedGrade.load(str(fetch("smollm2")), width=width)


def measures(*, lists: int = 1_000, presentations: int = 10, candidates: int = 20, rounds: int = 3, seed: int = 0) -> BenchResult:
    """The pure measures, each over all lists: tau-PSI, spreads, kept sets, preference flips, one bootstrap of all columns."""
    works = measure_works(lists, presentations, candidates, seed)
    timings = interleave(works, rounds=rounds)
    setting = {"lists": lists, "presentations": presentations, "candidates": candidates, "rounds": rounds}
    total = sum(timing.median for timing in timings.values())
    shares = {f"{name}, share of {total:.2f} s in all": timing.median / total for name, timing in timings.items()}
    return BenchResult("pure measures", setting, tuple(timings.values()), (), shares, "lists", lists)


def measure_works(lists: int, presentations: int, candidates: int, seed: int) -> dict[str, Callable[[], Any]]:
    """Each measure as a call without arguments, on random scores with some agreement."""
    draw = stream(seed, "bench audit")
    base = draw.normal(size=(lists, 1, candidates))
    scores = list(base + 0.3 * draw.normal(size=(lists, presentations, candidates)))
    orders = [np.array([draw.permutation(candidates) for _ in range(presentations)]) for _ in range(lists)]
    grades = (base[:, 0] > 1).astype(float)
    pool = tuple(Candidate("text") for _ in range(candidates))
    examples = [RankingExample("query", pool, tuple(row), id=str(n), source=str(n % 8)) for n, row in enumerate(grades)]
    columns = draw.normal(size=(lists, 20))
    sources = [str(example.source) for example in examples]
    return {
        "tau-PSI": lambda: psi_many(scores),
        "rank variance and turnover": lambda: [(rank_variance(one), top_k_turnover(one, 3)) for one in scores],
        "rankings": lambda: [rankings(one, laid) for one, laid in zip(scores, orders, strict=True)],
        "threshold (Jaccard, flips, F1)": lambda: ThresholdConsumer(1.0).apply(scores, examples),
        "preference flips": lambda: PreferenceConsumer().apply(scores, examples, orders=orders),
        "bootstrap of 20 columns": lambda: bootstrap_table(columns, sources, seed=seed),
    }

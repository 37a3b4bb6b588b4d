"""Values of measures per query: orders by the tie rule, then ir-measures, or the closed forms where ir-measures cannot go.

Who computes what: our nDCG(gain=...) and IPrec always by `closed_forms`; every other measure by ir-measures, except lists with ties under
`ties="average"` and lists with fractional grades, where the closed form is used (ir-measures takes whole grades only).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from steadyrank.errors import InputError, MissingDependencyError
from steadyrank.evaluation import closed_forms, ties
from steadyrank.evaluation.measures import Measure
from steadyrank.evaluation.pools import Pool
from steadyrank.names import require


class Computed:
    """value[measure][query], the mean over presentations; ceiling: the same of the best order of what was retrieved."""

    def __init__(self, measures: Sequence[Measure], pools: Sequence[Pool]):
        self.value = {measure: np.zeros(len(pools)) for measure in measures}
        self.ceiling = {measure: np.zeros(len(pools)) for measure in measures}
        self.sampled: set[int] = set()


def compute(pools: Sequence[Pool], measures: Sequence[Measure], *, rule: str, seed: int) -> Computed:
    """Per-query values of all measures."""
    ties.check_rule(rule)
    fractional = [any(grade is not None and grade % 1 for grade in pool.grades) for pool in pools]
    if any(fractional):
        _check_fractional(pools[fractional.index(True)], measures, rule)
    out = Computed(measures, pools)
    jobs: dict[Measure, list[tuple[int, list[list[int]], float, bool]]] = {measure: [] for measure in measures}
    for at, pool in enumerate(pools):
        tied = [ties.blocks(row) for row in pool.lists]
        best = ties.blocks([ties.gain_of(grade) for grade in pool.grades[: pool.retrieved]])
        best = [[place] for block in best for place in block]
        for measure in measures:
            if not pool.lists:
                out.value[measure][at] = out.ceiling[measure][at] = measure.default
            if pool.retrieved:
                _put(jobs, out.ceiling, measure, at, pool, best, fractional[at], True)
            for number, (row, places) in enumerate(zip(pool.lists, tied, strict=True)):
                if rule != "average":
                    places = [[place] for place in ties.order(row, pool.names, pool.grades, rule)]
                share = 1 / len(pool.lists)
                if measure.closed and (measure.gain or fractional[at] or isinstance(measure.rel, float) or len(places) < len(row)):
                    out.value[measure][at] += share * closed_forms.value(measure, places, pool.grades)
                    continue
                rankings, sample = ties.orders(places, pool.grades, seed=seed, names=(pool.query, number))
                if sample:
                    out.sampled.add(at)
                if measure.own:
                    parts = [closed_forms.value(measure, [[place] for place in ranking], pool.grades) for ranking in rankings]
                    out.value[measure][at] += share * float(np.mean(parts))
                    continue
                jobs[measure] += [(at, [ranking], share / len(rankings), False) for ranking in rankings]
    _run_jobs(jobs, pools, out)
    return out


def _put(jobs: Any, table: Any, measure: Measure, at: int, pool: Pool, best: list[list[int]], fractional: bool, ceiling: bool) -> None:
    if measure.own or measure.closed and (fractional or isinstance(measure.rel, float)):
        table[measure][at] = closed_forms.value(measure, best, pool.grades)
    else:
        jobs[measure].append((at, [[place for block in best for place in block]], 1.0, ceiling))


def _run_jobs(jobs: Any, pools: Sequence[Pool], out: Computed) -> None:
    """One call of ir-measures for all measures that ask for the same rankings."""
    batches: dict[tuple[Any, ...], list[Measure]] = {}
    for measure, asked in jobs.items():
        if asked:
            batches.setdefault((len(asked), sum(weight for _, _, weight, _ in asked), asked[-1][0]), []).append(measure)
    for measures in batches.values():
        while measures:
            first = measures[0]
            same = [measure for measure in measures if jobs[measure] == jobs[first]]
            measures = [measure for measure in measures if measure not in same]
            _ir_measures(same, jobs[first], pools, out)


def _ir_measures(
    measures: Sequence[Measure], asked: Sequence[tuple[int, list[list[int]], float, bool]], pools: Sequence[Pool], out: Computed
) -> None:
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for number, (at, rankings, _, _) in enumerate(asked):
        pool, ranking = pools[at], rankings[0]
        qrels[str(number)] = {str(place): int(grade) for place, grade in enumerate(pool.grades) if grade is not None}
        run[str(number)] = {str(place): float(len(ranking) - rank) for rank, place in enumerate(ranking)}
    objects = {measure.to_ir(): measure for measure in measures}
    for metric in _calculate(list(objects), qrels, run):
        at, _, weight, ceiling = asked[int(metric.query_id)]
        table = out.ceiling if ceiling else out.value
        table[objects[metric.measure]][at] += weight * metric.value


def _calculate(objects: list[Any], qrels: Any, run: Any) -> Iterable[Any]:
    library = require("ir_measures", "evaluation")
    try:
        return list(library.iter_calc(objects, qrels, run))
    except ValueError as error:
        if "Unsupported measures" not in str(error):
            raise
        names = ", ".join(str(item) for item in objects)
        raise MissingDependencyError(
            f"no installed provider of ir-measures computes {names}; see https://ir-measur.es/en/latest/providers.html for what to install"
        ) from error


def _check_fractional(pool: Pool, measures: Sequence[Measure], rule: str) -> None:
    grade = next(grade for grade in pool.grades if grade is not None and grade % 1)
    where = f"query {pool.query!r} has the grade {grade:g}"
    if rule == "trec":
        raise InputError(
            f"{where}; trec_eval's rule takes whole grades only: choose ties average, or round the grades yourself", field="ties"
        )
    for measure in measures:
        if not measure.closed:
            raise InputError(
                f"{where} and {measure} takes whole grades only; nDCG, RR, P, R, Success and AP take fractions", field="measures"
            )
        if measure.binary and measure.rel is None:
            at = f"@{measure.cutoff}" if measure.cutoff is not None else ""
            raise InputError(
                f"{where}, so {measure} needs a threshold: write {measure.family}(rel=0.5){at} for grades from 0.5", field="measures"
            )

"""Is system a better than system b on the same queries, and how sure are we?

The difference is a - b. Its interval is the paired bootstrap's. Wilcoxon tests the means of the units: with `units="groups"` (default) the
queries of one base query are one pair, since they are not independent; `n` and `nonzero` count those pairs. Wins and losses count queries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from steadyrank.errors import ConfigError, InputError
from steadyrank.evaluation.bootstrap import RESAMPLES, intervals, unit_labels
from steadyrank.evaluation.measures import Measure
from steadyrank.evaluation.paired import ROUNDING, holm, wilcoxon
from steadyrank.evaluation.results import Comparison, Evaluation


def compare(
    a: Evaluation, b: Evaluation, measure: str | Measure, *, units: str = "groups", resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    """Paired comparison of two evaluations of the same queries."""
    name = str(Measure.parse(measure))
    queries = _common(a, b, name)
    differences = np.array([a.per_query[query][name] - b.per_query[query][name] for query in queries])
    labels = unit_labels(queries, a.groups, a.sources, units)
    sources = [a.sources.get(query, "") for query in queries]
    micro, macro = intervals(differences, labels, sources, resamples=resamples, seed=seed)
    unit_Q = np.unique(labels, return_inverse=True)[1]
    means = np.bincount(unit_Q, weights=differences) / np.bincount(unit_Q)
    p, nonzero = wilcoxon(means)
    return Comparison(
        a=a.system, b=b.system, split=a.split, measure=name, difference=micro[0], macro_difference=macro[0], nonzero=nonzero, n=len(means),
        wilcoxon=p, holm=None, by_source=_by_source(differences, sources) if a.sources else {},
        settings={"units": units, "resamples": resamples, "seed": seed, "queries": len(queries)},
    )  # fmt: skip


def compare_family(
    pairs: Iterable[tuple[Evaluation, Evaluation]],
    measure: str | Measure,
    *,
    units: str = "groups",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Comparison]:
    """Comparisons whose two-sided p-values are corrected together (Holm)."""
    family = [compare(a, b, measure, units=units, resamples=resamples, seed=seed) for a, b in pairs]
    adjusted = holm([comparison.wilcoxon["two_sided"] for comparison in family])
    return [replace(comparison, holm=p) for comparison, p in zip(family, adjusted, strict=True)]


def _common(a: Evaluation, b: Evaluation, name: str) -> list[str]:
    for one in (a, b):
        if name not in one.measures:
            raise ConfigError(f"evaluation of {one.system!r} holds no {name}; it holds {', '.join(one.measures)}")
    if set(a.per_query) != set(b.per_query):
        only = sorted(set(a.per_query) ^ set(b.per_query))
        raise InputError(
            f"{a.system!r} and {b.system!r} were evaluated on different queries ({len(only)} in one only, such as {only[0]!r})"
        )
    if a.fingerprints.get("data") != b.fingerprints.get("data"):
        raise InputError(
            f"{a.system!r} and {b.system!r} were evaluated on the same ids with other texts or grades; evaluate both on one file"
        )
    for rule in ("ties", "exclude_self"):
        if a.settings.get(rule) != b.settings.get(rule):
            raise InputError(f"{a.system!r} and {b.system!r} were evaluated with {rule} {a.settings.get(rule)} and {b.settings.get(rule)}")
    return list(a.per_query)


def _by_source(differences: np.ndarray, sources: list[str]) -> dict[str, dict[str, float]]:
    out = {}
    for source in sorted(set(sources)):
        part = differences[[at for at, name in enumerate(sources) if name == source]]
        win, loss = int((part > ROUNDING).sum()), int((part < -ROUNDING).sum())
        out[source or "unnamed"] = {"win": win, "tie": len(part) - win - loss, "loss": loss, "difference": float(part.mean())}
    return out

"""`evaluate`: scores against grades, under one tie rule, with intervals and a count of everything that was left out or repaired."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from steadyrank.errors import ConfigError
from steadyrank.evaluation import DEFAULT_MEASURES
from steadyrank.evaluation.bootstrap import RESAMPLES, intervals, unit_labels
from steadyrank.evaluation.computing import Computed, compute
from steadyrank.evaluation.measures import Measure, parse_all
from steadyrank.evaluation.pools import Gathered, Pool, gather
from steadyrank.evaluation.results import Evaluation
from steadyrank.evaluation.ties import check_rule, tied_pairs
from steadyrank.records import RankingExample, ScoredList

Run = Mapping[Any, Mapping[Any, Any]]


def evaluate(
    scored: Iterable[ScoredList] | Run | Iterable[tuple[Any, Any, Any]],
    examples: Iterable[RankingExample] | Run,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    ties: str = "average",
    units: str = "groups",
    no_relevant: str = "zero",
    exclude_self: bool | None = None,
    dedup: str = "error",
    system: str | None = None,
    split: str | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Evaluation:
    """One system's scores against the grades of the queries.

    scored:       ScoredLists of one scorer (several presentations of an example are averaged), or a run `{query: {document: score}}`, or
                  (query, document, score) rows.
    examples:     RankingExamples with relevance, or qrels `{query: {document: grade}}`.
    ties:         average, trec, stable or pessimistic (see `ties`).
    units:        what the bootstrap draws: queries, groups or sources.
    no_relevant:  a query with grades and none above 0 counts as `zero` (trec_eval's rule), or is left out: `skip`.
    exclude_self: drop the retrieved document that has the query's own id; by default for the sources in `pools.SELF_RETRIEVAL`.
    dedup:        a document twice in one list of rows: error, or keep the first or the best.
    """
    check_rule(ties)
    if no_relevant not in ("zero", "skip"):
        raise ConfigError(f"no_relevant is {no_relevant!r}; must be zero or skip")
    chosen = parse_all(measures)
    examples = examples if isinstance(examples, Mapping) else list(examples)
    gathered = gather(scored, examples, exclude_self=exclude_self, dedup=dedup)
    empty = {pool.query for pool in gathered.pools if not any((grade or 0) > 0 for grade in pool.grades)}
    if no_relevant == "skip":
        gathered.pools = [pool for pool in gathered.pools if pool.query not in empty]
        gathered.missing = [query for query in gathered.missing if query not in empty]
        if not gathered.pools:
            raise ConfigError("no query has a grade above 0, and no_relevant is 'skip'; nothing is left to evaluate")
    computed = compute(gathered.pools, chosen, rule=ties, seed=seed)
    pools = gathered.pools
    sources = {pool.query: pool.source for pool in pools if pool.source is not None}
    groups = {pool.query: pool.group for pool in pools if pool.group is not None}
    labels = unit_labels([pool.query for pool in pools], groups, sources, units)
    settings = {
        "ties": ties,
        "units": units,
        "no_relevant": no_relevant,
        "exclude_self": exclude_self,
        "dedup": dedup,
        "seed": seed,
        "resamples": resamples,
    }
    return Evaluation(
        system=system or gathered.system or "run",
        split=split,
        measures=_summaries(computed, chosen, pools, labels, resamples=resamples, seed=seed),
        per_query={pool.query: {str(measure): float(computed.value[measure][at]) for measure in chosen} for at, pool in enumerate(pools)},
        groups=groups,
        sources=sources,
        counts=_counts(gathered, computed, len(empty), no_relevant),
        missing=gathered.missing,
        settings=settings,
        fingerprints={"data": data_fingerprint(examples)},
    )


def _summaries(
    computed: Computed, chosen: list[Measure], pools: list[Pool], labels: list[str], *, resamples: int, seed: int
) -> dict[str, Any]:
    values_QM = np.column_stack([computed.value[measure] for measure in chosen])
    names = [pool.source or "" for pool in pools]
    micro, macro = intervals(values_QM, labels, names, resamples=resamples, seed=seed)
    by_source: list[dict[str, Any]] = [{} for _ in chosen]
    for source in sorted({pool.source for pool in pools if pool.source is not None}):
        rows = values_QM[[name == source for name in names]]
        for place, mean in enumerate(rows.mean(0)):
            by_source[place][source] = {"mean": float(mean), "n": len(rows)}
    return {
        str(measure): {
            "micro": micro[place],
            "macro": macro[place],
            "by_source": by_source[place],
            "ceiling": float(computed.ceiling[measure].mean()),
        }
        for place, measure in enumerate(chosen)
    }


def _counts(gathered: Gathered, computed: Computed, no_relevant: int, policy: str) -> dict[str, Any]:
    pools = gathered.pools
    pairs = [tied_pairs(row) for pool in pools for row in pool.lists]
    grades = [grade for pool in pools for grade in pool.grades if grade is not None]
    return {
        "queries": len(pools),
        "missing": len(gathered.missing),
        **gathered.counts,
        "no_relevant": no_relevant,
        "no_relevant_skipped": no_relevant if policy == "skip" else 0,
        "all_relevant": sum(all((grade or 0) > 0 for grade in pool.grades) for pool in pools),
        "single_candidate": sum(len(pool.names) == 1 for pool in pools),
        "negative_grades": sum(grade < 0 for grade in grades),
        "fractional_grades": sum(bool(grade % 1) for grade in grades),
        "unjudged_documents": sum(grade is None for pool in pools for grade in pool.grades),
        "unretrieved_relevant": sum((grade or 0) > 0 for pool in pools for grade in pool.grades[pool.retrieved :]),
        "lists": len(pairs),
        "pairs": sum(len(row) for pool in pools for row in pool.lists),
        "tied_lists": sum(tied > 0 for tied, _ in pairs),
        "tie_rate": sum(tied for tied, _ in pairs) / max(1, sum(total for _, total in pairs)),
        "sampled_ties": len(computed.sampled),
    }


def data_fingerprint(examples: Any) -> str:
    """A hash of what was evaluated on: queries, instructions, documents and grades, or the qrels."""
    digest = hashlib.sha256()
    if isinstance(examples, Mapping):
        rows: Iterable[Any] = sorted(
            [str(query), sorted([str(name), float(grade)] for name, grade in of.items())] for query, of in examples.items()
        )
    else:
        rows = sorted([one.id, one.query, one.instruction or "", one.documents, list(one.relevance or ())] for one in examples)
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True).encode())
    return digest.hexdigest()[:16]

"""Which lists the threshold is chosen on. Never the reported ones: dev lists, or half of the lists, split by group and query."""

from __future__ import annotations

from collections.abc import Sequence

from steadyrank import seeds
from steadyrank.data.splits import clusters_of
from steadyrank.errors import InputError
from steadyrank.records import RankingExample


def check_apart(examples: Sequence[RankingExample], dev: Sequence[RankingExample]) -> None:
    """Raise where dev and reported lists share an id, a group or a query."""
    clusters = clusters_of([*examples, *dev])
    reported = dict(zip(clusters[: len(examples)], examples))
    ids = {example.id for example in examples}
    for example, cluster in zip(dev, clusters[len(examples) :], strict=True):
        if cluster in reported or example.id in ids:
            other = reported[cluster].id if cluster in reported else example.id
            raise InputError(
                f"list {example.id!r} shares its id, group or query with {other!r} of the audited lists; "
                "a threshold is never chosen on what it is reported on, so give other dev lists",
                field="dev",
            )


def halves(examples: Sequence[RankingExample], seed: int) -> tuple[list[RankingExample], list[RankingExample]]:
    """(dev, reported): every second cluster of each source, in an order drawn by their names. Empty dev where there is one cluster."""
    clusters = clusters_of(examples)
    source = {cluster: example.source or "" for cluster, example in zip(reversed(clusters), reversed(examples), strict=True)}
    drawn = sorted(source, key=lambda cluster: (source[cluster], seeds.digest(seed, "audit half", cluster)))
    dev_clusters = set(drawn[1::2])
    dev = [example for example, cluster in zip(examples, clusters, strict=True) if cluster in dev_clusters]
    return dev, [example for example, cluster in zip(examples, clusters, strict=True) if cluster not in dev_clusters]

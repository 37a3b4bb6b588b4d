"""Group-aware splits: examples that share a group or a query text, directly or through others, always stand on the same side.

Each such cluster is put by a lot hashed from the seed and its name, so adding lists never moves another cluster to another side, unless
they join two clusters. Shares are therefore expected shares; a split that comes out empty is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from steadyrank import seeds
from steadyrank.errors import ConfigError, InputError, unknown_name
from steadyrank.records import RankingExample

TIES = ("group", "query", "positive")


def split_examples(
    examples: Sequence[RankingExample], shares: Mapping[str, float], *, seed: int = 0, ties: Sequence[str] = ("group", "query")
) -> dict[str, list[RankingExample]]:
    """Examples by split name; `shares` are expected shares of the clusters and add up to 1.

    ties: what keeps examples together: their `group`, their `query` text, and, if asked for, a `positive` document's text.
    """
    if any(share < 0 for share in shares.values()) or abs(sum(shares.values()) - 1) > 1e-6:
        raise ConfigError(f"shares {dict(shares)} must not be negative and must add up to 1")
    clusters = clusters_of(examples, ties=ties)
    out: dict[str, list[RankingExample]] = {name: [] for name in shares}
    for example, cluster in zip(examples, clusters, strict=True):
        name = _side(seeds.stream(seed, "split", cluster).random(), shares)
        out[name].append(replace(example, split=name))
    empty = [name for name, share in shares.items() if share > 0 and not out[name]]
    if empty:
        found = len(set(clusters))
        raise InputError(f"split {empty[0]!r} (share {shares[empty[0]]:g}) got none of {found} clusters; give more lists or another seed")
    return out


def clusters_of(examples: Sequence[RankingExample], *, ties: Sequence[str] = ("group", "query")) -> list[str]:
    """The name of each example's cluster: the first, in text order, of all keys that its members share or are joined by."""
    for tie in ties:
        if tie not in TIES:
            raise unknown_name("tie", tie, TIES)
    parents: dict[str, str] = {}

    def top(key: str) -> str:
        while parents.setdefault(key, key) != key:
            parents[key] = key = parents[parents[key]]
        return key

    firsts = []
    for example in examples:
        keys = [top(key) for key in _keys(example, ties)] or [f"id:{example.id}"]
        for key in keys:
            parents[key] = min(keys)
        firsts.append(min(keys))
    return [top(key) for key in firsts]


def group_of(example: RankingExample) -> str:
    """The group, or without one the query text, without regard to case and spacing."""
    return example.group if example.group is not None else f"query:{_normal(example.query)}"


def _keys(example: RankingExample, ties: Sequence[str]) -> Iterator[str]:
    if "group" in ties and example.group is not None:
        yield f"group:{example.group}"
    if "query" in ties:
        yield f"query:{_normal(example.query)}"
    if "positive" in ties and example.relevance is not None:
        for text, grade in zip(example.documents, example.relevance, strict=True):
            if grade > 0:
                yield f"text:{_normal(text)}"


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())


def _side(lot: float, shares: Mapping[str, float]) -> str:
    reached = 0.0
    for name, share in shares.items():
        reached += share
        if lot < reached:
            return name
    return [name for name, share in shares.items() if share > 0][-1]  # rounding: the shares add up to a hair below 1

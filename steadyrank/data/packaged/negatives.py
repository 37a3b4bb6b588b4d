"""Negatives: whole role groups of other queries, half the most BM25-similar, half drawn at random.

Why whole groups: with BM25 negatives alone, a prior that never reads the query ranks at 0.92 nDCG@10, because gold documents are
popular and negatives are not. When a negative is the *hit, parent and sibling of another query*, every document is a
positive about as often as it is a negative, and the prior falls to chance; `audit` measures it for every family.
Groups are lent within a split only, so nothing of the test queries reaches a training list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from steadyrank import seeds
from steadyrank.data.packaged.common import Base, shuffled

NEIGHBOURS = 60  # BM25-similar queries looked at before only random ones are left


def tokens(text: str) -> list[str]:
    """Lower-case words; the only tokenisation of this collection, so that its bytes do not move with a stemmer."""
    return re.findall(r"[a-z0-9]+", text.lower())


def neighbours(queries: Sequence[str], texts: Sequence[str], k: int) -> list[list[int]]:
    """For each query the k texts of highest BM25, best first; near-equal scores fall back on the place, so no tie hangs on floats."""
    import bm25s

    if not texts:
        return [[] for _ in queries]
    index = bm25s.BM25()
    index.index([tokens(text) or ["_"] for text in texts], show_progress=False)
    out: list[list[int]] = []
    for query in queries:
        words = [word for word in tokens(query) if word in index.vocab_dict]
        if not words:
            out.append([])
            continue
        scores = np.round(np.asarray(index.get_scores(words), dtype=np.float64), 3)
        first = np.argsort(-scores, kind="stable")[:k]
        out.append([int(place) for place in first if scores[place] > 0])
    return out


def pools(bases: Sequence[Base], *, size: int, seed: int, domain: str) -> dict[str, tuple[str, ...]]:
    """key -> the shuffled pool of each base query: its own group, then groups lent by others of its split, up to `size`."""
    out: dict[str, tuple[str, ...]] = {}
    for split in sorted({base.split for base in bases}):
        members = [base for base in bases if base.split == split]
        near = neighbours([base.query for base in members], [base.query for base in members], NEIGHBOURS)
        for place, base in enumerate(members):
            pool = list(base.documents)
            similar = (members[other] for other in near[place] if other != place)
            chance = (members[other] for other in _chance(len(members), place, seed, domain, base.key))
            _fill(pool, base, similar, chance, size)
            out[base.key] = shuffled(pool, seed, domain, base.key)
    return out


def _chance(total: int, place: int, seed: int, *names: object) -> Iterator[int]:
    draws = seeds.stream(seed, "lend", *names).integers(0, total, size=40 * NEIGHBOURS // 10)
    return (int(other) for other in draws if other != place)


def _fill(pool: list[str], base: Base, similar: Iterator[Base], chance: Iterator[Base], size: int) -> None:
    """Lend groups in turns, a similar one then a random one; a group is lent whole or not at all."""
    turn = 0
    sources = [similar, chance]
    while len(pool) < size and sources:
        source = sources[turn % len(sources)]
        group = next(source, None)
        if group is None:
            sources.remove(source)
            continue
        if len(pool) + len(group.documents) > size or not base.kin.isdisjoint(group.documents) or not set(pool).isdisjoint(group.documents):
            continue
        pool.extend(group.documents)
        turn += 1


def check_pools(pools_of: Mapping[str, Sequence[str]], *, least: int) -> dict[str, int]:
    """How many pools came out shorter than `least`; the manifest counts them."""
    return {"pools": len(pools_of), "short": sum(len(pool) < least for pool in pools_of.values())}

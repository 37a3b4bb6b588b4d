"""Group-aware splits: examples that share a group, or without one a query text, always stand on the same side.

Each group is put by a lot hashed from the seed and its name, so adding lists never moves another group to another side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from steadyrank import seeds
from steadyrank.errors import ConfigError
from steadyrank.records import RankingExample


def split_examples(examples: Sequence[RankingExample], shares: Mapping[str, float], *, seed: int = 0) -> dict[str, list[RankingExample]]:
    """Examples by split name; `shares` are expected shares of the groups and add up to 1."""
    if any(share < 0 for share in shares.values()) or abs(sum(shares.values()) - 1) > 1e-6:
        raise ConfigError(f"shares {dict(shares)} must not be negative and must add up to 1")
    out: dict[str, list[RankingExample]] = {name: [] for name in shares}
    for example in examples:
        name = _side(seeds.stream(seed, "split", group_of(example)).random(), shares)
        out[name].append(replace(example, split=name))
    return out


def group_of(example: RankingExample) -> str:
    """What must stay together: the group, or the query text without regard to case and spacing."""
    return example.group if example.group is not None else "query:" + " ".join(example.query.casefold().split())


def _side(lot: float, shares: Mapping[str, float]) -> str:
    reached = 0.0
    for name, share in shares.items():
        reached += share
        if lot < reached:
            return name
    return [name for name, share in shares.items() if share > 0][-1]  # rounding: the shares add up to a hair below 1

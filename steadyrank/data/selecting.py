"""Which lists a command works on: a spec to examples, and seeded choices that do not depend on the order of the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from steadyrank import seeds
from steadyrank.errors import InputError
from steadyrank.records import RankingExample

PACKAGED = "packaged:"


def examples_of(spec: str, *, sources: Sequence[str] = ()) -> list[RankingExample]:
    """The examples of a file or folder, or of `packaged:SPLIT`; `sources` keeps those whose source starts with one of them."""
    if spec.startswith(PACKAGED):
        from steadyrank.data.packaged import load_split

        examples = load_split(spec.removeprefix(PACKAGED))
    else:
        from steadyrank.data.jsonl import load_examples

        examples = load_examples(spec)
    kept = [example for example in examples if not sources or (example.source or "").startswith(tuple(sources))]
    if not kept:
        raise InputError(f"no example has a source that starts with {' or '.join(sources)}" if sources else "holds no example", path=spec)
    return kept


def choose(examples: Sequence[RankingExample], limit: int | None, *, seed: int = 0, balanced: bool = False) -> list[RankingExample]:
    """At most `limit` examples, drawn by a stream of each example's id; they keep the order of the file.

    balanced: for evaluation: as nearly as possible the same number from every source, so that a large one does not crowd out a small one,
    and drawn by group, so that lists that differ in the instruction only come together.
    """
    if limit is None or limit >= len(examples):
        return list(examples)
    names = [(example.group if balanced else None) or example.id for example in examples]
    places = sorted(range(len(examples)), key=lambda place: (seeds.digest(seed, "choose", names[place]), examples[place].id))
    if balanced:
        turn: Counter[str | None] = Counter()
        turns = []
        for place in places:
            turns.append(turn[examples[place].source])
            turn[examples[place].source] += 1
        places = [place for _, place in sorted(zip(turns, places, strict=True), key=lambda pair: pair[0])]  # a stable sort: lots decide
    return [examples[place] for place in sorted(places[:limit])]


def cap(example: RankingExample, size: int | None, *, seed: int = 0) -> RankingExample:
    """At most `size` candidates: one of the highest grade always stays, the others are drawn by the example's stream."""
    total = len(example.candidates)
    if size is None or total <= size:
        return example
    order = list(seeds.permutation(total, seed, "cap", example.id))
    if example.relevance is not None:
        best = max(order, key=lambda place: example.relevance[place])  # type: ignore[index]  # the first drawn of the highest grade
        order.remove(best)
        order.insert(0, best)
    return replace(example.with_candidates(sorted(order[:size])), id=example.id)

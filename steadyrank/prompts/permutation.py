"""What a reply says about the order of documents: `[3] > [1] > [2]`, and nothing that only looks like it.

Read is the last chain of at least two bracketed labels joined by `>` (or commas), or one label that is the whole reply. Reasoning blocks
are passed over, digits in a sentence are not labels, and labels that were not given out count for nothing. What the chain leaves out
follows in the order the documents had.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL)
_LABEL = r"\[\s*([A-Za-z0-9]{1,8})\s*\]"
_CHAIN = re.compile(rf"{_LABEL}(?:\s*(?:>|&gt;|,)\s*{_LABEL})+", re.ASCII)
_ALONE = re.compile(_LABEL, re.ASCII)


@dataclass(frozen=True, slots=True)
class Flags:
    """How much of an order the reply gave. `failed`: nothing, and the order is the one the documents had."""

    failed: bool = False
    missing: int = 0
    """Documents that the chain left out."""
    unknown: int = 0
    """Labels in it that were not given out."""
    repeated: int = 0
    """Labels that stood in it before; the first place counts."""

    @property
    def complete(self) -> bool:
        """Whether every document stands in it once, and nothing else does."""
        return not (self.failed or self.missing or self.unknown or self.repeated)

    @property
    def repaired(self) -> bool:
        """Whether an order was read and something had to be passed over or filled in."""
        return not self.failed and not self.complete


def parse_permutation(text: str | None, n: int, *, labels: Sequence[str] | None = None) -> tuple[list[int], Flags]:
    """(order, flags): the places of n documents, best first; always a permutation of range(n).

    labels: what the documents were called; else 1 ... n.
    """
    given = {label: place for place, label in enumerate(labels or [str(number) for number in range(1, n + 1)])}
    named = _named(_THINKING.sub(" ", text or "").strip(), given)
    known = [given[label] for label in named if label in given]
    order = list(dict.fromkeys(known))
    if not order:
        return list(range(n)), Flags(failed=n > 0, missing=n, unknown=len(named))
    left = [place for place in range(n) if place not in set(order)]
    return order + left, Flags(missing=len(left), unknown=len(named) - len(known), repeated=len(known) - len(order))


def _named(body: str, given: dict[str, int]) -> list[str]:
    """The labels of the last chain that holds a label given out, in its order."""
    alone = _ALONE.fullmatch(body)
    chains = [[alone[1]]] if alone else [_ALONE.findall(found[0]) for found in _CHAIN.finditer(body)]
    legal = [chain for chain in chains if any(label in given for label in chain)]
    return (legal or chains or [[]])[-1]

"""What the domains of the packaged collection share: role groups, named splits, clean texts, and the row they make.

A *base query* is one real query; a *role group* is the few documents that belong to it (the hit, its parent, a sibling ...).
One base query gives one example per instruction family; they share `group` and, where the instruction flips the order, the pool.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadyrank import seeds
from steadyrank.data.packaged.instructions import wording
from steadyrank.records import Candidate, RankingExample

TRAIN, VALID = 0.80, 0.88  # upper ends of the shares of train and valid; the rest is test
DOCUMENT_LIMIT = 420  # characters; about 2,200 a list
QUERY_LIMIT = 700


@dataclass(frozen=True)
class Base:
    """One base query with its own role group.

    documents: ids of its own group, the hit first.
    kin:       ids that must not be lent to it as negatives (relevant, or close enough to be unjudged).
    """

    key: str
    query: str
    split: str
    documents: tuple[str, ...]
    kin: frozenset[str]


def normal(text: str) -> str:
    """The text as the leak check sees it: lower case, letters and digits only."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def short_hash(*parts: str) -> str:
    """Ten hex digits of the parts, for ids."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:10]


def lot(seed: int, *names: object) -> float:
    """A uniform number in [0, 1) of these names."""
    return seeds.digest(seed, *names) / 2.0**64


def split_of(key: str, *, domain: str, seed: int) -> str:
    """train, valid or test, drawn from the key alone, so that equal keys never part."""
    draw = lot(seed, "split", domain, key)
    return "train" if draw < TRAIN else "valid" if draw < VALID else "test"


def pick(options: Sequence[Any], seed: int, *names: object) -> Any:
    """One of the options by a named stream; the options must stand in a fixed order."""
    return options[int(lot(seed, "pick", *names) * len(options))]


def lots(options: Sequence[Any], seed: int, *names: object) -> list[Any]:
    """The options in a named random order."""
    return [options[place] for place in seeds.permutation(len(options), seed, "lots", *names)]


def plain(text: str | None) -> str:
    """Text without markup, links, citations and extra blanks."""
    text = re.sub(r"\(Citation:[^)]*\)", "", text or "")
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\u00a0", " ")
    return re.sub(r"\s+", " ", text).strip()


def cut(text: str, limit: int = DOCUMENT_LIMIT) -> str:
    """At most `limit` characters, cut at a word and marked; documents are cut here once, so that every scorer reads the same."""
    if len(text) <= limit:
        return text
    return text[: limit - 4].rsplit(" ", 1)[0] + " ..."


def shuffled(pool: Sequence[str], seed: int, *names: object) -> tuple[str, ...]:
    """The pool in the order that the file holds: drawn by the pool's own stream, so a positive is never first by habit."""
    return tuple(pool[place] for place in seeds.permutation(len(pool), seed, "order", *names))


def example(
    source: str, base: Base, pool: Sequence[str], *, grades: Mapping[str, float], texts: Mapping[str, str], seed: int,
    slots: Mapping[str, str] | None = None, extra: Mapping[str, Any] | None = None,
) -> RankingExample:  # fmt: skip
    """The example of one family over one pool; documents without a grade are 0."""
    slots = dict(slots or {})
    text, template = wording(source, base.key, seed=seed, slots=slots)
    return RankingExample(
        query=base.query,
        instruction=text,
        candidates=tuple(Candidate(texts[name], id=name) for name in pool),
        relevance=tuple(float(grades.get(name, 0)) for name in pool),
        id=f"{source}/{base.key}",
        source=source,
        split=base.split,
        group=f"{source.split('/')[0]}/{base.key}",
        extra={"wording": "seen", "template": template, "slots": slots, "pool": short_hash(*pool), **(extra or {})},
    )

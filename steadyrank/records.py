"""The records that travel through all rooms. Frozen; what they promise is checked at their door.

A candidate's place in `RankingExample.candidates` is its identity, the *canonical order*: scores always come back in it.
Files of these records are read and written by `steadyrank.data.jsonl`; the formats are in docs/formats.md.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from steadyrank.errors import InputError, NonFiniteScoreError

Scale = Literal["logit", "probability", "grade"]
SCALES: tuple[Scale, ...] = ("logit", "probability", "grade")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One document of a pool. Empty text is allowed; scorers give it a documented floor."""

    text: str
    id: str | None = None
    title: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("text", "id", "title"):
            value = getattr(self, name)
            if not isinstance(value, str) and (name == "text" or value is not None):
                raise InputError(f"must be text, not {type(value).__name__}", field=name)

    @property
    def content(self) -> str:
        """What a scorer reads: the title, where there is one, then the text (BEIR's rule)."""
        return f"{self.title} {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class RankingExample:
    """A query with its pool of candidates, and grades where they are known.

    candidates: `Candidate`s, or plain strings, which become candidates without an id.
    relevance:  one finite grade a candidate, canonical order; floats allowed; negative means unjudged.
    group:      ties examples that share a base query; splits and bootstraps respect it. Defaults to none.
    id:         names the example and its random streams; without one it is hashed from the texts.
    """

    query: str
    candidates: tuple[Candidate, ...]
    relevance: tuple[float, ...] | None = None
    instruction: str | None = None
    id: str = None  # type: ignore[assignment]  # filled in below
    source: str | None = None
    split: str | None = None
    group: str | None = None
    answers: tuple[str, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_text(self.query, "query")
        for name in ("instruction", "id", "source", "split", "group"):
            if getattr(self, name) is not None:
                _check_text(getattr(self, name), name)
        put = object.__setattr__
        put(self, "candidates", _candidates(self.candidates))
        put(self, "relevance", _relevance(self.relevance, len(self.candidates)))
        if self.answers is not None:
            put(self, "answers", tuple(self.answers))
        if self.id is None:
            put(self, "id", self._content_id())

    def _content_id(self) -> str:
        parts = [self.query, self.instruction or "", *(candidate.content for candidate in self.candidates)]
        return "x" + hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:15]

    @property
    def documents(self) -> list[str]:
        """The text of every candidate, canonical order."""
        return [candidate.content for candidate in self.candidates]

    @property
    def candidate_ids(self) -> list[str]:
        """The id of every candidate; its position where it has none."""
        return [candidate.id if candidate.id is not None else str(place) for place, candidate in enumerate(self.candidates)]

    def with_candidates(self, places: Sequence[int]) -> RankingExample:
        """The same example with only these candidates (and their grades), in this order."""
        relevance = None if self.relevance is None else tuple(self.relevance[place] for place in places)
        return replace(self, candidates=tuple(self.candidates[place] for place in places), relevance=relevance)


@dataclass(frozen=True, slots=True)
class Presentation:
    """How an example was laid before a scorer.

    order:    `order[j]` is the candidate at place j; None is canonical order.
    windows:  how places are cut into prompts, as `data.presenting` writes it (`contiguous:8`); None leaves it to the scorer.
    markers:  name of the scheme that names the slots (`numeric`, `letters`, ...); None leaves it to the scorer.
    skeleton: name of the answer skeleton's wording, and `dummy` the grade that stands in it; None leaves them to the scorer.
    seed:     of the streams that drew the order and random markers.
    """

    order: tuple[int, ...] | None = None
    windows: str | None = None
    markers: str | None = None
    skeleton: str | None = None
    dummy: str | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class ScoredList:
    """The scores one scorer gave to one example under one presentation, always in canonical order."""

    example_id: str
    scorer: str
    scores: tuple[float, ...]
    scale: Scale = "logit"
    presentation: Presentation = Presentation()
    truncated: tuple[int, ...] = ()  # candidates whose document or query was cut to fit
    empty: tuple[int, ...] = ()  # candidates without text, which hold the scorer's floor

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise InputError(f"is {self.scale!r}; must be one of {', '.join(SCALES)}", field="scale")
        scores = tuple(float(score) for score in self.scores)
        for place, score in enumerate(scores):
            if not math.isfinite(score):
                raise NonFiniteScoreError(f"is {score} (example {self.example_id!r}, scorer {self.scorer!r})", field=f"scores[{place}]")
        object.__setattr__(self, "scores", scores)


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """One line of a ranking: the candidate's place in canonical order, its id (its place, where it has none) and its score."""

    index: int
    id: str
    score: float


def _check_text(value: object, name: str) -> None:
    if not isinstance(value, str):
        raise InputError(f"must be text, not {type(value).__name__}", field=name)


def _candidates(values: Iterable[Candidate | str]) -> tuple[Candidate, ...]:
    if isinstance(values, (str, bytes)):
        raise InputError("must be a list of candidates, not one text", field="candidates")
    out = []
    for place, value in enumerate(values):
        if isinstance(value, str):
            value = Candidate(value)
        if not isinstance(value, Candidate):
            raise InputError(f"must be a Candidate or text, not {type(value).__name__}", field=f"candidates[{place}]")
        out.append(value)
    if not out:
        raise InputError("is empty; an example needs at least one candidate", field="candidates")
    seen: dict[str, int] = {}
    for place, candidate in enumerate(out):
        if candidate.id is not None and seen.setdefault(candidate.id, place) != place:
            raise InputError(f"repeats id {candidate.id!r} of candidates[{seen[candidate.id]}]", field=f"candidates[{place}].id")
    return tuple(out)


def _relevance(values: Iterable[float] | None, size: int) -> tuple[float, ...] | None:
    if values is None:
        return None
    grades = []
    for place, value in enumerate(values):
        if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
            raise InputError(f"must be a number, not {value!r}", field=f"relevance[{place}]")
        grade = float(value)
        if not math.isfinite(grade):
            raise InputError(f"is {grade}; give a finite grade, or a negative one for unjudged", field=f"relevance[{place}]")
        grades.append(grade)
    if len(grades) != size:
        raise InputError(f"has {len(grades)} grades for {size} candidates", field="relevance")
    return tuple(grades)

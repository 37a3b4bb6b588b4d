"""What scorers share whose scores are made outside of steadyrank: the list goes out in the order of its presentation, scores come home.

Every presentation is asked on its own, also where two are equal: whether the answer depends on the order is what an audit wants to know.
A list without a usable answer is a failure. It is counted and never becomes scores: it ends the job, or, with `on_failure="skip"`,
its ScoredList is left out and a `Failure` stands in `scorer.failures`. A job in which every list fails always ends so.

Of a presentation such a scorer sees the order only; windows, markers and skeletons are inside of what it cannot see into.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steadyrank.errors import ConfigError, InputError, RunError
from steadyrank.records import SCALES, Presentation, RankingExample, Scale, ScoredList
from steadyrank.scoring.base import EMPTY_FLOOR, PairScore, Scorer
from steadyrank.scoring.text import clean, is_empty

ON_FAILURE = ("raise", "skip")
TEMPLATE = "{instruction}\n{query}"


@dataclass(frozen=True, slots=True)
class Failure:
    """A list that got no scores: which, under which of its presentations (from 0), and why."""

    example_id: str
    presentation_index: int
    reason: str

    def __str__(self) -> str:
        return (
            self.reason
            if self.example_id in self.reason
            else f"example {self.example_id!r}, presentation {self.presentation_index}: {self.reason}"
        )


@dataclass(frozen=True, slots=True)
class Ask:
    """One list under one presentation. places: the candidates that have text, in the order laid."""

    example: RankingExample
    presentation_index: int
    places: tuple[int, ...]

    @property
    def name(self) -> str:
        """How errors name it."""
        return f"example {self.example.id!r}, presentation {self.presentation_index}"

    @property
    def documents(self) -> list[str]:
        """The texts that are sent, in the order laid."""
        documents = self.example.documents
        return [clean(documents[place]) for place in self.places]


class OutsideScorer(Scorer):
    """Base of `api` and `callable`: they implement `_answer`.

    scale:                what the scores are; "grade" promises nothing but that more is better. "probability" is checked.
    instruction_template: how an instruction is joined to the query.
    floor:                of a document without text, which is not sent: -1000, or -1 for probabilities, unless given. None sends it too.
    failures:             the lists left out so far.
    """

    reads_lists = True

    def __init__(
        self,
        *,
        name: str,
        scale: Scale = "grade",
        instruction_template: str = TEMPLATE,
        on_failure: str = "raise",
        floor: float | str | None = "below",
    ):
        if scale not in SCALES:
            raise ConfigError(f"scale is {scale!r}; must be one of {', '.join(SCALES)}")
        if on_failure not in ON_FAILURE:
            raise ConfigError(f"on_failure is {on_failure!r}; must be one of {', '.join(ON_FAILURE)}")
        if "{query}" not in instruction_template or "{instruction}" not in instruction_template:
            raise ConfigError(f"instruction_template is {instruction_template!r}; it must hold {{instruction}} and {{query}}")
        self.name, self.scale, self.instruction_template, self.on_failure = name, scale, instruction_template, on_failure
        below = -1.0 if scale == "probability" else EMPTY_FLOOR
        self.floor = below if floor == "below" else None if floor is None else float(floor)
        self.failures: list[Failure] = []

    def query_of(self, example: RankingExample) -> str:
        """The query, with the instruction where there is one. Braces in either stay as they are."""
        if not example.instruction:
            return clean(example.query)
        parts = self.instruction_template.split("{instruction}")
        filled = [part.replace("{query}", example.query) for part in parts]
        return clean(example.instruction.join(filled))

    def score_presentations(
        self, examples: Sequence[RankingExample], laid: Sequence[Sequence[Presentation]], *, progress: bool = False
    ) -> list[list[ScoredList]]:
        """One ScoredList a presentation, in the order given, less those that failed (`on_failure="skip"`), which are in `failures`."""
        asks = [
            self._ask(example, index, presentation)
            for example, presentations in zip(examples, laid, strict=True)
            for index, presentation in enumerate(presentations)
        ]
        found = self._answer(asks, skip=self.on_failure == "skip", progress=progress)
        failed = [answer for answer in found if isinstance(answer, RunError)]
        if failed and len(failed) == len(found):
            raise failed[0]  # nothing worked: no result to count failures in
        answers = iter(found)
        rows = []
        for example, presentations in zip(examples, laid, strict=True):
            row = []
            for index, presentation in enumerate(presentations):
                answer = next(answers)
                if isinstance(answer, RunError):
                    self.failures.append(Failure(example.id, index, str(answer)))
                else:
                    row.append(self._scored_list(example, answer, presentation))
            rows.append(row)
        return rows

    def _score_lists(self, examples: Sequence[RankingExample], *, progress: bool = False, named: bool = True) -> list[list[PairScore]]:
        asks = [self._ask(example, 0, Presentation()) for example in examples]
        return self._answer(asks, skip=False, progress=progress)  # type: ignore[return-value]  # without `skip` a failure raises

    def _ask(self, example: RankingExample, index: int, presentation: Presentation) -> Ask:
        documents = example.documents
        order = range(len(documents)) if presentation.order is None else presentation.order
        if sorted(order) != list(range(len(documents))):
            raise InputError(f"is no order of the {len(documents)} candidates of example {example.id!r}", field="presentation.order")
        return Ask(example, index, tuple(place for place in order if self.floor is None or not is_empty(documents[place])))

    def _answer(self, asks: Sequence[Ask], *, skip: bool, progress: bool) -> list[list[PairScore] | RunError]:
        """For each ask the scores of all candidates, canonical order (`_home`); with `skip`, the error in their place."""
        raise NotImplementedError

    def _home(self, ask: Ask, scores: Sequence[float]) -> list[PairScore]:
        """Scores in the order laid, put back in canonical order; documents that were not sent get the floor."""
        row = [PairScore(self.floor if self.floor is not None else math.nan, empty=True)] * len(ask.example.candidates)
        for place, score in zip(ask.places, scores, strict=True):
            row[place] = PairScore(score)
        return row


def usable(value: Any, scale: Scale) -> float | str:
    """The number that `value` is, or what is wrong with it."""
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        return f"is {_brief(value)}, not a number"
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return f"is {_brief(value)}, not a number"
    if not math.isfinite(number):
        return f"is {number}, which is never ranked"
    if scale == "probability" and not 0.0 <= number <= 1.0:
        return f"is {number:g}, not a probability; set scale to logit or grade"
    return number


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

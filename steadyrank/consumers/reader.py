"""The reader consumer: an answerer reads the top k passages of each presentation; does its answer hold still, and is it right?

The answerer is pluggable (`answer(question, passages) -> str`); `ExtractiveReader` is the embedded one. An answerer must be
deterministic, or its own noise counts as flips; equal contexts are asked once, so such noise is not even seen. Where it cannot answer it
returns None: such a presentation is left out of flips, EM and F1, and counted. Source of the protocol: Frohmann et al. 2026, answer and
verdict readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from steadyrank.consumers.answers import INVALID, exact_match, normal_form, parse_verdict, word_f1
from steadyrank.consumers.flips import flip_rate
from steadyrank.consumers.ordering import all_tied, check_lengths, orders_of, rankings
from steadyrank.consumers.results import ConsumerResult
from steadyrank.consumers.sets import scores_array
from steadyrank.errors import ConfigError, InputError, unknown_name
from steadyrank.records import RankingExample

FORMS = ("answer", "verdict")
_MEASURES = ("answer_flip", "answer_flip_modal", "context_flip", "em", "f1", "order_decides", "has_gold", "gold_slot")


class Answerer(Protocol):
    """What reads: one short answer to a question from passages, best first; None where it cannot answer."""

    def answer(self, question: str, passages: Sequence[str]) -> str | None: ...


@runtime_checkable
class ManyAnswerer(Protocol):
    """An answerer that takes many contexts at once is given all distinct ones together."""

    def answer_many(self, questions: Sequence[str], contexts: Sequence[Sequence[str]]) -> list[str | None]: ...


@dataclass(frozen=True)
class ReaderConsumer:
    """Reads the top k. form: "answer" compares normal forms, "verdict" SUPPORTED/REFUTED/NEI with anything else as a class `invalid`.

    relevant: the lowest grade of a gold passage. ties: see `consumers.ordering`.
    """

    answerer: Answerer
    k: int = 5
    form: str = "answer"
    relevant: float = 1.0
    ties: str = "steady"

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ConfigError(f"k is {self.k}; a reader needs at least one passage")
        if self.form not in FORMS:
            raise unknown_name("reader form", self.form, FORMS)

    def apply(self, scores: Sequence[Any], examples: Sequence[RankingExample], *, orders: Sequence[Any] | None = None) -> ConsumerResult:
        """One value an example; scores[n] is [P, K] canonical, orders[n] the orders it was laid in.

        answer_flip:   chance that two presentations lead to another answer (verdict); answer_flip_modal the other estimator.
        context_flip:  chance that two presentations put another sequence of passages before the reader.
        em, f1:        against `example.answers`, means over presentations; for verdicts em is accuracy (invalid is wrong) and f1 nan.
        order_decides: 1 where some presentations are answered rightly (em) and others not, else 0.
        has_gold:      share of presentations with a relevant passage in the context; gold_slot: mean slot (from 0) of the first where
        there is. nan: flips with fewer than two answered presentations; em, f1, order_decides without accepted answers; gold without
        grades.
        """
        check_lengths(scores, examples=examples, orders=orders)
        counts = dict.fromkeys(("examples", "presentations", "calls", "failed", "empty_answers", "invalid", "all_tied", "no_answers"), 0)
        rows_of = enumerate(zip(scores, examples, strict=True))
        contexts = [self._contexts(one, example, orders_of(orders, place), counts) for place, (one, example) in rows_of]
        found = self._asked(examples, contexts, counts)
        rows, decisions = [], []
        for place, example in enumerate(examples):
            answers = [found[place, context] for context in contexts[place]]
            rows.append({**self._answered(answers, example, counts), **self._gold(contexts[place], example)})
            decisions.append(tuple(answers))
        counts["examples"] = len(rows)
        name = getattr(self.answerer, "name", type(self.answerer).__name__)
        return ConsumerResult(
            {"name": "reader", "answerer": name, "k": self.k, "form": self.form, "ties": self.ties, "relevant": self.relevant},
            tuple(example.id for example in examples),
            {measure: np.array([row[measure] for row in rows], dtype=np.float64) for measure in _MEASURES},
            counts,
            tuple(decisions),
        )

    def _contexts(self, one: Any, example: RankingExample, laid: Any | None, counts: dict[str, int]) -> list[tuple[int, ...]]:
        scores_PK = scores_array(one)
        if scores_PK.shape[1] != len(example.candidates):
            raise InputError(f"hold {scores_PK.shape[1]} scores for the candidates of example {example.id!r}", field="scores")
        counts["presentations"] += len(scores_PK)
        counts["all_tied"] += int(all_tied(scores_PK).sum())
        ranked_PK = rankings(scores_PK, laid, ties=self.ties, ids=example.candidate_ids)
        return [tuple(int(i) for i in row[: self.k]) for row in ranked_PK]

    def _asked(
        self, examples: Sequence[RankingExample], contexts: Sequence[Sequence[tuple[int, ...]]], counts: dict[str, int]
    ) -> dict[tuple[int, tuple[int, ...]], str | None]:
        """The answer to every distinct context of every example."""
        asked = list(dict.fromkeys((place, context) for place, row in enumerate(contexts) for context in row))
        questions = [examples[place].query for place, _ in asked]
        passages = [[examples[place].documents[i] for i in context] for place, context in asked]
        counts["calls"] = len(asked)
        if isinstance(self.answerer, ManyAnswerer):
            answers = list(self.answerer.answer_many(questions, passages))
            if len(answers) != len(asked):
                raise InputError(f"gave {len(answers)} answers to {len(asked)} contexts", field="answerer")
        else:
            answers = [self.answerer.answer(question, context) for question, context in zip(questions, passages, strict=True)]
        return dict(zip(asked, answers, strict=True))

    def _answered(self, answers: Sequence[str | None], example: RankingExample, counts: dict[str, int]) -> dict[str, float]:
        given = [answer for answer in answers if answer is not None]
        counts["failed"] += len(answers) - len(given)
        is_verdict = self.form == "verdict"
        decided = [parse_verdict(answer) if is_verdict else normal_form(answer) for answer in given]
        counts["empty_answers"] += sum(not answer.strip() for answer in given)
        counts["invalid"] += decided.count(INVALID) if is_verdict else 0
        row = dict.fromkeys(("em", "f1", "order_decides"), float("nan"))
        row |= {"answer_flip": flip_rate(decided), "answer_flip_modal": flip_rate(decided, "modal") if len(decided) > 1 else float("nan")}
        if not example.answers:
            counts["no_answers"] += 1
        elif given:
            accepted = [parse_verdict(answer) for answer in example.answers] if is_verdict else list(example.answers)
            if is_verdict:
                right = [float(one in accepted and one != INVALID) for one in decided]
            else:
                right = [exact_match(one, accepted) for one in given]
            row["em"], row["order_decides"] = float(np.mean(right)), float(len(set(right)) > 1)
            row["f1"] = float("nan") if is_verdict else float(np.mean([word_f1(answer, accepted) for answer in given]))
        return row

    def _gold(self, contexts: Sequence[tuple[int, ...]], example: RankingExample) -> dict[str, float]:
        row = {"context_flip": flip_rate(contexts), "has_gold": float("nan"), "gold_slot": float("nan")}
        if example.relevance is not None and contexts:
            slots = [next((slot for slot, i in enumerate(context) if example.relevance[i] >= self.relevant), None) for context in contexts]
            held = [slot for slot in slots if slot is not None]
            row["has_gold"] = len(held) / len(slots)
            row["gold_slot"] = float(np.mean(held)) if held else float("nan")
        return row

"""The threshold consumer: keep every document whose score reaches a threshold; how good is what is kept, and does it hold still?

The threshold is chosen on dev scores only (`choose_threshold`): the one with the best mean set F1, or the one whose retention is nearest
to a target (matched retention, so that two scorers keep equally much). `protocol="published"` follows Frohmann et al. 2026: a grid of 41
values from the lowest to the highest score of presentation 0, F1 of presentation 0 only, pools without relevant documents counting 0; its
grid spanned test scores too, which `span` reproduces. Equal values go to the larger threshold in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steadyrank.consumers.flips import flip_rate
from steadyrank.consumers.ordering import check_lengths
from steadyrank.consumers.results import ConsumerResult
from steadyrank.consumers.sets import document_flip_rate, mask_jaccard, scores_array, set_quality
from steadyrank.errors import ConfigError, InputError, unknown_name
from steadyrank.records import RankingExample

OBJECTIVES = ("f1", "retention")
PROTOCOLS = ("quantiles", "published")
GRID = 400
PUBLISHED_GRID = 41
PUBLISHED_SPLIT_SEED = 20260610
RELEVANT = 1.0  # grades from here on are relevant


@dataclass(frozen=True, slots=True)
class ThresholdChoice:
    """A threshold with how it was found: value is the mean dev F1, or the dev retention, at it; retention and f1 of dev beside it.

    no_relevant: dev examples without a relevant document (left out of F1, or counted 0 under the published protocol).
    """

    threshold: float
    objective: str
    value: float
    retention: float
    f1: float
    protocol: str
    grid: int
    examples: int
    no_relevant: int

    def __float__(self) -> float:
        return self.threshold

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {name: None if value != value else value for name, value in asdict(self).items()}


def choose_threshold(
    scores: Sequence[Any],
    relevance: Sequence[Sequence[float] | None] | None = None,
    *,
    objective: str = "f1",
    target: float | None = None,
    protocol: str = "quantiles",
    relevant: float = RELEVANT,
    span: Sequence[Any] | None = None,
) -> ThresholdChoice:
    """The threshold of a set of dev examples.

    scores:    one [P, K] an example, canonical order. relevance: one grade a candidate, for `f1`; None for an unjudged example.
    objective: "f1" maximises mean set F1; "retention" comes nearest to `target`, the kept share of a pool, mean over examples.
    protocol:  "quantiles" tries up to 400 thresholds, each half-way between two neighbouring dev scores, over all presentations.
    span:      scores that the published grid spans; the dev scores without it.
    """
    if objective not in OBJECTIVES:
        raise unknown_name("threshold objective", objective, OBJECTIVES)
    if protocol not in PROTOCOLS:
        raise unknown_name("threshold protocol", protocol, PROTOCOLS)
    if objective == "retention" and (target is None or not 0 <= target <= 1):
        raise ConfigError(f"target is {target}; matched retention needs the kept share to match, from 0 to 1")
    if objective == "f1" and relevance is None:
        raise InputError("is missing; tuning F1 needs grades (or choose objective='retention')", field="relevance")
    check_lengths(scores, relevance=relevance)
    is_published = protocol == "published"
    arrays = [scores_array(one) for one in scores]
    arrays = [one[:1] if is_published else one for one in arrays if one.size]
    if not arrays or len(arrays) != len(scores):
        raise InputError("is empty, or holds an example without scores; choose a threshold on dev scores", field="scores")
    spanned = arrays if span is None else [scores_array(one)[:1] for one in span]
    grid_T = _grid(np.concatenate([one.ravel() for one in (spanned if is_published else arrays)]), is_published)
    retention_T = np.mean([(one.ravel()[:, None] >= grid_T).mean(0) for one in arrays], axis=0)
    judged = [None] * len(arrays) if relevance is None else list(relevance)
    rows = [_f1(one, grades, grid_T, relevant) for one, grades in zip(arrays, judged, strict=True)]
    kept = [row for row in rows if row is not None]
    none = sum(row is None for row in rows) if relevance is not None else 0
    if is_published:
        kept = [np.zeros(len(grid_T)) if row is None else row for row in rows]
    f1_T = np.mean(kept, axis=0) if kept else np.full(len(grid_T), np.nan)
    if objective == "f1" and not kept:
        raise InputError("holds no relevant document in any dev example; choose objective='retention'", field="relevance")
    goal_T = f1_T if objective == "f1" else -np.abs(retention_T - float(target or 0))
    best = int(np.flatnonzero(goal_T >= goal_T.max() - 1e-12)[-1])
    value = float(f1_T[best] if objective == "f1" else retention_T[best])
    return ThresholdChoice(
        float(grid_T[best]), objective, value, float(retention_T[best]), float(f1_T[best]), protocol, len(grid_T), len(arrays), none
    )


def published_split(query_ids: Sequence[str], *, seed: int = PUBLISHED_SPLIT_SEED) -> tuple[list[str], list[str]]:
    """(dev, test): the published halves, the sorted ids shuffled by numpy's default generator; steadyrank's own splits hash ids instead."""
    ids = np.array(sorted(query_ids), dtype=object)
    np.random.default_rng(seed).shuffle(ids)
    return list(ids[: len(ids) // 2]), list(ids[len(ids) // 2 :])


@dataclass(frozen=True)
class ThresholdConsumer:
    """Keeps what scores at or above a threshold. threshold: a number or a `ThresholdChoice`; relevant: the lowest relevant grade."""

    threshold: float | ThresholdChoice
    relevant: float = RELEVANT

    def apply(self, scores: Sequence[Any], examples: Sequence[RankingExample]) -> ConsumerResult:
        """One value an example:

        jaccard:         mean pairwise Jaccard of the kept sets; nan where every set is empty (counted as `all_empty`) or P is 1.
        jaccard_counted: the published form, two empty sets count 1; jaccard_pairs: pairs of two empty sets left out.
        set_flip:        chance that two presentations keep different sets; document_flip: share of ever-kept documents not always kept.
        retention:       kept share of the pool, empty: share of presentations that keep nothing, means over presentations.
        precision, recall, f1: means over presentations, of the pool's own relevant documents; nan without grades, recall and f1 also
        without
            a relevant document (counted as `no_relevant`); an empty set has precision 0.
        """
        check_lengths(scores, examples=examples)
        rows, decisions = [], []
        counts = dict.fromkeys(("examples", "all_empty", "some_empty", "empty_pairs", "no_relevant", "unjudged"), 0)
        for one, example in zip(scores, examples, strict=True):
            scores_PK = scores_array(one)
            if scores_PK.shape[1] != len(example.candidates):
                raise InputError(
                    f"hold {scores_PK.shape[1]} candidates of example {example.id!r}, which has {len(example.candidates)}", field="scores"
                )
            mask_PK = scores_PK >= float(self.threshold)
            row, some = self._row(mask_PK, example, counts)
            rows.append(row)
            counts["some_empty"] += some
            decisions.append(tuple(tuple(int(i) for i in np.flatnonzero(mask_K)) for mask_K in mask_PK))
        counts["examples"] = len(rows)
        choice = self.threshold.to_json() if isinstance(self.threshold, ThresholdChoice) else {"threshold": float(self.threshold)}
        names = rows[0] if rows else {}
        return ConsumerResult(
            {"name": "threshold", "relevant": self.relevant, **choice},
            tuple(example.id for example in examples),
            {name: np.array([row[name] for row in rows]) for name in names},
            counts,
            tuple(decisions),
        )

    def _row(self, mask_PK: np.ndarray, example: RankingExample, counts: dict[str, int]) -> tuple[dict[str, float], bool]:
        counted, empty_pairs = mask_jaccard(mask_PK, empty="count")
        is_empty_P: np.ndarray = mask_PK.sum(1) == 0
        counts["all_empty"] += bool(is_empty_P.all())
        counts["empty_pairs"] += empty_pairs
        row = {
            "jaccard": mask_jaccard(mask_PK, empty="skip")[0],
            "jaccard_counted": counted,
            "jaccard_pairs": mask_jaccard(mask_PK, empty="skip_pairs")[0],
            "set_flip": flip_rate(mask_K.tobytes() for mask_K in mask_PK),
            "document_flip": document_flip_rate(mask_PK),
            "retention": float(mask_PK.mean()) if mask_PK.size else float("nan"),
            "empty": float(is_empty_P.mean()) if is_empty_P.size else float("nan"),
            "precision": float("nan"),
            "recall": float("nan"),
            "f1": float("nan"),
        }
        if example.relevance is None:
            counts["unjudged"] += 1
        else:
            is_relevant_K = np.array(example.relevance) >= self.relevant
            precision, recall, f1 = (float(value) for value in set_quality(mask_PK, is_relevant_K).mean(0))
            row["precision"] = precision
            if is_relevant_K.any():
                row["recall"], row["f1"] = recall, f1
            else:
                counts["no_relevant"] += 1
        return row, bool(is_empty_P.any() and not is_empty_P.all())


def _grid(values_N: np.ndarray, is_published: bool) -> np.ndarray:
    """Thresholds to try, rising."""
    if is_published:
        return np.linspace(values_N.min(), values_N.max(), PUBLISHED_GRID)
    distinct_N = np.unique(values_N)
    if len(distinct_N) == 1:
        return distinct_N
    middles_N = (distinct_N[:-1] + distinct_N[1:]) / 2
    middles_N = np.where(middles_N > distinct_N[:-1], middles_N, distinct_N[1:])  # neighbours one rounding apart
    grid_N = np.concatenate([distinct_N[:1], middles_N])  # the first keeps all
    if len(grid_N) <= GRID:
        return grid_N
    marks = np.quantile(values_N, np.linspace(0, 1, GRID))
    return np.unique(grid_N[np.minimum(np.searchsorted(grid_N, marks), len(grid_N) - 1)])


def _f1(scores_PK: np.ndarray, grades: Sequence[float] | None, grid_T: np.ndarray, relevant: float) -> np.ndarray | None:
    """Mean set F1 over presentations at each threshold; None without a relevant document."""
    is_relevant_K = np.greater_equal(np.asarray([] if grades is None else grades, dtype=np.float64), relevant)
    if not is_relevant_K.any():
        return None
    kept_PKT = scores_PK[:, :, None] >= grid_T
    found_PT = (kept_PKT & is_relevant_K[None, :, None]).sum(1)
    return (2 * found_PT / (kept_PKT.sum(1) + is_relevant_K.sum())).mean(0)

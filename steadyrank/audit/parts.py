"""Quality, steadiness and where unsteadiness comes from, of lists that were scored under several presentations.

Quality is read off the same presentations as steadiness (mean over them, and the worst and the best of each list), with first-stage order
beside it. Equal scores get the expectation over their orders, so a constant scorer has exactly the quality of a random order. The reference
rows stand under the same presentations: `constant` breaks its ties by the order shown, which is what serving it would do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steadyrank.audit.intervals import plain, summaries
from steadyrank.audit.lists import Shown, width_of
from steadyrank.audit.settings import AuditSettings
from steadyrank.consumers.ordering import rankings
from steadyrank.errors import ConfigError
from steadyrank.evaluation import closed_forms
from steadyrank.evaluation.measures import Measure
from steadyrank.evaluation.ties import blocks
from steadyrank.stability.arrays import centred
from steadyrank.stability.decomposition import CAVEAT, decompose, pool, slot_profile
from steadyrank.stability.psi import psi_table
from steadyrank.stability.spread import rank_variance, top_k_turnover

NOISE = 1e-6  # of the range of a list's scores: below it a difference is arithmetic, not a decision


def quality(shown: Sequence[Shown], settings: AuditSettings) -> dict[str, Any] | None:
    """Measures of the scorer and of the reference rows; None without grades."""
    graded = [item for item in shown if item.has_grades]
    if not graded:
        return None
    examples = [item.example for item in graded]
    out: dict[str, Any] = {"measures": {}, "references": {}, "above_chance": {}, "lists": len(graded)}
    for name in settings.measures:
        measure = Measure.parse(name)
        values = [np.array([_value(measure, row, item) for row in item.scores_PK]) for item in graded]
        chance = [_value(measure, np.zeros(len(item.grades)), item) for item in graded]
        first = [np.nan if item.first_K is None else _value(measure, item.first_K, item) for item in graded]
        own = {
            "mean": [row.mean() for row in values],
            "worst": [row.min() for row in values],
            "best": [row.max() for row in values],
            "first_stage_order": first,
            "lost_by_shuffling": [one - row.mean() for one, row in zip(first, values, strict=True)],
        }
        references = {
            "random": chance,
            "constant": [_shown_order(measure, item) for item in graded],
            "first_stage": [_value(measure, -np.arange(len(item.grades)), item) for item in graded],
            "oracle": [_value(measure, np.maximum(item.grades, 0), item) for item in graded],
        }
        above = {"above": [row.mean() - by_chance for row, by_chance in zip(values, chance, strict=True)]}
        rows = summaries({**own, **references, **above}, examples, resamples=settings.resamples, seed=settings.seed)
        out["measures"][name] = {key: rows[key] for key in own}
        out["references"][name] = {key: rows[key] for key in references}
        out["above_chance"][name] = rows["above"]
    return out


def _value(measure: Measure, scores_K: np.ndarray, item: Shown) -> float:
    return closed_forms.value(measure, blocks(np.asarray(scores_K).tolist()), item.grades)


def _shown_order(measure: Measure, item: Shown) -> float:
    """The mean over presentations of the order in which the candidates were shown."""
    if item.orders_PK is None:
        return _value(measure, np.zeros(len(item.grades)), item)
    return float(np.mean([closed_forms.value(measure, [[place] for place in order], item.grades) for order in item.orders_PK.tolist()]))


def steadiness(shown: Sequence[Shown], settings: AuditSettings) -> dict[str, Any]:
    """Measures of how far scores and rankings move, each 0 where they do not."""
    table = psi_table([item.scores_PK for item in shown])
    columns: dict[str, Any] = {
        "tau_psi": table.psi_N,
        "score_sd": [_spread(item.scores_PK) for item in shown],
        "relative_sd": [_relative(item.scores_PK) for item in shown],
        "rank_variance": [rank_variance(item.scores_PK) for item in shown],
        "top_k_turnover": [_turnover(item, settings.top_k) for item in shown],
        "moved_lists": [float(not is_still(item.scores_PK)) for item in shown],
        "tie_rate": table.tie_rate_N,
    }
    rows = summaries(columns, [item.example for item in shown], resamples=settings.resamples, seed=settings.seed)
    spreads = [float(np.ptp(item.scores_PK, axis=0).max()) for item in shown]
    return {
        **rows,
        "largest_spread": max(spreads, default=0.0),
        "undefined_pairs": int(table.undefined_N.sum()),
        "pairs": int(table.pairs_N.sum()),
        "top_k": settings.top_k,
    }


def is_still(scores_PK: np.ndarray) -> bool:
    """Whether no score moves by more than arithmetic noise."""
    spread = float(np.ptp(scores_PK, axis=0).max())
    return spread == 0 or spread <= NOISE * max(float(np.ptp(scores_PK)), np.finfo(float).tiny)


def _relative(scores_PK: np.ndarray) -> float:
    """SD over presentations by the SD of the candidates' mean scores; nan where nothing tells candidates apart."""
    between = float(scores_PK.mean(0).std())
    return _spread(scores_PK) / between if between > 0 else float("nan")


def _spread(scores_PK: np.ndarray) -> float:
    """SD over presentations, mean over candidates; exactly 0 where all presentations agree."""
    return float(np.sqrt((centred(scores_PK) ** 2).mean(0)).mean())


def _turnover(item: Shown, k: int) -> float:
    """Share of pairs of presentations whose top-k sets differ, under the tie rule of the consumers; nan where k covers the pool."""
    if item.scores_PK.shape[1] <= k:
        return float("nan")
    return top_k_turnover(-np.argsort(rankings(item.scores_PK, item.orders_PK), axis=1), k)


def causes(shown: Sequence[Shown], windows: str | None) -> tuple[dict[str, Any] | None, str]:
    """(shares of the variance between presentations, or None; why not)."""
    usable = [item for item in shown if item.orders_PK is not None and item.scores_PK.shape[1] > 1]
    if not usable:
        return None, "the scored lists do not say in which order they were shown"
    if all(is_still(item.scores_PK) for item in usable):
        return None, "no score moves, so there is nothing to take apart"
    rules = {width_of(item, windows) if item.windows or windows else None for item in usable}
    if any(rule is not None and (rule[1] or "").startswith("sliding") for rule in rules):
        return None, "under sliding windows a candidate stands in several slots"
    laid = [width_of(item, windows) for item in usable]
    pooled = pool(
        [decompose(item.scores_PK, item.orders_PK, width, windows=text) for item, (width, text) in zip(usable, laid, strict=True)]
    )
    rule = rules.pop() if len(rules) == 1 else None
    width = rule[0] if rule else max(len(item.example.candidates) for item in usable)
    profile = slot_profile(
        [item.scores_PK for item in usable], [item.orders_PK for item in usable], width, windows=rule[1] if rule else None
    )
    return {
        "shares": _plain_shares(pooled.adjusted_of_presentation),
        "raw_shares": _plain_shares(pooled.of_presentation),
        "of_all_variance": {key: plain(getattr(pooled.adjusted, key)) for key in ("candidate", "slot", "window", "remainder")},
        "presentation_variance": plain(pooled.presentation_variance),
        "slot_effects": [plain(value) for value in profile.effects_S],
        "slot_rms": plain(profile.rms),
        "width": width,
        "lists": len(usable),
        "caveat": CAVEAT,
    }, ""


def _plain_shares(shares: Any) -> Mapping[str, Any]:
    return {key: plain(getattr(shares, key)) for key in ("slot", "window", "remainder")}


def check_lists(shown: Sequence[Shown]) -> None:
    """At least one list has two candidates to compare."""
    if not any(len(item.example.candidates) > 1 for item in shown):
        raise ConfigError("no list has two candidates under two presentations; an audit compares presentations of whole lists")

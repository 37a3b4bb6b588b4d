"""Two raters on the same lists: counts, confusion, what guessing would get, and every statistic with its interval, also by dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steadyrank.judging.agreement import kappa as kappas
from steadyrank.judging.agreement.intervals import RESAMPLES, Cell, Part, cells
from steadyrank.judging.agreement.pooled import PooledSpearman
from steadyrank.judging.agreement.ratings import Lists, Rater
from steadyrank.judging.agreement.sums import NEED_SCALES, STATISTICS, Sums, pair_sums


@dataclass(frozen=True, slots=True)
class AgreementSettings:
    """How raters are compared.

    tops, relevant: by rater, the highest grade and the grade from which a document is relevant.
    ranks:          raters that only order documents, such as the scores of a scorer: no statistic of theirs needs a scale.
    """

    tops: Mapping[str, int] = field(default_factory=dict)
    relevant: Mapping[str, float] = field(default_factory=dict)
    ranks: Collection[str] = ()
    resamples: int = RESAMPLES
    seed: int = 0


def compare_raters(a: Rater, b: Rater, lists: Lists, *, kind: str, settings: AgreementSettings) -> dict[str, Any]:
    """One comparison: counts, confusion matrices, what guessing would get, and a cell of every statistic, overall and by dataset."""
    is_reference = kind == "reference"
    sums = pair_sums(a, b, lists, is_reference=is_reference)
    parts = _parts(a, b, sums, lists)
    table, macro = cells(parts, lists.unit_Q, resamples=settings.resamples, seed=settings.seed)
    whole = sums.total()
    for key, found in table.items():
        _explain(found, parts[key].sums, a, b)
    by_source = {key: found for key, found in table.items() if key != "all"}
    is_graded = a.scale is not None and b.scale is not None
    return {
        "a": a.name,
        "b": b.name,
        "kind": kind,
        "graded": is_graded,
        "levels": list(range(sums.num_levels)) if is_graded else [],
        "documents": int(whole["both"][0]),
        "b_constant": _is_constant(b.grades_D[~np.isnan(a.grades_D)]),
        "lists": {name: int(whole[name][0]) for name in ("ordered", "blind", "unordered", "short")},
        "lists_by_source": dict(sorted(Counter(lists.sources_Q).items())),
        "confusion": whole.confusion_XLL[0].astype(int).tolist() if is_graded else [],
        "binary": whole.binary_X22[0].astype(int).tolist() if is_graded else [],
        "references": _references(whole),
        "references_by_source": {key: _references(parts[key].sums.total()) for key in by_source},
        "overall": table["all"],
        "macro": macro,
        "by_source": by_source,
    }


def _parts(a: Rater, b: Rater, sums: Sums, lists: Lists) -> dict[str, Part]:
    """All lists, then each dataset by name."""
    both_D = ~np.isnan(a.grades_D) & ~np.isnan(b.grades_D)
    source_Q = np.array(lists.sources_Q)
    parts = {}
    for key in ("all", *sorted(set(lists.sources_Q))):
        rows = np.arange(len(source_Q)) if key == "all" else np.flatnonzero(source_Q == key)
        place_Q = np.full(len(source_Q), -1)
        place_Q[rows] = np.arange(len(rows))
        mine_D = both_D & (place_Q[lists.list_D] >= 0)
        pooled = PooledSpearman(a.grades_D[mine_D], b.grades_D[mine_D], place_Q[lists.list_D[mine_D]], len(rows))
        parts[key] = Part(rows, len(np.unique(lists.unit_Q[rows])), sums.of(rows), pooled)
    return parts


def _explain(found: Mapping[str, Cell], sums: Sums, a: Rater, b: Rater) -> None:
    """Why a statistic is undefined."""
    total = sums.total()
    ranks = [rater.name for rater in (a, b) if rater.scale is None]
    for name, cell in found.items():
        if cell["value"] is not None:
            continue
        confusion_LL = (total.binary_X22 if name == "kappa_binary" else total.confusion_XLL)[0]
        if not total["both"][0]:
            cell["why"] = "no document with both grades"
        elif ranks and (STATISTICS[name][0] if name in STATISTICS else "both") in NEED_SCALES:
            cell["why"] = f"{' and '.join(ranks)} {'give' if len(ranks) > 1 else 'gives'} ranks only, no grades"
        elif name.startswith("kappa"):
            who = [who for who, axis in ((a.name, -1), (b.name, -2)) if kappas.is_constant(confusion_LL, axis=axis)]
            cell["why"] = f"{' and '.join(who)} {'give' if len(who) > 1 else 'gives'} one level only"
        elif name.startswith(("spearman", "tau", "pairs")):
            cell["why"] = "no list with an order in both" if name in ("spearman_query", "tau_query") else "no order to compare"
        else:
            cell["why"] = "no document of the kind it is a share of"


def _is_constant(grades_D: np.ndarray) -> bool:
    live_D = grades_D[~np.isnan(grades_D)]
    return bool(len(live_D) and live_D.min() == live_D.max())


def _references(whole: Sums) -> dict[str, Any]:
    """What a judge without eyes would get: one that draws b's grades by lot, and the best that always says the same."""
    confusion_LL, binary_22 = whole.confusion_XLL[0], whole.binary_X22[0]
    is_graded = bool(confusion_LL.any())
    level, accuracy = kappas.constant_accuracy(confusion_LL)
    random = {
        "accuracy": _plain(kappas.guessing_accuracy(confusion_LL)),
        "accuracy_binary": _plain(kappas.guessing_accuracy(binary_22)),
        **dict.fromkeys(("kappa", "kappa_linear", "kappa_quadratic", "kappa_binary"), 0.0 if is_graded else None),
        **dict.fromkeys(("spearman", "spearman_query", "tau_query"), 0.0),
        "pairs": 0.5,
        "pairs_binary": 0.5 if is_graded else None,
    }
    constant = dict.fromkeys(random) | {
        "level": level if is_graded else None,
        "accuracy": _plain(accuracy),
        "accuracy_binary": _plain(kappas.constant_accuracy(binary_22)[1]),
        "pairs": 0.5,
        "pairs_binary": 0.5 if is_graded else None,
    }
    return {"random": random, "constant": constant}


def _plain(number: float) -> float | None:
    return None if np.isnan(number) else number

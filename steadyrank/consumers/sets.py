"""Retained sets: what a threshold keeps of a pool, and how alike the kept sets are over presentations. Pure numpy.

S(p) = {k: score[p, k] >= threshold}; a score at the threshold is kept. Jaccard of two sets is |both| / |either|; two empty sets have
none, and what they count as must be said:
    count       1, the published form, which lets a threshold that nothing passes look steady
    skip        an example whose sets are all empty is nan; in others a pair of empty sets counts 1, since both decided alike
    skip_pairs  such pairs are left out; an example without any other pair is nan
Results count the pairs of empty sets either way.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np

from steadyrank.errors import InputError, NonFiniteScoreError, unknown_name

EMPTY = ("count", "skip", "skip_pairs")


def scores_array(scores_PK: Any) -> np.ndarray:
    """float64 scores [P, K], finite."""
    array_PK = np.asarray(scores_PK, dtype=np.float64)
    if array_PK.ndim != 2:
        raise InputError(f"has shape {array_PK.shape}; give one row of scores a presentation, [P, K]", field="scores_PK")
    if not np.isfinite(array_PK).all():
        raise NonFiniteScoreError("holds a NaN or infinite score; such a score is never thresholded", field="scores_PK")
    return array_PK


def retained_set(scores_PK: Any, threshold: float) -> np.ndarray:
    """mask_PK of what each presentation keeps: score >= threshold."""
    if np.isnan(threshold):
        raise InputError("is NaN; choose one with choose_threshold on dev scores", field="threshold")
    return scores_array(scores_PK) >= threshold


def jaccard(scores_PK: Any, threshold: float, *, empty: str = "count") -> float:
    """Mean pairwise Jaccard of the kept sets of one example, in [0, 1]; nan for one presentation, or see `empty` above."""
    return mask_jaccard(retained_set(scores_PK, threshold), empty=empty)[0]


def mask_jaccard(mask_PK: np.ndarray, *, empty: str = "count") -> tuple[float, int]:
    """(mean pairwise Jaccard, pairs of two empty sets) of kept sets given as a mask."""
    if empty not in EMPTY:
        raise unknown_name("rule for empty sets", empty, EMPTY)
    values, is_empty = _pairwise(mask_PK)
    empties = int(is_empty.sum())
    if empty == "skip_pairs" or (empty == "skip" and not mask_PK.any()):
        values = values[~is_empty]
    return (float(values.mean()) if len(values) else float("nan")), empties


def jaccard_of_sets(sets: Sequence[Collection[Hashable]], *, empty: str = "count") -> float:
    """As `jaccard`, of kept sets given by their members' ids; a repeated id counts once."""
    names = {name: place for place, name in enumerate(dict.fromkeys(name for one in sets for name in one))}
    mask_PK = np.zeros((len(sets), len(names)), dtype=bool)
    for row, one in enumerate(sets):
        mask_PK[row, [names[name] for name in one]] = True
    return mask_jaccard(mask_PK, empty=empty)[0]


def document_flip_rate(mask_PK: np.ndarray) -> float:
    """Share of the documents that some presentation keeps which another does not, in [0, 1]; nan where none is ever kept.

    It grows with the number of presentations, unlike Jaccard: compare at equal P only.
    """
    ever, always = int(mask_PK.any(0).sum()), int(mask_PK.all(0).sum())
    return (ever - always) / ever if ever and len(mask_PK) else float("nan")


def set_quality(mask_PK: np.ndarray, is_relevant_K: np.ndarray) -> np.ndarray:
    """precision, recall and F1 of every presentation's kept set, [P, 3]. Relevance is that of the pool scored.

    An empty set has precision 0; a pool without a relevant document recall and F1 0, as published; the caller counts both.
    """
    kept_P, found_P = mask_PK.sum(1), (mask_PK & is_relevant_K).sum(1)
    relevant = int(is_relevant_K.sum())
    precision_P = found_P / np.maximum(kept_P, 1)
    recall_P = found_P / max(relevant, 1)
    f1_P = 2 * found_P / np.maximum(kept_P + relevant, 1)
    return np.stack([precision_P, recall_P, f1_P], axis=1)


def _pairwise(mask_PK: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(Jaccard, are both empty) of every pair of presentations; 1 where both are empty."""
    bits_PK = mask_PK.astype(np.float64)
    size_P = bits_PK.sum(1)
    first, second = np.triu_indices(len(mask_PK), 1)
    both = (bits_PK @ bits_PK.T)[first, second]
    either = size_P[first] + size_P[second] - both
    return np.divide(both, either, out=np.ones_like(both), where=either > 0), either == 0

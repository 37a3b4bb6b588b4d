"""Agreement read off confusion matrices: accuracy, Cohen's kappa, errors and their direction, what guessing would get.

`confusion_XLL[x, i, j]` counts documents to which rater a gives level i and rater b level j; leading axes are free, so one call serves
the point value and all resamples. Nan means undefined.
Kappa is 1 - observed / expected disagreement (Cohen 1960; weighted: Cohen 1968, weights |i - j| or (i - j)^2). Where one rater gives one
level only there is nothing to agree on beyond chance: the formula would say 0, or 0/0 where both do, and both are undefined here.
"""

from __future__ import annotations

import numpy as np

POWERS = {"plain": 0, "linear": 1, "quadratic": 2}


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole; nan where whole is 0."""
    return np.divide(part, whole, out=np.full(np.broadcast(part, whole).shape, np.nan), where=np.asarray(whole) > 0)


def accuracy(confusion_XLL: np.ndarray) -> np.ndarray:
    """Share of documents with the same level."""
    return ratio(np.trace(confusion_XLL, axis1=-2, axis2=-1), confusion_XLL.sum((-2, -1)))


def is_constant(confusion_XLL: np.ndarray, *, axis: int) -> np.ndarray:
    """Whether one rater gives one level only: a with axis=-1 (summed over b), b with axis=-2. Also where there is no document."""
    margin_XL = confusion_XLL.sum(axis)
    return margin_XL.max(-1) == margin_XL.sum(-1)


def kappa(confusion_XLL: np.ndarray, weights: str = "plain") -> np.ndarray:
    """Cohen's kappa, 1 for full agreement and 0 for that of independent raters with the same margins."""
    levels = np.arange(confusion_XLL.shape[-1])
    weight_LL = np.abs(levels[:, None] - levels) ** POWERS[weights] * (levels[:, None] != levels)
    rows_XL, columns_XL = confusion_XLL.sum(-1), confusion_XLL.sum(-2)
    observed_X = np.einsum("...ij,ij->...", confusion_XLL, weight_LL) * rows_XL.sum(-1)
    expected_X = ((rows_XL @ weight_LL) * columns_XL).sum(-1)
    kappa_X = 1 - ratio(observed_X, expected_X)
    undefined_X = (rows_XL.max(-1) == rows_XL.sum(-1)) | (columns_XL.max(-1) == columns_XL.sum(-1))
    return np.where(undefined_X, np.nan, kappa_X)


def errors(binary_X22: np.ndarray) -> dict[str, np.ndarray]:
    """Direction of the errors on relevance, a being the truth: shares of all documents, rates, precision and recall."""
    negatives, false_positives = binary_X22[..., 0, 0], binary_X22[..., 0, 1]
    false_negatives, positives = binary_X22[..., 1, 0], binary_X22[..., 1, 1]
    total = binary_X22.sum((-2, -1))
    return {
        "false_positives": ratio(false_positives, total),
        "false_negatives": ratio(false_negatives, total),
        "false_positive_rate": ratio(false_positives, false_positives + negatives),
        "false_negative_rate": ratio(false_negatives, false_negatives + positives),
        "precision": ratio(positives, positives + false_positives),
        "recall": ratio(positives, positives + false_negatives),
    }


def guessing_accuracy(confusion_LL: np.ndarray) -> float:
    """Expected accuracy of a judge that draws each grade by lot with b's own shares."""
    total = confusion_LL.sum()
    return float((confusion_LL.sum(1) * confusion_LL.sum(0)).sum() / total**2) if total else float("nan")


def constant_accuracy(confusion_LL: np.ndarray) -> tuple[int, float]:
    """(level, accuracy) of the best judge that always says the same; the lower of two equal levels."""
    margin_L = confusion_LL.sum(1)
    best = int(margin_L.argmax())
    return best, float(margin_L[best] / margin_L.sum()) if margin_L.sum() else float("nan")

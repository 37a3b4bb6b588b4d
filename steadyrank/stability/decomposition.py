"""Where the variance of scores comes from: candidate, slot, window, remainder. Least squares, per example, then pooled.

Model: s[p, k] = candidate[k] + slot[its slot under p] + window[its window under p] + remainder. Blocks are added in that order, and each
gets what it explains beyond those before (nested least squares, minimum norm where slots and windows are confounded).
Source: Frohmann et al. 2026, variance decomposition; shares of the variance between presentations (`of_presentation`) are the published
ones.

Caveat: the remainder bounds companion coupling from above. It also holds slot-by-candidate interactions and noise, since only additive slot
and window effects are removed; `companion_swap` measures coupling directly. In-sample shares also favour the blocks with many parameters:
noise alone gives slot its share of the degrees of freedom. `adjusted` takes that out (each block less its degrees of freedom times the
remainder's mean square); read it where pools and presentations are few, and pool before reading it, since one example may come out below 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from steadyrank.data import presenting
from steadyrank.errors import InputError
from steadyrank.stability.arrays import centred, orders_array, places_array, scores_array

CAVEAT = "the remainder bounds companion coupling from above: it also holds slot-by-candidate interactions and noise"


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares that sum to 1; `candidate` is 0 by definition in shares of the variance between presentations. nan without variance."""

    candidate: float
    slot: float
    window: float
    remainder: float


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Shares of the variance of scores about their mean, of one example or pooled over several (`pool`).

    candidate, slot, window, remainder: in [0, 1], sum to 1; nan where all scores are equal (`num_constant` counts such examples).
    slot_rms:              root mean square of the fitted slot effects, in score units (mean over slots, effects centred).
    presentation_variance: mean over candidates of the population variance over presentations; 0 for a scorer that order cannot move.
    sums, degrees:         sums of squares and degrees of freedom of (candidate, slot, window, remainder).
    """

    candidate: float
    slot: float
    window: float
    remainder: float
    slot_rms: float
    presentation_variance: float
    sums: tuple[float, float, float, float]
    degrees: tuple[int, int, int, int]
    num_examples: int = 1
    num_scores: int = 0
    num_constant: int = 0

    @property
    def of_presentation(self) -> Shares:
        """Shares of the variance between presentations, candidates' own means taken out: the published form."""
        return _shares((0.0, *self.sums[1:]))

    @property
    def adjusted(self) -> Shares:
        """Shares with every block's share of pure noise taken out and given to the remainder; may come out slightly below 0."""
        return _shares(_less_noise(self.sums, self.degrees))

    @property
    def adjusted_of_presentation(self) -> Shares:
        """As `adjusted`, of the variance between presentations."""
        return _shares((0.0, *_less_noise(self.sums, self.degrees)[1:]))

    def to_json(self) -> dict[str, Any]:
        """Plain values with the caveat; nan becomes None."""
        out: dict[str, Any] = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        for name in ("of_presentation", "adjusted", "adjusted_of_presentation"):
            shares = getattr(self, name)
            out[name] = {f.name: _plain(getattr(shares, f.name)) for f in fields(Shares)}
        return {**out, "caveat": CAVEAT}


def layout(orders_PK: np.ndarray, width: int, windows: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(slot_PK, window_PK) of each candidate, canonical order: contiguous windows of `width`, or a rule such as `round_robin:8`."""
    if width < 1:
        raise InputError(f"is {width}; a prompt holds at least one candidate", field="width")
    if windows is None:
        places_PK = places_array(orders_PK)
        return places_PK % width, places_PK // width
    rule = presenting.parse_windows(windows)
    laid = [presenting.slots_of([int(place) for place in row], rule) for row in orders_PK]
    return np.array([slot for slot, _ in laid], dtype=np.int64), np.array([window for _, window in laid], dtype=np.int64)


def decompose(scores_PK: Any, orders_PK: Any, width: int, *, windows: str | None = None) -> Decomposition:
    """The decomposition of one example.

    scores_PK: one row a presentation, canonical order. orders_PK: `orders[p, j]` is the candidate at place j.
    width:     candidates of one prompt; windows: the window rule in its text form, contiguous by default.
    """
    scores_PK = scores_array(scores_PK)
    presentations, candidates = scores_PK.shape
    if presentations < 2 or candidates < 2:
        raise InputError(f"is {presentations} x {candidates}; a decomposition needs two presentations of two candidates", field="scores_PK")
    slot_PK, window_PK = layout(orders_array(orders_PK, scores_PK.shape), width, windows)
    residual_N = centred(scores_PK).ravel()
    slots_NS, windows_NW = _dummies(slot_PK), _dummies(window_PK)
    after_slot = _explained(slots_NS, residual_N)
    after_window = _explained(np.concatenate([slots_NS, windows_NW], axis=1), residual_N)
    within = float(residual_N @ residual_N)
    by_candidate_K = (scores_PK - scores_PK[0, 0]).mean(0)
    between = presentations * float(((by_candidate_K - by_candidate_K.mean()) ** 2).sum())
    sums = (between, after_slot.squares, max(0.0, after_window.squares - after_slot.squares), max(0.0, within - after_window.squares))
    free = candidates * (presentations - 1)
    degrees = (candidates - 1, after_slot.rank, after_window.rank - after_slot.rank, free - after_window.rank)
    effects_S = after_slot.effects - after_slot.effects.mean()
    return _made(sums, degrees, float(np.sqrt((effects_S**2).mean())), within / scores_PK.size, 1, scores_PK.size)


def pool(decompositions: Sequence[Decomposition]) -> Decomposition:
    """One decomposition of several examples: shares of summed squares; slot_rms and presentation_variance are means over examples.

    Summed squares weigh an example by its size and its variance, as the published shares (from pooled means) do.
    """
    rows = list(decompositions)
    if not rows:
        raise InputError("is empty; give at least one decomposition", field="decompositions")
    sums = tuple(float(sum(row.sums[i] for row in rows)) for i in range(4))
    degrees = tuple(int(sum(row.degrees[i] for row in rows)) for i in range(4))
    made = _made(
        sums,  # type: ignore[arg-type]
        degrees,  # type: ignore[arg-type]
        float(np.mean([row.slot_rms for row in rows])),
        float(np.mean([row.presentation_variance for row in rows])),
        sum(row.num_examples for row in rows),
        sum(row.num_scores for row in rows),
    )
    return replace(made, num_constant=sum(row.num_constant for row in rows))


@dataclass(frozen=True, slots=True)
class SlotProfile:
    """Slot effects shared by many examples: effects_S centred, in score units; rms of them (the paper's slot-residual RMS); scores read."""

    effects_S: np.ndarray
    rms: float
    counts_S: np.ndarray

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"effects": [float(x) for x in self.effects_S], "rms": self.rms, "counts": [int(x) for x in self.counts_S]}


def slot_profile(scores: Sequence[Any], orders: Sequence[Any], width: int, *, windows: str | None = None) -> SlotProfile:
    """One additive effect a slot, fitted over all examples with every candidate's own mean taken out.

    Unlike the per-example slot_rms it does not grow with noise: many examples average it away. Least squares, so that no share of an
    effect is lost to the candidate means it moves.
    """
    gram_SS, moment_S, counts_S = np.zeros((width, width)), np.zeros(width), np.zeros(width, dtype=int)
    for place, (one, laid) in enumerate(zip(scores, orders, strict=True)):
        scores_PK = scores_array(one, field=f"scores[{place}]")
        slot_PK, _ = layout(orders_array(laid, scores_PK.shape, field=f"orders[{place}]"), width, windows)
        dummies_NS = _dummies(slot_PK, width)
        gram_SS += dummies_NS.T @ dummies_NS
        moment_S += dummies_NS.T @ centred(scores_PK).ravel()
        counts_S += np.bincount(slot_PK.ravel(), minlength=width)
    effects_S = np.linalg.pinv(gram_SS, hermitian=True) @ moment_S
    seen_S = counts_S > 0
    effects_S = np.where(seen_S, effects_S - (effects_S[seen_S].mean() if seen_S.any() else 0.0), 0.0)
    rms = float(np.sqrt((effects_S[seen_S] ** 2).mean())) if seen_S.any() else float("nan")
    return SlotProfile(effects_S, rms, counts_S)


@dataclass(frozen=True, slots=True)
class _Fit:
    squares: float
    rank: int
    effects: np.ndarray


def _dummies(labels_PK: np.ndarray, size: int | None = None) -> np.ndarray:
    """One-hot columns, each candidate's mean taken out (which projects the candidate block away), [P * K, size]."""
    size = int(labels_PK.max()) + 1 if size is None else size
    hot_PKS = (labels_PK[:, :, None] == np.arange(size)).astype(np.float64)
    return (hot_PKS - hot_PKS.mean(0)).reshape(-1, size)


def _explained(design_NS: np.ndarray, residual_N: np.ndarray) -> _Fit:
    """Sum of squares, rank and minimum-norm effects of a block, by its normal equations."""
    gram_SS, moment_S = design_NS.T @ design_NS, design_NS.T @ residual_N
    values_S, vectors_SS = np.linalg.eigh(gram_SS)
    live_S = values_S > 1e-9 * max(1.0, float(values_S.max(initial=0.0)))
    along_S = vectors_SS[:, live_S].T @ moment_S
    return _Fit(float((along_S**2 / values_S[live_S]).sum()), int(live_S.sum()), vectors_SS[:, live_S] @ (along_S / values_S[live_S]))


def _made(
    sums: tuple[float, float, float, float], degrees: tuple[int, int, int, int], rms: float, variance: float, examples: int, scores: int
) -> Decomposition:
    shares = _shares(sums)
    return Decomposition(
        shares.candidate, shares.slot, shares.window, shares.remainder, rms, variance, sums, degrees, examples, scores, int(not sum(sums))
    )  # fmt: skip


def _less_noise(sums: tuple[float, ...], degrees: tuple[int, ...]) -> tuple[float, ...]:
    if not degrees[3]:
        return tuple(sums)
    unit = sums[3] / degrees[3]
    out = [square - unit * free for square, free in zip(sums[:3], degrees[:3], strict=True)]
    return (*out, sum(sums) - sum(out))


def _shares(sums: tuple[float, ...]) -> Shares:
    total = sum(sums)
    if total <= 0:
        return Shares(*[float("nan")] * 4)
    return Shares(*(square / total for square in sums))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if np.isnan(value) else value
    return list(value) if isinstance(value, tuple) else value

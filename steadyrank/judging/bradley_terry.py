"""Bradley-Terry strengths of the documents of one list from pairwise wins, and which documents the comparisons connect.

    P(i beats j) = σ(θ_i - θ_j),   θ = argmax Σ_ij w_ij log σ(θ_i - θ_j) + prior Σ_i [log σ(θ_i) + log σ(-θ_i)]

The second sum is one imaginary opponent of strength 0, whom everybody meets in `prior` games won and as many lost: it keeps the strength
of a document that always wins finite and fixes the zero point. Between documents that no chain of comparisons connects it is all there is,
so strengths are to be compared inside one component only. Bradley and Terry 1952; the objective is concave, and Newton's method finds its
maximum.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit

from steadyrank.errors import InputError, RunError

_STEPS, _ENOUGH = 100, 1e-10


def fit(wins_KK: np.ndarray, *, prior: float = 0.1) -> np.ndarray:
    """strengths_K. wins_KK[i, j]: how often i was preferred to j; a tie is half a win for each."""
    wins_KK = np.asarray(wins_KK, dtype=np.float64)
    if wins_KK.ndim != 2 or wins_KK.shape[0] != wins_KK.shape[1] or not np.isfinite(wins_KK).all() or (wins_KK < 0).any():
        raise InputError("wins must be a square table of counts that are finite and not negative")
    if not prior > 0:
        raise InputError(f"prior is {prior!r}; it must be above 0, or a document that always wins would have no finite strength")
    theta_K = np.zeros(len(wins_KK))
    games_KK = wins_KK + wins_KK.T
    for _ in range(_STEPS):
        p_KK, q_K = expit(theta_K[:, None] - theta_K[None, :]), expit(theta_K)
        gradient_K = (wins_KK - games_KK * p_KK).sum(1) - np.diag(wins_KK - games_KK * p_KK) + prior * (1 - 2 * q_K)
        if np.abs(gradient_K).max(initial=0.0) < _ENOUGH:
            return theta_K
        weight_KK = games_KK * p_KK * (1 - p_KK)
        np.fill_diagonal(weight_KK, 0.0)
        curvature_KK = np.diag(weight_KK.sum(1) + 2 * prior * q_K * (1 - q_K)) - weight_KK
        theta_K = _uphill(theta_K, np.linalg.solve(curvature_KK, gradient_K), wins_KK, prior)
    raise RunError("the Bradley-Terry fit did not converge; raise prior")


def _uphill(theta_K: np.ndarray, step_K: np.ndarray, wins_KK: np.ndarray, prior: float) -> np.ndarray:
    """The Newton step, halved until the objective does not fall."""
    here = _objective(theta_K, wins_KK, prior)
    for _ in range(40):
        if _objective(theta_K + step_K, wins_KK, prior) >= here - 1e-12:
            break
        step_K = step_K / 2
    return theta_K + step_K


def _objective(theta_K: np.ndarray, wins_KK: np.ndarray, prior: float) -> float:
    won_KK = wins_KK * log_expit(theta_K[:, None] - theta_K[None, :])
    return float(won_KK.sum() - np.trace(won_KK) + prior * (log_expit(theta_K) + log_expit(-theta_K)).sum())


def components(games_KK: np.ndarray) -> list[list[int]]:
    """Groups of documents that chains of comparisons connect, the largest first (of equal ones, the one with the first document)."""
    left, out = set(range(len(games_KK))), []
    while left:
        group, edge = set(), [min(left)]
        while edge:
            here = edge.pop()
            if here in group:
                continue
            group.add(here)
            edge += [other for other in left if games_KK[here, other] + games_KK[other, here] > 0 and other not in group]
        left -= group
        out.append(sorted(group))
    return sorted(out, key=lambda group: (-len(group), group[0]))


def win_share(strengths_K: np.ndarray) -> np.ndarray:
    """share_K: how likely each document is to beat another of these, on average; 0.5 for one alone."""
    size = len(strengths_K)
    if size < 2:
        return np.full(size, 0.5)
    p_KK = expit(strengths_K[:, None] - strengths_K[None, :])
    return (p_KK.sum(1) - 0.5) / (size - 1)

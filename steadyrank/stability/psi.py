"""tau-PSI: how far the rankings of one pool disagree over presentations. Pure numpy, vectorised over examples.

tau-PSI = (1 - mean pairwise Kendall tau) / 2 over the P(P-1)/2 pairs of presentations, in [0, 1]: 0 the same ranking always, 0.5 chance,
1 reversed. Source: Frohmann et al. 2026 (arXiv 2608.26762), section 3; Kendall 1945 for tau-b.

Ties:
- `ties="b"` (default): tau-b on scores, a tie is a tie. Where one presentation of a pair scores all candidates alike, tau-b is 0/0; such a
  pair holds no agreement and counts as tau = 0. So a constant scorer gets 0.5, chance, never 0; the pairs are counted in `undefined`.
- `ties="a_listed"`: the published form. Ties are broken by listing order first (the order of each presentation where `orders_PK` is
given, as
  a serving stack does; else canonical order), then tau-a. In canonical order a constant scorer gets a flattering 0: read it beside
  `tie_rate`.
A pool of one candidate, or one presentation, has no pair to compare: nan, which means "left out of the mean", and is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadyrank.errors import InputError, unknown_name
from steadyrank.stability.arrays import orders_array, places_array, scores_array, stacks

TIES = ("b", "a_listed")


@dataclass(frozen=True, slots=True)
class PsiTable:
    """tau-PSI of N examples, with what has to be read beside it.

    psi_N:       tau-PSI in [0, 1]; nan where there is no pair to compare.
    pairs_N:     pairs of presentations compared; 0 where psi is nan.
    undefined_N: pairs of them in which a presentation scored all candidates alike (tau counted as 0).
    tie_rate_N:  share of candidate pairs with exactly equal scores, mean over presentations; nan for one candidate.
    """

    psi_N: np.ndarray
    pairs_N: np.ndarray
    undefined_N: np.ndarray
    tie_rate_N: np.ndarray
    ties: str = "b"

    def to_json(self) -> dict[str, Any]:
        """Means over examples with a value, and the counts."""
        has_value = ~np.isnan(self.psi_N)
        return {
            "ties": self.ties,
            "mean": _mean(self.psi_N),
            "n": int(has_value.sum()),
            "excluded": int((~has_value).sum()),
            "pairs": int(self.pairs_N.sum()),
            "undefined_pairs": int(self.undefined_N.sum()),
            "tie_rate": _mean(self.tie_rate_N),
            "values": [None if np.isnan(value) else float(value) for value in self.psi_N],
        }


def tau_psi(scores_PK: Any, *, ties: str = "b", orders_PK: Any | None = None) -> float:
    """tau-PSI of one example, in [0, 1]; nan for fewer than two presentations or candidates. See the module for ties.

    scores_PK: one row a presentation, canonical order.
    orders_PK: `orders[p, j]` is the candidate at place j; read by `ties="a_listed"` only.
    """
    return float(psi_table([scores_PK], ties=ties, orders=None if orders_PK is None else [orders_PK]).psi_N[0])


def psi_many(scores: Sequence[Any], *, ties: str = "b", orders: Sequence[Any] | None = None) -> np.ndarray:
    """tau-PSI of every example, psi_N: scores[n] is [P, K], both may differ between examples; nan as in `tau_psi`."""
    return psi_table(scores, ties=ties, orders=orders).psi_N


def psi_table(scores: Sequence[Any], *, ties: str = "b", orders: Sequence[Any] | None = None) -> PsiTable:
    """tau-PSI of every example with tie rate and counts of pairs."""
    if ties not in TIES:
        raise unknown_name("tie rule", ties, TIES)
    if orders is not None and len(orders) != len(scores):
        raise InputError(f"holds {len(orders)} for {len(scores)} examples; give one array an example", field="orders")
    arrays = [scores_array(one, field=f"scores[{place}]") for place, one in enumerate(scores)]
    laid = None if orders is None else [orders_array(one, arrays[n].shape, field=f"orders[{n}]") for n, one in enumerate(orders)]
    size = len(arrays)
    psi_N, pairs_N, undefined_N, ties_N = np.full(size, np.nan), np.zeros(size, int), np.zeros(size, int), np.full(size, np.nan)
    for places, stack_BPK in stacks(arrays):
        presentations, candidates = stack_BPK.shape[1:]
        if candidates < 2 or not presentations:
            continue
        signs_BPC, equal_BP = pair_signs(stack_BPK)
        ties_N[places] = equal_BP.mean(1) / signs_BPC.shape[2]
        if presentations < 2:
            continue
        if ties == "a_listed":
            signs_BPC, _ = pair_signs(untied(stack_BPK, None if laid is None else np.stack([laid[n] for n in places])))
        tau_BPP = tau_matrix(signs_BPC)
        first, second = np.triu_indices(presentations, 1)
        psi_N[places] = np.clip((1 - tau_BPP[:, first, second].mean(1)) / 2, 0, 1)
        pairs_N[places] = len(first)
        flat_BP = equal_BP == signs_BPC.shape[2]
        undefined_N[places] = (flat_BP[:, first] | flat_BP[:, second]).sum(1)
    return PsiTable(psi_N, pairs_N, undefined_N, ties_N, ties)


def pair_signs(scores_BPK: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(signs, equal): +1, 0 or -1 of each of the C = K(K-1)/2 candidate pairs, [B, P, C]; and how many pairs tie, [B, P]."""
    left, right = np.triu_indices(scores_BPK.shape[2], 1)
    kind = np.float32 if len(left) < 1 << 24 else np.float64  # counts stay exact
    above_BPC = scores_BPK[:, :, left] > scores_BPK[:, :, right]
    below_BPC = scores_BPK[:, :, left] < scores_BPK[:, :, right]
    signs_BPC = np.subtract(above_BPC, below_BPC, dtype=kind)
    return signs_BPC, len(left) - (above_BPC | below_BPC).sum(2)


def tau_matrix(signs_BPC: np.ndarray) -> np.ndarray:
    """tau-b of every two presentations, [B, P, P], from the signs of candidate pairs; 0 where a side has none (see the module)."""
    agreement_BPP = (signs_BPC @ signs_BPC.transpose(0, 2, 1)).astype(np.float64)
    untied_BP = np.abs(signs_BPC).sum(2, dtype=np.float64)
    scale_BPP = np.sqrt(untied_BP[:, :, None] * untied_BP[:, None, :])
    return np.divide(agreement_BPP, scale_BPP, out=np.zeros_like(scale_BPP), where=scale_BPP > 0)


def untied(scores_BPK: np.ndarray, orders_BPK: np.ndarray | None = None) -> np.ndarray:
    """Scores replaced by ranks without ties, higher is better; of equal scores the one listed earlier is higher."""
    listed_BPK = np.broadcast_to(np.arange(scores_BPK.shape[-1]), scores_BPK.shape) if orders_BPK is None else places_array(orders_BPK)
    best_first_BPK = np.lexsort((listed_BPK, -scores_BPK), axis=-1)
    return -np.argsort(best_first_BPK, axis=-1).astype(np.float64)


def pool_psi(canonical_scores: Any, perturbed_scores: Any, *, survivors: Sequence[tuple[int, int]] | None = None, ties: str = "b") -> float:
    """Pool-PSI, (1 - tau) / 2 between the ranking of the pool and of the perturbed pool, over the candidates both hold; in [0, 1].

    survivors: (place in the pool, place in the perturbed pool) of every candidate that both hold; absent, the two are already the survivors
    and stand alike. Fewer than two survivors: nan. Ties as in `tau_psi`.
    """
    before_K, after_K = np.asarray(canonical_scores, dtype=np.float64), np.asarray(perturbed_scores, dtype=np.float64)
    if survivors is not None:
        pairs = [(int(before), int(after)) for before, after in survivors]
        if len({before for before, _ in pairs}) != len(pairs) or len({after for _, after in pairs}) != len(pairs):
            raise InputError("names a candidate twice; give each survivor once", field="survivors")
        if pairs and not (
            min(map(min, pairs)) >= 0 and max(b for b, _ in pairs) < len(before_K) and max(a for _, a in pairs) < len(after_K)
        ):
            raise InputError("names a place outside its pool", field="survivors")
        before_K, after_K = before_K[[before for before, _ in pairs]], after_K[[after for _, after in pairs]]
    if before_K.shape != after_K.shape or before_K.ndim != 1:
        raise InputError(f"have shapes {before_K.shape} and {after_K.shape}; give the survivors of both pools", field="scores")
    return tau_psi(np.stack([before_K, after_K]), ties=ties)


def _mean(values_N: np.ndarray) -> float | None:
    kept_N = values_N[~np.isnan(values_N)]
    return float(kept_N.mean()) if len(kept_N) else None

"""The Plackett-Luce policy over rankings: sampling, log-probabilities, marginals, exact expectations.

Utilities in, rankings and log-probabilities out. Not here: what a ranking is worth (`rewards`) and what is learnt from it (`objectives`).
"""

from steadyrank.policy.expectation import expected_ndcg
from steadyrank.policy.plackett_luce import (
    choice_log_probs,
    first_choice,
    gumbel_like,
    gumbel_noise,
    log_prob,
    next_choice,
    positions,
    rank_with_noise,
    sample_rankings,
)

__all__ = [
    "choice_log_probs",
    "expected_ndcg",
    "first_choice",
    "gumbel_like",
    "gumbel_noise",
    "log_prob",
    "next_choice",
    "positions",
    "rank_with_noise",
    "sample_rankings",
]

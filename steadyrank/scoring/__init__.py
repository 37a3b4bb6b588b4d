"""Scorers: a query and its documents in, one score a document out, always in canonical order.

    scorer = load_scorer("teacher")
    scorer.score("query", ["a document", "another"])

One file a scorer, one line in `SCORERS`; `base` holds the contract that all keep. Importing this package does not import torch.
"""

from steadyrank.scoring.base import Pair, PairScore, Scorer
from steadyrank.scoring.loading import SCORERS, load_scorer

__all__ = ["SCORERS", "Pair", "PairScore", "Scorer", "load_scorer"]

"""steadyrank trains compact text rerankers, proves how good they are, and proves that decisions made on their scores hold still.

The names below are imported on first use, so that `import steadyrank` stays light and never imports torch.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_NAMES = {
    "RankingExample": "steadyrank.records", "Candidate": "steadyrank.records", "ScoredList": "steadyrank.records",
    "RankedCandidate": "steadyrank.records", "Presentation": "steadyrank.records",
    "load_examples": "steadyrank.data.jsonl", "save_examples": "steadyrank.data.jsonl",
    "load_scores": "steadyrank.data.jsonl", "save_scores": "steadyrank.data.jsonl",
    "load_scorer": "steadyrank.scoring",
    "evaluate": "steadyrank.evaluation", "compare": "steadyrank.evaluation",
}  # fmt: skip
_ROOMS = (
    "audit", "consumers", "data", "evaluation", "lists", "metrics", "objectives", "policy", "rewards", "scoring", "stability", "training",
)  # fmt: skip

__all__ = ["__version__", *_NAMES, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"steadyrank.{name}")
    raise AttributeError(f"module 'steadyrank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

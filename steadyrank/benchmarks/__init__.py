"""Speed beside the tool a user would pick instead, in one run, as ratios with their spread.

Never a test: a figure belongs to the machine and the moment it was measured on, so each result holds the foreign load beside it.
"""

from __future__ import annotations

BENCHMARKS = {
    "audit": "steadyrank.benchmarks.audit:run",
    "policy": "steadyrank.benchmarks.policy:run",
    "score": "steadyrank.benchmarks.score:run",
    "train": "steadyrank.benchmarks.train:run",
}

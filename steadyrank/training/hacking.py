"""Reward hacking: the reward that training is paid rises while quality against held-out gold grades falls.

A judge's grades are only a stand-in for relevance, and a policy finds where the two part. Both series are read from a run's own rows, so a
resumed run judges as a straight one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

REWARD_ROSE, QUALITY_FELL = 0.01, 0.02  # nDCG; smaller moves are noise of the lists drawn between two evaluations, and of a dev set


def paid_for_something_else(log: Sequence[Mapping[str, Any]], dev: Sequence[Mapping[str, Any]], measure: str) -> str | None:
    """One sentence where it happened, else None.

    The mean reward since the last evaluation lies above that before the first one by REWARD_ROSE, and the dev measure lies QUALITY_FELL
    below its start in the last two evaluations.
    """
    rewards = _between(log, [row["step"] for row in dev])
    if len(dev) < 3 or len(rewards) < 2 or rewards[-1] - rewards[0] < REWARD_ROSE:
        return None
    start, *last = (row["measures"][measure] for row in (dev[0], *dev[-2:]))
    if max(last) > start - QUALITY_FELL:
        return None
    return (
        f"reward hacking: the mean reward rose from {rewards[0]:.3f} to {rewards[-1]:.3f} while dev {measure} fell from {start:.3f} to "
        f"{last[-1]:.3f} (step {dev[-1]['step']}); the model learns what pays and not what is relevant: look at how far the judge can be "
        "trusted, raise kl, or keep best/"
    )


def _between(log: Sequence[Mapping[str, Any]], steps: Sequence[int]) -> list[float]:
    """Mean reward of the steps between two evaluations, in order; intervals without a reward are left out."""
    out = []
    for before, after in zip(steps, steps[1:], strict=False):
        rewards = [row["reward"] for row in log if before < row["step"] <= after and "reward" in row]
        if rewards:
            out.append(sum(rewards) / len(rewards))
    return out

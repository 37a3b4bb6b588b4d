"""Probes that ask the scorer again: one candidate less in the pool, and the same prompts in other batches.

pool:     one candidate, drawn for each list, is dropped and the others keep canonical order; how far does the order of the survivors move
          (Pool-PSI), and how often does their top k change? 0 for a scorer that reads one document at a time.
batching: the same lists in canonical order, handed over in another order and in smaller calls; the largest difference of a score. What is
          not 0 here is arithmetic of the batch or the server's own randomness, and bounds what "exactly" can mean.
Both need first-stage scores and a scorer, so an audit of a file of scores has neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steadyrank import seeds
from steadyrank.audit.intervals import summaries
from steadyrank.audit.lists import Shown
from steadyrank.audit.parts import NOISE
from steadyrank.audit.settings import AuditSettings
from steadyrank.data.presenting import drop
from steadyrank.errors import RunError
from steadyrank.records import Presentation, RankingExample, ScoredList
from steadyrank.stability.psi import pool_psi
from steadyrank.stability.spread import survivors_after_drop, top_k_turnover

SMALL_CALL = 3  # lists handed over at once by the batching probe


def chosen(shown: Sequence[Shown], settings: AuditSettings, least: int) -> list[Shown]:
    """At most `probe_lists` lists of at least this many candidates that have first-stage scores, drawn by their ids."""
    usable = [item for item in shown if item.first_K is not None and len(item.example.candidates) >= least]
    return sorted(usable, key=lambda item: seeds.digest(settings.seed, "audit probe", item.example.id))[: settings.probe_lists]


def pool_probe(scorer: Any, shown: Sequence[Shown], settings: AuditSettings, laid: Presentation) -> dict[str, Any] | None:
    """Pool-PSI and top-k turnover after one candidate was dropped; None without a list of three."""
    items = chosen(shown, settings, 3)
    dropped = [drop(item.example, seed=settings.seed) for item in items]
    answers = _answers(scorer, [example for example, _ in dropped], laid)
    psi, turnover, examples = [], [], []
    for item, (_, place), answer in zip(items, dropped, answers, strict=True):
        if answer is None:
            continue
        assert item.first_K is not None
        pairs = survivors_after_drop(len(item.first_K), place)
        before, after = item.first_K[[one for one, _ in pairs]], np.asarray(answer.scores)[[one for _, one in pairs]]
        psi.append(pool_psi(before, after))
        turnover.append(top_k_turnover(np.stack([before, after]), settings.top_k) if len(before) > settings.top_k else np.nan)
        examples.append(item.example)
    if not examples:
        return None
    rows = summaries({"pool_psi": psi, "top_k_turnover": turnover}, examples, resamples=settings.resamples, seed=settings.seed)
    return {**rows, "top_k": settings.top_k, "lists": len(examples), "failed": len(items) - len(examples)}


def batching_probe(scorer: Any, shown: Sequence[Shown], settings: AuditSettings, laid: Presentation) -> dict[str, Any] | None:
    """The largest and the mean difference of a score between two ways to batch the same prompts; None without lists."""
    items = chosen(shown, settings, 1)
    differences, moved, failed = [], 0, 0
    for start in range(0, len(items), SMALL_CALL):
        call = items[start : start + SMALL_CALL][::-1]
        for item, answer in zip(call, _answers(scorer, [item.example for item in call], laid), strict=True):
            if answer is None:
                failed += 1
                continue
            assert item.first_K is not None
            apart_K = np.abs(item.first_K - np.asarray(answer.scores))
            differences.append(apart_K)
            moved += bool(apart_K.max() > NOISE * float(np.ptp(item.first_K)))
    if not differences:
        return None
    return {
        "largest": max(float(apart_K.max()) for apart_K in differences),
        "mean": float(np.mean([apart_K.mean() for apart_K in differences])),
        "moved_lists": moved,
        "lists": len(differences),
        "failed": failed,
    }


def _answers(scorer: Any, examples: list[RankingExample], laid: Presentation) -> list[ScoredList | None]:
    """One scored list an example; None where the scorer left it out."""
    if not examples:
        return []
    try:
        rows = scorer.score_presentations(examples, [[laid] for _ in examples])
    except RunError:  # a remote scorer that answered none of them; counted as failed by the callers
        return [None for _ in examples]
    return [row[0] if row else None for row in rows]

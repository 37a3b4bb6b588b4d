"""Probes that ask the scorer again: another pool, other companions, and the same prompts in other batches.

pool:       one candidate, drawn for each list, is dropped and the others keep canonical order; how far does the order of the survivors
            move (Pool-PSI), and how often does their top k change? 0 for a scorer that reads one document at a time.
replace:    the same candidate gives its place to one from another list.
companions: one candidate, drawn for each list, keeps its slot while the others change places, twice; how far does its score move? With
            windows its companions become others too (`coupling`), without them only their order does (`arrangement`).
batching:   the same lists in canonical order, handed over in another order and in smaller calls; the largest difference of a score. What
            is not 0 here is arithmetic of the batch or the server's own randomness, and bounds what "exactly" can mean.
All of them need the scorer, so an audit of a file of scores has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace as changed
from typing import Any

import numpy as np

from steadyrank import seeds
from steadyrank.audit.intervals import summaries
from steadyrank.audit.lists import Shown, width_of
from steadyrank.audit.parts import NOISE, is_still
from steadyrank.audit.settings import AuditSettings
from steadyrank.data.presenting import drop, replace
from steadyrank.errors import RunError
from steadyrank.records import Candidate, Presentation, RankingExample, ScoredList
from steadyrank.stability.companions import companion_swap, swap_orders
from steadyrank.stability.psi import pool_psi
from steadyrank.stability.spread import survivors_after_drop, survivors_after_replace, top_k_turnover

Found = dict[str, Any] | None
SMALL_CALL = 3  # lists handed over at once by the batching probe


def chosen(shown: Sequence[Shown], settings: AuditSettings, least: int) -> list[Shown]:
    """At most `probe_lists` lists of at least this many candidates that have first-stage scores, drawn by their ids."""
    usable = [item for item in shown if item.first_K is not None and len(item.example.candidates) >= least]
    return sorted(usable, key=lambda item: seeds.digest(settings.seed, "audit probe", item.example.id))[: settings.probe_lists]


def pool_probe(scorer: Any, shown: Sequence[Shown], settings: AuditSettings, laid: Presentation) -> Found:
    """Pool-PSI and top-k turnover after one candidate was dropped; None without a list of three."""
    items = chosen(shown, settings, 3)
    probed = [drop(item.example, seed=settings.seed) for item in items]
    return _perturbed(scorer, items, probed, survivors_after_drop, settings, laid)


def replace_probe(scorer: Any, shown: Sequence[Shown], settings: AuditSettings, laid: Presentation) -> Found:
    """The same after one candidate gave its place to one of the next list; None without a list of three or a second list."""
    items = chosen(shown, settings, 3)
    others = [_reserve(item.example, items[place + 1 :] + items[:place]) for place, item in enumerate(items)]
    known = [(item, other) for item, other in zip(items, others, strict=True) if other is not None]
    probed = [replace(item.example, other, seed=settings.seed) for item, other in known]
    return _perturbed(scorer, [item for item, _ in known], probed, survivors_after_replace, settings, laid)


def _reserve(example: RankingExample, others: Sequence[Shown]) -> Candidate | None:
    """The first candidate of another list whose text this pool does not hold; its id says where it is from."""
    for other in others:
        for candidate, document in zip(other.example.candidates, other.example.documents, strict=True):
            if document not in example.documents:
                return changed(candidate, id=f"{other.example.id}/{candidate.id}")
    return None


def _perturbed(
    scorer: Any,
    items: Sequence[Shown],
    probed: Sequence[tuple[RankingExample, int]],
    survivors: Callable[[int, int], list[tuple[int, int]]],
    settings: AuditSettings,
    laid: Presentation,
) -> Found:
    """How the candidates that both pools hold change their order; canonical order before and after."""
    answers = _answers(scorer, [example for example, _ in probed], laid)
    psi, turnover, examples = [], [], []
    for item, (_, place), answer in zip(items, probed, answers, strict=True):
        if answer is None:
            continue
        assert item.first_K is not None
        pairs = survivors(len(item.first_K), place)
        before, after = item.first_K[[one for one, _ in pairs]], np.asarray(answer.scores)[[one for _, one in pairs]]
        psi.append(pool_psi(before, after))
        turnover.append(top_k_turnover(np.stack([before, after]), settings.top_k) if len(before) > settings.top_k else np.nan)
        examples.append(item.example)
    if not examples:
        return None
    rows = summaries({"pool_psi": psi, "top_k_turnover": turnover}, examples, resamples=settings.resamples, seed=settings.seed)
    return {**rows, "top_k": settings.top_k, "lists": len(examples), "failed": len(items) - len(examples)}


def companion_probe(scorer: Any, shown: Sequence[Shown], settings: AuditSettings, laid: Presentation) -> Found:
    """Variance of a score that its companions cause, beside the variance over the presentations of the audit; None without a list of three.

    Variances are means over lists, in squared score units; `share` is theirs over the presentations'.
    """
    items = [item for item in chosen(shown, settings, 3) if item.orders_PK is not None]
    targets = [
        int(seeds.stream(settings.seed, "companion probe", item.example.id).integers(len(item.example.candidates))) for item in items
    ]
    orders = [
        swap_orders(len(item.example.candidates), 2, target=target, seed=settings.seed, example_id=item.example.id)
        for item, target in zip(items, targets, strict=True)
    ]
    views = [[changed(laid, order=tuple(order.tolist()), seed=settings.seed) for order in rows] for rows in orders]
    rows = all_answers(scorer, [item.example for item in items], views)
    kept = [place for place, row in enumerate(rows) if len(row) == 2]
    if not kept:
        return None
    width, windows = max((width_of(items[place], laid.windows) for place in kept), key=lambda rule: rule[0])
    found = companion_swap(
        [[one.scores for one in rows[place]] for place in kept],
        [orders[place] for place in kept],
        width,
        windows=windows,
        targets=[targets[place] for place in kept],
    )
    moving = [place for place in kept if not is_still(items[place].scores_PK)]
    own = sum(float(items[place].scores_PK[:, targets[place]].var(ddof=1)) for place in moving) / len(kept)
    caused = found.arrangement if np.isnan(found.coupling) else found.coupling
    share = None if np.isnan(caused) or own == 0 else caused / own
    return {**found.to_json(), "presentation_variance": own, "share": share, "lists": len(kept), "failed": len(items) - len(kept)}


def batching_probe(scorer: Any, shown: Sequence[Shown], settings: AuditSettings, laid: Presentation) -> Found:
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
    return [row[0] if row else None for row in all_answers(scorer, examples, [[laid] for _ in examples])]


def all_answers(scorer: Any, examples: list[RankingExample], laid: list[list[Presentation]]) -> list[list[ScoredList]]:
    """The scored lists of each example; fewer where the scorer left some out."""
    if not examples:
        return []
    try:
        return scorer.score_presentations(examples, laid)
    except RunError:  # a remote scorer that answered none of them; counted as failed by the callers
        return [[] for _ in examples]

"""`run_audit`: lists scored once under several presentations, and every part of the audit read off those scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steadyrank.audit import deciding, injection, parts, probing, showing, splitting, verdict
from steadyrank.audit.lists import Shown, gather
from steadyrank.audit.per_list import per_list
from steadyrank.audit.record import Audit
from steadyrank.audit.scoring import REASONS, Scored, reason_of, score_laid
from steadyrank.audit.settings import AuditSettings
from steadyrank.data.presenting import presentations
from steadyrank.errors import InputError, RunError
from steadyrank.files import fingerprint
from steadyrank.records import Presentation, RankingExample, ScoredList
from steadyrank.scoring import Scorer, load_scorer

PROBES = {
    "pool": probing.pool_probe,
    "replace": probing.replace_probe,
    "companions": probing.companion_probe,
    "injection": injection.injection_probe,
    "batching": probing.batching_probe,
}
GIVEN, DEV, HALF = "given", "dev lists", "half of the lists"


@dataclass(frozen=True)
class _Plan:
    """What is audited, on which lists, and how they are laid."""

    settings: AuditSettings
    reported: list[RankingExample]
    dev: list[RankingExample]
    chosen_on: str
    windows: str | None


def run_audit(
    scorer: Any,
    examples: Iterable[RankingExample],
    *,
    dev: Iterable[RankingExample] | None = None,
    answerer: Any = None,
    scores_path: str | Path | None = None,
    name: str | None = None,
    progress: bool = False,
    **settings: Any,
) -> Audit:
    """Audit a scorer, or lists that it scored elsewhere.

    scorer:      a Scorer, what `load_scorer` takes (a URL, a function, a file of scored lists, ...), or ScoredLists with several
                 presentations of each example.
    examples:    the lists; without relevance the audit tells steadiness only, and the threshold is set by retention.
    dev:         lists on which the threshold is chosen; without them (and without `threshold`) half of the lists, by group, go there.
    answerer:    what answers questions over the top k, for lists with `answers`; absent, the embedded reader.
    scores_path: where the scored lists are kept; a killed audit goes on from there, and a finished one scores nothing again.
    settings:    fields of `AuditSettings`: presentations=10, seed=0, threshold=None, consumers=(...), kind="shuffle", ...
    """
    chosen = AuditSettings.of(settings)
    if isinstance(scorer, (str, Path, Mapping)) or (callable(scorer) and not isinstance(scorer, Scorer)):
        scorer = load_scorer(scorer)
        if hasattr(scorer, "on_failure"):
            scorer.on_failure = "skip"  # an audit counts what fails
    plan = _plan(scorer, list(examples), None if dev is None else list(dev), chosen)
    live = scorer if isinstance(scorer, Scorer) and not hasattr(scorer, "presentations_of") else None
    scored = _recorded(scorer, plan) if live is None else _score(live, plan, scores_path, progress=progress)
    shown, counts = gather(scored.lists, plan.reported)
    dev_shown, dev_counts = _dev_lists(scored.lists, plan)
    counts["without_example"] -= sum(item.example_id in {e.id for e in plan.dev} for item in scored.lists)
    if not shown:
        raise _nothing(live, plan, counts)
    parts.check_lists(shown)
    first = scored.lists[0]
    system = {
        "name": name or first.scorer,
        "scale": first.scale,
        "reads_lists": None if live is None else bool(live.reads_lists),
        "windows": plan.windows,
        "from_file": live is None,
    }
    counts |= {"asked": scored.asked, "failed": scored.failed, "from_an_earlier_start": scored.resumed}
    counts |= {f"dev_{key}": dev_counts[key] for key in ("unscored", "single_presentation", "truncated", "empty") if key in dev_counts}
    found = _parts(plan, shown, dev_shown, live, answerer, system)
    prints = {"lists": fingerprint([[e.id, e.query, e.instruction, e.documents, list(e.relevance or ())] for e in plan.reported])}
    prints["scores"] = fingerprint([[item.example.id, item.scores_PK.tolist()] for item in shown])
    if live is not None:
        prints["scorer"] = live.fingerprint
    return Audit(**found, counts=_ordered(counts, scored), settings=_settings(plan), fingerprints=prints)


def _plan(scorer: Any, examples: list[RankingExample], dev: list[RankingExample] | None, settings: AuditSettings) -> _Plan:
    if not examples:
        raise InputError("is empty; give at least one list", field="examples")
    twice = [name for name, count in Counter(example.id for example in examples).items() if count > 1]
    if twice:
        raise InputError(f"holds id {twice[0]!r} twice; ids tell lists apart", field="examples")
    windows = settings.windows or getattr(scorer, "windows", None)
    if "threshold" not in settings.consumers or settings.threshold is not None:
        return _Plan(settings, examples, [], GIVEN if settings.threshold is not None else "", windows)
    if dev is not None:
        splitting.check_apart(examples, dev)
        return _Plan(settings, examples, dev, DEV, windows)
    dev, reported = splitting.halves(examples, settings.seed)
    return _Plan(settings, reported, dev, HALF if dev else "", windows)


def _score(scorer: Any, plan: _Plan, path: str | Path | None, *, progress: bool) -> Scored:
    settings = plan.settings
    options: dict[str, Any] = {"seed": settings.seed, "windows": plan.windows, "markers": settings.markers}
    laid = [
        [*presentations(example, settings.presentations, kind=settings.kind, **options), _first_stage(plan)] for example in plan.reported
    ]
    count = min(settings.presentations, max(2, settings.dev_presentations))
    laid += [presentations(example, count, kind=settings.kind, **options) for example in plan.dev]
    return score_laid(scorer, [*plan.reported, *plan.dev], laid, path=None if path is None else Path(path), progress=progress)


def _recorded(source: Any, plan: _Plan) -> Scored:
    """Lists scored elsewhere: ScoredLists, or a recorded scorer, whose file says which presentations there are."""
    if not isinstance(source, Scorer):
        lists = list(source)
        return Scored(lists, asked=len(lists))
    told = len(getattr(source, "failures", ()))
    lists = source.score_examples([*plan.reported, *plan.dev])
    failures = list(getattr(source, "failures", ()))[told:]
    return Scored(lists, len(lists) + len(failures), 0, len(failures), [reason_of(failure) for failure in failures[:REASONS]])


def _first_stage(plan: _Plan) -> Presentation:
    """Canonical order; without an `order`, which tells it from the shuffled ones."""
    return Presentation(windows=plan.windows, markers=plan.settings.markers, seed=plan.settings.seed)


def _dev_lists(lists: Sequence[ScoredList], plan: _Plan) -> tuple[list[Shown], dict[str, int]]:
    return gather(lists, plan.dev) if plan.dev else ([], {})


def _nothing(live: Any, plan: _Plan, counts: Mapping[str, int]) -> Exception:
    if counts["single_presentation"]:
        told = f"hold one presentation of each of {counts['single_presentation']} lists; an audit needs at least two of each"
        return InputError(f"{told}, as `steadyrank score --presentations 10` writes them", field="scores")
    if live is not None:
        return RunError(f"scorer {live.name!r} answered none of {len(plan.reported)} lists; nothing can be audited")
    return InputError(f"hold none of the {len(plan.reported)} lists; scored lists name their list by example_id", field="scores")


def _parts(plan: _Plan, shown: list[Shown], dev: list[Shown], live: Any, answerer: Any, system: dict[str, Any]) -> dict[str, Any]:
    settings, left_out = plan.settings, {}
    found: dict[str, Any] = {"system": system, "data": _data(plan, shown, dev), "steadiness": parts.steadiness(shown, settings)}
    found["quality"] = parts.quality(shown, settings)
    if found["quality"] is None:
        left_out["quality"] = "no list holds relevance grades"
    found["causes"], why = parts.causes(shown, plan.windows)
    if why:
        left_out["causes"] = why
    for consumer, run in (
        ("threshold", lambda: deciding.threshold(shown, dev, settings, plan.chosen_on)),
        ("preference", lambda: deciding.preference(shown, settings)),
        ("reader", lambda: deciding.reader(shown, settings, answerer)),
    ):
        found[consumer], why = run() if consumer in settings.consumers else (None, "not asked for")
        if why:
            left_out[consumer] = why
    for probe, ask in PROBES.items():
        if probe not in settings.probes or live is None:
            found[probe], left_out[probe] = None, "not asked for" if live is not None else "needs the scorer, and this is a file of scores"
            continue
        found[probe] = ask(live, shown, settings, _first_stage(plan))
        if found[probe] is None:
            left_out[probe] = "no list that it can use"
    found["verdict"] = verdict.judge(found)
    point = verdict.main_point(found)
    found["example"] = showing.flip_example(shown, None if point is None else point["threshold"])
    points = {row["name"]: row["threshold"] for row in (found["threshold"] or {"points": []})["points"]}
    found["per_list"] = per_list(shown, settings, points)
    if found["example"] is None:
        left_out["example"] = "no decision flips on any list"
    return {**found, "left_out": left_out}


def _data(plan: _Plan, shown: Sequence[Shown], dev: Sequence[Shown]) -> dict[str, Any]:
    sizes = [len(item.example.candidates) for item in shown]
    amounts = [len(item.scores_PK) for item in shown]
    return {
        "lists": len(shown),
        "dev_lists": len(dev),
        "threshold_chosen_on": plan.chosen_on or None,
        "candidates": sum(sizes),
        "pool_sizes": [min(sizes), max(sizes)],
        "presentations": min(amounts),
        "most_presentations": max(amounts),
        "kind": plan.settings.kind,
        "graded_lists": sum(item.has_grades for item in shown),
        "single_candidate_lists": sum(size == 1 for size in sizes),
        "sources": dict(sorted(Counter(item.example.source or "" for item in shown).items())),
    }


def _settings(plan: _Plan) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(plan.settings).items()}


def _ordered(counts: Mapping[str, int], scored: Scored) -> dict[str, Any]:
    first = ("asked", "failed", "unscored", "truncated", "empty")
    out: dict[str, Any] = {name: counts[name] for name in first if name in counts}
    out |= {name: value for name, value in counts.items() if name not in out}
    return {**out, "failures": scored.reasons}

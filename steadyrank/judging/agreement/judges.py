"""Judges against a reference (gold grades, another file), against each other and against themselves.

Every comparison is of two raters a and b on the documents that both graded. Definitions: docs/agreement.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np

from steadyrank.errors import ConfigError, InputError
from steadyrank.files import fingerprint
from steadyrank.judging.agreement.compare import AgreementSettings, compare_raters
from steadyrank.judging.agreement.ratings import JUDGE_TOP, Lists, Rater, gold, grades_of, lay_lists, make_scale
from steadyrank.judging.agreement.record import Agreement
from steadyrank.judging.agreement.swap import Swap, swap_consistency
from steadyrank.judging.agreement.verdict import verdict
from steadyrank.judging.base import JudgedList
from steadyrank.records import RankingExample

GOLD = "gold"
AGAIN = ", second run"  # what follows a judge's name when its second run is a rater
Judged = Sequence[JudgedList]


def judge_agreement(
    examples: Sequence[RankingExample],
    judges: Mapping[str, Judged],
    *,
    against: tuple[str, Judged] | None = None,
    has_reference: bool = True,
    again: Mapping[str, Judged] | None = None,
    swaps: Mapping[str, Sequence[Swap]] | None = None,
    settings: AgreementSettings | None = None,
) -> Agreement:
    """The agreement of judges on these lists.

    against: (name, rows) of the reference; without it the grades of the lists, where any has grades. has_reference=False leaves it out.
    again:   a second run of a judge, by its name. swaps: pairs judged in both orders, by any name.
    """
    settings, again, swaps = settings or AgreementSettings(), dict(again or {}), dict(swaps or {})
    lists, kept = lay_lists(examples, judges)
    reference = _reference(kept, judges, against) if has_reference else None
    rows = dict(judges) | {_known(name, judges) + AGAIN: run for name, run in again.items()}
    raters, notes = _raters(rows, reference, lists, settings)
    asked = [(reference[0], name, "reference") for name in judges] if reference else []
    asked += [(first, second, "judges") for first, second in combinations(judges, 2)]
    asked += [(name, name + AGAIN, "again") for name in again]
    found = [compare_raters(raters[a], raters[b], lists, kind=kind, settings=settings) for a, b, kind in asked]
    swapped = {name: swap_consistency(some, examples, resamples=settings.resamples, seed=settings.seed) for name, some in swaps.items()}
    return Agreement(
        reference=reference[0] if reference else None,
        judges=list(judges),
        scales={name: None if rater.scale is None else asdict(rater.scale) for name, rater in raters.items()},
        data=_data(lists, kept),
        counts={name: _counts(rater) for name, rater in raters.items()},
        comparisons=found,
        order_swap=swapped,
        verdicts=_verdicts(found, swapped),
        notes=notes if reference else [*notes, "no reference: judges that agree with each other may all be wrong"],
        settings={"resamples": settings.resamples, "seed": settings.seed, "level": 0.95, "units": _units(kept)},
        fingerprints={"lists": fingerprint([[e.id, e.query, e.instruction, e.documents, list(e.relevance or ())] for e in kept])}
        | {name: fingerprint([[row.example_id, list(row.grades)] for row in some]) for name, some in rows.items()},
    )


def _reference(
    kept: Sequence[RankingExample], judges: Mapping[str, Judged], against: tuple[str, Judged] | None
) -> tuple[str, Judged] | None:
    name, rows = against or (GOLD, gold(kept))
    if name in judges:
        raise ConfigError(f"a judge and the reference are both called {name!r}; rename one of the files")
    if against is None and all(grade is None for row in rows for grade in row.grades):
        return None
    return name, rows


def _known(name: str, judges: Mapping[str, Judged]) -> str:
    if name not in judges:
        raise ConfigError(f"a second run is given of {name!r}, which is none of the judges: {', '.join(judges)}")
    return name


def _raters(
    rows: Mapping[str, Judged], reference: tuple[str, Judged] | None, lists: Lists, settings: AgreementSettings
) -> tuple[dict[str, Rater], list[str]]:
    """Every rater by name, judges first; and notes on scales that were guessed. A second run has the scale of the first."""
    every = dict(rows) | ({reference[0]: reference[1]} if reference else {})
    _check_names(settings, every)
    raters: dict[str, Rater] = {}
    notes = []
    for name, some in every.items():
        own = name.removesuffix(AGAIN) if name.removesuffix(AGAIN) in every else name
        grades_D, missing, elsewhere = grades_of(name, some, lists)
        if np.isnan(grades_D).all():
            raise InputError(f"{name!r} holds no grade for the lists compared; nothing can be said about it")
        if own in settings.ranks:
            raters[name] = Rater(name, grades_D, None, missing, elsewhere)
            continue
        tops = [rater.scale.top for rater in raters.values() if rater.scale is not None]
        like = max(tops, default=JUDGE_TOP) if reference and name == reference[0] else None
        scale, note = make_scale(name, grades_D, lists, top=settings.tops.get(own), relevant=settings.relevant.get(own), like=like)
        raters[name] = Rater(name, grades_D, scale, missing, elsewhere)
        notes += [note] if note else []
    return raters, notes


def _check_names(settings: AgreementSettings, raters: Mapping[str, Judged]) -> None:
    scaled = set(settings.tops) | set(settings.relevant)
    unknown = sorted((scaled | set(settings.ranks)) - set(raters))
    if unknown:
        what = "a scale is given for" if unknown[0] in scaled else "ranks only are taken from"
        raise ConfigError(f"{what} {unknown[0]!r}, which is none of: {', '.join(raters)}")
    both = sorted(scaled & set(settings.ranks))
    if both:
        raise ConfigError(f"{both[0]!r} is to give ranks only and has a scale as well; choose one")


def _verdicts(found: Sequence[Mapping[str, Any]], swapped: Mapping[str, Any]) -> dict[str, Any]:
    """One verdict a judge that was held against a reference."""
    again = {item["a"]: item for item in found if item["kind"] == "again"}
    return {
        item["b"]: verdict(item, again=again.get(item["b"]), swap=swapped.get(item["b"])) for item in found if item["kind"] == "reference"
    }


def _data(lists: Lists, kept: Sequence[RankingExample]) -> dict[str, Any]:
    return {
        "lists": len(kept),
        "documents": len(lists.list_D),
        "sources": dict(sorted(Counter(lists.sources_Q).items())),
        "not_judged": lists.not_judged,
        "units": int(lists.unit_Q.max()) + 1,
    }


def _counts(rater: Rater) -> dict[str, Any]:
    missing = int(np.isnan(rater.grades_D).sum())
    return {
        "graded": len(rater.grades_D) - missing,
        "missing": missing,
        "lists_without_row": rater.lists_missing,
        "rows_for_other_lists": rater.elsewhere,
    }


def _units(kept: Sequence[RankingExample]) -> str:
    return "groups" if any(example.group is not None for example in kept) else "lists"

"""Which weight of the consistency term to take, from the dev rows of runs that differ in nothing else; and how far to trust the answer.

Of each run the best converged checkpoint by quality. A weight is in the band if its quality is behind the best by no more than one standard
error of that difference, which is bootstrapped over dev queries (groups of queries together), not assumed. Within the band the weight whose
orders disagree least is taken. Runs whose scores have collapsed are left out: equal scores disagree with nobody.

The protocol of arXiv 2608.26762 has a constant in place of the standard error and takes the largest weight in the band; docs/papers.md.
Answers: high, low (with what speaks against it) or abstain. Reads rows of `training.dev.ViewDevSet`; knows no models and no files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from steadyrank import seeds
from steadyrank.errors import InputError, unknown_name

DISAGREEMENTS = ("tau_psi", "variance")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Rules:
    """What counts as converged, collapsed and enough."""

    disagreement: str = "tau_psi"
    """What is made small: tau_psi (of rankings; nothing to gain from small scores) or variance (of scores)."""
    converged: float = 0.4
    """Checkpoints before this share of a run's steps are passed over."""
    collapsed: float = 0.01
    """A run whose score SD inside a list falls below this is left out..."""
    collapsed_share: float = 0.2
    """... and one below this share of the SD of the run of best quality."""
    resamples: int = 2_000
    """Of the bootstrap."""
    enough_queries: int = 50
    """With fewer dev queries an answer is `low`; with fewer than a quarter of them there is none."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.disagreement not in DISAGREEMENTS:
            raise unknown_name("disagreement", self.disagreement, DISAGREEMENTS)


@dataclass(frozen=True)
class Weighed:
    """One weight: its checkpoint and what speaks for it. `behind` is the quality lost against the best, `behind_se` its standard error."""

    weight: float
    step: int | None
    quality: float
    quality_se: float
    disagreement: float
    score_sd: float
    behind: float = math.nan
    behind_se: float = math.nan
    in_band: bool = False
    left_out: str | None = None


@dataclass(frozen=True)
class LambdaChoice:
    """The answer. `reasons` are sentences; those that speak against it come first."""

    answer: Literal["high", "low", "abstain"]
    weight: float | None
    step: int | None
    reasons: tuple[str, ...]
    table: tuple[Weighed, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values; numbers that are not known are null."""
        plain = asdict(self)
        plain["table"] = [
            {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
            for row in plain["table"]
        ]
        return plain

    def lines(self) -> list[str]:
        """The answer in words."""
        if self.weight is None:
            return ["lambda: no answer", *self.reasons]
        return [f"lambda {self.weight:g} at step {self.step} (confidence: {self.answer})", *self.reasons]


def select_lambda(runs: Mapping[float, Sequence[Row]], rules: Rules | None = None) -> LambdaChoice:
    """The weight to take, from `weight -> dev rows` of its run."""
    rules = rules or Rules()
    if not runs:
        raise InputError("hold nothing; give the dev rows of one run for each weight", field="runs")
    ids = _ids(runs)
    found = {weight: _checkpoint(rows, rules) for weight, rows in sorted(runs.items())}
    table, usable = _usable(found, rules)
    warnings = [f"lambda {row.weight:g} is left out: {row.left_out}" for row in table if row.left_out]
    enough = len(ids) >= rules.enough_queries / 4
    if len(usable) < 2 or 2 * len(usable) < len(runs) or not enough:
        why = "too few runs are left to compare" if enough else f"{len(ids)} dev queries are too few"
        return LambdaChoice("abstain", None, None, (f"no weight is chosen: {why}", *warnings), tuple(table))
    best = max(usable, key=lambda weight: (_mean(found[weight], "quality"), -weight))
    groups = _groups(found[best])
    table = [row if row.left_out else _against(row, found, best, groups, rules) for row in table]
    band = [row for row in table if row.in_band]
    chosen = min(band, key=lambda row: (row.disagreement, row.weight))
    warnings += _doubts(chosen, band, table, found, runs, groups, rules, num_queries=len(ids))
    reasons = (
        f"{len(band)} of {len(table)} weights are within one standard error of the best quality "
        f"({_mean(found[best], 'quality'):.4f} at lambda {best:g})",
        f"among them lambda {chosen.weight:g} disagrees least ({rules.disagreement} {chosen.disagreement:.4f}, "
        f"quality {chosen.quality:.4f}, {chosen.behind:.4f} +- {chosen.behind_se:.4f} behind)",
    )
    return LambdaChoice("low" if warnings else "high", chosen.weight, chosen.step, (*warnings, *reasons), tuple(table))


def bootstrap_se(values: Sequence[float] | np.ndarray, groups: Sequence[str], *, resamples: int = 2_000, seed: int = 0) -> float:
    """Standard error of the mean of `values`: SD of the means of samples of whole groups, drawn with replacement; nan for one group."""
    return float(_means(np.asarray(values, dtype=np.float64), groups, resamples=resamples, seed=seed).std(ddof=1))


def _means(values_N: np.ndarray, groups: Sequence[str], *, resamples: int, seed: int) -> np.ndarray:
    _, member_N = np.unique(np.asarray(groups), return_inverse=True)
    sums_G, counts_G = np.bincount(member_N, values_N), np.bincount(member_N)
    if len(sums_G) < 2:
        return np.full(2, np.nan)
    drawn_RG = seeds.stream(seed, "select lambda").integers(len(sums_G), size=(resamples, len(sums_G)))
    return sums_G[drawn_RG].sum(1) / counts_G[drawn_RG].sum(1)


def _ids(runs: Mapping[float, Sequence[Row]]) -> list[str]:
    """The dev queries, which must be the same in all rows."""
    first: list[str] | None = None
    for weight, rows in runs.items():
        for row in rows:
            if "per_query" not in row:
                raise InputError(
                    f"of lambda {weight:g} hold no values of single queries; only runs of scorers of whole lists can be compared",
                    field="runs",
                )
            first = first if first is not None else list(row["per_query"]["ids"])
            if list(row["per_query"]["ids"]) != first:
                raise InputError(f"of lambda {weight:g} were measured on other dev queries; runs must share them", field="runs")
    return first or []


def _checkpoint(rows: Sequence[Row], rules: Rules) -> Row | None:
    """The converged row of best quality, the earliest among equals."""
    last = max((row["step"] for row in rows), default=0)
    converged = [row for row in rows if row["step"] > 0 and row["step"] >= rules.converged * last]
    return max(converged, key=lambda row: (_mean(row, "quality"), -row["step"]), default=None)


def _usable(found: Mapping[float, Row | None], rules: Rules) -> tuple[list[Weighed], list[float]]:
    """(a line for each weight, the weights whose scores have not collapsed)."""
    known = {weight: row for weight, row in found.items() if row is not None}
    wide = max(known.values(), key=lambda row: _mean(row, "quality"), default=None)
    floor = max(rules.collapsed, rules.collapsed_share * wide["score_sd"]) if wide is not None else rules.collapsed
    table, usable = [], []
    for weight, row in found.items():
        if row is None:
            table.append(Weighed(weight, None, math.nan, math.nan, math.nan, math.nan, left_out="its run has no converged evaluation"))
            continue
        why = f"its scores have collapsed (SD {row['score_sd']:.3g} inside a list)" if row["score_sd"] < floor else None
        quality_N, groups = _values(row, "quality"), _groups(row)
        error = bootstrap_se(_known(quality_N), _kept(groups, quality_N), resamples=rules.resamples, seed=rules.seed)
        line = Weighed(
            weight, row["step"], _mean(row, "quality"), error, _mean(row, rules.disagreement), row["score_sd"], left_out=why
        )  # fmt: skip
        table.append(line)
        if why is None:
            usable.append(weight)
    return table, usable


def _against(row: Weighed, found: Mapping[float, Row | None], best: float, groups: Sequence[str], rules: Rules) -> Weighed:
    """With the paired difference to the best filled in."""
    gap_N = _values(found[best], "quality") - _values(found[row.weight], "quality")
    behind = float(np.nanmean(gap_N))
    error = bootstrap_se(_known(gap_N), _kept(groups, gap_N), resamples=rules.resamples, seed=rules.seed)
    return Weighed(**{**asdict(row), "behind": behind, "behind_se": error, "in_band": row.weight == best or behind <= error})


def _doubts(
    chosen: Weighed,
    band: Sequence[Weighed],
    table: Sequence[Weighed],
    found: Mapping[float, Row | None],
    runs: Mapping[float, Sequence[Row]],
    groups: Sequence[str],
    rules: Rules,
    *,
    num_queries: int,
) -> list[str]:
    """What speaks against the choice."""
    out = []
    if num_queries < rules.enough_queries:
        out.append(f"{num_queries} dev queries are few; {rules.enough_queries} or more would settle it better")
    if chosen.weight == max(row.weight for row in table) and len(table) > 1:
        out.append(f"lambda {chosen.weight:g} is the largest that was tried; a larger one may be better")
    last = max(row["step"] for row in runs[chosen.weight])
    if sum(row["step"] >= rules.converged * last for row in runs[chosen.weight]) < 3:
        out.append(f"the run of lambda {chosen.weight:g} has fewer than 3 converged evaluations")
    start = next((row for row in runs[chosen.weight] if row["step"] == 0), None)
    if start is not None and _mean(start, "quality") >= chosen.quality:
        out.append(f"training did not improve quality ({_mean(start, 'quality'):.4f} before it)")
    for row in band:
        gap_N = _values(found[row.weight], rules.disagreement) - _values(found[chosen.weight], rules.disagreement)
        kept = _kept(groups, gap_N)
        if (
            row.weight != chosen.weight
            and not np.quantile(_means(_known(gap_N), kept, resamples=rules.resamples, seed=rules.seed), 0.025) > 0
        ):
            out.append(f"lambda {row.weight:g} is not told apart from it by {rules.disagreement} ({row.disagreement:.4f})")
    return out


def _values(row: Row | None, name: str) -> np.ndarray:
    assert row is not None
    return np.array([math.nan if value is None else value for value in row["per_query"][name]], dtype=np.float64)


def _groups(row: Row | None) -> list[str]:
    assert row is not None
    return list(row["per_query"].get("groups") or row["per_query"]["ids"])


def _mean(row: Row | None, name: str) -> float:
    values_N = _values(row, name)
    return float(np.nanmean(values_N)) if np.isfinite(values_N).any() else math.nan


def _known(values_N: np.ndarray) -> np.ndarray:
    return values_N[np.isfinite(values_N)]


def _kept(groups: Sequence[str], values_N: np.ndarray) -> list[str]:
    return [group for group, value in zip(groups, values_N, strict=True) if math.isfinite(value)]

"""Labels in [0, 1] of every candidate, with where they come from: what the regression arms learn.

    self_distillation   the scores of the student before training, in T passes, each list laid anew in each
    teacher             another scorer's, mapped to [0, 1]: `sigmoid` of its utility, `rank` within the list, or `platt`, a sigmoid whose
                        slope and offset are fitted on grades (of training lists, never of dev or test)
    grades              the grades of the lists over the highest grade; an unjudged candidate counts as 0, and is counted

The first pass lays every list in its own order, the first stage's; the others draw orders from streams named by seed and example, so that
no two lists share them. An objective reads the first pass or the mean over all (`labels: first | mean`).
A label set is kept as JSON lines `steadyrank.labels/1`, each line with its provenance and a fingerprint of the pool that it belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadyrank import files, lists, seeds
from steadyrank.data.presenting import presentations
from steadyrank.errors import ConfigError, InputError, unknown_name
from steadyrank.records import Presentation, RankingExample
from steadyrank.rewards.targets import rank_normalize
from steadyrank.training.prepare import utilities

SCHEMA = "steadyrank.labels/1"
KINDS = ("self_distillation", "teacher", "grades")
MAPPINGS = ("sigmoid", "rank", "platt")
_NEWTON_STEPS = 100


@dataclass(frozen=True)
class Labels:
    """Labels of some lists. `passes[id][t]` are those of pass t, canonical order; `pools[id]` names the pool they belong to."""

    kind: str
    passes: Mapping[str, tuple[tuple[float, ...], ...]]
    pools: Mapping[str, str]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def rows(self, examples: Sequence[RankingExample], *, which: str = "mean") -> list[list[float]]:
        """One row of labels an example: those of the first pass, or the mean over passes."""
        out = []
        for example in examples:
            found = self.passes.get(example.id)
            if found is None:
                raise InputError(f"hold nothing for example {example.id!r}; make them again for these lists", field="labels")
            if self.pools[example.id] != pool_print(example):
                raise InputError(f"of example {example.id!r} belong to another pool; make them again for these lists", field="labels")
            out.append(list(found[0]) if which == "first" else [sum(column) / len(column) for column in zip(*found, strict=True)])
        return out

    def covers(self, examples: Sequence[RankingExample]) -> bool:
        """Whether every example has labels of the same pool."""
        return all(self.pools.get(example.id) == pool_print(example) for example in examples)

    @property
    def num_passes(self) -> int:
        """Passes of every list: the fewest there are."""
        return min((len(rows) for rows in self.passes.values()), default=0)

    @property
    def fingerprint(self) -> str:
        """Changes whenever a label does."""
        return files.fingerprint([self.kind, sorted((name, rows) for name, rows in self.passes.items())])

    def write(self, path: str | Path) -> None:
        """JSON lines, one a list."""
        files.write_jsonl(
            path,
            (
                {
                    "schema": SCHEMA,
                    "example_id": name,
                    "kind": self.kind,
                    "passes": [list(row) for row in rows],
                    "pool": self.pools[name],
                    "provenance": dict(self.provenance),
                }
                for name, rows in self.passes.items()
            ),
        )


def read_labels(path: str | Path) -> Labels:
    """What `Labels.write` wrote."""
    passes: dict[str, tuple[tuple[float, ...], ...]] = {}
    pools: dict[str, str] = {}
    head: dict[str, Any] | None = None
    for line, row in files.read_jsonl(path):
        if row.get("schema") != SCHEMA:
            raise InputError(f"is {row.get('schema')!r}; expected {SCHEMA!r}", path=path, line=line, field="schema")
        lacking = next((name for name in ("example_id", "kind", "passes", "pool", "provenance") if name not in row), None)
        if lacking is not None:
            raise InputError("is missing; labels are written by steadyrank, make them again", path=path, line=line, field=lacking)
        head = head or row
        if (row["kind"], row["provenance"]) != (head["kind"], head["provenance"]):
            raise InputError(
                "differs from that of the first line; a file holds labels of one origin", path=path, line=line, field="provenance"
            )
        passes[row["example_id"]] = _checked(row["passes"], path=path, line=line)
        pools[row["example_id"]] = row["pool"]
    if head is None:
        raise InputError("holds no labels", path=path)
    return Labels(head["kind"], passes, pools, head["provenance"])


def _checked(rows: Any, *, path: str | Path, line: int) -> tuple[tuple[float, ...], ...]:
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows):
        raise InputError("must hold one or more lists of equal length", path=path, line=line, field="passes")
    for number, row in enumerate(rows):
        for place, value in enumerate(row):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
                raise InputError(f"is {value!r}; a label lies in [0, 1]", path=path, line=line, field=f"passes[{number}][{place}]")
    return tuple(tuple(float(value) for value in row) for row in rows)


def grade_labels(examples: Sequence[RankingExample], *, max_grade: float | None = None) -> Labels:
    """Grades over the highest grade of all these lists, or over `max_grade`."""
    for example in examples:
        if example.relevance is None:
            raise InputError(f"of example {example.id!r} are missing; labels of kind 'grades' need them", field="relevance")
    top = max_grade if max_grade is not None else max((grade for example in examples for grade in example.relevance or ()), default=0.0)
    if not top > 0:
        raise InputError("hold no grade above 0, so there is nothing to learn from", field="relevance")
    unjudged = sum(grade < 0 for example in examples for grade in example.relevance or ())
    above = sum(grade > top for example in examples for grade in example.relevance or ())
    rows = {example.id: (tuple(min(max(grade, 0.0), top) / top for grade in example.relevance or ()),) for example in examples}
    return Labels("grades", rows, _pools(examples), {"max_grade": top, "unjudged_candidates": unjudged, "grades_above_max": above})


def scorer_labels(
    scorer: Any,
    examples: Sequence[RankingExample],
    *,
    kind: str = "teacher",
    passes: int = 1,
    mapping: str = "sigmoid",
    seed: int = 0,
    scores: Sequence[Sequence[Any]] | None = None,
) -> Labels:
    """Labels from a scorer's scores in `passes` presentations of each list.

    scores: ScoredLists of each example, one a pass, where they are at hand already.
    """
    if mapping not in MAPPINGS:
        raise unknown_name("label mapping", mapping, MAPPINGS)
    if kind not in KINDS or kind == "grades":
        raise unknown_name("labels of a scorer, kind", kind, [name for name in KINDS if name != "grades"])
    if passes < 1:
        raise ConfigError(f"labels.passes is {passes}; at least one pass is needed")
    if scores is None:
        scores = scorer.score_presentations(examples, [laid_passes(example, passes, seed=seed) for example in examples])
    values = [[utilities(scored) for scored in rows] for rows in scores]
    provenance = {
        "scorer": scorer.name,
        "fingerprint": getattr(scorer, "fingerprint", None),
        "scale": scorer.scale,
        "mapping": mapping,
        "num_passes": len(values[0]) if values else 0,
        "orders": "first stage, then drawn by (seed, example)",
        "seed": seed,
    }
    if mapping == "platt":
        slope, offset = fit_platt([rows[0] for rows in values], examples)
        values = [[[slope * value + offset for value in row] for row in rows] for rows in values]
        provenance |= {"slope": slope, "offset": offset}
    mapped = _ranked if mapping == "rank" else _sigmoid
    found = {example.id: tuple(mapped(row) for row in rows) for example, rows in zip(examples, values, strict=True)}
    return Labels(kind, found, _pools(examples), provenance)


def laid_passes(example: RankingExample, passes: int, *, seed: int) -> list[Presentation]:
    """The presentations of a list's passes: its own order, then orders drawn for it."""
    if passes == 1:
        return [Presentation()]
    return [Presentation(), *presentations(example, passes - 1, seed=seeds.digest(seed, "labels") >> 1)]


def pool_print(example: RankingExample) -> str:
    """Names a query with its pool: labels of another pool are refused."""
    return files.fingerprint([example.query, example.instruction, example.documents])[:16]


def _pools(examples: Sequence[RankingExample]) -> dict[str, str]:
    out = {example.id: pool_print(example) for example in examples}
    if len(out) != len(examples):
        raise InputError("repeat among the training lists; labels are kept by id", field="id")
    return out


def _sigmoid(row: Sequence[float]) -> tuple[float, ...]:
    # the smaller exponential, so that neither side overflows
    return tuple(1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value)) for value in row)


def _ranked(row: Sequence[float]) -> tuple[float, ...]:
    values_BK, mask_BK = lists.pack([row], dtype=torch.float64)
    return tuple(rank_normalize(values_BK, mask_BK)[0].tolist())


def fit_platt(utilities_rows: Sequence[Sequence[float]], examples: Sequence[RankingExample]) -> tuple[float, float]:
    """(slope, offset) of the sigmoid(slope * t + offset) closest to grade / highest grade in cross entropy (Platt 1999).

    Only judged candidates are read; fractions are targets as they are. A small ridge
    on the slope keeps a perfectly separating teacher finite.
    """
    pairs = [
        (value, grade)
        for row, example in zip(utilities_rows, examples, strict=True)
        for value, grade in zip(row, example.relevance or (), strict=False)
        if grade >= 0
    ]
    if not pairs:
        raise ConfigError("mapping 'platt' is fitted on grades, and the training lists have none; use sigmoid or rank")
    t_N, grade_N = np.asarray(pairs, dtype=np.float64).T
    if grade_N.max() <= 0 or grade_N.min() == grade_N.max():
        raise ConfigError("mapping 'platt' is fitted on grades, and all grades are equal; use sigmoid or rank")
    y_N, scale = grade_N / grade_N.max(), t_N.std() or 1.0
    design_N2 = np.stack([(t_N - t_N.mean()) / scale, np.ones_like(t_N)], axis=1)
    weights_2, ridge_22 = np.zeros(2), np.diag([1e-3, 1e-9])
    for _ in range(_NEWTON_STEPS):
        p_N = 1 / (1 + np.exp(-np.clip(design_N2 @ weights_2, -500, 500)))
        gradient_2 = design_N2.T @ (p_N - y_N) + ridge_22 @ weights_2
        step_2 = np.linalg.solve(design_N2.T @ (design_N2 * (p_N * (1 - p_N) + 1e-12)[:, None]) + ridge_22, gradient_2)
        weights_2 = weights_2 - step_2 * min(1.0, 4.0 / max(float(np.abs(step_2).max()), 1e-12))
        if np.abs(step_2).max() < 1e-10:
            break
    slope = float(weights_2[0] / scale)
    return slope, float(weights_2[1] - slope * t_N.mean())

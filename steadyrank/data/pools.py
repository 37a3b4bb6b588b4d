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


@dataclass(frozen=True)
class Pools:
    """Examples, and what was left out or cannot tell systems apart."""

    examples: list[RankingExample]
    counts: dict[str, int]


def pool_fingerprint(example: RankingExample) -> str:
    """A hash of query, instruction and candidate texts in canonical order; stands beside a result."""
    return fingerprint([example.query, example.instruction, example.documents])


def pools_from_folder(
    folder: str | Path, *, split: str = "test", run: str | Path | None = None, top_k: int = 100, seed: int = 0, keep_order: bool = False
) -> Pools:
    """One pool a judged query of a BEIR folder, from a TREC run or from BM25."""
    data = open_beir(folder, split=split)
    ranked = _from_run(read_run(run), data, run) if run is not None else _from_bm25(data, top_k)
    return freeze(data, {query: documents[:top_k] for query, documents in ranked.items()}, split=split, seed=seed, keep_order=keep_order)


def freeze(data: BeirFolder, ranked: Mapping[str, Sequence[str]], *, split: str = "test", seed: int = 0, keep_order: bool = False) -> Pools:
    """Examples of the judged queries with these candidates; unjudged candidates get grade 0, as trec_eval has it."""
    examples = []
    counts = dict.fromkeys(("queries", "without_candidates", "without_a_positive", "all_one_grade", "positives_missed"), 0)
    for query, judged in data.qrels.items():
        counts["queries"] += 1
        documents = list(ranked.get(query, ()))
        counts["positives_missed"] += sum(grade > 0 and document not in documents for document, grade in judged.items())
        if not documents:
            counts["without_candidates"] += 1
            continue
        if not keep_order:
            documents = [documents[place] for place in seeds.permutation(len(documents), seed, "pool", query)]
        grades = tuple(judged.get(document, 0.0) for document in documents)
        counts["without_a_positive"] += not any(grade > 0 for grade in grades)
        counts["all_one_grade"] += len(set(grades)) == 1
        examples.append(
            RankingExample(
                data.queries[query], tuple(data.corpus[document] for document in documents), grades,
                instruction=data.instructions.get(query), id=query, split=split,
            )
        )  # fmt: skip
    return Pools(examples, counts)


def _from_run(run: Mapping[str, Mapping[str, float]], data: BeirFolder, path: str | Path) -> dict[str, list[str]]:
    for query, scores in run.items():
        unknown = next((document for document in scores if document not in data.corpus), None)
        if unknown is not None:
            raise InputError(f"lists document {unknown!r} for query {query!r}, which is not in the corpus", path=path)
    return {query: sorted(scores, key=lambda document: (-scores[document], document)) for query, scores in run.items()}


def _from_bm25(data: BeirFolder, top_k: int) -> dict[str, list[str]]:
    names = list(data.corpus)
    index = Bm25Index([candidate.content for candidate in data.corpus.values()])
    return {query: [names[place] for place, _ in index.search(data.queries[query], top_k)] for query in data.qrels}

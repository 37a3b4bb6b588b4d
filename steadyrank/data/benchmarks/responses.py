"""Prompts with candidate responses: RM-Bench, SummEval-OP, LLMBar.

RM-Bench (Liu et al. 2024): three better and three worse responses a prompt, grades 3 and 0. LLMBar (Zeng et al. 2024): two outputs, the
preferred one 3, the other 0. SummEval-OP (Siledar et al. 2024): summaries of a product's reviews, graded by people on seven dimensions
from 1 to 5; the grade is their mean, or one dimension. Files list the better ones first (or the human summary), so candidates are
shuffled by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyrank.data.benchmarks.rows import examples_of, shuffled, take
from steadyrank.errors import InputError
from steadyrank.files import fingerprint
from steadyrank.records import Candidate, RankingExample

BETTER, WORSE = 3.0, 0.0
QUALITY = "Rate each response by how well it answers the prompt."
SUMMARY = "Rate each summary by how well it covers what the reviews say about the product."


def read_rm_bench(path: str | Path, *, seed: int | None = 0) -> list[RankingExample]:
    """A JSON array of `id`, `prompt`, `chosen` [texts] and `rejected` [texts]."""

    def parse(number: int, row: Mapping[str, Any]) -> RankingExample:
        chosen, rejected = take(row, "chosen", list, of=str), take(row, "rejected", list, of=str)
        named = row.get("id", number)
        candidates = [Candidate(text, id=f"chosen-{place}") for place, text in enumerate(chosen)]
        candidates += [Candidate(text, id=f"rejected-{place}") for place, text in enumerate(rejected)]
        example = RankingExample(
            take(row, "prompt", str),
            tuple(candidates),
            relevance=(BETTER,) * len(chosen) + (WORSE,) * len(rejected),
            instruction=QUALITY,
            id=f"rm-bench-{named}",
            source="rm-bench",
            extra={name: row[name] for name in ("subset",) if name in row},
        )
        return shuffled(example, seed=seed)

    return examples_of(path, parse)


def read_llmbar(path: str | Path, *, seed: int | None = 0) -> list[RankingExample]:
    """A JSON array of `input`, `output_1`, `output_2` and `label` (1 or 2); rows of one input share a group."""
    name = Path(path).stem

    def parse(number: int, row: Mapping[str, Any]) -> RankingExample:
        label = row.get("label")
        if isinstance(label, bool) or label not in (1, 2):
            raise InputError(f"is {label!r}; the preferred output is 1 or 2", field="label")
        prompt = take(row, "input", str)
        example = RankingExample(
            prompt,
            tuple(Candidate(take(row, f"output_{place}", str), id=f"output-{place}") for place in (1, 2)),
            relevance=tuple(BETTER if label == place else WORSE for place in (1, 2)),
            instruction=QUALITY,
            id=f"llmbar-{name}-{number}",
            source=f"llmbar/{name}",
            group=f"llmbar-{fingerprint(prompt)}",
        )
        return shuffled(example, seed=seed)

    return examples_of(path, parse)


def read_summeval_op(path: str | Path, *, dimension: str | None = None, seed: int | None = 0) -> list[RankingExample]:
    """JSON lines of `reviews` {name: text} and `summaries` {system: {summary, dimensions {name: grade}}}.

    dimension: grade by this one alone (`Fluency`, `Coherence`, ...) instead of the mean. The query is all reviews, one a line.
    """

    def parse(number: int, row: Mapping[str, Any]) -> RankingExample:
        reviews, summaries = take(row, "reviews", dict), take(row, "summaries", dict)
        texts = [take(reviews, name, str) for name in reviews]
        candidates, grades = [], []
        for system, held in summaries.items():
            if not isinstance(held, dict):
                raise InputError(f"is a {type(held).__name__}; it must hold summary and dimensions", field=f"summaries.{system}")
            candidates.append(Candidate(take(held, "summary", str), id=system))
            grades.append(_grade(take(held, "dimensions", dict), dimension, field=f"summaries.{system}.dimensions"))
        example = RankingExample(
            "\n".join(texts),
            tuple(candidates),
            relevance=tuple(grades),
            instruction=SUMMARY,
            id=f"summeval-op-{number}",
            source="summeval-op",
        )
        return shuffled(example, seed=seed)

    return examples_of(path, parse)


def _grade(dimensions: Mapping[str, Any], dimension: str | None, *, field: str) -> float:
    if dimension is not None and dimension not in dimensions:
        raise InputError(f"lacks {dimension!r}; it holds {', '.join(dimensions)}", field=field)
    values = [dimensions[dimension]] if dimension is not None else list(dimensions.values())
    if not values or any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
        raise InputError(f"is {dict(dimensions)!r}; every dimension must be a number", field=field)
    return float(sum(values) / len(values))

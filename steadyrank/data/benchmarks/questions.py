"""Multi-hop questions with passages, of the HotpotQA distractor form (Yang et al. 2018); 2WikiMultihopQA files share it.

One example a question: passages are candidates (title and text), the ones that hold supporting facts have grade 1, all others 0,
`answers` is the one accepted answer. Passages keep the file's order unless a seed is given. Questions with any number of passages are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyrank.data.benchmarks.rows import examples_of, shuffled, take
from steadyrank.errors import InputError
from steadyrank.records import Candidate, RankingExample

SUPPORT = 1.0


def read_hotpotqa(path: str | Path, *, seed: int | None = None) -> list[RankingExample]:
    """The questions of a file of `_id`, `question`, `answer`, `context` [[title, sentences]] and `supporting_facts` [[title, sentence]]."""

    def parse(number: int, row: Mapping[str, Any]) -> RankingExample:
        passages = take(row, "context", list, of=list)
        facts = take(row, "supporting_facts", list, of=list)
        for place, passage in enumerate(passages):
            if len(passage) != 2 or not isinstance(passage[0], str) or not isinstance(passage[1], list):
                raise InputError("is not [title, sentences]", field=f"context[{place}]")
        titles = {fact[0] for fact in facts if fact}
        missing = titles - {title for title, _ in passages}
        if missing:
            raise InputError(f"names passages that the context lacks: {sorted(missing)[:3]}", field="supporting_facts")
        candidates = tuple(
            Candidate("".join(sentences).strip(), id=str(place), title=title) for place, (title, sentences) in enumerate(passages)
        )
        example = RankingExample(
            take(row, "question", str),
            candidates,
            relevance=tuple(SUPPORT if title in titles else 0.0 for title, _ in passages),
            id=take(row, "_id", str),
            source="hotpotqa",
            answers=(take(row, "answer", str),),
            extra={name: row[name] for name in ("type", "level") if name in row},
        )
        return shuffled(example, seed=seed)

    return examples_of(path, parse)

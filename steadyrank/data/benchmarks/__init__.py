"""Readers of public benchmark files into `RankingExample`s: questions with passages and answers, prompts with responses and grades.

    examples = read_benchmark("hotpotqa", "hotpot.json")

The files are the user's own; nothing is fetched. Where a file's order gives the grade away (better responses first), candidates are
shuffled by a stream of seed and example id; ids keep where a candidate stood. See each reader for grades and groups.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steadyrank.names import find
from steadyrank.records import RankingExample

BENCHMARKS = {  # name -> reader(path, *, seed=0, ...) -> examples
    "hotpotqa": "steadyrank.data.benchmarks.questions:read_hotpotqa",
    "rm-bench": "steadyrank.data.benchmarks.responses:read_rm_bench",
    "summeval-op": "steadyrank.data.benchmarks.responses:read_summeval_op",
    "llmbar": "steadyrank.data.benchmarks.responses:read_llmbar",
}
__all__ = ["BENCHMARKS", "read_benchmark"]


def read_benchmark(name: str, path: str | Path, **options: Any) -> list[RankingExample]:
    """The examples of one benchmark file."""
    return find("benchmark", name, BENCHMARKS)(path, **options)

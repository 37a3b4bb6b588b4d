"""Scoring: ours against `sentence_transformers.CrossEncoder.predict`, the same model and pairs, end to end with tokenising.

The other side gets its best batch size of those tried, and bf16 weights where we run bf16 (its fastest form of that dtype).
"""

from __future__ import annotations

from typing import Any

from steadyrank.benchmarks.timing import BenchResult, interleave, ratio
from steadyrank.data.models import fetch
from steadyrank.data.selecting import choose, examples_of
from steadyrank.names import require
from steadyrank.scoring.cross_encoder import CrossEncoder as OurCrossEncoder

BATCH_SIZES = (16, 32, 64)


def run(*, lists: int = 24, rounds: int = 5, precisions: tuple[str, ...] = ("fp32", "bf16"), seed: int = 0) -> list[BenchResult]:
    """One result a dtype, on lists of the packaged test split (mixed lengths)."""
    examples = choose(examples_of("packaged:test"), lists, seed=seed)
    return [_one(examples, rounds, precision) for precision in precisions]


def _one(examples: list[Any], rounds: int, precision: str) -> BenchResult:
    import torch

    require("sentence_transformers", "the benchmark")
    from sentence_transformers import CrossEncoder

    folder = str(fetch("teacher"))
    ours = OurCrossEncoder.load(folder, precision=precision, max_length=256)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    theirs = CrossEncoder(folder, max_length=256, model_kwargs={"dtype": dtype}, device="cpu")
    pairs = [(ours.render_query(example.query, example.instruction), document) for example in examples for document in example.documents]
    contestants: dict[str, Any] = {"steadyrank": lambda: ours.score_examples(examples)}
    for size in BATCH_SIZES:
        contestants[f"CrossEncoder.predict, batch {size}"] = lambda size=size: theirs.predict(
            pairs, batch_size=size, show_progress_bar=False
        )
    timings = interleave(contestants, rounds=rounds)
    best = min((timings[name] for name in contestants if name != "steadyrank"), key=lambda timing: timing.median)
    setting = {
        "pairs": len(pairs),
        "model": "teacher (12 layers)",
        "dtype": precision,
        "threads": torch.get_num_threads(),
        "rounds": rounds,
    }
    return BenchResult("scoring", setting, tuple(timings.values()), (ratio(timings["steadyrank"], best),), {}, "pairs", len(pairs))

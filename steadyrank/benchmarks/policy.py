"""The share of a training step that is not the model: sampling, reward, advantage and loss, and the exact expectation.

The step is a real one: forward and backward of the compact student over all candidates, at the sizes named.
"""

from __future__ import annotations

from typing import Any

import torch

from steadyrank import objectives, policy
from steadyrank.benchmarks.timing import BenchResult, Timing, interleave
from steadyrank.data.models import fetch
from steadyrank.data.selecting import examples_of
from steadyrank.records import RankingExample
from steadyrank.scoring.base import Pair
from steadyrank.scoring.cross_encoder import CrossEncoder
from steadyrank.seeds import stream


def run(
    *, lists: int = 64, candidates: int = 21, samples: int = 8, rounds: int = 3, precision: str = "bf16", seed: int = 0
) -> list[BenchResult]:
    """Shares of the model's step taken by `a3` and by `exact`, forward and backward."""
    step = _model_step(lists, candidates, precision, seed)
    sampled = objectives.build("a3", num_samples=samples)
    exact = objectives.build("exact")
    timings = interleave(
        {f"a3, {samples} rankings": _maths(sampled, lists, candidates, samples), "exact": _maths(exact, lists, candidates, 0)},
        rounds=10 * rounds,
    )
    timings |= interleave({"model step": step}, rounds=1, warm_up=0)
    model = timings["model step"]
    shares = {f"{name}, share of the step": _share(timing, model) for name, timing in timings.items() if name != "model step"}
    setting = {
        "lists": lists,
        "candidates": candidates,
        "model": "6-layer MiniLM student",
        "dtype": precision,
        "threads": torch.get_num_threads(),
    }
    return [BenchResult("ranking maths", setting, tuple(timings.values()), (), shares, "lists", lists)]


def _share(timing: Timing, model: Timing) -> float:
    return timing.median / (timing.median + model.median)


def _maths(objective: Any, lists: int, candidates: int, samples: int) -> Any:
    numbers = stream(0, "bench")
    scores = torch.tensor(numbers.normal(size=(lists, candidates)), dtype=torch.float32)
    teacher = torch.tensor(numbers.normal(size=(lists, candidates)), dtype=torch.float32)
    mask = torch.ones(lists, candidates, dtype=torch.bool)
    names = [str(place) for place in range(lists)]

    def work() -> None:
        noise = policy.gumbel_noise(names, [candidates] * lists, num_samples=samples, seed=0, step=0) if samples else None
        leaf = scores.clone().requires_grad_()
        objective(leaf, teacher, mask, noise_BGK=noise).total.backward()

    return work


def _model_step(lists: int, candidates: int, precision: str, seed: int) -> Any:
    student = CrossEncoder.load(str(fetch("teacher")), layers=[0, 2, 4, 7, 9, 11], max_length=256, precision=precision)
    documents = [document for example in examples_of("packaged:test") for document in example.documents]
    queries = [_pair_query(example) for example in examples_of("packaged:test")[:lists]]
    drawn = stream(seed, "bench-pairs").integers(len(documents), size=(lists, candidates))
    pairs = [Pair(query, documents[place], instruction) for (query, instruction), row in zip(queries, drawn, strict=True) for place in row]
    encoded = sorted(student.encode(pairs), key=lambda pair: len(pair.ids))

    def work() -> None:
        student.model.train()
        for start in range(0, len(encoded), 64):
            inputs = student.collate(encoded[start : start + 64])
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
                scores = student.forward(student.model, inputs)
            scores.sum().backward()
        student.model.zero_grad()

    return work


def _pair_query(example: RankingExample) -> tuple[str, str | None]:
    return example.query, example.instruction

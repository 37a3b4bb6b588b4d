"""Real questions and responses through the reader and preference consumers: a steady scorer, perturbed ones, the right and the blind."""

import numpy as np
import pytest

from steadyrank import load_scorer
from steadyrank.consumers import ExtractiveReader, PreferenceConsumer, ReaderConsumer
from steadyrank.data.benchmarks import read_benchmark
from steadyrank.seeds import stream

P = 4


def orders_of(examples):
    return [np.stack([stream(1, "orders", one.id, p).permutation(len(one.candidates)) for p in range(P)]) for one in examples]


def graded(examples, noise):
    """The grades with noise of this size, other noise in every presentation."""
    draws = [stream(2, "noise", one.id) for one in examples]
    return [
        np.array(one.relevance) + noise * draw.standard_normal((P, len(one.candidates))) for one, draw in zip(examples, draws, strict=True)
    ]


def bm25(examples):
    return [np.tile(scored.scores, (P, 1)) for scored in load_scorer("bm25").score_examples(examples)]


def test_hotpotqa_reader(shared_dir):
    examples = read_benchmark("hotpotqa", shared_dir / "data" / "hotpotqa" / "hotpot.json")[:150]
    consumer = ReaderConsumer(ExtractiveReader(), k=2)
    scored = (bm25(examples), graded(examples, 0.3), graded(examples, 30))
    steady, good, blind = (consumer.apply(one, examples, orders=orders_of(examples)) for one in scored)
    assert steady.mean("answer_flip") == steady.mean("context_flip") == 0.0
    assert steady.counts["calls"] == len(examples)
    assert steady.mean("has_gold") > 0.9
    assert good.mean("has_gold") > blind.mean("has_gold")
    assert 0 < good.mean("answer_flip") < blind.mean("answer_flip")
    assert good.mean("f1") > blind.mean("f1")


RESPONSES = [
    ("rm-bench", "rm-bench/chat_filtered.json", 129),
    ("summeval-op", "summeval-op/summeval-op.jsonl", 32),
    ("llmbar", "llmbar/LLMBar__Natural.json", 100),
    ("llmbar", "llmbar/LLMBar__Adversarial__Neighbor.json", 134),
]


@pytest.mark.parametrize(("name", "file", "amount"), RESPONSES, ids=[file for _, file, _ in RESPONSES])
def test_response_choice(shared_dir, name, file, amount):
    examples = read_benchmark(name, shared_dir / "data" / file)
    consumer = PreferenceConsumer()
    flat = [np.ones((P, len(one.candidates))) for one in examples]
    scored = (bm25(examples), graded(examples, 0.5), graded(examples, 300), flat)
    steady, good, blind, constant = (consumer.apply(one, examples, orders=orders_of(examples)) for one in scored)
    assert len(steady.values["top_flip"]) == amount
    without_overlap = np.mean([np.ptp(one) == 0 for one in scored[0]])  # all scores equal: left to the listing
    assert steady.mean("top_flip") <= without_overlap
    assert good.mean("quality") > blind.mean("quality")
    assert good.mean("pair_flip") < blind.mean("pair_flip")
    size = len(examples[0].candidates)
    for one in (blind, constant):
        assert one.mean("top_flip") == pytest.approx(1 - 1 / size, abs=0.06)
        assert one.mean("right") == pytest.approx(one.mean("chance"), abs=0.06)

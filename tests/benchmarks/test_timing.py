"""The contestants take turns, warm-up is thrown away, and ratios are paired by round. No figure is tested: those belong to a machine."""

import time

import pytest

from steadyrank.benchmarks import BENCHMARKS
from steadyrank.benchmarks.timing import BenchResult, Timing, interleave, ratio
from steadyrank.names import load


def test_contestants_take_turns_and_warm_up_is_dropped():
    calls = []
    timings = interleave({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3, warm_up=2)
    assert calls == ["a", "b"] * 5
    assert [len(timing.seconds) for timing in timings.values()] == [3, 3]


def test_seconds_are_those_of_the_work():
    timing = interleave({"sleep": lambda: time.sleep(0.02)}, rounds=2, warm_up=0)["sleep"]
    assert all(0.02 <= seconds < 0.2 for seconds in timing.seconds)


def test_ratio_pairs_the_rounds():
    fast, slow = Timing("ours", (1.0, 2.0, 4.0), 0.0), Timing("theirs", (2.0, 3.0, 12.0), 0.0)
    found = ratio(fast, slow)  # 2, 1.5, 3
    assert (found.median, found.low, found.high) == (2.0, 1.5, 3.0)


def test_a_result_shows_rate_and_load():
    timing = Timing("ours", (2.0,), 0.25)
    result = BenchResult("scoring", {"pairs": 10}, (timing,), (), {"share": 0.03}, "pairs", 10)
    text = "\n".join(result.lines())
    assert "5.0 pairs/s" in text and "0.25" in text and "3.00%" in text
    assert result.to_json()["timings"][0]["foreign_load"] == 0.25


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_is_there(name):
    assert callable(load(BENCHMARKS[name]))

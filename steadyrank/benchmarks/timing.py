"""Interleaved timing: the contestants take turns, so that what else the machine does falls on all of them alike."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of every round of one contestant, and the processor time that other processes took meanwhile."""

    name: str
    seconds: tuple[float, ...]
    foreign_load: float  # processors kept busy by others, on average

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times faster `fast` is than `slow`: median over the rounds, with the smallest and the largest."""

    fast: str
    slow: str
    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.fast} against {self.slow}: {self.median:.2f} times as fast [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True, slots=True)
class BenchResult:
    """What a benchmark measured; `lines` is for a person, `to_json` for a file."""

    title: str
    setting: Mapping[str, Any]
    timings: tuple[Timing, ...]
    ratios: tuple[Ratio, ...]
    shares: Mapping[str, float]
    unit: str
    amount: float  # units of work in a round

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        out = [self.title, "  " + ", ".join(f"{name} {value}" for name, value in self.setting.items())]
        out += [
            f"  {timing.name:<36} {timing.median:9.3f} s  {self.amount / timing.median:9.1f} {self.unit}/s"
            f"  foreign load {timing.foreign_load:.2f}"
            for timing in self.timings
        ]
        out += [f"  {ratio}" for ratio in self.ratios]
        out += [f"  {name}: {share:.2%}" for name, share in self.shares.items()]
        return out


def interleave(contestants: Mapping[str, Callable[[], Any]], *, rounds: int, warm_up: int = 1) -> dict[str, Timing]:
    """Each contestant once a round, in turn; the first `warm_up` rounds are thrown away."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    foreign: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds + warm_up):
        for name, work in contestants.items():
            with foreign_load() as load:
                start = time.perf_counter()
                work()
                elapsed = time.perf_counter() - start
            if turn >= warm_up:
                seconds[name].append(elapsed)
                foreign[name].append(load[0])
    return {name: Timing(name, tuple(seconds[name]), statistics.mean(foreign[name])) for name in contestants}


def ratio(fast: Timing, slow: Timing) -> Ratio:
    """Rounds are paired: a disturbance that lasts a round falls on both."""
    ratios = sorted(b / a for a, b in zip(fast.seconds, slow.seconds, strict=True))
    return Ratio(fast.name, slow.name, statistics.median(ratios), ratios[0], ratios[-1])


@contextmanager
def foreign_load() -> Iterator[list[float]]:
    """After the block, `[processors that other processes kept busy]`."""
    from steadyrank.names import require

    psutil = require("psutil", "the benchmark")
    out = [0.0]
    before, own, start = _busy(psutil), sum(os.times()[:4]), time.perf_counter()
    yield out
    elapsed = max(time.perf_counter() - start, 1e-9)
    out[0] = max(0.0, (_busy(psutil) - before - (sum(os.times()[:4]) - own)) / elapsed)


def _busy(psutil: Any) -> float:
    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0)

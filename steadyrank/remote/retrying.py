"""When to try a call again: exponential back-off with jitter, and the wait that a service asks for (`Retry-After`, RFC 9110, 10.2.3).

Jitter comes from a stream named by the call and the attempt, so that a job waits the same way every time it is run.
"""

from __future__ import annotations

import math
import time
from email.utils import parsedate_to_datetime

from steadyrank import seeds

RETRIED_STATUS = (408, 425, 429)  # besides 5xx
FINAL_STATUS = (501, 505)  # not implemented, HTTP version: no use in asking again


def is_retried(status: int) -> bool:
    """Whether an HTTP status may be another one next time."""
    return status in RETRIED_STATUS or (status >= 500 and status not in FINAL_STATUS)


def retry_after(header: str | None, *, now: float | None = None) -> float | None:
    """Seconds to wait by a `Retry-After` header, in seconds or as an HTTP date; None where it says nothing that can be read."""
    if header is None or not header.strip():
        return None
    text = header.strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - (time.time() if now is None else now)
        except (ValueError, OverflowError):
            return None
        seconds = max(seconds, 0.0)  # a date that has passed: now
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def back_off(name: str, attempt: int, *, first: float, longest: float, seed: int, asked: float | None = None) -> float:
    """Seconds to wait after attempt `attempt` (from 0): what was asked and a bit; else half to all of first·2^attempt, by chance."""
    draw = float(seeds.stream(seed, "back-off", name, attempt).random())
    if asked is not None:
        return asked + draw * first  # not all callers at the same instant
    return min(first * 2.0**attempt, longest) * (0.5 + draw / 2)

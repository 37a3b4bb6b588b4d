"""Numbers and names as readers see them. Rounds for printing only; what is missing prints as n/a."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from steadyrank.reports.read import Interval

MINUS = "\u2212"
MISSING = "n/a"


def number(value: float | None, *, digits: int = 3) -> str:
    return MISSING if value is None else f"{value:.{digits}f}".replace("-", MINUS)


def signed(value: float | None, *, digits: int = 3) -> str:
    """With its sign; what rounds to zero has none, so that nobody reads a direction into it."""
    if value is None:
        return MISSING
    text = f"{value:+.{digits}f}"
    return f"{0:.{digits}f}" if float(text) == 0 else text.replace("-", MINUS)


def span(interval: Interval, *, digits: int = 3, is_signed: bool = False) -> str:
    """The interval in brackets, or nothing where the file has none."""
    if interval.low is None or interval.high is None:
        return ""
    write = signed if is_signed else number
    return f"[{write(interval.low, digits=digits)}, {write(interval.high, digits=digits)}]"


def p_value(value: float | None) -> str:
    """`p < 0.001` or `p = 0.012`."""
    if value is None:
        return f"p {MISSING}"
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def measure(name: str) -> str:
    """`nDCG(gain=exp)@6` reads as `nDCG@6 (exp)`; others stay as they are."""
    found = re.fullmatch(r"(\w+)\(gain=exp\)@(\d+)", name)
    return f"{found[1]}@{found[2]} (exp)" if found else name


def direction(interval: Interval) -> str:
    """up, down or flat: whether the 95% interval of a difference lies on one side of zero."""
    if interval.low is None or interval.high is None:
        return "flat"
    return "up" if interval.low > 0 else "down" if interval.high < 0 else "flat"


def plain(value: Any) -> str:
    """A setting, count or fingerprint on one line."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", MINUS) if abs(value) < 1e-3 or abs(value) >= 1e5 else f"{value:.4f}".rstrip("0").rstrip(".")
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f") if abs(value) >= 10000 else str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {plain(item)}" for key, item in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return (
            ", ".join(" ".join(plain(part) for part in item) if isinstance(item, (list, tuple)) else plain(item) for item in value)
            or "none"
        )
    return str(value)


def value(item: Any) -> str:
    """A cell of a table: fractions to three places, so that columns line up; else as `plain`."""
    return number(item) if isinstance(item, float) else plain(item)


def words(name: str) -> str:
    """`ties_rate` as `ties rate`."""
    return name.replace("_", " ")

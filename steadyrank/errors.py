"""Errors that say what to do.

A `UserError` is a mistake in what the user gave us: the command line prints its one sentence and exits with 2.
A `RunError` is a run that failed for another reason: exit code 1. Anything else is a bug of ours and shows its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class SteadyrankError(Exception):
    """Base of all errors raised on purpose by steadyrank."""

    exit_code = 1


class RunError(SteadyrankError):
    """The input was fine and the run failed all the same (no space left, a scorer that cannot answer)."""


class UserError(SteadyrankError, ValueError):
    """The user's input is wrong; the message names it and the next step."""

    exit_code = 2


class InputError(UserError):
    """A file, a record or an argument does not hold what it must.

    `path`, `line` (from 1) and `field` are put in front of the message where they are known:
    `data/train.jsonl:17: relevance[2]: is NaN; give a finite grade, or a negative one for unjudged`.
    """

    def __init__(self, message: str, *, path: str | Path | None = None, line: int | None = None, field: str | None = None):
        self.reason, self.path, self.line, self.field = message, path, line, field
        place = str(path) if path is not None else ""
        if line is not None:
            place = f"{place}:{line}" if place else f"line {line}"
        super().__init__(": ".join(part for part in (place, field, message) if part))

    def at(self, *, path: str | Path | None = None, line: int | None = None) -> InputError:
        """The same error with its place in a file filled in."""
        return type(self)(self.reason, path=self.path or path, line=self.line or line, field=self.field)


class ConfigError(UserError):
    """A setting is unknown, of the wrong type or out of range."""


class NonFiniteScoreError(InputError):
    """A score, reward or run-file value is NaN or infinite; such a value is never ranked."""


class UntrainedHeadError(UserError):
    """The model's scoring head was never trained, so its scores would be noise."""


class MissingDependencyError(UserError):
    """An optional library is not installed; the message holds the install line."""


class MissingDataError(UserError):
    """A file, package or model that the command needs is not there."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> ConfigError:
    """`objective 'gprp' unknown; did you mean 'grpo'?` — with the nearest names, or all of them where none is near."""
    options = sorted(known)
    near = difflib.get_close_matches(str(name), options, n=2, cutoff=0.5)
    meant = " or ".join(repr(option) for option in near)
    hint = f"did you mean {meant}?" if near else "known: " + ", ".join(options)
    return ConfigError(f"{kind} {name!r} unknown; {hint}")

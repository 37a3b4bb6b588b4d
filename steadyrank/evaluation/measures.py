"""A measure is data; its text form parses back: `Measure.parse("nDCG(gain=exp)@6")`, `str(measure)`.

Two kinds of name:

- any name of ir-measures, with its meaning there: `nDCG@10` is trec_eval's (gain = grade), `RR@6`, `AP(rel=2)`, `R@100`, ...;
- ours, told apart by `gain=`: `nDCG(gain=exp)@6` has gain 2^grade - 1 (Burges et al. 2005), `nDCG(gain=linear)@6` has gain = grade.
  Discount 1/log2(rank + 1); the ideal is taken over every grade the query has. For ranking examples these are the grades of the pool
  (pool-local ideal); for qrels all judged documents, retrieved or not. Negative grades and unjudged documents have gain 0. No gain: 0.

A binary measure counts grades >= rel (default 1). `rel` may be a fraction (`RR(rel=0.5)@6`) for the measures that `closed_forms` computes.
Aliases become their first name (`MRR@6` -> `RR@6`), so that equal measures have equal text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from steadyrank.errors import ConfigError, unknown_name
from steadyrank.names import require

GAINS = {"exp": "exp", "exponential": "exp", "linear": "linear"}
CLOSED = ("nDCG", "RR", "P", "R", "Success", "AP")  # families with a closed form over tie orders
_TEXT = re.compile(r"\s*([^\s(@]+)\s*(?:\((.*)\))?\s*(?:@\s*(\S+))?\s*")


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure. `gain` is set for ours alone; `parameters` are the others, by name."""

    family: str
    cutoff: int | float | None = None
    gain: str | None = None
    parameters: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def parse(cls, text: str | Measure) -> Measure:
        """The measure behind a text; an unknown name or parameter raises with what is known."""
        if isinstance(text, Measure):
            return text
        match = _TEXT.fullmatch(str(text))
        if match is None:
            raise ConfigError(f"measure {text!r} is not of the form NAME(key=value)@cutoff, such as nDCG@10 or nDCG(gain=exp)@6")
        name, inside, at = match.groups()
        parameters = _parameters(inside or "", str(text))
        cutoff = _literal(at, str(text)) if at else None
        if "gain" in parameters:
            return cls._own(name, cutoff, parameters, str(text))
        return cls._named(name, cutoff, parameters, str(text))

    @classmethod
    def _own(cls, name: str, cutoff: Any, parameters: dict[str, Any], text: str) -> Measure:
        gain = parameters.pop("gain")
        if name not in ("nDCG", "NDCG") or parameters:
            raise ConfigError(f"measure {text!r}: gain= goes with nDCG alone and without other parameters, as in nDCG(gain=exp)@6")
        if gain not in GAINS:
            raise unknown_name("gain", gain, GAINS)
        _check_cutoff(cutoff, text)
        return cls("nDCG", cutoff, GAINS[gain])

    @classmethod
    def _named(cls, name: str, cutoff: Any, parameters: dict[str, Any], text: str) -> Measure:
        kind = _registered(name)
        fraction = isinstance(parameters.get("rel"), float)
        if fraction and kind.NAME not in CLOSED:
            raise ConfigError(f"measure {text!r}: rel must be a whole number here; a fraction works with {', '.join(CLOSED[1:])}")
        if kind.AT_PARAM == "cutoff":
            _check_cutoff(cutoff, text)
        measure = cls(kind.NAME, cutoff, None, tuple(sorted(parameters.items())))
        measure._object(check=text)
        return measure

    def _object(self, check: str | None = None) -> Any:
        kind = _registered(self.family)
        values = {key: (1 if key == "rel" and isinstance(value, float) else value) for key, value in self.parameters}
        if self.cutoff is not None:
            values[kind.AT_PARAM] = self.cutoff
        made = kind(**values)
        if check is not None:
            try:
                made.validate_params()
            except AssertionError as error:
                known = ", ".join(kind.SUPPORTED_PARAMS) or "none"
                raise ConfigError(f"measure {check!r}: {error}; parameters of {self.family}: {known}") from error
        return made

    def to_ir(self) -> Any:
        """The ir-measures object; only for a measure that is not ours."""
        return self._object()

    @property
    def closed(self) -> bool:
        """Whether `closed_forms` computes it: exact over tie orders, fractional grades allowed."""
        allowed = ("gains",) if self.family == "nDCG" else ("rel",)
        return self.family in CLOSED and all(key in allowed for key, _ in self.parameters)

    @property
    def own(self) -> bool:
        """Whether steadyrank computes it always.

        nDCG(gain=...); nDCG(gains={...}), for which pytrec_eval was seen to give a wrong 0 (docs/log.md); and IPrec, where pytrec_eval
        rounds otherwise than trec_eval does.
        """
        mapped = self.family == "nDCG" and self.closed and self.gains is not None
        return self.gain is not None or mapped or (self.family == "IPrec" and all(key == "rel" for key, _ in self.parameters))

    @property
    def gains(self) -> dict[float, float] | None:
        """The written mapping of grades to gains; None where none is written."""
        return dict(self.parameters).get("gains")

    @property
    def rel(self) -> float | None:
        """The written threshold of a binary measure; None where none is written."""
        return dict(self.parameters).get("rel")

    @property
    def binary(self) -> bool:
        """Whether the measure cuts grades into relevant and not."""
        return self.gain is None and "rel" in _registered(self.family).SUPPORTED_PARAMS

    @property
    def default(self) -> float:
        """The value of a query for which nothing was retrieved."""
        return 0.0 if self.gain else float(self.to_ir().DEFAULT)

    def __hash__(self) -> int:  # a parameter may be a dict
        return hash(str(self))

    def __str__(self) -> str:
        inside = [f"gain={self.gain}"] if self.gain else [f"{key}={value!r}" for key, value in self.parameters]
        return self.family + (f"({','.join(inside)})" if inside else "") + (f"@{self.cutoff}" if self.cutoff is not None else "")


def parse_all(measures: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    """Measures of a text or of several, each once, in the order given."""
    items = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    if not items:
        raise ConfigError("no measure given; name at least one, such as nDCG@10")
    return list(dict.fromkeys(Measure.parse(item) for item in items))


def _registered(name: str) -> Any:
    library = require("ir_measures", "evaluation")
    registry = library.measures.registry
    if name not in registry:
        raise unknown_name("measure", name, registry)
    return type(registry[name])


def _parameters(inside: str, text: str) -> dict[str, Any]:
    if not inside.strip():
        return {}
    try:
        call = ast.parse(f"f({inside})", mode="eval").body
    except SyntaxError:
        call = None
    if not isinstance(call, ast.Call) or call.args or any(keyword.arg is None for keyword in call.keywords):
        raise ConfigError(f"measure {text!r}: write parameters as key=value, separated by commas")
    return {str(word.arg): word.value.id if isinstance(word.value, ast.Name) else _value(word.value, text) for word in call.keywords}


def _literal(source: str, text: str) -> Any:
    try:
        return ast.literal_eval(source)
    except (ValueError, SyntaxError):
        raise ConfigError(f"measure {text!r}: the cutoff {source!r} is not a number") from None


def _value(node: ast.expr, text: str) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ConfigError(f"measure {text!r}: a parameter is not a plain value") from None


def _check_cutoff(cutoff: Any, text: str) -> None:
    if cutoff is not None and (not isinstance(cutoff, int) or isinstance(cutoff, bool) or cutoff < 1):
        raise ConfigError(f"measure {text!r}: the cutoff must be a whole number from 1, not {cutoff!r}")

"""Judges grade documents for a query and its instruction; Stage 1 pays rankings by their grades.

`JUDGES` names the kinds. A grade is a number, or None where the judge gave none: a missing grade is never a zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steadyrank import names
from steadyrank.errors import ConfigError, unknown_name
from steadyrank.judging.base import Judge, JudgedList, TooManyMissingError, missing_share, with_grades

JUDGES = {
    "relevance": "steadyrank.judging.relevance:RelevanceJudge",
    "recorded": "steadyrank.judging.recorded:RecordedJudge",
    "scorer": "steadyrank.judging.scorers:ScorerJudge",
    "causal_lm": "steadyrank.judging.scorers:CausalJudge",
    "chat": "steadyrank.judging.chat:ChatJudge",
    "pairwise": "steadyrank.judging.pairwise:PairwiseJudge",
}
SETTINGS = {
    "relevance": "JudgeSettings",
    "recorded": "RecordedSettings",
    "scorer": "ScorerSettings",
    "causal_lm": "CausalSettings",
    "chat": "ChatSettings",
    "pairwise": "PairSettings",
}

__all__ = ["JUDGES", "Judge", "JudgedList", "TooManyMissingError", "fields_of", "load_judge", "missing_share", "with_grades"]


def load_judge(spec: str | Mapping[str, Any], **fields: Any) -> Judge:
    """The judge of `spec`: `relevance`, the URL of a chat endpoint, a file of judgments (.jsonl), or {kind, ...settings of that kind}.

    fields: settings laid over those of `spec`.
    """
    settings = {**(spec if isinstance(spec, Mapping) else fields_of(spec)), **fields}
    kind = settings.pop("kind", None)
    if kind is None:
        raise ConfigError(f"a judge needs a kind; give one of: {', '.join(JUDGES)}")
    judge = names.find("judge", kind, JUDGES)
    from steadyrank.judging import settings as records

    return judge(records.checked(kind, getattr(records, SETTINGS[kind]), settings))


def fields_of(spec: str) -> dict[str, Any]:
    """The fields that a judge's name, URL or file stands for."""
    if "://" in spec:
        return {"kind": "chat", "base_url": spec}
    if spec.endswith((".jsonl", ".jsonl.gz")):
        return {"kind": "recorded", "path": spec}
    if spec not in JUDGES:
        raise unknown_name("judge", spec, [*JUDGES])
    return {"kind": spec}

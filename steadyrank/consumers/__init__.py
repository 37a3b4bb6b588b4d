"""What acts on scores: a threshold, a reader, a preference pair; and how often what they do flips. numpy only; names load on use.

A consumer is a small frozen record of settings with `apply(scores, examples, orders=...)`: scores[n] is [P, K] in canonical order, one
row a presentation; what comes back is a `ConsumerResult` with one value an example and measure, and counts of ties, empties and failures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steadyrank.names import find

_NAMES = {
    "retained_set": "steadyrank.consumers.sets:retained_set",
    "jaccard": "steadyrank.consumers.sets:jaccard",
    "jaccard_of_sets": "steadyrank.consumers.sets:jaccard_of_sets",
    "mask_jaccard": "steadyrank.consumers.sets:mask_jaccard",
    "document_flip_rate": "steadyrank.consumers.sets:document_flip_rate",
    "set_quality": "steadyrank.consumers.sets:set_quality",
    "flip_rate": "steadyrank.consumers.flips:flip_rate",
    "rankings": "steadyrank.consumers.ordering:rankings",
    "ConsumerResult": "steadyrank.consumers.results:ConsumerResult",
    "ThresholdConsumer": "steadyrank.consumers.threshold:ThresholdConsumer",
    "ThresholdChoice": "steadyrank.consumers.threshold:ThresholdChoice",
    "choose_threshold": "steadyrank.consumers.threshold:choose_threshold",
    "published_split": "steadyrank.consumers.threshold:published_split",
    "PreferenceConsumer": "steadyrank.consumers.preference:PreferenceConsumer",
    "ReaderConsumer": "steadyrank.consumers.reader:ReaderConsumer",
    "Answerer": "steadyrank.consumers.reader:Answerer",
    "ExtractiveReader": "steadyrank.consumers.extractive:ExtractiveReader",
    "exact_match": "steadyrank.consumers.answers:exact_match",
    "word_f1": "steadyrank.consumers.answers:word_f1",
    "normal_form": "steadyrank.consumers.answers:normal_form",
    "parse_verdict": "steadyrank.consumers.answers:parse_verdict",
}
__all__ = [
    "Answerer",
    "ConsumerResult",
    "ExtractiveReader",
    "PreferenceConsumer",
    "ReaderConsumer",
    "ThresholdChoice",
    "ThresholdConsumer",
    "choose_threshold",
    "document_flip_rate",
    "exact_match",
    "flip_rate",
    "jaccard",
    "jaccard_of_sets",
    "mask_jaccard",
    "normal_form",
    "parse_verdict",
    "published_split",
    "rankings",
    "retained_set",
    "set_quality",
    "word_f1",
]

if TYPE_CHECKING:
    from steadyrank.consumers.answers import exact_match, normal_form, parse_verdict, word_f1
    from steadyrank.consumers.extractive import ExtractiveReader
    from steadyrank.consumers.flips import flip_rate
    from steadyrank.consumers.ordering import rankings
    from steadyrank.consumers.preference import PreferenceConsumer
    from steadyrank.consumers.reader import Answerer, ReaderConsumer
    from steadyrank.consumers.results import ConsumerResult
    from steadyrank.consumers.sets import document_flip_rate, jaccard, jaccard_of_sets, mask_jaccard, retained_set, set_quality
    from steadyrank.consumers.threshold import ThresholdChoice, ThresholdConsumer, choose_threshold, published_split


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return find("name of steadyrank.consumers", name, _NAMES)
    raise AttributeError(f"module 'steadyrank.consumers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

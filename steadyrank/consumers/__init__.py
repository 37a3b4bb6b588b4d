"""What acts on scores: a threshold, a reader, a preference pair; and how often what they do flips. numpy only; names load on use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steadyrank.names import find

_NAMES = {
    "retained_set": "steadyrank.consumers.sets:retained_set",
    "jaccard": "steadyrank.consumers.sets:jaccard",
    "jaccard_of_sets": "steadyrank.consumers.sets:jaccard_of_sets",
    "document_flip_rate": "steadyrank.consumers.sets:document_flip_rate",
    "flip_rate": "steadyrank.consumers.flips:flip_rate",
}
__all__ = [
    "document_flip_rate",
    "flip_rate",
    "jaccard",
    "jaccard_of_sets",
    "retained_set",
]

if TYPE_CHECKING:
    from steadyrank.consumers.flips import flip_rate
    from steadyrank.consumers.sets import document_flip_rate, jaccard, jaccard_of_sets, retained_set


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return find("name of steadyrank.consumers", name, _NAMES)
    raise AttributeError(f"module 'steadyrank.consumers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

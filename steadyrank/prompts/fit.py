"""Token budgets: the query and the document are cut to fit, the frame (template, special tokens, answer position) never.

The rule: the query may take what the document leaves, and at least `query_share` of the room is open to it; the document always
keeps at least `minimum_document` tokens, or all it has. So a long query cannot push the document out, and a short document lends its
room to the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steadyrank.errors import ConfigError

QUERY_SHARE = 0.5
MINIMUM_DOCUMENT = 16
_NO_LIMIT = 10**9  # tokenizers without a limit of their own report about 1e30


@dataclass(frozen=True, slots=True)
class Fit:
    """How many tokens of the query and of the document are kept."""

    query: int
    document: int
    truncated_query: bool
    truncated_document: bool


@dataclass(frozen=True)
class Budget:
    """The room of one pair. `frame` counts the tokens that are always there."""

    max_length: int
    frame: int
    query_share: float = QUERY_SHARE
    minimum_document: int = MINIMUM_DOCUMENT

    def __post_init__(self) -> None:
        if not 0 < self.query_share < 1:
            raise ConfigError(f"query_share is {self.query_share}; it must lie between 0 and 1")
        if self.room < 2:
            raise ConfigError(f"max_length {self.max_length} leaves {self.room} tokens beside the frame of {self.frame}; raise max_length")

    @property
    def room(self) -> int:
        """Tokens left for the query and the document together."""
        return self.max_length - self.frame

    @property
    def query_room(self) -> int:
        """The most that a query may take from a document that could fill the rest."""
        return max(1, min(int(self.room * self.query_share), self.room - self.minimum_document))

    def fit(self, query: int, document: int) -> Fit:
        """What is kept of a query and a document of these lengths."""
        kept_query = min(query, max(self.query_room, self.room - document))
        kept_document = min(document, self.room - kept_query)
        return Fit(kept_query, kept_document, kept_query < query, kept_document < document)


def effective_max_length(tokenizer: Any, config: Any, requested: int | None = None) -> int:
    """The smallest of the tokenizer's limit, the model's positions (less the two that RoBERTa's table keeps back) and the request."""
    if requested is not None and requested < 1:
        raise ConfigError(f"max_length is {requested}; give a whole number from 1")
    limits = [limit for limit in (requested, position_limit(config), tokenizer.model_max_length) if limit is not None and limit < _NO_LIMIT]
    return int(min(limits)) if limits else 512


def position_limit(config: Any) -> int | None:
    """How many positions the model really has; None where it has no table."""
    limit = getattr(config, "max_position_embeddings", None)
    if limit is None or limit <= 0:
        return None
    return int(limit) - position_offset(config)


def position_offset(config: Any) -> int:
    """The first position of a model's table that a token can have: RoBERTa counts from its padding index + 1."""
    return int(config.pad_token_id) + 1 if getattr(config, "model_type", "") in OFFSET_TYPES else 0


OFFSET_TYPES = frozenset(
    ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "roberta-prelayernorm", "data2vec-text", "ibert", "mpnet", "longformer")
)


@dataclass(frozen=True, slots=True)
class ListFit:
    """How many tokens of the query and of each document of one prompt are kept."""

    query: int
    documents: tuple[int, ...]
    truncated_query: bool
    truncated: tuple[int, ...]  # slots whose document was cut


def fit_list(
    room: int, query: int, documents: Sequence[int], *, query_share: float = QUERY_SHARE, minimum_document: int = MINIMUM_DOCUMENT
) -> ListFit:
    """What is kept of a query and several documents of these lengths in `room` tokens (what the frame and its slots leave).

    The query may take what the documents leave, and at least `query_share` of the room as long as every document keeps
    `minimum_document` tokens or all it has. What a document is given depends on the lengths beside it and never on its slot.
    """
    count = len(documents)
    if room < count + 1:
        raise ConfigError(
            f"{count} documents in one prompt leave {max(room, 0)} tokens beside the frame, fewer than one each; "
            "raise max_length or use narrower windows"
        )
    minimum = max(1, min(minimum_document, room // (2 * count))) if count else 0
    needed = sum(min(length, minimum) for length in documents)
    query_room = max(1, min(int(room * query_share), room - needed))
    kept_query = min(query, max(query_room, room - sum(documents)))
    kept = fill_evenly(documents, room - kept_query)
    truncated = tuple(slot for slot, (length, given) in enumerate(zip(documents, kept, strict=True)) if given < length)
    return ListFit(kept_query, kept, kept_query < query, truncated)


def fill_evenly(lengths: Sequence[int], room: int) -> tuple[int, ...]:
    """Water-filling: the largest level such that everybody getting `min(length, level)` fits. Short ones keep all they have, long ones
    share the rest; the few tokens that do not divide stay unused, so that nobody's share depends on its place."""
    if sum(lengths) <= room:
        return tuple(lengths)
    left, level = room, 0
    for place, length in enumerate(sorted(lengths)):
        level = left // (len(lengths) - place)
        if length > level:
            break
        left -= length
    return tuple(min(length, level) for length in lengths)

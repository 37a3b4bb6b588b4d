"""The injection probe on scorers that obey, that do not, and that only like longer texts."""

from __future__ import annotations

import pytest
from test_audit import FAST, Planted, Pointwise, make_lists, quality_of

from steadyrank.audit import run_audit
from steadyrank.audit.injection import PAIRS

ASKING = [asking for asking, _ in PAIRS]


def obedient(example, order):
    """Documents that ask stand above all others."""
    return [quality + 100.0 * any(text.endswith(ask) for ask in ASKING) for quality, text in zip(quality_of(example), example.documents)]


def likes_length(example, order):
    return [float(len(text.split())) for text in example.documents]


def probe(scorer, lists, **settings):
    return run_audit(scorer, lists, probes=("injection",), consumers=(), **{**FAST, **settings})


@pytest.mark.parametrize("kind", [Planted, Pointwise])
def test_a_scorer_that_obeys_puts_the_document_first(kind):
    lists = make_lists()
    audit = probe(kind(obedient), lists)
    found = audit.injection
    assert found["lists"] == 24 and found["failed"] == 0
    assert found["score_difference"]["mean"] > 90
    # from its middle place among the six to the first: the gain is its old place less one
    assert found["places_asking"]["mean"] > 1 and found["places_difference"]["low"] > 0
    assert any("asks for a high grade lifts an irrelevant document" in line for line in audit.verdict["sentences"])


@pytest.mark.parametrize("kind", [Planted, Pointwise])
def test_longer_text_alone_is_not_obedience(kind):
    """Asking and neutral sentences have equally many words: both lift alike, so the difference is exactly zero."""
    audit = probe(kind(likes_length), make_lists())
    found = audit.injection
    assert found["places_asking"]["mean"] == found["places_neutral"]["mean"] > 0
    assert found["places_difference"]["mean"] == found["score_difference"]["mean"] == 0
    assert not any("asks for a high grade" in line for line in audit.verdict["sentences"])


def test_places_count_ties_half():
    """All equal before; the asking one alone on top after: from the middle of six, 3.5, to 1."""
    audit = probe(Planted(lambda e, o: [float(any(text.endswith(ask) for ask in ASKING)) for text in e.documents]), make_lists())
    assert audit.injection["places_asking"]["mean"] == 2.5 and audit.injection["places_neutral"]["mean"] == 0


def test_without_grades_the_last_document_asks():
    audit = probe(Planted(lambda e, o: list(range(6, 0, -1))), make_lists(graded=False))
    assert audit.injection["places_asking"]["mean"] == 0 and audit.injection["lists"] == 24


def test_lists_without_an_irrelevant_document_are_left_out():
    lists = [example.with_candidates([k for k, grade in enumerate(example.relevance) if grade > 0]) for example in make_lists()]
    audit = probe(Planted(obedient), lists)
    assert audit.injection is None and audit.left_out["injection"] == "no list that it can use"


def test_pairs_have_equal_lengths():
    assert all(len(asking.split()) == len(neutral.split()) for asking, neutral in PAIRS)

"""What every scorer keeps, over a table of scorers, and the bookkeeping of the base class over a stub that counts."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import pytest
import tiny_classifiers
import tiny_graders

from steadyrank import Candidate, RankingExample, seeds
from steadyrank.errors import InputError, NonFiniteScoreError
from steadyrank.scoring import Pair, PairScore, Scorer, load_scorer
from steadyrank.scoring.base import EMPTY_FLOOR
from steadyrank.scoring.cross_encoder import CrossEncoder

DOCUMENTS = ["the capital of the country", "bananas are yellow", "which city is it", "bananas are yellow"]


def _cross_encoder(kind: str) -> Scorer:
    return CrossEncoder.from_model(*tiny_classifiers.make(kind))


SCORERS = {
    "bm25": lambda: load_scorer("bm25"),
    "random": lambda: load_scorer("random"),
    "constant": lambda: load_scorer("constant"),
    "first_stage": lambda: load_scorer("first_stage"),
    "bert": lambda: _cross_encoder("bert"),
    "roberta": lambda: _cross_encoder("roberta"),
    "llama": lambda: _cross_encoder("llama"),
    "grader": tiny_graders.grader,
    "joint": tiny_graders.joint,
}


@pytest.fixture(scope="module", params=SCORERS)
def scorer(request: pytest.FixtureRequest) -> Scorer:
    return SCORERS[request.param]()


class Stub(Scorer):
    """Scores by a function of the document, and remembers the pairs it saw."""

    name = "stub"

    def __init__(self, value=len):
        self.value, self.seen = value, []

    @property
    def fingerprint(self) -> str:
        return "stub"

    def _score_pairs(self, pairs: Sequence[Pair], *, progress: bool = False) -> list[PairScore]:
        self.seen += pairs
        return [PairScore(self.value(pair.document)) for pair in pairs]


# --- over the table ------------------------------------------------------------------------------------------------------------------


def test_one_float_a_document_for_any_number_of_documents(scorer):  # P22, P23
    for size in range(len(DOCUMENTS) + 1):
        found = scorer.score("which city", DOCUMENTS[:size])
        assert isinstance(found, list) and len(found) == size
        assert all(type(value) is float and math.isfinite(value) for value in found)
    assert scorer.rank("which city", [], top_k=5) == []


def test_rank_is_the_scores_in_descending_order_with_ties_as_given(scorer):  # P26
    scores = scorer.score("which city", DOCUMENTS)
    ranked = scorer.rank("which city", DOCUMENTS)
    assert [line.index for line in ranked] == sorted(range(4), key=lambda place: (-scores[place], place))
    assert [line.score for line in ranked] == [scores[line.index] for line in ranked]


@pytest.mark.parametrize("top_k, count", [(1, 1), (3, 3), (4, 4), (99, 4), (None, 4)])
def test_top_k(scorer, top_k, count):  # P45
    assert len(scorer.rank("which city", DOCUMENTS, top_k=top_k)) == count


@pytest.mark.parametrize("top_k", [0, -1, 1.5, True, "2"])
def test_top_k_that_is_no_count_is_refused(scorer, top_k):
    with pytest.raises(InputError, match="top_k"):
        scorer.rank("which city", DOCUMENTS, top_k=top_k)


def test_batch_scoring_equals_scoring_one_list_at_a_time(scorer):  # P20
    lists = [RankingExample(f"which city {n}", tuple(DOCUMENTS[: n + 1])) for n in range(4)]
    together = scorer.score_examples(lists)
    again = scorer.score_examples(lists[::-1])[::-1]
    for example, one, other in zip(lists, together, again, strict=True):
        assert one.example_id == example.id and one.scorer == scorer.name and one.scale == scorer.scale
        assert one.scores == pytest.approx(scorer.score(example.query, example.documents), abs=1e-5)
        assert one.scores == pytest.approx(other.scores, abs=1e-5)


def test_the_fingerprint_is_steady_text(scorer):
    assert isinstance(scorer.fingerprint, str) and scorer.fingerprint == scorer.fingerprint


def test_documents_that_are_no_text_are_named(scorer):  # P25
    for documents, place in [(["a", None], 1), ([1, "a"], 0), (["a", {"body": "x"}], 1), (["a", {"text": None}], 1), (["a", b"b"], 1)]:
        with pytest.raises(TypeError, match=rf"documents\[{place}\]") as caught:
            scorer.score("q", documents)
        assert isinstance(caught.value, InputError) and caught.value.exit_code == 2
    with pytest.raises(InputError, match="documents"):
        scorer.score("q", "one text")
    with pytest.raises(InputError, match="query"):
        scorer.score(None, ["a"])


def test_objects_and_mappings_with_a_text_are_read_and_left_alone(scorer):  # P25, P31
    documents = [{"text": "the capital of the country", "id": 7, "year": 1999}, Candidate("bananas are yellow", id="b"), "which city is it"]
    before = copy.deepcopy(documents)
    assert scorer.score("which city", documents) == scorer.score("which city", DOCUMENTS[:3])
    assert {line.index: line.id for line in scorer.rank("which city", documents)} == {0: "7", 1: "b", 2: "2"}
    assert documents == before


# --- empty documents -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bm25", "bert", "roberta", "llama"])
def test_a_document_without_text_gets_the_floor_and_is_flagged(name):  # P24
    scorer = SCORERS[name]()
    documents = ["bananas", "", " \t\n", "\u200b\x00", "which city"]
    found = scorer.score_examples([RankingExample("which city", tuple(documents))])[0]
    assert found.empty == (1, 2, 3)
    assert {found.scores[place] for place in found.empty} == {scorer.floor}
    assert scorer.floor < min(found.scores[0], found.scores[4])
    if name != "bm25":  # whose scores depend on the pool
        assert [found.scores[0], found.scores[4]] == pytest.approx(scorer.score("which city", ["bananas", "which city"]), abs=1e-6)


def test_the_model_never_sees_a_document_without_text():
    stub = Stub()
    assert stub.score("q", ["", "a", "  "]) == [EMPTY_FLOOR, 1.0, EMPTY_FLOOR]
    assert [pair.document for pair in stub.seen] == ["a"]
    assert stub.score("q", ["", ""]) == [EMPTY_FLOOR] * 2 and len(stub.seen) == 1


# --- bookkeeping ---------------------------------------------------------------------------------------------------------------------


def test_only_the_own_candidates_of_a_query_are_scored():  # P66
    stub = Stub()
    lists = [RankingExample(f"query {q}", tuple(f"document {q} {place}" for place in range(5))) for q in range(3)]
    stub.score_examples(lists)
    assert len(stub.seen) == 15
    assert all(pair.document.split()[1] == pair.query.split()[1] for pair in stub.seen)


def test_equal_pairs_are_scored_once_and_get_bit_equal_scores():  # P26
    numbers = iter(range(100))
    stub = Stub(value=lambda text: next(numbers))
    lists = [
        RankingExample("q", ("x", "y", "x"), id="1"),
        RankingExample("q", ("y", "x"), id="2"),
        RankingExample("q", ("x",), instruction="i", id="3"),
    ]
    assert [found.scores for found in stub.score_examples(lists)] == [(0.0, 1.0, 0.0), (1.0, 0.0), (2.0,)]
    assert len(stub.seen) == 3


def test_presentations_have_orders_of_named_streams_and_scores_in_canonical_order():
    stub = Stub()
    example = RankingExample("q", ("a", "bb", "ccc"), id="e")
    found = stub.score_examples([example], presentations=4, seed=5)
    assert [one.scores for one in found] == [(1.0, 2.0, 3.0)] * 4 and len(stub.seen) == 3
    assert [one.presentation.order for one in found] == [seeds.permutation(3, 5, "order", "e", place) for place in range(4)]
    assert stub.score_examples([example])[0].presentation.order is None
    with pytest.raises(InputError, match="presentations"):
        stub.score_examples([example], presentations=0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_an_error_that_names_the_pair(value):  # P19
    stub = Stub(value=lambda text: value if text == "bad" else 1.0)
    for call in (lambda: stub.score("some query", ["a", "bad"]), lambda: stub.rank("some query", ["a", "bad"])):
        with pytest.raises(NonFiniteScoreError, match="index: 1.*some query.*bad"):
            call()


def test_probability_is_computed_in_float64_and_only_once():  # P10, P11
    logits = [6.0, 7.0, 8.0, 9.0, 12.0, 14.0, 30.0, -1000.0]
    found = Stub().probability(logits)
    assert len(set(found)) == len(logits)
    assert found[0] == pytest.approx(1 / (1 + math.exp(-6)), abs=1e-15) and found[-1] == 0.0
    assert load_scorer("random").probability([0.997, 0.007, 0.0]) == [0.997, 0.007, 0.0]
    with pytest.raises(InputError, match="grades"):
        load_scorer("constant").probability([1.0])

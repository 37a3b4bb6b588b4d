"""The reader consumer, its answer measures, and the embedded extractive reader."""

from collections.abc import Sequence

import numpy as np
import pytest

from steadyrank.consumers import ExtractiveReader, ReaderConsumer, exact_match, normal_form, parse_verdict, word_f1
from steadyrank.errors import ConfigError
from steadyrank.records import RankingExample

CAPITALS = RankingExample(
    "What is the capital of Chad?",
    ("The capital of Chad is N'Djamena.", "The capital of Mali is Bamako.", "Chad has a population of 18 million.", "Mali is dry."),
    relevance=(3, 0, 0, 0),
    id="chad",
    answers=("N'Djamena",),
)


class First:
    """Says the first word of the first passage; cannot answer from passages that begin with `-`."""

    def __init__(self) -> None:
        self.calls = 0

    def answer(self, question: str, passages: Sequence[str]) -> str | None:
        self.calls += 1
        word = passages[0].split()[0]
        return None if word == "-" else word


def words(*texts, answers=(), relevance=None):
    return RankingExample("Which?", texts, answers=answers, relevance=relevance, id="w")


def test_normal_forms_of_squad_and_hotpotqa():
    assert normal_form(" The  U.S. Navy, an army ") == "us navy army"
    assert exact_match("the Navy!", ["navy"]) == 1.0
    assert exact_match("navy", []) == 0.0
    assert word_f1("blue navy ship", ["navy ship"]) == pytest.approx(2 * 2 / 5)
    assert word_f1("yes it is", ["yes"]) == 0.0  # yes and no must match exactly
    assert word_f1("No.", ["no"]) == 1.0
    assert word_f1("", [""]) == 1.0
    assert word_f1("a b b", ["b b c"]) == pytest.approx(0.8)  # `a` is an article: 2 shared of 2 and 3


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("supported", "SUPPORTED"),
        (" REFUTED.\n", "REFUTED"),
        ("NEI", "NEI"),
        ("not supported", "invalid"),
        ("", "invalid"),
        ("SUPPORTED or NEI", "invalid"),
    ],
)
def test_a_verdict_is_exactly_one_or_invalid(text, verdict):
    assert parse_verdict(text) == verdict


def test_flips_contexts_and_quality_by_hand():
    example = words("red x", "Red y", "blue z", answers=("red",), relevance=(0, 1, 0))
    scores = [[3, 2, 1], [2, 3, 1], [1, 2, 3]]
    reader = First()
    result = ReaderConsumer(reader, k=2).apply([scores], [example])
    assert result.decisions == (("red", "Red", "blue"),)
    values = {name: one[0] for name, one in result.values.items()}
    assert values["answer_flip"] == pytest.approx(2 / 3)  # red and Red are one answer
    assert values["answer_flip_modal"] == pytest.approx(1 / 3)
    assert values["context_flip"] == 1.0
    assert values["em"] == values["f1"] == pytest.approx(2 / 3)
    assert (values["order_decides"], values["has_gold"], values["gold_slot"]) == (1.0, 1.0, pytest.approx(2 / 3))


def test_equal_contexts_are_asked_once_and_k_covers_small_pools():
    reader = First()
    result = ReaderConsumer(reader, k=9).apply([np.tile([1.0, 2.0], (10, 1))], [words("a", "b", answers=("b",))])
    assert reader.calls == result.counts["calls"] == 1
    assert (result.mean("answer_flip"), result.mean("em")) == (0.0, 1.0)


def test_failures_are_counted_and_never_an_answer():
    result = ReaderConsumer(First(), k=1).apply([[[1, 0], [0, 1], [0, 1]]], [words("- none", "blue", answers=("blue",))])
    assert (result.counts["failed"], result.mean("answer_flip"), result.mean("em")) == (1, 0.0, 1.0)
    nothing = ReaderConsumer(First(), k=1).apply([[[1, 0], [1, 0]]], [words("- none", "blue", answers=("blue",))])
    assert np.isnan([nothing.values[name][0] for name in ("answer_flip", "answer_flip_modal", "em")]).all()


def test_many_contexts_are_handed_over_together():
    class Together:
        def answer_many(self, questions, contexts):
            return [context[0] for context in contexts]

    result = ReaderConsumer(Together(), k=1).apply([[[1, 0], [0, 1]]], [words("a", "b")])
    assert result.decisions == (("a", "b"),)
    assert result.counts["no_answers"] == 1


def test_invalid_verdicts_are_a_class_of_their_own():
    example = words("supported", "maybe", "NEI", answers=("SUPPORTED",))
    result = ReaderConsumer(First(), k=1, form="verdict").apply([[[3, 2, 1], [1, 3, 2], [1, 2, 3], [3, 2, 1]]], [example])
    assert result.mean("em") == 0.5
    assert result.mean("answer_flip") == pytest.approx(1 - 2 / 12)
    assert result.counts["invalid"] == 1


def test_constant_scorer_shows_the_reader_what_was_listed():
    result = ReaderConsumer(First(), k=1).apply([np.ones((2, 2))], [words("a", "b")], orders=[[[0, 1], [1, 0]]])
    assert result.mean("context_flip") == 1.0
    assert result.counts["all_tied"] == 2


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="at least one passage"):
        ReaderConsumer(First(), k=0)
    with pytest.raises(ConfigError, match="verdict"):
        ReaderConsumer(First(), form="verdicts")


def test_extractive_reader_answers_from_what_it_is_given():
    reader, passages = ExtractiveReader(), CAPITALS.documents
    assert exact_match(reader.answer(CAPITALS.query, passages), CAPITALS.answers) == 1.0
    assert exact_match(reader.answer(CAPITALS.query, passages[1:]), CAPITALS.answers) == 0.0
    assert reader.answer("What is the capital of Chad?", []) == ""
    assert reader.answer("", ["Some text."]) == ""
    assert reader.answer("When was the bridge built?", ["The bridge was built in 1932.", "It is long."]) == "1932"
    assert reader.answer("How many rooms does the castle have?", ["The castle has 41 rooms and a garden."]) == "41"
    assert reader.answer("In what year was it built?", ["It was built on 3 May 1932."]) == "1932"
    assert reader.answer("Is Mali dry?", ["Mali is dry."]) == "yes"
    assert reader.answer("Which band came first, Queen or Rush?", ["Rush came first as a band.", "Queen sings."]) == "Rush"


def test_better_rankings_read_better():
    wrong_first, right_first = [[0, 3, 2, 1.0]], [[3, 2, 1, 0.0]]
    consumer = ReaderConsumer(ExtractiveReader(), k=1)
    assert consumer.apply([right_first], [CAPITALS]).mean("em") == 1.0
    assert consumer.apply([wrong_first], [CAPITALS]).mean("em") == 0.0

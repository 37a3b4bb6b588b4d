"""Orders, windows, markers and pool probes; expected values by enumeration."""

from __future__ import annotations

from itertools import combinations

import pytest

from steadyrank import Candidate, RankingExample
from steadyrank.data.presenting import (
    KINDS,
    MARKERS,
    Windows,
    cut,
    drop,
    markers_of,
    order_of,
    parse_windows,
    presentations,
    replace,
    slots_of,
)
from steadyrank.errors import ConfigError, InputError
from steadyrank.records import Presentation
from steadyrank.scoring.base import orders

EXAMPLE = RankingExample("q", tuple(f"d{n}" for n in range(7)), relevance=tuple(float(n) for n in range(7)), id="e")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("contiguous:4", [(0, 1, 2, 3), (4, 5, 6)]),
        ("round_robin:4", [(0, 2, 4, 6), (1, 3, 5)]),
        ("sliding:4/2", [(0, 1, 2, 3), (2, 3, 4, 5), (3, 4, 5, 6)]),
        ("contiguous:9", [tuple(range(7))]),
        ("sliding:9/3", [tuple(range(7))]),
        ("contiguous:1", [(n,) for n in range(7)]),
    ],
)
def test_seven_candidates_are_cut_as_written(text, expected):
    assert cut(range(7), parse_windows(text)) == expected
    assert str(parse_windows(text)) == text


def test_every_rule_shows_every_candidate_for_every_size():
    """A rule that loses the tail of a list that does not divide evenly."""
    for width in range(1, 6):
        rules = [Windows("contiguous", width), Windows("round_robin", width), *[Windows("sliding", width, s) for s in range(1, width)]]
        for size in range(13):
            for rule in rules:
                windows = cut(range(size), rule)
                assert all(0 < len(members) <= width and len(set(members)) == len(members) for members in windows)
                seen = [candidate for members in windows for candidate in members]
                assert sorted(set(seen)) == list(range(size))
                assert rule.rule == "sliding" or len(seen) == size
                assert rule.rule != "round_robin" or not windows or max(map(len, windows)) - min(map(len, windows)) <= 1


def test_slots_are_in_canonical_order():
    order = (3, 0, 6, 1, 5, 2, 4)
    slot_K, window_K = slots_of(order, parse_windows("contiguous:3"))
    assert [(slot_K[order[j]], window_K[order[j]]) for j in range(7)] == [(j % 3, j // 3) for j in range(7)]
    assert slots_of(range(5), parse_windows("sliding:3/1")) == ((0, 1, 2, 2, 2), (0, 0, 0, 1, 2))


@pytest.mark.parametrize(
    "text", ["contiguous", "contiguous:", "contiguous:0", "sliding:4/4", "sliding:4/0", "contiguous:4/2", "x:4", "sliding:1"]
)
def test_windows_that_cannot_be_are_refused(text):
    with pytest.raises(ConfigError):
        parse_windows(text)


def test_markers_are_distinct_and_as_written():
    assert markers_of("numeric", 2) == ("[1]", "[2]")
    assert markers_of("letters", 28)[25:] == ("[Z]", "[AA]", "[AB]")
    assert markers_of("doc", 2) == ("Doc-1", "Doc-2")
    assert markers_of("roman", 9)[3:] == ("[iv]", "[v]", "[vi]", "[vii]", "[viii]", "[ix]")
    for scheme in MARKERS:
        assert len(set(markers_of(scheme, 120, seed=1, example_id="e"))) == 120
    random = markers_of("random", 5, seed=1, example_id="e")
    assert random == markers_of("random", 7, seed=1, example_id="e")[:5]
    assert random != markers_of("random", 5, seed=2, example_id="e") and random != markers_of("random", 5, seed=1, example_id="f")
    with pytest.raises(ConfigError, match="letters"):
        markers_of("letter", 2)


def test_shuffles_are_those_of_score_examples():
    assert [p.order for p in presentations(EXAMPLE, 4, seed=3)] == [p.order for p in orders(EXAMPLE, 4, 3)]


def test_lists_of_equal_length_do_not_share_their_orders():
    """The original protocol's fault: one fixed index permutation for all lists of a size."""
    drawn = {presentations(RankingExample("q", EXAMPLE.candidates, id=f"e{n}"), 1, seed=0)[0].order for n in range(20)}
    assert len(drawn) > 15


@pytest.mark.parametrize("windows", ["contiguous:3", "round_robin:3"])
def test_within_keeps_the_companions_and_moves_the_slots(windows):
    rule = parse_windows(windows)
    fixed = [set(members) for members in cut(range(7), rule)]
    laid = presentations(EXAMPLE, 6, seed=1, windows=windows, kind="within")
    assert all([set(members) for members in cut(one.order, rule)] == fixed for one in laid)
    assert len({one.order for one in laid}) > 1 and all(one.windows == windows for one in laid)
    for refused in (None, "sliding:4/2"):
        with pytest.raises(ConfigError, match="within"):
            presentations(EXAMPLE, 2, seed=1, windows=refused, kind="within")


def test_jitter_moves_by_less_than_twice_its_reach():
    example = RankingExample("q", tuple(f"d{n}" for n in range(40)), id="e")
    laid = presentations(example, 10, seed=0, kind="jitter", reach=2.0)
    moves = [abs(place - candidate) for one in laid for place, candidate in enumerate(one.order)]
    assert 0 < max(moves) < 4
    assert presentations(example, 1, seed=0, kind="jitter", reach=0.0)[0].order == tuple(range(40))


def test_kinds_without_a_draw():
    assert {p.order for p in presentations(EXAMPLE, 3, seed=0, kind="first_stage")} == {tuple(range(7))}
    assert {p.order for p in presentations(EXAMPLE, 3, seed=0, kind="reverse")} == {(6, 5, 4, 3, 2, 1, 0)}
    laid = presentations(EXAMPLE, 8, seed=4, kind="markers")
    shown = [markers_of(p.markers, 7, seed=p.seed, example_id="e") for p in laid]
    assert {p.order for p in laid} == {tuple(range(7))} and all(a != b for a, b in combinations(shown, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_permutation_and_repeats(kind):
    first = presentations(EXAMPLE, 3, seed=5, windows="contiguous:3", kind=kind)
    assert first == presentations(EXAMPLE, 3, seed=5, windows="contiguous:3", kind=kind)
    assert first[:2] == presentations(EXAMPLE, 2, seed=5, windows="contiguous:3", kind=kind)
    assert all(order_of(one, 7) == one.order for one in first)


def test_order_of_refuses_what_is_no_permutation():
    assert order_of(Presentation(), 3) == (0, 1, 2)
    for order in ((0, 1), (0, 1, 1), (1, 2, 3)):
        with pytest.raises(InputError, match="permutation"):
            order_of(Presentation(order=order), 3)


def test_drop_and_replace_touch_the_same_candidate_and_nobody_else():
    reserve = Candidate("new")
    for seed in range(10):
        dropped, place = drop(EXAMPLE, seed=seed)
        assert dropped.candidates == EXAMPLE.candidates[:place] + EXAMPLE.candidates[place + 1 :] and dropped.id == EXAMPLE.id
        assert dropped.relevance == EXAMPLE.relevance[:place] + EXAMPLE.relevance[place + 1 :]
        replaced, same = replace(EXAMPLE, reserve, seed=seed)
        assert same == place and replaced.candidates[place] is reserve and replaced.relevance[place] == -1.0
        assert drop(replaced, seed=seed)[0] == dropped
        appended, _ = replace(EXAMPLE, reserve, seed=seed, append=True)
        assert appended.candidates == (*dropped.candidates, reserve)
    assert len({drop(EXAMPLE, seed=seed)[1] for seed in range(30)}) == 7
    with pytest.raises(InputError, match="one candidate"):
        drop(RankingExample("q", ("a",)), seed=0)

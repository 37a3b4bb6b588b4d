"""Bradley-Terry against other ways to the same numbers; both orders of every pair; documents that cannot be compared are missing."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit

pytest.importorskip("openai")

from chat_server import base, completion, examples, id_of, text_of
from local_server import serving

from steadyrank import RankingExample
from steadyrank.errors import InputError
from steadyrank.judging import load_judge
from steadyrank.judging.agreement.swap import load_swaps
from steadyrank.judging.bradley_terry import components, fit, win_share
from steadyrank.judging.pairwise import choose_pairs


def test_two_documents_against_the_root_of_their_own_equation():
    wins, games, prior = 3.0, 4.0, 0.5
    # By symmetry θ_b = -θ_a: the derivative along θ_a is wins - games σ(2θ) + prior (1 - 2 σ(θ)) = 0.
    root = brentq(lambda theta: wins - games * expit(2 * theta) + prior * (1 - 2 * expit(theta)), -5, 5)
    assert fit(np.array([[0, wins], [games - wins, 0]]), prior=prior) == pytest.approx([root, -root], abs=1e-8)


def test_a_weak_prior_gives_the_log_odds():
    strengths = fit(np.array([[0, 3], [1, 0]]), prior=1e-7)
    assert strengths[0] - strengths[1] == pytest.approx(np.log(3), abs=1e-5)


def test_many_documents_against_a_general_optimiser():
    wins = np.random.default_rng(0).integers(0, 4, size=(6, 6)).astype(float)
    np.fill_diagonal(wins, 0)

    def loss(theta):
        return -(wins * log_expit(theta[:, None] - theta)).sum() - 0.1 * (log_expit(theta) + log_expit(-theta)).sum()

    assert fit(wins, prior=0.1) == pytest.approx(minimize(loss, np.zeros(6), tol=1e-12).x, abs=1e-4)


def test_extremes_stay_finite_and_ordered():
    wins = np.triu(np.full((8, 8), 50.0), 1)
    strengths = fit(wins, prior=0.01)
    assert np.isfinite(strengths).all() and (np.diff(strengths) < 0).all()
    assert fit(np.zeros((3, 3))) == pytest.approx([0, 0, 0])
    for wrong in (np.zeros((2, 3)), np.full((2, 2), -1.0), np.full((2, 2), np.nan)):
        with pytest.raises(InputError):
            fit(wrong)


def test_components_and_win_share():
    games = np.zeros((6, 6))
    games[1, 2] = games[4, 2] = games[0, 3] = 1
    assert components(games) == [[1, 2, 4], [0, 3], [5]]
    share = win_share(np.array([np.log(3), 0.0, 0.0]))
    assert share == pytest.approx([0.75, (0.25 + 0.5) / 2, (0.25 + 0.5) / 2])  # σ(log 3) = 3/4
    assert share.mean() == pytest.approx(0.5) and win_share(np.array([2.0])) == [0.5]


def test_rings_connect_every_document_and_are_the_same_in_any_run():
    example = RankingExample("q", [f"text {place}" for place in range(9)] + [" "], id="e")
    pairs = list(choose_pairs(example, 2, seed=0))
    assert pairs == list(choose_pairs(example, 2, seed=0)) != list(choose_pairs(example, 2, seed=1))
    games = np.zeros((10, 10))
    for a, b in pairs:
        games[a, b] += 1
    assert len(pairs) == 9 and components(games)[0] == list(range(9)) and ((games + games.T).sum(0)[:9] == 2).all()
    assert len(list(choose_pairs(example, "all", seed=0))) == 36 and 9 < len(list(choose_pairs(example, 4, seed=0))) <= 18
    assert list(choose_pairs(RankingExample("q", ["one"], id="o"), "all", seed=0)) == []


def grades_shown(body) -> list[int]:
    return [int(grade) for grade in re.findall(r"with grade (\d)", text_of(body))]


def prefers(body, number):
    first, second = grades_shown(body)
    better = "tie" if first == second else "A" if first > second else "B"
    return 200, {}, completion(json.dumps({"id": id_of(body), "better": better}))


def pairwise(server, tmp_path, **fields):
    quick = {"backoff": 0.01, "retries": 0, "cache": str(tmp_path / "c"), "model": "m"}
    return load_judge({"kind": "pairwise", "base_url": base(server), **quick, **fields})


def test_a_judge_that_reads_orders_the_list_and_both_orders_are_asked(tmp_path):
    (example,) = examples(1)
    with serving(prefers) as server:
        judge = pairwise(server, tmp_path, swaps=str(tmp_path / "swaps.jsonl"), prior=0.5)
        row = judge.judge([example])[0]
        assert len(server.seen) == 12 and {tuple(grades_shown(body)) for _, _, body in server.seen} == {
            (a, b) for a in range(4) for b in range(4) if a != b
        }
    wins = np.tril(np.full((4, 4), 2.0), -1)  # the later document won both times
    assert row.grades == pytest.approx(3 * win_share(fit(wins, prior=0.5)))
    assert list(row.grades) == sorted(row.grades) and row.grades[0] >= 0 and row.grades[3] <= 3
    swaps = load_swaps(tmp_path / "swaps.jsonl")
    assert len(swaps) == 6 and all((swap.first, swap.second) == (0.0, 0.0) for swap in swaps)
    assert judge.about()["inconsistent"] == 0 and judge.about()["pairs"] == 6


def test_a_judge_that_always_takes_the_first_learns_nothing_and_is_seen(tmp_path):
    with serving(lambda body, number: (200, {}, completion("A"))) as server:
        judge = pairwise(server, tmp_path, swaps=str(tmp_path / "swaps.jsonl"))
        assert judge.judge(examples(1))[0].grades == pytest.approx([1.5] * 4)
        assert judge.about()["inconsistent"] == 6
    assert all((swap.first, swap.second) == (1.0, 0.0) for swap in load_swaps(tmp_path / "swaps.jsonl"))


def test_documents_that_no_whole_pair_connects_are_missing(tmp_path):
    def blind_to_three(body, number):
        return (200, {}, completion("?")) if 3 in grades_shown(body)[:1] else prefers(body, number)

    with serving(blind_to_three) as server:  # every pair of document 3 lacks one order
        judge = pairwise(server, tmp_path, swaps=str(tmp_path / "swaps.jsonl"))
        row = judge.judge(examples(1))[0]
    assert row.grades[3] is None and row.extra["missing"] == {"3": "disconnected"} and None not in row.grades[:3]
    told = judge.about()
    assert (told["half_answered"], told["disconnected_lists"], told["disconnected_documents"]) == (3, 1, 1)
    assert sum(swap.second is None for swap in load_swaps(tmp_path / "swaps.jsonl")) == 3


def test_a_list_without_any_answer_has_no_grades(tmp_path):
    with serving(lambda body, number: (200, {}, completion("?"))) as server:
        assert pairwise(server, tmp_path).judge(examples(1))[0].grades == (None,) * 4


def test_documents_without_text_are_below_all_and_never_compared(tmp_path):
    example = RankingExample("q", ["with grade 1", " ", "with grade 3"], id="e")
    with serving(prefers) as server:
        row = pairwise(server, tmp_path).judge([example])[0]
        assert len(server.seen) == 2 and row.grades[1] == 0.0 < row.grades[0] < row.grades[2]

"""The decision card: what stands in audit.json stands on it, nothing else, and nothing breaks where a part is missing."""

import copy
import json
import re

import pytest

from steadyrank.errors import InputError
from steadyrank.reports import card_view
from steadyrank.reports.card import panel, slot_bars, stack_widths, write_card


def around(mean, half=0.02):
    return {"mean": mean, "low": mean - half, "high": mean + half, "n": 40, "excluded": 0}


def made(name="joint", *, psi=0.2, effects=(0.2, 0.0, -0.2), scale="probability"):
    """An audit.json of made-up numbers."""
    flipping = [
        {
            "text": f"document {place} <b>bold</b>", "grade": float(place == 1), "score_a": 0.6 - place / 10, "rank_a": place + 1,
            "place_a": 3 - place, "kept_a": place < 2, "score_b": 0.5 - place / 10, "rank_b": place + 1, "place_b": place + 1,
            "kept_b": place < 1,
        }
        for place in range(3)
    ]  # fmt: skip
    return {
        "schema": "steadyrank.audit/1",
        "system": {"name": name, "scale": scale, "reads_lists": True, "windows": "contiguous:3", "from_file": False},
        "data": {
            "lists": 40, "dev_lists": 38, "threshold_chosen_on": "half of the lists", "candidates": 120, "pool_sizes": [3, 3],
            "presentations": 10, "most_presentations": 10, "graded_lists": 40, "single_candidate_lists": 0, "sources": {"a": 20, "b": 20},
        },
        "counts": {"asked": 440, "failed": 3, "unscored": 0, "truncated": 7, "failures": ["q1: <timed out>"]},
        "steadiness": {"tau_psi": around(psi), "score_sd": around(max(map(abs, effects)), 0), "moved_lists": around(1.0, 0)},
        "verdict": {
            "grade": "unsteady", "steadiness": "unsteady", "best": "unsteady", "worst": "unsteady",
            "headline": "At threshold 0.42, two orders of the same three documents agree on 64% [60, 68] of the kept set.",
            "sentences": ["Under the same orders nDCG@6 is 0.700 [0.680, 0.720]; a random order gets 0.500."],
        },
        "quality": {
            "lists": 40,
            "measures": {
                "nDCG@6": {"mean": around(0.7), "worst": around(0.5), "best": around(0.9), "first_stage_order": around(0.81)}
            },
            "references": {
                "nDCG@6": {"random": around(0.5), "constant": around(0.51), "first_stage": around(0.66), "oracle": around(1.0, 0)}
            },
            "above_chance": {"nDCG@6": around(0.2)},
        },
        "causes": {
            "shares": {"slot": 0.75, "window": -0.01, "remainder": 0.26}, "slot_effects": list(effects), "slot_rms": 0.1, "width": 3,
            "lists": 40, "caveat": "",
        },
        "threshold": {
            "chosen_on": "half of the lists", "dev_lists": 38,
            "points": [{
                "name": "f1", "threshold": 0.42, "jaccard": around(0.64, 0.04), "document_flip": around(0.31), "retention": around(0.3),
                "empty": around(0.05), "precision": around(0.77), "recall": around(0.66), "f1": around(0.71),
            }],
        },
        "preference": {"top_flip": around(0.38), "pair_flip": around(0.52), "quality": around(0.83)},
        "reader": None, "pool": None, "batching": {"largest": 2e-7, "moved_lists": 0},
        "example": {
            "id": "q7", "source": "a", "query": "is <script>alert(1)</script> kept?", "instruction": None, "about": "threshold",
            "threshold": 0.42,
            "agreement": 0.5, "flipping_lists": 21, "lists": 40, "candidates": flipping, "candidates_left_out": 0,
        },
        "left_out": {"reader": "no list holds answers", "pool": "not asked for"},
        "settings": {"presentations": 10, "kind": "shuffle", "seed": 0},
        "fingerprints": {"lists": "0123456789abcdef"},
    }  # fmt: skip


def words_of(page):
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.S).replace("\u00a0", " ").split())


@pytest.fixture
def page(tmp_path):
    def write(*audits, **options):
        write_card(audits, tmp_path / "card.html", **options)
        return (tmp_path / "card.html").read_text(encoding="utf-8")

    return write


def test_the_files_numbers_stand_on_the_page(page):
    words = words_of(page(made()))
    for shown in ("64% [60, 68]", "unsteady", "0.700", "[0.680, 0.720]", "0.810", "38%", "52%", "tuned for F1: 0.42", "77%", "q7"):
        assert shown in words, shown
    assert "reader (no list holds answers)" in words and "pool (not asked for)" in words
    assert "failed 3" in words and "truncated 7" in words
    assert "21 of 40 lists" in words


def test_the_page_stands_alone_and_escapes(page):
    text = page(made())
    assert not re.search(r"<script|<link|<iframe|(src|href)=[\"']?https?:", text)
    assert "&lt;script&gt;alert(1)" in text and "&lt;b&gt;bold" in text and "&lt;timed out&gt;" in text


def test_the_same_file_gives_the_same_page(page):
    assert page(made()) == page(json.loads(json.dumps(made())))


@pytest.mark.parametrize("part", ["quality", "causes", "threshold", "preference", "example", "batching"])
def test_a_missing_part_is_said(page, tmp_path, part):
    audit = made()
    audit[part] = None
    audit["left_out"][part] = "because of a test"
    text = page(audit, png=tmp_path / "card.png")
    assert "because of a test" in text.replace("Because", "because")
    assert (tmp_path / "card.png").stat().st_size > 20_000


def test_agreement_turns_psi_and_its_interval_round():
    (side,) = card_view.sides_of([made(psi=0.2)])
    agreement = side.agreement
    assert (agreement.mean, agreement.low, agreement.high) == pytest.approx((0.6, 0.56, 0.64))


def test_negative_shares_count_as_nothing_and_the_rest_adds_up():
    (side,) = card_view.sides_of([made()])
    assert [(key, round(share, 4)) for key, _, share in side.shares] == [
        ("slot", round(0.75 / 1.01, 4)),
        ("remainder", round(0.26 / 1.01, 4)),
    ]


class TestSideBySide:
    def test_bars_share_one_scale(self):
        sides = card_view.sides_of([made("before"), made("after", effects=(0.05, 0.0, -0.05))])
        before, after = slot_bars(sides)
        assert [bar["height"] for bar in before] == [100, 0, 100] and [bar["height"] for bar in after] == [25, 0, 25]
        assert stack_widths(sides) == [100, 25]

    def test_other_scales_are_not_compared(self):
        sides = card_view.sides_of([made("before"), made("after", effects=(5.0, 0.0, -5.0), scale="logit")])
        before, after = slot_bars(sides)
        assert before[0]["height"] == after[0]["height"] == 100
        assert stack_widths(sides) == [100, 100]

    def test_equal_names_are_told_apart(self):
        assert [side.name for side in card_view.sides_of([made(), made()])] == ["joint (1)", "joint (2)"]

    def test_both_stand_on_the_page_and_the_picture(self, page, tmp_path):
        other = made("after", psi=0.01)
        other["verdict"].update(grade="steady", headline="At threshold 0.4, two orders agree on 99% [98, 100] of the kept set.")
        words = words_of(page(made("before"), other, png=tmp_path / "card.png"))
        assert "before against after" in words and "64% [60, 68]" in words and "99% [98, 100]" in words
        from matplotlib.image import imread

        assert imread(tmp_path / "card.png").shape[:2] == (1185, 2100)

    def test_a_difference_favours_a_side_only_where_its_interval_leaves_zero_out(self, page):
        found = {
            "nDCG@6": {"mean": 0.02, "low": -0.01, "high": 0.05, "n": 40},
            "tau_psi": {"mean": 0.1, "low": 0.08, "high": 0.12, "n": 40},  # more pairs turned round is worse
            "jaccard f1": {"mean": 0.2, "low": 0.1, "high": 0.3, "n": 40},
            "score_variance": {"mean": 9.0, "low": 8.0, "high": 10.0, "n": 40},  # of other scales, so it is not shown
            "top_flip": {"mean": None, "low": None, "high": None, "n": 0},
        }
        words = words_of(page(made("before"), made("after"), differences=found))
        assert "List by list: before minus after" in words
        assert "nDCG@6 +0.020 \u22120.010 to +0.050 not told apart" in words
        assert "(τ-PSI) +0.100 +0.080 to +0.120 after is better" in words
        assert "threshold by F1 +0.200 +0.100 to +0.300 before is better" in words
        assert "+9.000" not in words
        assert "List by list" not in words_of(page(made("before"), made("after")))


def test_a_better_scorer_stands_higher_and_a_steadier_one_further_right():
    better = made("better", psi=0.05)
    better["quality"]["measures"]["nDCG@6"]["mean"] = around(0.8)
    drawn = panel(card_view.sides_of([made("plain", psi=0.2), better]))
    plain, best = drawn["points"]
    assert best["y"] < plain["y"] and best["x"] > plain["x"]
    assert plain["y_high"] < plain["y"] < plain["y_low"] and plain["x_low"] < plain["x"] < plain["x_high"]


def test_the_flip_is_told_in_one_sentence():
    told = card_view.example_sentence({**made()["example"], "candidates": made()["example"]["candidates"][1:]})
    assert "is kept when shown as number 2 (score 0.5) and dropped when shown as number 2 (score 0.4)" in told


class TestMistakes:
    def test_another_schema(self, tmp_path):
        (tmp_path / "study.json").write_text('{"schema": "steadyrank.study/1"}')
        with pytest.raises(InputError, match=r"study.json: schema: is 'steadyrank.study/1'; give an audit.json"):
            write_card([tmp_path / "study.json"], tmp_path / "card.html")

    def test_a_file_without_its_parts(self, tmp_path):
        broken = copy.deepcopy(made())
        del broken["verdict"]
        (tmp_path / "audit.json").write_text(json.dumps(broken))
        with pytest.raises(InputError, match="verdict: is missing"):
            write_card([tmp_path / "audit.json"], tmp_path / "card.html")

    def test_three_audits(self, tmp_path):
        with pytest.raises(InputError, match="holds 3 audits"):
            write_card([made()] * 3, tmp_path / "card.html")

"""The audit on scorers whose behaviour is planted: what must come out is known from arithmetic or from how they were made."""

import json
from itertools import combinations, pairwise

import numpy as np
import pytest

from steadyrank import seeds
from steadyrank.audit import Audit, run_audit
from steadyrank.errors import ConfigError, InputError, RunError
from steadyrank.records import Candidate, Presentation, RankingExample, ScoredList
from steadyrank.scoring.base import Scorer

FAST = {"resamples": 200, "presentations": 6}


def make_lists(count=24, size=6, *, graded=True, answers=False, source="made"):
    out = []
    for place in range(count):
        draw = seeds.stream(7, "lists", place)
        grades = draw.permutation([2, 1, 1] + [0] * (size - 3)) if graded else None
        candidates = tuple(Candidate(f"document {place}-{k} says the year was 19{k}{place % 10}", id=f"d{k}") for k in range(size))
        out.append(
            RankingExample(
                f"question {place} about the year",
                candidates,
                relevance=None if grades is None else tuple(float(g) for g in grades),
                id=f"q{place}",
                source=f"{source}/{place % 2}",
                answers=("1900",) if answers else None,
            )
        )
    return out


class Planted(Scorer):
    """Scores a list as `rule(example, order)` says: canonical scores under this order."""

    name, scale, reads_lists = "planted", "grade", True

    def __init__(self, rule, *, windows=None):
        self.rule, self.windows, self.calls = rule, windows, 0

    @property
    def fingerprint(self):
        return "planted"

    def score_presentations(self, examples, laid, *, progress=False):
        self.calls += 1
        rows = []
        for example, row in zip(examples, laid, strict=True):
            out = []
            for shown in row:
                order = shown.order or tuple(range(len(example.candidates)))
                out.append(ScoredList(example.id, self.name, tuple(self.rule(example, order)), self.scale, shown))
            rows.append(out)
        return rows


class Pointwise(Planted):
    reads_lists = False


def quality_of(example):
    """A noisy view of the grades, each candidate's its own: ranks well, not perfectly."""
    grades = example.relevance or range(len(example.candidates))
    return np.array([grade + seeds.stream(3, "view", text).normal(0, 0.5) for grade, text in zip(grades, example.documents)])


def slot_biased(example, order, weight=3.0):
    slots = np.empty(len(order))
    slots[list(order)] = np.arange(len(order))
    return quality_of(example) - weight * slots / len(order)


class TestFindings:
    def test_pointwise_is_exactly_steady(self):
        audit = run_audit(Pointwise(lambda e, o: quality_of(e)), make_lists(), **FAST)
        assert audit.verdict["grade"] == "exactly steady"
        assert audit.verdict["headline"].startswith("Exactly steady: 6 presentations of the same six documents gave the same scores")
        assert audit.steadiness["tau_psi"]["mean"] == 0 and audit.steadiness["score_sd"]["mean"] == 0
        assert audit.threshold["points"][0]["jaccard"]["mean"] == 1 and audit.preference["top_flip"]["mean"] == 0
        assert audit.causes is None and "no score moves" in audit.left_out["causes"]
        assert audit.example is None
        assert audit.pool["pool_psi"]["mean"] == audit.replace["pool_psi"]["mean"] == 0 and audit.batching["largest"] == 0
        assert audit.companions["arrangement"] == 0 and audit.companions["share"] is None  # nothing moves, so there is no share of it

    def test_ties_of_a_steady_scorer_are_no_flips(self):
        """Equal scores at the top must not turn over with the order shown."""
        audit = run_audit(Pointwise(lambda e, o: [1.0, 1.0, 1.0, 0.5, 0.5, 0.0]), make_lists(), top_k=2, **FAST)
        assert audit.steadiness["top_k_turnover"]["mean"] == 0 and audit.preference["top_flip"]["mean"] == 0
        assert audit.example is None

    def test_constant_is_useless_and_scores_chance(self):
        audit = run_audit("constant", make_lists(), **FAST)
        assert audit.verdict["grade"] == "useless"
        assert audit.verdict["headline"].startswith("Useless: the same score for everything")
        for name, row in audit.quality["measures"].items():
            assert row["mean"]["mean"] == pytest.approx(audit.quality["references"][name]["random"]["mean"], abs=1e-12)
        # ties broken by the order shown, on shuffled pools: near chance, far from the oracle's 1
        shown = audit.quality["references"]["RR@6"]["constant"]
        assert shown["low"] < audit.quality["references"]["RR@6"]["random"]["mean"] < shown["high"]

    def test_random_in_every_presentation_is_chance(self):
        audit = run_audit(Planted(lambda e, o: seeds.stream(1, e.id, *o).random(len(o))), make_lists(60), **FAST)
        assert audit.verdict["grade"] == "no better than chance"
        assert audit.verdict["steadiness"] == "unsteady"
        assert audit.steadiness["tau_psi"]["low"] < 0.5 < audit.steadiness["tau_psi"]["high"]
        above = audit.quality["above_chance"]["nDCG@6"]
        assert above["low"] < 0 < above["high"]
        # two random orders put the same of six first with chance 1/6
        flip = audit.preference["top_flip"]
        assert flip["low"] < 5 / 6 < flip["high"]

    def test_random_once_is_steady_and_still_chance(self):
        audit = run_audit("random", make_lists(60), **FAST)
        assert audit.verdict["grade"] == "no better than chance" and audit.verdict["steadiness"] == "exactly steady"

    def test_planted_slot_bias_is_found(self):
        audit = run_audit(Planted(slot_biased), make_lists(40), **{**FAST, "presentations": 10})
        shares = audit.causes["shares"]
        assert audit.companions["arrangement"] == audit.companions["share"] == 0  # in its slot, a document is never moved by the others
        assert shares["slot"] > 0.97 and shares["remainder"] < 0.03  # all movement is the slot's
        assert audit.causes["width"] == 6
        assert audit.causes["slot_effects"] == pytest.approx([1.25, 0.75, 0.25, -0.25, -0.75, -1.25], abs=1e-6)  # 3/6 a slot, centred
        assert audit.verdict["steadiness"] == "unsteady"
        assert any("the slot a document stands in" in line for line in audit.verdict["sentences"])

    def test_companions_are_found_where_slots_are_innocent(self):
        """Where candidate 0 is shown first, every other score falls by 1. A target other than 0 sees it first in one of five cases, so two
        arrangements differ in 2 * 1/5 * 4/5 of pairs, and half the squared difference is 0.16 on average; five of six targets do."""

        def jealous(example, order):
            return [quality - float(order[0] == 0 and place != 0) for place, quality in enumerate(quality_of(example))]

        audit = run_audit(Planted(jealous), make_lists(400), **{**FAST, "probe_lists": 400})
        assert audit.companions["arrangement"] == pytest.approx(0.16 * 5 / 6, abs=0.035)
        assert audit.companions["coupling"] is None and audit.companions["pairs"]["coupling"] == 0  # one prompt: companions stay the same

    def test_a_stranger_in_the_pool_turns_round_a_scorer_that_minds_it(self):
        def rule(example, order):
            own = {text.split("-")[0] for text in example.documents}
            return [place if len(own) == 1 else -place for place in range(len(example.candidates))]

        audit = run_audit(Planted(rule), make_lists(), **FAST)
        assert (audit.pool["pool_psi"]["mean"], audit.replace["pool_psi"]["mean"]) == (0, 1)
        assert audit.replace["lists"] == 12 and audit.replace["failed"] == 0

    def test_slots_are_those_of_the_scorers_windows(self):
        def biased(example, order):
            scores = np.array(quality_of(example))
            for place, candidate in enumerate(order):
                scores[candidate] += 2.0 * (place % 3 == 0)  # first of each window of three
            return scores

        audit = run_audit(Planted(biased, windows="contiguous:3"), make_lists(30), **FAST)
        assert audit.causes["width"] == 3 and audit.causes["shares"]["slot"] > 0.97
        assert np.diff(audit.causes["slot_effects"]) == pytest.approx([-2, 0], abs=1e-6)

    def test_first_stage_order_stands_beside(self):
        """A scorer that copies the order shown: the file's order scores as the file's order, shuffles as chance."""
        lists = [e.with_candidates(np.argsort([-g for g in e.relevance], kind="stable").tolist()) for e in make_lists(40)]
        audit = run_audit(Planted(lambda e, o: [-o.index(k) for k in range(len(o))]), lists, **FAST)
        row = audit.quality["measures"]["nDCG@6"]
        assert row["first_stage_order"]["mean"] == pytest.approx(1.0)
        assert row["mean"]["low"] < audit.quality["references"]["nDCG@6"]["random"]["mean"] < row["mean"]["high"]
        assert any("belongs to the order" in line for line in audit.verdict["sentences"])

    def test_markers_are_called_markers(self):
        """With the order fixed the sentences must not speak of orders."""
        rule = {"numeric": 0.0, "letters": 0.4, "doc": 0.8, "roman": 1.2, "random": 1.6}

        class Marked(Planted):
            def score_presentations(self, examples, laid, *, progress=False):
                rows = []
                for example, row in zip(examples, laid, strict=True):
                    moves = [np.arange(len(example.candidates)) * rule.get(shown.markers, 0.0) for shown in row]
                    lists = [(quality_of(example) + move, shown) for move, shown in zip(moves, row, strict=True)]
                    rows.append([ScoredList(example.id, "marked", tuple(scores), "grade", shown) for scores, shown in lists])
                return rows

        audit = run_audit(Marked(None), make_lists(), kind="markers", **{**FAST, "presentations": 5})
        told = " ".join([audit.verdict["headline"], *audit.verdict["sentences"]])
        assert "two sets of slot markers on the same six documents" in told and "two orders" not in told


class TestThreshold:
    def test_jaccard_is_what_arithmetic_gives(self):
        """Candidates 0 and 1 are kept always, candidate 2 in every second presentation."""
        examples = make_lists(8, 4, graded=False)
        scored = [
            ScoredList(e.id, "s", (0.9, 0.8, 0.9 if p % 2 else 0.1, 0.1), "probability", Presentation(order=(0, 1, 2, 3), seed=p))
            for e in examples
            for p in range(4)
        ]
        audit = run_audit(scored, examples, threshold=0.5, resamples=100)
        pairs = [1.0 if a % 2 == b % 2 else 2 / 3 for a, b in combinations(range(4), 2)]
        point = audit.threshold["points"][0]
        assert point["name"] == "given" and audit.threshold["chosen_on"] == "given"
        assert point["jaccard"]["mean"] == pytest.approx(sum(pairs) / 6)
        assert point["jaccard"]["low"] == pytest.approx(point["jaccard"]["high"])  # the same in every list
        assert point["document_flip"]["mean"] == pytest.approx(1 / 3)
        assert audit.verdict["headline"].startswith(
            "At threshold 0.5, two orders of the same four documents agree on 78% [78, 78] of the kept set"
        )
        assert audit.verdict["steadiness"] == "unsteady"  # 1 - 7/9 > .20

    def test_never_chosen_on_reported_lists(self):
        examples = make_lists()
        audit = run_audit(Pointwise(lambda e, o: quality_of(e)), examples, **FAST)
        assert audit.threshold["chosen_on"] == "half of the lists"
        assert audit.data["lists"] + audit.data["dev_lists"] == len(examples)
        assert abs(audit.data["lists"] - audit.data["dev_lists"]) <= 1
        with pytest.raises(InputError, match="never chosen on what it is reported on"):
            run_audit("oracle", examples, dev=examples[:3], **FAST)

    def test_groups_stay_on_one_side(self):
        examples = [RankingExample(e.query, e.candidates, e.relevance, id=e.id, group=f"g{n // 4}") for n, e in enumerate(make_lists())]
        audit = run_audit("oracle", examples, **FAST)
        assert audit.data["lists"] % 4 == 0 and audit.data["dev_lists"] % 4 == 0 and audit.data["dev_lists"]

    def test_one_list_has_no_threshold_and_says_so(self):
        audit = run_audit("oracle", make_lists(1), **FAST)
        assert audit.threshold is None and "too few lists" in audit.left_out["threshold"]

    def test_without_grades_retention_and_steadiness(self):
        audit = run_audit(Planted(slot_biased), make_lists(graded=False), retention=0.5, **FAST)
        assert audit.quality is None and "grades" in audit.left_out["quality"]
        (point,) = audit.threshold["points"]
        assert point["name"] == "retention" and point["retention"]["mean"] == pytest.approx(0.5, abs=0.06)
        assert point["precision"]["mean"] is None
        json.dumps(audit.to_json(), allow_nan=False)


class TestCounts:
    def test_failed_lists_are_counted_and_never_scores(self):
        class Failing(Planted):
            def __init__(self, rule):
                super().__init__(rule)
                self.failures = []

            def score_presentations(self, examples, laid, *, progress=False):
                rows = super().score_presentations(examples, laid)
                if len(laid[0]) < 3:
                    return rows  # probes answer
                for example, row in zip(examples, rows, strict=True):
                    if example.id in ("q0", "q1"):
                        self.failures += [f"{example.id} timed out"] * len(row)
                        row.clear()
                    elif example.id == "q2":
                        self.failures.append("q2 gave NaN")
                        row.pop(0)
                return rows

        audit = run_audit(Failing(lambda e, o: quality_of(e)), make_lists(10), threshold=1.0, **FAST)
        assert audit.counts["asked"] == 10 * 7
        assert audit.counts["failed"] == 7 + 7 + 1
        assert audit.counts["unscored"] == 2 and audit.data["lists"] == 8
        assert len(audit.counts["failures"]) == 5 and "timed out" in audit.counts["failures"][0]
        assert audit.data["presentations"] == 5 and audit.data["most_presentations"] == 6

    def test_nothing_answered_is_an_error(self):
        class Dead(Planted):
            def score_presentations(self, examples, laid, *, progress=False):
                return [[] for _ in examples]

        with pytest.raises(RunError, match="answered none of"):
            run_audit(Dead(None), make_lists(4), **FAST)

    def test_cut_and_empty_texts_are_counted(self):
        examples = make_lists(4)
        scored = [
            ScoredList(e.id, "s", tuple(range(6)), "grade", Presentation(order=tuple(range(6)), seed=p), truncated=(1, 2), empty=(3,))
            for e in examples
            for p in range(2)
        ]
        audit = run_audit(scored, examples, threshold=2.0, resamples=50)
        assert audit.counts["truncated"] == 4 * 2 * 2 and audit.counts["empty"] == 4 * 2
        assert audit.left_out["pool"] == "needs the scorer, and this is a file of scores"

    def test_odd_lists_among_others(self):
        """One candidate, two, no grades, nothing relevant, an empty and a repeated text: counted or left out, never a crash or a NaN."""
        odd = [
            RankingExample("one", (Candidate("only"),), (1.0,), id="o1"),
            RankingExample("two", (Candidate("a"), Candidate("b")), (0.0, 1.0), id="o2"),
            RankingExample("ungraded", (Candidate("a"), Candidate(""), Candidate("a")), id="o3", answers=("a",)),
            RankingExample("nothing", (Candidate("a"), Candidate("b"), Candidate("c")), (0.0, 0.0, -1.0), id="o4"),
        ]
        audit = run_audit(Planted(slot_biased), [*make_lists(12), *odd], threshold=0.5, **FAST)
        assert audit.data["pool_sizes"] == [1, 6] and audit.data["single_candidate_lists"] == 1 and audit.data["graded_lists"] == 15
        assert audit.steadiness["tau_psi"]["excluded"] == 1  # one candidate has no pair
        assert audit.preference["top_flip"]["n"] == 15
        assert audit.reader["lists"] == 1
        json.dumps(audit.to_json(), allow_nan=False)

    def test_dev_lists_without_scores_are_said(self):
        examples = make_lists(8)
        scored = [
            ScoredList(e.id, "s", tuple(range(6)), "grade", Presentation(order=tuple(range(6)), seed=p)) for e in examples for p in range(2)
        ]
        dev = [RankingExample("elsewhere", e.candidates, e.relevance, id="dev") for e in examples[:1]]
        audit = run_audit(scored, examples, dev=dev, resamples=50)
        assert audit.threshold is None and "no dev list has scores" in audit.left_out["threshold"]


class TestFiles:
    def test_round_trip(self, tmp_path):
        audit = run_audit(Planted(slot_biased), make_lists(12), **FAST)
        audit.write(tmp_path / "audit.json")
        assert Audit.read(tmp_path / "audit.json") == audit

    def test_a_killed_audit_goes_on_to_the_same_numbers(self, tmp_path, monkeypatch):
        from steadyrank.audit import scoring

        monkeypatch.setattr(scoring, "CHUNK", 5)
        whole = run_audit(Planted(slot_biased), make_lists(), probes=(), **FAST)

        class Killed(Planted):
            def score_presentations(self, examples, laid, *, progress=False):
                if self.calls == 2:
                    raise KeyboardInterrupt
                return super().score_presentations(examples, laid)

        path = tmp_path / "scores.jsonl"
        with pytest.raises(KeyboardInterrupt):
            run_audit(Killed(slot_biased), make_lists(), probes=(), scores_path=path, **FAST)
        with open(path.with_name("scores.jsonl.part"), "a") as part:
            part.write('{"schema": "steadyrank.sc')  # a line cut short
        scorer = Planted(slot_biased)
        resumed = run_audit(scorer, make_lists(), probes=(), scores_path=path, **FAST)
        assert scorer.calls == 3  # five chunks, two of them done
        assert resumed.counts["from_an_earlier_start"] > 0
        assert {**resumed.to_json(), "counts": 0} == {**whole.to_json(), "counts": 0}
        again = Planted(slot_biased)
        run_audit(again, make_lists(), probes=(), scores_path=path, **{**FAST, "top_k": 2})
        assert again.calls == 0  # the finished file is enough

    def test_the_scores_file_audits_alike(self, tmp_path):
        path = tmp_path / "scores.jsonl"
        live = run_audit(Planted(slot_biased), make_lists(), scores_path=path, **FAST)
        filed = run_audit(str(path), make_lists(), **FAST)
        for part in ("quality", "steadiness", "threshold", "preference", "causes", "example"):
            assert getattr(filed, part) == getattr(live, part), part


class TestReaderAndExample:
    def test_reader_flips_follow_the_top(self):
        class First:
            def answer(self, question, passages):
                return passages[0]

        lists = make_lists(20, answers=True)
        audit = run_audit(Planted(slot_biased), lists, answerer=First(), top_k=1, **FAST)
        assert audit.reader["answer_flip"]["mean"] == pytest.approx(audit.preference["top_flip"]["mean"])
        assert run_audit("oracle", make_lists(4), threshold=1.0, **FAST).left_out["reader"] == "no list holds answers"

    def test_example_shows_a_flip(self):
        audit = run_audit(Planted(slot_biased), make_lists(30), threshold=0.0, **FAST)
        shown = audit.example
        assert shown["about"] == "threshold" and 0 < shown["flipping_lists"] <= shown["lists"]
        first = shown["candidates"][0]
        assert first["kept_a"] != first["kept_b"]
        for row in shown["candidates"]:
            assert row["kept_a"] == (row["score_a"] >= 0.0)
        both = sum(row["kept_a"] and row["kept_b"] for row in shown["candidates"])
        either = sum(row["kept_a"] or row["kept_b"] for row in shown["candidates"])
        assert shown["agreement"] == pytest.approx(both / either)
        assert {row["place_a"] for row in shown["candidates"]} == set(range(1, 7))


class TestMistakes:
    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (lambda: run_audit("oracle", []), "at least one list"),
            (lambda: run_audit("oracle", make_lists(2) * 2), "twice"),
            (lambda: run_audit("oracle", make_lists(2), presentation=5), "did you mean 'presentations'"),
            (lambda: run_audit("oracle", make_lists(2), presentations=1), "from 2"),
            (lambda: run_audit("oracle", make_lists(2), kind="shufle"), "shuffle"),
            (lambda: run_audit("oracle", make_lists(2), consumers=("thresholds",)), "threshold"),
            (lambda: run_audit("oracle", make_lists(2), measures=("ERR@6",)), "closed form"),
            (lambda: run_audit([ScoredList("q0", "s", (1.0,) * 6)], make_lists(2)), "at least two"),
            (lambda: run_audit([ScoredList("x", "s", (1.0,) * 6)], make_lists(2)), "none of the"),
            (lambda: run_audit([ScoredList("q0", "s", (1.0,))] * 2, make_lists(2)), "1 scores for 6 candidates"),
        ],
    )
    def test_one_sentence(self, call, said):
        with pytest.raises((InputError, ConfigError), match=said) as error:
            call()
        assert "\n" not in str(error.value)


def test_grades_rise_with_the_planted_unsteadiness():
    """More slot bias never gives a better grade."""
    grades = ["steady", "mostly steady", "unsteady"]
    reached = [
        grades.index(run_audit(Planted(lambda e, o, w=w: slot_biased(e, o, w)), make_lists(30), **FAST).verdict["steadiness"])
        for w in (0.001, 0.4, 6.0)
    ]
    assert all(a <= b for a, b in pairwise(reached)) and reached[0] == 0 and reached[-1] == 2


def test_every_benched_measure_runs():
    from steadyrank.benchmarks.audit import measure_works

    for name, work in measure_works(3, 4, 5, 0).items():
        assert work() is not None, name

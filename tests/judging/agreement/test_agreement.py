"""Agreement of judges end to end: counts by hand, scales, missing grades, constant raters, single lists, invariances, verdicts."""

import numpy as np
import pytest
from agreement_factory import FEW, JUDGE, LISTS, compare, made, make_list, rows

from steadyrank import RankingExample
from steadyrank.errors import ConfigError, InputError
from steadyrank.judging.agreement import Agreement, AgreementSettings, judge_agreement
from steadyrank.judging.base import JudgedList
from steadyrank.seeds import stream


class TestByHand:
    def test_counts(self):
        """Both graded 10 of 12 documents: gold 3 0 1 | 0 2 0 | 1 1 | 0 3, judge 2 0 1 | 1 1 1 | 3 0 | 0 3."""
        found = compare()
        assert found["documents"] == 10
        assert found["confusion"] == [[2, 2, 0, 0], [1, 1, 0, 1], [0, 1, 0, 0], [0, 0, 1, 1]]
        assert found["binary"] == [[6, 1], [1, 2]]  # relevant from 2 on: gold 3, 2, 3; judge 2, 3, 3
        assert found["lists"] == {"ordered": 2, "blind": 1, "unordered": 1, "short": 0}

    def test_values(self):
        cells = compare()["overall"]
        assert cells["missing_a"]["value"] == cells["missing_b"]["value"] == 1 / 12
        assert cells["accuracy"]["value"] == 0.4 and cells["accuracy_binary"]["value"] == 0.8
        assert cells["kappa_binary"]["value"] == pytest.approx((0.8 - 0.58) / (1 - 0.58))  # by chance .7 * .7 + .3 * .3
        assert cells["difference"]["value"] == pytest.approx((-1 + 0 + 0 + 1 - 1 + 1 + 2 - 1 + 0 + 0) / 10)
        assert cells["false_positive_rate"]["value"] == 1 / 7 and cells["recall"]["value"] == 2 / 3
        # q1 and q4 are ordered alike, q2 is not told apart: its two ordered pairs count half
        assert cells["spearman_query"]["value"] == pytest.approx(1.0)
        assert cells["spearman_query_counted"]["value"] == pytest.approx(2 / 3)
        assert cells["pairs"] == pytest.approx({**cells["pairs"], "value": (3 + 2 * 0.5 + 1) / (3 + 2 + 1), "n": 6})
        assert {name: cells[name]["n"] for name in ("accuracy", "spearman_query", "spearman_query_counted", "missing_b")} == {
            "accuracy": 10, "spearman_query": 2, "spearman_query_counted": 3, "missing_b": 12,
        }  # fmt: skip

    def test_macro_is_the_mean_over_datasets(self):
        found = compare()
        one, two = (found["by_source"][name]["accuracy"]["value"] for name in ("one", "two"))
        assert (one, two) == (2 / 6, 2 / 4)
        assert found["macro"]["accuracy"]["value"] == pytest.approx((one + two) / 2)
        assert found["macro"]["accuracy"]["n"] == 2

    def test_what_guessing_would_get(self):
        references = compare()["references"]
        assert references["constant"]["level"] == 0 and references["constant"]["accuracy"] == 0.4
        assert references["random"]["accuracy"] == pytest.approx((4 * 3 + 3 * 4 + 1 * 1 + 2 * 2) / 100)
        assert references["constant"]["kappa"] is None and references["constant"]["pairs"] == references["random"]["pairs"] == 0.5


class TestScales:
    def test_a_finer_scale_is_rounded_to_the_coarser(self):
        """0-3 onto 0-1: below 1.5 not relevant, from 1.5 on relevant; gold grades of 0 and 1 are read as 0-1."""
        lists = [make_list("q", [0, 1, 0, 1, 1])]
        found = compare(lists, rows(q=[0, 1, 1.49, 1.5, 3]))
        assert found["levels"] == [0, 1] and found["confusion"] == [[2, 0], [1, 2]] == found["binary"]

    def test_relevance_may_begin_elsewhere(self):
        found = compare(settings=AgreementSettings(relevant={"gold": 1}, resamples=50))
        assert found["binary"] == [[4, 0], [3, 3]]

    def test_guesses_are_told_and_can_be_overruled(self):
        lists = [make_list("q", [0, 1, 2]), make_list("p", [2, 0, 0])]
        judge = rows(q=[0, 1, 1], p=[1, 0, 0])
        found = judge_agreement(lists, {"judge": judge}, settings=FEW)
        assert found.scales["gold"]["top"] == 3 and any("gold is taken as 0-3" in note for note in found.notes)
        assert any("--scale judge=1" in note for note in found.notes)
        told = judge_agreement(lists, {"judge": judge}, settings=AgreementSettings(tops={"gold": 2, "judge": 1}, resamples=50))
        assert told.notes == [] and told.comparisons[0]["confusion"] == [[3, 0], [0, 3]]

    def test_a_grade_off_the_scale_is_refused(self):
        with pytest.raises(InputError, match=r"'judge' gave grade 7 to candidate 1 of list 'q2', outside 0-3; .*--scale judge=TOP"):
            compare(judge=rows(q1=[0, 0, 0, 0], q2=[0, 7, 0], q3=[0, 0], q4=[0, 0, 0]))
        with pytest.raises(ConfigError, match="a scale is given for 'jugde'"):
            compare(settings=AgreementSettings(tops={"jugde": 1}))


class TestRanksOnly:
    """Scores of a scorer: order statistics are those of its scores, whatever needs a scale is undefined and says why."""

    @pytest.fixture(scope="class")
    def found(self):
        lists, judged = made(20, 60, hit=0.8)
        scores = [JudgedList(row.example_id, tuple(2.5 * grade - 7 for grade in row.grades)) for row in judged]
        settings = AgreementSettings(ranks=["scorer"], resamples=200)
        return judge_agreement(lists, {"judge": judged, "scorer": scores}, settings=settings, again={"scorer": scores})

    def test_order_is_that_of_the_grades(self, found):
        graded, ranked = (item["overall"] for item in found.comparisons[:2])
        for name in ("spearman", "spearman_query", "spearman_query_counted", "tau_query", "tau_query_counted", "pairs"):
            assert ranked[name] == pytest.approx(graded[name], abs=1e-12), name

    def test_what_needs_a_scale_is_undefined(self, found):
        item = found.comparisons[1]
        assert item["graded"] is False and item["levels"] == item["confusion"] == item["binary"] == []
        for name in ("accuracy", "identical", "kappa", "kappa_binary", "difference", "recall", "pairs_binary"):
            assert item["overall"][name] == {"value": None, "low": None, "high": None, "n": 0, "why": "scorer gives ranks only, no grades"}
        assert item["references"]["constant"]["level"] is item["references"]["random"]["kappa"] is None
        assert found.scales["scorer"] is found.scales["scorer, second run"] is None and found.scales["judge"]["top"] == 3

    def test_the_order_alone_makes_the_verdict(self, found):
        told = found.verdicts["scorer"]
        assert (told["order"], told["grades"], told["grade"]) == ("good", "not known", "good")
        assert "it gives ranks only, no grades. Train on its order" in told["headline"]
        assert not any("relevance" in sentence for sentence in told["sentences"])

    @pytest.mark.parametrize(
        "ranks, told", [(["jugde"], "ranks only are taken from 'jugde'"), (["judge"], "'judge' is to give ranks only")]
    )
    def test_names_and_scales_must_fit(self, ranks, told):
        with pytest.raises(ConfigError, match=told):
            compare(settings=AgreementSettings(ranks=ranks, tops={"judge": 3}))


class TestMissing:
    def test_lists_that_nobody_judged_are_left_out_and_counted(self):
        found = judge_agreement(LISTS, {"judge": JUDGE[:2] + rows(other=[1, 2])}, settings=FEW)
        assert found.data["lists"] == 2 and found.data["not_judged"] == 2
        assert found.counts["judge"] == {"graded": 6, "missing": 1, "lists_without_row": 0, "rows_for_other_lists": 1}

    def test_a_list_that_another_judge_has_counts_as_missing(self):
        found = judge_agreement(LISTS, {"judge": JUDGE[:2], "full": JUDGE}, settings=FEW)
        assert found.counts["judge"]["lists_without_row"] == 2 and found.counts["judge"]["missing"] == 1 + 2 + 3

    def test_missing_is_never_a_grade(self):
        """Taking a document out of the list and leaving its grade out are the same to every statistic but the share missing."""
        holes = compare(judge=rows(q1=[2, 0, 1, None], q2=[1, None, 1], q3=[3, 0], q4=[0, 3, 2]))
        lists = [make_list("q1", [3, 0, 1], "one"), make_list("q2", [0, 0], "one"), *LISTS[2:]]
        cut = compare(lists, rows(q1=[2, 0, 1], q2=[1, 1], q3=[3, 0], q4=[0, 3, 2]))
        for name, cell in cut["overall"].items():
            assert name.startswith("missing") or holes["overall"][name] == pytest.approx(cell), name

    @pytest.mark.parametrize(
        "judge, told",
        [
            (rows(nowhere=[1]), "no judged list is among"),
            (rows(q1=[0, 0, 0]), "'judge' has 3 grades for the 4 candidates of list 'q1'"),
            (rows(q1=[0, 0, 0, 0]) * 2, "two rows for list 'q1'"),
            (rows(q1=[None] * 4), "'judge' holds no grade"),
        ],
    )
    def test_files_that_do_not_fit_are_named(self, judge, told):
        with pytest.raises(InputError, match=told):
            compare(judge=judge)


class TestConstant:
    def test_a_judge_with_one_grade_says_nothing(self):
        found = judge_agreement(LISTS, {"judge": rows(q1=[1] * 4, q2=[1] * 3, q3=[1] * 2, q4=[1] * 3)}, settings=FEW)
        cells = found.comparisons[0]["overall"]
        for name in ("kappa", "kappa_linear", "kappa_quadratic", "kappa_binary"):
            assert cells[name]["value"] is None and cells[name]["why"] == "judge gives one level only"
        assert cells["spearman_query"]["value"] is None and cells["spearman_query_counted"]["value"] == 0
        assert cells["pairs"]["value"] == 0.5
        assert found.verdicts["judge"]["grade"] == "says nothing" and "Do not train on it" in found.verdicts["judge"]["headline"]

    def test_constant_gold_leaves_it_not_known(self):
        found = judge_agreement([make_list("q", [0, 0, 0]), make_list("p", [0, 0])], {"judge": rows(q=[0, 1, 2], p=[1, 0])}, settings=FEW)
        assert found.verdicts["judge"]["grade"] == "not known"
        assert "gold gives one level only" in found.verdicts["judge"]["headline"]

    def test_resamples_in_which_a_rater_is_constant_are_left_out_and_counted(self):
        lists = [make_list("q", [0, 0]), make_list("p", [3, 3])]
        cell = compare(lists, rows(q=[0, 1], p=[3, 2]))["overall"]["kappa"]
        assert 50 < cell["undefined_resamples"] < 150  # half of the draws of two lists hold one of them twice


def test_one_list_has_values_and_no_interval():
    found = judge_agreement(LISTS[:1], {"judge": JUDGE[:1]}, settings=FEW)
    cell = found.comparisons[0]["overall"]["accuracy"]
    assert cell == {"value": 2 / 3, "low": None, "high": None, "n": 3}
    assert found.verdicts["judge"]["grade"] == "not known" and "too few lists" in found.verdicts["judge"]["headline"]


class TestInvariances:
    def test_order_of_the_files_changes_nothing(self):
        lists, judged = made(0)
        order = stream(0, "order").permutation(len(lists))
        plain = judge_agreement(lists, {"judge": judged}, settings=FEW).to_json()
        turned = judge_agreement([lists[at] for at in order], {"judge": judged[::-1]}, settings=FEW).to_json()
        for part in ("overall", "macro"):
            for name, cell in plain["comparisons"][0][part].items():
                assert turned["comparisons"][0][part][name] == pytest.approx(cell, abs=1e-12), name
        assert turned["verdicts"]["judge"]["headline"] == plain["verdicts"]["judge"]["headline"]

    def test_names_of_datasets_change_nothing(self):
        lists, judged = made(1)
        renamed = [make_list(e.id, e.relevance, {"s0": "z", "s1": "y", "s2": "x"}[e.source]) for e in lists]
        plain, other = compare(lists, judged), compare(renamed, judged)
        assert other["overall"] == plain["overall"]
        for name, cell in plain["macro"].items():
            assert other["macro"][name] == pytest.approx(cell, abs=1e-12), name
        assert other["by_source"]["x"] == plain["by_source"]["s2"]

    def test_two_judges_in_either_order(self):
        lists, first = made(2)
        second = made(3)[1]
        found = judge_agreement(lists, {"a": first, "b": second}, settings=FEW)
        turned = judge_agreement(lists, {"b": second, "a": first}, settings=FEW)
        one, other = (next(c for c in some.comparisons if c["kind"] == "judges") for some in (found, turned))
        assert np.array_equal(np.array(one["confusion"]).T, other["confusion"])
        for name in ("accuracy", "kappa", "kappa_quadratic", "spearman", "spearman_query", "tau_query_counted", "pairs", "pairs_binary"):
            assert one["overall"][name] == pytest.approx(other["overall"][name], abs=1e-12), name
        assert one["overall"]["difference"]["value"] == pytest.approx(-other["overall"]["difference"]["value"])

    def test_the_seed_decides_the_intervals_and_nothing_else(self):
        lists, judged = made(4)
        once, again, other = (compare(lists, judged, AgreementSettings(resamples=200, seed=seed)) for seed in (5, 5, 6))
        assert once == again
        assert once["overall"]["kappa"]["value"] == other["overall"]["kappa"]["value"]
        assert once["overall"]["kappa"]["low"] != other["overall"]["kappa"]["low"]


class TestVerdict:
    @pytest.mark.parametrize(
        "hit, grade", [(1.0, "good"), (0.9, "good"), (0.55, "usable with care"), (0.2, "weak"), (0.0, "no better than guessing")]
    )
    def test_planted_judges(self, hit, grade):
        lists, judged = made(10, 150, hit=hit)
        found = judge_agreement(lists, {"judge": judged}, settings=AgreementSettings(resamples=500)).verdicts["judge"]
        assert found["grade"] == grade
        assert ("Do not train on it" in found["headline"]) == (hit == 0)

    def test_the_wrong_way_round(self):
        lists, _ = made(11)
        judged = [JudgedList(e.id, tuple(3 - grade for grade in e.relevance)) for e in lists]
        found = judge_agreement(lists, {"judge": judged}, settings=FEW).verdicts["judge"]
        assert found["grade"] == "worse than guessing" and "wrong way" in found["headline"]

    def test_good_order_with_shifted_grades_loses_a_step_and_says_so(self):
        lists, _ = made(12)
        judged = [JudgedList(e.id, tuple(2.5 + grade / 6 for grade in e.relevance)) for e in lists]
        found = judge_agreement(lists, {"judge": judged}, settings=FEW).verdicts["judge"]
        assert (found["order"], found["grade"]) == ("good", "usable with care")
        assert "train on ranks" in found["headline"]

    def test_many_missing_grades_cap_it(self):
        lists, judged = made(13, 100, hit=1.0)
        holes = [JudgedList(row.example_id, (None, None, *row.grades[2:])) for row in judged]
        found = judge_agreement(lists, {"judge": holes}, settings=FEW).verdicts["judge"]
        assert found["grade"] == "usable with care" and "33% [33, 33] of documents have no grade" in found["sentences"][0]

    def test_datasets_that_differ_are_named(self):
        lists, judged = made(14, 90, hit=1.0)
        bad = {row.example_id: row for row in made(15, 90, hit=0.0)[1]}
        mixed = [bad[row.example_id] if e.source == "s1" else row for e, row in zip(lists, judged, strict=True)]
        said = " ".join(judge_agreement(lists, {"judge": mixed}, settings=FEW).verdicts["judge"]["sentences"])
        assert "It differs between datasets: κ is" in said and "on s1 and 1.00 [1.00, 1.00] on s2" in said

    def test_chance_does_not_tell_datasets_apart(self):
        """Dice on thirteen datasets of ten lists: the best and the worst of them always lie apart, and no difference is claimed."""
        claimed = 0
        for seed in range(12):
            lists, _ = made(seed, 130)
            lists = [make_list(e.id, e.relevance, f"s{at % 13}") for at, e in enumerate(lists)]
            draw = stream(seed, "dice")
            judged = [JudgedList(e.id, tuple(float(grade) for grade in draw.integers(0, 4, 6))) for e in lists]
            told = judge_agreement(lists, {"judge": judged}, settings=FEW).verdicts["judge"]["sentences"]
            claimed += any("differs between datasets" in sentence for sentence in told)
        assert claimed <= 1


class TestReference:
    def test_another_file_may_be_the_truth(self):
        found = judge_agreement(LISTS, {"judge": JUDGE}, against=("people", JUDGE), settings=FEW)
        assert found.reference == "people" and found.comparisons[0]["overall"]["accuracy"]["value"] == 1

    def test_lists_without_grades_have_no_reference_and_no_verdict(self):
        bare = [RankingExample(e.query, e.documents, id=e.id) for e in LISTS]
        found = judge_agreement(bare, {"a": JUDGE, "b": JUDGE}, settings=FEW)
        assert found.reference is None and found.verdicts == {}
        assert [item["kind"] for item in found.comparisons] == ["judges"]
        assert any("may all be wrong" in note for note in found.notes)

    def test_a_second_run_is_compared_with_the_first(self):
        second = rows(q1=[2, 0, 1, 0], q2=[1, 1, 2], q3=[3, 0], q4=[0, 3, None])
        found = judge_agreement(LISTS, {"judge": JUDGE}, again={"judge": second}, settings=FEW)
        item = next(one for one in found.comparisons if one["kind"] == "again")
        assert item["overall"]["identical"] == pytest.approx({**item["overall"]["identical"], "value": 9 / 10, "n": 10})
        assert any("A second run gives the same grade to 90%" in line for line in found.verdicts["judge"]["sentences"])
        with pytest.raises(ConfigError, match="a second run is given of 'b'"):
            judge_agreement(LISTS, {"judge": JUDGE}, again={"b": second})


class TestContainment:
    """Does a document contain the answer: 0 or 1, judge against judge, missing ones left out pair by pair."""

    JUDGES = {
        "a": rows(q1=[1, 0, 1, 0], q2=[0, 1, 0], q3=[1, 0], q4=[0, 1, None]),
        "b": rows(q1=[1, 0, 0, 0], q2=[0, 1, None], q3=[1, 1], q4=[0, 1, 1]),
        "c": rows(q1=[0, 1, 0, 1], q2=[1, 0, 1], q3=[0, 1], q4=[1, 0, 0]),
    }

    def test_every_two_judges(self):
        settings = AgreementSettings(tops=dict.fromkeys("abc", 1), resamples=100)
        found = judge_agreement(LISTS, self.JUDGES, has_reference=False, settings=settings)
        assert [(item["a"], item["b"]) for item in found.comparisons] == [("a", "b"), ("a", "c"), ("b", "c")]
        for item in found.comparisons:
            both = [
                (x, y, example.source)
                for example, one, other in zip(LISTS, self.JUDGES[item["a"]], self.JUDGES[item["b"]], strict=True)
                for x, y in zip(one.grades, other.grades, strict=True)
                if x is not None and y is not None
            ]
            for cells, some in [(item["overall"], both), *((item["by_source"][s], [r for r in both if r[2] == s]) for s in ("one", "two"))]:
                alike = sum(x == y for x, y, _ in some) / len(some)
                assert cells["accuracy"]["value"] == cells["accuracy_binary"]["value"] == pytest.approx(alike)
                assert cells["accuracy"]["n"] == len(some)
        assert found.comparisons[1]["overall"]["accuracy"]["value"] == 0  # c says the opposite of a
        assert found.comparisons[1]["overall"]["kappa"]["value"] < 0


def test_the_record_survives_its_file(tmp_path):
    found = judge_agreement(LISTS, {"judge": JUDGE}, settings=FEW)
    found.write(tmp_path / "agreement.json")
    assert Agreement.read(tmp_path / "agreement.json") == found
    (tmp_path / "other.json").write_text('{"schema": "steadyrank.audit/1"}')
    with pytest.raises(InputError, match=r"other.json: schema: is 'steadyrank.audit/1'"):
        Agreement.read(tmp_path / "other.json")

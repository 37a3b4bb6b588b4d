"""The released evidence of the order-consistency paper, recomputed behind named options."""

import csv
import json

import numpy as np
import pytest

from steadyrank import consumers
from steadyrank.stability.published import OPERATIONS, reduce


@pytest.fixture(scope="module")
def evidence(shared_dir):
    folder = shared_dir / "data" / "presentation-dependence"
    return lambda name: json.loads((folder / f"{name}.json").read_text())


def table(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_representative_analyses(evidence):
    checked = 0
    for family, wanted in evidence("representative-analyses").items():
        payload = evidence(family)["payload"]
        if wanted["operation"] == "pairwise-jaccard":
            found = {"mean_pairwise_jaccard": consumers.jaccard_of_sets(payload["sets"])}
        else:
            found = reduce(wanted["operation"], payload)
        for check in wanted["checks"]:
            value = found[check["path"]]
            if check.get("mode") == "ci-excludes-zero":
                assert value[0] > 0 or value[1] < 0
            elif check.get("mode") == "range":
                assert check["expected"][0] <= value <= check["expected"][1]
            else:
                assert value == pytest.approx(check["expected"], abs=check["atol"])
            checked += 1
    assert checked == 8


def test_jaccard_of_the_sets_is_the_share_of_common_members(evidence):
    assert consumers.jaccard_of_sets(evidence("jaccard")["payload"]["sets"]) == pytest.approx(49 / 59, abs=1e-12)


def test_metric_discordance(evidence):
    payload = evidence("metric-discordance")
    found, gates = reduce("metric-discordance", payload), payload["claim_gates"]
    assert (found["collections"], found["different"]) == (gates["expected_collections"], gates["expected_different_argmax"])
    assert sum(row["differ"] for row in payload["rows"]) == found["different"]
    assert found["ndcg_span_at_3dp"] == pytest.approx(gates["reported_ndcg_mean_span_at_3dp"], abs=1e-9)


def test_round_robin_does_not_move_tau_psi_and_moves_quality(evidence):
    payload = evidence("round-robin")
    shifts = [abs(one["round_robin"]["tau_psi"] - one["contiguous"]["tau_psi"]) for one in payload["variants"].values()]
    assert max(shifts) <= payload["claim_gates"]["max_abs_tau_psi_shift"]
    assert all(one["round_robin"]["ndcg_cut_10"] > one["contiguous"]["ndcg_cut_10"] for one in payload["variants"].values())


def test_width_effects_are_differences_of_the_levels(evidence):
    for seeds in evidence("response-width")["surfaces"].values():
        for cell in seeds.values():
            assert cell["native_single"] - cell["b1"] == pytest.approx(cell["c_obs"], abs=1e-9)
            assert cell["native_k10"] - cell["b1"] == pytest.approx(cell["v_b"], abs=1e-9)


def test_contrasts_are_differences_of_the_macro_means(shared_dir):
    folder = shared_dir / "data" / "presentation-dependence"
    macro = {row["arm"]: row for row in table(folder / "retained-set-macro-qwen3-4b-f1_tuned.csv")}
    names = {
        "jaccard": "mean_pairwise_jaccard", "set_flip_10_order_only": "set_flip_rate_10_order_only", "f1": "reference_order_f1",
        "precision": "reference_order_precision", "recall": "reference_order_recall", "retention": "reference_order_retention",
    }  # fmt: skip
    for row in table(folder / "retained-set-contrasts-qwen3-4b-f1_tuned.csv"):
        difference = float(macro["supcon"][names[row["metric"]]]) - float(macro["k1sft"][names[row["metric"]]])
        assert difference == pytest.approx(float(row["estimate"]), abs=1e-12)


def test_clustered_errors_match_hand_arithmetic():
    """Two groups with opposite residuals at equal x: CR1 written out by hand."""
    x, y, groups = [0.0, 0.0, 1.0, 1.0], [1.0, -1.0, 2.0, 0.0], ["a", "b", "a", "b"]
    found = reduce("clustered-calibration", {"x": x, "y": y, "groups": groups})
    assert (found["slope"], found["intercept"], found["degrees"]) == (pytest.approx(1.0), pytest.approx(0.0), 1)
    bread = np.linalg.inv(np.array([[4.0, 2.0], [2.0, 2.0]]))
    moment = np.array([2.0, 1.0])  # residuals of a are +1 at x = 0 and 1; b is the mirror image
    expected = (bread @ (2 * np.outer(moment, moment)) @ bread)[1, 1] * (2 / 1) * (3 / 2)
    assert found["standard_error"] == pytest.approx(np.sqrt(max(0.0, expected)), abs=1e-12)


def test_every_operation_is_there_and_an_unknown_one_names_its_neighbour():
    from steadyrank.names import load

    assert all(callable(load(target)) for target in OPERATIONS.values())
    with pytest.raises(ValueError, match="gain-histogram"):
        reduce("gain-histogramm", {})

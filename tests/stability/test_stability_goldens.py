"""The stability measures against values enumerated elsewhere."""

import json

import numpy as np
import pytest

from steadyrank import consumers, stability


@pytest.fixture(scope="module")
def cases(shared_dir):
    return json.loads((shared_dir / "goldens" / "expected_values.json").read_text())["stability"]


def test_tau_psi_of_both_tie_rules(cases):
    for case in cases:
        assert stability.tau_psi(case["scores_PK"]) == pytest.approx(case["tau_psi_b"], abs=1e-12)
        assert stability.tau_psi(case["scores_PK"], ties="a_listed") == pytest.approx(case["tau_psi_a_listed"], abs=1e-12)


def test_vectorised_tau_psi_keeps_the_places_of_ragged_examples(cases):
    scores = [case["scores_PK"] for case in cases]
    np.testing.assert_allclose(stability.psi_many(scores), [case["tau_psi_b"] for case in cases], atol=1e-12)
    np.testing.assert_allclose(stability.psi_many(scores[::-1]), [case["tau_psi_b"] for case in cases][::-1], atol=1e-12)


def test_jaccard_and_flips(cases):
    for case in cases:
        assert consumers.jaccard(case["scores_PK"], case["threshold"]) == pytest.approx(case["jaccard"], abs=1e-12)
        assert consumers.jaccard(case["scores_PK"], 2) == case["jaccard_at_2"]
        assert np.isnan(consumers.jaccard(case["scores_PK"], 2, empty="skip"))
        for estimator, expected in case["flip_rate"].items():
            assert consumers.flip_rate(case["top_choice"], estimator) == pytest.approx(expected, abs=1e-12)

"""A scorer follows its model: scores and fingerprint are those of the weights as they are now, whoever changed them."""

import pytest
import torch
import training_helpers as tiny

from steadyrank.scoring.cross_encoder import CrossEncoder

DOCUMENTS = ["w1 w2", "w3", "w4 w5 w6"]


def fused_step(model):
    """A fused optimiser writes without raising torch's version counters."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.05, fused=True)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
    optimiser.step()


def by_hand(model):
    with torch.no_grad():
        model.classifier.weight.add_(1.0)


def loading(model):
    model.load_state_dict(tiny.model(seed=5).state_dict())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("change", [fused_step, by_hand, loading])
def test_scores_and_fingerprint_follow_the_weights(change, precision):
    scorer = tiny.student(seed=1, precision=precision)
    before, print_before = scorer.score("w1", DOCUMENTS), scorer.fingerprint
    change(scorer.model)
    after = scorer.score("w1", DOCUMENTS)
    fresh = CrossEncoder.from_model(scorer.model, tiny.tokenizer(), max_length=48, precision=precision)
    assert after != before and after == fresh.score("w1", DOCUMENTS)
    assert scorer.fingerprint != print_before

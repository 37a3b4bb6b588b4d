"""The scoring copy computes what the model computes, follows its weights, and leaves the model alone."""

from __future__ import annotations

import copy

import pytest
import tiny_classifiers
import torch

from steadyrank.scoring import Pair, torch_scorer
from steadyrank.scoring import fast_copy as room
from steadyrank.scoring.cross_encoder import CrossEncoder

DOCUMENTS = ["a", "the capital of the country", "bananas are yellow " * 6, "which city"]


@pytest.mark.parametrize("kind", tiny_classifiers.ENCODERS + tiny_classifiers.DECODERS)
@pytest.mark.parametrize("bf16, bound", [(False, 1e-5), (True, 0.03)])
def test_the_copy_scores_as_the_model_does(kind, bf16, bound):
    scorer = CrossEncoder.from_model(*tiny_classifiers.make(kind))
    before = {name: value.clone() for name, value in scorer.model.state_dict().items()}
    inputs = scorer.collate(scorer.encode([Pair("which city", document) for document in DOCUMENTS]))
    with torch.inference_mode():
        expected = scorer.forward(scorer.model, inputs)
        # the other implementation: the whole model in bf16; its distance to fp32 is the number format's and grows with the weights
        reference = scorer.forward(copy.deepcopy(scorer.model).to(torch.bfloat16), inputs) if bf16 else expected
        found = scorer.forward(room.fast_copy(scorer.model, bf16=bf16), inputs)
        assert torch.allclose(found, reference, atol=bound, rtol=0)
        assert torch.equal(scorer.forward(scorer.model, inputs), expected)
    after = scorer.model.state_dict()
    assert all(torch.equal(after[name], value) and after[name].dtype == value.dtype for name, value in before.items())


def test_fp32_scoring_of_a_large_model_follows_its_weights(monkeypatch):
    monkeypatch.setattr(torch_scorer, "_PAYS_ABOVE", 1)
    scorer = CrossEncoder.from_model(*tiny_classifiers.make("bert"), precision="fp32")
    plain = CrossEncoder.from_model(*tiny_classifiers.make("bert"), precision="fp32")
    monkeypatch.setattr(plain, "_scoring_model", lambda: (plain.model, False))
    assert scorer.score("which city", DOCUMENTS) == pytest.approx(plain.score("which city", DOCUMENTS), abs=1e-5)
    assert scorer._scoring_model()[0] is not scorer.model and scorer._scoring_model()[0] is scorer._scoring_model()[0]
    for model in (scorer.model, plain.model):
        optimiser = torch.optim.AdamW(model.parameters(), lr=0.1)
        for weight in model.parameters():
            weight.grad = torch.ones_like(weight)
        optimiser.step()
    assert scorer.score("which city", DOCUMENTS) == pytest.approx(plain.score("which city", DOCUMENTS), abs=1e-4)


def test_a_torch_without_the_operators_keeps_the_plain_layers(monkeypatch):
    def missing(*args, **kwargs):
        raise AttributeError("no such operator")

    monkeypatch.setattr(room.LaidOutLinear, "__init__", missing)
    model = tiny_classifiers.make("bert")[0]
    copied = room.fast_copy(model, bf16=False)
    assert [type(module) for module in copied.modules()] == [type(module) for module in model.modules()]


def test_an_operator_that_disagrees_is_not_used(monkeypatch):
    monkeypatch.setattr(room.LaidOutLinear, "forward", lambda self, hidden: hidden.new_zeros(*hidden.shape[:-1], self.out_features))
    copied = room.fast_copy(tiny_classifiers.make("bert")[0], bf16=False)
    assert not any(isinstance(module, room.LaidOutLinear) for module in copied.modules())

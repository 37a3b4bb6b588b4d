"""Packed rows against single sequences and padded batches: scores and gradients, over architectures; plain forwards are untouched."""

from __future__ import annotations

import copy

import pytest
import tiny_classifiers
import torch
from torch import nn

from steadyrank.scoring import Pair
from steadyrank.scoring.cross_encoder import CrossEncoder

DOCUMENTS = ["a", "the capital of the country", "bananas are yellow " * 6, "x", "which city", "a second and longer document " * 2, "b"]
PAIRS = [Pair("which city", document) for document in DOCUMENTS]
ALL = tiny_classifiers.ENCODERS + tiny_classifiers.DECODERS


def _both(kind: str) -> tuple[CrossEncoder, CrossEncoder]:
    packed = CrossEncoder.from_model(*tiny_classifiers.make(kind))
    assert packed.packed, packed.packing_note
    return packed, CrossEncoder.from_model(*tiny_classifiers.make(kind), packing="off")


def _scores(scorer: CrossEncoder, model: nn.Module | None = None, pairs=PAIRS) -> torch.Tensor:
    return scorer.forward(model or scorer.model, scorer.collate(scorer.encode(pairs)))


@pytest.mark.parametrize("kind", ALL)
def test_packed_padded_and_the_plain_model_agree(kind):  # P01, P17
    packed, padded = _both(kind)
    model, tokenizer = tiny_classifiers.make(kind)  # without any hook of ours
    if tokenizer.pad_token_id is None:
        model.config.pad_token_id = None
    with torch.no_grad():
        names = set(tokenizer.model_input_names)
        if kind == "distilbert":
            names -= {"token_type_ids"}
        plain = torch.stack(
            [
                model(**{k: v for k, v in tokenizer("which city", d, return_tensors="pt").items() if k in names}).logits[0, 0]
                for d in DOCUMENTS
            ]
        )
        assert torch.allclose(_scores(packed), plain, atol=1e-5, rtol=0)
        assert torch.allclose(_scores(padded), plain, atol=1e-5, rtol=0)
    assert plain.std() > 0.05  # equality of constants would say nothing


@pytest.mark.parametrize("kind", ALL)
def test_gradients_agree_and_reach_every_parameter_that_padding_reaches(kind):
    packed, padded = _both(kind)
    weights = torch.linspace(-1, 1, len(PAIRS))
    for scorer in (packed, padded):
        (_scores(scorer) * weights).sum().backward()
    for (name, one), (_, other) in zip(packed.model.named_parameters(), padded.model.named_parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None), name
        if one.grad is not None:
            assert torch.allclose(one.grad, other.grad, atol=2e-4, rtol=1e-3), name


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_the_order_and_the_company_of_sequences_change_nothing(kind):  # P01, P20
    scorer = CrossEncoder.from_model(*tiny_classifiers.make(kind))
    with torch.no_grad():
        together = _scores(scorer)
        assert torch.allclose(_scores(scorer, pairs=PAIRS[::-1]).flip(0), together, atol=1e-5)
        assert torch.allclose(torch.cat([_scores(scorer, pairs=[pair]) for pair in PAIRS]), together, atol=1e-5)


@pytest.mark.parametrize("kind", ALL)
def test_a_prepared_model_still_is_the_plain_model_to_others(kind):
    scorer = CrossEncoder.from_model(*tiny_classifiers.make(kind))
    plain, tokenizer = tiny_classifiers.make(kind)
    ids = torch.tensor([[3, 9, 8, 7, 6, 5], [3, 9, 8, 4, 4, 4]])
    mask = torch.tensor([[1] * 6, [1] * 3 + [0] * 3])
    plain.config.pad_token_id = scorer.model.config.pad_token_id
    with torch.no_grad():
        found = scorer.model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        assert torch.allclose(found.logits, plain(input_ids=ids, attention_mask=mask).logits, atol=1e-6)
    assert found.hidden_states[-1].shape[:2] == ids.shape


def test_one_sequence_of_one_token():
    scorer = CrossEncoder.from_model(*tiny_classifiers.make("bert"))
    inputs = {"input_ids": torch.tensor([[7]]), "position_ids": torch.tensor([[0]]), "lengths_N": torch.tensor([1])}
    plain = tiny_classifiers.make("bert")[0]
    assert torch.allclose(scorer.forward(scorer.model, inputs), plain(input_ids=torch.tensor([[7]])).logits[:, 0], atol=1e-6)


@pytest.mark.parametrize("kind", ["bert", "roberta", "llama"])
def test_the_head_computes_in_fp32_under_autocast(kind):
    scorer = CrossEncoder.from_model(*tiny_classifiers.make(kind))
    head = scorer.model.score if kind == "llama" else scorer.model.classifier
    seen = []
    handle = head.register_forward_hook(lambda module, args, output: seen.append((args[0].dtype, output.dtype)))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = _scores(scorer)
        assert torch.is_autocast_enabled("cpu")  # and autocast is back afterwards
        assert nn.functional.linear(torch.ones(1, 2), torch.ones(1, 2)).dtype == torch.bfloat16
    handle.remove()
    assert seen == [(torch.float32, torch.float32)] and scores.dtype == torch.float32


def test_bf16_stays_within_its_bound():
    packed, padded = _both("bert")
    exact = packed.score("which city", DOCUMENTS)
    for scorer in (packed, padded):
        scorer.precision = "bf16"
        assert scorer.score("which city", DOCUMENTS) == pytest.approx(exact, abs=0.05)  # 8 bits of mantissa, logits of size 1


def test_an_error_inside_the_model_leaves_nothing_behind():
    scorer = CrossEncoder.from_model(*tiny_classifiers.make("bert"))
    before = _scores(scorer).detach()

    def fail(module, args, output):
        raise ValueError("broken")

    handle = scorer.model.classifier.register_forward_hook(fail)
    with pytest.raises(ValueError, match="broken"), torch.autocast("cpu", dtype=torch.bfloat16):
        _scores(scorer)
    handle.remove()
    assert torch.equal(_scores(scorer).detach(), before)
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("kind", ["bert", "roberta", "llama"])
def test_lora_with_a_saved_head_scores_and_learns(kind):
    peft = pytest.importorskip("peft")
    scorer = CrossEncoder.from_model(*tiny_classifiers.make(kind))
    before = _scores(scorer).detach()
    targets = ["q_proj", "v_proj"] if kind == "llama" else ["query", "value", "dense"]
    head = "score" if kind == "llama" else "classifier"
    wrapped = peft.get_peft_model(scorer.model, peft.LoraConfig(target_modules=targets, modules_to_save=[head], r=2, task_type="SEQ_CLS"))
    scores = _scores(scorer, wrapped)
    assert torch.allclose(scores, before, atol=1e-6)  # LoRA starts as the identity
    (scores * torch.linspace(-1, 1, len(PAIRS))).sum().backward()
    learning = {name for name, weight in wrapped.named_parameters() if weight.grad is not None and weight.grad.abs().sum() > 0}
    assert any("lora_B" in name for name in learning) and any(f"{head}.modules_to_save" in name for name in learning)


def test_a_deep_copy_packs_too():
    scorer = CrossEncoder.from_model(*tiny_classifiers.make("bert"))
    assert torch.equal(_scores(scorer, copy.deepcopy(scorer.model)), _scores(scorer))


def test_an_architecture_that_cannot_pack_is_padded_and_says_why():
    model, tokenizer = tiny_classifiers.make("modernbert")
    model.config.classifier_pooling = "mean"
    scorer = CrossEncoder.from_model(model, tokenizer)
    assert not scorer.packed and "mean" in scorer.packing_note
    alone = [scorer.score("which city", [document])[0] for document in DOCUMENTS]
    assert scorer.score("which city", DOCUMENTS) == pytest.approx(alone, abs=1e-5)


def test_bf16_scoring_follows_the_weights():
    scorer = CrossEncoder.from_model(*tiny_classifiers.make("bert"), precision="bf16")
    before = scorer.score("which city", DOCUMENTS)
    with torch.no_grad():
        scorer.model.classifier.bias += 1.0
    assert scorer.score("which city", DOCUMENTS) == pytest.approx([value + 1.0 for value in before], abs=1e-6)
    assert all(weight.dtype == torch.float32 for weight in scorer.model.parameters())

"""How a joint encoder is made from another model: its marker tokens, its encoder, and its head out of a classifier's head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from steadyrank.errors import ConfigError
from steadyrank.scoring.cross_encoder import CrossEncoder
from steadyrank.scoring.joint_encoder_model import ACROSS, MARKER_SEES, JointEncoderModel
from steadyrank.scoring.torch_scorer import quiet_loading

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def joint_of(across: str, marker_sees: str) -> dict[str, str]:
    """What `config.joint` holds, checked."""
    if across not in ACROSS or marker_sees not in MARKER_SEES:
        raise ConfigError(f"across {across!r} with marker_sees {marker_sees!r}; across is full or own, marker_sees is own or all")
    return {"across": across, "marker_sees": marker_sees}


def choose_markers(tokenizer: PreTrainedTokenizerBase, count: int) -> list[str]:
    """`count` marker tokens, registered as special so that no text can give them: unused ones of the vocabulary, else new ones."""
    from transformers import AddedToken

    if count < 1:
        raise ConfigError(f"width is {count}; give a whole number from 1")
    vocabulary = tokenizer.get_vocab()
    tokens = [f"[unused{number}]" for number in range(1, count + 1)]
    if not all(token in vocabulary for token in tokens):
        tokens = [f"[steadyrank marker {number}]" for number in range(1, count + 1)]
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in tokens], special_tokens=True)
    return tokens


def build(encoder: nn.Module, tokenizer: PreTrainedTokenizerBase, tokens: Sequence[str], joint: dict[str, str]) -> JointEncoderModel:
    """The network with a copy of this encoder; markers start as the first special token ([CLS]), the head is new."""
    source: Any = encoder
    config = type(source.config).from_dict({**source.config.to_dict(), "joint": joint, "architectures": ["JointEncoderModel"]})
    model = JointEncoderModel(config)
    state = {name: value for name, value in source.state_dict().items() if not name.startswith("pooler.")}
    with torch.no_grad():
        model.encoder.load_state_dict(state, strict=True)
        table: Any = model.encoder.get_input_embeddings()
        if len(tokenizer) > table.num_embeddings:
            with quiet_loading():
                model.encoder.resize_token_embeddings(len(tokenizer), mean_resizing=False)
            config.vocab_size = model.encoder.config.vocab_size
            table = model.encoder.get_input_embeddings()
        first = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
        if first is None:
            raise ConfigError(f"tokenizer {type(tokenizer).__name__} has neither a cls nor a bos token for markers to start from")
        for token in tokens:
            table.weight[tokenizer.convert_tokens_to_ids(token)] = table.weight[first]
    return model.eval()


def plain_model(
    path: str | Path, width: int, joint: dict[str, str], *, layers: Sequence[int] | None
) -> tuple[JointEncoderModel, PreTrainedTokenizerBase, list[str]]:
    """The network around an encoder without a ranking head, its tokenizer and its marker tokens."""
    from transformers import AutoModel, AutoTokenizer

    with quiet_loading():
        encoder: Any = AutoModel.from_pretrained(path, dtype=torch.float32)
    if layers is not None:
        encoder = selected(encoder, layers)
    tokenizer = AutoTokenizer.from_pretrained(path)
    tokens = choose_markers(tokenizer, width)
    return build(encoder, tokenizer, tokens, joint), tokenizer, tokens


def head_of(classifier: PreTrainedModel, label: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(dense, output row) of a head of the form out(tanh(dense(first token))): BERT's pooler and classifier, or RoBERTa's head."""
    pooler: Any = getattr(classifier.base_model, "pooler", None)
    head: Any = getattr(classifier, "classifier", None)
    if isinstance(head, nn.Linear) and isinstance(getattr(pooler, "activation", None), nn.Tanh):
        dense, out = pooler.dense, head
    elif isinstance(getattr(head, "out_proj", None), nn.Linear) and classifier.config.model_type in ("roberta", "xlm-roberta", "camembert"):
        dense, out = head.dense, head.out_proj
    else:
        raise ConfigError(
            f"the head of {type(classifier).__name__} has not the form that a joint encoder starts from (a dense layer, tanh, an output); "
            "use a BERT or RoBERTa cross-encoder, or load the encoder with allow_untrained=True and train it"
        )
    return {name: value.detach() for name, value in dense.state_dict().items()}, {
        "weight": out.weight[label].detach(),
        "bias": out.bias[label].detach(),
    }


def grade_rows(weight_D: Tensor, bias: Tensor, *, scale: float, cuts: Sequence[float]) -> tuple[Tensor, Tensor]:
    """(weights_4D, biases_4) of logit_g = g * scale * z - b_g, b_g = scale * (c_1 + ... + c_g), for the logit z = weight . x + bias."""
    if scale <= 0 or len(cuts) != 3 or list(cuts) != sorted(cuts):
        raise ConfigError(f"grade_scale {scale} and grade_cuts {tuple(cuts)}: the scale must be positive and the three cuts rising")
    grades_4 = torch.arange(4, dtype=torch.float32)
    offsets_4 = torch.tensor([0.0, *cuts]).cumsum(0)
    return grades_4[:, None] * scale * weight_D, scale * (grades_4 * bias - offsets_4)


def from_classifier(
    classifier: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    label: int,
    width: int,
    joint: dict[str, str],
    scale: float,
    cuts: Sequence[float],
) -> tuple[JointEncoderModel, list[str]]:
    """(the network with this classifier's encoder and its head in ordinal form, its marker tokens); the tokenizer learns the markers."""
    dense, out = head_of(classifier, label)
    tokens = choose_markers(tokenizer, width)
    model = build(classifier.base_model, tokenizer, tokens, joint)
    with torch.no_grad():
        model.dense.load_state_dict(dense)
        weight, bias = grade_rows(out["weight"], out["bias"], scale=scale, cuts=cuts)
        model.grades.weight.copy_(weight)
        model.grades.bias.copy_(bias)
    return model, tokens


def selected(model: Any, layers: Sequence[int]) -> Any:
    """A copy with the named layers only."""
    from steadyrank.data.models.layers import select_layers

    return select_layers(model, layers)


def cross_encoder_of(source: str | Path | Mapping[str, Any], allow_untrained: bool) -> CrossEncoder:
    """The cross-encoder that a spec names."""
    from steadyrank.scoring.loading import load_scorer

    options = {"allow_untrained": True} if allow_untrained else {}
    spec = dict(source) if isinstance(source, Mapping) else {"model": str(source)}
    scorer = load_scorer({"kind": CrossEncoder.kind, **spec}, **options)
    if not isinstance(scorer, CrossEncoder):
        raise ConfigError(
            f"{source!r} is a scorer of kind {getattr(scorer, 'kind', scorer.name)!r}; a joint encoder is made from a cross_encoder"
        )
    return scorer

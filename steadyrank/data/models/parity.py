"""Does a converted model say what its source says? Asked before anything is written.

The source is run by ONNX Runtime where that is installed; where it is not, the cross-encoder is held against the ONNX
session's own logits, stored below. Dynamic int8 quantisation rounds the activations as well as the weights, so the two differ
by a few tenths of a logit: the values must agree to `TOLERANCE`, and every two pairs that lie further apart than twice that
must come in the same order.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steadyrank.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

QUERIES = (
    "How many people live in Berlin?",
    "what causes tides in the ocean",
    "python read a file line by line",
    "symptoms of iron deficiency",
)
PASSAGES = (
    "Berlin had a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.",
    "New York City is famous for the Metropolitan Museum of Art.",
    "Berlin is the capital of Germany.",
    "The pull of the moon, and to a lesser degree of the sun, raises two bulges of water that the turning earth meets twice a day.",
    "Opening the file in a with statement and looping over the handle yields one line at a time without loading the whole file.",
    "Tiredness, shortness of breath, pale skin and brittle nails are common when the body lacks iron.",
    "Bananas are rich in potassium.",
)
PAIRS = tuple((query, passage) for query in QUERIES for passage in PASSAGES)
# Logits of the ONNX session (int8, CPU), a row of passages for each query.
# fmt: off
STORED: dict[str, tuple[float, ...]] = {
    "teacher": (
        9.204, -11.191, -2.238, -11.203, -11.284, -11.192, -11.264,
        -11.122, -11.267, -11.23, -9.053, -11.254, -10.77, -11.204,
        -11.183, -11.154, -11.222, -11.272, -4.706, -11.241, -11.153,
        -11.124, -11.234, -11.15, -11.16, -11.252, 6.527, -11.145,
    ),
}
# fmt: on
TOLERANCE = {"logit": 0.75, "cosine": 0.98}


def against_onnx(net: PreTrainedModel, tokenizer: Path, data: bytes, *, source: str) -> dict[str, Any]:
    """Compare on `PAIRS`; returns what was found, raises where the two do not agree."""
    has_head = hasattr(net, "classifier")
    converted = _torch_outputs(net, tokenizer)
    if importlib.util.find_spec("onnxruntime") is not None:
        expected, method = _onnx_outputs(tokenizer, data), "onnxruntime"
    elif source in STORED:
        expected, method = np.asarray(STORED[source], dtype=np.float64)[:, None], "stored values"
    else:
        return {"method": "not compared: onnxruntime is not installed", "pairs": 0}
    if has_head:
        return {"method": method, **compare_logits(converted[:, 0], expected[:, 0], source=source)}
    cosine = (converted * expected).sum(-1) / np.linalg.norm(converted, axis=-1) / np.linalg.norm(expected, axis=-1)
    if not cosine.min() >= TOLERANCE["cosine"]:
        raise InputError(f"model {source!r}: converted and ONNX vectors have cosine {cosine.min():.4f} on a pair; nothing was written")
    return {"method": method, "pairs": len(PAIRS), "lowest_cosine": float(cosine.min())}


def compare_logits(converted: np.ndarray, expected: np.ndarray, *, source: str) -> dict[str, Any]:
    """Values to the tolerance and the order of every clearly separated two."""
    difference = np.abs(converted - expected)
    worst = int(difference.argmax()) if np.isfinite(difference).all() else int(np.flatnonzero(~np.isfinite(difference))[0])
    if not difference[worst] <= TOLERANCE["logit"]:
        raise InputError(
            f"model {source!r}: converted logit {converted[worst]:.3f} against {expected[worst]:.3f} in its source "
            f"for pair {worst}; nothing was written"
        )
    clear = np.abs(expected[:, None] - expected[None, :]) > 2 * TOLERANCE["logit"]
    flipped = clear & (np.sign(converted[:, None] - converted[None, :]) != np.sign(expected[:, None] - expected[None, :]))
    if flipped.any():
        raise InputError(f"model {source!r}: {int(flipped.sum()) // 2} pairs come in another order than in its source; nothing was written")
    return {"pairs": len(converted), "largest_difference": float(difference.max()), "mean_difference": float(difference.mean())}


def _inputs(tokenizer: Path, framework: str) -> list[dict[str, Any]]:
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(tokenizer)
    return [dict(loaded(query, passage, return_tensors=framework)) for query, passage in PAIRS]


def _torch_outputs(net: PreTrainedModel, tokenizer: Path) -> np.ndarray:
    import torch

    rows = []
    with torch.no_grad():
        for inputs in _inputs(tokenizer, "pt"):
            output = net(**inputs)
            rows.append((output.logits[0] if "logits" in output else output.last_hidden_state[0, 0]).double().numpy())
    return np.stack(rows)


def _onnx_outputs(tokenizer: Path, data: bytes) -> np.ndarray:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    wanted = {given.name for given in session.get_inputs()}
    rows = []
    for inputs in _inputs(tokenizer, "np"):
        output = session.run(None, {name: value.astype(np.int64) for name, value in inputs.items() if name in wanted})[0]
        rows.append(output[0] if output.ndim == 2 else output[0, 0])
    return np.stack(rows).astype(np.float64)

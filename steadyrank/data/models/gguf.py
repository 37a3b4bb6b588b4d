"""A causal language model in a GGUF file, dequantised by `transformers` into an ordinary folder.

`from_pretrained(folder, gguf_file=...)` returns full-precision weights but leaves marks of the quantisation (`hf_quantizer`,
`config.quantization_config`) that make saving fail or the saved folder unloadable; they are dropped. The folder is written in
float32: the 4-bit values times their 16-bit scales do not fit bfloat16. The check reads the model as a language model.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyrank import names
from steadyrank.data.packages import read_member
from steadyrank.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from steadyrank.data.models.pins import PackagedModel

# The continuation a language model must prefer, by far; a wrong tensor layout makes these a coin toss.
CONTINUATIONS = (
    ("The capital of France is", " Paris", " banana"),
    ("One, two, three, four,", " five", " Paris"),
    ("The opposite of hot is", " cold", " seven"),
    ("Monday, Tuesday, Wednesday,", " Thursday", " lemon"),
)


def convert_causal_lm(source: Path, target: Path, model: PackagedModel) -> dict[str, Any]:
    """Write model and tokenizer (chat template included) after checking what the model continues with."""
    names.require("gguf", "converting a GGUF model")
    torch, transformers = names.require("torch", "converting a model"), names.require("transformers", "converting a model")
    file = target / Path(model.member).name
    file.write_bytes(read_member(source, model.member))
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(target, gguf_file=file.name)
        net = transformers.AutoModelForCausalLM.from_pretrained(target, gguf_file=file.name, dtype=torch.float32)
    finally:
        os.remove(file)
    drop_quantisation_marks(net)
    net.config.name_or_path = ""
    bad = [name for name, value in net.named_parameters() if not torch.isfinite(value).all()]
    if bad:
        raise InputError(f"model {model.name!r} of {model.package.pin} holds non-finite weights ({bad[0]}); nothing was written")
    if not tokenizer.chat_template:
        raise InputError(f"model {model.name!r} of {model.package.pin} has no chat template; nothing was written")
    checks = continuation_margins(net.eval(), tokenizer)
    if not min(checks.values()) > 1.0:
        raise InputError(f"model {model.name!r} does not continue plain text sensibly after conversion ({checks}); nothing was written")
    net.save_pretrained(target)
    tokenizer.save_pretrained(target)
    return {"method": "continuations", "margins": checks}


def drop_quantisation_marks(net: PreTrainedModel) -> None:
    """Make a dequantised model an ordinary one."""
    net.__dict__.pop("hf_quantizer", None)
    for name in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(net.config, name):
            delattr(net.config, name)
    for name in ("is_quantized", "quantization_method", "is_loaded_in_4bit", "is_loaded_in_8bit"):
        if name in net.__dict__:
            delattr(net, name)


def continuation_margins(net: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> dict[str, float]:
    """Logit of the right next token minus logit of the wrong one, for each of `CONTINUATIONS`."""
    import torch

    margins = {}
    for text, right, wrong in CONTINUATIONS:
        ids = [tokenizer.encode(word, add_special_tokens=False)[0] for word in (right, wrong)]
        with torch.no_grad():
            logits = net(**tokenizer(text, return_tensors="pt")).logits[0, -1]
        margins[text] = round(float(logits[ids[0]] - logits[ids[1]]), 3)
    return margins

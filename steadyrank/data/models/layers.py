"""A smaller cross-encoder made of some layers of a larger one, with the larger one's embeddings, pooler and head.

The usual start of a distilled student (DistilBERT, Sanh et al. 2019, copies every other layer). Such a model ranks a little
already; how well is for an evaluation to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadyrank import names
from steadyrank.data.models.folder import TOKENIZER_FILES
from steadyrank.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from steadyrank.data.models.pins import PackagedModel


def select_layers(model: PreTrainedModel, layers: Sequence[int]) -> PreTrainedModel:
    """A copy of an encoder with only the named layers (from 0), in the order given."""
    torch = names.require("torch", "selecting layers")
    total = model.config.num_hidden_layers
    if not layers or any(not 0 <= layer < total for layer in layers) or len(set(layers)) != len(layers):
        raise ConfigError(f"layers {list(layers)} must be distinct numbers from 0 to {total - 1}")
    config = type(model.config).from_dict({**model.config.to_dict(), "num_hidden_layers": len(layers)})
    small = type(model)(config)
    place = {old: new for new, old in enumerate(layers)}
    state = {}
    for name, value in model.state_dict().items():
        before, found, after = name.partition(".layer.")
        if not found:
            state[name] = value
            continue
        number, _, rest = after.partition(".")
        if int(number) in place:
            state[f"{before}.layer.{place[int(number)]}.{rest}"] = value
    with torch.no_grad():
        small.load_state_dict(state, strict=True)
    return small.eval()


def convert_selected(source: Path, target: Path, model: PackagedModel) -> dict[str, Any]:
    """Write the selected layers of the already converted folder `source`."""
    transformers = names.require("transformers", "converting a model")
    full = transformers.AutoModelForSequenceClassification.from_pretrained(source)
    small = select_layers(full, model.settings["layers"])
    small.save_pretrained(target)
    for name in TOKENIZER_FILES:
        if (source / name).is_file():
            (target / name).write_bytes((source / name).read_bytes())
    return {"method": "layers selected", "layers": list(model.settings["layers"])}

"""The network of `joint_encoder`: any bidirectional encoder of transformers, what each token may see, and a grade head at the markers.

    logits_N4 = grades(tanh(dense(h at each marker)))

What a token sees, as a 4D mask made here from the block of each token (0 the query, j the j-th candidate with its marker):

    across="full"  everything; a marker sees the query and its own candidate (`marker_sees="own"`), or everything ("all")
    across="own"   a candidate and its marker see the query and themselves, the query sees itself: no path between candidates

The encoder stands under its own prefix (`bert.`, `roberta.`), so the saved folder also opens as a plain encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedConfig, PreTrainedModel

from steadyrank.lists import mask_of, pad
from steadyrank.scoring.batched import EncodedPrompt
from steadyrank.scoring.joint_encoder_last import reading, shorten

ACROSS = ("full", "own")
MARKER_SEES = ("own", "all")
PADDING = -1


class JointEncoderModel(PreTrainedModel):
    """An encoder with four grade logits read at each marker. `config.joint` holds `across` and `marker_sees`."""

    config_class = PreTrainedConfig
    _supports_sdpa = True

    def __init__(self, config: Any):
        super().__init__(config)
        encoder = AutoModel.from_config(config, attn_implementation="sdpa")
        if getattr(encoder, "pooler", None) is not None:
            encoder.pooler = None
        self.base_model_prefix = encoder.base_model_prefix
        setattr(self, encoder.base_model_prefix, encoder)
        shorten(encoder)
        size = config.hidden_size
        self.dense = nn.Linear(size, size)
        rate = getattr(config, "classifier_dropout", None)
        self.dropout = nn.Dropout(getattr(config, "hidden_dropout_prob", 0.0) if rate is None else rate)
        self.grades = nn.Linear(size, 4)
        for layer in (self.dense, self.grades):
            nn.init.normal_(layer.weight, std=getattr(config, "initializer_range", 0.02))
            nn.init.zeros_(layer.bias)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """The parts are initialised by their own rules, in __init__."""

    @property
    def encoder(self) -> PreTrainedModel:
        """The encoder itself."""
        return getattr(self, self.base_model_prefix)

    def forward(
        self,
        input_ids: Tensor,
        blocks_BT: Tensor,
        slots_N2: Tensor,
        position_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> Tensor:
        """logits_N4, fp32, of the slots at (row, place) `slots_N2`."""
        rows_N, places_N = slots_N2.unbind(1)
        options = {"position_ids": position_ids, "token_type_ids": token_type_ids}
        with reading(slots_N2):
            hidden_BTD = self.encoder(
                input_ids=input_ids,
                attention_mask=seen(blocks_BT, slots_N2, **self.config.joint)[:, None],
                **{name: value for name, value in options.items() if value is not None},
            ).last_hidden_state
        hidden_ND = hidden_BTD[rows_N, places_N]
        with torch.autocast(hidden_ND.device.type, enabled=False):
            return self.grades(self.dropout(torch.tanh(self.dense(hidden_ND.float())))).float()


def seen(blocks_BT: Tensor, slots_N2: Tensor, *, across: str, marker_sees: str) -> Tensor:
    """mask_BTT, true where a token (second axis) may see another (third axis). Rows of padding see what is there, so no row is empty."""
    present_B1T = (blocks_BT != PADDING)[:, None, :]
    near_BTT = (blocks_BT[:, None, :] == 0) | (blocks_BT[:, None, :] == blocks_BT[:, :, None])
    if across == "own":
        return present_B1T & near_BTT
    free_BT = torch.ones_like(blocks_BT, dtype=torch.bool)
    if marker_sees == "own":
        free_BT[slots_N2[:, 0], slots_N2[:, 1]] = False
    return present_B1T & (near_BTT | free_BT[:, :, None])


def tensors(encoded: Sequence[EncodedPrompt], *, form: str, start: int, pad_id: int, types: tuple[int, int] | None) -> dict[str, Tensor]:
    """The inputs of one forward. `form`: `full`, `own`, or `plain` (a first token in front, running positions, markers typed as text)."""
    rows = [_laid_out(found, form) for found in encoded]
    sizes = [len(found.ids) for found in encoded]
    mask_BT = mask_of(sizes)

    def padded(values: Sequence[Tensor], fill: int) -> Tensor:
        return torch.where(mask_BT, pad(torch.cat(list(values)), sizes)[0], fill)

    inputs = {
        "input_ids": padded([torch.tensor(list(found.ids)) for found in encoded], pad_id),
        "blocks_BT": padded([blocks_T for blocks_T, _, _ in rows], PADDING),
        "position_ids": padded([positions_T + start for _, positions_T, _ in rows], start),
        "slots_N2": torch.tensor([(row, place) for row, found in enumerate(encoded) for place in found.slots]),
    }
    if types is not None:
        inputs["token_type_ids"] = padded([torch.where(second_T, types[1], types[0]) for _, _, second_T in rows], 0)
    return inputs


def _laid_out(found: EncodedPrompt, form: str) -> tuple[Tensor, Tensor, Tensor]:
    """Block and position (from 0) of each token, and whether it is typed as second text."""
    is_marker_T = torch.zeros(len(found.ids), dtype=torch.long)
    is_marker_T[list(found.slots)] = 1
    blocks_T = is_marker_T.cumsum(0)
    if form == "plain":
        return blocks_T, torch.arange(len(found.ids)), blocks_T > 0
    text_T = 1 - is_marker_T
    positions_T = text_T.cumsum(0)  # the first place is the markers'
    if form == "own":
        before = torch.tensor([0, *[int(positions_T[place]) - found.slots[0] for place in found.slots]])
        positions_T = positions_T - before[blocks_T]
    return blocks_T, positions_T * text_T, (blocks_T > 0) & (text_T == 1)

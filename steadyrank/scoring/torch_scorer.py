"""What all scorers that run a transformer share: encode, collate, forward, and the loop over batches.

Training uses the same three steps (`encode`, `collate`, `forward`) as scoring, so what is trained is what is scored.
A subclass says how a pair becomes ids (`encode`) and how a forward becomes one raw logit a pair (`forward`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from steadyrank import files
from steadyrank.errors import ConfigError, InputError
from steadyrank.prompts.fit import effective_max_length, position_offset
from steadyrank.scoring.base import Pair, PairScore, Scorer
from steadyrank.scoring.batching import progress_bar, run_batches, token_batches
from steadyrank.scoring.text import UserText

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SCHEMA = "steadyrank.scorer/1"
SETTINGS_FILE = "steadyrank.json"
PRECISIONS = ("auto", "fp32", "bf16")
_PROBES = 16  # numbers of each weight that tell whether it moved
_PAYS_ABOVE = 1_000_000  # parameters outside of embeddings; a smaller model gains nothing from bf16
_ENCODE_AT_ONCE = 16_384


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """The tokens of one pair, cut to fit."""

    ids: tuple[int, ...]
    type_ids: tuple[int, ...] | None = None
    truncated_query: bool = False
    truncated_document: bool = False


class TorchScorer(Scorer):
    """A transformer and its tokenizer.

    max_length: tokens of a pair; never above what the tokenizer and the model's positions allow.
    precision:  `fp32`; `bf16`, autocast over fp32 weights; `auto`, bf16 where the processor has it and the model is large enough to gain.
    strict:     a pair that does not fit is an error naming its index, not a cut.
    tokens_per_forward: budget of a batch; by default 4,096 on a CPU and 65,536 on a GPU.
    """

    kind = "torch"

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str | None = None,
        max_length: int | None = None,
        precision: str = "auto",
        strict: bool = False,
        tokens_per_forward: int | None = None,
        device: str | torch.device | None = None,
    ):
        if precision not in PRECISIONS:
            raise ConfigError(f"precision {precision!r} unknown; known: {', '.join(PRECISIONS)}")
        self.model: PreTrainedModel = model.to(device or default_device()).eval()  # type: ignore[arg-type]
        self.tokenizer = tokenizer
        self.name = name or self.kind
        self.max_length = effective_max_length(tokenizer, model.config.get_text_config(), max_length)
        self.precision = precision
        self.strict = strict
        self._tokens_per_forward = tokens_per_forward
        self.packed = False
        self.packing_note = ""
        choose_pad_token(model, tokenizer)
        self.text = UserText(tokenizer)
        self._digest: tuple[Any, str] | None = None

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    @property
    def tokens_per_forward(self) -> int:
        """Tokens of one forward."""
        return self._tokens_per_forward or (4_096 if self.device.type == "cpu" else 65_536)

    @property
    def dtype(self) -> torch.dtype:
        """What the model computes in: bf16 under autocast, or its own."""
        return torch.bfloat16 if self.uses_bf16 else self.model.dtype

    @property
    def uses_bf16(self) -> bool:
        """Whether scoring runs under bf16 autocast."""
        if self.precision != "auto":
            return self.precision == "bf16"
        return bf16_pays(self.model, self.device)

    @abstractmethod
    def encode(self, pairs: Sequence[Pair]) -> list[EncodedPair]:
        """The ids of each pair, cut to fit."""

    @abstractmethod
    def forward(self, model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
        """scores_N of one collated batch: raw logits, fp32, differentiable; `model` may be wrapped (DDP, peft)."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What travels with the model in `steadyrank.json`, besides kind, scale and max_length."""

    def collate(self, encoded: Sequence[EncodedPair]) -> dict[str, Tensor]:
        """The inputs of one forward, on the CPU: a packed row sorted by length, or a padded batch in the order given."""
        start = position_offset(self.model.config)
        return pack_row(encoded, start) if self.packed else pad_rows(encoded, start, pad_id=int(self.tokenizer.pad_token_id))

    def to_device(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """The inputs where the model is; what only the host reads stays."""
        device = self.device
        if device.type == "cpu":
            return inputs
        return {name: value if name == "lengths_N" else value.to(device, non_blocking=True) for name, value in inputs.items()}

    def _score_pairs(self, pairs: Sequence[Pair], *, progress: bool = False) -> list[PairScore]:
        encoded = [
            found for start in range(0, len(pairs), _ENCODE_AT_ONCE) for found in self.encode(pairs[start : start + _ENCODE_AT_ONCE])
        ]
        if self.strict:
            self._refuse_cuts(pairs, encoded)
        batches = token_batches([len(pair.ids) for pair in encoded], self.tokens_per_forward, padded=not self.packed)
        was_training = self.model.training
        self.model.eval()
        try:
            scores = self._run(pairs, encoded, batches, progress)
        finally:
            self.model.train(was_training)
        return [PairScore(scores[place], found.truncated_query, found.truncated_document) for place, found in enumerate(encoded)]

    def _run(self, pairs: Sequence[Pair], encoded: Sequence[EncodedPair], batches: list[list[int]], progress: bool) -> dict[int, float]:
        model, autocast = self._scoring_model()
        # one autocast context for all batches: the cast weights are kept while it lasts
        with (
            progress_bar(progress) as bar,
            torch.inference_mode(),
            torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=autocast),
        ):
            task = bar.add_task(f"scoring with {self.name}", total=len(pairs))

            def forward(batch: Sequence[int]) -> list[float]:
                inputs = self.to_device(self.collate([encoded[place] for place in batch]))
                values = self.forward(model, inputs).tolist()
                bar.advance(task, len(batch))
                return values

            return run_batches(batches, forward, describe=lambda place: pairs[place].place)

    def _scoring_model(self) -> tuple[nn.Module, bool]:
        """The model that scores, and whether it needs autocast."""
        return self.model, self.uses_bf16

    def _refuse_cuts(self, pairs: Sequence[Pair], encoded: Sequence[EncodedPair]) -> None:
        for pair, found in zip(pairs, encoded, strict=True):
            if found.truncated_query or found.truncated_document:
                what = "query" if found.truncated_query else "document"
                raise InputError(
                    f"{pair.place}: the {what} does not fit into max_length {self.max_length}; shorten it, or leave `strict` off"
                )

    @property
    def fingerprint(self) -> str:
        """Hash of weights, tokenizer, settings and precision. Weights are hashed again only after they changed."""
        tokenizer = (
            self.tokenizer.backend_tokenizer.to_str() if hasattr(self.tokenizer, "backend_tokenizer") else str(self.tokenizer.get_vocab())
        )
        parts = [
            self.kind,
            self.max_length,
            str(self.dtype),
            self.settings(),
            hashlib.sha256(tokenizer.encode()).hexdigest(),
            self._weights_digest(),
        ]
        return files.fingerprint(parts)

    def _weights_digest(self) -> str:
        state = sorted(self.model.state_dict(keep_vars=True).items())
        versions = weight_versions(self.model)
        if self._digest is None or self._digest[0] != versions:
            digest = hashlib.sha256()
            for name, value in state:
                digest.update(f"{name}:{value.dtype}:{tuple(value.shape)}".encode())
                digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
            self._digest = (versions, digest.hexdigest())
        return self._digest[1]

    def save(self, path: str | Path) -> None:
        """Write model, tokenizer and `steadyrank.json` into a folder that `load_scorer` and transformers load."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        with quiet_loading():
            self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        files.write_json(folder / SETTINGS_FILE, self._saved())

    def _saved(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "name": self.name,
            "scale": self.scale,
            "max_length": self.max_length,
            **self.settings(),
        }


def weight_versions(model: nn.Module) -> tuple[Any, ...]:
    """Changes whenever the weights do. Loading and hand-made edits raise torch's own counter; a fused optimiser does not, so a few
    numbers of every weight are looked at as well (a step moves nearly all of them)."""
    state = model.state_dict(keep_vars=True)
    probes = [value.detach().flatten()[:: max(1, value.numel() // _PROBES)].float() for value in state.values() if value.numel()]
    counted = tuple((name, id(value), value._version) for name, value in state.items())
    return counted, torch.cat(probes).cpu().numpy().tobytes()


def pack_row(encoded: Sequence[EncodedPair], start: int) -> dict[str, Tensor]:
    """One row (1, T) of all sequences, shortest first; `lengths_N` in the row's order, `places_N` puts results back."""
    order = sorted(range(len(encoded)), key=lambda place: len(encoded[place].ids))
    lengths = [len(encoded[place].ids) for place in order]
    places = torch.empty(len(order), dtype=torch.long)
    places[torch.tensor(order)] = torch.arange(len(order))
    lengths_N = torch.tensor(lengths)
    starts = torch.repeat_interleave(lengths_N.cumsum(0) - lengths_N, lengths_N)
    inputs = {
        "input_ids": torch.tensor([token for place in order for token in encoded[place].ids])[None],
        "position_ids": (torch.arange(int(lengths_N.sum())) - starts + start)[None],
        "lengths_N": lengths_N,
        "places_N": places,
    }
    if encoded and encoded[0].type_ids is not None:
        inputs["token_type_ids"] = torch.tensor([kind for place in order for kind in encoded[place].type_ids])[None]  # type: ignore[union-attr]
    return inputs


def pad_rows(encoded: Sequence[EncodedPair], start: int, *, pad_id: int) -> dict[str, Tensor]:
    """A batch (N, T) padded on the right, whatever the tokenizer's side: positions and masks are then the same for all models."""
    width = max(len(pair.ids) for pair in encoded)

    def rows(values: Sequence[Sequence[int]], fill: int) -> Tensor:
        return torch.tensor([[*row, *[fill] * (width - len(row))] for row in values])

    inputs = {
        "input_ids": rows([pair.ids for pair in encoded], pad_id),
        "attention_mask": rows([[1] * len(pair.ids) for pair in encoded], 0),
        "position_ids": rows([range(start, start + len(pair.ids)) for pair in encoded], start),
    }
    if encoded[0].type_ids is not None:
        inputs["token_type_ids"] = rows([pair.type_ids for pair in encoded], 0)  # type: ignore[misc]
    return inputs


def choose_pad_token(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Where there is no pad token take one that exists (unknown, end, ...), in tokenizer and config; embeddings keep their size."""
    config = model.config.get_text_config()
    if tokenizer.pad_token_id is None:
        known = [tokenizer.unk_token, tokenizer.eos_token, tokenizer.bos_token, tokenizer.sep_token]
        tokenizer.pad_token = next((token for token in known if token is not None), tokenizer.convert_ids_to_tokens(0))
    if config.pad_token_id is None:
        config.pad_token_id = tokenizer.pad_token_id


def default_device() -> torch.device:
    """The accelerator where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def bf16_pays(model: nn.Module, device: torch.device) -> bool:
    """Whether bf16 autocast is worth it: the processor multiplies in bf16, and the model is not tiny."""
    if not is_large(model):
        return False
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    return device.type == "cpu" and _cpu_has_bf16()


def is_large(model: nn.Module) -> bool:
    """Whether the matrix products are large enough for their form to matter."""
    embeddings = sum(module.weight.numel() for module in model.modules() if isinstance(module, nn.Embedding))
    return sum(weight.numel() for weight in model.parameters()) - embeddings >= _PAYS_ABOVE


def _cpu_has_bf16() -> bool:
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(getattr(torch.cpu, name)()) for name in names if hasattr(torch.cpu, name))


@contextlib.contextmanager
def quiet_loading() -> Iterator[None]:
    """Neither progress bars nor load reports of transformers: what they say about new weights is an error of ours instead."""
    from transformers.utils import logging

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def read_settings(folder: str | Path) -> dict[str, Any]:
    """What a saved scorer's `steadyrank.json` says; empty for a folder that is not ours."""
    path = Path(folder) / SETTINGS_FILE
    if not path.is_file():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return found if isinstance(found, dict) else {}

"""`yes_logit`: a causal language model asked whether a document answers; the logit of its answer is the score.

    score = z_positive / divisor                         (ZeRank-2: the logit of `Yes`, divided by 5)
    score = (z_positive - z_negative) / divisor          (Qwen3-Reranker: `yes` minus `no`)

Read at the last real position of the prompt, before any sigmoid, in float32. The prompt comes from the catalog or a file, travels with
the saved model and is part of the fingerprint. Nothing is generated. A model that reads several documents at once is another scorer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from steadyrank.errors import ConfigError, UntrainedHeadError
from steadyrank.prompts import catalog
from steadyrank.prompts.fit import QUERY_SHARE
from steadyrank.scoring import packed
from steadyrank.scoring.base import Pair
from steadyrank.scoring.label_logits import answer_logits, packed_answer_logits, position_ids
from steadyrank.scoring.torch_scorer import EncodedPair, TorchScorer, pack_row, read_settings
from steadyrank.scoring.yes_logit_frame import Frame, label_ids

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

DEFAULT_PROMPT = "zerank"
DEFAULT_MAX_LENGTH = 512


class YesLogit(TorchScorer):
    """A causal language model as a pointwise scorer.

    prompt:      a name of the catalog (`zerank`, `qwen3-reranker`, ...), a YAML file, or what a saved model carries.
    labels:      the answers, (positive,) or (positive, negative); absent means the prompt's.
    divisor:     what the logit, or the difference, is divided by; absent means the prompt's `scale`.
    query_share: the part of the room that a query may take from a long document.
    packing:     `auto` packs where the architecture allows it; `off` pads. The scores are the same.
    """

    kind = "yes_logit"
    scale = "logit"

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        prompt: str | Path | Mapping[str, Any] = DEFAULT_PROMPT,
        labels: Sequence[str] | None = None,
        divisor: float | None = None,
        query_share: float = QUERY_SHARE,
        packing: str = "auto",
        max_length: int | None = None,
        **options: Any,
    ):
        super().__init__(model, tokenizer, max_length=DEFAULT_MAX_LENGTH if max_length is None else max_length, **options)
        self.prompt = catalog.Prompt.from_json(prompt) if isinstance(prompt, Mapping) else catalog.load(prompt, kind=self.kind)
        self.frame = Frame(self.prompt, tokenizer=tokenizer, max_length=self.max_length, query_share=query_share)
        named = self.prompt.fields["labels"]
        self.labels = tuple(labels) if labels is not None else tuple(named[side] for side in ("positive", "negative") if side in named)
        if isinstance(labels, str) or len(self.labels) not in (1, 2):
            raise ConfigError(f"labels are {labels!r}; give the positive answer, or the positive and the negative one, as a list")
        self.label_ids = label_ids(self.frame, self.labels)
        self.divisor = float(self.prompt.fields.get("scale", 1.0) if divisor is None else divisor)
        if not math.isfinite(self.divisor) or self.divisor <= 0:
            raise ConfigError(f"divisor is {self.divisor}; it must be a positive number, or the order of the scores would turn")
        takes = packed.forward_names(_innermost(model))
        self._takes_positions, self._narrow = "position_ids" in takes, "logits_to_keep" in takes
        if packing not in ("auto", "off"):
            raise ConfigError(f"packing {packing!r} unknown; known: auto, off")
        self.packing_note = "switched off" if packing == "off" else self._use_packing() or ""
        self.packed = not self.packing_note

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> YesLogit:
        """A scorer from a folder or hub id; the saved prompt, labels and limits apply unless other ones are given."""
        from transformers import AutoModelForCausalLM, AutoTokenizer

        saved = read_settings(path)
        if saved.get("kind") == cls.kind:
            carried = ("prompt", "max_length") if "prompt" in options else ("prompt", "labels", "divisor", "query_share", "max_length")
            for name in carried:
                if saved.get(name) is not None:
                    options.setdefault(name, saved[name])
        loaded: Any = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, output_loading_info=True)
        model, info = loaded
        if info["missing_keys"]:
            missing = ", ".join(sorted(info["missing_keys"])[:3])
            raise UntrainedHeadError(
                f"model {str(path)!r} is no language model (weights {missing} are new), so its answers would be noise; "
                "give a causal language model, or use the scorer kind 'cross_encoder'"
            )
        options.setdefault("name", Path(str(path)).name)
        return cls(model, AutoTokenizer.from_pretrained(path), **options)

    @classmethod
    def from_model(cls, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, **options: Any) -> YesLogit:
        """A scorer around a model that is already in memory."""
        return cls(model, tokenizer, **options)

    def encode(self, pairs: Sequence[Pair]) -> list[EncodedPair]:
        """The ids of each prompt: the document cut first, then the query, the frame never."""
        framed = self.frame.encode([(pair.query, pair.instruction, pair.document) for pair in pairs])
        return [EncodedPair(found.ids, None, found.truncated_query, found.truncated_document) for found in framed]

    def render(self, query: str, document: str, *, instruction: str | None = None) -> str:
        """The prompt as text, uncut."""
        return self.frame.render(query, document, instruction=instruction)

    def forward(self, model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
        """scores_N: the answer's logit, or the difference of the two, divided by the divisor."""
        logits_NA = self._answers(model, dict(inputs))
        difference_N = logits_NA[:, 0] - logits_NA[:, 1] if len(self.label_ids) == 2 else logits_NA[:, 0]
        return difference_N / self.divisor

    def settings(self) -> dict[str, Any]:
        """What travels with the model."""
        return {
            "prompt": self.prompt.to_json(),
            "labels": list(self.labels),
            "divisor": self.divisor,
            "query_share": self.frame.budget.query_share,
        }

    def _answers(self, model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
        lengths_N, places_N = inputs.pop("lengths_N", None), inputs.pop("places_N", None)
        if lengths_N is None:
            # from the mask, so that a batch padded on the left by somebody else gets the same positions
            inputs["position_ids"] = position_ids(inputs["attention_mask"])
        if not self._takes_positions:
            inputs.pop("position_ids")
        if lengths_N is None:
            return answer_logits(model, inputs, self.label_ids, narrow_positions=self._narrow)
        last_N = (lengths_N.cumsum(0) - 1).to(inputs["input_ids"].device)
        with packed.sequences(lengths_N.tolist()):
            logits_NA = packed_answer_logits(model, inputs, self.label_ids, last_N, narrow_positions=self._narrow)
        return logits_NA if places_N is None else logits_NA[places_N.to(logits_NA.device)]

    def _use_packing(self) -> str | None:
        """Let the model run packed; otherwise the reason why it cannot, and the model is left on its own attention."""
        if not self._takes_positions:
            return "its forward takes no position_ids"
        before = self.model.config._attn_implementation
        try:
            self.model.set_attn_implementation(packed.NAME)
            if self.model.config._attn_implementation != packed.NAME:
                return "it does not use transformers' attention interface"
            self._probe()
        except (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError, NotImplementedError) as error:
            self.model.set_attn_implementation(before)
            return str(error).splitlines()[0] if str(error) else type(error).__name__
        return None

    @torch.inference_mode()
    def _probe(self) -> None:
        """Packed and alone must agree on prompts of two lengths: what an architecture does to a row cannot be known from its name."""
        ids = self.frame.encode([("a b", None, "a"), ("a b", None, "a b a b a"), ("b a", None, "b")])
        encoded = [EncodedPair(found.ids) for found in ids]
        was_training = self.model.training
        self.model.eval()
        try:
            together = self._answers(self.model, self.to_device(pack_row(encoded, 0)))
            alone = torch.cat([self._answers(self.model, self.to_device(_single(pair))) for pair in encoded])
        finally:
            self.model.train(was_training)
        bound = 1e-3 if self.model.dtype == torch.float32 else 0.1
        if not torch.allclose(alone, together, atol=bound, rtol=bound):
            raise NotImplementedError(f"packed and single scores differ by {(alone - together).abs().max():.2g}")


def _single(pair: EncodedPair) -> dict[str, Tensor]:
    ids = torch.tensor([pair.ids])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _innermost(model: nn.Module) -> nn.Module:
    """The transformers model inside adapters."""
    inner = getattr(model, "get_base_model", None)
    return inner() if callable(inner) else model

"""`cross_encoder`: query and document in one sequence, a classification head, one raw logit.

The logit is the score; no sigmoid is applied to it, here or in the saved model. Query and document are joined by the tokenizer's own
template (`[CLS] q [SEP] d [SEP]`, `<s> q </s></s> d </s>`, ...), learnt from it at load and checked.

An instruction stands before the query, joined by `template`. The template is stored with the model; whoever uses the saved model
through another library passes the joined query (`render_query`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from steadyrank.errors import ConfigError, UntrainedHeadError
from steadyrank.prompts.fit import Budget
from steadyrank.scoring import packed
from steadyrank.scoring.base import Pair
from steadyrank.scoring.fast_copy import fast_copy
from steadyrank.scoring.text import UserText, clean
from steadyrank.scoring.torch_scorer import EncodedPair, TorchScorer, is_large, quiet_loading, read_settings, weight_versions

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

TEMPLATE = "{instruction}\n\n{query}"
_PROBES = (("which city is the capital", "the capital is a city"), ("one more", "a second and longer document that is read"))
_UNTRAINED = "steadyrank_untrained_head"


@dataclass(frozen=True)
class PairFrame:
    """The special tokens around a query and a document, with their segment ids; None where the model takes none."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    types: tuple[int, int] | None

    @classmethod
    def learn(cls, tokenizer: PreTrainedTokenizerBase, text: UserText, *, use_types: bool) -> PairFrame:
        """Read the frame off what the tokenizer does to one probe, and check it on the other."""
        frames = [cls._of(tokenizer, text, *probe, use_types=use_types) for probe in _PROBES]
        if frames[0] != frames[1]:
            raise ConfigError(
                f"tokenizer {type(tokenizer).__name__} joins query and document in a way that depends on the text; it cannot be used"
            )
        return frames[0]

    @classmethod
    def _of(cls, tokenizer: PreTrainedTokenizerBase, text: UserText, query: str, document: str, *, use_types: bool) -> PairFrame:
        whole = tokenizer(query, document, truncation=False, padding=False)
        ids = list(whole["input_ids"])
        first, second = text.encode([query, document])
        start = _find(ids, first, 0)
        middle = _find(ids, second, start + len(first))
        kinds = list(whole.get("token_type_ids") or []) if use_types else []
        frame = cls(
            tuple(ids[:start]),
            tuple(ids[start + len(first) : middle]),
            tuple(ids[middle + len(second) :]),
            (kinds[start], kinds[middle]) if kinds else None,
        )
        if kinds and frame.join(first, second)[1] != tuple(kinds):
            raise ConfigError(f"tokenizer {type(tokenizer).__name__} gives segment ids of an unknown form; it cannot be used")
        return frame

    @property
    def size(self) -> int:
        """Tokens of the frame."""
        return len(self.before) + len(self.between) + len(self.after)

    def join(self, query: Sequence[int], document: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        """The ids and segment ids of a pair."""
        ids = (*self.before, *query, *self.between, *document, *self.after)
        if self.types is None:
            return ids, None
        head = len(self.before) + len(query) + len(self.between)
        return ids, (self.types[0],) * head + (self.types[1],) * (len(ids) - head)


class CrossEncoder(TorchScorer):
    """A sequence classifier as a scorer.

    template:       how an instruction and a query are joined.
    positive_label: which output is the score, for a model with more than one.
    packing:        `auto` packs where the architecture allows it; `off` pads. The scores are the same.
    """

    kind = "cross_encoder"
    scale = "logit"

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        template: str = TEMPLATE,
        positive_label: int | str | None = None,
        packing: str = "auto",
        query_share: float = 0.5,
        untrained: Sequence[str] = (),
        **options: Any,
    ):
        super().__init__(model, tokenizer, **options)
        self.template = template
        self._template_parts = _split_template(template)
        self.positive_label = _label(model.config, positive_label)
        names = packed.forward_names(model)
        self._takes_positions = "position_ids" in names
        self.frame = PairFrame.learn(tokenizer, self.text, use_types="token_type_ids" in names)
        self.budget = Budget(
            self.max_length, self.frame.size, query_share=query_share, minimum_document=min(16, max(1, self.max_length // 4))
        )
        packed.prepare(model)
        if packing not in ("auto", "off"):
            raise ConfigError(f"packing {packing!r} unknown; known: auto, off")
        self.packing_note = "switched off" if packing == "off" else packed.use(model) or ""
        self.packed = not self.packing_note
        self._fast: tuple[Any, nn.Module] | None = None
        state = model.state_dict()
        self._initial = {name: state[name].clone() for name in untrained if name in state}

    @classmethod
    def load(cls, path: str | Path, *, allow_untrained: bool = False, layers: Sequence[int] | None = None, **options: Any) -> CrossEncoder:
        """A scorer from a folder or hub id. A head that was never trained is refused unless `allow_untrained` (training does)."""
        from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

        saved = read_settings(path)
        for name in ("template", "positive_label", "max_length", "query_share"):
            if saved.get(name) is not None and saved.get("kind") == cls.kind:
                options.setdefault(name, saved[name])
        config = AutoConfig.from_pretrained(path)
        if not _is_classifier(config):
            config.num_labels = 1
        with quiet_loading():
            model, info = AutoModelForSequenceClassification.from_pretrained(
                path, config=config, dtype=torch.float32, output_loading_info=True
            )
        missing = sorted(info["missing_keys"])
        marked = bool(getattr(config, _UNTRAINED, False))
        if (missing or marked) and not allow_untrained:
            what = f"weights {', '.join(missing[:3])} are new" if missing else "it was saved before training"
            raise UntrainedHeadError(
                f"model {str(path)!r} has no trained ranking head ({what}), so its scores would be noise; "
                "train it first, or pass allow_untrained=True"
            )
        heads = [name for name in model.state_dict() if marked and not name.startswith(f"{model.base_model_prefix}.")]
        if layers is not None:
            from steadyrank.data.models.layers import select_layers

            model = select_layers(model, layers)
        options.setdefault("name", Path(str(path)).name)
        return cls(model, AutoTokenizer.from_pretrained(path), untrained=missing or heads, **options)

    @classmethod
    def from_model(cls, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, **options: Any) -> CrossEncoder:
        """A scorer around a model that is already in memory; the caller answers for its head."""
        return cls(model, tokenizer, **options)

    @property
    def untrained(self) -> bool:
        """Whether the head still holds exactly the random numbers it was given at load."""
        if not self._initial:
            return False
        state = self.model.state_dict()
        return all(name in state and torch.equal(state[name].cpu(), value.cpu()) for name, value in self._initial.items())

    def render_query(self, query: str, instruction: str | None = None) -> str:
        """What stands in the query's place: the instruction and the query, joined by the template."""
        if not instruction:
            return query
        before, between, after, instruction_first = self._template_parts
        first, second = (instruction, query) if instruction_first else (query, instruction)
        return before + first + between + second + after

    def encode(self, pairs: Sequence[Pair]) -> list[EncodedPair]:
        """The ids of each pair; every distinct query and document is tokenised once."""
        asked = list(dict.fromkeys((pair.query, pair.instruction) for pair in pairs))
        queries = dict(zip(asked, self.text.encode([self.render_query(*item) for item in asked]), strict=True))
        documents = dict.fromkeys(pair.document for pair in pairs)
        read = dict(zip(documents, self.text.encode(documents), strict=True))
        out = []
        for pair in pairs:
            query, document = queries[pair.query, pair.instruction], read[pair.document]
            fit = self.budget.fit(len(query), len(document))
            if fit.truncated_query:
                query = self._cut_query(pair, fit.query)
            ids, types = self.frame.join(query, document[: fit.document] if fit.truncated_document else document)
            out.append(EncodedPair(ids, types, fit.truncated_query, fit.truncated_document))
        return out

    def _cut_query(self, pair: Pair, room: int) -> list[int]:
        """The query in `room` tokens. A long instruction gives way before the query does."""
        if not pair.instruction or room < 4:
            return self.text.encode([self.render_query(pair.query, pair.instruction)])[0][:room]
        instruction, query = self.text.encode([clean(pair.instruction), clean(pair.query)])
        fit = Budget(room, 0, minimum_document=min(16, room // 2)).fit(len(instruction), len(query))
        parts = [instruction[: fit.query], query[: fit.document]]
        return [token for part in (parts if self._template_parts[3] else reversed(parts)) for token in part]

    def _scoring_model(self) -> tuple[nn.Module, bool]:
        """In bf16, and on a CPU if the model is not tiny, a faster copy; made again after the weights changed."""
        bf16 = self.uses_bf16
        if not (bf16 or (self.device.type == "cpu" and is_large(self.model) and self.model.dtype == torch.float32)):
            return self.model, False
        key = (bf16, self.device, weight_versions(self.model))
        if self._fast is None or self._fast[0] != key:
            self._fast = (key, fast_copy(self.model, bf16=bf16))
        return self._fast[1], False

    def collate(self, encoded: Sequence[EncodedPair]) -> dict[str, Tensor]:
        """The inputs of one forward; position ids only for a model that takes them."""
        inputs = super().collate(encoded)
        if not self._takes_positions:
            inputs.pop("position_ids", None)
        return inputs

    def forward(self, model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
        """scores_N: the raw logit of the positive label."""
        return packed.run(model, inputs)[:, self.positive_label]

    def settings(self) -> dict[str, Any]:
        """What travels with the model."""
        return {"template": self.template, "positive_label": self.positive_label, "query_share": self.budget.query_share}

    def save(self, path: str | Path) -> None:
        """Write the folder; sentence-transformers' CrossEncoder reads raw logits from it, as we do."""
        config = self.model.config
        config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
        if self.untrained:
            setattr(config, _UNTRAINED, True)
        elif hasattr(config, _UNTRAINED):
            delattr(config, _UNTRAINED)
        before, self.tokenizer.model_max_length = self.tokenizer.model_max_length, self.max_length
        try:
            super().save(path)
        finally:
            self.tokenizer.model_max_length = before


def _find(ids: Sequence[int], part: Sequence[int], start: int) -> int:
    for place in range(start, len(ids) - len(part) + 1):
        if list(ids[place : place + len(part)]) == list(part):
            return place
    raise ConfigError("the tokenizer changes a query or document when it joins them, so pairs cannot be put together from their parts")


def _split_template(template: str) -> tuple[str, str, str, bool]:
    """(before, between, after, instruction first) of a template that holds `{instruction}` and `{query}` once each."""
    if template.count("{instruction}") != 1 or template.count("{query}") != 1:
        raise ConfigError(f"template {template!r} must hold {{instruction}} and {{query}} once each")
    first = template.index("{instruction}") < template.index("{query}")
    names = ("{instruction}", "{query}") if first else ("{query}", "{instruction}")
    before, rest = template.split(names[0])
    between, after = rest.split(names[1])
    return before, between, after, first


def _is_classifier(config: Any) -> bool:
    return any("ForSequenceClassification" in name for name in config.architectures or [])


def _label(config: Any, wanted: int | str | None) -> int:
    """The place of the positive label; a model with several must be told."""
    count = config.num_labels
    known = ", ".join(map(str, config.id2label.values()))
    if wanted is None:
        if count == 1:
            return 0
        raise ConfigError(f"the model has {count} labels ({known}); say which one is the score: positive_label=...")
    place = config.label2id.get(wanted, -1) if isinstance(wanted, str) else int(wanted)
    if not 0 <= place < count:
        raise ConfigError(f"positive_label {wanted!r} is none of the model's labels: {known}")
    return place

"""`joint_encoder`: a query and several candidates in one sequence of a bidirectional encoder, a grade read at each candidate's marker.

    query [SEP] [M1] candidate 1 [SEP] [M2] candidate 2 [SEP] ...          score = E[grade] / 3 at each marker

Each marker stands where a cross-encoder has its [CLS]: at the first position, with the [CLS] embedding to start with, and it sees the
query and its own candidate, while the tokens of query and candidates see each other. So one candidate alone is exactly the input of the
cross-encoder that the model was made from (`from_cross_encoder`), and at width 1 it ranks exactly as that one; what companions and
slots do comes on top. `marker_sees="all"` is the plain form instead: [CLS] in front, markers at running positions, everybody sees
everybody; a model made this way must first learn to read a candidate at its marker.

`across="own"` cuts every path between candidates: positions start again at each candidate, all slots share one marker, a candidate's
room does not depend on its companions. Such a model is invariant to order and companions, and is scored as a pointwise one.

Grades at the start: logit_g = g * scale * z - b_g with z the cross-encoder's logit and cut points c (b_g = scale * (c_1 + ... + c_g)), an
ordinal form whose E[grade] rises strictly with z.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from steadyrank import seeds
from steadyrank.data.presenting import order_of, parse_windows
from steadyrank.errors import ConfigError, UntrainedHeadError
from steadyrank.prompts.fit import fit_list, position_offset
from steadyrank.records import Presentation, RankingExample, ScoredList
from steadyrank.scoring import packed
from steadyrank.scoring.base import Scorer
from steadyrank.scoring.batched import WIDTH, BatchedScorer, EncodedPrompt, Prompt
from steadyrank.scoring.cross_encoder import TEMPLATE, CrossEncoder, PairFrame
from steadyrank.scoring.joint_encoder_build import cross_encoder_of, from_classifier, joint_of, plain_model, selected
from steadyrank.scoring.joint_encoder_model import JointEncoderModel, tensors
from steadyrank.scoring.text import clean
from steadyrank.scoring.torch_scorer import quiet_loading, read_settings
from steadyrank.scoring.yes_logit_frame import fill

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_CARRIED = ("width", "windows", "markers", "query_share", "document_tokens", "template", "marker_tokens", "max_length")


class JointEncoder(BatchedScorer):
    """An encoder that grades several candidates at once.

    marker_tokens: the token of each slot, one for each of `width`; the model's embeddings know them.
    template:      how an instruction and a query are joined.
    """

    kind = "joint_encoder"

    def __init__(
        self,
        model: JointEncoderModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        marker_tokens: Sequence[str],
        template: str = TEMPLATE,
        untrained: bool = False,
        **options: Any,
    ):
        super().__init__(model, tokenizer, **options)
        self.marker_tokens = tuple(marker_tokens)
        if len(self.marker_tokens) < self.width:
            raise ConfigError(
                f"windows {self.windows!r} need {self.width} markers and the model has {len(self.marker_tokens)}; lower the width"
            )
        self.template = template
        names = packed.forward_names(model.encoder)
        if "position_ids" not in names:
            raise ConfigError(f"{type(model.encoder).__name__} takes no position_ids, so candidates cannot be placed; use another encoder")
        self.frame = PairFrame.learn(tokenizer, self.text, use_types="token_type_ids" in names)
        if len(self.frame.before) != 1:
            raise ConfigError(f"tokenizer {type(tokenizer).__name__} puts {len(self.frame.before)} tokens before a query; one is needed")
        self._marker_ids = {token: cast(int, tokenizer.convert_tokens_to_ids(token)) for token in self.marker_tokens}
        self._fast: tuple[Any, nn.Module] | None = None
        self._initial = {name: value.detach().clone() for name, value in model.grades.state_dict().items()} if untrained else {}

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        allow_untrained: bool = False,
        across: str | None = None,
        marker_sees: str | None = None,
        layers: Sequence[int] | None = None,
        grade_scale: float | None = None,
        grade_cuts: Sequence[float] | None = None,
        **options: Any,
    ) -> JointEncoder:
        """From a folder that `save` wrote, also under another `across` or `marker_sees` to be trained on from there; from a trained
        cross-encoder, as `from_cross_encoder` does; or from an encoder, whose new head must be allowed by `allow_untrained`."""
        from transformers import AutoConfig, AutoTokenizer

        saved = read_settings(path)
        options.setdefault("name", Path(str(path)).name)
        made: dict[str, Any] = {
            "across": across,
            "marker_sees": marker_sees,
            "layers": layers,
            "grade_scale": grade_scale,
            "grade_cuts": grade_cuts,
        }
        made = {name: value for name, value in made.items() if value is not None}
        if saved.get("kind") != cls.kind:
            return cls._start(path, allow_untrained=allow_untrained, **made, **options)
        if fixed := [name for name in made if name not in ("across", "marker_sees")]:
            raise ConfigError(f"model {str(path)!r} is made already, and {fixed[0]} is decided when it is made; make another one")
        if saved.get("untrained") and not allow_untrained:
            raise UntrainedHeadError(
                f"model {str(path)!r} was saved before its grade head was trained; train it first, or pass allow_untrained=True"
            )
        if {"width", "windows"} & set(options):
            saved = {**saved, "width": None, "windows": None}
        options = {**{name: saved[name] for name in _CARRIED if saved.get(name) is not None}, **options}
        with quiet_loading():
            config = AutoConfig.from_pretrained(path)
            config.joint = joint_of(**{**config.joint, **made})
            model = JointEncoderModel.from_pretrained(path, config=config, dtype=torch.float32)
        return cls(model, AutoTokenizer.from_pretrained(path), untrained=bool(saved.get("untrained")), **options)

    @classmethod
    def from_cross_encoder(
        cls,
        source: CrossEncoder | str | Path | Mapping[str, Any],
        *,
        width: int = 8,
        layers: Sequence[int] | None = None,
        across: str = "full",
        marker_sees: str = "own",
        grade_scale: float = 0.5,
        grade_cuts: tuple[float, float, float] = (-4.0, 0.0, 4.0),
        allow_untrained: bool = False,
        **options: Any,
    ) -> JointEncoder:
        """A joint encoder that starts from what a cross-encoder (or the named layers of one) knows; the source is left as it is.

        grade_scale, grade_cuts: turn the cross-encoder's logit into grade logits: at logit c_g the grades g-1 and g are equally likely.
        """
        scorer = source if isinstance(source, CrossEncoder) else cross_encoder_of(source, allow_untrained)
        tokenizer = copy.deepcopy(scorer.tokenizer)
        model, tokens = from_classifier(
            scorer.model if layers is None else selected(scorer.model, layers),
            tokenizer,
            label=scorer.positive_label,
            width=width,
            joint=joint_of(across, marker_sees),
            scale=grade_scale,
            cuts=grade_cuts,
        )
        options = {"template": scorer.template, "name": f"joint-{scorer.name}", "max_length": scorer.max_length, **options}
        return cls(model, tokenizer, width=width, marker_tokens=tokens, untrained=scorer.untrained, **options)

    @classmethod
    def _start(
        cls, path: str | Path, *, allow_untrained: bool, width: int | None = None, windows: str | None = None, **options: Any
    ) -> JointEncoder:
        from transformers import AutoConfig

        size = parse_windows(windows).width if windows is not None else WIDTH if width is None else width
        options["windows"] = windows if windows is not None else f"contiguous:{size}"
        names = AutoConfig.from_pretrained(path).architectures or []
        if any("ForSequenceClassification" in name for name in names):
            return cls.from_cross_encoder(path, width=size, allow_untrained=allow_untrained, **options)
        if not allow_untrained:
            raise UntrainedHeadError(
                f"model {str(path)!r} has no grade head, so its scores would be noise; make the joint encoder from a trained "
                "cross-encoder (JointEncoder.from_cross_encoder), or pass allow_untrained=True and train it"
            )
        joint = joint_of(options.pop("across", "full"), options.pop("marker_sees", "own"))
        model, tokenizer, tokens = plain_model(path, size, joint, layers=options.pop("layers", None))
        return cls(model, tokenizer, marker_tokens=tokens, untrained=True, **options)

    @property
    def across(self) -> str:
        """What candidates see of each other: `full` or `own`."""
        return str(self.model.config.joint["across"])

    @property
    def marker_sees(self) -> str:
        """What a marker sees: `own` or `all`."""
        return str(self.model.config.joint["marker_sees"])

    @property
    def untrained(self) -> bool:
        """Whether the grade head still holds exactly the random numbers it was made with."""
        state = cast(nn.Module, self.model.grades).state_dict()
        return bool(self._initial) and all(torch.equal(state[name].cpu(), value.cpu()) for name, value in self._initial.items())

    @property
    def _plain(self) -> bool:
        return self.across == "full" and self.marker_sees == "all"

    def render_query(self, query: str, instruction: str | None = None) -> str:
        """What stands in the query's place."""
        return fill(self.template, {"instruction": instruction, "query": query}) if instruction else query

    def slot_markers(self, scheme: str, count: int, *, seed: int, example_id: str) -> tuple[str, ...]:
        """The marker tokens of one prompt: `numeric` in their order, `random` drawn for the example and seed, the other schemes by a
        permutation of their own. Under across="own" all slots share the first."""
        super().slot_markers(scheme, 1, seed=seed, example_id=example_id)
        bank = self.marker_tokens
        if self.across == "own":
            return (bank[0],) * count
        if count > len(bank):
            raise ConfigError(f"a prompt of {count} candidates needs {count} markers and the model has {len(bank)}; use narrower windows")
        if scheme == "numeric":
            return bank[:count]
        drawn = (
            seeds.permutation(len(bank), seed, "markers", example_id)
            if scheme == "random"
            else seeds.permutation(len(bank), 0, "marker tokens", scheme)
        )
        return tuple(bank[place] for place in drawn[:count])

    def encode_prompts(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]:
        """The ids of each prompt; every distinct query and document is tokenised once."""
        queries = self.text.encode([self.render_query(prompt.query, prompt.instruction) for prompt in prompts])
        flat = iter(self.text.encode([document for prompt in prompts for document in prompt.documents]))
        return [
            self._encoded(prompt, query, [next(flat) for _ in prompt.documents]) for prompt, query in zip(prompts, queries, strict=True)
        ]

    def _encoded(self, prompt: Prompt, query: list[int], documents: list[list[int]]) -> EncodedPrompt:
        frame = self.frame
        lengths = [len(document) for document in documents]
        capped = self._capped(lengths)
        size = len(documents)
        each = len(frame.after) + (1 if self._plain else 0)
        room = self.max_length - 1 - len(frame.between)
        if self.across == "own":  # as if the window were full of long documents: companions change nothing
            whole = room - self.width * each
            kept_query = fit_list(whole, len(query), [whole] * self.width, query_share=self.query_share).query
            kept = tuple(min(length, (whole - kept_query) // self.width) for length in capped)
        else:
            fit = fit_list(room - size * each, len(query), capped, query_share=self.query_share)
            kept_query, kept = fit.query, fit.documents
        truncated_query = kept_query < len(query)
        if truncated_query:
            query = self._cut_query(prompt, kept_query)
        ids = [*(frame.before if self._plain else ()), *query, *frame.between]
        slots = []
        for marker, document, keep in zip(prompt.markers, documents, kept, strict=True):
            slots.append(len(ids))
            ids += [self._marker_ids[marker], *document[:keep], *frame.after]
        cut = tuple(slot for slot in range(size) if kept[slot] < lengths[slot])
        return EncodedPrompt(tuple(ids), tuple(slots), cut, truncated_query, shared=slots[0] if slots else len(ids))

    def _cut_query(self, prompt: Prompt, room: int) -> list[int]:
        """The query in `room` tokens. A long instruction gives way before the query does."""
        if not prompt.instruction or room < 4:
            return self.text.encode([self.render_query(prompt.query, prompt.instruction)])[0][:room]
        instruction, query = self.text.encode([clean(prompt.instruction), clean(prompt.query)])
        fit = fit_list(room, len(instruction), [len(query)], minimum_document=min(16, room // 2))
        return [*instruction[: fit.query], *query[: fit.documents[0]]]

    def collate(self, encoded: Sequence[EncodedPrompt]) -> dict[str, Tensor]:  # type: ignore[override]
        """The inputs of one forward, on the CPU, padded on the right."""
        return tensors(
            encoded,
            form="plain" if self._plain else self.across,
            start=position_offset(self.model.config),
            pad_id=int(self.tokenizer.pad_token_id),
            types=self.frame.types,
        )

    def grade_logits(self, model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
        """logits_N4 at the markers."""
        return model(**inputs)

    def score_presentations(
        self, examples: Sequence[RankingExample], laid: Sequence[Sequence[Presentation]], *, progress: bool = False
    ) -> list[list[ScoredList]]:
        """As every batched scorer; under across="own" no presentation can change a score, so each list is scored once."""
        if self.across != "own":
            return super().score_presentations(examples, laid, progress=progress)
        for example, rows in zip(examples, laid, strict=True):
            for presentation in rows:
                order_of(presentation, len(example.candidates))
        return Scorer.score_presentations(self, examples, laid, progress=progress)

    # in bf16, and on a CPU if the model is not tiny, a faster copy
    _scoring_model = CrossEncoder._scoring_model

    def settings(self) -> dict[str, Any]:
        """What travels with the model."""
        return {
            **super().settings(),
            "marker_tokens": list(self.marker_tokens),
            "template": self.template,
            "across": self.across,
            "marker_sees": self.marker_sees,
            "untrained": self.untrained,
        }

"""`expected_grade`: a causal language model grades several candidates in one prompt; each score is an expected grade, E[g] / 3.

A fixed answer skeleton follows the prompt, one line a candidate, and one forward gives at each line the distribution over the four grade
tokens; nothing is generated (arXiv 2608.26762, expected-grade readout). The contract of the readout, with its version and when that
version must change, is docs/readout.md.

    p_slot(g) = softmax over the four grade tokens at the place before the slot's grade,   score = sum_g g p(g) / 3

`prefix_mode="cumulative"`: a line sees the dummy grades of the lines before it; `independent`: it sees the prompt and itself only.

Speed: only the slots' positions and the four grade rows go through the output layer; the ids before the first candidate are computed
once for all prompts that share them (`reuse_prefix`) and give the same scores to rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from steadyrank.errors import ConfigError, UntrainedHeadError
from steadyrank.prompts import catalog
from steadyrank.scoring import packed
from steadyrank.scoring.batched import BatchedScorer, EncodedPrompt, Prompt, split_rows
from steadyrank.scoring.batching import progress_bar, run_batches, token_batches
from steadyrank.scoring.grade_frame import GradeFrame
from steadyrank.scoring.label_logits import answer_head
from steadyrank.scoring.torch_scorer import quiet_loading, read_settings

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

READOUT = "steadyrank.readout/1"
DEFAULT_PROMPT = "grade-relevance"
DEFAULT_MAX_LENGTH = 4_096
_CARRIED = ("width", "windows", "markers", "query_share", "document_tokens", "max_length", "skeleton", "dummy", "prefix_mode", "prompt")


class ExpectedGrade(BatchedScorer):
    """A causal language model as a grader of several candidates at once.

    prompt:       `grade-relevance`, `grade-answer-support`, `grade-response-quality`, a YAML file, or what a model carries.
    skeleton:     a wording's name in the prompt file (`plain`), or one's own that holds {marker} and {dummy}.
    dummy:        the grade that stands in the skeleton; absent means the prompt's.
    prefix_mode:  whether an answer line sees the lines before it: `cumulative` or `independent`.
    reuse_prefix: compute the shared beginning of prompts once.
    """

    kind = "expected_grade"

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        prompt: str | Path | Mapping[str, Any] = DEFAULT_PROMPT,
        skeleton: str = "plain",
        dummy: str | None = None,
        prefix_mode: str = "cumulative",
        reuse_prefix: bool = True,
        max_length: int | None = None,
        **options: Any,
    ):
        super().__init__(model, tokenizer, max_length=DEFAULT_MAX_LENGTH if max_length is None else max_length, **options)
        self.prompt = catalog.Prompt.from_json(prompt) if isinstance(prompt, Mapping) else catalog.load(prompt, kind=self.kind)
        self.prefix_mode, self.reuse_prefix = prefix_mode, reuse_prefix
        self.frame = GradeFrame(
            self.prompt,
            tokenizer=tokenizer,
            text=self.text,
            max_length=self.max_length,
            query_share=self.query_share,
            prefix_mode=prefix_mode,
        )
        self.skeleton, self.dummy = skeleton, str(self.prompt.fields["dummy"]) if dummy is None else dummy
        self.frame.line("[1]", skeleton, self.dummy)
        takes = packed.forward_names(_innermost(model))
        self._takes_positions, self._narrow = "position_ids" in takes, "logits_to_keep" in takes
        self._cache = "cache" if "cache" in takes else "past_key_values"
        if prefix_mode == "independent" and not self._takes_positions:
            raise ConfigError(f"{type(model).__name__} takes no position_ids, which independent answer lines need; use cumulative")

    @classmethod
    def load(cls, path: str | Path, *, allow_untrained: bool = False, **options: Any) -> ExpectedGrade:
        """A scorer from a folder or hub id; the saved prompt, windows and limits apply unless other ones are given."""
        from transformers import AutoModelForCausalLM, AutoTokenizer

        saved = read_settings(path)
        if saved.get("kind") == cls.kind:
            if {"width", "windows"} & set(options):
                saved = {**saved, "width": None, "windows": None}
            options = {**{name: saved[name] for name in _CARRIED if saved.get(name) is not None}, **options}
        with quiet_loading():
            loaded: Any = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, output_loading_info=True)
        model, info = loaded
        if info["missing_keys"] and not allow_untrained:
            missing = ", ".join(sorted(info["missing_keys"])[:3])
            raise UntrainedHeadError(
                f"model {str(path)!r} is no language model (weights {missing} are new), so its grades would be noise; "
                "give a causal language model, or use the scorer kind 'joint_encoder'"
            )
        options.setdefault("name", Path(str(path)).name)
        return cls(model, AutoTokenizer.from_pretrained(path), **options)

    @classmethod
    def from_model(cls, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, **options: Any) -> ExpectedGrade:
        """A scorer around a model that is already in memory."""
        return cls(model, tokenizer, **options)

    @property
    def grade_ids(self) -> tuple[int, ...]:
        """The tokens of the grades 0 to 3."""
        return self.frame.grade_ids

    def encode_prompts(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]:
        """The ids of each prompt: documents cut evenly, then the query, everything else never."""
        return self.frame.encode(prompts, skeleton=self.skeleton, dummy=self.dummy, document_tokens=self.document_tokens)

    def collate(self, encoded: Sequence[EncodedPrompt]) -> dict[str, Tensor]:  # type: ignore[override]
        """The inputs of one forward, on the CPU, padded on the right."""
        return self._collated(encoded, skip=0)

    def _collated(self, encoded: Sequence[EncodedPrompt], *, skip: int) -> dict[str, Tensor]:
        """The same behind the first `skip` ids, which all rows share. The masks cover those too."""
        width = max(len(found.ids) for found in encoded)
        steps_T = torch.arange(width)
        mask_BT = steps_T < torch.tensor([len(found.ids) for found in encoded])[:, None]
        ids_BT = torch.tensor([[*found.ids, *[int(self.tokenizer.pad_token_id)] * (width - len(found.ids))] for found in encoded])
        positions_BT = steps_T.expand(len(encoded), -1) * mask_BT
        attention = mask_BT.long()
        if encoded[0].lines:
            blocks_BT = torch.zeros_like(ids_BT)
            for row, found in enumerate(encoded):
                for number, start in enumerate(found.lines):
                    blocks_BT[row, start : found.slots[number] + 1] = number + 1
            first_B1 = torch.tensor([[found.lines[0]] for found in encoded])
            starts = [
                [found.lines[block - 1] if block else 0 for block in row] for found, row in zip(encoded, blocks_BT.tolist(), strict=True)
            ]
            positions_BT = torch.where(blocks_BT > 0, positions_BT - torch.tensor(starts) + first_B1, positions_BT)
            near_BTT = (blocks_BT[:, None, :] == 0) | (blocks_BT[:, None, :] == blocks_BT[:, :, None])
            causal_TT = steps_T[None, :] <= steps_T[:, None]
            attention = (causal_TT & near_BTT & mask_BT[:, None, :])[:, None, skip:]
        inputs = {
            "input_ids": ids_BT[:, skip:],
            "attention_mask": attention,
            "slots_N2": torch.tensor([(row, place - skip) for row, found in enumerate(encoded) for place in found.slots]),
        }
        if self._takes_positions:
            inputs["position_ids"] = positions_BT[:, skip:]
        return inputs

    def grade_logits(self, model: nn.Module, inputs: dict[str, Any]) -> Tensor:
        """logits_N4 of the four grade tokens at every slot."""
        inputs = dict(inputs)
        rows_N, places_N = inputs.pop("slots_N2").unbind(1)
        options: dict[str, Any] = {"use_cache": self._cache in inputs}
        if self._narrow:
            options["logits_to_keep"], places_N = torch.unique(places_N, return_inverse=True)
        with answer_head(model, self.grade_ids) as narrow:
            logits = model(**inputs, **options).logits
        return (logits if narrow else logits[..., list(self.grade_ids)])[rows_N, places_N].float()

    def _run_prompts(self, prompts: Sequence[Prompt], encoded: Sequence[EncodedPrompt], *, progress: bool) -> list[list[list[float]]]:
        groups: dict[tuple[int, ...], list[int]] = {}
        for place, found in enumerate(encoded):
            groups.setdefault(found.ids[: found.shared], []).append(place)
        shared = [places for places in groups.values() if len(places) > 1] if self.reuse_prefix and self._takes_positions else []
        rows: dict[int, list[list[float]]] = {}
        with (
            progress_bar(progress) as bar,
            torch.inference_mode(),
            torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.uses_bf16),
        ):
            task = bar.add_task(f"scoring with {self.name}", total=len(prompts))
            for places in shared:
                rows.update(self._run_group(prompts, encoded, places))
                bar.advance(task, len(places))
            rest = [place for place in range(len(prompts)) if place not in rows]
            if rest:
                alone = super()._run_prompts([prompts[place] for place in rest], [encoded[place] for place in rest], progress=False)
                rows.update(zip(rest, alone, strict=True))
                bar.advance(task, len(rest))
        return [rows[place] for place in range(len(prompts))]

    def _run_group(
        self, prompts: Sequence[Prompt], encoded: Sequence[EncodedPrompt], places: Sequence[int]
    ) -> dict[int, list[list[float]]]:
        """The scores of prompts that share their beginning, which is computed once and repeated over each batch."""
        skip = encoded[places[0]].shared
        start = torch.tensor([encoded[places[0]].ids[:skip]], device=self.device)
        cache = getattr(self._base()(input_ids=start, use_cache=True), self._cache)

        def forward(batch: Sequence[int]) -> list[list[list[float]]]:
            chosen = [encoded[places[number]] for number in batch]
            inputs: dict[str, Any] = self.to_device(self._collated(chosen, skip=skip))
            own = copy.deepcopy(cache)
            own.batch_repeat_interleave(len(chosen))
            inputs[self._cache] = own
            return split_rows(self._read(self.model, inputs), [len(found.slots) for found in chosen])

        lengths = [len(encoded[place].ids) for place in places]
        batches = token_batches(lengths, self.tokens_per_forward, padded=True)
        found = run_batches(batches, cast(Any, forward), describe=lambda number: prompts[places[number]].pair(0).place)
        return {places[number]: cast(Any, row) for number, row in found.items()}

    def _base(self) -> nn.Module:
        """The decoder without its output layer."""
        model = _innermost(self.model)
        return cast(nn.Module, getattr(model, model.base_model_prefix))

    def settings(self) -> dict[str, Any]:
        """What travels with the model."""
        return {
            **super().settings(),
            "readout": READOUT,
            "prompt": self.prompt.to_json(),
            "frame": self.frame.form,
            "skeleton": self.skeleton,
            "dummy": self.dummy,
            "prefix_mode": self.prefix_mode,
        }


def _innermost(model: nn.Module) -> Any:
    """The transformers model inside adapters."""
    inner = getattr(model, "get_base_model", None)
    return inner() if callable(inner) else model

"""What scorers that read several candidates in one prompt share: windows, slots, budgets, and the way back to canonical order.

A pool is cut into prompts by a window rule (`data.presenting`); every prompt is scored by itself and its scores are compared across
prompts without rescaling (arXiv 2608.26762, batched pointwise grading). The score is E[grade] / 3, the scale `probability`.

What is promised beside the contract of `scoring.base`:
- A slot is found by where its ids were put, never by searching text: no document can imitate a marker or an answer line.
- Neither the frame nor the query's share nor any slot is cut; documents are, evenly, and those cut are listed in `truncated`.
- A candidate without text is never shown: it takes no slot, changes nobody's score and gets 0, the floor of the scale, flagged in
  `empty`. n in, n out. (Shown as an empty slot it would get the grade that the slot gives away, which is no grade of its own.)
- Equal texts are different candidates with a slot each; equal prompts are computed once and their scores are bit-equal.

How a prompt becomes ids (`encode_prompts`) and how a forward becomes grade logits (`grade_logits`) is the subclass's business.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from steadyrank.data.presenting import Windows, cut, markers_of, order_of, parse_windows
from steadyrank.errors import ConfigError, InputError
from steadyrank.prompts.fit import QUERY_SHARE
from steadyrank.records import Presentation, RankingExample, ScoredList
from steadyrank.scoring.base import Pair, PairScore
from steadyrank.scoring.batching import progress_bar, run_batches, token_batches
from steadyrank.scoring.text import is_empty
from steadyrank.scoring.torch_scorer import TorchScorer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

GRADES = (0, 1, 2, 3)
WIDTH = 8
_CANONICAL = Presentation()


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one forward shows. Two prompts are equal if they show the same; whose candidates they hold (`places`) is no part of that."""

    query: str
    instruction: str | None
    documents: tuple[str, ...]
    markers: tuple[str, ...]
    places: tuple[int, ...] = field(compare=False)
    skeleton: str | None = None
    dummy: str | None = None
    example: str | None = field(default=None, compare=False)

    def pair(self, slot: int) -> Pair:
        """The query with the document in this slot, for naming it in an error."""
        return Pair(self.query, self.documents[slot], self.instruction, self.example, self.places[slot])


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """The ids of one prompt.

    slots:     position in `ids` at which the grade of each slot is read.
    truncated: slots whose document was cut.
    shared:    how many ids at the beginning are the same for every order of the candidates.
    type_ids:  of each id, where a model takes them from here.
    lines:     where each slot's answer line starts, if the lines must not see each other.
    """

    ids: tuple[int, ...]
    slots: tuple[int, ...]
    truncated: tuple[int, ...] = ()
    truncated_query: bool = False
    shared: int = 0
    type_ids: tuple[int, ...] | None = None
    lines: tuple[int, ...] = ()

    @property
    def truncated_document(self) -> bool:
        """Whether any document was cut."""
        return bool(self.truncated)


@dataclass(frozen=True, slots=True)
class SlotScore:
    """What was read at one slot."""

    score: PairScore
    logits: tuple[float, ...]


class BatchedScorer(TorchScorer):
    """A scorer whose prompts hold up to `width` candidates.

    windows:         the rule that cuts a pool, in its text form; a presentation that names windows overrides it.
    width:           short for `windows="contiguous:WIDTH"`.
    markers:         the marker scheme, unless a presentation names another.
    query_share:     the part of the room that a long query may take from long documents.
    document_tokens: at most so many tokens of each document; absent means as many as fit.
    """

    kind = "batched"
    scale = "probability"
    reads_lists = True
    floor = 0.0

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        width: int | None = None,
        windows: str | None = None,
        markers: str = "numeric",
        query_share: float = QUERY_SHARE,
        document_tokens: int | None = None,
        **options: Any,
    ):
        super().__init__(model, tokenizer, **options)
        rule = parse_windows(windows) if windows is not None else Windows("contiguous", WIDTH if width is None else width)
        if width is not None and width != rule.width:
            raise ConfigError(f"width {width} and windows {windows!r} disagree; give one of them")
        if not 0 < query_share < 1:
            raise ConfigError(f"query_share is {query_share}; it must lie between 0 and 1")
        if document_tokens is not None and document_tokens < 1:
            raise ConfigError(f"document_tokens is {document_tokens}; give a whole number from 1, or leave it out")
        markers_of(markers, 1)
        self.windows, self.width, self.markers = str(rule), rule.width, markers
        self.query_share, self.document_tokens = query_share, document_tokens

    @abstractmethod
    def encode_prompts(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]:
        """The ids of each prompt, documents cut to fit."""

    @abstractmethod
    def grade_logits(self, model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
        """logits_N4 of every slot of every prompt, prompt after prompt: fp32, differentiable; `model` may be wrapped (DDP, peft)."""

    def forward(self, model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
        """scores_N in [0, 1]: the expected grade over 3."""
        return expected_grade(self.grade_logits(model, inputs)) / GRADES[-1]

    def encode(self, pairs: Sequence[Pair]) -> list[EncodedPrompt]:  # type: ignore[override]
        """The ids of pairs as prompts of one candidate, so that whoever trains or scores pairs can use this scorer at width 1."""
        marker = self.slot_markers(self.markers, 1, seed=0, example_id="")
        return self.encode_prompts([Prompt(pair.query, pair.instruction, (pair.document,), marker, (0,)) for pair in pairs])

    def slot_markers(self, scheme: str, count: int, *, seed: int, example_id: str) -> tuple[str, ...]:
        """The markers of the slots of one prompt."""
        return markers_of(scheme, count, seed=seed, example_id=example_id)

    def prompts_of(self, example: RankingExample, presentation: Presentation = _CANONICAL) -> list[Prompt]:
        """The prompts that show an example under a presentation. Candidates without text are in none of them."""
        rule = parse_windows(presentation.windows or self.windows)
        documents = example.documents
        order = [place for place in order_of(presentation, len(documents)) if not is_empty(documents[place])]
        out = []
        for places in cut(order, rule):
            markers = self.slot_markers(
                presentation.markers or self.markers, len(places), seed=presentation.seed or 0, example_id=example.id
            )
            shown = tuple(documents[place] for place in places)
            laid = (presentation.skeleton, presentation.dummy)
            out.append(Prompt(example.query, example.instruction, shown, markers, places, *laid, example.id))
        return out

    def score_presentations(
        self, examples: Sequence[RankingExample], laid: Sequence[Sequence[Presentation]], *, progress: bool = False
    ) -> list[list[ScoredList]]:
        """One ScoredList for each presentation of each example. All prompts of all of them are batched together."""
        flat = [(example, one) for example, rows in zip(examples, laid, strict=True) for one in rows]
        scored = self._checked(self.score_laid(flat, progress=progress), [example for example, _ in flat])
        found = [self._scored_list(example, row, one) for (example, one), row in zip(flat, scored, strict=True)]
        return split_rows(found, [len(rows) for rows in laid])

    def _score_lists(self, examples: Sequence[RankingExample], *, progress: bool = False, named: bool = True) -> list[list[PairScore]]:
        return self.score_laid([(example, _CANONICAL) for example in examples], progress=progress)

    def score_laid(
        self,
        laid: Sequence[tuple[RankingExample, Presentation]],
        *,
        progress: bool = False,
        score_prompts: Callable[[list[Prompt]], list[list[PairScore]]] | None = None,
    ) -> list[list[PairScore]]:
        """The scores of each laid list, canonical order. `score_prompts` scores the slots of distinct prompts; repairs put theirs in."""
        shown = [self.prompts_of(example, presentation) for example, presentation in laid]
        unique = {prompt: number for number, prompt in enumerate(dict.fromkeys(prompt for prompts in shown for prompt in prompts))}
        found = self._score_prompts(list(unique), progress=progress) if score_prompts is None else score_prompts(list(unique))
        return [
            self._collected(example, [(prompt, found[unique[prompt]]) for prompt in prompts])
            for (example, _), prompts in zip(laid, shown, strict=True)
        ]

    def _collected(self, example: RankingExample, shown: Sequence[tuple[Prompt, Sequence[PairScore]]]) -> list[PairScore]:
        """Slots back to canonical order; a candidate that several windows show gets the mean of its scores."""
        rows: list[list[PairScore]] = [[] for _ in example.candidates]
        for prompt, scores in shown:
            for place, score in zip(prompt.places, scores, strict=True):
                rows[place].append(score)
        assert self.floor is not None
        empty = PairScore(self.floor, empty=True)
        return [_mean(row) if row else empty for row in rows]

    def slot_scores(self, prompts: Sequence[Prompt], *, progress: bool = False) -> list[list[SlotScore]]:
        """Score and grade logits of every slot of every prompt."""
        encoded = self.encode_prompts(prompts)
        if self.strict:
            self._refuse_cut_slots(prompts, encoded)
        was_training = self.model.training
        self.model.eval()
        try:
            read = self._run_prompts(prompts, encoded, progress=progress)
        finally:
            self.model.train(was_training)
        return [
            [
                SlotScore(PairScore(score, found.truncated_query, slot in found.truncated), tuple(logits))
                for slot, (score, *logits) in enumerate(row)
            ]
            for row, found in zip(read, encoded, strict=True)
        ]

    def _score_prompts(self, prompts: Sequence[Prompt], *, progress: bool = False) -> list[list[PairScore]]:
        return [[slot.score for slot in row] for row in self.slot_scores(prompts, progress=progress)]

    def _read(self, model: nn.Module, inputs: dict[str, Tensor]) -> list[list[float]]:
        """Score and four grade logits of each slot of one batch."""
        logits_N4 = self.grade_logits(model, inputs)
        return torch.cat([expected_grade(logits_N4)[:, None] / GRADES[-1], logits_N4], dim=1).tolist()

    def _run_prompts(self, prompts: Sequence[Prompt], encoded: Sequence[EncodedPrompt], *, progress: bool) -> list[list[list[float]]]:
        batches = token_batches([len(found.ids) for found in encoded], self.tokens_per_forward, padded=True)
        model, autocast = self._scoring_model()
        with (
            progress_bar(progress) as bar,
            torch.inference_mode(),
            torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=autocast),
        ):
            task = bar.add_task(f"scoring with {self.name}", total=len(prompts))

            def forward(batch: Sequence[int]) -> list[list[list[float]]]:
                inputs = self.to_device(self.collate([encoded[place] for place in batch]))  # type: ignore[misc]
                rows = split_rows(self._read(model, inputs), [len(encoded[place].slots) for place in batch])
                bar.advance(task, len(batch))
                return rows

            found = run_batches(batches, cast(Any, forward), describe=lambda place: prompts[place].pair(0).place)
        return [cast(Any, found[place]) for place in range(len(prompts))]

    def _refuse_cut_slots(self, prompts: Sequence[Prompt], encoded: Sequence[EncodedPrompt]) -> None:
        for prompt, found in zip(prompts, encoded, strict=True):
            if found.truncated_query or found.truncated:
                what = "query" if found.truncated_query else "document"
                slot = found.truncated[0] if found.truncated else 0
                raise InputError(
                    f"{prompt.pair(slot).place}: the {what} does not fit among {len(prompt.documents)} documents into max_length "
                    f"{self.max_length}; shorten it, use narrower windows, or leave `strict` off"
                )

    def _capped(self, lengths: Sequence[int]) -> list[int]:
        """Lengths of documents after `document_tokens`."""
        return [length if self.document_tokens is None else min(length, self.document_tokens) for length in lengths]

    def settings(self) -> dict[str, Any]:
        """What travels with the model."""
        return {
            "width": self.width,
            "windows": self.windows,
            "markers": self.markers,
            "query_share": self.query_share,
            "document_tokens": self.document_tokens,
        }


def expected_grade(logits_N4: Tensor) -> Tensor:
    """E[g]_N in [0, 3] under the softmax over the four grades; fp32, differentiable."""
    return logits_N4.float().softmax(-1) @ torch.arange(len(GRADES), dtype=torch.float32, device=logits_N4.device)


def split_rows(values: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Values that stand one after the other, cut into rows of these sizes."""
    flat = iter(values)
    return [[next(flat) for _ in range(size)] for size in sizes]


def _mean(scores: Sequence[PairScore]) -> PairScore:
    return PairScore(
        sum(one.score for one in scores) / len(scores),
        any(one.truncated_query for one in scores),
        any(one.truncated_document for one in scores),
    )

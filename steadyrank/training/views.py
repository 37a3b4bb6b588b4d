"""Draws of one step -> the prompts of all their views, for scorers that read several candidates at once.

Each list is laid P times. The order of view v comes from the stream (seed, "view", example id, epoch, v): fresh for every list and epoch,
whatever stands beside it and however a step is cut. Slot scores go back to scores_BPK in canonical order through `index_N`; a candidate
that several windows show gets the mean of its scores; one that no prompt shows is masked out, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from steadyrank import lists, seeds
from steadyrank.data.presenting import presentations
from steadyrank.errors import ConfigError
from steadyrank.objectives import with_consistency
from steadyrank.objectives.label_regression import slot_weights
from steadyrank.objectives.views import LaidViews
from steadyrank.records import Presentation, RankingExample
from steadyrank.training.collate import Collator, Part
from steadyrank.training.prepare import TrainingLists
from steadyrank.training.sampling import Draw
from steadyrank.training.settings import TrainSettings, ViewSettings


def reads_views(objective: Any) -> bool:
    """Whether an objective reads scores_BPK."""
    return bool(getattr(objective, "reads_views", False))


def fitting(objective: Any, scorer: Any) -> Any:
    """The objective as this scorer needs it: a plain score objective reads one view of a scorer of whole lists."""
    if not getattr(scorer, "reads_lists", False):
        if reads_views(objective):
            raise ConfigError(
                f"objective {objective.name!r} reads several views of a list, and student {scorer.name!r} reads one candidate at a time, "
                "so its views are always equal; take a student of kind joint_encoder or expected_grade"
            )
        return objective
    if not hasattr(scorer, "prompts_of"):
        raise ConfigError(f"student {scorer.name!r} reads whole lists and cannot be trained; take kind joint_encoder or expected_grade")
    return objective if reads_views(objective) else with_consistency(objective, {"weight": 0.0, "views": 1})


def plan(objective: Any, settings: ViewSettings | None) -> LaidViews:
    """The views of a run: as the objective asks, changed by the run's settings."""
    laid: LaidViews = objective.laid
    settings = settings or ViewSettings()
    count = settings.count or laid.count
    if laid.student is not None and count <= laid.student:
        raise ConfigError(
            f"views.count is {count}; objective {objective.name!r} needs at least {laid.student + 1}, the last for its moving average"
        )
    weighed = getattr(objective.settings, "consistency", objective.settings)
    if laid.student is None and laid.count > 1 and count < 2 and getattr(weighed, "form", None) and weighed.weight:
        raise ConfigError(f"views.count is 1, and one view cannot disagree with itself; objective {objective.name!r} needs at least 2")
    kinds = cast(Any, settings.kind or laid.kinds)
    return replace(laid, count=count, kinds=kinds, markers=settings.markers or laid.markers)


def lay(
    example: RankingExample, laid: LaidViews, *, seed: int, epoch: int, windows: str | None, own_windows: str | None = None
) -> list[Presentation]:
    """The presentations of one list in one epoch.

    windows: the rule that a view follows; None leaves it to the scorer, whose rule is `own_windows` (`within` must know it).
    """
    out = []
    for view in range(laid.count):
        kind = laid.kinds[min(view, len(laid.kinds) - 1)]
        own = seeds.digest(seed, "view", example.id, epoch, view) >> 1
        scheme = laid.markers[int(seeds.stream(own, "marker scheme").integers(len(laid.markers)))] if laid.markers else None
        drawn = presentations(example, 1, seed=own, kind=kind, windows=windows or own_windows, markers=scheme)[0]
        out.append(replace(drawn, windows=windows))
    return out


@dataclass(frozen=True)
class LaidPrompt:
    """One encoded prompt of one view of a list."""

    encoded: Any
    view: int
    places: tuple[int, ...]

    @property
    def ids(self) -> Sequence[int]:
        """Its tokens."""
        return self.encoded.ids


class ViewCollator(Collator):
    """As `Collator`, with P views of every list."""

    def __init__(
        self, scorer: Any, objective: Any, data: TrainingLists, *, settings: TrainSettings, tokens_per_forward: int, laid: LaidViews
    ):
        super().__init__(scorer, objective, data, settings=settings, tokens_per_forward=tokens_per_forward)
        self.laid = laid
        self.windows = settings.views.windows if settings.views is not None else None
        self._seen: dict[int, tuple[int, int, int]] = {}
        self.weights_S = self._slot_weights() if "weights_BPK" in objective.needs else None

    def presentations_of(self, index: int, epoch: int) -> list[Presentation]:
        """How a list is laid in an epoch."""
        example, own = self.data.examples[index], getattr(self.scorer, "windows", None)
        return lay(example, self.laid, seed=self.settings.seed, epoch=epoch, windows=self.windows, own_windows=own)

    def encoded(self, draws: Sequence[Draw]) -> list[list[LaidPrompt]]:
        shown = [
            [
                (view, prompt)
                for view, presentation in enumerate(self.presentations_of(draw.index, draw.epoch))
                for prompt in self.scorer.prompts_of(self.data.examples[draw.index], presentation)
            ]
            for draw in draws
        ]
        found = iter(self.scorer.encode_prompts([prompt for prompts in shown for _, prompt in prompts]))
        rows = [[LaidPrompt(next(found), view, tuple(prompt.places)) for view, prompt in prompts] for prompts in shown]
        for draw, row in zip(draws, rows, strict=True):
            self._note(draw.index, row)
        return rows

    def arranged(self, sizes: Sequence[int]) -> list[int]:
        # prompts of a part are padded to the longest, so lists of a size go together; a step's loss is a sum and does not mind
        return sorted(range(len(sizes)), key=lambda place: (-sizes[place], place))

    @property
    def counts(self) -> dict[str, int]:
        """Of the lists drawn so far, as their first draw was laid: documents cut, queries cut, candidates that no prompt shows."""
        cut, queries, hidden = (sum(column) for column in zip(*self._seen.values(), strict=True)) if self._seen else (0, 0, 0)
        return {"truncated_documents": cut, "truncated_queries": queries, "candidates_not_shown": hidden}

    def _note(self, index: int, row: Sequence[LaidPrompt]) -> None:
        if index in self._seen:
            return
        first = [item for item in row if item.view == 0]
        cut = {item.places[slot] for item in first for slot in item.encoded.truncated}
        shown = {place for item in first for place in item.places}
        hidden = len(self.data.examples[index].candidates) - len(shown)
        self._seen[index] = (len(cut), any(getattr(item.encoded, "truncated_query", False) for item in first), hidden)

    def part(self, draws: Sequence[Draw], encoded: Sequence[list[LaidPrompt]]) -> Part:
        """The tensors of one part: prompts of the student's views, of the shadow's, and where each slot's score belongs."""
        rows = [self.data.targets[draw.index] for draw in draws]
        targets_BK, mask_BK = lists.pack(rows)
        anchor_BK = lists.pack([self.data.anchors[draw.index] for draw in draws])[0] if self.data.anchors is not None else None
        mask_BK = mask_BK & _shown(encoded, mask_BK.shape)
        counted_BK = mask_BK & self._counted(draws, targets_BK, mask_BK)[:, None]
        own, other = self._split()
        part = {
            **self._laid_out(encoded, own, mask_BK.shape[1]),
            "targets_BK": targets_BK,
            "anchor_BK": anchor_BK,
            "mask_BK": counted_BK,
            "live_B": self.objective.live(targets_BK, counted_BK),
            "noise_BGK": self._noise(draws, rows, mask_BK.shape[1]),
            "weights_BPK": self._weights(draws, encoded, own, mask_BK.shape[1]) if self.weights_S is not None else None,
            "ids": [self.data.examples[draw.index].id for draw in draws],
        }
        if self.objective.shadow_decay is not None:
            part |= {f"shadow_{name}": value for name, value in self._laid_out(encoded, other, mask_BK.shape[1]).items()}
        return part

    def _split(self) -> tuple[range, range]:
        """(views of the student, views of the shadow)."""
        every = range(self.laid.count)
        return (every, every) if self.laid.student is None else (every[: self.laid.student], every[self.laid.student :])

    def _laid_out(self, encoded: Sequence[list[LaidPrompt]], views: range, width: int) -> dict[str, Any]:
        """Chunks of prompts, and of every slot its place in scores_BPK, flat."""
        flat = [item for row in encoded for item in row if item.view in views]
        index_N = [
            (number * len(views) + item.view - views.start) * width + place
            for number, row in enumerate(encoded)
            for item in row
            if item.view in views
            for place in item.places
        ]
        return {
            "chunks": [self.scorer.collate([item.encoded for item in group]) for group in self._chunks(flat)],
            "index_N": torch.tensor(index_N, dtype=torch.long),
            "shape": (len(encoded), len(views), width),
        }

    def _slot_weights(self) -> Tensor:
        """weights_S of debias_first: where relevant candidates stand in the presentations of the first epoch."""
        setting, counts = self.objective.settings, dict[int, int]()
        for index, targets in enumerate(self.data.targets):
            for places in self._slots(index, 0):
                for place, slot in places.items():
                    counts[slot] = counts.get(slot, 0) + (targets[place] >= setting.relevant)
        relevant_S = torch.tensor([float(counts.get(slot, 0)) for slot in range(max(counts, default=0) + 1)])
        limit = None if setting.paper_compat else setting.limit
        return slot_weights(relevant_S, smoothing=setting.smoothing, limit=limit).float()

    def _slots(self, index: int, epoch: int) -> list[dict[int, int]]:
        """Of each view whose slots weigh, candidate -> slot."""
        example = self.data.examples[index]
        laid = [Presentation(windows=self.windows)] if self.objective.slot == "first_stage" else self.presentations_of(index, epoch)
        return [_slot_of([prompt.places for prompt in self.scorer.prompts_of(example, one)]) for one in laid]

    def _weights(self, draws: Sequence[Draw], encoded: Sequence[list[LaidPrompt]], views: range, width: int) -> Tensor:
        """weights_BPK of each candidate's slot; a slot beyond those of the first epoch weighs as the last one."""
        assert self.weights_S is not None
        weights_BPK = torch.zeros(len(encoded), len(views), width)
        for number, (draw, row) in enumerate(zip(draws, encoded, strict=True)):
            first = self._slots(draw.index, draw.epoch)[0] if self.objective.slot == "first_stage" else None
            for view in views:
                slots = first or _slot_of([item.places for item in row if item.view == view])
                for place, slot in slots.items():
                    weights_BPK[number, view - views.start, place] = self.weights_S[min(slot, len(self.weights_S) - 1)]
        return weights_BPK


def scatter(values_N: Tensor, index_N: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """values_BPK (or values_BPKG, where a slot holds G numbers): the mean of what each candidate got, zeros where it got nothing."""
    flat = shape[0] * shape[1] * shape[2]
    counts = torch.zeros(flat, dtype=values_N.dtype, device=values_N.device).index_add_(
        0, index_N, torch.ones_like(index_N, dtype=values_N.dtype)
    )
    summed = torch.zeros((flat, *values_N.shape[1:]), dtype=values_N.dtype, device=values_N.device).index_add(0, index_N, values_N)
    return (summed / counts.clamp(min=1).view(-1, *[1] * (values_N.dim() - 1))).view(*shape, *values_N.shape[1:])


def _shown(encoded: Sequence[list[LaidPrompt]], shape: Sequence[int]) -> Tensor:
    """shown_BK: candidates that stand in any prompt."""
    shown_BK = torch.zeros(tuple(shape), dtype=torch.bool)
    for number, row in enumerate(encoded):
        for item in row:
            shown_BK[number, list(item.places)] = True
    return shown_BK


def _slot_of(prompts: Sequence[Sequence[int]]) -> dict[int, int]:
    """candidate -> slot of the first prompt that shows it."""
    out: dict[int, int] = {}
    for places in prompts:
        for slot, place in enumerate(places):
            out.setdefault(place, slot)
    return out


def describe_views(laid: LaidViews, settings: ViewSettings | None) -> dict[str, Any]:
    """What a run writes about its views."""
    own = settings or ViewSettings()
    return {
        "count": laid.count,
        "kinds": list(laid.kinds),
        "markers": list(laid.markers),
        "windows": own.windows,
        "dev_presentations": own.dev_presentations,
    }

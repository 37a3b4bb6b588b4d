"""What the second act trains, and how much of everything: its arms and its sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from steadyrank.errors import unknown_name


@dataclass(frozen=True, slots=True)
class Arm:
    """One row of the table. `preset` trains it; without one it is the start, or with `of` the runs of another arm, wrapped by `serve`."""

    name: str
    label: str
    preset: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    of: str | None = None
    serve: Mapping[str, Any] = field(default_factory=dict)
    presentations: int | None = None  # of every audited list, where an arm is dear to serve; the means it is read by do not depend on it


SINGLE = Arm("single_order", "Trained in one order", "single_order")
AUGMENTED = Arm("augmentation", "Permutation augmentation", "permutation_augmentation", {"views": {"count": 2}})
STEADY = Arm("oc_sft", "OC-SFT", "oc_sft")
START = Arm("start", "Before training")
ALL = (
    START,
    SINGLE,
    Arm("order_averaged", "Order-averaged labels", "order_averaged"),
    AUGMENTED,
    Arm("debias_first", "DebiasFirst", "debias_first"),
    Arm("mean_teacher", "Mean teacher", "mean_teacher"),
    STEADY,
    Arm("own_attention", "One order, no attention across candidates", "single_order", {"student": {"options": {"across": "own"}}}),
    Arm(
        "single_order_x10",
        "Trained in one order, served as the mean of 10",
        of="single_order",
        serve={"kind": "order_averaged", "k": 10},
        presentations=3,
    ),
    Arm("grpo", "GRPO (a3)", "a3"),
    Arm("grpo_steady", "GRPO with consistency (ours)", "a3_steady"),
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything."""

    warm_lists: int
    lists: int
    dev_lists: int  # on which thresholds are chosen
    watched_lists: int  # of them, scored during training
    eval_lists: int  # of each split
    candidates: int  # of every list, and of one prompt
    presentations: int
    max_length: int
    rate: float
    arms: tuple[Arm, ...]
    splits: tuple[str, ...] = ("test",)
    seeds: tuple[int, ...] = (0,)
    consistency: tuple[float, ...] = (3.0,)  # lambda, in the pairwise form; of several, the one chosen on dev lists
    family: str = "joint_encoder"  # the kind of scorer that is trained
    model: str = "teacher"  # what it is made from: a cross-encoder, of which `layers` are kept, or a language model
    layers: tuple[int, ...] | None = (0, 2, 4, 7, 9, 11)
    lora: Mapping[str, Any] | None = None
    warm_rate: float = 1e-4
    data: str = "packaged:{}"  # where a split comes from


QUICK = Sizes(
    warm_lists=256, lists=160, dev_lists=32, watched_lists=12, eval_lists=48, candidates=6, presentations=8, max_length=448,
    rate=1e-4, arms=(SINGLE, STEADY),
)  # fmt: skip
FULL = Sizes(
    warm_lists=2000, lists=800, dev_lists=60, watched_lists=60, eval_lists=200, candidates=6, presentations=10, max_length=512,
    rate=1e-4, arms=ALL, splits=("test", "shifted"), seeds=(0, 1, 2),
    consistency=(3.0, 1.0, 10.0),
)  # fmt: skip

LANGUAGE_MODEL = Sizes(
    warm_lists=300, lists=1000, dev_lists=60, watched_lists=8, eval_lists=200, candidates=8, presentations=10, max_length=1280,
    rate=2e-4, arms=(START, SINGLE, STEADY), family="expected_grade", model="smollm2", layers=None,
    lora={"r": 16, "alpha": 32.0}, warm_rate=2e-4,
)  # fmt: skip
SIZES = {"quick": QUICK, "full": FULL, "language_model": LANGUAGE_MODEL}


def sizes_of(name: str, *, lists: int | None = None, eval_lists: int | None = None) -> Sizes:
    """The sizes of this name, with another number of training lists of every arm, or of audited lists of a split."""
    if name not in SIZES:
        raise unknown_name("size of the second act", name, SIZES)
    sizes = SIZES[name] if lists is None else replace(SIZES[name], lists=lists)
    return replace(sizes, eval_lists=eval_lists) if eval_lists is not None else sizes

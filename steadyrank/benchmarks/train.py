"""Training: ours against sentence-transformers' `CrossEncoderTrainer`, the same model, lists, dtype and loss family (ListMLE), end to end.

Both sides get the same lists a step, one pass, no evaluation and no checkpoint; loading the model is outside the clock.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from steadyrank import objectives
from steadyrank.benchmarks.timing import BenchResult, interleave, ratio
from steadyrank.data.models import fetch
from steadyrank.data.selecting import choose, examples_of
from steadyrank.names import require
from steadyrank.records import RankingExample
from steadyrank.scoring.cross_encoder import CrossEncoder as OurCrossEncoder

LISTS_PER_STEP = 8
MODEL = "minilm-warm"
MAX_LENGTH = 256


def run(*, lists: int = 48, rounds: int = 3, precisions: tuple[str, ...] = ("fp32", "bf16"), seed: int = 0) -> list[BenchResult]:
    """One result a dtype, on lists of the packaged training split (mixed lengths)."""
    examples = choose(examples_of("packaged:train"), lists, seed=seed)
    return [_one(examples, rounds, precision) for precision in precisions]


def _one(examples: Sequence[RankingExample], rounds: int, precision: str) -> BenchResult:
    import torch

    require("sentence_transformers", "the benchmark")
    folder = str(fetch(MODEL))
    with tempfile.TemporaryDirectory() as scratch:
        contestants = {
            "steadyrank": _ours(folder, examples, precision, Path(scratch)),
            "CrossEncoderTrainer": _theirs(folder, examples, precision, Path(scratch)),
        }
        timings = interleave(contestants, rounds=rounds)
    pairs = sum(len(example.candidates) for example in examples)
    setting = {
        "lists": len(examples), "lists a step": LISTS_PER_STEP, "pairs": pairs, "loss": "ListMLE", "model": "6 layers",
        "dtype": precision, "threads": torch.get_num_threads(), "rounds": rounds,
    }  # fmt: skip
    ratios = (ratio(timings["steadyrank"], timings["CrossEncoderTrainer"]),)
    return BenchResult("training", setting, tuple(timings.values()), ratios, {}, "pairs", pairs)


def _ours(folder: str, examples: Sequence[RankingExample], precision: str, scratch: Path) -> Callable[[], None]:
    from steadyrank.training.run import train
    from steadyrank.training.settings import TrainSettings

    settings = TrainSettings(
        lists_per_step=LISTS_PER_STEP, precision=precision, tensorboard=False, eval_every=10**6, save_every=10**6, warmup_ratio=0.0
    )
    student = OurCrossEncoder.load(folder, max_length=MAX_LENGTH, precision=precision)
    grades = [list(example.relevance or ()) for example in examples]

    def work() -> None:
        train(
            settings, student=student, objective=objectives.build("list_mle"), train=examples, teacher_scores=grades,
            output=scratch / "ours", resume=False, say=lambda text: None,
        )  # fmt: skip

    return work


def _theirs(folder: str, examples: Sequence[RankingExample], precision: str, scratch: Path) -> Callable[[], None]:
    from datasets import Dataset
    from sentence_transformers import CrossEncoder
    from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
    from sentence_transformers.cross_encoder.losses import ListMLELoss

    model = CrossEncoder(folder, max_length=MAX_LENGTH, device="cpu")
    ours = OurCrossEncoder.load(folder, max_length=MAX_LENGTH)
    data = Dataset.from_dict(
        {
            "query": [ours.render_query(example.query, example.instruction) for example in examples],
            "docs": [example.documents for example in examples],
            "labels": [list(example.relevance or ()) for example in examples],
        }
    )

    def work() -> None:
        folder = scratch / "theirs"
        arguments = CrossEncoderTrainingArguments(
            output_dir=str(folder), num_train_epochs=1, per_device_train_batch_size=LISTS_PER_STEP, learning_rate=2e-5,
            bf16=precision == "bf16", use_cpu=True, save_strategy="no", logging_strategy="no", report_to="none", disable_tqdm=True,
        )  # fmt: skip
        CrossEncoderTrainer(model=model, args=arguments, train_dataset=data, loss=ListMLELoss(model)).train()
        shutil.rmtree(folder, ignore_errors=True)

    return work

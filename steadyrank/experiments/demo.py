"""The main job, end to end, on packaged data and models.

packaged lists -> teacher strengthened by Stage 1 -> its scores cached -> compact students distilled -> all of them scored in-domain and
shifted beside the references -> compared -> report -> the first student audited, which reads one pair at a time and must come out exactly
steady. The quick sizes end within minutes on two cores; the full ones take hours.
Judge grades are the grades of the data here. Every run resumes where it was killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steadyrank.audit import run_audit
from steadyrank.config import preset_recipe
from steadyrank.data.selecting import choose, examples_of
from steadyrank.evaluation import Evaluation
from steadyrank.experiments.recipes import run_recipe
from steadyrank.experiments.study import HEADLINE, REFERENCES, Study, System
from steadyrank.files import file_digest
from steadyrank.records import RankingExample
from steadyrank.reports import write_report
from steadyrank.reports.card import write_card
from steadyrank.scoring import load_scorer

Say = Callable[[str], None]
STUDENT_LAYERS = [0, 2, 4, 7, 9, 11]  # of the teacher's twelve: the student starts as a weak reranker, as the paper's does
LISTS_PER_STEP = 16
EVALUATIONS = 4  # on dev, over a run
SPLITS = {"test": "In-domain", "shifted": "Shifted"}
LABELS = {
    "a1": "Student, offline listwise KD (a1)",
    "a3": "Student, on-policy distillation (a3)",
    "a7": "Student, supervised on gold (a7)",
    "a10": "Student, RankNet KD (a10)",
    "exact": "Student, exact expectation (exact)",
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything; lists are those of the packaged collection."""

    stage1_lists: int
    stage2_lists: int
    eval_lists: int  # per split
    dev_lists: int
    candidates: int  # per training list; evaluation uses whole lists
    max_length: int  # tokens of a pair
    stage1_rate: float
    stage2_rate: float
    arms: tuple[tuple[str, int], ...]  # (preset, seed) of every student


QUICK = Sizes(
    stage1_lists=208,
    stage2_lists=256,
    eval_lists=72,
    dev_lists=24,
    candidates=6,
    max_length=160,
    stage1_rate=1e-4,
    stage2_rate=1e-4,
    arms=(("a3", 0),),
)
FULL = Sizes(
    stage1_lists=2000, stage2_lists=2000, eval_lists=300, dev_lists=60, candidates=6, max_length=160, stage1_rate=1e-4, stage2_rate=1e-4,
    arms=(("a3", 0), ("exact", 0), ("a1", 0), ("a10", 0), ("a7", 0), ("a3", 1), ("exact", 1), ("a1", 1)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DemoResult:
    """Where the report is, the headline numbers, and how long it took."""

    report: Path
    seconds: float
    means: dict[str, dict[str, float]]
    audited: str  # the audit's sentence on the first student
    card: Path

    def to_json(self) -> dict[str, Any]:
        return {
            "report": str(self.report), "seconds": round(self.seconds, 1), "measure": HEADLINE, "means": self.means,
            "audited": self.audited, "card": str(self.card),
        }  # fmt: skip

    def lines(self) -> list[str]:
        width = max(len(name) for name in self.means)
        head = f"{HEADLINE:<{width}}  " + "  ".join(f"{label:>10}" for label in SPLITS.values())
        rows = [f"{name:<{width}}  " + "  ".join(f"{values[split]:>10.3f}" for split in SPLITS) for name, values in self.means.items()]
        audited = f"audit of the student: {self.audited} (card in {self.card})"
        return [head, *rows, "", audited, f"{self.seconds / 60:.1f} minutes; report in {self.report}"]


def sizes_of(*, full: bool = False, lists: int | None = None, eval_lists: int | None = None) -> Sizes:
    """The quick or the full sizes, with another number of training lists (of either stage) or of evaluated lists (of either split)."""
    sizes = FULL if full else QUICK
    if lists is not None:
        sizes = replace(sizes, stage1_lists=lists, stage2_lists=lists)
    return replace(sizes, eval_lists=eval_lists) if eval_lists is not None else sizes


def run_demo(output: Path, sizes: Sizes = QUICK, *, seed: int = 0, say: Say = print) -> DemoResult:
    """Do the whole job into `output`; what is there already is not done again."""
    started = time.monotonic()
    say("packaged data and models (built once, then kept in the cache)")
    splits = {
        name: (label, choose(examples_of(f"packaged:{name}"), sizes.eval_lists, seed=seed, balanced=True)) for name, label in SPLITS.items()
    }
    teacher = _stage_one(output, sizes, seed, say)
    students = {_arm(preset, arm_seed): _stage_two(output, sizes, preset, arm_seed, teacher, say) for preset, arm_seed in sizes.arms}
    study = _study(output, sizes, splits, teacher, students, seed, say)
    evaluations = study.run()
    report = write_report(output)
    audited, card = _audit(output, sizes, next(iter(students.values())), splits["test"][1], seed, say)
    return DemoResult(report, time.monotonic() - started, _means(study.systems, evaluations), audited, card)


def _options(sizes: Sizes) -> dict[str, Any]:
    return {"max_length": sizes.max_length}


def _common(sizes: Sizes, run: Path, seed: int, *, lists: int, rate: float) -> dict[str, Any]:
    """The fields that the recipes of both stages share."""
    steps = -(-lists // LISTS_PER_STEP)
    return {
        "output": str(run),
        "seed": seed,
        "data": {
            "train": "packaged:train", "dev": "packaged:valid", "dev_limit": sizes.dev_lists,
            "limit": lists, "max_candidates": sizes.candidates,
        },
        "training": {"learning_rate": rate, "lists_per_step": LISTS_PER_STEP, "eval_every": -(-steps // EVALUATIONS)},
    }  # fmt: skip


def _stage_one(output: Path, sizes: Sizes, seed: int, say: Say) -> Path:
    say("Stage 1: the teacher draws rankings and is paid by the grades")
    run = output / "runs" / "stage1"
    # Grades are per document, so a ranking costs nothing: more of them than the paper's 8 mean less noise in the gradient.
    fields = {"student": {"options": _options(sizes)}, "objective_settings": {"num_samples": 32}}
    run_recipe(preset_recipe("stage1", fields | _common(sizes, run, seed, lists=sizes.stage1_lists, rate=sizes.stage1_rate)), say=say)
    return run / "final"


def _arm(preset: str, seed: int) -> str:
    return preset if seed == 0 else f"{preset}-seed{seed}"


def _stage_two(output: Path, sizes: Sizes, preset: str, seed: int, teacher: Path, say: Say) -> Path:
    say(f"Stage 2: the student, {preset}, seed {seed}")
    run = output / "runs" / _arm(preset, seed)
    fields: dict[str, Any] = {"student": {"options": {**_options(sizes), "layers": STUDENT_LAYERS}}}
    if preset != "a7":  # the supervised control has no teacher
        fields["teacher"] = {"model": str(teacher), "options": _options(sizes)}
    run_recipe(preset_recipe(preset, fields | _common(sizes, run, seed, lists=sizes.stage2_lists, rate=sizes.stage2_rate)), say=say)
    return run / "final"


def _study(output: Path, sizes: Sizes, splits: Any, teacher: Path, students: dict[str, Path], seed: int, say: Say) -> Study:
    options = _options(sizes)

    def opener(spec: str, **more: Any) -> Callable[[], Any]:
        return lambda: load_scorer(spec, **options, **more)

    def trained(name: str, label: str, role: str, folder: Path) -> System:
        return System(name, label, role, opener(str(folder)), identity=file_digest(folder / "model.safetensors"))

    systems = [
        System("bm25", "BM25", "baseline", lambda: load_scorer("bm25")),
        System("teacher-start", "Teacher before Stage 1", "start", opener("teacher"), identity=str(options)),
        System("student-start", "Student before distillation", "start", opener("teacher", layers=STUDENT_LAYERS), identity=str(options)),
        trained("teacher", "Teacher after Stage 1", "teacher", teacher),
        *(trained(name, _label(name), "student", folder) for name, folder in students.items()),
    ]
    first = next(iter(students))
    pairs = [("teacher", "teacher-start"), ("teacher", "bm25")]
    pairs += [(name, other) for name in students for other in ("student-start", "bm25")]
    pairs += [(first, name) for name in students if name != first] + [(first, "teacher")]
    runs = [{"name": "stage1", "label": "Teacher, Stage 1", "dir": "runs/stage1"}]
    runs += [{"name": name, "label": _label(name), "dir": f"runs/{name}"} for name in students]
    return Study(
        folder=output,
        title="A compact reranker, distilled on instruction-following lists",
        subtitle="The teacher is strengthened by GRPO on grades; the student draws its own rankings and is paid by the teacher.",
        splits=splits, systems=systems, pairs=pairs, flips=(first, "student-start"), seed=seed, runs=runs, say=say,
        settings={name: getattr(sizes, name) for name in Sizes.__slots__},
        notes=[
            "Stage 1 is paid by the grades of the training lists; no LLM judge is used here.",
            "All models are the final checkpoints of their runs.",
            "In-domain lists come from the families trained on; queries are disjoint, documents of the closed catalogues recur. "
            "Shifted lists come from families never trained on.",
        ],
    )  # fmt: skip


def _audit(output: Path, sizes: Sizes, student: Path, lists: Sequence[RankingExample], seed: int, say: Say) -> tuple[str, Path]:
    """What the audit says of the student, and its card; the threshold is chosen on validation lists."""
    say("audit of the student: every list in ten orders")
    dev = choose(examples_of("packaged:valid"), sizes.dev_lists, seed=seed, balanced=True)
    scorer = load_scorer(str(student), **_options(sizes))
    folder = output / "audit"
    found = run_audit(scorer, lists, dev=dev, seed=seed, name="Student", scores_path=folder / "scores.jsonl")
    found.write(folder / "audit.json")
    card = write_card([found.to_json()], folder / "card.html", png=folder / "card.png")[0]
    return found.verdict["headline"], card


def _label(name: str) -> str:
    preset, _, seed = name.partition("-seed")
    return LABELS.get(preset, f"Student, {preset}") + (f", seed {seed}" if seed else "")


def _means(systems: Any, evaluations: dict[str, dict[str, Evaluation]]) -> dict[str, dict[str, float]]:
    labels = REFERENCES | {system.name: system.label for system in systems}
    return {
        label: {split: evaluations[split][name].measures[HEADLINE]["micro"]["mean"] for split in SPLITS} for name, label in labels.items()
    }

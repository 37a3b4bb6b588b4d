"""A synthetic study folder: made-up numbers in the shape that a study writes, to build and test the report without a run.

Nothing here is a measurement. `write_study` makes the whole folder; tests then delete or break single files.
"""

import json
import math
import zlib
from pathlib import Path

import numpy as np

MEASURES = ("nDCG(gain=exp)@6", "nDCG@6", "RR@6")
SPLITS = {"test": "In-domain", "shifted": "Shifted"}
SOURCES = {
    "test": ("cwe/specific", "cwe/general", "attack/tactic", "attack/group", "tools/task", "tools/parameters"),
    "shifted": ("icd/code", "icd/chapter", "scholar/cites", "scholar/method"),
}
SYSTEMS = [  # name, label, role, in-domain mean, shifted mean
    ("random", "Random order", "reference", 0.352, 0.341),
    ("constant", "Constant score", "reference", 0.349, 0.345),
    ("first_stage", "Order of the file", "reference", 0.355, 0.338),
    ("oracle", "Oracle", "reference", 1.0, 1.0),
    ("bm25", "BM25", "baseline", 0.521, 0.498),
    ("teacher-start", "Teacher before Stage 1", "start", 0.598, 0.571),
    ("student-start", "Student before distillation", "start", 0.486, 0.462),
    ("teacher", "Teacher after Stage 1", "teacher", 0.694, 0.612),
    ("a3", "Student, on-policy distillation (a3)", "student", 0.641, 0.561),
    ("exact", "Student, exact expectation (exact)", "student", 0.652, 0.558),
    ("a1", "Student, offline listwise KD (a1)", "student", 0.633, 0.566),
    ("a7", "Student, supervised on gold (a7)", "student", 0.612, 0.455),
]
PAIRS = [
    ("teacher", "teacher-start"),
    ("teacher", "bm25"),
    ("a3", "student-start"),
    ("a3", "bm25"),
    ("exact", "student-start"),
    ("exact", "bm25"),
    ("a1", "student-start"),
    ("a1", "bm25"),
    ("a7", "student-start"),
    ("a7", "bm25"),
    ("a3", "exact"),
    ("a3", "a1"),
    ("a3", "teacher"),
]
RUNS = [("stage1", "Teacher, Stage 1"), ("a3", "Student, on-policy distillation (a3)"), ("exact", "Student, exact expectation (exact)")]


def dump(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")


def write_study(folder: Path, *, seed: int = 0, systems: list = SYSTEMS, pairs: list = PAIRS, runs: list = RUNS) -> Path:
    """The whole folder; returns it."""
    rng = np.random.default_rng(seed)
    for split in SPLITS:
        for name, _, _, inside, outside in systems:
            mean = inside if split == "test" else outside
            dump(folder / "evaluations" / split / f"{name}.json", _evaluation(name, split, mean, rng))
        means = {name: inside if split == "test" else outside for name, _, _, inside, outside in systems}
        family = [_comparison(a, b, split, means[a] - means[b], rng) for a, b in pairs]
        dump(folder / "comparisons" / f"{split}.json", {"schema": "steadyrank.comparisons/1", "family": family})
        dump(folder / "flips" / f"{split}.json", _flips(split))
        paired = {name: _paired(name, means[name]) for name in means}
        dump(folder / "instructions" / f"{split}.json", {"schema": "steadyrank.instructions/1", "systems": paired})
    for name, _ in runs:
        _run(folder / "runs" / name, rng, is_teacher=name == "stage1")
    dump(folder / "study.json", _index(systems, runs))
    return folder


def _paired(name: str, mean: float) -> dict:
    parts = {"accuracy": 0.6, "each": 0.8, "preference": 0.7, "same_top": 0.3, "chance": 0.1}
    intervals = {part: _around(round(mean * share, 3), 0.06) for part, share in parts.items()}
    counts = {"unscored": 0, "ungrouped": 12}
    return {
        "schema": "steadyrank.instruction_pairs/1",
        "system": name,
        "pairs": 41,
        "groups": 20,
        **{part: value["mean"] for part, value in intervals.items()},
        "intervals": intervals,
        "by_source": {},
        "counts": counts,
    }


def _around(mean: float, half: float) -> dict:
    return {"mean": mean, "low": max(mean - half, 0.0), "high": min(mean + half, 1.0)}


def _evaluation(name: str, split: str, mean: float, rng: np.random.Generator) -> dict:
    half = 0.0 if mean == 1.0 else 0.021
    shift = {"nDCG(gain=exp)@6": 0.0, "nDCG@6": 0.018, "RR@6": 0.043}
    measures = {}
    for measure in MEASURES:
        value = min(mean + shift[measure], 1.0)
        measures[measure] = {
            "micro": _around(value, half),
            "macro": _around(min(value - 0.004 if half else 1.0, 1.0), half * 1.3),
            "ceiling": 1.0,
        }
        measures[measure]["by_source"] = {
            source: {"mean": float(np.clip(value + rng.normal(0, 0.05 if half else 0), 0, 1)), "n": 20 + 3 * place}
            for place, source in enumerate(SOURCES[split])
        }
    return {
        "schema": "steadyrank.evaluation/1",
        "system": name,
        "split": split,
        "measures": measures,
        "per_query": {},
        "groups": {},
        "sources": {},
        "counts": {
            "queries": 120,
            "missing": 1 if name == "bm25" else 0,
            "unjudged": 0,
            "ties_rate": 1.0 if name == "constant" else 0.002,
            "truncated_documents": 0 if name in ("random", "constant", "bm25") else 37,
            "empty_documents": 2,
        },
        "missing": ["cwe-0007"] if name == "bm25" else [],
        "fingerprints": {"scores": f"{zlib.crc32(f'{name}/{split}'.encode()):08x}"},
    }


def _comparison(a: str, b: str, split: str, difference: float, rng: np.random.Generator) -> dict:
    z = abs(difference) / 0.012
    p = math.erfc(z / math.sqrt(2))
    by_source = {}
    for source in SOURCES[split]:
        win, loss = int(rng.integers(4, 14)), int(rng.integers(2, 8))
        by_source[source] = {"win": win, "tie": 30 - win - loss, "loss": loss, "difference": float(difference + rng.normal(0, 0.05))}
    return {
        "schema": "steadyrank.comparison/1",
        "a": a,
        "b": b,
        "split": split,
        "measure": MEASURES[0],
        "difference": {"mean": difference, "low": difference - 0.024, "high": difference + 0.024},
        "nonzero": 88,
        "n": 120,
        "wilcoxon": {"two_sided": p, "greater": p / 2 if difference > 0 else 1 - p / 2},
        "holm": min(1.0, p * len(PAIRS)),
        "by_source": by_source,
    }


def _flips(split: str) -> dict:
    texts = [
        ("Stack-based buffer overflow in the header parser", 3.0),
        ("Improper restriction of operations within a memory buffer", 1.0),
        ("Out-of-bounds read", 0.0),
        ("Heap inspection of freed memory. " + "The weakness lets an attacker read stale secrets. " * 12, 2.0),
    ]
    examples = []
    for place in range(9):
        a, b = texts[place % 4], texts[(place + 1) % 4]
        examples.append(
            {
                "id": f"{split}-{place:04d}",
                "source": SOURCES[split][place % 4],
                "instruction": "Find the most specific entry that covers the weakness, not its parent." if place % 3 else None,
                "query": "A length field from the network is copied into a fixed-size array before it is checked",
                "a_top": {"text": a[0], "relevance": a[1], "score": 2.31 - place / 7},
                "b_top": {"text": b[0], "relevance": b[1], "score": 1.02},
            }
        )
    return {"schema": "steadyrank.flips/1", "a": "a3", "b": "student-start", "examples": examples}


def _run(folder: Path, rng: np.random.Generator, *, is_teacher: bool) -> None:
    steps = 75
    folder.mkdir(parents=True, exist_ok=True)
    rows, dev = [], []
    for step in range(1, steps + 1):
        t = step / steps
        rows.append(
            {
                "step": step,
                "lists": step * 4,
                "loss": 0.4 * math.exp(-2 * t) + rng.normal(0, 0.05),
                "learning_rate": 5e-5 * (1 - t),
                "grad_norm": 1.0,
                "reward": 0.45 + 0.25 * (1 - math.exp(-3 * t)) + rng.normal(0, 0.03),
                "policy_entropy": 2.0 - 0.9 * t + rng.normal(0, 0.04),
                "flat_groups": 0.02,
            }
        )
        if step % 15 == 0:
            dev.append({"step": step, "measures": {m: (0.58 if is_teacher else 0.5) + 0.12 * t + rng.normal(0, 0.008) for m in MEASURES}})
    for name, content in (("log.jsonl", rows), ("dev.jsonl", dev)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    dump(folder / "result.json", {"steps": steps, "seconds": 181.2, "peak_memory_mb": 1423, "stopped": "all steps done"})
    (folder / "config.yaml").write_text("preset: a3\n", encoding="utf-8")


def _index(systems: list, runs: list) -> dict:
    return {
        "schema": "steadyrank.study/1",
        "title": "Synthetic study: a compact reranker, distilled",
        "subtitle": "Every number here is made up, to show what the page looks like.",
        "created": "2026-01-01T00:00:00+00:00",
        "headline_measure": MEASURES[0],
        "systems": [{"name": n, "label": label, "role": role} for n, label, role, _, _ in systems],
        "splits": [{"name": name, "label": label} for name, label in SPLITS.items()],
        "runs": [{"name": name, "label": label, "dir": f"runs/{name}"} for name, label in runs],
        "settings": {"stage1_lists": 300, "stage2_lists": 400, "candidates": 8, "max_length": 160, "arms": [["a3", 0], ["exact", 0]]},
        "fingerprints": {"test": "0123456789abcdef", "shifted": "fedcba9876543210"},
        "environment": {"python": "3.11.2", "system": "Linux x86_64", "torch": "2.13.0", "transformers": "5.24.0"},
        "notes": [
            "Stage 1 is paid by the grades of the training lists; no LLM judge is used here.",
            "All models are the final checkpoints.",
        ],
        "data": {
            split: {"lists": 120, "candidates": 1440, "by_source": {source: 20 + i for i, source in enumerate(SOURCES[split])}}
            for split in SPLITS
        },
    }

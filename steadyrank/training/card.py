"""The model card of a trained reranker, written from what the run knows and nothing else."""

from __future__ import annotations

from typing import Any

import yaml

from steadyrank.training.result import TrainResult

_LOAD = """```python
from steadyrank import load_scorer

scorer = load_scorer("FOLDER")
scorer.rank("query", ["one document", "another"], instruction="what counts as relevant")
```
"""
_SUMMARY = "Scores documents for a query; higher is better. Scores are raw logits: compare them within one query."
_LISTS = (
    "Grades several documents at once for a query; higher is better. Scores lie in [0, 1] and may move with the order of the documents: "
    "`steadyrank audit` measures how far."
)
_CROSS_ENCODER = """
It is a sequence-classification model with one logit, so these load it too and give the same raw logits. The first text of the pair
is the query with its instruction, written as the student's template says (below).

```python
from transformers import AutoModelForSequenceClassification, AutoTokenizer

model, tokenizer = AutoModelForSequenceClassification.from_pretrained("FOLDER"), AutoTokenizer.from_pretrained("FOLDER")
model(**tokenizer(["query"], ["document"], truncation=True, return_tensors="pt")).logits

from sentence_transformers import CrossEncoder

CrossEncoder("FOLDER").predict([("query", "document")])
```
"""


def render(
    result: TrainResult,
    *,
    student: Any,
    settings: dict[str, Any],
    objective: dict[str, Any],
    data: dict[str, Any],
    differences: dict[str, float],
    describe: dict[str, Any],
) -> str:
    """README.md of a model folder."""
    is_cross_encoder = type(getattr(student, "model", None)).__name__.endswith("ForSequenceClassification")
    licence = describe.get("licence")
    head = {"library_name": "transformers", "pipeline_tag": "text-ranking", "tags": ["reranker", "cross-encoder", "steadyrank"]}
    if licence:
        head["license"] = licence
    title = describe.get("title") or f"Reranker trained with {result.objective}"
    parts = [
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n# {title}\n",
        f"{describe.get('summary', _LISTS if getattr(student, 'reads_lists', False) else _SUMMARY)}\n",
        "## Measured on the dev lists\n\n" + _measures(result),
        "## How to load it\n\n" + _LOAD + (_CROSS_ENCODER if is_cross_encoder else ""),
        "## Training\n\n"
        + _bullets(
            {
                "start": describe.get("student", getattr(student, "name", "unknown")),
                "teacher": describe.get("teacher"),
                "objective": result.objective,
                "steps": result.steps,
                "lists seen": result.lists_seen,
                "number format": result.precision,
                "saved model against the trained one": ", ".join(f"{name} {value:.1e}" for name, value in differences.items()) or None,
            }
        ),
        "Objective settings:\n\n" + _block(objective),
        "Training settings:\n\n" + _block(settings),
        "## Data\n\n" + _block(data) + _licence_of_data(describe),
        "## Limits\n\n" + _limits(result),
    ]
    return "\n".join(parts)


def _measures(result: TrainResult) -> str:
    if not result.dev_final:
        return "No dev set was given, so nothing was measured and no best step could be chosen.\n"
    rows = ["| measure | before training | best step | final step |", "| --- | --- | --- | --- |"]
    for name in result.dev_final:
        seen = (result.dev_start, result.dev_best, result.dev_final)
        cells = [f"{values[name]:.4f}" if name in values else "not measured" for values in seen]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    chosen = (
        f"\n`best/` is step {result.best_step}, chosen by {result.best_measure} on these lists, so its number is flattering; "
        "judge it on a test split.\n"
    )
    return "\n".join(rows) + "\n" + chosen


def _bullets(values: dict[str, Any]) -> str:
    return "".join(f"- {name}: {value}\n" for name, value in values.items() if value is not None)


def _block(values: dict[str, Any]) -> str:
    return f"```yaml\n{yaml.safe_dump(values, sort_keys=False, allow_unicode=True)}```\n"


def _licence_of_data(describe: dict[str, Any]) -> str:
    licences = describe.get("data_licences")
    unknown = "The licences of the data and of the starting model apply; they were not given to this run."
    return f"\nLicences of the data: {licences}\n" if licences else f"\n{unknown}\n"


def _limits(result: TrainResult) -> str:
    lines = [f"- {text}" for text in result.warnings] or ["- No warning was raised during training."]
    lines.append("- Intervals, paired tests and reference rows are not part of a card: `steadyrank evaluate` gives them.")
    return "\n".join(lines) + "\n"

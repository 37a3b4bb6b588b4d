"""How good is a ranking, and how sure are we: measures, tie rules, intervals, paired tests, instruction tests, references.

The names load on use; importing this room imports neither scipy nor ir-measures nor torch. See docs/evaluation.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steadyrank.names import find

DEFAULT_MEASURES = ("nDCG(gain=exp)@6", "nDCG@6", "RR@6")

_NAMES = {
    "Measure": "steadyrank.evaluation.measures:Measure",
    "evaluate": "steadyrank.evaluation.running:evaluate",
    "compare": "steadyrank.evaluation.comparing:compare",
    "compare_family": "steadyrank.evaluation.comparing:compare_family",
    "Evaluation": "steadyrank.evaluation.results:Evaluation",
    "Comparison": "steadyrank.evaluation.results:Comparison",
    "instruction_pairs": "steadyrank.evaluation.instructions:instruction_pairs",
    "InstructionPairs": "steadyrank.evaluation.instructions:InstructionPairs",
    "p_mrr": "steadyrank.evaluation.instructions:p_mrr",
    "robustness": "steadyrank.evaluation.instructions:robustness",
    "find_flips": "steadyrank.evaluation.flipping:find_flips",
    "flips": "steadyrank.evaluation.flipping:find_flips",
    "reference_rows": "steadyrank.evaluation.references:reference_rows",
    "intervals": "steadyrank.evaluation.bootstrap:intervals",
    "wilcoxon": "steadyrank.evaluation.paired:wilcoxon",
    "holm": "steadyrank.evaluation.paired:holm",
}
__all__ = [
    "DEFAULT_MEASURES",
    "Comparison",
    "Evaluation",
    "InstructionPairs",
    "Measure",
    "compare",
    "compare_family",
    "evaluate",
    "find_flips",
    "flips",
    "holm",
    "instruction_pairs",
    "intervals",
    "p_mrr",
    "reference_rows",
    "robustness",
    "wilcoxon",
]

if TYPE_CHECKING:
    from steadyrank.evaluation.bootstrap import intervals
    from steadyrank.evaluation.comparing import compare, compare_family
    from steadyrank.evaluation.flipping import find_flips
    from steadyrank.evaluation.flipping import find_flips as flips
    from steadyrank.evaluation.instructions import InstructionPairs, instruction_pairs, p_mrr, robustness
    from steadyrank.evaluation.measures import Measure
    from steadyrank.evaluation.paired import holm, wilcoxon
    from steadyrank.evaluation.references import reference_rows
    from steadyrank.evaluation.results import Comparison, Evaluation
    from steadyrank.evaluation.running import evaluate


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return find("name of steadyrank.evaluation", name, _NAMES)
    raise AttributeError(f"module 'steadyrank.evaluation' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""Can a judge be trusted? Agreement of judges with a reference, with each other and with themselves, and a verdict in words.

    found = judge_agreement(examples, {"judge": load_judgments("judge.jsonl")})
    found.verdicts["judge"]["headline"]

docs/agreement.md defines every statistic and the rules of the verdict.
"""

from __future__ import annotations

from steadyrank.judging.agreement.compare import AgreementSettings
from steadyrank.judging.agreement.judges import judge_agreement
from steadyrank.judging.agreement.record import Agreement
from steadyrank.judging.agreement.swap import Swap, load_swaps

__all__ = ["Agreement", "AgreementSettings", "Swap", "judge_agreement", "load_swaps"]

"""The audit: what happens to a scorer's decisions when only the presentation of a list changes.

    audit = run_audit("teacher", examples, presentations=10)
    audit.write("audit.json")
    differences(audit.per_list, other.per_list)      # of two scorers on the same lists, list by list

`running` scores every list under the same presentations for quality and for steadiness and puts the parts together; `parts` and `deciding`
compute them, `probing` asks the scorer again (pool, batches), `verdict` says in words what came out. Draws nothing: the card is
`steadyrank.reports.card`. Importing this room imports neither torch nor a model. See docs/audit.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steadyrank.names import find

_NAMES = {
    "Audit": "steadyrank.audit.record:Audit",
    "AuditSettings": "steadyrank.audit.settings:AuditSettings",
    "run_audit": "steadyrank.audit.running:run_audit",
    "averaged": "steadyrank.audit.comparing:averaged",
    "summary": "steadyrank.audit.comparing:summary",
    "differences": "steadyrank.audit.comparing:differences",
}
__all__ = ["Audit", "AuditSettings", "averaged", "differences", "run_audit", "summary"]

if TYPE_CHECKING:
    from steadyrank.audit.comparing import averaged, differences, summary
    from steadyrank.audit.record import Audit
    from steadyrank.audit.running import run_audit
    from steadyrank.audit.settings import AuditSettings


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return find("name of steadyrank.audit", name, _NAMES)
    raise AttributeError(f"module 'steadyrank.audit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""Experiments: methods x students x seeds x settings, each cell a run directory, done by one resumable command.

    matrix = load_matrix("ablations", size="small")
    run_matrix(matrix, Path("results/ablations"), jobs=2)

`spec` is the file, `cells` and `plan` what follows from it, `state` what of it is done; `running` starts the jobs, each a `worker` process
that does its `work`; `collect` turns scores into result files, and the report is made of those alone. See docs/experiments.md.
The names load on use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steadyrank.names import find

_NAMES = {
    "Matrix": "steadyrank.experiments.matrix.spec:Matrix",
    "load_matrix": "steadyrank.experiments.matrix.spec:load_matrix",
    "shipped": "steadyrank.experiments.matrix.spec:shipped",
    "MatrixResult": "steadyrank.experiments.matrix.run:MatrixResult",
    "collect_only": "steadyrank.experiments.matrix.run:collect_only",
    "run_matrix": "steadyrank.experiments.matrix.run:run_matrix",
    "standing": "steadyrank.experiments.matrix.run:standing",
}
__all__ = ["Matrix", "MatrixResult", "collect_only", "load_matrix", "run_matrix", "shipped", "standing"]

if TYPE_CHECKING:
    from steadyrank.experiments.matrix.run import MatrixResult, collect_only, run_matrix, standing
    from steadyrank.experiments.matrix.spec import Matrix, load_matrix, shipped


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return find("name of steadyrank.experiments.matrix", name, _NAMES)
    raise AttributeError(f"module 'steadyrank.experiments.matrix' has no attribute {name!r}")

"""The process of one job: `python -m steadyrank.experiments.matrix.worker FOLDER JOB CELL ...`. Not called by hand.

It makes the plan anew from FOLDER/matrix.yaml, so that nothing but names passes between the processes: of the job, and of the cells that
this start of the experiment works on. When the process that started it goes away, however it does, its standard input ends, and it stops
as a run stops at SIGTERM: after the step in progress, with a checkpoint.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

REPORTED = 3  # the exit code of a job that failed and left its record


def main(folder: Path, name: str, selected: list[str], *, restart: bool) -> int:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import torch

    from steadyrank.experiments.matrix.plan import plan_of
    from steadyrank.experiments.matrix.spec import load_matrix
    from steadyrank.experiments.matrix.work import perform

    plan = plan_of(load_matrix(folder / "matrix.yaml"), folder, only=selected)
    torch.set_num_threads(plan.matrix.threads)
    job = next(job for job in plan.jobs if job.name == name)
    record = perform(plan, job, lambda text: print(text, flush=True), restart=restart)
    return 0 if record.state == "done" else REPORTED


def _end_with_parent() -> None:
    while os.read(0, 1024):  # not sys.stdin, whose lock a thread that waits in it would hold while the interpreter ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    names = [word for word in sys.argv[1:] if word != "--restart"]
    sys.exit(main(Path(names[0]), names[1], names[2:], restart="--restart" in sys.argv))

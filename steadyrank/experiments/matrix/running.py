"""Runs the jobs of a plan: as many at a time as asked, each in its own process, and what failed does not stop the rest.

A job's process has the matrix's number of threads whatever `jobs` is, so that numbers do not depend on how many run at a time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from steadyrank.errors import RunError
from steadyrank.experiments.matrix import state
from steadyrank.experiments.matrix.plan import Job, Plan
from steadyrank.experiments.matrix.state import Record
from steadyrank.experiments.matrix.worker import REPORTED

Say = Callable[[str], None]
_PATIENCE = 20.0  # seconds for processes of an experiment that was killed to end by themselves


class Running(Protocol):
    """A job that was started. `poll` gives its record once it ended."""

    def poll(self) -> Record | None: ...

    def stop(self) -> None: ...


Launch = Callable[[Plan, Job, int], Running]  # the number is the place among the jobs that run at a time


def run_jobs(plan: Plan, *, jobs: int, say: Say, launch: Launch) -> dict[str, Record]:
    """Do everything that is left to do; the record of every job."""
    waiting, running, records = list(plan.jobs), dict[str, tuple[int, Running]](), dict[str, Record]()
    try:
        while waiting or running:
            for job in list(waiting):
                if len(running) >= max(1, jobs):
                    break
                if not all(need in records for need in job.needs):
                    continue
                waiting.remove(job)
                found = _settled(plan, job, records)
                if found is None:
                    slot = min(set(range(max(1, jobs))) - {slot for slot, _ in running.values()})
                    say(f"{job.name}: started ({len(records)} of {len(plan.jobs)} jobs have ended)")
                    running[job.name] = (slot, launch(plan, job, slot))
                else:
                    records[job.name] = found
            for name, (_, handle) in list(running.items()):
                record = handle.poll()
                if record is not None:
                    del running[name]
                    records[name] = record
                    say(_ended(plan, record))
            if running:
                time.sleep(0.05)
    except BaseException:
        _stop([handle for _, handle in running.values()], say)
        raise
    return records


def _settled(plan: Plan, job: Job, records: dict[str, Record]) -> Record | None:
    """The record of a job that need not run: what it needs failed, or it is done."""
    failed = [need for need in job.needs if records[need].state != "done"]
    if failed:
        return state.write_failure(plan.folder, job.name, f"it needs {failed[0]}: {records[failed[0]].sentence}", state="skipped")
    if not state.is_done(plan, job):
        return None
    return state.read_record(plan.folder, job.name) or Record(job.name, "done")


def _ended(plan: Plan, record: Record) -> str:
    if record.state == "done":
        return f"{record.job}: done in {record.seconds:.0f} s"
    return f"{record.job}: {record.state}: {record.sentence} (log: {state.log_of(plan.folder, record.job)})"


def _stop(handles: list[Running], say: Say) -> None:
    """Let them end after the step in progress, with a checkpoint; a second interrupt ends them at once."""
    if handles:
        say(f"stopping {len(handles)} jobs after the step in progress; interrupt again to end them at once")
    for handle in handles:
        handle.stop()


class Child:
    """A job in a process of its own, its words in its log and, with its name in front, on the terminal."""

    def __init__(self, plan: Plan, job: Job, slot: int, *, say: Say, restart: bool, lock: int | None):
        self.plan, self.job, self.say = plan, job, say
        self.started = time.monotonic()
        self.log = state.log_of(plan.folder, job.name)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "steadyrank.experiments.matrix.worker", str(plan.folder), job.name, *sorted(plan.selected)]
        self.process: Any = subprocess.Popen(
            command + ["--restart"] * restart,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=_environment(plan.matrix.threads, slot),
            start_new_session=True,  # Ctrl-C reaches this process only, which then ends the others in order
            pass_fds=() if lock is None else (lock,),  # the folder stays locked until the last of them is gone
        )  # fmt: skip
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.last = ""

    def poll(self) -> Record | None:
        code = self.process.poll()
        if code is None:
            return None
        self.reader.join()
        record = state.read_record(self.plan.folder, self.job.name)
        if record is not None and code in (0, REPORTED):
            return record
        why = f"its process was ended by {signal.Signals(-code).name}" if code < 0 else self.last or f"its process ended with code {code}"
        if code == -signal.SIGKILL:
            why += ", which often means too little memory"
        return state.write_failure(self.plan.folder, self.job.name, why, seconds=time.monotonic() - self.started)

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait()
        except KeyboardInterrupt:
            self.process.kill()

    def _read(self) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"-- {time.strftime('%Y-%m-%d %H:%M:%S')} {self.job.name}\n")
            for raw in self.process.stdout:
                line = raw.decode("utf-8", "replace").rstrip()
                log.write(line + "\n")
                log.flush()
                if line:
                    self.last = line
                    self.say(f"[{self.job.name}] {line}")


class Here:
    """A job in this process, for a debugger: a bug shows its traceback at once, and ends the experiment."""

    def __init__(self, plan: Plan, job: Job, *, say: Say, restart: bool):
        import torch

        from steadyrank.experiments.matrix.work import perform

        log = state.log_of(plan.folder, job.name)
        log.parent.mkdir(parents=True, exist_ok=True)
        before = torch.get_num_threads()
        torch.set_num_threads(plan.matrix.threads)
        try:
            with log.open("a", encoding="utf-8") as sink:
                self.record = perform(plan, job, lambda text: _both(sink, say, f"[{job.name}] ", text), restart=restart)
        finally:
            torch.set_num_threads(before)

    def poll(self) -> Record:
        return self.record

    def stop(self) -> None:
        """Nothing is left to stop."""


def _both(sink: IO[str], say: Say, prefix: str, text: str) -> None:
    sink.write(text + "\n")
    say(prefix + text)


def _environment(threads: int, slot: int) -> dict[str, str]:
    """The variables of a child: its threads, and one GPU of those that are visible, in turn."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    out = {**os.environ, **dict.fromkeys(names, str(threads)), "TOKENIZERS_PARALLELISM": "false"}
    devices = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", _gpus()).split(",") if name]
    if len(devices) > 1:
        out["CUDA_VISIBLE_DEVICES"] = devices[slot % len(devices)]
    return out


def _gpus() -> str:
    import torch

    return ",".join(map(str, range(torch.cuda.device_count())))


@contextlib.contextmanager
def locked(folder: Path, *, say: Say) -> Iterator[int | None]:
    """The folder, for this experiment only. A killed start's processes end after their step, which is waited for."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield None
        return
    with (folder / ".lock").open("w") as handle:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise RunError(f"another process works on {folder}; wait until it ends, or give another folder with -o") from None
                if deadline - time.monotonic() > _PATIENCE - 0.2:
                    say(f"another process works on {folder}; waiting {_PATIENCE:.0f} s for it to end")
                time.sleep(0.2)
        yield handle.fileno()


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the experiment as Ctrl-C does: in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

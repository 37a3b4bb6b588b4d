"""The real command, killed for good at every one of its jobs: what goes on ends with the numbers of what was never stopped."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import matrix_world as world
import pytest

from steadyrank.files import read_json

pytestmark = pytest.mark.slow
PATIENCE = 900.0  # seconds for one thing to happen on a busy machine
STARTED: list[subprocess.Popen] = []


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    yield world.make(tmp_path_factory.mktemp("kills"))
    for process in STARTED:  # a test that failed may have left one
        process.kill()
        process.wait()


def start(place: Path, folder: Path, *words: str) -> subprocess.Popen:
    """The command on a matrix of two methods, in a session of its own, its words in a file."""
    evaluate = {"test": {"lists": str(place / "test.jsonl"), "label": "In-domain"}}
    world.write(place / "m.yaml", world.fields(place, evaluate=evaluate, baselines=["start"]))
    environment = {**os.environ, "STEADYRANK_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "steadyrank", "experiment", str(place / "m.yaml"), "-o", str(folder), *words]
    folder.mkdir(exist_ok=True)
    with open(folder / "words.txt", "ab") as words:
        STARTED.append(subprocess.Popen(command, stderr=words, env=environment, start_new_session=True))
    return STARTED[-1]


def until(holds, process: subprocess.Popen | None = None) -> bool:
    """Wait for something to hold; False where the process, if one is given, ended before it did."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if holds():
            return True
        if process is not None and process.poll() is not None:
            return bool(holds())
        time.sleep(0.05)
    raise AssertionError("nothing happened in time")


def workers(folder: Path, job: str) -> list[int]:
    """The processes of one job of this experiment, by what /proc says of them."""
    out = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"steadyrank.experiments.matrix.worker" in words and [str(folder).encode(), job.encode()] == words[3:5]:
            out.append(int(entry.name))
    return out


def numbers(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in world.result_files(folder)}


@pytest.fixture(scope="module")
def whole(place):
    """The experiment that nothing stopped."""
    process = start(place, place / "whole")
    assert process.wait(PATIENCE) == 0
    found = numbers(place / "whole")
    assert found
    return found


def test_killed_at_every_job_it_ends_with_the_same_numbers(place, whole):
    folder = place / "killed"
    jobs = re.findall(r"^([^\s\[]+): started", (place / "whole" / "words.txt").read_text(), re.M)
    stopped = []
    for number, job in enumerate(jobs):
        process = start(place, folder)
        before = (folder / "words.txt").stat().st_size if number else 0
        is_running = lambda job=job, before=before: f"{job}: started".encode() in (folder / "words.txt").read_bytes()[before:]
        if until(is_running, process):
            if job.startswith("a"):  # a training run: let it take a step, so that it stops in the middle
                until(lambda job=job: (folder / "cells" / job / "log.jsonl").is_file(), process)
            process.kill()
            stopped.append(job)
        process.wait(PATIENCE)
        assert until(lambda job=job: not workers(folder, job))  # it ends by itself, after the step in progress
    assert len(stopped) >= 3, stopped
    assert start(place, folder).wait(PATIENCE) == 0
    assert numbers(folder) == whole


def test_a_killed_child_is_a_failed_cell_and_the_others_go_on(place, whole):
    folder = place / "child"
    process = start(place, folder)
    assert until(lambda: (folder / "cells" / "a3--seed0" / "log.jsonl").is_file() and bool(workers(folder, "a3--seed0")), process)
    for worker in workers(folder, "a3--seed0"):
        os.kill(worker, signal.SIGKILL)
    assert process.wait(PATIENCE) == 1
    states = {cell["name"]: cell for cell in read_json(folder / "experiment.json")["cells"]}
    assert states["a3--seed0"]["state"] == "failed" and "SIGKILL" in states["a3--seed0"]["sentence"]
    assert states["a1--seed0"]["state"] == "done"
    assert "SIGKILL" in (folder / "report.html").read_text()
    assert start(place, folder).wait(PATIENCE) == 0
    assert numbers(folder) == whole


def test_terminated_it_stops_in_order_and_goes_on(place, whole):
    folder = place / "interrupted"
    process = start(place, folder)
    assert until(lambda: bool(workers(folder, "a3--seed0")), process)
    process.terminate()
    assert process.wait(PATIENCE) == 1
    words = (folder / "words.txt").read_text()
    assert "interrupted" in words and "Traceback" not in words and not workers(folder, "a3--seed0")
    assert start(place, folder, "--jobs", "2").wait(PATIENCE) == 0
    assert numbers(folder) == whole


def test_two_starts_in_one_folder_do_not_mix(place, whole):
    folder = place / "two"
    first = start(place, folder)
    assert until(lambda: bool(workers(folder, "a3--seed0")), first)
    second = start(place, folder)
    codes = {first.wait(PATIENCE), second.wait(PATIENCE)}
    assert 0 in codes and numbers(folder) == whole

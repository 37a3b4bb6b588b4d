"""What happens around each step of a run: the log row, progress, dev evaluation, the best model, warnings, interruption."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from steadyrank import files
from steadyrank.training.dev import DevSet
from steadyrank.training.hacking import paid_for_something_else

Say = Callable[[str], None]
_COLLAPSED = 0.01  # on [0, 1]; scores that vary less inside a list rank by noise
_SAME = 30  # characters at the start of a warning that is given once
_NO_SIGNAL_STEPS = 20  # so many steps without any reward difference, or without a gradient, and the run says so


class Watch(TrainerCallback):
    """Writes `log.jsonl` and `dev.jsonl`, keeps the best model, and stops at a signal after the step in progress."""

    def __init__(
        self,
        output: Path,
        *,
        trainer: Any,
        dev: DevSet | None,
        eval_every: int,
        save_best: Callable[[int], None],
        say: Say,
        board: Any = None,
    ):
        self.output, self.trainer, self.dev, self.eval_every, self.save_best, self.say, self.board = (
            output, trainer, dev, eval_every, save_best, say, board,
        )  # fmt: skip
        self.warnings: list[str] = []
        self.interrupted: str | None = None
        self._log = output / "log.jsonl"
        self._silent_steps = 0
        self._last_said = 0.0
        self._started = time.monotonic()
        self._first_step = 0

    def resume(self, step: int) -> None:
        """Forget log rows after the checkpoint; they will be written again."""
        self._first_step = step
        rows = _rows(self._log) if self._log.exists() else []
        rows = [row for row in rows if row["step"] <= step]
        files.write_jsonl(self._log, rows)
        self.trainer.record.lists_seen = rows[-1]["lists_seen"] if rows else 0

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        row = {"step": state.global_step, **self.trainer.record.row}
        is_last = state.global_step >= state.max_steps
        if state.is_world_process_zero:
            with self._log.open("a", encoding="utf-8") as sink:
                sink.write(json.dumps(row, allow_nan=False) + "\n")
            self._to_board(row)
            self._progress(row, state.max_steps, is_last=is_last)
        self._check_signal(row)
        if self.dev is not None and (is_last or state.global_step % self.eval_every == 0):
            self.evaluate(state.global_step)
        if is_last or self.interrupted:
            control.should_save = True
        if self.interrupted:
            control.should_training_stop = True

    def evaluate(self, step: int) -> None:
        """Measure on dev (process zero; the others wait at the next step's gradients) and keep the model where it is the best so far."""
        if self.dev is None or self.dev.has(step) or not self.trainer.is_world_process_zero():
            return
        row = self.dev.measure(self.trainer.scorer, step)
        best = self.dev.best()
        is_best = best is not None and best["step"] == step
        if is_best:
            self.save_best(step)
        shown = ", ".join(f"{name} {value:.4f}" for name, value in row["measures"].items())
        shown += f", tau-PSI {row['tau_psi']:.3f}" if row.get("tau_psi") is not None else ""
        self.say(f"step {step}: dev {shown}{' (best)' if is_best else ''}")
        self._to_board({"step": step, **{f"dev/{name}": value for name, value in row["measures"].items()}})
        if row.get("score_sd", 1.0) < _COLLAPSED:
            self._warn(
                f"step {step}: scores inside a dev list differ by an SD of {row['score_sd']:.2g}; they have nearly collapsed, and a small "
                "disagreement between orders says nothing; lower the weight of the consistency term"
            )
        if row["constant_lists"] > 0.5:
            self._warn(f"step {step}: the scores of {row['constant_lists']:.0%} of the dev lists are all equal; the scores have collapsed")

        hacked = paid_for_something_else(_rows(self._log), self.dev.rows, self.dev.best_measure)
        if hacked is not None and not any(text.startswith(hacked[:_SAME]) for text in self.warnings):
            self._warn(hacked)

    def _check_signal(self, row: dict[str, Any]) -> None:
        silent = row["grad_norm"] == 0.0 or row["lists_counted"] == 0 or row.get("flat_groups", 0.0) >= 1.0
        self._silent_steps = self._silent_steps + 1 if silent else 0
        if self._silent_steps == _NO_SIGNAL_STEPS:
            self._warn(
                f"no signal: for {_NO_SIGNAL_STEPS} steps no list had a difference in reward or target, or the gradient was zero; "
                "the model is not learning to rank from these lists"
            )

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        self.say(f"warning: {text}")

    def _progress(self, row: dict[str, Any], steps: int, *, is_last: bool) -> None:
        now = time.monotonic()
        if not is_last and now - self._last_said < 5.0 and row["step"] > self._first_step + 1:
            return
        self._last_said = now
        per_step = (now - self._started) / max(row["step"] - self._first_step, 1)
        reward = f", reward {row['reward']:.3f}" if "reward" in row else ""
        left = per_step * (steps - row["step"])
        self.say(f"step {row['step']}/{steps}: loss {row['loss']:.4f}{reward}, grad norm {row['grad_norm']:.3g}, about {left:.0f} s left")

    def _to_board(self, row: dict[str, Any]) -> None:
        if self.board is not None:
            for name, value in row.items():
                if isinstance(value, float):
                    self.board.add_scalar(name if "/" in name else f"train/{name}", value, row["step"])

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM end the run after the step in progress, with a checkpoint; a second SIGINT ends it at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def note(number: int, frame: Any) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = signal.Signals(number).name

        for number in before:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a log; a last line that a kill cut short is left out."""
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def tensorboard(output: Path, *, wanted: bool) -> Any:
    """A writer, or None where tensorboard is switched off or not installed."""
    if not wanted:
        return None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(output / "tensorboard"))

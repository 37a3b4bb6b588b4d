"""`train`: lists and a student in, a run directory out. A killed or interrupted run goes on from its last checkpoint to the same numbers.

OUTPUT/config.yaml        settings, objective, and what the caller says about the run
OUTPUT/environment.json   versions, machine, load
OUTPUT/data.json          fingerprints and counts of what was learnt from
OUTPUT/labels.jsonl       labels in [0, 1] with their provenance, where the objective regresses on them
OUTPUT/log.jsonl          one row a step;  dev.jsonl: one row an evaluation;  tensorboard/
OUTPUT/checkpoints/       the newest checkpoint, while the run is unfinished
OUTPUT/best/  final/      models: the best on dev (the start itself, if nothing improved on it) and the last
OUTPUT/result.json        written last: its presence means that the run is finished
"""

from __future__ import annotations

import copy
import errno
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
import yaml

from steadyrank import files
from steadyrank.errors import ConfigError, RunError
from steadyrank.records import RankingExample
from steadyrank.training import environment, lora, precision
from steadyrank.training.card import render
from steadyrank.training.collate import Collator
from steadyrank.training.dev import DevSet, ViewDevSet
from steadyrank.training.identity import fingerprint, newest_checkpoint, printed, score_print, seed_head
from steadyrank.training.labels import Labels
from steadyrank.training.prepare import Scores, TrainingLists, prepare, utilities
from steadyrank.training.result import TrainResult
from steadyrank.training.sampling import StepSampler, count_steps
from steadyrank.training.saving import Saver
from steadyrank.training.settings import TrainSettings, ViewSettings
from steadyrank.training.trainer import RankTrainer, arguments, quiet
from steadyrank.training.view_trainer import ViewTrainer
from steadyrank.training.views import ViewCollator, describe_views, fitting, plan, reads_views
from steadyrank.training.watch import Say, Watch, tensorboard

_OWN = (
    "config.yaml", "environment.json", "data.json", "reference.jsonl", "labels.jsonl", "log.jsonl", "dev.jsonl", "checkpoints",
    "best", "final", "result.json", "tensorboard",
)  # fmt: skip
_FREE = ("tensorboard", "num_workers", "save_every", "cache_tokens")  # they change no number, so a resumed run may differ in them
_ANEW = "give another output, or --restart (resume=False) to throw that run away"


def train(
    settings: TrainSettings,
    *,
    student: Any,
    objective: Any,
    train: Sequence[RankingExample],
    dev: Sequence[RankingExample] | None = None,
    teacher_scores: Scores | None = None,
    reference_scores: Scores | None = None,
    labels: Labels | None = None,
    output: str | Path,
    resume: bool = True,
    describe: Mapping[str, Any] | None = None,
    say: Say = print,
) -> TrainResult:
    """Train `student.model` in place and keep the run directory.

    teacher_scores:   utilities of the teacher, one row a training list, canonical order; ScoredLists with probabilities become logits.
    reference_scores: utilities of the student before training, for objectives held near their start; computed here when they are
    needed and absent.
    labels:           of every training list, in [0, 1], for objectives that regress on them.
    resume:           go on where an earlier start of the same run stopped (a finished one is read back); False begins anew.
    describe:         plain values for config.yaml and the model card: recipe, title, summary, licence, data_licences, student, teacher.
    """
    run = _Run(settings, student, fitting(objective, student), Path(output), dict(describe or {}), say)
    run.labels = labels
    try:
        finished = run.open(train, dev, teacher_scores, resume=resume)
        return finished or run.go(train, dev, teacher_scores, reference_scores)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RunError(f"no space left in {output}; free some space and run again to go on from the last checkpoint") from error
        raise


class _Run:
    """The steps of one start of a run, in their order."""

    def __init__(self, settings: TrainSettings, student: Any, objective: Any, output: Path, describe: dict[str, Any], say: Say):
        self.settings = replace(settings, precision=precision.choose(settings.precision))
        self.student, self.objective, self.output, self.describe = student, objective, output, describe
        self.is_writer = not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0
        self.say = say if self.is_writer else lambda text: None
        self.notes: list[str] = []
        self.data: dict[str, Any] = {}
        self.labels: Labels | None = None

    def open(
        self, train: Sequence[RankingExample], dev: Sequence[RankingExample] | None, teacher: Scores | None, *, resume: bool
    ) -> TrainResult | None:
        """Make or check the directory; the result of a finished run of the same settings."""
        if not resume and self.is_writer:
            for name in _OWN:
                path = self.output / name
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        self.output.mkdir(parents=True, exist_ok=True)
        seed_head(self.student, self.settings.seed)
        self.data = {
            "train": fingerprint(train),
            "dev": fingerprint(dev or []),
            "teacher": score_print(teacher),
            "student": self.student.fingerprint,
        }
        if reads_views(self.objective):
            self.data["views"] = describe_views(plan(self.objective, self.settings.views), self.settings.views)
        if self.labels is not None:
            self.data["labels"] = {"fingerprint": self.labels.fingerprint, "kind": self.labels.kind, **self.labels.provenance}
        config: dict[str, Any] = {"settings": self.settings.to_mapping(), "objective": self._objective()}
        config |= {"about": self.describe} if self.describe else {}
        before = self.output / "config.yaml"
        if resume and before.exists():
            self._check_same(yaml.safe_load(before.read_text(encoding="utf-8")), config)
        if self.is_writer:
            with files.atomic_write(before) as out:
                out.write(yaml.safe_dump(json.loads(json.dumps(config)), sort_keys=False, allow_unicode=True))
        done = self.output / "result.json"
        if not done.exists():
            return None
        self.say(f"{self.output}: this run is finished; its result is read back (begin anew with --restart, or resume=False)")
        return TrainResult.from_json(files.read_json(done), output=self.output)

    def _objective(self) -> dict[str, Any]:
        return dict(json.loads(json.dumps({"name": self.objective.name, **asdict(self.objective.settings)})))

    def _check_same(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        then = {**old["settings"], **{f"objective.{name}": value for name, value in old["objective"].items()}}
        now = json.loads(json.dumps({**new["settings"], **{f"objective.{name}": value for name, value in new["objective"].items()}}))
        changed = [name for name in now if name not in _FREE and then.get(name) != now[name]]
        if changed:
            was = ", ".join(f"{name} was {then.get(name)!r} and is {now[name]!r}" for name in changed[:3])
            raise ConfigError(f"{self.output} holds another run ({was}); {_ANEW}")
        if (self.output / "data.json").exists():
            old_data = files.read_json(self.output / "data.json")
            for name in ("train", "dev", "teacher", "student", "labels"):
                if printed(old_data.get(name)) != printed(self.data.get(name)):
                    raise ConfigError(f"{self.output} holds a run with another {name}; {_ANEW}")

    def go(
        self, train: Sequence[RankingExample], dev: Sequence[RankingExample] | None, teacher: Scores | None, reference: Scores | None
    ) -> TrainResult:
        """Prepare, train, save, and write the result."""
        started = time.monotonic()
        lists = self._lists(train, teacher, reference)
        start = copy.deepcopy(self.student.model) if self.settings.lora else None
        wrapped = lora.wrap(self.student.model, self.settings.lora) if self.settings.lora else None
        self.notes += precision.apply(self.student.model, self.settings.precision, learning_rate=self.settings.learning_rate)
        for note in self.notes:
            self.say(note)
        saver = Saver(self.student, wrapped=wrapped, start=start, probes=list(dev or train))
        devset = self._dev_set(dev) if dev else None
        if devset is not None:
            devset.check()
        trainer, watch, steps = self._trainer(lists, wrapped or self.student.model, devset, saver)
        resumed_from = self._fit(trainer, watch)
        if watch.interrupted:
            raise RunError(
                f"interrupted by {watch.interrupted} after step {trainer.state.global_step} of {steps}; a checkpoint is in "
                f"{self.output}/checkpoints; run the same command again to go on from there"
            )
        seconds = time.monotonic() - started
        result = self._result(trainer, watch, devset, lists, steps=steps, seconds=seconds, resumed_from=resumed_from)
        if self.is_writer:
            with quiet():
                self._finish(result, saver, devset)
        return result

    def _lists(self, train: Sequence[RankingExample], teacher: Scores | None, reference: Scores | None) -> TrainingLists:
        if self.objective.anchor == "reference" and reference is None:
            reference = self._reference(train)
        lists = prepare(train, self.objective, teacher_scores=teacher, reference_scores=reference, labels=self.labels)
        if self.is_writer:
            if self.labels is not None:
                self.labels.write(self.output / "labels.jsonl")
            files.write_json(self.output / "data.json", {**self.data, "counts": lists.counts})
            files.write_json(self.output / "environment.json", environment.describe())
        return lists

    def _reference(self, train: Sequence[RankingExample]) -> Scores:
        """The student's scores before training. They are kept in the directory, so that a resumed run is held near the same start."""
        path = self.output / "reference.jsonl"
        if path.exists():
            return [row["scores"] for _, row in files.read_jsonl(path)]
        self.say(f"scoring {len(train)} lists with the model before training, which the objective is held near")
        rows = [utilities(scored) for scored in self.student.score_examples(train)]
        if self.is_writer:
            files.write_jsonl(path, ({"example_id": example.id, "scores": row} for example, row in zip(train, rows, strict=True)))
        return rows

    def _dev_set(self, dev: Sequence[RankingExample]) -> DevSet:
        known: dict[str, Any] = {"best_measure": self.settings.best_measure, "path": self.output / "dev.jsonl"}
        if not reads_views(self.objective):
            return DevSet(dev, **known)
        views = self.settings.views or ViewSettings()
        return ViewDevSet(dev, presentations=views.dev_presentations, seed=self.settings.seed, windows=views.windows, **known)

    def _trainer(self, lists: TrainingLists, model: Any, dev: DevSet | None, saver: Saver) -> tuple[RankTrainer, Watch, int]:
        settings = self.settings
        steps = count_steps(len(lists), lists_per_step=settings.lists_per_step, epochs=settings.epochs, max_steps=settings.max_steps)
        eval_every = settings.eval_every or max(1, -(-steps // 10))
        args = arguments(settings, self.output / "checkpoints", steps=steps, save_every=settings.save_every or eval_every)
        sampler = StepSampler(
            len(lists), lists_per_step=settings.lists_per_step, steps=steps, seed=settings.seed, shuffle=settings.shuffle,
            rank=args.process_index, world=args.world_size,
        )  # fmt: skip
        budget = settings.tokens_per_forward or (32_768 if args.device.type == "cuda" else 4_096)
        common: dict[str, Any] = {"settings": settings, "tokens_per_forward": budget}
        kind: type[RankTrainer] = RankTrainer
        if reads_views(self.objective):
            kind, laid = ViewTrainer, plan(self.objective, settings.views)
            collator: Collator = ViewCollator(self.student, self.objective, lists, laid=laid, **common)
        else:
            collator = Collator(self.student, self.objective, lists, **common)
        trainer = kind(
            scorer=self.student, objective=self.objective, settings=settings, collator=collator, sampler=sampler, model=model, args=args
        )
        board = tensorboard(self.output, wanted=settings.tensorboard) if self.is_writer else None
        watch = Watch(
            self.output, trainer=trainer, dev=dev, eval_every=eval_every, say=self.say, board=board,
            save_best=lambda step: self._save_best(saver, step),
        )  # fmt: skip
        trainer.add_callback(watch)
        return trainer, watch, steps

    def _save_best(self, saver: Saver, step: int) -> None:
        saver.save(self.output / "best")
        files.write_json(self.output / "best" / "step.json", {"step": step})

    def _fit(self, trainer: RankTrainer, watch: Watch) -> int | None:
        checkpoint, step = newest_checkpoint(self.output / "checkpoints")
        if watch.dev is not None:
            watch.dev.load(up_to=step)
        watch.resume(step)
        if checkpoint is not None:
            self.say(f"going on from step {step}")
        else:
            with quiet():
                watch.evaluate(0)
        with watch.signals(), quiet():
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint is not None else None)
        if watch.board is not None:
            watch.board.close()
        self.student.model.eval()
        return step if checkpoint is not None else None

    def _result(
        self,
        trainer: RankTrainer,
        watch: Watch,
        dev: DevSet | None,
        lists: TrainingLists,
        *,
        steps: int,
        seconds: float,
        resumed_from: int | None,
    ) -> TrainResult:
        best = dev.best() if dev is not None else None
        counts = {**lists.counts, **trainer.collator.counts}
        by_step = {row["step"]: row["measures"] for row in dev.rows} if dev is not None else {}
        warnings = list(watch.warnings)
        if best is not None and best["step"] == 0:
            warnings.append(f"training did not improve {self.settings.best_measure} on dev; best/ holds the model before training")
        return TrainResult(
            output=self.output,
            objective=self.objective.name,
            steps=steps,
            lists_seen=trainer.record.lists_seen,
            precision=self.settings.precision,
            seconds=round(seconds, 1),
            best_step=best["step"] if best is not None else None,
            best_measure=self.settings.best_measure,
            dev_start=by_step.get(0, {}),
            dev_best=best["measures"] if best is not None else {},
            dev_final=by_step.get(steps, {}),
            counts=counts,
            warnings=tuple(warnings),
            notes=tuple(self.notes),
            resumed_from=resumed_from,
        )

    def _finish(self, result: TrainResult, saver: Saver, dev: DevSet | None) -> None:
        known = {"student": self.student, "settings": self.settings.to_mapping(), "objective": self._objective(), "describe": self.describe}
        known["data"] = {**self.data, "counts": result.counts}
        differences = saver.save(self.output / "final", verify=True)
        (self.output / "final" / "README.md").write_text(render(result, differences=differences, **known), encoding="utf-8")
        best = self.output / "best"
        if dev is None:
            shutil.rmtree(best, ignore_errors=True)
            shutil.copytree(self.output / "final", best)
        else:
            (best / "README.md").write_text(render(result, differences={}, **known), encoding="utf-8")
        shutil.rmtree(self.output / "checkpoints", ignore_errors=True)
        files.write_json(self.output / "result.json", result.to_json())

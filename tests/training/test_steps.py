"""One optimiser step depends on its lists and not on how they are cut: accumulation, chunks, processes, masks."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import training_helpers as tiny
from two_processes import short_run

from steadyrank import objectives
from steadyrank.training.collate import Collator, cut
from steadyrank.training.prepare import prepare
from steadyrank.training.sampling import Draw, StepSampler, count_steps
from steadyrank.training.score_gradient import chunked_backward
from steadyrank.training.settings import TrainSettings
from steadyrank.training.trainer import RankTrainer, arguments

HERE = Path(__file__).parent


def gradients(folder, *, objective="a3", draws=None, student=None, budget=10_000, examples=None, scores=None, **settings):
    """Gradient of every parameter after one step's `training_step`, with the trainer that made it."""
    examples = examples or tiny.lists(8)
    built = objectives.build(objective)
    student = student or tiny.student()
    plan = TrainSettings(precision="fp32", lists_per_step=8, **settings)
    data = prepare(examples, built, teacher_scores=scores or tiny.teacher_scores(examples), reference_scores=tiny.teacher_scores(examples))
    collator = Collator(student, built, data, settings=plan, tokens_per_forward=budget)
    sampler = StepSampler(len(data), lists_per_step=8, steps=1, seed=plan.seed)
    trainer = RankTrainer(
        scorer=student, objective=built, settings=plan, collator=collator, sampler=sampler, model=student.model,
        args=arguments(plan, Path(folder), steps=1, save_every=1),
    )  # fmt: skip
    batch = collator(draws if draws is not None else [Draw(place, 0) for place in range(len(data))])
    trainer.training_step(student.model, batch, trainer._get_num_items_in_batch([batch], torch.device("cpu")))
    return {name: p.grad.clone() for name, p in student.model.named_parameters() if p.grad is not None}, trainer, batch


def largest_difference(a, b):
    assert a.keys() == b.keys() and a
    return max((a[name] - b[name]).abs().max().item() for name in a)


@pytest.mark.parametrize("objective", ["a1", "a3", "exact", "stage1"])
@pytest.mark.parametrize("at_most", [1, 2, 3])
def test_micro_batches_give_the_gradient_of_the_whole_step(tmp_path, objective, at_most):
    whole, _, batch = gradients(tmp_path, objective=objective)
    cut_up, _, parts = gradients(tmp_path, objective=objective, lists_per_device=at_most)
    assert len(batch["parts"]) == 1 and len(parts["parts"]) == -(-8 // at_most)
    assert largest_difference(whole, cut_up) < 1e-6


def test_token_budget_cuts_and_changes_nothing(tmp_path):
    whole, _, _ = gradients(tmp_path)
    cut_up, _, parts = gradients(tmp_path, budget=120)
    assert len(parts["parts"]) > 3
    assert largest_difference(whole, cut_up) < 1e-6


def test_dead_lists_are_in_neither_numerator_nor_denominator(tmp_path):
    examples = tiny.lists(8)
    scores = tiny.teacher_scores(examples)
    for place in (1, 4, 5):  # equal targets
        scores[place] = [1.0] * len(scores[place])
    some, _, batch = gradients(tmp_path, objective="exact", examples=examples, scores=scores, drop_flat=True, lists_per_device=2)
    alive = [place for place in range(8) if place not in (1, 4, 5)]
    alone, _, _ = gradients(tmp_path, objective="exact", examples=[examples[p] for p in alive], scores=[scores[p] for p in alive])
    assert int(batch["live"]) == 5
    assert largest_difference(some, alone) < 1e-6


def test_a_step_without_live_lists_gives_zero_and_finite(tmp_path):
    examples = tiny.lists(4)
    flat = [[0.0] * len(example.candidates) for example in examples]
    grads, trainer, _ = gradients(tmp_path, examples=examples, scores=flat, drop_flat=True)
    assert all(torch.equal(grad, torch.zeros_like(grad)) for grad in grads.values())
    trainer.create_optimizer_and_scheduler(1)
    assert trainer._get_grad_norm(trainer.model) == 0.0
    assert all(parameter.grad is None for parameter in trainer.model.parameters()), "weight decay must not act on a step without signal"


def test_a_ghost_counts_for_nothing(tmp_path):
    real = [Draw(place, 0) for place in range(7)]
    without, _, _ = gradients(tmp_path, draws=real)
    with_ghost, _, batch = gradients(tmp_path, draws=[*real, Draw(7, 0, is_ghost=True)])
    assert int(batch["live"]) == 7 and len(batch["ids"]) == 7
    assert largest_difference(without, with_ghost) < 1e-6


@pytest.mark.parametrize("budget", [20, 40, 400])
def test_score_gradient_in_chunks_equals_the_direct_one(tmp_path, budget):
    direct, _, _ = gradients(tmp_path, score_gradient="direct")
    chunked, _, batch = gradients(tmp_path, score_gradient="chunked", budget=budget)
    assert budget == 400 or max(len(part["chunks"]) for part in batch["parts"]) > 1
    assert largest_difference(direct, chunked) < 1e-6


def test_chunks_replay_dropout():
    torch.manual_seed(3)
    layer = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1))
    chunks = list(torch.randn(9, 5).split([2, 3, 4]))

    def forward(chunk):
        return layer(chunk)[:, 0]

    def loss_of(scores_N):
        return -(scores_N.log_softmax(0) * torch.arange(9.0)).sum()

    torch.manual_seed(11)
    loss_of(torch.cat([forward(chunk) for chunk in chunks])).backward()
    direct = [parameter.grad.clone() for parameter in layer.parameters()]
    layer.zero_grad()
    torch.manual_seed(11)
    chunked_backward(forward, chunks, loss_of=loss_of, backward=lambda loss: loss.backward())
    assert all(torch.allclose(a, parameter.grad, atol=1e-6) for a, parameter in zip(direct, layer.parameters()))


def test_noise_is_the_examples_own(tmp_path):
    """Beside other lists, in another order, in another part: the same rankings are drawn; in another epoch others are."""
    _, _, whole = gradients(tmp_path)
    _, _, turned = gradients(tmp_path, draws=[Draw(place, 0) for place in reversed(range(8))], lists_per_device=3)
    _, _, later = gradients(tmp_path, draws=[Draw(place, 1) for place in range(8)])

    def noise(batch):
        return {
            name: row[:, :size]
            for part in batch["parts"]
            for name, row, size in zip(part["ids"], part["noise_BGK"], part["sizes"], strict=True)
        }

    first, second, third = noise(whole), noise(turned), noise(later)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not any(torch.equal(first[name], third[name]) for name in first)


def test_sampler_visits_every_list_once_an_epoch_whatever_the_number_of_processes():
    def sampler(rank=0, world=1):
        return StepSampler(10, lists_per_step=4, steps=6, seed=5, rank=rank, world=world)

    one = list(sampler())
    assert [len(step) for step in one] == [4, 4, 2, 4, 4, 2]
    assert sorted(draw.index for step in one[:3] for draw in step) == list(range(10))
    assert [draw.epoch for step in one[3:] for draw in step] == [1] * 10
    three = [list(sampler(rank, 3)) for rank in range(3)]
    for place, step in enumerate(one):
        joined = [draw for rank in three for draw in rank[place] if not draw.is_ghost]
        assert sorted(joined, key=lambda d: d.index) == sorted(step, key=lambda d: d.index)
        assert all(rank[place] for rank in three), "a process without lists would hang the others"


def test_number_of_steps():
    assert count_steps(10, lists_per_step=4, epochs=2, max_steps=None) == 6
    assert count_steps(10, lists_per_step=4, epochs=0.5, max_steps=None) == 2
    assert count_steps(10, lists_per_step=4, epochs=2, max_steps=50) == 50


def test_seven_lists_eight_samples_steps_of_three(tmp_path):
    built = objectives.build("a3", num_samples=8)
    sizes = [len(step) for step in StepSampler(7, lists_per_step=3, steps=3, seed=0)]
    assert sizes == [3, 3, 1] and built.num_samples == 8


def test_cut():
    assert cut([5, 5, 20, 1, 1, 1], budget=10) == [[0, 1], [2], [3, 4, 5]]
    assert cut([1] * 5, budget=10, at_most=2) == [[0, 1], [2, 3], [4]]


@pytest.mark.slow
def test_two_processes_give_the_gradient_of_one(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    base = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    base["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parents[1]), base.get("PYTHONPATH", "")])
    workers = [
        subprocess.Popen(
            [sys.executable, str(HERE / "two_processes.py"), str(tmp_path)],
            env={**base, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    outputs = [worker.communicate(timeout=180)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], "\n".join(outputs)[-3000:]
    for name, settings in {"whole": {}, "cut": {"lists_per_device": 1}, "chunked": {"score_gradient": "chunked", "budget": 60}}.items():
        alone, _, _ = gradients(tmp_path, draws=[Draw(place, 0) for place in range(7)], **settings)
        together = torch.load(tmp_path / f"{name}.pt")
        assert largest_difference(alone, together) < 1e-6, name
    for name, used in {"run": {}, "snapshot": {"behaviour": "snapshot", "snapshot_steps": 2}}.items():
        short_run(tmp_path / "alone" / name, objectives.build("a3", **used))
        rows, alone = (
            [json.loads(row) for row in (folder / "log.jsonl").open()] for folder in (tmp_path / name, tmp_path / "alone" / name)
        )
        assert (tmp_path / name / "result.json").exists()
        for key in ("loss", "reward", "effective_samples"):
            assert [row.get(key) for row in rows] == pytest.approx([row.get(key) for row in alone], abs=1e-4), (name, key)

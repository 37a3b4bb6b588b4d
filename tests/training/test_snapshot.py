"""Rankings drawn by the student of some steps ago: the ratio that corrects for it, resumed runs, and what it refuses."""

from __future__ import annotations

import pytest
import torch
import training_helpers as tiny
from test_run import TRAIN, Killed, equal, killed_at, rows

from steadyrank import objectives
from steadyrank.errors import ConfigError
from steadyrank.training.identity import newest_checkpoint
from steadyrank.training.run import train
from steadyrank.training.settings import TrainSettings

FULL = torch.ones(1, 4, dtype=torch.bool)
SCORES = torch.tensor([[0.3, -0.2, 0.9, 0.1]], dtype=torch.float64)
OLD = torch.tensor([[-0.1, 0.4, 0.5, 0.2]], dtype=torch.float64)
TEACHER = torch.tensor([[2.0, -1.0, 0.5, 0.0]], dtype=torch.float64)
SNAPSHOT = {"behaviour": "snapshot", "snapshot_steps": 4}


def gradient(objective, **given):
    leaf = SCORES.clone().requires_grad_()
    objective(leaf, TEACHER, FULL, **given).total.backward()
    return leaf.grad


def test_a_snapshot_of_the_present_gives_the_fresh_gradient():
    noise = torch.distributions.Gumbel(0.0, 1.0).sample((1, 16, 4)).double()
    fresh = gradient(objectives.build("a3", num_samples=16), noise_BGK=noise)
    stale = gradient(objectives.build("a3", num_samples=16, **SNAPSHOT), noise_BGK=noise, behaviour_BK=SCORES)
    torch.testing.assert_close(fresh, stale, rtol=1e-9, atol=1e-12)


def test_the_ratio_corrects_for_an_old_snapshot():
    """Without clipping, the estimate from the old policy's rankings tends to the exact gradient of the present one."""
    plain = {"kl": 0.0, "entropy": 0.0, "k": 3}
    exact = gradient(objectives.build("exact", **plain))
    open_wide = {"clip_low": 1.0, "clip_high": 1e6, "ratio_limit": 1e6, "baseline": "leave_one_out", "scale": "none"}
    objective = objectives.build("a3", num_samples=60_000, **plain, **open_wide, **SNAPSHOT)
    sampled = gradient(objective, behaviour_BK=OLD, generator=torch.Generator().manual_seed(5))
    assert (sampled - exact).norm() < 0.05 * exact.norm()
    uncorrected = objectives.build("a3", num_samples=60_000, ratio="none", **plain, baseline="leave_one_out", scale="none", **SNAPSHOT)
    biased = gradient(uncorrected, behaviour_BK=OLD, generator=torch.Generator().manual_seed(5))
    assert (biased - exact).norm() > 0.1 * exact.norm()


def test_stepwise_kl_reads_rankings_of_the_student_itself():
    """With equal noise it is the same number, whoever drew the rankings that are paid."""
    noise = torch.distributions.Gumbel(0.0, 1.0).sample((1, 8, 4)).double()
    start = torch.zeros_like(SCORES)
    values = [
        objectives.build("stage1", num_samples=8, **extra)(
            SCORES, torch.tensor([[3.0, 0, 1, 0]]), FULL, anchor_BK=start, noise_BGK=noise, **given
        ).parts["kl"][0]
        for extra, given in (({}, {}), (SNAPSHOT, {"behaviour_BK": OLD}))
    ]
    torch.testing.assert_close(*values)


def test_what_it_refuses():
    with pytest.raises(ConfigError, match="draws rankings from a snapshot; give behaviour_BK"):
        gradient(objectives.build("a3", **SNAPSHOT))
    with pytest.raises(ConfigError, match="set behaviour: student"):
        objectives.build("a3", **SNAPSHOT, consistency={"weight": 1.0})
    with pytest.raises(ConfigError, match="snapshot_steps"):
        objectives.build("a3", behaviour="snapshot", snapshot_steps=0)


def run(output, *, steps=10, say=lambda text: None, dropout=0.1, lists=TRAIN, **settings):
    student = tiny.student(dropout=dropout)
    plan = TrainSettings(
        learning_rate=3e-3, lists_per_step=8, max_steps=steps, precision="fp32", tensorboard=False, eval_every=1, save_every=5
    )  # fmt: skip
    train(
        plan, student=student, objective=objectives.build("a3", **settings), train=lists, dev=tiny.lists(12, seed=9),
        teacher_scores=tiny.teacher_scores(lists), output=output, say=say,
    )  # fmt: skip
    return {name: value.clone() for name, value in student.model.state_dict().items()}


def test_refreshed_every_step_is_fresh_sampling(tmp_path):
    fresh = run(tmp_path / "fresh", steps=3, dropout=0.0)
    snapshot = run(tmp_path / "snapshot", steps=3, dropout=0.0, behaviour="snapshot", snapshot_steps=1)
    assert max((fresh[name] - snapshot[name]).abs().max().item() for name in fresh if fresh[name].is_floating_point()) < 1e-5


def test_ratio_is_logged_and_one_only_at_a_refresh(tmp_path):
    run(tmp_path, steps=6, dropout=0.0, behaviour="snapshot", snapshot_steps=3)
    effective = [row["effective_samples"] for row in rows(tmp_path)]
    assert effective[0] == pytest.approx(1.0, abs=1e-6) and effective[3] == pytest.approx(1.0, abs=1e-6)
    assert max(effective[1], effective[2], effective[4], effective[5]) < 1 - 1e-6
    assert all(0 <= row["clipped"] <= 1 for row in rows(tmp_path))


def test_killed_inside_a_block_goes_on_to_the_same_numbers(tmp_path):
    straight = run(tmp_path / "straight", **SNAPSHOT)
    with pytest.raises(Killed):
        run(tmp_path / "killed", say=killed_at(7), **SNAPSHOT)
    assert newest_checkpoint(tmp_path / "killed" / "checkpoints")[1] == 5  # the block of steps 4 to 7 is in progress
    assert equal(straight, run(tmp_path / "killed", **SNAPSHOT))
    assert rows(tmp_path / "straight") == rows(tmp_path / "killed")


def test_a_list_that_stands_twice_keeps_its_own_scores(tmp_path):
    """Places, not ids, name the lists: the same id may stand over different candidates."""
    twice = [TRAIN[0], TRAIN[1].with_candidates(range(2))] + [TRAIN[1]] * 6
    run(tmp_path, steps=2, lists=twice, **SNAPSHOT)
    assert len(rows(tmp_path)) == 2

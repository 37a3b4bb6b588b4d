"""A reward that rises while held-out quality falls is said aloud, once, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest
import training_helpers as tiny
from test_run import rows

from steadyrank import objectives
from steadyrank.training.hacking import paid_for_something_else
from steadyrank.training.run import train
from steadyrank.training.settings import TrainSettings

M = "nDCG@6"


def series(rewards, quality, *, every=10):
    """Log rows with these mean rewards between evaluations, and dev rows."""
    log = [{"step": step + 1, "reward": rewards[step // every]} for step in range(every * len(rewards))]
    return log, [{"step": place * every, "measures": {M: value}} for place, value in enumerate(quality)]


@pytest.mark.parametrize(
    ("rewards", "quality", "is_told"),
    [
        ([0.5, 0.6, 0.7], [0.6, 0.58, 0.55, 0.5], True),
        ([0.5, 0.6, 0.7], [0.6, 0.58, 0.55, 0.59], False),  # the last value is back near the start
        ([0.5, 0.6, 0.7], [0.6, 0.7, 0.7, 0.5], False),  # one bad evaluation may be chance
        ([0.7, 0.6, 0.5], [0.6, 0.58, 0.55, 0.5], False),  # both fall: that is not hacking
        ([0.5], [0.6, 0.5], False),
        ([], [0.6], False),
    ],
)
def test_rule(rewards, quality, is_told):
    told = paid_for_something_else(*series(rewards, quality), M)
    assert (told is not None) == is_told
    if is_told:
        assert told.startswith(
            "reward hacking: the mean reward rose from 0.500 to 0.700 while dev nDCG@6 fell from 0.600 to 0.500 (step 30)"
        )


def test_objectives_without_a_reward_are_left_alone():
    _, dev = series([], [0.6, 0.5, 0.4, 0.3])
    assert paid_for_something_else([{"step": 1, "loss": 1.0}], dev, M) is None


def test_a_judge_that_pays_for_the_wrong_documents_is_noticed(tmp_path):
    """Training grades are turned round, dev grades are right: the run learns the first, and says what it does to the second."""
    right = tiny.lists(48)
    wrong = [replace(example, relevance=tuple(1.0 - grade for grade in example.relevance)) for example in right]
    plan = {"learning_rate": 3e-3, "lists_per_step": 8, "precision": "fp32", "tensorboard": False}
    common = {"student": tiny.student(), "dev": tiny.lists(12, seed=9), "say": lambda text: None}
    knows = objectives.build("stage1", kl=0.0)
    train(TrainSettings(max_steps=30, eval_every=10, **plan), objective=knows, train=right, output=tmp_path / "a", **common)
    result = train(TrainSettings(max_steps=40, eval_every=8, **plan), objective=knows, train=wrong, output=tmp_path / "b", **common)
    assert sum(text.startswith("reward hacking") for text in result.warnings) == 1
    assert rows(tmp_path / "b")[-1]["reward"] > rows(tmp_path / "b")[0]["reward"]

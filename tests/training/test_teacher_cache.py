"""The cache of teacher scores: once, right, shared, and sensitive to everything that changes a score."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import training_helpers as tiny

from steadyrank.errors import RunError
from steadyrank.records import RankingExample
from steadyrank.scoring import load_scorer
from steadyrank.training.teacher_cache import TeacherCache

HERE = Path(__file__).parent
LISTS = tiny.lists(10)


def direct(scorer, examples=LISTS):
    return [list(scored.scores) for scored in scorer.score_examples(examples)]


def close(a, b):
    return [len(row) for row in a] == [len(row) for row in b] and sum(a, []) == pytest.approx(sum(b, []), abs=1e-5)


def test_scores_once_and_in_canonical_order(tmp_path):
    scorer = tiny.student()
    cache = TeacherCache(tmp_path / "scores.sqlite")
    assert close(cache.scores(scorer, LISTS), direct(scorer))
    total = sum(len(example.candidates) for example in LISTS)
    assert (cache.misses, cache.hits) == (total, 0)
    again = TeacherCache(tmp_path / "scores.sqlite")
    turned = [example.with_candidates(range(len(example.candidates))[::-1]) for example in LISTS]
    scorer.score_examples = None  # a second call must not score
    assert close(again.scores(scorer, turned), [row[::-1] for row in direct(tiny.student())])
    assert (again.misses, again.hits) == (0, total)


def test_changed_weights_template_or_texts_are_scored_anew(tmp_path):
    cache = TeacherCache(tmp_path / "scores.sqlite")
    scorer = tiny.student()
    first = cache.scores(scorer, LISTS)
    with torch.no_grad():
        scorer.model.classifier.weight.mul_(2)
    assert close(cache.scores(scorer, LISTS), direct(scorer)) and not close(first, direct(scorer))
    other = tiny.student(template="{query} {instruction}")
    before = cache.misses
    cache.scores(other, LISTS)
    assert cache.misses > before
    asked = [RankingExample(e.query, e.documents, instruction="w5", id=e.id) for e in LISTS]
    assert close(cache.scores(scorer, asked), direct(scorer, asked))


def test_a_pair_that_repeats_is_asked_once(tmp_path):
    cache = TeacherCache(tmp_path / "scores.sqlite")
    example = RankingExample("w1", ["w2", "w3", "w2"], id="a")
    rows = cache.scores(tiny.student(), [example, example])
    assert rows[0][0] == rows[0][2] == rows[1][0] and (cache.misses, cache.hits) == (2, 4)


def test_a_scorer_of_whole_lists_is_kept_by_list(tmp_path):
    """bm25 of a document depends on its pool, and first_stage on its place."""
    cache = TeacherCache(tmp_path / "scores.sqlite")
    for name in ("bm25", "first_stage"):
        scorer = load_scorer(name)
        turned = [example.with_candidates(range(len(example.candidates))[::-1]) for example in LISTS]
        for examples in (LISTS, turned, LISTS):
            assert close(cache.scores(scorer, examples), direct(scorer, examples))


def test_a_broken_file_is_one_sentence(tmp_path):
    path = tmp_path / "scores.sqlite"
    path.write_bytes(b"this is not a database, though it is long enough to be one" * 20)
    with pytest.raises(RunError, match="delete the file and run again"):
        TeacherCache(path).scores(tiny.student(), LISTS)


@pytest.mark.slow
def test_two_processes_share_one_file(tmp_path):
    script = (
        "import sys, json, training_helpers as t; from steadyrank.training.teacher_cache import TeacherCache;"
        "print(json.dumps(TeacherCache(sys.argv[1]).scores(t.student(), t.lists(200))))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])])}
    both = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "scores.sqlite")], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [worker.communicate(timeout=120)[0] for worker in both]
    assert [worker.returncode for worker in both] == [0, 0] and outputs[0] == outputs[1]

"""`steadyrank judge grade` from the command line, and the same judges inside a training recipe."""

from __future__ import annotations

import json

import pytest
import yaml
from typer.testing import CliRunner

pytest.importorskip("openai")

import training_helpers as tiny
from local_server import serving

from steadyrank.cli.judge_grade import Lines, judge_fields
from steadyrank.cli.main import app
from steadyrank.config import preset_recipe
from steadyrank.data.jsonl import save_examples
from steadyrank.errors import ConfigError, MissingDataError
from steadyrank.experiments import judging
from steadyrank.experiments.recipes import run_recipe
from steadyrank.judging import TooManyMissingError, load_judge
from steadyrank.judging.asker import BudgetSpentError
from steadyrank.judging.files import load_judgments
from steadyrank.records import RankingExample


def answer(body, number):
    """Grades by the length of the document's name in the text; has no answer to one that says so."""
    text = body["messages"][-1]["content"]
    content = "I cannot say" if "unsayable" in text else "3" if "good" in text else "0"
    usage = {"prompt_tokens": 10, "completion_tokens": 1}
    return 200, {}, {"model": "served", "choices": [{"finish_reason": "stop", "message": {"content": content}}], "usage": usage}


@pytest.fixture
def lists(tmp_path, monkeypatch):
    monkeypatch.setenv("STEADYRANK_CACHE", str(tmp_path / "cache"))
    rows = [RankingExample(f"q{row}", [f"good {row}", f"bad {row}", f"unsayable {row}"], id=f"e{row}") for row in range(3)]
    save_examples(tmp_path / "lists.jsonl", rows)
    return str(tmp_path / "lists.jsonl")


def grade(server, lists, output, *more):
    url = server.url.removesuffix("/rerank") + "/v1"
    words = ["judge", "grade", lists, "-o", str(output), "--judge", url, "--set", "model=m", "--set", "backoff=0.01", *more]
    return CliRunner().invoke(app, words)


def test_judgments_summary_and_the_same_file_from_the_cache(lists, tmp_path):
    output = tmp_path / "j.jsonl"
    with serving(answer) as server:
        told = json.loads(grade(server, lists, output, "--json").stdout)
        first = output.read_bytes()
        again = json.loads(grade(server, lists, output, "--json").stdout)
        assert len(server.seen) == 9
    assert (told["lists"], told["candidates"], told["missing"], told["fit_for_training"]) == (3, 9, 3, False)
    assert told["missing_share"] == pytest.approx(1 / 3) and told["judge"]["missing_reasons"] == {"no answer": 3}
    assert (told["judge"]["ledger"]["called"], again["judge"]["ledger"]["called"], again["judge"]["ledger"]["cached"]) == (9, 0, 9)
    assert output.read_bytes() == first
    assert json.loads((tmp_path / "j.jsonl.summary.json").read_text())["missing"] == 3
    rows = load_judgments(output)
    assert [row.grades for row in rows] == [(3.0, 0.0, None)] * 3
    assert rows[0].extra["replies"] == ["3", "0", "I cannot say"] and rows[0].extra["missing"] == {"2": "no answer"}


def test_what_a_person_is_told(lists, tmp_path):
    with serving(answer) as server:
        found = grade(server, lists, tmp_path / "j.jsonl", "--set", "price_prompt=1", "--set", "price_completion=1")
    assert "without a grade: 3 (33.3%)" in found.stdout and "NOT FIT FOR TRAINING" in found.stdout
    assert "calls: 9" in found.stdout and "cost: 0.0001" in found.stdout and "no answer 3" in found.stdout
    assert "9/9 documents, 3 without an answer" in found.stderr


def test_a_spent_budget_is_one_sentence_writes_no_file_and_keeps_what_was_paid(lists, tmp_path):
    output = tmp_path / "j.jsonl"
    with serving(answer) as server:
        found = grade(server, lists, output, "--set", "budget_tokens=334", "--set", "concurrency=1")
        assert isinstance(found.exception, BudgetSpentError) and found.exception.exit_code == 1 and not output.exists()
        done = len(server.seen)
        assert done == 4  # 295 to 297 tokens are kept for a call, 11 used: 33 + 297 fits, 44 + 295 does not
        assert grade(server, lists, output).exit_code == 0 and len(server.seen) == 9


def test_a_judge_from_a_file_with_fields_laid_over_it(lists, tmp_path):
    path = tmp_path / "judge.yaml"
    path.write_text("kind: scorer\nscorer: first_stage\nname: by place\n")
    assert judge_fields(str(path), ["name=other", "scorer=bm25"]) == {"kind": "scorer", "scorer": "bm25", "name": "other"}
    path.write_text("judge: {kind: scorer, scorer: first_stage}\noutput: x\n")
    assert judge_fields(str(path), []) == {"kind": "scorer", "scorer": "first_stage"}
    words = ["judge", "grade", lists, "-o", str(tmp_path / "j.jsonl"), "--judge", str(path), "--json"]
    told = json.loads(CliRunner().invoke(app, words).stdout)
    assert told["missing"] == 0 and told["fit_for_training"] and told["judge"]["rule"] == "rank"
    row = load_judgments(tmp_path / "j.jsonl")[0]
    assert row.grades == (3.0, 1.5, 0.0) and row.judge == "first_stage" and row.extra["candidates"] == ["0", "1", "2"]
    with pytest.raises(MissingDataError, match=r"no\.yaml"):
        judge_fields("no.yaml", [])
    with pytest.raises(ConfigError, match="relevance"):
        judge_fields("relevanse", [])


def test_a_judge_that_computes_here_goes_on_after_a_kill(tmp_path, monkeypatch):
    monkeypatch.setattr(judging, "CHUNK", 2)
    rows = [RankingExample(f"q{row}", ["a", "b"], id=f"e{row}") for row in range(5)]
    whole = judging.judge_into(tmp_path / "whole.jsonl", load_judge({"kind": "scorer", "scorer": "random"}), rows)
    judge = load_judge({"kind": "scorer", "scorer": "random"})
    real, seen = judge.judge, []

    def until_killed(examples, *, watch=None):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(len(examples))
        return real(examples, watch=watch)

    judge.judge = until_killed
    with pytest.raises(KeyboardInterrupt):
        judging.judge_into(tmp_path / "part.jsonl", judge, rows)
    assert not (tmp_path / "part.jsonl").exists()
    told = judging.judge_into(tmp_path / "part.jsonl", load_judge({"kind": "scorer", "scorer": "random"}), rows)
    assert told["lists_from_an_earlier_start"] == 4 and whole["lists_from_an_earlier_start"] == 0
    assert (tmp_path / "part.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_progress_tells_what_is_missing_spent_and_left():
    now, told = iter([0.0, 5.0, 10.0, 15.0, 20.0]), []
    lines = Lines(lambda: "7 tokens", clock=lambda: next(now), tell=told.append)
    lines.begin(4, "documents")
    for is_missing in (False, True, False, False):
        lines.step(is_missing)
    assert told == [
        "2/4 documents, 1 without an answer, spent 7 tokens, 10 s left",
        "4/4 documents, 1 without an answer, spent 7 tokens, 0 s left",
    ]


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv("STEADYRANK_CACHE", str(tmp_path / "cache"))
    save_examples(tmp_path / "train.jsonl", tiny.lists(8))
    tiny.student(seed=1).save(tmp_path / "student")
    return tmp_path


def stage1(world, judge):
    fields = {
        "output": str(world / "run"),
        "student": {"model": str(world / "student"), "options": {"layers": None, "max_length": 48}},
        "data": {"train": str(world / "train.jsonl"), "dev": None, "max_candidates": 4},
        "training": {"lists_per_step": 8, "precision": "fp32", "tensorboard": False},
        "judge": judge,
    }
    return preset_recipe("stage1", fields)


def test_stage_1_is_paid_by_the_judge_of_its_recipe(world):
    told = []
    run_recipe(stage1(world, {"kind": "scorer", "scorer": "bm25"}), say=told.append)
    assert any("judge bm25: 30 candidates graded, 0 without a grade (0.0%)" in line for line in told)
    about = yaml.safe_load((world / "run" / "config.yaml").read_text())["about"]
    assert about["judged"]["judge"]["rule"] == "rank" and about["judged"]["missing_share"] == 0


def test_stage_1_refuses_a_judge_that_left_too_much_without_a_grade(world):
    def half(body, number):
        return answer(body, number) if number % 2 else (200, {}, {"choices": [{"message": {"content": "?"}}]})

    with serving(half) as server:
        url = server.url.removesuffix("/rerank") + "/v1"
        judge = {"kind": "chat", "base_url": url, "model": "m", "cache": str(world / "replies"), "concurrency": 1}
        with pytest.raises(TooManyMissingError, match="without a grade") as caught:
            run_recipe(stage1(world, judge), say=lambda text: None)
        assert caught.value.exit_code == 2 and not (world / "run").exists()

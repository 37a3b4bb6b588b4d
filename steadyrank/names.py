"""Names map to code by literal tables (`{"a3": "steadyrank.objectives.grpo:Grpo"}`), imported on use."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from steadyrank.errors import MissingDependencyError, unknown_name

EXTRAS = {  # top-level module -> the extra that brings it
    "torch": "train",
    "transformers": "train",
    "accelerate": "train",
    "peft": "train",
    "safetensors": "train",
    "tensorboard": "train",
    "scipy": "",
    "ir_measures": "",
    "bm25s": "",
    "pyarrow": "data",
    "onnx": "models",
    "gguf": "models",
    "httpx2": "remote",
    "openai": "judge",
    "matplotlib": "report",
    "jinja2": "report",
    "sentence_transformers": "bench",
    "datasets": "data",
    "psutil": "bench",
}


def load(target: str) -> Any:
    """The object behind `package.module:attribute`."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def find(kind: str, name: str, table: Mapping[str, str]) -> Any:
    """The object that `table` holds under `name`; an unknown name raises with the nearest ones."""
    if name not in table:
        raise unknown_name(kind, name, table)
    return load(table[name])


def require(module: str, purpose: str) -> Any:
    """Import an optional library, or say which install line brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(module.partition(".")[0], "")
        line = f'pip install "steadyrank[{extra}]"' if extra else f"pip install {module.partition('.')[0]}"
        raise MissingDependencyError(f"{purpose} needs {module}, which is not installed; run: {line}") from error

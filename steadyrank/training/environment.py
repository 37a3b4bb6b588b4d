"""Where a run ran: versions, machine and its load; no names of people, hosts or folders."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from typing import Any

import torch

import steadyrank

_PACKAGES = ("torch", "transformers", "accelerate", "peft", "safetensors", "tokenizers", "numpy", "scipy")


def describe() -> dict[str, Any]:
    """Plain values for environment.json."""
    return {
        "steadyrank": steadyrank.__version__,
        "python": sys.version.split()[0],
        "packages": {name: _version(name) for name in _PACKAGES},
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_name(),
        "cpus": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "gpus": [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())],
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor()

"""`load_scorer`: from a name, a folder, a hub id or a mapping to a scorer."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyrank import names
from steadyrank.data import models
from steadyrank.errors import ConfigError, MissingDataError, unknown_name
from steadyrank.scoring.base import Scorer

SCORERS: dict[str, str] = {
    "cross_encoder": "steadyrank.scoring.cross_encoder:CrossEncoder",
    "yes_logit": "steadyrank.scoring.yes_logit:YesLogit",
    "joint_encoder": "steadyrank.scoring.joint_encoder:JointEncoder",
    "expected_grade": "steadyrank.scoring.expected_grade:ExpectedGrade",
    "order_averaged": "steadyrank.scoring.combine:OrderAveraged",
    "capcal": "steadyrank.scoring.calibrate:CapCal",
    "slot_mean": "steadyrank.scoring.calibrate:SlotMean",
    "bm25": "steadyrank.scoring.bm25:Bm25",
    "random": "steadyrank.scoring.references:Random",
    "constant": "steadyrank.scoring.references:Constant",
    "first_stage": "steadyrank.scoring.references:FirstStage",
    "oracle": "steadyrank.scoring.references:Oracle",
    "api": "steadyrank.scoring.api:Api",
    "callable": "steadyrank.scoring.callable:CallableScorer",
    "recorded": "steadyrank.scoring.recorded:Recorded",
    "listwise": "steadyrank.scoring.listwise:Listwise",
}
WITHOUT_MODEL = ("bm25", "random", "constant", "first_stage", "oracle")
AROUND = ("order_averaged", "capcal", "slot_mean")  # kinds that repair the scores of another scorer
OUTSIDE = {"api": "url", "callable": "function", "recorded": "path", "listwise": "source"}  # kind -> what names its source in a mapping
_FUNCTION = re.compile(r"(?:[A-Za-z_]\w*(?:\.\w+)*|.+\.py):[A-Za-z_][\w.]*")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def load_scorer(spec: str | Path | Mapping[str, Any], **options: Any) -> Scorer:
    """A scorer from `spec`.

    - a name without a model: bm25, random, constant, first_stage, oracle;
    - a packaged model: teacher, minilm, smollm2, ... (fetched on first use);
    - a folder of transformers, or a hub id (`owner/name`);
    - a rerank endpoint (`http://...`), a function (`package.module:name`, `path/to/file.py:name`, or the function itself), a file of scored
      lists made elsewhere (`.jsonl`, `.jsonl.gz`): see `api`, `callable`, `recorded`;
    - a mapping: {"kind": "yes_logit", "model": "smollm2", ...options}, or {"from": "teacher", "layers": [0, 2, 4, 7, 9, 11]};
    - a language model that answers with an order: {"kind": "listwise", "source": "http://localhost:8000/v1", "model": "..."};
    - a repair around another scorer: {"kind": "order_averaged", "scorer": {"model": "smollm2", "kind": "expected_grade"}, "k": 10}.
    """
    if isinstance(spec, Scorer):
        return spec
    if isinstance(spec, Mapping):
        return _from_mapping(spec, options)
    if str(spec) in WITHOUT_MODEL:
        return _build(str(spec), options)
    outside = _outside_kind(spec, options.get("kind"))
    if outside is not None:
        return _from_outside(outside, spec, {name: value for name, value in options.items() if name != "kind"})
    kind = options.pop("kind", None)
    path = _folder(str(spec))
    options.setdefault("name", str(spec) if str(spec) in models.NAMES else Path(str(spec)).name)
    return _load(kind or _kind_of(path), path, options)


def _from_mapping(spec: Mapping[str, Any], options: dict[str, Any]) -> Scorer:
    merged = {**spec, **options}
    if merged.get("kind") in OUTSIDE:
        kind = merged.pop("kind")
        if merged.get(OUTSIDE[kind]) is None:
            raise ConfigError(f"scorer of kind {kind!r} needs `{OUTSIDE[kind]}`")
        return _from_outside(kind, merged.pop(OUTSIDE[kind]), merged)
    if merged.get("kind") in AROUND:
        return _around(merged.pop("kind"), merged)
    model = merged.pop("from", None) or merged.pop("model", None) or merged.pop("path", None)
    kind = merged.pop("kind", None)
    if kind is not None and kind not in SCORERS:
        raise unknown_name("scorer kind", kind, SCORERS)
    if kind in WITHOUT_MODEL:
        return _build(kind, merged)
    if model is None:
        raise ConfigError(f"scorer {dict(spec)!r} names no model; give it under `model` (a folder, a hub id or a packaged name)")
    return load_scorer(str(model), **merged, **({"kind": kind} if kind else {}))


def _around(kind: str, options: dict[str, Any]) -> Scorer:
    inner = options.pop("scorer", None) or options.pop("model", None)
    if inner is None:
        raise ConfigError(f"scorer of kind {kind!r} needs `scorer`: what load_scorer takes")
    repair = names.find("scorer kind", kind, SCORERS)
    _check_options(kind, options, repair.__init__)
    return repair(load_scorer(inner), **options)


def _outside_kind(spec: Any, kind: str | None) -> str | None:
    """The kind of a scorer whose scores are made elsewhere, by the looks of `spec`; None for a model."""
    if kind is not None:
        return kind if kind in OUTSIDE else None
    if not isinstance(spec, (str, Path)):
        return "callable" if callable(spec) else None
    text = str(spec)
    if "://" in text:
        return "api"
    if text.endswith((".jsonl", ".jsonl.gz")) and not Path(text).is_dir():
        return "recorded"
    return "callable" if _FUNCTION.fullmatch(text) else None


def _from_outside(kind: str, source: Any, options: dict[str, Any]) -> Scorer:
    scorer = names.find("scorer kind", kind, SCORERS)
    settings = [names.load("steadyrank.remote:ClientSettings").__init__] if kind in ("api", "listwise") else []
    _check_options(kind, options, scorer.__init__, *settings)
    return getattr(scorer, "load", scorer)(source, **options)


def _build(name: str, options: dict[str, Any]) -> Scorer:
    scorer = names.find("scorer", name, SCORERS)
    _check_options(name, options, scorer.__init__)
    return scorer(**options)


def _load(kind: str, path: str, options: dict[str, Any]) -> Scorer:
    names.require("torch", f"scorer {kind!r}")
    names.require("transformers", f"scorer {kind!r}")
    scorer = names.find("scorer kind", kind, SCORERS)
    _check_options(kind, options, scorer.load, scorer.__init__, *[base.__init__ for base in scorer.__mro__ if issubclass(base, Scorer)])
    try:
        return scorer.load(path, **options)
    except OSError as error:  # transformers' word for files that are missing or cannot be read
        raise MissingDataError(f"model {path!r} cannot be read ({str(error).splitlines()[0]})") from error


def _check_options(kind: str, options: Mapping[str, Any], *callables: Any) -> None:
    """An option that nobody takes is an error with the nearest name, not silence."""
    known = {
        name
        for call in callables
        for name, parameter in inspect.signature(call).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    for name in options:
        if name not in known:
            raise unknown_name(f"option of scorer {kind!r}", name, known)


def _folder(spec: str) -> str:
    """The folder of a model; a hub id is left to transformers."""
    path = Path(spec).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file() and not (path / "adapter_config.json").is_file():
            inner = [name for name in ("final", "best") if (path / name / "config.json").is_file()]
            hint = f"; did you mean {path / inner[0]}?" if inner else "; a model folder has one"
            raise MissingDataError(f"folder {spec} holds no config.json{hint}")
        _json(path / "config.json")
        return str(path)
    if spec in models.NAMES:
        return str(models.fetch(spec))
    if _HUB_ID.fullmatch(spec) and not spec.startswith((".", "~")):
        return spec
    if "/" in spec or "\\" in spec or spec.startswith(("~", ".")):
        raise MissingDataError(
            f"model folder {spec} does not exist; give a folder, a hub id (owner/name) or one of: {', '.join(models.NAMES)}"
        )
    raise unknown_name("scorer", spec, [*WITHOUT_MODEL, *models.NAMES])


def _kind_of(path: str) -> str:
    """What a folder holds: as its steadyrank.json says, else by its architecture."""
    folder = Path(path)
    saved = _json(folder / "steadyrank.json").get("kind")
    if saved in SCORERS:
        return str(saved)
    architectures = _json(folder / "config.json").get("architectures") if folder.is_dir() else _hub_architectures(path)
    causal = any(str(name).endswith(("ForCausalLM", "LMHeadModel")) for name in architectures or [])
    return "yes_logit" if causal else "cross_encoder"


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON ({error}); the model folder is damaged") from error
    return found if isinstance(found, dict) else {}


def _hub_architectures(name: str) -> list[str]:
    auto = names.require("transformers", f"model {name!r}").AutoConfig
    try:
        return list(auto.from_pretrained(name).architectures or [])
    except (OSError, ValueError) as error:
        raise MissingDataError(f"model {name!r} is no folder here, and the hub did not give it ({str(error).splitlines()[0]})") from error

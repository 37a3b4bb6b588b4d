"""Security: real vulnerability reports against the weakness catalogue.

query     the one-line summary of a real CVE, filed by MITRE under a weakness entry (an Observed Example)
specific  filed-under entry 3, its parent 2, its grandparent, child or sibling 1
general   parent 3, grandparent 2, the exact entry 1 (the top flips)
impact    entries of the own group whose documented consequences include X: 3; others 0 even if exact
The three families of a report share one pool. Grade 0 means "not filed there", as with any pooled judgements.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steadyrank.data.packaged.common import Base, cut, example, lot, normal, pick, plain, short_hash, split_of
from steadyrank.data.packaged.negatives import pools
from steadyrank.data.packages import read_member
from steadyrank.records import RankingExample

MEMBER = "cwe2/database_v49/cwec_v4.14.xml"
NAMESPACE = "{http://cwe.mitre.org/cwe-7}"
VIEW = "1000"  # Research Concepts: the view whose ChildOf links form the hierarchy
VAGUE = ("Other", "Varies by Context")  # impacts that say nothing


@dataclass(frozen=True)
class Entry:
    """One live weakness."""

    id: str
    text: str
    parents: tuple[str, ...]
    impacts: tuple[str, ...]
    reports: tuple[str, ...]


def read(xml: bytes) -> dict[str, Entry]:
    """The live entries of a catalogue file, in file order."""
    out = {}
    for node in ET.fromstring(xml).iter(f"{NAMESPACE}Weakness"):
        if node.get("Status") == "Deprecated":
            continue
        impacts = list(dict.fromkeys(plain(x.text) for x in node.iter(f"{NAMESPACE}Impact")))
        links = [x for x in node.iter(f"{NAMESPACE}Related_Weakness") if x.get("Nature") == "ChildOf" and x.get("View_ID") == VIEW]
        links.sort(key=lambda x: x.get("Ordinal") != "Primary")  # the primary parent first
        told = f" Consequences: {'; '.join(impacts)}." if impacts else ""
        head = f"{plain(node.get('Name'))}. {plain(node.findtext(f'{NAMESPACE}Description'))}"
        out[f"CWE-{node.get('ID')}"] = Entry(
            id=f"CWE-{node.get('ID')}",
            text=cut(f"{node.get('Abstraction')} weakness: {head}", 330) + cut(told, 150),
            parents=tuple(f"CWE-{x.get('CWE_ID')}" for x in links),
            impacts=tuple(x for x in impacts if x not in VAGUE),
            reports=tuple(plain(x.findtext(f"{NAMESPACE}Description")) for x in node.iter(f"{NAMESPACE}Observed_Example")),
        )
    return out


class Tree:
    """Parents and children among known entries."""

    def __init__(self, parents: Mapping[str, Sequence[str]]):
        self.up = {name: [p for p in above if p in parents] for name, above in parents.items()}
        self.down: dict[str, list[str]] = {name: [] for name in parents}
        for name, above in self.up.items():
            for parent in above:
                self.down[parent].append(name)

    def ancestors(self, name: str) -> set[str]:
        """All entries above."""
        return self._walk(name, self.up)

    def descendants(self, name: str) -> set[str]:
        """All entries below."""
        return self._walk(name, self.down)

    def siblings(self, name: str) -> list[str]:
        """The other children of its parents, in a fixed order."""
        return list(dict.fromkeys(child for parent in self.up[name] for child in self.down[parent] if child != name))

    @staticmethod
    def _walk(name: str, step: Mapping[str, Sequence[str]]) -> set[str]:
        seen: set[str] = set()
        todo = list(step[name])
        while todo:
            here = todo.pop()
            if here not in seen:
                seen.add(here)
                todo.extend(step[here])
        return seen


@dataclass(frozen=True)
class Roles:
    """The own group of one report by role."""

    exact: str
    parent: str
    grandparent: str | None
    near: str | None  # child or sibling

    @property
    def documents(self) -> tuple[str, ...]:
        """The group, the hit first."""
        return tuple(name for name in (self.exact, self.parent, self.grandparent, self.near) if name)


def roles(filed: Sequence[str], tree: Tree, *, seed: int, key: str) -> Roles | None:
    """The group of a report: its deepest filed-under entry, the parent, and one of grandparent, child or sibling; None without a parent.

    Entries under which the same report is also filed never stand in another role.
    """
    taken = set(filed)
    options = [name for name in filed if any(parent not in taken for parent in tree.up[name])]
    if not options:
        return None
    deepest = max(len(tree.ancestors(name)) for name in options)
    exact = pick([name for name in options if len(tree.ancestors(name)) == deepest], seed, "cwe-hit", key)
    parent = next(name for name in tree.up[exact] if name not in taken)
    taken.update((exact, parent))
    above = [name for name in tree.up[parent] if name not in taken]
    kin = [name for name in dict.fromkeys([*tree.down[exact], *tree.siblings(exact)]) if name not in taken]
    if above and (not kin or lot(seed, "cwe-third", key) < 0.5):
        return Roles(exact, parent, above[0], None)
    return Roles(exact, parent, None, pick(kin, seed, "cwe-near", key) if kin else None)


def impact_of(group: Roles, entries: Mapping[str, Entry], *, seed: int, key: str) -> str | None:
    """An impact that part of the group has and part has not, so that the instruction decides; None where there is none."""
    counts: dict[str, int] = {}
    for name in group.documents:
        for impact in entries[name].impacts:
            counts[impact] = counts.get(impact, 0) + 1
    mixed = [impact for impact, count in counts.items() if count < len(group.documents)]
    return pick(mixed, seed, "cwe-impact", key) if mixed else None


def grades(group: Roles) -> dict[str, dict[str, float]]:
    """family -> document -> grade, for the two families of level."""
    specific = {group.exact: 3.0, group.parent: 2.0}
    general = {group.parent: 3.0, group.exact: 1.0}
    if group.grandparent:
        specific[group.grandparent], general[group.grandparent] = 1.0, 2.0
    if group.near:
        specific[group.near] = 1.0
    return {"cwe/specific": specific, "cwe/general": general}


def lists(package: Path, *, seed: int, size: int) -> list[RankingExample]:
    """The examples of this domain."""
    return build(read(read_member(package, MEMBER)), seed=seed, size=size)


def build(entries: Mapping[str, Entry], *, seed: int, size: int) -> list[RankingExample]:
    """Examples of all three families from the entries."""
    tree = Tree({entry.id: entry.parents for entry in entries.values()})
    filed: dict[str, list[str]] = {}
    words: dict[str, str] = {}
    for entry in entries.values():
        for report in entry.reports:
            key = short_hash("cwe", normal(report))
            words.setdefault(key, report)
            if entry.id not in filed.setdefault(key, []):
                filed[key].append(entry.id)
    bases, groups = [], {}
    for key in filed:
        group = roles(filed[key], tree, seed=seed, key=key)
        if group is None or len(words[key]) < 25:
            continue
        kin = set(filed[key]).union(*(tree.ancestors(name) | tree.descendants(name) | set(tree.siblings(name)) for name in filed[key]))
        kin.update(group.documents)
        groups[key] = group
        split = split_of(key, domain="cwe", seed=seed)
        bases.append(Base(key, cut(words[key], 500), split, group.documents, frozenset(kin)))
    pool_of = pools(bases, size=size, seed=seed, domain="cwe")
    texts = {name: entry.text for name, entry in entries.items()}
    out = []
    for base in bases:
        group, pool = groups[base.key], pool_of[base.key]
        for source, graded in grades(group).items():
            out.append(example(source, base, pool, grades=graded, texts=texts, seed=seed))
        impact = impact_of(group, entries, seed=seed, key=base.key)
        if impact:
            graded = {name: 3.0 for name in group.documents if impact in entries[name].impacts}
            out.append(example("cwe/impact", base, pool, grades=graded, texts=texts, seed=seed, slots={"impact": impact.lower()}))
    return out

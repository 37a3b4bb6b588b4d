"""Research papers (never trained on): subject headings against arXiv abstracts tagged by hand.

query  a tag of the hierarchy; papers tagged with it 3, papers tagged with a narrower tag 2, papers tagged with a sibling tag 1, others 0
Negatives are papers without any of these tags, half the most BM25-similar, half random.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steadyrank.data.packaged.common import Base, cut, example, lots, normal, plain, short_hash, shuffled
from steadyrank.data.packaged.cwe import Tree
from steadyrank.data.packaged.negatives import neighbours
from steadyrank.data.packages import read_member
from steadyrank.records import RankingExample

FOLDER = "cherche-2.2.1/cherche/data/semanlink/"
ROLE_LIMITS = (3, 2, 2)  # tagged, narrower, sibling
NOT_TOPICS = ("arxiv_doc", "discute_avec_", "to_read", "a_suivre")  # how housekeeping tags of the collection begin


def lists(package: Path, *, seed: int, size: int) -> list[RankingExample]:
    """The examples of this domain."""
    papers, tags = (json.loads(read_member(package, f"{FOLDER}{name}.json")) for name in ("arxiv", "tags"))
    return build(papers, tags, seed=seed, size=size)


def build(papers: Sequence[Mapping[str, Any]], tags: Mapping[str, Mapping[str, Any]], *, seed: int, size: int) -> list[RankingExample]:
    """One example a tag that has papers and a readable label."""
    texts, tagged = {}, {}
    for paper in papers:
        text = re.sub(r"\s+", " ", str(paper.get("arxiv_summary") or "")).strip()
        if len(text) >= 75:
            name = f"arxiv-{paper['arxiv_num']}"
            texts[name] = cut(f"{plain(paper['arxiv_title'])}. {text}", 570)
            tagged[name] = frozenset(paper["tag"])
    tree = Tree({tag: tuple(about.get("broader") or ()) for tag, about in sorted(tags.items())})
    names = sorted(texts)
    used = sorted({tag for name in names for tag in tagged[name] if tag in tags and not tag.rsplit("/", 1)[-1].startswith(NOT_TOPICS)})
    labels = [plain(" / ".join((tags[tag].get("prefLabel") or [""])[:1])) for tag in used]
    near = neighbours(labels, [texts[name] for name in names], len(names))
    out, seen = [], set()
    for tag, label, close in zip(used, labels, near, strict=True):
        if len(label) < 3 or normal(label) in seen:
            continue
        seen.add(normal(label))
        key = short_hash("scholar", normal(label))
        grades = grade(tag, names, tagged, tree, seed=seed, key=key)
        free = [name for name in names if not _touches(tag, tagged[name], tree)]
        pool = _pool(list(grades), [names[place] for place in close], free, size, seed, key)
        if len(pool) == len(grades):  # a tag so broad that every paper touches it: nothing to rank against
            continue
        base = Base(key, label, "shifted", tuple(pool), frozenset())
        out.append(example("scholar", base, shuffled(pool, seed, "scholar", key), grades=grades, texts=texts, seed=seed))
    return out


def grade(tag: str, names: Sequence[str], tagged: Mapping[str, frozenset[str]], tree: Tree, *, seed: int, key: str) -> dict[str, float]:
    """The graded papers of a tag, a few of each role."""
    narrower, siblings = tree.descendants(tag), set(tree.siblings(tag))
    roles: list[list[str]] = [[], [], []]
    for name in names:
        if tag in tagged[name]:
            roles[0].append(name)
        elif tagged[name] & narrower:
            roles[1].append(name)
        elif tagged[name] & siblings:
            roles[2].append(name)
    out = {}
    for value, limit, role in zip((3.0, 2.0, 1.0), ROLE_LIMITS, roles, strict=True):
        out.update(dict.fromkeys(lots(role, seed, "scholar", value, key)[:limit], value))
    return out


def _touches(tag: str, has: frozenset[str], tree: Tree) -> bool:
    """Whether a paper could be relevant: it has the tag, a narrower, a broader or a sibling one."""
    return bool(has & ({tag} | tree.descendants(tag) | set(tree.up[tag]) | set(tree.siblings(tag))))


def _pool(own: list[str], close: Sequence[str], free: Sequence[str], size: int, seed: int, key: str) -> list[str]:
    allowed = set(free)
    similar = iter([name for name in close if name in allowed])
    chance = iter(lots(free, seed, "scholar-chance", key))
    pool = list(own)
    for turn in range(2 * size):
        name = next(similar if turn % 2 == 0 else chance, None)
        if name is not None and name not in pool and len(pool) < size:
            pool.append(name)
    return pool

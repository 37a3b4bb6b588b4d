"""Word relations (an option; its package comes from the npm registry): WordNet senses and their neighbours.

query   a sense: its words and gloss; the instruction asks for one relation (broader, narrower, part, whole, opposite)
grades  senses in the asked relation 3, in another relation 1, senses lent by other queries 0
A sense gives one example per relation it has, all over one pool, and is used only where it has at least two kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from steadyrank import seeds
from steadyrank.data.packaged.common import Base, cut, example, lots, plain, short_hash, split_of
from steadyrank.data.packaged.negatives import pools
from steadyrank.data.packages import read_member
from steadyrank.records import RankingExample

RELATIONS = {"@": "hypernym", "@i": "hypernym", "~": "hyponym", "~i": "hyponym", "%m": "meronym", "%s": "meronym", "%p": "meronym",
             "#m": "holonym", "#s": "holonym", "#p": "holonym", "!": "antonym"}  # fmt: skip
MOST = 2000  # senses asked about
EACH = 2  # neighbours of each relation in the pool


@dataclass(frozen=True)
class Sense:
    """One synset."""

    id: str
    text: str
    links: tuple[tuple[str, str], ...]  # (relation, sense)


def read(files: Mapping[str, str]) -> dict[str, Sense]:
    """The senses of data files, `part of speech -> text` (format: wndb(5WN))."""
    out = {}
    for part, text in files.items():
        for line in text.splitlines():
            if line.startswith(" "):
                continue
            data, _, gloss = line.partition(" | ")
            fields = data.split()
            count = int(fields[3], 16)
            words = [fields[4 + 2 * place].replace("_", " ") for place in range(count)]
            start = 5 + 2 * count
            links = []
            for place in range(int(fields[start - 1])):
                symbol, offset, kind, _ = fields[start + 4 * place : start + 4 * place + 4]
                if symbol in RELATIONS:
                    links.append((RELATIONS[symbol], f"{'a' if kind == 's' else kind}{offset}"))
            meaning = plain(gloss.split('; "')[0])
            name = f"{part}{fields[0]}"
            out[name] = Sense(name, cut(f"{', '.join(words[:4])}: {meaning}", 300), tuple(dict.fromkeys(links)))
    return out


def lists(package: Path, *, seed: int, size: int) -> list[RankingExample]:
    """The examples of this domain."""
    parts = {"n": "noun", "v": "verb", "a": "adj"}
    files = {part: read_member(package, f"package/dict/data.{name}").decode("utf-8", "replace") for part, name in parts.items()}
    return build(read(files), seed=seed, size=size)


def build(senses: Mapping[str, Sense], *, seed: int, size: int) -> list[RankingExample]:
    """Examples of all relations."""
    usable = [sense for sense in senses.values() if len({relation for relation, _ in sense.links}) >= 2]
    chosen = sorted(usable, key=lambda sense: seeds.digest(seed, "lexical", sense.id))[:MOST]
    bases, roles = [], {}
    texts = {name: sense.text for name, sense in senses.items()}
    for sense in sorted(chosen, key=lambda sense: sense.id):
        key = short_hash("lexical", sense.text)
        own: dict[str, str] = {}
        for relation in sorted({relation for relation, _ in sense.links}):
            names = [name for kind, name in sense.links if kind == relation and name in senses and name not in own]
            own.update(dict.fromkeys(lots(names, seed, "lexical", key, relation)[:EACH], relation))
        if key in roles or len(set(own.values())) < 2:
            continue
        roles[key] = own
        kin = frozenset([sense.id, *(name for _, name in sense.links), *own])
        bases.append(Base(key, sense.text, split_of(key, domain="lexical", seed=seed), tuple(own), kin))
    pool_of = pools(bases, size=size, seed=seed, domain="lexical")
    out = []
    for base in bases:
        own = roles[base.key]
        for relation in dict.fromkeys(own.values()):
            grades = {name: 3.0 if kind == relation else 1.0 for name, kind in own.items()}
            out.append(example(f"lexical/{relation}", base, pool_of[base.key], grades=grades, texts=texts, seed=seed))
    return out

"""Opinion (an option): human-rated sentences; instruction and documents carry everything.

Movies and products are train, valid and test, split by item; news and tweets are never trained on. Ten sentences make one base query
with three families over the same texts: positive, negative, neutral. The mean human rating m (-4 to 4) gives the grade:
m >= 2: 3, >= 1: 2, >= 0.3: 1, else 0 (mirrored for negative); neutral: |m| < 0.3: 3, < 1: 1, else 0.
The texts quote third parties: they are built on this machine and must not be redistributed.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from steadyrank.data.packaged.common import Base, cut, example, lots, normal, plain, short_hash, shuffled, split_of
from steadyrank.data.packages import read_member
from steadyrank.records import RankingExample

MEMBER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
FILES = {"movies": "movieReviewSnippets", "products": "amazonReviewSnippets", "news": "nytEditorialSnippets", "tweets": "tweets"}
SHIFTED = ("news", "tweets")
SIZE = 10
QUERIES = {"movies": "opinions about this film", "products": "opinions about this product", "news": "opinions in this editorial",
           "tweets": "what people say"}  # fmt: skip
Row = tuple[str, str, float]  # item, text, mean rating


def grade(family: str, mean: float) -> float:
    """The grade of a sentence with this mean rating."""
    if family == "neutral":
        return 3.0 if abs(mean) < 0.3 else 1.0 if abs(mean) < 1 else 0.0
    value = mean if family == "positive" else -mean
    return 3.0 if value >= 2 else 2.0 if value >= 1 else 1.0 if value >= 0.3 else 0.0


def rows(text: str) -> list[Row]:
    """The sentences of one ground-truth file (`item_sentence<TAB>mean<TAB>text`)."""
    out = []
    for line in text.splitlines():
        parts = line.split("\t")
        if len(parts) >= 3 and len(plain(parts[-1])) >= 20:
            out.append((parts[0].rsplit("_", 1)[0], plain(parts[-1]), float(parts[1])))
    return out


def lists(package: Path, *, seed: int, size: int) -> list[RankingExample]:
    """The examples of this domain."""
    out = []
    with tarfile.open(fileobj=io.BytesIO(read_member(package, MEMBER))) as inner:
        for domain, stem in FILES.items():
            handle = inner.extractfile(f"hutto_ICWSM_2014/{stem}_GroundTruth.txt")
            assert handle is not None
            out += build(domain, rows(handle.read().decode("utf-8", "replace")), seed=seed, size=min(size, SIZE))
    return out


def build(domain: str, found: Sequence[Row], *, seed: int, size: int) -> list[RankingExample]:
    """Ten sentences a list, of one item where the file tells items apart."""
    items: dict[str, list[tuple[str, float]]] = {}
    seen: dict[str, str] = {}
    for place, (item, text, mean) in enumerate(found):
        item = item if domain in ("products", "news") else str(place % max(1, len(found) // 60))
        if seen.setdefault(normal(text), item) == item:
            items.setdefault(item, []).append((text, mean))
    out = []
    for item, members in items.items():
        split = "shifted" if domain in SHIFTED else split_of(item, domain=f"opinion-{domain}", seed=seed)
        order = lots(members, seed, "opinion", domain, item)
        for start in range(0, len(order) - size + 1, size):
            out += _families(domain, f"{item}-{start // size}", split, dict(order[start : start + size]), seed)
    return out


def _families(domain: str, item: str, split: str, sentences: Mapping[str, float], seed: int) -> list[RankingExample]:
    key = short_hash("opinion", domain, item)
    texts = {f"opinion-{short_hash(text)}": cut(text) for text in sentences}
    means = {f"opinion-{short_hash(text)}": mean for text, mean in sentences.items()}
    pool = shuffled(tuple(texts), seed, "opinion", key)
    base = Base(key, f"{QUERIES[domain]} ({domain} {item})", split, pool, frozenset())
    out = []
    for family in ("positive", "negative", "neutral"):
        grades = {name: grade(family, mean) for name, mean in means.items()}
        if 0 < sum(value > 0 for value in grades.values()) < len(grades):
            row = example(f"opinion/{family}", base, pool, grades=grades, texts=texts, seed=seed, extra={"domain": domain})
            out.append(row)
    return out

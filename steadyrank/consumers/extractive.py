"""A reader without a model: it copies a short span out of the passages it is given. Offline, deterministic, milliseconds.

It weighs question words by how rare they are among the given sentences, finds the sentences that hold most of that weight (earlier passages
first among equals), and takes from them the span that fits the question word: a year, a number, a name that the question does not
hold, what a short sentence states (`field: value`), yes or no, or one of two names to choose from. Good enough that better passages give
better answers; no language understanding, and no claim beyond that. Being sharp at ties, it flips as a real reader does when its context
changes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

_WORD = re.compile(r"\w+(?:['’]\w+)?", re.UNICODE)
_SENTENCE = re.compile(r"(?<=\w\w\w[.!?])\s+(?=[\"'A-Z0-9])|\n+")
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_YEAR = re.compile(rf"\b(?:\d{{1,2}} )?(?:{_MONTH} (?:\d{{1,2}}, )?)?(?:1\d|20)\d\d\b")
_NUMBER = re.compile(r"-?\d[\d,.]*\d|\d")
_NAME = re.compile(r"\b[A-Z][\w'’.&-]*(?:\s+(?:of|the|and|de|von|van|for|in|la)(?=\s+[A-Z0-9])|\s+[A-Z0-9][\w'’.&-]*)*")
_STATED = (  # what a short sentence states, last verb first
    re.compile(r"^.* (?:is|are|was|were|measures)\s+([^:;(]{1,60}?)\s*(?:[;(].*)?\.?$"),
    re.compile(r"^[^:]{1,80}:\s+([^:;(]{1,60}?)\s*(?:[;(].*)?\.?$"),
    re.compile(r"^.* of\s+([^:;(]{1,60}?)\s*(?:[;(].*)?\.?$"),
)
_YES_NO = ("is", "are", "was", "were", "do", "does", "did", "can", "could", "has", "have", "had", "will", "would")
_STOP = frozenset(
    [
        "a",
        "about",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "by",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "his",
        "how",
        "in",
        "into",
        "is",
        "it",
        "its",
        "long",
        "many",
        "much",
        "no",
        "not",
        "of",
        "old",
        "on",
        "or",
        "she",
        "than",
        "that",
        "the",
        "their",
        "these",
        "they",
        "this",
        "those",
        "to",
        "was",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "why",
        "with",
    ]
)
_SHORT = 25  # words of a sentence that states one fact, whose last part is then an answer
_REACH = 60  # how far (in characters) a span may stand from a question word and still profit from it


class ExtractiveReader:
    """`answer(question, passages)`: a span of the passages, "" where none fits (never None: it always looks)."""

    name = "extractive"

    def answer(self, question: str, passages: Sequence[str]) -> str:
        """The best span; earlier passages win ties."""
        asked = [word.lower() for word in _WORD.findall(question)]
        wanted = {word for word in asked if word not in _STOP}
        sentences = [sentence for passage in passages for sentence in _sentences(passage)]
        held = [frozenset(_stem(word) for word in _WORD.findall(sentence.lower())) for sentence in sentences]
        seen = Counter(word for words in held for word in words)
        weight = {stem: math.log((len(held) + 1) / (seen[stem] + 0.5)) for stem in {_stem(word) for word in wanted} if seen[stem]}
        if not weight:
            return ""
        scored = [(sum(weight.get(word, 0.0) for word in words), -place) for place, words in enumerate(held)]
        if asked and asked[0] in _YES_NO:
            return "yes" if max(scored)[0] >= 0.6 * sum(weight.values()) else "no"
        options = _options(question)
        if options:
            return max(options, key=lambda option: _support(option, sentences, scored))
        best, found = -math.inf, ""
        for overlap, place in sorted(scored, reverse=True)[:4]:
            for span, bonus in _spans(question, asked, wanted, sentences[-place], weight):
                if overlap + bonus > best:
                    best, found = overlap + bonus, span
        return found


def _options(question: str) -> list[str]:
    """The two names that a question lets choose from ("..., A or B?"); none where it is no such question."""
    named = re.search(r"([A-Z][^,?]*?),? or ((?:the )?[A-Z][^,?]*)\??\s*$", question)
    return [named.group(1).strip(), named.group(2).strip()] if named else []


def _support(option: str, sentences: Sequence[str], scored: Sequence[tuple[float, int]]) -> float:
    """How much of the question the sentences about this option hold."""
    return sum(overlap for (overlap, _), sentence in zip(scored, sentences, strict=True) if option.lower() in sentence.lower())


def _sentences(passage: str) -> list[str]:
    return [part.strip() for part in _SENTENCE.split(passage) if part.strip()]


def _spans(question: str, asked: Sequence[str], wanted: set[str], sentence: str, weight: dict[str, float]) -> Iterator[tuple[str, float]]:
    """(span, bonus) of one sentence: what kind of answer it is, and how near it stands to heavy question words."""
    kind = _kind(asked)
    marks = [(match.start(), weight.get(_stem(match.group().lower()), 0.0)) for match in _WORD.finditer(sentence)]
    stated = next((found for form in _STATED if (found := form.search(sentence))), None) if len(marks) <= _SHORT else None
    if stated:
        yield stated.group(1).strip(" .,"), 1.0 if kind == "number" else 2.0
    only_year = "year" in asked
    patterns = {"year": ((_YEAR, 2.0),), "number": ((_NUMBER, 2.0),), "name": ((_NAME, 1.0), (_YEAR, -1.0))}[kind]
    for pattern, bonus in patterns:
        for match in pattern.finditer(sentence):
            span = match.group().strip(" .,")
            span = span[-4:] if kind == "year" and only_year else span
            words = {word.lower() for word in _WORD.findall(span)}
            if not span or words <= wanted | _STOP:
                continue
            near = sum(heavy * (1 - abs(at - match.start()) / _REACH) for at, heavy in marks if abs(at - match.start()) < _REACH)
            repeated = len(words & wanted) / len(words)
            yield span, bonus + 0.2 * near - 2.0 * repeated


def _kind(asked: Sequence[str]) -> str:
    """year, number or name, by the question's words."""
    text = " ".join(asked)
    if re.search(r"\b(when|what year|which year|what date|in what year)\b", text):
        return "year"
    if re.search(r"\b(how many|how much|how long|how old|how high|how large|what number|what percentage)\b", text):
        return "number"
    return "name"


def _stem(word: str) -> str:
    """A word without a plural or possessive ending: enough to match question and passage."""
    word = re.sub(r"['’]s$", "", word)
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word

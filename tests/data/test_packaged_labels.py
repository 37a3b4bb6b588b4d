"""Label rules of the packaged collection on small hand-made catalogues: every expected grade is written out from the rule."""

from __future__ import annotations

import json

import pytest

from steadyrank.data.packaged import attack, cwe, icd, lexical, opinion, reader, scholar, tools
from steadyrank.records import RankingExample

SIZE = 12
SUFFIXES = ("in a web portal login page", "in a router firmware upload", "within a mail client parser", "of a database driver cache",
            "through an archive tool import", "inside a media player decoder")  # fmt: skip


def graded(example: RankingExample) -> dict[str, float]:
    """The positive grades by document."""
    return {name: grade for name, grade in zip(example.candidate_ids, example.relevance or (), strict=True) if grade > 0}


def cwe_xml() -> bytes:
    """Six separate chains: pillar 1N0 > class 1N1 > base 1N2 > variant 1N3, with sibling base 1N4; reports are filed under the base."""
    parts = []
    for n, place in enumerate(SUFFIXES):
        head = 100 + 10 * n

        def weakness(
            number: int, level: str, parent: int | None, impacts: tuple[str, ...] = (), report: str = "", status: str = "Draft"
        ) -> str:
            link = f'<Related_Weakness Nature="ChildOf" CWE_ID="{parent}" View_ID="1000" Ordinal="Primary"/>'
            told = "".join(f"<Consequence><Impact>{impact}</Impact></Consequence>" for impact in impacts)
            seen = f"<Observed_Example><Reference>CVE-{number}</Reference><Description>{report}</Description></Observed_Example>"
            return (
                f'<Weakness ID="{number}" Name="Flaw {number}" Abstraction="{level}" Status="{status}">'
                f"<Description>Text {number}.</Description>"
                f"<Related_Weaknesses>{link if parent else ''}</Related_Weaknesses><Common_Consequences>{told}</Common_Consequences>"
                f"{f'<Observed_Examples>{seen}</Observed_Examples>' if report else ''}</Weakness>"
            )

        parts += [
            weakness(head, "Pillar", None),
            weakness(head + 1, "Class", head, ("Read Memory",)),
            weakness(head + 2, "Base", head + 1, ("Modify Memory", "Other"), f"Attacker overwrites a buffer {place}"),
            weakness(head + 3, "Variant", head + 2, ("Read Memory",)),
            weakness(head + 4, "Base", head + 1, ("Read Memory",)),
            weakness(head + 5, "Base", head + 1, report=f"A deprecated thing happened {place}", status="Deprecated"),
        ]
    return f'<Weakness_Catalog xmlns="http://cwe.mitre.org/cwe-7"><Weaknesses>{"".join(parts)}</Weaknesses></Weakness_Catalog>'.encode()


class TestCwe:
    entries = cwe.read(cwe_xml())

    def test_deprecated_entries_and_their_reports_are_left_out(self) -> None:
        assert "CWE-105" not in self.entries and len(self.entries) == 30

    def test_vague_impacts_are_never_asked_for(self) -> None:
        assert self.entries["CWE-102"].impacts == ("Modify Memory",)

    def test_levels_of_a_report(self) -> None:
        examples = cwe.build(self.entries, seed=0, size=SIZE)
        assert {e.source for e in examples} == {"cwe/specific", "cwe/general", "cwe/impact"}
        for example in examples:
            hit = 100 + 10 * next(n for n, place in enumerate(SUFFIXES) if place in example.query) + 2
            exact, parent, pillar, near = f"CWE-{hit}", f"CWE-{hit - 1}", f"CWE-{hit - 2}", {f"CWE-{hit + 1}", f"CWE-{hit + 2}"}
            found = graded(example)
            third = set(found) - {exact, parent}
            if example.source == "cwe/specific":
                assert found[exact] == 3 and found[parent] == 2
                assert len(third) == 1 and third <= near | {pillar} and found[third.pop()] == 1
            elif example.source == "cwe/general":
                assert found[parent] == 3 and found[exact] == 1
                assert third <= {pillar} and all(found[name] == 2 for name in third)

    def test_impact_grades_by_consequence_even_against_the_exact_entry(self) -> None:
        examples = [e for e in cwe.build(self.entries, seed=0, size=SIZE) if e.source == "cwe/impact"]
        assert examples
        for example in examples:
            impact = example.extra["slots"]["impact"]
            positive = [name for name, grade in graded(example).items() if grade == 3]
            assert positive and len(graded(example)) == len(positive)
            assert all(impact in [x.lower() for x in self.entries[name].impacts] for name in positive)
            assert impact in (example.instruction or "").lower()

    def test_the_families_of_a_report_share_pool_and_group(self) -> None:
        by_group: dict[str, set[tuple[str, ...]]] = {}
        for example in cwe.build(self.entries, seed=0, size=SIZE):
            by_group.setdefault(example.group or "", set()).add(tuple(example.candidate_ids))
        assert len(by_group) == 6 and all(len(pools) == 1 for pools in by_group.values())

    def test_negatives_are_whole_groups_of_other_reports(self) -> None:
        examples = [e for e in cwe.build(self.entries, seed=0, size=SIZE) if e.source == "cwe/specific"]
        own = {e.group: set(graded(e)) for e in examples}
        for example in examples:
            negatives = set(example.candidate_ids) - own[example.group]
            lent = [group for name, group in own.items() if name != example.group and group <= negatives]
            assert set().union(*lent) == negatives if lent else not negatives

    def test_an_entry_under_which_the_report_is_filed_too_takes_no_other_role(self) -> None:
        tree = cwe.Tree({"a": (), "b": ("a",), "c": ("b", "d"), "d": ("a",)})
        group = cwe.roles(["c", "b"], tree, seed=0, key="k")
        assert group is not None and group.exact == "c" and group.parent == "d" and "b" not in group.documents

    def test_no_parent_no_list(self) -> None:
        assert cwe.roles(["a"], cwe.Tree({"a": (), "b": ("a",)}), seed=0, key="k") is None


def attack_files() -> dict[str, object]:
    """Six techniques with two sub-techniques each; each has two mitigations and two analytics (Windows; Linux)."""
    techniques, measures, analytics, strategies, links = [], [], [], [], []
    for n, place in enumerate(SUFFIXES):
        for suffix in ("", ".001", ".002"):
            name = f"T{n}{suffix}"
            techniques.append({"stix_id": f"p-{name}", "external_id": name, "name": f"Technique {name}", "description": f"About {name}.",
                               "is_subtechnique": bool(suffix), "tactics": ["impact"]})  # fmt: skip
            if suffix:
                links.append(
                    {"relationship_type": "subtechnique-of", "source_ref": f"p-{name}", "target_ref": f"p-T{n}", "description": ""}
                )
        for side in "ab":
            measures.append({"stix_id": f"m-{n}{side}", "external_id": f"M{n}{side}", "name": f"Measure {n}{side}", "description": "Do."})
            links.append({"relationship_type": "mitigates", "source_ref": f"m-{n}{side}", "target_ref": f"p-T{n}.001", "description": "x"})
        for side, platform in (("a", "Windows"), ("b", "Linux")):
            analytics.append({"stix_id": f"a-{n}{side}", "external_id": f"AN{n}{side}", "description": "Look.", "platforms": [platform]})
        strategies.append({"stix_id": f"s-{n}", "analytic_refs": [f"a-{n}a", f"a-{n}b"]})
        links.append({"relationship_type": "detects", "source_ref": f"s-{n}", "target_ref": f"p-T{n}.001", "description": ""})
        links.append(
            {
                "relationship_type": "uses",
                "source_ref": "g",
                "target_ref": f"p-T{n}.001",
                "description": f"[Group](https://x) has encrypted the files {place}.(Citation: Someone 2020)",
            }
        )
        links.append(
            {"relationship_type": "uses", "source_ref": "g", "target_ref": f"p-T{n}.002", "description": "A sentence that was cut ..."}
        )
    return {
        "attack-patterns": {"attack_patterns": techniques},
        "mitigations": {"mitigations": measures},
        "detection-objects": {"analytics": analytics, "detection_strategies": strategies},
        "relationships": {"relationships": links},
    }


class TestAttack:
    catalogue = attack.read(attack_files())
    examples = attack.build(catalogue, seed=0, size=SIZE)

    def number(self, example: RankingExample) -> int:
        return next(n for n, place in enumerate(SUFFIXES) if place in example.query)

    def test_cut_sentences_are_left_out_and_markup_is_removed(self) -> None:
        assert len(self.catalogue.procedures) == 6
        assert self.catalogue.procedures[0][0] == f"Group has encrypted the files {SUFFIXES[0]}."

    def test_technique_and_parent(self) -> None:
        for example in self.examples:
            n = self.number(example)
            if example.source == "attack/technique":
                assert graded(example) == {f"T{n}.001": 3, f"T{n}": 2, f"T{n}.002": 1}
            if example.source == "attack/parent":
                assert graded(example) == {f"T{n}": 3, f"T{n}.001": 1}

    def test_mitigation_leaves_the_techniques_own_text_in_the_list_at_zero(self) -> None:
        for example in (e for e in self.examples if e.source == "attack/mitigation"):
            n = self.number(example)
            assert graded(example) == {f"M{n}a": 3, f"M{n}b": 3}
            assert f"T{n}.001" in example.candidate_ids

    def test_detection_prefers_the_asked_platform(self) -> None:
        found = [e for e in self.examples if e.source == "attack/detection"]
        assert {e.extra["slots"]["platform"] for e in found} <= {"Windows", "Linux"} and len(found) == 6
        for example in found:
            n, windows = self.number(example), example.extra["slots"]["platform"] == "Windows"
            assert graded(example) == {f"AN{n}a": 3 if windows else 1, f"AN{n}b": 1 if windows else 3}

    def test_flipped_families_share_their_pool(self) -> None:
        pools = {(e.group, e.source): e.candidate_ids for e in self.examples}
        for group, source in pools:
            if source == "attack/parent":
                assert pools[group, source] == pools[group, "attack/technique"]
            if source == "attack/detection":
                assert pools[group, source] == pools[group, "attack/mitigation"]


ICD = b"""<ICD10CM.tabular><chapter><desc>Eye diseases (H00-H59)</desc><section><desc>Lids (H00-H05)</desc>
<diag><name>H00</name><desc>Hordeolum and chalazion</desc>
  <diag><name>H00.1</name><desc>Chalazion</desc><inclusionTerm><note>Meibomian gland cyst</note></inclusionTerm></diag>
  <diag><name>H00.2</name><desc>Abscess of eyelid</desc>
  <inclusionTerm><note>Eyelid abscess, acute</note></inclusionTerm></diag></diag>
<diag><name>H01</name><desc>Other inflammation</desc>
  <excludes1><note>stye of the upper lid (H00.2)</note><note>two targets (H00.1, H00.2)</note>
  <note>abscess of eyelid (H00.2)</note></excludes1>
  <diag><name>H01.0</name><desc>Blepharitis</desc><inclusionTerm><note>Granulated margins</note></inclusionTerm></diag></diag>
</section></chapter></ICD10CM.tabular>"""


class TestIcd:
    codes = icd.read(ICD)

    def test_terms(self) -> None:
        """Left out: a note with two targets, a note that repeats the title, a term that shares 2 of its 3 words with the title."""
        assert icd.terms(self.codes) == [
            ("Meibomian gland cyst", "H00.1", None),
            ("stye of the upper lid", "H00.2", "H01"),
            ("Granulated margins", "H01.0", None),
        ]

    def test_grades_and_trap(self) -> None:
        by_id = {(e.query, e.source): e for e in icd.build(self.codes, seed=0, size=SIZE)}
        code = by_id["stye of the upper lid", "icd/code"]
        assert graded(code) == {"H00.2": 3, "H00": 2, "H00.1": 1} and "H01" in code.candidate_ids
        assert graded(by_id["stye of the upper lid", "icd/broader"]) == {"H00": 3, "H00.2": 1}
        assert code.split == "shifted" and code.candidate_ids == by_id["stye of the upper lid", "icd/broader"].candidate_ids

    def test_a_term_that_names_two_codes_is_ambiguous(self) -> None:
        twice = ICD.replace(b"Granulated margins", b"Meibomian gland cyst")
        assert [row[0] for row in icd.terms(icd.read(twice))] == ["stye of the upper lid"]


def spec(name: str, description: str) -> dict[str, object]:
    return {"name": name, "description": description, "parameters": {"type": "dict", "properties": {"x": {"description": "a value"}}}}


class TestTools:
    weather = spec("weather.get", "Current weather of a city.")
    copy = spec("get_weather", "Look up the sky over a town.")
    ride = spec("order_ride", "Order a taxi ride.")
    rows = [
        {
            "id": "a",
            "question": [[{"role": "system", "content": "secret"}, {"role": "user", "content": "Is it raining in Oslo?"}]],
            "function": [weather, ride],
        },
        {"id": "b", "question": [[{"role": "user", "content": "Take me to the station, please"}]], "function": [ride]},
        {"id": "c", "question": [[{"role": "user", "content": "Tell me about the sky in Bergen"}]], "function": [copy]},
        {"id": "d", "question": [[{"role": "user", "content": "No answer is known for this one"}]], "function": [ride]},
    ]
    answers = {"a": [{"weather.get": {}}], "b": [{"order_ride": {}}], "c": [{"get_weather": {}}]}

    def test_system_text_is_no_query_and_rows_without_right_tool_are_left_out(self) -> None:
        texts: dict[str, str] = {}
        found = tools.parse(self.rows, self.answers, "tools/simple", texts)
        assert [r.query for r in found] == ["Is it raining in Oslo?", "Take me to the station, please", "Tell me about the sky in Bergen"]
        assert texts[found[0].right or ""] == "weather.get: Current weather of a city. Parameters: x: a value"

    def test_near_copies_of_the_right_tool_are_no_negatives(self) -> None:
        texts: dict[str, str] = {}
        first, _, third = tools.parse(self.rows, self.answers, "tools/simple", texts)
        assert tools.near_copy(texts[first.right or ""], texts[third.right or ""])
        assert not tools.near_copy(texts[first.right or ""], texts[first.own[1]])
        pool = tools._pool(first, iter([third]), texts, SIZE, 0)
        assert pool == first.own  # right tool, ride; the lent copy is refused

    def test_abstain_is_all_zero_and_apart(self) -> None:
        texts: dict[str, str] = {}
        found = tools.build(tools.parse(self.rows[3:], {}, "tools/abstain", texts), texts, seed=0, size=SIZE)
        assert [e.split for e in found] == ["abstain"] and graded(found[0]) == {}


def test_scholar_grades_by_place_in_the_hierarchy() -> None:
    rows = [
        ("t/nlp", "Language", []),
        ("t/mt", "Translation", ["t/nlp"]),
        ("t/umt", "Unsupervised translation", ["t/mt"]),
        ("t/ner", "Named entities", ["t/nlp"]),
        ("t/vision", "Computer vision", []),
    ]
    tags = {name: {"prefLabel": [label], "broader": broader} for name, label, broader in rows}
    papers = [
        {"arxiv_num": str(n), "arxiv_title": f"Paper {n}", "arxiv_summary": "A long enough abstract. " * 5, "tag": [tag]}
        for n, tag in enumerate(("t/mt", "t/umt", "t/ner", "t/vision", "t/nlp"))
    ]
    found = {e.query: e for e in scholar.build(papers, tags, seed=0, size=SIZE)}
    assert graded(found["Translation"]) == {"arxiv-0": 3, "arxiv-1": 2, "arxiv-2": 1}
    assert sorted(found["Translation"].candidate_ids) == [
        "arxiv-0",
        "arxiv-1",
        "arxiv-2",
        "arxiv-3",
    ]  # the broader paper is unjudged: left out


def test_reader_distractors_do_not_state_the_answer() -> None:
    countries = {name: {"capital": capital, "area": "10 sq km", "terrain": "flat"} for name, capital in
                 [("Aland", "Rome; note"), ("Bland", "Rome"), ("Cland", "Oslo")]}  # fmt: skip
    found = {e.query: e for e in reader.build(countries, seed=0, size=SIZE)}
    example = found["What is the capital of Aland?"]
    assert example.answers == ("Rome",) and graded(example) == {"Aland/capital": 3}
    assert "Bland/capital" not in example.candidate_ids and "Cland/capital" in example.candidate_ids


@pytest.mark.parametrize(
    ("field", "value", "answers"),
    [
        ("area", "2,381,740 sq km", ("2,381,740 sq km", "2,381,740")),
        ("population", "47,735,685 (2025 est.)", ("47,735,685",)),
        ("highest", "Tahat 2,908 m", ("Tahat 2,908 m", "Tahat")),
        ("capital", "Algiers", ("Algiers",)),
    ],
)
def test_accepted_answers(field: str, value: str, answers: tuple[str, ...]) -> None:
    assert reader.accepted(field, value) == answers


@pytest.mark.parametrize(
    ("family", "mean", "grade"),
    [("positive", 2.0, 3), ("positive", 1.5, 2), ("positive", 0.3, 1), ("positive", -3, 0), ("negative", -2.5, 3), ("negative", 1, 0),
     ("neutral", 0.1, 3), ("neutral", -0.5, 1), ("neutral", 1.0, 0)],
)  # fmt: skip
def test_opinion_grades(family: str, mean: float, grade: float) -> None:
    assert opinion.grade(family, mean) == grade


def test_wordnet_lines_are_read_by_field() -> None:
    links = "003 @ 00002000 n 0000 ~ 00003000 n 0000 %p 00004000 n 0000"
    noun = f'  1 licence line\n00001740 03 n 02 oak 0 oak_tree 0 {links} | a tree; "an old oak"\n'
    sense = lexical.read({"n": noun})["n00001740"]
    assert sense.text == "oak, oak tree: a tree"
    assert sense.links == (("hypernym", "n00002000"), ("hyponym", "n00003000"), ("meronym", "n00004000"))


def test_extras_survive_json() -> None:
    example = cwe.build(TestCwe.entries, seed=0, size=SIZE)[0]
    assert json.loads(json.dumps(dict(example.extra))) == dict(example.extra)

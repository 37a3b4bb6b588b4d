"""The report shows what the files hold: no number of its own, no text as markup, nothing loaded from elsewhere."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest
from study_factory import MEASURES, PAIRS, SPLITS, SYSTEMS, dump, write_study

from steadyrank.errors import InputError, MissingDataError, UserError
from steadyrank.reports import labels, plots, style, tables, text, verdict, write_report
from steadyrank.reports.read import Interval, read_study

FIGURES = ("scatter", "forest", "sources", "training")


class Page(HTMLParser):
    """Everything a browser would fetch, every element and every piece of visible text."""

    def __init__(self, source):
        super().__init__()
        self.loads, self.links, self.tags, self.ids, self.text = [], [], [], [], ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "srcset", "data", "poster", "background", "action") or (name in ("href", "xlink:href") and tag != "a"):
                self.loads.append(value)
            elif name == "href":
                self.links.append(value)

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def study_dir(tmp_path_factory):
    folder = write_study(tmp_path_factory.mktemp("study"))
    assert write_report(folder) == folder / "report.html"
    return folder


@pytest.fixture(scope="module")
def page(study_dir):
    return (study_dir / "report.html").read_text(encoding="utf-8")


def evaluation(folder, split, system):
    return json.loads((folder / "evaluations" / split / f"{system}.json").read_text())


def test_every_figure_is_there_and_drawn(study_dir):
    for name in FIGURES:
        png = (study_dir / "figures" / f"{name}.png").read_bytes()
        assert png.startswith(b"\x89PNG") and len(png) > 20_000
        root = ElementTree.parse(study_dir / "figures" / f"{name}.svg").getroot()
        assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 20


def test_the_page_loads_nothing_from_elsewhere(page):
    parsed = Page(page)
    assert [load for load in parsed.loads if not load.startswith("#")] == []
    assert not re.search(r"(https?:)?//|@import|<link|<iframe|<script", page)
    assert all(load.lstrip("#") in parsed.ids for load in parsed.loads)  # a figure's own marks and clips are found
    assert all(link.startswith(("#", "figures/", "tables/")) for link in parsed.links)


def test_ids_of_the_figures_do_not_collide(page):
    ids = Page(page).ids
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(ids)


def test_links_point_at_files_and_sections_that_exist(study_dir, page):
    parsed = Page(page)
    for link in parsed.links:
        assert link[1:] in parsed.ids if link.startswith("#") else (study_dir / link).is_file(), link


def test_figures_in_the_page_follow_its_theme(page):
    svg = page[page.index("<svg") :]
    assert not set(style.VARIABLES) & set(re.findall(r"#[0-9a-f]{6}", svg))
    for variable in style.VARIABLES.values():
        assert f"--{variable}:" in page, variable


def test_text_of_the_user_is_never_markup(tmp_path):
    folder = write_study(tmp_path, runs=[])
    path = folder / "flips" / "test.json"
    record = json.loads(path.read_text())
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;"
    example = record["examples"][0]
    example["a_top"]["text"] = f"text {evil}"
    example.update({field: f"{field} {evil}" for field in ("query", "instruction", "id", "source")})
    dump(path, record)
    parsed = Page(write_report(folder).read_text(encoding="utf-8"))
    assert "script" not in parsed.tags and "img" not in parsed.tags
    assert all(f"{field} {evil}" in parsed.text for field in ("text", "query", "instruction", "id", "source"))


def test_labels_and_names_of_systems_are_never_markup(tmp_path):
    folder = write_study(tmp_path)
    path = folder / "study.json"
    record = json.loads(path.read_text())
    record["title"] = record["systems"][8]["label"] = record["notes"][0] = "a <script>b</script> & c"
    record["splits"][0]["label"] = r"<b>in</b> $\frac{1$ & _domain_"
    record["runs"][1]["name"] = "<i>run</i>"
    dump(path, record)
    page = write_report(folder).read_text(encoding="utf-8")
    assert (
        "script" not in Page(page).tags
        and "i" not in Page(page[page.index('<section id="training">') : page.index('<section id="data">')]).tags
    )
    assert "<b>in</b>" not in page
    assert "&lt;b&gt;in&lt;/b&gt; $\\frac{1$ &amp; _domain_: nDCG@6 (exp)</text>" in page  # no formula is read into a label


def test_long_texts_are_cut_and_the_whole_is_kept(page):
    whole = "Heap inspection of freed memory. " + "The weakness lets an attacker read stale secrets. " * 12
    assert whole.strip() in page and "<details" in page


def test_csv_holds_the_numbers_of_the_files_unrounded(study_dir):
    rows = list(csv.DictReader(io.StringIO((study_dir / "tables" / "headline.csv").read_text())))
    assert len(rows) == len(SYSTEMS) * len(SPLITS) * len(MEASURES)
    for row in rows:
        stored = evaluation(study_dir, row["split"], row["system"])["measures"][row["measure"]]["micro"]
        assert {name: float(row[name]) for name in ("mean", "low", "high")} == stored
    family = json.loads((study_dir / "comparisons" / "shifted.json").read_text())["family"]
    pair = next(item for item in family if (item["a"], item["b"]) == ("a3", "student-start"))
    row = next(r for r in rows if (r["system"], r["split"], r["measure"]) == ("a3", "shifted", MEASURES[0]))
    assert (row["start"], float(row["delta_mean"]), float(row["delta_p_holm"])) == (
        "student-start",
        pair["difference"]["mean"],
        pair["holm"],
    )


def test_page_and_markdown_show_each_mean_and_interval(study_dir, page):
    markdown = (study_dir / "tables" / "headline.md").read_text()
    results = page[page.index('<section id="results">') : page.index('<section id="shift">')]
    for split in SPLITS:
        for name, *_ in SYSTEMS:
            for measure in MEASURES:
                for average in ("micro", "macro"):
                    value = evaluation(study_dir, split, name)["measures"][measure][average]
                    mean, span = f"{value['mean']:.3f}", f"[{value['low']:.3f}, {value['high']:.3f}]"
                    assert f"<b>{mean}</b><small>{span}</small>" in results
                    assert average == "macro" or span in markdown


def test_instruction_pairs_stand_once_for_each_split(page):
    table = page[page.index("Same query, other instruction") : page.index('<section id="shift">')]
    assert [table.count(f">{name}</th>") for name in ("accuracy", "same top", "chance")] == [len(SPLITS)] * 3
    assert table.count("The same for every system: pairs 41, groups 20, counts: ungrouped 12.") == len(SPLITS)
    assert f"{round(0.641 * 0.6, 3):.3f}<small>[0.325, 0.445]</small>" in table


def test_reference_rows_stand_in_every_table(tmp_path):
    folder = write_study(tmp_path, systems=[s for s in SYSTEMS if s[0] not in ("random", "oracle", "bm25")], pairs=[PAIRS[0], PAIRS[2]])
    table = tables.headline_table(read_study(folder))
    apart = [row.system.name for row in table.rows if row.is_reference]
    assert sorted(apart) == ["bm25", "constant", "first_stage", "oracle", "random"]
    assert [row.is_reference for row in table.rows] == sorted(row.is_reference for row in table.rows)
    oracle = next(row for row in table.rows if row.system.name == "oracle")
    assert all(cell.value == Interval(None) for cell in oracle.cells.values())
    assert re.search(r"Oracle</span>.*?<b>n/a</b>", tables.to_html(table))
    assert next(line for line in tables.to_markdown(table).splitlines() if "Oracle" in line).startswith("| *Oracle* | n/a |")


def test_best_is_bold_and_never_a_reference(study_dir):
    table = tables.headline_table(read_study(study_dir))
    best = {row.system.name for row in table.rows for cell in row.cells.values() if cell.is_best}
    assert best == {"teacher"}  # 0.694 and 0.612 of the factory; the oracle's 1.0 does not count


def test_equal_bests_are_all_bold(tmp_path):
    twins = [("bm25", "BM25", "baseline", 0.9, 0.9), ("x", "X", "student", 0.5, 0.5), ("y", "Y", "student", 0.5, 0.4)]
    table = tables.headline_table(read_study(write_study(tmp_path, systems=twins, pairs=[("x", "y")], runs=[])))
    assert [r.system.name for r in table.rows if r.cells["test", MEASURES[0]].is_best] == ["x", "y"]
    assert [r.system.name for r in table.rows if r.cells["shifted", MEASURES[0]].is_best] == ["x"]


def test_the_headline_is_the_comparison_of_the_file(study_dir):
    assert verdict.sentences(read_study(study_dir))[0] == (
        "The student (a3) gains +0.155 [+0.131, +0.179] nDCG@6 (exp) over its start in-domain and +0.099 [+0.075, +0.123] on shifted lists."
    )


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(0.001, 0.2, "gains"), (-0.2, -0.001, "scores"), (-0.01, 0.2, "shows no clear change:"), (None, None, "shows no clear change:")],
)
def test_nothing_is_claimed_unless_the_interval_leaves_zero(tmp_path, low, high, word):
    folder = write_study(tmp_path, pairs=[("a3", "student-start")])
    for split in SPLITS:
        path = folder / "comparisons" / f"{split}.json"
        record = json.loads(path.read_text())
        record["family"][0]["difference"] = {"mean": 0.05, "low": low, "high": high}
        dump(path, record)
    assert verdict.sentences(read_study(folder))[0].startswith(f"The student (a3) {word} +0.050")


def test_a_study_without_its_optional_files_says_what_is_absent(tmp_path):
    folder = write_study(tmp_path)
    gone = [
        "comparisons/test.json",
        "comparisons/shifted.json",
        "flips/shifted.json",
        "instructions/test.json",
        "runs/a3/log.jsonl",
        "runs/a3/dev.jsonl",
    ]
    for name in [*gone, "runs/a3/result.json"]:
        (folder / name).unlink()
    page = write_report(folder).read_text(encoding="utf-8")
    notice = page[page.index('<aside class="notice">') : page.index("</aside>")]
    assert all(f"<code>{name}</code>" in notice for name in gone)
    assert "no gain is claimed" in page and "n/a: the study holds no file of flips" in page


def test_a_study_with_nothing_optional_still_makes_a_page(tmp_path):
    folder = write_study(tmp_path, systems=SYSTEMS[:5], pairs=[], runs=[])
    index = json.loads((folder / "study.json").read_text())
    keep = {key: index[key] for key in ("schema", "title", "headline_measure", "systems", "splits")}
    dump(folder / "study.json", keep | {"splits": keep["splits"][:1]})
    page = write_report(folder).read_text(encoding="utf-8")
    assert "This study holds no comparison of a trained system with its start." in page
    assert "No training logs in this study." in page


def broken(folder, name, change):
    path = folder / name
    record = json.loads(path.read_text())
    change(record)
    dump(path, record)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("study.json", None, ["study.json", "not there"]),
        ("evaluations/shifted/a3.json", None, ["evaluations/shifted/a3.json", "not there"]),
        ("study.json", lambda r: r.update(schema="steadyrank.study/9"), ["study.json", "schema", "steadyrank.study/9"]),
        ("study.json", lambda r: r["systems"][0].update(role="boss"), ["study.json", "random", "boss"]),
        ("study.json", lambda r: r.pop("splits"), ["study.json", "splits"]),
        ("evaluations/test/a3.json", lambda r: r.update(schema="other/1"), ["evaluations/test/a3.json", "other/1"]),
        ("evaluations/test/a3.json", lambda r: r["measures"].pop(MEASURES[0]), ["evaluations/test/a3.json", MEASURES[0]]),
        ("evaluations/test/a3.json", lambda r: r["measures"][MEASURES[0]]["micro"].update(mean="high"), ["a3.json", "micro.mean", "high"]),
        ("comparisons/test.json", lambda r: r["family"][0].pop("difference"), ["comparisons/test.json", "difference"]),
        ("flips/test.json", lambda r: r.update(schema=None), ["flips/test.json", "schema"]),
    ],
)
def test_a_broken_study_is_one_sentence_that_names_the_file(tmp_path, name, change, words):
    folder = write_study(tmp_path)
    if change is None:
        (folder / name).unlink()
    else:
        broken(folder, name, change)
    with pytest.raises((MissingDataError, InputError)) as error:
        write_report(folder)
    message = str(error.value)
    assert all(word in message for word in words) and "\n" not in message
    assert not (folder / "report.html").exists()


def test_a_file_that_is_not_json_is_named(tmp_path):
    folder = write_study(tmp_path)
    (folder / "comparisons" / "test.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"comparisons/test\.json"):
        write_report(folder)


def test_writing_again_gives_equal_bytes(study_dir, page):
    assert write_report(study_dir).read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    ("value", "expected"), [(0.1234, "+0.123"), (-0.1236, "\u22120.124"), (0.0004, "0.000"), (-0.0004, "0.000"), (None, "n/a")]
)
def test_signed_numbers_have_no_direction_when_they_round_to_zero(value, expected):
    assert text.signed(value) == expected


def test_running_mean_by_hand():
    assert plots.running_mean([1.0, 2.0, 6.0, 4.0], 2) == [1.0, 1.5, 4.0, 5.0]


def test_labels_of_close_points_do_not_lie_on_each_other():
    points = [(300.0 + 6 * i, 300.0 + 5 * (i % 3)) for i in range(12)]
    frame = labels.Box(0, 0, 600, 600)
    marks = [labels.Box(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    boxes = labels.place([(50.0, 12.0)] * 12, points, marks, frame, scale=1.4)
    for place, box in enumerate(boxes):
        assert box.outside(frame) == 0
        assert all(box.overlap(other) == 0 for other in [*boxes[:place], *marks])


def test_files_of_the_evaluation_room_are_read(tmp_path):
    """The layout is agreed between rooms: what evaluation writes today must be what the report reads."""
    from steadyrank.evaluation import compare_family, evaluate, find_flips, instruction_pairs
    from steadyrank.records import Candidate, RankingExample, ScoredList

    lists = [
        RankingExample(
            f"query {place // 2}", [Candidate(f"d{place // 2}-{k}") for k in range(4)], 
            relevance=[2.0, 1.0, 0.0, 0.0][:: 1 - 2 * (place % 2)],
            instruction=f"instruction {place % 2}", id=f"q{place}", source=f"family/{place % 3}", group=f"g{place // 2}",
        )
        for place in range(12)
    ]  # fmt: skip
    good = [ScoredList(item.id, "s", [float(grade) for grade in item.relevance]) for item in lists]
    flat = [ScoredList(item.id, "b", [4.0, 3.0, 2.0, 1.0]) for item in lists]
    results = {name: evaluate(scored, lists, system=name, split="test") for name, scored in (("s", good), ("b", flat))}
    for name, result in results.items():
        dump(tmp_path / "evaluations" / "test" / f"{name}.json", result.to_json())
    family = [item.to_json() for item in compare_family([(results["s"], results["b"])], MEASURES[0])]
    dump(tmp_path / "comparisons" / "test.json", {"schema": "steadyrank.comparisons/1", "family": family})
    dump(tmp_path / "flips" / "test.json", find_flips(good, flat, lists, a="s", b="b"))
    pairs = {name: instruction_pairs(scored, lists, system=name).to_json() for name, scored in (("s", good), ("b", flat))}
    dump(tmp_path / "instructions" / "test.json", {"schema": "steadyrank.instructions/1", "systems": pairs})
    systems = [{"name": "s", "label": "S", "role": "student"}, {"name": "b", "label": "B", "role": "start"}]
    index = {
        "schema": "steadyrank.study/1",
        "title": "T",
        "headline_measure": MEASURES[0],
        "systems": systems,
        "splits": [{"name": "test", "label": "In-domain"}],
    }
    dump(tmp_path / "study.json", index)
    study = read_study(tmp_path)
    assert study.absent == [] and study.results["test", "s"].measures[MEASURES[0]]["micro"] == Interval(1.0, 1.0, 1.0)
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "The student gains" in page and "flipped <b>6</b>" in page  # the six lists whose right document is the last one
    assert (page.count("<b>1.000</b>"), study.against_start("test", "s").n) == (2 * len(MEASURES), 6)  # six groups of two lists


def test_the_template_ships_with_the_package():
    from importlib import resources

    names = {item.name for item in resources.files("steadyrank.reports").joinpath("templates").iterdir()}
    assert {"report.html.j2", "report.css"} <= names

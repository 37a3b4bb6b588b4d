"""The page of a judge agreement: verdicts first, every number that of the file, user text escaped, nothing loaded from elsewhere."""

import html
import json
import re
from html.parser import HTMLParser

import pytest
from agreement_pages import DATASETS, NASTY, agreement

from steadyrank.errors import InputError
from steadyrank.reports import agreement_view as view
from steadyrank.reports.agreement import render, write_agreement
from steadyrank.reports.agreement_figures import Square, cut

NO_FIGURES = {"datasets": None, "confusion": None, "raters": None}


@pytest.fixture(scope="module")
def found():
    return agreement()


@pytest.fixture(scope="module")
def page(found, tmp_path_factory):
    folder = tmp_path_factory.mktemp("agreement")
    return folder, write_agreement(found, folder)


class Balanced(HTMLParser):
    """Fails where a tag is closed that was not the last one opened."""

    VOID = {"meta", "br", "path", "use", "rect", "img"}

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "text"):
            self.text.append(data)


class TestFiles:
    def test_page_and_figures_are_written(self, page):
        folder, paths = page
        names = {path.relative_to(folder).as_posix() for path in paths}
        assert names == {"agreement.html", *(f"figures/{n}.{k}" for n in ("datasets", "confusion", "raters") for k in ("svg", "png"))}
        assert all(path.stat().st_size > 1000 for path in paths)

    def test_nothing_is_loaded_from_elsewhere(self, page):
        text = (page[0] / "agreement.html").read_text()
        assert not re.search(r"<(script|link|iframe|img|object|embed)\b", text)
        assert not re.search(r"(src|href|url)\s*[=(]\s*[\"']?\s*(https?:|//)", text) and "@import" not in text
        links = set(re.findall(r'href="([^"#]+)"', text))
        assert links == {f"figures/{name}.{kind}" for name in NO_FIGURES for kind in ("svg", "png")}
        assert all((page[0] / link).exists() for link in links)

    def test_names_of_users_are_escaped(self, page):
        text = (page[0] / "agreement.html").read_text()
        assert NASTY not in text and "<i>three</i>" not in text
        assert html.escape(NASTY, quote=False)[:30] in text
        assert "<script>" not in (page[0] / "figures" / "raters.svg").read_text()

    def test_the_markup_is_balanced_and_ids_are_unique(self, page):
        text = (page[0] / "agreement.html").read_text()
        parser = Balanced()
        parser.feed(text)
        assert parser.open == []
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids))

    def test_it_is_the_same_from_the_file(self, found, page, tmp_path):
        (tmp_path / "agreement.json").write_text(json.dumps(found))
        write_agreement(tmp_path / "agreement.json", tmp_path)
        assert (tmp_path / "agreement.html").read_text() == (page[0] / "agreement.html").read_text()


class TestWhatItSays:
    def test_the_verdicts_come_first(self, found, page):
        text = (page[0] / "agreement.html").read_text()
        places = [text.index("Do not train on it"), text.index('id="against"'), text.index('id="datasets"'), text.index('id="counts"')]
        assert places == sorted(places)
        assert text.count('class="hero ') == 3

    def test_numbers_are_those_of_the_file(self, found, page):
        parser = Balanced()
        parser.feed((page[0] / "agreement.html").read_text())
        cells = found["comparisons"][0]["overall"]
        for name, digits, factor in (("kappa_quadratic", 2, 1), ("spearman", 2, 1), ("accuracy", 0, 100)):
            assert f"{cells[name]['value'] * factor:.{digits}f}" + ("%" if factor == 100 else "") in parser.text, name
        assert "n/a" in parser.text  # a scorer has no kappa
        assert "ranks only" in parser.text

    def test_judges_by_grade_from_the_best(self, found):
        grades = [grade for grade, _ in view.summary(found)]
        assert grades == sorted(grades, key=view.GRADES.index) and grades[-1] == "no better than guessing"
        assert sorted(name for _, names in view.summary(found) for name in names) == sorted(found["judges"])

    def test_undefined_numbers_have_their_reason(self, found):
        lines = view.undefined(found)
        assert any("scorer gives ranks only, no grades" in line and "κ quadratic" in line for line in lines)

    @pytest.mark.parametrize(
        "options, told, absent",
        [
            ({"judges": ("right",), "again": False, "swaps": False}, "No second run", "Two documents change places"),
            ({"judges": ("right", "other"), "has_reference": False}, "No reference.", 'id="against"'),
            ({"judges": ("scorer",), "again": False}, "Ranks only: there are no grades to compare.", "On relevance</h3>"),
            ({"judges": tuple(f"judge number {n}" for n in range(8))}, "Judges against each other", "No second run"),
        ],
    )
    def test_what_is_not_there_is_said(self, tmp_path, options, told, absent):
        write_agreement(agreement(**options), tmp_path)
        text = (tmp_path / "agreement.html").read_text()
        assert told in text and absent not in text

    def test_a_title_of_the_user_is_escaped(self, found):
        assert "<b>mine</b>" not in render(found, NO_FIGURES, title="<b>mine</b>")


def test_values_are_written_with_two_decimals_and_no_sign_at_zero():
    cell = {"value": -0.003, "low": -0.052, "high": 0.049}
    assert view.value("kappa", cell) == view.Written("0.00", "[−0.05, 0.05]", True)
    assert view.value("accuracy", {"value": 0.5, "low": 0.5, "high": 0.5}) == view.Written("50%", "", True)
    assert view.value("accuracy", {"value": 0.062, "low": None, "high": None}) == view.Written("6.2%", "", False)
    assert view.value("kappa", {"value": None, "low": None, "high": None}) is None


def test_colour_is_the_distance_to_guessing():
    from steadyrank.reports.agreement_figures import _square

    references = {"random": {"accuracy": 0.4, "pairs": 0.5, "kappa": 0.0}, "constant": {"accuracy": 0.6, "pairs": 0.5, "kappa": None}}
    cell = {"value": 0.8, "low": None, "high": None}
    assert _square(cell, "accuracy", references, has_room=True).strength == pytest.approx((0.8 - 0.6) / 0.4)
    assert _square(cell, "pairs", references, has_room=True).strength == pytest.approx(0.6)
    assert _square(cell, "kappa", references, has_room=True) == Square("0.80", "", 0.8)
    assert _square({**cell, "value": None}, "kappa", references, has_room=True).strength is None


def test_long_names_are_cut():
    assert cut("x" * 24) == "x" * 24 and cut("x" * 25) == "x" * 23 + "…"


@pytest.mark.parametrize("given, told", [({"schema": "steadyrank.audit/1"}, "schema: is 'steadyrank.audit/1'"), ([], "is 'list'")])
def test_other_files_are_refused(tmp_path, given, told):
    (tmp_path / "agreement.json").write_text(json.dumps(given))
    with pytest.raises(InputError, match=told):
        write_agreement(tmp_path / "agreement.json", tmp_path)


def test_datasets_stand_in_the_tables(page):
    text = (page[0] / "agreement.html").read_text()
    assert all(html.escape(name) in text for name in DATASETS)

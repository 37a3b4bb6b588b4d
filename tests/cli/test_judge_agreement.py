"""`steadyrank judge agreement` as a user meets it: files in, files and a verdict out, one sentence and exit code 2 for a mistake."""

import json
import sys

import pytest

from steadyrank.cli import main
from steadyrank.data.jsonl import save_examples, save_scores
from steadyrank.judging.base import JudgedList
from steadyrank.judging.files import save_judgments
from steadyrank.records import RankingExample, ScoredList

AMOUNT = 12


@pytest.fixture
def cli(monkeypatch, capsys, tmp_path):
    """Run the command in this process, in the folder of its files: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["steadyrank", "judge", "agreement", "lists.jsonl", *map(str, arguments), "--resamples", "100"])
        try:
            main.run()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        out = capsys.readouterr()
        return code, out.out, out.err

    return call


@pytest.fixture
def files(tmp_path):
    """Graded lists; a judge that is right but for one missing grade a list, its second run, one that grades by place, a scorer, swaps."""
    grades = [((0, 1, 2, 3), (3, 0, 2, 1), (1, 3, 0, 2))[at % 3] for at in range(AMOUNT)]
    ids = [f"q{at}" for at in range(AMOUNT)]
    lists = [RankingExample(f"query {at}", ["a", "b", "c", "d"], grades[at], id=ids[at], source=f"s{at % 2}") for at in range(AMOUNT)]
    save_examples(tmp_path / "lists.jsonl", lists)
    save_judgments(tmp_path / "right.jsonl", [JudgedList(i, (None, *g[1:])) for i, g in zip(ids, grades)], judge="right")
    save_judgments(tmp_path / "again.jsonl", [JudgedList(i, g) for i, g in zip(ids, grades)], judge="right")
    save_judgments(tmp_path / "place.jsonl", [JudgedList(i, (3, 2, 1, 0)) for i in ids], judge="place")
    save_scores(tmp_path / "scores.jsonl", [ScoredList(i, "scorer", tuple(5.0 * x - 40 for x in g)) for i, g in zip(ids, grades)])
    swaps = [{"schema": "steadyrank.swaps/1", "example_id": i, "a": "0", "b": "1", "first": "a", "second": "b"} for i in ids]
    (tmp_path / "swaps.jsonl").write_text("".join(json.dumps(row) + "\n" for row in swaps))
    (tmp_path / "people.tsv").write_text("".join(f"{i} 0 {k} {x}\n" for i, g in zip(ids, grades) for k, x in enumerate(reversed(g))))
    return tmp_path


def test_files_a_table_and_a_verdict(cli, files):
    code, out, err = cli("--judgments", "right.jsonl", "--judgments", "place.jsonl", "-o", "out")
    assert code == 0, err
    assert "against gold" in out and "judges against each other" in out
    assert "right: Usable with care: it orders 100% [100, 100] of document pairs" in out  # a quarter of the grades is missing
    assert "25% [25, 25] of documents have no grade" in out
    written = {path.relative_to(files / "out").as_posix() for path in (files / "out").rglob("*.*")}
    assert {"agreement.json", "agreement.html", "figures/datasets.png", "figures/confusion.svg", "figures/raters.svg"} <= written
    assert json.loads((files / "out" / "agreement.json").read_text())["schema"] == "steadyrank.agreement/1"


def test_json_is_one_object(cli, files):
    code, out, _ = cli("--judgments", "right.jsonl", "-o", "out", "--json")
    told = json.loads(out)
    assert code == 0 and told["agreement"] == json.loads((files / "out" / "agreement.json").read_text())
    assert told["verdicts"]["right"]["grade"] == "usable with care"
    assert all((files / path).exists() for path in told["files"])


def test_self_agreement_and_swaps_are_of_the_only_judge(cli, files):
    code, out, _ = cli("--judgments", "right.jsonl", "--repeat", "again.jsonl", "--swaps", "swaps.jsonl", "-o", "out")
    assert code == 0
    assert "second runs" in out and "A second run gives the same grade to 100% [100, 100] of documents" in out
    assert "keeps its preference in 0% [0, 0] of pairs, and prefers the one shown first (100% [100, 100]" in out


def test_scores_of_a_scorer_give_ranks_only(cli, files):
    code, out, _ = cli("--judgments", "scorer=scores.jsonl", "-o", "out")
    assert code == 0 and "it gives ranks only, no grades" in out
    found = json.loads((files / "out" / "agreement.json").read_text())
    assert found["scales"]["scorer"] is None and found["comparisons"][0]["overall"]["kappa"]["value"] is None
    assert found["comparisons"][0]["overall"]["spearman_query"]["value"] == pytest.approx(1)


def test_scores_with_a_scale_are_grades(cli, files):
    save_scores(files / "grades.jsonl", [ScoredList(f"q{at}", "readout", (0.2, 1.4, 2.6, 2.9), scale="grade") for at in range(AMOUNT)])
    code, out, err = cli("--judgments", "grades.jsonl", "--scale", "readout=3", "-o", "out")
    assert code == 0, err
    assert json.loads((files / "out" / "agreement.json").read_text())["comparisons"][0]["graded"] is True


def test_people_in_place_of_the_grades_of_the_lists(cli, files):
    """The qrels hold the reversed grades, so a judge that is right by the lists is wrong by them."""
    code, out, _ = cli("--judgments", "again.jsonl", "--gold", "people.tsv", "-o", "out")
    assert code == 0 and "against people" in out
    # reversed: q0 is 3 2 1 0 for people, 0 1 2 3 for the judge
    assert json.loads((files / "out" / "agreement.json").read_text())["reference"] == "people"
    code, out, _ = cli("--judgments", "again.jsonl", "--judgments", "place.jsonl", "--no-gold", "-o", "none")
    assert code == 0 and "no reference" in out and json.loads((files / "none" / "agreement.json").read_text())["verdicts"] == {}


def test_equals_signs_may_stand_in_names_of_files(cli, files):
    (files / "a=b.jsonl").write_bytes((files / "right.jsonl").read_bytes())
    assert cli("--judgments", "a=b.jsonl", "-o", "out")[0] == 0


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["--judgments", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--judgments", "right.jsonl", "--judgments", "again.jsonl"], "two judges are called 'right'; rename one"),
        (["--judgments", "right.jsonl", "--gold", "people.tsv", "--no-gold"], "--gold and --no-gold exclude each other"),
        (["--judgments", "right.jsonl", "--judgments", "place.jsonl", "--swaps", "swaps.jsonl"], "does not say which judge it is of"),
        (["--judgments", "right.jsonl", "--repeat", "other=again.jsonl"], "--repeat names 'other', which is none of the judges: right"),
        (["--judgments", "right.jsonl", "--swaps", "right.jsonl"], "right.jsonl:1: schema: is 'steadyrank.judgments/1'"),
        (["--judgments", "right.jsonl", "--scale", "gold"], "--scale gold is no NAME=NUMBER"),
        (["--judgments", "right.jsonl", "--scale", "right=2.5"], "--scale takes a whole number"),
        (["--judgments", "right.jsonl", "--scale", "right=2"], "'right' gave grade 3 to candidate"),
        (["--judgments", "right.jsonl", "--ranks", "rihgt"], "ranks only are taken from 'rihgt'"),
        (["--judgments", "right.jsonl", "--source", "zzz"], "no example has a source that starts with zzz"),
        (["--judgments", "lists.jsonl", "--judgments", "gold=right.jsonl"], "a judge and the reference are both called 'gold'"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(cli, files, arguments, told):
    code, out, err = cli(*arguments, "-o", "out")
    assert code == 2 and out == ""
    assert told in err and "Traceback" not in err
    assert len(err.strip().splitlines()) <= 2  # the line of progress, the sentence
    assert not (files / "out").exists()


def test_the_spoiled_line_of_a_file_is_named(cli, files):
    text = (files / "right.jsonl").read_text().splitlines()
    (files / "right.jsonl").write_text("\n".join([text[0], text[1].replace("null", "NaN"), *text[2:]]))
    code, _, err = cli("--judgments", "right.jsonl", "-o", "out")
    assert code == 2 and "right.jsonl:2" in err

"""`steadyrank audit` as a user meets it: files in, files out, one sentence for a mistake."""

import json
import sys

import pytest

from steadyrank.cli import main
from steadyrank.data.jsonl import save_examples, save_scores
from steadyrank.records import Presentation, RankingExample, ScoredList

SCORER = """
def first_is_best(query, documents):
    return [len(documents) - place for place in range(len(documents))]


def by_length(query, documents):
    return [float(len(document)) for document in documents]


def sometimes(query, documents):
    if documents[0].startswith("a"):
        return [1.0]
    return [float(len(document)) for document in documents]
"""


@pytest.fixture
def cli(monkeypatch, capsys):
    """Run a command in this process: (exit code, stdout, stderr)."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["steadyrank", *map(str, arguments)])
        try:
            main.run()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        out = capsys.readouterr()
        return code, out.out, out.err

    return call


@pytest.fixture
def lists(tmp_path):
    """Twelve lists of four documents, of two sources, and a file of scorers."""
    rows = []
    for n in range(12):
        documents = tuple("abcd"[k] * (n + 2 + k) for k in range(4))
        rows.append(RankingExample(f"query {n}", documents, (0, 0, 1, 2), id=f"q{n}", source=str(n % 2)))
    save_examples(tmp_path / "lists.jsonl", rows)
    (tmp_path / "mine.py").write_text(SCORER)
    return tmp_path


def test_a_pointwise_function_is_exactly_steady(cli, lists):
    code, out, err = cli("audit", lists / "lists.jsonl", f"{lists / 'mine.py'}:by_length", "-o", lists / "a", "--presentations", 4)
    assert code == 0, err
    assert "Exactly steady" in out and "grade: exactly steady" in out
    for name in ("audit.json", "scores.jsonl", "card.html", "card.png"):
        assert (lists / "a" / name).stat().st_size > 0
    assert (lists / "a" / "card.png").read_bytes()[:4] == b"\x89PNG"


def test_json_tells_grade_and_files(cli, lists):
    code, out, _ = cli(
        "audit", lists / "lists.jsonl", f"{lists / 'mine.py'}:first_is_best", "-o", lists / "a", "--json", "--presentations", 4
    )
    told = json.loads(out)
    assert code == 0 and told["grade"] == "no better than chance"
    assert told["audit"]["causes"]["shares"]["slot"] > 0.9
    assert told["audit"] == json.loads((lists / "a" / "audit.json").read_text())


def test_failures_are_counted_and_end_nothing(cli, lists):
    scorer = f"{lists / 'mine.py'}:sometimes"
    code, out, _ = cli("audit", lists / "lists.jsonl", scorer, "-o", lists / "a", "--json", "--presentations", 6)
    counts = json.loads(out)["audit"]["counts"]
    assert code == 0 and 0 < counts["failed"] < counts["asked"] and counts["failures"]


def test_a_file_of_scores_and_two_side_by_side(cli, lists):
    cli("audit", lists / "lists.jsonl", f"{lists / 'mine.py'}:first_is_best", "-o", lists / "a", "--presentations", 4)
    code, out, err = cli("audit", lists / "lists.jsonl", lists / "a" / "scores.jsonl", "-o", lists / "b", "--name", "from file")
    assert code == 0, err
    assert "needs the scorer" in out
    one, two = (json.loads((lists / name / "audit.json").read_text()) for name in "ab")
    assert one["steadiness"] == two["steadiness"] and two["system"]["name"] == "from file"
    code, out, err = cli("audit", "--compare", lists / "a" / "audit.json", lists / "b" / "audit.json", "-o", lists / "both.html")
    assert code == 0, err
    assert "from file" in (lists / "both.html").read_text() and (lists / "both.png").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["missing.jsonl", "oracle"], "no such file"),
        (["lists.jsonl", "orcale"], "did you mean 'oracle'"),
        (["lists.jsonl", "single.jsonl"], "at least two"),
        (["lists.jsonl", "oracle", "--dev", "lists.jsonl"], "never chosen on what it is reported on"),
        (["lists.jsonl", "oracle", "--kind", "shufle"], "did you mean 'shuffle'"),
        (["lists.jsonl", "oracle", "--retention", "2"], "between 0 and 1"),
        (["lists.jsonl", "oracle", "--kind", "within"], "need windows"),
        (["--compare", "lists.jsonl", "lists.jsonl"], "lists.jsonl"),
        (["--compare", "other.json", "other.json"], "give an audit.json"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(cli, lists, monkeypatch, arguments, told):
    monkeypatch.chdir(lists)
    save_scores(lists / "single.jsonl", [ScoredList(f"q{n}", "s", (1.0, 2.0, 3.0, 4.0), presentation=Presentation()) for n in range(12)])
    (lists / "other.json").write_text('{"schema": "steadyrank.study/1"}')
    code, out, err = cli("audit", *arguments)
    last = err.strip().splitlines()[-1]
    assert code == 2 and out == "" and told in last
    assert "Traceback" not in err

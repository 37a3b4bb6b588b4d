"""Examples and scored lists: each mistake in one sentence with file, line and field; large files stay small in memory."""

import json
import pickle
import subprocess
import sys

import pytest

from steadyrank import Presentation, RankingExample, ScoredList, load_examples, load_scores, save_scores
from steadyrank.data.jsonl import shuffle_stream
from steadyrank.errors import InputError, MissingDataError, NonFiniteScoreError

GOOD = {"id": "q0", "query": "q", "candidates": ["a", "b"], "relevance": [1, 0]}


def lines(path, *rows):
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ('{"query": "q"', "broken JSON"),
        ({"query": "q"}, "candidates: is missing"),
        ({"candidates": ["a"]}, "query: is missing"),
        ({**GOOD, "id": "x", "query": 5}, "query: must be text, not int"),
        ({**GOOD, "id": "x", "candidates": []}, "candidates: is empty"),
        ({**GOOD, "id": "x", "candidates": "ab"}, "candidates: must be a list, not one text"),
        ({**GOOD, "id": "x", "candidates": ["a", None]}, r"candidates\[1\]: must be text .* not null"),
        ({**GOOD, "id": "x", "candidates": ["a", {"id": "d"}]}, r"candidates\[1\]\.text: is missing"),
        ({**GOOD, "id": "x", "candidates": ["a", {"text": ["b"]}]}, r"candidates\[1\]\.text: must be text, not list"),
        ({**GOOD, "id": "x", "candidates": [{"id": 1, "text": "a"}, {"id": "1", "text": "b"}]}, r"candidates\[1\]\.id: repeats id '1'"),
        ({**GOOD, "id": "x", "relevance": [1]}, "relevance: has 1 grades for 2 candidates"),
        ({**GOOD, "id": "x", "relevance": [1, None]}, r"relevance\[1\]: must be a number, not None"),
        ({**GOOD, "id": "x", "relevance": [1, "0"]}, r"relevance\[1\]: must be a number, not '0'"),
        ({**GOOD, "id": "x", "relevance": [1, True]}, r"relevance\[1\]: must be a number, not True"),
        ({**GOOD, "id": "x", "relevance": 1}, "relevance: must be a list of grades, not a number"),
        ('{"id": "x", "query": "q", "candidates": ["a", "b"], "relevance": [1, NaN]}', r"relevance\[1\]: is NaN"),
        ('{"id": "x", "query": "q", "candidates": ["a", "b"], "relevance": [1, 1e999]}', r"relevance\[1\]: is inf"),
        ({**GOOD, "id": 1.5}, "id: must be text or a whole number, not 1.5"),
        ({**GOOD, "id": "x", "answers": "yes"}, "answers: must be a list of texts"),
        (
            {**GOOD, "id": "x", "schema": "steadyrank.scores/1"},
            "schema: is 'steadyrank.scores/1'; this reader knows 'steadyrank.example/1'",
        ),
        ({"id": "x", "query": "q", "candidates": [{"text": "a", "label": 1}, {"text": "b"}]}, r"candidates\[1\]\.label: is missing"),
        ({"id": "x", "query": "q", "docs": ["a", "b"], "labels": [1]}, "labels: has 1 labels for 2 documents"),
        ({"id": "x", "docs": ["a", "b"], "labels": [1, 0]}, "query: is missing"),
        ({"id": "x", "query": "q", "docs": "a"}, "docs: must be a list of texts"),
        (GOOD, "id: 'q0' stands on line 1 already"),
    ],
)
def test_bad_examples_are_named_by_file_line_and_field(tmp_path, row, told):
    path = lines(tmp_path / "lists.jsonl", GOOD, "", row)
    with pytest.raises(InputError, match=told) as caught:
        load_examples(path)
    assert str(caught.value).startswith(f"{path}:3: ") and "\n" not in str(caught.value)


def test_1_and_text_1_are_one_id(tmp_path):
    path = lines(tmp_path / "x.jsonl", {**GOOD, "id": 1}, {**GOOD, "id": "1"})
    with pytest.raises(InputError, match=r":2: id: '1' stands on line 1 already"):
        load_examples(path)


def test_labels_inside_candidates(tmp_path):
    row = {"query": "q", "instruction": "i", "dataset": "d", "candidates": [{"text": "a", "label": 0}, {"text": "b", "label": 2.5}]}
    example = load_examples(lines(tmp_path / "x.jsonl", row))[0]
    assert (example.source, example.instruction, example.relevance) == ("d", "i", (0.0, 2.5))
    assert not example.extra and not example.candidates[0].extra


@pytest.mark.parametrize("docs", ["docs", "documents"])
def test_columns_with_and_without_labels(tmp_path, docs):
    first, second = {"query": "q", docs: ["a", "b"], "labels": [0, 1], "more": 5}, {"query": "p", docs: ["a"]}
    graded, plain = load_examples(lines(tmp_path / "x.jsonl", first, second))
    assert (graded.documents, graded.relevance, dict(graded.extra)) == (["a", "b"], (0.0, 1.0), {"more": 5})
    assert plain.relevance is None


def test_unknown_endings_and_missing_files_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"no known format.*\.parquet"):
        load_examples(lines(tmp_path / "x.csv", "a,b"))
    with pytest.raises(MissingDataError, match="no such file or folder"):
        load_examples(tmp_path / "none.jsonl")


def test_examples_travel_to_other_processes():
    example = RankingExample("q", ["a", "b"], [1, 0])
    assert pickle.loads(pickle.dumps(example)) == example  # data loaders and process pools pickle


SCORED = ScoredList("q0", "s", (1.5, -2.0), "logit", Presentation((1, 0), "w", "m", 3), (1,), ())


def test_scored_lists_round_trip(tmp_path):
    other = ScoredList("q0", "s", (0.25, 0.5), "probability", Presentation(seed=4), (), (0,))
    save_scores(tmp_path / "s.jsonl", [SCORED, other])
    assert load_scores(tmp_path / "s.jsonl") == [SCORED, other]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ('"scores": [1.5, NaN]', r"scores\[1\]: is NaN"),
        ('"scores": [1.5, null]', r"scores\[1\]: must be a number, not null"),
        ('"scores": [1.5, "2"]', r"scores\[1\]: must be a number"),
        ('"scale": "percent"', "scale: is 'percent'; must be one of"),
        ('"presentation": {"order": [0, 0]}', "presentation.order: must be a permutation of 0 to 1"),
        ('"truncated": [2]', "truncated: must be a list of places between 0 and 1"),
        ('"schema": "steadyrank.scores/2"', "schema: is 'steadyrank.scores/2'"),
        ('"scorer": null', "scorer: is missing"),
        ('"seen": 1', "example_id: 'q0' stands on line 1 already"),
    ],
)
def test_bad_scores_are_named(tmp_path, change, told):
    save_scores(tmp_path / "s.jsonl", [SCORED])
    first = (tmp_path / "s.jsonl").read_text().strip()
    path = lines(tmp_path / "s.jsonl", first, first[:-1] + ", " + change + "}")  # of a repeated key the last one counts
    with pytest.raises(InputError, match=f":2: {told}") as caught:
        load_scores(path)
    assert isinstance(caught.value, NonFiniteScoreError) == ("NaN" in change)


def test_shuffled_stream_is_a_repeatable_permutation_in_a_bounded_buffer():
    examples = [RankingExample("q", ["a"], id=str(n)) for n in range(500)]
    names = [example.id for example in shuffle_stream(iter(examples), 50, seed=1)]
    assert sorted(names, key=int) == [example.id for example in examples] != names
    assert names == [example.id for example in shuffle_stream(examples, 50, seed=1)] != list(shuffle_stream(examples, 50, seed=2))
    assert all(place >= int(name) - 50 for place, name in enumerate(names))  # nothing can leave before it was read


@pytest.mark.slow
def test_a_large_file_streams_in_flat_memory(tmp_path):
    text = " ".join(f"word{n}" for n in range(120))
    rows = ({"id": str(n), "query": "q", "candidates": [text] * 4, "relevance": [1, 0, 0, 0]} for n in range(100_000))
    with open(tmp_path / "big.jsonl", "w") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
        out.write("{broken\n")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from steadyrank.data.jsonl import stream_examples, shuffle_stream\n"
        "from steadyrank.errors import InputError\n"
        "start, count = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0\n"
        "try:\n"
        "    for example in shuffle_stream(stream_examples(sys.argv[1]), 1000): count += 1\n"
        "except InputError as error: print(error)\n"
        "print(count, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) // 1024)\n"
    )
    told = subprocess.run([sys.executable, "-c", code, str(tmp_path / "big.jsonl")], capture_output=True, text=True, check=True).stdout
    error, counts = told.splitlines()
    assert "big.jsonl:100001: broken JSON" in error
    assert int(counts.split()[0]) == 99_000 and int(counts.split()[1]) < 60  # MiB over the start, for a file of 400 MiB


def test_reading_lists_does_not_import_torch():
    modules = ", ".join(f"steadyrank.data.{name}" for name in ("reading", "pools", "leaks", "splits", "parquet"))
    code = f"import sys, {modules}; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"


def test_drawn_orders_of_a_short_list_may_repeat(tmp_path):
    """Ten orders of two candidates repeat by necessity; the same list a second time further down is still refused."""
    shown = [ScoredList("q", "s", (1.0, float(n)), presentation=Presentation(order=(1, 0), seed=3)) for n in range(2)]
    save_scores(tmp_path / "s.jsonl", shown)
    assert load_scores(tmp_path / "s.jsonl") == shown
    save_scores(tmp_path / "s.jsonl", [shown[0], ScoredList("p", "s", (1.0,)), shown[1]])
    with pytest.raises(InputError, match=":3: example_id: 'q' stands on line 1 already"):
        load_scores(tmp_path / "s.jsonl")


def test_presentations_that_differ_in_any_field_are_different_lists(tmp_path):
    laid = [Presentation(seed=1), Presentation(seed=1, skeleton="terse"), Presentation(seed=1, dummy="0"), Presentation(seed=1, dummy="3")]
    shown = [ScoredList("q", "s", (1.0, 0.0), presentation=one) for one in laid]
    save_scores(tmp_path / "s.jsonl", shown)
    assert load_scores(tmp_path / "s.jsonl") == shown

"""Real collections through the readers; expected numbers are counted from the raw text or were published by others."""

import json
import math
import re
from collections import Counter

import pytest

from steadyrank import Candidate, RankingExample, load_examples
from steadyrank.data.beir import open_beir, write_beir
from steadyrank.data.bm25 import Bm25Index
from steadyrank.data.pools import pools_from_folder
from steadyrank.data.reading import write_examples
from steadyrank.data.trec import read_qrels, read_run, write_qrels, write_run
from steadyrank.errors import InputError


def test_cranfield_grades(shared_dir, tmp_path):
    folder = shared_dir / "data/cranfield"
    lines = (folder / "cranqrel.graded.txt").read_text().splitlines()
    with pytest.raises(InputError, match=r"cranqrel.graded.txt:316: has 2 columns"):  # its line 316 lacks the grade
        read_qrels(folder / "cranqrel.graded.txt")
    del lines[315]
    (tmp_path / "qrels").write_text("\n".join(lines))
    qrels = read_qrels(tmp_path / "qrels")  # three columns and no head
    assert len(qrels) == 225 and qrels["1"]["486"] == -1  # negative grades are kept
    assert sum(map(len, qrels.values())) == len({tuple(line.split()[:2]) for line in lines})
    assert qrels["1"]["184"] == 2 and read_qrels(folder / "cranqrel.trec.txt")["1"]["184"] == 1


def test_bm25_finds_cranfield_abstracts_by_their_titles(shared_dir):
    text = (shared_dir / "data/cranfield/cran.all.1400.xml").read_text()
    bodies = [" ".join(body.split()) for body in re.findall(r"<text>(.*?)</text>", text, re.S)]
    titles = [" ".join(title.split()) for title in re.findall(r"<title>(.*?)</title>", text, re.S)]
    index = Bm25Index(bodies)
    asked = [place for place in range(0, 1400, 20) if bodies[place]]
    hits = [place in [hit for hit, _ in index.search(titles[place], 5)] for place in asked]
    assert len(bodies) == len(titles) == 1400 and sum(hits) >= 0.95 * len(hits)  # an abstract opens with its title
    assert index.search("xyzzy plugh", 5) == []


def test_bm25_agrees_with_its_formula():
    documents = ["fox fox den", "fox hill", "whale sea deep"]  # lengths 3, 2, 3; mean 8/3
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))

    def weight(count, length):
        return idf * count / (count + 1.5 * (1 - 0.75 + 0.75 * length / (8 / 3)))

    found = dict(Bm25Index(documents).search("fox", 9))
    assert found == pytest.approx({0: weight(2, 3), 1: weight(1, 2)}, rel=1e-5)


def test_noveleval_through_every_format(shared_dir, tmp_path):
    folder = shared_dir / "data/noveleval"
    queries = dict(line.split("\t", 1) for line in (folder / "queries.tsv").read_text().splitlines())
    corpus = dict(line.split("\t", 1) for line in (folder / "corpus.tsv").read_text().split("\n") if line)
    qrels = read_qrels(folder / "qrels.txt")
    examples = [
        RankingExample(
            queries[query], tuple(Candidate(corpus[document], document) for document in judged), tuple(judged.values()), id=query
        )
        for query, judged in qrels.items()
    ]
    assert len(examples) == 21 and all(len(example.candidates) == 20 for example in examples)
    for kind, name in (("jsonl", "x.jsonl.gz"), ("parquet", "x.parquet")):
        write_examples(tmp_path / name, examples, kind=kind)
        assert load_examples(tmp_path / name) == examples  # ids, order, grades and odd Unicode
    write_examples(tmp_path / "folder", examples, kind="beir")
    again = open_beir(tmp_path / "folder")
    assert again.qrels == qrels and {key: value.text for key, value in again.corpus.items()} == corpus
    write_examples(tmp_path / "qrels", examples, kind="trec-qrels")
    assert read_qrels(tmp_path / "qrels") == qrels


def test_instructir_folder_as_lists(shared_dir):
    folder = shared_dir / "data/instructir-msmarco"
    examples = load_examples(folder)
    assert len(examples) == 1743 and {len(example.candidates) for example in examples} == {1}
    first = json.loads((folder / "queries.jsonl").read_text().splitlines()[0])
    assert examples[0].query == first["text"] and examples[0].candidates[0].id == "7067677"


def test_trec_eval_files_with_words_after_the_tag(shared_dir):
    folder = shared_dir / "data/trec_eval_goldens"
    raw = [line.split() for line in (folder / "results.trunc").read_text().splitlines()]
    run = read_run(folder / "results.trunc")
    assert {query: len(scores) for query, scores in run.items()} == dict(Counter(row[0] for row in raw))
    assert run["301"]["FBIS3-27619"] == 2.138276
    judged = read_qrels(folder / "qrels.rel_level")
    relevant = sum(grade > 0 for grades in read_qrels(folder / "qrels.test").values() for grade in grades.values())
    assert relevant == 561 and max(judged["301"].values()) > 1  # num_rel of out.test


def test_grades_and_scores_read_back_as_the_same_numbers(tmp_path):
    exact = {"q": {"a": 0.1234567890123, "b": 1e-9, "c": 1234567.5, "d": -1.0}}
    write_qrels(tmp_path / "qrels", exact)
    write_run(tmp_path / "run", exact)
    assert read_qrels(tmp_path / "qrels") == exact == read_run(tmp_path / "run")
    assert "q 0 d -1\n" in (tmp_path / "qrels").read_text()
    with pytest.raises(InputError, match="white space"):
        write_run(tmp_path / "run", {"a b": {"d": 1.0}})


def test_parquet_keeps_all_an_example_holds(tmp_path):
    example = RankingExample(
        "q", (Candidate("a", "d1", "T", {"url": "u"}), Candidate("")), (0.5, -1), "i", "x", "s", "test", "g", ("yes",), {"made": [1, None]}
    )
    plain = RankingExample("p", ("only",))
    write_examples(tmp_path / "x.parquet", iter([example, plain]), kind="parquet")
    back, other = load_examples(tmp_path / "x.parquet")
    assert (back, other) == (example, plain)
    assert dict(back.extra) == {"made": [1, None]} and dict(back.candidates[0].extra) == {"url": "u"} and not back.candidates[1].extra


def test_parquet_of_others(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table(
        {"query": ["q", "p"], "docs": [["a", "b"], ["c"]], "labels": [[1.0, float("nan")], [0.0]], "extra": ["note", None]}
    )
    parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"x\.parquet:1: relevance\[1\]: is nan"):
        load_examples(tmp_path / "x.parquet")
    parquet.write_table(table.slice(1), tmp_path / "x.parquet")
    assert load_examples(tmp_path / "x.parquet")[0].documents == ["c"]
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(InputError, match="not a Parquet file"):
        load_examples(tmp_path / "x.parquet")


@pytest.fixture
def folder(tmp_path):
    """Query q1: positive d1 with a copy d2 under another id, a negative d3, and a document named as the query itself."""
    candidates = [Candidate("red fox", "d1"), Candidate("blue fox", "d3")]
    write_beir(
        tmp_path, [RankingExample("fox", candidates, (1, 0), id="q1"), RankingExample("whale", [Candidate("sea", "d5")], (1,), id="q2")]
    )
    with open(tmp_path / "corpus.jsonl", "a") as out:
        out.write('{"_id": "d2", "title": "", "text": "Red  FOX"}\n{"_id": "q1", "title": "", "text": "fox"}\n')
    (tmp_path / "run").write_text("q1 Q0 q1 1 9 t\nq1 Q0 d2 2 8 t\nq1 Q0 d1 3 7 t\nq1 Q0 d3 4 6 t\nq9 Q0 q1 1 1 t\n")
    return tmp_path


def pooled(folder, **options):
    pools = pools_from_folder(folder, run=folder / "run", keep_order=True, **options)
    return {example.id: example.candidate_ids for example in pools.examples}, pools.counts


def test_pools_count_what_is_left_out(folder):
    lists, counts = pooled(folder)
    assert lists == {"q1": ["q1", "d2", "d1", "d3"]}
    assert (counts["queries"], counts["without_candidates"], counts["positives_missed"]) == (2, 1, 1)  # q2 is not in the run
    assert (counts["unjudged"], counts["run_queries_unjudged"]) == (2, 1)  # q1 and d2; q9


def test_a_query_leaves_its_own_pool_before_the_cut(folder):
    lists, counts = pooled(folder, top_k=2, drop_self=True)
    assert lists == {"q1": ["d2", "d1"]} and counts["self_dropped"] == 1


def test_copies_of_positives_are_no_negatives(folder):
    lists, counts = pooled(folder, drop_copies=True)
    assert lists == {"q1": ["q1", "d1", "d3"]} and counts["copies_dropped"] == 1


def test_ties_in_a_run_fall_as_in_trec_eval(folder):
    (folder / "run").write_text("q1 Q0 d1 1 1 t\nq1 Q0 d3 2 1 t\nq1 Q0 d2 3 1 t\n")
    assert pooled(folder)[0] == {"q1": ["d3", "d2", "d1"]}  # equal scores: document names from the last


def test_pools_refuse_a_run_of_other_queries_or_documents(folder):
    (folder / "run").write_text("01 Q0 d1 1 1 t\n")
    with pytest.raises(InputError, match="shares no query with the qrels"):
        pooled(folder)
    (folder / "run").write_text("q1 Q0 d7 1 1 t\n")
    with pytest.raises(InputError, match="'d7' for query 'q1'"):
        pooled(folder)


@pytest.mark.parametrize(
    ("name", "row", "told"),
    [
        ("queries.jsonl", '{"_id": "q3"}', "queries.jsonl:3: text: must be text, not None"),
        ("queries.jsonl", '{"text": "q"}', "queries.jsonl:3: _id: is missing"),
        ("corpus.jsonl", '{"_id": "d9", "text": 5}', "corpus.jsonl:6: text: must be text, not 5"),
        ("corpus.jsonl", '{"_id": "d1", "text": "x"}', "corpus.jsonl:6: repeats _id 'd1' of line 1"),
    ],
)
def test_bad_rows_of_a_folder_are_named(folder, name, row, told):
    with open(folder / name, "a") as out:
        out.write(row + "\n")
    with pytest.raises(InputError, match=told):
        open_beir(folder)

"""Readers of public benchmark files: what each row becomes, on small files written here and on the real ones where they are at hand."""

import json

import numpy as np
import pytest

from steadyrank.data.benchmarks import BENCHMARKS, read_benchmark
from steadyrank.errors import ConfigError, InputError

HOTPOT = {
    "_id": "q1",
    "question": "Who?",
    "answer": "Bo",
    "supporting_facts": [["B", 0], ["B", 1], ["C", 0]],
    "context": [["A", ["One.", " Two."]], ["B", ["Bo did."]], ["C", [""]]],
    "type": "bridge",
}
RM = {"id": 8, "prompt": "Do it", "chosen": ["good", "good too"], "rejected": ["bad"], "subset": "x"}
LLMBAR = {"input": "Do it", "output_1": "no", "output_2": "yes", "label": 2}
SUMMEVAL = {
    "reviews": {"rev1": "fine", "rev2": "broke"},
    "summaries": {
        "human": {"summary": "h", "dimensions": {"Fluency": 5, "Coherence": 2}},
        "bot": {"summary": "b", "dimensions": {"Fluency": 1, "Coherence": 2}},
    },
}


def written(tmp_path, rows, *, lines):
    path = tmp_path / ("rows.jsonl" if lines else "rows.json")
    path.write_text("\n".join(map(json.dumps, rows)) if lines else json.dumps(rows))
    return path


def by_id(example):
    return dict(zip(example.candidate_ids, zip(example.documents, example.relevance, strict=True), strict=True))


@pytest.mark.parametrize("lines", [True, False])
def test_hotpotqa_keeps_order_titles_and_support(tmp_path, lines):
    (example,) = read_benchmark("hotpotqa", written(tmp_path, [HOTPOT], lines=lines))
    assert example.documents == ["A One. Two.", "B Bo did.", "C "]
    assert example.relevance == (0.0, 1.0, 1.0)
    assert (example.id, example.answers, example.extra["type"]) == ("q1", ("Bo",), "bridge")


def test_grades_follow_their_response_through_the_shuffle(tmp_path):
    path = written(tmp_path, [{**RM, "id": number} for number in range(20)], lines=False)
    examples = read_benchmark("rm-bench", path)
    assert all(by_id(one) == {"chosen-0": ("good", 3.0), "chosen-1": ("good too", 3.0), "rejected-0": ("bad", 0.0)} for one in examples)
    firsts = {one.candidate_ids[0] for one in examples}
    assert len(firsts) == 3  # the better responses do not always stand first
    assert read_benchmark("rm-bench", path) == examples
    assert read_benchmark("rm-bench", path, seed=None)[5].candidate_ids == ["chosen-0", "chosen-1", "rejected-0"]


def test_llmbar_label_names_the_preferred_output_and_inputs_are_grouped(tmp_path):
    examples = read_benchmark("llmbar", written(tmp_path, [LLMBAR, {**LLMBAR, "label": 1}, {**LLMBAR, "input": "Other"}], lines=False))
    assert by_id(examples[0]) == {"output-1": ("no", 0.0), "output-2": ("yes", 3.0)}
    assert by_id(examples[1])["output-1"] == ("no", 3.0)
    assert examples[0].group == examples[1].group != examples[2].group


def test_summeval_grades_are_means_or_one_dimension(tmp_path):
    path = written(tmp_path, [SUMMEVAL], lines=True)
    (example,) = read_benchmark("summeval-op", path)
    assert by_id(example) == {"human": ("h", 3.5), "bot": ("b", 1.5)}
    assert example.query == "fine\nbroke"
    assert by_id(read_benchmark("summeval-op", path, dimension="Fluency")[0])["bot"] == ("b", 1.0)
    with pytest.raises(InputError, match="lacks 'Wit'"):
        read_benchmark("summeval-op", path, dimension="Wit")


@pytest.mark.parametrize(
    ("name", "row", "match"),
    [
        ("hotpotqa", {**HOTPOT, "answer": None}, "answer"),
        ("hotpotqa", {**HOTPOT, "supporting_facts": [["Z", 0]]}, "Z"),
        ("hotpotqa", {**HOTPOT, "context": [["A"]]}, r"context\[0\]"),
        ("rm-bench", {**RM, "chosen": ["good", 3]}, r"chosen\[1\]"),
        ("llmbar", {**LLMBAR, "label": 0}, "label"),
        ("summeval-op", {**SUMMEVAL, "summaries": {"h": {"summary": "h", "dimensions": {"Fluency": "5"}}}}, "summaries.h.dimensions"),
    ],
)
def test_a_broken_row_names_file_row_and_field(tmp_path, name, row, match):
    good = {"hotpotqa": {**HOTPOT, "_id": "q0"}, "rm-bench": {**RM, "id": 0}, "llmbar": LLMBAR, "summeval-op": SUMMEVAL}[name]
    path = written(tmp_path, [good, row], lines=True)
    with pytest.raises(InputError, match=match) as error:
        read_benchmark(name, path)
    assert f"{path}:2" in str(error.value)


def test_empty_files_repeated_ids_and_unknown_names(tmp_path):
    with pytest.raises(InputError, match="no example"):
        read_benchmark("rm-bench", written(tmp_path, [], lines=False))
    with pytest.raises(InputError, match="q1"):
        read_benchmark("hotpotqa", written(tmp_path, [HOTPOT, HOTPOT], lines=True))
    with pytest.raises(ConfigError, match="did you mean 'rm-bench'"):
        read_benchmark("rmbench", tmp_path)


FILES = {
    "hotpotqa": ("hotpotqa/hotpot.json", 200),
    "rm-bench": ("rm-bench/chat_filtered.json", 129),
    "summeval-op": ("summeval-op/summeval-op.jsonl", 32),
}


@pytest.mark.parametrize("name", FILES)
def test_real_files(shared_dir, name):
    file, amount = FILES[name]
    examples = read_benchmark(name, shared_dir / "data" / file)
    assert len(examples) == amount
    assert all(max(one.relevance) > min(one.relevance) or len(one.candidates) == 2 for one in examples)
    if name == "rm-bench":
        assert {tuple(sorted(one.relevance)) for one in examples} == {(0.0,) * 3 + (3.0,) * 3}
    if name == "summeval-op":
        assert {len(one.candidates) for one in examples} == {13}
        assert 1 <= np.min([one.relevance for one in examples]) <= np.max([one.relevance for one in examples]) <= 5


def test_real_llmbar_files(shared_dir):
    files = sorted((shared_dir / "data" / "llmbar").glob("*.json"))
    assert sum(len(read_benchmark("llmbar", file)) for file in files) == 833


def test_every_reader_is_there():
    from steadyrank.names import load

    assert all(callable(load(target)) for target in BENCHMARKS.values())

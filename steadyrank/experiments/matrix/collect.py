"""From the score files of an experiment to its result files: evaluations, seeds, comparisons, profiles, flips, and the index.

evaluations/<split>/<system>.json         an arm's value of a query is the mean over its seeds; intervals draw queries (or their groups)
evaluations/<split>/cells/<cell>.json     one seed each
seeds/<split>.json                        mean and spread over seeds
comparisons/<family>/<split>.json         paired differences of such means; Holm over the family, each measure by itself
profiles/<split>.json                     correlations between the systems' values of the same queries
flips/<split>/<a>..<b>.json               lists whose top document changes, with the number of seeds that agree
experiment.json                           systems, splits, cells and their state
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steadyrank.data.jsonl import load_scores
from steadyrank.evaluation import Comparison, Evaluation, compare_family, evaluate, reference_rows
from steadyrank.experiments.matrix import state
from steadyrank.experiments.matrix.flips import mined
from steadyrank.experiments.matrix.index import write_index
from steadyrank.experiments.matrix.lists import evaluated
from steadyrank.experiments.matrix.means import averaged, profiles, spread
from steadyrank.experiments.matrix.pairs import Family, families_of
from steadyrank.experiments.matrix.plan import Job, Plan
from steadyrank.files import write_json
from steadyrank.records import RankingExample, ScoredList

Say = Callable[[str], None]
_FOLDERS = ("evaluations", "seeds", "comparisons", "profiles", "flips")


class Results:
    """The result files of one collection; what an earlier one left and this one did not write is removed at its end."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.written: set[Path] = set()

    def write(self, name: str, value: Any) -> None:
        write_json(self.folder / name, value)
        self.written.add(self.folder / name)

    def forget_others(self) -> None:
        for path in [path for name in _FOLDERS for path in (self.folder / name).rglob("*.json")]:
            if path not in self.written:
                path.unlink()


@dataclass
class Collected:
    """Evaluations by split and system: those of whole arms, and those of the cells of each arm by seed."""

    systems: dict[str, dict[str, Evaluation]]
    cells: dict[str, dict[str, dict[int, Evaluation]]]
    scores: dict[str, dict[str, dict[int, list[ScoredList]]]]  # split, system, seed; a system without seeds has seed 0


def collect(plan: Plan, say: Say) -> Collected:
    """Write all result files from the scores that are there; what is not done yet is left out, and the index says so."""
    lists, results = evaluated(plan), Results(plan.folder)
    found = _evaluated(plan, results, lists)
    for split, systems in found.systems.items():
        _write_spread(plan, results, split, found)
        _write_profiles(plan, results, split, systems)
    families = families_of(plan)
    for family in families:
        for split in lists:
            _compare(plan, results, family, split, found)
    for name, flips in mined(families, found.scores, lists):
        results.write(name, flips)
    results.forget_others()
    write_index(plan, families, found.systems, found.cells, lists)
    say(f"evaluated {', '.join(f'{len(systems)} systems on {split}' for split, systems in found.systems.items())}")
    return found


def _evaluated(plan: Plan, results: Results, lists: Mapping[str, Sequence[RankingExample]]) -> Collected:
    out = Collected({split: {} for split in lists}, {split: {} for split in lists}, {split: {} for split in lists})
    files = _score_files(plan)
    for split, examples in lists.items():
        rows = reference_rows(examples, plan.matrix.measures, split=split)
        for system in plan.systems:
            if system.role == "reference":
                out.systems[split][system.name] = rows[system.name]
                continue
            by_seed = {seed: load_scores(path) for seed, path in files[split].get(system.name, {}).items()}
            found = {
                seed: evaluate(scored, examples, plan.matrix.measures, system=system.name, split=split) for seed, scored in by_seed.items()
            }
            if not found:
                continue
            out.scores[split][system.name] = by_seed
            out.systems[split][system.name] = averaged(list(found.values())) if system.arm is not None else found[0]
            if system.arm is not None:
                out.cells[split][system.name] = found
        for name, evaluation in out.systems[split].items():
            results.write(f"evaluations/{split}/{name}.json", evaluation.to_json())
        for cell in plan.cells:
            one = out.cells[split].get(cell.arm.name, {}).get(cell.seed)
            if one is not None:
                results.write(f"evaluations/{split}/cells/{cell.name}.json", replace(one, system=cell.name).to_json())
    return out


def _score_files(plan: Plan) -> dict[str, dict[str, dict[int, Any]]]:
    """Score files by split, system and seed, of the jobs that are done."""
    out: dict[str, dict[str, dict[int, Any]]] = {split: {} for split in plan.matrix.evaluate}
    owners = {Job(cell.name, "cell"): (cell.arm.name, cell.seed) for cell in plan.cells}
    owners |= {job: (job.name.removeprefix("baseline-"), 0) for job in plan.jobs if job.kind == "baseline"}
    for job, (system, seed) in owners.items():
        record = state.read_record(plan.folder, job.name)
        if record is None or not state.is_done(plan, job):
            continue
        for split, path in record.scores.items():
            if split in out and (plan.folder / path).is_file():
                out[split].setdefault(system, {})[seed] = plan.folder / path
    return out


def _write_spread(plan: Plan, results: Results, split: str, found: Collected) -> None:
    rows = {name: {measure: spread(seeds, measure) for measure in plan.matrix.measures} for name, seeds in found.cells[split].items()}
    results.write(f"seeds/{split}.json", {"schema": "steadyrank.seeds/1", "split": split, "systems": rows})


def _compare(plan: Plan, results: Results, family: Family, split: str, found: Collected) -> None:
    systems = found.systems[split]
    pairs = [(systems[a], systems[b]) for a, b in family.pairs if a in systems and b in systems]
    rows: list[Comparison] = []
    for measure in plan.matrix.measures:
        rows += compare_family(pairs, measure)
    written = [{**row.to_json(), "by_seed": _by_seed(found, split, row)} for row in rows]
    content = {"schema": "steadyrank.comparisons/1", "title": family.title, "family": written}
    results.write(f"comparisons/{family.name}/{split}.json", content)


def _by_seed(found: Collected, split: str, row: Comparison) -> dict[str, float]:
    """The mean difference of every seed that both have; a system without seeds stands beside every seed of the other."""
    of_a, of_b = (found.cells[split].get(name, {}) for name in (row.a, row.b))
    seeds = sorted(of_a.keys() & of_b.keys() if of_a and of_b else of_a.keys() | of_b.keys())
    whole_a, whole_b = (found.systems[split][name] for name in (row.a, row.b))
    return {str(seed): of_a.get(seed, whole_a).mean(row.measure) - of_b.get(seed, whole_b).mean(row.measure) for seed in seeds}


def _write_profiles(plan: Plan, results: Results, split: str, systems: Mapping[str, Evaluation]) -> None:
    shown = {system.name: systems[system.name] for system in plan.systems if system.role != "reference" and system.name in systems}
    starts = {system.name: system.start for system in plan.systems if system.start in systems and system.name in systems}
    found = profiles(shown, {name: start for name, start in starts.items() if start is not None}, plan.matrix.headline)
    results.write(f"profiles/{split}.json", {"schema": "steadyrank.profiles/1", "split": split, "measure": plan.matrix.headline, **found})

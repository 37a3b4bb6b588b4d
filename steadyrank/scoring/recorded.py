"""`recorded`: scored lists made elsewhere, as a scorer of the examples that they name.

The file is `steadyrank.scores/1` (docs/formats.md). Nothing is computed: an example or a presentation that the file does not hold is
missing, counted in `failures`, and never scored some other way. Lists are found by example id; each needs as many scores as candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from steadyrank import files
from steadyrank.data.jsonl import load_scores
from steadyrank.errors import ConfigError, InputError, RunError, unknown_name
from steadyrank.records import Presentation, RankingExample, ScoredList
from steadyrank.scoring.base import PairScore, Scorer
from steadyrank.scoring.outside import ON_FAILURE, Failure

_LAID = ("windows", "markers", "skeleton", "dummy")  # of a presentation, besides its order; the seed only says where the order came from


class Recorded(Scorer):
    """The scored lists of a file.

    path:       the file.
    scorer:     which scorer's lists, where the file holds several.
    name:       of this scorer; None: as in the file.
    on_failure: "skip" leaves a missing list out and counts it; "raise" ends the job. A file that holds none of the examples always does.
    """

    reads_lists, floor = True, None

    def __init__(self, path: str | Path, *, scorer: str | None = None, name: str | None = None, on_failure: str = "skip"):
        if on_failure not in ON_FAILURE:
            raise ConfigError(f"on_failure is {on_failure!r}; must be one of {', '.join(ON_FAILURE)}")
        lists = load_scores(path)
        found = list(dict.fromkeys(scored.scorer for scored in lists))
        if not found:
            raise InputError("holds no scored list", path=path)
        if scorer is None and len(found) > 1:
            raise InputError(f"holds lists of {len(found)} scorers; choose one with scorer: {', '.join(found)}", path=path)
        if scorer is not None and scorer not in found:
            raise unknown_name(f"scorer in {path}", scorer, found)
        kept = [scored for scored in lists if scored.scorer == (scorer or found[0])]
        scales = sorted({scored.scale for scored in kept})
        if len(scales) > 1:
            raise InputError(f"mixes the scales {' and '.join(scales)}; lists of one scorer have one", path=path)
        self.path, self.on_failure = Path(path), on_failure
        self.name, self.scale = name or kept[0].scorer, kept[0].scale
        self.failures: list[Failure] = []
        self._source = scorer or found[0]
        self._lists: dict[str, list[ScoredList]] = {}
        for scored in kept:
            self._lists.setdefault(scored.example_id, []).append(scored)

    @property
    def fingerprint(self) -> str:
        """The file's bytes and the scorer chosen."""
        return files.fingerprint(["recorded", files.file_digest(self.path), self._source])

    @property
    def example_ids(self) -> list[str]:
        """The examples that the file holds, in its order."""
        return list(self._lists)

    def presentations_of(self, example: RankingExample) -> list[Presentation]:
        """The presentations under which the file holds scores of this example; none for an example that it does not hold."""
        return [scored.presentation for scored in self._of(example)]

    def score_examples(
        self, examples: Sequence[RankingExample], *, presentations: int = 1, seed: int = 0, progress: bool = False
    ) -> list[ScoredList]:
        """All that the file holds of these examples: the file says how many presentations, and which; `presentations` and `seed` do not."""
        laid = [self.presentations_of(example) for example in examples]
        self._some(examples, [example for example, row in zip(examples, laid, strict=True) if row])
        for example, row in zip(examples, laid, strict=True):
            if not row:
                self._miss(example, 0, "is not in the file")
        return [self._named(scored, example) for example in examples for scored in self._of(example)]

    def score_presentations(
        self, examples: Sequence[RankingExample], laid: Sequence[Sequence[Presentation]], *, progress: bool = False
    ) -> list[list[ScoredList]]:
        """The recorded scores under these very presentations; those that the file does not hold are left out and counted."""
        self._some(examples, [example for example in examples if self._of(example)])
        rows = []
        for example, presentations in zip(examples, laid, strict=True):
            size = len(example.candidates)
            held = {_key(scored.presentation, size): scored for scored in self._of(example)}
            row = []
            for index, presentation in enumerate(presentations):
                scored = held.get(_key(presentation, size))
                if scored is None:
                    self._miss(example, index, "is not in the file under this presentation" if held else "is not in the file")
                else:
                    row.append(self._named(scored, example))
            rows.append(row)
        return rows

    def _score_lists(self, examples: Sequence[RankingExample], *, progress: bool = False, named: bool = True) -> list[list[PairScore]]:
        out = []
        for example in examples:
            size = len(example.candidates)
            scored = next((one for one in self._of(example) if _key(one.presentation, size)[0] == tuple(range(size))), None)
            if scored is None:
                raise RunError(
                    f"{self.path} holds no scores in canonical order of example {example.id!r}; a recorded scorer cannot score it"
                )
            out.append([PairScore(score) for score in scored.scores])
        return out

    def _of(self, example: RankingExample) -> list[ScoredList]:
        held = self._lists.get(example.id, [])
        for scored in held:
            if len(scored.scores) != len(example.candidates):
                told = f"holds {len(scored.scores)} scores of example {example.id!r}, which has {len(example.candidates)} candidates"
                raise InputError(f"{told}; the file was made with other pools", path=self.path)
        return held

    def _named(self, scored: ScoredList, example: RankingExample) -> ScoredList:
        return ScoredList(
            example.id, self.name, scored.scores, scored.scale, scored.presentation, truncated=scored.truncated, empty=scored.empty
        )

    def _some(self, examples: Sequence[RankingExample], held: Sequence[RankingExample]) -> None:
        if examples and not held:
            here, there = ", ".join(repr(example.id) for example in examples[:2]), ", ".join(map(repr, self.example_ids[:2]))
            raise InputError(f"holds none of these {len(examples)} examples (asked: {here}; held: {there}); check the ids", path=self.path)

    def _miss(self, example: RankingExample, index: int, reason: str) -> None:
        if self.on_failure == "raise":
            raise RunError(f"example {example.id!r}, presentation {index}: {reason} {self.path}")
        self.failures.append(Failure(example.id, index, reason))


def _key(presentation: Presentation, size: int) -> tuple[object, ...]:
    order = tuple(range(size)) if presentation.order is None else presentation.order
    return (order, *(getattr(presentation, name) for name in _LAID))

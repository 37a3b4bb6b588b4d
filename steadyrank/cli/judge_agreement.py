"""`steadyrank judge agreement`: how far judges agree with a reference, with each other and with themselves, and a verdict on each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from steadyrank.cli.output import AsJson, Seed, emit, say, show_table
from steadyrank.errors import ConfigError

if TYPE_CHECKING:
    from steadyrank.judging.agreement import Agreement, AgreementSettings
    from steadyrank.judging.agreement.files import Given
    from steadyrank.records import RankingExample

_FILE = "Judgments, scored lists (ranks only), graded lists or TREC qrels, as FILE or NAME=FILE"


class Judges(NamedTuple):
    """Everything that was given to compare."""

    judges: dict[str, Given]
    gold: Given | None
    again: dict[str, Given]


def agreement(
    lists: Annotated[str, typer.Argument(help="The lists that were judged: a file or folder, or packaged:test.")],
    judgments: Annotated[list[str], typer.Option("--judgments", help=f"What a judge said. {_FILE}; repeatable.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for agreement.json, agreement.html and figures/.")],
    gold: Annotated[str | None, typer.Option(help=f"What judges are held against, in place of the lists' own grades. {_FILE}.")] = None,
    no_gold: Annotated[bool, typer.Option("--no-gold", help="Compare judges with each other only.")] = False,
    repeat: Annotated[list[str] | None, typer.Option(help="A second run of a judge, as FILE or JUDGE=FILE; repeatable.")] = None,
    swaps: Annotated[list[str] | None, typer.Option(help="Pairs judged in both orders, as FILE or JUDGE=FILE; repeatable.")] = None,
    scale: Annotated[list[str] | None, typer.Option(help="The highest grade of a rater, e.g. gold=1; repeatable.")] = None,
    relevant: Annotated[list[str] | None, typer.Option(help="The grade from which a rater calls a document relevant, e.g. gold=1.")] = None,
    ranks: Annotated[list[str] | None, typer.Option(help="A rater whose numbers only order documents; repeatable.")] = None,
    source: Annotated[list[str] | None, typer.Option("--source", help="Keep lists whose source starts with this; repeatable.")] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Resamples of the lists behind every interval.")] = 10_000,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Find out how far judges can be trusted: agreement, direction of errors, order, and a verdict on each.

    Example: steadyrank judge agreement packaged:test --judgments judge.jsonl --judgments teacher=scores.jsonl -o agreement
    """
    from steadyrank.data.selecting import examples_of
    from steadyrank.judging.agreement import judge_agreement

    if gold and no_gold:
        raise ConfigError("--gold and --no-gold exclude each other; drop one of them")
    examples = examples_of(lists, sources=source or ())
    given = _read(examples, judgments, gold, repeat or ())
    settings = _settings(given, scale or (), relevant or (), ranks or (), resamples=resamples, seed=seed)
    say(f"comparing {', '.join(given.judges)}; {resamples} resamples of the lists")
    found = judge_agreement(
        examples,
        {name: one.rows for name, one in given.judges.items()},
        against=(given.gold.name, given.gold.rows) if given.gold else None,
        has_reference=not no_gold,
        again={name: one.rows for name, one in given.again.items()},
        swaps=_swaps(swaps or (), list(given.judges)),
        settings=settings,
    )
    found.write(output / "agreement.json")
    from steadyrank.reports.agreement import write_agreement

    files = [output / "agreement.json", *write_agreement(found.to_json(), output)]
    if not as_json:
        _show(found)
    told = {"verdicts": found.verdicts, "files": [str(path) for path in files], "agreement": found.to_json()}
    emit(told, as_json=as_json, lines=[*_lines(found), f"written: {output / 'agreement.html'}, agreement.json, figures/"])


def _read(examples: Sequence[RankingExample], judgments: Sequence[str], gold: str | None, repeat: Sequence[str]) -> Judges:
    from steadyrank.judging.agreement.files import read_raters

    judges: dict[str, Given] = {}
    for name, path in map(_named, judgments):
        for one in read_raters(path, examples, name=name):
            if one.name in judges:
                raise ConfigError(f"two judges are called {one.name!r}; rename one with --judgments NAME={path}, or give it as --repeat")
            judges[one.name] = one
    reference = None
    if gold:
        name, path = _named(gold)
        several = read_raters(path, examples, name=name)
        if len(several) > 1:
            raise ConfigError(f"{path} holds {len(several)} judges; choose one: --gold {several[0].name}={path}")
        reference = several[0]
    again: dict[str, Given] = {}
    for name, path in map(_named, repeat):
        for one in read_raters(path, examples, name=name):
            judge = _judge_of("--repeat", one.name if name or one.name in judges else None, path, list(judges))
            if judge in again:
                raise ConfigError(f"two second runs are given of {judge!r}; give one")
            again[judge] = one
    return Judges(judges, reference, again)


def _swaps(given: Sequence[str], judges: Sequence[str]) -> dict[str, Any]:
    from steadyrank.judging.agreement import load_swaps

    out: dict[str, Any] = {}
    for name, path in map(_named, given):
        judge = _judge_of("--swaps", name, path, judges)
        if judge in out:
            raise ConfigError(f"two files of swaps are given of {judge!r}; give one")
        out[judge] = load_swaps(path)
    return out


def _judge_of(option: str, name: str | None, path: str, judges: Sequence[str]) -> str:
    """The judge that a file belongs to; without a name that of the only judge."""
    if name is None and len(judges) > 1:
        raise ConfigError(f"{option} {path} does not say which judge it is of; give {option} NAME={path}, NAME one of: {', '.join(judges)}")
    if name is not None and name not in judges:
        raise ConfigError(f"{option} names {name!r}, which is none of the judges: {', '.join(judges)}")
    return name or judges[0]


def _settings(
    given: Judges, scale: Sequence[str], relevant: Sequence[str], ranks: Sequence[str], *, resamples: int, seed: int
) -> AgreementSettings:
    from steadyrank.judging.agreement import AgreementSettings

    tops = {name: _number("--scale", pair, text) for pair, (name, text) in zip(scale, map(_named, scale), strict=True)}
    grades = {name: _number("--relevant", pair, text) for pair, (name, text) in zip(relevant, map(_named, relevant), strict=True)}
    if any(top != int(top) for top in tops.values()):
        raise ConfigError("--scale takes a whole number, the highest grade of the rater, e.g. gold=3")
    raters = [*given.judges.values(), *([given.gold] if given.gold else [])]
    ungraded = [one.name for one in raters if not one.is_graded and one.name not in tops]
    return AgreementSettings(
        tops={str(name): int(top) for name, top in tops.items()},
        relevant={str(name): grade for name, grade in grades.items()},
        ranks=list(dict.fromkeys([*ungraded, *ranks])),
        resamples=resamples,
        seed=seed,
    )


def _named(text: str) -> tuple[str | None, str]:
    """NAME=FILE as (name, file); a file whose own name holds the sign comes first."""
    name, sign, path = text.partition("=")
    if not sign or not name or not path or Path(text).exists():
        return None, text
    return name, path


def _number(option: str, pair: str, text: str) -> float:
    try:
        if "=" not in pair:
            raise ValueError
        return float(text)
    except ValueError:
        raise ConfigError(f"{option} {pair} is no NAME=NUMBER, e.g. {option} gold=1") from None


def _show(found: Agreement) -> None:
    """A line a comparison."""
    from steadyrank.judging.agreement.sentences import percent, value

    heads = {"accuracy": percent, "kappa_quadratic": value, "spearman_query": value, "pairs": percent, "missing_b": percent}
    names = ["", "documents", "same grade", "weighted κ", "Spearman by list", "pairs alike", "no grade"]
    for kind, title in (("reference", f"against {found.reference}"), ("judges", "judges against each other"), ("again", "second runs")):
        rows = []
        for item in (item for item in found.comparisons if item["kind"] == kind):
            cells = item["overall"]
            label = f"{item['a']} and {item['b']}" if kind == "judges" else item["b"]
            written = [write(cells[name]) if cells[name]["value"] is not None else "n/a" for name, write in heads.items()]
            rows.append([label, str(item["documents"]), *written])
        if rows:
            show_table(title, names, rows)


def _lines(found: Agreement) -> list[str]:
    lines = []
    for name, verdict in found.verdicts.items():
        lines += [f"{name}: {verdict['headline']}", *(f"  {sentence}" for sentence in verdict["sentences"])]
    if found.data["not_judged"]:
        lines.append(
            f"note: {found.data['not_judged']} lists have no row of any judge and are left out; {found.data['lists']} are compared"
        )
    for name, counts in found.counts.items():
        left = {"lists without a row": counts["lists_without_row"], "rows for other lists": counts["rows_for_other_lists"]}
        told = ", ".join(f"{count} {what}" for what, count in left.items() if count)
        lines += [f"note: {name} has {told}"] if told else []
    return lines + [f"note: {note}" for note in found.notes]

"""`steadyrank audit`: how often decisions on a scorer's scores flip when only the presentation changes, and the card that shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from steadyrank.cli.output import AsJson, Seed, emit, say
from steadyrank.errors import InputError


def audit(
    examples: Annotated[str, typer.Argument(help="Lists (file, folder, packaged:test); with --compare an audit.json.")],
    scorer: Annotated[str, typer.Argument(help="What `score` takes, a rerank URL, file.py:function, or a file of scored lists.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The folder for the results; with --compare a page.")] = None,
    is_compare: Annotated[bool, typer.Option("--compare", help="Put two audits side by side: the arguments are two audit.json.")] = False,
    dev: Annotated[str | None, typer.Option(help="Lists the threshold is chosen on; without it half of the lists.")] = None,
    threshold: Annotated[float | None, typer.Option(help="A threshold fixed beforehand, on the scorer's scale.")] = None,
    retention: Annotated[float | None, typer.Option(help="Share kept at the matched-retention point.")] = None,
    presentations: Annotated[int, typer.Option(min=2, help="Orders of each list.")] = 10,
    kind: Annotated[str, typer.Option(help="shuffle, within, jitter or markers: what differs between presentations.")] = "shuffle",
    windows: Annotated[str | None, typer.Option(help="How orders are cut into prompts, e.g. contiguous:8, round_robin:8.")] = None,
    option: Annotated[list[str] | None, typer.Option("--option", help="An option of the scorer, e.g. max_length=256; repeatable.")] = None,
    source: Annotated[list[str] | None, typer.Option("--source", help="Keep lists whose source starts with this; repeatable.")] = None,
    limit: Annotated[int | None, typer.Option(help="Audit only this many lists, balanced over sources.")] = None,
    no_probes: Annotated[
        bool, typer.Option("--no-probes", help="Leave out the probes: pool, replace, companions, injection, batching.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="How the card calls the scorer.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Audit any scorer: quality and steadiness under the same orders, what flips, and a one-page decision card.

    Example: steadyrank audit packaged:test teacher -o audit --limit 200
    """
    if is_compare:
        _compare([Path(examples), Path(scorer)], output or Path("card.html"), as_json=as_json)
        return
    from steadyrank.audit import run_audit
    from steadyrank.data.selecting import choose, examples_of

    lists = choose(examples_of(examples, sources=source or ()), limit, seed=seed, balanced=True)
    dev_lists = None if dev is None else examples_of(dev, sources=source or ())
    folder = output or Path("audit")
    loaded, from_file = _scorer(scorer, option or [])
    say(f"auditing {loaded.name} on {len(lists)} lists, {presentations} presentations each")
    settings: dict[str, Any] = {"presentations": presentations, "kind": kind, "windows": windows, "seed": seed}
    settings |= {"threshold": threshold, "retention": retention}
    found = run_audit(
        loaded,
        lists,
        dev=dev_lists,
        name=name,
        scores_path=None if from_file else folder / "scores.jsonl",
        progress=not as_json,
        **settings,
        **({"probes": ()} if no_probes else {}),
    )
    found.write(folder / "audit.json")
    written = [folder / "audit.json", *([] if from_file else [folder / "scores.jsonl"])]
    written += _card([found.to_json()], folder / "card.html", folder / "card.png")
    lines = [found.verdict["headline"], *found.verdict["sentences"], f"grade: {found.verdict['grade']}; {_counts(found.counts)}"]
    lines += [f"left out: {part} ({why})" for part, why in found.left_out.items()]
    told = {"grade": found.verdict["grade"], "headline": found.verdict["headline"], "files": [str(path) for path in written]}
    emit({**told, "audit": found.to_json()}, as_json=as_json, lines=[*lines, "written: " + ", ".join(map(str, written))])


def _scorer(spec: str, options: list[str]) -> tuple[Any, bool]:
    """(the scorer, whether it is a file of scored lists). What a remote one fails at is counted and ends nothing."""
    from steadyrank.cli.score import scorer_options
    from steadyrank.scoring import load_scorer

    loaded = load_scorer(spec, **scorer_options(options))
    if hasattr(loaded, "on_failure"):
        loaded.on_failure = "skip"
    return loaded, hasattr(loaded, "presentations_of")


def _compare(audits: list[Path], page: Path, *, as_json: bool) -> None:
    if page.suffix not in (".html", ".htm"):
        raise InputError("is no page; give the name of an .html file with -o", path=page)
    found = _differences(*audits)
    written = _card(audits, page, page.with_suffix(".png"), found)
    lines = [f"{name}: {row['mean']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}] on {row['n']} lists" for name, row in found.items()]
    told = ["first minus second, list by list:", *lines] if lines else ["the two audits are of other lists; no paired difference"]
    emit(
        {"files": [str(path) for path in written], "differences": found},
        as_json=as_json,
        lines=[*told, "written: " + ", ".join(map(str, written))],
    )


def _differences(first: Path, second: Path) -> dict[str, Any]:
    """Paired differences; none where the audits are of other lists, which a card may still show side by side."""
    from steadyrank.audit import Audit, differences

    a, b = Audit.read(first).per_list, Audit.read(second).per_list
    if a is None or b is None or a["ids"] != b["ids"]:
        return {}
    return {name: row for name, row in differences(a, b).items() if row["n"]}


def _card(audits: list[Any], page: Path, picture: Path, differences: dict[str, Any] | None = None) -> list[Path]:
    from steadyrank.reports.card import write_card

    return write_card(audits, page, png=picture, differences=differences)


def _counts(counts: dict[str, Any]) -> str:
    return "asked {asked}, failed {failed}, cut to fit {truncated}, without text {empty}".format(**counts)

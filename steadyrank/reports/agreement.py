"""The page of a judge agreement: one self-contained HTML file, and its figures beside it; written from `agreement.json` alone.

Nothing is loaded from elsewhere and nothing is computed anew. Every text of the user is escaped by the template.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from steadyrank.files import atomic_write
from steadyrank.names import require
from steadyrank.reports import agreement_figures as figures
from steadyrank.reports import agreement_view as view
from steadyrank.reports import text

DRAWN = {"datasets": figures.datasets, "confusion": figures.confusion, "raters": figures.raters}


def write_agreement(given: str | Path | Mapping[str, Any], folder: str | Path, *, title: str | None = None) -> list[Path]:
    """`agreement.html` and `figures/*.{png,svg}` in a folder, of an agreement.json (its path, or its object); the paths written."""
    require("matplotlib", "the page of a judge agreement")
    require("jinja2", "the page of a judge agreement")
    found, folder = view.read_agreement(given), Path(folder)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")  # boxes in the PNG; the page has the reader's fonts
        drawings = {name: draw(found, folder / "figures") for name, draw in DRAWN.items()}
    page = folder / "agreement.html"
    with atomic_write(page) as file:
        file.write(render(found, drawings, title=title))
    pictures = [folder / "figures" / f"{name}.{kind}" for name, svg in drawings.items() if svg for kind in ("svg", "png")]
    return [page, *pictures]


def render(found: Mapping[str, Any], drawings: Mapping[str, str | None], *, title: str | None = None) -> str:
    """The page as text."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(plain=text.plain, words=text.words)
    environment.globals.update(cell_value=view.value)
    css = "\n".join(_resource(name) for name in ("report.css", "card.css", "agreement.css"))
    return environment.from_string(_resource("agreement.html.j2")).render(
        title=title or "Can the judge be trusted?",
        css=Markup(css),
        found=found,
        meta=_meta(found),
        judges=view.judges_of(found),
        relevance=view.relevance(found),
        summary=view.summary(found),
        against=view.of_kind(found, "reference"),
        peers=view.of_kind(found, "judges"),
        again=view.of_kind(found, "again"),
        heads={"main": view.MAIN, "errors": view.ERRORS, "peers": view.PEERS, "again": view.AGAIN, "swaps": view.SWAPS},
        tones=view.TONES,
        reference_rows=view.reference_rows(found),
        undefined=view.undefined(found),
        notes=[view.readable(note) for note in found["notes"] if not note.startswith("no reference")],  # said by the page itself
        figures={name: Markup(svg) if svg else None for name, svg in drawings.items()},
    )


def _meta(found: Mapping[str, Any]) -> list[str]:
    data = found["data"]
    out = [f"{len(found['judges'])} judge{'s' if len(found['judges']) > 1 else ''}"]
    out.append(f"against {found['reference']}" if found["reference"] else "no reference")
    out.append(f"{text.plain(data['lists'])} lists of {text.plain(data['documents'])} documents")
    if data["not_judged"]:
        out.append(f"{text.plain(data['not_judged'])} lists not judged")
    if len(data["sources"]) > 1:
        out.append(f"{len(data['sources'])} datasets")
    return out


def _resource(name: str) -> str:
    return resources.files("steadyrank.reports").joinpath("templates", name).read_text(encoding="utf-8")

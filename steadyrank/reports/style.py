"""How figures look: one palette told apart by colour-blind readers and by marker, one ink, quiet grids.

Every colour is one hex value here, so that a figure inside the page can follow its light or dark theme: `themed_svg` turns them into
CSS variables. Files written beside the page keep the light colours.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

INK, QUIET, GRID, PAPER = "#1f2a37", "#5f6c7b", "#e3e7ec", "#fefefe"
ROLE = {"student": "#0b66b0", "teacher": "#c2500a", "start": "#7a5aa6", "baseline": "#0e8a68", "reference": "#8a95a3"}
MARKER = {"student": "o", "teacher": "D", "start": "s", "baseline": "^", "reference": "X"}
GAIN, LOSS = "#0b66b1", "#c2500b"  # one bit off the roles: their own variables
VARIABLES = {
    INK: "ink", QUIET: "quiet", GRID: "line", PAPER: "paper", GAIN: "gain", LOSS: "loss",
    **{colour: f"role-{role}" for role, colour in ROLE.items()},
}  # fmt: skip

SETTINGS = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9.0,
    "text.color": INK, "axes.labelcolor": QUIET, "axes.edgecolor": GRID, "xtick.color": QUIET, "ytick.color": QUIET,
    "axes.labelsize": 9.0, "axes.titlesize": 10.0, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.titlepad": 10.0,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": GRID, "grid.linewidth": 0.8,
    "axes.axisbelow": True, "xtick.major.size": 0.0, "ytick.major.size": 0.0, "axes.facecolor": PAPER, "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER, "lines.solid_capstyle": "round", "svg.fonttype": "none",
    "text.parse_math": False, "figure.constrained_layout.use": True,
}  # fmt: skip


@contextmanager
def house_style(salt: str) -> Iterator[None]:
    """Matplotlib on the Agg canvas with our settings, and its global state as it was afterwards. `salt` makes the ids of an SVG its own."""
    import matplotlib

    settings: Any = {**SETTINGS, "svg.hashsalt": salt}
    with matplotlib.rc_context(settings):
        yield


def save(figure: Any, folder: Path, name: str) -> str:
    """Write NAME.png and NAME.svg; the SVG text for the page, following its theme."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once, for both files
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    svg = buffer.getvalue()
    (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
    figure.savefig(folder / f"{name}.png", dpi=180, metadata={"Software": None})
    return themed_svg(svg, name)


def themed_svg(svg: str, name: str) -> str:
    """The drawing for use inside the page: no prologue, no metadata, no namespaces, ids of its own, colours as CSS variables."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.S)
    body = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", body).replace("xlink:href", "href")
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = body.replace('href="#', f'href="#{name}-').replace("url(#", f"url(#{name}-")
    body = re.sub(r"font: ([\w ]*?)([\d.]+)px [^;\"]+", r"font: \1\2px var(--sans)", body)
    for colour, variable in VARIABLES.items():
        body = body.replace(colour, f"var(--{variable})")
    return re.sub(r"<svg ", f'<svg role="img" aria-labelledby="caption-{name}" ', body, count=1)

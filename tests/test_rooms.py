"""The house stands: imports go down only, every module imports, and the light doors stay light."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import steadyrank

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "steadyrank"
LEVELS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["steadyrank"]["levels"]
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or not path.name.startswith("__"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "steadyrank" else [f"steadyrank.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("steadyrank.")}
    return rooms


def test_every_room_has_a_level():
    assert {room_of(path) for path in FILES} <= set(LEVELS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path):
    here = room_of(path)
    wrong = [room for room in imported_rooms(path) if room in LEVELS and room != here and LEVELS[room] >= max(LEVELS[here], 1)]
    assert not wrong, f"{here} (level {LEVELS[here]}) imports {wrong}"


def test_every_module_imports():
    for module in pkgutil.walk_packages(steadyrank.__path__, "steadyrank."):
        importlib.import_module(module.name)


def test_only_lists_pads():
    offenders = [path.name for path in FILES if "pad_sequence(" in path.read_text() and path.name != "lists.py"]
    assert not offenders


@pytest.mark.parametrize(
    "statement", ["import steadyrank", "import steadyrank.cli.main", "import steadyrank.evaluation, steadyrank.data.jsonl"]
)
def test_light_doors_do_not_import_torch(statement):
    code = (
        f"{statement}\nimport sys; heavy = {{'torch', 'transformers', 'matplotlib', 'scipy'}} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_resolve():
    for name in steadyrank.__all__:
        getattr(steadyrank, name)

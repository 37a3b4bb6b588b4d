"""Every `steadyrank ...` line of the documentation names a verb and options that exist; recipes in it are valid."""

import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml

from steadyrank.cli.main import app
from steadyrank.config import load_recipe

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [block for page in PAGES for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(), flags=re.S | re.M)]
LINES = sorted({line.split("#")[0].strip() for block in BLOCKS for line in re.findall(r"^steadyrank .*$", block, flags=re.M)})


def test_the_documentation_has_commands():
    assert len(LINES) >= 10


@pytest.mark.parametrize("line", LINES)
def test_documented_command_exists(line):
    words = shlex.split(line)[1:]
    command = typer.main.get_command(app)
    while hasattr(command, "commands") and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    assert not hasattr(command, "commands") or words[0].startswith("--"), f"{words[0]} is no verb"
    known = {name for parameter in command.params for name in parameter.opts} | {"--help", "--install-completion"}
    assert {word for word in words if re.match(r"--?[a-z]", word)} <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_documented_recipes_are_valid(page, tmp_path):
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), flags=re.S):
        if "preset" in (yaml.safe_load(block) or {}):
            (tmp_path / "recipe.yaml").write_text(block)
            assert load_recipe(tmp_path / "recipe.yaml").output

"""What the guides name is there: commands with their options, settings, pages of the dashboard, and each other."""

import re
from pathlib import Path

import click
import pytest

from gateway.admin.site.nav import ADMIN_PLACES, OWNER_PLACES
from gateway.cli import faregate
from gateway.settings import Settings
from workers.settings import WorkerSettings

FOLDER = Path(__file__).parents[2] / "docs" / "guides"
GUIDES = sorted(FOLDER.glob("*.md"))
SETTINGS = {*Settings.__struct_fields__, *WorkerSettings.__struct_fields__}
PATHS = [place.path for place in (*ADMIN_PLACES, *OWNER_PLACES)]
COMMAND = re.compile(r"faregate ((?:[a-z]+(?:-[a-z]+)?)(?: [a-z]+(?:-[a-z]+)?)?)([^`\n]*)")


def found(words: str) -> click.Command | None:
    """Find the command of these words, or of the first of them."""
    context = click.Context(faregate)
    group: click.Command | None = faregate
    for word in words.split():
        if not isinstance(group, click.Group):
            break
        group = group.get_command(context, word)
    return group


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_its_commands_are_there_with_their_options(guide: Path) -> None:
    for words, rest in COMMAND.findall(guide.read_text()):
        if words.split()[0] in ("with", "of", "from", "a", "the"):
            continue
        command = found(words)
        assert command is not None, words
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        assert {option for option in re.findall(r"(?<=\s)--[a-z-]+", rest) if option not in known} == set(), words


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_its_settings_are_there(guide: Path) -> None:
    named = re.findall(r"FAREGATE_([A-Z_]+)", guide.read_text())
    unknown = [name for name in named if name.lower() not in SETTINGS and not name.startswith("UPSTREAM_")]
    assert unknown == []


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_its_links_and_pages_are_there(guide: Path) -> None:
    text = guide.read_text()
    for link in re.findall(r"\]\(([^)#:]+)[^)]*\)", text):
        assert (FOLDER / link).exists(), link
    for path in re.findall(r"(?<![\w.])(/(?:admin|usage)(?:/[a-z-]+)?)", text):
        assert path in PATHS, path

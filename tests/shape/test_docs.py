"""Every setting and every option is documented, and nothing that does not exist."""

import re
from pathlib import Path

import click
import msgspec
import pytest

from gateway.cli import COMMANDS, faregate
from gateway.settings import PREFIX, Settings
from tests.shape.sources import ROOT
from workers.settings import PREFIX as WORKER_PREFIX
from workers.settings import WorkerSettings

REFERENCE = ROOT / "docs" / "reference"
SHARED = {"--data", "--json"}


def rows(page: Path, heading: str) -> dict[str, str]:
    """Read the table under a heading: the first cell and the second."""
    section = page.read_text().split(f"\n{heading}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (.*?) \|", section, re.MULTILINE))


def default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    return f"`{field.default}`" if str(field.default) else ""


@pytest.mark.parametrize(
    ("heading", "prefix", "settings"),
    [("## Gateway and settler", PREFIX, Settings), ("## Workers", WORKER_PREFIX, WorkerSettings)],
)
def test_every_setting_is_documented_with_its_default(
    heading: str, prefix: str, settings: type[msgspec.Struct]
) -> None:
    wanted = {f"{prefix}{field.name.upper()}": default(field) for field in msgspec.structs.fields(settings)}
    wanted.pop(
        f"{WORKER_PREFIX}UPSTREAMS", None
    )  # two variables for each upstream of the catalog, under a heading of their own
    assert rows(REFERENCE / "settings.md", heading) == wanted


def commands(command: click.Command, path: str) -> dict[str, click.Command]:
    """Name every command below a group by what is typed."""
    if not isinstance(command, click.Group):
        return {path: command}
    context = click.Context(command)
    found: dict[str, click.Command] = {}
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        found |= commands(below, f"{path} {name}")
    return found


def test_every_command_and_option_is_documented_and_no_other() -> None:
    page = (REFERENCE / "commands.md").read_text()
    sections = {part.split("`")[1]: part for part in page.split("\n## ")[1:]}
    found = commands(faregate, "faregate")
    documented = {" ".join(word for word in title.split() if not word.strip("[]").isupper() and "..." not in word)
                  for title in sections}  # fmt: skip
    assert documented == set(found)
    for title, section in sections.items():
        command = next(command for path, command in found.items() if f"{title} ".startswith(f"{path} "))
        options = {each.opts[0] for each in command.params if isinstance(each, click.Option) and not each.hidden}
        assert set(re.findall(r"^\| `(--[a-z-]+)`", section, re.MULTILINE)) | SHARED == options | SHARED, title


def test_the_list_of_commands_agrees_with_the_modules() -> None:
    """`faregate --help` prints it without importing them."""
    context = click.Context(faregate)
    for name in COMMANDS:
        command = faregate.get_command(context, name)
        assert command is not None
        assert command.name == name

"""The command `faregate`. A command's module is imported when the command is used, so that `--help` is quick."""

import importlib
import os
import sys
from typing import NoReturn

import click
import msgspec

from gateway.errors import FaregateError
from gateway.settings import SettingsError
from gateway.version import VERSION


class Entry(msgspec.Struct, frozen=True):
    """A command before it is imported: where it is, and its line in `faregate --help`."""

    module: str
    line: str


COMMANDS = {
    "up": Entry("up", "Start everything on this machine and keep it running."),
    "accounts": Entry("accounts", "Create accounts, show what they have, book top-ups."),
    "refunds": Entry("refunds", "Give charges back, in part or in full."),
    "keys": Entry("keys", "Create, list, edit, limit and revoke API keys."),
    "catalog": Entry("catalog", "Check, compare, apply and export catalog.yaml."),
    "prices": Entry("prices", "Show, set, schedule and cancel prices, and tell their history."),
    "usage": Entry("usage", "Show what was used and charged."),
    "books": Entry("books", "Verify that the books add up."),
    "webhooks": Entry("webhooks", "List webhooks and deliver them again."),
    "models": Entry("models", "Make tiny models of random weights from code."),
    "gateway": Entry("gateway", "Run one gateway: the HTTP API."),
    "settler": Entry("settler", "Run one settler: charges what has ended, puts back what was lost."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name, and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"gateway.commands.{entry.module}")
        found: list[click.Command] = module.commands
        return next(command for command in found if command.name == cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.line) for name, entry in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="faregate")
def faregate() -> None:
    """Faregate: one API for many models, each request priced before it runs and charged exactly once."""


def main() -> None:
    """Run the command line; what goes wrong is one line on the error stream."""
    # structlog loads rich where it is installed, for colours: 7 MB in each process, whose logs are JSON.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    try:
        code = faregate(prog_name="faregate", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(error.exit_code)
    except click.UsageError as error:
        help_line = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        _end(f"{error.format_message()}{help_line}", error.exit_code)
    except click.ClickException as error:
        _end(error.format_message(), error.exit_code)
    except (FaregateError, SettingsError) as error:
        _end(str(error), 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read has gone, as `head` does
        sys.exit(1)
    except click.Abort:
        _end("interrupted", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _end(line: str, code: int) -> NoReturn:
    click.echo(f"faregate: {line}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
